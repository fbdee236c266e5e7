//! What every part numbers and says in the same way: positions in lists, counts with their nouns, and message sequences; and what
//! processor and system are told of memory before it is used.

mod index;
pub mod memory;
pub mod sequence;
pub mod words;
