//! Dependencies point in one direction: among crates, and among the modules of each folder.

use super::root;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Layer of each crate. A crate may depend only on crates of lower layers.
const CRATE_LAYERS: &[(&str, u32)] = &[
    ("cohkit-base", 0),
    ("cohkit-riscv", 0),
    ("cohkit-link", 0),
    ("cohkit-protocol", 1),
    ("cohkit-chart", 1),
    ("cohkit-engine", 1),
    ("cohkit-system", 2),
    ("cohkit-application", 2),
    ("cohkit-murphi", 2),
    ("cohkit-check", 3),
    ("cohkit-play", 3),
    ("cohkit-trace", 2),
    ("cohkit-sim", 3),
    ("cohkit-nearmemory", 4),
    ("cohkit-litmus", 4),
    ("cohkit-rtl", 4),
    ("cohkit-mutants", 5),
    ("cohkit", 6),
    ("cohkit-python", 7),
];

/// Folders of crates whose modules still have dependency cycles.
const CYCLIC_FOLDERS: &[(&str, &str)] = &[("cohkit-sim", "")];

/// Packages of the workspace, from `cargo metadata`.
fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--no-deps",
            "--offline",
            "--format-version",
            "1",
        ])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo prints JSON");
    let packages = metadata["packages"].as_array().expect("a list").clone();
    assert!(!packages.is_empty());
    packages
}

#[test]
fn crates_depend_only_on_lower_layers() {
    let floor = |name: &str| {
        CRATE_LAYERS
            .iter()
            .find(|(crate_name, _)| *crate_name == name)
            .map(|&(_, floor)| floor)
    };
    for package in packages() {
        let name = package["name"].as_str().expect("a name");
        let own = floor(name).unwrap_or_else(|| panic!("give the crate {name} a floor in FLOORS"));
        for dependency in package["dependencies"].as_array().expect("a list") {
            // Tests may depend on any crate; shipped code only on lower layers.
            if dependency["kind"] == "dev" {
                continue;
            }
            let below = dependency["name"].as_str().expect("a name");
            if let Some(floor) = floor(below) {
                assert!(floor < own, "{name} must not depend on {below}");
            }
        }
    }
}

#[test]
fn modules_have_no_cyclic_dependencies() {
    let mut left: BTreeSet<(&str, &str)> = CYCLIC_FOLDERS.iter().copied().collect();
    for package in packages() {
        let name = package["name"].as_str().expect("a name");
        let manifest = Path::new(package["manifest_path"].as_str().expect("a path"));
        let source = manifest.parent().expect("a folder").join("src");
        for folder in folders(&source) {
            let inside = folder.strip_prefix(&source).expect("a folder below it");
            let inside = inside.display().to_string();
            let uses = modules(&source, &folder);
            let circle = uses.keys().find_map(|module| circle(&uses, module));
            let known = CYCLIC_FOLDERS
                .iter()
                .find(|known| **known == (name, &inside));
            match (circle, known) {
                (Some(circle), None) => panic!(
                    "{name}: in src/{inside}, {} use each other in a circle",
                    circle.join(" -> ")
                ),
                (Some(_), Some(known)) => drop(left.remove(known)),
                (None, _) => {}
            }
        }
    }
    assert!(left.is_empty(), "no circle is left in {left:?}");
}

/// Folders of a crate that contain modules.
fn folders(source: &Path) -> BTreeSet<PathBuf> {
    let mut files = Vec::new();
    super::files(source, &mut files);
    let rust = files
        .iter()
        .filter(|file| file.extension().is_some_and(|e| e == "rs"));
    rust.filter_map(|file| file.parent().map(Path::to_path_buf))
        .collect()
}

#[test]
fn module_cycles_are_found_for_every_import_form() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
        std::fs::write(path, text).expect("it can be written");
    };
    write("lib.rs", "mod a;\nmod b;\nmod c;\n#[cfg(test)]\nmod d;\n");
    write("a.rs", "use super::b::B; // and not crate::c\n");
    write("b/mod.rs", "mod inner;\n");
    write(
        "b/inner.rs",
        "use std::{fmt, io};\nuse crate::{\n    c::C,\n    d,\n};\n",
    );
    let circle_of = |c: &str| {
        write("c.rs", c);
        circle(&modules(folder.path(), folder.path()), "a")
    };
    let test = "#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n";
    assert_eq!(circle_of(test), None);
    let found = circle_of("fn c() { crate::a::f() }\n").expect("a circle");
    assert_eq!(found, ["a", "b", "c", "a"]);
    write("b/inner.rs", "use super::super::c::C;\n");
    assert!(circle_of("pub fn c() { super::a::f() }\n").is_some());
}

/// Dependencies between the modules of a folder, without tests.
fn modules(source: &Path, folder: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let mut files = Vec::new();
    super::files(folder, &mut files);
    let above = folder.strip_prefix(source).expect("a folder below it");
    let above: Vec<String> = (above.iter())
        .map(|part| part.to_string_lossy().into_owned() + "::")
        .collect();
    let from_crate = format!("crate::{}", above.concat());
    let text = |path: &PathBuf| std::fs::read_to_string(path).unwrap_or_default();
    let tests: String = (files.iter().map(text))
        .flat_map(|text| {
            let after = text.split("#[cfg(test)]\nmod ").skip(1);
            let names = after.filter_map(|rest| Some(rest.split_once(';')?.0.to_string() + " "));
            names.collect::<Vec<_>>()
        })
        .collect();
    let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in &files {
        let inside = path.strip_prefix(folder).expect("a file below it");
        let parts: Vec<String> = (inside.with_extension("").iter())
            .map(|part| part.to_string_lossy().into_owned())
            .filter(|part| part != "mod")
            .collect();
        // A folder's own module is above the modules in the folder.
        let (Some(module), Some(last)) = (parts.first(), parts.last()) else {
            continue;
        };
        let is_test = tests.split(' ').any(|test| test == last);
        if is_test || inside.extension().is_none_or(|e| e != "rs") || parts == ["lib"] {
            continue;
        }
        let code = without_comments(&text(path));
        let code = code.split("#[cfg(test)]\nmod tests {").next().unwrap_or("");
        let up = "super::".repeat(parts.len());
        let own = uses.entry(module.clone()).or_default();
        for from_root in [&from_crate, &up] {
            let after = code.match_indices(from_root);
            for (at, _) in after.filter(|&(at, _)| !code[..at].ends_with([':', '_'])) {
                own.extend(names(&code[at + from_root.len()..]));
            }
        }
        own.remove(module);
    }
    uses
}

fn without_comments(text: &str) -> String {
    let lines = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or(""));
    lines.collect::<Vec<_>>().join("\n")
}

/// Names after `crate::`: one name, or the first of each path in braces.
fn names(text: &str) -> Vec<String> {
    let first = |path: &str| {
        let path = path.trim();
        let end = path.find(|c: char| !c.is_alphanumeric() && c != '_');
        path[..end.unwrap_or(path.len())].to_string()
    };
    let Some(group) = text.strip_prefix('{') else {
        return vec![first(text)];
    };
    let (mut depth, mut start, mut found) = (1, 0, Vec::new());
    for (at, c) in group.char_indices() {
        depth += match c {
            '{' => 1,
            '}' => -1,
            _ => 0,
        };
        if depth == 0 || depth == 1 && c == ',' {
            found.push(first(&group[start..at]));
            start = at + 1;
        }
        if depth == 0 {
            break;
        }
    }
    found
}

/// Dependency path from a module back to itself, if there is one.
fn circle(uses: &BTreeMap<String, BTreeSet<String>>, from: &str) -> Option<Vec<String>> {
    let mut ways = vec![vec![from.to_string()]];
    let mut met = BTreeSet::new();
    while let Some(way) = ways.pop() {
        for next in uses.get(way.last()?).into_iter().flatten() {
            let longer: Vec<String> = way.iter().chain([next]).cloned().collect();
            if next == from {
                return Some(longer);
            }
            if met.insert(next.clone()) {
                ways.push(longer);
            }
        }
    }
    None
}
