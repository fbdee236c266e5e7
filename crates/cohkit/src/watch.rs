//! `cohkit check --watch`: repeats the check when a file has changed.
//!
//! Files are polled a few times a second instead of using notifications of the operating system: there are few files,
//! and polling one costs microseconds. Polling also covers files that editors replace, files on networks, and files
//! that do not exist yet.

use crate::check;
use crate::console::Console;
use crate::options::Check;
use cohkit_api::composition;
use cohkit_api::files;
use cohkit_api::outcome::{ExitStatus, Failure};
use cohkit_protocol::text;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

/// Polling interval, and time without changes before files are read again, as editors write in pieces.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Fingerprint that detects a change of a file: modification time, size, and inode where there is one; `None` for a
/// missing file.
type FileFingerprint = Option<(SystemTime, u64, u64)>;

/// Checks, and checks again after each change, until the command is interrupted. A change cancels the check in
/// progress.
pub(crate) fn run(options: &Check, console: &mut Console) -> Result<ExitStatus, Failure> {
    for file in &options.files {
        reject_unwatchable(file)?;
    }
    let mut is_first = true;
    loop {
        let known_fingerprints = fingerprints(&options.files);
        let result = check_until_change(options, &known_fingerprints, console);
        match result {
            _ if console.is_interrupted() => return interrupted_failure(),
            // A cancelled check is repeated.
            Err(failure) if failure.outcome == ExitStatus::Interrupted => {}
            // An invalid command line stays invalid.
            Err(failure) if is_first => return Err(failure),
            Err(failure) => console.say(&failure.message),
            Ok(_) => {}
        }
        if is_first {
            console.say("watching; Ctrl-C ends");
        }
        is_first = false;
        let file = loop {
            if let Some(file) = changed_file(&known_fingerprints) {
                break file;
            }
            thread::sleep(POLL_INTERVAL);
            if console.is_interrupted() {
                return interrupted_failure();
            }
        };
        wait_for_last_change(&options.files, console);
        console.say(&format!("\nchanged: {}", file.display()));
    }
}

/// Rejects a file whose changes cannot be observed, or that can be read only once.
fn reject_unwatchable(file: &Path) -> Result<(), Failure> {
    let input = files::input_path(file);
    let metadata = input.metadata();
    // Standard input may be a regular file, but can be read only once.
    if input == Path::new(files::STANDARD_INPUT)
        || metadata.is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
    {
        let path_text = file.display();
        return Err(Failure::new(
            ExitStatus::BadInput,
            format!("error: {path_text}: cannot be watched: not a regular file\n  help: remove `--watch`"),
        ));
    }
    Ok(())
}

/// Runs the check. Another thread cancels it when a file changes or the command is interrupted.
fn check_until_change(
    options: &Check,
    known_fingerprints: &[(PathBuf, FileFingerprint)],
    console: &mut Console,
) -> Result<ExitStatus, Failure> {
    let interrupted = console.interrupted;
    let stop = AtomicBool::new(false);
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::SeqCst) {
                if interrupted.load(Ordering::SeqCst) || changed_file(known_fingerprints).is_some()
                {
                    stop.store(true, Ordering::SeqCst);
                    break;
                }
                thread::park_timeout(POLL_INTERVAL);
            }
        });
        let result = check::once(options, &mut console.with_interrupt_flag(&stop));
        is_done.store(true, Ordering::SeqCst);
        result
    })
}

/// Waits until the files stay unchanged for one interval, as editors write in pieces, or until an interrupt.
fn wait_for_last_change(files: &[PathBuf], console: &Console) {
    let mut current = fingerprints(files);
    loop {
        thread::sleep(POLL_INTERVAL);
        let previous = std::mem::replace(&mut current, fingerprints(files));
        if current == previous || console.is_interrupted() {
            return;
        }
    }
}

/// Failure by which watching ends.
fn interrupted_failure() -> Result<ExitStatus, Failure> {
    Err(Failure::new(ExitStatus::Interrupted, "interrupted"))
}

/// First file that has changed.
fn changed_file(recorded: &[(PathBuf, FileFingerprint)]) -> Option<&Path> {
    let mut recorded = recorded.iter();
    let changed =
        recorded.find(|(path, known_fingerprint)| fingerprint(path) != *known_fingerprint);
    changed.map(|(path, _)| path.as_path())
}

/// All files that the check reads, with their current fingerprints.
fn fingerprints(files: &[PathBuf]) -> Vec<(PathBuf, FileFingerprint)> {
    let mut files_with_fingerprints = Vec::new();
    for file in files {
        // The fingerprint is taken before the contents are read, so that a write in between counts as a change.
        files_with_fingerprints.push((file.clone(), fingerprint(file)));
        for used in used_files(file) {
            let used_fingerprint = fingerprint(&used);
            files_with_fingerprints.push((used, used_fingerprint));
        }
    }
    files_with_fingerprints
}

/// Current fingerprint of a file.
fn fingerprint(path: &Path) -> FileFingerprint {
    let metadata = path.metadata().ok()?;
    #[cfg(unix)]
    let number = std::os::unix::fs::MetadataExt::ino(&metadata);
    #[cfg(not(unix))]
    let number = 0;
    Some((metadata.modified().ok()?, metadata.len(), number))
}

/// Files that a composition uses, as far as it can be parsed; they need not exist, as some are shipped.
fn used_files(file: &Path) -> Vec<PathBuf> {
    let text = files::read(file).unwrap_or_default();
    if !text::composes(&text) {
        return Vec::new();
    }
    let mut load = |_: &str| Err(String::new());
    let (_, analysis) = text::analyse_composing(&text, &mut load);
    let uses = analysis.uses.iter();
    uses.map(|(_, used)| composition::resolve_used_file(file, used))
        .collect()
}
