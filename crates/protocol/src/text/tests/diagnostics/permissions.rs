//! Conditional permissions.

use super::{check, POLICY, REACH, ROWS};
use expect_test::expect;

#[test]
fn invalid_conditions_on_permissions_are_reported() {
    let fillings = [
        ("variables", "a: 0..1 per remote; c: count"),
        ("remote", "registers { r: 0..1 }"),
    ];
    check(
        ROWS,
        "states",
        &fillings,
        expect![[r#"
              A reads if r > 0
            #            ^^^^^ type: a permission may depend only on numbers and truth values that an agent has for each line
              B reads if a[self] == 1
            #            ^^^^^^^^^^^^ type: a permission may depend only on numbers and truth values that an agent has for each line
              C reads if c == 1
            #            ^^^^^^ type: a permission may depend only on numbers and truth values that an agent has for each line
              D reads if self in all
            #            ^^^^^^^^^^^ type: a permission may depend only on numbers and truth values that an agent has for each line
              E writes if who == self
            #             ^^^^^^^^^^^ type: a permission may depend only on numbers and truth values that an agent has for each line
              F reads if n
            #            ^ type: expected a truth value, found a number
              G reads if k == 1
            #            ^ unknown-name: unknown variable or field `k`
              J holds, reads if flag
              K reads, holds, writes if flag
            #          ^^^^^ redundant-holds: `K` holds the line anyway
              L reads if acks == 1
            #            ^^^^ unknown-name: unknown variable or field `acks`
        "#]],
    );
}

#[test]
fn conditions_on_other_values_are_reported() {
    check(
        ROWS,
        "states",
        &[],
        expect![[r#"
              H reads if
            #           ^ syntax: expected a value, found the end of the line
              O reads if flag dirty if flag
            #                       ^^ syntax: expected `reads`, `writes`, `dirty`, `holds` or `waits`, or `;` before another state, found `if`
        "#]],
    );
}

#[test]
fn conditions_on_too_many_values_are_reported() {
    let fillings = [("variables", "x: 0..999; y: 0..999")];
    check(
        ROWS,
        "states",
        &fillings,
        expect![[r#"
              A reads if x == y
            # ^ too-many: the permission of `A` depends on too many values
        "#]],
    );
}

#[test]
fn rows_that_leave_a_condition_unknown_are_reported() {
    let fillings = [
        (
            "states",
            "T reads if n > 0, writes if n == 7, dirty; U reads if flag",
        ),
        ("variables", "a: 0..7 per remote"),
    ];
    check(
        ROWS,
        "remote",
        &fillings,
        expect![[r#"
              T | evict | send Put | I
            # ^^^^^^^^^^^^^^^^^^^^^^^^ carries: `T` does not hold the line that `Put` carries
              T | demote if n > 0 | send Put, n := 0 | stay
              T | clean if n == 0 | send Put | stay
            # ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ carries: `T` does not hold the line that `Put` carries
              I | store | n := 3 | T
            # ^^^^^^^^^^^^^^^^^^^^^^ never-performed: a store in `I` is lost in this row
            # ^^^^^^^^^^^^^^^^^^^^^^ carries: `T.reads` holds the line, but nothing brings it there from `I`
              I | demote | for r in all { n += 1 } | T
            # ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ misplaced: the permission of `T` depends on `n`, whose next value this row does not determine
              I | clean | a[self] := 1, n := a[self] | T
            # ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ misplaced: the permission of `T` depends on `n`, whose next value this row does not determine
              U | load if flag | | stay
              U | load if flag | flag := false | stay
              - | fence | every T becomes I, every S becomes U
            #                   ^ misplaced: the permission of `T` depends on variables
            #                                                ^ misplaced: the permission of `U` depends on variables
        "#]],
    );
}

#[test]
fn goals_need_states_with_a_fixed_permission() {
    let states = "W waits Done; V reads if n == 1 }\n  variables { n: 0..1 }";
    let template = POLICY.replace("W waits Done }", states);
    check(
        &template,
        "get",
        &[
            ("reach", REACH),
            ("home", "local clean { ensure all <= V }"),
        ],
        expect![[r#"
              on Get(s) { ensure others(s) <= V; grant s M with Data }
            #                                 ^ not-a-right: the permission of `V` depends on variables
            # 18:1 misplaced: a home written as a policy, and a permission that depends on variables
            # 24:31 not-a-right: the permission of `V` depends on variables
        "#]],
    );
}
