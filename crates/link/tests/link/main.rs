//! Tests of `cohkit-link` through its public interface and against independent references, in one binary.

mod bandwidth;
mod common;
mod dma;
mod eci;
mod faults;
mod layers;
mod pcie;
mod rates;
