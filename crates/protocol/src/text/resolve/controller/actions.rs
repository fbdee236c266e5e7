//! Effects and actions of rows.

use crate::controller::{Effect, Event, Expression, Operator, Statement, Target, Value};
use crate::protocol::{Carries, End, MessageId, Permission, StateId, Type};
use crate::text::ast::{Action, ActionKind, Expr, ExprKind, Name, Row};
use crate::text::diagnostic::{Code, Diagnostic};
use crate::text::resolve::expression::Operand;
use crate::text::resolve::scope::{AgentTable, Kind, Scope, Side};
use crate::text::resolve::{report_unknown, Resolver};
use crate::text::Mention;
use cohkit_diagnostics::{suggestion, Span};

impl<'a> Resolver<'a, '_> {
    /// Resolves the effect of a row on one of its events.
    pub(super) fn resolve_effect(
        &mut self,
        row: &Row<'a>,
        event_name: Name<'a>,
        event: Event,
        table: &AgentTable<'a>,
    ) -> Option<Effect> {
        let exclusive = row.actions.iter().find(|action| {
            matches!(
                action.kind,
                ActionKind::Stall | ActionKind::Unreachable | ActionKind::Refuse
            )
        });
        if let Some(action) = exclusive {
            return self.resolve_exclusive_effect(row, action, event_name, event);
        }
        let mut done_actions = row
            .actions
            .iter()
            .filter(|action| matches!(action.kind, ActionKind::Done));
        if let (Some(_), Some(second)) = (done_actions.next(), done_actions.next()) {
            let message = "`done` twice in one row";
            let diagnostic = Diagnostic::new(Code::Misplaced, second.span, message);
            self.sink
                .push(diagnostic.label("the access is already complete"));
        }
        let mut choices =
            (row.actions.iter()).filter(|action| matches!(action.kind, ActionKind::Choose(..)));
        if let (Some(_), Some(second)) = (choices.next(), choices.next()) {
            let diagnostic =
                Diagnostic::new(Code::Misplaced, second.span, "two choices in one row");
            self.sink
                .push(diagnostic.label("a row chooses once at most"));
        }
        let lineless = row.states.is_empty();
        let scope = table.scope(event, lineless);
        let body: Vec<_> = row
            .actions
            .iter()
            .map(|action| self.resolve_action(action, event, &scope, table))
            .collect();
        let next = self.resolve_next_state(row, table);
        Some(Effect::Take {
            body: body.into_iter().collect::<Option<_>>()?,
            next: next?,
        })
    }

    /// Resolves `stall`, `unreachable` or `refuse`, which must be the only action of its row.
    fn resolve_exclusive_effect(
        &mut self,
        row: &Row<'a>,
        action: &Action<'a>,
        event_name: Name<'a>,
        event: Event,
    ) -> Option<Effect> {
        let is_local = matches!(event, Event::Local(_) | Event::Unlock);
        let is_message = matches!(event, Event::Message(_));
        let (effect, word, is_allowed, allowed_events) = match action.kind {
            ActionKind::Stall => (
                Effect::Stall,
                "stall",
                is_local || is_message,
                "a message or a local operation",
            ),
            ActionKind::Unreachable => (Effect::Never, "unreachable", is_message, "a message"),
            _ => (Effect::Refuse, "refuse", is_local, "a local operation"),
        };
        if !is_allowed {
            let message = format!("`{word}` does not fit `{}`", event_name.text);
            self.sink.push(
                Diagnostic::new(Code::Misplaced, action.span, message)
                    .label(format!("only {allowed_events}"))
                    .note_at(event_name.span, "the event"),
            );
            return None;
        }
        if row.actions.len() > 1 {
            self.sink.push(
                Diagnostic::new(
                    Code::Misplaced,
                    action.span,
                    format!("`{word}` must be the only action"),
                )
                .label("remove the other actions"),
            );
            return None;
        }
        if let Some(next) = row.next {
            self.sink.push(
                Diagnostic::new(Code::Next, next.span, format!("`{word}` keeps the state"))
                    .label("leave this cell empty"),
            );
        }
        Some(effect)
    }

    /// Resolves the next state of a row: `Some(None)` if the line keeps its state, `None` after an error.
    fn resolve_next_state(
        &mut self,
        row: &Row<'a>,
        table: &AgentTable<'a>,
    ) -> Option<Option<StateId>> {
        let lineless = row.states.is_empty();
        match row.next {
            Some(name) if name.text == "stay" => Some(None),
            Some(name) if lineless => {
                let text = "a row about no line leads nowhere";
                self.sink.push(
                    Diagnostic::new(Code::Next, name.span, text)
                        .label("it has no line: leave this cell empty"),
                );
                None
            }
            None if lineless => Some(None),
            Some(name) => {
                let state = table.states.find(name, self.sink)?;
                Some(Some(StateId(table.base.0 + state)))
            }
            None => {
                let end = Span {
                    start: row.span.end,
                    end: row.span.end,
                };
                self.sink.push(
                    Diagnostic::new(Code::Next, end, "the row has no next state")
                        .label("expected a state or `stay`"),
                );
                None
            }
        }
    }

    /// Resolves one action of a row or loop.
    pub(in crate::text::resolve) fn resolve_action(
        &mut self,
        action: &Action<'a>,
        event: Event,
        scope: &Scope<'a, '_>,
        table: &AgentTable<'a>,
    ) -> Option<Statement> {
        let mut reject = |message: &str, label: &str| {
            let diagnostic = Diagnostic::new(Code::Misplaced, action.span, message);
            self.sink.push(diagnostic.label(label));
            None
        };
        let needs_line = !matches!(
            action.kind,
            ActionKind::Send { .. }
                | ActionKind::Assign(..)
                | ActionKind::Choose(..)
                | ActionKind::AssignElement(..)
                | ActionKind::Retry
                | ActionKind::BulkTransition(..)
                | ActionKind::For(..)
        );
        if scope.lineless && needs_line {
            return reject(
                "a row about no line",
                "it has no line: it can send, change registers, or move every line of one state to another",
            );
        }
        match &action.kind {
            ActionKind::Send {
                message,
                fields,
                to,
            } => self.resolve_send(*message, fields, to.as_ref(), action.span, scope),
            ActionKind::Assign(name, operator, value) => {
                self.resolve_assignment(action, (*name, *operator, value), scope)
            }
            ActionKind::Choose(..) if scope.message.is_none() => reject(
                "a choice without a message",
                "only a row that takes a message chooses one of a set",
            ),
            ActionKind::Choose(name, set) => self.resolve_choice(*name, set, scope),
            ActionKind::AssignElement(name, index, operator, value) => {
                self.assign_element(*name, index, *operator, value, scope)
            }
            ActionKind::For(name, set, actions) => {
                self.for_each((*name, set, actions), event, scope, table)
            }
            ActionKind::BulkTransition(from, to) => {
                self.resolve_bulk_transition((*from, *to), action.span, scope, table)
            }
            ActionKind::Defer | ActionKind::Write { .. } => {
                self.resolve_memory_write(action, scope)
            }
            ActionKind::Done => match (scope.side, event) {
                (Side::Home, _) => reject(
                    "`done` in the home",
                    "only a remote has accesses to perform",
                ),
                (Side::Remote, Event::Message(_)) => Some(Statement::Done),
                (Side::Remote, _) => reject(
                    "`done` without a message",
                    "it performs the pending access with the bytes of a message",
                ),
            },
            ActionKind::Retry => match event {
                Event::Access(access) if access.needs() > Permission::None => {
                    Some(Statement::Retry)
                }
                Event::Access(access) if !access.about_line() => Some(Statement::Retry),
                _ => reject(
                    "nothing to try again",
                    "`retry` is only for accesses that read or write, or are about no line",
                ),
            },
            ActionKind::AcknowledgeUnlock if event == Event::Unlock || table.unlock => {
                Some(Statement::AcknowledgeUnlock)
            }
            ActionKind::AcknowledgeUnlock => reject(
                "nothing can be unlocked here",
                "declare `local unlock` in the home",
            ),
            ActionKind::Acknowledge(name) => self.resolve_acknowledgement(*name, table),
            // Reported by `resolve_effect`, which does not call this function for them.
            ActionKind::Stall | ActionKind::Unreachable | ActionKind::Refuse => None,
        }
    }

    /// Resolves `NAME := VALUE`, `NAME += VALUE` or `NAME -= VALUE`, where `NAME` may be an array.
    fn resolve_assignment(
        &mut self,
        action: &Action<'a>,
        (name, operator, value): (Name<'a>, Option<Operator>, &Expr<'a>),
        scope: &Scope<'a, '_>,
    ) -> Option<Statement> {
        let variable = scope.variables.find(name, self.sink)?;
        let ty = scope.types[usize::from(variable)];
        let id = scope.variable(variable);
        self.require_line(name, variable, scope)?;
        if ty.is_home_set() {
            return self.assign_homes(id, operator, value, scope);
        }
        if ty.is_array() {
            return self.assign_all_elements(action, (name, id, ty), scope);
        }
        let value = match operator {
            None => self.resolve_stored(value, ty, scope)?,
            Some(operator) => self.compound_value(name, operator, (id, ty), value, scope)?,
        };
        Some(match value {
            Value::Single(value, _) => Statement::Assign(id, value),
            Value::Set(set) => Statement::AssignSet(id, set),
        })
    }

    /// Resolves the choice of one remote of a set into a variable.
    fn resolve_choice(
        &mut self,
        name: Name<'a>,
        set: &Expr<'a>,
        scope: &Scope<'a, '_>,
    ) -> Option<Statement> {
        let variable = scope.variables.find(name, self.sink)?;
        self.require_line(name, variable, scope)?;
        if scope.types[usize::from(variable)] != Type::Remote {
            let text = format!("`{}` is not a remote", name.text);
            let diagnostic = Diagnostic::new(Code::Type, name.span, text);
            let declared = scope.variables.list[usize::from(variable)].span;
            self.sink.push(
                diagnostic
                    .label("becomes one of a set of remotes")
                    .note_at(declared, "declared here"),
            );
            return None;
        }
        match self.resolve_expression(set, scope)? {
            Operand::Set(set) => Some(Statement::Choose(scope.variable(variable), set)),
            Operand::Single(_, kind) => self.kind_mismatch(set, Kind::Set, kind),
            Operand::Homes(_) => {
                self.sink.push(
                    Diagnostic::new(Code::Type, set.span, "a set of homes")
                        .label("one of a `set of remote` is chosen"),
                );
                None
            }
        }
    }

    /// Resolves `write`, `defer` or `write deferred`: actions of the home on the bytes of a message. Returns `None` for
    /// other actions.
    fn resolve_memory_write(
        &mut self,
        action: &Action<'a>,
        scope: &Scope<'a, '_>,
    ) -> Option<Statement> {
        let carries = scope
            .message
            .map(|message| self.messages[message.index()].carries);
        let mut reject = |code, message: &str, label: &str| {
            self.sink
                .push(Diagnostic::new(code, action.span, message).label(label));
            None
        };
        match (&action.kind, scope.side) {
            (ActionKind::Defer, side) => match (side, carries) {
                (Side::Home, Some(Carries::Store | Carries::PartialStore)) => {
                    Some(Statement::DeferStore)
                }
                _ => reject(
                    Code::Misplaced,
                    "no write to defer",
                    "only a home defers, and only the bytes of a `(store)` or `(partial store)`",
                ),
            },
            (ActionKind::Write { deferred: true }, Side::Home) => Some(Statement::CommitDeferred),
            (ActionKind::Write { deferred }, Side::Remote) => {
                let message = match deferred {
                    true => "`write deferred` in the remote",
                    false => "`write` in the remote",
                };
                reject(Code::Misplaced, message, "only the home writes to memory")
            }
            (ActionKind::Write { deferred: false }, Side::Home) => match carries {
                None | Some(Carries::Nothing) => reject(
                    Code::Carries,
                    "nothing to write",
                    "this row's event carries no line",
                ),
                Some(_) => Some(Statement::WriteMemory),
            },
            _ => None,
        }
    }

    /// Resolves `acknowledge NAME` of a local operation.
    fn resolve_acknowledgement(
        &mut self,
        name: Name<'a>,
        table: &AgentTable<'a>,
    ) -> Option<Statement> {
        let mut locals = table.locals.iter();
        let local = locals.position(|local| local.name == name.text);
        if local.is_none() {
            let known = table.locals.iter().map(|local| local.name.as_str());
            report_unknown("local operation", name, known, self.sink);
        }
        local.map(|local| Statement::Acknowledge(local as u8))
    }

    /// Resolves `send MESSAGE (FIELDS) to TARGET`, and checks the direction of the channel.
    pub(super) fn resolve_send(
        &mut self,
        name: Name<'a>,
        field_values: &[(Name<'a>, Expr<'a>)],
        to: Option<&Expr<'a>>,
        span: Span,
        scope: &Scope<'a, '_>,
    ) -> Option<Statement> {
        let resolved = self.message_named(name);
        let Some(message) = resolved else {
            // Errors in the target are reported all the same.
            self.resolve_target(resolved, to, span, scope);
            return None;
        };
        self.is_sent[message.index()] = true;
        if scope.lineless {
            self.lineless_sends.push((message, name.span));
        }
        self.is_sent_by_home[message.index()] |= scope.side == Side::Home;
        let channel = self.channel_of(message).clone();
        if !scope.side.is_end(channel.from) {
            let diagnostic = Diagnostic::new(
                Code::Direction,
                name.span,
                format!("{} cannot send `{}`", scope.side.name(), name.text),
            )
            .label(format!(
                "travels on `{}`, toward {}",
                channel.name,
                scope.side.name()
            ))
            .note_at(channel.span, "this channel's direction");
            self.sink.push(diagnostic);
            return None;
        }
        if let (Side::Remote, Some(only), Some(this_kind)) =
            (scope.side, channel.kinds[0], scope.kind)
        {
            if only != this_kind {
                let from = self.kind_names.list[only.index()].text;
                let text = format!("this kind of remotes cannot send `{}`", name.text);
                let diagnostic = Diagnostic::new(Code::Direction, name.span, text)
                    .label(format!("travels on `{}`, from `{from}`", channel.name))
                    .note_at(channel.span, "this channel's direction");
                self.sink.push(diagnostic);
                return None;
            }
        }
        let fields = self.resolve_fields(message, name, field_values, scope);
        let target = self.resolve_target(resolved, to, span, scope)?;
        let receiver = match &target {
            Target::Home | Target::HomeAt(_) => Side::Home,
            Target::Remote(_) | Target::Each(_) => Side::Remote,
        };
        if let Target::HomeAt(_) = target {
            let target_span = to.map_or(span, |to| to.span);
            self.lineless_sends.push((message, target_span));
        }
        if !receiver.is_end(channel.to) {
            let message = format!(
                "`{}` cannot be sent to {}",
                name.text,
                if receiver == Side::Home {
                    "the home"
                } else {
                    "a remote"
                }
            );
            let diagnostic =
                Diagnostic::new(Code::Direction, to.map_or(span, |to| to.span), message)
                    .label(format!("`{}` does not lead there", channel.name))
                    .note_at(channel.span, "this channel's direction");
            self.sink.push(diagnostic);
            return None;
        }
        Some(Statement::Send {
            message,
            to: target,
            fields: fields?,
        })
    }

    /// Resolves the receiver of a message. Without `to`, it follows from the channel and the event of the row.
    pub(super) fn resolve_target(
        &mut self,
        message: Option<MessageId>,
        to: Option<&Expr<'a>>,
        span: Span,
        scope: &Scope<'a, '_>,
    ) -> Option<Target> {
        let word = to.and_then(|to| {
            if let ExprKind::Word(word) = to.kind {
                Some(word)
            } else {
                None
            }
        });
        // The sender of a message that only the home sends is the home.
        let from_home = scope
            .message
            .is_some_and(|current| self.channel_of(current).from == End::Home);
        match (scope.side, word, to) {
            (Side::Remote, Some("home"), _) => Some(Target::Home),
            (Side::Remote, Some("sender"), _) if from_home => Some(Target::Home),
            (Side::Home, Some("home"), Some(to)) if !self.homes_declared => {
                self.sink.push(
                    Diagnostic::new(Code::Direction, to.span, "the home cannot send to itself")
                        .label("name a remote"),
                );
                None
            }
            (Side::Remote, _, None) if self.homes_declared && scope.lineless && !from_home => {
                let text = "the receiving home is missing";
                self.sink.push(
                    Diagnostic::new(Code::Direction, span, text)
                        .label("add `to` a home: this row is about no line"),
                );
                None
            }
            (Side::Remote, _, None)
                if message.is_none_or(|message| self.channel_of(message).to != End::Remote) =>
            {
                Some(Target::Home)
            }
            (Side::Home, _, None) if scope.message.is_some() && !from_home => {
                Some(Target::Remote(Expression::Sender))
            }
            (_, _, None) => {
                let reason = if scope.side == Side::Home {
                    "this row's event has no sender"
                } else {
                    "its channel leads to remotes"
                };
                self.sink.push(
                    Diagnostic::new(Code::Direction, span, "the receiver is missing")
                        .label("add `to TARGET`")
                        .note(reason),
                );
                None
            }
            (_, Some("none"), Some(to)) => {
                self.sink.push(
                    Diagnostic::new(Code::Type, to.span, "nothing can be sent to `none`")
                        .label("name a remote"),
                );
                None
            }
            (_, _, Some(to)) => match self.resolve_expression(to, scope)? {
                Operand::Set(set) => Some(Target::Each(set)),
                Operand::Single(home, Kind::Home) => Some(Target::HomeAt(home)),
                Operand::Single(remote, Kind::Remote) => {
                    if (scope.side, &remote) == (Side::Remote, &Expression::Sender) {
                        self.sender_targets.push(to.span);
                    }
                    Some(Target::Remote(remote))
                }
                Operand::Single(..) | Operand::Homes(_) => {
                    self.resolve_typed(to, Kind::Remote, scope);
                    None
                }
            },
        }
    }

    /// Values of a message's fields, in the order of its declaration.
    pub(super) fn resolve_fields(
        &mut self,
        message: MessageId,
        name: Name<'a>,
        field_values: &[(Name<'a>, Expr<'a>)],
        scope: &Scope<'a, '_>,
    ) -> Option<Vec<Value>> {
        let declared = self.messages[message.index()].fields.clone();
        let mut values: Vec<Option<Value>> = vec![None; declared.len()];
        let mut given_spans: Vec<Option<Span>> = vec![None; declared.len()];
        for (field, value) in field_values {
            let Some(position) = declared.iter().position(|known| known.name == field.text) else {
                let help = suggestion(
                    field.text,
                    "field",
                    declared.iter().map(|known| known.name.as_str()),
                );
                let diagnostic = Diagnostic::new(
                    Code::Fields,
                    field.span,
                    format!("`{}` has no field `{}`", name.text, field.text),
                )
                .label("not a field")
                .note(help);
                self.sink.push(diagnostic);
                continue;
            };
            self.sink.mentions.push(Mention {
                span: field.span,
                declaration: declared[position].span,
                kind: "field",
            });
            if let Some(first) = given_spans[position].replace(field.span) {
                let message = format!("`{}` is given twice", field.text);
                self.sink.push(
                    Diagnostic::new(Code::Fields, field.span, message)
                        .label("again")
                        .note_at(first, "given here"),
                );
                continue;
            }
            values[position] = self.resolve_stored(value, declared[position].ty, scope);
        }
        let missing: Vec<String> = declared
            .iter()
            .zip(&given_spans)
            .filter(|(_, given_span)| given_span.is_none())
            .map(|(field, _)| format!("`{}`", field.name))
            .collect();
        if !missing.is_empty() {
            let message = format!("`{}` lacks its field {}", name.text, missing.join(", "));
            self.sink.push(
                Diagnostic::new(Code::Fields, name.span, message)
                    .label(format!("write `{} (FIELD = VALUE, ...)`", name.text)),
            );
        }
        values.into_iter().collect()
    }
}
