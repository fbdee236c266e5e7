//! Positions of cores in the sources of their programs, as text: where each core is, and what it polls.

use super::channel_programs::ChannelProgram;
use crate::guest_program::GuestProgram;
use cohkit_nearmemory::device::{State, FIFOS, FIFO_STRIDE};
use cohkit_nearmemory::{controller, host, CoreId, Machine, Poll, Race, RaceKind, Site, LINE};

/// Exit code of a channel program that the host has stopped.
const STOPPED_BY_HOST: u64 = u64::MAX;

/// Bytes of the shared registers at the begin of each near-memory core's registers; control registers follow.
const SHARED_REGISTER_BYTES: u64 = 0x800;

/// A machine with the programs that run on it.
#[derive(Clone, Copy)]
pub(super) struct RunningPrograms<'a> {
    pub(super) machine: &'a Machine,
    /// Program of the hosts.
    pub(super) host: GuestProgram<'a>,
    /// Channel programs that the host program can start.
    pub(super) channels: &'a [ChannelProgram],
}

impl RunningPrograms<'_> {
    /// Positions of all running programs, one per line.
    pub(super) fn describe_positions(self) -> String {
        let sites = self.machine.sites().into_iter();
        let positions = sites.map(|site| self.describe_site(site, "is at"));
        positions.collect::<Vec<_>>().join("\n")
    }

    /// Loops of all cores in a livelock, and the programs that have ended, one per line.
    pub(super) fn describe_livelock(self, polls: &[Poll]) -> String {
        let polls = polls.iter().map(|poll| self.describe_poll(poll));
        let lines: Vec<String> = polls.chain(self.describe_ended_programs()).collect();
        lines.join("\n")
    }

    /// Description of a core's endless loop: the address that it polls, if any, and its position.
    fn describe_poll(self, poll: &Poll) -> String {
        let action = match poll.address {
            Some(address) => format!("polls {}, at", describe_polled(poll.core_id, address)),
            None => "is at".to_string(),
        };
        let Poll { core_id, pc, .. } = *poll;
        self.describe_site(Site { core_id, pc }, &action)
    }

    /// Programs that have ended on near-memory cores, with the reason and the position.
    fn describe_ended_programs(self) -> Vec<String> {
        let programs = self.machine.ended_programs().into_iter();
        let descriptions = programs.map(|(site, state, exit_code)| {
            let action = match state {
                State::Stopped => "was stopped by a fault, at".to_string(),
                _ if exit_code == STOPPED_BY_HOST => "was stopped by the host, at".to_string(),
                _ => format!("has ended with {exit_code}, at"),
            };
            self.describe_site(site, &action)
        });
        descriptions.collect()
    }

    /// Description of a race with the positions of both accesses.
    pub(super) fn describe_race(self, race: &Race) -> String {
        let RaceText {
            line,
            second,
            first,
        } = race_text(race);
        let describe = |site, action| self.describe_site(site, &format!("{action}, at"));
        format!(
            "race: the line at {:#x} {line}\n{}\n{}",
            race.line,
            describe(race.second, second),
            describe(race.first, first)
        )
    }

    /// Sentence with a core, its program, `action` as the predicate, and the core's position.
    fn describe_site(self, site: Site, action: &str) -> String {
        match site.core_id {
            CoreId::Host { host, core } => {
                let position = self.host.describe_position(site.pc, "");
                let name = match self.machine.host_count() {
                    1 => format!("the host's core {core}"),
                    _ => format!("core {core} of host {host}"),
                };
                format!("{name} {action} {position}")
            }
            CoreId::Mcc(mcc) => {
                let name = self.machine.binary_name(mcc);
                let mut channels = self.channels.iter();
                let channel = channels.find(|channel| Some(channel.name.as_str()) == name);
                let position = channel
                    .and_then(|channel| {
                        channel.with_parsed(|program| program.describe_position(site.pc, ""))
                    })
                    .unwrap_or_else(|| format!("{:#x}", site.pc));
                let name = name.map_or_else(String::new, |name| format!(" of `{name}`"));
                format!("core {mcc}{name} {action} {position}")
            }
        }
    }
}

/// Name of the memory or register that a core polls at an address.
fn describe_polled(core_id: CoreId, address: u64) -> String {
    match core_id {
        CoreId::Host { .. } => describe_polled_by_host(address),
        CoreId::Mcc(_) => describe_polled_by_mcc(address),
    }
}

/// Name of the memory or register at an address of the host. The ranges are tested from the highest down.
fn describe_polled_by_host(address: u64) -> String {
    use host::{REGISTERS, REGISTERS_STRIDE, SCRATCHPADS, SCRATCHPAD_STRIDE};
    if address >= REGISTERS {
        let core = (address - REGISTERS) / REGISTERS_STRIDE;
        let offset = address % REGISTERS_STRIDE;
        match offset < SHARED_REGISTER_BYTES {
            true => format!("register {} shared with core {core}", offset / 8),
            false => format!("a control register of core {core}"),
        }
    } else if address >= SCRATCHPADS {
        let core = (address - SCRATCHPADS) / SCRATCHPAD_STRIDE;
        let line = address % SCRATCHPAD_STRIDE / LINE as u64;
        format!("line {line} of the scratchpad of core {core}")
    } else {
        format!("{address:#x}")
    }
}

/// Name of the memory or register at an address of a near-memory core. The ranges are tested from the highest down.
fn describe_polled_by_mcc(address: u64) -> String {
    use controller::{REGISTERS, SCRATCHPAD, SHARED, STAMPS};
    match address {
        STAMPS.. => format!(
            "the stamps of line {} of its scratchpad",
            (address - STAMPS) / 16
        ),
        FIFOS.. => format!("the FIFO from core {}", (address - FIFOS) / FIFO_STRIDE),
        SHARED.. => format!("register {} shared with the host", (address - SHARED) / 8),
        REGISTERS.. => "its notices".to_string(),
        SCRATCHPAD.. => format!(
            "line {} of its scratchpad",
            (address - SCRATCHPAD) / LINE as u64
        ),
        _ => format!("{address:#x}"),
    }
}

/// Predicates of a race's sentences.
struct RaceText {
    /// State of the line.
    line: &'static str,
    /// Action of the core with the later access, at which the race was detected.
    second: &'static str,
    /// Action of the core with the earlier access.
    first: &'static str,
}

/// Text of a race.
fn race_text(race: &Race) -> RaceText {
    let is_host = |site: Site| matches!(site.core_id, CoreId::Host { .. });
    let is_host_access = is_host(race.second);
    match race.kind {
        RaceKind::StaleFetch if is_host_access => RaceText {
            line: "is loaded before a store to it is guaranteed to have reached far memory",
            second: "loads it",
            first: "stored in it",
        },
        RaceKind::BothWrite if is_host_access && is_host(race.first) => RaceText {
            line: "is written by two hosts",
            second: "writes it",
            first: "has written it",
        },
        RaceKind::StaleLoad => RaceText {
            line: "is stale when it is loaded",
            second: "loads it",
            first: "wrote it",
        },
        RaceKind::StaleFetch => RaceText {
            line: "is fetched before a store to it is guaranteed to have reached far memory",
            second: "fetches it",
            first: "stored in it",
        },
        RaceKind::Overwritten => RaceText {
            line: "is written back and overwrites newer data",
            second: "stored in a line that was stale",
            first: "wrote the newer data",
        },
        RaceKind::BothWrite => RaceText {
            line: "is written by both sides",
            second: "writes it",
            first: "has written it",
        },
        RaceKind::NotStored => RaceText {
            line: "is loaded before its store is guaranteed to have reached far memory",
            second: "loads it",
            first: "stores it",
        },
        RaceKind::NotFetched => RaceText {
            line: "is the destination of a fetch and is used before the fetch is guaranteed to be complete",
            second: "uses it",
            first: "fetches it",
        },
        RaceKind::Reused => RaceText {
            line: "is the source of a store and is changed before the store is guaranteed to have reached far memory",
            second: "changes it",
            first: "stores it",
        },
        RaceKind::UnorderedStores => RaceText {
            line: "is stored by two programs without synchronisation",
            second: "stores it",
            first: "stored it",
        },
        RaceKind::UnorderedRead => RaceText {
            line: "is read by one program and stored by another without synchronisation",
            second: "accesses it",
            first: "accessed it",
        },
        RaceKind::HalfWritten => RaceText {
            line: "may be loaded half-written: a cache may evict it between two stores",
            second: "loads it",
            first: "stores this word after others of the line",
        },
    }
}
