//! Tests of progress: every access or operation that begins can be performed. The protocols that violate
//! progress satisfy every other property.

use crate::support::{parse_valid, shipped};
use cohkit_check::progress::{progress, Progress, PROGRESS};
use cohkit_check::system::progress::{kinds, unproven_kinds, watch_model, Kind};
use cohkit_check::system::{model, Options};
use cohkit_engine::search::Reason;
use cohkit_engine::{check, Options as Search, Outcome};
use cohkit_protocol::construct::construct;
use cohkit_protocol::controller::{Access, Controller};
use cohkit_protocol::protocol::{Home, Protocol};

/// Template of a protocol with one copy of the line, which is recalled when another cache requests the line.
/// [`one_copy`] replaces `ROWS_IN_I`, `ROWS_IN_V` and `ROWS_WHILE_BUSY` by rows for requests, and `LOCALS` by rows for
/// the device.
const ONE_COPY: &str = "
protocol one_copy
line 64 bytes
channels {
  request  remote -> home
  reply    remote -> home
  grant    home -> remote
  forward  home -> remote
  ordered grant, forward
}
messages {
  request: Get
  reply:   Put (line, dirty)
  grant:   Data (line), Nack
  forward: Recall
}
remote cache {
  states { I; V reads writes dirty; IV waits Data Nack }
  I  | load store | send Get | IV
  IV | Data       |          | V
  IV | Nack       |          | I
  V  | Recall     | send Put | I
}
home directory {
  states { I; V; R waits Put; L waits Put }
  variables { owner: remote; next: remote; flag: bool; banned: set of remote }
  local recall { ensure all == I }
ROWS_IN_I
  I   | Get    | send Data, owner := sender                                | V
ROWS_IN_V
  V   | Get    | send Recall to owner, next := sender                      | R
ROWS_WHILE_BUSY
  R   | Put    | write, send Data to next, owner := next, next := none     | V
  L   | Put    | write, acknowledge recall, owner := none                  | I
LOCALS
}
";

/// Correct rows for the device.
const LOCALS: &str = "
  I   | recall | acknowledge recall    | stay
  V   | recall | send Recall to owner  | L
  R L | recall | stall
";

/// Returns the protocol [`ONE_COPY`] with these rows. Without a row that sends Nack, the message is removed.
fn one_copy(rows_in_i: &str, rows_in_v: &str, rows_while_busy: &str, locals: &str) -> String {
    let text = ONE_COPY
        .replace("ROWS_IN_I", rows_in_i)
        .replace("ROWS_IN_V", rows_in_v);
    let text = text.replace("ROWS_WHILE_BUSY", rows_while_busy);
    let text = text.replace("LOCALS", locals);
    match text.contains("send Nack") {
        true => text,
        false => text
            .replace(", Nack", "")
            .replace("Data Nack", "Data")
            .replace("  IV | Nack       |          | I\n", ""),
    }
}

/// Returns the hand-written home, or the constructed one, whose rows are factored for any number of remotes.
fn home(protocol: &Protocol) -> Controller {
    match &protocol.home {
        Home::Controller(home) => home.clone(),
        Home::Policy(_) => construct(protocol).unwrap().factored(true),
    }
}

/// Asserts that every other property holds on one line, and returns the result of the progress check.
fn check_progress(text: &str, remotes: u16, search: &Search) -> Progress {
    let protocol = parse_valid(text);
    let home = home(&protocol);
    let system_options = Options {
        trial: Some(1),
        ..Options::default()
    };
    let model = model(&protocol, &home, remotes, 1, &Options::default()).unwrap();
    let report = check(&model, &Search::default()).unwrap();
    assert_eq!(report.outcome, Outcome::Verified, "all but progress holds");
    progress(&protocol, &home, (remotes, 1), &system_options, search).unwrap()
}

/// Returns the message of the progress violation. Asserts that one and two threads give the same violation, and that
/// its trace has the same length without symmetry reduction.
fn find_violation(text: &str, remotes: u16) -> String {
    let message_and_steps = |threads, symmetry| {
        let search = Search {
            threads,
            symmetry,
            ..Search::default()
        };
        match check_progress(text, remotes, &search).outcome {
            Outcome::Violated {
                property,
                message,
                trace,
            } => {
                assert_eq!(property, PROGRESS);
                (message, trace.steps.len())
            }
            other => panic!("progress is not violated, but {other:?}"),
        }
    };
    let (message, steps) = message_and_steps(1, true);
    assert_eq!(message_and_steps(2, true), (message.clone(), steps));
    assert_eq!(message_and_steps(1, false).1, steps);
    message
}

/// Checks that progress is verified and that every access begins in some state.
fn assert_verified(text: &str, remotes: u16) {
    let found = check_progress(text, remotes, &Search::default());
    assert_eq!(found.outcome, Outcome::Verified);
    assert!(found.never_started.is_empty());
}

/// Quiescence holds, because each rejected store takes its cache back to a stable state.
#[test]
fn permanent_rejection_of_stores_violates_progress() {
    // The home serves a GetM behind a guard that is never true, and answers Nack.
    let text = shipped("msi")
        .replace("count), InvAck", "count), InvAck, Nack")
        .replace("waits Data InvAck\n", "waits Data InvAck Nack\n")
        .replace(
            "  # The outstanding request",
            "  IM_AD | Nack | | I\n  SM_AD | Nack | | S\n  # The outstanding request",
        )
        .replace("I S     | GetM  ", "I S     | GetM if count(sharers) > 3 ")
        .replace("M       | GetM  ", "M       | GetM if count(sharers) > 3 ")
        .replace(
            "  S_D     | GetS GetM ",
            "  I S M | GetM | send Nack | stay\n  S_D     | GetS GetM ",
        );
    let message = find_violation(&text, 2);
    assert_eq!(
        message,
        "a store of cache 0, which is in IM_AD, can never be performed"
    );
}

/// The row that would accept the operation has a guard that never holds.
#[test]
fn operation_refused_in_every_state_violates_progress() {
    let always_refused = "
  I     | recall if flag | acknowledge recall | stay
  I V R L | recall | refuse
";
    let message = find_violation(&one_copy("", "", "  R L | Get | stall", always_refused), 2);
    assert_eq!(
        message,
        "the device's recall can never be performed; the directory is in I"
    );
}

/// A guard on a variable that no row assigns can still hold: `mode` has the required value initially.
#[test]
fn operation_refused_by_an_initial_value_violates_progress() {
    let refused_initially = "
  I     | recall if mode == 1 | refuse
  I     | recall              | acknowledge recall | stay
  V R L | recall              | refuse
";
    let text = one_copy("", "", "  R L | Get | stall", refused_initially);
    let variables = "banned: set of remote }";
    let text = text.replace(variables, "banned: set of remote; mode: 0..1 = 1 }");
    let message = find_violation(&text, 2);
    assert_eq!(
        message,
        "the device's recall can never be performed; the directory is in I"
    );
}

/// The home refuses the operation while a recall is outstanding, and accepts it later.
#[test]
fn temporary_refusal_is_verified() {
    // The device retries after the home has received the recalled copy.
    let refused_while_waiting = "
  I     | recall      | acknowledge recall   | stay
  V     | recall      | send Recall to owner | L
  R L   | recall      | refuse
";
    assert_verified(
        &one_copy("", "", "  R L | Get | stall", refused_while_waiting),
        2,
    );
}

/// Progress must hold from every reachable state, not only from the initial one.
#[test]
fn permanent_rejection_in_one_state_violates_progress() {
    // A request during a recall sets a flag that no row clears.
    let rejection = "  I   | Get if flag | send Nack | stay";
    let message = find_violation(
        &one_copy(
            rejection,
            &rejection.replace("I  ", "V  "),
            "  R   | Get | send Nack, flag := true | stay\n  L | Get | stall",
            LOCALS,
        ),
        2,
    );
    assert!(message.starts_with("a load of cache "), "{message}");
}

/// Only one of the caches is rejected for ever; the others are served.
#[test]
fn permanent_ban_of_a_remote_violates_progress() {
    let rejection = "  I   | Get if sender in banned | send Nack | stay";
    let text = one_copy(
        rejection,
        &rejection.replace("I  ", "V  "),
        "  R   | Get | send Nack, banned := banned + { sender } | stay\n  L | Get | stall",
        LOCALS,
    );
    for remotes in [2, 3] {
        let message = find_violation(&text, remotes);
        assert!(message.starts_with("a load of cache 0"), "{message}");
    }
}

/// Progress demands that some path performs the access, not that every path does.
#[test]
fn unfair_but_always_possible_service_is_verified() {
    // Each request during a recall is rejected: unfair, but no violation.
    let text = one_copy("", "", "  R L | Get | send Nack | stay", LOCALS);
    for remotes in [1, 2, 3] {
        assert_verified(&text, remotes);
    }
    let protocol = parse_valid(&text);
    // Quiescence alone does not imply progress here, so a search is necessary.
    let unproven = unproven_kinds(&protocol, &home(&protocol));
    assert_eq!(
        unproven,
        [Kind::Access(Access::Load), Kind::Access(Access::Store)]
    );
}

/// A state limit ends the progress search without a verdict.
#[test]
fn limited_progress_search_is_undecided() {
    let text = one_copy("", "", "  R L | Get | send Nack | stay", LOCALS);
    let search = Search {
        max_states: Some(5),
        ..Search::default()
    };
    let reason = Reason::MaxStates;
    let found = check_progress(&text, 2, &search);
    assert_eq!(found.outcome, Outcome::Undecided { reason });
}

/// A row that no reachable state takes is no violation, but the result names its access.
#[test]
fn access_that_never_begins_is_listed() {
    // The state X, in which the demotion would begin, is unreachable: its guard is never true.
    let text = one_copy("", "", "  R L | Get | stall", LOCALS)
        .replace(
            "states { I; V reads writes dirty;",
            "variables { n: count }\n  states { I; V reads writes dirty; X reads writes dirty;",
        )
        .replace(
            "IV | Data       |",
            "IV | Data if n > 0 | | X\n  IV | Data |",
        )
        .replace("V  | Recall ", "X | demote | send Put | I\n  V X | Recall ");
    let found = check_progress(&text, 2, &Search::default());
    assert_eq!(found.outcome, Outcome::Verified);
    assert_eq!(found.never_started, ["demote"]);
}

/// The rows prove progress, so no search is needed.
#[test]
fn quiescence_implies_progress_of_shipped_protocols() {
    for name in [
        "msi",
        "mesi",
        "moesi",
        "msi-policy",
        "eci",
        "back-invalidate",
        "ccix",
        "cxl-bias",
        "cxl-cache",
        "cxl-mem",
        "write-through",
        "write-through-two-step",
        "token",
        "eci-near",
    ] {
        let protocol = parse_valid(&shipped(name));
        let home = home(&protocol);
        assert!(kinds(&protocol, &home).len() > 2);
        assert_eq!(unproven_kinds(&protocol, &home), [], "{name}");
    }
}

/// The search verifies progress of each access and operation, also where quiescence already implies it.
#[test]
fn quiescence_agrees_with_progress_search_per_access() {
    for (name, remotes) in [
        ("msi", 2),
        ("mesi", 2),
        ("msi-policy", 2),
        ("eci", 1),
        ("back-invalidate", 1),
        ("cxl-bias", 2),
        ("cxl-mem", 1),
        ("write-through", 2),
        ("write-through-two-step", 2),
        ("token", 2),
    ] {
        let protocol = parse_valid(&shipped(name));
        let home = home(&protocol);
        let sized = model(&protocol, &home, remotes, 1, &Options::default()).unwrap();
        let unwatched = check(&sized, &Search::default()).unwrap();
        assert_eq!(unwatched.outcome, Outcome::Verified, "{name}");
        for kind in kinds(&protocol, &home) {
            let watching_model =
                watch_model(&protocol, &home, (remotes, 1), kind, &Options::default()).unwrap();
            let report = check(&watching_model.model, &Search::default()).unwrap();
            assert_eq!(report.outcome, Outcome::Verified, "{name} {kind:?}");
            // Watching adds states if the access is outstanding in some state.
            assert!(report.states >= unwatched.states, "{name} {kind:?}");
            // The access is outstanding in some reachable state, unless its first row performs it.
            let mut model = watching_model.model;
            model.invariants = std::mem::take(&mut model.liveness);
            let report = check(&model, &Search::default()).unwrap();
            let is_outstanding = matches!(report.outcome, Outcome::Violated { .. });
            let may_be_immediate = [Access::Evict, Access::Demote].map(Kind::Access);
            assert!(
                is_outstanding || may_be_immediate.contains(&kind),
                "{name} {kind:?}"
            );
        }
    }
}

/// A retry alone performs nothing.
#[test]
fn endlessly_retried_store_violates_progress() {
    // The store can only be retried: no row requests write permission, and no state has it.
    let text = one_copy("", "", "  R L | Get | stall", LOCALS)
        .replace(
            "I  | load store | send Get | IV",
            "I  | load | send Get | IV\n  I V | store | retry | stay",
        )
        .replace("V reads writes dirty", "V reads dirty");
    assert!(text.contains("retry") && !text.contains("writes"));
    assert_eq!(
        find_violation(&text, 2),
        "a store of cache 0, which is in I, can never be performed"
    );
}

/// Checks only progress, on two lines, of a protocol whose lines share registers.
fn check_coupled_progress(text: &str, remotes: u16) -> Progress {
    let protocol = parse_valid(text);
    let home = home(&protocol);
    let search = Search::default();
    progress(&protocol, &home, (remotes, 2), &Options::default(), &search).unwrap()
}

/// Returns the message of a progress violation, which must be the result.
fn violation_message(found: Progress) -> String {
    match found.outcome {
        Outcome::Violated {
            property: PROGRESS,
            message,
            ..
        } => message,
        other => panic!("progress is not violated, but {other:?}"),
    }
}

/// One line of the directory keeps the only entry for ever, so requests of the other line are rejected for ever. A
/// check on a single line cannot find the violation, because that line always has an entry.
const LEAKED_ENTRY: &str = include_str!("../verdicts/p01_slot_kept.coh");

/// A local operation is refused for ever once another line has the only entry. Again, a check on a single line cannot
/// find the violation.
const LOCAL_REFUSED: &str = include_str!("../verdicts/r09_local_refused.coh");

/// Lines that share registers are checked in pairs.
#[test]
fn entry_leaked_by_another_line_violates_progress() {
    for remotes in [1, 2] {
        let message = violation_message(check_coupled_progress(LEAKED_ENTRY, remotes));
        let (begin, end) = (
            "a load of cache",
            " can never be performed on line 0 of 2 lines",
        );
        assert!(
            message.starts_with(begin) && message.ends_with(end),
            "{message}"
        );
    }
}

/// The device's operation on one line is refused for ever because another line keeps the only entry.
#[test]
fn local_operation_blocked_by_another_line_violates_progress() {
    for remotes in [1, 2] {
        assert_eq!(
            violation_message(check_coupled_progress(LOCAL_REFUSED, remotes)),
            "the device's clean can never be performed on line 0 of 2 lines; the dir is in I"
        );
    }
}

/// The corrected form of [`LEAKED_ENTRY`]: an eviction returns the entry.
#[test]
fn returned_entry_lets_the_other_line_progress() {
    let text = LEAKED_ENTRY
        .replace("recall: Recall", "recall: Recall, Done")
        .replace("back: Back", "back: Put (line), Back")
        .replace("W | Nack", "V | evict | send Put | P\n  P | Recall | | stay\n  P | Done | | I\n  W | Nack")
        .replace("W waits Data Nack", "W waits Data Nack; P waits Done")
        .replace("B | Get ", "V | Put | write, send Done, free += 1, owner := none | I\n  B | Put | write, send Done, send Data to next, owner := next, next := none | V\n  B | Get ");
    let found = check_coupled_progress(&text, 1);
    assert_eq!(found.outcome, Outcome::Verified);
    assert!(found.notes.is_empty(), "{:?}", found.notes);
}

/// A line that no access can begin on is a note and no violation.
#[test]
fn permanently_inaccessible_line_is_noted_with_its_path() {
    // The cache counts its own entries, and never frees one: no access begins, so none is rejected.
    let text = LEAKED_ENTRY
        .replace(
            "remote cache {",
            "remote cache {\n  registers { room: 0..1 = 1 }",
        )
        .replace("I | load store |", "I | load store if room > 0 |")
        .replace("send Get  |", "send Get, room -= 1 |")
        .replace("registers { free: 0..1 = 1 }", "")
        .replace(
            "I | Get if free > 0 | send Data, free -= 1,",
            "I | Get | send Data,",
        )
        .replace("  I | Get             | send Nack | stay\n", "")
        .replace("waits Data Nack", "waits Data")
        .replace("  W | Nack       |           | I\n", "")
        .replace(", Nack;", ";");
    let found = check_coupled_progress(&text, 1);
    assert_eq!(found.outcome, Outcome::Verified);
    let [note] = &found.notes[..] else {
        panic!("one note expected: {:?}", found.notes);
    };
    assert!(
        note.starts_with("cache can reach a state from which it can never load or store line 0 again, in 1 step: "),
        "{note}"
    );
    // If the entry is freed, there is no such state.
    let freed = text
        .replace(
            "V | Recall     | send Back | I",
            "V | evict | send Back, room += 1 | I\n  I W | Recall | | stay\n  V | Recall | send Back, room += 1 | I",
        )
        .replace("  B | Get ", "  V | Back | write, owner := none | I\n  B | Get ");
    let found = check_coupled_progress(&freed, 1);
    assert_eq!(found.outcome, Outcome::Verified);
    assert!(found.notes.is_empty(), "{:?}", found.notes);
}
