//! Tests of `cohkit-rtl` through its public interface and against independent references, in one binary.

mod agents;
mod applications;
mod endpoints;
mod faults;
mod homes;
mod illegal_traffic;
mod litmus;
mod lockstep;
mod ports;
mod proofs;
mod registers;
mod rom;
mod sources;
mod synth;
mod systems;
mod verilated;
