//! Message passing over shared memory, and programs that mix its primitives.
//!
//! A sender stores a message in the receiver's memory and releases a flag there. The receiver acknowledges by a flag in
//! the sender's memory; meanwhile the sender fills the other of two buffers. A message larger than a buffer is sent in
//! pieces. Only sizes and fan-outs of the programs are published; which primitives each program uses, and how often, is
//! assumed.

use crate::interface::{Line, Time};
use crate::kernel::{
    mixed, Array, Barrier, Core, FirstMismatch, Grain, Hosts, Kernel, Memory, Place,
};
use std::ops::Range;

/// Capacity of a buffer in values (lines or words).
const BUFFER_VALUES: u32 = 256;

/// A channel from one thread to another.
#[derive(Clone, Debug)]
struct Channel {
    /// Two buffers of words, and two of lines.
    buffers: [[Array; 2]; 2],
    full: Place,
    empty: Place,
    sent: u32,
    received: u32,
}

/// Channels and barrier of all threads.
struct Communicator {
    /// `channels[from][to]`.
    channels: Vec<Vec<Channel>>,
    barrier: Barrier,
    memory: Memory,
}

impl Communicator {
    fn new(hosts: Hosts) -> Communicator {
        let mut memory = Memory::new(hosts.homes);
        let mut channels: Vec<Vec<Channel>> = Vec::new();
        for from in 0..hosts.threads {
            let to = (0..hosts.threads).map(|to| Channel {
                buffers: [Grain::Word, Grain::Line]
                    .map(|grain| [(); 2].map(|()| memory.array(to, BUFFER_VALUES, grain))),
                full: memory.flag(to),
                empty: memory.flag(from),
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
    core: Core,
    world: Communicator,
    threads: u32,
}

impl Rank {
    fn me(&self) -> u32 {
        self.core.number
    }

    async fn send(&mut self, to: u32, grain: Grain, values: &[u64]) {
        let channel = &mut self.world.channels[self.core.number as usize][to as usize];
        for piece in values.chunks(BUFFER_VALUES as usize) {
            if channel.sent > 1 {
                self.core
                    .acquire_flag(channel.empty, channel.sent - 1)
                    .await;
            }
            let buffer = channel.buffers[grain as usize][channel.sent as usize % 2];
            for (&value, at) in piece.iter().zip(0..) {
                self.core.store(buffer, at, value).await;
            }
            channel.sent += 1;
            self.core.tell(channel.full, channel.sent).await;
        }
    }

    async fn receive(&mut self, from: u32, grain: Grain, values: u32) -> Vec<u64> {
        let channel = &mut self.world.channels[from as usize][self.core.number as usize];
        let mut received = Vec::new();
        while received.len() < values as usize {
            let buffer = channel.buffers[grain as usize][channel.received as usize % 2];
            channel.received += 1;
            self.core.acquire_flag(channel.full, channel.received).await;
            for at in 0..BUFFER_VALUES.min(values - received.len() as u32) {
                received.push(self.core.load_value(buffer, at).await);
            }
            self.core.tell(channel.empty, channel.received).await;
        }
        received
    }

    /// Broadcasts the values of thread 0 to all threads along a binomial tree.
    async fn broadcast(&mut self, values: Vec<u64>) -> Vec<u64> {
        let (me, many) = (self.me(), values.len() as u32);
        let mut values = values;
        let mut far = 1;
        while far < self.threads {
            if me < far && me + far < self.threads {
                self.send(me + far, Grain::Word, &values).await;
            } else if (far..2 * far).contains(&me) {
                values = self.receive(me - far, Grain::Word, many).await;
            }
            far *= 2;
        }
        values
    }

    /// Reduces the values of all threads by addition to thread 0, along a binomial tree.
    async fn reduce(&mut self, mut values: Vec<u64>) -> Vec<u64> {
        let (me, many) = (self.me(), values.len() as u32);
        let mut far = self.threads.next_power_of_two() / 2;
        while far > 0 {
            if me < far && me + far < self.threads {
                let others = self.receive(me + far, Grain::Word, many).await;
                for (value, other) in values.iter_mut().zip(others) {
                    *value = value.wrapping_add(other);
                }
            } else if (far..2 * far).contains(&me) {
                self.send(me - far, Grain::Word, &values).await;
            }
            far /= 2;
        }
        values
    }

    /// Computes the sums of all threads' values at all threads.
    async fn all_reduce(&mut self, values: Vec<u64>) -> Vec<u64> {
        let sums = self.reduce(values).await;
        self.broadcast(sums).await
    }

    async fn barrier(&mut self) {
        self.world.barrier.wait(&self.core).await;
    }
}

/// A message-passing program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Program {
    /// MOCFE: each thread exchanges up to 32 words, or up to 4 lines, with all others, followed by a sum.
    Mocfe,
    /// CMC-2D: messages of up to 14 KB to all others, and a sum.
    Cmc2d,
    /// BigFFT: a message of 10 KB, in lines or in words, with a different partner in each step, and a barrier.
    BigFft,
    /// CR, a crystal router: messages of up to 2 KB with the partners of a hypercube, one dimension after the other.
    Router,
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
    fn size(&self, step: u32, from: u32, to: u32) -> (Grain, u32) {
        let chance = mixed(u64::from(step) << 32 | u64::from(from) << 16 | u64::from(to));
        let within = |range: Range<u32>| range.start + (chance >> 8) as u32 % range.len() as u32;
        match (self.program, chance % 2) {
            (Program::Mocfe, 0) => (Grain::Word, within(1..33)),
            (Program::Mocfe, _) => (Grain::Line, within(1..5)),
            (Program::Cmc2d, _) => (Grain::Line, within(1..225)),
            (Program::BigFft, 0) => (Grain::Word, 1280),
            (Program::BigFft, _) => (Grain::Line, 160),
            (Program::Router, _) => (Grain::Line, within(1..33)),
        }
    }

    /// Returns the partners of a thread in a step, in the order of the exchanges.
    fn partners(&self, step: u32, me: u32) -> Vec<u32> {
        let threads = self.hosts.threads;
        match self.program {
            Program::Mocfe | Program::Cmc2d => (1..threads).map(|far| me ^ far).collect(),
            Program::BigFft => vec![me ^ (1 + step % (threads - 1))],
            Program::Router => (0..threads.trailing_zeros())
                .map(|bit| me ^ 1 << bit)
                .collect(),
        }
    }

    fn values(&self, step: u32, from: u32, to: u32) -> Vec<u64> {
        let of = (u64::from(from) << 12 | u64::from(to)) << 20 | u64::from(step);
        let (_, many) = self.size(step, from, to);
        (0..many)
            .map(|at| mixed(of << 12 | u64::from(at)))
            .collect()
    }
}

impl Kernel for Messages {
    fn hosts(&self) -> Hosts {
        self.hosts
    }

    fn lines(&self) -> Line {
        Communicator::new(self.hosts).memory.lines()
    }

    async fn run(self, core: Core) -> Result<(), String> {
        let threads = self.hosts.threads;
        let mut rank = Rank {
            core: core.clone(),
            world: Communicator::new(self.hosts),
            threads,
        };
        let me = rank.me();
        let mut findings = FirstMismatch::default();
        core.begin().await;
        for step in 0..self.steps {
            let partners = self.partners(step, me);
            for &to in &partners {
                let (grain, many) = self.size(step, me, to);
                core.work(self.work * Time::from(many)).await;
                rank.send_and_receive(&self, (step, to, grain), &mut findings)
                    .await;
            }
            if matches!(self.program, Program::Mocfe | Program::Cmc2d) {
                let mine = |thread: u32| mixed(u64::from(step) << 32 | u64::from(thread));
                let sums = rank.all_reduce(vec![mine(me)]).await;
                let right = (0..threads).map(mine).fold(0, u64::wrapping_add);
                findings.value(sums[0], right, || format!("the sum of step {step}"));
            }
            if self.program == Program::BigFft {
                rank.barrier().await;
            }
        }
        rank.barrier().await;
        core.end("done").await;
        findings.into_result()
    }
}

impl Rank {
    /// Exchanges messages with a partner. A message of several pieces fills the two buffers, so both sides alternate
    /// sends and receives piece by piece.
    async fn send_and_receive(
        &mut self,
        of: &Messages,
        (step, other, grain): (u32, u32, Grain),
        findings: &mut FirstMismatch,
    ) {
        let me = self.me();
        let values = of.values(step, me, other);
        let right = of.values(step, other, me);
        let (its, _) = of.size(step, other, me);
        let (mut sends, mut receives) = (
            values.chunks(BUFFER_VALUES as usize),
            right.chunks(BUFFER_VALUES as usize),
        );
        let mut at = 0;
        loop {
            let (piece, its_piece) = (sends.next(), receives.next());
            if let Some(piece) = piece {
                self.send(other, grain, piece).await;
            }
            if let Some(right) = its_piece {
                let found = self.receive(other, its, right.len() as u32).await;
                for (found, &right) in found.into_iter().zip(right) {
                    findings.value(found, right, || {
                        format!("value {at} from thread {other} in step {step}")
                    });
                    at += 1;
                }
            }
            if piece.is_none() && its_piece.is_none() {
                return;
            }
        }
    }
}
