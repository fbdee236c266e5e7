//! Stories: charts of a path through a model, made by the model's author.
//!
//! The engine knows no messages. The author of a model knows its events, and gives it a
//! [`TraceRenderer`](crate::model::TraceRenderer). The stories of this renderer receive the events of the rules, and
//! every state.

use crate::number::Number;
use cohkit_base::sequence::Sequence;

/// Story of one path.
pub trait TraceEvents {
    /// Receives an event of the start state, or of the step passed last.
    fn add_event(&mut self, _event: Remark) {}

    /// A rule has fired and changed the state from `before` to `after`; its events follow.
    fn step(&mut self, _rule: &str, _before: &[Number], _after: &[Number]) {}

    /// Ends the story and returns its chart.
    fn end(self: Box<Self>) -> Sequence;
}

/// Event of a [`Note::Says`](crate::model::Note::Says).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Remark {
    /// Kind of the event, numbered by the renderer.
    pub sort: u32,
    /// Participants and locations.
    pub values: Vec<Number>,
    /// Description.
    pub words: String,
}
