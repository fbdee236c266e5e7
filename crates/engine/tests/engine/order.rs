//! Tests that scalarsets with asymmetric uses are not reduced: searches with symmetry find the violations that searches
//! of all states find.

use cohkit_engine::{check, Options, Outcome, Report};
use cohkit_murphi as murphi;

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

/// Checks that a violation is found that a permutation of the values would hide, and that a warning states the reason.
fn assert_asymmetric(text: &str, warning: &str) {
    let (report, warnings) = check_text(text, true);
    let (full_report, _) = check_text(text, false);
    for report in [&report, &full_report] {
        let Outcome::Violated { .. } = report.outcome else {
            panic!("{text}\n{:?}", report.outcome)
        };
    }
    assert!(!report.symmetric, "{text}");
    assert!(
        warnings.iter().any(|w| w.contains(warning)),
        "{text}\n{warnings:?}"
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
        assert_asymmetric(&text, "it is used as a number, and `m` is sorted");
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
