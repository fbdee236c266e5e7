//! Lowering of the rows for one event to rules.
//!
//! States whose rows for the event agree in everything but the next state share rules. Constant tables hold these
//! states and their next states. This keeps models of constructed homes small, which have many states and few different
//! rows.

use cohkit_protocol::controller::{
    Access, Controller, Effect, Event, Expression, Rule as Row, Set, Statement, Target, Variable,
};
use cohkit_protocol::pending_access::CompletionKind;
use cohkit_protocol::protocol::{MessageId, Type as ValueType, VariableId as VariableName};
use cohkit_protocol::terms::IndexDomain;
use cohkit_system::plan::{CompletionEffect, Plan, ProtocolFacts};
use cohkit_system::stores::StoreSend;

use super::execution::Execution;
use super::expressions::Context;
use super::layout::{ends, Direction, Storage, System};
use super::prior_values::{chosen_from, NotFollowed};
use super::story::Act;
use super::tickets::ConsumedStore;
use super::{Mark, SystemError};
use cohkit_engine::build::{choose, error, when};
use cohkit_engine::model::{
    Expr, Note, Phrase, Piece, Place, Rule, Stmt, TableId, VariableId, Violation,
};

/// An event of an agent, with its effects outside of the agent's rows.
#[derive(Clone)]
pub(super) struct Trigger {
    /// Start of the rules' names.
    pub name: String,
    pub parameters: Vec<VariableId>,
    /// Condition for the event.
    pub present: Expr,
    /// Context of guards.
    pub before: Context,
    /// Context of bodies, after `consume` has run.
    pub after: Context,
    /// Effects independent of the agent's row: the message leaves its channel, and so on.
    pub consume: Vec<Stmt>,
    /// Additional effects if a row takes the event.
    pub accept_effects: Vec<Stmt>,
    /// Additional effects if a row refuses the event; `None` if refusing is no valid reaction.
    pub refuse_effects: Option<Vec<Stmt>>,
    pub message: Option<MessageId>,
    /// The store of the message, if stores are tracked.
    pub store: Option<ConsumedStore>,
    /// Current bit of the copy that comes with the event.
    pub incoming_copy: Option<Expr>,
    /// True if the agent must have a row for the event.
    pub is_required: bool,
    pub spontaneous: bool,
}

/// A row without its state and next state.
#[derive(PartialEq, Clone, Debug)]
struct Case<'c> {
    guard: Option<&'c Expression>,
    row_effect: RowEffect<'c>,
    /// True if the agent holds the line before and after the row.
    holds: (bool, bool),
    /// True if the row leads to another state.
    moves: bool,
    /// True if the row performs a store in the agent's own copy.
    stores: bool,
    /// True if the row performs a read in the agent's own copy.
    reads: bool,
    /// True if the row posts a store.
    posts: bool,
    /// The access that the row begins, if it is outstanding after the row.
    opens: Option<Access>,
    /// True if an atomic access that the home performs may be outstanding after the row.
    atomic: bool,
    done: CompletionEffect,
    /// True if the write that `done` performs may cover only a part of the line.
    is_partial_write: bool,
    /// True if the row abandons a write whose bytes have been sent.
    gives_up: bool,
}

impl Case<'_> {
    /// The set that the case chooses a member of, in terms of the values before the row.
    fn chosen_from(&self) -> Option<Result<Set, NotFollowed>> {
        match self.row_effect {
            RowEffect::Take(body) => chosen_from(body),
            _ => None,
        }
    }
}

#[derive(PartialEq, Clone, Debug)]
enum RowEffect<'c> {
    Take(&'c [Statement]),
    Leave,
    Refuse,
    Never,
}

/// A case that chooses a member of a set, with its effects.
struct Choice {
    class: usize,
    case: usize,
    answer: Answer,
}

/// Effects of one case.
struct Answer {
    /// Additional condition of the case.
    extra_condition: Expr,
    /// True if networks have room for the messages of the case. Without room, the event waits.
    room: Expr,
    body: Vec<Stmt>,
}

impl Answer {
    fn of(body: Vec<Stmt>) -> Answer {
        Answer {
            extra_condition: Expr::Bool(true),
            room: Expr::Bool(true),
            body,
        }
    }
}

/// Chooses between two truth values.
fn either(condition: Expr, then: Expr, otherwise: Expr) -> Expr {
    match (&then, &otherwise) {
        (Expr::Bool(a), Expr::Bool(b)) if a == b => then,
        (Expr::Bool(true), Expr::Bool(false)) => condition,
        (Expr::Bool(false), _) => (!condition).and(otherwise),
        (Expr::Bool(true), _) => condition.or(otherwise),
        _ => condition.then(then, otherwise),
    }
}

/// States with the same cases for an event.
struct Class<'c> {
    states: Vec<usize>,
    cases: Vec<Case<'c>>,
    /// Per case, the next state of each of the states.
    next: Vec<Vec<Option<usize>>>,
}

/// Classes of the states by their cases for an event. States without a row form a class too.
fn classes<'c>(
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
        match classes.iter_mut().find(|c| c.cases == cases) {
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

fn case<'c>(
    facts: &ProtocolFacts,
    controller: &'c Controller,
    row: &'c Row,
    home: bool,
) -> Result<(Case<'c>, Option<usize>), SystemError> {
    let (row_effect, next) = match &row.effect {
        Effect::Take { body, next } => (RowEffect::Take(body), next.map(|s| s.index())),
        Effect::Stall => (RowEffect::Leave, None),
        Effect::Refuse => (RowEffect::Refuse, None),
        Effect::Never => (RowEffect::Never, None),
    };
    let plan = Plan::new(controller, row, (!home).then_some(&facts.accesses));
    if plan.done == CompletionEffect::Unclear {
        return Err(SystemError::Meaningless(format!(
            "`done` in state {} of {} may end a read, a write to the copy or one that the home performs",
            controller.states[row.state.index()].name,
            controller.name
        )));
    }
    let case = Case {
        guard: row.guard.as_ref(),
        row_effect,
        holds: (plan.before.holds, plan.after.holds),
        moves: plan.moves,
        stores: plan.performs,
        reads: plan.reads,
        posts: plan.posts,
        opens: plan.opens,
        atomic: facts.atomics() && !home && {
            let next = next.unwrap_or(row.state.index());
            facts.atomic_in[next]
        },
        done: plan.done,
        is_partial_write: plan.is_partial_write
            && plan.done == CompletionEffect::Ends(CompletionKind::Write),
        gives_up: plan.gives_up,
    };
    Ok((case, next))
}

impl<'p> System<'p> {
    /// Adds the rules by which an agent reacts to an event.
    ///
    /// A spontaneous event has one rule for each case. Any other event has one rule with all cases in its body, so that
    /// the search evaluates each message once. Cases that choose a member of a set have rules of their own. Returns the
    /// condition under which a present event is taken.
    pub fn react(&mut self, event: Event, trigger: Trigger) -> Result<Expr, SystemError> {
        let home = trigger.before.home;
        let controller = self.side(home).controller;
        let classes = classes(&self.facts, controller, event, home)?;
        let table = self.class_table(home, &trigger.name, &classes);
        let mut answers = Vec::new();
        let mut choices = Vec::new();
        let member_parameter = (classes.iter().flat_map(|class| &class.cases))
            .any(|case| case.chosen_from().is_some())
            .then(|| self.parameter("chosen", self.remote_type));
        for (position, class) in classes.iter().enumerate() {
            let mut class_answers = Vec::new();
            for (number, (case, next)) in class.cases.iter().zip(&class.next).enumerate() {
                let mut answer = self.marked_reaction(&trigger, event, (class, number), next)?;
                if let (Some(set), Some(member_parameter), Some(empty_answer)) =
                    (case.chosen_from(), member_parameter, &mut answer)
                {
                    let Ok(set) = set else {
                        let action =
                            "assigns the set of its choice in a loop, or by an expression that names no remotes";
                        return Err(self.unsupported_expression(action, &trigger.after));
                    };
                    let member = self.member(&trigger.before, &set, member_parameter.into());
                    let any_member = self.with_bound(self.remote_type, |system, each| {
                        each.any(system.member(&trigger.before, &set, each.into()))
                    });
                    empty_answer.extra_condition =
                        empty_answer.extra_condition.clone().and(!any_member);
                    let mut trigger = trigger.clone();
                    trigger.after.chosen = Some(member_parameter.into());
                    let chosen = self.marked_reaction(&trigger, event, (class, number), next)?;
                    choices.extend(chosen.map(|answer| Choice {
                        class: position,
                        case: number,
                        answer: Answer {
                            extra_condition: answer.extra_condition.and(member),
                            ..answer
                        },
                    }));
                }
                class_answers.push(answer);
            }
            answers.push(class_answers);
        }
        if trigger.spontaneous {
            self.separate_rules(trigger, &classes, answers, table);
            return Ok(Expr::Bool(true));
        }
        if let Some(member_parameter) = member_parameter {
            self.choosing_rules(&trigger, member_parameter, &classes, choices, table);
        }
        Ok(self.joint_rule(trigger, &classes, answers, table))
    }

    /// Effects of one case of a class, with the marks and watched variables. `None` if the case has none.
    fn marked_reaction(
        &mut self,
        trigger: &Trigger,
        event: Event,
        (class, number): (&Class, usize),
        next: &[Option<usize>],
    ) -> Result<Option<Answer>, SystemError> {
        let case = &class.cases[number];
        let mut answer = self.reaction(trigger, event, class, case, next)?;
        if let Some(answer) = &mut answer {
            if let RowEffect::Take(body) = case.row_effect {
                let watched = self.watch_statements(event, &trigger.after, body);
                answer.body.extend(watched);
            }
            let is_marked = match case.row_effect {
                RowEffect::Take(_) => true,
                // Refusing may be an error, which needs no coverage.
                RowEffect::Refuse => {
                    (trigger.refuse_effects.iter().flatten()).all(|s| !matches!(s, Stmt::Error(_)))
                }
                RowEffect::Leave | RowEffect::Never => false,
            };
            if is_marked {
                let mark = self.mark(&trigger.after, event, number, class);
                answer.body.insert(0, mark);
            }
        }
        Ok(answer)
    }

    /// Adds one rule for each case that chooses a member of a set. The member is a parameter of the rule.
    fn choosing_rules(
        &mut self,
        trigger: &Trigger,
        member_parameter: VariableId,
        classes: &[Class],
        choices: Vec<Choice>,
        table: Option<TableId>,
    ) {
        for Choice {
            class,
            case,
            answer,
        } in choices
        {
            let in_class = self.in_class(&trigger.before, &classes[class], class, table);
            let mut guard = trigger.present.clone().and(in_class);
            for (number, earlier_case) in classes[class].cases[..=case].iter().enumerate() {
                if let Some(condition) = earlier_case.guard {
                    let holds = self.truth(&trigger.before, condition);
                    guard = guard.and(if number == case { holds } else { !holds });
                }
            }
            let mut parameters = trigger.parameters.clone();
            parameters.push(member_parameter);
            self.build.rule(Rule {
                name: format!("{}, choosing", trigger.name),
                parameters,
                guard: guard.and(answer.extra_condition).and(answer.room),
                body: [trigger.consume.clone(), answer.body].concat(),
                spontaneous: false,
                priority: 0,
            });
        }
    }

    /// Statement that marks a taken row, for coverage.
    fn mark(&mut self, context: &Context, event: Event, case: usize, class: &Class) -> Stmt {
        self.marks.push(Mark {
            home: context.home,
            event,
            case,
            states: class.states.clone(),
        });
        Stmt::Note(Note::Marks {
            group: self.marks.len() as u32 - 1,
            member: context.part(self.side(context.home).state).into(),
        })
    }

    /// Adds one rule for each case.
    fn separate_rules(
        &mut self,
        trigger: Trigger,
        classes: &[Class],
        answers: Vec<Vec<Option<Answer>>>,
        table: Option<TableId>,
    ) {
        for (number, (class, answers)) in classes.iter().zip(answers).enumerate() {
            let in_class = self.in_class(&trigger.before, class, number, table);
            let mut rest = trigger.present.clone().and(in_class);
            for (case, answer) in class.cases.iter().zip(answers) {
                let mut guard = rest.clone();
                if let Some(condition) = case.guard {
                    let holds = self.truth(&trigger.before, condition);
                    guard = guard.and(holds.clone());
                    rest = rest.and(!holds);
                }
                if let Some(answer) = answer {
                    let body = [trigger.consume.clone(), answer.body].concat();
                    self.build.rule(Rule {
                        name: trigger.name.clone(),
                        parameters: trigger.parameters.clone(),
                        guard: guard.and(answer.extra_condition).and(answer.room),
                        body,
                        spontaneous: true,
                        priority: 0,
                    });
                }
            }
        }
    }

    /// Adds one rule for all cases. Returns the condition under which some case takes the event, here or in a rule that
    /// chooses a member.
    fn joint_rule(
        &mut self,
        trigger: Trigger,
        classes: &[Class],
        answers: Vec<Vec<Option<Answer>>>,
        table: Option<TableId>,
    ) -> Expr {
        let mut is_open = Expr::Bool(true);
        let mut is_taken = Expr::Bool(true);
        // `None` until a class is found whose states can get here; its effects may well be empty.
        let mut body: Option<Vec<Stmt>> = None;
        for (number, (class, answers)) in classes.iter().zip(answers).enumerate().rev() {
            let in_class = self.in_class(&trigger.before, class, number, table);
            let is_total = class.cases.last().is_some_and(|case| case.guard.is_none());
            // Condition under which the event stays in place, built from the last case to the first.
            let mut waits = Expr::Bool(!is_total && !trigger.is_required);
            let mut stalled = waits.clone();
            let mut effects = match is_total || !trigger.is_required {
                true => Vec::new(),
                false => self.unexpected(&trigger),
            };
            for (case, answer) in class.cases.iter().zip(answers).rev() {
                let stalls = match &answer {
                    Some(answer) => !answer.room.clone(),
                    None => Expr::Bool(true),
                };
                let (waits_now, answer) = match answer {
                    Some(Answer {
                        extra_condition,
                        room,
                        body,
                    }) => match extra_condition.and(room) {
                        Expr::Bool(true) => (Expr::Bool(false), body),
                        can_proceed => (!can_proceed, body),
                    },
                    None => (Expr::Bool(true), Vec::new()),
                };
                match case.guard {
                    Some(condition) => {
                        let guard_before = self.truth(&trigger.before, condition);
                        waits = either(guard_before.clone(), waits_now, waits);
                        stalled = either(guard_before, stalls, stalled);
                        let guard_after = self.truth(&trigger.after, condition);
                        effects = vec![choose(guard_after, answer, effects)];
                    }
                    None => (waits, stalled, effects) = (waits_now, stalls, answer),
                }
            }
            if stalled != Expr::Bool(false) {
                is_taken = (!in_class.clone().and(stalled)).and(is_taken);
            }
            match waits {
                Expr::Bool(true) => is_open = (!in_class).and(is_open),
                waits => {
                    if waits != Expr::Bool(false) {
                        is_open = (!in_class.clone().and(waits)).and(is_open);
                    }
                    body = Some(match body {
                        None => effects,
                        Some(rest) => vec![choose(in_class, effects, rest)],
                    });
                }
            }
        }
        if let Some(body) = body {
            self.build.rule(Rule {
                name: trigger.name,
                parameters: trigger.parameters,
                guard: trigger.present.and(is_open),
                body: [trigger.consume, body].concat(),
                spontaneous: false,
                priority: 0,
            });
        }
        is_taken
    }

    /// Effects of one case of a class; `None` if it has none.
    fn reaction(
        &mut self,
        trigger: &Trigger,
        event: Event,
        class: &Class,
        case: &Case,
        next: &[Option<usize>],
    ) -> Result<Option<Answer>, SystemError> {
        let body = match case.row_effect {
            RowEffect::Take(body) => body,
            RowEffect::Refuse if trigger.refuse_effects.is_some() => {
                return Ok(trigger.refuse_effects.clone().map(Answer::of));
            }
            RowEffect::Refuse | RowEffect::Never if trigger.is_required => {
                return Ok(Some(Answer::of(self.unexpected(trigger))));
            }
            RowEffect::Leave | RowEffect::Refuse | RowEffect::Never => return Ok(None),
        };
        let context = &trigger.after;
        let home = context.home;
        let mut extra_condition = Expr::Bool(true);
        if trigger.spontaneous {
            // A hit has an effect only if it is a store that makes another copy stale.
            let watched = self.watch.is_some_and(|watch| watch.begins(event));
            let is_retry_only = body.iter().all(|s| *s == Statement::Retry);
            if is_retry_only && !case.moves && !watched {
                let checks_order = (case.stores || case.reads) && self.facts.line_order;
                if !checks_order && (!case.stores || !self.facts.coherent) {
                    return Ok(None);
                }
                extra_condition = match case.stores {
                    true => self.has_other_current_copy(&context.line, context.remote.as_ref()),
                    false => Expr::Bool(false),
                };
                extra_condition = extra_condition.or(self.has_posted_stores(context));
            }
            extra_condition = extra_condition.and(self.within_bounds(context, body));
        }
        let own_copy: Option<Place> = (!home).then(|| context.part(self.current));
        let copy = match (&trigger.incoming_copy, &own_copy) {
            (Some(incoming_copy), _) if !home || trigger.message.is_none() => incoming_copy.clone(),
            (_, Some(copy)) => copy.into(),
            _ => self.memory.at(&context.line).into(),
        };
        let mut execution = Execution {
            context,
            message: trigger.message,
            incoming_copy: trigger.incoming_copy.clone(),
            copy,
            done: case.done,
            is_partial_write: case.is_partial_write,
            send: StoreSend::first(case.posts),
            consumed_store: trigger.store.clone(),
        };
        let mut out = trigger.accept_effects.clone();
        out.extend(self.access_note(event, case.stores, body, context));
        if case.reads || case.stores {
            out.extend(self.assert_store_order(context, case.stores));
        }
        if let Some(access) = case.opens {
            if !access.writes() {
                out.extend(self.assert_no_stale_response(context, access));
            }
            out.extend(self.record_access_begin(context, access));
        }
        out.extend(self.statements(&mut execution, body)?);
        out.extend(self.assert_store_kept(&execution));
        let copy = execution.copy;
        if let Some(own_copy) = own_copy {
            if !case.holds.1 {
                if case.holds.0 {
                    out.push(own_copy.set(false));
                }
            } else if case.stores {
                out.extend(self.performed_after(event, body, context));
                out.extend(self.mark_copies_stale(&context.line, true));
                out.push(own_copy.set(true));
            } else if trigger.incoming_copy.is_some()
                || case.done == CompletionEffect::Ends(CompletionKind::Write)
            {
                out.push(own_copy.set(copy));
            }
        }
        if case.gives_up {
            out.extend(self.assert_store_abandoned(context));
        }
        if !home && !case.atomic {
            out.extend(self.reset_atomic_read(context));
        }
        let state = context.part(self.side(home).state);
        if case.moves {
            let next_state = self.next_state(home, class, next, &state);
            out.push(state.set(next_state));
        }
        if case.moves || assigns_variable(body) {
            let becomes = Act::Becomes(self.state_words(context));
            let agent = self.agent(context.remote.as_ref(), &context.line);
            out.push(self.note_act(agent, becomes, &context.line, home));
        }
        let room = self.room(&trigger.before, (trigger.message, &context.chosen), body)?;
        Ok(Some(Answer {
            extra_condition,
            room,
            body: out,
        }))
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
        Some(self.note_action(remote.clone(), &context.line, &action, false))
    }

    /// Note for charts: a store is performed after its row has sent its messages.
    fn performed_after(&self, event: Event, body: &[Statement], context: &Context) -> Option<Stmt> {
        let (Event::Access(access), Some(remote), true) =
            (event, &context.remote, sends_message(body))
        else {
            return None;
        };
        Some(self.note_action(remote.clone(), &context.line, &performs(access), false))
    }

    /// Violation: the agent has no row for the event.
    fn unexpected(&mut self, trigger: &Trigger) -> Vec<Stmt> {
        let context = &trigger.after;
        let mut words = vec![Piece::Text("has no rule for this in ".into())];
        words.extend(self.state_words(context));
        let agent = self.agent(context.remote.as_ref(), &context.line);
        let note = self.note_act(agent, Act::Does(words), &context.line, context.home);
        let controller = &self.side(context.home).controller.name;
        let action = trigger.name.strip_prefix(controller.as_str());
        let action = action.unwrap_or(&trigger.name).to_string();
        let describe =
            |agent: &str| format!("{agent}{action}, but has no rule for it in this state");
        let mut out = vec![note];
        out.extend(self.unexpected_message_error(context, &describe));
        out
    }

    /// Violation: an agent has no row for the event, or its row cannot be executed. `describe` describes it with the
    /// name of the agent. For a remote, the name is that of its state's kind.
    pub fn unexpected_message_error(
        &mut self,
        context: &Context,
        describe: &dyn Fn(&str) -> String,
    ) -> Vec<Stmt> {
        let violation =
            |agent: &str| error(Violation::new("no unexpected message", describe(agent)));
        let kinds = &self.protocol.kinds;
        if context.home || kinds.len() == 1 {
            return vec![violation(&self.side(context.home).controller.name)];
        }
        let state = context.part(self.remote.state);
        let kind = self.kinds().of(state);
        let kinds = kinds.iter().zip(0..);
        kinds
            .map(|(remote_kind, number)| {
                when(kind.clone().is(number), vec![violation(&remote_kind.name)])
            })
            .collect()
    }

    /// True if declared bounds allow the messages of an access.
    fn within_bounds(&mut self, context: &Context, body: &[Statement]) -> Expr {
        let mut guard = Expr::Bool(true);
        for (message, bound) in &self.protocol.bounds.per_message {
            let sends = body.iter().any(|s| {
                matches!(s, Statement::Send { message: m, to: Target::Home, .. } if m == message)
            });
            let flow = self
                .flows
                .iter()
                .position(|f| f.message == *message && f.direction == Direction::ToHome);
            let (true, Some(flow)) = (sends, flow) else {
                continue;
            };
            let limit = i32::from(bound.limit);
            match self.flows[flow].storage {
                Storage::Counted(variable) => {
                    let place = ends(variable.at(&context.line), context.remote.as_ref(), None);
                    let count = self.count_cells(flow, place);
                    guard = guard.and(count.lt(limit));
                }
                Storage::Queued(index, label) => {
                    let queue = self.queue_at(index, &context.line, context.remote.as_ref(), None);
                    let count = self.count_queued(index, label, queue, &context.line);
                    guard = guard.and(count.lt(limit));
                }
            }
        }
        guard
    }

    /// Table of each state's class. `None` if there are too few classes and states to need one.
    fn class_table(&mut self, home: bool, name: &str, classes: &[Class]) -> Option<TableId> {
        let large = classes.iter().any(|c| c.states.len() > 2);
        if classes.len() < 2 || !large {
            return None;
        }
        let side = self.side(home);
        let (states, count) = (side.states, side.controller.states.len());
        let mut values = vec![0; count];
        for (number, class) in classes.iter().enumerate() {
            for &state in &class.states {
                values[state] = number as i32;
            }
        }
        let result = self.build.range("class", 0, classes.len() as i32 - 1);
        let name = format!("class of {name}");
        Some(self.build.table(name, states, result, values))
    }

    fn in_class(
        &self,
        context: &Context,
        class: &Class,
        number: usize,
        table: Option<TableId>,
    ) -> Expr {
        let side = self.side_of(context);
        let state = context.part(side.state);
        match table {
            Some(table) if class.states.len() > 2 => table.of(state).is(number as i32),
            _ if class.states.len() == side.controller.states.len() => Expr::Bool(true),
            _ => Expr::disjunction(
                class
                    .states
                    .iter()
                    .map(|&s| state.clone().is(side.states.nth(s as u32))),
            ),
        }
    }

    /// Next state of a case.
    fn next_state(
        &mut self,
        home: bool,
        class: &Class,
        next: &[Option<usize>],
        state: &Place,
    ) -> Expr {
        let side = self.side(home);
        let states = side.states;
        if let [Some(first), rest @ ..] = next {
            if rest.iter().all(|to| *to == Some(*first)) {
                return states.nth(*first as u32);
            }
        }
        let mut values: Vec<i32> = (0..side.controller.states.len() as i32).collect();
        for (&from, to) in class.states.iter().zip(next) {
            values[from] = to.unwrap_or(from) as i32;
        }
        let table = self.build.table("next", states, states, values);
        table.of(state)
    }

    /// An agent's state and its variables other than zero: `IM_A{owed=1}`.
    pub fn state_words(&self, context: &Context) -> Phrase {
        let side = self.side_of(context);
        let mut words = vec![Piece::Value(context.part(side.state).into())];
        for (name, variable) in (0..).map(VariableName).zip(&side.controller.variables) {
            if !variable.internal {
                let place = self.variable(context, name);
                words.extend(self.assignment_words(variable, &place));
            }
        }
        words
    }

    /// Assignments of a variable, each shown only if it is not zero: [`cohkit_protocol::value_text`] in expressions.
    fn assignment_words(&self, variable: &Variable, place: &Place) -> Phrase {
        let (name, ty) = (&variable.name, variable.ty);
        let unless_zero = |index: &str, is_not: Expr, value: Phrase| {
            let mut phrase = vec![Piece::Text(format!(" {name}{index}="))];
            phrase.extend(value);
            Piece::Choice(is_not, phrase, Vec::new())
        };
        let set = |inside: Vec<Expr>| {
            let is_nonempty = Expr::disjunction(inside.iter().cloned());
            unless_zero("", is_nonempty, self.set_words(ty, inside.into_iter()))
        };
        let ValueType::Array {
            first_domain,
            second_domain,
            ..
        } = ty
        else {
            return vec![match ty {
                ValueType::RemoteSet => {
                    let inside = (0..self.remotes).map(|remote| place.clone().at(remote).into());
                    set(inside.collect())
                }
                _ => {
                    let value = Expr::from(place.clone());
                    let words = match variable.labels.is_empty() {
                        true => self.value_words(ty, &value),
                        false => label_words(&variable.labels, &value),
                    };
                    unless_zero("", value.is_not(0), words)
                }
            }];
        };
        let indices = |domain: IndexDomain| 0..i32::from(domain.count(self.remotes as u16));
        let elements = indices(first_domain).flat_map(|first| match second_domain {
            None => vec![Expr::from(place.clone().at(first))],
            Some(second_domain) => {
                let row =
                    indices(second_domain).map(|second| place.clone().at(first).at(second).into());
                row.collect()
            }
        });
        if ty.is_home_set() {
            return vec![set(elements.map(|member| member.is_not(0)).collect())];
        }
        let elements = self.names.indices(ty).into_iter().zip(elements);
        let words = elements.map(|(index, value)| {
            let words = self.value_words(ty.single(), &value);
            unless_zero(&index, value.is_not(0), words)
        });
        words.collect()
    }
}

/// The label of a value.
fn label_words(labels: &[String], value: &Expr) -> Phrase {
    let mut words = Vec::new();
    for (index, label) in labels.iter().enumerate().rev() {
        let text = vec![Piece::Text(label.clone())];
        words = match words.is_empty() {
            true => text,
            false => vec![Piece::Choice(value.clone().is(index as i32), text, words)],
        };
    }
    words
}

/// Text of a performed access in charts.
pub(super) fn performs(access: Access) -> String {
    format!("performs a {}", access.name())
}

/// True if statements send a message.
fn sends_message(body: &[Statement]) -> bool {
    let mut found = false;
    Statement::visit(body, &mut |s| found |= matches!(s, Statement::Send { .. }));
    found
}

/// True if statements change a variable.
fn assigns_variable(body: &[Statement]) -> bool {
    let mut found = false;
    Statement::visit(body, &mut |s| {
        found |= matches!(
            s,
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
