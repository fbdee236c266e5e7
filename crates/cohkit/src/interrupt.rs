//! Ctrl-C: asks long work to stop, and ends the process if it does not stop soon.

use crate::exit_code::exit_code;
use cohkit_api::files;
use cohkit_api::outcome::ExitStatus;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Time that work has to stop by itself and to report its progress.
const GRACE_PERIOD: Duration = Duration::from_secs(1);

/// True after the first Ctrl-C or termination signal.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// True once a thread has reported the interrupt.
static INTERRUPT_REPORTED: AtomicBool = AtomicBool::new(false);
/// Number of living [`CleanupGuard`]s.
static CLEANUP_GUARDS: AtomicUsize = AtomicUsize::new(0);

/// Guard that keeps the process alive: work under it stops by itself once the flag of [`watch`] is set, and then
/// removes its files.
pub(crate) struct CleanupGuard(());

impl CleanupGuard {
    /// Prevents the handler from ending the process until the guard is dropped.
    pub(crate) fn new() -> CleanupGuard {
        CLEANUP_GUARDS.fetch_add(1, Ordering::SeqCst);
        CleanupGuard(())
    }
}

impl Drop for CleanupGuard {
    fn drop(&mut self) {
        CLEANUP_GUARDS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Installs the handler for Ctrl-C and termination signals, and returns the flag that it sets. The handler ends the
/// process a second later if it still runs. It waits longer while a file is being written, for another second after a
/// checkpoint was written, and while there is a [`CleanupGuard`].
///
/// # Errors
/// The operating system rejects the handler; a second call is rejected too.
pub fn watch() -> Result<&'static AtomicBool, ctrlc::Error> {
    ctrlc::set_handler(|| {
        INTERRUPTED.store(true, Ordering::SeqCst);
        let mut last_count = files::written_count();
        loop {
            std::thread::sleep(GRACE_PERIOD);
            files::with_write_lock(|| {
                // Work that has just written a checkpoint gets the time to report it.
                let wrote_checkpoint = std::mem::replace(&mut last_count, files::written_count())
                    != files::written_count();
                if !wrote_checkpoint && CLEANUP_GUARDS.load(Ordering::SeqCst) == 0 {
                    files::remove_unfinished_files();
                    if may_report() {
                        let _ = writeln!(std::io::stderr(), "interrupted");
                    }
                    std::process::exit(i32::from(exit_code(ExitStatus::Interrupted)));
                }
            });
        }
    })?;
    Ok(&INTERRUPTED)
}

/// Returns true for the first caller after an interrupt, and for every caller without one: a command that ends just as
/// the handler ends the process reports the interrupt once.
pub(crate) fn may_report() -> bool {
    !INTERRUPTED.load(Ordering::SeqCst) || !INTERRUPT_REPORTED.swap(true, Ordering::SeqCst)
}

/// Returns a flag that is never set.
pub fn never() -> &'static AtomicBool {
    static NEVER: AtomicBool = AtomicBool::new(false);
    &NEVER
}
