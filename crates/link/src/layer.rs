//! What all link layers have in common, so that one driver moves any of them.

/// A message as a link sees it: its circuit, the bytes of data it carries, and a label that means something to others only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The virtual circuit, the class of PCIe or that of CXL.
    pub circuit: u8,
    /// Bytes of data beside its header.
    pub bytes: u16,
    /// Comes out as it went in. ECI's headers have room for 40 bits of it.
    pub label: u64,
}

/// Why a message was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// What was sent before it has to leave first.
    Full,
    /// There is no such circuit, or it has no such messages, or they need more than is ever free.
    Malformed,
}

/// Credits that one circuit lacks, wherever its messages are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// The circuit.
    pub circuit: u8,
    /// Words of ECI or messages of CXL for which nobody has room any more; fewer than none if there is too much.
    pub lost: i64,
}

/// What travels on the wires in one piece. The default is a place for one.
pub trait Carried: Clone + Default {
    /// Bits before the coding of the lanes.
    fn bits(&self) -> u64;
    /// Turns one of them around.
    fn flip(&mut self, bit: u64);
    /// Whether it is sent only because something has to be.
    fn is_idle(&self) -> bool;
    /// In how many clocks the receiver takes a message that is whole with it, at the least: 0 where receivers have no pace.
    /// Nothing if no message is, so that who waits for messages need not look when it comes.
    fn brings(&self) -> Option<u32>;
}

/// One end of a link, whose time is the units that leave: whoever drives it asks for one whenever the lanes are free.
pub trait Layer {
    /// What travels.
    type Unit: Carried;
    /// The circuits on which this end sends, by name.
    fn circuits(&self) -> &'static [&'static str];
    /// Bits of a message beside its data.
    fn header_bits(&self, message: &Message) -> u64;
    /// Takes a message that is to be sent.
    ///
    /// # Errors
    /// If there is no room for it now, or it is none of this circuit's.
    fn send(&mut self, message: Message) -> Result<(), Refused>;
    /// The circuits on which a message has come, as bits: others have nothing to take.
    fn come(&self) -> u32;
    /// What waits to leave on a circuit, in words or messages: of two links beside each other one is the fuller.
    fn backlog(&self, circuit: u8) -> usize;
    /// The next message that has come on a circuit, as [`Layer::take`] would give it.
    fn peek(&mut self, circuit: u8) -> Option<Message>;
    /// In how many clocks the receiver takes a message: 0 where it has no pace.
    fn clocks(&self, _: &Message) -> u32 {
        0
    }
    /// The next message that has come on a circuit, if it may be taken now. Its room goes back to the partner.
    fn take(&mut self, circuit: u8) -> Option<Message>;
    /// What leaves when the lanes are free, put in the place of one that is gone, whatever that was.
    fn transmit(&mut self, unit: &mut Self::Unit);
    /// How many units would leave that say nothing before one that says something, if nothing is sent, taken or comes:
    /// fewer if it is not known, `u64::MAX` for all. So a simulation need not ask for each.
    fn idle_units(&self) -> u64;
    /// If messages wait, how many units leave before one that brings one, at the least, and in how many clocks the receiver
    /// takes what that brings, at the least.
    fn before_message(&self) -> (u64, u32) {
        (0, 0)
    }
    /// Bits of a unit that says nothing.
    fn idle_bits(&self) -> u64;
    /// So many units that say nothing have left, no more than [`Layer::idle_units`].
    fn skip(&mut self, units: u64);
    /// Something has come, whose place is then free: the end may keep what it carries.
    fn receive(&mut self, unit: &mut Self::Unit);
    /// From now on nothing is lost or damaged on the lanes: nothing is kept to be sent again. [`Layer::shortages`] counts what
    /// is under way as lost from here on.
    fn forget(&mut self) {}
    /// The lanes were retrained: what was under way in both directions may be lost. Both ends are told.
    fn retrain(&mut self);
    /// Whether messages wait to leave.
    fn waits(&self) -> bool;
    /// Whether the partner has told that all that left has come.
    fn is_settled(&self) -> bool;
    /// Whether nothing is left to do until a message is sent or taken.
    fn is_at_rest(&self) -> bool;
    /// Which credits toward `partner` are lost, or too many. Exact at any moment, as what is under way counts.
    fn shortages(&self, partner: &Self) -> Vec<Shortage>;
    /// Units that came, each once, of those that are kept to be sent again.
    fn taken(&self) -> u64;
    /// Units sent again.
    fn replayed(&self) -> u64;
    /// Things that cannot be: messages without credit, acknowledgements of what was not sent.
    fn impossible(&self) -> u64;
}
