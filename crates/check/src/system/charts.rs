//! Chart notes of a system: messages in flight, acts of agents, and the states that they reach.

use cohkit_base::sequence::{Action, Sequence, Step};
use cohkit_engine::model::{Expr, Model, Note, Number, Phrase, Stmt, TraceRenderer};
use cohkit_engine::trace_events::{NoteEvent, TraceEvents};

/// An act of an agent, with phrases that are filled in during a trace.
///
/// A receive is matched with the oldest unreceived send of the same words, sender, receiver and line. Models therefore
/// need no identity for their messages.
pub(super) enum Act {
    /// Puts a message into its channel.
    Send {
        /// Name and fields.
        message: Phrase,
        /// Index of the receiver.
        to: Expr,
    },
    /// Takes a message out of its channel.
    Receive {
        /// Name and fields, in the words of the send.
        message: Phrase,
        /// Index of the sender. `None` stands for the sender whose equal message to the receiver is the oldest.
        from: Option<Expr>,
    },
    /// Acts without a message.
    Does(Phrase),
    /// Changes its state.
    Becomes(Phrase),
}

/// Codes of notes: the act in the two lowest bits, and flags. The note's values are the agent, the line if flagged,
/// and the counterpart of a message if known.
mod note_kind {
    /// `Act::Send`.
    pub const SEND: u32 = 0;
    /// `Act::Receive`.
    pub const RECEIVE: u32 = 1;
    /// `Act::Does`.
    pub const DOES: u32 = 2;
    /// `Act::Becomes`.
    pub const BECOMES: u32 = 3;
    /// Mask of the bits that encode the act.
    pub const ACT: u32 = 3;
    /// The note's values contain the number of a line.
    pub const HAS_LINE: u32 = 1 << 2;
    /// The home can observe the act.
    pub const VISIBLE: u32 = 1 << 3;
}

/// Returns the note of an agent's act. `agent` is the index of its lifeline. `line` is `None` if the act is about no
/// line, or the system has one only. `visible` is true if the home can observe the act.
pub(super) fn note(agent: Expr, act: Act, line: Option<Expr>, visible: bool) -> Stmt {
    let (act, counterpart, words) = match act {
        Act::Send { message, to } => (note_kind::SEND, Some(to), message),
        Act::Receive { message, from } => (note_kind::RECEIVE, from, message),
        Act::Does(words) => (note_kind::DOES, None, words),
        Act::Becomes(words) => (note_kind::BECOMES, None, words),
    };
    let line_flag = if line.is_some() {
        note_kind::HAS_LINE
    } else {
        0
    };
    let visible = if visible { note_kind::VISIBLE } else { 0 };
    Stmt::Note(Note::Event {
        kind: act | line_flag | visible,
        values: [Some(agent), line, counterpart]
            .into_iter()
            .flatten()
            .collect(),
        phrase: words,
    })
}

/// Renders charts of systems.
#[derive(Debug)]
pub(super) struct Charts;

impl TraceRenderer for Charts {
    fn begin<'a>(&self, model: &'a Model, _: &[Number]) -> Option<Box<dyn TraceEvents + 'a>> {
        Some(Box::new(Chart {
            model,
            steps: Vec::new(),
            in_flight: Vec::new(),
            flights: 0,
        }))
    }
}

/// A chart under construction.
struct Chart<'a> {
    /// Model whose agents are the lifelines.
    model: &'a Model,
    /// Steps so far.
    steps: Vec<Step>,
    /// Messages in flight, in send order.
    in_flight: Vec<InFlightMessage>,
    /// Number of flights so far, which is the number of the next flight.
    flights: u32,
}

/// A message in flight.
struct InFlightMessage {
    /// Number of its flight.
    flight: u32,
    /// Name and fields, as the chart shows them.
    message: String,
    /// Index of the sender's lifeline.
    from: usize,
    /// Index of the receiver's lifeline.
    to: usize,
    /// Line of the message, if its note has one.
    line: Option<u32>,
}

impl TraceEvents for Chart<'_> {
    fn add_event(&mut self, event: NoteEvent) {
        let mut values = event.values.into_iter();
        let agent = values.next().unwrap_or(0) as usize;
        let line =
            (event.kind & note_kind::HAS_LINE != 0).then(|| values.next().unwrap_or(0) as u32);
        let counterpart = values.next().map(|counterpart| counterpart as usize);
        let words = event.text;
        let action = match event.kind & note_kind::ACT {
            note_kind::SEND => {
                let to = counterpart.unwrap_or(agent);
                let flight = self.next_flight();
                self.in_flight.push(InFlightMessage {
                    flight,
                    message: words.clone(),
                    from: agent,
                    to,
                    line,
                });
                Action::Send {
                    message: words,
                    to,
                    flight,
                }
            }
            note_kind::RECEIVE => {
                let (from, flight) = self.receive(&words, counterpart, agent, line);
                Action::Receive {
                    message: words,
                    from,
                    flight,
                }
            }
            note_kind::DOES => Action::Does { what: words },
            _ => Action::Becomes { state: words },
        };
        self.steps.push(Step {
            agent,
            action,
            line,
            visible: event.kind & note_kind::VISIBLE != 0,
        });
    }

    fn end(self: Box<Self>) -> Sequence {
        Sequence {
            agents: self.model.agents.clone(),
            steps: self.steps,
        }
    }
}

impl Chart<'_> {
    /// Removes the oldest message in flight that matches a receive. Returns the lifeline of its sender, and its flight.
    fn receive(
        &mut self,
        message: &str,
        from: Option<usize>,
        to: usize,
        line: Option<u32>,
    ) -> (usize, u32) {
        let index = self.in_flight.iter().position(|sent| {
            sent.message == message
                && sent.to == to
                && sent.line == line
                && from.is_none_or(|from| sent.from == from)
        });
        match index {
            Some(index) => {
                let sent = self.in_flight.remove(index);
                (sent.from, sent.flight)
            }
            // The message was in flight at the start.
            None => (from.unwrap_or(to), self.next_flight()),
        }
    }

    /// Number of a new flight.
    fn next_flight(&mut self) -> u32 {
        self.flights += 1;
        self.flights - 1
    }
}

#[cfg(test)]
mod tests {
    use super::{Act, Charts};
    use cohkit_base::sequence::{Action, Sequence, Step};
    use cohkit_engine::build::{assert, Builder};
    use cohkit_engine::model::{Model, Piece, Rule, Stmt};
    use cohkit_engine::{check, Options, Outcome, Property};

    /// Agent `a` sends a ping to agent `b`, which takes it, at most twice: the second time an assertion fails. Each
    /// step has notes.
    fn ping_model() -> Model {
        let mut model = Builder::new("ping");
        let kind = model.enumeration("kind", ["none", "ping", "pong"]);
        let (wire, sent) = (model.state("wire", kind), model.range("count", 0, 3));
        let sent = model.state("sent", sent);
        let (a, b) = (model.agent("a"), model.agent("b"));
        let note =
            |agent: i32, act| -> Stmt { super::note(agent.into(), act, Some(0.into()), true) };
        let message = || vec![Piece::Value(wire.into())];
        model.start("quiet", vec![]);
        let send = Act::Send {
            message: message(),
            to: b.into(),
        };
        let send_effects = [wire.set(kind.nth(1)), sent.set(sent + 1), note(a, send)];
        model.rule(
            Rule::new("send")
                .when(wire.is(kind.nth(0)))
                .does(send_effects),
        );
        let receive = Act::Receive {
            message: message(),
            from: Some(a.into()),
        };
        let count = Act::Does(vec![
            Piece::Choice(
                sent.is(2),
                vec![Piece::Text("last of ".into())],
                vec![Piece::Agent(a.into()), Piece::Text(" again ".into())],
            ),
            Piece::Value(sent.into()),
        ]);
        let becomes = Act::Becomes(vec![Piece::Value(wire.is(kind.nth(0)))]);
        model.rule(Rule::new("take").when(wire.is(kind.nth(1))).does([
            note(b, receive),
            note(b, count),
            assert("short", sent.lt(2)),
            wire.clear(),
            note(b, becomes),
        ]));
        model.trace_renderer(&Charts);
        model.build().unwrap()
    }

    /// The chart that the notes of [`ping_model`] make on the path to the failed assertion.
    fn expected_chart() -> Sequence {
        let step = |agent, action| Step {
            agent,
            action,
            line: Some(0),
            visible: true,
        };
        let send = |flight| Action::Send {
            message: "ping".into(),
            to: 1,
            flight,
        };
        let receive = |flight| Action::Receive {
            message: "ping".into(),
            from: 0,
            flight,
        };
        let does = |what: &str| Action::Does { what: what.into() };
        let becomes = Action::Becomes {
            state: "true".into(),
        };
        Sequence {
            agents: vec!["a".into(), "b".into()],
            steps: vec![
                step(0, send(0)),
                step(1, receive(0)),
                step(1, does("a again 1")),
                step(1, becomes),
                step(0, send(1)),
                step(1, receive(1)),
                step(1, does("last of 2")),
            ],
        }
    }

    #[test]
    fn notes_become_a_message_sequence() {
        let report = check(&ping_model(), &Options::default()).unwrap();
        let Outcome::Violated {
            property, trace, ..
        } = report.outcome
        else {
            panic!("the assertion holds: {:?}", report.outcome)
        };
        assert_eq!(property, Property::Assertion("short".into()));
        assert_eq!(trace.sequence, expected_chart());
        assert_eq!(trace.fault.as_deref(), Some("`short` does not hold"));
    }
}
