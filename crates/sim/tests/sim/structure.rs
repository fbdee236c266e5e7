//! Structure of the simulator's source: components own their state.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Files outside `agents` and `components` that components consist of.
const COMPONENT_FILES: [&str; 5] = [
    "simulation/input_queues.rs",
    "simulation/interconnect.rs",
    "simulation/main_memory.rs",
    "simulation/observer.rs",
    "simulation/trace_recorder.rs",
];

/// Adds all files of a folder and of its subfolders.
fn collect_sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("source folder") {
        let path = entry.expect("folder entry").path();
        match path.is_dir() {
            true => collect_sources(&path, files),
            false => files.push(path),
        }
    }
}

/// Returns the sources of the simulator without their unit tests, by path.
fn sources() -> BTreeMap<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    collect_sources(&root, &mut files);
    let read = |file: PathBuf| {
        let text = std::fs::read_to_string(&file).expect("source file");
        let path = file.strip_prefix(&root).expect("a file of the sources");
        let code = text.split("\n#[cfg(test)]\n").next().unwrap_or_default();
        (path.display().to_string(), code.to_string())
    };
    files.into_iter().map(read).collect()
}

#[test]
fn components_do_not_use_the_simulation() {
    let sources = sources();
    for path in COMPONENT_FILES {
        assert!(sources.contains_key(path), "{path}");
    }
    for (path, code) in &sources {
        let is_component = ["agents/", "components/"]
            .iter()
            .any(|f| path.starts_with(f))
            || COMPONENT_FILES.contains(&path.as_str());
        assert!(!is_component || !code.contains("Simulation"), "{path}");
    }
}
