//! Go-back-n retry with sequence numbers. The sender keeps each packet until its number is acknowledged. It resends
//! after a NAK or a retry timeout. Checked by the model `models/link_numbers.m`.

use std::collections::VecDeque;

/// Number of sequence numbers (12 bits).
pub const NUMBERS: u64 = 4096;
/// Maximum unacknowledged packets: fewer than half of the sequence numbers, so that a number distinguishes old from
/// new.
pub const WINDOW: u64 = NUMBERS / 2 - 1;

/// Sending side: keeps unacknowledged packets.
pub struct Sender<T> {
    /// Packets from `oldest` on, in order; empty with replay disabled.
    unacknowledged: VecDeque<T>,
    /// True if new packets are not kept.
    has_replay_disabled: bool,
    /// Number of the oldest unacknowledged packet.
    oldest: u64,
    /// Number of the next packet to send.
    next_sent: u64,
    /// Number of the next new packet.
    next_new: u64,
    /// Packets resent.
    pub replayed: u64,
    /// Acknowledgements of packets never sent.
    pub protocol_errors: u64,
}

impl<T> Default for Sender<T> {
    fn default() -> Sender<T> {
        Sender {
            unacknowledged: VecDeque::new(),
            has_replay_disabled: false,
            oldest: 0,
            next_sent: 0,
            next_new: 0,
            replayed: 0,
            protocol_errors: 0,
        }
    }
}

impl<T: Clone> Sender<T> {
    /// True if all packets are acknowledged.
    #[inline]
    pub fn is_settled(&self) -> bool {
        self.oldest == self.next_new
    }

    /// True if packets are being resent.
    #[inline]
    pub fn is_resending(&self) -> bool {
        self.next_sent < self.next_new
    }

    /// True if a new packet may be sent: none is being resent, and the window is not full.
    #[inline]
    pub fn has_space(&self) -> bool {
        !self.is_resending() && self.next_new - self.oldest < WINDOW
    }

    /// Keeps a new packet, which is sent now, and returns its sequence number. Requires [`Sender::has_space`].
    #[inline]
    pub fn keep(&mut self, packet: &T) -> u16 {
        debug_assert!(self.has_space());
        if !self.has_replay_disabled {
            self.unacknowledged.push_back(packet.clone());
        }
        self.next_new += 1;
        self.next_sent = self.next_new;
        ((self.next_sent - 1) % NUMBERS) as u16
    }

    /// Stops keeping new packets, because nothing will be lost. They are only counted.
    pub fn disable_replay(&mut self) {
        self.has_replay_disabled = true;
    }

    /// Returns the next packet to resend with its sequence number, if any.
    pub fn resend_next(&mut self) -> Option<(u16, T)> {
        let packet = self
            .unacknowledged
            .get((self.next_sent - self.oldest) as usize)?
            .clone();
        let number = (self.next_sent % NUMBERS) as u16;
        self.next_sent += 1;
        self.replayed += 1;
        Some((number, packet))
    }

    /// Goes back: resends all unacknowledged packets.
    pub fn go_back(&mut self) {
        if !self.has_replay_disabled {
            self.next_sent = self.oldest;
        }
    }

    /// Kept packets that a partner which expects packet `expected` has not accepted.
    pub fn in_flight(&self, expected: u64) -> impl Iterator<Item = &T> {
        let accepted = expected.saturating_sub(self.oldest) as usize;
        self.unacknowledged.iter().skip(accepted)
    }

    /// Processes an ACK, or a NAK if `is_nak`: the partner has all packets before `expected`. Returns true if it
    /// acknowledges more packets or is a NAK.
    pub fn acknowledge(&mut self, expected: u16, is_nak: bool) -> bool {
        let acknowledged = (u64::from(expected) + NUMBERS - self.oldest % NUMBERS) % NUMBERS;
        if acknowledged > self.next_new - self.oldest {
            self.protocol_errors += 1;
            return false;
        }
        for _ in 0..acknowledged.min(self.unacknowledged.len() as u64) {
            self.unacknowledged.pop_front();
        }
        self.oldest += acknowledged;
        self.next_sent = self.next_sent.max(self.oldest);
        if is_nak {
            self.go_back();
        }
        acknowledged > 0 || is_nak
    }
}

/// Receiving side: accepts each packet once and in order.
#[derive(Default)]
pub struct Receiver {
    /// Number of packets accepted, which is the number of the next one, not reduced modulo [`NUMBERS`].
    expected: u64,
    /// True after a NAK, until the expected packet arrives. A run of lost packets causes only one NAK.
    has_sent_nak: bool,
    /// Packets received again after they were accepted.
    pub repeated: u64,
}

/// Action on a received packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The expected packet: accept it.
    New,
    /// A duplicate: acknowledge it again.
    Repeated,
    /// Damaged, or a predecessor is missing: a NAK is due.
    Rejected,
    /// Rejected, and a NAK was already sent: discard it.
    Ignored,
}

impl Receiver {
    /// Sequence number of the next packet to accept.
    pub fn number(&self) -> u16 {
        (self.expected % NUMBERS) as u16
    }

    /// Number of packets accepted.
    pub fn accepted_units(&self) -> u64 {
        self.expected
    }

    /// Processes a damaged packet, whose number is unknown.
    pub fn reject(&mut self) -> Arrival {
        if std::mem::replace(&mut self.has_sent_nak, true) {
            Arrival::Ignored
        } else {
            Arrival::Rejected
        }
    }

    /// Processes an intact packet with this sequence number.
    pub fn receive(&mut self, number: u16) -> Arrival {
        match (u64::from(number) + NUMBERS - self.expected % NUMBERS) % NUMBERS {
            0 => {
                self.expected += 1;
                self.has_sent_nak = false;
                Arrival::New
            }
            distance if distance > NUMBERS / 2 => {
                self.repeated += 1;
                Arrival::Repeated
            }
            _ => self.reject(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Arrival, Receiver, Sender, NUMBERS};

    #[test]
    fn receiver_accepts_once_and_rejects_a_gap_once() {
        let mut receiver = Receiver::default();
        let arrivals = [0, 2, 3, 0, 1, 3, 2].map(|number| receiver.receive(number));
        use Arrival::{Ignored, New, Rejected, Repeated};
        assert_eq!(
            arrivals,
            [New, Rejected, Ignored, Repeated, New, Rejected, New]
        );
        assert_eq!((receiver.number(), receiver.repeated), (3, 1));
    }

    #[test]
    fn sequence_numbers_wrap_around() {
        let (mut sender, mut receiver) = (Sender::default(), Receiver::default());
        for packet in 0..3 * NUMBERS {
            let number = sender.keep(&packet);
            assert_eq!(u64::from(number), packet % NUMBERS);
            assert_eq!(receiver.receive(number), Arrival::New);
            // ACK cumulatively: only the last of 1,000 sequence numbers.
            if packet % 1000 == 999 {
                assert!(sender.acknowledge(receiver.number(), false));
            }
        }
        assert_eq!(
            (receiver.accepted_units(), sender.protocol_errors),
            (3 * NUMBERS, 0)
        );
        assert!(!sender.acknowledge(receiver.number() + 1, false));
        assert_eq!(sender.protocol_errors, 1);
    }

    #[test]
    fn sender_resumes_at_the_acknowledged_packet() {
        let mut sender = Sender::default();
        for packet in 'a'..='e' {
            sender.keep(&packet);
        }
        assert!(sender.acknowledge(1, true));
        assert_eq!(sender.resend_next(), Some((1, 'b')));
        // An ACK without new packets, then one for packets that are being resent.
        assert!(!sender.acknowledge(1, false));
        assert_eq!(sender.resend_next(), Some((2, 'c')));
        assert!(sender.acknowledge(4, false));
        assert!(sender.is_resending() && !sender.has_space());
        assert_eq!(sender.resend_next(), Some((4, 'e')));
        assert_eq!((sender.resend_next(), sender.keep(&'f')), (None, 5));
        assert_eq!(sender.in_flight(5).collect::<String>(), "f");
    }
}
