//! Tests of `cohkit list` and `cohkit platform`.

use crate::{cohkit, text, tiny};
use expect_test::expect_file;
use serde_json::Value;
use std::fs::File;

/// JSON output of a command, which must succeed.
fn json(arguments: &[&str]) -> Value {
    let output = cohkit(arguments)
        .args(["--json"])
        .output()
        .expect("the command starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_str(&text(&output.stdout)).expect("the text is JSON")
}

/// Names of the files of a folder that end so, in order.
pub(crate) fn files(folder: &str, ending: &str) -> Vec<String> {
    let entries = std::fs::read_dir(format!("../../{folder}")).expect("the folder exists");
    let names = entries.map(|entry| entry.expect("the folder entry can be read").file_name());
    let names = names.map(|name| name.to_string_lossy().into_owned());
    let mut matching: Vec<String> = names.filter(|name| name.ends_with(ending)).collect();
    matching.sort();
    matching
}

#[test]
fn list_can_be_limited_to_one_kind() {
    let list_output = |name: &str| {
        let output = cohkit(["list", name]).output().expect("the command starts");
        (text(&output.stdout), text(&output.stderr))
    };
    let (output, _) = list_output("workloads");
    assert!(output.starts_with("workloads (cohkit sim PLATFORM NAME)\n  sequential-read "));
    assert_eq!(output.matches("(cohkit ").count(), 1, "{output}");
    let (output, error) = list_output("platform");
    assert!(
        output.is_empty() && error.contains("did you mean `platforms`?"),
        "{error}"
    );
}

#[test]
fn list_describes_every_shipped_item() {
    let report = json(&["list"]);
    let names = |key: &str| -> Vec<String> {
        let items = report[key].as_array().expect("a JSON list");
        for item in items {
            assert!(item["text"].as_str() > Some(""), "{key}: {item}");
        }
        let name = |item: &Value| item["name"].as_str().expect("a JSON string").to_string();
        items.iter().map(name).collect()
    };
    let protocols = files("protocols", ".coh").into_iter();
    let protocols: Vec<String> = protocols.map(|file| format!("protocols/{file}")).collect();
    assert_eq!(names("protocols"), protocols);
    let platforms = files("platforms", ".toml").into_iter();
    let mut platforms: Vec<String> = platforms
        .map(|file| file.trim_end_matches(".toml").to_string())
        .collect();
    platforms.sort();
    assert_eq!(names("platforms"), platforms);
    assert!(names("workloads").contains(&"trace:FILE".to_string()));
    assert!(names("applications").contains(&"rpc".to_string()));
    assert!(names("experiments").contains(&"cckit-fig7".to_string()));
    // The text has one line for each item.
    let output = cohkit(["list"]).output().expect("the command starts");
    let stdout = text(&output.stdout);
    for key in [
        "protocols",
        "platforms",
        "workloads",
        "applications",
        "experiments",
    ] {
        for name in names(key) {
            let line = |line: &str| line.starts_with(&format!("  {name} "));
            assert!(stdout.lines().any(line), "{name} in\n{stdout}");
        }
    }
}

/// `UPDATE_EXPECT=1 cargo test --test command list` writes the file.
#[test]
fn python_types_have_the_listed_names() {
    let report = json(&["list"]);
    let alias = |name: &str, key: &str, description: &str| {
        let items = report[key].as_array().expect("a list").iter();
        let names = items.filter_map(|item| item["name"].as_str());
        // The Python package has a type of its own for traces.
        let names = names.filter(|name| !name.contains(':'));
        let names: String = names.map(|name| format!("    \"{name}\",\n")).collect();
        format!("\n{name} = Literal[\n{names}]\n\"\"\"{description}\"\"\"\n")
    };
    let types = [
        "\"\"\"Names of shipped items as types. A test of `cohkit list` writes this file.\"\"\"\n",
        "\nfrom typing import Literal\n",
        &alias("Workload", "workloads", "Workloads of `simulate`."),
        &alias("Application", "applications", "Applications of `play`."),
    ];
    expect_file!["../../../../python/cohkit/shipped_types.py"].assert_eq(&types.concat());
}

#[test]
fn shipped_files_are_printed_and_accepted_by_name() {
    for (folder, ending) in [("protocols", ".coh"), ("platforms", ".toml")] {
        for file in files(folder, ending) {
            let contents =
                std::fs::read(format!("../../{folder}/{file}")).expect("the file can be read");
            let output = cohkit(["list", file.trim_end_matches(ending)]).output();
            assert_eq!(
                output.expect("the command starts").stdout,
                contents,
                "{file}"
            );
        }
    }
    // Shipped protocols work without a checkout.
    let folder = tempfile::tempdir().expect("a temporary folder");
    let table = |name: &str| {
        let mut command = cohkit(["table", name]);
        let output = command
            .current_dir(&folder)
            .output()
            .expect("the command starts");
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let msi = table("msi");
    assert!(msi.starts_with("msi: "), "{msi}");
    assert_eq!(table("protocols/msi.coh"), msi);
    // A file takes precedence over the shipped protocol of the same name.
    for name in ["msi", "protocols/msi.coh"] {
        let file = folder.path().join(name);
        std::fs::create_dir_all(file.parent().expect("a folder"))
            .expect("the folder can be created");
        std::fs::copy(tiny(), file).expect("the file can be copied");
        let output = table(name);
        assert!(output.starts_with("tiny: "), "{output}");
    }
}

#[test]
fn dash_reads_standard_input() {
    let input = || File::open(tiny()).expect("the file can be opened");
    for arguments in [
        &["table", "-"][..],
        &["check", "-"],
        &[
            "sim",
            "enzian-dc-bram",
            "random-read",
            "--accesses",
            "9",
            "--protocol",
            "-",
        ],
    ] {
        let output = cohkit(arguments)
            .stdin(input())
            .output()
            .expect("the command starts");
        assert!(output.status.success(), "{}", text(&output.stderr));
        let printed = text(&output.stdout);
        assert!(printed.starts_with("tiny"), "{printed}");
    }
    let test = File::open("../../litmus/SB.litmus").expect("the file can be opened");
    let output = cohkit(["litmus", "-"]).stdin(test).output();
    let printed = text(&output.expect("the command starts").stdout);
    assert!(printed.starts_with("SB "), "{printed}");
    let output = cohkit(["check", "-", "--watch"]).stdin(input()).output();
    let printed = text(&output.expect("the command starts").stderr);
    assert!(printed.contains("cannot be watched"), "{printed}");
}

#[test]
fn invalid_numbers_are_rejected_with_their_range() {
    for (arguments, expected) in [
        (
            &["check", "msi", "--remotes", "9"][..],
            "error: invalid value '9' for '--remotes <N>': it must be 1 to 8\n",
        ),
        (
            &["check", "msi", "--max-memory", "x"],
            "error: invalid value 'x' for '--max-memory",
        ),
        (
            &["sim", "enzian-dc-ddr", "random-read", "--accesses", "0"],
            "error: invalid value '0' for '--accesses <N>': it must be at least 1\n",
        ),
        (
            &[
                "sim",
                "enzian-dc-ddr",
                "random-read",
                "--seed",
                "99999999999999999999",
            ],
            "error: invalid value '99999999999999999999' for '--seed <N>': it is too large\n",
        ),
        (
            &["link", "eci", "--bit-errors", "few"],
            "error: invalid value 'few' for '--bit-errors <RATE>': a number is needed\n",
        ),
    ] {
        let output = cohkit(arguments).output().expect("the command starts");
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.starts_with(expected), "{stderr}");
        assert!(
            !stderr.contains("..") && !stderr.contains("not in"),
            "{stderr}"
        );
    }
}

/// Every quantity of the platform file is printed with its origin, word for word.
#[test]
fn platform_is_printed_with_its_origins() {
    for file in files("platforms", ".toml") {
        let name = file.trim_end_matches(".toml");
        let contents = std::fs::read_to_string(format!("../../platforms/{file}"));
        let contents = contents.expect("the file can be read");
        let by_name = json(&["platform", name]);
        let quantities = by_name["quantities"].as_array().expect("a JSON list");
        let origins = contents.matches("origin = \"").count();
        // The parameters of a DRAM's standard are not in the file.
        let is_stated = |quantity: &&Value| {
            let origin = quantity["origin"].as_str();
            origin.is_some_and(|origin| !origin.starts_with("JEDEC "))
        };
        let stated: Vec<_> = quantities.iter().filter(is_stated).collect();
        assert_eq!(stated.len(), origins, "{file}");
        for quantity in stated {
            let origin = quantity["origin"].as_str().expect("a JSON string");
            let origin = format!("origin = \"{origin}\"");
            assert!(contents.contains(&origin), "{file}: {quantity}");
        }
        let mut by_file = json(&["platform", &format!("../../platforms/{file}")]);
        by_file["run"]["command"] = by_name["run"]["command"].clone();
        assert_eq!(by_file, by_name);
    }
    let output = cohkit(["platform", "enzian-dc-ddr"]).output();
    let stdout = text(&output.expect("the command starts").stdout);
    let line = stdout.lines().find(|line| line.starts_with("link.latency"));
    let words: Vec<&str> = line
        .expect("the quantity is shown")
        .split_whitespace()
        .collect();
    assert_eq!(
        words[..8],
        [
            "link.latency",
            "100ns",
            "60ns",
            "to",
            "140ns",
            "fitted",
            "to",
            "CCKit,"
        ]
    );
}

#[test]
fn unknown_name_is_rejected_with_the_known_ones() {
    for (arguments, expected) in [
        (&["platform", "enzian"][..], "enzian-dc-ddr"),
        (&["sim", "enzian", "random-read"], "enzian-dc-ddr"),
        (&["sim", "enzian-dc-ddr", "reads"], "sequential-read"),
        (&["play", "enzian-dc-ddr", "calls"], "shared-table"),
        (
            &["sim", "enzian-dc-drd", "random-read"],
            "did you mean `enzian-dc-ddr`? ",
        ),
        (
            &["sim", "enzian-dc-ddr", "random-reed"],
            "a similar value exists: 'random-read'",
        ),
        (
            &["sim", "enzian-dc-ddr", "Cargo.toml"],
            "a similar value exists: 'trace:Cargo.toml'",
        ),
        (&["play", "enzian-dc-ddr", "loks"], "did you mean `locks`? "),
        (
            &["check", "illinois"],
            "mesi-l1, mesi, moesi, msi-policy, msi, ",
        ),
        (&["table", "mzi"], "did you mean `msi`? "),
        (
            &["check", "../../protocols/mzi.coh"],
            "did you mean `msi.coh`? ",
        ),
        (
            &["check", "nowhere/msi.coh"],
            "there is no folder `nowhere`; ",
        ),
        (
            &["check", "mesi", "--system", "three_cashes"],
            "did you mean `three_caches`? ",
        ),
        (&["list", "mzi"], "did you mean `msi`? "),
        (
            &["list", "rpc"],
            "`rpc` has no file to print; protocols and platforms have",
        ),
    ] {
        let output = cohkit(arguments).output().expect("the command starts");
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(expected), "{arguments:?}: {stderr}");
    }
}

#[test]
fn negative_numbers_are_rejected_with_the_message_of_the_option() {
    for (arguments, option) in [
        (
            &["check", "tests/command/tiny.coh", "--remotes", "-1"][..],
            "--remotes <N>",
        ),
        (
            &["sim", "enzian-dc-bram", "random-read", "--seed", "-5"],
            "--seed <N>",
        ),
        (
            &["sim", "enzian-dc-bram", "random-read", "--accesses", "-5"],
            "--accesses <N>",
        ),
        (
            &["rtl", "test", "../../protocols/eci.coh", "--messages", "-5"],
            "--messages <N>",
        ),
        (
            &["rtl", "synth", "../../protocols/eci.coh", "--units", "-5"],
            "--units <N>",
        ),
    ] {
        let output = cohkit(arguments).output().expect("the command starts");
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        let number = arguments[arguments.len() - 1];
        let expected = format!("error: invalid value '{number}' for '{option}': ");
        assert!(stderr.starts_with(&expected), "{stderr}");
        assert!(!stderr.contains("invalid digit"), "{stderr}");
    }
}
