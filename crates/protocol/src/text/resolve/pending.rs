//! Accesses that a remote has started and not completed.
//!
//! A remote that has sent a request waits. If its state does not declare this, the checker would consider it stable,
//! and a lost request quiescent. So a state with a pending access must declare what it waits for, and every access must
//! complete.

use crate::controller::{Access, Controller, Effect, Event, Rule, State, Statement};
use crate::pending_access;
use crate::pending_access::bulk_transitions;
use crate::protocol::{Channel, Class, Message, MessageId, Permission, StateId};
use crate::text::diagnostic::{Code, Diagnostic, Sink};
use cohkit_base::words::with_article;
use rustc_hash::FxHashSet;

/// A remote's table, and the meaning of its rows for pending accesses.
struct Accesses<'c> {
    /// Controller of the remotes.
    controller: &'c Controller,
    /// For each message, true if it asks the home for something.
    is_request: Vec<bool>,
    /// Analysis of pending accesses and of rows that post a write.
    pending_accesses: pending_access::Accesses,
}

/// Reports states that wait without declaring it, and accesses that never complete.
pub(super) fn check(
    controller: &Controller,
    messages: &[Message],
    channels: &[Channel],
    sink: &mut Sink,
) {
    let is_request = |message: &Message| {
        matches!(
            channels[message.channel.index()].class,
            None | Some(Class::Request)
        )
    };
    let accesses = Accesses {
        controller,
        is_request: messages.iter().map(is_request).collect(),
        pending_accesses: pending_access::Accesses::new(controller, messages),
    };
    let mut silent = FxHashSet::default();
    for (access, name) in Access::ALL {
        let Some((pending, completes)) = accesses.pending(access) else {
            continue;
        };
        for state in &pending {
            let declared = &controller.states[state.index()];
            if declared.waits.is_empty() && silent.insert(*state) {
                let text = format!(
                    "{} is outstanding in `{}`, which declares no `waits`",
                    with_article(name),
                    declared.name
                );
                let mut message_names: Vec<&str> = taken_messages(controller, *state)
                    .map(|message| messages[message.index()].name.as_str())
                    .collect();
                message_names.sort_unstable();
                message_names.dedup();
                let message_names = match message_names.is_empty() {
                    true => "no message yet".to_string(),
                    false => message_names.join(", "),
                };
                // A stable state without permission is the more common mistake: a store is to be performed in it.
                let label = match declared.permission < access.needs() {
                    true => format!(
                        "add `{}` if the {name} is performed here, or `waits` with the messages that complete it; the state takes {message_names}",
                        permission_attribute(access)
                    ),
                    false => format!("add `waits` with the messages that complete it; the state takes {message_names}"),
                };
                sink.push(Diagnostic::new(Code::UnsaidWait, declared.span, text).label(label));
            }
        }
        if !completes {
            let row = accesses.starting_rows(access).next();
            let span = row.map_or(controller.span, |row| row.span);
            let text = format!("a {name} that begins here is never performed");
            let label = match access.needs() {
                Permission::None => "no row that completes it has `done`".to_string(),
                _ => format!(
                    "no row after it leads to a state with `{}`, or has `done`",
                    permission_attribute(access)
                ),
            };
            sink.push(Diagnostic::new(Code::NeverPerformed, span, text).label(label));
        }
    }
}

/// The attribute of a state in which an access is performed in place.
fn permission_attribute(access: Access) -> &'static str {
    match access.writes() {
        true => "writes",
        false => "reads",
    }
}

/// Reports rows whose access is never performed.
pub(super) fn report_lost_accesses(controller: &Controller, sink: &mut Sink) {
    let rows = controller.rules.iter();
    rows.filter_map(|row| lost_access_error(controller, row))
        .for_each(|diagnostic| sink.push(diagnostic));
}

/// Returns the error of a row whose access is never performed: it has no permission, sends nothing, and leads to a
/// state that waits for nothing. Every engine would accept such a row silently.
fn lost_access_error(controller: &Controller, row: &Rule) -> Option<Diagnostic> {
    let (Event::Access(access), Effect::Take { body, next }) = (row.event, &row.effect) else {
        return None;
    };
    let name = access.name();
    let state = |id: StateId| &controller.states[id.index()];
    let (from, to) = (state(row.state), state(next.unwrap_or(row.state)));
    let is_performed =
        access.needs() > Permission::None && from.permission.min(to.permission) >= access.needs();
    let has_retry = body.contains(&Statement::Retry);
    if is_performed && has_retry {
        let text = format!("a {name} in `{}` is performed, not tried again", from.name);
        let label = format!(
            "leave `retry` out: `{}` and `{}` have the permission",
            from.name, to.name
        );
        return Some(Diagnostic::new(Code::NeverPerformed, row.span, text).label(label));
    }
    let has_send = row.has_statement(&|s| matches!(s, Statement::Send { .. }));
    if is_performed
        || has_retry
        || has_send
        || access.needs() == Permission::None
        || !to.waits.is_empty()
    {
        return None;
    }
    let text = format!("a {name} in `{}` is lost in this row", from.name);
    let lacking_state = if from.permission < access.needs() {
        from
    } else {
        to
    };
    let attribute = permission_attribute(access);
    let diagnostic = Diagnostic::new(Code::NeverPerformed, row.span, text)
        .label("it sends nothing and waits for nothing")
        .note_at(
            lacking_state.span,
            format!("to perform it, this state needs `{attribute}`"),
        )
        .note("write `retry` to try the access again in the next state");
    Some(diagnostic)
}

impl<'c> Accesses<'c> {
    /// Rows in which an access asks the home for something, or starts to wait for it.
    fn starting_rows(&self, access: Access) -> impl Iterator<Item = &'c Rule> + '_ {
        self.controller.rules.iter().filter(move |row| {
            let Effect::Take { body, next } = &row.effect else {
                return false;
            };
            let sends_request = |statement: &Statement| matches!(statement, Statement::Send { message, .. } if self.is_request[message.index()]);
            let has_waits = |next: StateId| !self.controller.states[next.index()].waits.is_empty();
            row.event == Event::Access(access)
                && next.is_some_and(|next| next != row.state)
                && !body.contains(&Statement::Retry)
                && (body.iter().any(sends_request) || next.is_some_and(has_waits))
        })
    }

    /// States in which an access is pending, and true if some row completes it; `None` if the access never asks for
    /// anything.
    fn pending(&self, access: Access) -> Option<(Vec<StateId>, bool)> {
        let mut states: Vec<StateId> = Vec::new();
        let mut completes = false;
        let mut has_start = false;
        for row in self.starting_rows(access) {
            has_start = true;
            self.step(access, row, &mut states, &mut completes);
        }
        let transitions = bulk_transitions(self.controller);
        let mut next = 0;
        while let Some(&state) = states.get(next) {
            next += 1;
            for &(_, to) in transitions.iter().filter(|(from, _)| *from == state) {
                if !states.contains(&to) {
                    states.push(to);
                }
            }
            let rows = self
                .controller
                .rules
                .iter()
                .filter(|row| row.state == state);
            for row in rows.filter(|row| matches!(row.event, Event::Message(_))) {
                self.step(access, row, &mut states, &mut completes);
            }
        }
        has_start.then_some((states, completes))
    }

    /// Follows a row in which the access is pending.
    fn step(&self, access: Access, row: &Rule, states: &mut Vec<StateId>, completes: &mut bool) {
        let Effect::Take { body, next } = &row.effect else {
            return;
        };
        let next_state = next.unwrap_or(row.state);
        if body.contains(&Statement::Done)
            || self.is_performed_in(access, next_state)
            || self.pending_accesses.posts(self.controller, row)
        {
            *completes = true;
        } else if !self.is_abandoned(access, next_state) && !states.contains(&next_state) {
            states.push(next_state);
        }
    }

    /// Returns true if reaching the state performs the access.
    fn is_performed_in(&self, access: Access, state: StateId) -> bool {
        let permission = self.controller.states[state.index()].permission;
        match access {
            Access::Evict | Access::Demote | Access::Clean => self.can_start_from(state),
            _ => access.is_permitted_by(permission),
        }
    }

    /// Returns true if the access starts in this state, so that a pending one has been abandoned and may be retried.
    fn is_abandoned(&self, access: Access, state: StateId) -> bool {
        let restarts = |row: &Rule| row.state == state && row.event == Event::Access(access);
        state == StateId(0) || self.controller.rules.iter().any(restarts)
    }

    /// Returns true if an access may begin in this state: the state is initial, or waits for nothing and has a row for
    /// an access.
    fn can_start_from(&self, id: StateId) -> bool {
        let state: &State = &self.controller.states[id.index()];
        let starts_access = |row: &Rule| row.state == id && matches!(row.event, Event::Access(_));
        id == StateId(0)
            || (state.waits.is_empty() && self.controller.rules.iter().any(starts_access))
    }
}

/// Messages that a state takes.
fn taken_messages(controller: &Controller, state: StateId) -> impl Iterator<Item = MessageId> + '_ {
    let rows = controller
        .rules
        .iter()
        .filter(move |row| row.state == state && matches!(row.effect, Effect::Take { .. }));
    rows.filter_map(|row| match row.event {
        Event::Message(message) => Some(message),
        _ => None,
    })
}
