//! Conditional permissions: `reads if E`, `writes if E`.
//!
//! Every engine uses the permission of the state alone. So a state with a conditional permission is split into one
//! state per permission that it may have. Rows that lead there are distinguished by the values that they leave in the
//! variables of the conditions. An agent is in one of these states if and only if its variables say so. Stages after
//! the language do not see conditions.

use super::loops::VariableUses;
use super::scope::{Kind as Values, PermissionCondition, Reading, Scope, Side};
use super::*;
use crate::controller::{
    Access, Controller, Effect, Event, Expression, Initial, Operator, Rule, Statement,
};
use crate::protocol::{Right, Type, VariableId};
use rustc_hash::FxHashSet;

/// Maximum number of value combinations of the variables of a condition, and of those that the analysis of a row
/// enumerates.
const MAX_VALUES: usize = 1 << 12;

impl PermissionCondition {
    /// Condition, before a row with this effect, that the state has this permission after it.
    fn gives(&self, right: Right, after: &After) -> Expression {
        let (reads, writes) = (after.of(&self.reads), after.of(&self.writes));
        match right {
            Right::Write => writes,
            Right::Read => and(reads, not(writes)),
            Right::None => and(not(reads), not(writes)),
        }
    }
}

/// Assumed value of a variable or field, and its number of values.
#[derive(Clone, Copy, PartialEq)]
struct Known {
    what: PermissionSource,
    values: u16,
    value: u16,
}

#[derive(Clone, Copy, PartialEq)]
enum PermissionSource {
    Variable(VariableId),
    Field(u8),
}

/// Effect of a row on variables, so far.
#[derive(Default)]
struct After {
    /// New values, as expressions over the values before the row.
    values: Vec<(VariableId, Expression)>,
    /// Variables with an unknown new value: set in a loop or condition, or not a single value.
    unclear: Vec<VariableId>,
}

impl After {
    /// Rewrites an expression over the values after the row as one over the values before it.
    fn of(&self, expression: &Expression) -> Expression {
        let of = |inner: &Expression| Box::new(self.of(inner));
        match expression {
            Expression::Variable(variable) => {
                let mut known = self.values.iter().rev();
                let known = known.find(|(known, _)| known == variable);
                known.map_or_else(|| expression.clone(), |(_, value)| value.clone())
            }
            Expression::Not(inner) => Expression::Not(of(inner)),
            Expression::Round(inner, size) => Expression::Round(of(inner), *size),
            Expression::Table(table, inner) => Expression::Table(*table, of(inner)),
            Expression::Binary(operator, left, right) => {
                Expression::Binary(*operator, of(left), of(right))
            }
            other => other.clone(),
        }
    }

    /// Returns true if the expression cannot be rewritten over the values before the row.
    fn is_unclear(&self, expression: &Expression) -> bool {
        match expression {
            Expression::Variable(variable) => self.unclear.contains(variable),
            Expression::Not(inner) | Expression::Round(inner, _) | Expression::Table(_, inner) => {
                self.is_unclear(inner)
            }
            Expression::Binary(_, left, right) => self.is_unclear(left) || self.is_unclear(right),
            other => {
                let mut uses = VariableUses::default();
                uses.read(other);
                let set = |read| self.values.iter().any(|(set, _)| *set == read);
                let mut variables = uses.variables();
                variables.any(|read| set(read) || self.unclear.contains(&read))
            }
        }
    }

    fn statements(&mut self, body: &[Statement]) {
        for statement in body {
            match statement {
                Statement::Assign(variable, value) => {
                    let unclear = self.is_unclear(value);
                    self.values.push((*variable, self.of(value)));
                    self.unclear.retain(|other| other != variable);
                    if unclear {
                        self.unclear.push(*variable);
                    }
                }
                _ => self.nested(std::slice::from_ref(statement)),
            }
        }
    }

    /// Marks variables set in nested statements, and sets and arrays, as unknown.
    fn nested(&mut self, body: &[Statement]) {
        Statement::visit(body, &mut |statement| match statement {
            Statement::Assign(variable, _)
            | Statement::AssignSet(variable, _)
            | Statement::Choose(variable, _)
            | Statement::AssignElement(variable, ..)
            | Statement::AssignAll(variable, _)
            | Statement::AssignHomes(variable, _) => self.unclear.push(*variable),
            _ => {}
        });
    }
}

fn and(one: Expression, other: Expression) -> Expression {
    match (one, other) {
        (Expression::Constant(1), known) | (known, Expression::Constant(1)) => known,
        (Expression::Constant(0), _) | (_, Expression::Constant(0)) => Expression::Constant(0),
        (one, other) => Expression::Binary(Operator::And, Box::new(one), Box::new(other)),
    }
}

fn not(one: Expression) -> Expression {
    match one {
        Expression::Constant(known) => Expression::Constant(u16::from(known == 0)),
        one => Expression::Not(Box::new(one)),
    }
}

/// Returns true if an expression contains only variables and numbers.
fn has_only_variables(expression: &Expression) -> bool {
    match expression {
        Expression::Constant(_) | Expression::Variable(_) => true,
        Expression::Not(inner) | Expression::Round(inner, _) => has_only_variables(inner),
        Expression::Binary(_, left, right) => has_only_variables(left) && has_only_variables(right),
        _ => false,
    }
}

/// Value of an expression, if the known values determine it.
fn value(expression: &Expression, known: &[Known]) -> Option<i32> {
    let of = |what: PermissionSource| {
        let known = known.iter().find(|known| known.what == what)?;
        Some(i32::from(known.value))
    };
    match expression {
        Expression::Constant(constant) => Some(i32::from(*constant)),
        Expression::Variable(variable) => of(PermissionSource::Variable(*variable)),
        Expression::Field(field) => of(PermissionSource::Field(*field)),
        Expression::Not(inner) => Some(i32::from(value(inner, known)? == 0)),
        Expression::Round(inner, size) => Some(value(inner, known)? % i32::from(*size)),
        Expression::Binary(operator, left, right) => {
            let (left, right) = (value(left, known), value(right, known));
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

/// Calls `each` with all combinations of values until it returns false. Returns true if all were visited.
fn for_all_values(known: &mut [Known], each: &mut dyn FnMut(&[Known]) -> bool) -> bool {
    known.iter_mut().for_each(|known| known.value = 0);
    loop {
        if !each(known) {
            return false;
        }
        let mut next = known.iter_mut();
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

/// Number of values of a type that a condition may depend on; `None` for other types.
fn values(ty: Type) -> Option<u16> {
    match ty {
        Type::Range { max } => max.checked_add(1),
        Type::Cycle { size } => Some(size),
        Type::Bool => Some(2),
        _ => None,
    }
}

/// One of the states into which a state is split.
struct Part {
    state: StateId,
    /// Permission of the state; `None` if it was not split.
    right: Option<Right>,
}

impl<'a> Resolver<'a, '_> {
    /// Variables and conditions of a state's permission; `None` if it is unconditional or wrong.
    pub(super) fn depends(
        &mut self,
        state: StateId,
        item: &StateItem<'a>,
        reading: &Reading<'a>,
    ) -> Option<PermissionCondition> {
        let scope = reading.scope(Event::Access(Access::Load), false);
        let mut given = |gives: &StatePermission<'a>| match gives {
            StatePermission::Never => Some(Expression::Constant(0)),
            StatePermission::Always => Some(Expression::Constant(1)),
            StatePermission::If(condition) => self.condition(condition, &scope),
        };
        let fixed = |gives: &StatePermission| !matches!(gives, StatePermission::If(_));
        if reading.side == Side::Home || fixed(&item.reads) && fixed(&item.writes) {
            return None;
        }
        let (reads, writes) = (given(&item.reads), given(&item.writes));
        let (reads, writes) = (reads?, writes?);
        let mut uses = VariableUses::default();
        uses.read(&reads);
        uses.read(&writes);
        let mut variables: Vec<VariableId> = uses.variables().collect();
        variables.sort_unstable();
        variables.dedup();
        let sizes = variables.iter().map(|variable| {
            let of = values(reading.variable_at(*variable).ty);
            usize::from(of.unwrap_or(1))
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
    fn condition(&mut self, condition: &Expr<'a>, scope: &Scope<'a, '_>) -> Option<Expression> {
        let found = self.typed(condition, Values::Bool, scope)?;
        let mut uses = VariableUses::default();
        uses.read(&found);
        let mut wrong = None;
        for variable in uses.variables() {
            let place = usize::from(variable.0 - scope.base);
            let what = match scope.types[place] {
                _ if scope.registers[place] => "a register, which is one for all lines",
                Type::Array { .. } if scope.types[place].set_of_homes() => "a set",
                Type::Array { .. } => "an array",
                Type::RemoteSet => "a set",
                Type::Count => "a count, which has another range in each system",
                Type::Remote | Type::Home { .. } => "the name of an agent",
                Type::Range { .. } | Type::Cycle { .. } | Type::Bool => continue,
            };
            wrong = Some(format!("`{}` is {what}", scope.variables.list[place].text));
        }
        if wrong.is_none() && !has_only_variables(&found) {
            wrong = Some("this is no variable of the agent and line".to_string());
        }
        let Some(label) = wrong else {
            return Some(found);
        };
        let text = "a permission may depend only on numbers and truth values that an agent has for each line";
        let diagnostic = Diagnostic::new(Code::Type, condition.span, text).label(label);
        self.sink.push(diagnostic);
        None
    }

    /// Reports a policy with conditional permissions, because goals name permissions by states.
    pub(super) fn with_split_states(&mut self, home: &Agent<'a>, remote: &Controller) {
        let mut states = remote.states.iter().zip(1..);
        let split = states.find(|(state, next)| {
            let mut later = remote.states[*next..].iter();
            later.any(|other| other.span == state.span)
        });
        if let Some((split, _)) = split {
            let text = "a home written as goals, and a permission that depends on variables";
            let diagnostic = Diagnostic::new(Code::Misplaced, home.body.keyword, text)
                .label("goals name permissions by the states that always give them")
                .see(split.span, "gives a different permission for other values")
                .note("write the home as rows");
            self.sink.push(diagnostic);
        }
    }

    /// Splits each state with a conditional permission into one state per permission, and redirects rows to the state
    /// that fits.
    pub(super) fn split(&mut self, first_rule: usize, reading: &mut Reading<'a>) {
        let depends = std::mem::take(&mut reading.depends);
        if depends.is_empty() {
            return;
        }
        let parts: Vec<Vec<Part>> = depends
            .iter()
            .map(|depends| self.parts(depends, reading))
            .collect();
        let rules = reading.controller.rules.split_off(first_rule);
        let mut split = Split {
            depends: &depends,
            parts: &parts,
            rules: Vec::new(),
            taken: FxHashSet::default(),
        };
        for rule in &rules {
            if let Some(wrong) = split.rule(rule, reading, &self.messages) {
                self.sink.push(wrong);
            }
        }
        if split.rules.len() > usize::from(u16::MAX) {
            too_many("rule", rules[0].span, usize::from(u16::MAX), self.sink);
            split.rules.clear();
        }
        let states = &reading.controller.states;
        for rule in &split.rules {
            if let Effect::Take { body, next } = &rule.effect {
                let next = next.map(|next| &states[next.index()]);
                self.data_flow(
                    rule.span,
                    &states[rule.state.index()],
                    rule.event,
                    body,
                    next,
                );
            }
        }
        reading.controller.rules.append(&mut split.rules);
    }

    /// States into which a state is split. The one with the initial permission takes its index.
    fn parts(&mut self, depends: &PermissionCondition, reading: &mut Reading<'a>) -> Vec<Part> {
        let mut known = depends.known(reading, &[]);
        let mut rights = Vec::new();
        for_all_values(&mut known, &mut |known| {
            rights.push(depends.right(known));
            true
        });
        let begins = depends.variables.iter().map(|variable| {
            let about = reading.variable_at(*variable);
            let value = match about.initial {
                Initial::Number(number) => number,
                Initial::All(_) => 0,
            };
            (PermissionSource::Variable(*variable), value)
        });
        let begins: Vec<Known> = begins
            .map(|(what, value)| Known {
                what,
                values: 1,
                value,
            })
            .collect();
        let first = depends.right(&begins);
        let mut possible = vec![first];
        for right in [Right::None, Right::Read, Right::Write] {
            if right != first && rights.contains(&right) {
                possible.push(right);
            }
        }
        let whole = reading.about(depends.state).clone();
        let several = possible.len() > 1;
        let mut parts = Vec::new();
        for right in possible {
            let mut state = whole.clone();
            state.right = right;
            state.holds_line = depends.holds || right > Right::None;
            state.dirty = depends.dirty && state.holds_line;
            state.name.push_str(match right {
                Right::Read if several => ".reads",
                Right::Write if several => ".writes",
                _ => "",
            });
            let right = several.then_some(right);
            let place = match parts.is_empty() {
                true => {
                    reading.controller.states[depends.state.index()] = state;
                    depends.state
                }
                false => match reading.add_state(depends.state, state) {
                    Some(place) => place,
                    None => {
                        too_many("state", whole.span, usize::from(u16::MAX), self.sink);
                        break;
                    }
                },
            };
            parts.push(Part {
                state: place,
                right,
            });
        }
        parts
    }
}

impl PermissionCondition {
    /// Permission for these values of the variables.
    fn right(&self, known: &[Known]) -> Right {
        let holds = |condition| value(condition, known) == Some(1);
        match (holds(&self.writes), holds(&self.reads)) {
            (true, _) => Right::Write,
            (false, true) => Right::Read,
            (false, false) => Right::None,
        }
    }

    /// Variables of the conditions, and these fields, as unknowns to enumerate.
    fn known(&self, reading: &Reading, fields: &[Known]) -> Vec<Known> {
        let variables = self.variables.iter().map(|variable| Known {
            what: PermissionSource::Variable(*variable),
            values: values(reading.variable_at(*variable).ty).unwrap_or(1),
            value: 0,
        });
        variables.chain(fields.iter().copied()).collect()
    }
}

/// Rows of a table during the split.
struct Split<'d> {
    depends: &'d [PermissionCondition],
    parts: &'d [Vec<Part>],
    rules: Vec<Rule>,
    /// States and events for which an earlier row always takes the event, so that later rows are not copied there.
    taken: FxHashSet<(StateId, Event)>,
}

impl<'d> Split<'d> {
    /// Conditions of a state, and the states into which it is split.
    fn of(&self, state: StateId) -> Option<(&'d PermissionCondition, &'d [Part])> {
        let place = self.depends.iter().position(|of| of.state == state)?;
        Some((&self.depends[place], &self.parts[place]))
    }

    /// Adds the split rows of a row: one from each state in which it can be taken, to each state that it can lead to.
    fn rule(
        &mut self,
        rule: &Rule,
        reading: &Reading,
        messages: &[p::Message],
    ) -> Option<Diagnostic> {
        let target = match &rule.effect {
            Effect::Take { next, .. } => self.of(next.unwrap_or(rule.state)),
            _ => None,
        };
        let from = self.of(rule.state);
        if from.is_none() && target.is_none() {
            self.rules.push(rule.clone());
            return None;
        }
        let mut after = After::default();
        if let Effect::Take { body, .. } = &rule.effect {
            after.statements(body);
        }
        let wrong = target.and_then(|(target, _)| unclear(target, &after, rule.span, reading));
        if wrong.is_some() {
            return wrong;
        }
        let mut known = row_unknowns(rule, [from, target], reading, messages);
        let alone = [Part {
            state: rule.state,
            right: None,
        }];
        for part in from.map_or(&alone[..], |(_, parts)| parts) {
            let here = match (from, part.right) {
                (Some((depends, _)), Some(right)) => depends.gives(right, &After::default()),
                _ => Expression::Constant(1),
            };
            if from.is_some() && self.taken.contains(&(part.state, rule.event)) {
                continue;
            }
            let guard = rule.guard.clone().unwrap_or(Expression::Constant(1));
            if !may(&and(here.clone(), not(guard.clone())), &mut known) {
                self.taken.insert((part.state, rule.event));
            }
            let taken = and(here, guard);
            let Some((depends, parts)) = target else {
                if may(&taken, &mut known) {
                    let state = part.state;
                    self.rules.push(Rule {
                        state,
                        ..rule.clone()
                    });
                }
                continue;
            };
            for to in parts {
                let there = match to.right {
                    Some(right) => depends.gives(right, &after),
                    None => Expression::Constant(1),
                };
                if !may(&and(taken.clone(), there.clone()), &mut known) {
                    continue;
                }
                let otherwise = and(taken.clone(), not(there.clone()));
                let guard = match (&rule.guard, may(&otherwise, &mut known)) {
                    (guard, false) => guard.clone(),
                    (None, true) => Some(there),
                    (Some(guard), true) => Some(and(guard.clone(), there)),
                };
                let mut rule = Rule {
                    state: part.state,
                    guard,
                    ..rule.clone()
                };
                if let Effect::Take { next, .. } = &mut rule.effect {
                    *next = (next.is_some() || to.state != part.state).then_some(to.state);
                }
                self.rules.push(rule);
            }
        }
        None
    }
}

/// Returns an error if the row leaves a variable of the target's conditions unknown.
fn unclear(
    target: &PermissionCondition,
    after: &After,
    row: Span,
    reading: &Reading,
) -> Option<Diagnostic> {
    let mut of = target.variables.iter();
    let unclear = of.find(|variable| after.unclear.contains(variable))?;
    let state = &reading.about(target.state).name;
    let state = state.split('.').next().unwrap_or_default();
    let name = &reading.variable_at(*unclear).name;
    let text = format!(
        "the permission of `{state}` depends on `{name}`, whose next value this row does not determine"
    );
    let label = "it is set in a loop, or from a set or an array that the row has changed";
    Some(Diagnostic::new(Code::Misplaced, row, text).label(label))
}

/// Variables and fields to enumerate for a row: as many as have at most [`MAX_VALUES`] combinations.
fn row_unknowns(
    rule: &Rule,
    states: [Option<(&PermissionCondition, &[Part])>; 2],
    reading: &Reading,
    messages: &[p::Message],
) -> Vec<Known> {
    let fields: Vec<Known> = match rule.event {
        Event::Message(message) => {
            let fields = (0..).zip(&messages[message.index()].fields);
            let known = fields.filter_map(|(field, about)| {
                Some(Known {
                    what: PermissionSource::Field(field),
                    values: values(about.ty)?,
                    value: 0,
                })
            });
            known.collect()
        }
        _ => Vec::new(),
    };
    let states = states.into_iter().flatten();
    let all = states.flat_map(|(depends, _)| depends.known(reading, &fields));
    let (mut known, mut product) = (Vec::<Known>::new(), 1);
    for one in all {
        let more = product * usize::from(one.values);
        if more <= MAX_VALUES && !known.iter().any(|known| known.what == one.what) {
            product = more;
            known.push(one);
        }
    }
    known
}

/// Returns true if a condition may hold.
fn may(condition: &Expression, known: &mut [Known]) -> bool {
    !for_all_values(known, &mut |known| value(condition, known) == Some(0))
}
