//! Platforms: their files, quantities, defaults and warnings.

use super::sim;
use crate::list::files;
use crate::{cohkit, text, without_run};
use expect_test::expect;
use std::fs;
use std::path::Path;

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
