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
    ("cohkit-units", 0),
    ("cohkit-dram", 1),
    ("cohkit-platform", 1),
    ("cohkit-link", 1),
    ("cohkit-diagnostics", 1),
    ("cohkit-timeline", 1),
    ("cohkit-chart", 1),
    ("cohkit-engine", 1),
    ("cohkit-protocol", 2),
    ("cohkit-murphi", 2),
    ("cohkit-tla", 2),
    ("cohkit-nearmemory", 2),
    ("cohkit-system", 3),
    ("cohkit-application", 3),
    ("cohkit-trace", 3),
    ("cohkit-check", 4),
    ("cohkit-parameterised", 4),
    ("cohkit-play", 4),
    ("cohkit-sim", 4),
    ("cohkit-litmus", 5),
    ("cohkit-rtl", 5),
    ("cohkit-mutants", 6),
    ("cohkit-api", 6),
    ("cohkit-testing", 7),
    ("cohkit", 7),
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
    let packages = metadata["packages"]
        .as_array()
        .expect("a JSON list")
        .clone();
    assert!(!packages.is_empty());
    packages
}

#[test]
fn crates_depend_only_on_lower_layers() {
    let layer = |name: &str| {
        CRATE_LAYERS
            .iter()
            .find(|(crate_name, _)| *crate_name == name)
            .map(|&(_, layer)| layer)
    };
    for package in packages() {
        let name = package["name"].as_str().expect("a JSON string");
        let own_layer =
            layer(name).unwrap_or_else(|| panic!("give the crate {name} a layer in CRATE_LAYERS"));
        for dependency in package["dependencies"].as_array().expect("a JSON list") {
            // Tests may depend on any crate; shipped code only on lower layers.
            if dependency["kind"] == "dev" {
                continue;
            }
            let dependency_name = dependency["name"].as_str().expect("a JSON string");
            if let Some(layer) = layer(dependency_name) {
                assert!(
                    layer < own_layer,
                    "{name} must not depend on {dependency_name}"
                );
            }
        }
    }
}

/// Crates of command lines, terminals and editors, which only the command links.
const USER_INTERFACE_CRATES: &[&str] = &[
    "clap",
    "clap_complete",
    "ctrlc",
    "indicatif",
    "lsp-types",
    "terminal_size",
];

/// Features of each package that a crate links or builds with, by name and version, from `cargo tree`.
fn linked_packages(crate_name: &str) -> BTreeMap<String, String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--prefix", "none", "--edges"])
        .args(["normal,build", "--format", "{p}\t{f}", "--package"])
        .arg(crate_name)
        .current_dir(root())
        .output()
        .expect("cargo runs");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{message}");
    let text = String::from_utf8(output.stdout).expect("cargo prints UTF-8");
    let packages: BTreeMap<String, String> = text
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .map(|(package, features)| {
            let words: Vec<&str> = package.split(' ').take(2).collect();
            (
                words.join(" "),
                features.trim_end_matches(" (*)").to_string(),
            )
        })
        .collect();
    assert!(packages.len() > 1);
    packages
}

#[test]
fn python_module_links_no_user_interface() {
    let has_package = |packages: &BTreeMap<String, String>, name: &str| {
        let prefix = format!("{name} ");
        packages.keys().any(|package| package.starts_with(&prefix))
    };
    let (command, module) = (linked_packages("cohkit"), linked_packages("cohkit-python"));
    for name in USER_INTERFACE_CRATES {
        assert!(has_package(&command, name), "{name} is unused: remove it");
        assert!(
            !has_package(&module, name),
            "the Python module links {name}"
        );
    }
}

#[test]
fn command_and_python_module_share_built_dependencies() {
    let (command, module) = (linked_packages("cohkit"), linked_packages("cohkit-python"));
    for (package, features) in &command {
        if let Some(module_features) = module.get(package) {
            assert_eq!(
                features, module_features,
                "enable the features of {package} in cohkit-api, or cargo builds it twice"
            );
        }
    }
}

#[test]
fn modules_have_no_cyclic_dependencies() {
    let mut unseen_cycles: BTreeSet<(&str, &str)> = CYCLIC_FOLDERS.iter().copied().collect();
    for package in packages() {
        let name = package["name"].as_str().expect("a JSON string");
        let manifest = Path::new(package["manifest_path"].as_str().expect("a path"));
        let source = manifest.parent().expect("a folder").join("src");
        for folder in folders(&source) {
            let inner_path = folder.strip_prefix(&source).expect("a folder below it");
            let inner_path = inner_path.display().to_string();
            let uses = modules(&source, &folder);
            let cycle = uses.keys().find_map(|module| find_cycle(&uses, module));
            let known_cycle = CYCLIC_FOLDERS
                .iter()
                .find(|known_cycle| **known_cycle == (name, &inner_path));
            match (cycle, known_cycle) {
                (Some(cycle), None) => panic!(
                    "{name}: in src/{inner_path}, {} use each other in a circle",
                    cycle.join(" -> ")
                ),
                (Some(_), Some(known_cycle)) => drop(unseen_cycles.remove(known_cycle)),
                (None, _) => {}
            }
        }
    }
    assert!(
        unseen_cycles.is_empty(),
        "no circle is left in {unseen_cycles:?}"
    );
}

/// Folders of a crate that contain modules.
fn folders(source: &Path) -> BTreeSet<PathBuf> {
    let mut files = Vec::new();
    super::files(source, &mut files);
    let rust = files
        .iter()
        .filter(|file| file.extension().is_some_and(|extension| extension == "rs"));
    rust.filter_map(|file| file.parent().map(Path::to_path_buf))
        .collect()
}

#[test]
fn module_cycles_are_found_for_every_import_form() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder"))
            .expect("the folder can be created");
        std::fs::write(path, text).expect("the file can be written");
    };
    write("lib.rs", "mod a;\nmod b;\nmod c;\n#[cfg(test)]\nmod d;\n");
    write("a.rs", "use super::b::B; // and not crate::c\n");
    write("b/mod.rs", "mod inner;\n");
    write(
        "b/inner.rs",
        "use std::{fmt, io};\nuse crate::{\n    c::C,\n    d,\n};\n",
    );
    let cycle_with = |c: &str| {
        write("c.rs", c);
        find_cycle(&modules(folder.path(), folder.path()), "a")
    };
    let test = "#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n";
    assert_eq!(cycle_with(test), None);
    let cycle = cycle_with("fn c() { crate::a::f() }\n").expect("a circle");
    assert_eq!(cycle, ["a", "b", "c", "a"]);
    write("b/inner.rs", "use super::super::c::C;\n");
    assert!(cycle_with("pub fn c() { super::a::f() }\n").is_some());
}

/// Dependencies between the modules of a folder, without tests.
fn modules(source: &Path, folder: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let mut files = Vec::new();
    super::files(folder, &mut files);
    let outer_modules = folder.strip_prefix(source).expect("a folder below it");
    let outer_modules: Vec<String> = (outer_modules.iter())
        .map(|part| part.to_string_lossy().into_owned() + "::")
        .collect();
    let from_crate = format!("crate::{}", outer_modules.concat());
    let text = |path: &PathBuf| std::fs::read_to_string(path).unwrap_or_default();
    let tests: String = (files.iter().map(text))
        .flat_map(|text| {
            let sections = text.split("#[cfg(test)]\nmod ").skip(1);
            let names = sections.filter_map(|rest| Some(rest.split_once(';')?.0.to_string() + " "));
            names.collect::<Vec<_>>()
        })
        .collect();
    let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in &files {
        let inner_path = path.strip_prefix(folder).expect("a file below it");
        let parts: Vec<String> = (inner_path.with_extension("").iter())
            .map(|part| part.to_string_lossy().into_owned())
            .filter(|part| part != "mod")
            .collect();
        // A folder's own module is above the modules in the folder.
        let (Some(module), Some(last)) = (parts.first(), parts.last()) else {
            continue;
        };
        let is_test = tests.split(' ').any(|test| test == last);
        if is_test || inner_path.extension().is_none_or(|e| e != "rs") || parts == ["lib"] {
            continue;
        }
        let code = without_comments(&text(path));
        let code = code.split("#[cfg(test)]\nmod tests {").next().unwrap_or("");
        let parent_prefix = "super::".repeat(parts.len());
        let dependencies = uses.entry(module.clone()).or_default();
        for from_root in [&from_crate, &parent_prefix] {
            let uses_of_root = code.match_indices(from_root);
            for (offset, _) in
                uses_of_root.filter(|&(offset, _)| !code[..offset].ends_with([':', '_']))
            {
                dependencies.extend(names(&code[offset + from_root.len()..]));
            }
        }
        dependencies.remove(module);
    }
    uses
}

/// Source without line comments.
fn without_comments(text: &str) -> String {
    let lines = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or(""));
    lines.collect::<Vec<_>>().join("\n")
}

/// Names after `crate::`: one name, or the first of each path in braces.
fn names(text: &str) -> Vec<String> {
    let first_name = |path: &str| {
        let path = path.trim();
        let end = path.find(|character: char| !character.is_alphanumeric() && character != '_');
        path[..end.unwrap_or(path.len())].to_string()
    };
    let Some(group) = text.strip_prefix('{') else {
        return vec![first_name(text)];
    };
    let (mut depth, mut start, mut names) = (1, 0, Vec::new());
    for (offset, character) in group.char_indices() {
        depth += match character {
            '{' => 1,
            '}' => -1,
            _ => 0,
        };
        if depth == 0 || depth == 1 && character == ',' {
            names.push(first_name(&group[start..offset]));
            start = offset + 1;
        }
        if depth == 0 {
            break;
        }
    }
    names
}

/// Dependency path from a module back to itself, if there is one.
fn find_cycle(uses: &BTreeMap<String, BTreeSet<String>>, start: &str) -> Option<Vec<String>> {
    let mut paths = vec![vec![start.to_string()]];
    let mut visited = BTreeSet::new();
    while let Some(path) = paths.pop() {
        for next in uses.get(path.last()?).into_iter().flatten() {
            let extended: Vec<String> = path.iter().chain([next]).cloned().collect();
            if next == start {
                return Some(extended);
            }
            if visited.insert(next.clone()) {
                paths.push(extended);
            }
        }
    }
    None
}
