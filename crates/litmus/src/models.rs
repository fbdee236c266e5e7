//! Operational memory models: outcomes of a program on sequentially consistent memory.

use cohkit_base::exploration::{Exploration, Limits, TransitionSystem};
use std::collections::BTreeSet;
use std::convert::Infallible;

use crate::cores::{Core, CoreKind, MemoryRequest};
use crate::program::{Observable, Outcome, Program, Update};

/// Returns all outcomes of a program on a memory that performs one access at a time. In-order cores give sequential
/// consistency, and store buffers give total store order.
pub fn outcomes(program: &Program, cores: CoreKind) -> BTreeSet<Outcome> {
    outcomes_within(program, cores, usize::MAX).expect("as many states as there are")
}

/// Returns the outcomes of [`outcomes`], or `None` if there are more than `max_states` states.
pub fn outcomes_within(
    program: &Program,
    cores: CoreKind,
    max_states: usize,
) -> Option<BTreeSet<Outcome>> {
    let mut initial = State {
        cores: Core::all(program),
        memory: program.initial.clone(),
    };
    for (core, thread) in initial.cores.iter_mut().zip(&program.threads) {
        core.settle(&thread.code, cores);
    }
    let mut machine = AtomicMemory { program, cores };
    let mut exploration = Exploration::new(initial);
    let mut limits = Limits {
        max_states,
        should_continue: &mut || true,
    };
    let mut outcomes = BTreeSet::new();
    while let Some(number) = exploration.next(&mut limits).ok()? {
        let state = &exploration.states()[number];
        if machine.quiescent(state) {
            outcomes.extend(final_outcome(program, &state.cores, &state.memory));
        }
        exploration.expand(&mut machine, |_, _| {});
    }
    Some(outcomes)
}

/// Cores on a memory that performs one access at a time.
struct AtomicMemory<'p> {
    /// The program.
    program: &'p Program,
    /// Kind of core.
    cores: CoreKind,
}

impl TransitionSystem<State> for AtomicMemory<'_> {
    type Step = ();
    type Error = Infallible;

    fn successors(&mut self, state: &State, visit: &mut dyn FnMut((), Result<State, Infallible>)) {
        for (number, thread) in self.program.threads.iter().enumerate() {
            let core = &state.cores[number];
            let mut visit = |mut next: State| {
                next.cores[number].settle(&thread.code, self.cores);
                visit((), Ok(next));
            };
            for position in core.forwards(&thread.code, self.cores) {
                let mut next = state.clone();
                next.cores[number].forward(&thread.code, position);
                visit(next);
            }
            for request in core.ready_requests(&thread.code, self.cores) {
                let mut next = state.clone();
                let old_value = next.perform(request);
                next.cores[number].complete_access(&thread.code, request.location(), old_value);
                visit(next);
            }
        }
    }
    fn quiescent(&self, state: &State) -> bool {
        let mut cores = state.cores.iter().zip(&self.program.threads);
        cores.all(|(core, thread)| core.stopped(&thread.code))
    }
}

/// State of cores and memory.
#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    /// Threads, by number. Each is settled.
    cores: Vec<Core>,
    /// Values, by location.
    memory: Vec<i64>,
}

impl State {
    /// Performs a request and returns the old value of the location.
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

/// Returns the outcome of final cores (by thread) and memory (by location), or `None` if the test's filter excludes
/// it.
pub fn final_outcome(program: &Program, cores: &[Core], memory: &[i64]) -> Option<Outcome> {
    program.outcome(|observed| match *observed {
        Observable::Register(thread, register) => cores[thread].registers[register],
        Observable::Location(location) => memory[usize::from(location)],
    })
}
