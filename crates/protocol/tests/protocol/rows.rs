//! Controllers as text: rows of a protocol file when they are printed.

use cohkit_protocol::rows::{rows, Rows};
use cohkit_protocol::{protocol::Home, text::parse};
use expect_test::expect;
use std::fmt::Write;

/// A protocol with rows for most words of the language; its rows need not be coherent.
const TEXT: &str = r#"
protocol words "every kind of word"
line 64 bytes
channels {
  request  remote -> home
  forward  home -> remote
  response any -> any
}
messages {
  request:  Get, Put (line)
  forward:  Inv (requestor: remote), Ack
  response: Data (line, acks: count, last: bool)
}
remote cache {
  states { I; S reads; W waits Data; P waits Ack }
  variables { owed: count; f: bool }
  I   | load                                           | send Get | W
  W   | Data if acks == 0 and (f or not last)          | f := false | S
  W   | Data if not (f and last) or acks - (owed - 1) > 2 - owed - 1 | owed := acks, f := true | S
  W   | Data                                           | send Data (acks = owed + 1, last = true) to home | S
  S   | evict                                          | send Put | P
  P   | Ack                                            | | I
  S   | Inv                                            | send Data (acks = 0, last = f) to requestor | I
  I W P | Inv                                          | stall |
}
home directory {
  states { I; S }
  variables { sharers: set of remote; owner: remote }
  I S | Get if not sender in sharers | send Data (acks = count(sharers - { sender }), last = false), sharers += { sender } | S
  I S | Get                          | send Data (acks = 0, last = true) | S
  S   | Put if count(sharers + {}) == 1 | write, send Ack, sharers := {}, owner := none | I
  S   | Put                          | send Inv (requestor = sender) to sharers - { sender }, send Ack, sharers -= { sender } | S
  S   | Data                         | write | stay
  I   | Data                         | unreachable |
}
"#;

/// Counts of a table, and one line per row with `-` for a row without a next state.
fn lines(table: &Rows) -> String {
    let mut text = format!(
        "{} states, {} transitions, {} events\n",
        table.states, table.transitions, table.events
    );
    for row in &table.rows {
        let guard = row.guard.as_ref().map(|guard| format!(" if {guard}"));
        let _ = writeln!(
            text,
            "{} | {}{} | {} | {}",
            row.state,
            row.event,
            guard.unwrap_or_default(),
            row.actions.join(", "),
            row.next.as_deref().unwrap_or("-"),
        );
    }
    text
}

/// Rows with several states or events are printed once for each, and short forms of actions in full.
#[test]
fn rows_are_printed_in_the_protocol_language() {
    let protocol = match parse(TEXT) {
        Ok(protocol) => protocol,
        Err(errors) => panic!("{errors:#?}"),
    };
    let Home::Controller(home) = &protocol.home else {
        panic!("the home is written by hand");
    };
    expect![[r#"
        4 states, 7 transitions, 5 events
        I | load | send Get | W
        I | Inv | stall | -
        S | evict | send Put | P
        S | Inv | send Data (acks = 0, last = f) to requestor | I
        W | Data if acks == 0 and (f or not last) | f := false | S
        W | Data if not (f and last) or acks - (owed - 1) > 2 - owed - 1 | owed := acks, f := true | S
        W | Data | send Data (acks = owed + 1, last = true) to home | S
        W | Inv | stall | -
        P | Ack |  | I
        P | Inv | stall | -
    "#]].assert_eq(&lines(&rows(&protocol, &protocol.remote)));
    expect![[r#"
        2 states, 7 transitions, 3 events
        I | Get if not sender in sharers | send Data (acks = count(sharers - { sender }), last = false) to sender, sharers := sharers + { sender } | S
        I | Get | send Data (acks = 0, last = true) to sender | S
        S | Get if not sender in sharers | send Data (acks = count(sharers - { sender }), last = false) to sender, sharers := sharers + { sender } | S
        S | Get | send Data (acks = 0, last = true) to sender | S
        S | Put if count(sharers + {}) == 1 | write, send Ack to sender, sharers := {}, owner := none | I
        S | Put | send Inv (requestor = sender) to sharers - { sender }, send Ack to sender, sharers := sharers - { sender } | S
        S | Data | write | S
    "#]].assert_eq(&lines(&rows(&protocol, home)));
}

/// A loop over homes is printed with its set, and an assignment to a whole array as a single action.
#[test]
fn loops_over_homes_are_printed_with_their_set() {
    let text = include_str!("../../../../tests/homes/told.coh");
    let protocol = parse(text).unwrap_or_else(|errors| panic!("{errors:#?}"));
    let table = rows(&protocol, &protocol.remote);
    let release = table.rows.iter().find(|row| row.event == "release");
    expect![[r#"
        send Release (turn = turn, stores = sent[home], needs = count(touched - { home }))
        for each in touched - { home } { send Ask (stores = sent[each], turn = turn, at = home) to each }
        touched := {}
        sent := 0
        turn += 1
        open := true"#]].assert_eq(&release.expect("a row").actions.join("\n"));
}
