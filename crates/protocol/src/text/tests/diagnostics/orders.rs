//! Orders of accesses, and guarantees.

use super::check;
use crate::text::diagnostic::Diagnostic;
use expect_test::{expect, Expect};

/// A protocol without errors, and a place for blocks about program order.
const ORDERS: &str = "protocol test
line 64 bytes
channels { ask remote -> home; tell home -> remote }
messages { ask: Get; tell: Data (line) }
remote cache {
  states { I; S reads; W waits Data }
  I | load | send Get | W
  W | Data |          | S
}
home { states { I }
  I | Get | send Data | stay
}
%file%
";

/// Checks a case after the last block of [`ORDERS`].
fn check_orders(case: Expect) {
    check(ORDERS, "file", &[], case);
}

#[test]
fn invalid_orders_and_guarantees_are_reported() {
    check_orders(expect![[r#"
          accesses { load after everything; fench before all; store }
        #                       ^^^^^^^^^^ unknown-name: unknown access with an order `everything`
        #                                   ^^^^^ unknown-name: unknown access with an order `fench`
        #                                                           ^ syntax: expected `after` or `before`, found `}`
          accesses { acquire during all }
        # ^^^^^^^^ duplicate: a second `accesses` block
        #                    ^^^^^^ syntax: expected `after` or `before`, found `during`
          accesses { acquire after all, before }
        # ^^^^^^^^ duplicate: a second `accesses` block
        #                                      ^ syntax: expected an access or `all`, found `}`
          guarantee strong
        #           ^^^^^^ syntax: expected a memory model (`sc`, `tso`, `rc`, `none`), found `strong`
          guarantee sc
          guarantee rc
        # ^^^^^^^^^^^^ duplicate: a second `guarantee`
          accesses { acquire before all }
        # ^^^^^^^^ duplicate: a second `accesses` block
    "#]]);
}

/// A protocol whose load sends two requests, and whose home answers with three messages; `%file%` is replaced by
/// networks.
const QUEUE: &str = "protocol test
line 64 bytes
channels { ask remote -> home; tell home -> remote; %file% }
messages { ask: Get, Hint; tell: Data (line), Note }
remote cache {
  states { I; W waits Data; S reads }
  I | load | send Get, send Hint | W
  W | Data |                     | S
  S | Note |                     | stay
  W | Note |                     | stay
}
home { states { I }
  I | Get  | send Data, send Note to sender, send Note to sender | stay
  I | Hint |                                                     | stay
}
system one { remotes 1; lines 1 }
";

/// A row of an access that sends more messages than one input queue holds could never be executed. Numbers are those
/// of the errors.
#[test]
fn accesses_that_exceed_an_input_queue() {
    for (channels, rows) in [
        (
            "network asked capacity 1 { ask }; network told capacity 1 { tell }",
            1,
        ),
        ("network both capacity 1 { ask, tell }", 1),
        ("network asked capacity 2 { ask }; network told { tell }", 0),
        ("network asked { ask }", 0),
        ("ordered ask", 0),
    ] {
        let parsed = crate::text::parse(&QUEUE.replace("%file%", channels));
        let diagnostics = parsed.err().unwrap_or_default();
        let names_queue = |diagnostic: &&Diagnostic| diagnostic.message.contains("one input queue");
        let count = diagnostics.iter().filter(names_queue).count();
        assert_eq!(count, rows, "{channels}: {diagnostics:?}");
        assert_eq!(diagnostics.len(), rows, "{channels}: {diagnostics:?}");
    }
}
