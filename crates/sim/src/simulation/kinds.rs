//! Message kinds with precomputed properties.

use cohkit_protocol::protocol::PointOrder;

use crate::components::hosts::field_bytes;
use cohkit_protocol::protocol::{self, Type};

use super::*;
use cohkit_units::Quantity;

/// Properties of a message kind.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    /// Bytes on a link besides the header: data, and fields on platforms that specify field widths.
    pub payload: u32,
    /// True if the message carries a copy of the line.
    pub line: bool,
    /// True if the message is about a line.
    pub about_line: bool,
    /// True if the message carries the bytes of a store, which the home performs.
    pub store: bool,
    /// True if the message carries the bytes of a whole line, as a copy or for a store.
    pub carries_whole_line: bool,
    /// Class of its channel. `None` if the channel has none, and for responses to other caches.
    pub class: Option<Class>,
    /// True if the message uses the home's request queues: a request, or a message in one order with requests.
    pub request: bool,
    /// Number of the order that the message keeps: the index of an order of the protocol file, or `behind_index`
    /// or `earlier_index`. `None` if it keeps none.
    pub order_group: Option<u8>,
    /// Number of homes if the message's order spans all lines of one home; `None` if each line has its own order.
    pub order_span: Option<Line>,
    /// Index of the declaration `ordered M behind N` in which this kind is M; it follows the indices of orders and
    /// channels.
    pub behind_index: Option<u8>,
    /// Index of the declaration `ordered M behind N` in which this kind is an N.
    pub earlier_index: Option<u8>,
    /// True if the receiver enforces the order: links do not, or the receiver takes messages at several places.
    pub is_receiver_ordered: bool,
    /// Index of its network in the protocol file; `None` for a message that uses no input queue.
    pub network: Option<u8>,
    /// Index of its virtual circuit: its order, or, after the orders, its channel.
    pub circuit: u8,
}

impl Kind {
    /// Returns the key of the order that the message must keep, if any.
    #[inline]
    pub(super) fn order(&self, message: &Message) -> Option<Order> {
        let line = match self.order_span {
            None => message.line,
            Some(homes) => message.line % homes,
        };
        self.order_group
            .map(|group| (message.sender(), message.to, group, line))
    }
}

/// Bytes of a message's fields on platforms that specify field widths.
fn field_size(message: &protocol::Message, hosts: &platform::Hosts) -> u32 {
    let bits_for = |values: u32| u64::from(u32::BITS - values.saturating_sub(1).leading_zeros());
    let configured_bits = |bits: &Quantity, values: u32| match bits.value {
        0 => bits_for(values),
        bits => bits,
    };
    let bits = message.fields.iter().map(|field| match field.ty {
        Type::Range { max: max @ 256.. } => {
            configured_bits(&hosts.counter_bits, u32::from(max) + 1)
        }
        Type::Range { max } => bits_for(u32::from(max) + 1),
        Type::Cycle { size } => configured_bits(&hosts.number_bits, size.into()),
        Type::Home { homes } => bits_for(homes.into()),
        Type::Bool => 1,
        // Agent numbers and sets of agents.
        _ => 16,
    });
    field_bytes(bits.sum(), hosts)
}

/// True if an order has messages between homes, which use no link of their own.
fn has_messages_between_homes(protocol: &Protocol, order: usize) -> bool {
    let mut channels = protocol.orders[order]
        .iter()
        .map(|id| &protocol.channels[id.index()]);
    channels.any(|channel| (channel.from, channel.to) == (End::Home, End::Home))
}

/// Lets receivers enforce these orders: each message stays behind those sent before it.
fn enforce_at_receivers(kinds: &mut [Kind], orders: &[usize]) {
    for kind in kinds {
        kind.is_receiver_ordered |= kind
            .order_group
            .is_some_and(|group| orders.contains(&group.into()));
    }
}

/// Computes the properties of each message kind, in the order of the protocol file. `quantities` gives the links
/// of each kind of caching agents.
pub(super) fn kinds(
    protocol: &Protocol,
    hosts: Option<&platform::Hosts>,
    quantities: &[KindQuantities],
) -> Vec<Kind> {
    let mut kinds = kinds_of_protocol(protocol, hosts);
    let links = quantities.iter().map(|quantities| quantities.link);
    for layer in links.filter_map(|link| link.layer.as_ref()) {
        let orders = layer::receiver_ordered(protocol, layer.framing);
        enforce_at_receivers(&mut kinds, &orders);
    }
    kinds
}

/// Computes the properties of each message kind, without those that links add.
fn kinds_of_protocol(protocol: &Protocol, hosts: Option<&platform::Hosts>) -> Vec<Kind> {
    let group = |id| protocol.order_of(protocol.message(id).channel);
    let number = |position| protocol.orders.len() + protocol.channels.len() + position;
    // A link that keeps M behind N may keep both in one order: this is among the permitted behaviours.
    let point_order = |id| {
        let mut declarations = protocol.point_orders.iter();
        let position = declarations.position(|b| b.message == id || b.earlier.contains(&id));
        position.map(number)
    };
    let point_order_index = |is_match: &dyn Fn(&PointOrder) -> bool| {
        let position = protocol.point_orders.iter().position(is_match);
        position.map(|position| number(position) as u8)
    };
    let joins_lines = protocol.joins_lines().is_some();
    let order_span = |group: usize| {
        let is_per_line = protocol.per_line.get(group).copied().unwrap_or(true);
        (joins_lines && !is_per_line).then_some(Line::from(protocol.homes))
    };
    let request = |id| protocol.class(id) == Some(Class::Request);
    let shares_order_with_requests = |id| {
        let mut requests = protocol.message_ids().filter(|&other| request(other));
        group(id).is_some() && requests.any(|other| group(other) == group(id))
    };
    protocol
        .message_ids()
        .map(|id| {
            let message = protocol.message(id);
            let group = group(id);
            let payload_bytes = match message.carries {
                Carries::Nothing => 0,
                Carries::PartialStore => 8,
                Carries::Line | Carries::DirtyLine | Carries::Store => protocol.line_bytes,
            };
            Kind {
                payload: payload_bytes + hosts.map_or(0, |hosts| field_size(message, hosts)),
                line: message.carries.line(),
                about_line: message.about_line,
                store: message.carries.store(),
                carries_whole_line: payload_bytes == protocol.line_bytes,
                // An answer to another cache does not inform the home: no forward of its units has ended.
                class: protocol.class(id).filter(|&class| {
                    class != Class::Answer || protocol.channel_of(id).to != End::Remote
                }),
                request: request(id) || shares_order_with_requests(id),
                order_group: group.or_else(|| point_order(id)).map(|group| group as u8),
                order_span: group.and_then(order_span),
                behind_index: point_order_index(&|point_order| point_order.message == id),
                earlier_index: point_order_index(&|point_order| point_order.earlier.contains(&id)),
                is_receiver_ordered: group.is_some_and(|group| {
                    order_span(group).is_some() || has_messages_between_homes(protocol, group)
                }),
                network: group.and_then(|group| {
                    let mut networks = protocol.networks.iter();
                    let position = networks.position(|network| network.order == group);
                    position.map(|position| position as u8)
                }),
                circuit: group.unwrap_or(protocol.orders.len() + message.channel.index()) as u8,
            }
        })
        .collect()
}
