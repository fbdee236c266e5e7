//! Files: read whole, and written whole or not at all.

use crate::outcome::{Failure, Outcome};
use cohkit_base::words::did_you_mean;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use tempfile::NamedTempFile;

/// Held while a file is being written.
static WRITING: Mutex<()> = Mutex::new(());

static WRITTEN: AtomicU64 = AtomicU64::new(0);

/// Does something while no file is being written.
pub(crate) fn between_writes<T>(action: impl FnOnce() -> T) -> T {
    let _guard = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    action()
}

/// Input files are not read beyond so many bytes; some have no end.
const LARGEST: u64 = 1 << 28;

/// What comes in by standard input, as a file.
pub(crate) const STANDARD_INPUT: &str = "/dev/stdin";

/// Where an input is read from: `-` is standard input, unless there is a file of this name.
pub(crate) fn named(path: &Path) -> &Path {
    match path == Path::new("-") && !path.exists() {
        true => Path::new(STANDARD_INPUT),
        false => path,
    }
}

/// The text of an input file: of one that is there, or of the protocol that ships under this name.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    let path = named(path);
    if let (Some(text), false) = (crate::shipped::protocol(path), path.exists()) {
        return Ok(text.to_string());
    }
    let shown = path.display();
    let ending = match path.extension().and_then(|extension| extension.to_str()) {
        Some("m") => "Murphi models end in `.m`",
        Some("litmus") => "litmus tests end in `.litmus`",
        Some("json") => "traces are what `cohkit sim --trace` and others write",
        _ => "protocol texts end in `.coh`",
    };
    // What has no ending is meant as a name.
    let ending = match path.extension() {
        None => {
            let names: Vec<&str> = crate::shipped::names().collect();
            let near = match beside(path).is_empty() {
                true => did_you_mean(&shown.to_string(), names.iter().copied()),
                false => String::new(),
            };
            let names = names.join(", ");
            format!("{near}{ending}; the protocols that ship are {names}")
        }
        Some(_) => ending.to_string(),
    };
    let (what, ending_there) = match has_files(path, "litmus") {
        true => ("litmus tests", "litmus"),
        false => ("protocol texts", "coh"),
    };
    let folder = format!("name the {what} in it, as in `{shown}/*.{ending_there}`");
    let bytes = read_bytes(path, &ending, &folder)?;
    text(path, bytes)
}

/// The text that a file holds.
///
/// # Errors
/// It holds none, or one that is written in another way.
pub(crate) fn text(path: &Path, bytes: Vec<u8>) -> Result<String, Failure> {
    let shown = path.display();
    let refused = |what: &str, help: &str| {
        let message = format!("error: {shown}: {what}\n  help: {help}");
        Failure::new(Outcome::BadInput, message)
    };
    if [b"\xff\xfe", b"\xfe\xff"]
        .iter()
        .any(|mark| bytes.starts_with(*mark))
    {
        return Err(refused("is a text in UTF-16", "save it in UTF-8"));
    }
    if bytes.starts_with(b"\x1f\x8b") {
        return Err(refused("is packed by gzip", "unpack it by `gunzip`"));
    }
    if bytes.contains(&b'\r') && !bytes.contains(&b'\n') {
        let help = "save it with the line ends of Unix or Windows";
        return Err(refused("its lines end in carriage returns alone", help));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let what = format!("is not text: byte {at} is not UTF-8");
        refused(&what, "it has to be a plain text file in UTF-8")
    })
}

/// Whether it is a folder with a file that ends so.
fn has_files(path: &Path, ending: &str) -> bool {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let mut endings = entries.map(|entry| entry.path().extension().map(|its| its == ending));
    endings.any(|its| its == Some(true))
}

/// Why an input file is not read, with what helps who names one that is not there, or a folder.
pub(crate) fn cannot_read(path: &Path, error: &io::Error, missing: &str, folder: &str) -> Failure {
    let shown = path.display();
    let (outcome, why) = match error.kind() {
        ErrorKind::NotFound => {
            let near = beside(path);
            (
                Outcome::BadInput,
                format!("no such file\n  help: {near}{missing}; is the path right?"),
            )
        }
        ErrorKind::IsADirectory => (Outcome::BadInput, format!("is a folder\n  help: {folder}")),
        ErrorKind::PermissionDenied => (
            Outcome::CouldNotRun,
            "no permission to read it\n  help: `chmod +r` allows it".to_string(),
        ),
        _ => (Outcome::CouldNotRun, format!("cannot be read: {error}")),
    };
    Failure::new(outcome, format!("error: {shown}: {why}"))
}

/// The file that is meant by the name of one that is not there, if one of the same folder is named like it; or which folder
/// on the way there is not.
fn beside(path: &Path) -> String {
    let folder = folder_of(path);
    if !folder.exists() {
        return format!("there is no folder `{}`; ", folder.display());
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let there = fs::read_dir(folder).into_iter().flatten().flatten();
    let there = there.filter_map(|entry| entry.file_name().into_string().ok());
    let there: Vec<String> = there.collect();
    did_you_mean(&name, there.iter().map(String::as_str))
}

/// The bytes of an input file, with what helps who names one that is not there, or a folder.
pub(crate) fn read_bytes(path: &Path, missing: &str, folder: &str) -> Result<Vec<u8>, Failure> {
    let shown = path.display();
    let read = || {
        let mut bytes = Vec::new();
        let file = File::open(path)?;
        file.take(LARGEST + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes: Vec<u8> = read().map_err(|error| cannot_read(path, &error, missing, folder))?;
    if bytes.len() as u64 > LARGEST {
        return Err(Failure::new(
            Outcome::BadInput,
            format!("error: {shown}: has more than 256 MiB, and no more are read"),
        ));
    }
    Ok(bytes)
}

/// Makes a folder for outputs, unless it is there.
pub(crate) fn make_folder(path: &Path) -> Result<(), Failure> {
    fs::create_dir_all(path).map_err(|error| cannot_write(path, &error))
}

/// Puts the contents into the file: all of them, or the file stays as it was.
///
/// They are written to a new file beside it, which then takes its name.
/// What is not a regular file (a pipe, a device) is written to directly.
pub(crate) fn write(path: &Path, contents: &str) -> Result<(), Failure> {
    write_together(&[(path, contents)])
}

/// The same of what is no text.
pub(crate) fn write_bytes(path: &Path, contents: &[u8]) -> Result<(), Failure> {
    write_all(&[(path, contents)])
}

/// The same of several files: if the contents of one cannot be written, all stay as they were.
pub(crate) fn write_together(files: &[(&Path, &str)]) -> Result<(), Failure> {
    let files = files.iter();
    let files: Vec<_> = files.map(|&(path, text)| (path, text.as_bytes())).collect();
    write_all(&files)
}

fn write_all(files: &[(&Path, &[u8])]) -> Result<(), Failure> {
    between_writes(|| {
        let mut written = Vec::new();
        for &(path, contents) in files {
            let file = contents_of(path, contents).map_err(|error| cannot_write(path, &error))?;
            written.extend(file.map(|file| (path, file)));
        }
        for (path, (place, file)) in written {
            file.persist(place)
                .map_err(|error| cannot_write(path, &error.error))?;
        }
        Ok(())
    })
}

/// Whether this file could be written, found out without leaving anything behind.
///
/// # Errors
/// What [`write`] would fail with, as far as can be seen before there are contents.
pub(crate) fn try_file(path: &Path) -> Result<(), Failure> {
    let attempt = || half_of(path).map(drop);
    between_writes(attempt).map_err(|error| cannot_write(path, &error))
}

/// Whether files could be written into this folder once [`make_folder`] has made it,
/// found out without leaving anything behind.
///
/// # Errors
/// As far as can be seen before there are contents, what would fail then.
pub(crate) fn try_folder(path: &Path) -> Result<(), Failure> {
    let attempt = || {
        let named = path
            .ancestors()
            .map(|folder| match folder.as_os_str().is_empty() {
                true => Path::new("."),
                false => folder,
            });
        let mut there = named.filter(|folder| fs::symlink_metadata(folder).is_ok());
        let Some(folder) = there.next() else {
            return Err(ErrorKind::NotFound.into());
        };
        match fs::metadata(folder)?.is_dir() {
            true => new_file(folder).map(drop),
            false => Err(ErrorKind::NotADirectory.into()),
        }
    };
    between_writes(attempt).map_err(|error| cannot_write(path, &error))
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// How the names of files begin that are not whole yet.
const HALF: &str = ".cohkit-";

/// A new file in a folder, which goes when it is dropped.
fn new_file(folder: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(HALF);
    #[cfg(unix)]
    {
        // As for any new file: what the user's mask leaves.
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder)
}

/// Puts all parts in a row into a new file, and makes sure that they and the file's name stay: all of them, or no file.
pub(crate) fn write_parts(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    between_writes(|| {
        let folder = folder_of(path);
        let mut file = new_file(folder)?;
        for part in parts {
            file.write_all(part)?;
        }
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        WRITTEN.fetch_add(1, Ordering::SeqCst);
        // Elsewhere a folder cannot be opened.
        #[cfg(unix)]
        File::open(folder)?.sync_all()?;
        Ok(())
    })
}

/// Removes from a folder of checkpoints what a process that was killed left of a file.
pub(crate) fn remove_halves(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(HALF) {
            // What stays does no harm.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// How many files have been written by [`write_parts`].
pub(crate) fn written() -> u64 {
    WRITTEN.load(Ordering::SeqCst)
}

/// A new file beside the one whose place it will take, and that place; none if what is there is no regular file.
fn half_of(path: &Path) -> io::Result<Option<(PathBuf, NamedTempFile)>> {
    // Through a symbolic link the file behind it is replaced, not the link.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    match fs::metadata(&path) {
        Ok(there) if there.is_dir() => Err(ErrorKind::IsADirectory.into()),
        // To open a pipe would wait for its reader.
        Ok(there) if !there.is_file() => Ok(None),
        Ok(there) => {
            let file = new_file(folder_of(&path))?;
            // The file that it replaces may be private, or executable.
            file.as_file().set_permissions(there.permissions())?;
            Ok(Some((path, file)))
        }
        Err(_) => new_file(folder_of(&path)).map(|file| Some((path, file))),
    }
}

/// A new file with the contents, beside the one whose place it will take; none if they were written directly.
fn contents_of(path: &Path, contents: &[u8]) -> io::Result<Option<(PathBuf, NamedTempFile)>> {
    let Some((place, mut file)) = half_of(path)? else {
        let mut there = File::options().write(true).open(path)?;
        there.write_all(contents)?;
        return Ok(None);
    };
    file.write_all(contents)?;
    // A full disk may show only now.
    file.as_file().sync_all()?;
    Ok(Some((place, file)))
}

/// What is not whole yet of a file that is written while other things go on.
static GROWING: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Begins such a file: where it will stand, and what is to be filled; none if what is there is no regular file.
pub(crate) fn begin(path: &Path) -> io::Result<Option<(PathBuf, NamedTempFile)>> {
    between_writes(|| {
        let half = half_of(path)?;
        let mut growing = GROWING.lock().unwrap_or_else(PoisonError::into_inner);
        growing.extend(half.iter().map(|(_, file)| file.path().to_path_buf()));
        Ok(half)
    })
}

/// Puts it, which is whole now, into its place.
pub(crate) fn end(place: &Path, file: NamedTempFile) -> io::Result<()> {
    between_writes(|| file.persist(place).map(drop).map_err(|error| error.error))
}

/// Removes what is not whole of such files, before the process is ended.
pub(crate) fn remove_growing() {
    let mut growing = GROWING.lock().unwrap_or_else(PoisonError::into_inner);
    for path in growing.drain(..) {
        // One that is whole or given up has another name, or none.
        let _ = fs::remove_file(path);
    }
}

/// What is said of a file that cannot be written.
pub(crate) fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    let shown = path.display();
    let (what, help) = match error.kind() {
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
            "`ulimit -f` may be wider",
        ),
        ErrorKind::NotFound if folder_of(path).is_dir() => (
            "no file can be made in its folder".to_string(),
            "name another place",
        ),
        ErrorKind::NotFound => (
            "its folder does not exist".to_string(),
            "make the folder first",
        ),
        ErrorKind::IsADirectory => ("is a folder".to_string(), "name a file"),
        ErrorKind::NotADirectory | ErrorKind::AlreadyExists => (
            "a file stands where a folder is needed".to_string(),
            "name another place",
        ),
        _ => (format!("cannot be written: {error}"), "name another place"),
    };
    Failure::new(
        Outcome::CouldNotRun,
        format!("error: {shown}: {what}; nothing was written\n  help: {help}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_replaced_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.json");
        write(&path, "old and long").unwrap();
        write(&path, "new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(names(folder.path()), ["out.json"]);
    }

    #[test]
    fn of_several_files_all_are_written_or_none() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("old"), "kept").unwrap();
        let failure = write_together(&[
            (&at("old"), "new"),
            (&at("new"), "new"),
            (&at("missing/new"), "new"),
        ]);
        assert_eq!(failure.unwrap_err().outcome, Outcome::CouldNotRun);
        assert_eq!(fs::read_to_string(at("old")).unwrap(), "kept");
        assert_eq!(names(folder.path()), ["old"]);
        write_together(&[(&at("old"), "a"), (&at("new"), "b")]).unwrap();
        assert_eq!(fs::read_to_string(at("old")).unwrap(), "a");
        assert_eq!(names(folder.path()), ["new", "old"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_keeps_pointing_to_the_file_that_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&path, "old").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        write(&link, "new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    #[test]
    fn a_folder_is_not_replaced_and_nothing_is_left() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("there")).unwrap();
        let failure = write(&folder.path().join("there"), "text").unwrap_err();
        assert_eq!(failure.outcome, Outcome::CouldNotRun);
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
    fn a_trial_finds_what_writing_would_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "kept").unwrap();
        for path in ["file", "new"] {
            try_file(&at(path)).unwrap();
        }
        try_folder(&at("a/b/c")).unwrap();
        for (tried, says) in [
            (try_file(folder.path()), "is a folder"),
            (try_file(&at("missing/new")), "make the folder first"),
            #[cfg(target_os = "linux")]
            (
                try_file(Path::new("/proc/new")),
                "no file can be made in its folder",
            ),
            (try_folder(&at("file")), "a file stands where a folder"),
            (try_folder(&at("file/a")), "a file stands where a folder"),
        ] {
            let failure = tried.unwrap_err();
            assert_eq!(failure.outcome, Outcome::CouldNotRun);
            assert!(failure.message.contains(says), "{}", failure.message);
        }
        assert_eq!(names(folder.path()), ["file"]);
        assert_eq!(fs::read_to_string(at("file")).unwrap(), "kept");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_device_is_said_to_be_full_and_stays_a_device() {
        use std::os::unix::fs::FileTypeExt;
        let failure = write(Path::new("/dev/full"), "text").unwrap_err();
        assert_eq!(failure.outcome, Outcome::CouldNotRun);
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
    fn what_cannot_be_read_is_bad_input() {
        let folder = tempfile::tempdir().unwrap();
        let wide: Vec<u8> = "\u{feff}protocol p {\n}\n"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        let holds = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            fs::write(&path, bytes).unwrap();
            path
        };
        for (path, says) in [
            (
                holds("binary.coh", b"protocol \xff").as_path(),
                "byte 9 is not UTF-8",
            ),
            (&holds("wide.coh", &wide), "is a text in UTF-16"),
            (
                &holds("old.coh", b"protocol p {\r}\r"),
                "its lines end in carriage returns alone",
            ),
            (folder.path(), "is a folder"),
            (&folder.path().join("none.coh"), "no such file"),
        ] {
            let failure = read(path).unwrap_err();
            assert_eq!(failure.outcome, Outcome::BadInput);
            assert!(failure.message.contains(says), "{}", failure.message);
        }
    }
}
