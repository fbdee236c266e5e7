//! Mutation tests of the shipped protocols: judgement of a selection of mutants (`selection`), and the list of
//! equivalent mutants (`equivalent`).

pub mod equivalent;
pub mod selection;
