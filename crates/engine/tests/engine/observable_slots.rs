//! Models in which a slot number or the order of a loop over a scalarset becomes observable: searches with symmetry, by
//! all engines, have the verdict and the number of orbits of a search of all states.

use cohkit_testing::random_models::judge::{compare_engines, AgreedVerdict};

/// Compares all engines on a model without deadlocks. Returns true if it is verified.
fn is_verified(text: &str) -> bool {
    match compare_engines(&format!("-- deadlock: off\n{text}")) {
        Ok(AgreedVerdict::Verified { .. }) => true,
        Ok(AgreedVerdict::Violated) => false,
        Err(error) => panic!("{error:?}\n{text}"),
    }
}

#[test]
fn loop_refills_the_removed_slot() {
    assert!(!is_verified(
        r#"type S: scalarset(2);
var net: multiset [3] of S; owner, last: S; done: boolean;
ruleset o: S do startstate begin owner := o; multisetadd(o, net); done := false; end; end;
choose i: net do
  rule "replace" !done ==>
  begin
    multisetremove(i, net);
    for n: S do multisetadd(n, net); end;
    last := net[i];
    assert last != owner;
    done := true;
  end;
end;"#
    ));
}

#[test]
fn element_with_a_multiset_is_replaced() {
    assert!(!is_verified(
        r#"type S: scalarset(2); bag: multiset [2] of S; rec: record b: bag; end;
var out: multiset [2] of rec; owner, other, last: S; done: boolean;
ruleset o: S do startstate var r: rec; begin
  owner := o; for n: S do if n != o then other := n; end; multisetadd(n, r.b); end;
  multisetadd(r, out); done := false;
end; end;
choose i: out do choose j: out[i].b do
  rule "replace" !done & out[i].b[j] = owner ==>
  var r: rec;
  begin
    multisetadd(owner, r.b); multisetadd(other, r.b);
    multisetremove(i, out);
    multisetadd(r, out);
    last := out[i].b[j];
    assert last != owner;
    done := true;
  end;
end; end;"#
    ));
}

#[test]
fn second_iteration_reads_a_stale_slot() {
    assert!(!is_verified(
        r#"type S: scalarset(2);
var net: multiset [3] of S; owner, last: S; done: boolean;
ruleset o: S do startstate begin owner := o; for n: S do multisetadd(n, net); end; done := false; end; end;
choose i: net do
  rule "replace" !done & net[i] = owner ==>
  begin
    for k := 1 to 3 do
      if k = 3 then last := net[i]; end;
      if k <= 2 then multisetadd(owner, net); end;
      if k = 1 then multisetremovepred(x: net, true); end;
    end;
    done := true;
  end;
end;"#
    ));
}

#[test]
fn elements_are_arrays_over_a_scalarset() {
    assert!(!is_verified(
        r#"type S: scalarset(2); bits: array [S] of boolean;
var net: multiset [2] of bits; owner: S; pos: 0..3;
ruleset o: S do startstate
 var b: bits;
begin
  owner := o; pos := 3;
  for n: S do
    for m: S do b[m] := m = n; end;
    multisetadd(b, net);
  end;
end; end;
choose i: net do
  rule "look" net[i][owner] ==> begin pos := i; end;
end;
invariant "zero" pos != 0;"#
    ));
}

#[test]
fn numbers_are_inserted_by_a_loop() {
    assert!(!is_verified(
        r#"type S: scalarset(2);
var bag: multiset [3] of 0..3; rank: array [S] of 0..3; owner: S; last: 0..3; done: boolean;
ruleset o: S do startstate begin
  owner := o; for n: S do rank[n] := 2; if n = o then rank[n] := 1; end; end;
  multisetadd(0, bag); last := 0; done := false;
end; end;
choose i: bag do
  rule "replace" !done ==>
  begin
    multisetremove(i, bag);
    for n: S do multisetadd(rank[n], bag); end;
    last := bag[i];
    done := true;
  end;
end;
invariant "a" last != 2;"#
    ));
}

#[test]
fn loops_share_a_reason() {
    assert!(!is_verified(
        r#"type S: scalarset(2);
var ok, up: array [S] of boolean; q: S; done: boolean;
function guarded(): boolean;
begin for n: S do assume ok[n]; if up[n] then return true; end; end; return false; end;
function any(): boolean;
begin for n: S do if up[n] then return true; end; end; return false; end;
ruleset o: S do startstate begin q := o; up[o] := true; for n: S do ok[n] := false; end; done := false; end; end;
rule "first" done ==> begin done := guarded(); end;
rule "second" !done ==> begin done := any(); end;"#
    ));
}

#[test]
fn recursive_procedure_replaces_elements() {
    assert!(!is_verified(
        r#"type B: scalarset(2);
var net: multiset [3] of B; other, x: B; done: boolean;
procedure drop(d: 0..2; var t: multiset [3] of B);
begin
  multisetremovepred(k: t, true);
  if d > 0 then multisetadd(other, t); drop(d - 1, t); end;
end;
ruleset o: B do startstate begin for m: B do multisetadd(m, net); end; other := o; done := false; end; end;
choose i: net do
rule "step" !done & net[i] = other ==> begin drop(1, net); multisetadd(other, net); x := net[i]; done := true; end;
end;"#
    ));
}

#[test]
fn guard_returns_the_first_value() {
    assert!(!is_verified(
        r#"type B: scalarset(2);
var b: array [B] of boolean; other: B; done: boolean;
function some(): B;
begin for n: B do if b[n] then return n; end; end; return other; end;
ruleset o: B do startstate begin for m: B do b[m] := true; end; other := o; done := false; end; end;
rule "step" !done ==> begin done := true; end;
rule "g" done & some() != other ==> begin done := false; end; invariant "x" !(done & some() != other);"#
    ));
}

#[test]
fn slot_number_is_stored() {
    assert!(!is_verified(
        "type S: scalarset(2); rec: record s: S; end;
        var net: multiset [2] of rec; owner: S; pos: 0..3;
        ruleset o: S do startstate var r: rec; begin
          owner := o; pos := 3;
          for n: S do r.s := n; multisetadd(r, net); end;
        end; end;
        choose i: net do rule \"look\" net[i].s = owner ==> begin pos := i; end; end;
        invariant \"not first\" pos != 0;"
    ));
}

/// A store by a computed index may reach every part of a multiset, as far as the analysis of undefined values can see.
#[test]
fn undefined_elements_keep_exact_orbits() {
    assert!(is_verified(
        "type S: scalarset(2); M: multiset [2] of S;
        var nets: array [S] of M; owner: S; flag: array [S] of boolean;
        ruleset o: S do startstate begin for v: S do flag[v] := v = o; end; end; end;
        ruleset p: S do choose i: nets[p] do
          rule \"send\" var e: S; begin multisetadd(e, nets[owner]); end;
        end; end;"
    ));
}

/// A recursive function prevents the analysis of undefined values; elements may be undefined all the same.
#[test]
fn undefined_elements_are_stored_in_models_with_recursion() {
    assert!(is_verified(
        "type S: scalarset(3); bag: multiset [2] of S; rec: record b: bag; end;
        var net: multiset [2] of rec; owner, last: S;
        procedure send(v: S; var t: multiset [2] of rec);
        var r: rec;
        begin multisetadd(v, r.b); multisetadd(owner, r.b); multisetadd(r, t); end;
        procedure drop(d: 0..2);
        begin if d > 0 then drop(d - 1); end; end;
        ruleset o: S do startstate begin owner := o; send(o, net); end; end;
        rule \"replace\" begin
          multisetremovepred(i: net, multisetcount(j: net[i].b, net[i].b[j] = owner) = 1);
          send(last, net);
        end;"
    ));
}

/// Checks that a violation is found if a rule replaces all elements of `net`, and then marks one by a slot number from
/// before.
fn assert_write_is_found(declarations: &str, rule: &str) {
    let model = format!(
        r#"type B: scalarset(2); E: record s: B; f: boolean; end; M: multiset [3] of E;
var net: M; other, x: B; done: boolean;
procedure send(v: B; var t: M); var e: E; begin e.s := v; e.f := false; multisetadd(e, t); end;
{declarations}
ruleset o: B do startstate begin for m: B do send(m, net); end; other := o; done := false; end; end;
choose i: net do ruleset q: B do
{rule}
end; end;
invariant "i" !done | multisetcount(k: net, net[k].f & net[k].s = other) = 0;"#
    );
    assert!(!is_verified(&model));
}

#[test]
fn alias_of_a_stale_slot_is_written() {
    assert_write_is_found(
        "",
        r#"rule "step" !done & net[i].s = other & q != other ==> begin
 alias m: net[i] do
  multisetremovepred(k: net, true); send(other, net); send(q, net); m.f := true;
 end;
 done := true;
end;"#,
    );
}

#[test]
fn parameter_at_a_stale_slot_is_written() {
    assert_write_is_found(
        "procedure go(a, b: B; var m: E);
begin multisetremovepred(k: net, true); send(a, net); send(b, net); m.f := true; end;",
        r#"rule "step" !done & net[i].s = other & q != other ==> begin go(other, q, net[i]); done := true; end;"#,
    );
}

#[test]
fn alias_around_a_rule_is_written() {
    assert_write_is_found(
        "",
        r#"alias m: net[i] do
rule "step" !done & net[i].s = other & q != other ==> begin
  multisetremovepred(k: net, true); send(other, net); send(q, net); m.f := true;
  done := true;
end; end;"#,
    );
}

#[test]
fn plain_element_at_a_stale_slot_is_written() {
    assert!(!is_verified(
        r#"type B: scalarset(2); M: multiset [3] of B;
var net: M; other: B; done: boolean;
ruleset o: B do startstate begin for m: B do multisetadd(m, net); end; other := o; done := false; end; end;
choose i: net do
ruleset q: B do
rule "step" !done & net[i] = other & q != other ==> begin
 alias m: net[i] do
  multisetremovepred(k: net, true);
  multisetadd(other, net); multisetadd(q, net);
  m := other;
 end;
 done := true; end;
end; end;
invariant "i" !done | multisetcount(k: net, net[k] = other) = 1;"#
    ));
}

/// Both rules clear a variable of the same name in the same line, of different scalarsets.
#[test]
fn uses_of_one_line_concern_several_scalarsets() {
    assert!(!is_verified(
        r#"type A: scalarset(2); B: scalarset(2);
var a, oa: A; b, ob: B;
ruleset p: A do ruleset q: B do startstate begin oa := p; ob := q; undefine a; undefine b; end; end; end;
rule "1" isundefined(a) ==> var e: A; begin clear e; a := e; end; rule "2" isundefined(b) ==> var e: B; begin clear e; b := e; end;
invariant "i" isundefined(b) | b != ob;"#
    ));
}

/// The orders of both loops together are too many to try. Without symmetry of `A`, whose loop alone is tried for the sake
/// of symmetry, those of the other loop are few enough.
#[test]
fn orders_of_two_loops_are_too_many_together() {
    assert!(is_verified(
        r#"type A: scalarset(2); B: scalarset(6);
var fa, ga: array [A] of boolean; fb: array [B] of boolean; ob: B; oa: A; done: boolean;
startstate begin for x: A do fa[x] := true; ga[x]:= false; end; for y: B do fb[y] := true; end; done := false; undefine oa; undefine ob; end;
rule "1" !done ==> var t: A; u: B; begin
  for x: A do if fa[x] then t := x; ga[x] := isundefined(oa); oa := t; end; end;
  for y: B do if fb[y] then u := y; end; end;
  ob := u; fb[u] := false;
  done := true;
end;"#
    ));
}
