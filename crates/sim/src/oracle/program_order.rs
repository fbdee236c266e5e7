//! Stores between a cache and its home: each is performed once, and in the program order of its line.
//!
//! The number of its message identifies a store. A home performs the store of a message once. Of all messages of an
//! access in progress it performs at most one.
//!
//! Where copies are current, a posted store is performed before any later store of the cache to the line, and any later
//! read returns it.

use rustc_hash::FxHashMap;

use crate::message::{Agent, Line};

/// A violation of these rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Breach {
    /// The store has already been performed, or was abandoned.
    Twice,
    /// An earlier posted store of the cache to the line has not been performed.
    Overtakes,
}

/// Stores of one cache to one line.
#[derive(Default)]
struct Stores {
    /// Numbers of the messages with pending stores in send order; true if the store is posted.
    pending: Vec<(u32, bool)>,
    /// Number of the write by which the last posted store was performed.
    version: u32,
}

/// Stores of all caches.
#[derive(Default)]
pub struct OwnStores {
    /// Stores by cache and line. Entries without pending or posted stores are removed.
    stores: FxHashMap<(Agent, Line), Stores>,
    /// True if the program order of one line is checked.
    ordered: bool,
}

impl OwnStores {
    /// Creates the record of a run without pending stores. `ordered`: the program order of one line is checked.
    pub fn new(ordered: bool) -> OwnStores {
        OwnStores {
            ordered,
            ..OwnStores::default()
        }
    }

    /// Records a message with the store of an access in progress; `is_repeated` if an earlier message has carried it,
    /// too.
    pub fn sent(&mut self, cache_line: (Agent, Line), flight: u32, is_repeated: bool) {
        let stores = self.stores.entry(cache_line).or_default();
        if !is_repeated {
            stores.pending.retain(|&(_, posted)| posted);
        }
        stores.pending.push((flight, false));
    }

    /// Records that the access has ended when its store was sent. Its first message is the only carrier of the bytes.
    pub fn posted(&mut self, cache_line: (Agent, Line)) {
        let pending = &mut self.stores.entry(cache_line).or_default().pending;
        if let Some(first_unposted) = pending.iter().position(|&(_, posted)| !posted) {
            pending[first_unposted].1 = true;
            pending.truncate(first_unposted + 1);
        }
    }

    /// Records that the home performs the store of a message as write `version` of the line.
    ///
    /// # Errors
    /// [`Breach`], if the home must not perform it.
    pub fn performed(
        &mut self,
        cache_line: (Agent, Line),
        flight: u32,
        version: u32,
    ) -> Result<(), Breach> {
        let stores = self.stores.get_mut(&cache_line).ok_or(Breach::Twice)?;
        let mut pending = stores.pending.iter();
        let position = pending.position(|store| store.0 == flight);
        let position = position.ok_or(Breach::Twice)?;
        let overtakes = stores.pending[..position].iter().any(|&(_, posted)| posted);
        let (_, posted) = stores.pending.remove(position);
        if !posted {
            stores.pending.retain(|&(_, posted)| posted);
        } else if self.ordered {
            stores.version = version;
        }
        if stores.pending.is_empty() && stores.version == 0 {
            self.stores.remove(&cache_line);
        }
        match overtakes && self.ordered {
            true => Err(Breach::Overtakes),
            false => Ok(()),
        }
    }

    /// True if a copy of the line, as of write `version`, contains all stores that the cache has posted.
    pub fn contains_stores(&self, cache_line: (Agent, Line), version: u32) -> bool {
        !self.ordered
            || self.stores.get(&cache_line).is_none_or(|stores| {
                version >= stores.version && !stores.pending.iter().any(|&(_, posted)| posted)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cache and line of all stores in these tests.
    const CACHE_LINE: (Agent, Line) = (Agent(1), 7);

    #[test]
    fn a_store_is_performed_once_whichever_message_brings_it() {
        let mut stores = OwnStores::new(true);
        stores.sent(CACHE_LINE, 1, false);
        stores.sent(CACHE_LINE, 2, true);
        assert_eq!(stores.performed(CACHE_LINE, 2, 1), Ok(()));
        assert_eq!(stores.performed(CACHE_LINE, 1, 2), Err(Breach::Twice));
        assert_eq!(stores.performed(CACHE_LINE, 2, 2), Err(Breach::Twice));
        // The store of an abandoned access is not a store of the next access.
        stores.sent(CACHE_LINE, 3, false);
        stores.sent(CACHE_LINE, 4, false);
        assert_eq!(stores.performed(CACHE_LINE, 3, 2), Err(Breach::Twice));
        assert_eq!(stores.performed(CACHE_LINE, 4, 2), Ok(()));
        assert!(stores.stores.is_empty());
    }

    #[test]
    fn posted_store_of_several_messages_is_performed_once() {
        let mut stores = OwnStores::new(true);
        stores.sent(CACHE_LINE, 1, false);
        stores.sent(CACHE_LINE, 2, true);
        stores.posted(CACHE_LINE);
        assert_eq!(stores.performed(CACHE_LINE, 1, 1), Ok(()));
        assert_eq!(stores.performed(CACHE_LINE, 2, 2), Err(Breach::Twice));
    }

    #[test]
    fn posted_stores_are_performed_and_found_in_program_order() {
        for ordered in [true, false] {
            let mut stores = OwnStores::new(ordered);
            for flight in [1, 2] {
                stores.sent(CACHE_LINE, flight, false);
                stores.posted(CACHE_LINE);
            }
            assert_eq!(stores.contains_stores(CACHE_LINE, 0), !ordered);
            let second = stores.performed(CACHE_LINE, 2, 1);
            assert_eq!(second == Err(Breach::Overtakes), ordered);
            assert_eq!(stores.performed(CACHE_LINE, 1, 2), Ok(()));
            // A copy that was made before the store does not contain it.
            assert_eq!(stores.contains_stores(CACHE_LINE, 1), !ordered);
            assert!(stores.contains_stores(CACHE_LINE, 2));
            assert!(stores.contains_stores((Agent(0), 7), 0));
        }
    }
}
