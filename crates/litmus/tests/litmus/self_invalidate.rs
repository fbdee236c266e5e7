//! Caches whose copies may be stale, with a protocol that guarantees only a memory model.

use cohkit_litmus::axioms::{allowed, Model};
use cohkit_litmus::cores::CoreKind;
use cohkit_litmus::herd;
use cohkit_litmus::lines::Lines;
use cohkit_litmus::program::Program;
use cohkit_litmus::run::{run_on, Options, RunResult};
use cohkit_litmus::timed::{self, observe, Level, Machine};
use cohkit_litmus::warm_caches::{conformance_programs, named};
use cohkit_protocol::protocol::{Home, Protocol};
use cohkit_protocol::text;
use std::collections::BTreeSet;

/// Caches that drop all copies at an acquire, and are not invalidated.
const TEXT: &str = include_str!("../../../../protocols/self-invalidate.coh");

/// Returns the protocol with one replacement in its file.
fn with_change(from: &str, to: &str) -> Protocol {
    assert_eq!(TEXT.matches(from).count(), 1, "{from}");
    text::parse(&TEXT.replace(from, to)).expect("the protocol is valid")
}

/// Runs each program of at most `threads` threads and passes it with its result to `visit`, until `visit` returns
/// false.
fn run(
    protocol: &Protocol,
    threads: usize,
    max_spontaneous_evictions: u8,
    visit: &mut dyn FnMut(&Program, RunResult) -> bool,
) {
    let Home::Controller(home) = &protocol.home else {
        unreachable!("it is written as rows")
    };
    let programs = conformance_programs(protocol).into_iter();
    let programs = programs.filter(|program| program.threads.len() <= threads);
    for programs in Lines::groups(protocol, programs.collect()) {
        let threads = programs[0].threads.len() as u8;
        let locations = programs.iter().map(|p| p.locations.len()).max();
        let options = Options {
            cores: CoreKind::Relaxed(
                protocol
                    .program_order
                    .expect("the protocol declares its program order"),
            ),
            max_spontaneous_evictions,
            ..Options::default()
        };
        let locations = locations.unwrap_or(0) as u8;
        let mut lines = Lines::new(protocol, home, threads, locations, options.channel_capacity);
        for program in programs {
            let result = run_on(&mut lines, &program, &options, &mut || true);
            if !visit(&program, result) {
                return;
            }
        }
    }
}

/// The protocol forbids no outcome that release consistency allows, except for atomic accesses.
#[test]
fn two_thread_programs_show_exactly_the_rc_outcomes() {
    let protocol = text::parse(TEXT).expect("the protocol is valid");
    let mut programs = 0;
    run(&protocol, 2, 1, &mut |program, found| {
        let RunResult::Outcomes { outcomes, .. } = found else {
            panic!("{}: {found:?}", program.name)
        };
        let allowed = allowed(program, Model::Rc).expect("the program is small enough");
        // The home performs an atomic access in one step. The model also allows its write to come later than its read.
        match program.name.contains("+swp") {
            true => assert!(outcomes.is_subset(&allowed), "{}", program.name),
            false => assert_eq!(outcomes, allowed, "{}", program.name),
        }
        programs += 1;
        true
    });
    assert!(programs > 100, "{programs}");
}

/// After a branch on a loaded value, `ISB` prevents a later read from hitting an older copy. Threads have such copies
/// because they have read both locations before.
#[test]
fn isb_after_a_branch_prevents_stale_reads() {
    let protocol = text::parse(TEXT).expect("the protocol is valid");
    let Home::Controller(home) = &protocol.home else {
        unreachable!("it is written as rows")
    };
    let mut has_stale_read = Vec::new();
    for instruction in ["ISB", "NOP"] {
        let test = format!(
            "AArch64 MP+dmb.st+ctrl\n{{ 0:X1=x; 0:X3=y; 1:X1=y; 1:X3=x; }}\n P0 | P1 ;\n MOV W0,#1 | LDR W4,[X3] ;\n \
             STR W0,[X1] | LDR W0,[X1] ;\n DMB ST | CBNZ W0,L ;\n STR W0,[X3] | L: {instruction} ;\n | LDR W2,[X3] ;\n\
             exists (1:X0=1 /\\ 1:X2=0)\n"
        );
        let program =
            herd::read(&test).unwrap_or_else(|e| panic!("{}", e.render("t", &test, false)));
        let options = Options {
            cores: CoreKind::Relaxed(
                protocol
                    .program_order
                    .expect("the protocol declares its program order"),
            ),
            ..Options::default()
        };
        let result = run_on(
            &mut Lines::new(&protocol, home, 2, 2, options.channel_capacity),
            &program,
            &options,
            &mut || true,
        );
        let RunResult::Outcomes { outcomes, .. } = result else {
            panic!("{result:?}")
        };
        let allowed = allowed(&program, Model::Rc).expect("the program is small enough");
        assert!(outcomes.is_subset(&allowed), "{instruction}");
        has_stale_read.push(outcomes.iter().any(|outcome| program.holds(outcome)));
    }
    assert_eq!(has_stale_read, [false, true]);
}

/// Returns the names of the programs that have an outcome that release consistency forbids, or do not complete.
fn failing_programs(protocol: &Protocol) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    run(protocol, 2, 0, &mut |program, found| {
        let allowed = allowed(program, Model::Rc).expect("the program is small enough");
        let is_allowed =
            matches!(&found, RunResult::Outcomes { outcomes, .. } if outcomes.is_subset(&allowed));
        if !is_allowed {
            names.insert(program.name.clone());
        }
        true
    });
    names
}

/// Each rule of the protocol is necessary: without it some program has a forbidden outcome.
#[test]
fn classic_shapes_refute_each_removed_rule() {
    let transitions = "every V becomes I, every IV becomes IN";
    // Copies are not dropped: the flag is current, but the data that it announces may be stale.
    let without_drop = failing_programs(&with_change(transitions, "every IV becomes IN"));
    assert!(
        without_drop.iter().any(|name| name.starts_with("MP")),
        "{without_drop:?}"
    );
    // A line in flight at the acquire is kept, although it left the home earlier.
    let with_late_line = failing_programs(&with_change(
        "IN      | Data                | done           | I",
        "IN      | Data                |                | V",
    ));
    assert!(!with_late_line.is_empty());
    // An acquiring read hits a cached copy, so it precedes a release that it must follow.
    let hit = "I V     | acquire read_once   | send ReadOnce  | IR";
    let with_acquire_hit = failing_programs(&with_change(
        hit,
        "I       | acquire read_once   | send ReadOnce  | IR\n  V | acquire read_once | | stay",
    ));
    assert!(!with_acquire_hit.is_empty());
    println!("{without_drop:?}\n{with_late_line:?}\n{with_acquire_hit:?}");
}

/// Runs a program of two threads `runs` times in the simulator.
fn simulate(protocol: &Protocol, program: &Program, runs: u64) -> timed::SeedOutcomes {
    let Home::Controller(home) = &protocol.home else {
        unreachable!("it is written as rows")
    };
    let upper = Level {
        protocol,
        home: home.clone(),
        caches: program.threads.len() as u16,
    };
    let machine = Machine { upper, lower: None };
    let options = timed::Options {
        cores: CoreKind::Relaxed(
            protocol
                .program_order
                .expect("the protocol declares its program order"),
        ),
        runs,
        seed: 0,
    };
    observe(&[machine], program, &options, &mut || true).expect("the program can be simulated")
}

/// The simulator shows forbidden outcomes of a cache that keeps its copies at an acquire.
#[test]
fn simulated_outcomes_are_allowed_and_show_kept_copies() {
    let protocol = text::parse(TEXT).expect("the protocol is valid");
    let faulty = with_change(
        "every V becomes I, every IV becomes IN",
        "every IV becomes IN",
    );
    let forbidden = |observed: &timed::SeedOutcomes, program: &Program| {
        assert_eq!(observed.failure, None, "{}", program.name);
        let allowed = allowed(program, Model::Rc).expect("the program is small enough");
        observed
            .counts
            .keys()
            .any(|outcome| !allowed.contains(outcome))
    };
    let mut forbidden_count = 0;
    for name in [
        "MP",
        "MP+popl+poap",
        "MP+dmb.sys",
        "SB+dmb.sys",
        "SB+polas",
        "LB",
        "R+dmb.sys",
    ] {
        let warm = named(&format!("{name}+warm")).expect("a known shape");
        let observed = simulate(&protocol, &warm, 60);
        assert!(
            !forbidden(&observed, &warm),
            "{name}: {:?}",
            observed.counts
        );
        assert!(observed.counts.len() > 1, "{name}: {:?}", observed.counts);
        forbidden_count += usize::from(forbidden(&simulate(&faulty, &warm, 200), &warm));
    }
    assert!(forbidden_count > 1, "{forbidden_count}");
}
