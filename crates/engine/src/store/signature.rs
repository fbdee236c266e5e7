//! How long signatures are, and how probable it is that hash compaction leaves a state out because of that.

/// Bits of a hash, which is the signature of a state. Tests make them fewer, so that states are left out.
#[cfg(not(test))]
fn bits() -> u32 {
    u64::BITS
}

/// How probable it is at the most that [`crate::Options::hash_compaction`] has left a state out of a search that stored so
/// many. Taking signatures to be as random as they look, a state that is reached when `k` others are stored has the
/// signature of one of them with probability `k/2^64` at the most. As long as none is left out, states come in an order
/// that does not depend on signatures; so the first to be left out is so with `1`, `2`, ... or `states` states stored, with
/// probability `states (states + 1) / 2^65` in all.
///
/// This is the birthday bound, as in P. Wolper and D. Leroy, "Reliable hashing without collision detection" (CAV 1993).
pub fn omission_bound(states: u64) -> f64 {
    let states = states as f64;
    (states * (states + 1.0) / 2f64.powi(bits() as i32 + 1)).min(1.0)
}

#[cfg(test)]
use crate::threads::short::bits;

/// What is left of a hash, all over its bits again, as the table looks at a few of them.
#[cfg(test)]
pub(crate) fn shortened(hash: u64) -> u64 {
    match bits() {
        u64::BITS => hash,
        bits => (hash >> (u64::BITS - bits)).wrapping_mul(0x9e37_79b9_7f4a_7c15),
    }
}

#[cfg(test)]
mod tests {
    use super::omission_bound;

    #[test]
    fn omissions_are_as_probable_as_equal_signatures() {
        // Of 2^32 signatures the first half of all pairs: about one in two.
        assert!((omission_bound(1 << 32) - 0.5).abs() < 1e-9);
        assert!(omission_bound(1_000_000) < 2.8e-8);
        assert_eq!(omission_bound(0), 0.0);
        assert_eq!(omission_bound(1 << 40), 1.0);
    }
}
