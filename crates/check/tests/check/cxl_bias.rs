//! Device memory with bias: the purpose of the protocol's only order, and the reason that the host's own request has
//! priority. Mistakes that have a chart are in `cohkit_testing::mutations`.

use crate::changed_protocols::{search, search_every_state, with_changes, Change};
use crate::support::shipped;

/// Statement of the only order of the protocol.
const ORDER_STATEMENT: &str = "  ordered m2s_req per line                # of which nothing but a request behind MemRdFwd ever matters\n";

/// Response of a waiting device to a host whose upgrade it cannot grant yet.
const RETRY_ROW: &str = "  RD RI W CI TB | MemInv                                    | send CmpS ";

/// Returns the protocol with changes. Each replaced string occurs once.
fn changed_protocol(changes: &[Change]) -> String {
    with_changes("cxl-bias", changes)
}

/// Pins the sizes of the unchanged protocol, with which all changed ones are compared.
#[test]
fn hosts_share_device_memory_coherently() {
    let text = shipped("cxl-bias");
    assert_eq!(search_every_state(&text, 1, 1), Ok((708, 1807)));
    assert_eq!(search(&text, 2, 1), Ok((9620, 34_131)));
    assert_eq!(search(&text, 3, 1), Ok((83_780, 399_997)));
    // Nothing couples two lines: requests have an order only with those of their own line.
    assert_eq!(search(&text, 1, 2), Ok((708 * 708, 2 * 708 * 1807)));
}

/// The host's response is a request, so that its next request stays behind it. A request that arrived first would be
/// mistaken for one that the host made before its response.
#[test]
fn unordered_host_response_confuses_two_requests() {
    let found = search(&changed_protocol(&[(ORDER_STATEMENT, "")]), 1, 1);
    assert_eq!(found, Err("no unexpected message".into()));
    // An upgrade cannot arrive while the device requests the copy of the only sharer. This test adds a row for it.
    let served = ("  RD W CI TB | MemInv if", "  RD W C CI TB | MemInv if");
    let found = search(&changed_protocol(&[(ORDER_STATEMENT, ""), served]), 1, 1);
    assert_eq!(found, Err("single writer".into()));
    assert_eq!(
        search(&changed_protocol(&[served]), 1, 1),
        Ok((708, 1807)),
        "it is never taken otherwise"
    );
}

/// A host cannot know whether the device has served its request, so it must not respond before the request completes.
#[test]
fn early_host_response_violates_single_writer() {
    let early = changed_protocol(&[(
        "  IS IS_C IE IE_C IE_D SE XI | RdOwnNoData RdShared | stall     |",
        "  IS IS_C IE IE_C IE_D | RdOwnNoData RdShared | send MemRdFwdI | stay\n  SE XI | RdOwnNoData RdShared | stall |",
    )]);
    assert_eq!(search(&early, 1, 1), Err("single writer".into()));
}

/// No order keeps MemRdFwd behind MemWr.
#[test]
fn early_host_response_leaves_memory_stale() {
    let early = changed_protocol(&[("send MemWrI     | XI_F", "send MemWrI, send MemRdFwdI | XI")]);
    assert_eq!(search(&early, 1, 1), Err("data value".into()));
}

/// The host's request has priority over the device's own, in any order of arrival. A device that stalls it waits for
/// ever itself.
#[test]
fn device_that_stalls_the_host_request_deadlocks() {
    let stalling = changed_protocol(&[
        (
            "  RD RC W C CI TB | MemRdS MemRdA if hosts == { sender }    | send MemData, send CmpE ",
            "  RD RC W C CI TB | MemRdS MemRdA if hosts == { sender }    | stall | \n  RD | clean | stall # ",
        ),
        ("  RD RI RC W C CI TB L | MemRdS MemRdA MemRdCur MemWr clean", "  RD RI RC W C CI TB L | MemRdS MemRdA MemRdCur MemWr"),
        ("MemWr clean_invalidate take_bias | stall                                |", "MemWr clean_invalidate take_bias | stall |\n  RI RC W C CI TB L | clean | stall |"),
    ]);
    let found = search(&stalling, 1, 1).unwrap_err();
    assert!(found.starts_with("no deadlock"), "{found}");
}

/// CmpS is for several hosts, which the standard does not have. Each of two hosts with a copy requests write
/// permission, and neither responds to the device before it has been served. A single host never has to give way.
#[test]
fn two_upgrading_hosts_deadlock_unless_one_yields() {
    let without_yield = changed_protocol(&[(RETRY_ROW, "  RD RI W CI TB | MemInv | stall | # ")]);
    assert_eq!(search_every_state(&without_yield, 1, 1), Ok((708, 1807)));
    let found = search(&without_yield, 2, 1).unwrap_err();
    assert!(found.starts_with("no deadlock"), "{found}");
}

/// In device bias the device accesses its memory without a request to any host, so hosts must have no copy. The fault
/// enters device bias without recalling the copies.
#[test]
fn device_bias_requires_a_request_to_hosts() {
    let without_request = changed_protocol(&[(
        "  H          | take_bias                                    | send RdOwnNoData to hosts                                       | TB",
        "  H          | take_bias                                    | acknowledge take_bias, hosts := {}, alone := false              | L",
    )]);
    assert_eq!(search(&without_request, 1, 1), Err("single writer".into()));
}
