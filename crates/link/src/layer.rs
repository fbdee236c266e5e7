//! Common interface of all link layers, so that one driver can run any of them.
//!
//! A link layer sends messages in units: blocks of ECI, packets of PCIe and CCIX, or flits of CXL.

/// A message as seen by a link: circuit, data size, and an opaque label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Virtual circuit of ECI, or message class of PCIe or CXL.
    pub circuit: u8,
    /// Bytes of data, without the header.
    pub bytes: u16,
    /// Opaque value, delivered unchanged. An ECI header holds 40 bits of it.
    pub label: u64,
}

/// Reason why a message is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// The transmit queue is full; retry later.
    Full,
    /// The circuit does not exist, has no such messages, or the message exceeds the partner's buffer.
    Malformed,
}

/// Credit imbalance of one circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// Circuit whose credits are lost or surplus.
    pub circuit: u8,
    /// Lost credits in words of ECI or messages of CXL; negative if there are too many.
    pub lost: i64,
}

/// Unit of transmission on the wires. The default value is a placeholder that [`Layer::transmit`] overwrites.
pub trait WireUnit: Clone + Default {
    /// Length in bits, before line coding.
    fn bits(&self) -> u64;
    /// Flips a bit, as a bit error on the wires does.
    fn flip(&mut self, bit: u64);
    /// True if the unit carries nothing, and is sent only because the lanes cannot be silent.
    fn is_idle(&self) -> bool;
    /// Minimum receiver clocks to take a message that this unit completes; 0 for receivers without a rate limit. `None`
    /// if it completes no message, so that its arrival need not be checked.
    fn completion_clocks(&self) -> Option<u32>;
}

/// One end of a link. Time advances by units sent: the driver requests a unit whenever the lanes are free.
pub trait Layer {
    /// Unit of transmission.
    type Unit: WireUnit;
    /// Names of the circuits on which this end sends.
    fn circuits(&self) -> &'static [&'static str];
    /// Length of a message's header in bits.
    fn header_bits(&self, message: &Message) -> u64;
    /// Queues a message for transmission.
    ///
    /// # Errors
    /// The transmit queue is full, or the message is invalid for this circuit.
    fn send(&mut self, message: Message) -> Result<(), Rejection>;
    /// Circuits with received messages, as a bit set. [`Layer::take`] returns `None` for all others.
    fn received_circuits(&self) -> u32;
    /// Number of words or messages queued for transmission on a circuit. Parallel links are compared by this number.
    fn backlog(&self, circuit: u8) -> usize;
    /// Message that [`Layer::take`] would return; it is not taken.
    fn peek(&mut self, circuit: u8) -> Option<Message>;
    /// Receiver clocks that taking a message lasts; 0 for receivers without a rate limit.
    fn clocks(&self, _: &Message) -> u32 {
        0
    }
    /// Takes the next received message of a circuit, if one can be taken now. Its buffer space is returned to the
    /// partner as credits.
    fn take(&mut self, circuit: u8) -> Option<Message>;
    /// Writes the next unit to send into `unit`, whose earlier contents are overwritten.
    fn transmit(&mut self, unit: &mut Self::Unit);
    /// Lower bound of the number of idle units before the next unit that is not idle, if no message is sent or taken
    /// and no unit arrives; `u64::MAX` if all are idle. Simulations skip these units.
    fn idle_units(&self) -> u64;
    /// If messages are queued: minimum number of units before the unit that completes a message, and minimum receiver
    /// clocks to take that message.
    fn units_before_message(&self) -> (u64, u32) {
        (0, 0)
    }
    /// Length of an idle unit in bits, before line coding.
    fn idle_bits(&self) -> u64;
    /// Accounts for `units` idle units sent, at most [`Layer::idle_units`].
    fn skip(&mut self, units: u64);
    /// Processes a received unit. It may move the contents out of `unit`, which the caller only overwrites afterwards.
    fn receive(&mut self, unit: &mut Self::Unit);
    /// Declares that nothing is lost or damaged from now on, so that units need not be kept for replay. From then on,
    /// [`Layer::shortages`] counts credits in flight as lost.
    fn disable_replay(&mut self) {}
    /// Processes a link retraining: units in flight in either direction may be lost. Both ends are notified.
    fn retrain(&mut self);
    /// True if messages are queued for transmission.
    fn has_queued_messages(&self) -> bool;
    /// True if the partner has acknowledged all units kept for replay.
    fn is_settled(&self) -> bool;
    /// True if this end has nothing left to send, replay or acknowledge until a message is sent or taken.
    fn is_quiescent(&self) -> bool;
    /// Lost or surplus credits for sending to `partner`. Exact at any time, because credits in flight are included.
    fn shortages(&self, partner: &Self) -> Vec<Shortage>;
    /// Number of distinct units accepted, of those that the partner keeps for replay.
    fn accepted_units(&self) -> u64;
    /// Number of units sent again.
    fn replayed(&self) -> u64;
    /// Number of protocol errors: messages without credit, and acknowledgements of units never sent.
    fn protocol_errors(&self) -> u64;
}
