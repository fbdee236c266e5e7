//! Programs whose threads run on several kinds of caches with different rows.

use crate::protocol_files;

use cohkit_litmus::axioms::Model;
use cohkit_litmus::conformance_report::{self, check_conformance, ConformanceVerdict};
use cohkit_litmus::cores::CoreKind;
use cohkit_litmus::cycles::{classic, named};
use cohkit_litmus::kinds::Kinds;
use cohkit_litmus::lines::Lines;
use cohkit_litmus::models::outcomes;
use cohkit_litmus::program::{Instruction, Program};
use cohkit_litmus::run::{run_on, run_on_kinds, shortest_path, Options, RunResult};
use cohkit_litmus::timed::{self, observe_on_kinds, Level, Machine, ObserveError};
use cohkit_protocol::protocol::Protocol;
use protocol_files::{home, read};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Protocol with caches, and with devices that have none. Devices read and write at the home, and write only after a
/// grant.
const MIXED: &str = include_str!("../../../../tests/kinds/mixed.coh");

/// Returns the protocol with devices that only read.
fn readers() -> String {
    let parts = [
        (", Want; bytes: Bytes (partial store); answer: Value (line), Go, Done", "; answer: Value (line)"),
        (" bytes device -> home;", ""),
        ("  N | write_partial | send Want  | A\n", ""),
        ("  A | Go            | send Bytes | W\n", ""),
        ("  W | Done          | done       | N\n", ""),
        ("; A waits Go; W waits Done", ""),
        ("; G waits Bytes", ""),
        ("; storing: bool", ""),
        ("  I   | Want           | send Go                                                  | G\n", ""),
        ("  M   | Want           | send Recall to owner, wants := sender, storing := true    | R\n", ""),
        ("  R   | Put if storing | write, send Taken, send Go to wants, owner := none, wants := none, storing := false | G\n", ""),
        ("  G   | Bytes          | write, send Done                                         | I\n", ""),
        ("  R G | GetM Read Want | stall", "  R   | GetM Read      | stall"),
    ];
    parts.iter().fold(MIXED.to_string(), |text, (from, to)| {
        with_change(&text, from, to)
    })
}

/// Replaces a text that occurs exactly once.
fn with_change(text: &str, from: &str, to: &str) -> String {
    assert_eq!(text.matches(from).count(), 1, "{from}");
    text.replace(from, to)
}

/// Returns options for these cores.
fn options(cores: CoreKind) -> Options {
    Options {
        cores,
        ..Options::default()
    }
}

/// Returns the result of a program in each placement of its threads, by the names of the kinds.
fn run_in_all_placements(
    protocol: &Protocol,
    program: &Program,
    cores: CoreKind,
) -> BTreeMap<String, RunResult> {
    let placements = Kinds::all_placements(protocol, program)
        .expect("few enough placements")
        .into_iter();
    let results = placements.map(|kinds| {
        let system = (protocol, home(protocol));
        let result = run_on_kinds(system, &kinds, program, &options(cores), &mut || true);
        (kinds.names(protocol).join(" "), result)
    });
    results.collect()
}

/// Returns true if a program has an atomic access.
fn has_atomic(program: &Program) -> bool {
    let mut code = program.threads.iter().flat_map(|thread| &thread.code);
    code.any(|instruction| matches!(instruction, Instruction::Atomic { .. }))
}

/// Returns the shapes of at most `threads` threads without atomic accesses, which devices do not support.
fn shapes(threads: usize) -> Vec<Program> {
    let small_shapes = classic().into_iter().filter(|p| p.threads.len() <= threads);
    small_shapes
        .filter(|program| !has_atomic(program))
        .collect()
}

/// Kinds with equal rows and symmetric threads reduce the number of placements.
#[test]
fn threads_are_placed_in_every_way_up_to_symmetry() {
    let protocol = read(MIXED);
    for (name, expected) in [
        ("SB", "cache cache/cache device/device device"),
        ("MP", "cache cache/cache device/device cache/device device"),
    ] {
        let shape = named(name).expect("a shape");
        let placements = Kinds::all_placements(&protocol, &shape).expect("few enough placements");
        let placements = placements
            .iter()
            .map(|kinds| kinds.names(&protocol).join(" "));
        assert_eq!(placements.collect::<Vec<_>>().join("/"), expected, "{name}");
    }
    let three_threads = Kinds::all_placements(&protocol, &named("3.SB").expect("a shape"))
        .expect("few enough placements");
    assert_eq!(three_threads.len(), 4);
    // Kinds with the same rows count as one.
    let near = read(include_str!("../../../../protocols/eci-near.coh"));
    let placements = Kinds::all_placements(&near, &named("IRIW").expect("a shape"))
        .expect("few enough placements");
    assert_eq!(placements, [Kinds::from(4)]);
    // The symmetric placement, which is left out, has the same number of outcomes and states.
    let shape = named("SB").expect("a shape");
    let outcomes_on = |text: &str| {
        let kinds = Kinds::parse(text, &protocol, &shape).expect("kinds");
        let system = (&protocol, home(&protocol));
        match run_on_kinds(
            system,
            &kinds,
            &shape,
            &options(CoreKind::InOrder),
            &mut || true,
        ) {
            RunResult::Outcomes { outcomes, states } => (outcomes, states),
            unexpected => panic!("{unexpected:?}"),
        }
    };
    assert_eq!(outcomes_on("cache,device"), outcomes_on("device, cache"));
}

/// In every placement, in-order cores give exactly sequential consistency, and store buffers give exactly total store
/// order.
#[test]
fn every_placement_gives_exactly_the_core_model() {
    let protocol = read(MIXED);
    let mut placed = BTreeMap::<usize, usize>::new();
    for program in shapes(3)
        .iter()
        .filter(|p| p.threads.len() < 3 || !p.name.contains('+'))
    {
        for cores in [CoreKind::InOrder, CoreKind::StoreBuffer] {
            let allowed = outcomes(program, cores);
            for (kinds, found) in run_in_all_placements(&protocol, program, cores) {
                let name = &program.name;
                let RunResult::Outcomes { outcomes, .. } = found else {
                    panic!("{name} on {kinds}, {cores:?}: {found:?}")
                };
                assert_eq!(outcomes, allowed, "{name} on {kinds}, {cores:?}");
                *placed.entry(program.threads.len()).or_default() += 1;
            }
        }
    }
    assert!(placed[&2] > 400 && placed[&3] > 150, "{placed:?}");
}

/// Shipped protocols whose kinds have the same rows have the same outcomes on any kinds.
#[test]
fn shipped_kinds_show_exactly_the_allowed_outcomes() {
    let texts = [
        include_str!("../../../../protocols/eci-near.coh"),
        include_str!("../../../../protocols/cxl-cache.coh"),
        include_str!("../../../../protocols/ccix.coh"),
    ];
    for text in texts {
        let protocol = read(text);
        let home =
            |caches: u16| cohkit_protocol::construct::home(&protocol, caches).expect("a home");
        for name in [
            "SB",
            "MP",
            "LB",
            "R",
            "S",
            "2+2W",
            "CoRR",
            "MP+swps",
            "SB+dmb.sys",
        ] {
            let program = named(name).expect("a shape");
            for kinds in [[0, 0], [0, 1], [1, 0]] {
                let names = kinds.map(|kind: usize| protocol.kinds[kind].name.as_str());
                let kinds = Kinds::parse(&names.join(","), &protocol, &program).expect("kinds");
                for cores in [CoreKind::InOrder, CoreKind::StoreBuffer] {
                    let home = home(2);
                    let system = (&protocol, &home);
                    match run_on_kinds(system, &kinds, &program, &options(cores), &mut || true) {
                        RunResult::Outcomes {
                            outcomes: found, ..
                        } => {
                            assert_eq!(
                                found,
                                outcomes(&program, cores),
                                "{name}: {}",
                                protocol.name
                            );
                        }
                        other => panic!("{name} on {}: {other:?}", protocol.name),
                    }
                }
            }
        }
    }
}

/// Devices without rows for stores cannot run the writing thread.
#[test]
fn missing_row_is_reported_with_kind_and_access() {
    let protocol = read(&readers());
    let shape = named("MP").expect("a shape");
    let results = run_in_all_placements(&protocol, &shape, CoreKind::InOrder);
    let lacking = "`device` of mixed has no row for an access that writes, and P0 needs one";
    for kinds in ["device cache", "device device"] {
        assert_eq!(
            results[kinds],
            RunResult::UnsupportedPlacement(lacking.into()),
            "{kinds}"
        );
    }
    let allowed = outcomes(&shape, CoreKind::InOrder);
    for kinds in ["cache cache", "cache device"] {
        assert!(
            matches!(&results[kinds], RunResult::Outcomes { outcomes, .. } if *outcomes == allowed),
            "{kinds}"
        );
    }
    // The simulator reports the same.
    let kinds = Kinds::parse("device,cache", &protocol, &shape).expect("kinds");
    let run = observe_on(&protocol, &kinds, &shape, (CoreKind::InOrder, 1));
    assert_eq!(run, Err(ObserveError::Lacks(lacking.into())));
    for (text, expected) in [
        ("cache", "`cache` names 1 kind, and MP has 2 threads"),
        ("cache,devise", "mixed has no kind of remotes `devise`: did you mean `device`? the kinds are `cache`, `device`"),
    ] {
        assert_eq!(Kinds::parse(text, &protocol, &shape), Err(expected.into()));
    }
    let mut eight_threads = shape;
    eight_threads.threads = vec![eight_threads.threads[0].clone(); 8];
    let mut extended = read(MIXED);
    let states = extended.kinds[1].initial;
    for name in ["b", "c", "d"] {
        let mut kind = extended.kinds[1].clone();
        kind.name = name.into();
        kind.initial.0 = states.0 + 1 + extended.kinds.len() as u16 - 2;
        extended.kinds.push(kind);
    }
    let error = Kinds::all_placements(&extended, &eight_threads).expect_err("too many");
    assert!(
        error.contains("8 threads can be placed on 5 kinds"),
        "{error}"
    );
}

/// A fault in the rows of one kind is found if and only if a thread runs on that kind.
#[test]
fn kind_fault_is_found_only_on_that_kind() {
    let faults = [
        // A device's write completes before the home performs it.
        (
            "device",
            "A | Go            | send Bytes | W\n  W | Done          | done       | N",
            "A | Go | send Bytes, done | W\n  W | Done | | N",
        ),
        // A cache keeps a line that it returns.
        (
            "cache",
            "M   | Recall     | send Put  | D",
            "M   | Recall     | send Put  | M",
        ),
    ];
    for (kind, from, to) in faults {
        let protocol = read(&with_change(MIXED, from, to));
        let shape = named("2+2W").expect("a shape");
        let results = run_in_all_placements(&protocol, &shape, CoreKind::InOrder);
        for (kinds, result) in &results {
            let is_allowed = matches!(result, RunResult::Outcomes { outcomes: found, .. } if *found == outcomes(&shape, CoreKind::InOrder));
            assert_eq!(
                is_allowed,
                !kinds.contains(kind),
                "{to}: {kinds}: {result:?}"
            );
        }
    }
}

/// A guaranteed memory model applies to threads on all kinds of remotes.
#[test]
fn guarantees_are_judged_wherever_threads_run() {
    let promise = |text: &str| with_change(text, "remote cache {", "guarantee sc\nremote cache {");
    let judged = |text: &str| {
        let protocol = read(&promise(text));
        let home_of = |_| Cow::Borrowed(home(&protocol));
        check_conformance(
            &protocol,
            Model::Sc,
            conformance_report::classic(&protocol, 2),
            None,
            &home_of,
            &mut || true,
        )
    };
    let held = judged(MIXED);
    assert_eq!(held.verdict, ConformanceVerdict::Holds);
    // Devices do not support atomic accesses.
    assert!(
        held.unsupported_programs > 0 && held.unsupported_placements == 0,
        "{held:?}"
    );
    assert!(held.placements > 200, "{held:?}");
    let fewer = judged(&readers());
    assert_eq!(fewer.verdict, ConformanceVerdict::Holds);
    assert!(
        fewer.unsupported_placements > 0 && fewer.placements < held.placements,
        "{fewer:?}"
    );
    let old = with_change(
        MIXED,
        "M   | GetM Read      | send Recall to owner, wants := sender                    | R",
        "M   | GetM           | send Recall to owner, wants := sender | R\n  M | Read | send Value | stay",
    );
    match judged(&old).verdict {
        ConformanceVerdict::Violated { kinds, .. } => {
            assert_eq!(kinds.as_deref(), Some("cache,device"))
        }
        other => panic!("{other:?}"),
    }
}

/// Lifelines in the chart are those of threads, whatever the numbers of their caches.
#[test]
fn chart_lifelines_are_threads() {
    let protocol = read(MIXED);
    let shape = named("MP").expect("a shape");
    let kinds = Kinds::parse("device,cache", &protocol, &shape).expect("kinds");
    let mut lines = Lines::new(&protocol, home(&protocol), kinds, 2, 7);
    let options = Options {
        max_spontaneous_evictions: 0,
        ..options(CoreKind::InOrder)
    };
    assert!(matches!(
        run_on(&mut lines, &shape, &options, &mut || true),
        RunResult::Outcomes { .. }
    ));
    let chart = shortest_path(
        &mut lines,
        &shape,
        &options,
        &|end| end.is_some(),
        &mut || true,
    );
    let chart = chart.expect("a path to the outcome").chart;
    let sent = chart.steps.iter().filter_map(|step| match &step.action {
        cohkit_base::sequence::Action::Send { message, to, .. } => {
            Some((step.agent, message.split('(').next()?.to_string(), *to))
        }
        _ => None,
    });
    let sent: Vec<_> = sent.collect();
    assert!(sent.contains(&(0, "Want".into(), 2)), "{sent:?}");
    assert!(sent.contains(&(1, "GetM".into(), 2)), "{sent:?}");
    assert!(sent.contains(&(2, "Go".into(), 0)), "{sent:?}");
    assert!(sent.contains(&(2, "Data".into(), 1)), "{sent:?}");
}

/// Runs a program `runs` times in the simulator, with each thread on a cache of its kind.
fn observe_on(
    protocol: &Protocol,
    kinds: &Kinds,
    program: &Program,
    (cores, runs): (CoreKind, u64),
) -> Result<timed::SeedOutcomes, ObserveError> {
    let upper = Level {
        protocol,
        home: home(protocol).clone(),
        caches: kinds.threads().into(),
    };
    let machines = [Machine { upper, lower: None }];
    let options = timed::Options {
        cores,
        runs,
        seed: 0,
    };
    observe_on_kinds(&machines, kinds, program, &options, &mut || true)
}

/// In the simulator, all outcomes are allowed in every placement, and store buffers have an effect.
#[test]
fn simulated_placements_show_only_allowed_outcomes() {
    let protocol = read(MIXED);
    let mut buffered = 0;
    for program in shapes(2) {
        for kinds in Kinds::all_placements(&protocol, &program).expect("few enough placements") {
            for cores in [CoreKind::InOrder, CoreKind::StoreBuffer] {
                let observed = observe_on(&protocol, &kinds, &program, (cores, 20))
                    .expect("the program can be simulated");
                let (name, placement) = (&program.name, kinds.names(&protocol).join(" "));
                assert_eq!(
                    (&observed.failure, observed.runs),
                    (&None, 20),
                    "{name} on {placement}"
                );
                let allowed = outcomes(&program, cores);
                let forbidden = observed
                    .counts
                    .keys()
                    .find(|outcome| !allowed.contains(outcome));
                assert_eq!(forbidden, None, "{name} on {placement}, {cores:?}");
                let sc = outcomes(&program, CoreKind::InOrder);
                buffered += observed
                    .counts
                    .keys()
                    .filter(|outcome| !sc.contains(outcome))
                    .count();
            }
        }
    }
    assert!(buffered > 0);
}

/// A fault in a row of one kind is found, with its seed.
#[test]
fn simulation_finds_a_kind_fault_with_its_seed() {
    let faulty = with_change(
        MIXED,
        "M   | Recall     | send Put  | D",
        "M   | Recall     | send Put  | M",
    );
    let protocol = read(&faulty);
    let shape = named("2+2W").expect("a shape");
    let kinds = Kinds::parse("cache,device", &protocol, &shape).expect("kinds");
    let observed = observe_on(&protocol, &kinds, &shape, (CoreKind::InOrder, 500))
        .expect("the program can be simulated");
    let (failure, seed) = observed.failure.expect("the simulation finds the fault");
    assert!(failure.contains("cache"), "seed {seed}: {failure}");
}
