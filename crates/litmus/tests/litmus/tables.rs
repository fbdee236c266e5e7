//! Occupancy of the tables of `cord`, which cores must not overflow, and its number of messages.

use crate::protocol_files;

use cohkit_base::sequence::Action;
use cohkit_litmus::axioms::{allowed, Model};
use cohkit_litmus::cores::CoreKind;
use cohkit_litmus::herd;
use cohkit_litmus::lines::Lines;
use cohkit_litmus::machine::MachineState;
use cohkit_litmus::program::{
    Claim, Instruction, Operand, Program, Quantifier, StoreVariant, Thread,
};
use cohkit_litmus::run::{run_on, shortest_path, Options, Placement, RunResult};
use cohkit_litmus::shape_generator::files;
use cohkit_litmus::timed::{self, Level};
use cohkit_litmus::values::Values;
use cohkit_protocol::protocol::Protocol;
use protocol_files::{home, read};

const SO: &str = include_str!("../../../../ordering/so.coh");
const SO_STRICT: &str = include_str!("../../../../ordering/so-strict.coh");
const MP: &str = include_str!("../../../../ordering/mp.coh");
const CORD: &str = include_str!("../../../../ordering/cord.coh");
/// Programs with many epochs, and with many stores in one epoch.
const PROGRAMS: [&str; 5] = [
    include_str!("../../../../litmus/ordering/MP+counts.litmus"),
    include_str!("../../../../litmus/ordering/MP+rounds.litmus"),
    include_str!("../../../../litmus/ordering/MP+epochs.litmus"),
    include_str!("../../../../litmus/ordering/MP+releases.litmus"),
    include_str!("../../../../litmus/ordering/MP+homes.litmus"),
];

/// Returns a protocol file without its systems, and with these parameters in place of its own.
fn sized(text: &str, sizes: &[(&str, u16)]) -> String {
    let (text, _) = text.split_once("\nsystem ").expect("systems");
    let line = |line: &str| {
        let replacement = |(name, size): &(&str, u16)| {
            let parameter = line.strip_prefix("size ")?.split_whitespace().next()?;
            (parameter == *name).then(|| format!("size {name} {size}"))
        };
        let replaced = sizes.iter().find_map(replacement);
        replaced.unwrap_or_else(|| line.to_string()) + "\n"
    };
    text.lines().map(line).collect()
}

/// Returns options for cores that keep the protocol's orders, without spontaneous evictions.
fn options(protocol: &Protocol) -> Options {
    Options {
        cores: CoreKind::Relaxed(
            protocol
                .program_order
                .expect("the protocol declares its program order"),
        ),
        max_spontaneous_evictions: 0,
        ..Options::default()
    }
}

/// Sizes of the tables of a core and of a home.
#[derive(Clone, Copy, Debug)]
struct Tables {
    /// Number of epoch numbers.
    epochs: u16,
    /// Maximum number of stores of one epoch at one home.
    most: u16,
    /// Homes whose stores of an epoch a core counts.
    counters: u16,
    /// Epoch ends of a core that may be unacknowledged.
    entries: u16,
    /// Epochs per core whose stores a home counts.
    slots: u16,
    /// Releases per core whose notifications a home counts.
    notes: u16,
}

/// Small tables: everywhere; in the core alone; in the home alone; and of intermediate size.
const SMALL: [Tables; 4] = [
    Tables {
        epochs: 2,
        most: 1,
        counters: 1,
        entries: 1,
        slots: 1,
        notes: 1,
    },
    Tables {
        epochs: 3,
        most: 1,
        counters: 1,
        entries: 1,
        slots: 3,
        notes: 2,
    },
    Tables {
        epochs: 4,
        most: 2,
        counters: 2,
        entries: 2,
        slots: 1,
        notes: 1,
    },
    Tables {
        epochs: 3,
        most: 1,
        counters: 1,
        entries: 2,
        slots: 2,
        notes: 1,
    },
];

impl Tables {
    /// Returns a protocol file with these sizes.
    fn of(self, text: &str) -> String {
        sized(
            text,
            &[
                ("epochs", self.epochs),
                ("most", self.most),
                ("counters", self.counters),
                ("entries", self.entries),
                ("slots", self.slots),
                ("notes", self.notes),
            ],
        )
    }
}

/// Returns the maximum number of entries of a core in a table of a home, over all system states that programs have
/// reached.
fn entries_used(lines: &Lines, table: &str, epochs: u16) -> usize {
    let (system, system_states) = lines.reached_states().expect("one level");
    let variables = &system.home.variables;
    let number = variables.iter().position(|v| v.name == table);
    let first_slot = system
        .slots_of_home(number.expect("a register") as u16)
        .start;
    let epochs = usize::from(epochs);
    let in_system_state = |state: &MachineState<Values>| {
        let homes = state
            .system_states()
            .flat_map(|system_state| &system_state.lines);
        let counts_by_line = homes.map(|line| {
            let cores = (0..usize::from(system.remotes)).map(|core| {
                let from = first_slot + core * epochs;
                let entries = &line.home.slots[from..from + epochs];
                entries.iter().filter(|&&count| count != 0).count()
            });
            cores.max().unwrap_or(0)
        });
        counts_by_line.max().unwrap_or(0)
    };
    system_states
        .map(|state| in_system_state(&state))
        .max()
        .unwrap_or(0)
}

/// Returns the programs of [`PROGRAMS`], and every shape of two threads with a release or a fence.
fn programs() -> Vec<Program> {
    let written = PROGRAMS.map(|text| herd::read(text).expect("a program"));
    let shapes = files().expect("shapes").into_iter();
    let shapes = shapes.filter(|file| file.path.starts_with("aarch64"));
    let shapes = shapes.map(|file| herd::read(&file.text).expect("a program"));
    let releases = |program: &Program| {
        let mut code = program.threads.iter().flat_map(|thread| &thread.code);
        code.any(|instruction| {
            matches!(
                instruction,
                Instruction::Store { release: true, .. } | Instruction::Fence(_)
            )
        })
    };
    let shapes = shapes.filter(|program| program.threads.len() == 2 && releases(program));
    written.into_iter().chain(shapes).collect()
}

/// Returns the first violation of programs on `cord` with tables of these sizes. A violation is a forbidden outcome,
/// threads that wait for ever, or more entries than a table of a home has.
fn first_violation(text: &str, tables: Tables, programs: &[Program]) -> Option<String> {
    let protocol = read(&tables.of(text));
    let options = options(&protocol);
    for group in Lines::groups(&protocol, programs.to_vec()) {
        let locations = group[0].locations.len() as u8;
        let mut lines = Lines::new(
            &protocol,
            home(&protocol),
            2,
            locations,
            options.channel_capacity,
        );
        for program in &group {
            let name = &program.name;
            match run_on(&mut lines, program, &options, &mut || true) {
                RunResult::Outcomes { outcomes, .. } => {
                    let allowed = allowed(program, Model::Rc).expect("a small program");
                    if let Some(end) = outcomes.iter().find(|outcome| !allowed.contains(outcome)) {
                        return Some(format!("{name} ends with {}", program.format_outcome(end)));
                    }
                }
                RunResult::Stuck { .. } => return Some(format!("{name} waits for ever")),
                other => return Some(format!("{name}: {other:?}")),
            }
        }
        for (table, capacity) in [
            ("store_count", tables.slots),
            ("notify_count", tables.notes),
        ] {
            let used = entries_used(&lines, table, tables.epochs);
            if used > usize::from(capacity) {
                return Some(format!("{used} entries of `{table}`, which has {capacity}"));
            }
        }
    }
    None
}

/// With small tables, stores wait for free entries instead of overflowing a table.
#[test]
fn smallest_tables_keep_release_consistency() {
    let programs = programs();
    assert!(programs.len() > 100, "{}", programs.len());
    for tables in SMALL {
        assert_eq!(first_violation(CORD, tables, &programs), None, "{tables:?}");
    }
}

/// In the simulator, all programs complete with allowed outcomes.
#[test]
fn simulated_programs_complete_with_the_smallest_tables() {
    for tables in SMALL {
        let protocol = read(&tables.of(CORD));
        for text in PROGRAMS {
            let program = herd::read(text).expect("a program");
            let upper = Level {
                protocol: &protocol,
                home: home(&protocol).clone(),
                caches: 2,
            };
            let machines = [timed::Machine { upper, lower: None }];
            let options = timed::Options {
                cores: options(&protocol).cores,
                runs: 10,
                seed: 0,
            };
            let observed = timed::observe(&machines, &program, &options, &mut || true);
            let observed = observed.expect("the program can be simulated");
            let name = &program.name;
            assert_eq!(
                (observed.runs, &observed.failure),
                (10, &None),
                "{name}: {tables:?}"
            );
            let allowed = allowed(&program, Model::Rc).expect("a small program");
            let forbidden = observed
                .counts
                .keys()
                .find(|outcome| !allowed.contains(outcome));
            assert_eq!(forbidden, None, "{name}: {tables:?}");
        }
    }
}

/// Faults: a full table does not stall, or an entry is released too early or too late.
#[test]
fn missing_table_stall_is_refuted_by_overflow() {
    let [smallest, _, homes, _] = SMALL;
    let faults = [
        (
            "a store does not wait for an entry of its home",
            "\n        and outstanding < slots",
            "",
            homes,
            "2 entries of `store_count`, which has 1",
        ),
        (
            "a release does not wait for an entry of its home",
            " and unacked[home] < notes",
            "",
            Tables { slots: 3, ..homes },
            "2 entries of `notify_count`, which has 1",
        ),
        (
            "a release does not wait for an entry of its core",
            "release if outstanding < entries and",
            "release if",
            Tables {
                notes: 2,
                ..smallest
            },
            "a row of core cannot be executed: `unacked` has no room for 2",
        ),
        (
            "homes are counted for which a core has no entry",
            " and count(store_homes) < counters and count(store_homes) < entries",
            "",
            smallest,
            "waits for ever",
        ),
        (
            "a release leaves the entries of all epochs",
            "write, store_count[sender][epoch] := 0, notify_count",
            "write, store_count := 0, notify_count",
            Tables { slots: 2, ..homes },
            "waits for ever",
        ),
        (
            "a core leaves the entries of a home with its first acknowledgement",
            "ReleaseAck if unacked[sender] == 1 | unacked[sender] := 0, unacked_homes",
            "ReleaseAck if unacked[sender] < 3 | unacked[sender] -= 1, unacked_homes",
            Tables { notes: 2, ..homes },
            "MP+releases ends with",
        ),
    ];
    let programs = programs();
    let mut missed = Vec::new();
    for (description, original, replacement, tables, expected) in faults {
        assert!(CORD.contains(original), "{description}");
        let found = first_violation(&CORD.replace(original, replacement), tables, &programs);
        if !found.as_ref().is_some_and(|found| found.contains(expected)) {
            missed.push(format!("{description}: {found:?}"));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

/// Returns a program of one thread in rounds. In each round it stores to each of the listed locations a given number of
/// times, and then performs a release store to location 0.
fn rounds(name: &str, locations: usize, rounds: &[(&[u8], usize)]) -> Program {
    let mut code = Vec::new();
    let mut value = 0;
    let mut store = |to: u8, release: bool| {
        value += 1;
        let (value, via) = (Operand::Number(value), StoreVariant::ProtocolDefault);
        code.push(Instruction::Store {
            to: to.into(),
            value,
            release,
            via,
        });
    };
    for (to, times) in rounds {
        for _ in 0..*times {
            to.iter().for_each(|&to| store(to, false));
        }
        store(0, true);
    }
    let names = ["x", "y", "z", "w"].iter().take(locations);
    Program {
        name: name.to_string(),
        locations: names.map(|name| name.to_string()).collect(),
        initial: vec![0; locations],
        threads: vec![Thread {
            code,
            ..Thread::default()
        }],
        quantifier: Quantifier::Exists,
        claim: Claim::True,
        listed: Vec::new(),
        filter: Claim::True,
    }
}

/// Returns the messages on a shortest path to an outcome, in send order. Locations are placed round robin.
fn messages(text: &str, program: &Program) -> Vec<String> {
    let protocol = read(text);
    let options = Options {
        placement: Placement::RoundRobin,
        ..options(&protocol)
    };
    let locations = program.locations.len() as u8;
    let mut lines = Lines::new(
        &protocol,
        home(&protocol),
        1,
        locations,
        options.channel_capacity,
    );
    let path = shortest_path(
        &mut lines,
        program,
        &options,
        &|end| end.is_some(),
        &mut || true,
    );
    let steps = path.expect("a path to the outcome").chart.steps.into_iter();
    let sent = steps.filter_map(|step| match step.action {
        Action::Send { message, .. } => Some(message),
        _ => None,
    });
    sent.collect()
}

/// Returns the number of messages with this name.
fn count_named(messages: &[String], name: &str) -> usize {
    let is_named = |message: &&String| message.split('(').next() == Some(name);
    messages.iter().filter(is_named).count()
}

/// Returns the sum of the field `notifications` over all release messages.
fn total_notifications(messages: &[String]) -> usize {
    let notifications = |message: &String| {
        let (_, count) = message
            .strip_prefix("Release(")?
            .split_once("notifications=")?;
        count.trim_end_matches(')').parse::<usize>().ok()
    };
    messages.iter().filter_map(notifications).sum()
}

/// Returns `cord` with this number of homes, and with tables large enough for these programs.
fn wide(homes: u16) -> String {
    let sizes = [
        ("homes", homes),
        ("epochs", 8),
        ("most", 4),
        ("counters", homes),
        ("entries", 6),
        ("slots", 7),
        ("notes", 6),
    ];
    sized(CORD, &sizes)
}

/// A round without outstanding earlier releases: m stores to p other homes, then one release. Ordering at the source
/// takes m + 1 acknowledgements. Ordering at directories takes a request and a notification for each of the p pending
/// homes, and one acknowledgement.
#[test]
fn isolated_round_has_the_predicted_message_count() {
    for (p, times) in [(0, 1), (1, 1), (1, 2), (2, 1), (2, 2), (3, 1)] {
        let other_homes: Vec<u8> = (1..=p).collect();
        let m = other_homes.len() * times;
        let program = rounds("a round", other_homes.len() + 1, &[(&other_homes, times)]);
        let strict = messages(SO_STRICT, &program);
        assert_eq!(
            (
                count_named(&strict, "Write"),
                count_named(&strict, "StoreAck")
            ),
            (m + 1, m + 1)
        );
        let source = messages(SO, &program);
        let counts =
            ["Write", "Release", "StoreAck", "ReleaseAck"].map(|name| count_named(&source, name));
        assert_eq!(counts, [m, 1, m, 1]);
        let directories = messages(&wide(4), &program);
        assert_eq!(
            (
                count_named(&directories, "Relaxed"),
                count_named(&directories, "Release")
            ),
            (m, 1)
        );
        let control = ["NotifyRequest", "Notify", "ReleaseAck", "EmptyRelease"]
            .map(|name| count_named(&directories, name));
        let p = usize::from(p);
        assert_eq!(control, [p, p, 1, 0]);
        assert_eq!(control.iter().sum::<usize>(), 2 * p + 1);
        assert_eq!(directories.len(), m + 1 + 2 * p + 1, "{directories:?}");
    }
}

/// In a stream of releases, each release has its own pending homes, and the totals agree.
#[test]
fn stream_message_counts_match_the_sum_of_its_releases() {
    for stream in [
        [(&[1u8][..], 1), (&[1, 2], 1), (&[][..], 0)],
        [(&[1, 2], 1), (&[2], 2), (&[1], 1)],
        [(&[][..], 0), (&[1], 1), (&[1], 1)],
    ] {
        let program = rounds("a stream", 3, &stream);
        let sent = messages(&wide(3), &program);
        let control = ["NotifyRequest", "Notify", "ReleaseAck", "EmptyRelease"]
            .map(|name| count_named(&sent, name));
        let needed = total_notifications(&sent);
        assert!(needed > 0, "{sent:?}");
        assert_eq!(control, [needed, needed, stream.len(), 0], "{sent:?}");
    }
}

/// The simulator's statistics agree, at whichever homes the seed places the locations. Each run has one round.
#[test]
fn simulated_round_has_the_predicted_message_count() {
    let program = rounds("a round", 2, &[(&[1], 2)]);
    let sent = |text: &str, seed: u64| {
        let protocol = read(text);
        let upper = Level {
            protocol: &protocol,
            home: home(&protocol).clone(),
            caches: 1,
        };
        let machines = [timed::Machine { upper, lower: None }];
        let options = timed::Options {
            cores: options(&protocol).cores,
            runs: 1,
            seed,
        };
        let observed = timed::observe(&machines, &program, &options, &mut || true)
            .expect("the program can be simulated");
        assert_eq!(
            (observed.runs, &observed.failure),
            (1, &None),
            "seed {seed}"
        );
        move |name: &str| observed.messages.get(name).copied().unwrap_or(0)
    };
    let mut pending = [0; 2];
    for seed in 0..40 {
        let strict = sent(SO_STRICT, seed);
        assert_eq!((strict("Write"), strict("StoreAck")), (3, 3), "seed {seed}");
        let source = sent(SO, seed);
        let counts = ["Write", "Release", "StoreAck", "ReleaseAck"].map(source);
        assert_eq!(counts, [2, 1, 2, 1], "seed {seed}");
        let cord = sent(CORD, seed);
        assert_eq!((cord("Relaxed"), cord("Release")), (2, 1), "seed {seed}");
        let p = cord("NotifyRequest");
        let control = (cord("Notify"), cord("ReleaseAck"), cord("EmptyRelease"));
        assert_eq!(control, (p, 1, 0), "seed {seed}");
        pending[p as usize] += 1;
    }
    assert!(pending.iter().all(|&runs| runs > 5), "{pending:?}");
}

/// With one directory, no notifications are needed. `cord` then sends one message per release more than posted stores:
/// its acknowledgement. (A credit of `mp` grants room at a home, which `cord` tracks in its tables.)
#[test]
fn one_directory_sends_no_notifications() {
    let stream = [(&[1u8, 2][..], 2), (&[1][..], 1)];
    let program = rounds("one directory", 3, &stream);
    let cord = messages(&wide(1), &program);
    let posted = messages(&sized(MP, &[("homes", 1), ("credits", 2)]), &program);
    let stores = count_named(&cord, "Relaxed") + count_named(&cord, "Release");
    assert_eq!(
        (count_named(&posted, "Write"), count_named(&cord, "Release")),
        (stores, stream.len())
    );
    assert_eq!(
        (
            count_named(&cord, "NotifyRequest"),
            count_named(&cord, "Notify"),
            total_notifications(&cord)
        ),
        (0, 0, 0)
    );
    let of_posted = posted.len() - count_named(&posted, "Credit");
    assert_eq!(cord.len() - of_posted, stream.len());
    assert_eq!(count_named(&cord, "ReleaseAck"), stream.len());
}
