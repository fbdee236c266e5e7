//! Random Murphi models, judged by all engines.

pub mod generate;
pub mod judge;
