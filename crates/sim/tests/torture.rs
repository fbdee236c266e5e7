//! Random torture of every shipped protocol: tiny caches, few units, random delays, every access and
//! local operation, with every byte watched. A failing run prints how to repeat it.

mod common;

use cohkit_protocol::controller::Effect;
use cohkit_sim::simulation::{Setup, Simulation};
use common::{protocol, protocols, torture, ACCESSES, DEVICE_OPERATIONS};

const SEEDS: u64 = 25;

fn setup(name: &str, remotes: u8, seed: u64) -> Setup {
    torture(protocol(name), remotes, seed).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn every_protocol_holds() {
    // COHKIT_TORTURE=protocol/remotes/seed repeats one run.
    let only = std::env::var("COHKIT_TORTURE").ok();
    for name in protocols() {
        for remotes in [1, 2, 3] {
            for seed in 0..SEEDS {
                let label = format!("{name}/{remotes}/{seed}");
                if only.as_ref().is_some_and(|only| *only != label) {
                    continue;
                }
                let setup = setup(&name, remotes, seed);
                match cohkit_sim::simulation::run(&setup) {
                    Ok(statistics) => {
                        let performed = statistics.get("accesses").unwrap();
                        let skipped = statistics.get("accesses_skipped").unwrap();
                        assert_eq!(performed + skipped, ACCESSES as f64, "{label}");
                        assert!(performed > ACCESSES as f64 / 2.0, "{label}");
                        let locals = statistics.get("locals_acknowledged").unwrap();
                        let refused = statistics.get("locals_refused").unwrap();
                        let expected = if setup.home.locals.is_empty() {
                            0.0
                        } else {
                            DEVICE_OPERATIONS as f64
                        };
                        assert_eq!(locals + refused, expected, "{label}");
                    }
                    Err(failure) => panic!(
                        "COHKIT_TORTURE={label} cargo test -p cohkit-sim --test torture\n{failure}"
                    ),
                }
            }
        }
    }
}

/// The runs are hard enough: together they execute nearly every rule of the remote that takes something.
#[test]
fn the_torture_reaches_the_rules() {
    for name in protocols() {
        let mut executed = std::collections::BTreeSet::new();
        for seed in 0..SEEDS {
            let mut simulation = Simulation::new(&setup(&name, 3, seed), None).unwrap();
            simulation.run().unwrap();
            executed.extend(simulation.executed().0);
        }
        let protocol = protocol(&name);
        let rules = protocol.remote.rules.iter();
        let takes = rules.filter(|rule| matches!(rule.effect, Effect::Take { .. }));
        let (executed, takes) = (executed.len(), takes.count());
        assert!(
            executed * 10 >= takes * 8,
            "{name}: {executed} of {takes} rules"
        );
    }
}
