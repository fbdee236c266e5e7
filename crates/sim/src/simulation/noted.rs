//! What is recorded of a traced line, and what agents are called there.

use super::*;

impl Simulation {
    /// Whether steps of this line are recorded.
    #[inline]
    pub(crate) fn traced(&self, line: Line) -> bool {
        self.traced == line
    }

    #[cold]
    pub(super) fn note_send(&mut self, message: &Message, ready: Time) {
        self.note_sent(message, ready);
        if !self.traced(message.line) {
            return;
        }
        let (agent, to) = (self.agent(message.from), self.agent(message.to));
        let action = Action::Send {
            message: self.message_words(message),
            to,
            flight: message.flight,
        };
        self.note(agent, message.from == HOME, action);
    }

    /// Records a step of the traced line.
    #[cold]
    pub(crate) fn note(&mut self, agent: usize, visible: bool, action: Action) {
        if let Some(trace) = &mut self.trace {
            trace.step(agent, visible, action);
        }
    }

    /// The lifeline of an agent.
    pub(crate) fn agent(&self, agent: Agent) -> usize {
        let first = self.above.as_ref().map_or(0, |above| above.lifelines);
        first + self.number(agent)
    }

    pub(super) fn number(&self, agent: Agent) -> usize {
        match agent {
            HOME => self.groups.caches().into(),
            remote => remote.index(),
        }
    }

    pub(crate) fn agent_name(&self, agent: Agent) -> String {
        if let Some(above) = &self.above {
            return self.lifelines_below(above.cache)[self.number(agent)].clone();
        }
        match agent {
            HOME => self.home.controller().name.clone(),
            remote => self.remote.remote_name(remote),
        }
    }

    pub(crate) fn message_words(&self, message: &Message) -> String {
        self.names[message.kind.index()].clone()
    }
}
