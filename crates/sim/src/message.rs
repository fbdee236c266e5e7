//! Messages in flight, and pools whose elements keep their index.

use cohkit_base::memory::prefetch_value;
use cohkit_protocol::protocol::MessageId;
use std::fmt;
use std::ops::Range;

/// Index of a cache line: its address divided by the size of a line.
pub type Line = u32;

cohkit_base::index!(
    /// Number of an agent of a line: a remote, from 0, or [`HOME`]. Cores have numbers of their own.
    Agent(u16)
);

cohkit_base::index!(
    /// Number of a core, or of a thread of an application, from 0.
    CoreId(u16)
);

impl fmt::Display for CoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Maximum number of fields of a message, which are stored inline. Protocols with more are rejected.
pub const FIELDS: usize = 4;

/// The home's number among the agents of a line; remotes are numbered from 0.
pub const HOME: Agent = Agent(u16::MAX);

/// Key of messages that keep an order: sender, receiver, the order that the protocol file declares, and the line. Where
/// the order spans lines, the home replaces the line.
pub type Order = (Agent, Agent, u8, Line);

/// Caching agents with consecutive numbers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Agents(Range<u16>);

impl Agents {
    /// Creates the set of agents with these numbers.
    pub fn new(numbers: Range<u16>) -> Agents {
        Agents(numbers)
    }

    /// Returns the first agent.
    #[inline]
    pub fn first(&self) -> Agent {
        Agent(self.0.start)
    }

    /// Number after that of the last agent.
    pub fn end(&self) -> u16 {
        self.0.end
    }

    /// Number of agents.
    #[inline]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// True if `agent` is one of them.
    #[inline(always)]
    pub fn contains(&self, agent: Agent) -> bool {
        self.0.contains(&agent.0)
    }

    /// Index of `agent`, which must be one of them, from 0.
    #[inline]
    pub fn place(&self, agent: Agent) -> u16 {
        agent.0 - self.0.start
    }

    /// Agents in ascending order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Agent> + Clone + use<> {
        self.0.clone().map(Agent)
    }
}

/// A message between two agents.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    /// Line that the message concerns.
    pub line: Line,
    /// Data, if the message carries any.
    pub copy: crate::data::Copy,
    /// Message type.
    pub kind: MessageId,
    /// Sender: a remote's number, or [`HOME`].
    pub from: Agent,
    /// Receiver: a remote's number, or [`HOME`].
    pub to: Agent,
    /// Partial stores: index of the first 8-byte word written. Messages between homes: number of the sending home.
    pub word: u16,
    /// Partial stores: number of words written.
    pub words: u16,
    /// Field values, as encoded in controllers; unused fields are 0.
    pub fields: [u16; FIELDS],
    /// True while the message occupies a place in the receiver's buffer for its circuit.
    pub credit: bool,
    /// Sequence number in the order of sending.
    pub flight: u32,
}

impl Message {
    /// Returns the sender, unique among all senders of such messages: the number of the home if both ends are homes.
    #[inline(always)]
    pub fn sender(&self) -> Agent {
        match (self.from, self.to) {
            (HOME, HOME) => Agent(self.word),
            _ => self.from,
        }
    }

    /// Returns the line by which the sending home is found. If both ends are homes, it is the number of the sending
    /// home.
    #[inline(always)]
    pub fn sender_line(&self) -> Line {
        match (self.from, self.to) {
            (HOME, HOME) => self.word.into(),
            _ => self.line,
        }
    }
}

/// A pool. Each element keeps its index from insertion to removal, and free indices are reused.
pub struct Pool<T> {
    /// Elements by index; those of free indices are stale.
    places: Vec<T>,
    /// Free indices; the last one is used next.
    free: Vec<u32>,
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Pool {
            places: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T: Copy> Pool<T> {
    /// Inserts an element. Returns its index.
    #[inline]
    pub fn insert(&mut self, element: T) -> u32 {
        match self.free.pop() {
            Some(index) => {
                self.places[index as usize] = element;
                index
            }
            None => {
                self.places.push(element);
                self.places.len() as u32 - 1
            }
        }
    }

    /// Removes and returns the element with this index, which must be in the pool.
    #[inline]
    pub fn remove(&mut self, index: u32) -> T {
        self.free.push(index);
        self.places[index as usize]
    }

    /// Prefetches an element into the host's cache.
    #[inline]
    pub fn prefetch(&self, index: u32) {
        prefetch_value(&self.places[index as usize]);
    }

    /// Elements in the pool, with their indices.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let mut is_free = vec![false; self.places.len()];
        for &index in &self.free {
            is_free[index as usize] = true;
        }
        let places = self.places.iter().enumerate();
        places
            .filter(move |(index, _)| !is_free[*index])
            .map(|(index, element)| (index as u32, element))
    }
}

impl<T> std::ops::Index<u32> for Pool<T> {
    type Output = T;
    #[inline]
    fn index(&self, index: u32) -> &T {
        &self.places[index as usize]
    }
}

impl<T> std::ops::IndexMut<u32> for Pool<T> {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut T {
        &mut self.places[index as usize]
    }
}

/// Input of a unit of the home.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Work {
    /// A message, by its index.
    Message(u32),
    /// Memory has read the line.
    Read(Line),
    /// Memory has written the line.
    Written(Line),
    /// A local operation of the device, by its index among the controller's.
    Local(Line, u8),
    /// The device releases its lock.
    Unlock(Line),
}
