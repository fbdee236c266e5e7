//! Applications in RTL behind the home in RTL, as parts of simulated machines.
//!
//! These tests build the RTL with Verilator. Without it, they report that and do nothing.

use crate::homes;
use cohkit_testing::setups;

use cohkit_application::hardware::{Hardware, HardwareScenario};
use cohkit_application::prefetcher::Prefetch;
use cohkit_application::shared_table::SharedTable;
use cohkit_rtl::lockstep::shapes::{Endpoint, Shape};
use cohkit_rtl::verilated::{Application, Verilated};
use cohkit_sim::kernel::Time;
use cohkit_sim::oracle::Level;
use cohkit_sim::platform::Platform;
use cohkit_sim::scenario::{Playable, Tally};
use cohkit_sim::simulation::{ClockedHomeFactory, Setup, Simulation};
use homes::seeded::{build_with_faults, fault_argument, Fault};
use homes::{compile_shipped, Built};
use std::sync::Arc;

/// Number of seeds per application, unless COHKIT_SEEDS sets it.
const SEEDS: u64 = 8;

/// Builds a small home with all faults, inactive. It has one more read entry than the reads that the two contexts of a
/// slice may withhold.
fn home() -> Option<Built> {
    let shape = Shape {
        set_bits: 4,
        locals: 1,
        reads: 3,
        writes: 2,
        max_deferred: 3,
        store_slots: 4,
        endpoint: Endpoint::Application,
        ..Shape::default()
    };
    let faults = FAULTS.iter().map(|(_, fault)| fault);
    build_with_faults(compile_shipped("eci.coh"), shape, faults)
}

/// Faults of the applications, with text that occurs once and its replacement; `@` means "this fault is enabled". Each
/// name begins with the application's name. All tests share one build, which contains every fault, inactive by
/// default.
const FAULTS: &[(&str, Fault)] = &[
    (
        "rpc: wrong result",
        Fault {
            file: "rpc_echo.sv",
            original: "words[result_slot_q.side][i*64+:64] + 64'd1;",
            faulty: "words[result_slot_q.side][i*64+:64] + (@ ? 64'd2 : 64'd1);",
        },
    ),
    (
        "rpc: answer before the arguments are there",
        Fault {
            file: "rpc_echo.sv",
            original: "assign readable   = req_slot.side == remote_side_q[req_slot.context_index];",
            faulty: "assign readable   = req_slot.side == remote_side_q[req_slot.context_index] || @;",
        },
    ),
    (
        "shared_table: lost unlock",
        Fault {
            file: "shared_table.sv",
            original: "assign unlock_valid_o    = next_unlock.valid;",
            faulty: "assign unlock_valid_o    = next_unlock.valid && !@;",
        },
    ),
    (
        "shared_table: lost increment",
        Fault {
            file: "shared_table.sv",
            original: "word_q[w] <= r_data_i[63:0] + 64'd1;",
            faulty: "word_q[w] <= r_data_i[63:0] + (@ ? 64'd0 : 64'd1);",
        },
    ),
    (
        "prefetcher: wrong block",
        Fault {
            file: "prefetcher.sv",
            original: ": ram_line_of_block(block_q[entry], offset_q[entry]), r_beat_q)),",
            faulty:
                ": ram_line_of_block(@ ? ~block_q[entry] : block_q[entry], offset_q[entry]), r_beat_q)),",
        },
    ),
    (
        "prefetcher: write that passes its block by",
        Fault {
            file: "prefetcher.sv",
            original: "merge_q[free_write]       <= w_present;",
            faulty: "merge_q[free_write]       <= w_present && !@;",
        },
    ),
];

/// Returns a constructor of homes with an application; with seed 0, the application has minimal delays. `fault` is the
/// number of the enabled fault, from 1; 0 enables none.
fn home_factory(
    built: &Built,
    application: Application,
    seed: u16,
    fault: usize,
) -> ClockedHomeFactory {
    let protocol = &built.compiled.protocol;
    let image = built.compiled.rom.clone();
    let file = built.folder.path().join("image.mem");
    let text: Vec<String> = (image.used())
        .map(|(state, event)| {
            let word = image.word(image.row(state, event));
            format!("@{:x} {word:x}\n", image.address(state, event))
        })
        .collect();
    std::fs::write(&file, text.concat()).expect("writable folder");
    let (library, line_bytes) = (built.library.clone(), protocol.line_bytes);
    Arc::new(move || {
        let with_application = Some((application, seed));
        let rom = image.clone();
        let fault = fault_argument(fault);
        let home = Verilated::open_with(
            &library,
            &file,
            rom,
            line_bytes,
            0,
            with_application,
            &fault,
        )?;
        Ok(Box::new(home))
    })
}

/// One microsecond in picoseconds.
const MICROSECOND: Time = 1_000_000;

/// Runs a scenario to its end, and returns its counts and times; the error is the first failure.
fn play(setup: &Setup) -> Result<Tally, String> {
    let mut simulation = Simulation::new(setup, None).expect("valid setup");
    simulation.run().map_err(|failure| failure.to_string())?;
    Ok(simulation.tally())
}

/// Returns a machine that makes races likely, with a check of every byte.
fn torture_machine(scenario: Arc<dyn Playable>, seed: u64) -> Setup {
    let protocol = setups::protocol("eci");
    let mut platform = Platform::torture(1);
    platform.lines = 4096;
    let line = u64::from(protocol.line_bytes);
    // In every second group of three seeds, cores have write buffers and L1 caches. Groups of three, because the
    // scenarios vary parameters with the period of the seed modulo 3.
    if seed / 3 % 2 == 1 {
        platform.cores.write_buffer.value = 2 * line;
        platform.cores.l1_size.value = 4 * line;
    }
    let mut setup =
        Setup::with_scenario(protocol, platform, scenario).expect("protocol with a home");
    setup.seed = seed;
    setup.oracle = Level::Bytes;
    setup
}

/// Returns an application by its name, with parameters derived from the seed.
fn scenario(name: &str, seed: u64, built: &Built) -> (Application, Arc<dyn Playable>) {
    match name {
        "rpc" => {
            let (contexts, payload) = (1 + (seed % 4) as u32, 1 + (seed % 8) as u32);
            let calls = Application::calls(contexts, payload, Some(20));
            (Application::Rpc { payload }, Arc::new(Hardware(calls)))
        }
        "shared_table" => {
            let table = SharedTable {
                cached: false,
                rows: 2 + (seed % 7) as u32,
                contended: 1000,
                engines: 2,
                outstanding: 1 + (seed % 4) as u32,
                device: Some(60),
                threads: 1 + (seed % 4) as u32,
                thread: Some(100),
            };
            let device = Application::for_table(&table, &built.compiled.home);
            (device, Arc::new(Hardware(table)))
        }
        _ => {
            let (blocks, threads) = (1 + (seed % 8) as u32, 1 + (seed % 3) as u32);
            // The longest regions have more lines than the blocks hold.
            let lines = 2 * (64 + 97 * (seed % 5) as u32);
            let written = 300 * (seed % 3) as u32;
            let (application, region) = region(lines, blocks, threads, Some(400), written);
            (application, Arc::new(Hardware(region)))
        }
    }
}

/// Runs an application with all seeds, and checks its counts. COHKIT_SEED=n repeats one.
fn run_all_seeds(name: &str, check: impl Fn(u64, &Tally)) {
    let Some(built) = home() else {
        return;
    };
    for seed in setups::seeds(SEEDS) {
        let tally = run_seed(&built, name, seed, 0).unwrap_or_else(|failure| {
            panic!(
                "COHKIT_SEED={seed} cargo test -p cohkit-rtl --test rtl applications::{name}\n{failure}"
            )
        });
        check(seed, &tally);
    }
}

/// Runs an application with a seed and a fault; fault 0 is none.
fn run_seed(built: &Built, name: &str, seed: u64, fault: usize) -> Result<Tally, String> {
    let (application, scenario) = scenario(name, seed, built);
    let mut setup = torture_machine(scenario, seed);
    setup.clocked = Some(home_factory(built, application, 1 + seed as u16, fault));
    play(&setup)
}

/// Every call returns, and its duration is measured.
#[test]
fn rpc_calls_all_return() {
    run_all_seeds("rpc", |seed, tally| {
        let calls = 20 * (1 + seed % 4);
        assert_eq!(tally.counts["calls"], calls);
        assert_eq!(tally.times["call"].count(), calls);
    });
}

/// Device and threads perform all their increments; each of the device recalls its row.
#[test]
fn shared_table_performs_all_increments() {
    run_all_seeds("shared_table", |seed, tally| {
        assert_eq!(tally.counts["device increments"], 120);
        assert_eq!(tally.counts["increments"], 100 * (1 + seed % 4));
        assert_eq!(tally.times["clean-invalidate"].count(), 120);
    });
}

/// The threads perform all their reads and writes, and the prefetcher fetches whole blocks.
#[test]
fn prefetcher_serves_all_accesses() {
    run_all_seeds("prefetcher", |seed, tally| {
        let written = tally.counts.get("lines written").copied().unwrap_or(0);
        assert_eq!(written, (1 + seed % 3) * 120 * (seed % 3));
        let read = tally.counts["lines read"];
        assert_eq!(read, (1 + seed % 3) * 400 - written);
        // A read fetches a whole block, hence more lines than were requested.
        assert!(tally.counts["lines fetched"] > 64, "{:?}", tally.counts);
    });
}

/// Each fault is detected with one of a few seeds, by its effect.
#[test]
fn application_faults_are_detected() {
    let Some(built) = home() else {
        return;
    };
    let mut report = String::new();
    for (index, (name, ..)) in FAULTS.iter().enumerate() {
        let (application, fault) = name
            .split_once(": ")
            .expect("the application's name comes first");
        let run = |seed| run_seed(&built, application, seed, index + 1).err();
        let failure = (0..8).find_map(run);
        let failure = failure.unwrap_or_else(|| panic!("no seed detects {name}"));
        let first_line = failure.lines().next().unwrap_or_default();
        report.push_str(&format!("{application}, {fault}: {first_line}\n"));
    }
    expect_test::expect![[r#"
        rpc, wrong result: result of a scenario: two-line RPC in hardware: 20 results of context 0 are wrong (line 0, at 25009.512 ns)
        rpc, answer before the arguments are there: result of a scenario: two-line RPC in hardware: 20 results of context 0 are wrong (line 0, at 863.468 ns)
        shared_table, lost unlock: no progress: no access was performed for 200001 ns; the oldest was issued at 362 ns: shared table in hardware has not released its lock (line 1, at 200666.236 ns)
        shared_table, lost increment: result of a scenario: shared table in hardware: the table has gained 100, of 220 increments (100 by threads) (line 0, at 19359.698 ns)
        prefetcher, wrong block: result of a scenario: prefetcher in hardware: line 0 has wrong contents (line 0, at 160983.980 ns)
        prefetcher, write that passes its block by: result of a scenario: prefetcher in hardware: the thread of line 0 has read 134 lines that differ from its own writes (line 0, at 159275.680 ns)
    "#]].assert_eq(&report);
}

/// Returns the machine whose home model has the RTL's latencies, with the given home and a cache of its directory's
/// size.
fn enzian_machine(scenario: Arc<dyn Playable>, shape: &Shape) -> Setup {
    let mut platform = Platform::shipped("enzian-cohkit").expect("shipped platform");
    platform.lines = 1 << 20;
    platform.home.units.value = shape.units as u64;
    for (resource, value) in [
        (&mut platform.home.max_reads, shape.reads),
        (&mut platform.home.max_writes, shape.writes),
    ] {
        if let Some(quantity) = resource {
            quantity.value = value as u64;
        }
    }
    platform.home.stall_entries.value = shape.max_deferred as u64;
    let slices = platform.home.slices.value;
    platform.cache.sets.value = (slices * shape.units as u64) << shape.set_bits;
    platform.cache.ways.value = shape.ways as u64;
    platform.cache.index_hash.value = 0;
    Setup::with_scenario(setups::protocol("eci"), platform, scenario).expect("protocol with a home")
}

/// Asserts that the RTL (application and home) deviates from the models by at most 10 %. Compares the rates of the
/// counters `rates` and the means of the intervals `times`.
fn compare_with_model<S>(
    description: &str,
    built: &Built,
    (application, scenario): (Application, S),
    rates: &[&'static str],
    times: &[&'static str],
) where
    S: HardwareScenario + Send + Sync + 'static,
    S::Application: Clone,
{
    let tally = |scenario: Arc<dyn Playable>, clocked: Option<ClockedHomeFactory>| {
        let mut setup = enzian_machine(scenario, &built.shape);
        setup.clocked = clocked;
        if let Some(play) = &mut setup.play {
            play.warm_up = 30 * MICROSECOND;
            play.until = Some(130 * MICROSECOND);
        }
        play(&setup).unwrap_or_else(|failure| panic!("{description}: {failure}"))
    };
    let model = tally(Arc::new(scenario.clone()), None);
    let home = home_factory(built, application, 0, 0);
    let rtl = tally(Arc::new(Hardware(scenario)), Some(home));
    let rates = rates.iter().map(|name| {
        let rate = |tally: &Tally| tally.rate(name) / 1e6;
        (format!("{name}, millions per s"), rate(&model), rate(&rtl))
    });
    let times = times.iter().map(|name| {
        let time = |tally: &Tally| tally.times[name].mean() / 1e3;
        (format!("{name}, ns"), time(&model), time(&rtl))
    });
    for (name, model, rtl) in rates.chain(times) {
        let ratio = rtl / model;
        println!("{description}: {name}: {model:.2} in the model, {rtl:.2} in RTL, {ratio:.3}");
        assert!(
            (ratio - 1.0).abs() <= 0.1,
            "{description}: {name}: {model} and {rtl}"
        );
    }
}

/// The call's latency, for calls of one and of several lines.
#[test]
fn calls_take_the_times_of_the_model() {
    let Some(built) = home() else {
        return;
    };
    for (contexts, payload) in [(1, 1), (1, 4), (1, 8), (4, 2)] {
        let calls = Application::calls(contexts, payload, None);
        let description = format!("calls of {payload} lines, {contexts} contexts");
        let application = (Application::Rpc { payload }, calls);
        compare_with_model(&description, &built, application, &[], &["call"]);
    }
}

/// Throughput of both sides at several degrees of contention.
#[test]
fn shared_table_latency_matches_the_model() {
    let Some(built) = home() else {
        return;
    };
    for (contended, outstanding, threads) in [(1000, 1, 1), (1000, 2, 1), (330, 2, 1), (100, 1, 4)]
    {
        let table = SharedTable {
            cached: false,
            rows: 192,
            contended,
            engines: 2,
            outstanding,
            device: None,
            threads,
            thread: None,
        };
        let device = Application::for_table(&table, &built.compiled.home);
        let description =
            format!("{contended} of a thousand rows, {outstanding} at a time, {threads} threads");
        let rates = ["device increments", "increments"];
        compare_with_model(&description, &built, (device, table), &rates, &[]);
    }
}

/// Throughput of the threads, for as many blocks as threads or fewer.
#[test]
fn prefetcher_latency_matches_the_model() {
    let Some(built) = home() else {
        return;
    };
    for (blocks, threads) in [(8, 1), (8, 4), (4, 2)] {
        let region = region(65_536, blocks, threads, None, 0);
        let description = format!("{blocks} blocks, {threads} threads");
        let rates = ["lines read"];
        compare_with_model(&description, &built, region, &rates, &[]);
    }
}

/// A region with the prefetcher's fixed sizes of blocks and bursts. Threads read, or write the given share of each
/// thousand lines.
fn region(
    lines: u32,
    blocks: u32,
    threads: u32,
    reads: Option<u64>,
    written: u32,
) -> (Application, Prefetch) {
    let region = Prefetch {
        lines,
        blocks,
        block: 64,
        burst: 32,
        threads,
        reads,
        written,
        hints: 0,
    };
    (Application::Prefetcher { lines, blocks }, region)
}
