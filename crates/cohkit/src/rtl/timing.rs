//! `cohkit rtl measure --system`: cycles of accesses to a coherent memory system.

use super::agents::{home, rejected, remotes};
use super::lockstep::default_cache_folder;
use super::systems::{printed, supported};
use super::{build_failure, file_name, interrupted, origin};
use crate::console::Console;
use crate::interrupt::CleanupGuard;
use crate::options::Measure;
use crate::progress::StatusLine;
use cohkit_api::files;
use cohkit_api::outcome::{ExitStatus, Failure};
use cohkit_api::source::Source;
use cohkit_base::words::counted;
use cohkit_rtl::agents::layout::Agents;
use cohkit_rtl::systems::build::{build, units, Bench, Options};
use cohkit_rtl::systems::directory::{Directory, Entries};
use cohkit_rtl::systems::ports::SystemPorts;
use cohkit_rtl::systems::sizes::Sizes;
use cohkit_rtl::systems::timing::{measure as measure_system, Latency, Rate};
use cohkit_system::ports::PortError;
use serde_json::json;
use std::fmt::Write;

/// Measures a system and prints the result.
///
/// # Errors
/// The file has no system, a tool is missing, or the hardware fails.
pub(super) fn measure(options: &Measure, console: &mut Console) -> Result<ExitStatus, Failure> {
    let source = Source::read(&options.file, console.terminal.colour)?;
    let remotes = remotes(&source, "--system", &options.system)?;
    let home = home(&source, remotes, &console.terminal)?;
    let reject = |refusal| rejected(&source, "system", &refusal, &console.terminal);
    let agents = supported(&source, &home, remotes, &console.terminal)?;
    let file = file_name(&options.file);
    let printed = printed(&agents, &origin(&source, &file), Directory::Full).map_err(reject)?;
    let cache = options.build_cache.clone();
    let cache = cache.unwrap_or_else(default_cache_folder);
    files::make_folder(&cache)?;
    let _cleanup = CleanupGuard::new();
    let program = {
        let status = format!("{}: building the RTL with Verilator", source.protocol.name);
        let _busy = StatusLine::new(status, &console.terminal);
        let program = Options {
            bench: Bench::Timing,
            directory: Directory::Full,
            entries: Entries::default(),
            sizes: Sizes::default(),
            waveforms: false,
        };
        let files = (&units()[..], &printed[..]);
        build(&cache, &agents, files, program, console.interrupted).map_err(build_failure)?
    };
    let caches = agents.total();
    let mut ports = SystemPorts::timing(&program, caches.into(), console.interrupted);
    let (latencies, rates) = measure_system(&mut ports, caches.into()).map_err(failure)?;
    let result = match options.form.json {
        true => {
            let value = json(options, &agents, &latencies, &rates);
            options.form.format_output(value, console)
        }
        false => text(&agents, &latencies, &rates),
    };
    console.print(&result)?;
    Ok(ExitStatus::Success)
}

/// Failure of a measurement.
fn failure(error: PortError) -> Failure {
    match error {
        PortError::Interrupted => interrupted(),
        PortError::Failed(reason) => {
            Failure::new(ExitStatus::CouldNotRun, format!("error: {reason}"))
        }
        PortError::Violated(reason) => {
            let message = format!("error: the hardware fails: {reason}");
            Failure::new(ExitStatus::Violated, message)
        }
    }
}

/// Result as text.
fn text(agents: &Agents, latencies: &[Latency], rates: &[Rate]) -> String {
    let mut text = format!(
        "{}: {}\n\n  access in an idle system                       cycles\n",
        agents.protocol.name,
        counted(agents.total(), "cache")
    );
    for Latency { access, cycles } in latencies {
        let _ = writeln!(text, "  {access:<45}  {cycles:6}");
    }
    text += "\n  requesters  outstanding  loads per cycle  stores per cycle\n";
    for rate in rates {
        let Rate {
            requesters,
            outstanding,
            loads,
            stores,
        } = rate;
        let _ = writeln!(
            text,
            "  {requesters:10}  {outstanding:11}  {loads:15.3}  {stores:16.3}"
        );
    }
    text
}

/// Result as JSON, described in `docs/output.md`.
fn json(
    options: &Measure,
    agents: &Agents,
    latencies: &[Latency],
    rates: &[Rate],
) -> serde_json::Value {
    let latencies = latencies.iter();
    let latencies =
        latencies.map(|latency| json!({"access": latency.access, "cycles": latency.cycles}));
    let rates = rates.iter().map(|rate| {
        json!({
            "requesters": rate.requesters,
            "outstanding": rate.outstanding,
            "loads_per_cycle": rate.loads,
            "stores_per_cycle": rate.stores,
        })
    });
    json!({
        "protocol": agents.protocol.name,
        "caches": agents.total(),
        "latencies": latencies.collect::<Vec<_>>(),
        "rates": rates.collect::<Vec<_>>(),
        "run": {
            "file": options.file.display().to_string(),
            "version": env!("CARGO_PKG_VERSION"),
        },
    })
}
