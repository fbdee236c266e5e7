//! Systems of a protocol as finite models, for the engine to explore, and what of them is judged beyond a model's own
//! properties.
//!
//! - [`system`] turns controllers into models: what every row does is planned by `cohkit_system`, and lowered here;
//! - [`progress`] asks, of models of its own, whether what begins can be performed.

pub mod progress;
pub mod system;
