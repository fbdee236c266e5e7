//! Wait-for descriptions: the agents, messages and devices that wait in a state, with line and channel. Reports on
//! deadlocks show them.

use super::expressions::Context;
use super::layout::{slot, Direction, Storage, System};
use cohkit_engine::explain::Remark;
use cohkit_engine::model::{Expr, Phrase, Piece, VariableId};

fn text(words: impl Into<String>) -> Piece {
    Piece::Text(words.into())
}

impl System<'_> {
    /// The end of a description, with the line.
    fn on_line(&self, line: &Expr) -> Phrase {
        match self.note_line(line) {
            Some(line) => vec![text(", line "), Piece::Value(line)],
            None => Vec::new(),
        }
    }

    /// Describes a message that waits in its channel for its receiver.
    pub fn in_flight(
        &mut self,
        flow: usize,
        parameters: &[VariableId],
        present: &Expr,
        context: &Context,
    ) {
        let message = self.flows[flow].message;
        let mut words = self.words(message, &context.fields);
        let sender = match self.flows[flow].direction {
            Direction::BetweenHomes => text(format!("another {}", self.home.controller.name)),
            _ => Piece::Agent(self.agent(context.sender.as_ref(), &context.line)),
        };
        words.extend([
            text(" from "),
            sender,
            text(format!(
                " waits in channel {} for ",
                self.protocol.channel_of(message).name
            )),
            Piece::Agent(self.agent(context.remote.as_ref(), &context.line)),
            text(", which is in "),
        ]);
        words.extend(self.state_words(context));
        if let Storage::Queued(queue, _) = self.flows[flow].storage {
            let (from, to) = (context.sender.as_ref(), context.remote.as_ref());
            let queue = match (self.queues[queue].senders, parameters.last()) {
                (Some(_), Some(&sending_home)) => {
                    self.queue_between(queue, &context.line, &sending_home.into())
                }
                _ => self.queue_at(queue, &context.line, from, to),
            };
            let length = queue.field("length");
            words.push(Piece::Choice(
                length.clone().gt(1),
                vec![
                    text(", with "),
                    Piece::Value(length - 1),
                    text(" behind it"),
                ],
                Vec::new(),
            ));
        }
        words.extend(self.on_line(&context.line));
        self.remarks.push(Remark {
            parameters: parameters.to_vec(),
            when: present.clone(),
            words,
        });
    }

    /// Describes all other waits: of agents, the device and the memory.
    pub fn describe_waits(&mut self) {
        // Agents come before messages in flight, as readers look for them first.
        let in_flight = std::mem::take(&mut self.remarks);
        for home in [false, true] {
            self.describe_agent_waits(home);
        }
        self.describe_other_waits();
        self.remarks.extend(in_flight);
    }

    fn describe_agent_waits(&mut self, home: bool) {
        let controller = self.side(home).controller;
        let (remote_type, line_type) = (self.remote_type, self.line_type);
        let l = self.parameter("l", line_type);
        let r = (!home).then(|| self.parameter("r", remote_type));
        let line = Expr::from(l);
        let context = Context {
            home,
            line: line.clone(),
            remote: r.map(Expr::from),
            sender: None,
            fields: Vec::new(),
            each: None,
            chosen: None,
        };
        for (number, state) in controller.states.iter().enumerate() {
            if state.is_stable() {
                continue;
            }
            let agent = self.agent(context.remote.as_ref(), &line);
            let mut words = vec![Piece::Agent(agent), text(" in ")];
            words.extend(self.state_words(&context));
            words.push(text(" waits for "));
            for (i, &message) in state.waits.iter().enumerate() {
                let is_single_remote = self.remotes == 1;
                let sources = self.flows.iter().filter(|flow| {
                    let between = matches!(flow.direction, Direction::Between);
                    flow.message == message
                        && flow.direction.is_to_remote() != home
                        && !(between && is_single_remote)
                });
                let sources: Vec<String> = sources
                    .map(|flow| match flow.direction {
                        Direction::ToRemote => format!("the {}", self.home.controller.name),
                        Direction::ToHome if is_single_remote => {
                            format!("the {}", self.remote.controller.name)
                        }
                        Direction::ToHome => format!("a {}", self.remote.controller.name),
                        Direction::Between => format!("another {}", self.remote.controller.name),
                        Direction::BetweenHomes => {
                            format!("another {}", self.home.controller.name)
                        }
                    })
                    .collect();
                let separator = if i == 0 { "" } else { " or " };
                let from = match sources.is_empty() {
                    true => ", which no agent sends".into(),
                    false => format!(" from {}", sources.join(" or ")),
                };
                words.push(text(format!(
                    "{separator}{}{from} on channel {}",
                    self.protocol.message(message).name,
                    self.protocol.channel_of(message).name
                )));
            }
            words.extend(self.on_line(&line));
            let states = self.side(home).states;
            let when = context
                .part(self.side(home).state)
                .is(states.nth(number as u32));
            self.remarks.push(Remark {
                parameters: [l].into_iter().chain(r).collect(),
                when,
                words,
            });
        }
    }

    fn describe_other_waits(&mut self) {
        let line_type = self.line_type;
        let l = self.parameter("l", line_type);
        let line = Expr::from(l);
        let remark = |system: &mut Self, when: Expr, words: String| {
            let mut words = vec![text(words)];
            words.extend(system.on_line(&line));
            system.remarks.push(Remark {
                parameters: vec![l],
                when,
                words,
            });
        };
        let home = self.home.controller;
        if let Some(device) = self.device {
            for (k, local) in home.locals.iter().enumerate() {
                let code = k as i32 + 1;
                let (name, home) = (&local.name, &home.name);
                let is_requested = device.requested.at(l).is(code);
                remark(
                    self,
                    is_requested,
                    format!("the device waits for the {home} to accept {name}"),
                );
                let accepted = device.accepted.at(l).is(code);
                remark(
                    self,
                    accepted,
                    format!("the device waits for the {home} to acknowledge {name}"),
                );
            }
        }
        if let Some(memory) = self.slot {
            for (label, name) in slot::LABELS.iter().enumerate() {
                if label as u32 == slot::IDLE {
                    continue;
                }
                let busy = memory.state.at(l).is(memory.states.nth(label as u32));
                let words = match label as u32 {
                    slot::SAMPLED | slot::DONE => {
                        format!("the memory waits for the {} to take its answer", home.name)
                    }
                    _ => format!(
                        "the {} waits for the memory's {}",
                        home.name,
                        name.replace('_', " ")
                    ),
                };
                remark(self, busy, words);
            }
        }
    }
}
