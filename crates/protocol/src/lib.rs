//! The protocol language, controllers, and the construction of homes from policies.

pub mod composition;
pub mod construct;
pub mod controller;
pub mod execute;
pub mod orders;
pub mod policy;
pub mod protocol;
pub mod remotes;
pub mod rows;
pub mod terms;
pub mod text;
pub mod threads;
pub mod under_way;
pub mod value_text;
pub mod written_out;
