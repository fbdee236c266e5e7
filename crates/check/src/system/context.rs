//! Values that the expressions and statements of a row may use.

use cohkit_engine::model::{Expr, Place, VariableId};
use cohkit_protocol::controller::Expression;

/// Values that the expressions of a row may read.
#[derive(Clone)]
pub(super) struct Context {
    /// True if the row belongs to the home.
    pub home: bool,
    /// Number of the line of the event.
    pub line: Expr,
    /// Index of the remote that executes the row; `None` for a row of the home.
    pub remote: Option<Expr>,
    /// Index of the remote that sent the current message; `None` if a home sent it, or
    /// without a message.
    pub sender: Option<Expr>,
    /// Field values of the current message, in the order of their declaration; empty
    /// without a message.
    pub fields: Vec<Expr>,
    /// Index of the remote in the current iteration of a loop or quantifier; `None`
    /// outside of them.
    pub each: Option<Expr>,
    /// Index of the remote that the row chooses, if it chooses one.
    pub chosen: Option<Expr>,
}

impl Context {
    /// Creates the context of an event without a message: of the home, or of this remote.
    pub fn new(line: &Expr, remote: Option<Expr>) -> Context {
        Context {
            home: remote.is_none(),
            line: line.clone(),
            remote,
            sender: None,
            fields: Vec::new(),
            each: None,
            chosen: None,
        }
    }

    /// The context inside a loop or quantifier.
    pub fn with_each(&self, each: Expr) -> Context {
        Context {
            each: Some(each),
            ..self.clone()
        }
    }

    /// The element of a variable for this agent and line.
    pub fn part(&self, variable: VariableId) -> Place {
        let place = variable.at(&self.line);
        match &self.remote {
            Some(remote) => place.at(remote),
            None => place,
        }
    }

    /// Returns the index of the remote that an expression names, if the context has it: the own
    /// remote, the sender, or that of the current iteration. `None` for any other expression.
    pub fn known(&self, expression: &Expression) -> Option<Expr> {
        match expression {
            Expression::Own => self.remote.clone(),
            Expression::Sender => self.sender.clone(),
            Expression::Each => self.each.clone(),
            _ => None,
        }
    }
}
