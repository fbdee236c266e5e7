//! Prefetches the state that upcoming events will access into the host's caches.
//!
//! With thousands of accesses in flight, each event concerns a line that has not been accessed for long. Without
//! prefetching, the simulation mostly waits for memory. This module does not affect simulated behaviour.

use cohkit_base::memory::prefetch_value;

use super::{CheckedData, Event, Interconnect, LocalState, Simulation};
use crate::agents::home::{self, HomeState};
use crate::message::{Line, Message, HOME};

/// Minimum number of accesses in flight for which prefetching pays. The state of fewer accesses stays in the host's
/// caches.
const MIN_ACCESSES: u64 = 1024;

impl Simulation {
    /// True if enough accesses are in flight for prefetching to pay.
    pub(super) fn is_prefetch_worthwhile(in_flight: u64) -> bool {
        in_flight >= MIN_ACCESSES
    }

    /// Prefetches the state that the receiver of a message accesses first. The message is in flight for longer than
    /// that takes.
    #[inline]
    pub(super) fn prefetch_receiver(&self, message: &Message) {
        match message.to {
            HOME => {
                self.home.directory.prefetch(message.line);
                self.contents.data.prefetch(message.line);
            }
            cache => (self.caches.ways).prefetch_tags(cache.index(), message.line),
        }
        self.contents.oracle.prefetch(message.line);
    }

    /// Prefetches the state of the next events.
    pub(super) fn prefetch_next_events(&mut self) {
        let LocalState {
            queue,
            accesses,
            messages,
            ..
        } = &mut self.local;
        let (caches, cores, kinds) = (&self.caches, &self.cores, &self.tables.kinds);
        let CheckedData { data, oracle } = &self.contents;
        let Interconnect { network, hosts, .. } = &self.interconnect;
        let HomeState {
            program: home,
            units,
            directory,
            ..
        } = &self.home;
        // With hosts, messages use the links of the hosts only.
        let hosts = hosts.as_deref();
        let prefetch_home_state = |line: Line| {
            prefetch_value(&units[home::unit_of(units, line)]);
            directory.prefetch(line);
            oracle.prefetch(line);
            data.prefetch(line);
        };
        let prefetch_core = |number: u16| {
            if let Some(core) = cores.cores.get(usize::from(number)) {
                prefetch_value(core);
            }
        };
        let prefetch_buffer = |number: u16| {
            if let Some(core) = cores.cores.get(usize::from(number)) {
                core.prefetch();
            }
        };
        queue.announce_next(0, |event| match *event {
            Event::Core(index) | Event::Access(index) => accesses.prefetch(index),
            Event::Switch(index, _) | Event::Deliver(index) => messages.prefetch(index),
            _ => {}
        });
        queue.announce_next(1, |event| match *event {
            Event::Core(index) => {
                let access = &accesses[index];
                prefetch_core(access.core);
            }
            Event::Access(index) => {
                let access = &accesses[index];
                caches.ways.prefetch_tags(access.cache.index(), access.line);
                oracle.prefetch(access.line);
                prefetch_core(access.core);
                if let Some(hosts) = hosts {
                    hosts.prefetch(access.cache, access.line);
                }
            }
            Event::Drained(core, _) => {
                prefetch_core(core);
            }
            Event::Switch(index, _) if hosts.is_none() => network
                .links_of(&messages[index])
                .into_iter()
                .for_each(prefetch_value),
            Event::Deliver(index) => {
                let message = &messages[index];
                match hosts {
                    None => prefetch_value(network.links_of(message)[1]),
                    Some(hosts) => hosts.prefetch(message.to, message.line),
                }
                match message.to {
                    HOME => prefetch_home_state(message.line),
                    cache => {
                        caches.ways.prefetch_tags(cache.index(), message.line);
                        oracle.prefetch(message.line);
                    }
                }
            }
            Event::Read(line) | Event::Written(line) => prefetch_home_state(line),
            Event::Unit(number) => prefetch_value(&units[number as usize]),
            _ => {}
        });
        queue.announce_next(2, |event| match *event {
            Event::Core(index) => {
                let access = &accesses[index];
                prefetch_buffer(access.core);
            }
            Event::Access(index) => {
                let access = &accesses[index];
                caches.ways.prefetch(access.cache.index(), access.line);
                prefetch_buffer(access.core);
            }
            Event::Drained(core, _) => {
                prefetch_buffer(core);
            }
            Event::Switch(index, _) if hosts.is_none() => {
                let message = &messages[index];
                let circuit = kinds[message.kind.index()].circuit;
                let directions = network.links_of(message).into_iter();
                directions.for_each(|direction| direction.prefetch(circuit));
            }
            Event::Deliver(index) => {
                let message = &messages[index];
                if hosts.is_none() {
                    network.links_of(message)[1].prefetch(kinds[message.kind.index()].circuit);
                }
                match message.to {
                    HOME => home.prefetch(directory.get(message.line)),
                    cache => caches.ways.prefetch(cache.index(), message.line),
                }
            }
            Event::Read(line) | Event::Written(line) => home.prefetch(directory.get(line)),
            _ => {}
        });
    }
}
