//! Tests of the type checker: valid models are accepted, and errors are reported.

use cohkit_engine::build::{when, Builder};
use cohkit_engine::model::{Deadlock, Rule, TypeId, VariableId};

/// Type of the small numbers in the model of [`errors`].
const SMALL: TypeId = TypeId(1);
/// Type of the colours in the model of [`errors`].
const COLOR: TypeId = TypeId(2);

/// Variables of the model of [`errors`].
struct Variables {
    /// A number from 0 to 3.
    n: VariableId,
    /// A colour.
    color: VariableId,
    /// An array of colours, indexed by small numbers.
    cells: VariableId,
    /// A bound variable that takes the small numbers.
    i: VariableId,
}

/// Messages for a model that `f` completes.
fn errors(f: impl FnOnce(&mut Builder, Variables)) -> Vec<String> {
    let mut m = Builder::new("m");
    let small = m.range("small", 0, 3);
    let color = m.enumeration("color", ["red", "green"]);
    assert_eq!((small, color), (SMALL, COLOR));
    let row = m.array("row", small, color);
    let variables = Variables {
        n: m.state("n", small),
        color: m.state("c", color),
        cells: m.state("cells", row),
        i: m.bound("i", small),
    };
    f(&mut m, variables);
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
    let messages = errors(|m, Variables { n, color, cells, i }| {
        let red = m.label(COLOR, "red");
        let t = m.local("t", SMALL);
        m.rule(
            Rule::new("step {i}")
                .over(i)
                .when(cells.at(i).is(red.clone()))
                .when(n.lt(3))
                .does([
                    t.begin(n + 1),
                    when(n.is(i), vec![n.set(t), cells.at(n).set(color)]),
                ]),
        );
        m.invariant("some", i.any(cells.at(i).is_not(red)));
    });
    assert_eq!(messages, Vec::<String>::new());
}

/// One seeded error per case.
#[test]
fn errors_name_their_location() {
    let message = |f: fn(&mut Builder, Variables)| errors(f).join("; ");
    assert_eq!(
        message(|m, v| m.rule(Rule::new("r").does([v.n.set(v.color)]))),
        "rule `r`: a `color` is assigned to a number"
    );
    assert_eq!(
        message(|m, v| m.invariant("small", v.n)),
        "invariant `small`: the invariant must be a truth value but is a number"
    );
    assert_eq!(
        message(|m, v| {
            let blue = m.label(COLOR, "blue");
            m.invariant("never", v.color.is_not(blue))
        }),
        "invariant `never`: type `color` has no label `blue`"
    );
    assert_eq!(
        message(|m, v| m.invariant("scope", v.cells.at(v.i).is(v.color))),
        "invariant `scope`: `i` is used outside its scope"
    );
    assert_eq!(
        message(|m, v| m.invariant("nested", v.i.all(v.i.any(true)))),
        "invariant `nested`: `i` is bound inside itself"
    );
    assert_eq!(
        message(|m, v| m.rule(Rule::new("r").does([v.cells.at(v.color).set(v.color)]))),
        "rule `r`: an index must be a number but is a `color`"
    );
    assert_eq!(
        message(|m, v| m.rule(Rule::new("r").does([v.n.field("x").set(1)]))),
        "rule `r`: a part of `n` has no fields, so no `x`"
    );
    assert_eq!(
        message(|m, v| m.rule(Rule::new("r").over(v.i).does([v.i.set(1)]))),
        "rule `r`: `i` is bound and cannot be assigned"
    );
    assert_eq!(
        message(|m, v| m.rule(Rule::new("r").over(v.n))),
        "rule `r`: `n` must be a bound variable here"
    );
    assert_eq!(
        message(|m, _| {
            m.table("t", SMALL, COLOR, [0, 1, 2, 0]);
        }),
        "table `t`: the value 2 is outside 0..1"
    );
    assert_eq!(
        message(|m, _| m.deadlock(Deadlock::ExceptQuiescent)),
        "quiescent: deadlock is excepted in quiescent states, but the model declares none"
    );
    assert_eq!(
        message(|m, _| {
            m.range("none", 3, 2);
        }),
        "type `none`: the range 3..2 is empty"
    );
    assert_eq!(
        message(|m, _| {
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
