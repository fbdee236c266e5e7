//! DMA transfers over PCIe: an engine at one end, host memory at the other.
//!
//! [`Control`] decides how a transfer starts and ends; between, the engine reads or writes the data in host memory. All
//! steps are packets on the link: posted writes, read requests with tags, and completions that respect the read
//! completion boundary.

pub mod quantities;

use super::reads::{Completer, Requester, Span};
use super::{End, Parameters, COMPLETIONS, NON_POSTED, POSTED};
use crate::layer::{Layer, Message};
use crate::testbench::{Testbench, LANE_BYTE};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The engine reads host memory.
    ToDevice,
    /// The engine writes host memory.
    ToHost,
}

/// Start and end of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// The host writes a doorbell, the engine fetches a descriptor, and finally writes a status word, which a core
    /// polls.
    Descriptors,
    /// The host writes both addresses, the length and a command to registers of the engine, which finally sends an
    /// interrupt, a posted write. Source: driver of BlueDMA in TaPaSCo (`tlkm/dma/blue_dma.c`).
    Registers,
    /// Logic next to the engine starts it without delay, and a transfer ends with the arrival of its last byte.
    Device,
}

impl Control {
    /// All kinds, by name.
    pub const ALL: [(&str, Control); 3] = [
        ("descriptors", Control::Descriptors),
        ("registers", Control::Registers),
        ("device", Control::Device),
    ];
}

/// Parameters of the engine. Latencies are outside the link, in ticks of the [`Testbench`].
#[derive(Clone, Copy, Debug)]
pub struct Engine {
    /// Direction of the transfers.
    pub direction: Direction,
    /// Start and end of each transfer.
    pub control: Control,
    /// Bytes per transfer.
    pub bytes: u64,
    /// Number of transfers.
    pub transfers: u64,
    /// Maximum outstanding transfers.
    pub queue: u64,
    /// Bytes per descriptor; only for [`Control::Descriptors`].
    pub descriptor: u64,
    /// Maximum bytes per read request.
    pub request: u64,
    /// Number of tags: maximum outstanding read requests.
    pub tags: u16,
    /// Latency from a doorbell, or from the arrival of a descriptor, to the engine's next action.
    pub start: u64,
    /// Latency from the arrival of a read request at the host to its completions.
    pub memory: u64,
    /// Latency from the arrival of the status word or the interrupt to its detection by a core.
    pub detection: u64,
}

/// Event outside the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// The engine fetches the descriptor of a transfer.
    DescriptorFetch(u64),
    /// The engine starts the data phase of a transfer.
    DataStart(u64),
    /// Host memory returns the data of a read request.
    MemoryResponse(u64),
    /// The core detects the end of a transfer.
    Detection(u64),
}

// Kinds of messages, in the upper bits of their labels. The lower bits hold the number of the transfer.
const DOORBELL: u64 = 1 << 60;
const DATA: u64 = 2 << 60;
/// Last data of a transfer.
const LAST_DATA: u64 = 3 << 60;
/// Status word or interrupt.
const STATUS: u64 = 4 << 60;
/// Write to a register other than the one that starts the transfer.
const REGISTER: u64 = 5 << 60;
const KIND_MASK: u64 = 15 << 60;
/// Ticks, in addition to the delay, for the exchange of initial credits: the time of 1024 bytes on one lane, where the
/// credits of the three classes take 8 bytes each.
const INITIALISATION_TICKS: u64 = 1024 * LANE_BYTE;
/// Registers that the host writes before the command: two addresses and a length.
const REGISTERS: usize = 3;
/// Bytes of a doorbell, a register, a status word and an interrupt.
const WORD_BYTES: u16 = 8;
/// Distance between the buffers of transfers in bytes. Each buffer starts at a page boundary.
const BUFFER_DISTANCE: u64 = 1 << 20;

/// Times of a transfer, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferTimes {
    /// Time of the doorbell or of the device's start.
    pub start: u64,
    /// Time of the detection of the status word, the interrupt or the last byte; 0 until then.
    pub end: u64,
}

/// Runs all transfers over a link of `lanes` lanes with a delay of `delay` ticks per direction. Returns the times of
/// each transfer.
pub fn run(engine: &Engine, ends: Parameters, lanes: u32, delay: u64) -> Vec<TransferTimes> {
    TransferRun::new(engine, ends, lanes, delay).finish()
}

/// State of a run: both ends, the events outside the link, and the progress of each transfer.
struct TransferRun<'e> {
    /// Parameters of the engine.
    engine: &'e Engine,
    /// Maximum bytes of data per packet.
    payload: u64,
    /// End 0 is the host, end 1 the engine.
    bench: Testbench<End<Message>>,
    /// Messages that each end has not accepted yet, apart from read requests.
    outgoing: [VecDeque<Message>; 2],
    /// Pending events with their times in ticks, earliest first.
    timers: BinaryHeap<Reverse<(u64, Timer)>>,
    /// Reads of descriptors (even names) and of data (odd names): twice the number of the transfer, or one more.
    requester: Requester,
    /// Read requests that the engine's end has not accepted yet.
    requests: VecDeque<Message>,
    /// Times of each transfer, by number.
    times: Vec<TransferTimes>,
    /// Number of transfers whose end was detected.
    completed: u64,
}

impl<'e> TransferRun<'e> {
    /// Connects the ends and waits until they have exchanged credits.
    fn new(engine: &'e Engine, ends: Parameters, lanes: u32, delay: u64) -> TransferRun<'e> {
        let payload = ends.max_payload.into();
        let ends = [End::new(ends.clone()), End::new(ends)];
        let mut bench = Testbench::new(ends, lanes, delay, 0.0, 0);
        // Link initialisation: exchange of credits.
        bench.advance(4 * delay + INITIALISATION_TICKS);
        TransferRun {
            engine,
            payload,
            bench,
            outgoing: Default::default(),
            timers: BinaryHeap::new(),
            requester: Requester::new(engine.tags, engine.request),
            requests: VecDeque::new(),
            times: Vec::new(),
            completed: 0,
        }
    }

    /// Runs until the end of the last transfer.
    fn finish(mut self) -> Vec<TransferTimes> {
        for _ in 0..self.engine.queue.min(self.engine.transfers) {
            self.start_transfer();
        }
        while self.completed < self.engine.transfers {
            self.submit_messages();
            let timer = self
                .timers
                .peek()
                .map_or(u64::MAX, |Reverse((time, _))| *time);
            let link_event = self.bench.next_at();
            if timer == u64::MAX && link_event == u64::MAX {
                break;
            }
            if timer <= link_event {
                self.bench.advance(timer);
                if let Some(Reverse((_, timer))) = self.timers.pop() {
                    self.handle_timer(timer);
                }
            } else {
                self.bench.step();
            }
            self.take_messages();
        }
        self.times
    }

    /// Schedules an event `delay` ticks from now.
    fn schedule_timer(&mut self, delay: u64, timer: Timer) {
        self.timers.push(Reverse((self.bench.now + delay, timer)));
    }

    /// Queues a posted write at a side.
    fn write(&mut self, side: usize, bytes: u16, label: u64) {
        self.outgoing[side].push_back(Message {
            circuit: POSTED,
            bytes,
            label,
        });
    }

    /// Starts the next transfer.
    fn start_transfer(&mut self) {
        let number = self.times.len() as u64;
        self.times.push(TransferTimes {
            start: self.bench.now,
            end: 0,
        });
        match self.engine.control {
            Control::Descriptors => self.write(0, WORD_BYTES, DOORBELL | number),
            Control::Registers => {
                for _ in 0..REGISTERS {
                    self.write(0, WORD_BYTES, REGISTER | number);
                }
                self.write(0, WORD_BYTES, DOORBELL | number);
            }
            Control::Device => self.schedule_timer(0, Timer::DataStart(number)),
        }
    }

    /// Records the end of a transfer, and starts the next one if any is left.
    fn end_transfer(&mut self, number: u64) {
        self.times[number as usize].end = self.bench.now;
        self.completed += 1;
        if (self.times.len() as u64) < self.engine.transfers {
            self.start_transfer();
        }
    }

    /// Reports to the host that all data of a transfer has arrived or was written before.
    fn report_end(&mut self, number: u64) {
        match self.engine.control {
            Control::Descriptors | Control::Registers => self.write(1, WORD_BYTES, STATUS | number),
            Control::Device => {}
        }
    }

    /// Carries out an event outside the link.
    fn handle_timer(&mut self, timer: Timer) {
        match timer {
            Timer::DescriptorFetch(number) => {
                self.requester
                    .queue_read(2 * number, 0, self.engine.descriptor);
            }
            Timer::DataStart(number) => match self.engine.direction {
                Direction::ToDevice => {
                    self.requester.queue_read(
                        2 * number + 1,
                        number * BUFFER_DISTANCE,
                        self.engine.bytes,
                    );
                }
                Direction::ToHost => {
                    let mut remaining = self.engine.bytes;
                    while remaining > 0 {
                        let bytes = remaining.min(self.payload);
                        remaining -= bytes;
                        let kind = if remaining == 0 { LAST_DATA } else { DATA };
                        self.write(1, bytes as u16, kind | number);
                    }
                    self.report_end(number);
                }
            },
            Timer::MemoryResponse(label) => {
                let request = Message {
                    circuit: NON_POSTED,
                    bytes: 0,
                    label,
                };
                let completer = Completer {
                    payload: self.payload,
                    boundary: 64,
                };
                self.outgoing[0].extend(completer.completions(request));
            }
            Timer::Detection(number) => self.end_transfer(number),
        }
    }

    /// Submits queued messages to the ends, as far as their transmit queues have space.
    fn submit_messages(&mut self) {
        while let Some(request) = self.requester.next_request() {
            self.requests.push_back(request);
        }
        for (side, end) in self.bench.ends_mut().iter_mut().enumerate() {
            let requests = if side == 1 {
                Some(&mut self.requests)
            } else {
                None
            };
            for queue in std::iter::once(&mut self.outgoing[side]).chain(requests) {
                while queue
                    .front()
                    .is_some_and(|message| end.send(*message).is_ok())
                {
                    queue.pop_front();
                }
            }
        }
    }

    /// Takes all received messages.
    fn take_messages(&mut self) {
        for circuit in [POSTED, NON_POSTED, COMPLETIONS] {
            for side in 0..2 {
                while let Some(message) = Layer::take(&mut self.bench.ends_mut()[side], circuit) {
                    self.handle_message(message);
                }
            }
        }
    }

    /// Reacts to a message that has arrived at either side.
    fn handle_message(&mut self, message: Message) {
        let engine = self.engine;
        let number = message.label & !KIND_MASK;
        match (message.circuit, message.label & KIND_MASK) {
            (POSTED, DOORBELL) => {
                let action = match engine.control {
                    Control::Descriptors => Timer::DescriptorFetch(number),
                    Control::Registers | Control::Device => Timer::DataStart(number),
                };
                self.schedule_timer(engine.start, action);
            }
            (POSTED, LAST_DATA) if engine.control == Control::Device => self.end_transfer(number),
            (POSTED, STATUS) => self.schedule_timer(engine.detection, Timer::Detection(number)),
            (NON_POSTED, _) => {
                self.schedule_timer(engine.memory, Timer::MemoryResponse(message.label))
            }
            (COMPLETIONS, _) => {
                debug_assert!(Span::of(message.label).bytes > 0);
                match self.requester.complete(message) {
                    Ok(Some(read)) if read % 2 == 0 => {
                        self.schedule_timer(engine.start, Timer::DataStart(read / 2));
                    }
                    Ok(Some(read)) if engine.control == Control::Device => {
                        self.end_transfer(read / 2)
                    }
                    Ok(Some(read)) => self.report_end(read / 2),
                    Ok(None) | Err(_) => {}
                }
            }
            _ => {}
        }
    }
}
