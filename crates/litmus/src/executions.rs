//! Candidate executions of a program: the write that each read reads from, and the coherence order of each location.
//!
//! The axiomatic models accept or reject candidates. Candidates have no cores and no memory, so their outcomes are
//! independent of those that [`crate::models`] finds by running programs.

use std::collections::BTreeSet;

use crate::program::{
    location_at, Acquire, Address, Change, Claim, Class, Instruction, Location, Observed, Operand,
    Outcome, Program, Rcu, Register,
};

/// Maximum number of events of an execution: a row of a [`Relation`] has 64 bits.
const MAX_EVENTS: usize = 64;
/// Maximum number of paths per thread, of histories, and of candidates.
const MAX_CANDIDATES: usize = 1 << 20;
/// Maximum number of events of all paths of a thread, of about 70 bytes each.
const MAX_PATH_EVENTS: usize = 1 << 22;

/// Kind of an event.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// Read of a location.
    Read,
    /// Write of a location.
    Write,
}

/// A memory event. An atomic access has two, its read directly before its write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// Number of the thread.
    pub thread: usize,
    /// Index of the instruction in the thread.
    pub instruction_index: usize,
    /// Read or write.
    pub kind: Kind,
    /// Location accessed.
    pub at: Location,
    /// Value read or written.
    pub value: i64,
    /// Acquire ordering.
    pub acquire: Acquire,
    /// True if ordered after all earlier events of the thread.
    pub release: bool,
    /// True for events of an atomic access.
    pub atomic: bool,
    /// True for events of a load-reserved or store-conditional instruction.
    pub exclusive: bool,
    /// True unless the event is the read of an atomic access that returns no value.
    pub returns: bool,
    /// True for events of an atomic access that both acquires and releases.
    pub acquire_release: bool,
    /// For a write: number in the thread of the read with which it forms an atomic access, or a pair of load-reserved
    /// and store-conditional.
    paired_read: Option<usize>,
    /// Data dependencies: bit set of the earlier reads of the thread, by their numbers in it.
    data: u64,
    /// Address dependencies, in the same form.
    address: u64,
    /// Events that only selected among values or locations (herd's *pick* dependency), in the same form.
    pick: u64,
    /// Control dependencies, in the same form.
    control: u64,
    /// Control dependencies, and address dependencies of earlier events, that an instruction-synchronisation fence
    /// (ISB, `fence.i`) follows.
    synchronised: u64,
}

/// Path of a thread by itself, with one choice of the values that its reads return.
#[derive(Clone)]
struct ThreadPath {
    events: Vec<Event>,
    /// Fences: classes that they order, and number of events before the fence.
    fences: Vec<(Class, Class, usize)>,
    registers: Vec<i64>,
    /// Read-side critical sections: number of events before the begin and before the end.
    sections: Vec<(usize, usize)>,
    /// Begins of open critical sections, outermost first.
    open_sections: Vec<usize>,
    /// Grace periods: number of events before each.
    grace_periods: Vec<usize>,
}

/// Binary relation on events: for each event the bit set of its successors.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Relation(Vec<u64>);

impl Relation {
    /// Creates the empty relation.
    pub fn empty(events: usize) -> Relation {
        Relation(vec![0; events])
    }

    /// Creates the relation of the pairs that satisfy `holds`.
    pub fn from_predicate(events: usize, holds: impl Fn(usize, usize) -> bool) -> Relation {
        let mut relation = Relation::empty(events);
        for from in 0..events {
            for to in 0..events {
                if holds(from, to) {
                    relation.add(from, to);
                }
            }
        }
        relation
    }

    /// Adds a pair.
    pub fn add(&mut self, from: usize, to: usize) {
        self.0[from] |= 1 << to;
    }

    /// Adds the Cartesian product of two bit sets of events.
    pub fn add_product(&mut self, before: u64, after: u64) {
        for (event, row) in self.0.iter_mut().enumerate() {
            if before >> event & 1 != 0 {
                *row |= after;
            }
        }
    }

    /// Returns true if the relation contains the pair.
    pub fn has(&self, from: usize, to: usize) -> bool {
        self.0[from] >> to & 1 != 0
    }

    /// Returns true if the relation has no cycle.
    pub(crate) fn acyclic(&self) -> bool {
        // Remove events without successors until none is left (acyclic) or all have successors (a cycle).
        let mut remaining: u64 = (0..self.0.len()).map(|event| 1 << event).sum();
        loop {
            let has_successor = |event: usize| self.0[event] & remaining != 0;
            let next_remaining = (0..self.0.len())
                .filter(|&event| remaining >> event & 1 != 0 && has_successor(event));
            let next_remaining = next_remaining.map(|event| 1u64 << event).sum();
            if next_remaining == remaining {
                return remaining == 0;
            }
            remaining = next_remaining;
        }
    }
}

/// A candidate execution.
pub struct Execution<'e> {
    /// Events, thread by thread in program order.
    pub events: &'e [Event],
    /// Write that each read reads from, by event; `None` for the initial value.
    pub from: Vec<Option<usize>>,
    /// Coherence position of each write, by event: number of earlier writes of its location.
    pub rank: Vec<usize>,
    paths: Vec<&'e ThreadPath>,
}

impl Execution<'_> {
    /// Returns true if `a` precedes `b` in program order (herd's `po`).
    pub fn program_order(&self, a: usize, b: usize) -> bool {
        self.events[a].thread == self.events[b].thread && a < b
    }

    /// Returns true if both events access the same location.
    pub(crate) fn same_location(&self, a: usize, b: usize) -> bool {
        self.events[a].at == self.events[b].at
    }

    /// Returns true if `read` reads from `write` (herd's `rf`).
    pub(crate) fn reads_from(&self, write: usize, read: usize) -> bool {
        self.from[read] == Some(write) && self.events[read].kind == Kind::Read
    }

    /// Returns true if write `a` precedes write `b` in the coherence order of their location (herd's `co`).
    pub fn coherence(&self, a: usize, b: usize) -> bool {
        let writes = |event: usize| self.events[event].kind == Kind::Write;
        writes(a) && writes(b) && self.same_location(a, b) && self.rank[a] < self.rank[b]
    }

    /// Returns true if `read` reads a value older than that of `write` to its location (herd's `fr`).
    pub(crate) fn reads_before(&self, read: usize, write: usize) -> bool {
        let (a, b) = (&self.events[read], &self.events[write]);
        a.kind == Kind::Read
            && b.kind == Kind::Write
            && a.at == b.at
            && self.from[read].is_none_or(|from| self.rank[from] < self.rank[write])
    }

    /// Returns true if a fence orders `a` before `b`.
    pub fn fenced(&self, a: usize, b: usize) -> bool {
        self.fenced_by(a, b, &|_| true)
    }

    /// Returns true if a fence orders `a` before `b` and the class of its earlier accesses satisfies `has_class`.
    pub(crate) fn fenced_by(&self, a: usize, b: usize, has_class: &dyn Fn(Class) -> bool) -> bool {
        let thread = self.events[a].thread;
        let (earlier, later) = (&self.events[a], &self.events[b]);
        let has = |class: Class, event: &Event| {
            class.has(event.kind == Kind::Read, event.kind == Kind::Write)
        };
        let (from, to) = (self.number(a), self.number(b));
        let between = |&(earlier_class, later_class, position): &(Class, Class, usize)| {
            from < position
                && position <= to
                && has(earlier_class, earlier)
                && has(later_class, later)
                && has_class(earlier_class)
        };
        self.program_order(a, b) && self.paths[thread].fences.iter().any(between)
    }

    /// Returns true if the value that `b` writes depends on the value that `a` reads.
    pub fn data(&self, a: usize, b: usize) -> bool {
        self.program_order(a, b) && self.events[b].data >> self.number(a) & 1 != 0
    }

    /// Returns true if the location of `b` depends on the value that `a` reads.
    pub fn address(&self, a: usize, b: usize) -> bool {
        self.program_order(a, b) && self.events[b].address >> self.number(a) & 1 != 0
    }

    /// Returns true if `a` only selected which value or location `b` has.
    pub fn pick(&self, a: usize, b: usize) -> bool {
        self.program_order(a, b) && self.events[b].pick >> self.number(a) & 1 != 0
    }

    /// Returns true if the thread of `a` and `b` writes the location of `b` between them.
    pub(crate) fn written_between(&self, a: usize, b: usize) -> bool {
        (a + 1..b).any(|event| {
            self.events[event].kind == Kind::Write && self.events[event].at == self.events[b].at
        })
    }

    /// Returns true if a branch before `b` depends on the value that `a` reads.
    pub fn control(&self, a: usize, b: usize) -> bool {
        self.program_order(a, b) && self.events[b].control >> self.number(a) & 1 != 0
    }

    /// Returns true if a branch or an address before `b` depends on `a`, and an instruction-synchronisation fence
    /// follows that branch or address before `b` (herd's `ctrlisync`).
    pub(crate) fn synchronised(&self, a: usize, b: usize) -> bool {
        self.program_order(a, b) && self.events[b].synchronised >> self.number(a) & 1 != 0
    }

    /// Returns true if `read` and `write` form one atomic access or one pair of load-reserved and store-conditional.
    pub fn atomic(&self, read: usize, write: usize) -> bool {
        self.program_order(read, write) && self.events[write].paired_read == Some(self.number(read))
    }

    /// Returns two choices for each pair of a read-side critical section and a grace period of another thread. The
    /// section precedes the grace period, or the reverse. A choice is a bit set of events and the bit set of the events
    /// ordered after them.
    pub(crate) fn grace_periods(&self) -> Vec<[(u64, u64); 2]> {
        let events = |thread: usize, numbers: std::ops::Range<usize>| {
            let indexed = self.events.iter().enumerate();
            let thread_events = indexed
                .filter(|(_, event)| event.thread == thread)
                .enumerate();
            let selected = thread_events.filter(|(number, _)| numbers.contains(number));
            selected.fold(0u64, |bits, (_, (event, _))| bits | 1 << event)
        };
        let mut choices = Vec::new();
        for (waiting_thread, path) in self.paths.iter().enumerate() {
            for &grace in &path.grace_periods {
                let (before, after) = (
                    events(waiting_thread, 0..grace),
                    events(waiting_thread, grace..usize::MAX),
                );
                let readers = self.paths.iter().enumerate();
                for (reader, path) in readers.filter(|(reader, _)| *reader != waiting_thread) {
                    choices.extend(path.sections.iter().map(|&(begin, end)| {
                        let section = (events(reader, 0..end), after);
                        [section, (before, events(reader, begin..usize::MAX))]
                    }));
                }
            }
        }
        choices
    }

    /// Returns the number of an event within its thread.
    fn number(&self, event: usize) -> usize {
        let thread = self.events[event].thread;
        let earlier = &self.events[..event];
        earlier.iter().filter(|e| e.thread == thread).count()
    }

    /// Returns the outcome of the execution, or `None` if the test's filter excludes it.
    pub fn outcome(&self, program: &Program) -> Option<Outcome> {
        program.outcome(|observed| match *observed {
            Observed::Register(thread, register) => self.paths[thread].registers[register],
            Observed::Location(location) => {
                let writes = (0..self.events.len()).filter(|&e| {
                    self.events[e].kind == Kind::Write && self.events[e].at == location
                });
                match writes.max_by_key(|&write| self.rank[write]) {
                    Some(last_write) => self.events[last_write].value,
                    None => program.initial[usize::from(location)],
                }
            }
        })
    }
}

/// Returns true if every address that the program computes is that of a location.
///
/// # Errors
/// The program has too many executions to decide this.
pub(crate) fn computes_only_location_addresses(program: &Program) -> Result<bool, String> {
    if !program.has_addresses() {
        return Ok(true);
    }
    let mut has_invalid_address = false;
    match find_thread_paths(program, &mut has_invalid_address) {
        Some(_) => Ok(true),
        None if has_invalid_address => Ok(false),
        None => Err(format!(
            "{} has too many executions to determine its addresses",
            program.name
        )),
    }
}

/// Calls `visit` with every candidate execution of a program.
///
/// # Errors
/// The program has too many candidates or too many events.
pub fn for_each(program: &Program, visit: &mut dyn FnMut(&Execution)) -> Result<(), String> {
    candidates(program, false, visit)
}

/// Calls `visit` with the candidates that are coherent at each location and in which no write comes between the parts
/// of an atomic access. Every model demands both.
///
/// # Errors
/// The program has too many candidates or too many events.
pub(crate) fn for_each_coherent(
    program: &Program,
    visit: &mut dyn FnMut(&Execution),
) -> Result<(), String> {
    candidates(program, true, visit)
}

fn candidates(
    program: &Program,
    coherent: bool,
    visit: &mut dyn FnMut(&Execution),
) -> Result<(), String> {
    let too_large = || format!("{} has too many executions to examine each", program.name);
    let mut paths = thread_paths(program).ok_or_else(too_large)?;
    for (thread, paths) in paths.iter_mut().enumerate() {
        paths.retain(|path| passes_thread_filter(&program.filter, thread, &path.registers));
    }
    let path_counts = paths.iter().map(|paths| paths.len() as u64);
    if path_counts.fold(1u64, u64::saturating_mul) > MAX_CANDIDATES as u64 {
        return Err(too_large());
    }
    if paths.iter().any(Vec::is_empty) {
        return Ok(());
    }
    let mut chosen = vec![0; paths.len()];
    let (mut count, mut candidate_count) = (0, 0);
    loop {
        let chosen_paths: Vec<&ThreadPath> = paths
            .iter()
            .zip(&chosen)
            .map(|(paths, &index)| &paths[index])
            .collect();
        let events: Vec<Event> = chosen_paths
            .iter()
            .flat_map(|path| path.events.clone())
            .collect();
        if events.len() > MAX_EVENTS {
            return Err(too_large());
        }
        let mut execution = Execution {
            from: vec![None; events.len()],
            rank: vec![0; events.len()],
            events: &events,
            paths: chosen_paths,
        };
        let mut histories_by_location = Vec::new();
        for location in 0..program.locations.len() {
            let initial_value = program.initial[location];
            let mut search =
                HistorySearch::new(&events, location as Location, initial_value, coherent);
            search.extend_order(&mut count);
            histories_by_location.push(search.histories);
            if count > MAX_CANDIDATES {
                return Err(too_large());
            }
            if histories_by_location[location].is_empty() {
                break;
            }
        }
        let history_counts = histories_by_location
            .iter()
            .map(|histories| histories.len() as u64);
        candidate_count += history_counts.fold(1, u64::saturating_mul);
        if candidate_count > MAX_CANDIDATES as u64 {
            return Err(too_large());
        }
        for_each_combination(&mut execution, &histories_by_location, visit);
        if !next_choice(&mut chosen, &paths) {
            return Ok(());
        }
    }
}

/// Returns true if the final registers of a thread satisfy the parts of a filter that name only this thread.
fn passes_thread_filter(filter: &Claim, thread: usize, registers: &[i64]) -> bool {
    match filter {
        Claim::Equals(Observed::Register(observed_thread, register), value)
            if *observed_thread == thread =>
        {
            registers[*register] == *value
        }
        Claim::And(a, b) => {
            passes_thread_filter(a, thread, registers) && passes_thread_filter(b, thread, registers)
        }
        _ => true,
    }
}

/// Advances to the next choice of a path per thread. Returns false after the last.
fn next_choice(chosen: &mut [usize], paths: &[Vec<ThreadPath>]) -> bool {
    for (choice, paths) in chosen.iter_mut().zip(paths) {
        *choice += 1;
        if *choice < paths.len() {
            return true;
        }
        *choice = 0;
    }
    false
}

/// Calls `visit` with every combination of one history per location.
fn for_each_combination(
    execution: &mut Execution,
    histories_by_location: &[Vec<History>],
    visit: &mut dyn FnMut(&Execution),
) {
    let Some((histories, rest)) = histories_by_location.split_first() else {
        return visit(execution);
    };
    for history in histories {
        for &(read, from) in &history.from {
            execution.from[read] = from;
        }
        for (rank, &write) in history.order.iter().enumerate() {
            execution.rank[write] = rank;
        }
        for_each_combination(execution, rest, visit);
    }
}

/// History of one location: the write that each read reads from, and the order of the writes.
struct History {
    from: Vec<(usize, Option<usize>)>,
    order: Vec<usize>,
}

/// Enumeration of the histories of one location.
struct HistorySearch<'e> {
    events: &'e [Event],
    reads: Vec<usize>,
    writes: Vec<usize>,
    /// Initial value.
    initial_value: i64,
    /// True to enumerate coherent histories only.
    coherent: bool,
    order: Vec<usize>,
    from: Vec<(usize, Option<usize>)>,
    histories: Vec<History>,
}

impl<'e> HistorySearch<'e> {
    fn new(
        events: &'e [Event],
        location: Location,
        initial_value: i64,
        coherent: bool,
    ) -> HistorySearch<'e> {
        let events_of = |kind: Kind| {
            let indexed = events.iter().enumerate();
            let matching = indexed.filter(|(_, event)| (event.at, event.kind) == (location, kind));
            matching.map(|(event, _)| event).collect()
        };
        HistorySearch {
            events,
            reads: events_of(Kind::Read),
            writes: events_of(Kind::Write),
            initial_value,
            coherent,
            order: Vec::new(),
            from: Vec::new(),
            histories: Vec::new(),
        }
    }

    /// Enumerates every order of the writes that begins with `self.order`.
    fn extend_order(&mut self, count: &mut usize) {
        *count += 1;
        if *count > MAX_CANDIDATES {
            return;
        }
        if self.order.len() == self.writes.len() {
            return self.choose_sources(0, count);
        }
        for write in self.writes.clone() {
            let thread = self.events[write].thread;
            let is_next = |&candidate: &usize| {
                let earlier = self.coherent && candidate < write;
                !self.order.contains(&candidate)
                    && (candidate == write || earlier && self.events[candidate].thread == thread)
            };
            // Coherence keeps the writes of a thread in program order.
            if self.writes.iter().copied().find(is_next) != Some(write) {
                continue;
            }
            let sources = self.from.len();
            if !self.coherent || self.atomic(write) {
                self.order.push(write);
                self.extend_order(count);
                self.order.pop();
            }
            self.from.truncate(sources);
        }
    }

    /// Makes the read that forms one atomic access with `write`, if any, read from the write directly before `write` in
    /// coherence order. Returns false if the values differ.
    fn atomic(&mut self, write: usize) -> bool {
        let event = &self.events[write];
        let Some(number) = event.paired_read else {
            return true;
        };
        let first_event = self.events.iter().position(|e| e.thread == event.thread);
        let read = first_event.unwrap_or(0) + number;
        // Writes of the same thread between both parts do not violate atomicity.
        let between = |&&candidate: &&usize| (read..write).contains(&candidate);
        let from = self
            .order
            .iter()
            .rev()
            .find(|candidate| !between(candidate));
        let from = from.copied();
        self.from.push((read, from));
        self.value_of(from) == self.events[read].value
    }

    /// Returns the value of a write, or the initial value for `None`.
    fn value_of(&self, from: Option<usize>) -> i64 {
        from.map_or(self.initial_value, |write| self.events[write].value)
    }

    /// Enumerates every choice of a write with the right value for each read, from read `number` on.
    fn choose_sources(&mut self, number: usize, count: &mut usize) {
        let Some(&read) = self.reads.get(number) else {
            *count += 1;
            if !self.coherent || self.follows_program_order() {
                self.histories.push(History {
                    from: self.from.clone(),
                    order: self.order.clone(),
                });
            }
            return;
        };
        if self.from.iter().any(|(assigned, _)| *assigned == read) {
            return self.choose_sources(number + 1, count);
        }
        let writes = self.writes.clone().into_iter().map(Some);
        for from in std::iter::once(None).chain(writes) {
            if self.value_of(from) == self.events[read].value && *count <= MAX_CANDIDATES {
                self.from.push((read, from));
                self.choose_sources(number + 1, count);
                self.from.pop();
            }
        }
    }

    /// Returns true if no thread accesses an older value of the location after a newer one.
    fn follows_program_order(&self) -> bool {
        // Position of an event in the history: 0 is the initial value, then the writes in coherence order.
        let position_of = |write: usize| self.order.iter().position(|&other| other == write);
        let position_of =
            |from: Option<usize>| from.and_then(position_of).map_or(0, |index| index + 1);
        let mut events = self.reads.iter().chain(&self.writes).collect::<Vec<_>>();
        events.sort_unstable();
        let mut newest = (usize::MAX, 0);
        events.into_iter().all(|&event| {
            let Event { thread, kind, .. } = self.events[event];
            if newest.0 != thread {
                newest = (thread, 0);
            }
            let (position, fits) = match kind {
                Kind::Write => {
                    let position = position_of(Some(event));
                    (position, position > newest.1)
                }
                Kind::Read => {
                    let mut sources = self.from.iter();
                    let from = sources.find(|(read, _)| *read == event);
                    let position = position_of(from.and_then(|(_, from)| *from));
                    (position, position >= newest.1)
                }
            };
            newest.1 = position;
            fits
        })
    }
}

/// Returns all paths of each thread by itself, where loads return any value that some path writes. `None` if there are
/// too many, or if an access is to the address of no location.
fn thread_paths(program: &Program) -> Option<Vec<Vec<ThreadPath>>> {
    find_thread_paths(program, &mut false)
}

/// As [`thread_paths`]; sets `has_invalid_address` if an access is to the address of no location.
fn find_thread_paths(
    program: &Program,
    has_invalid_address: &mut bool,
) -> Option<Vec<Vec<ThreadPath>>> {
    let initial_values = program.initial.iter().map(|&value| BTreeSet::from([value]));
    let mut values: Vec<BTreeSet<i64>> = initial_values.collect();
    let writes = |i: &&Instruction| i.writes();
    let code = program.threads.iter().flat_map(|thread| &thread.code);
    // No value is the result of more writes than the program has.
    let rounds = code.filter(writes).count() + 1;
    for _ in 0..rounds {
        let paths = thread_paths_with_values(program, &values, has_invalid_address)?;
        let previous = values.clone();
        for event in paths.iter().flatten().flat_map(|path| &path.events) {
            if event.kind == Kind::Write {
                values[usize::from(event.at)].insert(event.value);
            }
        }
        if values == previous {
            return Some(paths);
        }
    }
    thread_paths_with_values(program, &values, has_invalid_address)
}

fn thread_paths_with_values(
    program: &Program,
    values: &[BTreeSet<i64>],
    has_invalid_address: &mut bool,
) -> Option<Vec<Vec<ThreadPath>>> {
    let mut paths_by_thread = Vec::new();
    for (number, thread) in program.threads.iter().enumerate() {
        let mut search = PathSearch {
            code: &thread.code,
            thread: number,
            values,
            path: ThreadPath {
                events: Vec::new(),
                fences: Vec::new(),
                registers: thread.registers.clone(),
                sections: Vec::new(),
                open_sections: Vec::new(),
                grace_periods: Vec::new(),
            },
            depends: vec![0; thread.registers.len()],
            picks: vec![0; thread.registers.len()],
            reserved: None,
            control: 0,
            control_picks: 0,
            synchronised: 0,
            paths: Vec::new(),
            event_count: 0,
            has_invalid_address: false,
        };
        search.search_from(0);
        *has_invalid_address |= search.has_invalid_address;
        if search.has_too_many() || search.has_invalid_address {
            return None;
        }
        paths_by_thread.push(search.paths);
    }
    Some(paths_by_thread)
}

/// Enumeration of the paths of one thread.
struct PathSearch<'w> {
    code: &'w [Instruction],
    thread: usize,
    values: &'w [BTreeSet<i64>],
    path: ThreadPath,
    /// Events that each register depends on, as a bit set.
    depends: Vec<u64>,
    /// Events that only selected each register's value.
    picks: Vec<u64>,
    /// Number in the thread of the read that holds the reservation.
    reserved: Option<usize>,
    control: u64,
    /// Events that only selected the values that `control` depends on.
    control_picks: u64,
    /// Control and address dependencies at the last instruction-synchronisation fence.
    synchronised: u64,
    paths: Vec<ThreadPath>,
    /// Number of events of all paths found.
    event_count: usize,
    /// True after an access to the address of no location.
    has_invalid_address: bool,
}

/// Location of an access, with the events that it depends on and those that selected it, as bit sets.
#[derive(Clone, Copy)]
struct Located {
    location: Location,
    depends: u64,
    picks: u64,
}

/// Saved state of a [`PathSearch`], for backtracking.
struct SavedState {
    path: ThreadPath,
    depends: Vec<u64>,
    picks: Vec<u64>,
    reserved: Option<usize>,
    control: u64,
    control_picks: u64,
    synchronised: u64,
}

impl PathSearch<'_> {
    fn has_too_many(&self) -> bool {
        self.paths.len() > MAX_CANDIDATES || self.event_count > MAX_PATH_EVENTS
    }

    fn value(&self, operand: Operand) -> (i64, u64) {
        match operand {
            Operand::Number(value) => (value, 0),
            Operand::Register(register) => (self.path.registers[register], self.depends[register]),
        }
    }

    fn picks(&self, operand: Operand) -> u64 {
        match operand {
            Operand::Number(_) => 0,
            Operand::Register(register) => self.picks[register],
        }
    }

    /// Returns the location of an access, the events that it depends on, and those that selected it.
    fn locate(&mut self, address: Address) -> Option<Located> {
        match address {
            Address::Direct(location) => Some(Located {
                location,
                depends: 0,
                picks: 0,
            }),
            Address::Indirect(register) => {
                let location = location_at(self.path.registers[register]);
                let location =
                    location.filter(|&location| usize::from(location) < self.values.len());
                self.has_invalid_address |= location.is_none();
                Some(Located {
                    location: location?,
                    depends: self.depends[register],
                    picks: self.picks[register],
                })
            }
        }
    }

    fn event(&mut self, instruction_index: usize, kind: Kind, access: Located) -> &mut Event {
        self.path.events.push(Event {
            thread: self.thread,
            instruction_index,
            kind,
            at: access.location,
            value: 0,
            acquire: Acquire::None,
            release: false,
            atomic: false,
            exclusive: false,
            returns: true,
            acquire_release: false,
            paired_read: None,
            data: 0,
            address: access.depends,
            pick: access.picks | self.control_picks,
            control: self.control,
            synchronised: self.synchronised,
        });
        let last = self.path.events.len() - 1;
        &mut self.path.events[last]
    }

    /// Bit of the last event.
    fn last_event_bit(&self) -> u64 {
        1 << (self.path.events.len() - 1).min(63)
    }

    /// Writes a register. The value depends on the events `depends`, and the events `picks` selected it.
    fn set_register(&mut self, to: Register, value: i64, depends: u64, picks: u64) {
        self.path.registers[to] = value;
        self.depends[to] = depends;
        self.picks[to] = picks;
    }

    fn save(&self) -> SavedState {
        SavedState {
            path: self.path.clone(),
            depends: self.depends.clone(),
            picks: self.picks.clone(),
            reserved: self.reserved,
            control: self.control,
            control_picks: self.control_picks,
            synchronised: self.synchronised,
        }
    }

    fn restore(&mut self, saved: &SavedState) {
        self.path.clone_from(&saved.path);
        self.depends.clone_from(&saved.depends);
        self.picks.clone_from(&saved.picks);
        self.reserved = saved.reserved;
        self.control = saved.control;
        self.control_picks = saved.control_picks;
        self.synchronised = saved.synchronised;
    }

    /// Continues the path at an instruction, and records each complete path.
    fn search_from(&mut self, mut instruction_index: usize) {
        while let Some(&instruction) = self.code.get(instruction_index) {
            if self.has_too_many() || self.has_invalid_address {
                return;
            }
            match instruction {
                Instruction::Compute {
                    to,
                    operation,
                    a,
                    b,
                } => {
                    let picks = self.picks(a) | self.picks(b);
                    let ((a, a_sources), (b, b_sources)) = (self.value(a), self.value(b));
                    self.set_register(to, operation.apply(a, b), a_sources | b_sources, picks);
                }
                Instruction::Select {
                    to,
                    on,
                    then,
                    otherwise,
                } => {
                    let (value, sources) = self.value(Operand::Register(on));
                    let chosen = if value != 0 { then } else { otherwise };
                    let picks = sources | self.picks[on] | self.picks(chosen);
                    let (value, sources) = self.value(chosen);
                    self.set_register(to, value, sources, picks);
                }
                Instruction::Branch { on, zero, to } => {
                    let (value, sources) = self.value(Operand::Register(on));
                    self.control |= sources;
                    self.control_picks |= self.picks[on];
                    if (value == 0) == zero {
                        instruction_index = to;
                        continue;
                    }
                }
                Instruction::Fence(fence) => match fence.sides() {
                    None => {
                        let events = self.path.events.iter();
                        let addresses = events.fold(0, |bits, event| bits | event.address);
                        self.synchronised = self.control | addresses;
                    }
                    Some((before, after)) => {
                        self.path
                            .fences
                            .push((before, after, self.path.events.len()));
                    }
                },
                Instruction::Rcu(operation) => self.rcu(operation),
                Instruction::Store {
                    to, value, release, ..
                } => {
                    let Some(access) = self.locate(to) else {
                        return;
                    };
                    self.add_write(instruction_index, access, value).release = release;
                }
                Instruction::StoreConditional { .. } => {
                    return self.store_conditional(instruction_index, instruction)
                }
                Instruction::Load { .. }
                | Instruction::Atomic { .. }
                | Instruction::LoadReserved { .. } => {
                    return self.read_each_value(instruction_index, instruction)
                }
            }
            instruction_index += 1;
        }
        self.event_count += self.path.events.len();
        self.paths.push(self.path.clone());
    }

    /// Records an RCU operation. Only outermost critical sections count: an inner one is part of its outer section.
    fn rcu(&mut self, operation: Rcu) {
        let events = self.path.events.len();
        let path = &mut self.path;
        match operation {
            Rcu::ReadLock => path.open_sections.push(events),
            Rcu::ReadUnlock => {
                if let (Some(begin), true) =
                    (path.open_sections.pop(), path.open_sections.is_empty())
                {
                    path.sections.push((begin, events));
                }
            }
            Rcu::Synchronize => {
                path.grace_periods.push(events);
                path.fences.push((Class::All, Class::All, events));
            }
        }
    }

    /// Adds the event of a write of an operand.
    fn add_write(
        &mut self,
        instruction_index: usize,
        access: Located,
        value: Operand,
    ) -> &mut Event {
        let (picks, (value, sources)) = (self.picks(value), self.value(value));
        let event = self.event(instruction_index, Kind::Write, access);
        (event.value, event.data) = (value, sources);
        event.pick |= picks;
        event
    }

    /// Continues after a store-conditional: once as failed, and once as performed if the reservation is for its
    /// location.
    fn store_conditional(&mut self, instruction_index: usize, instruction: Instruction) {
        let Instruction::StoreConditional {
            status,
            to,
            value,
            acquire,
            release,
        } = instruction
        else {
            return;
        };
        let Some(access) = self.locate(to) else {
            return;
        };
        let reserved = self.reserved.take();
        let saved = self.save();
        self.set_register(status, 1, 0, 0);
        self.search_from(instruction_index + 1);
        self.restore(&saved);
        if let Some(read) = reserved.filter(|&read| self.path.events[read].at == access.location) {
            let write = self.add_write(instruction_index, access, value);
            (write.exclusive, write.release, write.paired_read) = (true, release, Some(read));
            if acquire {
                write.acquire = Acquire::Rcsc;
            }
            let read_bit = self.last_event_bit();
            self.set_register(status, 0, read_bit, 0);
            self.search_from(instruction_index + 1);
            self.restore(&saved);
        }
    }

    /// Continues after a read, once for each value that it may return.
    fn read_each_value(&mut self, instruction_index: usize, instruction: Instruction) {
        let Some(access) = instruction
            .address()
            .and_then(|address| self.locate(address))
        else {
            return;
        };
        let saved = self.save();
        for &read_value in &self.values[usize::from(access.location)] {
            let read = self.event(instruction_index, Kind::Read, access);
            read.value = read_value;
            match instruction {
                Instruction::Load { to, acquire, .. } => {
                    read.acquire = acquire;
                    let read_bit = self.last_event_bit();
                    self.set_register(to, read_value, read_bit, 0);
                }
                Instruction::LoadReserved {
                    to,
                    acquire,
                    release,
                    ..
                } => {
                    (read.acquire, read.release, read.exclusive) = (acquire, release, true);
                    self.reserved = Some(self.path.events.len() - 1);
                    let read_bit = self.last_event_bit();
                    self.set_register(to, read_value, read_bit, 0);
                }
                Instruction::Atomic {
                    to,
                    change,
                    value,
                    acquire,
                    release,
                    returns,
                    ..
                } => {
                    (read.atomic, read.returns) = (true, returns);
                    read.acquire_release = acquire && release;
                    if acquire {
                        read.acquire = Acquire::Rcsc;
                    }
                    let read_bit = self.last_event_bit();
                    let (operand, _) = self.value(value);
                    let mut expects = (0, 0);
                    // A compare-and-swap that succeeds returns the expected value: the read only selected it.
                    let mut result = (read_bit, 0);
                    let new_value = match change {
                        Change::Exchange => Some(operand),
                        Change::FetchAdd => Some(read_value.wrapping_add(operand)),
                        Change::FetchOp(operation) => Some(operation.apply(read_value, operand)),
                        Change::CompareAndSwap(expected) => {
                            let (expected_value, depends) = self.value(expected);
                            expects = (depends, self.picks(expected));
                            if read_value == expected_value {
                                result = (depends, expects.1 | read_bit);
                            }
                            (read_value == expected_value).then_some(operand)
                        }
                    };
                    if let Some(new_value) = new_value {
                        let read = self.path.events.len() - 1;
                        let write = self.add_write(instruction_index, access, value);
                        (write.atomic, write.release) = (true, release);
                        (write.acquire_release, write.paired_read) =
                            (acquire && release, Some(read));
                        write.value = new_value;
                        // The comparison decides if the write happens.
                        write.pick |= expects.0 | expects.1;
                    }
                    self.set_register(to, read_value, result.0, result.1);
                }
                _ => {}
            }
            self.search_from(instruction_index + 1);
            self.restore(&saved);
        }
    }
}
