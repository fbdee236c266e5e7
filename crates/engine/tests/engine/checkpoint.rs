//! Tests that a resumed search gives the report of an uninterrupted one.

use cohkit_testing::models;

use cohkit_engine::model::Model;
use cohkit_engine::search::{
    CheckpointError, CheckpointErrorKind, CheckpointSink, Engine, ReadAt, Reason,
};
use cohkit_engine::{check, CheckError, Options, Outcome, Report};
use cohkit_murphi as murphi;
use models::Ending;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Mutex;

/// Checkpoints by component and number.
type Files = BTreeMap<(usize, u64), Vec<u8>>;

/// Checkpoint sink in memory. A checkpoint is due at every `interval`-th call of `is_due`; the search may be
/// interrupted at one of these calls.
#[derive(Default)]
struct MemorySink {
    /// Checkpoints stored so far.
    files: Mutex<Files>,
    /// Number of calls of `is_due` from one checkpoint to the next.
    interval: u64,
    /// Call of `is_due` at which the search is interrupted; 0 for never.
    interrupt_call: u64,
    /// Number of calls of `is_due` so far.
    calls: AtomicU64,
    /// Flag that cancels the search.
    interrupt: AtomicBool,
    /// True if no checkpoint can be stored.
    is_full: bool,
    /// True if no checkpoint can be opened.
    is_unreadable: bool,
    /// True if opened checkpoints have lost their second half.
    is_cut: bool,
    /// Number of stored checkpoints from which on none can be opened; 0 for no such number.
    kept_files: usize,
}

impl CheckpointSink for MemorySink {
    fn is_due(&self) -> bool {
        let calls = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        if calls == self.interrupt_call {
            self.interrupt.store(true, Ordering::Relaxed);
        }
        calls.is_multiple_of(self.interval)
    }

    fn store(&self, component: usize, number: u64, parts: &[&[u8]]) -> io::Result<()> {
        if self.is_full {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let previous = (self.files.lock().unwrap()).insert((component, number), parts.concat());
        assert_eq!(previous, None, "each checkpoint is stored once");
        Ok(())
    }

    fn load(&self, component: usize, number: u64) -> io::Result<Option<(Box<dyn Read>, u64)>> {
        let files = self.files.lock().unwrap();
        Ok(files.get(&(component, number)).map(|bytes| {
            let length = bytes.len() as u64;
            (
                Box::new(io::Cursor::new(bytes.clone())) as Box<dyn Read>,
                length,
            )
        }))
    }

    fn open(&self, component: usize, number: u64) -> io::Result<Box<dyn ReadAt>> {
        let count = self.files.lock().unwrap().len();
        if self.is_unreadable || self.kept_files > 0 && count > self.kept_files {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        match self.files.lock().unwrap().get(&(component, number)) {
            Some(bytes) if self.is_cut => Ok(Box::new(Contents(prefix(bytes, bytes.len() / 2)))),
            Some(bytes) => Ok(Box::new(Contents(bytes.clone()))),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

/// Contents of a checkpoint in memory.
struct Contents(Vec<u8>);

impl ReadAt for Contents {
    fn read_at(&self, position: u64, bytes: &mut [u8]) -> io::Result<()> {
        let stored = self.0.get(position as usize..).unwrap_or_default();
        match stored.get(..bytes.len()) {
            Some(stored) => bytes.copy_from_slice(stored),
            None => return Err(io::ErrorKind::UnexpectedEof.into()),
        }
        Ok(())
    }
}

/// Sink with checkpoints of an earlier run.
fn memory_sink(files: Files, interval: u64, interrupt_call: u64) -> MemorySink {
    MemorySink {
        files: Mutex::new(files),
        interval,
        interrupt_call,
        ..MemorySink::default()
    }
}

/// Model of the library, given by its file name without extension.
fn library_model(name: &str) -> Model {
    let path = format!("{}/../../models/{name}.m", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    murphi::read(name, &text, murphi::Dialect::Any)
        .unwrap()
        .model
}

/// Returns true if the search was cancelled.
fn is_interrupted(report: &Report) -> bool {
    let reason = Reason::Interrupted;
    report.outcome == Outcome::Undecided { reason }
}

/// Repeats an interrupted search until it completes, with `stretches` stretches per run and a different number of
/// threads each time. Returns the report and the number of interruptions.
fn check_in_pieces(model: &Model, options: &Options, stretches: u64) -> (Report, u64) {
    let mut files = Files::new();
    for interruptions in 0.. {
        let sink = memory_sink(files, 2, stretches);
        let report = check(
            model,
            &Options {
                threads: [1, 4, 2][interruptions as usize % 3],
                engine: [Engine::Native, Engine::Interpreter][interruptions as usize % 2],
                checkpoint_sink: Some(&sink),
                cancel: Some(&sink.interrupt),
                ..*options
            },
        )
        .unwrap();
        if !is_interrupted(&report) {
            return (report, interruptions);
        }
        files = sink.files.into_inner().unwrap();
    }
    unreachable!()
}

/// A search that starts again without symmetry has checkpoints of both attempts.
#[test]
fn resumed_search_gives_up_the_same_symmetry() {
    let text = "type node: scalarset(3);
        var free: array [node] of boolean; taken, last: node; count: 0..400;
        function first_free(): node;
        begin for n: node do if free[n] then return n; end; end; return taken; end;
        startstate begin for n: node do free[n] := true; end; count := 0; end;
        rule \"count\" count < 400 ==> begin count := count + 1; end;
        rule \"take\" count > 200 & isundefined(taken) ==> begin taken := first_free(); free[taken] := false; end;
        rule \"give\" !isundefined(taken) ==> begin free[taken] := true; last := taken; undefine taken; end;";
    let model = murphi::read("text", text, murphi::Dialect::Any)
        .unwrap()
        .model;
    let expected = check(&model, &Options::default()).unwrap();
    assert_eq!(expected.lost_symmetry.len(), 1);
    let (report, interruptions) = check_in_pieces(&model, &Options::default(), 3);
    assert!(interruptions > 2, "{interruptions}");
    assert_eq!(report, expected);
}

/// Cases are a model, its options, and the least number of interruptions if each run expands one stretch.
#[test]
fn resumed_search_gives_the_same_report() {
    let mut broken = models::peterson(5);
    broken.rules.pop();
    broken.quiescent = None;
    let flat = Options {
        decompose: false,
        ..Options::default()
    };
    let limited = |max_states| Options {
        max_states: Some(max_states),
        ..flat
    };
    let cases = [
        (models::peterson(5), flat, 20),
        (broken, flat, 1),
        (models::dining(8), flat, 1),
        (models::drain(Ending::Stuck), flat, 0),
        (models::peterson(5), limited(30_000), 10),
        (
            models::peterson(5),
            Options {
                max_depth: Some(15),
                ..flat
            },
            5,
        ),
        (
            models::peterson(5),
            Options {
                max_memory: Some(400_000),
                ..flat
            },
            5,
        ),
        // Several components, and models with symmetry.
        (models::copies(3, true), Options::default(), 0),
        (library_model("german"), Options::default(), 3),
        (library_model("network_multiset"), Options::default(), 0),
    ];
    for (model, options, min_interruptions) in cases {
        let uninterrupted = check(&model, &options).unwrap();
        // Stretches per piece, and bytes of states in memory.
        for (stretches, max_resident) in [(1, None), (2, None), (7, None), (7, Some(100_000))] {
            // With states on disk, a search goes further within the same memory.
            if max_resident.is_some() && options.max_memory.is_some() {
                continue;
            }
            let options = Options {
                max_resident,
                ..options
            };
            let (report, interruptions) = check_in_pieces(&model, &options, stretches);
            let memory = match max_resident {
                Some(_) => uninterrupted.memory,
                None => report.memory,
            };
            assert_eq!(
                Report { memory, ..report },
                uninterrupted,
                "{} in pieces of {stretches}, {max_resident:?}",
                model.name
            );
            assert!(
                stretches > 1 || interruptions >= min_interruptions,
                "{}: {interruptions}",
                model.name
            );
        }
    }
}

/// A checkpoint is written when the limit is reached, also in the middle of an expansion.
#[test]
fn limited_search_resumes_with_a_higher_limit() {
    let model = models::peterson(5);
    let uninterrupted = check(&model, &Options::default()).unwrap();
    for first_limit in [1, 2, 1000, 1001, 1002, 1003, 30_000, 88_560] {
        let sink = memory_sink(Files::new(), 3, 0);
        let options = |max_states| Options {
            max_states,
            threads: 2,
            checkpoint_sink: Some(&sink),
            ..Options::default()
        };
        let part = check(&model, &options(Some(first_limit))).unwrap();
        assert_eq!(part.states, u128::from(first_limit));
        // A tighter limit has no effect on a larger checkpoint.
        if first_limit == 30_000 {
            let tighter = check(&model, &options(Some(10))).unwrap();
            assert_eq!(
                (tighter.outcome, tighter.states),
                (part.outcome, part.states)
            );
        }
        assert_eq!(
            check(&model, &options(None)).unwrap(),
            uninterrupted,
            "after {first_limit}"
        );
    }
}

/// Regression: states with a field of more than 32 bits were rejected as damaged.
#[test]
fn checkpoints_restore_states_with_large_numbers() {
    let text = "type far: -4611686018427387904 .. 4611686018427387904; var a: array [0..3] of far;
        startstate begin for i: 0..3 do a[i] := 0; end; end;
        ruleset i: 0..3 do rule begin a[i] := a[i] = 0 ? 4611686018427387904 : -a[i]; end; end;";
    let model = murphi::read("far", text, murphi::Dialect::Any)
        .unwrap()
        .model;
    let sink = memory_sink(Files::new(), 3, 0);
    let options = |max_states| Options {
        max_states,
        decompose: false,
        checkpoint_sink: Some(&sink),
        ..Options::default()
    };
    assert_eq!(check(&model, &options(Some(40))).unwrap().states, 40);
    let complete = check(&model, &options(None)).unwrap();
    assert_eq!((complete.outcome, complete.states), (Outcome::Verified, 81));
}

/// All checkpoints of an uninterrupted search.
fn all_checkpoints(model: &Model) -> Files {
    let sink = memory_sink(Files::new(), 20, 0);
    let options = Options {
        checkpoint_sink: Some(&sink),
        ..Options::default()
    };
    check(model, &options).unwrap();
    sink.files.into_inner().unwrap()
}

/// The search was killed, so no checkpoint was written at its end.
#[test]
fn search_resumes_after_any_checkpoint() {
    let model = models::peterson(5);
    let uninterrupted = check(&model, &Options::default()).unwrap();
    let files = all_checkpoints(&model);
    assert!(files.len() > 5, "{}", files.len());
    for count in 0..=files.len() {
        // The search was killed after this checkpoint.
        let files = files.clone().into_iter().take(count).collect();
        let sink = memory_sink(files, 10_000, 0);
        let options = Options {
            checkpoint_sink: Some(&sink),
            ..Options::default()
        };
        assert_eq!(
            check(&model, &options).unwrap(),
            uninterrupted,
            "{count} checkpoints"
        );
    }
}

/// States are on disk during the search and during the checks after it; the report is that of a search in memory.
#[test]
fn states_on_disk_give_the_same_report() {
    let mut broken = models::peterson(5);
    broken.rules.pop();
    broken.quiescent = None;
    let names = ["german", "network_multiset", "peterson_2"];
    let models = names.map(library_model).into_iter().chain([
        models::peterson(5),
        models::dining(8),
        models::drain(Ending::Stuck),
        models::copies(3, true),
        broken,
    ]);
    for model in models {
        let in_memory = check(&model, &Options::default()).unwrap();
        for (threads, engine, max_resident) in [
            (1, Engine::Interpreter, 0),
            (1, Engine::Native, 3000),
            (2, Engine::Adaptive, 1000),
            (4, Engine::Native, 20_000),
        ] {
            let sink = memory_sink(Files::new(), 10_000, 0);
            let options = Options {
                threads,
                engine,
                checkpoint_sink: Some(&sink),
                max_resident: Some(max_resident),
                ..Options::default()
            };
            let report = check(&model, &options).unwrap();
            let memory = in_memory.memory;
            let report = Report { memory, ..report };
            assert_eq!(report, in_memory, "{} {threads} {engine:?}", model.name);
            let stored = sink.files.into_inner().unwrap();
            // Checkpoints of a large search are written because memory is full.
            if report.components.iter().any(|&states| states > 5000) {
                assert!(stored.len() > 4, "{}", model.name);
            }
        }
    }
}

/// The limit on memory stops a search with states on disk at the same state on any number of threads, and after
/// interruptions.
#[test]
fn memory_limit_with_states_on_disk_is_independent_of_threads() {
    let model = models::peterson(5);
    let options = Options {
        max_memory: Some(700_000),
        max_resident: Some(20_000),
        ..Options::default()
    };
    let run = |threads| {
        let sink = memory_sink(Files::new(), 10_000, 0);
        let options = Options {
            threads,
            checkpoint_sink: Some(&sink),
            ..options
        };
        check(&model, &options).unwrap()
    };
    let expected = run(1);
    let reason = Reason::MaxMemory;
    assert_eq!(expected.outcome, Outcome::Undecided { reason });
    let in_memory = Options {
        max_resident: None,
        ..options
    };
    assert!(expected.states > check(&model, &in_memory).unwrap().states);
    for threads in [2, 4] {
        assert_eq!(run(threads), expected, "{threads} threads");
    }
    let (report, interruptions) = check_in_pieces(&model, &options, 5);
    assert_eq!(report, expected);
    assert!(interruptions > 2, "{interruptions}");
}

/// A search continues on disk from the checkpoints of a search in memory, whose files are larger than the memory.
#[test]
fn search_in_memory_continues_on_disk() {
    let model = models::peterson(5);
    let uninterrupted = check(&model, &Options::default()).unwrap();
    let sink = memory_sink(Files::new(), 10_000, 0);
    let options = |max_states, max_resident| Options {
        max_states,
        max_resident,
        checkpoint_sink: Some(&sink),
        ..Options::default()
    };
    let part = check(&model, &options(Some(60_000), None)).unwrap();
    assert_eq!(part.states, 60_000);
    let report = check(&model, &options(None, Some(10_000))).unwrap();
    let memory = report.memory;
    assert_eq!(
        report,
        Report {
            memory,
            ..uninterrupted
        }
    );
}

/// A search with at most `max_resident` bytes of states in memory ends because it cannot read others.
fn assert_unreadable(sink: &MemorySink, max_resident: u64) {
    let options = Options {
        checkpoint_sink: Some(sink),
        max_resident: Some(max_resident),
        ..Options::default()
    };
    match check(&models::peterson(5), &options) {
        Err(CheckError::Checkpoint(error)) => {
            assert!(
                matches!(error.kind, CheckpointErrorKind::Unreadable(_)),
                "{error:?}"
            );
        }
        other => panic!("{other:?}"),
    }
}

/// The files disappear while the search reads states from them, or while it returns to them.
#[test]
fn lost_checkpoints_end_the_search() {
    for kept_files in 1..6 {
        let sink = MemorySink {
            interval: 10_000,
            kept_files,
            ..MemorySink::default()
        };
        assert_unreadable(&sink, 20_000);
    }
}

/// The search was killed after each of the checkpoints that it wrote to free memory.
#[test]
fn search_with_states_on_disk_resumes_after_any_checkpoint() {
    let model = models::peterson(5);
    let uninterrupted = check(&model, &Options::default()).unwrap();
    let run = |files| {
        let sink = memory_sink(files, 10_000, 0);
        let options = Options {
            threads: 2,
            checkpoint_sink: Some(&sink),
            max_resident: Some(30_000),
            ..Options::default()
        };
        let report = check(&model, &options).unwrap();
        assert_eq!(
            (report.outcome, report.states, report.transitions),
            (
                Outcome::Verified,
                uninterrupted.states,
                uninterrupted.transitions
            )
        );
        sink.files.into_inner().unwrap()
    };
    let files = run(Files::new());
    assert!(files.len() > 10, "{}", files.len());
    for count in 0..=files.len() {
        run(files.clone().into_iter().take(count).collect());
    }
}

/// A checkpoint cannot be opened, or has lost its end, when states are read from it.
#[test]
fn unreadable_states_end_the_search() {
    for is_unreadable in [true, false] {
        let sink = MemorySink {
            interval: 10_000,
            is_unreadable,
            is_cut: !is_unreadable,
            ..MemorySink::default()
        };
        assert_unreadable(&sink, 3000);
    }
}

/// Error with which a search resumes from these checkpoints.
fn checkpoint_error(model: &Model, options: &Options, files: Files) -> CheckpointError {
    let sink = memory_sink(files, 10_000, 0);
    let options = Options {
        checkpoint_sink: Some(&sink),
        ..*options
    };
    match check(model, &options) {
        Err(CheckError::Checkpoint(error)) => error,
        other => panic!("{other:?}"),
    }
}

/// Checkpoints of another model or other options, with one changed bit, cut, extended, or stored under another
/// number.
#[test]
fn foreign_and_damaged_checkpoints_are_rejected() {
    let model = library_model("peterson_2");
    let default = Options::default();
    let files = all_checkpoints(&model);
    let mut other_model = model.clone();
    other_model.invariants.pop();
    let off = Options {
        symmetry: false,
        ..default
    };
    let foreign = [
        checkpoint_error(&other_model, &default, files.clone()),
        checkpoint_error(
            &library_model("german"),
            &off,
            all_checkpoints(&library_model("german")),
        ),
    ];
    for error in foreign {
        assert!(
            matches!(error.kind, CheckpointErrorKind::OtherModel),
            "{error:?}"
        );
    }
    // Every byte of the last checkpoint matters, and so does its length.
    let (&last_key, bytes) = files.last_key_value().unwrap();
    let assert_rejected = |bytes: Vec<u8>| {
        let mut files = files.clone();
        files.insert(last_key, bytes);
        let error = checkpoint_error(&model, &default, files);
        assert_eq!((error.component, error.number), last_key);
        let kind = error.kind;
        assert!(
            matches!(
                kind,
                CheckpointErrorKind::Damaged | CheckpointErrorKind::Format
            ),
            "{kind:?}"
        );
    };
    for i in 0..bytes.len() {
        let mut bytes = bytes.clone();
        bytes[i] ^= 1 << (i % 8);
        assert_rejected(bytes);
        assert_rejected(prefix(&files[&last_key], i));
    }
    assert_rejected([&bytes[..], &[0]].concat());
    // A checkpoint stored under another number.
    let mut duplicated = files.clone();
    duplicated.insert((last_key.0, last_key.1 + 1), bytes.clone());
    assert!(matches!(
        checkpoint_error(&model, &default, duplicated).kind,
        CheckpointErrorKind::Damaged
    ));
}

/// First `end` bytes.
fn prefix(bytes: &[u8], end: usize) -> Vec<u8> {
    bytes[..end].to_vec()
}

/// The first checkpoint cannot be stored.
#[test]
fn storage_error_ends_the_search() {
    let full = MemorySink {
        interval: 1,
        is_full: true,
        ..MemorySink::default()
    };
    let options = Options {
        checkpoint_sink: Some(&full),
        ..Options::default()
    };
    let result = check(&models::peterson(4), &options);
    let Err(CheckError::Checkpoint(error)) = result else {
        panic!("{result:?}")
    };
    let CheckpointErrorKind::CannotStore(storage_error) = error.kind else {
        panic!("{error:?}")
    };
    assert_eq!(storage_error.kind(), io::ErrorKind::StorageFull);
}
