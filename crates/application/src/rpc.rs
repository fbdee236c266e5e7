//! Remote procedure calls over pairs of lines, whose control the two sides hand to and fro.
//!
//! At rest the CPU has one line of a pair and the device the other. A thread writes arguments into its line and loads
//! the other one with the right to write: that is the call. The device withholds the answer, takes the arguments by a
//! clean-invalidate, computes, and answers with the result. Then the roles of the lines are swapped.
//! Longer arguments and results go through further lines of each side, which are taken and read in the same way.

use crate::hardware::InHardware;
use crate::interface::{
    Actions, Application, Contents, Event, Line, Operation, Placement, Scenario, Step, Thread,
    Words,
};
use std::collections::BTreeMap;

/// Contexts, one thread each, and the size of a call.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Calls {
    /// Threads, each with a pair of its own.
    pub contexts: u32,
    /// Lines of arguments, and of results.
    pub payload: Line,
    /// Calls of each thread; without end if not given.
    pub calls: Option<u64>,
    /// Slices of the home among which contexts are dealt out: all lines of a context are of one. 1 for a device that
    /// serves all lines alike.
    pub slices: u32,
    /// Lines between the beginnings of two sides, `payload` at least.
    pub room: Line,
}

impl Calls {
    /// Calls of a device that serves all lines alike, side by side.
    pub fn new(contexts: u32, payload: Line, calls: Option<u64>) -> Calls {
        Calls {
            contexts,
            payload,
            calls,
            slices: 1,
            room: payload,
        }
    }

    /// A line of a side (0 or 1) of a context.
    fn line(&self, context: u32, side: u32, offset: Line) -> Line {
        let within = (2 * (context / self.slices) + side) * self.room + offset;
        within * self.slices + context % self.slices
    }
}

/// What becomes of a call's argument: the procedure.
pub(crate) fn procedure(argument: u64) -> u64 {
    argument.wrapping_mul(3).wrapping_add(1)
}

/// What the device knows of a context.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Context {
    /// The side that is the CPU's.
    cpu: u32,
    /// Whether a call is under way, and how many of its lines have not been taken yet.
    call: Option<Line>,
    /// Reads of the device's side that wait for the result.
    waiting: Vec<Line>,
}

/// The device: it echoes, by its [procedure](self), every word.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Echo {
    calls: Calls,
    contexts: Vec<Context>,
    /// Words of a line.
    words: u16,
    /// What lines hold that the CPU does not.
    lines: BTreeMap<Line, Words>,
}

impl Echo {
    /// Context and side of a line.
    fn place(&self, line: Line) -> (usize, u32) {
        let Calls { slices, room, .. } = self.calls;
        let pair = line / slices / room;
        ((pair / 2 * slices + line % slices) as usize, pair % 2)
    }

    /// What a line holds that came to the device; zeros before.
    fn words(&self, line: Line) -> Words {
        let none = || vec![0; self.words.into()].into_boxed_slice();
        self.lines.get(&line).cloned().unwrap_or_else(none)
    }

    /// All arguments are here: the results become the device's side, and the sides are swapped.
    fn compute(&mut self, number: usize, actions: &mut Actions) {
        let payload = self.calls.payload;
        let cpu = self.contexts[number].cpu;
        for offset in 0..payload {
            let line = |side| self.calls.line(number as u32, side, offset);
            let arguments = self.words(line(cpu));
            let results = arguments.iter().map(|&word| procedure(word)).collect();
            self.lines.insert(line(1 - cpu), results);
        }
        let context = &mut self.contexts[number];
        (context.cpu, context.call) = (1 - cpu, None);
        actions.count("calls", 1);
        for line in std::mem::take(&mut self.contexts[number].waiting) {
            let words = self.words(line);
            actions.answer(line, words);
        }
    }
}

impl Application for Echo {
    fn name(&self) -> &str {
        "two-line RPC"
    }

    fn placement(&self) -> Placement {
        Placement::Between(0..self.calls.lines())
    }

    fn handle(&mut self, event: Event, actions: &mut Actions) {
        match event {
            Event::Start { words } => self.words = words,
            Event::Read { line, .. } => {
                let (number, side) = self.place(line);
                if self.contexts[number].cpu == side {
                    let words = self.words(line);
                    return actions.answer(line, words);
                }
                let context = &mut self.contexts[number];
                context.waiting.push(line);
                if context.call.is_none() {
                    context.call = Some(self.calls.payload);
                    for offset in 0..self.calls.payload {
                        let line = self.calls.line(number as u32, 1 - side, offset);
                        actions.local(line, Operation::CleanInvalidate, false);
                    }
                }
            }
            Event::Write { line, words, .. } => {
                self.lines.insert(line, words);
                actions.accept(line);
            }
            Event::Done { line, .. } => {
                let (number, _) = self.place(line);
                let context = &mut self.contexts[number];
                context.call = context.call.map(|left| left - 1);
                if context.call == Some(0) {
                    self.compute(number, actions);
                }
            }
            _ => {}
        }
    }
}

/// What a thread is about to do.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    /// Begin a call.
    Rest,
    /// Write the arguments in this line of its side.
    Write(Line),
    /// Have the arguments in the cache.
    Fence,
    /// Load this line of the results.
    Read(Line),
    /// Look at what came.
    Judge(Line),
}

/// A thread that calls again and again.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Caller {
    calls: Calls,
    context: u32,
    side: u32,
    phase: Phase,
    left: Option<u64>,
    number: u64,
    wrong: u64,
}

impl Caller {
    fn argument(&self, offset: Line) -> u64 {
        self.number.wrapping_mul(0x1_0001) ^ u64::from(offset)
    }
}

impl Thread for Caller {
    fn step(&mut self, result: u64) -> Step {
        let own = |offset| self.calls.line(self.context, self.side, offset);
        let other = |offset| self.calls.line(self.context, 1 - self.side, offset);
        match self.phase {
            Phase::Rest if self.left == Some(0) => Step::Stop,
            Phase::Rest => {
                self.left = self.left.map(|left| left - 1);
                self.number += 1;
                self.phase = Phase::Write(0);
                Step::Begin
            }
            Phase::Write(offset) => {
                self.phase = match offset + 1 < self.calls.payload {
                    true => Phase::Write(offset + 1),
                    false => Phase::Fence,
                };
                Step::Store {
                    line: own(offset),
                    word: 0,
                    value: self.argument(offset),
                }
            }
            Phase::Fence => {
                self.phase = Phase::Read(0);
                Step::Fence
            }
            Phase::Read(offset) => {
                self.phase = Phase::Judge(offset);
                Step::LoadExclusive {
                    line: other(offset),
                    word: 0,
                }
            }
            Phase::Judge(offset) => {
                self.wrong += u64::from(result != procedure(self.argument(offset)));
                if offset + 1 < self.calls.payload {
                    self.phase = Phase::Read(offset + 1);
                    return self.step(0);
                }
                self.side = 1 - self.side;
                self.phase = Phase::Rest;
                Step::End { what: "call" }
            }
        }
    }
}

impl Scenario for Calls {
    type Application = Echo;
    type Thread = Caller;

    fn lines(&self) -> Line {
        self.contexts.next_multiple_of(self.slices) * 2 * self.room
    }

    fn ends(&self) -> bool {
        self.calls.is_some()
    }

    fn asks(&self) -> Vec<(Operation, bool)> {
        vec![(Operation::CleanInvalidate, false)]
    }

    fn application(&self) -> Echo {
        let context = Context {
            cpu: 0,
            call: None,
            waiting: Vec::new(),
        };
        Echo {
            calls: self.clone(),
            contexts: vec![context; self.contexts as usize],
            words: 0,
            lines: BTreeMap::new(),
        }
    }

    fn threads(&self) -> Vec<Caller> {
        let threads = (0..self.contexts).map(|context| Caller {
            calls: self.clone(),
            context,
            side: 0,
            phase: Phase::Rest,
            left: self.calls,
            number: 0,
            wrong: 0,
        });
        threads.collect()
    }

    /// Every call has given the result of its own arguments.
    fn verify(
        &self,
        application: &Echo,
        threads: &[Caller],
        _contents: &dyn Contents,
    ) -> Result<(), String> {
        right(threads)?;
        match application.contexts.iter().position(|c| c.call.is_some()) {
            Some(context) => Err(format!("the call of context {context} has not ended")),
            None => Ok(()),
        }
    }
}

/// Whether every result was that of its arguments.
fn right(threads: &[Caller]) -> Result<(), String> {
    match threads.iter().find(|thread| thread.wrong > 0) {
        Some(Caller { wrong, context, .. }) => {
            Err(format!("{wrong} results of context {context} are wrong"))
        }
        None => Ok(()),
    }
}

impl InHardware for Calls {
    /// What it has made are lines of arguments.
    fn observe(&self, event: &Event, made: &mut u64, actions: &mut Actions) {
        if let Event::Done { .. } = event {
            *made += 1;
            let whole = made.is_multiple_of(self.payload.into());
            actions.count("calls", whole.into());
        }
    }

    fn judge(&self, made: u64, threads: &[Caller], _contents: &dyn Contents) -> Result<(), String> {
        right(threads)?;
        let (calls, left) = (
            made / u64::from(self.payload),
            made % u64::from(self.payload),
        );
        // The last call of a thread may not have come as far as the device when its time was over.
        let begun: u64 = threads.iter().map(|thread| thread.number).sum();
        let possible = begun.saturating_sub(threads.len() as u64)..=begun;
        match left == 0 && possible.contains(&calls) {
            true => Ok(()),
            false => Err(format!("{begun} calls took {made} lines of arguments")),
        }
    }
}
