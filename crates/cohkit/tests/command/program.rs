//! Tests of `cohkit run`: compiled programs, and files that are no programs.

use crate::require::{missing, require};
use crate::{cohkit, text, transcript};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Compiles a program that follows its arguments, in a folder with files beside and outside of it; `None` without
/// compiler.
fn compile() -> Option<(tempfile::TempDir, PathBuf)> {
    if !require("riscv-gcc") {
        return None;
    }
    let base = tempfile::tempdir().expect("a temporary folder");
    let program = base.path().join("program.elf");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new("riscv64-unknown-elf-gcc")
        .current_dir(root)
        .args(["@docs/riscv/flags", "crates/cohkit/tests/command/program.c"])
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
    fs::create_dir(base.path().join("files")).expect("a folder");
    fs::write(base.path().join("files/inside"), "inside\n").expect("the file can be written");
    fs::write(base.path().join("outside"), "outside\n").expect("the file can be written");
    Some((base, program))
}

/// `cohkit run` with options, on a program with its arguments, in the program's folder.
fn command(program: &Path, options: &[&str], arguments: &[&str]) -> Command {
    let mut command = cohkit(["run"]);
    command.args(options).arg(program).args(arguments);
    command.current_dir(program.parent().expect("a folder"));
    command
}

fn run(program: &Path, options: &[&str], arguments: &[&str]) -> Output {
    command(program, options, arguments)
        .output()
        .expect("the command starts")
}

/// Transcript of `cohkit run` with options, on a program with its arguments.
fn run_transcript(program: &Path, options: &[&str], arguments: &[&str]) -> String {
    transcript(&run(program, options, arguments))
}

#[test]
fn command_ends_with_the_program_output_and_exit_code() {
    let Some((_base, program)) = compile() else {
        return;
    };
    let output =
        |options: &[&str], arguments: &[&str]| run_transcript(&program, options, arguments);
    assert_eq!(output(&[], &["say", "grün"]), "exit code 0\ngrün\n");
    assert_eq!(
        output(&[], &["code", "7"]),
        "exit code 1\n--- stderr\non standard error\nthe program ends with code 7\n"
    );
    let timed = output(&["--timed"], &["say", "grün"]);
    assert!(
        timed.starts_with("exit code 0\ngrün\n--- stderr\n"),
        "{timed}"
    );
    assert_eq!(timed, output(&["--timed"], &["say", "grün"]));
}

/// An invalid access is reported with its instruction, function and source line, by both engines.
#[test]
fn crash_reports_its_source_line() {
    let Some((_base, program)) = compile() else {
        return;
    };
    let source = include_str!("program.c").lines();
    let lines_before = source.take_while(|line| !line.contains("void crash("));
    let crash_line = format!("program.c:{}\n", lines_before.count() + 1);
    for options in [&[][..], &["--timed"]] {
        let crash = run_transcript(&program, options, &["crash"]);
        assert!(
            crash.starts_with("exit code 1\nbefore\n--- stderr\nerror: "),
            "{crash}"
        );
        for part in [
            "program.elf: ",
            ": sw a5, 16(zero)\n  in crash + ",
            &crash_line,
        ] {
            assert!(crash.contains(part), "{part} in {crash}");
        }
    }
}

#[test]
fn instruction_limit_ends_an_endless_program() {
    let Some((_base, program)) = compile() else {
        return;
    };
    for options in [&[][..], &["--timed"]] {
        let options = [options, &["--max-instructions", "1000000"]].concat();
        let endless = run_transcript(&program, &options, &["for-ever"]);
        assert!(endless.starts_with("exit code 3\n"), "{endless}");
        assert!(
            endless.contains("after 1000000 instructions\n  help: `--max-instructions N` gives it more\nthe program is at 0x8"),
            "{endless}"
        );
    }
}

#[test]
fn program_larger_than_memory_is_rejected_with_the_remedy() {
    let Some((_base, program)) = compile() else {
        return;
    };
    let small_memory = run_transcript(&program, &["--memory", "1"], &["say", "grün"]);
    assert!(
        small_memory.starts_with("exit code 2\n") && small_memory.contains("`--memory MIB`"),
        "{small_memory}"
    );
}

/// Both engines, and the host of a machine (`--set`), report where the stack overflowed or from where a program jumped.
#[test]
fn stack_overflow_and_wild_jump_report_their_origin() {
    let Some((_base, program)) = compile() else {
        return;
    };
    let host = &["--set", "host.cores=1"][..];
    for options in [&[][..], &["--timed"], host] {
        let output = |word: &str| transcript(&run(&program, options, &[word]));
        let overflow = output("overflow");
        assert!(overflow.starts_with("exit code 1\n"), "{overflow}");
        for part in [
            "error: program.elf: stack overflow, down to 0x837f",
            " (the stack has one eighth of the 64 MiB of memory; `--memory MIB` gives more), at 0x",
            "\n  in overflow",
        ] {
            assert!(
                overflow
                    .replace(&program.display().to_string(), "program.elf")
                    .contains(part),
                "{options:?}: {part} in {overflow}"
            );
        }
        let jump = output("jump");
        for part in [
            "instruction access fault at 0x10, at 0x10\n  jumped to from 0x",
            "\n  in jump",
        ] {
            assert!(jump.contains(part), "{options:?}: {part} in {jump}");
        }
    }
    // A program linked with its stack elsewhere in memory has all memory above its data for it.
    let output = transcript(&run(&program, &["--memory", "256"], &["overflow"]));
    assert!(
        output.contains(": stack overflow, down to 0x80"),
        "{output}"
    );
}

#[test]
fn program_reads_standard_input() {
    let Some((_base, program)) = compile() else {
        return;
    };
    let mut child = command(&program, &[], &["echo"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let mut input = child.stdin.take().expect("standard input is piped");
    input
        .write_all(b"first\nno end of line")
        .expect("the bytes can be written");
    drop(input);
    let output = child.wait_with_output().expect("the command ends");
    assert_eq!(transcript(&output), "exit code 0\nfirst\nno end of line");
}

/// Escapes by `..`, by links to files, to folders and to missing targets, and by absolute paths.
#[cfg(unix)]
#[test]
fn programs_have_the_files_of_their_folder_and_no_others() {
    use std::os::unix::fs::symlink;
    let Some((base, program)) = compile() else {
        return;
    };
    let files = base.path().join("files");
    symlink("../outside", files.join("link")).expect("the link can be created");
    symlink("..", files.join("up")).expect("the link can be created");
    symlink("../new", files.join("dangling")).expect("the link can be created");
    symlink("inside", files.join("beside")).expect("the link can be created");
    let output =
        |arguments: &[&str]| run_transcript(&program, &["--guest-folder", "files"], arguments);
    for name in [
        "inside",
        "./inside",
        "../files/inside",
        "beside",
        "up/files/inside",
    ] {
        assert_eq!(output(&["read", name]), "exit code 0\ninside\n", "{name}");
    }
    assert_eq!(output(&["write", "new"]), "exit code 0\n");
    assert_eq!(
        fs::read_to_string(files.join("new")).expect("the file can be read"),
        "written\n"
    );

    let outside_path = base.path().join("outside").display().to_string();
    let fifo = Command::new("mkfifo").arg(files.join("fifo")).status();
    assert!(fifo.expect("the command starts").success());
    let names = [
        "../outside",
        "link",
        "up/outside",
        &outside_path,
        "up/new",
        "../new",
        "dangling",
        "fifo",
        ".",
    ];
    for name in names {
        for verb in ["read", "write"] {
            let output = output(&[verb, name]);
            assert!(
                output.ends_with("the program ends with code 2\n"),
                "{verb} {name}: {output}"
            );
        }
    }
    assert_eq!(
        fs::read_to_string(&outside_path).expect("the file can be read"),
        "outside\n"
    );
    assert!(!base.path().join("new").exists());
    // Without a folder the program has no files.
    let without_folder = transcript(&run(&program, &[], &["read", "files/inside"]));
    assert_eq!(
        without_folder,
        "exit code 1\nPermission denied\n--- stderr\nthe program ends with code 2\n"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn full_disk_reaches_the_program_and_full_stdout_the_user() {
    let Some((base, program)) = compile() else {
        return;
    };
    let full_device = File::options().write(true).open("/dev/full");
    let output = command(&program, &[], &["say", "something"])
        .stdout(full_device.expect("/dev/full can be opened"))
        .output()
        .expect("the command starts");
    assert_eq!(output.status.code(), Some(4));
    assert!(text(&output.stderr).contains("standard output cannot be written"));

    if !require("mounts") {
        return;
    }
    let script = r#"mount -t tmpfs -o size=4k none files && head -c 4096 /dev/zero > files/filler || exit 99
        exec "$0" run --guest-folder files program.elf write new"#;
    let output = Command::new("unshare")
        .args(["--mount", "--map-root-user", "bash", "-c", script])
        .arg(env!("CARGO_BIN_EXE_cohkit"))
        .current_dir(base.path())
        .output()
        .expect("the command starts");
    assert_ne!(output.status.code(), Some(99), "{}", missing("mounts"));
    let printed = transcript(&output);
    // picolibc decides how the error is printed.
    assert!(printed.starts_with("exit code 1\n"), "{printed}");
    assert!(
        printed.ends_with("the program ends with code 2\n"),
        "{printed}"
    );
}

#[cfg(unix)]
#[test]
fn interrupt_ends_a_program_and_keeps_its_output() {
    let Some((_base, program)) = compile() else {
        return;
    };
    // One program computes, the other waits for input.
    for arguments in [["for-ever"], ["echo"]] {
        let mut child = command(
            &program,
            &["--max-instructions", "1000000000000"],
            &arguments,
        )
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
        // The program runs once it has written a line; the one that waits echoes its input.
        let mut input = child.stdin.take().expect("standard input is piped");
        input
            .write_all(b"before\n")
            .expect("the bytes can be written");
        let mut line = [0; 7];
        let out = child.stdout.as_mut().expect("standard output is piped");
        out.read_exact(&mut line)
            .expect("the program writes a line");
        assert_eq!(&line, b"before\n");
        let number = child.id().to_string();
        let status = Command::new("kill").args(["-INT", &number]).status();
        assert!(status.expect("kill runs").success());
        // The input stays open until the program has ended, as on a terminal.
        let output = child.wait_with_output().expect("the command ends");
        drop(input);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(130), "{stderr}");
        let position = stderr.strip_prefix("interrupted\n");
        let position = position.unwrap_or_else(|| panic!("{stderr}"));
        // The position is reported, in whatever function it is, unless the program already waits for input.
        if arguments == ["for-ever"] || !position.is_empty() {
            assert!(position.starts_with("the program is at 0x8"), "{stderr}");
            assert!(position.contains("\n  in "), "{stderr}");
            assert_eq!(position.lines().count(), 2, "{stderr}");
        }
        assert_eq!(text(&output.stdout), "");
    }
}

#[test]
fn invalid_program_files_are_rejected_with_the_reason() {
    let base = tempfile::tempdir().expect("a temporary folder");
    let file = base.path().join("file");
    let rejection = || transcript(&run(&file, &[], &[]));
    assert!(
        rejection().contains("no such file\n  help: a program is"),
        "{}",
        rejection()
    );
    fs::create_dir(&file).expect("a folder");
    assert!(rejection().starts_with("exit code 2\n") && rejection().contains("is a folder"));
    fs::remove_dir(&file).expect("the folder is empty");
    // Our own command is a program, but for another machine.
    let host_binary = fs::read(env!("CARGO_BIN_EXE_cohkit")).expect("the file can be read");
    for (bytes, reason) in [
        (&b""[..], "cannot read this as a 64-bit ELF file"),
        (b"#!/bin/sh\n", "cannot read this as a 64-bit ELF file"),
        (
            b"\x7fELF\x02\x01\x01",
            "cannot read this as a 64-bit ELF file",
        ),
        (&host_binary[..1 << 12], "another machine"),
        (
            b"\x7fELF\x01\x01\x01",
            "is 32-bit, but the core is 64-bit\n  help: docs/riscv.md",
        ),
    ] {
        fs::write(&file, bytes).expect("the file can be written");
        let rejection = rejection();
        assert!(
            rejection.starts_with("exit code 2\n--- stderr\nerror: "),
            "{rejection}"
        );
        assert!(rejection.contains(reason), "{rejection}");
    }
    for folder in ["nowhere", "file"] {
        let output = run(&file, &["--guest-folder", folder], &[]);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    }
}
