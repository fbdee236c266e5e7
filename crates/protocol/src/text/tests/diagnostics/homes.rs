//! Registers, rows about no line, and several homes.

use super::check;
use expect_test::{expect, Expect};

/// A template with two homes, and with places for a case.
const HOMES: &str = "protocol test
line 64 bytes
size homes 2
channels { ask remote -> home; tell home -> remote; end remote -> home; over home -> remote; pass home -> home; %channels% }
messages { ask: Get; tell: Data (line); end: End (turn: 0..3, at: home); over: Over; pass: Pass (at: home, whose: remote) %messages% }
remote cache {
  states { I; V reads; W waits Data %states% }
  variables { n: 0..3 }
  registers { open: 0..3; sent: 0..3 per home; turns: cycle 3 per home; some: set of home; last: home; grid: 0..3 per home per 2 }
  I | load if open < 3 | send Get, open += 1, sent[home] += 1, some += { home } | W
  W | Data | open -= 1 | V
  - | fence if count(some) != 0
    | for h in some { send End (turn = sent[h], at = last) to h, turns[h] += 1 }, some := {}, sent := 0, retry
  - | Over | some -= { sender }, sent[sender] := 0
  %cache%
}
home directory {
  states { I }
  variables { m: 0..3 }
  registers { told: 0..3 per remote per 2; best: 0..3 }
  I | Get | send Data, best := 0 | stay
  - | End if told[sender][0] < 3 | told[sender][0] += 1, send Pass (at = home, whose = sender) to at
  - | End | stall
  - | Pass if home != at | send Over to whose
  - | Pass | best := 0
  %home%
}
%file%
";

/// Checks a case at a place of [`HOMES`].
fn check_homes(place: &str, case: Expect) {
    check(HOMES, place, &[], case);
}

#[test]
fn invalid_actions_of_lineless_rows_are_reported() {
    check_homes(
        "cache",
        expect![[r#"
              - | fence if n == 0 | open := 0
            #              ^ misplaced: `n` in a row about no line
              - | fence | n := 0, send Get to home
            #             ^ misplaced: `n` in a row about no line
            #                          ^^^ misplaced: `Get` is about a line, but this row is about none
              - | fence | send End (turn = 0, at = last)
            # ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ unreachable-row: this row is never reached for `I`
            #             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ direction: the receiving home is missing
              - | fence | open := 0 | I
            # ^^^^^^^^^^^^^^^^^^^^^^^^^ unreachable-row: this row is never reached for `I`
            #                         ^ next: a row about no line leads nowhere
              - | load | open := 0
            # ^^^^^^^^^^^^^^^^^^^^ never-performed: a load in `I` is lost in this row
            #     ^^^^ misplaced: `load` is about a line
              I | fence | open := 0 | stay
            # ^^^^^^^^^^^^^^^^^^^^^^^^^^^^ unreachable-row: this row is never reached for `I`
            #     ^^^^^ misplaced: `fence` is about no line
              I | Over | open := 0 | stay
            # ^^^^^^^^^^^^^^^^^^^^^^^^^^^ unreachable-row: this row is never reached for `I`
            #     ^^^^ misplaced: `Over` is taken by rows of both sorts
              - | Data | open := 0
            # ^^^^^^^^^^^^^^^^^^^^ unreachable-row: this row is never reached for `W`
            #     ^^^^ misplaced: `Data` is taken by rows of both sorts
              - | fence | done
            # ^^^^^^^^^^^^^^^^ unreachable-row: this row is never reached for `I`
            #             ^^^^ misplaced: a row about no line
        "#]],
    );
    check_homes(
        "home",
        expect![[r#"
              - | Get | send Data
            # ^^^^^^^^^^^^^^^^^^^ unreachable-row: this row is never reached for `I`
            #     ^^^ misplaced: `Get` is taken by rows of both sorts
            #                ^^^^ misplaced: `Data` is about a line, but this row is about none
              I | End | write | stay
            # ^^^^^^^^^^^^^^^^^^^^^^ unreachable-row: this row is never reached for `I`
            #     ^^^ misplaced: `End` is taken by rows of both sorts
            #           ^^^^^ carries: nothing to write
              - | Pass | acknowledge clean
            # ^^^^^^^^^^^^^^^^^^^^^^^^^^^^ unreachable-row: this row is never reached for `I`
            #            ^^^^^^^^^^^^^^^^^ misplaced: a row about no line
              - | Pass | send Over
            # ^^^^^^^^^^^^^^^^^^^^ unreachable-row: this row is never reached for `I`
            #            ^^^^^^^^^ direction: the receiver is missing
        "#]],
    );
}

#[test]
fn misuses_of_homes_as_values_are_reported() {
    check_homes(
        "cache",
        expect![[r#"
              - | Over if some == {} or some != { sender } or sender in some | last := sender, some := some - { last }
            # ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ unreachable-row: this row is never reached for `I`
              - | Over if last == 1 or last < sender | some := 3
            # ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ unreachable-row: this row is never reached for `I`
            #                     ^ type: expected a home, found a number
            #                          ^^^^ type: expected a number, found a home
            #                                 ^^^^^^ type: expected a number, found a home
            #                                                  ^ type: expected a set of homes, found a number
              - | Over if sent[0] == 1 or sent[self] == 1 | sent[last] := 4, turns[last] += 2, turns[last] := 1
            # ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ unreachable-row: this row is never reached for `I`
            #                  ^ type: expected a home, found a number
            #                                  ^^^^ type: expected a home, found a remote
            #                                                             ^ out-of-range: 4 is out of range
            #                                                                                                 ^ type: expected a number of `cycle 3`, found a number
              - | Over if grid[last] == 0 or grid[last][1] == 0 or some[last] == 1 | grid := 2, last += 1, grid[last][2] := 0
            # ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ unreachable-row: this row is never reached for `I`
            #             ^^^^ type: `grid` has another number of indices
            #                                                      ^^^^ type: `some` is a set
            #                                                                                   ^^^^ type: `last` is neither a number nor a set
            #                                                                                                         ^ out-of-range: the index is out of range
              I | load | send End (turn = 0, at = self) to last, send Get to last | W
            #                                     ^^^^ type: expected a home, found a remote
            #                                                                ^^^^ misplaced: `Get` is about a line, but this row is about none
              - | Over | for h in last { open += 1 }
            # ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ unreachable-row: this row is never reached for `I`
            #                     ^^^^ type: expected a set of remotes, found a home
              - | Over | for h in some { open := 1 }, for h in some { send End (turn = 0, at = h) to last }
            # ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ unreachable-row: this row is never reached for `I`
            #                            ^^^^^^^^^ misplaced: the result depends on the order of the loop
            #                                                         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ misplaced: a message of a loop goes elsewhere
        "#]],
    );
}

#[test]
fn misplaced_homes_and_registers_are_reported() {
    check_homes(
        "channels",
        expect![[r#"
              ordered pass
              ordered Get behind Pass
            #                    ^^^^ duplicate: `Pass` has an order already
            #                    ^^^^ direction: the two messages never travel in the same direction
        "#]],
    );
    check_homes(
        "messages",
        expect![[r#"
              ; end: Many (all: set of home), Full (line)
            #              ^^^ type: a field with a set of homes
            #                   ^^^^^^^^^^^ type: `all` would be an array
        "#]],
    );
    check_homes(
        "states",
        expect![[r#"
              ; X waits Over
            #   ^ misplaced: `X` waits for `Over`, which is about no line
        "#]],
    );
    check_homes(
        "file",
        expect![[r#"
              system a { remotes 1; lines 1 }
            #        ^ out-of-range: `a` has fewer lines than homes
              system b { remotes 1; lines 2; homes 5 }
            #                                      ^ out-of-range: the size is out of range
              system c { remotes 1; lines 3; homes 3 }
        "#]],
    );
}
