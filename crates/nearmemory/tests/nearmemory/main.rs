//! Tests of `cohkit-nearmemory` through its public interface and against independent references, in one binary.

mod accumulate;
mod copy;
mod machine;
mod native;
mod oracle;
mod platform;
