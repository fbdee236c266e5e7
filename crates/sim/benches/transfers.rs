//! Simulated line transfers per second of host time. A case is one pass of reads over a region far larger than the
//! cache, so that each line is one miss with all its messages.
//!
//! Prints one line per case. Rates are per second of processor time, if the system reports it. `COHKIT_BENCH_MIB` sets
//! the region's size, 1024 MiB by default; an argument selects cases by name. The sequential read also runs on a
//! sixteenth and a quarter of the region, which shows the growth of time with its size. The event
//! queue alone is measured first, and transfers print their events as a share of its rate. `hosts` is other traffic: loads
//! and stores of MESI by the cores of 8 hosts and of 512, which shows the growth of time with their number. `exchange`
//! is stores of their threads to each other. `framed` is random reads over the pipe and over each framed link in turn.
//! `scattered` is ten million writes to random lines, and the memory that they need.

use cohkit_testing::processor_time;

use cohkit_application::exchange::Exchange;
use cohkit_application::kernel::{Granularity, Hosts, KernelScenario};
use cohkit_protocol::controller::Access;
use cohkit_protocol::protocol::Protocol;
use cohkit_protocol::text;
use cohkit_sim::components::traffic::{Pattern, Workload};
use cohkit_sim::kernel::Queue;
use cohkit_sim::oracle::Level;
use cohkit_sim::platform::Platform;
use cohkit_sim::simulation::{play_while, run, Setup, Simulation};
use cohkit_sim::statistics::Statistics;
use processor_time::processor_seconds;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Instant;

/// Peak memory of this process in MiB; 0 if the system does not report it.
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kib.unwrap_or(0) / 1024
}

/// Makes [`peak_mib`] start again at the current memory, if the system can do that.
fn reset_peak() {
    // A system without this file keeps the earlier peak.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// Measures the rate of the event queue alone: 400 events in the queue, and each popped event adds a later one. Returns
/// events per second.
fn bare_events(out: &mut impl Write) -> io::Result<f64> {
    let mut queue: Queue<u64> = Queue::new();
    let events = 40_000_000u64;
    for event in 0..400 {
        queue.push(event * 331, event);
    }
    let origin = Instant::now();
    let begin = processor_seconds(origin);
    let mut sum = 0u64;
    for _ in 0..events {
        let Some((time, event)) = queue.pop() else {
            break;
        };
        sum = sum.wrapping_add(event);
        // Delays as in a machine: a few hundred nanoseconds, varied.
        queue.push(time + 20_000 + (event * 7919 + time * 31) % 400_000, event);
    }
    let seconds = processor_seconds(origin) - begin;
    let rate = events as f64 / seconds;
    writeln!(
        out,
        "bare events           {:6.1} million per second (sum {sum})",
        rate / 1e6
    )?;
    Ok(rate)
}

/// Returns a shipped protocol.
fn protocol(name: &str) -> Protocol {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../protocols");
    let source = std::fs::read_to_string(format!("{folder}/{name}.coh"));
    let source = source.expect("the protocol text is there");
    text::parse(&source).unwrap_or_else(|_| panic!("the protocol text is wrong"))
}

/// Measures the host time of one access with 8 hosts and with 512; each core has equally many accesses and equal
/// memory.
fn hosts(out: &mut impl Write) -> io::Result<()> {
    let mut seconds_per_access = Vec::new();
    for (name, runs) in [("hosts-8x8", 16), ("hosts-512x8", 1)] {
        let platform = Platform::shipped(name).expect("it is shipped");
        let cores = platform.cores.count.value as u32;
        let outstanding = platform.cores.max_outstanding.value as u32;
        let random = Pattern::Random;
        let mut workload = Workload::pass(random, Access::Load, 1024 * cores, cores, outstanding);
        workload.mix.push((Access::Store, 1));
        let accesses = workload.accesses * runs;
        let setup = Setup::new(protocol("mesi"), platform, workload);
        let setup = setup.unwrap_or_else(|error| panic!("{error}"));
        let origin = Instant::now();
        let begin = processor_seconds(origin);
        for _ in 0..runs {
            run(&setup).unwrap_or_else(|error| panic!("{error}"));
        }
        let seconds = processor_seconds(origin) - begin;
        seconds_per_access.push(seconds / accesses as f64);
    }
    let (nanoseconds, ratio) = (
        seconds_per_access.iter().map(|seconds| seconds * 1e9),
        seconds_per_access[1] / seconds_per_access[0],
    );
    let nanoseconds: Vec<String> = nanoseconds.map(|time| format!("{time:.0}")).collect();
    writeln!(
        out,
        "hosts                 {} ns of host time for an access with 8 hosts, {} ns with 512, which is {ratio:.2} times that; peak {} MiB",
        nanoseconds[0],
        nanoseconds[1],
        peak_mib()
    )
}

/// Measures the same for stores to other hosts, on hosts with two levels of switches. The protocol of `ordering` orders
/// these stores at their source.
fn exchange(out: &mut impl Write) -> io::Result<()> {
    let text = include_str!("../../../ordering/so-strict.coh");
    let protocol = text::parse(text).expect("it is a protocol");
    let mut seconds_per_access = Vec::new();
    for (hosts, runs) in [(8, 64), (512, 1)] {
        let mut platform = Platform::shipped("cxl-512x8").expect("it is shipped");
        platform.remotes = 8 * hosts;
        platform.cores.count.value = u64::from(platform.remotes);
        platform.hosts.as_mut().expect("it has hosts").count.value = hosts.into();
        platform.home.count.as_mut().expect("it has homes").value = hosts.into();
        let threads = u32::from(platform.remotes);
        let homes = hosts.into();
        let scenario = Arc::new(KernelScenario(Exchange {
            hosts: Hosts { homes, threads },
            fanout: 3,
            granularity: Granularity::Line,
            stores: 16,
            releases: 4,
        }));
        let setup = Setup::with_scenario(protocol.clone(), platform, scenario);
        let setup = setup.unwrap_or_else(|error| panic!("{error}"));
        let origin = Instant::now();
        let begin = processor_seconds(origin);
        let mut accesses = 0.0;
        for _ in 0..runs {
            let played = play_while(&setup, &mut |_| true);
            let played = played.unwrap_or_else(|error| panic!("{error}"));
            accesses += played.statistics.get("accesses").expect("they are counted");
        }
        seconds_per_access.push((processor_seconds(origin) - begin) / accesses);
    }
    writeln!(
        out,
        "stores between hosts  {:.0} ns of host time for an access with 8 hosts, {:.0} ns with 512, which is {:.2} times that; peak {} MiB",
        seconds_per_access[0] * 1e9,
        seconds_per_access[1] * 1e9,
        seconds_per_access[1] / seconds_per_access[0],
        peak_mib()
    )
}

/// Returns the machine of the transfers with a link layer.
fn dc_ddr(layer: &str) -> Platform {
    let mut platform = Platform::shipped("enzian-dc-ddr").expect("it is shipped");
    let set = platform.set("link.layer", layer);
    set.unwrap_or_else(|error| panic!("{error}"));
    platform
}

/// Returns the host time of one transfer in seconds, and the statistics of the run.
fn time_transfer(
    protocol: &Protocol,
    platform: &Platform,
    mib: u32,
    (pattern, access): (Pattern, Access),
    oracle: Level,
) -> (f64, Statistics) {
    let workload = Workload::pass(pattern, access, mib * 8192, 32, 4);
    let setup = Setup::new(protocol.clone(), platform.clone(), workload);
    let mut setup = setup.unwrap_or_else(|error| panic!("{error}"));
    setup.oracle = oracle;
    let simulation = Simulation::new(&setup, None);
    let mut simulation = simulation.unwrap_or_else(|error| panic!("{error}"));
    let origin = Instant::now();
    let begin = processor_seconds(origin);
    if let Err(failure) = simulation.run() {
        panic!("{failure}");
    }
    let seconds = processor_seconds(origin) - begin;
    (seconds / f64::from(mib * 8192), simulation.statistics())
}

/// Measures the host time of the same transfers over a pipe and over framed links.
fn framed(out: &mut impl Write, eci: &Protocol, mib: u32) -> io::Result<()> {
    let run = |protocol: &Protocol, layer| {
        let read = (Pattern::Random, Access::Load);
        1e9 * time_transfer(protocol, &dc_ddr(layer), mib, read, Level::Versions).0
    };
    let mem = protocol("cxl-mem");
    for (protocol, layers) in [(eci, ["eci", "ccix"]), (&mem, ["cxl-256", "cxl-cache-68"])] {
        for layer in layers {
            let (pipe, framed) = (run(protocol, "none"), run(protocol, layer));
            let (name, speed) = (&protocol.name, pipe / framed);
            writeln!(
                out,
                "framed                {framed:.0} ns of host time for a transfer of {name} over {layer}, {pipe:.0} ns over a pipe: {speed:.2} times its speed"
            )?;
        }
    }
    Ok(())
}

/// Measures the memory for ten million writes to random lines of the region.
fn scattered_writes(out: &mut impl Write, eci: &Protocol, mib: u32) -> io::Result<()> {
    let accesses = 10_000_000;
    let mut workload = Workload::pass(Pattern::Random, Access::Store, mib * 8192, 32, 4);
    workload.accesses = accesses;
    let setup = Setup::new(eci.clone(), dc_ddr("none"), workload);
    let setup = setup.unwrap_or_else(|error| panic!("{error}"));
    reset_peak();
    let origin = Instant::now();
    let begin = processor_seconds(origin);
    run(&setup).unwrap_or_else(|error| panic!("{error}"));
    let seconds = processor_seconds(origin) - begin;
    writeln!(
        out,
        "scattered writes      {:.2} million transfers per second; {accesses} writes to random lines of {mib} MiB; peak {} MiB",
        accesses as f64 * 1e-6 / seconds,
        peak_mib()
    )
}

fn main() -> io::Result<()> {
    match cases(&mut io::stdout()) {
        // A closed pipe means that the reader needs no more output.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Runs the selected cases and prints their rates.
fn cases(out: &mut impl Write) -> io::Result<()> {
    let protocol = protocol("eci");
    let mib = std::env::var("COHKIT_BENCH_MIB");
    let mib: u32 = mib.ok().and_then(|mib| mib.parse().ok()).unwrap_or(1024);
    let cases = [
        (
            "sequential read",
            Pattern::Sequential,
            Access::Load,
            Level::Versions,
        ),
        (
            "  oracle off",
            Pattern::Sequential,
            Access::Load,
            Level::Off,
        ),
        (
            "random read",
            Pattern::Random,
            Access::Load,
            Level::Versions,
        ),
        (
            "sequential write",
            Pattern::Sequential,
            Access::Store,
            Level::Versions,
        ),
    ];
    // Cargo passes `--bench`.
    let selected = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with('-'));
    let bare_rate = bare_events(out)?;
    if selected
        .as_ref()
        .is_none_or(|selected| "hosts".contains(selected.as_str()))
    {
        hosts(out)?;
    }
    if selected
        .as_ref()
        .is_none_or(|selected| "exchange".contains(selected.as_str()))
    {
        exchange(out)?;
    }
    if selected
        .as_ref()
        .is_none_or(|selected| "framed".contains(selected.as_str()))
    {
        framed(out, &protocol, mib.min(64))?;
    }
    if selected
        .as_ref()
        .is_none_or(|selected| "scattered".contains(selected.as_str()))
    {
        scattered_writes(out, &protocol, mib)?;
    }
    let mut with_oracle = f64::NAN;
    for (name, pattern, access, oracle) in cases {
        if selected
            .as_ref()
            .is_some_and(|selected| !name.contains(selected.as_str()))
        {
            continue;
        }
        let run = |mib: u32| {
            time_transfer(
                &protocol,
                &dc_ddr("none"),
                mib,
                (pattern.clone(), access),
                oracle,
            )
        };
        let smaller = [mib / 16, mib / 4].map(|mib| mib.max(1));
        let plain = name == "sequential read";
        let smaller_times = plain.then(|| smaller.map(|mib| run(mib).0));
        let (seconds_per_transfer, statistics) = run(mib);
        let get = |name: &str| statistics.get(name).unwrap_or(f64::NAN);
        writeln!(
            out,
            "{name:<22}{:6.2} million transfers per second; {:.1} events each, {:.0} % of bare events; \
             {:.2} GiB/s simulated, mean latency {:.0} ns; peak {} MiB",
            1e-6 / seconds_per_transfer,
            get("events") / f64::from(mib * 8192),
            get("events") / f64::from(mib * 8192) / seconds_per_transfer / bare_rate * 100.0,
            get("bandwidth_bytes_per_s") / f64::from(1 << 30),
            get("latency_mean_ns"),
            peak_mib()
        )?;
        if let Some(smaller_times) = smaller_times {
            with_oracle = seconds_per_transfer;
            for (mib, seconds) in smaller.iter().zip(smaller_times) {
                let (nanoseconds, ratio) = (seconds * 1e9, seconds_per_transfer / seconds);
                writeln!(out, "  {mib} MiB: {nanoseconds:.0} ns of host time each; the whole takes {ratio:.2} times that each")?;
            }
        }
        if oracle == Level::Off && with_oracle.is_finite() {
            writeln!(
                out,
                "  the oracle takes {:.0} % more time",
                (with_oracle / seconds_per_transfer - 1.0) * 100.0
            )?;
        }
        if access == Access::Store {
            let share = peak_mib() as f64 / f64::from(mib);
            writeln!(out, "  peak memory: {share:.2} bytes for each byte written")?;
        }
    }
    Ok(())
}
