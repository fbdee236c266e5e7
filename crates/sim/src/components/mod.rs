//! Components of a machine besides caches and homes: links, networks, buses, tag arrays, and
//! the traffic of cores. They model time and do not know the protocol.

pub mod bus;
pub(crate) mod home_cache;
pub mod hosts;
pub(crate) mod layer;
pub mod link;
pub mod network;
pub mod recorded;
pub mod tags;
pub mod traffic;
