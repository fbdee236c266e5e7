//! An engine that invalidates the CPU's copies of a range of lines by clean-invalidates, as fast as they are accepted.
//!
//! With [`Invalidation::cached`], the lines are in the CPU's memory and the device caches them. The device's engines
//! then load each line with write permission, which invalidates the CPU's copy.

use crate::interface::{
    Actions, Application, Contents, Event, Line, Operation, Placement, Scenario, Step, Thread, Time,
};
use cohkit_protocol::protocol::Permission;
use std::collections::BTreeSet;

/// Parameters of the invalidation.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Invalidation {
    /// Number of lines, starting at line 0.
    pub lines: Line,
    /// Maximum number of outstanding local operations.
    pub outstanding: u32,
    /// True if the thread writes the lines before the invalidation, false if it reads them; see `held`.
    pub dirty: bool,
    /// True if the thread accesses the lines before the invalidation, so that the CPU may hold copies of them.
    pub held: bool,
    /// Delay in picoseconds after which the engine starts, independent of the thread; 0 if the engine waits for the
    /// thread's signal.
    pub start_delay: Time,
    /// True if the lines are in the CPU's memory and the device caches them. The number of engines then equals
    /// `outstanding`.
    pub cached: bool,
}

/// The engine next to the home. It starts after a delay, or on the thread's signal: the CPU takes write permission for
/// the line after the last.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Engine {
    parameters: Invalidation,
    /// Next line to invalidate; `None` before the start.
    next: Option<Line>,
    /// Lines of which the CPU may hold a copy.
    cpu_lines: BTreeSet<Line>,
    /// Number of completed clean-invalidates.
    invalidated: Line,
}

impl Engine {
    /// Requests the clean-invalidate of the next line, if any.
    fn request_next(&mut self, actions: &mut Actions) {
        let Some(line) = self.next.filter(|&line| line < self.parameters.lines) else {
            return;
        };
        self.next = Some(line + 1);
        if self.parameters.start_delay == 0 {
            actions.count(
                "already evicted",
                u64::from(!self.cpu_lines.contains(&line)),
            );
        }
        actions.local(line, Operation::CleanInvalidate, false);
    }

    /// Starts the invalidation, unless it has started.
    fn start(&mut self, actions: &mut Actions) {
        if self.next.is_none() {
            self.next = Some(0);
            for _ in 0..self.parameters.outstanding {
                self.request_next(actions);
            }
        }
    }
}

impl Application for Engine {
    fn name(&self) -> &str {
        "invalidation engine"
    }

    fn placement(&self) -> Placement {
        Placement::Observer
    }

    /// Starts to invalidate after the delay, or when the CPU takes write permission for the signal line; each
    /// completion starts the next operation.
    fn handle(&mut self, event: Event, actions: &mut Actions) {
        match event {
            // The engines of a caching device are threads, and do all the work.
            _ if self.parameters.cached => {}
            Event::Start { .. } if self.parameters.start_delay > 0 => {
                actions.wake(0, self.parameters.start_delay)
            }
            Event::Timer { .. } => self.start(actions),
            Event::PermissionChange { line, to, .. } => {
                if line == self.parameters.lines
                    && to == Permission::Write
                    && self.parameters.start_delay == 0
                {
                    self.start(actions);
                }
                match to {
                    Permission::None => self.cpu_lines.remove(&line),
                    _ => self.cpu_lines.insert(line),
                };
            }
            Event::LocalCompletion { dirty, .. } => {
                actions.count("invalidated", 1);
                actions.count("written back", dirty.into());
                self.invalidated += 1;
                self.request_next(actions);
            }
            Event::Stop => self.next = Some(self.parameters.lines),
            _ => {}
        }
    }
}

/// A thread that accesses the lines and then signals the engine, if the engine waits for it. The signal is a load with
/// write permission of the line after the last.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct AccessThread {
    /// Number of lines.
    lines: Line,
    /// True to store to the lines, false to load them.
    dirty: bool,
    /// True if the engine waits for the signal.
    signals_engine: bool,
    /// Next line to access; from `lines` on, the number of the next step after the accesses.
    next: Line,
}

impl AccessThread {
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
        // The thread's stores must be in the cache before the engine invalidates the lines.
        match (line - self.lines, self.signals_engine) {
            (0, _) => Step::Fence,
            (1, true) => Step::LoadExclusive {
                line: self.lines,
                word,
            },
            // An observer of this count can verify that the lines were accessed before the engine started.
            (1, false) => Step::Count {
                name: "touched",
                by: self.lines.into(),
            },
            _ => Step::Stop,
        }
    }
}

/// An engine of a device that caches the lines: loads every `step`-th line with write permission, and records the
/// latency of each load as `line taken`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct CachingEngine {
    /// Number of lines of all engines.
    lines: Line,
    /// Number of engines.
    step: Line,
    /// Next line to load.
    next: Line,
    /// Delay before the first load, in picoseconds.
    start_delay: Time,
    next_step: EngineStep,
    /// Number of lines loaded.
    lines_taken: Line,
}

/// Next step of an engine. `Begin` and `End` delimit the measured latency of a load.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum EngineStep {
    /// Waits for the delay before the first load.
    Wait,
    /// Starts the time measurement of a load.
    Begin,
    /// Loads a line with write permission.
    Load,
    /// Ends the time measurement.
    End,
    /// Counts the line.
    Count,
}

impl CachingEngine {
    fn step(&mut self) -> Step {
        if self.next_step == EngineStep::Begin && self.next >= self.lines {
            return Step::Stop;
        }
        let (next_step, step) = match self.next_step {
            EngineStep::Wait => (EngineStep::Begin, Step::Work(self.start_delay)),
            EngineStep::Begin => (EngineStep::Load, Step::Begin),
            EngineStep::Load => {
                let (line, word) = (self.next, 0);
                (EngineStep::End, Step::LoadExclusive { line, word })
            }
            EngineStep::End => {
                self.next = self.next.saturating_add(self.step);
                self.lines_taken += 1;
                let name = "line taken";
                (EngineStep::Count, Step::End { name })
            }
            EngineStep::Count => {
                let (name, by) = ("invalidated", 1);
                (EngineStep::Begin, Step::Count { name, by })
            }
        };
        self.next_step = next_step;
        step
    }
}

/// Initiator of accesses: the CPU's thread, or an engine of the device.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Initiator {
    /// The CPU's thread.
    AccessThread(AccessThread),
    /// An engine of the device.
    CachingEngine(CachingEngine),
}

impl Thread for Initiator {
    fn step(&mut self, _result: u64) -> Step {
        match self {
            Initiator::AccessThread(thread) => thread.step(),
            Initiator::CachingEngine(engine) => engine.step(),
        }
    }
}

impl Scenario for Invalidation {
    type Application = Engine;
    type Thread = Initiator;

    fn lines(&self) -> Line {
        self.lines + 1
    }

    fn terminates(&self) -> bool {
        true
    }

    fn requested_operations(&self) -> Vec<(Operation, bool)> {
        let operations = (!self.cached).then_some((Operation::CleanInvalidate, false));
        Vec::from_iter(operations)
    }

    fn needs_change_events(&self) -> bool {
        !self.cached && self.start_delay == 0
    }

    fn engines(&self) -> u32 {
        match self.cached {
            true => self.outstanding,
            false => 0,
        }
    }

    fn application(&self) -> Engine {
        Engine {
            parameters: self.clone(),
            next: None,
            cpu_lines: BTreeSet::new(),
            invalidated: 0,
        }
    }

    fn threads(&self) -> Vec<Initiator> {
        let access_thread = Initiator::AccessThread(AccessThread {
            lines: self.lines,
            dirty: self.dirty,
            signals_engine: self.needs_change_events(),
            next: if self.held { 0 } else { self.lines },
        });
        let engine = |number| {
            Initiator::CachingEngine(CachingEngine {
                lines: self.lines,
                step: self.engines(),
                next: number,
                start_delay: self.start_delay,
                next_step: EngineStep::Wait,
                lines_taken: 0,
            })
        };
        std::iter::once(access_thread)
            .chain((0..self.engines()).map(engine))
            .collect()
    }

    /// Checks that every line was invalidated and kept its data.
    fn verify(
        &self,
        application: &Engine,
        threads: &[Initiator],
        contents: &dyn Contents,
    ) -> Result<(), String> {
        let lines_taken = threads.iter().map(|thread| match thread {
            Initiator::AccessThread(_) => 0,
            Initiator::CachingEngine(engine) => engine.lines_taken,
        });
        let invalidated = application.invalidated + lines_taken.sum::<Line>();
        if invalidated != self.lines {
            return Err(format!("{invalidated} of {} lines were taken", self.lines));
        }
        let has_lost_write = |&line: &Line| {
            let written = self.held && self.dirty;
            let initial = contents.initial(line, 0);
            contents.word(line, 0) != if written { line.into() } else { initial }
        };
        match (0..self.lines).find(has_lost_write) {
            Some(line) => Err(format!("line {line} has lost a write")),
            None => Ok(()),
        }
    }
}
