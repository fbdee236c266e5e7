//! Verdicts on small protocols whose correct verdict is known: one fault each, or none. The first comment of each file
//! describes the protocol and its verdict, and `# fault:` marks the faulty rows.

use crate::{cohkit, text};
use std::path::{Path, PathBuf};

/// Path of one of the small protocols.
fn protocol_file(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/command/known_verdicts");
    folder.join(format!("{name}.coh"))
}

/// Exit code and output of a command on a protocol file.
fn run_on(arguments: &[&str], name: &str) -> (Option<i32>, String) {
    let output = cohkit(arguments)
        .arg(protocol_file(name))
        .output()
        .expect("the command starts");
    let printed = text(&output.stdout) + &text(&output.stderr);
    (output.status.code(), printed)
}

/// Verdict on a protocol with an access that may never start again, which is no violation.
const NOTE: &str = "verified, with a note";

#[test]
fn protocol_verdicts_match_the_table() {
    let mut mismatches = String::new();
    for (name, verdict) in VERDICTS {
        let (code, printed) = run_on(&["check", "--threads", "1"], name);
        let has_note = printed.contains("from which it can never");
        let is_expected = match *verdict {
            "verified" => code == Some(0) && !has_note,
            NOTE => code == Some(0) && has_note,
            violation => code == Some(1) && printed.contains(violation),
        };
        if !is_expected {
            mismatches += &format!("{name}: {verdict} expected\n{printed}\n");
        }
    }
    assert!(mismatches.is_empty(), "{mismatches}");
    let folder = protocol_file("").parent().map(Path::read_dir);
    let files = folder.expect("a folder").expect("the file can be read");
    assert_eq!(files.count(), VERDICTS.len(), "the table lists each file");
}

/// Arguments of a simulation of two caches on a small region, with further quantities set; the protocol file follows
/// them.
fn simulate_arguments<'a>(quantities: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec!["sim", "thunderx1-2s", "random-mixed"];
    for quantity in ["remotes=2", "cores.count=2"].iter().chain(quantities) {
        arguments.extend(["--set", quantity]);
    }
    arguments.extend(["--region", "2KiB", "--accesses", "3000", "--protocol"]);
    arguments
}

#[test]
fn verdict_names_undeliverable_message_and_missing_row() {
    let undeliverable = "a row of directory cannot be executed: Recall is sent to `none`";
    let simulation = simulate_arguments(&[]);
    for command in [&["check"][..], &["litmus", "MP", "--protocol"], &simulation] {
        let (code, printed) = run_on(command, "owner_forgotten");
        assert!(printed.contains("no unexpected message"), "{printed}");
        assert!(
            printed.replace("\n", " ").contains(undeliverable),
            "{printed}"
        );
        assert_eq!(code, Some(1));
    }
    let (_, printed) = run_on(&["check"], "channel_of_other_kind");
    let missing_row = "cpu takes Recall, but has no rule for it in this state";
    assert!(printed.contains(missing_row), "{printed}");
}

/// A simulation reports lost and repeated stores as violations of the same property as the checker does.
#[test]
fn simulations_find_stores_that_are_given_up_late_or_lost() {
    let simulation = simulate_arguments(&[
        "cores.write_buffer=0B",
        "cores.max_outstanding=1",
        "cores.prefetch_distance=0",
        "cores.l1_size=0B",
    ]);
    for (name, property, message) in [
        (
            "store_refused_and_written",
            "data value",
            "is cancelled although the home has performed it",
        ),
        (
            "none_store_lost",
            "every store is performed once",
            "has completed is not performed",
        ),
    ] {
        let (code, printed) = run_on(&simulation, name);
        let printed = printed.replace("\n", " ");
        assert!(printed.contains(property), "{name}: {printed}");
        assert!(printed.contains(message), "{name}: {printed}");
        assert_eq!(code, Some(1), "{name}");
    }
}

/// Regression: litmus tests took the row for one that cannot be executed.
#[test]
fn row_without_channel_capacity_waits() {
    let (code, printed) = run_on(&["check"], "full_queue");
    assert!(!printed.contains("cannot be executed"), "{printed}");
    assert_eq!(code, Some(1));
    let (code, printed) = run_on(&["litmus", "SB", "--protocol"], "full_queue");
    assert!(!printed.contains("cannot be executed"), "{printed}");
    assert!(printed.contains("deadlock"), "{printed}");
    assert_eq!(code, Some(1));
}

/// Names of the protocol files, and the text that their verdict must contain.
const VERDICTS: &[(&str, &str)] = &[
    ("ack_before_performed", "violated: data value"),
    ("acks_off_by_one", "violated: data value"),
    ("any_chooses_requester", "violated: no deadlock"),
    ("any_instead_of_all", "violated: data value"),
    ("any_sharer", "verified"),
    ("atomic_lost", "violated: data value"),
    (
        "atomic_passes_own_store",
        "violated: program order of one line",
    ),
    ("atomic_returns_new", "violated: atomicity"),
    ("atomic_split", "violated: atomicity"),
    ("atomic_two_phase", "verified"),
    ("bound_exceeded", "violated: more than 1 message in flight"),
    ("bytes_of_old_memory", "violated: data value"),
    ("channel_of_other_kind", "violated: no unexpected message"),
    ("clean_without_writing", "violated: data value"),
    ("combined_lost", "violated: one deferred store at a time"),
    ("credit_never_returned", NOTE),
    (
        "credit_never_returned_sc",
        "violated: sequential consistency",
    ),
    ("cycle_number_too_short", "violated: data value"),
    ("data_to_old_owner", "violated: no unexpected message"),
    ("data_while_locked", "violated: single writer"),
    ("deferred_one_entry", "verified"),
    (
        "deferred_store_overtaken",
        "violated: program order of one line",
    ),
    ("done_in_copy_then_dropped", "violated: data value"),
    ("entry_of_home_leaks", "violated: no deadlock"),
    ("evict_notice_ordered", "verified"),
    ("evict_notice_overtaken", "violated: data value"),
    ("full_queue", "violated: no deadlock"),
    ("full_store_drops_line", "verified"),
    ("goals", "verified"),
    ("goals_writer_beside_reader", "violated: single writer"),
    ("gone_counted_twice", "violated: data value"),
    ("gone_once", "verified"),
    ("home_sends_old_word", "verified"),
    ("homes_notify", "violated: release consistency"),
    ("homes_notify_not_reset", "violated: values in range"),
    ("invariant_too_strong", "violated: quiet"),
    ("line_sent_after_store", "verified"),
    ("line_sent_before_store", "violated: data value"),
    ("local_clean_before_write", "violated: data value"),
    ("local_refused_for_ever", "violated: progress"),
    ("lock", "verified"),
    ("lock_never_given_back", "violated: lock"),
    ("lock_too_early", "violated: single writer"),
    ("mshr_merge", "verified"),
    ("nack_for_ever", "violated: progress"),
    ("nack_with_evict", "verified"),
    ("network_apart", "verified"),
    ("network_request_in_row", "violated: no deadlock"),
    ("network_shared", "violated: no deadlock"),
    (
        "network_too_small",
        "violated: every request can still complete",
    ),
    ("none_late_copy", "violated: release consistency"),
    ("none_rc_acquire_hits", "violated: release consistency"),
    ("none_sc", "violated: sequential consistency"),
    ("none_store_lost", "violated: every store is performed once"),
    ("nothing_begins_again", NOTE),
    ("nothing_begins_again_variable", NOTE),
    ("old_line_over_deferred_store", "violated: data value"),
    ("one_miss_at_a_time", "verified"),
    ("ordered_lines_one_line", "violated: no deadlock"),
    ("ordered_lines_two_lines", "violated: no deadlock"),
    ("own_copy_kept", "violated: program order of one line"),
    ("owner_forgotten", "violated: no unexpected message"),
    (
        "owner_register_joins_lines",
        "violated: no unexpected message",
    ),
    ("owner_set_before_recall", "violated: single writer"),
    ("partial_store_without_merge", "violated: data value"),
    ("posted_doubled", "violated: data value"),
    ("posted_lost", "violated: data value"),
    ("posted_ordered", "verified"),
    ("posted_read_passes", "violated: program order of one line"),
    ("posted_refused", "violated: data value"),
    ("posted_reordered", "violated: program order of one line"),
    (
        "rc_atomic_release_passes_store",
        "violated: release consistency",
    ),
    ("rc_one_ack_for_all", "violated: release consistency"),
    ("rc_waits_for_own_home", "violated: release consistency"),
    ("read_behind_store", "verified"),
    (
        "read_past_own_deferred_store",
        "violated: program order of one line",
    ),
    ("reader_admitted_while_deferred", "violated: data value"),
    ("retry_between_two_states", "violated: progress"),
    (
        "sc_with_loads_not_in_order",
        "violated: sequential consistency",
    ),
    ("single_cache_line_dropped", "violated: data value"),
    (
        "store_on_in_copy_hit_while_posted",
        "violated: program order of one line",
    ),
    ("store_refused_and_written", "violated: data value"),
    ("store_refused_once", "verified"),
    ("store_retried_in_place", "violated: progress"),
    ("store_to_remote", "violated: data value"),
    ("tokens_two_of_three", "violated: single writer"),
    ("told_no_fence_rows", "violated: release consistency"),
    ("uncached_acked", "verified"),
    ("variable_overflows", "violated: values in range"),
    ("write_twice_in_a_row", "violated: data value"),
];
