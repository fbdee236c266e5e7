//! Cores beside far memory: the scratchpad with locks through which a host and such a core meet, and the core at it.
//!
//! [`Scratchpad`] holds lines, the host's requests at lines that are locked, and the notices of them. [`Copier`] copies lines
//! between far memory and the scratchpad while the core goes on. [`Controller`] is the
//! memory of a core of `cohkit-riscv` with private memory, both of these, and the registers that
//! `nearmemory/scratchpad.h` has for programs in C.
//!
//! Time is a number to this crate, and it knows no host, no link and no coherence: the scratchpad is not coherent, and a
//! host flushes and fetches. Whoever drives it says when requests come, and carries answers back.
//!
//! ```
//! use cohkit_nearmemory::{Answer, Kind, Notice, Scratchpad};
//!
//! let mut scratchpad = Scratchpad::new(512);
//! scratchpad.lock(3, Kind::Read)?;
//! // The host's read number 7 is held, and the core is told of it.
//! assert_eq!(scratchpad.read(3, 7, 100)?, None);
//! assert_eq!(scratchpad.notice(), Some(Notice { line: 3, kind: Kind::Read }));
//! // The core changes the line and releases it: this is what the host reads.
//! scratchpad.line_mut(3).unwrap()[0] = 42;
//! let Some(Answer::Read { request: 7, data }) = scratchpad.release(3, Kind::Read, 130)? else { panic!() };
//! assert_eq!((data[0], scratchpad.stamps(3).unwrap().read), (42, 130));
//! # Ok::<(), cohkit_nearmemory::NoLine>(())
//! ```

pub mod controller;
mod copy;
mod scratchpad;

pub use controller::Controller;
pub use copy::{Access, Copier, Refusal, Transfer, Way};
pub use scratchpad::{Answer, Data, Kind, NoLine, Notice, Scratchpad, Stamps, LINE};
