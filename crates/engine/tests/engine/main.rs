//! Tests of `cohkit-engine` through its public interface and against independent references, in one binary.

mod checkpoint;
mod compaction;
mod instances;
mod order;
mod random;
mod search;
mod simulate;
mod symmetry;
mod validate;
