//! Protocols, and an independent reading of states: views as keys, and verdicts on small systems.

use cohkit_parameterised::{verify, Limits, Proof, Verdict};
use cohkit_protocol::controller::Controller;
use cohkit_protocol::protocol::{Home, Protocol, Type};
use cohkit_protocol::text::parse;
use cohkit_system::data::Current;
use cohkit_system::state::{explore, Found, StepError, System, SystemState};

/// A text and its name.
pub type NamedText = (&'static str, &'static str);

/// Protocols that are verified for every number of remotes.
pub const VERIFIED: [NamedText; 6] = [
    ("german", include_str!("texts/german.coh")),
    (
        "msi_through_home",
        include_str!("texts/msi_through_home.coh"),
    ),
    (
        "write-through",
        include_str!("../../../../protocols/write-through.coh"),
    ),
    (
        "write-through-two-step",
        include_str!("../../../../protocols/write-through-two-step.coh"),
    ),
    (
        "cxl-bias",
        include_str!("../../../../protocols/cxl-bias.coh"),
    ),
    ("cxl-mem", include_str!("../../../../protocols/cxl-mem.coh")),
];

/// Parses a text without errors.
pub fn parsed(text: &str) -> Protocol {
    parse(text).expect("the text has no errors")
}

/// Home written as rows.
pub fn home(protocol: &Protocol) -> &Controller {
    match &protocol.home {
        Home::Controller(home) => home,
        Home::Policy(_) => panic!("the home is a policy"),
    }
}

/// Evidence for a protocol that must be verified.
pub fn proof(name: &str, protocol: &Protocol) -> Proof {
    match verify(protocol, &mut Limits::default()) {
        Verdict::Verified(proof) => proof,
        Verdict::Undecided(obstacle) => panic!("{name}: {}", obstacle.reason),
    }
}

/// System of this many remotes and one line.
pub fn system<'p>(protocol: &'p Protocol, home: &'p Controller, remotes: u16) -> System<'p> {
    System::new(protocol, home, remotes, 1, 7)
}

/// View of one remote of a state, as text. `variables` are those of the home that the text has; counts are left out.
pub fn view_key(
    system: &System,
    variables: &Controller,
    state: &SystemState<Current>,
    cell: u8,
) -> String {
    use std::fmt::Write;
    let line = &state.lines[0];
    let mut key = format!("home {}", line.home.state);
    let reference = |remote: u16| match remote {
        remote if remote == u16::from(cell) => "cell",
        _ => "other",
    };
    for (index, variable) in (0..).zip(&variables.variables) {
        let value = line.home.slots[system.slots_of_home(index).start];
        let words = match variable.ty {
            Type::Count => continue,
            Type::Remote if value > 0 => reference(value - 1).to_string(),
            Type::RemoteSet => {
                let members = |wanted: &str| {
                    (0..u16::from(system.remotes))
                        .any(|remote| value & (1 << remote) != 0 && reference(remote) == wanted)
                };
                format!("{} {}", members("cell"), members("other"))
            }
            _ => value.to_string(),
        };
        let _ = write!(key, ", {} {words}", variable.name);
    }
    let deferred = line.deferred_store.as_ref();
    let deferred = deferred.map(|store| (reference(store.from.into()), store.whole, store.ticket));
    let _ = write!(
        key,
        "; {:?} {deferred:?} {:?} {:?} {:?} {:?}; {:?};",
        line.memory,
        line.operation,
        line.requested,
        line.accepted,
        line.lock,
        line.remotes[usize::from(cell)]
    );
    for flight in state.network.flights() {
        if flight.from == Some(cell) || flight.to == Some(cell) {
            let from_home = flight.from.is_none();
            let (message, fields, early) = (flight.message, &flight.fields, flight.early);
            let _ = write!(
                key,
                " {from_home} {message:?} {fields:?} {early} {:?}",
                flight.carried
            );
        }
    }
    key
}

/// Result of the exploration of a small system.
#[derive(Debug, PartialEq, Eq)]
pub enum SmallVerdict {
    /// No violation and no deadlock.
    Holds,
    /// A violation, a deadlock, or an exceeded capacity.
    Violated(String),
    /// Too many states.
    Unknown,
}

/// Explores a system of `remotes` remotes by the ordinary executor, up to `max_states` states.
pub fn explored(protocol: &Protocol, remotes: u16, max_states: usize) -> SmallVerdict {
    let system = system(protocol, home(protocol), remotes);
    let states = match explore(&system, SystemState::<Current>::new(&system), max_states) {
        Found::Safe { states, .. } => states,
        Found::Violated { errors, .. } => {
            return SmallVerdict::Violated(match &errors[0] {
                StepError::Violated(violation) => violation.description.clone(),
                StepError::Exceeded(limit) => limit.clone(),
            })
        }
        Found::LimitReached { .. } => return SmallVerdict::Unknown,
    };
    let is_stuck = |state: &SystemState<Current>| {
        let mut steps = state.steps(&system).into_iter();
        let is_possible = |step| state.clone().take(&system, step) == Ok(true);
        !state.quiescent(&system) && !steps.any(|step| !step.spontaneous() && is_possible(step))
    };
    match states.iter().any(is_stuck) {
        true => SmallVerdict::Violated("deadlock".to_string()),
        false => SmallVerdict::Holds,
    }
}
