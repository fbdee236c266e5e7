//! Trace recording for one line or all lines: sent and received messages, accesses, and state changes as steps of
//! agents.

use super::*;
use crate::data::Copy;
use crate::message::Work;
use cohkit_base::sequence::Step;

impl Context<'_> {
    /// True if steps of this line are recorded.
    #[inline]
    pub fn is_traced(&self, line: Line) -> bool {
        self.observer.is_traced(line)
    }

    /// Records a sent message, which is ready at `ready`, in the latency breakdown and in the trace.
    #[cold]
    pub fn note_send(&mut self, message: &Message, ready: Time) {
        self.note_sent(message, ready);
        if !self.is_traced(message.line) {
            return;
        }
        let action = Action::Send {
            message: self.tables.message_text(message),
            to: self.lifeline(message.to, message.line),
            flight: message.flight,
        };
        self.note_message((message.from, message.sender_line()), message, action);
    }

    /// Records in the trace that the receiver takes a message.
    #[cold]
    pub fn note_receive(&mut self, message: &Message) {
        let action = Action::Receive {
            message: self.tables.message_text(message),
            from: self.lifeline(message.from, message.sender_line()),
            flight: message.flight,
        };
        self.note_message((message.to, message.line), message, action);
    }

    /// Records the sending or the receipt of a message by an agent. `agent_line` selects the home.
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
    pub fn note(&mut self, agent: Agent, line: Line, action: Action) {
        self.record_step(agent, line, Some(line), action);
    }

    /// Appends a step to the trace, if there is one. `agent_line` selects the home; `line` is shown if all lines
    /// are traced.
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
        self.tables.names.first_lifeline + self.tables.agent_number(agent, line)
    }

    /// Records that the home takes an input, also in the trace.
    pub fn note_work(&mut self, work: Work, line: Line, message: Option<&Message>) {
        self.note_taken_at_home(work, line, message);
        if !self.is_traced(line) {
            return;
        }
        let what = match (work, message) {
            (_, Some(message)) => return self.note_receive(message),
            (Work::Read(_), _) => "takes the memory's data".to_string(),
            (Work::Written(_), _) => "hears that memory is done".to_string(),
            (Work::Local(_, local), _) => {
                format!("takes {}", self.tables.locals[local as usize].name)
            }
            _ => "takes the unlock".to_string(),
        };
        self.note(HOME, line, Action::Does { what });
    }

    /// Records an access of a cache that its controller takes.
    pub fn note_access(&mut self, cache: Agent, line: Line, access: Access) {
        // An access about no line is recorded for every traced line, as it may affect each of them.
        if self.is_traced(line)
            || self.observer.is_enabled() && !access.about_line() && self.observer.trace.is_some()
        {
            let what = access.name().to_string();
            self.note(cache, line, Action::Does { what });
        }
    }

    /// Records an access that the page table does not permit. A complete trace omits it: it contains performed accesses
    /// only.
    #[cold]
    pub fn note_refused(&mut self, access: &Pending) {
        let trace = self.observer.trace.as_ref();
        let is_shown = trace.is_some_and(|trace| !trace.is_complete);
        if is_shown && self.is_traced(access.line) {
            let what = format!("{} is refused", access.kind.name());
            self.note(access.cache, access.line, Action::Does { what });
        }
    }

    /// Records an access performed in a cache's own copy, with the value of its word, in a complete trace.
    #[cold]
    pub fn note_performed(&mut self, access: &Pending, copy: Copy) {
        let trace = self.observer.trace.as_ref();
        if !trace.is_some_and(|trace| trace.is_complete) {
            return;
        }
        let Pending {
            line, word, kind, ..
        } = *access;
        let value_text = match access.purpose {
            Purpose::Core if kind != Access::WriteLine => {
                let value = self.contents.data.word(line, copy, word);
                format!(" of word {word}: {value}")
            }
            _ => String::new(),
        };
        let what = format!("performs a {}{value_text}", kind.name());
        self.note(access.cache, line, Action::Does { what });
    }
}
