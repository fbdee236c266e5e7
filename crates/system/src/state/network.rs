//! Messages in flight.

use cohkit_protocol::protocol::{MessageId, Protocol};
use std::collections::BTreeMap;

use super::CopyOnWrite;
use crate::data::Data;
use crate::stores::Ticket;

/// An endpoint of a message: a remote by its number, or `None` for the home.
pub type Endpoint = Option<u8>;

/// Data of a message.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Payload<D: Data> {
    /// No data.
    Nothing,
    /// A copy of the line.
    Line(D::Copy),
    /// The bytes of a write, with the state of its store.
    Write(D::Write, Ticket),
}

/// A message in flight.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct InFlightMessage<D: Data> {
    /// The line. A message about no line has the number of its home here.
    pub line: u8,
    /// Message type.
    pub message: MessageId,
    /// Sender of the message.
    pub from: Endpoint,
    /// Receiver of the message.
    pub to: Endpoint,
    /// Number of the sending home, for an ordered message between homes; otherwise 0.
    pub home: u8,
    /// Field values, in the order of their declaration; a set is one value.
    pub fields: Vec<u16>,
    /// True if a later message that stays behind this one is still in flight.
    pub early: bool,
    /// True if the message is at the head of the input queue of its network and stalls all others there.
    pub first: bool,
    /// Data that the message carries.
    pub carried: Payload<D>,
}

/// Key of an order: its index in the protocol, sender, receiver, and scope. The scope is a line, all lines (`None`), or
/// with several homes the lines of one home. Between homes it is a pair of numbers in one: the sender's times the
/// number of homes, plus the receiver's.
pub type Order = (usize, Endpoint, Endpoint, Option<u8>);

/// The key of a message's order, if its channel is ordered.
pub fn order_of(
    protocol: &Protocol,
    message: MessageId,
    (from, to): (Endpoint, Endpoint),
    (line, home): (u8, u8),
) -> Option<Order> {
    let order = protocol.order_of(protocol.message(message).channel)?;
    // With several homes, each has its own order. A message about no line has its home in place of the line.
    let line = match (protocol.per_line[order], protocol.homes) {
        (_, homes) if (from, to) == (None, None) => Some(home * homes as u8 + line % homes as u8),
        (true, _) => Some(line),
        (false, 1) => None,
        (false, homes) => Some(line % homes as u8),
    };
    Some((order, from, to, line))
}

/// Selects the message that arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// The message with this index among those without an order.
    Unordered(usize),
    /// The first message of an order.
    Ordered(Order),
}

/// The input queue of a network at a receiver: index of the network's order, receiver, and the home's number (0 at a
/// remote).
type Input = (usize, Endpoint, u8);

/// The input queue that messages of an order enter, if the order is that of a network.
fn input_of(protocol: &Protocol, order: Order) -> Option<Input> {
    protocol.network_of(order.0)?;
    let home = match order.2 {
        Some(_) => 0,
        None => order.3.unwrap_or(0),
    };
    Some((order.0, order.2, home))
}

/// All messages in flight.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Network<D: Data> {
    /// Messages of channels without an order, sorted. Equal messages are interchangeable.
    unordered: Vec<CopyOnWrite<InFlightMessage<D>>>,
    /// Queue of each order, oldest message first. Empty queues are removed.
    ordered: BTreeMap<Order, Vec<CopyOnWrite<InFlightMessage<D>>>>,
}

impl<D: Data> Network<D> {
    /// Returns a network without messages.
    pub fn new() -> Self {
        Network {
            unordered: Vec::new(),
            ordered: BTreeMap::new(),
        }
    }

    /// All messages: those without an order, then the queues of the orders.
    pub fn flights(&self) -> impl Iterator<Item = &InFlightMessage<D>> {
        self.shared().map(|flight| &**flight)
    }

    /// All messages, with the shared parts in which states hold them.
    pub fn shared(&self) -> impl Iterator<Item = &CopyOnWrite<InFlightMessage<D>>> {
        self.unordered.iter().chain(self.ordered.values().flatten())
    }

    /// True if no message is in flight.
    pub fn is_empty(&self) -> bool {
        self.unordered.is_empty() && self.ordered.is_empty()
    }

    /// Messages that may arrive next. Equal messages are listed once.
    pub fn arrivals<'n>(&'n self, protocol: &'n Protocol) -> impl Iterator<Item = Arrival> + 'n {
        let flights = self.unordered.iter().enumerate();
        let may_arrive = |&(index, flight): &(usize, &CopyOnWrite<InFlightMessage<D>>)| {
            (index == 0 || self.unordered[index - 1] != *flight)
                && !self.must_wait(protocol, flight)
        };
        let unordered = flights
            .filter(may_arrive)
            .map(|(index, _)| Arrival::Unordered(index));
        let orders = self.ordered.keys().copied();
        let orders = orders.filter(|&order| match input_of(protocol, order) {
            Some(input) => self
                .blocked_order(protocol, input)
                .is_none_or(|first| first == order),
            None => true,
        });
        unordered.chain(orders.map(Arrival::Ordered))
    }

    /// The order whose first message is marked as the head of an input queue.
    fn blocked_order(&self, protocol: &Protocol, input: Input) -> Option<Order> {
        let mut waiting = self.ordered.iter().filter(|(_, flights)| flights[0].first);
        let blocking = waiting.find(|(&order, _)| input_of(protocol, order) == Some(input));
        blocking.map(|(&order, _)| order)
    }

    /// Orders whose first message may become the head of the input queue of its network and stall there.
    pub fn may_block<'n>(&'n self, protocol: &'n Protocol) -> impl Iterator<Item = Order> + 'n {
        let orders = self.ordered.keys().copied();
        orders.filter(|&order| {
            let input = input_of(protocol, order);
            input.is_some_and(|input| self.blocked_order(protocol, input).is_none())
        })
    }

    /// True if the input queue of the order's network can hold one more message, or the network has no capacity
    /// limit.
    pub fn has_capacity(&self, protocol: &Protocol, order: Order) -> bool {
        let network = protocol.network_of(order.0);
        let Some(network) = network.filter(|network| network.capacity.is_some()) else {
            return true;
        };
        let input = input_of(protocol, order);
        let queues = self.ordered.iter();
        let same_input = queues.filter(|(&other, _)| input_of(protocol, other) == input);
        network.has_room(same_input.map(|(_, flights)| flights.len()).sum())
    }

    /// Marks the first message of an order as the head of its input queue, where it stalls all others.
    pub fn block(&mut self, order: Order) {
        if let Some(flights) = self.ordered.get_mut(&order) {
            flights[0].first = true;
        }
    }

    /// True if the message must stay behind others that are still in flight.
    fn must_wait(&self, protocol: &Protocol, flight: &InFlightMessage<D>) -> bool {
        let predecessors = protocol.earlier_messages(flight.message);
        let must_precede = |other: &InFlightMessage<D>| {
            other.early && predecessors.contains(&other.message) && has_same_route(flight, other)
        };
        !predecessors.is_empty() && self.unordered.iter().any(|other| must_precede(other))
    }

    /// The message of an arrival.
    pub fn at(&self, arrival: Arrival) -> Option<&InFlightMessage<D>> {
        match arrival {
            Arrival::Unordered(index) => self.unordered.get(index),
            Arrival::Ordered(order) => self.ordered.get(&order)?.first(),
        }
        .map(|flight| &**flight)
    }

    /// Removes a message that [`Network::arrivals`] lists.
    pub fn take(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::Unordered(index) => {
                self.unordered.remove(index);
            }
            Arrival::Ordered(order) => {
                if let Some(flights) = self.ordered.get_mut(&order) {
                    flights.remove(0);
                    if flights.is_empty() {
                        self.ordered.remove(&order);
                    }
                }
            }
        }
    }

    /// Adds a message, behind the others of its order.
    pub fn put(&mut self, protocol: &Protocol, flight: InFlightMessage<D>) {
        let predecessors = protocol.earlier_messages(flight.message);
        let ordered = protocol.order_of(protocol.message(flight.message).channel);
        if !predecessors.is_empty() && ordered.is_none() {
            let is_predecessor = |other: &InFlightMessage<D>| {
                predecessors.contains(&other.message) && has_same_route(&flight, other)
            };
            for other in self
                .unordered
                .iter_mut()
                .filter(|other| is_predecessor(other))
            {
                other.early = true;
            }
            self.unordered.sort_unstable();
        }
        self.insert_keeping_marks(protocol, CopyOnWrite::new(flight));
    }

    /// Adds a message and keeps its mark [`InFlightMessage::early`], behind the others of its order.
    pub fn insert_keeping_marks(
        &mut self,
        protocol: &Protocol,
        flight: CopyOnWrite<InFlightMessage<D>>,
    ) {
        let endpoints = (flight.from, flight.to);
        match order_of(
            protocol,
            flight.message,
            endpoints,
            (flight.line, flight.home),
        ) {
            Some(order) => self.ordered.entry(order).or_default().push(flight),
            None => {
                let index = self.unordered.partition_point(|other| *other < flight);
                self.unordered.insert(index, flight);
            }
        }
    }

    /// Number of messages in the queue of an order.
    pub fn queued(&self, order: Order) -> usize {
        self.ordered.get(&order).map_or(0, Vec::len)
    }

    /// Number of unordered messages equal to this one except for their data.
    pub fn alike(&self, flight: &InFlightMessage<D>) -> usize {
        let same = |other: &&CopyOnWrite<InFlightMessage<D>>| {
            (other.line, other.message, other.from, other.to)
                == (flight.line, flight.message, flight.from, flight.to)
                && other.fields == flight.fields
        };
        self.unordered.iter().filter(same).count()
    }

    /// Changes the tickets of all stores that one remote has sent to a line.
    pub fn change_tickets(&mut self, line: u8, from: u8, change: impl Fn(Ticket) -> Ticket) {
        let flights = self
            .unordered
            .iter_mut()
            .chain(self.ordered.values_mut().flatten());
        let mut changed = false;
        for flight in flights.filter(|flight| (flight.line, flight.from) == (line, Some(from))) {
            let Payload::Write(write, ticket) = &flight.carried else {
                continue;
            };
            let next = change(*ticket);
            if next != *ticket {
                flight.carried = Payload::Write(write.clone(), next);
                changed = true;
            }
        }
        if changed {
            self.unordered.sort_unstable();
        }
    }

    /// Applies a change to every copy of a line that is in flight.
    pub fn change(&mut self, line: u8, change: impl Fn(&D::Copy) -> D::Copy) {
        let flights = self
            .unordered
            .iter_mut()
            .chain(self.ordered.values_mut().flatten());
        for flight in flights.filter(|flight| flight.line == line) {
            if let Payload::Line(copy) = &flight.carried {
                let changed = change(copy);
                if changed != *copy {
                    flight.carried = Payload::Line(changed);
                }
            }
        }
        self.unordered.sort_unstable();
    }
}

/// True if two messages have the same line, sender and receiver.
fn has_same_route<D: Data>(left: &InFlightMessage<D>, right: &InFlightMessage<D>) -> bool {
    (left.line, left.from, left.to) == (right.line, right.from, right.to)
}

impl<D: Data> Default for Network<D> {
    fn default() -> Self {
        Network::new()
    }
}
