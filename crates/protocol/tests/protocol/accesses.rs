//! Rows that lose an access silently, or complete one without bytes, are errors of the file.
//!
//! Most cases are shipped protocols with a slip in one row. Earlier versions verified all of them. A store whose row
//! led through a state without write permission was never performed, and no check noticed. So was a read that completed
//! without bytes.

use cohkit_diagnostics::line_column;
use cohkit_protocol::text::parse;

/// Returns a shipped file with one change, and the line of the change.
fn changed_file(name: &str, from: &str, to: &str) -> (String, u32) {
    let root = env!("CARGO_MANIFEST_DIR");
    let path = format!("{root}/../../protocols/{name}.coh");
    let text = std::fs::read_to_string(path).unwrap();
    assert_eq!(text.matches(from).count(), 1, "`{from}` in {name}");
    let start = text.find(from).unwrap() as u32;
    let line = line_column(&text, start).0;
    (text.replace(from, to), line)
}

/// Errors of a changed file: code, line relative to the change, message and advice.
fn errors(name: &str, from: &str, to: &str) -> Vec<(&'static str, i64, String)> {
    let (text, change_line) = changed_file(name, from, to);
    let errors = parse(&text).expect_err(to);
    let reports = errors.iter().map(|error| {
        let line = line_column(&text, error.span.start).0;
        let notes = error.notes.iter().map(|(_, note)| note.as_str());
        let advice: Vec<&str> = notes.collect();
        let message = format!("{}; {}", error.message, advice.join("; "));
        (
            error.code.name(),
            i64::from(line) - i64::from(change_line),
            message,
        )
    });
    reports.collect()
}

/// Checks that a change of a shipped file gives the error that `access` is lost, `line` lines after the change, with
/// the advice to write `retry`.
fn assert_lost_access(name: &str, from: &str, to: &str, access: &str, line: i64) {
    let errors = errors(name, from, to);
    let matching = errors.iter().find(|(code, offset, message)| {
        (*code, *offset) == ("never-performed", line)
            && message.contains(access)
            && message.contains("`retry`")
    });
    assert!(matching.is_some(), "`{to}`: {errors:?}");
}

/// Seeded fault: a row takes a store in `S`, which has read permission only, and sends nothing.
#[test]
fn store_in_a_state_without_write_permission_is_reported() {
    let row = "  E              | store                   |                                                | M        # silent";
    let replacement = format!("  S | store | | stay\n{row}");
    let get = "  S              | store                   | send GetM                                      | SM_AD\n";
    let (text, _) = changed_file("mesi", row, &replacement);
    let errors = parse(&text.replace(get, "")).unwrap_err();
    assert_eq!(errors[0].message, "a store in `S` is lost in this row");
    assert_eq!(errors[0].code.name(), "never-performed");
}

/// A state that lacks `writes` gets that advice first, and only then the advice to wait for a message.
#[test]
fn store_in_a_state_without_writes_suggests_the_attribute() {
    let state = "    M      reads writes dirty\n";
    let (text, _) = changed_file("msi", state, "    M      reads dirty\n");
    let errors = parse(&text).unwrap_err();
    let labels: Vec<&str> = errors.iter().map(|error| error.label.as_str()).collect();
    assert!(
        labels[0].starts_with("add `writes` if the store is performed here"),
        "{labels:?}"
    );
    assert!(
        labels[1].contains("leads to a state with `writes`"),
        "{labels:?}"
    );
}

/// Only the row that starts a write can post it. A later row that sends the bytes and waits for nothing abandons the
/// write.
#[test]
fn later_row_does_not_post_a_store() {
    let text = |row: &str| {
        let text = include_str!("../../../cohkit/tests/command/verdicts/posted_from_copy.coh");
        let old_row = "  V      | store if room > 0 | send Write, room -= 1 | I\n";
        assert_eq!(text.matches(old_row).count(), 1);
        text.replace(old_row, row)
    };
    assert!(parse(&text("")).is_ok());
    let later =
        "  V  | store if room > 0 | send Read | VW\n  VW | Data | send Write, room -= 1 | I\n";
    let errors = parse(&text(later).replace("IV waits Data }", "IV waits Data; VW waits Data }"));
    let codes: Vec<&str> = (errors.unwrap_err().iter())
        .map(|error| error.code.name())
        .collect();
    assert!(codes.contains(&"never-performed"), "{codes:?}");
}

/// The diagnostic for `order response` suggests the statement `ordered` rather than reporting a missing arrow.
#[test]
fn misspelt_channel_statement_gets_a_suggestion() {
    for (misspelt, meant) in [
        ("order forward", "ordered"),
        ("networks n { forward }", "network"),
    ] {
        let (text, _) = changed_file("msi", "  ordered forward\n", &format!("  {misspelt}\n"));
        let errors = parse(&text).unwrap_err();
        assert_eq!(errors[0].label, format!("did you mean `{meant}`?"));
    }
}

/// Seeded fault: a store leads from `E` to `S`, which has no write permission, so it is performed nowhere.
#[test]
fn store_that_loses_write_permission_is_reported() {
    let row = "  E                         | store                    |                      | M     # silent";
    assert_lost_access(
        "back-invalidate",
        row,
        "  E | store | | S",
        "a store in `E`",
        0,
    );
}

/// Seeded fault: non-caching writes are taken in `I`, and their bytes are sent nowhere.
#[test]
fn lost_noncaching_writes_are_reported() {
    let row = "  S              | evict                   | send PutS                                      | SI_A\n";
    let replacement = format!("{row}  I | write_line write_partial | | stay\n");
    assert_lost_access("msi", row, &replacement, "a write_line in `I`", 1);
}

/// Seeded fault: `M` loses its write permission, so rows that perform a write on the way to `M` lose it.
#[test]
fn stores_into_a_state_without_write_permission_are_reported() {
    let state = "    M   reads writes dirty\n";
    assert_lost_access("eci", state, "    M   reads dirty\n", "a store in `E`", 14);
    assert_lost_access(
        "eci",
        state,
        "    M   reads dirty\n",
        "a write_line in `E`",
        28,
    );
}

/// Seeded fault: a read is taken in `I`, where the cache has no bytes for it.
#[test]
fn reads_in_a_state_without_read_permission_are_reported() {
    let row = "  S              | evict                   | send PutS                                      | SI_A\n";
    let replacement = format!("{row}  I | read_once | | stay\n");
    assert_lost_access("msi", row, &replacement, "a read_once in `I`", 1);
}

/// Rows with `retry` perform nothing on purpose, and are accepted.
#[test]
fn rows_may_retry_an_access() {
    let row = "  S              | evict                   | send PutS                                      | SI_A\n";
    let replacement = format!(
        "{row}  I | write_line write_partial | retry | stay\n  S | read_once | send PutS, retry | SI_A\n"
    );
    let (text, _) = changed_file("msi", row, &replacement);
    parse(&text).unwrap_or_else(|errors| panic!("{errors:?}"));
}

/// Errors that follow from a row that was not understood are not reported. Earlier versions reported that its state
/// waits in vain.
#[test]
fn row_error_causes_no_further_errors() {
    let row =
        "  IS_D           | Data                    |                                                | S\n";
    let replacement = "  IS_D | Data | awed := 1 | S\n";
    let codes: Vec<&str> = (errors("msi", row, replacement).iter())
        .map(|(code, ..)| *code)
        .collect();
    assert_eq!(codes, ["unknown-name"]);
    let codes: Vec<&str> = (errors("msi", row, "").iter())
        .map(|(code, ..)| *code)
        .collect();
    assert_eq!(codes, ["waits-in-vain", "never-performed"]);
}

/// `retry` is rejected where the state permits the access, and for an access that performs nothing.
#[test]
fn performed_access_cannot_be_retried() {
    let row = "  M              | evict                   | send PutM                                      | MI_A\n";
    let replacement =
        format!("{row}  M | write_line | retry | stay\n  M | demote | retry | stay\n");
    let errors = errors("msi", row, &replacement);
    let codes: Vec<(&str, i64)> = errors
        .iter()
        .map(|(code, offset, _)| (*code, *offset))
        .collect();
    assert_eq!(codes, [("never-performed", 1), ("misplaced", 2)]);
}

/// Removes `(line)` from a message, and checks that the read that it answers is reported as one without bytes, with
/// the advice to add `(line)`.
fn assert_missing_bytes(name: &str, message: &str, read: &str) {
    let text = changed_file(name, &format!("{message} (line)"), message).0;
    let errors = parse(&text).expect_err(message);
    let messages: Vec<&str> = errors.iter().map(|error| error.message.as_str()).collect();
    let expected = format!("a {read} completes here without bytes");
    assert!(messages.contains(&expected.as_str()), "{messages:?}");
    let help = &errors[0].notes[0];
    assert!(help.0.is_some() && help.1.contains("`(line)`"), "{help:?}");
}

/// A read that completes without bytes is an error of the file.
#[test]
fn read_completion_requires_line_data() {
    assert_missing_bytes("eci", "DataOnce", "read_once");
    assert_missing_bytes("back-invalidate", "MemDataCur", "read_once");
    assert_missing_bytes("write-through", "DataOnce", "read_once");
}

/// A small remote with the given rows, and a home without rows, whose errors are omitted.
fn remote_errors(messages: &str, states: &str, rows: &str) -> Vec<String> {
    let text = format!(
        "protocol test
line 64 bytes
channels {{ request remote -> home; grant home -> remote }}
messages {{ {messages} }}
remote cache {{
  states {{ I; {states} }}
  {rows}
}}
home directory {{
  states {{ H }}
}}
"
    );
    let errors = parse(&text).expect_err("a home that sends nothing");
    let errors = errors.into_iter().map(|error| error.message);
    errors
        .filter(|message| {
            !message.starts_with("no agent sends") && !message.starts_with("there is no state")
        })
        .collect()
}

/// Messages of a store in two steps: a request for permission to send, then the bytes.
const STORE: &str = "request: Ask, Bytes (partial store); grant: Go, Data (line), Ok";

/// A store in two steps must send its bytes and complete.
#[test]
fn two_step_store_requires_send_and_done() {
    let rows = "I | store | send Ask   | G
  G | Go    | send Bytes | W
  W | Ok    | done       | I";
    let no_errors: [&str; 0] = [];
    assert_eq!(
        remote_errors(STORE, "G waits Go; W waits Ok", rows),
        no_errors
    );
    // Without `done` the store never completes; without its bytes it completes, and they were sent nowhere.
    let endless = rows.replace("done", "");
    assert_eq!(
        remote_errors(STORE, "G waits Go; W waits Ok", &endless),
        ["a store that begins here is never performed"]
    );
    let dropped = rows.replace("send Bytes", "");
    assert_eq!(
        remote_errors(STORE, "G waits Go; W waits Ok", &dropped),
        ["a store completes here, but its bytes are lost"]
    );
}

/// Rows in which `done` may complete two different accesses, in which a load would send the bytes of a write, and in
/// which no access is pending.
#[test]
fn completed_access_is_unique_per_row() {
    let states = "G waits Go; W waits Ok";
    let rows = "I | store         | send Ask   | G
  I | write_partial | send Ask   | W
  G | Go            | send Bytes | W
  W | Ok            | done       | I";
    let errors = remote_errors(STORE, states, rows);
    assert_eq!(
        errors,
        ["`done` in `W` may complete a store whose bytes were sent or a write_partial in the copy"]
    );
    let rows = "I | load  | send Ask   | G
  G | Data  | done       | I
  G | Go    | send Bytes | G";
    assert_eq!(
        remote_errors(STORE, "G waits Go Data", rows),
        ["`Bytes` carries the bytes of a write, but a load has none"]
    );
    let rows = "I | load | send Ask | G
  G | Data |          | V
  V | Ok   | done     | I";
    assert_eq!(
        remote_errors(STORE, "G waits Data; V reads", rows),
        ["`done` in `V`, where no access is outstanding"]
    );
}

/// A cache that merged a store into its copy and sent the whole line would undo the concurrent write of another cache.
/// A cache without a copy has nothing to merge the store into. Mutants of the write-through protocols that did so were
/// verified: for the checker a store at memory is a store, whatever else its bytes overwrite.
#[test]
fn partial_line_cannot_be_sent_as_a_whole_line() {
    let message = "`LineBytes` carries the bytes of a whole line, but a store has those of a part";
    let first_error = |from: &str, to: &str| {
        let (text, _) = changed_file("write-through-two-step", from, to);
        parse(&text).expect_err(to)[0].message.clone()
    };
    let row = |bytes: &str| format!("  IG               | Go                  | send {bytes}");
    assert_eq!(first_error(&row("Bytes     "), &row("LineBytes ")), message);
    let (text, _) = changed_file(
        "write-through",
        "I V         | store write_partial | send Write     |",
        "I V         | store write_partial | send WriteLine |",
    );
    let errors = parse(&text).unwrap_err();
    let expected = "`WriteLine` carries the bytes of a whole line, but a store has those of a part";
    assert_eq!(errors[0].message, expected);
    // A whole line may be sent as a partial store.
    let (text, _) = changed_file(
        "write-through",
        "WriteLine (store)",
        "WriteLine (partial store)",
    );
    parse(&text).unwrap_or_else(|errors| panic!("{errors:?}"));
}

/// Seeded faults: a commit without any deferral, a deferral without any commit, and the deferral of a message
/// without bytes.
#[test]
fn deferred_stores_are_committed_and_vice_versa() {
    let row = "defer, send Inv to readers";
    let (text, _) = changed_file("write-through", row, "send Inv to readers");
    let errors = parse(&text).unwrap_err();
    assert_eq!(errors[0].message, "no write is ever deferred");
    let (text, _) = changed_file("write-through", "write deferred, ", "");
    let errors = parse(&text).unwrap_err();
    assert_eq!(errors[0].message, "a deferred write is never written");
    let (text, _) = changed_file("write-through", "send DataOnce ", "defer ");
    let errors = parse(&text).unwrap_err();
    assert!(errors
        .iter()
        .any(|error| error.message == "no write to defer"));
}

/// Permissions and copies of a home's states were accepted, and had no effect.
#[test]
fn home_states_have_no_permissions() {
    let state =
        "    S_D    waits Data                      # the former owner is sending its line\n";
    for attribute in ["reads", "writes", "holds", "holds dirty"] {
        let replacement = format!("    S_D    {attribute}, waits Data\n");
        let errors = errors("msi", state, &replacement);
        let codes: Vec<(&str, i64)> = errors
            .iter()
            .map(|(code, offset, _)| (*code, *offset))
            .collect();
        assert_eq!(codes, [("misplaced", 0)], "{attribute}");
    }
}
