//! Errors in words, blocks, numbers and names.

use super::{
    check, check_channels, check_file, check_messages, check_remote, check_states, check_text,
    check_variables, ROWS,
};
use expect_test::expect;

#[test]
fn unknown_words_are_reported() {
    check_text(expect![[r#"
          protocol p
          line 64 bytes $ ++
        #               ^ character: `$` has no meaning here
        #                 ^ syntax: expected the end of the line, found `+`
    "#]]);
}

#[test]
fn invalid_titles_are_reported() {
    check_text(expect![[r#"
          protocol p "without an end
        #            ^^^^^^^^^^^^^^^ unclosed-title: a quoted title without its closing `"`
    "#]]);
}

#[test]
fn long_names_are_reported() {
    check_file(expect![[r#"
          system xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx { remotes 1; lines 1 }
        #        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ name-too-long: a name of 76 characters
    "#]]);
}

#[test]
fn syntax_errors_in_blocks_are_reported() {
    check_file(expect![[r#"
          chanels { a remote -> home }
        # ^^^^^^^ syntax: expected a block, found `chanels`
          system x { remotes 1, lines 1 }
        #                     ^ syntax: expected `;` or the end of the line, found `,`
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

/// If the head of a block is missing, its lines give a single error.
#[test]
fn lines_in_no_block_are_reported() {
    check_file(expect![[r#"
          states { I S }
        # ^^^^^^ syntax: expected a block, found `states`
          I | GetS | send Data | S
          S | GetM | send Data | M
          }
          chanels { a remote -> home }
        # ^^^^^^^ syntax: expected a block, found `chanels`
          remote {
        #        ^ syntax: expected the name of the remote, found `{`
          }
          mesages { }
        # ^^^^^^^ syntax: expected a block, found `mesages`
    "#]]);
}

#[test]
fn syntax_errors_in_rows_are_reported() {
    check_remote(expect![[r#"
          I | store | send | W
        #                  ^ syntax: expected a message, found `|`
          I | store | sends Get | W
        #             ^^^^^ syntax: expected an action, found `sends`
          I | store if | | W
        #              ^ syntax: expected a value, found `|`
          I | store | send Get
        #                     ^ next: the row has no next state
          I | store | send Get to | W
        #                         ^ syntax: expected a value, found `|`
          I | store | send Get (a = 1 | W
        #                             ^ syntax: expected `,` or `)`, found `|`
          I store | send Get | W
        #                      ^ syntax: expected an action, found `W`
    "#]]);
}

#[test]
fn missing_separators_are_reported() {
    check_messages(expect![[r#"
          request: A B (line), C
        #            ^ syntax: expected `,` before another message, found `B`
    "#]]);
    check_states(expect![[r#"
          A reads B
        #         ^ syntax: expected `reads`, `writes`, `dirty`, `holds` or `waits`, or `;` before another state, found `B`
    "#]]);
}

#[test]
fn independent_errors_are_all_reported() {
    check_remote(expect![[r#"
          I | load |
        # ^^^^^^^^^^ unreachable-row: this row is never reached for `I`
        #           ^ next: the row has no next state
          S | load send Get | W
        #                     ^ syntax: expected an action, found `W`
          X | load | | S
        # ^ unknown-name: unknown state `X`
    "#]]);
}

#[test]
fn unclosed_blocks_are_reported() {
    check_text(expect![[r#"
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
        #     ^ syntax: expected `reads`, `writes`, `dirty`, `holds` or `waits`, or `;` before another state, found `|`
          home {
            states { J }
          }
    "#]]);
}

#[test]
fn long_expressions_are_reported() {
    check_remote(expect![[r#"
          I | store if n == 1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1 | | I
        #                                                                                                                                                                                                                         ^ nesting: this expression is too long
    "#]]);
}

#[test]
fn reserved_names_are_reported() {
    check_states(expect![[r#"
          load; stay; home reads; fine
        # ^^^^ reserved-name: `load` is a keyword
        #       ^^^^ reserved-name: `stay` is a keyword
        #             ^^^^ reserved-name: `home` is a keyword
    "#]]);
}

#[test]
fn invalid_numbers_are_reported() {
    check_file(expect![[r#"
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
fn line_sizes_out_of_range_are_reported() {
    check_text(expect![[r#"
          protocol p
          line 4 bytes
        #      ^ out-of-range: the line size is out of range
        # 4:1 missing-block: the file lacks `channels { ... }`, `messages { ... }`, `remote NAME { ... }`, `home { ... }`
    "#]]);
}

#[test]
fn line_sizes_that_are_no_powers_of_two_are_reported() {
    check_text(expect![[r#"
          protocol p
          line 96 bytes
        #      ^^ out-of-range: a line of 96 bytes
        # 4:1 missing-block: the file lacks `channels { ... }`, `messages { ... }`, `remote NAME { ... }`, `home { ... }`
    "#]]);
}

#[test]
fn invalid_ranges_are_reported() {
    check_variables(expect![[r#"
          a: 0..65536; b: 1..4; c: 0..65535; d: 0..99999999999; e: set of home; f: int
        #       ^^^^^ out-of-range: a range ends at 65535 at most
        #                 ^ out-of-range: a range starts at 0
        #                                          ^^^^^^^^^^^ out-of-range: a range ends at 65535 at most
        #                                                                          ^^^ syntax: expected a type (`0..7`, `cycle 8`, `count`, `bool`, `remote`, `home`, `set of remote`, `set of home`), found `int`
    "#]]);
}

#[test]
fn values_out_of_range_are_reported() {
    check_remote(expect![[r#"
          I | store | n := 8, n := 70000, n := 7, who := 1 | I
        #                  ^ out-of-range: 8 is out of range
        #                          ^^^^^ out-of-range: the number is out of range
        #                                                ^ type: expected a remote, found a number
          M | store | send Get (x = 1) | M
        #                       ^ fields: `Get` has no field `x`
    "#]]);
}

#[test]
fn missing_blocks_are_reported() {
    check_text(expect![[r#"
          protocol p
          line 64 bytes
        # 4:1 missing-block: the file lacks `channels { ... }`, `messages { ... }`, `remote NAME { ... }`, `home { ... }`
    "#]]);
}

#[test]
fn missing_header_is_reported() {
    check_text(expect![[r#"
          line 64 bytes
          protocol p
        # ^^^^^^^^ misplaced: `protocol` must come first
    "#]]);
}

#[test]
fn missing_states_are_reported() {
    check_text(expect![[r#"
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
fn missing_sizes_are_reported() {
    check_file(expect![[r#"
          system a { lines 1 }
        #        ^ missing-block: `a` lacks `remotes N`
          system b { }
        #        ^ missing-block: `b` lacks `remotes N` and `lines N`
    "#]]);
}

#[test]
fn duplicate_blocks_are_reported() {
    check_file(expect![[r#"
          line 64 bytes
        #      ^^ duplicate: a second `line`
          channels { }
        # ^^^^^^^^ duplicate: a second `channels` block
          remote cache { states { I } }
        #        ^^^^^ duplicate-name: a second kind of remotes `cache`
          system a { remotes 1; lines 1; remotes 2 }
        #                                ^^^^^^^ duplicate: a second `remotes`
          protocol other
        # ^^^^^^^^ duplicate: a second `protocol`
    "#]]);
}

#[test]
fn duplicate_names_are_reported() {
    check_file(expect![[r#"
          system a { remotes 1; lines 1 }
          system a { remotes 1; lines 1 }
        #        ^ duplicate-name: a second system `a`
          invariant b: count(M) <= 1
          invariant b: count(M) <= 1
        #           ^ duplicate-name: a second invariant `b`
    "#]]);
}

#[test]
fn duplicate_channels_are_reported() {
    check_channels(expect![[r#"
          request remote -> home
        # ^^^^^^^ duplicate-name: a second channel `request`
          ordered request, peer
          ordered grant request
        #               ^^^^^^^ duplicate-name: `request` is ordered twice
    "#]]);
}

#[test]
fn duplicate_states_are_reported() {
    check_states(expect![[r#"
          I; X; X
        # ^ duplicate-name: a second state `I`
        #       ^ duplicate-name: a second state `X`
    "#]]);
}

#[test]
fn duplicate_messages_are_reported() {
    check_messages(expect![[r#"
          grant: Get
        #        ^^^ duplicate-name: a second message `Get`
          peer: Ask2 (a: count, b: bool, a: bool)
        #                                ^ duplicate-name: a second field `a`
    "#]]);
}

#[test]
fn unknown_names_are_reported() {
    check_remote(expect![[r#"
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
fn unknown_channels_are_reported() {
    check_messages(expect![[r#"
          requests: Other
        # ^^^^^^^^ unknown-name: unknown channel `requests`
    "#]]);
}

#[test]
fn unknown_names_in_invariants_are_reported() {
    check_file(expect![[r#"
          invariant i: count(X) == 0 or in_flight(data) <= 1
        #                    ^ unknown-name: unknown state `X`
        #                                         ^^^^ unknown-name: unknown message `data`
    "#]]);
}

#[test]
fn ambiguous_names_are_reported() {
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
