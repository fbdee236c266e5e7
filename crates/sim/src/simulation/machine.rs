//! One run loop for all machines: a single simulation, two levels of caches, two spaces.

use super::{RunError, Setup};
use crate::explain::Failure;
use crate::kernel::Time;
use crate::message::Line;

/// Mask of the number of events: polls happen when the masked number is 0, which is every few milliseconds.
const POLL_MASK: u64 = (1 << 16) - 1;

/// A machine of one simulation, or of several with a common time.
pub(crate) trait Machine: Sized {
    /// Part of the machine that a failure belongs to.
    type Part: Copy;

    /// Creates the machine at time 0. With a line of a part, the steps that concern the line are recorded.
    ///
    /// # Errors
    /// A sentence about the part of the setup that is inconsistent or not supported.
    fn create(setup: &Setup, recorded: Option<(Self::Part, Line)>) -> Result<Self, String>;

    /// Starts applications, traffic and devices.
    fn begin(&mut self);

    /// Handles the next event and returns its time, in picoseconds. `None` if no event is left that keeps the run
    /// going.
    fn step(&mut self) -> Option<Time>;

    /// Returns the failure that the last event caused. An event at `time` that follows the last progress after too long
    /// is such a failure.
    fn check(&mut self, time: Time) -> Result<(), (Self::Part, Box<Failure>)>;

    /// Number of events handled so far.
    fn events(&self) -> u64;

    /// Frees what is no longer needed. Returns the number of performed accesses.
    fn poll(&mut self) -> u64;

    /// Completes the statistics after the last event, and checks that nothing is unfinished and that the result of the
    /// scenario is right.
    fn finish(&mut self) -> Result<(), (Self::Part, Box<Failure>)>;
}

/// Runs a machine to its end, as long as `should_continue` returns true for the number of performed accesses. Returns
/// true if the end was reached.
pub(crate) fn run_machine<M: Machine>(
    machine: &mut M,
    should_continue: &mut dyn FnMut(u64) -> bool,
) -> Result<bool, (M::Part, Box<Failure>)> {
    machine.begin();
    while let Some(time) = machine.step() {
        machine.check(time)?;
        if machine.events() & POLL_MASK == 0 {
            let performed = machine.poll();
            if !should_continue(performed) {
                return Ok(false);
            }
        }
    }
    machine.finish().map(|()| true)
}

/// Creates a machine, calls `watch` on it, and runs it to its end. A failing run is repeated to record the steps that
/// led to the failure.
///
/// # Errors
/// [`RunError`].
pub(crate) fn run_watched<M: Machine>(
    setup: &Setup,
    should_continue: &mut dyn FnMut(u64) -> bool,
    watch: &dyn Fn(&mut M) -> Result<(), String>,
) -> Result<M, RunError> {
    let mut machine = M::create(setup, None).map_err(RunError::Setup)?;
    watch(&mut machine).map_err(RunError::Setup)?;
    let (part, failure) = match run_machine(&mut machine, should_continue) {
        Ok(true) => return Ok(machine),
        Ok(false) => return Err(RunError::Stopped),
        Err(failure) => failure,
    };
    let line = Some((part, failure.line));
    let mut repeated = M::create(setup, line).map_err(RunError::Setup)?;
    Err(match run_machine(&mut repeated, should_continue) {
        Err((_, failure)) => RunError::Failure(failure),
        Ok(true) => RunError::Failure(failure),
        Ok(false) => RunError::Stopped,
    })
}

/// Like [`run_watched`], without `watch`.
///
/// # Errors
/// [`RunError`].
pub(crate) fn run_to_end<M: Machine>(
    setup: &Setup,
    should_continue: &mut dyn FnMut(u64) -> bool,
) -> Result<M, RunError> {
    run_watched(setup, should_continue, &|_| Ok(()))
}
