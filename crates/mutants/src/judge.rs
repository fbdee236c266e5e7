//! Verdicts on mutants.

use crate::bisimulation::{bisimulation, Bisimulation};
use crate::generate::Mutant;
use cohkit_check::progress::progress;
use cohkit_check::system;
use cohkit_engine::report::{check, Outcome};
use cohkit_engine::search::{Engine, Options};
use cohkit_litmus::conformance_report::{self, Ended};
use cohkit_protocol::construct::{construct, Construction};
use cohkit_protocol::controller::{Controller, MEMORY_WRITES};
use cohkit_protocol::protocol::{Home, Protocol, System};
use cohkit_protocol::text::parse;
use cohkit_system::world::System as World;
use cohkit_system::world::{explore_levels, Found, Levels, Search, Wrong};
use std::borrow::Cow;

/// Verdict on a mutant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum MutantVerdict {
    /// Stillborn: the specification is rejected, or no sound home can be constructed from it.
    Rejected,
    /// Killed: a system has a violation, or accesses that never begin.
    Refuted,
    /// Inconclusive: channel capacity exceeded.
    LeftOpen,
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
            MutantVerdict::LeftOpen => "left open",
            MutantVerdict::Undecided => "undecided",
            MutantVerdict::Bisimilar => "bisimilar",
            MutantVerdict::Survived => "survived",
        }
    }
}

/// Configuration of a system in which a mutant is checked.
#[derive(Clone, Copy)]
struct SystemSize {
    remotes: u16,
    lines: u8,
    /// True if the device behind the home issues local operations.
    device: bool,
    /// Maximum number of states to visit.
    states: u64,
}

const fn setting(remotes: u16, lines: u8, device: bool, states: u64) -> SystemSize {
    SystemSize {
        remotes,
        lines,
        device,
        states,
    }
}

/// Systems to check, fastest first. Two caches expose most faults. Two lines interact only in ordered channels, and
/// four caches are needed where three invalidations are counted.
const SYSTEMS: [SystemSize; 5] = [
    setting(2, 1, true, 150_000),
    setting(1, 2, true, 50_000),
    setting(3, 1, true, 260_000),
    setting(2, 2, true, 60_000),
    setting(4, 1, true, 60_000),
];

/// Systems for a specification whose first system is too large: one cache with the device, and two caches without it.
/// Both are searched completely.
const FALLBACK_SYSTEMS: [SystemSize; 2] = [
    setting(1, 1, true, 100_000),
    setting(2, 1, false, 2_000_000),
];

/// Channel capacity: number of equal unordered messages.
const CHANNEL_CAPACITY: u16 = 7;

/// Maximum number of pairs of states to compare: in a system that must be compared completely, and in any other.
const MAX_STATE_PAIRS: [usize; 2] = [60_000, 10_000];

/// Judge of the mutants of one specification.
pub struct Judge {
    /// Original protocol.
    protocol: Protocol,
    /// Homes of the original, one per system.
    homes: Homes,
}

/// Homes for [`SYSTEMS`], and homes for [`FALLBACK_SYSTEMS`].
struct Homes(Vec<Controller>, Vec<Controller>);

impl Judge {
    /// Creates a judge for the mutants of a specification, which must itself hold.
    ///
    /// # Errors
    /// The specification does not hold; the reason.
    pub fn new(text: &str) -> Result<Judge, String> {
        let protocol = systems(text).ok_or("it is refused")?;
        let homes = homes(&protocol).ok_or("there is no home")?;
        match explored(&protocol, &homes) {
            MutantVerdict::Survived => Ok(Judge { protocol, homes }),
            other => Err(other.name().into()),
        }
    }

    /// Returns the verdict on a mutant.
    ///
    /// A home given as a policy is constructed again only if the mutation changed the policy or messages. A home
    /// constructed for a changed remote would fit that remote, and the two may be another correct protocol. A mutated
    /// remote is therefore checked with the home of the original.
    pub fn fate(&self, mutant: &Mutant) -> MutantVerdict {
        let Some(protocol) = systems(&mutant.text) else {
            return MutantVerdict::Rejected;
        };
        let constructed;
        let anew = mutant.goals || matches!(protocol.home, Home::Controller(_));
        let homes = match anew.then(|| homes(&protocol)) {
            None => &self.homes,
            Some(None) => return MutantVerdict::Rejected,
            Some(Some(own)) => {
                constructed = own;
                &constructed
            }
        };
        match further(&protocol, explored(&protocol, homes)) {
            MutantVerdict::Survived if self.bisimilar(&protocol, homes) => MutantVerdict::Bisimilar,
            fate => fate,
        }
    }

    /// Returns true if no system distinguishes the mutant from the original, as [`MutantVerdict::Bisimilar`] states.
    fn bisimilar(&self, protocol: &Protocol, homes: &Homes) -> bool {
        let compare = |setting: &SystemSize, own: &Controller, home: &Controller, most: usize| {
            let text = world(&self.protocol, own, setting);
            let mutant = world(protocol, home, setting);
            bisimulation([&text, &mutant], most)
        };
        let [all, some] = MAX_STATE_PAIRS;
        let Homes(own, own_apart) = &self.homes;
        let Homes(home, home_apart) = homes;
        let first = compare(&SYSTEMS[0], &own[0], &home[0], all);
        let same = |place: usize| {
            let found = compare(&SYSTEMS[place], &own[place], &home[place], some);
            found != Bisimulation::None
        };
        let whole = |place: usize| {
            let found = compare(
                &FALLBACK_SYSTEMS[place],
                &own_apart[place],
                &home_apart[place],
                all,
            );
            found == Bisimulation::Whole
        };
        first != Bisimulation::None
            && (1..SYSTEMS.len()).all(same)
            && (first == Bisimulation::Whole || (0..FALLBACK_SYSTEMS.len()).all(whole))
    }
}

/// Refines the verdict of the systems with a check of two levels, or with litmus programs.
fn further(protocol: &Protocol, fate: MutantVerdict) -> MutantVerdict {
    let Home::Controller(home) = &protocol.home else {
        return fate;
    };
    let further = match fate {
        MutantVerdict::Rejected | MutantVerdict::Refuted => return fate,
        _ if is_inner_level(home) => check_inner_level(protocol, home),
        _ => programs(protocol, home),
    };
    match further {
        MutantVerdict::Survived => fate,
        _ if fate == MutantVerdict::Survived || further == MutantVerdict::Refuted => further,
        _ => fate,
    }
}

/// Returns a system as executed by the reference, `cohkit_system`.
fn world<'p>(protocol: &'p Protocol, home: &'p Controller, setting: &SystemSize) -> World<'p> {
    let world = World::new(
        protocol,
        home,
        setting.remotes,
        setting.lines,
        CHANNEL_CAPACITY,
    );
    match is_inner_level(home) {
        true => world.with_backing_permission(),
        false => world,
    }
}

/// Checks the memory model that a protocol guarantees, if any, with programs of two threads.
fn programs(protocol: &Protocol, home: &Controller) -> MutantVerdict {
    let Some(model) = protocol.guarantee.model else {
        return MutantVerdict::Survived;
    };
    let home = |_| Cow::Borrowed(home);
    let mut programs = conformance_report::classic(protocol, 2);
    programs.extend(conformance_report::bursts(model, 2));
    let found = conformance_report::judge(protocol, model, programs, None, &home, &mut || true);
    match found.ended {
        Ended::Holds if found.left_out > 0 => MutantVerdict::Refuted,
        Ended::Holds => MutantVerdict::Survived,
        Ended::Broken { .. } => MutantVerdict::Refuted,
        Ended::Undecided(_) | Ended::Interrupted => MutantVerdict::Undecided,
    }
}

/// Returns true if the memory of a home is the copy of an outer cache level.
fn is_inner_level(home: &Controller) -> bool {
    home.variables.iter().any(|v| v.name == MEMORY_WRITES)
}

/// Checks a protocol as the inner level below MESI caches: two outer caches with one inner cache each, and one with
/// two.
fn check_inner_level(inner: &Protocol, home: &Controller) -> MutantVerdict {
    let outer = parse(include_str!("../../../protocols/mesi.coh")).expect("it ships");
    let Home::Controller(above) = &outer.home else {
        return MutantVerdict::Rejected;
    };
    let mut fate = MutantVerdict::Survived;
    for (caches, each) in [(2u16, 1u16), (1, 2)] {
        let levels = Levels::new(
            World::new(&outer, above, caches, 1, CHANNEL_CAPACITY),
            World::new(inner, home, each, 1, CHANNEL_CAPACITY),
        );
        let search = Search {
            most: 200_000,
            symmetry: true,
        };
        match explore_levels(&levels, search, &mut || true) {
            Found::Safe { lost: None, .. } => {}
            Found::Safe { .. } => return MutantVerdict::Refuted,
            Found::TooMany { .. } => fate = MutantVerdict::Undecided,
            Found::Wrong { what, .. } => {
                let violated = |wrong: &Wrong| matches!(wrong, Wrong::Violated(_));
                if what.iter().any(violated) {
                    return MutantVerdict::Refuted;
                }
                fate = MutantVerdict::LeftOpen;
            }
        }
    }
    fate
}

/// Parses a specification and replaces its systems by [`SYSTEMS`].
fn systems(text: &str) -> Option<Protocol> {
    let mut protocol = parse(text).ok()?;
    let all = SYSTEMS.map(|SystemSize { remotes, lines, .. }| {
        System::new(format!("remotes_{remotes}_lines_{lines}"), remotes, lines)
    });
    protocol.systems = all.to_vec();
    Some(protocol)
}

/// Returns the home for each system, or `None` if no sound home can be constructed.
fn homes(protocol: &Protocol) -> Option<Homes> {
    let policy = match &protocol.home {
        Home::Policy(policy) => policy,
        Home::Controller(home) => {
            let each = |settings: &[SystemSize]| vec![home.clone(); settings.len()];
            return Some(Homes(each(&SYSTEMS), each(&FALLBACK_SYSTEMS)));
        }
    };
    let mut alone = protocol.clone();
    let mut without = policy.clone();
    without.locals.clear();
    alone.home = Home::Policy(without);
    let sound = |protocol| construct(protocol).and_then(Construction::sound).ok();
    let (construction, alone) = (sound(protocol)?, sound(&alone)?);
    let home = |setting: &SystemSize| match setting.device {
        true => construction.controller(setting.remotes),
        false => alone.controller(setting.remotes),
    };
    let each = |settings: &[SystemSize]| settings.iter().map(home).collect();
    Some(Homes(each(&SYSTEMS), each(&FALLBACK_SYSTEMS)))
}

fn explored(protocol: &Protocol, homes: &Homes) -> MutantVerdict {
    let each = |settings: &[SystemSize], homes: &[Controller]| {
        let mut fates = Vec::new();
        for (setting, home) in settings.iter().zip(homes) {
            let fate = one(protocol, home, *setting);
            if matches!(fate, MutantVerdict::Refuted | MutantVerdict::Rejected) {
                return Err(fate);
            }
            fates.push(fate);
        }
        Ok(fates)
    };
    let fates = match each(&SYSTEMS, &homes.0) {
        Ok(fates) => fates,
        Err(fate) => return fate,
    };
    let left_open = fates.contains(&MutantVerdict::LeftOpen);
    if fates[0] == MutantVerdict::Survived && !left_open {
        return MutantVerdict::Survived;
    }
    match each(&FALLBACK_SYSTEMS, &homes.1) {
        Err(fate) => fate,
        Ok(fates) if left_open || fates.contains(&MutantVerdict::LeftOpen) => {
            MutantVerdict::LeftOpen
        }
        Ok(fates) if fates.contains(&MutantVerdict::Undecided) => MutantVerdict::Undecided,
        Ok(_) => MutantVerdict::Survived,
    }
}

/// Checks one system as `cohkit check` does: with increasing channel capacity, then progress if no property is
/// violated.
fn one(protocol: &Protocol, home: &Controller, setting: SystemSize) -> MutantVerdict {
    let SystemSize { remotes, lines, .. } = setting;
    let limits = Options {
        max_states: Some(setting.states),
        // For small searches, the interpreter takes less time than the compilation to machine code.
        engine: match setting.states {
            ..=150_000 => Engine::Interpreter,
            _ => Engine::Adaptive,
        },
        ..Options::default()
    };
    for trial in [Some(1), Some(3), None] {
        let room = system::Options {
            trial,
            ..system::Options::default()
        };
        let Ok(model) = system::model(protocol, home, remotes, lines, &room) else {
            return MutantVerdict::Rejected;
        };
        match check(&model, &limits).map(|report| report.outcome) {
            Ok(Outcome::Violated { .. }) => return MutantVerdict::Refuted,
            Ok(Outcome::Exceeded { .. }) => {}
            Ok(Outcome::Undecided { .. }) => return MutantVerdict::Undecided,
            Ok(Outcome::Verified) => {
                let found = progress(protocol, home, (remotes, lines), &room, &limits);
                return match found {
                    Ok(found) if !found.never.is_empty() => MutantVerdict::Refuted,
                    Ok(found) => match found.outcome {
                        Outcome::Violated { .. } => MutantVerdict::Refuted,
                        Outcome::Verified => MutantVerdict::Survived,
                        Outcome::Undecided { .. } | Outcome::Exceeded { .. } => {
                            MutantVerdict::Undecided
                        }
                    },
                    Err(_) => MutantVerdict::Rejected,
                };
            }
            Err(_) => return MutantVerdict::Rejected,
        }
    }
    MutantVerdict::LeftOpen
}
