//! Tests of `cohkit-chart` through its public interface and against independent references, in one binary.

mod charts;
mod properties;
