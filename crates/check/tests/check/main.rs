//! Tests of `cohkit-check` through its public interface and against independent references, in one binary.

mod backing_permission;
mod changed_protocols;
mod cxl_bias;
mod cxl_mem;
mod executable_system;
mod faults;
mod fingerprints;
mod kinds;
mod mutation;
mod networks;
mod operators;
mod permissions;
mod progress;
mod random_protocols;
mod reports;
mod rumur_systems;
mod support;
mod system;
mod text_mutations;
mod traces;
mod variations;
mod writes;
