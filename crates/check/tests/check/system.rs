//! Protocols as models: pinned sizes, and faults that are found. A changed size means that the lowering or a protocol
//! has changed. A fault that is not found means that a property is no longer checked.

use crate::support::{parse_valid, property_name, replace_once, shipped};
use cohkit_base::sequence::Action;
use cohkit_check::system::{assumptions, model, Options, SystemError};
use cohkit_engine::report::{PropertyResult, Status};
use cohkit_engine::search::Engine;
use cohkit_engine::{check, Options as Search, Outcome, Property, Report};
use cohkit_protocol::construct::construct;
use cohkit_protocol::controller::{Controller, Effect, Event, Statement};
use cohkit_protocol::protocol::{Home, Protocol, StateId};
use cohkit_testing::orbits;

/// Form of a home that is constructed from a policy. A hand-written home has only one.
#[derive(Clone, Copy, PartialEq)]
enum HomeForm {
    /// One state for each state that the construction finds.
    Unmerged,
    /// Equivalent states are merged.
    Merged,
}

/// Returns the hand-written home, or the constructed one: plain rows for one remote, factored for more.
fn home(protocol: &Protocol, remotes: u16, form: HomeForm) -> Controller {
    match &protocol.home {
        Home::Controller(home) => home.clone(),
        Home::Policy(_) => {
            let construction = construct(protocol).unwrap_or_else(|error| panic!("{error:?}"));
            let merge = form == HomeForm::Merged;
            match remotes {
                1 => construction.flat(merge),
                _ => construction.factored(merge),
            }
        }
    }
}

/// As [`search_with`], with default options and an unmerged home.
fn search(text: &str, remotes: u16, lines: u8) -> Report {
    search_with(
        text,
        remotes,
        lines,
        &Options::default(),
        HomeForm::Unmerged,
    )
}

/// As [`search_with`], with default options and a merged home.
fn search_merged(text: &str, remotes: u16, lines: u8) -> Report {
    search_with(text, remotes, lines, &Options::default(), HomeForm::Merged)
}

/// Returns the result of a search of every state. A search up to symmetry must agree. It first tries a channel capacity
/// of one message (`trial`), and the stated capacity if that is exceeded.
fn search_with(text: &str, remotes: u16, lines: u8, options: &Options, form: HomeForm) -> Report {
    let protocol = parse_valid(text);
    let home = home(&protocol, remotes, form);
    let search = |options: &Options, symmetry| {
        let model = model(&protocol, &home, remotes, lines, options).unwrap();
        let search = Search {
            threads: 2,
            symmetry,
            ..Search::default()
        };
        check(&model, &search).unwrap()
    };
    let every_state = search(options, false);
    assert!(!every_state.symmetric);
    let small_capacity = Options {
        trial: Some(1),
        ..options.clone()
    };
    let up_to_symmetry = match search(&small_capacity, true) {
        Report {
            outcome: Outcome::Exceeded { .. },
            ..
        } => search(options, true),
        report => report,
    };
    assert_eq!(up_to_symmetry.symmetric, remotes > 1);
    assert!(up_to_symmetry.states <= every_state.states);
    assert_eq!(up_to_symmetry.properties, every_state.properties);
    match (&up_to_symmetry.outcome, &every_state.outcome) {
        (Outcome::Violated { trace, .. }, Outcome::Violated { trace: other, .. })
        | (Outcome::Exceeded { trace, .. }, Outcome::Exceeded { trace: other, .. }) => {
            assert_eq!(trace.steps.len(), other.steps.len());
        }
        (outcome, other) => assert_eq!(outcome, other),
    }
    every_state
}

/// Returns the states and transitions of a verified system.
fn verified_size(report: &Report) -> (u128, u128) {
    if let Outcome::Violated {
        property, message, ..
    } = &report.outcome
    {
        panic!("{property}: {message}");
    }
    assert_eq!(report.outcome, Outcome::Verified);
    (report.states, report.transitions)
}

/// Returns the property that a protocol violates after one change.
fn violated_after_change(text: &str, remotes: u16, from: &str, to: &str) -> String {
    let report = search(&replace_once(text, from, to), remotes, 1);
    violated_property(report, to)
}

/// Returns the violated property of a report.
fn violated_property(report: Report, change: &str) -> String {
    match report.outcome {
        Outcome::Violated {
            property, trace, ..
        } => {
            assert!(!trace.sequence.steps.is_empty());
            property_name(property)
        }
        other => panic!("no violation with `{change}`, but {other:?}"),
    }
}

/// Policy for one remote without non-caching accesses, whose local operations always lock.
const BASE: &str = include_str!("../../../../tests/construction/base.coh");

/// Pins the numbers of states and transitions.
#[test]
fn textbook_protocols_with_three_caches() {
    let size = |name: &str| verified_size(&search(&shipped(name), 3, 1));
    assert_eq!(size("msi"), (24_981, 84_984));
    assert_eq!(size("mesi"), (36_853, 125_565));
    assert_eq!(size("moesi"), (65_317, 209_319));
    assert_eq!(size("token"), (419_136, 1_706_700));
}

/// Both engines give the same report, with one thread and with two.
#[test]
fn machine_code_agrees_with_the_interpreter() {
    for (name, remotes) in [
        ("msi", 3),
        ("mesi", 3),
        ("moesi", 2),
        ("eci", 1),
        ("msi-policy", 3),
    ] {
        let protocol = parse_valid(&shipped(name));
        let home = home(&protocol, remotes, HomeForm::Merged);
        let model = model(&protocol, &home, remotes, 1, &Options::default()).unwrap();
        let run = |engine, threads| {
            let search = Search {
                engine,
                threads,
                decompose: false,
                ..Search::default()
            };
            check(&model, &search).unwrap()
        };
        let plain = run(Engine::Interpreter, 1);
        assert!(plain.states > 400, "{name}");
        for threads in [1, 2] {
            assert_eq!(
                run(Engine::Native, threads),
                plain,
                "{name}, {threads} threads"
            );
        }
    }
}

/// Lines share the queues of forwards, so they are not independent.
#[test]
fn textbook_protocols_with_two_lines() {
    let size = |name: &str| {
        let report = search(&shipped(name), 2, 2);
        assert_eq!(report.components.len(), 1);
        verified_size(&report)
    };
    assert_eq!(size("msi"), (704_457, 3_203_536));
    assert_eq!(size("mesi"), (1_081_033, 4_869_088));
    assert_eq!(size("moesi"), (1_676_129, 6_690_576));
}

/// Pins the sizes of systems with a constructed home.
#[test]
fn policy_home_with_three_remotes_is_verified() {
    let text = shipped("msi-policy");
    let size = |remotes| verified_size(&search(&text, remotes, 1));
    assert_eq!(size(1), (42, 62));
    assert_eq!(size(3), (21_159, 82_629));
}

/// Each fault changes the policy or a message; the home is constructed again.
#[test]
fn back_invalidate_is_verified_and_its_faults_detected() {
    let text = shipped("back-invalidate");
    let report = search_merged(&text, 1, 1);
    assert_eq!(verified_size(&report), (1077, 3112));
    // When the host replaces a line, the home does not learn that its data is newer than memory.
    assert_eq!(
        violated_after_change(
            &text,
            1,
            "MemDirtyEvct (line, dirty)",
            "MemDirtyEvct (line)"
        ),
        "data value"
    );
    // An owner is not informed of sharers that remain.
    assert_eq!(
        violated_after_change(
            &text,
            2,
            "on MemRdOwn(r)    { ensure others(r) == I;",
            "on MemRdOwn(r)    { ensure others(r) <= S;",
        ),
        "single writer"
    );
}

/// Without ordered channels nothing couples two lines: each is explored alone.
#[test]
fn unordered_lines_are_independent() {
    let text = shipped("eci");
    let one_line = search_merged(&text, 1, 1);
    let (states, transitions) = verified_size(&one_line);
    assert_eq!((states, transitions), (15_475, 56_177));
    let two_lines = search_merged(&text, 1, 2);
    assert_eq!(two_lines.components, [states as u64; 2]);
    assert_eq!(two_lines.different, 1);
    assert_eq!(
        verified_size(&two_lines),
        (states * states, 2 * states * transitions)
    );
}

/// Pins the size of the largest of these systems.
#[test]
fn policy_home_with_a_device_and_two_remotes_is_verified() {
    let report = search_merged(&shipped("eci"), 2, 1);
    assert_eq!(verified_size(&report), (973_500, 4_553_136));
}

/// Data is wrong although no cache has an excess permission.
#[test]
fn faults_of_non_caching_accesses_are_detected() {
    let text = shipped("eci");
    // Memory is written while another processor reads its copy.
    assert_eq!(
        violated_after_change(
            &text,
            2,
            "on WriteLine(r)      { ensure others(r) == I;",
            "on WriteLine(r)      { ensure others(r) <= S;"
        ),
        "data value"
    );
    // Memory is read while another processor holds the line.
    let report = search(UNCACHED, 2, 1);
    assert_eq!(violated_property(report, "a read of memory"), "data value");
}

/// A home that answers a non-caching read from memory, even if a cache holds the line.
const UNCACHED: &str = "
protocol uncached
line 64 bytes
channels { request remote -> home; grant home -> remote }
messages {
  request: GetM, PutM (line), ReadOnce
  grant: Data (line), DataOnce (line), PutAck
}
remote cache {
  states { I; M reads writes dirty; IM waits Data; MI waits PutAck; IR waits DataOnce }
  I  | store     | send GetM     | IM
  IM | Data      |               | M
  M  | evict     | send PutM     | MI
  MI | PutAck    |               | I
  I  | read_once | send ReadOnce | IR
  IR | DataOnce  | done          | I
}
home memory {
  states { I; M }
  I   | GetM     | send Data          | M
  M   | GetM     | stall              |
  M   | PutM     | write, send PutAck | I
  I M | ReadOnce | send DataOnce      | stay
}
system two { remotes 2; lines 1 }
";

/// Stores that a hand-written home performs. It may reject some of them temporarily.
const STORES: &str = "
protocol stores
line 64 bytes
channels { request remote -> home; reply home -> remote }
messages {
  request: Read, WriteLine (store), WritePart (partial store)
  reply:   Bytes (line), Written, Again
}
remote cpu {
  states { I; R waits Bytes; W waits Written Again; P waits Written Again }
  I   | load read_once     | send Read      | R
  I   | write_line         | send WriteLine | W
  I   | store write_partial | send WritePart | P
  R   | Bytes              | done           | I
  W P | Written            | done           | I
  W   | Again              | send WriteLine | stay
  P   | Again              | send WritePart | stay
}
home memory {
  states { even; odd }
  even odd | Read                | send Bytes          | stay
  even odd | WriteLine           | write, send Written | stay
  even     | WritePart           | send Again          | odd
  odd      | WritePart           | write, send Written | even
}
";

/// The changed home acknowledges a store and does not write its bytes.
#[test]
fn store_dropped_by_the_home_is_detected() {
    verified_size(&search(STORES, 2, 1));
    let whole_row = "WriteLine           | write, send Written";
    let part_row = "odd      | WritePart           | write, send Written";
    for row in [whole_row, part_row] {
        let dropping_row = row.replace("write, ", "");
        assert_eq!(
            violated_after_change(STORES, 2, row, &dropping_row),
            "data value"
        );
    }
}

/// The write is performed without write permission: other copies are stale from then on.
#[test]
fn write_in_a_shared_copy_is_detected() {
    let text = shipped("msi").replace(
        "  S              | store                   | send GetM                                      | SM_AD\n",
        "  S              | store                   | send GetM                                      | SM_AD\n  I | write_line | send GetS | IW_D\n  IW_D | Data | done | S\n  IW_D | Inv | stall |\n",
    ).replace("    IM_AD  waits", "    IW_D   waits Data\n    IM_AD  waits");
    let report = search(&text, 2, 1);
    assert_eq!(
        violated_property(report, "a write to a shared copy"),
        "data value"
    );
}

/// Each fault changes the protocol file in one place.
#[test]
fn msi_faults_are_detected() {
    let text = shipped("msi");
    let violation = |from, to| violated_after_change(&text, 3, from, to);
    // No invalidation is sent, and none is announced.
    assert_eq!(
        violation(
            "send Data (acks = count(sharers - { sender })), send Inv (requestor = sender) to sharers - { sender },",
            "send Data (acks = 0), send Inv (requestor = sender) to sharers - sharers,"
        ),
        "single writer"
    );
    // One acknowledgement too many is announced.
    assert_eq!(
        violation(
            "acks = count(sharers - { sender })",
            "acks = count(sharers)"
        ),
        "no deadlock"
    );
    // The only current copy is dropped.
    assert_eq!(
        violation(
            "M       | PutM if sender == owner                       | write, send",
            "M       | PutM if sender == owner                       | send"
        ),
        "data value"
    );
    // A sharer that is evicting does not answer.
    assert_eq!(
        violation("  SI_A           | Inv                     | send InvAck to requestor                       | II_A\n", ""),
        "no unexpected message"
    );
    // Forwards may overtake each other and the acknowledgement of a put.
    assert_eq!(
        violation("  ordered forward\n", ""),
        "no unexpected message"
    );
}

/// Each fault changes the protocol file in one place.
#[test]
fn mesi_faults_are_detected() {
    let text = shipped("mesi");
    let violation = |from, to| violated_after_change(&text, 3, from, to);
    // A forward may overtake the exclusive data.
    assert_eq!(
        violation(
            "IS_D IM_AD IM_A SM_AD SM_A | FwdGetS FwdGetM ",
            "IM_AD IM_A SM_AD SM_A | FwdGetS FwdGetM "
        ),
        "no unexpected message"
    );
    // A dirty line is mistaken for a clean one.
    assert_eq!(
        violation(
            "E M     | PutM if sender == owner                            | write, send",
            "E M     | PutM if sender == owner                            | send"
        ),
        "data value"
    );
    // The former owner's line does not reach memory.
    assert_eq!(
        violation(
            "S_D     | Data                                               | write ",
            "S_D     | Data                                               |  "
        ),
        "data value"
    );
}

/// Each fault changes the protocol file in one place.
#[test]
fn moesi_faults_are_detected() {
    let text = shipped("moesi");
    let violation = |from, to| violated_after_change(&text, 3, from, to);
    // The line of an owner that evicts while there are sharers does not reach memory.
    assert_eq!(
        violation(
            "PutM PutO if sender == owner                         | write, send",
            "PutM PutO if sender == owner                         | send"
        ),
        "data value"
    );
    // The owner's new permission overtakes an earlier forward.
    assert_eq!(
        violation(
            "            Inv (requestor: remote), AckCount (acks: count), PutAck\n  response: ",
            "            Inv (requestor: remote), PutAck\n  response: AckCount (acks: count), "
        ),
        "no unexpected message"
    );
    // The directory forgets the sharers when the owner writes.
    assert_eq!(
        violation("send AckCount (acks = count(sharers)), send Inv (requestor = sender) to sharers, sharers", "send AckCount (acks = 0), sharers"),
        "single writer"
    );
}

/// The home is constructed for the changed protocol, and cannot make up for the fault.
#[test]
fn remote_faults_with_a_policy_home_are_detected() {
    let text = shipped("msi-policy");
    let violation = |from, to| violated_after_change(&text, 3, from, to);
    // Sharers are not invalidated when another cache writes.
    assert_eq!(
        violation(
            "on GetM(r)  { ensure others(r) == I;",
            "on GetM(r)  { ensure others(r) <= S;"
        ),
        "single writer"
    );
    // The home does not learn that a victim's line is newer than memory.
    assert_eq!(violation("PutM (line, dirty)", "PutM (line)"), "data value");
}

/// The property that a change to the constructed home of [`BASE`] violates.
fn violated_by_home(change: impl Fn(&mut Controller)) -> String {
    let protocol = parse_valid(BASE);
    let mut home = home(&protocol, 1, HomeForm::Unmerged);
    change(&mut home);
    let model = model(&protocol, &home, 1, 1, &Options::default()).unwrap();
    let report = check(&model, &Search::default()).unwrap();
    violated_property(report, "the changed home")
}

/// Body of the first row for an event that has a wanted statement. Such a row must exist.
fn row_with(
    home: &mut Controller,
    event: Event,
    is_wanted: impl Fn(&Statement) -> bool,
) -> &mut Vec<Statement> {
    let bodies = home
        .rules
        .iter_mut()
        .filter_map(|row| match &mut row.effect {
            Effect::Take { body, .. } if row.event == event => Some(body),
            _ => None,
        });
    let mut bodies = bodies.filter(|body| body.iter().any(&is_wanted));
    bodies.next().unwrap()
}

/// Each fault changes rows of the home after its construction.
#[test]
fn faults_of_a_constructed_home_are_detected() {
    let base = parse_valid(BASE);
    let message = |name: &str| {
        let mut ids = base.message_ids();
        ids.find(|&id| base.message(id).name == name).unwrap()
    };
    let sends = |statement: &Statement| matches!(statement, Statement::Send { .. });
    let writes = |statement: &Statement| *statement == Statement::StartWrite;
    // The device gets the line while the processor may still have it.
    let early = |home: &mut Controller| {
        *row_with(home, Event::Local(1), sends) = vec![Statement::Acknowledge(1)];
    };
    assert_eq!(violated_by_home(early), "single writer");
    // A dirty victim is not written to memory, and its sender gets no response.
    let dirty = Event::Message(message("VictimDirty"));
    let lost = |home: &mut Controller| row_with(home, dirty, writes).clear();
    assert_eq!(violated_by_home(lost), "no deadlock");
    // A request is served while memory is busy.
    let request = Event::Message(message("ReadShared"));
    let busy = |home: &mut Controller| {
        let served = row_with(home, request, |statement| {
            *statement == Statement::StartRead
        })
        .clone();
        let written = home
            .rules
            .iter()
            .filter(|row| row.event == Event::MemoryDone);
        let busy: Vec<StateId> = written.map(|row| row.state).collect();
        for row in &mut home.rules {
            if row.event == request && busy.contains(&row.state) {
                let body = served.clone();
                row.effect = Effect::Take { body, next: None };
            }
        }
    };
    assert_eq!(
        violated_by_home(busy),
        "memory operation while the slot is busy"
    );
    // An unlock is refused.
    let refused = |home: &mut Controller| {
        for row in &mut home.rules {
            if row.event == Event::Unlock {
                row.effect = Effect::Refuse;
            }
        }
    };
    assert_eq!(violated_by_home(refused), "lock");
    // An unlock of a line that is not locked is taken.
    let stray = |home: &mut Controller| {
        for row in &mut home.rules {
            if row.event == Event::Unlock && row.effect == Effect::Refuse {
                let body = vec![Statement::AcknowledgeUnlock];
                row.effect = Effect::Take { body, next: None };
            }
        }
    };
    assert_eq!(violated_by_home(stray), "lock");
}

/// The chart ends with the agent that has no rule, and each receive has a send.
#[test]
fn counterexample_is_a_message_sequence() {
    let text = shipped("msi");
    let changed = text.replace("  SI_A           | Inv                     | send InvAck to requestor                       | II_A\n", "");
    let report = search(&changed, 2, 1);
    let Outcome::Violated { trace, .. } = &report.outcome else {
        panic!("{:?}", report.outcome)
    };
    let sequence = &trace.sequence;
    assert_eq!(sequence.agents[..3], ["cache 0", "cache 1", "directory"]);
    let last = sequence.steps.last().unwrap();
    assert_eq!(
        last.action,
        Action::Does {
            what: "has no rule for this in SI_A".into()
        }
    );
    // Every message that is received has been sent.
    for step in &sequence.steps {
        if let Action::Receive { flight, .. } = step.action {
            assert!(sequence.steps.iter().any(
                |other| matches!(other.action, Action::Send { flight: sent, .. } if sent == flight)
            ));
        }
    }
}

/// A larger capacity decides the same system.
#[test]
fn exceeded_channel_capacity_is_undecided() {
    let options = Options {
        capacity: 1,
        ..Options::default()
    };
    let report = search_with(&shipped("msi"), 3, 1, &options, HomeForm::Unmerged);
    let Outcome::Exceeded { limit, trace } = &report.outcome else {
        panic!("{:?}", report.outcome)
    };
    assert_eq!(limit, "more than 1 message in flight on forward");
    assert_eq!(trace.fault.as_ref(), Some(limit));
    assert!(!trace.sequence.steps.is_empty());
    assert!(report
        .properties
        .iter()
        .all(|result| result.status == Status::Undecided));
    // The limit is no property of the protocol.
    let name = |result: &PropertyResult| result.property.to_string();
    assert!(!report.properties.iter().map(name).any(|n| n == *limit));
    let large_capacity = Options {
        capacity: 255,
        ..Options::default()
    };
    let report = search_with(&shipped("msi"), 3, 1, &large_capacity, HomeForm::Unmerged);
    assert_eq!(verified_size(&report).0, 24_981);
}

/// A bound in the protocol file is a property, unlike the channel capacity.
#[test]
fn exceeded_stated_bound_is_violated_by_name() {
    let bounded = |limit: u16| {
        let bounds = format!("\nbounds {{ in_flight {limit} }}\n\nremote ");
        let text = shipped("msi").replacen("\nremote ", &bounds, 1);
        search(&text, 2, 1)
    };
    let Outcome::Violated { property, .. } = bounded(1).outcome else {
        panic!("more than one message can be in flight")
    };
    let name = "more than 1 message in flight";
    assert_eq!(property, Property::Invariant(name.into()));
    verified_size(&bounded(8));
}

/// With a capacity of one message per line, two lines fit into a queue that both share.
#[test]
fn shared_queue_has_capacity_for_each_line() {
    let options = Options {
        capacity: 1,
        ..Options::default()
    };
    let text = STORES.replace("home -> remote }", "home -> remote; ordered reply }");
    let lines = [1, 2]
        .map(|lines| verified_size(&search_with(&text, 1, lines, &options, HomeForm::Unmerged)).0);
    assert!(lines[0] < lines[1]);
}

/// A verdict lists the bounds that it depends on.
#[test]
fn stated_bounds_are_assumptions() {
    let text = BASE.replace(
        "remote cpu {",
        "bounds {\n  in_flight 8\n  VictimShared 1\n}\n\nremote cpu {",
    );
    assert_eq!(
        assumptions(&parse_valid(&text), false),
        [
            "at most 8 messages in flight per remote and line",
            "at most 1 VictimShared in flight per remote and line; sending another waits"
        ]
    );
    assert!(assumptions(&parse_valid(BASE), false).is_empty());
    verified_size(&search(&text, 1, 1));
}

/// Systems with no or too many remotes or lines.
#[test]
fn sizes_out_of_range_are_rejected() {
    let protocol = parse_valid(&shipped("msi"));
    let home = home(&protocol, 2, HomeForm::Unmerged);
    for (remotes, lines) in [(0, 1), (9, 1), (1, 0), (1, 5)] {
        let error = model(&protocol, &home, remotes, lines, &Options::default()).unwrap_err();
        assert!(matches!(error, SystemError::Size(_)), "{error}");
    }
}

/// The faulty directory takes a put of any cache in the set `late` for the owner's. Regression: the lowering lost the
/// operand of `+=`, so the fault was verified with `+=` and refuted with `:=` and `+`.
#[test]
fn set_addition_reaches_the_model() {
    let msi = shipped("msi")
        .replace(
            "    sharers: set of remote\n",
            "    sharers: set of remote\n    late: set of remote\n",
        )
        .replace(
            "owner, owner := sender     | stay",
            "owner, owner := sender, late := late + { sender } | stay",
        )
        .replace(
            "PutM if sender == owner ",
            "PutM if sender == owner or sender in late ",
        );
    let short = msi.replace("late := late + {", "late += {");
    assert_ne!(msi, short);
    let reports = [msi, short].map(|text| search_merged(&text, 2, 1));
    assert!(matches!(reports[0].outcome, Outcome::Violated { .. }));
    assert_eq!(reports[0], reports[1]);
}

/// Regression, the converse: correct msi, with all changes of sets in the short form, was refuted.
#[test]
fn short_and_long_set_assignments_are_equivalent() {
    let long = shipped("msi");
    let short = long
        .replace("sharers := sharers + {", "sharers += {")
        .replace("sharers := sharers - {", "sharers -= {")
        .replace(
            "sharers := { sender } + { owner }",
            "sharers := { sender }, sharers += { owner }",
        );
    assert_eq!(
        short.matches("sharers += ").count() + short.matches("sharers -= ").count(),
        3
    );
    assert_eq!(
        verified_size(&search_merged(&short, 3, 1)),
        (24_981, 84_984)
    );
}

/// Caching agents of a system are symmetric: a search up to symmetry visits as many orbits as brute force finds among
/// all states.
#[test]
fn remotes_of_systems_are_interchangeable() {
    for (name, remotes) in [
        ("msi", 3),
        ("mesi", 2),
        ("moesi", 2),
        ("write-through", 3),
        ("token", 2),
        ("msi-policy", 3),
    ] {
        let protocol = parse_valid(&shipped(name));
        let home = home(&protocol, remotes, HomeForm::Merged);
        let options = Options {
            trial: Some(3),
            ..Options::default()
        };
        let model = model(&protocol, &home, remotes, 1, &options);
        let model = model.expect("model of the system");
        let names = model
            .interchangeable
            .as_ref()
            .expect("interchangeable remotes")
            .names;
        orbits::assert_orbits(name, &model, names, remotes.into());
    }
}
