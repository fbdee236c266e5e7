//! Resources of a unit, as far as they are observable from outside: what an event may lack, and what it must lack.
//!
//! A resource is allocated by a step, which is observable. It is freed when the resulting message has left the unit.
//! That becomes observable only later, at the home's ports; in between, the resource may be free or not.

use super::*;
use crate::lockstep::shapes::Shape;
use crate::rom;

/// Number of cycles after which a unit has certainly observed a transfer at the home's ports.
const OBSERVATION_CYCLES: u64 = 16;

/// Resource that an event can lack, in the order in which a unit reports it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum MissingResource {
    /// A way of the directory.
    Room,
    /// A read entry.
    Read,
    /// An entry for a local operation, or a lock.
    Local,
    /// The buffer of a message that is sent without a memory operation.
    Send,
    /// A write entry; or the event yields to a response.
    Write,
}

/// The use of a row by an event.
#[derive(Clone, Copy)]
pub(super) struct Use {
    pub event: Event,
    pub row: rom::Row,
    /// State of the line before the row.
    pub state: u16,
    /// True if the event is the directory's own operation.
    pub evict: bool,
    /// True if the pending operation, which the row may complete, is the directory's own.
    pub is_own_operation: bool,
}

impl Use {
    fn is_memory_event(&self) -> bool {
        matches!(self.event, Event::MemoryData(_) | Event::MemoryDone)
    }

    fn is_device_event(&self) -> bool {
        matches!(self.event, Event::Local(_)) && !self.evict
    }

    /// True if a message is sent although no memory operation has completed.
    fn immediate(&self) -> bool {
        self.row.grant.is_some() && !self.is_memory_event()
    }
}

/// End of the allocation of a resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Until {
    /// Until the event for which it is allocated is handled.
    Handled,
    /// Until this message has left, or until the device has been notified.
    Left(u32),
    Told,
    /// Until this cycle.
    Cycle(u64),
}

/// Allocated resources of one kind: the line of each, and the end of its allocation.
#[derive(Default)]
struct Kind(Vec<(usize, Until)>);

impl Kind {
    fn take(&mut self, at: usize, until: Until) {
        self.0.push((at, until));
    }

    /// Returns the number of resources that are certainly allocated, and of those that may be.
    fn taken(&mut self, cycle: u64) -> (usize, usize) {
        self.0
            .retain(|(_, until)| !matches!(until, Until::Cycle(end) if *end < cycle));
        let sure = self.0.iter().filter(|(_, until)| *until == Until::Handled);
        (sure.count(), self.0.len())
    }

    /// Changes the end of a line's allocation from `before` to `after`; `None` frees the resource.
    fn change_end(&mut self, at: usize, before: Until, after: Option<Until>) {
        let place = self.0.iter().position(|&place| place == (at, before));
        match (place, after) {
            (Some(place), Some(after)) => self.0[place].1 = after,
            (Some(place), None) => drop(self.0.remove(place)),
            (None, _) => {}
        }
    }
}

/// Resources of a unit.
#[derive(Default)]
pub(super) struct UnitResources {
    reads: Kind,
    writes: Kind,
    locals: Kind,
    immediate: Kind,
    locks: usize,
    /// Number of lines in each set of the unit's directory.
    sets: FxHashMap<u64, usize>,
}

impl Bench<'_> {
    /// Returns the resources that an event may lack, in order, and true if it certainly lacks the last of them.
    pub(super) fn missing_resources(
        &mut self,
        at: usize,
        used: &Use,
    ) -> (Vec<MissingResource>, bool) {
        let (unit, set) = (self.unit(at), self.set(at));
        let Shape {
            reads,
            writes,
            locals,
            waiting,
            ways,
            ..
        } = self.shape;
        let cycle = self.cycle;
        let can_yield = used.row.memory == rom::Memory::Write && self.can_yield(unit, used);
        let places = &mut self.places[unit];
        let full = |kind: &mut Kind, room: usize| {
            let (sure, perhaps) = kind.taken(cycle);
            (sure >= room, perhaps >= room)
        };
        let never = (false, false);
        let mut missing_resources = Vec::new();
        let mut lacks_one = |lack, (sure, perhaps): (bool, bool)| {
            if perhaps {
                missing_resources.push(lack);
            }
            sure
        };
        let enters = used.state == 0 && used.row.next != 0;
        let room = enters && places.sets.get(&set).is_some_and(|&lines| lines >= ways);
        let read = match used.row.memory {
            rom::Memory::Read => full(&mut places.reads, reads),
            _ => never,
        };
        let local = match used.event {
            Event::Local(operation) => {
                let locks = used.is_device_event()
                    && used.row.effect == rom::Effect::Take
                    && self.rom.locking[usize::from(operation)]
                    && places.locks >= waiting;
                let (sure, perhaps) = full(&mut places.locals, locals);
                (sure || locks, perhaps || locks)
            }
            _ => never,
        };
        let send = match used.immediate() {
            true => full(&mut places.immediate, 1),
            false => never,
        };
        let write = match used.row.memory {
            rom::Memory::Write => {
                let (sure, perhaps) = full(&mut places.writes, writes);
                (sure, perhaps || can_yield)
            }
            _ => never,
        };
        let sure = lacks_one(MissingResource::Room, (room, room))
            || lacks_one(MissingResource::Read, read)
            || lacks_one(MissingResource::Local, local)
            || lacks_one(MissingResource::Send, send)
            || lacks_one(MissingResource::Write, write);
        (missing_resources, sure)
    }

    /// True if the event may yield to a response that waits at the unit; memory events and responses never yield.
    fn can_yield(&self, unit: usize, used: &Use) -> bool {
        let response = |kind| self.protocol.class(kind) != Some(Class::Request);
        let first =
            used.is_memory_event() || matches!(used.event, Event::Message(kind) if response(kind));
        !first && self.responses[unit] > 0
    }

    fn set(&self, at: usize) -> u64 {
        self.lines[at].number % ((self.requests.len() as u64) << self.shape.set_bits)
    }

    /// Updates the resources after an event was consumed or refused. `flight` identifies the message that was granted.
    pub(super) fn update_resources(&mut self, at: usize, used: &Use, flight: Option<u32>) {
        let (unit, set) = (self.unit(at), self.set(at));
        // An endpoint observes the result directly; each unit has its turn to report it.
        let told = match self.behind.asks() {
            true => Until::Cycle(self.cycle + OBSERVATION_CYCLES + self.requests.len() as u64),
            false => Until::Told,
        };
        let places = &mut self.places[unit];
        let row = &used.row;
        if row.effect == rom::Effect::Refuse {
            if used.is_device_event() {
                places.locals.take(at, told);
            }
            return;
        }
        let after = flight.map(Until::Left);
        match used.event {
            Event::MemoryData(_) => places.reads.change_end(at, Until::Handled, after),
            Event::MemoryDone => places.writes.change_end(at, Until::Handled, after),
            Event::Unlock => places.locks = places.locks.saturating_sub(1),
            Event::Local(operation) => {
                places.locals.take(at, Until::Handled);
                places.locks +=
                    usize::from(used.is_device_event() && self.rom.locking[usize::from(operation)]);
            }
            _ => {}
        }
        if row.acknowledge && used.event != Event::Unlock {
            let after = (!used.is_own_operation).then_some(told);
            places.locals.change_end(at, Until::Handled, after);
        }
        match row.memory {
            rom::Memory::Read => places.reads.take(at, Until::Handled),
            rom::Memory::Write => places.writes.take(at, Until::Handled),
            rom::Memory::None => {}
        }
        if let (true, Some(after)) = (used.immediate(), after) {
            places.immediate.take(at, after);
        }
        let lines = places.sets.entry(set).or_default();
        match (used.state, row.next) {
            (0, 0) => {}
            (0, _) => *lines += 1,
            (_, 0) => *lines -= 1,
            _ => {}
        }
    }

    /// Frees resources after a message has left the home.
    pub(super) fn free_departed(&mut self, at: usize, flight: u32) {
        let heard = Some(Until::Cycle(self.cycle + OBSERVATION_CYCLES));
        let unit = self.unit(at);
        let places = &mut self.places[unit];
        for kind in [&mut places.reads, &mut places.writes, &mut places.immediate] {
            kind.change_end(at, Until::Left(flight), heard);
        }
    }

    /// Frees the resource of a local operation after the device was notified.
    pub(super) fn frees_local(&mut self, at: usize) {
        let heard = Some(Until::Cycle(self.cycle + OBSERVATION_CYCLES));
        let unit = self.unit(at);
        self.places[unit].locals.change_end(at, Until::Told, heard);
    }
}
