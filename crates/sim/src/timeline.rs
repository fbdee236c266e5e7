//! A run as a trace of Perfetto: agents and cores as tracks, accesses as slices, messages as flows, and counters.
//!
//! The trace is the encoding of `perfetto.protos.Trace`, of which these few fields are written as they are. A picosecond
//! of the simulation is a nanosecond there, the smallest time that such a trace knows, so that nothing is rounded.

use cohkit_base::words::did_you_mean;
use rustc_hash::FxHashMap;
use std::ops::Range;

use crate::attribution::{Step, Transaction};
use crate::kernel::Time;
use crate::message::{Agent, Line, Message};

/// Of what a timeline is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Filter {
    /// Only what is about this line.
    pub line: Option<Line>,
    /// Only what an agent of this name does, and the accesses of the cores before it.
    pub agent: Option<String>,
    /// Only what happens in this time; of accesses those that are under way then.
    pub window: Range<Time>,
    /// Nothing more once there are so many bytes.
    pub bytes: usize,
}

impl Default for Filter {
    fn default() -> Filter {
        Filter {
            line: None,
            agent: None,
            window: 0..Time::MAX,
            bytes: 32 << 20,
        }
    }
}

/// A timeline that was recorded.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The trace.
    pub bytes: Vec<u8>,
    /// How many accesses it shows.
    pub accesses: u64,
    /// When it was full, if it was.
    pub full: Option<Time>,
}

/// What happens at a moment of a track.
#[derive(Clone, Copy)]
enum Kind {
    Begin = 1,
    End = 2,
    Instant = 3,
    Counter = 4,
}

/// Fields of the messages of Perfetto.
mod field {
    pub const PACKET: u32 = 1;
    pub const TIMESTAMP: u32 = 8;
    pub const SEQUENCE: u32 = 10;
    pub const EVENT: u32 = 11;
    pub const INTERNED: u32 = 12;
    pub const SEQUENCE_FLAGS: u32 = 13;
    pub const TRACK: u32 = 60;

    pub const TRACK_UUID: u32 = 1;
    pub const TRACK_NAME: u32 = 2;
    pub const TRACK_PARENT: u32 = 5;
    pub const TRACK_COUNTER: u32 = 8;
    pub const COUNTER_UNIT: u32 = 6;

    pub const EVENT_NOTE: u32 = 4;
    pub const EVENT_KIND: u32 = 9;
    pub const EVENT_NAME: u32 = 10;
    pub const EVENT_TRACK: u32 = 11;
    pub const EVENT_VALUE: u32 = 44;
    pub const EVENT_FLOW: u32 = 47;
    pub const EVENT_LAST_FLOW: u32 = 48;

    pub const NOTE_NAME: u32 = 1;
    pub const NOTE_NUMBER: u32 = 3;

    pub const INTERNED_EVENTS: u32 = 2;
    pub const INTERNED_NOTES: u32 = 3;
    pub const INTERNED_NUMBER: u32 = 1;
    pub const INTERNED_NAME: u32 = 2;
}

/// Most bytes for which there is room from the beginning.
const MOVED: usize = 128 << 20;

/// What numbers beside events are called, from 1 on.
const NOTES: [&str; 2] = ["line", "latency_ps"];
const LINE: u64 = 1;
const LATENCY: u64 = 2;

/// Bytes of one message.
#[derive(Default)]
struct Bytes(Vec<u8>);

impl Bytes {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn number(&mut self, field: u32, value: u64) {
        self.varint(u64::from(field) << 3);
        self.varint(value);
    }

    fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
    }

    /// A message within this one: its length, which comes first, most often has one byte.
    #[inline]
    fn message(&mut self, field: u32, fill: impl FnOnce(&mut Bytes)) {
        self.varint(u64::from(field) << 3 | 2);
        let place = self.0.len();
        self.0.push(0);
        fill(self);
        let length = self.0.len() - place - 1;
        if length < 0x80 {
            self.0[place] = length as u8;
            return;
        }
        let mut long = Bytes::default();
        long.varint(length as u64);
        self.0.splice(place..=place, long.0);
    }
}

/// Most bytes of a packet with one event.
const SHORT: usize = 96;

/// Bytes of a packet with one event, which are few, so that they are written at once.
struct Short {
    bytes: [u8; SHORT],
    length: usize,
}

impl Short {
    #[inline(always)]
    fn push(&mut self, byte: u8) {
        self.bytes[self.length] = byte;
        self.length += 1;
    }

    #[inline(always)]
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.push(value as u8);
    }

    #[inline(always)]
    fn number(&mut self, field: u32, value: u64) {
        self.varint(u64::from(field) << 3);
        self.varint(value);
    }

    #[inline(always)]
    fn fixed(&mut self, field: u32, value: u64) {
        self.varint(u64::from(field) << 3 | 1);
        let end = self.length + 8;
        self.bytes[self.length..end].copy_from_slice(&value.to_le_bytes());
        self.length = end;
    }

    #[inline(always)]
    fn message(&mut self, field: u32, fill: impl FnOnce(&mut Short)) {
        self.varint(u64::from(field) << 3 | 2);
        let place = self.length;
        self.push(0);
        fill(self);
        // All of it has fewer than 128 bytes.
        self.bytes[place] = (self.length - place - 1) as u8;
    }
}

/// Time spent in equal stretches, which become longer as time goes on.
struct Stretches {
    width: Time,
    spent: Vec<Time>,
}

/// Most stretches.
const STRETCHES: usize = 1 << 10;

impl Stretches {
    fn new() -> Stretches {
        Stretches {
            width: 1 << 14,
            spent: Vec::new(),
        }
    }

    fn add(&mut self, begin: Time, end: Time) {
        while end / self.width >= STRETCHES as u64 {
            let pairs = self.spent.chunks(2);
            self.spent = pairs.map(|pair| pair.iter().sum()).collect();
            self.width *= 2;
        }
        let last = (end / self.width) as usize;
        if last >= self.spent.len() {
            self.spent.resize(last + 1, 0);
        }
        let mut at = begin;
        while at < end {
            let number = at / self.width;
            let until = end.min((number + 1) * self.width);
            self.spent[number as usize] += until - at;
            at = until;
        }
    }
}

/// The counters.
#[derive(Clone, Copy)]
pub(crate) enum Count {
    FromCaches,
    ToCaches,
    InFlight,
}

/// A timeline while it is recorded.
pub(crate) struct Timeline {
    filter: Filter,
    /// The agent that alone is shown.
    only: Option<usize>,
    out: Bytes,
    /// Numbers of names: those of messages and steps, which come first, and those of states.
    names: FxHashMap<String, u64>,
    messages: Vec<u64>,
    steps: Vec<u64>,
    /// The names of configurations of caches, and of homes.
    states: [FxHashMap<u32, u64>; 2],
    /// The track of each agent, and that of its states of the one line that is shown.
    agents: Vec<(u64, Option<u64>)>,
    /// The state of each agent that is shown from some time on.
    open: Vec<Option<u64>>,
    /// Of each core, its tracks, with when the last access of each was done.
    cores: Vec<Vec<(u64, Time)>>,
    cores_track: u64,
    tracks: u64,
    counters: [Stretches; 3],
    accesses: u64,
    full: Option<Time>,
}

impl Timeline {
    /// An empty one of a machine with these agents, messages of these names, and so many cores.
    ///
    /// # Errors
    /// There is no agent of the name that is asked for.
    pub fn new(
        filter: &Filter,
        agents: &[String],
        messages: &[String],
        cores: usize,
    ) -> Result<Timeline, String> {
        let only = match &filter.agent {
            Some(name) => {
                let found = agents.iter().position(|agent| agent == name);
                let no = || {
                    format!(
                        "there is no agent `{name}`; {}there are {}",
                        did_you_mean(name, agents.iter().map(String::as_str)),
                        agents.join(", ")
                    )
                };
                Some(found.ok_or_else(no)?)
            }
            None => None,
        };
        let mut timeline = Timeline {
            filter: filter.clone(),
            only,
            // Memory that is not used is none, and what is not moved costs nothing.
            out: Bytes(Vec::with_capacity(filter.bytes.min(MOVED))),
            names: FxHashMap::default(),
            messages: Vec::new(),
            steps: Vec::new(),
            states: Default::default(),
            agents: Vec::new(),
            open: vec![None; agents.len()],
            cores: vec![Vec::new(); cores],
            cores_track: 0,
            tracks: 0,
            counters: [(); 3].map(|()| Stretches::new()),
            accesses: 0,
            full: None,
        };
        timeline.packet(|packet| {
            // From here on names have numbers.
            packet.number(field::SEQUENCE_FLAGS, 1);
            packet.message(field::INTERNED, |interned| {
                for (name, number) in NOTES.iter().zip(1..) {
                    interned.message(field::INTERNED_NOTES, |note| {
                        note.number(field::INTERNED_NUMBER, number);
                        note.bytes(field::INTERNED_NAME, name.as_bytes());
                    });
                }
            });
        });
        let of_messages = messages.iter().map(|name| timeline.name(name));
        timeline.messages = of_messages.collect();
        let of_steps = Step::ALL.iter().map(|step| timeline.name(step.name()));
        timeline.steps = of_steps.collect();
        timeline.cores_track = timeline.track("cores (1 ns here is 1 ps)", None, None);
        let all = timeline.track("agents (1 ns here is 1 ps)", None, None);
        for (number, name) in agents.iter().enumerate() {
            let shown = only.is_none_or(|only| only == number);
            let own = match shown {
                true => timeline.track(name, Some(all), None),
                false => 0,
            };
            let states = filter.line.filter(|_| shown);
            let states = states.map(|line| {
                let name = format!("{name}: line {line}");
                timeline.track(&name, Some(all), None)
            });
            timeline.agents.push((own, states));
        }
        Ok(timeline)
    }

    #[inline]
    fn packet(&mut self, fill: impl FnOnce(&mut Bytes)) {
        self.out.message(field::PACKET, |packet| {
            packet.number(field::SEQUENCE, 1);
            fill(packet);
        });
    }

    /// The number of a name, which stands in the trace before it is used.
    fn name(&mut self, name: &str) -> u64 {
        if let Some(&number) = self.names.get(name) {
            return number;
        }
        let number = self.names.len() as u64 + 1;
        self.names.insert(name.into(), number);
        self.packet(|packet| {
            packet.number(field::SEQUENCE_FLAGS, 2);
            packet.message(field::INTERNED, |interned| {
                interned.message(field::INTERNED_EVENTS, |event| {
                    event.number(field::INTERNED_NUMBER, number);
                    event.bytes(field::INTERNED_NAME, name.as_bytes());
                });
            });
        });
        number
    }

    fn track(&mut self, name: &str, parent: Option<u64>, unit: Option<&str>) -> u64 {
        self.tracks += 1;
        let number = self.tracks;
        self.packet(|packet| {
            packet.message(field::TRACK, |track| {
                track.number(field::TRACK_UUID, number);
                track.bytes(field::TRACK_NAME, name.as_bytes());
                if let Some(parent) = parent {
                    track.number(field::TRACK_PARENT, parent);
                }
                if let Some(unit) = unit {
                    track.message(field::TRACK_COUNTER, |counter| {
                        counter.bytes(field::COUNTER_UNIT, unit.as_bytes());
                    });
                }
            });
        });
        number
    }

    #[inline]
    fn event(
        &mut self,
        time: Time,
        kind: Kind,
        track: u64,
        name: Option<u64>,
        fill: impl FnOnce(&mut Short),
    ) {
        let mut short = Short {
            bytes: [0; SHORT],
            length: 0,
        };
        short.message(field::PACKET, |packet| {
            packet.number(field::SEQUENCE, 1);
            packet.number(field::TIMESTAMP, time);
            if name.is_some() {
                packet.number(field::SEQUENCE_FLAGS, 2);
            }
            packet.message(field::EVENT, |event| {
                event.number(field::EVENT_KIND, kind as u64);
                event.number(field::EVENT_TRACK, track);
                if let Some(name) = name {
                    event.number(field::EVENT_NAME, name);
                }
                fill(event);
            });
        });
        // A copy of a length that is known takes less time than a shorter one.
        let length = self.out.0.len() + short.length;
        self.out.0.extend_from_slice(&short.bytes);
        self.out.0.truncate(length);
    }

    /// Whether there is room for what happens then.
    fn has_room(&mut self, time: Time) -> bool {
        let has = self.out.0.len() < self.filter.bytes;
        if !has && self.full.is_none() {
            self.full = Some(time);
        }
        has && self.full.is_none()
    }

    /// Whether what an agent does with a line at some time is shown, and there is room for it.
    pub fn shows(&mut self, agent: usize, line: Line, time: Time) -> bool {
        self.filter.line.is_none_or(|only| only == line)
            && self.only.is_none_or(|only| only == agent)
            && self.filter.window.contains(&time)
            && self.has_room(time)
    }

    /// An agent sends a message.
    pub fn sent(&mut self, agent: usize, message: &Message, time: Time) {
        self.moment(agent, message, field::EVENT_FLOW, time);
    }

    /// An agent takes a message.
    pub fn taken(&mut self, agent: usize, message: &Message, time: Time) {
        self.moment(agent, message, field::EVENT_LAST_FLOW, time);
    }

    fn moment(&mut self, agent: usize, message: &Message, flow: u32, time: Time) {
        if !self.shows(agent, message.line, time) {
            return;
        }
        let (track, _) = self.agents[agent];
        let name = self.messages[message.kind.index()];
        self.event(time, Kind::Instant, track, Some(name), |event| {
            note(event, LINE, message.line.into());
            event.fixed(flow, message.flight.into());
        });
    }

    /// An agent has a line in a configuration from now on: of one line that is a slice, otherwise a moment.
    pub fn becomes(
        &mut self,
        agent: usize,
        line: Line,
        (home, configuration): (bool, u32),
        words: impl FnOnce() -> String,
        time: Time,
    ) {
        if !self.shows(agent, line, time) {
            return;
        }
        let known = self.states[usize::from(home)].get(&configuration).copied();
        let state = known.unwrap_or_else(|| {
            let state = self.name(&words());
            self.states[usize::from(home)].insert(configuration, state);
            state
        });
        match self.agents[agent] {
            (_, Some(states)) => {
                if self.open[agent] == Some(state) {
                    return;
                }
                if self.open[agent].replace(state).is_some() {
                    self.event(time, Kind::End, states, None, |_| ());
                }
                self.event(time, Kind::Begin, states, Some(state), |_| ());
            }
            (track, None) => self.event(time, Kind::Instant, track, Some(state), |event| {
                note(event, LINE, line.into());
            }),
        }
    }

    /// Numbers of configurations have another meaning from now on.
    pub fn forget_states(&mut self) {
        self.states = Default::default();
    }

    /// Something is counted in some time.
    pub fn counts(&mut self, what: Count, begin: Time, end: Time) {
        self.counters[what as usize].add(begin, end);
    }

    /// An access has been performed, by a core before this agent.
    pub fn performed(&mut self, agent: Agent, of: &Transaction) {
        self.counts(Count::InFlight, of.issued, of.done);
        let window = &self.filter.window;
        let within = of.issued < window.end && of.done >= window.start;
        if !within
            || self.filter.line.is_some_and(|only| only != of.line)
            || self.only.is_some_and(|only| only != agent.index())
            || !self.has_room(of.done)
        {
            return;
        }
        self.accesses += 1;
        let core = usize::from(of.core);
        let tracks = &self.cores[core];
        let free = tracks.iter().position(|&(_, done)| done <= of.issued);
        let place = free.unwrap_or(tracks.len());
        if place == tracks.len() {
            let name = match place {
                0 => format!("core {core}"),
                _ => format!("core {core}, its access {}", place + 1),
            };
            let track = self.track(&name, Some(self.cores_track), None);
            self.cores[core].push((track, 0));
        }
        let (track, done) = &mut self.cores[core][place];
        *done = of.done;
        let track = *track;
        let name = self.name(of.access.name());
        self.event(of.issued, Kind::Begin, track, Some(name), |event| {
            note(event, LINE, of.line.into());
            note(event, LATENCY, of.latency());
        });
        for segment in &of.segments {
            let name = self.steps[segment.step as usize];
            self.event(segment.begin, Kind::Begin, track, Some(name), |_| ());
            self.event(segment.end, Kind::End, track, None, |_| ());
        }
        self.event(of.done, Kind::End, track, None, |_| ());
    }

    /// What has been recorded until the end, of a machine with so many links each way.
    pub fn recorded(mut self, end: Time, links: u64) -> Recorded {
        for agent in 0..self.agents.len() {
            if let (true, (_, Some(states))) = (self.open[agent].is_some(), self.agents[agent]) {
                self.event(end, Kind::End, states, None, |_| ());
            }
        }
        let all = self.track("machine (1 ns here is 1 ps)", None, None);
        let counters = std::mem::replace(&mut self.counters, [(); 3].map(|()| Stretches::new()));
        let percent = 100.0 / links.max(1) as f64;
        let of_each = [
            ("links from caches in use", "%", percent),
            ("links to caches in use", "%", percent),
            ("accesses in flight", "accesses", 1.0),
        ];
        for ((name, unit, scale), counter) in of_each.into_iter().zip(counters) {
            let track = self.track(name, Some(all), Some(unit));
            for (spent, number) in counter.spent.iter().zip(0..) {
                let begin: Time = number * counter.width;
                if !self.filter.window.contains(&begin) {
                    continue;
                }
                let value = scale * *spent as f64 / counter.width as f64;
                self.event(begin, Kind::Counter, track, None, |event| {
                    event.fixed(field::EVENT_VALUE, value.to_bits());
                });
            }
        }
        Recorded {
            bytes: self.out.0,
            accesses: self.accesses,
            full: self.full,
        }
    }
}

/// A number beside an event.
#[inline(always)]
fn note(event: &mut Short, name: u64, value: u64) {
    event.message(field::EVENT_NOTE, |note| {
        note.number(field::NOTE_NAME, name);
        note.number(field::NOTE_NUMBER, value);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_short_as_they_can_be() {
        let mut bytes = Bytes::default();
        bytes.number(1, 300);
        bytes.bytes(3, b"ab");
        assert_eq!(bytes.0, [0x08, 0xac, 2, 0x1a, 2, b'a', b'b']);
        let mut short = Short {
            bytes: [0; SHORT],
            length: 0,
        };
        short.message(1, |inner| {
            inner.number(1, 300);
            inner.fixed(2, 1);
        });
        let expected = [0x0a, 12, 0x08, 0xac, 2, 0x11, 1, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(short.bytes[..short.length], expected);
        // A message that is long.
        let mut bytes = Bytes::default();
        bytes.message(1, |inner| inner.0.extend([7; 200]));
        assert_eq!(bytes.0[..4], [0x0a, 200, 1, 7]);
        assert_eq!(bytes.0.len(), 203);
    }

    /// However long a run, all time is in some stretch, and none in two.
    #[test]
    fn stretches_keep_all_time() {
        let mut stretches = Stretches::new();
        let mut sum = 0;
        for number in 0..3_000 {
            let (begin, long) = (number * 70_000, 1 + number * 37);
            stretches.add(begin, begin + long);
            sum += long;
        }
        assert_eq!(stretches.spent.iter().sum::<Time>(), sum);
        assert!(stretches.spent.len() <= STRETCHES);
        assert!(stretches.width > 1 << 14);
    }
}
