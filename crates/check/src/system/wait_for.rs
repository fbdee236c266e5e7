//! Wait-for descriptions: the agents, messages and devices that wait in a state, with line and channel. Reports on
//! deadlocks show them.

use cohkit_engine::explain::Remark;
use cohkit_engine::model::{Expr, Phrase, Piece, VariableId};
use cohkit_protocol::controller::State;
use cohkit_protocol::protocol::MessageId;

use super::context::Context;
use super::flows::{Direction, Endpoints, Flow, Storage};
use super::frame::Frame;
use super::layout::Layout;
use super::memory::slot;

/// A constant part of a description.
fn text(words: impl Into<String>) -> Piece {
    Piece::Text(words.into())
}

/// The end of a description, with the line.
fn on_line(frame: &Frame, line: &Expr) -> Phrase {
    match frame.note_line(line) {
        Some(line) => vec![text(", line "), Piece::Value(line)],
        None => Vec::new(),
    }
}

/// Describes a message that waits in its channel for its receiver. `present` is the condition that the message is
/// next; `parameters` are those of its delivery rule, of which the last is the sending home between homes.
pub(super) fn message_remark(
    layout: &Layout,
    flow: &Flow,
    parameters: &[VariableId],
    present: &Expr,
    context: &Context,
) -> Remark {
    let Layout {
        frame,
        agents,
        channels,
        ..
    } = layout;
    let mut words = frame.words(flow.message, &context.fields);
    let sender = match flow.direction {
        Direction::BetweenHomes => text(format!("another {}", agents.home.controller.name)),
        _ => Piece::Agent(frame.agent(context.sender.as_ref(), &context.line)),
    };
    words.extend([
        text(" from "),
        sender,
        text(format!(
            " waits in channel {} for ",
            frame.protocol.channel_of(flow.message).name
        )),
        Piece::Agent(frame.agent(context.remote.as_ref(), &context.line)),
        text(", which is in "),
    ]);
    words.extend(agents.state_words(context));
    if let Storage::Queued(queue, _) = flow.storage {
        let endpoints = Endpoints {
            from: context.sender.as_ref(),
            to: context.remote.as_ref(),
        };
        let queue = match (channels.queues[queue].senders, parameters.last()) {
            (Some(_), Some(&sending_home)) => {
                channels.queue_between(queue, &context.line, &sending_home.into())
            }
            _ => channels.queue_at(queue, &context.line, endpoints),
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
    words.extend(on_line(frame, &context.line));
    Remark {
        parameters: parameters.to_vec(),
        when: present.clone(),
        phrase: words,
    }
}

/// Returns the descriptions of all other waits: of agents, the device and the memory.
pub(super) fn other_remarks(layout: &Layout) -> Vec<Remark> {
    let mut remarks = Vec::new();
    for home in [false, true] {
        remarks.extend(agent_remarks(layout, home));
    }
    let frame = &layout.frame;
    let (line_parameter, line) = frame.line_parameter();
    let waits = device_waits(layout, &line)
        .into_iter()
        .chain(memory_waits(layout, &line));
    remarks.extend(waits.map(|wait| Remark {
        parameters: vec![line_parameter],
        when: wait.when,
        phrase: [vec![text(wait.description)], on_line(frame, &line)].concat(),
    }));
    remarks
}

/// Returns a description for each state that is not stable: the agent and the messages that it waits for. `home`
/// selects the homes or the remotes.
fn agent_remarks(layout: &Layout, home: bool) -> Vec<Remark> {
    let Layout { frame, agents, .. } = layout;
    let controller = agents.side(home).controller;
    let (line_parameter, line) = frame.line_parameter();
    let remote_parameter = (!home).then(|| frame.remote_parameter());
    let context = Context::new(&line, remote_parameter.map(Expr::from));
    let states = controller.states.iter().enumerate();
    let waiting = states.filter(|(_, state)| !state.is_stable());
    let remarks = waiting.map(|(number, state)| {
        let agent = frame.agent(context.remote.as_ref(), &line);
        let mut words = vec![Piece::Agent(agent), text(" in ")];
        words.extend(agents.state_words(&context));
        words.push(text(" waits for "));
        words.extend(awaited_messages(layout, home, state));
        words.extend(on_line(frame, &line));
        Remark {
            parameters: [line_parameter]
                .into_iter()
                .chain(remote_parameter)
                .collect(),
            when: agents.is_in(&context, &[number]),
            phrase: words,
        }
    });
    remarks.collect()
}

/// The messages that a state waits for, with their sources.
fn awaited_messages(layout: &Layout, home: bool, state: &State) -> Phrase {
    let protocol = layout.frame.protocol;
    let messages = state.waits.iter().enumerate();
    let words = messages.map(|(index, &message)| {
        let sources = sources(layout, home, message);
        let separator = if index == 0 { "" } else { " or " };
        let from = match sources.is_empty() {
            true => ", which no agent sends".into(),
            false => format!(" from {}", sources.join(" or ")),
        };
        text(format!(
            "{separator}{}{from} on channel {}",
            protocol.message(message).name,
            protocol.channel_of(message).name
        ))
    });
    words.collect()
}

/// The agents that send a message to the home, or to a remote.
fn sources(layout: &Layout, home: bool, message: MessageId) -> Vec<String> {
    let is_single_remote = layout.frame.remotes == 1;
    let (remote, home_name) = (
        &layout.agents.remote.controller.name,
        &layout.agents.home.controller.name,
    );
    let sources = layout.channels.flows.iter().filter(|flow| {
        let between = matches!(flow.direction, Direction::Between);
        flow.message == message
            && flow.direction.is_to_remote() != home
            && !(between && is_single_remote)
    });
    sources
        .map(|flow| match flow.direction {
            Direction::ToRemote => format!("the {home_name}"),
            Direction::ToHome if is_single_remote => format!("the {remote}"),
            Direction::ToHome => format!("a {remote}"),
            Direction::Between => format!("another {remote}"),
            Direction::BetweenHomes => format!("another {home_name}"),
        })
        .collect()
}

/// A wait of the device, or of the home for memory.
struct Wait {
    /// Condition that it waits.
    when: Expr,
    /// Description without the line, as a sentence.
    description: String,
}

/// Returns the waits of the device on a line.
fn device_waits(layout: &Layout, line: &Expr) -> Vec<Wait> {
    let home = &layout.agents.home.controller.name;
    let mut waits = Vec::new();
    if let Some(device) = &layout.device {
        for (code, local) in (1..).zip(device.locals) {
            let name = &local.name;
            waits.push(Wait {
                when: device.requested.at(line).is(code),
                description: format!("the device waits for the {home} to accept {name}"),
            });
            waits.push(Wait {
                when: device.accepted.at(line).is(code),
                description: format!("the device waits for the {home} to acknowledge {name}"),
            });
        }
    }
    waits
}

/// Returns the waits for memory operations on a line.
fn memory_waits(layout: &Layout, line: &Expr) -> Vec<Wait> {
    let Some(memory) = layout.copies.memory.slot else {
        return Vec::new();
    };
    let home = &layout.agents.home.controller.name;
    let labels = (0..).zip(slot::LABELS);
    let waits = labels.filter(|(label, _)| *label != slot::IDLE);
    let waits = waits.map(|(label, name)| {
        let description = match label {
            slot::SAMPLED | slot::DONE => {
                format!("the memory waits for the {home} to take its answer")
            }
            _ => format!(
                "the {home} waits for the memory's {}",
                name.replace('_', " ")
            ),
        };
        Wait {
            when: memory.state.at(line).is(memory.states.nth(label)),
            description,
        }
    });
    waits.collect()
}
