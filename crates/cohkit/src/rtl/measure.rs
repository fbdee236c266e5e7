//! `cohkit rtl measure`: latencies and throughput of the RTL.

use super::lockstep::default_cache_folder;
use super::{build_library, compile, file_name, interrupted, origin, platform};
use crate::console::Console;
use crate::interrupt::CleanupGuard;
use crate::options::Measure;
use cohkit_api::files;
use cohkit_api::outcome::{ExitStatus, Failure};
use cohkit_api::source::Source;
use cohkit_base::words::counted;
use cohkit_rtl::lockstep::bench::{Pattern, Rate, Traffic};
use cohkit_rtl::lockstep::build::PrintedHome;
use cohkit_rtl::lockstep::measure::{latencies, parts, rate, Latency, Scenario};
use cohkit_rtl::lockstep::setup::{RunError, Setup};
use cohkit_rtl::lockstep::shapes::{Endpoint, Shape};
use cohkit_rtl::print::package;
use cohkit_rtl::rom::Rom;
use cohkit_rtl::CLOCK;
use serde_json::json;
use std::fmt::Write;

/// Number of sets of each unit's directory, as a power of two.
const SET_BITS: u32 = 7;
/// Number of ways of a set.
const WAYS: usize = 16;
/// Memory latencies of the measured streams, in nanoseconds.
const MEMORY_LATENCIES_NS: [f64; 3] = [300.0, 70.0, 3.0];
/// Round trip from a forward to its response, in nanoseconds: link latency in both directions, and the time in the
/// remote.
const REMOTE_ROUND_TRIP_NS: f64 = 290.0;
/// Utilisation above which a port counts as saturated.
const SATURATION: f64 = 0.95;

/// A stream of operations to measure.
struct StreamRequest {
    /// Description of the operations, for users.
    name: &'static str,
    /// Memory latency in nanoseconds; `None` for RAM behind the home.
    memory: Option<f64>,
    /// Operations, and the latencies in cycles.
    scenario: Scenario,
}

/// A measured stream of operations.
struct Stream {
    /// Description of the operations, for users.
    name: &'static str,
    /// Memory latency in nanoseconds; `None` for RAM behind the home.
    memory: Option<f64>,
    /// Measured lines and port activity in the middle half of the stream.
    rate: Rate,
    /// Most utilised port, and its utilisation.
    bottleneck: (String, f64),
}

impl Stream {
    /// Returns the memory latency as text, or `RAM`.
    fn memory_text(&self) -> String {
        self.memory
            .map_or("RAM".into(), |memory| format!("{memory} ns"))
    }
}

/// Converts nanoseconds to clock cycles of the home, at least 1.
fn ns_to_cycles(nanoseconds: f64) -> u64 {
    ((nanoseconds * CLOCK as f64 / 1000.0).round() as u64).max(1)
}

/// Measures latencies and throughput of the RTL, and prints them, or the platform's table of them.
///
/// # Errors
/// The home has no RTL, a tool is missing, or the RTL differs from the controllers.
pub(super) fn measure(options: &Measure, console: &mut Console) -> Result<ExitStatus, Failure> {
    let source = Source::read(&options.file, console.terminal.colour)?;
    let (home, rom) = compile(&source, console)?;
    let protocol = &source.protocol;
    let file = file_name(&options.file);
    let package = package(protocol, &rom, &origin(&source, &file));
    let cache = options
        .build_cache
        .clone()
        .unwrap_or_else(default_cache_folder);
    files::make_folder(&cache)?;
    let mut shape = Shape::for_cache(options.units / 2, SET_BITS, WAYS);
    if options.invalidation_engine {
        shape.endpoint = Endpoint::Invalidation;
        shape.memory_lines = options.lines.div_ceil(2).next_power_of_two();
    }
    let printed = PrintedHome {
        protocol: &protocol.name,
        rom: &rom,
        package: &package,
    };
    let _cleanup = CleanupGuard::new();
    let library = build_library(&cache, printed, shape, false, console)?;
    let folder =
        tempfile::tempdir().map_err(|error| files::cannot_write(&std::env::temp_dir(), &error))?;
    let setup = Setup {
        protocol,
        home: &home,
        rom: &rom,
        library: &library,
        shape,
        graph: None,
        argument: "",
        folder: folder.path(),
        stop: console.interrupted,
    };
    if options.print_platform {
        let parts = parts(&setup).map_err(run_failure)?;
        console.print(&platform::table(&setup, &file, &parts))?;
        return Ok(ExitStatus::Success);
    }
    let latencies = match options.invalidation_engine {
        false => latencies(&setup).map_err(run_failure)?,
        true => Vec::new(),
    };
    let mut streams = Vec::new();
    for request in streams_to_measure(options, &rom) {
        let StreamRequest {
            name,
            memory,
            scenario,
        } = request;
        let rate = rate(&setup, &scenario).map_err(run_failure)?;
        streams.push(Stream {
            name,
            memory,
            rate,
            bottleneck: bottleneck(&setup, &rate),
        });
    }
    let result = match options.form.json {
        true => options
            .form
            .format_output(json(options, &source, &latencies, &streams), console),
        false => text(options, &source, &latencies, &streams),
    };
    console.print(&result)?;
    Ok(ExitStatus::Success)
}

/// Failure for a run without a result.
fn run_failure(error: RunError) -> Failure {
    match error {
        RunError::Stopped => interrupted(),
        RunError::Tool(reason) => Failure::new(ExitStatus::CouldNotRun, format!("error: {reason}")),
        RunError::Mismatch(mismatch) => {
            let (cycle, description) = (mismatch.cycle, mismatch.description);
            let text = format!(
                "error: the RTL differs from the controllers in cycle {cycle}: {description}"
            );
            let help = "help: `cohkit rtl test` shows the mismatch";
            Failure::new(ExitStatus::Violated, format!("{text}\n  {help}"))
        }
    }
}

/// Streams to measure: reads and writes by the remote, then invalidations. With the invalidation engine, whose memory is
/// RAM, only its invalidations.
fn streams_to_measure(options: &Measure, rom: &Rom) -> Vec<StreamRequest> {
    let mut streams = Vec::new();
    if !options.invalidation_engine {
        for memory in MEMORY_LATENCIES_NS {
            streams.extend(remote_streams(options, memory));
        }
    }
    streams.extend(invalidation_streams(options, rom));
    streams
}

/// Reads and writes by the remote, with a memory latency in nanoseconds.
fn remote_streams(options: &Measure, memory: f64) -> [StreamRequest; 4] {
    let (interleaved, random) = (Pattern::Spread, Pattern::Anywhere);
    [
        ("sequential reads", Traffic::Reads, interleaved),
        ("random reads", Traffic::Reads, random),
        ("sequential writes", Traffic::Writes, interleaved),
        ("random writes", Traffic::Writes, random),
    ]
    .map(|(name, traffic, pattern)| StreamRequest {
        name,
        memory: Some(memory),
        scenario: Scenario {
            traffic,
            preparation: None,
            pattern,
            lines: options.lines,
            memory: ns_to_cycles(memory),
            delay: ns_to_cycles(0.0),
            max_active: options.units * options.outstanding,
        },
    })
}

/// Invalidations of lines by the device, by what the remote holds of them.
fn invalidation_streams(options: &Measure, rom: &Rom) -> [StreamRequest; 3] {
    let (traffic, memory) = match options.invalidation_engine {
        true => (Traffic::Engine, None),
        false => (Traffic::Local(rom.evict), Some(MEMORY_LATENCIES_NS[1])),
    };
    [
        ("invalidation, not held", None),
        ("invalidation, held clean", Some(Traffic::Reads)),
        ("invalidation, held dirty", Some(Traffic::Dirties)),
    ]
    .map(|(name, preparation)| StreamRequest {
        name,
        memory,
        scenario: Scenario {
            traffic,
            preparation,
            pattern: Pattern::Spread,
            lines: options.lines,
            memory: ns_to_cycles(memory.unwrap_or_default()),
            // One-way latency of messages: a forward and its answer together take twice this time.
            delay: ns_to_cycles(REMOTE_ROUND_TRIP_NS / 2.0),
            max_active: options.units * options.outstanding,
        },
    })
}

/// Returns the name of the most utilised port, and its utilisation from 0 to 1. There are two of each port, one per
/// slice, whose transfers are added.
fn bottleneck(setup: &Setup, rate: &Rate) -> (String, f64) {
    let ports = &rate.ports;
    let mut port_counts = Vec::new();
    // Ports between the home and an endpoint are not observable.
    if setup.shape.endpoint == Endpoint::None {
        port_counts = vec![
            ("AXI read addresses".to_string(), ports.axi_ar),
            ("AXI read data".to_string(), ports.axi_r),
            ("AXI write data".to_string(), ports.axi_w),
            ("local operations".to_string(), ports.local_req),
            ("local answers".to_string(), ports.local_rsp),
        ];
    }
    for (circuit, &count) in setup.rom.rx.iter().zip(&ports.rx) {
        port_counts.push((format!("circuit {} to the home", circuit.name), count));
    }
    for (circuit, &count) in setup.rom.tx.iter().zip(&ports.tx) {
        port_counts.push((format!("circuit {} to the remote", circuit.name), count));
    }
    let utilisation = |count: u64| count as f64 / (2 * rate.cycles).max(1) as f64;
    let (name, count) = port_counts
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .max_by_key(|(_, count)| *count)
        .unwrap_or(("none observed".into(), 0));
    (name, utilisation(count))
}

/// Lines completed per clock cycle of the home.
fn lines_per_cycle(rate: &Rate) -> f64 {
    rate.lines as f64 / rate.cycles.max(1) as f64
}

/// Data rate in GiB/s.
fn bandwidth(rate: &Rate, source: &Source) -> f64 {
    lines_per_cycle(rate) * CLOCK as f64 * 1e6 * f64::from(source.protocol.line_bytes)
        / f64::from(1 << 30)
}

/// Lines completed per unit and round trip of the remote.
fn lines_per_unit_and_round_trip(rate: &Rate, units: usize) -> f64 {
    lines_per_cycle(rate) * ns_to_cycles(REMOTE_ROUND_TRIP_NS) as f64 / units as f64
}

/// Result as text: latencies in cycles, then a row per stream.
fn text(options: &Measure, source: &Source, latencies: &[Latency], streams: &[Stream]) -> String {
    let mut text = format!(
        "{}: {} of {} sets of {WAYS} ways, at {CLOCK} MHz\n",
        source.protocol.name,
        counted(options.units as u64, "unit"),
        1 << SET_BITS
    );
    let width = latencies
        .iter()
        .map(|latency| latency.operation.len())
        .chain(streams.iter().map(|stream| stream.name.len()))
        .max()
        .unwrap_or(0);
    if !latencies.is_empty() {
        text += "\n  latency of the home alone, in cycles\n";
    }
    for Latency { operation, cycles } in latencies {
        let _ = writeln!(text, "  {operation:width$}  {cycles:4}");
    }
    let traffic = match options.invalidation_engine {
        true => "the engine's",
        false => "traffic",
    };
    let _ = writeln!(
        text,
        "\n  {traffic:width$}  memory   lines/cycle   GiB/s  outstanding/unit  most utilised port"
    );
    for stream in streams {
        let saturated = if stream.bottleneck.1 > SATURATION {
            " (saturated)"
        } else {
            ""
        };
        let _ = writeln!(
            text,
            "  {:width$}  {:>6}  {:12.3}  {:6.1}  {:16.2}  {} {:.0}%{saturated}",
            stream.name,
            stream.memory_text(),
            lines_per_cycle(&stream.rate),
            bandwidth(&stream.rate, source),
            stream.rate.mean_in_progress / options.units as f64,
            stream.bottleneck.0,
            100.0 * stream.bottleneck.1,
        );
    }
    let _ = writeln!(
        text,
        "\n  share of the units that complete an invalidation per remote round trip ({REMOTE_ROUND_TRIP_NS} ns): {}",
        streams
            .iter()
            .filter(|stream| stream.name.contains(", held"))
            .map(|stream| format!(
                "{} {:.0}%",
                stream.name,
                100.0 * lines_per_unit_and_round_trip(&stream.rate, options.units)
            ))
            .collect::<Vec<_>>()
            .join("; ")
    );
    text
}

/// Result as JSON, described in `docs/output.md`.
fn json(
    options: &Measure,
    source: &Source,
    latencies: &[Latency],
    streams: &[Stream],
) -> serde_json::Value {
    json!({
        "protocol": source.protocol.name,
        "units": options.units,
        "clock_mhz": CLOCK,
        "latencies": latencies.iter().map(|latency| json!({
            "operation": latency.operation,
            "cycles": latency.cycles,
        })).collect::<Vec<_>>(),
        "traffic": streams.iter().map(|stream| json!({
            "name": stream.name,
            "memory_ns": stream.memory,
            "lines_per_cycle": lines_per_cycle(&stream.rate),
            "gib_per_s": bandwidth(&stream.rate, source),
            "lines_per_unit_and_round_trip": lines_per_unit_and_round_trip(&stream.rate, options.units),
            "outstanding_per_unit": stream.rate.mean_in_progress / options.units as f64,
            "bottleneck_port": stream.bottleneck.0,
            "bottleneck_utilisation": stream.bottleneck.1,
        })).collect::<Vec<_>>(),
        "run": {
            "file": options.file.display().to_string(),
            "version": env!("CARGO_PKG_VERSION"),
        },
    })
}
