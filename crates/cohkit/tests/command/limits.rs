//! Tests under tight limits of the machine.

use crate::{cohkit, text, transcript};
use std::path::Path;
use std::process::Command;

/// Runs the command under a limit on its address space in KiB, as batch systems set it.
#[cfg(target_os = "linux")]
fn run_limited(kibibytes: u64, arguments: &[&str]) -> std::process::Output {
    let cohkit_command = cohkit::<&str>([]);
    let mut command = Command::new("sh");
    command
        .arg("-c")
        .arg(format!(
            "ulimit -c 0; ulimit -v {kibibytes}; exec \"$0\" \"$@\""
        ))
        .arg(cohkit_command.get_program())
        .args(arguments);
    if let Some(folder) = cohkit_command.get_current_dir() {
        command.current_dir(folder);
    }
    command.output().expect("sh starts")
}

/// Regression: under a tight limit, the command was aborted (134) when the table of states grew or a thread was
/// started.
#[cfg(target_os = "linux")]
#[test]
fn address_space_limit_gives_an_undecided_verdict() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let file = |name: &str| root.join(name).display().to_string();
    let (msi, dma) = (file("protocols/msi.coh"), file("models/dma_copy.m"));
    let commands: [&[&str]; 4] = [
        &["check", &msi, "--threads", "2"],
        &[
            "check",
            &dma,
            "--deadlock",
            "off",
            "--threads",
            "2",
            "--max-states",
            "400000",
        ],
        &[
            "check",
            &dma,
            "--deadlock",
            "off",
            "--hash-compaction",
            "--max-states",
            "400000",
        ],
        &[
            "check",
            &dma,
            "--deadlock",
            "off",
            "--random-walks",
            "20000",
        ],
    ];
    for kibibytes in [40_000, 100_000, 200_000, 300_000, 500_000] {
        for arguments in commands {
            let output = run_limited(kibibytes, arguments);
            let stderr = text(&output.stderr);
            match output.status.code() {
                Some(0 | 3) => {}
                Some(4) => assert!(stderr.contains("help: "), "{stderr}"),
                _ => panic!("{kibibytes} KiB, {arguments:?}: {}", transcript(&output)),
            }
        }
    }
}

/// Regression: very many guarded rows for one state and event overflowed the stack, which also killed the Python
/// interpreter.
#[test]
fn too_many_rows_for_one_state_and_event_are_rejected() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../protocols/msi.coh");
    let msi = std::fs::read_to_string(path).expect("a shipped text");
    let row = "  IM_AD SM_AD    | InvAck  ";
    assert!(msi.contains(row), "the text has such a row");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let check_with_rows = |count: usize| {
        let guarded_row = "  IM_AD SM_AD | InvAck if early > 200 | early += 1 | stay\n";
        let file = folder.path().join(format!("rows_{count}.coh"));
        std::fs::write(&file, msi.replace(row, &(guarded_row.repeat(count) + row)))
            .expect("the file can be written");
        let mut command = cohkit(["check", "--remotes", "2", "--lines", "1"]);
        command.arg(file).output().expect("the command starts")
    };
    let at_limit = check_with_rows(999);
    assert_eq!(at_limit.status.code(), Some(0), "{}", transcript(&at_limit));
    // The file with 100,000 rows exceeds the maximum length of a protocol file.
    for count in [1_000, 20_000, 100_000] {
        let output = check_with_rows(count);
        assert_eq!(output.status.code(), Some(2), "{}", transcript(&output));
        let stderr = text(&output.stderr);
        if count == 100_000 {
            assert!(stderr.contains("the file has 5"), "{stderr}");
            continue;
        }
        let expected = "error[too-many]: more than 1000 rows for one state and event\n";
        assert!(stderr.starts_with(expected), "{stderr}");
        // The error is at the 1,001st row: the existing row after 1,000 added ones, or else one of the added rows.
        let line = 1
            + msi[..msi.find(row).expect("found before")]
                .matches('\n')
                .count()
            + 1000;
        let position = format!("rows_{count}.coh:{line}:3\n");
        assert!(stderr.contains(&position), "{position}: {stderr}");
    }
}
