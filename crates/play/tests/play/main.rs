//! Tests of `cohkit-play` through its public interface and against independent references, in one binary.

mod play;
