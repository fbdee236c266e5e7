//! Protocols, and an independent reading of states: views as keys, and verdicts on small systems.

use cohkit_parameterised::{verify, Limits, Proof, Verdict};
use cohkit_protocol::construct;
use cohkit_protocol::controller::Controller;
use cohkit_protocol::protocol::{Protocol, Type};
use cohkit_protocol::text::parse;
use cohkit_system::data::Current;
use cohkit_system::state::{explore, Found, StepError, System, SystemState};
use std::collections::BTreeSet;

/// A protocol that is verified for every number of remotes, and the effort of its tests.
pub struct Verified {
    /// Name of the file.
    pub name: &'static str,
    /// Contents of the file.
    pub text: &'static str,
    /// Largest number of remotes whose views are compared.
    pub remotes: u16,
    /// Number of random changes.
    pub mutants: u64,
}

/// Shorthand for an entry of [`VERIFIED`].
const fn verified(name: &'static str, text: &'static str, remotes: u16, mutants: u64) -> Verified {
    Verified {
        name,
        text,
        remotes,
        mutants,
    }
}

/// Protocols that are verified for every number of remotes within seconds.
pub const VERIFIED: [Verified; 11] = [
    verified("german", include_str!("texts/german.coh"), 5, 60),
    verified(
        "msi_through_home",
        include_str!("texts/msi_through_home.coh"),
        4,
        60,
    ),
    verified(
        "write-through",
        include_str!("../../../../protocols/write-through.coh"),
        4,
        60,
    ),
    verified(
        "write-through-two-step",
        include_str!("../../../../protocols/write-through-two-step.coh"),
        4,
        60,
    ),
    verified(
        "refusing_home",
        include_str!("texts/refusing_home.coh"),
        5,
        60,
    ),
    verified(
        "tilelink",
        include_str!("../../../../protocols/tilelink.coh"),
        4,
        40,
    ),
    verified("chi", include_str!("../../../../protocols/chi.coh"), 3, 16),
    verified(
        "mesi-l1",
        include_str!("../../../../protocols/mesi-l1.coh"),
        3,
        12,
    ),
    verified(
        "msi-policy",
        include_str!("../../../../protocols/msi-policy.coh"),
        3,
        40,
    ),
    verified(
        "cxl-bias",
        include_str!("../../../../protocols/cxl-bias.coh"),
        3,
        30,
    ),
    verified(
        "cxl-mem",
        include_str!("../../../../protocols/cxl-mem.coh"),
        3,
        30,
    ),
];

/// The verified protocol with a name.
pub fn text_of(name: &str) -> &'static str {
    let mut protocols = VERIFIED.iter();
    let protocol = protocols.find(|protocol| protocol.name == name);
    protocol.expect("a verified protocol").text
}

/// Parses a text without errors.
pub fn parsed(text: &str) -> Protocol {
    parse(text).expect("the text has no errors")
}

/// Home in systems of this many remotes: written as rows, or constructed. `None` if none can be constructed.
pub fn home(protocol: &Protocol, remotes: u16) -> Option<Controller> {
    construct::home(protocol, remotes).ok()
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

/// Variables of the home in a configuration, as they concern one remote, as text. `variables` are those that the text
/// has; counts are left out. `blocks` has the block of each knowledge index.
fn home_key(
    system: &System,
    variables: &Controller,
    blocks: &[u16],
    state: &SystemState<Current>,
    cell: u8,
) -> String {
    use std::fmt::Write;
    let line = &state.lines[0];
    let mut key = String::new();
    let remotes = 0..u16::from(system.remotes);
    let is_cell = |remote: u16| remote == u16::from(cell);
    let block_of = |remote: u16| {
        let slots = &line.home.slots[system.slots_of_home(0)];
        blocks
            .get(usize::from(*slots.get(usize::from(remote))?))
            .copied()
    };
    for (index, variable) in (0..).zip(&variables.variables) {
        let slots = &line.home.slots[system.slots_of_home(index)];
        let words = match variable.ty {
            Type::Count => continue,
            Type::Array { .. } => {
                let others = remotes.clone().filter(|&remote| !is_cell(remote));
                let others: BTreeSet<u16> = others.filter_map(block_of).collect();
                format!("{} {others:?}", slots[usize::from(cell)])
            }
            Type::Remote if slots[0] > 0 && is_cell(slots[0] - 1) => "cell".to_string(),
            Type::Remote if slots[0] > 0 => {
                let block = (!blocks.is_empty())
                    .then(|| block_of(slots[0] - 1))
                    .flatten();
                format!("other {}", block.unwrap_or(0))
            }
            Type::RemoteSet => {
                let is_member = |&remote: &u16| slots[0] & (1 << remote) != 0;
                let has_cell = remotes.clone().filter(is_member).any(is_cell);
                let has_other = remotes
                    .clone()
                    .filter(is_member)
                    .any(|remote| !is_cell(remote));
                format!("{has_cell} {has_other}")
            }
            _ => slots[0].to_string(),
        };
        let _ = write!(key, ", {} {words}", variable.name);
    }
    key
}

/// As [`home_key`], for a view of a proof with a constructed home.
fn summarised_home_key(proof: &Proof, view: &SystemState<Current>) -> String {
    use std::fmt::Write;
    let slots = &view.lines[0].home.slots;
    let variables = &proof.home.variables;
    let (scalars, knowledge) = slots.split_at(variables.len() - 1);
    let mut scalars = scalars.iter();
    let mut key = String::new();
    for variable in variables {
        let words = match variable.ty {
            Type::Array { .. } => {
                let has_bit = |&block: &u16| {
                    let word = knowledge[1 + usize::from(block) / 16];
                    word >> (block % 16) & 1 != 0
                };
                let blocks = proof.blocks.iter().copied();
                let others: BTreeSet<u16> = blocks.filter(has_bit).collect();
                format!("{} {others:?}", knowledge[0])
            }
            ty => match (ty, *scalars.next().expect("a slot")) {
                (Type::Remote, 1) => "cell".to_string(),
                (Type::Remote, other) if other > 1 => format!("other {}", other - 2),
                (_, value) => value.to_string(),
            },
        };
        let _ = write!(key, ", {} {words}", variable.name);
    }
    key
}

/// View of one remote of a state, as text, with the text of its home. Pointers and sets of the rest are of `cell`.
fn view_key(home: &str, state: &SystemState<Current>, cell: u8) -> String {
    use std::fmt::Write;
    let line = &state.lines[0];
    let mut key = format!("home {}{home}", line.home.state);
    let reference = |remote: u16| match remote {
        remote if remote == u16::from(cell) => "cell",
        _ => "other",
    };
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

/// Views of a configuration, one for each remote, as text with the variables `variables`.
pub fn concrete_view_keys(
    system: &System,
    variables: &Controller,
    blocks: &[u16],
    state: &SystemState<Current>,
) -> Vec<String> {
    let cells = 0..system.remotes;
    let key = |cell| {
        let home = home_key(system, variables, blocks, state, cell);
        view_key(&home, state, cell)
    };
    cells.map(key).collect()
}

/// A view of a proof, as text with the variables `variables`.
pub fn abstract_view_key(
    system: &System,
    variables: &Controller,
    proof: &Proof,
    view: &SystemState<Current>,
) -> String {
    let home = match proof.blocks.is_empty() {
        true => home_key(system, variables, &[], view, 0),
        false => summarised_home_key(proof, view),
    };
    view_key(&home, view, 0)
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
    let Some(home) = home(protocol, remotes) else {
        return SmallVerdict::Unknown;
    };
    let system = system(protocol, &home, remotes);
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
