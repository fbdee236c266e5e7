//! Length of signatures, and the probability that hash compaction omits a state.

/// Width of a hash, the signature of a state, in bits. Tests reduce it so that states are omitted.
#[cfg(not(test))]
fn bits() -> u32 {
    u64::BITS
}

/// Upper bound of the probability that [`crate::Options::hash_compaction`] has omitted a state, in a search that stored
/// `states` states.
///
/// Signatures are assumed to be random. A state that is reached when `k` others are stored then has the signature of
/// one of them with probability at most `k/2^64`. As long as no state is omitted, the order of states does not depend
/// on signatures. The first omission therefore happens with `1`, `2`, ... or `states` states stored, with total
/// probability `states (states + 1) / 2^65`.
///
/// This is the birthday bound, as in P. Wolper and D. Leroy, "Reliable hashing without collision detection" (CAV 1993).
pub fn omission_bound(states: u64) -> f64 {
    let states = states as f64;
    (states * (states + 1.0) / 2f64.powi(bits() as i32 + 1)).min(1.0)
}

#[cfg(test)]
use crate::threads::hash_width::bits;

/// Shortened hash, spread over all bits again, since the table uses only some of them.
#[cfg(test)]
pub(crate) fn shortened(hash: u64) -> u64 {
    match bits() {
        u64::BITS => hash,
        bits => (hash >> (u64::BITS - bits)).wrapping_mul(0x9e37_79b9_7f4a_7c15),
    }
}

/// Signature of a state on disk, of two bits if hashes are shortened.
#[cfg(test)]
pub(crate) fn shortened_signature(signature: u32) -> u32 {
    match bits() {
        u64::BITS => signature,
        _ => signature & 3,
    }
}

#[cfg(test)]
mod tests {
    use super::omission_bound;

    #[test]
    fn omission_bound_is_the_collision_probability() {
        // With 2^32 states, there are about 2^63 pairs: a probability of about one half.
        assert!((omission_bound(1 << 32) - 0.5).abs() < 1e-9);
        assert!(omission_bound(1_000_000) < 2.8e-8);
        assert_eq!(omission_bound(0), 0.0);
        assert_eq!(omission_bound(1 << 40), 1.0);
    }
}
