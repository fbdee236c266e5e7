//! Charts of example sequences, compared with golden files.

use cohkit_base::sequence::{Action, Sequence, Step};
use cohkit_chart::{json, svg, text, Text};
use expect_test::{expect, expect_file, Expect};

/// Builder for sequences.
struct SequenceBuilder {
    /// Sequence built so far.
    sequence: Sequence,
    /// Cache line of the following steps; `None` if the sequence has only one.
    line: Option<u32>,
}

impl SequenceBuilder {
    fn new(agents: &[&str]) -> SequenceBuilder {
        SequenceBuilder {
            sequence: Sequence {
                agents: agents.iter().map(ToString::to_string).collect(),
                steps: Vec::new(),
            },
            line: None,
        }
    }

    /// Adds a step of an agent.
    fn step(mut self, agent: usize, action: Action) -> SequenceBuilder {
        self.sequence.steps.push(Step {
            agent,
            action,
            line: self.line,
            // The home is agent 0; only its own steps are visible.
            visible: agent == 0,
        });
        self
    }

    /// Sets the cache line of the following steps.
    fn line(mut self, line: u32) -> SequenceBuilder {
        self.line = Some(line);
        self
    }

    fn does(self, agent: usize, what: &str) -> SequenceBuilder {
        self.step(agent, Action::Does { what: what.into() })
    }

    fn becomes(self, agent: usize, state: &str) -> SequenceBuilder {
        self.step(
            agent,
            Action::Becomes {
                state: state.into(),
            },
        )
    }

    fn send(self, agent: usize, message: &str, to: usize, flight: u32) -> SequenceBuilder {
        let message = message.into();
        self.step(
            agent,
            Action::Send {
                message,
                to,
                flight,
            },
        )
    }

    fn receive(self, agent: usize, message: &str, from: usize, flight: u32) -> SequenceBuilder {
        let message = message.into();
        self.step(
            agent,
            Action::Receive {
                message,
                from,
                flight,
            },
        )
    }
}

/// A forward that overtakes a grant.
fn overtaken() -> Sequence {
    SequenceBuilder::new(&["home", "cpu"])
        .does(1, "store")
        .send(1, "Upgrade", 0, 0)
        .becomes(1, "SE")
        .receive(0, "Upgrade", 1, 0)
        .send(0, "GrantExclusive", 1, 1)
        .becomes(0, "E")
        .does(0, "clean_invalidate_lock is asked for")
        .send(0, "ForwardInvalid", 1, 2)
        .receive(1, "ForwardInvalid", 0, 2)
        .send(1, "AckDroppedUpgrading", 0, 3)
        .becomes(1, "IE")
        .receive(0, "AckDroppedUpgrading", 1, 3)
        .becomes(0, "I")
        .receive(1, "GrantExclusive", 0, 1)
        .becomes(1, "E")
        .sequence
}

/// Three caches and two lines, with messages between caches and across lifelines.
fn three_caches() -> Sequence {
    SequenceBuilder::new(&["directory", "cache 0", "cache 1", "cache 2"])
        .line(0)
        .does(3, "store")
        .send(3, "GetM", 0, 0)
        .receive(0, "GetM", 3, 0)
        .send(0, "Inv(requestor=2)", 1, 1)
        .send(0, "Inv(requestor=2)", 2, 2)
        .send(0, "Data(acks=2)", 3, 3)
        .becomes(0, "M")
        .line(1)
        .does(1, "load")
        .send(1, "GetS", 0, 4)
        .line(0)
        .receive(2, "Inv(requestor=2)", 0, 2)
        .send(2, "InvAck", 3, 5)
        .receive(3, "InvAck", 2, 5)
        .becomes(2, "I")
        .becomes(3, "IM_AD{acks=1}")
        .receive(1, "Inv(requestor=2)", 0, 1)
        .send(1, "InvAck", 3, 6)
        .becomes(1, "I")
        .line(1)
        .receive(0, "GetS", 1, 4)
        .line(0)
        .receive(3, "Data(acks=2)", 0, 3)
        .becomes(3, "IM_A{acks=1}")
        .sequence
}

/// Asserts that the text chart of a sequence is the expected one.
fn assert_drawn(sequence: &Sequence, options: Text, expected: Expect) {
    expected.assert_eq(&text(sequence, &options));
}

#[test]
fn overtaken_message_is_drawn_in_flight() {
    assert_drawn(
        &overtaken(),
        Text::default(),
        expect![[r#"
             home                          cpu
              │                             │
              │                             • store
              │◀───────── Upgrade ──────────•
              │                            [SE]•
              ├───── GrantExclusive ─────┐  │
             [E]                         ╎  │
              ■ clean_invalidate_lock is ╎  │
              │ asked for                ╎  │
              ├────── ForwardInvalid ────┼─▶•
              │◀─── AckDroppedUpgrading ─┼──•
             [I]                         ╎ [IE]•
              │                          └─▶• GrantExclusive
              │                            [E]•
              │                             │
        "#]],
    );
}

#[test]
fn ascii_has_the_same_shape() {
    let ascii = Text {
        ascii: true,
        ..Text::default()
    };
    assert_drawn(
        &overtaken(),
        ascii,
        expect![[r#"
             home                          cpu
              |                             |
              |                             * store
              |<--------- Upgrade ----------*
              |                            [SE]*
              +----- GrantExclusive -----.  |
             [E]                         :  |
              # clean_invalidate_lock is :  |
              | asked for                :  |
              +------ ForwardInvalid ----+->*
              |<--- AckDroppedUpgrading -+--*
             [I]                         : [IE]*
              |                          '->* GrantExclusive
              |                            [E]*
              |                             |
        "#]],
    );
}

#[test]
fn several_agents_and_lines() {
    assert_drawn(
        &three_caches(),
        Text::default(),
        expect![[r#"
                     directory                  cache 0               cache 1                       cache 2
                         │                         │                     │                             │
            line 0       │                         │                     │                             • store
                         │◀────────────────────────┼─────────────────────┼─────────── GetM ────────────•
                         ├── Inv(requestor=2) ──┐  │                     │                             │
                         ├─── Inv(requestor=2) ─┼──┼──────────────────┐  │                             │
                         ├───── Data(acks=2) ───┼──┼──────────────────┼──┼────────────────────┐        │
                        [M]                     ╎  │                  ╎  │                    ╎        │
            line 1       │                      ╎  • load             ╎  │                    ╎        │
                         │  ┌──────── GetS ─────┼──•                  ╎  │                    ╎        │
            line 0       │  ╎                   ╎  │                  └─▶• Inv(requestor=2)   ╎        │
                         │  ╎                   ╎  │                     •────────── InvAck ──┼───────▶•
                         │  ╎                   ╎  │                    [I]•                  ╎ [IM_AD{acks=1}]•
                         │  ╎                   └─▶• Inv(requestor=2)    │                    ╎        │
                         │  ╎                      •────── InvAck ───────┼──────────────────┐ ╎        │
                         │  ╎                     [I]•                   │                  ╎ ╎        │
            line 1       │◀─┘ GetS                 │                     │                  ╎ ╎        │
            line 0       │                         │                     │                  ╎ └───────▶• Data(acks=2)
                         │                         │                     │                  ╎    [IM_A{acks=1}]•
                         │                         │                     │                  ╎          │

            still in flight: InvAck from cache 0 to cache 2
        "#]],
    );
}

#[test]
fn names_are_shortened_to_fit_and_listed() {
    let narrow = Text {
        width: Some(60),
        ..Text::default()
    };
    let chart = text(&three_caches(), &narrow);
    assert!(chart.lines().all(|line| line.chars().count() <= 60));
    assert_drawn(
        &three_caches(),
        narrow,
        expect![[r#"
                    direct…   cache 0 cache 1         cache 2
                       │         │       │               │
            line 0     │         │       │               • store
                       │◀────────┼───────┼──── GetM ─────•
                       ├ In… ─┐  │       │               │
                       ├ Inv(reques… ─┐  │               │
                       ├───── Data(acks=2) ─────┐        │
                      [M]     ╎  │    ╎  │      ╎        │
            line 1     │      ╎  • load  │      ╎        │
                       │  ┌ Ge… ─•    ╎  │      ╎        │
            line 0     │  ╎   ╎  │    └─▶• Inv(requesto… │
                       │  ╎   ╎  │       •─── InvAck ───▶•
                       │  ╎   ╎  │      [I]•    ╎ [IM_AD{acks=1}]•
                       │  ╎   └─▶• Inv(… │      ╎        │
                       │  ╎      •── InvAck ──┐ ╎        │
                       │  ╎     [I]•     │    ╎ ╎        │
            line 1     │◀─┘ GetS │       │    ╎ ╎        │
            line 0     │         │       │    ╎ └───────▶• Data(acks…
                       │         │       │    ╎    [IM_A{acks=1}]•
                       │         │       │    ╎          │

            still in flight: InvAck from cache 0 to cache 2

            shortened:
              direct… is directory
              In… is Inv(requestor=2)
              Inv(reques… is Inv(requestor=2)
              Ge… is GetS
              Inv(requesto… is Inv(requestor=2)
              Inv(… is Inv(requestor=2)
              Data(acks… is Data(acks=2)
        "#]],
    );
}

/// Receives without a send, a message of an agent to itself, and an agent that the list lacks.
#[test]
fn unmatched_receive_is_drawn_with_unknown_origin() {
    let sequence = SequenceBuilder::new(&["home", "cpu"])
        .receive(1, "Data", 0, 7)
        .receive(0, "AckNone", 1, 8)
        .send(1, "Data", 1, 9)
        .receive(5, "Data", 0, 9)
        .sequence;
    assert_drawn(
        &sequence,
        Text::default(),
        expect![[r#"
             home           cpu                   ?
              │              │                    │
              │           ?─▶• Data               │
              │◀─? AckNone   │                    │
              │              • sends itself Data  │
              │              │                 ?─▶• Data
              │              │                    │
        "#]],
    );
}

/// Without agents there is no chart; without steps, only lifelines.
#[test]
fn empty_sequence_draws_lifelines_only() {
    assert_drawn(&Sequence::default(), Text::default(), expect![[""]]);
    assert_drawn(
        &SequenceBuilder::new(&["home", "cpu"]).sequence,
        Text::default(),
        expect![[r#"
             home   cpu
              │      │
        "#]],
    );
}

#[test]
fn svg_matches_the_recorded_files() {
    expect_file!["../overtaken.svg"]
        .assert_eq(&svg(&overtaken(), "A grant overtaken by a forward"));
    expect_file!["../three_caches.svg"].assert_eq(&svg(&three_caches(), "Invalidations & <data>"));
}

#[test]
fn json_lists_the_sequence_steps() {
    let sequence = SequenceBuilder::new(&["home", "cpu"])
        .line(0)
        .does(1, "load")
        .send(1, "ReadShared", 0, 0)
        .receive(0, "ReadShared", 1, 0)
        .becomes(0, "S")
        .sequence;
    expect![[r#"
        {
          "agents": [
            "home",
            "cpu"
          ],
          "steps": [
            {
              "action": {
                "kind": "does",
                "what": "load"
              },
              "agent": 1,
              "line": 0,
              "visible": false
            },
            {
              "action": {
                "flight": 0,
                "kind": "send",
                "message": "ReadShared",
                "to": 0
              },
              "agent": 1,
              "line": 0,
              "visible": false
            },
            {
              "action": {
                "flight": 0,
                "from": 1,
                "kind": "receive",
                "message": "ReadShared"
              },
              "agent": 0,
              "line": 0,
              "visible": true
            },
            {
              "action": {
                "kind": "becomes",
                "state": "S"
              },
              "agent": 0,
              "line": 0,
              "visible": true
            }
          ]
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&json(&sequence)).unwrap());
}
