//! Litmus tests on coherent systems in Verilator: outcomes are among those of the exhaustive run.

use crate::agents::Printed;
use crate::systems::{printed_files, program, seed_faults, Fault};
use cohkit_litmus::cores::CoreKind;
use cohkit_litmus::cycles::named;
use cohkit_litmus::kinds::Kinds;
use cohkit_litmus::port_runs::{observe, PortRunError};
use cohkit_litmus::program::{Outcome, Program};
use cohkit_litmus::run::{run, Options, RunResult};
use cohkit_litmus::timed::SeedOutcomes;
use cohkit_protocol::orders::Orders;
use cohkit_rtl::systems::build::{self, units, Bench};
use cohkit_rtl::systems::directory::{Directory, Entries};
use cohkit_rtl::systems::ports::SystemPorts;
use cohkit_rtl::systems::sizes::Sizes;
use cohkit_testing::require::require;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// Protocols and numbers of threads with shapes: plain, and with fences, dependencies, acquires and releases.
/// `tools/rtl_litmus` runs more of them.
const SHAPES: [(&str, u16, &[&str]); 4] = [
    (
        "msi",
        2,
        &[
            "SB+dmb.sys",
            "MP",
            "LB+datas",
            "S+popl+poal",
            "R",
            "2+2W",
            "SB+swps",
        ],
    ),
    ("msi", 3, &["WRC+poal+poaa", "ISA2", "3.SB"]),
    ("msi", 4, &["IRIW+poaas", "4.SB"]),
    ("tilelink", 2, &["SB", "MP", "LB+datas", "R", "2+2W"]),
];

/// Number of runs of each shape.
const RUNS: u64 = 300;

/// Shape with this name.
fn shape(name: &str) -> Program {
    named(name).unwrap_or_else(|| panic!("no shape {name}"))
}

/// Outcomes of a program in every order of events.
fn explored(printed: &Printed, program: &Program, cores: CoreKind) -> BTreeSet<Outcome> {
    let options = Options {
        cores,
        ..Options::default()
    };
    match run(
        &printed.protocol,
        printed.home(),
        program,
        &options,
        &mut || true,
    ) {
        RunResult::Outcomes { outcomes, .. } => outcomes,
        other => panic!("{}: {other:?}", program.name),
    }
}

/// Outcomes of a program on a system.
fn observed(
    printed: &Printed,
    system: &Path,
    (program, cores): (&Program, CoreKind),
    runs: u64,
    fault: u32,
) -> SeedOutcomes {
    let stop = AtomicBool::new(false);
    let threads = program.threads.len();
    let mut ports = SystemPorts::new(system, threads as u64, fault, &stop);
    let kinds = Kinds::from(threads as u8);
    observe(
        &mut ports,
        &printed.protocol,
        &kinds,
        (program, cores),
        (0, runs),
        &mut || true,
    )
    .unwrap_or_else(|error| panic!("{}: {error:?}", program.name))
}

/// Program of a system of `msi` with faults.
fn msi(caches: u16, faults: &[Fault]) -> (Printed, PathBuf) {
    system("msi", caches, faults)
}

/// Program of a system of a shipped protocol with faults.
fn system(name: &str, caches: u16, faults: &[Fault]) -> (Printed, PathBuf) {
    let printed = Printed::shipped(name, &[caches]);
    let (mut files, mut units) = (printed_files(&printed, Directory::Full), units());
    seed_faults(faults, &mut files, &mut units);
    let options = build::Options {
        bench: Bench::Ports,
        directory: Directory::Full,
        entries: Entries::default(),
        sizes: Sizes::default(),
        waveforms: false,
    };
    let program = program(&printed, &units, &files, options);
    (printed, program)
}

/// Every outcome of the hardware is one of the exhaustive run, and on two caches each of these is seen.
#[test]
fn hardware_has_the_outcomes_of_the_exhaustive_run() {
    if !require("verilator") {
        return;
    }
    for (protocol, caches, shapes) in SHAPES {
        let (printed, system) = system(protocol, caches, &[]);
        for name in shapes {
            let program = shape(name);
            let observed = observed(&printed, &system, (&program, CoreKind::InOrder), RUNS, 0);
            assert_eq!(observed.failure, None, "{name}");
            assert_eq!(observed.runs, RUNS, "{name}");
            let explored = explored(&printed, &program, CoreKind::InOrder);
            let seen: BTreeSet<Outcome> = observed.counts.keys().cloned().collect();
            let again = format!("cohkit litmus {name} --protocol {protocol} --rtl-runs {RUNS}");
            assert!(seen.is_subset(&explored), "{seen:?}\n{again}");
            println!(
                "{protocol}, {name}: {} of {} outcomes",
                seen.len(),
                explored.len()
            );
            if caches == 2 {
                assert_eq!(seen, explored, "{again}");
            }
        }
    }
}

/// Shapes with out-of-order cores: plain ones, whose accesses the port takes together, and one whose fences keep all
/// accesses in order.
const OVERLAPPING: [&str; 6] = ["SB", "MP", "LB", "2+2W", "S", "MP+dmb.sys"];

/// Threads with several outstanding accesses have the outcomes of out-of-order cores, also such that in-order cores do
/// not have, and fences exclude these.
#[test]
fn outstanding_accesses_show_out_of_order_outcomes() {
    if !require("verilator") {
        return;
    }
    let (printed, system) = msi(2, &[]);
    let cores = CoreKind::Relaxed(Orders::default());
    for name in OVERLAPPING {
        let program = shape(name);
        let observed = observed(&printed, &system, (&program, cores), RUNS, 0);
        assert_eq!(observed.failure, None, "{name}");
        let seen: BTreeSet<Outcome> = observed.counts.keys().cloned().collect();
        let relaxed = explored(&printed, &program, cores);
        let in_order = explored(&printed, &program, CoreKind::InOrder);
        println!("{name}: {} of {} outcomes", seen.len(), relaxed.len());
        assert!(seen.is_subset(&relaxed), "{name}: {seen:?}");
        // A fence makes the cores equal.
        assert_eq!(seen.is_subset(&in_order), relaxed == in_order, "{name}");
    }
}

/// A run depends on its seed alone, whatever ran before: each run in a program of its own has the outcome that it has
/// among others.
#[test]
fn runs_depend_on_their_seeds_alone() {
    if !require("verilator") {
        return;
    }
    const SEEDS: u64 = 60;
    let (printed, system) = msi(2, &[]);
    let (stop, kinds) = (AtomicBool::new(false), Kinds::from(2));
    for name in ["SB", "2+2W", "R"] {
        let program = shape(name);
        let mut together = SystemPorts::new(&system, 2, 0, &stop);
        let run = |ports: &mut SystemPorts, seed| {
            let protocol = &printed.protocol;
            let one = observe(
                ports,
                protocol,
                &kinds,
                (&program, CoreKind::InOrder),
                (seed, 1),
                &mut || true,
            );
            one.expect("the program runs").counts
        };
        for seed in 0..SEEDS {
            let mut alone = SystemPorts::new(&system, 2, 0, &stop);
            let (alone, together) = (run(&mut alone, seed), run(&mut together, seed));
            assert_eq!(alone, together, "{name}, seed {seed}");
        }
    }
}

/// Faults after which the program of the system ends or reports a failure, each with its words.
const FAILURES: &[(Fault, &str)] = &[
    (
        (
            "an assertion of the hardware",
            "cohkit_channel.sv",
            "assert (count_q < CountWidth'(Depth))",
            "assert (count_q < CountWidth'(Depth) && !FAULT)",
        ),
        "a message has no room",
    ),
    (
        (
            "an access without an answer",
            "cohkit_cache.sv",
            "assign rsp_valid_o = perform || done || finish;",
            "assign rsp_valid_o = (perform || done || finish) && !FAULT;",
        ),
        "an access makes no progress",
    ),
    (
        (
            "an access with two answers",
            "cohkit_cache.sv",
            "if (rsp_valid_o) valid_q[served] <= 1'b0;",
            "if (rsp_valid_o && !(FAULT && !access.write && turn_q)) valid_q[served] <= 1'b0;",
        ),
        "answers twice, or without an access",
    ),
    (
        (
            "a value without room",
            "msi_system.sv",
            "assign unexpected_o[Home] = unexpected || step && fault;",
            "assign unexpected_o[Home] = unexpected || step && (fault || FAULT);",
        ),
        "the home signals `unexpected_o`",
    ),
];

/// A failure of the hardware ends one test with its reason. The next test runs on a new system.
#[test]
fn failures_end_one_test() {
    if !require("verilator") {
        return;
    }
    let faults: Vec<Fault> = FAILURES.iter().map(|(fault, _)| *fault).collect();
    let (printed, system) = msi(2, &faults);
    let program = shape("SB");
    let (stop, kinds) = (AtomicBool::new(false), Kinds::from(2));
    for (number, ((description, ..), words)) in (1..).zip(FAILURES) {
        let mut ports = SystemPorts::new(&system, 2, number, &stop);
        for _ in 0..2 {
            let protocol = &printed.protocol;
            let seeds = (0, RUNS);
            let observed = observe(
                &mut ports,
                protocol,
                &kinds,
                (&program, CoreKind::InOrder),
                seeds,
                &mut || true,
            );
            let observed = observed.unwrap_or_else(|error| panic!("{description}: {error:?}"));
            let (failure, seed) = observed.failure.expect(description);
            println!("{description}: seed {seed}: {failure}");
            assert!(failure.contains(words), "{description}: {failure}");
        }
    }
}

/// Faults that change outcomes, each with a shape that shows it.
const FAULTS: &[(Fault, &str)] = &[
    (
        (
            "an invalidated copy is kept",
            "msi_cache_step.sv",
            "state_o = msi_cache_I;",
            "state_o = FAULT ? msi_cache_S : msi_cache_I;",
        ),
        "MP",
    ),
    (
        (
            "a modified line is not written back",
            "cohkit_home.sv",
            "if (execute && writes) phase_q <= Write;",
            "if (execute && writes && !FAULT) phase_q <= Write;",
        ),
        "MP",
    ),
    (
        (
            "a store is lost",
            "cohkit_cache.sv",
            "assign write_data  = perform && access.write || done",
            "assign write_data  = perform && access.write && !FAULT || done",
        ),
        "2+2W",
    ),
];

/// Each seeded fault shows an outcome that the exhaustive run does not have.
#[test]
fn seeded_faults_show_other_outcomes() {
    if !require("verilator") {
        return;
    }
    let faults: Vec<Fault> = FAULTS.iter().map(|(fault, _)| *fault).collect();
    let (printed, system) = msi(2, &faults);
    for (number, ((description, ..), name)) in (1..).zip(FAULTS) {
        let program = shape(name);
        let explored = explored(&printed, &program, CoreKind::InOrder);
        let is_outside = |outcome: &&Outcome| !explored.contains(*outcome);
        let cores = (&program, CoreKind::InOrder);
        let control = observed(&printed, &system, cores, RUNS, 0);
        assert_eq!(control.counts.keys().find(is_outside), None, "{name}");
        let faulty = observed(&printed, &system, cores, RUNS, number);
        let outside = faulty
            .counts
            .iter()
            .find(|(outcome, _)| is_outside(outcome));
        let (outcome, (count, seed)) =
            outside.unwrap_or_else(|| panic!("{description}: {faulty:?}"));
        let outcome = program.format_outcome(outcome);
        println!("{description}, {name}: {outcome}: {count} times, first with seed {seed}");
    }
}

/// A test with an access that processor ports lack is refused with the access.
#[test]
fn accesses_that_ports_lack_are_refused() {
    let printed = Printed::shipped("self-invalidate", &[2]);
    let kinds = Kinds::from(2);
    let refused =
        cohkit_litmus::port_runs::unsupported(&printed.protocol, &kinds, &shape("SB+swps"));
    assert_eq!(
        refused.as_deref(),
        Some("the caches of self_invalidate take part in fences, which processor ports do not request")
    );
}

/// Caches whose stores are performed by the home refuse atomic operations.
#[test]
fn caches_that_send_stores_refuse_atomic_operations() {
    if !require("verilator") {
        return;
    }
    let (printed, system) = system("write-through", 2, &[]);
    let (stop, kinds) = (AtomicBool::new(false), Kinds::from(2));
    let mut ports = SystemPorts::new(&system, 2, 0, &stop);
    let program = shape("SB+swps");
    let cores = (&program, CoreKind::InOrder);
    let protocol = &printed.protocol;
    let result = observe(&mut ports, protocol, &kinds, cores, (0, 1), &mut || true);
    match result {
        Err(PortRunError::Failed(reason)) => {
            assert!(reason.contains("no atomic operations"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
}

/// A system that cannot be run is an error, and no outcome.
#[test]
fn systems_that_end_early_are_an_error() {
    let stop = AtomicBool::new(false);
    let mut ports = SystemPorts::new(Path::new("true"), 2, 0, &stop);
    let printed = Printed::shipped("msi", &[2]);
    let kinds = Kinds::from(2);
    let program = shape("SB");
    let result = observe(
        &mut ports,
        &printed.protocol,
        &kinds,
        (&program, CoreKind::InOrder),
        (0, 1),
        &mut || true,
    );
    assert!(matches!(result, Err(PortRunError::Failed(_))), "{result:?}");
}
