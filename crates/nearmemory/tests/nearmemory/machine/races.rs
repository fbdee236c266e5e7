//! The race detector finds each seeded fault of cache management at the lines of both programs, and reports nothing for
//! correct programs. The programs of the other tests are checked as well.

use super::{compile, root, run_as, run_watched, RunMode, RunResult};
use cohkit_nearmemory::{CoreId, Evictions, Platform, RaceKind, RunOutcome};
use cohkit_riscv::elf;
use cohkit_testing::require;
use std::path::Path;

/// Expected reports: the kind, and the source lines of the later and the earlier access.
type ExpectedRaces<'a> = &'a [(RaceKind, &'a str, &'a str)];

/// Programs with a correct hand-over of lines in both directions. `FORGETS` omits or misplaces one step of it.
const HOST: &str = "crates/nearmemory/tests/programs/forgets-host.c";
const CHANNEL: &str = "crates/nearmemory/tests/programs/forgets.c";

/// Runs two programs of the same name, compiled with these definitions, and returns the races found.
fn races_in(name: &str, definitions: &[&str]) -> Vec<(RaceKind, String, String)> {
    let programs = "crates/nearmemory/tests/programs";
    let host = compile("host", &format!("{programs}/{name}-host.c"), definitions);
    let channel = compile("channel", &format!("{programs}/{name}.c"), definitions);
    let channels: [(&str, &[u8]); 1] = [(name, &channel)];
    let result = run_watched(&Platform::enzian(), &host, "", &channels, None);
    let end = Some(&RunOutcome::Exit(0));
    assert_eq!(result.outcomes.last(), end, "{name} {definitions:?}");
    races_by_line(&result, &host, &channel, &root().join(programs))
}

/// Runs a host's program without channel programs, compiled with these definitions, and returns the races found.
#[track_caller]
pub(super) fn host_races(
    platform: &Platform,
    name: &str,
    definitions: &[&str],
) -> Vec<(RaceKind, String, String)> {
    let programs = "crates/nearmemory/tests/programs";
    let host = compile("host", &format!("{programs}/{name}-host.c"), definitions);
    let result = run_watched(platform, &host, "", &[], None);
    let end = Some(&RunOutcome::Exit(0));
    assert_eq!(result.outcomes.last(), end, "{name} {definitions:?}");
    races_by_line(&result, &host, &[], &root().join(programs))
}

/// Asserts that exactly the expected races are found.
#[track_caller]
fn assert_races(name: &str, definitions: &[&str], expected: ExpectedRaces) {
    let races = races_in(name, definitions);
    let races: Vec<_> = (races.iter())
        .map(|(kind, second, first)| (*kind, second.as_str(), first.as_str()))
        .collect();
    assert_eq!(races, expected, "{name} {definitions:?}");
}

/// Stores of the same line by two cores, unordered, or ordered by a FIFO (`WAITS`).
#[test]
fn two_cores_that_store_one_line_race_unless_one_waits() {
    if !require::require("riscv-gcc") {
        return;
    }
    let stores = "nm_store(0, far, 1);  // stores";
    assert_races(
        "coreww",
        &[],
        &[(RaceKind::UnorderedStores, stores, stores)],
    );
    assert_races("coreww", &["-DWAITS"], &[]);
}

/// A core uses a line that the host may still be writing, or first checks the word that is written last (`TAG`).
#[test]
fn half_written_lines_are_found_without_an_eviction() {
    if !require::require("riscv-gcc") {
        return;
    }
    let loads = "for (int i = 0; i < 4; i++) sum += line[i];  // loads";
    let stores = "nm_write_line(0, 0, words);  // stores";
    assert_races("half", &[], &[(RaceKind::HalfWritten, loads, stores)]);
    assert_races("half", &["-DTAG"], &[]);
}

/// A host that loads after the release of its held request observes the core's stores from before the release. With
/// `EARLY`, the core releases before it stores.
#[test]
fn release_orders_later_host_loads() {
    if !require::require("riscv-gcc") {
        return;
    }
    let loads = r#"printf("%lu\n", (unsigned long)far[0]);  // loads"#;
    let stores = "nm_store(1, far, 1);  // stores";
    for definitions in [&[][..], &["-DACKNOWLEDGES"]] {
        assert_races("held", definitions, &[]);
        let early = [definitions, &["-DEARLY"]].concat();
        let races = races_in("held", &early);
        // Either access may occur first.
        let [(kind, second, first)] = &races[..] else {
            panic!("{early:?}: {races:?}");
        };
        let mut lines = [second.as_str(), first];
        lines.sort();
        assert_eq!((*kind, lines), (RaceKind::UnorderedRead, [stores, loads]));
    }
}

/// Hand-overs of a line between programs, by number: each is correct as written, and a race if one step is missing or
/// too early.
#[test]
fn each_handover_races_if_a_step_is_missing() {
    if !require::require("riscv-gcc") {
        return;
    }
    use RaceKind::{NotStored, UnorderedRead};
    let (stores, fetches) = (
        "nm_store(0, to, 1);  // stores",
        "nm_fetch(1, far, 1);  // fetches",
    );
    let loads = "uint64_t word = far[0];  // host loads";
    let host_stores = "far[0] = word;  // host stores";
    let handovers = [
        ("a chain of FIFOs", (UnorderedRead, [stores, fetches])),
        (
            "a flag in the host's own memory",
            (NotStored, [stores, loads]),
        ),
        ("an answer by a FIFO", (UnorderedRead, [stores, fetches])),
        ("a stamp", (UnorderedRead, [stores, loads])),
        ("the end of a program", (UnorderedRead, [stores, fetches])),
        (
            "an answer by registers",
            (UnorderedRead, [host_stores, fetches]),
        ),
    ];
    for (number, (name, (expected, mut expected_lines))) in (1..).zip(handovers) {
        let handover = format!("-DHANDOVER={number}");
        assert_races("handovers", &[&handover], &[]);
        let races = races_in("handovers", &[&handover, "-DRACES"]);
        // Either access may occur first.
        let [(kind, second, first)] = &races[..] else {
            panic!("{name}: {races:?}");
        };
        let mut lines = [second.as_str(), first];
        lines.sort_unstable();
        expected_lines.sort_unstable();
        assert_eq!((*kind, lines), (expected, expected_lines), "{name}");
    }
}

/// Runs the programs with a seeded fault and returns the races with their two source lines.
fn races_with_fault(fault: u32, evictions: Option<Evictions>) -> Vec<(RaceKind, String, String)> {
    let definition = format!("-DFORGETS={fault}");
    let host = compile("host", HOST, &[&definition]);
    let channel = compile("channel", CHANNEL, &[&definition]);
    let result = run_watched(
        &Platform::enzian(),
        &host,
        "",
        &[("forgets", &channel)],
        evictions,
    );
    assert_eq!(
        result.outcomes.last(),
        Some(&RunOutcome::Exit(0)),
        "{fault}"
    );
    let source_folder = root().join("crates/nearmemory/tests/programs");
    races_by_line(&result, &host, &channel, &source_folder)
}

/// Returns the races of a run with the source lines of both locations. Locations within the library are attributed to
/// its caller; `own` is the folder of the programs' sources.
fn races_by_line(
    result: &RunResult,
    host: &[u8],
    channel: &[u8],
    source_folder: &Path,
) -> Vec<(RaceKind, String, String)> {
    let source_line = |site: &cohkit_nearmemory::Site| {
        let program = match site.core_id {
            CoreId::Host { .. } => host,
            CoreId::Mcc(_) => channel,
        };
        let library = root().join("nearmemory");
        let mut lines = elf::lines(program, site.pc).into_iter();
        let (file, line) =
            (lines.find(|(file, _)| !library.join(file).exists())).expect("the program has lines");
        let folders = [source_folder, &library.join("programs")];
        let mut paths = folders.iter().map(|folder| folder.join(&file));
        let path = paths.find(|path| path.exists()).expect("a source");
        let text = std::fs::read_to_string(path).expect("the file can be read");
        let line = text.lines().nth(line as usize - 1).expect("a line");
        line.trim().to_string()
    };
    let races = result.outcomes.iter().filter_map(|outcome| match outcome {
        RunOutcome::Race(race) => Some((
            race.kind,
            source_line(&race.second),
            source_line(&race.first),
        )),
        _ => None,
    });
    let mut races: Vec<_> = races.collect();
    races.sort();
    races.dedup();
    races
}

/// Each fault causes exactly the expected reports; the programs without a fault cause none.
#[test]
fn each_seeded_fault_of_cache_management_is_found_at_its_lines() {
    if !require::require("riscv-gcc") {
        return;
    }
    assert_eq!(races_with_fault(0, None), [], "a program without a fault");
    let evictions = Some(Evictions {
        mean_interval: 7,
        seed: 1,
    });
    assert_eq!(races_with_fault(0, evictions), [], "whatever is evicted");
    let store = "nm_store(0, far, PIECES);";
    let fetch = "if (fetches) nm_fetch(0, far, PIECES);";
    let stores = "far[i] = i;  // stores";
    let (loads, second_loads) = ("sum += far[i];  // loads", "sum += far[i];  // loads again");
    use RaceKind::*;
    let (early_store, stale_store) = (
        "far[3] = 7;  // stores too early",
        "far[3] = 7;  // stores in what is stale",
    );
    let doubles = "for (int i = 0; i < WORDS; i++) nm_words(0)[i] *= 2;  // doubles";
    let changes = "if (FORGETS == 12) nm_words(PIECES - 1)[15] = word;  // changes";
    // Most faults cause several reports; each report of a fault is listed.
    let faults: [(u32, ExpectedRaces); 14] = [
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
        (
            8,
            &[
                (Overwritten, early_store, store),
                (BothWrite, store, early_store),
                (UnorderedRead, fetch, early_store),
            ],
        ),
        (9, &[(Overwritten, stale_store, store)]),
        // The program reuses lines, which are fetched and doubled next time, without waiting for their stores to
        // complete.
        (
            10,
            &[
                (NotStored, loads, store),
                (NotStored, second_loads, store),
                (Reused, doubles, store),
                (Reused, fetch, store),
            ],
        ),
        (
            11,
            &[(NotFetched, doubles, fetch), (NotFetched, store, fetch)],
        ),
        (12, &[(Reused, changes, store)]),
        (
            13,
            &[(Overwritten, store, "far[5] = 5;  // stores between")],
        ),
        // As fault 13, but the core fetches lines that the host has stored.
        (14, &[]),
    ];
    for (fault, expected) in faults {
        let races = races_with_fault(fault, None);
        let races: Vec<_> = (races.iter())
            .map(|(kind, second, first)| (*kind, second.as_str(), first.as_str()))
            .collect();
        assert_eq!(races, expected, "{fault}");
    }
}

/// The program `measure` in both modes; other tests run the other shipped programs with the race detector.
#[test]
fn shipped_programs_have_no_races() {
    if !require::require("riscv-gcc") {
        return;
    }
    let host = compile("host", "nearmemory/programs/measure-host.c", &[]);
    let measure = compile("channel", "nearmemory/programs/measure.c", &[]);
    for mode in [RunMode::Watched, RunMode::FastInterpreter] {
        let channels: [(&str, &[u8]); 1] = [("measure", &measure)];
        let result = run_as(&Platform::enzian(), &host, "", &channels, None, mode);
        assert_eq!(result.outcomes, [RunOutcome::Exit(0)], "{}", result.text);
    }
}

/// Programs with a removed wait for their copy engine: their arguments, and the resulting kind of race with the source
/// line that comes too early.
const WAITS: &[(&str, &str, &str, RaceKind, &str)] = &[
    (
        "bulk",
        "65536",
        "    nm_await_fetches(nm_fetches_begun());\n    nm_store(0",
        RaceKind::NotFetched,
        "nm_store(0, to + copied * NM_LINE, count);",
    ),
    (
        "bulk",
        "65536",
        "    nm_await_fetches(current_fetch);\n",
        RaceKind::NotFetched,
        "nm_store(current_half * half_lines, to + copied * NM_LINE, count);",
    ),
    (
        "bulk",
        "65536",
        "      nm_await_stores(stores[other_half]);\n",
        RaceKind::Reused,
        "nm_fetch(other_half * half_lines, from + (copied + half_lines) * NM_LINE,",
    ),
    (
        "gups",
        "65536 300",
        "    nm_fetched(LINE, earlier_stamp);\n",
        RaceKind::NotFetched,
        "line[index % 16] ^= random;",
    ),
    (
        "gups",
        "65536 300",
        "    nm_stored(LINE, earlier_stamp);\n",
        RaceKind::Reused,
        "nm_fetch(LINE, far, 1);",
    ),
    (
        "rows",
        "24576 64",
        "  nm_await_fetches(table->last_fetch[buffer]);\n",
        RaceKind::NotFetched,
        "for (int j = 0; j < 8; j++, row += width / 4) balances[j] = *row;",
    ),
    (
        "rows",
        "65536 128 1000",
        "    nm_await_stores(stores[table.fetched % BUFFERS]);\n",
        RaceKind::Reused,
        "nm_fetch(buffer * BUFFER_LINES, table->far + table->fetched++ * BUFFER_LINES * NM_LINE, BUFFER_LINES);",
    ),
    (
        "pagerank",
        "2 128 1500 60 1 3 31 2",
        "    await_fetches(fetch += 4);\n",
        RaceKind::NotFetched,
        "for (int i = 0; i < 4; i++) loaded[i] = line[i * BLOCK + neighbour[i] % BLOCK];",
    ),
];

/// Removes one wait for the copy engine from a shipped program and runs it with the race detector.
#[test]
fn missing_copy_wait_is_reported_at_the_use() {
    if !require::require("riscv-gcc") {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    for &(program, arguments, wait, kind, use_line) in WAITS {
        let path = root().join(format!("nearmemory/programs/{program}.c"));
        let source = std::fs::read_to_string(path).expect("the file can be read");
        assert_eq!(source.matches(wait).count(), 1, "{wait}");
        let (_, rest) = wait
            .split_once(";\n")
            .expect("the wait ends with a semicolon");
        let changed = folder.path().join("changed.c");
        std::fs::write(&changed, source.replace(wait, rest)).expect("the file can be written");
        let host = compile(
            "host",
            &format!("nearmemory/programs/{program}-host.c"),
            &[],
        );
        let changed = changed.to_str().expect("a name");
        let channel = compile("channel", changed, &["-Wno-error"]);
        let result = run_watched(
            &Platform::enzian(),
            &host,
            arguments,
            &[(program, &channel)],
            None,
        );
        let races = races_by_line(&result, &host, &channel, folder.path());
        let is_expected = |(kind_found, second, _): &(RaceKind, String, String)| {
            *kind_found == kind && second == use_line
        };
        assert!(
            races.iter().any(is_expected),
            "{program}, {wait}: {races:?} {}",
            result.text
        );
    }
}
