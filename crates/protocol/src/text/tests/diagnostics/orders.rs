//! Orders of accesses, and guarantees.

use super::*;

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

fn orders(case: Expect) {
    check(ORDERS, "file", &[], case);
}

#[test]
fn orders_and_guarantees() {
    orders(expect![[r#"
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
