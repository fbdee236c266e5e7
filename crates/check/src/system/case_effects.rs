//! Effects of one case of an event: those of its row, of the access or message, and of the next state.

use cohkit_engine::model::{Expr, Piece, Place, Stmt};
use cohkit_protocol::controller::{Access, Event, Statement};
use cohkit_protocol::pending_access::CompletionKind;
use cohkit_system::plan::CompletionEffect;
use cohkit_system::stores::StoreSend;

use super::cases::{Case, ClassCase, RowEffect};
use super::charts::Act;
use super::context::Context;
use super::effects::Effects;
use super::execution::Execution;
use super::message_capacity::{capacity_condition, within_bounds};
use super::options::SystemError;
use super::trigger::{CaseEffects, Trigger};

impl Effects<'_, '_> {
    /// Returns the effects of one case of a class; `None` if it has none.
    ///
    /// # Errors
    /// A statement has no meaning in its place.
    pub fn case_effects(
        &self,
        trigger: &Trigger,
        class_case: ClassCase,
    ) -> Result<Option<CaseEffects>, SystemError> {
        let (event, case) = (trigger.event, class_case.case());
        let body = match case.row_effect {
            RowEffect::Take(body) => body,
            RowEffect::Refuse if trigger.refuse_effects.is_some() => {
                return Ok(trigger.refuse_effects.clone().map(CaseEffects::of));
            }
            RowEffect::Refuse | RowEffect::Never if trigger.is_required => {
                return Ok(Some(CaseEffects::of(self.unexpected(trigger))));
            }
            RowEffect::Stall | RowEffect::Refuse | RowEffect::Never => return Ok(None),
        };
        let context = &trigger.after;
        let mut extra_condition = Expr::Bool(true);
        if trigger.spontaneous {
            let Some(condition) = self.access_condition(event, case, body, context) else {
                return Ok(None);
            };
            extra_condition = condition.and(within_bounds(self.layout, context, body));
        }
        let mut out = trigger.accept_effects.clone();
        out.extend(self.access_effects(event, case, body, context));
        let mut execution = self.execution(trigger, case);
        out.extend(self.statements(&mut execution, body)?);
        out.extend(self.stores.assert_store_kept(&execution));
        if !context.home {
            let copy = execution.copy;
            out.extend(self.own_copy_effects(trigger, case, body, copy));
        }
        if case.abandons_write {
            out.extend(self.stores.assert_store_abandoned(context));
        }
        if !context.home && !case.atomic {
            out.extend(self.stores.reset_atomic_read(context));
        }
        if case.changes_state {
            let state = self.agents.state(context);
            let next_state = self.next_state(context, class_case);
            out.push(state.set(next_state));
        }
        if case.changes_state || assigns_variable(body) {
            let becomes = Act::Becomes(self.agents.state_words(context));
            let agent = self.frame.agent(context.remote.as_ref(), &context.line);
            out.push((self.frame).note_act(agent, becomes, &context.line, context.home));
        }
        let consumed = (trigger.message, &context.chosen);
        let has_capacity = capacity_condition(self.layout, &trigger.before, consumed, body)?;
        Ok(Some(CaseEffects {
            extra_condition,
            has_capacity,
            body: out,
        }))
    }

    /// Condition under which an access has an effect; `None` if it never has one. A hit has an effect only if it is a
    /// store that makes another copy stale, or if it is watched or checked.
    fn access_condition(
        &self,
        event: Event,
        case: &Case,
        body: &[Statement],
        context: &Context,
    ) -> Option<Expr> {
        let is_watched = (self.layout.watch.as_ref()).is_some_and(|watch| watch.begins(event));
        let is_retry_only = body.iter().all(|statement| *statement == Statement::Retry);
        if !is_retry_only || case.changes_state || is_watched {
            return Some(Expr::Bool(true));
        }
        let facts = &self.frame.facts;
        let checks_order = (case.stores || case.reads) && facts.line_order;
        if !checks_order && (!case.stores || !facts.coherent) {
            return None;
        }
        let changes = match case.stores {
            true => (self.copies).has_other_current(&context.line, context.remote.as_ref()),
            false => Expr::Bool(false),
        };
        Some(changes.or(self.stores.has_posted_stores(context)))
    }

    /// Returns the effects of an access before its row: its note, and the checks of its order.
    fn access_effects(
        &self,
        event: Event,
        case: &Case,
        body: &[Statement],
        context: &Context,
    ) -> Vec<Stmt> {
        let mut out = Vec::new();
        out.extend(self.access_note(event, case.stores, body, context));
        if case.reads || case.stores {
            out.extend(self.stores.assert_store_order(context, case.stores));
        }
        if let Some(access) = case.begun_access {
            if !access.writes() {
                out.extend(self.copies.assert_no_stale_response(context, access));
            }
            out.extend(self.stores.record_access_begin(context, access));
        }
        out
    }

    /// The execution of a case's row.
    fn execution<'c>(&self, trigger: &'c Trigger, case: &Case) -> Execution<'c> {
        let context = &trigger.after;
        let memory = &self.copies.memory;
        let copy = match &trigger.incoming_copy {
            Some(copy) if !context.home || trigger.message.is_none() => copy.clone(),
            _ if context.home => memory.current.at(&context.line).into(),
            _ => context.part(memory.copies).into(),
        };
        Execution {
            context,
            message: trigger.message,
            incoming_copy: trigger.incoming_copy.clone(),
            copy,
            done: case.done,
            is_partial_write: case.is_partial_write,
            send: StoreSend::first(case.posts),
            consumed_store: trigger.store.clone(),
        }
    }

    /// Effects of a remote's row on the bit of its own copy. `copy` is that bit as the row's statements leave it.
    fn own_copy_effects(
        &self,
        trigger: &Trigger,
        case: &Case,
        body: &[Statement],
        copy: Expr,
    ) -> Vec<Stmt> {
        let context = &trigger.after;
        let own_copy: Place = context.part(self.copies.memory.copies);
        let mut out = Vec::new();
        if !case.holds_line {
            if case.held_line {
                out.push(own_copy.set(false));
            }
        } else if case.stores {
            out.extend(self.performed_after(trigger.event, body, context));
            out.extend(self.copies.mark_stale(&context.line, true));
            out.push(own_copy.set(true));
        } else if trigger.incoming_copy.is_some()
            || case.done == CompletionEffect::Completes(CompletionKind::Write)
        {
            out.push(own_copy.set(copy));
        }
        out
    }

    /// Note for charts: an access begins, or is performed at once.
    fn access_note(
        &self,
        event: Event,
        stores: bool,
        body: &[Statement],
        context: &Context,
    ) -> Option<Stmt> {
        let (Event::Access(access), Some(remote)) = (event, &context.remote) else {
            return None;
        };
        let action = match stores && !sends_message(body) {
            true => performs(access),
            false => access.name().into(),
        };
        Some(
            self.frame
                .note_action(remote.clone(), &context.line, &action, false),
        )
    }

    /// Note for charts: a store is performed after its row has sent its messages.
    fn performed_after(&self, event: Event, body: &[Statement], context: &Context) -> Option<Stmt> {
        let (Event::Access(access), Some(remote), true) =
            (event, &context.remote, sends_message(body))
        else {
            return None;
        };
        Some(
            self.frame
                .note_action(remote.clone(), &context.line, &performs(access), false),
        )
    }

    /// Violation: the agent has no row for the event.
    pub fn unexpected(&self, trigger: &Trigger) -> Vec<Stmt> {
        let context = &trigger.after;
        let mut words = vec![Piece::Text("has no rule for this in ".into())];
        words.extend(self.agents.state_words(context));
        let agent = self.frame.agent(context.remote.as_ref(), &context.line);
        let note = self
            .frame
            .note_act(agent, Act::Does(words), &context.line, context.home);
        let controller = &self.agents.side(context.home).controller.name;
        let action = trigger.name.strip_prefix(controller.as_str());
        let action = action.unwrap_or(&trigger.name).to_string();
        let describe =
            |agent: &str| format!("{agent}{action}, but has no rule for it in this state");
        let mut out = vec![note];
        out.extend(self.agents.unexpected_message_error(context, &describe));
        out
    }

    /// Returns the next state of a case. If it depends on the state of the agent, a constant table holds it.
    fn next_state(&self, context: &Context, class_case: ClassCase) -> Expr {
        let next = class_case.next();
        let side = self.agents.side_of(context);
        let states = side.states;
        if let [Some(first), rest @ ..] = next {
            if rest.iter().all(|to| *to == Some(*first)) {
                return states.nth(*first as u32);
            }
        }
        let mut values: Vec<i32> = (0..side.controller.states.len() as i32).collect();
        for (&from, to) in class_case.class.states.iter().zip(next) {
            values[from] = to.unwrap_or(from) as i32;
        }
        let table = self.frame.scope.table("next", states, states, values);
        table.of(self.agents.state(context))
    }
}

/// Text of a performed access in charts.
pub(super) fn performs(access: Access) -> String {
    format!("performs a {}", access.name())
}

/// True if statements send a message.
fn sends_message(body: &[Statement]) -> bool {
    let mut found = false;
    Statement::visit(body, &mut |statement| {
        found |= matches!(statement, Statement::Send { .. });
    });
    found
}

/// True if statements change a variable.
fn assigns_variable(body: &[Statement]) -> bool {
    let mut found = false;
    Statement::visit(body, &mut |statement| {
        found |= matches!(
            statement,
            Statement::Assign(..)
                | Statement::AssignSet(..)
                | Statement::Choose(..)
                | Statement::AssignElement(..)
                | Statement::AssignAll(..)
                | Statement::AssignHomes(..)
        );
    });
    found
}
