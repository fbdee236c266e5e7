//! Tests of `cohkit library`, which writes the library for programs on cores beside far memory.

use crate::require::require;
use crate::{cohkit, text, transcript};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{fs, io};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn library(folder: &Path) -> Output {
    let mut command = cohkit(["library"]);
    command.arg(folder).output().expect("it starts")
}

/// Paths of the files in a folder and its subfolders, relative to it.
fn files(folder: &Path, name: &str) -> io::Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder.join(name))? {
        let entry = entry?;
        let name = format!("{name}/{}", entry.file_name().to_string_lossy());
        match entry.file_type()?.is_dir() {
            true => found.extend(files(folder, &name)?),
            false => _ = found.insert(name),
        }
    }
    Ok(found)
}

#[test]
fn written_library_matches_the_checkout() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("new/place");
    let said = transcript(&library(&place));
    assert!(said.starts_with("exit code 0\n"), "{said}");
    for part in ["nearmemory", "docs/riscv/accumulator", "docs/riscv/arrays"] {
        let here = files(&root(), part).expect("they can be read");
        assert!(here.len() > 1, "{here:?}");
        assert_eq!(files(&place, part).expect("they can be read"), here);
        for name in here {
            let [here, there] = [root(), place.clone()].map(|folder| fs::read(folder.join(&name)));
            assert_eq!(here.expect("is there"), there.expect("is there"), "{name}");
        }
    }
    // A second call changes nothing, and a file that the user has changed stays.
    assert_eq!(transcript(&library(&place)), said);
    let changed = place.join("nearmemory/host.h");
    fs::write(&changed, "// mine").expect("it can be written");
    let gone = place.join("nearmemory/channel.h");
    fs::remove_file(&gone).expect("it is there");
    assert_eq!(
        transcript(&library(&place)),
        format!(
            "exit code 2\n--- stderr\nerror: {}: already exists, and differs from the shipped file\n  help: remove it, or choose another folder\n",
            changed.display()
        )
    );
    assert_eq!(fs::read(changed).expect("it is there"), b"// mine");
    assert!(!gone.exists());
    let file = folder.path().join("file");
    fs::write(&file, "").expect("it can be written");
    let said = transcript(&library(&file));
    assert!(
        said.starts_with("exit code 4\n--- stderr\nerror: "),
        "{said}"
    );
}

#[test]
fn printed_next_steps_work_in_the_written_library() {
    if !require("riscv-gcc") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let output = library(folder.path());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    let (_, next) = said.split_once(":\n\n").expect("it tells what to do");
    let next = next.replace(
        "  cohkit ",
        &format!("  '{}' ", env!("CARGO_BIN_EXE_cohkit")),
    );
    let mut command = Command::new("bash");
    let command = command.args(["-euc", &next]).current_dir(folder.path());
    let output = command.output().expect("bash starts");
    assert_eq!(
        transcript(&output),
        "exit code 0\nbeside far memory: 1000 numbers\ntheir sum is 500500\nthe program has ended by itself, with 0\n"
    );
}
