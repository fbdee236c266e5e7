//! Cases of an event: states whose rows for the event agree in everything but the next state share rules.
//!
//! Constant tables hold these states and their next states. This keeps models of constructed homes small, which have
//! many states and few different rows.

use cohkit_protocol::controller::{
    Access, Controller, Effect, Event, Expression, Rule as Row, Set, Statement,
};
use cohkit_protocol::pending_access::CompletionKind;
use cohkit_system::plan::{CompletionEffect, Plan, ProtocolFacts};

use super::options::SystemError;
use super::prior_values::{chosen_from, UnknownValue};

/// A row without its state and next state.
#[derive(PartialEq, Clone, Debug)]
pub(super) struct Case<'c> {
    /// Condition of the row; `None` if it always holds. The rows of a state apply in order, so earlier guards are
    /// false.
    pub guard: Option<&'c Expression>,
    /// Reaction of the row to the event.
    pub row_effect: RowEffect<'c>,
    /// True if the agent holds the line before the row.
    pub held_line: bool,
    /// True if the agent holds the line after the row.
    pub holds_line: bool,
    /// True if the row leads to another state.
    pub changes_state: bool,
    /// True if the row performs a store in the agent's own copy.
    pub stores: bool,
    /// True if the row performs a read in the agent's own copy.
    pub reads: bool,
    /// True if the row posts a store.
    pub posts: bool,
    /// The access that the row begins, if it is outstanding after the row.
    pub begun_access: Option<Access>,
    /// True if an atomic access that the home performs may be outstanding after the row.
    pub atomic: bool,
    /// Access that `done` completes in the row, if any. Never [`CompletionEffect::Ambiguous`].
    pub done: CompletionEffect,
    /// True if the write that `done` performs may cover only a part of the line.
    pub is_partial_write: bool,
    /// True if the row abandons a write whose bytes have been sent.
    pub abandons_write: bool,
}

impl Case<'_> {
    /// Returns the set from which the row chooses a member, in terms of the values before the row. `None` if the row
    /// does not choose.
    pub fn chosen_from(&self) -> Option<Result<Set, UnknownValue>> {
        match self.row_effect {
            RowEffect::Take(body) => chosen_from(body),
            _ => None,
        }
    }
}

/// Reaction of a row to its event, as in [`Effect`] without the next state.
#[derive(PartialEq, Clone, Debug)]
pub(super) enum RowEffect<'c> {
    /// Consume the event and execute these statements.
    Take(&'c [Statement]),
    /// Stall: the event stays in place.
    Stall,
    /// Refuse a local operation or an unlock.
    Refuse,
    /// The protocol file declares that the event never occurs here.
    Never,
}

/// States with the same cases for an event.
pub(super) struct Class<'c> {
    /// Indices into the states of the controller.
    pub states: Vec<usize>,
    /// Cases in the order of their rows. Empty if the states have no row for the event; no case follows one without
    /// a guard.
    pub cases: Vec<Case<'c>>,
    /// Next states, indexed by case and then by position in `states`; `None` if the row names no next state.
    pub next: Vec<Vec<Option<usize>>>,
}

/// A case of a class.
#[derive(Clone, Copy)]
pub(super) struct ClassCase<'c> {
    /// Class of the states.
    pub class: &'c Class<'c>,
    /// Index of the case in its class.
    pub number: usize,
}

impl<'c> ClassCase<'c> {
    /// The case.
    pub fn case(self) -> &'c Case<'c> {
        &self.class.cases[self.number]
    }

    /// Next state of the case from each of the class's states; `None` if the row names no next state.
    pub fn next(self) -> &'c [Option<usize>] {
        &self.class.next[self.number]
    }
}

/// Returns the classes of a controller's states by their cases for an event. States without a row form a class too.
/// `home` is true for the home's controller.
///
/// # Errors
/// `done` in some row is ambiguous.
pub(super) fn classes<'c>(
    facts: &ProtocolFacts,
    controller: &'c Controller,
    event: Event,
    home: bool,
) -> Result<Vec<Class<'c>>, SystemError> {
    let mut classes: Vec<Class> = Vec::new();
    for state in 0..controller.states.len() {
        let rows = controller
            .rules
            .iter()
            .filter(|row| row.event == event && row.state.index() == state);
        let mut cases = Vec::new();
        let mut next = Vec::new();
        for row in rows {
            let (case, next_state) = case(facts, controller, row, home)?;
            let is_last = case.guard.is_none();
            cases.push(case);
            next.push(next_state);
            if is_last {
                break;
            }
        }
        match classes.iter_mut().find(|class| class.cases == cases) {
            Some(class) => {
                class.states.push(state);
                for (next_states, next_state) in class.next.iter_mut().zip(next) {
                    next_states.push(next_state);
                }
            }
            None => classes.push(Class {
                states: vec![state],
                cases,
                next: next.into_iter().map(|to| vec![to]).collect(),
            }),
        }
    }
    Ok(classes)
}

/// Returns the case of a row, and its next state as an index; `None` if the row names no next state.
///
/// # Errors
/// `done` in the row is ambiguous.
fn case<'c>(
    facts: &ProtocolFacts,
    controller: &'c Controller,
    row: &'c Row,
    home: bool,
) -> Result<(Case<'c>, Option<usize>), SystemError> {
    let (row_effect, next) = match &row.effect {
        Effect::Take { body, next } => (RowEffect::Take(body), next.map(|state| state.index())),
        Effect::Stall => (RowEffect::Stall, None),
        Effect::Refuse => (RowEffect::Refuse, None),
        Effect::Never => (RowEffect::Never, None),
    };
    let plan = Plan::new(controller, row, (!home).then_some(&facts.accesses));
    if plan.effects.done == CompletionEffect::Ambiguous {
        return Err(SystemError::Invalid(format!(
            "`done` in state {} of {} may end a read, a write to the copy or one that the home performs",
            controller.states[row.state.index()].name,
            controller.name
        )));
    }
    let case = Case {
        guard: row.guard.as_ref(),
        row_effect,
        held_line: plan.before.holds,
        holds_line: plan.after.holds,
        changes_state: plan.changes_state,
        stores: plan.effects.performs,
        reads: plan.reads,
        posts: plan.posts,
        begun_access: plan.begun_access,
        atomic: facts.atomics() && !home && {
            let next = next.unwrap_or(row.state.index());
            facts.atomic_in[next]
        },
        done: plan.effects.done,
        is_partial_write: plan.effects.is_partial_write
            && plan.effects.done == CompletionEffect::Completes(CompletionKind::Write),
        abandons_write: plan.effects.abandons_write,
    };
    Ok((case, next))
}
