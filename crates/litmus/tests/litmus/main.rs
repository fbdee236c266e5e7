//! Tests of `cohkit-litmus` through its public interface and against independent references, in one binary.

mod c;
mod clusters;
mod cord;
mod counting_faults;
mod herd;
mod homes;
mod kinds;
mod protocol_files;
mod protocols;
mod published_verdicts;
mod self_invalidate;
mod shape_generator;
mod shapes;
mod shortest;
mod store_variants;
mod tables;
mod timed;
