//! Bulk transitions: `every STATE becomes STATE`, for all lines of an agent.

use super::scope::{AgentTable, Scope, Side};
use super::Resolver;
use crate::controller::{State, Statement};
use crate::protocol::MessageId;
use crate::text::ast::Name;
use crate::text::diagnostic::{Code, Diagnostic};
use cohkit_diagnostics::Span;

impl<'a> Resolver<'a, '_> {
    /// Resolves the action, if the row may have it and no line loses anything by it.
    pub(super) fn resolve_bulk_transition(
        &mut self,
        (from, to): (Name<'a>, Name<'a>),
        span: Span,
        scope: &Scope<'a, '_>,
        table: &AgentTable<'a>,
    ) -> Option<Statement> {
        let problem = match (scope.side, scope.lineless) {
            (Side::Home, _) => Some((
                "`every` in the home",
                "only a remote gives up the lines that it has",
            )),
            (Side::Remote, false) => Some((
                "`every` in a row about a line",
                "it is about all lines: write `-` instead of the row's states",
            )),
            (Side::Remote, true) => None,
        };
        if let Some((text, label)) = problem {
            let diagnostic = Diagnostic::new(Code::Misplaced, span, text);
            self.sink.push(diagnostic.label(label));
            return None;
        }
        let [from_state, to_state] = [from, to].map(|name| table.state(name, self.sink));
        let (from_id, to_id) = (from_state?, to_state?);
        for (name, id) in [(from, from_id), (to, to_id)] {
            if table.is_split(id) {
                let text = format!("the permission of `{}` depends on variables", name.text);
                let diagnostic = Diagnostic::new(Code::Misplaced, name.span, text)
                    .label("`every` changes none, so it leads to no such state and from none");
                self.sink.push(diagnostic);
                return None;
            }
        }
        let (source, target) = (table.resolved_state(from_id), table.resolved_state(to_id));
        if let Some(error) = self.lost_permission((from, source), (to, target)) {
            self.sink.push(error.note_at(target.span, "declared here"));
            return None;
        }
        Some(Statement::BulkTransition {
            from: from_id,
            to: to_id,
        })
    }

    /// Returns the reason why a line must not move from one state to the other without a message or access.
    fn lost_permission(
        &self,
        (from, source): (Name<'a>, &State),
        (to, target): (Name<'a>, &State),
    ) -> Option<Diagnostic> {
        let waits = |state: &State| {
            let mut waits = state.waits.clone();
            waits.sort_unstable();
            waits.dedup();
            waits
        };
        let names = |messages: Vec<MessageId>| {
            let names = messages
                .iter()
                .map(|m| format!("`{}`", self.messages[m.index()].name));
            match messages.is_empty() {
                true => "nothing".to_string(),
                false => names.collect::<Vec<_>>().join(", "),
            }
        };
        let reject = |code, text: String, label: &str| {
            Some(Diagnostic::new(code, to.span, text).label(label))
        };
        if from.text == to.text {
            let text = format!("every `{}` is in that state", from.text);
            return reject(Code::Next, text, "name the state that they go to");
        }
        if waits(source) != waits(target) {
            let text = format!(
                "`{}` waits for {}, and `{}` for {}",
                from.text,
                names(waits(source)),
                to.text,
                names(waits(target))
            );
            let label =
                "outstanding accesses continue: both states must wait for the same messages";
            return reject(Code::Next, text, label);
        }
        if source.dirty && !target.dirty {
            let text = format!(
                "`{}` may differ from memory, and the difference is lost in `{}`",
                from.text, to.text
            );
            return reject(Code::Carries, text, "send it to the home, line by line");
        }
        if target.holds_line && !source.holds_line {
            let text = format!(
                "`{}` holds the line, but nothing brings it there from `{}`",
                to.text, from.text
            );
            return reject(Code::Carries, text, "no bytes to keep");
        }
        if target.permission > source.permission {
            let text = format!(
                "`{}` gives a permission that `{}` does not",
                to.text, from.text
            );
            return reject(Code::Next, text, "`every` can only reduce permissions");
        }
        None
    }
}
