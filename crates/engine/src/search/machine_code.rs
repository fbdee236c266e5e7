//! Machine code of a search: compiled once the search has done as much work as the compilation takes.
//!
//! The search then takes at most about twice as long as with the better of two decisions in advance: to interpret all
//! states, or to compile at once. With several threads, the compilation runs beside the search, which interprets states
//! until the code exists; a verdict does not wait for the code.

use super::options::{Engine, Options};
use super::worker::Worker;
use crate::native::{instruction_count, Kernel, Native, OptimisationLevel};
use crate::program::Program;
use crate::view::View;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;

/// Number of known states from which machine code can pay off.
const MIN_STATES_TO_COMPILE: usize = 1 << 11;

/// Number of known states from which optimised machine code can pay off. Small in the development profile, so that tests
/// use it.
pub(super) const MIN_STATES_TO_OPTIMISE: usize = if cfg!(debug_assertions) {
    1 << 8
} else {
    1 << 18
};

/// Machine code of a search.
#[derive(Default)]
pub(super) struct MachineCode {
    /// Machine code; `None` until it pays off, and if it cannot be compiled.
    native: Option<Native>,
    /// Optimisation level of the last request for machine code.
    requested_level: Option<OptimisationLevel>,
    /// Number of instructions to be compiled; computed when machine code can pay off.
    instructions: Option<u64>,
    /// Compilation in progress on a thread of its own.
    compilation: Option<Compilation>,
}

/// Work of a search so far, and what is known about its rest.
#[derive(Clone, Copy)]
pub(super) struct Work {
    /// Number of known states.
    pub states: usize,
    /// Number of rules fired.
    pub transitions: u64,
    /// Estimated number of states still to be expanded, if there is an estimate.
    pub states_ahead: Option<u64>,
}

/// Compilation on a thread of its own.
struct Compilation {
    /// Thread that returns the machine code, or `None` if it cannot be compiled.
    thread: Option<JoinHandle<Option<Native>>>,
    /// Set to end the compilation early.
    cancelled: Arc<AtomicBool>,
}

impl Drop for Compilation {
    /// Ends the compilation after the current function.
    fn drop(&mut self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }
}

impl Compilation {
    /// Starts a compilation; `None` if the system cannot start a thread.
    fn start(program: &Program, view: &View, level: OptimisationLevel) -> Option<Compilation> {
        let cancelled = Arc::new(AtomicBool::new(false));
        let (program, view, is_cancelled) = (program.clone(), view.clone(), cancelled.clone());
        let compile = move || {
            let frame = Worker::new(&program, &view).machine.frame;
            Native::new(&program, &view, &frame, level, 1, &is_cancelled)
        };
        let thread = std::thread::Builder::new().name("compilation".into());
        let thread = Some(thread.spawn(compile).ok()?);
        Some(Compilation { thread, cancelled })
    }
}

/// Compilation time of an instruction, in rules fired by the interpreter. Measured on models of caches: the interpreter
/// takes about 1 us for a rule, and the compiler 2 us for an instruction, or 5 us with optimisation.
fn cost(level: OptimisationLevel) -> u64 {
    match level {
        OptimisationLevel::Quick => 2,
        OptimisationLevel::Thorough => 5,
    }
}

impl Work {
    /// True if compiling this number of instructions pays off.
    fn justifies(self, level: OptimisationLevel, instructions: u64) -> bool {
        let cost = instructions.saturating_mul(cost(level));
        let transitions_ahead = self.states_ahead.map(|states| {
            let ahead = u128::from(states) * u128::from(self.transitions);
            (ahead / self.states.max(1) as u128) as u64
        });
        self.transitions >= cost && transitions_ahead.is_none_or(|ahead| ahead >= cost)
    }

    /// Level at which the states are worth compiling, whatever it costs; `None` for few states.
    fn level(self) -> Option<OptimisationLevel> {
        match self.states {
            known if known < MIN_STATES_TO_COMPILE => None,
            known if known < MIN_STATES_TO_OPTIMISE => Some(OptimisationLevel::Quick),
            _ => Some(OptimisationLevel::Thorough),
        }
    }
}

impl MachineCode {
    /// Functions that expand and judge states, once they exist.
    pub fn kernel(&self) -> Option<&Kernel> {
        self.native.as_ref().map(|native| &native.kernel)
    }

    /// Requests machine code once it pays, and takes over machine code that has been compiled.
    pub fn compile_if_due(
        &mut self,
        program: &Program,
        view: &View,
        options: &Options,
        work: Work,
    ) {
        self.receive();
        let level = match options.engine {
            Engine::Interpreter => return,
            Engine::Adaptive => work.level(),
            Engine::Native => Some(work.level().unwrap_or(OptimisationLevel::Quick)),
        };
        let Some(level) = level.filter(|&level| self.requested_level < Some(level)) else {
            return;
        };
        // If compilation failed once, do not retry.
        let has_failed =
            self.requested_level.is_some() && self.native.is_none() && self.compilation.is_none();
        if has_failed || self.compilation.is_some() {
            return;
        }
        if options.engine == Engine::Adaptive {
            let count = || instruction_count(program, view);
            let instructions = *self.instructions.get_or_insert_with(count);
            if !work.justifies(level, instructions) {
                return;
            }
        }
        self.requested_level = Some(level);
        if options.engine == Engine::Adaptive && options.threads > 1 {
            self.compilation = Compilation::start(program, view, level);
            return;
        }
        let native = options.compile(|| {
            let frame = Worker::new(program, view).machine.frame;
            let never = AtomicBool::new(false);
            Native::new(program, view, &frame, level, options.threads, &never)
        });
        self.native = native.or(self.native.take());
    }

    /// Takes over the result of a compilation that has ended.
    fn receive(&mut self) {
        let is_finished =
            |c: &mut Compilation| c.thread.as_ref().is_none_or(JoinHandle::is_finished);
        let Some(mut compilation) = self.compilation.take_if(is_finished) else {
            return;
        };
        let result = compilation.thread.take().map(JoinHandle::join);
        if let Some(Ok(Some(native))) = result {
            self.native = Some(native);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Work of a search with three rules fired per state.
    fn work(states: usize, states_ahead: Option<u64>) -> Work {
        Work {
            states,
            transitions: 3 * states as u64,
            states_ahead,
        }
    }

    #[test]
    fn code_is_compiled_once_the_search_took_as_long() {
        let level = OptimisationLevel::Quick;
        assert!(!work(10_000, None).justifies(level, 300_000));
        assert!(work(200_000, None).justifies(level, 300_000));
        assert!(work(2_000, None).justifies(level, 3_000));
        assert!(!work(2_000, None).justifies(OptimisationLevel::Thorough, 3_000));
    }

    #[test]
    fn code_is_not_compiled_for_a_small_rest() {
        let level = OptimisationLevel::Quick;
        assert!(!work(200_000, Some(10_000)).justifies(level, 300_000));
        assert!(work(200_000, Some(300_000)).justifies(level, 300_000));
    }

    #[test]
    fn few_states_need_no_code() {
        assert_eq!(work(MIN_STATES_TO_COMPILE - 1, None).level(), None);
        let optimised = work(MIN_STATES_TO_OPTIMISE.max(MIN_STATES_TO_COMPILE), None);
        assert_eq!(optimised.level(), Some(OptimisationLevel::Thorough));
    }
}
