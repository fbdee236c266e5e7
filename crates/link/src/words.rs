//! Queues of messages as words, for messages waiting to be sent and for received ones.

use std::collections::VecDeque;

/// Words of the longest message: a header and a line.
pub const LONGEST: usize = 17;

/// A message that may be partly received and partly sent or taken.
struct PartialMessage {
    header: u64,
    /// Words after the header; `None` if all are 0, to avoid copies where only sizes matter.
    others: Option<Box<[u64; LONGEST - 1]>>,
    /// Number of words in total, received, and removed.
    all: u8,
    come: u8,
    gone: u8,
}

impl PartialMessage {
    #[inline]
    fn new(header: u64, all: usize) -> PartialMessage {
        PartialMessage {
            header,
            others: None,
            all: all as u8,
            come: 1,
            gone: 0,
        }
    }

    /// Appends received words.
    #[inline]
    fn extend(&mut self, words: &[u64]) {
        if self.others.is_some() || words.iter().any(|&word| word != 0) {
            let from = usize::from(self.come) - 1;
            let others = self.others.get_or_insert_default();
            others[from..from + words.len()].copy_from_slice(words);
        }
        self.come += words.len() as u8;
    }

    /// Copies the next words to be removed into `places`, which must be zero.
    #[inline]
    fn copy(&self, places: &mut [u64]) {
        let gone = usize::from(self.gone);
        let (first, others) = places.split_at_mut(usize::from(gone == 0).min(places.len()));
        first.fill(self.header);
        if let Some(words) = &self.others {
            let from = gone.saturating_sub(1);
            others.copy_from_slice(&words[from..from + others.len()]);
        }
    }
}

/// Summary of the first message of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MessageSummary {
    /// Header word.
    pub header: u64,
    /// Number of words in total, and not yet removed (received or not).
    pub all: usize,
    pub left: usize,
    /// True if all words have been received.
    pub whole: bool,
}

impl MessageSummary {
    #[inline]
    fn of(held: &PartialMessage) -> MessageSummary {
        MessageSummary {
            header: held.header,
            all: held.all.into(),
            left: usize::from(held.all - held.gone),
            whole: held.come == held.all,
        }
    }
}

/// Messages of one circuit. All but the last are complete, and only the first may be partly removed.
#[derive(Default)]
pub(crate) struct Messages {
    held: VecDeque<PartialMessage>,
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
        self.held.front().map(MessageSummary::of)
    }

    /// True if the first message is complete.
    #[inline]
    pub fn has_whole(&self) -> bool {
        self.held
            .front()
            .is_some_and(|first| first.come == first.all)
    }

    /// Appends a complete message. Ignores an empty one.
    #[inline]
    pub fn push(&mut self, words: &[u64]) {
        let Some((&header, others)) = words.split_first() else {
            return;
        };
        let mut held = PartialMessage::new(header, words.len());
        held.extend(others);
        self.held.push_back(held);
        self.words += words.len();
    }

    /// Appends a complete message whose words after the header are 0.
    #[inline]
    pub fn push_blank(&mut self, header: u64, words: usize) {
        let mut held = PartialMessage::new(header, words);
        held.come = held.all;
        self.held.push_back(held);
        self.words += words;
    }

    /// Appends a stream of received words. `of` returns the length of a message from its header, in words.
    #[inline]
    pub fn extend(&mut self, mut words: &[u64], of: impl Fn(u64) -> usize) {
        self.words += words.len();
        while let Some(&first) = words.first() {
            match self.held.back_mut() {
                Some(last) if last.come < last.all => {
                    let count = words.len().min((last.all - last.come).into());
                    let (these, rest) = words.split_at(count);
                    last.extend(these);
                    words = rest;
                }
                _ => {
                    let all = of(first).clamp(1, LONGEST);
                    self.held.push_back(PartialMessage::new(first, all));
                    words = &words[1..];
                }
            }
        }
    }

    /// Removes words of the first message, at most as many as `places` (which must be zero) has room for, and removes
    /// the message with its last word. Returns the summary before, and the number of words removed.
    #[inline]
    pub fn leave(&mut self, places: &mut [u64]) -> Option<(MessageSummary, usize)> {
        let held = self.held.front_mut()?;
        let first = MessageSummary::of(held);
        let count = places.len().min((held.come - held.gone).into());
        held.copy(&mut places[..count]);
        held.gone += count as u8;
        self.words -= count;
        if held.gone == held.all {
            self.held.pop_front();
        }
        Some((first, count))
    }

    /// Removes the first message, if it is complete.
    #[inline]
    pub fn take(&mut self) -> Option<MessageSummary> {
        let first = self.first().filter(|first| first.whole)?;
        self.words -= first.left;
        self.held.pop_front();
        Some(first)
    }

    /// Removes at most `limit` received words. Calls `deliver` for each message whose last word is removed.
    pub fn drain(&mut self, mut limit: usize, mut deliver: impl FnMut(&[u64])) {
        while let Some(first) = self.held.front_mut().filter(|_| limit > 0) {
            let count = limit.min((first.come - first.gone).into());
            if count == 0 {
                return;
            }
            limit -= count;
            if usize::from(first.gone) + count == first.all.into() {
                let mut words = [0; LONGEST];
                let words = &mut words[..first.all.into()];
                let gone = std::mem::take(&mut first.gone);
                first.copy(words);
                first.gone = gone;
                deliver(words);
            }
            self.go(count);
        }
    }

    /// Removes `count` words of the first message, which must have them.
    #[inline]
    fn go(&mut self, count: usize) {
        self.words -= count;
        if let Some(first) = self.held.front_mut() {
            first.gone += count as u8;
            if first.gone == first.all {
                self.held.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_arrive_and_leave_in_pieces_of_any_size() {
        let mut chance = crate::bit_errors::RandomGenerator::new(3);
        let sizes: Vec<usize> = (0..500)
            .map(|_| 1 + chance.below(LONGEST as u64) as usize)
            .collect();
        // Each word encodes its message and its index, or is 0; the header encodes the length.
        let word = |number: u64, place: u64, size: usize| match (number % 3, place) {
            (0, 1..) => 0,
            (1, 1..9) => 0,
            _ => number << 16 | place << 8 | size as u64,
        };
        let all: Vec<u64> = (sizes.iter().zip(0u64..))
            .flat_map(|(&size, number)| {
                (0..size as u64).map(move |place| word(number, place, size))
            })
            .collect();
        let of = |word: u64| word as usize & 0xff;
        let (mut messages, mut came) = (Messages::default(), 0);
        let mut whole: Vec<u64> = Vec::new();
        while whole.len() < all.len() {
            let count = (chance.below(40) as usize).min(all.len() - came);
            messages.extend(&all[came..came + count], of);
            came += count;
            match chance.below(3) {
                0 => messages.drain(chance.below(40) as usize, |words| whole.extend(words)),
                1 => {
                    // Words of this message that the test has not counted were removed before.
                    if let Some(first) = messages.take() {
                        let size = of(first.header);
                        let begin = whole.len();
                        assert_eq!((first.header, first.all), (all[begin], size));
                        whole.extend(&all[begin..begin + size]);
                    }
                }
                _ => {
                    let mut places = [0; 7];
                    let before = messages.first();
                    let left = messages.leave(&mut places).map_or(0, |(_, went)| went);
                    if let Some(first) = before {
                        let at = whole.len() + first.all - first.left;
                        assert_eq!(places[..left], all[at..at + left]);
                        if left == first.left {
                            let begin = whole.len();
                            whole.extend(&all[begin..begin + first.all]);
                        }
                    }
                }
            }
            let gone = messages.first().map_or(0, |first| first.all - first.left);
            assert_eq!(messages.words(), came - whole.len() - gone);
        }
        assert_eq!(whole, all);
    }
}
