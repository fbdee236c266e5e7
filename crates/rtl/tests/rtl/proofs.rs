//! Checks that the claims about the RTL's parts hold in every cycle, and that the proofs detect faults.
//!
//! These tests need Yosys and Z3, from `.venv` or from the system.

use cohkit_testing::require;

use cohkit_rtl::proof::{rtl_source, Proof, Prover, Verdict, PROOFS};
use require::require;
use std::path::Path;

/// Returns `None` if the tools are absent and not required.
fn prover() -> Option<Prover> {
    if !(require("yosys") && require("z3")) {
        return None;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("two folders up");
    let prover = Prover::find(Some(&root.join(".venv/bin")));
    Some(prover.unwrap_or_else(|error| panic!("{error:?}")))
}

#[test]
fn every_rtl_claim_is_proven() {
    let Some(prover) = prover() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    for proof in PROOFS {
        for size in proof.sizes {
            let verdict = prover.prove(folder.path(), proof, size, None);
            assert_eq!(verdict, Ok(Verdict::Proven), "{} {size:?}", proof.name);
        }
    }
}

/// Name of the proof, file of the module, original text that occurs once, and its faulty replacement.
/// Each fault must violate a claim or its inductive strengthening.
const FAULTS: &[(&str, &str, &str, &str)] = &[
    // A full queue accepts another element.
    (
        "fifo_proof",
        "fifo.sv",
        "assign wr_ready_o = !full;",
        "assign wr_ready_o = 1'b1;",
    ),
    // The queue appears empty after each read.
    (
        "fifo_proof",
        "fifo.sv",
        "wr || rd_valid_o && !(rd && last)",
        "wr || rd_valid_o && !rd",
    ),
    (
        // The priority does not rotate.
        "rr_pick_proof",
        "rr_pick.sv",
        "else if (accept_i && req_i != '0) after_last_q <= after_last_d;",
        "else if (accept_i && req_i != '0) after_last_q <= '0;",
    ),
    // Several requesters are picked at once.
    (
        "rr_pick_proof",
        "rr_pick.sv",
        "reqs_after[i] && reqs_after[i-1:0] == '0;",
        "reqs_after[i];",
    ),
    // The stream that transfers now is chosen again.
    (
        "stream_arbiter_proof",
        "stream_arbiter.sv",
        "assign req    = wr_valid_i & ~chosen_q;",
        "assign req    = wr_valid_i;",
    ),
    // The chosen stream is accepted although the output waits.
    (
        "stream_arbiter_proof",
        "stream_arbiter.sv",
        "assign wr_ready_o = rd_ready_i ? chosen_q : '0;",
        "assign wr_ready_o = chosen_q;",
    ),
    // The header gets another slot than the first beat of its message.
    (
        "dcs_ingress_proof",
        "dcs_ingress.sv",
        "assign slot_now        = first_q ? slot : slot_q;",
        "assign slot_now        = slot;",
    ),
    // A slot is allocated by the last beat instead of the first.
    (
        "dcs_ingress_proof",
        "dcs_ingress.sv",
        "if (accept && buffers_payload && first_q && unit",
        "if (accept && buffers_payload && last_q && unit",
    ),
    // A dropped message is offered to a unit nevertheless.
    (
        "dcs_ingress_proof",
        "dcs_ingress.sv",
        "= valid_q && dispatch",
        "= valid_q && last_q && last_legal",
    ),
    // The slot of a message with a wrong length stays allocated.
    (
        "dcs_ingress_proof",
        "dcs_ingress.sv",
        "assign abort_slot = valid_q",
        "assign abort_slot = !valid_q",
    ),
    // Surplus beats of a message start another message.
    (
        "dcs_ingress_proof",
        "dcs_ingress.sv",
        "assign is_first_beat = valid_q ? last_q : first_q;",
        "assign is_first_beat = valid_q ? last_q || !last_legal : first_q;",
    ),
    // An operation passes a deferred one of its unit.
    (
        "dcs_locals_proof",
        "dcs_locals.sv",
        "wr_valid_i && same_unit == '0 &&",
        "wr_valid_i &&",
    ),
    // Deferred operations are offered in any order.
    (
        "dcs_locals_proof",
        "dcs_locals.sv",
        "used_q[i] && older_q[i] == '0 &&",
        "used_q[i] &&",
    ),
    // An event without a row stays in its queue.
    (
        "dcu_proof",
        "dcu.sv",
        "&& row_q.effect == Never && !is_local_op && !is_unlock;",
        "&& row_q.effect == Never && source[FromRead+:Reads] != '0;",
    ),
    // Requests have priority over responses.
    (
        "dcu_proof",
        "dcu_scheduler.sv",
        "assign pick       = high_valid != '0 ? high_pick : low_pick;",
        "assign pick       = low_valid == '0 ? high_pick : low_pick;",
    ),
    // A request takes the entry for which a response has waited.
    (
        "dcu_proof",
        "dcu.sv",
        "!writes_full && !yield_to_response_q",
        "!writes_full",
    ),
    // Stalled events are forgotten.
    (
        "dcu_proof",
        "dcu_scheduler.sv",
        "if (unblock_q) blocked_d = '0;",
        "if (unblock_q && block_i) blocked_d = '0;",
    ),
    // The compared group is not the one that was read.
    (
        "dcu_proof",
        "dcu_lookup.sv",
        "    compared_group_d = compared_group_q;\n",
        "    compared_group_d = next_group;\n",
    ),
];

#[test]
fn rtl_fault_refutes_its_proof() {
    let Some(prover) = prover() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    for &(name, file, original, fault) in FAULTS {
        let proof: &Proof = PROOFS
            .iter()
            .find(|proof| proof.name == name)
            .expect("proof with this name");
        let text = rtl_source(file);
        assert_eq!(text.matches(original).count(), 1, "{file}: {original}");
        let text = text.replace(original, fault);
        let size = proof.sizes.last().expect("size of the proof");
        let size = if name == "fifo_proof" {
            &proof.sizes[2]
        } else {
            size
        };
        let verdict = prover.prove(folder.path(), proof, size, Some((file, &text)));
        assert!(
            matches!(&verdict, Ok(Verdict::Failed(claims)) if !claims.is_empty()),
            "{name} with `{fault}`: {verdict:?}"
        );
    }
}
