//! Messages under way.

use cohkit_protocol::protocol::{MessageId, Protocol};
use std::collections::BTreeMap;

use super::Common;
use crate::data::Data;
use crate::stores::Ticket;

/// An agent at an end of a message: a remote by its number, or the home.
pub type End = Option<u8>;

/// What a message takes along.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Carried<D: Data> {
    /// Nothing.
    Nothing,
    /// A copy of the line.
    Line(D::Copy),
    /// The bytes of a write, with the state of its store.
    Write(D::Write, Ticket),
}

/// A message under way.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Flight<D: Data> {
    /// Which line it is about.
    pub line: u8,
    /// Which message it is.
    pub message: MessageId,
    /// Who sent it.
    pub from: End,
    /// To whom.
    pub to: End,
    /// Between homes in an order: the number of the home that sent it. Otherwise 0.
    pub home: u8,
    /// The values of its fields.
    pub fields: Vec<u16>,
    /// Whether a message that stays behind this one was sent after it and is still under way.
    pub early: bool,
    /// Whether it waits first in the input queue of its network, with all others behind it.
    pub first: bool,
    /// What it takes along.
    pub carried: Carried<D>,
}

/// An order of channels from one agent to another, about one line or all of them; of several homes, all lines of one. Between
/// homes both are in the number behind: that of the sender times how many there are, and that of the receiver.
pub type Order = (usize, End, End, Option<u8>);

/// The order in which a message goes, if there is one.
pub fn order_of(
    protocol: &Protocol,
    message: MessageId,
    (from, to): (End, End),
    (line, home): (u8, u8),
) -> Option<Order> {
    let order = protocol.order_of(protocol.message(message).channel)?;
    // Homes receive and send apart: what is about no line has its home in the place of a line.
    let line = match (protocol.per_line[order], protocol.homes) {
        (_, homes) if (from, to) == (None, None) => Some(home * homes as u8 + line % homes as u8),
        (true, _) => Some(line),
        (false, 1) => None,
        (false, homes) => Some(line % homes as u8),
    };
    Some((order, from, to, line))
}

/// Which message arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// The one at this place among those without an order.
    Unordered(usize),
    /// The first of an order.
    Ordered(Order),
}

/// The input queue of a network at a receiver: the network's order, the receiver, and the number of the home if it is one.
type Input = (usize, End, u8);

/// The input queue that messages of an order enter, if it is that of a network.
fn input_of(protocol: &Protocol, order: Order) -> Option<Input> {
    protocol.network_of(order.0)?;
    let home = match order.2 {
        Some(_) => 0,
        None => order.3.unwrap_or(0),
    };
    Some((order.0, order.2, home))
}

/// All messages under way.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Network<D: Data> {
    /// Those of channels without an order, sorted: which of two equal ones arrives is the same.
    unordered: Vec<Common<Flight<D>>>,
    /// Those of each order, from the first to the last; no order without messages is kept.
    ordered: BTreeMap<Order, Vec<Common<Flight<D>>>>,
}

impl<D: Data> Network<D> {
    /// Without messages.
    pub fn new() -> Self {
        Network {
            unordered: Vec::new(),
            ordered: BTreeMap::new(),
        }
    }

    /// All messages: those without an order, then those of one order after the other.
    pub fn flights(&self) -> impl Iterator<Item = &Flight<D>> {
        self.shared().map(|flight| &**flight)
    }

    /// The same, as worlds have them in common.
    pub fn shared(&self) -> impl Iterator<Item = &Common<Flight<D>>> {
        self.unordered.iter().chain(self.ordered.values().flatten())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.unordered.is_empty() && self.ordered.is_empty()
    }

    /// What may arrive next. Of equal messages one is named.
    pub fn arrivals<'n>(&'n self, protocol: &'n Protocol) -> impl Iterator<Item = Arrival> + 'n {
        let flights = self.unordered.iter().enumerate();
        let first = |&(place, flight): &(usize, &Common<Flight<D>>)| {
            (place == 0 || self.unordered[place - 1] != *flight)
                && !self.waits_behind(protocol, flight)
        };
        let unordered = flights.filter(first).map(|(at, _)| Arrival::Unordered(at));
        let orders = self.ordered.keys().copied();
        let orders = orders.filter(|&order| match input_of(protocol, order) {
            Some(input) => self
                .first_in(protocol, input)
                .is_none_or(|first| first == order),
            None => true,
        });
        unordered.chain(orders.map(Arrival::Ordered))
    }

    /// The order whose first message waits first in an input queue.
    fn first_in(&self, protocol: &Protocol, input: Input) -> Option<Order> {
        let mut waiting = self.ordered.iter().filter(|(_, flights)| flights[0].first);
        let found = waiting.find(|(&order, _)| input_of(protocol, order) == Some(input));
        found.map(|(&order, _)| order)
    }

    /// The orders whose first message may be the first in the input queue of a network and wait there.
    pub fn may_block<'n>(&'n self, protocol: &'n Protocol) -> impl Iterator<Item = Order> + 'n {
        let orders = self.ordered.keys().copied();
        orders.filter(|&order| {
            let input = input_of(protocol, order);
            input.is_some_and(|input| self.first_in(protocol, input).is_none())
        })
    }

    /// Whether one more message of an order finds room in the input queue of its network, if that has a capacity.
    pub fn has_room(&self, protocol: &Protocol, order: Order) -> bool {
        let network = protocol.network_of(order.0);
        let Some(network) = network.filter(|network| network.capacity.is_some()) else {
            return true;
        };
        let input = input_of(protocol, order);
        let all = self.ordered.iter();
        let its = all.filter(|(&other, _)| input_of(protocol, other) == input);
        network.has_room(its.map(|(_, flights)| flights.len()).sum())
    }

    /// The first message of an order is the first in its input queue, where all others wait behind it.
    pub fn block(&mut self, order: Order) {
        if let Some(flights) = self.ordered.get_mut(&order) {
            flights[0].first = true;
        }
    }

    /// Whether a message stays behind others that are still under way.
    fn waits_behind(&self, protocol: &Protocol, flight: &Flight<D>) -> bool {
        let earlier = protocol.stays_behind(flight.message);
        let before = |other: &Flight<D>| {
            other.early && earlier.contains(&other.message) && along(flight, other)
        };
        !earlier.is_empty() && self.unordered.iter().any(|other| before(other))
    }

    /// The message that arrives.
    pub fn at(&self, arrival: Arrival) -> Option<&Flight<D>> {
        match arrival {
            Arrival::Unordered(place) => self.unordered.get(place),
            Arrival::Ordered(order) => self.ordered.get(&order)?.first(),
        }
        .map(|flight| &**flight)
    }

    /// Takes a message out.
    pub fn take(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::Unordered(place) => {
                self.unordered.remove(place);
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

    /// Puts a message in, behind those of its order.
    pub fn put(&mut self, protocol: &Protocol, flight: Flight<D>) {
        let earlier = protocol.stays_behind(flight.message);
        let ordered = protocol.order_of(protocol.message(flight.message).channel);
        if !earlier.is_empty() && ordered.is_none() {
            let its = |other: &Flight<D>| earlier.contains(&other.message) && along(&flight, other);
            for other in self.unordered.iter_mut().filter(|other| its(other)) {
                other.early = true;
            }
            self.unordered.sort_unstable();
        }
        self.put_as_it_is(protocol, Common::new(flight));
    }

    /// Puts a message in with what is known of those behind it, behind those of its order.
    pub fn put_as_it_is(&mut self, protocol: &Protocol, flight: Common<Flight<D>>) {
        let ends = (flight.from, flight.to);
        match order_of(protocol, flight.message, ends, (flight.line, flight.home)) {
            Some(order) => self.ordered.entry(order).or_default().push(flight),
            None => {
                let place = self.unordered.partition_point(|other| *other < flight);
                self.unordered.insert(place, flight);
            }
        }
    }

    /// How many messages are between two agents in an order.
    pub fn queued(&self, order: Order) -> usize {
        self.ordered.get(&order).map_or(0, Vec::len)
    }

    /// How many messages of no order say the same as this one, whatever copy of the line they carry.
    pub fn alike(&self, flight: &Flight<D>) -> usize {
        let same = |other: &&Common<Flight<D>>| {
            (other.line, other.message, other.from, other.to)
                == (flight.line, flight.message, flight.from, flight.to)
                && other.fields == flight.fields
        };
        self.unordered.iter().filter(same).count()
    }

    /// Changes the tickets of all stores that one remote has sent to a line.
    pub fn change_tickets(&mut self, line: u8, from: u8, change: impl Fn(Ticket) -> Ticket) {
        let all = self
            .unordered
            .iter_mut()
            .chain(self.ordered.values_mut().flatten());
        let mut changed = false;
        for flight in all.filter(|flight| (flight.line, flight.from) == (line, Some(from))) {
            let Carried::Write(what, ticket) = &flight.carried else {
                continue;
            };
            let next = change(*ticket);
            if next != *ticket {
                flight.carried = Carried::Write(what.clone(), next);
                changed = true;
            }
        }
        if changed {
            self.unordered.sort_unstable();
        }
    }

    /// Changes every copy of a line that is under way.
    pub fn change(&mut self, line: u8, change: impl Fn(&D::Copy) -> D::Copy) {
        let all = self
            .unordered
            .iter_mut()
            .chain(self.ordered.values_mut().flatten());
        for flight in all.filter(|flight| flight.line == line) {
            if let Carried::Line(copy) = &flight.carried {
                let changed = change(copy);
                if changed != *copy {
                    flight.carried = Carried::Line(changed);
                }
            }
        }
        self.unordered.sort_unstable();
    }
}

/// Whether two messages go from the same agent to the same agent about the same line.
fn along<D: Data>(one: &Flight<D>, other: &Flight<D>) -> bool {
    (one.line, one.from, one.to) == (other.line, other.from, other.to)
}

impl<D: Data> Default for Network<D> {
    fn default() -> Self {
        Network::new()
    }
}
