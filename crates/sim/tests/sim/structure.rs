//! Structure of the simulator's source: components that own their state, and limits that only shrink.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Maximum number of fields of a type with methods, except records of statistics.
const MAX_FIELDS: usize = 20;

/// Maximum number of files with methods of a type.
const MAX_IMPL_FILES: usize = 3;

/// Maximum number of lines of a function.
const MAX_FUNCTION_LINES: usize = 80;

/// Types that own the state of a part of the machine.
const COMPONENTS: [&str; 15] = [
    "Application",
    "Caches",
    "Cores",
    "Device",
    "Executor",
    "Frontend",
    "Home",
    "Host",
    "Interconnect",
    "MainMemory",
    "Network",
    "Observer",
    "Port",
    "Threads",
    "Translations",
];

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

/// Number of fields of a struct.
fn field_count(sources: &BTreeMap<String, String>, name: &str) -> usize {
    let heads = ["", "pub ", "pub(crate) ", "pub(super) "]
        .map(|visibility| format!("\n{visibility}struct {name} {{\n"));
    let mut definitions = sources.values().flat_map(|text| {
        let mut heads = heads.iter();
        heads.find_map(|head| text.split_once(head.as_str()))
    });
    let (_, rest) = definitions.next().expect("definition of the type");
    let (fields, _) = rest.split_once("\n}\n").expect("end of the definition");
    let is_field = |line: &&str| !line.trim_start().starts_with("//") && line.contains(": ");
    fields.lines().filter(is_field).count()
}

/// Types with methods that may have more fields: records of statistics.
const STATISTICS: [&str; 2] = ["Attribution", "Counters"];

#[test]
fn types_with_methods_have_few_fields() {
    let sources = sources();
    let head_names = |keyword: &str| -> BTreeSet<String> {
        let lines = sources.values().flat_map(|code| code.lines());
        let names = lines.filter_map(|line| {
            let (_, rest) = line.split_once(keyword)?;
            let is_head = matches!(
                line.split_once(keyword)?.0,
                "" | "pub " | "pub(crate) " | "pub(super) "
            );
            let name = rest.strip_suffix(" {").filter(|_| is_head)?;
            let is_name = name.chars().all(|c| c.is_alphanumeric() || c == '_');
            is_name.then(|| name.to_string())
        });
        names.collect()
    };
    let with_fields = head_names("struct ");
    let with_methods = head_names("impl ");
    let names: Vec<&String> = with_fields.intersection(&with_methods).collect();
    assert!(names.len() > 50, "{names:?}");
    for name in names {
        let count = field_count(&sources, name);
        assert!(
            count <= MAX_FIELDS || STATISTICS.contains(&name.as_str()),
            "`{name}` has {count} fields; at most {MAX_FIELDS} are permitted"
        );
    }
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

#[test]
fn types_are_implemented_in_few_files() {
    let mut files_by_type: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (path, code) in sources() {
        for line in code.lines().filter(|line| !line.contains(" for ")) {
            let Some(head) = line.strip_prefix("impl") else {
                continue;
            };
            let head = match head.split_once('>') {
                Some((_, rest)) if head.starts_with('<') => rest,
                _ => head,
            };
            let is_part = |character: char| character.is_alphanumeric() || character == '_';
            let name: String = head
                .trim_start()
                .chars()
                .take_while(|c| is_part(*c))
                .collect();
            files_by_type.entry(name).or_default().insert(path.clone());
        }
    }
    assert!(COMPONENTS
        .iter()
        .all(|name| files_by_type.contains_key(*name)));
    for (name, files) in files_by_type {
        assert!(files.len() <= MAX_IMPL_FILES, "{name}: {files:?}");
    }
}

#[test]
fn functions_are_short() {
    for (path, code) in sources() {
        let lines: Vec<&str> = code.lines().collect();
        for (start, line) in lines.iter().enumerate() {
            let trimmed = line.trim_start();
            let is_function = ["fn ", "pub fn ", "pub(crate) fn ", "pub(super) fn "];
            // Declarations of traits end in the same or one of the next lines, without a body.
            if !is_function.iter().any(|head| trimmed.starts_with(head)) {
                continue;
            }
            let end_line = format!("{}}}", &line[..line.len() - trimmed.len()]);
            let body = &lines[start..];
            let is_end_of_head = |line: &&&str| line.ends_with(['{', '}', ';']);
            let head = body.iter().find(is_end_of_head);
            if !head.is_some_and(|head| head.ends_with('{')) {
                continue;
            }
            let length = body.iter().position(|line| **line == end_line);
            let length = length.map_or(1, |end| end + 1);
            assert!(
                length <= MAX_FUNCTION_LINES,
                "{path}: a function of {length} lines: {trimmed}"
            );
        }
    }
}
