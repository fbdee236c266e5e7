//! The circuits between remote and home, which delay and reorder messages.

use super::context::Context;
use super::line::{Direction, Message};
use crate::lockstep::model::CIRCUITS;
use cohkit_protocol::protocol::{ChannelId, MessageId};
use std::collections::BTreeMap;

/// A message in flight.
pub(super) struct InFlightMessage {
    /// Index of its line.
    pub line_index: usize,
    /// Direction of the message.
    pub direction: Direction,
    /// The message.
    pub message: Message,
}

/// One in this number of messages is slow: without fixed latencies, its latency may be `SLOWDOWN` times as long.
const SLOW_INTERVAL: u64 = 8;
/// Factor of the maximum latency of slow messages, which lets later messages overtake them.
const SLOWDOWN: u64 = 6;

/// The messages in flight between remote and home.
#[derive(Default)]
pub(super) struct Link {
    /// Messages by arrival cycle and sequence number.
    messages: BTreeMap<(u64, u64), InFlightMessage>,
    /// Number of messages sent so far.
    sequence: u64,
}

impl Link {
    /// True if no message is in flight.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Schedules the arrival of a message; messages of an ordered group arrive in order. The messages of a line that
    /// holds messages wait.
    pub fn send(
        &mut self,
        context: &mut Context,
        line_index: usize,
        direction: Direction,
        message: Message,
    ) {
        let line = &mut context.lines[line_index];
        if line.steering.is_holding_messages {
            line.steering.held.push((direction, message));
            return;
        }
        line.messages.on_link += 1;
        let (random, run, cycle) = (&mut context.random, &context.run, context.cycle);
        let slowdown = match random.below(SLOW_INTERVAL) {
            0 => SLOWDOWN,
            _ => 1,
        };
        let mut arrival_cycle = match run.has_fixed_latency {
            true => cycle + run.max_message_latency,
            false => cycle + 1 + random.below(slowdown * run.max_message_latency),
        };
        let protocol = context.reference.protocol;
        let channel = protocol.message(message.kind).channel;
        if let Some(group) = protocol.order_of(ChannelId(channel.0)) {
            let earliest =
                &mut line.messages.earliest_arrival[direction.receiver()][group % CIRCUITS];
            arrival_cycle = arrival_cycle.max(*earliest);
            *earliest = arrival_cycle;
        }
        self.sequence += 1;
        let in_flight = InFlightMessage {
            line_index,
            direction,
            message,
        };
        self.messages
            .insert((arrival_cycle, self.sequence), in_flight);
    }

    /// Removes and returns a message that arrives in this cycle, if any is left.
    pub fn next_arrival(&mut self, context: &mut Context) -> Option<InFlightMessage> {
        let entry = self.messages.first_entry()?;
        if entry.key().0 > context.cycle {
            return None;
        }
        let in_flight = entry.remove();
        context.record_activity();
        context.lines[in_flight.line_index].messages.on_link -= 1;
        Some(in_flight)
    }

    /// Sends the messages that a line has held, and ends holding them.
    pub fn release(&mut self, context: &mut Context, line_index: usize) {
        let line = &mut context.lines[line_index];
        line.steering.is_holding_messages = false;
        for (direction, message) in std::mem::take(&mut line.steering.held) {
            self.send(context, line_index, direction, message);
        }
    }
}

/// Removes and returns the oldest held message of a kind and direction.
///
/// # Panics
/// The line holds no such message.
pub(super) fn remove_held_message(
    context: &mut Context,
    line_index: usize,
    direction: Direction,
    kind: MessageId,
) -> Message {
    let held_messages = &mut context.lines[line_index].steering.held;
    let index = held_messages
        .iter()
        .position(|(other, message)| *other == direction && message.kind == kind);
    let (_, message) = held_messages.remove(index.expect("the path begins with a held message"));
    message
}
