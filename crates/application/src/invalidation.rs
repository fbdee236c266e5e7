//! An engine that takes a range of lines from the CPU by clean-invalidates, as fast as they are accepted.

use crate::interface::{
    Actions, Application, Contents, Event, Line, Operation, Placement, Scenario, Step, Thread,
};
use cohkit_protocol::protocol::Right;
use std::collections::BTreeSet;

/// What is taken from whom.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Invalidation {
    /// The lines from 0.
    pub lines: Line,
    /// Local operations asked for and not complete, at most.
    pub outstanding: u32,
    /// Whether the thread writes the lines before, or reads them.
    pub dirty: bool,
    /// Whether the thread touches the lines at all.
    pub held: bool,
}

/// The engine. It begins when the CPU tells it to, by taking the line after the last.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Engine {
    lines: Line,
    outstanding: u32,
    /// The line to take next; none before it has begun.
    next: Option<Line>,
    /// Lines that the CPU may have.
    held: BTreeSet<Line>,
    complete: Line,
}

impl Engine {
    fn ask(&mut self, actions: &mut Actions) {
        let Some(line) = self.next.filter(|&line| line < self.lines) else {
            return;
        };
        self.next = Some(line + 1);
        actions.count("already evicted", u64::from(!self.held.contains(&line)));
        actions.local(line, Operation::CleanInvalidate, false);
    }
}

impl Application for Engine {
    fn name(&self) -> &str {
        "invalidation engine"
    }

    fn placement(&self) -> Placement {
        Placement::Beside
    }

    fn handle(&mut self, event: Event, actions: &mut Actions) {
        match event {
            Event::Changed { line, to, .. } => {
                if line == self.lines && to == Right::Write && self.next.is_none() {
                    self.next = Some(0);
                    for _ in 0..self.outstanding {
                        self.ask(actions);
                    }
                }
                match to {
                    Right::None => self.held.remove(&line),
                    _ => self.held.insert(line),
                };
            }
            Event::Done { dirty, .. } => {
                actions.count("invalidated", 1);
                actions.count("written back", dirty.into());
                self.complete += 1;
                self.ask(actions);
            }
            Event::Stop => self.next = Some(self.lines),
            _ => {}
        }
    }
}

/// A thread that touches the lines and then tells the engine to begin.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Toucher {
    lines: Line,
    dirty: bool,
    next: Line,
}

impl Thread for Toucher {
    fn step(&mut self, _result: u64) -> Step {
        let line = self.next;
        self.next += 1;
        let (word, value) = (0, u64::from(line));
        if line < self.lines {
            return match self.dirty {
                true => Step::Store { line, word, value },
                false => Step::Load { line, word },
            };
        }
        // What it has written must be in the cache before the engine comes for it.
        match line - self.lines {
            0 => Step::Fence,
            1 => Step::LoadExclusive {
                line: self.lines,
                word,
            },
            _ => Step::Stop,
        }
    }
}

impl Scenario for Invalidation {
    type Application = Engine;
    type Thread = Toucher;

    fn lines(&self) -> Line {
        self.lines + 1
    }

    fn ends(&self) -> bool {
        true
    }

    fn asks(&self) -> Vec<(Operation, bool)> {
        vec![(Operation::CleanInvalidate, false)]
    }

    fn application(&self) -> Engine {
        Engine {
            lines: self.lines,
            outstanding: self.outstanding,
            next: None,
            held: BTreeSet::new(),
            complete: 0,
        }
    }

    fn threads(&self) -> Vec<Toucher> {
        vec![Toucher {
            lines: self.lines,
            dirty: self.dirty,
            next: if self.held { 0 } else { self.lines },
        }]
    }

    /// Every line has been taken.
    fn verify(
        &self,
        application: &Engine,
        _threads: &[Toucher],
        contents: &dyn Contents,
    ) -> Result<(), String> {
        let complete = application.complete;
        if complete != self.lines {
            return Err(format!("{complete} of {} lines were taken", self.lines));
        }
        let wrong = |&line: &Line| {
            let written = self.held && self.dirty;
            let kept = contents.initial(line, 0);
            contents.word(line, 0) != if written { line.into() } else { kept }
        };
        match (0..self.lines).find(wrong) {
            Some(line) => Err(format!("line {line} has lost what was written")),
            None => Ok(()),
        }
    }
}
