//! Ctrl-C: long work is asked to stop, and whatever does not stop soon is stopped.

use crate::files;
use crate::Outcome;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// How long work has to stop by itself and say how far it came.
const GRACE: Duration = Duration::from_secs(1);

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
static REPORTED: AtomicBool = AtomicBool::new(false);
static TIDY: AtomicUsize = AtomicUsize::new(0);

/// While there is one, the process is not ended: what goes on stops by itself once the flag of [`watch`] is set,
/// and then removes what it has made.
pub(crate) struct Tidy(());

impl Tidy {
    pub(crate) fn new() -> Tidy {
        TIDY.fetch_add(1, Ordering::SeqCst);
        Tidy(())
    }
}

impl Drop for Tidy {
    fn drop(&mut self) {
        TIDY.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Sets the flag it returns when the process is asked to stop (Ctrl-C, or a termination signal),
/// and ends the process a second later if it has not ended by then; never in the middle of writing a file,
/// not in the second after a checkpoint was kept, and not while there is a [`Tidy`].
///
/// # Errors
/// If the operating system refuses the handler; a second call is refused too.
pub fn watch() -> Result<&'static AtomicBool, ctrlc::Error> {
    ctrlc::set_handler(|| {
        INTERRUPTED.store(true, Ordering::SeqCst);
        let mut written = files::written();
        loop {
            std::thread::sleep(GRACE);
            files::between_writes(|| {
                // Whoever has just kept a checkpoint gets the time to say so.
                let kept = std::mem::replace(&mut written, files::written()) != files::written();
                if !kept && TIDY.load(Ordering::SeqCst) == 0 {
                    files::remove_growing();
                    if may_report() {
                        let _ = writeln!(std::io::stderr(), "interrupted");
                    }
                    std::process::exit(i32::from(Outcome::Interrupted.code()));
                }
            });
        }
    })?;
    Ok(&INTERRUPTED)
}

/// Returns true for the first caller after an interrupt, and for every caller without one: a command that ends just as
/// the handler ends the process reports the interrupt once.
pub(crate) fn may_report() -> bool {
    !INTERRUPTED.load(Ordering::SeqCst) || !REPORTED.swap(true, Ordering::SeqCst)
}

/// A flag that nothing sets.
pub fn never() -> &'static AtomicBool {
    static NEVER: AtomicBool = AtomicBool::new(false);
    &NEVER
}
