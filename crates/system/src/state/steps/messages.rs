//! Messages of a step: reception, capacity of networks, and sending.

use cohkit_base::words::counted;
use cohkit_protocol::controller::Event;
use cohkit_protocol::execute::{Act, Outcome, Receiver, RowError, Trigger};
use cohkit_protocol::protocol::MessageId;

use super::home_events::{lost_store, HomeReaction};
use super::network_capacity::lack_of_capacity;
use super::row_owner::RowOwner;
use super::CompletedAccess;
use crate::agent::{Bytes, HomeInput, OutgoingMessage, Violation};
use crate::data::{Data, Extent};
use crate::state::network::{order_of, Arrival, Endpoint, InFlightMessage, Payload};
use crate::state::{StepError, System, SystemState};
use crate::stores::Ticket;

impl<D: Data> SystemState<D> {
    /// Delivers a message to its receiver. `choice` is the index of the member that a choosing row takes. Returns
    /// false if the message is absent or stalls.
    pub(super) fn receive(
        &mut self,
        system: &System,
        arrival: Arrival,
        choice: u16,
        completed: &mut Vec<CompletedAccess<D>>,
    ) -> Result<bool, StepError> {
        let Some(flight) = self.network.at(arrival).cloned() else {
            return Ok(false);
        };
        if flight.to.is_none() && self.waits_for_memory(system, flight.line, flight.message) {
            return Ok(false);
        }
        self.network.take(arrival);
        let event = Event::Message(flight.message);
        let trigger = Trigger {
            home: system.home_of(flight.line),
            event,
            sender: flight.from.map(u16::from),
            executing_remote: flight.to.map(u16::from),
            fields: &flight.fields,
        };
        let carried_copy = match &flight.carried {
            Payload::Line(copy) => Some(copy),
            _ => None,
        };
        let Some(remote) = flight.to else {
            if let (true, Payload::Write(value, _)) = (D::KEEPS_VALUES, &flight.carried) {
                self.line(flight.line).consumed_value = Some(value.clone());
            }
            let input = HomeInput {
                message: Some(flight.message),
                carried_copy,
            };
            let ticket = match flight.carried {
                Payload::Write(_, ticket) => Some(ticket),
                _ => None,
            };
            return match self.apply_home_event_with(
                system,
                flight.line,
                trigger,
                input,
                (ticket, choice),
            )? {
                HomeReaction::Taken => Ok(true),
                HomeReaction::Stalled => Ok(false),
                HomeReaction::Rejected | HomeReaction::NoRow => {
                    Err(RowOwner::Home.unexpected(system, event))
                }
            };
        };
        let remote_state = &self.lines[usize::from(flight.line)].remotes[usize::from(remote)];
        let mut next = remote_state.configuration.clone();
        let mut tables = &system.protocol.remote;
        let owner = RowOwner::Remote(remote);
        let machine = system.remote_machine();
        let outcome = machine.step_choosing(&mut next, trigger, &mut tables, choice);
        match outcome.map_err(|error| self.interrupted(system, flight.line, owner, &error))? {
            Outcome::Taken { rule, acts } => {
                self.check_capacity(system, flight.line, owner, &acts)?;
                if matches!(flight.carried, Payload::Write(_, ticket) if ticket.is_posted()) {
                    return Err(lost_store(system));
                }
                let row = (rule, acts, next);
                // The part of the line is fixed when the store begins; here one part represents all.
                let (line, extent) = (flight.line, Extent::Part);
                self.apply_row(system, line, remote, row, carried_copy, extent, completed)?;
                Ok(true)
            }
            Outcome::Stall => Ok(false),
            Outcome::Refuse | Outcome::Unexpected => {
                Err(RowOwner::Remote(remote).unexpected(system, event))
            }
        }
    }

    /// The result of an interrupted row: blocked if a network has no capacity for one of its messages, otherwise a
    /// violation.
    pub(super) fn interrupted(
        &self,
        system: &System,
        row_line: u8,
        owner: RowOwner,
        error: &RowError,
    ) -> StepError {
        let acts = error.acts.iter().chain(&error.later);
        match self.check_capacity(system, row_line, owner, acts) {
            Ok(()) => owner.row_fault(system, error),
            Err(blocked) => blocked,
        }
    }

    /// Returns an error if a network has no capacity for one of the messages that a row sends. A row waits until all of
    /// its messages can be sent.
    pub(super) fn check_capacity<'a>(
        &self,
        system: &System,
        row_line: u8,
        owner: RowOwner,
        acts: impl IntoIterator<Item = &'a Act>,
    ) -> Result<(), StepError> {
        let (protocol, sender) = (system.protocol, owner.number());
        let mut networks = protocol.networks.iter();
        if networks.all(|network| network.capacity.is_none()) {
            return Ok(());
        }
        let mut network = self.network.clone();
        for act in acts {
            let Act::Send { message, to, .. } = *act else {
                continue;
            };
            let Some((to, line)) = receiver_and_line(system, row_line, sender, message, to) else {
                continue;
            };
            let home = sending_home(system, row_line, (sender, to), message);
            let order = order_of(protocol, message, (sender, to), (line, home));
            if order.is_some_and(|order| !network.has_capacity(protocol, order)) {
                return Err(lack_of_capacity());
            }
            network.put(
                protocol,
                InFlightMessage {
                    line,
                    message,
                    from: sender,
                    to,
                    home,
                    fields: Vec::new(),
                    early: false,
                    first: false,
                    carried: Payload::Nothing,
                },
            );
        }
        Ok(())
    }

    /// Sends a message of a row of `line`, with the value and the ticket of its store. Checks the capacity of its
    /// channel.
    pub(super) fn send(
        &mut self,
        system: &System,
        line: u8,
        from: Option<u8>,
        (value, ticket): (D::Write, Ticket),
        outgoing: OutgoingMessage<D::Copy>,
    ) -> Result<(), StepError> {
        let OutgoingMessage {
            message,
            to,
            fields,
            bytes,
        } = outgoing;
        let protocol = system.protocol;
        let row_line = line;
        let Some((to, line)) = receiver_and_line(system, line, from, message, to) else {
            let description = "a message to a home that does not exist";
            return Err(Violation::new("no unexpected message", description).into());
        };
        let home = sending_home(system, row_line, (from, to), message);
        if let (Bytes::Line(copy), Some(to)) = (&bytes, to) {
            self.check_response(system, line, to, (message, copy))?;
        }
        let flight = InFlightMessage {
            line,
            message,
            from,
            to,
            home,
            fields,
            early: false,
            first: false,
            carried: match bytes {
                Bytes::None => Payload::Nothing,
                Bytes::Line(copy) => Payload::Line(copy),
                Bytes::Write => Payload::Write(value, ticket),
            },
        };
        match order_of(protocol, message, (from, to), (line, home)) {
            Some(order) if !self.network.has_capacity(protocol, order) => {
                return Err(lack_of_capacity())
            }
            Some(order) => {
                let lines = match protocol.per_line[order.0] {
                    true => 1,
                    false => system.lines,
                };
                let capacity = usize::from(system.channel_capacity) * usize::from(lines);
                if self.network.queued(order) >= capacity {
                    return Err(StepError::Exceeded(format!(
                        "more than {} in one ordered channel",
                        counted(capacity as u64, "message")
                    )));
                }
            }
            None => {
                let (capacity, bound_name) = system.capacity_of(message);
                if self.network.alike(&flight) >= usize::from(capacity) {
                    let name = &protocol.message(message).name;
                    let description = format!("more than {capacity} {name} in flight");
                    return Err(match bound_name {
                        Some(bound) => Violation::new(bound, description).into(),
                        None => StepError::Exceeded(description),
                    });
                }
            }
        }
        self.network.put(protocol, flight);
        Ok(())
    }
}

/// Returns the receiver of a message and its number in place of a line. For a message about no line this is the number
/// of the home that takes or sends it. `None` if there is no such home.
fn receiver_and_line(
    system: &System,
    line: u8,
    sender: Endpoint,
    message: MessageId,
    receiver: Receiver,
) -> Option<(Endpoint, u8)> {
    let about_line = system.protocol.message(message).about_line;
    Some(match receiver {
        Receiver::HomeAt(home) if home < system.protocol.homes => (None, home as u8),
        Receiver::HomeAt(_) => return None,
        Receiver::Home if !about_line => (None, system.home_of(line) as u8),
        Receiver::Home => (None, line),
        Receiver::Remote(receiver) if about_line => (Some(receiver as u8), line),
        Receiver::Remote(receiver) if sender.is_none() => {
            (Some(receiver as u8), system.home_of(line) as u8)
        }
        Receiver::Remote(receiver) => (Some(receiver as u8), 0),
    })
}

/// Returns the number of the sending home for an ordered message between homes; otherwise 0.
fn sending_home(
    system: &System,
    line: u8,
    endpoints: (Endpoint, Endpoint),
    message: MessageId,
) -> u8 {
    let channel = system.protocol.message(message).channel;
    match (endpoints, system.protocol.order_of(channel)) {
        ((None, None), Some(_)) => system.home_of(line) as u8,
        _ => 0,
    }
}

impl System<'_> {
    /// The capacity for equal unordered messages of a type, and the property that a further message violates, if the
    /// protocol file declares a bound.
    fn capacity_of(&self, message: MessageId) -> (u16, Option<String>) {
        let bounds = &self.protocol.bounds;
        let message_bound = bounds.per_message.iter().find(|(m, _)| *m == message);
        let name = &self.protocol.message(message).name;
        let limits = [
            message_bound.map(|(_, bound)| (bound.limit, format!("{} {name}", bound.limit))),
            (bounds.in_flight).map(|bound| (bound.limit, counted(bound.limit, "message"))),
        ];
        let declared_limits = limits.into_iter().flatten();
        match declared_limits.min_by_key(|(limit, _)| *limit) {
            Some((limit, description)) if limit <= self.channel_capacity => (
                limit.max(1),
                Some(format!("more than {description} in flight")),
            ),
            _ => (self.channel_capacity, None),
        }
    }
}
