//! Messages of the home that wait for their line, and those that may not leave before them.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::kernel::Time;
use crate::message::{Agent, Line, Message};

/// A message that has not been sent.
#[derive(Clone, Copy)]
struct Delayed {
    message: Message,
    /// Place in the order of the rows.
    place: u64,
    /// Time at which it may leave, once that is known.
    ready: Option<Time>,
}

/// Messages that have not been sent. A message waits for earlier ones to its receiver about the same line, and, if it
/// is ordered, for all earlier ones to its receiver.
#[derive(Default)]
pub(crate) struct DelayedMessages {
    messages: FxHashMap<u32, Delayed>,
    /// Numbers of the messages to each receiver, in the order of their rows. Those behind the first may have left.
    by_receiver: FxHashMap<Agent, VecDeque<u32>>,
    /// Numbers of the messages to each receiver about each line, in the order of their rows.
    by_line: FxHashMap<(Agent, Line), VecDeque<u32>>,
    /// Messages that may have become able to leave since messages were last taken.
    candidates: Vec<u32>,
    last_number: u32,
    last_place: u64,
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
        let Message { to, line, .. } = message;
        self.last_place += 1;
        let delayed = Delayed {
            message,
            place: self.last_place,
            ready,
        };
        self.messages.insert(number, delayed);
        self.by_receiver.entry(to).or_default().push_back(number);
        self.by_line
            .entry((to, line))
            .or_default()
            .push_back(number);
        if ready.is_some() {
            self.candidates.push(number);
        }
    }

    /// Sets the time at which a message may leave.
    pub fn set_ready(&mut self, number: u32, ready: Time) {
        if let Some(delayed) = self.messages.get_mut(&number) {
            delayed.ready = Some(ready);
            self.candidates.push(number);
        }
    }

    /// Removes and returns the messages that may leave, with their numbers and times, in the order of their rows.
    pub fn take_ready(
        &mut self,
        is_ordered: impl Fn(&Message) -> bool,
    ) -> Vec<(Message, u32, Time)> {
        let mut taken = Vec::new();
        while let Some(number) = self.candidates.pop() {
            let Some(Delayed {
                message,
                place,
                ready: Some(ready),
            }) = self.messages.get(&number).copied()
            else {
                continue;
            };
            let Message { to, line, .. } = message;
            let first = match is_ordered(&message) {
                true => self.by_receiver.get(&to),
                false => self.by_line.get(&(to, line)),
            };
            if first.and_then(VecDeque::front) == Some(&number) {
                self.remove(number, (to, line));
                taken.push((place, (message, number, ready)));
            }
        }
        taken.sort_unstable_by_key(|&(place, _)| place);
        taken.into_iter().map(|(_, message)| message).collect()
    }

    /// Removes the first message to a receiver about a line. Those behind it become candidates.
    fn remove(&mut self, number: u32, (to, line): (Agent, Line)) {
        self.messages.remove(&number);
        if let Some(same_line) = self.by_line.get_mut(&(to, line)) {
            same_line.pop_front();
            match same_line.front() {
                Some(&next) => self.candidates.push(next),
                None => {
                    self.by_line.remove(&(to, line));
                }
            }
        }
        let Some(same_receiver) = self.by_receiver.get_mut(&to) else {
            return;
        };
        // An unordered message need not be the first.
        let was_first = same_receiver.front() == Some(&number);
        while let Some(first) = same_receiver.front() {
            if self.messages.contains_key(first) {
                break;
            }
            same_receiver.pop_front();
        }
        if was_first {
            self.candidates.extend(same_receiver.front());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Copy;
    use cohkit_protocol::terms::MessageId;
    use proptest::prelude::*;

    /// Kind of ordered messages; others are unordered.
    const ORDERED: MessageId = MessageId(1);

    /// The definition, by comparison of each message with all earlier ones.
    #[derive(Default)]
    struct Reference(Vec<(Message, u32, Option<Time>)>);

    impl Reference {
        fn take_ready(&mut self) -> Vec<(u32, Time)> {
            let mut taken = Vec::new();
            let mut kept: Vec<(Message, u32, Option<Time>)> = Vec::new();
            for (message, number, ready) in self.0.drain(..) {
                let follows = |earlier: &(Message, u32, Option<Time>)| {
                    let is_same_line = earlier.0.line == message.line;
                    earlier.0.to == message.to && (is_same_line || message.kind == ORDERED)
                };
                match ready {
                    Some(ready) if !kept.iter().any(follows) => taken.push((number, ready)),
                    _ => kept.push((message, number, ready)),
                }
            }
            self.0 = kept;
            taken
        }
    }

    fn message(to: u16, line: Line, kind: u16) -> Message {
        Message {
            line,
            copy: Copy::UNTOUCHED,
            kind: MessageId(kind),
            from: crate::message::HOME,
            to: Agent(to),
            word: 0,
            words: 0,
            fields: Default::default(),
            credit: false,
            flight: 0,
        }
    }

    proptest! {
        /// Messages leave as the definition says, whatever the order in which they become ready.
        #[test]
        fn messages_leave_as_by_definition(
            steps in prop::collection::vec((0..2u16, 0..3u32, 0..2u16, 0..8usize), 1..200)
        ) {
            let (mut delayed, mut reference) = (DelayedMessages::default(), Reference::default());
            for (time, (to, line, kind, choice)) in (0..).zip(steps) {
                let unready: Vec<u32> = reference.0.iter().filter(|m| m.2.is_none()).map(|m| m.1).collect();
                match unready.get(choice) {
                    // One that waits becomes ready.
                    Some(&number) => {
                        delayed.set_ready(number, time);
                        let mut messages = reference.0.iter_mut();
                        messages.find(|m| m.1 == number).unwrap().2 = Some(time);
                    }
                    // A message is added; some numbers are never used.
                    None => {
                        let number = delayed.next_number() + 1;
                        delayed.next_number();
                        let ready = (choice % 3 == 0).then_some(time);
                        delayed.add(message(to, line, kind), number, ready);
                        reference.0.push((message(to, line, kind), number, ready));
                    }
                }
                let taken = delayed.take_ready(|message| message.kind == ORDERED);
                let taken: Vec<(u32, Time)> = taken.iter().map(|&(_, number, time)| (number, time)).collect();
                prop_assert_eq!(taken, reference.take_ready());
                prop_assert_eq!(delayed.is_empty(), reference.0.is_empty());
            }
        }
    }
}
