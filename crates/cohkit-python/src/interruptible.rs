//! Long work outside of the interpreter.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::sync::Arc;
use std::time::Duration;

/// Interval between checks for signals.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Runs work on its own thread while other Python threads continue; Ctrl-C immediately raises `KeyboardInterrupt`.
///
/// The interrupt sets the flag that `work` receives, so that work which checks it ends soon. Results of other work are
/// discarded.
pub(crate) fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&AtomicBool) -> T + Send + 'static,
) -> PyResult<T> {
    interruptible_with_callback(py, |_| Ok(()), work)
}

/// Like [`interruptible`], but calls `callback` regularly; an exception of `callback` ends the work too.
pub(crate) fn interruptible_with_callback<T: Send + 'static>(
    py: Python<'_>,
    mut callback: impl FnMut(Python<'_>) -> PyResult<()>,
    work: impl FnOnce(&AtomicBool) -> T + Send + 'static,
) -> PyResult<T> {
    let cancel = Arc::new(AtomicBool::new(false));
    let (sender, receiver) = channel();
    let cancel_flag = Arc::clone(&cancel);
    std::thread::Builder::new()
        .name("cohkit".to_string())
        // Typical stack size of a process's main thread.
        .stack_size(8 << 20)
        .spawn(move || {
            // After an interrupt there is no receiver.
            let _ = sender.send(work(&cancel_flag));
        })?;
    let mut receiver = receiver;
    loop {
        let received;
        (receiver, received) = py.detach(move || {
            let received = receiver.recv_timeout(POLL_INTERVAL);
            (receiver, received)
        });
        match received {
            Ok(result) => return Ok(result),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err(
                    "internal error of Cohkit: the operation ended without a result",
                ));
            }
        }
        if let Err(exception) = py.check_signals().and_then(|()| callback(py)) {
            cancel.store(true, Ordering::SeqCst);
            return Err(exception);
        }
    }
}
