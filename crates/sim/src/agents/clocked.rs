//! A clocked home: RTL in place of the simulator's home units.
//!
//! The RTL decides when an event is handled and when its results leave the home. The controller decides what follows:
//! the simulator takes each step of the RTL with the controller, too. Everything that crosses the RTL's ports must be
//! what the controller has sent, with the simulator's bytes. A run with RTL is therefore a lockstep run, and all
//! observers (oracle, applications, charts) work as in other runs.

use crate::kernel::Time;
use crate::message::Line;
use cohkit_protocol::controller::Event;
use cohkit_protocol::protocol::MessageId;

/// Maximum number of 64-bit words in a line of a clocked home.
pub const WORDS: usize = 16;

/// Words of a line; words beyond the line's length are 0.
pub type Bytes = [u64; WORDS];

/// A home that advances by one cycle per call.
///
/// Each port accepts its inputs in the order given, as soon as it can; until then they wait in front of the home.
pub trait ClockedHome {
    /// Length of a cycle in picoseconds.
    fn period(&self) -> Time;

    /// Gives a message to the home. For a store, `mask` has a bit for each word that is written.
    fn message(&mut self, kind: MessageId, line: Line, bytes: Bytes, mask: u16);

    /// Requests a local operation of the device, by its index among the controller's.
    fn local(&mut self, line: Line, operation: u8);

    /// Releases a lock of the device.
    fn unlock(&mut self, line: Line);

    /// Returns a line from memory, in response to [`CycleOutput::Reads`].
    fn memory_read(&mut self, line: Line, bytes: Bytes);

    /// Acknowledges a memory write, in response to [`CycleOutput::Writes`].
    fn memory_written(&mut self, line: Line);

    /// Executes one cycle. Appends its outputs, causes before effects.
    ///
    /// # Errors
    /// A failed assertion in the home, or an illegal value at a port that the simulator does not use.
    fn cycle(&mut self, outputs: &mut Vec<CycleOutput>) -> Result<(), String>;

    /// True if further cycles would do nothing: the home is empty, and no input waits in front of it.
    fn idle(&self) -> bool;

    /// True if the home contains the application. The home then reports its actions, and receives the events of
    /// [`ApplicationEvent`].
    fn has_application(&self) -> bool {
        false
    }

    /// Gives an event to the application inside the home.
    fn application(&mut self, _event: ApplicationEvent) {}
}

/// Event for an application in hardware from a source other than its home.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ApplicationEvent {
    /// The application may start.
    Start,
    /// The application must finish its outstanding operations, and start nothing new.
    Stop,
    /// The application's memory has read a line.
    Fetched {
        /// Tag of the request: see [`CycleOutput::Fetches`].
        tag: u32,
        /// The line's words.
        bytes: Bytes,
    },
    /// The application's memory has written a line.
    Stored {
        /// Tag of the request: see [`CycleOutput::Stores`].
        tag: u32,
    },
}

/// Result of presenting an event to a unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    /// The event was accepted.
    Taken,
    /// The event is stalled until the state of its line changes.
    Left,
    /// The event was refused.
    Refused,
    /// The controller has no row for the event.
    Impossible,
}

/// Output of a clocked home in one cycle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CycleOutput {
    /// The last beat of a message has entered. The home can accept another message of its circuit.
    Entered {
        /// The message.
        kind: MessageId,
        /// Its line.
        line: Line,
    },
    /// A unit has handled an event.
    Stepped {
        /// The line.
        line: Line,
        /// The event.
        event: Event,
        /// Index of the line's state before the event.
        state: usize,
        /// Index of the line's state after an accepted event.
        next: usize,
        /// Result of the event.
        admission: Admission,
        /// True for a local operation by which the directory itself evicts a line to make room.
        is_directory_eviction: bool,
    },
    /// The last beat of a message has left.
    Left {
        /// The message.
        kind: MessageId,
        /// Its line.
        line: Line,
        /// Words of the line, if the message carries it.
        bytes: Option<Bytes>,
    },
    /// Completion of a local operation of the device, or of an unlock if `operation` is `None`.
    Answered {
        /// The line.
        line: Line,
        /// Index of the operation among the controller's.
        operation: Option<u8>,
        /// True if the operation was refused.
        refused: bool,
    },
    /// Memory read request.
    Reads {
        /// The line.
        line: Line,
    },
    /// Memory write request.
    Writes {
        /// The line.
        line: Line,
        /// Words of the line.
        bytes: Bytes,
        /// A bit for each word that is written.
        mask: u16,
    },
    /// The application in hardware answers the home's read.
    Answers {
        /// The line.
        line: Line,
        /// Words of the line.
        bytes: Bytes,
    },
    /// The application in hardware accepts the home's write.
    Accepts {
        /// The line.
        line: Line,
    },
    /// The application in hardware requests a local operation.
    Asks {
        /// The line.
        line: Line,
        /// Index of the operation among the controller's.
        operation: u8,
    },
    /// The application in hardware releases a lock.
    Unlocks {
        /// The line.
        line: Line,
    },
    /// The application in hardware reads lines of its memory, in one burst.
    Fetches {
        /// Returned with each line.
        tag: u32,
        /// The first line.
        line: Line,
        /// Number of lines.
        lines: Line,
        /// Distance between consecutive lines of the burst, in lines.
        step: Line,
    },
    /// The application in hardware writes a line of its memory.
    Stores {
        /// Returned with the completion.
        tag: u32,
        /// The line.
        line: Line,
        /// Words of the line.
        bytes: Bytes,
        /// A bit for each word that is written.
        mask: u16,
    },
}

impl CycleOutput {
    /// Returns the line of the output.
    pub fn line_mut(&mut self) -> &mut Line {
        match self {
            CycleOutput::Entered { line, .. }
            | CycleOutput::Stepped { line, .. }
            | CycleOutput::Left { line, .. }
            | CycleOutput::Answered { line, .. }
            | CycleOutput::Reads { line }
            | CycleOutput::Writes { line, .. }
            | CycleOutput::Answers { line, .. }
            | CycleOutput::Accepts { line }
            | CycleOutput::Asks { line, .. }
            | CycleOutput::Unlocks { line }
            | CycleOutput::Fetches { line, .. }
            | CycleOutput::Stores { line, .. } => line,
        }
    }
}
