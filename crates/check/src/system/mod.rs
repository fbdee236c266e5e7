//! From a protocol system to a finite model.
//!
//! [`model`] puts a number of remotes, a home, the channels between them, memory and the device
//! behind the home together, for one or more cache lines.
//! It takes any remote and any home [`Controller`], hand-written or constructed,
//! and follows the semantics of [`cohkit_protocol::controller`] to the letter.
//!
//! ## The state
//!
//! Per line and remote: the state, the variables, and whether its copy is *current*.
//! Per line: the home's state and variables, whether memory is current, the memory operation in
//! flight (at most one), the device's local operation and its lock.
//! Unordered channels count equal messages; ordered groups are first-in first-out queues, one for
//! each sender and receiver, shared by all lines. A network adds the input queue of each receiver.
//! What has no meaning (the copy of a remote that holds none, queue slots beyond the end) has one fixed value,
//! so states that differ in nothing are one state.
//!
//! ## The data
//!
//! Each copy of the line (in a cache, in memory, in a message, in a memory operation) carries
//! one bit, *current*: it has the effect of every write so far.
//! A write makes its own copy current and all others old.
//! For the data value property this is as exact as version numbers, and it is finite.
//! A store, or a non-caching write, is performed in place where its row leads from a right to write to a right to write,
//! and without any row where the right allows it. Accesses that change nothing are left out.
//! A write that ends with `done` is performed in the remote's copy, unless its bytes were sent to the home,
//! which performs it when it writes them to memory, at once or after having set them aside.
//! A copy never becomes current again by itself, so a copy read too early is still old when it is used.
//!
//! ## Properties
//!
//! By name, as reports show them:
//!
//! * *single writer*: a right to write excludes all other rights; a device lock of an operation that
//!   ensured rights excludes what it excluded; the rights hold when an operation is acknowledged;
//! * *data value*: a copy that may be read is current; memory is current when it is read for a remote, when
//!   a local operation is acknowledged, and as long as the device holds the lock; a message
//!   with which a remote performs an access without keeping the line is current when it is sent;
//!   what a read ends with is current, or was at some moment after the read had begun if a message brings it; a copy in
//!   which `done` writes a part of the line is current; under a device lock no store of a remote reaches memory, and
//!   under one that lets the device write memory is not read for a remote;
//! * *every store is performed once*, under *data value* where copies are current: a hand-written home writes each store
//!   that a remote sends once, before the remote's access is done, and drops none that is posted;
//! * *program order of one line*, where copies are current: the stores of a remote are performed in their order, and its
//!   reads find those that it has posted before;
//! * *atomicity*: no other store is performed between the read and the write of an atomic access
//!   (for these three see [`cohkit_system::stores`]);
//! * *no unexpected message*: whatever can be delivered has a rule;
//! * *memory operation while the slot is busy*, *one local operation at a time*, *lock*: the home keeps
//!   to its side of the memory's and the device's ports;
//! * *inclusion*, where memory is lent: no right is above what is lent, and memory is written only where it may be;
//! * *more than N M in flight*, *more than N messages in flight*: a bound stated in the text;
//! * *no deadlock* and *every request can still complete*, by the search, from what is quiescent here:
//!   all agents stable, nothing in flight, nothing asked, no lock;
//! * *progress*: what begins can be performed, by [`progress`] on models of its own, or because drain says it;
//! * the invariants of the text, each under its own name.
//!
//! More messages than [`Options::capacity`] are no violation: the verdict is then left open.
//!
//! ## Memory that is lent
//!
//! With [`Options::lent`] the right to memory comes and goes as where the home stands over a cache of another protocol: in
//! place of the device is whoever lends it. [`cohkit_system::world`] says what may happen then.
//!
//! Not modelled: fairness among requests, the bytes of a line, the difference between reads of one copy
//! at different times, and a device that never gives its lock back.

mod before;
mod effects;
mod execution;
mod expressions;
mod input_queues;
mod layout;
mod lender;
mod lent;
mod networks;
pub mod progress;
mod properties;
mod reactions;
mod sending;
mod stores;
mod story;
mod tickets;
mod triggers;
mod waits;
mod watch;

use std::fmt;

use cohkit_base::words::counted;
use cohkit_protocol::controller::{Controller, Event};
use cohkit_protocol::protocol::{ChannelId, Protocol, System as Sized};
use cohkit_protocol::remotes::Remotes;

use cohkit_engine::coverage::Coverage;
use cohkit_engine::explain::Remark;
use cohkit_engine::model::{Model, ModelError};

/// How a system is modelled.
#[derive(Clone, Debug)]
pub struct Options {
    /// Most equal messages in an unordered channel, and most messages per line in one ordered queue.
    /// Not an assumption: running over leaves the verdict open ([`cohkit_engine::Outcome::Exceeded`]).
    pub capacity: u16,
    /// Less room than that, to be tried first: states are smaller, and the verdict is the same unless it is left open.
    pub trial: Option<u16>,
    /// Whether the device may ask for its next local operation as soon as the home has accepted the one
    /// before, rather than after that is acknowledged.
    pub ask_ahead: bool,
    /// Whether the memory behind the home is lent, as [`cohkit_system::world`] says.
    pub lent: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            capacity: 7,
            trial: None,
            ask_ahead: true,
            lent: false,
        }
    }
}

impl Options {
    /// The room that messages have for which the text states no bound.
    fn room(&self) -> u16 {
        self.trial
            .map_or(self.capacity, |trial| trial.min(self.capacity))
    }
}

/// Why there is no model of a system.
#[derive(Clone, PartialEq, Debug)]
pub enum SystemError {
    /// The number of remotes or lines is out of range.
    Size(String),
    /// A controller does something that has no meaning where it stands.
    Meaningless(String),
    /// The model came out wrong: a defect of the lowering or of a constructed controller.
    Model(Vec<ModelError>),
}

impl fmt::Display for SystemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SystemError::Size(what) | SystemError::Meaningless(what) => f.write_str(what),
            SystemError::Model(errors) => {
                write!(f, "the model is not well formed")?;
                errors.iter().try_for_each(|e| write!(f, "; {e}"))
            }
        }
    }
}

impl std::error::Error for SystemError {}

/// A model with what reports on it need.
#[derive(Clone, Debug)]
pub struct Modelled {
    /// The model.
    pub model: Model,
    /// What the groups of its [`cohkit_engine::model::Note::Marks`] are.
    pub marks: Vec<Mark>,
    /// Who waits for whom.
    pub remarks: Vec<Remark>,
}

/// Rows for one event that are one case of the model. Its members are the states.
#[derive(Clone, PartialEq, Debug)]
pub struct Mark {
    /// Whether they are the home's.
    pub home: bool,
    /// Their event.
    pub event: Event,
    /// Which of the rows for this event they are in their states, counted from 0.
    pub case: usize,
    /// Their states.
    pub states: Vec<usize>,
}

impl Modelled {
    /// How often each row of one agent's controller was taken, by its index in [`Controller::rules`];
    /// `None` for rows that are no step of the model: those that leave or never meet their event,
    /// and accesses that change nothing.
    pub fn taken(
        &self,
        home: bool,
        controller: &Controller,
        coverage: &Coverage,
    ) -> Vec<Option<u128>> {
        let rows = controller.rules.iter().enumerate();
        let taken = rows.map(|(index, row)| {
            let before = controller.rules[..index].iter();
            let case = before
                .filter(|other| other.event == row.event && other.state == row.state)
                .count();
            let state = row.state.index();
            let marks = self.marks.iter().enumerate().filter(|(_, mark)| {
                let of_row = (mark.home, mark.event, mark.case) == (home, row.event, case);
                of_row && mark.states.contains(&state)
            });
            let met = marks.map(|(group, _)| {
                let member = (group as u32, state as i64);
                coverage.marks.get(&member).copied().unwrap_or(0)
            });
            met.reduce(|a, b| a.saturating_add(b))
        });
        taken.collect()
    }
}

/// The model of a system of `remotes` caching agents and `lines` cache lines.
///
/// `home` is the protocol's hand-written home, or one constructed from its policy.
///
/// # Errors
/// If there are more remotes or lines than [`cohkit_protocol::protocol::System`] has, or none, or if a controller cannot be
/// lowered.
pub fn model(
    protocol: &Protocol,
    home: &Controller,
    remotes: impl Into<Remotes>,
    lines: u8,
    options: &Options,
) -> Result<Model, SystemError> {
    modelled(protocol, home, remotes, lines, options).map(|modelled| modelled.model)
}

/// The same, with what reports need.
///
/// # Errors
/// As [`model`].
pub fn modelled(
    protocol: &Protocol,
    home: &Controller,
    remotes: impl Into<Remotes>,
    lines: u8,
    options: &Options,
) -> Result<Modelled, SystemError> {
    let mut system = sized(protocol, home, remotes, lines, options)?;
    system.triggers()?;
    system.properties()?;
    system.modelled()
}

/// A system of this size, with its variables and nothing that happens yet.
fn sized<'p>(
    protocol: &'p Protocol,
    home: &'p Controller,
    remotes: impl Into<Remotes>,
    lines: u8,
    options: &'p Options,
) -> Result<layout::System<'p>, SystemError> {
    let of_each = remotes.into();
    let (kinds, remotes) = (protocol.kinds.len(), of_each.total());
    if of_each.kinds() != kinds && protocol.several_tables() {
        let names: Vec<&str> = protocol
            .kinds
            .iter()
            .map(|kind| kind.name.as_str())
            .collect();
        let names = names.join(", ");
        return Err(SystemError::Size(format!(
            "a system of this text says how many remotes it has of each kind: {names}"
        )));
    }
    let most_lines = u16::from(Sized::MOST_LINES).max(progress::lines(protocol).into());
    for (number, most, what) in [
        (remotes, Sized::MOST_REMOTES.into(), "remotes"),
        (lines.into(), most_lines, "lines"),
    ] {
        if !(1..=most).contains(&number) {
            let error = format!("a system has 1 to {most} {what}, not {number}");
            return Err(SystemError::Size(error));
        }
    }
    if u16::from(lines) < protocol.homes {
        let error = format!(
            "{} share the lines, each has one at least: {lines} is too few",
            counted(protocol.homes, "home")
        );
        return Err(SystemError::Size(error));
    }
    if options.room() == 0 {
        return Err(SystemError::Size(
            "a channel has a capacity of at least 1".into(),
        ));
    }
    layout::System::new(protocol, home, of_each, lines, options)
}

impl layout::System<'_> {
    /// The finished model, with what reports need.
    fn modelled(mut self) -> Result<Modelled, SystemError> {
        self.waiting();
        if let Some(error) = self.senseless.take() {
            return Err(error);
        }
        let marks = std::mem::take(&mut self.marks);
        let remarks = std::mem::take(&mut self.remarks);
        let model = self.finish().map_err(SystemError::Model)?;
        Ok(Modelled {
            model,
            marks,
            remarks,
        })
    }
}

/// Returns the limit of a verdict on deadlocks: the channels that are assumed to share no buffers. `None` if there are none.
pub fn unshared(protocol: &Protocol) -> Option<String> {
    let ways = protocol.channels.iter().enumerate();
    let apart = ways.filter(|&(number, _)| {
        let order = protocol.order_of(ChannelId(number as u16));
        order.is_none_or(|order| protocol.network_of(order).is_none())
    });
    let which = match (apart.count(), protocol.networks.is_empty()) {
        (0, _) => return None,
        (_, true) => "channels",
        (_, false) => "channels outside of networks",
    };
    Some(format!(
        "{which} share no buffers: deadlocks of messages that wait for each other in a shared buffer are not covered"
    ))
}

/// What every verdict on a system rests on beside the text's rules: stated bounds, and that what lends memory keeps its side.
pub fn assumptions(protocol: &Protocol, lent: bool) -> Vec<String> {
    let lends = "whoever lends memory lends what a request waits for, takes it back under a lock of the home, and writes only \
                 what it has not lent";
    let lends = lent.then(|| lends.to_string());
    let total = protocol.bounds.in_flight.iter().map(|bound| {
        format!(
            "at most {} in flight per remote and line",
            counted(bound.limit, "message")
        )
    });
    let each = protocol.bounds.per_message.iter().map(|(message, bound)| {
        format!(
            "at most {} {} in flight per remote and line; sending another waits",
            bound.limit,
            protocol.message(*message).name
        )
    });
    total.chain(each).chain(lends).collect()
}
