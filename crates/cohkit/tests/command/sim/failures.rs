//! Failures: faulty protocols are rejected or reported with a chart.

use super::sim;
use crate::{cohkit, text, without_run};
use std::fs;
use std::path::Path;

/// Contents of a shipped protocol with changes.
fn mutated_protocol(protocol: &str, changes: &[(&str, &str)]) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../protocols");
    let mut text = fs::read_to_string(path.join(protocol)).expect("the file can be read");
    for (original, mutated) in changes {
        assert!(text.contains(original), "{original}");
        text = text.replace(original, mutated);
    }
    text
}

/// The home can be constructed, but has a fault: it waits for a victim that may not exist.
#[test]
fn faulty_home_is_rejected_before_a_simulation() {
    let text = mutated_protocol(
        "eci.coh",
        &[
            (
                "| send AckDroppedUpgrading  | IU",
                "| send AckDropped  | IU",
            ),
            (", AckDroppedUpgrading", ""),
            ("  reach S with", "  stall possible\n  reach S with"),
        ],
    );
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("wrong.coh"), text).expect("the file can be written");
    let output = cohkit([
        "sim",
        "enzian-dc-ddr",
        "random-read",
        "--protocol",
        "wrong.coh",
    ])
    .current_dir(folder.path())
    .output()
    .expect("the command starts");
    assert_eq!(output.status.code(), Some(1));
    let err = crate::text(&output.stderr);
    assert!(err.starts_with("error: dead end: "), "{err}");
    assert!(output.stdout.is_empty());
}

/// A workload without rows in the caching agent is rejected before the run, which would leave out all accesses.
#[test]
fn workload_unsupported_by_the_protocol_is_rejected() {
    let only_reads = "
protocol reader
line 128 bytes
channels { request remote -> home; victim remote -> home; answer remote -> home
           forward home -> remote; grant home -> remote; ordered forward, grant; ordered request, victim }
messages { request: Get; victim: Put; answer: Gone, Nothing; forward: Drop; grant: Data (line) }
remote reader {
  states { I; V reads; IV waits Data }
  I    | load  | send Get     | IV
  V    | evict | send Put     | I
  IV   | Data  |              | V
  V    | Drop  | send Gone    | I
  I IV | Drop  | send Nothing | stay
}
home { on Get(r) { ensure others(r) == I; grant r V with Data }
       reach I with Drop }
system one { remotes 1; lines 1 }
";
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("reader.coh"), only_reads).expect("the file can be written");
    let run = |workload| {
        let output = cohkit(["sim", "enzian-dc-ddr", workload, "--protocol", "reader.coh"])
            .current_dir(folder.path())
            .output()
            .expect("the command starts");
        (output.status.code(), text(&output.stderr))
    };
    assert_eq!(run("random-read"), (Some(0), String::new()));
    let expected = "error: the reader of `reader` has no row for `store`, which random-write needs\n  help: add such rows, or choose another workload\n";
    assert_eq!(run("random-write"), (Some(2), expected.to_string()));
}

#[test]
fn run_without_progress_ends_with_a_chart() {
    let run = [
        "enzian-dc-ddr",
        "random-read",
        "--cores",
        "1",
        "--prefetch",
        "0",
    ];
    let (code, out, _) = sim(&[&run[..], &["--set", "watchdog_timeout=100ns"]].concat());
    assert_eq!(code, 3);
    assert!(
        out.contains("\ngiven up: no progress: no access was performed for "),
        "{out}"
    );
    assert!(out.contains("and waits for DataShared"), "{out}");
    assert!(out.contains("ReadShared ─▶│"), "{out}");
}

/// A cache hands its line on and keeps it, so two caches may write.
#[test]
fn simulated_violation_is_printed_with_its_chart() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let texts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../protocols/msi.coh");
    let valid = fs::read_to_string(texts).expect("the file can be read");
    let row = valid
        .lines()
        .find(|line| line.trim_start().starts_with("M  ") && line.contains("| FwdGetM"))
        .expect("the row is there");
    let mutated = valid.replace(row, &format!("{}stay", row.trim_end_matches('I')));
    fs::write(folder.path().join("wrong.coh"), mutated).expect("the file can be written");
    let platform =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../platforms/enzian-dc-bram.toml");
    let platform = fs::read_to_string(platform).expect("the platform can be read");
    let two_caches = platform.replace("remotes = 1", "remotes = 2");
    fs::write(folder.path().join("two.toml"), two_caches).expect("the file can be written");
    let output = cohkit(["sim", "two.toml", "random-write", "--protocol", "wrong.coh"])
        .args([
            "--cores",
            "2",
            "--region",
            "128B",
            "--accesses",
            "100",
            "--json",
        ])
        .current_dir(folder.path())
        .output()
        .expect("the command starts");
    let value = without_run(&output);
    assert_eq!(output.status.code(), Some(1), "{value}");
    assert!(value["statistics"].is_null());
    assert_eq!(value["failure"]["kind"], "single writer");
    assert!(!value["failure"]["sequence"]["steps"]
        .as_array()
        .expect("a JSON list")
        .is_empty());
}

/// A home drops write-backs: workloads that only write or only read do not notice it, a workload that does both does.
#[test]
fn lost_write_back_is_found_by_a_later_read() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let text = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../protocols/msi.coh");
    let valid = fs::read_to_string(&text).expect("the file can be read");
    let row = "M       | PutM if sender == owner                       | write, send";
    assert_eq!(valid.matches(row).count(), 1);
    let mutated = valid.replace(row, &row.replace("write, send", "send"));
    fs::write(folder.path().join("wrong.coh"), mutated).expect("the file can be written");
    let msi = text.display().to_string();
    let run = |workload: &str, protocol: &str| {
        let output = cohkit(["sim", "enzian-dc-bram", workload, "--protocol", protocol])
            .args([
                "--region",
                "64KiB",
                "--accesses",
                "5000",
                "--set",
                "cache.sets=8",
                "--json",
            ])
            .current_dir(folder.path())
            .output()
            .expect("the command starts");
        (
            output.status.code(),
            without_run(&output)["failure"]["kind"].clone(),
        )
    };
    assert_eq!(run("random-write", "wrong.coh").0, Some(0));
    assert_eq!(
        run("random-mixed", "wrong.coh"),
        (Some(1), "data value".into())
    );
    assert_eq!(run("random-mixed", &msi).0, Some(0));
}
