//! Cores beside far memory: the scratchpad with locks through which a host and such a core meet, and the core at it.
//!
//! [`Scratchpad`] holds lines, the host's requests at lines that are locked, and the notices of them. [`Copier`] copies lines
//! between far memory and the scratchpad while the core goes on. [`Controller`] is the
//! memory of a core of `cohkit-riscv` with private memory, both of these, and the registers that
//! `nearmemory/scratchpad.h` has for programs in C.
//!
//! These three know time as a number: whoever drives them says when requests come, and carries answers back. [`Machine`]
//! does, for a [`Platform`]: it has a host with caches that nothing keeps coherent, the link, far memory, and cores with their
//! programs, all in time. There is no protocol in it and no text, as nothing takes part in coherence.
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
//! let answers = scratchpad.release(3, Kind::Read, 130)?;
//! let [Answer::Read { request: 7, data }] = &answers[..] else { panic!() };
//! assert_eq!((data[0], scratchpad.stamps(3).unwrap().read), (42, 130));
//! # Ok::<(), cohkit_nearmemory::NoLine>(())
//! ```

mod binaries;
mod cache;
pub mod control;
pub mod controller;
mod copy;
pub mod device;
mod events;
pub mod host;
mod lines;
pub mod machine;
pub mod platform;
mod polling;
mod queue;
mod races;
mod scratchpad;
mod timeline;

pub use binaries::{Binaries, FOLDER};
pub use controller::Controller;
pub use copy::{Access, Copier, Refusal, Transfer, Unfit, Way};
pub use events::Who;
pub use host::Evictions;
pub use machine::{Happened, Machine};
pub use platform::Platform;
pub use polling::Poll;
pub use races::{Race, Site, Wrong};
pub use scratchpad::{Answer, Data, Kind, NoLine, Notice, Scratchpad, Stamps, LINE};
