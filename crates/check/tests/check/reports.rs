//! Results besides a verdict: coverage, state graphs, replayed counterexamples, and explanations of deadlocks.

use crate::support::{home_of, parse_valid, shipped};
use cohkit_check::system::{system_model, Options as SystemOptions, SystemModel};
use cohkit_engine::build::{error, Builder};
use cohkit_engine::coverage::coverage;
use cohkit_engine::explain::{explain, Explanation, Remark};
use cohkit_engine::graph::graph;
use cohkit_engine::model::{Deadlock, Model, Rule, TypeId};
use cohkit_engine::replay::{replay_trace, FinalVerdict};
use cohkit_engine::report::Status;
use cohkit_engine::trace::Trace;
use cohkit_engine::{check, Options, Outcome, Property, Report};
use cohkit_murphi::Dialect;
use cohkit_protocol::controller::{Controller, Effect, Event};
use cohkit_protocol::protocol::{Home, Protocol};
use cohkit_testing::models::{self, copies, dining, every_construct, overflow, peterson};
use expect_test::expect;

/// Returns the model and the home of a system: hand-written, or constructed from the policy.
fn system(protocol: &Protocol, remotes: u16, lines: u8) -> (SystemModel, Controller) {
    let home = home_of(protocol, remotes);
    let model = system_model(protocol, &home, remotes, lines, &SystemOptions::default()).unwrap();
    (model, home)
}

/// Checks that coverage adds up to the report, for limits of all kinds and any number of threads. Returns the
/// report.
fn check_coverage_sum(model: &Model, options: Options) -> Report {
    let mut previous = None;
    for threads in [1, 3] {
        let options = Options { threads, ..options };
        let report = check(model, &options).unwrap();
        let coverage = coverage(model, &report, &options).unwrap();
        let fired: u128 = coverage.rules.iter().map(|rule| rule.fired).sum();
        assert_eq!(fired, report.transitions, "{}: transitions", model.name);
        let new: u64 = coverage.rules.iter().map(|rule| rule.new).sum();
        if report.components.len() == 1 && report.complete {
            let begin = Options {
                max_depth: Some(0),
                ..options
            };
            let starts = check(model, &begin).unwrap().states;
            assert_eq!(
                starts + u128::from(new),
                report.states,
                "{}: states",
                model.name
            );
        }
        assert!(
            previous.is_none_or(|previous| previous == coverage),
            "{}: coverage depends on the number of threads",
            model.name
        );
        previous = Some(coverage);
    }
    check(model, &options).unwrap()
}

/// Covers models with violations, limits of states and depth, symmetry, and decomposition.
#[test]
fn coverage_adds_up_to_the_transitions() {
    for model in [
        peterson(3),
        dining(4),
        overflow(),
        every_construct(),
        copies(3, true),
        copies(3, false),
        models::drain(models::Ending::Answered),
    ] {
        check_coverage_sum(&model, Options::default());
    }
    let filter = peterson(4);
    check_coverage_sum(
        &filter,
        Options {
            max_states: Some(1000),
            ..Options::default()
        },
    );
    check_coverage_sum(
        &filter,
        Options {
            max_depth: Some(9),
            ..Options::default()
        },
    );
    check_coverage_sum(
        &copies(3, true),
        Options {
            decompose: false,
            ..Options::default()
        },
    );
    for (name, remotes, lines) in [("msi", 2, 1), ("mesi", 2, 1), ("eci", 1, 2)] {
        let protocol = parse_valid(&shipped(name));
        check_coverage_sum(
            &system(&protocol, remotes, lines).0.model,
            Options::default(),
        );
    }
}

/// In a system every access and delivery takes one row, so the rows add up to the transitions too.
#[test]
fn rows_of_protocol_tables_are_counted() {
    let protocol = parse_valid(&shipped("msi"));
    let (system, home) = system(&protocol, 2, 1);
    let model = &system.model;
    let options = Options::default();
    let report = check(model, &options).unwrap();
    let coverage = coverage(model, &report, &options).unwrap();
    let rows = |is_home: bool, controller: &Controller| {
        let counts = system.row_counts(is_home, controller, &coverage);
        counts
            .into_iter()
            .enumerate()
            .filter_map(|(index, count)| Some((index, count?)))
            .collect::<Vec<_>>()
    };
    let (remote, home_rows) = (rows(false, &protocol.remote), rows(true, &home));
    let taken_total: u128 = remote
        .iter()
        .chain(&home_rows)
        .map(|(_, count)| count)
        .sum();
    let hits: u128 = (coverage.rules.iter())
        .filter(|rule| rule.rule == "cache store hits")
        .map(|rule| rule.fired)
        .sum();
    assert_eq!(taken_total + hits, report.transitions);
    let untaken_rows = |rows: &[(usize, u128)], controller: &Controller| {
        let untaken_rows = rows.iter().filter(|(_, count)| *count == 0);
        let name = |&(index, _): &(usize, u128)| {
            let row = &controller.rules[index];
            format!(
                "{} {:?}\n",
                controller.states[row.state.index()].name,
                row.event
            )
        };
        untaken_rows.map(name).collect::<String>()
    };
    // With two caches no message involves a third.
    expect![[r#"
        IM_A Message(MessageId(9))
        SM_A Message(MessageId(9))
    "#]]
    .assert_eq(&untaken_rows(&remote, &protocol.remote));
    expect![[""]].assert_eq(&untaken_rows(&home_rows, &home));
}

/// Returns the violated property and its trace, after a round trip through JSON.
fn counterexample(report: &Report) -> (Property, Trace) {
    let Outcome::Violated {
        property, trace, ..
    } = &report.outcome
    else {
        panic!("no violation, but {:?}", report.outcome);
    };
    let text = serde_json::to_string(trace).unwrap();
    (property.clone(), serde_json::from_str(&text).unwrap())
}

/// A trace that was serialised and read again leads to a violation: of the named property, or of any without a name.
#[test]
fn replay_reaches_recorded_violation() {
    for model in [
        dining(3),
        overflow(),
        models::drain(models::Ending::Stuck),
        models::drain(models::Ending::Retried),
        copies(2, true),
    ] {
        let report = check(&model, &Options::default()).unwrap();
        let (violated, recorded) = counterexample(&report);
        for claim in [Some(&violated), None] {
            let (trace, ending) = replay_trace(&model, &recorded, claim).unwrap();
            assert_eq!(trace, recorded);
            let FinalVerdict::Violated { property, .. } = ending else {
                panic!("{}: {ending:?}", model.name);
            };
            if let Some(claim) = claim {
                assert_eq!(&property, claim, "{}", model.name);
            }
        }
        // Without its last step the trace is no counterexample, unless the fault is in the last state itself.
        let mut shorter = recorded.clone();
        if shorter.steps.pop().is_some() && recorded.fault.is_none() {
            let (_, ending) = replay_trace(&model, &shorter, Some(&violated)).unwrap();
            let expected_ending = FinalVerdict::Violated {
                property: violated,
                message: String::new(),
            };
            assert_ne!(
                std::mem::discriminant(&ending),
                std::mem::discriminant(&expected_ending),
                "{}",
                model.name
            );
        }
    }
}

/// Each change of a valid trace is reported at the step where model and trace differ.
#[test]
fn mismatching_trace_is_rejected_with_its_step() {
    let model = dining(3);
    let (_, valid_trace) = counterexample(&check(&model, &Options::default()).unwrap());
    let error_after = |change: &dyn Fn(&mut Trace)| {
        let mut trace = valid_trace.clone();
        change(&mut trace);
        replay_trace(&model, &trace, None).unwrap_err()
    };
    let errors = [
        error_after(&|trace| trace.start_index = 9),
        error_after(&|trace| trace.start = "elsewhere".into()),
        error_after(&|trace| trace.steps[1].rule_index = 99),
        error_after(&|trace| trace.steps[1].rule = "something else".into()),
        error_after(&|trace| trace.steps[2] = trace.steps[1].clone()),
        error_after(&|trace| trace.steps[1].changes[0].to = "7".into()),
        error_after(&|trace| trace.steps[1].changes.clear()),
        replay_trace(&peterson(2), &valid_trace, None).unwrap_err(),
    ];
    expect![[r#"
        there is no start state 9; the model has 1, counted from 0
        start state 0 is `free`, but the trace begins in `elsewhere`
        step 2: there is no rule 99; the model has 9, counted from 0
        step 2: rule 1 is `1 takes left`, but the trace says `something else`
        step 3: `1 takes left` is not enabled there
        step 2: `1 takes left`: the model has `fork[1]` 0 -> 2, but the trace says `fork[1]` 0 -> 7
        step 2: `1 takes left`: the model has `fork[1]` 0 -> 2, but the trace says nothing more
        start state 0 is `all away`, but the trace begins in `free`
    "#]]
    .assert_eq(&(errors.join("\n") + "\n"));
}

/// Two processes and a lock that the second never acquires.
fn lock() -> Model {
    let mut model = Builder::new("lock");
    let process = model.range("process", 1, 2);
    let bits = model.array("inside", process, TypeId::BOOL);
    let (locked, inside) = (
        model.state("locked", TypeId::BOOL),
        model.state("inside", bits),
    );
    let (p, q) = (model.bound("p", process), model.bound("q", process));
    model.start("nobody inside", vec![]);
    let enter = Rule::new("{p} enters")
        .over(p)
        .when(!inside.at(p))
        .when((!locked).or(p.is(2)));
    model.rule(enter.does([locked.set(true), inside.at(p).set(true)]));
    let leave = Rule::new("{p} leaves").over(p).when(inside.at(p));
    model.rule(leave.does([locked.set(false), inside.at(p).set(false)]));
    model.rule(
        Rule::new("says \"no\" twice")
            .when(locked)
            .does([error("never")]),
    );
    model.invariant(
        "one inside",
        p.all(q.all(p.is(q).or(!inside.at(p)).or(!inside.at(q)))),
    );
    model.build().unwrap()
}

/// The graph has all states and transitions of the report, also for models that the search decomposes.
#[test]
fn state_graph_is_complete() {
    let peterson = peterson(3);
    let report = check(&peterson, &Options::default()).unwrap();
    let state_graph = graph(&peterson, 10_000, None).unwrap();
    assert_eq!(state_graph.states.len() as u128, report.states);
    assert_eq!(state_graph.edges.len() as u128, report.transitions);
    let error = graph(&peterson, 100, None).unwrap_err();
    assert_eq!(
        error,
        "the state graph has more than 100 states, too many to examine"
    );
    let copies = copies(2, false);
    let report = check(&copies, &Options::default()).unwrap();
    assert_eq!(report.components.len(), 2);
    let state_graph = graph(&copies, 10_000, None).unwrap();
    assert_eq!(state_graph.states.len() as u128, report.states);
    assert_eq!(state_graph.edges.len() as u128, report.transitions);
}

/// The edges of the trace are highlighted in Graphviz's format.
#[test]
fn state_graph_marks_the_counterexample() {
    let lock = lock();
    let (_, trace) = counterexample(&check(&lock, &Options::default()).unwrap());
    let graph = graph(&lock, 10, Some(&trace)).unwrap();
    let rules = |steps: Vec<&str>| steps.join(", ");
    let marked = graph.edges.iter().filter(|edge| edge.marked);
    assert_eq!(
        rules(marked.map(|edge| edge.rule.as_str()).collect()),
        rules(trace.steps.iter().map(|step| step.rule.as_str()).collect())
    );
    expect![[r#"
        digraph "lock" {
          node [shape=box, fontname="monospace"];
          edge [fontname="monospace"];
          s0 [label="0", peripheries=2, color=red, penwidth=2];
          s1 [label="1\nlocked = true\ninside[1] = true", color=red, penwidth=2];
          s2 [label="2\nlocked = true\ninside[2] = true"];
          s3 [label="3\nlocked = true\ninside[1] = true\ninside[2] = true", color=red, penwidth=2];
          s4 [label="4\ninside[2] = true"];
          s5 [label="5\ninside[1] = true"];
          s0 -> s1 [label="1 enters", color=red, penwidth=2];
          s0 -> s2 [label="2 enters"];
          s1 -> s3 [label="2 enters", color=red, penwidth=2];
          s1 -> s0 [label="1 leaves"];
          f4 [label="`never` does not hold", shape=plaintext];
          s1 -> f4 [label="says \"no\" twice"];
          s2 -> s0 [label="2 leaves"];
          f6 [label="`never` does not hold", shape=plaintext];
          s2 -> f6 [label="says \"no\" twice"];
          s3 -> s4 [label="1 leaves"];
          s3 -> s5 [label="2 leaves"];
          f9 [label="`never` does not hold", shape=plaintext];
          s3 -> f9 [label="says \"no\" twice"];
          s4 -> s3 [label="1 enters"];
          s4 -> s0 [label="2 leaves"];
          s5 -> s3 [label="2 enters"];
          s5 -> s0 [label="1 leaves"];
        }
    "#]]
    .assert_eq(&graph.dot());
}

/// Run by `cargo test -p cohkit-check --test check reports:: -- --ignored`.
#[test]
#[ignore = "Graphviz is needed, which nothing else needs"]
fn graphviz_reads_a_state_graph() {
    use std::io::Write;
    use std::process::{Command, Stdio};
    let lock = lock();
    let (_, trace) = counterexample(&check(&lock, &Options::default()).unwrap());
    let graph = graph(&lock, 10, Some(&trace)).unwrap();
    let mut dot = Command::new("dot")
        .arg("-Tcanon")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("Graphviz is installed");
    let mut stdin = dot.stdin.take().unwrap();
    stdin.write_all(graph.dot().as_bytes()).unwrap();
    drop(stdin);
    assert!(dot.wait().unwrap().success());
}

/// Reads a Murphi model.
fn read_murphi(name: &str, text: &str) -> Model {
    let read = cohkit_murphi::read(name, text, Dialect::Any);
    read.unwrap().model
}

/// Checks a model, and returns the violated property with the explanation of its counterexample.
fn explain_counterexample(model: &Model, remarks: &[Remark]) -> (Property, Explanation) {
    let report = check(model, &Options::default()).unwrap();
    let (property, trace) = counterexample(&report);
    let expression = &cohkit_murphi::expression;
    let explanation = explain(model, remarks, &property, &trace, expression).unwrap();
    (property, explanation)
}

/// Returns the property and the explanation of a counterexample, as JSON.
fn explanation_text(model: &Model, remarks: &[Remark]) -> String {
    let (property, explanation) = explain_counterexample(model, remarks);
    let text = serde_json::to_string_pretty(&explanation).unwrap();
    format!("{property}: {text}\n")
}

/// In a deadlock of two philosophers, the report gives the conditions of each rule that do not hold.
#[test]
fn deadlock_report_lists_failed_conditions() {
    expect![[r#"
        no deadlock: {
          "wait_for": [],
          "blocked": [
            {
              "rule": "0 takes left",
              "failed_conditions": [
                "fork[i] = 0"
              ]
            },
            {
              "rule": "1 takes left",
              "failed_conditions": [
                "fork[i] = 0"
              ]
            },
            {
              "rule": "0 takes right",
              "failed_conditions": [
                "fork[(i + 1) % 2] = 0"
              ]
            },
            {
              "rule": "1 takes right",
              "failed_conditions": [
                "fork[(i + 1) % 2] = 0"
              ]
            },
            {
              "rule": "0 puts both back",
              "failed_conditions": [
                "fork[(i + 1) % 2] = i + 1"
              ]
            },
            {
              "rule": "1 puts both back",
              "failed_conditions": [
                "fork[(i + 1) % 2] = i + 1"
              ]
            }
          ],
          "reachable": null
        }
    "#]]
    .assert_eq(&explanation_text(&dining(2), &[]));
}

/// Conditions appear as in the Murphi text, with aliases and quantifiers.
#[test]
fn deadlock_report_uses_source_expressions() {
    let text = "
        type P: scalarset(2); H: enum {home}; N: union {P, H};
        var a: array[P] of 0..2; m: multiset[1] of N; b: boolean; last: N;
        startstate begin
          for p: P do a[p] := 2; end; b := false; undefine last; undefine m;
        end;
        ruleset p: P do
          alias c: a[p]; twice: 2 * a[p] do
            rule \"up\" c < 2 & !b ==> begin c := c + 1; end;
            rule \"twice\" !b & twice = 3 ==> begin b := true; end;
            rule 5 \"late\" c = 2 ==> begin c := 0; end;
          end;
        end;
        choose i: m do rule \"take\" m[i] = last & !b ==> begin multisetremove(i, m); end; end;
        rule \"some\" !isundefined(last) & last = home | multisetcount(i: m, m[i] = home) > 0
          ==> begin b := true; end;
        rule \"member\" ismember(last, P) & forall i: 0..1 do i < 2 end ==> begin b := true; end;
        ruleset i := 1 to 9 by 4 do
          alias k: i + 1 do rule \"step\" k > 3 & b ==> begin b := false; end; end;
        end;
        rule \"leaves out\" begin b := true; assume false; end;
        rule \"stays\" begin b := false; end;
    ";
    let model = read_murphi("stuck", text);
    let (_, explanation) = explain_counterexample(&model, &[]);
    let lines = explanation.blocked.iter().map(|blocked| {
        let reason = blocked
            .reason
            .clone()
            .unwrap_or(blocked.failed_conditions.join("; "));
        format!("{}: {reason}\n", blocked.rule)
    });
    expect![[r#"
        up (p=P_1): a[p] < 2
        up (p=P_2): a[p] < 2
        twice (p=P_1): (2 * a[p]) = 3
        twice (p=P_2): (2 * a[p]) = 3
        late (p=P_1): is held back by `leaves out`, which has a smaller priority
        late (p=P_2): is held back by `leaves out`, which has a smaller priority
        take (i=0): choose i: m
        some: !isundefined(last) & last = home | multisetcount(i: m, m[i] = home) > 0
        member: ismember(last, P)
        step (i=1): (i + 1) > 3; b
        step (i=5): b
        step (i=9): b
        leaves out: does not fire, as an assumption in it does not hold
        stays: is enabled, but leads to no new state
    "#]]
    .assert_eq(&lines.collect::<String>());
}

/// A ruleset with a million instances is reported up to a limit, with the number of omitted instances.
#[test]
fn deadlock_report_truncates_blocked_rules() {
    let text = "var x: 0..1; startstate begin x := 0; end;
        ruleset i: 0..999; j: 0..999 do rule \"go\" x = 1 & i = j ==> begin x := 0; end; end;";
    let model = read_murphi("stuck", text);
    let (_, explanation) = explain_counterexample(&model, &[]);
    let Explanation {
        blocked, omitted, ..
    } = explanation;
    assert_eq!((blocked.len(), omitted), (1000, 999_000));
    assert_eq!(blocked[0].failed_conditions, ["x = 1"]);
    assert_eq!(blocked[1].rule, "go (i=0, j=1)");
    assert_eq!(blocked[1].failed_conditions, ["x = 1", "i = j"]);
}

/// One message names all cover properties that no state satisfies.
#[test]
fn unmet_covers_are_all_named() {
    let text = "var x: 0..3; startstate begin x := 0; end;
        rule \"on\" begin x := (x + 1) % 3; end;
        cover \"one\" x = 1; cover \"three\" x = 3; cover \"four\" x = 2 & x = 3;";
    let model = read_murphi("covers", text);
    let report = check(&model, &Options::default()).unwrap();
    let Outcome::Violated {
        property, message, ..
    } = &report.outcome
    else {
        panic!("{:?}", report.outcome);
    };
    assert_eq!(*property, Property::Cover("three".into()));
    assert_eq!(
        message,
        "`three` and `four` are not covered in any of 3 states, at most 2 steps from a start"
    );
    let status = |name: &str| {
        let property = Property::Cover(name.into());
        let mut results = report.properties.iter();
        results
            .find(|result| result.property == property)
            .map(|result| result.status)
    };
    let statuses = ["one", "three", "four"].map(status);
    let expected = [Status::Holds, Status::Violated, Status::Violated];
    assert_eq!(statuses, expected.map(Some));
}

/// If completion is unreachable without a deadlock (livelock), the report lists the rules that remain enabled for ever.
#[test]
fn livelock_report_lists_enabled_rules() {
    expect![[r#"
        every request can still complete: {
          "wait_for": [],
          "blocked": [],
          "reachable": {
            "states": 1,
            "more": false,
            "rules": []
          }
        }
    "#]]
    .assert_eq(&explanation_text(
        &models::drain(models::Ending::Stuck),
        &[],
    ));
    expect![[r#"
        every request can still complete: {
          "wait_for": [],
          "blocked": [],
          "reachable": {
            "states": 2,
            "more": false,
            "rules": [
              "try again",
              "refuse again"
            ]
          }
        }
    "#]]
    .assert_eq(&explanation_text(
        &models::drain(models::Ending::Retried),
        &[],
    ));
}

/// A directory that does not answer readers, and the message that a reader then waits for.
#[test]
fn protocol_deadlock_report_shows_the_wait_for_chain() {
    let protocol = parse_valid(&shipped("msi"));
    let Home::Controller(home) = &protocol.home else {
        panic!("hand-written home");
    };
    // In M, requests stall.
    let mut silent_home = home.clone();
    for row in &mut silent_home.rules {
        let state = &home.states[row.state.index()].name;
        let Event::Message(message) = row.event else {
            continue;
        };
        if state == "M" && protocol.message(message).name.starts_with("Get") {
            row.effect = Effect::Stall;
        }
    }
    let options = SystemOptions::default();
    let system = system_model(&protocol, &silent_home, 2, 2, &options).unwrap();
    expect![[r#"
        every request can still complete: {
          "wait_for": [
            "cache 0 in IS_D waits for Data from the directory or another cache on channel response, line 0",
            "GetS from cache 0 waits in channel request for directory, which is in M owner=cache 1, line 0"
          ],
          "blocked": [],
          "reachable": {
            "states": 1,
            "more": false,
            "rules": []
          }
        }
    "#]].assert_eq(&explanation_text(&system.model, &system.remarks));
}

/// Reads a shipped Murphi model; the flag is true if its first lines declare a violation.
fn read_library_model(file: &std::path::Path) -> (Model, bool) {
    let text = std::fs::read_to_string(file).unwrap();
    let name = file.file_stem().unwrap().to_string_lossy();
    let read = cohkit_murphi::read(&name, &text, Default::default());
    let mut model = read
        .unwrap_or_else(|_| panic!("{name} cannot be read"))
        .model;
    let has_line = |line: &str| text.lines().any(|other| other == line);
    if has_line("-- deadlock: stuck") {
        model.deadlock = Deadlock::Stuck;
    } else if has_line("-- deadlock: off") {
        model.deadlock = Deadlock::Off;
    }
    (model, has_line("-- verdict: violated"))
}

/// Replays the counterexamples of all shipped Murphi models.
#[test]
fn library_counterexamples_replay() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models");
    let files = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    let mut replayed = 0;
    for file in files
        .iter()
        .filter(|file| file.extension().is_some_and(|extension| extension == "m"))
    {
        let (model, violated) = read_library_model(file);
        // For models without a violation, the first states suffice.
        let options = Options {
            max_states: Some(if violated { 200_000 } else { 2_000 }),
            ..Options::default()
        };
        let report = check_coverage_sum(&model, options);
        let Outcome::Violated { property, .. } = &report.outcome else {
            assert!(!violated, "{}: {:?}", model.name, report.outcome);
            continue;
        };
        assert!(violated, "{}", model.name);
        // No trace shows that a state is unreachable.
        if matches!(property, Property::Cover(_)) {
            continue;
        }
        let (property, recorded) = counterexample(&report);
        let (trace, ending) = replay_trace(&model, &recorded, Some(&property))
            .unwrap_or_else(|reason| panic!("{}: {reason}", model.name));
        assert_eq!(trace, recorded, "{}", model.name);
        match ending {
            FinalVerdict::Violated {
                property: replayed_property,
                ..
            } => assert_eq!(replayed_property, property),
            other => panic!("{}: {other:?}", model.name),
        }
        replayed += 1;
    }
    assert!(
        replayed >= 10,
        "only {replayed} counterexamples are replayed"
    );
}
