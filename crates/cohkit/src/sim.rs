//! `cohkit sim`: a workload on a machine, with statistics, or with a chart of what went wrong.

use crate::console::Console;
use crate::options::Sim;
use crate::outcome::{Failure, Outcome};
use crate::progress::Line;
use crate::protocols::{error_at, Source, Wrong};
use crate::table::wrap;
use crate::{deliver, files, size};
use clap::ValueEnum;
use cohkit_chart::Text;
use cohkit_protocol::construct::ConstructionError;
use cohkit_protocol::controller::Access;
use cohkit_protocol::words::counted;
use cohkit_sim::agents::device::DeviceWorkload;
use cohkit_sim::components::traffic::{Pattern, Workload};
use cohkit_sim::explain::{self, FailureKind};
use cohkit_sim::oracle::Level;
use cohkit_sim::platform::{text, units, Platform, Quantity, Unit};
use cohkit_sim::simulation::{home, run_while, RunError, Setup};
use cohkit_sim::statistics::Statistics;
use serde_json::{json, Map, Value};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The protocol of the shipped platforms.
const PROTOCOL: (&str, &str) = ("eci.coh", include_str!("../../../protocols/eci.coh"));

/// What the cores do.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    SequentialRead,
    RandomRead,
    SequentialWrite,
    RandomWrite,
}

impl Kind {
    fn parts(self) -> (&'static str, Pattern, Access) {
        match self {
            Kind::SequentialRead => ("sequential-read", Pattern::Chunked, Access::Load),
            Kind::RandomRead => ("random-read", Pattern::Random, Access::Load),
            Kind::SequentialWrite => ("sequential-write", Pattern::Chunked, Access::Store),
            Kind::RandomWrite => ("random-write", Pattern::Random, Access::Store),
        }
    }
}

pub(crate) fn run(options: &Sim, console: &mut Console) -> Result<Outcome, Failure> {
    let platform = platform(options, console)?;
    let source = match &options.protocol {
        Some(path) => Source::read(path, console)?,
        None => {
            let (name, text) = PROTOCOL;
            Source::parse(PathBuf::from(name), text.to_string()).map_err(|_| {
                bad(
                    "the shipped protocol cannot be read",
                    "name one with `--protocol`",
                )
            })?
        }
    };
    let charts = Text {
        width: console.terminal.width,
        ascii: options.output.ascii,
    };
    let home = home(&source.protocol, platform.remotes).map_err(|error| match error {
        ConstructionError::Refused(refusal) => source.refusal(&refusal, console),
        ConstructionError::Fault(fault) => {
            let report = source.fault(&fault, &charts, console.terminal.colour);
            Failure::new(Outcome::No, report)
        }
    })?;
    let setup = Setup {
        workload: workload(options, &platform, source.protocol.line_bytes)?,
        protocol: source.protocol.clone(),
        home,
        platform,
        device: DeviceWorkload::default(),
        seed: options.seed,
        oracle: if options.no_oracle {
            Level::Off
        } else {
            Level::Versions
        },
    };
    let report = Report {
        options,
        source: &source,
        setup: &setup,
    };
    let begun = Instant::now();
    let result = simulate(&setup, console);
    let seconds = begun.elapsed().as_secs_f64();
    let result = match result {
        Ok(statistics) => Ok(statistics),
        Err(RunError::Failure(failure)) => Err(failure),
        Err(RunError::Stopped) => return Err(Failure::new(Outcome::Interrupted, "interrupted")),
        Err(RunError::Setup(what)) => {
            return Err(source.failure(
                Wrong::plain(format!("cannot be simulated: {what}")),
                console,
            ))
        }
    };
    let text = if options.output.json {
        format!("{:#}\n", report.json(&result, seconds))
    } else {
        report.text(&result, &charts)
    };
    deliver(&text, &options.output, console)?;
    Ok(match result {
        Ok(_) => Outcome::Yes,
        Err(failure) if failure.kind == FailureKind::NoProgress => Outcome::Undecided,
        Err(_) => Outcome::No,
    })
}

fn simulate(setup: &Setup, console: &Console) -> Result<Statistics, RunError> {
    let name = format!("{} on {}", setup.protocol.name, setup.platform.name);
    let line = Line::new(name, &console.terminal);
    let total = setup.workload.accesses;
    run_while(setup, &mut |performed| {
        line.say(&format!("{performed} of {}", accesses(total)));
        !console.is_interrupted()
    })
}

fn bad(what: impl std::fmt::Display, help: impl std::fmt::Display) -> Failure {
    let message = format!("error: {what}\n  help: {help}");
    Failure::new(Outcome::BadInput, message)
}

fn platform(options: &Sim, console: &Console) -> Result<Platform, Failure> {
    let path = &options.platform;
    let mut platform = if path
        .extension()
        .is_some_and(|extension| extension == "toml")
    {
        read(path, console)?
    } else {
        let shipped = path.to_str().and_then(Platform::shipped);
        shipped.ok_or_else(|| {
            let names: Vec<&str> = Platform::shipped_names().collect();
            let names = names.join(", ");
            bad(
                format!("no platform is named `{}`", path.display()),
                format!("the shipped platforms are {names}; the name of a file ends in `.toml`"),
            )
        })?
    };
    for setting in &options.set {
        let Some((name, value)) = setting.split_once('=') else {
            let what = format!("`--set {setting}` has no `=`");
            return Err(bad(what, "write it like `--set link.latency=120ns`"));
        };
        platform.set(name.trim(), value.trim()).map_err(|what| {
            let message = format!("error: `--set {setting}`: {what}");
            Failure::new(Outcome::BadInput, message)
        })?;
    }
    Ok(platform)
}

fn read(path: &Path, console: &Console) -> Result<Platform, Failure> {
    let shown = path.display().to_string();
    if !path.exists() {
        return Err(bad(format!("{shown}: no such file"), "is the path right?"));
    }
    let text = files::read(path)?;
    text::read(&text).map_err(|errors| {
        let colour = console.terminal.colour;
        let error = |error: &text::PlatformError| {
            error_at(
                &shown,
                &text,
                &error.message,
                error.span.clone(),
                None,
                colour,
            )
        };
        let errors: Vec<String> = errors.iter().map(error).collect();
        Failure::new(Outcome::BadInput, errors.join("\n\n"))
    })
}

fn workload(options: &Sim, platform: &Platform, line_bytes: u32) -> Result<Workload, Failure> {
    let (name, pattern, access) = options.workload.parts();
    let region = units::parse(&options.region, Unit::Bytes).map_err(|what| {
        let message = format!("error: `--region {}` {what}", options.region);
        Failure::new(Outcome::BadInput, message)
    })?;
    let line = u64::from(line_bytes);
    let memory = u64::from(platform.lines) * line;
    if region == 0 || region % line != 0 {
        let what = format!("a region of {} is not some whole lines", options.region);
        return Err(bad(what, format!("a line has {line} bytes")));
    }
    if region > memory {
        let what = format!(
            "a region of {} is larger than the memory of {}, {}",
            options.region,
            platform.name,
            units::show(memory, Unit::Bytes)
        );
        return Err(bad(
            what,
            "a smaller `--region`, or more `lines` of the platform",
        ));
    }
    if access != Access::Load && options.prefetch.is_some_and(|ahead| ahead > 0) {
        let what = format!("`--prefetch` has no meaning for {name}");
        return Err(bad(what, "hints go ahead of reads only"));
    }
    let accesses = options.accesses.unwrap_or(region / line);
    let written = match access {
        Access::Store => region.min(accesses.saturating_mul(line)),
        _ => 0,
    };
    if size::free_memory().is_some_and(|free| free < written) {
        let shown = units::show(written, Unit::Bytes);
        return Err(Failure::new(
            Outcome::CouldNotRun,
            format!("error: what is written, {shown}, does not fit into the memory that is free here\n  help: a smaller `--region`, or fewer `--accesses`"),
        ));
    }
    // No larger than the number of lines of the platform.
    let lines = u32::try_from(region / line).unwrap_or(platform.lines);
    // All counts are at most 4096.
    let or = |told: Option<u32>, quantity: &Quantity| told.unwrap_or(quantity.value as u32);
    let machine = &platform.cores;
    let pattern = match pattern {
        Pattern::Chunked if machine.chunked.value == 0 => Pattern::Sequential,
        pattern => pattern,
    };
    let cores = or(options.cores, &machine.used);
    let outstanding = or(options.outstanding, &machine.outstanding);
    let mut workload = Workload::pass(pattern, access, lines, cores, outstanding);
    workload.accesses = accesses;
    if access == Access::Load {
        workload.prefetch = or(options.prefetch, &machine.prefetch);
    }
    Ok(workload)
}

/// A finished run, for people and programs.
struct Report<'a> {
    options: &'a Sim,
    source: &'a Source,
    setup: &'a Setup,
}

type Ended = Result<Statistics, Box<explain::Failure>>;

impl Report<'_> {
    fn text(&self, result: &Ended, charts: &Text) -> String {
        let Setup {
            protocol,
            platform,
            workload,
            seed,
            ..
        } = self.setup;
        let mut text = format!(
            "{} on {}: {} of {}, {}, {}, {} outstanding, hints {} ahead, seed {seed}\n",
            protocol.name,
            platform.name,
            self.options.workload.parts().0,
            self.options.region,
            accesses(workload.accesses),
            counted(workload.cores, "core"),
            workload.outstanding,
            workload.prefetch,
        );
        let statistics = match result {
            Ok(statistics) => statistics,
            Err(failure) => {
                let time = units::show(failure.time, Unit::Picoseconds);
                let line = failure.line;
                let verdict = match failure.kind {
                    FailureKind::NoProgress => "given up",
                    _ => "violated",
                };
                let (kind, what) = (failure.kind, &failure.text);
                let _ = writeln!(text, "{verdict}: {kind}: {what}");
                let _ = writeln!(text, "  line {line}, after {time}");
                for wait in &failure.waits {
                    let _ = writeln!(text, "  {wait}");
                }
                let _ = write!(
                    text,
                    "\n{}\n",
                    cohkit_chart::text(&failure.sequence, charts)
                );
                return text;
            }
        };
        let sent = statistics.messages.iter().filter(|(_, count)| *count > 0);
        let mut rows: Vec<(&str, String, &str)> = statistics
            .values
            .iter()
            .map(|(definition, value)| (definition.name, shown(*value), definition.text))
            .collect();
        rows.extend(sent.map(|(name, count)| (name.as_str(), count.to_string(), "messages sent")));
        let width = |cell: fn(&(&str, String, &str)) -> usize| rows.iter().map(cell).max();
        let names = width(|row| row.0.len()).unwrap_or(0);
        let values = width(|row| row.1.len()).unwrap_or(0);
        let indent = names + values + 4;
        let room = charts
            .width
            .map_or(usize::MAX, |width| width.saturating_sub(indent).max(20));
        text.push('\n');
        for (name, value, definition) in &rows {
            let lines = wrap(definition, room);
            let _ = writeln!(text, "{name:names$}  {value:>values$}  {}", lines[0]);
            for line in &lines[1..] {
                let _ = writeln!(text, "{:indent$}{line}", "");
            }
        }
        text
    }

    fn json(&self, result: &Ended, seconds: f64) -> Value {
        let workload = &self.setup.workload;
        let failure = result.as_ref().err().map(|failure| {
            json!({
                "kind": failure.kind.to_string(),
                "message": failure.text,
                "line": failure.line,
                "time_ps": failure.time,
                "waits": failure.waits,
                "sequence": cohkit_chart::json(&failure.sequence),
            })
        });
        let statistics = result.as_ref().ok().map(|statistics| {
            let values = statistics.values.iter();
            let values =
                values.map(|(definition, value)| (definition.name.to_string(), json!(value)));
            values.collect::<Map<String, Value>>()
        });
        let messages = result.as_ref().ok().map(|statistics| {
            let messages = statistics.messages.iter();
            let messages = messages.map(|(name, count)| (name.clone(), json!(count)));
            messages.collect::<Map<String, Value>>()
        });
        json!({
            "protocol": self.setup.protocol.name,
            "platform": self.setup.platform.name,
            "settings": self.options.set,
            "workload": {
                "name": self.options.workload.parts().0,
                "region_lines": workload.lines,
                "accesses": workload.accesses,
                "cores": workload.cores,
                "chunked": workload.pattern == Pattern::Chunked,
                "outstanding": workload.outstanding,
                "prefetch": workload.prefetch,
            },
            "seed": self.setup.seed,
            "oracle": self.setup.oracle != Level::Off,
            "statistics": statistics,
            "messages": messages,
            "failure": failure,
            "run": {
                "file": self.source.path.display().to_string(),
                "seconds": seconds,
                "version": env!("CARGO_PKG_VERSION"),
            },
        })
    }
}

/// A value with at most three decimals.
fn shown(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

fn accesses(count: u64) -> String {
    match count {
        1 => "1 access".to_string(),
        _ => format!("{count} accesses"),
    }
}
