//! Protocol files with known changes: typical mistakes with the fault that the checker must find, and two unusual
//! variants of ECI.

pub mod kept_without_permission;
pub mod mistakes;
pub mod retried_store;
