//! Checks that the claims about the RTL's parts hold in every cycle, and that the proofs detect faults.
//!
//! These tests need Yosys and Z3, from `.venv` or from the system.

use cohkit_rtl::proof::{rtl_source, Proof, Prover, Verdict, PROOFS};
use cohkit_testing::require::require;
use std::path::Path;

/// Returns the installed tools; `None` if they are absent and not required.
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

/// A claim that no longer holds, or that induction can no longer prove, is a failure.
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

/// A fault of the RTL that a proof must detect.
struct ProofFault {
    /// Name of the proof.
    proof: &'static str,
    /// File of the module.
    file: &'static str,
    /// Original text, which occurs once.
    original: &'static str,
    /// Its faulty replacement.
    faulty: &'static str,
}

/// Faults, each of which must violate a claim of its proof or an inductive strengthening.
const FAULTS: &[ProofFault] = &[
    // A full queue accepts another element.
    ProofFault {
        proof: "fifo_proof",
        file: "fifo.sv",
        original: "assign wr_ready_o = !full;",
        faulty: "assign wr_ready_o = 1'b1;",
    },
    // The queue appears empty after each read.
    ProofFault {
        proof: "fifo_proof",
        file: "fifo.sv",
        original: "wr || rd_valid_o && !(rd && last)",
        faulty: "wr || rd_valid_o && !rd",
    },
    // The priority does not rotate.
    ProofFault {
        proof: "rr_pick_proof",
        file: "rr_pick.sv",
        original: "else if (accept_i && req_i != '0) after_last_q <= after_last_d;",
        faulty: "else if (accept_i && req_i != '0) after_last_q <= '0;",
    },
    // Several requesters are picked at once.
    ProofFault {
        proof: "rr_pick_proof",
        file: "rr_pick.sv",
        original: "reqs_after[i] && reqs_after[i-1:0] == '0;",
        faulty: "reqs_after[i];",
    },
    // The stream that transfers now is chosen again.
    ProofFault {
        proof: "stream_arbiter_proof",
        file: "stream_arbiter.sv",
        original: "assign req    = wr_valid_i & ~chosen_q;",
        faulty: "assign req    = wr_valid_i;",
    },
    // The chosen stream is accepted although the output stalls.
    ProofFault {
        proof: "stream_arbiter_proof",
        file: "stream_arbiter.sv",
        original: "assign wr_ready_o = rd_ready_i ? chosen_q : '0;",
        faulty: "assign wr_ready_o = chosen_q;",
    },
    // The header gets another slot than the first beat of its message.
    ProofFault {
        proof: "dcs_ingress_proof",
        file: "dcs_ingress.sv",
        original: "assign slot_now        = first_q ? slot : slot_q;",
        faulty: "assign slot_now        = slot;",
    },
    // A slot is allocated by the last beat instead of the first.
    ProofFault {
        proof: "dcs_ingress_proof",
        file: "dcs_ingress.sv",
        original: "if (accept && buffers_payload && first_q && unit",
        faulty: "if (accept && buffers_payload && last_q && unit",
    },
    // A dropped message is offered to a unit nevertheless.
    ProofFault {
        proof: "dcs_ingress_proof",
        file: "dcs_ingress.sv",
        original: "= valid_q && dispatch",
        faulty: "= valid_q && last_q && last_legal",
    },
    // The slot of a message with a wrong length stays allocated.
    ProofFault {
        proof: "dcs_ingress_proof",
        file: "dcs_ingress.sv",
        original: "assign abort_slot = valid_q",
        faulty: "assign abort_slot = !valid_q",
    },
    // Surplus beats of a message start another message.
    ProofFault {
        proof: "dcs_ingress_proof",
        file: "dcs_ingress.sv",
        original: "assign is_first_beat = valid_q ? last_q : first_q;",
        faulty: "assign is_first_beat = valid_q ? last_q || !last_legal : first_q;",
    },
    // An operation passes a deferred one of its unit.
    ProofFault {
        proof: "dcs_locals_proof",
        file: "dcs_locals.sv",
        original: "wr_valid_i && same_unit == '0 &&",
        faulty: "wr_valid_i &&",
    },
    // Deferred operations are offered in any order.
    ProofFault {
        proof: "dcs_locals_proof",
        file: "dcs_locals.sv",
        original: "used_q[i] && older_q[i] == '0 &&",
        faulty: "used_q[i] &&",
    },
    // An event without a row stays in its queue.
    ProofFault {
        proof: "dcu_proof",
        file: "dcu.sv",
        original: "&& row_q.effect == Never && !is_local_op && !is_unlock;",
        faulty: "&& row_q.effect == Never && source[FromRead+:Reads] != '0;",
    },
    // Requests have priority over responses.
    ProofFault {
        proof: "dcu_proof",
        file: "dcu_scheduler.sv",
        original: "assign pick       = high_valid != '0 ? high_pick : low_pick;",
        faulty: "assign pick       = low_valid == '0 ? high_pick : low_pick;",
    },
    // A request gets the write entry that a pending response needs.
    ProofFault {
        proof: "dcu_proof",
        file: "dcu.sv",
        original: "!writes_full && !yield_to_response_q",
        faulty: "!writes_full",
    },
    // Blocked events are not retried.
    ProofFault {
        proof: "dcu_proof",
        file: "dcu_scheduler.sv",
        original: "if (unblock_q) blocked_d = '0;",
        faulty: "if (unblock_q && block_i) blocked_d = '0;",
    },
    // The comparison uses another group of ways than the read.
    ProofFault {
        proof: "dcu_proof",
        file: "dcu_lookup.sv",
        original: "    compared_group_d = compared_group_q;\n",
        faulty: "    compared_group_d = next_group;\n",
    },
];

/// A proof that holds with a fault would be vacuous.
#[test]
fn rtl_fault_refutes_its_proof() {
    let Some(prover) = prover() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    for fault in FAULTS {
        let &ProofFault {
            proof: name,
            file,
            original,
            faulty,
        } = fault;
        let proof: &Proof = PROOFS
            .iter()
            .find(|proof| proof.name == name)
            .expect("proof with this name");
        let text = rtl_source(file);
        assert_eq!(text.matches(original).count(), 1, "{file}: {original}");
        let text = text.replace(original, faulty);
        // A fault of the queue is in its register for `valid`, which the last size does not have.
        let size = match name {
            "fifo_proof" => &proof.sizes[2],
            _ => proof.sizes.last().expect("size of the proof"),
        };
        let verdict = prover.prove(folder.path(), proof, size, Some((file, &text)));
        assert!(
            matches!(&verdict, Ok(Verdict::Failed(claims)) if !claims.is_empty()),
            "{name} with `{faulty}` has no violated claim: {verdict:?}"
        );
    }
}
