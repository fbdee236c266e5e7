//! Agents: caches and homes, which execute controllers; the cores before the caches; the applications behind the home.

pub(crate) mod application;
pub(crate) mod application_events;
pub mod caches;
pub mod clocked;
pub(crate) mod core;
pub mod device;
pub(crate) mod frontend;
pub mod home;
pub(crate) mod host;
pub(crate) mod port;
pub mod program;
pub(crate) mod registers;
pub(crate) mod scenario_state;
pub(crate) mod thread;
pub mod translation;
