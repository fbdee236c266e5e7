//! What rows do when they are executed: sets, fields, amounts, faults.

use cohkit_protocol::controller::Event;
use cohkit_protocol::execute::{Act, Fault, Machine, Occasion, Outcome, Receiver};
use cohkit_protocol::protocol::{Home, MessageId, Protocol};
use cohkit_protocol::text;

/// A home that passes requests on; sets travel in messages.
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

fn message(protocol: &Protocol, name: &str) -> MessageId {
    let mut ids = protocol.message_ids();
    ids.find(|&id| protocol.message(id).name == name).unwrap()
}

#[test]
fn sets_and_amounts() {
    let protocol = text::parse(TEXT).unwrap_or_else(|errors| {
        let shown: String = errors
            .iter()
            .map(|e| e.render("text", TEXT, false))
            .collect();
        panic!("{shown}")
    });
    let Home::Controller(home) = &protocol.home else {
        panic!("a home by hand")
    };
    let machine = Machine::new(home, 3);
    let mut at = machine.initial();
    let (get, pass, back) = (
        message(&protocol, "Get"),
        message(&protocol, "Pass"),
        message(&protocol, "Back"),
    );
    let take = |message, sender, fields| Occasion {
        event: Event::Message(message),
        sender: Some(sender),
        own: None,
        fields,
    };
    let mut tables = home;

    // An amount below zero is an amount.
    let first = machine
        .step(&mut at, take(get, 2, &[]), &mut tables)
        .unwrap();
    assert_eq!(
        first,
        Outcome::Taken {
            rule: 0,
            acts: vec![]
        }
    );
    assert_eq!(at.slots, [0b100, 1]);

    // Each member of a set but the sender is told; the set travels in the message.
    let second = machine
        .step(&mut at, take(get, 0, &[]), &mut tables)
        .unwrap();
    let told = Act::Send {
        message: pass,
        to: Receiver::Remote(2),
        fields: vec![0b101, 1],
    };
    assert_eq!(
        second,
        Outcome::Taken {
            rule: 1,
            acts: vec![told]
        }
    );

    // A difference with a set that came in a message. What does not fit a variable is a fault.
    let mut other = at.clone();
    let third = machine
        .step(&mut other, take(back, 2, &[0b100, 1]), &mut tables)
        .unwrap();
    assert_eq!(
        third,
        Outcome::Taken {
            rule: 2,
            acts: vec![]
        }
    );
    assert_eq!(other.slots, [0b001, 1]);
    let fault = machine
        .step(&mut at, take(back, 2, &[0b000, 0]), &mut tables)
        .unwrap_err()
        .fault;
    assert_eq!(
        fault,
        Fault::OutOfRange {
            variable: 1,
            value: -1
        }
    );

    // In a remote, a set from a message on the left.
    let machine = Machine::new(&protocol.remote, 3);
    let mut tables = &protocol.remote;
    let mut waiting = machine.initial();
    waiting.state = 1;
    let arrives = Occasion {
        event: Event::Message(pass),
        sender: None,
        own: Some(0),
        fields: &[0b101, 1],
    };
    let outcome = machine.step(&mut waiting, arrives, &mut tables).unwrap();
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

/// Of every type that has short forms of assignment, for all values of small types.
#[test]
fn short_forms_of_assignments_do_what_the_long_ones_do() {
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
            let [short, long] = texts.map(|text| text::parse(&text).expect("a sound text"));
            for x in 0..values {
                for y in 0..values {
                    let [short, long] = [&short, &long].map(|protocol| {
                        let Home::Controller(home) = &protocol.home else {
                            panic!("a home by hand")
                        };
                        let machine = Machine::new(home, 3);
                        let mut at = machine.initial();
                        at.slots = vec![x, y];
                        let occasion = Occasion {
                            event: Event::Message(message(protocol, "Get")),
                            sender: Some(0),
                            own: None,
                            fields: &[],
                        };
                        let mut tables = home;
                        machine.step(&mut at, occasion, &mut tables).map(|_| at)
                    });
                    assert_eq!(short, long, "{ty} {operator} {x} {y}");
                    if let ("set of remote", Ok(at)) = (ty, &short) {
                        let members = if operator == "+" { x | y } else { x & !y };
                        assert_eq!(at.slots[0], members);
                    }
                }
            }
        }
    }
}
