//! Options, outputs, interrupts and recorded traces: invalid input is rejected before the run.

use super::sim;
use crate::{cohkit, text};
use expect_test::expect;
use std::fs;

#[test]
fn invalid_input_gives_one_message() {
    let write = ["enzian-dc-ddr", "random-write"];
    for (arguments, expected) in [
        (
            &["enzian", "random-read"][..],
            "error: no platform is named `enzian`\n  help: the shipped platforms are clusters-4x4, ",
        ),
        (&["missing.toml", "random-read"], "error: missing.toml: no such file\n"),
        (
            &[concat!(env!("CARGO_MANIFEST_DIR"), "/../../nearmemory/enzian.toml"), "random-read"],
            concat!("error: ", env!("CARGO_MANIFEST_DIR"), "/../../nearmemory/enzian.toml: this is a machine with cores beside far memory, without a protocol\n  help: use `cohkit run --platform FILE` for it\n"),
        ),
        (&["enzian-dc-ddr", "read"], "error: invalid value 'read' for '<WORKLOAD>'\n"),
        (&[&write[..], &["--region", "64GiB"]].concat(), "error: a region of 64GiB is larger than the memory of enzian-dc-ddr, 32GiB\n"),
        (&[&write[..], &["--region", "64"]].concat(), "error: the region `64` has no unit: write it like `128KiB` (units: "),
        (&[&write[..], &["--region", "0B"]].concat(), "error: a region of 0B is not a whole number of lines\n"),
        (&[&write[..], &["--region", "100B"]].concat(), "error: a region of 100B is not a whole number of lines\n"),
        (&[&write[..], &["--accesses", "0"]].concat(), "error: invalid value '0' for '--accesses <N>'"),
        (&[&write[..], &["--prefetch", "1"]].concat(), "error: `--prefetch` does not apply to random-write\n"),
        (&[&write[..], &["--set", "lines"]].concat(), "error: the setting `lines` has no `=`\n"),
        (&[&write[..], &["--set", "bram.ports=1"]].concat(), "error: the setting `bram.ports=1`: there is no `bram.ports` in this platform; there are "),
        (&[&write[..], &["--set", "link.latency=5"]].concat(), "error: the setting `link.latency=5`: `link.latency` has no unit: "),
        (&[&write[..], &["--set", "cache.ways=0"]].concat(), "error: the setting `cache.ways=0`: cache.ways must be 1 to 16, not 0\n"),
        (&[&write[..], &["--set", "lines=4", "--region", "1KiB"]].concat(), "error: a region of 1KiB is larger than the memory of enzian-dc-ddr, 512B\n"),
        (&[&write[..], &["--set", "link.latency=5ns", "--set", "link.latency=7ns"]].concat(), "error: the setting `link.latency=7ns`: `link.latency` is set to 5ns already\n"),
        (&[&write[..], &["--protocol", "missing.coh"]].concat(), "error: missing.coh: no such file\n"),
    ] {
        let (code, out, err) = sim(arguments);
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}: {err}");
        assert!(err.starts_with(expected), "{arguments:?}: {err}");
    }
}

#[test]
fn invalid_memory_amounts_are_rejected() {
    for (arguments, expected) in [
        (&["--region", "-1GiB"][..], "error: the region `-1GiB` is not a number with a unit: "),
        (&["--region", ""], "error: the region `` is not a number with a unit: "),
        (&["--region", "1GiX"], "error: the region `1GiX` has the unknown unit `GiX` (units: "),
        (&["--region", "99999999999TiB"], "error: the region `99999999999TiB` is too large\n"),
        (&["--accesses", "99999999999999999999"], "error: invalid value '99999999999999999999' for '--accesses <N>': "),
        (&["--cores", "0"], "error: invalid value '0' for '--cores <N>': it must be 1 to 4096\n"),
        (&["--cores=-1"], "error: invalid value '-1' for '--cores <N>': "),
        (&["--outstanding", "0"], "error: invalid value '0' for '--outstanding <N>': "),
        (&["--prefetch=-1"], "error: invalid value '-1' for '--prefetch <N>': "),
        (&["--seed", "x"], "error: invalid value 'x' for '--seed <N>': "),
        (&["--set", "nonsense=1"], "error: the setting `nonsense=1`: there is no `nonsense` in this platform; there are cores.count, "),
        (&["--set", "link.latency=-5ns"], "error: the setting `link.latency=-5ns`: `link.latency` is not a number with a unit: "),
        (&["--set", "link.latency=5 meters"], "error: the setting `link.latency=5 meters`: `link.latency` has the unknown unit `meters` (units: "),
        (&["--set", "link.bandwidth=0B/s"], "error: the setting `link.bandwidth=0B/s`: link.bandwidth must be "),
        (&["--set", "lines=4"], "error: a region of 16MiB is larger than the memory of enzian-dc-ddr, 512B\n"),
        (&["--set", "cores.write_buffer=100B"], "error: cannot simulate: cores.write_buffer must be a multiple of a line of 128B, not 100B\n"),
        (&["--set", "dram.row_bytes=64B"], "error: cannot simulate: dram.row_bytes must be at least a line of 128B, not 64B\n"),
    ] {
        let (code, out, err) = sim(&[&["enzian-dc-ddr", "random-read"], arguments].concat());
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}: {err}");
        assert!(err.starts_with(expected), "{arguments:?}: {err}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn unwritable_result_is_exit_code_4() {
    let base = ["enzian-dc-ddr", "random-read", "--accesses", "100"];
    for (out, expected) in [
        (
            "missing/out",
            "error: missing/out: its folder does not exist; nothing was written\n",
        ),
        ("/", "error: /: is a folder; nothing was written\n"),
        (
            "/dev/full",
            "error: /dev/full: the disk is full; nothing was written\n",
        ),
    ] {
        let (code, _, err) = sim(&[&base[..], &["--out", out]].concat());
        assert_eq!(code, 4, "{err}");
        assert!(err.starts_with(expected), "{err}");
    }
    // An unusable output path is found before a run that would take very long.
    let (code, _, _) = sim(&[
        "enzian-dc-ddr",
        "random-read",
        "--accesses",
        "1000000000000",
        "--out",
        "missing/out",
    ]);
    assert_eq!(code, 4);
    let full_device = fs::File::options()
        .write(true)
        .open("/dev/full")
        .expect("the file can be opened");
    let output = cohkit([&["sim"], &base[..]].concat())
        .stdout(full_device)
        .output()
        .expect("the command starts");
    assert_eq!(output.status.code(), Some(4));
}

/// The progress bar appears only on a terminal.
#[test]
fn progress_bar_requires_a_terminal() {
    let (code, _, err) = sim(&["enzian-dc-ddr", "sequential-read", "--region", "64MiB"]);
    assert_eq!((code, err.as_str()), (0, ""));
}

#[cfg(unix)]
#[test]
fn interrupt_ends_a_simulation_without_output() {
    use std::process::Stdio;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut child = cohkit(["sim", "enzian-dc-ddr", "random-read"])
        .args(["--accesses", "1000000000000", "--out", "result"])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    crate::interrupt(&mut child);
    let status = child.wait().expect("the command ends");
    assert_eq!(status.code(), Some(130));
    let mut err = String::new();
    let mut stderr = child.stderr.take().expect("standard error is piped");
    std::io::Read::read_to_string(&mut stderr, &mut err).expect("the file can be read");
    assert_eq!(err, "interrupted\n");
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
}

/// Exit code and both outputs of a simulation of the trace, written to its own file.
fn simulate_trace(trace: &[u8], options: &[&str]) -> (i32, String, String) {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("my.trace"), trace).expect("the file can be written");
    let arguments = [&["sim", "enzian-dc-ddr", "trace:my.trace"], options].concat();
    let output = cohkit(arguments)
        .current_dir(folder.path())
        .output()
        .expect("the command starts");
    let code = output.status.code().expect("the command ends by itself");
    (code, text(&output.stdout), text(&output.stderr))
}

#[test]
fn trace_runs_as_a_workload() {
    let trace = b"0 store 0x1000\n1 load 0x1008 500ns\n0 load 0x1000 1us\n";
    let (code, out, _) = simulate_trace(trace, &["--json"]);
    let value: serde_json::Value = serde_json::from_str(&out).expect("the text is JSON");
    assert_eq!(code, 0);
    assert_eq!(value["workload"]["name"], "trace:my.trace");
    assert_eq!(value["workload"]["cores"], 2);
    assert_eq!(value["statistics"]["accesses"], 3.0);
    let (_, out, _) = simulate_trace(trace, &["--json", "--accesses", "1", "--cores", "5"]);
    let value: serde_json::Value = serde_json::from_str(&out).expect("the text is JSON");
    assert_eq!(value["workload"]["accesses"], 1);
    assert_eq!(value["workload"]["cores"], 5);
}

#[test]
fn invalid_trace_is_rejected_with_its_line() {
    let (code, _, error) = simulate_trace("# é\n0 load 0x1000\n0 lod 8\n".as_bytes(), &[]);
    assert_eq!(code, 2);
    expect![[r#"
        error: `lod` is no access; did you mean `load`? there are load, store, read_once, write_line, write_partial, clean, evict, demote
         --> my.trace:3:3
          |
        3 | 0 lod 8
          |   ^^^
    "#]]
    .assert_eq(&error);
    for (trace, options, expected) in [
        (&b""[..], &[][..], "error: my.trace: it contains no access\n"),
        (b"COHKTRC1\0", &[], "error: my.trace: record 1: it has 1 of 16 bytes\n"),
        (
            b"\x1f\x8b\x08\0",
            &[],
            "error: my.trace: the gzip data are truncated or damaged, or followed by other data: unexpected end of file\n",
        ),
        (
            b"3 load 0",
            &["--cores", "2"],
            "error: trace:my.trace has accesses of 4 cores, and there are 2\n  help: remove `--cores`, or raise it: a trace sets its number of cores\n",
        ),
        (
            b"load 0",
            &["--region", "1MiB"],
            "error: `--region 1MiB` cannot be combined with the workload trace:my.trace\n  help: `--region` does not apply to a trace, which lists its own addresses; remove the option\n",
        ),
        (
            b"load 0",
            &["--kind-workload", "cpu=trace:none"],
            "error: none: no such file\n  help: a trace has one access per line; docs/workloads.md describes the format; check the path\n",
        ),
    ] {
        let (code, _, error) = simulate_trace(trace, options);
        assert_eq!((code, error.as_str()), (2, expected));
    }
    let (code, _, error) = sim(&["enzian-dc-ddr", "trace:"]);
    assert_eq!(code, 2);
    assert!(error.starts_with(
        "error: invalid value 'trace:' for '<WORKLOAD>'\n  [possible values: sequential-read, "
    ));
    assert!(error.contains(
        ", trace:FILE, packed-trace:FILE, gem5-trace:FILE, ramulator-trace:FILE, dramsim3-trace:FILE, champsim-trace:FILE, lackey-trace:FILE, dinero-trace:FILE, pin-trace:FILE]"
    ));
}
