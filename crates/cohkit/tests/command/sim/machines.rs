//! Machines of several kinds of agents, levels of caches or address spaces.

use super::{sim, TWO_LEVEL_FILE};
use crate::{cohkit, without_run};

#[test]
fn each_kind_runs_its_own_workload() {
    let near_file = "../../protocols/eci-near.coh";
    let json = |extra: &[&str]| {
        let base = [
            "sim",
            "enzian-cpu-home",
            "random-read",
            "--protocol",
            near_file,
            "--json",
        ];
        let options = ["--region", "64KiB", "--accesses", "3000", "--cores", "4"];
        without_run(
            &cohkit([&base[..], &options, extra].concat())
                .output()
                .expect("the command starts"),
        )
    };
    let both_kinds = json(&["--kind-workload", "device=random-write-line"]);
    assert_eq!(both_kinds["workload"]["name"], "random-read");
    assert_eq!(both_kinds["workload"]["cores"], 4);
    assert_eq!(both_kinds["agents"]["llc"], both_kinds["workload"]);
    assert_eq!(both_kinds["agents"]["device"]["name"], "random-write-line");
    assert_eq!(both_kinds["statistics"]["accesses"], 6000.0);
    assert_eq!(both_kinds["messages"]["WriteLine"], 3000);
    let device_only = json(&["--kind-workload", "llc=idle"]);
    assert_eq!(device_only["agents"]["llc"], serde_json::Value::Null);
    assert_eq!(device_only["statistics"]["accesses"], 3000.0);
    let slower = json(&[
        "--kind-workload",
        "llc=idle",
        "--set",
        "agents.device.link.latency=1us",
    ]);
    let latency = |value: &serde_json::Value| value["statistics"]["latency_max_ns"].as_f64();
    assert!(latency(&slower) > latency(&device_only).map(|ns| ns + 1000.0));
    for (arguments, expected) in [
        (
            vec!["--protocol", near_file, "--kind-workload", "gpu=idle"],
            "error: the machine has no caching agents `gpu`\n  help: there are llc, device;",
        ),
        (
            vec!["--protocol", near_file, "--kind-workload", "device"],
            "error: `--kind-workload device` has no `=`\n",
        ),
        (
            vec!["--protocol", near_file, "--kind-workload", "device=sleep"],
            "error: no workload is named `sleep`\n",
        ),
        (
            vec!["--protocol", near_file, "--kind-workload", "device=idle", "--kind-workload", "llc=idle"],
            "error: all agents are idle\n",
        ),
        (
            vec!["--protocol", "eci"],
            "error: cannot simulate: enzian-cpu-home has agents of a further kind, `device`, and eci has cpu\n",
        ),
    ] {
        let all_arguments = [&["enzian-cpu-home", "random-read"], &arguments[..]].concat();
        let (code, output, error) = sim(&all_arguments);
        assert_eq!((code, output.as_str()), (2, ""));
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn two_level_statistics_are_separate_and_reproducible() {
    let options = ["--region", "64KiB", "--accesses", "5000"];
    let base = [
        "sim",
        "clusters-4x4",
        "random-mixed",
        "--protocol",
        TWO_LEVEL_FILE,
    ];
    let json = |extra: &[&str]| {
        without_run(
            &cohkit([&base[..], &options, extra].concat())
                .output()
                .expect("the command starts"),
        )
    };
    let first_result = json(&["--json"]);
    assert_eq!(first_result.to_string(), json(&["--json"]).to_string());
    assert_eq!(first_result["statistics"]["accesses"], 5000.0);
    let upper_level = &first_result["upper_level"];
    // The L2s provide the lines that the L1s request, and both levels have sent messages.
    assert!(
        upper_level["statistics"]["brought"].as_f64() > Some(1000.0),
        "{upper_level}"
    );
    assert!(
        upper_level["messages"]["FwdGetM"].as_u64() > Some(0),
        "{upper_level}"
    );
    assert!(
        first_result["messages"]["Inv"].as_u64() > Some(0),
        "{first_result}"
    );
    let slower = json(&["--json", "--set", "lower.link.latency=100ns"]);
    let latency = |value: &serde_json::Value| value["statistics"]["latency_mean_ns"].as_f64();
    assert!(latency(&slower) > latency(&first_result).map(|ns| ns + 100.0));
}

/// Two machines combined, and a composition of both directions: a host and a device cache each other's lines.
#[test]
fn combined_machines_run_both_directions() {
    const BOTH: &str = "../../protocols/eci-both.coh";
    let machine = "enzian-dc-ddr+enzian-cpu-home";
    let run = [
        machine,
        "sequential-read",
        "--protocol",
        BOTH,
        "--region",
        "128KiB",
        "--accesses",
        "2000",
    ];
    let (code, output, error) = sim(&run);
    assert_eq!((code, error.as_str()), (0, ""));
    let parts = output.split("\nthe host's memory:\n");
    let parts: Vec<&str> = parts.collect();
    assert_eq!(parts.len(), 2, "{output}");
    assert!(parts[0].starts_with(
        "eci_both on enzian-dc-ddr+enzian-cpu-home, 48 cores share 1 cache: sequential-read"
    ));
    let [json, idle_device] = [
        &["--json"][..],
        &[
            "--json",
            "--kind-workload",
            "device=idle",
            "--kind-workload",
            "llc=random-write",
        ],
    ]
    .map(|extra| {
        let (code, output, error) = sim(&[&run[..], extra].concat());
        assert_eq!((code, error.as_str()), (0, ""));
        serde_json::from_str::<serde_json::Value>(&output).expect("the text is JSON")
    });
    for value in [&json, &idle_device] {
        assert_eq!(value["statistics"]["accesses"], 2000);
        assert_eq!(value["host"]["statistics"]["accesses"], 2000);
    }
    assert_eq!(json["host"]["messages"]["ReadExclusive"], 0);
    assert_ne!(idle_device["host"]["messages"]["ReadExclusive"], 0);
    for (extra, expected) in [
        (["--kind-workload", "dev=idle"], "error: the machine has no caching agents `dev`\n  help: there are cpu, llc, device;"),
        (["--set", "host.agents.device.link.latency=1ns"], "error: the setting `host.agents.device.link.latency=1ns`: `host.agents.device.link.latency` applies to the whole machine"),
        (["--set", "link.layer=cxl-68"], "error: cannot simulate: enzian-dc-ddr+enzian-cpu-home: links of cxl-68 carry CXL.mem, whose home is the device, but not both directions"),
        (["--timeline=/dev/null", "--timeline-agent=device1"], "error: cannot simulate: there is no agent `device1`; did you mean `device`? there are cpu, home, llc, device, home"),
        (["--timeline=/dev/null", "--timeline-line=llc:1"], "error: invalid value 'llc:1' for '--timeline-line <N>': give a non-negative integer, or `host:` followed by one"),
        (["--timeline=/dev/null", "--timeline-line=host:1024"], "error: there is no line 1024\n  help: the region has 1024"),
        (["--trace=/dev/null", "--trace-line=1024"], "error: there is no line 1024\n  help: the region has 1024"),
        (["--trace=/dev/null", "--trace-line=host:1024"], "error: there is no line 1024\n  help: the region has 1024"),
        (["--trace=/dev/null", "--trace-line=llc:1"], "error: invalid value 'llc:1' for '--trace-line <N>': give a non-negative integer, or `host:` followed by one"),
    ] {
        let (code, _, error) = sim(&[&run[..], &extra].concat());
        assert!(code == 2 && error.starts_with(expected), "{error}");
    }
    // The latency breakdown is printed for each space, and a trace is available for lines of each.
    let (code, output, error) = sim(&[&run[..], &["--explain"]].concat());
    assert_eq!((code, error.as_str()), (0, ""));
    let parts: Vec<&str> = output.split("\nof the host's memory:\n").collect();
    assert_eq!(parts.len(), 2, "{output}");
    for part in parts {
        assert!(
            part.contains("\nlatency breakdown") && part.contains("\nlimited by"),
            "{part}"
        );
    }
    let (_, output, _) = sim(&[&run[..], &["--explain", "--json"]].concat());
    let result: serde_json::Value = serde_json::from_str(&output).expect("the text is JSON");
    for (side, value) in [("the device's", &result), ("the host's", &result["host"])] {
        let mean = &value["explanation"]["latency"]["mean_ns"];
        assert_eq!(mean, &value["statistics"]["latency_mean_ns"], "{side}");
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("run.pftrace");
    let path = file.display().to_string();
    let traced_accesses = |extra: &[&str]| {
        let arguments = [&run[..], &["--json", "--timeline", &path], extra].concat();
        let (code, output, error) = sim(&arguments);
        assert_eq!((code, error.as_str()), (0, ""));
        let result: serde_json::Value = serde_json::from_str(&output).expect("the text is JSON");
        assert!(result["host"]["timeline"].is_null());
        let bytes = std::fs::metadata(&file).expect("the file exists").len();
        assert_eq!(result["timeline"]["bytes"], bytes);
        result["timeline"]["accesses"].as_u64()
    };
    assert_eq!(traced_accesses(&[]), Some(4000));
    let counts_of_lines = ["1", "host:1"].map(|line| traced_accesses(&["--timeline-line", line]));
    assert!(
        counts_of_lines
            .iter()
            .all(|&count| count > Some(0) && count < Some(100)),
        "{counts_of_lines:?}"
    );
    for (line, text) in [("1", "eci"), ("host:1", "eci-near")] {
        let (code, _, error) = sim(&[&run[..], &["--trace", &path, "--trace-line", line]].concat());
        assert_eq!((code, error.as_str()), (0, ""));
        let text = format!("../../protocols/{text}.coh");
        let trace_check = cohkit(["trace", &path, "--protocol", &text]).output();
        let trace_check = trace_check.expect("the command starts");
        let printed = crate::text(&trace_check.stdout);
        assert!(
            printed.starts_with("trace 1: accepted: "),
            "{line}: {printed}"
        );
    }
    let (code, _, error) = sim(&[
        "enzian-dc-ddr",
        "random-read",
        "--accesses",
        "10",
        "--trace",
        &path,
        "--trace-line",
        "host:1",
    ]);
    assert_eq!((code, error.as_str()), (2, "error: there is no line of the host's memory\n  help: two machines joined by `+` have two address spaces\n"));
    for (machine, protocol, expected) in [
        (machine, "../../protocols/eci.coh", "error: cannot simulate: enzian-dc-ddr+enzian-cpu-home has a second address space for the host's memory, but `eci` does not specify it"),
        ("enzian-dc-ddr", BOTH, "error: cannot simulate: enzian-dc-ddr has no address space for the host's memory, whose protocol `eci_both` is"),
        ("enzian-dc-ddr+enzian-dc-ddr", BOTH, "error: enzian-dc-ddr has caching agents of one kind, but both host and device cache lines"),
        ("enzian-cohkit+enzian-cpu-home+enzian-cpu-home", BOTH, "error: "),
    ] {
        let (code, _, error) = sim(&[machine, "random-read", "--protocol", protocol]);
        assert!(code == 2 && error.starts_with(expected), "{error}");
    }
}

#[test]
fn mismatched_numbers_of_levels_are_rejected() {
    for (arguments, expected) in [
        (
            ["enzian-dc-ddr", "random-read", "--protocol", TWO_LEVEL_FILE],
            "error: enzian-dc-ddr has one level of caches, but the specification has two\n",
        ),
        (
            ["clusters-4x4", "random-read", "--protocol", "../../protocols/mesi.coh"],
            "error: cannot simulate: clusters-4x4 has two levels of caches, but `mesi` specifies one\n",
        ),
        (
            ["clusters-4x4", "random-read", "--protocol", "../../protocols/eci-both.coh"],
            "error: cannot simulate: clusters-4x4 has no address space for the host's memory, whose protocol `eci_both` is",
        ),
    ] {
        let (code, output, error) = sim(&arguments);
        assert_eq!((code, output.as_str()), (2, ""));
        assert!(error.starts_with(expected), "{error}");
    }
    let two_levels = ["clusters-4x4", "random-read", "--protocol", TWO_LEVEL_FILE];
    for (extra, expected) in [
        (
            ["--trace", "/dev/null"],
            "`--trace` supports one level of caches",
        ),
        (
            ["--set", "lower.watchdog_timeout=1us"],
            "`watchdog_timeout` applies to both levels",
        ),
        (
            ["--set", "lower.remotes=0"],
            "remotes must be 1 to 4096, not 0",
        ),
        (
            ["--set", "lower.home.count=2"],
            "there is no `home.count` in this platform",
        ),
        (
            ["--set", "remotes=4096"],
            "all together, must be 1 to 4096, not 16384",
        ),
    ] {
        let (code, _, error) = sim(&[&two_levels[..], &extra[..]].concat());
        assert_eq!(code, 2);
        assert!(error.contains(expected), "{error}");
    }
}
