//! Two levels of caches, explored together: `mesi-l1.coh` below the caches of `mesi.coh`.

use cohkit_protocol::construct;
use cohkit_protocol::protocol::Protocol;
use cohkit_protocol::text;
use cohkit_system::data::Current;
use cohkit_system::world::SearchState as _;
use cohkit_system::world::{
    explore, explore_levels, Clusters, Found, LevelStep, Levels, Search, System, World, Wrong,
};
use std::collections::HashSet;

const INNER: &str = include_str!("../../../protocols/mesi-l1.coh");
const OUTER: &str = include_str!("../../../protocols/mesi.coh");

fn read(text: &str) -> Protocol {
    text::parse(text).unwrap_or_else(|errors| panic!("{}", errors[0].render("text", text, false)))
}

/// Runs a function on `l2s` L2s with `l1s` L1s below each.
fn with<T>(outer: &str, inner: &str, l2s: u16, l1s: u16, run: impl FnOnce(&Levels) -> T) -> T {
    let (outer, inner) = (read(outer), read(inner));
    let homes = [&outer, &inner].map(|protocol| construct::home(protocol, 2).unwrap());
    run(&Levels::new(
        System::new(&outer, &homes[0], l2s, 1, 7),
        System::new(&inner, &homes[1], l1s, 1, 7),
    ))
}

/// Explores such a system state by state.
fn joint(outer: &str, inner: &str, l2s: u16, l1s: u16, most: usize) -> Found<Clusters, LevelStep> {
    with(outer, inner, l2s, l1s, |levels| {
        explore(levels, Clusters::new(levels), most)
    })
}

/// Explores the same system as rows of interned states.
fn rows(l2s: u16, l1s: u16, symmetry: bool) -> Found<(), LevelStep> {
    let most = 10_000_000;
    with(OUTER, INNER, l2s, l1s, |levels| {
        explore_levels(levels, Search { most, symmetry }, &mut || true)
    })
}

/// Numbers of states, of transitions, and the depth. Panics unless the system is safe and quiescence is reachable from
/// every state.
fn size<W: std::fmt::Debug, S: std::fmt::Debug>(found: Found<W, S>) -> (usize, u64, u64) {
    match found {
        Found::Safe {
            worlds,
            transitions,
            depth,
            lost,
        } => {
            assert!(lost.is_none(), "something under way cannot end");
            (worlds.len(), transitions, depth)
        }
        Found::Wrong { what, way } => panic!("{what:?} after {way:?}"),
        Found::TooMany { .. } => panic!("there are more"),
    }
}

/// The property that a changed protocol file violates at the shortest distance.
fn broken(outer: (&str, &str), inner: (&str, &str)) -> String {
    let change = |text: &str, (from, to): (&str, &str)| {
        assert!(from.is_empty() || text.matches(from).count() == 1, "{from}");
        match from {
            "" => text.to_string(),
            _ => text.replace(from, to),
        }
    };
    let (outer, inner) = (change(OUTER, outer), change(INNER, inner));
    let plain = joint(&outer, &inner, 2, 1, 100_000);
    // The search by rows finds the same violation at the same distance, and its path is one of the states' paths.
    with(&outer, &inner, 2, 1, |levels| {
        for symmetry in [false, true] {
            let most = 100_000;
            let found = explore_levels(levels, Search { most, symmetry }, &mut || true);
            match (&plain, found) {
                (
                    Found::Wrong { what, way },
                    Found::Wrong {
                        what: others,
                        way: other,
                    },
                ) => {
                    assert!(what.contains(&others[0]), "{others:?}");
                    assert_eq!(way.len(), other.len());
                    let mut at: Clusters = Clusters::new(levels);
                    let steps = other.iter().map(|&step| at.take(levels, step));
                    let taken: Vec<_> = steps.take_while(|taken| *taken == Ok(true)).collect();
                    assert!(taken.len() + 1 >= way.len(), "{} of {other:?}", taken.len());
                }
                (Found::Safe { lost, .. }, Found::Safe { lost: other, .. }) => {
                    assert_eq!(lost.as_ref().map(Vec::len), other.map(|way| way.len()));
                }
                (plain, found) => panic!("{plain:?}, and {found:?}"),
            }
        }
    });
    match plain {
        Found::Wrong { what, .. } => match &what[0] {
            Wrong::Violated(violation) => violation.property.to_string(),
            Wrong::Exceeded(limit) => panic!("{limit}"),
        },
        Found::Safe { lost: Some(_), .. } => "drain".to_string(),
        other => panic!("it holds: {:?}", size(other)),
    }
}

#[test]
fn lower_level_is_coherent_on_its_own() {
    let protocol = read(INNER);
    let home = construct::home(&protocol, 2).unwrap();
    let system = System::new(&protocol, &home, 2u16, 1, 7);
    size(explore(&system, World::<Current>::new(&system), 100_000));
}

#[test]
fn two_levels_are_coherent_together() {
    let expected = (65_463, 282_586, 54);
    assert_eq!(size(joint(OUTER, INNER, 2, 1, 100_000)), expected);
    assert_eq!(size(rows(2, 1, false)), expected);
    let below = size(joint(OUTER, INNER, 1, 2, 100_000));
    assert_eq!(size(rows(1, 2, false)), below);
}

/// Two L2s with two L1s each. Without symmetry there are 6,025,013 states and 39,216,108 transitions.
#[test]
fn two_levels_of_two_are_coherent_together() {
    assert_eq!(size(rows(2, 2, true)), (953_922, 6_151_097, 58));
}

/// Symmetry identifies states that differ only in the numbers of caches, and no others; all states are counted.
#[test]
fn symmetry_merges_only_cache_renumberings() {
    for (l2s, l1s) in [(2, 1), (1, 2)] {
        with(OUTER, INNER, l2s, l1s, |levels| {
            let Found::Safe { worlds, .. } = explore(levels, Clusters::new(levels), 100_000) else {
                panic!("it is safe");
            };
            let turned: &[u8] = &[1, 0];
            let all: HashSet<&Clusters> = worlds.iter().collect();
            let mut standing = 0;
            let mut met: HashSet<&Clusters> = HashSet::new();
            for world in &worlds {
                let other = match l2s {
                    2 => world.permuted(levels, turned, &[&[0], &[0]]),
                    _ => world.permuted(levels, &[0], &[turned]),
                };
                let other = all.get(&other).expect("what is alike is reached, too");
                standing += usize::from(!met.contains(other));
                met.insert(world);
            }
            assert_eq!(size(rows(l2s, l1s, true)).0, standing);
        });
    }
}

/// The product search finds faults between levels, even if each protocol file alone is correct.
#[test]
fn faults_of_either_level_are_found_together() {
    let same = ("", "");
    for (outer, inner, property) in [
        // The inner protocol alone is correct: its home grants a write permission that the shared cache does not have.
        (
            same,
            (
                "GetS if memory writes",
                "GetS if owner == none",
            ),
            "inclusion",
        ),
        (
            same,
            (
                "  M        | Inv       | send Dirty  | I\n",
                "  M        | Inv       | send Clean  | I\n",
            ),
            "data value",
        ),
        // A store of the inner level is not recorded.
        (
            (
                "  E              | store                   |                                                | M        # silent\n",
                "  E              | store                   |                                                | stay\n",
            ),
            same,
            "data value",
        ),
        (
            (
                "  S              | Inv                     | send InvAck to requestor                       | I\n",
                "  S              | Inv                     | send InvAck to requestor                       | S\n",
            ),
            same,
            "single writer",
        ),
    ] {
        assert_eq!(broken(outer, inner), property, "{outer:?} {inner:?}");
    }
}
