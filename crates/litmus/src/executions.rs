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
const MOST_EVENTS: usize = 64;
/// Maximum number of paths per thread, of histories, and of candidates.
const MAX_CANDIDATES: usize = 1 << 20;
/// Maximum number of events of all paths of a thread, of about 70 bytes each.
const MAX_EVENTS_KEPT: usize = 1 << 22;

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
    pub place: usize,
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
    pub both: bool,
    /// For a write: number in the thread of the read with which it forms an atomic access, or a pair of load-reserved
    /// and store-conditional.
    reads: Option<usize>,
    /// Data dependencies: bit set of the earlier reads of the thread, by their numbers in it.
    data: u64,
    /// Address dependencies, in the same form.
    address: u64,
    /// Events that only selected among values or locations (herd's *pick* dependency), in the same form.
    pick: u64,
    /// Control dependencies, in the same form.
    control: u64,
    /// Control dependencies, and address dependencies of earlier events, that a fence of instruction fetches follows.
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
    open: Vec<usize>,
    /// Grace periods: number of events before each.
    graces: Vec<usize>,
}

/// Binary relation on events: for each event the bit set of its successors.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Relation(Vec<u64>);

impl Relation {
    /// Creates the empty relation.
    pub fn none(events: usize) -> Relation {
        Relation(vec![0; events])
    }

    /// Creates the relation of the pairs that satisfy `holds`.
    pub fn of(events: usize, holds: impl Fn(usize, usize) -> bool) -> Relation {
        let mut relation = Relation::none(events);
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

    /// Adds all pairs of an event in `before` and an event in `after`, which are bit sets.
    pub fn join(&mut self, before: u64, after: u64) {
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
    pub fn acyclic(&self) -> bool {
        // Remove events without successors until none is left (acyclic) or all have successors (a cycle).
        let mut left: u64 = (0..self.0.len()).map(|event| 1 << event).sum();
        loop {
            let leads = |event: usize| self.0[event] & left != 0;
            let stay = (0..self.0.len()).filter(|&event| left >> event & 1 != 0 && leads(event));
            let stay = stay.map(|event| 1u64 << event).sum();
            if stay == left {
                return left == 0;
            }
            left = stay;
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
    ways: Vec<&'e ThreadPath>,
}

impl Execution<'_> {
    /// Returns true if `a` precedes `b` in program order (herd's `po`).
    pub fn program_order(&self, a: usize, b: usize) -> bool {
        self.events[a].thread == self.events[b].thread && a < b
    }

    /// Returns true if both events access the same location.
    pub fn same_location(&self, a: usize, b: usize) -> bool {
        self.events[a].at == self.events[b].at
    }

    /// Returns true if `read` reads from `write` (herd's `rf`).
    pub fn reads_from(&self, write: usize, read: usize) -> bool {
        self.from[read] == Some(write) && self.events[read].kind == Kind::Read
    }

    /// Returns true if write `a` precedes write `b` in the coherence order of their location (herd's `co`).
    pub fn coherence(&self, a: usize, b: usize) -> bool {
        let writes = |event: usize| self.events[event].kind == Kind::Write;
        writes(a) && writes(b) && self.same_location(a, b) && self.rank[a] < self.rank[b]
    }

    /// Returns true if `read` reads a value older than that of `write` to its location (herd's `fr`).
    pub fn from_read(&self, read: usize, write: usize) -> bool {
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

    /// Returns true if a fence orders `a` before `b` and the class of its earlier accesses satisfies `with`.
    pub fn fenced_by(&self, a: usize, b: usize, with: &dyn Fn(Class) -> bool) -> bool {
        let thread = self.events[a].thread;
        let (first, then) = (&self.events[a], &self.events[b]);
        let has = |class: Class, event: &Event| {
            class.has(event.kind == Kind::Read, event.kind == Kind::Write)
        };
        let (from, to) = (self.number(a), self.number(b));
        let between = |&(before, after, at): &(Class, Class, usize)| {
            from < at && at <= to && has(before, first) && has(after, then) && with(before)
        };
        self.program_order(a, b) && self.ways[thread].fences.iter().any(between)
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
    pub fn written_between(&self, a: usize, b: usize) -> bool {
        (a + 1..b).any(|event| {
            self.events[event].kind == Kind::Write && self.events[event].at == self.events[b].at
        })
    }

    /// Returns true if a branch before `b` depends on the value that `a` reads.
    pub fn control(&self, a: usize, b: usize) -> bool {
        self.program_order(a, b) && self.events[b].control >> self.number(a) & 1 != 0
    }

    /// Returns true if a branch or an address before `b` depends on `a`, with a fence of instruction fetches between it
    /// and `b`.
    pub fn synchronised(&self, a: usize, b: usize) -> bool {
        self.program_order(a, b) && self.events[b].synchronised >> self.number(a) & 1 != 0
    }

    /// Returns true if `read` and `write` form one atomic access or one pair of load-reserved and store-conditional.
    pub fn atomic(&self, read: usize, write: usize) -> bool {
        self.program_order(read, write) && self.events[write].reads == Some(self.number(read))
    }

    /// Returns two choices for each pair of a read-side critical section and a grace period of another thread. The
    /// section precedes the grace period, or the reverse. A choice is a bit set of events and the bit set of the events
    /// ordered after them.
    pub fn grace_periods(&self) -> Vec<[(u64, u64); 2]> {
        let events = |thread: usize, numbers: std::ops::Range<usize>| {
            let all = self.events.iter().enumerate();
            let its = all.filter(|(_, event)| event.thread == thread).enumerate();
            let within = its.filter(|(number, _)| numbers.contains(number));
            within.fold(0u64, |bits, (_, (event, _))| bits | 1 << event)
        };
        let mut all = Vec::new();
        for (waits, way) in self.ways.iter().enumerate() {
            for &grace in &way.graces {
                let (before, after) = (events(waits, 0..grace), events(waits, grace..usize::MAX));
                let readers = self.ways.iter().enumerate();
                for (reader, way) in readers.filter(|(reader, _)| *reader != waits) {
                    all.extend(way.sections.iter().map(|&(begin, end)| {
                        let section = (events(reader, 0..end), after);
                        [section, (before, events(reader, begin..usize::MAX))]
                    }));
                }
            }
        }
        all
    }

    /// Returns the number of an event within its thread.
    fn number(&self, event: usize) -> usize {
        let thread = self.events[event].thread;
        let before = &self.events[..event];
        before.iter().filter(|e| e.thread == thread).count()
    }

    /// Returns the outcome of the execution, or `None` if the test's filter excludes it.
    pub fn end(&self, program: &Program) -> Option<Outcome> {
        program.outcome(|observed| match *observed {
            Observed::Register(thread, register) => self.ways[thread].registers[register],
            Observed::Location(at) => {
                let writes = (0..self.events.len())
                    .filter(|&e| self.events[e].kind == Kind::Write && self.events[e].at == at);
                match writes.max_by_key(|&write| self.rank[write]) {
                    Some(last) => self.events[last].value,
                    None => program.initial[usize::from(at)],
                }
            }
        })
    }
}

/// Returns true if every access of a program is to the address of a location.
///
/// # Errors
/// The program has too many executions to decide this.
pub fn stays_at_locations(program: &Program) -> Result<bool, String> {
    if !program.has_addresses() {
        return Ok(true);
    }
    let mut has_wild_access = false;
    match find_thread_paths(program, &mut has_wild_access) {
        Some(_) => Ok(true),
        None if has_wild_access => Ok(false),
        None => Err(format!(
            "{} has too many executions to determine its addresses",
            program.name
        )),
    }
}

/// Calls `show` with every candidate execution of a program.
///
/// # Errors
/// The program has too many candidates or too many events.
pub fn each(program: &Program, show: &mut dyn FnMut(&Execution)) -> Result<(), String> {
    candidates(program, false, show)
}

/// Calls `show` with the candidates that are coherent at each location and in which no write comes between the parts of
/// an atomic access. Every model demands both.
///
/// # Errors
/// The program has too many candidates or too many events.
pub fn for_each_coherent(
    program: &Program,
    show: &mut dyn FnMut(&Execution),
) -> Result<(), String> {
    candidates(program, true, show)
}

fn candidates(
    program: &Program,
    coherent: bool,
    show: &mut dyn FnMut(&Execution),
) -> Result<(), String> {
    let too_large = || format!("{} has too many executions to examine each", program.name);
    let mut ways = ways(program).ok_or_else(too_large)?;
    for (thread, ways) in ways.iter_mut().enumerate() {
        ways.retain(|way| required(&program.filter, thread, &way.registers));
    }
    let all = ways.iter().map(|ways| ways.len() as u64);
    if all.fold(1u64, u64::saturating_mul) > MAX_CANDIDATES as u64 {
        return Err(too_large());
    }
    if ways.iter().any(Vec::is_empty) {
        return Ok(());
    }
    let mut chosen = vec![0; ways.len()];
    let (mut count, mut shown) = (0, 0);
    loop {
        let ways_now: Vec<&ThreadPath> = ways.iter().zip(&chosen).map(|(w, &c)| &w[c]).collect();
        let events: Vec<Event> = ways_now.iter().flat_map(|w| w.events.clone()).collect();
        if events.len() > MOST_EVENTS {
            return Err(too_large());
        }
        let mut execution = Execution {
            from: vec![None; events.len()],
            rank: vec![0; events.len()],
            events: &events,
            ways: ways_now,
        };
        let mut places = Vec::new();
        for at in 0..program.locations.len() {
            let first = program.initial[at];
            let mut place = Place::new(&events, at as Location, first, coherent);
            place.orders(&mut count);
            places.push(place.histories);
            if count > MAX_CANDIDATES {
                return Err(too_large());
            }
            if places[at].is_empty() {
                break;
            }
        }
        let all = places.iter().map(|all| all.len() as u64);
        shown += all.fold(1, u64::saturating_mul);
        if shown > MAX_CANDIDATES as u64 {
            return Err(too_large());
        }
        combinations(&mut execution, &places, show);
        if !next_choice(&mut chosen, &ways) {
            return Ok(());
        }
    }
}

/// Returns true if the final registers of a thread satisfy the parts of a filter that name only this thread.
fn required(filter: &Claim, thread: usize, registers: &[i64]) -> bool {
    match filter {
        Claim::Is(Observed::Register(of, register), value) if *of == thread => {
            registers[*register] == *value
        }
        Claim::And(a, b) => required(a, thread, registers) && required(b, thread, registers),
        _ => true,
    }
}

/// Advances to the next choice of a path per thread. Returns false after the last.
fn next_choice(chosen: &mut [usize], ways: &[Vec<ThreadPath>]) -> bool {
    for (choice, ways) in chosen.iter_mut().zip(ways) {
        *choice += 1;
        if *choice < ways.len() {
            return true;
        }
        *choice = 0;
    }
    false
}

/// Calls `show` with every combination of one history per location.
fn combinations(
    execution: &mut Execution,
    places: &[Vec<History>],
    show: &mut dyn FnMut(&Execution),
) {
    let Some((histories, others)) = places.split_first() else {
        return show(execution);
    };
    for history in histories {
        for &(read, from) in &history.from {
            execution.from[read] = from;
        }
        for (rank, &write) in history.order.iter().enumerate() {
            execution.rank[write] = rank;
        }
        combinations(execution, others, show);
    }
}

/// History of one location: the write that each read reads from, and the order of the writes.
struct History {
    from: Vec<(usize, Option<usize>)>,
    order: Vec<usize>,
}

/// Enumeration of the histories of one location.
struct Place<'e> {
    events: &'e [Event],
    reads: Vec<usize>,
    writes: Vec<usize>,
    /// Initial value.
    first: i64,
    /// True to enumerate coherent histories only.
    coherent: bool,
    order: Vec<usize>,
    from: Vec<(usize, Option<usize>)>,
    histories: Vec<History>,
}

impl<'e> Place<'e> {
    fn new(events: &'e [Event], at: Location, first: i64, coherent: bool) -> Place<'e> {
        let of = |kind: Kind| {
            let all = events.iter().enumerate();
            let its = all.filter(|(_, event)| (event.at, event.kind) == (at, kind));
            its.map(|(event, _)| event).collect()
        };
        Place {
            events,
            reads: of(Kind::Read),
            writes: of(Kind::Write),
            first,
            coherent,
            order: Vec::new(),
            from: Vec::new(),
            histories: Vec::new(),
        }
    }

    /// Enumerates every order of the writes that begins with `self.order`.
    fn orders(&mut self, count: &mut usize) {
        *count += 1;
        if *count > MAX_CANDIDATES {
            return;
        }
        if self.order.len() == self.writes.len() {
            return self.sources(0, count);
        }
        for write in self.writes.clone() {
            let thread = self.events[write].thread;
            let open = |&other: &usize| {
                let earlier = self.coherent && other < write;
                !self.order.contains(&other)
                    && (other == write || earlier && self.events[other].thread == thread)
            };
            // Coherence keeps the writes of a thread in program order.
            if self.writes.iter().copied().find(open) != Some(write) {
                continue;
            }
            let sources = self.from.len();
            if !self.coherent || self.atomic(write) {
                self.order.push(write);
                self.orders(count);
                self.order.pop();
            }
            self.from.truncate(sources);
        }
    }

    /// Makes the read that forms one atomic access with `write`, if any, read from the write directly before `write` in
    /// coherence order. Returns false if the values differ.
    fn atomic(&mut self, write: usize) -> bool {
        let event = &self.events[write];
        let Some(number) = event.reads else {
            return true;
        };
        let begins = self.events.iter().position(|e| e.thread == event.thread);
        let read = begins.unwrap_or(0) + number;
        // Writes of the same thread between both parts do not violate atomicity.
        let between = |&&other: &&usize| (read..write).contains(&other);
        let from = self.order.iter().rev().find(|other| !between(other));
        let from = from.copied();
        self.from.push((read, from));
        self.found(from) == self.events[read].value
    }

    /// Returns the value of a write, or the initial value for `None`.
    fn found(&self, from: Option<usize>) -> i64 {
        from.map_or(self.first, |write| self.events[write].value)
    }

    /// Enumerates every choice of a write with the right value for each read, from read `number` on.
    fn sources(&mut self, number: usize, count: &mut usize) {
        let Some(&read) = self.reads.get(number) else {
            *count += 1;
            if !self.coherent || self.follows_the_program() {
                self.histories.push(History {
                    from: self.from.clone(),
                    order: self.order.clone(),
                });
            }
            return;
        };
        if self.from.iter().any(|(known, _)| *known == read) {
            return self.sources(number + 1, count);
        }
        let writes = self.writes.clone().into_iter().map(Some);
        for from in std::iter::once(None).chain(writes) {
            if self.found(from) == self.events[read].value && *count <= MAX_CANDIDATES {
                self.from.push((read, from));
                self.sources(number + 1, count);
                self.from.pop();
            }
        }
    }

    /// Returns true if no thread accesses an older value of the location after a newer one.
    fn follows_the_program(&self) -> bool {
        // Position of an event in the history: 0 is the initial value, then the writes in coherence order.
        let place = |write: usize| self.order.iter().position(|&other| other == write);
        let place = |from: Option<usize>| from.and_then(place).map_or(0, |place| place + 1);
        let mut all = self.reads.iter().chain(&self.writes).collect::<Vec<_>>();
        all.sort_unstable();
        let mut newest = (usize::MAX, 0);
        all.into_iter().all(|&event| {
            let Event { thread, kind, .. } = self.events[event];
            if newest.0 != thread {
                newest = (thread, 0);
            }
            let (here, fits) = match kind {
                Kind::Write => {
                    let here = place(Some(event));
                    (here, here > newest.1)
                }
                Kind::Read => {
                    let mut sources = self.from.iter();
                    let from = sources.find(|(read, _)| *read == event);
                    let here = place(from.and_then(|(_, from)| *from));
                    (here, here >= newest.1)
                }
            };
            newest.1 = here;
            fits
        })
    }
}

/// Returns all paths of each thread by itself, where loads return any value that some path writes. `None` if there are
/// too many, or if an access is to the address of no location.
fn ways(program: &Program) -> Option<Vec<Vec<ThreadPath>>> {
    find_thread_paths(program, &mut false)
}

/// As [`ways`]; sets `has_wild_access` if an access is to the address of no location.
fn find_thread_paths(
    program: &Program,
    has_wild_access: &mut bool,
) -> Option<Vec<Vec<ThreadPath>>> {
    let first = program.initial.iter().map(|&value| BTreeSet::from([value]));
    let mut values: Vec<BTreeSet<i64>> = first.collect();
    let writes = |i: &&Instruction| i.writes();
    let code = program.threads.iter().flat_map(|thread| &thread.code);
    // No value is the result of more writes than the program has.
    let rounds = code.filter(writes).count() + 1;
    for _ in 0..rounds {
        let ways = ways_with(program, &values, has_wild_access)?;
        let before = values.clone();
        for event in ways.iter().flatten().flat_map(|way| &way.events) {
            if event.kind == Kind::Write {
                values[usize::from(event.at)].insert(event.value);
            }
        }
        if values == before {
            return Some(ways);
        }
    }
    ways_with(program, &values, has_wild_access)
}

fn ways_with(
    program: &Program,
    values: &[BTreeSet<i64>],
    has_wild_access: &mut bool,
) -> Option<Vec<Vec<ThreadPath>>> {
    let mut all = Vec::new();
    for (number, thread) in program.threads.iter().enumerate() {
        let mut walk = Walk {
            code: &thread.code,
            thread: number,
            values,
            way: ThreadPath {
                events: Vec::new(),
                fences: Vec::new(),
                registers: thread.registers.clone(),
                sections: Vec::new(),
                open: Vec::new(),
                graces: Vec::new(),
            },
            depends: vec![0; thread.registers.len()],
            picks: vec![0; thread.registers.len()],
            reserved: None,
            control: 0,
            chosen: 0,
            synchronised: 0,
            ways: Vec::new(),
            kept: 0,
            has_wild_access: false,
        };
        walk.from(0);
        *has_wild_access |= walk.has_wild_access;
        if walk.too_many() || walk.has_wild_access {
            return None;
        }
        all.push(walk.ways);
    }
    Some(all)
}

/// Enumeration of the paths of one thread.
struct Walk<'w> {
    code: &'w [Instruction],
    thread: usize,
    values: &'w [BTreeSet<i64>],
    way: ThreadPath,
    /// Events that each register depends on, as a bit set.
    depends: Vec<u64>,
    /// Events that only selected each register's value.
    picks: Vec<u64>,
    /// Number in the thread of the read that holds the reservation.
    reserved: Option<usize>,
    control: u64,
    /// Events that only selected the values that `control` depends on.
    chosen: u64,
    /// Control and address dependencies at the last fence of instruction fetches.
    synchronised: u64,
    ways: Vec<ThreadPath>,
    /// Number of events of all paths found.
    kept: usize,
    /// True after an access to the address of no location.
    has_wild_access: bool,
}

/// Saved state of a [`Walk`], for backtracking.
type Marks = (ThreadPath, Vec<u64>, Vec<u64>, Option<usize>, [u64; 3]);

impl Walk<'_> {
    fn too_many(&self) -> bool {
        self.ways.len() > MAX_CANDIDATES || self.kept > MAX_EVENTS_KEPT
    }

    fn value(&self, operand: Operand) -> (i64, u64) {
        match operand {
            Operand::Number(value) => (value, 0),
            Operand::Register(register) => (self.way.registers[register], self.depends[register]),
        }
    }

    fn picks(&self, operand: Operand) -> u64 {
        match operand {
            Operand::Number(_) => 0,
            Operand::Register(register) => self.picks[register],
        }
    }

    /// Returns the location of an access, the events that it depends on, and those that selected it.
    fn place(&mut self, address: Address) -> Option<(Location, u64, u64)> {
        match address {
            Address::Direct(at) => Some((at, 0, 0)),
            Address::Indirect(register) => {
                let at = location_at(self.way.registers[register]);
                let at = at.filter(|&at| usize::from(at) < self.values.len());
                self.has_wild_access |= at.is_none();
                Some((at?, self.depends[register], self.picks[register]))
            }
        }
    }

    fn event(&mut self, place: usize, kind: Kind, at: (Location, u64, u64)) -> &mut Event {
        self.way.events.push(Event {
            thread: self.thread,
            place,
            kind,
            at: at.0,
            value: 0,
            acquire: Acquire::No,
            release: false,
            atomic: false,
            exclusive: false,
            returns: true,
            both: false,
            reads: None,
            data: 0,
            address: at.1,
            pick: at.2 | self.chosen,
            control: self.control,
            synchronised: self.synchronised,
        });
        let last = self.way.events.len() - 1;
        &mut self.way.events[last]
    }

    /// Bit of the last event.
    fn last(&self) -> u64 {
        1 << (self.way.events.len() - 1).min(63)
    }

    /// Writes a register. The value depends on the events `depends`, and the events `picks` selected it.
    fn fill(&mut self, to: Register, value: i64, depends: u64, picks: u64) {
        self.way.registers[to] = value;
        self.depends[to] = depends;
        self.picks[to] = picks;
    }

    fn marks(&self) -> Marks {
        let rest = [self.control, self.chosen, self.synchronised];
        let (way, depends) = (self.way.clone(), self.depends.clone());
        (way, depends, self.picks.clone(), self.reserved, rest)
    }

    fn back(&mut self, marks: &Marks) {
        let (way, depends, picks, reserved, [control, chosen, synchronised]) = marks;
        self.way.clone_from(way);
        self.depends.clone_from(depends);
        self.picks.clone_from(picks);
        self.reserved = *reserved;
        (self.control, self.chosen, self.synchronised) = (*control, *chosen, *synchronised);
    }

    fn from(&mut self, mut place: usize) {
        while let Some(&instruction) = self.code.get(place) {
            if self.too_many() || self.has_wild_access {
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
                    let ((a, by), (b, too)) = (self.value(a), self.value(b));
                    self.fill(to, operation.of(a, b), by | too, picks);
                }
                Instruction::Select {
                    to,
                    on,
                    then,
                    otherwise,
                } => {
                    let (value, by) = self.value(Operand::Register(on));
                    let chosen = if value != 0 { then } else { otherwise };
                    let picks = by | self.picks[on] | self.picks(chosen);
                    let (value, by) = self.value(chosen);
                    self.fill(to, value, by, picks);
                }
                Instruction::Branch { on, zero, to } => {
                    let (value, by) = self.value(Operand::Register(on));
                    self.control |= by;
                    self.chosen |= self.picks[on];
                    if (value == 0) == zero {
                        place = to;
                        continue;
                    }
                }
                Instruction::Fence(fence) => match fence.sides() {
                    None => {
                        let events = self.way.events.iter();
                        let addresses = events.fold(0, |all, event| all | event.address);
                        self.synchronised = self.control | addresses;
                    }
                    Some((before, after)) => {
                        self.way.fences.push((before, after, self.way.events.len()));
                    }
                },
                Instruction::Rcu(operation) => self.rcu(operation),
                Instruction::Store {
                    to, value, release, ..
                } => {
                    let Some(at) = self.place(to) else { return };
                    self.writes(place, at, value).release = release;
                }
                Instruction::StoreConditional { .. } => return self.writes_if(place, instruction),
                Instruction::Load { .. }
                | Instruction::Atomic { .. }
                | Instruction::LoadReserved { .. } => return self.reads(place, instruction),
            }
            place += 1;
        }
        self.kept += self.way.events.len();
        self.ways.push(self.way.clone());
    }

    /// Records an RCU operation. Only outermost critical sections count: an inner one is part of its outer section.
    fn rcu(&mut self, operation: Rcu) {
        let events = self.way.events.len();
        let way = &mut self.way;
        match operation {
            Rcu::ReadLock => way.open.push(events),
            Rcu::ReadUnlock => {
                if let (Some(begin), true) = (way.open.pop(), way.open.is_empty()) {
                    way.sections.push((begin, events));
                }
            }
            Rcu::Synchronize => {
                way.graces.push(events);
                way.fences.push((Class::All, Class::All, events));
            }
        }
    }

    /// Adds the event of a write of an operand.
    fn writes(&mut self, place: usize, at: (Location, u64, u64), value: Operand) -> &mut Event {
        let (picks, (value, by)) = (self.picks(value), self.value(value));
        let event = self.event(place, Kind::Write, at);
        (event.value, event.data) = (value, by);
        event.pick |= picks;
        event
    }

    /// Continues after a store-conditional: once as failed, and once as performed if the reservation is for its
    /// location.
    fn writes_if(&mut self, place: usize, instruction: Instruction) {
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
        let Some(at) = self.place(to) else { return };
        let reserved = self.reserved.take();
        let marks = self.marks();
        self.fill(status, 1, 0, 0);
        self.from(place + 1);
        self.back(&marks);
        if let Some(read) = reserved.filter(|&read| self.way.events[read].at == at.0) {
            let write = self.writes(place, at, value);
            (write.exclusive, write.release, write.reads) = (true, release, Some(read));
            if acquire {
                write.acquire = Acquire::Full;
            }
            let by = self.last();
            self.fill(status, 0, by, 0);
            self.from(place + 1);
            self.back(&marks);
        }
    }

    /// Continues after a read, once for each value that it may return.
    fn reads(&mut self, place: usize, instruction: Instruction) {
        let Some(at) = instruction.address().and_then(|at| self.place(at)) else {
            return;
        };
        let marks = self.marks();
        for &found in &self.values[usize::from(at.0)] {
            let read = self.event(place, Kind::Read, at);
            read.value = found;
            match instruction {
                Instruction::Load { to, acquire, .. } => {
                    read.acquire = acquire;
                    let by = self.last();
                    self.fill(to, found, by, 0);
                }
                Instruction::LoadReserved {
                    to,
                    acquire,
                    release,
                    ..
                } => {
                    (read.acquire, read.release, read.exclusive) = (acquire, release, true);
                    self.reserved = Some(self.way.events.len() - 1);
                    let by = self.last();
                    self.fill(to, found, by, 0);
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
                    read.both = acquire && release;
                    if acquire {
                        read.acquire = Acquire::Full;
                    }
                    let by = self.last();
                    let (operand, _) = self.value(value);
                    let mut expects = (0, 0);
                    // A compare-and-swap that succeeds returns the expected value: the read only selected it.
                    let mut result = (by, 0);
                    let written = match change {
                        Change::Set => Some(operand),
                        Change::Add => Some(found.wrapping_add(operand)),
                        Change::Apply(operation) => Some(operation.of(found, operand)),
                        Change::SetIf(expected) => {
                            let (wanted, depends) = self.value(expected);
                            expects = (depends, self.picks(expected));
                            if found == wanted {
                                result = (depends, expects.1 | by);
                            }
                            (found == wanted).then_some(operand)
                        }
                    };
                    if let Some(written) = written {
                        let read = self.way.events.len() - 1;
                        let write = self.writes(place, at, value);
                        (write.atomic, write.release) = (true, release);
                        (write.both, write.reads) = (acquire && release, Some(read));
                        write.value = written;
                        // The comparison decides if the write happens.
                        write.pick |= expects.0 | expects.1;
                    }
                    self.fill(to, found, result.0, result.1);
                }
                _ => {}
            }
            self.from(place + 1);
            self.back(&marks);
        }
    }
}
