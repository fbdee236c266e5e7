//! Machine code of a search, which is compiled once enough states are known.

use super::options::{Engine, Options};
use super::worker::Worker;
use crate::native::{Kernel, Native, OptimisationLevel};
use crate::program::Program;
use crate::view::View;

/// Number of known states from which machine code pays off.
const MIN_STATES_TO_COMPILE: usize = 1 << 11;

/// Number of known states from which optimised machine code pays off. Small in the development profile, so that tests
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
}

impl MachineCode {
    /// Functions that expand and judge states, once they exist.
    pub fn kernel(&self) -> Option<&Kernel> {
        self.native.as_ref().map(|native| &native.kernel)
    }

    /// Requests machine code once it pays, given the number of known states.
    pub fn compile_if_due(
        &mut self,
        program: &Program,
        view: &View,
        options: &Options,
        states: usize,
    ) {
        let threshold = match options.engine {
            Engine::Adaptive => MIN_STATES_TO_COMPILE,
            Engine::Interpreter => usize::MAX,
            Engine::Native => 0,
        };
        let level = match states {
            known if known < threshold => return,
            known if known < MIN_STATES_TO_OPTIMISE => OptimisationLevel::Quick,
            _ => OptimisationLevel::Thorough,
        };
        if self.requested_level < Some(level) {
            // If compilation failed once, do not retry.
            let is_first = self.requested_level.replace(level).is_none();
            if is_first || self.native.is_some() {
                self.native = options.compile(|| {
                    let frame = Worker::new(program, view).machine.frame;
                    Native::new(program, view, &frame, level, options.threads)
                });
            }
        }
    }
}
