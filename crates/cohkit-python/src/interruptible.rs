//! Long work beside the interpreter.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::sync::Arc;
use std::time::Duration;

/// How often the interpreter is asked whether a signal has come.
const LOOK: Duration = Duration::from_millis(20);

/// Runs work on a thread of its own while other Python threads go on; Ctrl-C raises `KeyboardInterrupt` at once.
///
/// The flag it is given is set then, and work that heeds it ends soon; what other work still does is thrown away.
pub(crate) fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&AtomicBool) -> T + Send + 'static,
) -> PyResult<T> {
    watched(py, |_| Ok(()), work)
}

/// Like [`interruptible`], calling `watch` now and then; its exception too ends the work.
pub(crate) fn watched<T: Send + 'static>(
    py: Python<'_>,
    mut watch: impl FnMut(Python<'_>) -> PyResult<()>,
    work: impl FnOnce(&AtomicBool) -> T + Send + 'static,
) -> PyResult<T> {
    let cancel = Arc::new(AtomicBool::new(false));
    let (sender, receiver) = channel();
    let seen = Arc::clone(&cancel);
    std::thread::Builder::new()
        .name("cohkit".to_string())
        // As much as the main thread of a process mostly has.
        .stack_size(8 << 20)
        .spawn(move || {
            // Nobody listens any more after an interrupt.
            let _ = sender.send(work(&seen));
        })?;
    let mut receiver = receiver;
    loop {
        let received;
        (receiver, received) = py.detach(move || {
            let received = receiver.recv_timeout(LOOK);
            (receiver, received)
        });
        match received {
            Ok(result) => return Ok(result),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err(
                    "this is a fault of Cohkit itself: the work ended without a result",
                ));
            }
        }
        if let Err(raised) = py.check_signals().and_then(|()| watch(py)) {
            cancel.store(true, Ordering::SeqCst);
            return Err(raised);
        }
    }
}
