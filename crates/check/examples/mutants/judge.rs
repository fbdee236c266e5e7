//! What becomes of a mutant.

use crate::generate::Mutant;
use cohkit_check::progress::{progress, Progress};
use cohkit_check::report::{check, Outcome};
use cohkit_check::search::Options;
use cohkit_check::system;
use cohkit_protocol::construct::{construct, Construction};
use cohkit_protocol::controller::Controller;
use cohkit_protocol::protocol::{Home, Protocol, System};
use cohkit_protocol::text::{parse, Span};

/// How a mutant ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// The text is refused, or no home can be constructed from it, or only one with a fault.
    Rejected,
    /// A system is violated, or its verdict names accesses that never begin.
    Refuted,
    /// Messages pile up beyond what a model has room for: nobody is told that it holds.
    LeftOpen,
    /// All systems hold as far as they were explored.
    Survived,
}

/// Remotes and lines of the systems, and the states that are visited at most, from the one that takes least time.
/// Lines meet only in ordered channels, and two caches are enough for most that goes wrong.
const SYSTEMS: [(u8, u8, u64); 4] = [
    (2, 1, 150_000),
    (1, 2, 50_000),
    (3, 1, 60_000),
    (2, 2, 60_000),
];

/// Judges the mutants of one text.
pub struct Judge {
    /// The homes of the text itself, for each of the systems.
    homes: Vec<Controller>,
}

impl Judge {
    /// For the mutants of this text, which holds itself.
    ///
    /// # Errors
    /// How it does not hold.
    pub fn new(text: &str) -> Result<Judge, String> {
        let protocol = systems(text).ok_or("it is refused")?;
        let homes = homes(&protocol).ok_or("there is no home")?;
        match explored(&protocol, &homes) {
            Fate::Survived => Ok(Judge { homes }),
            other => Err(format!("{other:?}")),
        }
    }

    /// What becomes of a mutant. Its home, if it is given as goals, is constructed anew only where goals or
    /// messages were changed: a home constructed for a changed remote fits that remote, and the two are another protocol that may
    /// well hold. So a remote is put before the home that was constructed for what its text says.
    pub fn fate(&self, mutant: &Mutant) -> Fate {
        let Some(protocol) = systems(&mutant.text) else {
            return Fate::Rejected;
        };
        let anew = mutant.goals || matches!(protocol.home, Home::Controller(_));
        if !anew {
            return explored(&protocol, &self.homes);
        }
        match homes(&protocol) {
            Some(homes) => explored(&protocol, &homes),
            None => Fate::Rejected,
        }
    }
}

/// What a text means, with the systems that are explored here.
fn systems(text: &str) -> Option<Protocol> {
    let mut protocol = parse(text).ok()?;
    let all = SYSTEMS.map(|(remotes, lines, _)| System {
        name: format!("remotes_{remotes}_lines_{lines}"),
        remotes,
        lines,
        span: Span::default(),
    });
    protocol.systems = all.to_vec();
    Some(protocol)
}

/// The home for each of the systems, if one can be constructed that is without fault.
fn homes(protocol: &Protocol) -> Option<Vec<Controller>> {
    if let Home::Controller(home) = &protocol.home {
        return Some(vec![home.clone(); SYSTEMS.len()]);
    }
    let construction = construct(protocol).and_then(Construction::sound).ok()?;
    let home = |&(remotes, _, _): &(u8, u8, u64)| construction.controller(remotes);
    Some(SYSTEMS.iter().map(home).collect())
}

fn explored(protocol: &Protocol, homes: &[Controller]) -> Fate {
    let mut open = false;
    for ((remotes, lines, states), home) in SYSTEMS.into_iter().zip(homes) {
        match one(protocol, home, remotes, lines, states) {
            Fate::Survived => {}
            Fate::LeftOpen => open = true,
            decided => return decided,
        }
    }
    match open {
        true => Fate::LeftOpen,
        false => Fate::Survived,
    }
}

/// One system as `cohkit check` takes it: with little room for messages first, and progress where all else holds.
fn one(protocol: &Protocol, home: &Controller, remotes: u8, lines: u8, states: u64) -> Fate {
    let limits = Options {
        max_states: Some(states),
        ..Options::default()
    };
    for trial in [Some(1), Some(3), None] {
        let room = system::Options {
            trial,
            ..system::Options::default()
        };
        let Ok(model) = system::model(protocol, home, remotes, lines, &room) else {
            return Fate::Rejected;
        };
        match check(&model, &limits).map(|report| report.outcome) {
            Ok(Outcome::Violated { .. }) => return Fate::Refuted,
            Ok(Outcome::Exceeded { .. }) => {}
            Ok(Outcome::Undecided { .. }) => return Fate::Survived,
            Ok(Outcome::Verified) => {
                let found = progress(protocol, home, remotes, &room, &limits);
                let told = |found: Progress| {
                    let violated = matches!(found.outcome, Outcome::Violated { .. });
                    violated || !found.never.is_empty()
                };
                return match found.map(told) {
                    Ok(true) => Fate::Refuted,
                    Ok(false) => Fate::Survived,
                    Err(_) => Fate::Rejected,
                };
            }
            Err(_) => return Fate::Rejected,
        }
    }
    Fate::LeftOpen
}
