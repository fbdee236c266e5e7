//! Random stress runs of every shipped protocol: tiny caches, few units, random delays, every access and local
//! operation; the oracle checks every byte. A failing run prints how to repeat it.

use cohkit_testing::setups;

use cohkit_protocol::controller::Effect;
use cohkit_sim::simulation::{Setup, Simulation};
use setups::{parse, protocol, protocols, source, torture, ACCESSES, DEVICE_OPERATIONS};

/// Number of runs of each protocol; the seed also selects the number of remotes.
const SEEDS: u64 = 100;

fn setup(name: &str, remotes: u16, seed: u64) -> Setup {
    torture(protocol(name), remotes, seed).unwrap_or_else(|error| panic!("{name}: {error:?}"))
}

#[test]
fn every_protocol_is_coherent() {
    // COHKIT_TORTURE=protocol/remotes/seed repeats one run.
    let selected_label = std::env::var("COHKIT_TORTURE").ok();
    let mut stalls = [0.0; 6];
    let mut private = [0.0; 4];
    for name in protocols() {
        for seed in 0..SEEDS {
            let remotes = 1 + (seed % 3) as u16;
            let label = format!("{name}/{remotes}/{seed}");
            if selected_label
                .as_ref()
                .is_some_and(|selected| *selected != label)
            {
                continue;
            }
            let setup = setup(&name, remotes, seed);
            let statistics = cohkit_sim::simulation::run(&setup).unwrap_or_else(|failure| {
                panic!("COHKIT_TORTURE={label} cargo test -p cohkit-sim --test sim torture::\n{failure}")
            });
            let get = |name: &str| statistics.get(name).unwrap();
            let performed = get("accesses");
            assert_eq!(
                performed + get("accesses_skipped"),
                ACCESSES as f64,
                "{label}"
            );
            assert!(performed > ACCESSES as f64 / 2.0, "{label}");
            let locals = get("local_operations_acknowledged") + get("local_operations_rejected");
            let expected = match setup.home.locals.is_empty() {
                true => 0,
                false => DEVICE_OPERATIONS,
            };
            assert_eq!(locals, expected as f64, "{label}");
            for (sum, stall) in stalls.iter_mut().zip([
                "stalls_no_evictable_way",
                "stalls_controller",
                "stalls_unit_slot",
                "stalls_stall_entries_full",
                "stalls_no_credit",
                "stalls_write_buffer",
            ]) {
                *sum += get(stall);
            }
            for (sum, name) in private.iter_mut().zip([
                "l1_hits",
                "store_to_load_forwards",
                "stores_coalesced",
                "write_buffer_wait_ns",
            ]) {
                *sum += get(name);
            }
        }
    }
    // Every cause of a stall has occurred, and every component between cores and caches has been used.
    let all_occurred = stalls.iter().chain(&private).all(|&sum| sum > 0.0);
    assert!(
        selected_label.is_some() || all_occurred,
        "{stalls:?} {private:?}"
    );
}

/// An order that includes the answers and the victims, but not the requests. Messages that a request waits for pass
/// requests for which the waiting set has no room.
#[test]
fn ordered_answers_pass_stalled_requests() {
    let text = source("eci");
    let channel = "  grant    home -> remote\n";
    assert!(text.contains(channel));
    let text = text.replace(channel, &format!("{channel}  ordered victim, answer\n"));
    let mut stopped = 0.0;
    for seed in 0..SEEDS / 4 {
        let mut setup = torture(parse(&text), 3, seed).unwrap();
        // One unit with one place.
        setup.platform.home.slices.value = 1;
        setup.platform.home.units.value = 1;
        setup.platform.home.stall_entries.value = 1;
        let statistics = cohkit_sim::simulation::run(&setup)
            .unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
        stopped += statistics.get("stalls_stall_entries_full").unwrap();
    }
    assert!(stopped > 0.0);
}

/// A message stays behind earlier messages of its line that use another channel, even if its own circuit has credits
/// and theirs has none. In `msi`, only the acknowledgement of a put is behind the forwards.
#[test]
fn ordered_message_waits_for_other_circuits() {
    let text = source("msi");
    let (order, put) = ("  ordered forward\n", "(requestor: remote), PutAck\n");
    assert!(text.contains(order) && text.contains(put));
    let point_order = "  ordered PutAck behind FwdGetS FwdGetM Inv\n";
    let text = text
        .replace(order, &format!("  ack       home -> remote\n{point_order}"))
        .replace(put, "(requestor: remote)\n  ack: PutAck\n");
    let run = |text: &str, seed| {
        let mut setup = torture(parse(text), 3, seed).unwrap();
        setup.platform.link.credits.value = 1;
        cohkit_sim::simulation::run(&setup)
    };
    for seed in 0..SEEDS / 4 {
        let result = run(&text, seed);
        result.unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
    }
    // Without the declaration, the acknowledgement does overtake.
    let unordered = text.replace(point_order, "");
    assert!((0..SEEDS / 4).any(|seed| run(&unordered, seed).is_err()));
}

/// The runs are sufficient: together they execute nearly every rule of the remote that consumes an input.
#[test]
fn torture_executes_nearly_every_rule() {
    for name in protocols() {
        let mut executed = std::collections::BTreeSet::new();
        for seed in 0..SEEDS / 4 {
            let mut simulation = Simulation::new(&setup(&name, 3, seed), None).unwrap();
            simulation.run().unwrap();
            executed.extend(simulation.executed().0);
        }
        let protocol = protocol(&name);
        let rules = protocol.remote.rules.iter();
        let taking_rules = rules.filter(|rule| matches!(rule.effect, Effect::Take { .. }));
        let (executed, taking_rules) = (executed.len(), taking_rules.count());
        assert!(
            executed * 10 >= taking_rules * 8,
            "{name}: {executed} of {taking_rules} rules"
        );
    }
}

/// A unit that has sent forwards of one line waits for their answers before it sends forwards of another line.
/// Regression: answers from cache to cache never reach the unit, which waited for them forever.
#[test]
fn unit_does_not_wait_for_cache_to_cache_answers() {
    let text = source("token");
    for place in ["  tokens as grant remote", "  tokens:     Data"] {
        assert_eq!(text.matches(place).count(), 1);
    }
    let text = text
        .replace("  tokens as grant remote", "  answer   remote")
        .replace("  tokens:     Data", "  answer:     Data");
    for seed in [1, 4, 7] {
        let setup = torture(parse(&text), 2, seed).unwrap();
        cohkit_sim::simulation::run(&setup)
            .unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
    }
}

/// A home stalls a local operation for which it has no row, as in the checker: the request is not an error of the
/// device.
#[test]
fn local_operation_without_a_row_waits() {
    let text = source("cxl-mem");
    let row = "MemRdCur MemWr clean clean_invalidate take_bias | stall";
    assert_eq!(text.matches(row).count(), 1);
    let without_row = text.replace(row, "MemRdCur MemWr | stall");
    for seed in 0..5 {
        let run = |text: &str| {
            let setup = torture(parse(text), 2, seed).unwrap();
            let run = cohkit_sim::simulation::run(&setup);
            run.unwrap_or_else(|failure| panic!("seed {seed}: {failure}"))
        };
        let (with_row, without_row) = (run(&text), run(&without_row));
        assert!(with_row.get("local_operations_acknowledged").unwrap() > 0.0);
        for name in [
            "time_ns",
            "accesses",
            "local_operations_acknowledged",
            "stalls_controller",
        ] {
            assert_eq!(
                with_row.get(name).unwrap(),
                without_row.get(name).unwrap(),
                "seed {seed}: {name}"
            );
        }
    }
}
