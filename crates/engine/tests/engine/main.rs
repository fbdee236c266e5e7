//! Tests of `cohkit-engine` through its public interface and against independent references, in one binary.

mod checkpoint;
mod compaction;
mod instances;
mod observable_slots;
mod order;
mod random;
mod search;
mod simulate;
mod symmetry;
mod validate;
