//! Events of a path through a model, from which the model's author draws a chart.
//!
//! The engine knows no messages. The author of a model knows its events, and gives the model a
//! [`TraceRenderer`](crate::model::TraceRenderer). This renderer receives the events of the rules, and every state.

use crate::number::Number;
use cohkit_base::sequence::Sequence;

/// Receiver of the events of one path.
pub trait TraceEvents {
    /// Receives an event of the start state or of the last step.
    fn add_event(&mut self, _event: NoteEvent) {}

    /// Receives a step: a rule has fired and changed the state from `before` to `after`. Its events follow.
    fn step(&mut self, _rule: &str, _before: &[Number], _after: &[Number]) {}

    /// Ends the path and returns its chart.
    fn end(self: Box<Self>) -> Sequence;
}

/// Event of a [`Note::Event`](crate::model::Note::Event).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NoteEvent {
    /// Kind of the event, numbered by the renderer.
    pub kind: u32,
    /// Participants and locations, as the model emits them; a label is given by its position.
    pub values: Vec<Number>,
    /// Description with all values inserted.
    pub text: String,
}
