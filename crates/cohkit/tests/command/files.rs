//! Output files, and errors in writing them.

use crate::require::{missing, require};
use crate::{cohkit, text, tiny};
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder)
        .expect("the folder can be read")
        .next()
        .is_none()
}

#[test]
fn file_output_equals_standard_output() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("table.md");
    let to_stdout = cohkit([Path::new("table"), &tiny()])
        .output()
        .expect("the command starts");
    let to_file = cohkit([Path::new("table"), &tiny(), Path::new("--out"), &file])
        .output()
        .expect("the command starts");
    assert!(to_file.status.success());
    assert!(to_file.stdout.is_empty() && to_file.stderr.is_empty());
    assert_eq!(
        fs::read(&file).expect("the file can be read"),
        to_stdout.stdout
    );
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
}

#[test]
fn closed_output_pipe_is_not_an_error() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let output = cohkit([Path::new("table"), &tiny()])
        .stdout(writer)
        .stderr(Stdio::piped())
        .output()
        .expect("the command starts");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(&output.stderr), "");
}

#[cfg(target_os = "linux")]
#[test]
fn full_standard_output_is_reported() {
    let full_device = File::options()
        .write(true)
        .open("/dev/full")
        .expect("the file can be opened");
    let output = cohkit([Path::new("table"), &tiny()])
        .stdout(full_device)
        .stderr(Stdio::piped())
        .output()
        .expect("the command starts");
    assert_eq!(output.status.code(), Some(4));
    assert!(text(&output.stderr).contains("standard output cannot be written"));
}

/// Runs a script, in which `$cohkit`, `$text` and `$folder` are set, under a command that restricts it. Returns the
/// exit code, standard error, and the folder that contains these three; `None` if this machine does not allow the
/// restriction.
#[cfg(target_os = "linux")]
fn script(wrapper: &[&str], script: &str) -> Option<(Option<i32>, String, tempfile::TempDir)> {
    use std::os::unix::fs::PermissionsExt;
    let base = tempfile::tempdir().expect("a temporary folder");
    fs::set_permissions(base.path(), fs::Permissions::from_mode(0o755))
        .expect("permissions can be set");
    // Another user may have no access to the build folder.
    let binary = base.path().join("cohkit");
    fs::copy(env!("CARGO_BIN_EXE_cohkit"), &binary).expect("the binary can be copied");
    let copy = base.path().join("tiny.coh");
    fs::copy(tiny(), &copy).expect("the file can be copied");
    let folder = base.path().join("folder");
    fs::create_dir(&folder).expect("the folder can be created");
    let mut command = Command::new(wrapper[0]);
    command
        .args(&wrapper[1..])
        .args(["bash", "-c", &format!("echo started >&2; {script}")])
        .env("cohkit", &binary)
        .env("text", &copy)
        .env("folder", &folder)
        .current_dir(base.path())
        .stdin(Stdio::null());
    let output = command.output().ok()?;
    let message = text(&output.stderr);
    let message = message.strip_prefix("started\n")?.to_string();
    Some((output.status.code(), message, base))
}

#[cfg(target_os = "linux")]
#[test]
fn read_only_folder_is_reported_and_stays_empty() {
    let attempt =
        r#"chmod a-w "$folder" 2> /dev/null; exec "$cohkit" table "$text" --out "$folder/out""#;
    // Permissions do not restrict root, so the script runs as another user.
    let as_nobody = [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
    ];
    let (code, message, base) = script(&as_nobody, attempt)
        .or_else(|| script(&["env"], attempt))
        .expect("bash runs");
    assert_eq!(code, Some(4), "{message}");
    assert!(
        message.contains("no permission to write there; nothing was written"),
        "{message}"
    );
    assert!(is_empty(&base.path().join("folder")));
}

#[cfg(target_os = "linux")]
#[test]
fn file_size_limit_is_reported_without_leftovers() {
    let attempt = r#"ulimit -f 0; exec "$cohkit" table "$text" --out "$folder/out""#;
    let (code, message, base) = script(&["env"], attempt).expect("bash runs");
    assert_eq!(code, Some(4), "{message}");
    let expected = "the limit on the size of files is reached; nothing was written";
    assert!(message.contains(expected), "{message}");
    assert!(is_empty(&base.path().join("folder")));
}

#[cfg(target_os = "linux")]
#[test]
fn checkpoints_on_a_full_disk_end_the_check() {
    if !require("mounts") {
        return;
    }
    let full_disk = r#"
        mount -t tmpfs -o size=4k none "$folder" && echo mounted >&2 || exit 99
        head -c 4096 /dev/zero > "$folder/filler"
        exec "$cohkit" check "$text" --checkpoint "$folder""#;
    let Some((code, message, _base)) =
        script(&["unshare", "--mount", "--map-root-user"], full_disk)
    else {
        panic!("{}", missing("mounts"));
    };
    let Some((_, message)) = message.split_once("mounted\n") else {
        panic!("{}", missing("mounts"));
    };
    assert_eq!(code, Some(4), "{message}");
    assert!(message.contains("the disk is full"), "{message}");
}

/// The disk becomes full while states move there. With more room, the check continues from the last checkpoint.
#[cfg(target_os = "linux")]
#[test]
fn check_with_states_on_a_full_disk_continues_later() {
    if !require("mounts") {
        return;
    }
    let full_disk = format!(
        r#"
        mount -t tmpfs -o size=1m none "$folder" && echo mounted >&2 || exit 99
        check="$cohkit check {}/../../models/flash_4.m --disk --max-memory 4MB"
        $check --checkpoint "$folder/kept" >&2; code=$?
        mount -o remount,size=100m "$folder"
        $check --resume "$folder/kept" >&2
        exit $code"#,
        env!("CARGO_MANIFEST_DIR")
    );
    let Some((code, message, _base)) =
        script(&["unshare", "--mount", "--map-root-user"], &full_disk)
    else {
        panic!("{}", missing("mounts"));
    };
    let Some((_, message)) = message.split_once("mounted\n") else {
        panic!("{}", missing("mounts"));
    };
    assert_eq!(code, Some(4), "{message}");
    assert!(message.contains("the disk is full"), "{message}");
    assert!(message.contains("continues from here"), "{message}");
    assert!(message.contains("flash_4: verified: "), "{message}");
}

#[cfg(target_os = "linux")]
#[test]
fn full_disk_is_reported_without_leftovers() {
    if !require("mounts") {
        return;
    }
    let full_disk = r#"
        mount -t tmpfs -o size=4k none "$folder" && echo mounted >&2 || exit 99
        head -c 4096 /dev/zero > "$folder/filler"
        "$cohkit" table "$text" --out "$folder/out"; code=$?
        ls -A "$folder" >&2
        exit $code"#;
    let Some((code, message, _base)) =
        script(&["unshare", "--mount", "--map-root-user"], full_disk)
    else {
        panic!("{}", missing("mounts"));
    };
    let Some((_, message)) = message.split_once("mounted\n") else {
        panic!("{}", missing("mounts"));
    };
    assert_eq!(code, Some(4), "{message}");
    assert!(
        message.contains("the disk is full; nothing was written"),
        "{message}"
    );
    assert!(
        message.ends_with("on another disk\nfiller\n"),
        "something was left: {message}"
    );
}

/// Writes the timeline during the run: a disk that becomes full is reported at the end, and the partial file is
/// removed.
#[cfg(target_os = "linux")]
#[test]
fn full_disk_during_a_run_is_reported_without_leftovers() {
    if !require("mounts") {
        return;
    }
    let full_disk = r#"
        mount -t tmpfs -o size=1m none "$folder" && echo mounted >&2 || exit 99
        "$cohkit" sim enzian-dc-ddr random-read --accesses 20000 --timeline "$folder/run" >&2; code=$?
        ls -A "$folder" >&2
        exit $code"#;
    let Some((code, message, _base)) =
        script(&["unshare", "--mount", "--map-root-user"], full_disk)
    else {
        panic!("{}", missing("mounts"));
    };
    let Some((_, message)) = message.split_once("mounted\n") else {
        panic!("{}", missing("mounts"));
    };
    assert_eq!(code, Some(4), "{message}");
    assert!(
        message.contains("the disk is full; nothing was written")
            && message.ends_with("on another disk\n"),
        "{message}"
    );
}

/// A partial file is removed when the run is interrupted, and the existing file stays unchanged.
#[cfg(unix)]
#[test]
fn interrupted_run_leaves_no_timeline() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("run.pftrace");
    fs::write(&file, "kept").expect("the file can be written");
    let arguments = ["sim", "enzian-cohkit", "random-mixed", "--accesses"];
    let mut child = cohkit(arguments)
        .args(["1000000000", "--timeline"])
        .arg(&file)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the command starts");
    let file_count = || {
        fs::read_dir(folder.path())
            .expect("the folder exists")
            .count()
    };
    while file_count() < 2 {
        assert!(child
            .try_wait()
            .expect("the command can be polled")
            .is_none());
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let status = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(status.expect("kill runs").success());
    assert_eq!(child.wait().expect("the command ends").code(), Some(130));
    assert_eq!(file_count(), 1);
    assert_eq!(
        fs::read_to_string(&file).expect("the file can be read"),
        "kept"
    );
}

/// A correct model of two states.
const MODEL: &str = "var a: boolean; startstate begin a := false; end; rule begin a := !a; end;";

#[test]
fn exported_models_replace_no_model() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (first_folder, second_folder) = (folder.path().join("one"), folder.path().join("two"));
    let file = first_folder.join("m.m");
    for model_folder in [&first_folder, &second_folder] {
        fs::create_dir(model_folder).expect("a folder");
        fs::write(model_folder.join("m.m"), MODEL).expect("a model");
    }
    let run = |arguments: &[&Path]| {
        let output = (cohkit(["check"]).args(arguments)).output();
        let output = output.expect("the command starts");
        (output.status.code(), text(&output.stderr))
    };
    let (code, stderr) = run(&[&file, Path::new("--export-murphi"), &first_folder]);
    assert!(
        code == Some(2) && stderr.contains("would overwrite this model"),
        "{stderr}"
    );
    assert_eq!(
        fs::read_to_string(&file).expect("the file can be read"),
        MODEL
    );
    for option in ["--export-murphi", "--chart-svg"] {
        let output_folder = folder.path().join("three");
        let (code, stderr) = run(&[
            &file,
            &second_folder.join("m.m"),
            Path::new(option),
            &output_folder,
        ]);
        assert!(
            code == Some(2) && stderr.contains("files of the same name"),
            "{stderr}"
        );
    }
}

#[test]
fn model_without_start_states_is_warned_of() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("m.m");
    fs::write(&file, format!("{MODEL} assume a;")).expect("a model");
    let output = cohkit([Path::new("check"), &file])
        .output()
        .expect("the command starts");
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stderr).contains("no start state is left"));
    // A start state that violates an assertion counts as a start state.
    let failing = MODEL.replace("a := false;", "a := false; assert a;");
    fs::write(&file, failing).expect("a model");
    let output = cohkit([Path::new("check"), &file])
        .output()
        .expect("the command starts");
    assert_eq!(output.status.code(), Some(1));
    assert!(!text(&output.stderr).contains("no start state is left"));
}
