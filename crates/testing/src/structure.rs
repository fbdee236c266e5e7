//! Limits on the structure of a crate's source: fields of structs with behaviour, files that implement one type, and
//! lines of functions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A measure of structure with a limit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Measure {
    /// Fields of a struct with methods.
    Fields,
    /// Files with methods of one type.
    ImplFiles,
    /// Lines of a function.
    FunctionLines,
}

impl Measure {
    /// Largest permitted value.
    pub fn limit(self) -> usize {
        match self {
            Measure::Fields => 20,
            Measure::ImplFiles => 3,
            Measure::FunctionLines => 80,
        }
    }

    /// Unit in messages.
    fn unit(self) -> &'static str {
        match self {
            Measure::Fields => "fields",
            Measure::ImplFiles => "files with methods",
            Measure::FunctionLines => "lines",
        }
    }
}

/// A larger limit of a type or function: its measure, its name, and the limit.
pub type LargerLimit<'a> = (Measure, &'a str, usize);

/// A source file: its path and its text.
pub type Source = (String, String);

/// Reads the sources of a crate, whose manifest is in this folder, without files of unit tests.
pub fn sources(manifest_folder: &Path) -> Vec<Source> {
    let mut sources = Vec::new();
    read_folder(&manifest_folder.join("src"), &mut sources);
    assert!(!sources.is_empty());
    sources
}

/// Adds the Rust files of a folder and of its subfolders, without unit tests.
fn read_folder(folder: &Path, sources: &mut Vec<Source>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        if name == "tests" || name.ends_with("_tests") {
            continue;
        }
        if path.is_dir() {
            read_folder(&path, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).expect("a text");
            sources.push((path.display().to_string(), text));
        }
    }
}

/// Describes everything in these sources that exceeds a limit, unit tests apart. A limit in `larger` that is not the
/// exact size is described too, so that these limits only shrink. The result is empty if there is nothing to report.
pub fn violations(sources: &[Source], larger: &[LargerLimit]) -> BTreeSet<String> {
    let mut sizes: BTreeMap<(Measure, &str), usize> = BTreeMap::new();
    let mut record = |measure: Measure, name, size: usize| {
        let largest = sizes.entry((measure, name)).or_default();
        *largest = size.max(*largest);
    };
    // Path and number of fields of each struct of a name, and paths of the files with methods of a type of this name.
    let mut structs: BTreeMap<&str, Vec<(&str, usize)>> = BTreeMap::new();
    let mut impl_files: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (path, text) in sources {
        let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or("");
        let lines: Vec<&str> = text.lines().collect();
        for (number, line) in lines.iter().enumerate() {
            let declaration = declaration(line);
            if let Some(name) = name_after(declaration, "struct ") {
                let count = count_fields(&lines[number..]);
                structs.entry(name).or_default().push((path, count));
            } else if let Some(name) = implemented_type(line) {
                impl_files.entry(name).or_default().insert(path);
            } else if let Some(name) = name_after(declaration, "fn ") {
                record(Measure::FunctionLines, name, item_length(&lines[number..]));
            }
        }
    }
    for (name, files) in &impl_files {
        let declared = structs.get(name).map_or(&[][..], Vec::as_slice);
        let mut files_of_struct: BTreeMap<Option<&(&str, usize)>, usize> = BTreeMap::new();
        for file in files {
            let nearest = declared
                .iter()
                .max_by_key(|(path, _)| common_prefix(path, file));
            *files_of_struct.entry(nearest).or_default() += 1;
        }
        for (declaration, count) in files_of_struct {
            record(Measure::ImplFiles, name, count);
            // A struct without methods is a record.
            record(
                Measure::Fields,
                name,
                declaration.map_or(0, |(_, fields)| *fields),
            );
        }
    }
    let mut violations = BTreeSet::new();
    for (&(measure, name), &size) in &sizes {
        let mut own_limits = larger
            .iter()
            .filter(|(m, n, _)| (*m, *n) == (measure, name));
        let limit = own_limits
            .next()
            .map_or(measure.limit(), |(.., limit)| *limit);
        if size > limit {
            let unit = measure.unit();
            violations.insert(format!("`{name}` has {size} {unit}; at most {limit}"));
        }
    }
    for &(measure, name, limit) in larger {
        let size = sizes.get(&(measure, name)).copied().unwrap_or(0);
        if size < limit {
            let unit = measure.unit();
            violations.insert(format!(
                "`{name}` has {size} {unit}: lower its limit of {limit}"
            ));
        }
    }
    violations
}

/// Number of bytes that two paths have in common at their start.
fn common_prefix(a: &str, b: &str) -> usize {
    let equal_bytes = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b);
    equal_bytes.count()
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
    // Bounds of parameters may precede the brace.
    let end_of_head = lines
        .iter()
        .position(|line| line.ends_with(['{', '}', ';']));
    let Some(start) = end_of_head.filter(|&start| lines[start].ends_with('{')) else {
        return 0;
    };
    let fields = lines[start + 1..]
        .iter()
        .take_while(|line| line.trim() != "}");
    let is_field = |line: &&&str| !line.trim_start().starts_with("//") && line.contains(": ");
    fields.filter(is_field).count()
}

/// Number of lines of a function, whose declaration is the first line.
fn item_length(lines: &[&str]) -> usize {
    let indentation = lines[0].len() - lines[0].trim_start().len();
    let [end, end_of_signature] = ["}", ")"].map(|end| format!("{:indentation$}{end}", ""));
    // A declaration of a trait, or a function on one line.
    let is_short = |line: &str| {
        line.ends_with([';', '}']) && (line == lines[0] || line.starts_with(&end_of_signature))
    };
    let last = lines.iter().position(|line| *line == end || is_short(line));
    last.map_or(lines.len(), |last| last + 1)
}
