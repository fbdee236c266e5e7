//! One case or more for each kind of diagnostic.
//!
//! A case is a piece of text with a comment under each error, whose carets lie under the span:
//! span and message are tested together. `UPDATE_EXPECT=1` writes the comments anew; review them as a diff.

use super::*;
use expect_test::{expect, Expect};

/// A text with a hand-written home, and with places to put a case.
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

/// A text with a policy, and with places to put a case.
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
const GET: &str = "on Get(r) { ensure others(r) == I; grant r M with Data }";
const REACH: &str = "reach I with Inv";

/// Checks a case: its diagnostics are those in its comments, when it stands in its place of a template.
/// Other places are filled with `others`.
fn check(template: &str, place: &str, others: &[(&str, &str)], case: Expect) {
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
    for (place, filling) in others {
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
    let first = line_column(&text, start as u32).0;
    case.assert_eq(&annotate(&lines, first, &text));
}

/// The lines of a case, which begin at line `first` of the text, each with the diagnostics of the text as comments.
fn annotate(lines: &[String], first: u32, text: &str) -> String {
    let mut comments = vec![String::new(); lines.len()];
    let mut elsewhere = String::new();
    for diagnostic in parse(text).expect_err("a case has errors") {
        let said = format!("{}: {}", diagnostic.code.name(), diagnostic.message);
        let (line, column) = line_column(text, diagnostic.span.start);
        let spanned = &text[diagnostic.span.start as usize..diagnostic.span.end as usize];
        let carets = "^".repeat(
            spanned
                .lines()
                .next()
                .map_or(0, |line| line.chars().count())
                .max(1),
        );
        match comments.get_mut(line.wrapping_sub(first) as usize) {
            Some(comment) => comment.push_str(&format!(
                "#{carets:>0$} {said}\n",
                column as usize - 2 + carets.len()
            )),
            None => elsewhere.push_str(&format!("# {line}:{column} {said}\n")),
        }
    }
    let annotated: Vec<String> = lines
        .iter()
        .zip(comments)
        .map(|(line, comment)| format!("{line}\n{comment}"))
        .collect();
    annotated.concat() + &elsewhere
}

fn text(case: Expect) {
    check("%text%", "text", &[], case);
}
fn file(case: Expect) {
    check(ROWS, "file", &[], case);
}
fn channels(case: Expect) {
    check(ROWS, "channels", &[], case);
}
fn messages(case: Expect) {
    check(ROWS, "messages", &[], case);
}
fn states(case: Expect) {
    check(ROWS, "states", &[], case);
}
fn variables(case: Expect) {
    check(ROWS, "variables", &[], case);
}
fn remote(case: Expect) {
    check(ROWS, "remote", &[], case);
}
fn home(case: Expect) {
    check(ROWS, "home", &[], case);
}
fn policy(case: Expect) {
    check(POLICY, "home", &[("get", GET), ("reach", REACH)], case);
}
fn policy_on(case: Expect) {
    check(POLICY, "get", &[("reach", REACH)], case);
}
fn policy_reach(case: Expect) {
    check(POLICY, "reach", &[("get", GET)], case);
}

#[test]
fn the_templates_have_no_errors() {
    for (template, others) in [
        (ROWS, &[][..]),
        (POLICY, &[("%get%", GET), ("%reach%", REACH)]),
    ] {
        let mut text = template.to_string();
        for (place, filling) in others {
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
        good(&text);
    }
}

#[test]
fn every_kind_of_diagnostic_has_a_case() {
    let cases = include_str!("diagnostics.rs");
    for code in Code::ALL {
        // These two are about the whole text, which no case can show; see `texts_that_are_none`.
        let shown = [Code::TooLong, Code::NotText, Code::Empty, Code::TooMany].contains(code)
            || cases.lines().any(|line| {
                line.trim_start().starts_with('#') && line.contains(&format!(" {}: ", code.name()))
            });
        assert!(shown, "{code:?} has no case");
    }
}

#[test]
fn texts_that_are_none() {
    let codes = |text: &str| {
        parse(text)
            .expect_err("not a protocol")
            .iter()
            .map(|it| it.code)
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

#[test]
fn at_any_place_a_text_can_end() {
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
                        .map(|it| it.render("cut", text, false))
                        .collect::<String>()
                );
            }
        }
    }
}

#[test]
fn tables_that_are_too_large() {
    let states: String = (0..70_000).map(|index| format!("S{index} ")).collect();
    let many = ROWS.replace("%states%", &states.replace(' ', ";"));
    let place = |text: &str| {
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
    let diagnostics = place(&many);
    assert_eq!(diagnostics[0].code, Code::TooMany);
    assert_eq!(diagnostics.len(), Diagnostic::MOST);
    assert!(diagnostics[49]
        .notes
        .last()
        .expect("a closing note")
        .1
        .ends_with("more errors are not shown"));
    // One row can stand for more rules than there is memory for.
    let states: String = (0..9000).map(|index| format!("S{index} ")).collect();
    let rows = ROWS.replace("%states%", &states.replace(' ', ";")).replace(
        "%remote%",
        &format!("{states} | Data Ask load store evict demote clean read_once | | stay"),
    );
    assert_eq!(
        place(&rows).iter().map(|it| it.code).collect::<Vec<_>>(),
        [Code::TooMany]
    );
}

#[test]
fn texts_as_long_as_they_can_be() {
    let filled = |piece: &str| {
        let mut text = ROWS.replace("%file%", "").replace("%home%", "");
        for place in ["channels", "messages", "states", "variables"] {
            text = text.replace(&format!("%{place}%"), "");
        }
        let space = LONGEST_TEXT - text.len();
        text.replace("%remote%", &piece.repeat(space / piece.len()))
    };
    // One line, many lines, many errors, and rows that would stand for far too many rules.
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
        let text = filled(piece);
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

#[test]
fn a_diagnostic_as_it_is_shown() {
    let text = ROWS
        .replace("%remote%", "J | laod | send Get | W")
        .replace("%file%", "");
    let text = ["channels", "messages", "states", "variables", "home"]
        .iter()
        .fold(text, |text, place| text.replace(&format!("%{place}%"), ""));
    let diagnostics = parse(&text).expect_err("two errors");
    let shown: Vec<String> = diagnostics
        .iter()
        .map(|it| it.render("test.coh", &text, false))
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
           = help: did you mean `load`? the events are `Data`, `Ask`, `load`, `store`, `evict`, `demote`, `clean`, `read_once`, `write_line`, `write_partial`"#]].assert_eq(&shown.join("\n\n"));
    assert!(diagnostics[0]
        .render("test.coh", &text, true)
        .contains("\u{1b}["));
    // Another text than the one that was parsed is no reason to panic.
    for other in ["", "é", "protocol"] {
        assert!(diagnostics[0]
            .render("other.coh", other, false)
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

// ---- The cases ----

#[test]
fn words() {
    text(expect![[r#"
          protocol p
          line 64 bytes $ ++
        #               ^ character: `$` has no meaning here
        #                 ^ syntax: expected the end of the line, found `+`
    "#]]);
}

#[test]
fn titles() {
    text(expect![[r#"
          protocol p "without an end
        #            ^^^^^^^^^^^^^^^ unclosed-title: a quoted title without its closing `"`
    "#]]);
}

#[test]
fn long_names() {
    file(expect![[r#"
          system xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx { remotes 1; lines 1 }
        #        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ name-too-long: a name of 76 characters
    "#]]);
}

#[test]
fn syntax_of_blocks() {
    file(expect![[r#"
          chanels { a remote -> home }
        # ^^^^^^^ syntax: expected a block, found `chanels`
          system x { remotes 1, lines 1 }
        #                     ^ syntax: expected the end of the statement, found `,`
          system { remotes 1; lines 1 }
        #        ^ syntax: expected the name of the system, found `{`
          system 5 { remotes 1; lines 1 }
        #        ^ syntax: expected the name of the system, found `5`
          invariant i count(M) == 1
        #             ^^^^^ syntax: expected `:`, found `count`
          invariant j: count(M) == 1 lines
        #                            ^^^^^ syntax: expected the end of the line, found `lines`
    "#]]);
}

#[test]
fn syntax_of_rows() {
    remote(expect![[r#"
          I | store | send | W
        #                  ^ syntax: expected a message, found `|`
          I | store | sends Get | W
        #             ^^^^^ syntax: expected an action, found `sends`
          I | store if | | W
        #              ^ syntax: expected a value, found `|`
          I | store | send Get
        #                     ^ next: the row does not say what comes next
          I | store | send Get to | W
        #                         ^ syntax: expected a value, found `|`
          I | store | send Get (a = 1 | W
        #                             ^ syntax: expected `,` or `)`, found `|`
          I store | send Get | W
        #                      ^ syntax: expected an action, found `W`
    "#]]);
}

#[test]
fn one_error_does_not_hide_the_next() {
    remote(expect![[r#"
          I | load |
        # ^^^^^^^^^^ unreachable-row: this row is never reached for `I`
        #           ^ next: the row does not say what comes next
          S | load send Get | W
        #                     ^ syntax: expected an action, found `W`
          X | load | | S
        # ^ unknown-name: unknown state `X`
    "#]]);
}

#[test]
fn unclosed_blocks() {
    text(expect![[r#"
          protocol p
          line 64 bytes
          channels { request remote -> home
        #          ^ unclosed-block: `channels` is not closed
          messages { request: Get }
          remote r {
        #          ^ unclosed-block: `remote` is not closed
            states { I; W waits Get
        #          ^ unclosed-block: `states` is not closed
        #                       ^^^ direction: `Get` never comes to the remote
            I | load | | stay
        #     ^ syntax: expected `reads`, `writes`, `dirty`, `holds` or `waits`, found `|`
          home {
            states { J }
          }
    "#]]);
}

#[test]
fn long_expressions() {
    remote(expect![[r#"
          I | store if n == 1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1 | | I
        #                                                                                                                                                                                                                         ^ nesting: this expression is too long
    "#]]);
}

#[test]
fn reserved_names() {
    states(expect![[r#"
          load; stay; home reads; fine
        # ^^^^ reserved-name: `load` is a word of the language
        #       ^^^^ reserved-name: `stay` is a word of the language
        #             ^^^^ reserved-name: `home` is a word of the language
    "#]]);
}

#[test]
fn numbers() {
    file(expect![[r#"
          system a { remotes 0; lines 1 }
        #                    ^ out-of-range: the number of remotes is out of range
          system b { remotes 9; lines 5 }
        #                    ^ out-of-range: the number of remotes is out of range
        #                             ^ out-of-range: the number of lines is out of range
          system c { remotes 99999999999999999999; lines 1 }
        #                    ^^^^^^^^^^^^^^^^^^^^ out-of-range: the number of remotes is out of range
          invariant i: count(M) <= 65536
        #                          ^^^^^ out-of-range: the number is out of range
          bounds { in_flight 0; Data 70000 }
        #                    ^ out-of-range: the bound is out of range
        #                       ^^^^ wrong-class: `Data` is no victim
        #                            ^^^^^ out-of-range: the bound is out of range
    "#]]);
}

#[test]
fn line_sizes() {
    text(expect![[r#"
          protocol p
          line 4 bytes
        #      ^ out-of-range: the line size is out of range
        # 4:1 missing-block: the text lacks `channels { ... }`, `messages { ... }`, `remote NAME { ... }`, `home { ... }`
    "#]]);
}

#[test]
fn lines_are_powers_of_two() {
    text(expect![[r#"
          protocol p
          line 96 bytes
        #      ^^ out-of-range: a line of 96 bytes
        # 4:1 missing-block: the text lacks `channels { ... }`, `messages { ... }`, `remote NAME { ... }`, `home { ... }`
    "#]]);
}

#[test]
fn ranges() {
    variables(expect![[r#"
          a: 0..65536; b: 1..4; c: 0..65535; d: 0..99999999999; e: set of home; f: int
        #       ^^^^^ out-of-range: a range ends at 65535 at most
        #                 ^ out-of-range: a range starts at 0
        #                                          ^^^^^^^^^^^ out-of-range: a range ends at 65535 at most
        #                                                                 ^^^^ syntax: expected `remote`, found `home`
        #                                                                          ^^^ syntax: expected a type (`0..7`, `count`, `bool`, `remote`, `set of remote`), found `int`
    "#]]);
}

#[test]
fn values_out_of_range() {
    remote(expect![[r#"
          I | store | n := 8, n := 70000, n := 7, who := 1 | I
        #                  ^ out-of-range: 8 is out of range
        #                          ^^^^^ out-of-range: the number is out of range
        #                                                ^ type: expected a remote, found a number
          M | store | send Get (x = 1) | M
        #                       ^ fields: `Get` has no field `x`
    "#]]);
}

#[test]
fn missing_blocks() {
    text(expect![[r#"
          protocol p
          line 64 bytes
        # 4:1 missing-block: the text lacks `channels { ... }`, `messages { ... }`, `remote NAME { ... }`, `home { ... }`
    "#]]);
}

#[test]
fn missing_header() {
    text(expect![[r#"
          line 64 bytes
          protocol p
        # ^^^^^^^^ misplaced: `protocol` must come first
    "#]]);
}

#[test]
fn missing_states() {
    text(expect![[r#"
          protocol p
          line 64 bytes
          channels { request remote -> home }
          messages { request: Get }
          remote cache { }
        #        ^^^^^ missing-block: the remote has no states
          home dir { states { I } }
    "#]]);
}

#[test]
fn missing_sizes() {
    file(expect![[r#"
          system a { lines 1 }
        #        ^ missing-block: `a` lacks `remotes N`
          system b { }
        #        ^ missing-block: `b` lacks `remotes N` and `lines N`
    "#]]);
}

#[test]
fn duplicates() {
    file(expect![[r#"
          line 64 bytes
        #      ^^ duplicate: a second `line`
          channels { }
        # ^^^^^^^^ duplicate: a second `channels` block
          remote cache { states { I } }
        # ^^^^^^ duplicate: a second `remote` block
          system a { remotes 1; lines 1; remotes 2 }
        #                                ^^^^^^^ duplicate: a second `remotes`
          protocol other
        # ^^^^^^^^ duplicate: a second `protocol`
    "#]]);
}

#[test]
fn duplicate_names() {
    file(expect![[r#"
          system a { remotes 1; lines 1 }
          system a { remotes 1; lines 1 }
        #        ^ duplicate-name: a second system `a`
          invariant b: count(M) <= 1
          invariant b: count(M) <= 1
        #           ^ duplicate-name: a second invariant `b`
    "#]]);
}

#[test]
fn duplicate_channels() {
    channels(expect![[r#"
          request remote -> home
        # ^^^^^^^ duplicate-name: a second channel `request`
          ordered request, peer
          ordered grant request
        #               ^^^^^^^ duplicate-name: `request` is ordered twice
    "#]]);
}

#[test]
fn duplicate_states() {
    states(expect![[r#"
          I; X; X
        # ^ duplicate-name: a second state `I`
        #       ^ duplicate-name: a second state `X`
    "#]]);
}

#[test]
fn duplicate_messages() {
    messages(expect![[r#"
          grant: Get
        #        ^^^ duplicate-name: a second message `Get`
          peer: Ask2 (a: count, b: bool, a: bool)
        #                                ^ duplicate-name: a second field `a`
    "#]]);
}

#[test]
fn unknown_names() {
    remote(expect![[r#"
          J | load | send Gte | Sx
        # ^ unknown-name: unknown state `J`
        #                 ^^^ unknown-name: unknown message `Gte`
        #                       ^^ unknown-name: unknown state `Sx`
          I | laod | | I
        #     ^^^^ unknown-name: unknown event `laod`
          I | store | m := 1, n := whom | W
        #             ^ unknown-name: unknown variable `m`
        #                          ^^^^ unknown-name: unknown variable or field `whom`
    "#]]);
}

#[test]
fn unknown_channels() {
    messages(expect![[r#"
          requests: Other
        # ^^^^^^^^ unknown-name: unknown channel `requests`
    "#]]);
}

#[test]
fn unknown_in_invariants() {
    file(expect![[r#"
          invariant i: count(X) == 0 or in_flight(data) <= 1
        #                    ^ unknown-name: unknown state `X`
        #                                         ^^^^ unknown-name: unknown message `data`
    "#]]);
}

#[test]
fn ambiguous_names() {
    let messages = [("messages", "peer: Count (n: count)")];
    check(
        ROWS,
        "remote",
        &messages,
        expect![[r#"
          M | store | send Count (n = n) to who | stay
          M | Count if n == 1 | | stay
        #              ^ ambiguous-name: `n` could mean two things
    "#]],
    );
}

#[test]
fn types() {
    remote(expect![[r#"
          I | store if n | n := who, who := all, all += who, flag := 1, flag += true | I
        #              ^ type: expected a truth value, found a number
        #                       ^^^ type: expected a number, found a remote
        #                                   ^^^ type: expected a remote, found a set of remotes
        #                                               ^^^ type: expected a set of remotes, found a remote
        #                                                            ^ type: expected a truth value, found a number
        #                                                               ^^^^ type: `flag` is neither a number nor a set
          M | store if who in who and not n | n := n + flag, n := who + who | I
        #                     ^^^ type: expected a set of remotes, found a remote
        #                                 ^ type: expected a truth value, found a number
        #                                              ^^^^ type: expected a number, found a truth value
        #                                                         ^^^ type: expected a number or a set of remotes, found a remote
          M | load if n == who | send Ask (requestor = 3) to n | I
        #                  ^^^ type: expected a number, found a remote
        #                                              ^ type: expected a remote, found a number
        #                                                    ^ type: expected a remote, found a number
          M | clean if all == {} and who == none and flag == true and count(all) <= n | send Ask (requestor = self) to none | I
        #                                                                                                              ^^^^ type: nothing can be sent to `none`
    "#]]);
}

#[test]
fn fields() {
    home(expect![[r#"
          J | Get | send Data | stay
        #                ^^^^ fields: `Data` lacks its field `acks`
          J | Put | send Data (acks = 0, acks = 1), send Data (ack = 0), send Data (acks = owner) | stay
        #                                ^^^^ fields: `acks` is given twice
        #                                                ^^^^ fields: `Data` lacks its field `acks`
        #                                                      ^^^ fields: `Data` has no field `ack`
        #                                                                                  ^^^^^ type: expected a number, found a remote
    "#]]);
}

#[test]
fn directions() {
    remote(expect![[r#"
          I | store | send Data (acks = 0) | I
        #                  ^^^^ direction: the remote cannot send `Data`
          S | load | send Ask (requestor = self) | stay
        #            ^^^^^^^^^^^^^^^^^^^^^^^^^^^ direction: to whom?
          S | Get | | stay
        #     ^^^ direction: `Get` never comes to the remote
          S | Data | send Get to sender, send Put to who | stay
        #                                            ^^^ direction: `Put` cannot be sent to a remote
    "#]]);
}

#[test]
fn home_directions() {
    home(expect![[r#"
          J | Get | send Get, send Data (acks = 0) to home | stay
        #                ^^^ direction: the home cannot send `Get`
        #                                             ^^^^ direction: the home cannot send to itself
          J | Data | | stay
        #     ^^^^ direction: `Data` never comes to the home
    "#]]);
}

#[test]
fn directions_of_channels() {
    channels(expect![[r#"
          loop home -> home
        # ^^^^^^^^^^^^^^^^^ direction: `loop` leads from the home to the home
          up remote -> upward
        #              ^^^^^^ syntax: expected who receives (`remote`, `home`, `any`), found `upward`
    "#]]);
}

#[test]
fn never_sent() {
    messages(expect![[r#"
          grant: Never
        #        ^^^^^ never-sent: nobody sends `Never`
    "#]]);
}

#[test]
fn never_received() {
    let rows = [(
        "remote",
        "M | store | send Lost | stay; I | store | send Dead to who | stay; M | Dead | never |",
    )];
    check(
        ROWS,
        "messages",
        &rows,
        expect![[r#"
          request: Lost; peer: Dead
        #          ^^^^ never-received: there is no state in which the home takes `Lost`
        #                      ^^^^ never-received: there is no state in which the remote takes `Dead`
    "#]],
    );
}

#[test]
fn accesses_under_way() {
    text(expect![[r#"
          protocol test
          line 64 bytes
          channels { request remote -> home; grant home -> remote }
          messages { request: Get, Write (store); grant: Data (line), Written }
          remote cache {
            states { I; M reads writes dirty; G; W waits Written }
        #                                     ^ unsaid-wait: a store is under way in `G`, which does not say what it waits for
            I | store      | send Get   | G
            G | Data       |            | M
            I | write_line | send Write | W
        #   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ never-performed: a write_line that begins here is never performed
            W | Written    |            | I
          }
          home directory {
            states { H }
            H | Get   | send Data           | stay
            H | Write | write, send Written | stay
          }
          system one { remotes 1; lines 1 }
    "#]]);
}

#[test]
fn waiting() {
    states(expect![[r#"
          A waits Ask
        # ^ waits-in-vain: `A` waits for `Ask` but has no row that takes it
          B waits Get
        #         ^^^ direction: `Get` never comes to the remote
          C waits Nothing
        #         ^^^^^^^ unknown-name: unknown message `Nothing`
    "#]]);
}

#[test]
fn redundant_holds() {
    states(expect![[r#"
          A holds reads
        #   ^^^^^ redundant-holds: `A` holds the line anyway
          B holds
          C holds, dirty
          D dirty
        # ^ carries: `D` is dirty but does not hold the line
    "#]]);
}

#[test]
fn unreachable_rows() {
    remote(expect![[r#"
          I S | load | send Get | W
        # ^^^^^^^^^^^^^^^^^^^^^^^^^ unreachable-row: this row is never reached for `I`
          W | Ask if n == 1 | | I
        # ^^^^^^^^^^^^^^^^^^^^^^^ unreachable-row: this row is never reached for `W`
          M | Ask if n == 1 | | I
          M | Ask if n == 1 | | S
          M | Ask | | S
          M | Ask if n == 2 | | S
        # ^^^^^^^^^^^^^^^^^^^^^^^ unreachable-row: this row is never reached for `M`
    "#]]);
}

#[test]
fn misplaced_in_the_remote() {
    remote(expect![[r#"
          I | store | write, done, unlocked, acknowledge clean | I
        #             ^^^^^ misplaced: `write` in the remote
        #                    ^^^^ misplaced: `done` without a message
        #                          ^^^^^^^^ misplaced: nothing can be unlocked here
        #                                                ^^^^^ unknown-name: unknown local operation `clean`
          M | load | leave |
        #            ^^^^^ misplaced: `leave` does not fit `load`
          M | store | never |
        #             ^^^^^ misplaced: `never` does not fit `store`
          M | Data | refuse |
        #            ^^^^^^ misplaced: `refuse` does not fit `Data`
          M | Ask | leave, n := 1 |
        #           ^^^^^ misplaced: `leave` stands alone
          M | clean if sender == who | | I
        #              ^^^^^^ misplaced: no message, so no `sender`
          M | unlock | | I
        #     ^^^^^^ unknown-name: unknown event `unlock`
          local clean { ensure all <= S }
        # ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ misplaced: a local operation in the remote
          reach I with Data
        # ^^^^^^^^^^^^^^^^^ misplaced: a statement of a policy in the remote
    "#]]);
}

#[test]
fn misplaced_in_the_home() {
    home(expect![[r#"
          J | Get | done, n := self | stay
        #           ^^^^ misplaced: `done` in the home
        #                      ^^^^ misplaced: `self` in the home
          J | load | | stay
        #     ^^^^ misplaced: `load` does not happen at this home
          J | clean | | stay
        #     ^^^^^ misplaced: `clean` does not happen at this home
          J | unlock | | stay
        #     ^^^^^^ misplaced: `unlock` does not happen at this home
          reach I with Data
        # ^^^^^^^^^^^^^^^^^ misplaced: a statement of a policy in a home with rows
    "#]]);
}

#[test]
fn home_as_a_value() {
    home(expect![[r#"
          J | Get | send Data (acks = 0) to home | stay
        #                                   ^^^^ direction: the home cannot send to itself
          J | Put if owner == home | | stay
        #                     ^^^^ misplaced: `home` is not a value
    "#]]);
}

#[test]
fn next_states() {
    remote(expect![[r#"
          I | store | send Get |
        #                       ^ next: the row does not say what comes next
          M | Ask | leave | I
        #                   ^ next: `leave` leaves the state as it is
          M | Data | never | stay
        #                    ^^^^ next: `never` leaves the state as it is
    "#]]);
}

#[test]
fn local_operations() {
    home(expect![[r#"
          local clean [lock] { ensure all <= S }
          local flush lock { ensure all == I }
          local unlock
          J | clean clean_lock flush | acknowledge clean, acknowledge flsh | stay
        #                                                             ^^^^ unknown-name: unknown local operation `flsh`
          J | unlock | unlocked | stay
          I | clean_lock unlock | refuse |
          I | clean flush | leave |
    "#]]);
}

#[test]
fn carrying() {
    messages(expect![[r#"
          peer: A (line, line), B (dirty), C (store, line), D (partial), E (partial store), F (lines)
        #                ^^^^ carries: `A` cannot carry this
        #                          ^^^^^ carries: `B` cannot carry this
        #                                            ^^^^ carries: `C` cannot carry this
        #                                                             ^ syntax: expected `store`, found `)`
    "#]]);
}

#[test]
fn carried() {
    remote(expect![[r#"
          I | store | send Put | I
        # ^^^^^^^^^^^^^^^^^^^^^^^^ carries: `I` does not hold the line that `Put` carries
          I | demote | | S
        # ^^^^^^^^^^^^^^^^ carries: `S` holds the line, but nothing brings it there from `I`
    "#]]);
}

#[test]
fn written() {
    home(expect![[r#"
          J | Get | write | stay
        #           ^^^^^ carries: nothing to write
    "#]]);
}

#[test]
fn policy_channels() {
    check(
        POLICY,
        "channels",
        &[("get", GET), ("reach", REACH)],
        expect![[r#"
          other remote -> home
        # ^^^^^ policy-channel: a policy cannot use the channel `other`
          extra as grant remote -> home
        # ^^^^^ policy-channel: a policy cannot use the channel `extra`
          more as victim any -> home
        # ^^^^ policy-channel: a policy cannot use the channel `more`
    "#]],
    );
}

#[test]
fn policy_messages() {
    check(
        POLICY,
        "messages",
        &[("get", GET), ("reach", REACH)],
        expect![[r#"
          victim: Strange (a: count), Stored (store)
        #                  ^ fields: `Strange` has fields, which a policy cannot use
        #                             ^^^^^^ carries: `Stored` carries a store but is no request
    "#]],
    );
}

#[test]
fn classes() {
    policy(expect![[r#"
          on Data(r) { ensure others(r) == I; grant r M with Inv }
        #    ^^^^ wrong-class: `Data` is no request
        #                                                    ^^^ wrong-class: `Inv` is no grant
          reach M with Data
        #              ^^^^ wrong-class: `Data` is no forward
          serve past Get
        #            ^^^ wrong-class: `Get` is no victim
          await Gone after Put, Data
        #       ^^^^ wrong-class: `Gone` is no acknowledgement
        #                  ^^^ wrong-class: `Put` is no grant
          expect Put tells I
        #        ^^^ wrong-class: `Put` is no answer
    "#]]);
}

#[test]
fn past_a_dirty_victim() {
    policy(expect![[r#"
          serve past Put
        #            ^^^ carries: requests cannot be served past `Put`
    "#]]);
}

#[test]
fn class_of_bounds() {
    file(expect![[r#"
          bounds { Get 1; Get 2 }
        #          ^^^ wrong-class: `Get` is no victim
        #                 ^^^ duplicate: a second bound for `Get`
    "#]]);
}

#[test]
fn unserved() {
    policy_on(expect![[r#"
          reach M with Inv
        # 5:21 unserved: the home does not serve `Get`
    "#]]);
}

#[test]
fn grants() {
    policy_on(expect![[r#"
          on Get(r) { grant r M with Data if held(r) }
        #    ^^^ grants: `Get` ensures nothing
        #             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ grants: the last grant depends on a condition
    "#]]);
}

#[test]
fn grants_in_order() {
    policy_on(expect![[r#"
          on Get(r) { ensure others(r) == I; ensure others(r) == I; grant r M with Data; grant r I with Data if others(r) == M; answer r with Done }
        #                                    ^^^^^^^^^^^^^^^^^^^^^ duplicate: a second `ensure`
        #                                                           ^^^^^^^^^^^^^^^^^^^ grants: later grants are never reached
        #                                                                                                                    ^ grants: a grant can only depend on the others having no right
    "#]]);
}

#[test]
fn no_grant() {
    policy_on(expect![[r#"
          on Get(r) { ensure others(q) == I; write }
        #                           ^ unknown-name: `q` is not the requester
    "#]]);
}

#[test]
fn lost_stores() {
    policy(expect![[r#"
          on Write(r) { ensure others(r) == I; answer r with Done }
        #    ^^^^^ duplicate: `Write` is served twice
        #    ^^^^^ carries: the store that `Write` carries is lost
    "#]]);
}

#[test]
fn rights() {
    policy_on(expect![[r#"
          on Get(r) { ensure others(r) == G; grant r X with Data }
        #                                 ^ not-a-right: `G` is not a stable state
        #                                            ^ unknown-name: unknown stable state `X`
    "#]]);
}

#[test]
fn unreached() {
    policy_reach(expect![[r#"
          stall possible
          stall proven
        # ^^^^^^^^^^^^ duplicate: a second `stall`
          serve under forwards
        # 18:35 unreached: no forward brings a remote down to this
        # 19:37 unreached: no forward brings a remote down to this
    "#]]);
}

#[test]
fn locks_without_unlock() {
    policy(expect![[r#"
          local clean lock { ensure all == I }
        # ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ unlock: `clean` takes a lock that nothing gives back
          local clean { ensure all == I }
        #       ^^^^^ duplicate-name: a second local operation `clean`
          local clean [lock] { ensure all == I }
        #       ^^^^^ duplicate-name: a second local operation `clean`
          local Get { ensure all == I }
        #       ^^^ duplicate-name: `Get` is a message already
    "#]]);
}

#[test]
fn unlock_without_locks() {
    policy(expect![[r#"
          local unlock
        # ^^^^^^^^^^^^ unlock: no local operation takes a lock
          variables { n: count }
        # ^^^^^^^^^ misplaced: variables in a policy
    "#]]);
}

#[test]
fn policy_syntax() {
    policy(expect![[r#"
          accept local sometimes
        #              ^^^^^^^^^ syntax: expected when to accept (`always`, `between`, `when`), found `sometimes`
          under lock
        #           ^ syntax: expected what happens to local operations (`refuse`, `wait`), found the end of the line
          await after Data
        #             ^^^^ syntax: expected `after`, found `Data`
          on Get { ensure others(r) == I }
        #        ^ syntax: expected `(`, found `{`
          grant r M with Data
        # ^^^^^ syntax: expected `states`, `variables`, a row (`STATES | EVENTS | ACTIONS | NEXT`) or a statement of a policy, found `grant`
    "#]]);
}
