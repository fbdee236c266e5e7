//! The classic shapes: outcomes under memory models and on protocols.

use cohkit_litmus::axioms::{self, Model};
use cohkit_litmus::cores::CoreKind;
use cohkit_litmus::cycles::classic;
use cohkit_litmus::herd;
use cohkit_litmus::lines::Lines;
use cohkit_litmus::models;
use cohkit_litmus::print::print;
use cohkit_litmus::program::Program;
use cohkit_litmus::run::{run_on, run_on_two_levels, Options, RunResult};
use cohkit_litmus::shapes;
use cohkit_protocol::construct;
use cohkit_protocol::orders::{Issue, Orders};
use cohkit_protocol::protocol::Protocol;
use cohkit_protocol::text::parse;
use std::collections::{BTreeMap, BTreeSet};

/// Returns true if a model allows an outcome that satisfies the condition of the program.
fn allowed(program: &Program, model: Model) -> bool {
    let outcomes = axioms::outcomes(program, model).unwrap();
    outcomes.iter().any(|outcome| program.holds(outcome))
}

/// Shapes with equal names would be counted twice.
#[test]
fn classic_shapes_are_numerous_and_unique() {
    let shapes = classic();
    let names: BTreeSet<&str> = shapes.iter().map(|shape| shape.name.as_str()).collect();
    assert_eq!(names.len(), shapes.len());
    assert!(shapes.len() >= 200, "{}", shapes.len());
    for name in [
        "SB",
        "MP+dmb.sys",
        "LB+datas",
        "IRIW",
        "Z6.3+poll+poll+poaa",
        "MP+dmb.sy+po",
    ] {
        assert!(names.contains(name), "{name}: {names:?}");
    }
}

/// The operational and the axiomatic models are independent of each other.
#[test]
fn operational_and_axiomatic_models_agree() {
    for shape in classic() {
        let mut stronger_outcomes = BTreeSet::new();
        for (model, cores) in [
            (Model::Sc, CoreKind::InOrder),
            (Model::Tso, CoreKind::StoreBuffer),
            (Model::Rc, CoreKind::Relaxed(Orders::default())),
        ] {
            let outcomes = axioms::outcomes(&shape, model).unwrap();
            let (name, operational) = (&shape.name, models::outcomes(&shape, cores));
            // These cores perform an atomic access in one step. The model also allows its write to come later than its
            // read.
            match model == Model::Rc && name.contains("+swp") {
                true => assert!(operational.is_subset(&outcomes), "{name}, {model}"),
                false => assert_eq!(outcomes, operational, "{name}, {model}"),
            }
            // Each model allows all outcomes of the stronger one.
            assert!(
                stronger_outcomes.is_subset(&outcomes),
                "{}, {model}",
                shape.name
            );
            stronger_outcomes = outcomes;
        }
    }
}

/// Out-of-order cores with the orders of another kind of core have the same outcomes as that kind.
#[test]
fn windows_with_orders_of_another_core_equal_that_core() {
    let (mut all_orders, mut stores_later) = (Orders::NONE, Orders::NONE);
    for (earlier, _) in Issue::ALL {
        for (later, _) in Issue::ALL {
            all_orders.keep(earlier, later);
            let stores = matches!(earlier, Issue::Store | Issue::Release);
            if !(stores && matches!(later, Issue::Load | Issue::Acquire)) {
                stores_later.keep(earlier, later);
            }
        }
    }
    for shape in classic() {
        for (orders, cores) in [
            (all_orders, CoreKind::InOrder),
            (stores_later, CoreKind::StoreBuffer),
        ] {
            let relaxed = models::outcomes(&shape, CoreKind::Relaxed(orders));
            assert_eq!(relaxed, models::outcomes(&shape, cores), "{}", shape.name);
        }
    }
}

/// A full fence between all accesses of each thread leaves only sequentially consistent outcomes.
#[test]
fn full_fences_restore_sequential_consistency() {
    for shape in classic() {
        assert!(!allowed(&shape, Model::Sc), "{}", shape.name);
        let fenced = shape.name.ends_with("+dmb.sys") || shape.name.ends_with("+dmb.sy");
        if fenced && !shape.name.contains("po") {
            let sc = axioms::outcomes(&shape, Model::Sc);
            assert_eq!(axioms::outcomes(&shape, Model::Rc), sc, "{}", shape.name);
        }
    }
}

/// Well-known verdicts on the classic shapes.
#[test]
fn models_match_known_verdicts_of_classic_shapes() {
    let shapes = classic();
    let allows = |name: &str, model: Model| {
        let shape = shapes.iter().find(|shape| shape.name == name);
        allowed(shape.unwrap_or_else(|| panic!("{name}")), model)
    };
    // Total store order relaxes only write-to-read order: a read may precede the visibility of an earlier write.
    let plain = shapes
        .iter()
        .filter(|shape| !shape.name.contains('+') || shape.name == "2+2W");
    let plain = plain.filter(|shape| allowed(shape, Model::Tso));
    let plain: Vec<&str> = plain.map(|shape| shape.name.as_str()).collect();
    assert_eq!(
        plain,
        ["SB", "R", "RWC", "Z6.0", "Z6.4", "Z6.5", "3.SB", "4.SB"]
    );
    assert!(allows("WRW+WR", Model::Tso) && allows("W+RWC", Model::Tso));
    assert!(allows("R+dmb.sy+po", Model::Tso) && !allows("R+po+dmb.sy", Model::Tso));
    // Release consistency orders only on request. In each of these shapes an order is missing or too weak.
    for weak in [
        "SB",
        "MP",
        "LB",
        "S",
        "R",
        "2+2W",
        "WRC",
        "IRIW",
        "MP+dmb.sy+po",
        "MP+po+dmb.sy",
        "LB+dmb.sy+po",
        "SB+polqs",
        "R+poll+polq",
        "IRIW+dmb.sy+po",
        "W+RWC+poll+poqq+polq",
    ] {
        assert!(allows(weak, Model::Rc), "{weak}");
    }
    // A release and an acquire order message passing. Releases do not pass the full acquire. Dependencies order writes.
    // All other threads observe a write at the same time.
    for strong in [
        "CoRR",
        "CoWW",
        "CoWR",
        "CoRW1",
        "CoRR2",
        "MP+poll+poaa",
        "MP+poll+poqq",
        "MP+dmb.st+dmb.ld",
        "SB+polas",
        "LB+datas",
        "LB+ctrls",
        "LB+poqls",
        "2+2W+dmb.sts",
        "2+2W+polls",
        "WRC+data+dmb.sy",
        "WRC+poal+poaa",
        "ISA2+poll+poal+poaa",
        "IRIW+poaas",
        "IRIW+poqqs",
        "IRIW+dmb.lds",
        "Z6.3+poll+poll+poaa",
    ] {
        assert!(!allows(strong, Model::Rc), "{strong}");
    }
}

/// A printed shape is parsed as the same test.
#[test]
fn printed_shapes_round_trip() {
    for shape in classic() {
        let text = print(&shape).unwrap();
        let read = herd::read(&text).unwrap_or_else(|e| panic!("{}", e.render("t", &text, false)));
        assert_eq!(read.name, shape.name);
        for (model, _) in Model::ALL {
            let outcomes = |program: &Program| -> BTreeSet<(String, bool)> {
                let outcomes = axioms::outcomes(program, model).unwrap();
                outcomes
                    .iter()
                    .map(|end| (program.format_outcome(end), program.holds(end)))
                    .collect()
            };
            assert_eq!(outcomes(&read), outcomes(&shape), "{model}: {text}");
        }
    }
}

/// Reads a shipped protocol.
fn shipped(name: &str) -> Protocol {
    let root = env!("CARGO_MANIFEST_DIR");
    let text = std::fs::read_to_string(format!("{root}/../../protocols/{name}.coh")).unwrap();
    parse(&text).unwrap()
}

/// Checks that the outcomes of each shape on a protocol are exactly those on sequentially consistent memory. Returns
/// the number of shapes.
fn check_exact_outcomes(name: &str, shapes: &[(Program, u8)], all_cores: &[CoreKind]) -> usize {
    let protocol = shipped(name);
    let mut count = 0;
    for threads in 1..=4 {
        let home = construct::home(&protocol, threads as u16).unwrap();
        let mut lines = Lines::new(&protocol, &home, threads as u8, 4, 7);
        for (shape, max_spontaneous_evictions) in
            shapes.iter().filter(|s| s.0.threads.len() == threads)
        {
            for &cores in all_cores {
                let (max_spontaneous_evictions, max_states) =
                    (*max_spontaneous_evictions, 100_000_000);
                let options = Options {
                    cores,
                    max_spontaneous_evictions,
                    max_states,
                    ..Options::default()
                };
                match run_on(&mut lines, shape, &options, &mut || true) {
                    RunResult::Outcomes { outcomes, .. } => {
                        let expected = models::outcomes(shape, cores);
                        assert_eq!(outcomes, expected, "{name}: {}, {cores:?}", shape.name);
                    }
                    other => panic!("{name}: {}, {cores:?}: {other:?}", shape.name),
                }
            }
            count += 1;
        }
    }
    count
}

/// Returns the shapes of up to three threads. One spontaneous eviction or downgrade is allowed with two threads and in
/// plain shapes of three. `make soak` runs all shapes with it, which takes millions of states each for four threads.
fn small() -> Vec<(Program, u8)> {
    let small = classic().into_iter().filter(|s| s.threads.len() < 4);
    let plain = |shape: &Program| shape.threads.len() == 2 || !shape.name.contains('+');
    small
        .map(|shape| (plain(&shape), shape))
        .map(|(plain, shape)| (shape, plain.into()))
        .collect()
}

/// Returns the plain shapes of four threads, without spontaneous evictions. `4.SB` is left out: with store buffers it
/// has 18 million states.
fn large() -> Vec<(Program, u8)> {
    let plain = |s: &Program| s.threads.len() == 4 && !s.name.contains('+');
    let large = classic()
        .into_iter()
        .filter(|s| plain(s) && s.name != "4.SB");
    large.map(|shape| (shape, 0)).collect()
}

/// Kinds of cores with which coherent caches give sequential consistency and total store order.
const CORES: [CoreKind; 2] = [CoreKind::InOrder, CoreKind::StoreBuffer];

/// No outcome is missing, and none is forbidden.
#[test]
fn msi_shows_exactly_the_allowed_outcomes() {
    assert!(check_exact_outcomes("msi", &small(), &CORES) >= 100);
    check_exact_outcomes("msi", &large(), &CORES);
}

/// No outcome is missing, and none is forbidden.
#[test]
fn mesi_shows_exactly_the_allowed_outcomes() {
    assert!(check_exact_outcomes("mesi", &small(), &CORES) >= 100);
    check_exact_outcomes("mesi", &large(), &CORES);
}

/// Only shapes without variations, because MOESI has more states.
#[test]
fn moesi_shows_exactly_the_allowed_outcomes_of_plain_shapes() {
    let plain = |(shape, _): &(Program, u8)| !shape.name.contains('+');
    let small: Vec<(Program, u8)> = small().into_iter().filter(plain).collect();
    assert!(check_exact_outcomes("moesi", &small, &CORES) >= 20);
}

/// As [`check_exact_outcomes`], with threads on the L1s of two levels, and over all assignments of threads to L2s.
fn check_exact_outcomes_below(shapes: &[(Program, u8)], all_cores: &[CoreKind]) -> usize {
    let [outer, inner] = ["mesi", "mesi-l1"].map(shipped);
    let mut groups: BTreeMap<(usize, u8), Vec<Program>> = BTreeMap::new();
    for (shape, max_spontaneous_evictions) in shapes {
        let group = groups.entry((shape.threads.len(), *max_spontaneous_evictions));
        group.or_default().push(shape.clone());
    }
    for ((threads, max_spontaneous_evictions), shapes) in groups {
        let home = |protocol| construct::home(protocol, threads as u16).unwrap();
        let (outer_home, inner_home) = (home(&outer), home(&inner));
        for &cores in all_cores {
            let options = Options {
                cores,
                max_spontaneous_evictions,
                max_states: 100_000_000,
                ..Options::default()
            };
            let levels = [(&outer, &outer_home), (&inner, &inner_home)];
            let results = run_on_two_levels(levels, &shapes, &options, &mut || true);
            for (shape, found) in shapes.iter().zip(results) {
                match found {
                    RunResult::Outcomes { outcomes, .. } => {
                        let expected = models::outcomes(shape, cores);
                        assert_eq!(outcomes, expected, "{}, {cores:?}", shape.name);
                    }
                    other => panic!("{}, {cores:?}: {other:?}", shape.name),
                }
            }
        }
    }
    shapes.len()
}

/// Runs all shapes of up to two threads, and all programs of two threads with two accesses each. Three threads, with
/// five assignments to clusters, take millions of states, which `make soak` visits.
#[test]
fn two_levels_show_exactly_the_allowed_two_thread_outcomes() {
    let classic_shapes = classic().into_iter().filter(|s| s.threads.len() <= 2);
    let generated = [false, true]
        .into_iter()
        .flat_map(|fenced| shapes::all(2, 2, fenced));
    let programs: Vec<Program> = classic_shapes.chain(generated).collect();
    let numbers = |max_spontaneous_evictions| {
        move |shape: &Program| (shape.clone(), max_spontaneous_evictions)
    };
    let without_evictions: Vec<(Program, u8)> = programs.iter().map(numbers(0)).collect();
    assert!(check_exact_outcomes_below(&without_evictions, &CORES) >= 100);
    let plain = programs.iter().filter(|shape| !shape.name.contains('+'));
    let with_eviction: Vec<(Program, u8)> = plain.map(numbers(1)).collect();
    assert!(check_exact_outcomes_below(&with_eviction, &[CoreKind::InOrder]) >= 10);
}

/// Runs all shapes of up to three threads on two levels, with one spontaneous eviction for those of two threads, on
/// both kinds of cores.
#[test]
#[ignore = "millions of states for each shape of three threads, for `make soak`"]
fn all_shapes_of_three_threads_on_two_levels() {
    let small = classic().into_iter().filter(|s| s.threads.len() < 4);
    let programs: Vec<(Program, u8)> = small
        .map(|shape| (shape.threads.len() < 3, shape))
        .map(|(two, shape)| (shape, two.into()))
        .collect();
    let count = check_exact_outcomes_below(&programs, &CORES);
    println!("two-level: exactly what the models allow of {count} shapes");
}

/// Runs all shapes, with one spontaneous eviction also for four caches, which takes millions of states per shape.
#[test]
#[ignore = "millions of states for each shape of four threads, for `make soak`"]
fn all_shapes_on_all_protocols() {
    let number = |shape: Program| match shape.name.as_str() {
        "4.SB" | "4.SB+polqs" => (shape, 0),
        _ => (shape, 1),
    };
    let programs: Vec<(Program, u8)> = classic().into_iter().map(number).collect();
    for name in ["msi", "mesi", "moesi"] {
        let count = check_exact_outcomes(name, &programs, &CORES);
        println!("{name}: exactly what the models allow of {count} shapes");
    }
}
