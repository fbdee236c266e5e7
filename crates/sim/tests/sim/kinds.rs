//! Machines with several kinds of caching agents, each with cores, caches and links of its own.

use cohkit_testing::setups;

use cohkit_application::locks::LockTable;
use cohkit_application::shared_table::SharedTable;
use cohkit_protocol::controller::Access;
use cohkit_protocol::protocol::Protocol;
use cohkit_sim::components::traffic::{Pattern, Workload};
use cohkit_sim::kernel::NANOSECOND;
use cohkit_sim::oracle::Level;
use cohkit_sim::platform::Platform;
use cohkit_sim::scenario::{Playable, Tally};
use cohkit_sim::simulation::{run, Setup, Simulation};
use setups::{parse, protocol, seeds, source};
use std::sync::Arc;

/// CPUs that read and write, and devices that only read and have a table of their own. If only devices have a line, the
/// directory grants it to a device without asking any of them.
const READERS: &str = "
protocol readers
line 64 bytes
channels {
  ask    device -> home
  put    cpu -> home
  reply  home -> remote
  recall home -> cpu
  drop   home -> device
  gone   device -> home
  ordered reply, drop
  ordered recall
}
messages {
  ask: GetS; put: GetM, Put (line)
  reply: Data (line); recall: Recall, Taken; drop: Drop
  gone: Gone
}
remote cpu {
  states { I; M reads writes dirty; W waits Data; P holds dirty, waits Taken; D waits Taken }
  I   | load store | send GetM | W
  W   | Data       |           | M
  M   | evict      | send Put  | P
  P D | Taken      |           | I
  M   | Recall     | send Put  | D
  P   | Recall     |           | stay
  W   | Recall     | stall
  D   | Recall     | unreachable
}
remote device {
  states { I; S reads; W waits Data }
  I   | load   | send GetS            | W
  W   | Data   |                      | S
  S   | Drop   | send Gone            | I
  S   | evict  |                      | I
  I   | Drop   | send Gone            | I
  W   | Drop   | send Gone            | stay
}
home directory {
  states { I; S; M; B waits Gone; R waits Put }
  variables { owner: remote; wants: remote; left: count }
  I   | GetS                      | send Data                                                | S
  S   | GetS                      | send Data                                                | stay
  I   | GetM                      | send Data, owner := sender                               | M
  S   | GetM                      | send Drop to device, left := count(device), wants := sender | B
  B   | Gone if left == 1         | send Data to wants, owner := wants, wants := none, left := 0 | M
  B   | Gone                      | left -= 1                                                | stay
  M   | GetS GetM                 | send Recall to owner, wants := sender                    | R
  R   | Put if wants in device    | write, send Taken, send Data to wants, owner := none     | S
  R   | Put                       | write, send Taken, send Data to wants, owner := wants, wants := none | M
  M   | Put                       | write, send Taken, owner := none                         | I
  B R | GetS GetM                 | stall
}
system one   { cpu 1; device 1; lines 1 }
";

/// Number of accesses of a short run, of all cores of a kind together.
const ACCESSES: u64 = 1_000;

/// Returns a short stress run of two kinds with these numbers of agents. The second kind has smaller caches and longer
/// links.
fn torture(protocol: Protocol, kind: &str, [first, second]: [u16; 2], seed: u64) -> Setup {
    let weighted_accesses = [
        (Access::Load, 4),
        (Access::Evict, 1),
        (Access::Store, 4),
        (Access::ReadOnce, 1),
        (Access::WriteLine, 1),
    ];
    let reads = protocol.name == "readers";
    let cores = |agents: u16| (2 * u32::from(agents)).min(Platform::MAX_AGENTS.into());
    let workload = |agents: u16, mix: usize| Workload {
        pattern: Pattern::Random,
        mix: weighted_accesses[..mix].to_vec(),
        lines: 1 + (seed % 7) as u32,
        accesses: ACCESSES,
        cores: cores(agents),
        outstanding: 3,
        prefetch: 0,
        write_prefetches: 0,
    };
    let line = u64::from(protocol.line_bytes);
    let mut platform = Platform::torture(first);
    platform.cores.count.value = cores(first).into();
    if seed % 2 == 1 {
        platform.cores.write_buffer.value = 2 * line;
        platform.cores.l1_size.value = 4 * line;
    }
    let count = second.to_string();
    platform
        .set(&format!("agents.{kind}.remotes"), &count)
        .unwrap();
    let agents = &mut platform.agents[0];
    agents.cache.sets.value = 1;
    agents.link.latency.value += 50 * NANOSECOND;
    agents.cores.l1_size.value = 0;
    let mut setup = Setup::new(protocol, platform, workload(first, 5)).unwrap();
    setup.others = vec![workload(second, if reads { 2 } else { 5 })];
    (setup.seed, setup.oracle) = (seed, Level::Bytes);
    setup
}

/// The maximum number of agents applies to each kind, and all of them take part.
#[test]
fn each_kind_may_have_the_maximum_number_of_agents() {
    let max_agents = Platform::MAX_AGENTS;
    let mut setup = torture(parse(READERS), "device", [max_agents, max_agents], 2);
    let other_workloads = setup.others.iter_mut();
    for workload in std::iter::once(&mut setup.workload).chain(other_workloads) {
        workload.accesses = max_agents.into();
        workload.lines = 8 * u32::from(max_agents);
    }
    let statistics = run(&setup).unwrap();
    let sent = |name: &str| {
        statistics
            .messages
            .iter()
            .find(|(sent, _)| sent == name)
            .unwrap()
            .1
    };
    // Each core makes one access, and most of these send a request.
    assert!(sent("GetM") > u64::from(max_agents) / 2, "{}", sent("GetM"));
    assert!(sent("GetS") > u64::from(max_agents) / 2, "{}", sent("GetS"));
    let too_many = (max_agents + 1).to_string();
    let result = setup.platform.set("agents.device.remotes", &too_many);
    assert!(result.is_err());
}

#[test]
fn each_kind_follows_its_own_table() {
    let (readers, near) = (parse(READERS), protocol("eci-near"));
    let mut request_counts = [0.0; 2];
    for seed in seeds(40) {
        let counts = [1 + (seed % 3) as u16, 1 + (seed / 3 % 3) as u16];
        for (protocol, kind) in [(&readers, "device"), (&near, "device")] {
            let setup = torture(protocol.clone(), kind, counts, seed);
            let statistics = run(&setup).unwrap_or_else(|failure| {
                panic!("COHKIT_SEED={seed} cargo test -p cohkit-sim --test sim kinds::\n{failure}")
            });
            let get = |name: &str| statistics.get(name).unwrap();
            let total = get("accesses") + get("accesses_skipped");
            assert_eq!(total, 2.0 * ACCESSES as f64, "{seed}");
            request_counts[0] += statistics.sent("GetS").unwrap_or(0) as f64;
            request_counts[1] += statistics.sent("ReadExclusive").unwrap_or(0) as f64;
        }
    }
    assert!(
        request_counts.iter().all(|&count| count > 1000.0),
        "{request_counts:?}"
    );
}

/// A wrong row in the table of one kind is detected.
#[test]
fn fault_in_the_table_of_one_kind_is_detected() {
    for (from, to, expected) in [
        (
            "S   | Drop   | send Gone            | I",
            "S   | Drop   | send Gone            | stay",
            "single writer",
        ),
        (
            "M   | Recall     | send Put  | D",
            "M   | Recall     | stall",
            "no progress",
        ),
    ] {
        assert_eq!(READERS.matches(from).count(), 1);
        let faulty = parse(&READERS.replace(from, to));
        let runs = (0..20).map(|seed| run(&torture(faulty.clone(), "device", [2, 2], seed)));
        let failures: Vec<String> = runs
            .filter_map(|run| Some(run.err()?.to_string()))
            .collect();
        assert!(
            failures.iter().any(|failure| failure.starts_with(expected)),
            "{from}: {failures:?}"
        );
    }
}

/// The latency of a kind's cores depends on its own path to the home only.
#[test]
fn latency_of_a_kind_depends_on_its_own_path() {
    let mean_read_latency = |kind: usize, change: &dyn Fn(&mut Platform)| {
        let mut platform = Platform::shipped("hosts-8x8").unwrap();
        platform.switch = None;
        for (name, value) in [
            ("remotes", "1"),
            ("home.count", "1"),
            ("agents.device.remotes", "2"),
        ] {
            platform.set(name, value).unwrap();
        }
        change(&mut platform);
        let workload = Workload::pass(Pattern::Sequential, Access::Load, 50, 1, 1);
        let mut workloads = [Workload::idle(), Workload::idle()];
        workloads[kind] = workload;
        let [first, second] = workloads;
        let mut setup = Setup::new(parse(READERS), platform, first).unwrap();
        setup.others = vec![second];
        let statistics = run(&setup).unwrap();
        assert_eq!(statistics.get("accesses"), Some(50.0));
        statistics.get("latency_mean_ns").unwrap()
    };
    let slower = |platform: &mut Platform| {
        let agents = &mut platform.agents[0];
        agents.link.latency.value += 100 * NANOSECOND;
        agents.cache.fill_latency.value += 7 * NANOSECOND;
        agents.cache.request_latency.value += 5 * NANOSECOND;
    };
    let unchanged = |_: &mut Platform| {};
    assert_eq!(
        mean_read_latency(0, &unchanged),
        mean_read_latency(1, &unchanged)
    );
    assert_eq!(
        mean_read_latency(0, &slower),
        mean_read_latency(0, &unchanged)
    );
    assert!(
        (mean_read_latency(1, &slower) - mean_read_latency(1, &unchanged) - 212.0).abs() < 1e-6
    );
}

#[test]
fn each_kind_has_its_own_cache_size() {
    let cached_lines = |sets: &str| {
        let mut platform = Platform::torture(1);
        for (name, value) in [
            ("agents.device.remotes", "2"),
            ("agents.device.cache.sets", sets),
            ("cache.sets", "64"),
        ] {
            platform.set(name, value).unwrap();
        }
        let mut setup = Setup::new(parse(READERS), platform, Workload::idle()).unwrap();
        setup.others = vec![Workload::pass(Pattern::Chunked, Access::Load, 64, 2, 1)];
        let mut simulation = Simulation::new(&setup, None).unwrap();
        simulation.run().unwrap();
        simulation.lines_cached()
    };
    assert_eq!(
        (cached_lines("1"), cached_lines("4"), cached_lines("16")),
        (4, 16, 64)
    );
}

#[test]
fn kinds_unknown_to_the_protocol_are_rejected() {
    let kinds_error = |settings: &[(&str, &str)]| {
        let mut platform = Platform::torture(1);
        for (name, value) in settings {
            platform.set(name, value).unwrap();
        }
        platform.kinds(&parse(READERS)).unwrap_err()
    };
    assert_eq!(
        kinds_error(&[]),
        "torture does not declare agents `device`, and readers has cpu, device: `agents.device.remotes` sets their number"
    );
    assert_eq!(
        kinds_error(&[("agents.dvice.remotes", "1")]),
        "torture has agents of a further kind, `dvice`, and readers has cpu, device"
    );
    let mut platform = Platform::torture(1);
    let error = platform
        .set("agents.device.link.latency", "1ns")
        .unwrap_err();
    assert!(
        error.starts_with("there is no `agents.device.link.latency` in this platform"),
        "{error}"
    );
    platform.set("agents.device.remotes", "1").unwrap();
    assert_eq!(platform.set("agents.device.link.latency", "1ns"), Ok(()));
    let error = platform.set("agents.device.cache.sets", "3").unwrap_err();
    assert_eq!(
        error,
        "agents.device.cache.sets must be a power of two, not 3"
    );
}

/// Returns a setup that makes races likely, of a scenario whose last threads are engines of a device.
fn with_engines(protocol: Protocol, scenario: Arc<dyn Playable>, seed: u64) -> Setup {
    let counts = [1 + (seed % 2) as u16, 1 + (seed / 2 % 2) as u16];
    let mut setup = torture(protocol.clone(), "device", counts, seed);
    let mut platform = setup.platform;
    platform.agents[0].cores.write_buffer.value = 0;
    setup = Setup::with_scenario(protocol, platform, scenario).unwrap();
    (setup.seed, setup.oracle) = (seed, Level::Bytes);
    setup
}

/// Runs a setup to its end; the error is the failure as text.
fn play(setup: &Setup) -> Result<Tally, String> {
    let mut simulation = Simulation::new(setup, None).unwrap();
    simulation.run().map_err(|failure| failure.to_string())?;
    Ok(simulation.tally())
}

/// Returns a lock table that both sides use, whose parameters depend on the seed.
fn locks(seed: u64) -> LockTable {
    LockTable {
        records: 1 + (seed % 3) as u32,
        threads: 1 + (seed % 4) as u32,
        device: 1 + (seed % 5) as u32,
        hold: 1000 * (seed % 50),
        pause: 0,
        transactions: Some(30),
        messages: false,
        cached: true,
        words: false,
    }
}

/// Returns a shared table that both sides increment, whose parameters depend on the seed.
fn table(seed: u64) -> SharedTable {
    SharedTable {
        rows: 7 + (seed % 9) as u32,
        contended: [150, 250, 500, 1000][(seed % 4) as usize],
        engines: 1,
        outstanding: 1 + (seed % 3) as u32,
        device: Some(100),
        threads: 1 + (seed % 3) as u32,
        thread: Some(100),
        cached: true,
    }
}

/// Both sides take the same locks and increment the same rows, each in its own copies.
#[test]
fn engines_of_a_device_and_threads_of_the_cpu_do_the_same() {
    for seed in seeds(30) {
        for name in ["ccix", "cxl-cache", "eci-near"] {
            let protocol = protocol(name);
            let play_or_panic = |scenario| {
                play(&with_engines(protocol.clone(), scenario, seed)).unwrap_or_else(|failure| {
                    panic!(
                        "COHKIT_SEED={seed} cargo test -p cohkit-sim --test sim kinds::\n{failure}"
                    )
                })
            };
            let scenario = locks(seed);
            let tally = play_or_panic(Arc::new(scenario.clone()));
            let count = |name| tally.counts[name];
            assert_eq!(count("host locks"), 30 * u64::from(scenario.threads));
            assert_eq!(count("device locks"), 30 * u64::from(scenario.device));
            let scenario = table(seed);
            let tally = play_or_panic(Arc::new(scenario.clone()));
            let count = |name| tally.counts[name];
            assert_eq!(count("increments"), 100 * u64::from(scenario.threads));
            assert_eq!(count("device increments"), 100);
        }
    }
}

/// If a protocol loses an engine's write, the next increment of the row detects it.
#[test]
fn lost_engine_increment_is_detected() {
    let (row, faulty_row) = (
        "UD             | SnpUnique                | send SnpRespDataI                | I",
        "UD             | SnpUnique                | send SnpRespI                    | I",
    );
    let text = source("ccix");
    assert_eq!(text.matches(row).count(), 1);
    let setup = with_engines(parse(&text.replace(row, faulty_row)), Arc::new(table(3)), 0);
    let failure = play(&setup).err().expect("detected missing increment");
    assert!(failure.contains("data value"), "{failure}");
}

/// Engines require a device with caches.
#[test]
fn engines_need_caches_of_a_device() {
    let scenario = Arc::new(table(0));
    let setup = Setup::with_scenario(protocol("eci"), Platform::torture(1), scenario);
    let Err(error) = setup else {
        panic!("it was set up")
    };
    let expected = "engines of a device need caches, but in `eci` only the CPU has caches";
    assert_eq!(error.to_string(), expected);
}
