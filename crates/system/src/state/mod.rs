//! An executable system without time: its states, their possible steps and the successors.
//!
//! A [`System`] is the fixed part: a protocol, its home, and the numbers of remotes and lines. A [`SystemState`] is one
//! state. [`SystemState::steps`] lists the steps, [`SystemState::take`] applies one, [`SystemState::claims`] checks the
//! properties. This executor is simple and exact, and is the reference of the checker's models; for large systems it is
//! slow.
//!
//! Remotes start each access whenever their rows allow it. The device requests local operations and unlocks at any
//! time. A caller with threads or an application in their place drives the agents through [`crate::agent`].

mod backing_permission;
mod claims;
mod copy_on_write;
mod explore;
mod levels;
mod network;
mod permute;
mod product_search;
mod steps;
mod words;

use cohkit_protocol::controller::Controller;
use cohkit_protocol::execute::{Configuration, Machine};
use cohkit_protocol::protocol::{Permission, Protocol};
use cohkit_protocol::remotes::Remotes;

use crate::agent::Violation;
use crate::data::Data;
use crate::plan::{Plan, ProtocolFacts};
use crate::stores::{AtomicRead, Stores, Ticket};

pub use backing_permission::{EXCEEDS_BACKING_PERMISSION, WRITE_WITHOUT_PERMISSION};
pub use copy_on_write::CopyOnWrite;
pub use explore::{explore, explore_within, CheckedSystem, Found};
pub use levels::{Clusters, LevelStep, Levels};
pub use network::{Arrival, Endpoint, InFlightMessage, Network, Order, Payload};
pub use product_search::{
    bridge_tables, explore_levels, BridgeRow, BridgeState, Level, NoTable, Search,
};
pub use steps::{CompletedAccess, Step};

/// Default channel capacity where the protocol file declares no bound: of equal messages in an unordered channel, and
/// of messages per line in one order.
pub const DEFAULT_CHANNEL_CAPACITY: u16 = 7;

/// The fixed part of a system.
pub struct System<'p> {
    /// The protocol of remotes and home.
    pub protocol: &'p Protocol,
    /// Its home, written by hand or constructed.
    pub home: &'p Controller,
    /// Number of caching agents.
    pub remotes: u8,
    /// Number of remotes of each kind.
    pub of_each: Remotes,
    /// Number of cache lines.
    pub lines: u8,
    /// Channel capacity where the protocol file declares no bound: of equal messages without an order, and of messages
    /// per line in one order.
    pub channel_capacity: u16,
    /// True if the device may request its next local operation before the accepted one is acknowledged.
    pub overlaps_requests: bool,
    /// Per message, the permission that the home needs before it consumes it. `None` if the memory has no outer level.
    backing_needs: Option<Vec<Permission>>,
    /// Static analysis of the protocol and its home.
    facts: ProtocolFacts,
    /// Static analysis of the rows of remotes, and of those of the home.
    plans: [Vec<Plan>; 2],
    /// Rows of the remotes, and those of the home, laid out for the number of remotes.
    machines: [Machine<'p>; 2],
    /// True if rows of remotes, and of the home, choose a member of a set.
    chooses: [bool; 2],
}

impl<'p> System<'p> {
    /// Creates a system with `remotes` remotes and `lines` lines.
    pub fn new(
        protocol: &'p Protocol,
        home: &'p Controller,
        remotes: impl Into<Remotes>,
        lines: u8,
        channel_capacity: u16,
    ) -> System<'p> {
        let of_each = remotes.into();
        let facts = ProtocolFacts::new(protocol, home);
        System {
            protocol,
            home,
            remotes: of_each.total() as u8,
            of_each,
            lines,
            channel_capacity,
            overlaps_requests: true,
            backing_needs: None,
            plans: [
                Plan::of(&protocol.remote, Some(&facts.accesses)),
                Plan::of(home, None),
            ],
            machines: [
                Machine::new(&protocol.remote, of_each),
                Machine::new(home, of_each),
            ],
            chooses: [&protocol.remote, home]
                .map(|controller| controller.rules.iter().any(|row| row.chooses())),
            facts,
        }
    }

    /// Executor of the remotes' rows.
    fn remote_machine(&self) -> &Machine<'p> {
        &self.machines[0]
    }

    /// Executor of the home's rows.
    fn home_machine(&self) -> &Machine<'p> {
        &self.machines[1]
    }

    /// Slots of a variable in a configuration of the home.
    pub fn slots_of_home(&self, variable: u16) -> std::ops::Range<usize> {
        self.home_machine().slots(variable)
    }

    /// Number of the line's home.
    fn home_of(&self, line: u8) -> u16 {
        u16::from(line) % self.protocol.homes
    }

    /// Permission of a remote in this configuration.
    fn permission(&self, remote: &Configuration) -> Permission {
        self.protocol.remote.states[usize::from(remote.state)].permission
    }
}

/// State of a caching agent, for one line.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Remote<D: Data> {
    /// Controller state and variables.
    pub configuration: Configuration,
    /// Copy of the line, or the default if the agent has none.
    pub copy: D::Copy,
    /// Value of the outstanding write, if a caller has begun it and its value matters.
    pub write_value: Option<D::Write>,
    /// Copy that the atomic access in progress has received, if its value matters.
    pub received_copy: Option<D::Copy>,
    /// Pending stores of the remote to the line.
    pub stores: Stores,
}

/// Progress of a memory operation.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Operation<D: Data> {
    /// No operation.
    Idle,
    /// A read of the line, not yet performed.
    Read,
    /// A read that has returned this copy.
    Sampled(D::Copy),
    /// A write of this copy, not yet performed.
    Write(D::Copy),
    /// A write of a store's bytes, not yet performed.
    Store {
        /// True if the bytes cover the whole line.
        whole: bool,
        /// Value of the write.
        value: D::Write,
    },
    /// A write that memory has performed and the home has not yet been notified of.
    Done,
}

/// A write that the home has deferred.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct DeferredStore<D: Data> {
    /// Number of the remote that sent it.
    pub from: u8,
    /// True if the bytes cover the whole line.
    pub whole: bool,
    /// Value of the write.
    pub value: D::Write,
    /// State of the store: whether it is still to be performed, and its rank.
    pub ticket: Ticket,
}

/// The device's lock on a line.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Lock {
    /// No lock.
    Unlocked,
    /// The device has this permission to the line.
    Held(Permission),
    /// The home has consumed the unlock and not yet acknowledged it.
    Unlocking,
}

/// State of one line, without its messages.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Line<D: Data> {
    /// State and variables of the home.
    pub home: Configuration,
    /// Contents of memory; the default if the home has no permission to its memory.
    pub memory: D::Copy,
    /// Permission of the home to its memory: write, unless an outer level grants it.
    pub backing_permission: Permission,
    /// State of each caching agent, by number.
    pub remotes: Vec<Remote<D>>,
    /// The memory operation in progress.
    pub operation: Operation<D>,
    /// The write that the home has deferred, if any.
    pub deferred_store: Option<DeferredStore<D>>,
    /// Value of the write that the home has consumed and not yet passed to memory, if its value matters.
    pub consumed_value: Option<D::Write>,
    /// The local operation that the device requests.
    pub requested: Option<u8>,
    /// The local operation that the home has accepted and not yet acknowledged.
    pub accepted: Option<u8>,
    /// Lock of the device on the line.
    pub lock: Lock,
}

/// A state of a system.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SystemState<D: Data> {
    /// Data shared by all copies.
    pub data: D,
    /// State of each line, by number.
    pub lines: Vec<CopyOnWrite<Line<D>>>,
    /// Messages in flight.
    pub network: Network<D>,
}

/// Reason why a step cannot be completed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StepError {
    /// The step violates a property.
    Violated(Violation),
    /// The step exceeds a capacity of this executor, which says nothing about the protocol.
    Exceeded(String),
}

impl From<Violation> for StepError {
    fn from(violation: Violation) -> StepError {
        StepError::Violated(violation)
    }
}

impl<D: Data> SystemState<D> {
    /// Returns the initial state.
    pub fn new(system: &System) -> SystemState<D> {
        let data = D::new(system.lines);
        let remote = |number| {
            let (kind, _) = system.of_each.kind(u16::from(number));
            let initial = system.protocol.kinds[kind.index()].initial;
            Remote {
                configuration: system.remote_machine().initial_in(initial),
                copy: D::Copy::default(),
                write_value: None,
                received_copy: None,
                stores: Stores::default(),
            }
        };
        let line = |line| {
            CopyOnWrite::new(Line {
                home: system.home_machine().initial(),
                memory: match system.backing_needs {
                    Some(_) => D::Copy::default(),
                    None => data.initial(line),
                },
                backing_permission: match system.backing_needs {
                    Some(_) => Permission::None,
                    None => Permission::Write,
                },
                remotes: (0..system.remotes).map(remote).collect(),
                operation: Operation::Idle,
                deferred_store: None,
                consumed_value: None,
                requested: None,
                accepted: None,
                lock: Lock::Unlocked,
            })
        };
        let mut system_state = SystemState {
            lines: (0..system.lines).map(line).collect(),
            network: Network::new(),
            data,
        };
        (0..system.lines).for_each(|line| system_state.set_memory_writes(system, line));
        system_state
    }

    /// True if the system is quiescent: nothing is outstanding, in flight or locked.
    pub fn quiescent(&self, system: &System) -> bool {
        let stable = |controller: &Controller, configuration: &Configuration| {
            controller.states[usize::from(configuration.state)].is_stable()
        };
        self.network.is_empty()
            && self.lines.iter().all(|line| {
                stable(system.home, &line.home)
                    && line
                        .remotes
                        .iter()
                        .all(|remote| stable(&system.protocol.remote, &remote.configuration))
                    && line.operation == Operation::Idle
                    && line.deferred_store.is_none()
                    && line.requested.is_none()
                    && line.accepted.is_none()
                    && line.lock == Lock::Unlocked
            })
    }

    /// True if a copy of the line other than that of the agent `agent` (`None`: memory) is current. Only then does a
    /// write by this agent change the state. Always false without the coherence guarantee: stale copies are allowed
    /// there, and their age is not recorded.
    fn has_other_current_copy(&self, system: &System, line: u8, agent: Option<u8>) -> bool {
        if !system.facts.coherent {
            return false;
        }
        let line_state = &self.lines[usize::from(line)];
        let current = |copy: &D::Copy| self.data.is_current(line, copy);
        let mut remotes = (0..).zip(&line_state.remotes);
        let in_memory_operation = match &line_state.operation {
            Operation::Sampled(copy) | Operation::Write(copy) => current(copy),
            _ => false,
        };
        let mut flights = self.network.flights().filter(|flight| flight.line == line);
        let has_current_atomic_read = |remote: &Remote<D>| remote.stores.read == AtomicRead::Last;
        line_state.remotes.iter().any(has_current_atomic_read)
            || remotes.any(|(number, remote)| Some(number) != agent && current(&remote.copy))
            || agent.is_some() && current(&line_state.memory)
            || in_memory_operation
            || flights.any(|flight| matches!(&flight.carried, Payload::Line(copy) if current(copy)))
    }

    /// Records that a write makes all copies of a line stale. `includes_memory` is false for a partial write in memory.
    fn mark_copies_stale(&mut self, system: &System, line: u8, includes_memory: bool) {
        // Atomic accesses are atomic without the coherence guarantee, too.
        self.mark_responses_stale(line);
        if !system.facts.coherent || !D::TRACKS_STALENESS {
            return;
        }
        let line_state = &mut self.lines[usize::from(line)];
        for remote in &mut line_state.remotes {
            remote.copy = D::mark_stale(&remote.copy);
        }
        if includes_memory {
            line_state.memory = D::mark_stale(&line_state.memory);
        }
        if let Operation::Sampled(copy) | Operation::Write(copy) = &mut line_state.operation {
            *copy = D::mark_stale(copy);
        }
        self.network.change(line, D::mark_stale);
    }

    /// Records that a store to the line is performed: the copies that atomic accesses have read before are outdated.
    fn mark_responses_stale(&mut self, line: u8) {
        let has_last_value = |remote: &Remote<D>| remote.stores.read == AtomicRead::Last;
        let line_state = &mut self.lines[usize::from(line)];
        if line_state.remotes.iter().any(has_last_value) {
            for remote in line_state
                .remotes
                .iter_mut()
                .filter(|remote| has_last_value(remote))
            {
                remote.stores.read = AtomicRead::Outdated;
            }
        }
    }
}
