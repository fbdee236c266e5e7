//! Agents: caches and homes, which execute controllers; the cores before the caches; the applications behind the home.

pub(crate) mod application;
pub mod clocked;
pub(crate) mod core;
pub mod device;
pub mod home;
pub(crate) mod host;
pub(crate) mod host_memory_path;
pub(crate) mod port;
pub mod program;
pub(crate) mod registers;
pub mod remote;
mod thread;
pub mod translation;
