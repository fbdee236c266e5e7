//! Stories: what a way through a model shows of those who act in it.
//!
//! The engine knows no messages. Whoever makes a model knows what happens in it, and puts a [`Teller`] beside it, which
//! hears what the rules tell and sees every state.

use crate::model::{Model, Note, Piece};
use cohkit_base::sequence::Sequence;
use std::fmt;

/// Begins stories of ways through a model.
pub trait Teller: fmt::Debug + Sync {
    /// A story that begins in a start state; nothing if there is nothing to tell.
    fn begin<'a>(&self, model: &'a Model, state: &[i32]) -> Option<Box<dyn Story + 'a>>;
}

/// A story of one way.
pub trait Story {
    /// The start state, or the step that is about to be told, says this.
    fn say(&mut self, _said: Said) {}

    /// A rule has fired, from one state to another; what it says follows.
    fn step(&mut self, _rule: &str, _before: &[i32], _after: &[i32]) {}

    /// The whole story.
    fn end(self: Box<Self>) -> Sequence;
}

/// What a [`Note::Says`] says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Said {
    /// What sort of thing it is.
    pub sort: u32,
    /// Who and where.
    pub values: Vec<i32>,
    /// In words.
    pub words: String,
}

/// What a note says with these values; nothing if it is a mark.
pub(crate) fn said(model: &Model, note: &Note, values: &[i32]) -> Option<Said> {
    let Note::Says {
        sort,
        values: own,
        words,
    } = note
    else {
        return None;
    };
    let (own, rest) = values.split_at(own.len());
    let mut rest = Words {
        model,
        values: rest.iter(),
    };
    Some(Said {
        sort: *sort,
        values: own.to_vec(),
        words: rest.say(words),
    })
}

/// How many values a phrase tells.
pub(crate) fn values(phrase: &[Piece]) -> u32 {
    let piece = |p: &Piece| match p {
        Piece::Text(_) => 0,
        Piece::Value(_) | Piece::Agent(_) => 1,
        Piece::Choice(_, a, b) => 1 + values(a) + values(b),
    };
    phrase.iter().map(piece).sum()
}

/// Fills values into words.
struct Words<'a> {
    model: &'a Model,
    values: std::slice::Iter<'a, i32>,
}

impl Words<'_> {
    fn next(&mut self) -> i32 {
        self.values.next().copied().unwrap_or(0)
    }

    fn skip(&mut self, phrase: &[Piece]) {
        for _ in 0..values(phrase) {
            self.next();
        }
    }

    fn say(&mut self, phrase: &[Piece]) -> String {
        let mut text = String::new();
        for piece in phrase {
            match piece {
                Piece::Text(words) => text.push_str(words),
                Piece::Value(e) => {
                    let value = self.next();
                    let ty = self.model.type_of(e);
                    text.push_str(&ty.map_or(value.to_string(), |ty| self.model.show(ty, value)));
                }
                Piece::Agent(_) => {
                    let index = self.next();
                    let name = self.model.agents.get(index as usize);
                    text.push_str(&name.cloned().unwrap_or_else(|| index.to_string()));
                }
                Piece::Choice(_, a, b) => {
                    if self.next() != 0 {
                        text.push_str(&self.say(a));
                        self.skip(b);
                    } else {
                        self.skip(a);
                        text.push_str(&self.say(b));
                    }
                }
            }
        }
        text
    }
}
