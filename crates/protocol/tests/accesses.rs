//! Rows that would lose an access without a word are errors of the text.
//!
//! Each case is a shipped protocol with one row changed as a slip of the pen would. All of them were once verified:
//! a store whose row leads through a state without the right to write was performed nowhere and missed by nobody.

use cohkit_protocol::text::{line_column, parse};

/// A shipped text with one change, and where that stands.
fn changed(name: &str, from: &str, to: &str) -> (String, u32) {
    let root = env!("CARGO_MANIFEST_DIR");
    let path = format!("{root}/../../protocols/{name}.coh");
    let text = std::fs::read_to_string(path).unwrap();
    assert_eq!(text.matches(from).count(), 1, "`{from}` in {name}");
    let start = text.find(from).unwrap() as u32;
    let line = line_column(&text, start).0;
    (text.replace(from, to), line)
}

/// The errors of a changed text: code, line relative to the change, message and advice.
fn errors(name: &str, from: &str, to: &str) -> Vec<(&'static str, i64, String)> {
    let (text, first) = changed(name, from, to);
    let errors = parse(&text).expect_err(to);
    let said = errors.iter().map(|error| {
        let line = line_column(&text, error.span.start).0;
        let notes = error.notes.iter().map(|(_, note)| note.as_str());
        let advice: Vec<&str> = notes.collect();
        let message = format!("{}; {}", error.message, advice.join("; "));
        (
            error.code.name(),
            i64::from(line) - i64::from(first),
            message,
        )
    });
    said.collect()
}

fn lost(name: &str, from: &str, to: &str, access: &str, line: i64) {
    let errors = errors(name, from, to);
    let found = errors.iter().find(|(code, at, message)| {
        (*code, *at) == ("never-performed", line)
            && message.contains(access)
            && message.contains("`retry`")
    });
    assert!(found.is_some(), "`{to}`: {errors:?}");
}

#[test]
fn a_store_in_a_state_that_may_not_write_is_not_lost() {
    let row = "  E              | store                   |                                                | M        # silent";
    let with = format!("  S | store | | stay\n{row}");
    let get = "  S              | store                   | send GetM                                      | SM_AD\n";
    let (text, _) = changed("mesi", row, &with);
    let errors = parse(&text.replace(get, "")).unwrap_err();
    assert_eq!(errors[0].message, "a store in `S` is lost in this row");
    assert_eq!(errors[0].code.name(), "never-performed");
}

#[test]
fn a_store_that_loses_the_right_is_not_lost() {
    let row = "  E                         | store                    |                      | M     # silent";
    lost(
        "back-invalidate",
        row,
        "  E | store | | S",
        "a store in `E`",
        0,
    );
}

#[test]
fn writes_without_caching_are_not_lost() {
    let row = "  S              | evict                   | send PutS                                      | SI_A\n";
    let with = format!("{row}  I | write_line write_partial | | stay\n");
    lost("msi", row, &with, "a write_line in `I`", 1);
}

#[test]
fn stores_that_enter_a_state_that_does_not_write_are_not_lost() {
    let state = "    M   reads writes dirty\n";
    lost("eci", state, "    M   reads dirty\n", "a store in `E`", 14);
    lost(
        "eci",
        state,
        "    M   reads dirty\n",
        "a write_line in `E`",
        28,
    );
}

#[test]
fn reads_in_a_state_that_may_not_read_are_not_lost() {
    let row = "  S              | evict                   | send PutS                                      | SI_A\n";
    let with = format!("{row}  I | read_once | | stay\n");
    lost("msi", row, &with, "a read_once in `I`", 1);
}

#[test]
fn a_row_may_say_that_an_access_is_tried_again() {
    let row = "  S              | evict                   | send PutS                                      | SI_A\n";
    let with = format!(
        "{row}  I | write_line write_partial | retry | stay\n  S | read_once | send PutS, retry | SI_A\n"
    );
    let (text, _) = changed("msi", row, &with);
    parse(&text).unwrap_or_else(|errors| panic!("{errors:?}"));
}

#[test]
fn what_is_performed_is_not_tried_again() {
    let row = "  M              | evict                   | send PutM                                      | MI_A\n";
    let with = format!("{row}  M | write_line | retry | stay\n  M | demote | retry | stay\n");
    let errors = errors("msi", row, &with);
    let told: Vec<(&str, i64)> = errors.iter().map(|(code, at, _)| (*code, *at)).collect();
    assert_eq!(told, [("never-performed", 1), ("misplaced", 2)]);
}
