//! Near-memory cores: RISC-V cores beside far memory, each with a scratchpad that it shares with the host and whose
//! lines it can lock.
//!
//! [`Scratchpad`] holds lines, the host's requests that wait at locked lines, and their notices. [`Copier`] copies
//! lines between far memory and the scratchpad in parallel with the core. [`Controller`] is the memory of a core of
//! `cohkit-riscv`: private memory, both of these, and the registers that `nearmemory/scratchpad.h` defines for C
//! programs.
//!
//! In these three, time is a plain number: the driver supplies the arrival times of requests and delivers the
//! responses. [`Machine`] is such a driver for a [`Platform`]: hosts with non-coherent caches, their links, far memory,
//! and cores with their programs, all in time.
//!
//! The crate does not know coherence protocols (`protocol`) or the simulator of coherent machines (`sim`): no agent of
//! the machine takes part in coherence. Far memory is the DRAM model of `cohkit_dram`.
//!
//! ```
//! use cohkit_nearmemory::{HostResponse, Kind, Notice, Scratchpad};
//!
//! let mut scratchpad = Scratchpad::new(512);
//! scratchpad.lock(3, Kind::Read)?;
//! // The host's read number 7 is held, and the core is notified.
//! assert_eq!(scratchpad.read(3, 7, 100)?, None);
//! assert_eq!(scratchpad.take_notice(), Some(Notice { line: 3, kind: Kind::Read }));
//! // The core changes the line and releases the read, which returns the new contents.
//! scratchpad.line_mut(3).unwrap()[0] = 42;
//! let responses = scratchpad.release(3, Kind::Read, 130)?;
//! let [HostResponse::Read { request: 7, data }] = &responses[..] else { panic!() };
//! assert_eq!((data[0], scratchpad.stamps(3).unwrap().read), (42, 130));
//! # Ok::<(), cohkit_nearmemory::NoLine>(())
//! ```

mod binaries;
mod cache;
mod control;
pub mod controller;
mod copy;
pub mod device;
mod events;
mod far_memory;
pub mod host;
mod lines;
mod lru;
pub mod machine;
pub mod platform;
mod polling;
mod queue;
mod races;
mod scratchpad;
mod timeline;

pub use binaries::{Binaries, FOLDER};
pub use controller::Controller;
pub use copy::{Access, Copier, Direction, Rejection, Transfer, TransferError};
pub use events::CoreId;
pub use host::Evictions;
pub use machine::{Machine, RunOutcome};
pub use platform::Platform;
pub use polling::Poll;
pub use races::{Race, RaceKind, Site};
pub use scratchpad::{Data, HostResponse, Kind, NoLine, Notice, Scratchpad, Stamps, LINE};
