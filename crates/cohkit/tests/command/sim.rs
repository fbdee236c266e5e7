//! `cohkit sim`: the same bytes again, and one clear message for each bad input.

use crate::{cohkit, text, without_run};
use expect_test::expect;
use std::fs;
use std::path::Path;

/// The exit code and both outputs of `cohkit sim`.
fn sim(arguments: &[&str]) -> (i32, String, String) {
    let output = cohkit([&["sim"], arguments].concat())
        .output()
        .expect("the command starts");
    let code = output.status.code().expect("the command ends by itself");
    (code, text(&output.stdout), text(&output.stderr))
}

const SHORT: [&str; 6] = [
    "enzian-dc-ddr",
    "random-write",
    "--accesses",
    "30000",
    "--cores",
    "7",
];

#[test]
fn same_seed_same_bytes() {
    let json = |seed: &str| {
        let arguments = [&["sim"], &SHORT[..], &["--seed", seed, "--json"]].concat();
        without_run(&cohkit(arguments).output().expect("starts"))
    };
    let first = json("1");
    assert_eq!(first.to_string(), json("1").to_string());
    assert_ne!(first["statistics"], json("2")["statistics"]);
    assert_eq!(first["statistics"]["accesses"], 30000.0);
    assert_eq!(sim(&SHORT), sim(&SHORT));
}

#[test]
fn a_shipped_platform_is_the_file_of_its_name() {
    let named = [
        "sim",
        "thunderx1-2s",
        "sequential-read",
        "--region",
        "64KiB",
    ];
    let mut file = named;
    file[1] = "../../platforms/thunderx1-2s.toml";
    let [named, file] = [named, file].map(|arguments| cohkit(arguments).output().expect("starts"));
    assert!(named.status.success());
    assert_eq!(text(&named.stdout), text(&file.stdout));
}

#[test]
fn a_setting_changes_what_it_names() {
    let latency = |set: &[&str]| {
        let base = [
            "sim",
            "enzian-dc-bram",
            "sequential-read",
            "--region",
            "12800B",
        ];
        let one = ["--cores", "1", "--prefetch", "0", "--json"];
        let arguments = [&base[..], &one, set].concat();
        let value = without_run(&cohkit(arguments).output().expect("starts"));
        value["statistics"]["latency_mean_ns"]
            .as_f64()
            .expect("a number")
    };
    // A read crosses the link twice.
    let difference = latency(&["--set", "link.latency=100ns"]) - latency(&[]);
    assert!((difference - 20.0).abs() < 0.001, "{difference}");
}

/// What the command is not told about the cores it takes from the platform.
#[test]
fn a_platform_says_what_its_cores_do() {
    let workload = |workload: &str, more: &[&str]| {
        let base = [
            "sim",
            "enzian-dc-bram",
            workload,
            "--accesses",
            "100",
            "--json",
        ];
        without_run(&cohkit([&base[..], more].concat()).output().expect("starts"))["workload"]
            .take()
    };
    let read = workload("sequential-read", &[]);
    assert_eq!(read["cores"], 48);
    assert_eq!(read["chunked"], true);
    assert_eq!(read["prefetch"], 8);
    let set = [
        "--set",
        "cores.used=5",
        "--set",
        "cores.chunked=0",
        "--set",
        "cores.prefetch=3",
    ];
    let told = [
        "--cores",
        "5",
        "--prefetch",
        "3",
        "--set",
        "cores.chunked=0",
    ];
    let read = workload("sequential-read", &set);
    assert_eq!(
        (&read["cores"], &read["chunked"]),
        (&5.into(), &false.into())
    );
    assert_eq!(read, workload("sequential-read", &told));
    assert_eq!(workload("random-read", &told)["prefetch"], 3);
    assert_eq!(workload("random-write", &[])["prefetch"], 0);
}

#[test]
fn bad_input_is_said_in_one_message() {
    let write = ["enzian-dc-ddr", "random-write"];
    for (arguments, says) in [
        (
            &["enzian", "random-read"][..],
            "error: no platform is named `enzian`\n  help: the shipped platforms are enzian-dc-bram, enzian-dc-ddr, thunderx1-2s; ",
        ),
        (&["missing.toml", "random-read"], "error: missing.toml: no such file\n"),
        (&["enzian-dc-ddr", "read"], "error: invalid value 'read' for '<WORKLOAD>'\n"),
        (&[&write[..], &["--region", "64GiB"]].concat(), "error: a region of 64GiB is larger than the memory of enzian-dc-ddr, 32GiB\n"),
        (&[&write[..], &["--region", "64"]].concat(), "error: the region `64` has no unit: write it like `128KiB` (units: "),
        (&[&write[..], &["--region", "0B"]].concat(), "error: a region of 0B is not some whole lines\n"),
        (&[&write[..], &["--region", "100B"]].concat(), "error: a region of 100B is not some whole lines\n"),
        (&[&write[..], &["--accesses", "0"]].concat(), "error: invalid value '0' for '--accesses <N>'"),
        (&[&write[..], &["--prefetch", "1"]].concat(), "error: to prefetch has no meaning for random-write\n"),
        (&[&write[..], &["--set", "lines"]].concat(), "error: the setting `lines` has no `=`\n"),
        (&[&write[..], &["--set", "bram.ports=1"]].concat(), "error: the setting `bram.ports=1`: there is no `bram.ports` in this platform (there are: "),
        (&[&write[..], &["--set", "link.latency=5"]].concat(), "error: the setting `link.latency=5`: `link.latency` has no unit: "),
        (&[&write[..], &["--set", "cache.ways=0"]].concat(), "error: the setting `cache.ways=0`: cache.ways must be 1 to 16, not 0\n"),
        (&[&write[..], &["--set", "lines=4", "--region", "1KiB"]].concat(), "error: a region of 1KiB is larger than the memory of enzian-dc-ddr, 512B\n"),
        (&[&write[..], &["--protocol", "missing.coh"]].concat(), "error: missing.coh: no such file\n"),
    ] {
        let (code, out, err) = sim(arguments);
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}: {err}");
        assert!(err.starts_with(says), "{arguments:?}: {err}");
    }
}

#[test]
fn errors_of_a_platform_show_their_place() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../platforms/enzian-dc-bram.toml");
    let good = fs::read_to_string(shipped).expect("the platform can be read");
    let wrong = good
        .replace("\"3.1ns\"", "3")
        .replace("remotes = 1", "remotes = 0");
    fs::write(folder.path().join("wrong.toml"), wrong).expect("it can be written");
    let output = cohkit(["sim", "wrong.toml", "random-read"])
        .current_dir(folder.path())
        .output()
        .expect("starts");
    assert_eq!(output.status.code(), Some(2));
    expect![[r#"
        error: remotes must be 1 to 8, not 0
         --> wrong.toml:7:11
          |
        7 | remotes = 0
          |           ^

        error: `bram.latency` has no unit: write it like `70ns` (units: ps, ns, us, ms, s)
          --> wrong.toml:49:21
           |
        49 | latency = { value = 3, origin = "CCKit, figure 5: 2 x 64 KiB BRAM, 38.4 GiB/s, 3.1 ns" }
           |                     ^
    "#]]
    .assert_eq(&text(&output.stderr));
}

#[test]
fn a_run_without_progress_is_given_up_with_its_chart() {
    let run = [
        "enzian-dc-ddr",
        "random-read",
        "--cores",
        "1",
        "--prefetch",
        "0",
    ];
    let (code, out, _) = sim(&[&run[..], &["--set", "patience=100ns"]].concat());
    assert_eq!(code, 3);
    assert!(
        out.contains("\ngiven up: no progress: no access has been performed for "),
        "{out}"
    );
    assert!(out.contains("and waits for DataShared"), "{out}");
    assert!(out.contains("ReadShared ─▶│"), "{out}");
}

/// A cache that hands its line on and keeps it: two may write.
#[test]
fn a_violation_is_told_with_its_chart() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let texts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../protocols/msi.coh");
    let good = fs::read_to_string(texts).expect("the text can be read");
    let row = good
        .lines()
        .find(|line| line.trim_start().starts_with("M  ") && line.contains("| FwdGetM"))
        .expect("the row is there");
    let wrong = good.replace(row, &format!("{}stay", row.trim_end_matches('I')));
    fs::write(folder.path().join("wrong.coh"), wrong).expect("it can be written");
    let platform =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../platforms/enzian-dc-bram.toml");
    let platform = fs::read_to_string(platform).expect("the platform can be read");
    let two = platform.replace("remotes = 1", "remotes = 2");
    fs::write(folder.path().join("two.toml"), two).expect("it can be written");
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
        .expect("starts");
    let value = without_run(&output);
    assert_eq!(output.status.code(), Some(1), "{value}");
    assert!(value["statistics"].is_null());
    assert_eq!(value["failure"]["kind"], "single writer");
    assert!(!value["failure"]["sequence"]["steps"]
        .as_array()
        .expect("a list")
        .is_empty());
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_a_run_and_writes_nothing() {
    use std::process::{Command, Stdio};
    use std::time::Duration;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut child = cohkit(["sim", "enzian-dc-ddr", "random-read"])
        .args(["--accesses", "1000000000000", "--out", "result"])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    std::thread::sleep(Duration::from_millis(500));
    let killed = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(killed.expect("kill runs").success());
    let status = child.wait().expect("the command ends");
    assert_eq!(status.code(), Some(130));
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
}
