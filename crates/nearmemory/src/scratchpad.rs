//! The scratchpad: lines that a host and a near-memory core share, each with a lock for the host's reads and one for
//! its write-backs.

use std::collections::VecDeque;
use std::fmt;

/// Bytes of a line.
pub const LINE: usize = 128;

/// Contents of a line.
pub type Data = [u8; LINE];

/// Kind of a host request to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A read.
    Read,
    /// A write-back of the host's cached copy.
    WriteBack,
}

/// Notice to the core that a host request is held at a locked line and waits for its release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Index of the line.
    pub line: usize,
    /// Kind of the held request.
    pub kind: Kind,
}

/// Response to a request of the host. `request` is the number that the host gave to its request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostResponse {
    /// Completion of a read.
    Read {
        /// Number of the request.
        request: u64,
        /// Contents of the line at the time of the response.
        data: Box<Data>,
    },
    /// Acknowledgement of a write-back, which the host may now forget.
    Written {
        /// Number of the request.
        request: u64,
    },
}

/// Times of the last read and write of a line by the host or the copy engine, but not by the core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamps {
    /// Time of the last read by the host, or of the last store of the line to far memory.
    pub read: u64,
    /// Time of the last write-back by the host, or of the last fetch of the line from far memory.
    pub write: u64,
}

/// Error: the line does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoLine {
    /// The requested line.
    pub line: usize,
    /// Number of lines.
    pub lines: usize,
}

impl fmt::Display for NoLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NoLine { line, lines } = self;
        write!(f, "no line {line}: the scratchpad has {lines}, from 0 on")
    }
}

impl std::error::Error for NoLine {}

/// A line with its locks and the requests that they hold.
#[derive(Clone)]
struct Slot {
    data: Box<Data>,
    stamps: Stamps,
    /// True if reads are held.
    read_locked: bool,
    /// True if acknowledgements of write-backs are held.
    write_locked: bool,
    /// Held reads, oldest first.
    held_reads: VecDeque<u64>,
    /// The write-back that is stored but not acknowledged.
    held_write_back: Option<u64>,
    /// Requests behind the held write-back, oldest first, starting with a write-back. Write-backs carry their contents
    /// and are not stored yet. Reads carry none and wait for the write-back before them.
    waiting: VecDeque<(u64, Option<Box<Data>>)>,
}

/// The lines, and the queue of notices to the core.
///
/// A read of a line that is locked for reads is held until the core releases it. The response then carries the line's
/// current contents.
///
/// A write-back to a line that is locked for write-backs is stored at once, and only its acknowledgement is held. Until
/// the release, no other write-back changes the line. A read behind such a write-back waits, so that a host reads its
/// own write-back.
///
/// Each request held by a lock creates one notice, so there are never more notices than outstanding host requests.
/// Accesses of the core and of the copy engine are never held.
///
/// Times are plain numbers. `now` must not decrease; stamps record it.
#[derive(Clone)]
pub struct Scratchpad {
    /// Lines by index.
    slots: Vec<Slot>,
    /// Notices that the core has not taken, oldest first.
    notices: VecDeque<Notice>,
}

impl fmt::Debug for Scratchpad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (lines, notices) = (self.slots.len(), self.notices.len());
        write!(f, "{lines} lines, {notices} notices")
    }
}

impl Scratchpad {
    /// Creates `lines` unlocked lines of zeros.
    pub fn new(lines: usize) -> Scratchpad {
        let slot = Slot {
            data: Box::new([0; LINE]),
            stamps: Stamps::default(),
            read_locked: false,
            write_locked: false,
            held_reads: VecDeque::new(),
            held_write_back: None,
            waiting: VecDeque::new(),
        };
        Scratchpad {
            slots: vec![slot; lines],
            notices: VecDeque::new(),
        }
    }

    /// Returns the number of lines.
    pub fn lines(&self) -> usize {
        self.slots.len()
    }

    /// Returns a line with its locks.
    fn slot(&mut self, line: usize) -> Result<&mut Slot, NoLine> {
        let lines = self.slots.len();
        self.slots.get_mut(line).ok_or(NoLine { line, lines })
    }

    /// Handles a host read. `request` is a number that the response repeats. Returns the response, or `None` if the
    /// read is held.
    pub fn read(
        &mut self,
        line: usize,
        request: u64,
        now: u64,
    ) -> Result<Option<HostResponse>, NoLine> {
        let slot = self.slot(line)?;
        if !slot.waiting.is_empty() {
            slot.waiting.push_back((request, None));
            return Ok(None);
        }
        Ok(self.read_unqueued(line, request, now))
    }

    /// Handles a read without a write-back before it.
    fn read_unqueued(&mut self, line: usize, request: u64, now: u64) -> Option<HostResponse> {
        let slot = &mut self.slots[line];
        if !slot.read_locked {
            return Some(slot.complete_read(request, now));
        }
        slot.held_reads.push_back(request);
        let kind = Kind::Read;
        self.notices.push_back(Notice { line, kind });
        None
    }

    /// Handles a host write-back. `request` is a number that the acknowledgement repeats. Returns the acknowledgement,
    /// or `None` if it is held or the write-back waits behind another one.
    pub fn write_back(
        &mut self,
        line: usize,
        request: u64,
        data: &Data,
        now: u64,
    ) -> Result<Option<HostResponse>, NoLine> {
        let slot = self.slot(line)?;
        if slot.held_write_back.is_some() {
            slot.waiting.push_back((request, Some(Box::new(*data))));
            return Ok(None);
        }
        slot.put(data, now);
        if !slot.write_locked {
            return Ok(Some(HostResponse::Written { request }));
        }
        self.hold_acknowledgement(line, request);
        Ok(None)
    }

    /// Holds the acknowledgement of a stored write-back, and notifies the core.
    fn hold_acknowledgement(&mut self, line: usize, request: u64) {
        self.slots[line].held_write_back = Some(request);
        let kind = Kind::WriteBack;
        self.notices.push_back(Notice { line, kind });
    }

    /// Locks a line: later requests of this kind are held.
    pub fn lock(&mut self, line: usize, kind: Kind) -> Result<(), NoLine> {
        let slot = self.slot(line)?;
        match kind {
            Kind::Read => slot.read_locked = true,
            Kind::WriteBack => slot.write_locked = true,
        }
        Ok(())
    }

    /// Releases the oldest held request of this kind, with the reads that waited only for it, and keeps the lock. Does
    /// nothing if no request is held.
    pub fn release(
        &mut self,
        line: usize,
        kind: Kind,
        now: u64,
    ) -> Result<Vec<HostResponse>, NoLine> {
        let slot = self.slot(line)?;
        if kind == Kind::Read {
            let request = slot.held_reads.pop_front();
            let response = request.map(|request| slot.complete_read(request, now));
            return Ok(response.into_iter().collect());
        }
        let acknowledged = slot.held_write_back.take();
        let mut responses: Vec<HostResponse> = (acknowledged.into_iter())
            .map(|request| HostResponse::Written { request })
            .collect();
        // Store the next write-back; the reads behind it, up to the following write-back, observe it.
        let next = self.slots[line].waiting.pop_front();
        if let Some((request, Some(data))) = next {
            self.slots[line].put(&data, now);
            self.hold_acknowledgement(line, request);
        }
        while let Some((request, None)) = self.slots[line].waiting.front() {
            let request = *request;
            self.slots[line].waiting.pop_front();
            responses.extend(self.read_unqueued(line, request, now));
        }
        Ok(responses)
    }

    /// Removes the lock and releases all held requests of this kind, oldest first. Withdraws their notices that the
    /// core has not taken.
    pub fn unlock(
        &mut self,
        line: usize,
        kind: Kind,
        now: u64,
    ) -> Result<Vec<HostResponse>, NoLine> {
        let slot = self.slot(line)?;
        let mut responses = Vec::new();
        match kind {
            Kind::Read => {
                slot.read_locked = false;
                while let Some(request) = slot.held_reads.pop_front() {
                    responses.push(slot.complete_read(request, now));
                }
            }
            Kind::WriteBack => {
                slot.write_locked = false;
                while self.slots[line].held_write_back.is_some() {
                    responses.extend(self.release(line, kind, now)?);
                }
            }
        }
        self.notices
            .retain(|&notice| notice != Notice { line, kind });
        Ok(responses)
    }

    /// Takes the oldest pending notice; `None` if there is none.
    pub fn take_notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    /// Returns the times of the last external accesses to a line; `None` if the line does not exist.
    pub fn stamps(&self, line: usize) -> Option<Stamps> {
        self.slots.get(line).map(|slot| slot.stamps)
    }

    /// Returns the line as the core sees it, regardless of locks; `None` if the line does not exist.
    pub fn line(&self, line: usize) -> Option<&Data> {
        self.slots.get(line).map(|slot| &*slot.data)
    }

    /// Returns the line for modification by the core, regardless of locks; `None` if the line does not exist.
    pub fn line_mut(&mut self, line: usize) -> Option<&mut Data> {
        self.slots.get_mut(line).map(|slot| &mut *slot.data)
    }
}

/// Operations of the copy engine.
impl Scratchpad {
    /// Stores a line that was fetched from far memory.
    pub(crate) fn fill(&mut self, line: usize, data: &Data, now: u64) {
        if let Some(slot) = self.slots.get_mut(line) {
            slot.put(data, now);
        }
    }

    /// Records that a line has been stored to far memory.
    pub(crate) fn record_store(&mut self, line: usize, now: u64) {
        if let Some(slot) = self.slots.get_mut(line) {
            slot.stamps.read = now;
        }
    }
}

impl Slot {
    /// Stamps the line and returns the response to a read.
    fn complete_read(&mut self, request: u64, now: u64) -> HostResponse {
        self.stamps.read = now;
        let data = self.data.clone();
        HostResponse::Read { request, data }
    }

    /// Writes the line and stamps it.
    fn put(&mut self, data: &Data, now: u64) {
        *self.data = *data;
        self.stamps.write = now;
    }
}
