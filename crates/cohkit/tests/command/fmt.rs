//! Tests of `cohkit fmt`: files in place, standard input, and `--check`.

use crate::{cohkit, text, transcript};
use std::fs;
use std::io::Write;
use std::process::Stdio;

/// A file with the same words and comments as [`FORMATTED`].
const UNFORMATTED: &str =
    "protocol p \"t\" # noted\nremote cache {\nstates { I }\nI|load|send Get|I\n}\n";
const FORMATTED: &str =
    "protocol p \"t\"  # noted\nremote cache {\n  states { I }\n  I | load | send Get | I\n}\n";

#[test]
fn fmt_in_place_keeps_file_permissions() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("p.coh");
    fs::write(&file, UNFORMATTED).expect("the file can be written");
    #[cfg(unix)]
    let mode = {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640))
            .expect("permissions can be set");
        || {
            fs::metadata(&file)
                .expect("the file exists")
                .permissions()
                .mode()
                & 0o777
        }
    };
    let check = cohkit(["fmt".as_ref(), "--check".as_ref(), file.as_os_str()]).output();
    let check = check.expect("the command starts");
    assert_eq!(check.status.code(), Some(1));
    assert!(text(&check.stderr).contains("is not formatted"));
    assert_eq!(
        fs::read_to_string(&file).expect("the file can be read"),
        UNFORMATTED
    );
    let formatted = cohkit(["fmt".as_ref(), file.as_os_str()])
        .output()
        .expect("the command starts");
    assert_eq!(transcript(&formatted), "exit code 0\n");
    assert_eq!(
        fs::read_to_string(&file).expect("the file can be read"),
        FORMATTED
    );
    #[cfg(unix)]
    assert_eq!(mode(), 0o640);
    let check = cohkit(["fmt".as_ref(), "--check".as_ref(), file.as_os_str()]).output();
    assert_eq!(
        transcript(&check.expect("the command starts")),
        "exit code 0\n"
    );
}

#[test]
fn fmt_dash_formats_standard_input_to_standard_output() {
    let mut command = cohkit(["fmt", "-"]);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("the command starts");
    let mut input = child.stdin.take().expect("standard input is piped");
    input
        .write_all(UNFORMATTED.as_bytes())
        .expect("the bytes can be written");
    drop(input);
    let output = child.wait_with_output().expect("the command ends");
    assert_eq!(text(&output.stdout), FORMATTED);
}

#[test]
fn fmt_reports_invalid_characters_and_formats_other_files() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (invalid, valid) = (
        folder.path().join("bad.coh"),
        folder.path().join("good.coh"),
    );
    fs::write(&invalid, "protocol p\nI | load ? | I\n").expect("the file can be written");
    fs::write(&valid, UNFORMATTED).expect("the file can be written");
    let output = cohkit(["fmt".as_ref(), invalid.as_os_str(), valid.as_os_str()]).output();
    let output = output.expect("the command starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("`?` has no meaning here"));
    assert!(text(&output.stderr).contains("bad.coh:2:10"));
    assert_eq!(
        fs::read_to_string(&invalid).expect("the file can be read"),
        "protocol p\nI | load ? | I\n"
    );
    assert_eq!(
        fs::read_to_string(&valid).expect("the file can be read"),
        FORMATTED
    );
}

#[test]
fn fmt_of_a_shipped_name_suggests_cohkit_list() {
    let output = cohkit(["fmt", "msi"]).output().expect("the command starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("`cohkit list msi --out msi.coh` writes it to one"));
}
