//! Recording of a run as a Perfetto trace. Cores are tracks with their programs and waits; host requests and copies are
//! slices, with flow arrows for requests; link use and copies in progress are counters.

use crate::events::{CoreCounts, CoreId, Request};
use crate::scratchpad::LINE as LINE_BYTES;
use cohkit_base::words::did_you_mean;
use cohkit_timeline::writer::{IntervalTotals, Kind, Writer};
use cohkit_timeline::{Filter, Recorded};
use cohkit_units::Time;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Names of the annotations of events, numbered from 1.
const NOTES: [&str; 2] = ["address", "latency_ps"];
/// Annotation with the address of the request or copy.
const ADDRESS: u64 = 1;
/// Annotation with the latency, in picoseconds.
const LATENCY: u64 = 2;

/// A request or copy in progress.
struct PendingSlice {
    /// Start time, in picoseconds.
    begin: Time,
    /// Name of the slice.
    name: &'static str,
    address: u64,
    /// Index of the core that the slice is for, as in [`Timeline::cores`]; `None` if a cache evicts a line.
    core: Option<usize>,
    /// Index of the host that has sent a request; 0 for a copy.
    host: usize,
}

/// A group of tracks of one kind, each with the end of its last slice. There are as many tracks as slices overlap.
struct Tracks {
    /// Name of the tracks, which a number follows.
    name: String,
    /// Identifier of each track, and end of its last slice in picoseconds.
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
    fn free_track(&mut self, writer: &mut Writer, parent: u64, slice: &Range<Time>) -> u64 {
        let free_index = self.ends.iter().position(|&(_, end)| end <= slice.start);
        let index = free_index.unwrap_or_else(|| {
            let number = self.ends.len() + 1;
            let track = writer.track(&format!("{} {number}", self.name), Some(parent), None);
            self.ends.push((track, 0));
            number - 1
        });
        self.ends[index].1 = slice.end;
        self.ends[index].0
    }
}

/// Track of a core.
struct Core {
    /// Name of the track, by which a filter selects the core.
    name: String,
    /// Identifier of the track.
    track: u64,
    /// True while a program is shown that has not ended.
    is_running: bool,
    /// Current wait in picoseconds, which is written once the core continues; empty if there is none.
    current_wait: Range<Time>,
}

/// A timeline under construction.
pub(crate) struct Timeline {
    /// Selection of events, and maximum size of the output.
    filter: Filter,
    writer: Writer,
    /// Tracks of the cores, by number.
    cores: Vec<Core>,
    counts: CoreCounts,
    /// Base address of far memory.
    far: u64,
    /// Track of events at the device.
    device_track: u64,
    /// Parent of all tracks but the counters.
    machine_track: u64,
    /// Tracks of requests, by host.
    requests: Vec<Tracks>,
    /// Tracks of copies, by engine.
    copies: Vec<Tracks>,
    /// Requests without a response, by number.
    pending_requests: FxHashMap<u64, PendingSlice>,
    /// Lines being copied, by engine and number of the access.
    pending_copies: FxHashMap<(usize, u64), PendingSlice>,
    /// Use of each host's link to the device.
    uplinks: Vec<IntervalTotals>,
    /// Use of the link to each host.
    downlinks: Vec<IntervalTotals>,
    /// Number of lines being copied.
    copies_in_progress: IntervalTotals,
    /// Number of requests in the output.
    shown_requests: u64,
    /// Time in picoseconds from which events are omitted because the output is full.
    full_since: Option<Time>,
}

impl Timeline {
    /// Creates an empty timeline of a machine with these cores, whose far memory starts at `far`.
    ///
    /// # Errors
    /// The filter names a core that does not exist.
    pub(crate) fn new(filter: &Filter, counts: CoreCounts, far: u64) -> Result<Timeline, String> {
        let name = |core_id| match core_id {
            CoreId::Host { core, .. } if counts.hosts == 1 => format!("host core {core}"),
            CoreId::Host { host, core } => format!("host {host} core {core}"),
            CoreId::Mcc(core) => format!("core {core}"),
        };
        let names: Vec<String> = counts.ids().map(name).collect();
        if let Some(unknown) = filter.agent.as_ref().filter(|name| !names.contains(name)) {
            return Err(format!(
                "there is no agent `{unknown}`; {}there are {}",
                did_you_mean(unknown, names.iter().map(String::as_str)),
                names.join(", ")
            ));
        }
        let request_tracks = |host| match counts.hosts {
            1 => Tracks::new("request of the host".into()),
            _ => Tracks::new(format!("request of host {host}, number")),
        };
        let mut writer = Writer::new(filter, &NOTES, 0);
        let machine_track = writer.track("machine", None, None);
        let device_track = writer.track("device", Some(machine_track), None);
        let cores = names.into_iter().map(|name| Core {
            track: writer.track(&name, Some(machine_track), None),
            name,
            is_running: false,
            current_wait: 0..0,
        });
        Ok(Timeline {
            cores: cores.collect(),
            filter: filter.clone(),
            counts,
            far,
            device_track,
            machine_track,
            requests: (0..counts.hosts).map(request_tracks).collect(),
            copies: (0..counts.mccs)
                .map(|core| Tracks::new(format!("copies of core {core}, line")))
                .collect(),
            pending_requests: FxHashMap::default(),
            pending_copies: FxHashMap::default(),
            uplinks: (0..counts.hosts)
                .map(|_| IntervalTotals::default())
                .collect(),
            downlinks: (0..counts.hosts)
                .map(|_| IntervalTotals::default())
                .collect(),
            copies_in_progress: IntervalTotals::default(),
            shown_requests: 0,
            full_since: None,
            writer,
        })
    }

    /// True if an event passes the filter and the output has room. `core` and `address` are `None` for events
    /// without a core or an address.
    fn is_shown(&mut self, core: Option<usize>, address: Option<u64>, time: &Range<Time>) -> bool {
        let window = &self.filter.window;
        let line = |address: u64| Some(address.checked_sub(self.far)? / LINE_BYTES as u64);
        let is_selected = time.start < window.end
            && time.end >= window.start
            && (self.filter.agent.as_ref())
                .is_none_or(|only| core.is_some_and(|core| self.cores[core].name == *only))
            && (self.filter.line).is_none_or(|only| address.and_then(line) == Some(only.into()));
        if is_selected && self.full_since.is_none() && self.writer.length() >= self.filter.bytes {
            self.full_since = Some(time.start);
        }
        is_selected && self.full_since.is_none()
    }

    /// Starts the slice of a program on a core.
    pub(crate) fn begin_program(&mut self, core_id: CoreId, program: &str, now: Time) {
        let core = self.counts.index(core_id);
        if self.cores[core].is_running || !self.is_shown(Some(core), None, &(now..Time::MAX)) {
            return;
        }
        self.cores[core].is_running = true;
        let name = self.writer.name(program);
        let track = self.cores[core].track;
        self.writer
            .event(now, Kind::Begin, track, Some(name), |_| ());
    }

    /// Ends the slice of a core's program.
    pub(crate) fn end_program(&mut self, core_id: CoreId, now: Time) {
        let core = self.counts.index(core_id);
        self.write_wait(core);
        // Open slices are closed even if the output is full.
        if std::mem::take(&mut self.cores[core].is_running) {
            let track = self.cores[core].track;
            self.writer.event(now, Kind::End, track, None, |_| ());
        }
    }

    /// Records a wait of a core. Waits less than a cycle apart are merged, because a waiting core retries periodically.
    pub(crate) fn record_wait(&mut self, core_id: CoreId, time: Range<Time>, cycle: Time) {
        let core = self.counts.index(core_id);
        let current_wait = &mut self.cores[core].current_wait;
        if time.start < current_wait.end + cycle && !current_wait.is_empty() {
            current_wait.end = current_wait.end.max(time.end);
            return;
        }
        self.write_wait(core);
        self.cores[core].current_wait = time;
    }

    /// Writes the current wait of a core, if any, and clears it.
    fn write_wait(&mut self, core: usize) {
        let time = std::mem::take(&mut self.cores[core].current_wait);
        if time.is_empty()
            || !self.cores[core].is_running
            || !self.is_shown(Some(core), None, &time)
        {
            return;
        }
        let name = self.writer.name("waits");
        let track = self.cores[core].track;
        self.writer
            .event(time.start, Kind::Begin, track, Some(name), |_| ());
        self.writer.event(time.end, Kind::End, track, None, |_| ());
    }

    /// Records the interval in which the last message occupied a direction of a host's link.
    pub(crate) fn record_transmission(&mut self, host: usize, to_device: bool, time: &Range<Time>) {
        match to_device {
            true => self.uplinks[host].add(time.start, time.end),
            false => self.downlinks[host].add(time.start, time.end),
        }
    }

    /// Records a request of a host, with the core that it is for, if any.
    pub(crate) fn record_request(
        &mut self,
        number: u64,
        (host, core_id): (usize, Option<CoreId>),
        request: &Request,
        now: Time,
    ) {
        let (name, address) = match request {
            Request::ReadLine(address) => ("read line", *address),
            Request::WriteLine(address, _) => ("write line", *address),
            Request::ReadWord(address, _) => ("read word", *address),
            Request::WriteWord(address, ..) => ("write word", *address),
        };
        let pending = PendingSlice {
            begin: now,
            name,
            address,
            core: core_id.map(|core_id| self.counts.index(core_id)),
            host,
        };
        self.pending_requests.insert(number, pending);
    }

    /// Marks the execution of a request or the transmission of its response, at the device.
    fn mark_event(&mut self, number: u64, now: Time, is_response: bool) {
        let Some(&PendingSlice {
            name,
            address,
            core,
            ..
        }) = self.pending_requests.get(&number)
        else {
            return;
        };
        if !self.is_shown(core, Some(address), &(now..now + 1)) {
            return;
        }
        let name = self.writer.name(if is_response { "answer" } else { name });
        let device_track = self.device_track;
        let flow = number * 2 + u64::from(is_response);
        self.writer
            .event(now, Kind::Instant, device_track, Some(name), |event| {
                event.note(ADDRESS, address);
                event.flow(flow, !is_response);
            });
    }

    /// Marks the arrival of a request at its destination.
    pub(crate) fn mark_request(&mut self, number: u64, now: Time) {
        self.mark_event(number, now, false);
    }

    /// Marks the transmission of a response.
    pub(crate) fn mark_response(&mut self, number: u64, now: Time) {
        self.mark_event(number, now, true);
    }

    /// Completes a request, whose response has arrived at the host.
    pub(crate) fn complete_request(&mut self, number: u64, now: Time) {
        if let Some(pending) = self.pending_requests.remove(&number) {
            self.write_request(number, &pending, now, true);
        }
    }

    /// Writes the slice of a request that ends at `now`. `has_response` is false if the run ended first.
    fn write_request(
        &mut self,
        number: u64,
        pending: &PendingSlice,
        now: Time,
        has_response: bool,
    ) {
        let &PendingSlice {
            begin,
            name,
            address,
            core,
            ..
        } = pending;
        let slice = begin..now;
        if !self.is_shown(core, Some(address), &slice) {
            return;
        }
        self.shown_requests += 1;
        let track =
            self.requests[pending.host].free_track(&mut self.writer, self.machine_track, &slice);
        let (name, response_name) = (self.writer.name(name), self.writer.name("answer"));
        self.writer
            .event(begin, Kind::Begin, track, Some(name), |event| {
                event.note(ADDRESS, address);
                event.note(LATENCY, now - begin);
                event.flow(number * 2, false);
            });
        if has_response {
            self.writer
                .event(now, Kind::Instant, track, Some(response_name), |event| {
                    event.flow(number * 2 + 1, true);
                });
        }
        self.writer.event(now, Kind::End, track, None, |_| ());
    }

    /// Records the start of a line copy, identified by engine and number of the access.
    pub(crate) fn begin_copy(&mut self, copy: (usize, u64), address: u64, stores: bool, now: Time) {
        let name = if stores { "store line" } else { "fetch line" };
        let pending = PendingSlice {
            begin: now,
            name,
            address,
            core: Some(self.counts.index(CoreId::Mcc(copy.0))),
            host: 0,
        };
        self.pending_copies.insert(copy, pending);
    }

    /// Completes a line copy at time `end`.
    pub(crate) fn complete_copy(&mut self, copy: (usize, u64), end: Time) {
        if let Some(pending) = self.pending_copies.remove(&copy) {
            self.write_copy(copy.0, &pending, end);
        }
    }

    /// Writes the slice of a line copy that ends at `end`.
    fn write_copy(&mut self, mcc: usize, pending: &PendingSlice, end: Time) {
        let slice = pending.begin..end;
        self.copies_in_progress.add(slice.start, slice.end);
        if !self.is_shown(pending.core, Some(pending.address), &slice) {
            return;
        }
        let track = self.copies[mcc].free_track(&mut self.writer, self.machine_track, &slice);
        let name = self.writer.name(pending.name);
        self.writer
            .event(slice.start, Kind::Begin, track, Some(name), |event| {
                event.note(ADDRESS, pending.address);
            });
        self.writer.event(slice.end, Kind::End, track, None, |_| ());
    }

    /// Writes the use of the links, and the copies in progress.
    fn write_counters(&mut self) {
        let track = self.writer.track("counters", None, None);
        let window = &self.filter.window;
        for (host, (uplink, downlink)) in self.uplinks.iter().zip(&self.downlinks).enumerate() {
            let labels = match self.counts.hosts {
                1 => ["link to the device", "link to the host"].map(String::from),
                _ => [
                    format!("link of host {host} to the device"),
                    format!("link to host {host}"),
                ],
            };
            for (label, link) in labels.iter().zip([uplink, downlink]) {
                let label = format!("{label} in use");
                self.writer
                    .counter((&label, "%", 100.0), link, window, track);
            }
        }
        let label = ("copies outstanding", "lines", 1.0);
        self.writer
            .counter(label, &self.copies_in_progress, window, track);
    }

    /// Returns the trace, closing all open slices at `end`.
    pub(crate) fn finish(mut self, end: Time) -> Recorded {
        let mut open_slices: Vec<(u64, PendingSlice)> = self.pending_requests.drain().collect();
        open_slices.sort_unstable_by_key(|(number, _)| *number);
        for (number, pending) in open_slices {
            self.write_request(number, &pending, end, false);
        }
        let mut open_slices: Vec<((usize, u64), PendingSlice)> =
            self.pending_copies.drain().collect();
        open_slices.sort_unstable_by_key(|(copy, _)| *copy);
        for ((mcc, _), pending) in open_slices {
            self.write_copy(mcc, &pending, end);
        }
        for core_id in self.counts.ids() {
            self.end_program(core_id, end);
        }
        self.write_counters();
        self.writer.recorded(self.shown_requests, self.full_since)
    }
}
