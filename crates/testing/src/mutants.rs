//! Mutants of the shipped protocols: a selection that is judged, and the list of equivalent ones.

pub mod known;
pub mod slice;
