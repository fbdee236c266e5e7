//! Which step stands in which row: what text and SVG have in common.

use cohkit_base::sequence::{Action, Sequence};

/// A chart before it is drawn.
pub(crate) struct Layout {
    /// Names of the lifelines.
    pub names: Vec<String>,
    /// The rows, in time order.
    pub rows: Vec<Row>,
    /// Messages that are passed by other steps while in flight, by the row they are sent in.
    pub flights: Vec<Flight>,
    /// Whether any row names a cache line.
    pub has_lines: bool,
}

/// One row.
pub(crate) struct Row {
    /// The cache line it is about.
    pub line: Option<u32>,
    /// What is drawn.
    pub item: Item,
}

/// What a row shows.
pub(crate) enum Item {
    /// A message that is sent and at once received.
    Arrow { from: End, to: End, message: String },
    /// The sender's end of a flight: index into [`Layout::flights`].
    Departure(usize),
    /// The receiver's end of a flight.
    Arrival(usize),
    /// A message that arrives though no step sends it.
    Stray {
        to: End,
        left: bool,
        message: String,
    },
    /// Something an agent does by itself.
    Note { at: End, what: String },
    /// New states of one or more agents.
    States(Vec<(End, String)>),
}

/// Where something touches a lifeline.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct End {
    /// The lifeline.
    pub agent: usize,
    /// False if the home cannot see it.
    pub visible: bool,
}

/// A message in flight over several rows.
pub(crate) struct Flight {
    pub from: End,
    pub to: End,
    pub message: String,
    /// The row of its departure.
    pub sent: usize,
    /// The row of its arrival, if it arrives.
    pub received: Option<usize>,
}

impl Layout {
    pub fn new(sequence: &Sequence) -> Layout {
        let known = sequence.agents.len();
        let mut names: Vec<String> = sequence.agents.iter().map(|name| clean(name)).collect();
        let unknown = sequence.steps.iter().any(|step| {
            let other = match step.action {
                Action::Send { to, .. } => to,
                Action::Receive { from, .. } => from,
                _ => step.agent,
            };
            step.agent.max(other) >= known
        });
        // Whoever is not in the list of agents shares one more lifeline.
        if unknown {
            names.push("?".to_string());
        }
        let mut drawing = Drawing {
            sequence,
            partners: partners(sequence),
            rows: Vec::new(),
            flights: Vec::new(),
            flight_of: vec![None; sequence.steps.len()],
            drawn: vec![false; sequence.steps.len()],
        };
        for index in 0..sequence.steps.len() {
            drawing.step(index);
        }
        let Drawing { rows, flights, .. } = drawing;
        Layout {
            has_lines: rows.iter().any(|row| row.line.is_some()),
            names,
            rows,
            flights,
        }
    }
}

/// What is drawn so far of a sequence.
struct Drawing<'s> {
    sequence: &'s Sequence,
    /// For each sending its receiving, and the reverse.
    partners: Vec<Option<usize>>,
    rows: Vec<Row>,
    flights: Vec<Flight>,
    /// Of receivings, the flight that they end.
    flight_of: Vec<Option<usize>>,
    /// Steps that stand in the row of an earlier one.
    drawn: Vec<bool>,
}

impl Drawing<'_> {
    /// Adds a step, in a row of its own or in the last one.
    fn step(&mut self, index: usize) {
        if self.drawn[index] {
            return;
        }
        let sequence = self.sequence;
        let step = &sequence.steps[index];
        let place = |agent: usize| agent.min(sequence.agents.len());
        let here = End {
            agent: place(step.agent),
            visible: step.visible,
        };
        let item = match &step.action {
            Action::Send { message, to, .. } if place(*to) == here.agent => Item::Note {
                at: here,
                what: clean(&format!("sends itself {message}")),
            },
            Action::Receive { message, from, .. } if place(*from) == here.agent => Item::Note {
                at: here,
                what: clean(&format!("takes {message} from itself")),
            },
            Action::Send { message, to, .. } => {
                let partner = self.partners[index];
                let to = End {
                    agent: place(*to),
                    visible: partner.is_none_or(|taken| sequence.steps[taken].visible),
                };
                let message = clean(message);
                match partner {
                    Some(taken) if at_once(sequence, index, taken) => {
                        self.drawn[taken] = true;
                        Item::Arrow {
                            from: here,
                            to,
                            message,
                        }
                    }
                    _ => {
                        if let Some(taken) = partner {
                            self.flight_of[taken] = Some(self.flights.len());
                        }
                        self.flights.push(Flight {
                            from: here,
                            to,
                            message,
                            sent: self.rows.len(),
                            received: None,
                        });
                        Item::Departure(self.flights.len() - 1)
                    }
                }
            }
            Action::Receive { message, from, .. } => match self.flight_of[index] {
                Some(flight) => {
                    self.flights[flight].received = Some(self.rows.len());
                    Item::Arrival(flight)
                }
                None => Item::Stray {
                    to: here,
                    left: place(*from) < here.agent,
                    message: clean(message),
                },
            },
            Action::Does { what } => Item::Note {
                at: here,
                what: clean(what),
            },
            Action::Becomes { state } => {
                let state = clean(state);
                // States of different agents may share a row: neither waits for the other.
                if let Some(Row {
                    line,
                    item: Item::States(states),
                }) = self.rows.last_mut()
                {
                    if *line == step.line && states.iter().all(|(end, _)| end.agent != here.agent) {
                        states.push((here, state));
                        return;
                    }
                }
                Item::States(vec![(here, state)])
            }
        };
        self.rows.push(Row {
            line: step.line,
            item,
        });
    }
}

impl Layout {
    /// The name of a row's cache line, where it is another than that of the row above.
    pub fn line_name(&self, row: usize) -> Option<String> {
        let line = self.rows[row].line;
        let above = row.checked_sub(1).and_then(|above| self.rows[above].line);
        line.filter(|_| line != above)
            .map(|line| format!("line {line}"))
    }
}

impl Flight {
    /// What is written where it departs.
    pub fn label(&self, names: &[String]) -> String {
        match self.received {
            Some(_) => self.message.clone(),
            None => format!(
                "{} to {}, still in flight",
                self.message, names[self.to.agent]
            ),
        }
    }
}

/// For each step that sends, the step that receives the same message, if there is one.
fn partners(sequence: &Sequence) -> Vec<Option<usize>> {
    let mut partners = vec![None; sequence.steps.len()];
    for (index, step) in sequence.steps.iter().enumerate() {
        let Action::Receive { from, flight, .. } = step.action else {
            continue;
        };
        let sender = (0..index).rev().find(|&earlier| {
            let sending = &sequence.steps[earlier];
            partners[earlier].is_none()
                && sending.agent == from
                && matches!(sending.action, Action::Send { to, flight: sent, .. }
                            if to == step.agent && sent == flight)
        });
        if let Some(sender) = sender {
            partners[sender] = Some(index);
        }
    }
    partners
}

/// Whether between sending and receiving nothing happens but that others change their states.
fn at_once(sequence: &Sequence, sent: usize, received: usize) -> bool {
    let receiver = sequence.steps[received].agent;
    sequence.steps[sent].line == sequence.steps[received].line
        && sequence.steps[sent + 1..received].iter().all(|between| {
            matches!(between.action, Action::Becomes { .. }) && between.agent != receiver
        })
}

/// The text without control characters, which would break the picture.
fn clean(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}
