//! Queues of messages as words, for messages waiting to be sent and for received ones.

use std::collections::VecDeque;

/// Words of the longest message: a header and a line.
pub const MAX_MESSAGE_WORDS: usize = 17;

/// A message that may be partly received and partly sent or taken.
struct PartialMessage {
    /// First word.
    header: u64,
    /// Words after the header; `None` if all are 0, to avoid copies where only sizes matter.
    payload: Option<Box<[u64; MAX_MESSAGE_WORDS - 1]>>,
    /// Number of words in total.
    total: u8,
    /// Number of words received.
    received: u8,
    /// Number of words removed.
    removed: u8,
}

impl PartialMessage {
    /// Creates a message of `total` words, of which only the header has been received.
    #[inline]
    fn new(header: u64, total: usize) -> PartialMessage {
        PartialMessage {
            header,
            payload: None,
            total: total as u8,
            received: 1,
            removed: 0,
        }
    }

    /// Appends received words.
    #[inline]
    fn extend(&mut self, words: &[u64]) {
        if self.payload.is_some() || words.iter().any(|&word| word != 0) {
            let start = usize::from(self.received) - 1;
            let payload = self.payload.get_or_insert_default();
            payload[start..start + words.len()].copy_from_slice(words);
        }
        self.received += words.len() as u8;
    }

    /// Copies the next words to be removed into `target`, which must be zero.
    #[inline]
    fn copy_next_words(&self, target: &mut [u64]) {
        let removed = usize::from(self.removed);
        let (header, payload) = target.split_at_mut(usize::from(removed == 0).min(target.len()));
        header.fill(self.header);
        if let Some(words) = &self.payload {
            let start = removed.saturating_sub(1);
            payload.copy_from_slice(&words[start..start + payload.len()]);
        }
    }
}

/// Summary of the first message of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MessageSummary {
    /// Header word.
    pub header: u64,
    /// Number of words in total.
    pub total: usize,
    /// Number of words not yet removed, received or not.
    pub remaining: usize,
    /// True if all words have been received.
    pub is_complete: bool,
}

impl MessageSummary {
    #[inline]
    fn from_message(message: &PartialMessage) -> MessageSummary {
        MessageSummary {
            header: message.header,
            total: message.total.into(),
            remaining: usize::from(message.total - message.removed),
            is_complete: message.received == message.total,
        }
    }
}

/// Messages of one circuit. All but the last are complete, and only the first may be partly removed.
#[derive(Default)]
pub(crate) struct Messages {
    /// Messages, the first to be removed first.
    queue: VecDeque<PartialMessage>,
    /// Number of words received and not removed.
    words: usize,
}

impl Messages {
    /// Number of words received and not removed.
    #[inline]
    pub fn words(&self) -> usize {
        self.words
    }

    /// Summary of the first message, if any.
    #[inline]
    pub fn first(&self) -> Option<MessageSummary> {
        self.queue.front().map(MessageSummary::from_message)
    }

    /// True if the first message is complete.
    #[inline]
    pub fn has_complete_message(&self) -> bool {
        self.queue
            .front()
            .is_some_and(|first| first.received == first.total)
    }

    /// Appends a complete message. Ignores an empty one.
    #[inline]
    pub fn push(&mut self, words: &[u64]) {
        let Some((&header, payload)) = words.split_first() else {
            return;
        };
        let mut message = PartialMessage::new(header, words.len());
        message.extend(payload);
        self.queue.push_back(message);
        self.words += words.len();
    }

    /// Appends a complete message whose words after the header are 0.
    #[inline]
    pub fn push_zero_payload(&mut self, header: u64, words: usize) {
        let mut message = PartialMessage::new(header, words);
        message.received = message.total;
        self.queue.push_back(message);
        self.words += words;
    }

    /// Appends a stream of received words. `word_count` returns the length of a message from its header, in words.
    #[inline]
    pub fn extend(&mut self, mut words: &[u64], word_count: impl Fn(u64) -> usize) {
        self.words += words.len();
        while let Some(&first) = words.first() {
            match self.queue.back_mut() {
                Some(last) if last.received < last.total => {
                    let count = words.len().min((last.total - last.received).into());
                    let (continuation, following_words) = words.split_at(count);
                    last.extend(continuation);
                    words = following_words;
                }
                _ => {
                    let total = word_count(first).clamp(1, MAX_MESSAGE_WORDS);
                    self.queue.push_back(PartialMessage::new(first, total));
                    words = &words[1..];
                }
            }
        }
    }

    /// Removes words of the first message, at most as many as fit into `target` (which must be zero), and removes
    /// the message with its last word. Returns the summary before, and the number of words removed.
    #[inline]
    pub fn dequeue_words(&mut self, target: &mut [u64]) -> Option<(MessageSummary, usize)> {
        let message = self.queue.front_mut()?;
        let summary = MessageSummary::from_message(message);
        let count = target
            .len()
            .min((message.received - message.removed).into());
        message.copy_next_words(&mut target[..count]);
        message.removed += count as u8;
        self.words -= count;
        if message.removed == message.total {
            self.queue.pop_front();
        }
        Some((summary, count))
    }

    /// Removes the first message, if it is complete.
    #[inline]
    pub fn take(&mut self) -> Option<MessageSummary> {
        let first = self.first().filter(|first| first.is_complete)?;
        self.words -= first.remaining;
        self.queue.pop_front();
        Some(first)
    }

    /// Removes at most `limit` received words. Calls `deliver` for each message whose last word is removed.
    pub fn drain(&mut self, mut limit: usize, mut deliver: impl FnMut(&[u64])) {
        while let Some(first) = self.queue.front_mut().filter(|_| limit > 0) {
            let count = limit.min((first.received - first.removed).into());
            if count == 0 {
                return;
            }
            limit -= count;
            if usize::from(first.removed) + count == first.total.into() {
                let mut words = [0; MAX_MESSAGE_WORDS];
                let words = &mut words[..first.total.into()];
                let removed = std::mem::take(&mut first.removed);
                first.copy_next_words(words);
                first.removed = removed;
                deliver(words);
            }
            self.remove_words(count);
        }
    }

    /// Removes `count` words of the first message, which must have them.
    #[inline]
    fn remove_words(&mut self, count: usize) {
        self.words -= count;
        if let Some(first) = self.queue.front_mut() {
            first.removed += count as u8;
            if first.removed == first.total {
                self.queue.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Messages, MAX_MESSAGE_WORDS};

    #[test]
    fn queue_preserves_words_at_any_transfer_size() {
        let mut random = cohkit_base::random::SplitMix64::new(3);
        let sizes: Vec<usize> = (0..500)
            .map(|_| 1 + random.modulo(MAX_MESSAGE_WORDS as u64) as usize)
            .collect();
        // Each word encodes its message and its index, or is 0; the header encodes the length.
        let word = |number: u64, index: u64, size: usize| match (number % 3, index) {
            (0, 1..) => 0,
            (1, 1..9) => 0,
            _ => number << 16 | index << 8 | size as u64,
        };
        let expected: Vec<u64> = (sizes.iter().zip(0u64..))
            .flat_map(|(&size, number)| {
                (0..size as u64).map(move |index| word(number, index, size))
            })
            .collect();
        let word_count = |word: u64| word as usize & 0xff;
        let (mut messages, mut received) = (Messages::default(), 0);
        let mut delivered: Vec<u64> = Vec::new();
        while delivered.len() < expected.len() {
            let count = (random.modulo(40) as usize).min(expected.len() - received);
            messages.extend(&expected[received..received + count], word_count);
            received += count;
            match random.modulo(3) {
                0 => messages.drain(random.modulo(40) as usize, |words| delivered.extend(words)),
                1 => {
                    // Count the whole message, including the words that `dequeue_words` removed earlier.
                    if let Some(first) = messages.take() {
                        let size = word_count(first.header);
                        let start = delivered.len();
                        assert_eq!((first.header, first.total), (expected[start], size));
                        delivered.extend(&expected[start..start + size]);
                    }
                }
                _ => {
                    let mut target = [0; 7];
                    let summary = messages.first();
                    let count = messages
                        .dequeue_words(&mut target)
                        .map_or(0, |(_, removed)| removed);
                    if let Some(first) = summary {
                        let first_removed = delivered.len() + first.total - first.remaining;
                        assert_eq!(
                            target[..count],
                            expected[first_removed..first_removed + count]
                        );
                        if count == first.remaining {
                            let start = delivered.len();
                            delivered.extend(&expected[start..start + first.total]);
                        }
                    }
                }
            }
            let removed = messages
                .first()
                .map_or(0, |first| first.total - first.remaining);
            assert_eq!(messages.words(), received - delivered.len() - removed);
        }
        assert_eq!(delivered, expected);
    }
}
