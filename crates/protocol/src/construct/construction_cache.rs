//! Cache of constructed homes: successive points of a sweep use the same home.

use super::permissions::KnownPermissions;
use super::{construct, Construction, ConstructionError};
use crate::controller::Controller;
use crate::protocol::Protocol;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// A home constructed from a policy, and its knowledge of its remotes' permissions.
pub type Constructed = (Controller, KnownPermissions);

/// Cache entry. The protocol and the number of remotes are the key.
struct CachedConstruction {
    /// Protocol whose home is a policy.
    protocol: Protocol,
    /// Number of remotes of the systems.
    remotes: u16,
    /// Result of the construction.
    constructed: Arc<Constructed>,
}

/// Capacity of the cache. A sweep uses a few protocols and machines; a fuzzer never uses a home twice.
const CAPACITY: usize = 8;

/// Cached homes, the most recently used first.
struct Homes(Mutex<VecDeque<CachedConstruction>>);

/// Cache of this process. It is shared, because sweeps construct on several threads.
static HOMES: Homes = Homes(Mutex::new(VecDeque::new()));

/// Returns the home of a protocol whose home is a policy, in systems of this many remotes, with its knowledge of
/// permissions. Constructs it, or returns the cached home of an equal protocol.
///
/// # Errors
/// No home can be constructed, or it has a fault: work that cannot complete.
///
/// # Panics
/// If the protocol's home is a controller written by hand.
pub fn constructed(
    protocol: &Protocol,
    remotes: u16,
) -> Result<Arc<Constructed>, ConstructionError> {
    HOMES.constructed(protocol, remotes)
}

impl Homes {
    /// As the function [`constructed`], with this cache. Failed constructions are not cached.
    fn constructed(
        &self,
        protocol: &Protocol,
        remotes: u16,
    ) -> Result<Arc<Constructed>, ConstructionError> {
        if let Some(constructed) = self.cached(protocol, remotes) {
            return Ok(constructed);
        }
        // The lock is not held during the construction. Two threads that need the same home at once both construct it.
        let construction = construct(protocol).and_then(Construction::sound)?;
        let constructed = Arc::new((
            construction.controller(remotes),
            construction.permissions(remotes),
        ));
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.push_front(CachedConstruction {
            protocol: protocol.clone(),
            remotes,
            constructed: Arc::clone(&constructed),
        });
        entries.truncate(CAPACITY);
        Ok(constructed)
    }

    /// Returns the cached home, if any, and moves its entry to the front.
    fn cached(&self, protocol: &Protocol, remotes: u16) -> Option<Arc<Constructed>> {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let index = entries
            .iter()
            .position(|entry| entry.remotes == remotes && entry.protocol == *protocol)?;
        let entry = entries.remove(index)?;
        let constructed = Arc::clone(&entry.constructed);
        entries.push_front(entry);
        Some(constructed)
    }
}

#[cfg(test)]
mod tests {
    use super::super::construct;
    use super::{Homes, CAPACITY};
    use crate::text::parse;
    use std::sync::{Arc, Mutex};

    fn empty_cache() -> Homes {
        Homes(Mutex::default())
    }

    /// A changed protocol must not get the home of another one.
    #[test]
    fn cached_construction_requires_an_equal_protocol() {
        let text = include_str!("../../../../protocols/msi-policy.coh");
        let (homes, protocol) = (empty_cache(), parse(text).unwrap());
        let first = homes.constructed(&protocol, 2).unwrap();
        let construction = construct(&protocol).unwrap();
        assert_eq!(first.0, construction.controller(2));
        assert_eq!(first.1, construction.permissions(2));
        let second = homes.constructed(&parse(text).unwrap(), 2).unwrap();
        assert!(Arc::ptr_eq(&first, &second));

        let for_one_remote = homes.constructed(&protocol, 1).unwrap();
        assert_ne!(first.0, for_one_remote.0);
        let mut longer_lines = protocol.clone();
        longer_lines.line_bytes *= 2;
        assert!(!Arc::ptr_eq(
            &first,
            &homes.constructed(&longer_lines, 2).unwrap()
        ));
    }

    /// The cache must not grow with the number of protocols.
    #[test]
    fn construction_cache_is_bounded() {
        let text = include_str!("../../../../protocols/msi-policy.coh");
        let (homes, mut protocol) = (empty_cache(), parse(text).unwrap());
        for number in 0..2 * CAPACITY {
            protocol.name = format!("number {number}");
            homes.constructed(&protocol, 1).unwrap();
        }
        assert_eq!(homes.0.lock().unwrap().len(), CAPACITY);
    }
}
