//! Tests of `cohkit-mutants` through its public interface and against independent references, in one binary.

mod data_abstractions;
mod mutants;
