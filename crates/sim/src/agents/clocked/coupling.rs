//! Coupling of a clocked home to the simulator: its inputs, and its outstanding outputs.
//!
//! The controller takes each step of the RTL. The messages and memory operations of that step are kept until they cross
//! the RTL's ports.

use std::ops::Range;

use super::{Admission, ApplicationEvent, Bytes, ClockedHome, CycleOutput, WORDS};
use crate::agents::program::{Answer, ConfigurationId, Transition};
use crate::data::Copy;
use crate::explain::FailureKind;
use crate::kernel::Time;
use crate::message::{Line, Message, Work, HOME};
use crate::simulation::{Event as KernelEvent, Simulation};
use cohkit_protocol::controller::Event;
use cohkit_protocol::protocol::MessageId;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;

/// A clocked home in a run, and the outputs expected from it.
pub(crate) struct Clocked {
    home: Box<dyn ClockedHome>,
    is_running: bool,
    outputs: Vec<CycleOutput>,
    /// Messages given to the home that have not entered, in order.
    entering: VecDeque<u32>,
    /// Inputs that no unit has taken, by line.
    pending_inputs: FxHashMap<Line, Vec<Work>>,
    /// Messages that the controller has sent and that have not left the home, by line.
    expected_messages: FxHashMap<Line, VecDeque<Message>>,
    /// Memory reads and writes that the controller has started and the RTL has not requested; for a write its word
    /// mask.
    expected_reads: FxHashMap<Line, Transition>,
    expected_writes: FxHashMap<Line, (ConfigurationId, u16)>,
    /// Acknowledgements that the RTL has not given to the device yet.
    expected_acknowledgements: FxHashMap<Line, u8>,
    /// Lines that the directory is evicting to make room.
    directory_evictions: FxHashSet<Line>,
}

impl Clocked {
    pub fn new(home: Box<dyn ClockedHome>) -> Clocked {
        Clocked {
            home,
            is_running: false,
            outputs: Vec::new(),
            entering: VecDeque::new(),
            pending_inputs: FxHashMap::default(),
            expected_messages: FxHashMap::default(),
            expected_reads: FxHashMap::default(),
            expected_writes: FxHashMap::default(),
            expected_acknowledgements: FxHashMap::default(),
            directory_evictions: FxHashSet::default(),
        }
    }

    /// Returns an output that is still expected although the home is idle, with its line.
    fn missing_output(&self) -> Option<(Line, &'static str)> {
        let first_missing =
            |lines: &mut dyn Iterator<Item = Line>, output| lines.min().map(|line| (line, output));
        first_missing(
            &mut self.pending_inputs.keys().copied(),
            "an event that was never handled",
        )
        .or(first_missing(
            &mut self.expected_messages.keys().copied(),
            "a message that never left",
        ))
        .or(first_missing(
            &mut self.expected_reads.keys().copied(),
            "a read of memory",
        ))
        .or(first_missing(
            &mut self.expected_writes.keys().copied(),
            "a write of memory",
        ))
        .or(first_missing(
            &mut self.expected_acknowledgements.keys().copied(),
            "an acknowledgement",
        ))
    }
}

/// Returns a mask with a bit for each of these words.
fn word_mask(words: Range<u16>) -> u16 {
    words.fold(0, |mask, word| mask | 1 << word)
}

impl Simulation {
    /// Gives a message to the clocked home.
    pub(crate) fn submit_message(&mut self, index: u32) {
        let message = self.local.messages[index];
        let kind = &self.tables.kinds[message.kind.index()];
        let (mut bytes, mut mask) = ([0; WORDS], self.line_mask());
        if kind.carries_whole_line {
            bytes = self.line_words(message.line, message.copy);
        } else if kind.store {
            // The copy of a partial store holds its value in word 0.
            let words = message.word..message.word + message.words.max(1);
            let value = self.contents.data.word(message.line, message.copy, 0);
            bytes[usize::from(words.start)..usize::from(words.end)].fill(value);
            mask = word_mask(words);
        }
        if let Some(clocked) = &mut self.home.clocked {
            clocked
                .home
                .message(message.kind, message.line, bytes, mask);
            clocked.entering.push_back(index);
        }
        self.queue_input(message.line, Work::Message(index));
    }

    /// Gives a local operation or an unlock to the clocked home.
    pub(crate) fn submit_local(&mut self, line: Line, work: Work) {
        if let Some(clocked) = &mut self.home.clocked {
            match work {
                Work::Local(_, operation) => clocked.home.local(line, operation),
                _ => clocked.home.unlock(line),
            }
        }
        self.queue_input(line, work);
    }

    /// Returns the result of a memory operation to the clocked home.
    pub(crate) fn submit_memory_result(&mut self, line: Line, work: Work) {
        let bytes = self.line_words(line, self.contents.data.memory(line));
        if let Some(clocked) = &mut self.home.clocked {
            match work {
                Work::Read(_) => clocked.home.memory_read(line, bytes),
                _ => clocked.home.memory_written(line),
            }
        }
        self.queue_input(line, work);
    }

    /// Gives an event to the application in the clocked home.
    pub(crate) fn submit_application_event(&mut self, event: ApplicationEvent) {
        if let Some(clocked) = &mut self.home.clocked {
            clocked.home.application(event);
        }
        self.run_clock();
    }

    /// Records an input in front of the home, and starts the clock if it is stopped.
    pub(crate) fn queue_input(&mut self, line: Line, work: Work) {
        if let Some(clocked) = &mut self.home.clocked {
            clocked.pending_inputs.entry(line).or_default().push(work);
        }
        self.run_clock();
    }

    fn run_clock(&mut self) {
        let now = self.local.now;
        let Some(clocked) = &mut self.home.clocked else {
            return;
        };
        if !std::mem::replace(&mut clocked.is_running, true) {
            let edge = now.next_multiple_of(clocked.home.period());
            self.local.queue.push(edge, KernelEvent::Clock);
        }
    }

    /// Executes a clock edge.
    pub(crate) fn run_clock_edge(&mut self) {
        let Some(clocked) = &mut self.home.clocked else {
            return;
        };
        let mut outputs = std::mem::take(&mut clocked.outputs);
        if let Err(error) = clocked.home.cycle(&mut outputs) {
            return self.fail(FailureKind::Hardware, 0, error);
        }
        for output in outputs.drain(..) {
            if let Err((line, text)) = self.handle_output(output) {
                return self.fail(FailureKind::Hardware, line, text);
            }
        }
        let Some(clocked) = &mut self.home.clocked else {
            return;
        };
        clocked.outputs = outputs;
        clocked.is_running = !clocked.home.idle();
        if clocked.is_running {
            let edge = self.local.now + clocked.home.period();
            return self.local.queue.push(edge, KernelEvent::Clock);
        }
        // A home that waits for memory is not idle. A memory operation that it has not requested will never come.
        if let Some((line, missing)) = clocked.missing_output() {
            self.fail(
                FailureKind::Hardware,
                line,
                format!("the home became idle, but still owes {missing}"),
            );
        }
    }

    fn handle_output(&mut self, output: CycleOutput) -> Result<(), (Line, String)> {
        match output {
            CycleOutput::Entered { kind, line } => self.handle_entered(kind, line),
            CycleOutput::Stepped {
                line,
                event,
                state,
                next,
                admission,
                is_directory_eviction,
            } => self
                .handle_stepped(line, event, (state, next), admission, is_directory_eviction)
                .map_err(|error| {
                    let state_text = self.state_text(HOME, line, self.home.directory.get(line));
                    (
                        line,
                        format!("{} in {state_text}: {error}", self.event_text(event)),
                    )
                }),
            CycleOutput::Left { kind, line, bytes } => self.handle_left(kind, line, bytes),
            CycleOutput::Answered {
                line,
                operation,
                refused,
            } => self.handle_answered(line, operation, refused),
            CycleOutput::Reads { line } => self.start_requested_read(line),
            CycleOutput::Writes { line, bytes, mask } => {
                self.start_requested_write(line, bytes, mask)
            }
            output => {
                self.apply_hardware_action(output);
                Ok(())
            }
        }
    }

    fn handle_entered(&mut self, kind: MessageId, line: Line) -> Result<(), (Line, String)> {
        let messages = &self.local.messages;
        let is_same = |&index: &u32| {
            let message = &messages[index];
            (message.kind, message.line) == (kind, line)
        };
        let entering = self
            .home
            .clocked
            .as_mut()
            .map(|clocked| &mut clocked.entering);
        let entered = entering.and_then(|entering| {
            let position = entering.iter().position(is_same)?;
            entering.remove(position)
        });
        let Some(index) = entered else {
            let name = &self.tables.protocol_messages[kind.index()].name;
            return Err((line, format!("{name} entered, but no agent had sent it")));
        };
        self.dequeue_from_circuit(index);
        Ok(())
    }

    fn handle_stepped(
        &mut self,
        line: Line,
        event: Event,
        (state, next): (usize, usize),
        admission: Admission,
        by_directory: bool,
    ) -> Result<(), String> {
        let configuration = self.home.directory.get(line);
        if self.home.program.state(configuration) != state {
            let states = &self.home.program.controller().states;
            let state_name = states.get(state).map_or("no state", |state| &state.name);
            return Err(format!("the RTL sees it in {state_name}"));
        }
        let position = self.input_position(line, event);
        let work = match (event, by_directory) {
            (Event::Local(operation), true) => Work::Local(line, operation),
            _ => {
                let inputs = self
                    .home
                    .clocked
                    .as_ref()
                    .and_then(|c| c.pending_inputs.get(&line));
                match position.and_then(|position| inputs?.get(position).copied()) {
                    Some(work) => work,
                    None => return Err("no such input has arrived".into()),
                }
            }
        };
        let message = match work {
            Work::Message(index) => Some(self.local.messages[index]),
            _ => None,
        };
        let input = match &message {
            Some(message) => Self::input(message),
            None => Self::local_input(&self.home.program, event, HOME),
        };
        let transition = self.home.program.step(configuration, &input);
        let expected = match transition.answer {
            Answer::Take => Admission::Taken,
            Answer::Leave => Admission::Left,
            Answer::Refuse => Admission::Refused,
            _ => Admission::Impossible,
        };
        if admission != expected {
            return Err(format!(
                "the RTL says {admission:?}; by the controller it is {expected:?}"
            ));
        }
        if admission == Admission::Left {
            self.tally.counters.stall(crate::statistics::Stall::Left);
            return Ok(());
        }
        if let (Some(position), false, Some(clocked)) =
            (position, by_directory, &mut self.home.clocked)
        {
            if let Some(inputs) = clocked.pending_inputs.get_mut(&line) {
                inputs.remove(position);
                if inputs.is_empty() {
                    clocked.pending_inputs.remove(&line);
                }
            }
        }
        match admission {
            Admission::Taken => {
                if self.home.program.state(transition.next) != next {
                    let states = &self.home.program.controller().states;
                    let next_name = states.get(next).map_or("no state", |state| &state.name);
                    let state_text = self.state_text(HOME, line, transition.next);
                    return Err(format!(
                        "the RTL goes to {next_name}; by the controller it is {state_text}"
                    ));
                }
                if let (true, Some(clocked)) = (by_directory, &mut self.home.clocked) {
                    clocked.directory_evictions.insert(line);
                }
                self.take_step(work, line, message.as_ref(), configuration, &transition);
                Ok(())
            }
            Admission::Refused => Ok(()),
            _ => Err("there is no row for it".into()),
        }
    }

    /// Returns the place of an event's cause among the inputs given for its line.
    fn input_position(&self, line: Line, event: Event) -> Option<usize> {
        let inputs = self.home.clocked.as_ref()?.pending_inputs.get(&line)?;
        inputs.iter().position(|&work| match (work, event) {
            (Work::Message(index), Event::Message(kind)) => self.local.messages[index].kind == kind,
            (Work::Local(_, operation), Event::Local(taken_operation)) => {
                operation == taken_operation
            }
            (Work::Unlock(_), Event::Unlock)
            | (Work::Read(_), Event::MemoryData(_))
            | (Work::Written(_), Event::MemoryDone) => true,
            _ => false,
        })
    }

    fn event_text(&self, event: Event) -> String {
        match event {
            Event::Message(kind) => self.tables.protocol_messages[kind.index()].name.clone(),
            Event::Local(operation) => {
                let locals = &self.home.program.controller().locals;
                let local = locals.get(usize::from(operation));
                local.map_or("no operation".into(), |local| local.name.clone())
            }
            event => format!("{event:?}"),
        }
    }

    /// Sends a message of the controller at once, or with a clocked home when the message leaves the RTL.
    pub(crate) fn send_or_hold(&mut self, message: Message, ready: Time) {
        match &mut self.home.clocked {
            Some(clocked) => clocked
                .expected_messages
                .entry(message.line)
                .or_default()
                .push_back(message),
            None => self.send(message, ready),
        }
    }

    fn handle_left(
        &mut self,
        kind: MessageId,
        line: Line,
        bytes: Option<Bytes>,
    ) -> Result<(), (Line, String)> {
        let name = &self.tables.protocol_messages[kind.index()].name;
        let circuit = |kind: MessageId| self.tables.kinds[kind.index()].circuit;
        let expected_messages = self
            .home
            .clocked
            .as_mut()
            .map(|clocked| &mut clocked.expected_messages);
        let sent_message = expected_messages.and_then(|expected_messages| {
            let line_messages = expected_messages.get_mut(&line)?;
            let is_in_circuit = |message: &Message| circuit(message.kind) == circuit(kind);
            let position = line_messages.iter().position(is_in_circuit)?;
            let message = line_messages.remove(position)?;
            if line_messages.is_empty() {
                expected_messages.remove(&line);
            }
            Some(message)
        });
        let message = sent_message
            .filter(|message| message.kind == kind)
            .ok_or_else(|| {
                (
                    line,
                    format!("{name} left, but the controller had not sent it"),
                )
            })?;
        if let Some(bytes) = bytes {
            if bytes != self.line_words(line, message.copy) {
                return Err((
                    line,
                    format!("{name} left with data that differ from the line"),
                ));
            }
        }
        self.send(message, self.local.now);
        Ok(())
    }

    /// Returns true, once, if a completed operation was the directory's own: no agent behind the home is notified of
    /// it.
    pub(crate) fn take_directory_eviction(&mut self, line: Line) -> bool {
        let clocked = self.home.clocked.as_mut();
        clocked.is_some_and(|clocked| clocked.directory_evictions.remove(&line))
    }

    /// True if the directory is evicting this line to make room.
    pub(crate) fn is_directory_eviction(&self, line: Line) -> bool {
        let clocked = self.home.clocked.as_ref();
        clocked.is_some_and(|clocked| clocked.directory_evictions.contains(&line))
    }

    /// Defers an acknowledgement until the RTL gives it. Returns false without a clocked home: the device is notified
    /// at once.
    pub(crate) fn defer_acknowledgement(&mut self, line: Line, operation: u8) -> bool {
        match &mut self.home.clocked {
            Some(clocked) => {
                clocked.expected_acknowledgements.insert(line, operation);
                true
            }
            None => false,
        }
    }

    fn handle_answered(
        &mut self,
        line: Line,
        operation: Option<u8>,
        refused: bool,
    ) -> Result<(), (Line, String)> {
        let Some(operation) = operation else {
            return match refused {
                true => Err((line, "an unlock was refused".into())),
                false => Ok(()),
            };
        };
        if refused {
            if self.application.is_some() {
                return Err((
                    line,
                    "a local operation of the application was refused".into(),
                ));
            }
            self.refuse_local_operation();
            return Ok(());
        }
        let clocked = self.home.clocked.as_mut();
        if clocked.and_then(|clocked| clocked.expected_acknowledgements.remove(&line))
            != Some(operation)
        {
            let name = self.event_text(Event::Local(operation));
            return Err((
                line,
                format!("{name} was acknowledged before it was complete"),
            ));
        }
        self.notify_device(line, operation);
        Ok(())
    }

    /// Defers a memory read until the RTL requests it. Returns false without a clocked home: the read starts at once.
    pub(crate) fn defer_memory_read(&mut self, line: Line, transition: &Transition) -> bool {
        match &mut self.home.clocked {
            Some(clocked) => {
                clocked.expected_reads.insert(line, *transition);
                true
            }
            None => false,
        }
    }

    /// Defers a memory write until the RTL requests it. Returns false without a clocked home: the write starts at once.
    /// `words` are the only words written; `None` means all.
    pub(crate) fn defer_memory_write(
        &mut self,
        line: Line,
        next: ConfigurationId,
        words: Option<Range<u16>>,
    ) -> bool {
        let mask = words.map_or(self.line_mask(), word_mask);
        match &mut self.home.clocked {
            Some(clocked) => {
                clocked.expected_writes.insert(line, (next, mask));
                true
            }
            None => false,
        }
    }

    fn start_requested_read(&mut self, line: Line) -> Result<(), (Line, String)> {
        let expected_reads = self
            .home
            .clocked
            .as_mut()
            .map(|clocked| &mut clocked.expected_reads);
        let Some(transition) =
            expected_reads.and_then(|expected_reads| expected_reads.remove(&line))
        else {
            return Err((
                line,
                "memory is read without a request of the controller".into(),
            ));
        };
        self.read_memory(self.local.now, line, &transition);
        Ok(())
    }

    fn start_requested_write(
        &mut self,
        line: Line,
        bytes: Bytes,
        mask: u16,
    ) -> Result<(), (Line, String)> {
        let expected_writes = self
            .home
            .clocked
            .as_mut()
            .map(|clocked| &mut clocked.expected_writes);
        let Some((next, expected_mask)) =
            expected_writes.and_then(|expected_writes| expected_writes.remove(&line))
        else {
            return Err((
                line,
                "memory is written without a request of the controller".into(),
            ));
        };
        let words = self.line_words(line, self.contents.data.memory(line));
        let written_words = (0..WORDS).filter(|word| mask >> word & 1 != 0);
        if mask != expected_mask
            || written_words
                .into_iter()
                .any(|word| words[word] != bytes[word])
        {
            return Err((
                line,
                "memory is written with data that differ from the message".into(),
            ));
        }
        self.write_memory(self.local.now, line, next);
        Ok(())
    }

    /// Returns a mask with a bit for each word of a line.
    fn line_mask(&self) -> u16 {
        (u32::from(u16::MAX) >> (WORDS - usize::from(self.contents.data.words()).min(WORDS))) as u16
    }

    pub(crate) fn line_words(&self, line: Line, copy: Copy) -> Bytes {
        let mut bytes = [0; WORDS];
        for (word, target) in bytes
            .iter_mut()
            .enumerate()
            .take(self.contents.data.words().into())
        {
            *target = self.contents.data.word(line, copy, word as u16);
        }
        bytes
    }
}
