//! Tables of a run that do not change after its construction.

use cohkit_units::Quantity;
use std::cell::OnceCell;

use cohkit_protocol::value_text::AgentNames;

use super::*;

/// Delays of the machine, in picoseconds.
pub(crate) struct Times {
    /// Occupancy of a unit by an event, and latency to what the event sends.
    pub occupancy: Time,
    pub latency: Time,
    /// Occupancy and latency of a unit for the completion of a memory operation.
    pub resume_occupancy: Time,
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
    pub progress_timeout: Time,
}

impl Times {
    fn new(platform: &Platform, clocked: bool) -> Times {
        let home = &platform.home;
        // A clocked home models its own delays, up to its ports.
        let home_delay = |quantity: &Quantity| if clocked { 0 } else { quantity.value };
        let path = home_delay(&home.memory_path);
        let local = home_delay(&home.local_path);
        Times {
            occupancy: home.occupancy.value,
            latency: home_delay(&home.latency),
            resume_occupancy: (home.resume_occupancy.as_ref())
                .unwrap_or(&home.occupancy)
                .value,
            resume: home_delay(home.resume.as_ref().unwrap_or(&home.latency)),
            switch: platform.switch.as_ref().map_or(0, |s| s.latency.value),
            path: (path / 2, path - path / 2),
            local: (local / 2, local - local / 2),
            local_interval: home_delay(&home.local_interval),
            issue: home.issue.as_ref().map_or(0, |issue| issue.value),
            timeout: platform.cores.timeout.value,
            progress_timeout: platform.patience.value,
        }
    }
}

/// Constant properties of the machine and its protocol.
pub(crate) struct Tables {
    pub times: Times,
    pub kinds: Vec<Kind>,
    /// Messages of the protocol, in the order of the protocol file.
    pub protocol_messages: Vec<protocol::Message>,
    /// Names of the agents, computed on first use.
    pub agent_names: OnceCell<AgentNames>,
    /// True if the protocol declares which messages are responses to forwards. Then the end of a coherence transaction
    /// can be detected.
    pub declares_responses: bool,
    /// Bounds on messages in flight that the protocol file declares.
    pub bounds: Bounds,
    pub platform: Platform,
    pub line_bytes: u32,
    /// Number of homes in the protocol file.
    pub homes: u16,
    /// True if memory is prefetched for upcoming events.
    pub prefetches_events: bool,
}

impl Tables {
    /// Creates the tables of a setup. `in_flight` is the maximum number of outstanding accesses of cores.
    pub fn new(setup: &Setup, kinds: Vec<Kind>, in_flight: u64) -> Tables {
        let protocol = &setup.protocol;
        Tables {
            times: Times::new(&setup.platform, setup.clocked.is_some()),
            declares_responses: kinds.iter().any(|kind| kind.class == Some(Class::Answer)),
            kinds,
            protocol_messages: protocol.messages.clone(),
            agent_names: OnceCell::new(),
            bounds: protocol.bounds.clone(),
            platform: setup.platform.clone(),
            line_bytes: protocol.line_bytes,
            homes: protocol.homes,
            prefetches_events: Simulation::is_prefetch_worthwhile(in_flight),
        }
    }
}
