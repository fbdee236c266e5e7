//! Limits on the structure of a crate's source: fields of structs with behaviour, files that implement one type, and
//! lines of functions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Maximum number of fields of a struct with methods.
pub const MAX_FIELDS: usize = 20;

/// Maximum number of files with methods of one type.
pub const MAX_IMPL_FILES: usize = 3;

/// Maximum number of lines of a function.
pub const MAX_FUNCTION_LINES: usize = 80;

/// A source file: its path and its text.
pub type Source = (String, String);

/// Reads the sources of a crate, whose manifest is in this folder.
pub fn sources(manifest_folder: &str) -> Vec<Source> {
    let mut sources = Vec::new();
    read_folder(&Path::new(manifest_folder).join("src"), &mut sources);
    assert!(!sources.is_empty());
    sources
}

/// Adds the Rust files of a folder and of its subfolders.
fn read_folder(folder: &Path, sources: &mut Vec<Source>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            read_folder(&path, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).expect("a text");
            sources.push((path.display().to_string(), text));
        }
    }
}

/// Describes everything in these sources that exceeds a limit, unit tests apart. `larger` lists structs and functions
/// with their own limit. A limit in it that is not needed is described too. The result is empty if there is nothing to
/// report.
pub fn violations(sources: &[Source], larger: &[(&str, usize)]) -> BTreeSet<String> {
    let mut fields = BTreeMap::new();
    let mut impl_files: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut sizes = Vec::new();
    for (path, text) in sources {
        let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or("");
        let lines: Vec<&str> = text.lines().collect();
        for (number, line) in lines.iter().enumerate() {
            let declaration = declaration(line);
            if let Some(name) = name_after(declaration, "struct ") {
                fields.insert(name, count_fields(&lines[number..]));
            } else if let Some(name) = implemented_type(line) {
                impl_files.entry(name).or_default().insert(path);
            } else if let Some(name) = name_after(declaration, "fn ") {
                let length = item_length(&lines[number..]);
                sizes.push((name, length, MAX_FUNCTION_LINES, "lines"));
            }
        }
    }
    for (name, files) in &impl_files {
        sizes.push((name, files.len(), MAX_IMPL_FILES, "files with methods"));
        // A struct without methods is a record.
        let count = fields.get(name).copied().unwrap_or(0);
        sizes.push((name, count, MAX_FIELDS, "fields"));
    }
    let own_limit = |item: &str| larger.iter().find(|(name, _)| *name == item);
    let mut unused: BTreeSet<&str> = larger.iter().map(|(name, _)| *name).collect();
    let mut violations = BTreeSet::new();
    for (name, size, limit, unit) in sizes {
        let is_large = size > limit;
        let limit = own_limit(name).map_or(limit, |(_, limit)| *limit);
        if is_large {
            unused.remove(name);
        }
        if size > limit {
            violations.insert(format!("`{name}` has {size} {unit}; at most {limit}"));
        }
    }
    violations.extend(
        unused
            .into_iter()
            .map(|name| format!("`{name}` needs no limit of its own")),
    );
    violations
}

/// A line without indentation, visibility and qualifiers.
fn declaration(line: &str) -> &str {
    let mut line = line.trim_start();
    if let Some(rest) = line.strip_prefix("pub") {
        let restriction = rest.strip_prefix('(').and_then(|rest| rest.split_once(')'));
        line = restriction.map_or(rest, |(_, rest)| rest).trim_start();
    }
    for qualifier in ["const ", "unsafe ", "extern \"C\" "] {
        line = line.strip_prefix(qualifier).unwrap_or(line);
    }
    line
}

/// The name that follows a keyword at the start of a declaration.
fn name_after<'t>(declaration: &'t str, keyword: &str) -> Option<&'t str> {
    let rest = declaration.strip_prefix(keyword)?;
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
    Some(&rest[..end.unwrap_or(rest.len())])
}

/// The type whose methods an `impl` without a trait adds.
fn implemented_type(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("impl")?;
    if line.contains(" for ") {
        return None;
    }
    let rest = match rest.strip_prefix('<') {
        Some(parameters) => parameters.split_once("> ")?.1,
        None => rest.trim_start(),
    };
    name_after(rest, "")
}

/// Number of fields of a struct, whose declaration is the first line.
fn count_fields(lines: &[&str]) -> usize {
    if !lines[0].ends_with('{') {
        return 0;
    }
    let fields = lines[1..].iter().take_while(|line| line.trim() != "}");
    let is_field = |line: &&&str| !line.trim_start().starts_with("//") && line.contains(": ");
    fields.filter(is_field).count()
}

/// Number of lines of a function, whose declaration is the first line.
fn item_length(lines: &[&str]) -> usize {
    let indentation = lines[0].len() - lines[0].trim_start().len();
    let [end, end_of_signature] = ["}", ")"].map(|end| format!("{:indentation$}{end}", ""));
    let is_declaration = |line: &str| {
        line.ends_with(';') && (line == lines[0] || line.starts_with(&end_of_signature))
    };
    let last = lines
        .iter()
        .position(|line| *line == end || is_declaration(line));
    last.map_or(lines.len(), |last| last + 1)
}
