//! Traces of simulations, judged by the tables alone: to their end, with the values of words.

mod common;
#[path = "../../../tests/traces.rs"]
mod traces;

use cohkit_sim::simulation::trace;
use cohkit_sim::spaces::Side;
use cohkit_trace::Trace;

#[test]
fn simulations_are_in_order_and_faults_in_what_they_tell_are_not() {
    let (mut rows, mut values, mut refused) = (0, 0, 0);
    for name in common::protocols() {
        let protocol = common::protocol(&name);
        if protocol.several_tables() {
            continue;
        }
        if let Some(what) = protocol.has_in_common() {
            let setup = common::torture(protocol.clone(), 3, 1).expect("there is a home");
            let (_, sequence) =
                trace(&setup, Side::Device, 0).unwrap_or_else(|failed| panic!("{failed}"));
            let refused = cohkit_trace::judge(&protocol, &setup.home, &sequence, true);
            let why = refused.expect_err("traces do not tell of it").why;
            assert!(why.contains(what), "{why}");
            continue;
        }
        for seed in common::seeds(6) {
            let of = format!("{name}, COHKIT_SEED={seed}");
            let mut setup = common::torture(protocol.clone(), 3, seed).expect("there is a home");
            setup.workload.accesses = 300;
            setup.device.operations = 60;
            let (_, sequence) =
                trace(&setup, Side::Device, 0).unwrap_or_else(|failed| panic!("{of}: {failed}"));
            let trace = Trace {
                sequence,
                at_rest: true,
            };
            let told = traces::sound(&protocol, &setup.home, &trace, &of);
            (rows, values) = (rows + told.rows, values + told.values);
            refused += traces::faults_are_refused(&protocol, &setup.home, &trace, (seed, 40), &of);
        }
    }
    assert!(
        rows > 10_000 && values > 1000 && refused > 1000,
        "{rows} rows, {values} values, {refused} faults"
    );
}
