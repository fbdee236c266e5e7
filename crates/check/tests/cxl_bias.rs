//! A device's memory with bias: what its one order is for, and why the host's own request goes first.
//! Mistakes that have a chart are in `tests/mutations/mistakes.rs`.

mod changed;

use changed::{search, shipped};

/// The one order of the text.
const ORDER: &str = "  ordered m2s_req per line                # of which nothing but a request behind MemRdFwd ever matters\n";

/// What a device that waits tells a host whose upgrade it cannot grant yet.
const AGAIN: &str = "  RD RI W CI TB | MemInv                                    | send CmpS ";

/// The text with changes, each of something that it says once.
fn changed(changes: &[(&str, &str)]) -> String {
    changed::changed("cxl-bias", changes)
}

#[test]
fn a_host_and_several_share_a_device_s_memory() {
    let text = shipped("cxl-bias");
    assert_eq!(search(&text, 1, 1, false), Ok((708, 1807)));
    assert_eq!(search(&text, 2, 1, true), Ok((9620, 34_131)));
    assert_eq!(search(&text, 3, 1, true), Ok((83_780, 399_997)));
    // Nothing joins two lines: requests are in order with those of their own line alone.
    assert_eq!(search(&text, 1, 2, true), Ok((708 * 708, 2 * 708 * 1807)));
}

/// The host's answer is a request, so that its next request stays behind it. A request that came first would be taken for one
/// that the host made before it answered.
#[test]
fn without_the_order_a_later_request_is_taken_for_an_earlier_one() {
    let found = search(&changed(&[(ORDER, "")]), 1, 1, true);
    assert_eq!(found, Err("no unexpected message".into()));
    // An upgrade cannot come where the host is asked for a copy that it alone has, and has a row there for this test.
    let served = ("  RD W CI TB | MemInv if", "  RD W C CI TB | MemInv if");
    let found = search(&changed(&[(ORDER, ""), served]), 1, 1, true);
    assert_eq!(found, Err("single writer".into()));
    assert_eq!(
        search(&changed(&[served]), 1, 1, true),
        Ok((708, 1807)),
        "it is never taken otherwise"
    );
}

/// A host cannot tell whether the device has served its request, so it may not answer before that has ended.
#[test]
fn a_host_that_answers_while_its_request_is_under_way_keeps_the_copy_that_comes() {
    let early = changed(&[(
        "  IS IS_C IE IE_C IE_D SE XI | RdOwnNoData RdShared | leave     |",
        "  IS IS_C IE IE_C IE_D | RdOwnNoData RdShared | send MemRdFwdI | stay\n  SE XI | RdOwnNoData RdShared | leave |",
    )]);
    assert_eq!(search(&early, 1, 1, true), Err("single writer".into()));
}

/// Nothing keeps MemRdFwd behind MemWr.
#[test]
fn a_host_that_does_not_wait_for_its_write_back_leaves_memory_old() {
    let early = changed(&[("send MemWrI     | XI_F", "send MemWrI, send MemRdFwdI | XI")]);
    assert_eq!(search(&early, 1, 1, true), Err("data value".into()));
}

/// The host's request is before the device's own, whoever asked first: a device that lets it wait waits for ever itself.
#[test]
fn a_device_that_does_not_serve_the_host_that_it_has_asked_stands_still() {
    let stubborn = changed(&[
        (
            "  RD RC W C CI TB | MemRdS MemRdA if hosts == { sender }    | send MemData, send CmpE ",
            "  RD RC W C CI TB | MemRdS MemRdA if hosts == { sender }    | leave | \n  RD | clean | leave # ",
        ),
        ("  RD RI RC W C CI TB L | MemRdS MemRdA MemRdCur MemWr clean", "  RD RI RC W C CI TB L | MemRdS MemRdA MemRdCur MemWr"),
        ("MemWr clean_invalidate take_bias | leave                                |", "MemWr clean_invalidate take_bias | leave |\n  RI RC W C CI TB L | clean | leave |"),
    ]);
    let found = search(&stubborn, 1, 1, true).unwrap_err();
    assert!(found.starts_with("no deadlock"), "{found}");
}

/// Cmp-S is for several hosts, which the standard does not have: each of two with a copy asks to write it, and neither answers the
/// device before it has been served. One host alone is never told to give way.
#[test]
fn two_hosts_that_wait_for_each_other_need_one_that_gives_way() {
    let firm = changed(&[(AGAIN, "  RD RI W CI TB | MemInv | leave | # ")]);
    assert_eq!(search(&firm, 1, 1, false), Ok((708, 1807)));
    let found = search(&firm, 2, 1, true).unwrap_err();
    assert!(found.starts_with("no deadlock"), "{found}");
}

/// In device bias the device asks nobody: that it may is what a host in host bias with a copy would break.
#[test]
fn a_line_in_host_bias_is_not_the_device_s_without_asking() {
    let rash = changed(&[(
        "  H          | take_bias                                    | send RdOwnNoData to hosts                                       | TB",
        "  H          | take_bias                                    | acknowledge take_bias, hosts := {}, alone := false              | L",
    )]);
    assert_eq!(search(&rash, 1, 1, true), Err("single writer".into()));
}
