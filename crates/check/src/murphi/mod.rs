//! Murphi: models written out for an independent checker.

mod export;

pub use export::{print, rumur_options, Style};
