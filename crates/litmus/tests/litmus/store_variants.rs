//! Programs with every mix of a protocol's store variants: default store, write-back, and acknowledged write.

use crate::protocol_files;

use cohkit_litmus::axioms::{allowed, Model};
use cohkit_litmus::conformance_batch::{check_outcomes, BatchResult};
use cohkit_litmus::cores::CoreKind;
use cohkit_litmus::cycles::{classic, named};
use cohkit_litmus::herd;
use cohkit_litmus::lines::Lines;
use cohkit_litmus::program::Program;
use cohkit_litmus::run::{run, Options, Placement, RunResult};
use cohkit_litmus::store_variants::{all_mixes, format_mix, with_mix};
use cohkit_litmus::timed::{self, Level, SeedOutcomes};
use cohkit_protocol::protocol::Protocol;
use protocol_files::{home, read};

const SO: &str = include_str!("../../../../ordering/so.coh");
const SO_STRICT: &str = include_str!("../../../../ordering/so-strict.coh");
const CORD: &str = include_str!("../../../../ordering/cord.coh");
const WB: &str = include_str!("../../../../ordering/wb.coh");
const SO_TSO: &str = include_str!("../../../../ordering/tso/so.coh");
const CORD_TSO: &str = include_str!("../../../../ordering/tso/cord.coh");
const WB_TSO: &str = include_str!("../../../../ordering/tso/wb.coh");

/// Returns options for cores that keep the protocol's orders, without spontaneous evictions.
fn options(protocol: &Protocol) -> Options {
    Options {
        cores: CoreKind::Relaxed(
            protocol
                .program_order
                .expect("the protocol declares its program order"),
        ),
        max_spontaneous_evictions: 0,
        placement: Placement::RoundRobin,
        ..Options::default()
    }
}

/// Returns the program in every mix of store variants, with the letters of the mix in its name.
fn mixed_programs(protocol: &Protocol, program: &Program) -> Vec<Program> {
    let with_mix = |mix: Vec<_>| {
        let mut program = with_mix(program, &mix);
        program.name = format!("{} {}", program.name, format_mix(&mix));
        program
    };
    let kinds = (program.threads.len() as u8).into();
    all_mixes(protocol, &kinds, program)
        .into_iter()
        .map(with_mix)
        .collect()
}

/// Runs every mix of all classic programs of at most two threads, with locations placed round robin. The example
/// `orderings` runs all files.
#[test]
fn store_mixes_keep_the_guarantee() {
    for text in [SO, SO_STRICT, CORD, WB, SO_TSO, CORD_TSO, WB_TSO] {
        let protocol = read(text);
        let two_threads = classic().into_iter().filter(|p| p.threads.len() <= 2);
        let programs = two_threads.flat_map(|program| mixed_programs(&protocol, &program));
        let model = protocol.guarantee.model.expect("a guarantee");
        let groups = Lines::groups(&protocol, programs.collect()).into_iter();
        let run = |group: Vec<Program>| {
            check_outcomes(
                &protocol,
                home(&protocol),
                &group,
                model,
                &options(&protocol),
            )
        };
        let total = groups.fold(BatchResult::default(), |sum, group| {
            sum.merge(run(group).unwrap_or_else(|error| panic!("{error}")))
        });
        assert_eq!(total.forbidden, Vec::<String>::new(), "{}", protocol.name);
        assert!(
            total.programs > 300,
            "{}: {}",
            protocol.name,
            total.programs
        );
    }
}

/// Runs a program `runs` times in the simulator.
fn simulate(protocol: &Protocol, program: &Program, runs: u64) -> SeedOutcomes {
    let upper = Level {
        protocol,
        home: home(protocol).clone(),
        caches: program.threads.len() as u16,
    };
    let machines = [timed::Machine { upper, lower: None }];
    let options = timed::Options {
        cores: options(protocol).cores,
        runs,
        seed: 0,
    };
    timed::observe(&machines, program, &options, &mut || true)
        .expect("the program can be simulated")
}

/// Runs every mix of all classic programs of at most two threads in the simulator, with random delays.
#[test]
fn simulated_mixes_keep_the_guarantee() {
    for text in [SO, SO_STRICT, CORD, WB, SO_TSO, CORD_TSO, WB_TSO] {
        let protocol = read(text);
        let model = protocol.guarantee.model.expect("a guarantee");
        let (mut programs, mut outcome_count) = (0, 0);
        for program in classic().into_iter().filter(|p| p.threads.len() <= 2) {
            let allowed = allowed(&program, model).expect("a small program");
            for mixed in mixed_programs(&protocol, &program) {
                let observed = simulate(&protocol, &mixed, 3);
                let context = format!("{}: {}", protocol.name, mixed.name);
                assert_eq!((observed.runs, &observed.failure), (3, &None), "{context}");
                let forbidden = observed
                    .counts
                    .keys()
                    .find(|outcome| !allowed.contains(outcome));
                assert_eq!(forbidden, None, "{context}");
                programs += 1;
                outcome_count += observed.counts.len();
            }
        }
        let context = format!("{}: {programs}, {outcome_count}", protocol.name);
        assert!(
            programs > 300 && 2 * outcome_count > 3 * programs,
            "{context}"
        );
    }
}

/// A completed store may still be in flight when its thread performs an atomic access to the same line. The store must
/// be performed first.
#[test]
fn posted_store_is_performed_before_a_later_atomic() {
    let mp = include_str!("../../../../ordering/mp.coh");
    let test = "\
AArch64 own
{ 0:X0=x; 1:X0=x; }
P0                | P1          ;
MOV W1,#2         | MOV W1,#100 ;
STR W1,[X0]       | STR W1,[X0] ;
MOV W2,#10        |             ;
LDADD W2,W3,[X0]  |             ;
MOV W4,#7         |             ;
STR W4,[X0]       |             ;
CAS W4,W1,[X0]    |             ;
locations [0:X3; x;]
exists (0:X4=100)
";
    let program = herd::read(test).expect("a program");
    for text in [mp, SO, SO_STRICT, CORD, WB, CORD_TSO] {
        let protocol = read(text);
        let allowed = allowed(&program, Model::Rc).expect("a small program");
        let observed = simulate(&protocol, &program, 100);
        assert_eq!(observed.failure, None, "{}", protocol.name);
        let forbidden = observed
            .counts
            .keys()
            .find(|outcome| !allowed.contains(outcome));
        let forbidden_text = forbidden.map(|outcome| program.format_outcome(outcome));
        assert_eq!(forbidden_text, None, "{}", protocol.name);
        assert!(observed.counts.len() > 2, "{}", protocol.name);
    }
}

/// Each write sends the messages of the access that its letter denotes.
#[test]
fn simulated_writes_use_the_access_of_their_letter() {
    let (protocol, program) = (read(CORD), named("MP+popl+poap").expect("a shape"));
    let sent = |mix: &str| {
        let mut mixes = mixed_programs(&protocol, &program).into_iter();
        let mixed = mixes.find(|mixed| mixed.name.ends_with(&format!(" {mix}")));
        let observed = simulate(&protocol, &mixed.expect("a mix"), 10);
        ["Relaxed", "Release", "GetM", "Write"].map(|name| observed.messages[name])
    };
    assert_eq!(sent("tt"), [10, 10, 0, 0]);
    assert_eq!(sent("ta"), [10, 0, 0, 10]);
    assert_eq!(sent("at"), [0, 10, 0, 10]);
    let [relaxed, release, writable, written] = sent("tb");
    assert_eq!((relaxed, release, written), (10, 0, 0));
    assert!(writable > 0);
    let swaps = named("2+2W+swps").expect("a shape");
    let written_back = mixed_programs(&protocol, &swaps).into_iter();
    let written_back = written_back.filter(|mixed| mixed.name.ends_with(" bbbb"));
    let observed: Vec<SeedOutcomes> = written_back
        .map(|mixed| simulate(&protocol, &mixed, 10))
        .collect();
    assert_eq!(observed[0].messages["Atomic"], 0);
    assert!(observed[0].messages["GetM"] > 10);
}

/// A fence precedes a release that is written back. If the fence does not wait, the store before it may be performed
/// too late.
#[test]
fn simulation_finds_a_fence_fault_of_other_stores() {
    let original = "fence if count(store_homes + unacked_homes) == 0";
    assert!(CORD.contains(original));
    let protocol = read(&CORD.replace(original, "fence if count(store_homes) == 0"));
    let program = named("MP+popl+poap").expect("a shape");
    let allowed = allowed(&program, Model::Rc).expect("a small program");
    let mut failing = Vec::new();
    for mixed in mixed_programs(&protocol, &program) {
        let observed = simulate(&protocol, &mixed, 400);
        if observed
            .counts
            .keys()
            .any(|outcome| !allowed.contains(outcome))
        {
            failing.push(mixed.name);
        }
    }
    assert_eq!(failing, ["MP+popl+poap tb", "MP+popl+poap ta"]);
}

/// Returns the mixes of a program with an outcome that release consistency forbids, or with another violation, and its
/// description.
fn refutations(text: &str, name: &str) -> Vec<(String, String)> {
    let copy = include_str!("../../../../litmus/ordering/SB+polas+copy.litmus");
    let program = named(name).unwrap_or_else(|| herd::read(copy).expect("a program"));
    assert_eq!(program.name, name);
    let protocol = read(text);
    let model = Model::Rc;
    let allowed = allowed(&program, model).expect("a small program");
    let mut found = Vec::new();
    let kinds = (program.threads.len() as u8).into();
    for mix in all_mixes(&protocol, &kinds, &program) {
        let mixed = with_mix(&program, &mix);
        let failure = match run(
            &protocol,
            home(&protocol),
            &mixed,
            &options(&protocol),
            &mut || true,
        ) {
            RunResult::Outcomes { outcomes, .. } => {
                let forbidden = outcomes.iter().find(|outcome| !allowed.contains(outcome));
                forbidden.map(|outcome| program.format_outcome(outcome))
            }
            RunResult::Stuck { .. } => Some("waits for ever".to_string()),
            other => Some(format!("{other:?}")),
        };
        found.extend(failure.map(|description| (format_mix(&mix), description)));
    }
    found
}

/// Each fault is refuted by the mixes that use the faulty part, and all its refutations have the same description.
#[test]
fn store_faults_are_refuted_by_the_mixes_that_use_them() {
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
                "fence if count(store_homes + unacked_homes) == 0",
                "fence if count(store_homes) == 0",
            )],
            "MP+popl+poap",
            &["tb", "ta"],
            "1:X0=1; 1:X2=0",
        ),
        (
            "a store is acknowledged before the copies are gone",
            &[
                (
                    "sharers := {} | Write_AD",
                    "sharers := {}, send StoreAck | Write_AD",
                ),
                (
                    "owner := none | Write_AD",
                    "owner := none, send StoreAck | Write_AD",
                ),
                (
                    "write deferred, send StoreAck to requestor, ",
                    "write deferred, ",
                ),
            ],
            "SB+polas+copy",
            &["aa", "ta", "at"],
            "a write completes although the home has not performed it",
        ),
        (
            "an atomic access finds what a copy has overwritten",
            &[(
                "write, send OldValue to requestor, write deferred",
                "send OldValue to requestor, write, write deferred",
            )],
            "2+2W+swps",
            &["bttt"],
            "OldValue carries a stale copy",
        ),
        (
            "an atomic access writes before it tells what it found",
            &[(
                "Atomic if count(sharers - { sender }) == 0 | send OldValue, write",
                "Atomic if count(sharers - { sender }) == 0 | write, send OldValue",
            )],
            "2+2W+swps",
            &["tttt"],
            "",
        ),
    ];
    let mut missed = Vec::new();
    for (description, words, name, mixes, expected) in faults {
        let mut text = CORD.to_string();
        for (original, replacement) in words {
            assert!(text.contains(original), "{description}");
            text = text.replace(original, replacement);
        }
        let found = refutations(&text, name);
        let refuting_mixes = found
            .iter()
            .map(|(mix, _)| mix.as_str())
            .collect::<Vec<_>>();
        if !mixes.iter().all(|mix| refuting_mixes.contains(mix))
            || !found.iter().all(|(_, text)| text.contains(expected))
        {
            missed.push(format!("{description}: {found:?}"));
        }
        assert_eq!(refutations(CORD, name), [], "{name}");
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}
