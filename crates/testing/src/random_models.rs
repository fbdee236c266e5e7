//! Random Murphi models (`generate`), checked by all engines of this repository and by Rumur, whose verdicts must agree
//! (`judge`).

pub mod generate;
pub mod judge;
