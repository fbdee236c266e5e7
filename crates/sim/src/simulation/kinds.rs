//! What the simulator needs to know of messages, by their kind.

use cohkit_protocol::protocol::Behind;

use crate::components::hosts::field_bytes;
use crate::platform::Quantity;
use cohkit_protocol::protocol::{self, Type};

use super::*;

/// What the simulator needs to know of a message kind.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    /// How many were sent.
    pub sent: u64,
    /// Bytes that it takes on a link beside its header.
    pub payload: u32,
    pub line: bool,
    /// Whether it is about a line at all.
    pub about_line: bool,
    pub store: bool,
    /// Whether it carries a whole line's bytes, as a copy or for a store.
    pub whole: bool,
    pub class: Option<Class>,
    /// Whether it keeps to the home's queues of requests: a request, or what is of one order with requests.
    pub request: bool,
    pub group: Option<u8>,
    /// How many homes share the lines that its order is of together, with those of other homes apart; none if each line has
    /// an order of its own.
    pub together: Option<Line>,
    /// Which `ordered M behind N` of the text this is the M of, numbered behind its orders and channels.
    pub stays: Option<u8>,
    /// Which one it is an N of.
    pub leads: Option<u8>,
    /// Whether receivers keep its order: links do not, or its receiver has several places where messages are taken.
    pub kept: bool,
    /// Index of its network in the text.
    pub network: Option<u8>,
    /// Number of its virtual circuit.
    pub circuit: u8,
    /// Whether a remote performs an access with its bytes: [`Protocol::used_once`].
    pub used_once: bool,
}

impl Kind {
    /// What a message of this kind may not overtake.
    #[inline]
    pub(super) fn order(&self, message: &Message) -> Option<Order> {
        let line = match self.together {
            None => message.line,
            Some(homes) => message.line % homes,
        };
        self.group
            .map(|group| (message.sender(), message.to, group, line))
    }
}

/// Bytes of the fields of a message, where that is told.
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
        // Numbers of agents and sets of them.
        _ => 16,
    });
    field_bytes(bits.sum(), hosts)
}

/// Whether an order has messages between homes, which take no link of their own.
fn between_homes(protocol: &Protocol, order: usize) -> bool {
    let mut ends = protocol.orders[order]
        .iter()
        .map(|id| &protocol.channels[id.index()]);
    ends.any(|channel| (channel.from, channel.to) == (End::Home, End::Home))
}

/// The orders of these numbers are kept by receivers: each message stays behind those that were sent before it.
pub(super) fn keep_at_receivers(kinds: &mut [Kind], orders: &[usize]) {
    for kind in kinds {
        kind.kept |= kind
            .group
            .is_some_and(|group| orders.contains(&group.into()));
    }
}

/// What the simulator needs to know of each message.
pub(super) fn kinds(protocol: &Protocol, hosts: Option<&platform::Hosts>) -> Vec<Kind> {
    let group = |id| protocol.order_of(protocol.message(id).channel);
    let number = |position| protocol.orders.len() + protocol.channels.len() + position;
    // A link that keeps a message behind others may keep both in one order: that is among what may happen.
    let behind = |id| {
        let mut all = protocol.behind.iter();
        let position = all.position(|b| b.message == id || b.earlier.contains(&id));
        position.map(number)
    };
    let declared = |is_it: &dyn Fn(&Behind) -> bool| {
        let position = protocol.behind.iter().position(is_it);
        position.map(|position| number(position) as u8)
    };
    let joined = protocol.joins_lines().is_some();
    let together = |group: usize| {
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
                // An answer that goes to another cache tells the home nothing: no forward of its units has ended.
                class: protocol.class(id).filter(|&class| {
                    class != Class::Answer || protocol.channel_of(id).to != End::Remote
                }),
                request: request(id) || with_requests(id),
                group: group.or_else(|| behind(id)).map(|group| group as u8),
                together: group.and_then(together),
                stays: declared(&|behind| behind.message == id),
                leads: declared(&|behind| behind.earlier.contains(&id)),
                kept: group.is_some_and(|group| {
                    together(group).is_some() || between_homes(protocol, group)
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
