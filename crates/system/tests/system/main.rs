//! Tests of `cohkit-system` through its public interface and against independent references, in one binary.

mod backing_permission;
mod clusters;
mod levels;
mod row_effects;
mod starvation;
mod walks;
