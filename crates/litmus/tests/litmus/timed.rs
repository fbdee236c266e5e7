//! Shapes in the simulator: all outcomes are allowed by the models, and there is more than one.

use cohkit_litmus::axioms::{self, Model};
use cohkit_litmus::cores::Cores;
use cohkit_litmus::cycles::{classic, named};
use cohkit_litmus::herd;
use cohkit_litmus::models::ends;
use cohkit_litmus::program::Program;
use cohkit_litmus::timed::{
    clusters, observe, Level, Machine, ObserveError, Options, SeedOutcomes,
};
use cohkit_protocol::construct;
use cohkit_protocol::orders::Orders;
use cohkit_protocol::protocol::Protocol;
use cohkit_protocol::text::parse;

fn text(name: &str) -> String {
    let root = env!("CARGO_MANIFEST_DIR");
    std::fs::read_to_string(format!("{root}/../../protocols/{name}.coh")).unwrap()
}

fn level(protocol: &Protocol, caches: u16) -> Level<'_> {
    Level {
        home: construct::home(protocol, caches).unwrap(),
        protocol,
        caches,
    }
}

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

fn observe_one(protocol: &Protocol, program: &Program, cores: Cores, runs: u64) -> SeedOutcomes {
    observe_on(&[one_level(protocol, program)], program, cores, runs)
}

fn observe_on(machines: &[Machine], program: &Program, cores: Cores, runs: u64) -> SeedOutcomes {
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

fn check_each_shape<'p>(
    (name, runs): (&str, u64),
    machines: &dyn Fn(&Program) -> Vec<Machine<'p>>,
) {
    for shape in classic() {
        let machines = machines(&shape);
        for cores in [Cores::InOrder, Cores::StoreBuffer] {
            let observed = observe_on(&machines, &shape, cores, runs);
            assert_eq!(observed.failure, None, "{name}: {}, {cores:?}", shape.name);
            let allowed = ends(&shape, cores);
            for (end, (_, seed)) in &observed.ends {
                let outcome = shape.format_outcome(end);
                let test = &shape.name;
                assert!(
                    allowed.contains(end),
                    "{name}: {test}, {cores:?}, seed {seed}: {outcome}"
                );
            }
            let minimum = allowed.len().min(2);
            assert!(
                observed.ends.len() >= minimum,
                "{name}: {}, {cores:?}",
                shape.name
            );
        }
    }
}

#[test]
fn simulated_msi_shows_several_allowed_outcomes() {
    check_outcomes("msi");
}

#[test]
fn simulated_mesi_shows_several_allowed_outcomes() {
    check_outcomes("mesi");
}

#[test]
fn two_levels_show_several_allowed_outcomes() {
    let [upper, lower] = ["mesi", "mesi-l1"].map(|name| parse(&text(name)).unwrap());
    check_each_shape(("two levels", 24), &|shape| {
        two_levels([&upper, &lower], shape)
    });
}

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
    let observed = observe_on(&machines, &shape, Cores::InOrder, 1000);
    let (failure, seed) = observed.failure.unwrap();
    assert!(failure.contains("l1 0.0"), "{failure}");
    let options = Options {
        cores: Cores::InOrder,
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
    let observed = observe_one(&protocol, &shape, Cores::InOrder, 100);
    assert!(observed.ends.keys().eq(ends(&shape, Cores::InOrder).iter()));
}

/// Store buffers have an effect: outcomes occur that total store order allows and sequential consistency forbids.
#[test]
fn store_buffers_show_tso_outcomes() {
    let protocol = parse(&text("mesi")).unwrap();
    for name in ["SB", "R", "RWC", "3.SB", "Z6.4", "SB+dmb.sy+po", "SB+polqs"] {
        let shape = named(name).unwrap();
        let holds = |observed: &SeedOutcomes| observed.ends.keys().any(|end| shape.holds(end));
        assert!(
            holds(&observe_one(&protocol, &shape, Cores::StoreBuffer, 300)),
            "{name}"
        );
        assert!(
            !holds(&observe_one(&protocol, &shape, Cores::InOrder, 300)),
            "{name}"
        );
    }
}

/// Out-of-order windows have an effect: outcomes occur that total store order forbids, but none that release
/// consistency forbids.
#[test]
fn windows_show_outcomes_that_tso_forbids() {
    let protocol = parse(&text("mesi")).unwrap();
    let windows = Cores::Relaxed(Orders::default());
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
            observed.ends.keys().all(|end| allowed.contains(end)),
            "{name}"
        );
        assert_eq!(
            observed.ends.keys().any(|end| shape.holds(end)),
            weak,
            "{name}"
        );
    }
}

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
    for cores in [Cores::InOrder, Cores::StoreBuffer] {
        let observed = observe_one(&protocol, &program, cores, 100);
        assert!(
            observed.ends.keys().all(|end| program.holds(end)),
            "{:?}",
            observed.ends
        );
        assert!(
            observed.ends.keys().eq(ends(&program, cores).iter()),
            "{:?}",
            observed.ends
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
    let (failure, seed) = observe_one(&protocol, &shape, Cores::InOrder, 1000)
        .failure
        .unwrap();
    assert!(failure.contains("write"), "{failure}");
    let machines = [one_level(&protocol, &shape)];
    let options = Options {
        cores: Cores::InOrder,
        runs: 1,
        seed,
    };
    let rerun = observe(&machines, &shape, &options, &mut || true).unwrap();
    assert_eq!(rerun.failure, Some((failure, seed)));
}

#[test]
fn written_through_caches_run_all_but_atomic_accesses() {
    let protocol = parse(&text("write-through")).unwrap();
    let (mut ran, mut rejected) = (0, 0);
    for shape in classic() {
        let machines = [one_level(&protocol, &shape)];
        let options = Options {
            cores: Cores::InOrder,
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
                let allowed = ends(&shape, Cores::InOrder);
                for end in observed.ends.keys() {
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

const ORDERED: &str = include_str!("../../../../tests/homes/ordered-at-homes.coh");

/// Runs each classic program `runs` times on a protocol, with cores that keep its declared orders. Returns the total
/// number of outcomes seen and the total allowed by release consistency, or the first program with another outcome.
fn run_classic(text: &str, runs: u64) -> Result<(usize, usize), String> {
    let protocol = parse(text).unwrap();
    let cores = Cores::Relaxed(
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
        for (end, (_, seed)) in &observed.ends {
            if !allowed.contains(end) {
                return Err(format!(
                    "{name}, seed {seed}: {}",
                    shape.format_outcome(end)
                ));
            }
        }
        sum = (sum.0 + observed.ends.len(), sum.1 + allowed.len());
        programs += 1;
    }
    assert!(programs > 150, "{programs}");
    Ok(sum)
}

#[test]
fn simulated_home_ordered_stores_are_release_consistent() {
    let (observed, allowed) = run_classic(ORDERED, 60).unwrap();
    assert!(observed * 3 > allowed * 2, "{observed} of {allowed}");
}

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
