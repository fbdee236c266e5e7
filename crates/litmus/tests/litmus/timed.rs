//! Shapes in the simulator: all outcomes are allowed by the models, and there is more than one.

use cohkit_litmus::axioms::{self, Model};
use cohkit_litmus::cores::CoreKind;
use cohkit_litmus::cycles::{classic, named};
use cohkit_litmus::herd;
use cohkit_litmus::models::outcomes;
use cohkit_litmus::program::Program;
use cohkit_litmus::timed::{
    clusters, observe, Level, Machine, ObserveError, Options, SeedOutcomes,
};
use cohkit_protocol::construct;
use cohkit_protocol::orders::Orders;
use cohkit_protocol::protocol::Protocol;
use cohkit_protocol::text::parse;

/// Reads the file of a shipped protocol.
fn text(name: &str) -> String {
    let root = env!("CARGO_MANIFEST_DIR");
    std::fs::read_to_string(format!("{root}/../../protocols/{name}.coh")).unwrap()
}

/// Returns a level of caches with a home for their number.
fn level(protocol: &Protocol, caches: u16) -> Level<'_> {
    Level {
        home: construct::home(protocol, caches).unwrap(),
        protocol,
        caches,
    }
}

/// Returns a machine with one cache per thread.
fn one_level<'p>(protocol: &'p Protocol, program: &Program) -> Machine<'p> {
    Machine {
        upper: level(protocol, program.threads.len() as u16),
        lower: None,
    }
}

/// Returns machines of two levels with threads on the L1s, one for each distribution of [`clusters`].
fn two_levels<'p>([upper, lower]: [&'p Protocol; 2], program: &Program) -> Vec<Machine<'p>> {
    let spread = clusters(program.threads.len() as u16).into_iter();
    let machines = spread.map(|[caches, caches_per_cluster]| Machine {
        upper: level(upper, caches),
        lower: Some(level(lower, caches_per_cluster)),
    });
    machines.collect()
}

/// Runs a program on one level of caches, with the seeds from 0 to `runs` - 1.
fn observe_one(protocol: &Protocol, program: &Program, cores: CoreKind, runs: u64) -> SeedOutcomes {
    observe_on(&[one_level(protocol, program)], program, cores, runs)
}

/// Runs a program on machines with the seeds from 0 to `runs` - 1.
fn observe_on(machines: &[Machine], program: &Program, cores: CoreKind, runs: u64) -> SeedOutcomes {
    let options = Options {
        cores,
        runs,
        seed: 0,
    };
    observe(machines, program, &options, &mut || true).unwrap()
}

/// Checks each shape on a protocol: all outcomes are allowed by the model, and there is more than one if the model
/// allows several.
fn check_outcomes(name: &str) {
    let protocol = parse(&text(name)).unwrap();
    check_each_shape((name, 40), &|shape| vec![one_level(&protocol, shape)]);
}

/// Checks each classic shape as [`check_outcomes`] does, with `runs` runs on the machines that `machines` returns.
fn check_each_shape<'p>(
    (name, runs): (&str, u64),
    machines: &dyn Fn(&Program) -> Vec<Machine<'p>>,
) {
    for shape in classic() {
        let machines = machines(&shape);
        for cores in [CoreKind::InOrder, CoreKind::StoreBuffer] {
            let observed = observe_on(&machines, &shape, cores, runs);
            assert_eq!(observed.failure, None, "{name}: {}, {cores:?}", shape.name);
            let allowed = outcomes(&shape, cores);
            for (end, (_, seed)) in &observed.counts {
                let outcome = shape.format_outcome(end);
                let test = &shape.name;
                assert!(
                    allowed.contains(end),
                    "{name}: {test}, {cores:?}, seed {seed}: {outcome}"
                );
            }
            let minimum = allowed.len().min(2);
            assert!(
                observed.counts.len() >= minimum,
                "{name}: {}, {cores:?}",
                shape.name
            );
        }
    }
}

/// A simulation that always has the same order of events would show a single outcome.
#[test]
fn simulated_msi_shows_several_allowed_outcomes() {
    check_outcomes("msi");
}

/// A simulation that always has the same order of events would show a single outcome.
#[test]
fn simulated_mesi_shows_several_allowed_outcomes() {
    check_outcomes("mesi");
}

/// Threads share L2s in all distributions.
#[test]
fn two_levels_show_several_allowed_outcomes() {
    let [upper, lower] = ["mesi", "mesi-l1"].map(|name| parse(&text(name)).unwrap());
    check_each_shape(("two levels", 24), &|shape| {
        two_levels([&upper, &lower], shape)
    });
}

/// Fault: the L2 acknowledges a recall before the L1 that owns the line has invalidated its copy.
#[test]
fn stale_l1_line_is_found_with_its_seed() {
    let upper = parse(&text("mesi")).unwrap();
    let lower = text("mesi-l1");
    let row = "send Inv to owner, left := 1, owner := none                   | RI";
    assert_eq!(lower.matches(row).count(), 1);
    let faulty_row = "acknowledge clean_invalidate, owner := none | LI";
    let lower = parse(&lower.replace(row, faulty_row)).unwrap();
    let shape = named("MP").unwrap();
    let machines = two_levels([&upper, &lower], &shape);
    let observed = observe_on(&machines, &shape, CoreKind::InOrder, 1000);
    let (failure, seed) = observed.failure.unwrap();
    assert!(failure.contains("l1 0.0"), "{failure}");
    let options = Options {
        cores: CoreKind::InOrder,
        runs: 1,
        seed,
    };
    let rerun = observe(&machines, &shape, &options, &mut || true).unwrap();
    assert_eq!(rerun.failure, Some((failure, seed)));
}

/// A home constructed from a policy has the allowed outcomes, as one written by hand.
#[test]
fn policy_home_shows_the_allowed_outcomes() {
    let protocol = parse(&text("msi-policy")).unwrap();
    let shape = named("SB").unwrap();
    let observed = observe_one(&protocol, &shape, CoreKind::InOrder, 100);
    assert!(observed
        .counts
        .keys()
        .eq(outcomes(&shape, CoreKind::InOrder).iter()));
}

/// Store buffers have an effect: outcomes occur that total store order allows and sequential consistency forbids.
#[test]
fn store_buffers_show_tso_outcomes() {
    let protocol = parse(&text("mesi")).unwrap();
    for name in ["SB", "R", "RWC", "3.SB", "Z6.4", "SB+dmb.sy+po", "SB+polqs"] {
        let shape = named(name).unwrap();
        let holds =
            |observed: &SeedOutcomes| observed.counts.keys().any(|outcome| shape.holds(outcome));
        assert!(
            holds(&observe_one(&protocol, &shape, CoreKind::StoreBuffer, 300)),
            "{name}"
        );
        assert!(
            !holds(&observe_one(&protocol, &shape, CoreKind::InOrder, 300)),
            "{name}"
        );
    }
}

/// Out-of-order windows have an effect: outcomes occur that total store order forbids, but none that release
/// consistency forbids.
#[test]
fn windows_show_outcomes_that_tso_forbids() {
    let protocol = parse(&text("mesi")).unwrap();
    let windows = CoreKind::Relaxed(Orders::default());
    for (name, weak) in [
        ("MP", true),
        ("LB", true),
        ("S", true),
        ("MP+poll+poaa", false),
        ("SB+dmb.sys", false),
        ("IRIW+poaas", false),
    ] {
        let shape = named(name).unwrap();
        let observed = observe_one(&protocol, &shape, windows, 200);
        assert_eq!(observed.failure, None, "{name}");
        let allowed = axioms::outcomes(&shape, Model::Rc).unwrap();
        assert!(
            observed
                .counts
                .keys()
                .all(|outcome| allowed.contains(outcome)),
            "{name}"
        );
        assert_eq!(
            observed.counts.keys().any(|outcome| shape.holds(outcome)),
            weak,
            "{name}"
        );
    }
}

/// All executions of this test have the same outcome, so one wrong value fails the test.
#[test]
fn instructions_and_initial_values_have_their_semantics() {
    let test = "\
AArch64 all
{ x=5; y=-3; 0:X1=x; 0:X2=y; 1:X1=x; }
P0                 | P1              ;
MOV W0,#2          | MOV W0,#10      ;
LDADD W0,W3,[X1]   | LDADD W0,W3,[X1];
SWPAL W0,W4,[X2]   |                 ;
MOV W5,#2          |                 ;
CAS W5,W0,[X2]     |                 ;
MOV W6,#9          |                 ;
CAS W6,W0,[X2]     |                 ;
forall ([x]=17 /\\ [y]=2 /\\ 0:X4=-3 /\\ 0:X5=2 /\\ 0:X6=2)
";
    let program = herd::read(test).unwrap_or_else(|e| panic!("{}", e.render("t", test, false)));
    let protocol = parse(&text("msi")).unwrap();
    for cores in [CoreKind::InOrder, CoreKind::StoreBuffer] {
        let observed = observe_one(&protocol, &program, cores, 100);
        assert!(
            observed.counts.keys().all(|outcome| program.holds(outcome)),
            "{:?}",
            observed.counts
        );
        assert!(
            observed.counts.keys().eq(outcomes(&program, cores).iter()),
            "{:?}",
            observed.counts
        );
    }
}

/// Fault: a cache keeps its copy on an invalidation.
#[test]
fn protocol_faults_are_reported_with_their_seed() {
    let text = text("msi");
    let rows = text.lines();
    let mut rows = rows.filter(|row| row.trim_start().starts_with("S ") && row.contains("| Inv "));
    let row = rows.next().unwrap();
    let faulty_row = format!("{}| stay", &row[..row.rfind('|').unwrap()]);
    let protocol = parse(&text.replace(row, &faulty_row)).unwrap();
    let shape = named("MP").unwrap();
    let (failure, seed) = observe_one(&protocol, &shape, CoreKind::InOrder, 1000)
        .failure
        .unwrap();
    assert!(failure.contains("write"), "{failure}");
    let machines = [one_level(&protocol, &shape)];
    let options = Options {
        cores: CoreKind::InOrder,
        runs: 1,
        seed,
    };
    let rerun = observe(&machines, &shape, &options, &mut || true).unwrap();
    assert_eq!(rerun.failure, Some((failure, seed)));
}

/// Caches without a writable copy cannot perform atomic accesses; the reason is reported.
#[test]
fn written_through_caches_run_all_but_atomic_accesses() {
    let protocol = parse(&text("write-through")).unwrap();
    let (mut ran, mut rejected) = (0, 0);
    for shape in classic() {
        let machines = [one_level(&protocol, &shape)];
        let options = Options {
            cores: CoreKind::InOrder,
            runs: 20,
            seed: 0,
        };
        match observe(&machines, &shape, &options, &mut || true) {
            Err(ObserveError::Cannot(reason)) => {
                assert!(reason.contains("in the copies of their caches"), "{reason}");
                rejected += 1;
            }
            Ok(observed) => {
                assert_eq!(observed.failure, None, "{}", shape.name);
                let allowed = outcomes(&shape, CoreKind::InOrder);
                for end in observed.counts.keys() {
                    assert!(
                        allowed.contains(end),
                        "{}: {}",
                        shape.name,
                        shape.format_outcome(end)
                    );
                }
                ran += 1;
            }
            Err(other) => unreachable!("nobody interrupts: {other:?}"),
        }
    }
    assert!(ran > 100 && rejected > 5, "{ran}, {rejected}");
}

/// Stores that are ordered at the homes, without caches.
const ORDERED: &str = include_str!("../../../../tests/homes/ordered-at-homes.coh");

/// Runs each classic program `runs` times on a protocol, with cores that keep its declared orders. Returns the total
/// number of outcomes seen and the total allowed by release consistency, or the first program with another outcome.
fn run_classic(text: &str, runs: u64) -> Result<(usize, usize), String> {
    let protocol = parse(text).unwrap();
    let cores = CoreKind::Relaxed(
        protocol
            .program_order
            .expect("the protocol declares its program order"),
    );
    let (mut sum, mut programs) = ((0, 0), 0);
    for shape in classic() {
        let machines = [one_level(&protocol, &shape)];
        let options = Options {
            cores,
            runs,
            seed: 0,
        };
        let observed = match observe(&machines, &shape, &options, &mut || true) {
            Ok(observed) => observed,
            Err(ObserveError::Cannot(reason)) => {
                assert!(reason.contains("in the copies of their caches"), "{reason}");
                continue;
            }
            Err(other) => unreachable!("nobody interrupts: {other:?}"),
        };
        let name = &shape.name;
        if let Some((failure, seed)) = observed.failure {
            return Err(format!("{name}, seed {seed}: {failure}"));
        }
        let allowed = axioms::allowed(&shape, Model::Rc).unwrap();
        for (end, (_, seed)) in &observed.counts {
            if !allowed.contains(end) {
                return Err(format!(
                    "{name}, seed {seed}: {}",
                    shape.format_outcome(end)
                ));
            }
        }
        sum = (sum.0 + observed.counts.len(), sum.1 + allowed.len());
        programs += 1;
    }
    assert!(programs > 150, "{programs}");
    Ok(sum)
}

/// The random delays show most of the allowed outcomes.
#[test]
fn simulated_home_ordered_stores_are_release_consistent() {
    let (observed, allowed) = run_classic(ORDERED, 60).unwrap();
    assert!(observed * 3 > allowed * 2, "{observed} of {allowed}");
}

/// The random delays also show most of the allowed outcomes on the protocols of `ordering`, with fewer runs.
#[test]
fn written_through_stores_are_release_consistent() {
    for name in ["so", "so-strict", "seq", "cord", "wb"] {
        let root = env!("CARGO_MANIFEST_DIR");
        let text = std::fs::read_to_string(format!("{root}/../../ordering/{name}.coh")).unwrap();
        let (observed, allowed) =
            run_classic(&text, 20).unwrap_or_else(|reason| panic!("{name}: {reason}"));
        assert!(observed * 3 > allowed, "{name}: {observed} of {allowed}");
    }
}

/// Each fault drops one wait of the verified protocol.
#[test]
fn simulation_finds_faults_of_the_order_at_homes() {
    for (original, replacement) in [
        ("needs = count(touched + waiting - { home })", "needs = 0"),
        (
            "Release if arrived[sender][epoch] == stores and served",
            "Release if served",
        ),
        (" and told[sender][epoch] == needs", ""),
        ("acquire if count(waiting) == 0", "acquire"),
    ] {
        assert_eq!(ORDERED.matches(original).count(), 1, "{original}");
        let found = run_classic(&ORDERED.replace(original, replacement), 200);
        assert!(found.is_err(), "{original}");
    }
}
