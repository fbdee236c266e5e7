//! Messages that others stay behind, from when they are sent until they are taken.
//!
//! Links, circuits and credits know nothing of `ordered M behind N`: the two may travel on different circuits, of which one waits for credits.
//! So the receiver holds M back until each N that the same sender sent it earlier, about the same line, is taken.
//! In the same way it keeps an order of all lines, which a home takes in several units, and what no link keeps.

use rustc_hash::FxHashMap;

use super::Kind;
use crate::message::{Line, Message, Order};

/// The flights of all messages under way that others stay behind, in the order in which they were sent, with their lines.
#[derive(Default)]
pub(crate) struct Earlier {
    flights: FxHashMap<Order, Vec<(u32, Line)>>,
}

/// What `ordered M behind N` keeps apart.
fn declared(number: Option<u8>, message: &Message) -> Option<Order> {
    number.map(|number| (message.sender(), message.to, number, message.line))
}

/// The order that the receiver keeps a message in.
#[inline]
fn kept(kind: &Kind, message: &Message) -> Option<Order> {
    kind.kept.then(|| kind.order(message)).flatten()
}

impl Earlier {
    /// A message is sent.
    #[inline]
    pub(super) fn sent(&mut self, kind: &Kind, message: &Message) {
        let orders = [declared(kind.leads, message), kept(kind, message)];
        for order in orders.into_iter().flatten() {
            let flights = self.flights.entry(order).or_default();
            flights.push((message.flight, message.line));
        }
    }

    /// A controller has taken a message. The result is the line of what is the next to be taken of an order of several lines.
    #[inline]
    pub(crate) fn taken(&mut self, kind: &Kind, message: &Message) -> Option<Line> {
        let mut next = None;
        let orders = [declared(kind.leads, message), kept(kind, message)];
        for order in orders.into_iter().flatten() {
            if let Some(flights) = self.flights.get_mut(&order) {
                flights.retain(|&(flight, _)| flight != message.flight);
                next = flights.first().map(|&(_, line)| line);
                if flights.is_empty() {
                    self.flights.remove(&order);
                }
            }
        }
        next.filter(|&line| line != message.line)
    }

    /// Whether a message has come before one that it stays behind.
    #[inline]
    pub(crate) fn holds_back(&self, kind: &Kind, message: &Message) -> bool {
        let orders = [declared(kind.stays, message), kept(kind, message)];
        let mut firsts = orders.into_iter().flatten().filter_map(|order| {
            let flights = self.flights.get(&order)?;
            flights.first()
        });
        firsts.any(|&(flight, _)| is_earlier(flight, message.flight))
    }
}

/// Whether one message was sent before another; numbers of flights begin anew after 2^32.
#[inline]
pub(crate) fn is_earlier(one: u32, other: u32) -> bool {
    (other.wrapping_sub(one) as i32) > 0
}
