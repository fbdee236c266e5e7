//! Memory operations whose end is not known when they start: those of a DRAM with a scheduler, and reads beyond the
//! limit of a slice.

use super::*;
use crate::attribution::Chain;
use crate::components::home_cache::HomeCache;
use cohkit_dram::{Controller, Finished};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::ops::Range;

/// Requester of a memory operation, and its notification.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Completion {
    /// Nothing waits for the end.
    None,
    /// A unit of the home receives the event, after the path from memory.
    Unit(Event),
    /// The event is scheduled at the end.
    Event(Event),
    /// A burst of reads receives the event, in the order of its reads: number of the burst, place of the read.
    Burst(u32, u32),
    /// A message of the home with this number contains the line, and leaves after the path from memory.
    Message(u32),
}

/// A memory operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation {
    pub line: Line,
    pub write: bool,
    /// Time from which the requester is ready. A unit's request then takes the path to memory.
    pub ready: Time,
    /// Time of the request.
    pub asked: Time,
    pub completion: Completion,
    /// With latency breakdown: steps up to the arrival at memory.
    pub chain: Option<Chain>,
    /// Arrival at memory, and the duration of the operation there without any other.
    pub arrival: Time,
    pub uncontended: Time,
    /// Time spent in the last-level cache of the home before that.
    pub cache_latency: Time,
}

/// Limit of the reads in flight between a slice and memory.
struct ReadLimit {
    limit: u32,
    /// Number of reads in flight of each slice.
    in_flight: Vec<u32>,
    /// Reads that wait, in the order of their requests.
    waiting: Vec<VecDeque<Operation>>,
}

/// Reads that complete in order.
struct Burst {
    /// Event of each read, and the time of its end once it is known.
    reads: Vec<(Event, Option<Time>)>,
    /// Number of reads that have completed, and the end of the last one.
    completed: usize,
    last_end: Time,
}

/// Last-level caches of the homes, and their latency.
pub(super) struct HomeCaches {
    caches: Vec<HomeCache>,
    latency: Time,
}

impl HomeCaches {
    fn new(platform: &Platform) -> Option<HomeCaches> {
        let cache = platform.home.llc.as_ref()?;
        Some(HomeCaches {
            caches: (0..platform.homes())
                .map(|_| HomeCache::new(cache))
                .collect(),
            latency: cache.latency.value,
        })
    }
}

/// Operations in progress, and the DRAMs that perform them.
pub(crate) struct DeferredMemory {
    /// A DRAM for each home; empty for a memory that determines the end of an operation when it starts.
    pub controllers: Vec<Controller>,
    operations: Pool<Operation>,
    /// Time of the next event of each DRAM.
    wakes: Vec<Time>,
    limit: Option<ReadLimit>,
    home_caches: Option<HomeCaches>,
    bursts: FxHashMap<u32, Burst>,
    next_burst: u32,
    /// Messages of the home whose line has been read, with the time at which they may leave.
    pub ready_messages: Vec<(u32, Time)>,
    finished: Vec<Finished>,
    /// Number of operations whose rows were open, and of operations for which a row had to be opened.
    pub row_hits: u64,
    pub row_misses: u64,
}

impl DeferredMemory {
    /// Creates idle DRAMs, and slices without reads. Returns none if every operation's end is known at its start.
    pub fn new(platform: &Platform, controllers: Vec<Controller>) -> Option<DeferredMemory> {
        let limit = platform.home.memory_in_flight.as_ref();
        let limit = limit.map_or(0, |limit| limit.value as u32);
        let slices = (platform.homes() * platform.home.slices.value) as usize;
        let limit = (limit > 0).then(|| ReadLimit {
            limit,
            in_flight: vec![0; slices],
            waiting: vec![VecDeque::new(); slices],
        });
        let home_caches = HomeCaches::new(platform);
        let is_needed = limit.is_some() || home_caches.is_some() || !controllers.is_empty();
        is_needed.then(|| DeferredMemory {
            wakes: vec![Time::MAX; controllers.len()],
            controllers,
            operations: Pool::default(),
            limit,
            home_caches,
            bursts: FxHashMap::default(),
            next_burst: 0,
            ready_messages: Vec::new(),
            finished: Vec::new(),
            row_hits: 0,
            row_misses: 0,
        })
    }

    /// Returns true if a unit's read may start now. Otherwise it is kept until an earlier one of its slice has ended.
    pub fn admit_read(&mut self, slice: usize, operation: Operation) -> bool {
        let Some(limit) = &mut self.limit else {
            return true;
        };
        let is_admitted = limit.in_flight[slice] < limit.limit;
        match is_admitted {
            true => limit.in_flight[slice] += 1,
            false => limit.waiting[slice].push_back(operation),
        }
        is_admitted
    }

    /// Ends a unit's read. Returns the next read of the slice that may start.
    pub fn end_read(&mut self, slice: usize) -> Option<Operation> {
        let limit = self.limit.as_mut()?;
        let next = limit.waiting[slice].pop_front();
        limit.in_flight[slice] -= u32::from(next.is_none());
        next
    }

    /// True if the homes have last-level caches.
    pub fn has_home_cache(&self) -> bool {
        self.home_caches.is_some()
    }

    /// Accesses the last-level cache of a home, if there is one. Returns the operation if it continues to memory, and a
    /// write of an evicted line. An operation that ends in the cache is finished.
    pub fn access_home_cache(
        &mut self,
        context: &mut Context,
        number: usize,
        mut operation: Operation,
    ) -> (Option<Operation>, Option<Operation>) {
        let Some(home_caches) = &mut self.home_caches else {
            return (Some(operation), None);
        };
        let access = home_caches.caches[number].access(operation.line, operation.write);
        operation.cache_latency = home_caches.latency;
        operation.arrival += home_caches.latency;
        let written_back = access.written_back.map(|line| Operation {
            line,
            write: true,
            completion: Completion::None,
            chain: None,
            ..operation
        });
        if access.is_hit || operation.write {
            self.finish(context, operation, operation.arrival);
            return (None, written_back);
        }
        (Some(operation), written_back)
    }

    /// Creates a burst of reads that complete in order. Returns its number.
    pub fn add_burst(&mut self, events: impl Iterator<Item = Event>) -> u32 {
        let number = self.next_burst;
        self.next_burst = number.wrapping_add(1);
        let burst = Burst {
            reads: events.map(|event| (event, None)).collect(),
            completed: 0,
            last_end: 0,
        };
        self.bursts.insert(number, burst);
        number
    }

    /// Submits an operation to the DRAM of a home. `bytes` are those of the line in this DRAM, `place`.
    pub fn submit(
        &mut self,
        context: &mut Context,
        number: usize,
        (place, bytes): (Line, Range<u32>),
        operation: Operation,
    ) {
        let controller = &mut self.controllers[number];
        let mut operation = operation;
        // Only the latency breakdown needs the duration.
        if operation.chain.is_some() {
            operation.uncontended = controller.uncontended(place).0;
            context.note_dram_use(number, controller, place);
        }
        let index = self.operations.insert(operation);
        controller.submit(operation.arrival, (place, bytes), operation.write, index);
        self.schedule_wake(context, number);
    }

    /// Schedules the next event of a DRAM, unless an earlier one is scheduled.
    fn schedule_wake(&mut self, context: &mut Context, number: usize) {
        let Some(next) = self.controllers[number].next() else {
            return;
        };
        if next < self.wakes[number] {
            self.wakes[number] = next;
            context.schedule(next, Event::Memory(number as u32));
        }
    }

    /// Lets a DRAM issue the commands that are due, and notifies the requesters of operations that end.
    pub fn advance(&mut self, context: &mut Context, number: usize) {
        let now = context.now();
        if self.wakes[number] > now {
            // An event for an earlier wake has done this one's work. It is not counted, since a run may end before it.
            context.tally.counters.events -= 1;
            return;
        }
        self.wakes[number] = Time::MAX;
        let mut finished = std::mem::take(&mut self.finished);
        self.controllers[number].advance(now, &mut finished);
        for Finished {
            number: index,
            end,
            missed,
        } in finished.drain(..)
        {
            self.row_hits += u64::from(!missed);
            self.row_misses += u64::from(missed);
            let operation = self.operations.remove(index);
            self.finish(context, operation, end);
        }
        self.finished = finished;
        self.schedule_wake(context, number);
    }

    /// Notifies the requester of an operation that ends at `end`, which may be in the future.
    pub fn finish(&mut self, context: &mut Context, operation: Operation, end: Time) {
        if operation.chain.is_some() {
            context.note_end_of_operation(&operation, end);
        }
        let response_latency = context.tables.times.path.1;
        match operation.completion {
            Completion::None => {}
            Completion::Unit(event) => context.schedule(end + response_latency, event),
            Completion::Event(event) => schedule_for_requester(context, end, event),
            Completion::Message(number) => {
                self.ready_messages.push((number, end + response_latency))
            }
            Completion::Burst(number, place) => self.end_read_of_burst(context, number, place, end),
        }
    }

    /// Ends a read of a burst, and notifies the requester of all reads that thereby complete in order.
    fn end_read_of_burst(&mut self, context: &mut Context, number: u32, place: u32, end: Time) {
        let Some(burst) = self.bursts.get_mut(&number) else {
            return;
        };
        burst.reads[place as usize].1 = Some(end);
        while let Some(&(event, Some(end))) = burst.reads.get(burst.completed) {
            burst.last_end = burst.last_end.max(end);
            burst.completed += 1;
            schedule_for_requester(context, burst.last_end, event);
        }
        if burst.completed == burst.reads.len() {
            self.bursts.remove(&number);
        }
    }
}

/// Schedules the event of a requester at the end of its operation. The application makes progress until then.
pub(super) fn schedule_for_requester(context: &mut Context, end: Time, event: Event) {
    if matches!(event, Event::Application(_)) {
        context.tally.postpone_watchdog(end);
    }
    context.schedule(end, event);
}
