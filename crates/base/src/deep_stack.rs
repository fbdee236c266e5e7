//! A large stack for deep recursion.

use std::io;
use std::panic::resume_unwind;
use std::thread;

/// Size of the stack of [`run_on_deep_stack`], in bytes. The address space is reserved; only pages that are used take
/// memory.
const DEEP_STACK_BYTES: usize = 1 << 29;

/// Runs a function that recurses deeply on a thread with a large stack, and returns its result.
///
/// # Errors
/// The system cannot reserve the stack, for example under a limit of the address space.
///
/// # Panics
/// If `f` panics.
pub fn run_on_deep_stack<T: Send>(f: impl FnOnce() -> T + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new()
            .stack_size(DEEP_STACK_BYTES)
            .spawn_scoped(scope, f)?;
        Ok(thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}
