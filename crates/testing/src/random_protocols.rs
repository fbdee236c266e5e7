//! Random protocols, judged by all engines. `templates` has small sound protocols; `designs` puts designs together from
//! parts; `generate` decorates both, and introduces faults. `judge` compares the engines on the result, `programs` with
//! litmus programs and `simulation` with the simulator.

pub mod designs;
pub mod generate;
pub mod judge;
pub mod programs;
pub mod random;
pub mod simulation;
pub mod templates;
