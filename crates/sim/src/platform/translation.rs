//! Quantities of address translation.

use cohkit_units::{self as units, Quantity, Unit};

/// A device's cache of translations, and the host's memory management unit, which serves its misses.
///
/// Messages between them have a latency, but use no bandwidth of the links.
#[derive(Clone, Debug)]
pub struct Translation {
    /// 1 if addresses are translated, 0 if they are physical.
    pub enabled: Quantity,
    /// Size of a page, in bytes: 4 KiB, 64 KiB, 2 MiB or 1 GiB.
    pub page_size: Quantity,
    /// Number of translations that the device keeps.
    pub atc_entries: Quantity,
    /// Associativity of the device's cache: ways of a set; 0 if every translation may take every entry.
    pub atc_ways: Quantity,
    /// Latency from an access to its translation on a hit in the device, in picoseconds.
    pub atc_hit_latency: Quantity,
    /// Maximum number of outstanding requests of a device for translations.
    pub max_outstanding: Quantity,
    /// One-way latency between a device and the host's unit, in picoseconds.
    pub ats_latency: Quantity,
    /// Maximum random extra latency of each direction, in picoseconds; for torture tests.
    pub jitter: Quantity,
    /// Number of translations that the host's unit keeps.
    pub iommu_tlb_entries: Quantity,
    /// Associativity of the host's unit: ways of a set; 0 if every translation may take every entry.
    pub iommu_tlb_ways: Quantity,
    /// Latency from a request's arrival at the host's unit to its response on a hit, in picoseconds.
    pub iommu_tlb_latency: Quantity,
    /// Number of tables that a walk reads from memory in sequence, for a page of 4 or 64 KiB. One less for 2
    /// MiB, two less for 1 GiB.
    pub levels: Quantity,
    /// Interval between two pages that the host invalidates while accesses continue, in picoseconds; 0 for never.
    pub invalidation_interval: Quantity,
    /// One page in this many is read-only; 0 for none.
    pub read_only_one_in: Quantity,
    /// One page in this many is absent, neither readable nor writable; 0 for none.
    pub absent_one_in: Quantity,
}

impl Translation {
    /// Page sizes in bytes, with the number of tables that their walks skip.
    const PAGES: [(u64, u64); 4] = [(4 << 10, 0), (64 << 10, 0), (2 << 20, 1), (1 << 30, 2)];

    /// Creates quantities for physical addresses, to be changed one by one.
    pub fn new() -> Translation {
        let set = |value| Quantity::given(value, "set for this run");
        Translation {
            enabled: set(0),
            page_size: set(4 << 10),
            atc_entries: set(64),
            atc_ways: set(0),
            atc_hit_latency: set(0),
            max_outstanding: set(8),
            ats_latency: set(0),
            jitter: set(0),
            iommu_tlb_entries: set(64),
            iommu_tlb_ways: set(0),
            iommu_tlb_latency: set(0),
            levels: set(4),
            invalidation_interval: set(0),
            read_only_one_in: set(0),
            absent_one_in: set(0),
        }
    }

    /// Returns the number of tables that a walk reads.
    ///
    /// # Errors
    /// A sentence: the page size is not supported.
    pub(crate) fn walk(&self) -> Result<u64, String> {
        let page = self.page_size.value;
        let page_size = Translation::PAGES.iter().find(|(size, _)| *size == page);
        let Some((_, skipped_tables)) = page_size else {
            let supported = Translation::PAGES.map(|(size, _)| units::show(size, Unit::Bytes));
            let page_text = units::show(page, Unit::Bytes);
            let supported = supported.join(", ");
            return Err(format!(
                "translation.page_size is one of {supported}, not {page_text}"
            ));
        };
        Ok(self.levels.value.saturating_sub(*skipped_tables).max(1))
    }
}

impl Default for Translation {
    fn default() -> Self {
        Translation::new()
    }
}
