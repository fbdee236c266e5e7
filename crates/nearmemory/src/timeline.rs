//! Recording of a run as a Perfetto trace. Cores are tracks with their programs and waits; host requests and copies are
//! slices, with flow arrows for requests; link use and copies in progress are counters.

use crate::events::{CoreId, Request, Time};
use crate::scratchpad::LINE as LINE_BYTES;
use cohkit_base::words::did_you_mean;
use cohkit_sim::timeline::writer::{IntervalTotals, Kind, Writer};
use cohkit_sim::timeline::{Filter, Recorded};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Names of the annotations of events, numbered from 1.
const NOTES: [&str; 2] = ["address", "latency_ps"];
const ADDRESS: u64 = 1;
const LATENCY: u64 = 2;

/// A request or copy in progress.
struct Sent {
    begin: Time,
    name: &'static str,
    at: u64,
    /// The core that it is for; `None` if a cache evicts a line.
    core: Option<usize>,
}

/// A group of tracks of one kind, each with the end of its last slice. There are as many tracks as slices overlap.
struct Tracks {
    name: String,
    ends: Vec<(u64, Time)>,
}

impl Tracks {
    fn new(name: String) -> Tracks {
        Tracks {
            name,
            ends: Vec::new(),
        }
    }

    /// Returns a track that is free for the slice; adds one if necessary.
    fn free(&mut self, writer: &mut Writer, parent: u64, slice: &Range<Time>) -> u64 {
        let free = self.ends.iter().position(|&(_, end)| end <= slice.start);
        let place = free.unwrap_or_else(|| {
            let number = self.ends.len() + 1;
            let track = writer.track(&format!("{} {number}", self.name), Some(parent), None);
            self.ends.push((track, 0));
            number - 1
        });
        self.ends[place].1 = slice.end;
        self.ends[place].0
    }
}

/// Track of a core.
struct Core {
    name: String,
    track: u64,
    /// True while a program is shown that has not ended.
    runs: bool,
    /// Current wait, which is written once the core continues.
    waits: Range<Time>,
}

/// A timeline under construction.
pub(crate) struct Timeline {
    filter: Filter,
    writer: Writer,
    /// Tracks of the cores, the host's first.
    cores: Vec<Core>,
    hosts: usize,
    /// Base address of far memory.
    far: u64,
    device: u64,
    all: u64,
    requests: Tracks,
    copies: Vec<Tracks>,
    sent: FxHashMap<u64, Sent>,
    /// Lines being copied, by engine and number of the access.
    copied: FxHashMap<(usize, u64), Sent>,
    uplink: IntervalTotals,
    downlink: IntervalTotals,
    copying: IntervalTotals,
    shown: u64,
    full: Option<Time>,
}

impl Timeline {
    /// Creates an empty timeline of a machine with `hosts` and `mccs` cores, whose far memory starts at `far`.
    ///
    /// # Errors
    /// The filter names a core that does not exist.
    pub(crate) fn new(
        filter: &Filter,
        (hosts, mccs): (usize, usize),
        far: u64,
    ) -> Result<Timeline, String> {
        let names = (0..hosts).map(|core| format!("host core {core}"));
        let names: Vec<String> = names
            .chain((0..mccs).map(|core| format!("core {core}")))
            .collect();
        if let Some(wrong) = filter.agent.as_ref().filter(|name| !names.contains(name)) {
            return Err(format!(
                "there is no agent `{wrong}`; {}there are {}",
                did_you_mean(wrong, names.iter().map(String::as_str)),
                names.join(", ")
            ));
        }
        let mut writer = Writer::new(filter, &NOTES, 0);
        let all = writer.track("machine", None, None);
        let device = writer.track("device", Some(all), None);
        let cores = names.into_iter().map(|name| Core {
            track: writer.track(&name, Some(all), None),
            name,
            runs: false,
            waits: 0..0,
        });
        Ok(Timeline {
            cores: cores.collect(),
            filter: filter.clone(),
            hosts,
            far,
            device,
            all,
            requests: Tracks::new("request of the host".into()),
            copies: (0..mccs)
                .map(|core| Tracks::new(format!("copies of core {core}, line")))
                .collect(),
            sent: FxHashMap::default(),
            copied: FxHashMap::default(),
            uplink: IntervalTotals::default(),
            downlink: IntervalTotals::default(),
            copying: IntervalTotals::default(),
            shown: 0,
            full: None,
            writer,
        })
    }

    /// True if an event passes the filter and the output has room. `core` and `at` are `None` for events without a core
    /// or an address.
    fn is_shown(&mut self, core: Option<usize>, at: Option<u64>, time: &Range<Time>) -> bool {
        let window = &self.filter.window;
        let line = |at: u64| Some(at.checked_sub(self.far)? / LINE_BYTES as u64);
        let asked = time.start < window.end
            && time.end >= window.start
            && (self.filter.agent.as_ref())
                .is_none_or(|only| core.is_some_and(|core| self.cores[core].name == *only))
            && (self.filter.line).is_none_or(|only| at.and_then(line) == Some(only.into()));
        if asked && self.full.is_none() && self.writer.length() >= self.filter.bytes {
            self.full = Some(time.start);
        }
        asked && self.full.is_none()
    }

    fn core(&self, core_id: CoreId) -> usize {
        match core_id {
            CoreId::Host(core) => core,
            CoreId::Mcc(core) => self.hosts + core,
        }
    }

    /// Starts the slice of a program on a core.
    pub(crate) fn begins(&mut self, core_id: CoreId, program: &str, now: Time) {
        let core = self.core(core_id);
        if self.cores[core].runs || !self.is_shown(Some(core), None, &(now..Time::MAX)) {
            return;
        }
        self.cores[core].runs = true;
        let name = self.writer.name(program);
        let track = self.cores[core].track;
        self.writer
            .event(now, Kind::Begin, track, Some(name), |_| ());
    }

    /// Ends the slice of a core's program.
    pub(crate) fn ends(&mut self, core_id: CoreId, now: Time) {
        let core = self.core(core_id);
        self.write_wait(core);
        // Open slices are closed even if the output is full.
        if std::mem::take(&mut self.cores[core].runs) {
            let track = self.cores[core].track;
            self.writer.event(now, Kind::End, track, None, |_| ());
        }
    }

    /// Records a wait of a core. Waits less than a cycle apart are merged, because a waiting core retries periodically.
    pub(crate) fn waited(&mut self, core_id: CoreId, time: Range<Time>, cycle: Time) {
        let core = self.core(core_id);
        let before = &mut self.cores[core].waits;
        if time.start < before.end + cycle && !before.is_empty() {
            before.end = before.end.max(time.end);
            return;
        }
        self.write_wait(core);
        self.cores[core].waits = time;
    }

    fn write_wait(&mut self, core: usize) {
        let time = std::mem::take(&mut self.cores[core].waits);
        if time.is_empty() || !self.cores[core].runs || !self.is_shown(Some(core), None, &time) {
            return;
        }
        let name = self.writer.name("waits");
        let track = self.cores[core].track;
        self.writer
            .event(time.start, Kind::Begin, track, Some(name), |_| ());
        self.writer.event(time.end, Kind::End, track, None, |_| ());
    }

    /// Records the interval in which the last message occupied a direction of the link.
    pub(crate) fn carried(&mut self, to_device: bool, time: &Range<Time>) {
        match to_device {
            true => self.uplink.add(time.start, time.end),
            false => self.downlink.add(time.start, time.end),
        }
    }

    /// Records a request of the host, with the core that it is for, if any.
    pub(crate) fn sent(&mut self, number: u64, core: Option<usize>, of: &Request, now: Time) {
        let (name, at) = match of {
            Request::ReadLine(at) => ("read line", *at),
            Request::WriteLine(at, _) => ("write line", *at),
            Request::ReadWord(at, _) => ("read word", *at),
            Request::WriteWord(at, ..) => ("write word", *at),
        };
        let sent = Sent {
            begin: now,
            name,
            at,
            core,
        };
        self.sent.insert(number, sent);
    }

    /// Marks the execution of a request or the transmission of its response, at the device.
    fn mark_event(&mut self, number: u64, now: Time, answers: bool) {
        let Some(&Sent { name, at, core, .. }) = self.sent.get(&number) else {
            return;
        };
        if !self.is_shown(core, Some(at), &(now..now + 1)) {
            return;
        }
        let name = self.writer.name(if answers { "answer" } else { name });
        let device = self.device;
        let flow = number * 2 + u64::from(answers);
        self.writer
            .event(now, Kind::Instant, device, Some(name), |event| {
                event.note(ADDRESS, at);
                event.flow(flow, !answers);
            });
    }

    /// Marks the arrival of a request at its destination.
    pub(crate) fn asked(&mut self, number: u64, now: Time) {
        self.mark_event(number, now, false);
    }

    /// Marks the transmission of a response.
    pub(crate) fn answered(&mut self, number: u64, now: Time) {
        self.mark_event(number, now, true);
    }

    /// Completes a request, whose response has arrived at the host.
    pub(crate) fn arrived(&mut self, number: u64, now: Time) {
        if let Some(sent) = self.sent.remove(&number) {
            self.request(number, &sent, now, true);
        }
    }

    fn request(&mut self, number: u64, sent: &Sent, now: Time, answered: bool) {
        let &Sent {
            begin,
            name,
            at,
            core,
        } = sent;
        let slice = begin..now;
        if !self.is_shown(core, Some(at), &slice) {
            return;
        }
        self.shown += 1;
        let track = self.requests.free(&mut self.writer, self.all, &slice);
        let (name, back) = (self.writer.name(name), self.writer.name("answer"));
        self.writer
            .event(begin, Kind::Begin, track, Some(name), |event| {
                event.note(ADDRESS, at);
                event.note(LATENCY, now - begin);
                event.flow(number * 2, false);
            });
        if answered {
            self.writer
                .event(now, Kind::Instant, track, Some(back), |event| {
                    event.flow(number * 2 + 1, true);
                });
        }
        self.writer.event(now, Kind::End, track, None, |_| ());
    }

    /// Records the start of a line copy, identified by engine and number of the access.
    pub(crate) fn copies(&mut self, copy: (usize, u64), at: u64, stores: bool, now: Time) {
        let name = if stores { "store line" } else { "fetch line" };
        let sent = Sent {
            begin: now,
            name,
            at,
            core: Some(self.hosts + copy.0),
        };
        self.copied.insert(copy, sent);
    }

    /// Completes a line copy at time `end`.
    pub(crate) fn copied(&mut self, copy: (usize, u64), end: Time) {
        if let Some(begun) = self.copied.remove(&copy) {
            self.copy(copy.0, &begun, end);
        }
    }

    fn copy(&mut self, mcc: usize, begun: &Sent, end: Time) {
        let slice = begun.begin..end;
        self.copying.add(slice.start, slice.end);
        if !self.is_shown(begun.core, Some(begun.at), &slice) {
            return;
        }
        let track = self.copies[mcc].free(&mut self.writer, self.all, &slice);
        let name = self.writer.name(begun.name);
        self.writer
            .event(slice.start, Kind::Begin, track, Some(name), |event| {
                event.note(ADDRESS, begun.at);
            });
        self.writer.event(slice.end, Kind::End, track, None, |_| ());
    }

    /// Returns the trace, closing all open slices at `end`.
    pub(crate) fn recorded(mut self, end: Time) -> Recorded {
        let mut left: Vec<(u64, Sent)> = self.sent.drain().collect();
        left.sort_unstable_by_key(|(number, _)| *number);
        for (number, sent) in left {
            self.request(number, &sent, end, false);
        }
        let mut left: Vec<((usize, u64), Sent)> = self.copied.drain().collect();
        left.sort_unstable_by_key(|(copy, _)| *copy);
        for ((mcc, _), begun) in left {
            self.copy(mcc, &begun, end);
        }
        for core in 0..self.cores.len() {
            let core_id = match core.checked_sub(self.hosts) {
                Some(mcc) => CoreId::Mcc(mcc),
                None => CoreId::Host(core),
            };
            self.ends(core_id, end);
        }
        let all = self.writer.track("counters", None, None);
        for (told, counter) in [
            (("link to the device in use", "%", 100.0), &self.uplink),
            (("link to the host in use", "%", 100.0), &self.downlink),
            (("copies outstanding", "lines", 1.0), &self.copying),
        ] {
            self.writer.counter(told, counter, &self.filter.window, all);
        }
        self.writer.recorded(self.shown, self.full)
    }
}
