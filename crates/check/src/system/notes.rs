//! Notes for charts: the lifelines of agents, and messages and values in words.

use cohkit_engine::model::{Expr, Phrase, Piece, Stmt};
use cohkit_protocol::protocol::{MessageId, Type as ValueType};

use super::charts::{note, Act};
use super::frame::Frame;

impl Frame<'_> {
    /// Returns the lifeline of the remote with this index, or of the home of a line.
    pub fn agent(&self, remote: Option<&Expr>, line: &Expr) -> Expr {
        match remote {
            Some(index) => index.clone(),
            None => self.home_agent(line),
        }
    }

    /// Returns the lifeline of the home of a line.
    pub fn home_agent(&self, line: &Expr) -> Expr {
        match self.protocol.homes {
            1 => self.first_home.into(),
            _ => self.home_of(line) + self.first_home,
        }
    }

    /// Returns the line of a note; `None` if the system has one line only.
    pub fn note_line(&self, line: &Expr) -> Option<Expr> {
        (self.lines > 1).then(|| line.clone())
    }

    /// Returns the note of an agent's act. `agent` is its lifeline. `visible` is true if the home
    /// can observe the act.
    pub fn note_act(&self, agent: impl Into<Expr>, act: Act, line: &Expr, visible: bool) -> Stmt {
        note(agent.into(), act, self.note_line(line), visible)
    }

    /// Returns the note that an agent sends or receives a message.
    pub fn note_message(
        &self,
        message: MessageId,
        agent: Expr,
        act: Act,
        line: &Expr,
        visible: bool,
    ) -> Stmt {
        let about_line = self.protocol.message(message).about_line;
        let line = self.note_line(line).filter(|_| about_line);
        note(agent, act, line, visible)
    }

    /// Returns the note that an agent does something without a message; `action` says what, such as `evicts`.
    pub fn note_action(
        &self,
        agent: impl Into<Expr>,
        line: &Expr,
        action: &str,
        visible: bool,
    ) -> Stmt {
        let act = Act::Does(vec![Piece::Text(action.to_string())]);
        self.note_act(agent, act, line, visible)
    }

    /// Returns the note that the home of a line does something without a message.
    pub fn note_home_action(&self, line: &Expr, action: &str) -> Stmt {
        self.note_action(self.home_agent(line), line, action, true)
    }

    /// Returns a message with its fields in words: `Data(acks=1)`. `values` are those of all
    /// fields, in order.
    pub fn words(&self, message: MessageId, values: &[Expr]) -> Phrase {
        let message_type = self.protocol.message(message);
        let mut words = vec![Piece::Text(message_type.name.clone())];
        for (index, (field, value)) in message_type.fields.iter().zip(values).enumerate() {
            let separator = if index == 0 { "(" } else { ", " };
            words.push(Piece::Text(format!("{separator}{}=", field.name)));
            words.extend(self.value_words(field.ty, value));
        }
        if !message_type.fields.is_empty() {
            words.push(Piece::Text(")".into()));
        }
        words
    }

    /// Returns a value in the notation of its type. A remote is encoded as 0 for none, otherwise as its index plus 1.
    pub fn value_words(&self, ty: ValueType, value: &Expr) -> Phrase {
        let text = |words: &str| vec![Piece::Text(words.to_string())];
        match ty {
            ValueType::Remote => vec![Piece::Choice(
                value.clone().gt(0),
                vec![Piece::Agent(value.clone() - 1)],
                text("none"),
            )],
            ValueType::Bool => vec![Piece::Choice(
                value.clone().gt(0),
                text("true"),
                text("false"),
            )],
            ValueType::Home { .. } => vec![Piece::Agent(value.clone() + self.first_home)],
            ValueType::RemoteSet => {
                // The number has the bit of each member.
                let member = |remote| (value.clone() / (1 << remote) % 2).is(1);
                self.set_words(ty, (0..self.remotes).map(member))
            }
            _ => vec![Piece::Value(value.clone())],
        }
    }

    /// Returns a set in words. `conditions` has, for each possible member in order, the condition that the set contains
    /// it.
    pub fn set_words(&self, ty: ValueType, conditions: impl Iterator<Item = Expr>) -> Phrase {
        let text = |words: &str| Piece::Text(words.to_string());
        let mut words = vec![text("{")];
        let mut previous = Vec::new();
        for (number, contains) in (0..).zip(conditions) {
            let mut member = vec![text(&self.names.member(ty, number))];
            if !previous.is_empty() {
                let has_previous = Expr::disjunction(previous.iter().cloned());
                member.insert(0, Piece::Choice(has_previous, vec![text(", ")], Vec::new()));
            }
            words.push(Piece::Choice(contains.clone(), member, Vec::new()));
            previous.push(contains);
        }
        words.push(text("}"));
        words
    }
}
