//! Tests that scalarsets with asymmetric uses are not reduced: searches with symmetry find the violations that searches
//! of all states find.

use cohkit_engine::coverage::coverage;
use cohkit_engine::model::{Deadlock, Model, TypeId};
use cohkit_engine::search::Engine;
use cohkit_engine::simulate::{simulate, Simulation};
use cohkit_engine::{check, Options, Outcome, Report};
use cohkit_murphi as murphi;
use cohkit_testing::orbits::assert_orbits;

/// Report on a Murphi text, and the warnings of its reader.
fn check_text(text: &str, symmetry: bool) -> (Report, Vec<String>) {
    let read = murphi::read("text", text, Default::default());
    let read = read.unwrap_or_else(|errors| panic!("{}", errors[0].render("text", text, false)));
    let options = Options {
        symmetry,
        ..Options::default()
    };
    let report = check(&read.model, &options).unwrap();
    let warnings = read.warnings.into_iter().map(|w| w.message);
    (report, warnings.collect())
}

/// Checks that a violation is found that a permutation of the values would hide, and that a warning or the report
/// states the reason.
fn assert_asymmetric(text: &str, warning: &str) {
    let (report, warnings) = check_text(text, true);
    let (full_report, _) = check_text(text, false);
    for report in [&report, &full_report] {
        let Outcome::Violated { .. } = report.outcome else {
            panic!("{text}\n{:?}", report.outcome)
        };
    }
    assert!(!report.symmetric, "{text}");
    let lost = report.lost_symmetry.iter().map(|lost| &lost.reason);
    let reasons: Vec<&String> = warnings.iter().chain(lost).collect();
    assert!(
        reasons.iter().any(|reason| reason.contains(warning)),
        "{text}\n{reasons:?}"
    );
}

/// One of two values is chosen; then `go` stores one of them in `got`, depending on their order.
fn model(functions: &str, go: &str, claim: &str) -> String {
    format!(
        "type S: scalarset(2);
        var m: multiset[2] of S; got: S; q: S; k: 0..2; hit: array[0..2] of boolean;
        {functions}
        startstate begin k := 0; for i: 0..2 do hit[i] := false; end; end;
        ruleset n: S do rule \"choose\" isundefined(q) ==> begin q := n; end; end;
        rule \"fill\" multisetcount(i: m, true) = 0 ==> begin for n: S do multisetadd(n, m); end; end;
        {go}
        rule \"reset\" !isundefined(got) | hit[0] | hit[1] ==>
        begin undefine got; undefine q; hit[0] := false; hit[1] := false; undefine m; end;
        invariant \"q\" {claim};"
    )
}

/// The quantifier stores values in `got`; the last one stored depends on the order in which it visits them.
#[test]
fn quantified_claims_with_side_effects_are_asymmetric() {
    let take = "function take(n: S): boolean; begin got := n; return true; end;
        function look(n: S): boolean; begin got := n; return false; end;";
    let guard = "multisetcount(i: m, true) > 0 & isundefined(got) & !isundefined(q)";
    for body in [
        "if exists n: S do take(n) end then end;",
        "if forall n: S do look(n) end then end;",
        "if exists n: S do look(n) end then end;",
        "k := multisetcount(i: m, look(m[i]));",
        "multisetremovepred(i: m, look(m[i]));",
    ] {
        for comparison in ["=", "!="] {
            let go = format!("rule \"go\" {guard} ==> begin {body} end;");
            let claim = format!("!isundefined(got) -> got {comparison} q");
            assert_asymmetric(&model(take, &go, &claim), "it changes `got`");
        }
    }
}

/// The functions change only their own locals.
#[test]
fn read_only_quantifiers_keep_symmetry() {
    let even = "function even(n: S): boolean;
        var k: 0..3; begin k := 0; for s: S do if s != n then k := k + 1; end; end; return k = 1; end;";
    let go = "rule \"go\" forall n: S do even(n) end & multisetcount(i: m, even(m[i])) = 2 ==> begin end;";
    let (report, warnings) = check_text(&model(even, go, "true"), true);
    assert!(report.symmetric, "{warnings:?}");
}

/// A place of the union that one iteration reads and another writes is found, although the labels have equal
/// positions in their enumerations.
#[test]
fn labels_of_several_enumerations_differ() {
    let text = "type E: enum {A0, A1}; F: enum {B0, B1}; S: scalarset(2); U: union {E, F};
        var p: array[S] of boolean; o: array[U] of 0..5; done: boolean;
        startstate begin for n: S do p[n] := false; end; for u: U do o[u] := 0; end; done := false; end;
        ruleset n: S do rule \"flip\" !done & forall k: S do !p[k] end ==> begin p[n] := true; end; end;
        rule \"go\" !done & exists k: S do p[k] end ==> begin
          done := true;
          for n: S do if p[n] then o[A0] := o[B0] + 1; else o[B0] := o[A0] + 1; end; end;
        end;
        rule \"again\" done ==> begin
          for n: S do p[n] := false; end; for u: U do o[u] := 0; end; done := false;
        end;";
    for label in ["A0", "B0"] {
        let text = format!("{text} invariant \"no 2\" o[{label}] != 2;");
        assert_asymmetric(&text, "is read for another in `o[..]`");
    }
    // Here the analysis finds nothing; the search detects the dependence at run time.
    let checked_text = text
        .replace("o: array[U] of 0..5", "o: U")
        .replace("for u: U do o[u] := 0; end;", "o := A1;")
        .replace("o[A0] := o[B0] + 1", "o := A0")
        .replace("o[B0] := o[A0] + 1", "o := B0");
    let (report, _) = check_text(
        &format!("{checked_text} invariant \"no B0\" o != B0;"),
        true,
    );
    assert!(
        matches!(report.outcome, Outcome::Exceeded { .. }),
        "{:?}",
        report.outcome
    );
}

/// Slot numbers that are compared, index another array, outlive their element, or are used for another multiset.
#[test]
fn observable_slot_numbers_are_asymmetric() {
    let slot_pair_rule = |guard: &str, body: &str| {
        format!(
            "choose i: m do choose j: m do
              rule \"go\" {guard} & isundefined(got) & !isundefined(q) ==> begin {body} end;
            end; end;"
        )
    };
    for comparison in ["=", "!="] {
        let claim = format!("!isundefined(got) -> got {comparison} q");
        let text = model("", &slot_pair_rule("i < j", "got := m[i];"), &claim);
        assert_asymmetric(
            &text,
            "it is used as a number, and the order in `m` depends on a scalarset",
        );
        // The inserted element takes the slot of the first one removed.
        let body = "alias x: m[i] do got := x; end; multisetremove(i, m); multisetremove(j, m);
            multisetadd(q, m); if multisetcount(k: m, k = i) = 1 then got := q; else undefine got; end;";
        let text = model(
            "",
            &slot_pair_rule("i != j & m[i] != q", body),
            "isundefined(got)",
        );
        assert_asymmetric(&text, "another element may occupy the slot by then");
    }
    for slot in [0, 1] {
        let go = "choose i: m do
            rule \"hit\" !isundefined(q) & m[i] = q & !hit[0] & !hit[1] ==> begin hit[i] := true; end;
            end;";
        let text = model("", go, &format!("!hit[{slot}]"));
        assert_asymmetric(&text, "it is used as a number");
    }
    let replaced = "choose i: m do rule \"go\" isundefined(got) & !isundefined(q) ==>
        var other: multiset[2] of S;
        begin for n: S do multisetadd(n, other); end; m := other; got := m[i]; end; end;";
    let text = model("", replaced, "isundefined(got)");
    assert_asymmetric(&text, "another element may occupy the slot by then");
    let foreign = "choose i: m do rule \"go\" isundefined(got) & !isundefined(q) ==>
        var other: multiset[2] of S;
        begin for n: S do multisetadd(n, other); end; got := other[i]; end; end;";
    let text = model("", foreign, "isundefined(got)");
    assert_asymmetric(&text, "it may be used for another multiset than its own");
}

/// Slot numbers that only name and remove elements.
#[test]
fn element_naming_slots_keep_symmetry() {
    let go = "choose i: m do choose j: m do
          rule \"go\" i != j & isundefined(got) & !isundefined(q) ==>
          begin got := m[i]; multisetremove(i, m); multisetremove(j, m); multisetadd(q, m); end;
        end; end;";
    let (report, warnings) = check_text(&model("", go, "true"), true);
    assert!(report.symmetric, "{warnings:?}");
    assert!(warnings.is_empty(), "{warnings:?}");
}

/// Model in a file of `tests/murphi`.
fn case(name: &str) -> Model {
    let path = format!("{}/../../tests/murphi/{name}.m", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("the model file exists");
    murphi::read(name, &text, Default::default())
        .expect("the model has no errors")
        .model
}

/// Scalarset of this name in a model.
fn scalarset(model: &Model, name: &str) -> TypeId {
    let position = model.types.iter().position(|named| named.name == name);
    TypeId(position.expect("the model declares the scalarset") as u32)
}

/// Loops that use one variable for all iterations, or return early, although their order does not matter in any state.
#[test]
fn loops_without_effect_of_their_order_keep_symmetry() {
    for (name, size) in [("order-searched", 3), ("order-returned", 2)] {
        let model = case(name);
        assert_orbits(name, &model, scalarset(&model, "node"), size);
        for engine in [Engine::Interpreter, Engine::Native] {
            for threads in [1, 2] {
                let options = Options {
                    engine,
                    threads,
                    ..Options::default()
                };
                let report = check(&model, &options).unwrap();
                assert_eq!(report, check(&model, &Options::default()).unwrap());
                assert!(report.lost_symmetry.is_empty(), "{name}");
            }
        }
    }
}

/// The search starts again without symmetry once a step has different results in two orders.
#[test]
fn order_that_matters_loses_symmetry() {
    let model = case("order-lost");
    let all_states = Options {
        symmetry: false,
        ..Options::default()
    };
    let expected = check(&model, &all_states).unwrap();
    for engine in [Engine::Interpreter, Engine::Native] {
        let options = Options {
            engine,
            ..Options::default()
        };
        let report = check(&model, &options).unwrap();
        let [lost] = &report.lost_symmetry[..] else {
            panic!("{:?}", report.lost_symmetry)
        };
        assert_eq!(lost.scalarsets, ["node"]);
        for part in [
            "it returns at the first value that satisfies a condition (line 10)",
            "in the order node_1, node_2 of the model file the result is: `free[node_1]` = false",
            "in the order node_2, node_1: `free[node_1]` = true",
        ] {
            assert!(lost.reason.contains(part), "{}", lost.reason);
        }
        let counts = |report: &Report| (report.states, report.transitions, report.depth);
        assert_eq!(counts(&report), counts(&expected));
        assert_eq!(report.outcome, Outcome::Verified);
        assert!(!report.symmetric);
        let coverage = coverage(&model, &report, &options).expect("the search is not cancelled");
        let fired: u128 = coverage.rules.iter().map(|rule| rule.fired).sum();
        assert_eq!(fired, report.transitions);
    }
    // A random walk needs no symmetry, so the order of the file decides.
    let simulation = Simulation {
        seed: 1,
        steps: 100,
        length: 10,
    };
    let report = simulate(&model, &simulation, &Options::default()).unwrap();
    assert!(
        matches!(report.outcome, Outcome::Undecided { .. }),
        "{:?}",
        report.outcome
    );
}

/// Two loops return early, and only the order of one matters: the other scalarset keeps its symmetry.
#[test]
fn only_the_scalarset_whose_order_matters_loses_symmetry() {
    let text = "type A: scalarset(3); B: scalarset(2);
        var a: array [A] of boolean; b: array [B] of boolean; last, other: B; done: boolean;
        function any(): A; begin for n: A do if a[n] then return n; end; end; end;
        function some(): B; begin for n: B do if b[n] then return n; end; end; end;
        ruleset o: B do startstate begin
          for n: A do a[n] := true; end;
          for m: B do b[m] := true; end;
          other := o; done := false;
        end; end;
        rule \"step\" !done ==> begin a[any()] := false; last := some(); done := true; end;
        ruleset n: A do rule \"idle\" done ==> begin a[n] := !a[n]; end; end;";
    let (report, warnings) = check_text(text, true);
    assert!(warnings.is_empty(), "{warnings:?}");
    assert_eq!(report.outcome, Outcome::Verified);
    assert!(report.symmetric);
    let [lost] = &report.lost_symmetry[..] else {
        panic!("{:?}", report.lost_symmetry)
    };
    assert_eq!(lost.scalarsets, ["B"]);
    assert!(
        lost.reason.contains("in the order B_1, B_2 of"),
        "{}",
        lost.reason
    );
}

/// More values have more orders than the search tries. It starts again, and names the loop.
#[test]
fn too_many_orders_lose_symmetry() {
    let text = "type S: scalarset(7); var up: array [S] of boolean; q: S;
        function any(): boolean;
        begin for n: S do if up[n] then return true; end; end; return false; end;
        startstate begin undefine q; end;
        ruleset n: S do
          rule \"choose\" isundefined(q) ==> begin q := n; up[n] := true; end;
        end;
        invariant \"none\" isundefined(q) | any();";
    let (report, _) = check_text(text, true);
    let (expected, _) = check_text(text, false);
    assert!(matches!(expected.outcome, Outcome::Violated { .. }));
    assert!(matches!(report.outcome, Outcome::Violated { .. }));
    let [lost] = &report.lost_symmetry[..] else {
        panic!("{:?}", report.lost_symmetry)
    };
    assert_eq!(lost.scalarsets, ["S"]);
    assert!(lost.reason.contains("(line 3)"), "{}", lost.reason);
}

/// A loop in a guard is not tested in every state; a warning names it.
#[test]
fn loops_over_many_values_and_in_guards_are_reported() {
    let model = |size: u32, guard: &str, action: &str| {
        format!(
            "type S: scalarset({size}); var up: array [S] of boolean; got: S;
            function first(): S; begin for n: S do if up[n] then return n; end; end; return got; end;
            startstate begin for n: S do up[n] := false; end; end;
            ruleset n: S do rule \"up\" begin up[n] := !up[n]; end; end;
            rule \"get\" {guard} ==> begin {action} end;"
        )
    };
    for (size, guard, action) in [
        (6, "isundefined(got)", "got := first();"),
        (2, "first() = got", "undefine got;"),
    ] {
        let (report, warnings) = check_text(&model(size, guard, action), true);
        assert!(!report.symmetric && report.lost_symmetry.is_empty());
        let reason = "it returns at the first value that satisfies a condition";
        assert!(warnings[0].contains(reason), "{warnings:?}");
    }
}

/// An iteration that fails keeps later ones from running: the model must fail in each state of the orbit, or not at all.
#[test]
fn failing_iteration_is_compared_in_all_orders() {
    let model = |up: &str| {
        format!(
            "type S: scalarset(2); var up, b: array [S] of boolean; got: S; q: S;
            function any(): boolean;
            begin for n: S do if up[n] then return true; end; end; return false; end;
            startstate begin for n: S do b[n] := false; end; end;
            ruleset n: S do
              rule \"choose\" isundefined(q) ==> begin q := n; {up} end;
            end;
            rule \"look\" !isundefined(q) ==> begin if any() then undefine q; undefine up; end; end;"
        )
    };
    // One node is up, and whether the other one is up is undefined: the first order reads it first, or not at all.
    let read = murphi::read("text", &model("up[n] := true;"), Default::default());
    let model_of_one = read.unwrap().model;
    for symmetry in [true, false] {
        let options = Options {
            symmetry,
            ..Options::default()
        };
        let report = check(&model_of_one, &options).unwrap();
        assert!(
            matches!(report.outcome, Outcome::Violated { .. }),
            "{:?}",
            report.outcome
        );
    }
    let (report, warnings) = check_text(&model("for m: S do up[m] := m = n; end;"), true);
    assert_eq!(report.outcome, Outcome::Verified);
    assert!(report.symmetric && warnings.is_empty(), "{warnings:?}");
}

/// After one removal, an added element takes the slot of the removed one, whatever its number.
#[test]
fn slot_numbers_survive_one_removal() {
    let text = "type S: scalarset(3); message: record source: S; kind: enum {a, b}; end;
        var net: array [S] of multiset [3] of message; last: S; busy: S;
        procedure send(to_node: S; source: S);
        var m: message;
        begin m.source := source; m.kind := a; multisetadd(m, net[to_node]); end;
        ruleset n: S do startstate begin busy := n; end; end;
        ruleset n: S; s: S do
          rule \"send\" multisetcount(i: net[n], true) < 2 & busy = n ==>
          begin send(n, s); end;
        end;
        ruleset n: S do
          choose i: net[n] do choose j: net[n] do
            alias channel: net[n]; m: channel[i] do
              rule \"replace\" i != j & m.kind = a ==>
              begin
                last := m.source;
                multisetremove(i, channel);
                send(n, channel[j].source);
                m.kind := b;
                channel[j].kind := b;
              end;
            end;
          end; end;
        end;
        alias channel: net[busy] do
          choose i: channel do
            rule \"take\" channel[i].kind = b & channel[i].source != last ==>
            begin multisetremove(i, channel); end;
          end;
        end;";
    let read = murphi::read("text", text, Default::default());
    let read = read.unwrap_or_else(|errors| panic!("{}", errors[0].render("text", text, false)));
    let warnings: Vec<&String> = read.warnings.iter().map(|w| &w.message).collect();
    assert!(warnings.is_empty(), "{warnings:?}");
    let mut model = read.model;
    model.deadlock = Deadlock::Off;
    assert_orbits("slots", &model, scalarset(&model, "S"), 3);
}
