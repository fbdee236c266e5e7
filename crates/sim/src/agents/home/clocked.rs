//! Coupling of a clocked home to the simulator: its inputs, and its outstanding outputs.
//!
//! The controller takes each step of the RTL. The messages and memory operations of that step are kept until they cross
//! the RTL's ports.

use std::ops::Range;

use super::{Home, HomeEnvironment, TakenInput};
use crate::agents::application::ApplicationEnvironment;
use crate::agents::clocked::{Admission, ApplicationEvent, Bytes, ClockedHome, CycleOutput, WORDS};
use crate::agents::program::{Answer, ConfigurationId, Input, Transition};
use crate::data::{Copy, Data};
use crate::explain::FailureKind;
use crate::message::{Line, Message, Work, HOME};
use crate::simulation::{Context, Event as KernelEvent, Tables};
use crate::statistics::Stall;
use cohkit_protocol::controller::Event;
use cohkit_protocol::protocol::MessageId;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;

/// A clocked home in a run, and the outputs expected from it.
pub(crate) struct Clocked {
    /// The RTL.
    home: Box<dyn ClockedHome>,
    /// True if the next clock edge is scheduled. The clock stops while the home is idle.
    is_running: bool,
    /// Buffer for the outputs of a cycle, reused to avoid allocations.
    outputs: Vec<CycleOutput>,
    /// Messages given to the home that have not entered, in order.
    entering: VecDeque<u32>,
    /// Inputs that no unit has taken, by line.
    pending_inputs: FxHashMap<Line, Vec<Work>>,
    /// Messages that the controller has sent and that have not left the home, by line.
    expected_messages: FxHashMap<Line, VecDeque<Message>>,
    /// Memory reads that the controller has started and the RTL has not requested, by line, with the transition
    /// that started each.
    expected_reads: FxHashMap<Line, Transition>,
    /// Memory writes that the controller has started and the RTL has not requested, by line: the configuration
    /// after the row, and a bit for each word written.
    expected_writes: FxHashMap<Line, (ConfigurationId, u16)>,
    /// Acknowledgements that the RTL has not given to the device yet, by line: the index of the local operation.
    expected_acknowledgements: FxHashMap<Line, u8>,
    /// Lines that the directory is evicting to make room.
    directory_evictions: FxHashSet<Line>,
}

impl Clocked {
    /// Creates the coupling of a clocked home after reset.
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

    /// Starts the clock if it is stopped.
    fn start_clock(&mut self, context: &mut Context) {
        if !std::mem::replace(&mut self.is_running, true) {
            let edge = context.now().next_multiple_of(self.home.period());
            context.schedule(edge, KernelEvent::Clock);
        }
    }

    /// Records an input in front of the home, and starts the clock if it is stopped.
    fn queue_input(&mut self, context: &mut Context, line: Line, work: Work) {
        self.pending_inputs.entry(line).or_default().push(work);
        self.start_clock(context);
    }

    /// Removes the message that has entered the home from those in front of it.
    fn remove_entering(&mut self, context: &Context, kind: MessageId, line: Line) -> Option<u32> {
        let mut entering = self.entering.iter();
        let position = entering.position(|&index| {
            let message = &context.local.messages[index];
            (message.kind, message.line) == (kind, line)
        })?;
        self.entering.remove(position)
    }

    /// Removes the next message of a circuit that is expected to leave for a line.
    fn remove_expected(&mut self, tables: &Tables, kind: MessageId, line: Line) -> Option<Message> {
        let circuit = |kind: MessageId| tables.kinds[kind.index()].circuit;
        let line_messages = self.expected_messages.get_mut(&line)?;
        let mut messages = line_messages.iter();
        let position = messages.position(|message| circuit(message.kind) == circuit(kind))?;
        let message = line_messages.remove(position)?;
        if line_messages.is_empty() {
            self.expected_messages.remove(&line);
        }
        Some(message)
    }

    /// Returns the place of an event's cause among the inputs given for its line, and that input.
    fn find_input(&self, context: &Context, line: Line, event: Event) -> Option<(usize, Work)> {
        let inputs = self.pending_inputs.get(&line)?;
        let position = inputs.iter().position(|&work| match (work, event) {
            (Work::Message(index), Event::Message(kind)) => {
                context.local.messages[index].kind == kind
            }
            (Work::Local(_, operation), Event::Local(taken_operation)) => {
                operation == taken_operation
            }
            (Work::Unlock(_), Event::Unlock)
            | (Work::Read(_), Event::MemoryData(_))
            | (Work::Written(_), Event::MemoryDone) => true,
            _ => false,
        })?;
        Some((position, inputs[position]))
    }

    /// Removes an input that a unit has taken or refused.
    fn remove_input(&mut self, line: Line, position: usize) {
        if let Some(inputs) = self.pending_inputs.get_mut(&line) {
            inputs.remove(position);
            if inputs.is_empty() {
                self.pending_inputs.remove(&line);
            }
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

/// Error of an output: its line, and a description.
type OutputError = (Line, String);

/// Returns a mask with a bit for each of these words.
fn word_mask(words: Range<u16>) -> u16 {
    words.fold(0, |mask, word| mask | 1 << word)
}

/// Returns a mask with a bit for each word of a line.
fn line_mask(data: &Data) -> u16 {
    (u32::from(u16::MAX) >> (WORDS - usize::from(data.words()).min(WORDS))) as u16
}

/// Returns the words of a copy of a line; those beyond the line's length are 0.
fn line_words(data: &Data, line: Line, copy: Copy) -> Bytes {
    let mut bytes = [0; WORDS];
    for (target, word) in bytes.iter_mut().zip(0..data.words()) {
        *target = data.word(line, copy, word);
    }
    bytes
}

/// Names an event in messages.
fn event_text(tables: &Tables, event: Event) -> String {
    match event {
        Event::Message(kind) => tables.protocol_messages[kind.index()].name.clone(),
        Event::Local(operation) => {
            let local = tables.locals.get(usize::from(operation));
            local.map_or("no operation".into(), |local| local.name.clone())
        }
        event => format!("{event:?}"),
    }
}

impl Home {
    /// Gives a message to the clocked home.
    pub fn submit_message(&mut self, context: &mut Context, index: u32) {
        let Some(clocked) = &mut self.clocked else {
            return;
        };
        let message = context.local.messages[index];
        let kind = context.tables.kind_of(&message);
        let data = &context.contents.data;
        let (mut bytes, mut mask) = ([0; WORDS], line_mask(data));
        if kind.carries_whole_line {
            bytes = line_words(data, message.line, message.copy);
        } else if kind.store {
            // The copy of a partial store holds its value in word 0.
            let words = message.word..message.word + message.words.max(1);
            let value = data.word(message.line, message.copy, 0);
            bytes[usize::from(words.start)..usize::from(words.end)].fill(value);
            mask = word_mask(words);
        }
        (clocked.home).message(message.kind, message.line, bytes, mask);
        clocked.entering.push_back(index);
        clocked.queue_input(context, message.line, Work::Message(index));
    }

    /// Gives a local operation or an unlock to the clocked home.
    pub fn submit_local(&mut self, context: &mut Context, line: Line, work: Work) {
        if let Some(clocked) = &mut self.clocked {
            match work {
                Work::Local(_, operation) => clocked.home.local(line, operation),
                _ => clocked.home.unlock(line),
            }
            clocked.queue_input(context, line, work);
        }
    }

    /// Returns the result of a memory operation to the clocked home. `copy` is memory's copy of the line.
    pub fn submit_memory_result(
        &mut self,
        context: &mut Context,
        (line, copy): (Line, Copy),
        work: Work,
    ) {
        if let Some(clocked) = &mut self.clocked {
            match work {
                Work::Read(_) => {
                    let bytes = line_words(&context.contents.data, line, copy);
                    clocked.home.memory_read(line, bytes);
                }
                _ => clocked.home.memory_written(line),
            }
            clocked.queue_input(context, line, work);
        }
    }

    /// Gives an event to the application in the clocked home.
    pub fn submit_application_event(&mut self, context: &mut Context, event: ApplicationEvent) {
        if let Some(clocked) = &mut self.clocked {
            clocked.home.application(event);
            clocked.start_clock(context);
        }
    }

    /// Executes a clock edge.
    pub fn run_clock_edge(&mut self, env: &mut HomeEnvironment) {
        let Some(clocked) = &mut self.clocked else {
            return;
        };
        let mut outputs = std::mem::take(&mut clocked.outputs);
        if let Err(error) = clocked.home.cycle(&mut outputs) {
            return env.context.fail(FailureKind::Hardware, 0, error);
        }
        for output in outputs.drain(..) {
            if let Err((line, text)) = self.handle_output(env, output) {
                return env.context.fail(FailureKind::Hardware, line, text);
            }
        }
        let Some(clocked) = &mut self.clocked else {
            return;
        };
        clocked.outputs = outputs;
        clocked.is_running = !clocked.home.idle();
        if clocked.is_running {
            let edge = env.context.now() + clocked.home.period();
            return env.context.schedule(edge, KernelEvent::Clock);
        }
        // A home that waits for memory is not idle. A memory operation that it has not requested will never come.
        if let Some((line, missing)) = clocked.missing_output() {
            let text = format!("the home became idle, but still owes {missing}");
            env.context.fail(FailureKind::Hardware, line, text);
        }
    }

    /// Handles an output of a cycle: checks it against the controller, and lets its effects take place.
    ///
    /// # Errors
    /// A deviation of the RTL from the controller.
    fn handle_output(
        &mut self,
        env: &mut HomeEnvironment,
        output: CycleOutput,
    ) -> Result<(), OutputError> {
        match output {
            CycleOutput::Entered { kind, line } => self.handle_entered(env, kind, line),
            CycleOutput::Stepped { line, event, .. } => {
                self.handle_stepped(env, &output).map_err(|error| {
                    let tables = env.context.tables;
                    let state_text = self.state_text(tables, line, self.directory.get(line));
                    let event_text = event_text(tables, event);
                    (line, format!("{event_text} in {state_text}: {error}"))
                })
            }
            CycleOutput::Left { kind, line, bytes } => self.handle_left(env, kind, line, bytes),
            CycleOutput::Answered {
                line,
                operation,
                refused,
            } => self.handle_answered(env, line, operation, refused),
            CycleOutput::Reads { line } => self.start_requested_read(env, line),
            CycleOutput::Writes { line, bytes, mask } => {
                self.start_requested_write(env, line, bytes, mask)
            }
            output => {
                self.apply_hardware_action(env, output);
                Ok(())
            }
        }
    }

    /// Carries out an action of the application in hardware. The RTL has modelled its latency: an action for the home
    /// reaches it at once.
    fn apply_hardware_action(&mut self, env: &mut HomeEnvironment, mut output: CycleOutput) {
        let line = *output.line_mut();
        env.context.tally.postpone_watchdog(env.context.local.now);
        let Some(application) = env.application.as_deref_mut() else {
            let text = "no application is known".into();
            return env.context.fail(FailureKind::Hardware, line, text);
        };
        let mut environment = ApplicationEnvironment {
            context: env.context.reborrow(),
            frontend: env.frontend,
            memory: env.memory,
            caches: env.caches,
        };
        let work = application.apply_hardware_action(&mut environment, output);
        if let (Some(work), Some(clocked)) = (work, &mut self.clocked) {
            clocked.queue_input(&mut env.context, line, work);
        }
    }

    /// Handles the entry of a message, which frees its place in the circuit.
    fn handle_entered(
        &mut self,
        env: &mut HomeEnvironment,
        kind: MessageId,
        line: Line,
    ) -> Result<(), OutputError> {
        let clocked = self.clocked.as_mut();
        let entered = clocked.and_then(|clocked| clocked.remove_entering(&env.context, kind, line));
        let Some(index) = entered else {
            let name = &env.context.tables.protocol_messages[kind.index()].name;
            return Err((line, format!("{name} entered, but no agent had sent it")));
        };
        (env.interconnect).dequeue_from_circuit(&mut env.context, index);
        Ok(())
    }

    /// Takes a step of the RTL with the controller, too.
    fn handle_stepped(
        &mut self,
        env: &mut HomeEnvironment,
        output: &CycleOutput,
    ) -> Result<(), String> {
        let CycleOutput::Stepped {
            line,
            event,
            state,
            next,
            admission,
            is_directory_eviction,
        } = *output
        else {
            return Ok(());
        };
        let configuration = self.directory.get(line);
        let program = &mut self.executor.program;
        if program.state(configuration) != state {
            let states = &program.controller().states;
            let state_name = states.get(state).map_or("no state", |state| &state.name);
            return Err(format!("the RTL sees it in {state_name}"));
        }
        let clocked = self.clocked.as_ref();
        let pending = clocked.and_then(|clocked| clocked.find_input(&env.context, line, event));
        let work = match (event, is_directory_eviction, pending) {
            (Event::Local(operation), true, _) => Work::Local(line, operation),
            (_, _, Some((_, work))) => work,
            (_, _, None) => return Err("no such input has arrived".into()),
        };
        let message = match work {
            Work::Message(index) => Some(env.context.local.messages[index]),
            _ => None,
        };
        let input = match &message {
            Some(message) => Input::from_message(message),
            None => program.input(event, HOME),
        };
        let transition = program.step(configuration, &input);
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
            env.context.tally.counters.stall(Stall::Controller);
            return Ok(());
        }
        if let (Some((position, _)), false, Some(clocked)) =
            (pending, is_directory_eviction, &mut self.clocked)
        {
            clocked.remove_input(line, position);
        }
        match admission {
            Admission::Taken => {}
            Admission::Refused => return Ok(()),
            _ => return Err("there is no row for it".into()),
        }
        self.check_next_state(env.context.tables, line, transition.next, next)?;
        if let (true, Some(clocked)) = (is_directory_eviction, &mut self.clocked) {
            clocked.directory_evictions.insert(line);
        }
        let input = TakenInput {
            work,
            line,
            message: message.as_ref(),
            before: configuration,
            transition: &transition,
        };
        self.apply_transition(env, &input);
        Ok(())
    }

    /// Checks that the RTL goes to the state of a configuration.
    fn check_next_state(
        &self,
        tables: &Tables,
        line: Line,
        configuration: ConfigurationId,
        next: usize,
    ) -> Result<(), String> {
        let program = &self.executor.program;
        if program.state(configuration) == next {
            return Ok(());
        }
        let states = &program.controller().states;
        let next_name = states.get(next).map_or("no state", |state| &state.name);
        let state_text = self.state_text(tables, line, configuration);
        Err(format!(
            "the RTL goes to {next_name}; by the controller it is {state_text}"
        ))
    }

    /// Keeps a message of the controller until it leaves the RTL. Returns the message without a clocked home.
    pub fn hold_message(&mut self, message: Message) -> Option<Message> {
        let Some(clocked) = &mut self.clocked else {
            return Some(message);
        };
        let expected_messages = clocked.expected_messages.entry(message.line);
        expected_messages.or_default().push_back(message);
        None
    }

    /// Sends a message that has left the RTL, if the controller has sent it with the same bytes.
    fn handle_left(
        &mut self,
        env: &mut HomeEnvironment,
        kind: MessageId,
        line: Line,
        bytes: Option<Bytes>,
    ) -> Result<(), OutputError> {
        let tables = env.context.tables;
        let name = &tables.protocol_messages[kind.index()].name;
        let clocked = self.clocked.as_mut();
        let sent = clocked.and_then(|clocked| clocked.remove_expected(tables, kind, line));
        let Some(message) = sent.filter(|message| message.kind == kind) else {
            let text = format!("{name} left, but the controller had not sent it");
            return Err((line, text));
        };
        let data = &env.context.contents.data;
        if bytes.is_some_and(|bytes| bytes != line_words(data, line, message.copy)) {
            let text = format!("{name} left with data that differ from the line");
            return Err((line, text));
        }
        let now = env.context.now();
        self.send(env, message, now);
        Ok(())
    }

    /// Returns true, once, if a completed operation was the directory's own: no agent behind the home is notified of
    /// it.
    pub fn take_directory_eviction(&mut self, line: Line) -> bool {
        let clocked = self.clocked.as_mut();
        clocked.is_some_and(|clocked| clocked.directory_evictions.remove(&line))
    }

    /// True if the directory is evicting this line to make room.
    pub fn is_directory_eviction(&self, line: Line) -> bool {
        let clocked = self.clocked.as_ref();
        clocked.is_some_and(|clocked| clocked.directory_evictions.contains(&line))
    }

    /// Defers an acknowledgement until the RTL gives it. Returns false without a clocked home: the device is notified
    /// at once.
    pub fn defer_acknowledgement(&mut self, line: Line, operation: u8) -> bool {
        let clocked = self.clocked.as_mut();
        let acknowledgements = clocked.map(|clocked| &mut clocked.expected_acknowledgements);
        acknowledgements
            .map(|lines| lines.insert(line, operation))
            .is_some()
    }

    /// Handles the completion or the refusal of a local operation or an unlock.
    fn handle_answered(
        &mut self,
        env: &mut HomeEnvironment,
        line: Line,
        operation: Option<u8>,
        refused: bool,
    ) -> Result<(), OutputError> {
        let error = |text: &str| Err((line, text.to_string()));
        let Some(operation) = operation else {
            return match refused {
                true => error("an unlock was refused"),
                false => Ok(()),
            };
        };
        if refused {
            if env.application.is_some() {
                return error("a local operation of the application was refused");
            }
            env.device.refuse(&mut env.context);
            return Ok(());
        }
        let clocked = self.clocked.as_mut();
        if clocked.and_then(|clocked| clocked.expected_acknowledgements.remove(&line))
            != Some(operation)
        {
            let name = event_text(env.context.tables, Event::Local(operation));
            let text = format!("{name} was acknowledged before it was complete");
            return Err((line, text));
        }
        self.notify_device(env, line, operation);
        Ok(())
    }

    /// Defers a memory read until the RTL requests it. Returns false without a clocked home: the read starts at once.
    pub fn defer_memory_read(&mut self, line: Line, transition: &Transition) -> bool {
        let expected_reads = self
            .clocked
            .as_mut()
            .map(|clocked| &mut clocked.expected_reads);
        expected_reads
            .map(|lines| lines.insert(line, *transition))
            .is_some()
    }

    /// Defers a memory write until the RTL requests it. Returns false without a clocked home: the write starts at once.
    /// `words` are the only words written; `None` means all.
    pub fn defer_memory_write(
        &mut self,
        context: &Context,
        line: Line,
        next: ConfigurationId,
        words: Option<Range<u16>>,
    ) -> bool {
        let Some(clocked) = &mut self.clocked else {
            return false;
        };
        let mask = words.map_or_else(|| line_mask(&context.contents.data), word_mask);
        clocked.expected_writes.insert(line, (next, mask));
        true
    }

    /// Starts a memory read that the RTL requests, if the controller has started it.
    fn start_requested_read(
        &mut self,
        env: &mut HomeEnvironment,
        line: Line,
    ) -> Result<(), OutputError> {
        let clocked = self.clocked.as_mut();
        let expected = clocked.and_then(|clocked| clocked.expected_reads.remove(&line));
        let Some(transition) = expected else {
            let text = "memory is read without a request of the controller";
            return Err((line, text.into()));
        };
        let now = env.context.now();
        self.read_memory(env, now, line, &transition);
        Ok(())
    }

    /// Starts a memory write that the RTL requests, if the controller has started it with the same words and bytes.
    fn start_requested_write(
        &mut self,
        env: &mut HomeEnvironment,
        line: Line,
        bytes: Bytes,
        mask: u16,
    ) -> Result<(), OutputError> {
        let clocked = self.clocked.as_mut();
        let expected = clocked.and_then(|clocked| clocked.expected_writes.remove(&line));
        let Some((next, expected_mask)) = expected else {
            let text = "memory is written without a request of the controller";
            return Err((line, text.into()));
        };
        let words = line_words(&env.context.contents.data, line, env.memory.copy(line));
        let mut written_words = (0..WORDS).filter(|word| mask >> word & 1 != 0);
        if mask != expected_mask || written_words.any(|word| words[word] != bytes[word]) {
            let text = "memory is written with data that differ from the message";
            return Err((line, text.into()));
        }
        let now = env.context.now();
        self.write_memory(env, now, line, next);
        Ok(())
    }
}
