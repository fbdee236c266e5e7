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
//!   consequence of quiescence;
//! * the invariants of the protocol file, each under its own name.
//!
//! More messages than [`Options::capacity`] are no violation: the verdict is then undecided.
//!
//! ## Backing permission
//!
//! With [`Options::parent_any`] an abstract outer level grants and revokes the home's permission to its memory. The
//! home then behaves as below a cache of another protocol, and the outer level takes the place of the device.
//! [`cohkit_system::state`] defines its steps.
//!
//! ## Parts
//!
//! Each part uses only those above it in this list:
//!
//! - the model under construction (`scope`), and the fixed parts of a system (`frame`, with `notes` for charts);
//! - components that own state variables: states and variables of the agents (`agents`, `expressions`, `agent_words`),
//!   `memory`, the `device`, the `backing_permission`, messages in flight (`channels`, `flows`, `in_flight`,
//!   `transfers`, `input_queues`), pending stores (`stores`, `store_order`, `tickets`), the `copies` of a line, and
//!   the `watch` of an access (`access_flow`). `layout` is all of them;
//! - effects of a row on these components: statements (`effects`), `sends`, and those of a whole case (`case_effects`,
//!   `message_capacity`);
//! - rules: one event at an agent (`reactions`, with its `cases`), and all events (`accesses`, `deliveries`,
//!   `memory_steps`, `device_steps`, `outer_level`);
//! - invariants and quiescence (`properties`), and descriptions of what waits (`wait_for`);
//! - `assembly` makes a model of them, and [`progress`] the models that watch an access.
//!
//! Not modelled: fairness among requests, the bytes of a line, the difference between reads of one copy at different
//! times, and a device that never unlocks.

mod access_flow;
mod accesses;
mod agent_words;
mod agents;
mod assembly;
mod backing_permission;
mod case_effects;
mod cases;
mod channels;
mod charts;
mod context;
mod copies;
mod deliveries;
mod device;
mod device_steps;
mod effects;
mod execution;
mod expressions;
mod flows;
mod frame;
mod in_flight;
mod input_queues;
mod layout;
mod memory;
mod memory_steps;
mod message_capacity;
mod notes;
mod options;
mod outer_level;
mod prior_values;
pub mod progress;
mod properties;
mod reactions;
mod scope;
mod sends;
mod store_order;
mod stores;
mod system_model;
mod tickets;
mod transfers;
mod trigger;
mod wait_for;
mod watch;

pub use options::{Options, SystemError};
pub use system_model::{Mark, SystemModel};

use cohkit_base::words::counted;
use cohkit_engine::model::Model;
use cohkit_protocol::controller::Controller;
use cohkit_protocol::protocol::{ChannelId, Protocol};
use cohkit_protocol::remotes::Remotes;

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
    system_model(protocol, home, remotes, lines, options).map(|system_model| system_model.model)
}

/// Returns the model like [`model`], with the data for reports on it.
///
/// # Errors
/// As [`model`].
pub fn system_model(
    protocol: &Protocol,
    home: &Controller,
    remotes: impl Into<Remotes>,
    lines: u8,
    options: &Options,
) -> Result<SystemModel, SystemError> {
    let layout = assembly::sized_layout(protocol, home, remotes, lines, options)?;
    let reports = assembly::rules_of(&layout)?;
    properties::add_properties(&layout);
    assembly::assemble(layout, reports)
}

/// Returns a limit of deadlock verdicts as a sentence: the channels that are assumed to share no buffers. `None` if
/// all channels belong to networks.
pub fn unshared_buffers(protocol: &Protocol) -> Option<String> {
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

/// Returns the assumptions of every verdict on a system, as sentences: declared bounds, and the rules of the outer
/// level if there is one. `parent_any` is that of [`Options`].
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
