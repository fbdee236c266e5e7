//! Rumur, an independent checker, agrees on protocol systems.

use cohkit_testing::rumur;

use cohkit_check::system::{model, Options};
use cohkit_engine::{check, Options as Search, Outcome};
use cohkit_murphi::Style;
use cohkit_protocol::construct::construct;
use cohkit_protocol::protocol::Home;
use cohkit_protocol::text::parse;
use rumur::{require, rumur, Compiled};

/// Compares verdict and number of states for one system of a protocol.
fn assert_rumur_agrees(text: &str, remotes: u16, lines: u8, expected: bool) {
    if !require("rumur") {
        return;
    }
    let protocol = parse(text).unwrap_or_else(|_| panic!("a text with errors"));
    let home = match &protocol.home {
        Home::Controller(home) => home.clone(),
        Home::Policy(_) => {
            let construction = construct(&protocol).unwrap_or_else(|e| panic!("{e:?}"));
            match remotes {
                1 => construction.flat(true),
                _ => construction.factored(true),
            }
        }
    };
    let model = model(&protocol, &home, remotes, lines, &Options::default()).unwrap();
    let every_state = Search {
        symmetry: false,
        ..Search::default()
    };
    let ours = check(&model, &every_state).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (rumur_verified, states, output) =
        rumur(&model, Style::Plain, Compiled::Unoptimised, folder.path());
    assert_eq!(ours.outcome == Outcome::Verified, expected);
    assert_eq!(rumur_verified, expected, "{output}");
    if expected {
        assert_eq!(ours.states, u128::from(states));
    }
}

fn shipped(name: &str) -> String {
    let root = env!("CARGO_MANIFEST_DIR");
    std::fs::read_to_string(format!("{root}/../../protocols/{name}.coh")).unwrap()
}

/// Includes faulty variants, which both must refute.
#[test]
fn rumur_agrees_on_registers_and_several_homes() {
    let root = env!("CARGO_MANIFEST_DIR");
    let text = std::fs::read_to_string(format!("{root}/../../tests/homes/ordered-at-homes.coh"));
    // The sizes of its system `two`.
    let text = (text.unwrap())
        .replace("size epochs 4", "size epochs 3")
        .replace("size entries 2", "size entries 1")
        .replace("size most 3", "size most 1");
    assert_rumur_agrees(&text, 1, 2, true);
    // An acknowledgement is counted that no request waits for.
    assert_rumur_agrees(&text.replace("unacked[home] += 1, ", ""), 1, 2, false);
    // Rows that change every line, of one cache and of two.
    assert_rumur_agrees(&shipped("self-invalidate"), 1, 2, true);
    assert_rumur_agrees(&shipped("self-invalidate"), 2, 1, true);
    // Messages between homes, with and without an order.
    let text = std::fs::read_to_string(format!("{root}/../../tests/homes/in-order.coh")).unwrap();
    assert_rumur_agrees(&text, 1, 2, true);
    assert_rumur_agrees(&text, 2, 2, true);
    assert_rumur_agrees(&text.replace("  ordered pass\n", ""), 1, 2, false);
    // Each home has one order for all its lines.
    let text = std::fs::read_to_string(format!("{root}/../../ordering/mp.coh")).unwrap();
    assert_rumur_agrees(&text, 1, 2, true);
}

/// Most shipped directories with rows, and two faulty variants of `msi`.
#[test]
fn rumur_agrees_on_hand_written_directories() {
    for name in [
        "msi",
        "mesi",
        "moesi",
        "ccix",
        "cxl-bias",
        "cxl-cache",
        "cxl-mem",
        "eci-near",
        "token-recall",
        "write-through",
        "write-through-two-step",
    ] {
        assert_rumur_agrees(&shipped(name), 2, 1, true);
    }
    assert_rumur_agrees(&shipped("write-through"), 3, 1, true);
    assert_rumur_agrees(&shipped("ccix"), 1, 2, true);
    assert_rumur_agrees(&shipped("cxl-cache"), 1, 2, true);
    assert_rumur_agrees(&shipped("eci-near"), 1, 2, true);
    let text = shipped("msi");
    assert_rumur_agrees(&text, 3, 1, true);
    // The dirty line does not reach memory.
    assert_rumur_agrees(
        &text.replace("| write, send PutAck", "| send PutAck"),
        2,
        1,
        false,
    );
    // Forwards overtake each other.
    assert_rumur_agrees(&text.replace("  ordered forward\n", ""), 2, 1, false);
}

/// Homes that are constructed from policies.
#[test]
fn rumur_agrees_on_constructed_homes() {
    assert_rumur_agrees(
        include_str!("../../../../tests/construction/base.coh"),
        1,
        1,
        true,
    );
    assert_rumur_agrees(&shipped("msi-policy"), 1, 1, true);
    assert_rumur_agrees(&shipped("msi-policy"), 3, 1, true);
    assert_rumur_agrees(&shipped("eci"), 1, 1, true);
}
