//! The help of every command: it fits a terminal of 80 columns, and its example runs.

use crate::rtl::{build_folder, SYNTHESIS};
use crate::{cohkit, require, text};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Subcommands of a command, according to its help, without those of Python and `help` itself.
fn commands(words: &[String]) -> Vec<Vec<String>> {
    let help = help(words, "--help");
    let command_lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let command_lines = command_lines.take_while(|line| !line.is_empty());
    let names = command_lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let python = ["reproduce", "sweep", "report", "explore"];
    let names = names.filter(|name| !["", "help"].contains(name) && !python.contains(name));
    names.map(|name| [words, &[name.into()]].concat()).collect()
}

/// Help of a command in 80 columns; `flag` selects the short or the long form.
fn help(words: &[String], flag: &str) -> String {
    let mut command = cohkit(words.iter().map(String::as_str).chain([flag]));
    let output = command
        .env("COLUMNS", "80")
        .output()
        .expect("the command starts");
    assert!(output.status.success(), "{words:?}");
    text(&output.stdout)
}

/// Creates a folder in which the examples find the files of the repository's root, with its own `out`.
fn example_folder() -> tempfile::TempDir {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = root.canonicalize().expect("the path exists");
    let folder = tempfile::tempdir().expect("a temporary folder");
    for name in ["docs", "litmus", "protocols", "platforms"] {
        symlink(root.join(name), folder.path().join(name)).expect("the link can be created");
    }
    std::fs::create_dir(folder.path().join("out")).expect("the folder can be created");
    folder
}

/// Runs a line in a folder, with the command and the tools of `tools/setup_tests` in the path.
fn shell(line: &str, folder: &Path) -> Output {
    let command = PathBuf::from(env!("CARGO_BIN_EXE_cohkit"));
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = [command.parent().expect("a folder").into(), tools];
    let folders = folders.into_iter().chain(std::env::split_paths(&path));
    let path = std::env::join_paths(folders).expect("no folder has a colon");
    let mut shell = Command::new("bash");
    shell
        .args(["-c", line])
        .current_dir(folder)
        .env("PATH", path);
    shell.output().expect("bash runs")
}

/// Prepares the example of a command; returns false if a tool for it is missing.
fn prepare_example(words: &str, folder: &Path) -> bool {
    let preparation = match words {
        "run" => "riscv64-unknown-elf-gcc @docs/riscv/flags docs/riscv/sum.c -o out/sum.elf",
        "trace" => "cohkit sim enzian-dc-ddr random-mixed --region 64KiB --accesses 2000 --trace out/trace.json",
        _ => "true",
    };
    let tool = match words {
        "run" => "riscv-gcc",
        "rtl test" | "rtl measure" => "verilator",
        _ => "",
    };
    if !tool.is_empty() && !require::require(tool) {
        return false;
    }
    let output = shell(preparation, folder);
    assert!(
        output.status.success(),
        "{preparation}: {}",
        text(&output.stderr)
    );
    true
}

/// Commands with a former option and its value, and the option that replaces it.
const FORMER_OPTIONS: [(&str, &str, &str); 28] = [
    ("check", "--simulate 1", "--random-walks"),
    ("litmus", "--gives-up 1", "--max-spontaneous-evictions"),
    ("litmus", "--simulate 1", "--simulation-runs"),
    ("litmus", "--stores every", "--store-variants"),
    ("mutants", "--every 2", "--stride"),
    ("mutants", "--from 1", "--first"),
    ("mutants", "--number 1", "--index"),
    ("play", "--build out", "--build-cache"),
    ("play", "--home rtl", "--home-executor"),
    ("play", "--size homes=8", "--protocol-param"),
    ("play", "--time 1ms", "--stop-after"),
    ("play", "--with calls=1", "--param"),
    ("rtl measure", "--build out", "--build-cache"),
    ("rtl measure", "--engine", "--invalidation-engine"),
    ("rtl measure", "--platform", "--print-platform"),
    ("rtl synth", "--build out", "--build-folder"),
    ("rtl test", "--build out", "--build-cache"),
    ("rtl test", "--spoil all", "--mutate-rows"),
    ("rtl test", "--unused", "--uncovered-rows"),
    ("run", "--cp sum=sum.elf", "--channel-program"),
    ("run", "--evict 9", "--random-eviction-interval"),
    ("run", "--files out", "--guest-folder"),
    ("run", "--most 9", "--max-instructions"),
    ("run", "--unverified", "--skip-verification"),
    ("sim", "--build out", "--build-cache"),
    ("sim", "--by device=idle", "--kind-workload"),
    ("sim", "--home rtl", "--home-executor"),
    ("trace", "--size homes=8", "--protocol-param"),
];

#[test]
fn former_option_names_are_hidden_aliases() {
    for (command, former, current) in FORMER_OPTIONS {
        let words = |text: &str| -> Vec<String> { text.split(' ').map(String::from).collect() };
        let (command, former) = (words(command), words(former));
        let text = help(&command, "--help");
        let shows = |option: &str| {
            let is_separator = |c: char| !(c == '-' || c.is_alphanumeric());
            text.split(is_separator).any(|word| word == option)
        };
        assert!(shows(current), "{command:?} {current}");
        assert!(!shows(&former[0]), "{command:?} {former:?}");
        // An unknown option before `--help` would be an error.
        assert_eq!(help(&[command, former].concat(), "--help"), text);
    }
}

#[test]
fn every_help_fits_a_terminal_and_shows_an_example_that_runs() {
    let folder = example_folder();
    let mut command_words = commands(&[]);
    let subcommands: Vec<Vec<String>> = command_words
        .iter()
        .flat_map(|words| commands(words))
        .collect();
    assert!(!subcommands.is_empty(), "`rtl` has commands");
    command_words.extend(subcommands);
    for words in std::iter::once(Vec::new()).chain(command_words) {
        for flag in ["-h", "--help"] {
            let help = help(&words, flag);
            let long_lines: Vec<&str> = help.lines().filter(|l| l.chars().count() > 80).collect();
            assert!(long_lines.is_empty(), "{words:?} {flag}: {long_lines:#?}");
        }
        let help = help(&words, "--help");
        let mut lines = help.lines().skip_while(|line| *line != "Example:").skip(1);
        let example = lines.next().and_then(|line| line.strip_prefix("  $ "));
        let example = example.unwrap_or_else(|| panic!("{words:?} has no example"));
        let words = words.join(" ");
        assert!(example.starts_with(&format!("cohkit {words}")), "{example}");
        if words == "rtl synth" {
            assert_eq!(example, SYNTHESIS);
            continue;
        }
        if !prepare_example(&words, folder.path()) {
            continue;
        }
        // Builds of the hardware are shared by all tests.
        let build_option = match words.as_str() {
            "rtl test" | "rtl measure" => format!(" --build-cache '{}'", build_folder().display()),
            _ => String::new(),
        };
        let output = shell(&format!("{example}{build_option}"), folder.path());
        assert!(
            output.status.success(),
            "{example}: {}",
            text(&output.stderr)
        );
        // The language server only answers requests, and its input is empty here.
        let prints = words != "language-server";
        assert_eq!(!output.stdout.is_empty(), prints, "{example}");
    }
}
