//! Random Murphi models (`generate`, `multisets`), checked by all engines of this repository and by Rumur, whose verdicts must agree
//! (`judge`).

pub mod generate;
pub mod judge;
pub mod multisets;
