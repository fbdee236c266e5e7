//! Files: inputs are read whole, and outputs are written whole or not at all. Outputs go to a temporary file in the
//! folder of the target, which is renamed when it is complete.

use crate::outcome::{ExitStatus, Failure};
use cohkit_base::words::did_you_mean;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use tempfile::NamedTempFile;

/// Lock held while a file is being written.
static WRITE_LOCK: Mutex<()> = Mutex::new(());

/// Number of files that [`write_parts`] has written.
static WRITTEN_FILES: AtomicU64 = AtomicU64::new(0);

/// Runs an action while no file is being written.
pub fn with_write_lock<T>(action: impl FnOnce() -> T) -> T {
    let _guard = WRITE_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    action()
}

/// Maximum size of an input file, in bytes. Devices and pipes may never end.
const MAX_INPUT_BYTES: u64 = 1 << 28;

/// Path of standard input.
pub const STANDARD_INPUT: &str = "/dev/stdin";

/// Path that an input is read from: `-` is standard input, unless there is a file of this name.
pub fn input_path(path: &Path) -> &Path {
    match path == Path::new("-") && !path.exists() {
        true => Path::new(STANDARD_INPUT),
        false => path,
    }
}

/// Contents of an input file, or of the shipped protocol of this name if there is no such file.
///
/// # Errors
/// The file cannot be read, or is not text in UTF-8.
pub fn read(path: &Path) -> Result<String, Failure> {
    let path = input_path(path);
    if let (Some(text), false) = (crate::shipped::protocol(path), path.exists()) {
        return Ok(text.to_string());
    }
    let path_text = path.display();
    let extension_help = match path.extension().and_then(|extension| extension.to_str()) {
        Some("m") => "Murphi models end in `.m`",
        Some("litmus") => "litmus tests end in `.litmus`",
        Some("json") => "traces are written by `cohkit sim --trace` and other commands",
        _ => "protocol files end in `.coh`",
    };
    // A path without extension is taken for the name of a protocol.
    let extension_help = match path.extension() {
        None => {
            let names: Vec<&str> = crate::shipped::names().collect();
            let suggestion = match missing_file_hint(path).is_empty() {
                true => did_you_mean(&path_text.to_string(), names.iter().copied()),
                false => String::new(),
            };
            let names = names.join(", ");
            format!("{suggestion}{extension_help}; the shipped protocols are {names}")
        }
        Some(_) => extension_help.to_string(),
    };
    let (content_kind, folder_extension) = match has_files(path, "litmus") {
        true => ("litmus tests", "litmus"),
        false => ("protocol files", "coh"),
    };
    let folder = format!("name the {content_kind} in it, as in `{path_text}/*.{folder_extension}`");
    let bytes = read_bytes(path, &extension_help, &folder)?;
    text(path, bytes)
}

/// Decodes the contents of the file at `path`, which only error messages name.
///
/// # Errors
/// The contents are not UTF-8, or are compressed, or lines end in carriage returns alone.
pub(crate) fn text(path: &Path, bytes: Vec<u8>) -> Result<String, Failure> {
    let path_text = path.display();
    let input_error = |reason: &str, help: &str| {
        let message = format!("error: {path_text}: {reason}\n  help: {help}");
        Failure::new(ExitStatus::BadInput, message)
    };
    if [b"\xff\xfe", b"\xfe\xff"]
        .iter()
        .any(|byte_order_mark| bytes.starts_with(*byte_order_mark))
    {
        return Err(input_error("is encoded in UTF-16", "save it in UTF-8"));
    }
    if bytes.starts_with(b"\x1f\x8b") {
        return Err(input_error(
            "is compressed by gzip",
            "decompress it with `gunzip`",
        ));
    }
    if bytes.contains(&b'\r') && !bytes.contains(&b'\n') {
        let help = "save it with Unix or Windows line endings";
        return Err(input_error("its lines end in carriage returns only", help));
    }
    String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        let reason = format!("is not text: byte {offset} is not UTF-8");
        input_error(&reason, "save it as plain text in UTF-8")
    })
}

/// Returns true if the path is a folder that contains a file with this extension.
fn has_files(path: &Path, extension: &str) -> bool {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let mut extensions = entries.map(|entry| {
        entry
            .path()
            .extension()
            .map(|found_extension| found_extension == extension)
    });
    extensions.any(|found_extension| found_extension == Some(true))
}

/// Failure for an input file that cannot be read. `missing_help` is the remedy if the file does not exist,
/// `folder_help` the one if it is a folder.
pub(crate) fn cannot_read(
    path: &Path,
    error: &io::Error,
    missing_help: &str,
    folder_help: &str,
) -> Failure {
    let path_text = path.display();
    let (outcome, reason) = match error.kind() {
        ErrorKind::NotFound => {
            let suggestion = missing_file_hint(path);
            (
                ExitStatus::BadInput,
                format!("no such file\n  help: {suggestion}{missing_help}; check the path"),
            )
        }
        ErrorKind::IsADirectory => (
            ExitStatus::BadInput,
            format!("is a folder\n  help: {folder_help}"),
        ),
        ErrorKind::PermissionDenied => (
            ExitStatus::CouldNotRun,
            "no permission to read it\n  help: `chmod +r` allows it".to_string(),
        ),
        _ => (ExitStatus::CouldNotRun, format!("cannot be read: {error}")),
    };
    Failure::new(outcome, format!("error: {path_text}: {reason}"))
}

/// Hint for a file that does not exist: a similar name in the same folder, or that this folder does not exist.
fn missing_file_hint(path: &Path) -> String {
    let folder = folder_of(path);
    if !folder.exists() {
        return format!("there is no folder `{}`; ", folder.display());
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let names = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    let names: Vec<String> = names.collect();
    did_you_mean(&name, names.iter().map(String::as_str))
}

/// Contents of an input file. `missing_help` is for a file that does not exist, `folder_help` for
/// a folder.
///
/// # Errors
/// The file cannot be read, or is too large.
pub fn read_bytes(path: &Path, missing_help: &str, folder_help: &str) -> Result<Vec<u8>, Failure> {
    let path_text = path.display();
    let read_limited = || {
        let mut bytes = Vec::new();
        let file = File::open(path)?;
        file.take(MAX_INPUT_BYTES + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes: Vec<u8> =
        read_limited().map_err(|error| cannot_read(path, &error, missing_help, folder_help))?;
    if bytes.len() as u64 > MAX_INPUT_BYTES {
        return Err(Failure::new(
            ExitStatus::BadInput,
            format!("error: {path_text}: is larger than the limit of 256 MiB"),
        ));
    }
    Ok(bytes)
}

/// Creates a folder for outputs and its parents, unless they exist.
///
/// # Errors
/// The folder cannot be created.
pub fn make_folder(path: &Path) -> Result<(), Failure> {
    fs::create_dir_all(path).map_err(|error| cannot_write(path, &error))
}

/// Writes the contents to the file: all of them, or the file stays unchanged.
///
/// The contents go to a temporary file in the same folder, which is then renamed. A file that is not regular (a pipe, a device)
/// is written directly.
///
/// # Errors
/// The file cannot be written.
pub fn write(path: &Path, contents: &str) -> Result<(), Failure> {
    write_atomically(&[(path, contents)])
}

/// Writes bytes, like [`write`].
///
/// # Errors
/// The file cannot be written.
pub fn write_bytes(path: &Path, contents: &[u8]) -> Result<(), Failure> {
    write_all(&[(path, contents)])
}

/// Writes several files, like [`write`]: if the contents of one cannot be written, all stay unchanged.
///
/// # Errors
/// A file cannot be written.
pub fn write_atomically(files: &[(&Path, &str)]) -> Result<(), Failure> {
    let files = files.iter();
    let files: Vec<_> = files.map(|&(path, text)| (path, text.as_bytes())).collect();
    write_all(&files)
}

/// Writes several files: first all contents to temporary files, then all renames. Only a rename that fails after
/// another one succeeded leaves some files replaced and others not.
fn write_all(files: &[(&Path, &[u8])]) -> Result<(), Failure> {
    with_write_lock(|| {
        let mut temporary_files = Vec::new();
        for &(path, contents) in files {
            let file =
                write_temporary(path, contents).map_err(|error| cannot_write(path, &error))?;
            temporary_files.extend(file.map(|file| (path, file)));
        }
        for (path, (target, file)) in temporary_files {
            file.persist(target)
                .map_err(|error| cannot_write(path, &error.error))?;
        }
        Ok(())
    })
}

/// Checks that this file can be written, without leaving anything behind.
///
/// # Errors
/// The errors of [`write`] that show before there are contents.
pub fn try_file(path: &Path) -> Result<(), Failure> {
    let try_temporary = || temporary_file_for(path).map(drop);
    with_write_lock(try_temporary).map_err(|error| cannot_write(path, &error))
}

/// Checks that files can be written into this folder once [`make_folder`] has created it, without leaving anything
/// behind.
///
/// # Errors
/// The errors that show before there are contents.
pub fn try_folder(path: &Path) -> Result<(), Failure> {
    let attempt = || {
        let ancestors = path
            .ancestors()
            .map(|folder| match folder.as_os_str().is_empty() {
                true => Path::new("."),
                false => folder,
            });
        let mut existing = ancestors.filter(|folder| fs::symlink_metadata(folder).is_ok());
        let Some(folder) = existing.next() else {
            return Err(ErrorKind::NotFound.into());
        };
        match fs::metadata(folder)?.is_dir() {
            true => new_file(folder).map(drop),
            false => Err(ErrorKind::NotADirectory.into()),
        }
    };
    with_write_lock(attempt).map_err(|error| cannot_write(path, &error))
}

/// Folder of a file; the current folder for a bare name.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Prefix of the names of temporary files.
const TEMPORARY_PREFIX: &str = ".cohkit-";

/// Creates a temporary file in a folder; dropping it deletes the file.
fn new_file(folder: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(TEMPORARY_PREFIX);
    #[cfg(unix)]
    {
        // The user's mask applies, as to any new file.
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder)
}

/// Writes the parts one after the other to a new file, and syncs the file and its folder: all parts, or no file. An
/// existing file is replaced.
pub(crate) fn write_parts(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    with_write_lock(|| {
        let folder = folder_of(path);
        let mut file = new_file(folder)?;
        for part in parts {
            file.write_all(part)?;
        }
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        WRITTEN_FILES.fetch_add(1, Ordering::SeqCst);
        // Only Unix can open a folder.
        #[cfg(unix)]
        File::open(folder)?.sync_all()?;
        Ok(())
    })
}

/// Removes temporary files that a killed process left in a folder of checkpoints.
pub(crate) fn remove_temporary_files(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry
            .file_name()
            .to_string_lossy()
            .starts_with(TEMPORARY_PREFIX)
        {
            // A remaining file does no harm.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Number of files that [`write_parts`] has written.
pub fn written_count() -> u64 {
    WRITTEN_FILES.load(Ordering::SeqCst)
}

/// Temporary file in the folder of the target, with the target's path; none if the target exists and is no regular file.
fn temporary_file_for(path: &Path) -> io::Result<Option<(PathBuf, NamedTempFile)>> {
    // A symbolic link stays; the file behind it is replaced.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    match fs::metadata(&path) {
        Ok(metadata) if metadata.is_dir() => Err(ErrorKind::IsADirectory.into()),
        // Opening a pipe would block until it has a reader.
        Ok(metadata) if !metadata.is_file() => Ok(None),
        Ok(metadata) => {
            let file = new_file(folder_of(&path))?;
            // Permissions stay: the target may be private or executable.
            file.as_file().set_permissions(metadata.permissions())?;
            Ok(Some((path, file)))
        }
        Err(_) => new_file(folder_of(&path)).map(|file| Some((path, file))),
    }
}

/// Temporary file with the contents, and the target's path; none if the contents were written directly.
fn write_temporary(path: &Path, contents: &[u8]) -> io::Result<Option<(PathBuf, NamedTempFile)>> {
    let Some((target, mut file)) = temporary_file_for(path)? else {
        let mut target_file = File::options().write(true).open(path)?;
        target_file.write_all(contents)?;
        return Ok(None);
    };
    file.write_all(contents)?;
    // A full disk may be reported only here.
    file.as_file().sync_all()?;
    Ok(Some((target, file)))
}

/// Unfinished temporary files, which are written during a run.
static UNFINISHED_FILES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Creates an unfinished temporary file for a target. Returns the target's path and the file; none if the target exists
/// and is no regular file.
///
/// # Errors
/// The temporary file cannot be created.
pub fn create_unfinished(path: &Path) -> io::Result<Option<(PathBuf, NamedTempFile)>> {
    with_write_lock(|| {
        let temporary = temporary_file_for(path)?;
        let mut unfinished = UNFINISHED_FILES
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        unfinished.extend(temporary.iter().map(|(_, file)| file.path().to_path_buf()));
        Ok(temporary)
    })
}

/// Renames the complete file to its target.
///
/// # Errors
/// The file cannot be renamed.
pub fn finish(target: &Path, file: NamedTempFile) -> io::Result<()> {
    with_write_lock(|| file.persist(target).map(drop).map_err(|error| error.error))
}

/// Removes incomplete temporary files before the process exits.
pub fn remove_unfinished_files() {
    let mut unfinished = UNFINISHED_FILES
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    for path in unfinished.drain(..) {
        // A complete or abandoned file no longer has this name.
        let _ = fs::remove_file(path);
    }
}

/// Failure for a file that cannot be written, with a remedy.
pub fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    let path_text = path.display();
    let (reason, help) = match error.kind() {
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => (
            "no permission to write there".to_string(),
            "name a folder that you may write to",
        ),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => (
            "the disk is full".to_string(),
            "free some space, or name a place on another disk",
        ),
        ErrorKind::FileTooLarge => (
            "the limit on the size of files is reached".to_string(),
            "raise it with `ulimit -f`",
        ),
        ErrorKind::NotFound if folder_of(path).is_dir() => (
            "cannot create a file in its folder".to_string(),
            "name another place",
        ),
        ErrorKind::NotFound => (
            "its folder does not exist".to_string(),
            "make the folder first",
        ),
        ErrorKind::IsADirectory => ("is a folder".to_string(), "name a file"),
        ErrorKind::NotADirectory | ErrorKind::AlreadyExists => (
            "a file exists where a folder is needed".to_string(),
            "name another place",
        ),
        _ => (format!("cannot be written: {error}"), "name another place"),
    };
    Failure::new(
        ExitStatus::CouldNotRun,
        format!("error: {path_text}: {reason}; nothing was written\n  help: {help}"),
    )
}

#[cfg(test)]
mod tests {
    use super::{fs, read, try_file, try_folder, write, write_atomically, ExitStatus, Path};

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn write_replaces_the_whole_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.json");
        write(&path, "old and long").unwrap();
        write(&path, "new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(names(folder.path()), ["out.json"]);
    }

    #[test]
    fn several_files_are_written_atomically() {
        let folder = tempfile::tempdir().unwrap();
        let path_of = |name: &str| folder.path().join(name);
        fs::write(path_of("old"), "kept").unwrap();
        let failure = write_atomically(&[
            (&path_of("old"), "new"),
            (&path_of("new"), "new"),
            (&path_of("missing/new"), "new"),
        ]);
        assert_eq!(failure.unwrap_err().outcome, ExitStatus::CouldNotRun);
        assert_eq!(fs::read_to_string(path_of("old")).unwrap(), "kept");
        assert_eq!(names(folder.path()), ["old"]);
        write_atomically(&[(&path_of("old"), "a"), (&path_of("new"), "b")]).unwrap();
        assert_eq!(fs::read_to_string(path_of("old")).unwrap(), "a");
        assert_eq!(names(folder.path()), ["new", "old"]);
    }

    #[cfg(unix)]
    #[test]
    fn write_through_a_symbolic_link_keeps_the_link() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&path, "old").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        write(&link, "new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    #[test]
    fn write_to_a_folder_fails_without_leftovers() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("there")).unwrap();
        let failure = write(&folder.path().join("there"), "text").unwrap_err();
        assert_eq!(failure.outcome, ExitStatus::CouldNotRun);
        assert!(
            failure.message.contains("is a folder"),
            "{}",
            failure.message
        );
        let failure = write(&folder.path().join("missing").join("file"), "text").unwrap_err();
        assert!(
            failure.message.contains("make the folder first"),
            "{}",
            failure.message
        );
        assert_eq!(names(folder.path()), ["there"]);
    }

    #[test]
    fn write_trial_finds_errors_without_leftovers() {
        let folder = tempfile::tempdir().unwrap();
        let path_of = |name: &str| folder.path().join(name);
        fs::write(path_of("file"), "kept").unwrap();
        for path in ["file", "new"] {
            try_file(&path_of(path)).unwrap();
        }
        try_folder(&path_of("a/b/c")).unwrap();
        for (result, expected) in [
            (try_file(folder.path()), "is a folder"),
            (try_file(&path_of("missing/new")), "make the folder first"),
            #[cfg(target_os = "linux")]
            (
                try_file(Path::new("/proc/new")),
                "cannot create a file in its folder",
            ),
            (try_folder(&path_of("file")), "a file exists where a folder"),
            (
                try_folder(&path_of("file/a")),
                "a file exists where a folder",
            ),
        ] {
            let failure = result.unwrap_err();
            assert_eq!(failure.outcome, ExitStatus::CouldNotRun);
            assert!(failure.message.contains(expected), "{}", failure.message);
        }
        assert_eq!(names(folder.path()), ["file"]);
        assert_eq!(fs::read_to_string(path_of("file")).unwrap(), "kept");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn full_device_is_reported_and_not_replaced() {
        use std::os::unix::fs::FileTypeExt;
        let failure = write(Path::new("/dev/full"), "text").unwrap_err();
        assert_eq!(failure.outcome, ExitStatus::CouldNotRun);
        assert!(
            failure.message.contains("the disk is full"),
            "{}",
            failure.message
        );
        assert!(fs::metadata("/dev/full")
            .unwrap()
            .file_type()
            .is_char_device());
    }

    #[test]
    fn unreadable_files_are_bad_input() {
        let folder = tempfile::tempdir().unwrap();
        let utf16_text: Vec<u8> = "\u{feff}protocol p {\n}\n"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        let write_file = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            fs::write(&path, bytes).unwrap();
            path
        };
        for (path, expected) in [
            (
                write_file("binary.coh", b"protocol \xff").as_path(),
                "byte 9 is not UTF-8",
            ),
            (&write_file("wide.coh", &utf16_text), "is encoded in UTF-16"),
            (
                &write_file("old.coh", b"protocol p {\r}\r"),
                "its lines end in carriage returns only",
            ),
            (folder.path(), "is a folder"),
            (&folder.path().join("none.coh"), "no such file"),
        ] {
            let failure = read(path).unwrap_err();
            assert_eq!(failure.outcome, ExitStatus::BadInput);
            assert!(failure.message.contains(expected), "{}", failure.message);
        }
    }
}
