//! Stories: what a way through a model shows of those who act in it.
//!
//! The engine knows no messages. Whoever makes a model knows what happens in it, and puts a
//! [`Teller`](crate::model::Teller) into it, whose stories hear what the rules tell and see every state.

use crate::number::Number;
use cohkit_base::sequence::Sequence;

/// A story of one way.
pub trait Story {
    /// The start state, or the step that is about to be told, says this.
    fn say(&mut self, _said: Said) {}

    /// A rule has fired, from one state to another; what it says follows.
    fn step(&mut self, _rule: &str, _before: &[Number], _after: &[Number]) {}

    /// The whole story.
    fn end(self: Box<Self>) -> Sequence;
}

/// What a [`Note::Says`](crate::model::Note::Says) says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Said {
    /// What sort of thing it is.
    pub sort: u32,
    /// Who and where.
    pub values: Vec<Number>,
    /// In words.
    pub words: String,
}
