//! Two ends with lanes that delay and damage blocks, and traffic that is checked word by word.
#![allow(dead_code)]

pub mod ends;

use cohkit_base::random::SplitMix64;
use cohkit_link::bit_errors::Noise;
use cohkit_link::end::{CIRCUITS, MAX_MESSAGE_WORDS};
use cohkit_link::{Block, End, Parameters};
use std::collections::VecDeque;

/// One direction of the lanes.
pub struct Wire {
    /// Blocks in flight, oldest first.
    pub in_flight: VecDeque<Block>,
    /// Number of slots from departure to arrival.
    pub delay: usize,
    /// Bit errors, applied on arrival.
    pub noise: Noise,
    /// Number of blocks received.
    pub blocks: u64,
    /// Number of blocks received with bit errors.
    pub damaged: u64,
}

impl Wire {
    fn new(delay: usize, rate: f64, seed: u64) -> Wire {
        Wire {
            in_flight: VecDeque::with_capacity(delay + 1),
            delay,
            noise: Noise::new(rate, seed),
            blocks: 0,
            damaged: 0,
        }
    }

    /// Sends a block. Returns the block sent `delay` slots before.
    fn transfer(&mut self, block: Block) -> Option<Block> {
        self.in_flight.push_back(block);
        if self.in_flight.len() <= self.delay {
            return None;
        }
        let mut block = self.in_flight.pop_front()?;
        self.blocks += 1;
        self.damaged += u64::from(self.noise.apply_errors(&mut block) > 0);
        Some(block)
    }
}

/// Traffic of one direction. Each message carries its sequence number on its circuit, and words derived from it.
pub struct Traffic {
    /// Messages sent, by circuit.
    pub sent: [u64; CIRCUITS],
    /// Messages received, by circuit.
    pub received: [u64; CIRCUITS],
    /// Words of all messages received.
    pub words: u64,
}

impl Traffic {
    fn new() -> Traffic {
        Traffic {
            sent: [0; CIRCUITS],
            received: [0; CIRCUITS],
            words: 0,
        }
    }

    /// Total number of messages received.
    pub fn messages(&self) -> u64 {
        self.received.iter().sum()
    }

    /// True if all messages have arrived.
    pub fn is_complete(&self) -> bool {
        self.sent == self.received
    }
}

/// Message with this sequence number; on circuits with data, with `quarters` quarters of a line.
pub fn message(circuit: u8, number: u64, quarters: u32) -> ([u64; MAX_MESSAGE_WORDS], usize) {
    let mask = if (2..=5).contains(&circuit) {
        (1u64 << quarters) - 1
    } else {
        0
    };
    let header = mask << 46 | number & 0xff_ffff_ffff;
    let words = (cohkit_link::end::eci_words)(circuit, header);
    let mut random = SplitMix64::new(header ^ u64::from(circuit) << 59);
    let mut message: [u64; MAX_MESSAGE_WORDS] = std::array::from_fn(|_| random.next_u64());
    message[0] = header;
    (message, words)
}

/// Two ends and the lanes between them. A slot is the time of one block.
pub struct Link {
    /// Both ends; each receives from the other one.
    pub ends: [End; 2],
    /// `wires[0]` leads from the first end to the second.
    pub wires: [Wire; 2],
    /// `traffic[0]` is sent from the first end to the second.
    pub traffic: [Traffic; 2],
}

impl Link {
    /// Connects two ends by lanes with a delay of `delay` slots and bit errors at `rate` per bit.
    pub fn new(delay: usize, rate: f64, seed: u64) -> Link {
        Link {
            ends: std::array::from_fn(|_| End::new(Parameters::ECI)),
            wires: [
                Wire::new(delay, rate, seed ^ 0x1111),
                Wire::new(delay, rate, seed ^ 0x2222),
            ],
            traffic: [Traffic::new(), Traffic::new()],
        }
    }

    /// Advances both directions by one slot.
    pub fn advance_slot(&mut self) {
        for side in 0..2 {
            let block = self.ends[side].next_block();
            if let Some(block) = self.wires[side].transfer(block) {
                self.ends[1 - side].receive(&block);
            }
        }
    }

    /// Sends the next message of a circuit, if its queue has space.
    pub fn send(&mut self, from: usize, circuit: u8, quarters: u32) -> bool {
        let number = &mut self.traffic[from].sent[usize::from(circuit)];
        let (message, words) = message(circuit, *number, quarters);
        let accepted = self.ends[from].send(circuit, &message[..words]).is_ok();
        *number += u64::from(accepted);
        accepted
    }

    /// Sends whole lines on a circuit until its queue is full.
    pub fn fill(&mut self, from: usize, circuit: u8) {
        while self.send(from, circuit, 4) {}
    }

    /// Drains a circuit of the end that `from` sends to, and checks the messages.
    pub fn drain(&mut self, from: usize, circuit: u8, limit: usize) {
        let traffic = &mut self.traffic[from];
        let next = &mut traffic.received[usize::from(circuit)];
        self.ends[1 - from].drain(circuit, limit, |words| {
            let quarters = (words[0] >> 46 & 15).count_ones();
            let (expected, length) = message(circuit, *next, quarters);
            assert_eq!(
                words,
                &expected[..length],
                "message {next} of circuit {circuit}"
            );
            *next += 1;
            traffic.words += words.len() as u64;
        });
    }

    /// Drains at most `limit` words of each circuit at both ends.
    pub fn drain_all(&mut self, limit: usize) {
        for from in 0..2 {
            for circuit in 0..CIRCUITS as u8 {
                self.drain(from, circuit, limit);
            }
        }
    }

    /// Advances by one slot with random traffic in both directions.
    pub fn random_slot(&mut self, random: &mut SplitMix64) {
        for from in 0..2 {
            let circuit = random.modulo(CIRCUITS as u64) as u8;
            self.send(from, circuit, 1 + random.modulo(4) as u32);
            if random.modulo(2) == 0 {
                self.send(from, 4 + random.modulo(2) as u8, 4);
            }
        }
        self.advance_slot();
        self.drain_all(7);
    }

    /// Advances until all messages have arrived, then until both ends are at rest without further errors. Returns true
    /// if both succeed.
    pub fn settle(&mut self) -> bool {
        let arrived = (0..200_000).any(|_| {
            self.advance_slot();
            self.drain_all(7);
            self.traffic.iter().all(Traffic::is_complete)
        });
        for wire in &mut self.wires {
            wire.noise = Noise::new(0.0, 0);
        }
        arrived
            && (0..5000).any(|_| {
                self.advance_slot();
                self.drain_all(7);
                self.ends.iter().all(End::is_quiescent)
            })
    }
}

/// Expected share of slots for new blocks. An error costs a round trip until blocks arrive again, plus the sync blocks
/// of both sides. If the answering sync block is damaged in turn, it also costs the sender's retry timeout.
pub fn share_left(rate: f64, delay: usize) -> f64 {
    let damage_probability = -(f64::ln_1p(-rate) * Block::BITS as f64).exp_m1();
    let blocks_lost = (2 * delay + 2) as f64
        + damage_probability * f64::from(Parameters::ECI.retry_timeout_slots);
    (1.0 - damage_probability) / (1.0 - damage_probability + damage_probability * blocks_lost)
}

/// Seeds of random tests. `COHKIT_SEED=n` selects a single one.
pub fn seeds(count: u64) -> Vec<u64> {
    match std::env::var("COHKIT_SEED") {
        Ok(seed) => vec![seed.parse().expect("COHKIT_SEED is a number")],
        Err(_) => (0..count).collect(),
    }
}

/// Prints the command that repeats a test with its seed, if the test panics.
pub struct SeedReport {
    pub seed: u64,
    /// Module of the test.
    pub file: &'static str,
    /// Name of the test.
    pub test: &'static str,
}

impl Drop for SeedReport {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let SeedReport { seed, file, test } = self;
            eprintln!(
                "repeat it: COHKIT_SEED={seed} cargo test -p cohkit-link --test link {file}::{test}"
            );
        }
    }
}
