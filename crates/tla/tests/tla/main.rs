//! Printed modules as texts. `python/tests/test_tla.py` runs modules and compares their states with those of the model.

use cohkit_murphi::{read, Dialect};
use cohkit_tla::{module_name, print, Export};
use expect_test::expect;

/// Prints a Murphi text.
fn export(text: &str) -> Result<Export, String> {
    let read = read("test", text, Dialect::Any).expect("the text has no errors");
    print(&read.model, "test")
}

#[test]
fn statements_become_definitions_and_violations_a_variable() {
    let text = r#"
        type client: scalarset(2); amount: 0..3;
        var used: array [client] of amount; total: 0..6;
        startstate begin
          for c: client do used[c] := 0; end;
          total := 0;
        end;
        ruleset c: client do
          rule "take" used[c] < 3 & total < 6 ==> begin
            used[c] := used[c] + 1;
            assert total < 6 "too many";
            if used[c] = 2 then total := 0; else total := total + 1; end;
          end;
        end;
        invariant "few" forall c: client do used[c] <= 2 end;
    "#;
    let export = export(text).expect("all constructs have counterparts");
    expect![[r#"
        ------------------------------- MODULE test -------------------------------
        \* test, printed by Cohkit. Check with TLC and `test.cfg`.
        \* `violation` names the property that a step violates; it is empty in all other states.
        \* States are counted without symmetry reduction.
        EXTENDS Integers, Sequences

        \* The value of a variable that has none.
        CONSTANT undefined

        VARIABLES
          used,
          total,
          violation

        vars == <<used, total, violation>>

        client == {"client_1", "client_2"}
        amount == 0 .. 3
        range_0_6 == 0 .. 6
        client_in_order == <<"client_1", "client_2">>

        TypeOK ==
          /\ used \in [client -> (amount \cup {undefined})]
          /\ total \in (range_0_6 \cup {undefined})
          /\ violation \in STRING

        Init ==
          LET RECURSIVE loop_2(_, _)
              loop_2(place_1, used_3) ==
                IF place_1 > 2
                THEN used_3
                ELSE LET c == client_in_order[place_1]
                         used_4 == [used_3 EXCEPT ![c] = 0]
                     IN  loop_2(place_1 + 1, used_4)
              used_5 == loop_2(1, [i0_ \in client |-> undefined])
              total_6 == 0
          IN  /\ used = used_5
              /\ total = total_6
              /\ violation = ""

        \* take
        take(c_2) ==
          /\ ~(used[c_2] # undefined) \/ used[c_2] < 3
          /\ ~(total # undefined) \/ total < 6
          /\ LET violation_1 == IF ~(used[c_2] # undefined /\ total # undefined) THEN "values in range" ELSE ""
                 violation_2 == IF violation_1 = "" /\ ~(used[c_2] # undefined /\ used[c_2] + 1 \in amount) THEN "values in range" ELSE violation_1
                 used_3 == [used EXCEPT ![c_2] = used[c_2] + 1]
                 violation_4 == IF violation_2 = "" /\ ~(total # undefined) THEN "values in range" ELSE violation_2
                 violation_5 == IF violation_4 = "" /\ ~(total < 6) THEN "too many" ELSE violation_4
                 violation_6 == IF violation_5 = "" /\ ~(used_3[c_2] # undefined) THEN "values in range" ELSE violation_5
                 branch_10 ==
                   IF violation_6 # ""
                   THEN <<total, violation_6>>
                   ELSE IF used_3[c_2] = 2
                   THEN LET total_7 == 0
                        IN  <<total_7, violation_6>>
                   ELSE LET violation_8 == IF violation_6 = "" /\ ~(total # undefined /\ total + 1 \in range_0_6) THEN "values in range" ELSE violation_6
                            total_9 == total + 1
                        IN  <<total_9, violation_8>>
                 total_11 == branch_10[1]
                 violation_12 == branch_10[2]
             IN  /\ used' = IF violation_12 = "" THEN used_3 ELSE used
                 /\ total' = IF violation_12 = "" THEN total_11 ELSE total
                 /\ violation' = violation_12

        Next ==
          \/ \E c_2 \in client : take(c_2)

        Spec == Init /\ [][Next]_vars

        NoViolation == violation = ""

        \* few: the invariant of line 15 does not hold
        few ==
          (\A c_3 \in client : used[c_3] # undefined) /\ (\A c_3 \in client : used[c_3] <= 2)

        \* Some step leads to a different state.
        NoDeadlock == ENABLED <<Next>>_vars

        =============================================================================
    "#]].assert_eq(&export.module);
    expect![[r#"
        SPECIFICATION Spec
        CONSTANT undefined = undefined
        INVARIANTS
          TypeOK
          NoViolation
          few
          NoDeadlock
        CHECK_DEADLOCK FALSE
    "#]]
    .assert_eq(&export.configuration);
}

#[test]
fn assumptions_exclude_states_and_leave_progress() {
    let text = r#"
        var n: 0..9;
        startstate begin n := 0; end;
        rule "count" begin n := (n + 1) % 10; end;
        assume "small" n < 3;
    "#;
    let module = export(text)
        .expect("all constructs have counterparts")
        .module;
    let (_, behaviour) = module
        .split_once("Step ==")
        .expect("a disjunction of all actions");
    expect![[r#"

          \/ count

        Next ==
          /\ Step
          /\ small'

        Spec == Init /\ [][Next]_vars

        NoViolation == violation = ""

        \* Some step leads to a different state.
        NoDeadlock == ENABLED <<Step>>_vars

        =============================================================================
    "#]]
    .assert_eq(behaviour);
}

#[test]
fn constructs_without_a_counterpart_are_named() {
    let refusals = [
        (
            "type m: multiset [2] of boolean; var a: m; startstate begin undefine a; end; rule begin end;",
            "multiset",
        ),
        (
            "var n: 0..9; function f(x: 0..9): 0..9; begin if x = 0 then return 0; end; return f(x - 1); end; \
             startstate begin n := 0; end; rule begin n := f(n); end;",
            "`f` calls itself",
        ),
        (
            "var n: 0..9; function f(): boolean; begin n := 1; return true; end; \
             startstate begin n := 0; end; rule begin if f() & n = 1 then n := 2; end; end;",
            "`f` changes the state and is called inside an expression",
        ),
        (
            "var n: 0..9; startstate begin n := 0; end; rule 1 \"first\" begin n := 1; end; \
             rule 0 \"second\" begin n := 2; end;",
            "`second` has a priority",
        ),
    ];
    for (text, words) in refusals {
        let reason = export(text).expect_err("the construct is refused");
        assert!(
            reason.contains(words) && reason.contains("not exported to TLA+"),
            "{reason}"
        );
    }
}

#[test]
fn names_of_models_become_names_of_modules() {
    let names = ["msi-three_caches", "4-valid", "a b", "IN"].map(module_name);
    assert_eq!(names, ["msi_three_caches", "x4_valid", "a_b", "xIN"]);
}
