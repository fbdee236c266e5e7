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
          \E after_ \in
              LET RECURSIVE loop_3(_, _, _)
                  loop_3(place_2, used_4, violation_5) ==
                    IF place_2 > 2 \/ violation_5 # ""
                    THEN <<used_4, violation_5>>
                    ELSE LET c_1 == client_in_order[place_2]
                             violation_6 == IF violation_5 = "" /\ ~(c_1 # undefined) THEN "values in range" ELSE violation_5
                             used_7 == [used_4 EXCEPT ![c_1] = 0]
                         IN  IF violation_6 # "" THEN <<used_4, violation_6>> ELSE loop_3(place_2 + 1, used_7, violation_6)
                  result_8 ==
                    loop_3(1, [i0_ \in client |-> undefined], "")
                  used_9 == result_8[1]
                  violation_10 == result_8[2]
                  total_11 == 0
              IN  {IF violation_10 # "" THEN <<[i0_ \in client |-> undefined], undefined, violation_10>> ELSE <<used_9, total_11, violation_10>>} :
            /\ used = after_[1]
            /\ total = after_[2]
            /\ violation = after_[3]

        \* take
        take(c_2) ==
          \E after_ \in
            IF IF c_2 # undefined /\ used[c_2] # undefined /\ (used[c_2] < 3 => (total # undefined)) THEN used[c_2] < 3 /\ total < 6 ELSE TRUE
            THEN LET violation_1 == IF ~(c_2 # undefined /\ used[c_2] # undefined /\ (used[c_2] < 3 => (total # undefined))) THEN "values in range" ELSE ""
                     violation_2 == IF violation_1 = "" /\ ~(c_2 # undefined) THEN "values in range" ELSE violation_1
                     violation_3 == IF violation_2 = "" /\ ~(c_2 # undefined /\ used[c_2] # undefined /\ used[c_2] + 1 \in amount) THEN "values in range" ELSE violation_2
                     used_4 == [used EXCEPT ![c_2] = used[c_2] + 1]
                     violation_5 == IF violation_3 = "" /\ ~(total # undefined) THEN "values in range" ELSE violation_3
                     violation_6 == IF violation_5 = "" /\ ~(total < 6) THEN "too many" ELSE violation_5
                     violation_7 == IF violation_6 = "" /\ ~(c_2 # undefined /\ used_4[c_2] # undefined) THEN "values in range" ELSE violation_6
                     branch_11 ==
                       IF violation_7 # ""
                       THEN <<total, violation_7>>
                       ELSE IF used_4[c_2] = 2
                       THEN LET total_8 == 0
                            IN  <<total_8, violation_7>>
                       ELSE LET violation_9 == IF violation_7 = "" /\ ~(total # undefined /\ total + 1 \in range_0_6) THEN "values in range" ELSE violation_7
                                total_10 == total + 1
                            IN  IF violation_9 # "" THEN <<total, violation_9>> ELSE <<total_10, violation_9>>
                     total_12 == branch_11[1]
                     violation_13 == branch_11[2]
                 IN  {IF violation_13 # "" THEN <<used, total, violation_13>> ELSE <<used_4, total_12, violation_13>>}
            ELSE {} :
            /\ used' = after_[1]
            /\ total' = after_[2]
            /\ violation' = after_[3]

        Next ==
          \/ \E c_2 \in client : take(c_2)

        Spec == Init /\ [][Next]_vars

        NoViolation == violation = ""

        \* few: the invariant of line 15 does not hold
        few ==
          (\A c_3_1 \in client : c_3_1 # undefined /\ used[c_3_1] # undefined) /\ (\A c_3_1 \in client : used[c_3_1] <= 2)

        \* Some step leads to a different state.
        NoDeadlock == ENABLED <<Next>>_vars

        =============================================================================
    "#]].assert_eq(&export.module);
    expect![[r#"
        SPECIFICATION Spec
        CONSTANT undefined = undefined
        INVARIANTS
          NoViolation
          TypeOK
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
