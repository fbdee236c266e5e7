//! Checks that lockstep detects faults of the RTL. A copy of the sources contains all faults below. Each is inactive
//! until the run enables it, so that all share one build. The original sources are unmodified.
//!
//! A fault replaces a line of a source; `@` means "this fault is enabled". If the line no longer exists, the tests
//! fail, and the fault must be adapted to the new code. The last part is the check that detects the fault first.

use crate::homes;

use cohkit_rtl::lockstep::bench::Run;
use cohkit_rtl::lockstep::setup::{Check, Mismatch};
use cohkit_rtl::lockstep::setup::{RunError, Setup};
use cohkit_rtl::lockstep::shapes::Shape;
use homes::seeded::{build_with_faults, fault_argument, Fault};
use homes::{compile_shipped, Built};

/// A fault, and the check that must detect it.
struct NamedFault {
    /// Name of the fault, which is that of its test too.
    name: &'static str,
    /// Replaced text and its replacement.
    fault: Fault,
    /// The check that detects the fault first.
    detected_by: Check,
}

macro_rules! faults {
    ($($name:ident in $file:literal: $original:literal becomes $faulty:literal: $by:ident;)*) => {
        const FAULTS: &[NamedFault] = &[$(NamedFault {
            name: stringify!($name),
            fault: Fault {
                file: $file,
                original: $original,
                faulty: $faulty,
            },
            detected_by: Check::$by,
        }),*];

        /// Each test has the name of its fault.
        mod detection {
            $(#[test]
            fn $name() {
                super::check_detection(stringify!($name));
            })*
        }
    };
}

faults! {
    // Payload is lost or mixed up on its way through the buffers of a circuit.
    lost_payload in "dcs_ingress.sv":
        ".wr_en_i  (accept && buffers_payload),"
        becomes ".wr_en_i  (accept && buffers_payload && !(@ && first_q)),": Comparison;
    leaked_slot in "dcs_ingress.sv":
        "if ((free_valid_i && free_unit_i"
        becomes "if ((free_valid_i && !@ && free_unit_i": Progress;
    two_units_share_a_slot in "dcs_ingress.sv":
        "return AddrWidth'(32'(for_unit) << (SlotBits + BeatBits)"
        becomes "return AddrWidth'((@ ? '0 : 32'(for_unit)) << (SlotBits + BeatBits)": Comparison;
    // Beats and AXI transfers that memory or the remote observe are wrong.
    dropped_last_beat in "dcs_egress.sv":
        "beats_remain_q <= has_payload && Beats > 1;"
        becomes "beats_remain_q <= has_payload && Beats > 1 && !@;": Comparison;
    message_not_held_until_accepted in "dcs_egress.sv":
        "if (port_free) tx_valid_o <= load;"
        becomes "if (port_free || @) tx_valid_o <= load;": Assertion;
    swapped_axi_id_of_writes in "dcs_writer.sv":
        "aw_id_o   <= AxiIdWidth'({unit, job.slot});"
        becomes "aw_id_o   <= AxiIdWidth'({@ ? ~unit : unit, job.slot});": Assertion;
    strobes_of_the_whole_line in "dcs_writer.sv":
        "{MaskBytes{mask[i]}}"
        becomes "{MaskBytes{mask[i] || @}}": Comparison;
    swapped_axi_id_of_reads in "dcs_reader.sv":
        "assign ar_id_o   = AxiIdWidth'({unit, job.slot});"
        becomes "assign ar_id_o   = AxiIdWidth'({unit, @ ? ~job.slot : job.slot});": Comparison;
    read_completed_by_its_first_beat in "dcs_reader.sv":
        "burst_end && last_legal && r_index =="
        becomes "r_valid_i && in_flight && (r_last_i && last_legal || @) && r_index ==": Comparison;
    // A unit starves an event, keeps wrong state of a line or a resource, or answers another operation.
    response_stalled_behind_a_request in "dcu.sv":
        ".trigger_valid_i(trigger_valid),"
        becomes ".trigger_valid_i(@ && u_messages.deferred_used_q == '1 ? trigger_valid & ~HighPriority : trigger_valid),": Progress;
    leaked_credit_of_a_lock in "dcu_locals.sv":
        "if (execute_i) locks_d = locks_q - 1'b1;"
        becomes "if (execute_i && !@) locks_d = locks_q - 1'b1;": Comparison;
    wrong_way_evicted in "dcu_lookup.sv":
        "way_of(evaluated_group_q, free_position);"
        becomes "way_of(evaluated_group_q, @ ? ~free_position : free_position);": Comparison;
    stale_directory_entry in "dcu.sv":
        "(execute && (hit || row_keeps_entry_q))"
        becomes "(execute && (hit && !@ || row_keeps_entry_q))": Comparison;
    stale_state_of_outstanding_access in "dcu_accesses.sv":
        "if (execute_i && same_line_q[i]) access_d[i].state = next_i;"
        becomes "if (execute_i && same_line_q[i] && !@) access_d[i].state = next_i;": Comparison;
    lost_request in "dcu_messages.sv":
        "(same_set_q[i] || (deferred_q[i].awaits_way"
        becomes "(same_set_q[i] && !@ || (deferred_q[i].awaits_way": Progress;
    answer_to_another_operation in "dcu_locals.sv":
        "operation: is_device_op_i ? request_operation_q"
        becomes "operation: is_device_op_i || @ ? request_operation_q": Comparison;
    // Counters, reported permission changes or AXI user bits are wrong; the traffic itself is correct.
    message_counted_twice in "dcs_ingress.sv":
        "dispatched_o <= rst_ni && accept && dispatch;"
        becomes "dispatched_o <= rst_ni && accept && (dispatch || @ && legal_q);": Comparison;
    stall_counted_for_another_reason in "dcu.sv":
        "else if (row_q.effect != Take)                       stall_o <= StallLine;"
        becomes "else if (row_q.effect != Take)                       stall_o <= @ ? StallRead : StallLine;": Comparison;
    room_stall_counted_as_read_stall in "dcu.sv":
        "else if (lacks_way)                                  stall_o <= StallRoom;"
        becomes "else if (lacks_way)                                  stall_o <= @ ? StallRead : StallRoom;": Comparison;
    permission_change_without_notification in "dcu.sv":
        "assign permission_changes = execute && row_q.from != row_q.to;"
        becomes "assign permission_changes = execute && row_q.from != row_q.to && !(@ && row_q.to == PermissionNone);": Comparison;
    permission_of_another_row in "dcs_writer.sv":
        "aw_user_o <= {job.permission, 6'(job.event_id)};"
        becomes "aw_user_o <= {@ ? next_job.permission : job.permission, 6'(job.event_id)};": Comparison;
    // The device is notified of a recall, an entry is freed too soon, or a last beat lacks its mark.
    eviction_notification_to_device in "dcu_locals.sv":
        "'{acknowledge_i || refuse_i, is_recall_i, request_operation_q"
        becomes "'{acknowledge_i || refuse_i, is_recall_i && !@, request_operation_q": Comparison;
    read_slot_freed_one_beat_early in "dcs_egress.sv":
        "if (Beats == 1) unit_done_o[unit][job.slot]"
        becomes "if (Beats == 1 || @) unit_done_o[unit][job.slot]": Comparison;
    message_slot_freed_one_beat_early in "dcs_writer.sv":
        "free_valid_o <= rst_ni && load_data && last ? source_circuit"
        becomes "free_valid_o <= rst_ni && load_data && (@ ? beat_q == '0 : last) ? source_circuit": Comparison;
    last_beat_not_marked in "dcs_egress.sv":
        "tx_last_o <= beats_remain_q ? beats_left_q == BeatWidth'(1) : !has_payload"
        becomes "tx_last_o <= beats_remain_q ? beats_left_q == BeatWidth'(1) && !@ : !has_payload": Comparison;
    // Illegal input is not rejected, rejected silently, or rejected again and again. See `ILLEGAL_TRAFFIC_FAULTS`.
    message_of_another_line_accepted in "dcs_ingress.sv":
        "legal_q       <= reject == RejectNone;"
        becomes "legal_q       <= reject == RejectNone || @ && reject == RejectLine;": Comparison;
    undefined_message_accepted in "dcs_ingress.sv":
        "reject = RejectMessage;"
        becomes "reject = @ ? reject : RejectMessage;": Assertion;
    undefined_operation_accepted in "dcs.sv":
        ">= Protocol.locals ? RejectOperation"
        becomes ">= Protocol.locals && !@ ? RejectOperation": Comparison;
    refused_unlock_not_answered in "dcs_reject.sv":
        "rejection_valid_q <= rejection_valid_q ? !rejection_sent : accept_local || accept_unlock;"
        becomes "rejection_valid_q <= rejection_valid_q ? !rejection_sent : accept_local || accept_unlock && !@;": Progress;
    unexpected_event_retried in "dcu.sv":
        "&& row_q.effect == Never && !is_local_op && !is_unlock;"
        becomes "&& row_q.effect == Never && !is_local_op && !is_unlock && !@;": Comparison;
    message_of_wrong_length_accepted in "dcs_ingress.sv":
        "assign last_legal      = last_q =="
        becomes "assign last_legal      = @ || last_q ==": Comparison;
    unsolicited_read_beat_not_counted in "dcs_reader.sv":
        "!in_flight ? RejectRead :"
        becomes "!in_flight ? @ ? RejectNone : RejectRead :": Comparison;
}

/// Number of faults, at the end of the list, that show only with illegal traffic.
const ILLEGAL_TRAFFIC_FAULTS: usize = 7;

/// Builds the home of a protocol with all faults of the list, inactive.
fn faulty(file: &str) -> Option<Built> {
    let faults = FAULTS.iter().map(|fault| &fault.fault);
    build_with_faults(compile_shipped(file), Shape::default(), faults)
}

/// Returns the first of 20 seeds whose run detects a failure, and that failure. `number` is that of the enabled fault,
/// from 1; 0 enables none. The runs have low latencies, so that deadlocks are detected soon.
fn find_mismatch(built: &Built, number: usize) -> Option<(u64, Box<Mismatch>)> {
    let argument = fault_argument(number);
    let setup = Setup {
        argument: &argument,
        ..built.setup()
    };
    let run = |seed| {
        let run = Run::new(seed, 2000);
        Run {
            max_memory_latency: run.max_memory_latency.min(30),
            max_message_latency: run.max_message_latency.min(60),
            // The last faults show only with illegal traffic.
            illegal_rate: if number + ILLEGAL_TRAFFIC_FAULTS > FAULTS.len() {
                20
            } else {
                0
            },
            ..run
        }
    };
    (0..20).find_map(|seed| match setup.run(run(seed), None) {
        Ok(_) => None,
        Err(RunError::Mismatch(mismatch)) => Some((seed, mismatch)),
        Err(failed) => panic!("{failed:?}"),
    })
}

/// Checks that some run detects the fault with this name, by the expected check.
fn check_detection(name: &str) {
    let Some(built) = faulty("eci.coh") else {
        return;
    };
    let index = FAULTS.iter().position(|fault| fault.name == name);
    let index = index.expect("fault with this name");
    let Some((seed, mismatch)) = find_mismatch(&built, index + 1) else {
        panic!("no seed detects {name}");
    };
    let Mismatch {
        check,
        description,
        cycle,
        ..
    } = *mismatch;
    println!("{name}: {check:?}, seed {seed}, cycle {cycle}: {description}");
    assert_eq!(check, FAULTS[index].detected_by, "{name}: {description}");
}

/// The home with all faults, none of them active, passes the runs in which faults are detected.
#[test]
fn inactive_faults_have_no_effect() {
    let Some(built) = faulty("eci.coh") else {
        return;
    };
    let mismatch = find_mismatch(&built, 0);
    assert!(mismatch.is_none(), "{mismatch:?}");
}

/// Another home detects all faults except those of features that it lacks: its lines have one beat, and it has no
/// locks.
#[test]
fn another_home_shows_the_same_faults() {
    let Some(built) = faulty("back-invalidate.coh") else {
        return;
    };
    assert!(find_mismatch(&built, 0).is_none());
    let faults = FAULTS.iter().enumerate();
    let missed = faults.filter(|(index, _)| find_mismatch(&built, index + 1).is_none());
    let missed: Vec<&str> = missed.map(|(_, fault)| fault.name).collect();
    let of_beats_and_locks = [
        "dropped_last_beat",
        "read_completed_by_its_first_beat",
        "leaked_credit_of_a_lock",
        "message_counted_twice",
        "read_slot_freed_one_beat_early",
        "message_slot_freed_one_beat_early",
        "last_beat_not_marked",
    ];
    assert_eq!(missed, of_beats_and_locks);
}
