//! Messages of the home that wait for their line, and those that may not leave before them.

use crate::kernel::Time;
use crate::message::Message;

/// A message that has not been sent.
#[derive(Clone, Copy)]
struct Delayed {
    message: Message,
    number: u32,
    /// Time at which it may leave, once that is known.
    ready: Option<Time>,
}

/// Messages that have not been sent, in the order of their rows.
#[derive(Default)]
pub(crate) struct DelayedMessages {
    messages: Vec<Delayed>,
    last_number: u32,
    /// True if a message may have become ready since the messages were last taken.
    has_new_ready: bool,
}

impl DelayedMessages {
    /// Returns a number for the next message.
    #[inline]
    pub fn next_number(&mut self) -> u32 {
        self.last_number = self.last_number.wrapping_add(1);
        self.last_number
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Adds the last message.
    pub fn add(&mut self, message: Message, number: u32, ready: Option<Time>) {
        self.has_new_ready |= ready.is_some();
        self.messages.push(Delayed {
            message,
            number,
            ready,
        });
    }

    /// Sets the time at which a message may leave.
    pub fn set_ready(&mut self, number: u32, ready: Time) {
        let mut messages = self.messages.iter_mut();
        if let Some(delayed) = messages.find(|delayed| delayed.number == number) {
            delayed.ready = Some(ready);
            self.has_new_ready = true;
        }
    }

    /// Removes and returns the messages that may leave, with their numbers and times. A message waits for earlier ones
    /// to its receiver about the same line, and, if it is ordered, for all earlier ones to its receiver.
    pub fn take_ready(
        &mut self,
        is_ordered: impl Fn(&Message) -> bool,
    ) -> Vec<(Message, u32, Time)> {
        let mut taken = Vec::new();
        if !std::mem::take(&mut self.has_new_ready) {
            return taken;
        }
        let mut kept = 0;
        for place in 0..self.messages.len() {
            let delayed = self.messages[place];
            let message = &delayed.message;
            let follows = |earlier: &Delayed| {
                earlier.message.to == message.to
                    && (earlier.message.line == message.line || is_ordered(message))
            };
            match delayed.ready {
                Some(ready) if !self.messages[..kept].iter().any(follows) => {
                    taken.push((delayed.message, delayed.number, ready))
                }
                _ => {
                    self.messages[kept] = delayed;
                    kept += 1;
                }
            }
        }
        self.messages.truncate(kept);
        taken
    }
}
