//! At least one case for each kind of diagnostic.
//!
//! A case is a part of a file with a comment under each error, whose carets mark the span. So span and message are
//! tested together. `UPDATE_EXPECT=1` rewrites the comments; review them as a diff.

mod bulk_transition;
mod compositions;
mod controllers;
mod homes;
mod kinds;
mod names;
mod orders;
mod permissions;
mod policies;

use super::{load_shipped, parse_valid, ECI};
use crate::text::diagnostic::{Code, Diagnostic};
use crate::text::{compose, composes, parse, MAX_FILE_BYTES};
use cohkit_diagnostics::line_column;
use expect_test::{expect, Expect};

/// A template with a hand-written home, and with places for a case.
const ROWS: &str = "protocol test
line 64 bytes
channels { request remote -> home; grant home -> remote; peer any -> remote; %channels% }
messages { request: Get, Put (line, dirty); grant: Data (line, acks: count); peer: Ask (requestor: remote); %messages% }
remote cache {
  states { I; S reads; M reads writes dirty; W waits Data; %states% }
  variables { n: 0..7; who: remote; all: set of remote; flag: bool; %variables% }
  I     | load  | send Get | W
  W     | Data  |          | S
  S     | evict | send Put | I
  I S W | Ask   |          | stay
  %remote%
}
home directory {
  states { I; J }
  variables { n: 0..7; owner: remote; sharers: set of remote }
  I | Get | send Data (acks = 0)                | stay
  I | Put | write, send Ask (requestor = sender) | stay
  %home%
}
%file%
";

/// A template with a policy, and with places for a case.
const POLICY: &str = "protocol test
line 64 bytes
channels { request remote -> home; victim remote -> home; answer remote -> home; acknowledgement remote -> home
           forward home -> remote; grant home -> remote; %channels% }
messages { request: Get, Write (store); victim: Put (line, dirty); answer: Gone; acknowledgement: Thanks
           forward: Inv; grant: Data (line), Done; %messages% }
remote cache {
  states { I; M reads writes dirty; G waits Data; W waits Done }
  I   | store      | send Get          | G
  G   | Data       | send Thanks       | M
  M   | evict      | send Put          | I
  I   | write_line | send Write        | W
  W   | Done       | done, send Thanks | I
  I M | Inv        | send Gone         | I
  G W | Inv        | send Gone         | stay
}
home {
  %get%
  on Write(r) { ensure others(r) == I; write; answer r with Done }
  %reach%
  %home%
}
";
/// Goals of the request `Get` that have no errors.
const GET: &str = "on Get(r) { ensure others(r) == I; grant r M with Data }";
/// Downgrade rule without errors.
const REACH: &str = "reach I with Inv";

/// Checks that the diagnostics of a case, inserted at `place` of a template, are those in its comments. Other places
/// are filled with `fillings`.
fn check(template: &str, place: &str, fillings: &[(&str, &str)], case: Expect) {
    // The lines of the case without its comments, indented by two so that `#` fits before a caret.
    let lines = case
        .data()
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'));
    let indent = lines
        .clone()
        .map(|line| line.len() - line.trim_start().len())
        .min()
        .unwrap_or(0);
    let lines: Vec<String> = lines.map(|line| format!("  {}", &line[indent..])).collect();

    let mut text = template.replace(
        &format!("%{place}%"),
        &format!("\n\u{1}{}\n", lines.join("\n")),
    );
    for (place, filling) in fillings {
        text = text.replace(&format!("%{place}%"), filling);
    }
    while let Some(start) = text.find('%') {
        let end = start
            + 2
            + text[start + 1..]
                .find('%')
                .expect("places are written %name%");
        text.replace_range(start..end, "");
    }
    let start = text.find('\u{1}').expect("the template has the place");
    text.remove(start);
    let first_line = line_column(&text, start as u32).0;
    case.assert_eq(&annotate(&lines, first_line, &text));
}

/// Annotates the lines of a case, which begin at line `first_line` of the file, with the file's diagnostics as
/// comments.
fn annotate(lines: &[String], first_line: u32, text: &str) -> String {
    let mut comments = vec![String::new(); lines.len()];
    let mut elsewhere = String::new();
    let errors = match composes(text) {
        true => compose(text, &mut load_shipped).err(),
        false => parse(text).err(),
    };
    for diagnostic in errors.expect("a case has errors") {
        let report = format!("{}: {}", diagnostic.code.name(), diagnostic.message);
        let (line, column) = line_column(text, diagnostic.span.start);
        let spanned = &text[diagnostic.span.start as usize..diagnostic.span.end as usize];
        let carets = "^".repeat(
            spanned
                .lines()
                .next()
                .map_or(0, |line| line.chars().count())
                .max(1),
        );
        match comments.get_mut(line.wrapping_sub(first_line) as usize) {
            Some(comment) => comment.push_str(&format!(
                "#{carets:>0$} {report}\n",
                column as usize - 2 + carets.len()
            )),
            None => elsewhere.push_str(&format!("# {line}:{column} {report}\n")),
        }
    }
    let annotated: Vec<String> = lines
        .iter()
        .zip(comments)
        .map(|(line, comment)| format!("{line}\n{comment}"))
        .collect();
    annotated.concat() + &elsewhere
}

/// A case that is a whole file.
fn check_text(case: Expect) {
    check("%text%", "text", &[], case);
}
/// A case after the last block of [`ROWS`].
fn check_file(case: Expect) {
    check(ROWS, "file", &[], case);
}
/// A case among the channels of [`ROWS`].
fn check_channels(case: Expect) {
    check(ROWS, "channels", &[], case);
}
/// A case among the messages of [`ROWS`].
fn check_messages(case: Expect) {
    check(ROWS, "messages", &[], case);
}
/// A case among the states of the remote in [`ROWS`].
fn check_states(case: Expect) {
    check(ROWS, "states", &[], case);
}
/// A case among the variables of the remote in [`ROWS`].
fn check_variables(case: Expect) {
    check(ROWS, "variables", &[], case);
}
/// A case among the rows of the remote in [`ROWS`].
fn check_remote(case: Expect) {
    check(ROWS, "remote", &[], case);
}
/// A case among the rows of the home in [`ROWS`].
fn check_home(case: Expect) {
    check(ROWS, "home", &[], case);
}
/// A case among the statements of [`POLICY`].
fn check_policy(case: Expect) {
    check(POLICY, "home", &[("get", GET), ("reach", REACH)], case);
}
/// A case in place of the goals of `Get` in [`POLICY`].
fn check_policy_on(case: Expect) {
    check(POLICY, "get", &[("reach", REACH)], case);
}
/// A case in place of the downgrade rule in [`POLICY`].
fn check_policy_reach(case: Expect) {
    check(POLICY, "reach", &[("get", GET)], case);
}

#[test]
fn templates_have_no_errors() {
    for (template, fillings) in [
        (ROWS, &[][..]),
        (POLICY, &[("%get%", GET), ("%reach%", REACH)]),
    ] {
        let mut text = template.to_string();
        for (place, filling) in fillings {
            text = text.replace(place, filling);
        }
        for place in [
            "channels",
            "messages",
            "states",
            "variables",
            "remote",
            "home",
            "file",
        ] {
            text = text.replace(&format!("%{place}%"), "");
        }
        parse_valid(&text);
    }
}

#[test]
fn every_kind_of_diagnostic_has_a_case() {
    let cases = concat!(
        include_str!("compositions.rs"),
        include_str!("names.rs"),
        include_str!("controllers.rs"),
        include_str!("policies.rs")
    );
    for code in Code::ALL {
        // These four concern the whole file, which no case can show; other tests of this file cover them.
        let is_covered = [Code::TooLong, Code::NotText, Code::Empty, Code::TooMany].contains(code)
            || cases.lines().any(|line| {
                line.trim_start().starts_with('#') && line.contains(&format!(" {}: ", code.name()))
            });
        assert!(is_covered, "{code:?} has no case");
    }
}

#[test]
fn inputs_without_a_protocol_are_reported_once() {
    let codes = |text: &str| {
        parse(text)
            .expect_err("not a protocol")
            .iter()
            .map(|diagnostic| diagnostic.code)
            .collect::<Vec<_>>()
    };
    for empty in ["", "\n \n", "# only a comment", "\u{feff}"] {
        assert_eq!(codes(empty), [Code::Empty], "{empty:?}");
    }
    for binary in [
        "\u{7f}ELF\u{2}\u{1}",
        "protocol p\0",
        "line 64 bytes \u{fffd}",
    ] {
        assert_eq!(codes(binary), [Code::NotText], "{binary:?}");
    }
    assert_eq!(codes(&"# text\n".repeat(1 << 20)), [Code::TooLong]);
}

/// A file that is cut at any place has at most three errors, all of which can be rendered.
#[test]
fn truncation_at_any_position() {
    // Only the systems at the end can be missing without an error.
    let (needed, _) = ECI.split_once("system").expect("the text has systems");
    let complete = needed.trim_end().len();
    for (end, _) in ECI.char_indices().step_by(7) {
        match parse(&ECI[..end]) {
            Ok(_) => assert!(end >= complete, "cut at {end}"),
            Err(diagnostics) => {
                let text = &ECI[..end];
                assert!(
                    diagnostics.len() <= 3,
                    "cut at {end}: {}",
                    diagnostics
                        .iter()
                        .map(|diagnostic| diagnostic.render("cut", text, false))
                        .collect::<String>()
                );
            }
        }
    }
}

/// More states than an index can distinguish, and more rules than the parser accepts. The number of diagnostics is
/// bounded.
#[test]
fn tables_that_are_too_large() {
    let states: String = (0..70_000).map(|index| format!("S{index} ")).collect();
    let too_many_states = ROWS.replace("%states%", &states.replace(' ', ";"));
    let fill_and_parse = |text: &str| {
        let mut text = text.to_string();
        for place in [
            "channels",
            "messages",
            "states",
            "variables",
            "remote",
            "home",
            "file",
        ] {
            text = text.replace(&format!("%{place}%"), "");
        }
        parse(&text).expect_err("too large")
    };
    let diagnostics = fill_and_parse(&too_many_states);
    assert_eq!(diagnostics[0].code, Code::TooMany);
    assert_eq!(diagnostics.len(), Diagnostic::MAX_COUNT);
    assert!(diagnostics[49]
        .notes
        .last()
        .expect("a closing note")
        .1
        .ends_with("more errors are not shown"));
    // One row can stand for more rules than fit in memory.
    let states: String = (0..9000).map(|index| format!("S{index} ")).collect();
    let rows = ROWS.replace("%states%", &states.replace(' ', ";")).replace(
        "%remote%",
        &format!("{states} | Data Ask load store evict demote clean read_once | | stay"),
    );
    assert_eq!(
        fill_and_parse(&rows)
            .iter()
            .map(|diagnostic| diagnostic.code)
            .collect::<Vec<_>>(),
        [Code::TooMany]
    );
}

/// Files of [`MAX_FILE_BYTES`] that repeat one piece are parsed in reasonable time, and their diagnostics stay
/// short.
#[test]
fn texts_of_maximum_length() {
    let fill = |piece: &str| {
        let mut text = ROWS.replace("%file%", "").replace("%home%", "");
        for place in ["channels", "messages", "states", "variables"] {
            text = text.replace(&format!("%{place}%"), "");
        }
        let space = MAX_FILE_BYTES - text.len();
        text.replace("%remote%", &piece.repeat(space / piece.len()))
    };
    // One line, many lines, many errors, and rows that stand for far too many rules.
    for piece in [
        "I ",
        "I | load | | I\n",
        "I | load | x := yy | Z\n",
        "+",
        "{",
        "(",
        "\"",
        "# ",
        "send,",
        "I I I I | load load load load load | x := y | I\n",
        "|",
    ] {
        let text = fill(piece);
        let diagnostics = parse(&text).err().unwrap_or_default();
        assert!(!diagnostics.is_empty() || piece == "# ");
        for diagnostic in diagnostics.iter().take(2) {
            assert!(
                diagnostic.render("long.coh", &text, false).len() < 1 << 16,
                "{piece:?}"
            );
        }
    }
    let states = format!(
        "{}| {} | x := y, send Gte | Z",
        "I ".repeat(700_000),
        "load ".repeat(400_000)
    );
    let text = ROWS.replace("%remote%", &states);
    assert!(parse(&text).is_err());
}

/// Source line, carets and advice as a user sees them, without and with colours.
#[test]
fn rendered_diagnostic() {
    let text = ROWS
        .replace("%remote%", "J | laod | send Get | W")
        .replace("%file%", "");
    let text = ["channels", "messages", "states", "variables", "home"]
        .iter()
        .fold(text, |text, place| text.replace(&format!("%{place}%"), ""));
    let diagnostics = parse(&text).expect_err("two errors");
    let rendered: Vec<String> = diagnostics
        .iter()
        .map(|diagnostic| diagnostic.render("test.coh", &text, false))
        .collect();
    expect![[r#"
        error[unknown-name]: unknown state `J`
          --> test.coh:12:3
           |
        12 |   J | laod | send Get | W
           |   ^ nothing has this name
           |
           = help: the states are `I`, `S`, `M`, `W`

        error[unknown-name]: unknown event `laod`
          --> test.coh:12:7
           |
        12 |   J | laod | send Get | W
           |       ^^^^ nothing has this name
           |
           = help: did you mean `load`? the events are `Data`, `Ask`, `load`, `store`, `evict`, `demote`, `clean`, `read_once`, `write_line`, `write_partial`, `acquire`, `release`, `fence`, `write_back`, `atomic`, `acquired`"#]].assert_eq(&rendered.join("\n\n"));
    assert!(diagnostics[0]
        .render("test.coh", &text, true)
        .contains("\u{1b}["));
    // A file other than the one that was parsed must not cause a panic.
    for file_text in ["", "é", "protocol"] {
        assert!(diagnostics[0]
            .render("other.coh", file_text, false)
            .contains("unknown"));
    }
}

#[test]
fn lines_and_columns_count_from_one() {
    let text = "ab\néf\n";
    let places: Vec<_> = [0, 1, 2, 3, 5, 7, 99]
        .iter()
        .map(|&offset| line_column(text, offset))
        .collect();
    assert_eq!(
        places,
        [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (3, 1), (3, 1)]
    );
}

/// A Murphi model passed as a protocol file gave fifty errors, one for each unknown character.
#[test]
fn foreign_language_is_reported_once() {
    let rendered = |text: &str| -> Vec<String> {
        let diagnostics = parse(text).expect_err("an error");
        let iterator = diagnostics.iter();
        iterator
            .map(|diagnostic| diagnostic.render("test.coh", text, false))
            .collect()
    };
    let foreign_files = [
        include_str!("../../../../../../models/german.m"),
        include_str!("../../../../../../litmus/SB.litmus"),
        include_str!("../../../../../../platforms/enzian-dc-ddr.toml"),
    ];
    for text in foreign_files {
        let [only] = &rendered(text)[..] else {
            panic!("{:?}", rendered(text))
        };
        assert!(only.contains("is this the right file?"), "{only}");
    }
    // All errors of a file with a block are reported.
    let errors = rendered("protcol p\nline 64\nsystem x { remotes 0 }\n");
    assert!(errors.len() > 2, "{errors:?}");
}

/// Operators and comments of other languages are answered with the protocol language's equivalent.
#[test]
fn foreign_operators_get_their_equivalent() {
    let cases = [
        (
            "I | store if flag && n == 0 | send Get | W",
            "this is written `and`",
        ),
        ("I | store if !flag | send Get | W", "this is written `not`"),
        (
            "I | store if n = 0 | send Get | W",
            "expected `==`, found `=`",
        ),
        (
            "I | store | send Get | W // a store",
            "a comment begins with `#`",
        ),
        ("I | store | | Stay", "did you mean `stay`?"),
        ("I S | Ask Ask | | M", "`Ask` carries no line"),
    ];
    for (row, note) in cases {
        let text = [
            "channels",
            "messages",
            "states",
            "variables",
            "home",
            "file",
        ]
        .iter()
        .fold(ROWS.replace("%remote%", row), |text, place| {
            text.replace(&format!("%{place}%"), "")
        });
        let diagnostics = parse(&text).expect_err("an error");
        let rendered: String = diagnostics
            .iter()
            .map(|diagnostic| diagnostic.render("test.coh", &text, false))
            .collect();
        assert!(rendered.contains(note), "{row}: {rendered}");
    }
}
