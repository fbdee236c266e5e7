//! Traces of simulations, judged by the tables alone: complete, with the values of words.

use cohkit_testing::seeded_traces;
use cohkit_testing::setups;

use cohkit_base::sequence::Action;
use cohkit_protocol::controller::{Access, Event};
use cohkit_protocol::protocol::Protocol;
use cohkit_sim::simulation::trace;
use cohkit_timeline::Side;
use cohkit_trace::Trace;
use cohkit_units::Quantity;
use std::collections::HashSet;

/// Returns all accesses for which the protocol has rows, with equal weights.
fn protocol_mix(protocol: &Protocol) -> Vec<(Access, u32)> {
    let has_row = |access: Access| {
        let mut rows = protocol.remote.rules.iter();
        rows.any(|row| row.event == Event::Access(access))
    };
    let accesses = Access::ALL.iter().map(|(access, _)| *access);
    accesses
        .filter(|&access| has_row(access))
        .map(|access| (access, 1))
        .collect()
}

/// The independent judge accepts the traces of runs, and rejects traces with a seeded fault: a missing,
/// repeated, swapped or changed step.
#[test]
fn trace_check_accepts_simulations_and_rejects_faults() {
    let (mut rows, mut values, mut refused) = (0, 0, 0);
    for name in setups::protocols() {
        let protocol = setups::protocol(&name);
        if protocol.several_tables() {
            continue;
        }
        for seed in setups::seeds(6) {
            let label = format!("{name}, COHKIT_SEED={seed}");
            let mut setup =
                setups::torture(protocol.clone(), 3, seed).expect("protocol with a home");
            setup.workload.accesses = 300;
            setup.device.operations = 60;
            let (_, sequence) = trace(&setup, Side::Device, 0)
                .unwrap_or_else(|failure| panic!("{label}: {failure}"));
            let trace = Trace {
                sequence,
                ends_quiescent: true,
            };
            let summary = seeded_traces::check_sound_trace(&protocol, &setup.home, &trace, &label);
            (rows, values) = (rows + summary.rows, values + summary.values);
            refused += seeded_traces::count_rejected_faults(
                &protocol,
                &setup.home,
                &trace,
                (seed, 40),
                &label,
            );
        }
    }
    assert!(
        rows > 10_000 && values > 1000 && refused > 1000,
        "{rows} rows, {values} values, {refused} faults"
    );
}

/// For protocols with registers, messages about no line or several homes, the trace covers all lines.
#[test]
fn lineless_state_is_traced_over_all_lines() {
    let text = |name: &str| std::fs::read_to_string(format!("../../{name}.coh")).unwrap();
    let (mut rows, mut refused, mut lineless) = (0, 0, 0);
    for name in [
        "tests/homes/budget",
        "tests/homes/ordered-at-homes",
        "tests/homes/in-order",
        "ordering/cord",
        "ordering/mp",
        "ordering/seq",
        "ordering/so",
        "ordering/tso/cord",
        "ordering/tso/mp",
    ] {
        let protocol = setups::parse(&text(name));
        for seed in setups::seeds(6) {
            let label = format!("{name}, COHKIT_SEED={seed}");
            let mut setup = setups::torture(protocol.clone(), 1 + (seed % 3) as u16, seed).unwrap();
            setup.platform.home.count = Some(Quantity::given(protocol.homes.into(), "a test"));
            setup.workload.mix = protocol_mix(&protocol);
            (setup.workload.accesses, setup.workload.outstanding) = (300, 1);
            let setup = setups::restrict_to_protocol(setup);
            let (_, sequence) = trace(&setup, Side::Device, 0)
                .unwrap_or_else(|failure| panic!("{label}: {failure}"));
            let lines: HashSet<_> = sequence.steps.iter().map(|step| step.line).collect();
            lineless += usize::from(lines.contains(&None));
            assert!(lines.len() > setup.workload.lines as usize / 2, "{label}");
            let trace = Trace {
                sequence,
                ends_quiescent: true,
            };
            rows += seeded_traces::check_sound_trace(&protocol, &setup.home, &trace, &label).rows;
            refused += seeded_traces::count_rejected_faults(
                &protocol,
                &setup.home,
                &trace,
                (seed, 20),
                &label,
            );
        }
    }
    assert!(
        rows > 5000 && refused > 400 && lineless > 20,
        "{rows} rows, {refused} faults, {lineless} with messages about no line"
    );
}

/// If copies are written in place and may be stale, a word must have its value at the source of the copy.
#[test]
fn stale_copy_words_are_compared_with_their_source() {
    let protocol = setups::parse(include_str!("../../../../tests/accesses/in-place.coh"));
    let (mut values, mut detected) = (0, 0);
    for seed in setups::seeds(10) {
        let label = format!("COHKIT_SEED={seed}");
        let mut setup = setups::torture(protocol.clone(), 3, seed).expect("protocol with a home");
        setup.workload.mix = vec![(Access::Load, 4), (Access::Store, 4), (Access::Evict, 2)];
        setup.workload.accesses = 400;
        let (_, sequence) =
            trace(&setup, Side::Device, 0).unwrap_or_else(|failure| panic!("{label}: {failure}"));
        let mut trace = Trace {
            sequence,
            ends_quiescent: true,
        };
        values += seeded_traces::check_sound_trace(&protocol, &setup.home, &trace, &label).values;
        // A changed value of a read is rejected.
        for index in 0..trace.sequence.steps.len() {
            let original = trace.sequence.steps[index].clone();
            match &mut trace.sequence.steps[index].action {
                Action::Does { what } if what.starts_with("performs a load of word ") => {
                    what.push('1');
                }
                _ => continue,
            }
            let verdict = cohkit_trace::judge(&protocol, &setup.home, &trace.sequence, true);
            detected += usize::from(verdict.is_err());
            trace.sequence.steps[index] = original;
        }
    }
    assert!(
        values > 300 && detected > values / 3,
        "{detected} of {values}"
    );
}
