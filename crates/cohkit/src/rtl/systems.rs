//! Coherent memory systems: caches, home and network.

use super::agents::{home, rejected, remotes};
use super::lockstep::default_cache_folder;
use super::{build_failure, file_name, interrupted, origin, write_outputs};
use crate::console::{Console, Terminal};
use crate::deliver;
use crate::interrupt::CleanupGuard;
use crate::options::{self, RtlTest};
use crate::progress::StatusLine;
use cohkit_api::files;
use cohkit_api::outcome::{ExitStatus, Failure};
use cohkit_api::source::Source;
use cohkit_base::words::counted;
use cohkit_protocol::controller::{Controller, Effect};
use cohkit_protocol::remotes::Remotes;
use cohkit_protocol::rows::event_words;
use cohkit_rtl::agents::layout::Agents;
use cohkit_rtl::agents::package::package;
use cohkit_rtl::agents::step::step;
use cohkit_rtl::agents::supported_agents;
use cohkit_rtl::print::Origin;
use cohkit_rtl::rom::Refusal;
use cohkit_rtl::systems::build::{build, units, Bench, File, Options};
use cohkit_rtl::systems::directory::{Directory, Entries};
use cohkit_rtl::systems::lockstep::run::{run, Run, RunError};
use cohkit_rtl::systems::sizes::Sizes;
use cohkit_rtl::systems::{check, file_list, top};
use serde_json::json;

/// Writes the package, the step functions, the units, the top and the file list into a folder.
pub(super) fn emit(options: &options::Emit, console: &mut Console) -> Result<ExitStatus, Failure> {
    let source = Source::read(&options.file, console.terminal.colour)?;
    let remotes = remotes(&source, "--system", &options.system)?;
    let home = home(&source, remotes, &console.terminal)?;
    let agents = supported(&source, &home, remotes, &console.terminal)?;
    let file = file_name(&options.file);
    let name = &source.protocol.name;
    let printed = printed(&agents, &origin(&source, &file), options.directory);
    let mut outputs =
        printed.map_err(|refusal| rejected(&source, "system", &refusal, &console.terminal))?;
    outputs.push((format!("{name}_system.f"), file_list(&agents)));
    outputs.extend(units());
    write_outputs(&options.out, &outputs)?;
    let result = match options.json {
        true => json(options, &agents),
        false => format!(
            "{name}: {}, {}: top {name}_system; all files: {name}_system.f\n",
            counted(agents.total(), "cache"),
            counted(outputs.len() as u64 - 1, "file"),
        ),
    };
    console.print(&result)?;
    Ok(ExitStatus::Success)
}

/// Returns the agents of a system with these caching agents.
///
/// # Errors
/// The file has a construct without a system.
pub(super) fn supported<'s>(
    source: &'s Source,
    home: &'s Controller,
    remotes: Remotes,
    terminal: &Terminal,
) -> Result<Agents<'s>, Failure> {
    supported_agents(&source.protocol, home, remotes)
        .and_then(|agents| check(&agents).map(|()| agents))
        .map_err(|refusal| rejected(source, "system", &refusal, terminal))
}

/// Returns the printed files: package, step functions and top.
///
/// # Errors
/// The home cannot have this directory.
pub(super) fn printed(
    agents: &Agents,
    origin: &Origin,
    directory: Directory,
) -> Result<Vec<File>, Refusal> {
    let name = &agents.protocol.name;
    let mut files = vec![(format!("{name}_agents_pkg.sv"), package(agents, origin))];
    for agent in &agents.agents {
        let file = format!("{name}_{}_step.sv", agent.name);
        files.push((file, step(agents, agent, origin)));
    }
    files.push((format!("{name}_system.sv"), top(agents, origin, directory)?));
    Ok(files)
}

/// Describes the written files as JSON.
fn json(options: &options::Emit, agents: &Agents) -> String {
    let name = &agents.protocol.name;
    let path = |file: String| options.out.join(file).display().to_string();
    let value = json!({
        "protocol": name,
        "caches": agents.total(),
        "directory": options.directory.name(),
        "module": format!("{name}_system"),
        "run": {
            "file": options.file.display().to_string(),
            "top": path(format!("{name}_system.sv")),
            "file_list": path(format!("{name}_system.f")),
            "version": env!("CARGO_PKG_VERSION"),
        },
    });
    format!("{value:#}\n")
}

/// Results of all runs.
#[derive(Default)]
struct Totals {
    /// Number of seeds without a difference.
    seeds: u64,
    /// Number of received messages.
    messages: u64,
    /// Number of compared steps, accesses and operations of memory.
    records: u64,
    /// Rows that some run has executed: of the caches' table, and of the home's.
    covered: [Vec<bool>; 2],
    /// First difference: seed, number of the record, text.
    difference: Option<(u64, u64, String)>,
}

/// Sizes of the tested system, from the options.
fn sizes(options: &RtlTest, agents: &Agents) -> Result<Sizes, Failure> {
    Sizes::new(agents, options.directory, &options.parameters)
        .map_err(|reason| Failure::new(ExitStatus::BadInput, format!("error: {reason}")))
}

/// Runs a system in lockstep with the executor of rows, until the first difference.
pub(super) fn test(options: &RtlTest, console: &mut Console) -> Result<ExitStatus, Failure> {
    let source = Source::read(&options.file, console.terminal.colour)?;
    let remotes = remotes(&source, "--system", &options.system)?;
    let home = home(&source, remotes, &console.terminal)?;
    let agents = supported(&source, &home, remotes, &console.terminal)?;
    let sizes = sizes(options, &agents)?;
    let file = file_name(&options.file);
    let cache = options
        .build_cache
        .clone()
        .unwrap_or_else(default_cache_folder);
    files::make_folder(&cache)?;
    for file in options.output.out.iter().chain(&options.waveform) {
        files::try_file(file)?;
    }
    let _cleanup = CleanupGuard::new();
    let program = {
        let status = format!("{}: building the RTL with Verilator", source.protocol.name);
        let _busy = StatusLine::new(status, &console.terminal);
        let printed = printed(&agents, &origin(&source, &file), options.directory);
        let printed =
            printed.map_err(|refusal| rejected(&source, "system", &refusal, &console.terminal))?;
        let files = (&units()[..], &printed[..]);
        let program = Options {
            bench: Bench::Lockstep,
            directory: options.directory,
            entries: Entries::default(),
            sizes,
            waveforms: options.waveform.is_some(),
        };
        build(&cache, &agents, files, program, console.interrupted).map_err(build_failure)?
    };
    let mut totals = Totals {
        covered: [&source.protocol.remote, &home].map(|table| vec![false; table.rules.len()]),
        ..Totals::default()
    };
    for seed in (0..options.seeds).map(|number| options.seed.wrapping_add(number)) {
        let run_options = Run {
            seed,
            messages: options.messages,
            waveform: options.waveform.as_deref(),
            directory: options.directory,
            entries: Entries::default(),
            sizes,
            fault: 0,
        };
        match run(&program, &agents, run_options, console.interrupted) {
            Ok(report) => {
                totals.seeds += 1;
                totals.messages += report.messages;
                totals.records += report.records;
                for (all, one) in totals.covered.iter_mut().zip(&report.covered) {
                    all.iter_mut().zip(one).for_each(|(all, one)| *all |= one);
                }
            }
            Err(RunError::Stopped) => return Err(interrupted()),
            Err(RunError::Failed(reason)) => {
                let message = format!("error: {reason}");
                return Err(Failure::new(ExitStatus::CouldNotRun, message));
            }
            Err(RunError::Difference(record, text)) => {
                totals.difference = Some((seed, record, text));
                break;
            }
        }
    }
    let result = match options.output.form.json {
        true => {
            let value = result_json(options, &agents, &totals);
            options.output.form.format_output(value, console)
        }
        false => result_text(options, &agents, &totals),
    };
    deliver(&result, &options.output, console)?;
    Ok(match totals.difference {
        Some(_) => ExitStatus::Violated,
        None => ExitStatus::Success,
    })
}

/// Rows that take an event, and that no run has executed: agent, state, event.
fn uncovered(agents: &Agents, totals: &Totals) -> (usize, Vec<[String; 3]>) {
    let mut rows = Vec::new();
    let mut count = 0;
    for agent in &agents.agents {
        let table = agents.controller(agent);
        let covered = &totals.covered[usize::from(agent.is_home)];
        for (number, rule) in table.rules.iter().enumerate() {
            let is_row = agent.states.contains(&rule.state.index())
                && matches!(rule.effect, Effect::Take { .. });
            count += usize::from(is_row);
            if is_row && !covered[number] {
                let state = table.states[rule.state.index()].name.clone();
                let event = event_words(agents.protocol, agents.home, rule.event);
                rows.push([agent.name.clone(), state, event.to_string()]);
            }
        }
    }
    (count, rows)
}

/// Command that repeats a run.
fn command(options: &RtlTest, seed: u64) -> String {
    let caches: Vec<String> = options.system.iter().map(u16::to_string).collect();
    let directory = match options.directory {
        Directory::Full => String::new(),
        directory => format!(" --directory {}", directory.name()),
    };
    let parameters = options.parameters.iter();
    let parameters: Vec<String> = parameters
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let parameters = match parameters.is_empty() {
        true => String::new(),
        false => format!(" --parameter {}", parameters.join(",")),
    };
    format!(
        "cohkit rtl test {} --system {}{directory}{parameters} --messages {} --seed {seed} --seeds 1",
        options.file.display(),
        caches.join(","),
        options.messages
    )
}

/// Result as text.
fn result_text(options: &RtlTest, agents: &Agents, totals: &Totals) -> String {
    let name = &agents.protocol.name;
    if let Some((seed, record, text)) = &totals.difference {
        return format!(
            "{name}: the RTL differs from the rows in record {record} of seed {seed}\n  {text}\n  repeat: {}\n",
            command(options, *seed)
        );
    }
    let (rows, uncovered) = uncovered(agents, totals);
    let mut text = format!(
        "{name}: no difference in {} of {}, {} compared; {} of {} executed\n",
        counted(totals.messages, "message"),
        counted(totals.seeds, "seed"),
        counted(totals.records, "record"),
        rows - uncovered.len(),
        counted(rows as u64, "row"),
    );
    if options.uncovered_rows {
        for [agent, state, event] in uncovered {
            text += &format!("  {agent}: {state} | {event}\n");
        }
    }
    text
}

/// Result as JSON.
fn result_json(options: &RtlTest, agents: &Agents, totals: &Totals) -> serde_json::Value {
    let (rows, uncovered) = uncovered(agents, totals);
    let difference = totals.difference.as_ref().map(|(seed, record, text)| {
        json!({"seed": seed, "record": record, "text": text, "command": command(options, *seed)})
    });
    json!({
        "protocol": agents.protocol.name,
        "caches": agents.total(),
        "directory": options.directory.name(),
        "seeds": totals.seeds,
        "messages": totals.messages,
        "records": totals.records,
        "rows": rows,
        "uncovered": uncovered,
        "difference": difference,
    })
}
