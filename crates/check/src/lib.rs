//! Finite models: a small language of guarded commands and exhaustive search over it.

pub mod build;
mod compile;
pub mod components;
mod interpret;
pub mod model;
pub mod murphi;
mod program;
pub mod report;
pub mod search;
mod store;
pub mod system;
pub mod trace;
mod validate;

pub use report::{check, Outcome, Property, Report};
pub use search::Options;
