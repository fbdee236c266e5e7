//! Responses to the sender of a message that may come from the home.
//!
//! A message on a channel between any agents reaches a remote from the home or from another remote. `sender` is then
//! either `none` or a remote, and a message to it has no receiver or one.

use super::Resolver;
use crate::controller::{Controller, Effect, Event, Expression, Operator, Rule, Statement, Target};
use crate::text::diagnostic::{Code, Diagnostic};
use cohkit_diagnostics::Span;

impl Resolver<'_, '_> {
    /// Reports rows of the remote that send to the sender of a message if that may be the home.
    pub(super) fn check_senders(&mut self, remote: &Controller) {
        for (index, rule) in remote.rules.iter().enumerate() {
            let Event::Message(message) = rule.event else {
                continue;
            };
            let earlier = &remote.rules[..index];
            if !self.is_sent_by_home[message.index()]
                || !sends_to_sender(rule)
                || is_sender_remote(rule, earlier)
            {
                continue;
            }
            let name = &self.messages[message.index()].name;
            let channel = self.channel_of(message).span;
            let text = format!("`sender` may be the home, which sends `{name}` too");
            let spans = self.sender_targets.iter();
            let is_in_rule =
                |span: &&Span| rule.span.start <= span.start && span.end <= rule.span.end;
            for span in spans.filter(is_in_rule) {
                let diagnostic = Diagnostic::new(Code::Direction, *span, &text)
                    .label("not always one of the remotes")
                    .note("before this row, take the messages of the home: `if sender == none`, and `to home`")
                    .note_at(channel, "the messages of this channel come from any agent");
                self.sink.push(diagnostic);
            }
        }
    }
}

/// Returns true if a statement outside of conditions and loops sends a message to the sender.
fn sends_to_sender(rule: &Rule) -> bool {
    let Effect::Take { body, .. } = &rule.effect else {
        return false;
    };
    let sender = Target::Remote(Expression::Sender);
    (body.iter()).any(|s| matches!(s, Statement::Send { to: target, .. } if *target == sender))
}

/// Returns true if the sender is a remote whenever the rule is taken: by its guard, or because an earlier row takes the
/// other case.
fn is_sender_remote(rule: &Rule, earlier: &[Rule]) -> bool {
    let is_same_event = |other: &&Rule| (other.state, other.event) == (rule.state, rule.event);
    rule.guard.as_ref().is_some_and(is_remote)
        || (earlier.iter().filter(is_same_event)).any(|other| match &other.guard {
            Some(guard) => compares(Operator::Equal, guard),
            None => true,
        })
}

/// Returns true if a guard can hold only for a message of a remote.
fn is_remote(guard: &Expression) -> bool {
    match guard {
        Expression::Binary(Operator::And, a, b) => is_remote(a) || is_remote(b),
        Expression::In(remote, _) => **remote == Expression::Sender,
        other => compares(Operator::NotEqual, other),
    }
}

/// Returns true if an expression compares the sender with `none` by this operator.
fn compares(operator: Operator, expression: &Expression) -> bool {
    let Expression::Binary(actual, a, b) = expression else {
        return false;
    };
    let sides = [(&**a, &**b), (&**b, &**a)];
    *actual == operator && sides.contains(&(&Expression::Sender, &Expression::None))
}
