//! `cohkit litmus` from outside.

use crate::{cohkit, text};
use serde_json::Value;

/// The exit code, and what was printed.
fn litmus(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = cohkit(["litmus"]).args(arguments).output().expect("starts");
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

#[test]
fn the_condition_of_the_file_decides() {
    let sb = "../../litmus/SB.litmus";
    let fenced = "../../litmus/SB+dmbs.litmus";
    let mesi = ["--protocol", "../../protocols/mesi.coh"];
    assert_eq!(litmus(&[sb]).0, Some(1));
    assert_eq!(litmus(&[sb, "--cores", "store-buffer"]).0, Some(0));
    assert_eq!(litmus(&[fenced, "--cores", "store-buffer"]).0, Some(0));
    let (code, shown, _) = litmus(&[&[sb, "--cores", "store-buffer"][..], &mesi].concat());
    assert_eq!(code, Some(0), "{shown}");
    assert!(
        shown.contains("exactly the ends of total store order"),
        "{shown}"
    );
    let few = [&[sb, "--max-states", "100"][..], &mesi].concat();
    let (code, shown, _) = litmus(&few);
    assert_eq!(code, Some(3), "{shown}");
    assert!(shown.contains("`--max-states N` visits more"), "{shown}");
}

#[test]
fn json_says_what_is_allowed_and_what_is_found() {
    let (code, shown, _) = litmus(&[
        "../../litmus/MP.litmus",
        "--protocol",
        "../../protocols/msi.coh",
        "--json",
    ]);
    assert_eq!(code, Some(0));
    let all: Value = serde_json::from_str(&shown).expect("JSON");
    let test = &all[0];
    assert_eq!(test["outcome"], "yes");
    assert_eq!(test["ends"].as_array().map(Vec::len), Some(3));
    assert_eq!(test["allowed"], 3);
    assert_eq!(test["ends"][0]["values"]["1:X0"], 0);
    assert!(test["ends"]
        .as_array()
        .is_some_and(|ends| ends.iter().all(|end| end["allowed"] == true)));
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("wrong.litmus");
    std::fs::write(&file, "AArch64 wrong\n{ 0:X1=x; }\n P0 ;\n LDX W0,[X1] ;\n").expect("written");
    let (code, _, said) = litmus(&[file.to_str().expect("a path")]);
    assert_eq!(code, Some(2));
    assert!(
        said.contains("`LDX` is no instruction that is read here"),
        "{said}"
    );
    assert!(said.contains("wrong.litmus:4:2"), "{said}");
    let (code, _, said) = litmus(&["none.litmus"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("none.litmus: no such file"), "{said}");
}

/// A cache that keeps its copy where it should lose it: the protocol is told to be wrong, whatever the test asks.
#[test]
fn a_fault_of_the_protocol_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = std::fs::read_to_string("../../protocols/msi.coh").expect("it ships");
    let row = text
        .lines()
        .find(|line| line.trim_start().starts_with("S ") && line.contains("| Inv "))
        .expect("a row");
    let kept = match row.rfind('|') {
        Some(place) => format!("{}| stay", &row[..place]),
        None => panic!("{row}"),
    };
    let file = folder.path().join("kept.coh");
    std::fs::write(&file, text.replace(row, &kept)).expect("written");
    let path = file.to_str().expect("a path");
    let (code, shown, said) = litmus(&["../../litmus/SB.litmus", "--protocol", path]);
    assert_eq!(code, Some(1), "{shown}{said}");
    assert!(shown.contains("violated: "), "{shown}");
}
