//! Tests of `cohkit sim`: the same seed gives the same bytes, and each invalid input gives one clear message.

use crate::list::files;
use crate::{cohkit, text, without_run};
use expect_test::expect;
use std::fs;
use std::path::Path;

/// Exit code and both outputs of `cohkit sim`.
fn sim(arguments: &[&str]) -> (i32, String, String) {
    let output = cohkit([&["sim"], arguments].concat())
        .output()
        .expect("the command starts");
    let code = output.status.code().expect("the command ends by itself");
    (code, text(&output.stdout), text(&output.stderr))
}

/// Arguments of a short run.
const SHORT_RUN: [&str; 6] = [
    "enzian-dc-ddr",
    "random-write",
    "--accesses",
    "30000",
    "--cores",
    "7",
];

#[test]
fn equal_seeds_give_equal_output() {
    let json = |seed: &str| {
        let arguments = [&["sim"], &SHORT_RUN[..], &["--seed", seed, "--json"]].concat();
        without_run(&cohkit(arguments).output().expect("the command starts"))
    };
    let first_result = json("1");
    assert_eq!(first_result.to_string(), json("1").to_string());
    assert_ne!(first_result["statistics"], json("2")["statistics"]);
    assert_eq!(first_result["statistics"]["accesses"], 30000.0);
    assert_eq!(sim(&SHORT_RUN), sim(&SHORT_RUN));
}

#[test]
fn shipped_platform_equals_its_file() {
    let by_name = [
        "sim",
        "thunderx1-2s",
        "sequential-read",
        "--region",
        "64KiB",
    ];
    let mut file = by_name;
    file[1] = "../../platforms/thunderx1-2s.toml";
    let [by_name, file] =
        [by_name, file].map(|arguments| cohkit(arguments).output().expect("the command starts"));
    assert!(by_name.status.success());
    assert_eq!(text(&by_name.stdout), text(&file.stdout));
}

#[test]
fn setting_changes_its_quantity() {
    let latency = |settings: &[&str]| {
        let base = [
            "sim",
            "enzian-dc-bram",
            "sequential-read",
            "--region",
            "12800B",
        ];
        let single_core = ["--cores", "1", "--prefetch", "0", "--json"];
        let arguments = [&base[..], &single_core, settings].concat();
        let value = without_run(&cohkit(arguments).output().expect("the command starts"));
        value["statistics"]["latency_mean_ns"]
            .as_f64()
            .expect("a JSON number")
    };
    // A read crosses the link twice.
    let difference = latency(&["--set", "link.latency=110ns"]) - latency(&[]);
    assert!((difference - 20.0).abs() < 0.001, "{difference}");
}

/// A machine of private caches, one per core, with the home for this number of remotes.
#[test]
fn number_of_caches_can_be_set() {
    let base = ["sim", "enzian-dc-ddr", "random-write", "--region", "8KiB"];
    let options = ["--cores", "4", "--accesses", "4000", "--json"];
    let result_with = |settings: &[&str]| {
        let arguments = [&base[..], &options, settings].concat();
        without_run(&cohkit(arguments).output().expect("the command starts"))
    };
    let (one_cache, four_caches) = (result_with(&[]), result_with(&["--set", "remotes=4"]));
    // A single cache never loses a line; four caches take lines from each other.
    assert_eq!(one_cache["messages"]["ForwardInvalid"], 0);
    assert!(
        four_caches["messages"]["ForwardInvalid"].as_u64() > Some(1000),
        "{four_caches}"
    );
    assert_eq!(four_caches["failure"], serde_json::Value::Null);
    assert_eq!(four_caches["statistics"]["accesses"], 4000);
}

/// Properties of cores that the command does not state are those of the platform.
#[test]
fn core_defaults_come_from_the_platform() {
    let workload = |workload: &str, options: &[&str]| {
        let base = [
            "sim",
            "enzian-dc-bram",
            workload,
            "--accesses",
            "100",
            "--json",
        ];
        without_run(
            &cohkit([&base[..], options].concat())
                .output()
                .expect("the command starts"),
        )["workload"]
            .take()
    };
    let result = workload("sequential-read", &[]);
    assert_eq!(result["cores"], 48);
    assert_eq!(result["partitioned"], true);
    assert_eq!(result["prefetch"], 8);
    let by_setting = [
        "--set",
        "cores.count=5",
        "--set",
        "cores.partitioned=0",
        "--set",
        "cores.prefetch_distance=3",
    ];
    let by_option = [
        "--cores",
        "5",
        "--prefetch",
        "3",
        "--set",
        "cores.partitioned=0",
    ];
    let result = workload("sequential-read", &by_setting);
    assert_eq!(
        (&result["cores"], &result["partitioned"]),
        (&5.into(), &false.into())
    );
    assert_eq!(result, workload("sequential-read", &by_option));
    assert_eq!(workload("random-read", &by_option)["prefetch"], 3);
    assert_eq!(workload("random-write", &[])["prefetch"], 0);
}

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

#[test]
fn invalid_platform_file_is_rejected() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::create_dir(folder.path().join("folder.toml")).expect("the folder can be created");
    fs::write(folder.path().join("bytes.toml"), b"name\xff").expect("the file can be written");
    fs::write(folder.path().join("empty.toml"), "").expect("the file can be written");
    for (file, expected) in [
        (
            "folder.toml",
            "error: folder.toml: is a folder\n  help: name a file\n",
        ),
        (
            "bytes.toml",
            "error: bytes.toml: is not text: byte 4 is not UTF-8\n",
        ),
        ("empty.toml", "error: `name` is missing\n"),
    ] {
        let output = cohkit(["sim", file, "random-read"])
            .current_dir(folder.path())
            .output()
            .expect("the command starts");
        assert_eq!(output.status.code(), Some(2), "{file}");
        let err = text(&output.stderr);
        assert!(err.starts_with(expected), "{file}: {err}");
    }
}

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

#[test]
fn errors_of_a_platform_show_their_place() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../platforms/enzian-dc-bram.toml");
    let valid = fs::read_to_string(shipped).expect("the platform can be read");
    let invalid = valid
        .replace("\"3.1ns\"", "3")
        .replace("remotes = 1", "remotes = 0");
    fs::write(folder.path().join("wrong.toml"), invalid).expect("the file can be written");
    let output = cohkit(["sim", "wrong.toml", "random-read"])
        .current_dir(folder.path())
        .output()
        .expect("the command starts");
    assert_eq!(output.status.code(), Some(2));
    expect![[r#"
        error: remotes must be 1 to 4096, not 0
         --> wrong.toml:8:11
          |
        8 | remotes = 0
          |           ^

        error: `bram.latency` has no unit: write it like `70ns` (units: ps, ns, us, ms, s)
          --> wrong.toml:68:21
           |
        68 | latency = { value = 3, origin = "CCKit, figure 5: 2 x 64 KiB BRAM, 38.4 GiB/s, 3.1 ns" }
           |                     ^
    "#]]
    .assert_eq(&text(&output.stderr));
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

/// A composition of two levels of caches.
const TWO_LEVEL_FILE: &str = "../../protocols/two-level.coh";

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

#[test]
fn quantity_outside_its_plausible_range_is_warned_of() {
    let base = ["enzian-dc-ddr", "random-read", "--accesses", "100"];
    let stdout_with = |extra: &[&str]| {
        let (code, out, _) = sim(&[&base[..], extra].concat());
        assert_eq!(code, 0, "{extra:?}");
        out
    };
    let warning = "`link.latency` is set to 5us, outside its plausible range of 60ns to 140ns";
    let out = stdout_with(&["--set", "link.latency=5us"]);
    assert!(out.contains(&format!("\nwarning: {warning}\n")), "{out}");
    let json = |set: &str| {
        let out = stdout_with(&["--set", set, "--json"]);
        let value: serde_json::Value = serde_json::from_str(&out).expect("the text is JSON");
        value["warnings"].clone()
    };
    assert_eq!(json("link.latency=5us"), serde_json::json!([warning]));
    for set in ["link.latency=60ns", "link.latency=140ns", "cores.count=12"] {
        assert_eq!(json(set), serde_json::json!([]), "{set}");
    }
    let play = [
        "play",
        "enzian-dc-bram",
        "rpc",
        "--param",
        "calls=10",
        "--set",
        "link.latency=5us",
    ];
    let out = text(&cohkit(play).output().expect("the command starts").stdout);
    assert!(out.contains(&format!("\nwarning: {warning}\n")), "{out}");
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

/// Regression: every machine ran ECI, which is for one cache; machines of 512 hosts ran 40 times slower with it.
#[test]
fn platform_names_its_default_protocol() {
    for file in files("platforms", ".toml") {
        // This machine has too many hosts for a quick run.
        let platform = file.trim_end_matches(".toml");
        if platform == "cxl-512x8" {
            continue;
        }
        let text = fs::read_to_string(format!("../../platforms/{file}")).expect("it is there");
        let protocol = text
            .lines()
            .find_map(|line| line.strip_prefix("protocol = "));
        let protocol = protocol.map_or("eci".into(), |name| {
            name.trim_matches('"').replace('-', "_")
        });
        let (code, out, err) = sim(&[
            platform,
            "random-read",
            "--region",
            "64KiB",
            "--accesses",
            "100",
        ]);
        assert_eq!((code, err.as_str()), (0, ""), "{platform}");
        assert!(
            out.starts_with(&format!("{protocol} on {platform}, ")),
            "{out}"
        );
        assert!(!out.contains("warning"), "{out}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("mine.toml");
    let text = fs::read_to_string("../../platforms/hosts-8x8.toml").expect("the file can be read");
    let run = |protocol_line: &str| {
        let text = text.replace("protocol = \"mesi\"\n", protocol_line);
        fs::write(&file, text).expect("the file can be written");
        sim(&[
            &file.display().to_string(),
            "random-read",
            "--accesses",
            "100",
        ])
    };
    assert!(run("").1.starts_with("eci on hosts-8x8, "));
    let (code, out, err) = run("protocol = \"mosi\"\n");
    assert_eq!((code, out.as_str()), (2, ""));
    let expected = "error: the platform hosts-8x8 names the protocol `mosi`, which is not shipped\n  help: there are ";
    assert!(err.starts_with(expected), "{err}");
    let (_, _, err) = run("protocol = 3\n");
    assert!(err.starts_with("error: `protocol`"), "{err}");
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
