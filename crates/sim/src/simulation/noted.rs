//! What is recorded of a traced line, or of all, and what agents are called there.

use super::*;
use crate::agents::program::ConfigurationId;
use cohkit_base::sequence::Step;

impl Simulation {
    /// Everything is told that happens on the line that is traced, or on all where these have something in common.
    pub(crate) fn tells_everything(&mut self, protocol: &Protocol) {
        self.trace = Some(Trace::of_everything());
        self.traces_all = protocol.has_in_common().is_some();
    }

    /// Whether steps of this line are recorded.
    #[inline]
    pub(crate) fn traced(&self, line: Line) -> bool {
        self.traced == line || self.traces_all
    }

    #[cold]
    pub(super) fn note_send(&mut self, message: &Message, ready: Time) {
        self.note_sent(message, ready);
        if !self.traced(message.line) {
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

    fn note_message(&mut self, (agent, at): (Agent, Line), message: &Message, action: Action) {
        let about_line = self.kinds[message.kind.index()].about_line;
        self.record(agent, at, about_line.then_some(message.line), action);
    }

    /// Records what an agent does with a traced line.
    #[cold]
    pub(crate) fn note(&mut self, agent: Agent, line: Line, action: Action) {
        self.record(agent, line, Some(line), action);
    }

    fn record(&mut self, agent: Agent, at: Line, line: Option<Line>, action: Action) {
        let step = Step {
            agent: self.lifeline(agent, at),
            action,
            line: line.filter(|_| self.traces_all),
            visible: agent == HOME,
        };
        if let Some(trace) = &mut self.trace {
            trace.step(step);
        }
    }

    /// The lifeline of an agent, by a line of it if it is the home.
    fn lifeline(&self, agent: Agent, line: Line) -> usize {
        let first = self.above.as_ref().map_or(0, |above| above.lifelines);
        first + self.number(agent, line)
    }

    pub(super) fn number(&self, agent: Agent, line: Line) -> usize {
        let home = line as usize % usize::from(self.homes);
        match agent {
            HOME => usize::from(self.groups.caches()) + home,
            remote => remote.index(),
        }
    }

    pub(crate) fn agent_name(&self, agent: Agent) -> String {
        if let Some(above) = &self.above {
            return self.lifelines_below(above.cache)[self.number(agent, 0)].clone();
        }
        match agent {
            HOME => self.home.controller().name.clone(),
            remote => self.remote.remote_name(remote),
        }
    }

    /// Names of the agents, as the lifelines of charts have them.
    pub(crate) fn agent_names(&self) -> &AgentNames {
        self.agent_names.get_or_init(|| {
            let mut remotes = match &self.above {
                Some(above) => self.lifelines_below(above.cache),
                None => self.own_lifelines(),
            };
            let homes = remotes.split_off(usize::from(self.groups.caches()));
            AgentNames { remotes, homes }
        })
    }

    /// Text of a configuration of an agent for a line.
    pub(crate) fn state_text(
        &self,
        agent: Agent,
        line: Line,
        configuration: ConfigurationId,
    ) -> String {
        let program = match agent {
            HOME => &self.home,
            _ => &self.remote,
        };
        let registers = self.registers_of(agent, line);
        program.text(configuration, registers, self.agent_names())
    }

    /// Names of the messages, in the order of the text.
    pub(crate) fn message_names(&self) -> impl Iterator<Item = String> + '_ {
        self.protocol_messages
            .iter()
            .map(|message| message.name.clone())
    }

    /// Text of a message with its fields.
    pub(crate) fn message_text(&self, message: &Message) -> String {
        let kind = &self.protocol_messages[message.kind.index()];
        self.agent_names().message(kind, &message.fields)
    }
}
