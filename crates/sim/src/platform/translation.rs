//! What a machine says of virtual addresses.

use super::{units, Quantity, Unit};

/// A device's cache of translations, and the memory management unit of the host that it asks for what it does not keep.
///
/// What they tell each other takes time on its way, and no bandwidth of the links.
#[derive(Clone, Debug)]
pub struct Translation {
    /// Whether addresses are translated (1), or physical (0).
    pub used: Quantity,
    /// Bytes of a page.
    pub page: Quantity,
    /// Translations that the device keeps.
    pub entries: Quantity,
    /// From an access to its translation, if the device keeps it, picoseconds.
    pub hit: Quantity,
    /// Requests of a device for translations under way.
    pub outstanding: Quantity,
    /// From a device to the host's unit, or back, picoseconds.
    pub way: Quantity,
    /// Random extra time of each way, up to this, picoseconds; for torture tests.
    pub jitter: Quantity,
    /// Translations that the host's unit keeps.
    pub host_entries: Quantity,
    /// From a request's arrival at the host's unit to its answer, if the unit keeps it, picoseconds.
    pub lookup: Quantity,
    /// Tables that a walk for a page of 4 KiB reads from memory, one after the other; one less for 2 MiB, two for 1 GiB.
    pub levels: Quantity,
    /// Between two pages whose translations the host takes back, while accesses go on, picoseconds; 0 for never.
    pub unmap: Quantity,
    /// Of so many pages one may only be read; 0 for none.
    pub read_only: Quantity,
    /// Of so many pages one is not there, neither to be read nor to be written; 0 for none.
    pub absent: Quantity,
}

impl Translation {
    /// The sizes of pages, and how many tables fewer than for the smallest a walk reads.
    const PAGES: [(u64, u64); 4] = [(4 << 10, 0), (64 << 10, 0), (2 << 20, 1), (1 << 30, 2)];

    /// Of addresses that are physical, until something is set.
    pub fn new() -> Translation {
        let set = |value| Quantity::given(value, "set for this run");
        Translation {
            used: set(0),
            page: set(4 << 10),
            entries: set(64),
            hit: set(0),
            outstanding: set(8),
            way: set(0),
            jitter: set(0),
            host_entries: set(64),
            lookup: set(0),
            levels: set(4),
            unmap: set(0),
            read_only: set(0),
            absent: set(0),
        }
    }

    /// How many tables a walk reads.
    ///
    /// # Errors
    /// A sentence, if there are no such pages.
    pub(crate) fn walk(&self) -> Result<u64, String> {
        let page = self.page.value;
        let found = Translation::PAGES.iter().find(|(size, _)| *size == page);
        let Some((_, fewer)) = found else {
            let pages = Translation::PAGES.map(|(size, _)| units::show(size, Unit::Bytes));
            let shown = units::show(page, Unit::Bytes);
            let pages = pages.join(", ");
            return Err(format!("translation.page is one of {pages}, not {shown}"));
        };
        Ok(self.levels.value.saturating_sub(*fewer).max(1))
    }
}

impl Default for Translation {
    fn default() -> Self {
        Translation::new()
    }
}
