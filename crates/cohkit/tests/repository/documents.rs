//! Checks of the markdown files: commands print the output shown, and links have a target.
//!
//! `UPDATE_EXPECT=1` rewrites the shown outputs, except those with a `...` line and those of commands that fail.

use crate::{files, require, root};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Paths of all markdown files of the repository, in a fixed order.
fn documents() -> Vec<PathBuf> {
    let mut paths = Vec::new();
    files(&root(), &mut paths);
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    assert!(paths.iter().any(|path| path.ends_with("README.md")));
    paths
}

/// Runs one command line at the root with `cohkit` in the path. Returns the output of both streams, and true if it
/// succeeded.
fn shell(command: &str) -> (String, bool) {
    let binary = Path::new(env!("CARGO_BIN_EXE_cohkit"));
    let folder = binary.parent().expect("the binary lies in a folder");
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("bash")
        .arg("-c")
        .arg(format!("exec 2>&1; {command}"))
        .current_dir(root())
        .env("PATH", format!("{}:{path}", folder.display()))
        .env("COLUMNS", "100")
        .output()
        .expect("bash runs");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    (printed, output.status.success())
}

/// Returns true if the lines match the pattern, in which `...` stands for any number of lines.
fn matches(pattern: &[&str], lines: &[&str]) -> bool {
    match pattern.split_first() {
        None => lines.is_empty(),
        Some((&"...", rest)) => (0..=lines.len()).any(|skip| matches(rest, &lines[skip..])),
        Some((first, rest)) => lines.first() == Some(first) && matches(rest, &lines[1..]),
    }
}

#[test]
fn documented_commands_print_the_documented_output() {
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    let mut mismatches = String::new();
    let mut commands = 0;
    let python = ["docs/sweeps.md", "docs/reports.md"];
    for path in documents() {
        let needs_compiler =
            path.ends_with("docs/riscv.md") || path.ends_with("docs/nearmemory.md");
        if needs_compiler && !require::require("riscv-gcc") {
            continue;
        }
        if path.ends_with("docs/first-system.md") && !require::require("verilator") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("the document can be read");
        let mut rewritten = String::new();
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            rewritten += line;
            rewritten.push('\n');
            if line != "```console" {
                continue;
            }
            while let Some(line) = lines.next_if(|line| *line != "```") {
                let command = line.strip_prefix("$ ").unwrap_or_else(|| {
                    panic!("{}: not a command: {line}", path.display());
                });
                let mut expected = Vec::new();
                while let Some(line) =
                    lines.next_if(|line| *line != "```" && !line.starts_with("$ "))
                {
                    expected.push(line);
                }
                commands += 1;
                // Python implements these commands, and its tests run them.
                let is_tested_elsewhere = command.starts_with("cohkit reproduce")
                    || python.iter().any(|name| path.ends_with(name));
                if is_tested_elsewhere
                    || (command.starts_with("cohkit rtl test") || command.contains("--rtl-runs"))
                        && !require::require("verilator")
                {
                    let _ = writeln!(rewritten, "{line}");
                    for line in expected {
                        let _ = writeln!(rewritten, "{line}");
                    }
                    continue;
                }
                let (printed, success) = shell(command);
                // Trailing space would be invisible in the document.
                let printed: Vec<_> = printed.lines().map(str::trim_end).collect();
                let is_partial = expected.contains(&"...");
                let rewrites = update && success && !is_partial;
                if !(rewrites || success && matches(&expected, &printed)) {
                    let _ = writeln!(
                        mismatches,
                        "{}: $ {command}\nshown:\n{}\nprinted{}:\n{}\n",
                        path.display(),
                        expected.join("\n"),
                        if success { "" } else { ", and failed" },
                        printed.join("\n"),
                    );
                }
                let _ = writeln!(rewritten, "{line}");
                for line in if rewrites { printed } else { expected } {
                    let _ = writeln!(rewritten, "{line}");
                }
            }
        }
        if update && rewritten != text {
            std::fs::write(&path, rewritten).expect("the document can be written");
        }
    }
    assert!(commands > 0, "no document shows a command");
    assert!(mismatches.is_empty(), "{mismatches}");
}

/// A block that starts with "```coh FILE" shows rows of that file, which is in the document's folder.
#[test]
fn excerpts_in_documents_match_their_files() {
    let mut excerpts = 0;
    for path in documents() {
        let text = std::fs::read_to_string(&path).expect("the document can be read");
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let Some(file) = line.strip_prefix("```coh ") else {
                continue;
            };
            excerpts += 1;
            let file = path.parent().expect("a folder").join(file);
            let contents = std::fs::read_to_string(&file)
                .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            let mut remaining_lines = contents.lines();
            for excerpt_line in lines.by_ref().take_while(|line| *line != "```") {
                assert!(
                    remaining_lines.any(|line| line == excerpt_line),
                    "{}: not in {}, or not in this order: {excerpt_line}",
                    path.display(),
                    file.display()
                );
            }
        }
    }
    assert!(excerpts > 0, "no document shows a part of a text");
}

/// Headings of a document as links name them: in lower case, with hyphens for spaces and without other marks.
fn headings(text: &str) -> impl Iterator<Item = String> + '_ {
    // Lines in code blocks are no headings.
    let prose = text.split("\n```").step_by(2);
    let lines = prose.flat_map(str::lines);
    let headings = lines.filter_map(|line| {
        line.trim_start_matches('#')
            .strip_prefix(' ')
            .filter(|_| line.starts_with('#'))
    });
    headings.map(|heading| {
        let is_kept = |letter: &char| letter.is_alphanumeric() || "-_ ".contains(*letter);
        let slug: String = heading.trim().chars().filter(is_kept).collect();
        slug.to_lowercase().replace(' ', "-")
    })
}

#[test]
fn relative_links_resolve() {
    let (mut links, mut anchors) = (0, 0);
    for path in documents() {
        let text = std::fs::read_to_string(&path).expect("the document can be read");
        let mut in_code = false;
        for line in text.lines() {
            if line.starts_with("```") {
                in_code = !in_code;
            }
            if in_code {
                continue;
            }
            for part in line.split("](").skip(1) {
                let link = part.split([')', ' ']).next().unwrap_or_default();
                if link.contains("://") || link.starts_with("mailto:") {
                    continue;
                }
                links += 1;
                let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
                let target = match file {
                    "" => path.clone(),
                    file => path.parent().expect("a folder").join(file),
                };
                assert!(target.exists(), "{}: {link}", path.display());
                if !anchor.is_empty() {
                    anchors += 1;
                    let text = std::fs::read_to_string(&target).expect("the file can be read");
                    let is_found = headings(&text).any(|heading| heading == anchor);
                    assert!(is_found, "{}: {link}: no such heading", path.display());
                }
            }
        }
    }
    assert!(links > 0, "no document has a relative link");
    assert!(anchors > 0, "no link leads to a heading");
}

/// Tests named in a document: ``[file](path): `name`, `other` `` gives the path with each name.
fn named_tests(text: &str) -> Vec<(&str, &str)> {
    let mut tests = Vec::new();
    for part in text.split("](").skip(1) {
        let Some((path, names)) = part.split_once("): `") else {
            continue;
        };
        if path.contains(')') {
            continue;
        }
        let mut pieces = names.split('`');
        while let Some(name) = pieces.next() {
            tests.push((path, name));
            if pieces.next() != Some(", ") {
                break;
            }
        }
    }
    tests
}

#[test]
fn tests_named_in_the_architecture_exist() {
    let mut tests = 0;
    for path in documents() {
        let folder = path.parent().expect("a folder");
        if !path.ends_with("ARCHITECTURE.md") && !folder.ends_with("docs/decisions") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("the document can be read");
        for (file, name) in named_tests(&text) {
            tests += 1;
            let source = std::fs::read_to_string(folder.join(file))
                .unwrap_or_else(|error| panic!("{}: {file}: {error}", path.display()));
            let defined = [format!("fn {name}("), format!("def {name}(")];
            assert!(
                defined.iter().any(|start| source.contains(start)),
                "{}: {file} has no test `{name}`",
                path.display()
            );
        }
    }
    assert!(tests > 30, "only {tests} tests are named");
}

#[test]
fn names_of_tests_are_found_behind_their_links() {
    let text =
        "| S1 | A rule. | [`a.rs`](x/a.rs): `one`, `two` |\n[b](c.md) and [d](e.py): `three`";
    let expected = [("x/a.rs", "one"), ("x/a.rs", "two"), ("e.py", "three")];
    assert_eq!(named_tests(text), expected);
}

/// The table of the language reference lists exactly the properties that verdicts name.
#[test]
fn properties_of_verdicts_are_in_the_language_reference() {
    use cohkit_engine::Property::{Drain, NoDeadlock, WellDefined};
    let mut sources = Vec::new();
    files(&root().join("crates/check/src"), &mut sources);
    files(&root().join("crates/system/src"), &mut sources);
    let mut verdict_properties: Vec<String> = [WellDefined, NoDeadlock, Drain]
        .map(|property| property.to_string())
        .to_vec();
    verdict_properties.push(cohkit_check::system::progress::PROGRESS.into());
    verdict_properties.push(cohkit_system::stores::PROGRAM_ORDER.into());
    verdict_properties.push(cohkit_system::stores::ATOMICITY.into());
    let stores = "every store is performed once";
    verdict_properties.push(stores.into());
    for path in sources {
        let source = std::fs::read_to_string(&path).expect("a source can be read");
        assert_eq!(
            source.matches(&format!("\"{stores}\"")).count(),
            usize::from(path.ends_with("system/src/agent.rs")),
            "{}",
            path.display()
        );
        let literals = source.split("Violation::new(").skip(1);
        let literals = literals.filter_map(|rest| rest.trim_start().strip_prefix('"'));
        verdict_properties
            .extend(literals.filter_map(|rest| Some(rest.split_once('"')?.0.to_string())));
    }
    verdict_properties.sort();
    verdict_properties.dedup();
    let reference = root().join("docs/language.md");
    let reference = std::fs::read_to_string(reference).expect("the reference can be read");
    let table = reference.split_once("| Property | Requirement |\n|---|---|\n");
    let table = table.expect("the table of properties").1.lines();
    let rows = table.map_while(|line| line.strip_prefix("| ")?.split_once(" | "));
    let mut listed_properties: Vec<String> = rows.map(|(name, _)| name.to_string()).collect();
    listed_properties.sort();
    assert_eq!(verdict_properties, listed_properties);
}
