//! Two levels of caches, explored together: `mesi-l1.coh` below the caches of `mesi.coh`.

use cohkit_protocol::construct;
use cohkit_protocol::protocol::Protocol;
use cohkit_protocol::text;
use cohkit_system::data::Current;
use cohkit_system::world::{explore, Clusters, Found, LevelStep, Levels, System, World, Wrong};

const INNER: &str = include_str!("../../../tests/levels/mesi-l1.coh");
const OUTER: &str = include_str!("../../../protocols/mesi.coh");

fn read(text: &str) -> Protocol {
    text::parse(text).unwrap_or_else(|errors| panic!("{}", errors[0].render("text", text, false)))
}

/// What is found where so many L2s have so many L1s each.
fn joint(outer: &str, inner: &str, l2s: u16, l1s: u16, most: usize) -> Found<Clusters, LevelStep> {
    let (outer, inner) = (read(outer), read(inner));
    let homes = [&outer, &inner].map(|protocol| construct::home(protocol, 2).unwrap());
    let levels = Levels::new(
        System::new(&outer, &homes[0], l2s, 1, 7),
        System::new(&inner, &homes[1], l1s, 1, 7),
    );
    explore(&levels, Clusters::new(&levels), most)
}

/// The size of what is safe, and that everything in it can come to an end.
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

/// The property that a change of a text breaks, at the least distance at which any is.
fn broken(outer: (&str, &str), inner: (&str, &str)) -> String {
    let change = |text: &str, (from, to): (&str, &str)| {
        assert!(from.is_empty() || text.matches(from).count() == 1, "{from}");
        match from {
            "" => text.to_string(),
            _ => text.replace(from, to),
        }
    };
    match joint(&change(OUTER, outer), &change(INNER, inner), 2, 1, 100_000) {
        Found::Wrong { what, .. } => match &what[0] {
            Wrong::Violated(violation) => violation.property.to_string(),
            Wrong::Exceeded(limit) => panic!("{limit}"),
        },
        Found::Safe { lost: Some(_), .. } => "drain".to_string(),
        other => panic!("it holds: {:?}", size(other)),
    }
}

#[test]
fn the_caches_below_are_coherent_by_themselves() {
    let protocol = read(INNER);
    let home = construct::home(&protocol, 2).unwrap();
    let system = System::new(&protocol, &home, 2u16, 1, 7);
    size(explore(&system, World::<Current>::new(&system), 100_000));
}

#[test]
fn two_levels_are_coherent_together() {
    assert_eq!(
        size(joint(OUTER, INNER, 2, 1, 100_000)),
        (65_463, 282_586, 54)
    );
}

/// What goes wrong between levels is found, though each text may be good by itself.
#[test]
fn faults_of_either_level_are_found_together() {
    let same = ("", "");
    for (outer, inner, property) in [
        // The inner text is good alone: its home gives a right to write that the shared cache does not have.
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
        // A store of the level below is not written down.
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
