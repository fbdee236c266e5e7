//! The shipped protocols, and short stress runs of them.

use cohkit_protocol::construct::ConstructionError;
use cohkit_protocol::controller::{Access, Controller, Event};
use cohkit_protocol::protocol::Protocol;
use cohkit_protocol::text;
use cohkit_sim::agents::device::DeviceWorkload;
use cohkit_sim::components::traffic::{Pattern, Workload};
use cohkit_sim::kernel::{Time, NANOSECOND};
use cohkit_sim::oracle::Level;
use cohkit_sim::platform::{Memory, Platform};
use cohkit_sim::simulation::{home, Setup};
use std::ops::Range;
use std::path::PathBuf;

/// Returns the seeds of a test: `count` of them, unless COHKIT_SEEDS says otherwise. COHKIT_SEED=n selects that one
/// alone.
pub fn seeds(count: u64) -> Range<u64> {
    let parse_variable = |name| {
        let text = std::env::var(name).ok()?;
        Some(text.parse::<u64>().expect("a number"))
    };
    match parse_variable("COHKIT_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..parse_variable("COHKIT_SEEDS").unwrap_or(count),
    }
}

/// Folder of the shipped protocols.
fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../protocols")
}

/// Returns the names of all shipped protocols, in order.
pub fn protocols() -> Vec<String> {
    let entries = std::fs::read_dir(folder()).unwrap();
    let mut names: Vec<String> = entries
        .filter_map(|entry| {
            let path = entry.unwrap().path();
            // A composition is not a protocol of its own.
            let is_protocol = path.extension().is_some_and(|extension| extension == "coh")
                && !text::composes(&std::fs::read_to_string(&path).unwrap());
            is_protocol.then(|| path.file_stem().unwrap().to_string_lossy().into_owned())
        })
        .collect();
    names.sort();
    assert!(!names.is_empty());
    names
}

/// Returns the text of a shipped protocol; `name` is that of its file, without extension.
pub fn source(name: &str) -> String {
    std::fs::read_to_string(folder().join(format!("{name}.coh"))).unwrap()
}

/// Parses a protocol.
///
/// # Panics
/// If the text has errors.
pub fn parse(text: &str) -> Protocol {
    text::parse(text).unwrap_or_else(|errors| {
        let errors = errors.iter().map(|error| error.render("text", text, false));
        panic!("{}", errors.collect::<String>())
    })
}

/// Returns a shipped protocol.
pub fn protocol(name: &str) -> Protocol {
    parse(&source(name))
}

/// Removes the parts of a setup that the protocol does not permit. If lines are joined, a core makes one access after
/// the other without components in front of its cache. The number of homes is then that of the protocol.
pub fn restrict_to_protocol(mut setup: Setup) -> Setup {
    if setup.protocol.joins_lines().is_none() {
        return setup;
    }
    let platform = &mut setup.platform;
    platform.cores.write_buffer.value = 0;
    platform.cores.l1_size.value = 0;
    if let Some(count) = &mut platform.home.count {
        count.value = setup.protocol.homes.into();
    }
    for workload in std::iter::once(&mut setup.workload).chain(&mut setup.others) {
        (
            workload.outstanding,
            workload.prefetch,
            workload.write_prefetches,
        ) = (1, 0, 0);
    }
    setup
}

/// Number of accesses of a short run, of all cores together.
pub const ACCESSES: u64 = 1_500;
/// Local operations of the device in a short run; they continue after the cores have finished.
pub const DEVICE_OPERATIONS: u64 = 600;

/// Returns a short run that makes races likely. `remotes` is the number of caching agents; the seed also selects the
/// number of lines and the components between cores and caches.
///
/// # Errors
/// No home can be constructed.
pub fn torture(protocol: Protocol, remotes: u16, seed: u64) -> Result<Setup, ConstructionError> {
    let home = home(&protocol, remotes)?;
    Ok(torture_of(protocol, home, remotes, seed))
}

/// Returns a run like that of [`torture`], with this home.
pub fn torture_of(protocol: Protocol, home: Controller, remotes: u16, seed: u64) -> Setup {
    let mut workload = Workload {
        pattern: Pattern::Random,
        mix: vec![
            (Access::Load, 8),
            (Access::Store, 8),
            (Access::Evict, 2),
            (Access::Demote, 1),
            (Access::Clean, 1),
            (Access::ReadOnce, 2),
            (Access::WriteLine, 1),
            (Access::WritePartial, 1),
        ],
        lines: 1 + (seed % 7) as u32,
        accesses: ACCESSES,
        cores: 2 * u32::from(remotes),
        outstanding: 3,
        prefetch: 0,
        write_prefetches: 100,
    };
    let further_accesses = [Access::Acquire, Access::Atomic, Access::AcquireFence].into_iter();
    let has_row = |access: &Access| {
        let mut rows = protocol.remote.rules.iter();
        rows.any(|row| row.event == Event::Access(*access))
    };
    (workload.mix).extend(further_accesses.filter(has_row).map(|access| (access, 2)));
    let device = DeviceWorkload {
        operations: DEVICE_OPERATIONS,
        lines: workload.lines,
        pause: 300 * NANOSECOND,
        seed,
    };
    let mut platform = Platform::torture(remotes);
    // Every second group of three seeds has components between the cores and their caches.
    let line = u64::from(protocol.line_bytes);
    if seed / 3 % 2 == 1 {
        platform.cores.write_buffer.value = 2 * line;
        platform.cores.l1_size.value = 4 * line;
    }
    restrict_to_protocol(Setup {
        others: Vec::new(),
        protocol,
        home,
        platform,
        workload,
        device,
        clocked: None,
        play: None,
        below: None,
        host: None,
        seed,
        oracle: Level::Bytes,
    })
}

/// Returns the shipped platforms with one caching agent.
pub fn single_cache_platforms() -> impl Iterator<Item = &'static str> {
    Platform::shipped_names().filter(|name| Platform::shipped(name).unwrap().all_remotes() == 1)
}

/// Returns the shipped platforms with one level of caches of one kind, without framed links and without meshes of
/// hosts.
pub fn single_level_platforms() -> impl Iterator<Item = &'static str> {
    let is_simple = |platform: &Platform| {
        platform.below.is_none()
            && platform.agents.is_empty()
            && platform.link.layer.is_none()
            && platform.hosts.is_none()
    };
    Platform::shipped_names().filter(move |name| is_simple(&Platform::shipped(name).unwrap()))
}

/// True if the end of a memory operation is known when it starts, so that the latency of a single access is exactly a
/// sum of quantities. A DRAM with a scheduler also waits for clock edges and refreshes, and keeps rows open.
pub fn has_exact_latency(platform: &Platform) -> bool {
    !matches!(platform.memory, Memory::Jedec(_))
}

/// Returns the parts of the latency of a read that misses its cache, as names of quantities with their times, in order.
/// The machine is otherwise idle, and all memory rows are closed.
pub fn read_latency(platform: &Platform, line_bytes: u32) -> Vec<(&'static str, Time)> {
    let Platform {
        cache, link, home, ..
    } = platform;
    let header = link.header_bytes.value as u32;
    // Includes the switch and the link behind it, if there is one.
    let link_parts = |bytes| {
        let link = [
            ("link.bandwidth", link.bandwidth.time_of(bytes)),
            ("link.latency", link.latency.value),
        ];
        let switch_parts = platform.switch.iter();
        let switch_parts = switch_parts.map(|switch| ("switch.latency", switch.latency.value));
        let after_switch = switch_parts.flat_map(move |switch| [switch, link[0], link[1]]);
        link.into_iter().chain(after_switch).collect::<Vec<_>>()
    };
    let mut parts = vec![("cache.request_latency", cache.request_latency.value)];
    parts.extend(link_parts(header));
    parts.extend([
        ("home.latency", home.latency.value),
        ("home.memory_round_trip", home.memory_round_trip.value),
    ]);
    parts.extend((home.llc.iter()).map(|cache| ("home.llc_latency", cache.latency.value)));
    match &platform.memory {
        Memory::Dram(dram) => parts.extend([
            ("dram.controller_latency", dram.controller_latency.value),
            ("dram.t_rcd", dram.t_rcd.value),
            ("dram.t_cl", dram.t_cl.value),
            ("dram.bandwidth", dram.bandwidth.time_of(line_bytes)),
        ]),
        Memory::Jedec(dram) => parts.extend(dram.read_latency(line_bytes)),
        // The first bytes arrive while the last are still being read.
        Memory::Bram(bram) => parts.push(
            [
                ("bram.bandwidth", bram.bandwidth.time_of(line_bytes)),
                ("bram.latency", bram.latency.value),
            ]
            .into_iter()
            .max_by_key(|part| part.1)
            .unwrap(),
        ),
    }
    parts.push(match &home.completion_latency {
        Some(resume) => ("home.completion_latency", resume.value),
        None => ("home.latency", home.latency.value),
    });
    parts.extend(link_parts(header + line_bytes));
    parts.push(("cache.fill_latency", cache.fill_latency.value));
    parts
}
