//! Delivery order between messages that travel on different virtual circuits.
//!
//! Links, circuits and credits do not know the rule `ordered M behind N`: M and N may travel on different circuits, and
//! one of these may wait for credits. The receiver therefore holds M back until it has consumed each earlier N of the
//! same sender, to the same receiver and about the same line. In the same way the receiver keeps orders that no link
//! keeps. An example is an order across all lines, whose messages a home takes in several units.

use rustc_hash::FxHashMap;

use super::Kind;
use crate::message::{Line, Message, Order};

/// Messages in flight per order, in the order of sending. The receiver must take them in this order.
#[derive(Default)]
pub(crate) struct OrderTracker {
    /// Flight number and line of each message.
    flights: FxHashMap<Order, Vec<(u32, Line)>>,
}

/// Key of the order that `ordered M behind N` declares.
fn declared_order(number: Option<u8>, message: &Message) -> Option<Order> {
    number.map(|number| (message.sender(), message.to, number, message.line))
}

/// Key of the order that the receiver enforces, if any.
#[inline]
fn receiver_order(kind: &Kind, message: &Message) -> Option<Order> {
    kind.is_receiver_ordered
        .then(|| kind.order(message))
        .flatten()
}

impl OrderTracker {
    /// Records a sent message.
    #[inline]
    pub(super) fn record_sent(&mut self, kind: &Kind, message: &Message) {
        let orders = [
            declared_order(kind.earlier_index, message),
            receiver_order(kind, message),
        ];
        for order in orders.into_iter().flatten() {
            let flights = self.flights.entry(order).or_default();
            flights.push((message.flight, message.line));
        }
    }

    /// Records that a controller has consumed a message. Returns the line of the next message in the same order, if
    /// that line differs: the caller must present its messages again.
    #[inline]
    pub(crate) fn record_taken(&mut self, kind: &Kind, message: &Message) -> Option<Line> {
        let mut next = None;
        let orders = [
            declared_order(kind.earlier_index, message),
            receiver_order(kind, message),
        ];
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

    /// True if a predecessor of `message` is still in flight, so that the receiver must hold it back.
    #[inline]
    pub(crate) fn holds_back(&self, kind: &Kind, message: &Message) -> bool {
        let orders = [
            declared_order(kind.behind_index, message),
            receiver_order(kind, message),
        ];
        let mut heads = orders.into_iter().flatten().filter_map(|order| {
            let flights = self.flights.get(&order)?;
            flights.first()
        });
        heads.any(|&(flight, _)| is_earlier(flight, message.flight))
    }
}

/// True if `first` was sent before `second`. Flight numbers wrap at 2^32, so the comparison uses the signed difference.
#[inline]
pub(crate) fn is_earlier(first: u32, second: u32) -> bool {
    (second.wrapping_sub(first) as i32) > 0
}
