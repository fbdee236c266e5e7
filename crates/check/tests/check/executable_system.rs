//! The checker's models, compared with the executable system: the same states, transitions, depth and verdicts. A
//! difference means that the lowering or the execution of rows does not follow the semantics of controllers.

use crate::support::parse_valid;
use cohkit_check::system;
use cohkit_engine::{check, Options, Outcome, Property};
use cohkit_protocol::construct;
use cohkit_protocol::protocol::Protocol;
use cohkit_protocol::remotes::Remotes;
use cohkit_system::data::{Current, Words};
use cohkit_system::state::{explore, Found, System, SystemState};
use std::path::Path;

/// Maximum number of states to explore; larger systems are left to the checker.
const MAX_STATES: usize = 50_000;

/// Asserts that execution and model have the same number of states and transitions, the same depth, and the same
/// verdict on quiescence. Returns false if the system is too large.
fn compare_system(protocol: &Protocol, remotes: Remotes, lines: u8) -> bool {
    let total = remotes.total();
    let name = format!("{} {total}x{lines}", protocol.name);
    let home = construct::home(protocol, total).unwrap_or_else(|error| panic!("{name}: {error:?}"));
    let channel_capacity = system::Options::default().capacity;
    let system = System::new(protocol, &home, remotes, lines, channel_capacity);
    let found = explore(&system, SystemState::<Current>::new(&system), MAX_STATES);
    if matches!(found, Found::LimitReached { .. }) {
        return false;
    }
    let model = system::model(protocol, &home, remotes, lines, &system::Options::default());
    let options = Options {
        decompose: false,
        symmetry: false,
        ..Options::default()
    };
    let report = check(&model.unwrap(), &options).unwrap();
    match found {
        Found::Safe {
            states,
            transitions,
            depth,
            stuck_path,
        } => {
            let drains = !matches!(
                &report.outcome,
                Outcome::Violated {
                    property: Property::Drain | Property::NoDeadlock,
                    ..
                }
            );
            let modelled = (report.states, report.transitions, report.depth);
            let executed = (states.len() as u128, transitions.into(), depth);
            assert_eq!(modelled, executed, "{name}: states, transitions and depth");
            assert_eq!(drains, stuck_path.is_none(), "{name}: quiescence");
        }
        Found::Violated { errors, path } => panic!("{name}: {errors:?} after {path:?}"),
        Found::LimitReached { .. } => unreachable!("it was small enough"),
    }
    true
}

/// Returns the protocols of a folder, without compositions.
fn protocols_in(folder: &str) -> Vec<Protocol> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let entries = std::fs::read_dir(root.join(folder)).unwrap();
    let mut paths: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .collect();
    paths.sort();
    paths.retain(|path| !cohkit_protocol::text::composes(&std::fs::read_to_string(path).unwrap()));
    let texts = paths.iter().map(std::fs::read_to_string);
    texts.map(|text| parse_valid(&text.unwrap())).collect()
}

/// Compares every system of a folder's protocols, and the further sizes of those with one kind of remote. Returns the
/// number of compared systems, and the names of those that were too large.
fn compare_every_system(folder: &str, further_sizes: &[(u16, u8)]) -> (usize, Vec<String>) {
    let (mut compared, mut too_large_systems) = (0, Vec::new());
    for parsed in protocols_in(folder) {
        let mut sizes = Vec::new();
        for system in &parsed.systems {
            let protocol = system.resized_protocol.as_deref().unwrap_or(&parsed);
            sizes.push((protocol, system.remotes, system.lines));
        }
        for &(remotes, lines) in further_sizes.iter().filter(|_| parsed.kinds.len() == 1) {
            let remotes = Remotes::from(remotes);
            if !(parsed.systems.iter())
                .any(|system| (system.remotes, system.lines) == (remotes, lines))
            {
                sizes.push((&parsed, remotes, lines));
            }
        }
        for (protocol, remotes, lines) in sizes {
            match compare_system(protocol, remotes, lines) {
                true => compared += 1,
                false => {
                    too_large_systems.push(format!("{} {}x{lines}", parsed.name, remotes.total()))
                }
            }
        }
    }
    (compared, too_large_systems)
}

/// Registers, messages about no line, several homes and kinds of remotes couple the lines of a system.
#[test]
fn execution_matches_the_model_for_coupled_lines() {
    // Folder, number of compared systems, and systems that are too large.
    let folders = [
        ("tests/homes", 9, &["in_order 2x2"][..]),
        ("tests/kinds", 2, &[]),
        (
            "ordering",
            14,
            &["cord 2x1", "cord 1x2", "so 2x1", "so 3x1"],
        ),
        ("ordering/tso", 14, &["cord_tso 1x2"]),
        (
            "ordering/readings",
            4,
            &["cord_drained 1x2", "cord_modular 1x2"],
        ),
    ];
    let found = folders.map(|(folder, ..)| (folder, compare_every_system(folder, &[])));
    let expected = folders.map(|(folder, count, too_large)| {
        let too_large_systems = too_large.iter().map(|name| (*name).to_string());
        (folder, (count, too_large_systems.collect::<Vec<_>>()))
    });
    assert_eq!(found, expected);
}

/// Networks have shared input queues, and choices have one step for each member of a set.
#[test]
fn execution_matches_the_model_for_networks_and_choices() {
    let (compared, too_large_systems) = compare_every_system("tests/networks", &[]);
    assert_eq!((compared, too_large_systems), (16, Vec::new()));
}

/// Compares the declared systems and three small sizes. Lists the systems that are too large, so that none is left
/// out unnoticed.
#[test]
fn execution_matches_the_model_for_shipped_protocols() {
    let (compared, too_large_systems) =
        compare_every_system("protocols", &[(1, 1), (2, 1), (1, 2)]);
    let too_large = [
        "back_invalidate 1x2",
        "back_invalidate 2x1",
        "cxl_bias 1x2",
        "cxl_bias 3x1",
        "cxl_mem 1x2",
        "cxl_mem 2x1",
        "cxl_mem 3x1",
        "eci_near 3x1",
        "eci 1x2",
        "eci 2x1",
        "mesi_l1 3x1",
        "mesi_l1 1x2",
        "mesi 2x2",
        "moesi 3x1",
        "moesi 2x2",
        "msi 2x2",
        "token 3x1",
        "token 2x2",
        "write_through_two_step 2x2",
        "write_through 2x2",
    ];
    assert_eq!(too_large_systems, too_large);
    assert_eq!(compared, 58);
}

/// Tickets, ranks and the copies that atomic accesses read are the same in both engines, with and without an order of
/// stores.
#[test]
fn execution_matches_the_model_for_posted_stores() {
    let own_store = include_str!("../../../../tests/stores/own-store.coh");
    let waiting = include_str!("../../../../tests/stores/waits.coh");
    let split_atomic = include_str!("../../../../tests/stores/split-atomic.coh");
    let three_stores = own_store
        .replace("0..1", "0..3")
        .replace("open < 1", "open < 3");
    let texts = [
        waiting.to_string(),
        three_stores.replace("reply home", "ordered put, read; reply home"),
        three_stores
            .replace("| load  ", "| load if open == 0 ")
            .replace("reply home", "ordered put; reply home"),
        split_atomic.replace(
            "L A | Write | write, send Done | stay",
            "L | Write | write, send Done | stay; A | Write | stall",
        ),
    ];
    for text in texts {
        let protocol = parse_valid(&text);
        for remotes in [1, 2] {
            assert!(
                compare_system(&protocol, Remotes::from(remotes), 1),
                "{text}"
            );
        }
    }
}

/// One bit per copy is as exact as the words that stores write: if the checker finds no violation with bits, there is
/// none with words. The number of words is unbounded, so only the states nearest to the initial one are visited.
#[test]
fn data_bits_are_as_exact_as_words() {
    const MAX_VISITED_STATES: usize = 3_000;
    let folders = ["protocols", "tests/homes", "tests/kinds", "ordering"];
    for parsed in folders.into_iter().flat_map(protocols_in) {
        for declared in &parsed.systems {
            let protocol = declared.resized_protocol.as_deref().unwrap_or(&parsed);
            let (remotes, lines) = (declared.remotes, declared.lines);
            let home = construct::home(protocol, remotes.total()).unwrap();
            let channel_capacity = system::Options::default().capacity;
            let system = System::new(protocol, &home, remotes, lines, channel_capacity);
            let found = explore(
                &system,
                SystemState::<Words>::new(&system),
                MAX_VISITED_STATES,
            );
            if let Found::Violated { errors, path } = found {
                let name = &protocol.name;
                panic!("{name} {remotes:?} {lines}: {errors:?} after {path:?}");
            }
        }
    }
}
