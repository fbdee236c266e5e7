//! Rules with too many values of their parameters for code of their own: machine code finds the values in memory, and goes
//! on to the next for which the guard holds.

use crate::program::{Every, Parameter};

/// A function of a packed state and the values of parameters: 1 for yes, 0 for no, 2 for a fault.
pub(super) type Function = unsafe extern "C" fn(*mut u64, *mut i64) -> u32;

/// Rules of more parameters are left to the interpreter.
pub(super) const MOST_PARAMETERS: usize = 16;

/// A rule for all values of its parameters.
pub(super) struct Many {
    every: Every,
    /// Goes on from the values at hand to the next for which the guard holds; leaves the state alone.
    next: Function,
    body: Function,
}

/// Values of the parameters, in their order.
pub(super) type Values = [i64; MOST_PARAMETERS];

impl Many {
    pub fn new(every: &Every, next: Function, body: Function) -> Many {
        debug_assert!(every.parameters.len() <= MOST_PARAMETERS);
        Many {
            every: every.clone(),
            next,
            body,
        }
    }

    pub fn first(&self) -> Values {
        let mut values = [0; MOST_PARAMETERS];
        for (value, parameter) in values.iter_mut().zip(&self.every.parameters) {
            *value = parameter.lo;
        }
        values
    }

    /// Goes on to the next values, whatever the guard says of them; false if these were the last.
    pub fn advance(&self, values: &mut Values) -> bool {
        let parameters = self.every.parameters.iter().zip(values).rev();
        for (&Parameter { lo, hi, .. }, value) in parameters {
            if *value < hi {
                *value += 1;
                return true;
            }
            *value = lo;
        }
        false
    }

    /// The place of the values among all combinations.
    pub fn place(&self, values: &Values) -> u32 {
        self.every.place(|i, _| values[i])
    }

    /// Goes on to the next values for which the guard holds.
    #[allow(unsafe_code)]
    pub fn next(&self, state: &[u64], values: &mut Values) -> u32 {
        // SAFETY: the function reads the words of a packed state, all of which are there, and reads and writes as
        // many values as there are parameters. It has no instruction that writes to the state.
        unsafe { (self.next)(state.as_ptr().cast_mut(), values.as_mut_ptr()) }
    }

    #[allow(unsafe_code)]
    pub fn fire(&self, state: &mut [u64], values: &mut Values) -> u32 {
        // SAFETY: as above; the state may be written.
        unsafe { (self.body)(state.as_mut_ptr(), values.as_mut_ptr()) }
    }
}
