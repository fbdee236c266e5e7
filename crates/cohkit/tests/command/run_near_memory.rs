//! Tests of `cohkit run --channel-program`: programs on both sides of a machine with near-memory cores.

use crate::require::{missing, require};
use crate::{cohkit, text, transcript};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// Returns the root of the repository.
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

/// Asserts that the output contains each of these parts.
#[track_caller]
fn assert_contains(output: &str, parts: &[&str]) {
    for part in parts {
        assert!(output.contains(part), "{part} in {output}");
    }
}

/// Returns the number of the first line that contains the pattern, from 1.
fn line_of(source: &str, pattern: &str) -> usize {
    let position = source.lines().position(|line| line.contains(pattern));
    position.expect("the text is found") + 1
}

/// Accesses of the channel program `stray`, by their numbers in `stray.c`.
mod stray_access {
    pub const NONE: &str = "0";
    pub const STORE_TO_FAR_MEMORY: &str = "2";
    pub const FETCH_BEYOND_GRANT: &str = "3";
    pub const FETCH_MORE_THAN_GRANT: &str = "4";
    pub const STORE_TO_INSTRUCTIONS: &str = "5";
    pub const FETCH_UNALIGNED: &str = "7";
    pub const PERMITTED_COPIES: &str = "8";
    pub const COPY_BEYOND_SCRATCHPAD: &str = "9";
    pub const COPY_ZERO_LINES: &str = "10";
    pub const STORE_TO_CONSTANTS: &str = "11";
}

/// Runs `stray` and its host program with an access of [`stray_access`].
fn run_stray(folder: &Path, options: &[&str], access: &str) -> String {
    let words = [
        "--channel-program",
        "stray=stray.elf",
        "stray-host.elf",
        access,
    ];
    transcript(&run(folder, &[options, &words].concat()))
}

/// A store to far memory stops the channel program. The host then starts another program on the same core.
#[test]
fn channel_violation_names_its_line_and_the_host_continues() {
    let Some(folder) = compile_programs(&["stray"], [&[], &[]]) else {
        return;
    };
    let access = stray_access::STORE_TO_FAR_MEMORY;
    let output = run_stray(folder.path(), &[], access);
    assert!(
        output.starts_with("exit code 0\nstate 5 status -1 cause 7 value 0x4000000000 word 42 far 0\nagain 0 state 3 status 9\n"),
        "{output}"
    );
    let source = include_str!("../../../nearmemory/tests/programs/stray.c");
    let line = line_of(source, &format!("case {access}:"));
    assert_contains(
        &output,
        &[
            "core 0 stops the channel program `stray`: store/AMO access fault at 0x4000000000 (far memory; a core accesses it only through its copy engine), at 0x",
            "sd s0, 0(a0)\n  in channel + ",
            &format!(", stray.c:{line}\n"),
        ],
    );
}

/// The message names the reason that applies, not every possible one.
#[test]
fn access_fault_names_the_violated_rule() {
    use stray_access::*;

    let Some(folder) = compile_programs(&["stray"], [&[], &[]]) else {
        return;
    };
    for (access, address, reason) in [
        (FETCH_BEYOND_GRANT, "0x200038", "a copy of 1 line from 0x4000001000 on, which is partly outside the far memory that the host granted it"),
        (FETCH_MORE_THAN_GRANT, "0x200038", "a copy of 33 lines from 0x4000000000 on, which is partly outside the far memory that the host granted it"),
        (STORE_TO_INSTRUCTIONS, "0x10", "of its instructions, which are read-only"),
        (FETCH_UNALIGNED, "0x200038", "a copy with far memory at 0x4000000008, which is not aligned to lines of 128 bytes"),
        (COPY_BEYOND_SCRATCHPAD, "0x200040", "a copy of 2 lines from line 511 of the scratchpad on, which has 512"),
        (COPY_ZERO_LINES, "0x200040", "a copy of zero lines"),
        (STORE_TO_CONSTANTS, "0x1", "of its constants, which are read-only"),
    ] {
        let output = run_stray(folder.path(), &[], access);
        let (fault, reason) = (
            format!(" store/AMO access fault at {address}"),
            format!(" ({reason}), at 0x"),
        );
        assert_contains(&output, &[&fault, &reason]);
    }
}

/// Without `--channel-program` there are neither near-memory cores nor far memory.
#[test]
fn machine_without_channel_program_has_no_far_memory() {
    let Some(folder) = compile_programs(&["stray"], [&[], &[]]) else {
        return;
    };
    let output = transcript(&run(folder.path(), &["stray-host.elf"]));
    assert_contains(
        &output,
        &[
            "exit code 1\n",
            "error: stray-host.elf: load access fault at 0x7100000858, at 0x",
            "\n  help: `--channel-program NAME=PROGRAM` runs it on a machine with far memory and cores beside it, as docs/nearmemory.md shows\n",
        ],
    );
}

/// Output of the host program of `stray` if all accesses are permitted.
const PERMITTED_OUTPUT: &str =
    "exit code 0\nstate 3 status 9 cause 0 value 0 word 42 far 42\nagain 0 state 3 status 9\n";

#[test]
fn counters_are_the_same_in_every_run() {
    let Some(folder) = compile_programs(&["stray"], [&[], &[]]) else {
        return;
    };
    let run_with_counters = || {
        let options = ["--counters", "--timed"];
        run_stray(folder.path(), &options, stray_access::PERMITTED_COPIES)
    };
    let output = run_with_counters();
    assert!(output.starts_with(PERMITTED_OUTPUT), "{output}");
    assert!(output.contains("\nmcc 0: lines fetched: 1\n"), "{output}");
    assert_eq!(output, run_with_counters());
}

#[test]
fn functional_simulation_does_not_change_results() {
    let Some(folder) = compile_programs(&["stray"], [&[], &[]]) else {
        return;
    };
    let output = run_stray(folder.path(), &["--fast"], stray_access::PERMITTED_COPIES);
    assert_eq!(output, PERMITTED_OUTPUT);
}

/// Races need simulated time, which functional simulation does not have.
#[test]
fn functional_simulation_cannot_report_races() {
    let Some(folder) = compile_programs(&["stray"], [&[], &[]]) else {
        return;
    };
    let options = ["--fast", "--races"];
    let output = run_stray(folder.path(), &options, stray_access::NONE);
    assert_contains(&output, &["'--fast' cannot be used with '--races'"]);
}

#[test]
fn missing_channel_program_is_named() {
    let Some(folder) = compile_programs(&["stray"], [&[], &[]]) else {
        return;
    };
    let folder = folder.path();
    let words = ["--channel-program", "other=stray.elf", "stray-host.elf"];
    assert_eq!(
        transcript(&run(folder, &words)),
        "exit code 1\nerror -1\n--- stderr\nthe program ends with code 1\nno channel program is named `stray`; there are other\n  help: `--channel-program stray=PROGRAM` names one\n"
    );
    compile(folder, "host", "docs/riscv/accumulator/host.c", &[]);
    assert_eq!(
        transcript(&run(folder, &["host.elf"])),
        "exit code 1\nthe program cannot be started: error -1\n--- stderr\nthe program ends with code 1\nno channel program is named `sum`\n  help: `--channel-program sum=PROGRAM` names one\n"
    );
}

#[test]
fn channel_program_is_rejected_as_host_program() {
    let Some(folder) = compile_programs(&["stray"], [&[], &[]]) else {
        return;
    };
    let words = ["--channel-program", "stray=stray.elf", "stray.elf"];
    let output = transcript(&run(folder.path(), &words));
    let expected = "error: stray.elf: this is a channel program, which a host starts\n  help: `--channel-program NAME=PROGRAM`";
    assert_contains(&output, &[expected]);
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
    let load_line = line_of(source, "// loads");
    let channel = include_str!("../../../nearmemory/tests/programs/forgets.c");
    let store_line = line_of(channel, "nm_store(");
    assert!(output.starts_with("exit code 1\nsum "), "{output}");
    assert_contains(&output, &[
        "race: the line at 0x4000000000 is stale when it is loaded\nthe host's core 0 loads it, at 0x",
        &format!(", forgets-host.c:{load_line}\ncore 0 of `forgets` wrote it, at 0x"),
        ", scratchpad.h:",
        // The copy is made by a library function that is inlined into the program.
        &format!(", called at forgets.c:{store_line}\n"),
        "\n1 race\n",
    ]);
}

/// Two hosts race for lines, because the first one does not write them back. Each position, counter and track names its
/// host.
#[test]
fn positions_counters_and_tracks_name_their_host() {
    if !require("riscv-gcc") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let source = "crates/nearmemory/tests/programs/ring-host.c";
    compile(folder.path(), "host", source, &["-DFORGETS=CLEAN"]);
    let run_hosts = |options: &[&str]| {
        let options = [&["--set", "hosts.count=2"], options, &["ring-host.elf"]].concat();
        transcript(&run(folder.path(), &options))
    };
    let output = run_hosts(&["--races", "--counters"]);
    assert!(output.starts_with("exit code 1\nsum "), "{output}");
    assert_contains(
        &output,
        &[
            "guaranteed to have reached far memory\ncore 0 of host 1 loads it, at 0x",
            "\ncore 0 of host 0 stored in it, at 0x",
            "\nhost 0: instructions: ",
            "\nlink 1: messages to the device: ",
        ],
    );
    // The track of each host has its own requests, and a filter selects those of one host.
    let timeline = ["--timeline", "ring.pftrace", "--timeline-agent"];
    let requests = |options: &[&str]| -> (u64, Vec<u8>) {
        let output = run_hosts(&[&timeline[..2], options].concat());
        let count = output
            .split_once("the timeline shows ")
            .and_then(|(_, text)| text.split(' ').next());
        let count = count.and_then(|count| count.parse().ok());
        let file = std::fs::read(folder.path().join("ring.pftrace")).expect("a timeline");
        (count.unwrap_or_else(|| panic!("{output}")), file)
    };
    let has_track = |file: &[u8], host| {
        let name = format!("request of host {host}, number 1");
        file.windows(name.len())
            .any(|bytes| bytes == name.as_bytes())
    };
    let (all, file) = requests(&[]);
    assert!(has_track(&file, 0) && has_track(&file, 1));
    let mut of_hosts = 0;
    for host in [0, 1] {
        let (count, file) = requests(&["--timeline-agent", &format!("host {host} core 0")]);
        assert!(count > 0 && has_track(&file, host) && !has_track(&file, 1 - host));
        of_hosts += count;
    }
    // Evictions have no core.
    assert!(
        of_hosts <= all && of_hosts > all * 9 / 10,
        "{of_hosts} {all}"
    );
    let output = run_hosts(&[&timeline[..], &["host core 0"]].concat());
    let expected = "there is no agent `host core 0`; did you mean `host 0 core 0`? there are host 0 core 0, host 1 core 0, core 0,";
    assert_contains(&output, &[expected]);
    // The end of one host is an error of this host, and a livelock lists the hosts that run.
    let source = "crates/nearmemory/tests/programs/ends-host.c";
    compile(folder.path(), "host", source, &[]);
    let run_ends = |statuses: [&str; 2]| {
        let program = ["--set", "hosts.count=2", "ends-host.elf"];
        transcript(&run(folder.path(), &[&program[..], &statuses].concat()))
    };
    assert_contains(
        &run_ends(["0", "7"]),
        &["\nhost 1: the program ends with code 7"],
    );
    let output = run_ends(["0", "-1"]);
    assert_contains(
        &output,
        &["livelock: ", "\ncore 0 of host 1 polls 0x4000000000, at 0x"],
    );
    assert!(!output.contains("of host 0"), "{output}");
    let output = run_hosts(&["--set", "hosts.count=17"]);
    assert_contains(&output, &["`hosts.count` must be 1 to 16, not 17"]);
}

/// The racing program of [`races_name_both_positions_and_fail_the_run`] succeeds without `--races`.
#[test]
fn races_are_reported_only_on_request() {
    let Some(folder) = compile_programs(&["forgets"], [&["-DFORGETS=7"]; 2]) else {
        return;
    };
    let words = [
        "--channel-program",
        "forgets=forgets.elf",
        "forgets-host.elf",
    ];
    let output = transcript(&run(folder.path(), &words));
    assert!(output.starts_with("exit code 0\nsum "), "{output}");
    assert!(!output.contains("race"), "{output}");
}

/// Runs the host program of `stray`, which starts a channel program with no access. Returns the exit code and both
/// outputs without the line between them.
fn start_stray(folder: &Path, options: &[&str]) -> String {
    let words = [options, &["stray-host.elf", stray_access::NONE]].concat();
    let output = transcript(&run(folder, &words));
    output.replacen("--- stderr\n", "", 1)
}

/// With `ELSEWHERE`, the channel program claims far memory that the host does not grant.
#[test]
fn program_that_claims_foreign_far_memory_is_refused() {
    let Some(folder) = compile_programs(&["stray"], [&[], &["-DELSEWHERE"]]) else {
        return;
    };
    let output = start_stray(folder.path(), &["--channel-program", "stray=stray.elf"]);
    let refusal = "core 0 refuses the channel program `stray`: 0x4000100000: the manifest requests far memory here";
    assert_contains(&output, &[refusal]);
}

/// Verification rejects a host program; without verification, the machine rejects it.
#[test]
fn host_program_is_rejected_as_channel_program() {
    let Some(folder) = compile_programs(&["stray"], [&[], &[]]) else {
        return;
    };
    let host = ["--channel-program", "stray=stray-host.elf"];
    let rejection = start_stray(folder.path(), &host);
    assert!(
        rejection.starts_with("exit code 2\nerror: stray-host.elf: "),
        "{rejection}"
    );
    let unverified = [&host[..], &["--skip-verification"]].concat();
    let rejection = start_stray(folder.path(), &unverified);
    assert!(
        rejection.starts_with("exit code 2\nerror: the channel program `stray`: "),
        "{rejection}"
    );
}

#[test]
fn invalid_options_and_settings_are_rejected() {
    let Some(folder) = compile_programs(&["stray"], [&[], &[]]) else {
        return;
    };
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
            "error: the setting `nothing=9`: no quantity is named `nothing`; there are hosts.count, ",
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
        let output = start_stray(folder.path(), words);
        assert!(
            output.starts_with("exit code 2\n") && output.contains(expected),
            "{expected} in {output}"
        );
    }
}

/// Modes of the program `astray`, by their numbers in `astray.c` and `astray-host.c`.
mod astray_mode {
    pub const ENDLESS_LOOP: &str = "0";
    pub const UNREQUESTED_REGISTER_PIPE: &str = "1";
    pub const UNREQUESTED_FIFO: &str = "2";
    pub const LINE_BEYOND_SCRATCHPAD: &str = "3";
    pub const STACK_OVERFLOW: &str = "4";
    pub const JUMP_TO_DATA: &str = "7";
    pub const JUMP_TO_FAR_MEMORY: &str = "8";
    pub const LOAD_ACROSS_LINES: &str = "9";
    pub const LOCK_BEYOND_SCRATCHPAD: &str = "10";
    pub const HOST_ATOMIC_ON_FAR_MEMORY: &str = "11";
    pub const HOST_LINE_BEYOND_SCRATCHPAD: &str = "12";
    pub const FILL_OWN_FIFO: &str = "13";
    pub const READ_OWN_EMPTY_FIFO: &str = "14";
    pub const SEND_THROUGH_OWN_FIFO: &str = "15";
}

/// Core whose outgoing FIFO in `astray` leads to the core itself.
const CORE_WITH_OWN_FIFO: &str = "2";

/// Runs `astray` and its host program with a mode of [`astray_mode`], and further arguments of the host program.
fn run_astray(folder: &Path, options: &[&str], arguments: &[&str]) -> String {
    let words = ["--channel-program", "astray=astray.elf", "astray-host.elf"];
    transcript(&run(folder, &[options, &words, arguments].concat()))
}

/// Programs that reach the limit of instructions: the host waits for a channel program that loops.
#[test]
fn positions_of_endless_programs_are_reported() {
    let Some(folder) = compile_programs(&["astray"], [&[], &[]]) else {
        return;
    };
    let host = include_str!("../../../nearmemory/tests/programs/astray-host.c");
    let channel = include_str!("../../../nearmemory/tests/programs/astray.c");
    let wait_line = line_of(host, "nm_wait");
    let loop_line = line_of(channel, "for (;;)");
    for options in [&[][..], &["--fast"]] {
        let options = [options, &["--max-instructions", "100000"]].concat();
        let output = run_astray(folder.path(), &options, &[astray_mode::ENDLESS_LOOP]);
        assert!(output.starts_with("exit code 3\n"), "{output}");
        assert_contains(
            &output,
            &[
                "  help: `--max-instructions N` gives them more\nthe host's core 0 is at 0x",
                &format!(", called at astray-host.c:{wait_line}\n"),
                "\ncore 0 of `astray` is at 0x",
                &format!(", astray.c:{loop_line}\n"),
            ],
        );
    }
}

/// The core stops a program that uses a resource that `NM_CHANNEL` does not request, or a line that does not exist.
#[test]
fn fault_names_the_resource_that_the_program_lacks() {
    use astray_mode::*;

    let Some(folder) = compile_programs(&["astray"], [&[], &[]]) else {
        return;
    };
    for (mode, expected) in [
        (
            UNREQUESTED_REGISTER_PIPE,
            "(of the register pipe that `NM_REGISTER_PIPE(3)` asks for)",
        ),
        (UNREQUESTED_FIFO, "(of the FIFO that `NM_FIFO(1)` asks for)"),
        (
            LINE_BEYOND_SCRATCHPAD,
            "(line 512 of the scratchpad, which has 512)",
        ),
        (
            STACK_OVERFLOW,
            "(below its stack; its `NM_CHANNEL` requests 512 bytes)",
        ),
        (
            LOAD_ACROSS_LINES,
            "(an access to two lines of the scratchpad, or an atomic access)",
        ),
        (
            LOCK_BEYOND_SCRATCHPAD,
            "(a lock of a line outside the scratchpad, which has 512)",
        ),
    ] {
        let output = run_astray(folder.path(), &[], &[mode]);
        assert!(output.starts_with("exit code 0\nstate 5\n"), "{output}");
        assert_contains(&output, &[expected]);
    }
}

/// The address of the fault is the target, so the message adds the position of the jump.
#[test]
fn jump_to_memory_that_is_not_executable_names_its_origin() {
    let Some(folder) = compile_programs(&["astray"], [&[], &[]]) else {
        return;
    };
    let channel = include_str!("../../../nearmemory/tests/programs/astray.c");
    for (mode, target) in [
        (
            astray_mode::JUMP_TO_DATA,
            "\n  in data + 0\n  jumped to from 0x",
        ),
        (
            astray_mode::JUMP_TO_FAR_MEMORY,
            " at 0x4000000000\n  jumped to from 0x",
        ),
    ] {
        let origin = format!(
            ", astray.c:{}\n",
            line_of(channel, &format!("case {mode}:"))
        );
        let output = run_astray(folder.path(), &[], &[mode]);
        assert!(output.starts_with("exit code 0\nstate 5\n"), "{output}");
        assert_contains(&output, &[target, &origin]);
    }
}

/// A wait for its own FIFO would never end, so it is a fault.
#[test]
fn core_cannot_wait_for_its_own_fifo() {
    let Some(folder) = compile_programs(&["astray"], [&[], &[]]) else {
        return;
    };
    for (mode, expected) in [
        (
            astray_mode::FILL_OWN_FIFO,
            "store/AMO access fault at 0x220040 (the FIFO from core 2 to itself is full, and only this core can remove a word from it), at 0x",
        ),
        (
            astray_mode::READ_OWN_EMPTY_FIFO,
            "load access fault at 0x220040 (the FIFO from core 2 to itself is empty, and only this core can add a word to it), at 0x",
        ),
    ] {
        let output = run_astray(folder.path(), &[], &[mode, CORE_WITH_OWN_FIFO]);
        assert!(output.starts_with("exit code 0\nstate 5\n"), "{output}");
        assert_contains(&output, &[expected]);
    }
}

/// A load from the FIFO waits for the word in flight, which the core has sent before.
#[test]
fn core_receives_words_through_its_own_fifo() {
    let Some(folder) = compile_programs(&["astray"], [&[], &[]]) else {
        return;
    };
    let arguments = [astray_mode::SEND_THROUGH_OWN_FIFO, CORE_WITH_OWN_FIFO];
    let output = run_astray(folder.path(), &[], &arguments);
    assert_eq!(output, "exit code 0\nstate 3\n");
}

#[test]
fn host_access_to_a_missing_core_is_a_fault() {
    let Some(folder) = compile_programs(&["astray"], [&[], &[]]) else {
        return;
    };
    let missing_core = "4";
    let output = run_astray(
        folder.path(),
        &[],
        &[astray_mode::ENDLESS_LOOP, missing_core],
    );
    assert!(output.starts_with("exit code 1\n"), "{output}");
    let expected = "load access fault at 0x7100004800 (of core 4 beside far memory, and there are 4, from 0 on), at 0x";
    assert_contains(&output, &[expected]);
}

#[test]
fn host_fault_names_the_violated_rule() {
    let Some(folder) = compile_programs(&["astray"], [&[], &[]]) else {
        return;
    };
    for (mode, expected) in [
        (
            astray_mode::HOST_ATOMIC_ON_FAR_MEMORY,
            "store/AMO access fault at 0x4000000000 (atomic access; far memory is not coherent and does not support it), at 0x",
        ),
        (
            astray_mode::HOST_LINE_BEYOND_SCRATCHPAD,
            "store/AMO access fault at 0x7001010000 (line 512 of the scratchpad of core 1, which has 512), at 0x",
        ),
    ] {
        let output = run_astray(folder.path(), &[], &[mode]);
        assert!(output.starts_with("exit code 1\n"), "{output}");
        assert_contains(&output, &[expected]);
    }
}

/// The host waits for a message to be taken by a program that has ended.
#[test]
fn livelock_names_both_positions() {
    let Some(folder) = compile_programs(&["gone"], [&[], &[]]) else {
        return;
    };
    let output = transcript(&run(
        folder.path(),
        &["--channel-program", "gone=gone.elf", "gone-host.elf"],
    ));
    assert!(output.starts_with("exit code 1\n"), "{output}");
    assert_contains(&output, &[
        "error: gone-host.elf: livelock: no running program can write the polled addresses\nthe host's core 0 polls line 0 of the scratchpad of core 0, at 0x",
        ", called at gone-host.c:",
        "\ncore 0 of `gone` has ended with 0, at 0x",
        "\n  in _start",
    ]);
}

/// Two cores store to one line of far memory without synchronisation.
#[test]
fn race_of_two_cores_names_both_positions() {
    let Some(folder) = compile_programs(&["coreww"], [&[], &[]]) else {
        return;
    };
    let output = transcript(&run(
        folder.path(),
        &[
            "--races",
            "--channel-program",
            "coreww=coreww.elf",
            "coreww-host.elf",
        ],
    ));
    assert!(output.starts_with("exit code 1\n"), "{output}");
    assert_contains(&output, &[
        "race: the line at 0x4000000000 is stored by two programs without synchronisation\ncore 1 of `coreww` stores it, at 0x",
        "\ncore 0 of `coreww` stored it, at 0x",
        ", called at coreww.c:",
        "\n1 race\n",
    ]);
}
