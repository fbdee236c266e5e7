//! Reports: summary, statistics, latency breakdown, timeline and bouncing lines.

use super::{sim, SHORT_RUN, TWO_LEVEL_FILE};
use crate::{cohkit, text, without_run};
use std::fs;

/// The breakdown has parts and steps; each adds up to the latency, and each gives columns of a table.
#[test]
fn latency_breakdown_sums_to_the_picosecond() {
    let explain_arguments = [&["sim"], &SHORT_RUN[..], &["--explain"]].concat();
    let json =
        |arguments: &[&str]| without_run(&cohkit(arguments).output().expect("the command starts"));
    let result = json(&[&explain_arguments[..], &["--json"]].concat());
    let explanation = &result["explanation"];
    let total_ps = |value: &serde_json::Value| value["total_ps"].as_u64().expect("a JSON number");
    for kind in ["parts", "steps"] {
        let entries = explanation[kind].as_array().expect("a JSON list");
        let sum: u64 = entries.iter().map(total_ps).sum();
        assert_eq!(sum, total_ps(&explanation["latency"]), "{kind}");
    }
    let slowest_steps = explanation["slowest"]["steps"]
        .as_array()
        .expect("a JSON list");
    let ns: f64 = slowest_steps
        .iter()
        .filter_map(|moment| moment["ns"].as_f64())
        .sum();
    let slowest = &result["statistics"]["latency_max_ns"];
    assert!((ns - slowest.as_f64().expect("a JSON number")).abs() < 1e-6);
    let mut plain_result = json(&[&["sim"], &SHORT_RUN[..], &["--json"]].concat());
    assert_eq!(plain_result["explanation"].take(), serde_json::Value::Null);
    assert_eq!(plain_result["statistics"], result["statistics"]);
    let table = cohkit([&explain_arguments[..], &["--csv"]].concat()).output();
    let table = text(&table.expect("the command starts").stdout);
    let columns: Vec<&str> = table.lines().next().unwrap_or("").split(',').collect();
    for column in ["parts.queue.total_ps", "steps.unit.mean_ns", "limit.name"] {
        let column = format!("explanation.{column}");
        assert!(columns.contains(&column.as_str()), "{column}: {columns:?}");
    }
    let (code, _, rejection) = sim(&[
        "clusters-4x4",
        "random-read",
        "--protocol",
        TWO_LEVEL_FILE,
        "--explain",
    ]);
    assert_eq!(code, 2, "{rejection}");
    assert!(
        rejection.contains("supports one level of caches"),
        "{rejection}"
    );
}

/// Regression: a file name with a text extension received a binary trace, which `cohkit report` then rejected with its
/// folder.
#[test]
fn timeline_file_with_a_text_extension_is_rejected() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("run.json").display().to_string();
    let (code, out, error) = sim(&[&SHORT_RUN[..], &["--timeline", &file]].concat());
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(error.contains("name a file such as run.pftrace"), "{error}");
    assert!(!std::path::Path::new(&file).exists());
}

/// Regression: 48 cores behind one cache sent no invalidation, and the output did not mention the reason.
#[test]
fn simulation_reports_cores_that_share_a_cache() {
    let short_run = ["--region", "64KiB", "--accesses", "200"];
    let run = |arguments: &[&str]| {
        let (code, out, err) = sim(&[arguments, &short_run].concat());
        assert_eq!((code, err.as_str()), (0, ""), "{arguments:?}");
        out
    };
    let warning = "warning: thunderx1-2s has one cache, shared by all cores, but msi is for several caches: the run\ndoes not reach rows for copies in other caches\n";
    let msi = ["thunderx1-2s", "random-mixed", "--protocol", "msi"];
    let one_cache = run(&msi);
    assert!(
        one_cache.starts_with("msi on thunderx1-2s, 48 cores share 1 cache: random-mixed of 64KiB"),
        "{one_cache}"
    );
    assert!(one_cache.contains(warning), "{one_cache}");
    let two_caches = run(&[&msi[..], &["--set", "remotes=2"]].concat());
    assert!(
        two_caches.starts_with("msi on thunderx1-2s, 48 cores, 24 share each of 2 caches: "),
        "{two_caches}"
    );
    let hosts = run(&["hosts-8x8", "random-mixed", "--cores", "5"]);
    assert!(
        hosts.starts_with("mesi on hosts-8x8, 5 cores, one on each of 5 of 8 caches: "),
        "{hosts}"
    );
    let eci = run(&["thunderx1-2s", "random-mixed"]);
    for out in [two_caches, hosts, eci] {
        assert!(!out.contains("warning"), "{out}");
    }
}

/// Regression: definitions made lines of 200 columns, and latencies were printed in the middle of fifty numbers.
#[test]
fn text_fits_a_page_and_begins_with_the_summary() {
    let runs = [
        vec!["hosts-8x8", "random-mixed", "--explain"],
        vec!["clusters-4x4", "random-mixed"],
        vec![
            "enzian-cpu-home",
            "random-read",
            "--kind-workload",
            "device=random-write-line",
            "--set",
            "link.latency=1us",
        ],
        vec![
            "enzian-dc-ddr+enzian-cpu-home",
            "random-read",
            "--protocol",
            "eci-both",
        ],
    ];
    for arguments in runs {
        let (code, out, _) =
            sim(&[&arguments[..], &["--region", "64KiB", "--accesses", "2000"]].concat());
        assert_eq!(code, 0, "{arguments:?}");
        let long_line = out.lines().find(|line| line.chars().count() > 100);
        assert_eq!(long_line, None, "{arguments:?}");
        let summary = out.find("\nloads  ").expect("the summary has loads");
        assert!(
            summary < out.find("\ntime_ns  ").expect("the statistics have a time"),
            "{out}"
        );
    }
}

/// Regression: half of the latencies of `random-mixed` were 0, as they included stores into write buffers.
#[test]
fn load_and_store_latencies_are_reported_separately() {
    let medians_and_counts = |workload: &str, protocol: &str| {
        let run = [
            "enzian-dc-ddr",
            workload,
            "--accesses",
            "5000",
            "--protocol",
            protocol,
            "--json",
        ];
        let (code, out, _) = sim(&run);
        assert_eq!(code, 0, "{workload}");
        let value: serde_json::Value = serde_json::from_str(&out).expect("the text is JSON");
        let names = ["load", "store", "store_visible"];
        let statistic = |name: &str| value["statistics"][name].as_f64().expect("a JSON number");
        let medians = names.map(|name| statistic(&format!("{name}_latency_p50_ns")));
        (
            medians,
            [
                statistic("loads"),
                statistic("stores"),
                statistic("stores_visible"),
            ],
        )
    };
    let ([load, store, visible], [loads, stores, all]) = medians_and_counts("random-mixed", "eci");
    assert!(
        load > 100.0 && store == 0.0 && visible > 100.0,
        "{load} {store} {visible}"
    );
    assert!(
        loads > 0.0 && loads + stores == 5000.0 && all == stores,
        "{loads} {stores} {all}"
    );
    let ([load, _, visible], counts) = medians_and_counts("random-write", "eci");
    assert!(load == 0.0 && visible > 100.0, "{load} {visible}");
    assert_eq!(counts, [0.0, 5000.0, 5000.0]);
    // Stores that are sent to the home become visible there.
    let ([_, store, visible], counts) = medians_and_counts("random-write", "write-through");
    assert!(visible > store && visible > 100.0, "{store} {visible}");
    assert_eq!(counts, [0.0, 5000.0, 5000.0]);
}

/// Two caches write to one line: the report has the line's address, and states if they write to the same word.
#[test]
fn bouncing_line_is_reported_with_its_address() {
    let folder = tempfile::tempdir().expect("a folder");
    let run_with = |second: &str| {
        let file = folder.path().join("my.trace");
        let mut trace = String::new();
        for n in 0..200 {
            let line = 0x10_0000 + 4096 * n;
            trace += &format!("0 store 0x1fc0 2us\n1 store {second} 2us\n0 load {line}\n");
        }
        fs::write(&file, trace).expect("the file can be written");
        let file = format!("trace:{}", file.display());
        let run = ["hosts-8x8", &file, "--set", "cores.write_buffer=0B"];
        let (code, out, _) = sim(&run);
        assert_eq!(code, 0, "{out}");
        let (_, json, _) = sim(&[&run[..], &["--json"]].concat());
        let json: serde_json::Value = serde_json::from_str(&json).expect("the text is JSON");
        (out, json["bouncing_lines"].clone())
    };
    let (out, json) = run_with("0x1fc8");
    assert!(
        out.contains("the line at 0x1fc0 bounces between caches: "),
        "{out}"
    );
    assert!(out.contains("false sharing"), "{out}");
    assert_eq!(json.as_array().map(Vec::len), Some(1), "{json}");
    let line = &json[0];
    assert_eq!(
        (&line["line"], &line["address"]),
        (&(0x1fc0 / 64).into(), &0x1fc0.into())
    );
    assert_eq!(line["transfers"], line["other_words"]);
    assert!(line["transfers"].as_u64() > Some(150), "{line}");
    let share = line["share"].as_f64().expect("a JSON number");
    assert!(share > 0.4 && share < 1.0, "{line}");
    // Accesses to the same word are true sharing.
    let (out, json) = run_with("0x1fc0");
    assert!(
        out.contains("the line at 0x1fc0 bounces between caches: "),
        "{out}"
    );
    assert!(!out.contains("false sharing"), "{out}");
    assert_eq!(json[0]["other_words"], 0);
    // Separate lines do not bounce.
    let (out, json) = run_with("0x2000");
    assert!(!out.contains("bounces"), "{out}");
    assert_eq!(json, serde_json::json!([]));
}

/// Regression: a bandwidth counted whole lines where eight bytes were requested.
#[test]
fn requested_and_transferred_bytes_are_both_reported() {
    let run = [
        "enzian-dc-bram",
        "random-read",
        "--accesses",
        "1000",
        "--region",
        "1MiB",
        "--prefetch",
        "0",
        "--json",
    ];
    let (_, out, _) = sim(&run);
    let value: serde_json::Value = serde_json::from_str(&out).expect("the text is JSON");
    let statistic = |name: &str| value["statistics"][name].as_f64().expect("a JSON number");
    let bytes = |name: &str| statistic(name) * statistic("time_ns") / 1e9;
    let assert_near = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-9, "{a} {b}");
    assert_near(bytes("bandwidth_requested_bytes_per_s"), 8.0 * 1000.0);
    assert_near(bytes("bandwidth_bytes_per_s"), 128.0 * 1000.0);
    let moved_bytes = statistic("link_bytes_to_home") + statistic("link_bytes_from_home");
    assert_near(bytes("bandwidth_link_bytes_per_s"), moved_bytes);
    assert!(moved_bytes > 0.0);
}

/// A timeline is a separate file that is mentioned beside the result, and does not change the result.
#[test]
fn timeline_options_select_events() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.pftrace");
    let file = file.to_str().unwrap();
    let run_with_timeline = |extra: &[&str]| {
        let arguments = [
            &["sim"],
            &SHORT_RUN[..],
            &["--json", "--timeline", file],
            extra,
        ]
        .concat();
        let result = without_run(&cohkit(arguments).output().expect("the command starts"));
        (result, fs::read(file).unwrap())
    };
    let (mut full_result, bytes) = run_with_timeline(&[]);
    let timeline = full_result
        .as_object_mut()
        .unwrap()
        .remove("timeline")
        .unwrap();
    assert_eq!(timeline["bytes"], bytes.len());
    assert_eq!(timeline["accesses"], 30_000);
    let plain_result = [&["sim"], &SHORT_RUN[..], &["--json"]].concat();
    let plain_result = without_run(&cohkit(plain_result).output().expect("the command starts"));
    assert_eq!(full_result, plain_result);
    let (partial_result, partial_bytes) = run_with_timeline(&["--timeline-window", "1us..2us"]);
    assert!(partial_bytes.len() < bytes.len() / 2 && partial_result["timeline"]["accesses"] != 0);
    let (partial_result, partial_bytes) = run_with_timeline(&["--timeline-size", "64KiB"]);
    assert!(
        partial_bytes.len() < 200_000 && partial_result["timeline"]["full_ns"].is_number(),
        "{}",
        partial_result["timeline"]
    );
    for (extra, expected) in [
        (["--timeline-window", "1us"], "`1us` is not `FROM..TO`"),
        (
            ["--timeline-window", "2us..1us"],
            "must end after it begins",
        ),
        (["--timeline-window", "1..2"], "--timeline-window: "),
        (["--timeline-size", "much"], "--timeline-size: "),
        (
            ["--timeline-agent", "nobody"],
            "there is no agent `nobody`; there are ",
        ),
    ] {
        let (code, output, error) = sim(&[&SHORT_RUN[..], &["--timeline", file], &extra].concat());
        assert_eq!((code, output.as_str()), (2, ""), "{error}");
        assert!(error.contains(expected), "{error}");
    }
}
