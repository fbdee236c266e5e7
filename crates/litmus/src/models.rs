//! Operational memory models: outcomes of a program on sequentially consistent memory.

use rustc_hash::FxHashSet;
use std::collections::BTreeSet;

use crate::cores::{Core, Cores, MemoryRequest};
use crate::program::{Observed, Outcome, Program, Update};

/// Returns all outcomes of a program on a memory that performs one access at a time. In-order cores give sequential
/// consistency, and store buffers give total store order.
pub fn ends(program: &Program, cores: Cores) -> BTreeSet<Outcome> {
    outcomes_within(program, cores, usize::MAX).expect("as many states as there are")
}

/// As [`ends`], or `None` if there are more than `max_states` states.
pub fn outcomes_within(
    program: &Program,
    cores: Cores,
    max_states: usize,
) -> Option<BTreeSet<Outcome>> {
    let mut initial = State {
        cores: Core::all(program),
        memory: program.initial.clone(),
    };
    for (core, thread) in initial.cores.iter_mut().zip(&program.threads) {
        core.settle(&thread.code, cores);
    }
    let mut visited = FxHashSet::from_iter([initial.clone()]);
    let mut work = vec![initial];
    let mut ends = BTreeSet::new();
    while let Some(state) = work.pop() {
        if visited.len() > max_states {
            return None;
        }
        let mut stopped = true;
        for (number, thread) in program.threads.iter().enumerate() {
            let core = &state.cores[number];
            stopped &= core.stopped(&thread.code);
            let mut visit = |mut next: State| {
                next.cores[number].settle(&thread.code, cores);
                if visited.insert(next.clone()) {
                    work.push(next);
                }
            };
            for position in core.forwards(&thread.code, cores) {
                let mut next = state.clone();
                next.cores[number].forward(&thread.code, position);
                visit(next);
            }
            for request in core.ready_requests(&thread.code, cores) {
                let mut next = state.clone();
                let old_value = next.perform(request);
                next.cores[number].ended(&thread.code, request.location(), old_value);
                visit(next);
            }
        }
        if stopped {
            ends.extend(end(program, &state.cores, &state.memory));
        }
    }
    Some(ends)
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    cores: Vec<Core>,
    memory: Vec<i64>,
}

impl State {
    /// Performs a request and returns the old value.
    fn perform(&mut self, request: MemoryRequest) -> i64 {
        let word = &mut self.memory[usize::from(request.location())];
        let old_value = *word;
        match request {
            MemoryRequest::Read(..) => {}
            MemoryRequest::Write(_, value, ..) => *word = Update::Exchange(value).apply(old_value),
            MemoryRequest::Update(_, update, _) => *word = update.apply(old_value),
        }
        old_value
    }
}

/// Returns the outcome of final cores and memory, or `None` if the test's filter excludes it.
pub fn end(program: &Program, cores: &[Core], memory: &[i64]) -> Option<Outcome> {
    program.outcome(|observed| match *observed {
        Observed::Register(thread, register) => cores[thread].registers[register],
        Observed::Location(location) => memory[usize::from(location)],
    })
}
