//! Several hosts that share the device: values that they hand over, races between them, and rates by formulas on paper.

use super::races::host_races;
use super::{compile, run, run_as, run_watched, RunMode, RunResult};
use cohkit_base::random::SplitMix64;
use cohkit_dram::Memory;
use cohkit_nearmemory::machine::{load_program, Machine};
use cohkit_nearmemory::{Binaries, CoreId, Evictions, Platform, RaceKind, RunOutcome};
use cohkit_riscv::elf::Image;
use cohkit_testing::require;

/// Source folder of the test programs.
const PROGRAMS: &str = "crates/nearmemory/tests/programs";

/// Lines, words of a line, and rounds of `ring-host.c`.
const RING_LINES: u64 = 6;
const WORDS: u64 = 16;
const ROUNDS: u64 = 3;

/// The shipped machine with this number of hosts and further settings.
fn machine(hosts: u64, settings: &[(&str, &str)]) -> Platform {
    let mut platform = Platform::enzian();
    let count = hosts.to_string();
    for (name, value) in [("hosts.count", count.as_str())].iter().chain(settings) {
        platform.set(name, value).expect("a valid value");
    }
    platform
}

/// Random evictions once in five accesses.
fn evictions(seed: u64) -> Evictions {
    Evictions {
        mean_interval: 5,
        seed,
    }
}

/// Sum that the last host of `ring-host.c` prints, by the same operations in turn.
fn ring_sum(hosts: u64) -> u64 {
    let mut words = [0_u64; (RING_LINES * WORDS) as usize];
    for _ in 0..ROUNDS {
        for host in 0..hosts {
            for (i, word) in words.iter_mut().enumerate() {
                *word = word.wrapping_mul(3).wrapping_add(host + i as u64);
            }
        }
    }
    let add = |sum: u64, word: &u64| sum.wrapping_mul(5).wrapping_add(*word);
    words.iter().fold(0, add)
}

/// One to four hosts change lines in turn. Each reads what the previous one has written back, with and without time,
/// evictions, a memory-side cache and hardware prefetchers, and no run has a race.
#[test]
fn hosts_hand_lines_over_in_turn() {
    if !require::require("riscv-gcc") {
        return;
    }
    let host = compile("host", &format!("{PROGRAMS}/ring-host.c"), &[]);
    let prefetchers = [("prefetcher.streams", "4"), ("memory_cache.size", "1MiB")];
    for hosts in 1..=4 {
        for (settings, evictions, mode) in [
            (&[][..], None, RunMode::Watched),
            (&[][..], Some(evictions(hosts)), RunMode::Watched),
            (&prefetchers[..], Some(evictions(hosts)), RunMode::Watched),
            (&[][..], None, RunMode::FastInterpreter),
        ] {
            let platform = machine(hosts, settings);
            let result = run_as(&platform, &host, "", &[], evictions, mode);
            let expected = format!("sum {}\n", ring_sum(hosts));
            assert_eq!(result.text, expected, "{hosts} {mode:?} {evictions:?}");
            let outcomes = [RunOutcome::Exit(0)];
            assert_eq!(result.outcomes, outcomes, "{hosts} {mode:?} {evictions:?}");
        }
    }
}

/// A hand-over without one of its steps is reported, at the lines of both hosts.
#[test]
fn each_missing_step_between_hosts_is_a_race() {
    if !require::require("riscv-gcc") {
        return;
    }
    use RaceKind::{BothWrite, StaleFetch, StaleLoad, UnorderedRead};
    let (loads, stores) = (
        "uint64_t word = far[i];       // loads",
        "far[i] = 3 * word + host + i; // stores",
    );
    let sums = "for (uint64_t i = 0; i < LINES * WORDS; i++) sum = 5 * sum + far[i];";
    for (forgets, kinds) in [
        ("DROP", &[StaleLoad][..]),
        ("CLEAN", &[StaleFetch, BothWrite]),
        ("EARLY_NOTICE", &[StaleFetch]),
        ("NO_FENCE", &[StaleFetch]),
        ("NOTICE", &[UnorderedRead]),
    ] {
        let definition = format!("-DFORGETS={forgets}");
        let races = host_races(&machine(2, &[]), "ring", &[&definition]);
        let found = |kind: &RaceKind| races.iter().any(|(found, ..)| found == kind);
        assert!(kinds.iter().all(found), "{forgets}: {races:?}");
        let lines = races.iter().flat_map(|(_, second, first)| [second, first]);
        for line in lines {
            let is_expected = [loads, stores, sums].contains(&line.as_str());
            assert!(is_expected, "{forgets}: {line}");
        }
    }
}

/// Notices between hosts with two cores each: a core that uses the notice of the other core, a line of a scratchpad
/// that always misses, and a load that is not complete at its notice. The host is one agent for the detector.
#[test]
fn cores_of_a_host_are_one_agent_between_hosts() {
    if !require::require("riscv-gcc") {
        return;
    }
    use RaceKind::{StaleFetch, StaleLoad, UnorderedRead};
    let (loads, stores) = ("loaded = far[0];  // loads", "far[0] = 42;  // stores");
    let early_load =
        r##"__asm__ volatile("ld %0, 0(%2)  # loads\n sd %3, 0(%4)\n sd %3, 8(%4)\n mv %1, %0\n""##;
    for (case, expected) in [
        ("STALE", Some((StaleLoad, loads, stores))),
        ("UNFLUSHED", Some((StaleFetch, loads, stores))),
        ("ANNOUNCED", None),
        ("POLLED", None),
        ("IN_FLIGHT", Some((UnorderedRead, stores, early_load))),
    ] {
        let platform = machine(2, &[("host.cores", "2")]);
        let races = host_races(&platform, "notices", &[&format!("-DCASE={case}")]);
        let races: Vec<_> = (races.iter())
            .map(|(kind, second, first)| (*kind, second.as_str(), first.as_str()))
            .collect();
        assert_eq!(races, Vec::from_iter(expected), "{case}");
    }
}

/// An operation of a host in `script-host.c`: the host, the letter and the digit.
type Operation = (u64, char, u64);

/// Operations of all hosts in one order, in which each host owns all lines in turn: it drops old copies, uses the
/// lines, writes back those in which it has stored, and notifies the next host. Cores of a host take turns at random,
/// and each has a fence.
fn correct_operations(random: &mut SplitMix64, hosts: u64, cores: u64) -> Vec<Operation> {
    let mut operations = Vec::new();
    let mut owner = 0;
    for _ in 0..6 {
        let mut stored = Vec::new();
        for line in 0..2 {
            let host = random.below(hosts);
            operations.push((host, 'p', random.below(2)));
            operations.push((owner, 'f', line));
            for _ in 0..random.below(4) {
                let operation = ['l', 's', 'w', 'l'][random.below(4) as usize];
                operations.push((owner, operation, line));
                if operation != 'l' && !stored.contains(&line) {
                    stored.push(line);
                }
            }
        }
        for line in stored {
            let operation = ['c', 'f'][random.below(2) as usize];
            operations.push((owner, operation, line));
        }
        operations.push((owner, 'o', 0));
        let next = (owner + 1 + random.below(hosts - 1)) % hosts;
        let (notice, wait) = [('t', 'r'), ('n', 'q')][random.below(2) as usize];
        operations.push((owner, notice, next));
        operations.push((next, wait, owner));
        owner = next;
    }
    if cores == 1 {
        return operations;
    }
    let mut of_cores = Vec::new();
    for (host, letter, number) in operations {
        let on_second = (host, letter.to_ascii_uppercase(), number);
        match letter {
            'o' => of_cores.extend([(host, letter, number), on_second]),
            _ if random.below(2) == 0 => of_cores.push((host, letter, number)),
            _ => of_cores.push(on_second),
        }
    }
    of_cores
}

/// Returns the operation that waits for a notice; `None` for the other operations.
fn wait_for((host, letter, number): Operation) -> Option<Operation> {
    let wait = match letter.to_ascii_lowercase() {
        't' => 'r',
        'n' => 'q',
        _ => return None,
    };
    Some((number, wait, host))
}

/// Returns an operation as one of core 0.
fn on_first_core((host, letter, number): Operation) -> Operation {
    (host, letter.to_ascii_lowercase(), number)
}

/// Removes two to six operations for each core of a host, or moves them before the previous operation of their host.
/// Notices and waits for them remain in pairs.
fn mutate(operations: &mut Vec<Operation>, random: &mut SplitMix64, cores: u64) {
    let is_wait = |operation| matches!(on_first_core(operation).1, 'r' | 'q');
    for _ in 0..cores * (2 + random.below(5)) {
        let index = random.below(operations.len() as u64) as usize;
        let operation = operations[index];
        match (wait_for(operation), random.below(2)) {
            _ if is_wait(operation) => {}
            (Some(wait), 0) => {
                let mut later = (index..).zip(&operations[index..]);
                let wait = later.find(|(_, operation)| on_first_core(**operation) == wait);
                operations.remove(wait.expect("a wait for each notice").0);
                operations.remove(index);
            }
            (None, 0) => drop(operations.remove(index)),
            _ => {
                let mut earlier = operations[..index].iter();
                let previous = earlier.rposition(|earlier| earlier.0 == operation.0);
                let previous = previous.filter(|previous| !is_wait(operations[*previous]));
                if let Some(previous) = previous {
                    let operation = operations.remove(index);
                    operations.insert(previous, operation);
                }
            }
        }
    }
}

/// Output of the operations in this order, if each load returns the last stores to the words of its line.
fn expected_output(operations: &[Operation], hosts: u64) -> Vec<String> {
    let mut words = vec![[0_u64; 10]; hosts as usize + 1];
    let mut stores = vec![0; hosts as usize];
    let mut output = Vec::new();
    for &operation in operations {
        let (host, letter, line) = on_first_core(operation);
        match letter {
            's' | 'w' => {
                let word = match letter {
                    's' => 0,
                    _ => host as usize + 1,
                };
                words[word][line as usize] = 1000 * (host + 1) + stores[host as usize];
                stores[host as usize] += 1;
            }
            'l' => output.extend(words.iter().map(|word| (host, word[line as usize]))),
            _ => {}
        }
    }
    output.sort_by_key(|(host, _)| *host);
    let output = output.into_iter();
    output
        .map(|(host, word)| format!("{host} {word}"))
        .collect()
}

/// Runs the operations as scripts of the hosts, which have this number of cores.
fn run_operations(
    program: &[u8],
    operations: &[Operation],
    (hosts, cores): (u64, u64),
    seed: u64,
) -> RunResult {
    let script = |host| {
        let own = operations.iter().filter(|operation| operation.0 == host);
        let words = own.map(|(_, letter, digit)| format!("{letter}{digit}"));
        words.collect::<String>()
    };
    let scripts: Vec<String> = (0..hosts).map(script).collect();
    let evictions = (seed % 2 == 1).then(|| evictions(seed));
    let command = scripts.join(" ");
    let platform = machine(hosts, &[("host.cores", &cores.to_string())]);
    run_as(
        &platform,
        program,
        &command,
        &[],
        evictions,
        RunMode::Watched,
    )
}

/// Random scripts of two and three hosts with one or two cores. Correct ones have no race, and each load returns the
/// newest stores. Wrong ones have a race, or each load returns the newest stores too: no old value goes unreported.
#[test]
fn old_values_between_hosts_are_reported() {
    if !require::require("riscv-gcc") {
        return;
    }
    let program = compile("host", &format!("{PROGRAMS}/script-host.c"), &[]);
    let seed = std::env::var("COHKIT_SEED").ok();
    let seeds = match seed.map(|seed| seed.parse().expect("COHKIT_SEED is a number")) {
        Some(seed) => seed..seed + 1,
        None => 0..96,
    };
    let (mut racy, mut old_values) = (0, 0);
    for seed in seeds.clone() {
        let mut random = SplitMix64::new(seed);
        let (hosts, cores) = (2 + seed / 2 % 2, 1 + seed / 4 % 2);
        let mut operations = correct_operations(&mut random, hosts, cores);
        let is_mutated = seed % 4 != 0;
        if is_mutated {
            mutate(&mut operations, &mut random, cores);
        }
        let result = run_operations(&program, &operations, (hosts, cores), seed);
        let mut output: Vec<&str> = result.text.lines().collect();
        output.sort_by_key(|line| line.split_once(' ').map(|(host, _)| host));
        let is_newest = output == expected_output(&operations, hosts);
        let (end, races) = result.outcomes.split_last().expect("an end");
        let repeat = format!(
            "repeat it: COHKIT_SEED={seed} cargo test -p cohkit-nearmemory --test nearmemory old_values\n{operations:?}\n{output:?}\n{races:?}"
        );
        assert_eq!(*end, RunOutcome::Exit(0), "{repeat}");
        assert!(is_mutated || races.is_empty(), "{repeat}");
        assert!(is_newest || !races.is_empty(), "{repeat}");
        racy += u32::from(!races.is_empty());
        old_values += u32::from(!is_newest);
    }
    // The scripts tell a detector that reports nothing from this one.
    let is_sample = seeds.end - seeds.start > 1;
    assert!(
        !is_sample || racy > 20 && old_values > 5,
        "{racy} {old_values}"
    );
}

/// Cycles that each host prints for a number of reads of `ranges-host.c`, and the machine.
fn durations(program: &[u8], command: &str, hosts: u64, settings: &[(&str, &str)]) -> Vec<u64> {
    let platform = machine(hosts, settings);
    let result = run(&platform, program, command, &[], None);
    assert_eq!(result.outcomes, [RunOutcome::Exit(0)], "{}", result.text);
    let numbers = result
        .text
        .lines()
        .map(|line| line.parse().expect("a number"));
    let durations: Vec<u64> = numbers.collect();
    assert_eq!(durations.len() as u64, hosts);
    durations
}

/// The program of the rates; `None` without a compiler.
fn ranges_program() -> Option<Vec<u8>> {
    let source = format!("{PROGRAMS}/ranges-host.c");
    require::require("riscv-gcc").then(|| compile("host", &source, &[]))
}

/// Picoseconds of a clock of a host.
const CYCLE: u64 = 500;

/// Hosts that load one line at a time do not delay each other: N hosts have the rate of one, N times.
#[test]
fn hosts_load_at_the_rate_of_one_each() {
    let Some(program) = ranges_program() else {
        return;
    };
    let settings = [("device.slice_reads", "32")];
    let one = durations(&program, "0 100", 1, &settings)[0];
    for hosts in [2, 4, 8] {
        for duration in durations(&program, "0 100", hosts, &settings) {
            // The requests of the hosts begin at one time, so some wait for others at first.
            assert!(
                duration.abs_diff(one) <= one / 25,
                "{hosts}: {duration} {one}"
            );
        }
    }
}

/// Each host has a link of its own: a slow link bounds the reads of one host, and those of several hosts alike.
#[test]
fn each_host_has_a_link_of_its_own() {
    let Some(program) = ranges_program() else {
        return;
    };
    // All lines are in flight at once.
    let settings = [
        ("link.bandwidth", "1GB/s"),
        ("device.slice_reads", "64"),
        ("host.llc_misses", "128"),
    ];
    let reads = 120;
    // A line and its header, of 8 bytes, take 136 ns. The latency of the first line takes a few percent.
    let transmission = reads * 136_000 / CYCLE;
    for hosts in [1, 2, 4] {
        for duration in durations(&program, &format!("1 {reads}"), hosts, &settings) {
            let range = transmission..transmission + transmission / 10;
            assert!(range.contains(&duration), "{hosts}: {duration} {range:?}");
        }
    }
}

/// A directory with one slice and one read in flight bounds all hosts together: each read takes at least the time of a
/// row hit, and at most that of a row conflict.
#[test]
fn reads_in_flight_bound_all_hosts_together() {
    let Some(program) = ranges_program() else {
        return;
    };
    let settings = [("device.slices", "1"), ("device.slice_reads", "1")];
    let Memory::Dram(dram) = Platform::enzian().memory else {
        panic!("the shipped machine has simple DRAM")
    };
    let transfer = 128 * 1_000_000_000_000 / dram.bandwidth.value;
    let least = dram.controller_latency.value + dram.t_cl.value + transfer;
    let most = least + dram.t_rcd.value + dram.t_rp.value;
    for hosts in [1, 2, 4] {
        let reads = 120;
        let all = durations(&program, &format!("1 {reads}"), hosts, &settings);
        let last = *all.iter().max().expect("a host");
        let measured = last * CYCLE / (hosts * reads);
        // The first and the last reads take a few percent.
        let range = least..=most + most / 10;
        assert!(range.contains(&measured), "{hosts}: {measured} {range:?}");
    }
}

/// The device takes one access to a register at a time, of all hosts together.
#[test]
fn register_accesses_of_all_hosts_are_serialised() {
    let Some(program) = ranges_program() else {
        return;
    };
    let (interval, reads) = (2_000_000, 50);
    let settings = [("device.register_interval", "2us")];
    for hosts in [1, 2, 4] {
        let all = durations(&program, &format!("2 {reads}"), hosts, &settings);
        let last = *all.iter().max().expect("a host");
        let expected = hosts * reads * interval / CYCLE;
        // Accesses before the measurement, and the latency of the last one.
        assert!(
            last.abs_diff(expected) <= expected / 20,
            "{hosts}: {last} {expected}"
        );
    }
}

/// With several hosts, each has counters of its own, which add up to those of the device. With one, the names have no
/// number.
#[test]
fn hosts_have_counters_of_their_own() {
    let Some(program) = ranges_program() else {
        return;
    };
    let result = run(&machine(3, &[]), &program, "0 10", &[], None);
    let sum = |name: &str, part: &str| -> u64 {
        (0..3)
            .map(|host| result.counter(&format!("{part} {host}: {name}")))
            .sum()
    };
    assert_eq!(
        sum("lines of far memory and scratchpads", "host"),
        result.counter("far memory: lines read")
    );
    for host in 0..3 {
        // One load before the measurement.
        let lines = result.counter(&format!("host {host}: lines of far memory and scratchpads"));
        assert_eq!(lines, 11);
        let messages = result.counter(&format!("link {host}: messages to the device"));
        let registers = result.counter(&format!("host {host}: register accesses"));
        assert_eq!(messages, lines + registers);
    }
    let one = run(&machine(1, &[]), &program, "0 10", &[], None);
    assert_eq!(one.counter("host: lines of far memory and scratchpads"), 11);
}

/// A host that ends early leaves the others running, and the status is that of the first host that fails. A livelock
/// names the hosts that poll.
#[test]
fn run_ends_with_the_last_host() {
    if !require::require("riscv-gcc") {
        return;
    }
    let host = compile("host", &format!("{PROGRAMS}/ends-host.c"), &[]);
    let run_ends =
        |command: &str, evictions| run_watched(&machine(3, &[]), &host, command, &[], evictions);
    // Arguments are the statuses of the hosts.
    for (command, status) in [("0 0 0", 0), ("0 7 3", 7), ("0 0 3", 3)] {
        let result = run_ends(command, None);
        assert_eq!(result.outcomes, [RunOutcome::Exit(status)], "{command}");
        let mut lines: Vec<&str> = result.text.lines().collect();
        lines.sort();
        assert_eq!(lines, ["host 0 ends", "host 1 ends", "host 2 ends"]);
    }
    // Random evictions change nothing for the polling host; those that have ended make none.
    let rare = Evictions {
        mean_interval: 100,
        seed: 1,
    };
    for evictions in [None, Some(rare)] {
        let result = run_ends("0 -1 0", evictions);
        let [RunOutcome::Livelock(polls)] = &result.outcomes[..] else {
            panic!("{:?}", result.outcomes);
        };
        let core_ids: Vec<CoreId> = polls.iter().map(|poll| poll.core_id).collect();
        assert_eq!(core_ids, [CoreId::Host { host: 1, core: 0 }]);
    }
}

/// Hosts that wait longer than a millisecond for their accesses to registers are in no livelock.
#[test]
fn slow_registers_are_no_livelock() {
    let Some(program) = ranges_program() else {
        return;
    };
    durations(
        &program,
        "2 3",
        16,
        &[("device.register_interval", "100us")],
    );
}

/// Two hosts give ranges to one core at a time: neither grant is lost, and each has its own start.
#[test]
fn hosts_grant_ranges_to_one_core_at_a_time() {
    if !require::require("riscv-gcc") {
        return;
    }
    let host = compile("host", &format!("{PROGRAMS}/gives-host.c"), &[]);
    let channel = compile("channel", &format!("{PROGRAMS}/gives.c"), &[]);
    let result = run(&machine(2, &[]), &host, "", &[("gives", &channel)], None);
    assert_eq!(result.text, "sum 7\n");
    assert_eq!(result.outcomes, [RunOutcome::Exit(0)]);
}

/// Registers that no program changes, and counters, do not synchronise hosts.
#[test]
fn constants_and_counters_do_not_synchronise() {
    if !require::require("riscv-gcc") {
        return;
    }
    let races = host_races(&machine(2, &[]), "constants", &[]);
    let (loads, stores) = ("(void)far[0];  // loads", "far[0] = 42;  // stores");
    let expected = (RaceKind::UnorderedRead, loads.into(), stores.into());
    assert_eq!(races, [expected]);
}

/// Bytes of memory that this process has in RAM.
#[cfg(target_os = "linux")]
fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("a file of Linux");
    let pages = text.split(' ').nth(1).expect("the pages in RAM");
    pages.parse::<u64>().expect("a number") * 4096
}

/// Unused memory of further hosts takes no memory of the simulator: 16 hosts with 256 MiB each have 4 GiB.
#[test]
#[cfg(target_os = "linux")]
fn unused_memory_of_hosts_is_not_allocated() {
    let Some(program) = ranges_program() else {
        return;
    };
    let image = Image::read(&program).expect("a valid ELF program");
    let (main, system) = load_program(&image, 256 << 20, "").expect("the program fits in memory");
    let before = resident_bytes();
    let platform = machine(16, &[]);
    let machine = Machine::new(&platform, main, system, &image, Binaries::default(), None);
    let allocated = resident_bytes().saturating_sub(before);
    assert_eq!(machine.host_count(), 16);
    assert!(allocated < 1 << 30, "{allocated}");
}
