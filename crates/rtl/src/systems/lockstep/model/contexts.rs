//! Environments of the rows of caches and home, with bytes as data.

use super::{receiver, Data, DeferredWrite, Difference, ExpectedWrite, Flight};
use crate::systems::lockstep::records::{Bytes as Written, PortAccess};
use cohkit_protocol::execute::Act;
use cohkit_protocol::protocol::{Protocol, StateId};
use cohkit_system::agent::{
    Bytes, HomeContext, MemoryOp, OutgoingMessage, RemoteContext, RowContext, RowProblem,
};

/// All bytes of a line.
fn whole(data: u64) -> Written {
    Written {
        data,
        strobe: u8::MAX,
    }
}

/// Environment of a cache's row.
pub(super) struct RemoteRow<'m> {
    /// Data of the lines.
    data: &'m mut Data,
    /// Protocol of the row.
    protocol: &'m Protocol,
    /// Number of the cache.
    agent: usize,
    /// Number of the line.
    line: usize,
    /// Number of the home.
    home: usize,
    /// Acts that are not applied yet.
    acts: std::vec::IntoIter<Act>,
    /// Messages so far.
    pub(super) sends: Vec<Flight>,
    /// Completion of the outstanding access, with the value of a read.
    pub(super) done: Option<Option<u64>>,
    /// True if the row performs a write that begins with it.
    pub(super) performed: bool,
}

impl<'m> RemoteRow<'m> {
    /// Environment of a row of the cache `agent` on `line`.
    pub(super) fn new(
        data: &'m mut Data,
        protocol: &'m Protocol,
        (agent, line, home): (usize, usize, usize),
        acts: Vec<Act>,
    ) -> RemoteRow<'m> {
        RemoteRow {
            data,
            protocol,
            agent,
            line,
            home,
            acts: acts.into_iter(),
            sends: Vec::new(),
            done: None,
            performed: false,
        }
    }

    /// Bytes of the outstanding write.
    fn store(&mut self) -> Result<PortAccess, Difference> {
        let access = self.data.access(self.agent, self.line);
        let access = access.filter(|access| access.port.write);
        Ok(access.ok_or("no write of the line is outstanding")?.port)
    }
}

impl RowContext for RemoteRow<'_> {
    type Copy = Option<u64>;
    type Fields = Vec<u16>;
    type Error = Difference;

    fn next_act(&mut self) -> Option<Act> {
        self.acts.next()
    }

    fn is_current(&self, copy: &Option<u64>) -> bool {
        *copy == self.data.values[self.line].last().copied()
    }

    fn report(&mut self, problem: RowProblem<Option<u64>>) -> Result<(), Difference> {
        Err(problem.violation(self.protocol).description)
    }

    fn send(&mut self, outgoing: OutgoingMessage<Option<u64>>) -> Result<(), Difference> {
        let bytes = match outgoing.bytes {
            Bytes::None => Written::default(),
            Bytes::Line(copy) => whole(copy.ok_or("the cache sends a line that it does not have")?),
            Bytes::Write => self.store()?.bytes,
        };
        self.sends.push(Flight {
            from: self.agent,
            to: receiver(outgoing.to, self.home),
            line: self.line,
            message: outgoing.message,
            fields: outgoing.fields,
            bytes,
        });
        Ok(())
    }
}

impl RemoteContext for RemoteRow<'_> {
    fn write(&mut self, copy: Option<u64>) -> Result<Option<u64>, Difference> {
        self.done = Some(None);
        let port = self.store()?;
        self.data.write_port((self.line, port), copy).map(Some)
    }

    fn write_in_place(&mut self, copy: Option<u64>) -> Result<Option<u64>, Difference> {
        self.performed = true;
        let port = self.store()?;
        self.data.write_port((self.line, port), copy).map(Some)
    }

    fn read(&mut self, copy: &Option<u64>) -> Result<(), Difference> {
        self.done = Some(Some(copy.ok_or("a read completes without data")?));
        Ok(())
    }

    fn complete_sent_write(&mut self, _: Option<&Option<u64>>) -> Result<(), Difference> {
        self.done = Some(None);
        match self.data.access(self.agent, self.line) {
            Some(access) if access.is_performed => Ok(()),
            _ => Err("a write completes that the home has not performed".to_string()),
        }
    }

    fn abandon_write(&mut self) {}

    fn bulk_transition(&mut self, _: StateId, _: StateId) -> Result<(), Difference> {
        Err("the row changes every line".to_string())
    }
}

/// Environment of a home's row.
pub(super) struct HomeRow<'m> {
    /// Data of the lines.
    data: &'m mut Data,
    /// Protocol of the row.
    protocol: &'m Protocol,
    /// Number of the line.
    line: usize,
    /// Number of the home.
    home: usize,
    /// Write of the message, until the row uses it.
    write: Option<DeferredWrite>,
    /// Acts that are not applied yet.
    acts: std::vec::IntoIter<Act>,
    /// Write of the row that memory has to perform.
    written: Option<Written>,
    /// Messages so far.
    pub(super) sends: Vec<Flight>,
    /// True if the row acknowledges the recall of the line.
    pub(super) ends_recall: bool,
}

impl<'m> HomeRow<'m> {
    /// Environment of a row on `line`, whose message carries `write`, if any.
    pub(super) fn new(
        data: &'m mut Data,
        protocol: &'m Protocol,
        (line, home): (usize, usize),
        write: Option<DeferredWrite>,
        acts: Vec<Act>,
    ) -> HomeRow<'m> {
        HomeRow {
            data,
            protocol,
            line,
            home,
            write,
            acts: acts.into_iter(),
            written: None,
            sends: Vec::new(),
            ends_recall: false,
        }
    }

    /// Ends the row: keeps a write that the row has not used, if the home starts stores later, and expects the row's
    /// write in memory.
    pub(super) fn end(&mut self, starts_stores: bool) {
        if let Some(write) = self.write.take().filter(|_| starts_stores) {
            self.data.deferred[self.line] = Some(write);
        }
        if let Some(bytes) = self.written.take() {
            self.data.expected.push_back(ExpectedWrite {
                line: self.line,
                bytes,
                started: None,
            });
        }
    }

    /// Adds bytes to those that the row writes.
    fn add_written(&mut self, bytes: Written) {
        let earlier = self.written.unwrap_or_default();
        self.written = Some(Written {
            data: match self.written {
                Some(earlier) => bytes.merge(earlier.data),
                None => bytes.data,
            },
            strobe: earlier.strobe | bytes.strobe,
        });
    }

    /// Performs a write in memory.
    fn perform(&mut self, write: DeferredWrite) -> Result<(), Difference> {
        let memory = self.data.memory[self.line];
        self.data.memory[self.line] = self.data.write(self.line, Some(memory), write.bytes)?;
        if let Some(access) = self.data.access(write.from, self.line) {
            access.is_performed = true;
        }
        self.add_written(write.bytes);
        Ok(())
    }
}

impl RowContext for HomeRow<'_> {
    type Copy = Option<u64>;
    type Fields = Vec<u16>;
    type Error = Difference;

    fn next_act(&mut self) -> Option<Act> {
        self.acts.next()
    }

    fn is_current(&self, copy: &Option<u64>) -> bool {
        *copy == self.data.values[self.line].last().copied()
    }

    fn report(&mut self, problem: RowProblem<Option<u64>>) -> Result<(), Difference> {
        Err(problem.violation(self.protocol).description)
    }

    fn send(&mut self, outgoing: OutgoingMessage<Option<u64>>) -> Result<(), Difference> {
        let bytes = match outgoing.bytes {
            Bytes::None => Written::default(),
            Bytes::Line(copy) => whole(copy.ok_or("the home sends a line that it does not have")?),
            Bytes::Write => {
                self.write
                    .ok_or("the home sends a write that it does not have")?
                    .bytes
            }
        };
        self.sends.push(Flight {
            from: self.home,
            to: receiver(outgoing.to, self.home),
            line: self.line,
            message: outgoing.message,
            fields: outgoing.fields,
            bytes,
        });
        Ok(())
    }
}

impl HomeContext for HomeRow<'_> {
    fn mark_stale(&self, copy: &Option<u64>) -> Option<u64> {
        *copy
    }

    fn memory(&mut self) -> Option<u64> {
        Some(self.data.memory[self.line])
    }

    fn may_read_memory(&self) -> bool {
        true
    }

    fn set_memory(&mut self, copy: Option<u64>) -> Result<(), Difference> {
        let data = copy.ok_or("memory is written without data")?;
        self.data.memory[self.line] = data;
        self.add_written(whole(data));
        Ok(())
    }

    fn store(&mut self, _: bool) -> Result<(), Difference> {
        let write = self.write.take().ok_or("the message has no write")?;
        self.perform(write)
    }

    fn defer_write(&mut self, _: bool) -> Result<(), Difference> {
        let write = self.write.take().ok_or("the message has no write")?;
        match self.data.deferred[self.line].replace(write) {
            Some(_) => Err("a write is deferred while another one is".to_string()),
            None => Ok(()),
        }
    }

    fn commit_deferred(&mut self) -> Result<(), Difference> {
        let write = self.data.deferred[self.line]
            .take()
            .ok_or("no write is deferred")?;
        self.perform(write)
    }

    fn start(&mut self, operation: MemoryOp<Option<u64>>) -> Result<(), Difference> {
        let (bytes, from) = match operation {
            MemoryOp::Read => {
                self.data.started_read = Some((self.line, None));
                return Ok(());
            }
            MemoryOp::Write(copy) => (whole(copy.ok_or("memory is written without data")?), None),
            MemoryOp::Store { .. } => {
                let write = self.write.take().or(self.data.deferred[self.line].take());
                let write = write.ok_or("the home has no write")?;
                (write.bytes, Some(write.from))
            }
        };
        self.data.expected.push_back(ExpectedWrite {
            line: self.line,
            bytes,
            started: Some(from),
        });
        Ok(())
    }

    fn acknowledge(&mut self, _: u8) -> Result<(), Difference> {
        if self.data.recall.take() != Some(self.line) {
            return Err(
                "the row acknowledges a recall, and none of the line is in progress".to_string(),
            );
        }
        self.ends_recall = true;
        Ok(())
    }

    fn acknowledge_unlock(&mut self) {}
}
