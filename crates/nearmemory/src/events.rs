//! The event queue, and the messages between host and device.

use crate::scratchpad::{Data, LINE};
use cohkit_riscv::Size;
use cohkit_units::Time;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::ops::Range;

/// Identifier of a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CoreId {
    /// A core of a host.
    Host {
        /// Index of the host.
        host: usize,
        /// Index of the core among those of its host.
        core: usize,
    },
    /// A near-memory core, by its index.
    Mcc(usize),
}

impl CoreId {
    /// Returns true if both are the same core, or cores of one host, which share their caches and observe each other.
    pub(crate) fn is_same_agent(self, other: CoreId) -> bool {
        match (self, other) {
            (CoreId::Host { host, .. }, CoreId::Host { host: other, .. }) => host == other,
            _ => self == other,
        }
    }
}

/// Numbers of cores of a machine, which number all cores: those of the hosts, one host after the other, and then the
/// near-memory cores.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CoreCounts {
    /// Hosts.
    pub hosts: usize,
    /// Cores of each host.
    pub host_cores: usize,
    /// Near-memory cores.
    pub mccs: usize,
}

impl CoreCounts {
    /// Returns the number of all cores.
    pub(crate) fn total(self) -> usize {
        self.hosts * self.host_cores + self.mccs
    }

    /// Returns the number of a core.
    pub(crate) fn index(self, core_id: CoreId) -> usize {
        match core_id {
            CoreId::Host { host, core } => host * self.host_cores + core,
            CoreId::Mcc(mcc) => self.hosts * self.host_cores + mcc,
        }
    }

    /// Returns the numbers of a host's cores.
    pub(crate) fn cores_of(self, host: usize) -> Range<usize> {
        host * self.host_cores..(host + 1) * self.host_cores
    }

    /// Returns all cores in the order of their numbers.
    pub(crate) fn ids(self) -> impl Iterator<Item = CoreId> {
        let CoreCounts {
            hosts,
            host_cores,
            mccs,
        } = self;
        let host_ids =
            (0..hosts).flat_map(move |host| (0..host_cores).map(move |core| (host, core)));
        let host_ids = host_ids.map(|(host, core)| CoreId::Host { host, core });
        host_ids.chain((0..mccs).map(CoreId::Mcc))
    }
}

/// Request of a host to the device. Addresses are those of the host; words are far memory's or registers'.
#[derive(Clone, Debug)]
pub(crate) enum Request {
    /// Read of the line at this address.
    ReadLine(u64),
    /// Write-back of the line at this address.
    WriteLine(u64, Box<Data>),
    /// Uncached load at this address.
    ReadWord(u64, Size),
    /// Uncached store of a value at this address.
    WriteWord(u64, Size, u64),
}

impl Request {
    /// Returns the number of data bytes that the request carries.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Request::ReadLine(_) | Request::ReadWord(..) => 0,
            Request::WriteLine(..) => LINE as u64,
            Request::WriteWord(..) => 8,
        }
    }
}

/// Response of the device to a host.
#[derive(Clone, Debug)]
pub(crate) enum Response {
    /// Contents of the line, for a line read.
    Line(Box<Data>),
    /// Loaded value, zero-extended.
    Word(u64),
    /// Acknowledgement of a write-back or an uncached store.
    Written,
}

impl Response {
    /// Returns the number of data bytes that the response carries.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Response::Line(_) => LINE as u64,
            Response::Word(_) => 8,
            Response::Written => 0,
        }
    }
}

/// Access of a copy engine to a host's own memory: a line to store there, or to read.
#[derive(Clone, Debug)]
pub(crate) struct HostMemoryRequest {
    /// Index of the host.
    pub host: usize,
    /// Index of the core that owns the copy engine.
    pub mcc: usize,
    /// Number of the access, as given by the copy engine.
    pub number: u64,
    /// Address of the line in host memory.
    pub address: u64,
    /// True for a store to host memory.
    pub stores: bool,
    /// Contents to store; for a read, filled in when host memory is accessed.
    pub data: Box<Data>,
}

impl HostMemoryRequest {
    /// Returns the data bytes that go to the host, and those that return.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        let line = LINE as u64;
        if self.stores {
            (line, 0)
        } else {
            (0, line)
        }
    }
}

/// A scheduled event. Numbers of requests and responses are those of the hosts' outstanding requests.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// Turn of a core.
    CoreTurn(CoreId),
    /// A request arrives at its destination in the device.
    RequestArrival(u64, Request),
    /// The device takes an access to a register that has waited for those of other hosts.
    RegisterAccess(u64, Request),
    /// Far memory answers a read of a slice of the directory.
    FarReadCompletion(usize),
    /// Far memory's DRAM issues commands, if it has a scheduler.
    DramTurn,
    /// A response arrives at the device's end of the link.
    ResponseDeparture(u64, Response),
    /// A response arrives at its host.
    ResponseArrival(u64, Response),
    /// Turn of a channel of a core's copy engine, which issues its next line: the core, and the channel.
    CopyTurn(usize, usize),
    /// An access of a copy engine completes at its core.
    CopyCompletion(usize, u64, Box<Data>),
    /// A copy engine's access to host memory arrives at the device's end of the link.
    HostAccessDeparture(HostMemoryRequest),
    /// A copy engine's access arrives at host memory.
    HostAccessArrival(HostMemoryRequest),
    /// A response of host memory arrives at the host's end of the link.
    HostAccessResponse(HostMemoryRequest),
    /// A binary is loaded into private memory: the core, and the number of the load.
    LoadCompletion(usize, u64),
    /// A word arrives at the end of the FIFO from the first core to the second one.
    WordArrival(usize, usize),
}

impl Event {
    /// True if the event changes no state that a core may read: turns of cores and of DRAM, and reads of hosts.
    pub(crate) fn is_read_only(&self) -> bool {
        use Event::*;
        match self {
            CoreTurn(_)
            | FarReadCompletion(_)
            | DramTurn
            | RequestArrival(_, Request::ReadLine(_) | Request::ReadWord(..))
            | RegisterAccess(_, Request::ReadWord(..)) => true,
            ResponseDeparture(_, response) | ResponseArrival(_, response) => {
                !matches!(response, Response::Written)
            }
            _ => false,
        }
    }
}

/// An event in the queue.
struct Entry {
    /// Time of the event, in picoseconds.
    time: Time,
    /// Sequence number of insertion, which orders events of the same time.
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
        // `BinaryHeap` returns its greatest entry first.
        (other.time, other.number).cmp(&(self.time, self.number))
    }
}

/// Events in order of time; events at the same time keep the order of insertion.
#[derive(Default)]
pub(crate) struct Queue {
    /// Pending events, the earliest on top.
    heap: BinaryHeap<Entry>,
    /// Number of events added so far.
    added: u64,
}

impl Queue {
    /// Schedules an event at a time in picoseconds.
    pub(crate) fn add(&mut self, time: Time, event: Event) {
        let number = self.added;
        self.added += 1;
        self.heap.push(Entry {
            time,
            number,
            event,
        });
    }

    /// Removes the earliest event and returns it with its time; `None` if the queue is empty.
    pub(crate) fn next(&mut self) -> Option<(Time, Event)> {
        let entry = self.heap.pop()?;
        Some((entry.time, entry.event))
    }

    /// True if an event satisfies the predicate.
    pub(crate) fn any(&self, predicate: impl Fn(&Event) -> bool) -> bool {
        self.heap.iter().any(|entry| predicate(&entry.event))
    }

    /// Returns the time of the next event; `Time::MAX` if there is none.
    #[inline(always)]
    pub(crate) fn next_event_time(&self) -> Time {
        self.heap.peek().map_or(Time::MAX, |entry| entry.time)
    }
}

/// One direction of the link, which carries one message at a time.
#[derive(Clone, Debug)]
pub(crate) struct Wire {
    /// Transmission interval of the last message, in picoseconds.
    pub(crate) last: Range<Time>,
    /// Latency from the end of transmission to arrival, in picoseconds.
    latency: Time,
    /// Bandwidth in bytes per second.
    bandwidth: u64,
    /// Bytes of a message header, which each message has.
    header: u64,
    /// Number of messages so far.
    pub(crate) messages: u64,
    /// Bytes of these messages, with headers.
    pub(crate) bytes: u64,
}

impl Wire {
    /// Creates an idle wire; units are those of the fields.
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

    /// Transmits a message with `bytes` bytes of data that is ready at `now`. Returns its arrival time. Messages wait
    /// for earlier ones, and arrive in their order: streams of lines rely on this (`nearmemory/stream.h`).
    pub(crate) fn carry(&mut self, now: Time, bytes: u64) -> Time {
        let bytes = bytes + self.header;
        self.messages += 1;
        self.bytes += bytes;
        let transmission_time =
            (u128::from(bytes) * 1_000_000_000_000).div_ceil(self.bandwidth.into());
        let begin = self.last.end.max(now);
        self.last = begin..begin + transmission_time as Time;
        self.last.end + self.latency
    }
}

/// Reason for which an access waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum StallReason {
    /// The access does not wait.
    #[default]
    Nothing,
    /// Another event must happen first.
    Early,
    /// A resource is busy or a response is outstanding.
    Blocked,
    /// The access is to be tried again at this time, in picoseconds.
    Until(Time),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages arrive in the order in which they are sent, whatever their sizes and times.
    #[test]
    fn messages_of_a_wire_arrive_in_order() {
        let (mut wire, mut now, mut last_arrival, mut random) =
            (Wire::new(90_000, 1 << 33, 8), 0, 0, 1_u64);
        for _ in 0..10_000 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            now += random >> 50;
            let bytes = [0, 8, 128][(random >> 40) as usize % 3];
            let arrival = wire.carry(now, bytes);
            assert!(arrival > last_arrival && arrival > now + 90_000);
            last_arrival = arrival;
        }
    }
}
