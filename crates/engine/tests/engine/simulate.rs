//! Random walks: their violations, the validity of their traces, and their dependence on the seed alone.

use cohkit_engine::build::Builder;
use cohkit_engine::model::{Deadlock, Model, Rule, TypeId};
use cohkit_engine::replay::{replay_trace, FinalVerdict};
use cohkit_engine::search::{Engine, Reason};
use cohkit_engine::simulate::{simulate, Simulation};
use cohkit_engine::trace::replay;
use cohkit_engine::{check, Options, Outcome, Property, Report};
use cohkit_murphi::{read, Dialect};

use cohkit_testing::models;

/// Twenty walks, if none ends before its maximum length.
const SHORT: Simulation = Simulation {
    seed: 0,
    steps: 2000,
    length: 100,
};

/// Report of random walks, checked to be equal for both engines and any number of threads.
fn walk(model: &Model, simulation: &Simulation) -> Report {
    let run = |engine, threads| {
        let options = Options {
            engine,
            threads,
            ..Options::default()
        };
        simulate(model, simulation, &options).unwrap()
    };
    let report = run(Engine::Interpreter, 1);
    for threads in [1, 2, 3] {
        assert_eq!(run(Engine::Native, threads), report, "{}", model.name);
    }
    report
}

/// Counts up or down; the third rule is never enabled.
fn counter(max: i32) -> Builder {
    let mut m = Builder::new("counter");
    let numbers = m.range("numbers", 0, max);
    let n = m.state("n", numbers);
    m.start("zero", vec![]);
    m.rule(Rule::new("up").when(n.lt(max)).does([n.set(n + 1)]));
    m.rule(Rule::new("down").when(n.gt(0)).does([n.set(n - 1)]));
    m.rule(Rule::new("never").when(n.gt(max)).does([n.set(0)]));
    m
}

/// Every walk has the maximum length, since some step always leads to another state.
#[test]
fn walks_without_violation_are_undecided() {
    let report = walk(&counter(5).build().unwrap(), &SHORT);
    let reason = Reason::MaxSteps;
    assert_eq!(report.outcome, Outcome::Undecided { reason });
    assert_eq!((report.states, report.depth), (6, 100));
    let walks = report.walks.unwrap();
    assert_eq!((walks.walks, walks.steps), (20, 2000));
    assert_eq!((walks.rules_fired, walks.rules), (2, 3));
    assert_eq!(walks.never_fired, ["never"]);
    assert!(walks.states_counted);
    // All states except the two ends have two successors.
    assert!(report.transitions > 2000 && report.transitions < 4000);
}

#[test]
fn violation_path_is_shortened_and_replays() {
    let mut m = counter(5);
    let n = cohkit_engine::model::VariableId(0);
    m.invariant("small", n.lt(5));
    let model = m.build().unwrap();
    let report = walk(&model, &SHORT);
    let Outcome::Violated {
        property, trace, ..
    } = &report.outcome
    else {
        panic!("{:?}", report.outcome)
    };
    assert_eq!(*property, Property::Invariant("small".into()));
    // However often the walk went back, only one path does not go back.
    assert_eq!(trace.steps.len(), 5);
    let rules: Vec<u32> = trace.steps.iter().map(|step| step.rule_index).collect();
    assert_eq!(replay(&model, trace.start_index, &rules).unwrap(), **trace);
}

/// A step that leaves the range of a variable, and a state without a step to another one. Without the check of
/// deadlocks, such a state only ends its walk.
#[test]
fn faults_and_deadlocks_are_found() {
    let mut m = counter(5);
    let n = cohkit_engine::model::VariableId(0);
    m.rule(Rule::new("too far").when(n.is(4)).does([n.set(n + 2)]));
    let report = walk(&m.build().unwrap(), &SHORT);
    let Outcome::Violated {
        property, trace, ..
    } = &report.outcome
    else {
        panic!("{:?}", report.outcome)
    };
    assert_eq!(*property, Property::WellDefined);
    assert_eq!(trace.steps.last().unwrap().rule, "too far");
    assert!(trace.fault.is_some());

    let mut m = Builder::new("one way");
    let stopped = m.state("stopped", TypeId::BOOL);
    m.start("go", vec![]);
    m.rule(Rule::new("stop").does([stopped.set(true)]));
    let model = m.build().unwrap();
    let report = walk(&model, &SHORT);
    let Outcome::Violated { property, .. } = &report.outcome else {
        panic!("{:?}", report.outcome)
    };
    assert_eq!(*property, Property::NoDeadlock);
    let mut ends = model;
    ends.deadlock = Deadlock::Off;
    let report = walk(&ends, &SHORT);
    let walks = report.walks.unwrap();
    assert_eq!((walks.walks, walks.steps, report.depth), (2000, 2000, 1));
}

/// Walks with another seed visit other states.
#[test]
fn walks_visit_only_reachable_states() {
    let model = models::peterson(4);
    let full_report = check(&model, &Options::default()).unwrap();
    let report = walk(&model, &SHORT);
    assert!(report.states > 100 && report.states < full_report.states);
    assert!(report.depth <= SHORT.length);
    let other_seed = Simulation { seed: 1, ..SHORT };
    assert_ne!(walk(&model, &other_seed).states, report.states);
}

/// If two nodes own the thing, the loop stores them in an order that scalarset values do not have.
#[test]
fn walks_watch_loops_over_scalarsets() {
    let text = "type node: scalarset(3);
        var owns: array [node] of boolean; owner, boss: node;
        startstate begin for n: node do owns[n] := false; boss := n; end; end;
        ruleset n: node do rule \"take or leave\" begin owns[n] := !owns[n]; end; end;
        rule \"look\" begin for n: node do if owns[n] then owner := n; end; end; end;";
    let model = read("owners", text, Dialect::Any).unwrap().model;
    let report = walk(&model, &SHORT);
    let Outcome::Exceeded { limit, trace } = &report.outcome else {
        panic!("{:?}", report.outcome)
    };
    assert!(limit.contains("`owner` = "), "{limit}");
    assert_eq!(trace.steps.last().unwrap().rule, "look");
    assert!(trace.loops_checked && report.walks.is_some());
    let (_, ending) = replay_trace(&model, trace, None).unwrap();
    assert!(matches!(ending, FinalVerdict::LimitExceeded(reason) if reason == *limit));

    let unwatched = Options {
        symmetry: false,
        ..Options::default()
    };
    let report = simulate(&model, &SHORT, &unwatched).unwrap();
    let reason = Reason::MaxSteps;
    assert_eq!(report.outcome, Outcome::Undecided { reason });
}

/// Models without a start state, and with one that the assumption excludes.
#[test]
fn walks_begin_only_in_start_states() {
    for text in [
        "var a: boolean; rule begin a := true; end; invariant false;",
        "var a: boolean; startstate begin a := false; end; rule begin a := !a; end; assume a;
         invariant a;",
    ] {
        let model = read("text", text, Dialect::Any).unwrap().model;
        let report = walk(&model, &SHORT);
        let reason = Reason::MaxSteps;
        assert_eq!(report.outcome, Outcome::Undecided { reason });
        assert_eq!((report.states, report.transitions, report.depth), (0, 0, 0));
    }
}
