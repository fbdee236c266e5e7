//! Go-back-n with numbers: what was sent stays until it is acknowledged by number, and goes again when the partner refuses
//! what came after, or says nothing for too long. `models/link_numbers.m` is checked for it.

use std::collections::VecDeque;

/// Numbers have 12 bits.
pub const NUMBERS: u64 = 4096;
/// Packets that may be under way: fewer than half of the numbers, so that a number tells old from new.
pub const WINDOW: u64 = NUMBERS / 2 - 1;

/// The side that keeps what was sent.
pub struct Sender<T> {
    kept: VecDeque<T>,
    /// Whether new packets are not kept.
    forgets: bool,
    /// The oldest that is not acknowledged.
    base: u64,
    /// The next one to go.
    next: u64,
    /// The number that the next new packet gets.
    top: u64,
    /// Packets sent again.
    pub replayed: u64,
    /// Acknowledgements of what was never sent.
    pub impossible: u64,
}

impl<T> Default for Sender<T> {
    fn default() -> Sender<T> {
        Sender {
            kept: VecDeque::new(),
            forgets: false,
            base: 0,
            next: 0,
            top: 0,
            replayed: 0,
            impossible: 0,
        }
    }
}

impl<T: Clone> Sender<T> {
    /// Whether all is acknowledged.
    #[inline]
    pub fn is_settled(&self) -> bool {
        self.base == self.top
    }

    /// Whether something goes again.
    #[inline]
    pub fn is_going_back(&self) -> bool {
        self.next < self.top
    }

    /// Whether a new packet may go.
    #[inline]
    pub fn has_room(&self) -> bool {
        !self.is_going_back() && self.top - self.base < WINDOW
    }

    /// Keeps a new packet, which leaves now under the number that is returned. Only with [`Sender::has_room`].
    #[inline]
    pub fn keep(&mut self, packet: &T) -> u16 {
        debug_assert!(self.has_room());
        if !self.forgets {
            self.kept.push_back(packet.clone());
        }
        self.top += 1;
        self.next = self.top;
        ((self.next - 1) % NUMBERS) as u16
    }

    /// Nothing is going to be sent again: new packets are only counted.
    pub fn forget(&mut self) {
        self.forgets = true;
    }

    /// The next packet to go again, with its number.
    pub fn again(&mut self) -> Option<(u16, T)> {
        let packet = self.kept.get((self.next - self.base) as usize)?.clone();
        let number = (self.next % NUMBERS) as u16;
        self.next += 1;
        self.replayed += 1;
        Some((number, packet))
    }

    /// All that is kept goes again.
    pub fn go_back(&mut self) {
        if !self.forgets {
            self.next = self.base;
        }
    }

    /// What a partner that expects `expected` has not taken.
    pub fn under_way(&self, expected: u64) -> impl Iterator<Item = &T> {
        let known = expected.saturating_sub(self.base) as usize;
        self.kept.iter().skip(known)
    }

    /// The partner has everything before `expected`, and with `refused` wants what follows again. Says whether that is news.
    pub fn told(&mut self, expected: u16, refused: bool) -> bool {
        let known = (u64::from(expected) + NUMBERS - self.base % NUMBERS) % NUMBERS;
        if known > self.top - self.base {
            self.impossible += 1;
            return false;
        }
        for _ in 0..known.min(self.kept.len() as u64) {
            self.kept.pop_front();
        }
        self.base += known;
        self.next = self.next.max(self.base);
        if refused {
            self.go_back();
        }
        known > 0 || refused
    }
}

/// The side that takes each packet once and in order.
#[derive(Default)]
pub struct Receiver {
    expected: u64,
    /// One refusal for all that is lost at once.
    refused: bool,
    /// Packets that came again though they had been taken.
    pub repeated: u64,
}

/// What is to be done about a packet that has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is the next one: it is taken.
    New,
    /// It was taken before: it is acknowledged again.
    Repeated,
    /// It, or one before it, is lost: this is told once.
    Refuse,
    /// It is lost, and that has been told.
    Ignore,
}

impl Receiver {
    /// The number of the next packet that is taken.
    pub fn number(&self) -> u16 {
        (self.expected % NUMBERS) as u16
    }

    /// Packets taken so far.
    pub fn taken(&self) -> u64 {
        self.expected
    }

    /// Whether packets have been refused and not come since.
    pub fn is_lost(&self) -> bool {
        self.refused
    }

    /// A packet has come damaged.
    pub fn refuse(&mut self) -> Verdict {
        if std::mem::replace(&mut self.refused, true) {
            Verdict::Ignore
        } else {
            Verdict::Refuse
        }
    }

    /// A packet has come whole.
    pub fn judge(&mut self, number: u16) -> Verdict {
        match (u64::from(number) + NUMBERS - self.expected % NUMBERS) % NUMBERS {
            0 => {
                self.expected += 1;
                self.refused = false;
                Verdict::New
            }
            ahead if ahead > NUMBERS / 2 => {
                self.repeated += 1;
                Verdict::Repeated
            }
            _ => self.refuse(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_is_taken_once_and_what_is_lost_is_refused_once() {
        let mut receiver = Receiver::default();
        let verdicts = [0, 2, 3, 0, 1, 3, 2].map(|number| receiver.judge(number));
        use Verdict::{Ignore, New, Refuse, Repeated};
        assert_eq!(verdicts, [New, Refuse, Ignore, Repeated, New, Refuse, New]);
        assert_eq!((receiver.number(), receiver.repeated), (3, 1));
    }

    #[test]
    fn numbers_go_round() {
        let (mut sender, mut receiver) = (Sender::default(), Receiver::default());
        for packet in 0..3 * NUMBERS {
            let number = sender.keep(&packet);
            assert_eq!(u64::from(number), packet % NUMBERS);
            assert_eq!(receiver.judge(number), Verdict::New);
            // Of a thousand numbers the last is told.
            if packet % 1000 == 999 {
                assert!(sender.told(receiver.number(), false));
            }
        }
        assert_eq!((receiver.taken(), sender.impossible), (3 * NUMBERS, 0));
        assert!(!sender.told(receiver.number() + 1, false));
        assert_eq!(sender.impossible, 1);
    }

    #[test]
    fn the_stream_goes_back_to_what_is_wanted_and_skips_what_has_come() {
        let mut sender = Sender::default();
        for packet in 'a'..='e' {
            sender.keep(&packet);
        }
        assert!(sender.told(1, true));
        assert_eq!(sender.again(), Some((1, 'b')));
        // No news, and news of what goes again.
        assert!(!sender.told(1, false));
        assert_eq!(sender.again(), Some((2, 'c')));
        assert!(sender.told(4, false));
        assert!(sender.is_going_back() && !sender.has_room());
        assert_eq!(sender.again(), Some((4, 'e')));
        assert_eq!((sender.again(), sender.keep(&'f')), (None, 5));
        assert_eq!(sender.under_way(5).collect::<String>(), "f");
    }
}
