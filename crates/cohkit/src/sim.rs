//! `cohkit sim`: runs a workload on a machine, and prints statistics, or a chart of its failure.

use crate::console::Console;
use crate::options::Sim;
use crate::progress::ProgressLine;
use crate::table::wrap;
use crate::{deliver, observers, rtl, summary};
use cohkit_api::composition::MachineProtocols;
use cohkit_api::files;
use cohkit_api::outcome::{ExitStatus, Failure};
use cohkit_api::simulation::{
    max_concurrent_runs, read_platform, set, shipped_platform, warnings, Request, RunResult,
    Simulation, StartError,
};
use cohkit_api::source::error_at;
use cohkit_chart::Text;
use cohkit_diagnostics::Excerpt;
use cohkit_sim::components::recorded::ReadError;
use cohkit_sim::explain::{self, FailureKind};
use cohkit_sim::platform::Platform;
use cohkit_sim::simulation::{home, trace, Setup};
use cohkit_sim::statistics::Statistics;
use cohkit_timeline::Side;
use cohkit_trace::Trace;
use cohkit_units::{self as units, Unit};
use std::fmt::Write;
use std::path::Path;
use std::time::Instant;

/// Width of text that does not go to a terminal, in columns.
pub(crate) const WIDTH: usize = 100;

/// Runs a workload, and prints its statistics or its failure. The outcome is [`ExitStatus::Undecided`]
/// without progress, and [`ExitStatus::Violated`] after any other failure.
pub(crate) fn run(options: &Sim, console: &mut Console) -> Result<ExitStatus, Failure> {
    // Reject unusable output paths before a long run.
    let files = options.output.out.iter().chain(&options.trace);
    for file in files.chain(&options.reports.timeline_options.timeline) {
        files::try_file(file)?;
    }
    let colour = console.terminal.colour;
    let to_failure = |error: StartError| failure(error, colour);
    let mut simulation = read_simulation(options, console)?;
    let timeline_options = &options.reports.timeline_options;
    simulation.timeline = timeline_options.filter().map_err(to_failure)?;
    // Reject unsupported output options before a long run.
    if options.trace.is_some() {
        reject_missing_line(&simulation.setup, options.trace_line)?;
    }
    if let Some(line) = timeline_options.timeline_line {
        reject_missing_line(&simulation.setup, line)?;
    }
    max_concurrent_runs(&[&simulation], Some(1)).map_err(to_failure)?;
    let timeline_file = timeline_options.create_file(&mut simulation.timeline)?;
    let start = Instant::now();
    let mut result = simulate(&simulation, console).map_err(to_failure)?;
    let seconds = start.elapsed().as_secs_f64();
    if let (Some(file), Ok(_)) = (&options.trace, &result) {
        write_line_trace(&simulation.setup, options.trace_line, file)?;
    }
    if let Ok(statistics) = &mut result {
        let timeline = statistics.timeline.as_deref_mut();
        timeline_options.finish_file(timeline_file, timeline)?;
    }
    let text = if options.output.form.json {
        let value = simulation.json(&result, seconds);
        options
            .output
            .form
            .defined(value, result.as_ref().ok(), console)
    } else {
        let charts = options.output.charts(console.terminal);
        report(&simulation, &result, &charts)
    };
    deliver(&text, &options.output, console)?;
    Ok(match result {
        Ok(_) => ExitStatus::Success,
        Err(failure) if failure.kind == FailureKind::NoProgress => ExitStatus::Undecided,
        Err(_) => ExitStatus::Violated,
    })
}

/// Returns the simulation that the options describe. The home is the RTL if an option selects it.
fn read_simulation(options: &Sim, console: &mut Console) -> Result<Simulation, Failure> {
    let colour = console.terminal.colour;
    let to_failure = |error: StartError| failure(error, colour);
    let charts = options.output.charts(console.terminal);
    let mut platform = platform(&options.platform, colour)?;
    let protocols = match &options.protocol {
        Some(path) => MachineProtocols::read(path, colour)?,
        None => MachineProtocols::of_platform(&platform, colour)?,
    };
    let request = request(options);
    // Settings come first: the number of remotes also determines the home.
    set(&mut platform, &request.settings).map_err(to_failure)?;
    let has_two_levels = matches!(protocols, MachineProtocols::Levels(..));
    let (source, second) = protocols
        .on_platform(&platform)
        .map_err(|error| match error {
            StartError::NoHome(lower, error) => lower.no_home(&error, &charts, colour),
            error => to_failure(error),
        })?;
    let home = home(&source.protocol, platform.all_remotes() as u16)
        .map_err(|error| source.no_home(&error, &charts, colour))?;
    let rtl_home =
        rtl::home::build_rtl_home(&options.executor_options, &source, &platform, console)?;
    if has_two_levels {
        reject_one_level_reports(options).map_err(to_failure)?;
    }
    let simulation = Simulation::new(source, home, second, platform, request);
    let mut simulation = simulation.map_err(to_failure)?;
    simulation.setup.clocked = rtl_home;
    Ok(simulation)
}

/// Rejects options that report on one level if there are two.
fn reject_one_level_reports(options: &Sim) -> Result<(), StartError> {
    let trace_option = options.trace.as_ref().map(|_| "--trace");
    match trace_option.or(options.reports.given_option()) {
        Some(option) => Err(StartError::plain(format!(
            "`{option}` supports one level of caches, but the machine has two"
        ))),
        None => Ok(()),
    }
}

/// Simulation request of the options.
fn request(options: &Sim) -> Request {
    Request {
        work: options.workload.clone(),
        region: options.region.clone(),
        accesses: options.accesses,
        cores: options.cores,
        outstanding: options.outstanding,
        prefetch: options.prefetch,
        kind_workloads: options.kind_workloads.clone(),
        settings: options.set.clone(),
        seed: options.seed,
        oracle: !options.no_oracle,
        explain: options.reports.explain,
    }
}

/// Writes the events on one line.
fn write_line_trace(setup: &Setup, (side, line): (Side, u32), file: &Path) -> Result<(), Failure> {
    let input_error =
        |reason: String| Failure::new(ExitStatus::BadInput, format!("error: {reason}"));
    let (_, sequence) = trace(setup, side, line).map_err(|error| input_error(error.to_string()))?;
    let trace_json = Trace {
        sequence,
        ends_quiescent: true,
    }
    .json();
    files::write(file, &format!("{trace_json:#}\n"))
}

/// Rejects a line that nothing accesses, as there would be nothing to report.
fn reject_missing_line(setup: &Setup, (side, line): (Side, u32)) -> Result<(), Failure> {
    let input_error =
        |message: String| Failure::new(ExitStatus::BadInput, format!("error: {message}"));
    let lines = match (&setup.host, side) {
        (_, Side::Device) => setup.workload.lines,
        (Some(host), Side::Host) => (host.workloads.iter())
            .filter(|workload| workload.cores > 0)
            .map(|workload| workload.lines)
            .max()
            .unwrap_or(0),
        (None, Side::Host) => {
            let message = "there is no line of the host's memory";
            let help = "two machines joined by `+` have two address spaces";
            return Err(input_error(format!("{message}\n  help: {help}")));
        }
    };
    if line >= lines {
        return Err(input_error(format!(
            "there is no line {line}\n  help: the region has {lines}"
        )));
    }
    Ok(())
}

/// Runs the simulation, with a progress bar, until it ends or is interrupted.
fn simulate(simulation: &Simulation, console: &Console) -> Result<RunResult, StartError> {
    let setup = &simulation.setup;
    let name = format!("{} on {}", setup.protocol.name, setup.platform.name);
    let bar = ProgressLine::new(name, simulation.accesses(), "accesses", &console.terminal);
    simulation.run(&mut |performed| {
        bar.show(performed);
        !console.is_interrupted()
    })
}

/// Converts an error to a failure, formatted for a terminal.
pub(crate) fn failure(error: StartError, colour: bool) -> Failure {
    let message = match error {
        StartError::Failure(failure) => return failure,
        StartError::Input {
            message: reason,
            help,
        } => {
            let help = help.map_or(String::new(), |help| format!("\n  help: {help}"));
            format!("error: {reason}{help}")
        }
        StartError::Platform { file, text, errors } => {
            let errors: Vec<String> = errors
                .iter()
                .map(|error| {
                    let span = error.span.clone().into();
                    error_at(
                        Excerpt::whole(&file, &text),
                        &error.message,
                        span,
                        None,
                        colour,
                    )
                })
                .collect();
            errors.join("\n\n")
        }
        StartError::Trace { file, error } => trace_error(&file, &error, colour),
        StartError::NoHome(source, error) => {
            return source.no_home(&error, &Text::default(), colour)
        }
    };
    Failure::new(ExitStatus::BadInput, message)
}

/// Error of a memory trace, with the line where it is.
fn trace_error(file: &str, error: &ReadError, colour: bool) -> String {
    let ReadError::Text {
        number,
        text,
        place,
        what: reason,
    } = error
    else {
        return format!("error: {file}: {error}");
    };
    let excerpt = Excerpt {
        file,
        text,
        first_line: usize::try_from(*number).unwrap_or(usize::MAX),
    };
    error_at(excerpt, reason, place.clone().into(), None, colour)
}

/// Returns the shipped platform of this name, or the one in the file; two joined by `+` are one machine
/// with two address spaces.
///
/// # Errors
/// There is no such platform, its file has errors, or the two cannot be joined.
pub(crate) fn platform(path: &Path, colour: bool) -> Result<Platform, Failure> {
    let name_text = path.display().to_string();
    if let (Some((device, host)), false) = (name_text.split_once('+'), path.exists()) {
        let [device, host] = [device, host].map(|name| platform(Path::new(name), colour));
        return device?
            .with_host(host?)
            .map_err(|reason| failure(StartError::plain(reason), colour));
    }
    let is_file = path.extension().is_some_and(|ending| ending == "toml");
    let platform = if !is_file {
        shipped_platform(&name_text)
    } else if path.is_dir() {
        Err(StartError::input(
            format!("{name_text}: is a folder"),
            "name a file",
        ))
    } else if path.exists() {
        read_platform(&name_text, &files::read(path)?)
    } else {
        Err(StartError::input(
            format!("{name_text}: no such file"),
            "check the path",
        ))
    };
    platform.map_err(|error| failure(error, colour))
}

/// Result of a run as text.
fn report(simulation: &Simulation, result: &RunResult, charts: &Text) -> String {
    let Setup {
        protocol,
        platform,
        workload,
        seed,
        ..
    } = &simulation.setup;
    let other_workloads = simulation.request.kind_workloads.iter();
    let other_workloads: String = other_workloads.fold(String::new(), |other_workloads, work| {
        format!("{other_workloads}, {}", work.replacen('=', " ", 1))
    });
    let region = u64::from(workload.lines) * u64::from(protocol.line_bytes);
    let region = units::show(region, Unit::Bytes);
    let heading = format!(
        "{} on {}, {}: {} of {region}, {}, {} outstanding, hints {} ahead, seed {seed}{other_workloads}",
        protocol.name,
        platform.name,
        simulation.describe_machine(),
        simulation.request.work.name(),
        accesses(workload.accesses),
        workload.outstanding,
        workload.prefetch,
    );
    let width = charts.width.unwrap_or(WIDTH);
    let warnings = warnings(&simulation.setup).into_iter();
    let warnings = warnings.map(|warning| format!("warning: {warning}"));
    let mut text = String::new();
    for line in std::iter::once(heading)
        .chain(warnings)
        .flat_map(|paragraph| wrap(&paragraph, width))
    {
        let _ = writeln!(text, "{line}");
    }
    let statistics = match result {
        Ok(statistics) => statistics,
        Err(failure) => {
            text.push_str(&failure_text(failure, charts));
            return text;
        }
    };
    text.push('\n');
    summary::write(&mut text, statistics, width);
    text.push('\n');
    write_statistics(&mut text, statistics, width);
    if let Some(upper) = &statistics.upper_level {
        text.push_str("\nthe upper level:\n");
        write_statistics(&mut text, upper, width);
    }
    if let Some(host) = &statistics.host {
        text.push_str("\nthe host's memory:\n");
        write_statistics(&mut text, host, width);
    }
    text.push_str(&observers::text(statistics, width));
    text
}

/// Writes statistics and numbers of messages, with their definitions.
fn write_statistics(text: &mut String, statistics: &Statistics, width: usize) {
    let sent_messages = statistics.messages.iter().filter(|(_, count)| *count > 0);
    let mut rows: Vec<(&str, String, &str)> = statistics
        .values
        .iter()
        .map(|(definition, value)| {
            (
                definition.name,
                number_text(value.number()),
                definition.text,
            )
        })
        .collect();
    rows.extend(
        sent_messages.map(|(name, count)| (name.as_str(), count.to_string(), "messages sent")),
    );
    let max_width = |cell: fn(&(&str, String, &str)) -> usize| rows.iter().map(cell).max();
    let names = max_width(|row| row.0.len()).unwrap_or(0);
    let values = max_width(|row| row.1.len()).unwrap_or(0);
    let indent = names + values + 4;
    let width = width.saturating_sub(indent).max(20);
    for (name, value, definition) in &rows {
        let lines = wrap(definition, width);
        let _ = writeln!(text, "{name:names$}  {value:>values$}  {}", lines[0]);
        for line in &lines[1..] {
            let _ = writeln!(text, "{:indent$}{line}", "");
        }
    }
}

/// Failure of a run as text.
pub(crate) fn failure_text(failure: &explain::Failure, charts: &Text) -> String {
    let time = units::show(failure.time, Unit::Picoseconds);
    let verdict = match failure.kind {
        FailureKind::NoProgress => "given up",
        _ => "violated",
    };
    let (kind, reason, line) = (failure.kind, &failure.text, failure.line);
    let mut text = format!("{verdict}: {kind}: {reason}\n  line {line}, after {time}\n");
    for wait in &failure.wait_for {
        let _ = writeln!(text, "  {wait}");
    }
    let chart = cohkit_chart::text(&failure.sequence, charts);
    let _ = write!(text, "\n{chart}\n");
    text
}

/// Formats a value with at most three decimals.
pub(crate) fn number_text(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// Number of accesses as text.
fn accesses(count: u64) -> String {
    match count {
        1 => "1 access".to_string(),
        _ => format!("{count} accesses"),
    }
}
