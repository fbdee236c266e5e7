//! What the system lets this process have.

use std::cell::Cell;
use std::sync::OnceLock;

thread_local! {
    static ATTEMPT: Cell<bool> = const { Cell::new(false) };
}

/// Asks for memory that can be done without.
pub(crate) fn attempt<T>(ask: impl FnOnce() -> T) -> T {
    ATTEMPT.set(true);
    let got = ask();
    ATTEMPT.set(false);
    got
}

/// Whether the memory that this thread asks for right now can be done without. An allocator that ends the process where
/// there is no memory must not do so then.
pub fn is_attempt() -> bool {
    // Where a thread has ended so far that it has no such mark any more, nothing is an attempt.
    ATTEMPT.try_with(Cell::get).unwrap_or(false)
}

/// How many bytes of addresses this process may have, if they are limited, as by `ulimit -v`.
pub fn addresses() -> Option<u64> {
    static LIMIT: OnceLock<Option<u64>> = OnceLock::new();
    *LIMIT.get_or_init(limit)
}

#[cfg(unix)]
#[allow(unsafe_code)]
fn limit() -> Option<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: it writes nothing but the structure that it is given.
    let told = unsafe { libc::getrlimit(libc::RLIMIT_AS, &mut limit) };
    (told == 0 && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

#[cfg(not(unix))]
fn limit() -> Option<u64> {
    None
}
