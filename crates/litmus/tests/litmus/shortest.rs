//! Check that reported paths are shortest.
//!
//! The oracle searches complete system states of all lines, with every placement of locations at homes. It shares
//! neither the numbered lines nor the search with `run`. Its threads are lists of loads and stores that wait for each
//! other according to the protocol's orders.

use crate::protocol_files;

use cohkit_litmus::cores::CoreKind;
use cohkit_litmus::cycles::named;
use cohkit_litmus::herd;
use cohkit_litmus::lines::Lines;
use cohkit_litmus::program::{
    Acquire, Instruction, Observable, Operand, Operation, Outcome, Program, Quantifier,
};
use cohkit_litmus::run::{shortest_path, Options};
use cohkit_protocol::orders::Issue;
use cohkit_protocol::protocol::{Permission, Protocol};
use cohkit_protocol::threads::Accesses;
use cohkit_system::data::{Data, Extent};
use cohkit_system::state::{Operation as OfMemory, Payload, Step, System, SystemState};
use protocol_files::{home, read};
use rustc_hash::FxHashSet;
use std::collections::VecDeque;

/// Number of writes of each line, and its last value.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct Numbers(Vec<(u32, i64)>);

impl Data for Numbers {
    type Copy = (u32, i64);
    type Write = i64;
    const KEEPS_VALUES: bool = true;
    const TRACKS_STALENESS: bool = false;

    fn new(lines: u8) -> Numbers {
        Numbers(vec![(1, 0); usize::from(lines)])
    }

    fn initial(&self, line: u8) -> (u32, i64) {
        self.0[usize::from(line)]
    }

    fn is_current(&self, line: u8, copy: &(u32, i64)) -> bool {
        self.0[usize::from(line)] == *copy
    }

    fn write(&mut self, line: u8, _: &(u32, i64), _: Extent, value: &i64) -> (u32, i64) {
        let last = &mut self.0[usize::from(line)];
        *last = (last.0 + 1, *value);
        *last
    }

    fn mark_stale(copy: &(u32, i64)) -> (u32, i64) {
        *copy
    }
}

/// A load into a register, or a store of a number.
#[derive(Clone, Copy, PartialEq)]
struct Access {
    /// Location accessed.
    location: usize,
    /// Kind of the access, which the protocol's orders distinguish.
    issue: Issue,
    /// True if an acquire waits for earlier releases.
    full: bool,
    /// Destination register of a load, or the value of a store (`Err`).
    operand: Result<usize, i64>,
}

/// Returns the accesses of a thread. The values of its stores must be constants.
fn accesses(program: &Program, thread: usize) -> Vec<Access> {
    let thread = &program.threads[thread];
    let mut registers: Vec<Option<i64>> = thread.registers.iter().copied().map(Some).collect();
    let mut list = Vec::new();
    for instruction in &thread.code {
        let constant = |operand: Operand| match operand {
            Operand::Number(number) => number,
            Operand::Register(register) => registers[register].expect("a number"),
        };
        match *instruction {
            Instruction::Load { to, from, acquire } => {
                list.push(Access {
                    location: from.direct().expect("a location").into(),
                    issue: match acquire {
                        Acquire::None => Issue::Load,
                        _ => Issue::Acquire,
                    },
                    full: acquire == Acquire::Rcsc,
                    operand: Ok(to),
                });
                registers[to] = None;
            }
            Instruction::Store {
                to, value, release, ..
            } => list.push(Access {
                location: to.direct().expect("a location").into(),
                issue: match release {
                    true => Issue::Release,
                    false => Issue::Store,
                },
                full: false,
                operand: Err(constant(value)),
            }),
            Instruction::Compute {
                to,
                operation: Operation::Add,
                a,
                b,
            } => registers[to] = Some(constant(a) + constant(b)),
            _ => panic!("{instruction:?} is nothing that the oracle runs"),
        }
    }
    list
}

/// State of the oracle: the system state, the completed accesses of each thread with the values found, and the
/// remaining number of spontaneous evictions and downgrades.
#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    /// Caches and homes of all lines.
    system_state: SystemState<Numbers>,
    /// Per thread and access, the value found; `None` until the access completes.
    completed: Vec<Vec<Option<i64>>>,
    /// Remaining number of spontaneous evictions and downgrades.
    max_spontaneous_evictions: u8,
}

/// Oracle for a program on a protocol's caches, with cores that keep the orders `waits`.
struct Oracle<'o> {
    /// System with one cache per thread.
    system: System<'o>,
    /// The program.
    program: &'o Program,
    /// Accesses of each thread in program order.
    threads: Vec<Vec<Access>>,
    /// True if the second access must wait for the first, whatever their locations.
    waits: &'o dyn Fn(Issue, Issue) -> bool,
}

impl<'o> Oracle<'o> {
    fn new(
        protocol: &'o Protocol,
        program: &'o Program,
        waits: &'o dyn Fn(Issue, Issue) -> bool,
    ) -> Oracle<'o> {
        let threads = program.threads.len();
        let lines = program.locations.len() as u8 * protocol.homes as u8;
        Oracle {
            system: System::new(protocol, home(protocol), threads as u16, lines, 7),
            program,
            threads: (0..threads).map(|n| accesses(program, n)).collect(),
            waits,
        }
    }

    /// Returns the initial state with each location at the given home, and the line of each location, distinct per
    /// location.
    fn initial(&self, homes: &[u8]) -> (State, Vec<u8>) {
        let number = self.system.protocol.homes as u8;
        let lines = (0..).zip(homes).map(|(index, home)| index * number + home);
        let lines: Vec<u8> = lines.collect();
        let mut system_state: SystemState<Numbers> = SystemState::new(&self.system);
        for (&line, &value) in lines.iter().zip(&self.program.initial) {
            system_state.data.0[usize::from(line)].1 = value;
            system_state.lines[usize::from(line)].memory.1 = value;
        }
        let state = State {
            system_state,
            completed: self.threads.iter().map(|t| vec![None; t.len()]).collect(),
            max_spontaneous_evictions: Options::default().max_spontaneous_evictions,
        };
        (state, lines)
    }

    /// Returns true if an access of a thread may begin: no earlier access must complete first.
    fn may_begin(&self, state: &State, thread: usize, index: usize) -> bool {
        let (code, completed) = (&self.threads[thread], &state.completed[thread]);
        let later = &code[index];
        let allows = |(earlier, completed): (&Access, &Option<i64>)| {
            completed.is_some()
                || earlier.location != later.location
                    && !(self.waits)(earlier.issue, later.issue)
                    && !(later.full && earlier.issue == Issue::Release)
        };
        let mut earlier = code.iter().zip(completed).take(index);
        completed[index].is_none() && earlier.all(allows)
    }

    /// Returns the successors of a state. The flag is false for spontaneous evictions and downgrades.
    fn next(&self, state: &State, lines: &[u8]) -> Vec<(State, bool)> {
        let mut successors = Vec::new();
        let mut push = |system_state: SystemState<Numbers>,
                        completed: Vec<_>,
                        max_spontaneous_evictions: bool| {
            let mut next = State {
                system_state,
                completed: state.completed.clone(),
                max_spontaneous_evictions: state.max_spontaneous_evictions
                    - u8::from(max_spontaneous_evictions),
            };
            for (remote, line, found) in completed {
                let thread = usize::from(remote);
                let is_match = |(access, completed): (&Access, &Option<i64>)| {
                    lines[access.location] == line && completed.is_none()
                };
                let mut code = self.threads[thread].iter().zip(&state.completed[thread]);
                let position = code.position(is_match).expect("the access has begun");
                next.completed[thread][position] = Some(found);
            }
            successors.push((next, !max_spontaneous_evictions));
        };
        let read_values = |completed: Vec<cohkit_system::state::CompletedAccess<Numbers>>| {
            let read_values = completed.into_iter();
            let read_values = read_values.map(|access| {
                (
                    access.remote,
                    access.line,
                    access.old_copy.unwrap_or_default().1,
                )
            });
            read_values.collect::<Vec<_>>()
        };
        let cache_accesses = Accesses::of(self.system.protocol);
        for (thread, code) in self.threads.iter().enumerate() {
            for (place, access) in code.iter().enumerate() {
                if !self.may_begin(state, thread, place) {
                    continue;
                }
                let access_kind = match access.issue {
                    Issue::Load => cache_accesses.read,
                    Issue::Acquire => cache_accesses.acquire,
                    Issue::Store => cache_accesses.write,
                    Issue::Release => cache_accesses.release,
                    Issue::Fence => None,
                };
                let line_and_remote = (lines[access.location], thread as u8);
                let (mut system_state, mut completed) = (state.system_state.clone(), Vec::new());
                let request = (
                    access_kind.expect("an access"),
                    access.operand.err().unwrap_or_default(),
                );
                let result = system_state.begin(
                    &self.system,
                    line_and_remote,
                    request.0,
                    request.1,
                    &mut completed,
                );
                if result.expect("no property is violated") {
                    push(system_state, read_values(completed), false);
                }
            }
        }
        for step in state.system_state.steps(&self.system) {
            let max_spontaneous_evictions = match step {
                // Threads begin hits, and there is no device.
                Step::Hit(..) | Step::RequestLocal(..) | Step::DeviceWrite(_) | Step::Unlock(_) => {
                    continue
                }
                Step::Access(_, _, access) => {
                    if !access.about_line()
                        || access.needs() > Permission::None
                        || state.max_spontaneous_evictions == 0
                    {
                        continue;
                    }
                    true
                }
                _ => false,
            };
            let (mut system_state, mut completed) = (state.system_state.clone(), Vec::new());
            let result = system_state.take_recording(&self.system, step, &mut completed);
            if result.expect("no property is violated") {
                push(
                    system_state,
                    read_values(completed),
                    max_spontaneous_evictions,
                );
            }
        }
        successors
    }

    /// Returns the outcome of a state if all accesses have completed and all writes are performed.
    fn end(&self, state: &State, lines: &[u8]) -> Option<Outcome> {
        let all_completed = state.completed.iter().flatten().all(Option::is_some);
        let mut flights = state.system_state.network.flights();
        let write_in_flight = flights.any(|flight| matches!(flight.carried, Payload::Write(..)))
            || state.system_state.lines.iter().any(|line| {
                line.deferred_store.is_some() || matches!(line.operation, OfMemory::Store { .. })
            });
        if !all_completed || write_in_flight {
            return None;
        }
        let register = |thread: usize, register| {
            let loads = self.threads[thread].iter().zip(&state.completed[thread]);
            let mut loads = loads.rev();
            let last_load = loads.find(|(access, _)| access.operand == Ok(register));
            last_load.map_or(0, |(_, completed)| completed.unwrap_or_default())
        };
        let value = |observed: &Observable| match *observed {
            Observable::Register(thread, number) => register(thread, number),
            Observable::Location(location) => {
                state.system_state.data.0[usize::from(lines[usize::from(location)])].1
            }
        };
        let observed = self.program.observed().into_iter();
        Some(Outcome(observed.map(|o| (o.clone(), value(&o))).collect()))
    }

    /// Returns the number of steps to the first outcome found that satisfies `is_goal`, or to a deadlock if
    /// `is_goal(None)`, over all placements of the locations.
    fn search(
        &self,
        is_goal: &dyn Fn(Option<&Outcome>) -> bool,
        order: SearchOrder,
    ) -> Option<usize> {
        // Homes are symmetric, so the first location is at the first home.
        let mut placements: Vec<Vec<u8>> = vec![vec![0]];
        for _ in &self.program.locations[1..] {
            let homes = 0..self.system.protocol.homes as u8;
            let extend = |prefix: &Vec<u8>| {
                let prefix = prefix.clone();
                homes
                    .clone()
                    .map(move |home| [&prefix[..], &[home]].concat())
            };
            placements = placements.iter().flat_map(extend).collect();
        }
        let (initial_states, lines): (Vec<_>, Vec<_>) =
            placements.iter().map(|homes| self.initial(homes)).unzip();
        let mut visited = FxHashSet::default();
        let mut queue: VecDeque<(usize, State, usize)> = VecDeque::new();
        for (placement, state) in initial_states.into_iter().enumerate() {
            visited.insert((placement, state.clone()));
            queue.push_back((placement, state, 0));
        }
        while let Some((placement, state, steps)) = match order {
            SearchOrder::BreadthFirst => queue.pop_front(),
            SearchOrder::DepthFirst => queue.pop_back(),
        } {
            let lines = &lines[placement];
            if let Some(end) = self.end(&state, lines) {
                if is_goal(Some(&end)) {
                    return Some(steps);
                }
                continue;
            }
            let mut has_forced_step = false;
            for (next, is_forced) in self.next(&state, lines) {
                has_forced_step |= is_forced;
                if visited.insert((placement, next.clone())) {
                    queue.push_back((placement, next, steps + 1));
                }
            }
            if !has_forced_step && is_goal(None) {
                return Some(steps);
            }
        }
        None
    }
}

/// The order in which states are expanded.
#[derive(Clone, Copy)]
enum SearchOrder {
    /// The oldest pending state first.
    BreadthFirst,
    /// The newest pending state first.
    DepthFirst,
}

/// Returns the orders that a kind of core keeps.
fn kept_orders(cores: CoreKind) -> Box<dyn Fn(Issue, Issue) -> bool> {
    match cores {
        CoreKind::InOrder => Box::new(|_, _| true),
        CoreKind::StoreBuffer => Box::new(|earlier, later| {
            let stores = |issue| matches!(issue, Issue::Store | Issue::Release);
            !stores(earlier) || stores(later)
        }),
        CoreKind::Relaxed(orders) => Box::new(move |earlier, later| orders.waits(earlier, later)),
    }
}

/// Compares the lengths of reported paths with those that the oracle finds.
#[test]
fn reported_path_is_shortest() {
    let file = |text| herd::read(text).expect("a test");
    let shape = |name| named(name).expect("a shape");
    let mp = include_str!("../../../../ordering/mp.coh");
    let cases = [
        (
            include_str!("../../../../protocols/write-through.coh"),
            shape("LB"),
        ),
        (mp, shape("MP+popl+poap")),
        (mp, shape("ISA2+popl+poal+poap")),
        (
            include_str!("../../../../ordering/readings/modular.coh"),
            file(include_str!("../../../../litmus/ordering/MP+epochs.litmus")),
        ),
        (
            include_str!("../../../../ordering/readings/drained.coh"),
            file(include_str!("../../../../litmus/ordering/MP+wrap.litmus")),
        ),
    ];
    for (text, program) in cases {
        let protocol = read(text);
        let cores = CoreKind::Relaxed(protocol.program_order.unwrap_or_default());
        let options = Options {
            cores,
            ..Options::default()
        };
        let decides =
            |end: &Outcome| program.holds(end) == (program.quantifier != Quantifier::Forall);
        let is_goal = |end: Option<&Outcome>| end.is_some_and(decides);
        let (threads, locations) = (program.threads.len() as u8, program.locations.len() as u8);
        let mut lines = Lines::new(
            &protocol,
            home(&protocol),
            threads,
            locations,
            options.channel_capacity,
        );
        let reported = shortest_path(&mut lines, &program, &options, &is_goal, &mut || true);
        let reported = reported.map(|path| path.steps);
        let waits = kept_orders(cores);
        let oracle = Oracle::new(&protocol, &program, &waits);
        let name = format!("{} on {}", program.name, protocol.name);
        assert_eq!(
            oracle.search(&is_goal, SearchOrder::BreadthFirst),
            reported,
            "{name}"
        );
        assert!(reported.is_some(), "{name}");
        // A depth-first search also finds an outcome, but by a longer path.
        assert!(
            oracle.search(&is_goal, SearchOrder::DepthFirst) > reported,
            "{name}"
        );
    }
}
