//! Verdicts on shipped protocols and on small variations.

use crate::support::{explored, parsed, text_of, SmallVerdict};
use cohkit_diagnostics::line_column;
use cohkit_parameterised::{verify, Limits, Obstacle, Verdict};
use cohkit_protocol::text::{composes, parse};
use std::path::{Path, PathBuf};

/// The obstacle to a verdict on a text that must not be verified.
fn obstacle(text: &str) -> Obstacle {
    match verify(&parsed(text), &mut Limits::default()) {
        Verdict::Undecided(obstacle) => obstacle,
        Verdict::Verified(_) => panic!("verified:\n{text}"),
    }
}

/// The text of a verified protocol, with one change.
fn changed(name: &str, from: &str, to: &str) -> String {
    let text = text_of(name);
    assert!(text.contains(from), "{name} has no `{from}`");
    text.replace(from, to)
}

/// Row of the table of shipped protocols.
fn table_row(name: &str, text: &str) -> Option<String> {
    if composes(text) {
        return None;
    }
    let protocol = parse(text).expect("shipped file");
    let verdict = match verify(&protocol, &mut Limits::default()) {
        Verdict::Verified(proof) => format!(
            "**verified** | {} views, {} pairs",
            proof.views.len(),
            proof.extensions
        ),
        Verdict::Undecided(obstacle) => {
            let line = obstacle.span.map(|span| line_column(text, span.start).0);
            let line = line.map_or(String::new(), |line| format!("line {line}: "));
            format!("not decided | {line}{}", obstacle.reason)
        }
    };
    Some(format!("| `{name}` | {verdict} |"))
}

/// Files whose rows take too long for continuous integration.
const LARGE: [&str; 2] = ["back-invalidate.coh", "eci.coh"];

/// Lines of the documentation's table, from the shipped files and the texts of these tests. If `large` is false, the
/// rows of [`LARGE`] files are those of `current`.
fn table(current: &str, large: bool) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let files = |folder: &str| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(root.join(folder)).expect("a folder");
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("a file").path()).collect();
        files.sort();
        files
    };
    let texts = files("crates/parameterised/tests/parameterised/texts");
    let all = files("protocols").into_iter().chain(texts);
    let rows = all.filter_map(|file| {
        let name = file.file_name().expect("a name").to_string_lossy();
        if LARGE.contains(&&*name) && !large {
            let prefix = format!("| `{name}` |");
            let row = current.lines().find(|line| line.starts_with(&prefix));
            return Some(row.expect("a row").to_string());
        }
        let text = std::fs::read_to_string(&file).expect("a text");
        table_row(&name, &text)
    });
    rows.map(|row| row + "\n").collect()
}

/// Compares the documentation's table with the verdicts, or writes it.
fn check_table(large: bool) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/any-number.md");
    let text = std::fs::read_to_string(&page).expect("the page");
    let head = "| File | Verdict | Size, or obstacle |\n|---|---|---|\n";
    let (before, rest) = text.split_once(head).expect("the table");
    let end = rest.find("\n\n").expect("text after the table") + 1;
    let table = table(&rest[..end], large);
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        let text = format!("{before}{head}{table}{}", &rest[end..]);
        std::fs::write(&page, text).expect("the page is written");
        return;
    }
    assert_eq!(&rest[..end], table, "UPDATE_EXPECT=1 writes the table");
}

#[test]
fn documented_verdicts_are_those_of_the_method() {
    check_table(false);
}

#[test]
#[ignore = "minutes; `make soak` runs it"]
fn documented_verdicts_of_large_files_are_those_of_the_method() {
    check_table(true);
}

#[test]
fn lost_acknowledgement_is_not_verified() {
    // Two remotes: the home waits for an acknowledgement that a remote in `SE` does not send.
    let text = changed(
        "german",
        "SE       | Inv   | send InvAck |",
        "SE       | Inv   | |",
    );
    assert!(!obstacle(&text).reason.is_empty());
}

#[test]
fn early_grant_is_not_verified_although_two_remotes_are_safe() {
    // The home performs the store while one acknowledgement is still owed.
    let text = changed(
        "write-through",
        "InvAck if owed > 1 ",
        "InvAck if owed > 2 ",
    );
    let reason = obstacle(&text).reason;
    let properties = ["data value: ", "no unexpected message: "];
    assert!(
        properties.iter().any(|name| reason.starts_with(name)),
        "{reason}"
    );
}

#[test]
fn fault_that_needs_four_remotes_is_not_verified() {
    // The home performs the store at the first of three acknowledgements.
    let early = "W       | InvAck if owed == 3 | write deferred, send Ack to writer, writer := none, owed := 0 | R\n  ";
    let row = "W       | InvAck if owed > 1 ";
    let text = changed("write-through", row, &format!("{early}{row}"));
    let protocol = parsed(&text);
    assert_eq!(explored(&protocol, 3, 30_000), SmallVerdict::Holds);
    let found = explored(&protocol, 4, 300_000);
    assert!(matches!(found, SmallVerdict::Violated(_)), "{found:?}");
    assert!(!obstacle(&text).reason.is_empty());
}

#[test]
fn count_of_the_same_remote_twice_is_not_verified() {
    let text = changed("write-through", "owed := owed - 1", "owed := owed + 1");
    assert_eq!(
        obstacle(&text).reason,
        "`owed` does not count each remote once"
    );
}

#[test]
fn invariants_of_pairs_are_checked_and_others_refused() {
    let german = text_of("german");
    let text = |invariant: &str| format!("{german}\ninvariant extra: {invariant}\n");
    let exclusive = text("count(E) <= 1 and (count(E) == 0 or count(S SE) == 0)");
    let verdict = verify(&parsed(&exclusive), &mut Limits::default());
    assert!(matches!(verdict, Verdict::Verified(_)));
    let violated = obstacle(&text("count(S) <= 1")).reason;
    assert!(violated.starts_with("extra: "), "{violated}");
    for refused in ["count(S) <= 2", "count(I) >= 1", "count(S) >= count(E)"] {
        let refused = obstacle(&text(refused)).reason;
        let prefix = "a pair of remotes does not show";
        assert!(refused.starts_with(prefix), "{refused}");
    }
}

#[test]
fn limit_of_pairs_gives_no_verdict() {
    let text = text_of("german");
    let mut limits = Limits {
        max_extensions: 400,
        should_continue: None,
    };
    let Verdict::Undecided(obstacle) = verify(&parsed(text), &mut limits) else {
        panic!("verified with 400 pairs");
    };
    assert_eq!(obstacle.reason, "more than 400 pairs of remotes");
}

#[test]
fn search_of_one_remote_can_be_cancelled() {
    let text = text_of("cxl-mem");
    let mut calls = 0;
    let mut should_continue = || {
        calls += 1;
        false
    };
    let mut limits = Limits {
        should_continue: Some(&mut should_continue),
        ..Limits::default()
    };
    let Verdict::Undecided(obstacle) = verify(&parsed(text), &mut limits) else {
        panic!("verified by a cancelled search");
    };
    // One call, from the search of one remote: the searches of pairs have not begun.
    assert_eq!((obstacle.reason.as_str(), calls), ("interrupted", 1));
}

#[test]
fn cancelled_search_of_pairs_gives_no_verdict() {
    let text = text_of("msi_through_home");
    for calls in 2..5 {
        let mut left = calls;
        let mut should_continue = || {
            left -= 1;
            left > 0
        };
        let mut limits = Limits {
            should_continue: Some(&mut should_continue),
            ..Limits::default()
        };
        let Verdict::Undecided(obstacle) = verify(&parsed(text), &mut limits) else {
            panic!("verified by a cancelled search");
        };
        assert_eq!(obstacle.reason, "interrupted");
    }
}

#[test]
fn fault_among_sharers_only_is_not_verified() {
    // Requests that cannot be served at once are refused, so that the set of sharers is the only record of the home.
    // The home grants write permission to a sharer if all remotes are sharers, and there are at least three. Every pair
    // of remotes with this row is a pair of sharers, with a third one outside: only joins that keep the outside member
    // of two sharers show the fault.
    let row = "  V | GetM if count(sharers - { sender }) == 0 |";
    let fault = "  V | GetM if sender in sharers and count(cache - sharers) == 0 and count(sharers) >= 3 | send DataM, sharers := { sender }, excl := true | stay\n";
    let protocol = parsed(&changed("refusing_home", row, &format!("{fault}{row}")));
    assert_eq!(explored(&protocol, 2, 30_000), SmallVerdict::Holds);
    let found = explored(&protocol, 3, 30_000);
    assert!(matches!(found, SmallVerdict::Violated(_)), "{found:?}");
    let Verdict::Undecided(obstacle) = verify(&protocol, &mut Limits::default()) else {
        panic!("verified");
    };
    assert!(
        obstacle.reason.starts_with("single writer"),
        "{}",
        obstacle.reason
    );
}

/// A home that keeps a store, refuses it when the readers have answered, and writes it nevertheless when the writer has
/// given it up. The writer's own row changes what the home has kept.
fn refused_and_written() -> String {
    let changes = [
        ("  answer:  InvAck\n", "  answer:  InvAck, NackAck\n"),
        ("DataOnce (line), Ack\n", "DataOnce (line), Ack, Nack\n"),
        ("IW  waits Ack    ", "IW  waits Ack Nack"),
        (
            "  V           | Inv  ",
            "  IW          | Nack                | send NackAck   | I\n  V           | Inv  ",
        ),
        (
            "    W  waits InvAck",
            "    N  waits NackAck\n    W  waits InvAck",
        ),
        (
            "  W       | InvAck                                              | write deferred, send Ack to writer, writer := none, owed := 0  | R\n",
            "  W       | InvAck                                              | send Nack to writer, owed := 0  | N\n  \
             N       | NackAck | write deferred, writer := none | R\n  \
             N       | Read ReadOnce Write WriteLine | stall |\n",
        ),
    ];
    changes.iter().fold(
        text_of("write-through").to_string(),
        |text: String, (from, to)| {
            assert!(text.contains(from), "{from}");
            text.replacen(from, to, 1)
        },
    )
}

#[test]
fn row_of_a_cell_that_changes_a_kept_store_concerns_all_remotes() {
    let text = refused_and_written();
    let verdict = explored(&parsed(&text), 2, 10_000);
    assert!(matches!(&verdict, SmallVerdict::Violated(words) if words.contains("store")));
    obstacle(&text);
}
