//! Message kinds with precomputed properties.

use cohkit_protocol::protocol::PointOrder;

use crate::components::hosts::field_bytes;
use crate::platform::Quantity;
use cohkit_protocol::protocol::{self, Type};

use super::*;

/// Properties of a message kind.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    /// Number of messages sent.
    pub sent: u64,
    /// Bytes on a link besides the header.
    pub payload: u32,
    pub line: bool,
    /// True if the message is about a line.
    pub about_line: bool,
    pub store: bool,
    /// True if the message carries the bytes of a whole line, as a copy or for a store.
    pub whole: bool,
    pub class: Option<Class>,
    /// True if the message uses the home's request queues: a request, or a message in one order with requests.
    pub request: bool,
    pub group: Option<u8>,
    /// Number of homes if the message's order spans all lines of one home; `None` if each line has its own order.
    pub order_span: Option<Line>,
    /// Index of the declaration `ordered M behind N` in which this kind is M; it follows the indices of orders and
    /// channels.
    pub stays: Option<u8>,
    /// Index of the declaration `ordered M behind N` in which this kind is an N.
    pub leads: Option<u8>,
    /// True if the receiver enforces the order: links do not, or the receiver takes messages at several places.
    pub kept: bool,
    /// Index of its network in the protocol file.
    pub network: Option<u8>,
    /// Index of its virtual circuit.
    pub circuit: u8,
    /// True if a remote performs an access with the bytes without caching them: [`Protocol::used_once`].
    pub used_once: bool,
}

impl Kind {
    /// Returns the key of the order that the message must keep, if any.
    #[inline]
    pub(super) fn order(&self, message: &Message) -> Option<Order> {
        let line = match self.order_span {
            None => message.line,
            Some(homes) => message.line % homes,
        };
        self.group
            .map(|group| (message.sender(), message.to, group, line))
    }
}

/// Bytes of a message's fields on platforms that specify field widths.
fn of_fields(message: &protocol::Message, hosts: &platform::Hosts) -> u32 {
    let needs = |values: u32| u64::from(u32::BITS - values.saturating_sub(1).leading_zeros());
    let given = |bits: &Quantity, values: u32| match bits.value {
        0 => needs(values),
        bits => bits,
    };
    let bits = message.fields.iter().map(|field| match field.ty {
        Type::Range { max: max @ 256.. } => given(&hosts.counter_bits, u32::from(max) + 1),
        Type::Range { max } => needs(u32::from(max) + 1),
        Type::Cycle { size } => given(&hosts.number_bits, size.into()),
        Type::Home { homes } => needs(homes.into()),
        Type::Bool => 1,
        // Agent numbers and sets of agents.
        _ => 16,
    });
    field_bytes(bits.sum(), hosts)
}

/// True if an order has messages between homes, which use no link of their own.
fn between_homes(protocol: &Protocol, order: usize) -> bool {
    let mut ends = protocol.orders[order]
        .iter()
        .map(|id| &protocol.channels[id.index()]);
    ends.any(|channel| (channel.from, channel.to) == (End::Home, End::Home))
}

/// Lets receivers enforce these orders: each message stays behind those sent before it.
pub(super) fn keep_at_receivers(kinds: &mut [Kind], orders: &[usize]) {
    for kind in kinds {
        kind.kept |= kind
            .group
            .is_some_and(|group| orders.contains(&group.into()));
    }
}

/// Computes the properties of each message kind.
pub(super) fn kinds(protocol: &Protocol, hosts: Option<&platform::Hosts>) -> Vec<Kind> {
    let group = |id| protocol.order_of(protocol.message(id).channel);
    let number = |position| protocol.orders.len() + protocol.channels.len() + position;
    // A link that keeps M behind N may keep both in one order: this is among the permitted behaviours.
    let behind = |id| {
        let mut all = protocol.behind.iter();
        let position = all.position(|b| b.message == id || b.earlier.contains(&id));
        position.map(number)
    };
    let declared = |is_it: &dyn Fn(&PointOrder) -> bool| {
        let position = protocol.behind.iter().position(is_it);
        position.map(|position| number(position) as u8)
    };
    let joined = protocol.joins_lines().is_some();
    let order_span = |group: usize| {
        let apart = protocol.per_line.get(group).copied().unwrap_or(true);
        (joined && !apart).then_some(Line::from(protocol.homes))
    };
    let request = |id| protocol.class(id) == Some(Class::Request);
    let with_requests = |id| {
        let mut others = protocol.message_ids().filter(|&other| request(other));
        group(id).is_some() && others.any(|other| group(other) == group(id))
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
                sent: 0,
                payload: payload_bytes + hosts.map_or(0, |hosts| of_fields(message, hosts)),
                line: message.carries.line(),
                about_line: message.about_line,
                store: message.carries.store(),
                whole: payload_bytes == protocol.line_bytes,
                // An answer to another cache does not inform the home: no forward of its units has ended.
                class: protocol.class(id).filter(|&class| {
                    class != Class::Answer || protocol.channel_of(id).to != End::Remote
                }),
                request: request(id) || with_requests(id),
                group: group.or_else(|| behind(id)).map(|group| group as u8),
                order_span: group.and_then(order_span),
                stays: declared(&|behind| behind.message == id),
                leads: declared(&|behind| behind.earlier.contains(&id)),
                kept: group.is_some_and(|group| {
                    order_span(group).is_some() || between_homes(protocol, group)
                }),
                network: group.and_then(|group| {
                    let mut all = protocol.networks.iter();
                    let position = all.position(|network| network.order == group);
                    position.map(|position| position as u8)
                }),
                circuit: group.unwrap_or(protocol.orders.len() + message.channel.index()) as u8,
                used_once: protocol.used_once(id),
            }
        })
        .collect()
}
