//! Accesses over the device bus: threads access device registers, the application accesses the CPU's own memory.

use cohkit_application::interface::{Event, Step, Words};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::components::bus::{Bus, TransferDirection};
use crate::explain::FailureKind;
use crate::kernel::Time;
use crate::simulation::{Event as KernelEvent, Simulation};

/// Bytes of a word.
const WORD: u64 = 8;

/// The CPU's own memory as seen by threads and by transfers of the device, and the bus between them.
pub(crate) struct Host {
    bus: Bus,
    /// Words that are not zero.
    memory: FxHashMap<u32, u64>,
    /// Words that a core has read since the last other activity. Reading one of them again is polling, not progress.
    read: FxHashSet<(u16, u32)>,
    /// Transfers in flight to memory, by number.
    transfers: FxHashMap<u32, Transfer>,
    numbers: u32,
}

#[derive(Debug)]
pub(crate) enum Transfer {
    Fetch { tag: u32, first: u32, words: u32 },
    Store { first: u32, words: Words },
    Interrupt { thread: u32 },
}

impl Host {
    /// Creates a zeroed memory behind an idle bus.
    pub fn new(bus: Bus) -> Host {
        Host {
            bus,
            memory: FxHashMap::default(),
            read: FxHashSet::default(),
            transfers: FxHashMap::default(),
            numbers: 0,
        }
    }

    /// True if no transfer is in flight.
    pub fn done(&self) -> bool {
        self.transfers.is_empty()
    }

    fn word(&self, word: u32) -> u64 {
        self.memory.get(&word).copied().unwrap_or(0)
    }
}

impl Simulation {
    /// Returns the host side of the bus. Fails the run if the machine has no bus.
    fn host(&mut self) -> Option<&mut Host> {
        let has = self.behind.as_ref().is_some_and(|b| b.host.is_some());
        if !has {
            let name = &self.platform.name;
            let text = format!("no device bus (table `[bus]`) in {name}");
            self.fail(FailureKind::Contract, 0, text);
        }
        self.behind.as_mut()?.host.as_mut()
    }

    /// Executes a thread's step on a register or on the CPU's own memory.
    pub(crate) fn host_step(&mut self, core: u16) {
        let now = self.now;
        let number = usize::from(core);
        let Some(step) = self.behind.as_ref().map(|b| b.threads[number].step) else {
            return;
        };
        if self.issue_host_access(core, step) {
            return;
        }
        let Some(host) = self.host() else {
            return;
        };
        // Polling does not count as progress.
        let on = match step {
            Step::LoadHost { word } => host.read.insert((core, word)),
            _ => {
                host.read.clear();
                true
            }
        };
        if on {
            self.expect(now);
        }
        let Some(host) = self.host() else {
            return;
        };
        match step {
            Step::ReadRegister { register } => {
                let at = host.bus.carry(TransferDirection::Down, now, 0);
                let thread = core.into();
                self.tell(at, Event::RegisterRead { register, thread });
                if let Some(behind) = &mut self.behind {
                    behind.threads[number].reads = Some(now);
                }
            }
            Step::WriteRegister { register, value } => {
                let at = host.bus.carry(TransferDirection::Down, now, WORD);
                self.tell(at, Event::RegisterWritten { register, value });
                self.thread(core, now);
            }
            Step::LoadHost { word } => {
                let value = host.word(word);
                self.give(core, value);
                self.thread(core, now + self.groups.of_core(core).hit);
            }
            Step::StoreHost { word, value } => {
                host.memory.insert(word, value);
                self.thread(core, now);
            }
            _ => {}
        }
    }

    /// Returns the value of a register to the thread that reads it.
    pub(crate) fn reply(&mut self, thread: u32, value: u64) {
        let now = self.now;
        let core = thread as u16;
        let Some(host) = self.host() else {
            return;
        };
        let at = host.bus.carry(TransferDirection::Up, now, WORD);
        self.give(core, value);
        if let Some(behind) = &mut self.behind {
            behind.threads[usize::from(core)].reads = None;
        }
        self.expect(at);
        self.queue.push(at, KernelEvent::Thread(core));
    }

    /// Starts a read of the CPU's own memory by the application.
    pub(crate) fn host_fetch(&mut self, tag: u32, first: u32, words: u32) {
        if first.checked_add(words).is_none() {
            let text = format!("{words} words from {first} on exceed the CPU's own memory");
            return self.fail(FailureKind::Contract, 0, text);
        }
        let now = self.now;
        let Some(host) = self.host() else {
            return;
        };
        let mut at = host.bus.carry(TransferDirection::Up, now, 0);
        if self.behind.as_ref().is_some_and(|b| b.beyond.is_none()) {
            at += self.host().map_or(0, |host| host.bus.memory());
        }
        self.transfer(at, Transfer::Fetch { tag, first, words });
    }

    /// Starts a write of the CPU's own memory by the application.
    pub(crate) fn host_store(&mut self, first: u32, words: Words) {
        let now = self.now;
        let Some(host) = self.host() else {
            return;
        };
        let at = host
            .bus
            .carry(TransferDirection::Up, now, WORD * words.len() as u64);
        self.transfer(at, Transfer::Store { first, words });
    }

    /// Starts an interrupt of a thread by the application.
    pub(crate) fn interrupt(&mut self, thread: u32) {
        let now = self.now;
        let Some(host) = self.host() else {
            return;
        };
        let at = host.bus.carry(TransferDirection::Up, now, WORD);
        self.transfer(at, Transfer::Interrupt { thread });
    }

    /// Delivers an interrupt to a thread.
    pub(crate) fn interrupted(&mut self, thread: u32) {
        let at = self.now + self.host().map_or(0, |host| host.bus.interrupt());
        self.expect(at);
        let Some(behind) = &mut self.behind else {
            return;
        };
        let threads = behind.threads.len();
        let Some(running) = behind.threads.get_mut(thread as usize) else {
            let name = behind.name();
            let text = format!("{name} interrupts thread {thread}, and there are {threads}");
            return self.fail(FailureKind::Contract, 0, text);
        };
        match std::mem::take(&mut running.waits) {
            true => self.queue.push(at, KernelEvent::Thread(thread as u16)),
            false => running.interrupted = Some(at),
        }
    }

    /// Returns data that the application has read over the bus.
    pub(crate) fn fetched(&mut self, tag: u32, words: Words, at: Time) {
        let Some(host) = self.host() else {
            return;
        };
        let at = host
            .bus
            .carry(TransferDirection::Down, at, WORD * words.len() as u64);
        self.tell(at, Event::HostFetched { tag, words });
    }

    fn transfer(&mut self, at: Time, transfer: Transfer) {
        let Some(host) = self.host() else {
            return;
        };
        let number = host.numbers;
        host.numbers = number.wrapping_add(1);
        host.transfers.insert(number, transfer);
        self.expect(at);
        self.queue.push(at, KernelEvent::Transfer(number));
    }

    /// Completes a transfer at the CPU's own memory.
    pub(crate) fn transferred(&mut self, number: u32) {
        let now = self.now;
        self.expect(now);
        let Some(host) = self.host() else {
            return;
        };
        host.read.clear();
        let transfer = host.transfers.remove(&number);
        let beyond = self.behind.as_mut().and_then(|b| b.beyond.as_mut());
        if let Some(beyond) = beyond {
            beyond.transfers.extend(transfer);
            return self.start_bus_transfers();
        }
        let Some(host) = self.host() else {
            return;
        };
        match transfer {
            Some(Transfer::Fetch { tag, first, words }) => {
                let words: Words = (first..first + words).map(|word| host.word(word)).collect();
                self.fetched(tag, words, now);
            }
            Some(Transfer::Interrupt { thread }) => self.interrupted(thread),
            Some(Transfer::Store { first, words }) => {
                for (word, &value) in (first..).zip(&words[..]) {
                    host.memory.insert(word, value);
                }
            }
            None => {}
        }
    }
}
