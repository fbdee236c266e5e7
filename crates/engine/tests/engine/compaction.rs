//! Comparison of searches with hash compaction and searches that store complete states.

use cohkit_engine::build::Builder;
use cohkit_engine::model::{Deadlock, Model, Rule};
use cohkit_engine::report::Status;
use cohkit_engine::search::{omission_bound, Engine, Reason};
use cohkit_engine::{check, Options, Outcome, Property, Report};
use cohkit_murphi::{read, Dialect};

use cohkit_testing::models;

/// Report with hash compaction, checked to be equal for both engines and any number of threads.
fn check_compacted(model: &Model, options: &Options) -> Report {
    let run = |threads, engine| {
        let options = Options {
            threads,
            engine,
            hash_compaction: true,
            ..*options
        };
        check(model, &options).unwrap()
    };
    let report = run(1, Engine::Interpreter);
    for threads in [1, 2, 3] {
        assert_eq!(run(threads, Engine::Native), report, "{}", model.name);
    }
    report
}

/// The report without the fields that depend on hash compaction.
fn without_compaction_fields(report: &Report) -> Report {
    Report {
        omission_probability: None,
        memory: 0,
        ..report.clone()
    }
}

/// Without an omission, only memory and the bound of the omission probability differ.
#[test]
fn signatures_and_full_states_agree() {
    let mut broken = models::peterson(4);
    broken.rules.pop();
    let mut dining = models::dining(6);
    dining.deadlock = Deadlock::Stuttering;
    for mut model in [models::peterson(5), broken, dining] {
        model.quiescent = None;
        let full_report = check(&model, &Options::default()).unwrap();
        let report = check_compacted(&model, &Options::default());
        assert_eq!(
            without_compaction_fields(&report),
            without_compaction_fields(&full_report),
            "{}",
            model.name
        );
        let bound = omission_bound(report.components[0]);
        assert_eq!(report.omission_probability, Some(bound));
        assert!(bound < 1e-9);
    }
}

/// Twenty numbers that count in step.
fn large() -> Model {
    let mut m = Builder::new("large");
    let (index, numbers) = (m.range("index", 0, 19), m.range("numbers", 0, 4095));
    let all = m.array("all", index, numbers);
    let (all, i) = (m.state("all", all), m.bound("i", index));
    m.start("zero", vec![]);
    let next = i.each(vec![all.at(i).set(all.at(i) + 1)]);
    m.rule(Rule::new("next").when(all.at(0).lt(4095)).does([next]));
    m.deadlock(Deadlock::Off);
    m.build().unwrap()
}

#[test]
fn large_states_take_less_memory() {
    let full_report = check(&large(), &Options::default()).unwrap();
    let report = check_compacted(&large(), &Options::default());
    assert_eq!(
        without_compaction_fields(&report),
        without_compaction_fields(&full_report)
    );
    assert_eq!(report.states, 4096);
    // A state of thirty bytes is replaced by a signature of eight.
    assert!(
        report.memory + 22 * 4096 <= full_report.memory,
        "{report:?}"
    );
}

/// Bytes per state, as stated in `docs/murphi.md`.
#[test]
fn documented_memory_per_state_is_measured() {
    for (name, full_bytes, compacted_bytes) in [("dma_copy", 339.0, 26.0), ("flash_4", 21.0, 19.0)]
    {
        let path = format!("../../models/{name}.m");
        let text = std::fs::read_to_string(path).unwrap();
        let model = read(name, &text, Dialect::Any).unwrap().model;
        for (hash_compaction, expected) in [(false, full_bytes), (true, compacted_bytes)] {
            let options = Options {
                hash_compaction,
                ..Options::default()
            };
            let report = check(&model, &options).unwrap();
            let bytes = report.memory as f64 / report.states as f64;
            assert_eq!(bytes.round(), expected, "{name}");
        }
    }
}

/// Drain needs all states again after the search, when only signatures are left.
#[test]
fn hash_compaction_leaves_drain_undecided() {
    let model = models::drain(models::Ending::Answered);
    let report = check_compacted(&model, &Options::default());
    let reason = Reason::HashCompaction;
    assert_eq!(report.outcome, Outcome::Undecided { reason });
    assert!(report.complete);
    for result in &report.properties {
        let is_judged = result.property != Property::Drain;
        let expected = if is_judged {
            Status::Holds
        } else {
            Status::Undecided
        };
        assert_eq!(result.status, expected, "{}", result.property);
    }
    let limited = Options {
        max_states: Some(3),
        ..Options::default()
    };
    let reason = Reason::MaxStates;
    let report = check_compacted(&model, &limited);
    assert_eq!(report.outcome, Outcome::Undecided { reason });
}
