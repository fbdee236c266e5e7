//! Files that a check writes, and those that it must not leave behind.

use super::{forgetful_msi, shipped_protocol};
use crate::{cohkit, interrupt, text, tiny, transcript};
use std::fs;
use std::path::Path;
use std::process::Stdio;

#[test]
fn charts_and_models_are_written_into_folders() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = forgetful_msi(folder.path());
    let (charts, models) = (folder.path().join("a/charts"), folder.path().join("models"));
    let output = cohkit(["check", "--system", "three_caches", "--chart-svg"])
        .args([&charts, Path::new("--export-murphi"), &models, &file])
        .output()
        .expect("the command starts");
    assert_eq!(output.status.code(), Some(1));
    let svg = fs::read_to_string(charts.join("msi-three_caches.svg")).expect("a chart");
    assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
    let murphi = fs::read_to_string(models.join("msi-three_caches.m")).expect("a model");
    assert!(murphi.contains("startstate") && murphi.contains("invariant"));
    // The exported model covers fewer properties, and states so.
    let header: Vec<&str> = murphi.lines().take_while(|l| l.starts_with("--")).collect();
    let header = header.join("\n");
    assert!(header.contains("Not in this model: progress"), "{header}");
    assert!(header.contains("without the spontaneous ones"), "{header}");
    // A file is in the place of a folder.
    let output = cohkit(["check", "--chart-svg"])
        .args([&file, &file])
        .output()
        .expect("the command starts");
    assert_eq!(output.status.code(), Some(4));
    assert!(text(&output.stderr).contains("a file exists where a folder is needed"));
}

#[test]
fn unwritable_output_is_reported_before_the_search() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let missing = folder.path().join("missing/result.json");
    let models = folder.path().join("models");
    // A search of this system would take hours.
    let output = cohkit(["check", "--remotes", "4", "--lines", "4", "--export-murphi"])
        .args([
            &models,
            Path::new("--out"),
            &missing,
            &shipped_protocol("moesi.coh"),
        ])
        .output()
        .expect("the command starts");
    assert_eq!(output.status.code(), Some(4));
    let message = text(&output.stderr);
    assert!(message.contains("make the folder first"), "{message}");
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
}

#[test]
fn texts_of_one_name_are_not_exported_over_each_other() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let second = folder.path().join("second.coh");
    fs::copy(tiny(), &second).expect("the file can be copied");
    let models = folder.path().join("models");
    let output = cohkit(["check", "tests/command/tiny.coh", "--export-murphi"])
        .args([&models, &second])
        .output()
        .expect("the command starts");
    assert_eq!(output.status.code(), Some(2), "{}", transcript(&output));
    assert!(output.stdout.is_empty() && !models.exists());
    let message = text(&output.stderr);
    let second_name = second.display().to_string();
    for expected in ["tests/command/tiny.coh", &second_name, "`tiny`"] {
        assert!(message.contains(expected), "{message}");
    }
    // Without files to write, names may be equal.
    let output = cohkit(["check", "tests/command/tiny.coh"])
        .arg(&second)
        .output()
        .expect("the command starts");
    assert_eq!(output.status.code(), Some(0));
}

#[cfg(unix)]
#[test]
fn control_c_stops_soon_and_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let result = folder.path().join("result.json");
    // A search of this system would take hours.
    let mut child = cohkit(["check", "--remotes", "4", "--lines", "2", "--json", "--out"])
        .args([&result, &shipped_protocol("moesi.coh")])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    interrupt(&mut child);
    let output = child.wait_with_output().expect("the command ends");
    assert_eq!(output.status.code(), Some(130), "{}", transcript(&output));
    assert_eq!(text(&output.stderr), "interrupted\n");
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
}
