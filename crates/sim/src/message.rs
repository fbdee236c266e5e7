//! Messages in flight, and pools whose elements keep their index.

use cohkit_base::memory::prefetch_whole;
use cohkit_protocol::protocol::MessageId;
use std::ops::Range;

/// Index of a cache line: its address divided by the size of a line.
pub type Line = u32;

cohkit_base::index!(
    /// Number of an agent of a line: a remote's, from 0, or [`HOME`]. A core's number is no agent's.
    Agent(u16)
);

/// Most fields a message may have here.
pub const FIELDS: usize = 4;

/// The home's number among the agents of a line; remotes are numbered from 0.
pub const HOME: Agent = Agent(u16::MAX);

/// Messages that keep an order: their sender, their receiver, what the text declares, and their line or, where lines are
/// together, their home.
pub type Order = (Agent, Agent, u8, Line);

/// Caching agents whose numbers follow each other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Agents(Range<u16>);

impl Agents {
    /// Those with these numbers.
    pub fn new(numbers: Range<u16>) -> Agents {
        Agents(numbers)
    }

    /// The first of them.
    #[inline]
    pub fn first(&self) -> Agent {
        Agent(self.0.start)
    }

    /// The number behind the last.
    pub fn end(&self) -> u16 {
        self.0.end
    }

    /// How many there are.
    #[inline]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Whether one is among them.
    #[inline(always)]
    pub fn contains(&self, agent: Agent) -> bool {
        self.0.contains(&agent.0)
    }

    /// The place of one of them.
    #[inline]
    pub fn place(&self, agent: Agent) -> u16 {
        agent.0 - self.0.start
    }

    /// One after the other.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Agent> + Clone + use<> {
        self.0.clone().map(Agent)
    }
}

/// A message between two agents.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    /// Which line it is about.
    pub line: Line,
    /// The bytes it carries, if it carries any.
    pub copy: crate::data::Copy,
    /// The kind.
    pub kind: MessageId,
    /// Sender: a remote's number, or [`HOME`].
    pub from: Agent,
    /// Receiver: a remote's number, or [`HOME`].
    pub to: Agent,
    /// For partial stores, the word that is written, counted in 8 bytes; between homes the number of the one that sends.
    pub word: u16,
    /// For partial stores, how many words are written.
    pub words: u16,
    /// Values of its fields, as controllers encode them; unused ones are 0.
    pub fields: [u16; FIELDS],
    /// Whether it still occupies its place in the receiver's buffer for its circuit.
    pub credit: bool,
    /// Numbers messages in the order of sending.
    pub flight: u32,
}

impl Message {
    /// Who sends it, among all who send such messages: of homes that send to homes the number.
    #[inline(always)]
    pub fn sender(&self) -> Agent {
        match (self.from, self.to) {
            (HOME, HOME) => Agent(self.word),
            _ => self.from,
        }
    }

    /// What the home that sends it is found by: its line, or the home's number if another one takes it.
    #[inline(always)]
    pub fn sender_line(&self) -> Line {
        match (self.from, self.to) {
            (HOME, HOME) => self.word.into(),
            _ => self.line,
        }
    }
}

/// A pool: elements have an index from insertion to removal, and places are used again.
pub struct Pool<T> {
    places: Vec<T>,
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
    /// Inserts an element.
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

    /// Removes the element with this index.
    #[inline]
    pub fn remove(&mut self, index: u32) -> T {
        self.free.push(index);
        self.places[index as usize]
    }

    /// Asks memory for an element.
    #[inline]
    pub fn prefetch(&self, index: u32) {
        prefetch_whole(&self.places[index as usize]);
    }

    /// The elements that are in the pool, by index.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let mut gone = vec![false; self.places.len()];
        for &index in &self.free {
            gone[index as usize] = true;
        }
        let places = self.places.iter().enumerate();
        places
            .filter(move |(index, _)| !gone[*index])
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
