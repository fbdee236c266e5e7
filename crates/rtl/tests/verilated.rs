//! Machines whose home is the Verilated RTL: races, real data, the device's operations, and rows of the ROM that are wrong.
//!
//! These tests build the RTL with Verilator. Where there is none they say so and do nothing.

use cohkit_protocol::controller::Access;
use cohkit_protocol::protocol::Protocol;
use cohkit_protocol::text;
use cohkit_rtl::lockstep::build::{build, BuildError, Shape};
use cohkit_rtl::print::{package, Origin};
use cohkit_rtl::rom::{Effect, Memory, Rom};
use cohkit_rtl::verilated::Verilated;
use cohkit_sim::agents::device::DeviceWorkload;
use cohkit_sim::components::traffic::{Pattern, Workload};
use cohkit_sim::explain::FailureKind;
use cohkit_sim::oracle::Level;
use cohkit_sim::platform::Platform;
use cohkit_sim::simulation::{run, MakeHome, RunError, Setup, Simulation};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const ACCESSES: u64 = 600;
const OPERATIONS: u64 = 60;

/// The protocol, the ROM of its home, and the library; `None` where there is no Verilator.
fn built() -> Option<(Protocol, Rom, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("two folders up");
    let text = std::fs::read_to_string(root.join("protocols/eci.coh")).expect("the text is there");
    let protocol = text::parse(&text).expect("the text is right");
    let home = cohkit_sim::simulation::home(&protocol, 1).expect("there is a home");
    let rom = Rom::new(&protocol, &home).expect("it fits");
    // As the command prints it, so that what one has built the other finds.
    let origin = Origin {
        file: "eci.coh",
        text: &text,
        command: "cohkit rtl emit eci.coh",
        version: env!("CARGO_PKG_VERSION"),
    };
    let package = package(&protocol, &rom, &origin);
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("lockstep");
    match build(&cache, "eci", &rom, &package, Shape::default(), false) {
        Ok(library) => Some((protocol, rom, library)),
        Err(BuildError::Missing(what)) => {
            eprintln!("skipped: {what}");
            None
        }
        Err(error) => panic!("{error:?}"),
    }
}

/// Makes homes with the ROM's image in a file of this folder; one word can be another than it should be.
fn maker(rom: &Rom, library: &Path, folder: &Path, spoilt: Option<(usize, u64)>) -> MakeHome {
    let mut image = String::new();
    for (state, event) in rom.used() {
        let address = rom.address(state, event);
        let right = rom.word(rom.row(state, event));
        let word = spoilt.filter(|spoilt| spoilt.0 == address);
        let word = word.map_or(right, |spoilt| spoilt.1);
        writeln!(image, "@{address:x} {word:x}").expect("it is a string");
    }
    let file = folder.join("eci.mem");
    std::fs::write(&file, image).expect("the folder can be written");
    let (library, rom) = (library.to_path_buf(), rom.clone());
    Arc::new(move || {
        let home = Verilated::open(&library, &file, rom.clone(), 128)?;
        Ok(Box::new(home))
    })
}

/// A short run that makes races likely, with all kinds of accesses and the device's operations.
fn torture(protocol: &Protocol, home: &MakeHome, seed: u64) -> Setup {
    let kinds = [
        (Access::Load, 8),
        (Access::Store, 8),
        (Access::Evict, 2),
        (Access::Demote, 1),
        (Access::Clean, 1),
        (Access::ReadOnce, 2),
        (Access::WriteLine, 1),
        (Access::WritePartial, 1),
    ];
    let lines = 1 + (seed % 7) as u32;
    let mut workload = Workload::pass(Pattern::Random, Access::Load, lines, 2, 3);
    workload.mix = kinds.to_vec();
    workload.accesses = ACCESSES;
    let platform = Platform::torture(1);
    let mut setup = Setup::new(protocol.clone(), platform, workload).expect("there is a home");
    setup.device = DeviceWorkload {
        operations: OPERATIONS,
        lines,
        pause: 300_000,
        seed,
    };
    setup.clocked = Some(home.clone());
    setup.seed = seed;
    setup.oracle = Level::Bytes;
    setup
}

#[test]
fn the_home_in_hardware_keeps_the_data_of_a_machine() {
    let Some((protocol, rom, library)) = built() else {
        return;
    };
    let folder = tempfile::tempdir().expect("there is a place");
    let home = maker(&rom, &library, folder.path(), None);
    let mut rules = std::collections::BTreeSet::new();
    for seed in 0..30 {
        let setup = torture(&protocol, &home, seed);
        let mut simulation = Simulation::new(&setup, None).expect("it makes sense");
        if let Err(failure) = simulation.run() {
            panic!("seed {seed}: {failure}");
        }
        let statistics = simulation.statistics();
        let value = |name: &str| statistics.get(name).expect("a statistic");
        assert_eq!(
            value("accesses") + value("accesses_skipped"),
            ACCESSES as f64,
            "seed {seed}"
        );
        let told = value("locals_acknowledged") + value("locals_refused");
        assert_eq!(told, OPERATIONS as f64, "seed {seed}");
        rules.extend(simulation.executed().1);
    }
    // The home's rules, as the simulator counts them.
    assert!(rules.len() > 200, "{}", rules.len());
}

/// The same run again, to the byte.
#[test]
fn runs_with_hardware_can_be_repeated() {
    let Some((protocol, rom, library)) = built() else {
        return;
    };
    let folder = tempfile::tempdir().expect("there is a place");
    let home = maker(&rom, &library, folder.path(), None);
    let setup = torture(&protocol, &home, 5);
    let values = || run(&setup).expect("it runs").values;
    assert_eq!(format!("{:?}", values()), format!("{:?}", values()));
}

/// Rows that do something else than the controller are told by line and state, whatever it is that is wrong.
#[test]
fn a_wrong_row_is_found_out() {
    let Some((protocol, rom, library)) = built() else {
        return;
    };
    let folder = tempfile::tempdir().expect("there is a place");
    let read = rom.event("ReadShared").expect("a message of ECI");
    let row = rom.row(0, read);
    assert_eq!((row.effect, row.memory), (Effect::Take, Memory::Read));
    for spoilt in [
        cohkit_rtl::rom::Row {
            next: row.next + 1,
            ..row
        },
        cohkit_rtl::rom::Row {
            memory: Memory::None,
            ..row
        },
        cohkit_rtl::rom::Row {
            effect: Effect::Leave,
            ..row
        },
        cohkit_rtl::rom::Row {
            grant: Some(0),
            ..row
        },
        cohkit_rtl::rom::Row {
            acknowledge: true,
            ..row
        },
    ] {
        let word = (rom.address(0, read), rom.word(spoilt));
        let home = maker(&rom, &library, folder.path(), Some(word));
        let failed = run(&torture(&protocol, &home, 1));
        let Err(RunError::Failure(failure)) = failed else {
            panic!("{spoilt:?} was not noticed: {failed:?}");
        };
        assert_eq!(failure.kind, FailureKind::Hardware, "{spoilt:?}: {failure}");
    }
}
