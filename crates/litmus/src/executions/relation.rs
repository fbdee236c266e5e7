//! Binary relations on the events of an execution.

/// Binary relation on events: for each event the bit set of its successors.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Relation(Vec<u64>);

impl Relation {
    /// Creates the empty relation.
    pub fn empty(events: usize) -> Relation {
        Relation(vec![0; events])
    }

    /// Creates the relation of the pairs that satisfy `holds`.
    pub fn from_predicate(events: usize, holds: impl Fn(usize, usize) -> bool) -> Relation {
        let mut relation = Relation::empty(events);
        for from in 0..events {
            for to in 0..events {
                if holds(from, to) {
                    relation.add(from, to);
                }
            }
        }
        relation
    }

    /// Adds a pair.
    pub fn add(&mut self, from: usize, to: usize) {
        self.0[from] |= 1 << to;
    }

    /// Adds the Cartesian product of two bit sets of events.
    pub fn add_product(&mut self, before: u64, after: u64) {
        for (event, row) in self.0.iter_mut().enumerate() {
            if before >> event & 1 != 0 {
                *row |= after;
            }
        }
    }

    /// Returns true if the relation contains the pair.
    pub fn has(&self, from: usize, to: usize) -> bool {
        self.0[from] >> to & 1 != 0
    }

    /// Returns true if the relation has no cycle.
    pub(crate) fn acyclic(&self) -> bool {
        // Remove events without successors until none is left (acyclic) or all have successors (a cycle).
        let mut remaining: u64 = (0..self.0.len()).map(|event| 1 << event).sum();
        loop {
            let has_successor = |event: usize| self.0[event] & remaining != 0;
            let next_remaining = (0..self.0.len())
                .filter(|&event| remaining >> event & 1 != 0 && has_successor(event));
            let next_remaining = next_remaining.map(|event| 1u64 << event).sum();
            if next_remaining == remaining {
                return remaining == 0;
            }
            remaining = next_remaining;
        }
    }
}
