//! Simulated machines and applications with the RTL as their home.

use super::{build_folder, SMALL_SHAPE_OPTIONS};
use crate::require::require;
use crate::{check, cohkit, text};
use expect_test::expect;

/// JSON of a command with a home in hardware; `None` if the developer works without Verilator.
fn run_with_rtl(arguments: &[&str]) -> Option<serde_json::Value> {
    if !require("verilator") {
        return None;
    }
    let mut command = cohkit(arguments.iter().copied());
    command
        .args(SMALL_SHAPE_OPTIONS)
        .args(["--home-executor", "rtl", "--json", "--build-cache"]);
    let output = command
        .arg(build_folder())
        .output()
        .expect("the command starts");
    assert!(
        output.status.success(),
        "{}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    Some(serde_json::from_str(&text(&output.stdout)).expect("the text is JSON"))
}

#[test]
fn machines_run_with_the_home_in_hardware() {
    let arguments = [
        "sim",
        "enzian-dc-ddr",
        "random-write",
        "--region",
        "16KiB",
        "--accesses",
        "2000",
    ];
    let Some(value) = run_with_rtl(&arguments) else {
        return;
    };
    assert_eq!(value["home"], "rtl");
    assert_eq!(value["failure"], serde_json::Value::Null);
    assert_eq!(value["statistics"]["accesses"], 2000);
    // The cache is smaller than the region, and so is the directory. They have the same sets, so the cache frees
    // entries of the directory by its evictions. The directory waits for them, and invalidates no line.
    assert!(
        value["messages"]["VictimDirty"].as_u64() > Some(20),
        "{value}"
    );
    assert_eq!(value["messages"]["ForwardInvalid"], 0, "{value}");
}

/// Each scenario itself verifies at its end that no increment is lost.
#[test]
fn applications_play_behind_the_home_in_hardware() {
    for application in [
        &["shared-table", "--param", "rows=40", "--stop-after", "40us"][..],
        &["prefetcher", "--stop-after", "20us"],
        &["invalidation", "--param", "lines=30", "--param", "dirty=1"],
        &["rpc", "--param", "calls=20"],
    ] {
        let arguments = [&["play", "enzian-dc-bram"][..], application].concat();
        let Some(value) = run_with_rtl(&arguments) else {
            return;
        };
        assert_eq!(value["home"], "rtl");
        let counts = value["counts"].as_object().expect("a JSON object");
        assert!(
            counts.values().any(|count| count.as_u64() > Some(2)),
            "{value}"
        );
    }
}

#[test]
fn machines_without_a_hardware_home_are_rejected() {
    check(
        &[
            "sim",
            "thunderx1-2s",
            "random-read",
            "--home-executor",
            "rtl",
        ],
        expect![[r#"
            exit code 2
            --- stderr
            error: the home in hardware does not fit the platform thunderx1-2s: it has two slices of up to 32 units, not 8 of 16
              help: `--set home.slices=2 --set home.units=32`
        "#]],
    );
    check(
        &[
            "play",
            "enzian-dc-ddr",
            "rpc",
            "--home-executor",
            "rtl",
            "--set",
            "home.units=64",
        ],
        expect![[r#"
            exit code 2
            --- stderr
            error: the home in hardware does not fit the platform enzian-dc-ddr: it has two slices of up to 32 units, not 2 of 64
              help: `--set home.slices=2 --set home.units=32`
        "#]],
    );
    check(
        &[
            "sim",
            "enzian-dc-ddr",
            "random-read",
            "--home-executor",
            "rtl",
            "--set",
            "cache.ways=2",
        ],
        expect![[r#"
            exit code 2
            --- stderr
            error: the home in hardware does not fit the platform enzian-dc-ddr: its directory has 4, 8 or 16 ways and at least 2 sets in each unit, as many in all as the cache has; that has 8192 sets of 2 ways
              help: other numbers by `--set cache.sets=8192 --set cache.ways=16`
        "#]],
    );
    check(
        &[
            "sim",
            "enzian-dc-ddr",
            "random-read",
            "--home-executor",
            "rtl",
            "--protocol",
            "../../protocols/msi.coh",
        ],
        expect![[r#"
            exit code 2
            --- stderr
            error: no RTL for this home: it assumes zero-latency memory
              --> ../../protocols/msi.coh:78:6
               |
            78 | home directory {
               |      ^^^^^^^^^
               |
               = help: write the home as a policy; constructed homes support memory latency
        "#]],
    );
}

/// Enzian with 4 of 64 units, 3 of 48 cores, and links of a sixteenth; `rtl measure --units 4` builds the same RTL.
const SCALED_ENZIAN: [&str; 10] = [
    "--set",
    "home.units=2",
    "--set",
    "cache.sets=512",
    "--set",
    "cores.count=3",
    "--set",
    "link.bandwidth=0.6125GiB/s",
    "--region",
    "2MiB",
];

/// The simulated home of `enzian-cohkit` is as fast as the RTL whose timing it has.
#[test]
fn simulated_home_is_as_fast_as_the_rtl() {
    if !require("verilator") {
        return;
    }
    for workload in [
        "sequential-read",
        "random-read",
        "sequential-write",
        "random-write",
    ] {
        let rates_with = |home: &str| {
            let mut command = cohkit([
                "sim",
                "enzian-cohkit",
                workload,
                "--json",
                "--home-executor",
                home,
            ]);
            let output = command
                .args(SCALED_ENZIAN)
                .arg("--build-cache")
                .arg(build_folder())
                .output()
                .expect("the command starts");
            assert!(output.status.success(), "{}", text(&output.stderr));
            let value: serde_json::Value =
                serde_json::from_str(&text(&output.stdout)).expect("the text is JSON");
            let statistic = |name| value["statistics"][name].as_f64().expect("a JSON number");
            [
                statistic("bandwidth_bytes_per_s"),
                statistic("latency_mean_ns"),
            ]
        };
        for (model, rtl) in rates_with("model").into_iter().zip(rates_with("rtl")) {
            assert!(
                (model / rtl - 1.0).abs() < 0.05,
                "{workload}: {model}, the RTL {rtl}"
            );
        }
    }
}
