//! Checks that the RTL endpoints behave as memory and device behind the home. The CPU, its messages and its data are
//! lockstep's.
//!
//! These tests build the RTL with Verilator.

use crate::homes;

use cohkit_rtl::lockstep::bench::{Pattern, Run, Traffic};
use cohkit_rtl::lockstep::measure::{rate, Scenario};
use cohkit_rtl::lockstep::model::{Inputs, Outputs};
use cohkit_rtl::lockstep::setup::Setup;
use cohkit_rtl::lockstep::shapes::{Endpoint, Shape};
use cohkit_rtl::sources::{ENDPOINTS, HOME, SOURCES};
use homes::{build_home, compile_shipped, require, Built};
use std::process::Command;

/// Builds the home of a shipped protocol with an endpoint behind it, with the smallest shape.
fn build_endpoint(endpoint: Endpoint, file: &str) -> Option<Built> {
    let shape = Shape {
        endpoint,
        ..Shape::default()
    };
    build_home(compile_shipped(file), SOURCES, shape)
}

/// Builds with an endpoint in the size of `cohkit rtl measure --units 4`.
fn build_full_size_endpoint(endpoint: Endpoint, file: &str) -> Option<Built> {
    let shape = Shape {
        endpoint,
        ..Shape::for_cache(2, 7, 16)
    };
    build_home(compile_shipped(file), SOURCES, shape)
}

/// A run on a few consecutive lines; the seed determines its other parameters.
fn run(seed: u64, lines: usize) -> Run {
    Run {
        lines,
        pattern: Pattern::Spread,
        ..Run::new(seed, 1000)
    }
}

/// Random traffic of CPUs and devices on coherent memory: every read returns the last write.
#[test]
fn coherent_memory_returns_the_last_write() {
    for file in ["eci.coh", "back-invalidate.coh"] {
        let Some(built) = build_endpoint(Endpoint::Memory, file) else {
            return;
        };
        let mut setup = built.setup();
        // The memory's latency is not under the bench's control, so lines cannot be directed.
        setup.graph = None;
        let (mut messages, mut evictions) = (0, 0);
        for seed in 0..12 {
            let run = run(
                seed,
                [3, 20, 64, 2 * built.shape.memory_lines][seed as usize % 4],
            );
            let report = setup
                .run(run, None)
                .unwrap_or_else(|failed| panic!("{file} {run:?}: {failed:#?}"));
            messages += report.messages;
            evictions += report.evictions;
        }
        assert!(messages >= 12_000, "{file}: {messages} messages");
        assert!(evictions >= 50, "{file}: {evictions} evictions");
    }
}

/// The last line of the memory can be read; the next one is outside.
#[test]
fn access_past_the_memory_end_is_reported() {
    let Some(built) = build_endpoint(Endpoint::Memory, "eci.coh") else {
        return;
    };
    let request = built
        .compiled
        .rom
        .event("ReadShared")
        .expect("event ReadShared") as u64;
    let lines = 2 * built.shape.memory_lines as u64;
    let first_assertion = |line: u64| {
        let mut model = built.model();
        let (mut inputs, mut outputs) = (Inputs::default(), Outputs::default());
        inputs.tx_ready = [3, 3];
        inputs.rx_header[0][0] = 0xffff << 48 | request << 40 | line;
        let mut step = |cycle: usize| {
            inputs.reset = u64::from(cycle == 0);
            inputs.rx_valid[0] = u64::from(cycle == 200);
            inputs.rx_last[0] = 1;
            model.step(&inputs, &mut outputs).err()
        };
        (0..300).find_map(&mut step)
    };
    assert_eq!(first_assertion(lines - 2), None);
    let first_assertion = first_assertion(lines).expect("failed assertion");
    let address = format!("address {:x} lies behind the memory", lines * 128);
    assert!(first_assertion.contains(&address), "{first_assertion}");
}

/// Afterwards the CPU holds no line of the range, memory has the dirty data, and each line was taken once.
#[test]
fn invalidation_engine_recalls_a_range_from_the_cpu() {
    for file in ["eci.coh", "back-invalidate.coh"] {
        let Some(built) = build_full_size_endpoint(Endpoint::Invalidation, file) else {
            return;
        };
        let mut setup = built.setup();
        setup.graph = None;
        for seed in 0..8 {
            // The directories hold all lines, so that the home evicts none by itself.
            let run = run(seed, 32);
            for remote_is_idle in [true, false] {
                let cycles = setup.invalidate_range(run, remote_is_idle);
                let cycles = cycles.unwrap_or_else(|failed| panic!("{file} {run:?}: {failed:#?}"));
                assert!(
                    cycles > 16,
                    "{file}: {cycles} cycles for 16 lines of a slice"
                );
            }
        }
    }
}

/// The engine issues operations at the home's maximum rate: as fast as a device with many outstanding operations.
#[test]
fn invalidation_engine_saturates_the_home() {
    let rate = |endpoint, traffic: fn(u8) -> Traffic| {
        let built = build_full_size_endpoint(endpoint, "eci.coh")?;
        let setup = Setup {
            graph: None,
            ..built.setup()
        };
        let scenario = Scenario {
            traffic: traffic(built.compiled.rom.evict),
            preparation: None,
            pattern: Pattern::Spread,
            lines: 2 * built.shape.memory_lines,
            memory: 1,
            delay: 0,
            max_active: 16,
        };
        let rate = rate(&setup, &scenario).expect("run without mismatch");
        Some(rate.lines as f64 / rate.cycles as f64)
    };
    let (Some(engine), Some(device)) = (
        rate(Endpoint::Invalidation, |_| Traffic::Engine),
        rate(Endpoint::None, Traffic::Local),
    ) else {
        return;
    };
    assert!(engine >= 0.95 * device, "{engine} {device} lines a cycle");
}

/// The wiring example of docs/integration.md.
#[test]
fn board_example_elaborates() {
    if !require("verilator") {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let package = compile_shipped("eci.coh").package;
    let board = include_str!("../../../../hardware/example/board.sv");
    let board_files = [("eci_pkg.sv", package.as_str()), ("board.sv", board)];
    let sources = || HOME.iter().chain(ENDPOINTS);
    for (name, text) in sources().chain(&board_files) {
        std::fs::write(folder.path().join(name), text).expect("writable file");
    }
    let is_module = |name: &&str| *name != "home_pkg.sv";
    let lint = |parameter: &str| {
        let output = Command::new("verilator")
            .args([
                "--lint-only",
                "-Wall",
                "--assert",
                "--top-module",
                "board",
                parameter,
            ])
            .args(["home_pkg.sv", "eci_pkg.sv"])
            .args(sources().map(|(name, _)| *name).filter(is_module))
            .arg("board.sv")
            .current_dir(folder.path())
            .output()
            .expect("running Verilator");
        let output_text = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.success(), output_text)
    };
    assert_eq!(lint("-GUnits=32"), (true, String::new()));
    let (fits, output_text) = lint("-GMemoryLines=100");
    assert!(
        !fits && output_text.contains("Lines must be a power of two"),
        "{output_text}"
    );
}

/// The table of docs/integration.md has a row for each integer parameter of `home.sv`, with its default.
#[test]
fn guide_documents_every_home_parameter() {
    let guide = include_str!("../../../../docs/integration.md");
    let home = cohkit_rtl::proof::rtl_source("home.sv");
    let sizes: Vec<(&str, &str)> = home
        .lines()
        .filter_map(|line| line.trim().strip_prefix("parameter int unsigned"))
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.trim(), value.trim().split([',', ' ']).next()))
        .filter_map(|(name, value)| Some((name, value?)))
        .collect();
    assert_eq!(sizes.len(), 18, "{sizes:?}");
    let row = |name: &str| {
        let quoted = format!("`{name}`");
        let names_parameter = |line: &&str| {
            line.split('|')
                .nth(1)
                .is_some_and(|cell| cell.contains(&quoted))
        };
        guide.lines().find(names_parameter)
    };
    for (name, value) in sizes {
        let row = row(name).unwrap_or_else(|| panic!("{name} has no row"));
        let cells: Vec<Vec<&str>> = row
            .split('|')
            .skip(1)
            .take(2)
            .map(|cell| {
                cell.split(',')
                    .map(|word| word.trim().trim_matches('`'))
                    .collect()
            })
            .collect();
        let column = cells[0].iter().position(|other| *other == name);
        assert_eq!(
            column.and_then(|column| cells[1].get(column)),
            Some(&value),
            "{row}"
        );
    }
}

/// Each call returns the result of the procedure, and the CPU no longer holds the arguments.
#[test]
fn calls_over_two_lines_give_their_results() {
    let Some(built) = build_endpoint(Endpoint::Rpc, "eci.coh") else {
        return;
    };
    let mut setup = built.setup();
    setup.graph = None;
    for seed in 0..50 {
        let run = run(seed, 4);
        let cycles = setup.call_procedure(run, 10);
        cycles.unwrap_or_else(|failed| panic!("{run:?}: {failed:#?}"));
    }
}
