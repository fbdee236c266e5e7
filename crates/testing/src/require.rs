//! Tools that tests need besides Rust. [`require`] fails a test whose tool is missing, so that no test passes without
//! testing anything. `COHKIT_WITHOUT=verilator,rumur` skips the tests that need these tools; `.ci/run` ignores it.

use std::ffi::OsStr;
use std::path::Path;

use cohkit_rtl::tools::{Program, Tool, TOOLS};

/// Mount namespaces. Only tests need this tool and the next two.
const MOUNTS: Tool = Tool {
    name: "mounts",
    description: "a machine that gives its users mount namespaces",
    programs: &[
        Program {
            names: &["unshare"],
            arguments: &["--version"],
            oldest: (0, 0),
        },
        Program {
            names: &["mount"],
            arguments: &["--version"],
            oldest: (0, 0),
        },
    ],
    modules: &[],
    installed_by: "the Debian packages `util-linux` and `mount`",
    enables: "",
};

/// CMake and a C++ compiler, with which a test builds DRAMsim3.
const CMAKE: Tool = Tool {
    name: "cmake",
    description: "CMake and a C++ compiler",
    programs: &[
        Program {
            names: &["cmake"],
            arguments: &["--version"],
            oldest: (3, 0),
        },
        Program {
            names: &["c++", "g++", "clang++"],
            arguments: &["--version"],
            oldest: (0, 0),
        },
    ],
    modules: &[],
    installed_by: "the Debian packages `cmake` and `g++`",
    enables: "",
};

/// Emulator of the guest that loads the kernel module. Only tests in Python need it, which also look for its kernel.
const LINUX: Tool = Tool {
    name: "linux",
    description: "QEMU for x86-64",
    programs: &[Program {
        names: &["qemu-system-x86_64"],
        arguments: &["--version"],
        oldest: (0, 0),
    }],
    modules: &[],
    installed_by: "the Debian package `qemu-system-x86`",
    enables: "",
};

/// All tools that tests may need.
fn all_tools() -> impl Iterator<Item = &'static Tool> {
    TOOLS.iter().chain([&MOUNTS, &CMAKE, &LINUX])
}

/// Returns the tool of this name; panics for an unknown one.
fn find_tool(name: &str) -> &'static Tool {
    let mut tools = all_tools();
    let found = tools.find(|tool| tool.name == name);
    found.unwrap_or_else(|| panic!("tests know no tool `{name}`"))
}

/// Returns true if the tool of a test is installed, and false if `COHKIT_WITHOUT` names it; the test then ends at once.
///
/// # Panics
/// If the tool is missing and `COHKIT_WITHOUT` does not name it.
#[track_caller]
pub fn require(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let without = std::env::var("COHKIT_WITHOUT").unwrap_or_default();
    // `tools/setup_tests` installs some of them into `.venv`.
    let venv = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin");
    let folders = std::iter::once(venv).chain(std::env::split_paths(&path));
    let path = std::env::join_paths(folders).expect("no folder's name has a colon");
    match is_available(name, &path, &without) {
        Ok(available) => available,
        Err(message) => panic!("{message}"),
    }
}

/// Returns the message about a missing tool.
pub fn missing(name: &str) -> String {
    let tool = find_tool(name);
    format!(
        "this test needs {}: {}; `tools/setup_tests` installs what it can\n  help: COHKIT_WITHOUT={name} does without it, and tests less",
        tool.description, tool.installed_by
    )
}

/// Returns true if the programs of a tool are in these folders, and false if `without` names it.
///
/// # Errors
/// Describes the missing tool, or an unknown name in `without`.
pub fn is_available(name: &str, path: &OsStr, without: &str) -> Result<bool, String> {
    let names = || all_tools().map(|tool| tool.name);
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
    let programs = find_tool(name).programs;
    let is_installed =
        |name: &&&str| std::env::split_paths(path).any(|folder| folder.join(name).is_file());
    match programs
        .iter()
        .all(|program| program.names.iter().any(|name| is_installed(&name)))
    {
        true => Ok(true),
        false => Err(missing(name)),
    }
}
