//! Finite models: a small language of guarded commands and exhaustive search over it.

pub mod build;
pub mod model;
pub mod system;
mod validate;
