//! Memory available to this process.

use std::cell::Cell;
use std::sync::OnceLock;

thread_local! {
    /// True while this thread is in [`attempt_allocation`].
    static IS_ATTEMPT: Cell<bool> = const { Cell::new(false) };
}

/// Runs an allocation whose failure the caller can handle.
pub(crate) fn attempt_allocation<T>(allocate: impl FnOnce() -> T) -> T {
    IS_ATTEMPT.set(true);
    let result = allocate();
    IS_ATTEMPT.set(false);
    result
}

/// True if this thread currently makes an optional allocation (`attempt_allocation`). An allocator that ends the
/// process when memory is exhausted must then return null instead.
pub fn is_attempt() -> bool {
    // During the end of a thread, its thread-local mark may be gone: then no allocation is an attempt.
    IS_ATTEMPT.try_with(Cell::get).unwrap_or(false)
}

/// Limit of this process's address space in bytes (`ulimit -v`); `None` if unlimited.
pub fn address_space_limit() -> Option<u64> {
    /// Limit at the first call.
    static LIMIT: OnceLock<Option<u64>> = OnceLock::new();
    *LIMIT.get_or_init(read_address_space_limit)
}

#[cfg(unix)]
#[allow(unsafe_code)]
fn read_address_space_limit() -> Option<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: `getrlimit` writes only to the structure passed to it.
    let status = unsafe { libc::getrlimit(libc::RLIMIT_AS, &mut limit) };
    (status == 0 && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

#[cfg(not(unix))]
fn read_address_space_limit() -> Option<u64> {
    None
}
