//! Searches of one state of each orbit, beside searches of all.

use cohkit_check::build::*;
use cohkit_check::model::{Model, Rule, TypeId};
use cohkit_check::search::Engine;
use cohkit_check::{check, Options, Outcome, Report};

const BOOL: TypeId = TypeId::BOOL;

/// Directed graphs on so many nodes: any edge may come and go.
fn graphs(nodes: u32) -> Builder {
    let mut m = Builder::new("graphs");
    let node = m.scalarset("node", nodes);
    let row = m.array("row", node, BOOL);
    let matrix = m.array("matrix", node, row);
    let edge = m.state("edge", matrix);
    let (a, b) = (m.bound("a", node), m.bound("b", node));
    m.start("empty", vec![]);
    let toggle = Rule::new("toggle {a} {b}")
        .over(a)
        .over(b)
        .when(a.is_not(b));
    m.rule(toggle.does([edge.at(a).at(b).set(!edge.at(a).at(b))]));
    m
}

fn run(model: &Model, options: Options) -> Report {
    check(model, &options).unwrap()
}

/// The same for both engines and any number of threads.
fn reduced(model: &Model) -> Report {
    let one = run(model, Options::default());
    for threads in [1, 2, 3] {
        for engine in [Engine::Interpreter, Engine::Native] {
            let options = Options {
                threads,
                engine,
                ..Options::default()
            };
            let other = run(model, options);
            assert_eq!((&other.outcome, other.states), (&one.outcome, one.states));
            assert_eq!(
                (other.transitions, other.depth),
                (one.transitions, one.depth)
            );
        }
    }
    one
}

#[test]
fn graphs_up_to_isomorphism() {
    // The numbers of directed graphs on n unlabelled nodes (OEIS A000273), and 2^(n(n-1)) with labels.
    for (nodes, orbits) in [(2, 3), (3, 16), (4, 218)] {
        let model = graphs(nodes).build().unwrap();
        let report = reduced(&model);
        assert_eq!(report.outcome, Outcome::Verified);
        assert_eq!(report.states, orbits);
        assert!(report.symmetric);
        let all = run(
            &model,
            Options {
                symmetry: false,
                ..Options::default()
            },
        );
        assert_eq!(all.states, 1 << (nodes * (nodes - 1)));
        assert!(!all.symmetric);
    }
}

#[test]
fn counterexamples_are_ways_that_can_be_gone() {
    // A triangle needs three edges; the steps to it stand for no permutation.
    let mut m = graphs(4);
    let node = m.model().variable(cohkit_check::model::VariableId(1)).ty;
    let edge = cohkit_check::model::VariableId(0);
    let (x, y, z) = (m.bound("x", node), m.bound("y", node), m.bound("z", node));
    let triangle = edge.at(x).at(y).and(edge.at(y).at(z)).and(edge.at(z).at(x));
    m.invariant("no triangle", !x.any(y.any(z.any(triangle))));
    let model = m.build().unwrap();
    let report = reduced(&model);
    let Outcome::Violated { trace, .. } = &report.outcome else {
        panic!("{:?}", report.outcome)
    };
    let all = run(
        &model,
        Options {
            symmetry: false,
            ..Options::default()
        },
    );
    let Outcome::Violated {
        trace: shortest, ..
    } = &all.outcome
    else {
        panic!("{:?}", all.outcome)
    };
    assert_eq!(trace.steps.len(), shortest.steps.len());
    let rules: Vec<u32> = trace.steps.iter().map(|step| step.rule_index).collect();
    let again = cohkit_check::trace::replay(&model, trace.start_index, &rules).unwrap();
    assert_eq!(again.steps, trace.steps);
    // Each step adds an edge, and the last closes a triangle.
    let ends: Vec<&str> = trace
        .steps
        .iter()
        .map(|step| &step.rule["toggle ".len()..])
        .collect();
    assert_eq!(ends.len(), 3);
    let mut outs: Vec<&str> = ends
        .iter()
        .map(|end| end.split(' ').next().unwrap())
        .collect();
    let mut ins: Vec<&str> = ends
        .iter()
        .map(|end| end.split(' ').nth(1).unwrap())
        .collect();
    outs.sort_unstable();
    ins.sort_unstable();
    assert_eq!(outs, ins);
}
