//! What machines are made of besides caches and homes. Each component knows time and nothing of protocols.

pub mod bus;
pub mod hosts;
pub(crate) mod layer;
pub mod link;
pub mod memory;
pub mod network;
pub mod recorded;
pub mod tags;
pub mod traffic;
