//! An engine that takes a range of lines from the CPU by clean-invalidates, as fast as they are accepted.
//!
//! Of lines in the CPU's memory the device has copies of its own: there its engines take each by loading it with the right to
//! write, which leaves the CPU none.

use crate::interface::{
    Actions, Application, Contents, Event, Line, Operation, Placement, Scenario, Step, Thread, Time,
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
    /// Picoseconds after which the engine begins, whatever the thread has done; 0 if it waits until the thread tells it to.
    pub after: Time,
    /// Whether the lines are in the CPU's memory, of which the device has copies of its own. Then there are as many engines
    /// as lines that are taken at a time.
    pub cached: bool,
}

/// The engine. It begins after a time, or when the CPU tells it to, by taking the line after the last.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Engine {
    of: Invalidation,
    /// The line to take next; none before it has begun.
    next: Option<Line>,
    /// Lines that the CPU may have.
    held: BTreeSet<Line>,
    complete: Line,
}

impl Engine {
    fn ask(&mut self, actions: &mut Actions) {
        let Some(line) = self.next.filter(|&line| line < self.of.lines) else {
            return;
        };
        self.next = Some(line + 1);
        if self.of.after == 0 {
            actions.count("already evicted", u64::from(!self.held.contains(&line)));
        }
        actions.local(line, Operation::CleanInvalidate, false);
    }

    fn begin(&mut self, actions: &mut Actions) {
        if self.next.is_none() {
            self.next = Some(0);
            for _ in 0..self.of.outstanding {
                self.ask(actions);
            }
        }
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
            // The engines do everything.
            _ if self.of.cached => {}
            Event::Start { .. } if self.of.after > 0 => actions.wake(0, self.of.after),
            Event::Timer { .. } => self.begin(actions),
            Event::Changed { line, to, .. } => {
                if line == self.of.lines && to == Right::Write && self.of.after == 0 {
                    self.begin(actions);
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
            Event::Stop => self.next = Some(self.of.lines),
            _ => {}
        }
    }
}

/// A thread that touches the lines and then tells the engine to begin, if that waits for it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Toucher {
    lines: Line,
    dirty: bool,
    tells: bool,
    next: Line,
}

impl Toucher {
    fn step(&mut self) -> Step {
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
        match (line - self.lines, self.tells) {
            (0, _) => Step::Fence,
            (1, true) => Step::LoadExclusive {
                line: self.lines,
                word,
            },
            // Who begins to count where the engine begins sees that the lines were touched in time.
            (1, false) => Step::Count {
                what: "touched",
                by: self.lines.into(),
            },
            _ => Step::Stop,
        }
    }
}

/// An engine of a device that caches the lines: it takes each of so many.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Taker {
    lines: Line,
    step: Line,
    next: Line,
    after: Time,
    does: Does,
    taken: Line,
}

/// What a taker does next.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Does {
    Wait,
    Begin,
    Load,
    End,
    Count,
}

impl Taker {
    fn step(&mut self) -> Step {
        if self.does == Does::Begin && self.next >= self.lines {
            return Step::Stop;
        }
        let (does, step) = match self.does {
            Does::Wait => (Does::Begin, Step::Work(self.after)),
            Does::Begin => (Does::Load, Step::Begin),
            Does::Load => {
                let (line, word) = (self.next, 0);
                (Does::End, Step::LoadExclusive { line, word })
            }
            Does::End => {
                self.next = self.next.saturating_add(self.step);
                self.taken += 1;
                let what = "line taken";
                (Does::Count, Step::End { what })
            }
            Does::Count => {
                let (what, by) = ("invalidated", 1);
                (Does::Begin, Step::Count { what, by })
            }
        };
        self.does = does;
        step
    }
}

/// The thread of the CPU, or an engine of the device.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Hand {
    /// Of the CPU.
    Toucher(Toucher),
    /// Of the device.
    Taker(Taker),
}

impl Thread for Hand {
    fn step(&mut self, _result: u64) -> Step {
        match self {
            Hand::Toucher(toucher) => toucher.step(),
            Hand::Taker(taker) => taker.step(),
        }
    }
}

impl Scenario for Invalidation {
    type Application = Engine;
    type Thread = Hand;

    fn lines(&self) -> Line {
        self.lines + 1
    }

    fn ends(&self) -> bool {
        true
    }

    fn asks(&self) -> Vec<(Operation, bool)> {
        let asks = (!self.cached).then_some((Operation::CleanInvalidate, false));
        Vec::from_iter(asks)
    }

    fn hears(&self) -> bool {
        !self.cached && self.after == 0
    }

    fn engines(&self) -> u32 {
        match self.cached {
            true => self.outstanding,
            false => 0,
        }
    }

    fn application(&self) -> Engine {
        Engine {
            of: self.clone(),
            next: None,
            held: BTreeSet::new(),
            complete: 0,
        }
    }

    fn threads(&self) -> Vec<Hand> {
        let toucher = Hand::Toucher(Toucher {
            lines: self.lines,
            dirty: self.dirty,
            tells: self.hears(),
            next: if self.held { 0 } else { self.lines },
        });
        let taker = |number| {
            Hand::Taker(Taker {
                lines: self.lines,
                step: self.engines(),
                next: number,
                after: self.after,
                does: Does::Wait,
                taken: 0,
            })
        };
        std::iter::once(toucher)
            .chain((0..self.engines()).map(taker))
            .collect()
    }

    /// Every line has been taken.
    fn verify(
        &self,
        application: &Engine,
        threads: &[Hand],
        contents: &dyn Contents,
    ) -> Result<(), String> {
        let taken = threads.iter().map(|thread| match thread {
            Hand::Toucher(_) => 0,
            Hand::Taker(taker) => taker.taken,
        });
        let complete = application.complete + taken.sum::<Line>();
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
