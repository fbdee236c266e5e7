//! One end of a link of PCIe: three classes with credits for headers and data, packets that are numbered and kept, and
//! packets of the link layer that acknowledge them and return credits.

use super::numbered::{Receiver, Sender, Verdict};
use crate::crc::{Checksum, Wrong};
use crate::layer::{Carried, Layer, Message, Refused, Shortage};
use std::collections::VecDeque;

/// Writes and messages.
pub const POSTED: u8 = 0;
/// Requests that are answered: reads.
pub const NON_POSTED: u8 = 1;
/// Answers.
pub const COMPLETIONS: u8 = 2;
const NAMES: [&str; 3] = ["posted", "non-posted", "completions"];
/// Bytes of data that one credit stands for.
pub const DATA_CREDIT: u64 = 16;
/// Bytes of a packet of the link layer on the wire, framing included.
pub const LINK_PACKET: u64 = 8;
/// Counters of credits are told in 8 bits for headers and 12 for data, so fewer than half of that may be free.
const COUNTED: [u64; 2] = [256, 4096];

/// What can be chosen of an end.
#[derive(Clone, Debug)]
pub struct Parameters {
    /// Bytes of a packet of each class beside its data, framing included.
    pub headers: [u64; 3],
    /// Most bytes of data in a packet.
    pub payload: u16,
    /// Room of the receiver for each class: headers, and units of 16 bytes of data. 0: it needs no credits.
    pub room: [[u64; 2]; 3],
    /// For each so many bytes that come, an acknowledgement and a return of credits leave.
    pub limit: u64,
    /// Bytes that leave before what is not acknowledged goes again.
    pub patience: u64,
    /// Bytes that leave before credits are told again though nothing has changed: so a lost return heals.
    pub refresh: u64,
    /// Packets that wait to be sent, of each class.
    pub fifo: usize,
}

impl Parameters {
    /// An end whose packets carry at most `payload` bytes. What the facts do not tell is chosen: room for 16 KiB of each
    /// class and 64 headers (completions need no credits), a patience of 64 KiB, credits again after 32 KiB.
    pub fn new(payload: u16, limit: u64) -> Parameters {
        Parameters {
            headers: [super::REQUEST, super::REQUEST, super::COMPLETION],
            payload,
            room: [[64, 1024], [64, 0], [0, 0]],
            limit,
            patience: 64 << 10,
            refresh: 32 << 10,
            fifo: 8,
        }
    }

    /// The same over a way on which so many bytes are under way at once: patience outlasts the way there and back, or
    /// packets would go again that are not lost.
    #[must_use]
    pub fn over(self, way: u64) -> Parameters {
        Parameters {
            patience: self.patience.max(4 * way),
            ..self
        }
    }
}

/// What a packet of the transaction layer carries.
pub trait Body: Clone {
    /// Its class.
    fn class(&self) -> u8;
    /// Bytes of data.
    fn bytes(&self) -> u16;
    /// Changes, as wrong bits do.
    fn spoil(&mut self, bit: u64);
    /// What it carries, which it need not have any more.
    fn take(&mut self) -> Self {
        self.clone()
    }
}

impl Body for Message {
    fn class(&self) -> u8 {
        self.circuit
    }

    fn bytes(&self) -> u16 {
        self.bytes
    }

    fn spoil(&mut self, bit: u64) {
        self.label ^= 1 << (bit % 64);
    }
}

/// What a packet says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<T> {
    /// A packet of the transaction layer, with its number.
    Body(u16, T),
    /// Everything before this number has come; with `true`, what follows is wanted again.
    Told(u16, bool),
    /// All the credits that were ever given to a class, counted round.
    Credits(u8, [u16; 2]),
    /// Nothing.
    Idle,
}

/// What travels. Wrong bits change what it says, and are seen by its checksum or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet<T> {
    /// What it says.
    pub content: Content<T>,
    bytes: u64,
    wrong: Wrong,
}

impl<T> Default for Packet<T> {
    fn default() -> Packet<T> {
        Packet {
            content: Content::Idle,
            bytes: LINK_PACKET,
            wrong: Wrong::default(),
        }
    }
}

impl<T: Body> Packet<T> {
    /// Whether a receiver sees that bits are wrong. Those that it does not see change what the packet says.
    #[inline]
    fn is_wrong(&mut self) -> bool {
        if self.wrong.is_empty() {
            return false;
        }
        let checksum = match self.content {
            Content::Body(..) => Checksum::Packet,
            _ => Checksum::LinkPacket,
        };
        if self.wrong.is_seen(self.bytes, checksum) {
            return true;
        }
        for &bit in self.wrong.bits() {
            match &mut self.content {
                Content::Body(_, body) => body.spoil(bit),
                Content::Told(number, _) => *number ^= 1 << (bit % 12),
                Content::Credits(_, given) => given[1] ^= 1 << (bit % 12),
                Content::Idle => {}
            }
        }
        false
    }
}

impl<T: Body> Carried for Packet<T> {
    fn bits(&self) -> u64 {
        8 * self.bytes
    }

    fn flip(&mut self, bit: u64) {
        self.wrong.flip(bit);
    }

    #[inline]
    fn is_idle(&self) -> bool {
        matches!(self.content, Content::Idle)
    }

    #[inline]
    fn brings(&self) -> Option<u32> {
        matches!(self.content, Content::Body(..)).then_some(0)
    }
}

/// Credits of one class, for headers and data, as both sides count them.
#[derive(Clone, Copy, Default)]
struct Flow {
    /// What was sent.
    used: [u64; 2],
    /// What may have been sent.
    limit: [u64; 2],
    /// What the partner may have sent.
    given: [u64; 2],
    /// As much of that as it was told.
    told: [u64; 2],
    /// What came and was not taken.
    held: [u64; 2],
}

/// One end of a link.
pub struct End<T> {
    parameters: Parameters,
    /// The outgoing direction.
    pub sender: Sender<T>,
    /// The incoming direction.
    pub receiver: Receiver,
    flows: [Flow; 3],
    /// Packets that wait, with their place among all that were handed over.
    waiting: [VecDeque<(u64, T)>; 3],
    /// How many these are.
    waits: usize,
    came: [VecDeque<(u64, T)>; 3],
    places: [u64; 2],
    /// Bytes that came since the last acknowledgement and the last return of credits.
    owed: [u64; 2],
    /// Bytes that left since the last of each, and since the last news of what was sent.
    since: [u64; 2],
    quiet: u64,
    told: u64,
    refuse: bool,
    turn: usize,
    /// Classes whose credits are told in any case: at the beginning, and now and then.
    again: usize,
    fresh: u64,
    /// Packets without credit.
    pub overrun: u64,
    /// Packets that were damaged.
    pub damaged: u64,
}

fn cost(body: &impl Body) -> [u64; 2] {
    [1, u64::from(body.bytes()).div_ceil(DATA_CREDIT)]
}

impl<T: Body> End<T> {
    /// An end from which nothing can be sent yet: credits come from the partner.
    pub fn new(mut parameters: Parameters) -> End<T> {
        let mut flows = [Flow::default(); 3];
        for (flow, room) in flows.iter_mut().zip(&mut parameters.room) {
            *room = [room[0].min(127), room[1].min(2047)];
            flow.given = *room;
        }
        End {
            sender: Sender::default(),
            receiver: Receiver::default(),
            flows,
            waiting: Default::default(),
            waits: 0,
            came: Default::default(),
            places: [0; 2],
            owed: [0; 2],
            since: [0; 2],
            quiet: 0,
            told: 0,
            refuse: false,
            turn: 0,
            again: 3,
            fresh: 0,
            overrun: 0,
            damaged: 0,
            parameters,
        }
    }

    /// The same over a way: see [`Parameters::over`].
    #[must_use]
    pub fn over(mut self, way: u64) -> End<T> {
        self.parameters = self.parameters.over(way);
        self
    }

    /// The class whose packet may leave: nothing passes a posted one, and a posted one passes what waits for credits.
    /// Among those that may, the one that was handed over first.
    fn next_class(&self) -> Option<usize> {
        let posted = self.waiting[0].front().map_or(u64::MAX, |first| first.0);
        let may = |class: usize| {
            let (place, body) = self.waiting[class].front()?;
            let (flow, room, cost) = (self.flows[class], self.parameters.room[class], cost(body));
            let credit = (0..2).all(|k| room[k] == 0 || flow.used[k] + cost[k] <= flow.limit[k]);
            (*place <= posted && credit).then_some((*place, class))
        };
        (0..3).filter_map(may).min().map(|(_, class)| class)
    }

    fn new_packet(&mut self) -> Option<Content<T>> {
        if self.waits == 0 || !self.sender.has_room() {
            return None;
        }
        let class = self.next_class()?;
        let (_, body) = self.waiting[class].pop_front()?;
        self.waits -= 1;
        let cost = cost(&body);
        for (used, cost) in self.flows[class].used.iter_mut().zip(cost) {
            *used += cost;
        }
        let number = self.sender.keep(&body);
        Some(Content::Body(number, body))
    }

    fn came(&mut self, body: T) {
        let class = usize::from(body.class());
        let room = self.parameters.room[class];
        let flow = &mut self.flows[class];
        for (k, cost) in cost(&body).into_iter().enumerate() {
            flow.held[k] += cost;
            self.overrun += u64::from(room[k] > 0 && flow.held[k] > room[k]);
        }
        self.came[class].push_back((self.places[1], body));
        self.places[1] += 1;
    }

    /// Tells what has come.
    fn acknowledge(&mut self) -> Content<T> {
        self.told = self.receiver.taken();
        self.since[0] = 0;
        self.owed[0] = self.owed[0].saturating_sub(self.parameters.limit);
        let refuse = std::mem::take(&mut self.refuse);
        Content::Told(self.receiver.number(), refuse)
    }

    /// Tells the credits of one class after the other, one with news first.
    fn credits(&mut self) -> Content<T> {
        self.since[1] = 0;
        self.owed[1] = self.owed[1].saturating_sub(self.parameters.limit);
        self.again = self.again.saturating_sub(1);
        let news = |step: &usize| {
            let flow = &self.flows[(self.turn + step) % 3];
            self.again == 0 && flow.given != flow.told
        };
        let class = (self.turn + (0..3).find(news).unwrap_or(0)) % 3;
        self.turn = class + 1;
        let flow = &mut self.flows[class];
        flow.told = flow.given;
        let counted = std::array::from_fn(|k| (flow.given[k] % COUNTED[k]) as u16);
        Content::Credits(class as u8, counted)
    }

    fn choose(&mut self) -> Content<T> {
        let limit = self.parameters.limit;
        if self.refuse || self.owed[0] >= limit {
            return self.acknowledge();
        }
        if self.again > 0 || self.owed[1] >= limit {
            return self.credits();
        }
        if let Some((number, body)) = self.sender.again() {
            self.quiet = 0;
            return Content::Body(number, body);
        }
        if let Some(content) = self.new_packet() {
            return content;
        }
        if self.told != self.receiver.taken() && self.since[0] >= limit {
            return self.acknowledge();
        }
        if self.has_news() && self.since[1] >= limit {
            return self.credits();
        }
        Content::Idle
    }

    /// Whether a packet of this class may be handed over.
    pub fn has_room(&self, class: u8) -> bool {
        let waiting = self.waiting.get(usize::from(class));
        waiting.is_some_and(|waiting| waiting.len() < self.parameters.fifo)
    }

    /// Takes a packet that is to be sent.
    ///
    /// # Errors
    /// As [`Layer::send`].
    pub fn send(&mut self, body: T) -> Result<(), Refused> {
        let class = usize::from(body.class());
        let fits = |room: &[u64; 2]| {
            let cost = cost(&body);
            (0..2).all(|k| room[k] == 0 || cost[k] <= room[k])
        };
        let known = self.parameters.room.get(class).is_some_and(fits);
        if !known || body.bytes() > self.parameters.payload {
            return Err(Refused::Malformed);
        }
        if !self.has_room(body.class()) {
            return Err(Refused::Full);
        }
        self.waiting[class].push_back((self.places[0], body));
        self.places[0] += 1;
        self.waits += 1;
        Ok(())
    }

    /// Whether packets of a class have come.
    #[inline]
    pub fn holds(&self, class: u8) -> bool {
        let came = self.came.get(usize::from(class));
        came.is_some_and(|came| !came.is_empty())
    }

    /// The next packet of a class, as [`End::take`] would give it.
    fn peek(&self, class: usize) -> Option<&T> {
        let posted = self.came[0].front().map_or(u64::MAX, |first| first.0);
        let (place, body) = self.came.get(class)?.front()?;
        (*place <= posted).then_some(body)
    }

    /// The next packet of a class. Requests and completions stay behind the writes that came before them.
    pub fn take(&mut self, class: u8) -> Option<T> {
        let class = usize::from(class);
        self.peek(class)?;
        let (_, body) = self.came[class].pop_front()?;
        let flow = &mut self.flows[class];
        for (k, cost) in cost(&body).into_iter().enumerate() {
            flow.held[k] -= cost;
            if self.parameters.room[class][k] > 0 {
                flow.given[k] += cost;
            }
        }
        Some(body)
    }

    /// The next packet.
    pub fn packet(&mut self) -> Packet<T> {
        let mut packet = Packet::default();
        self.leave(&mut packet);
        packet
    }

    /// As [`Layer::transmit`].
    #[inline]
    pub fn leave(&mut self, packet: &mut Packet<T>) {
        if self.sender.is_settled() {
            self.quiet = 0;
        } else if self.quiet >= self.parameters.patience {
            self.sender.go_back();
            self.quiet = 0;
        }
        if self.fresh >= self.parameters.refresh {
            (self.again, self.fresh) = (3, 0);
        }
        packet.wrong.clear();
        packet.content = self.choose();
        packet.bytes = match &packet.content {
            Content::Body(_, body) => {
                let header = self.parameters.headers[usize::from(body.class())];
                header + u64::from(body.bytes())
            }
            _ => LINK_PACKET,
        };
        self.pass(packet.bytes);
    }

    fn has_news(&self) -> bool {
        self.flows.iter().any(|flow| flow.told != flow.given)
    }

    /// As [`Layer::idle_units`].
    pub fn idle_units(&self) -> u64 {
        let limit = self.parameters.limit;
        if self.refuse
            || self.owed.iter().any(|&owed| owed >= limit)
            || self.again > 0
            || self.sender.is_going_back()
            || self.waits()
        {
            return 0;
        }
        let mut bytes = self.parameters.refresh.saturating_sub(self.fresh);
        let mut until = |when: bool, limit: u64, since: u64| {
            if when {
                bytes = bytes.min(limit.saturating_sub(since));
            }
        };
        until(self.told != self.receiver.taken(), limit, self.since[0]);
        until(self.has_news(), limit, self.since[1]);
        let patience = self.parameters.patience;
        until(!self.sender.is_settled(), patience, self.quiet);
        bytes.div_ceil(LINK_PACKET)
    }

    /// As [`Layer::skip`].
    pub fn skip(&mut self, units: u64) {
        self.pass(units * LINK_PACKET);
    }

    /// So many bytes leave.
    fn pass(&mut self, bytes: u64) {
        for counter in [&mut self.quiet, &mut self.fresh] {
            *counter += bytes;
        }
        self.since = self.since.map(|since| since + bytes);
    }

    /// A packet has come.
    pub fn receive(&mut self, packet: &mut Packet<T>) {
        if packet.is_idle() {
            return;
        }
        self.owed = self.owed.map(|owed| owed + packet.bytes);
        let wrong = packet.is_wrong();
        self.damaged += u64::from(wrong);
        match &mut packet.content {
            Content::Body(number, body) => {
                let verdict = if wrong {
                    self.receiver.refuse()
                } else {
                    self.receiver.judge(*number)
                };
                match verdict {
                    Verdict::New => self.came(body.take()),
                    // What the partner does not know yet is told again.
                    Verdict::Repeated => self.owed[0] = self.owed[0].max(self.parameters.limit),
                    Verdict::Refuse => self.refuse = true,
                    Verdict::Ignore => {}
                }
            }
            _ if wrong => {}
            Content::Told(number, refused) => {
                if self.sender.told(*number, *refused) {
                    self.quiet = 0;
                }
            }
            Content::Credits(class, counted) => {
                let flow = &mut self.flows[usize::from(*class)];
                for k in 0..2 {
                    let more = u64::from(counted[k]) + COUNTED[k] - flow.limit[k] % COUNTED[k];
                    flow.limit[k] += more % COUNTED[k];
                }
            }
            Content::Idle => {}
        }
    }

    /// As [`Layer::retrain`].
    pub fn retrain(&mut self) {
        self.sender.go_back();
        self.again = 3;
        self.told = self.told.min(self.receiver.taken().saturating_sub(1));
    }

    /// As [`Layer::waits`].
    #[inline]
    pub fn waits(&self) -> bool {
        self.waits > 0
    }

    /// As [`Layer::forget`].
    pub fn forget(&mut self) {
        self.sender.forget();
    }

    /// As [`Layer::is_at_rest`].
    pub fn is_at_rest(&self) -> bool {
        self.sender.is_settled()
            && !self.waits()
            && self.told == self.receiver.taken()
            && !self.refuse
            && self.again == 0
            && !self.has_news()
    }
}

impl Layer for End<Message> {
    type Unit = Packet<Message>;

    fn circuits(&self) -> &'static [&'static str] {
        &NAMES
    }

    fn header_bits(&self, message: &Message) -> u64 {
        8 * self.parameters.headers[usize::from(message.circuit)]
    }

    fn send(&mut self, message: Message) -> Result<(), Refused> {
        End::send(self, message)
    }

    fn come(&self) -> u32 {
        (0..3)
            .map(|class| u32::from(self.holds(class)) << class)
            .sum()
    }

    fn backlog(&self, circuit: u8) -> usize {
        let waiting = self.waiting.get(usize::from(circuit));
        waiting.map_or(0, VecDeque::len)
    }

    fn peek(&mut self, circuit: u8) -> Option<Message> {
        End::peek(self, circuit.into()).cloned()
    }

    fn take(&mut self, circuit: u8) -> Option<Message> {
        End::take(self, circuit)
    }

    fn transmit(&mut self, packet: &mut Packet<Message>) {
        self.leave(packet);
    }

    fn idle_units(&self) -> u64 {
        End::idle_units(self)
    }

    fn idle_bits(&self) -> u64 {
        8 * LINK_PACKET
    }

    fn skip(&mut self, units: u64) {
        End::skip(self, units);
    }

    fn receive(&mut self, packet: &mut Packet<Message>) {
        End::receive(self, packet);
    }

    fn forget(&mut self) {
        End::forget(self);
    }

    fn retrain(&mut self) {
        End::retrain(self);
    }

    fn waits(&self) -> bool {
        End::waits(self)
    }

    fn is_settled(&self) -> bool {
        self.sender.is_settled()
    }

    fn is_at_rest(&self) -> bool {
        End::is_at_rest(self)
    }

    /// None: what is told are all credits that were ever given, so the next return has what a lost one had.
    fn shortages(&self, _: &Self) -> Vec<Shortage> {
        Vec::new()
    }

    fn taken(&self) -> u64 {
        self.receiver.taken()
    }

    fn replayed(&self) -> u64 {
        self.sender.replayed
    }

    fn impossible(&self) -> u64 {
        self.sender.impossible + self.overrun
    }
}
