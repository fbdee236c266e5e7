//! Machines whose home is the Verilated RTL: races, real data, the device's operations, and mutated ROM rows.
//!
//! These tests build the RTL with Verilator. Without it, they report that and do nothing.

use crate::homes;
use cohkit_testing::setups;

use cohkit_protocol::protocol::Permission;
use cohkit_rtl::lockstep::shapes::Shape;
use cohkit_rtl::rom::{Effect, Memory, PermissionBounds, Rom, Row};
use cohkit_rtl::sources::SOURCES;
use cohkit_rtl::verilated::Verilated;
use cohkit_sim::explain::FailureKind;
use cohkit_sim::simulation::{run, ClockedHomeFactory, RunError, Setup, Simulation};
use homes::{build_home, compile_shipped, Built};
use setups::{torture_of, ACCESSES, DEVICE_OPERATIONS};
use std::fmt::Write;
use std::sync::Arc;

/// Builds the home of a shipped protocol with the smallest shape.
fn home_of(file: &str) -> Option<Built> {
    build_home(compile_shipped(file), SOURCES, Shape::default())
}

/// Returns a constructor of homes with the ROM's image, optionally with one replaced word.
fn home_factory(built: &Built, mutation: Option<(usize, u64)>) -> ClockedHomeFactory {
    let (protocol, rom) = (&built.compiled.protocol, built.compiled.rom.clone());
    let mut image = String::new();
    for (state, event) in rom.used() {
        let address = rom.address(state, event);
        let original = rom.word(rom.row(state, event));
        let word = mutation.filter(|mutation| mutation.0 == address);
        let word = word.map_or(original, |mutation| mutation.1);
        writeln!(image, "@{address:x} {word:x}").expect("writing to a string succeeds");
    }
    let file = built.folder.path().join("image.mem");
    std::fs::write(&file, image).expect("writable folder");
    let (library, line_bytes) = (built.library.clone(), protocol.line_bytes);
    Arc::new(move || {
        let home = Verilated::open(&library, &file, rom.clone(), line_bytes, 0)?;
        Ok(Box::new(home))
    })
}

/// A short run that makes races likely, as for the simulated home.
fn torture(built: &Built, home: &ClockedHomeFactory, seed: u64) -> Setup {
    let compiled = &built.compiled;
    let mut setup = torture_of(compiled.protocol.clone(), compiled.home.clone(), 1, seed);
    setup.clocked = Some(home.clone());
    setup
}

/// Random accesses and device operations on a machine with the home in RTL: none is lost, data is checked,
/// and many rules of the home are used.
#[test]
fn hardware_home_keeps_the_data_of_a_machine() {
    for (file, seeds, min_rules) in [("eci.coh", 12, 200), ("back-invalidate.coh", 12, 50)] {
        let Some(built) = home_of(file) else {
            return;
        };
        let home = home_factory(&built, None);
        let mut rules = std::collections::BTreeSet::new();
        for seed in 0..seeds {
            let setup = torture(&built, &home, seed);
            let mut simulation = Simulation::new(&setup, None).expect("valid setup");
            if let Err(failure) = simulation.run() {
                panic!("{file}, seed {seed}: {failure}");
            }
            let statistics = simulation.statistics();
            let value = |name: &str| statistics.get(name).expect("known statistic");
            let performed = value("accesses") + value("accesses_skipped");
            assert_eq!(performed, ACCESSES as f64, "{file}, seed {seed}");
            let answered =
                value("local_operations_acknowledged") + value("local_operations_rejected");
            assert_eq!(answered, DEVICE_OPERATIONS as f64, "{file}, seed {seed}");
            rules.extend(simulation.executed().1);
        }
        assert!(rules.len() > min_rules, "{file}: {}", rules.len());
    }
}

/// A repeated run gives identical results, to the byte.
#[test]
fn runs_with_hardware_can_be_repeated() {
    let Some(built) = home_of("eci.coh") else {
        return;
    };
    let setup = torture(&built, &home_factory(&built, None), 5);
    let values = || run(&setup).expect("run without violation").values;
    assert_eq!(format!("{:?}", values()), format!("{:?}", values()));
}

/// Rows that deviate from the controller are reported with line and state, whatever the deviation is.
#[test]
fn wrong_row_is_detected() {
    let Some(built) = home_of("eci.coh") else {
        return;
    };
    let rom: &Rom = &built.compiled.rom;
    let read = rom.event("ReadShared").expect("a message of ECI");
    let row = rom.row(0, read);
    assert_eq!((row.effect, row.memory), (Effect::Take, Memory::Read));
    // The listener for permission changes receives the state after memory's answer.
    let data = rom.memory_data();
    let granted = rom.row(row.next.into(), data);
    assert_ne!(
        granted.permission_bounds.old_permission,
        granted.permission_bounds.new_permission
    );
    let [silent, other] =
        [granted.permission_bounds.old_permission, Permission::Write].map(|new_permission| Row {
            permission_bounds: PermissionBounds {
                new_permission,
                ..granted.permission_bounds
            },
            ..granted
        });
    let known_mutations = [silent, other].map(|mutated| (usize::from(row.next), data, mutated));
    #[rustfmt::skip]
    let mutated = [
        Row { next: row.next + 1, ..row },
        Row { memory: Memory::None, ..row },
        Row { effect: Effect::Stall, ..row },
        Row { grant: Some(0), ..row },
        Row { acknowledge: true, ..row },
    ];
    let mutated = mutated.map(|mutated| (0, read, mutated));
    for (state, event, mutated) in mutated.into_iter().chain(known_mutations) {
        let word = (rom.address(state, event), rom.word(mutated));
        let failed = run(&torture(&built, &home_factory(&built, Some(word)), 1));
        let Err(RunError::Failure(failure)) = failed else {
            panic!("{mutated:?} was not noticed: {failed:?}");
        };
        assert_eq!(
            failure.kind,
            FailureKind::Hardware,
            "{mutated:?}: {failure}"
        );
    }
}
