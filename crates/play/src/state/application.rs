//! The application: its events, its actions and its memory.

use super::*;

impl<S: Scenario> Transition<'_, '_, S>
where
    S::Application: Clone + Eq + Hash,
    S::Thread: Clone + Eq + Hash,
{
    pub(super) fn schedule_event(&mut self, way: MemoryChannel, event: Event) {
        self.state.pending_events.push((way, event));
        // Events of different kinds or lines are unordered.
        self.state.pending_events.sort_by_key(|&(way, _)| way);
    }

    /// Delivers an event to the application and executes its actions.
    pub(super) fn deliver_event(&mut self, event: Event) -> Result<(), Violation> {
        self.state.contract.event(&event);
        let mut actions = Actions::new();
        self.state.application.handle(event, &mut actions);
        let actions: Vec<Action> = actions.take().collect();
        for action in actions {
            let judged = self.state.contract.action(&action);
            judged.map_err(|breach| {
                format!("line {}: {} {}", breach.line, self.of.name, breach.what)
            })?;
            self.execute_action(action)?;
        }
        Ok(())
    }

    pub(super) fn execute_action(&mut self, action: Action) -> Result<(), Violation> {
        if let Action::Answer { line, words } | Action::Store { line, words, .. } = &action {
            let (name, all, given) = (&self.of.name, self.of.model.words, words.len());
            if given != usize::from(all) {
                return Err(format!(
                    "line {line}: {name} gives a line of {given} words; lines have {all}"
                ));
            }
        }
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
            } => {
                let mut locals = self.of.model.home.locals.iter();
                let wanted = |l: &cohkit_protocol::controller::Local| {
                    l.ensures == operation.leaves() && l.locks == lock
                };
                let (Some(local), true) = (locals.position(wanted), line < self.of.model.lines)
                else {
                    let (name, what) = (&self.of.name, operation.name());
                    return Err(format!(
                        "{name} asks for a {what} of line {line}, which does not exist"
                    ));
                };
                self.state.outstanding_operations.insert(line, false);
                let unit = self.of.unit(line);
                self.state.units[unit]
                    .locals
                    .push((line, Some(local as u8)));
            }
            Action::Unlock { line } => {
                self.state.locks.remove(&line);
                let unit = self.of.unit(line);
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
                return Err(format!("{}: {NO_BUS}", self.of.name));
            }
            Action::CoherentLoad { .. }
            | Action::CoherentStore { .. }
            | Action::CoherentUpdate { .. }
            | Action::Forgo { .. } => {
                return Err(format!("{}: {NO_HOST}", self.of.name));
            }
        }
        Ok(())
    }

    fn start_word_operation(&mut self, tag: u32, line: Line, word: u16, what: WordOperation) {
        self.state.memory.push(Job::Words {
            tag,
            line,
            word,
            what,
        });
    }

    /// True if the home reads and writes this line in memory.
    fn is_homed(&self, line: Line) -> bool {
        line < self.of.model.lines && !self.of.placement.serves(line)
    }

    /// Returns a line of the application's memory.
    fn memory_words(&self, line: Line) -> Words {
        match self.is_homed(line) {
            true => self.state.lines[line as usize].memory.clone(),
            false => {
                let own = self.state.own.get(&line).cloned();
                own.unwrap_or_else(|| self.of.zeros())
            }
        }
    }

    fn set_memory(&mut self, line: Line, words: Words) -> Result<(), Violation> {
        match self.is_homed(line) {
            true => self.write_by_application(line, words)?,
            false => drop(self.state.own.insert(line, words)),
        }
        Ok(())
    }

    /// Executes a pending operation of the application's memory, reading or writing at this moment.
    pub(super) fn job(&mut self, place: usize) -> Result<(), Violation> {
        match self.state.memory[place].clone() {
            Job::Fetch { tag, next, end } => {
                let words = self.memory_words(next);
                match next + 1 < end {
                    true => {
                        let next = next + 1;
                        self.state.memory[place] = Job::Fetch { tag, next, end };
                    }
                    false => drop(self.state.memory.remove(place)),
                }
                let line = next;
                self.deliver_event(Event::Fetched { tag, line, words })
            }
            Job::Store { tag, line, words } => {
                self.state.memory.remove(place);
                self.set_memory(line, words)?;
                self.deliver_event(Event::Stored { tag })
            }
            Job::Words {
                tag,
                line,
                word,
                what,
            } => {
                self.state.memory.remove(place);
                let mut all = self.memory_words(line);
                // The contract has checked that the words are within the line.
                let its = &mut all[usize::from(word)..];
                match what {
                    WordOperation::Read(words) => {
                        let words = its[..usize::from(words)].into();
                        self.deliver_event(Event::WordsRead { tag, words })
                    }
                    WordOperation::Write(words) => {
                        its[..words.len()].copy_from_slice(&words);
                        self.set_memory(line, all)?;
                        self.deliver_event(Event::Stored { tag })
                    }
                    WordOperation::Update(update) => {
                        let before = its[0];
                        its[0] = update.of(before);
                        self.set_memory(line, all)?;
                        let words = [before].into();
                        self.deliver_event(Event::WordsRead { tag, words })
                    }
                }
            }
        }
    }

    /// Replaces the contents of one of the home's lines on behalf of the application.
    pub(super) fn write_by_application(
        &mut self,
        line: Line,
        words: Words,
    ) -> Result<(), Violation> {
        let place = &mut self.state.lines[line as usize];
        if words == place.memory {
            return Ok(());
        }
        if place.memory != place.last {
            return Err(format!(
                "{} changes line {line} from stale data",
                self.of.name
            ));
        }
        for (number, remote) in place.remotes.iter().enumerate() {
            if self.of.right(&remote.configuration) > Right::None {
                let (name, other) = (&self.of.name, self.of.remote_name(number as u8));
                return Err(format!(
                    "{name} changes line {line}, of which {other} has a copy"
                ));
            }
        }
        place.memory = words.clone();
        place.last = words;
        Ok(())
    }
}
