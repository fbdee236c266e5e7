//! What every part numbers and says in the same way: positions in lists, counts with their nouns, and message sequences.

mod index;
pub mod sequence;
pub mod words;
