//! Lowering of a protocol system to a finite model.
//!
//! [`model`] composes a number of remotes, a home, their channels, memory and the device behind the home, for one or
//! more cache lines. It takes any remote and any home [`Controller`], hand-written or constructed, and follows the
//! semantics of [`cohkit_protocol::controller`] to the letter.
//!
//! ## The state
//!
//! Per line and remote: the state, the variables, and one bit: true if its copy is *current*. Per line: the home's
//! state and variables, the current bit of memory, the memory operation in progress (at most one), the device's local
//! operation and its lock. Unordered channels count equal messages. Ordered groups are first-in first-out queues for
//! each sender and receiver, one per line or shared by the lines of a home. A network adds the input queue of each
//! receiver. Values without meaning (the copy of a remote that holds none, queue slots beyond the end) are fixed, so
//! that equivalent states are equal.
//!
//! ## The data
//!
//! Each copy of the line (in a cache, in memory, in a message, in a memory operation) carries one bit, *current*: it
//! contains every write so far. A write makes its own copy current and all others stale. For the data-value property
//! this is as exact as version numbers, and it is finite. A store, or a non-caching write, is performed in place if its
//! row leads from write permission to write permission. It is also performed without any row if the permission allows
//! it. Accesses without effect are left out. A write that ends with `done` is performed in the remote's copy, unless
//! its bytes were sent to the home. The home then performs it when it writes the bytes to memory, at once or deferred.
//! A copy never becomes current again by itself, so a copy read too early is still stale when it is used.
//!
//! ## Properties
//!
//! By name, as reports show them:
//!
//! * *single writer*: write permission excludes all other permissions; a device lock of an operation that ensured a
//!   permission excludes what it excluded; the ensured permissions hold when an operation is acknowledged;
//! * *data value*: a copy that may be read is current; memory is current when it is read for a remote, when a local
//!   operation is acknowledged, and as long as the device holds the lock; a message with which a remote performs an
//!   access without keeping the line is current when it is sent; a read returns a copy that is current, or that was
//!   current after the read had begun if a message carries it; a copy in which `done` writes a part of the line is
//!   current; under a device lock no store of a remote reaches memory, and under a lock that lets the device write,
//!   memory is not read for a remote;
//! * *every store is performed once*, as part of *data value* if the protocol guarantees coherence: a hand-written home
//!   writes each store of a remote once, before the remote's access is done, and drops no posted store;
//! * *program order of one line*, if the protocol guarantees coherence: the stores of a remote are performed in their
//!   order, and its reads find its earlier posted stores;
//! * *atomicity*: no other store is performed between the read and the write of an atomic access (for these three
//!   properties see [`cohkit_system::stores`]);
//! * *no unexpected message*: every message that can be delivered has a row;
//! * *memory operation while the slot is busy*, *one local operation at a time*, *lock*: the home follows the
//!   interfaces of memory and device;
//! * *inclusion*, with backing permission: no remote has more permission than the home has to its memory, and memory is
//!   written only with write permission;
//! * *more than N M in flight*, *more than N messages in flight*: a bound declared in the protocol file;
//! * *no deadlock* and *every request can still complete*, by the search. A state is quiescent if all agents are
//!   stable, nothing is in flight or requested, and there is no lock;
//! * *progress*: every access or operation that begins can be performed, by [`progress`] on models of its own, or as a
//!   consequence of drain;
//! * the invariants of the protocol file, each under its own name.
//!
//! More messages than [`Options::capacity`] are no violation: the verdict is then undecided.
//!
//! ## Backing permission
//!
//! With [`Options::parent_any`] an abstract outer level grants and revokes the home's permission to its memory. The home then
//! behaves as below a cache of another protocol, and the outer level takes the place of the device.
//! [`cohkit_system::world`] defines its steps.
//!
//! Not modelled: fairness among requests, the bytes of a line, the difference between reads of one copy at different
//! times, and a device that never unlocks.

mod backing_permission;
mod effects;
mod execution;
mod expressions;
mod input_queues;
mod layout;
mod lender;
mod message_rules;
mod networks;
mod prior_values;
pub mod progress;
mod properties;
mod sends;
mod stores;
mod story;
mod tickets;
mod triggers;
mod wait_for;
mod watch;

use std::fmt;

use cohkit_base::words::counted;
use cohkit_protocol::controller::{Controller, Event};
use cohkit_protocol::protocol::{ChannelId, Protocol, System as Sized};
use cohkit_protocol::remotes::Remotes;

use cohkit_engine::coverage::Coverage;
use cohkit_engine::explain::Remark;
use cohkit_engine::model::{Model, ModelError};

/// Options of a model.
#[derive(Clone, Debug)]
pub struct Options {
    /// Channel capacity: of equal messages in an unordered channel, and of messages per line in one ordered queue. It
    /// is no assumption: exceeding it leaves the verdict undecided ([`cohkit_engine::Outcome::Exceeded`]).
    pub capacity: u16,
    /// A smaller capacity, to be tried first: states are smaller, and the verdict is the same unless it is undecided.
    pub trial: Option<u16>,
    /// True if the device may request its next local operation as soon as the home has accepted the previous one.
    /// Otherwise it waits for the acknowledgement.
    pub overlaps_requests: bool,
    /// True if an outer level grants the home's permission to its memory, see [`cohkit_system::world`].
    pub parent_any: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            capacity: 7,
            trial: None,
            overlaps_requests: true,
            parent_any: false,
        }
    }
}

impl Options {
    /// Channel capacity for messages without a bound in the protocol file.
    fn room(&self) -> u16 {
        self.trial
            .map_or(self.capacity, |trial| trial.min(self.capacity))
    }
}

/// Reason why a system cannot be modelled.
#[derive(Clone, PartialEq, Debug)]
pub enum SystemError {
    /// The number of remotes or lines is out of range.
    Size(String),
    /// A controller does something that has no meaning in its place.
    Meaningless(String),
    /// The model is not well formed: a defect of the lowering or of a constructed controller.
    Model(Vec<ModelError>),
}

impl fmt::Display for SystemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SystemError::Size(message) | SystemError::Meaningless(message) => f.write_str(message),
            SystemError::Model(errors) => {
                write!(f, "the model is not well formed")?;
                errors.iter().try_for_each(|e| write!(f, "; {e}"))
            }
        }
    }
}

impl std::error::Error for SystemError {}

/// A model and the data for reports on it.
#[derive(Clone, Debug)]
pub struct Modelled {
    /// The model.
    pub model: Model,
    /// Rows of each group of its [`cohkit_engine::model::Note::Mark`].
    pub marks: Vec<Mark>,
    /// Descriptions of waiting agents and messages.
    pub remarks: Vec<Remark>,
}

/// Rows for one event that are one case of the model. The members of the mark's group are their states.
#[derive(Clone, PartialEq, Debug)]
pub struct Mark {
    /// True for rows of the home.
    pub home: bool,
    /// Event of the rows.
    pub event: Event,
    /// Index of the rows among the rows of this event and their state.
    pub case: usize,
    /// States of the rows.
    pub states: Vec<usize>,
}

impl Modelled {
    /// Number of times that each row of one agent's controller was taken, by its index in [`Controller::rules`]. `None`
    /// for rows that are no step of the model: rows that stall or never occur, and accesses without effect.
    pub fn taken(
        &self,
        home: bool,
        controller: &Controller,
        coverage: &Coverage,
    ) -> Vec<Option<u128>> {
        let rows = controller.rules.iter().enumerate();
        let counts = rows.map(|(index, row)| {
            let earlier_rows = controller.rules[..index].iter();
            let case = earlier_rows
                .filter(|earlier| earlier.event == row.event && earlier.state == row.state)
                .count();
            let state = row.state.index();
            let marks = self.marks.iter().enumerate().filter(|(_, mark)| {
                let is_same_case = (mark.home, mark.event, mark.case) == (home, row.event, case);
                is_same_case && mark.states.contains(&state)
            });
            let row_counts = marks.map(|(group, _)| {
                let member = (group as u32, state as i64);
                coverage.marks.get(&member).copied().unwrap_or(0)
            });
            row_counts.reduce(|a, b| a.saturating_add(b))
        });
        counts.collect()
    }
}

/// Returns the model of a system of `remotes` caching agents and `lines` cache lines.
///
/// `home` is the protocol's hand-written home, or one constructed from its policy.
///
/// # Errors
/// There are more remotes or lines than [`cohkit_protocol::protocol::System`] allows, or none, or a controller cannot
/// be lowered.
pub fn model(
    protocol: &Protocol,
    home: &Controller,
    remotes: impl Into<Remotes>,
    lines: u8,
    options: &Options,
) -> Result<Model, SystemError> {
    modelled(protocol, home, remotes, lines, options).map(|modelled| modelled.model)
}

/// Returns the model like [`model`], with the data for reports on it.
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

/// Returns a system of this size that has variables and no rules yet.
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
            "give the number of remotes of each kind: {names}"
        )));
    }
    let max_lines = u16::from(Sized::MAX_LINES).max(progress::lines(protocol).into());
    for (number, max, things) in [
        (remotes, Sized::MAX_REMOTES.into(), "remotes"),
        (lines.into(), max_lines, "lines"),
    ] {
        if !(1..=max).contains(&number) {
            let error = format!("a system has 1 to {max} {things}, not {number}");
            return Err(SystemError::Size(error));
        }
    }
    if u16::from(lines) < protocol.homes {
        let error = format!(
            "{} share the lines and each needs at least one: {lines} is too few",
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
    /// Returns the finished model, with the data for reports on it.
    fn modelled(mut self) -> Result<Modelled, SystemError> {
        self.describe_waits();
        if let Some(error) = self.unsupported.take() {
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

/// Returns the limit of a verdict on deadlocks: the channels that are assumed to share no buffers. `None` if there are
/// none.
pub fn unshared(protocol: &Protocol) -> Option<String> {
    let channels = protocol.channels.iter().enumerate();
    let unordered = channels.filter(|&(number, _)| {
        let order = protocol.order_of(ChannelId(number as u16));
        order.is_none_or(|order| protocol.network_of(order).is_none())
    });
    let subject = match (unordered.count(), protocol.networks.is_empty()) {
        (0, _) => return None,
        (_, true) => "channels",
        (_, false) => "channels outside of networks",
    };
    Some(format!(
        "{subject} share no buffers: deadlocks of messages that wait for each other in a shared buffer are not covered"
    ))
}

/// Assumptions of every verdict on a system: declared bounds, and the rules of the outer level if there is one.
pub fn assumptions(protocol: &Protocol, parent_any: bool) -> Vec<String> {
    let outer_level_rule = "the outer level grants each permission that a request waits for, revokes it only under a lock of the home, and writes only \
                 lines without a granted permission";
    let outer_level_rule = parent_any.then(|| outer_level_rule.to_string());
    let total = protocol.bounds.in_flight.iter().map(|bound| {
        format!(
            "at most {} in flight per remote and line",
            counted(bound.limit, "message")
        )
    });
    let per_message = protocol.bounds.per_message.iter().map(|(message, bound)| {
        format!(
            "at most {} {} in flight per remote and line; sending another waits",
            bound.limit,
            protocol.message(*message).name
        )
    });
    total.chain(per_message).chain(outer_level_rule).collect()
}
