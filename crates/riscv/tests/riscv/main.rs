//! Tests of `cohkit-riscv` through its public interface and against independent references, in one binary.

mod channels;
mod engines;
mod float;
mod machine;
mod map;
mod pages;
mod pipes;
mod programs;
mod qemu;
mod total;
