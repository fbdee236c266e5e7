//! Directory entries and recalls of lines.

use super::words::copy_words;
use super::{Difference, Flight, Model, LINES};
use crate::systems::directory::Directory;
use cohkit_protocol::protocol::Permission;

impl Model<'_> {
    /// The home chooses a line to recall, for a message about another line: both belong to one set, whose entries are
    /// taken, and the other line has none.
    pub(super) fn choose_victim(&mut self, line: usize, victim: usize) -> Result<(), Difference> {
        let (directory, entries) = self.directory;
        let wrong = |reason: String| {
            Err(format!(
                "the home chooses line {victim} to recall for line {line}: {reason}"
            ))
        };
        let home = self.home();
        let waits = |flight: &Flight| (flight.to, flight.line) == (home, line);
        let set = entries.set_of(line);
        if directory == Directory::Full {
            return wrong("the home has an entry for every line".to_string());
        }
        if let Some(other) = self.data.recall {
            return wrong(format!("the recall of line {other} is in progress"));
        }
        if !self.flights.iter().any(waits) {
            return wrong(format!("no message about line {line} is in flight"));
        }
        if self.has_entry(line) {
            return wrong(format!("line {line} has an entry"));
        }
        if self.entries_of(set) < entries.ways as usize {
            return wrong(format!("set {set} has a free entry"));
        }
        if entries.set_of(victim) != set || !self.has_entry(victim) {
            return wrong(format!("line {victim} has no entry in set {set}"));
        }
        self.data.victim = Some(victim);
        Ok(())
    }

    /// Begins a recall: that of the chosen line, which still has an entry.
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

    /// Checks that a recalled line is in no cache, and that memory has its last value.
    pub(super) fn check_recalled(&self, line: usize) -> Result<(), Difference> {
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
