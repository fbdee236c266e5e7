//! `cohkit doctor`: third-party tools that are installed, what they enable, and how to install the missing ones.

use crate::console::Console;
use crate::deliver;
use crate::options::Doctor;
use crate::outcome::{ExitStatus, Failure};
use crate::python;
use cohkit_rtl::tool::{self, VersionAnswer};
use cohkit_rtl::tools::{Program, Tool, TOOLS};
use serde_json::{json, Map, Value};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write;
use std::process::Command;
use std::thread;
use std::time::Duration;

/// Time limit for each program to print its version.
const LIMIT: Duration = Duration::from_secs(10);

/// Width of the text, in columns: the narrowest common terminal.
const WIDTH: usize = 80;

/// Columns before the description of a tool.
const INDENT: usize = 22;

/// Maximum length of a program's output that is quoted if it contains no version, in characters.
const MOST: usize = 40;

/// Python program that prints the versions of those distributions among its arguments that are installed.
const PROBE: &str = "\
import importlib.metadata, json, sys
told = {'python': sys.version.split()[0]}
for name in sys.argv[1:]:
    try:
        told[name] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        pass
print(json.dumps(told))";

/// Versions of the parts of a tool, and the reason why it is unusable, if it is.
type Found = (Vec<(String, String)>, Option<String>);

pub(crate) fn run(options: &Doctor, console: &mut Console) -> Result<ExitStatus, Failure> {
    let path = tool::search_path();
    // Concurrently: a program that does not answer delays no other.
    let found: Vec<Found> = thread::scope(|scope| {
        let modules = scope.spawn(modules);
        let programs = TOOLS.iter().map(|tool| {
            let asked = tool.programs.iter().map(|program| {
                let path = &path;
                scope.spawn(move || ask(program, path))
            });
            asked.collect::<Vec<_>>()
        });
        let programs: Vec<Vec<_>> = programs.collect();
        let modules = modules.join().expect("it does not panic");
        let answers = programs.into_iter().map(|of_tool| {
            let answers = of_tool.into_iter();
            answers.map(|answer| answer.join().expect("it does not panic"))
        });
        let answers: Vec<Vec<_>> = answers.map(Iterator::collect).collect();
        let tools = TOOLS.iter().zip(answers);
        tools
            .map(|(tool, answers)| found(tool, answers, &modules))
            .collect()
    });
    let told = if options.output.form.json {
        let tools = TOOLS
            .iter()
            .zip(&found)
            .map(|(tool, found)| json(tool, found));
        options.output.form.told(
            json!({
                "tools": tools.collect::<Value>(),
                "run": { "version": env!("CARGO_PKG_VERSION") },
            }),
            console,
        )
    } else {
        let tools = TOOLS.iter().zip(&found);
        let tools = tools.map(|(tool, found)| text(tool, found));
        let head = format!("{:13}  there  purpose; version, or problem\n", "tool");
        head + &tools.collect::<String>()
    };
    deliver(&told, &options.output, console)?;
    Ok(ExitStatus::Success)
}

fn json(tool: &Tool, (versions, why): &Found) -> Value {
    let programs = tool
        .programs
        .iter()
        .map(|program| program.names.join(" or "));
    let versions = versions.iter();
    let versions: Map<String, Value> = versions
        .map(|(name, version)| (name.clone(), version.as_str().into()))
        .collect();
    json!({
        "name": tool.name,
        "what": tool.what,
        "programs": programs.collect::<Value>(),
        "modules": tool.modules,
        "enables": tool.enables,
        "brought_by": tool.brought_by,
        "run": { "there": why.is_none(), "versions": versions, "why": why },
    })
}

fn text(tool: &Tool, (versions, why): &Found) -> String {
    let last = match why {
        Some(why) => format!("{why}; install {}", tool.brought_by),
        None => {
            let versions = versions.iter();
            let versions = versions.map(|(name, version)| format!("{name} {version}"));
            versions.collect::<Vec<_>>().join(", ")
        }
    };
    let there = if why.is_none() { "yes" } else { "no" };
    let mut text = format!("{:13}  {there:5}  ", tool.name);
    text += &wrapped(tool.enables);
    let _ = write!(text, "{:INDENT$}{}", "", wrapped(&last));
    text
}

/// Wraps words to the width; all lines but the first are indented.
fn wrapped(words: &str) -> String {
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

fn found(
    tool: &Tool,
    programs: Vec<Result<(String, String), String>>,
    modules: &Result<BTreeMap<String, String>, String>,
) -> Found {
    let mut versions = Vec::new();
    let mut why = Vec::new();
    for program in programs {
        match program {
            Ok(told) => versions.push(told),
            Err(what) => why.push(what),
        }
    }
    let own = (tool.name == "python").then_some(&"python");
    for name in own.into_iter().chain(tool.modules) {
        match modules {
            // One Python has all modules, so its error is reported once.
            Err(what) if why.contains(what) => {}
            Err(what) => why.push(what.clone()),
            Ok(modules) => match modules.get(*name) {
                Some(version) => versions.push((name.to_string(), version.clone())),
                None => why.push(format!("Python has no `{name}`")),
            },
        }
    }
    (versions, (!why.is_empty()).then(|| why.join("; ")))
}

/// Installed name of a program and its version, or the reason why it is unusable.
fn ask(program: &Program, path: &OsStr) -> Result<(String, String), String> {
    let mut why = None;
    for name in program.names {
        let what = match tool::version(name, program.arguments, path, LIMIT) {
            VersionAnswer::Absent => continue,
            VersionAnswer::Fails(what) => what.lines().next().unwrap_or_default().to_string(),
            VersionAnswer::Says(says) => match version(&says) {
                Some((version, number)) if number >= program.oldest => {
                    return Ok((name.to_string(), version.to_string()))
                }
                Some((version, _)) => {
                    let (major, minor) = program.oldest;
                    format!("`{name}` is too old: {version}, and {major}.{minor} is needed")
                }
                None => format!(
                    "`{name}` does not print its version: it says {}",
                    shown(&says)
                ),
            },
        };
        why.get_or_insert(what);
    }
    let none = || format!("there is no `{}`", program.names.join("` and no `"));
    Err(why.unwrap_or_else(none))
}

/// First dotted number in the first two lines: all of it, and its first two parts.
fn version(says: &str) -> Option<(&str, (u32, u32))> {
    let mut words = says.lines().take(2).flat_map(str::split_whitespace);
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
fn shown(says: &str) -> String {
    let line = says.lines().next().unwrap_or_default();
    if line.is_empty() {
        return "nothing".to_string();
    }
    let plain = |sign: char| if sign.is_control() { '\u{fffd}' } else { sign };
    let cut = line.chars().count() > MOST;
    let line: String = line.chars().take(MOST).map(plain).collect();
    format!("`{line}`{}", if cut { "..." } else { "" })
}

/// Versions of the installed distributions, for the Python that has the package, or else for the first that runs.
fn modules() -> Result<BTreeMap<String, String>, String> {
    let (python, has) = python::find(LIMIT)?;
    let names = TOOLS.iter().flat_map(|tool| tool.modules);
    let mut command = Command::new(&python);
    command.args(["-P", "-c", PROBE]).args(names);
    let shown = python.display();
    let output = match tool::within(&mut command, LIMIT) {
        Ok(Some(output)) => output,
        Ok(None) => {
            return Err(format!(
                "`{shown}` does not answer within {} seconds",
                LIMIT.as_secs()
            ))
        }
        Err(error) => return Err(format!("`{shown}` cannot be run: {error}")),
    };
    let told: Option<BTreeMap<String, String>> = serde_json::from_slice(&output.stdout).ok();
    let mut told = told.ok_or_else(|| format!("`{shown}` does not list its modules"))?;
    // A package that can be imported without being installed counts as present.
    match has {
        true => told
            .entry("cohkit".to_string())
            .or_insert_with(|| "not installed".to_string()),
        false => {
            return Ok(told
                .into_iter()
                .filter(|(name, _)| name != "cohkit")
                .collect())
        }
    };
    Ok(told)
}
