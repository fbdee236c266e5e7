//! Coherent memory: an application between home and memory that adds nothing.

use crate::interface::{Actions, Application, Event, Line, Placement};

/// Reads and writes go to the application's memory as they come.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct CoherentMemory {
    lines: Line,
}

impl CoherentMemory {
    /// Memory for the lines from 0.
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
