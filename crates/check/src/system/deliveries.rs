//! Rules that deliver messages, and rules that let a stalled message block its input queue.

use cohkit_engine::explain::Remark;
use cohkit_engine::model::{Expr, Piece, Rule, VariableId};
use cohkit_protocol::controller::Event;
use cohkit_protocol::protocol::MessageId;

use super::charts::Act;
use super::context::Context;
use super::flows::{Direction, Endpoints, Flow, Storage};
use super::input_queues::Entry;
use super::layout::Layout;
use super::options::SystemError;
use super::reactions::Reactions;
use super::tickets::ConsumedStore;
use super::transfers::Arrival;
use super::trigger::Trigger;
use super::wait_for::message_remark;

/// Adds the rules of all deliveries.
pub(super) fn add_deliveries(reactions: &mut Reactions) -> Result<(), SystemError> {
    (0..reactions.layout.channels.flows.len()).try_for_each(|flow| add_delivery(reactions, flow))
}

/// Adds the rules that deliver the messages of a flow. If the flow ends in an input queue, also adds the rule that
/// makes a stalled message its head.
fn add_delivery(reactions: &mut Reactions, index: usize) -> Result<(), SystemError> {
    let layout = reactions.layout;
    let (frame, channels) = (&layout.frame, &layout.channels);
    let flow = &channels.flows[index];
    let (message, direction) = (flow.message, flow.direction);
    let (line_parameter, line) = frame.line_parameter();
    let parameter = |name: &str| frame.scope.parameter(name, frame.remote_type);
    let sender = direction.is_from_remote().then(|| parameter("s"));
    let receiver = direction.is_to_remote().then(|| parameter("r"));
    let (from, to) = (sender.map(Expr::from), receiver.map(Expr::from));
    let endpoints = Endpoints {
        from: from.as_ref(),
        to: to.as_ref(),
    };
    let mut arrival = channels.arrival(index, &line, endpoints);
    let admitted = layout.backing_permission.admits(message, direction, &line);
    arrival.present = arrival.present.and(admitted);
    // A message can also wait in its channel behind another head of the input queue.
    let present = arrival.present.clone();
    let entry = match flow.storage {
        Storage::Queued(queue, _) => {
            (channels.inputs).entry(channels.queues[queue].order, direction, &line, endpoints)
        }
        Storage::Counted(_) => None,
    };
    if let Some(entry) = &entry {
        arrival.present = arrival.present.and(entry.can_be_consumed());
        arrival.removal.extend(entry.removal.clone());
    }
    let context = |stored: Vec<Expr>| Context {
        home: to.is_none(),
        sender: from.clone(),
        fields: flow.fields(stored),
        ..Context::new(&line, to.clone())
    };
    // Guards read the fields in the channel, bodies read the copies that are saved before the message is removed.
    let before = context(std::mem::take(&mut arrival.before));
    let after = context(std::mem::take(&mut arrival.after));
    let mut parameters = vec![line_parameter];
    parameters.extend(sender);
    parameters.extend(receiver);
    parameters.extend(std::mem::take(&mut arrival.parameters));
    let trigger = delivery_trigger(
        layout,
        flow,
        parameters.clone(),
        before.clone(),
        after,
        arrival,
    );
    let remark = message_remark(layout, flow, &parameters, &present, &before);
    reactions.remarks.push(remark);
    let is_taken = reactions.react(trigger)?;
    if let Some(entry) = entry {
        let (remark, rule) = blocking_rule(
            layout, message, entry, parameters, present, is_taken, &before,
        );
        reactions.remarks.push(remark);
        frame.scope.rule(rule);
    }
    Ok(())
}

/// Returns the trigger of a message that leaves its channel. `before` is the context of guards and `after` that of
/// bodies, in which the message has been removed.
fn delivery_trigger(
    layout: &Layout,
    flow: &Flow,
    parameters: Vec<VariableId>,
    before: Context,
    after: Context,
    arrival: Arrival,
) -> Trigger {
    let Layout { frame, agents, .. } = layout;
    let (from, to) = (after.sender.as_ref(), after.remote.as_ref());
    let line = &after.line;
    let receive = Act::Receive {
        message: frame.words(flow.message, &after.fields),
        // Nothing depends on which home sent the message, unless homes keep an order.
        from: (flow.direction != Direction::BetweenHomes).then(|| frame.agent(from, line)),
    };
    let receiving_agent = frame.agent(to, line);
    let note = frame.note_message(flow.message, receiving_agent, receive, line, after.home);
    let mut consume = arrival.field_saves;
    consume.push(note);
    consume.extend(arrival.removal);
    let agent = &agents.side_of(&after).controller.name;
    let message = &frame.protocol.message(flow.message).name;
    let ticket = arrival.ticket;
    Trigger {
        present: arrival.present,
        before,
        consume,
        message: Some(flow.message),
        store: flow.tickets.map(|tickets| {
            let ticket = ticket.unwrap_or(tickets.low.into());
            ConsumedStore::new(ticket, tickets)
        }),
        incoming_copy: arrival.current,
        is_required: true,
        ..Trigger::new(
            Event::Message(flow.message),
            format!("{agent} takes {message}"),
            parameters,
            after,
        )
    }
}

/// Returns the rule by which a message becomes the head of its input queue and stalls there, and the description of
/// such a message. `present` is the condition that the message is next in its channel, and `is_taken` the condition
/// that the receiver consumes it.
fn blocking_rule(
    layout: &Layout,
    message: MessageId,
    entry: Entry,
    parameters: Vec<VariableId>,
    present: Expr,
    is_taken: Expr,
    context: &Context,
) -> (Remark, Rule) {
    let frame = &layout.frame;
    let receiver = frame.agent(context.remote.as_ref(), &context.line);
    let sender = frame.agent(context.sender.as_ref(), &context.line);
    let text = |string: String| Piece::Text(string);
    let mut words = frame.words(message, &context.fields);
    words.extend([
        text(" from ".into()),
        Piece::Agent(sender),
        text(format!(" is the first in network {} at ", entry.network)),
        Piece::Agent(receiver),
        text(", and all others wait behind it".into()),
    ]);
    let remark = Remark {
        parameters: parameters.clone(),
        when: present.clone().and(entry.is_head),
        phrase: words,
    };
    let name = &frame.protocol.message(message).name;
    let rule = Rule {
        name: format!("{name} waits first in {}", entry.network),
        parameters,
        guard: present.and(entry.has_no_head).and(!is_taken),
        body: vec![entry.enter_statement],
        spontaneous: false,
        priority: 0,
    };
    (remark, rule)
}
