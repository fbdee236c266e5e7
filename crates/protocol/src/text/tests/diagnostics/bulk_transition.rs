//! Rows that change every line, and protocols without the single-writer guarantee.

use super::{check, GET, POLICY, REACH, ROWS};
use expect_test::expect;

#[test]
fn misuses_of_bulk_transitions_are_reported() {
    let states = [("states", "D reads dirty; H holds; V reads, waits Data")];
    check(
        ROWS,
        "remote",
        &states,
        expect![[r#"
              S | evict | every S becomes I | stay
            # ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ unreachable-row: this row is never reached for `S`
            #             ^^^^^^^^^^^^^^^^^ misplaced: `every` in a row about a line
              I | acquired | | stay
            #     ^^^^^^^^ misplaced: `acquired` is about no line
              - | fence |
                every S becomes T,
            #                   ^ unknown-name: unknown state `T`
                every T becomes S,
            #         ^ unknown-name: unknown state `T`
                every S becomes S,
            #                   ^ next: every `S` is in that state
                every M becomes S,
            #                   ^ carries: `M` may differ from memory, and the difference is lost in `S`
                every M becomes D,
                every I becomes S,
            #                   ^ carries: `S` holds the line, but nothing brings it there from `I`
                every W becomes I,
            #                   ^ next: `W` waits for `Data`, and `I` for nothing
                every I becomes W,
            #                   ^ next: `I` waits for nothing, and `W` for `Data`
                every W becomes V,
            #                   ^ carries: `V` holds the line, but nothing brings it there from `W`
                every S becomes M,
            #                   ^ next: `M` gives a permission that `S` does not
                every V becomes W,
                every S becomes H,
                for r in all { every S becomes I }
            #            ^^^ misplaced: `all` in a row about no line
            #                  ^^^^^^^^^^^^^^^^^ misplaced: an action other than a message or an assignment occurs in a loop
              - | fence | every S
            #                    ^ syntax: expected `becomes`, found the end of the line
              - | fence | every becomes I
            #                           ^ syntax: expected `becomes`, found `I`
        "#]],
    );
}

#[test]
fn bulk_transitions_of_homes_are_reported() {
    check(
        ROWS,
        "home",
        &[],
        expect![[r#"
              - | Get | every I becomes J
            # ^^^^^^^^^^^^^^^^^^^^^^^^^^^ unreachable-row: this row is never reached for `I`
            #     ^^^ misplaced: `Get` is taken by rows of both sorts
            #           ^^^^^^^^^^^^^^^^^ misplaced: `every` in the home
        "#]],
    );
}

#[test]
fn policies_with_bulk_transitions_are_reported() {
    let text = POLICY
        .replace("W waits Done }", "W waits Done; H holds }")
        .replace("  I   | store ", "  %row%\n  I   | store ");
    check(
        &text,
        "row",
        &[("get", GET), ("reach", REACH)],
        expect![[r#"
              - | acquired | every H becomes I
            # ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ misplaced: `every` is about several lines, and the home is written as a policy
        "#]],
    );
}

#[test]
fn policies_exclude_guarantee_none() {
    let text = format!("{POLICY}%file%\n");
    check(
        &text,
        "file",
        &[("get", GET), ("reach", REACH)],
        expect![[r#"
              guarantee none
            # 17:1 misplaced: a home written as a policy, and `guarantee none`
        "#]],
    );
    check(
        ROWS,
        "file",
        &[(
            "home",
            "local clean { ensure all <= S }\n I J | clean | stall",
        )],
        expect![[r#"
              guarantee none, rc
              guarantee none, none
            #                 ^^^^ syntax: expected a memory model (`sc`, `tso`, `rc`), found `none`
              guarantee rc, none
            # ^^^^^^^^^^^^ duplicate: a second `guarantee`
            #             ^ syntax: expected the end of the line, found `,`
            # 19:3 misplaced: a local operation, and `guarantee none`
        "#]],
    );
}
