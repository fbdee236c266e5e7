//! `cohkit rtl synth` and `cohkit rtl measure`: area, paths, latencies and throughput.

use super::{build_folder, SYNTHESIS};
use crate::require::require;
use crate::{cohkit, text};
use std::process::Command;

/// Makes a command run in the repository and find Yosys, which `tools/setup_tests` installs into `.venv`.
fn run_with_yosys(command: &mut Command) -> &mut Command {
    let crate_folder = std::env::current_dir().expect("the current folder exists");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = [crate_folder.join("../../.venv/bin")]
        .into_iter()
        .chain(std::env::split_paths(&path));
    command
        .current_dir(crate_folder.join("../.."))
        .env("PATH", std::env::join_paths(folders).expect("no colon"))
}

#[test]
fn synthesis_reports_area_and_paths() {
    if !require("yosys") {
        return;
    }
    let mut command = cohkit(SYNTHESIS.split(' ').skip(1));
    let output = run_with_yosys(&mut command)
        .arg("--json")
        .output()
        .expect("the command starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let value: serde_json::Value =
        serde_json::from_str(&text(&output.stdout)).expect("the text is JSON");
    let result = &value[0];
    assert_eq!(result["configuration"], "1 unit");
    // The entries of a directory of 2,048 lines with tags of 21 bits or more do not fit one block.
    assert!(result["bram36"].as_f64() > Some(1.0), "{result}");
    assert!(result["lut"].as_u64() > Some(1000), "{result}");
    // One unit already determines the limits that the home of 64 units has to meet.
    assert!(result["depth"].as_u64() <= Some(7), "{result}");
    assert!(result["depth_after_memory"].as_u64() <= Some(4), "{result}");
    let paths = result["paths"].as_array().expect("a JSON list");
    assert_eq!(paths.len(), 5);
    assert_eq!(paths[0]["levels"], result["depth"]);
    let modules = result["modules"].as_array().expect("a JSON list");
    let sum: u64 = modules
        .iter()
        .filter_map(|module| module["lut"].as_u64())
        .sum();
    assert_eq!(Some(sum), result["lut"].as_u64());
}

/// Runs `cohkit rtl synth` of a small system with these parameters.
fn synthesise_system(parameters: &str) -> std::process::Output {
    let mut command = cohkit([
        "rtl",
        "synth",
        "protocols/msi.coh",
        "--system",
        "2",
        "--json",
    ]);
    run_with_yosys(&mut command)
        .args(["--parameter", parameters])
        .output()
        .expect("the command starts")
}

/// Caches of one kind share a mapped module, and each part has a size.
#[test]
fn synthesis_of_a_system_reports_its_parts() {
    if !require("yosys") {
        return;
    }
    let output = synthesise_system("LineWidth=10,DataWidth=16,SetWidth=5,Ways=2,Depth=4");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let value: serde_json::Value =
        serde_json::from_str(&text(&output.stdout)).expect("the text is JSON");
    let result = &value[0];
    assert_eq!(
        result["configuration"],
        "2 caches, LineWidth 10, DataWidth 16, SetWidth 5, Ways 2, Depth 4"
    );
    assert_eq!(result["slices"], serde_json::Value::Null);
    let modules = result["modules"].as_array().expect("a JSON list");
    let count = |name: &str| {
        let module = modules.iter().find(|module| module["module"] == name);
        module.unwrap_or_else(|| panic!("{name} is mapped"))["instances"].clone()
    };
    assert_eq!(
        (count("cohkit_cache"), count("cohkit_home")),
        (2.into(), 1.into())
    );
    assert_eq!(
        (count("msi_cache_step"), count("msi_home_step")),
        (2.into(), 1.into())
    );
    let sum = |key: &str| -> u64 {
        modules
            .iter()
            .filter_map(|module| module[key].as_u64())
            .sum()
    };
    // The top has few LUTs of its own, and no flip-flops.
    let luts = result["lut"].as_u64().expect("a number");
    assert!((luts * 19 / 20..=luts).contains(&sum("lut")), "{result}");
    assert_eq!(Some(sum("ff")), result["ff"].as_u64());
    // One flip-flop for each entry of two caches of 32 sets with 2 ways, and of the home of 1024 lines. The rest of the
    // entries is in memories.
    let entries = 2 * 32 * 2 + 1024;
    let flip_flops = result["ff"].as_u64().expect("a number");
    assert!((entries..2 * entries).contains(&flip_flops), "{result}");
}

#[test]
fn wrong_parameters_are_reported() {
    let output = synthesise_system("Ways=2,SetWidth=1,Ways=4");
    expect_test::expect![[r#"
        error: `--parameter` has Ways twice
    "#]]
    .assert_eq(&text(&output.stderr));
    let mut command = cohkit([
        "rtl",
        "synth",
        "eci",
        "--units",
        "1",
        "--parameter",
        "Ways=2",
    ]);
    let output = command.output().expect("the command starts");
    assert!(
        text(&output.stderr).contains("--parameter"),
        "{}",
        text(&output.stderr)
    );
    assert_eq!(output.status.code(), Some(2));
    let output = synthesise_system("Mshrs=0");
    expect_test::expect![[r#"
        error: parameter `Mshrs` is 0, but must be from 1 to 4096
    "#]]
    .assert_eq(&text(&output.stderr));
    assert_eq!(output.status.code(), Some(2));
    let output = synthesise_system("DirectoryWays=4");
    expect_test::expect![[r#"
        error: the top has no parameter DirectoryWays
          help: `--directory set-associative` has it
    "#]]
    .assert_eq(&text(&output.stderr));
    assert_eq!(output.status.code(), Some(2));
}

/// A hit takes one cycle, and every miss at least a message to the home and back. More requesters complete more, and none
/// of four starves, also with four outstanding accesses each.
#[test]
fn accesses_to_a_system_are_measured() {
    if !require("verilator") {
        return;
    }
    let mut command = cohkit(["rtl", "measure", "../../protocols/mesi.coh"]);
    let output = command
        .args(["--system", "4", "--json", "--build-cache"])
        .arg(build_folder())
        .output()
        .expect("the command starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let value: serde_json::Value =
        serde_json::from_str(&text(&output.stdout)).expect("the text is JSON");
    assert_eq!(value["caches"], 4);
    let latencies = value["latencies"].as_array().expect("a JSON list");
    let cycles = latencies.iter().map(|latency| latency["cycles"].as_u64());
    let cycles: Vec<u64> = cycles.map(|cycles| cycles.expect("a number")).collect();
    // A line that a cache has read alone is exclusive in MESI, so its first store is a hit too.
    let (hits, misses) = ([1, 2, 3], [0, 4, 5, 6, 7, 8]);
    assert!(hits.iter().all(|&access| cycles[access] == 1), "{cycles:?}");
    assert!(
        misses.iter().all(|&access| cycles[access] >= 6),
        "{cycles:?}"
    );
    // A write-back and its acknowledgement precede the load that evicts.
    assert!(cycles[4] > cycles[0], "{cycles:?}");
    let rates = value["rates"].as_array().expect("a JSON list");
    // One, two and four outstanding accesses for each number of requesters.
    let rate_with = |requesters: usize, outstanding: usize, key: &str| {
        let rate = rates
            .iter()
            .find(|rate| rate["requesters"] == requesters && rate["outstanding"] == outstanding);
        rate.expect("a rate")[key].as_f64().expect("a number")
    };
    assert_eq!(rates.len(), 12);
    let rate = |requesters: usize, key: &str| rate_with(requesters, 1, key);
    for key in ["loads_per_cycle", "stores_per_cycle"] {
        assert!(
            rate(1, key) < rate(2, key) && rate(2, key) <= rate(3, key),
            "{value}"
        );
        // A second outstanding access of the only requester hides a part of the latency of the first.
        assert!(rate_with(1, 2, key) > 1.2 * rate(1, key), "{value}");
        assert!(rate_with(1, 4, key) >= rate_with(1, 2, key), "{value}");
        // One access at a time, each with an eviction.
        assert!(rate(1, key) <= 1.0 / cycles[0] as f64, "{value}");
    }
}

#[test]
fn rtl_measurements_meet_their_limits() {
    if !require("verilator") {
        return;
    }
    let mut command = cohkit(["rtl", "measure", "../../protocols/eci.coh"]);
    let output = command
        .args(["--units", "4", "--lines", "256", "--json", "--build-cache"])
        .arg(build_folder())
        .output()
        .expect("the command starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let value: serde_json::Value =
        serde_json::from_str(&text(&output.stdout)).expect("the text is JSON");
    let find = |list: &str, key: &str, name: &str| {
        let list = value[list].as_array().expect("a JSON list");
        let entry = list.iter().find(|entry| entry[key] == name);
        entry
            .unwrap_or_else(|| panic!("{name} is measured"))
            .clone()
    };
    // Directory of 16 ways, and memory that answers in the next cycle.
    let missing_read = find("latencies", "operation", "read, not held");
    assert!(
        missing_read["cycles"].as_u64() <= Some(20),
        "{missing_read}"
    );
    assert!(find("latencies", "operation", "write-back")["cycles"].is_u64());
    // A unit has two local operations in progress, so its round trips overlap.
    let clean_invalidation = find("traffic", "name", "invalidation, held clean");
    assert!(
        clean_invalidation["lines_per_unit_and_round_trip"].as_f64() >= Some(0.95),
        "{clean_invalidation}"
    );
    // The home of 64 units sustains 24 GiB/s, so these four must sustain a sixteenth of it.
    let reads = find("traffic", "name", "sequential reads");
    assert_eq!(reads["memory_ns"], 300.0);
    assert!(reads["gib_per_s"].as_f64() >= Some(24.0 / 16.0), "{reads}");
}

/// The engine's operations overlap like those of a device with many operations in progress.
#[test]
fn invalidation_engine_is_measured_behind_the_home() {
    if !require("verilator") {
        return;
    }
    let mut command = cohkit([
        "rtl",
        "measure",
        "../../protocols/eci.coh",
        "--invalidation-engine",
    ]);
    let output = command
        .args(["--units", "4", "--lines", "128", "--json", "--build-cache"])
        .arg(build_folder())
        .output()
        .expect("the command starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let value: serde_json::Value =
        serde_json::from_str(&text(&output.stdout)).expect("the text is JSON");
    assert_eq!(value["latencies"], serde_json::json!([]));
    let streams = value["traffic"].as_array().expect("a JSON list");
    assert_eq!(streams.len(), 3);
    for stream in streams {
        assert_eq!(stream["memory_ns"], serde_json::Value::Null);
    }
    let clean_invalidation = &streams[1];
    assert_eq!(clean_invalidation["name"], "invalidation, held clean");
    assert!(
        clean_invalidation["lines_per_unit_and_round_trip"].as_f64() >= Some(0.95),
        "{clean_invalidation}"
    );
}

/// The home of the shipped platform has the measured timing, which does not depend on the number of units.
#[test]
fn shipped_platform_has_the_measured_rtl_timing() {
    if !require("verilator") {
        return;
    }
    let mut command = cohkit([
        "rtl",
        "measure",
        "../../protocols/eci.coh",
        "--print-platform",
    ]);
    let output = command
        .args(["--units", "4", "--build-cache"])
        .arg(build_folder())
        .output()
        .expect("the command starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let measured = text(&output.stdout).replace("units = { value = 2,", "units = { value = 32,");
    assert!(measured.lines().count() > 10, "{measured}");
    let platform = include_str!("../../../../../platforms/enzian-cohkit.toml");
    assert!(
        platform.contains(&format!("\n{measured}\n")),
        "`cohkit rtl measure protocols/eci.coh --print-platform` gives\n{measured}"
    );
}
