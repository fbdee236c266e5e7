//! Monitor of the obligations of an application, evaluated on its events and actions.

use crate::interface::{Action, Event, Line, Operation, PageFault, Placement};
use std::collections::{BTreeMap, BTreeSet};

/// A violation of the contract by an application.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Breach {
    /// The line concerned; 0 if the violation concerns a register.
    pub line: Line,
    /// Description of the violation: the predicate of a sentence with the application as its subject.
    pub description: String,
}

/// State of a local operation on a line.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum LocalState {
    /// Requested but not complete; the flag is true if it locks.
    Requested(Operation, bool),
    /// Complete, and the lock is held.
    Locked(Operation),
}

/// Monitor of one application.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Contract {
    /// Position of the application, which determines the lines that it may write.
    placement: Placement,
    /// Number of lines of the home; lines from this one on are private to the application.
    homed_lines: Line,
    /// Words per line, from [`Event::Start`].
    words: u16,
    /// Outstanding reads and writes by the home, by line and by the reply that the home waits for.
    waiting: BTreeSet<(Line, ReplyKind)>,
    /// Lines with an outstanding local operation or a held lock.
    local_states: BTreeMap<Line, LocalState>,
    /// Numbers of the threads with an outstanding register read.
    readers: BTreeSet<u32>,
    /// The latest page fault (tag, word, reason) that the application has not yet abandoned by [`Action::Abandon`].
    page_fault: Option<(u32, u32, PageFault)>,
}

/// Kind of reply that the home waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum ReplyKind {
    /// [`Action::Answer`], to a read.
    Answer,
    /// [`Action::Accept`], to a write.
    Accept,
}

impl Contract {
    /// Creates a monitor without outstanding operations. The home's lines are those below `homed_lines`; others are
    /// private to the application.
    pub fn new(placement: Placement, homed_lines: Line) -> Contract {
        Contract {
            placement,
            homed_lines,
            words: 0,
            waiting: BTreeSet::new(),
            local_states: BTreeMap::new(),
            readers: BTreeSet::new(),
            page_fault: None,
        }
    }

    /// Records an event that reaches the application.
    pub fn record_event(&mut self, event: &Event) {
        match *event {
            Event::Start { words } => self.words = words,
            Event::Read { line, .. } => {
                self.waiting.insert((line, ReplyKind::Answer));
            }
            Event::Write { line, .. } => {
                self.waiting.insert((line, ReplyKind::Accept));
            }
            Event::RegisterRead { thread, .. } => {
                self.readers.insert(thread);
            }
            Event::PageFault { tag, word, fault } => self.page_fault = Some((tag, word, fault)),
            Event::LocalCompletion { line, .. } => {
                if let Some(LocalState::Requested(operation, true)) =
                    self.local_states.remove(&line)
                {
                    self.local_states
                        .insert(line, LocalState::Locked(operation));
                }
            }
            _ => {}
        }
    }

    /// Checks and records an action of the application.
    ///
    /// # Errors
    /// The action violates the contract in the current state.
    pub fn check_action(&mut self, action: &Action) -> Result<(), Breach> {
        match *action {
            Action::Answer { line, .. } => {
                let is_outstanding = self.waiting.remove(&(line, ReplyKind::Answer));
                require(is_outstanding, line, || {
                    "answers a read that is not outstanding".into()
                })
            }
            Action::Accept { line } => {
                let is_outstanding = self.waiting.remove(&(line, ReplyKind::Accept));
                require(is_outstanding, line, || {
                    "accepts a write that is not outstanding".into()
                })
            }
            Action::Reply { thread, .. } => {
                let is_outstanding = self.readers.remove(&thread);
                require(is_outstanding, 0, || {
                    format!("answers thread {thread}, which has no outstanding register read")
                })
            }
            Action::Local {
                line,
                operation,
                lock,
            } => self.start_local_operation(line, operation, lock),
            Action::Unlock { line } => {
                let is_locked = self.holds(line);
                if is_locked {
                    self.local_states.remove(&line);
                }
                require(is_locked, line, || {
                    "unlocks a line that it has not locked".into()
                })
            }
            Action::Abandon { tag } => {
                let fault = self.page_fault.take_if(|(access, ..)| *access == tag);
                require(fault.is_some(), 0, || {
                    format!("cancels its access {tag}, which has not caused the latest page fault")
                })
            }
            Action::Store { line, .. } => self.check_write(line),
            Action::ReadWords {
                line, word, words, ..
            } => self.check_words(line, word, words.into()),
            Action::WriteWords {
                line,
                word,
                ref words,
                ..
            } => {
                self.check_words(line, word, words.len())?;
                self.check_write(line)
            }
            Action::UpdateWord { line, word, .. } => {
                self.check_words(line, word, 1)?;
                self.check_write(line)
            }
            _ => Ok(()),
        }
    }

    /// Records the request of a local operation, of which a line has at most one, and none while it is locked.
    fn start_local_operation(
        &mut self,
        line: Line,
        operation: Operation,
        lock: bool,
    ) -> Result<(), Breach> {
        let name = operation.name();
        let description = match self.local_states.get(&line) {
            None => {
                let state = LocalState::Requested(operation, lock);
                self.local_states.insert(line, state);
                return Ok(());
            }
            Some(LocalState::Requested(pending, _)) => {
                let pending = pending.name();
                format!("asks for a {name} before its {pending} is complete")
            }
            Some(LocalState::Locked(_)) => format!("asks for a {name} under its own lock"),
        };
        Err(Breach { line, description })
    }

    /// Checks a write to memory: the application must serve the line or prevent the creation of copies by a lock.
    fn check_write(&self, line: Line) -> Result<(), Breach> {
        let is_private = line >= self.homed_lines;
        let has_invalidated = matches!(
            self.local_states.get(&line),
            Some(LocalState::Locked(Operation::CleanInvalidate))
        );
        let is_permitted = is_private || self.placement.serves(line) || has_invalidated;
        require(is_permitted, line, || {
            "writes memory of a line that it has not locked and invalidated".into()
        })
    }

    /// Checks that the words lie within one line and that there is at least one.
    fn check_words(&self, line: Line, word: u16, words: usize) -> Result<(), Breach> {
        let line_words = usize::from(self.words);
        let is_within = words > 0 && usize::from(word) + words <= line_words;
        require(is_within, line, || {
            format!("accesses {words} words from {word} on of a line of {line_words}")
        })
    }

    /// Returns the reason, if any, for which the run cannot continue: a page fault that the application did not
    /// abandon. The text is the predicate of a sentence with the application as its subject.
    pub fn blocking_reason(&mut self) -> Option<String> {
        let (tag, word, reason) = self.page_fault.take()?;
        let address = 8 * u64::from(word);
        Some(format!(
            "{reason} (word {word} of the host's memory, address {address:#x}, its access {tag}), and does not handle the page fault"
        ))
    }

    /// True if the application holds the lock of `line`.
    pub fn holds(&self, line: Line) -> bool {
        matches!(self.local_states.get(&line), Some(LocalState::Locked(_)))
    }

    /// Returns the outstanding obligations, grouped by kind and then by line. Each description is the predicate of a
    /// sentence with the application as its subject.
    pub fn obligations(&self) -> impl Iterator<Item = Breach> + '_ {
        let waiting = self.waiting.iter().map(|&(line, reply)| Breach {
            line,
            description: match reply {
                ReplyKind::Answer => "has not answered a read".into(),
                ReplyKind::Accept => "has not accepted a write".into(),
            },
        });
        let local_operations = self.local_states.iter().map(|(&line, state)| Breach {
            line,
            description: match state {
                LocalState::Requested(operation, _) => {
                    format!("waits for its {}", operation.name())
                }
                LocalState::Locked(_) => "has not released its lock".into(),
            },
        });
        let readers = self.readers.iter().map(|thread| Breach {
            line: 0,
            description: format!("has not answered thread {thread}, which reads a register"),
        });
        waiting.chain(local_operations).chain(readers)
    }
}

/// Returns a breach with this description unless the condition holds.
fn require(condition: bool, line: Line, describe: impl FnOnce() -> String) -> Result<(), Breach> {
    match condition {
        true => Ok(()),
        false => Err(Breach {
            line,
            description: describe(),
        }),
    }
}
