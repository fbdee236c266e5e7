//! Remote procedure calls over pairs of lines whose ownership alternates between CPU and device.
//!
//! At rest, the CPU owns one line of a pair and the device the other. A thread writes the arguments into its line and
//! loads the other one with write permission: this load is the call. The device withholds the answer, takes the
//! arguments by a clean-invalidate, computes, and answers with the result. The roles of the two lines are then swapped.
//! Longer arguments and results use further lines on each side, which are handled alike.

use crate::hardware::HardwareScenario;
use crate::interface::{
    Actions, Application, Contents, Event, Line, Operation, Placement, Scenario, Step, Thread,
    Words,
};
use std::collections::BTreeMap;

/// Parameters of the calls. Each context has one thread.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Calls {
    /// Number of threads, each with its own pair.
    pub contexts: u32,
    /// Lines of arguments per call, and lines of results.
    pub payload: Line,
    /// Calls per thread; unlimited if `None`.
    pub calls: Option<u64>,
    /// Slices of the home over which contexts are distributed; all lines of a context map to one slice. 1 for a device
    /// without slices.
    pub slices: u32,
    /// Distance in lines between the starts of two sides, at least `payload`.
    pub side_stride: Line,
    /// Lines of results by which a prefetch with write permission precedes its load; 0 for no prefetches.
    pub hints: Line,
}

impl Calls {
    /// Creates the parameters for a device without slices, with adjacent sides and without prefetches.
    pub fn new(contexts: u32, payload: Line, calls: Option<u64>) -> Calls {
        Calls {
            contexts,
            payload,
            calls,
            slices: 1,
            side_stride: payload,
            hints: 0,
        }
    }

    /// Returns a line of a side (0 or 1) of a context.
    fn line(&self, context: u32, side: u32, offset: Line) -> Line {
        let slice_index = (2 * (context / self.slices) + side) * self.side_stride + offset;
        slice_index * self.slices + context % self.slices
    }
}

/// The remote procedure, which maps an argument word to a result word.
pub(crate) fn procedure(argument: u64) -> u64 {
    argument.wrapping_mul(3).wrapping_add(1)
}

/// State of a context at the device.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Context {
    /// The side owned by the CPU.
    cpu_side: u32,
    /// Number of argument lines not yet taken, if a call is in progress.
    remaining_arguments: Option<Line>,
    /// Reads of the device's side that wait for the result.
    waiting: Vec<Line>,
}

/// The device, which applies the procedure to every argument word.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Echo {
    calls: Calls,
    /// State of each context.
    contexts: Vec<Context>,
    /// 64-bit words per line.
    words: u16,
    /// Contents of the lines that the CPU does not hold.
    lines: BTreeMap<Line, Words>,
}

impl Echo {
    /// Returns context and side of a line.
    fn context_and_side(&self, line: Line) -> (usize, u32) {
        let Calls {
            slices,
            side_stride,
            ..
        } = self.calls;
        let pair = line / slices / side_stride;
        ((pair / 2 * slices + line % slices) as usize, pair % 2)
    }

    /// Returns the stored contents of a line, or zeros if it was never stored.
    fn words(&self, line: Line) -> Words {
        let zeros = || vec![0; self.words.into()].into_boxed_slice();
        self.lines.get(&line).cloned().unwrap_or_else(zeros)
    }

    /// Computes the results once all arguments have been taken, swaps the sides and answers the waiting reads.
    fn compute(&mut self, number: usize, actions: &mut Actions) {
        let payload = self.calls.payload;
        let cpu_side = self.contexts[number].cpu_side;
        for offset in 0..payload {
            let line = |side| self.calls.line(number as u32, side, offset);
            let arguments = self.words(line(cpu_side));
            let results = arguments.iter().map(|&word| procedure(word)).collect();
            self.lines.insert(line(1 - cpu_side), results);
        }
        let context = &mut self.contexts[number];
        (context.cpu_side, context.remaining_arguments) = (1 - cpu_side, None);
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
        Placement::MemoryPath(0..self.calls.lines())
    }

    fn handle(&mut self, event: Event, actions: &mut Actions) {
        match event {
            Event::Start { words } => self.words = words,
            Event::Read { line, .. } => {
                let (number, side) = self.context_and_side(line);
                if self.contexts[number].cpu_side == side {
                    let words = self.words(line);
                    return actions.answer(line, words);
                }
                let context = &mut self.contexts[number];
                context.waiting.push(line);
                if context.remaining_arguments.is_none() {
                    context.remaining_arguments = Some(self.calls.payload);
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
            Event::LocalCompletion { line, .. } => {
                let (number, _) = self.context_and_side(line);
                let context = &mut self.contexts[number];
                context.remaining_arguments =
                    context.remaining_arguments.map(|remaining| remaining - 1);
                if context.remaining_arguments == Some(0) {
                    self.compute(number, actions);
                }
            }
            _ => {}
        }
    }
}

/// Next step of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    /// Start a call.
    StartCall,
    /// Write the arguments in this line of the thread's side.
    WriteArgument(Line),
    /// Wait until the arguments are in the cache.
    Fence,
    /// Load this line of the results.
    LoadResult(Line),
    /// Check the loaded result.
    CheckResult(Line),
}

/// A thread that calls repeatedly.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Caller {
    calls: Calls,
    /// Index of the thread, which is that of its context.
    context: u32,
    /// Side that the thread owns, 0 or 1.
    side: u32,
    phase: Phase,
    /// Lines of results that the current call has loaded or prefetched, including the one that it loads next.
    requested: Line,
    /// Calls still to start; unlimited if `None`.
    remaining: Option<u64>,
    /// Calls started.
    number: u64,
    /// Number of wrong results.
    mismatches: u64,
}

impl Caller {
    /// Returns the argument of the current call in a line.
    fn argument(&self, offset: Line) -> u64 {
        self.number.wrapping_mul(0x1_0001) ^ u64::from(offset)
    }
}

impl Thread for Caller {
    /// For each call: stores the arguments to the lines of one side, and loads the results from the lines of the
    /// other, which are prefetched if the parameters say so.
    fn step(&mut self, result: u64) -> Step {
        let argument_line = |offset| self.calls.line(self.context, self.side, offset);
        let result_line = |offset| self.calls.line(self.context, 1 - self.side, offset);
        match self.phase {
            Phase::StartCall if self.remaining == Some(0) => Step::Stop,
            Phase::StartCall => {
                self.remaining = self.remaining.map(|remaining| remaining - 1);
                self.number += 1;
                self.phase = Phase::WriteArgument(0);
                Step::Begin
            }
            Phase::WriteArgument(offset) => {
                self.phase = match offset + 1 < self.calls.payload {
                    true => Phase::WriteArgument(offset + 1),
                    false => Phase::Fence,
                };
                Step::Store {
                    line: argument_line(offset),
                    word: 0,
                    value: self.argument(offset),
                }
            }
            Phase::Fence => {
                (self.phase, self.requested) = (Phase::LoadResult(0), 1);
                Step::Fence
            }
            Phase::LoadResult(offset)
                if self.requested <= (offset + self.calls.hints).min(self.calls.payload - 1) =>
            {
                self.requested += 1;
                Step::PrefetchExclusive {
                    line: result_line(self.requested - 1),
                }
            }
            Phase::LoadResult(offset) => {
                self.phase = Phase::CheckResult(offset);
                Step::LoadExclusive {
                    line: result_line(offset),
                    word: 0,
                }
            }
            Phase::CheckResult(offset) => {
                self.mismatches += u64::from(result != procedure(self.argument(offset)));
                if offset + 1 < self.calls.payload {
                    self.phase = Phase::LoadResult(offset + 1);
                    self.requested = self.requested.max(offset + 2);
                    return self.step(0);
                }
                self.side = 1 - self.side;
                self.phase = Phase::StartCall;
                Step::End { name: "call" }
            }
        }
    }
}

impl Scenario for Calls {
    type Application = Echo;
    type Thread = Caller;

    fn lines(&self) -> Line {
        self.contexts.next_multiple_of(self.slices) * 2 * self.side_stride
    }

    fn terminates(&self) -> bool {
        self.calls.is_some()
    }

    fn requested_operations(&self) -> Vec<(Operation, bool)> {
        vec![(Operation::CleanInvalidate, false)]
    }

    fn application(&self) -> Echo {
        let context = Context {
            cpu_side: 0,
            remaining_arguments: None,
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
            phase: Phase::StartCall,
            requested: 0,
            remaining: self.calls,
            number: 0,
            mismatches: 0,
        });
        threads.collect()
    }

    /// Checks that every call returned the result of its own arguments.
    fn verify(
        &self,
        application: &Echo,
        threads: &[Caller],
        _contents: &dyn Contents,
    ) -> Result<(), String> {
        check_results(threads)?;
        match application
            .contexts
            .iter()
            .position(|c| c.remaining_arguments.is_some())
        {
            Some(context) => Err(format!("the call of context {context} has not ended")),
            None => Ok(()),
        }
    }
}

/// Returns an error if a result was wrong.
fn check_results(threads: &[Caller]) -> Result<(), String> {
    match threads.iter().find(|thread| thread.mismatches > 0) {
        Some(Caller {
            mismatches,
            context,
            ..
        }) => Err(format!(
            "{mismatches} results of context {context} are wrong"
        )),
        None => Ok(()),
    }
}

impl HardwareScenario for Calls {
    /// Counts lines of arguments taken (`lines_taken`), and calls.
    fn observe(&self, event: &Event, lines_taken: &mut u64, actions: &mut Actions) {
        if let Event::LocalCompletion { .. } = event {
            *lines_taken += 1;
            let completes_call = lines_taken.is_multiple_of(self.payload.into());
            actions.count("calls", completes_call.into());
        }
    }

    fn judge(
        &self,
        lines_taken: u64,
        threads: &[Caller],
        _contents: &dyn Contents,
    ) -> Result<(), String> {
        check_results(threads)?;
        let (calls, remainder) = (
            lines_taken / u64::from(self.payload),
            lines_taken % u64::from(self.payload),
        );
        // The last call of a thread may not have reached the device when the run ended.
        let started: u64 = threads.iter().map(|thread| thread.number).sum();
        let possible = started.saturating_sub(threads.len() as u64)..=started;
        match remainder == 0 && possible.contains(&calls) {
            true => Ok(()),
            false => Err(format!(
                "{started} calls took {lines_taken} lines of arguments"
            )),
        }
    }
}
