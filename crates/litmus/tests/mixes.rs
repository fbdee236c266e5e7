//! Programs in which each write is made in every way that a text has: stored as its cores do, written back, acknowledged.

mod texts;

use cohkit_litmus::axioms::{allowed, Model};
use cohkit_litmus::compared::{compared, Compared};
use cohkit_litmus::cores::Cores;
use cohkit_litmus::cycles::{classic, named};
use cohkit_litmus::herd;
use cohkit_litmus::lines::Lines;
use cohkit_litmus::mixes::{every, letters, mixed};
use cohkit_litmus::program::Program;
use cohkit_litmus::run::{run, Found, Options, Placed};
use cohkit_protocol::protocol::Protocol;
use texts::{home, read};

const SO: &str = include_str!("../../../ordering/so.coh");
const CORD: &str = include_str!("../../../ordering/cord.coh");
const WB: &str = include_str!("../../../ordering/wb.coh");
const SO_TSO: &str = include_str!("../../../ordering/tso/so.coh");
const CORD_TSO: &str = include_str!("../../../ordering/tso/cord.coh");
const WB_TSO: &str = include_str!("../../../ordering/tso/wb.coh");

fn options(protocol: &Protocol) -> Options {
    Options {
        cores: Cores::Relaxed(protocol.kept.expect("orders of its own")),
        gives_up: 0,
        placed: Placed::InTurn,
        ..Options::default()
    }
}

/// The program in every mix, each with its letters in its name.
fn all_mixes(protocol: &Protocol, program: &Program) -> Vec<Program> {
    let of = |mix: Vec<_>| {
        let mut program = mixed(program, &mix);
        program.name = format!("{} {}", program.name, letters(&mix));
        program
    };
    let kinds = (program.threads.len() as u8).into();
    every(protocol, &kinds, program)
        .into_iter()
        .map(of)
        .collect()
}

/// Every mix of all classic programs of two threads, at one home after the other; the example `orderings` runs all files.
#[test]
fn no_mix_of_stores_shows_what_a_text_guarantees_not_to_show() {
    for text in [SO, CORD, WB, SO_TSO, CORD_TSO, WB_TSO] {
        let protocol = read(text);
        let two = classic().into_iter().filter(|p| p.threads.len() <= 2);
        let programs = two.flat_map(|program| all_mixes(&protocol, &program));
        let model = protocol.guarantee.model.expect("a guarantee");
        let groups = Lines::groups(&protocol, programs.collect()).into_iter();
        let run = |group: Vec<Program>| {
            compared(
                &protocol,
                home(&protocol),
                &group,
                model,
                &options(&protocol),
            )
        };
        let found = groups.fold(Compared::default(), |all, group| {
            all.with(run(group).unwrap_or_else(|what| panic!("{what}")))
        });
        assert_eq!(found.forbidden, Vec::<String>::new(), "{}", protocol.name);
        assert!(
            found.programs > 300,
            "{}: {}",
            protocol.name,
            found.programs
        );
    }
}

/// What the mixes of a program find that release consistency forbids, or what is wrong otherwise, with their letters.
fn found(text: &str, name: &str) -> Vec<(String, String)> {
    let copy = include_str!("../../../litmus/ordering/SB+polas+copy.litmus");
    let program = named(name).unwrap_or_else(|| herd::read(copy).expect("a program"));
    assert_eq!(program.name, name);
    let protocol = read(text);
    let model = Model::Rc;
    let allowed = allowed(&program, model).expect("a small program");
    let mut all = Vec::new();
    let kinds = (program.threads.len() as u8).into();
    for mix in every(&protocol, &kinds, &program) {
        let mixed = mixed(&program, &mix);
        let wrong = match run(
            &protocol,
            home(&protocol),
            &mixed,
            &options(&protocol),
            &mut || true,
        ) {
            Found::Ends { ends, .. } => {
                let other = ends.iter().find(|end| !allowed.contains(end));
                other.map(|end| program.words(end))
            }
            Found::Stuck { .. } => Some("waits for ever".to_string()),
            other => Some(format!("{other:?}")),
        };
        all.extend(wrong.map(|what| (letters(&mix), what)));
    }
    all
}

/// Each fault is shown by the mixes that use what is wrong, and by no other.
#[test]
fn faults_of_the_other_stores_are_refuted_by_the_mixes_that_use_them() {
    type Fault<'f> = (
        &'f str,
        &'f [(&'f str, &'f str)],
        &'f str,
        &'f [&'f str],
        &'f str,
    );
    let faults: [Fault; 4] = [
        (
            "a fence does not wait for acknowledgements, and a release that is written back comes behind one",
            &[(
                "fence if count(touched + waiting) == 0",
                "fence if count(touched) == 0",
            )],
            "MP+popl+poap",
            &["tb", "ta"],
            "1:X0=1; 1:X2=0",
        ),
        (
            "a store is acknowledged before the copies are gone",
            &[
                ("readers := {} | H", "readers := {}, send Written | H"),
                ("owner := none | H", "owner := none, send Written | H"),
                ("write aside, send Written to wants, ", "write aside, "),
            ],
            "SB+polas+copy",
            &["aa", "ta", "at"],
            "a write ends that the home has not performed",
        ),
        (
            "an atomic access finds what a copy has overwritten",
            &[(
                "write, send Old to wants, write aside",
                "send Old to wants, write, write aside",
            )],
            "2+2W+swps",
            &["bttt"],
            "Old carries an old copy",
        ),
        (
            "an atomic access writes before it tells what it found",
            &[(
                "Atomic if count(readers - { sender }) == 0 | send Old, write",
                "Atomic if count(readers - { sender }) == 0 | write, send Old",
            )],
            "2+2W+swps",
            &["tttt"],
            "",
        ),
    ];
    let mut missed = Vec::new();
    for (what, words, name, mixes, says) in faults {
        let mut text = CORD.to_string();
        for (right, instead) in words {
            assert!(text.contains(right), "{what}");
            text = text.replace(right, instead);
        }
        let all = found(&text, name);
        let with = all.iter().map(|(mix, _)| mix.as_str()).collect::<Vec<_>>();
        if !mixes.iter().all(|mix| with.contains(mix))
            || !all.iter().all(|(_, its)| its.contains(says))
        {
            missed.push(format!("{what}: {all:?}"));
        }
        assert_eq!(found(CORD, name), [], "{name}");
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}
