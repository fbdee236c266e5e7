//! Structure of the simulator's source: limits on the size of `Simulation`, which only shrink.

use std::path::{Path, PathBuf};

/// Maximum number of fields of `Simulation`.
const MAX_FIELDS: usize = 20;

/// Maximum number of files with methods of `Simulation`.
const MAX_IMPL_FILES: usize = 26;

/// Components that own their state and are implemented in one file each.
const COMPONENTS: [&str; 3] = ["Interconnect", "Network", "Observer"];

fn collect_sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("source folder") {
        let path = entry.expect("folder entry").path();
        match path.is_dir() {
            true => collect_sources(&path, files),
            false => files.push(path),
        }
    }
}

/// Returns the sources of the simulator.
fn sources() -> Vec<String> {
    let mut files = Vec::new();
    collect_sources(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        &mut files,
    );
    let read = |file: PathBuf| std::fs::read_to_string(file).expect("source file");
    files.into_iter().map(read).collect()
}

/// Number of files with methods of a type.
fn impl_files(sources: &[String], name: &str) -> usize {
    let head = format!("\nimpl {name} {{\n");
    sources.iter().filter(|text| text.contains(&head)).count()
}

#[test]
fn simulation_does_not_grow() {
    let sources = sources();
    let definition = sources
        .iter()
        .find_map(|text| text.split_once("\npub struct Simulation {\n"));
    let (_, rest) = definition.expect("definition of Simulation");
    let (fields, _) = rest.split_once("\n}\n").expect("end of the definition");
    let is_field = |line: &&str| !line.trim_start().starts_with("//") && line.contains(": ");
    let field_count = fields.lines().filter(is_field).count();
    assert!(
        (1..=MAX_FIELDS).contains(&field_count),
        "`Simulation` has {field_count} fields; at most {MAX_FIELDS} are permitted"
    );
    let files = impl_files(&sources, "Simulation");
    assert!(
        (1..=MAX_IMPL_FILES).contains(&files),
        "{files} files have methods of `Simulation`; at most {MAX_IMPL_FILES} are permitted"
    );
}

#[test]
fn components_are_implemented_in_one_file() {
    let sources = sources();
    for name in COMPONENTS {
        assert_eq!(impl_files(&sources, name), 1, "{name}");
    }
}

#[test]
fn interconnect_does_not_use_the_simulation() {
    let text = include_str!("../../src/simulation/interconnect.rs");
    assert!(!text.contains("Simulation"));
}
