//! The measuring programs: their results are correct under any evictions, in timed and functional mode. No race is
//! reported, and each program detects a fault in its near-memory part.

use super::{compile, root, run_as, RunMode, RunResult};
use cohkit_nearmemory::{Evictions, Platform, RunOutcome};
use cohkit_testing::require;

/// Programs with their arguments and the number of results that they print.
const PROGRAMS: &[(&str, &str, usize)] = &[
    ("bulk", "65536", 16),
    ("compute", "300", 2),
    ("gups", "65536 300", 5),
    ("pagerank", "2 128 1500 60 1 3 31 2", 17),
    ("pagerank", "0 256 1000 50 1 1 31 2", 17),
    ("pipes", "1 400", 4),
    ("pipes", "7 1000", 2),
    ("pipes", "64 4000 4", 1),
    ("pipes", "3 1000 4", 2),
    ("spawn", "3", 3),
    ("rows", "16384 8", 5),
    ("rows", "24576 64", 5),
    ("rows", "24576 128 1000", 6),
    ("rows", "24576 128 200", 6),
    ("uts", "1 3 4 4 0 0 29 10000", 10),
    ("uts", "0 0 0 30 190000 5 7 600", 10),
];

/// Compiles the host's part of a shipped program and runs it with this channel program.
fn run(
    program: &str,
    arguments: &str,
    channel: &[u8],
    evictions: Option<Evictions>,
    mode: RunMode,
) -> RunResult {
    let source = format!("nearmemory/programs/{program}-host.c");
    let host = compile("host", &source, &[]);
    run_host(&host, program, arguments, channel, evictions, mode)
}

/// Runs a host with four cores.
fn run_host(
    host: &[u8],
    program: &str,
    arguments: &str,
    channel: &[u8],
    evictions: Option<Evictions>,
    mode: RunMode,
) -> RunResult {
    let mut platform = Platform::enzian();
    platform.set("host.cores", "4").expect("a valid value");
    let channels = [(program, channel)];
    run_as(&platform, host, arguments, &channels, evictions, mode)
}

/// Each program of `nearmemory/programs`, with and without evictions, prints the expected number of positive results.
#[test]
fn measuring_programs_verify_their_results_without_races() {
    if !require::require("riscv-gcc") {
        return;
    }
    let folder =
        std::fs::read_dir(root().join("nearmemory/programs")).expect("the folder can be read");
    for entry in folder {
        let name = entry.expect("a file").file_name();
        let name = name.to_str().expect("a name").strip_suffix("-host.c");
        // `measure` prints its findings in another form, and another test runs it.
        let is_run = |name| name == "measure" || PROGRAMS.iter().any(|entry| entry.0 == name);
        assert!(name.is_none_or(is_run), "{name:?} runs nowhere");
    }
    for &(program, arguments, results) in PROGRAMS {
        let source = format!("nearmemory/programs/{program}.c");
        let channel = compile("channel", &source, &[]);
        for (mode, interval) in [
            (RunMode::Watched, None),
            (RunMode::Watched, Some(50)),
            (RunMode::FastInterpreter, None),
            (RunMode::FastInterpreter, Some(50)),
        ] {
            let evictions = interval.map(|interval| Evictions {
                mean_interval: interval,
                seed: 1,
            });
            let result = run(program, arguments, &channel, evictions, mode);
            let context = format!("{program} {mode:?} {interval:?}: {}", result.text);
            assert_eq!(result.outcomes, [RunOutcome::Exit(0)], "{context}");
            let lines: Vec<&str> = result.text.lines().collect();
            assert_eq!(lines.len(), results, "{context}");
            for line in lines {
                let (_, measurement) = line.rsplit_once(": ").expect("a result");
                let (number, _) = measurement.split_once(' ').expect("a unit");
                assert!(number.parse::<u64>().is_ok_and(|n| n > 0), "{context}");
            }
        }
    }
}

/// Programs with a seeded fault in their near-memory part: the source text that is replaced, and its replacement.
const FAULTS: &[(&str, &str, &str)] = &[
    // The last part is omitted.
    (
        "bulk",
        "fill(0, to, lines);",
        "fill(0, to, lines - (lines > 1));",
    ),
    // One line between two parts is omitted, or stored twice.
    (
        "bulk",
        "to += count * NM_LINE;",
        "to += (count - 1) * NM_LINE;",
    ),
    // Other lines are copied than requested.
    (
        "bulk",
        "from + (copied + half_lines) * NM_LINE",
        "from + (copied + half_lines / 2) * NM_LINE",
    ),
    (
        "bulk",
        "nm_fetch(0, from + copied * NM_LINE, count);",
        "nm_fetch(0, from + copied / 2 * NM_LINE, count);",
    ),
    // One round is omitted.
    (
        "compute",
        "mixture(rounds, &sum);",
        "mixture(rounds - 2, &sum);",
    ),
    // An update, or a part of a table, is omitted.
    (
        "gups",
        "line[index % 16] ^= random;",
        "if (i) line[index % 16] ^= random;",
    ),
    ("gups", "index / 16 * NM_LINE", "index / 16 % 511 * NM_LINE"),
    // A neighbour is omitted, sums are not stored, or sums of an earlier block are.
    (
        "pagerank",
        "sum += line[*neighbour % BLOCK];",
        "sum += line[*neighbour % (BLOCK - 1)];",
    ),
    (
        "pagerank",
        "for (; left >= 4;",
        "for (left -= left == 5; left >= 4;",
    ),
    ("pagerank", "  begin_node(source, UINT64_MAX);", ""),
    (
        "pagerank",
        "nm_words(source->first + PIPE_LINES + source->slot)[i] = 0;",
        "(void)i;",
    ),
    ("pipes", "sum += words[0];", "sum = words[0];"),
    // The words of one thread are omitted.
    ("pipes", "sum += word;", "sum += i == 2 ? 0 : word;"),
    // Rows fetched earlier are evaluated again, one row is omitted, or one is duplicated.
    (
        "rows",
        "table->fetched++ * BUFFER_LINES * NM_LINE, BUFFER_LINES)",
        "table->fetched++ / 2 * BUFFER_LINES * NM_LINE, BUFFER_LINES)",
    ),
    ("rows", "total += count;", "total += count - (total == 5);"),
    ("rows", "total++;", "total += total != 5;"),
    ("rows", "to[j] = words[j];", "to[j] = words[j & 14];"),
    // The exit status does not depend on the arguments.
    ("spawn", "return pad[0] + a;", "return pad[0] + a / 2;"),
    // The last children are omitted, where they are found or where they are distributed.
    (
        "uts",
        "stack[height++] = RANGE(first, count);",
        "stack[height++] = RANGE(first, count - (count == 5));",
    ),
    (
        "uts",
        "WORK(power, RANGE(first, count))",
        "WORK(power, RANGE(first, count - (count == 2)))",
    ),
];

/// Programs with a seeded fault in their host part.
const HOST_FAULTS: &[(&str, &str, &str)] = &[
    // One of four cores does nothing, no core does anything, or half of the work is omitted.
    (
        "gups",
        "  update(shared.table",
        "  if (core != 2) update(shared.table",
    ),
    (
        "gups",
        "  update(shared.table",
        "  if (!shared.words) update(shared.table",
    ),
    (
        "gups",
        "shared.words, shared.updates, shared.distance);\n}",
        "shared.words, shared.updates / 2, shared.distance);\n}",
    ),
    (
        "gups",
        "update(table, words, updates, distance);\n  return",
        "update(table, words, updates / 2, distance);\n  return",
    ),
];

/// Runs a program with a change in the file whose name ends with `part`; the host must report a wrong result.
fn check_fault(
    (program, original, mutated): (&str, &str, &str),
    arguments: &str,
    changed_end: &str,
    modes: &[RunMode],
) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let compile_part = |end: &str, flags: &str| {
        let path = format!("nearmemory/programs/{program}{end}.c");
        if end != changed_end {
            return compile(flags, &path, &[]);
        }
        let source = std::fs::read_to_string(root().join(path)).expect("the file can be read");
        assert_eq!(source.matches(original).count(), 1, "{original}");
        let changed = folder.path().join("changed.c");
        std::fs::write(&changed, source.replace(original, mutated))
            .expect("the file can be written");
        compile(flags, changed.to_str().expect("a name"), &["-Wno-error"])
    };
    let (host, channel) = (compile_part("-host", "host"), compile_part("", "channel"));
    for &mode in modes {
        let result = run_host(&host, program, arguments, &channel, None, mode);
        assert_eq!(
            result.outcomes.last(),
            Some(&RunOutcome::Exit(1)),
            "{mutated}"
        );
        assert!(
            result.text.contains("wrong: "),
            "{mutated}: {}",
            result.text
        );
    }
}

#[test]
fn each_seeded_fault_of_a_program_is_found_by_its_verifier() {
    if !require::require("riscv-gcc") {
        return;
    }
    for &fault in FAULTS {
        let mut known = PROGRAMS.iter().filter(|known| known.0 == fault.0);
        let arguments = known
            .next_back()
            .expect("the fault names a known program")
            .1;
        check_fault(
            fault,
            arguments,
            "",
            &[RunMode::Watched, RunMode::FastInterpreter],
        );
    }
}

#[test]
fn each_seeded_fault_of_a_host_is_found_by_its_verifier() {
    if !require::require("riscv-gcc") {
        return;
    }
    for &fault in HOST_FAULTS {
        let known = PROGRAMS.iter().find(|known| known.0 == fault.0);
        let arguments = known.expect("the fault names a known program").1;
        check_fault(fault, arguments, "-host", &[RunMode::FastInterpreter]);
    }
}

/// Four cores that deal children search equally many nodes of a tree in which most nodes have no or five children: cores
/// take turns at the children that are left over.
#[test]
fn children_are_dealt_equally() {
    if !require::require("riscv-gcc") {
        return;
    }
    let path = root().join("nearmemory/programs/uts-host.c");
    let source = std::fs::read_to_string(path).expect("the file can be read");
    let counted = "total.nodes += words[0];";
    assert_eq!(source.matches(counted).count(), 1);
    let printing = format!("{counted} printf(\"core: %lu nodes\\n\", words[0]);");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let changed = folder.path().join("changed.c");
    std::fs::write(&changed, source.replace(counted, &printing)).expect("the file is written");
    let host = compile("host", changed.to_str().expect("UTF-8"), &[]);
    let channel = compile("channel", "nearmemory/programs/uts.c", &[]);
    let arguments = "0 0 0 200 198800 5 7 4000";
    let result = run_host(
        &host,
        "uts",
        arguments,
        &channel,
        None,
        RunMode::FastInterpreter,
    );
    assert_eq!(result.outcomes, [RunOutcome::Exit(0)], "{}", result.text);
    let counts = result.text.lines().filter_map(|line| {
        let count = line.strip_prefix("core: ")?.strip_suffix(" nodes")?;
        count.parse::<u64>().ok()
    });
    // The first count is that of the search by one core.
    let counts: Vec<u64> = counts.skip(1).collect();
    assert_eq!(counts.len(), 4, "{}", result.text);
    let mean = counts.iter().sum::<u64>() / 4;
    let is_near = |&count: &u64| count.abs_diff(mean) * 50 <= mean;
    assert!(counts.iter().all(is_near), "{counts:?}");
}

/// Four cores share a last-level cache with fewer lines than they have outstanding misses. Regression: two cores whose
/// loads waited for room formerly waited for each other's next trial, at one time for ever.
#[test]
fn cores_with_a_small_shared_cache_end() {
    if !require::require("riscv-gcc") {
        return;
    }
    let host = compile("host", "nearmemory/programs/uts-host.c", &[]);
    let channel = compile("channel", "nearmemory/programs/uts.c", &[]);
    let mut platform = Platform::enzian();
    for (name, value) in [
        ("host.cores", "4"),
        ("host.llc", "2048B"),
        ("host.l1", "4096B"),
        ("host.page", "128B"),
    ] {
        platform.set(name, value).expect("a valid value");
    }
    let channels = [("uts", channel.as_slice())];
    let arguments = "1 3 9 4 0 0 29 3000";
    let result = run_as(
        &platform,
        &host,
        arguments,
        &channels,
        None,
        RunMode::InTime,
    );
    assert_eq!(result.outcomes, [RunOutcome::Exit(0)], "{}", result.text);
}
