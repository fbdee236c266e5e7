//! Several kinds of remotes, initial values of variables, and messages that stay behind others.

use super::{check, check_text};
use expect_test::{expect, Expect};

/// A template with two kinds of remotes, two kinds that share rows, and places for a case.
const KINDS: &str = "protocol test
line 64 bytes
channels { ask cpu -> home; tell home -> cpu; get remote -> home; give home -> remote; all home -> remote; fifo home -> cpu; ordered fifo %channels% }
messages { ask: GetM; tell: Data (line); get: GetS; give: Copy (line); all: Inv; fifo: One }
remote cpu {
  states { I; M reads writes; W waits Data }
  variables { n: 0..7 }
  I   | store | send GetM | W
  W   | Data  |           | M
  I M | Inv   |           | I
  I M | One   |           | stay
  %cpu%
}
remote device dma {
  states { I; S reads; W waits Copy }
  I | load | send GetS | W
  W | Copy |           | S
  I S | Inv |          | I
  %device%
}
home directory {
  states { I; J }
  variables { n: 0..7; left: count; some: set of remote; who: remote; flag: bool; at: cycle 3; on: cycle 3; far: cycle 4 = 3; a: 0..3 per remote; b: 0..3 per remote; c: 0..3 per 3; %variables% }
  I | GetM | send Data, send Inv to cpu, send One | stay
  I | GetS | send Copy | stay
  %home%
}
%file%
";

/// Checks a case at a place of [`KINDS`].
fn check_kinds(place: &str, case: Expect) {
    check(KINDS, place, &[], case);
}

#[test]
fn rows_with_messages_of_another_kind_are_reported() {
    check_kinds(
        "device",
        expect![[r#"
              S | store | send GetM | W
            #                  ^^^^ direction: this kind of remotes cannot send `GetM`
              S | Data | | stay
            #     ^^^^ direction: `Data` never comes to this kind of remotes
        "#]],
    );
}
#[test]
fn kinds_that_share_rows_are_not_distinguished() {
    check_kinds(
        "home",
        expect![[r#"
              I | Inv | | stay
            #     ^^^ direction: `Inv` never comes to the home
              I | GetM if count(device) > 0 | | stay
            # ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ unreachable-row: this row is never reached for `I`
            #                   ^^^^^^ misplaced: `device` has the same rows as another kind
        "#]],
    );
}
#[test]
fn channel_ends_that_share_rows_are_reported() {
    check_kinds(
        "channels",
        expect![[r#"
              other home -> dma
            #               ^^^ direction: `dma` has the same rows as another kind
              third home -> gpu
            #               ^^^ unknown-name: unknown agent `gpu`
        "#]],
    );
}
#[test]
fn wrong_initial_values_are_reported() {
    check_kinds(
        "variables",
        expect![[r#"
              a: count = 3
            # ^ duplicate-name: a second variable `a`
              b: count = count(cpu)
            # ^ duplicate-name: a second variable `b`
              c: set of remote = cpu
            # ^ duplicate-name: a second variable `c`
              d: set of remote = { none }
            #                    ^^^^^^^^ type: a variable cannot have this initial value
              e: bool = 1
            #           ^ type: a variable cannot have this initial value
              f: remote = cpu
            #             ^^^ type: a variable cannot have this initial value
              g: 0..3 = 4
            #           ^ out-of-range: the initial value is out of range
              h: 0..3 = count(cpu)
            #           ^^^^^^^^^^ type: a variable cannot have this initial value
              i: count = count(dma)
            #                  ^^^ misplaced: `dma` has the same rows as another kind
        "#]],
    );
}
#[test]
fn invalid_message_orders_are_reported() {
    check_kinds(
        "channels",
        expect![[r#"
              ordered Data behind Inv, Data, GetM
            #                          ^^^^ direction: a message does not stay behind its own kind
            #                                ^^^^ direction: the two messages never travel in the same direction
              ordered Inv behind Inv
            #                    ^^^ duplicate: `Inv` already goes before another message
              ordered Data behind Copy
            #         ^^^^ duplicate: `Data` stays behind others already
              ordered Nothing behind Nobody
            #         ^^^^^^^ unknown-name: unknown message `Nothing`
            #                        ^^^^^^ unknown-name: unknown message `Nobody`
              ordered One behind Inv
            #         ^^^ duplicate: `One` has an order already
            #                    ^^^ duplicate: `Inv` already goes before another message
        "#]],
    );
}
#[test]
fn systems_need_a_number_of_each_kind() {
    check_kinds(
        "file",
        expect![[r#"
              system a { remotes 2; lines 1 }
            #            ^^^^^^^ unknown-name: unknown part of a system `remotes`
              system b { cpu 1; device 1; lines 1 }
            #        ^ missing-block: `b` lacks `dma N`
              system c { cpu 9; device 1; dma 0; lines 1 }
            #                ^ out-of-range: the number of remotes is out of range
              system d { cpu 4; device 4; dma 1; lines 1 }
            #        ^ out-of-range: the number of all remotes is out of range
              system e { cpu 0; device 0; dma 0; lines 1 }
            #        ^ out-of-range: the number of all remotes is out of range
        "#]],
    );
}
#[test]
fn goals_refer_to_one_table_only() {
    check_text(expect![[r#"
          protocol two
          line 64 bytes
          channels { request remote -> home; forward home -> remote; answer remote -> home; grant home -> remote }
          messages { request: Get; forward: Inv; answer: Gone; grant: Data (line) }
          remote a { states { I; M reads writes; W waits Data }; I | store | send Get | W; W | Data | | M; M | Inv | send Gone | I; I W | Inv | send Gone | stay }
          remote b { states { I; M reads; W waits Data }; I | load | send Get | W; W | Data | | M; M | Inv | send Gone | I; I W | Inv | send Gone | stay }
        #                        ^ not-a-right: `M` gives a different permission in another kind
          home { on Get(r) { ensure others(r) == I; grant r M with Data }; reach I with Inv }
        # ^^^^ misplaced: a home written as a policy, and remotes with several tables
    "#]]);
}

#[test]
fn misuses_of_cycle_numbers_are_reported() {
    check_kinds(
        "home",
        expect![[r#"
              J | GetM if at == on and far != at | at := on, at += 1, far += 3, on += 3, far -= 1, at := 0, at += n | stay
            #                                 ^^ type: expected a number of `cycle 4`, found a number of `cycle 3`
            #                                                                         ^ out-of-range: the number of steps is out of range
            #                                                                                   ^ type: `far` is a `cycle` number
            #                                                                                            ^ type: expected a number of `cycle 3`, found a number
            #                                                                                                     ^ type: `at` is a `cycle` number
              J | GetS if at < on | n := at, n := at + 1, at += 0, far := on | stay
            #             ^^ type: expected a number, found a number of `cycle 3`
            #                  ^^ type: expected a number, found a number of `cycle 3`
            #                            ^^ type: expected a number, found a number of `cycle 3`
            #                                     ^^ type: expected a number or a set of remotes, found a number of `cycle 3`
            #                                                   ^ out-of-range: the number of steps is out of range
            #                                                             ^^ type: expected a number of `cycle 4`, found a number of `cycle 3`
              J | GetM if at == 1 | | stay
            #                   ^ type: expected a number of `cycle 3`, found a number
        "#]],
    );
}

#[test]
fn misuses_of_arrays_and_loops_are_reported() {
    check_kinds(
        "home",
        expect![[r#"
              J | GetM if a[n] == a or n[who] == 1 | a[who] := flag, a += 1, n[who] := 2, a[who] += some | stay
            #               ^ type: expected a remote, found a number
            #                     ^ type: `a` is an array
            #                          ^ type: `n` is no array
            #                                                  ^^^^ type: expected a number, found a truth value
            #                                                        ^ type: `a` is an array
            #                                                                ^ type: `n` is no array
            #                                                                                       ^^^^ type: expected a number, found a set of remotes
              J | GetS | a := 9, a[sender] := 9, who[sender] := 1, b[sender] := a[who] - 1, a := b[who] + 1 | stay
            #                 ^ out-of-range: 9 is out of range
            #                                 ^ out-of-range: 9 is out of range
            #                                    ^^^ type: `who` is no array
              I | GetS | for r in some { send Inv to r, a[r] += 1, n += a[r], some2 += { r } }, for n in some { a[n] := 0 } | stay
            # ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ unreachable-row: this row is never reached for `I`
            #                                                                 ^^^^^ unknown-name: unknown variable `some2`
            #                                                                                       ^ ambiguous-name: `n` means something else in this row
              J | GetS | for r in who { a[r] := 0 }, for r in some { write }, for r in some { a := 0 }, for r in some { for q in some { a[q] := 0 } } | stay
            # ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ unreachable-row: this row is never reached for `J`
            #                     ^^^ type: expected a set of remotes, found a remote
            #                                                        ^^^^^ misplaced: an action other than a message or an assignment occurs in a loop
            #                                                                                 ^^^^^^ misplaced: an assignment to a whole array occurs in a loop
            #                                                                                                               ^ misplaced: another loop occurs in a loop
              J | GetM | for r in some { send Inv to who }, a[r] := 0, for some in some { send Inv to some } | stay
            #                            ^^^^^^^^^^^^^^^ misplaced: a message of a loop goes elsewhere
            #                                                 ^ unknown-name: unknown variable, field or kind of remotes `r`
            #                                                              ^^^^ ambiguous-name: `some` means something else in this row
        "#]],
    );
}

/// Loops whose result would differ if the remotes were numbered differently.
#[test]
fn loops_that_depend_on_the_order_of_remotes_are_reported() {
    check_kinds(
        "home",
        expect![[r#"
              J | GetM | for r in some { who := r } | stay
            #                            ^^^^^^^^ misplaced: the result depends on the order of the loop
              J | GetM | for r in some { n += 1, a[r] := n } | stay
            # ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ unreachable-row: this row is never reached for `J`
            #                            ^^^^^^ misplaced: the result depends on the order of the loop
              J | GetM | for r in some { a[r] := a[who] } | stay
            # ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ unreachable-row: this row is never reached for `J`
            #                            ^^^^^^^^^^^^^^ misplaced: the result depends on the order of the loop
              J | GetM | for r in some { a[who] += 1 } | stay
            # ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ unreachable-row: this row is never reached for `J`
            #                            ^^^^^^^^^^^ misplaced: the result depends on the order of the loop
              J | GetM | for r in some { some -= { r } } | stay
            # ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ unreachable-row: this row is never reached for `J`
            #                            ^^^^^^^^^^^^^ misplaced: the result depends on the order of the loop
              J | GetM | for r in some { n += 1, n -= 1 } | stay
            # ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ unreachable-row: this row is never reached for `J`
            #                            ^^^^^^ misplaced: the result depends on the order of the loop
              J | GetM | a := a[who] | stay
            # ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ unreachable-row: this row is never reached for `J`
            #            ^^^^^^^^^^^ misplaced: `a` is set from its own value
              J | GetS | for r in some { at += 1, left += count(some), a[r] := a[r] + b[who] } | stay
        "#]],
    );
}

#[test]
fn misuses_of_named_sizes_are_reported() {
    check_text(expect![[r#"
          protocol sizes
          line 64 bytes
          channels { ask remote -> home; reply home -> remote }
          size few 2
          size few 3
        #      ^^^ duplicate-name: `few` is a size
          size most 65536
        #           ^^^^^ out-of-range: a size is 65535 at most
          size none 1
        #      ^^^^ reserved-name: `none` is a keyword
          messages { ask: Get (n: 0..few, m: 0..fwe, few: bool); reply: Data (line) }
        #                                       ^^^ unknown-name: unknown size `fwe`
          remote cache { states { I; W waits Data }; I | read_once | send Get (n = few, m = 0, few = true) | W; W | Data | done | I }
          home memory { states { I }; variables { few: 0..later }; I | Get | send Data | stay }
        #                                         ^^^ duplicate-name: `few` is a size
        #                                                 ^^^^^ unknown-name: unknown size `later`
          size later 1
          system a { remotes 1; lines 1; few 70000 }
        #                                    ^^^^^ out-of-range: the size is out of range
          system b { remotes 1; lines 1; few 1; few 2; fwe 3 }
        #                                       ^^^ duplicate: a second `few`
        #                                              ^^^ unknown-name: unknown part of a system `fwe`
    "#]]);
}

/// A file must be correct with the sizes of each of its systems.
#[test]
fn invalid_sizes_of_a_system_are_reported() {
    check_text(expect![[r#"
          protocol sizes
          line 64 bytes
          size few 2; size turns 4
          channels { ask remote -> home; reply home -> remote }
          messages { ask: Get (n: 0..few); reply: Data (line) }
          remote cache { states { I; W waits Data }; variables { now: cycle turns = 3 }; I | read_once | send Get (n = 2) | W; W | Data | done, now += 1 | I }
        #                                                                   ^^^^^ out-of-range: the size of a cycle is out of range
        #                                                                           ^ out-of-range: the initial value is out of range
        #                                                                                                              ^ out-of-range: 2 is out of range
          home memory { states { I }; I | Get if n <= few | send Data | stay; I | Get | unreachable }
          system a { remotes 1; lines 1 }
          system b { remotes 1; lines 1; few 1 }
          system c { remotes 1; lines 1; turns 1; few 9 }
          system d { remotes 1; lines 1; turns 4 }
    "#]]);
}

#[test]
fn misuses_of_arrays_over_numbers_are_reported() {
    check_kinds(
        "home",
        expect![[r#"
              J | GetM if c[at] == c[0] and c[far] == 0 | c[3] := 0, c[n + 1] := 4, c[who] := 0, a[at] := 0, c := c[1], c += 1 | stay
            #                                 ^^^ type: expected a number, found a number of `cycle 4`
            #                                               ^ out-of-range: the index is out of range
            #                                                                    ^ out-of-range: 4 is out of range
            #                                                                         ^^^ type: expected a number, found a remote
            #                                                                                      ^^ type: expected a remote, found a number of `cycle 3`
            #                                                                                                ^^^^^^^^^ misplaced: `c` is set from its own value
            #                                                                                                           ^ type: `c` is an array
              J | GetS | for r in some { c[0] += 1 }, c[r] := 0, c := 7 | stay
            #                            ^^^^^^^^^ misplaced: the result depends on the order of the loop
            #                                           ^ unknown-name: unknown variable, field or kind of remotes `r`
            #                                                         ^ out-of-range: 7 is out of range
        "#]],
    );
    check_kinds(
        "variables",
        expect![[r#"
              d: 0..3 per 65
            #             ^^ out-of-range: the size of an array is out of range
              e: 0..3 per 0
            #             ^ out-of-range: the size of an array is out of range
              f: bool per 4
            #    ^^^^^^^^^^ type: an array whose elements are not numbers
              g: 0..3 per remote per 4
              h: 0..3 per cpu
            #             ^^^ unknown-name: unknown size `cpu`
              i: 0..3 per 4 = 4
            #                 ^ out-of-range: the initial value is out of range
        "#]],
    );
}

#[test]
fn misuses_of_parent_any_are_reported() {
    check_kinds(
        "file",
        expect![[r#"
              system a { cpu 1; device 1; dma 0; lines 1; parent any }
            #                                             ^^^^^^^^^^ misplaced: `parent any` where it cannot be
              system b { cpu 1; device 1; dma 0; lines 1; parent any; parent any }
            #                                             ^^^^^^^^^^ misplaced: `parent any` where it cannot be
            #                                                         ^^^^^^^^^^ duplicate: a second `parent any`
            #                                                         ^^^^^^^^^^ misplaced: `parent any` where it cannot be
              system c { cpu 1; device 1; dma 0; lines 1; memory 2 }
            #                                             ^^^^^^ unknown-name: unknown part of a system `memory`
        "#]],
    );
}
