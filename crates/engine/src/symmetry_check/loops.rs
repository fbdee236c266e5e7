//! Loops over scalarsets under analysis, and the accesses in them.

use super::symbolic::{ResolvedPlace, SymbolicValue};
use crate::model::{Operator, Place, VariableId};

/// Effect of an access on a place.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Effect {
    /// Reads the value.
    Read,
    /// Stores a value that may be equal in all iterations.
    StoreUniform(SymbolicValue),
    /// Stores any other value.
    Write,
    /// Adds a value of known sign. Partial sums are then monotonic, so an overflow does not depend on the order of the
    /// iterations.
    Add {
        /// True if the value is never negative, false if it is never positive.
        is_increment: bool,
    },
    /// Updates a Boolean by `and` or `or`.
    Accumulate(Operator),
    /// Inserts an element into a multiset.
    Insert,
}

/// An access to a place in a loop.
#[derive(Clone, Debug)]
pub(super) struct Access {
    /// Place that is accessed, without aliases.
    pub(super) resolved: ResolvedPlace,
    /// The place as spelled in the model.
    pub(super) place: Place,
    /// Kind of access.
    pub(super) effect: Effect,
    /// Call depth of the access.
    pub(super) call_depth: usize,
    /// Pairs of values that are known to differ at the access.
    pub(super) distinct_values: Vec<(SymbolicValue, SymbolicValue)>,
}

/// A loop over a scalarset under analysis.
pub(super) struct Loop {
    /// Loop variable.
    pub(super) variable: VariableId,
    /// Call depth of the loop.
    pub(super) call_depth: usize,
    /// Accesses of the loop's body, including those of called functions.
    pub(super) accesses: Vec<Access>,
    /// Variables that live no longer than one iteration.
    pub(super) local_variables: Vec<VariableId>,
    /// Values returned from within the loop.
    pub(super) returns: Vec<Option<SymbolicValue>>,
    /// Reason for an order dependence that is not due to `accesses`, if any.
    pub(super) other_reason: Option<String>,
    /// True if an iteration may reach an `assume` statement.
    pub(super) has_assume: bool,
    /// True if an iteration may violate a check.
    pub(super) can_fail: bool,
    /// True if an iteration may reach a cover statement.
    pub(super) has_cover: bool,
    /// True if the loop calls a function that contains it.
    pub(super) is_recursive: bool,
}
