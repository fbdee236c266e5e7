//! The checker's models against the executable world: the same states, transitions, depth and verdicts.

use cohkit_check::system;
use cohkit_engine::{check, Options, Outcome, Property};
use cohkit_protocol::construct;
use cohkit_protocol::protocol::Protocol;
use cohkit_protocol::remotes::Remotes;
use cohkit_protocol::text::parse;
use cohkit_system::data::Current;
use cohkit_system::world::{explore, Found, System, World};
use std::path::Path;

/// Systems of more states are left to the checker.
const MOST: usize = 50_000;

fn read(path: &Path) -> Protocol {
    let text = std::fs::read_to_string(path).unwrap();
    parse(&text).unwrap_or_else(|errors| {
        let all = errors.iter().map(|e| e.render("text", &text, false));
        panic!("{}", all.collect::<String>())
    })
}

/// Both ways to visit all states of a system; true if it was small enough.
fn both(protocol: &Protocol, remotes: Remotes, lines: u8) -> bool {
    compared(protocol, (remotes, lines, false))
}

/// The same of one whose memory may be lent.
fn compared(protocol: &Protocol, (remotes, lines, lent): (Remotes, u8, bool)) -> bool {
    let total = remotes.total();
    let name = format!("{} {total}x{lines}", protocol.name);
    let home = construct::home(protocol, total).unwrap_or_else(|e| panic!("{name}: {e:?}"));
    let room = system::Options::default().capacity;
    let world = System::new(protocol, &home, remotes, lines, room);
    let world = if lent { world.lend() } else { world };
    let found = explore(&world, World::<Current>::new(&world), MOST);
    if matches!(found, Found::TooMany { .. }) {
        return false;
    }
    let sized = system::Options {
        lent,
        ..system::Options::default()
    };
    let model = system::model(protocol, &home, remotes, lines, &sized);
    let options = Options {
        decompose: false,
        symmetry: false,
        ..Options::default()
    };
    let report = check(&model.unwrap(), &options).unwrap();
    match found {
        Found::Safe {
            worlds,
            transitions,
            depth,
            lost,
        } => {
            let drains = !matches!(
                &report.outcome,
                Outcome::Violated {
                    property: Property::Drain,
                    ..
                }
            );
            assert_eq!(
                (report.states, report.transitions, report.depth, drains),
                (
                    worlds.len() as u128,
                    transitions.into(),
                    depth,
                    lost.is_none()
                ),
                "{name}"
            );
        }
        Found::Wrong { what, way } => panic!("{name}: {what:?} after {way:?}"),
        Found::TooMany { .. } => unreachable!("it was small enough"),
    }
    true
}

/// Registers, messages about no line and several homes join the lines of a system.
#[test]
fn the_world_of_texts_that_join_lines_is_the_checkers_model() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let texts = ["tests/homes", "ordering"].map(|folder| std::fs::read_dir(root.join(folder)));
    let mut compared = 0;
    for entry in texts.into_iter().flat_map(Result::unwrap) {
        let path = entry.unwrap().path();
        if path.is_dir() {
            continue;
        }
        let text = read(&path);
        for system in &text.systems {
            let protocol = system.sized.as_deref().unwrap_or(&text);
            compared += usize::from(both(protocol, system.remotes, system.lines));
        }
    }
    assert!(compared >= 2, "{compared}");
}

#[test]
fn the_world_of_every_shipped_text_is_the_checkers_model() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../protocols");
    let mut compared = 0;
    let mut texts: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    texts.sort();
    texts.retain(|path| !cohkit_protocol::text::composes(&std::fs::read_to_string(path).unwrap()));
    for text in texts {
        let protocol = read(&text);
        let systems = protocol.systems.iter();
        let mut sizes: Vec<(Remotes, u8)> = systems.map(|s| (s.remotes, s.lines)).collect();
        if protocol.kinds.len() == 1 {
            for (remotes, lines) in [(1, 1), (2, 1), (1, 2)] {
                let size = (Remotes::from(remotes), lines);
                if !sizes.contains(&size) {
                    sizes.push(size);
                }
            }
        }
        for (remotes, lines) in sizes {
            compared += usize::from(both(&protocol, remotes, lines));
        }
    }
    // Most of them are small enough.
    assert!(compared >= 20, "{compared}");
}
