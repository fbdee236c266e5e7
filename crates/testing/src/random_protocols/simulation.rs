//! Comparison of the simulator with the states that executing the controllers can reach.

use crate::setups::{torture, ACCESSES};
use cohkit_protocol::controller::{Access, Event};
use cohkit_protocol::pending_access::Accesses;
use cohkit_protocol::protocol::Protocol;
use cohkit_sim::explain::FailureKind;
use cohkit_sim::kernel::NANOSECOND;
use cohkit_sim::simulation::{run, RunError, Setup};
use cohkit_sim::statistics::Statistics;
use cohkit_system::data::Current;
use cohkit_system::state::{Found, Step, SystemState};
use cohkit_units::Quantity;

/// Returns a torture test of the first system's lines, with the accesses that the protocol has rows for. `remotes`
/// is the number of caching agents.
pub fn setup(protocol: Protocol, remotes: u16, seed: u64) -> Setup {
    let system = &protocol.systems[0];
    let (lines, homes) = (u32::from(system.lines), protocol.homes);
    let mut setup = torture(protocol, remotes, seed).expect("a home with rows");
    let rules = &setup.protocol.remote.rules;
    let has = |access| rules.iter().any(|rule| rule.event == Event::Access(access));
    setup.workload.mix.retain(|&(access, _)| has(access));
    if !has(Access::Store) {
        setup.workload.write_prefetches = 0;
    }
    let accesses = Accesses::new(&setup.protocol.remote, &setup.protocol.messages);
    if rules
        .iter()
        .any(|row| accesses.posts(&setup.protocol.remote, row))
    {
        setup.platform.cores.write_buffer.value = 0;
    }
    setup.workload.lines = lines;
    setup.device.lines = lines;
    let count = (homes > 1).then(|| Quantity::given(homes.into(), "of the protocol file"));
    setup.platform.home.count = count;
    // Without work between accesses, a cache would perform or refuse its accesses before another one has the line.
    setup.platform.cores.compute_time.value =
        [20, 100, 400, 1000][(seed % 4) as usize] * NANOSECOND;
    setup
}

/// Returns the statistics of a run, or its failure.
fn run_setup(setup: &Setup) -> Result<Statistics, (FailureKind, String)> {
    run(setup).map_err(|error| match error {
        RunError::Failure(failure) => (failure.kind, failure.to_string()),
        other => panic!("{other}"),
    })
}

/// Results of a protocol's runs.
#[derive(Clone, Copy, Default, Debug)]
pub struct Runs {
    /// Number of bytes sent to the home over all runs.
    pub bytes_to_home: f64,
    /// True if some run found a violation, other than a lack of progress.
    pub found_violation: bool,
}

/// Compares two runs of a protocol, one of them with a component between cores and caches, with all states that
/// execution can reach. `stops` is true if accesses may be rejected, or kept from beginning, for ever. `None` if the
/// protocol is not simulated.
///
/// # Errors
/// The two disagree; the error is a sentence.
pub fn compare(
    protocol: &Protocol,
    found: &Found<SystemState<Current>, Step>,
    stops: bool,
    seed: u64,
) -> Result<Option<Runs>, String> {
    let mut runs = Runs::default();
    let remotes = protocol.systems[0].remotes.total();
    for seed in [seed, seed + 3] {
        let setup = setup(protocol.clone(), remotes, seed);
        if setup.workload.mix.is_empty() {
            return Ok(None);
        }
        match (found, run_setup(&setup)) {
            (Found::Safe { .. }, Ok(statistics)) => {
                let statistic = |name| statistics.get(name).unwrap();
                let access_count = statistic("accesses") + statistic("accesses_skipped");
                if access_count != ACCESSES as f64 {
                    return Err(format!("{access_count} of {ACCESSES} accesses were made"));
                }
                runs.bytes_to_home += statistic("link_bytes_to_home");
            }
            // One access may wait for an event that need not happen.
            (Found::Safe { stuck_path, .. }, Err((FailureKind::NoProgress, _)))
                if stuck_path.is_some() || stops => {}
            (Found::Safe { stuck_path, .. }, Err((_, failure))) => {
                return Err(format!(
                    "Executed: no violation, but quiescence is unreachable: {}. Simulated: {failure}",
                    stuck_path.is_some()
                ));
            }
            (Found::Violated { .. }, Err((kind, _))) => {
                runs.found_violation |= kind != FailureKind::NoProgress
            }
            // A run need not find every violation.
            (Found::Violated { .. }, Ok(_)) | (Found::LimitReached { .. }, _) => {}
        }
    }
    Ok(Some(runs))
}
