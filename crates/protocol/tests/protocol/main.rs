//! Tests of `cohkit-protocol` through its public interface and against independent references, in one binary.

mod accesses;
mod acknowledged_victims;
mod arbitrary_text;
mod construction;
mod execute;
mod rows;
mod unroll;
