//! Mistakes that people make in protocol files.

pub mod kept_without_right;
pub mod mistakes;
pub mod tried_again;
