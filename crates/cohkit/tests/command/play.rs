//! Tests of `cohkit play`: the same seed gives the same bytes, and each invalid input gives one clear message.

use crate::{check, cohkit, text, tiny, without_run};
use expect_test::expect;

use cohkit_testing::mutations::retried_store;
use retried_store::retried_store;

/// With two spaces, the host's memory is reported beside the device's lines, with its latency breakdown.
#[test]
fn host_memory_is_reported_beside_the_device() {
    let command = [
        "play",
        "enzian-dc-bram+enzian-cpu-home",
        "gather",
        "--protocol",
        "../../protocols/eci-both.coh",
        "--param",
        "queries=5",
        "--explain",
        "--json",
    ];
    let output = cohkit(command).output().expect("the command starts");
    let value: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("the output is JSON");
    let accesses = &value["host"]["statistics"]["accesses"];
    assert!(accesses.as_f64() > Some(4.0), "{accesses}");
    assert_eq!(
        value["host"]["explanation"]["accesses"].as_f64(),
        accesses.as_f64()
    );
    assert_ne!(value["explanation"]["accesses"].as_f64(), Some(0.0));
}

#[test]
fn equal_seeds_give_equal_output() {
    let json = || {
        let arguments = [
            "play",
            "enzian-dc-ddr",
            "prefetcher",
            "--stop-after",
            "100us",
            "--json",
        ];
        without_run(&cohkit(arguments).output().expect("the command starts"))
    };
    let first_result = json();
    assert_eq!(first_result.to_string(), json().to_string());
    assert!(first_result["counts"]["hits"].as_u64() > Some(100));
}

/// Lines without holders are invalidated as fast as the device issues: one per clock of 322 MHz, for all slices
/// together.
#[test]
fn local_operations_leave_the_device_one_in_a_clock() {
    let duration_ns = |options: &[&str]| {
        let numbers = ["--param", "outstanding=256", "--param", "held=0", "--json"];
        let base = ["play", "enzian-dc-bram", "invalidation"];
        let arguments = [&base[..], &numbers, options].concat();
        let result = without_run(&cohkit(arguments).output().expect("the command starts"));
        assert_eq!(result["counts"]["invalidated"], 4096);
        result["end_ns"].as_f64().expect("a JSON number")
    };
    let clock_ns = 3.106;
    assert!((4096.0 * clock_ns..4400.0 * clock_ns).contains(&duration_ns(&[])));
    // The two slices together could process twice as many.
    assert!(duration_ns(&["--set", "device.issue_interval=0ns"]) < 2400.0 * clock_ns);
}

#[test]
fn application_parameters_are_listed() {
    check(
        &["play", "enzian-dc-ddr", "rpc", "--param", "help"],
        expect![[r#"
            exit code 0
            rpc: threads call the device through pairs of lines that both sides pass back and forth

            contexts        1  threads, each with its own pair of lines
            payload         1  lines of arguments, and of results
            calls           0  calls of each thread; 0: unlimited
            hints           0  lines of results by which a prefetch precedes its load; 0: no prefetches
        "#]],
    );
}

/// The mutated protocol retries every store once: the run takes longer, and every store is performed exactly once.
#[test]
fn applications_run_on_protocols_with_retries() {
    let eci = concat!(env!("CARGO_MANIFEST_DIR"), "/../../protocols/eci.coh");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let with_retries = folder.path().join("again.coh");
    let text_of_eci = std::fs::read_to_string(eci).expect("the file can be read");
    std::fs::write(&with_retries, retried_store(&text_of_eci)).expect("the file can be written");
    let run_with = |file: &std::path::Path| {
        let parameters = ["rows=64", "device=200", "threads=2", "thread=200"];
        let mut command = cohkit(["play", "enzian-dc-ddr", "shared-table", "--json"]);
        command.args(
            parameters
                .iter()
                .flat_map(|parameter| ["--param", parameter]),
        );
        let output = command.arg("--protocol").arg(file).output();
        let output = output.expect("the command starts");
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        without_run(&output)
    };
    let (without_retries, with_retries) = (run_with(eci.as_ref()), run_with(&with_retries));
    assert_eq!(
        with_retries["counts"]["increments"],
        without_retries["counts"]["increments"]
    );
    let time = |result: &serde_json::Value| result["statistics"]["time_ns"].as_f64();
    assert!(time(&with_retries) > time(&without_retries));
}

/// The device's view equals the sums of the rows, computed independently from the same table.
#[test]
fn view_tables_contain_the_rows() {
    let view = |options: &[&str]| {
        let arguments = [
            "play",
            "enzian-dc-ddr",
            "view",
            "--param",
            "scale=1",
            "--json",
        ];
        without_run(
            &cohkit([&arguments[..], options].concat())
                .output()
                .expect("the command starts"),
        )
    };
    assert!(view(&[])["tables"].is_null());
    for mode in ["incremental=0", "incremental=1"] {
        let tables = view(&["--tables", "--param", mode])["tables"].clone();
        let rows = |name: &str| -> Vec<Vec<u64>> {
            serde_json::from_value(tables[name].clone()).expect("rows of numbers")
        };
        let mut sums = std::collections::BTreeMap::new();
        for row in rows("orders") {
            *sums.entry(row[0]).or_insert(0) += row[1];
        }
        let sums: Vec<Vec<u64>> = sums.into_values().map(|sum| vec![sum]).collect();
        assert_eq!(rows("view"), sums);
        assert!(sums.len() > 50);
    }
}

/// A refused access that is not continued is reported with its agent, address and permission.
#[test]
fn refused_translation_is_reported_with_its_access() {
    let locks = [
        "n1sdp-u280",
        "locks",
        "--protocol",
        "../../protocols/ccix.coh",
        "--stop-after",
        "50us",
        "--param",
        "cached=1",
    ];
    let gather = [
        "enzian-dc-bram+enzian-cpu-home",
        "gather",
        "--protocol",
        "../../protocols/eci-both.coh",
        "--param",
        "queries=2",
    ];
    let locks_refused = "violated: permission of a page: thread 1 cannot write: the page is read-only (word 0 of line 968, address 0xf200, page 15, by device), and does not handle the page fault";
    let gather_refused = "violated: permission of a page: gather cannot read: the page is not mapped (word 64 of the host's memory, address 0x200, its access 0), and does not handle the page fault";
    for (play_arguments, prefix, permission, expected) in [
        (
            &locks[..],
            "agents.device.",
            "read_only_one_in=4",
            locks_refused,
        ),
        (
            &gather,
            "host.agents.device.",
            "absent_one_in=1",
            gather_refused,
        ),
    ] {
        let enable_translation = format!("{prefix}translation.enabled=1");
        let restrict_page = format!("{prefix}translation.{permission}");
        let run_with = |extra: &[&str]| {
            let arguments = [
                &["play"],
                play_arguments,
                &["--set", &enable_translation],
                extra,
            ]
            .concat();
            let output = cohkit(arguments).output().expect("the command starts");
            (output.status.code(), text(&output.stdout))
        };
        assert_eq!(run_with(&[]).0, Some(0));
        let (code, printed) = run_with(&["--set", &restrict_page]);
        assert_eq!(code, Some(1), "{printed}");
        assert!(printed.lines().any(|line| line == expected), "{printed}");
    }
}

#[test]
fn unsupported_applications_are_rejected() {
    for (arguments, expected) in [
        (
            vec![
                "enzian-dc-bram",
                "rpc",
                "--param",
                "calls=3",
                "--set",
                "translation.enabled=1",
            ],
            expect![[r#"
                exit code 2
                --- stderr
                error: cannot simulate this application: enzian-dc-bram translates addresses (`translation.enabled`); with write buffers that is not simulated: a buffered store could fault after its core has continued (set `cores.write_buffer` to 0B)
            "#]],
        ),
        (
            vec!["enzian", "rpc"],
            expect![[r#"
            exit code 2
            --- stderr
            error: no platform is named `enzian`
              help: the shipped platforms are clusters-4x4, cxl-512x8, cxl-8x8, enzian-cohkit, enzian-cpu-home, enzian-dc-bram, enzian-dc-ddr, hosts-512x8, hosts-8x8, n1sdp-u280, n1sdp-vck5000, peers-device-memory, peers-host-memory, thunderx1-2s, thunderx1-2s-eci, upi-8x8; the name of a file ends in `.toml`
        "#]],
        ),
        (
            vec!["enzian-dc-ddr", "rpc+locks", "--param", "calls=3"],
            expect![[r#"
                exit code 2
                --- stderr
                error: `calls` does not name its application
                  help: write it like `rpc.NUMBER`
            "#]],
        ),
        (
            vec!["enzian-dc-ddr", "rpc+locks", "--exhaustive"],
            expect![[r#"
                exit code 2
                --- stderr
                error: `--exhaustive` explores one application, but several are given
            "#]],
        ),
        (
            vec!["enzian-dc-ddr", "rpc+locks", "--param", "rpc.calls=3"],
            expect![[r#"
                exit code 2
                --- stderr
                error: cannot simulate this application: two-line RPC and lock table never ends, and no end time is given
                  help: `--stop-after 1ms` ends it, or `--param locks.transactions=1000`
            "#]],
        ),
        (
            vec!["enzian-dc-ddr", "gather", "--param", "queries=3"],
            expect![[r#"
                exit code 2
                --- stderr
                error: cannot simulate this application: gather accesses the host's memory coherently, which is not an address space of enzian-dc-ddr with `eci`: `enzian-dc-ddr+enzian-cpu-home` with a specification that composes both directions has one
            "#]],
        ),
        (
            vec!["upi-8x8", "sssp:"],
            expect![[r#"
                exit code 2
                --- stderr
                error: `sssp:` names no file
                  help: give a graph, as in `sssp:FILE`
            "#]],
        ),
        (
            vec!["upi-8x8", "sssp:there-is-none.mtx"],
            expect![[r#"
                exit code 2
                --- stderr
                error: there-is-none.mtx: no such file
                  help: a graph is a file in Matrix Market's coordinate format; check the path
            "#]],
        ),
        (
            vec!["upi-8x8", "sssp:../../README.md"],
            expect![[r#"
                exit code 2
                --- stderr
                error: ../../README.md:1: expected `%%MatrixMarket matrix coordinate`, followed by field and symmetry
                  help: a graph is a file in Matrix Market's coordinate format
            "#]],
        ),
        (
            vec!["upi-8x8", "padding:../../tests/graphs/two-rings.mtx"],
            expect![[r#"
                exit code 2
                --- stderr
                error: padding does not use a graph; pagerank and sssp do
            "#]],
        ),
        (
            vec![
                "upi-8x8",
                "sssp:../../tests/graphs/two-rings.mtx",
                "--param",
                "far=2",
            ],
            expect![[r#"
                exit code 2
                --- stderr
                error: far applies only to a generated graph, but a graph file is given
            "#]],
        ),
        (
            vec!["enzian-dc-ddr", "rcp"],
            expect![[r#"
                exit code 2
                --- stderr
                error: there is no application `rcp`; there are shared-table, prefetcher, invalidation, rpc, rpc-registers, rpc-descriptors, locks, gather, dma, view, remote-writes, broadcast, exchange, pagerank, sssp, padding, task-queue, histogram, transpose, mocfe, cmc2d, bigfft, crystal-router
            "#]],
        ),
        (
            vec!["enzian-dc-ddr", "rpc"],
            expect![[r#"
            exit code 2
            --- stderr
            error: cannot simulate this application: two-line RPC never ends, and no end time is given
              help: `--stop-after 1ms` ends it, or `--param calls=1000`
        "#]],
        ),
        (
            vec!["enzian-dc-ddr", "rpc", "--stop-after", "3"],
            expect![[r#"
                exit code 2
                --- stderr
                error: the time `3` has no unit: write it like `70ns` (units: ps, ns, us, ms, s)
            "#]],
        ),
        (
            vec![
                "enzian-dc-ddr",
                "rpc",
                "--stop-after",
                "3us",
                "--warm-up",
                "3us",
            ],
            expect![[r#"
                exit code 2
                --- stderr
                error: cannot simulate this application: two-line RPC would end before the end of its warm-up
            "#]],
        ),
        (
            vec!["enzian-dc-ddr", "view", "--param", "updates=6000"],
            expect![[r#"
                exit code 2
                --- stderr
                error: 3 transactions of 6000 updates append 18000 rows, of 15000 at this scale
            "#]],
        ),
        (
            vec![
                "enzian-dc-ddr",
                "view",
                "--param",
                "updates=10",
                "--param",
                "words=17",
            ],
            expect![[r#"
                exit code 2
                --- stderr
                error: cannot simulate this application: materialised view uses 17 words of each line, but a line has 16
            "#]],
        ),
        (
            vec![
                "enzian-dc-bram",
                "shared-table",
                "--param",
                "rows=4",
                "--param",
                "device=50",
            ],
            expect![[r#"
                exit code 2
                --- stderr
                error: the device has to make 50 increments, but 100 per thousand rows is zero rows of 4
            "#]],
        ),
        (
            vec!["enzian-dc-ddr", "view", "--tables"],
            expect![[r#"
                exit code 2
                --- stderr
                error: the following required arguments were not provided:
                  --json

                Usage: cohkit play --json --tables <PLATFORM> <APPLICATION>

                For more information, try '--help'.
            "#]],
        ),
        (
            vec!["thunderx1-2s", "rpc-registers", "--param", "calls=1"],
            expect![[r#"
                exit code 1
                eci on thunderx1-2s: rpc-registers with contexts=1 words=1 calls=1, seed 0
                violated: contract of an application: no device bus (table `[bus]`) in thunderx1-2s
                  line 0, after 10ns

                cpu    home
                 │      │

            "#]],
        ),
        (
            vec!["enzian-dc-ddr", "rpc", "--param", "calls"],
            expect![[r#"
                exit code 2
                --- stderr
                error: `calls` has no `=`
                  help: write it like `threads=8`
            "#]],
        ),
        (
            vec!["enzian-dc-ddr", "rpc", "--param", "calls=-1"],
            expect![[r#"
                exit code 2
                --- stderr
                error: `calls=-1`: `-1` is no number
            "#]],
        ),
        (
            vec![
                "enzian-dc-ddr",
                "rpc",
                "--param",
                "calls=4",
                "--param",
                "calls=8",
            ],
            expect![[r#"
                exit code 2
                --- stderr
                error: `calls=8`: `calls` is 4 already
            "#]],
        ),
        (
            vec!["enzian-dc-ddr", "rpc", "--param", "call=1"],
            expect![[r#"
                exit code 2
                --- stderr
                error: rpc has no number `call`; did you mean `calls`? it has contexts, payload, calls, hints
            "#]],
        ),
        (
            vec![
                "enzian-dc-ddr",
                "prefetcher",
                "--param",
                "block=3",
                "--stop-after",
                "1us",
            ],
            expect![[r#"
                exit code 2
                --- stderr
                error: block must be a power of two, not 3
            "#]],
        ),
        (
            vec![
                "enzian-dc-ddr",
                "rpc",
                "--param",
                "calls=1",
                "--protocol",
                "../../protocols/msi.coh",
            ],
            expect![[r#"
                exit code 2
                --- stderr
                error: cannot simulate this application: the home of `msi` is hand-written; this application observes the CPU's permissions, so it needs a home constructed from a policy
            "#]],
        ),
    ] {
        check(&[&["play"], &arguments[..]].concat(), expected);
    }
}

/// A home with a fault is rejected as by every other command: exit code 1, with position and chart. Regression: it was
/// played, and hung or not depending on the schedule.
#[test]
fn faulty_home_is_rejected_before_a_play() {
    let eci = std::fs::read_to_string(tiny().with_file_name("../../../../protocols/eci.coh"))
        .expect("the file can be read");
    let downgrade =
        "E                    | ForwardShared            | send AckCleanShared       | S";
    assert!(eci.contains(downgrade));
    let mutated = eci.replace(downgrade, "E | ForwardShared | send AckCleanShared | stay");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("faulty.coh");
    std::fs::write(&file, mutated).expect("the file can be written");
    let file = file.to_str().expect("a path of words");
    let message = |arguments: &[&str]| {
        let output = cohkit(arguments).output().expect("the command starts");
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        text(&output.stderr)
    };
    let play_error = message(&[
        "play",
        "enzian-dc-bram",
        "rpc",
        "--param",
        "calls=2",
        "--protocol",
        file,
    ]);
    assert!(play_error.starts_with("error: livelock: "), "{play_error}");
    let sim_error = message(&["sim", "enzian-dc-bram", "random-read", "--protocol", file]);
    assert_eq!(play_error, sim_error);
}

/// A protocol is read with other parameters than its own; invalid parameters are reported.
#[test]
fn protocols_are_read_with_other_parameters() {
    let play = |extra: &[&str]| {
        let base = ["play", "cxl-8x8", "remote-writes", "--protocol"];
        let protocol_arguments = ["../../ordering/cord.coh", "--param", "releases=2"];
        let output = cohkit([&base[..], &protocol_arguments, extra].concat()).output();
        crate::transcript(&output.expect("the command starts"))
    };
    let sizes = ["homes=8", "epochs=16", "entries=8", "most=300"];
    let size_options: Vec<&str> = sizes
        .iter()
        .flat_map(|size| ["--protocol-param", size])
        .collect();
    let valid_output = play(&size_options);
    assert!(valid_output.contains("delivered"), "{valid_output}");
    // A counter with a bound above 255 takes the bits that the platform states: 32. An epoch, a sequence number
    // and a number of homes add 8, 8 and 4 bits, of which 8 fit into the header. Together they take 6 bytes beside a header and a word.
    let release = valid_output.lines().find(|line| line.contains("Release"));
    let cells: Vec<&str> = release
        .expect("the counter is listed")
        .split_whitespace()
        .collect();
    assert_eq!(cells, ["Release", "2", "60", "128"], "{valid_output}");
    for (size, expected) in [
        (
            "houses=8",
            "the file has no size `houses`; did you mean `homes`? it has homes, epochs, most, counters, entries, slots, notes, line",
        ),
        ("homes", "`homes` has no `=`: write it like `homes=8`"),
        (
            "homes=many",
            "`homes=many`: `many` is no number from 0 to 65535",
        ),
        ("homes=513", "homes must be 1 to 512, not 513"),
        (
            "homes=4",
            "cord has registers and is of 4 homes, and cxl-8x8 has 8: set `home.count`",
        ),
        ("line=48", "with these sizes the specification is invalid"),
        ("epochs=1", "with these sizes the specification is invalid"),
    ] {
        let invalid_output = play(&["--protocol-param", size]);
        assert!(invalid_output.starts_with("exit code 2"), "{invalid_output}");
        assert!(invalid_output.contains(expected), "{invalid_output}");
    }
}

/// Application and protocol are each valid, and nothing was found out about either: the command line is at fault.
#[test]
fn application_unsupported_by_the_protocol_is_bad_input() {
    let applications = ["shared-table", "locks", "view", "invalidation", "rpc"];
    for (protocol, unsupported) in [
        ("msi-policy", &applications[..]),
        ("back-invalidate", &applications[..3]),
    ] {
        for application in applications {
            let file = format!("../../protocols/{protocol}.coh");
            let mut command = cohkit(["play", "enzian-dc-bram", application, "--protocol"]);
            command.arg(&file).args(match application {
                "invalidation" => ["--param", "lines=50"],
                // Lines of these protocols have at most 8 words.
                "view" => ["--param", "words=8"],
                _ => ["--stop-after", "2us"],
            });
            let output = command.output();
            let output = output.expect("the command starts");
            let stderr = text(&output.stderr);
            if !unsupported.contains(&application) {
                assert_eq!(output.status.code(), Some(0), "{application}: {stderr}");
                continue;
            }
            // Nothing ran, so there is no report.
            assert_eq!(output.status.code(), Some(2), "{application}: {stderr}");
            assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
            let expected_start = "error: cannot simulate this application: ";
            let expected_end = ", which the home of the protocol does not support\n";
            assert!(
                stderr.starts_with(expected_start) && stderr.ends_with(expected_end),
                "{stderr}"
            );
            assert!(stderr.contains(" asks for a clean-invalidate"), "{stderr}");
        }
    }
    // An application that needs the operation only with other parameters fits.
    let mut command = cohkit(["play", "enzian-dc-bram", "shared-table", "--protocol"]);
    let output = command
        .args(["../../protocols/msi-policy.coh", "--stop-after", "20us"])
        .args(["--param", "contended=0"])
        .output()
        .expect("the command starts");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

/// An application without end reports which of its parameters would end it, except those that were given.
#[test]
fn endless_application_names_the_options_that_end_it() {
    let table = [
        "play",
        "enzian-dc-bram",
        "shared-table",
        "--param",
        "thread=5",
    ];
    let output = cohkit(table).output().expect("the command starts");
    assert_eq!(output.status.code(), Some(2));
    let stderr = text(&output.stderr);
    assert!(
        stderr.ends_with("help: `--stop-after 1ms` ends it, or `--param device=1000`\n"),
        "{stderr}"
    );
    let limits = ["--param", "device=1000", "--param", "rows=100"];
    let output = cohkit(table)
        .args(limits)
        .output()
        .expect("the command starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
}

/// Regression: the output stated that nothing had been counted in 0 ns, without a reason.
#[test]
fn run_within_warm_up_is_reported() {
    check(
        &[
            "play",
            "enzian-dc-bram",
            "rpc",
            "--param",
            "calls=10",
            "--warm-up",
            "1s",
        ],
        expect![[r#"
            exit code 0
            eci on enzian-dc-bram: rpc with contexts=1 payload=1 calls=10 hints=0, seed 0

            nothing was measured: the application ended before the end of the warm-up of 1s had
        "#]],
    );
}

/// Arguments that explore an application.
fn explore_arguments<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let exhaustive = ["play", "enzian-dc-bram", "--exhaustive"];
    exhaustive
        .into_iter()
        .chain(arguments.iter().copied())
        .collect()
}

#[test]
fn exhaustive_play_explores_every_order_of_events() {
    let numbers = ["invalidation", "--param", "lines=1"];
    check(
        &explore_arguments(&numbers),
        expect![[r#"
        exit code 0
        eci on enzian-dc-bram: invalidation with lines=1 outstanding=1 dirty=0 held=1 after=0 cached=0, in every order of events
        verified: 2614 states, and the end is reachable from each; 4 are final states
    "#]],
    );
    let json = |extra: &[&str]| {
        let arguments = explore_arguments(&[&numbers, extra].concat());
        without_run(&cohkit(arguments).output().expect("the command starts"))
    };
    let value = json(&["--json"]);
    assert_eq!(value["outcome"], "verified");
    let states = value["states"].as_u64().expect("a JSON number");
    let value = json(&["--json", "--max-states", "10"]);
    assert_eq!(value["outcome"], "undecided");
    assert!(states > 10);
}

#[test]
fn unexplorable_application_is_rejected_with_advice() {
    check(
        &explore_arguments(&["invalidation"]),
        expect![[r#"
        exit code 2
        --- stderr
        error: this uses 4097 lines, and up to 8 can be explored
          help: `--param help` lists its parameters, which can make it smaller
    "#]],
    );
    check(
        &explore_arguments(&["shared-table", "--param", "rows=1"]),
        expect![[r#"
            exit code 2
            --- stderr
            error: the application never ends, so `--exhaustive` cannot check that its end is reachable
              help: `--param device=2 --param thread=2` ends it
        "#]],
    );
    let numbers = ["records=1", "transactions=1", "messages=1"];
    let parameters = numbers.iter().flat_map(|number| ["--param", *number]);
    let arguments: Vec<&str> = ["locks"].into_iter().chain(parameters).collect();
    check(
        &explore_arguments(&arguments),
        expect![[r#"
        exit code 2
        --- stderr
        error: thread 0: registers and the CPU's own memory cannot be explored here
    "#]],
    );
    check(
        &explore_arguments(&["invalidation", "--stop-after", "1ms"]),
        expect![[r#"
        exit code 2
        --- stderr
        error: the argument '--exhaustive' cannot be used with '--stop-after <TIME>'

        Usage: cohkit play --exhaustive <PLATFORM> <APPLICATION>

        For more information, try '--help'.
    "#]],
    );
}

/// Owners confuse their two answers to a request to share, so that memory stays stale: a thread that waits for a lock
/// never sees its release.
#[test]
fn application_failure_is_reported_with_its_path() {
    let eci = concat!(env!("CARGO_MANIFEST_DIR"), "/../../protocols/eci.coh");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("mixed.coh");
    let mut mutated = std::fs::read_to_string(eci).expect("the file can be read");
    for (owner, correct, swapped) in [("M", "Dirty", "Clean"), ("E", "Clean", "Dirty")] {
        let row = format!("  {owner}                    | ForwardShared            | send Ack");
        let replaced = mutated.replace(&format!("{row}{correct}"), &format!("{row}{swapped}"));
        assert_ne!(replaced, mutated);
        mutated = replaced;
    }
    std::fs::write(&file, mutated).expect("the file can be written");
    let run = |json: &[&'static str]| {
        let parameters = ["records=1", "threads=2", "transactions=1", "device=0"];
        let mut command = cohkit(explore_arguments(&["locks", "--set", "remotes=2"]));
        command.args(
            parameters
                .iter()
                .flat_map(|parameter| ["--param", parameter]),
        );
        let output = command.arg("--protocol").arg(&file).args(json).output();
        let output = output.expect("the command starts");
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
        output
    };
    let value = without_run(&run(&["--json"]));
    assert_eq!(value["outcome"], "violated");
    let steps = value["violation"]["steps"].as_array().expect("steps").len();
    let stdout = text(&run(&[]).stdout);
    let lines: Vec<&str> = stdout.lines().skip(1).collect();
    assert_eq!(lines.len(), 1 + steps);
    expect![["violated: thread 1 finds [1] in line 0, but [0] was written last"]]
        .assert_eq(lines[0]);
    let first_step =
        "  1. thread 0: Update { line: 0, word: 0, update: CompareSwap { old: 0, new: 1 } }";
    assert_eq!(lines[1], first_step);
}

/// Only a constructed home knows the permissions of remotes.
#[test]
fn hand_written_homes_cannot_be_explored() {
    let msi = concat!(env!("CARGO_MANIFEST_DIR"), "/../../protocols/msi.coh");
    let arguments = ["prefetcher", "--protocol", msi];
    let parameters = ["lines=1", "blocks=0", "block=1", "reads=1"];
    let mut command = cohkit(explore_arguments(&arguments));
    command.args(
        parameters
            .iter()
            .flat_map(|parameter| ["--param", parameter]),
    );
    let output = command.output().expect("the command starts");
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    expect![[r#"
        error: cannot simulate this application: the home of `msi` is hand-written; this application observes the CPU's permissions, so it needs a home constructed from a policy
    "#]].assert_eq(&text(&output.stderr));
}

/// The latency breakdown of the threads' accesses adds up too, and a timeline contains all accesses; results do not
/// change.
#[test]
fn thread_latency_breakdown_and_timeline_are_complete() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.pftrace");
    let file = file.to_str().unwrap();
    for application in ["shared-table", "rpc", "locks"] {
        let base = [
            "play",
            "enzian-dc-bram",
            application,
            "--stop-after",
            "200us",
            "--json",
        ];
        let json = |extra: &[&str]| {
            let arguments = [&base[..], extra].concat();
            without_run(&cohkit(arguments).output().expect("the command starts"))
        };
        let mut result = json(&["--explain", "--timeline", file]);
        let members = result.as_object_mut().unwrap();
        let explanation = members.remove("explanation").unwrap();
        let timeline = members.remove("timeline").unwrap();
        assert_eq!(result, json(&[]), "{application}");
        let total_ps =
            |value: &serde_json::Value| value["total_ps"].as_u64().expect("a JSON number");
        let parts = explanation["parts"].as_array().unwrap();
        let sum: u64 = parts.iter().map(total_ps).sum();
        assert_eq!(sum, total_ps(&explanation["latency"]), "{application}");
        assert_eq!(
            timeline["accesses"], explanation["accesses"],
            "{application}"
        );
        assert_eq!(
            explanation["accesses"], result["statistics"]["accesses"],
            "{application}"
        );
        let mean = &explanation["latency"]["mean_ns"];
        let measured_mean = &result["statistics"]["latency_mean_ns"];
        let difference = mean.as_f64().unwrap() - measured_mean.as_f64().unwrap();
        assert!(
            difference.abs() < 1e-6,
            "{application}: {mean} {measured_mean}"
        );
        let bytes = std::fs::read(file).unwrap().len();
        assert_eq!(timeline["bytes"], bytes, "{application}");
    }
    for option in [&["--explain"][..], &["--timeline", file]] {
        let base = ["play", "enzian-dc-bram", "rpc", "--exhaustive"];
        let output = cohkit([&base[..], option].concat())
            .output()
            .expect("the command starts");
        assert_eq!(output.status.code(), Some(2));
        let error = text(&output.stderr);
        assert!(error.contains("reports on one timed run"), "{error}");
    }
}

#[test]
fn graph_file_with_invalid_text_is_bad_input() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("graph.mtx");
    for (bytes, expected) in [
        (&b"%%Matrix\xff"[..], "is not text: byte 8 is not UTF-8"),
        (
            b"\x1f\x8b\x08\0",
            "is compressed by gzip\n  help: decompress it",
        ),
    ] {
        std::fs::write(&file, bytes).expect("the file can be written");
        let graph = format!("sssp:{}", file.display());
        let output = cohkit(["play", "upi-8x8", &graph]).output();
        let output = output.expect("the command starts");
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(expected), "{error}");
    }
}
