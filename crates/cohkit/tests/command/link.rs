//! Tests of `cohkit link`.

use crate::{cohkit, text};
use serde_json::Value;

/// JSON output of `cohkit link`, which must succeed.
fn link_json(arguments: &[&str]) -> Value {
    let mut command = cohkit(["link", "--json"]);
    let output = command
        .args(arguments)
        .output()
        .expect("the command starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_str(&text(&output.stdout)).expect("the text is JSON")
}

/// Rates of the entries of a list, under this key.
fn rates(report: &Value, list: &str, key: &str) -> Vec<f64> {
    let entries = report[list].as_array().expect("a JSON list");
    let rate = |entry: &Value| entry[key].as_f64().expect("a JSON number");
    entries.iter().map(rate).collect()
}

#[test]
fn published_rates_match_formula_and_simulation() {
    // Two ECI links together have 24.04 GiB/s for messages, and 22.62 GiB/s for lines; these are the rates of one.
    let eci = link_json(&["eci"]);
    let gib = |rate: f64| (rate * 100.0 / f64::from(1 << 30)).round() / 100.0;
    let steps = rates(&eci, "steps", "bytes_per_second");
    assert_eq!(
        steps.iter().map(|&rate| gib(rate)).collect::<Vec<_>>(),
        [14.41, 13.76, 13.73, 12.02]
    );
    // A circuit is drained at 3 words per clock: known as 6.4 to 6.8 GiB/s of lines.
    for key in ["formula_bytes_per_second", "simulated_bytes_per_second"] {
        let data: Vec<f64> = rates(&eci, "data", key).into_iter().map(gib).collect();
        assert_eq!(data, [11.31, 11.31, 6.78, 6.78]);
    }
    // Large writes in both directions at once, in GB/s.
    for (link, published_rate) in [("pcie3", 12.99), ("pcie4", 25.99), ("pcie5", 51.98)] {
        let simulated_rate =
            rates(&link_json(&[link]), "data", "simulated_bytes_per_second")[1] / 1e9;
        assert!(
            (simulated_rate / published_rate - 1.0).abs() < 0.001,
            "{link}: {simulated_rate}"
        );
    }
}

#[test]
fn equal_seeds_give_equal_bit_errors() {
    let noisy_link = |seed| {
        link_json(&[
            "cxl68",
            "--bit-errors",
            "1e-6",
            "--lanes",
            "4",
            "--seed",
            seed,
        ])
    };
    assert_eq!(noisy_link("1"), noisy_link("1"));
    assert_ne!(noisy_link("1")["data"], noisy_link("2")["data"]);
    assert!(rates(&noisy_link("1"), "data", "replayed_percent")[0] > 0.0);
}

#[test]
fn invalid_link_option_lists_valid_values() {
    for (arguments, expected) in [
        (["eci", "--lanes", "17"], "eci has 1 to 16 lanes, not 17"),
        (["eci", "--lanes", "0"], "eci has 1 to 16 lanes, not 0"),
        (["pcie4", "--lanes", "3"], "1, 2, 4, 8 or 16 lanes, not 3"),
        (
            ["pcie4", "--payload", "100"],
            "pcie4 supports payloads of 128, 256, 512, 1024 bytes",
        ),
        (["pcie6", "--seed", "0"], "pcie5"),
        (["eci", "--bit-errors", "0.1"], "from 0 to 0.0001"),
        (["eci", "--delay", "99999"], "10000"),
    ] {
        let output = cohkit(["link"])
            .args(arguments)
            .output()
            .expect("the command starts");
        assert_eq!(output.status.code(), Some(2));
        let errors = text(&output.stderr);
        assert!(errors.starts_with("error: "), "{errors}");
        assert!(errors.contains(expected), "{errors}");
    }
}
