//! Tests of `cohkit-murphi` through its public interface and against independent references, in one binary.

mod arbitrary_text;
mod bench_models;
mod differential;
mod model_library;
mod murphi;
mod rumur;
