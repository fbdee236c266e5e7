//! Programs and library functions in their intended use.

use super::{compile, root, run, run_as, run_watched, RunMode};
use cohkit_nearmemory::{Evictions, Platform, RunOutcome};
use cohkit_testing::require;

/// The example of the guide, with rare and frequent evictions. With and without the race detector, all counters agree.
#[test]
fn guide_accumulator_is_correct_under_evictions() {
    if !require::require("riscv-gcc") {
        return;
    }
    let host = compile("host", "docs/riscv/accumulator/host.c", &[]);
    let sum = compile("channel", "docs/riscv/accumulator/sum.c", &[]);
    let platform = Platform::enzian();
    let evictions = [None, Some(3), Some(40)];
    for (seed, interval) in evictions.into_iter().enumerate() {
        let seed = seed as u64;
        let evictions = interval.map(|interval| Evictions {
            mean_interval: interval,
            seed,
        });
        let result = run(&platform, &host, "", &[("sum", &sum)], evictions);
        assert_eq!(
            result.text,
            "beside far memory: 1000 numbers\ntheir sum is 500500\nthe program has ended by itself, with 0\n",
            "{interval:?}: {:?}",
            result.outcomes
        );
        assert_eq!(result.outcomes, [RunOutcome::Exit(0)]);
        // The race detector changes nothing and reports nothing.
        let watched_result = run_watched(&platform, &host, "", &[("sum", &sum)], evictions);
        assert_eq!(watched_result.outcomes, [RunOutcome::Exit(0)]);
        assert_eq!(watched_result.counters, result.counters);
        assert_eq!(
            interval.is_some(),
            result.counter("host: lines evicted at random") > 0
        );
    }
}

/// Line pipes and register pipes between host and core; line pipes with several lines; streams of lines; FIFOs and line
/// pipes between cores. Each kind blocks either the sender or the receiver, except that streams and line pipes between
/// cores block both. COHKIT_WORDS sets the number of words that each carries.
#[test]
fn all_pipe_kinds_deliver_once_under_evictions() {
    if !require::require("riscv-gcc") {
        return;
    }
    let words = std::env::var("COHKIT_WORDS").map(|text| text.parse().expect("a number"));
    let words: u64 = words.unwrap_or(2000);
    let host = compile("host", "crates/nearmemory/tests/programs/relay-host.c", &[]);
    let relay = compile("channel", "crates/nearmemory/tests/programs/relay.c", &[]);
    let platform = Platform::enzian();
    for (kind, lines, interval) in [
        ("0", 1, Some(5)),
        ("0", 8, Some(5)),
        ("0", 8, None),
        ("1", 1, Some(5)),
        ("2", 1, Some(5)),
        ("2", 8, Some(5)),
        ("3", 8, Some(5)),
        ("4", 1, Some(5)),
        ("4", 3, Some(5)),
        ("4", 8, None),
    ] {
        let evictions = interval.map(|interval| Evictions {
            mean_interval: interval,
            seed: lines,
        });
        let command = format!("{kind} {words} {lines}");
        let result = run_watched(&platform, &host, &command, &[("relay", &relay)], evictions);
        let expected = format!("{words} words, with 10 and 11\n");
        assert_eq!(
            result.text, expected,
            "{command} {interval:?}: {:?}",
            result.outcomes
        );
        assert_eq!(result.outcomes, [RunOutcome::Exit(0)]);
        if kind == "4" {
            // Lines between cores are announced by at least one word per `lines / 2` lines, and at most one word per
            // line.
            let (stored, announcements) = (
                result.counter("mcc 0: lines stored"),
                result.counter("mcc 0: words sent") - 1,
            );
            assert!(
                announcements * lines.div_ceil(2) >= stored && announcements <= stored,
                "{command}: {announcements}, {stored}"
            );
            assert!(stored * 16 >= words, "{command}: {stored}");
        } else {
            assert_eq!(result.counter("mcc 0: words sent"), words + 1);
        }
    }
}

/// Seeded faults of a header: each pair of texts, of which the second one replaces the first one, must make one of the runs
/// of a program fail, with these arguments and intervals of random evictions.
fn require_detected_faults(
    platform: &Platform,
    (header, program): (&str, &str),
    faults: &[(&str, &str)],
    runs: &[(&str, Option<u64>)],
) {
    let source = std::fs::read_to_string(root().join("nearmemory").join(header))
        .expect("the file can be read");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let include_folder = folder.path().join("nearmemory");
    std::fs::create_dir(&include_folder).expect("the folder can be created");
    let path = folder.path().to_str().expect("a name").to_string();
    // The compiler first searches quoted includes in the folder of the including file, so all headers are copied to one
    // folder.
    for file in std::fs::read_dir(root().join("nearmemory")).expect("the folder can be read") {
        let file = file.expect("the folder can be read").path();
        if file.extension().is_some_and(|extension| extension == "h") {
            let name = file.file_name().expect("a file has a name");
            std::fs::copy(&file, include_folder.join(name)).expect("the file can be copied");
        }
    }
    let options = ["-Wno-error", "-iquote", &path, &format!("-I{path}")];
    for (original, mutated) in faults {
        assert_eq!(source.matches(original).count(), 1, "{original}");
        std::fs::write(
            include_folder.join(header),
            source.replace(original, mutated),
        )
        .expect("the file can be written");
        let file = |end: &str| format!("crates/nearmemory/tests/programs/{program}{end}.c");
        let host = compile("host", &file("-host"), &options);
        let channel = compile("channel", &file(""), &options);
        let is_detected = runs.iter().any(|(arguments, interval)| {
            let evictions = interval.map(|interval| Evictions {
                mean_interval: interval,
                seed: 1,
            });
            let channels: [(&str, &[u8]); 1] = [(program, &channel)];
            let result = run_watched(platform, &host, arguments, &channels, evictions);
            result.outcomes != [RunOutcome::Exit(0)]
        });
        assert!(is_detected, "{mutated}");
    }
}

/// Faults of the core's side of line pipes to and from its host.
#[test]
fn faults_of_line_pipes_of_cores_are_found() {
    if !require::require("riscv-gcc") {
        return;
    }
    // Faults: a taken line is not released; the notice or the line after the last one is not the first one; a taken line is
    // not reported; a partially written line is never released; a line is written
    // over one that the host has not taken.
    require_detected_faults(
        &Platform::enzian(),
        ("channel-pipe.h", "relay"),
        &[
            (
                "  nm_release(nm_notice_line(own_notice), NM_WRITE_BACK);\n",
                "",
            ),
            ("    receiver->notice -= 2 * receiver->lines;\n", ""),
            ("    receiver->next -= receiver->lines;\n", ""),
            (
                "->words[0] = ++receiver->received;",
                "->words[0] = 0 * ++receiver->received;",
            ),
            (
                "  nm_release(line, NM_WRITE_BACK);\n  return 0;",
                "  return 0;",
            ),
            (
                "if (sender->sent - sender->taken < sender->lines) return 1;",
                "return 1;",
            ),
        ],
        &[
            ("0 2000 1", Some(5)),
            ("0 2000 8", Some(5)),
            ("2 2000 8", None),
        ],
    );
}

/// Faults of the host's side. Sending a line over one that was not taken is not among them: it loses no words, because
/// the lock holds the write-back.
#[test]
fn faults_of_line_pipes_of_hosts_are_found() {
    if !require::require("riscv-gcc") {
        return;
    }
    require_detected_faults(
        &Platform::enzian(),
        ("host-pipe.h", "relay"),
        &[
            // The tag is written first.
            (
                "  if (count == NM_WORDS) {\n",
                "  line->tag = sender->sent << 8 | NM_WHOLE_LINE | count;\n  if (count == NM_WORDS) {\n",
            ),
            // An old tag makes a partially written line look whole.
            ("  line->tag = sender->sent << 8;\n", ""),
            // A sent line stays in the cache, or the receiver polls a stale line or a stale count for ever.
            ("  nm_flush_now(line);\n  // Of", "  // Of"),
            ("    nm_flush_now(line);\n    return 0;", "    return 0;"),
            ("  nm_flush_now(taken);\n  nm_prefetch", "  nm_prefetch"),
            // The report stays in the cache.
            ("  nm_clean_now(taken);\n", ""),
        ],
        &[
            ("0 2000 1", Some(5)),
            ("2 2000 8", Some(5)),
            ("2 2000 8", None),
        ],
    );
}

#[test]
fn faults_of_core_to_core_line_pipes_are_found() {
    if !require::require("riscv-gcc") {
        return;
    }
    // Faults: the sender announces lines before they are in far memory, or stores more than the receiver has fetched.
    // The receiver uses lines before they arrive, or acknowledges more than it has fetched. A copy exceeds the last
    // line, or only part of the words of a line is announced.
    require_detected_faults(
        &Platform::enzian(),
        ("far-pipe.h", "relay"),
        &[
            ("nm_await_stores(nm_stores_begun());", ";"),
            (
                "sender->side.lines - (sender->side.done - sender->taken)",
                "sender->side.lines",
            ),
            ("nm_await_fetches(nm_fetches_begun());", ";"),
            (
                "receiver->unreported += nm_far_lines(count)",
                "receiver->unreported += nm_far_lines(count) + 1",
            ),
            (
                "until_wrap = nm_lesser(lines, side->lines - slot)",
                "until_wrap = lines",
            ),
            (
                "(words + NM_FAR_WORDS - 1) / NM_FAR_WORDS",
                "words / NM_FAR_WORDS",
            ),
        ],
        &[("4 2000 3", None)],
    );
}

/// Functional runs print the same output as timed runs.
#[test]
fn programs_do_the_same_without_time() {
    if !require::require("riscv-gcc") {
        return;
    }
    let platform = Platform::enzian();
    // Programs of the test folder, their arguments, and the end of their output.
    for (name, arguments, last_line_start) in [
        ("arrays", "", "all is right"),
        ("lends", "", "a line of the host"),
        ("locks", "", "all is right"),
        ("relay", "0 2000 1", "2000 words, with 10 and 11"),
        ("relay", "1 2000 1", "2000 words, with 10 and 11"),
        ("relay", "2 2000 8", "2000 words, with 10 and 11"),
        ("relay", "3 2000 8", "2000 words, with 10 and 11"),
        ("relay", "4 2000 8", "2000 words, with 10 and 11"),
        ("stray", "8", "again 0 state 3 status 9"),
    ] {
        let source = |end: &str| format!("crates/nearmemory/tests/programs/{name}{end}.c");
        let host = compile("host", &source("-host"), &[]);
        let channel = compile("channel", &source(""), &[]);
        for interval in [None, Some(5)] {
            let evictions = interval.map(|interval| Evictions {
                mean_interval: interval,
                seed: 1,
            });
            let channels: [(&str, &[u8]); 1] = [(name, &channel)];
            let result = run_as(
                &platform,
                &host,
                arguments,
                &channels,
                evictions,
                RunMode::FastInterpreter,
            );
            let context = format!("{name} {arguments} {interval:?}: {}", result.text);
            assert_eq!(result.outcomes, [RunOutcome::Exit(0)], "{context}");
            let last_line = result.text.lines().last().expect("a line");
            assert!(last_line.starts_with(last_line_start), "{context}");
        }
    }
}

/// Loads of a line in flight, between stores to it: the printed words contain the earlier stores only.
#[test]
fn loads_return_only_stores_before_them() {
    if !require::require("riscv-gcc") {
        return;
    }
    let source = "crates/nearmemory/tests/programs/order-host.c";
    let program = compile("host", source, &[]);
    for mode in [RunMode::InTime, RunMode::FastInterpreter] {
        let result = run_as(&Platform::enzian(), &program, "order", &[], None, mode);
        assert_eq!(result.text, "0 3 0x30004 9\n");
        assert_eq!(result.outcomes, [RunOutcome::Exit(0)]);
    }
}

/// Programs that run one after the other on a core find empty pipes at other lines, also with a small scratchpad.
#[test]
fn pipe_state_is_reset_between_programs() {
    if !require::require("riscv-gcc") {
        return;
    }
    let host = compile("host", "crates/nearmemory/tests/programs/again-host.c", &[]);
    let again = compile("channel", "crates/nearmemory/tests/programs/again.c", &[]);
    let mut small = Platform::enzian();
    small.scratchpad.value = 420;
    for (platform, mode) in [
        (Platform::enzian(), RunMode::InTime),
        (Platform::enzian(), RunMode::FastInterpreter),
        (small, RunMode::InTime),
    ] {
        let result = run_as(&platform, &host, "", &[("again", &again)], None, mode);
        assert_eq!(result.text, "each sum is right\n");
        assert_eq!(result.outcomes, [RunOutcome::Exit(0)]);
    }
}

/// Host and channel program of two source files each; the state of the library exists once in each.
#[test]
fn programs_of_several_sources_have_one_library() {
    if !require::require("riscv-gcc") {
        return;
    }
    let source = |name| format!("crates/nearmemory/tests/programs/{name}.c");
    let host = compile("host", &source("parts-host"), &[&source("parts-host-2")]);
    let parts = compile("channel", &source("parts"), &[&source("parts-2")]);
    let channels: [(&str, &[u8]); 1] = [("parts", &parts)];
    let result = run_watched(&Platform::enzian(), &host, "", &channels, None);
    assert_eq!(result.text, "all is right\n");
    assert_eq!(result.outcomes, [RunOutcome::Exit(0)]);
}

/// A stream relies on the order of one host's requests: its report of used lines arrives before its next requests for them.
/// A request that overtakes the report returns the line that was used.
#[test]
fn request_of_a_stream_must_not_overtake_the_report() {
    if !require::require("riscv-gcc") {
        return;
    }
    let (report, request) = (
        "    line[0] = in->reported;\n    nm_clean_now(line);\n",
        "    nm_stream_request(in, slot, NM_STREAM_REPORT);\n",
    );
    let (in_order, overtaking) = (format!("{report}{request}"), format!("{request}{report}"));
    // On a slow link, the report arrives long after the first request.
    let mut platform = Platform::enzian();
    platform
        .set("link.bandwidth", "100MB/s")
        .expect("a valid value");
    let faults: [(&str, &str); 1] = [(&in_order, &overtaking)];
    require_detected_faults(&platform, ("stream.h", "streams"), &faults, &[("", None)]);
}

/// Streams with less room than lines; receivers that stop before the end of a stream; words that remain in a FIFO from
/// an earlier program.
#[test]
fn full_streams_spare_the_host_and_leftovers_are_dropped() {
    if !require::require("riscv-gcc") {
        return;
    }
    for name in ["several", "leaves", "remains"] {
        let source = |end: &str| format!("crates/nearmemory/tests/programs/{name}{end}.c");
        let host = compile("host", &source("-host"), &[]);
        let channel = compile("channel", &source(""), &[]);
        for interval in [None, Some(5)] {
            let evictions = interval.map(|interval| Evictions {
                mean_interval: interval,
                seed: 1,
            });
            let channels: [(&str, &[u8]); 1] = [(name, &channel)];
            let result = run_watched(&Platform::enzian(), &host, "", &channels, evictions);
            assert_eq!(result.text, "all is right\n", "{name}");
            assert_eq!(result.outcomes, [RunOutcome::Exit(0)]);
        }
    }
}

/// Two streams in the same lines of the scratchpad, one after the other; the second one's lines replace the first
/// one's.
#[test]
fn consecutive_streams_reuse_lines() {
    if !require::require("riscv-gcc") {
        return;
    }
    let host = compile(
        "host",
        "crates/nearmemory/tests/programs/streams-host.c",
        &[],
    );
    let streams = compile("channel", "crates/nearmemory/tests/programs/streams.c", &[]);
    let evictions = Some(Evictions {
        mean_interval: 20,
        seed: 1,
    });
    for (evictions, mode) in [
        (None, RunMode::InTime),
        (None, RunMode::FastInterpreter),
        (evictions, RunMode::InTime),
    ] {
        let channels = [("streams", &streams[..])];
        let result = run_as(&Platform::enzian(), &host, "", &channels, evictions, mode);
        assert_eq!(result.text, "all lines are right\n");
        assert_eq!(result.outcomes, [RunOutcome::Exit(0)]);
    }
}
