//! Tests with signatures short enough for collisions: omissions by hash compaction, and wrong assumptions about states
//! on disk.

use crate::build::Builder;
use crate::model::{Deadlock, Model, Rule};
use crate::replay::{replay_trace, FinalVerdict};
use crate::search::{omission_bound, CheckpointSink, Engine, ReadAt};
use crate::threads::hash_width;
use crate::{check, Options, Outcome, Report};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Mutex;

/// Report of a search with hash compaction, checked to be equal for all engines and numbers of threads.
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

/// A chain of states, all with the same salt.
fn chain(states: i32, salt: i32, salts: i32) -> Model {
    let mut m = Builder::new("chain");
    let (place, salted) = (m.range("place", 0, states - 1), m.range("salts", 0, salts));
    let (n, salted) = (m.state("n", place), m.state("salt", salted));
    m.start("start", vec![salted.set(salt)]);
    m.rule(Rule::new("on").when(n.lt(states - 1)).does([n.set(n + 1)]));
    m.deadlock(Deadlock::Off);
    m.build().expect("a valid model")
}

/// Three nodes with two counters each, the second at most the first.
/// The invariant claims that the sum of some node's counters is below 8, and is violated.
fn nodes(salt: i32) -> Model {
    let mut m = Builder::new("nodes");
    let (node, seven) = (m.scalarset("node", 3), m.range("seven", 0, 7));
    let array = m.array("array", node, seven);
    let salts = m.range("salts", 0, 255);
    let (v, w) = (m.state("v", array), m.state("w", array));
    let salted = m.state("salt", salts);
    let n = m.bound("n", node);
    let clear = n.each(vec![v.at(n).set(0), w.at(n).set(0)]);
    m.start("start", vec![clear, salted.set(salt)]);
    let first = Rule::new("v").over(n).when(v.at(n).lt(7));
    m.rule(first.does([v.at(n).set(v.at(n) + 1)]));
    let second = Rule::new("w").over(n).when(w.at(n).lt(v.at(n)));
    m.rule(second.does([w.at(n).set(w.at(n) + 1)]));
    let both_full = v.at(n).is(7).and(w.at(n).is(7));
    let reset = Rule::new("again").over(n).when(both_full);
    m.rule(reset.does([v.at(n).set(0), w.at(n).set(0)]));
    m.invariant("not all", n.any((v.at(n) + w.at(n)).lt(8)));
    m.quiescent(n.any(v.at(n).is(0)));
    m.build().expect("a valid model")
}

/// With signatures of 20 bits, the frequency of omissions in 600 runs lies within three standard deviations of the
/// bound.
#[test]
fn omission_rate_matches_the_bound() {
    const STATES: u64 = 300;
    const RUNS: i32 = 600;
    hash_width::reduce(20);
    // In a chain, the states after the first omitted one are unreachable. The salt enters every hash.
    let check_chain = |salt| {
        let options = Options {
            engine: Engine::Interpreter,
            hash_compaction: true,
            ..Options::default()
        };
        check(&chain(STATES as i32, salt, RUNS), &options).unwrap()
    };
    let runs: Vec<Report> = (0..RUNS).map(check_chain).collect();
    assert!(runs
        .iter()
        .all(|run| run.omission_probability == Some(omission_bound(run.states as u64))));
    let full_bound = omission_bound(STATES);
    assert!((0.04..0.05).contains(&full_bound));
    // A search that omitted a state, and whose bound is at most `bound`, occurs with at most that probability.
    for bound in [
        full_bound / 8.0,
        full_bound / 4.0,
        full_bound / 2.0,
        full_bound,
    ] {
        let has_omission = |run: &&Report| {
            run.states < STATES as u128 && run.omission_probability.is_some_and(|p| p <= bound)
        };
        let omission_count = runs.iter().filter(has_omission).count() as f64;
        let expected = bound * f64::from(RUNS);
        let deviation = expected.sqrt();
        assert!(
            omission_count <= expected + 3.0 * deviation,
            "{omission_count} {expected}"
        );
        assert!(
            omission_count >= expected - 3.0 * deviation,
            "{omission_count} {expected}"
        );
        assert!(bound < full_bound || omission_count > 10.0);
    }
}

/// Signatures of 14 bits, so that most runs omit states.
#[test]
fn omissions_are_thread_independent_and_traces_replay() {
    hash_width::reduce(14);
    let (mut reduced_count, mut violated_count) = (0, 0);
    for salt in 0..20 {
        let model = nodes(salt);
        let full_report = check(&model, &Options::default()).unwrap();
        let report = compacted(&model);
        assert!(report.symmetric && report.states <= full_report.states);
        reduced_count += u32::from(report.states < full_report.states);
        if let Outcome::Violated {
            property, trace, ..
        } = &report.outcome
        {
            violated_count += 1;
            let (replayed, ending) = replay_trace(&model, trace, Some(property)).unwrap();
            assert_eq!(replayed.steps, trace.steps);
            assert!(matches!(ending, FinalVerdict::Violated { property: p, .. } if p == *property));
        }
    }
    assert!(
        reduced_count > 10 && violated_count > 10,
        "{reduced_count} {violated_count}"
    );
}

/// Checkpoints in memory, which count how often the first one is loaded.
#[derive(Default)]
struct MemorySink {
    files: Mutex<BTreeMap<u64, Vec<u8>>>,
    loads: AtomicU64,
}

struct Contents(Vec<u8>);

impl ReadAt for Contents {
    fn read_at(&self, position: u64, bytes: &mut [u8]) -> io::Result<()> {
        bytes.copy_from_slice(&self.0[position as usize..][..bytes.len()]);
        Ok(())
    }
}

impl CheckpointSink for MemorySink {
    fn is_due(&self) -> bool {
        false
    }

    fn store(&self, _: usize, number: u64, parts: &[&[u8]]) -> io::Result<()> {
        let previous = (self.files.lock().unwrap()).insert(number, parts.concat());
        assert_eq!(previous, None, "each checkpoint is stored once");
        Ok(())
    }

    fn load(&self, _: usize, number: u64) -> io::Result<Option<(Box<dyn Read>, u64)>> {
        self.loads
            .fetch_add((number == 0) as u64, Ordering::Relaxed);
        let files = self.files.lock().unwrap();
        Ok(files.get(&number).map(|bytes| {
            let reader: Box<dyn Read> = Box::new(io::Cursor::new(bytes.clone()));
            (reader, bytes.len() as u64)
        }))
    }

    fn open(&self, _: usize, number: u64) -> io::Result<Box<dyn ReadAt>> {
        Ok(Box::new(Contents(
            self.files.lock().unwrap()[&number].clone(),
        )))
    }
}

/// With shortened hashes and signatures of two bits, many successors count as a wrong state on disk at first. The report
/// is that of a search in memory all the same.
#[test]
fn wrong_assumptions_about_states_on_disk_are_corrected() {
    let mut returns = 0;
    for (bits, salt, threads) in [(12, 0, 1), (16, 1, 2), (16, 2, 3)] {
        hash_width::reduce(bits);
        let mut model = nodes(salt);
        let violated = model.clone();
        model.invariants.clear();
        // Quiescence is checked after the search.
        for (model, engine) in [
            (&violated, Engine::Interpreter),
            (&model, Engine::Interpreter),
            (&model, Engine::Native),
        ] {
            let expected = check(model, &Options::default()).unwrap();
            let sink = MemorySink::default();
            let options = Options {
                threads,
                engine,
                checkpoint_sink: Some(&sink),
                max_resident: Some(400),
                ..Options::default()
            };
            let memory = expected.memory;
            let report = check(model, &options).unwrap();
            assert_eq!(Report { memory, ..report }, expected);
            // The search loads the first checkpoint at its beginning, and whenever it returns to a checkpoint.
            returns += sink.loads.into_inner() - 1;
        }
    }
    assert!(returns > 10, "{returns}");
}
