//! A home that is clocked from here: RTL in the place of the simulator's units.
//!
//! When an event is handled, and when what follows from it leaves the home, is the RTL's to say.
//! What follows is the controller's: it takes each step of the RTL, too, and whatever crosses the RTL's ports
//! must be what the controller has sent, with the simulator's bytes. So a run with RTL is a lockstep run, and everything
//! that watches a run (the oracle, applications, charts) goes on as before.

mod coupling;

pub(crate) use coupling::Clocked;

use crate::kernel::Time;
use crate::message::Line;
use cohkit_protocol::controller::Event;
use cohkit_protocol::protocol::MessageId;

/// Most words of 64 bits in a line of a clocked home.
pub const WORDS: usize = 16;

/// A line's words; those that it does not have are 0.
pub type Bytes = [u64; WORDS];

/// A home that goes on by a cycle when it is told to.
///
/// It takes what is given to it in the order of giving for each of its ports, when it can; until then it lies before it.
pub trait ClockedHome {
    /// Length of a cycle in picoseconds.
    fn period(&self) -> Time;

    /// A message arrives. Of a store, `mask` has a bit for each word that is written.
    fn message(&mut self, kind: MessageId, line: Line, bytes: Bytes, mask: u16);

    /// The device asks for a local operation, by its number among the controller's.
    fn local(&mut self, line: Line, operation: u8);

    /// The device gives a lock back.
    fn unlock(&mut self, line: Line);

    /// Memory has read a line, as [`Happened::Reads`] has asked.
    fn memory_read(&mut self, line: Line, bytes: Bytes);

    /// Memory has written a line, as [`Happened::Writes`] has asked.
    fn memory_written(&mut self, line: Line);

    /// One cycle. Appends what happened in it: causes before what follows from them.
    ///
    /// # Errors
    /// What assertions in the home have to say, or what is wrong at a port that the simulator does not use.
    fn cycle(&mut self, happened: &mut Vec<Happened>) -> Result<(), String>;

    /// Whether nothing would happen in further cycles, as nothing is in it or lies before it.
    fn idle(&self) -> bool;

    /// Whether the application is in it, too: then it tells what that does, and hears what [`Heard`] lists.
    fn has_application(&self) -> bool {
        false
    }

    /// Something reaches the application that is in it.
    fn application(&mut self, _heard: Heard) {}
}

/// What an application in hardware hears from others than its home.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Heard {
    /// It may begin.
    Start,
    /// It is to end what it has begun, and to begin nothing more.
    Stop,
    /// Its memory has read a line for it.
    Fetched {
        /// As in [`Happened::Fetches`].
        tag: u32,
        /// The line's words.
        bytes: Bytes,
    },
    /// Its memory has written a line for it.
    Stored {
        /// As in [`Happened::Stores`].
        tag: u32,
    },
}

/// What became of an event at a unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    /// It was taken.
    Taken,
    /// It waits until its line has moved on.
    Left,
    /// It was refused.
    Refused,
    /// There is no row for it.
    Impossible,
}

/// What a clocked home did in a cycle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Happened {
    /// The last beat of a message has entered, so that there is room for another of its circuit.
    Entered {
        /// The message.
        kind: MessageId,
        /// Its line.
        line: Line,
    },
    /// A unit has handled an event.
    Stepped {
        /// Of which line.
        line: Line,
        /// The event.
        event: Event,
        /// Index of the line's state before.
        state: usize,
        /// Index of its state after an event that was taken.
        next: usize,
        /// What became of the event.
        took: Admission,
        /// Whether it is a local operation by which the directory makes room for another line.
        own: bool,
    },
    /// A message has left, with its last beat.
    Left {
        /// The message.
        kind: MessageId,
        /// Its line.
        line: Line,
        /// Its words, if it carries the line.
        bytes: Option<Bytes>,
    },
    /// The device hears of a local operation, or of its unlock if there is no operation.
    Answered {
        /// Of which line.
        line: Line,
        /// The operation's number among the controller's.
        operation: Option<u8>,
        /// Whether it was not done.
        refused: bool,
    },
    /// Memory is asked for a line.
    Reads {
        /// The line.
        line: Line,
    },
    /// Memory is given a line.
    Writes {
        /// The line.
        line: Line,
        /// Its words.
        bytes: Bytes,
        /// A bit for each word that is written.
        mask: u16,
    },
    /// The application in hardware has answered the home's read.
    Answers {
        /// Of which line.
        line: Line,
        /// Its words.
        bytes: Bytes,
    },
    /// The application in hardware has taken the home's write.
    Accepts {
        /// Of which line.
        line: Line,
    },
    /// The application in hardware has asked for a local operation.
    Asks {
        /// On which line.
        line: Line,
        /// The operation's number among the controller's.
        operation: u8,
    },
    /// The application in hardware has given a lock back.
    Unlocks {
        /// Of which line.
        line: Line,
    },
    /// The application in hardware reads lines of its memory, in one burst.
    Fetches {
        /// Comes back with each line.
        tag: u32,
        /// The first line.
        line: Line,
        /// How many.
        lines: Line,
        /// From one to the next.
        step: Line,
    },
    /// The application in hardware writes a line of its memory.
    Stores {
        /// Comes back when it is done.
        tag: u32,
        /// The line.
        line: Line,
        /// Its words.
        bytes: Bytes,
        /// A bit for each word that is written.
        mask: u16,
    },
}

impl Happened {
    /// The line that it is about.
    pub fn line_mut(&mut self) -> &mut Line {
        match self {
            Happened::Entered { line, .. }
            | Happened::Stepped { line, .. }
            | Happened::Left { line, .. }
            | Happened::Answered { line, .. }
            | Happened::Reads { line }
            | Happened::Writes { line, .. }
            | Happened::Answers { line, .. }
            | Happened::Accepts { line }
            | Happened::Asks { line, .. }
            | Happened::Unlocks { line }
            | Happened::Fetches { line, .. }
            | Happened::Stores { line, .. } => line,
        }
    }
}
