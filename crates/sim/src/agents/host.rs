//! Accesses over the device bus: threads access device registers, the application accesses the CPU's own memory.

pub(crate) mod memory_path;

use cohkit_application::interface::{Action, Event, Step, Words};
use rustc_hash::{FxHashMap, FxHashSet};

use super::application_events::ApplicationEvents;
use super::frontend::Frontend;
use crate::components::bus::{Bus, TransferDirection};
use crate::explain::FailureKind;
use crate::kernel::Time;
use crate::message::CoreId;
use crate::platform::Platform;
use crate::simulation::{Context, Event as KernelEvent};
use memory_path::HostMemoryPath;

/// Bytes of a word.
const WORD_BYTES: u64 = 8;

/// The CPU's own memory as seen by threads and by transfers of the device, and the bus between them.
pub(crate) struct Host {
    /// The bus, if the machine has one.
    bus: Option<Bus>,
    /// Words of the CPU's own memory, by index. Absent ones are zero.
    memory: FxHashMap<u32, u64>,
    /// Words that a core has read since the last other activity. Reading one of them again is polling, not progress.
    polled_words: FxHashSet<(CoreId, u32)>,
    /// Transfers in flight to memory, by number.
    transfers: FxHashMap<u32, Transfer>,
    /// Number of the next transfer.
    next_number: u32,
    /// Path to the host's memory if that memory is a separate space.
    pub path: Option<HostMemoryPath>,
}

/// Parts of the machine that the host uses in one event.
pub(crate) struct HostEnvironment<'e, 'c> {
    /// State of the run that all components use.
    pub context: &'e mut Context<'c>,
    /// Threads.
    pub frontend: &'e mut Frontend,
    /// Events on their way to the application.
    pub events: &'e mut ApplicationEvents,
}

impl HostEnvironment<'_, '_> {
    /// Records since when a thread waits for a register or for the host's memory.
    pub fn set_reading_since(&mut self, core: CoreId, since: Option<Time>) {
        if let Some(threads) = &mut self.frontend.threads {
            threads.states[core.index()].reading_since = since;
        }
    }

    /// Continues a core's thread at a time that is not in the past.
    fn continue_thread(&mut self, core: CoreId, time: Time) {
        self.frontend.continue_thread(self.context, core, time);
    }

    /// Schedules the delivery of an event to the application.
    pub fn schedule_event(&mut self, delivery: Time, event: Event) {
        self.events.schedule(self.context, delivery, event);
    }
}

/// Transfer of the application over the bus. Word indices count 8-byte words of the CPU's own memory.
#[derive(Debug)]
pub(crate) enum Transfer {
    /// Read of `words` words from `first` on. `tag` is returned with them.
    Fetch { tag: u32, first: u32, words: u32 },
    /// Write of words from `first` on.
    Store { first: u32, words: Words },
    /// Interrupt of a thread.
    Interrupt { thread: u32 },
}

impl Host {
    /// Creates a zeroed memory behind an idle bus.
    pub fn new(platform: &Platform) -> Host {
        Host {
            bus: platform.bus.as_ref().map(Bus::new),
            memory: FxHashMap::default(),
            polled_words: FxHashSet::default(),
            transfers: FxHashMap::default(),
            next_number: 0,
            path: None,
        }
    }

    /// True if no transfer is in flight.
    pub fn is_done(&self) -> bool {
        self.transfers.is_empty()
    }

    /// Returns a word of the CPU's own memory.
    fn word(&self, word: u32) -> u64 {
        self.memory.get(&word).copied().unwrap_or(0)
    }

    /// Returns the bus. Fails the run if the machine has none.
    fn bus(&mut self, context: &mut Context) -> Option<&mut Bus> {
        if self.bus.is_none() {
            let name = &context.tables.platform.name;
            let text = format!("no device bus (table `[bus]`) in {name}");
            context.fail(FailureKind::Contract, 0, text);
        }
        self.bus.as_mut()
    }

    /// Carries `bytes` over the bus from `ready` on. Returns the arrival time in picoseconds; `None` if the machine
    /// has no bus, which fails the run.
    fn carry(
        &mut self,
        context: &mut Context,
        direction: TransferDirection,
        ready: Time,
        bytes: u64,
    ) -> Option<Time> {
        Some(self.bus(context)?.carry(direction, ready, bytes))
    }

    /// Executes a thread's step on a register or on the CPU's own memory.
    pub fn execute_step(&mut self, env: &mut HostEnvironment, core: CoreId) {
        let now = env.context.now();
        let threads = env.frontend.threads.as_ref();
        let Some(step) = threads.map(|threads| threads.states[core.index()].step) else {
            return;
        };
        if self.path.is_some() {
            if let Step::LoadHost { .. } | Step::StoreHost { .. } = step {
                return self.issue_thread_access(env, core, step);
            }
        }
        if self.bus(env.context).is_none() {
            return;
        }
        // Polling does not count as progress.
        let is_progress = match step {
            Step::LoadHost { word } => self.polled_words.insert((core, word)),
            _ => {
                self.polled_words.clear();
                true
            }
        };
        if is_progress {
            env.context.tally.postpone_watchdog(now);
        }
        match step {
            Step::ReadRegister { register } => {
                if let Some(arrival) = self.carry(env.context, TransferDirection::Down, now, 0) {
                    let thread = core.0.into();
                    env.schedule_event(arrival, Event::RegisterRead { register, thread });
                    env.set_reading_since(core, Some(now));
                }
            }
            Step::WriteRegister { register, value } => {
                let direction = TransferDirection::Down;
                if let Some(arrival) = self.carry(env.context, direction, now, WORD_BYTES) {
                    env.schedule_event(arrival, Event::RegisterWrite { register, value });
                    env.continue_thread(core, now);
                }
            }
            Step::LoadHost { word } => {
                let value = self.word(word);
                env.frontend.set_thread_result(core, value);
                let hit = env.context.tables.groups.of_core(core).hit;
                env.continue_thread(core, now + hit);
            }
            Step::StoreHost { word, value } => {
                self.memory.insert(word, value);
                env.continue_thread(core, now);
            }
            _ => {}
        }
    }

    /// Carries out an action of the application on the CPU's own memory, its threads, or the host's memory.
    pub fn execute_action(&mut self, env: &mut HostEnvironment, action: Action) {
        match action {
            Action::Reply { thread, value } => self.reply_to_thread(env, thread, value),
            Action::HostFetch { tag, first, words } => self.fetch(env, tag, first, words),
            Action::HostStore { first, words } => {
                let bytes = WORD_BYTES * words.len() as u64;
                self.send(env, bytes, Transfer::Store { first, words });
            }
            Action::Interrupt { thread } => {
                self.send(env, WORD_BYTES, Transfer::Interrupt { thread })
            }
            action => self.issue_application_access(env, action),
        }
    }

    /// Returns the value of a register to the thread that reads it.
    fn reply_to_thread(&mut self, env: &mut HostEnvironment, thread: u32, value: u64) {
        let (now, core) = (env.context.now(), CoreId(thread as u16));
        let direction = TransferDirection::Up;
        let Some(arrival) = self.carry(env.context, direction, now, WORD_BYTES) else {
            return;
        };
        env.frontend.set_thread_result(core, value);
        env.set_reading_since(core, None);
        env.context.tally.postpone_watchdog(arrival);
        env.context.schedule(arrival, KernelEvent::Thread(core));
    }

    /// Starts a read of the CPU's own memory by the application.
    fn fetch(&mut self, env: &mut HostEnvironment, tag: u32, first: u32, words: u32) {
        if first.checked_add(words).is_none() {
            let text = format!("{words} words from {first} on exceed the CPU's own memory");
            return env.context.fail(FailureKind::Contract, 0, text);
        }
        let (now, has_path) = (env.context.now(), self.path.is_some());
        let Some(bus) = self.bus(env.context) else {
            return;
        };
        let mut arrival = bus.carry(TransferDirection::Up, now, 0);
        if !has_path {
            arrival += bus.memory_latency();
        }
        self.schedule_transfer(env, arrival, Transfer::Fetch { tag, first, words });
    }

    /// Sends a transfer of the application to the CPU's own memory.
    fn send(&mut self, env: &mut HostEnvironment, bytes: u64, transfer: Transfer) {
        let now = env.context.now();
        if let Some(arrival) = self.carry(env.context, TransferDirection::Up, now, bytes) {
            self.schedule_transfer(env, arrival, transfer);
        }
    }

    /// Schedules the arrival of a transfer at the CPU's own memory, at `arrival` in picoseconds.
    fn schedule_transfer(&mut self, env: &mut HostEnvironment, arrival: Time, transfer: Transfer) {
        let number = self.next_number;
        self.next_number = number.wrapping_add(1);
        self.transfers.insert(number, transfer);
        env.context.tally.postpone_watchdog(arrival);
        env.context.schedule(arrival, KernelEvent::Transfer(number));
    }

    /// Delivers an interrupt to a thread.
    pub fn deliver_interrupt(&mut self, env: &mut HostEnvironment, thread: u32) {
        let latency = self
            .bus(env.context)
            .map_or(0, |bus| bus.interrupt_latency());
        let delivery = env.context.now() + latency;
        env.context.tally.postpone_watchdog(delivery);
        let Some(threads) = &mut env.frontend.threads else {
            return;
        };
        let count = threads.states.len();
        let Some(state) = threads.states.get_mut(thread as usize) else {
            let name = &threads.scenario.name;
            let text = format!("{name} interrupts thread {thread}, and there are {count}");
            return env.context.fail(FailureKind::Contract, 0, text);
        };
        match std::mem::take(&mut state.awaits_interrupt) {
            true => (env.context).schedule(delivery, KernelEvent::Thread(CoreId(thread as u16))),
            false => state.pending_interrupt = Some(delivery),
        }
    }

    /// Returns data that the application has read over the bus.
    pub fn return_fetched_words(
        &mut self,
        env: &mut HostEnvironment,
        tag: u32,
        words: Words,
        ready: Time,
    ) {
        let bytes = WORD_BYTES * words.len() as u64;
        let direction = TransferDirection::Down;
        if let Some(arrival) = self.carry(env.context, direction, ready, bytes) {
            env.schedule_event(arrival, Event::HostFetchCompletion { tag, words });
        }
    }

    /// Completes a transfer at the CPU's own memory.
    pub fn complete_transfer(&mut self, env: &mut HostEnvironment, number: u32) {
        let now = env.context.now();
        env.context.tally.postpone_watchdog(now);
        if self.bus(env.context).is_none() {
            return;
        }
        self.polled_words.clear();
        let transfer = self.transfers.remove(&number);
        if let Some(path) = &mut self.path {
            path.transfers.extend(transfer);
            return self.start_bus_transfers(env);
        }
        match transfer {
            Some(Transfer::Fetch { tag, first, words }) => {
                let words: Words = (first..first + words).map(|word| self.word(word)).collect();
                self.return_fetched_words(env, tag, words, now);
            }
            Some(Transfer::Interrupt { thread }) => self.deliver_interrupt(env, thread),
            Some(Transfer::Store { first, words }) => {
                for (word, &value) in (first..).zip(&words[..]) {
                    self.memory.insert(word, value);
                }
            }
            None => {}
        }
    }
}
