//! Checks that are interrupted and resumed.

use crate::{cohkit, text, transcript, without_run};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// Path of a shipped Murphi model.
fn model(name: &str) -> PathBuf {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models");
    models.join(name)
}

/// Command that checks this model, as JSON, with these options.
fn check_command(model: &Path, options: &[&str]) -> Command {
    let mut command = cohkit(["check", "--json"]);
    command
        .arg(model)
        .args(options)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn run_command(mut command: Command) -> Output {
    command.output().expect("the command starts")
}

/// Number of entries of a folder; 0 if it does not exist.
fn file_count(folder: &Path) -> usize {
    fs::read_dir(folder).map_or(0, Iterator::count)
}

/// Number of checkpoints in a folder.
#[cfg(unix)]
fn checkpoint_count(folder: &Path) -> usize {
    let Ok(entries) = fs::read_dir(folder) else {
        return 0;
    };
    let names = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let is_checkpoint = |path: &PathBuf| path.extension().is_some_and(|end| end == "checkpoint");
    names.filter(is_checkpoint).count()
}

/// Sends a signal, such as `-KILL`, to a command.
#[cfg(unix)]
fn signal(child: &Child, name: &str) {
    let status = Command::new("kill")
        .args([name, &child.id().to_string()])
        .status();
    assert!(status.expect("kill runs").success());
}

#[cfg(unix)]
#[test]
fn interrupt_and_kill_preserve_checkpoints() {
    let model = &model("flash_4.m");
    let uninterrupted = run_command(check_command(model, &["--threads", "1"]));
    assert_eq!(
        uninterrupted.status.code(),
        Some(0),
        "{}",
        transcript(&uninterrupted)
    );
    let folder = tempfile::tempdir().expect("a temporary folder");
    let checkpoint_folder = folder.path().join("kept");
    let folder_name = checkpoint_folder.to_str().expect("the path is UTF-8");

    // An immediate Ctrl-C: the few states found are in a checkpoint.
    let child = check_command(model, &["--checkpoint", folder_name])
        .spawn()
        .expect("the command starts");
    while !checkpoint_folder.exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(Duration::from_millis(20));
    signal(&child, "-INT");
    let interrupted = child.wait_with_output().expect("the command ends");
    assert_eq!(
        interrupted.status.code(),
        Some(130),
        "{}",
        transcript(&interrupted)
    );
    assert_eq!(
        text(&interrupted.stderr),
        format!("interrupted; `--resume {folder_name}` continues from here\n")
    );
    assert_eq!(file_count(&checkpoint_folder), 1);

    // Killed shortly after it resumed; a temporary file is left as if a write was cut short.
    fs::write(checkpoint_folder.join(".cohkit-half"), "half").expect("the file can be written");
    let mut child = check_command(model, &["--resume", folder_name])
        .spawn()
        .expect("the command starts");
    std::thread::sleep(Duration::from_millis(100));
    signal(&child, "-KILL");
    child.wait().expect("the command ends");

    let resumed = run_command(check_command(
        model,
        &["--resume", folder_name, "--threads", "2"],
    ));
    assert_eq!(resumed.status.code(), Some(0), "{}", transcript(&resumed));
    assert_eq!(without_run(&resumed), without_run(&uninterrupted));
    assert!(!checkpoint_folder.join(".cohkit-half").exists());

    // A check that is complete can be resumed too; no further checkpoint is written.
    let files = file_count(&checkpoint_folder);
    let rerun = run_command(check_command(model, &["--resume", folder_name]));
    assert_eq!(without_run(&rerun), without_run(&uninterrupted));
    assert_eq!(file_count(&checkpoint_folder), files);
}

/// With states on disk, the result is that of a check in memory, also after a kill, and checkpoints are written without
/// a clock.
#[cfg(unix)]
#[test]
fn check_with_states_on_disk_survives_a_kill() {
    let model = &model("flash_4.m");
    let in_memory = run_command(check_command(model, &[]));
    assert_eq!(
        in_memory.status.code(),
        Some(0),
        "{}",
        transcript(&in_memory)
    );
    let folder = tempfile::tempdir().expect("a temporary folder");
    let checkpoint_folder = folder.path().join("kept");
    let folder_name = checkpoint_folder.to_str().expect("the path is UTF-8");
    let disk_command = |option| {
        let limit = ["--disk", "--max-memory", "4MB", option, folder_name];
        check_command(
            model,
            &[&limit[..], &["--checkpoint-every", "3600"]].concat(),
        )
    };
    let mut child = disk_command("--checkpoint")
        .spawn()
        .expect("the command starts");
    while checkpoint_count(&checkpoint_folder) == 0 {
        let status = child.try_wait().expect("the state of the command is known");
        assert!(status.is_none(), "the check ended early: {status:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
    signal(&child, "-KILL");
    child.wait().expect("the command ends");

    let killed_after = checkpoint_count(&checkpoint_folder);
    let resumed = run_command(disk_command("--resume"));
    assert_eq!(resumed.status.code(), Some(0), "{}", transcript(&resumed));
    assert_eq!(without_run(&resumed), without_run(&in_memory));
    assert!(checkpoint_count(&checkpoint_folder) > killed_after);
    // A check in memory continues from the same files.
    let rerun = run_command(check_command(model, &["--resume", folder_name]));
    assert_eq!(without_run(&rerun), without_run(&in_memory));
}

#[test]
fn disk_needs_a_folder_and_complete_states() {
    for (options, reason) in [
        (&["--disk"][..], "required arguments were not provided"),
        (
            &["--disk", "--checkpoint", "nowhere", "--hash-compaction"],
            "cannot be used with '--hash-compaction'",
        ),
        (
            &["--disk", "--checkpoint", "nowhere", "--coverage"],
            "cannot be used with '--coverage'",
        ),
    ] {
        let output = run_command(check_command(&model("peterson_2.m"), options));
        assert_eq!(output.status.code(), Some(2), "{}", transcript(&output));
        let stderr = text(&output.stderr);
        assert!(stderr.contains(reason), "{stderr}");
    }
}

#[test]
fn searches_and_components_have_separate_files() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let checkpoint_folder = folder.path().join("kept");
    let folder_name = checkpoint_folder.to_str().expect("the path is UTF-8");
    let model = model("peterson_2.m");
    let check_both = |option| {
        let mut command = cohkit([
            "check",
            "tests/command/tiny.coh",
            "--json",
            option,
            folder_name,
        ]);
        command.arg(&model);
        run_command(command)
    };
    let first_run = check_both("--checkpoint");
    assert_eq!(
        first_run.status.code(),
        Some(0),
        "{}",
        transcript(&first_run)
    );
    let mut files: Vec<_> = fs::read_dir(&checkpoint_folder)
        .expect("the folder exists")
        .map(|entry| entry.expect("the folder entry can be read").file_name())
        .collect();
    files.sort();
    assert_eq!(
        files,
        ["000-000-000000.checkpoint", "001-000-000000.checkpoint"]
    );
    assert_eq!(
        without_run(&check_both("--resume")),
        without_run(&first_run)
    );
}

#[test]
fn invalid_checkpoints_are_rejected_with_one_message() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (checkpoint_folder, file) = (path("kept"), path("kept/000-000-000000.checkpoint"));
    let model = &model("peterson_2.m");
    let first_run = run_command(check_command(model, &["--checkpoint", &checkpoint_folder]));
    assert_eq!(
        first_run.status.code(),
        Some(0),
        "{}",
        transcript(&first_run)
    );
    let assert_rejected = |options: &[&str], code, expected: &str| {
        let output = run_command(check_command(model, options));
        assert_eq!(output.status.code(), Some(code), "{}", transcript(&output));
        let message = text(&output.stderr);
        assert!(message.contains(expected), "{message}");
        assert_eq!(message.matches("error: ").count(), 1, "{message}");
    };
    assert_rejected(
        &["--checkpoint", &checkpoint_folder],
        2,
        "already contains checkpoints",
    );
    assert_rejected(&["--resume", &path("none")], 2, "contains no checkpoints");
    assert_rejected(&["--resume", &file], 2, "is not a folder");
    assert_rejected(
        &["--resume", &checkpoint_folder, "--checkpoint", &path("b")],
        2,
        "--resume",
    );
    assert_rejected(
        &["--checkpoint-every", "5"],
        2,
        "--checkpoint <DIR>|--resume <DIR>",
    );
    assert_rejected(
        &["--resume", &checkpoint_folder, "--deadlock", "off"],
        2,
        "other options",
    );
    let mut bytes = fs::read(&file).expect("the file can be read");
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&file, &bytes).expect("the file can be written");
    assert_rejected(
        &["--resume", &checkpoint_folder],
        2,
        "the checkpoint is damaged",
    );
    fs::write(&file, "not one").expect("the file can be written");
    assert_rejected(&["--resume", &checkpoint_folder], 2, "is not a checkpoint");
    assert_rejected(
        &["--checkpoint", &path("kept/000-000-000000.checkpoint/x")],
        2,
        "is not a folder",
    );
    // A search does not start anew if its first checkpoints are missing.
    fs::rename(&file, path("kept/000-000-000001.checkpoint")).expect("the file can be renamed");
    assert_rejected(
        &["--resume", &checkpoint_folder],
        2,
        "is missing, but the search needs it",
    );
    assert!(!Path::new(&file).exists());
}

/// Regression: two checks wrote files of the same names into one folder; both reported "verified", and left damaged
/// files.
#[cfg(unix)]
#[test]
fn checkpoint_folder_in_use_is_rejected() {
    let model = &model("flash_4.m");
    // On a busy computer a check may end before it is stopped: the next one has a folder of its own.
    let (_folder, checkpoint_folder, mut first) = loop {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let checkpoint_folder = folder.path().join("kept");
        let name = checkpoint_folder.to_str().expect("the path is UTF-8");
        let mut first = check_command(model, &["--checkpoint", name])
            .spawn()
            .expect("the command starts");
        while file_count(&checkpoint_folder) == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        signal(&first, "-STOP");
        if first.try_wait().expect("a state").is_none() {
            break (folder, checkpoint_folder, first);
        }
    };
    let folder_name = checkpoint_folder.to_str().expect("the path is UTF-8");
    for option in ["--checkpoint", "--resume"] {
        let second = run_command(check_command(model, &[option, folder_name]));
        assert_eq!(second.status.code(), Some(4), "{}", transcript(&second));
        let message = text(&second.stderr);
        let expected =
            format!("error: {folder_name}: another check writes its checkpoints here\n  help: ");
        assert!(message.starts_with(&expected), "{message}");
        assert!(text(&second.stdout).is_empty());
    }
    // The lock of a killed process is released.
    signal(&first, "-KILL");
    first.wait().expect("the command ends");
    let unlocked_run = run_command(check_command(model, &["--checkpoint", folder_name]));
    assert_eq!(
        unlocked_run.status.code(),
        Some(0),
        "{}",
        transcript(&unlocked_run)
    );
    let resumed = run_command(check_command(model, &["--resume", folder_name]));
    assert_eq!(without_run(&resumed), without_run(&unlocked_run));
}

/// Folders that were created for checkpoints are removed if no checkpoint was written; existing folders stay.
#[test]
fn failed_start_of_a_check_leaves_no_folder() {
    let base = tempfile::tempdir().expect("a temporary folder");
    let existing = base.path().join("there");
    std::fs::create_dir(&existing).expect("the folder can be created");
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
        assert_eq!(
            output.expect("the command starts").status.code(),
            Some(2),
            "{folder}"
        );
    }
    let names = |folder: &std::path::Path| -> Vec<_> {
        let entries = std::fs::read_dir(folder).expect("the folder exists");
        entries
            .map(|entry| entry.expect("the folder entry can be read").file_name())
            .collect()
    };
    assert_eq!(names(base.path()), ["there"]);
    assert!(names(&existing).is_empty());
}
