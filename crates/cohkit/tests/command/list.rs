//! `cohkit list` and `cohkit platform` from outside.

use crate::{cohkit, text};
use serde_json::Value;

fn json(arguments: &[&str]) -> Value {
    let output = cohkit(arguments).args(["--json"]).output().expect("starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_str(&text(&output.stdout)).expect("JSON")
}

fn files(folder: &str, ending: &str) -> Vec<String> {
    let entries = std::fs::read_dir(format!("../../{folder}")).expect("the folder is there");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let names = names.map(|name| name.to_string_lossy().into_owned());
    let mut found: Vec<String> = names.filter(|name| name.ends_with(ending)).collect();
    found.sort();
    found
}

#[test]
fn everything_that_ships_is_listed_with_a_line_of_explanation() {
    let all = json(&["list"]);
    let names = |key: &str| -> Vec<String> {
        let things = all[key].as_array().expect("a list");
        for thing in things {
            assert!(thing["text"].as_str() > Some(""), "{key}: {thing}");
        }
        let name = |thing: &Value| thing["name"].as_str().expect("a name").to_string();
        things.iter().map(name).collect()
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
    assert_eq!(names("workloads").len(), 11);
    assert!(names("applications").contains(&"rpc".to_string()));
    assert!(names("experiments").contains(&"cckit-fig7".to_string()));
    // As text, each stands in a line of its own.
    let output = cohkit(["list"]).output().expect("starts");
    let shown = text(&output.stdout);
    for key in [
        "protocols",
        "platforms",
        "workloads",
        "applications",
        "experiments",
    ] {
        for name in names(key) {
            let line = |line: &str| line.starts_with(&format!("  {name} "));
            assert!(shown.lines().any(line), "{name} in\n{shown}");
        }
    }
}

/// Every quantity of the text, with its origin word for word.
#[test]
fn a_platform_is_printed_with_its_origins() {
    for file in files("platforms", ".toml") {
        let name = file.trim_end_matches(".toml");
        let written = std::fs::read_to_string(format!("../../platforms/{file}"));
        let written = written.expect("it can be read");
        let of_name = json(&["platform", name]);
        let quantities = of_name["quantities"].as_array().expect("a list");
        let origins = written.matches("origin = \"").count();
        assert_eq!(quantities.len(), origins, "{file}");
        for quantity in quantities {
            let origin = quantity["origin"].as_str().expect("text");
            let origin = format!("origin = \"{origin}\"");
            assert!(written.contains(&origin), "{file}: {quantity}");
        }
        assert_eq!(
            json(&["platform", &format!("../../platforms/{file}")]),
            of_name
        );
    }
    let output = cohkit(["platform", "enzian-dc-ddr"]).output();
    let shown = text(&output.expect("starts").stdout);
    let line = shown.lines().find(|line| line.starts_with("link.latency"));
    let words: Vec<&str> = line.expect("it is shown").split_whitespace().collect();
    assert_eq!(
        words,
        ["link.latency", "90ns", "60ns", "to", "140ns", "fitted"]
    );
}

#[test]
fn an_unknown_name_lists_those_there_are() {
    for (arguments, known) in [
        (&["platform", "enzian"][..], "enzian-dc-ddr"),
        (&["sim", "enzian", "random-read"], "enzian-dc-ddr"),
        (&["sim", "enzian-dc-ddr", "reads"], "sequential-read"),
        (&["play", "enzian-dc-ddr", "calls"], "shared-table"),
        (&["check", "msi"], "protocols/msi.coh"),
        (&["table", "msi"], "protocols/msi.coh"),
    ] {
        let output = cohkit(arguments).output().expect("starts");
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(known), "{arguments:?}: {said}");
    }
}

#[test]
fn negative_numbers_are_refused_in_words_of_the_option() {
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
        let output = cohkit(arguments).output().expect("starts");
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        let number = arguments[arguments.len() - 1];
        let begins = format!("error: invalid value '{number}' for '{option}': ");
        assert!(said.starts_with(&begins), "{said}");
        assert!(!said.contains("invalid digit"), "{said}");
    }
}
