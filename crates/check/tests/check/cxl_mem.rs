//! CXL.mem with back-invalidate: the purpose of its order and of its conflict handshake. Mistakes in the handshake that
//! have a chart are in `cohkit_testing::mutations`.

use crate::changed_protocols::{search, search_every_state, with_changes, Change};
use crate::support::shipped;

/// Statement of the only order of the protocol.
const ORDER_STATEMENT: &str = "  ordered BIConflictAck behind Cmp CmpS CmpE\n";

/// States of the row that receives BIConflictAck. In these states the host assumes that its own request still waits.
const EARLY_ACKNOWLEDGEMENT_STATES: &str = "  I IS IE IR IW  ";

/// Returns the protocol with changes. Each replaced string occurs once.
fn changed_protocol(changes: &[Change]) -> String {
    with_changes("cxl-mem", changes)
}

/// Returns the property that two hosts violate with the changed protocol.
fn violated_property(changes: &[Change]) -> String {
    search(&changed_protocol(changes), 2, 1).expect_err("violated property")
}

/// Pins the sizes of the unchanged protocol, with which all changed ones are compared.
#[test]
fn hosts_share_device_memory_coherently_with_conflicts() {
    let text = shipped("cxl-mem");
    assert_eq!(search_every_state(&text, 1, 1), Ok((1420, 3774)));
    assert_eq!(search_every_state(&text, 2, 1), Ok((54_432, 204_664)));
    assert_eq!(search(&text, 2, 1), Ok((27_448, 103_324)));
    assert_eq!(search(&text, 3, 1), Ok((427_340, 2_272_345)));
}

/// Nothing couples two lines: the only order is of messages of one line.
#[test]
fn lines_are_independent() {
    assert_eq!(
        search(&shipped("cxl-mem"), 1, 2),
        Ok((1420 * 1420, 2 * 1420 * 3774))
    );
}

/// The standard demands the order: without it the host mistakes a served request for a waiting one.
#[test]
fn unordered_host_mistakes_a_served_request_for_a_waiting_one() {
    // Data have arrived: the acknowledgement cannot arrive before the completion, and so has no row.
    assert_eq!(
        violated_property(&[(ORDER_STATEMENT, "")]),
        "no unexpected message"
    );
    let early_rows = EARLY_ACKNOWLEDGEMENT_STATES.replace("IE", "IE IS_C IE_C");
    assert_eq!(
        violated_property(&[
            (ORDER_STATEMENT, ""),
            (EARLY_ACKNOWLEDGEMENT_STATES, &early_rows)
        ]),
        "data value"
    );
    // The rows alone change nothing, as they are never taken.
    let size = search(&shipped("cxl-mem"), 2, 1);
    assert_eq!(
        search(
            &changed_protocol(&[(EARLY_ACKNOWLEDGEMENT_STATES, &early_rows)]),
            2,
            1
        ),
        size
    );
}

/// More order does no harm. A device that sends all messages without data through one queue is among those that the
/// protocol allows.
#[test]
fn one_ordered_queue_for_responses_is_sufficient() {
    let text = changed_protocol(&[(ORDER_STATEMENT, "  ordered s2m_ndr\n")]);
    assert!(search(&text, 2, 1).is_ok());
}

/// Each completion that answers a request for a copy needs the order.
#[test]
fn acknowledgement_is_ordered_after_each_grant() {
    let behind = |completions| format!("  ordered BIConflictAck behind {completions}\n");
    let early_rows = EARLY_ACKNOWLEDGEMENT_STATES.replace("IE", "IE IS_C IE_C");
    for (completions, expected) in [("Cmp CmpS", "data value"), ("Cmp CmpE", "single writer")] {
        let violation = violated_property(&[
            (ORDER_STATEMENT, &behind(completions)),
            (EARLY_ACKNOWLEDGEMENT_STATES, &early_rows),
        ]);
        assert_eq!(violation, expected, "{completions}");
    }
    // The order behind completions of writes and evictions has no effect: the host responds alike before and after
    // them.
    assert!(search(
        &changed_protocol(&[(ORDER_STATEMENT, &behind("CmpS CmpE"))]),
        2,
        1
    )
    .is_ok());
}

/// BIRsp carries no data, and no order keeps it behind MemWr.
#[test]
fn early_snoop_response_leaves_memory_stale() {
    let violation = violated_property(&[(
        "| BISnpInv                 | send MemWrI                  | XI_B",
        "| BISnpInv                 | send MemWrI, send BIRspI     | XI",
    )]);
    assert_eq!(violation, "data value");
}

/// An early version of the protocol had this fault. The owner evicted the line before its snoop arrived. No host was
/// then `alone` when the line went to the next one, which was not snooped.
#[test]
fn owner_is_recorded_after_eviction_during_snoop() {
    let row = "holders := { asker }, alone := true, asker := none | N\n  RD          | BIRspS";
    let changed_row = row.replace("alone := true, ", "");
    assert_eq!(violated_property(&[(row, &changed_row)]), "single writer");
}

/// The reason that there is no BISnpCur: between its response and the read of memory the owner may write. The read may
/// return this value, as it began earlier, but memory must be current when it is read.
#[test]
fn snoop_that_keeps_write_permission_exposes_stale_memory() {
    let violation = violated_property(&[
        ("BISnpInv, BISnpData\n", "BISnpInv, BISnpData, BISnpCur\n"),
        ("BIRspI, BIRspS\n", "BIRspI, BIRspS, BIRspE\n"),
        (
            "  # A snoop that meets a request",
            "  I | BISnpCur | send BIRspI | stay\n  E | BISnpCur | send BIRspE | stay\n  M | BISnpCur | send MemWrI | XI_B\n  \
             IS IS_C IS_D IE IE_C IE_D SE LE IR IW XI | BISnpCur | send BIConflict | stay\n  # A snoop that meets a request",
        ),
        (
            "MemRdCur if alone                          | send BISnpData",
            "MemRdCur if alone | send BISnpCur",
        ),
        ("RC     waits BIRspI BIRspS", "RC waits BIRspI BIRspE"),
        (
            "RC          | BIRspS                                     | send MemData to asker, alone := false,",
            "RC | BIRspE | send MemData to asker,",
        ),
    ]);
    assert_eq!(violation, "data value");
}

/// Device bias is a lock: a request that is served under it gives a host a permission besides the device's.
#[test]
fn device_bias_excludes_hosts() {
    let violation = violated_property(&[
        (
            "  D           | unlock ",
            "  D | MemRdS | send MemData, send CmpE, holders := { sender }, alone := true | stay\n  D           | unlock ",
        ),
        (
            "  RD RI RC W C CI TB D | MemRdS MemRdA ",
            "  RD RI RC W C CI TB | MemRdS | stall |\n  RD RI RC W C CI TB D | MemRdA ",
        ),
    ]);
    assert_eq!(violation, "single writer");
    // Bias is taken before the snooped hosts have responded.
    let violation = violated_property(&[(
        "send BISnpInv to holders                                       | TB",
        "acknowledge take_bias | D",
    )]);
    assert_eq!(violation, "single writer");
}
