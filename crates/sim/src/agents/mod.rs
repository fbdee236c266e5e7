//! Caches and homes: agents that execute controllers.

pub(crate) mod core;
pub mod device;
pub mod home;
pub mod program;
pub mod remote;
