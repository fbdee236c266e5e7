//! Rules with too many parameter values for separate code. Machine code reads the values from memory, and advances them
//! to the next ones for which the guard holds.

use crate::program::{Parameter, ParameterLoop};

/// A function of a packed state and of parameter values. Returns [`TRUE`](super::TRUE), [`FALSE`](super::FALSE) or
/// [`FAULT`](super::FAULT).
pub(super) type Function = unsafe extern "C" fn(*mut u64, *mut i64) -> u32;

/// Maximum number of parameters; views with rules of more parameters are left to the interpreter.
pub(super) const MAX_PARAMETERS: usize = 16;

/// A rule, for all values of its parameters.
pub(super) struct ParameterizedRule {
    /// Parameters with their ranges.
    parameter_loop: ParameterLoop,
    /// Advances the values to the next ones, including the current ones, for which the guard holds. Does not change the
    /// state.
    next: Function,
    /// Fires the rule with the current values.
    body: Function,
}

/// Values of the parameters, in their order.
pub(super) type Values = [i64; MAX_PARAMETERS];

impl ParameterizedRule {
    /// Combines the functions of a rule. They must be those of this parameter loop.
    pub fn new(
        parameter_loop: &ParameterLoop,
        next: Function,
        body: Function,
    ) -> ParameterizedRule {
        debug_assert!(parameter_loop.parameters.len() <= MAX_PARAMETERS);
        ParameterizedRule {
            parameter_loop: parameter_loop.clone(),
            next,
            body,
        }
    }

    /// Least value of each parameter.
    pub fn first_values(&self) -> Values {
        let mut values = [0; MAX_PARAMETERS];
        for (value, parameter) in values.iter_mut().zip(&self.parameter_loop.parameters) {
            *value = parameter.lo;
        }
        values
    }

    /// Advances to the next values, whether the guard holds or not; false after the last.
    pub fn advance(&self, values: &mut Values) -> bool {
        let parameters = self.parameter_loop.parameters.iter().zip(values).rev();
        for (&Parameter { lo, hi, .. }, value) in parameters {
            if *value < hi {
                *value += 1;
                return true;
            }
            *value = lo;
        }
        false
    }

    /// Position of the values among all combinations.
    pub fn position(&self, values: &Values) -> u32 {
        self.parameter_loop.position(|i, _| values[i])
    }

    /// Advances to the next values for which the guard holds, starting with the current ones. Returns
    /// [`FALSE`](super::FALSE) if no such values are left.
    #[allow(unsafe_code)]
    pub fn next_enabled(&self, state: &[u64], values: &mut Values) -> u32 {
        // SAFETY: the function reads the words of a packed state, all of which exist, and accesses as many values as
        // there are parameters. It has no instruction that writes to the state.
        unsafe { (self.next)(state.as_ptr().cast_mut(), values.as_mut_ptr()) }
    }

    /// Fires the rule with these values of its parameters. Returns [`FALSE`](super::FALSE) if an assumption fails.
    #[allow(unsafe_code)]
    pub fn fire(&self, state: &mut [u64], values: &mut Values) -> u32 {
        // SAFETY: as in `next_enabled`; the state may be written.
        unsafe { (self.body)(state.as_mut_ptr(), values.as_mut_ptr()) }
    }
}
