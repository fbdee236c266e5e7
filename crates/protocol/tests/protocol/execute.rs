//! Execution of rows: sets, fields, numbers, faults.

use cohkit_base::random::SplitMix64;
use cohkit_protocol::controller::Event;
use cohkit_protocol::execute::{Act, Changes, Fault, Machine, Outcome, Receiver, Trigger};
use cohkit_protocol::protocol::{Home, MessageId, Protocol};
use cohkit_protocol::text;

/// A home that forwards requests; its messages carry sets.
const TEXT: &str = "protocol p
line 64 bytes
channels { request remote -> home; forward home -> remote; answer remote -> home }
messages { request: Get; forward: Pass (line, others: set of remote, left: count)
           answer: Back (others: set of remote, left: count) }
remote cache {
  states { I; W waits Pass }
  I | load | send Get                                                        | W
  W | Pass | done, send Back (others = others - { self }, left = left)       | I
}
home directory {
  states { H }
  variables { seen: set of remote; n: 0..2 }
  H | Get if count(seen) - 1 < 0 | seen += { sender }, n := 1                       | stay
  H | Get                        | seen += { sender }, send Pass (others = seen, left = count(seen) - n) to seen - { sender } | stay
  H | Back                       | seen := seen - others, n := n + left - count(seen) | stay
}
system three { remotes 3; lines 1 }
";

/// Index of the message with this name.
fn message(protocol: &Protocol, name: &str) -> MessageId {
    let mut ids = protocol.message_ids();
    ids.find(|&id| protocol.message(id).name == name).unwrap()
}

/// Single rows of [`TEXT`]: guards, sets as targets and fields, differences, and a value that does not fit its
/// variable.
#[test]
fn sets_and_numbers_follow_the_rows() {
    let protocol = text::parse(TEXT).unwrap_or_else(|errors| {
        let rendered: String = errors
            .iter()
            .map(|e| e.render("text", TEXT, false))
            .collect();
        panic!("{rendered}")
    });
    let Home::Controller(home) = &protocol.home else {
        panic!("hand-written home")
    };
    let machine = Machine::new(home, 3);
    let mut configuration = machine.initial();
    let (get, pass, back) = (
        message(&protocol, "Get"),
        message(&protocol, "Pass"),
        message(&protocol, "Back"),
    );
    let trigger = |message, sender, fields| Trigger {
        home: 0,
        event: Event::Message(message),
        sender: Some(sender),
        executing_remote: None,
        fields,
    };
    let mut tables = home;

    // Intermediate results may be negative.
    let first = machine
        .step(&mut configuration, trigger(get, 2, &[]), &mut tables)
        .unwrap();
    assert_eq!(
        first,
        Outcome::Taken {
            rule: 0,
            acts: vec![]
        }
    );
    assert_eq!(configuration.slots, [0b100, 1]);

    // Each member of a set except the sender receives the message, which carries the set.
    let second = machine
        .step(&mut configuration, trigger(get, 0, &[]), &mut tables)
        .unwrap();
    let forwarded = Act::Send {
        message: pass,
        to: Receiver::Remote(2),
        fields: vec![0b101, 1],
    };
    assert_eq!(
        second,
        Outcome::Taken {
            rule: 1,
            acts: vec![forwarded]
        }
    );

    // A difference with a set from a message. A value that does not fit its variable is a fault.
    let mut after_answer = configuration.clone();
    let third = machine
        .step(
            &mut after_answer,
            trigger(back, 2, &[0b100, 1]),
            &mut tables,
        )
        .unwrap();
    assert_eq!(
        third,
        Outcome::Taken {
            rule: 2,
            acts: vec![]
        }
    );
    assert_eq!(after_answer.slots, [0b001, 1]);
    let fault = machine
        .step(
            &mut configuration,
            trigger(back, 2, &[0b000, 0]),
            &mut tables,
        )
        .unwrap_err()
        .fault;
    assert_eq!(
        fault,
        Fault::OutOfRange {
            variable: 1,
            value: -1
        }
    );

    // In a remote, with a set from a message on the left.
    let machine = Machine::new(&protocol.remote, 3);
    let mut tables = &protocol.remote;
    let mut waiting = machine.initial();
    waiting.state = 1;
    let arrival = Trigger {
        home: 0,
        event: Event::Message(pass),
        sender: None,
        executing_remote: Some(0),
        fields: &[0b101, 1],
    };
    let outcome = machine.step(&mut waiting, arrival, &mut tables).unwrap();
    let Outcome::Taken { acts, .. } = outcome else {
        panic!("{outcome:?}")
    };
    let back = Act::Send {
        message: back,
        to: Receiver::Home,
        fields: vec![0b100, 1],
    };
    assert_eq!(acts, [Act::Done, back]);
}

/// Short forms of assignment equal the long ones, for every type that has them and all values of small types.
#[test]
fn short_and_long_assignments_are_equivalent() {
    for (ty, values) in [("0..3", 4), ("count", 4), ("set of remote", 8)] {
        for operator in ["+", "-"] {
            let texts = [format!("x {operator}= y"), format!("x := x {operator} y")].map(|action| {
                format!(
                    "protocol p\nline 64 bytes\nchannels {{ request remote -> home; grant home -> remote }}
messages {{ request: Get; grant: Ok (line) }}
remote cache {{ states {{ I; W waits Ok }}
  I | load | send Get | W
  W | Ok | done | I
}}
home directory {{ states {{ H }}
  variables {{ x: {ty}; y: {ty} }}
  H | Get | {action}, send Ok | stay
}}
system three {{ remotes 3; lines 1 }}
"
                )
            });
            let [short, long] =
                texts.map(|text| text::parse(&text).expect("protocol without errors"));
            for x in 0..values {
                for y in 0..values {
                    let [short, long] = [&short, &long].map(|protocol| {
                        let Home::Controller(home) = &protocol.home else {
                            panic!("hand-written home")
                        };
                        let machine = Machine::new(home, 3);
                        let mut configuration = machine.initial();
                        configuration.slots = vec![x, y];
                        let trigger = Trigger {
                            home: 0,
                            event: Event::Message(message(protocol, "Get")),
                            sender: Some(0),
                            executing_remote: None,
                            fields: &[],
                        };
                        let mut tables = home;
                        machine
                            .step(&mut configuration, trigger, &mut tables)
                            .map(|_| configuration)
                    });
                    assert_eq!(short, long, "{ty} {operator} {x} {y}");
                    if let ("set of remote", Ok(configuration)) = (ty, &short) {
                        let members = if operator == "+" { x | y } else { x & !y };
                        assert_eq!(configuration.slots[0], members);
                    }
                }
            }
        }
    }
}

/// Result of an operator on two values.
type Operation = fn(i32, i32) -> i32;

/// Returns a protocol whose home executes one action on `x` and `y` on a request.
fn home_with_action(ty: &str, result_type: &str, action: &str) -> Protocol {
    let text = format!(
        "protocol p\nline 64 bytes\nchannels {{ request remote -> home; grant home -> remote }}
messages {{ request: Get; grant: Ok (line, f: {ty}) }}
remote cache {{ states {{ I; W waits Ok }}
  I | load | send Get | W
  W | Ok | done | I
}}
home directory {{ states {{ H; S }}
  variables {{ x: {ty}; y: {ty}; r: {result_type} }}
  H | Get | {action} | stay
  S | Get | send Ok (f = x) | stay
}}
system three {{ remotes 3; lines 1 }}
"
    );
    text::parse(&text).unwrap_or_else(|errors| {
        let rendered = errors.iter().map(|e| e.render("text", &text, false));
        panic!("{}", rendered.collect::<String>())
    })
}

/// Returns the values of `x` and `r` after the action, and the fields of the message it sent.
fn run_action(protocol: &Protocol, x: u16, y: u16) -> Result<(u16, u16, Vec<u16>), Fault> {
    let Home::Controller(home) = &protocol.home else {
        panic!("hand-written home")
    };
    let machine = Machine::new(home, 3);
    let mut configuration = machine.initial();
    configuration.slots = vec![x, y, 0];
    let trigger = Trigger {
        home: 0,
        event: Event::Message(message(protocol, "Get")),
        sender: Some(0),
        executing_remote: None,
        fields: &[],
    };
    let mut tables = home;
    let outcome = machine.step(&mut configuration, trigger, &mut tables);
    match outcome.map_err(|row_error| row_error.fault)? {
        Outcome::Taken { acts, .. } => {
            let fields = acts.into_iter().find_map(|act| match act {
                Act::Send { fields, .. } => Some(fields),
                _ => None,
            });
            Ok((
                configuration.slots[0],
                configuration.slots[2],
                fields.unwrap_or_default(),
            ))
        }
        other => panic!("{other:?}"),
    }
}

/// Compares every operator with plain arithmetic.
#[test]
fn operators_match_plain_arithmetic() {
    let comparisons: [(&str, Operation); 6] = [
        ("x == y", |x, y| i32::from(x == y)),
        ("x != y", |x, y| i32::from(x != y)),
        ("x < y", |x, y| i32::from(x < y)),
        ("x <= y", |x, y| i32::from(x <= y)),
        ("x > y", |x, y| i32::from(x > y)),
        ("x >= y", |x, y| i32::from(x >= y)),
    ];
    let sums: [(&str, Operation); 3] = [
        ("x + y", |x, y| x + y),
        ("x - y + 3", |x, y| x - y + 3),
        ("3 - (y - x)", |x, y| 3 - (y - x)),
    ];
    let truth_expressions: [(&str, Operation); 4] = [
        ("x and y", |x, y| x & y),
        ("x or y", |x, y| x | y),
        ("not x", |x, _| 1 - x),
        ("x and not y or not x and y", |x, y| x ^ y),
    ];
    let set_expressions: [(&str, Operation); 3] = [
        ("x + y", |x, y| x | y),
        ("x - y", |x, y| x & !y),
        ("x - (y - x) + { sender }", |x, _| x | 1),
    ];
    let set_queries: [(&str, &str, Operation); 4] = [
        ("count(x)", "count", |x, _| x.count_ones() as i32),
        ("count(x - y)", "count", |x, y| (x & !y).count_ones() as i32),
        ("sender in x", "bool", |x, _| x & 1),
        ("none in x", "bool", |_, _| 0),
    ];
    let remote_expressions: [(&str, &str, Operation); 4] = [
        ("x == none", "bool", |x, _| i32::from(x == 0)),
        ("x in { y }", "bool", |x, y| i32::from(x != 0 && x == y)),
        ("x == sender", "bool", |x, _| i32::from(x == 1)),
        // The member of this set is the remote's bit; `none` has none.
        ("{ x }", "set of remote", |x, _| (1 << x) >> 1),
    ];
    let mut cases: Vec<(&str, i32, &str, &str, Operation)> = Vec::new();
    for ty in ["0..3", "count"] {
        cases.extend(comparisons.map(|(e, operation)| (ty, 4, e, "bool", operation)));
        cases.extend(sums.map(|(e, operation)| (ty, 4, e, "0..6", operation)));
    }
    for (ty, values) in [("bool", 2), ("remote", 4), ("set of remote", 8)] {
        let equal = comparisons.into_iter().take(2);
        cases.extend(equal.map(|(e, operation)| (ty, values, e, "bool", operation)));
        let identity: Operation = |x, _| x;
        cases.push((ty, values, "x", ty, identity));
    }
    cases.extend(truth_expressions.map(|(e, operation)| ("bool", 2, e, "bool", operation)));
    cases.extend(
        set_expressions.map(|(e, operation)| ("set of remote", 8, e, "set of remote", operation)),
    );
    cases.extend(
        set_queries
            .map(|(e, result_type, operation)| ("set of remote", 8, e, result_type, operation)),
    );
    cases.extend(
        remote_expressions
            .map(|(e, result_type, operation)| ("remote", 4, e, result_type, operation)),
    );
    for (ty, values, expression, result_type, operation) in cases {
        let protocol = home_with_action(ty, result_type, &format!("r := {expression}"));
        for (x, y) in (0..values).flat_map(|x| (0..values).map(move |y| (x, y))) {
            let actual = run_action(&protocol, x as u16, y as u16).map(|(_, r, _)| i32::from(r));
            assert_eq!(actual, Ok(operation(x, y)), "{ty}: {expression}, {x} {y}");
        }
    }
}

/// A number that does not fit a field is reported with message and field, as is one that does not fit a variable.
#[test]
fn out_of_range_numbers_are_faults() {
    for (ty, operator) in [("0..3", '+'), ("0..3", '-'), ("count", '+'), ("count", '-')] {
        let sent = home_with_action(ty, ty, &format!("send Ok (f = x {operator} y)"));
        let assigned = home_with_action(ty, ty, &format!("x {operator}= y"));
        let ok = message(&sent, "Ok");
        for (x, y) in (0..4).flat_map(|x| (0..4).map(move |y| (x, y))) {
            let value = match operator {
                '+' => i32::from(x) + i32::from(y),
                _ => i32::from(x) - i32::from(y),
            };
            let (sent, assigned) = (run_action(&sent, x, y), run_action(&assigned, x, y));
            match u16::try_from(value) {
                Ok(in_range) if in_range <= 3 => {
                    assert_eq!(sent, Ok((x, 0, vec![in_range])));
                    assert_eq!(assigned, Ok((in_range, 0, vec![])));
                }
                _ => {
                    let fault = Fault::FieldOutOfRange {
                        message: ok,
                        field: 0,
                        value,
                    };
                    assert_eq!(sent, Err(fault));
                    assert_eq!(assigned, Err(Fault::OutOfRange { variable: 0, value }));
                }
            }
        }
    }
}

/// A directory of more remotes than fit in one word of a set.
#[test]
fn large_remote_sets_keep_their_members() {
    let source = include_str!("../../../../protocols/msi.coh");
    let protocol = text::parse(source).unwrap_or_else(|_| panic!("the text is right"));
    let Home::Controller(home) = &protocol.home else {
        panic!("hand-written home")
    };
    const REMOTES: u16 = 4096;
    let machine = Machine::new(home, REMOTES);
    let mut configuration = machine.initial();
    let requests = ["GetS", "PutS", "GetM"].map(|name| message(&protocol, name));
    let mut react = |request: usize, sender: u16| {
        let trigger = Trigger {
            home: 0,
            event: Event::Message(requests[request]),
            sender: Some(sender),
            executing_remote: None,
            fields: &[],
        };
        let mut tables = home;
        let Ok(Outcome::Taken { acts, .. }) =
            machine.step(&mut configuration, trigger, &mut tables)
        else {
            panic!("the directory answers")
        };
        acts
    };
    let mut sharers = std::collections::BTreeSet::new();
    let mut random = SplitMix64::new(1);
    for _ in 0..3000 {
        let sender = random.below(REMOTES.into()) as u16;
        // Remotes join the sharers, join again, or leave.
        match random.below(8) {
            0 => {
                react(1, sender);
                sharers.remove(&sender);
            }
            _ => {
                react(0, sender);
                sharers.insert(sender);
            }
        }
    }
    let (writer, sharer_count) = (*sharers.iter().nth(7).unwrap(), sharers.len());
    sharers.remove(&writer);
    let acts = react(2, writer);
    let mut granted = None;
    let mut invalidated = Vec::new();
    for act in acts {
        match act {
            Act::Send {
                to: Receiver::Remote(to),
                fields,
                ..
            } if to == writer => granted = Some(fields),
            Act::Send {
                to: Receiver::Remote(to),
                fields,
                ..
            } => invalidated.push((to, fields)),
            _ => {}
        }
    }
    assert_eq!(granted, Some(vec![sharer_count as u16 - 1]));
    let expected = sharers.into_iter().map(|sharer| (sharer, vec![writer + 1]));
    assert_eq!(invalidated, expected.collect::<Vec<_>>());
}

/// Registers stored separately get the same values as those stored with the line's slots. Until the rule is confirmed
/// (`redo`), they keep their values.
#[test]
fn separate_registers_are_undone_and_redone() {
    let source = include_str!("../../../../ordering/cord.coh");
    let protocol = text::parse(source).unwrap_or_else(|_| panic!("the text is right"));
    let Home::Controller(home) = &protocol.home else {
        panic!("hand-written home")
    };
    const REMOTES: u16 = 40;
    let (mut random, mut changed) = (SplitMix64::new(0), 0);
    let mut draw = |limit: u16| random.below(limit.into()) as u16;
    for controller in [&protocol.remote, home] {
        let machine = Machine::new(controller, REMOTES);
        let mut combined = machine.initial();
        let mut separate = machine.initial();
        let mut registers = separate.slots.split_off(machine.registers().start);
        let mut changes = Changes::default();
        for _ in 0..20_000 {
            let rule = &controller.rules[usize::from(draw(controller.rules.len() as u16))];
            let fields = [(); 4].map(|()| draw(3));
            let trigger = Trigger {
                home: draw(2),
                event: rule.event,
                sender: Some(draw(REMOTES)),
                executing_remote: Some(draw(REMOTES)),
                fields: &fields,
            };
            let saved_separate = (separate.clone(), registers.clone());
            let saved_combined = combined.clone();
            changes.clear();
            let expected = machine.step(&mut combined, trigger, &mut &*controller);
            let actual = machine.step_with(
                &mut separate,
                (&mut registers, &mut changes),
                trigger,
                &mut &*controller,
            );
            assert_eq!(expected, actual);
            changes.undo(&mut registers);
            assert_eq!(registers, saved_separate.1);
            if !matches!(expected, Ok(Outcome::Taken { .. })) {
                // The state after a fault is unspecified.
                (combined, separate) = (saved_combined, saved_separate.0);
                continue;
            }
            let differs = changes.redo(&mut registers);
            assert_eq!(differs, registers != saved_separate.1);
            assert_eq!(separate.state, combined.state);
            assert_eq!([&separate.slots[..], &registers].concat(), combined.slots);
            changed += u32::from(differs);
        }
    }
    assert!(changed > 100, "registers have changed {changed} times");
}
