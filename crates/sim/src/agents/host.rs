//! Accesses over the device bus: threads access device registers, the application accesses the CPU's own memory.

use cohkit_application::interface::{Event, Step, Words};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::components::bus::{Bus, TransferDirection};
use crate::explain::FailureKind;
use crate::kernel::Time;
use crate::simulation::{Event as KernelEvent, Simulation};

/// Bytes of a word.
const WORD_BYTES: u64 = 8;

/// The CPU's own memory as seen by threads and by transfers of the device, and the bus between them.
pub(crate) struct Host {
    bus: Bus,
    /// Words that are not zero.
    memory: FxHashMap<u32, u64>,
    /// Words that a core has read since the last other activity. Reading one of them again is polling, not progress.
    polled_words: FxHashSet<(u16, u32)>,
    /// Transfers in flight to memory, by number.
    transfers: FxHashMap<u32, Transfer>,
    next_number: u32,
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
            polled_words: FxHashSet::default(),
            transfers: FxHashMap::default(),
            next_number: 0,
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
        let has_bus = self
            .application
            .as_ref()
            .is_some_and(|run| run.host.is_some());
        if !has_bus {
            let name = &self.tables.platform.name;
            let text = format!("no device bus (table `[bus]`) in {name}");
            self.fail(FailureKind::Contract, 0, text);
        }
        self.application.as_mut()?.host.as_mut()
    }

    /// Executes a thread's step on a register or on the CPU's own memory.
    pub(crate) fn execute_host_step(&mut self, core: u16) {
        let now = self.local.now;
        let thread_index = usize::from(core);
        let Some(step) = self
            .application
            .as_ref()
            .map(|run| run.threads[thread_index].step)
        else {
            return;
        };
        if self.issue_host_access(core, step) {
            return;
        }
        let Some(host) = self.host() else {
            return;
        };
        // Polling does not count as progress.
        let is_progress = match step {
            Step::LoadHost { word } => host.polled_words.insert((core, word)),
            _ => {
                host.polled_words.clear();
                true
            }
        };
        if is_progress {
            self.postpone_watchdog(now);
        }
        let Some(host) = self.host() else {
            return;
        };
        match step {
            Step::ReadRegister { register } => {
                let arrival = host.bus.carry(TransferDirection::Down, now, 0);
                let thread = core.into();
                self.schedule_application_event(arrival, Event::RegisterRead { register, thread });
                if let Some(application) = &mut self.application {
                    application.threads[thread_index].reading_since = Some(now);
                }
            }
            Step::WriteRegister { register, value } => {
                let arrival = host.bus.carry(TransferDirection::Down, now, WORD_BYTES);
                self.schedule_application_event(
                    arrival,
                    Event::RegisterWritten { register, value },
                );
                self.continue_thread(core, now);
            }
            Step::LoadHost { word } => {
                let value = host.word(word);
                self.set_thread_result(core, value);
                self.continue_thread(core, now + self.groups.of_core(core).hit);
            }
            Step::StoreHost { word, value } => {
                host.memory.insert(word, value);
                self.continue_thread(core, now);
            }
            _ => {}
        }
    }

    /// Returns the value of a register to the thread that reads it.
    pub(crate) fn reply_to_thread(&mut self, thread: u32, value: u64) {
        let now = self.local.now;
        let core = thread as u16;
        let Some(host) = self.host() else {
            return;
        };
        let arrival = host.bus.carry(TransferDirection::Up, now, WORD_BYTES);
        self.set_thread_result(core, value);
        if let Some(application) = &mut self.application {
            application.threads[usize::from(core)].reading_since = None;
        }
        self.postpone_watchdog(arrival);
        self.local.queue.push(arrival, KernelEvent::Thread(core));
    }

    /// Starts a read of the CPU's own memory by the application.
    pub(crate) fn host_fetch(&mut self, tag: u32, first: u32, words: u32) {
        if first.checked_add(words).is_none() {
            let text = format!("{words} words from {first} on exceed the CPU's own memory");
            return self.fail(FailureKind::Contract, 0, text);
        }
        let now = self.local.now;
        let Some(host) = self.host() else {
            return;
        };
        let mut arrival = host.bus.carry(TransferDirection::Up, now, 0);
        if self
            .application
            .as_ref()
            .is_some_and(|run| run.host_path.is_none())
        {
            arrival += self.host().map_or(0, |host| host.bus.memory_latency());
        }
        self.schedule_transfer(arrival, Transfer::Fetch { tag, first, words });
    }

    /// Starts a write of the CPU's own memory by the application.
    pub(crate) fn host_store(&mut self, first: u32, words: Words) {
        let now = self.local.now;
        let Some(host) = self.host() else {
            return;
        };
        let arrival = host
            .bus
            .carry(TransferDirection::Up, now, WORD_BYTES * words.len() as u64);
        self.schedule_transfer(arrival, Transfer::Store { first, words });
    }

    /// Starts an interrupt of a thread by the application.
    pub(crate) fn start_interrupt(&mut self, thread: u32) {
        let now = self.local.now;
        let Some(host) = self.host() else {
            return;
        };
        let arrival = host.bus.carry(TransferDirection::Up, now, WORD_BYTES);
        self.schedule_transfer(arrival, Transfer::Interrupt { thread });
    }

    /// Delivers an interrupt to a thread.
    pub(crate) fn deliver_interrupt(&mut self, thread: u32) {
        let delivery = self.local.now + self.host().map_or(0, |host| host.bus.interrupt_latency());
        self.postpone_watchdog(delivery);
        let Some(application) = &mut self.application else {
            return;
        };
        let threads = application.threads.len();
        let Some(thread_state) = application.threads.get_mut(thread as usize) else {
            let name = application.name();
            let text = format!("{name} interrupts thread {thread}, and there are {threads}");
            return self.fail(FailureKind::Contract, 0, text);
        };
        match std::mem::take(&mut thread_state.awaits_interrupt) {
            true => self
                .local
                .queue
                .push(delivery, KernelEvent::Thread(thread as u16)),
            false => thread_state.pending_interrupt = Some(delivery),
        }
    }

    /// Returns data that the application has read over the bus.
    pub(crate) fn return_fetched_words(&mut self, tag: u32, words: Words, ready: Time) {
        let Some(host) = self.host() else {
            return;
        };
        let arrival = host.bus.carry(
            TransferDirection::Down,
            ready,
            WORD_BYTES * words.len() as u64,
        );
        self.schedule_application_event(arrival, Event::HostFetched { tag, words });
    }

    fn schedule_transfer(&mut self, arrival: Time, transfer: Transfer) {
        let Some(host) = self.host() else {
            return;
        };
        let number = host.next_number;
        host.next_number = number.wrapping_add(1);
        host.transfers.insert(number, transfer);
        self.postpone_watchdog(arrival);
        self.local
            .queue
            .push(arrival, KernelEvent::Transfer(number));
    }

    /// Completes a transfer at the CPU's own memory.
    pub(crate) fn complete_transfer(&mut self, number: u32) {
        let now = self.local.now;
        self.postpone_watchdog(now);
        let Some(host) = self.host() else {
            return;
        };
        host.polled_words.clear();
        let transfer = host.transfers.remove(&number);
        let host_path = self
            .application
            .as_mut()
            .and_then(|run| run.host_path.as_mut());
        if let Some(host_path) = host_path {
            host_path.transfers.extend(transfer);
            return self.start_bus_transfers();
        }
        let Some(host) = self.host() else {
            return;
        };
        match transfer {
            Some(Transfer::Fetch { tag, first, words }) => {
                let words: Words = (first..first + words).map(|word| host.word(word)).collect();
                self.return_fetched_words(tag, words, now);
            }
            Some(Transfer::Interrupt { thread }) => self.deliver_interrupt(thread),
            Some(Transfer::Store { first, words }) => {
                for (word, &value) in (first..).zip(&words[..]) {
                    host.memory.insert(word, value);
                }
            }
            None => {}
        }
    }
}
