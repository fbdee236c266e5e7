//! Foundations shared by all crates: typed list positions, counts with nouns, message sequences, and hints to processor
//! and operating system about memory.

mod index;
pub mod memory;
pub mod sequence;
pub mod words;
