//! RV64 cores: IMAFDC with Zicsr, Zifencei, Zba, Zbb, Zbs, Zicbom and Zicbop, in machine mode and user mode.
//!
//! [`Hart`] is a core that takes single steps. [`FastInterpreter`] executes pre-decoded instructions as fast as
//! possible. [`TimedInterpreter`] adds an in-order pipeline with a cost per kind of instruction. All three compute the
//! same results.
//!
//! [`PagedMemory`] adds virtual addresses, [`map`] an address map, and [`SharedMemory`] shares one memory among several
//! cores. [`elf`] reads programs. [`channel`] verifies untrusted programs, [`Sandbox`] restricts them to their grants,
//! and [`system`] serves their calls.
//!
//! The crate does not know coherence, caches, host files or any other crate of the workspace. A core calls a
//! [`Memory`], which may answer "wait", and returns exceptions as values. No instruction bits and no address cause a
//! panic.
//!
//! ```
//! use cohkit_riscv::{Extensions, FlatMemory, Hart};
//!
//! let mut memory = FlatMemory::new(0x1000, 64);
//! // addi a0, zero, 20; slli a0, a0, 1; addi a0, a0, 2
//! let program = [0x0140_0513_u32, 0x0015_1513, 0x0025_0513];
//! let bytes: Vec<u8> = program.iter().flat_map(|word| word.to_le_bytes()).collect();
//! memory.bytes_mut(0x1000, bytes.len()).unwrap().copy_from_slice(&bytes);
//!
//! let mut hart = Hart::new(0, Extensions::HOST);
//! hart.pc = 0x1000;
//! for _ in 0..3 {
//!     hart.step(&mut memory).unwrap();
//! }
//! assert_eq!(hart.x(10), 42);
//! assert_eq!(hart.decoder().disassemble(program[1]), "slli a0, a0, 1");
//! ```

mod alu;
mod blocks;
pub mod channel;
mod csr;
mod decode;
pub mod elf;
pub mod float;
mod fp;
mod hart;
pub mod map;
mod memory;
mod paged;
mod sandbox;
mod shared;
pub mod system;
pub mod table;
mod timed;

pub use blocks::FastInterpreter;
pub use csr::{Csrs, Exception, Mode};
pub use decode::{register, Decoder, Inst};
pub use hart::{Hart, HartState, Stop};
pub use memory::{Amo, AmoOp, Cbo, Fence, FlatMemory, Memory, Prefetch, Reply, Size};
pub use paged::{Page, PageSize, PagedMemory, Pages};
pub use sandbox::Sandbox;
pub use shared::{Port, SharedMemory};
pub use table::{Extension, Extensions, Op};
pub use timed::{Cost, Latencies, TimedInterpreter, TimedMemory};
