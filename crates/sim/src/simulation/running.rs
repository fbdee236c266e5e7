//! Complete runs of a setup with one or two levels or spaces, and the results recorded besides the statistics.

use super::machine::{run_to_end, run_watched};
use super::*;

/// Reason for which a run did not start or did not complete.
#[derive(Debug)]
pub enum RunError {
    /// The setup is invalid; a sentence that names the value.
    Setup(String),
    /// The run failed.
    Failure(Box<Failure>),
    /// The run was stopped from outside.
    Stopped,
}

impl std::fmt::Display for RunError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RunError::Setup(text) => f.write_str(text),
            RunError::Failure(failure) => failure.fmt(f),
            RunError::Stopped => f.write_str("stopped"),
        }
    }
}

impl std::error::Error for RunError {}

/// Runs a setup to its end. A failing run is repeated to record the events that led to the failure.
///
/// # Errors
/// [`RunError`].
pub fn run(setup: &Setup) -> Result<Statistics, RunError> {
    run_while(setup, &mut |_| true)
}

/// Like [`run`], while `should_continue` returns true. This function is called every few milliseconds with the
/// number of accesses performed so far.
///
/// # Errors
/// [`RunError`].
pub fn run_while(
    setup: &Setup,
    should_continue: &mut dyn FnMut(u64) -> bool,
) -> Result<Statistics, RunError> {
    if setup.below.is_some() {
        return run_to_end(setup, should_continue).map(|levels: Levels| levels.statistics());
    }
    if setup.host.is_some() {
        return run_to_end(setup, should_continue).map(|spaces: Spaces| spaces.statistics());
    }
    run_to_end(setup, should_continue).map(|simulation: Simulation| simulation.statistics())
}

/// Like [`run_while`], with a [latency breakdown](Statistics::explanation), and with each access if
/// `records_transactions`.
///
/// # Errors
/// [`RunError`].
pub fn explain_while(
    setup: &Setup,
    records_transactions: bool,
    should_continue: &mut dyn FnMut(u64) -> bool,
) -> Result<Statistics, RunError> {
    require_one_level(setup)?;
    if setup.host.is_some() {
        let watch = |spaces: &mut Spaces| {
            spaces.enable_breakdown(records_transactions);
            Ok(())
        };
        return run_watched(setup, should_continue, &watch)
            .map(|mut spaces| spaces.statistics_with_breakdown());
    }
    let watch = |simulation: &mut Simulation| {
        simulation.enable_breakdown(records_transactions);
        Ok(())
    };
    let mut simulation = run_watched(setup, should_continue, &watch)?;
    let mut statistics = simulation.statistics();
    simulation.add_breakdown(&mut statistics);
    Ok(statistics)
}

/// Like [`run_while`], with a [timeline](Statistics::timeline) and a latency breakdown.
///
/// # Errors
/// [`RunError`].
pub fn draw_while(
    setup: &Setup,
    filter: &Filter,
    should_continue: &mut dyn FnMut(u64) -> bool,
) -> Result<Statistics, RunError> {
    require_one_level(setup)?;
    if setup.host.is_some() {
        let spaces = run_watched(setup, should_continue, &|spaces: &mut Spaces| {
            spaces.enable_timeline(filter)
        });
        return spaces.map(|mut spaces| spaces.statistics_with_breakdown());
    }
    require_no_host(filter.side)?;
    let mut simulation = run_watched(setup, should_continue, &|simulation: &mut Simulation| {
        simulation.enable_timeline(filter, None)
    })?;
    let mut statistics = simulation.statistics();
    simulation.add_breakdown(&mut statistics);
    Ok(statistics)
}

/// Like [`run_while`], with the counts, durations and tables of a scenario.
///
/// # Errors
/// [`RunError`].
pub fn play_while(
    setup: &Setup,
    should_continue: &mut dyn FnMut(u64) -> bool,
) -> Result<Performance, RunError> {
    if setup.below.is_some() {
        return run_to_end(setup, should_continue).map(|levels: Levels| levels.performance(setup));
    }
    if setup.host.is_some() {
        return run_to_end(setup, should_continue).map(|spaces: Spaces| spaces.performance(setup));
    }
    run_to_end(setup, should_continue).map(|simulation: Simulation| simulation.performance(setup))
}

/// Like [`play_while`], with a [latency breakdown](Statistics::explanation), and with a
/// [timeline](Statistics::timeline) if there is a filter.
///
/// # Errors
/// [`RunError`].
pub fn play_watched(
    setup: &Setup,
    filter: Option<&Filter>,
    should_continue: &mut dyn FnMut(u64) -> bool,
) -> Result<Performance, RunError> {
    require_one_level(setup)?;
    if setup.host.is_some() {
        let watch = |spaces: &mut Spaces| match filter {
            Some(filter) => spaces.enable_timeline(filter),
            None => {
                spaces.enable_breakdown(false);
                Ok(())
            }
        };
        let mut spaces = run_watched(setup, should_continue, &watch)?;
        let statistics = spaces.statistics_with_breakdown();
        return Ok(Performance {
            statistics,
            ..spaces.performance(setup)
        });
    }
    require_no_host(filter.and_then(|filter| filter.side))?;
    let watch = |simulation: &mut Simulation| match filter {
        Some(filter) => simulation.enable_timeline(filter, None),
        None => {
            simulation.enable_breakdown(false);
            Ok(())
        }
    };
    let mut simulation = run_watched(setup, should_continue, &watch)?;
    let mut performance = simulation.performance(setup);
    simulation.add_breakdown(&mut performance.statistics);
    Ok(performance)
}

/// Rejects machines without support for the latency breakdown: two levels of caches, and hosts.
fn require_one_level(setup: &Setup) -> Result<(), RunError> {
    let reason = match (&setup.below, &setup.platform.hosts) {
        (None, None) => return Ok(()),
        (Some(_), _) => {
            "the latency breakdown supports one level of caches, but the machine has two"
        }
        (None, Some(_)) => {
            "the latency breakdown does not support machines with several hosts (`hosts.count`) yet"
        }
    };
    Err(RunError::Setup(reason.into()))
}

/// Rejects a filter on the host's space if there is only one space.
fn require_no_host(side: Option<Side>) -> Result<(), RunError> {
    match side {
        Some(Side::Host) => {
            let reason = "the machine has no second address space for the host's memory";
            Err(RunError::Setup(reason.into()))
        }
        _ => Ok(()),
    }
}

/// Like [`run`], with all events on a line until quiescence, including the values of words read and written. Of two
/// spaces, `side` selects one. If the protocol has state that all lines share, the events of all lines are recorded.
///
/// # Errors
/// [`RunError`], in particular for two levels of caches, which have no traces.
pub fn trace(setup: &Setup, side: Side, line: Line) -> Result<(Statistics, Sequence), RunError> {
    if setup.below.is_some() {
        let reason = "traces are not supported for two levels of caches";
        return Err(RunError::Setup(reason.into()));
    }
    if setup.host.is_some() {
        return Spaces::run_traced(setup, side, line);
    }
    require_no_host(Some(side))?;
    let mut simulation = Simulation::new(setup, Some(line)).map_err(RunError::Setup)?;
    simulation.record_full_trace(&setup.protocol);
    simulation.run().map_err(RunError::Failure)?;
    let sequence = simulation.sequence().unwrap_or_default();
    Ok((simulation.statistics(), sequence))
}
