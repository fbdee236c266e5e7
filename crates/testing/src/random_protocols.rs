//! Random protocols, judged by all engines.

pub mod combined;
pub mod generate;
pub mod judge;
pub mod programs;
pub mod random;
pub mod simulated;
pub mod templates;
