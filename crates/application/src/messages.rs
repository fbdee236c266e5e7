//! Message passing over shared memory, and programs that mix its primitives.
//!
//! A sender stores a message in the receiver's memory and releases a flag there. The receiver acknowledges by a flag in
//! the sender's memory; meanwhile the sender fills the other of two buffers. A message larger than a buffer is sent in
//! pieces. Two threads that only exchange equally many messages need no acknowledgements: a thread that has received
//! its partner's next message knows that the partner has emptied the buffer before. Only sizes and fan-outs of the
//! programs are published; which primitives each program uses, and how often, is assumed.

use crate::interface::{Line, Time};
use crate::kernel::{
    mix64, Array, Barrier, Core, FirstMismatch, Granularity, Hosts, Kernel, Memory, WordAddress,
};
use std::ops::Range;

/// Capacity of a buffer in values (lines or words), except in BigFFT.
const BUFFER_VALUES: u32 = 256;
/// Words of a message of BigFFT, and lines of one: 10 KiB. A buffer holds a message.
const FFT_WORDS: u32 = 1280;
const FFT_LINES: u32 = 160;

/// A channel from one thread to another.
#[derive(Clone, Debug)]
struct Channel {
    /// Two buffers of words, and two of lines.
    buffers: [[Array; 2]; 2],
    /// Flag that counts full buffers, in the receiver's memory.
    full: WordAddress,
    /// Flag that counts emptied buffers, in the sender's memory.
    empty: Option<WordAddress>,
    /// Number of pieces sent, counted by the sender.
    sent: u32,
    /// Number of pieces received, counted by the receiver.
    received: u32,
}

/// Channels and barrier of all threads.
struct Communicator {
    /// `channels[from][to]`.
    channels: Vec<Vec<Channel>>,
    /// Barrier of all threads.
    barrier: Barrier,
    /// Allocator of all of these.
    memory: Memory,
}

impl Communicator {
    /// Allocates all channels. Each thread does the same, so that all agree on the locations.
    fn new(hosts: Hosts, program: Program) -> Communicator {
        let mut memory = Memory::new(hosts.homes);
        let mut channels: Vec<Vec<Channel>> = Vec::new();
        for from in 0..hosts.threads {
            let to = (0..hosts.threads).map(|to| Channel {
                buffers: [Granularity::Word, Granularity::Line].map(|granularity| {
                    [(); 2].map(|()| memory.array(to, program.capacity(granularity), granularity))
                }),
                full: memory.flag(to),
                empty: program.acknowledges().then(|| memory.flag(from)),
                sent: 0,
                received: 0,
            });
            channels.push(to.collect());
        }
        let barrier = Barrier::new(&mut memory, hosts.threads);
        Communicator {
            channels,
            barrier,
            memory,
        }
    }
}

/// One of the communicating threads.
struct Rank {
    /// Handle of the thread.
    core: Core,
    /// The thread's copy: only its own ends of channels are up to date.
    communicator: Communicator,
    /// Number of threads.
    threads: u32,
    program: Program,
}

impl Rank {
    /// Returns the index of the thread.
    fn thread(&self) -> u32 {
        self.core.number
    }

    /// Sends a message, in pieces of the size of a buffer.
    async fn send(&mut self, to: u32, granularity: Granularity, values: &[u64]) {
        let channel = &mut self.communicator.channels[self.core.number as usize][to as usize];
        for piece in values.chunks(self.program.capacity(granularity) as usize) {
            if let (Some(empty), 2..) = (channel.empty, channel.sent) {
                self.core.acquire_flag(empty, channel.sent - 1).await;
            }
            let buffer = channel.buffers[granularity as usize][channel.sent as usize % 2];
            for (&value, index) in piece.iter().zip(0..) {
                self.core.store(buffer, index, value).await;
            }
            channel.sent += 1;
            self.core.release_flag(channel.full, channel.sent).await;
        }
    }

    /// Receives a message of `values` values.
    async fn receive(&mut self, from: u32, granularity: Granularity, values: u32) -> Vec<u64> {
        let channel = &mut self.communicator.channels[from as usize][self.core.number as usize];
        let mut received = Vec::new();
        while received.len() < values as usize {
            let buffer = channel.buffers[granularity as usize][channel.received as usize % 2];
            channel.received += 1;
            self.core.acquire_flag(channel.full, channel.received).await;
            let capacity = self.program.capacity(granularity);
            for index in 0..capacity.min(values - received.len() as u32) {
                received.push(self.core.load_value(buffer, index).await);
            }
            if let Some(empty) = channel.empty {
                self.core.release_flag(empty, channel.received).await;
            }
        }
        received
    }

    /// Broadcasts the values of thread 0 to all threads along a binomial tree.
    async fn broadcast(&mut self, values: Vec<u64>) -> Vec<u64> {
        let (me, count) = (self.thread(), values.len() as u32);
        let mut values = values;
        let mut distance = 1;
        while distance < self.threads {
            if me < distance && me + distance < self.threads {
                self.send(me + distance, Granularity::Word, &values).await;
            } else if (distance..2 * distance).contains(&me) {
                values = self.receive(me - distance, Granularity::Word, count).await;
            }
            distance *= 2;
        }
        values
    }

    /// Reduces the values of all threads by addition to thread 0, along a binomial tree.
    async fn reduce(&mut self, mut values: Vec<u64>) -> Vec<u64> {
        let (me, count) = (self.thread(), values.len() as u32);
        let mut distance = self.threads.next_power_of_two() / 2;
        while distance > 0 {
            if me < distance && me + distance < self.threads {
                let received = self.receive(me + distance, Granularity::Word, count).await;
                for (value, addend) in values.iter_mut().zip(received) {
                    *value = value.wrapping_add(addend);
                }
            } else if (distance..2 * distance).contains(&me) {
                self.send(me - distance, Granularity::Word, &values).await;
            }
            distance /= 2;
        }
        values
    }

    /// Computes the sums of all threads' values at all threads.
    async fn all_reduce(&mut self, values: Vec<u64>) -> Vec<u64> {
        let sums = self.reduce(values).await;
        self.broadcast(sums).await
    }

    /// Waits for all threads.
    async fn barrier(&mut self) {
        self.communicator.barrier.wait(&self.core).await;
    }
}

/// A message-passing program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Program {
    /// MOCFE: each thread exchanges up to 32 words, or up to 4 lines, with all others, followed by a sum.
    Mocfe,
    /// CMC-2D: messages of up to 14 KB to all others, and a sum.
    Cmc2d,
    /// BigFFT: a message of 10 KB, in lines or in words, with a different partner in each step. Its published fan-out is
    /// low, so that threads only meet at the end.
    BigFft,
    /// CR, a crystal router: messages of up to 2 KB with the partners of a hypercube, one dimension after the other.
    Router,
}

impl Program {
    /// Returns the number of values that a buffer can hold.
    fn capacity(self, granularity: Granularity) -> u32 {
        match (self, granularity) {
            (Program::BigFft, Granularity::Word) => FFT_WORDS,
            (Program::BigFft, Granularity::Line) => FFT_LINES,
            _ => BUFFER_VALUES,
        }
    }

    /// Returns true if a receiver acknowledges each message. Partners in BigFFT exchange one message of one piece each in
    /// the same steps, so the next message acknowledges the one before.
    fn acknowledges(self) -> bool {
        self != Program::BigFft
    }
}

/// Parameters of a message-passing kernel.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Messages {
    /// Hosts and threads.
    pub hosts: Hosts,
    /// The program.
    pub program: Program,
    /// Number of steps.
    pub steps: u32,
    /// Computation time per value sent, in picoseconds.
    pub work: Time,
}

impl Messages {
    /// Returns the granularity and the number of values of a thread's message to another in a step.
    fn size(&self, step: u32, from: u32, to: u32) -> (Granularity, u32) {
        let random = mix64(u64::from(step) << 32 | u64::from(from) << 16 | u64::from(to));
        let draw_size = |range: Range<u32>| range.start + (random >> 8) as u32 % range.len() as u32;
        match (self.program, random % 2) {
            (Program::Mocfe, 0) => (Granularity::Word, draw_size(1..33)),
            (Program::Mocfe, _) => (Granularity::Line, draw_size(1..5)),
            (Program::Cmc2d, _) => (Granularity::Line, draw_size(1..225)),
            (Program::BigFft, 0) => (Granularity::Word, FFT_WORDS),
            (Program::BigFft, _) => (Granularity::Line, FFT_LINES),
            (Program::Router, _) => (Granularity::Line, draw_size(1..33)),
        }
    }

    /// Returns the partners of a thread in a step, in the order of the exchanges.
    fn partners(&self, step: u32, me: u32) -> Vec<u32> {
        let threads = self.hosts.threads;
        match self.program {
            Program::Mocfe | Program::Cmc2d => (1..threads).map(|distance| me ^ distance).collect(),
            Program::BigFft => vec![me ^ (1 + step % (threads - 1))],
            Program::Router => (0..threads.trailing_zeros())
                .map(|bit| me ^ 1 << bit)
                .collect(),
        }
    }

    /// Returns the values of a thread's message to another in a step.
    fn values(&self, step: u32, from: u32, to: u32) -> Vec<u64> {
        let message_number = (u64::from(from) << 12 | u64::from(to)) << 20 | u64::from(step);
        let (_, count) = self.size(step, from, to);
        (0..count)
            .map(|index| mix64(message_number << 12 | u64::from(index)))
            .collect()
    }
}

impl Kernel for Messages {
    fn hosts(&self) -> Hosts {
        self.hosts
    }

    fn lines(&self) -> Line {
        Communicator::new(self.hosts, self.program).memory.lines()
    }

    /// In each step: computes, and exchanges messages with its partners; depending on the program, also sums a value
    /// over all threads, or waits for all.
    async fn run(self, core: Core) -> Result<(), String> {
        let threads = self.hosts.threads;
        let mut rank = Rank {
            core: core.clone(),
            communicator: Communicator::new(self.hosts, self.program),
            threads,
            program: self.program,
        };
        let me = rank.thread();
        let mut mismatch = FirstMismatch::default();
        core.begin().await;
        for step in 0..self.steps {
            let partners = self.partners(step, me);
            for &to in &partners {
                let (granularity, count) = self.size(step, me, to);
                core.work(self.work * Time::from(count)).await;
                rank.send_and_receive(&self, (step, to, granularity), &mut mismatch)
                    .await;
            }
            if matches!(self.program, Program::Mocfe | Program::Cmc2d) {
                let contribution = |thread: u32| mix64(u64::from(step) << 32 | u64::from(thread));
                let sums = rank.all_reduce(vec![contribution(me)]).await;
                let expected = (0..threads).map(contribution).fold(0, u64::wrapping_add);
                mismatch.check_value(sums[0], expected, || format!("the sum of step {step}"));
            }
        }
        rank.barrier().await;
        core.end("done").await;
        mismatch.into_result()
    }
}

impl Rank {
    /// Exchanges messages with a partner. A message of several pieces fills the two buffers, so both sides alternate
    /// sends and receives piece by piece.
    async fn send_and_receive(
        &mut self,
        messages: &Messages,
        (step, partner, granularity): (u32, u32, Granularity),
        mismatch: &mut FirstMismatch,
    ) {
        let me = self.thread();
        let values = messages.values(step, me, partner);
        let expected = messages.values(step, partner, me);
        let (partner_granularity, _) = messages.size(step, partner, me);
        let (mut sends, mut receives) = (
            values.chunks(self.program.capacity(granularity) as usize),
            expected.chunks(self.program.capacity(partner_granularity) as usize),
        );
        let mut index = 0;
        loop {
            let (piece, expected_piece) = (sends.next(), receives.next());
            if let Some(piece) = piece {
                self.send(partner, granularity, piece).await;
            }
            if let Some(expected) = expected_piece {
                let received = self
                    .receive(partner, partner_granularity, expected.len() as u32)
                    .await;
                for (received, &expected) in received.into_iter().zip(expected) {
                    mismatch.check_value(received, expected, || {
                        format!("value {index} from thread {partner} in step {step}")
                    });
                    index += 1;
                }
            }
            if piece.is_none() && expected_piece.is_none() {
                return;
            }
        }
    }
}
