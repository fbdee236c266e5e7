//! Assignment of steps to rows, which the text and SVG forms share.

use cohkit_base::sequence::{Action, Sequence};

/// Layout of a chart.
pub(crate) struct Layout {
    /// Names of the lifelines.
    pub names: Vec<String>,
    /// Rows in time order.
    pub rows: Vec<Row>,
    /// Messages that other steps overtake in flight, in the order of their sending rows.
    pub flights: Vec<Flight>,
    /// True if any row names a cache line.
    pub has_lines: bool,
}

/// A row of the chart.
pub(crate) struct Row {
    /// Cache line, if any.
    pub line: Option<u32>,
    /// Contents.
    pub item: Item,
}

/// Contents of a row.
pub(crate) enum Item {
    /// A message that is received immediately after it is sent.
    Arrow {
        /// Sender.
        from: LifelinePoint,
        /// Receiver.
        to: LifelinePoint,
        /// Name of the message, with its fields.
        message: String,
    },
    /// Sender's end of a flight: index into [`Layout::flights`].
    Departure(usize),
    /// Receiver's end of a flight: index into [`Layout::flights`].
    Arrival(usize),
    /// A received message that no step sends.
    Stray {
        /// Receiver.
        to: LifelinePoint,
        /// True if the lifeline of the sender is to the left of the receiver's.
        from_left: bool,
        /// Name of the message, with its fields.
        message: String,
    },
    /// A local action of an agent.
    Note { point: LifelinePoint, text: String },
    /// New states of one or more agents, each at most once.
    States(Vec<(LifelinePoint, String)>),
}

/// A point on a lifeline.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct LifelinePoint {
    /// Index of the lifeline.
    pub agent: usize,
    /// False if the home cannot observe the step.
    pub visible: bool,
}

/// A message in flight over several rows.
pub(crate) struct Flight {
    /// Sender, at its lifeline.
    pub from: LifelinePoint,
    /// Receiver, at its lifeline.
    pub to: LifelinePoint,
    /// Name of the message, with its fields.
    pub message: String,
    /// Row of its departure.
    pub sent_row: usize,
    /// Row of its arrival; `None` if it never arrives.
    pub received_row: Option<usize>,
}

impl Layout {
    /// Lays out a sequence. Agents without a name share one additional lifeline, `?`.
    pub fn new(sequence: &Sequence) -> Layout {
        let agent_count = sequence.agents.len();
        let mut names: Vec<String> = sequence
            .agents
            .iter()
            .map(|name| replace_control_characters(name))
            .collect();
        let has_unknown_agent = sequence.steps.iter().any(|step| {
            let partner_agent = match step.action {
                Action::Send { to, .. } => to,
                Action::Receive { from, .. } => from,
                _ => step.agent,
            };
            step.agent.max(partner_agent) >= agent_count
        });
        // All agents missing from the list share one additional lifeline.
        if has_unknown_agent {
            names.push("?".to_string());
        }
        let mut builder = LayoutBuilder {
            sequence,
            receive_steps: receive_steps(sequence),
            rows: Vec::new(),
            flights: Vec::new(),
            flight_of: vec![None; sequence.steps.len()],
            is_shown: vec![false; sequence.steps.len()],
        };
        for index in 0..sequence.steps.len() {
            builder.add_step(index);
        }
        let LayoutBuilder { rows, flights, .. } = builder;
        Layout {
            has_lines: rows.iter().any(|row| row.line.is_some()),
            names,
            rows,
            flights,
        }
    }
}

/// A partly built layout.
struct LayoutBuilder<'s> {
    /// Sequence to be laid out.
    sequence: &'s Sequence,
    /// Per step: the receiving step of a sent message; `None` for other steps and for messages that
    /// are never received.
    receive_steps: Vec<Option<usize>>,
    /// Rows so far.
    rows: Vec<Row>,
    /// Flights of the messages sent so far.
    flights: Vec<Flight>,
    /// Per step: index of the flight that a receiving step ends; `None` for other steps.
    flight_of: Vec<Option<usize>>,
    /// Per step: true if the row of an earlier step shows it.
    is_shown: Vec<bool>,
}

impl LayoutBuilder<'_> {
    /// Adds a step, in a new row or in the last one.
    fn add_step(&mut self, index: usize) {
        if self.is_shown[index] {
            return;
        }
        let sequence = self.sequence;
        let step = &sequence.steps[index];
        let point = LifelinePoint {
            agent: self.lifeline(step.agent),
            visible: step.visible,
        };
        let note = |text: &str| Item::Note {
            point,
            text: replace_control_characters(text),
        };
        let item = match &step.action {
            Action::Send { message, to, .. } if self.lifeline(*to) == point.agent => {
                note(&format!("sends itself {message}"))
            }
            Action::Receive { message, from, .. } if self.lifeline(*from) == point.agent => {
                note(&format!("takes {message} from itself"))
            }
            Action::Send { message, to, .. } => self.send_item(index, point, *to, message),
            Action::Receive { message, from, .. } => match self.flight_of[index] {
                Some(flight) => {
                    self.flights[flight].received_row = Some(self.rows.len());
                    Item::Arrival(flight)
                }
                None => Item::Stray {
                    to: point,
                    from_left: self.lifeline(*from) < point.agent,
                    message: replace_control_characters(message),
                },
            },
            Action::Does { what: action } => note(action),
            Action::Becomes { state } => {
                let state = (point, replace_control_characters(state));
                match self.states_of_last_row(step.line, point.agent) {
                    Some(states) => return states.push(state),
                    None => Item::States(vec![state]),
                }
            }
        };
        self.rows.push(Row {
            line: step.line,
            item,
        });
    }

    /// Index of an agent's lifeline. All agents that the sequence does not list share the last one.
    fn lifeline(&self, agent: usize) -> usize {
        agent.min(self.sequence.agents.len())
    }

    /// Item for sending a message from a point to another agent: an arrow if the message is received immediately,
    /// otherwise the begin of a flight.
    fn send_item(&mut self, index: usize, from: LifelinePoint, to: usize, message: &str) -> Item {
        let sequence = self.sequence;
        let receive_step = self.receive_steps[index];
        let to = LifelinePoint {
            agent: self.lifeline(to),
            visible: receive_step.is_none_or(|receive_step| sequence.steps[receive_step].visible),
        };
        let message = replace_control_characters(message);
        if let Some(receive_step) = receive_step {
            if is_immediate(sequence, index, receive_step) {
                self.is_shown[receive_step] = true;
                return Item::Arrow { from, to, message };
            }
            self.flight_of[receive_step] = Some(self.flights.len());
        }
        self.flights.push(Flight {
            from,
            to,
            message,
            sent_row: self.rows.len(),
            received_row: None,
        });
        Item::Departure(self.flights.len() - 1)
    }

    /// States of the last row, if that row can also show a new state of this agent: states of different agents share a
    /// row, because neither depends on the other.
    fn states_of_last_row(
        &mut self,
        line: Option<u32>,
        agent: usize,
    ) -> Option<&mut Vec<(LifelinePoint, String)>> {
        let Row {
            line: last_line,
            item: Item::States(states),
        } = self.rows.last_mut()?
        else {
            return None;
        };
        let is_shared = *last_line == line && states.iter().all(|(point, _)| point.agent != agent);
        is_shared.then_some(states)
    }
}

impl Layout {
    /// Name of a row's cache line, if it differs from that of the row above.
    pub fn line_name(&self, row: usize) -> Option<String> {
        let line = self.rows[row].line;
        let line_above = row
            .checked_sub(1)
            .and_then(|row_above| self.rows[row_above].line);
        line.filter(|_| line != line_above)
            .map(|line| format!("line {line}"))
    }
}

impl Flight {
    /// Label at the departure. A message that never arrives names its receiver.
    pub fn label(&self, names: &[String]) -> String {
        match self.received_row {
            Some(_) => self.message.clone(),
            None => format!(
                "{} to {}, still in flight",
                self.message, names[self.to.agent]
            ),
        }
    }
}

/// For each sending step, the step that receives the same message; `None` if there is none, and for
/// all other steps.
fn receive_steps(sequence: &Sequence) -> Vec<Option<usize>> {
    let mut receive_steps = vec![None; sequence.steps.len()];
    for (index, step) in sequence.steps.iter().enumerate() {
        let Action::Receive { from, flight, .. } = step.action else {
            continue;
        };
        let sender = (0..index).rev().find(|&earlier| {
            let send_step = &sequence.steps[earlier];
            receive_steps[earlier].is_none()
                && send_step.agent == from
                && matches!(send_step.action, Action::Send { to, flight: sent, .. }
                            if to == step.agent && sent == flight)
        });
        if let Some(sender) = sender {
            receive_steps[sender] = Some(index);
        }
    }
    receive_steps
}

/// True if only state changes of other agents lie between sending and receiving.
fn is_immediate(sequence: &Sequence, send_step: usize, receive_step: usize) -> bool {
    let receiver = sequence.steps[receive_step].agent;
    sequence.steps[send_step].line == sequence.steps[receive_step].line
        && sequence.steps[send_step + 1..receive_step]
            .iter()
            .all(|step| matches!(step.action, Action::Becomes { .. }) && step.agent != receiver)
}

/// Replaces control characters, which would break the drawing.
fn replace_control_characters(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}
