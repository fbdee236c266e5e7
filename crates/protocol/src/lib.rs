//! The protocol language, controllers, and the construction of homes from policies.

pub mod composition;
pub mod construct;
pub mod controller;
pub mod execute;
pub mod orders;
pub mod pending_access;
pub mod policy;
pub mod protocol;
pub mod remotes;
pub mod rows;
pub mod terms;
pub mod text;
pub mod threads;
pub mod unroll;
pub mod value_text;
