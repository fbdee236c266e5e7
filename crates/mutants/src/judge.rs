//! Verdicts on mutants: systems of several sizes, progress, litmus programs, two cache levels, and bisimulation with
//! the original.

use crate::bisimulation::{bisimulation, Bisimulation};
use crate::generate::Mutant;
use cohkit_check::progress::{progress, Progress};
use cohkit_check::system;
use cohkit_engine::report::{check, Outcome};
use cohkit_engine::search::{Engine, Options};
use cohkit_litmus::conformance_report::{self, ConformanceVerdict};
use cohkit_protocol::construct::{construct, Construction};
use cohkit_protocol::controller::{Controller, MEMORY_WRITES};
use cohkit_protocol::protocol::{Home, Protocol, System};
use cohkit_protocol::text::parse;
use cohkit_system::state::System as ExecutableSystem;
use cohkit_system::state::{
    explore_levels, Found, Levels, Search, StepError, DEFAULT_CHANNEL_CAPACITY,
};
use std::borrow::Cow;

/// Verdict on a mutant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum MutantVerdict {
    /// Stillborn: the specification is rejected, or no sound home can be constructed from it.
    Rejected,
    /// Killed: a system has a violation, or accesses that never begin.
    Refuted,
    /// Inconclusive: channel capacity exceeded.
    CapacityExceeded,
    /// Inconclusive: no violation found, but no system with two caches was searched completely.
    Undecided,
    /// Equivalent as far as compared: no check fails, and no access, permission or message distinguishes a system from
    /// the original. With two caches all states were compared, in larger systems some.
    Bisimilar,
    /// Survived: no violation in the states explored, which are all states of a system with two caches.
    Survived,
}

impl MutantVerdict {
    /// Returns the name of the verdict, in one or two words.
    pub fn name(self) -> &'static str {
        match self {
            MutantVerdict::Rejected => "rejected",
            MutantVerdict::Refuted => "refuted",
            MutantVerdict::CapacityExceeded => "left open",
            MutantVerdict::Undecided => "undecided",
            MutantVerdict::Bisimilar => "bisimilar",
            MutantVerdict::Survived => "survived",
        }
    }
}

/// Size and limit of a system in which a mutant is checked.
#[derive(Clone, Copy)]
struct SystemSize {
    /// Number of caches.
    remotes: u16,
    /// Number of cache lines.
    lines: u8,
    /// True if the device behind the home issues local operations. Affects only homes that are constructed from a
    /// policy.
    device: bool,
    /// Maximum number of states to visit, which limits the time that a mutant takes.
    max_states: u64,
}

impl SystemSize {
    /// A size with a device.
    const fn with_device(remotes: u16, lines: u8, max_states: u64) -> SystemSize {
        SystemSize {
            remotes,
            lines,
            device: true,
            max_states,
        }
    }

    /// A size without a device.
    const fn without_device(remotes: u16, lines: u8, max_states: u64) -> SystemSize {
        SystemSize {
            device: false,
            ..SystemSize::with_device(remotes, lines, max_states)
        }
    }
}

/// Systems to check, fastest first. Two caches expose most faults. Two lines interact only in ordered channels, and
/// four caches are needed where three invalidations are counted.
const SYSTEMS: [SystemSize; 5] = [
    SystemSize::with_device(2, 1, 150_000),
    SystemSize::with_device(1, 2, 50_000),
    SystemSize::with_device(3, 1, 260_000),
    SystemSize::with_device(2, 2, 60_000),
    SystemSize::with_device(4, 1, 60_000),
];

/// Systems for a specification whose first system is too large: one cache with the device, and two caches without it.
/// Both are searched completely.
const FALLBACK_SYSTEMS: [SystemSize; 2] = [
    SystemSize::with_device(1, 1, 100_000),
    SystemSize::without_device(2, 1, 2_000_000),
];

/// Maximum number of pairs of states to compare in a system that must be compared completely.
const MAX_COMPLETE_PAIRS: usize = 60_000;

/// Maximum number of pairs of states to compare in any other system.
const MAX_SAMPLED_PAIRS: usize = 10_000;

/// Channel capacities to try in turn, in messages; `None` for the full capacity. A small capacity has fewer states, and
/// suffices for most protocols.
const TRIAL_CAPACITIES: [Option<u16>; 3] = [Some(1), Some(3), None];

/// Judge of the mutants of one specification.
pub struct Judge {
    /// Original protocol.
    protocol: Protocol,
    /// Homes of the original, one per system. Mutants with an unchanged home use them.
    homes: Homes,
}

/// Homes of one protocol, one for each system.
struct Homes {
    /// Homes for [`SYSTEMS`].
    main: Vec<Controller>,
    /// Homes for [`FALLBACK_SYSTEMS`].
    fallback: Vec<Controller>,
}

impl Homes {
    /// Homes of all systems, each as `home` returns it for the size of its system.
    fn for_each(home: impl Fn(&SystemSize) -> Controller) -> Homes {
        Homes {
            main: SYSTEMS.iter().map(&home).collect(),
            fallback: FALLBACK_SYSTEMS.iter().map(&home).collect(),
        }
    }
}

impl Judge {
    /// Creates a judge for the mutants of a specification, which must itself hold in all systems.
    ///
    /// # Errors
    /// The specification is invalid, has no sound home, or does not hold; the reason in words.
    pub fn new(text: &str) -> Result<Judge, String> {
        let protocol = parse_with_systems(text).ok_or("it is refused")?;
        let homes = construct_homes(&protocol).ok_or("there is no home")?;
        match explore_systems(&protocol, &homes) {
            MutantVerdict::Survived => Ok(Judge { protocol, homes }),
            other => Err(other.name().into()),
        }
    }

    /// Returns the verdict on a mutant.
    ///
    /// A home given as a policy is constructed again only if the mutation changed the policy or messages. A home
    /// constructed for a changed remote would fit that remote, and the two may be another correct protocol. A mutated
    /// remote is therefore checked with the home of the original.
    pub fn verdict(&self, mutant: &Mutant) -> MutantVerdict {
        let Some(protocol) = parse_with_systems(&mutant.text) else {
            return MutantVerdict::Rejected;
        };
        let constructed;
        let has_new_home = mutant.changes_home || matches!(protocol.home, Home::Controller(_));
        let homes = match has_new_home.then(|| construct_homes(&protocol)) {
            None => &self.homes,
            Some(None) => return MutantVerdict::Rejected,
            Some(Some(new_homes)) => {
                constructed = new_homes;
                &constructed
            }
        };
        match refine_verdict(&protocol, explore_systems(&protocol, homes)) {
            MutantVerdict::Survived if self.is_bisimilar(&protocol, homes) => {
                MutantVerdict::Bisimilar
            }
            verdict => verdict,
        }
    }

    /// Returns true if no system distinguishes the mutant from the original, as [`MutantVerdict::Bisimilar`] states.
    fn is_bisimilar(&self, protocol: &Protocol, homes: &Homes) -> bool {
        let compare = |size: &SystemSize, [original, mutant]: [&Controller; 2], max_pairs| {
            let original = reference_system(&self.protocol, original, size);
            let mutant = reference_system(protocol, mutant, size);
            bisimulation([&original, &mutant], max_pairs)
        };
        let main_homes = |index: usize| [&self.homes.main[index], &homes.main[index]];
        let fallback_homes = |index: usize| [&self.homes.fallback[index], &homes.fallback[index]];
        let first_result = compare(&SYSTEMS[0], main_homes(0), MAX_COMPLETE_PAIRS);
        let is_indistinct = |index: usize| {
            let result = compare(&SYSTEMS[index], main_homes(index), MAX_SAMPLED_PAIRS);
            result != Bisimulation::Different
        };
        let is_fully_bisimilar = |index: usize| {
            let size = &FALLBACK_SYSTEMS[index];
            let result = compare(size, fallback_homes(index), MAX_COMPLETE_PAIRS);
            result == Bisimulation::Complete
        };
        first_result != Bisimulation::Different
            && (1..SYSTEMS.len()).all(is_indistinct)
            && (first_result == Bisimulation::Complete
                || (0..FALLBACK_SYSTEMS.len()).all(is_fully_bisimilar))
    }
}

/// Refines the verdict of the systems with a check of two levels, or with litmus programs. Only a home with rows is
/// refined.
fn refine_verdict(protocol: &Protocol, verdict: MutantVerdict) -> MutantVerdict {
    let Home::Controller(home) = &protocol.home else {
        return verdict;
    };
    let refined = match verdict {
        MutantVerdict::Rejected | MutantVerdict::Refuted => return verdict,
        _ if is_inner_level(home) => check_inner_level(protocol, home),
        _ => check_programs(protocol, home),
    };
    match refined {
        MutantVerdict::Survived => verdict,
        _ if verdict == MutantVerdict::Survived || refined == MutantVerdict::Refuted => refined,
        _ => verdict,
    }
}

/// Returns a system as executed by the reference, `cohkit_system`.
fn reference_system<'p>(
    protocol: &'p Protocol,
    home: &'p Controller,
    size: &SystemSize,
) -> ExecutableSystem<'p> {
    let system = ExecutableSystem::new(
        protocol,
        home,
        size.remotes,
        size.lines,
        DEFAULT_CHANNEL_CAPACITY,
    );
    match is_inner_level(home) {
        true => system.with_backing_permission(),
        false => system,
    }
}

/// Checks the memory model that a protocol guarantees, if any, with programs of two threads. A program that the mutant
/// does not support refutes it.
fn check_programs(protocol: &Protocol, home: &Controller) -> MutantVerdict {
    let Some(model) = protocol.guarantee.model else {
        return MutantVerdict::Survived;
    };
    let home = |_| Cow::Borrowed(home);
    let mut programs = conformance_report::classic(protocol, 2);
    programs.extend(conformance_report::bursts(model, 2));
    let report =
        conformance_report::check_conformance(protocol, model, programs, None, &home, &mut || true);
    match report.verdict {
        ConformanceVerdict::Holds if report.unsupported_programs > 0 => MutantVerdict::Refuted,
        ConformanceVerdict::Holds => MutantVerdict::Survived,
        ConformanceVerdict::Violated { .. } => MutantVerdict::Refuted,
        ConformanceVerdict::Undecided(_) | ConformanceVerdict::Interrupted => {
            MutantVerdict::Undecided
        }
    }
}

/// Returns true if the memory of a home is the copy of an outer cache level.
fn is_inner_level(home: &Controller) -> bool {
    home.variables
        .iter()
        .any(|variable| variable.name == MEMORY_WRITES)
}

/// Checks a protocol as the inner level below MESI caches: two outer caches with one inner cache each, and one outer
/// cache with two. Visits at most 200,000 states of each.
fn check_inner_level(inner: &Protocol, home: &Controller) -> MutantVerdict {
    let outer =
        parse(include_str!("../../../protocols/mesi.coh")).expect("the shipped protocol is valid");
    let Home::Controller(outer_home) = &outer.home else {
        return MutantVerdict::Rejected;
    };
    let mut verdict = MutantVerdict::Survived;
    for (outer_caches, inner_caches) in [(2u16, 1u16), (1, 2)] {
        let levels = Levels::new(
            ExecutableSystem::new(
                &outer,
                outer_home,
                outer_caches,
                1,
                DEFAULT_CHANNEL_CAPACITY,
            ),
            ExecutableSystem::new(inner, home, inner_caches, 1, DEFAULT_CHANNEL_CAPACITY),
        );
        let search = Search {
            max_rows: 200_000,
            symmetry: true,
        };
        match explore_levels(&levels, search, &mut || true) {
            Found::Safe {
                stuck_path: None, ..
            } => {}
            Found::Safe { .. } => return MutantVerdict::Refuted,
            Found::LimitReached { .. } => verdict = MutantVerdict::Undecided,
            Found::Violated { errors, .. } => {
                let is_violation = |error: &StepError| matches!(error, StepError::Violated(_));
                if errors.iter().any(is_violation) {
                    return MutantVerdict::Refuted;
                }
                verdict = MutantVerdict::CapacityExceeded;
            }
        }
    }
    verdict
}

/// Parses a specification and replaces its systems by [`SYSTEMS`]. `None` if the specification is invalid.
fn parse_with_systems(text: &str) -> Option<Protocol> {
    let mut protocol = parse(text).ok()?;
    let sizes = SYSTEMS.map(|SystemSize { remotes, lines, .. }| {
        System::new(format!("remotes_{remotes}_lines_{lines}"), remotes, lines)
    });
    protocol.systems = sizes.to_vec();
    Some(protocol)
}

/// Returns the home for each system, or `None` if no sound home can be constructed.
fn construct_homes(protocol: &Protocol) -> Option<Homes> {
    let policy = match &protocol.home {
        Home::Policy(policy) => policy,
        Home::Controller(home) => {
            return Some(Homes::for_each(|_| home.clone()));
        }
    };
    let mut without_locals = protocol.clone();
    let mut policy_without_locals = policy.clone();
    policy_without_locals.locals.clear();
    without_locals.home = Home::Policy(policy_without_locals);
    let construct_sound = |protocol| construct(protocol).and_then(Construction::sound).ok();
    let (construction, without_locals) = (
        construct_sound(protocol)?,
        construct_sound(&without_locals)?,
    );
    Some(Homes::for_each(|size| match size.device {
        true => construction.controller(size.remotes),
        false => without_locals.controller(size.remotes),
    }))
}

/// Checks all systems until one has a violation; the fallback systems only if the others decide nothing. Never returns
/// [`MutantVerdict::Bisimilar`].
fn explore_systems(protocol: &Protocol, homes: &Homes) -> MutantVerdict {
    let explore_each = |sizes: &[SystemSize], homes: &[Controller]| {
        let mut verdicts = Vec::new();
        for (size, home) in sizes.iter().zip(homes) {
            let verdict = check_system(protocol, home, *size);
            if matches!(verdict, MutantVerdict::Refuted | MutantVerdict::Rejected) {
                return Err(verdict);
            }
            verdicts.push(verdict);
        }
        Ok(verdicts)
    };
    let verdicts = match explore_each(&SYSTEMS, &homes.main) {
        Ok(verdicts) => verdicts,
        Err(verdict) => return verdict,
    };
    let exceeds_capacity = verdicts.contains(&MutantVerdict::CapacityExceeded);
    if verdicts[0] == MutantVerdict::Survived && !exceeds_capacity {
        return MutantVerdict::Survived;
    }
    match explore_each(&FALLBACK_SYSTEMS, &homes.fallback) {
        Err(verdict) => verdict,
        Ok(verdicts) if exceeds_capacity || verdicts.contains(&MutantVerdict::CapacityExceeded) => {
            MutantVerdict::CapacityExceeded
        }
        Ok(verdicts) if verdicts.contains(&MutantVerdict::Undecided) => MutantVerdict::Undecided,
        Ok(_) => MutantVerdict::Survived,
    }
}

/// Verdict on a mutant of which no other property is violated.
fn verdict_of_progress(progress: &Progress) -> MutantVerdict {
    match progress.outcome {
        _ if !progress.never_started.is_empty() => MutantVerdict::Refuted,
        Outcome::Violated { .. } => MutantVerdict::Refuted,
        Outcome::Verified => MutantVerdict::Survived,
        Outcome::Undecided { .. } | Outcome::Exceeded { .. } => MutantVerdict::Undecided,
    }
}

/// Checks one system as `cohkit check` does: with increasing channel capacity, then progress if no property is
/// violated.
fn check_system(protocol: &Protocol, home: &Controller, size: SystemSize) -> MutantVerdict {
    let SystemSize { remotes, lines, .. } = size;
    let limits = Options {
        max_states: Some(size.max_states),
        // For small searches, the interpreter takes less time than the compilation to machine code.
        engine: match size.max_states {
            ..=150_000 => Engine::Interpreter,
            _ => Engine::Adaptive,
        },
        ..Options::default()
    };
    for trial in TRIAL_CAPACITIES {
        let lowering = system::Options {
            trial,
            ..system::Options::default()
        };
        let Ok(model) = system::model(protocol, home, remotes, lines, &lowering) else {
            return MutantVerdict::Rejected;
        };
        match check(&model, &limits).map(|report| report.outcome) {
            Ok(Outcome::Violated { .. }) => return MutantVerdict::Refuted,
            Ok(Outcome::Exceeded { .. }) => {}
            Ok(Outcome::Undecided { .. }) => return MutantVerdict::Undecided,
            Ok(Outcome::Verified) => {
                return match progress(protocol, home, (remotes, lines), &lowering, &limits) {
                    Ok(progress) => verdict_of_progress(&progress),
                    Err(_) => MutantVerdict::Rejected,
                };
            }
            Err(_) => return MutantVerdict::Rejected,
        }
    }
    MutantVerdict::CapacityExceeded
}
