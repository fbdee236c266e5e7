//! Tests of `cohkit-sim` through its public interface and against independent references, in one binary.

mod applications;
mod counts;
mod explained;
mod framed;
mod hosts;
mod joined;
mod kernels;
mod kinds;
mod latency;
mod levels;
mod models;
mod mutations;
mod no_names;
mod private;
mod private_caches;
mod random_protocols;
mod recorded;
mod refusals;
mod remote_writes;
mod several;
mod spaces;
mod timeline;
mod torture;
mod traces;
mod translation;
mod writes;
