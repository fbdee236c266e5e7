//! Coherent memory: an application between home and memory that forwards every access unchanged.

use crate::interface::{Actions, Application, Event, Line, Placement};

/// Forwards reads and writes to the application's memory in the order of their arrival.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct CoherentMemory {
    lines: Line,
}

impl CoherentMemory {
    /// Creates an application that serves lines 0 to `lines` - 1.
    pub fn new(lines: Line) -> CoherentMemory {
        CoherentMemory { lines }
    }
}

impl Application for CoherentMemory {
    fn name(&self) -> &str {
        "coherent memory"
    }

    fn placement(&self) -> Placement {
        Placement::Between(0..self.lines)
    }

    fn handle(&mut self, event: Event, actions: &mut Actions) {
        match event {
            Event::Read { line, .. } => actions.fetch(line, line, 1),
            Event::Fetched { line, words, .. } => actions.answer(line, words),
            Event::Write { line, words, .. } => actions.store(line, line, words),
            Event::Stored { tag } => actions.accept(tag),
            _ => {}
        }
    }
}
