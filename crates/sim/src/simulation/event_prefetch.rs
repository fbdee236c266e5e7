//! Prefetches the state that upcoming events will access into the host's caches.
//!
//! With thousands of accesses in flight, each event concerns a line that has not been accessed for long. Without
//! prefetching, the simulation mostly waits for memory. This module does not affect simulated behaviour.

use cohkit_base::memory::prefetch_value;

use super::*;
use crate::agents::program::ConfigurationId;
use crate::components::tags::Tags;
use crate::message::CoreId;

/// Minimum number of accesses in flight for which prefetching pays. The state of fewer accesses stays in the host's
/// caches.
const MIN_ACCESSES: u64 = 1024;

/// True if enough accesses are in flight for prefetching to pay. `in_flight` is their maximum number.
pub(super) fn is_worthwhile(in_flight: u64) -> bool {
    in_flight >= MIN_ACCESSES
}

/// Prefetches the state that the receiver of a message accesses first. The message is in flight for longer than that
/// takes.
#[inline]
pub(crate) fn prefetch_receiver(
    context: &Context,
    message: &Message,
    ways: &Tags,
    directory: &Paged<ConfigurationId>,
    memory: &MainMemory,
) {
    if context.tables.platform.hosts.is_some() {
        return;
    }
    match message.to {
        HOME => {
            directory.prefetch(message.line);
            memory.prefetch(message.line);
        }
        cache => ways.prefetch_tags(cache.index(), message.line),
    }
    context.contents.oracle.prefetch(message.line);
}

/// Prefetches the state of the next events, in three stages: accesses and messages, then the lines and entries that
/// these refer to.
pub(super) fn prefetch_next_events(simulation: &mut Simulation) {
    let Simulation {
        local,
        tables,
        contents,
        caches,
        frontend,
        home,
        memory,
        interconnect,
        ..
    } = simulation;
    let LocalState {
        queue,
        accesses,
        messages,
        ..
    } = local;
    let state = NextEvents {
        accesses,
        messages,
        tables,
        oracle: &contents.oracle,
        caches,
        cores: &frontend.cores,
        home,
        memory,
        network: &interconnect.network,
        hosts: interconnect.hosts.as_deref(),
    };
    queue.announce_next(0, |event| state.prefetch_items(*event));
    queue.announce_next(1, |event| state.prefetch_lines(*event));
    queue.announce_next(2, |event| state.prefetch_entries(*event));
}

/// State that the next events access.
struct NextEvents<'s> {
    /// Outstanding accesses, to which events refer by index.
    accesses: &'s Pool<Pending>,
    /// Messages in flight, to which events refer by index.
    messages: &'s Pool<Message>,
    /// Constant properties of machine and protocol.
    tables: &'s Tables,
    /// Checker, which has a record of each line.
    oracle: &'s Oracle,
    /// Tags and entries of lines in caches.
    caches: &'s Caches,
    /// L1s and write buffers of cores.
    cores: &'s Cores,
    /// Units and directory.
    home: &'s Home,
    /// Copies of lines in memory.
    memory: &'s MainMemory,
    /// Links, if the machine has no hosts.
    network: &'s Network,
    /// Hosts, if the machine has some. Then messages use the links of the hosts only.
    hosts: Option<&'s Hosts>,
}

impl NextEvents<'_> {
    /// Prefetches the access or the message of an event.
    #[inline(always)]
    fn prefetch_items(&self, event: Event) {
        match event {
            Event::Core(index) | Event::Access(index) => self.accesses.prefetch(index),
            Event::Switch(index, _) | Event::Deliver(index) => self.messages.prefetch(index),
            _ => {}
        }
    }

    /// Prefetches the state of the line, the core and the links of an event.
    #[inline(always)]
    fn prefetch_lines(&self, event: Event) {
        match event {
            Event::Core(index) => self.prefetch_core(self.accesses[index].core),
            Event::Access(index) => {
                let access = &self.accesses[index];
                (self.caches.ways).prefetch_tags(access.cache.index(), access.line);
                self.oracle.prefetch(access.line);
                self.prefetch_core(access.core);
                if let Some(hosts) = self.hosts {
                    hosts.prefetch(access.cache, access.line);
                }
            }
            Event::Drained(core, _) => self.prefetch_core(core),
            Event::Switch(index, _) if self.hosts.is_none() => {
                let directions = self.network.links_of(&self.messages[index]);
                directions.into_iter().for_each(prefetch_value);
            }
            Event::Deliver(index) => {
                let message = &self.messages[index];
                match self.hosts {
                    None => prefetch_value(self.network.links_of(message)[1]),
                    Some(hosts) => hosts.prefetch(message.to, message.line),
                }
                match message.to {
                    HOME => self.prefetch_home(message.line),
                    cache => {
                        (self.caches.ways).prefetch_tags(cache.index(), message.line);
                        self.oracle.prefetch(message.line);
                    }
                }
            }
            Event::Read(line) | Event::Written(line) => self.prefetch_home(line),
            Event::Unit(number) => prefetch_value(&self.home.units[number as usize]),
            _ => {}
        }
    }

    /// Prefetches the entry of the line, the write buffer and the circuits of an event.
    #[inline(always)]
    fn prefetch_entries(&self, event: Event) {
        match event {
            Event::Core(index) => self.prefetch_buffer(self.accesses[index].core),
            Event::Access(index) => {
                let access = &self.accesses[index];
                (self.caches.ways).prefetch(access.cache.index(), access.line);
                self.prefetch_buffer(access.core);
            }
            Event::Drained(core, _) => self.prefetch_buffer(core),
            Event::Switch(index, _) if self.hosts.is_none() => {
                let message = &self.messages[index];
                let circuit = self.tables.kind_of(message).circuit;
                let directions = self.network.links_of(message).into_iter();
                directions.for_each(|direction| direction.prefetch(circuit));
            }
            Event::Deliver(index) => {
                let message = &self.messages[index];
                if self.hosts.is_none() {
                    let circuit = self.tables.kind_of(message).circuit;
                    self.network.links_of(message)[1].prefetch(circuit);
                }
                match message.to {
                    HOME => self.prefetch_configuration(message.line),
                    cache => (self.caches.ways).prefetch(cache.index(), message.line),
                }
            }
            Event::Read(line) | Event::Written(line) => self.prefetch_configuration(line),
            _ => {}
        }
    }

    /// Prefetches the unit, the directory entry and the copy in memory of a line.
    fn prefetch_home(&self, line: Line) {
        prefetch_value(&self.home.units[self.tables.unit_of(line)]);
        self.home.directory.prefetch(line);
        self.oracle.prefetch(line);
        self.memory.prefetch(line);
    }

    /// Prefetches the home's configuration of a line, whose directory entry has been prefetched.
    fn prefetch_configuration(&self, line: Line) {
        let configuration = self.home.directory.get(line);
        self.home.executor.program.prefetch(configuration);
    }

    /// Prefetches a core, if it has an L1 or a write buffer.
    fn prefetch_core(&self, core: CoreId) {
        if let Some(core) = self.cores.cores.get(core.index()) {
            prefetch_value(core);
        }
    }

    /// Prefetches the write buffer of a core, which has been prefetched.
    fn prefetch_buffer(&self, core: CoreId) {
        if let Some(core) = self.cores.cores.get(core.index()) {
            core.prefetch();
        }
    }
}
