//! Two levels of caches, explored together: `mesi-l1.coh` below the caches of `mesi.coh`.

use cohkit_protocol::construct;
use cohkit_protocol::protocol::Protocol;
use cohkit_protocol::text;
use cohkit_system::data::Current;
use cohkit_system::state::{
    explore, explore_levels, Clusters, Found, LevelStep, Levels, Search, StepError, System,
    SystemState,
};
use std::collections::HashSet;

const INNER: &str = include_str!("../../../../protocols/mesi-l1.coh");
const OUTER: &str = include_str!("../../../../protocols/mesi.coh");

/// Reads a protocol file without errors.
pub fn read(text: &str) -> Protocol {
    text::parse(text).unwrap_or_else(|errors| panic!("{}", errors[0].render("text", text, false)))
}

/// Runs a function on `l2s` L2s with `l1s` L1s below each.
fn with_levels<T>(
    outer: &str,
    inner: &str,
    l2s: u16,
    l1s: u16,
    run: impl FnOnce(&Levels) -> T,
) -> T {
    let (outer, inner) = (read(outer), read(inner));
    let homes = [&outer, &inner].map(|protocol| construct::home(protocol, 2).unwrap());
    run(&Levels::new(
        System::new(&outer, &homes[0], l2s, 1, 7),
        System::new(&inner, &homes[1], l1s, 1, 7),
    ))
}

/// Explores a system of `l2s` outer caches with `l1s` inner caches below each, state by state.
fn explore_states(
    outer: &str,
    inner: &str,
    l2s: u16,
    l1s: u16,
    max_states: usize,
) -> Found<Clusters, LevelStep> {
    with_levels(outer, inner, l2s, l1s, |levels| {
        explore(levels, Clusters::new(levels), max_states)
    })
}

/// Explores the same system as rows of interned states.
fn rows(l2s: u16, l1s: u16, symmetry: bool) -> Found<(), LevelStep> {
    let max_states = 10_000_000;
    with_levels(OUTER, INNER, l2s, l1s, |levels| {
        explore_levels(
            levels,
            Search {
                max_rows: max_states,
                symmetry,
            },
            &mut || true,
        )
    })
}

/// Numbers of states, of transitions, and the depth. Panics unless the system is safe and quiescence is reachable from
/// every state.
pub fn size<W: std::fmt::Debug, S: std::fmt::Debug>(found: Found<W, S>) -> (usize, u64, u64) {
    match found {
        Found::Safe {
            states,
            transitions,
            depth,
            stuck_path,
        } => {
            assert!(
                stuck_path.is_none(),
                "quiescence is unreachable from some state"
            );
            (states.len(), transitions, depth)
        }
        Found::Violated { errors, path } => panic!("{errors:?} after {path:?}"),
        Found::LimitReached { .. } => panic!("state limit reached"),
    }
}

/// The property that changed protocol files violate at the shortest distance; `drain` if quiescence is unreachable. A
/// change replaces the first text, which occurs once, by the second; an empty text changes nothing.
fn violated_property(outer: (&str, &str), inner: (&str, &str)) -> String {
    let change = |text: &str, (from, to): (&str, &str)| {
        assert!(from.is_empty() || text.matches(from).count() == 1, "{from}");
        match from {
            "" => text.to_string(),
            _ => text.replace(from, to),
        }
    };
    let (outer, inner) = (change(OUTER, outer), change(INNER, inner));
    let plain = explore_states(&outer, &inner, 2, 1, 100_000);
    // The search by rows finds the same violation at the same distance, and its path is one of the states' paths.
    with_levels(&outer, &inner, 2, 1, |levels| {
        for symmetry in [false, true] {
            let max_states = 100_000;
            let found = explore_levels(
                levels,
                Search {
                    max_rows: max_states,
                    symmetry,
                },
                &mut || true,
            );
            match (&plain, found) {
                (
                    Found::Violated { errors, path },
                    Found::Violated {
                        errors: other_violations,
                        path: other_path,
                    },
                ) => {
                    assert!(
                        errors.contains(&other_violations[0]),
                        "{other_violations:?}"
                    );
                    assert_eq!(path.len(), other_path.len());
                    let mut state: Clusters = Clusters::new(levels);
                    let steps = other_path.iter().map(|&step| state.take(levels, step));
                    let results: Vec<_> =
                        steps.take_while(|results| *results == Ok(true)).collect();
                    assert!(
                        results.len() + 1 >= path.len(),
                        "{} of {other_path:?}",
                        results.len()
                    );
                }
                (
                    Found::Safe { stuck_path, .. },
                    Found::Safe {
                        stuck_path: other_stuck_path,
                        ..
                    },
                ) => {
                    assert_eq!(
                        stuck_path.as_ref().map(Vec::len),
                        other_stuck_path.map(|path| path.len())
                    );
                }
                (plain, found) => panic!("{plain:?}, and {found:?}"),
            }
        }
    });
    match plain {
        Found::Violated { errors, .. } => match &errors[0] {
            StepError::Violated(violation) => violation.property.to_string(),
            StepError::Exceeded(limit) => panic!("{limit}"),
        },
        Found::Safe {
            stuck_path: Some(_),
            ..
        } => "drain".to_string(),
        other => panic!("it holds: {:?}", size(other)),
    }
}

/// The inner protocol over memory with all permissions, without an outer level.
#[test]
fn lower_level_is_coherent_on_its_own() {
    let protocol = read(INNER);
    let home = construct::home(&protocol, 2).unwrap();
    let system = System::new(&protocol, &home, 2u16, 1, 7);
    size(explore(
        &system,
        SystemState::<Current>::new(&system),
        100_000,
    ));
}

/// Both searches, by states and by rows, find the same numbers of states and transitions and the same depth.
#[test]
fn two_levels_are_coherent_together() {
    let expected = (65_463, 282_586, 54);
    assert_eq!(size(explore_states(OUTER, INNER, 2, 1, 100_000)), expected);
    assert_eq!(size(rows(2, 1, false)), expected);
    let expected_below = size(explore_states(OUTER, INNER, 1, 2, 100_000));
    assert_eq!(size(rows(1, 2, false)), expected_below);
}

/// Two L2s with two L1s each. Without symmetry there are 6,025,013 states and 39,216,108 transitions.
#[test]
fn two_by_two_levels_are_coherent_together() {
    assert_eq!(size(rows(2, 2, true)), (953_922, 6_151_097, 58));
}

/// Symmetry identifies states that differ only in the numbers of caches, and no others; all states are counted.
#[test]
fn symmetry_merges_only_cache_renumberings() {
    for (l2s, l1s) in [(2, 1), (1, 2)] {
        with_levels(OUTER, INNER, l2s, l1s, |levels| {
            let Found::Safe { states, .. } = explore(levels, Clusters::new(levels), 100_000) else {
                panic!("expected no violation");
            };
            let swapped: &[u8] = &[1, 0];
            let known_states: HashSet<&Clusters> = states.iter().collect();
            let mut representatives = 0;
            let mut visited: HashSet<&Clusters> = HashSet::new();
            for system_state in &states {
                let permuted = match l2s {
                    2 => system_state.permuted(levels, swapped, &[&[0], &[0]]),
                    _ => system_state.permuted(levels, &[0], &[swapped]),
                };
                let permuted = known_states.get(&permuted).expect("reached permuted state");
                representatives += usize::from(!visited.contains(permuted));
                visited.insert(system_state);
            }
            assert_eq!(size(rows(l2s, l1s, true)).0, representatives);
        });
    }
}

/// The product search finds faults between levels, even if each protocol file alone is correct.
#[test]
fn faults_of_either_level_are_detected_jointly() {
    let unchanged = ("", "");
    for (outer, inner, property) in [
        // The inner protocol alone is correct: its home grants a write permission that the shared cache does not have.
        (
            unchanged,
            (
                "GetS if memory writes",
                "GetS if owner == none",
            ),
            "inclusion",
        ),
        // An inner cache answers a recall as if its modified line were clean, and the write is lost.
        (
            unchanged,
            (
                "  M        | Inv       | send Dirty  | I\n",
                "  M        | Inv       | send Clean  | I\n",
            ),
            "data value",
        ),
        // A store of the inner level does not make the outer copy dirty, so the outer cache later drops it.
        (
            (
                "  E              | store                   |                                                | M        # silent\n",
                "  E              | store                   |                                                | stay\n",
            ),
            unchanged,
            "data value",
        ),
        // An outer cache acknowledges an invalidation and keeps its read permission.
        (
            (
                "  S              | Inv                     | send InvAck to requestor                       | I\n",
                "  S              | Inv                     | send InvAck to requestor                       | S\n",
            ),
            unchanged,
            "single writer",
        ),
    ] {
        assert_eq!(violated_property(outer, inner), property, "{outer:?} {inner:?}");
    }
}
