//! Tests of `cohkit run --channel-program`: programs on both sides of a machine with near-memory cores.

use crate::require::{missing, require};
use crate::{cohkit, text, transcript};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Compiles a program into a folder.
fn compile(folder: &Path, flags: &str, source: &str, definitions: &[&str]) -> PathBuf {
    let name = Path::new(source).file_stem().expect("a name");
    let program = folder.join(name).with_extension("elf");
    let output = Command::new("riscv64-unknown-elf-gcc")
        .current_dir(root())
        .arg(format!("@nearmemory/{flags}.flags"))
        .args(definitions)
        .arg(source)
        .arg("-o")
        .arg(&program)
        .output()
        .expect("the command starts");
    let stderr = text(&output.stderr);
    assert!(
        output.status.success(),
        "{stderr}\n{}",
        missing("riscv-gcc")
    );
    program
}

/// Compiles the host program `NAME-host.c` and the channel program `NAME.c` of each name into a new folder, with the
/// definitions of each side. Returns `None` if `COHKIT_WITHOUT` names the compiler.
#[track_caller]
fn compile_programs(names: &[&str], definitions: [&[&str]; 2]) -> Option<TempDir> {
    if !require("riscv-gcc") {
        return None;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let programs = "crates/nearmemory/tests/programs";
    let [host_definitions, channel_definitions] = definitions;
    for name in names {
        let (host, channel) = (
            format!("{programs}/{name}-host.c"),
            format!("{programs}/{name}.c"),
        );
        compile(folder.path(), "host", &host, host_definitions);
        compile(folder.path(), "channel", &channel, channel_definitions);
    }
    Some(folder)
}

/// Runs `cohkit run` with these arguments in a folder.
fn run(folder: &Path, words: &[&str]) -> Output {
    let mut command = cohkit(["run"]);
    command.args(words).current_dir(folder);
    command.output().expect("the command starts")
}

#[test]
fn channel_violation_names_its_line_and_the_host_continues() {
    let Some(folder) = compile_programs(&["stray"], [&[], &[]]) else {
        return;
    };
    let folder = folder.path();
    let run = |words: &[&str]| transcript(&run(folder, words));
    let source = include_str!("../../../nearmemory/tests/programs/stray.c");
    let line = source.lines().position(|line| line.contains("case 2:"));
    let line = line.expect("the text is found") + 1;
    let output = run(&[
        "--channel-program",
        "stray=stray.elf",
        "stray-host.elf",
        "2",
    ]);
    assert!(
        output.starts_with("exit code 0\nstate 5 status -1 cause 7 value 0x4000000000 word 42 far 0\nagain 0 state 3 status 9\n"),
        "{output}"
    );
    for part in [
        "core 0 stops the channel program `stray`: store/AMO access fault at 0x4000000000 (far memory; a core accesses it only through its copy engine), at 0x",
        "sd s0, 0(a0)\n  in channel + ",
        &format!(", stray.c:{line}\n"),
    ] {
        assert!(output.contains(part), "{part} in {output}");
    }
    // The message names the reason that applies, not every possible one.
    for (case, address, reason) in [
        ("3", "0x200038", "a copy of 1 line from 0x4000001000 on, which is partly outside the far memory that the host granted it"),
        ("4", "0x200038", "a copy of 33 lines from 0x4000000000 on, which is partly outside the far memory that the host granted it"),
        ("5", "0x10", "of its instructions, which are read-only"),
        ("7", "0x200038", "a copy with far memory at 0x4000000008, which is not aligned to lines of 128 bytes"),
        ("9", "0x200040", "a copy of 2 lines from line 511 of the scratchpad on, which has 512"),
        ("10", "0x200040", "a copy of zero lines"),
        ("11", "0x1", "of its constants, which are read-only"),
    ] {
        let output = run(&["--channel-program", "stray=stray.elf", "stray-host.elf", case]);
        for part in [&format!(" store/AMO access fault at {address}"), &format!(" ({reason}), at 0x")] {
            assert!(output.contains(part), "{part} in {output}");
        }
    }
    // Without `--channel-program` there are neither near-memory cores nor far memory.
    let output = run(&["stray-host.elf"]);
    for part in [
        "exit code 1\n",
        "error: stray-host.elf: load access fault at 0x7100000858, at 0x",
        "\n  help: `--channel-program NAME=PROGRAM` runs it on a machine with far memory and cores beside it, as docs/nearmemory.md shows\n",
    ] {
        assert!(output.contains(part), "{part} in {output}");
    }
    // Counters are the same in every run.
    let with_counters = [
        "--counters",
        "--timed",
        "--channel-program",
        "stray=stray.elf",
        "stray-host.elf",
        "8",
    ];
    let output = run(&with_counters);
    assert!(output.contains("\nmcc 0: lines fetched: 1\n"), "{output}");
    assert_eq!(output, run(&with_counters));
    // Functional simulation does not change the behaviour of programs.
    let functional = run(&[
        "--fast",
        "--channel-program",
        "stray=stray.elf",
        "stray-host.elf",
        "8",
    ]);
    let expected =
        "exit code 0\nstate 3 status 9 cause 0 value 0 word 42 far 42\nagain 0 state 3 status 9\n";
    assert!(
        functional == expected && output.starts_with(expected),
        "{functional} {output}"
    );
    let rejected = run(&[
        "--fast",
        "--races",
        "--channel-program",
        "stray=stray.elf",
        "stray-host.elf",
    ]);
    assert!(
        rejected.contains("'--fast' cannot be used with '--races'"),
        "{rejected}"
    );
    // No channel program has this name.
    let output = run(&[
        "--channel-program",
        "other=stray.elf",
        "stray-host.elf",
        "2",
    ]);
    assert_eq!(
        output,
        "exit code 1\nerror -1\n--- stderr\nthe program ends with code 1\nno channel program is named `stray`; there are other\n  help: `--channel-program stray=PROGRAM` names one\n"
    );
    compile(folder, "host", "docs/riscv/accumulator/host.c", &[]);
    let output = run(&["host.elf"]);
    assert_eq!(
        output,
        "exit code 1\nthe program cannot be started: error -1\n--- stderr\nthe program ends with code 1\nno channel program is named `sum`\n  help: `--channel-program sum=PROGRAM` names one\n"
    );
    // A channel program is rejected as a host program.
    let output = run(&["--channel-program", "stray=stray.elf", "stray.elf"]);
    assert!(
        output.contains("error: stray.elf: this is a channel program, which a host starts\n  help: `--channel-program NAME=PROGRAM`"),
        "{output}"
    );
}

#[test]
fn races_name_both_positions_and_fail_the_run() {
    let Some(folder) = compile_programs(&["forgets"], [&["-DFORGETS=7"]; 2]) else {
        return;
    };
    let folder = folder.path();
    let words = [
        "--channel-program",
        "forgets=forgets.elf",
        "forgets-host.elf",
    ];
    let output = transcript(&run(folder, &[&["--races"][..], &words].concat()));
    let source = include_str!("../../../nearmemory/tests/programs/forgets-host.c");
    let load_line = source.lines().position(|line| line.ends_with("// loads"));
    let load_line = load_line.expect("the text is found") + 1;
    let channel = include_str!("../../../nearmemory/tests/programs/forgets.c");
    let store_line = channel.lines().position(|line| line.contains("nm_store("));
    let store_line = store_line.expect("the text is found") + 1;
    assert!(output.starts_with("exit code 1\nsum "), "{output}");
    for part in [
        "race: the line at 0x4000000000 is stale when it is loaded\nthe host's core 0 loads it, at 0x",
        &format!(", forgets-host.c:{load_line}\ncore 0 of `forgets` wrote it, at 0x"),
        ", scratchpad.h:",
        // The copy is made by a library function that is inlined into the program.
        &format!(", called at forgets.c:{store_line}\n"),
        "\n1 race\n",
    ] {
        assert!(output.contains(part), "{part} in {output}");
    }
    // Races are reported only with `--races`.
    let output = transcript(&run(folder, &words));
    assert!(output.starts_with("exit code 0\nsum "), "{output}");
    assert!(!output.contains("race"), "{output}");
}

#[test]
fn hostile_programs_and_wrong_options_are_refused() {
    let Some(folder) = compile_programs(&["stray"], [&[], &["-DELSEWHERE"]]) else {
        return;
    };
    let folder = folder.path();
    let output = |words: &[&str]| {
        let output = transcript(&run(folder, &[words, &["stray-host.elf", "0"]].concat()));
        output.replacen("--- stderr\n", "", 1)
    };
    // Without verification in advance, the core rejects the program: it is not granted this far memory.
    let rejection = output(&["--channel-program", "stray=stray.elf"]);
    assert!(
        rejection.contains("core 0 refuses the channel program `stray`: 0x4000100000: the manifest requests far memory here"),
        "{rejection}"
    );
    // A host program is no channel program: verification rejects it, and without verification the machine.
    let host = ["--channel-program", "stray=stray-host.elf"];
    let rejection = output(&host);
    assert!(
        rejection.starts_with("exit code 2\nerror: stray-host.elf: "),
        "{rejection}"
    );
    let rejection = output(&[&host[..], &["--skip-verification"]].concat());
    assert!(
        rejection.starts_with("exit code 2\nerror: the channel program `stray`: "),
        "{rejection}"
    );
    let platform_file = root().join("platforms/enzian-dc-ddr.toml");
    let platform_file = platform_file.display().to_string();
    for (words, expected) in [
        (&["--channel-program", "stray"][..], "error: `--channel-program stray` has no `=`"),
        (
            &["--set", "host.cores"],
            "error: the setting `host.cores` has no `=`",
        ),
        (
            &["--channel-program", "a=stray.elf", "--channel-program", "a=stray.elf"],
            "there are two channel programs `a`",
        ),
        (
            &["--channel-program", "a=nowhere.elf"],
            "error: nowhere.elf: no such file",
        ),
        (
            &["--set", "link.latency=9"],
            "error: the setting `link.latency=9`: `link.latency` has no unit",
        ),
        (
            &["--set", "nothing=9"],
            "error: the setting `nothing=9`: no quantity is named `nothing`; there are host.cores, ",
        ),
        (
            &["--set", "host.llc=3MiB"],
            "`host.llc` must be a power of two, not 3MiB",
        ),
        (
            &["--set", "link.latency=9ns", "--set", "link.latency=8ns"],
            "`link.latency` is set to 9ns already",
        ),
        (
            &["--channel-program", "=stray.elf"],
            "error: `--channel-program =stray.elf` has no name",
        ),
        (
            &["--channel-program", "a=stray-host.elf"],
            "  help: docs/nearmemory.md shows how to compile a channel program",
        ),
        (
            &["--platform", &platform_file],
            "enzian-dc-ddr.toml: this is a machine without cores beside far memory\n  help: use `cohkit sim`",
        ),
        (
            &["--platform", "nowhere.toml"],
            "error: nowhere.toml: no such file",
        ),
    ] {
        let output = output(words);
        assert!(
            output.starts_with("exit code 2\n") && output.contains(expected),
            "{expected} in {output}"
        );
    }
}

/// Reports the position of a program that never ends, and the reason why a program is stopped that uses what it did not
/// request.
#[test]
fn positions_of_endless_programs_are_reported() {
    let Some(folder) = compile_programs(&["astray"], [&[], &[]]) else {
        return;
    };
    let folder = folder.path();
    let run = |options: &[&str], case: &str| {
        let words = [
            "--channel-program",
            "astray=astray.elf",
            "astray-host.elf",
            case,
        ];
        transcript(&run(folder, &[options, &words].concat()))
    };
    let line_of = |source: &str, pattern: &str| {
        let position = source.lines().position(|line| line.contains(pattern));
        position.expect("the text is found") + 1
    };
    let host = include_str!("../../../nearmemory/tests/programs/astray-host.c");
    let channel = include_str!("../../../nearmemory/tests/programs/astray.c");
    let wait_line = line_of(host, "nm_wait");
    let loop_line = line_of(channel, "for (;;)");
    for options in [&[][..], &["--fast"]] {
        let output = run(&[options, &["--max-instructions", "100000"]].concat(), "0");
        assert!(output.starts_with("exit code 3\n"), "{output}");
        for part in [
            "  help: `--max-instructions N` gives them more\nthe host's core 0 is at 0x",
            &format!(", called at astray-host.c:{wait_line}\n"),
            "\ncore 0 of `astray` is at 0x",
            &format!(", astray.c:{loop_line}\n"),
        ] {
            assert!(output.contains(part), "{part} in {output}");
        }
    }
    for (case, expected) in [
        (
            "1",
            "(of the register pipe that `NM_REGISTER_PIPE(3)` asks for)",
        ),
        ("2", "(of the FIFO that `NM_FIFO(1)` asks for)"),
        ("3", "(line 512 of the scratchpad, which has 512)"),
        (
            "4",
            "(below its stack; its `NM_CHANNEL` requests 512 bytes)",
        ),
        ("7", "\n  in data + 0\n  jumped to from 0x"),
        (
            "7",
            &format!(", astray.c:{}\n", line_of(channel, "case 7:")),
        ),
        ("8", " at 0x4000000000\n  jumped to from 0x"),
        (
            "8",
            &format!(", astray.c:{}\n", line_of(channel, "case 8:")),
        ),
        (
            "9",
            "(an access to two lines of the scratchpad, or an atomic access)",
        ),
        (
            "10",
            "(a lock of a line outside the scratchpad, which has 512)",
        ),
    ] {
        let output = run(&[], case);
        assert!(output.starts_with("exit code 0\nstate 5\n"), "{output}");
        assert!(output.contains(expected), "{expected} in {output}");
    }
    // A core cannot wait for its own FIFO.
    for (case, expected) in [
        (
            "13",
            "store/AMO access fault at 0x220040 (the FIFO from core 2 to itself is full, and only this core can remove a word from it), at 0x",
        ),
        (
            "14",
            "load access fault at 0x220040 (the FIFO from core 2 to itself is empty, and only this core can add a word to it), at 0x",
        ),
    ] {
        let words = ["--channel-program", "astray=astray.elf", "astray-host.elf", case, "2"];
        let output = transcript(&self::run(folder, &words));
        assert!(output.starts_with("exit code 0\nstate 5\n"), "{output}");
        assert!(output.contains(expected), "{expected} in {output}");
    }
    let words = [
        "--channel-program",
        "astray=astray.elf",
        "astray-host.elf",
        "15",
        "2",
    ];
    assert_eq!(
        transcript(&self::run(folder, &words)),
        "exit code 0\nstate 3\n"
    );
    let words = [
        "--channel-program",
        "astray=astray.elf",
        "astray-host.elf",
        "0",
        "4",
    ];
    let output = transcript(&self::run(folder, &words));
    let expected = "load access fault at 0x7100004800 (of core 4 beside far memory, and there are 4, from 0 on), at 0x";
    assert!(output.starts_with("exit code 1\n"), "{output}");
    assert!(output.contains(expected), "{output}");
    for (case, expected) in [
        (
            "11",
            "store/AMO access fault at 0x4000000000 (atomic access; far memory is not coherent and does not support it), at 0x",
        ),
        (
            "12",
            "store/AMO access fault at 0x7001010000 (line 512 of the scratchpad of core 1, which has 512), at 0x",
        ),
    ] {
        let words = ["--channel-program", "astray=astray.elf", "astray-host.elf", case];
        let output = transcript(&self::run(folder, &words));
        assert!(output.starts_with("exit code 1\n") && output.contains(expected), "{output}");
    }
}

/// A host that sends to a program that has ended, and two cores that store to one line.
#[test]
fn deadlock_and_two_core_race_name_both_positions() {
    let Some(folder) = compile_programs(&["gone", "coreww"], [&[], &[]]) else {
        return;
    };
    let folder = folder.path();
    let output = transcript(&run(
        folder,
        &["--channel-program", "gone=gone.elf", "gone-host.elf"],
    ));
    assert!(output.starts_with("exit code 1\n"), "{output}");
    for part in [
        "error: gone-host.elf: livelock: no running program can write the polled addresses\nthe host's core 0 polls line 0 of the scratchpad of core 0, at 0x",
        ", called at gone-host.c:",
        "\ncore 0 of `gone` has ended with 0, at 0x",
        "\n  in _start",
    ] {
        assert!(output.contains(part), "{part} in {output}");
    }
    let output = transcript(&run(
        folder,
        &[
            "--races",
            "--channel-program",
            "coreww=coreww.elf",
            "coreww-host.elf",
        ],
    ));
    assert!(output.starts_with("exit code 1\n"), "{output}");
    for part in [
        "race: the line at 0x4000000000 is stored by two programs without synchronisation\ncore 1 of `coreww` stores it, at 0x",
        "\ncore 0 of `coreww` stored it, at 0x",
        ", called at coreww.c:",
        "\n1 race\n",
    ] {
        assert!(output.contains(part), "{part} in {output}");
    }
}
