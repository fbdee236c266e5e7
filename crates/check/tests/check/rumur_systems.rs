//! Verdicts and numbers of states of protocol systems, compared with Rumur, an independent checker that reads our
//! Murphi export.

use crate::support::{home_of, parse_valid, shipped};
use cohkit_check::system::{model, Options};
use cohkit_engine::{check, Options as Search, Outcome};
use cohkit_murphi::Style;
use cohkit_testing::rumur::{require, rumur, Compiled};

/// Asserts that both checkers verify a system of a protocol, with the same number of states.
fn assert_both_verify(text: &str, remotes: u16, lines: u8) {
    assert_both_agree(text, remotes, lines, true);
}

/// Asserts that both checkers find a violation in a system of a protocol.
fn assert_both_refute(text: &str, remotes: u16, lines: u8) {
    assert_both_agree(text, remotes, lines, false);
}

/// Compares verdict and number of states for one system of a protocol with the expected verdict.
fn assert_both_agree(text: &str, remotes: u16, lines: u8, is_verified: bool) {
    if !require("rumur") {
        return;
    }
    let protocol = parse_valid(text);
    let home = home_of(&protocol, remotes);
    let model = model(&protocol, &home, remotes, lines, &Options::default()).unwrap();
    let every_state = Search {
        symmetry: false,
        ..Search::default()
    };
    let ours = check(&model, &every_state).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (rumur_verified, states, output) =
        rumur(&model, Style::Plain, Compiled::Unoptimised, folder.path());
    let name = &protocol.name;
    assert_eq!(ours.outcome == Outcome::Verified, is_verified, "{name}");
    assert_eq!(rumur_verified, is_verified, "{name}: {output}");
    if is_verified {
        assert_eq!(ours.states, u128::from(states), "states of {name}");
    }
}

/// Registers, orders at homes, rows that change every line, and several homes, with faulty variants.
#[test]
fn rumur_agrees_on_registers_and_several_homes() {
    // Smaller sizes than the file's defaults: those of its system `two`.
    let text = include_str!("../../../../tests/homes/ordered-at-homes.coh")
        .replace("size epochs 4", "size epochs 3")
        .replace("size entries 2", "size entries 1")
        .replace("size most 3", "size most 1");
    assert_both_verify(&text, 1, 2);
    // Fault: a core does not count an outstanding acknowledgement.
    assert_both_refute(&text.replace("unacked[home] += 1, ", ""), 1, 2);
    // Bulk transitions, which change every line: one cache with two lines, and two caches with one line.
    assert_both_verify(&shipped("self-invalidate"), 1, 2);
    assert_both_verify(&shipped("self-invalidate"), 2, 1);
    // Messages between homes, with and without an order.
    let text = include_str!("../../../../tests/homes/in-order.coh");
    assert_both_verify(text, 1, 2);
    assert_both_verify(text, 2, 2);
    assert_both_refute(&text.replace("  ordered pass\n", ""), 1, 2);
    // Each home has one order for all its lines.
    let text = include_str!("../../../../ordering/mp.coh");
    assert_both_verify(text, 1, 2);
}

/// Most shipped directories with rows, and two faulty variants of `msi`.
#[test]
fn rumur_agrees_on_hand_written_directories() {
    for name in [
        "msi",
        "mesi",
        "moesi",
        "ccix",
        "chi",
        "cxl-bias",
        "cxl-cache",
        "cxl-mem",
        "eci-near",
        "tilelink",
        "token-recall",
        "write-through",
        "write-through-two-step",
    ] {
        assert_both_verify(&shipped(name), 2, 1);
    }
    assert_both_verify(&shipped("write-through"), 3, 1);
    assert_both_verify(&shipped("ccix"), 1, 2);
    assert_both_verify(&shipped("cxl-cache"), 1, 2);
    assert_both_verify(&shipped("eci-near"), 1, 2);
    let text = shipped("msi");
    assert_both_verify(&text, 3, 1);
    // The dirty line does not reach memory.
    assert_both_refute(&text.replace("| write, send PutAck", "| send PutAck"), 2, 1);
    // Forwards overtake each other.
    assert_both_refute(&text.replace("  ordered forward\n", ""), 2, 1);
}

/// Homes that are constructed from policies.
#[test]
fn rumur_agrees_on_constructed_homes() {
    assert_both_verify(
        include_str!("../../../../tests/construction/base.coh"),
        1,
        1,
    );
    assert_both_verify(&shipped("msi-policy"), 1, 1);
    assert_both_verify(&shipped("msi-policy"), 3, 1);
    assert_both_verify(&shipped("eci"), 1, 1);
}
