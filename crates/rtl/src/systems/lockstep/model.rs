//! The executable model of a system, which follows the steps of the hardware.

use super::records::{Bits, Bytes, PortAccess, Record, StepRecord};
use crate::agents::layout::{bits, Agent, Agents};
use crate::systems::directory::{Directory, Entries};
use crate::systems::operations::{row_without_atomics, Operation};
use crate::systems::queues::Queues;
use crate::systems::sizes::Sizes;
use cohkit_base::words::counted;
use cohkit_protocol::controller::{Access, Controller, Event};
use cohkit_protocol::execute::{Act, Configuration, Machine, Outcome, Receiver, Trigger};
use cohkit_protocol::protocol::{MessageId, Permission, StateId};
use cohkit_protocol::rows::{event_words, fault_words};
use cohkit_system::agent::{home, remote, HomeInput};
use cohkit_system::plan::{hits, ProtocolFacts};
use std::collections::VecDeque;

mod contexts;
mod recalls;
mod replacement;
mod words;

use contexts::{HomeRow, RemoteRow};
use replacement::Policy;
use words::{copy_words, end_words, writes_words};

/// Bits of a line's number in the test bench.
const LINE_BITS: u32 = 3;
/// Number of lines in the test bench.
const LINES: usize = 1 << LINE_BITS;

/// Difference between hardware and model.
pub type Difference = String;

/// A message in flight.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Flight {
    /// Sender; the home has the number after the last cache.
    from: usize,
    /// Receiver.
    to: usize,
    /// Number of the line.
    line: usize,
    /// Message type.
    message: MessageId,
    /// Values of its fields.
    fields: Vec<u16>,
    /// Bytes of the line or of a write; none without data.
    bytes: Bytes,
}

/// An outstanding access of a cache.
#[derive(Clone, Copy, Debug)]
struct Outstanding {
    /// Access at the port.
    port: PortAccess,
    /// Number of writes to the line when it began.
    writes_before: usize,
    /// True if the home has performed its write.
    is_performed: bool,
}

/// A write that the home has kept.
#[derive(Clone, Copy, Debug)]
struct DeferredWrite {
    /// Cache that has sent it.
    from: usize,
    /// Its bytes.
    bytes: Bytes,
}

/// A write that memory has to perform.
#[derive(Clone, Copy, Debug)]
struct ExpectedWrite {
    /// Number of the line.
    line: usize,
    /// Written bytes.
    bytes: Bytes,
    /// For a write that the home has started: the cache whose store it is, if it is one.
    started: Option<Option<usize>>,
}

/// State of the lines, apart from the agents.
struct Data {
    /// Contents of memory, by line.
    memory: Vec<u64>,
    /// Copies of each cache, by line; none without a copy.
    copies: Vec<Vec<Option<u64>>>,
    /// Values of each line after each write; the last one is current.
    values: Vec<Vec<u64>>,
    /// Outstanding accesses of each cache, in the order in which its port has taken them.
    accesses: Vec<Vec<Outstanding>>,
    /// Write that the home has kept for each line.
    deferred: Vec<Option<DeferredWrite>>,
    /// Writes that memory has not performed yet.
    expected: VecDeque<ExpectedWrite>,
    /// Data of the read that the home has started: line, and the value once memory has returned it.
    started_read: Option<(usize, Option<u64>)>,
    /// Line for which the home keeps the next free directory entry of its set.
    waiting: Option<usize>,
    /// Line that the home has chosen to recall.
    victim: Option<usize>,
    /// Line that the home recalls.
    recall: Option<usize>,
}

impl Data {
    /// First outstanding access of a cache to a line. Accesses to one line are performed in order.
    fn access(&mut self, agent: usize, line: usize) -> Option<&mut Outstanding> {
        let mut accesses = self.accesses[agent].iter_mut();
        accesses
            .find(|access| access.port.line == line && access.port.operation != Operation::Fence)
    }

    /// Performs the write of a port's access on a copy. The copy must be current, unless all bytes are replaced.
    fn write_port(
        &mut self,
        (line, port): (usize, PortAccess),
        copy: Option<u64>,
    ) -> Result<u64, Difference> {
        if port.operation.is_atomic() && copy != self.values[line].last().copied() {
            return Err(format!(
                "an atomic operation is performed on the copy {}",
                copy_words(copy)
            ));
        }
        self.write(line, copy, port.written(copy.unwrap_or(0)))
    }

    /// Performs a write on a copy, which must be current. Returns the new copy.
    fn write(&mut self, line: usize, copy: Option<u64>, bytes: Bytes) -> Result<u64, Difference> {
        let current = self.values[line].last().copied();
        if bytes.strobe != u8::MAX && copy != current {
            return Err(format!(
                "a write is performed on the copy {}; the last value is {}",
                copy_words(copy),
                copy_words(current)
            ));
        }
        let value = bytes.merge(copy.unwrap_or(0));
        self.values[line].push(value);
        Ok(value)
    }
}

/// The model of a system.
pub struct Model<'a> {
    /// Agents of the protocol.
    agents: &'a Agents<'a>,
    /// Directory of the home, and its size if it is set-associative.
    directory: (Directory, Entries),
    /// Queues of the network.
    queues: Queues,
    /// Analysis of the protocol.
    facts: ProtocolFacts,
    /// Executors of rows: of the caches, and of the home.
    machines: [Machine<'a>; 2],
    /// State and variables of each agent, by line.
    configurations: Vec<Vec<Configuration>>,
    /// Messages in flight, in the order in which they were sent.
    flights: Vec<Flight>,
    /// Data of the lines.
    data: Data,
    /// Replacement policy of each cache.
    policies: Vec<Policy>,
    /// Rows that were executed: of the caches' table, and of the home's.
    pub covered: [Vec<bool>; 2],
    /// Number of records.
    pub records: u64,
    /// Number of messages that were received.
    pub messages: u64,
    /// Number of reads whose bytes were compared with a write.
    pub reads: u64,
    /// Number of atomic operations, and of those that have written nothing.
    pub atomics: [u64; 2],
    /// Number of fences and of flushes.
    pub finished: [u64; 2],
    /// Number of accesses that were answered before an earlier one of their cache.
    pub overtaking: u64,
    /// Number of lines that replacement policies have evicted.
    pub evictions: u64,
    /// Number of recalls that ended.
    pub recalls: u64,
    /// Duration of the longest access, in cycles; known after the last record.
    pub longest_access: u64,
    /// True after the last record.
    pub is_complete: bool,
}

impl<'a> Model<'a> {
    /// Creates the model in its initial state.
    pub fn new(agents: &'a Agents<'a>, directory: (Directory, Entries), sizes: Sizes) -> Model<'a> {
        let remote = &agents.protocol.remote;
        let machines = [
            Machine::new(remote, agents.remotes),
            Machine::new(agents.home, agents.remotes),
        ];
        let total = usize::from(agents.total());
        let initial = |agent: usize| initial(agents, &machines, agent);
        let policy = Policy::new(sizes.replacement, (sizes.set_width, sizes.ways));
        let memory: Vec<u64> = (0..LINES as u64)
            .map(|line| line * 0x0101_0101_0101_0101)
            .collect();
        Model {
            directory,
            queues: Queues::new(agents.protocol),
            facts: ProtocolFacts::new(agents.protocol, agents.home),
            configurations: (0..=total)
                .map(|agent| vec![initial(agent); LINES])
                .collect(),
            flights: Vec::new(),
            data: Data {
                values: memory.iter().map(|value| vec![*value]).collect(),
                memory,
                copies: vec![vec![None; LINES]; total],
                accesses: vec![Vec::new(); total],
                deferred: vec![None; LINES],
                expected: VecDeque::new(),
                started_read: None,
                waiting: None,
                victim: None,
                recall: None,
            },
            policies: vec![policy; total],
            covered: [
                vec![false; remote.rules.len()],
                vec![false; agents.home.rules.len()],
            ],
            records: 0,
            messages: 0,
            reads: 0,
            atomics: [0; 2],
            finished: [0; 2],
            overtaking: 0,
            evictions: 0,
            recalls: 0,
            longest_access: 0,
            is_complete: false,
            machines,
            agents,
        }
    }

    /// Follows a record of the hardware.
    ///
    /// # Errors
    /// The first difference.
    pub fn follow(&mut self, record: Record) -> Result<(), Difference> {
        self.records += 1;
        match record {
            Record::Step(step) => {
                let (agent, line) = (step.agent, step.line);
                let event = self.agents.events.get(step.event).copied();
                let event = event.ok_or("an event has no number")?;
                self.step(step, event)
                    .and_then(|()| self.check_permissions(line))
                    .map_err(|difference| {
                        let words = event_words(self.agents.protocol, self.agents.home, event);
                        format!("{}, line {line}, {words}: {difference}", self.name(agent))
                    })
            }
            Record::Hit {
                agent,
                line,
                result,
                tag,
            } => self.hit(agent, line, (tag, result)).map_err(|difference| {
                let name = self.name(agent);
                format!("{name}, access to line {line} without a row: {difference}")
            }),
            Record::Use {
                agent,
                set,
                way,
                evicts,
            } => self.use_way(agent, (set, way), evicts),
            Record::Finish {
                agent,
                line,
                tag,
                error,
            } => self.finish(agent, line, (tag, error)),
            Record::Request { agent, access } => self.request(agent, access),
            Record::Memory {
                write: true,
                line,
                bytes,
                ..
            } => self.memory_write(line, bytes),
            Record::Memory { line, result, .. } => self.memory_read(line, result),
            Record::Unexpected { agent, line, event } => {
                let event = self.agents.events.get(event).copied();
                let words =
                    event.map(|event| event_words(self.agents.protocol, self.agents.home, event));
                let words = words.unwrap_or_default();
                Err(format!(
                    "{}, line {line}: {words} has no row, or needs an entry that the cache has not",
                    self.name(agent)
                ))
            }
            Record::Waiting(line) => self.keep_entry(line),
            Record::Victim { line, victim } => self.choose_victim(line, victim),
            Record::Failed(agent) => Err(format!("{} signals `unexpected_o`", self.name(agent))),
            Record::NoProgress(agent) => {
                Err(format!("{}: an access makes no progress", self.name(agent)))
            }
            Record::End { longest_access } => {
                self.longest_access = longest_access;
                self.end()
            }
        }
    }

    /// State and variables of an agent before the first event of a line.
    fn initial(&self, agent: usize) -> Configuration {
        initial(self.agents, &self.machines, agent)
    }

    /// Number of the home.
    fn home(&self) -> usize {
        self.agents.total().into()
    }

    /// The agent with this number, as printed.
    fn agent(&self, agent: usize) -> &'a Agent {
        if agent == self.home() {
            return &self.agents.agents[0];
        }
        let (kind, _) = self.agents.remotes.kind(agent as u16);
        let kind = &self.agents.protocol.kinds[kind.index()];
        let mut remotes = self.agents.agents[1..].iter();
        let found = remotes.find(|agent| agent.states.start == kind.initial.index());
        found.unwrap_or(&self.agents.agents[0])
    }

    /// A processor port takes an access.
    fn request(&mut self, agent: usize, mut port: PortAccess) -> Result<(), Difference> {
        if port.operation.is_atomic() {
            (port.write, port.uncached) = (true, false);
        }
        let outstanding = Outstanding {
            port,
            writes_before: self.data.values[port.line].len() - 1,
            is_performed: false,
        };
        let accesses = &mut self.data.accesses[agent];
        if accesses.iter().any(|other| other.port.tag == port.tag) {
            return Err(format!(
                "{} takes a second access with the tag {}",
                self.name(agent),
                port.tag
            ));
        }
        accesses.push(outstanding);
        Ok(())
    }

    /// First outstanding access of a cache to a line, and its event by the rows that the table has.
    fn port_access(
        &mut self,
        agent: usize,
        line: usize,
    ) -> Result<(Outstanding, Access), Difference> {
        let outstanding = self.data.access(agent, line).copied();
        let outstanding =
            outstanding.ok_or_else(|| format!("no access to line {line} is outstanding"))?;
        let port = outstanding.port;
        let events = &self.agent(agent).events;
        let candidates: &[Access] = match (port.write, port.uncached, port.bytes.strobe == u8::MAX)
        {
            (false, false, _) => &[Access::Load],
            (false, true, _) => &[Access::ReadOnce, Access::Load],
            (true, false, _) => &[Access::Store],
            (true, true, false) => &[Access::WritePartial, Access::Store],
            (true, true, true) => &[Access::WriteLine, Access::WritePartial, Access::Store],
        };
        let mut candidates = candidates.iter().copied();
        let access = candidates.find(|access| events.contains(&Event::Access(*access)));
        Ok((outstanding, access.ok_or("the table has no such access")?))
    }

    /// A cache performs an access to a line in its copy, without a row, and answers with this tag and result.
    fn hit(
        &mut self,
        agent: usize,
        line: usize,
        (tag, result): (u8, u64),
    ) -> Result<(), Difference> {
        let (outstanding, access) = self.port_access(agent, line)?;
        let state = usize::from(self.configurations[agent][line].state);
        if !hits(&self.agents.protocol.remote, state, access) {
            return Err("the state does not permit it, or has a row for it".to_string());
        }
        let copy = self.data.copies[agent][line];
        let port = outstanding.port;
        if !port.write || port.operation.is_atomic() {
            self.check_result(line, copy, result)?;
        }
        if port.write {
            let written = self.data.write_port((line, port), copy)?;
            self.data.copies[agent][line] = Some(written);
        }
        self.end_access(agent, line, port.write, tag)?;
        Ok(())
    }

    /// Checks the result of a read in the cache's own copy.
    fn check_result(
        &mut self,
        line: usize,
        copy: Option<u64>,
        result: u64,
    ) -> Result<(), Difference> {
        self.reads += 1;
        let current = self.data.values[line].last().copied();
        match copy == Some(result) && copy == current {
            true => Ok(()),
            false => Err(format!(
                "a read of line {line} returns {result:x}; the copy is {}, the last value {}",
                copy_words(copy),
                copy_words(current)
            )),
        }
    }

    /// Executes the row of a step, and compares its effects.
    fn step(&mut self, mut record: StepRecord, event: Event) -> Result<(), Difference> {
        let (agent, line) = (record.agent, record.line);
        let (fields, flight) = match event {
            Event::Message(message) => {
                let fields = read_fields(&mut record.fields, self.agents, message);
                let flight = self.receive(&record, message, fields.clone())?;
                self.messages += 1;
                (fields, Some(flight))
            }
            _ => (Vec::new(), None),
        };
        let index = usize::from(agent == self.home());
        let controller: &Controller = [&self.agents.protocol.remote, self.agents.home][index];
        let trigger = Trigger {
            event,
            sender: record.sender.checked_sub(1),
            executing_remote: (index == 0).then_some(agent as u16),
            home: 0,
            fields: &fields,
        };
        let mut next = self.configurations[agent][line].clone();
        let outcome = self.machines[index].step(&mut next, trigger, &mut &*controller);
        let (rule, acts) = match outcome {
            Ok(Outcome::Taken { rule, acts }) => (rule, acts),
            Ok(Outcome::Unexpected) => return Err("the table has no row".to_string()),
            Ok(Outcome::Stall | Outcome::Refuse) => {
                return Err("the row of the table does not take the event".to_string())
            }
            Err(error) => {
                let (name, messages) = (self.name(agent), &self.agents.protocol.messages);
                return Err(fault_words(&name, messages, controller, &error.fault));
            }
        };
        self.covered[index][rule] = true;
        self.check_configuration(&mut record, &next)?;
        let (sends, ends_recall) = match index {
            0 => (
                self.remote_row(&record, event, flight.as_ref(), rule, acts)?,
                false,
            ),
            _ => self.home_row(&record, event, flight.as_ref(), acts)?,
        };
        let before = std::mem::replace(&mut self.configurations[agent][line], next);
        self.check_directory(line)?;
        if index == 1 {
            self.take_entry(line, &before)?;
        }
        self.check_sends(&mut record, sends)?;
        match ends_recall {
            true => self.end_recall(line),
            false => Ok(()),
        }
    }

    /// Removes the message of a step from those in flight.
    fn receive(
        &mut self,
        record: &StepRecord,
        message: MessageId,
        fields: Vec<u16>,
    ) -> Result<Flight, Difference> {
        let protocol = self.agents.protocol;
        let from = match record.sender.checked_sub(1) {
            Some(remote) => remote.into(),
            None => self.home(),
        };
        let carries = protocol.message(message).carries;
        let received = Flight {
            from,
            to: record.agent,
            line: record.line,
            message,
            fields,
            bytes: match carries.line() || carries.store() {
                true => record.bytes,
                false => Bytes::default(),
            },
        };
        let queue = self.queues.of(protocol, message);
        let same_queue = |flight: &Flight| {
            (flight.from, flight.to) == (from, record.agent)
                && self.queues.of(protocol, flight.message) == queue
        };
        let found = match self.queues.queues[queue].ordered {
            true => self
                .flights
                .iter()
                .position(same_queue)
                .filter(|&at| self.flights[at] == received),
            false => self.flights.iter().position(|flight| *flight == received),
        };
        match found {
            Some(at) => Ok(self.flights.remove(at)),
            None => Err(format!(
                "the message is not in flight, or overtakes another: {}",
                self.flight_words(&received)
            )),
        }
    }

    /// Compares state and variables after a row.
    fn check_configuration(
        &self,
        record: &mut StepRecord,
        next: &Configuration,
    ) -> Result<(), Difference> {
        let agent = self.agent(record.agent);
        let machine = &self.machines[usize::from(agent.is_home)];
        let variables = &self.agents.controller(agent).variables;
        let mut printed = next.clone();
        printed.state = record.state + agent.states.start as u16;
        for variable in agent.variables.iter().rev() {
            let width = self.agents.width(variables[variable.index()].ty);
            for slot in machine.slots(variable.0) {
                printed.slots[slot] = record.variables.read(width) as u16;
            }
        }
        match printed == *next {
            true => Ok(()),
            false => Err(format!(
                "state and variables are {}; the row leads to {}",
                self.configuration_words(agent, &printed),
                self.configuration_words(agent, next)
            )),
        }
    }

    /// Applies a row of a cache. Returns the messages that it sends.
    fn remote_row(
        &mut self,
        record: &StepRecord,
        event: Event,
        flight: Option<&Flight>,
        rule: usize,
        acts: Vec<Act>,
    ) -> Result<Vec<Flight>, Difference> {
        let (agent, line) = (record.agent, record.line);
        let plan = self.agent(agent).plans[rule];
        if let Event::Access(access) = event {
            if access != Access::Evict {
                let (_, requested) = self.port_access(agent, line)?;
                if requested != access {
                    let word = requested.name();
                    return Err(format!("the access of the port is `{word}`"));
                }
            }
        }
        let carries_line =
            |flight: &&Flight| self.agents.protocol.message(flight.message).carries.line();
        let carried = flight
            .filter(carries_line)
            .map(|flight| Some(flight.bytes.data));
        let own = self.data.copies[agent][line];
        let base = carried.unwrap_or(own);
        let current = self.data.values[line].last().copied();
        let (home, protocol) = (self.home(), self.agents.protocol);
        let mut row = RemoteRow::new(&mut self.data, protocol, (agent, line, home), acts);
        let copy = remote(&self.facts, &plan.effects, own, carried, &mut row)?;
        let (sends, done, performed) = (row.sends, row.done, row.performed || plan.reads);
        self.data.copies[agent][line] = copy;
        if performed != record.perform || done.is_some() != record.done {
            return Err(format!(
                "the cache {}; the row {}",
                end_words(record.perform, record.done),
                end_words(performed, done.is_some())
            ));
        }
        if !performed && done.is_none() {
            return Ok(sends);
        }
        let is_read = plan.reads || matches!(done, Some(Some(_)));
        let access = self.end_access(agent, line, !is_read, record.tag)?;
        if plan.reads {
            self.check_result(line, base, record.result)?;
        }
        if access.port.operation.is_atomic() && current != Some(record.result) {
            return Err(format!(
                "an atomic operation returns {:x}; the last value is {}",
                record.result,
                copy_words(current)
            ));
        }
        if let Some(Some(value)) = done {
            self.reads += 1;
            let values = &self.data.values[line][access.writes_before..];
            if value != record.result || !values.contains(&value) {
                return Err(format!(
                    "a read returns {:x}, and the row {value:x}; {} written since its start",
                    record.result,
                    counted(values.len() as u64 - 1, "value")
                ));
            }
        }
        Ok(sends)
    }

    /// Ends the first outstanding access of a cache to a line, which must be a read or a write with this tag.
    fn end_access(
        &mut self,
        agent: usize,
        line: usize,
        write: bool,
        tag: u8,
    ) -> Result<Outstanding, Difference> {
        let words = |write: bool, tag: u8| {
            let kind = if write { "write" } else { "read" };
            format!("a {kind} of line {line} with the tag {tag}")
        };
        let is_fence = |access: &&Outstanding| access.port.operation == Operation::Fence;
        let mut accesses = self.data.accesses[agent].iter();
        let Some(at) = accesses.position(|access| access.port.line == line && !is_fence(&access))
        else {
            let ended = words(write, tag);
            return Err(format!("{ended} ends, and none is outstanding"));
        };
        if self.data.accesses[agent][..at]
            .iter()
            .any(|access| is_fence(&access))
        {
            return Err(format!("{} ends before a fence", words(write, tag)));
        }
        let access = self.data.accesses[agent].remove(at);
        self.overtaking += u64::from(at > 0);
        if access.port.operation.is_atomic() {
            let values = &self.data.values[line];
            let is_unchanged =
                values.len() > 1 && values[values.len() - 1] == values[values.len() - 2];
            self.atomics[0] += 1;
            self.atomics[1] += u64::from(is_unchanged);
        }
        match (access.port.write, access.port.tag) == (write, tag) {
            true => Ok(access),
            false => Err(format!(
                "{} ends, and {} is outstanding",
                words(write, tag),
                words(access.port.write, access.port.tag)
            )),
        }
    }

    /// A fence or a flush of a line ends, or an operation is refused.
    fn finish(
        &mut self,
        agent: usize,
        line: usize,
        (tag, error): (u8, bool),
    ) -> Result<(), Difference> {
        let name = self.name(agent);
        let mut accesses = self.data.accesses[agent].iter();
        let Some(at) = accesses.position(|access| access.port.tag == tag) else {
            return Err(format!("{name} ends an operation with the tag {tag}"));
        };
        let access = self.data.accesses[agent].remove(at);
        let earlier = &self.data.accesses[agent][..at];
        let is_earlier = |other: &Outstanding| match access.port.operation {
            Operation::Fence => true,
            _ => other.port.line == line || other.port.operation == Operation::Fence,
        };
        if earlier.iter().any(is_earlier) {
            return Err(format!(
                "{name} ends a {:?} before an earlier access",
                access.port.operation
            ));
        }
        let is_refused = access.port.operation.is_atomic()
            && row_without_atomics(self.agents, self.agent(agent)).is_some();
        if is_refused != error {
            let refuses = if error { "refuses" } else { "does not refuse" };
            return Err(format!("{name} {refuses} a {:?}", access.port.operation));
        }
        match access.port.operation {
            _ if error => Ok(()),
            Operation::Fence => {
                self.finished[0] += 1;
                Ok(())
            }
            Operation::Flush if self.configurations[agent][line] == self.initial(agent) => {
                self.finished[1] += 1;
                Ok(())
            }
            Operation::Flush => Err(format!("{name} ends a flush of line {line}, which it has")),
            operation => Err(format!("{name} ends a {operation:?} without performing it")),
        }
    }

    /// Applies a row of the home. Returns the messages that it sends, and true if it ends a recall.
    fn home_row(
        &mut self,
        record: &StepRecord,
        event: Event,
        flight: Option<&Flight>,
        acts: Vec<Act>,
    ) -> Result<(Vec<Flight>, bool), Difference> {
        let carries = flight.map(|flight| self.agents.protocol.message(flight.message).carries);
        let mut carried = match (flight, carries) {
            (Some(flight), Some(carries)) if carries.line() => Some(Some(flight.bytes.data)),
            _ => None,
        };
        match event {
            Event::MemoryData(_) => match self.data.started_read.take() {
                Some((line, Some(value))) if line == record.line => carried = Some(Some(value)),
                Some((line, None)) => {
                    return Err(format!("memory has returned no data of line {line}"))
                }
                Some((line, Some(_))) => {
                    return Err(format!("the data of memory are those of line {line}"))
                }
                None => return Err("the home has started no read".to_string()),
            },
            Event::Local(_) => self.begin_recall(record.line)?,
            Event::MemoryDone
                if self
                    .data
                    .expected
                    .iter()
                    .any(|write| write.started.is_some()) =>
            {
                return Err("memory has not performed the write".to_string());
            }
            _ => {}
        }
        let write = match (flight, carries) {
            (Some(flight), Some(carries)) if carries.store() => Some(DeferredWrite {
                from: flight.from,
                bytes: flight.bytes,
            }),
            _ => None,
        };
        let (home_number, protocol) = (self.home(), self.agents.protocol);
        let mut row = HomeRow::new(
            &mut self.data,
            protocol,
            (record.line, home_number),
            write,
            acts,
        );
        let input = HomeInput {
            message: flight.map(|flight| flight.message),
            carried_copy: carried.as_ref(),
        };
        home(&self.facts, input, &mut row)?;
        row.end(self.facts.slot);
        Ok((row.sends, row.ends_recall))
    }

    /// Compares the messages that a row sends, and puts them in flight.
    fn check_sends(
        &mut self,
        record: &mut StepRecord,
        expected: Vec<Flight>,
    ) -> Result<(), Difference> {
        let agents = self.agents;
        let mut printed = Vec::new();
        for _ in 0..self.agent(record.agent).sends {
            // Members of `send_t`, from the lowest.
            record.sends.read(1 + 2);
            record.sends.read(fields_width(agents));
            let to_remotes = record.sends.read(agents.total().into());
            let to_home = record.sends.read(1);
            record.sends.read(agents.event_bits());
            // Members of `message_t`.
            let strobe = record.messages.read(8) as u8;
            let data = record.messages.read(64);
            let mut fields = record.messages.clone();
            record.messages.read(fields_width(agents));
            let line = record.messages.read(LINE_BITS) as usize;
            let sender = record.messages.read(agents.remote_bits()) as usize;
            let event = agents
                .events
                .get(record.messages.read(agents.event_bits()) as usize);
            let receivers = (0..=self.home()).filter(|&to| match to == self.home() {
                true => to_home == 1,
                false => to_remotes >> to & 1 == 1,
            });
            let mut receivers: Vec<usize> = receivers.collect();
            receivers.sort_by_key(|&to| to != self.home());
            if receivers.is_empty() {
                continue;
            }
            let Some(&Event::Message(message)) = event else {
                return Err("it sends something that is no message".to_string());
            };
            let values = read_fields(&mut fields, agents, message);
            let carries = agents.protocol.message(message).carries;
            for to in receivers {
                printed.push(Flight {
                    from: sender.checked_sub(1).unwrap_or(self.home()),
                    to,
                    line,
                    message,
                    fields: values.clone(),
                    bytes: match carries.line() || carries.store() {
                        true => Bytes { data, strobe },
                        false => Bytes::default(),
                    },
                });
            }
        }
        if printed != expected {
            return Err(format!(
                "it sends {}; the row sends {}",
                self.flights_words(&printed),
                self.flights_words(&expected)
            ));
        }
        self.flights.extend(expected);
        Ok(())
    }

    /// Checks that write permission of a cache excludes all other permissions.
    fn check_permissions(&self, line: usize) -> Result<(), Difference> {
        let states = &self.agents.protocol.remote.states;
        let permissions = (0..self.home())
            .map(|cache| states[usize::from(self.configurations[cache][line].state)].permission);
        let permissions: Vec<Permission> = permissions.filter(|p| *p > Permission::None).collect();
        match permissions.contains(&Permission::Write) && permissions.len() > 1 {
            true => Err("a cache may write, and another one has a permission".to_string()),
            false => Ok(()),
        }
    }

    /// Memory performs a write.
    fn memory_write(&mut self, line: usize, bytes: Bytes) -> Result<(), Difference> {
        let expected = self.data.expected.pop_front();
        match expected {
            Some(write) if (write.line, write.bytes) == (line, bytes) => {
                let Some(store) = write.started else {
                    return Ok(());
                };
                let memory = self.data.memory[line];
                self.data.memory[line] = match store {
                    Some(from) => {
                        if let Some(access) = self.data.access(from, line) {
                            access.is_performed = true;
                        }
                        self.data.write(line, Some(memory), bytes)?
                    }
                    None => bytes.merge(memory),
                };
                Ok(())
            }
            _ => Err(format!(
                "memory writes {bytes} to line {line}; expected: {}",
                writes_words(&expected)
            )),
        }
    }

    /// Memory returns data.
    fn memory_read(&mut self, line: usize, result: u64) -> Result<(), Difference> {
        let memory = self.data.memory[line];
        if result != memory {
            return Err(format!(
                "memory returns {result:x} for line {line}; it holds {memory:x}"
            ));
        }
        if let Some((started, value @ None)) = &mut self.data.started_read {
            if *started == line {
                *value = Some(result);
            }
        }
        Ok(())
    }

    /// Checks that nothing is outstanding.
    fn end(&mut self) -> Result<(), Difference> {
        self.is_complete = true;
        if !self.flights.is_empty() || !self.data.expected.is_empty() {
            return Err(format!(
                "at the end, in flight: {}; not written: {}",
                self.flights_words(&self.flights),
                writes_words(&self.data.expected)
            ));
        }
        if let Some(line) = self.data.waiting {
            return Err(format!(
                "at the end, line {line} waits for a directory entry"
            ));
        }
        if let Some(line) = self.data.recall {
            return Err(format!(
                "at the end, the recall of line {line} is in progress"
            ));
        }
        if let Some(agent) = self.data.accesses.iter().position(|all| !all.is_empty()) {
            let name = self.name(agent);
            return Err(format!("at the end, an access of {name} is outstanding"));
        }
        let is_stable = |agent: usize, configuration: &Configuration| {
            let printed = self.agent(agent);
            let state = StateId(configuration.state);
            self.agents.controller(printed).states[state.index()].is_stable()
        };
        for (agent, lines) in self.configurations.iter().enumerate() {
            if let Some(line) = lines.iter().position(|line| !is_stable(agent, line)) {
                return Err(format!(
                    "at the end, {} waits on line {line}",
                    self.name(agent)
                ));
            }
        }
        Ok(())
    }

    /// A cache uses a way of a set. A victim must be that of the policy, and its set full.
    fn use_way(
        &mut self,
        agent: usize,
        (set, way): (usize, usize),
        evicts: bool,
    ) -> Result<(), Difference> {
        let policy = &self.policies[agent];
        let name = self.name(agent);
        if evicts {
            let victim = policy.victim(set);
            if way != victim {
                return Err(format!(
                    "{name} evicts way {way} of set {set}; the victim is way {victim}"
                ));
            }
            let initial = self.initial(agent);
            let lines = self.configurations[agent].iter().enumerate();
            let entries = lines.filter(|(line, configuration)| {
                line & ((1 << policy.set_width) - 1) == set && **configuration != initial
            });
            let (entries, ways) = (entries.count(), policy.ways);
            if entries != ways {
                return Err(format!(
                    "{name} evicts a line of set {set}, which has {entries} of {ways} entries"
                ));
            }
            self.evictions += 1;
        }
        self.policies[agent].touch(set, way, evicts);
        Ok(())
    }
}

/// State and variables of an agent before the first event of a line.
fn initial(agents: &Agents, machines: &[Machine; 2], agent: usize) -> Configuration {
    match agent < usize::from(agents.total()) {
        true => {
            let (kind, _) = agents.remotes.kind(agent as u16);
            machines[0].initial_in(agents.protocol.kinds[kind.index()].initial)
        }
        false => machines[1].initial(),
    }
}

/// Width of the fields of messages together; at least 1.
fn fields_width(agents: &Agents) -> u32 {
    let widths = agents.fields.iter().map(|(_, width)| width);
    widths.sum::<u32>().max(bits(0))
}

/// Reads the structure of all fields. Returns the values of a message's fields.
fn read_fields(bits: &mut Bits, agents: &Agents, message: MessageId) -> Vec<u16> {
    let declared = &agents.protocol.message(message).fields;
    let mut values = vec![0; declared.len()];
    for (name, width) in agents.fields.iter().rev() {
        let value = bits.read(*width) as u16;
        if let Some(position) = declared.iter().position(|field| field.name == *name) {
            values[position] = value;
        }
    }
    values
}

/// Receiver of a message as the number of an agent.
fn receiver(to: Receiver, home: usize) -> usize {
    match to {
        Receiver::Home | Receiver::HomeAt(_) => home,
        Receiver::Remote(remote) => remote.into(),
    }
}
