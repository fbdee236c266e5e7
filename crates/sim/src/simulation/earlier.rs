//! Messages that others stay behind, from when they are sent until they are taken.
//!
//! Links, circuits and credits know nothing of `ordered M behind N`: the two may travel on different circuits, of which one waits for credits.
//! So the receiver holds M back until each N that the same sender sent it earlier, about the same line, is taken.

use rustc_hash::FxHashMap;

use super::Kind;
use crate::message::{Agent, Line, Message};

/// Which messages go together: what is declared of them, their sender, their receiver and their line.
type Key = (u8, Agent, Agent, Line);

/// The flights of all messages under way that others stay behind, in the order in which they were sent.
#[derive(Default)]
pub(crate) struct Earlier {
    flights: FxHashMap<Key, Vec<u32>>,
}

fn key(declared: u8, message: &Message) -> Key {
    (declared, message.sender(), message.to, message.line)
}

impl Earlier {
    /// A message is sent.
    #[inline]
    pub(super) fn sent(&mut self, kind: &Kind, message: &Message) {
        if let Some(declared) = kind.leads {
            let flights = self.flights.entry(key(declared, message)).or_default();
            flights.push(message.flight);
        }
    }

    /// A controller has taken a message.
    #[inline]
    pub(crate) fn taken(&mut self, kind: &Kind, message: &Message) {
        let Some(declared) = kind.leads else { return };
        let key = key(declared, message);
        if let Some(flights) = self.flights.get_mut(&key) {
            flights.retain(|&flight| flight != message.flight);
            if flights.is_empty() {
                self.flights.remove(&key);
            }
        }
    }

    /// Whether a message has come before one that it stays behind.
    #[inline]
    pub(crate) fn holds_back(&self, kind: &Kind, message: &Message) -> bool {
        let Some(declared) = kind.stays else {
            return false;
        };
        let flights = self.flights.get(&key(declared, message));
        flights.is_some_and(|flights| {
            let mut flights = flights.iter();
            flights.any(|&flight| is_earlier(flight, message.flight))
        })
    }
}

/// Whether one message was sent before another; numbers of flights begin anew after 2^32.
#[inline]
pub(crate) fn is_earlier(one: u32, other: u32) -> bool {
    (other.wrapping_sub(one) as i32) > 0
}
