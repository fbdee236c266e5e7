//! Lines through which a host and a core beside far memory meet, with a lock for the host's reads and one for its
//! write-backs.

use std::collections::VecDeque;
use std::fmt;

/// Bytes of a line.
pub const LINE: usize = 128;

/// What is in a line.
pub type Data = [u8; LINE];

/// The kinds of what a host asks of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A read of the line.
    Read,
    /// The line as the host's cache had it.
    WriteBack,
}

/// A request of the host is held at this line, and waits for the core to release it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The line.
    pub line: usize,
    /// What is held.
    pub kind: Kind,
}

/// What goes back to the host. `request` is the number it gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A read, and what was read.
    Read {
        /// Which request.
        request: u64,
        /// The line as it was when the read was answered.
        data: Box<Data>,
    },
    /// A write-back has been stored, and the host need no longer know of it.
    Written {
        /// Which request.
        request: u64,
    },
}

/// When a line was last read and written by others than the core: by the host or the copy engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamps {
    /// The last read.
    pub read: u64,
    /// The last write.
    pub write: u64,
}

/// There is no such line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoLine {
    /// The line that was asked for.
    pub line: usize,
    /// How many there are.
    pub lines: usize,
}

impl fmt::Display for NoLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NoLine { line, lines } = self;
        write!(f, "no line {line}: the scratchpad has {lines}, from 0 on")
    }
}

impl std::error::Error for NoLine {}

#[derive(Clone)]
struct Slot {
    data: Box<Data>,
    stamps: Stamps,
    read_locked: bool,
    write_locked: bool,
    /// Reads that are held, the oldest first.
    reads: VecDeque<u64>,
    /// The write-back that is stored and not acknowledged.
    written: Option<u64>,
    /// What came behind that one, the oldest first, which is a write-back: write-backs, with their lines, have changed nothing so
    /// far, and reads, without, are behind one of these.
    behind: VecDeque<(u64, Option<Box<Data>>)>,
}

/// The lines, and the queue of notices to the core.
///
/// A read of a line that is locked for reads is held until the core releases it, and is answered with the line as it is
/// then. A write-back to a line that is locked for write-backs is stored at once, and its acknowledgement is held until the
/// core releases it; until then no other write-back changes the line, and a read behind that one waits, too: a host finds what
/// it has written back. Each request that is held by a lock makes one notice, so there
/// are never more of these than the host has requests under way. Nothing holds what the core or the copy engine does.
///
/// Times are numbers to it, and `now` must not go back: it is what stamps are made of.
#[derive(Clone)]
pub struct Scratchpad {
    slots: Vec<Slot>,
    notices: VecDeque<Notice>,
}

impl fmt::Debug for Scratchpad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (lines, notices) = (self.slots.len(), self.notices.len());
        write!(f, "{lines} lines, {notices} notices")
    }
}

impl Scratchpad {
    /// So many lines of zeroes, which are not locked.
    pub fn new(lines: usize) -> Scratchpad {
        let slot = Slot {
            data: Box::new([0; LINE]),
            stamps: Stamps::default(),
            read_locked: false,
            write_locked: false,
            reads: VecDeque::new(),
            written: None,
            behind: VecDeque::new(),
        };
        Scratchpad {
            slots: vec![slot; lines],
            notices: VecDeque::new(),
        }
    }

    /// How many lines there are.
    pub fn lines(&self) -> usize {
        self.slots.len()
    }

    fn slot(&mut self, line: usize) -> Result<&mut Slot, NoLine> {
        let lines = self.slots.len();
        self.slots.get_mut(line).ok_or(NoLine { line, lines })
    }

    /// The host reads a line.
    pub fn read(&mut self, line: usize, request: u64, now: u64) -> Result<Option<Answer>, NoLine> {
        let slot = self.slot(line)?;
        if !slot.behind.is_empty() {
            slot.behind.push_back((request, None));
            return Ok(None);
        }
        Ok(self.read_now(line, request, now))
    }

    /// The same, with nothing before it.
    fn read_now(&mut self, line: usize, request: u64, now: u64) -> Option<Answer> {
        let slot = &mut self.slots[line];
        if !slot.read_locked {
            return Some(slot.give(request, now));
        }
        slot.reads.push_back(request);
        let kind = Kind::Read;
        self.notices.push_back(Notice { line, kind });
        None
    }

    /// The host writes a line back.
    pub fn write_back(
        &mut self,
        line: usize,
        request: u64,
        data: &Data,
        now: u64,
    ) -> Result<Option<Answer>, NoLine> {
        let slot = self.slot(line)?;
        if slot.written.is_some() {
            slot.behind.push_back((request, Some(Box::new(*data))));
            return Ok(None);
        }
        slot.put(data, now);
        if !slot.write_locked {
            return Ok(Some(Answer::Written { request }));
        }
        self.holds(line, request);
        Ok(None)
    }

    /// A write-back is stored, and its acknowledgement held.
    fn holds(&mut self, line: usize, request: u64) {
        self.slots[line].written = Some(request);
        let kind = Kind::WriteBack;
        self.notices.push_back(Notice { line, kind });
    }

    /// Requests of this kind that come from now on are held at this line.
    pub fn lock(&mut self, line: usize, kind: Kind) -> Result<(), NoLine> {
        let slot = self.slot(line)?;
        match kind {
            Kind::Read => slot.read_locked = true,
            Kind::WriteBack => slot.write_locked = true,
        }
        Ok(())
    }

    /// Lets the oldest request of this kind go that is held at this line, with the reads that waited for it alone, and keeps the
    /// lock. Where none is held, nothing happens.
    pub fn release(&mut self, line: usize, kind: Kind, now: u64) -> Result<Vec<Answer>, NoLine> {
        let slot = self.slot(line)?;
        if kind == Kind::Read {
            let request = slot.reads.pop_front();
            let answer = request.map(|request| slot.give(request, now));
            return Ok(answer.into_iter().collect());
        }
        let stored = slot.written.take();
        let mut answers: Vec<Answer> = (stored.into_iter())
            .map(|request| Answer::Written { request })
            .collect();
        // The next write-back is stored, and reads up to the one behind it find that.
        let next = self.slots[line].behind.pop_front();
        if let Some((request, Some(data))) = next {
            self.slots[line].put(&data, now);
            self.holds(line, request);
        }
        while let Some((request, None)) = self.slots[line].behind.front() {
            let request = *request;
            self.slots[line].behind.pop_front();
            answers.extend(self.read_now(line, request, now));
        }
        Ok(answers)
    }

    /// Takes the lock away, and lets all requests of this kind go that are held at this line, the oldest first. Notices of
    /// them that the core has not taken are withdrawn.
    pub fn unlock(&mut self, line: usize, kind: Kind, now: u64) -> Result<Vec<Answer>, NoLine> {
        let slot = self.slot(line)?;
        let mut answers = Vec::new();
        match kind {
            Kind::Read => {
                slot.read_locked = false;
                while let Some(request) = slot.reads.pop_front() {
                    answers.push(slot.give(request, now));
                }
            }
            Kind::WriteBack => {
                slot.write_locked = false;
                while self.slots[line].written.is_some() {
                    answers.extend(self.release(line, kind, now)?);
                }
            }
        }
        self.notices
            .retain(|&notice| notice != Notice { line, kind });
        Ok(answers)
    }

    /// The oldest notice that the core has not taken.
    pub fn notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    /// When others than the core last came to this line.
    pub fn stamps(&self, line: usize) -> Option<Stamps> {
        self.slots.get(line).map(|slot| slot.stamps)
    }

    /// The line as the core sees it: at once, whatever is locked.
    pub fn line(&self, line: usize) -> Option<&Data> {
        self.slots.get(line).map(|slot| &*slot.data)
    }

    /// The line for the core to change.
    pub fn line_mut(&mut self, line: usize) -> Option<&mut Data> {
        self.slots.get_mut(line).map(|slot| &mut *slot.data)
    }
}

/// What the copy engine does to lines.
impl Scratchpad {
    /// A line from far memory is there.
    pub(crate) fn fill(&mut self, line: usize, data: &Data, now: u64) {
        if let Some(slot) = self.slots.get_mut(line) {
            slot.put(data, now);
        }
    }

    /// What was in a line is in far memory.
    pub(crate) fn drained(&mut self, line: usize, now: u64) {
        if let Some(slot) = self.slots.get_mut(line) {
            slot.stamps.read = now;
        }
    }
}

impl Slot {
    fn give(&mut self, request: u64, now: u64) -> Answer {
        self.stamps.read = now;
        let data = self.data.clone();
        Answer::Read { request, data }
    }

    fn put(&mut self, data: &Data, now: u64) {
        *self.data = *data;
        self.stamps.write = now;
    }
}
