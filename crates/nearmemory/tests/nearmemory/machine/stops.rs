//! Programs that are rejected, stopped, or end, and the states that their hosts observe.

use super::{compile, root, run, run_as, run_watched, RunMode, RunResult};
use cohkit_nearmemory::host::SCRATCHPADS;
use cohkit_nearmemory::{CoreId, Evictions, Platform, RunOutcome};
use cohkit_riscv::elf;
use cohkit_testing::require;

/// The core of the host that runs the main program.
const HOST_CORE: CoreId = CoreId::Host { host: 0, core: 0 };

/// The program accesses memory or pipes that it was not granted, or copies outside its far memory. The core stops, the
/// host observes the cause and continues, and another program runs on the core afterwards.
#[test]
fn violation_stops_one_program_and_reports_its_position() {
    if !require::require("riscv-gcc") {
        return;
    }
    let host = compile("host", "crates/nearmemory/tests/programs/stray-host.c", &[]);
    let source = "crates/nearmemory/tests/programs/stray.c";
    let stray = compile("channel", source, &[]);
    let text = std::fs::read_to_string(root().join(source)).expect("the file can be read");
    let line_of = |words: &str| {
        let line = text.lines().position(|line| line.contains(words));
        line.expect("a line of the source contains the words") as u64 + 1
    };
    let platform = Platform::enzian();
    // Case of the program, cause (7: access fault), address, and text and file of the line that causes the fault.
    let cases = [
        (1, 7, 0x21_0000, "case 1:", "stray.c"),
        (2, 7, 0x40_0000_0000, "case 2:", "stray.c"),
        (3, 7, 0x20_0038, "[7] = line", "scratchpad.h"),
        (4, 7, 0x20_0038, "[7] = line", "scratchpad.h"),
        (5, 7, 0x1_0000, "case 5:", "stray.c"),
        (6, 7, 0x22_0000, "case 6:", "stray.c"),
    ];
    let library = std::fs::read_to_string(root().join("nearmemory/scratchpad.h"))
        .expect("the file can be read");
    for (case, cause, value, words, file) in cases {
        let result = run(
            &platform,
            &host,
            &case.to_string(),
            &[("stray", &stray)],
            None,
        );
        let [RunOutcome::Stopped {
            mcc: 0,
            name,
            exception,
            pc,
            ..
        }, RunOutcome::Exit(0)] = &result.outcomes[..]
        else {
            panic!("{case}: {:?} {}", result.outcomes, result.text);
        };
        assert_eq!(name.as_deref(), Some("stray"));
        assert_eq!(exception.cause().0, cause, "{case}");
        let reported_value = exception.cause().1;
        // The address of the program's own function lies slightly above the start.
        assert!(
            reported_value == value || case == 5 && reported_value - value < 0x1000,
            "{case}: {reported_value:#x}"
        );
        let (source_file, line) = elf::line(&stray, *pc).expect("the program has line information");
        let expected = match file {
            "stray.c" => line_of(words),
            _ => {
                library
                    .lines()
                    .position(|l| l.contains(words))
                    .expect("a line of the library contains the words") as u64
                    + 1
            }
        };
        assert_eq!((source_file.as_str(), line), (file, expected), "{case}");
        // The host's read was held, and then released.
        let expected_text = format!(
            "state 5 status -1 cause {cause} value {reported_value:#x} word 42 far 0\nagain 0 state 3 status 9\n"
        );
        assert_eq!(result.text, expected_text, "{case}");
        assert_eq!(result.counter("mcc 0: requests of the host stalled"), 1);
    }
    // Permitted accesses succeed.
    let result = run(&platform, &host, "8", &[("stray", &stray)], None);
    assert_eq!(result.outcomes, [RunOutcome::Exit(0)]);
    assert_eq!(
        result.text,
        "state 3 status 9 cause 0 value 0 word 42 far 42\nagain 0 state 3 status 9\n"
    );
}

/// The host skips the inspection of a program with invalid demands; the core inspects it again.
#[test]
fn cores_reject_programs_that_the_host_did_not_inspect() {
    if !require::require("riscv-gcc") {
        return;
    }
    let host = compile("host", "crates/nearmemory/tests/programs/stray-host.c", &[]);
    // The program demands far memory that it was not granted.
    let wants = compile(
        "channel",
        "crates/nearmemory/tests/programs/stray.c",
        &["-DELSEWHERE"],
    );
    let result = run(&Platform::enzian(), &host, "0", &[("stray", &wants)], None);
    let [RunOutcome::Rejected { mcc: 0, reason, .. }, RunOutcome::Exit(1)] = &result.outcomes[..]
    else {
        panic!("{:?} {}", result.outcomes, result.text);
    };
    assert!(
        reason.contains("requests far memory here that is not granted"),
        "{reason}"
    );
    assert_eq!(result.text, "error -4\n");
}

/// The host's requests to locked lines are held until the program releases them, also if lines are evicted at random.
#[test]
fn locks_hold_host_requests_under_evictions() {
    if !require::require("riscv-gcc") {
        return;
    }
    let host = compile("host", "crates/nearmemory/tests/programs/locks-host.c", &[]);
    let locks = compile("channel", "crates/nearmemory/tests/programs/locks.c", &[]);
    for interval in [None, Some(7)] {
        let evictions = interval.map(|interval| Evictions {
            mean_interval: interval,
            seed: 1,
        });
        let channels: [(&str, &[u8]); 1] = [("locks", &locks)];
        let result = run_watched(&Platform::enzian(), &host, "", &channels, evictions);
        assert_eq!(result.outcomes, [RunOutcome::Exit(0)], "{}", result.text);
        assert_eq!(result.text, "all is right\n");
        // 200 write-backs and 200 reads, twice.
        assert!(result.counter("mcc 0: requests of the host stalled") >= 800);
    }
}

/// A program ends, faults or is stopped with outstanding copies; the next program on the core finds none of them.
#[test]
fn programs_end_once_their_copies_end() {
    if !require::require("riscv-gcc") {
        return;
    }
    let programs = "crates/nearmemory/tests/programs";
    let host = compile("host", &format!("{programs}/unwaited-host.c"), &[]);
    let unwaited = compile("channel", &format!("{programs}/unwaited.c"), &[]);
    let channels: &[(&str, &[u8])] = &[("unwaited", &unwaited)];
    for mode in [RunMode::InTime, RunMode::FastInterpreter, RunMode::Watched] {
        let result = run_as(&Platform::enzian(), &host, "", channels, None, mode);
        assert_eq!(
            result.text, "all is right\n",
            "{mode:?}: {:?}",
            result.outcomes
        );
        let [RunOutcome::Stopped { mcc: 0, .. }, RunOutcome::Exit(0)] = &result.outcomes[..] else {
            panic!("{mode:?}: {:?}", result.outcomes);
        };
    }
}

/// Host and four cores print at the same time; no line is mixed with another, or lost.
#[test]
fn printed_lines_are_complete_when_cores_are_stopped() {
    if !require::require("riscv-gcc") {
        return;
    }
    let programs = "crates/nearmemory/tests/programs";
    let host = compile("host", &format!("{programs}/prints-host.c"), &[]);
    let prints = compile("channel", &format!("{programs}/prints.c"), &[]);
    let channels: &[(&str, &[u8])] = &[("prints", &prints)];
    for mode in [RunMode::InTime, RunMode::FastInterpreter] {
        let result = run_as(&Platform::enzian(), &host, "", channels, None, mode);
        assert_eq!(
            result.outcomes.last(),
            Some(&RunOutcome::Exit(0)),
            "{mode:?}"
        );
        let mut text = result.text;
        for core_id in ["host", "core 0", "core 1", "core 2", "core 3"] {
            for i in 0..5 {
                text = text.replacen(&format!("{core_id} says {i}\n"), "", 1);
            }
            text = text.replacen(&format!("{core_id} ends"), "", 1);
        }
        assert_eq!(text, "", "{mode:?}");
    }
}

/// Words sent to an ended program are lost, and a sender that waits for room continues.
#[test]
fn sender_to_an_ended_program_continues() {
    if !require::require("riscv-gcc") {
        return;
    }
    let programs = "crates/nearmemory/tests/programs";
    let host = compile("host", &format!("{programs}/astray-host.c"), &[]);
    let astray = compile("channel", &format!("{programs}/astray.c"), &[]);
    let channels: &[(&str, &[u8])] = &[("astray", &astray)];
    for mode in [RunMode::InTime, RunMode::FastInterpreter] {
        let result = run_as(&Platform::enzian(), &host, "5", channels, None, mode);
        assert_eq!(result.outcomes, [RunOutcome::Exit(0)], "{mode:?}");
        assert_eq!(result.text, "state 3\n", "{mode:?}");
        assert_eq!(result.counter("mcc 0: words sent"), 1500, "{mode:?}");
    }
}

/// Runs a program that may wait forever, compiled with the given definitions on both sides.
fn run_waiting(
    host: &[&str],
    channel: &[&str],
    evictions: Option<Evictions>,
    mode: RunMode,
) -> RunResult {
    let programs = "crates/nearmemory/tests/programs";
    let host = compile("host", &format!("{programs}/gone-host.c"), host);
    let channel = compile("channel", &format!("{programs}/gone.c"), channel);
    let channels: [(&str, &[u8]); 1] = [("gone", &channel)];
    run_as(&Platform::enzian(), &host, "", &channels, evictions, mode)
}

/// The host polls a line that nothing can change any more: the run ends with a livelock and names the polls. Also if
/// both sides poll.
#[test]
fn polling_without_a_possible_writer_ends_the_run() {
    if !require::require("riscv-gcc") {
        return;
    }
    let evictions = Some(Evictions {
        mean_interval: 7,
        seed: 1,
    });
    for (host, channel) in [(&[][..], &[][..]), (&["-DSTOPS"], &["-DWAITS"])] {
        for (evictions, mode) in [
            (None, RunMode::InTime),
            (None, RunMode::FastInterpreter),
            (None, RunMode::Watched),
            (evictions, RunMode::InTime),
        ] {
            let result = run_waiting(host, channel, evictions, mode);
            let [RunOutcome::Livelock(polls)] = &result.outcomes[..] else {
                panic!("{host:?} {evictions:?} {mode:?}: {:?}", result.outcomes);
            };
            let [poll] = polls[..] else {
                panic!("{polls:?}")
            };
            assert_eq!((poll.core_id, poll.address), (HOST_CORE, Some(SCRATCHPADS)));
            assert!(result.counter("host: instructions") < 1_000_000);
        }
    }
    // Both sides wait for each other.
    let result = run_waiting(&["-DWAITS"], &["-DWAITS"], None, RunMode::InTime);
    let [RunOutcome::Livelock(polls)] = &result.outcomes[..] else {
        panic!("{:?}", result.outcomes);
    };
    let core_ids: Vec<CoreId> = polls.iter().map(|poll| poll.core_id).collect();
    assert_eq!(core_ids, [HOST_CORE, CoreId::Mcc(0)]);
}

/// A long wait is not a livelock if the program still runs.
#[test]
fn late_polling_continues() {
    if !require::require("riscv-gcc") {
        return;
    }
    for late in ["-DLATE", "-DBUSY"] {
        for mode in [RunMode::InTime, RunMode::FastInterpreter] {
            let result = run_waiting(&["-DWAITS"], &[late], None, mode);
            assert_eq!(result.outcomes, [RunOutcome::Exit(0)], "{late} {mode:?}");
        }
    }
}
