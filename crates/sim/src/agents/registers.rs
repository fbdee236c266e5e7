//! Registers of agents. Each agent has one set for all its lines; a row reads and writes it at once.
//!
//! An item that waits because of a register is retried when any row of its agent has changed a register.

use crate::agents::program::{ConfigurationId, Input, Program, Transition};
use crate::message::{Agent, Line, HOME};
use crate::simulation::{Event as KernelEvent, Simulation};
use cohkit_protocol::execute::Receiver;
use cohkit_protocol::protocol::MessageId;

/// The registers of all agents of a machine; empty if the protocol has none.
#[derive(Default)]
pub(crate) struct Registers {
    caches: Vec<Vec<u16>>,
    homes: Vec<Vec<u16>>,
    /// For each agent, true if an event that retries its waiting items is scheduled. Also used by agents that wait for
    /// room in input queues.
    retry_scheduled: Vec<bool>,
}

impl Registers {
    /// Creates the initial registers of all caching agents and homes. `has_bounded_queues` is true if agents may wait
    /// for room in input queues.
    pub fn new(
        remote: &Program,
        home: &Program,
        caches: u16,
        homes: u64,
        has_bounded_queues: bool,
    ) -> Registers {
        let (caches, homes) = (usize::from(caches), homes as usize);
        let mut registers = Registers::default();
        if remote.has_registers() || home.has_registers() {
            registers.caches = vec![remote.initial_registers(); caches];
            registers.homes = vec![home.initial_registers(); homes];
        }
        if has_bounded_queues || registers.has_registers_anywhere() {
            registers.retry_scheduled = vec![false; caches + homes];
        }
        registers
    }

    /// True if any agent has registers.
    #[inline(always)]
    pub fn has_registers_anywhere(&self) -> bool {
        !self.homes.is_empty()
    }
}

impl Simulation {
    /// Returns the index of a line's home. A message about no line has that index as its line number.
    #[inline]
    pub(crate) fn home_of(&self, line: Line) -> usize {
        line as usize & (self.memories.len() - 1)
    }

    /// Returns the line of a message. A message about no line has the number of its receiving or sending home instead.
    #[inline(always)]
    pub(crate) fn line_of(&self, kind: MessageId, line: Line, to: Receiver) -> Line {
        if self.tables.kinds[kind.index()].about_line {
            return line;
        }
        match to {
            Receiver::HomeAt(home) => home.into(),
            Receiver::Home | Receiver::Remote(_) => self.home_of(line) as Line,
        }
    }

    /// Returns the registers of a caching agent, or of the home of `line`; empty if the protocol has none.
    pub(crate) fn registers_of(&self, agent: Agent, line: Line) -> &[u16] {
        let registers = match agent {
            HOME => self.registers.homes.get(self.home_of(line)),
            cache => self.registers.caches.get(cache.index()),
        };
        registers.map_or(&[], |registers| &registers[..])
    }

    /// Returns the transition of a caching agent on an input.
    #[inline(always)]
    pub(crate) fn remote_step(
        &mut self,
        cache: Agent,
        line: Line,
        configuration: ConfigurationId,
        input: &Input,
    ) -> Transition {
        if !self.registers.has_registers_anywhere() {
            return self.remote.step(configuration, input);
        }
        let home = self.home_of(line) as u16;
        let registers = &mut self.registers.caches[cache.index()];
        self.remote.step_with(registers, home, configuration, input)
    }

    /// Returns the transition of a home on an input.
    #[inline(always)]
    pub(crate) fn home_step(
        &mut self,
        line: Line,
        configuration: ConfigurationId,
        input: &Input,
    ) -> Transition {
        if !self.registers.has_registers_anywhere() {
            return self.home.program.step(configuration, input);
        }
        let home = self.home_of(line);
        let registers = &mut self.registers.homes[home];
        (self.home.program).step_with(registers, home as u16, configuration, input)
    }

    /// Applies the register changes of the last computed transition, which is taken.
    #[inline(always)]
    pub(crate) fn commit_registers(&mut self, agent: Agent, line: Line) {
        if self.registers.has_registers_anywhere() {
            self.set_registers(agent, line);
        }
    }

    fn set_registers(&mut self, agent: Agent, line: Line) {
        let home = self.home_of(line);
        let caches = self.registers.caches.len();
        let (changed, agent_index) = match agent {
            HOME => {
                let registers = &mut self.registers.homes[home];
                (self.home.program.change(registers), caches + home)
            }
            cache => {
                let registers = &mut self.registers.caches[cache.index()];
                (self.remote.change(registers), cache.index())
            }
        };
        if changed && !std::mem::replace(&mut self.registers.retry_scheduled[agent_index], true) {
            self.local
                .queue
                .push(self.local.now, KernelEvent::Registers(agent_index as u32));
        }
    }

    /// Schedules a retry of the accesses that wait in a cache, because variables of a line have changed.
    pub(crate) fn schedule_retry(&mut self, cache: Agent) {
        let agent_index = cache.index();
        if !std::mem::replace(&mut self.registers.retry_scheduled[agent_index], true) {
            self.local
                .queue
                .push(self.local.now, KernelEvent::Registers(agent_index as u32));
        }
    }

    /// Retries the items that wait at an agent, because its registers have changed.
    pub(crate) fn registers_changed(&mut self, agent_index: u32) {
        let agent_index = agent_index as usize;
        self.registers.retry_scheduled[agent_index] = false;
        self.retry_waiting(agent_index);
    }

    /// Retries the messages and accesses that wait at an agent. Homes are numbered after the caching agents.
    pub(crate) fn retry_waiting(&mut self, agent_index: usize) {
        let cache_count = usize::from(self.caches.count());
        if agent_index < cache_count {
            let cache = Agent(agent_index as u16);
            self.retry_all_stalled_messages(cache);
            self.retry_held(cache);
            self.retry_waiting_for_way(cache);
        } else {
            let home = agent_index - cache_count;
            for unit in (home..self.home.units.len()).step_by(self.memories.len()) {
                self.return_stalled_inputs(unit);
            }
        }
    }
}
