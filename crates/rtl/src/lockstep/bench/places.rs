//! The places of a unit, as far as they are seen from outside: what an event may lack, and what it must.
//!
//! A place is taken with a step, which is seen. It is free again when what follows has left the unit, and that is seen only
//! at the home's ports, which comes later. In between it may be either.

use super::*;
use crate::lockstep::shapes::Shape;
use crate::rom;

/// Cycles after which the unit has surely heard of what has crossed the home's ports.
const HEARD: u64 = 16;

/// What an event can lack, in the order in which a unit says so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Lack {
    /// A way of the directory.
    Room,
    /// A place for a read.
    Read,
    /// A place for a local operation, or a lock.
    Local,
    /// The place of a message that leaves at once.
    Send,
    /// A place for a write; or a response goes first.
    Write,
}

/// A row that is used, and for what.
#[derive(Clone, Copy)]
pub(super) struct Use {
    pub event: Event,
    pub row: rom::Row,
    /// The line's state before.
    pub state: u16,
    /// It is the directory's own operation.
    pub evict: bool,
    /// So is the one in hand, which it may end.
    pub ends_own: bool,
}

impl Use {
    fn of_memory(&self) -> bool {
        matches!(self.event, Event::MemoryData(_) | Event::MemoryDone)
    }

    fn of_device(&self) -> bool {
        matches!(self.event, Event::Local(_)) && !self.evict
    }

    /// A message leaves although no operation of memory has ended.
    fn immediate(&self) -> bool {
        self.row.grant.is_some() && !self.of_memory()
    }
}

/// How long a place is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Until {
    /// What it is for is handled.
    Handled,
    /// This message has left, or the device was told.
    Left(u32),
    Told,
    /// This cycle.
    Cycle(u64),
}

/// The line of each place of a kind that is taken, and for how long.
#[derive(Default)]
struct Kind(Vec<(usize, Until)>);

impl Kind {
    fn take(&mut self, at: usize, until: Until) {
        self.0.push((at, until));
    }

    /// Those that are surely taken, and those that may be.
    fn taken(&mut self, cycle: u64) -> (usize, usize) {
        self.0
            .retain(|(_, until)| !matches!(until, Until::Cycle(end) if *end < cycle));
        let sure = self.0.iter().filter(|(_, until)| *until == Until::Handled);
        (sure.count(), self.0.len())
    }

    /// The place of a line is not taken as before: until then, or no longer.
    fn turns(&mut self, at: usize, before: Until, after: Option<Until>) {
        let place = self.0.iter().position(|&place| place == (at, before));
        match (place, after) {
            (Some(place), Some(after)) => self.0[place].1 = after,
            (Some(place), None) => drop(self.0.remove(place)),
            (None, _) => {}
        }
    }
}

/// The places of a unit.
#[derive(Default)]
pub(super) struct Places {
    reads: Kind,
    writes: Kind,
    locals: Kind,
    immediate: Kind,
    locks: usize,
    /// Lines in each set of its directory.
    sets: FxHashMap<u64, usize>,
}

impl Bench<'_> {
    /// What an event lacks by all that is seen: all that it may, in order, and whether it surely lacks the last of these.
    pub(super) fn lacks(&mut self, at: usize, used: &Use) -> (Vec<Lack>, bool) {
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
        let yields = used.row.memory == rom::Memory::Write && self.yields(unit, used);
        let places = &mut self.places[unit];
        let full = |kind: &mut Kind, room: usize| {
            let (sure, perhaps) = kind.taken(cycle);
            (sure >= room, perhaps >= room)
        };
        let never = (false, false);
        let mut lacks = Vec::new();
        let mut lacks_one = |lack, (sure, perhaps): (bool, bool)| {
            if perhaps {
                lacks.push(lack);
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
                let locks = used.of_device()
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
                (sure, perhaps || yields)
            }
            _ => never,
        };
        let sure = lacks_one(Lack::Room, (room, room))
            || lacks_one(Lack::Read, read)
            || lacks_one(Lack::Local, local)
            || lacks_one(Lack::Send, send)
            || lacks_one(Lack::Write, write);
        (lacks, sure)
    }

    /// Whether a response may be at the unit, which an event that is none lets go first.
    fn yields(&self, unit: usize, used: &Use) -> bool {
        let response = |kind| self.protocol.class(kind) != Some(Class::Request);
        let first =
            used.of_memory() || matches!(used.event, Event::Message(kind) if response(kind));
        !first && self.responses[unit] > 0
    }

    fn set(&self, at: usize) -> u64 {
        self.lines[at].number % ((self.requests.len() as u64) << self.shape.set_bits)
    }

    /// An event was taken, or was refused: what becomes of the places. `flight` is that of the message that was granted.
    pub(super) fn takes_places(&mut self, at: usize, used: &Use, flight: Option<u32>) {
        let (unit, set) = (self.unit(at), self.set(at));
        // An endpoint hears at once; each unit has its turn to tell it.
        let told = match self.behind.asks() {
            true => Until::Cycle(self.cycle + HEARD + self.requests.len() as u64),
            false => Until::Told,
        };
        let places = &mut self.places[unit];
        let row = &used.row;
        if row.effect == rom::Effect::Refuse {
            if used.of_device() {
                places.locals.take(at, told);
            }
            return;
        }
        let after = flight.map(Until::Left);
        match used.event {
            Event::MemoryData(_) => places.reads.turns(at, Until::Handled, after),
            Event::MemoryDone => places.writes.turns(at, Until::Handled, after),
            Event::Unlock => places.locks = places.locks.saturating_sub(1),
            Event::Local(operation) => {
                places.locals.take(at, Until::Handled);
                places.locks +=
                    usize::from(used.of_device() && self.rom.locking[usize::from(operation)]);
            }
            _ => {}
        }
        if row.acknowledge && used.event != Event::Unlock {
            let after = (!used.ends_own).then_some(told);
            places.locals.turns(at, Until::Handled, after);
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

    /// A message has left the home, so its unit hears of it.
    pub(super) fn frees(&mut self, at: usize, flight: u32) {
        let heard = Some(Until::Cycle(self.cycle + HEARD));
        let unit = self.unit(at);
        let places = &mut self.places[unit];
        for kind in [&mut places.reads, &mut places.writes, &mut places.immediate] {
            kind.turns(at, Until::Left(flight), heard);
        }
    }

    /// The device was told of an operation, so the unit hears of it.
    pub(super) fn frees_local(&mut self, at: usize) {
        let heard = Some(Until::Cycle(self.cycle + HEARD));
        let unit = self.unit(at);
        self.places[unit].locals.turns(at, Until::Told, heard);
    }
}
