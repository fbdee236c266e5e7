//! Capacity for the messages of a row: declared bounds of messages, and capacities of networks.

use cohkit_engine::model::Expr;
use cohkit_protocol::controller::{Expression, Statement, Target};
use cohkit_protocol::protocol::MessageId;

use super::context::Context;
use super::flows::{Direction, Endpoints, Storage};
use super::frame::Frame;
use super::layout::Layout;
use super::options::SystemError;
use super::prior_values::{sent_messages, Receiver};

/// Returns the condition that declared bounds allow the messages of an access, whose row has this body.
pub(super) fn within_bounds(layout: &Layout, context: &Context, body: &[Statement]) -> Expr {
    let channels = &layout.channels;
    let mut guard = Expr::Bool(true);
    for (message, bound) in &layout.frame.protocol.bounds.per_message {
        let sends = body.iter().any(|statement| {
            matches!(statement, Statement::Send { message: sent, to: Target::Home, .. } if sent == message)
        });
        let flow = channels.flow_of(*message, Direction::ToHome);
        let (true, Some(flow)) = (sends, flow) else {
            continue;
        };
        let endpoints = Endpoints {
            from: context.remote.as_ref(),
            to: None,
        };
        let count = match channels.flows[flow].storage {
            Storage::Counted(variable) => {
                channels.count_cells(flow, endpoints.index(variable.at(&context.line)))
            }
            Storage::Queued(index, label) => {
                let queue = channels.queue_at(index, &context.line, endpoints);
                channels.count_queued(index, label, queue, &context.line)
            }
        };
        guard = guard.and(count.lt(i32::from(bound.limit)));
    }
    guard
}

/// A network with a capacity.
#[derive(Clone, Copy, PartialEq)]
struct BoundedNetwork {
    /// Index of the group of its channels in `Protocol::orders`.
    order: usize,
    /// Capacity of each input queue, in messages.
    capacity: i32,
}

/// The network of a message; `None` if the message has none, or its network no capacity.
fn bounded_network(frame: &Frame, message: MessageId) -> Option<BoundedNetwork> {
    let protocol = frame.protocol;
    let order = protocol.order_of(protocol.message(message).channel)?;
    let capacity = protocol.network_of(order)?.capacity?.into();
    Some(BoundedNetwork { order, capacity })
}

/// Returns the condition that the input queues have room for the messages of a row. The `consumed` message frees its
/// place. The receivers may depend on `chosen`, the remote that the row chooses.
pub(super) fn capacity_condition(
    layout: &Layout,
    context: &Context,
    (consumed, chosen): (Option<MessageId>, &Option<Expr>),
    body: &[Statement],
) -> Result<Expr, SystemError> {
    let network_of = |message: MessageId| bounded_network(&layout.frame, message);
    let Ok(sends) = sent_messages(body, &|message| network_of(message).is_some()) else {
        let action = "sends on a network with a capacity, to a receiver that the same row computes in an unsupported way";
        return Err(layout.agents.unsupported_expression(action, context));
    };
    let context = Context {
        each: chosen.clone(),
        ..context.clone()
    };
    let mut networks: Vec<BoundedNetwork> = Vec::new();
    for (message, _) in &sends {
        networks.extend(network_of(*message).filter(|network| !networks.contains(network)));
    }
    let consumed_network = consumed.and_then(network_of);
    let mut condition = Expr::Bool(true);
    for network in networks {
        let to_network = sends.iter().filter(|(message, _)| {
            network_of(*message).is_some_and(|other| other.order == network.order)
        });
        let (homes, remotes): (Vec<&Receiver>, Vec<&Receiver>) = to_network
            .map(|(_, to)| to)
            .partition(|to| matches!(to, Receiver::Home));
        if !homes.is_empty() {
            let count = count_in_flight_to(layout, network.order, &context.line, None);
            condition = condition.and((count + homes.len() as i32).le(network.capacity));
        }
        if !remotes.is_empty() {
            let frees_place = consumed_network == Some(network);
            let has_room = remotes_have_room(layout, &context, network, &remotes, frees_place);
            condition = condition.and(has_room);
        }
    }
    Ok(condition)
}

/// Returns the condition that the input queues of remotes have room for a message to each of these receivers. With
/// `frees_place`, the message that the remote of the context consumes frees its place in this network.
fn remotes_have_room(
    layout: &Layout,
    context: &Context,
    network: BoundedNetwork,
    receivers: &[&Receiver],
    frees_place: bool,
) -> Expr {
    let freeing_remote = (context.remote.clone()).filter(|_| frees_place);
    layout.frame.all_remotes(|to| {
        let to = Expr::from(to);
        let mut count = count_in_flight_to(layout, network.order, &context.line, Some(&to));
        if let Some(freeing_remote) = freeing_remote {
            count = count - freeing_remote.is(to.clone()).as_number();
        }
        let mut is_receiver = Expr::Bool(false);
        for receiver in receivers {
            let Some(receives) = receives(layout, context, receiver, &to) else {
                continue;
            };
            count = count + receives.clone().as_number();
            is_receiver = is_receiver.or(receives);
        }
        is_receiver.implies(count.le(network.capacity))
    })
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
        let is_from_remote = queue.direction.is_from_remote();
        for place in places {
            let senders = if is_from_remote { frame.remotes } else { 1 };
            for sender in 0..senders {
                let sender = is_from_remote.then(|| Expr::from(sender));
                let from = sender.as_ref();
                let queue = Endpoints { from, to }.index(place.clone());
                count = count + Expr::from(queue.field("length"));
            }
        }
    }
    count
}
