//! Programs on protocols, compared with the same programs on sequentially consistent memory.

use cohkit_litmus::cores::CoreKind;
use cohkit_litmus::models::outcomes;
use cohkit_litmus::program::{Observable, Outcome, Program};
use cohkit_litmus::run::{run, Options, RunResult};
use cohkit_litmus::shapes::{all, program, Step};
use cohkit_protocol::construct;
use cohkit_protocol::protocol::Protocol;
use cohkit_protocol::text::parse;

/// A write, in the notation of [`shape`].
const W: bool = true;
/// A read, in the notation of [`shape`].
const R: bool = false;

/// Returns a program of accesses such as (W, 0), a write of the first location.
fn shape(threads: &[&[(bool, u8)]]) -> Program {
    let to_step = |&(writes, location): &(bool, u8)| Step {
        writes,
        at: location,
    };
    let threads: Vec<Vec<Step>> = threads
        .iter()
        .map(|thread| thread.iter().map(to_step).collect())
        .collect();
    program(&threads, false)
}

/// Returns true if an outcome has these register values, thread by thread.
fn has_outcome(outcomes: &std::collections::BTreeSet<Outcome>, values: &[i64]) -> bool {
    let registers = |end: &Outcome| -> Vec<i64> {
        let registers = end.0.iter();
        let registers = registers.filter(|(o, _)| matches!(o, Observable::Register(..)));
        registers.map(|(_, &value)| value).collect()
    };
    outcomes.iter().any(|outcome| registers(outcome) == values)
}

/// Known verdicts on classic shapes: sequential consistency forbids all of them, and total store order allows one.
#[test]
fn models_match_known_verdicts_of_classic_shapes() {
    type Shape<'s> = (&'s str, &'s [&'s [(bool, u8)]], &'s [i64], bool);
    let shapes: [Shape; 7] = [
        ("SB", &[&[(W, 0), (R, 1)], &[(W, 1), (R, 0)]], &[0, 0], true),
        (
            "MP",
            &[&[(W, 0), (W, 1)], &[(R, 1), (R, 0)]],
            &[2, 0],
            false,
        ),
        (
            "LB",
            &[&[(R, 0), (W, 1)], &[(R, 1), (W, 0)]],
            &[2, 1],
            false,
        ),
        ("CoRR", &[&[(W, 0)], &[(R, 0), (R, 0)]], &[1, 0], false),
        ("CoWR", &[&[(W, 0), (R, 0)], &[(W, 0)]], &[0], false),
        (
            "IRIW",
            &[&[(W, 0)], &[(R, 0), (R, 1)], &[(W, 1)], &[(R, 1), (R, 0)]],
            &[1, 0, 2, 0],
            false,
        ),
        (
            "WRC",
            &[&[(W, 0)], &[(R, 0), (W, 1)], &[(R, 1), (R, 0)]],
            &[1, 2, 0],
            false,
        ),
    ];
    for (name, threads, values, tso) in shapes {
        let program = shape(threads);
        assert!(
            !has_outcome(&outcomes(&program, CoreKind::InOrder), values),
            "{name}"
        );
        let buffered = outcomes(&program, CoreKind::StoreBuffer);
        assert_eq!(has_outcome(&buffered, values), tso, "{name}");
    }
}

/// Compares the outcomes of all programs of two threads with two accesses each.
#[test]
fn full_fences_reduce_tso_to_sc() {
    for program in all(2, 2, true) {
        let (sc, tso) = (
            outcomes(&program, CoreKind::InOrder),
            outcomes(&program, CoreKind::StoreBuffer),
        );
        assert_eq!(sc, tso, "{}", program.name);
    }
    // Without fences, total store order allows more if a thread writes one location and then reads the other: SB, and
    // R, where the other thread only writes.
    let weaker = all(2, 2, false).into_iter().filter(|program| {
        let (sc, tso) = (
            outcomes(program, CoreKind::InOrder),
            outcomes(program, CoreKind::StoreBuffer),
        );
        assert!(sc.is_subset(&tso), "{}", program.name);
        sc != tso
    });
    let weaker: Vec<String> = weaker.map(|program| program.name).collect();
    assert_eq!(weaker, ["WyRx+WxRy", "WyRx+WxWy"]);
}

/// Reads a shipped protocol.
fn shipped(name: &str) -> Protocol {
    let root = env!("CARGO_MANIFEST_DIR");
    let text = std::fs::read_to_string(format!("{root}/../../protocols/{name}.coh")).unwrap();
    parse(&text).unwrap()
}

/// Checks that the outcomes of each program on a protocol are exactly those on sequentially consistent memory. Returns
/// the number of states visited.
fn assert_sc_outcomes(name: &str, programs: &[Program], max_spontaneous_evictions: u8) -> usize {
    let protocol = shipped(name);
    let mut visited = 0;
    for program in programs {
        let home = construct::home(&protocol, program.threads.len() as u16).unwrap();
        for cores in [CoreKind::InOrder, CoreKind::StoreBuffer] {
            let options = Options {
                cores,
                max_spontaneous_evictions,
                ..Options::default()
            };
            match run(&protocol, &home, program, &options, &mut || true) {
                RunResult::Outcomes {
                    outcomes: found,
                    states,
                } => {
                    assert_eq!(
                        found,
                        outcomes(program, cores),
                        "{name}: {}, {cores:?}",
                        program.name
                    );
                    visited += states;
                }
                other => panic!("{name}: {}, {cores:?}: {other:?}", program.name),
            }
        }
    }
    visited
}

/// Compares in-order cores and store buffers before coherent caches with the same cores on sequentially consistent
/// memory.
#[test]
fn store_buffers_turn_sc_caches_into_tso() {
    let programs = all(2, 2, false);
    assert!(programs.len() >= 50, "{}", programs.len());
    for name in ["msi", "mesi"] {
        assert_sc_outcomes(name, &programs, 1);
    }
}

/// Four threads are feasible because states are rows of numbers of lines and threads. A million states with
/// uncompressed lines and threads took minutes and gigabytes, and were not enough.
#[test]
fn four_threads_with_evictions_are_feasible() {
    let iriw = shape(&[&[(W, 0)], &[(R, 0), (R, 1)], &[(W, 1)], &[(R, 1), (R, 0)]]);
    assert!(assert_sc_outcomes("mesi", &[iriw], 1) > 2_000_000);
}
