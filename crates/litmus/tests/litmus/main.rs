//! Tests of `cohkit-litmus` through its public interface and against independent references, in one binary.

mod breadth;
mod c;
mod cord;
mod counts;
mod herd;
mod homes;
mod kinds;
mod mixes;
mod protocols;
mod published;
mod self_invalidate;
mod shapes;
mod shortest;
mod tables;
mod texts;
mod timed;
