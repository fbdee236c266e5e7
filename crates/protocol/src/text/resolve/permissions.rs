//! Conditional permissions: `reads if E`, `writes if E`.
//!
//! Every engine uses the permission of the state alone. So a state with a conditional permission is split into one
//! state per permission that it may have. Rows that lead there are distinguished by the values that they leave in the
//! variables of the conditions. An agent is in one of these states if and only if its variables say so. Stages after
//! the language do not see conditions.

use super::loops::VariableUses;
use super::scope::{AgentTable, Kind as ValueKind, PermissionCondition, Scope, Side};
use super::{report_too_many, Resolver};
use crate::controller::{
    Access, Controller, Effect, Event, Expression, Initial, Operator, Rule, Statement,
};
use crate::protocol as p;
use crate::protocol::{Permission, StateId, Type, VariableId};
use crate::text::ast::{Agent, Expr, StateItem, StatePermission};
use crate::text::diagnostic::{Code, Diagnostic};
use cohkit_diagnostics::Span;
use rustc_hash::FxHashSet;

/// Maximum number of value combinations of the variables of a condition, and of those that the analysis of a row
/// enumerates.
const MAX_VALUES: usize = 1 << 12;

impl PermissionCondition {
    /// Condition, before a row with this effect, that the state has this permission after it.
    fn condition_for(&self, permission: Permission, effects: &VariableEffects) -> Expression {
        let (reads, writes) = (effects.rewrite(&self.reads), effects.rewrite(&self.writes));
        match permission {
            Permission::Write => writes,
            Permission::Read => conjunction(reads, negation(writes)),
            Permission::None => conjunction(negation(reads), negation(writes)),
        }
    }
}

/// Value that the analysis assumes for a variable or field, and the number of values of its type.
#[derive(Clone, Copy, PartialEq)]
struct AssumedValue {
    /// Variable or field with the value.
    source: PermissionSource,
    /// Number of values of its type; they are 0 to one less than this number.
    values: u16,
    /// Assumed value.
    value: u16,
}

/// Source of a value that a condition may depend on.
#[derive(Clone, Copy, PartialEq)]
enum PermissionSource {
    /// Variable before the row.
    Variable(VariableId),
    /// Field of the taken message, by position.
    Field(u8),
}

/// Effect of the statements of a row on variables, up to some statement.
#[derive(Default)]
struct VariableEffects {
    /// New values, as expressions over the values before the row.
    values: Vec<(VariableId, Expression)>,
    /// Variables with an unknown new value: set in a loop or condition, or not a single value.
    unknown: Vec<VariableId>,
}

impl VariableEffects {
    /// Rewrites an expression over the values after the row as one over the values before it.
    fn rewrite(&self, expression: &Expression) -> Expression {
        let rewrite = |inner: &Expression| Box::new(self.rewrite(inner));
        match expression {
            Expression::Variable(variable) => {
                let mut assignments = self.values.iter().rev();
                let latest = assignments.find(|(assigned, _)| assigned == variable);
                latest.map_or_else(|| expression.clone(), |(_, value)| value.clone())
            }
            Expression::Not(inner) => Expression::Not(rewrite(inner)),
            Expression::Modulo(inner, size) => Expression::Modulo(rewrite(inner), *size),
            Expression::Table(table, inner) => Expression::Table(*table, rewrite(inner)),
            Expression::Binary(operator, left, right) => {
                Expression::Binary(*operator, rewrite(left), rewrite(right))
            }
            other => other.clone(),
        }
    }

    /// Returns true if the expression cannot be rewritten over the values before the row.
    fn is_unknown(&self, expression: &Expression) -> bool {
        match expression {
            Expression::Variable(variable) => self.unknown.contains(variable),
            Expression::Not(inner) | Expression::Modulo(inner, _) | Expression::Table(_, inner) => {
                self.is_unknown(inner)
            }
            Expression::Binary(_, left, right) => self.is_unknown(left) || self.is_unknown(right),
            other => {
                let mut uses = VariableUses::default();
                uses.record_reads(other);
                let is_assigned = |read| self.values.iter().any(|(assigned, _)| *assigned == read);
                let mut variables = uses.variables();
                variables.any(|read| is_assigned(read) || self.unknown.contains(&read))
            }
        }
    }

    /// Adds the effect of further statements of the row.
    fn apply(&mut self, body: &[Statement]) {
        for statement in body {
            match statement {
                Statement::Assign(variable, value) => {
                    let unknown = self.is_unknown(value);
                    self.values.push((*variable, self.rewrite(value)));
                    self.unknown.retain(|other| other != variable);
                    if unknown {
                        self.unknown.push(*variable);
                    }
                }
                _ => self.mark_unknown(std::slice::from_ref(statement)),
            }
        }
    }

    /// Marks variables set in nested statements, and sets and arrays, as unknown.
    fn mark_unknown(&mut self, body: &[Statement]) {
        Statement::visit(body, &mut |statement| match statement {
            Statement::Assign(variable, _)
            | Statement::AssignSet(variable, _)
            | Statement::Choose(variable, _)
            | Statement::AssignElement(variable, ..)
            | Statement::AssignAll(variable, _)
            | Statement::AssignHomes(variable, _) => self.unknown.push(*variable),
            _ => {}
        });
    }
}

/// Conjunction of two conditions; constant operands are folded.
fn conjunction(left: Expression, right: Expression) -> Expression {
    match (left, right) {
        (Expression::Constant(1), operand) | (operand, Expression::Constant(1)) => operand,
        (Expression::Constant(0), _) | (_, Expression::Constant(0)) => Expression::Constant(0),
        (left, right) => Expression::Binary(Operator::And, Box::new(left), Box::new(right)),
    }
}

/// Negation of a condition; a constant is folded.
fn negation(operand: Expression) -> Expression {
    match operand {
        Expression::Constant(value) => Expression::Constant(u16::from(value == 0)),
        operand => Expression::Not(Box::new(operand)),
    }
}

/// Returns true if an expression contains only variables and numbers.
fn has_only_variables(expression: &Expression) -> bool {
    match expression {
        Expression::Constant(_) | Expression::Variable(_) => true,
        Expression::Not(inner) | Expression::Modulo(inner, _) => has_only_variables(inner),
        Expression::Binary(_, left, right) => has_only_variables(left) && has_only_variables(right),
        _ => false,
    }
}

/// Returns the value of an expression, if the assumed values determine it.
fn evaluate(expression: &Expression, assumed: &[AssumedValue]) -> Option<i32> {
    let value_of = |source: PermissionSource| {
        let assumed = assumed.iter().find(|assumed| assumed.source == source)?;
        Some(i32::from(assumed.value))
    };
    match expression {
        Expression::Constant(constant) => Some(i32::from(*constant)),
        Expression::Variable(variable) => value_of(PermissionSource::Variable(*variable)),
        Expression::Field(field) => value_of(PermissionSource::Field(*field)),
        Expression::Not(inner) => Some(i32::from(evaluate(inner, assumed)? == 0)),
        Expression::Modulo(inner, size) => Some(evaluate(inner, assumed)? % i32::from(*size)),
        Expression::Binary(operator, left, right) => {
            let (left, right) = (evaluate(left, assumed), evaluate(right, assumed));
            match (operator, left, right) {
                (Operator::And, Some(0), _) | (Operator::And, _, Some(0)) => return Some(0),
                (Operator::Or, Some(1), _) | (Operator::Or, _, Some(1)) => return Some(1),
                _ => {}
            }
            let (left, right) = (left?, right?);
            Some(match operator {
                Operator::Add => left + right,
                Operator::Subtract => left - right,
                Operator::Equal => (left == right).into(),
                Operator::NotEqual => (left != right).into(),
                Operator::Less => (left < right).into(),
                Operator::LessOrEqual => (left <= right).into(),
                Operator::Greater => (left > right).into(),
                Operator::GreaterOrEqual => (left >= right).into(),
                Operator::And => (left != 0 && right != 0).into(),
                Operator::Or => (left != 0 || right != 0).into(),
            })
        }
        _ => None,
    }
}

/// Calls `visit` with all combinations of values until it returns false. Returns true if all were visited.
fn for_all_values(
    assumed: &mut [AssumedValue],
    visit: &mut dyn FnMut(&[AssumedValue]) -> bool,
) -> bool {
    assumed.iter_mut().for_each(|assumed| assumed.value = 0);
    loop {
        if !visit(assumed) {
            return false;
        }
        let mut next = assumed.iter_mut();
        loop {
            let Some(next) = next.next() else {
                return true;
            };
            next.value += 1;
            if next.value < next.values {
                break;
            }
            next.value = 0;
        }
    }
}

/// Returns the number of values of a type that a condition may depend on; `None` for other types.
fn value_count(ty: Type) -> Option<u16> {
    match ty {
        Type::Range { max } => max.checked_add(1),
        Type::Cycle { size } => Some(size),
        Type::Bool => Some(2),
        _ => None,
    }
}

/// One of the states into which a state is split.
struct SplitState {
    /// Index of the state after the split.
    state: StateId,
    /// Permission of the state; `None` if it was not split.
    permission: Option<Permission>,
}

impl<'a> Resolver<'a, '_> {
    /// Variables and conditions of a state's permission; `None` if it is unconditional or wrong.
    pub(super) fn permission_condition(
        &mut self,
        state: StateId,
        item: &StateItem<'a>,
        table: &AgentTable<'a>,
    ) -> Option<PermissionCondition> {
        let scope = table.scope(Event::Access(Access::Load), false);
        let mut resolve_permission = |permission: &StatePermission<'a>| match permission {
            StatePermission::Never => Some(Expression::Constant(0)),
            StatePermission::Always => Some(Expression::Constant(1)),
            StatePermission::If(condition) => self.resolve_condition(condition, &scope),
        };
        let is_fixed = |permission: &StatePermission| !matches!(permission, StatePermission::If(_));
        if table.side == Side::Home || is_fixed(&item.reads) && is_fixed(&item.writes) {
            return None;
        }
        let (reads, writes) = (
            resolve_permission(&item.reads),
            resolve_permission(&item.writes),
        );
        let (reads, writes) = (reads?, writes?);
        let mut uses = VariableUses::default();
        uses.record_reads(&reads);
        uses.record_reads(&writes);
        let mut variables: Vec<VariableId> = uses.variables().collect();
        variables.sort_unstable();
        variables.dedup();
        let sizes = variables.iter().map(|variable| {
            let count = value_count(table.variable_at(*variable).ty);
            usize::from(count.unwrap_or(1))
        });
        if sizes.product::<usize>() > MAX_VALUES {
            let text = format!(
                "the permission of `{}` depends on too many values",
                item.name.text
            );
            let label = format!("its variables have at most {MAX_VALUES} values together");
            self.sink
                .push(Diagnostic::new(Code::TooMany, item.name.span, text).label(label));
            return None;
        }
        Some(PermissionCondition {
            state,
            reads,
            writes,
            variables,
            holds: item.holds.is_some(),
            dirty: item.dirty,
        })
    }

    /// Resolves a condition over numbers and truth values of an agent and line.
    fn resolve_condition(
        &mut self,
        condition: &Expr<'a>,
        scope: &Scope<'a, '_>,
    ) -> Option<Expression> {
        let resolved = self.resolve_typed(condition, ValueKind::Bool, scope)?;
        let mut uses = VariableUses::default();
        uses.record_reads(&resolved);
        let mut problem = None;
        for variable in uses.variables() {
            let index = usize::from(variable.0 - scope.base);
            let reason = match scope.types[index] {
                _ if scope.registers[index] => "a register, which is one for all lines",
                Type::Array { .. } if scope.types[index].is_home_set() => "a set",
                Type::Array { .. } => "an array",
                Type::RemoteSet => "a set",
                Type::Count => "a count, which has another range in each system",
                Type::Remote | Type::Home { .. } => "the name of an agent",
                Type::Range { .. } | Type::Cycle { .. } | Type::Bool => continue,
            };
            problem = Some(format!(
                "`{}` is {reason}",
                scope.variables.list[index].text
            ));
        }
        if problem.is_none() && !has_only_variables(&resolved) {
            problem = Some("this is no variable of the agent and line".to_string());
        }
        let Some(label) = problem else {
            return Some(resolved);
        };
        let text = "a permission may depend only on numbers and truth values that an agent has for each line";
        let diagnostic = Diagnostic::new(Code::Type, condition.span, text).label(label);
        self.sink.push(diagnostic);
        None
    }

    /// Reports a policy with conditional permissions, because goals name permissions by states.
    pub(super) fn reject_split_states(&mut self, home: &Agent<'a>, remote: &Controller) {
        let mut states = remote.states.iter().zip(1..);
        let split = states.find(|(state, next)| {
            let mut later = remote.states[*next..].iter();
            later.any(|other| other.span == state.span)
        });
        if let Some((split, _)) = split {
            let text = "a home written as a policy, and a permission that depends on variables";
            let diagnostic = Diagnostic::new(Code::Misplaced, home.body.keyword, text)
                .label("a policy names permissions by the states that always give them")
                .note_at(split.span, "gives a different permission for other values")
                .note("write the home as rows");
            self.sink.push(diagnostic);
        }
    }

    /// Splits each state with a conditional permission into one state per permission, and redirects rows to the state
    /// that fits.
    pub(super) fn split(&mut self, first_rule: usize, table: &mut AgentTable<'a>) {
        let conditions = std::mem::take(&mut table.permission_conditions);
        if conditions.is_empty() {
            return;
        }
        let split_states: Vec<Vec<SplitState>> = conditions
            .iter()
            .map(|condition| self.split_states(condition, table))
            .collect();
        let rules = table.controller.rules.split_off(first_rule);
        let mut split = SplitRows {
            conditions: &conditions,
            split_states: &split_states,
            rules: Vec::new(),
            always_taken: FxHashSet::default(),
        };
        for rule in &rules {
            if let Some(error) = split.split_rule(rule, table, &self.messages) {
                self.sink.push(error);
            }
        }
        if split.rules.len() > usize::from(u16::MAX) {
            report_too_many("rule", rules[0].span, usize::from(u16::MAX), self.sink);
            split.rules.clear();
        }
        let states = &table.controller.states;
        for rule in &split.rules {
            if let Effect::Take { body, next } = &rule.effect {
                let next = next.map(|next| &states[next.index()]);
                self.check_data_flow(
                    rule.span,
                    &states[rule.state.index()],
                    rule.event,
                    body,
                    next,
                );
            }
        }
        table.controller.rules.append(&mut split.rules);
    }

    /// States into which a state is split. The one with the initial permission takes its index.
    fn split_states(
        &mut self,
        condition: &PermissionCondition,
        table: &mut AgentTable<'a>,
    ) -> Vec<SplitState> {
        let mut assumed = condition.unknowns(table, &[]);
        let mut permissions = Vec::new();
        for_all_values(&mut assumed, &mut |assumed| {
            permissions.push(condition.permission(assumed));
            true
        });
        let initial = condition.variables.iter().map(|variable| {
            let declared = table.variable_at(*variable);
            let value = match declared.initial {
                Initial::Number(number) => number,
                Initial::All(_) => 0,
            };
            (PermissionSource::Variable(*variable), value)
        });
        let initial: Vec<AssumedValue> = initial
            .map(|(source, value)| AssumedValue {
                source,
                values: 1,
                value,
            })
            .collect();
        let initial_permission = condition.permission(&initial);
        let mut possible = vec![initial_permission];
        for permission in [Permission::None, Permission::Read, Permission::Write] {
            if permission != initial_permission && permissions.contains(&permission) {
                possible.push(permission);
            }
        }
        let unsplit = table.resolved_state(condition.state).clone();
        let is_split = possible.len() > 1;
        let mut split_states = Vec::new();
        for permission in possible {
            let mut state = unsplit.clone();
            state.permission = permission;
            state.holds_line = condition.holds || permission > Permission::None;
            state.dirty = condition.dirty && state.holds_line;
            state.name.push_str(match permission {
                Permission::Read if is_split => ".reads",
                Permission::Write if is_split => ".writes",
                _ => "",
            });
            let permission = is_split.then_some(permission);
            let id = match split_states.is_empty() {
                true => {
                    table.controller.states[condition.state.index()] = state;
                    condition.state
                }
                false => match table.add_state(condition.state, state) {
                    Some(id) => id,
                    None => {
                        report_too_many("state", unsplit.span, usize::from(u16::MAX), self.sink);
                        break;
                    }
                },
            };
            split_states.push(SplitState {
                state: id,
                permission,
            });
        }
        split_states
    }
}

impl PermissionCondition {
    /// Permission for these values of the variables.
    fn permission(&self, assumed: &[AssumedValue]) -> Permission {
        let is_true = |condition| evaluate(condition, assumed) == Some(1);
        match (is_true(&self.writes), is_true(&self.reads)) {
            (true, _) => Permission::Write,
            (false, true) => Permission::Read,
            (false, false) => Permission::None,
        }
    }

    /// Variables of the conditions, and these fields, as unknowns to enumerate.
    fn unknowns(&self, table: &AgentTable, fields: &[AssumedValue]) -> Vec<AssumedValue> {
        let variables = self.variables.iter().map(|variable| AssumedValue {
            source: PermissionSource::Variable(*variable),
            values: value_count(table.variable_at(*variable).ty).unwrap_or(1),
            value: 0,
        });
        variables.chain(fields.iter().copied()).collect()
    }
}

/// Split of the rows of a table: the conditional states, and the rows so far.
struct SplitRows<'d> {
    /// Conditions of the states that are split, one per state.
    conditions: &'d [PermissionCondition],
    /// For each of these conditions, the states into which its state is split.
    split_states: &'d [Vec<SplitState>],
    /// Rows after the split, in order.
    rules: Vec<Rule>,
    /// States and events for which an earlier row always takes the event, so that later rows are not copied there.
    always_taken: FxHashSet<(StateId, Event)>,
}

impl<'d> SplitRows<'d> {
    /// Conditions of a state, and the states into which it is split.
    fn condition_and_split_states(
        &self,
        state: StateId,
    ) -> Option<(&'d PermissionCondition, &'d [SplitState])> {
        let index = self
            .conditions
            .iter()
            .position(|condition| condition.state == state)?;
        Some((&self.conditions[index], &self.split_states[index]))
    }

    /// Adds the split rows of a row: one from each state in which it can be taken, to each state that it can lead to.
    /// Returns an error if the row does not determine which state it leads to.
    fn split_rule(
        &mut self,
        rule: &Rule,
        table: &AgentTable,
        messages: &[p::Message],
    ) -> Option<Diagnostic> {
        let target = match &rule.effect {
            Effect::Take { next, .. } => {
                self.condition_and_split_states(next.unwrap_or(rule.state))
            }
            _ => None,
        };
        let source = self.condition_and_split_states(rule.state);
        if source.is_none() && target.is_none() {
            self.rules.push(rule.clone());
            return None;
        }
        let mut effects = VariableEffects::default();
        if let Effect::Take { body, .. } = &rule.effect {
            effects.apply(body);
        }
        let error = target
            .and_then(|(target, _)| unknown_variable_error(target, &effects, rule.span, table));
        if error.is_some() {
            return error;
        }
        let mut assumed = row_unknowns(rule, [source, target], table, messages);
        let unsplit = [SplitState {
            state: rule.state,
            permission: None,
        }];
        for split_state in source.map_or(&unsplit[..], |(_, split_states)| split_states) {
            let source_condition = match (source, split_state.permission) {
                (Some((condition, _)), Some(permission)) => {
                    condition.condition_for(permission, &VariableEffects::default())
                }
                _ => Expression::Constant(1),
            };
            if source.is_some() && self.always_taken.contains(&(split_state.state, rule.event)) {
                continue;
            }
            let guard = rule.guard.clone().unwrap_or(Expression::Constant(1));
            if !may_hold(
                &conjunction(source_condition.clone(), negation(guard.clone())),
                &mut assumed,
            ) {
                self.always_taken.insert((split_state.state, rule.event));
            }
            let enabled = conjunction(source_condition, guard);
            let Some((condition, split_states)) = target else {
                if may_hold(&enabled, &mut assumed) {
                    let state = split_state.state;
                    self.rules.push(Rule {
                        state,
                        ..rule.clone()
                    });
                }
                continue;
            };
            for target_state in split_states {
                let target_condition = match target_state.permission {
                    Some(permission) => condition.condition_for(permission, &effects),
                    None => Expression::Constant(1),
                };
                let split_rule = rule_to_state(
                    rule,
                    [split_state.state, target_state.state],
                    &enabled,
                    target_condition,
                    &mut assumed,
                );
                self.rules.extend(split_rule);
            }
        }
        None
    }
}

/// Returns the part of a row that leads from one split state to another. `enabled` is the condition under which the row
/// is taken, and `target_condition` the one under which it leads to this target; the guard of the result includes the
/// latter where it is needed. Returns `None` if the two conditions cannot hold together.
fn rule_to_state(
    rule: &Rule,
    [source, target]: [StateId; 2],
    enabled: &Expression,
    target_condition: Expression,
    assumed: &mut [AssumedValue],
) -> Option<Rule> {
    let both = conjunction(enabled.clone(), target_condition.clone());
    if !may_hold(&both, assumed) {
        return None;
    }
    let otherwise = conjunction(enabled.clone(), negation(target_condition.clone()));
    let guard = match (&rule.guard, may_hold(&otherwise, assumed)) {
        (guard, false) => guard.clone(),
        (None, true) => Some(target_condition),
        (Some(guard), true) => Some(conjunction(guard.clone(), target_condition)),
    };
    let mut split_rule = Rule {
        state: source,
        guard,
        ..rule.clone()
    };
    if let Effect::Take { next, .. } = &mut split_rule.effect {
        *next = (next.is_some() || target != source).then_some(target);
    }
    Some(split_rule)
}

/// Returns an error if the row leaves a variable of the target's conditions unknown.
fn unknown_variable_error(
    target: &PermissionCondition,
    effects: &VariableEffects,
    row: Span,
    table: &AgentTable,
) -> Option<Diagnostic> {
    let mut variables = target.variables.iter();
    let variable = variables.find(|variable| effects.unknown.contains(variable))?;
    let state = &table.resolved_state(target.state).name;
    let state = state.split('.').next().unwrap_or_default();
    let name = &table.variable_at(*variable).name;
    let text = format!(
        "the permission of `{state}` depends on `{name}`, whose next value this row does not determine"
    );
    let label = "it is set in a loop, or from a set or an array that the row has changed";
    Some(Diagnostic::new(Code::Misplaced, row, text).label(label))
}

/// Variables and fields to enumerate for a row: as many as have at most [`MAX_VALUES`] combinations.
fn row_unknowns(
    rule: &Rule,
    states: [Option<(&PermissionCondition, &[SplitState])>; 2],
    table: &AgentTable,
    messages: &[p::Message],
) -> Vec<AssumedValue> {
    let fields: Vec<AssumedValue> = match rule.event {
        Event::Message(message) => {
            let fields = (0..).zip(&messages[message.index()].fields);
            let unknowns = fields.filter_map(|(field, declared)| {
                Some(AssumedValue {
                    source: PermissionSource::Field(field),
                    values: value_count(declared.ty)?,
                    value: 0,
                })
            });
            unknowns.collect()
        }
        _ => Vec::new(),
    };
    let states = states.into_iter().flatten();
    let candidates = states.flat_map(|(condition, _)| condition.unknowns(table, &fields));
    let (mut assumed, mut product) = (Vec::<AssumedValue>::new(), 1);
    for candidate in candidates {
        let combinations = product * usize::from(candidate.values);
        if combinations <= MAX_VALUES
            && !assumed
                .iter()
                .any(|assumed| assumed.source == candidate.source)
        {
            product = combinations;
            assumed.push(candidate);
        }
    }
    assumed
}

/// Returns true if a condition may hold.
fn may_hold(condition: &Expression, assumed: &mut [AssumedValue]) -> bool {
    !for_all_values(assumed, &mut |assumed| {
        evaluate(condition, assumed) == Some(0)
    })
}
