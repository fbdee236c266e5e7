//! Components between a core and its shared cache: a write buffer, and a small cache that writes through (L1).
//!
//! Neither executes a controller: to the protocol, the shared cache is the caching agent. A store completes for its
//! core when the write buffer accepts it. It is performed, in coherence order, when the shared cache performs it.
//! Stores to a line that the buffer has not yet sent to the shared cache coalesce. While a line is in flight to the
//! shared cache, later stores to it wait, so that they are performed in order. A load is forwarded its own core's
//! latest store from the buffer. The L1 holds copies of lines that the shared cache has permission to read. It loses
//! them, at once, when the shared cache loses that permission or performs another core's store.

use cohkit_base::memory::prefetch;
use cohkit_protocol::controller::Access;
use rustc_hash::FxHashMap;

use super::thread::Threads;
use crate::components::tags::{Shape, Slot, Tags};
use crate::data::Copy;
use crate::explain::FailureKind;
use crate::kernel::Time;
use crate::message::{Agent, CoreId, Line};
use crate::simulation::groups::{Groups, KindQuantities};
use crate::simulation::observer::Fact;
use crate::simulation::{Context, Event, Pending, Purpose};
use crate::statistics::Stall;

/// Write buffer of a core.
pub(crate) struct Core {
    /// State and line of each entry of the write buffer, apart from the rest because searches read only these.
    entry_states: Vec<(Stage, Line)>,
    /// Number of free entries. A search for one is unnecessary if there is none.
    free_count: usize,
    /// Number of held entries, for the same reason.
    held_count: usize,
    /// Stores of each entry, in the same order.
    entries: Vec<BufferEntry>,
    /// Indices of the accesses that wait for the write buffer, in order of arrival.
    waiting_accesses: Vec<u32>,
}

/// An entry of a write buffer: the stores to one line.
#[derive(Clone, Default)]
struct BufferEntry {
    /// Latest value of each word stored.
    words: Vec<(u16, u64)>,
    /// Issue time of each coalesced store, in picoseconds.
    issue_times: Vec<Time>,
    /// Time at which the entry was allocated, in picoseconds.
    allocated_at: Time,
}

/// State of a write-buffer entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Stage {
    /// The entry is free.
    #[default]
    Free,
    /// The entry waits for an earlier one of the same line.
    Held,
    /// The entry is in flight to the shared cache.
    Sent,
    /// The stores have been performed, and the core has not been notified yet.
    Performed,
}

impl Stage {
    /// True if the stores have not been performed yet.
    fn is_pending(self) -> bool {
        matches!(self, Stage::Held | Stage::Sent)
    }
}

/// All cores of a machine with a component between them and their caches.
#[derive(Default)]
pub(crate) struct Cores {
    /// Cores by number; empty if nothing is between the cores and their caches.
    pub cores: Vec<Core>,
    /// L1s, through which stores write. The entry of a line is the number of its copy.
    l1s: Option<Tags>,
    /// Number of L1s in front of a cache that hold a line.
    holders: FxHashMap<(Agent, Line), u32>,
    /// Total number of entries of all write buffers.
    entry_count: usize,
    /// Earliest time at which the next access may leave each core, in picoseconds; empty if no kind has an issue
    /// interval.
    next_departures: Vec<Time>,
    /// Times of issue of stores that have ended but that no home has performed, by cache and message number.
    pub posted_stores: FxHashMap<(Agent, u32), Vec<Time>>,
}

impl Cores {
    /// Creates idle cores of each kind. There are none if nothing is between them and their caches, or if the workload
    /// never needs it.
    pub fn new(
        groups: &Groups,
        kind_quantities: &[KindQuantities],
        has_stores: bool,
        line_bytes: u32,
    ) -> Cores {
        let entries_of = |quantities: &KindQuantities| {
            (quantities.cores.write_buffer.value / u64::from(line_bytes)) as usize
        };
        let sets_of = |quantities: &KindQuantities| quantities.cores.l1_sets(line_bytes) as u32;
        let has_l1s = kind_quantities
            .iter()
            .any(|quantities| sets_of(quantities) > 0);
        let kinds = || groups.groups.iter().zip(kind_quantities);
        let entry_count = kinds()
            .map(|(group, quantities)| group.cores.len() * entries_of(quantities))
            .sum();
        let has_buffers = has_stores && entry_count > 0;
        let has_issue_interval = groups.groups.iter().any(|group| group.issue > 0);
        let paced_cores = if has_issue_interval {
            groups.cores()
        } else {
            0
        };
        let next_departures = vec![0; paced_cores.into()];
        if !has_l1s && !has_buffers {
            return Cores {
                entry_count,
                next_departures,
                ..Cores::default()
            };
        }
        let new_core = |entry_count| Core {
            entry_states: vec![(Stage::Free, 0); entry_count],
            free_count: entry_count,
            held_count: 0,
            entries: vec![BufferEntry::default(); entry_count],
            waiting_accesses: Vec::new(),
        };
        let cores = kinds().flat_map(|(group, quantities)| {
            group
                .cores
                .clone()
                .map(move |_| new_core(entries_of(quantities)))
        });
        let shapes = kinds().map(|(group, quantities)| Shape {
            caches: group.cores.len(),
            sets: sets_of(quantities).max(1),
            // A core without an L1 gets one without ways.
            ways: if sets_of(quantities) > 0 {
                quantities.cores.l1_ways.value as u32
            } else {
                0
            },
            hashed: false,
        });
        Cores {
            cores: cores.collect(),
            l1s: has_l1s.then(|| Tags::new(shapes)),
            holders: FxHashMap::default(),
            entry_count,
            next_departures,
            posted_stores: FxHashMap::default(),
        }
    }

    /// Returns the time at which an access that is ready at `time` leaves its core, and reserves that time. Both
    /// are in picoseconds.
    #[inline(always)]
    pub fn departure_time(&mut self, groups: &Groups, core: CoreId, time: Time) -> Time {
        if self.next_departures.is_empty() {
            return time;
        }
        let next_departure = &mut self.next_departures[core.index()];
        let departure = time.max(*next_departure);
        *next_departure = departure + groups.of_core(core).issue;
        departure
    }

    /// Total number of entries of all write buffers.
    pub fn buffer_entries(&self) -> u64 {
        self.entry_count as u64
    }
}

impl Core {
    /// Prefetches the write buffer into the host's caches.
    #[inline]
    pub fn prefetch(&self) {
        self.entry_states
            .iter()
            .step_by(8)
            .for_each(|state| prefetch(state));
    }

    /// Returns the latest value of a word that has not been performed yet.
    fn pending_value(&self, line: Line, word: u16) -> Option<u64> {
        // A held entry is younger than a sent one.
        let value = |stage: Stage| {
            let entry = &self.entries[self.find(line, stage)?];
            let (_, value) = entry
                .words
                .iter()
                .find(|&&(stored_word, _)| stored_word == word)?;
            Some(*value)
        };
        value(Stage::Held).or_else(|| value(Stage::Sent))
    }

    /// True if stores to a line have not been performed yet.
    fn has_pending_store(&self, line: Line) -> bool {
        let mut entry_states = self.entry_states.iter();
        entry_states.any(|&(stage, entry_line)| stage.is_pending() && entry_line == line)
    }

    /// Allocates a free entry for stores to a line. Returns its index and its state.
    fn allocate_entry(&mut self, line: Line, now: Time) -> Option<(usize, Stage)> {
        if self.free_count == 0 {
            return None;
        }
        let mut entry_states = self.entry_states.iter();
        let index = entry_states.position(|&(stage, _)| stage == Stage::Free)?;
        let stage = match self.find(line, Stage::Sent) {
            Some(_) => Stage::Held,
            None => Stage::Sent,
        };
        self.entry_states[index].1 = line;
        self.set_stage(index, stage);
        let entry = &mut self.entries[index];
        entry.words.clear();
        entry.issue_times.clear();
        entry.allocated_at = now;
        Some((index, stage))
    }

    /// Returns the index of the entry of a line in this state, if there is one. A line has at most one held and one
    /// sent entry.
    fn find(&self, line: Line, stage: Stage) -> Option<usize> {
        if stage == Stage::Held && self.held_count == 0 {
            return None;
        }
        let mut entry_states = self.entry_states.iter();
        entry_states.position(|&state| state == (stage, line))
    }

    /// Sets the state of an entry.
    fn set_stage(&mut self, index: usize, stage: Stage) {
        let previous = std::mem::replace(&mut self.entry_states[index].0, stage);
        for (counted, count) in [
            (Stage::Free, &mut self.free_count),
            (Stage::Held, &mut self.held_count),
        ] {
            *count += usize::from(stage == counted);
            *count -= usize::from(previous == counted);
        }
    }
}

/// Result of issuing an access at its core.
pub(crate) enum CoreResult {
    /// The access is on its way to its cache, or waits at its core.
    Pending,
    /// The access has completed at its core, with the value that a load has read.
    Completed {
        access: Pending,
        done: Time,
        value: Option<u64>,
    },
}

impl Cores {
    /// True if there is neither a write buffer nor an L1 in front of the caches.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.cores.is_empty()
    }

    /// True if a core has stores that have not been performed, or of whose completion it has not been notified.
    pub fn has_buffered_stores(&self, core: CoreId) -> bool {
        let core = self.cores.get(core.index());
        core.is_some_and(|core| {
            let mut stages = core.entry_states.iter().map(|&(stage, _)| stage);
            !core.waiting_accesses.is_empty() || stages.any(|stage| stage != Stage::Free)
        })
    }

    /// Issues an access at its core, whose thread is one of `threads` if there are any.
    pub fn issue(
        &mut self,
        context: &mut Context,
        index: u32,
        threads: Option<&Threads>,
    ) -> CoreResult {
        let access = context.local.accesses[index];
        let core = &mut self.cores[access.core.index()];
        // Accesses of a core to one line stay in order.
        let mut waiting = core.waiting_accesses.iter();
        let follows_waiting_access =
            waiting.any(|&index| context.local.accesses[index].line == access.line);
        match access.kind {
            Access::Load if !follows_waiting_access => {
                return self.issue_load(context, index, &access, threads)
            }
            Access::Store
                if !follows_waiting_access
                    && !core.entries.is_empty()
                    && access.purpose == Purpose::Core =>
            {
                return self.store_into_buffer(context, index, &access);
            }
            _ if follows_waiting_access || core.has_pending_store(access.line) => {
                context.observe(Fact::WaitsAtCore { access: index });
                core.waiting_accesses.push(index);
            }
            _ => send_to_cache(context, index),
        }
        CoreResult::Pending
    }

    /// Issues a load: forwards the value of the core's own store, or reads it from the L1, or sends the load to the
    /// cache.
    fn issue_load(
        &mut self,
        context: &mut Context,
        index: u32,
        access: &Pending,
        threads: Option<&Threads>,
    ) -> CoreResult {
        let Pending { line, word, .. } = *access;
        let core_index = access.core.index();
        let forwarded = self.cores[core_index].pending_value(line, word);
        let oracle = &context.contents.oracle;
        if !oracle.is_forwarded_value_correct(access.core, line, word, forwarded) {
            let text = format!("core {} does not see its own last store", access.core);
            context.fail(FailureKind::DataValue, line, text);
        }
        if forwarded.is_some() {
            context.tally.counters.forwarded += 1;
            return complete_load(context, index, forwarded);
        }
        let Some(l1s) = &mut self.l1s else {
            send_to_cache(context, index);
            return CoreResult::Pending;
        };
        let Some(slot) = l1s.find(core_index, line) else {
            context.tally.counters.l1_misses += 1;
            send_to_cache(context, index);
            return CoreResult::Pending;
        };
        l1s.touch(slot);
        let copy = l1_copy(l1s, slot);
        context.tally.counters.l1_hits += 1;
        context.check_load(access, copy, threads);
        let value = threads.map(|_| context.contents.data.word(line, copy, word));
        complete_load(context, index, value)
    }

    /// Puts a store into the write buffer, where it completes for its core. Waits at the core if the buffer is
    /// full.
    fn store_into_buffer(
        &mut self,
        context: &mut Context,
        index: u32,
        access: &Pending,
    ) -> CoreResult {
        let Pending { line, word, .. } = *access;
        let core = &mut self.cores[access.core.index()];
        let entry_index = match core.find(line, Stage::Held) {
            Some(entry_index) => {
                context.tally.counters.coalesced += 1;
                entry_index
            }
            None => {
                let Some((entry_index, stage)) = core.allocate_entry(line, context.now()) else {
                    context.tally.counters.stall(Stall::WriteBuffer);
                    core.waiting_accesses.push(index);
                    context.observe(Fact::WaitsAtCore { access: index });
                    return CoreResult::Pending;
                };
                if stage == Stage::Sent {
                    send_buffered_stores(context, access.core, line);
                }
                entry_index
            }
        };
        let entry = &mut core.entries[entry_index];
        entry.issue_times.push(access.issued);
        let mut words = entry.words.iter_mut();
        match words.find(|(stored_word, _)| *stored_word == word) {
            Some((_, value)) => *value = access.value,
            None => entry.words.push((word, access.value)),
        }
        let oracle = &mut context.contents.oracle;
        oracle.buffer(access.core, line, word, access.value);
        context.tally.counters.buffer_waited += context.local.now - access.issued;
        CoreResult::Completed {
            access: context.local.accesses.remove(index),
            done: context.now(),
            value: None,
        }
    }

    /// Performs the buffered stores to a line in a copy of it.
    pub fn perform_buffered_stores(
        &mut self,
        context: &mut Context,
        access: &Pending,
        mut copy: Copy,
    ) -> Copy {
        let core = &mut self.cores[access.core.index()];
        let Some(entry_index) = core.find(access.line, Stage::Sent) else {
            return copy;
        };
        let words = std::mem::take(&mut core.entries[entry_index].words);
        for &(word, value) in &words {
            (copy, _) = context.write_words(access.line, copy, word..word + 1, value);
            // If the home performs the stores, loads are forwarded from the buffer until the cache is notified.
            if !access.sent {
                context
                    .contents
                    .oracle
                    .unbuffer(access.core, access.line, word, value);
            }
        }
        self.cores[access.core.index()].entries[entry_index].words = words;
        copy
    }

    /// Records that buffered stores in flight to the shared cache are visible to all agents from now on.
    pub fn record_visible_buffer(&self, context: &mut Context, access: &Pending) {
        let core = &self.cores[access.core.index()];
        if let Some(entry_index) = core.find(access.line, Stage::Sent) {
            context.record_visible_stores(&core.entries[entry_index].issue_times);
        }
    }

    /// Completes a store at its cache. `issued` has the issue time of each store that the access stands for, in
    /// picoseconds. Stores whose bytes were sent and not performed yet become visible to others when the home
    /// performs them.
    pub fn complete_store(&mut self, context: &mut Context, access: &Pending, issued: &[Time]) {
        match (access.sent, access.performed) {
            (true, false) => {
                let store = (access.cache, access.flight);
                self.posted_stores.insert(store, issued.to_vec());
            }
            (true, true) => {}
            (false, _) => context.record_visible_stores(issued),
        }
    }

    /// Completes buffered stores at the shared cache. Their core is notified at a time that is not in the past.
    pub fn complete_drain(
        &mut self,
        context: &mut Context,
        access: &Pending,
        hit: bool,
        performed: bool,
        completion: Time,
    ) {
        let core = &mut self.cores[access.core.index()];
        let Some(entry_index) = core.find(access.line, Stage::Sent) else {
            return;
        };
        core.set_stage(entry_index, Stage::Performed);
        let entry = &mut core.entries[entry_index];
        let issue_times = std::mem::take(&mut entry.issue_times);
        let store_count = issue_times.len() as u64;
        if access.sent {
            for &(word, value) in &entry.words {
                context
                    .contents
                    .oracle
                    .unbuffer(access.core, access.line, word, value);
            }
        }
        context.tally.in_flight -= store_count;
        context.tally.postpone_watchdog(context.local.now);
        if performed {
            self.complete_store(context, access, &issue_times);
            context.count_performed(store_count, completion);
            context.tally.counters.hits += if hit { store_count } else { 0 };
        } else {
            context.tally.counters.skipped += store_count;
        }
        self.cores[access.core.index()].entries[entry_index].issue_times = issue_times;
        context.schedule(completion, Event::Drained(access.core, entry_index as u16));
    }

    /// Frees an entry whose stores have been performed, and sends the next stores to its line. Returns the accesses that
    /// wait at the core. Those that must keep waiting do so in the same order.
    pub fn release_entry(
        &mut self,
        context: &mut Context,
        core: CoreId,
        entry_index: u16,
    ) -> Vec<u32> {
        let buffer = &mut self.cores[core.index()];
        let entry_index = usize::from(entry_index);
        let (_, line) = buffer.entry_states[entry_index];
        let allocated_at = buffer.entries[entry_index].allocated_at;
        context.tally.counters.buffered += context.local.now - allocated_at;
        buffer.set_stage(entry_index, Stage::Free);
        if let (Some(held_index), None) = (
            buffer.find(line, Stage::Held),
            buffer.find(line, Stage::Sent),
        ) {
            buffer.set_stage(held_index, Stage::Sent);
            send_buffered_stores(context, core, line);
        }
        std::mem::take(&mut buffer.waiting_accesses)
    }

    /// Takes back the empty list from [`Cores::release_entry`], unless accesses wait again.
    pub fn reuse_waiting_list(&mut self, core: CoreId, list: Vec<u32>) {
        let waiting = &mut self.cores[core.index()].waiting_accesses;
        if waiting.is_empty() {
            *waiting = list;
        }
    }

    /// Fills a core's L1 with a line that its load has found in the shared cache.
    pub fn fill_l1(&mut self, context: &mut Context, access: &Pending, copy: Copy) {
        let (line, cache) = (access.line, access.cache);
        let (core, Some(l1s)) = (access.core.index(), &mut self.l1s) else {
            return;
        };
        let slot = match (l1s.find(core, line), l1s.vacancy(core, line)) {
            // The line may have arrived with another access meanwhile; its bytes are then the same.
            (Some(_), _) => return,
            (None, Some(slot)) => slot,
            (None, None) => {
                let Some(slot) = l1s.candidates(core, line).next() else {
                    return;
                };
                if let Some(victim) = l1s.line(slot) {
                    context.contents.data.release(l1_copy(l1s, slot));
                    l1s.clear(slot);
                    decrement_holders(&mut self.holders, (cache, victim));
                }
                slot
            }
        };
        l1s.insert(slot, line);
        l1s.set_entry(slot, [context.contents.data.share(copy).number(), 0, 0, 0]);
        *self.holders.entry((cache, line)).or_insert(0) += 1;
    }

    /// Invalidates a line in the L1s of a cache, because it has been written or its read permission is lost. The L1 of
    /// the core that wrote keeps the line with the new bytes.
    pub fn invalidate_in_l1s(
        &mut self,
        context: &mut Context,
        cache: Agent,
        line: Line,
        written: Option<(CoreId, Copy)>,
    ) {
        let Some(mut remaining_holders) = self.holders.remove(&(cache, line)) else {
            return;
        };
        let core_indices = context.tables.groups.of_cache(cache).cores_of(cache);
        let Some(l1s) = &mut self.l1s else {
            return;
        };
        for core_index in core_indices {
            let Some(slot) = l1s.find(core_index, line) else {
                continue;
            };
            context.contents.data.release(l1_copy(l1s, slot));
            match written {
                Some((core, copy)) if core.index() == core_index => {
                    l1s.set_entry(slot, [context.contents.data.share(copy).number(), 0, 0, 0]);
                    self.holders.insert((cache, line), 1);
                }
                _ => l1s.clear(slot),
            }
            remaining_holders -= 1;
            if remaining_holders == 0 {
                break;
            }
        }
    }
}

/// Sends an access to its cache.
fn send_to_cache(context: &mut Context, index: u32) {
    let core = context.local.accesses[index].core;
    let arrival = context.now() + context.tables.groups.of_core(core).request;
    context.schedule(arrival, Event::Access(index));
}

/// Completes a load that is performed in front of its cache.
fn complete_load(context: &mut Context, index: u32, value: Option<u64>) -> CoreResult {
    let access = context.local.accesses.remove(index);
    let done = context.now() + context.tables.groups.of_core(access.core).l1_hit;
    context.tally.in_flight -= 1;
    context.count_performed(1, done);
    CoreResult::Completed {
        access,
        done,
        value,
    }
}

/// Sends the buffered stores to a line to the shared cache.
fn send_buffered_stores(context: &mut Context, core: CoreId, line: Line) {
    let cache = context.tables.groups.cache_of(core);
    let now = context.now();
    let access = Pending::new(line, Access::Store, core, cache, Purpose::Drain, now);
    let index = context.local.accesses.insert(access);
    send_to_cache(context, index);
}

/// Returns the copy of a line in an L1.
fn l1_copy(l1s: &Tags, slot: Slot) -> Copy {
    let [number, ..] = l1s.entry(slot);
    Copy::from_number(number)
}

/// Subtracts one from the number of L1s of a cache that hold a line.
fn decrement_holders(holders: &mut FxHashMap<(Agent, Line), u32>, key: (Agent, Line)) {
    if let Some(count) = holders.get_mut(&key) {
        *count -= 1;
        if *count == 0 {
            holders.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::components::traffic::{Pattern, Workload};
    use crate::oracle::Level;
    use crate::simulation::{context, Setup, Simulation};

    /// Protocol in which all accesses take a line for reading and writing.
    const TEXT: &str = "
protocol vi
line 64 bytes
channels { request remote -> home; victim remote -> home; answer remote -> home
           forward home -> remote; grant home -> remote; ordered forward, grant; ordered request, victim }
messages { request: Get; victim: Put (line, dirty); answer: Gone (line, dirty), Nothing
           forward: Fetch; grant: Data (line) }
remote cache {
  states { I; V reads writes dirty; IV waits Data }
  I    | load store | send Get     | IV
  V    | evict      | send Put     | I
  IV   | Data       |              | V
  V    | Fetch      | send Gone    | I
  I IV | Fetch      | send Nothing | stay
}
home { on Get(r) { ensure others(r) == I; grant r V with Data }
       reach I with Fetch }
system one { remotes 1; lines 1 }
";

    /// Returns a machine whose only core has loaded four lines, which are in its L1.
    fn machine_after_loads() -> Simulation {
        let protocol = cohkit_protocol::text::parse(TEXT).expect("the text is right");
        let mut platform = crate::platform::Platform::torture(1);
        platform.cores.l1_size.value = 8 * 64;
        platform.cores.write_buffer.value = 2 * 64;
        platform.cache.ways.value = 4;
        let mut workload = Workload::pass(Pattern::Chunked, Access::Load, 4, 1, 1);
        workload.mix.push((Access::Store, 0));
        let mut setup = Setup::new(protocol, platform, workload).expect("there is a home");
        setup.oracle = Level::Bytes;
        let mut simulation = Simulation::new(&setup, None).expect("it makes sense");
        simulation.run().expect("it runs");
        simulation
    }

    /// Returns the failure, if any, when the core accesses word 0 of line 1 now.
    fn failure_after(simulation: &mut Simulation, kind: Access) -> Option<FailureKind> {
        issue_access(simulation, kind, 1);
        simulation.failure.take().map(|failure| failure.kind)
    }

    /// Issues an access of the core to word 0 of a line now.
    fn issue_access(simulation: &mut Simulation, kind: Access, line: Line) {
        simulation.tally.in_flight += 1;
        let now = simulation.local.now;
        let index = simulation.local.accesses.insert(Pending {
            value: 7,
            ..Pending::new(line, kind, CoreId(0), Agent(0), Purpose::Core, now)
        });
        let mut context = context!(simulation);
        simulation.frontend.issue_at_core(&mut context, index);
    }

    /// A store that finds the write buffer full stays before its core's later accesses to the line.
    #[test]
    fn a_load_does_not_pass_a_store_that_waits() {
        let mut simulation = machine_after_loads();
        for line in 0..3 {
            issue_access(&mut simulation, Access::Store, line);
        }
        for (kind, line) in [(Access::Load, 2), (Access::WriteLine, 2), (Access::Load, 3)] {
            issue_access(&mut simulation, kind, line);
        }
        let waiting = simulation.frontend.cores.cores[0].waiting_accesses.iter();
        let waiting = waiting.map(|&index| simulation.local.accesses[index]);
        let waiting: Vec<_> = waiting.map(|access| (access.kind, access.line)).collect();
        let kinds = [Access::Store, Access::Load, Access::WriteLine];
        assert_eq!(waiting, kinds.map(|kind| (kind, 2)));
        assert_eq!(simulation.tally.counters.l1_hits, 1);
        // Line 0 has been performed. Line 2 takes its entry, and the load finds it there.
        let mut context = context!(simulation);
        simulation.frontend.handle_drain(&mut context, CoreId(0), 0);
        assert_eq!(simulation.frontend.cores.cores[0].waiting_accesses.len(), 1);
        assert_eq!(simulation.tally.counters.forwarded, 1);
    }

    /// Fault: a line is written without the invalidation of its copy in the L1. The oracle must report the next
    /// load.
    #[test]
    fn a_stale_line_in_an_l1_is_seen() {
        let mut simulation = machine_after_loads();
        assert_eq!(failure_after(&mut simulation, Access::Load), None);
        assert_eq!(simulation.tally.counters.l1_hits, 1);
        simulation.contents.oracle.write(1, 0..1, 99);
        assert_eq!(
            failure_after(&mut simulation, Access::Load),
            Some(FailureKind::DataValue)
        );
        // A load is correct if the L1 has lost the stale line before.
        let mut context = context!(simulation);
        (simulation.frontend.cores).invalidate_in_l1s(&mut context, Agent(0), 1, None);
        assert_eq!(failure_after(&mut simulation, Access::Load), None);
        assert_eq!(simulation.tally.counters.l1_hits, 2);
    }

    /// Faults: the value in the write buffer is changed, then the entry is freed. The oracle must report the loads
    /// that follow.
    #[test]
    fn a_core_that_forgets_its_store_is_seen() {
        let mut simulation = machine_after_loads();
        assert_eq!(failure_after(&mut simulation, Access::Store), None);
        assert_eq!(failure_after(&mut simulation, Access::Load), None);
        assert_eq!(simulation.tally.counters.forwarded, 1);
        simulation.frontend.cores.cores[0].entries[0].words[0].1 = 8;
        assert_eq!(
            failure_after(&mut simulation, Access::Load),
            Some(FailureKind::DataValue)
        );
        simulation.frontend.cores.cores[0].set_stage(0, Stage::Free);
        assert_eq!(
            failure_after(&mut simulation, Access::Load),
            Some(FailureKind::DataValue)
        );
    }

    /// Afterwards, neither the count of holders nor an L1 has any line left.
    #[test]
    fn all_l1s_of_a_cache_lose_a_line() {
        let mut simulation = machine_after_loads();
        assert_eq!(simulation.frontend.cores.holders.len(), 4);
        for line in 0..4 {
            let mut context = context!(simulation);
            (simulation.frontend.cores).invalidate_in_l1s(&mut context, Agent(0), line, None);
        }
        assert!(simulation.frontend.cores.holders.is_empty());
        let l1s = simulation
            .frontend
            .cores
            .l1s
            .as_ref()
            .expect("there are some");
        assert_eq!(l1s.lines(), 0);
    }
}
