//! Limits of the enumeration of candidate executions.

/// Maximum number of events of an execution: a row of a [`super::Relation`] has 64 bits.
pub(super) const MAX_EVENTS: usize = 64;

/// Maximum number of paths per thread, of histories, and of candidates.
pub(super) const MAX_CANDIDATES: usize = 1 << 20;

/// Maximum number of events of all paths of a thread, of about 70 bytes each.
pub(super) const MAX_PATH_EVENTS: usize = 1 << 22;
