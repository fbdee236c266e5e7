//! One end of a link: circuits with credits, packed into blocks, sent until they arrive.

use crate::block::{EMPTY, SLOTS};
use crate::replay::{Receiver, Sender, BLOCKS_PER_ACK};
use crate::{Block, Control};
use std::collections::VecDeque;

/// Circuits of a link. The last is for the link's management and needs no credits.
pub const CIRCUITS: usize = 14;
/// Words that one credit stands for.
pub const WORDS_PER_CREDIT: u32 = 8;
/// Words of the longest message: a header and a line.
pub const LONGEST: usize = 17;
const CREDITED: usize = CIRCUITS - 1;

/// What can be chosen of an end.
#[derive(Clone, Debug)]
pub struct Parameters {
    /// Words that the partner's buffer of each credited circuit holds.
    pub buffers: [u32; CREDITED],
    /// Free words that a circuit needs before a message may leave, whatever its size (at least the longest on it).
    pub needs: [u32; CREDITED],
    /// Words that wait to be sent, on each circuit.
    pub fifo: usize,
    /// Slots after which an unanswered request, or a block that nobody acknowledged, is asked for again.
    /// Longer than the round trip, or more is replayed than need be.
    pub patience: u32,
    /// The words of a message, from its circuit and its first word.
    pub words: fn(u8, u64) -> usize,
}

impl Parameters {
    /// ECI's: 256 words on circuits 0 to 5 and 32 on the others; 17 words for a message with data, 2 for others.
    pub const ECI: Parameters = Parameters {
        buffers: [256, 256, 256, 256, 256, 256, 32, 32, 32, 32, 32, 32, 32],
        needs: [2, 2, 17, 17, 17, 17, 2, 2, 2, 2, 2, 2, 2],
        fifo: 4 * LONGEST,
        patience: 256,
        words: eci_words,
    };
}

/// The words of an ECI message: with data, its mask tells the quarters of the line; an I/O store has one word more.
pub fn eci_words(circuit: u8, header: u64) -> usize {
    match circuit {
        2..=5 => 1 + 4 * (header >> 46 & 15).count_ones() as usize,
        // IOBST, IOBSTA, IOBSTP, IOBSTPA.
        0 if matches!(header >> 59, 2..=5) => 2,
        _ => 1,
    }
}

/// Why a message was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The words before it have to leave first.
    Full,
    /// There is no such circuit, or its first word tells another number of words, or it needs more than is ever free.
    Malformed,
}

/// Words that one circuit lacks though nothing is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// The circuit.
    pub circuit: u8,
    /// Words lost; fewer than none if there are too many.
    pub words: i64,
}

/// One message that comes in, word by word.
#[derive(Clone, Copy)]
struct Partial {
    words: [u64; LONGEST],
    have: usize,
    need: usize,
}

/// One end of a link.
pub struct End {
    parameters: Parameters,
    /// The outgoing direction.
    pub sender: Sender,
    /// The incoming direction.
    pub receiver: Receiver,
    waiting: [VecDeque<u64>; CIRCUITS],
    waiting_words: usize,
    credits: [u32; CREDITED],
    /// The circuit whose message is leaving, and its words that are still to go.
    leaving: Option<(u8, usize)>,
    turn: usize,
    buffers: [VecDeque<u64>; CIRCUITS],
    /// Words of room that the partner has not been told of.
    owed: [u32; CREDITED],
    high_next: bool,
    partial: [Partial; CIRCUITS],
    acks_sent: u64,
    /// What the partner knows to have arrived by the last sync block.
    told: u64,
    answer: bool,
    /// Slots since the last request or, without one, since something numbered left.
    quiet: u32,
    request: bool,
    /// Words that found their buffer full: the partner sent without credit.
    pub overrun: u64,
}

impl End {
    /// An end from which nothing can be sent yet: credits come from the partner.
    pub fn new(parameters: Parameters) -> End {
        let room = |circuit: usize| {
            VecDeque::with_capacity(
                parameters.buffers.get(circuit).copied().unwrap_or(0) as usize + LONGEST,
            )
        };
        End {
            sender: Sender::default(),
            receiver: Receiver::default(),
            waiting: std::array::from_fn(|_| VecDeque::with_capacity(parameters.fifo)),
            waiting_words: 0,
            credits: [0; CREDITED],
            leaving: None,
            turn: 0,
            buffers: std::array::from_fn(room),
            owed: parameters.buffers,
            high_next: false,
            partial: [Partial {
                words: [0; LONGEST],
                have: 0,
                need: 0,
            }; CIRCUITS],
            acks_sent: 0,
            told: 0,
            answer: false,
            quiet: 0,
            request: false,
            overrun: 0,
            parameters,
        }
    }

    /// Words of room among those that wait to be sent on a circuit.
    pub fn room(&self, circuit: u8) -> usize {
        self.waiting
            .get(usize::from(circuit))
            .map_or(0, |words| self.parameters.fifo.saturating_sub(words.len()))
    }

    /// Words that wait to be sent, on all circuits.
    pub fn waiting(&self) -> usize {
        self.waiting_words
    }

    /// Takes a message that is to be sent.
    ///
    /// # Errors
    /// If there is no room for it now, or it is none of this circuit's.
    pub fn send(&mut self, circuit: u8, words: &[u64]) -> Result<(), Refused> {
        let place = usize::from(circuit);
        let needs = self
            .parameters
            .needs
            .get(place)
            .map_or(LONGEST, |&n| n as usize);
        let fits = place < CIRCUITS && !words.is_empty() && words.len() <= needs.min(LONGEST);
        if !fits || (self.parameters.words)(circuit, words[0]) != words.len() {
            return Err(Refused::Malformed);
        }
        if self.room(circuit) < words.len() {
            return Err(Refused::Full);
        }
        self.waiting[place].extend(words);
        self.waiting_words += words.len();
        Ok(())
    }

    /// The lanes were retrained: what was under way in both directions may be lost. Both ends are told.
    pub fn retrain(&mut self) {
        self.receiver.lose();
        self.request = true;
    }

    /// Whether nothing is left to do: all sent and acknowledged, all credits returned but what is less than one.
    pub fn is_at_rest(&self) -> bool {
        self.waiting_words == 0
            && self.sender.is_settled()
            && !self.receiver.is_lost()
            && !self.answer
            && !self.request
            && self.acks_due() < BLOCKS_PER_ACK
            && self.owed.iter().all(|&words| words < WORDS_PER_CREDIT)
    }

    fn acks_due(&self) -> u64 {
        self.receiver.taken() - self.acks_sent
    }

    /// The block for the next slot of the lanes.
    pub fn transmit(&mut self) -> Block {
        self.quiet += 1;
        let late = self.quiet >= self.parameters.patience;
        if self.request || self.sender.announce || (late && self.receiver.is_lost()) {
            return self.sync();
        }
        if let Some(block) = self.sender.again() {
            return block;
        }
        if self.sender.has_room() {
            if let Some(block) = self.pack() {
                self.sender.keep(block);
                if !self.receiver.is_lost() {
                    self.quiet = 0;
                }
                return block;
            }
        }
        if self.answer || (late && !self.sender.is_settled()) {
            return self.sync();
        }
        Block::bare(Control::Idle)
    }

    fn sync(&mut self) -> Block {
        let control = Control::Sync {
            request: self.receiver.is_lost(),
            retry: self.sender.announce,
            transmit: self.sender.number(),
            receive: self.receiver.number(),
        };
        self.request = false;
        self.sender.announce = false;
        self.answer = false;
        self.told = self.receiver.taken();
        self.quiet = 0;
        Block::bare(control)
    }

    /// The circuit of the next word, if a word may leave.
    fn next_circuit(&mut self) -> Option<usize> {
        if let Some((circuit, left)) = self.leaving {
            self.leaving = (left > 1).then_some((circuit, left - 1));
            return Some(circuit.into());
        }
        for step in 0..CIRCUITS {
            let circuit = (self.turn + step) % CIRCUITS;
            let Some(&header) = self.waiting[circuit].front() else {
                continue;
            };
            let words = (self.parameters.words)(circuit as u8, header);
            if let Some(credits) = self.credits.get_mut(circuit) {
                if *credits < self.parameters.needs[circuit] {
                    continue;
                }
                *credits -= words as u32;
            }
            self.leaving = (words > 1).then_some((circuit as u8, words - 1));
            self.turn = (circuit + 1) % CIRCUITS;
            return Some(circuit);
        }
        None
    }

    /// A new numbered block, if there are words, credits or acknowledgements for one.
    fn pack(&mut self) -> Option<Block> {
        let mut circuits = [EMPTY; SLOTS];
        let mut words = [0; SLOTS];
        for slot in 0..SLOTS {
            if self.waiting_words == 0 {
                break;
            }
            let Some(circuit) = self.next_circuit() else {
                break;
            };
            if let Some(word) = self.waiting[circuit].pop_front() {
                self.waiting_words -= 1;
                circuits[slot] = circuit as u8;
                words[slot] = word;
            }
        }
        let due = |owed: &[u32]| owed.iter().any(|&words| words >= WORDS_PER_CREDIT);
        let (low, high) = (due(&self.owed[..8]), due(&self.owed[8..]));
        let ack = self.acks_due() >= BLOCKS_PER_ACK;
        if circuits[0] == EMPTY && !low && !high && !ack {
            return None;
        }
        // Turns are taken where both halves have something.
        let high = high && (!low || self.high_next);
        self.high_next = !high;
        let mut credits = 0;
        let from = if high { 8 } else { 0 };
        for (bit, owed) in self.owed[from..].iter_mut().take(8).enumerate() {
            if *owed >= WORDS_PER_CREDIT {
                *owed -= WORDS_PER_CREDIT;
                credits |= 1 << bit;
            }
        }
        if ack {
            self.acks_sent += BLOCKS_PER_ACK;
        }
        let control = Control::Data {
            ack,
            high,
            credits,
            circuits,
        };
        Some(Block::new(control, words))
    }

    /// A block has come.
    pub fn receive(&mut self, block: &Block) {
        match block.control() {
            None => {
                self.receiver.damaged += 1;
                // One request for all that is lost at once.
                self.request |= !self.receiver.is_lost();
                self.receiver.lose();
            }
            Some(Control::Idle) => {}
            Some(Control::Sync {
                request,
                transmit,
                receive,
                ..
            }) => {
                self.sender.sync(receive, request);
                let knew = self.receiver.is_lost();
                self.receiver.sync(transmit);
                self.request |= self.receiver.is_lost() && !knew;
                self.answer |= self.receiver.taken() > self.told;
            }
            Some(Control::Data {
                ack,
                high,
                credits,
                circuits,
            }) => {
                if self.receiver.take() {
                    self.data(ack, high, credits, circuits, block.words());
                }
            }
        }
    }

    fn data(&mut self, ack: bool, high: bool, credits: u8, circuits: [u8; SLOTS], words: &[u64]) {
        if ack {
            self.sender.bit();
        }
        let from = if high { 8 } else { 0 };
        for (bit, own) in self.credits[from..].iter_mut().take(8).enumerate() {
            *own += u32::from(credits >> bit & 1) * WORDS_PER_CREDIT;
        }
        for (circuit, word) in circuits.into_iter().map(usize::from).zip(words) {
            if circuit >= CIRCUITS {
                continue;
            }
            let buffer = &mut self.buffers[circuit];
            let size = self.parameters.buffers.get(circuit);
            if size.is_some_and(|&size| buffer.len() >= size as usize) {
                self.overrun += 1;
            } else {
                buffer.push_back(*word);
            }
        }
    }

    /// Takes at most `limit` words from the buffer of a circuit, as one clock of the receiver does, and hands over each
    /// message that is whole by then. Their room goes back to the partner.
    pub fn drain(&mut self, circuit: u8, limit: usize, mut deliver: impl FnMut(&[u64])) {
        let place = usize::from(circuit);
        for _ in 0..limit {
            let Some(word) = self.buffers[place].pop_front() else {
                return;
            };
            if let Some(owed) = self.owed.get_mut(place) {
                *owed += 1;
            }
            let partial = &mut self.partial[place];
            if partial.have == 0 {
                partial.need = (self.parameters.words)(circuit, word).clamp(1, LONGEST);
            }
            partial.words[partial.have] = word;
            partial.have += 1;
            if partial.have == partial.need {
                partial.have = 0;
                deliver(&partial.words[..partial.need]);
            }
        }
    }

    /// Which credits toward `partner` are lost (or too many), where both are at rest and nothing is on the lanes.
    pub fn shortages(&self, partner: &End) -> Vec<Shortage> {
        (0..CREDITED)
            .map(|circuit| Shortage {
                circuit: circuit as u8,
                words: i64::from(partner.parameters.buffers[circuit])
                    - i64::from(self.credits[circuit])
                    - i64::from(partner.owed[circuit])
                    - partner.buffers[circuit].len() as i64,
            })
            .filter(|shortage| shortage.words != 0)
            .collect()
    }
}
