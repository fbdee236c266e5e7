//! Registers of agents: one set for each over all its lines, which a row reads and writes at once.
//!
//! What waits because of a register may go on when any row of its agent has changed one.

use crate::agents::program::{ConfigurationId, Input, Program, Transition};
use crate::message::{Agent, Line, HOME};
use crate::simulation::{Event as KernelEvent, Simulation};
use cohkit_protocol::execute::Receiver;
use cohkit_protocol::protocol::MessageId;

/// The registers of all agents of a machine; none where the text has none.
#[derive(Default)]
pub(crate) struct Registers {
    caches: Vec<Vec<u16>>,
    homes: Vec<Vec<u16>>,
    /// For each agent, true if an event is on its way at which what waits there looks again. Also where agents wait for room in
    /// input queues.
    looks: Vec<bool>,
}

impl Registers {
    /// Returns the initial registers of all caching agents and homes. `waits` is true if agents may wait for room in input
    /// queues.
    pub fn new(
        remote: &Program,
        home: &Program,
        caches: u16,
        homes: u64,
        waits: bool,
    ) -> Registers {
        let (caches, homes) = (usize::from(caches), homes as usize);
        let mut registers = Registers::default();
        if remote.has_registers() || home.has_registers() {
            registers.caches = vec![remote.first_registers(); caches];
            registers.homes = vec![home.first_registers(); homes];
        }
        if waits || registers.are_there() {
            registers.looks = vec![false; caches + homes];
        }
        registers
    }

    /// Whether there are any agents with registers.
    #[inline(always)]
    pub fn are_there(&self) -> bool {
        !self.homes.is_empty()
    }
}

impl Simulation {
    /// The number of a line's home; of what is about no line that is the line's number itself.
    #[inline]
    pub(crate) fn home_of(&self, line: Line) -> usize {
        line as usize & (self.memories.len() - 1)
    }

    /// The line that a message is about. What is about none has the number of the home in its place that takes or sends it.
    #[inline(always)]
    pub(crate) fn line_of(&self, kind: MessageId, line: Line, to: Receiver) -> Line {
        if self.kinds[kind.index()].about_line {
            return line;
        }
        match to {
            Receiver::HomeAt(home) => home.into(),
            Receiver::Home | Receiver::Remote(_) => self.home_of(line) as Line,
        }
    }

    /// Registers of a caching agent, or of the home of a line; empty where the text has none.
    pub(crate) fn registers_of(&self, agent: Agent, line: Line) -> &[u16] {
        let own = match agent {
            HOME => self.registers.homes.get(self.home_of(line)),
            cache => self.registers.caches.get(cache.index()),
        };
        own.map_or(&[], |own| &own[..])
    }

    /// What a caching agent does with an input.
    #[inline(always)]
    pub(crate) fn remote_step(
        &mut self,
        cache: Agent,
        line: Line,
        configuration: ConfigurationId,
        input: &Input,
    ) -> Transition {
        if !self.registers.are_there() {
            return self.remote.step(configuration, input);
        }
        let home = self.home_of(line) as u16;
        let registers = &mut self.registers.caches[cache.index()];
        self.remote.step_with(registers, home, configuration, input)
    }

    /// What a home does with an input.
    #[inline(always)]
    pub(crate) fn home_step(
        &mut self,
        line: Line,
        configuration: ConfigurationId,
        input: &Input,
    ) -> Transition {
        if !self.registers.are_there() {
            return self.home.step(configuration, input);
        }
        let home = self.home_of(line);
        let registers = &mut self.registers.homes[home];
        (self.home).step_with(registers, home as u16, configuration, input)
    }

    /// The transition that was asked for last is taken: its agent's registers become what it says.
    #[inline(always)]
    pub(crate) fn takes_registers(&mut self, agent: Agent, line: Line) {
        if self.registers.are_there() {
            self.set_registers(agent, line);
        }
    }

    fn set_registers(&mut self, agent: Agent, line: Line) {
        let home = self.home_of(line);
        let caches = self.registers.caches.len();
        let (changed, number) = match agent {
            HOME => {
                let own = &mut self.registers.homes[home];
                (self.home.change(own), caches + home)
            }
            cache => {
                let own = &mut self.registers.caches[cache.index()];
                (self.remote.change(own), cache.index())
            }
        };
        if changed && !std::mem::replace(&mut self.registers.looks[number], true) {
            self.queue
                .push(self.now, KernelEvent::Registers(number as u32));
        }
    }

    /// Variables of a line have changed in a cache where accesses wait: they look again.
    pub(crate) fn look_again(&mut self, cache: Agent) {
        let number = cache.index();
        if !std::mem::replace(&mut self.registers.looks[number], true) {
            self.queue
                .push(self.now, KernelEvent::Registers(number as u32));
        }
    }

    /// Registers of an agent have changed: what waits there looks again.
    pub(crate) fn registers_changed(&mut self, number: u32) {
        let number = number as usize;
        self.registers.looks[number] = false;
        self.agent_looks_again(number);
    }

    /// Messages and accesses that wait at an agent are tried again. Homes have the numbers behind those of caching agents.
    pub(crate) fn agent_looks_again(&mut self, number: usize) {
        let caches = usize::from(self.caches.count());
        if number < caches {
            let cache = Agent(number as u16);
            self.deliver_all_left(cache);
            self.try_held(cache);
            self.unpark(cache);
        } else {
            let home = number - caches;
            for unit in (home..self.units.len()).step_by(self.memories.len()) {
                self.present_all_again(unit);
            }
        }
    }
}
