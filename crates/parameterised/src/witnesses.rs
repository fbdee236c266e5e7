//! Invariants of the file whose violations a pair of remotes shows.
//!
//! The claim of an invariant is about numbers of remotes and messages. If its negation is built from lower bounds, a
//! violation needs only as many remotes as the bounds name, and any further remotes keep it. With at most two such
//! remotes, a configuration violates the claim exactly if the pair alone does.

use cohkit_protocol::protocol::{Amount, Claim, Comparison};

/// Number of remotes that a pair has.
const PAIR: u32 = 2;

/// Returns true if some pair of remotes shows each violation of the claim, whatever other remotes there are.
pub(crate) fn violation_shown_by_pair(claim: &Claim) -> bool {
    witnesses(claim, false).is_some_and(|remotes| remotes <= PAIR)
}

/// Number of remotes that suffice to show that the claim has this truth value, if further remotes cannot change the
/// value. `None` if they can.
fn witnesses(claim: &Claim, value: bool) -> Option<u32> {
    match (claim, value) {
        (Claim::Compare(left, comparison, right), _) => compare(left, *comparison, right, value),
        (Claim::And(a, b), true) | (Claim::Or(a, b), false) => {
            Some(witnesses(a, value)? + witnesses(b, value)?)
        }
        (Claim::And(a, b), false) | (Claim::Or(a, b), true) => {
            Some(witnesses(a, value)?.max(witnesses(b, value)?))
        }
        (Claim::Not(a), _) => witnesses(a, !value),
        (Claim::Implies(a, b), true) => Some(witnesses(a, false)?.max(witnesses(b, true)?)),
        (Claim::Implies(a, b), false) => Some(witnesses(a, true)? + witnesses(b, false)?),
        // The lock belongs to the home, which every view has.
        (Claim::Locked, _) => Some(0),
    }
}

/// As [`witnesses`], for a comparison.
fn compare(left: &Amount, comparison: Comparison, right: &Amount, value: bool) -> Option<u32> {
    let comparison = if value {
        comparison
    } else {
        negate(comparison)
    };
    match (left, right) {
        (Amount::Constant(_), Amount::Constant(_)) => Some(0),
        (Amount::RemotesIn(_) | Amount::InFlight(_), Amount::Constant(bound)) => {
            lower_bound(comparison, *bound)
        }
        (Amount::Constant(bound), Amount::RemotesIn(_) | Amount::InFlight(_)) => {
            lower_bound(swap(comparison), *bound)
        }
        (
            Amount::RemotesIn(_) | Amount::InFlight(_),
            Amount::RemotesIn(_) | Amount::InFlight(_),
        ) => None,
    }
}

/// Smallest amount for which `amount comparison bound` holds, if it holds for all larger amounts too.
fn lower_bound(comparison: Comparison, bound: u16) -> Option<u32> {
    match comparison {
        Comparison::Greater => Some(u32::from(bound) + 1),
        Comparison::GreaterOrEqual => Some(bound.into()),
        Comparison::NotEqual if bound == 0 => Some(1),
        Comparison::Equal | Comparison::NotEqual | Comparison::Less | Comparison::LessOrEqual => {
            None
        }
    }
}

/// Comparison that holds exactly if this one does not.
fn negate(comparison: Comparison) -> Comparison {
    match comparison {
        Comparison::Equal => Comparison::NotEqual,
        Comparison::NotEqual => Comparison::Equal,
        Comparison::Less => Comparison::GreaterOrEqual,
        Comparison::LessOrEqual => Comparison::Greater,
        Comparison::Greater => Comparison::LessOrEqual,
        Comparison::GreaterOrEqual => Comparison::Less,
    }
}

/// Comparison with exchanged operands.
fn swap(comparison: Comparison) -> Comparison {
    match comparison {
        Comparison::Equal => Comparison::Equal,
        Comparison::NotEqual => Comparison::NotEqual,
        Comparison::Less => Comparison::Greater,
        Comparison::LessOrEqual => Comparison::GreaterOrEqual,
        Comparison::Greater => Comparison::Less,
        Comparison::GreaterOrEqual => Comparison::LessOrEqual,
    }
}
