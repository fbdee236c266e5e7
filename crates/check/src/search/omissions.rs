//! What hash compaction leaves out, with signatures that are so short that it does.

use crate::model::{Deadlock, Model};
use crate::murphi::{read, Dialect};
use crate::replay::{again, Ending};
use crate::search::{omission_bound, Engine};
use crate::store::shorten;
use crate::{check, Options, Outcome, Report};

/// What is found with hash compaction, by any engine and on any number of threads.
fn compacted(model: &Model) -> Report {
    let run = |threads, engine| {
        let options = Options {
            threads,
            engine,
            hash_compaction: true,
            ..Options::default()
        };
        check(model, &options).unwrap()
    };
    let report = run(1, Engine::Interpreter);
    for (threads, engine) in [
        (1, Engine::Native),
        (2, Engine::Interpreter),
        (3, Engine::Native),
    ] {
        assert_eq!(run(threads, engine), report, "{threads} {engine:?}");
    }
    report
}

fn model(text: &str) -> Model {
    read("model", text, Dialect::Any).unwrap().model
}

#[test]
fn omissions_happen_as_often_as_the_bound_says() {
    const STATES: u64 = 300;
    const RUNS: u64 = 600;
    shorten(20);
    // A row of states: all that comes behind the first that is left out is not reached. The salt is in every hash.
    let row = |salt: u64| {
        let options = Options {
            engine: Engine::Interpreter,
            hash_compaction: true,
            ..Options::default()
        };
        let text = format!(
            "var n: 0..{last}; salt: 0..{RUNS};
             startstate n := 0; salt := {salt} end;
             rule n < {last} ==> n := n + 1 end;",
            last = STATES - 1
        );
        let mut row = model(&text);
        row.deadlock = Deadlock::Off;
        check(&row, &options).unwrap()
    };
    let runs: Vec<Report> = (0..RUNS).map(row).collect();
    assert!(runs
        .iter()
        .all(|run| run.omission_probability == Some(omission_bound(run.states as u64))));
    let whole = omission_bound(STATES);
    assert!((0.04..0.05).contains(&whole));
    // A bound of so much or less is printed for a search that has left something out with that probability at the most.
    for bound in [whole / 8.0, whole / 4.0, whole / 2.0, whole] {
        let left_out = |run: &&Report| {
            run.states < STATES as u128 && run.omission_probability.is_some_and(|p| p <= bound)
        };
        let often = runs.iter().filter(left_out).count() as f64;
        let expected = bound * RUNS as f64;
        let deviation = expected.sqrt();
        assert!(often <= expected + 3.0 * deviation, "{often} {expected}");
        assert!(often >= expected - 3.0 * deviation, "{often} {expected}");
        assert!(bound < whole || often > 10.0);
    }
}

#[test]
fn what_is_left_out_does_not_depend_on_threads_and_ways_can_be_gone() {
    shorten(14);
    let (mut fewer, mut violated) = (0, 0);
    for salt in 0..20 {
        let model = model(&format!(
            "type node: scalarset(3);
             var v: array[node] of 0..7; w: array[node] of 0..7; salt: 0..255;
             startstate for n: node do v[n] := 0; w[n] := 0; end; salt := {salt} end;
             ruleset n: node do
               rule v[n] < 7 ==> v[n] := v[n] + 1 end;
               rule w[n] < v[n] ==> w[n] := w[n] + 1 end;
               rule v[n] = 7 & w[n] = 7 ==> v[n] := 0; w[n] := 0 end;
             end;
             invariant \"not all\" exists n: node do v[n] + w[n] < 8 end;"
        ));
        let whole = check(&model, &Options::default()).unwrap();
        let report = compacted(&model);
        assert!(report.symmetric && report.states <= whole.states);
        fewer += u32::from(report.states < whole.states);
        if let Outcome::Violated {
            property, trace, ..
        } = &report.outcome
        {
            violated += 1;
            let (again, ending) = again(&model, trace, Some(property)).unwrap();
            assert_eq!(again.steps, trace.steps);
            assert!(matches!(ending, Ending::Violated { property: p, .. } if p == *property));
        }
    }
    assert!(fewer > 10 && violated > 10, "{fewer} {violated}");
}
