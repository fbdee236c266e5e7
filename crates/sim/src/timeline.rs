//! A run as a trace of Perfetto: agents and cores as tracks, accesses as slices, messages as flows, and counters.
//!
//! Timestamps are in nanoseconds, the smallest unit of such a trace, rounded down from the picoseconds of the
//! simulation. Each access is annotated with its exact latency.

use cohkit_base::words::did_you_mean;
use cohkit_protocol::controller::Access;
use cohkit_timeline::writer::{IntervalTotals, Kind, Writer};
use cohkit_timeline::{Filter, Recorded, Side};
use rustc_hash::FxHashMap;

use crate::attribution::{Step, Transaction};
use crate::kernel::Time;
use crate::message::{Agent, Line, Message};

/// Returns the index of the agent of a name.
///
/// # Errors
/// No agent has this name. The message suggests similar names.
pub(crate) fn agent_index(name: &str, agents: &[String]) -> Result<usize, String> {
    let index = agents.iter().position(|agent| agent == name);
    index.ok_or_else(|| {
        format!(
            "there is no agent `{name}`; {}there are {}",
            did_you_mean(name, agents.iter().map(String::as_str)),
            agents.join(", ")
        )
    })
}

/// Names of the numeric annotations of events, numbered from 1.
const NOTES: [&str; 2] = ["line", "latency_ps"];
/// Number of the annotation `line`.
const LINE: u64 = 1;
/// Number of the annotation `latency_ps`.
const LATENCY: u64 = 2;

/// A counter track. Each has the time spent per interval.
#[derive(Clone, Copy)]
pub(crate) enum Count {
    /// Time for which links from caches are sending.
    FromCaches,
    /// Time for which links to caches are sending.
    ToCaches,
    /// Time for which accesses are outstanding, summed over accesses.
    InFlight,
}

/// A timeline during recording.
pub(crate) struct Timeline {
    /// Selection of events, and size limit.
    filter: Filter,
    /// Index of the only agent shown, or [`usize::MAX`] for an agent of the other space; `None` for all.
    only_agent: Option<usize>,
    /// Space of this timeline, if there are two.
    side: Option<Side>,
    /// Encoder of the trace.
    writer: Writer,
    /// Interned names of messages, by message kind.
    messages: Vec<u64>,
    /// Interned names of the steps of the latency breakdown, in the order of [`Step::ALL`].
    steps: Vec<u64>,
    /// Interned names of accesses seen so far, by kind of access.
    accesses_named: [Option<u64>; Access::ALL.len()],
    /// Interned names of the configurations of caches, and of homes.
    states: [FxHashMap<u32, u64>; 2],
    /// Track of each agent, and track of its states if the filter has a line.
    agents: Vec<(u64, Option<u64>)>,
    /// Interned name of each agent's state that is currently shown.
    open_states: Vec<Option<u64>>,
    /// Tracks of each core, with the completion time of the last access on each.
    cores: Vec<Vec<(u64, Time)>>,
    /// Parent track of the cores.
    cores_track: u64,
    /// Counters, by [`Count`].
    counters: [IntervalTotals; 3],
    /// Number of accesses recorded so far.
    accesses: u64,
    /// Time at which the trace reached its size limit, in picoseconds; `None` while it has room.
    full_since: Option<Time>,
}

impl Timeline {
    /// Creates an empty timeline of a machine with these agents, messages and number of cores. `side` is its space, if
    /// there are two.
    ///
    /// # Errors
    /// No agent has the filter's name.
    pub fn new(
        filter: &Filter,
        agents: &[String],
        messages: &[String],
        cores: usize,
        side: Option<Side>,
    ) -> Result<Timeline, String> {
        let only_agent = match (&filter.agent, side) {
            (Some(name), None) => Some(agent_index(name, agents)?),
            // The name may be that of an agent of the other space.
            (Some(name), Some(_)) => Some(agent_index(name, agents).unwrap_or(usize::MAX)),
            (None, _) => None,
        };
        let mut timeline = Timeline {
            filter: filter.clone(),
            only_agent,
            side,
            writer: Writer::new(filter, &NOTES, u64::from(side == Some(Side::Host))),
            messages: Vec::new(),
            steps: Vec::new(),
            accesses_named: [None; Access::ALL.len()],
            states: Default::default(),
            agents: Vec::new(),
            open_states: vec![None; agents.len()],
            cores: vec![Vec::new(); cores],
            cores_track: 0,
            counters: [(); 3].map(|()| IntervalTotals::default()),
            accesses: 0,
            full_since: None,
        };
        let message_names = messages.iter().map(|name| timeline.writer.name(name));
        timeline.messages = message_names.collect();
        let step_names = Step::ALL
            .iter()
            .map(|step| timeline.writer.name(step.name()));
        timeline.steps = step_names.collect();
        timeline.cores_track = timeline.add_group_track("cores");
        let agents_track = timeline.add_group_track("agents");
        for (number, name) in agents.iter().enumerate() {
            let is_shown = only_agent.is_none_or(|only_agent| only_agent == number);
            let track = match is_shown {
                true => timeline.writer.track(name, Some(agents_track), None),
                false => 0,
            };
            let states = filter.line.filter(|_| is_shown);
            let states = states.map(|line| {
                let name = format!("{name}: line {line}");
                timeline.writer.track(&name, Some(agents_track), None)
            });
            timeline.agents.push((track, states));
        }
        Ok(timeline)
    }

    /// Creates a parent track, whose name includes the space if there are two. Returns its number.
    fn add_group_track(&mut self, group_name: &str) -> u64 {
        let name = match self.side {
            None => group_name.to_string(),
            Some(Side::Device) => format!("the device's memory: {group_name}"),
            Some(Side::Host) => format!("the host's memory: {group_name}"),
        };
        self.writer.track(&name, None, None)
    }

    /// Returns true while the trace is not full. Otherwise, records the time at which it became full.
    fn has_room(&mut self, time: Time) -> bool {
        let has_room = self.writer.length() < self.filter.bytes;
        if !has_room && self.full_since.is_none() {
            self.full_since = Some(time);
        }
        has_room && self.full_since.is_none()
    }

    /// Returns true if an agent's actions on a line are selected at this time, and there is room.
    pub fn is_selected(&mut self, agent: usize, line: Line, time: Time) -> bool {
        self.filter.line.is_none_or(|selected| selected == line)
            && self.only_agent.is_none_or(|selected| selected == agent)
            && self.filter.window.contains(&time)
            && self.has_room(time)
    }

    /// Records the sending of a message.
    pub fn record_sent(&mut self, agent: usize, message: &Message, time: Time) {
        self.add_instant(agent, message, false, time);
    }

    /// Records that an agent takes a message.
    pub fn record_taken(&mut self, agent: usize, message: &Message, time: Time) {
        self.add_instant(agent, message, true, time);
    }

    /// Records the sending of a message, or, if `ends`, its receipt, as an instant on the agent's track with a
    /// flow.
    fn add_instant(&mut self, agent: usize, message: &Message, ends: bool, time: Time) {
        if !self.is_selected(agent, message.line, time) {
            return;
        }
        let (track, _) = self.agents[agent];
        let name = self.messages[message.kind.index()];
        let flow = self.writer.number_in_part(message.flight.into());
        self.writer
            .event(time, Kind::Instant, track, Some(name), |event| {
                event.note(LINE, message.line.into());
                event.flow(flow, ends);
            });
    }

    /// Records the configuration of a line at an agent: as a slice if the filter has a line, otherwise as an instant.
    /// `cache_key` is the key to cache the state's name under: true for the home, and the number of the configuration.
    pub fn record_state(
        &mut self,
        agent: usize,
        line: Line,
        cache_key: Option<(bool, u32)>,
        state_name: impl FnOnce() -> String,
        time: Time,
    ) {
        if !self.is_selected(agent, line, time) {
            return;
        }
        let state = match cache_key {
            None => self.writer.name(&state_name()),
            Some((home, configuration)) => *self.states[usize::from(home)]
                .entry(configuration)
                .or_insert_with(|| self.writer.name(&state_name())),
        };
        match self.agents[agent] {
            (_, Some(states)) => {
                if self.open_states[agent] == Some(state) {
                    return;
                }
                if self.open_states[agent].replace(state).is_some() {
                    self.writer.event(time, Kind::End, states, None, |_| ());
                }
                self.writer
                    .event(time, Kind::Begin, states, Some(state), |_| ());
            }
            (track, None) => self
                .writer
                .event(time, Kind::Instant, track, Some(state), |event| {
                    event.note(LINE, line.into());
                }),
        }
    }

    /// Drops cached names, because numbers of configurations are reused.
    pub fn forget_states(&mut self) {
        self.states = Default::default();
    }

    /// Adds an interval, in picoseconds, to a counter.
    pub fn add_interval(&mut self, counter: Count, begin: Time, end: Time) {
        self.counters[counter as usize].add(begin, end);
    }

    /// Records a performed access of a core attached to cache `agent`.
    pub fn record_performed(&mut self, agent: Agent, transaction: &Transaction) {
        self.add_interval(Count::InFlight, transaction.issued, transaction.done);
        let window = &self.filter.window;
        let is_in_window = transaction.issued < window.end && transaction.done >= window.start;
        if !is_in_window
            || self
                .filter
                .line
                .is_some_and(|selected| selected != transaction.line)
            || self
                .only_agent
                .is_some_and(|selected| selected != agent.index())
            || !self.has_room(transaction.done)
        {
            return;
        }
        self.accesses += 1;
        let core = transaction.core.index();
        let tracks = &self.cores[core];
        let free_track = tracks
            .iter()
            .position(|&(_, done)| done <= transaction.issued);
        let index = free_track.unwrap_or(tracks.len());
        if index == tracks.len() {
            let name = match index {
                0 => format!("core {core}"),
                _ => format!("core {core}, its access {}", index + 1),
            };
            let track = self.writer.track(&name, Some(self.cores_track), None);
            self.cores[core].push((track, 0));
        }
        let (track, done) = &mut self.cores[core][index];
        *done = transaction.done;
        let track = *track;
        let name = *self.accesses_named[transaction.access as usize]
            .get_or_insert_with(|| self.writer.name(transaction.access.name()));
        self.writer.event(
            transaction.issued,
            Kind::Begin,
            track,
            Some(name),
            |event| {
                event.note(LINE, transaction.line.into());
                event.note(LATENCY, transaction.latency());
            },
        );
        for segment in &transaction.segments {
            let name = self.steps[segment.step as usize];
            self.writer
                .event(segment.begin, Kind::Begin, track, Some(name), |_| ());
            self.writer
                .event(segment.end, Kind::End, track, None, |_| ());
        }
        self.writer
            .event(transaction.done, Kind::End, track, None, |_| ());
    }

    /// Returns the timeline recorded until `end`, of a machine with this number of links in each direction.
    pub fn recorded(mut self, end: Time, links: u64) -> Recorded {
        for agent in 0..self.agents.len() {
            if let (true, (_, Some(states))) =
                (self.open_states[agent].is_some(), self.agents[agent])
            {
                self.writer.event(end, Kind::End, states, None, |_| ());
            }
        }
        let machine_track = self.add_group_track("machine");
        let counters = std::mem::replace(
            &mut self.counters,
            [(); 3].map(|()| IntervalTotals::default()),
        );
        let percent = 100.0 / links.max(1) as f64;
        let counter_descriptions = [
            ("links from caches in use", "%", percent),
            ("links to caches in use", "%", percent),
            ("accesses in flight", "accesses", 1.0),
        ];
        for (description, counter) in counter_descriptions.into_iter().zip(&counters) {
            self.writer
                .counter(description, counter, &self.filter.window, machine_track);
        }
        self.writer.recorded(self.accesses, self.full_since)
    }
}
