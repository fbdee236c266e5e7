//! Tests of the type checker: valid models are accepted, and errors are reported.

use cohkit_engine::build::*;
use cohkit_engine::model::*;

/// Messages for a model that `f` completes; it has a range, an enumeration, an array and variables of these types.
fn errors(
    f: impl FnOnce(&mut Builder, VariableId, VariableId, VariableId, VariableId),
) -> Vec<String> {
    let mut m = Builder::new("m");
    let small = m.range("small", 0, 3);
    let color = m.enumeration("color", ["red", "green"]);
    let row = m.array("row", small, color);
    let n = m.state("n", small);
    let c = m.state("c", color);
    let cells = m.state("cells", row);
    let i = m.bound("i", small);
    f(&mut m, n, c, cells, i);
    if m.model().starts.is_empty() {
        m.start("start", vec![]);
    }
    match m.build() {
        Ok(_) => vec![],
        Err(errors) => errors.iter().map(|e| e.to_string()).collect(),
    }
}

/// The parts of the model that the other test breaks, in their correct form.
#[test]
fn valid_model_has_no_errors() {
    let messages = errors(|m, n, c, cells, i| {
        let red = m.label(TypeId(2), "red");
        let t = m.local("t", TypeId(1));
        m.rule(
            Rule::new("step {i}")
                .over(i)
                .when(cells.at(i).is(red.clone()))
                .when(n.lt(3))
                .does([
                    t.begin(n + 1),
                    when(n.is(i), vec![n.set(t), cells.at(n).set(c)]),
                ]),
        );
        m.invariant("some", i.any(cells.at(i).is_not(red)));
    });
    assert_eq!(messages, Vec::<String>::new());
}

/// One seeded error per case.
#[test]
fn errors_name_their_location() {
    let message =
        |f: fn(&mut Builder, VariableId, VariableId, VariableId, VariableId)| errors(f).join("; ");
    assert_eq!(
        message(|m, n, c, _, _| m.rule(Rule::new("r").does([n.set(c)]))),
        "rule `r`: a `color` is assigned to a number"
    );
    assert_eq!(
        message(|m, n, _, _, _| m.invariant("small", n)),
        "invariant `small`: the invariant must be a truth value but is a number"
    );
    assert_eq!(
        message(|m, _, c, _, _| {
            let blue = m.label(TypeId(2), "blue");
            m.invariant("never", c.is_not(blue))
        }),
        "invariant `never`: type `color` has no label `blue`"
    );
    assert_eq!(
        message(|m, _, c, cells, i| m.invariant("scope", cells.at(i).is(c))),
        "invariant `scope`: `i` is used outside its scope"
    );
    assert_eq!(
        message(|m, _, _, _, i| m.invariant("nested", i.all(i.any(true)))),
        "invariant `nested`: `i` is bound inside itself"
    );
    assert_eq!(
        message(|m, _, c, cells, _| m.rule(Rule::new("r").does([cells.at(c).set(c)]))),
        "rule `r`: an index must be a number but is a `color`"
    );
    assert_eq!(
        message(|m, n, _, _, _| m.rule(Rule::new("r").does([n.field("x").set(1)]))),
        "rule `r`: a part of `n` has no fields, so no `x`"
    );
    assert_eq!(
        message(|m, _, _, _, i| m.rule(Rule::new("r").over(i).does([i.set(1)]))),
        "rule `r`: `i` is bound and cannot be assigned"
    );
    assert_eq!(
        message(|m, n, _, _, _| m.rule(Rule::new("r").over(n))),
        "rule `r`: `n` must be a bound variable here"
    );
    assert_eq!(
        message(|m, _, _, _, _| {
            m.table("t", TypeId(1), TypeId(2), [0, 1, 2, 0]);
        }),
        "table `t`: the value 2 is outside 0..1"
    );
    assert_eq!(
        message(|m, _, _, _, _| m.deadlock(Deadlock::ExceptQuiescent)),
        "quiescent: deadlock is excepted in quiescent states, but the model declares none"
    );
    assert_eq!(
        message(|m, _, _, _, _| {
            m.range("none", 3, 2);
        }),
        "type `none`: the range 3..2 is empty"
    );
    assert_eq!(
        message(|m, _, _, _, _| {
            let wide = m.range("wide", 1, 1 << 25);
            m.array("huge", wide, TypeId::BOOL);
        }),
        "type `huge`: a value would have 33554432 parts; the maximum is 1048576"
    );
    assert_eq!(
        Builder::new("empty").build().unwrap_err()[0].to_string(),
        "model `empty`: it has no start state"
    );
}
