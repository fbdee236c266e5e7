//! Tests of `cohkit-parameterised` through its public interface and against independent references, in one binary.

mod containment;
mod mutants;
mod random_protocols;
mod support;
mod verdicts;
