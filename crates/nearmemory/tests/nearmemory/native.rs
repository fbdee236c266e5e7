//! The near-memory programs as threads of this machine: each verifies its results and detects faults, and trees have
//! the published number of nodes.
//!
//! The compiler is `cc`, which is also the linker of Rust programs.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Programs with their arguments.
const PROGRAMS: &[(&str, &str)] = &[
    ("bulk", "65536"),
    ("compute", "300"),
    ("gups", "65536 300"),
    ("measure", "1024"),
    ("pagerank", "0 256 1000 50 1 4 31 2"),
    ("pagerank", "2 128 1500 60 2 3 15 2"),
    ("pipes", "1 400"),
    ("pipes", "7 100000"),
    ("pipes", "3 1000 4"),
    ("pipes", "64 100000 4"),
    ("rows", "16384 8"),
    ("rows", "24576 128 1000"),
    ("rows", "1048576 128 200"),
    ("spawn", "3"),
    ("uts", "1 3 4 4 0 0 29 10000"),
    ("uts", "0 0 0 30 190000 5 7 600"),
];

/// Root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Compiles a source file.
fn compile(source: &Path, target: &Path, options: &[&str]) {
    let mut cc = Command::new("cc");
    cc.current_dir(root())
        .args(["@nearmemory/native.flags", "-Werror"])
        .args(options);
    let output = cc
        .arg(source)
        .arg("-o")
        .arg(target)
        .output()
        .expect("`cc` starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
}

/// Runs a host program with arguments. `channel` names the channel programs that it may start, as `NAME=FILE`,
/// separated by commas. A run that hangs ends after ten minutes.
fn run(host: &Path, arguments: &str, channel: &str) -> Output {
    let mut command = Command::new("timeout");
    command
        .arg("600")
        .arg(host)
        .args(arguments.split_whitespace())
        .env("NEARMEMORY_CP", channel);
    let output = command.output().expect("the command starts");
    assert_ne!(output.status.code(), Some(124), "the run exceeded 600 s");
    output
}

/// Standard output of a run.
fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// All programs of `nearmemory/programs` with small inputs: each verifies its results, ends with 0, and prints
/// durations.
#[test]
fn programs_verify_their_results_natively() {
    let program_folder =
        std::fs::read_dir(root().join("nearmemory/programs")).expect("the folder can be read");
    for entry in program_folder {
        let name = entry.expect("a file").file_name();
        let name = name.to_str().expect("a name").strip_suffix("-host.c");
        let is_run = |name| PROGRAMS.iter().any(|(program, _)| *program == name);
        assert!(name.is_none_or(is_run), "{name:?} runs nowhere");
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut last_program = "";
    for &(program, arguments) in PROGRAMS {
        let (host, channel) = (
            folder.path().join(program),
            folder.path().join(format!("{program}.so")),
        );
        if program != last_program {
            let source = Path::new("nearmemory/programs");
            let cores = ["-DNM_CORES=4"];
            compile(&source.join(format!("{program}-host.c")), &host, &cores);
            compile(&source.join(format!("{program}.c")), &channel, &["-shared"]);
            last_program = program;
        }
        let output = run(
            &host,
            arguments,
            &format!("other=none,{program}={}", channel.display()),
        );
        let stdout = text(&output);
        assert!(output.status.success(), "{program} {arguments}: {stdout}");
        let runs_on_four_cores = ["bulk", "gups", "rows", "uts"].contains(&program);
        assert!(
            !runs_on_four_cores || stdout.contains("4 cores"),
            "{program}: {stdout}"
        );
        let four_threads = program == "pipes" && arguments.ends_with(" 4");
        assert!(
            (stdout.lines().count() >= 2 || four_threads)
                && (stdout.contains(" ns\n") || stdout.contains(" ps\n")),
            "{program}: {stdout}"
        );
    }
}

/// The array program, which the machine also runs, prints that all results are correct.
#[test]
fn arrays_and_typed_channels_run_natively() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (host, channel) = (folder.path().join("host"), folder.path().join("arrays.so"));
    let source = Path::new("crates/nearmemory/tests/programs");
    compile(&source.join("arrays-host.c"), &host, &[]);
    compile(&source.join("arrays.c"), &channel, &["-shared"]);
    let output = run(&host, "", &format!("arrays={}", channel.display()));
    assert_eq!(text(&output), "all is right\n");
}

/// Host and channel program of two source files each; the state of the library exists once in each.
#[test]
fn native_programs_of_several_sources_share_one_library() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (host, channel) = (folder.path().join("host"), folder.path().join("parts.so"));
    let source = |name| format!("crates/nearmemory/tests/programs/{name}.c");
    let [first_source, second_source] = ["parts-host", "parts-host-2"].map(source);
    compile(Path::new(&first_source), &host, &[&second_source]);
    let [first_source, second_source] = ["parts", "parts-2"].map(source);
    compile(
        Path::new(&first_source),
        &channel,
        &["-shared", &second_source],
    );
    let output = run(&host, "", &format!("parts={}", channel.display()));
    assert_eq!(text(&output), "all is right\n");
}

/// Test programs with pipes, streams and loans of host memory, which the machine also runs.
#[test]
fn pipes_and_host_memory_copies_run_natively() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let source = Path::new("crates/nearmemory/tests/programs");
    for (program, arguments, expected) in [
        (
            "relay",
            &[
                "0 20000 8",
                "1 2000 1",
                "2 20000 8",
                "3 20000 8",
                "4 20000 8",
                "4 2000 1",
            ][..],
            " words, with 10 and 11\n",
        ),
        ("streams", &[""], "all lines are right\n"),
        ("several", &[""], "all is right\n"),
        ("leaves", &[""], "all is right\n"),
        ("remains", &[""], "all is right\n"),
        ("lends", &[""], "a line of the host "),
    ] {
        let (host, channel) = (
            folder.path().join(program),
            folder.path().join(format!("{program}.so")),
        );
        compile(&source.join(format!("{program}-host.c")), &host, &[]);
        compile(&source.join(format!("{program}.c")), &channel, &["-shared"]);
        for arguments in arguments {
            let output = run(
                &host,
                arguments,
                &format!("{program}={}", channel.display()),
            );
            let stdout = text(&output);
            assert!(
                output.status.success() && stdout.contains(expected),
                "{program} {arguments}: {stdout}"
            );
        }
    }
}

/// A locked line delays the host's read until the program releases it. Without the lock, the host reads too early and
/// reports this.
#[test]
fn native_locks_hold_the_host_and_programs_stop() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    let (host, channel, changed) = (
        folder.join("host"),
        folder.join("locks.so"),
        folder.join("locks.c"),
    );
    let programs = Path::new("crates/nearmemory/tests/programs");
    compile(&programs.join("locks-host.c"), &host, &[]);
    let source = std::fs::read_to_string(root().join(programs).join("locks.c"))
        .expect("the file can be read");
    let original = "  nm_lock(SUM, NM_READ);\n";
    assert_eq!(source.matches(original).count(), 1);
    for (text, expected) in [
        (source.clone(), "all is right\n"),
        (
            source.replace(original, ""),
            "wrong: what is read once the write-back is acknowledged\n",
        ),
    ] {
        std::fs::write(&changed, text).expect("the file can be written");
        compile(&changed, &channel, &["-shared"]);
        let output = run(&host, "", &format!("locks={}", channel.display()));
        assert_eq!(self::text(&output), expected);
    }
}

/// A program that omits one update is found by its verifier. Files that are no library of this machine, missing files
/// and missing names are rejected with the reason, as is a core that does not exist.
#[test]
fn native_runs_find_faults_and_reject_invalid_programs() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    let (host, channel, changed) = (
        folder.join("host"),
        folder.join("gups.so"),
        folder.join("gups.c"),
    );
    compile(Path::new("nearmemory/programs/gups-host.c"), &host, &[]);
    let source = std::fs::read_to_string(root().join("nearmemory/programs/gups.c"))
        .expect("the file can be read");
    let original = "line[index % 16] ^= random;";
    assert_eq!(source.matches(original).count(), 1);
    std::fs::write(
        &changed,
        source.replace(original, "if (i) line[index % 16] ^= random;"),
    )
    .expect("the file can be written");
    compile(&changed, &channel, &["-shared"]);
    let output = run(&host, "65536 300", &format!("gups={}", channel.display()));
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("wrong: core\n"), "{}", text(&output));
    let foreign = folder.join("foreign");
    let mut bytes = std::fs::read(&channel).expect("the file can be read");
    bytes[18..20].copy_from_slice(&243_u16.to_le_bytes()); // The machine, in the header of an ELF file: RISC-V.
    std::fs::write(&foreign, bytes).expect("the file can be written");
    for (binary, reason) in [
        (
            format!("gups={}", changed.display()),
            "this is no channel program: it is no ELF file\n",
        ),
        (
            format!("gups={}", foreign.display()),
            "this is no channel program: it is for the simulator's cores (RISC-V); natively a library of this machine is loaded",
        ),
        (
            "gups=nowhere".to_string(),
            "nowhere: No such file or directory\n",
        ),
        (
            String::new(),
            "no channel program is named `gups`\n  help: NEARMEMORY_CP=gups=FILE names one\n",
        ),
    ] {
        let output = run(&host, "65536 300", &binary);
        assert_eq!(output.status.code(), Some(1));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.starts_with(reason), "{reason} in {stderr}");
        assert!(
            text(&output).contains("wrong: the core does not start\n"),
            "{binary}"
        );
    }
    let programs = Path::new("crates/nearmemory/tests/programs");
    compile(&programs.join("astray-host.c"), &host, &[]);
    let output = run(&host, "0 4", &format!("astray={}", channel.display()));
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(stderr, "there is no core 4; there are 4, from 0 on\n");
}

/// Counts the nodes of two trees of the UTS benchmark, whose sizes are published.
#[test]
fn tree_node_counts_match_publications() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = folder.path().join("count");
    compile(
        Path::new("crates/nearmemory/tests/programs/count.c"),
        &program,
        &[],
    );
    // Trees T1 and T3 of the benchmark.
    for (arguments, nodes) in [
        ("1 3 10 4 0 0 19", "4130071"),
        ("0 0 0 2000 124875 8 42", "4112897"),
    ] {
        let output = run(&program, arguments, "");
        assert_eq!(
            text(&output).split_whitespace().next(),
            Some(nodes),
            "{arguments}"
        );
    }
}
