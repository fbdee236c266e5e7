//! Concurrent runs, whose values come in the order of the runs for any number of threads.

use crate::start_error::StartError;
use serde_json::Value;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::Builder;

/// Number of threads for concurrent runs or for a search: as requested, at least 1, at most and by default the number of
/// processors. More threads than processors would only wait for each other.
pub(crate) fn threads(requested: Option<usize>) -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    requested.unwrap_or(processors).clamp(1, processors)
}

/// Executes `run` on each of the runs, on `threads` threads, and returns the values in
/// the order of the runs.
///
/// # Errors
/// The error of a run that failed.
pub(crate) fn run_each<Run: Sync>(
    runs: &[Run],
    threads: usize,
    run: impl Fn(&Run) -> Result<Value, StartError> + Sync,
) -> Result<Vec<Value>, StartError> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(vec![None; runs.len()]);
    let work = || loop {
        let index = next.fetch_add(1, Ordering::SeqCst);
        let Some(next) = runs.get(index) else {
            return Ok(());
        };
        let value = run(next)?;
        results.lock().unwrap_or_else(PoisonError::into_inner)[index] = Some(value);
    };
    std::thread::scope(|scope| {
        // If the system grants no more threads, this thread does the remaining work.
        let spawn_worker = |_| Builder::new().spawn_scoped(scope, work).ok();
        let workers: Vec<_> = (1..threads).map_while(spawn_worker).collect();
        work()?;
        workers.into_iter().try_for_each(|worker| {
            worker
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    })?;
    let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(results.into_iter().flatten().collect())
}
