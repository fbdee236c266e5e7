//! A large stack for deep recursion.

use std::panic::resume_unwind;
use std::thread;

/// Size of the stack of [`run_on_deep_stack`], in bytes. The address space is reserved; only pages that are used take
/// memory.
const DEEP_STACK_BYTES: usize = 1 << 30;

/// Runs a function that recurses deeply on a thread with a large stack, and returns its result.
///
/// # Panics
/// If `f` panics, or if the system cannot reserve the stack.
pub fn run_on_deep_stack<T: Send>(f: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let thread = thread::Builder::new()
            .stack_size(DEEP_STACK_BYTES)
            .spawn_scoped(scope, f);
        match thread.map(|thread| thread.join()) {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => resume_unwind(panic),
            Err(error) => panic!("cannot reserve a stack of {DEEP_STACK_BYTES} bytes: {error}"),
        }
    })
}
