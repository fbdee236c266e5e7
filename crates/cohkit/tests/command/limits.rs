//! Tests under tight limits of the machine.

use crate::{cohkit, text, transcript};
use std::path::Path;
use std::process::Command;

/// Runs the command under a limit on its address space in KiB, as batch systems set it.
#[cfg(target_os = "linux")]
fn limited(kibibytes: u64, arguments: &[&str]) -> std::process::Output {
    let own = cohkit::<&str>([]);
    let mut command = Command::new("sh");
    command
        .arg("-c")
        .arg(format!(
            "ulimit -c 0; ulimit -v {kibibytes}; exec \"$0\" \"$@\""
        ))
        .arg(own.get_program())
        .args(arguments);
    if let Some(folder) = own.get_current_dir() {
        command.current_dir(folder);
    }
    command.output().expect("sh starts")
}

/// Regression: under a tight limit, the command was aborted (134) when the table of states grew or a thread was
/// started.
#[cfg(target_os = "linux")]
#[test]
fn a_limit_on_addresses_is_an_outcome_and_no_abort() {
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
        &["check", &dma, "--deadlock", "off", "--simulate", "20000"],
    ];
    for kibibytes in [40_000, 100_000, 200_000, 300_000, 500_000] {
        for arguments in commands {
            let ended = limited(kibibytes, arguments);
            let said = text(&ended.stderr);
            match ended.status.code() {
                Some(0 | 3) => {}
                Some(4) => assert!(said.contains("help: "), "{said}"),
                _ => panic!("{kibibytes} KiB, {arguments:?}: {}", transcript(&ended)),
            }
        }
    }
}

/// Regression: very many guarded rows for one state and event overflowed the stack, which also killed the Python
/// interpreter.
#[test]
fn very_many_rows_for_one_state_and_event_are_refused() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../protocols/msi.coh");
    let msi = std::fs::read_to_string(path).expect("a shipped text");
    let row = "  IM_AD SM_AD    | InvAck  ";
    assert!(msi.contains(row), "the text has such a row");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let with = |count: usize| {
        let guarded = "  IM_AD SM_AD | InvAck if early > 200 | early += 1 | stay\n";
        let file = folder.path().join(format!("rows_{count}.coh"));
        std::fs::write(&file, msi.replace(row, &(guarded.repeat(count) + row))).expect("written");
        let mut command = cohkit(["check", "--remotes", "2", "--lines", "1"]);
        command.arg(file).output().expect("the command starts")
    };
    let most = with(999);
    assert_eq!(most.status.code(), Some(0), "{}", transcript(&most));
    // The file with 100,000 rows exceeds the maximum length of a protocol file.
    for count in [1_000, 20_000, 100_000] {
        let ended = with(count);
        assert_eq!(ended.status.code(), Some(2), "{}", transcript(&ended));
        let said = text(&ended.stderr);
        if count == 100_000 {
            assert!(said.contains("the file has 5"), "{said}");
            continue;
        }
        let more = "error[too-many]: more than 1000 rows for one state and event\n";
        assert!(said.starts_with(more), "{said}");
        // The error is at the 1,001st row: the existing row after 1,000 added ones, or else one of the added rows.
        let line = 1
            + msi[..msi.find(row).expect("found before")]
                .matches('\n')
                .count()
            + 1000;
        let place = format!("rows_{count}.coh:{line}:3\n");
        assert!(said.contains(&place), "{place}: {said}");
    }
}
