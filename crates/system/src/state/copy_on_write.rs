//! Copy-on-write parts of states: a part that no step has changed is stored once for all states that contain it.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A part of a state, cloned when it is changed while another state shares it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CopyOnWrite<T>(Arc<T>);

impl<T> CopyOnWrite<T> {
    /// Creates a part that no other state shares.
    pub fn new(part: T) -> CopyOnWrite<T> {
        CopyOnWrite(Arc::new(part))
    }
}

impl<T> Deref for CopyOnWrite<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Clone> DerefMut for CopyOnWrite<T> {
    fn deref_mut(&mut self) -> &mut T {
        Arc::make_mut(&mut self.0)
    }
}
