//! Verdicts, counts and counterexamples of known models, for any number of threads.

use cohkit_testing::models;

use cohkit_base::sequence::{Action, Sequence};
use cohkit_engine::model::{Deadlock, Expr, Model, Note, Piece, Rule, Stmt, TraceRenderer};
use cohkit_engine::report::{Outcome, Property, Report, Status};
use cohkit_engine::search::{Engine, Reason};
use cohkit_engine::trace::replay;
use cohkit_engine::trace_events::{NoteEvent, TraceEvents};
use cohkit_engine::{check, Options};
use cohkit_murphi::{read, Dialect};
use models::Ending;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// Options without decomposition into independent parts.
fn flat() -> Options<'static> {
    Options {
        decompose: false,
        ..Options::default()
    }
}

/// Report on a model that is valid and needs no checkpoint.
fn run(model: &Model, options: &Options) -> Report {
    check(model, options).unwrap()
}

/// Regression: a cell of an offset is reused for other numbers, which machine code must not treat as offsets.
#[test]
fn undefined_element_is_copied_to_itself() {
    let text = "
type t1: -1 .. 0; t3: array [t1] of boolean;
var v0: t3; v1: t1;
startstate v1 := 0; end;
rule \"x\"
  v0[v1] := v0[v1];
  v1 := (v1 + 2) % 2 + (-1);
end;
";
    let mut model = read("copied", text, Dialect::Any)
        .expect("the model is valid")
        .model;
    model.deadlock = Deadlock::Off;
    for engine in [Engine::Interpreter, Engine::Native] {
        let options = Options { engine, ..flat() };
        assert_eq!(
            summary(&run(&model, &options)),
            "verified; 2 2 1",
            "{engine:?}"
        );
    }
}

/// `verified`, or property and length of the trace; then the numbers of states and transitions, and the depth.
fn summary(report: &Report) -> String {
    let verdict = match &report.outcome {
        Outcome::Verified => "verified".to_string(),
        Outcome::Violated {
            property, trace, ..
        } => format!("{property} after {}", trace.steps.len()),
        Outcome::Undecided { reason } => format!("{reason:?}"),
        Outcome::Exceeded { limit, .. } => limit.clone(),
    };
    format!(
        "{verdict}; {} {} {}",
        report.states, report.transitions, report.depth
    )
}

/// Numbers of states and transitions, and depths, that must not change.
#[test]
fn known_models_have_their_verdicts_and_counts() {
    let pinned = [
        (models::peterson(2), "verified; 20 34 6"),
        (models::peterson(3), "verified; 288 651 14"),
        (models::peterson(4), "verified; 4752 13080 24"),
        (models::dining(3), "no deadlock after 3; 14 24 3"),
        (models::overflow(), "values in range after 3; 4 5 2"),
        (models::drain(Ending::Answered), "verified; 8 16 4"),
        (
            models::drain(Ending::Stuck),
            "every request can still complete after 2; 12 24 5",
        ),
        (
            models::drain(Ending::Retried),
            "every request can still complete after 2; 16 36 6",
        ),
        (models::every_construct(), "verified; 65705 455395 20"),
        (models::copies(1, false), "verified; 20 30 9"),
    ];
    let summaries: Vec<_> = pinned
        .iter()
        .map(|(m, _)| format!("{}: {}", m.name, summary(&run(m, &flat()))))
        .collect();
    let expected: Vec<_> = pinned
        .iter()
        .map(|(m, w)| format!("{}: {w}", m.name))
        .collect();
    assert_eq!(summaries, expected);
}

/// In both models a refused request never completes; in the second one it is retried forever.
#[test]
fn dead_end_and_livelock_are_distinguished() {
    for (ending, word) in [(Ending::Stuck, "dead end"), (Ending::Retried, "livelock")] {
        let report = run(&models::drain(ending), &flat());
        let Outcome::Violated {
            property: Property::Drain,
            message,
            trace,
        } = report.outcome
        else {
            panic!("{:?}", report.outcome)
        };
        assert!(message.starts_with(word), "{message}");
        let rules: Vec<_> = trace.steps.iter().map(|s| s.rule.as_str()).collect();
        assert_eq!(rules, ["ask", "refuse"]);
        // All other properties hold.
        let status = |p: Property| {
            report
                .properties
                .iter()
                .find(|r| r.property == p)
                .map(|r| r.status)
        };
        assert_eq!(status(Property::WellDefined), Some(Status::Holds));
        assert_eq!(status(Property::Drain), Some(Status::Violated));
    }
}

/// The rendered trace, its JSON, and the errors of paths that the model does not have.
#[test]
fn trace_lists_changes_and_replays() {
    let model = models::overflow();
    let Outcome::Violated { trace, message, .. } = run(&model, &flat()).outcome else {
        panic!()
    };
    assert_eq!(message, "the value 4 is stored in `n`, which holds 0..3");
    let text = "\
start: from 1
     n = 1
  1. up
     n: 1 -> 2
  2. up
     n: 2 -> 3
  3. up
     here the value 4 is stored in `n`, which holds 0..3
";
    assert_eq!(trace.to_string(), text);
    let rules: Vec<u32> = trace.steps.iter().map(|s| s.rule_index).collect();
    assert_eq!(
        replay(&model, trace.start_index, &rules).as_ref(),
        Ok(&*trace)
    );
    assert_eq!(
        replay(&model, 0, &[1]),
        Err("step 1: `down` is not enabled there".into())
    );
    assert_eq!(
        replay(&model, 0, &[7]),
        Err("step 1: there is no rule 7; the model has 2, counted from 0".into())
    );
    assert_eq!(
        replay(&model, 5, &[]),
        Err("there is no start state 5; the model has 2, counted from 0".into())
    );
    let json = serde_json::to_value(&trace).unwrap();
    assert_eq!(
        json["steps"][1]["changes"][0],
        serde_json::json!({"variable": "n", "from": "2", "to": "3"})
    );
}

/// Models that are correct, violated, deadlocked or limited.
#[test]
fn any_engine_and_number_of_threads_give_the_same_report() {
    let mut broken = models::peterson(4);
    // Several processes may enter: an invariant fails deep inside the graph.
    broken.rules[2].guard = Expr::Bool(true);
    let mut deadlocked = models::peterson(4);
    deadlocked.rules.pop();
    deadlocked.quiescent = None;
    let cases = [
        models::peterson(4),
        models::peterson(5),
        broken,
        deadlocked,
        models::dining(8),
        models::overflow(),
        models::every_construct(),
        models::copies(3, true),
    ];
    let limited = Options {
        max_states: Some(3000),
        ..flat()
    };
    for model in &cases {
        for options in [flat(), limited] {
            let engine = Engine::Interpreter;
            let expected = run(model, &Options { engine, ..options });
            for engine in [Engine::Interpreter, Engine::Native, Engine::Adaptive] {
                for threads in [1, 2, 4] {
                    let options = Options {
                        threads,
                        engine,
                        ..options
                    };
                    let context = format!("{}: {engine:?}, {threads} threads", model.name);
                    assert_eq!(run(model, &options), expected, "{context}");
                }
            }
        }
    }
}

/// Machine code adds to the time that the preparation of the model takes.
#[test]
fn compilation_time_is_reported_separately() {
    let model = models::peterson(4);
    let compiling = |engine| {
        let compile_ns = AtomicU64::new(0);
        let options = Options {
            engine,
            compiling: Some(&compile_ns),
            ..flat()
        };
        assert_eq!(run(&model, &options), run(&model, &flat()));
        compile_ns.into_inner()
    };
    let interpreted = compiling(Engine::Interpreter);
    assert!(interpreted > 0 && compiling(Engine::Native) > interpreted);
}

/// Each limit of the search in turn; 88,560 states are all that the model has.
#[test]
fn limits_end_undecided_with_coverage_counts() {
    let model = models::peterson(5);
    let undecided = |options: Options| summary(&run(&model, &options));
    assert_eq!(
        undecided(Options {
            max_states: Some(1000),
            ..flat()
        }),
        "MaxStates; 1000 2557 8"
    );
    assert_eq!(
        undecided(Options {
            max_depth: Some(7),
            ..flat()
        }),
        "MaxDepth; 902 2365 7"
    );
    assert_eq!(
        run(
            &model,
            &Options {
                max_states: Some(88560),
                ..flat()
            }
        )
        .outcome,
        Outcome::Verified
    );
    let small = run(
        &model,
        &Options {
            max_memory: Some(100_000),
            ..flat()
        },
    );
    assert_eq!(
        small.outcome,
        Outcome::Undecided {
            reason: Reason::MaxMemory
        }
    );
    assert!(
        small.states > 1000 && small.states < 88560,
        "{}",
        small.states
    );
    let cancel = AtomicBool::new(true);
    let stopped = run(
        &model,
        &Options {
            cancel: Some(&cancel),
            ..flat()
        },
    );
    assert_eq!(
        stopped.outcome,
        Outcome::Undecided {
            reason: Reason::Interrupted
        }
    );
    assert!(stopped
        .properties
        .iter()
        .all(|p| p.status == Status::Undecided));
}

/// Copies of a small message ring, which with a final state can stop permanently; all stopped rings are a deadlock.
#[test]
fn independent_parts_give_the_counts_of_the_whole() {
    for (parts, final_state) in [(2, false), (3, false), (2, true), (3, true)] {
        let mut model = models::copies(parts, final_state);
        let deadlock = run(&model, &Options::default());
        assert_eq!(
            summary(&deadlock).split(';').next(),
            summary(&run(&model, &flat())).split(';').next()
        );
        if let Outcome::Violated { trace, .. } = &deadlock.outcome {
            let rules: Vec<u32> = trace.steps.iter().map(|s| s.rule_index).collect();
            assert_eq!(
                replay(&model, trace.start_index, &rules).as_ref(),
                Ok(&**trace)
            );
        }
        assert_eq!(deadlock.outcome == Outcome::Verified, !final_state);
        // A deadlock ends the search of the whole model early, so counts are compared with deadlock checks off.
        model.deadlock = Deadlock::Off;
        let (whole, decomposed) = (run(&model, &flat()), run(&model, &Options::default()));
        assert_eq!((whole.components.len(), whole.different), (1, 1));
        assert_eq!(
            (decomposed.components.len(), decomposed.different),
            (parts as usize, 1),
            "constants join nothing and copies are equal"
        );
        assert_eq!(
            summary(&decomposed),
            summary(&whole),
            "{parts} {final_state}"
        );
    }
}

/// A renderer that records all events as steps of its only agent.
#[derive(Debug)]
struct RecordingRenderer;

/// Events of one trace so far.
struct RecordedEvents(Sequence);

impl TraceRenderer for RecordingRenderer {
    fn begin<'a>(&self, model: &'a Model, state: &[i64]) -> Option<Box<dyn TraceEvents + 'a>> {
        let mut events = RecordedEvents(Sequence {
            agents: model.agents.clone(),
            steps: Vec::new(),
        });
        events.record(format!("begin in {state:?}"));
        Some(Box::new(events))
    }
}

impl RecordedEvents {
    fn record(&mut self, what: String) {
        self.0.steps.push(cohkit_base::sequence::Step {
            agent: 0,
            action: Action::Does { what },
            line: None,
            visible: true,
        });
    }
}

impl TraceEvents for RecordedEvents {
    fn add_event(&mut self, event: NoteEvent) {
        self.record(format!("{} {:?} {}", event.kind, event.values, event.text));
    }
    fn step(&mut self, rule: &str, before: &[i64], after: &[i64]) {
        self.record(format!("{rule}: {before:?} {after:?}"));
    }
    fn end(self: Box<Self>) -> Sequence {
        self.0
    }
}

/// The engine fills values into notes, passes them in their order, and shows the states to the renderer.
#[test]
fn trace_renderer_receives_notes_and_states() {
    use cohkit_engine::build::Builder;
    let mut m = Builder::new("count");
    let small = m.range("small", 0, 3);
    let n = m.state("n", small);
    m.agent("counter");
    let event_note = |kind, phrase: Vec<Piece>| {
        Stmt::Note(Note::Event {
            kind,
            values: vec![n + 10, n.is(0)],
            phrase,
        })
    };
    let text = |t: &str| vec![Piece::Text(t.into())];
    m.start("start", vec![n.set(1), event_note(7, text("start"))]);
    let counts = vec![
        Piece::Agent(0.into()),
        Piece::Choice(n.is(1), text(" first "), text(" then ")),
        Piece::Value(n.into()),
    ];
    let body = [
        Stmt::Note(Note::Mark {
            group: 0,
            member: n.into(),
        }),
        event_note(3, counts),
        n.set(n + 1),
    ];
    m.rule(Rule::new("on").does(body));
    m.invariant("below", n.lt(3));
    m.trace_renderer(&RecordingRenderer);
    let model = m.build().unwrap();
    let Outcome::Violated { trace, .. } = run(&model, &flat()).outcome else {
        panic!()
    };
    let steps = trace.sequence.steps.iter();
    let recorded: Vec<_> = steps.map(|step| format!("{:?}", step.action)).collect();
    let expected = [
        "begin in [1]",
        "7 [11, 0] start",
        "on: [1] [2]",
        "3 [11, 0] counter first 1",
        "on: [2] [3]",
        "3 [12, 0] counter then 2",
    ];
    let expected = expected.map(|what| format!("Does {{ what: {what:?} }}"));
    assert_eq!(recorded, expected);
}

/// Code that is compiled beside the search changes no result, whenever it is ready. The sum makes the last level the
/// only one with a violation.
#[test]
fn code_compiled_beside_the_search_gives_the_same_report() {
    let text = |limit: u32| {
        format!(
            "var a, b: 0..199;
            startstate begin a := 0; b := 0; end;
            rule \"a\" a < 199 ==> begin a := a + 1; end;
            rule \"b\" b < 199 ==> begin b := b + 1; end;
            invariant \"sum\" a + b <= {limit};"
        )
    };
    for limit in [398, 397] {
        let mut model = read("sum", &text(limit), Dialect::Any).unwrap().model;
        model.deadlock = Deadlock::Off;
        let reports = [
            (Engine::Interpreter, 1),
            (Engine::Adaptive, 1),
            (Engine::Adaptive, 3),
        ];
        let [expected, serial, parallel] = reports.map(|(engine, threads)| {
            let options = Options {
                engine,
                threads,
                ..flat()
            };
            run(&model, &options)
        });
        assert_eq!(expected, serial, "{limit}");
        assert_eq!(expected, parallel, "{limit}");
        assert_eq!(matches!(expected.outcome, Outcome::Verified), limit == 398);
    }
}
