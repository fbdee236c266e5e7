//! Checks that are interrupted and resumed.

use crate::{cohkit, text, transcript, without_run};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

fn model(name: &str) -> PathBuf {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models");
    models.join(name)
}

/// Command that checks this model, as JSON, with these options.
fn checking(model: &Path, options: &[&str]) -> Command {
    let mut command = cohkit(["check", "--json"]);
    command
        .arg(model)
        .args(options)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn output(mut command: Command) -> Output {
    command.output().expect("the command starts")
}

fn count(folder: &Path) -> usize {
    fs::read_dir(folder).map_or(0, Iterator::count)
}

#[cfg(unix)]
fn signal(child: &Child, name: &str) {
    let killed = Command::new("kill")
        .args([name, &child.id().to_string()])
        .status();
    assert!(killed.expect("kill runs").success());
}

#[cfg(unix)]
#[test]
fn interrupt_and_kill_preserve_checkpoints() {
    let model = &model("flash_4.m");
    let whole = output(checking(model, &["--threads", "1"]));
    assert_eq!(whole.status.code(), Some(0), "{}", transcript(&whole));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let kept = folder.path().join("kept");
    let name = kept.to_str().expect("a name in UTF-8");

    // An immediate Ctrl-C: the few states found are in a checkpoint.
    let child = checking(model, &["--checkpoint", name])
        .spawn()
        .expect("starts");
    while !kept.exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(Duration::from_millis(20));
    signal(&child, "-INT");
    let stopped = child.wait_with_output().expect("ends");
    assert_eq!(stopped.status.code(), Some(130), "{}", transcript(&stopped));
    assert_eq!(
        text(&stopped.stderr),
        format!("interrupted; `--resume {name}` continues from here\n")
    );
    assert_eq!(count(&kept), 1);

    // Killed shortly after it resumed; a temporary file is left as if a write was cut short.
    fs::write(kept.join(".cohkit-half"), "half").expect("own folder");
    let mut child = checking(model, &["--resume", name])
        .spawn()
        .expect("starts");
    std::thread::sleep(Duration::from_millis(100));
    signal(&child, "-KILL");
    child.wait().expect("ends");

    let resumed = output(checking(model, &["--resume", name, "--threads", "2"]));
    assert_eq!(resumed.status.code(), Some(0), "{}", transcript(&resumed));
    assert_eq!(without_run(&resumed), without_run(&whole));
    assert!(!kept.join(".cohkit-half").exists());

    // A check that is complete can be resumed too; no further checkpoint is written.
    let files = count(&kept);
    let again = output(checking(model, &["--resume", name]));
    assert_eq!(without_run(&again), without_run(&whole));
    assert_eq!(count(&kept), files);
}

#[test]
fn several_searches_and_components_have_files_of_their_own() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let kept = folder.path().join("kept");
    let name = kept.to_str().expect("a name in UTF-8");
    let model = model("peterson_2.m");
    let both = |option| {
        let mut command = cohkit(["check", "tests/command/tiny.coh", "--json", option, name]);
        command.arg(&model);
        output(command)
    };
    let first = both("--checkpoint");
    assert_eq!(first.status.code(), Some(0), "{}", transcript(&first));
    let mut files: Vec<_> = fs::read_dir(&kept)
        .expect("the folder is made")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    files.sort();
    assert_eq!(
        files,
        ["000-000-000000.checkpoint", "001-000-000000.checkpoint"]
    );
    assert_eq!(without_run(&both("--resume")), without_run(&first));
}

#[test]
fn invalid_checkpoints_are_rejected_with_one_message() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (kept, file) = (at("kept"), at("kept/000-000-000000.checkpoint"));
    let model = &model("peterson_2.m");
    let first = output(checking(model, &["--checkpoint", &kept]));
    assert_eq!(first.status.code(), Some(0), "{}", transcript(&first));
    let refused = |options: &[&str], code, says: &str| {
        let ended = output(checking(model, options));
        assert_eq!(ended.status.code(), Some(code), "{}", transcript(&ended));
        let message = text(&ended.stderr);
        assert!(message.contains(says), "{message}");
        assert_eq!(message.matches("error: ").count(), 1, "{message}");
    };
    refused(&["--checkpoint", &kept], 2, "already contains checkpoints");
    refused(&["--resume", &at("none")], 2, "contains no checkpoints");
    refused(&["--resume", &file], 2, "is not a folder");
    refused(
        &["--resume", &kept, "--checkpoint", &at("b")],
        2,
        "--resume",
    );
    refused(
        &["--checkpoint-every", "5"],
        2,
        "--checkpoint <DIR>|--resume <DIR>",
    );
    refused(
        &["--resume", &kept, "--deadlock", "off"],
        2,
        "other options",
    );
    let mut bytes = fs::read(&file).expect("own file");
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&file, &bytes).expect("own file");
    refused(&["--resume", &kept], 2, "the checkpoint is damaged");
    fs::write(&file, "not one").expect("own file");
    refused(&["--resume", &kept], 2, "is no checkpoint");
    refused(
        &["--checkpoint", &at("kept/000-000-000000.checkpoint/x")],
        2,
        "is not a folder",
    );
    // A search does not start anew if its first checkpoints are missing.
    fs::rename(&file, at("kept/000-000-000001.checkpoint")).expect("own file");
    refused(&["--resume", &kept], 2, "later checkpoints are");
    assert!(!Path::new(&file).exists());
}

/// Regression: two checks wrote files of the same names into one folder; both reported "verified", and left damaged
/// files.
#[cfg(unix)]
#[test]
fn checkpoint_folder_in_use_is_rejected() {
    let model = &model("flash_4.m");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let kept = folder.path().join("kept");
    let name = kept.to_str().expect("a name in UTF-8");
    let mut first = checking(model, &["--checkpoint", name])
        .spawn()
        .expect("starts");
    while count(&kept) == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    signal(&first, "-STOP");
    for option in ["--checkpoint", "--resume"] {
        let second = output(checking(model, &[option, name]));
        assert_eq!(second.status.code(), Some(4), "{}", transcript(&second));
        let message = text(&second.stderr);
        let says = format!("error: {name}: another check writes its checkpoints here\n  help: ");
        assert!(message.starts_with(&says), "{message}");
        assert!(text(&second.stdout).is_empty());
    }
    // The lock of a killed process is released.
    signal(&first, "-KILL");
    first.wait().expect("ends");
    let after = output(checking(model, &["--checkpoint", name]));
    assert_eq!(after.status.code(), Some(0), "{}", transcript(&after));
    let resumed = output(checking(model, &["--resume", name]));
    assert_eq!(without_run(&resumed), without_run(&after));
}

/// Folders that were created for checkpoints are removed if no checkpoint was written; existing folders stay.
#[test]
fn a_check_that_cannot_begin_leaves_no_folder_behind() {
    let base = tempfile::tempdir().expect("a temporary folder");
    let there = base.path().join("there");
    std::fs::create_dir(&there).expect("own folder");
    for (folder, arguments) in [
        ("there/a/b", &["none.coh"][..]),
        ("c", &["tests/command/tiny.coh", "--system", "none"]),
        ("there", &["none.coh"]),
    ] {
        let mut command = cohkit(["check", "--checkpoint"]);
        let output = command
            .arg(base.path().join(folder))
            .args(arguments)
            .output();
        assert_eq!(output.expect("starts").status.code(), Some(2), "{folder}");
    }
    let names = |folder: &std::path::Path| -> Vec<_> {
        let entries = std::fs::read_dir(folder).expect("it is there");
        entries
            .map(|entry| entry.expect("an entry").file_name())
            .collect()
    };
    assert_eq!(names(base.path()), ["there"]);
    assert!(names(&there).is_empty());
}
