//! Resources of the home's units, as far as they are observable from outside: what an event may lack, and what it must
//! lack.
//!
//! A resource is allocated by a step, which is observable. It is freed when the resulting message has left the unit.
//! That becomes observable only later, at the home's ports; in between, the resource may be free or not.

use super::context::Context;
use super::reference::Reference;
use crate::lockstep::shapes::Shape;
use crate::rom;
use cohkit_protocol::controller::Event;
use rustc_hash::FxHashMap;

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
pub(super) struct RowUse {
    /// Event that uses the row.
    pub event: Event,
    /// Row of the event in the state of the line.
    pub row: rom::Row,
    /// State of the line before the row.
    pub state: u16,
    /// True if the event is the directory's own operation.
    pub evict: bool,
    /// True if the operation that the row starts or completes is the directory's own.
    pub is_own_operation: bool,
}

impl RowUse {
    /// True if the event is memory's answer.
    fn is_memory_event(&self) -> bool {
        matches!(self.event, Event::MemoryData(_) | Event::MemoryDone)
    }

    /// True if the event is a local operation that the device has requested.
    fn is_device_event(&self) -> bool {
        matches!(self.event, Event::Local(_)) && !self.evict
    }

    /// True if the event may yield to a response that waits at the unit; memory events and responses never yield.
    fn can_yield(&self, reference: &Reference) -> bool {
        let is_response = |kind| !reference.is_request(kind);
        self.row.memory == rom::Memory::Write
            && !self.is_memory_event()
            && !matches!(self.event, Event::Message(kind) if is_response(kind))
    }

    /// True if a message is sent although no memory operation has completed.
    fn sends_immediately(&self) -> bool {
        self.row.grant.is_some() && !self.is_memory_event()
    }
}

/// End of the allocation of a resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum AllocationEnd {
    /// Until the event for which it is allocated is handled.
    Handled,
    /// Until this message, by its number in the histories, has left.
    Departed(u32),
    /// Until the device has been notified.
    Notified,
    /// Until this cycle.
    Cycle(u64),
}

/// An allocated resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Allocation {
    /// Line for which it is allocated.
    line_index: usize,
    /// End of the allocation.
    end: AllocationEnd,
}

/// Lack of a resource, as far as it is observable from outside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Shortage {
    /// True if the resource is certainly missing.
    is_certain: bool,
    /// True if the resource may be missing.
    is_possible: bool,
}

impl Shortage {
    /// The resource is not needed, or certainly free.
    const NONE: Shortage = Shortage::known(false);

    /// Returns a shortage that is observable at once.
    const fn known(is_missing: bool) -> Shortage {
        Shortage {
            is_certain: is_missing,
            is_possible: is_missing,
        }
    }
}

/// Resources that an event lacks.
pub(super) struct MissingResources {
    /// Resources that may be missing, in the order in which a unit reports them.
    pub possible: Vec<MissingResource>,
    /// True if the last of them is certainly missing.
    pub is_certain: bool,
}

/// Allocated resources of one kind.
#[derive(Default)]
struct Allocations(Vec<Allocation>);

impl Allocations {
    /// Allocates a resource for a line.
    fn allocate(&mut self, line_index: usize, end: AllocationEnd) {
        self.0.push(Allocation { line_index, end });
    }

    /// Frees the resources whose allocation has ended, and returns whether all of `capacity` resources are in use.
    fn shortage(&mut self, cycle: u64, capacity: usize) -> Shortage {
        self.0.retain(
            |allocation| !matches!(allocation.end, AllocationEnd::Cycle(end) if end < cycle),
        );
        let certain = self
            .0
            .iter()
            .filter(|allocation| allocation.end == AllocationEnd::Handled);
        Shortage {
            is_certain: certain.count() >= capacity,
            is_possible: self.0.len() >= capacity,
        }
    }

    /// Changes the end of a line's allocation from `old_end` to `new_end`; `None` frees the resource.
    fn change_end(
        &mut self,
        line_index: usize,
        old_end: AllocationEnd,
        new_end: Option<AllocationEnd>,
    ) {
        let allocation = self.0.iter().position(|allocation| {
            allocation.line_index == line_index && allocation.end == old_end
        });
        match (allocation, new_end) {
            (Some(index), Some(new_end)) => self.0[index].end = new_end,
            (Some(index), None) => drop(self.0.remove(index)),
            (None, _) => {}
        }
    }
}

/// Observable state of a unit.
#[derive(Default)]
struct Unit {
    /// Outstanding requests that the home has not consumed.
    requests: usize,
    /// Other messages that have arrived and are not consumed.
    responses: usize,
    /// Reads of memory: each until memory's answer is handled and the resulting message has left.
    reads: Allocations,
    /// Writes of memory, as for reads.
    writes: Allocations,
    /// Local operations in progress, and those of which the device has yet to be notified.
    locals: Allocations,
    /// Buffer for a message that is sent without a memory operation.
    immediate: Allocations,
    /// Number of locks that the device holds or has requested.
    locks: usize,
    /// Number of lines in each set of the unit's directory, by the number that `directory_set` returns.
    sets: FxHashMap<u64, usize>,
}

/// The units of both slices.
pub(super) struct Units {
    /// Units of both slices, by the number that `Reference::unit` returns.
    units: Vec<Unit>,
    /// Maximum number of outstanding requests of a unit.
    max_requests: usize,
}

impl Units {
    /// Creates idle units, and determines from the lines of the run whether requests must be limited.
    pub fn new(context: &Context) -> Units {
        let reference = &context.reference;
        let shape = &reference.shape;
        // A directory with room for all lines needs no limit on requests. In a smaller one, a line may be resident
        // whose upgrade is in flight. That upgrade must not be behind more requests than a unit can defer.
        let mut sets: FxHashMap<u64, usize> = FxHashMap::default();
        for line in &context.lines {
            *sets
                .entry(directory_set(reference, line.number))
                .or_default() += 1;
        }
        let all_lines_fit = sets.values().all(|&lines| lines <= shape.ways);
        Units {
            units: (0..reference.units()).map(|_| Unit::default()).collect(),
            max_requests: match all_lines_fit {
                true => usize::MAX,
                false => shape.max_deferred,
            },
        }
    }

    /// Records a request of the remote. Returns false if the unit has the maximum number of requests.
    pub fn begin_request(&mut self, unit: usize) -> bool {
        let requests = &mut self.units[unit].requests;
        let is_possible = *requests < self.max_requests;
        *requests += usize::from(is_possible);
        is_possible
    }

    /// Records that a message has arrived at its unit.
    pub fn record_arrival(&mut self, unit: usize, is_request: bool) {
        if !is_request {
            self.units[unit].responses += 1;
        }
    }

    /// Records that a unit has consumed a message.
    pub fn record_consumption(&mut self, unit: usize, is_request: bool) {
        match is_request {
            true => self.units[unit].requests -= 1,
            false => self.units[unit].responses -= 1,
        }
    }

    /// Records that a unit has dropped an illegal event. Illegal requests are not counted.
    pub fn record_drop(&mut self, unit: usize, is_request: bool) {
        if !is_request {
            self.units[unit].responses -= 1;
        }
    }

    /// Returns the resources that an event lacks in this cycle.
    pub fn missing_resources(
        &mut self,
        context: &Context,
        line_index: usize,
        used: &RowUse,
    ) -> MissingResources {
        let mut missing = MissingResources {
            possible: Vec::new(),
            is_certain: false,
        };
        for (resource, shortage) in self.shortages(context, line_index, used) {
            if shortage.is_possible {
                missing.possible.push(resource);
            }
            // A unit reports the first missing resource, so those after a certain shortage are irrelevant.
            if shortage.is_certain {
                missing.is_certain = true;
                break;
            }
        }
        missing
    }

    /// Returns the shortage of each resource for an event, in the order in which a unit reports them.
    fn shortages(
        &mut self,
        context: &Context,
        line_index: usize,
        used: &RowUse,
    ) -> [(MissingResource, Shortage); 5] {
        let reference = &context.reference;
        let set = directory_set(reference, context.lines[line_index].number);
        let Shape {
            reads,
            writes,
            locals,
            max_deferred,
            ways,
            ..
        } = reference.shape;
        let cycle = context.cycle;
        let unit = &mut self.units[context.unit(line_index)];
        let is_new_line = used.state == 0 && used.row.next != 0;
        let way =
            Shortage::known(is_new_line && unit.sets.get(&set).is_some_and(|&lines| lines >= ways));
        let read = match used.row.memory {
            rom::Memory::Read => unit.reads.shortage(cycle, reads),
            _ => Shortage::NONE,
        };
        let local = match used.event {
            Event::Local(operation) => {
                let no_lock = used.is_device_event()
                    && used.row.effect == rom::Effect::Take
                    && reference.rom.locking[usize::from(operation)]
                    && unit.locks >= max_deferred;
                let entry = unit.locals.shortage(cycle, locals);
                Shortage {
                    is_certain: entry.is_certain || no_lock,
                    is_possible: entry.is_possible || no_lock,
                }
            }
            _ => Shortage::NONE,
        };
        let send = match used.sends_immediately() {
            true => unit.immediate.shortage(cycle, 1),
            false => Shortage::NONE,
        };
        let write = match used.row.memory {
            rom::Memory::Write => {
                let entry = unit.writes.shortage(cycle, writes);
                let can_yield = unit.responses > 0 && used.can_yield(reference);
                Shortage {
                    is_possible: entry.is_possible || can_yield,
                    ..entry
                }
            }
            _ => Shortage::NONE,
        };
        [
            (MissingResource::Room, way),
            (MissingResource::Read, read),
            (MissingResource::Local, local),
            (MissingResource::Send, send),
            (MissingResource::Write, write),
        ]
    }

    /// Updates the resources after an event was consumed or refused. `flight` identifies the message that was granted.
    pub fn update(
        &mut self,
        context: &Context,
        line_index: usize,
        used: &RowUse,
        flight: Option<u32>,
    ) {
        let reference = &context.reference;
        let set = directory_set(reference, context.lines[line_index].number);
        // An endpoint observes the result directly; each unit has its turn to report it.
        let notified = match reference.shape.endpoint.drives_local_ports() {
            true => {
                let turns = reference.units() as u64;
                AllocationEnd::Cycle(context.cycle + OBSERVATION_CYCLES + turns)
            }
            false => AllocationEnd::Notified,
        };
        let resources = &mut self.units[context.unit(line_index)];
        let row = &used.row;
        if row.effect == rom::Effect::Refuse {
            if used.is_device_event() {
                resources.locals.allocate(line_index, notified);
            }
            return;
        }
        let departure = flight.map(AllocationEnd::Departed);
        match used.event {
            Event::MemoryData(_) => {
                resources
                    .reads
                    .change_end(line_index, AllocationEnd::Handled, departure)
            }
            Event::MemoryDone => {
                resources
                    .writes
                    .change_end(line_index, AllocationEnd::Handled, departure)
            }
            Event::Unlock => resources.locks = resources.locks.saturating_sub(1),
            Event::Local(operation) => {
                resources
                    .locals
                    .allocate(line_index, AllocationEnd::Handled);
                let locks = reference.rom.locking[usize::from(operation)];
                resources.locks += usize::from(used.is_device_event() && locks);
            }
            _ => {}
        }
        if row.acknowledge && used.event != Event::Unlock {
            let end = (!used.is_own_operation).then_some(notified);
            resources
                .locals
                .change_end(line_index, AllocationEnd::Handled, end);
        }
        match row.memory {
            rom::Memory::Read => resources.reads.allocate(line_index, AllocationEnd::Handled),
            rom::Memory::Write => resources
                .writes
                .allocate(line_index, AllocationEnd::Handled),
            rom::Memory::None => {}
        }
        if let (true, Some(departure)) = (used.sends_immediately(), departure) {
            resources.immediate.allocate(line_index, departure);
        }
        let lines = resources.sets.entry(set).or_default();
        match (used.state, row.next) {
            (0, 0) => {}
            (0, _) => *lines += 1,
            (_, 0) => *lines -= 1,
            _ => {}
        }
    }

    /// Frees resources after a message has left the home.
    pub fn free_departed(&mut self, context: &Context, line_index: usize, flight: u32) {
        let observed = Some(AllocationEnd::Cycle(context.cycle + OBSERVATION_CYCLES));
        let resources = &mut self.units[context.unit(line_index)];
        for kind in [
            &mut resources.reads,
            &mut resources.writes,
            &mut resources.immediate,
        ] {
            kind.change_end(line_index, AllocationEnd::Departed(flight), observed);
        }
    }

    /// Frees the resource of a local operation after the device was notified.
    pub fn free_local(&mut self, context: &Context, line_index: usize) {
        let observed = Some(AllocationEnd::Cycle(context.cycle + OBSERVATION_CYCLES));
        self.units[context.unit(line_index)].locals.change_end(
            line_index,
            AllocationEnd::Notified,
            observed,
        );
    }
}

/// Returns the set of the directory that a line belongs to, over all units.
fn directory_set(reference: &Reference, number: u64) -> u64 {
    number % ((reference.units() as u64) << reference.shape.set_bits)
}
