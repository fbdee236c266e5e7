//! `cohkit check --watch`: checks again when a file has changed.
//!
//! Files are looked at a few times a second rather than by the notices of the operating system: there are few of them,
//! looking at one costs microseconds, and it is the same for files that editors replace, on networks, and that are not
//! there yet.

use crate::check;
use crate::composed;
use crate::console::Console;
use crate::files;
use crate::options::Check;
use crate::outcome::{Failure, Outcome};
use cohkit_protocol::text;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

/// How often files are looked at, and how long they have to stay the same before they are read: editors write in pieces.
const LOOK: Duration = Duration::from_millis(200);

/// What tells that a file has changed: when it was written, its size, and which file it is where files have numbers;
/// nothing of one that is not there.
type Stamp = Option<(SystemTime, u64, u64)>;

/// Checks, and again after each change, until the command is interrupted. A check that is under way is given up when
/// something changes.
pub(crate) fn run(options: &Check, console: &mut Console) -> Result<Outcome, Failure> {
    for file in &options.files {
        let from = files::named(file);
        let metadata = from.metadata();
        // Standard input may be a plain file, but is read only once.
        if from == Path::new(files::STANDARD_INPUT)
            || metadata.is_ok_and(|found| !found.is_file() && !found.is_dir())
        {
            let shown = file.display();
            return Err(Failure::new(
                Outcome::BadInput,
                format!("error: {shown}: cannot be watched, as it is no plain file\n  help: leave `--watch` out"),
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
                    thread::park_timeout(LOOK);
                }
            });
            let result = check::once(options, &mut console.stopped_by(&stop));
            ended.store(true, Ordering::SeqCst);
            result
        });
        match result {
            _ if console.is_interrupted() => return stopped(),
            // What was given up is begun again.
            Err(failure) if failure.outcome == Outcome::Interrupted => {}
            // What is wrong with the command line does not get better.
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
            thread::sleep(LOOK);
            if console.is_interrupted() {
                return stopped();
            }
        };
        let mut now = stamps(&options.files);
        loop {
            thread::sleep(LOOK);
            let then = std::mem::replace(&mut now, stamps(&options.files));
            if now == then || console.is_interrupted() {
                break;
            }
        }
        console.say(&format!("\nchanged: {}", file.display()));
    }
}

fn stopped() -> Result<Outcome, Failure> {
    Err(Failure::new(Outcome::Interrupted, "interrupted"))
}

/// The first file that is not as it was.
fn changed(seen: &[(PathBuf, Stamp)]) -> Option<&Path> {
    let mut seen = seen.iter();
    let found = seen.find(|(path, before)| stamp(path) != *before);
    found.map(|(path, _)| path.as_path())
}

/// All files that the check reads, as they are now.
fn stamps(files: &[PathBuf]) -> Vec<(PathBuf, Stamp)> {
    let mut all = Vec::new();
    for file in files {
        // The stamp is taken before the text, so that what is written in between counts as a change.
        all.push((file.clone(), stamp(file)));
        for used in used(file) {
            let stamp = stamp(&used);
            all.push((used, stamp));
        }
    }
    all
}

fn stamp(path: &Path) -> Stamp {
    let found = path.metadata().ok()?;
    #[cfg(unix)]
    let number = std::os::unix::fs::MetadataExt::ino(&found);
    #[cfg(not(unix))]
    let number = 0;
    Some((found.modified().ok()?, found.len(), number))
}

/// The files beside a text that it uses, as far as it is understood; they need not be there, as some ship.
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
