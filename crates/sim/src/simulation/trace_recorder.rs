//! Trace recording for one line or all lines, and the names of agents in traces.

use super::*;
use crate::agents::program::ConfigurationId;
use cohkit_base::sequence::Step;

impl Simulation {
    /// Records every event on the traced line, or on all lines if they share state.
    pub(crate) fn record_full_trace(&mut self, protocol: &Protocol) {
        (self.observer).record_full_trace(protocol.line_coupling().is_some());
    }

    /// True if steps of this line are recorded.
    #[inline]
    pub(crate) fn is_traced(&self, line: Line) -> bool {
        self.observer.is_traced(line)
    }

    #[cold]
    pub(super) fn note_send(&mut self, message: &Message, ready: Time) {
        self.note_sent(message, ready);
        if !self.is_traced(message.line) {
            return;
        }
        let action = Action::Send {
            message: self.message_text(message),
            to: self.lifeline(message.to, message.line),
            flight: message.flight,
        };
        self.note_message((message.from, message.sender_line()), message, action);
    }

    #[cold]
    pub(crate) fn note_receive(&mut self, message: &Message) {
        let action = Action::Receive {
            message: self.message_text(message),
            from: self.lifeline(message.from, message.sender_line()),
            flight: message.flight,
        };
        self.note_message((message.to, message.line), message, action);
    }

    fn note_message(
        &mut self,
        (agent, agent_line): (Agent, Line),
        message: &Message,
        action: Action,
    ) {
        let about_line = self.tables.kinds[message.kind.index()].about_line;
        self.record_step(
            agent,
            agent_line,
            about_line.then_some(message.line),
            action,
        );
    }

    /// Records an action of an agent on a traced line.
    #[cold]
    pub(crate) fn note(&mut self, agent: Agent, line: Line, action: Action) {
        self.record_step(agent, line, Some(line), action);
    }

    fn record_step(&mut self, agent: Agent, agent_line: Line, line: Option<Line>, action: Action) {
        let step = Step {
            agent: self.lifeline(agent, agent_line),
            action,
            line: line.filter(|_| self.observer.traces_all_lines()),
            visible: agent == HOME,
        };
        if let Some(trace) = &mut self.observer.trace {
            trace.record_step(step);
        }
    }

    /// Returns the lifeline of an agent; `line` selects the home.
    fn lifeline(&self, agent: Agent, line: Line) -> usize {
        let first_lifeline = self
            .neighbours
            .upper_level
            .as_ref()
            .map_or(0, |above| above.lifelines);
        first_lifeline + self.agent_number(agent, line)
    }

    pub(super) fn agent_number(&self, agent: Agent, line: Line) -> usize {
        let home = line as usize % usize::from(self.tables.homes);
        match agent {
            HOME => usize::from(self.groups.caches()) + home,
            remote => remote.index(),
        }
    }

    pub(crate) fn agent_name(&self, agent: Agent) -> String {
        if let Some(above) = &self.neighbours.upper_level {
            return self.lifelines_below(above.cache)[self.agent_number(agent, 0)].clone();
        }
        match agent {
            HOME => self.home.program.controller().name.clone(),
            remote => self.remote.remote_name(remote),
        }
    }

    /// Returns the names of the agents as in the lifelines of charts.
    pub(crate) fn agent_names(&self) -> &AgentNames {
        self.tables.agent_names.get_or_init(|| {
            let mut remotes = match &self.neighbours.upper_level {
                Some(above) => self.lifelines_below(above.cache),
                None => self.local_lifelines(),
            };
            let homes = remotes.split_off(usize::from(self.groups.caches()));
            AgentNames { remotes, homes }
        })
    }

    /// Formats a configuration of an agent for a line.
    pub(crate) fn state_text(
        &self,
        agent: Agent,
        line: Line,
        configuration: ConfigurationId,
    ) -> String {
        let program = match agent {
            HOME => &self.home.program,
            _ => &self.remote,
        };
        let registers = self.registers_of(agent, line);
        program.configuration_text(configuration, registers, self.agent_names())
    }

    /// Iterates over the names of the messages, in the order of the protocol file.
    pub(crate) fn message_names(&self) -> impl Iterator<Item = String> + '_ {
        self.tables
            .protocol_messages
            .iter()
            .map(|message| message.name.clone())
    }

    /// Formats a message with its fields.
    pub(crate) fn message_text(&self, message: &Message) -> String {
        let kind = &self.tables.protocol_messages[message.kind.index()];
        self.agent_names().message(kind, &message.fields)
    }
}
