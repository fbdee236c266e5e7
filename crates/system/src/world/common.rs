//! What worlds have in common: a part of one that no step has changed stands once in memory, however many worlds have it.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A part of a world, copied when it is changed while another world has it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Common<T>(Arc<T>);

impl<T> Common<T> {
    /// A part that no world has yet.
    pub fn new(part: T) -> Common<T> {
        Common(Arc::new(part))
    }
}

impl<T> Deref for Common<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Clone> DerefMut for Common<T> {
    fn deref_mut(&mut self) -> &mut T {
        Arc::make_mut(&mut self.0)
    }
}
