//! `cohkit doctor`: third-party tools that are installed, what they enable, and how to install the missing ones.

use crate::console::Console;
use crate::deliver;
use crate::options::Doctor;
use crate::python;
use cohkit_api::outcome::{ExitStatus, Failure};
use cohkit_rtl::tool::{self, VersionResult};
use cohkit_rtl::tools::{Program, Tool, TOOLS};
use serde_json::{json, Map, Value};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write;
use std::process::Command;
use std::thread;
use std::time::Duration;

/// Time limit for each program to print its version.
const VERSION_TIMEOUT: Duration = Duration::from_secs(10);

/// Width of the text, in columns: the narrowest common terminal.
const WIDTH: usize = 80;

/// Columns before the description of a tool.
const INDENT: usize = 22;

/// Maximum length of a program's output that is quoted if it contains no version, in characters.
const MAX_QUOTED_CHARACTERS: usize = 40;

/// Python program that prints the versions of those distributions among its arguments that are installed.
const VERSION_SCRIPT: &str = "\
import importlib.metadata, json, sys
versions = {'python': sys.version.split()[0]}
for name in sys.argv[1:]:
    try:
        versions[name] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        pass
print(json.dumps(versions))";

/// An installed program or Python module.
struct Installed {
    name: String,
    version: String,
}

/// Availability of a tool.
struct ToolStatus {
    /// Usable programs and modules of the tool.
    parts: Vec<Installed>,
    /// Reason why the tool is unusable; `None` if it is usable.
    problem: Option<String>,
}

/// Versions of Python modules by name, or the reason why they are unknown.
type Modules = Result<BTreeMap<String, String>, String>;

/// Lists the optional tools with their versions. The outcome is always [`ExitStatus::Success`]; missing tools are
/// part of the result.
pub(crate) fn run(options: &Doctor, console: &mut Console) -> Result<ExitStatus, Failure> {
    let path = tool::search_path();
    // Concurrently: a program that does not answer delays no other.
    let results: Vec<ToolStatus> = thread::scope(|scope| {
        let modules = scope.spawn(installed_modules);
        let programs = TOOLS.iter().map(|tool| {
            let handles = tool.programs.iter().map(|program| {
                let path = &path;
                scope.spawn(move || find_program(program, path))
            });
            handles.collect::<Vec<_>>()
        });
        let programs: Vec<Vec<_>> = programs.collect();
        let modules = modules.join().expect("the thread does not panic");
        let results = programs.into_iter().map(|queries| {
            let queries = queries.into_iter();
            queries.map(|query| query.join().expect("the thread does not panic"))
        });
        let results: Vec<Vec<_>> = results.map(Iterator::collect).collect();
        let tools = TOOLS.iter().zip(results);
        tools
            .map(|(tool, results)| inspect_tool(tool, results, &modules))
            .collect()
    });
    let result = if options.output.form.json {
        let tools = TOOLS
            .iter()
            .zip(&results)
            .map(|(tool, status)| json(tool, status));
        options.output.form.format_output(
            json!({
                "tools": tools.collect::<Value>(),
                "run": { "version": env!("CARGO_PKG_VERSION") },
            }),
            console,
        )
    } else {
        let tools = TOOLS.iter().zip(&results);
        let tools = tools.map(|(tool, status)| text(tool, status));
        let heading = format!("{:13}  found  purpose; version, or problem\n", "tool");
        heading + &tools.collect::<String>()
    };
    deliver(&result, &options.output, console)?;
    Ok(ExitStatus::Success)
}

/// JSON entry of a tool; its status is machine-dependent, and therefore under the key `run`.
fn json(tool: &Tool, ToolStatus { parts, problem }: &ToolStatus) -> Value {
    let programs = tool
        .programs
        .iter()
        .map(|program| program.names.join(" or "));
    let versions: Map<String, Value> = (parts.iter())
        .map(|part| (part.name.clone(), part.version.as_str().into()))
        .collect();
    json!({
        "name": tool.name,
        "description": tool.description,
        "programs": programs.collect::<Value>(),
        "modules": tool.modules,
        "enables": tool.enables,
        "packages": tool.installed_by,
        "run": { "available": problem.is_none(), "versions": versions, "problem": problem },
    })
}

/// Lines of a tool: name, availability and purpose, then its versions or its problem.
fn text(tool: &Tool, ToolStatus { parts, problem }: &ToolStatus) -> String {
    let last_line = match problem {
        Some(problem) => format!("{problem}; install {}", tool.installed_by),
        None => {
            let versions = parts.iter();
            let versions = versions.map(|part| format!("{} {}", part.name, part.version));
            versions.collect::<Vec<_>>().join(", ")
        }
    };
    let available = if problem.is_none() { "yes" } else { "no" };
    let mut text = format!("{:13}  {available:5}  ", tool.name);
    text += &wrap_words(tool.enables);
    let _ = write!(text, "{:INDENT$}{}", "", wrap_words(&last_line));
    text
}

/// Wraps words to the width; all lines but the first are indented.
fn wrap_words(words: &str) -> String {
    let mut text = String::new();
    let mut column = INDENT;
    for word in words.split_whitespace() {
        let length = word.chars().count();
        if column > INDENT && column + 1 + length > WIDTH {
            let _ = write!(text, "\n{:INDENT$}", "");
            column = INDENT;
        }
        let gap = usize::from(column > INDENT);
        text += &" ".repeat(gap);
        text += word;
        column += gap + length;
    }
    text + "\n"
}

/// Combines the results of a tool's programs with the versions of its Python modules. A tool is usable only if
/// all of its programs and modules are.
fn inspect_tool(
    tool: &Tool,
    programs: Vec<Result<Installed, String>>,
    modules: &Modules,
) -> ToolStatus {
    let mut parts = Vec::new();
    let mut problems = Vec::new();
    for program in programs {
        match program {
            Ok(installed) => parts.push(installed),
            Err(problem) => problems.push(problem),
        }
    }
    let python = (tool.name == "python").then_some(&"python");
    for name in python.into_iter().chain(tool.modules) {
        match modules {
            // One Python has all modules, so its error is reported once.
            Err(problem) if problems.contains(problem) => {}
            Err(problem) => problems.push(problem.clone()),
            Ok(modules) => match modules.get(*name) {
                Some(version) => parts.push(Installed {
                    name: name.to_string(),
                    version: version.clone(),
                }),
                None => problems.push(format!("Python has no `{name}`")),
            },
        }
    }
    ToolStatus {
        parts,
        problem: (!problems.is_empty()).then(|| problems.join("; ")),
    }
}

/// Installed name of a program and its version, or the reason why it is unusable. The first of its names that is
/// installed counts. `path` is the value of `PATH`.
fn find_program(program: &Program, path: &OsStr) -> Result<Installed, String> {
    let mut problem = None;
    for name in program.names {
        let reason = match tool::version(name, program.arguments, path, VERSION_TIMEOUT) {
            VersionResult::Absent => continue,
            VersionResult::Failed(reason) => reason.lines().next().unwrap_or_default().to_string(),
            VersionResult::Output(output) => match find_version(&output) {
                Some((version, number)) if number >= program.oldest => {
                    return Ok(Installed {
                        name: name.to_string(),
                        version: version.to_string(),
                    })
                }
                Some((version, _)) => {
                    let (major, minor) = program.oldest;
                    format!("`{name}` is too old: {version}, and {major}.{minor} is needed")
                }
                None => format!(
                    "`{name}` does not print its version: it says {}",
                    quote_output(&output)
                ),
            },
        };
        problem.get_or_insert(reason);
    }
    let no_program = || format!("there is no `{}`", program.names.join("` and no `"));
    Err(problem.unwrap_or_else(no_program))
}

/// First dotted number in the first two lines: all of it, and its first two parts.
fn find_version(output: &str) -> Option<(&str, (u32, u32))> {
    let mut words = output.lines().take(2).flat_map(str::split_whitespace);
    words.find_map(|word| {
        let word = word.trim_start_matches(|sign: char| !sign.is_ascii_digit());
        let end = word.find(|sign: char| !(sign.is_ascii_digit() || sign == '.'));
        let word = &word[..end.unwrap_or(word.len())];
        let mut numbers = word.split('.').map(str::parse);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(major)), Some(Ok(minor))) => {
                Some((word.trim_end_matches('.'), (major, minor)))
            }
            _ => None,
        }
    })
}

/// Quotes a program's output that contains no version: its first line, shortened, without control characters.
fn quote_output(output: &str) -> String {
    let line = output.lines().next().unwrap_or_default();
    if line.is_empty() {
        return "nothing".to_string();
    }
    let printable = |sign: char| if sign.is_control() { '\u{fffd}' } else { sign };
    let is_cut = line.chars().count() > MAX_QUOTED_CHARACTERS;
    let line: String = line
        .chars()
        .take(MAX_QUOTED_CHARACTERS)
        .map(printable)
        .collect();
    format!("`{line}`{}", if is_cut { "..." } else { "" })
}

/// Versions of the installed distributions, for the Python that has the package, or else for the first that runs.
fn installed_modules() -> Modules {
    let (python, has_package) = python::find_python(VERSION_TIMEOUT)?;
    let names = TOOLS.iter().flat_map(|tool| tool.modules);
    let mut command = Command::new(&python);
    command.args(["-P", "-c", VERSION_SCRIPT]).args(names);
    let python_path = python.display();
    let output = match tool::output_within(&mut command, VERSION_TIMEOUT) {
        Ok(Some(output)) => output,
        Ok(None) => {
            return Err(format!(
                "`{python_path}` does not answer within {} seconds",
                VERSION_TIMEOUT.as_secs()
            ))
        }
        Err(error) => return Err(format!("`{python_path}` cannot be run: {error}")),
    };
    let versions: Option<BTreeMap<String, String>> = serde_json::from_slice(&output.stdout).ok();
    let mut versions =
        versions.ok_or_else(|| format!("`{python_path}` does not list its modules"))?;
    // A package that can be imported without being installed counts as present.
    match has_package {
        true => versions
            .entry("cohkit".to_string())
            .or_insert_with(|| "not installed".to_string()),
        false => {
            return Ok(versions
                .into_iter()
                .filter(|(name, _)| name != "cohkit")
                .collect())
        }
    };
    Ok(versions)
}
