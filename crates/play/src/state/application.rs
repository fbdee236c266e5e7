//! The application: its events, its actions and its memory.

use super::{
    Job, MemoryChannel, Progress, StepError, Transition, WordOperation, UNSUPPORTED_BUS,
    UNSUPPORTED_HOST,
};
use cohkit_application::interface::{
    Action, Actions, Application, Event, Line, Operation, Scenario, Words,
};
use cohkit_protocol::controller::Local;
use cohkit_protocol::protocol::Permission;
use std::hash::Hash;

impl<S: Scenario> Transition<'_, '_, S>
where
    S::Application: Clone + Eq + Hash,
    S::Thread: Clone + Eq + Hash,
{
    /// Puts an event into a channel to the application.
    pub(super) fn schedule_event(&mut self, channel: MemoryChannel, event: Event) {
        self.state.pending_events.push((channel, event));
        // Events of different kinds or lines are unordered.
        self.state
            .pending_events
            .sort_by_key(|&(channel, _)| channel);
    }

    /// Delivers an event to the application and executes its actions.
    pub(super) fn deliver_event(&mut self, event: Event) -> Result<(), StepError> {
        self.state.contract.record_event(&event);
        let mut actions = Actions::new();
        self.state.application.handle(event, &mut actions);
        let actions: Vec<Action> = actions.take().collect();
        for action in actions {
            let result = self.state.contract.check_action(&action);
            result.map_err(|breach| {
                StepError::Violation(format!(
                    "line {}: {} {}",
                    breach.line, self.static_model.name, breach.description
                ))
            })?;
            self.execute_action(action)?;
        }
        Ok(())
    }

    /// Checks that the application passes whole lines.
    fn check_line_length(&self, action: &Action) -> Result<(), StepError> {
        let (Action::Answer { line, words } | Action::Store { line, words, .. }) = action else {
            return Ok(());
        };
        let (name, line_words) = (&self.static_model.name, self.static_model.model.words);
        match words.len() == usize::from(line_words) {
            true => Ok(()),
            false => Err(StepError::Violation(format!(
                "line {line}: {name} gives a line of {} words; lines have {line_words}",
                words.len()
            ))),
        }
    }

    /// Queues a local operation at the unit of its line. `lock` is true if the operation also locks the line.
    ///
    /// # Errors
    /// The home has no such operation, or there is no such line.
    fn request_local(
        &mut self,
        line: Line,
        operation: Operation,
        lock: bool,
    ) -> Result<(), StepError> {
        let mut locals = self.static_model.model.home.locals.iter();
        let is_requested =
            |local: &Local| local.ensures == operation.leaves() && local.locks == lock;
        let local = locals
            .position(is_requested)
            .filter(|_| line < self.static_model.model.lines);
        let Some(local) = local else {
            let (name, operation_name) = (&self.static_model.name, operation.name());
            return Err(StepError::Violation(format!(
                "{name} asks for a {operation_name} of line {line}, which does not exist"
            )));
        };
        self.state.outstanding_operations.insert(line, false);
        let unit = self.static_model.unit(line);
        self.state.units[unit]
            .locals
            .push((line, Some(local as u8)));
        Ok(())
    }

    /// Executes an action of the application, which satisfies the contract.
    ///
    /// # Errors
    /// The action writes a line of another length or stale data, names an operation or line that
    /// does not exist, or is outside the model.
    pub(super) fn execute_action(&mut self, action: Action) -> Result<(), StepError> {
        self.check_line_length(&action)?;
        match action {
            Action::Answer { line, words } => {
                self.write_by_application(line, words)?;
                self.state.lines[line as usize].reading = Progress::Ready;
            }
            Action::Accept { line } => self.state.lines[line as usize].writing = Progress::Ready,
            Action::Local {
                line,
                operation,
                lock,
            } => self.request_local(line, operation, lock)?,
            Action::Unlock { line } => {
                self.state.locks.remove(&line);
                let unit = self.static_model.unit(line);
                self.state.units[unit].locals.push((line, None));
            }
            Action::Fetch { tag, first, lines } => {
                let end = first.saturating_add(lines);
                let next = first;
                self.state.memory.push(Job::Fetch { tag, next, end });
            }
            Action::Store { tag, line, words } => {
                self.state.memory.push(Job::Store { tag, line, words });
            }
            Action::ReadWords {
                tag,
                line,
                word,
                words,
            } => self.start_word_operation(tag, line, word, WordOperation::Read(words)),
            Action::WriteWords {
                tag,
                line,
                word,
                words,
            } => self.start_word_operation(tag, line, word, WordOperation::Write(words)),
            Action::UpdateWord {
                tag,
                line,
                word,
                update,
            } => self.start_word_operation(tag, line, word, WordOperation::Update(update)),
            Action::Wake { tag, .. } => self.state.timers.push(tag),
            Action::Count { .. } | Action::Begin { .. } | Action::End { .. } => {}
            Action::Reply { .. }
            | Action::HostFetch { .. }
            | Action::HostStore { .. }
            | Action::Interrupt { .. } => {
                return Err(StepError::Unsupported(format!(
                    "{}: {UNSUPPORTED_BUS}",
                    self.static_model.name
                )));
            }
            Action::CoherentLoad { .. }
            | Action::CoherentStore { .. }
            | Action::CoherentUpdate { .. }
            | Action::Abandon { .. } => {
                return Err(StepError::Unsupported(format!(
                    "{}: {UNSUPPORTED_HOST}",
                    self.static_model.name
                )));
            }
        }
        Ok(())
    }

    /// Queues an operation on words at the memory of the application.
    fn start_word_operation(&mut self, tag: u32, line: Line, word: u16, operation: WordOperation) {
        self.state.memory.push(Job::Words {
            tag,
            line,
            word,
            operation,
        });
    }

    /// True if the home reads and writes this line in memory.
    fn is_homed(&self, line: Line) -> bool {
        line < self.static_model.model.lines && !self.static_model.placement.serves(line)
    }

    /// Returns a line of the application's memory.
    fn memory_words(&self, line: Line) -> Words {
        match self.is_homed(line) {
            true => self.state.lines[line as usize].memory.clone(),
            false => {
                let stored = self.state.application_lines.get(&line).cloned();
                stored.unwrap_or_else(|| self.static_model.zeros())
            }
        }
    }

    /// Replaces a line of the application's memory.
    ///
    /// # Errors
    /// As for [`Transition::write_by_application`].
    fn set_memory(&mut self, line: Line, words: Words) -> Result<(), StepError> {
        match self.is_homed(line) {
            true => self.write_by_application(line, words)?,
            false => drop(self.state.application_lines.insert(line, words)),
        }
        Ok(())
    }

    /// Executes the pending operation of the application's memory with this index, reading or
    /// writing at this moment.
    pub(super) fn execute_job(&mut self, index: usize) -> Result<(), StepError> {
        match self.state.memory[index].clone() {
            Job::Fetch { tag, next, end } => {
                let words = self.memory_words(next);
                match next + 1 < end {
                    true => {
                        let next = next + 1;
                        self.state.memory[index] = Job::Fetch { tag, next, end };
                    }
                    false => drop(self.state.memory.remove(index)),
                }
                let line = next;
                self.deliver_event(Event::FetchCompletion { tag, line, words })
            }
            Job::Store { tag, line, words } => {
                self.state.memory.remove(index);
                self.set_memory(line, words)?;
                self.deliver_event(Event::StoreCompletion { tag })
            }
            Job::Words {
                tag,
                line,
                word,
                operation,
            } => {
                self.state.memory.remove(index);
                let mut line_words = self.memory_words(line);
                // The contract has checked that the words are within the line.
                let target = &mut line_words[usize::from(word)..];
                match operation {
                    WordOperation::Read(words) => {
                        let words = target[..usize::from(words)].into();
                        self.deliver_event(Event::ReadCompletion { tag, words })
                    }
                    WordOperation::Write(words) => {
                        target[..words.len()].copy_from_slice(&words);
                        self.set_memory(line, line_words)?;
                        self.deliver_event(Event::StoreCompletion { tag })
                    }
                    WordOperation::Update(update) => {
                        let old_value = target[0];
                        target[0] = update.apply(old_value);
                        self.set_memory(line, line_words)?;
                        let words = [old_value].into();
                        self.deliver_event(Event::ReadCompletion { tag, words })
                    }
                }
            }
        }
    }

    /// Replaces the contents of one of the home's lines on behalf of the application. A write of
    /// equal contents has no effect.
    ///
    /// # Errors
    /// Memory is stale, or a cache has a copy.
    pub(super) fn write_by_application(
        &mut self,
        line: Line,
        words: Words,
    ) -> Result<(), StepError> {
        let line_state = &mut self.state.lines[line as usize];
        if words == line_state.memory {
            return Ok(());
        }
        if line_state.memory != line_state.latest {
            return Err(StepError::Violation(format!(
                "{} changes line {line} from stale data",
                self.static_model.name
            )));
        }
        for (number, remote) in line_state.remotes.iter().enumerate() {
            if self.static_model.permission_of(&remote.configuration) > Permission::None {
                let (name, other) = (
                    &self.static_model.name,
                    self.static_model.remote_name(number as u8),
                );
                return Err(StepError::Violation(format!(
                    "{name} changes line {line}, of which {other} has a copy"
                )));
            }
        }
        line_state.memory = words.clone();
        line_state.latest = words;
        Ok(())
    }
}
