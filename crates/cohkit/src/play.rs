//! `cohkit play`: runs an application behind a home, and prints its counts and times, or a chart of its failure.

use crate::console::Console;
use crate::options::Play as Options;
use crate::sim::{failure, failure_text, number_text, platform, WIDTH};
use crate::{deliver, exhaustive, observers, rtl};
use cohkit_api::application_run::{Play, PlayResult, Request, TWO_LEVELS};
use cohkit_api::composition::MachineProtocols;
use cohkit_api::files;
use cohkit_api::outcome::{ExitStatus, Failure};
use cohkit_api::simulation::{set, warnings, StartError};
use cohkit_api::source::Source;
use cohkit_application::shipped::{ShippedScenario, SCENARIOS};
use cohkit_chart::Text;
use cohkit_sim::components::hosts::TrafficTotals;
use cohkit_sim::explain::FailureKind;
use cohkit_sim::platform::Platform;
use cohkit_sim::scenario::Tally;
use std::fmt::Write;
use std::time::Instant;

/// Runs or explores an application, and prints the result. The outcome is [`ExitStatus::Undecided`] without progress,
/// [`ExitStatus::BadInput`] if application and protocol are incompatible, and [`ExitStatus::Violated`] after any
/// other failure.
pub(crate) fn run(options: &Options, console: &mut Console) -> Result<ExitStatus, Failure> {
    if let Some(file) = &options.output.out {
        files::try_file(file)?;
    }
    if options.params.iter().any(|parameter| parameter == "help") {
        let shipped = SCENARIOS
            .iter()
            .find(|shipped| shipped.name == options.application);
        if let Some(shipped) = shipped {
            deliver(&parameters_text(shipped), &options.output, console)?;
            return Ok(ExitStatus::Success);
        }
    }
    reject_unsuitable_options(options, console)?;
    if let Some(file) = &options.reports.timeline_options.timeline {
        files::try_file(file)?;
    }
    let play = read_play(options, console)?;
    if options.exhaustive {
        return exhaustive::run(&play, options, console);
    }
    run_timed(play, options, console)
}

/// Rejects options that `--exhaustive` does not support.
fn reject_unsuitable_options(options: &Options, console: &Console) -> Result<(), Failure> {
    if !options.exhaustive {
        return Ok(());
    }
    let result = match options.reports.given_option() {
        Some(option) => Err(StartError::plain(format!(
            "`{option}` reports on one timed run, which `--exhaustive` does not make"
        ))),
        None => exhaustive::check_size(options),
    };
    result.map_err(|error| failure(error, console.terminal.colour))
}

/// Returns the application on its machine, as the options describe them. The home is the RTL if an option selects it.
fn read_play(options: &Options, console: &mut Console) -> Result<Play, Failure> {
    let colour = console.terminal.colour;
    let mut platform = platform(&options.platform, colour)?;
    let (source, host) = read_protocols(options, &platform, console)?;
    set(&mut platform, &options.set).map_err(|error| failure(error, colour))?;
    let request = Request {
        application: options.application.clone(),
        parameters: options.params.clone(),
        time: options.stop_after.clone(),
        warm_up: options.warm_up.clone(),
        settings: options.set.clone(),
        sizes: options.protocol_params.clone(),
        seed: options.seed,
        oracle: !options.no_oracle,
        tables: options.tables,
    };
    let rtl_home =
        rtl::home::build_rtl_home(&options.executor_options, &source, &platform, console)?;
    let charts = options.output.charts(console.terminal);
    let mut play = Play::new(source, host, platform, request).map_err(|error| match error {
        StartError::NoHome(source, error) => source.no_home(&error, &charts, colour),
        error => failure(error, colour),
    })?;
    // An exploration has no clock: its home is always the controller.
    if !options.exhaustive {
        play.setup.clocked = rtl_home;
    }
    Ok(play)
}

/// Simulates an application, and prints the result with the reports of the options.
fn run_timed(
    mut play: Play,
    options: &Options,
    console: &mut Console,
) -> Result<ExitStatus, Failure> {
    let colour = console.terminal.colour;
    let to_failure = |error: StartError| failure(error, colour);
    let timeline_options = &options.reports.timeline_options;
    play.explain = options.reports.explain;
    play.timeline = timeline_options.filter().map_err(to_failure)?;
    let timeline_file = timeline_options.create_file(&mut play.timeline)?;
    let start = Instant::now();
    let mut played = play
        .run(&mut || !console.is_interrupted())
        .map_err(to_failure)?;
    let seconds = start.elapsed().as_secs_f64();
    if let Ok(played) = &mut played {
        let timeline = played.statistics.timeline.as_deref_mut();
        timeline_options.finish_file(timeline_file, timeline)?;
    }
    let text = if options.output.form.json {
        let statistics = played.as_ref().ok().map(|played| &played.statistics);
        let value = play.json(&played, seconds);
        options.output.form.defined(value, statistics, console)
    } else {
        let charts = options.output.charts(console.terminal);
        let mut text = result_text(&play, &played, &charts);
        if let Ok(played) = &played {
            let width = charts.width.unwrap_or(WIDTH);
            text.push_str(&observers::text(&played.statistics, width));
        }
        text
    };
    deliver(&text, &options.output, console)?;
    Ok(match played {
        Ok(_) => ExitStatus::Success,
        Err(failure) if failure.kind == FailureKind::NoProgress => ExitStatus::Undecided,
        // Application and protocol are incompatible; neither is wrong by itself.
        Err(failure) if failure.kind == FailureKind::Incompatible => ExitStatus::BadInput,
        Err(_) => ExitStatus::Violated,
    })
}

/// Protocol of the home behind which the application runs, and that of the host's memory if the composition has both.
fn read_protocols(
    options: &Options,
    platform: &Platform,
    console: &Console,
) -> Result<(Source, Option<Source>), Failure> {
    let to_failure =
        |reason: &str| failure(StartError::plain(reason.into()), console.terminal.colour);
    let protocols = match &options.protocol {
        Some(path) => MachineProtocols::read(path, console.terminal.colour)?,
        None => MachineProtocols::of_platform(platform, console.terminal.colour)?,
    };
    match protocols {
        MachineProtocols::Single(source) => Ok((source, None)),
        MachineProtocols::Directions(..) if options.exhaustive => Err(to_failure(
            "`--exhaustive` explores one address space, but the specification composes two",
        )),
        MachineProtocols::Directions(device, host) => Ok((device, Some(host))),
        MachineProtocols::Levels(..) => Err(to_failure(TWO_LEVELS)),
    }
}

/// Parameters of an application as text.
fn parameters_text(shipped: &ShippedScenario) -> String {
    let mut text = format!("{}: {}\n\n", shipped.name, shipped.text);
    let width = shipped.parameters.iter().map(|p| p.name.len()).max();
    let width = width.unwrap_or(0);
    for parameter in shipped.parameters {
        let (name, default) = (parameter.name, parameter.default);
        let _ = writeln!(text, "{name:width$}  {default:>7}  {}", parameter.text);
    }
    text
}

/// Result of a run as text.
fn result_text(play: &Play, played: &PlayResult, charts: &Text) -> String {
    let parameters = play.parameter_values.iter();
    let parameters: Vec<String> = parameters
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let setup = &play.setup;
    let mut text = format!(
        "{} on {}: {} with {}, seed {}\n",
        setup.protocol.name,
        setup.platform.name,
        play.request.application,
        parameters.join(" "),
        setup.seed
    );
    for warning in warnings(setup) {
        let _ = writeln!(text, "warning: {warning}");
    }
    match played {
        Err(failure) => text + &failure_text(failure, charts),
        Ok(played) if played.tally.window == 0 => {
            let warm_up = &play.request.warm_up;
            let _ = writeln!(
                text,
                "\nnothing was measured: the application ended before the end of the warm-up of {warm_up} had"
            );
            text
        }
        Ok(played) => {
            text + &tally_text(&played.tally) + &host_traffic_text(&played.statistics.traffic)
        }
    }
}

/// Counters of the measured window with their rates, and distributions of the measured times in nanoseconds.
fn tally_text(tally: &Tally) -> String {
    let names = tally.counts.keys().chain(tally.times.keys());
    let width = names.map(|name| name.len()).max().unwrap_or(0);
    let window = number_text(tally.window as f64 / 1000.0);
    let mut text = format!("\ncounted in {window} ns, and per second\n");
    for (counter, count) in &tally.counts {
        let rate = number_text(tally.rate(counter));
        let _ = writeln!(text, "  {counter:width$}  {count:>12}  {rate:>16}");
    }
    if !tally.times.is_empty() {
        let _ = writeln!(
            text,
            "timed, ns{:indent$}  {:>12}  {:>10}  {:>10}  {:>10}  {:>10}",
            "",
            "count",
            "mean",
            "p50",
            "p99",
            "max",
            indent = width.saturating_sub(7)
        );
    }
    for (counter, times) in &tally.times {
        let count = times.count();
        let cells = [
            times.mean(),
            times.percentile(0.5) as f64,
            times.percentile(0.99) as f64,
            times.max() as f64,
        ]
        .map(|picoseconds| format!("  {:>10}", number_text(picoseconds / 1000.0)));
        let _ = writeln!(text, "  {counter:width$}  {count:>12}{}", cells.concat());
    }
    text
}

/// Messages and bytes between hosts, and bytes on meshes inside them, as text; empty without hosts.
fn host_traffic_text(traffic: &[(String, TrafficTotals)]) -> String {
    let mut text = String::new();
    for (name, totals) in traffic {
        if text.is_empty() {
            text = "between hosts  messages         bytes  bytes on meshes\n".into();
        }
        let TrafficTotals {
            between: messages,
            between_bytes: message_bytes,
            mesh_bytes,
        } = totals;
        let _ = writeln!(
            text,
            "  {name:13}{messages:>8}  {message_bytes:>12}  {mesh_bytes:>15}"
        );
    }
    text
}
