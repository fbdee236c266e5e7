//! Capacity for the messages of a row: declared bounds of messages, and capacities of networks.

use cohkit_engine::model::Expr;
use cohkit_protocol::controller::{Expression, Statement, Target};
use cohkit_protocol::protocol::MessageId;

use super::context::Context;
use super::flows::{at_endpoints, Direction, Storage};
use super::frame::Frame;
use super::layout::Layout;
use super::options::SystemError;
use super::prior_values::{sent_messages, Receiver};

/// Returns the condition that declared bounds allow the messages of an access, whose row has this body.
pub(super) fn within_bounds(layout: &Layout, context: &Context, body: &[Statement]) -> Expr {
    let channels = &layout.channels;
    let mut guard = Expr::Bool(true);
    for (message, bound) in &layout.frame.protocol.bounds.per_message {
        let sends = body.iter().any(
            |s| matches!(s, Statement::Send { message: m, to: Target::Home, .. } if m == message),
        );
        let flow = channels.flow_of(*message, Direction::ToHome);
        let (true, Some(flow)) = (sends, flow) else {
            continue;
        };
        let from = context.remote.as_ref();
        let count = match channels.flows[flow].storage {
            Storage::Counted(variable) => {
                channels.count_cells(flow, at_endpoints(variable.at(&context.line), from, None))
            }
            Storage::Queued(index, label) => {
                let queue = channels.queue_at(index, &context.line, (from, None));
                channels.count_queued(index, label, queue, &context.line)
            }
        };
        guard = guard.and(count.lt(i32::from(bound.limit)));
    }
    guard
}

/// The order group of a message whose network has a capacity, and the capacity.
fn network_capacity(frame: &Frame, message: MessageId) -> Option<(usize, i32)> {
    let protocol = frame.protocol;
    let order = protocol.order_of(protocol.message(message).channel)?;
    let capacity = protocol.network_of(order)?.capacity?;
    Some((order, capacity.into()))
}

/// Returns true if the input queues have room for the messages of a row. The message that the row consumes frees its
/// place. The receivers may depend on the remote that the row chooses.
pub(super) fn capacity_condition(
    layout: &Layout,
    context: &Context,
    (consumed, chosen): (Option<MessageId>, &Option<Expr>),
    body: &[Statement],
) -> Result<Expr, SystemError> {
    let group_of = |message: MessageId| network_capacity(&layout.frame, message);
    let Ok(sends) = sent_messages(body, &|message| group_of(message).is_some()) else {
        let action = "sends on a network with a capacity, to a receiver that the same row computes in an unsupported way";
        return Err(layout.agents.unsupported_expression(action, context));
    };
    let context = Context {
        each: chosen.clone(),
        ..context.clone()
    };
    let mut groups: Vec<(usize, i32)> = Vec::new();
    for (message, _) in &sends {
        groups.extend(group_of(*message).filter(|group| !groups.contains(group)));
    }
    let mut condition = Expr::Bool(true);
    for (order, capacity) in groups {
        let to_order = sends.iter().filter(|(message, _)| {
            group_of(*message).is_some_and(|(sent_order, _)| sent_order == order)
        });
        let (homes, remotes): (Vec<&Receiver>, Vec<&Receiver>) = to_order
            .map(|(_, to)| to)
            .partition(|to| matches!(to, Receiver::Home));
        if !homes.is_empty() {
            let count = count_in_flight_to(layout, order, &context.line, None);
            condition = condition.and((count + homes.len() as i32).le(capacity));
        }
        if !remotes.is_empty() {
            let consumed = consumed.and_then(group_of);
            let freeing_remote =
                (context.remote.clone()).filter(|_| consumed == Some((order, capacity)));
            let has_room = layout.frame.all_remotes(|to| {
                let to = Expr::from(to);
                let mut count = count_in_flight_to(layout, order, &context.line, Some(&to));
                if let Some(freeing_remote) = freeing_remote {
                    count = count - freeing_remote.is(to.clone()).as_number();
                }
                let mut is_receiver = Expr::Bool(false);
                for receiver in remotes {
                    let Some(receives) = receives(layout, &context, receiver, &to) else {
                        continue;
                    };
                    count = count + receives.clone().as_number();
                    is_receiver = is_receiver.or(receives);
                }
                is_receiver.implies(count.le(capacity))
            });
            condition = condition.and(has_room);
        }
    }
    Ok(condition)
}

/// Returns the condition that the remote with index `to` receives a message; `None` if no remote does.
fn receives(layout: &Layout, context: &Context, receiver: &Receiver, to: &Expr) -> Option<Expr> {
    let agents = &layout.agents;
    match receiver {
        Receiver::Home => None,
        Receiver::Remote(Expression::Each) if context.each.is_none() => None,
        Receiver::Remote(remote) => Some(agents.number(context, remote).is(to.clone() + 1)),
        Receiver::Each(set) => Some(agents.member(context, set, to.clone())),
    }
}

/// Returns the number of messages of a network in flight to a remote, or to the home of a line if `to` is `None`.
/// `order` is the index of the network's channels in `Protocol::orders`.
fn count_in_flight_to(layout: &Layout, order: usize, line: &Expr, to: Option<&Expr>) -> Expr {
    let (frame, channels) = (&layout.frame, &layout.channels);
    let mut count = Expr::Int(0);
    for (index, queue) in channels.queues.iter().enumerate() {
        if queue.order != order || queue.direction.is_to_remote() != to.is_some() {
            continue;
        }
        let mut places = vec![channels.queues_of(index, line)];
        // Messages to a remote come from any home.
        if to.is_some() && frame.protocol.homes > 1 {
            let homes = 0..i32::from(frame.protocol.homes);
            places = homes.map(|home| queue.variable.at(home)).collect();
        }
        let from = queue.direction.is_from_remote();
        for place in places {
            let senders = if from { frame.remotes } else { 1 };
            for sender in 0..senders {
                let sender = from.then(|| Expr::from(sender));
                let place = at_endpoints(place.clone(), sender.as_ref(), to);
                count = count + Expr::from(place.field("length"));
            }
        }
    }
    count
}
