//! Reference state of a line.

use crate::lockstep::model::CIRCUITS;
use cohkit_base::sequence::{Sequence, Step};
use cohkit_protocol::execute::Configuration;
use cohkit_protocol::protocol::{MessageId, Permission};
use std::collections::VecDeque;

/// Maximum number of 64-bit words per line.
pub(super) const WORDS: usize = 16;
/// Contents of a line.
pub(super) type Bytes = [u64; WORDS];

/// Index of the caching agent in a line's history.
pub(super) const REMOTE: usize = 0;
/// Index of the home in a line's history.
pub(super) const HOME: usize = 1;
/// Index of the device in a line's history.
pub(super) const DEVICE: usize = 2;

/// Direction of a message between remote and home.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Direction {
    /// From the remote to the home.
    ToHome,
    /// From the home to the remote.
    ToRemote,
}

impl Direction {
    /// Returns the sender, as an index of an agent in a line's history.
    pub fn sender(self) -> usize {
        match self {
            Direction::ToHome => REMOTE,
            Direction::ToRemote => HOME,
        }
    }

    /// Returns the receiver, as an index of an agent in a line's history.
    pub fn receiver(self) -> usize {
        match self {
            Direction::ToHome => HOME,
            Direction::ToRemote => REMOTE,
        }
    }
}

/// A message in flight or expected.
#[derive(Clone, Debug)]
pub(super) struct Message {
    /// Message type.
    pub kind: MessageId,
    /// Contents of the line; `None` if the message carries no data.
    pub bytes: Option<Bytes>,
    /// Mask of the valid sixteenths of the line; all bits except for a partial store.
    pub mask: u16,
    /// Number of the message in the histories of all lines.
    pub flight: u32,
}

/// An answer to the device that the home's controller has sent and the RTL must send too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Answer {
    /// True if the answer is to an unlock.
    pub unlock: bool,
    /// True if the home refuses the operation or the unlock.
    pub refused: bool,
    /// Local operation, as an index into the controller's `locals`; 0 for an unlock.
    pub operation: u8,
}

/// A local operation that the home has accepted and not acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PendingLocal {
    /// The operation, as an index into the controller's `locals`.
    pub operation: u8,
    /// True if the directory started the operation to evict the line.
    pub by_directory: bool,
}

/// State of a line's memory operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Memory {
    /// No operation is in progress.
    Idle,
    /// The home has started a read that is not yet visible at the AXI port.
    ReadWanted,
    /// The address of the read has left the AXI port; memory has not sent all beats.
    Reading,
    /// Memory has answered with these bytes.
    Read(Bytes),
    /// The home has started to write these bytes with this word mask.
    WriteWanted(Bytes, u16),
    /// Address and bytes of the write have left the AXI port; memory has not responded.
    Writing,
    /// Memory has responded to the write, and the home's unit has not handled the event.
    Written,
}

/// Messages about a line.
#[derive(Default)]
pub(super) struct LineMessages {
    /// Messages sent and not yet consumed, in both directions.
    pub in_flight: Vec<MessageId>,
    /// Messages that have entered the home and are not yet consumed.
    pub arrived: Vec<Message>,
    /// Messages that must leave the home, by circuit.
    pub expected: [VecDeque<Message>; CIRCUITS],
    /// Number of messages on the link.
    pub on_link: usize,
    /// Number of messages that wait at the home's ports or are entering.
    pub at_ports: usize,
    /// Earliest arrival cycle of the next message in ordered circuits, by receiver and circuit.
    pub earliest_arrival: [[u64; CIRCUITS]; 2],
}

/// Control of a line that is directed to a row, or whose memory answers late.
#[derive(Default)]
pub(super) struct Steering {
    /// True while the line is directed to a row.
    pub is_directed: bool,
    /// True once a directed line has come to rest, so that messages are held back.
    pub is_holding_messages: bool,
    /// Messages that are held back, oldest first.
    pub held: Vec<(Direction, Message)>,
    /// True while memory withholds its answers.
    pub is_memory_withheld: bool,
    /// True once memory may answer again although `is_memory_withheld` is set.
    pub is_memory_resumed: bool,
}

/// Reference state of a line.
pub(super) struct Line {
    /// Line number at the home's ports.
    pub number: u64,
    /// Configuration of the remote's controller.
    pub remote: Configuration,
    /// The remote's copy, meaningful while its state holds the line.
    pub copy: Bytes,
    /// Configuration of the home's controller.
    pub home: Configuration,
    /// The pending local operation, if any.
    pub pending_local: Option<PendingLocal>,
    /// Highest permission of the remote under the lock, if the line is locked.
    pub lock_permission: Option<Permission>,
    /// Contents of memory.
    pub memory: Bytes,
    /// Contents after the last write, wherever the current copy is.
    pub latest: Bytes,
    /// Memory operation in progress.
    pub operation: Memory,
    /// Permission that the remote receives with the read data, or retains after the write.
    pub permission: Permission,
    /// Local operations that have entered the home and are not yet consumed.
    pub queued_locals: VecDeque<u8>,
    /// Unlocks that the device has requested and the home has not answered.
    pub unlocks: u32,
    /// Answers that the device must receive, in any order.
    pub answers: Vec<Answer>,
    /// True once the device knows that it holds the lock.
    pub lock_reported: bool,
    /// Last steps of the line; all steps if the run records a complete history.
    pub history: VecDeque<Step>,
    /// Messages about the line.
    pub messages: LineMessages,
    /// Control of a directed line, or of one with withheld memory.
    pub steering: Steering,
}

impl Line {
    /// Creates a line in its initial state, with these bytes in memory.
    pub fn new(number: u64, remote: Configuration, home: Configuration, bytes: Bytes) -> Line {
        Line {
            number,
            remote,
            copy: [0; WORDS],
            home,
            pending_local: None,
            lock_permission: None,
            memory: bytes,
            latest: bytes,
            operation: Memory::Idle,
            permission: Permission::None,
            queued_locals: VecDeque::new(),
            unlocks: 0,
            answers: Vec::new(),
            lock_reported: false,
            history: VecDeque::new(),
            messages: LineMessages::default(),
            steering: Steering::default(),
        }
    }

    /// Returns the recorded history.
    pub fn sequence(&self) -> Sequence {
        Sequence {
            agents: vec!["remote".into(), "home".into(), "device".into()],
            steps: self.history.iter().cloned().collect(),
        }
    }

    /// True if the home has something to do on the line.
    pub fn is_busy(&self) -> bool {
        !self.messages.arrived.is_empty()
            || self.messages.at_ports != 0
            || !self.queued_locals.is_empty()
            || self.pending_local.is_some()
            || self.operation != Memory::Idle
    }

    /// True if the home has no further work on the line and all of its outputs have been observed.
    pub fn has_settled(&self) -> bool {
        self.messages.at_ports == 0
            && self.messages.arrived.is_empty()
            && self.queued_locals.is_empty()
            && self.unlocks == 0
            && self.answers.is_empty()
            && self.messages.expected.iter().all(VecDeque::is_empty)
            && match self.operation {
                Memory::Idle => true,
                // A burst that may continue completes by itself.
                Memory::Reading | Memory::Writing => {
                    self.steering.is_memory_withheld && !self.steering.is_memory_resumed
                }
                _ => false,
            }
    }

    /// True if these bytes are those of the last write.
    pub fn is_current(&self, bytes: &Bytes, words: usize) -> bool {
        bytes[..words] == self.latest[..words]
    }
}

/// Returns the bits of a word that a mask of sixteenths of the line covers. `word` is the index of
/// the word in a line of `words` words.
pub(super) fn covered_bits(mask: u16, word: usize, words: usize) -> u64 {
    let byte_bits = |byte: usize| {
        let sixteenth = (8 * word + byte) * 16 / (8 * words);
        u64::from(mask >> sixteenth & 1) * 0xff
    };
    (0..8).fold(0, |bits, byte| bits | byte_bits(byte) << (8 * byte))
}
