//! Directory entries and recalls of lines.

use super::words::copy_words;
use super::{Difference, Flight, Model, LINES};
use crate::systems::directory::Directory;
use cohkit_protocol::controller::Event;
use cohkit_protocol::execute::{Configuration, Outcome, Trigger};
use cohkit_protocol::protocol::Permission;

impl Model<'_> {
    /// A message about this line waits for an entry: no earlier message waits, the set is full, and a message in flight
    /// gives the line an entry.
    pub(super) fn keep_entry(&mut self, line: usize) -> Result<(), Difference> {
        if let Some(other) = self.data.waiting.replace(line) {
            return Err(format!(
                "line {line} waits for an entry before line {other} has one"
            ));
        }
        self.check_full_set(line)
            .map_err(|reason| format!("line {line} waits for an entry: {reason}"))
    }

    /// Checks after a row of the home that a line has not got an entry that is kept for another line of its set.
    pub(super) fn take_entry(
        &mut self,
        line: usize,
        before: &Configuration,
    ) -> Result<(), Difference> {
        if *before != self.machines[1].initial() || !self.has_entry(line) {
            return Ok(());
        }
        let (_, entries) = self.directory;
        match self.data.waiting {
            Some(waiting) if waiting == line => {
                self.data.waiting = None;
                Ok(())
            }
            Some(waiting) if entries.set_of(waiting) == entries.set_of(line) => Err(format!(
                "line {line} gets the directory entry that line {waiting} waits for"
            )),
            _ => Ok(()),
        }
    }

    /// Checks that all entries of a line's set are taken, that the line has none, and that a message about it waits for
    /// one.
    fn check_full_set(&self, line: usize) -> Result<(), Difference> {
        let (directory, entries) = self.directory;
        let (home, set) = (self.home(), entries.set_of(line));
        let waits =
            |flight: &Flight| (flight.to, flight.line) == (home, line) && self.needs_entry(flight);
        if directory == Directory::Full {
            return Err("the home has an entry for every line".to_string());
        }
        if self.has_entry(line) {
            return Err(format!("line {line} has an entry"));
        }
        if !self.flights.iter().any(waits) {
            return Err(format!(
                "no message that gives line {line} an entry is in flight"
            ));
        }
        if self.entries_of(set) < entries.ways as usize {
            return Err(format!("set {set} has a free entry"));
        }
        Ok(())
    }

    /// True if the home's row for a message leads a line without an entry to another configuration.
    fn needs_entry(&self, flight: &Flight) -> bool {
        let initial = self.machines[1].initial();
        let trigger = Trigger {
            event: Event::Message(flight.message),
            sender: (flight.from != self.home()).then_some(flight.from as u16),
            executing_remote: None,
            home: 0,
            fields: &flight.fields,
        };
        let mut next = initial.clone();
        let outcome = self.machines[1].step(&mut next, trigger, &mut &*self.agents.home);
        matches!(outcome, Ok(Outcome::Taken { .. })) && next != initial
    }

    /// The home chooses a line to recall, for a message about another line: both belong to one set, whose entries are
    /// taken, and the other line has none.
    pub(super) fn choose_victim(&mut self, line: usize, victim: usize) -> Result<(), Difference> {
        let (_, entries) = self.directory;
        let wrong = |reason: String| {
            Err(format!(
                "the home chooses line {victim} to recall for line {line}: {reason}"
            ))
        };
        let set = entries.set_of(line);
        self.check_full_set(line).or_else(wrong)?;
        if self.data.waiting.is_none() {
            return wrong("it keeps no entry for the message that waits".into());
        }
        if let Some(other) = self.data.recall {
            return wrong(format!("the recall of line {other} is in progress"));
        }
        if entries.set_of(victim) != set || !self.has_entry(victim) {
            return wrong(format!("line {victim} has no entry in set {set}"));
        }
        self.data.victim = Some(victim);
        Ok(())
    }

    /// Begins a recall: that of the chosen line, which still has an entry. A transaction of the line may be in progress,
    /// in a state whose row takes the operation; the step compares the row, and the end of the recall the data.
    pub(super) fn begin_recall(&mut self, line: usize) -> Result<(), Difference> {
        if let Some(other) = self.data.recall.replace(line) {
            return Err(format!("a recall begins during that of line {other}"));
        }
        match self.data.victim.take() {
            Some(victim) if victim == line && self.has_entry(line) => Ok(()),
            Some(victim) if victim == line => Err("the line has no directory entry".to_string()),
            Some(victim) => Err(format!("the home has chosen line {victim}")),
            None => Err("the home has chosen no line".to_string()),
        }
    }

    /// True if a line has a directory entry.
    fn has_entry(&self, line: usize) -> bool {
        self.configurations[self.home()][line] != self.machines[1].initial()
    }

    /// Number of entries that lines of a set have.
    fn entries_of(&self, set: usize) -> usize {
        let (_, entries) = self.directory;
        let lines = (0..LINES).filter(|&line| entries.set_of(line) == set);
        lines.filter(|&line| self.has_entry(line)).count()
    }

    /// Ends a recall: the line is in no cache, and memory has its last value.
    pub(super) fn end_recall(&mut self, line: usize) -> Result<(), Difference> {
        self.recalls += 1;
        let states = &self.agents.protocol.remote.states;
        let holds = |cache: &usize| {
            let state = self.configurations[*cache][line].state;
            states[usize::from(state)].permission > Permission::None
        };
        if let Some(cache) = (0..self.home()).find(holds) {
            let name = self.name(cache);
            return Err(format!("the recall ends while {name} has a copy"));
        }
        let (memory, last) = (
            self.data.memory[line],
            self.data.values[line].last().copied(),
        );
        match Some(memory) == last {
            true => Ok(()),
            false => Err(format!(
                "the recall ends while memory holds {memory:x}; the last value is {}",
                copy_words(last)
            )),
        }
    }

    /// Checks that no more lines of a set have a directory entry than a set has entries, after a step on a line.
    pub(super) fn check_directory(&self, line: usize) -> Result<(), Difference> {
        let (directory, entries) = self.directory;
        let set = entries.set_of(line);
        match self.entries_of(set) {
            used if directory == Directory::SetAssociative && used > entries.ways as usize => {
                Err(format!("{used} lines of set {set} have a directory entry"))
            }
            _ => Ok(()),
        }
    }
}
