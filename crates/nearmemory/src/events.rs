//! What happens when, and the messages between host and device.

use crate::scratchpad::{Data, LINE};
use cohkit_riscv::Size;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::ops::Range;

/// Picoseconds.
pub(crate) type Time = u64;

/// A core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    /// A core of the host.
    Host(usize),
    /// A core beside far memory.
    Mcc(usize),
}

/// What the host asks of the device.
#[derive(Clone, Debug)]
pub(crate) enum Request {
    ReadLine(u64),
    WriteLine(u64, Box<Data>),
    ReadWord(u64, Size),
    WriteWord(u64, Size, u64),
}

impl Request {
    /// The bytes of data that come with it.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Request::ReadLine(_) | Request::ReadWord(..) => 0,
            Request::WriteLine(..) => LINE as u64,
            Request::WriteWord(..) => 8,
        }
    }
}

/// What the device answers.
#[derive(Clone, Debug)]
pub(crate) enum Response {
    Line(Box<Data>),
    Word(u64),
    Written,
}

/// What a copy engine asks of the host's own memory: a line that is stored there, or that is read.
#[derive(Clone, Debug)]
pub(crate) struct Away {
    pub mcc: usize,
    /// The number of the access.
    pub number: u64,
    pub at: u64,
    pub stores: bool,
    pub data: Box<Data>,
}

impl Away {
    /// The bytes of data that go to the host, and those that come back.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        let line = LINE as u64;
        if self.stores {
            (line, 0)
        } else {
            (0, line)
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// A core goes on.
    Run(Who),
    /// A request is where it is carried out.
    Asked(u64, Request),
    /// An answer goes to the link.
    Answered(u64, Response),
    /// It is at the host.
    Arrived(u64, Response),
    /// A copy engine asks far memory for its next line.
    Copy(usize),
    /// A line of a copy engine is read or written.
    Copied(usize, u64, Box<Data>),
    /// What a copy engine asks of the host's own memory goes to the link.
    ToHost(Away),
    /// It is where that memory is.
    AtHost(Away),
    /// The answer goes to the link.
    FromHost(Away),
    /// A binary is in private memory: of which core, and how many there were for it.
    Loaded(usize, u64),
    /// A word is at the end of a FIFO, from the first of these cores to the second one.
    Passed(usize, usize),
}

impl Event {
    /// True if it changes nothing that a core may read: cores run, and the host reads what is there.
    pub(crate) fn only_reads(&self) -> bool {
        use Event::*;
        match self {
            Run(_) | Asked(_, Request::ReadLine(_) | Request::ReadWord(..)) => true,
            Answered(_, response) | Arrived(_, response) => !matches!(response, Response::Written),
            _ => false,
        }
    }
}

struct Entry {
    time: Time,
    number: u64,
    event: Event,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Entry) -> Ordering {
        // The heap gives its greatest entry.
        (other.time, other.number).cmp(&(self.time, self.number))
    }
}

/// Events by their times; those of one time in the order in which they were added.
#[derive(Default)]
pub(crate) struct Queue {
    heap: BinaryHeap<Entry>,
    added: u64,
}

impl Queue {
    pub(crate) fn add(&mut self, time: Time, event: Event) {
        let number = self.added;
        self.added += 1;
        self.heap.push(Entry {
            time,
            number,
            event,
        });
    }

    pub(crate) fn next(&mut self) -> Option<(Time, Event)> {
        let entry = self.heap.pop()?;
        Some((entry.time, entry.event))
    }

    /// True if there is such an event.
    pub(crate) fn any(&self, is: impl Fn(&Event) -> bool) -> bool {
        self.heap.iter().any(|entry| is(&entry.event))
    }

    /// When the next event is; the end of time if there is none.
    #[inline(always)]
    pub(crate) fn soonest(&self) -> Time {
        self.heap.peek().map_or(Time::MAX, |entry| entry.time)
    }
}

/// One direction of the link: messages one behind the other.
#[derive(Clone, Debug)]
pub(crate) struct Wire {
    /// When the last message was on it.
    pub(crate) last: Range<Time>,
    latency: Time,
    /// Bytes per second.
    bandwidth: u64,
    header: u64,
    /// Messages so far, and their bytes with headers.
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
}

impl Wire {
    pub(crate) fn new(latency: Time, bandwidth: u64, header: u64) -> Wire {
        Wire {
            last: 0..0,
            latency,
            bandwidth,
            header,
            messages: 0,
            bytes: 0,
        }
    }

    /// A message with so many bytes of data is there at this time: when it is at the other end.
    pub(crate) fn carry(&mut self, now: Time, bytes: u64) -> Time {
        let bytes = bytes + self.header;
        self.messages += 1;
        self.bytes += bytes;
        let takes = (u128::from(bytes) * 1_000_000_000_000).div_ceil(self.bandwidth.into());
        let begin = self.last.end.max(now);
        self.last = begin..begin + takes as Time;
        self.last.end + self.latency
    }
}

/// Why an access waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Why {
    /// It does not.
    #[default]
    Nothing,
    /// Something else happens before it.
    Early,
    /// Something has to be done first.
    Blocked,
}
