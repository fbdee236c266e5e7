//! Protocols with several kinds of remotes, ordered messages, initial values, wrapping counters, and arrays.

use crate::support::{parse_valid, property_name, replace_once};
use cohkit_check::progress::progress;
use cohkit_check::system::{model, Options, SystemError};
use cohkit_engine::model::Model;
use cohkit_engine::{check, Options as Search, Outcome, Property, Report};
use cohkit_murphi::Style;
use cohkit_protocol::construct;
use cohkit_protocol::controller::Controller;
use cohkit_protocol::protocol::Protocol;
use cohkit_protocol::remotes::Remotes;
use cohkit_system::data::Current;
use cohkit_system::state::{explore, Found, Step, System, SystemState};
use cohkit_testing::rumur::{require, rumur, Compiled};

/// CPUs that read and write, and devices that only read. The directory distinguishes the kinds: after a recall for a
/// device, it sends the data of the write-back to the device and keeps no owner.
const CPUS_AND_DEVICES: &str = "
protocol readers \"caches that write beside caches that only read\"
line 64 bytes
channels {
  ask    device -> home
  put    cpu -> home
  reply  home -> remote
  recall home -> cpu
  drop   home -> device
  gone   device -> home
  ordered reply, drop
  ordered recall
}
messages {
  ask: GetS; put: GetM, Put (line)
  reply: Data (line); recall: Recall, Taken; drop: Drop
  gone: Gone
}
remote cpu {
  states { I; M reads writes dirty; W waits Data; P holds dirty, waits Taken; D waits Taken }
  I   | load store | send GetM | W
  W   | Data       |           | M
  M   | evict      | send Put  | P
  P D | Taken      |           | I
  M   | Recall     | send Put  | D
  P   | Recall     |           | stay
  W   | Recall     | stall
  D   | Recall     | unreachable
}
remote device {
  states { I; S reads; W waits Data }
  variables { seen: 0..1 }
  I   | load   | send GetS, seen := 1 | W
  W   | Data   |                      | S
  S   | Drop   | send Gone            | I
  S   | evict  |                      | I
  I   | Drop   | send Gone            | I
  W   | Drop   | send Gone            | stay
}
home directory {
  states { I; S; M; B waits Gone; R waits Put }
  variables { owner: remote; wants: remote; left: count }
  I   | GetS                      | send Data                                                | S
  S   | GetS                      | send Data                                                | stay
  I   | GetM                      | send Data, owner := sender                               | M
  S   | GetM                      | send Drop to device, left := count(device), wants := sender | B
  B   | Gone if left == 1         | send Data to wants, owner := wants, wants := none, left := 0 | M
  B   | Gone                      | left -= 1                                                | stay
  M   | GetS GetM                 | send Recall to owner, wants := sender                    | R
  R   | Put if wants in device    | write, send Taken, send Data to wants, owner := none     | S
  R   | Put                       | write, send Taken, send Data to wants, owner := wants, wants := none | M
  M   | Put                       | write, send Taken, owner := none                         | I
  B R | GetS GetM                 | stall
}
system one   { cpu 1; device 1; lines 1 }
system two   { cpu 2; device 1; lines 1 }
system many  { cpu 1; device 2; lines 1 }
";

/// A response that must not overtake an earlier message of the home.
const ORDERED_LAST: &str = "
protocol last \"a farewell that stays behind\"
line 64 bytes
channels {
  ask remote -> home; reply home -> remote; end home -> remote
  ordered ask
  ordered Last behind Data
}
messages { ask: Get, Bye; reply: Data (line); end: Last }
remote cache {
  states { I; W waits Data; G waits Last }
  I | read_once  | send Get, send Bye | W
  W | Data       | done               | G
  G | Last       |                    | I
}
home memory {
  states { Idle }
  Idle | Get | send Data | stay
  Idle | Bye | send Last | stay
}
system one { remotes 1; lines 1 }
system two { remotes 2; lines 1 }
";

/// Requests that the home must receive in the order in which each remote sends them: Get, then Bye.
const ORDERED_REQUESTS: &str = "
protocol letters \"a letter and its farewell, in order\"
line 64 bytes
channels { ask remote -> home; reply home -> remote; ordered ask per line; ordered reply per line }
messages { ask: Get (again: bool), Bye; reply: Data (line) }
remote cache {
  states { I; W waits Data }
  variables { again: bool }
  I | read_once | send Get (again = again), send Bye, again := true | W
  W | Data      | done                           | I
}
home memory {
  states { Idle; Open }
  variables { who: remote }
  Idle | Get                  | send Data, who := sender | Open
  Open | Get                  | stall
  Open | Bye if sender == who | who := none              | Idle
}
system one { remotes 1; lines 1 }
system two { remotes 2; lines 1 }
system lines { remotes 1; lines 2 }
system both { remotes 2; lines 2 }
";

/// Numbered reads, each answered by data and a note. The notes of two reads may be in flight. Two numbers are therefore
/// too few to distinguish an old note from that of the next read; three suffice.
const NUMBERED_READS: &str = "
protocol numbered \"reads that are numbered\"
line 64 bytes
channels { ask remote -> home; reply home -> remote; note home -> remote; ordered note }
messages { ask: Get (turn: cycle 3); reply: Data (line, turn: cycle 3); note: Note (turn: cycle 3) }
remote cache {
  states { I; W waits Data }
  variables { now: cycle 3; open: 0..3 }
  I | read_once if open < 2 | send Get (turn = now), open += 1 | W
  W | Data if turn == now   | done, now += 1                   | I
  I | Note if turn != now   | open -= 1                        | stay
  W | Note                  | open -= 1                        | stay
}
home memory {
  states { Idle }
  Idle | Get | send Data (turn = turn), send Note (turn = turn) | stay
}
system one { remotes 1; lines 1 }
system two { remotes 2; lines 1 }
";

/// A directory that counts the copies sent to each cache since the last invalidation. Each cache counts the copies
/// received, and acknowledges an invalidation (Drop) only after all copies sent before it.
const COPY_COUNTERS: &str = "
protocol counted \"copies counted for each cache\"
line 64 bytes
size most 2
channels { ask remote -> home; give home -> remote; gone remote -> home; ordered give }
messages {
  ask: GetS, GetM, Put (line)
  give: Data (line), Own (line), Drop (told: 0..most), Recall, Taken
  gone: Gone
}
remote cache {
  states { I; S reads; M reads writes dirty; W waits Data; X waits Own; P holds dirty, waits Taken; D waits Taken }
  variables { copies: 0..most }
  I       | load                       | send GetS              | W
  I S     | store                      | send GetM              | X
  S       | evict                      |                        | I
  W       | Data if copies < most         | copies += 1            | S
  W       | Data                       |                        | S
  X       | Own                        |                        | M
  S       | Drop if copies == told     | send Gone, copies := 0 | I
  I W X   | Drop if copies == told     | send Gone, copies := 0 | stay
  M       | evict                      | send Put               | P
  M       | Recall                     | send Put               | D
  P       | Recall                     |                        | stay
  P D     | Taken                      |                        | I
}
home directory {
  states { I; S; M; B waits Gone; R waits Put; Q waits Put }
  variables { owner: remote; wants: remote; left: count; sharers: set of remote; room: 0..most per remote = most }
  I S     | GetS if room[sender] > 0   | send Data, sharers += { sender }, room[sender] -= 1 | S
  I S     | GetS                       | send Data, sharers += { sender }                    | S
  I       | GetM                       | send Own, owner := sender                           | M
  S       | GetM                       | for r in sharers { send Drop (told = most - room[r]) to r, left += 1 },
                                         wants := sender, sharers := {}, room := most          | B
  B       | Gone if left == 1          | send Own to wants, owner := wants, wants := none, left := 0 | M
  B       | Gone                       | left -= 1                                           | stay
  M       | GetS                       | send Recall to owner, wants := sender, owner := none | R
  M       | GetM                       | send Recall to owner, wants := sender, owner := none | Q
  R       | Put                        | write, send Taken, send Data to wants, sharers += { wants }, room[wants] -= 1, wants := none | S
  Q       | Put                        | write, send Taken, send Own to wants, owner := wants, wants := none | M
  M       | Put                        | write, send Taken, owner := none                    | I
  B R Q   | GetS GetM                  | stall
}
system one { remotes 1; lines 1 }
system two { remotes 2; lines 1 }
system three { remotes 3; lines 1 }
system short { remotes 2; lines 1; most 1 }
";

/// Numbered reads with an array per number: for each number, the cache records whether the note of the last read with
/// this number is outstanding. The home also has an array, indexed by a number.
const NOTE_PER_NUMBER: &str = "
protocol noted \"notes that are told apart by their numbers\"
line 64 bytes
size turns 3
channels { ask remote -> home; reply home -> remote; note home -> remote }
messages { ask: Get (turn: cycle turns); reply: Data (line, turn: cycle turns); note: Note (turn: cycle turns) }
remote cache {
  states { I; W waits Data }
  variables { now: cycle turns; open: 0..1 per turns }
  I   | read_once if open[now] == 0 | send Get (turn = now), open[now] += 1 | W
  W   | Data if turn == now         | done, now += 1                        | I
  I W | Note if open[turn] == 1     | open[turn] := 0                       | stay
}
home memory {
  states { Idle }
  variables { seen: 0..2 per 2 = 1; at: 0..1 }
  Idle | Get if seen[at] >= 1 | send Data (turn = turn), send Note (turn = turn), seen[0] := 0, seen[1] += 1 | stay
  Idle | Get                  | send Data (turn = turn), send Note (turn = turn), seen := 1                  | stay
}
system one { remotes 1; lines 1 }
system two { remotes 2; lines 1; turns 2 }
";

/// A system of a protocol, with its home.
struct SizedSystem {
    /// Protocol with the parameters of the system.
    protocol: Protocol,
    /// Home for two remotes at most.
    home: Controller,
    /// Number of remotes of each kind.
    remotes: Remotes,
    /// Number of lines.
    lines: u8,
}

impl SizedSystem {
    /// Returns the system with this name.
    fn new(text: &str, name: &str) -> SizedSystem {
        let protocol = parse_valid(text);
        let mut systems = protocol.systems.iter();
        let system = systems.find(|system| system.name == name).unwrap();
        let (remotes, lines) = (system.remotes, system.lines);
        let protocol = system.resized_protocol.as_deref().unwrap_or(&protocol);
        SizedSystem {
            home: construct::home(protocol, 2).unwrap(),
            protocol: protocol.clone(),
            remotes,
            lines,
        }
    }

    /// Returns the model of the system.
    fn model(&self) -> Model {
        let (protocol, home) = (&self.protocol, &self.home);
        model(
            protocol,
            home,
            self.remotes,
            self.lines,
            &Options::default(),
        )
        .unwrap()
    }

    /// Explores the system by executing its rows.
    fn explore(&self) -> Found<SystemState<Current>, Step> {
        let capacity = Options::default().capacity;
        let system = System::new(
            &self.protocol,
            &self.home,
            self.remotes,
            self.lines,
            capacity,
        );
        explore(&system, SystemState::new(&system), 200_000)
    }
}

/// Searches a model as a whole, with or without symmetry reduction.
fn search_model(model: &Model, symmetry: bool) -> Report {
    let search = Search {
        symmetry,
        decompose: false,
        ..Search::default()
    };
    check(model, &search).unwrap()
}

/// Checks a system of a protocol. The exploration of executed rows, the search with symmetry reduction, and Rumur must
/// agree with the returned report of a search without symmetry reduction.
fn search_report(text: &str, name: &str) -> Report {
    let system = SizedSystem::new(text, name);
    let model = system.model();
    let (every_state, up_to_symmetry) = (search_model(&model, false), search_model(&model, true));
    assert_symmetry_agrees(&every_state, &up_to_symmetry);
    assert_execution_agrees(system.explore(), &every_state);
    assert_rumur_agrees(&model, &every_state);
    every_state
}

/// Asserts that symmetry reduction keeps the verdict, and the length of the counterexample.
fn assert_symmetry_agrees(every_state: &Report, up_to_symmetry: &Report) {
    assert!(up_to_symmetry.states <= every_state.states);
    match (&every_state.outcome, &up_to_symmetry.outcome) {
        (
            Outcome::Violated { trace, .. },
            Outcome::Violated {
                trace: symmetric_trace,
                ..
            },
        ) => assert_eq!(trace.steps.len(), symmetric_trace.steps.len()),
        (outcome, symmetric_outcome) => assert_eq!(outcome, symmetric_outcome),
    }
}

/// Asserts that executed rows have the states, transitions and verdict of the report.
fn assert_execution_agrees(found: Found<SystemState<Current>, Step>, report: &Report) {
    match (found, &report.outcome) {
        (
            Found::Safe { stuck_path, .. },
            Outcome::Violated {
                property: Property::NoDeadlock,
                ..
            },
        ) => assert!(stuck_path.is_some(), "execution finds no deadlock"),
        (
            Found::Safe {
                states,
                transitions,
                stuck_path,
                ..
            },
            outcome,
        ) => {
            let is_stuck = matches!(
                outcome,
                Outcome::Violated {
                    property: Property::Drain,
                    ..
                }
            );
            assert_eq!(
                (report.states, report.transitions, is_stuck),
                (
                    states.len() as u128,
                    transitions.into(),
                    stuck_path.is_some()
                ),
                "states, transitions, and violation of quiescence"
            );
        }
        (Found::Violated { .. }, Outcome::Violated { .. }) => {}
        (found, outcome) => panic!("execution gives {found:?}, but the model {outcome:?}"),
    }
}

/// Asserts that Rumur has the verdict of the report, and its number of states if there is no violation.
fn assert_rumur_agrees(model: &Model, report: &Report) {
    if !require("rumur") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (holds, states, output) = rumur(model, Style::Plain, Compiled::Unoptimised, folder.path());
    assert_eq!(report.outcome == Outcome::Verified, holds, "{output}");
    if holds {
        assert_eq!(report.states, u128::from(states), "{output}");
    }
}

/// Checks that a system has no violation and makes progress; returns the report.
fn verify(text: &str, name: &str) -> Report {
    let report = search_report(text, name);
    assert_eq!(report.outcome, Outcome::Verified);
    let system = SizedSystem::new(text, name);
    let result = progress(
        &system.protocol,
        &system.home,
        (system.remotes, system.lines),
        &Options::default(),
        &Search::default(),
    )
    .unwrap();
    assert_eq!(result.outcome, Outcome::Verified);
    report
}

/// Returns the property that a protocol violates after `from`, which occurs once, is replaced by `to`.
fn violated_after_change(text: &str, system: &str, from: &str, to: &str) -> String {
    violated_property(&replace_once(text, from, to), system)
}

/// Returns the property that a protocol violates.
fn violated_property(text: &str, system: &str) -> String {
    match search_report(text, system).outcome {
        Outcome::Violated { property, .. } => property_name(property),
        other => panic!("no violation, but {other:?} of {text}"),
    }
}

/// The correct protocol with several numbers of remotes of each kind.
#[test]
fn each_kind_of_remotes_has_its_own_rows() {
    for system in ["one", "two", "many"] {
        verify(CPUS_AND_DEVICES, system);
    }
}

/// Two CPUs and a device are not symmetric like three CPUs: only the two CPUs may be permuted.
#[test]
fn only_agents_of_one_kind_are_symmetric() {
    let states = |name: &str, symmetry| {
        let model = SizedSystem::new(CPUS_AND_DEVICES, name).model();
        search_model(&model, symmetry).states
    };
    // One CPU and one device: no agents to permute.
    assert_eq!(states("one", true), states("one", false));
    for name in ["two", "many"] {
        let (symmetric, all) = (states(name, true), states(name, false));
        assert!(
            symmetric < all && all <= 2 * symmetric,
            "{name}: {symmetric} states up to symmetry of {all}"
        );
    }
}

/// Two seeded faults: the home awaits one device too few, or takes CPUs for devices.
#[test]
fn set_of_a_kind_has_exactly_its_remotes() {
    let drops = "send Drop to device, left := count(device)";
    let name = violated_after_change(
        CPUS_AND_DEVICES,
        "many",
        drops,
        "send Drop to device, left := count(device - { wants })",
    );
    assert_eq!(name, "single writer");
    let name = violated_after_change(
        CPUS_AND_DEVICES,
        "two",
        "if wants in device",
        "if wants in cpu",
    );
    assert_eq!(name, "no unexpected message");
}

/// The total number of remotes is not enough if kinds have different rows.
#[test]
fn system_size_requires_a_count_per_kind() {
    let protocol = parse_valid(CPUS_AND_DEVICES);
    let home = construct::home(&protocol, 2).unwrap();
    let refused = model(&protocol, &home, 2, 1, &Options::default());
    let Err(SystemError::Size(message)) = refused else {
        panic!("{refused:?}")
    };
    assert!(message.ends_with("of each kind: cpu, device"), "{message}");
}

/// MSI with two names for its caches has as many states as with one.
#[test]
fn kinds_with_equal_rows_behave_as_one_kind() {
    let msi = include_str!("../../../../protocols/msi.coh");
    let two = msi
        .replace("remote cache {", "remote left right {")
        .replace(
            "system three_caches { remotes 3; lines 1 }",
            "system s { left 1; right 2; lines 1 }",
        )
        .replace("system two_lines    { remotes 2; lines 2 }", "");
    let report = verify(&two, "s");
    assert_eq!((report.states, report.transitions), (24_981, 84_984));
}

/// The faulty variant lacks the order.
#[test]
fn ordered_message_arrives_after_its_predecessor() {
    for system in ["one", "two"] {
        verify(ORDERED_LAST, system);
    }
    // Without this order, Last may arrive before Data.
    let order = "  ordered Last behind Data\n";
    assert_eq!(
        violated_after_change(ORDERED_LAST, "one", order, ""),
        "no unexpected message"
    );
}

/// An ordered message waits only for earlier messages: here the home sends Last before Data, so Data may overtake Last.
#[test]
fn later_message_does_not_delay_an_ordered_one() {
    let first = ORDERED_LAST.replace("W waits Data;", "N waits Last; F waits Data;").replace("send Get, send Bye | W", "send Bye, send Get | N").replace(
        "  W | Data       | done               | G\n",
        "  N | Last       |                    | F\n  F | Data       | done               | I\n",
    );
    let overtakes = first
        .replace("G waits Last", "")
        .replace("  G | Last       |                    | I\n", "");
    assert_eq!(
        violated_property(&overtakes, "one"),
        "no unexpected message"
    );
    let with_both_orders = first
        .replace("N waits Last;", "N waits Last Data;")
        .replace(
            "  F | Data ",
            "  N | Data       | done               | G\n  F | Data ",
        );
    verify(&with_both_orders, "one");
    verify(&with_both_orders, "two");
}

/// The seeded faults let the home start without tokens or ownership, so that no cache is ever served.
#[test]
fn variables_start_with_declared_initial_values() {
    let text = include_str!("../../../../protocols/token.coh");
    let report = verify(text, "two_caches");
    assert_eq!((report.states, report.transitions), (4_873, 13_960));
    // The home must start with one token per cache, and as the owner.
    let initial_tokens = "held:        count = count(cache)";
    assert_eq!(
        violated_after_change(text, "two_caches", initial_tokens, "held: count"),
        "no deadlock"
    );
    let owner = "owns:        bool = true";
    assert_eq!(
        violated_after_change(text, "two_caches", owner, "owns: bool = false"),
        "no deadlock"
    );
}

/// The number of states shows which lines depend on each other.
#[test]
fn per_line_order_covers_only_messages_of_one_line() {
    let shared_order = ORDERED_REQUESTS.replace(" per line", "");
    let states = |text: &str, system: &str| verify(text, system).states;
    for system in ["one", "two"] {
        assert_eq!(
            states(ORDERED_REQUESTS, system),
            states(&shared_order, system)
        );
    }
    // Without an order across lines, lines are independent: the numbers of states multiply.
    let one_remote = states(ORDERED_REQUESTS, "one");
    assert_eq!(states(ORDERED_REQUESTS, "lines"), one_remote * one_remote);
    assert_ne!(states(&shared_order, "lines"), one_remote * one_remote);
    let two_remotes = states(ORDERED_REQUESTS, "two");
    assert_eq!(states(ORDERED_REQUESTS, "both"), two_remotes * two_remotes);
    // Without an order, Bye may arrive before Get.
    for system in ["one", "lines"] {
        let name = violated_after_change(ORDERED_REQUESTS, system, "; ordered ask per line", "");
        assert_eq!(name, "no unexpected message");
    }
}

/// A counter with too few values takes an old note for a new one.
#[test]
fn wrapping_counters_distinguish_messages_if_large_enough() {
    let states = |size: &str| verify(&NUMBERED_READS.replace("cycle 3", size), "one").states;
    // All numbers of a counter are equivalent, so the number of states is a multiple of its size.
    let three = states("cycle 3");
    assert_eq!(three % 3, 0);
    assert_eq!(states("cycle 6"), 2 * three);
    verify(NUMBERED_READS, "two");
    for faulty in [
        NUMBERED_READS.replace("cycle 3", "cycle 2"),
        // A note may then be delayed while later notes overtake it.
        NUMBERED_READS.replace("; ordered note", ""),
        // In steps of two, a counter modulo 4 has only two values.
        NUMBERED_READS
            .replace("cycle 3", "cycle 4")
            .replace("now += 1", "now += 2"),
    ] {
        assert_eq!(violated_property(&faulty, "one"), "no unexpected message");
    }
}

/// Each seeded fault resets or initialises an array element wrongly, leaves out a member of a loop, or drops a guard.
#[test]
fn arrays_are_indexed_by_remote_and_loops_cover_sets() {
    for (system, states) in [("one", 23), ("two", 613)] {
        assert_eq!(verify(COPY_COUNTERS, system).states, states);
    }
    let reset = "room := most";
    let property = violated_after_change(COPY_COUNTERS, "two", reset, "room[sender] := most");
    assert_eq!(property, "no unexpected message");
    let initial_value = "per remote = most";
    let property = violated_after_change(COPY_COUNTERS, "one", initial_value, "per remote = 1");
    assert_eq!(property, "no unexpected message");
    let loop_set = "for r in sharers {";
    let property = violated_after_change(
        COPY_COUNTERS,
        "two",
        loop_set,
        "for r in sharers - { sender } {",
    );
    assert_eq!(property, "no deadlock");
    // Without its guard, the counter `room` falls below its range.
    let guard = "GetS if room[sender] > 0";
    let property = violated_after_change(COPY_COUNTERS, "one", guard, "GetS if room[sender] >= 0");
    assert_eq!(property, "values in range");
    // The message names the variable as in the protocol file.
    let below = search_report(
        &COPY_COUNTERS.replace(guard, "GetS if room[sender] >= 0"),
        "one",
    );
    let Outcome::Violated { message, .. } = below.outcome else {
        panic!("{:?}", below.outcome);
    };
    let expected = "the value -1 is stored in `directory.room`, which holds 0..2";
    assert_eq!(message, expected);
}

/// A system with its own sizes is equivalent to a file with these sizes.
#[test]
fn system_overrides_sizes_of_the_file() {
    let short = verify(COPY_COUNTERS, "short");
    let text = COPY_COUNTERS.replace("size most 2", "size most 1");
    let resized = verify(&text, "two");
    assert_eq!(
        (short.states, short.transitions),
        (resized.states, resized.transitions)
    );
    assert_eq!(short.states, 374);
}

/// Each seeded fault leads to an index or a value out of range.
#[test]
fn arrays_are_indexed_by_numbers() {
    for system in ["one", "two"] {
        verify(NOTE_PER_NUMBER, system);
    }
    for (from, to) in [
        // The cache reuses a number while its note is outstanding.
        ("if open[now] == 0", "if open[now] <= 1"),
        // The home resets only one of two elements.
        ("seen := 1", "seen[0] := 1"),
        // An initial value is too large for the increment.
        ("per 2 = 1", "per 2 = 2"),
        // The index is out of range.
        ("at: 0..1", "at: 0..2 = 2"),
    ] {
        let property = violated_after_change(NOTE_PER_NUMBER, "one", from, to);
        assert_eq!(property, "values in range", "{to}");
    }
}
