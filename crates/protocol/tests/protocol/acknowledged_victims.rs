//! Homes that acknowledge victims: `on VICTIM(r) { answer r with MESSAGE }`.

use cohkit_protocol::construct::explore::Cell;
use cohkit_protocol::construct::fault::FaultKind;
use cohkit_protocol::construct::{construct_to, Construction, ConstructionError, Extent};
use cohkit_protocol::controller::Event;
use cohkit_protocol::execute::{Act, Receiver};
use cohkit_protocol::protocol::{MessageId, Protocol};
use cohkit_protocol::text;

/// TileLink with acknowledged releases.
const TILELINK: &str = include_str!("policies/tilelink.coh");
/// CHI with completed evictions and write-backs.
const CHI: &str = include_str!("policies/chi.coh");

/// Constructs a home and checks quiescence for up to three remotes.
fn construct_for_three(protocol: &Protocol) -> Result<Construction<'_>, ConstructionError> {
    construct_to(
        protocol,
        Extent {
            max_explored_remotes: 3,
            max_quiescence_remotes: 2,
        },
    )
}

/// Message of a protocol with this name.
fn message(protocol: &Protocol, name: &str) -> MessageId {
    let mut messages = protocol.message_ids();
    let message = messages.find(|&message| protocol.message(message).name == name);
    message.expect("the protocol has the message")
}

/// Kind and text of the fault of a protocol, which has one.
fn fault(text: &str) -> (FaultKind, String) {
    let protocol = text::parse(text).expect("the file has no errors");
    match construct_for_three(&protocol).and_then(Construction::sound) {
        Err(ConstructionError::Fault(fault)) => (fault.kind, fault.text),
        Err(ConstructionError::Refused(refusal)) => panic!("refused: {}", refusal.obstacle),
        Ok(_) => panic!("the home has no fault"),
    }
}

/// The text with one replacement, which must be possible.
fn replace(text: &str, from: &str, to: &str) -> String {
    assert_eq!(text.matches(from).count(), 1, "`{from}` occurs once");
    text.replace(from, to)
}

#[test]
fn homes_of_tilelink_and_chi_are_constructed() {
    for (text, states, joint_states) in [(TILELINK, 10, 1645), (CHI, 12, 8507)] {
        let protocol = text::parse(text).expect("the file has no errors");
        let construction = construct_for_three(&protocol).and_then(Construction::sound);
        let construction = match construction {
            Ok(construction) => construction,
            Err(error) => panic!("{error:#?}"),
        };
        for report in &construction.quiescence {
            assert!(report.unexercised.is_empty() && report.stuck == 0);
        }
        assert_eq!(construction.quiescence.len(), 2);
        let joint = construction
            .multi_remote_graph
            .as_ref()
            .map(|graph| graph.states().len());
        assert_eq!(
            (construction.table(true).states.len(), joint),
            (states, Some(joint_states))
        );
    }
}

/// An acknowledgement is sent in every state, before the other messages of the same step.
#[test]
fn each_victim_is_acknowledged_first_and_once() {
    for (text, pairs) in [
        (
            TILELINK,
            [("Release", "ReleaseAck"), ("ReleaseData", "ReleaseAck")],
        ),
        (
            CHI,
            [("WriteBackFull", "CompDBIDResp"), ("Evict", "CompEvict")],
        ),
    ] {
        let protocol = text::parse(text).expect("the file has no errors");
        let construction = construct_for_three(&protocol).and_then(Construction::sound);
        let construction = construction.unwrap_or_else(|_| panic!("the home has no fault"));
        let graph = construction
            .multi_remote_graph
            .as_ref()
            .expect("three remotes");
        for (victim, answer) in pairs {
            let (victim, answer) = (message(&protocol, victim), message(&protocol, answer));
            let mut taken = 0;
            for ((event, sender), cell) in graph.cells.iter().flatten() {
                if *event != Event::Message(victim) {
                    continue;
                }
                let Cell::Take { acts, .. } = cell else {
                    panic!("a victim is taken in every state");
                };
                let sends = acts.iter().filter(|act| act.sent_message() == Some(answer));
                assert_eq!(sends.count(), 1);
                let receiver = match &acts[0] {
                    Act::Send { message, to, .. } => (*message, Some(*to)),
                    _ => panic!("the acknowledgement is the first action"),
                };
                let sender = sender.map(Receiver::Remote);
                assert_eq!(receiver, (answer, sender));
                taken += 1;
            }
            assert!(taken > 10, "the victim arrives in several states");
        }
    }
}

/// A client that stalls a probe until its release is acknowledged needs the acknowledgement.
#[test]
fn missing_acknowledgement_is_a_dead_end() {
    let text = replace(
        TILELINK,
        "  on Release(r)     { answer r with ReleaseAck }\n",
        "",
    );
    let (kind, text) = fault(&text);
    assert_eq!(kind, FaultKind::DeadEnd, "{text}");
    assert!(
        text.contains("`client") && text.contains("waits for `ReleaseAck`"),
        "{text}"
    );
}

/// A probe overtakes the acknowledgement, or the release is not yet received; the client must have a rule for it.
#[test]
fn recall_that_crosses_a_victim_must_be_expected() {
    let text = replace(
        TILELINK,
        "  R        | ProbeToB ProbeToN | stall                |\n",
        "",
    );
    let (kind, text) = fault(&text);
    assert_eq!(kind, FaultKind::UnexpectedMessage);
    assert_eq!(
        text,
        "`ProbeToB` can reach `client` in state `R`, which has no rule for it"
    );
}

/// A cache that has announced its write-back, but not sent the data, must not answer a snoop as if it had no data. The
/// home then cannot distinguish it from a cache without a copy, whose data it would await in vain.
#[test]
fn dirty_line_behind_an_unacknowledged_victim_is_known() {
    let from = "| send SnpRespDataI  | WI";
    let (kind, text) = fault(&replace(CHI, from, "| send SnpRespI      | stay"));
    assert_eq!(kind, FaultKind::MayNotExist, "{text}");
}

/// The home would otherwise not know of the permission, as it grants none.
#[test]
fn acknowledgement_that_raises_a_permission_is_a_fault() {
    let state = replace(
        TILELINK,
        "    R  waits ReleaseAck",
        "    R  holds, waits ReleaseAck",
    );
    let row = "  R        | ReleaseAck        |                      | ";
    let (kind, text) = fault(&replace(&state, &format!("{row}N"), &format!("{row}B")));
    assert_eq!(kind, FaultKind::WrongGrant);
    assert_eq!(
        text,
        "`ReleaseAck` acknowledges the victim `Release`, but raises the permission from that of `R` to that of `B`"
    );
}

/// A demotion keeps a readable copy, before and after its acknowledgement.
#[test]
fn acknowledgement_of_a_demotion_keeps_the_copy() {
    let text = replace(TILELINK, "  c: Release,", "  c: Demote, Release,");
    let text = replace(
        &text,
        "  R  waits ReleaseAck\n",
        "  R  waits ReleaseAck\n    D  reads, waits ReleaseAck\n",
    );
    let text = replace(&text, "  TD       | evict ", "  T        | demote            | send Demote          | D\n  D        | ReleaseAck        |                      | B\n  D        | ProbeToB ProbeToN | stall                |\n  TD       | evict ");
    let text = replace(
        &text,
        "  on Release(r)",
        "  on Demote(r)      { answer r with ReleaseAck }\n  on Release(r)",
    );
    let protocol = text::parse(&text).expect("the file has no errors");
    let construction = construct_for_three(&protocol).and_then(Construction::sound);
    assert!(construction.is_ok(), "{:?}", construction.err());
}
