//! The detector of races: it finds each of ten seeded faults of cache management at the lines of both programs, and nothing in
//! programs that have none; the programs of the other tests are looked at, too.

use crate::{compile, require, root, run_watched};
use cohkit_nearmemory::{Evictions, Happened, Platform, Who, Wrong};
use cohkit_riscv::elf;

/// What is told of a program, each with both places.
type Told<'a> = &'a [(Wrong, &'a str, &'a str)];

const HOST: &str = "crates/nearmemory/tests/programs/forgets-host.c";
const CHANNEL: &str = "crates/nearmemory/tests/programs/forgets.c";

/// What is found of a fault: what it is, and the two lines in their sources.
fn found(fault: u32, evictions: Option<Evictions>) -> Vec<(Wrong, String, String)> {
    let definition = format!("-DFORGETS={fault}");
    let host = compile("host", HOST, &[&definition]);
    let channel = compile("channel", CHANNEL, &[&definition]);
    let ran = run_watched(
        &Platform::enzian(),
        &host,
        "",
        &[("forgets", &channel)],
        evictions,
    );
    assert_eq!(ran.happened.last(), Some(&Happened::Exit(0)), "{fault}");
    let place = |site: &cohkit_nearmemory::Site| {
        let (program, folder) = match site.who {
            Who::Host(_) => (&host, "crates/nearmemory/tests/programs"),
            Who::Mcc(_) => (&channel, "nearmemory"),
        };
        let (file, line) = elf::line(program, site.pc).expect("it has lines");
        let folder = if file.starts_with("forgets") {
            "crates/nearmemory/tests/programs"
        } else {
            folder
        };
        let text = std::fs::read_to_string(root().join(folder).join(&file)).expect("a source");
        text.lines()
            .nth(line as usize - 1)
            .expect("a line")
            .trim()
            .to_string()
    };
    let races = ran.happened.iter().filter_map(|happened| match happened {
        Happened::Race(race) => Some((race.wrong, place(&race.second), place(&race.first))),
        _ => None,
    });
    let mut races: Vec<_> = races.collect();
    races.sort();
    races.dedup();
    races
}

#[test]
fn each_seeded_fault_of_cache_management_is_found_at_its_lines() {
    if !require::require("riscv-gcc") {
        return;
    }
    assert_eq!(found(0, None), [], "a program without a fault");
    let evictions = Some(Evictions { every: 7, seed: 1 });
    assert_eq!(found(0, evictions), [], "whatever is evicted");
    let store = "nm_scratchpad_registers[8] = line;";
    let fetch = "nm_scratchpad_registers[7] = line;";
    let stores = "far[i] = i;  // stores";
    let (loads, again) = ("sum += far[i];  // loads", "sum += far[i];  // loads again");
    use Wrong::*;
    let (early, late) = (
        "far[3] = 7;  // stores too early",
        "far[3] = 7;  // stores in what is stale",
    );
    // Most show more than one thing, and nothing else does.
    let faults: [(u32, Told); 10] = [
        (
            1,
            &[(StaleFetch, fetch, stores), (BothWrite, store, stores)],
        ),
        (2, &[(StaleFetch, fetch, stores)]),
        (
            3,
            &[(StaleFetch, fetch, stores), (BothWrite, store, stores)],
        ),
        (4, &[(StaleLoad, loads, store)]),
        (5, &[(StaleLoad, loads, store)]),
        (6, &[(StaleLoad, loads, store)]),
        (7, &[(StaleLoad, loads, store)]),
        (8, &[(Overwritten, early, store), (BothWrite, store, early)]),
        (9, &[(Overwritten, late, store)]),
        (10, &[(NotStored, loads, store), (NotStored, again, store)]),
    ];
    for (fault, expected) in faults {
        let found = found(fault, None);
        let found: Vec<_> = (found.iter())
            .map(|(wrong, second, first)| (*wrong, second.as_str(), first.as_str()))
            .collect();
        assert_eq!(found, expected, "{fault}");
    }
}

#[test]
fn nothing_is_told_of_programs_that_ship() {
    if !require::require("riscv-gcc") {
        return;
    }
    let host = compile("host", "nearmemory/programs/measure-host.c", &[]);
    let measure = compile("channel", "nearmemory/programs/measure.c", &[]);
    let ran = run_watched(
        &Platform::enzian(),
        &host,
        "",
        &[("measure", &measure)],
        None,
    );
    assert_eq!(ran.happened, [Happened::Exit(0)], "{}", ran.text);
}
