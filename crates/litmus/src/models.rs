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

/// As [`ends`], or `None` if there are more than `most` states.
pub fn outcomes_within(program: &Program, cores: Cores, most: usize) -> Option<BTreeSet<Outcome>> {
    let mut first = State {
        cores: Core::all(program),
        memory: program.initial.clone(),
    };
    for (core, thread) in first.cores.iter_mut().zip(&program.threads) {
        core.settle(&thread.code, cores);
    }
    let mut met = FxHashSet::from_iter([first.clone()]);
    let mut work = vec![first];
    let mut ends = BTreeSet::new();
    while let Some(state) = work.pop() {
        if met.len() > most {
            return None;
        }
        let mut stopped = true;
        for (number, thread) in program.threads.iter().enumerate() {
            let core = &state.cores[number];
            stopped &= core.stopped(&thread.code);
            let mut on = |mut next: State| {
                next.cores[number].settle(&thread.code, cores);
                if met.insert(next.clone()) {
                    work.push(next);
                }
            };
            for at in core.forwards(&thread.code, cores) {
                let mut next = state.clone();
                next.cores[number].forward(&thread.code, at);
                on(next);
            }
            for request in core.ready_requests(&thread.code, cores) {
                let mut next = state.clone();
                let found = next.perform(request);
                next.cores[number].ended(&thread.code, request.location(), found);
                on(next);
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
        let place = &mut self.memory[usize::from(request.location())];
        let found = *place;
        match request {
            MemoryRequest::Read(..) => {}
            MemoryRequest::Write(_, value, ..) => *place = Update::Set(value).of(found),
            MemoryRequest::Update(_, update, _) => *place = update.of(found),
        }
        found
    }
}

/// Returns the outcome of final cores and memory, or `None` if the test's filter excludes it.
pub fn end(program: &Program, cores: &[Core], memory: &[i64]) -> Option<Outcome> {
    program.outcome(|observed| match *observed {
        Observed::Register(thread, register) => cores[thread].registers[register],
        Observed::Location(location) => memory[usize::from(location)],
    })
}
