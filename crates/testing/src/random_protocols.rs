//! Random protocols, judged by all engines.
//! `templates` has small sound protocols;
//! `combined` puts designs together from
//! parts; `generate` decorates both, and
//! introduces faults. `judge` compares the
//! engines on the result, `programs` with
//! litmus programs and `simulated` with the
//! simulator.

pub mod combined;
pub mod generate;
pub mod judge;
pub mod programs;
pub mod random;
pub mod simulated;
pub mod templates;
