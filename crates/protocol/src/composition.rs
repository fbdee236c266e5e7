//! Texts that compose protocols: several spaces of addresses in one machine.
//!
//! Each used text is a protocol over a space of its own, and two spaces share nothing: no line, no channel, no memory.
//! So whatever they do together is what each does alone, and their states are the product of those of the parts.
//! But where a home stands [over](Over) a cache of another text, its memory is that cache's copy: two levels.

use crate::protocol::{Protocol, System};

/// A text that composes protocols.
#[derive(Clone, Debug)]
pub struct Composition {
    /// Name after the keyword `protocol`.
    pub name: String,
    /// The quoted title, or empty.
    pub title: String,
    /// The texts used, in the order of this one.
    pub spaces: Vec<Space>,
    /// Which of them are below others.
    pub levels: Vec<Over>,
    /// What is checked.
    pub systems: Vec<Joint>,
}

/// A home of one text stands over the caches of another: its memory is the copy that the cache holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Over {
    /// The text whose home it is, among [`Composition::spaces`].
    pub inner: usize,
    /// The text whose caches they are.
    pub outer: usize,
}

/// A text used.
#[derive(Clone, Debug)]
pub struct Space {
    /// The name that it has here.
    pub name: String,
    /// The file as the text names it.
    pub file: String,
    /// What it says.
    pub protocol: Protocol,
}

/// A system of all spaces.
#[derive(Clone, Debug)]
pub struct Joint {
    /// Name after the keyword `system`.
    pub name: String,
    /// What of it is in each space, named `SYSTEM.SPACE`; of a space that is below another, what is below each cache.
    pub parts: Vec<System>,
}
