//! Lowering of protocol systems to finite models, and checks beyond a model's own properties.
//!
//! - [`system`] makes models of controllers: `cohkit_system` plans the effects of every row, and this crate lowers
//!   them;
//! - [`progress`] checks, on models of its own, that accesses and operations can be performed.

pub mod progress;
pub mod system;
