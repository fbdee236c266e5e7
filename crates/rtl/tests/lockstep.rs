//! Does the RTL do what the controllers do, and would it be noticed if it did not?
//!
//! These tests build the RTL with Verilator. Where there is none they say so and do nothing.

use cohkit_protocol::construct::construct;
use cohkit_protocol::controller::Controller;
use cohkit_protocol::protocol::Protocol;
use cohkit_protocol::text;
use cohkit_rtl::lockstep::bench::Run;
use cohkit_rtl::lockstep::build::{build, verilator, BuildError, Shape, SOURCES};
use cohkit_rtl::lockstep::campaign::{Failed, Setup};
use cohkit_rtl::lockstep::model::{Inputs, Model, Outputs};
use cohkit_rtl::print::{package, Origin};
use cohkit_rtl::rom::Rom;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// A protocol, its home for one remote, that as a ROM, and the package.
struct Compiled {
    protocol: Protocol,
    home: Controller,
    rom: Rom,
    package: String,
}

fn eci() -> Compiled {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("two folders up");
    let text = std::fs::read_to_string(root.join("protocols/eci.coh")).expect("the text is there");
    let protocol = text::parse(&text).expect("the text is right");
    let home = construct(&protocol).expect("there is a home").flat(true);
    let rom = Rom::new(&protocol, &home).expect("it fits");
    // As the command prints it, so that what one has built the other finds.
    let origin = Origin {
        file: "eci.coh",
        text: &text,
        command: "cohkit rtl emit eci.coh",
        version: env!("CARGO_PKG_VERSION"),
    };
    let package = package(&protocol, &rom, &origin);
    Compiled {
        protocol,
        home,
        rom,
        package,
    }
}

fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("lockstep")
}

/// The library of the RTL, built once for all tests; `None` where there is no Verilator.
fn library(compiled: &Compiled) -> Option<PathBuf> {
    static LIBRARY: OnceLock<Option<PathBuf>> = OnceLock::new();
    let Compiled {
        protocol,
        rom,
        package,
        ..
    } = compiled;
    let built = LIBRARY.get_or_init(|| {
        match build(
            &cache(),
            &protocol.name,
            rom,
            package,
            Shape::default(),
            false,
        ) {
            Ok(library) => Some(library),
            Err(BuildError::Missing(what)) => {
                eprintln!("skipped: {what}");
                None
            }
            Err(error) => panic!("{error:?}"),
        }
    });
    built.clone()
}

#[test]
fn messages_and_bytes_are_those_of_the_controllers() {
    let compiled = eci();
    let Some(library) = library(&compiled) else {
        return;
    };
    let Compiled {
        protocol,
        home,
        rom,
        ..
    } = &compiled;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let setup = Setup {
        protocol,
        home,
        rom,
        library: &library,
        shape: Shape::default(),
        folder: folder.path(),
    };
    let (mut messages, mut evictions) = (0, 0);
    let mut first = vec![vec![None; rom.events.len()]; rom.states.len()];
    for seed in 0..100 {
        let run = Run::new(seed, 2000);
        let report = setup
            .run(run, None)
            .unwrap_or_else(|failed| panic!("{run:?}: {failed:#?}"));
        messages += report.messages;
        evictions += report.evictions;
        for (state, event) in rom
            .used()
            .filter(|&(state, event)| report.covered[state][event])
        {
            first[state][event].get_or_insert(run);
        }
    }
    assert!(messages >= 200_000, "{messages} messages");
    assert!(evictions >= 1000, "{evictions} evictions");
    let used: Vec<_> = rom
        .used()
        .filter_map(|(state, event)| Some((state, event, first[state][event]?)))
        .collect();
    assert!(
        used.len() * 10 >= rom.used().count() * 9,
        "{} rows used",
        used.len()
    );

    // Every 40th row spoilt, in the run that used it first, or in one after it should it have lacked something there.
    for &(state, event, run) in used.iter().step_by(40) {
        let noticed = (run.seed..run.seed + 20).any(|seed| {
            match setup.run_spoilt(Run::new(seed, 2000), state, event) {
                Ok(_) => false,
                Err(Failed::Mismatch(_)) => true,
                Err(Failed::Tool(what)) => panic!("{what}"),
            }
        });
        assert!(
            noticed,
            "{} on {}",
            rom.states[state], rom.events[event].name
        );
    }
}

#[test]
fn runs_repeat_themselves() {
    let compiled = eci();
    let Some(library) = library(&compiled) else {
        return;
    };
    let Compiled {
        protocol,
        home,
        rom,
        ..
    } = &compiled;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let setup = Setup {
        protocol,
        home,
        rom,
        library: &library,
        shape: Shape::default(),
        folder: folder.path(),
    };
    let cycles = || {
        setup
            .run(Run::new(6, 1000), None)
            .expect("no mismatch")
            .cycles
    };
    assert_eq!(cycles(), cycles());
}

#[test]
fn verilator_has_nothing_to_say_of_the_rtl() {
    if let Err(BuildError::Missing(what)) = verilator() {
        eprintln!("skipped: {what}");
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let compiled = eci();
    std::fs::write(folder.path().join("eci_pkg.sv"), &compiled.package).expect("it can be written");
    let mut files = vec!["home_pkg.sv", "eci_pkg.sv"];
    for (name, text) in SOURCES {
        std::fs::write(folder.path().join(name), text).expect("it can be written");
        assert!(!text.contains("lint_off"), "{name} waives a warning");
        if *name != "home_pkg.sv" {
            files.push(name);
        }
    }
    // One unit, a few, many with a directory as large as the published one's, and odd numbers of places.
    for parameters in [
        [
            "-GUnits=1",
            "-GSetWidth=1",
            "-GWays=4",
            "-GReads=1",
            "-GLocals=1",
        ],
        [
            "-GUnits=4",
            "-GSetWidth=3",
            "-GWays=8",
            "-GReads=4",
            "-GLocals=3",
        ],
        [
            "-GUnits=16",
            "-GSetWidth=8",
            "-GWays=16",
            "-GReads=2",
            "-GLocals=2",
        ],
        [
            "-GUnits=2",
            "-GReads=3",
            "-GWrites=2",
            "-GWaiting=3",
            "-GStoreSlots=4",
        ],
    ] {
        let output = Command::new("verilator")
            .args([
                "--lint-only",
                "-Wall",
                "--assert",
                "--top-module",
                "lockstep",
                "-DPROTOCOL_PKG=eci_pkg",
            ])
            .args(parameters)
            .args(&files)
            .current_dir(folder.path())
            .output()
            .expect("verilator starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && said.is_empty(),
            "{parameters:?}:\n{said}"
        );
    }
}

#[test]
fn a_parameter_out_of_range_is_named() {
    if verilator().is_err() {
        eprintln!("skipped: no Verilator");
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("eci_pkg.sv"), eci().package).expect("it can be written");
    let mut files = vec!["home_pkg.sv", "eci_pkg.sv"];
    for (name, text) in SOURCES {
        std::fs::write(folder.path().join(name), text).expect("it can be written");
        if *name != "home_pkg.sv" {
            files.push(name);
        }
    }
    for (parameters, says) in [
        (["-GUnits=3", "-GWays=4"], "Units must be a power of two"),
        (
            ["-GUnits=2", "-GWays=6"],
            "Ways and WaysPerStep must be powers of two",
        ),
        (
            ["-GWaiting=4", "-GWays=4"],
            "Waiting must be at least 1 and less than Ways",
        ),
        (
            ["-GWaiting=3", "-GStoreSlots=2"],
            "StoreSlots must be at least Waiting",
        ),
        (
            ["-GTagWidth=40", "-GWays=4"],
            "beyond the header's or AxiAddrWidth's",
        ),
    ] {
        let output = Command::new("verilator")
            .args([
                "--lint-only",
                "--top-module",
                "lockstep",
                "-DPROTOCOL_PKG=eci_pkg",
            ])
            .args(parameters)
            .args(&files)
            .current_dir(folder.path())
            .output()
            .expect("verilator starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && said.contains(says),
            "{parameters:?}:\n{said}"
        );
    }
}

/// Cycles from a request's header entering an idle home to its answer's header leaving, with memory that answers
/// in the cycle after it was asked.
#[test]
fn a_read_of_a_line_nobody_holds_takes_at_most_20_cycles() {
    let compiled = eci();
    let Some(library) = library(&compiled) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("eci.mem");
    let row = |(state, event)| {
        let rom = &compiled.rom;
        format!(
            "@{:x} {:x}\n",
            rom.address(state, event),
            rom.word(rom.row(state, event))
        )
    };
    std::fs::write(&file, compiled.rom.used().map(row).collect::<String>())
        .expect("it can be written");
    let mut model = Model::open(&library, &file).expect("the library was built");
    let (mut inputs, mut outputs) = (Inputs::default(), Outputs::default());
    inputs.tx_ready = [3, 3];
    inputs.ar_ready = [1, 1];
    inputs.reset = 1;
    model
        .step(&inputs, &mut outputs)
        .expect("no assertion fails");
    inputs.reset = 0;
    for _ in 0..50 {
        model
            .step(&inputs, &mut outputs)
            .expect("no assertion fails");
    }
    let request = compiled.rom.event("ReadShared").expect("it is a request") as u64;
    let mut beats = 0..0;
    let mut left = None;
    for cycle in 0..100 {
        inputs.rx_valid[0] = u64::from(cycle == 0);
        inputs.rx_header[0][0] = 0xffff << 48 | request << 40;
        let beat = beats.next();
        inputs.r_valid[0] = u64::from(beat.is_some());
        inputs.r_last[0] = u64::from(beat == Some(1));
        model
            .step(&inputs, &mut outputs)
            .expect("no assertion fails");
        if outputs.ar_valid[0] != 0 {
            inputs.r_id[0] = outputs.ar_id[0];
            beats = 0..2;
        }
        if outputs.tx_valid[0] != 0 && left.is_none() {
            left = Some(cycle);
        }
    }
    let left: u64 = left.expect("the request is answered");
    // The directory of this home has one group of ways; one of 16 ways has four, compared one after the other.
    assert_eq!(left, 17);
    assert!(left + 3 <= 20);
}
