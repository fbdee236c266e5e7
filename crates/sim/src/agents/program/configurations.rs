//! Numbered configurations of an agent.

use cohkit_protocol::execute::Configuration;
use rustc_hash::FxHashMap;
use std::ops::Range;

use super::ConfigurationId;

/// Minimum number of new configurations before a sweep for unused ones, because a sweep visits all lines.
const MIN_NEW_BEFORE_SWEEP: usize = 1 << 16;

/// The configurations that a run has reached, without registers, numbered in this order.
///
/// Equal configurations have the same number, except those with a value for a remote that is not zero.
pub(super) struct Configurations {
    /// For each configuration its state and its slots.
    encoded: Vec<u16>,
    /// Length of one entry of `encoded`.
    stride: usize,
    /// Slots with a value for each remote.
    per_remote_slots: Vec<Range<usize>>,
    /// All other slots.
    shared_slots: Vec<usize>,
    /// Initial configurations of the agents of each kind.
    initial: Vec<ConfigurationId>,
    /// Numbers by state and shared slots, if all slots with a value for each remote are zero.
    numbers_by_key: FxHashMap<Vec<u16>, ConfigurationId>,
    /// Lookup key of the last numbered configuration.
    key: Vec<u16>,
    /// Unused numbers; the last one is used next.
    free_numbers: Vec<ConfigurationId>,
    /// Number of configurations in use at the last sweep.
    used_at_sweep: usize,
}

impl Configurations {
    /// Creates an empty list of configurations with this number of slots, of which the given ones have a value for each
    /// remote.
    pub fn new(slots: usize, per_remote_slots: Vec<Range<usize>>) -> Configurations {
        let is_shared = |slot: &usize| !per_remote_slots.iter().any(|range| range.contains(slot));
        Configurations {
            encoded: Vec::new(),
            stride: 1 + slots,
            shared_slots: (0..slots).filter(is_shared).collect(),
            per_remote_slots,
            initial: Vec::new(),
            numbers_by_key: FxHashMap::default(),
            key: Vec::new(),
            free_numbers: Vec::new(),
            used_at_sweep: 0,
        }
    }

    /// Numbers the initial configuration of the next kind of agents.
    pub fn push_initial(&mut self, configuration: &Configuration) {
        let mut initial = self.initial.iter().copied();
        let existing = initial.find(|&number| self.equals(number, configuration));
        let number = existing.unwrap_or_else(|| self.number(configuration));
        self.initial.push(number);
    }

    /// Returns the initial configurations of the agents of each kind.
    pub fn initial(&self) -> &[ConfigurationId] {
        &self.initial
    }

    /// Returns the state and the slots of a configuration.
    #[inline]
    pub fn encoded(&self, number: ConfigurationId) -> &[u16] {
        &self.encoded[number as usize * self.stride..][..self.stride]
    }

    /// Returns the index of a configuration's state.
    #[inline]
    pub fn state(&self, number: ConfigurationId) -> usize {
        self.encoded[number as usize * self.stride].into()
    }

    /// Copies a configuration into one with equally many slots.
    #[inline]
    pub fn copy_to(&self, number: ConfigurationId, configuration: &mut Configuration) {
        let encoded = self.encoded(number);
        configuration.state = encoded[0];
        configuration.slots.copy_from_slice(&encoded[1..]);
    }

    /// True if the numbered configuration equals this one.
    pub fn equals(&self, number: ConfigurationId, configuration: &Configuration) -> bool {
        let encoded = self.encoded(number);
        encoded[0] == configuration.state && encoded[1..] == configuration.slots[..]
    }

    /// True if all configurations equal to this one share its number.
    pub fn is_shared(&self, number: ConfigurationId) -> bool {
        are_shared(&self.per_remote_slots, &self.encoded(number)[1..])
    }

    /// True if a configuration keeps its number for the whole run.
    pub fn is_permanent(&self) -> bool {
        self.per_remote_slots.is_empty()
    }

    /// Returns the number of a configuration, a new one if necessary.
    pub fn number(&mut self, configuration: &Configuration) -> ConfigurationId {
        let next = self.count() as ConfigurationId;
        let slots = &configuration.slots[..];
        if are_shared(&self.per_remote_slots, slots) {
            self.key.clear();
            self.key.push(configuration.state);
            let shared_values = self.shared_slots.iter().map(|&slot| slots[slot]);
            self.key.extend(shared_values);
            if let Some(&number) = self.numbers_by_key.get(&self.key) {
                return number;
            }
            self.numbers_by_key.insert(self.key.clone(), next);
        } else if let Some(&number) =
            (self.initial.iter()).find(|&&number| self.equals(number, configuration))
        {
            return number;
        } else if let Some(number) = self.free_numbers.pop() {
            let encoded = &mut self.encoded[number as usize * self.stride..][..self.stride];
            encoded[0] = configuration.state;
            encoded[1..].copy_from_slice(slots);
            return number;
        }
        self.encoded.push(configuration.state);
        self.encoded.extend_from_slice(slots);
        next
    }

    /// True if enough configurations have been created since the last [`Configurations::sweep`] to make another
    /// worthwhile.
    pub fn is_full(&self) -> bool {
        let new_count = self.count() - self.free_numbers.len() - self.used_at_sweep;
        !self.is_permanent() && new_count > self.used_at_sweep.max(MIN_NEW_BEFORE_SWEEP)
    }

    /// Frees the numbers of all configurations that are neither in `used` nor initial.
    pub fn sweep(&mut self, used: impl Iterator<Item = ConfigurationId>) {
        let mut is_free = vec![true; self.count()];
        let initial = self.initial.iter().copied();
        (initial.chain(used)).for_each(|number| is_free[number as usize] = false);
        self.numbers_by_key
            .retain(|_, number| !is_free[*number as usize]);
        let numbers = 0..self.count() as ConfigurationId;
        self.free_numbers = numbers.filter(|&number| is_free[number as usize]).collect();
        self.used_at_sweep = self.count() - self.free_numbers.len();
    }

    /// Number of configurations, unused ones included.
    pub fn count(&self) -> usize {
        self.encoded.len() / self.stride
    }
}

/// True if all slots with values for each remote are zero. There may be thousands of slots, so they are tested in
/// chunks.
fn are_shared(per_remote_slots: &[Range<usize>], slots: &[u16]) -> bool {
    let is_zero = |chunk: &[u16]| chunk.iter().fold(0, |bits, slot| bits | slot) == 0;
    per_remote_slots
        .iter()
        .all(|range| slots[range.clone()].chunks(64).all(is_zero))
}
