//! Comparison of the engines, decomposition and numbers of threads on random models.

use cohkit_base::random::SplitMix64;
use cohkit_engine::build::{choose, when, Builder};
use cohkit_engine::model::{
    Deadlock, Expr, Invariant, Model, Operator, Role, Rule, Stmt, TypeId, VariableId,
};
use cohkit_engine::report::{Outcome, Property};
use cohkit_engine::search::Engine;
use cohkit_engine::trace::replay;
use cohkit_engine::{check, Options};
use proptest::prelude::*;

/// Random choices that determine a model; zeros when they run out.
struct Choices<'a>(std::slice::Iter<'a, u8>);

impl Choices<'_> {
    /// A choice below `n`.
    fn below(&mut self, n: usize) -> usize {
        self.0.next().map_or(0, |&b| b as usize % n)
    }

    /// One of these options.
    fn pick<T: Clone>(&mut self, options: &[T]) -> T {
        options[self.below(options.len())].clone()
    }
}

/// The variables of one group. Groups rarely interact, so many models split into independent parts.
#[derive(Clone)]
struct Group {
    /// A number from 0 to 2.
    number: VariableId,
    /// A truth value.
    flag: VariableId,
    /// Numbers from 0 to 2, indexed by such a number.
    cells: VariableId,
}

/// A random number expression, which may be out of range or have no value.
fn number(choices: &mut Choices, group: &Group, parameter: VariableId, depth: usize) -> Expr {
    match choices.below(if depth == 0 { 4 } else { 8 }) {
        0 => group.number.into(),
        1 => Expr::Int(choices.below(4) as i64),
        2 => parameter.into(),
        3 => group.cells.at(parameter).into(),
        4 => {
            number(choices, group, parameter, depth - 1)
                + number(choices, group, parameter, depth - 1)
        }
        5 => {
            number(choices, group, parameter, depth - 1)
                - number(choices, group, parameter, depth - 1)
        }
        6 => number(choices, group, parameter, depth - 1) % 3,
        _ => group
            .cells
            .at(number(choices, group, parameter, depth - 1))
            .into(),
    }
}

/// A random condition.
fn claim(choices: &mut Choices, group: &Group, parameter: VariableId, depth: usize) -> Expr {
    match choices.below(if depth == 0 { 3 } else { 6 }) {
        0 => group.flag.into(),
        1 => number(choices, group, parameter, 1).lt(number(choices, group, parameter, 1)),
        2 => number(choices, group, parameter, 1).is(number(choices, group, parameter, 1)),
        3 => !claim(choices, group, parameter, depth - 1),
        4 => claim(choices, group, parameter, depth - 1).and(claim(
            choices,
            group,
            parameter,
            depth - 1,
        )),
        _ => claim(choices, group, parameter, depth - 1).or(claim(
            choices,
            group,
            parameter,
            depth - 1,
        )),
    }
}

/// A random statement; some may store a number out of range.
fn statement(choices: &mut Choices, group: &Group, parameter: VariableId, depth: usize) -> Stmt {
    match choices.below(if depth == 0 { 6 } else { 8 }) {
        0 => group.number.set((group.number + 1) % 3),
        1 => group.flag.set(!group.flag),
        2 => group
            .cells
            .at(parameter)
            .set((group.cells.at(parameter) + 1) % 3),
        3 => group.flag.set(claim(choices, group, parameter, 1)),
        4 => group.number.set(number(choices, group, parameter, 1)),
        5 => group
            .cells
            .at(parameter)
            .set((number(choices, group, parameter, 1) + 6) % 3),
        6 => choose(
            claim(choices, group, parameter, 1),
            vec![statement(choices, group, parameter, depth - 1)],
            vec![statement(choices, group, parameter, depth - 1)],
        ),
        _ => when(
            claim(choices, group, parameter, 1),
            vec![statement(choices, group, parameter, depth - 1)],
        ),
    }
}

/// A valid model with one to three groups of variables.
fn random_model(bytes: &[u8]) -> Model {
    let mut choices = Choices(bytes.iter());
    let mut m = Builder::new("random");
    let small = m.range("small", 0, 2);
    let row = m.array("row", small, small);
    let p = m.bound("p", small);
    let groups: Vec<Group> = (0..1 + choices.below(3))
        .map(|g| Group {
            number: m.state(format!("number{g}"), small),
            flag: m.state(format!("flag{g}"), TypeId::BOOL),
            cells: m.state(format!("cells{g}"), row),
        })
        .collect();
    m.start("start", vec![]);
    for g in &groups {
        for r in 0..1 + choices.below(4) {
            // Occasionally a rule reads another group's variables.
            let read_group = if choices.below(8) == 0 {
                choices.pick(&groups)
            } else {
                g.clone()
            };
            let guard = claim(&mut choices, &read_group, p, 2).or(p.is(choices.below(3) as i32));
            let body: Vec<_> = (0..1 + choices.below(2))
                .map(|_| statement(&mut choices, g, p, 1))
                .collect();
            let mut rule = Rule::new(format!("rule {r}"))
                .over(p)
                .when(guard)
                .does(body);
            rule.spontaneous = choices.below(3) == 0;
            m.rule(rule);
        }
        if choices.below(4) == 0 {
            let condition = g.cells.at(p).is(2).and(claim(&mut choices, g, p, 1));
            m.invariant("claim", p.all(!condition.and(g.number.is(2))));
        }
    }
    let deadlock = choices.pick(&[
        Deadlock::Off,
        Deadlock::Stuttering,
        Deadlock::ExceptQuiescent,
    ]);
    m.deadlock(deadlock);
    if choices.below(2) == 0 || deadlock == Deadlock::ExceptQuiescent {
        m.quiescent(Expr::conjunction(groups.iter().map(|g| {
            if choices.below(2) == 0 {
                !g.flag
            } else {
                g.number.lt(2)
            }
        })));
    }
    m.build().unwrap()
}

/// The violated property and the length of the trace; for other outcomes, the kind of verdict.
fn verdict(outcome: &Outcome) -> (String, usize) {
    match outcome {
        Outcome::Verified => ("verified".into(), 0),
        Outcome::Violated {
            property, trace, ..
        } => (property.to_string(), trace.steps.len()),
        Outcome::Undecided { reason } => (format!("{reason:?}"), 0),
        Outcome::Exceeded { limit, trace } => (limit.clone(), trace.steps.len()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// The engines and numbers of threads give equal reports; decomposition gives the same verdict and counts.
    #[test]
    fn flat_and_decomposed_searches_agree(bytes in proptest::collection::vec(any::<u8>(), 20..250)) {
        let model = random_model(&bytes);
        let engine = Engine::Interpreter;
        let flat = Options { decompose: false, engine, max_states: Some(30_000), ..Options::default() };
        let flat_report = check(&model, &flat).unwrap();
        for engine in [Engine::Interpreter, Engine::Native] {
            for threads in [1, 2] {
                let report = check(&model, &Options { threads, engine, ..flat }).unwrap();
                prop_assert_eq!(&report, &flat_report, "{:?} with {} threads", engine, threads);
            }
        }
        let decomposed = check(&model, &Options { max_states: None, ..Options::default() }).unwrap();
        if matches!(flat_report.outcome, Outcome::Undecided { .. }) {
            return Ok(());
        }
        let (kind, length) = verdict(&flat_report.outcome);
        let (decomposed_kind, decomposed_length) = verdict(&decomposed.outcome);
        let drain = matches!(flat_report.outcome, Outcome::Violated { property: Property::Drain, .. });
        // If two violations are equally near, each search may report a different one.
        prop_assert_eq!(kind == "verified", decomposed_kind == "verified");
        prop_assert_eq!(drain, decomposed_kind == Property::Drain.to_string());
        if let Outcome::Violated { trace, .. } = &decomposed.outcome {
            let rules: Vec<u32> = trace.steps.iter().map(|s| s.rule_index).collect();
            prop_assert_eq!(replay(&model, trace.start_index, &rules), Ok((**trace).clone()));
            prop_assert!(drain || decomposed_length <= length + 1);
        }
        if kind == "verified" {
            prop_assert_eq!((flat_report.states, flat_report.transitions, flat_report.depth), (decomposed.states, decomposed.transitions, decomposed.depth));
        }
    }
}

/// Adds features that only Murphi models use: undefined values, priorities, assumptions, shifts and bitwise operations.
fn with_murphi_features(mut model: Model, bytes: &[u8]) -> Model {
    let mut choices = Choices(bytes.iter());
    let numbers: Vec<VariableId> = (0..model.variables.len() as u32)
        .map(VariableId)
        .filter(|&v| model.variable(v).name.starts_with("number"))
        .collect();
    let undefined = |v: VariableId| Expr::IsUndefined(v.into());
    let conjunction = |a: Expr, b: Expr| Expr::Binary(Operator::And, Box::new(a), Box::new(b));
    model.undefined = choices.below(4) > 0;
    let state: Vec<VariableId> = (0..model.variables.len() as u32)
        .map(VariableId)
        .filter(|&v| model.variable(v).role == Role::State)
        .collect();
    for &v in &state {
        // Variables that are not cleared begin undefined.
        if choices.below(6) > 0 || !numbers.contains(&v) {
            model.starts[0].body.push(Stmt::Clear(v.into()));
        }
    }
    for rule in &mut model.rules {
        rule.priority = choices.below(6) as i32 / 4;
        let v = choices.pick(&numbers);
        match choices.below(8) {
            0 if model.undefined => rule.body.push(Stmt::Undefine(v.into())),
            1 if model.undefined => {
                let guard = std::mem::replace(&mut rule.guard, Expr::Bool(true));
                rule.guard = conjunction(Expr::Not(Box::new(undefined(v))), guard);
            }
            2 => rule.body.push(Stmt::Assume(v.lt(2))),
            3 => {
                let operators = [
                    Operator::BitAnd,
                    Operator::BitOr,
                    Operator::BitXor,
                    Operator::ShiftLeft,
                    Operator::ShiftRight,
                ];
                let (a, b) = (
                    Expr::from(choices.pick(&numbers)),
                    Expr::from(v) - choices.below(3) as i32,
                );
                let value = Expr::Binary(choices.pick(&operators), Box::new(a), Box::new(b));
                rule.body.push(v.set((value + 9) % 3));
            }
            _ => {}
        }
    }
    if choices.below(4) == 0 {
        let v = choices.pick(&numbers);
        model.assumptions.push(Invariant {
            name: "assumed".into(),
            parameters: Vec::new(),
            reason: String::new(),
            holds: match model.undefined {
                true => undefined(v).or(v.lt(2)),
                false => v.lt(2),
            },
        });
    }
    model
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn engines_agree_on_models_with_murphi_features(
        bytes in proptest::collection::vec(any::<u8>(), 20..250),
        feature_bytes in proptest::collection::vec(any::<u8>(), 20..100),
    ) {
        let model = with_murphi_features(random_model(&bytes), &feature_bytes);
        prop_assert!(model.validate().is_empty(), "{:?}", model.validate());
        let options = |engine, threads| Options {
            decompose: false,
            max_states: Some(10_000),
            engine,
            threads,
            ..Options::default()
        };
        let expected = check(&model, &options(Engine::Interpreter, 1)).unwrap();
        for threads in [1, 2] {
            let report = check(&model, &options(Engine::Native, threads)).unwrap();
            prop_assert_eq!(&report, &expected, "{} threads", threads);
        }
    }
}

/// Guards against a generator whose models all have one trivial outcome.
#[test]
fn random_models_are_worth_checking() {
    // With the same generator, many models verify with more than one part, and every kind of violation occurs.
    let mut counts = std::collections::BTreeMap::new();
    let mut random = SplitMix64::new(1);
    for _ in 0..600 {
        let bytes: Vec<u8> = (0..150).map(|_| random.below(256) as u8).collect();
        let report = check(&random_model(&bytes), &Options::default()).unwrap();
        let parts = if report.components.len() > 1 {
            "parts"
        } else {
            "whole"
        };
        let size = if report.states > 20 { "large" } else { "small" };
        let (kind, _) = verdict(&report.outcome);
        *counts.entry(format!("{kind} {parts} {size}")).or_insert(0) += 1;
    }
    for kind in [
        "verified parts large",
        "verified whole large",
        "every request can still complete parts large",
        "no deadlock",
        "values in range",
        "claim",
    ] {
        let count: i32 = counts
            .iter()
            .filter(|(k, _)| k.starts_with(kind))
            .map(|(_, n)| n)
            .sum();
        assert!(count >= 5, "{kind}: {counts:?}");
    }
}
