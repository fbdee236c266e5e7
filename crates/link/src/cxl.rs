//! CXL.mem over flits of 68 or 256 bytes, and CXL.cache over those of 68: messages in slots by their bits, data in slots of
//! their own, credits for messages of each class, and flits sent again.
//!
//! What no public source here says is chosen and named. Slots take as many messages of one class as have room in them by
//! bits (the standard lists fewer combinations). Flits of both sizes are sent again as ECI's blocks are ([`crate::replay`]).
//! The 6 bytes of forward error correction mend one wrong byte in each third of a flit.

use crate::crc::{Checksum, Wrong};
use crate::lanes::Ratio;
use crate::layer::{Carried, Layer, Message, Refused, Shortage};
use crate::replay::{Next, Retry, Sync};
use std::collections::VecDeque;

/// Requests to memory, or to the host that is home; snoops in the other direction.
pub const REQUEST: u8 = 0;
/// Answers to those snoops; answers without data in the other direction.
pub const RESPONSE: u8 = 1;
/// Writes to memory, or what a device gives up; answers with data in the other direction.
pub const DATA: u8 = 2;

/// Bytes of data of a message with data.
pub const LINE: u16 = 64;
/// Slots of data for a line.
const SLOTS_OF_LINE: u32 = 4;
/// Bits of a slot.
const SLOT: u32 = 128;
/// Bytes at the end of a large flit that mend the others.
const MENDING: u64 = 6;
/// Slots of data that may be promised: no header of another line leaves before fewer are.
const PROMISED: u32 = 20;

/// The flits of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flits {
    /// 2 bytes of protocol number, 4 slots of 16 bytes, 2 bytes of checksum. Without back-invalidation.
    Small,
    /// 2 bytes of header, a slot of 14 bytes and 14 of 16, 2 bytes of credits, 8 of checksum, 6 of error correction.
    Large,
}

/// Who sends: the host (M2S) or the memory device (S2M) of CXL.mem, the device that caches (D2H) or the host (H2D) of
/// CXL.cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Sends requests, answers to snoops, and writes.
    Host,
    /// Sends snoops, answers, and data.
    Device,
    /// Sends requests, answers to snoops, and data of lines of the host.
    CachingDevice,
    /// Sends snoops, answers, and data of its own lines.
    HomeHost,
}

impl Side {
    /// Who receives.
    pub fn partner(self) -> Side {
        match self {
            Side::Host => Side::Device,
            Side::Device => Side::Host,
            Side::CachingDevice => Side::HomeHost,
            Side::HomeHost => Side::CachingDevice,
        }
    }
}

impl Flits {
    /// Bytes of a flit.
    pub fn bytes(self) -> u64 {
        match self {
            Flits::Small => 68,
            Flits::Large => 256,
        }
    }

    /// Slots that carry data, or messages in all of their 16 bytes.
    fn whole_slots(self) -> u32 {
        match self {
            Flits::Small => 3,
            Flits::Large => 14,
        }
    }

    /// Bits for messages in the first slot: that of small flits gives 4 of its 16 bytes to the flit's header.
    fn first_slot(self) -> u32 {
        match self {
            Flits::Small => 96,
            Flits::Large => 112,
        }
    }

    /// Bits of a message beside its data. None if these flits have no such message: those of 256 bytes are not known here of
    /// CXL.cache, whose formats for 68 bytes are those of CXL 2.0.
    ///
    /// What a device asks of its host about memory of its own is a back-invalidate snoop in flits of 256 bytes. Those of 68
    /// have none: it is a request of CXL.cache there, as before CXL 3.
    pub fn header(self, side: Side, class: u8) -> Option<u32> {
        let [small, large] = match (side, class) {
            (Side::Host, REQUEST) => [87, 100],
            (Side::Host, RESPONSE) => [0, 40],
            (Side::Host, DATA) => [87, 104],
            (Side::Device, REQUEST) => [79, 84],
            (Side::Device, RESPONSE) => [30, 40],
            (Side::Device, DATA) => [40, 40],
            (Side::CachingDevice, REQUEST) => [79, 0],
            (Side::CachingDevice, RESPONSE) => [20, 0],
            (Side::CachingDevice, DATA) => [17, 0],
            (Side::HomeHost, REQUEST) => [64, 0],
            (Side::HomeHost, RESPONSE) => [32, 0],
            (Side::HomeHost, DATA) => [24, 0],
            _ => [0, 0],
        };
        let bits = if self == Flits::Small { small } else { large };
        (bits > 0).then_some(bits)
    }

    /// Messages in a flit in the long run, where only those of one class are sent: with data, each takes four slots more,
    /// and a small flit may be all data.
    pub fn messages(self, side: Side, class: u8) -> Option<Ratio> {
        let bits = self.header(side, class)?;
        let (first, whole) = (
            u128::from(self.first_slot() / bits),
            u128::from(SLOT / bits),
        );
        let slots = u128::from(self.whole_slots());
        Some(match (class, self) {
            (DATA, Flits::Small) => Ratio::new(4 * first, 4 * first + 1),
            // Of each `1 + 4 whole` slots beyond the data promised by the first, one holds headers.
            (DATA, Flits::Large) => {
                let headers = Ratio::new(slots - 4 * first, 1 + 4 * whole);
                Ratio::new(first * headers.under + whole * headers.over, headers.under)
            }
            _ => Ratio::new(first + slots * whole, 1),
        })
    }
}

/// What a flit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// With a header, and credits for each class as powers of two (0: none).
    Headed { ack: bool, credits: [u8; 3] },
    /// Four slots of data.
    Data,
    /// Where both directions are.
    Sync(Sync),
    /// Nothing.
    Idle,
}

/// A flit. Wrong bits change what it says, beyond what is mended, and are seen by its checksum or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flit {
    flits: Flits,
    kind: Kind,
    /// Messages that begin here.
    messages: Vec<Message>,
    /// Slots of data, of the messages that began first.
    data: u32,
    /// Whether a message is whole with it, for who drives: it is not on the wires.
    brings: bool,
    wrong: Wrong,
}

impl Default for Flit {
    fn default() -> Flit {
        Flit {
            flits: Flits::Small,
            kind: Kind::Idle,
            messages: Vec::new(),
            data: 0,
            brings: false,
            wrong: Wrong::default(),
        }
    }
}

impl Flit {
    /// It says nothing.
    #[inline]
    fn clear(&mut self, flits: Flits) {
        (self.flits, self.kind) = (flits, Kind::Idle);
        (self.data, self.brings) = (0, false);
        self.messages.clear();
        self.wrong.clear();
    }

    /// What error correction leaves of the wrong bits: all of a third in which more than one byte is wrong. Says whether it
    /// mended any.
    fn mend(&mut self) -> bool {
        if self.flits == Flits::Small || self.wrong.is_empty() {
            return false;
        }
        let before = self.wrong.bits().len();
        let third = |bit: u64| bit / 8 % 3;
        let wrong = self.wrong.bits().to_vec();
        self.wrong.mend(|bit| {
            let mut its = wrong.iter().filter(|&&other| third(other) == third(bit));
            // What mends says nothing itself: two of its own bytes that are wrong harm nobody.
            bit / 8 >= self.flits.bytes() - MENDING || its.all(|other| other / 8 == bit / 8)
        });
        self.wrong.bits().len() < before
    }

    /// Whether a receiver sees that bits are wrong.
    fn is_seen(&self) -> bool {
        let checksum = match self.flits {
            Flits::Small => Checksum::SmallFlit,
            Flits::Large => Checksum::LargeFlit,
        };
        self.wrong.is_seen(self.flits.bytes(), checksum)
    }

    /// Wrong bits that nobody sees change what the flit says.
    fn spoil(&mut self) {
        for &bit in self.wrong.bits() {
            match self.messages.first_mut() {
                Some(message) => message.label ^= 1 << (bit % 64),
                None => self.data ^= 1,
            }
        }
    }
}

impl Carried for Flit {
    fn bits(&self) -> u64 {
        8 * self.flits.bytes()
    }

    fn flip(&mut self, bit: u64) {
        self.wrong.flip(bit);
    }

    #[inline]
    fn is_idle(&self) -> bool {
        self.kind == Kind::Idle
    }

    #[inline]
    fn brings(&self) -> Option<u32> {
        self.brings.then_some(0)
    }
}

/// What can be chosen of an end.
#[derive(Clone, Debug)]
pub struct Parameters {
    /// Its flits.
    pub flits: Flits,
    /// Its side.
    pub side: Side,
    /// Messages of each class for which the receiver has room.
    pub room: [u32; 3],
    /// Messages that wait to be sent, of each class.
    pub fifo: usize,
    /// Flits after which an unanswered request, or a flit that nobody acknowledged, is asked for again.
    pub patience: u32,
}

impl Parameters {
    /// Room for 128 messages of each class, chosen as no source here tells it: enough for 16 lanes of 32 Gb/s over 50 ns.
    pub fn new(flits: Flits, side: Side) -> Parameters {
        Parameters {
            flits,
            side,
            room: [128; 3],
            fifo: 64,
            patience: 256,
        }
    }
}

/// One end of a link.
pub struct End {
    parameters: Parameters,
    /// Messages of each class that the first slot of a flit takes, and any other slot.
    fits: [[u32; 3]; 2],
    /// What was sent until it has come.
    pub retry: Retry<Flit>,
    waiting: [VecDeque<Message>; 3],
    /// How many these are.
    waits: usize,
    credits: [u32; 3],
    /// Slots of data that follow what has left.
    promised: u32,
    /// Slots of data that have left.
    left: u32,
    turn: usize,
    came: [VecDeque<Message>; 3],
    /// Classes of which there are any, as bits.
    come: u32,
    owed: [u32; 3],
    /// Messages whose data is not all here, and the slots of it that are.
    partial: VecDeque<Message>,
    slots: u32,
    /// Flits that error correction mended.
    pub mended: u64,
    /// Messages that came without credit.
    pub overrun: u64,
}

impl End {
    /// An end from which nothing can be sent yet: credits come from the partner.
    pub fn new(parameters: Parameters) -> End {
        let mut owed = parameters.room;
        let partner = parameters.side.partner();
        for class in [REQUEST, RESPONSE, DATA] {
            if parameters.flits.header(partner, class).is_none() {
                owed[usize::from(class)] = 0;
            }
        }
        let fits = [parameters.flits.first_slot(), SLOT].map(|bits| {
            [REQUEST, RESPONSE, DATA].map(|class| {
                let header = parameters.flits.header(parameters.side, class);
                header.map_or(0, |header| bits / header)
            })
        });
        End {
            fits,
            retry: Retry::new(parameters.patience),
            waiting: Default::default(),
            waits: 0,
            credits: [0; 3],
            promised: 0,
            left: 0,
            turn: 0,
            came: Default::default(),
            come: 0,
            owed,
            partial: VecDeque::new(),
            slots: 0,
            mended: 0,
            overrun: 0,
            parameters,
        }
    }

    /// Puts messages of one class into a slot, the first of its flit or another; says whether there were any.
    fn begin(&mut self, flit: &mut Flit, slot: usize) -> bool {
        for step in 0..3 {
            let class = (self.turn + step) % 3;
            if self.waiting[class].is_empty() {
                continue;
            }
            let mut most = self.fits[slot][class].min(self.credits[class]);
            if class == usize::from(DATA) {
                // A header leaves as long as less than a bound is promised before it.
                let left = PROMISED.saturating_sub(self.promised);
                most = most.min(left.div_ceil(SLOTS_OF_LINE));
            }
            let count = (most as usize).min(self.waiting[class].len());
            if count == 0 {
                continue;
            }
            self.credits[class] -= count as u32;
            self.waits -= count;
            match class == usize::from(DATA) {
                true => self.promised += SLOTS_OF_LINE * count as u32,
                false => flit.brings = true,
            }
            for _ in 0..count {
                flit.messages.extend(self.waiting[class].pop_front());
            }
            self.turn = class + 1;
            return true;
        }
        false
    }

    /// Puts promised data into so many slots.
    fn fill(&mut self, flit: &mut Flit, slots: u32) {
        self.promised -= slots;
        flit.data += slots;
        let before = self.left / SLOTS_OF_LINE;
        self.left = self.left.wrapping_add(slots);
        flit.brings |= self.left / SLOTS_OF_LINE != before;
    }

    /// Makes a new flit, if there are messages, data, credits or an acknowledgement for one, and says then whether it took the
    /// acknowledgement along.
    fn pack(&mut self, ack: bool, flit: &mut Flit) -> Option<bool> {
        let flits = self.parameters.flits;
        if flits == Flits::Small && self.promised >= 4 {
            flit.kind = Kind::Data;
            self.fill(flit, 4);
            return Some(false);
        }
        if self.waits() {
            self.begin(flit, 0);
            for _ in 0..flits.whole_slots() {
                if self.promised > 0 {
                    self.fill(flit, 1);
                } else if !self.begin(flit, 1) {
                    break;
                }
            }
        }
        let credits = self.owed.map(|owed| owed.min(64));
        if flit.messages.is_empty() && flit.data == 0 && credits == [0; 3] && !ack {
            return None;
        }
        let credits = credits.map(|owed| owed.checked_ilog2().map_or(0, |power| 1 << power));
        for (owed, given) in self.owed.iter_mut().zip(credits) {
            *owed -= u32::from(given);
        }
        flit.kind = Kind::Headed { ack, credits };
        Some(ack)
    }

    fn unpack(&mut self, flit: &Flit) {
        for &message in &flit.messages {
            if message.circuit == DATA {
                self.partial.push_back(message);
            } else {
                self.came(message);
            }
        }
        self.slots += flit.data;
        while self.slots >= SLOTS_OF_LINE {
            self.slots -= SLOTS_OF_LINE;
            if let Some(message) = self.partial.pop_front() {
                self.came(message);
            }
        }
    }

    fn came(&mut self, message: Message) {
        let class = usize::from(message.circuit);
        let held = self.came[class].len();
        self.overrun += u64::from(held >= self.parameters.room[class] as usize);
        self.came[class].push_back(message);
        self.come |= 1 << class;
    }

    /// What flits that `partner` has not taken yet hold of a class: messages, and credits.
    fn under_way(&self, partner: &End, class: usize) -> (u32, u32) {
        let taken = partner.retry.receiver.taken();
        let (mut messages, mut room) = (0, 0);
        for flit in self.retry.sender.under_way(taken) {
            let of_class = |message: &&Message| usize::from(message.circuit) == class;
            messages += flit.messages.iter().filter(of_class).count() as u32;
            if let Kind::Headed { credits, .. } = flit.kind {
                room += u32::from(credits[class]);
            }
        }
        (messages, room)
    }
}

impl Layer for End {
    type Unit = Flit;

    fn circuits(&self) -> &'static [&'static str] {
        match self.parameters.side {
            Side::Host => &["Req", "BIRsp", "RwD"],
            Side::Device => &["BISnp", "NDR", "DRS"],
            Side::CachingDevice => &["D2H Req", "D2H Rsp", "D2H Data"],
            Side::HomeHost => &["H2D Req", "H2D Rsp", "H2D Data"],
        }
    }

    fn header_bits(&self, message: &Message) -> u64 {
        let Parameters { flits, side, .. } = self.parameters;
        flits.header(side, message.circuit).unwrap_or(0).into()
    }

    fn send(&mut self, message: Message) -> Result<(), Refused> {
        let Parameters { flits, side, .. } = self.parameters;
        let data = if message.circuit == DATA { LINE } else { 0 };
        if flits.header(side, message.circuit).is_none() || message.bytes != data {
            return Err(Refused::Malformed);
        }
        let waiting = &mut self.waiting[usize::from(message.circuit)];
        if waiting.len() >= self.parameters.fifo {
            return Err(Refused::Full);
        }
        waiting.push_back(message);
        self.waits += 1;
        Ok(())
    }

    #[inline]
    fn come(&self) -> u32 {
        self.come
    }

    fn backlog(&self, circuit: u8) -> usize {
        let waiting = self.waiting.get(usize::from(circuit));
        waiting.map_or(0, VecDeque::len)
    }

    fn peek(&mut self, circuit: u8) -> Option<Message> {
        self.came.get(usize::from(circuit))?.front().copied()
    }

    fn take(&mut self, circuit: u8) -> Option<Message> {
        let class = usize::from(circuit);
        let came = self.came.get_mut(class)?;
        let message = came.pop_front()?;
        if came.is_empty() {
            self.come &= !(1 << class);
        }
        self.owed[class] += 1;
        Some(message)
    }

    fn transmit(&mut self, flit: &mut Flit) {
        flit.clear(self.parameters.flits);
        if let Some(ack) = self.retry.wants().and_then(|ack| self.pack(ack, flit)) {
            return self.retry.enter(flit, ack);
        }
        match self.retry.transmit() {
            Next::Block(again) => *flit = again,
            Next::Sync(sync) => flit.kind = Kind::Sync(sync),
            Next::Idle => {}
        }
    }

    fn idle_units(&self) -> u64 {
        if self.waits() || self.owed != [0; 3] {
            0
        } else {
            self.retry.idle_slots()
        }
    }

    fn before_message(&self) -> (u64, u32) {
        // What begins with the header of a line in a small flit ends with the next one.
        let begins = self.promised == 0 && self.waits == self.waiting[usize::from(DATA)].len();
        let small = self.parameters.flits == Flits::Small;
        (u64::from(small && begins), 0)
    }

    fn idle_bits(&self) -> u64 {
        8 * self.parameters.flits.bytes()
    }

    fn skip(&mut self, units: u64) {
        self.retry.skip(units);
    }

    fn receive(&mut self, flit: &mut Flit) {
        if !flit.wrong.is_empty() {
            let mended = flit.mend();
            if flit.is_seen() {
                return self.retry.damaged();
            }
            self.mended += u64::from(mended);
            flit.spoil();
        }
        match flit.kind {
            Kind::Idle => {}
            Kind::Sync(sync) => self.retry.synced(sync),
            Kind::Data => {
                if self.retry.take(false) {
                    self.unpack(flit);
                }
            }
            Kind::Headed { ack, credits } => {
                if self.retry.take(ack) {
                    for (own, given) in self.credits.iter_mut().zip(credits) {
                        *own += u32::from(given);
                    }
                    self.unpack(flit);
                }
            }
        }
    }

    fn forget(&mut self) {
        self.retry.sender.forget();
    }

    fn retrain(&mut self) {
        self.retry.retrain();
    }

    #[inline]
    fn waits(&self) -> bool {
        self.promised > 0 || self.waits > 0
    }

    fn is_settled(&self) -> bool {
        self.retry.sender.is_settled()
    }

    fn is_at_rest(&self) -> bool {
        !self.waits() && self.owed == [0; 3] && self.retry.is_at_rest()
    }

    fn shortages(&self, partner: &End) -> Vec<Shortage> {
        let Parameters { flits, side, .. } = self.parameters;
        (0..3u8)
            .filter(|&class| flits.header(side, class).is_some())
            .map(|circuit| {
                let class = usize::from(circuit);
                let waits = |message: &&Message| message.circuit == circuit;
                let accounted = self.credits[class]
                    + self.under_way(partner, class).0
                    + partner.partial.iter().filter(waits).count() as u32
                    + partner.came[class].len() as u32
                    + partner.owed[class]
                    + partner.under_way(self, class).1;
                Shortage {
                    circuit,
                    lost: i64::from(partner.parameters.room[class]) - i64::from(accounted),
                }
            })
            .filter(|shortage| shortage.lost != 0)
            .collect()
    }

    fn taken(&self) -> u64 {
        self.retry.receiver.taken()
    }

    fn replayed(&self) -> u64 {
        self.retry.sender.replayed
    }

    fn impossible(&self) -> u64 {
        self.retry.sender.impossible + self.overrun
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::{Drive, LANE_BYTE};

    /// An error that the checksum missed took credits out of a flit. Nothing rests when that is seen.
    #[test]
    fn a_lost_credit_is_named_while_messages_flow() {
        for flits in [Flits::Small, Flits::Large] {
            let ends =
                [Side::Host, Side::Device].map(|side| End::new(Parameters::new(flits, side)));
            let mut drive = Drive::new(ends, 16, 50 * LANE_BYTE, 0.0, 0);
            let mut lost = 0;
            for step in 0..6000 {
                drive.fill(0, DATA, LINE);
                drive.step();
                drive.drain(0);
                let newest = drive.wires[1].under_way.iter_mut().next_back();
                if let (true, 0, Some((_, flit))) = (step > 3000, lost, newest) {
                    if let Kind::Headed { credits, .. } = &mut flit.kind {
                        lost = std::mem::take(&mut credits[usize::from(DATA)]).into();
                    }
                }
                if step < 3000 {
                    assert_eq!(drive.ends()[0].shortages(&drive.ends()[1]), []);
                }
            }
            assert!(lost > 0 && !drive.ends()[0].is_at_rest());
            let circuit = DATA;
            let found = drive.ends()[0].shortages(&drive.ends()[1]);
            assert_eq!(found, [Shortage { circuit, lost }]);
        }
    }
}
