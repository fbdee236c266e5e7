//! Tables of a run that do not change after its construction.

use cohkit_protocol::controller::Local;
use cohkit_protocol::execute::Receiver;
use cohkit_protocol::protocol::MessageId;
use cohkit_protocol::remotes::Remotes;
use cohkit_system::plan::ProtocolFacts;
use cohkit_units::Quantity;

use super::main_memory::aliased;
use super::*;
use crate::message::CoreId;

/// Delays of the machine, in picoseconds.
pub(crate) struct Times {
    /// Occupancy of a unit by an event.
    pub occupancy: Time,
    /// Latency from an event's start at its unit to the messages that the unit sends.
    pub latency: Time,
    /// Occupancy of a unit by the completion of a memory operation.
    pub resume_occupancy: Time,
    /// Latency from the start of a completion at its unit to the messages that the unit sends.
    pub resume: Time,
    /// From one port of the switch to another.
    pub switch: Time,
    /// From a unit to memory, and back.
    pub path: (Time, Time),
    /// From the device to a unit, for local operations, and back.
    pub local: (Time, Time),
    /// Minimum interval between two local operations at a slice, and between two unlocks.
    pub local_interval: Time,
    /// Minimum interval between two local operations of the device, across slices.
    pub issue: Time,
    /// Maximum time that a core waits for an access.
    pub timeout: Time,
    /// Maximum time without a performed access.
    pub progress_timeout: Time,
}

impl Times {
    /// Computes the delays of a platform. A clocked home has delays of its own, which replace those of units.
    fn new(platform: &Platform, clocked: bool) -> Times {
        let home = &platform.home;
        // A clocked home models its own delays, up to its ports.
        let home_delay = |quantity: &Quantity| if clocked { 0 } else { quantity.value };
        let path = home_delay(&home.memory_round_trip);
        let local = home_delay(&home.device_round_trip);
        Times {
            occupancy: home.occupancy.value,
            latency: home_delay(&home.latency),
            resume_occupancy: (home.completion_occupancy.as_ref())
                .unwrap_or(&home.occupancy)
                .value,
            resume: home_delay(home.completion_latency.as_ref().unwrap_or(&home.latency)),
            switch: platform.switch.as_ref().map_or(0, |s| s.latency.value),
            path: (path / 2, path - path / 2),
            local: (local / 2, local - local / 2),
            local_interval: home_delay(&home.local_issue_interval),
            issue: home.issue_interval.as_ref().map_or(0, |issue| issue.value),
            timeout: platform.cores.timeout.value,
            progress_timeout: platform.watchdog_timeout.value,
        }
    }
}

/// Constant properties of the machine and its protocol.
pub(crate) struct Tables {
    /// Delays of the machine.
    pub times: Times,
    /// Properties of each message kind, by its number in the protocol.
    pub kinds: Vec<Kind>,
    /// Static analysis of the protocol, from which the effects of rows follow.
    pub facts: ProtocolFacts,
    /// Messages of the protocol, in the order of the protocol file.
    pub protocol_messages: Vec<protocol::Message>,
    /// Names of the agents.
    pub names: Names,
    /// Caches and cores by kind.
    pub groups: Groups,
    /// Local operations of the home, to which [`Work::Local`] refers by index.
    pub locals: Vec<Local>,
    /// True if the protocol declares which messages are responses to forwards. Then the end of a coherence transaction
    /// can be detected.
    pub declares_responses: bool,
    /// Bounds on messages in flight that the protocol file declares.
    pub bounds: Bounds,
    /// The machine.
    pub platform: Platform,
    /// Bytes of a line.
    pub line_bytes: u32,
    /// Number of homes in the protocol file.
    pub homes: u16,
    /// Number of homes of the machine, each with a memory; a power of two.
    pub memories: usize,
    /// Number of units of all homes together; a power of two.
    pub units: usize,
    /// Number of slices of all homes, a power of two.
    pub slices: usize,
    /// True if aliased line numbers select the unit.
    pub aliases_lines: bool,
    /// True if caches send the bytes of stores to the home, which performs them.
    pub caches_send_stores: bool,
    /// True if a clocked home replaces the units.
    pub has_clocked_home: bool,
    /// Number of the cache above, and number of caches in the upper level, if this is the lower of two levels.
    pub cache_above: Option<(Agent, u16)>,
    /// True if memory is prefetched for upcoming events.
    pub prefetches_events: bool,
}

impl Tables {
    /// Creates the tables of a setup. `in_flight` is the maximum number of outstanding accesses of cores.
    pub fn new(
        setup: &Setup,
        kinds: Vec<Kind>,
        groups: Groups,
        (remotes, remote): (Remotes, &Program),
        in_flight: u64,
    ) -> Tables {
        let (protocol, platform) = (&setup.protocol, &setup.platform);
        let memories = platform.homes();
        Tables {
            times: Times::new(platform, setup.clocked.is_some()),
            declares_responses: kinds.iter().any(|kind| kind.class == Some(Class::Answer)),
            kinds,
            facts: ProtocolFacts::new(protocol, &setup.home),
            protocol_messages: protocol.messages.clone(),
            names: Names::new(protocol, &setup.home, remotes),
            groups,
            locals: setup.home.locals.clone(),
            bounds: protocol.bounds.clone(),
            platform: platform.clone(),
            line_bytes: protocol.line_bytes,
            homes: protocol.homes,
            memories: memories as usize,
            units: (memories * platform.home.slices.value * platform.home.units.value) as usize,
            slices: (memories * platform.home.slices.value) as usize,
            aliases_lines: platform.aliases_lines(),
            caches_send_stores: remote.sends_stores,
            has_clocked_home: setup.clocked.is_some(),
            cache_above: None,
            prefetches_events: event_prefetch::is_worthwhile(in_flight),
        }
    }

    /// Returns the properties of a message's kind.
    #[inline(always)]
    pub fn kind_of(&self, message: &Message) -> &Kind {
        &self.kinds[message.kind.index()]
    }

    /// Returns the index of a line's home. A message about no line has that index as its line number.
    #[inline]
    pub fn home_of(&self, line: Line) -> usize {
        line as usize & (self.memories - 1)
    }

    /// Returns the index of the unit that a line belongs to. The lowest bits select the slice, those above them its
    /// unit.
    #[inline]
    pub fn unit_of(&self, line: Line) -> usize {
        let line = match self.aliases_lines {
            true => aliased(line),
            false => line,
        };
        line as usize & (self.units - 1)
    }

    /// Returns the index of the slice that a line belongs to, among those of all homes.
    #[inline]
    pub fn slice_of(&self, line: Line) -> usize {
        self.unit_of(line) & (self.slices - 1)
    }

    /// Returns the line of a message. A message about no line has the number of its receiving or sending home instead.
    #[inline(always)]
    pub fn line_of(&self, kind: MessageId, line: Line, to: Receiver) -> Line {
        if self.kinds[kind.index()].about_line {
            return line;
        }
        match to {
            Receiver::HomeAt(home) => home.into(),
            Receiver::Home | Receiver::Remote(_) => self.home_of(line) as Line,
        }
    }

    /// True if a core is in front of one of these caches, not those of another machine of the same level.
    pub fn has_core(&self, core: CoreId) -> bool {
        self.cache_above
            .is_none_or(|(cache, caches)| core.0 / self.groups.caches() % caches == cache.0)
    }

    /// Returns the number of an agent among all agents: caches, then homes; `line` selects the home.
    pub fn agent_number(&self, agent: Agent, line: Line) -> usize {
        let home = line as usize % usize::from(self.homes);
        match agent {
            HOME => usize::from(self.groups.caches()) + home,
            remote => remote.index(),
        }
    }

    /// Returns the name of an agent.
    pub fn agent_name(&self, agent: Agent) -> &str {
        &self.names.agents[self.agent_number(agent, 0)]
    }

    /// Iterates over the names of the messages, in the order of the protocol file.
    pub fn message_names(&self) -> impl Iterator<Item = String> + '_ {
        (self.protocol_messages.iter()).map(|message| message.name.clone())
    }

    /// Formats a message with its fields.
    pub fn message_text(&self, message: &Message) -> String {
        let kind = &self.protocol_messages[message.kind.index()];
        self.names.values.message(kind, &message.fields)
    }
}
