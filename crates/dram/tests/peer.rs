//! Comparison with DRAMsim3, an independent simulator of DRAM (S. Li and others, "DRAMsim3: a cycle-accurate,
//! thermal-capable DRAM simulator", IEEE Computer Architecture Letters, 2020). Its patterns are in `tools/dram_peer`, a
//! package of its own, so that only this test builds DRAMsim3.

use cohkit_testing::require::require;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Maximum deviation of the clocks between two accesses, and of the clocks of one alone. A single access may meet a
/// refresh, which the two simulators begin at other times.
const RATE_DEVIATION: f64 = 0.05;
const LATENCY_DEVIATION: f64 = 0.08;

/// Clocks of every pattern are those of DRAMsim3.
#[test]
fn clocks_of_access_patterns_are_those_of_dramsim3() {
    if !require("cmake") {
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--release", "--locked", "--manifest-path"])
        .arg(root.join("tools/dram_peer/Cargo.toml"))
        .arg("--target-dir")
        .arg(root.join("target/dram_peer"))
        .output()
        .expect("cargo starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout).expect("the output is UTF-8");
    // DRAMsim3 prints warnings before the results.
    let results: Vec<Value> = (text.lines().last())
        .and_then(|line| serde_json::from_str(line).ok())
        .unwrap_or_else(|| panic!("the last line is no JSON: {text}"));
    assert_eq!(results.len(), 4 * 14);
    for result in results {
        let clocks = |name: &str| result[name].as_f64().expect("a number of clocks");
        let deviation = clocks("ours") / clocks("dramsim3") - 1.0;
        let is_alone = (result["pattern"].as_str()).is_some_and(|name| name.ends_with("alone"));
        let limit = match is_alone {
            true => LATENCY_DEVIATION,
            false => RATE_DEVIATION,
        };
        assert!(deviation.abs() < limit, "{deviation:+.3}: {result}");
    }
}
