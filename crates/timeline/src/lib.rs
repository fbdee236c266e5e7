//! Timelines of simulated runs, written as Perfetto traces for ui.perfetto.dev.
//!
//! A [`writer::Writer`] encodes tracks, slices, instants, flows and counters. A [`Filter`] selects the events of a run,
//! and gives the size limit and the destination of the trace. [`Recorded`] is the result.
//!
//! The crate does not know protocols, machines and files. Its users are `sim` and `nearmemory`.
//!
//! ```
//! use cohkit_timeline::writer::{Kind, Writer};
//! use cohkit_timeline::Filter;
//!
//! let mut writer = Writer::new(&Filter::default(), &["line"], 0);
//! let core = writer.track("core 0", None, None);
//! let load = writer.name("load");
//! writer.event(70_000, Kind::Begin, core, Some(load), |event| event.note(1, 42));
//! writer.event(150_000, Kind::End, core, None, |_| ());
//! let recorded = writer.recorded(1, None);
//! assert_eq!((recorded.accesses, recorded.full), (1, None));
//! assert_eq!(recorded.rest.len(), recorded.length);
//! assert!(recorded.rest.windows(6).any(|bytes| bytes == b"core 0"));
//! ```

mod encoding;
mod intervals;
pub mod writer;

use cohkit_units::Time;
use std::ops::Range;
use writer::Pieces;

/// Address space of a machine in which device and host both have memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// Lines whose home is the device.
    Device,
    /// Lines of the host's memory.
    Host,
}

/// Selection of events, and destination of the trace.
#[derive(Clone, Debug)]
pub struct Filter {
    /// If given, only events of this line.
    pub line: Option<u32>,
    /// If given, only events of lines in this address space, which `line` belongs to as well.
    pub side: Option<Side>,
    /// If given, only actions of the agent with this name, and accesses of the cores attached to that agent.
    pub agent: Option<String>,
    /// Only events in this time window, in picoseconds, and accesses that overlap with it.
    pub window: Range<Time>,
    /// Size limit of the trace, in bytes. Recording stops when the trace reaches it; the last event and the
    /// counters may exceed it.
    pub bytes: usize,
    /// Destination of the pieces of the trace during the run. Without it, the trace is kept until the end.
    pub pieces: Option<Pieces>,
}

impl Default for Filter {
    fn default() -> Filter {
        Filter {
            line: None,
            side: None,
            agent: None,
            window: 0..Time::MAX,
            bytes: 32 << 20,
            pieces: None,
        }
    }
}

/// A recorded timeline.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Total size in bytes, including the pieces that were sent during the run.
    pub length: usize,
    /// Bytes that were not sent in pieces: the last ones, or all without a destination of pieces.
    pub rest: Vec<u8>,
    /// Number of accesses in the trace.
    pub accesses: u64,
    /// Time in picoseconds at which recording stopped because the trace reached its size limit; `None` if it did not.
    pub full: Option<Time>,
}

impl Recorded {
    /// Appends the trace of another part of the same run.
    pub fn merge(mut self, other: Recorded) -> Recorded {
        self.rest.extend(other.rest);
        Recorded {
            length: self.length + other.length,
            rest: self.rest,
            accesses: self.accesses + other.accesses,
            full: [self.full, other.full].into_iter().flatten().min(),
        }
    }
}
