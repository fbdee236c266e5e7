//! Mutation tests of the shipped protocols: judgement of a selection of mutants (`slice`), and the list of equivalent
//! mutants (`equivalent`).

pub mod equivalent;
pub mod slice;
