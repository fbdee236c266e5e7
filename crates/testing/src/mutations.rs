//! Mistakes that people make in protocol files.

pub mod kept_without_permission;
pub mod mistakes;
pub mod retried_store;
