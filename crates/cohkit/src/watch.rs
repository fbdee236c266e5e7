//! `cohkit check --watch`: repeats the check when a file has changed.
//!
//! Files are polled a few times a second instead of using notifications of the operating system: there are few files,
//! and polling one costs microseconds. Polling also covers files that editors replace, files on networks, and files
//! that do not exist yet.

use crate::check;
use crate::composed;
use crate::console::Console;
use crate::files;
use crate::options::Check;
use crate::outcome::{ExitStatus, Failure};
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
        let from = files::named(file);
        let metadata = from.metadata();
        // Standard input may be a regular file, but can be read only once.
        if from == Path::new(files::STANDARD_INPUT)
            || metadata.is_ok_and(|found| !found.is_file() && !found.is_dir())
        {
            let shown = file.display();
            return Err(Failure::new(
                ExitStatus::BadInput,
                format!("error: {shown}: cannot be watched: not a regular file\n  help: remove `--watch`"),
            ));
        }
    }
    let mut first = true;
    let interrupted = console.interrupted;
    loop {
        let seen = stamps(&options.files);
        let stop = AtomicBool::new(false);
        let ended = AtomicBool::new(false);
        let result = thread::scope(|scope| {
            scope.spawn(|| {
                while !ended.load(Ordering::SeqCst) {
                    if interrupted.load(Ordering::SeqCst) || changed(&seen).is_some() {
                        stop.store(true, Ordering::SeqCst);
                        break;
                    }
                    thread::park_timeout(POLL_INTERVAL);
                }
            });
            let result = check::once(options, &mut console.stopped_by(&stop));
            ended.store(true, Ordering::SeqCst);
            result
        });
        match result {
            _ if console.is_interrupted() => return stopped(),
            // A cancelled check is repeated.
            Err(failure) if failure.outcome == ExitStatus::Interrupted => {}
            // An invalid command line stays invalid.
            Err(failure) if first => return Err(failure),
            Err(failure) => console.say(&failure.message),
            Ok(_) => {}
        }
        if first {
            console.say("watching; Ctrl-C ends");
        }
        first = false;
        let file = loop {
            if let Some(file) = changed(&seen) {
                break file;
            }
            thread::sleep(POLL_INTERVAL);
            if console.is_interrupted() {
                return stopped();
            }
        };
        let mut now = stamps(&options.files);
        loop {
            thread::sleep(POLL_INTERVAL);
            let then = std::mem::replace(&mut now, stamps(&options.files));
            if now == then || console.is_interrupted() {
                break;
            }
        }
        console.say(&format!("\nchanged: {}", file.display()));
    }
}

fn stopped() -> Result<ExitStatus, Failure> {
    Err(Failure::new(ExitStatus::Interrupted, "interrupted"))
}

/// First file that has changed.
fn changed(seen: &[(PathBuf, FileFingerprint)]) -> Option<&Path> {
    let mut seen = seen.iter();
    let found = seen.find(|(path, before)| stamp(path) != *before);
    found.map(|(path, _)| path.as_path())
}

/// All files that the check reads, with their current fingerprints.
fn stamps(files: &[PathBuf]) -> Vec<(PathBuf, FileFingerprint)> {
    let mut all = Vec::new();
    for file in files {
        // The fingerprint is taken before the contents are read, so that a write in between counts as a change.
        all.push((file.clone(), stamp(file)));
        for used in used(file) {
            let stamp = stamp(&used);
            all.push((used, stamp));
        }
    }
    all
}

fn stamp(path: &Path) -> FileFingerprint {
    let found = path.metadata().ok()?;
    #[cfg(unix)]
    let number = std::os::unix::fs::MetadataExt::ino(&found);
    #[cfg(not(unix))]
    let number = 0;
    Some((found.modified().ok()?, found.len(), number))
}

/// Files that a composition uses, as far as it can be parsed; they need not exist, as some are shipped.
fn used(file: &Path) -> Vec<PathBuf> {
    let text = files::read(file).unwrap_or_default();
    if !text::composes(&text) {
        return Vec::new();
    }
    let mut load = |_: &str| Err(String::new());
    let (_, analysis) = text::analyse_composing(&text, &mut load);
    let uses = analysis.uses.iter();
    uses.map(|(_, used)| composed::beside(file, used)).collect()
}
