//! Message and byte counts that can be derived by hand.

use cohkit_testing::setups;

use cohkit_protocol::controller::Access;
use cohkit_sim::components::traffic::{Pattern, Workload};
use cohkit_sim::oracle::Level;
use cohkit_sim::platform::Platform;
use cohkit_sim::simulation::{run, Setup, Simulation};
use cohkit_sim::statistics::Statistics;
use cohkit_units::Quantity;
use setups::{parse, protocol, source};

/// Number of lines, and of accesses of a pass; more than the last-level cache holds.
const LINES: u32 = 200_000;
/// Capacity of the last-level cache of these machines, in lines: 8192 sets of 16 ways.
const LLC_LINES: u32 = 8192 * 16;

/// Returns a pass over [`LINES`] lines by 16 cores with four outstanding accesses each, for ECI.
fn setup(platform: Platform, pattern: Pattern, access: Access) -> Setup {
    let workload = Workload::pass(pattern, access, LINES, 16, 4);
    Setup::new(protocol("eci"), platform, workload).unwrap()
}

/// Returns the sent messages with their numbers, without messages that were not sent.
fn sent(statistics: &Statistics) -> Vec<(&str, u64)> {
    let messages = statistics.messages.iter();
    let messages = messages.filter(|(_, count)| *count > 0);
    messages
        .map(|(name, count)| (name.as_str(), *count))
        .collect()
}

/// A pass of reads causes one request and one grant per line, and one victim per evicted line.
#[test]
fn messages_of_a_sequential_read() {
    for platform in [
        Platform::shipped("enzian-dc-ddr").unwrap(),
        Platform::shipped("enzian-dc-bram").unwrap(),
        Platform::shipped("thunderx1-2s").unwrap(),
    ] {
        let statistics = run(&setup(platform, Pattern::Sequential, Access::Load)).unwrap();
        let (lines, victims) = (u64::from(LINES), u64::from(LINES - LLC_LINES));
        let expected = [
            ("ReadShared", lines),
            ("VictimShared", victims),
            ("DataShared", lines),
        ];
        assert_eq!(sent(&statistics), expected);
        let header = 8;
        let up = statistics.get("link_bytes_to_home").unwrap();
        let down = statistics.get("link_bytes_from_home").unwrap();
        assert_eq!(up as u64, (lines + victims) * header);
        assert_eq!(down as u64, lines * (header + 128));
    }
}

/// Messages of a sequential read at full size: 1 GiB in lines of 128 bytes.
#[test]
fn messages_of_a_whole_gibibyte() {
    let lines = 1u64 << 30 >> 7;
    let victims = lines - u64::from(LLC_LINES);
    let run_pass = |access| {
        let platform = Platform::shipped("enzian-dc-ddr").unwrap();
        let workload = Workload::pass(Pattern::Sequential, access, lines as u32, 16, 4);
        run(&Setup::new(protocol("eci"), platform, workload).unwrap()).unwrap()
    };
    assert_eq!(
        sent(&run_pass(Access::Load)),
        [
            ("ReadShared", lines),
            ("VictimShared", victims),
            ("DataShared", lines)
        ]
    );
    assert_eq!(
        sent(&run_pass(Access::Store)),
        [
            ("ReadExclusive", lines),
            ("VictimDirty", victims),
            ("DataExclusive", lines)
        ]
    );
}

/// A pass of writes causes the same messages as one of reads, but every victim is dirty and carries its line.
#[test]
fn messages_of_a_sequential_write() {
    let setup = setup(
        Platform::shipped("enzian-dc-ddr").unwrap(),
        Pattern::Sequential,
        Access::Store,
    );
    let statistics = run(&setup).unwrap();
    let (lines, victims) = (u64::from(LINES), u64::from(LINES - LLC_LINES));
    let expected = [
        ("ReadExclusive", lines),
        ("VictimDirty", victims),
        ("DataExclusive", lines),
    ];
    assert_eq!(sent(&statistics), expected);
    let up = statistics.get("link_bytes_to_home").unwrap();
    assert_eq!(up as u64, lines * 8 + victims * (8 + 128));
}

/// The formulas also hold for all cores of each platform, less the lines that the cache still holds at the end.
#[test]
fn messages_of_all_cores() {
    for name in setups::single_cache_platforms() {
        for access in [Access::Load, Access::Store] {
            let platform = Platform::shipped(name).unwrap();
            let cores = &platform.cores;
            let (used, outstanding) = (cores.count.value, cores.max_outstanding.value);
            let mut workload = Workload::pass(
                Pattern::Chunked,
                access,
                LINES,
                used as u32,
                outstanding as u32,
            );
            let reads = access == Access::Load;
            workload.prefetch = if reads {
                cores.prefetch_distance.value as u32
            } else {
                0
            };
            let setup = Setup::new(protocol("eci"), platform, workload).unwrap();
            let statistics = run(&setup).unwrap();
            let lines = u64::from(LINES);
            let victims = lines - statistics.get("lines_cached").unwrap() as u64;
            let expected = match reads {
                true => [
                    ("ReadShared", lines),
                    ("VictimShared", victims),
                    ("DataShared", lines),
                ],
                false => [
                    ("ReadExclusive", lines),
                    ("VictimDirty", victims),
                    ("DataExclusive", lines),
                ],
            };
            assert_eq!(sent(&statistics), expected, "{name}");
            assert!(victims >= lines - u64::from(LLC_LINES), "{name}");
        }
    }
}

/// Random reads cause as many victims as there are misses beyond the lines still cached, for any random sequence.
#[test]
fn messages_of_a_random_read() {
    let setup = setup(
        Platform::shipped("enzian-dc-ddr").unwrap(),
        Pattern::Random,
        Access::Load,
    );
    let mut simulation = Simulation::new(&setup, None).unwrap();
    simulation.run().unwrap();
    let statistics = simulation.statistics();
    let requests = statistics.sent("ReadShared").unwrap();
    assert_eq!(statistics.sent("DataShared").unwrap(), requests);
    let victims = statistics.sent("VictimShared").unwrap();
    assert_eq!(victims, requests - simulation.lines_cached());
}

/// With prefetching, each line is still fetched once, and every access finds it cached or outstanding.
#[test]
fn prefetching_fetches_each_line_once() {
    let mut setup = setup(
        Platform::shipped("enzian-dc-ddr").unwrap(),
        Pattern::Sequential,
        Access::Load,
    );
    setup.workload.prefetch = 64;
    let statistics = run(&setup).unwrap();
    assert_eq!(statistics.sent("ReadShared"), Some(u64::from(LINES)));
    assert_eq!(statistics.get("accesses"), Some(f64::from(LINES)));
}

/// Reads of one unit that wait for each other: the interval between two is the memory latency and one event, the
/// arrival of the line from memory.
#[test]
fn reads_of_a_unit_follow_each_other() {
    let run_reads = |reads, pending| {
        let mut platform = Platform::shipped("enzian-dc-bram").unwrap();
        platform.home.slices.value = 1;
        platform.home.units.value = 1;
        platform.home.queue_entries.value = pending;
        let workload = Workload::pass(Pattern::Chunked, Access::Load, reads, reads, 1);
        run(&Setup::new(protocol("eci"), platform, workload).unwrap()).unwrap()
    };
    let platform = Platform::shipped("enzian-dc-bram").unwrap();
    let parts = setups::read_latency(&platform, 128);
    let part = |name: &str| {
        let mut parts = parts.iter();
        parts.find(|part| part.0 == name).unwrap().1
    };
    let memory = ["home.latency", "home.memory_round_trip", "bram.bandwidth"];
    let period = memory.map(part).iter().sum::<u64>() + platform.home.occupancy.value;
    let single_read: u64 = parts.iter().map(|part| part.1).sum();
    let picoseconds = |statistics: &Statistics| {
        let time = statistics.get("time_ns").unwrap() * 1000.0;
        time.round() as u64
    };
    for pending in [4096, 5] {
        let statistics = run_reads(40, pending);
        assert_eq!(picoseconds(&statistics), single_read + 39 * period);
        // Requests stopped at the head of their queue are retried when there is room.
        let stops = statistics.get("stalls_stall_entries_full").unwrap();
        let waits = statistics.get("stalls_unit_slot").unwrap();
        assert_eq!(waits - stops, 39.0);
        assert_eq!(stops > 0.0, pending == 5);
    }
}

/// Reads of one unit in flight together, all started before memory answers the first. The interval between two is the
/// longer of the events that start and complete them.
#[test]
fn reads_of_a_unit_overlap_up_to_its_limit() {
    let mut platform = Platform::shipped("enzian-dc-bram").unwrap();
    platform.home.slices.value = 1;
    platform.home.units.value = 1;
    platform.home.memory_round_trip.value = 2_000_000;
    platform.home.max_reads = Some(Quantity::given(64, "a test"));
    platform.home.memory_in_flight = None;
    let occupancy = platform.home.occupancy.value;
    let parts = setups::read_latency(&platform, 128);
    let single_read: u64 = parts.iter().map(|part| part.1).sum();
    for (resume_occupancy, period) in [
        (None, occupancy),
        (Some(0), occupancy),
        (Some(2 * occupancy), 2 * occupancy),
    ] {
        platform.home.completion_occupancy =
            resume_occupancy.map(|time| Quantity::given(time, "a test"));
        let workload = Workload::pass(Pattern::Chunked, Access::Load, 40, 40, 1);
        let setup = Setup::new(protocol("eci"), platform.clone(), workload).unwrap();
        let statistics = run(&setup).unwrap();
        let time = (statistics.get("time_ns").unwrap() * 1000.0).round() as u64;
        assert_eq!(time, single_read + 39 * period);
        assert_eq!(statistics.get("stalls_unit_slot"), Some(0.0));
    }
}

/// Reads of a slice share its places toward memory: with 5 of them, 80 reads take 16 times the path to memory and back.
#[test]
fn reads_of_a_slice_in_flight_are_bounded() {
    let path = 2_000_000;
    let time = |limit: u64, slices: u64| {
        let mut platform = Platform::shipped("enzian-dc-bram").unwrap();
        platform.home.slices.value = slices;
        platform.home.units.value = 64;
        platform.home.memory_round_trip.value = path;
        platform.home.memory_in_flight = Some(Quantity::given(limit, "a test"));
        let workload = Workload::pass(Pattern::Chunked, Access::Load, 80, 80, 1);
        let statistics = run(&Setup::new(protocol("eci"), platform, workload).unwrap()).unwrap();
        (statistics.get("time_ns").unwrap() * 1000.0).round() as u64
    };
    // All 80 at once, without a limit: 64 units of one slice serve at most two each.
    let unbounded = time(0, 1);
    assert!(unbounded < 3 * path, "{unbounded}");
    for (limit, slices, waves) in [(5, 1, 16), (10, 1, 8), (5, 2, 8), (80, 1, 1)] {
        let bounded = time(limit, slices);
        let bounds = waves * path..waves * path + unbounded;
        assert!(
            bounds.contains(&bounded),
            "{limit}, {slices}: {bounded} {bounds:?}"
        );
    }
}

#[test]
fn equal_seeds_give_equal_results() {
    let results = |seed| {
        let mut setup = setups::torture(protocol("moesi"), 3, seed).unwrap();
        setup.oracle = Level::Versions;
        format!("{:?}", run(&setup).unwrap())
    };
    let concurrent: Vec<String> = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..3).map(|_| scope.spawn(|| results(7))).collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    assert!(concurrent.iter().all(|result| *result == results(7)));
    assert_ne!(results(8), results(7));
}

/// The oracle does not affect results.
#[test]
fn oracle_does_not_affect_results() {
    let results = |level| {
        let mut setup = setups::torture(protocol("eci"), 2, 3).unwrap();
        setup.oracle = level;
        format!("{:?}", run(&setup).unwrap())
    };
    let bytes = results(Level::Bytes);
    assert_eq!(bytes, results(Level::Versions));
    assert_eq!(bytes, results(Level::Off));
}

/// A change of one row changes the simulation: a clean line is returned with its data.
#[test]
fn changed_row_changes_the_messages() {
    let text = source("eci");
    let row = "S                    | evict                    | send VictimShared         | I";
    assert!(text.contains(row));
    let changed = text
        .replace(row, "S | evict | send VictimFull | I")
        .replace("VictimShared,", "VictimFull (line),");
    let mut setup = setup(
        Platform::shipped("enzian-dc-ddr").unwrap(),
        Pattern::Sequential,
        Access::Load,
    );
    setup.protocol = parse(&changed);
    setup.home = cohkit_sim::simulation::home(&setup.protocol, 1).unwrap();
    let statistics = run(&setup).unwrap();
    let victims = u64::from(LINES - LLC_LINES);
    assert_eq!(statistics.sent("VictimFull"), Some(victims));
    let up = statistics.get("link_bytes_to_home").unwrap();
    assert_eq!(up as u64, u64::from(LINES) * 8 + victims * (8 + 128));
}

#[test]
fn unsupported_setups_are_rejected_by_name() {
    let setup_error = |change: &dyn Fn(&mut Setup)| {
        let mut setup = setup(
            Platform::shipped("enzian-dc-ddr").unwrap(),
            Pattern::Sequential,
            Access::Load,
        );
        change(&mut setup);
        run(&setup).unwrap_err().to_string()
    };
    for (message, change) in [
        (
            "cache.sets must be a power of two, not 3",
            &(|s: &mut Setup| s.platform.cache.sets.value = 3) as &dyn Fn(&mut Setup),
        ),
        ("cache.ways must be 1 to 16, not 17", &|s| {
            s.platform.cache.ways.value = 17
        }),
        ("lines of the region must be 1 to 100, not 200000", &|s| {
            s.platform.lines = 100
        }),
        ("cores must be 1 to 4096, not 0", &|s| s.workload.cores = 0),
        ("remotes must be 1 to 4096, not 4097", &|s| {
            s.platform.remotes = 4097
        }),
    ] {
        assert_eq!(setup_error(change), message);
    }
}

/// Atomics need no row in a state with write permission: the first to each line fetches it, and all later ones hit.
#[test]
fn atomics_hit_in_their_fetched_copy() {
    let rows = "              | store  ";
    let text = source("msi").replace(rows, "              | store atomic  ");
    let mut workload = Workload::pass(Pattern::Sequential, Access::Atomic, 2, 1, 1);
    workload.accesses = 10;
    let platform = Platform::shipped("enzian-dc-ddr").unwrap();
    let mut setup = Setup::new(parse(&text), platform, workload).unwrap();
    setup.oracle = Level::Bytes;
    let statistics = run(&setup).unwrap();
    assert_eq!(sent(&statistics), [("GetM", 2), ("Data", 2)]);
    assert_eq!(statistics.get("accesses"), Some(10.0));
}
