//! Execution of a controller by its agents, and their registers.
//!
//! Each agent has one set of registers for all its lines; a row reads and writes it at once. An item that waits because
//! of a register is retried when any row of its agent has changed a register.

use crate::agents::program::{ConfigurationId, Input, Program, Transition};
use crate::message::{Agent, Line};
use crate::simulation::observer::Fact;
use crate::simulation::{Context, Event, Tables};

/// A controller, and the registers of the agents that execute it.
pub(crate) struct Executor {
    /// Controller of the agents.
    pub program: Program,
    /// Registers of each agent; empty if no agent of the protocol has any.
    registers: Vec<Vec<u16>>,
    /// For each agent, true if an event that retries its waiting items is scheduled. Also used by agents that wait for
    /// room in input queues.
    retry_scheduled: Vec<bool>,
    /// Number of the first agent in [`Event::Registers`].
    first_number: usize,
}

impl Executor {
    /// Creates the initial registers of `agents` agents. `has_registers` is true if any agent of the protocol has some,
    /// `may_wait` if agents may wait for room in input queues.
    pub fn new(
        program: Program,
        agents: usize,
        first_number: usize,
        (has_registers, may_wait): (bool, bool),
    ) -> Executor {
        let with_registers = if has_registers { agents } else { 0 };
        let with_retries = if has_registers || may_wait { agents } else { 0 };
        Executor {
            registers: vec![program.initial_registers(); with_registers],
            retry_scheduled: vec![false; with_retries],
            first_number,
            program,
        }
    }

    /// True if any agent of the protocol has registers.
    #[inline(always)]
    pub fn has_registers(&self) -> bool {
        !self.registers.is_empty()
    }

    /// Returns the transition of an agent on an input for a line of the home `home`.
    #[inline(always)]
    pub fn step(
        &mut self,
        agent: usize,
        home: usize,
        configuration: ConfigurationId,
        input: &Input,
    ) -> Transition {
        if !self.has_registers() {
            return self.program.step(configuration, input);
        }
        let registers = &mut self.registers[agent];
        (self.program).step_with(registers, home as u16, configuration, input)
    }

    /// Applies the register changes of the last computed transition, which is taken.
    #[inline(always)]
    pub fn commit_registers(&mut self, context: &mut Context, agent: usize) {
        if self.has_registers() && self.program.change(&mut self.registers[agent]) {
            self.schedule_retry(context, agent);
        }
    }

    /// True if the last computed transition changes a register of its agent.
    #[inline(always)]
    pub fn changes_registers(&mut self, agent: usize) -> bool {
        self.has_registers() && self.program.would_change(&mut self.registers[agent])
    }

    /// Schedules a retry of the items that wait at an agent.
    pub fn schedule_retry(&mut self, context: &mut Context, agent: usize) {
        if !std::mem::replace(&mut self.retry_scheduled[agent], true) {
            let number = (self.first_number + agent) as u32;
            context.schedule(context.now(), Event::Registers(number));
        }
    }

    /// Records that the items that wait at an agent are retried now.
    pub fn begin_retry(&mut self, agent: usize) {
        self.retry_scheduled[agent] = false;
    }

    /// Formats a configuration of an agent.
    pub fn state_text(
        &self,
        tables: &Tables,
        agent: usize,
        configuration: ConfigurationId,
    ) -> String {
        let registers = self.registers.get(agent).map_or(&[][..], Vec::as_slice);
        (self.program).configuration_text(configuration, registers, &tables.names.values)
    }

    /// Reports the state of a line in an agent that has consumed a message or other work.
    #[inline(always)]
    pub fn observe_state(
        &self,
        context: &mut Context,
        (agent, line): (Agent, Line),
        number: usize,
        configuration: ConfigurationId,
    ) {
        if context.observer.is_enabled() {
            let tables = context.tables;
            context.observe(Fact::State {
                agent,
                line,
                configuration,
                has_registers: self.registers.get(number).is_some_and(|r| !r.is_empty()),
                text: &|| self.state_text(tables, number, configuration),
            });
        }
    }

    /// Names of the messages that an agent waits for in a configuration, joined by "or"; `None` if it waits for none.
    pub fn awaited_messages(
        &self,
        tables: &Tables,
        configuration: ConfigurationId,
    ) -> Option<String> {
        let state = &self.program.controller().states[self.program.state(configuration)];
        let name = |message: &cohkit_protocol::protocol::MessageId| {
            tables.protocol_messages[message.index()].name.as_str()
        };
        let names: Vec<&str> = state.waits.iter().map(name).collect();
        (!names.is_empty()).then(|| names.join(" or "))
    }
}
