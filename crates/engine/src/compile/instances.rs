//! Rules and start states with the values of their parameters. A few combinations of values have separate code; many
//! combinations share one piece of code that reads the values from cells.

use super::*;
use crate::visit::{self, Node};

impl Compiler<'_> {
    pub(super) fn compile_starts(&mut self) {
        let model = self.model;
        for (source, start) in model.starts.iter().enumerate() {
            let cost = start.body.iter().map(|s| stmt_cost(self, s)).sum();
            let instance = |c: &mut Self| {
                let body = c.emit_body(&start.body);
                Instance {
                    source: source as u32,
                    number: c.program.start_count(),
                    arguments: Vec::new(),
                    every: None,
                    guard: Some(body),
                    body,
                    spontaneous: false,
                    priority: 0,
                }
            };
            if let Some(mut parameter_loop) = self.parameter_loop(&start.parameters, cost) {
                parameter_loop.next = self.next(
                    &Expr::Bool(true),
                    &parameter_loop.parameters,
                    &start.parameters,
                );
                let parameter_loop = Some(parameter_loop);
                let shared = instance(self);
                self.program.starts.push(Instance {
                    every: parameter_loop,
                    ..shared
                });
                continue;
            }
            self.for_each_instance(&start.parameters, |c, arguments| {
                let separate = instance(c);
                c.program.starts.push(Instance {
                    arguments,
                    ..separate
                });
            });
        }
    }

    pub(super) fn compile_rules(&mut self) {
        let model = self.model;
        for (source, rule) in model.rules.iter().enumerate() {
            let body: usize = rule.body.iter().map(|s| stmt_cost(self, s)).sum();
            let cost = cost(self, &rule.guard) + body;
            let instance = |c: &mut Self| {
                let possible = c.constant_value(&rule.guard) != Some(0);
                let (guard, body) = match possible {
                    true => (
                        Some(c.emit_claim(&rule.guard, false)),
                        c.emit_body(&rule.body),
                    ),
                    false => (None, 0),
                };
                Instance {
                    source: source as u32,
                    number: c.program.rule_count(),
                    arguments: Vec::new(),
                    every: None,
                    guard,
                    body,
                    spontaneous: rule.spontaneous,
                    priority: rule.priority,
                }
            };
            if let Some(mut parameter_loop) = self.parameter_loop(&rule.parameters, cost) {
                parameter_loop.next =
                    self.next(&rule.guard, &parameter_loop.parameters, &rule.parameters);
                let parameter_loop = Some(parameter_loop);
                let shared = instance(self);
                self.program.rules.push(Instance {
                    every: parameter_loop,
                    ..shared
                });
                continue;
            }
            self.for_each_instance(&rule.parameters, |c, arguments| {
                let separate = instance(c);
                c.program.rules.push(Instance {
                    arguments,
                    ..separate
                });
            });
        }
    }

    /// Cells of the parameters, if the combinations are too many for separate code; else `None`.
    fn parameter_loop(&self, parameters: &[VariableId], cost: usize) -> Option<ParameterLoop> {
        let values = |&p: &VariableId| self.model.count(self.model.variable(p).ty);
        let count: u64 = parameters.iter().map(values).product();
        let parameter = |&p: &VariableId| Parameter {
            cell: self.cells[p.index()],
            lo: *self.domain(p).start(),
            hi: *self.domain(p).end(),
        };
        let nodes = count as usize * (cost + 4).max(MIN_NODES);
        // Models built for systems always have separate code, since only this shows which lines are independent.
        let is_built = !self.model.undefined;
        let too_many =
            count as usize > MAX_SEPARATE_COMBINATIONS || !is_built && nodes > self.max_nodes;
        (too_many && !parameters.is_empty()).then(|| ParameterLoop {
            parameters: parameters.iter().map(parameter).collect(),
            next: 0,
            count: count as u32,
        })
    }

    /// Emits code that advances the parameters to the next values for which a guard holds.
    fn next(&mut self, guard: &Expr, cells: &[Parameter], names: &[VariableId]) -> u32 {
        self.without_assumption = false;
        self.emit_piece(|c| {
            let (top, exhausted) = (c.new_label(), c.new_label());
            // Advances a parameter; the parameters after it have their first values there.
            let next: Vec<Label> = names.iter().map(|_| c.new_label()).collect();
            // Advances a parameter; the parameters after it may have any values.
            let skip: Vec<Label> = names.iter().map(|_| c.new_label()).collect();
            c.bind_label(top);
            // A failing conjunct also fails for all values of the parameters that it does not read.
            c.conjuncts_of_guard(guard, names, &mut None, &mut |last| match last {
                None => exhausted,
                Some(last) => skip[last],
            });
            c.emit(Op::Return { verdict: true });
            for last in (0..cells.len()).rev() {
                let Parameter { cell, lo, hi } = cells[last];
                let (lo, hi) = (c.constant(lo).cell, c.constant(hi).cell);
                let one = c.constant(1).cell;
                c.bind_label(skip[last]);
                for later_parameter in &cells[last + 1..] {
                    let (dst, a) = (later_parameter.cell, c.constant(later_parameter.lo).cell);
                    c.emit(Op::Copy { dst, a });
                }
                c.bind_label(next[last]);
                let at_max = c.new_label();
                let op = Comparison::Equal;
                let to = at_max.0;
                c.emit(Op::JumpIf {
                    op,
                    a: cell,
                    b: hi,
                    to,
                });
                c.emit(Op::Arithmetic {
                    op: Arithmetic::Add,
                    dst: cell,
                    a: cell,
                    b: one,
                });
                c.emit(Op::Jump { to: top.0 });
                c.bind_label(at_max);
                c.emit(Op::Copy { dst: cell, a: lo });
                let previous = last
                    .checked_sub(1)
                    .map_or(exhausted, |previous| next[previous]);
                c.emit(Op::Jump { to: previous.0 });
            }
            c.bind_label(exhausted);
            c.emit(Op::Return { verdict: false });
        })
    }

    /// Emits code that jumps, from the first conjunct that does not hold, to the label that `fails` returns. Its
    /// argument is the last parameter that the conjunct reads, or that an earlier conjunct reads which may be an error
    /// of the model for other values. `last` is the parameter of these earlier conjuncts.
    fn conjuncts_of_guard(
        &mut self,
        e: &Expr,
        names: &[VariableId],
        last: &mut Option<usize>,
        fails: &mut dyn FnMut(Option<usize>) -> Label,
    ) {
        match e {
            Expr::Line(line, inner) => {
                self.line = *line;
                self.conjuncts_of_guard(inner, names, last, fails);
            }
            Expr::Binary(Operator::And, a, b) => {
                self.conjuncts_of_guard(a, names, last, fails);
                self.conjuncts_of_guard(b, names, last, fails);
            }
            _ => {
                let last_read = (*last).max(last_used_name(e, names));
                let to = fails(last_read);
                self.jump(e, false, to);
                if self.defined_bounds(e, names).is_none() {
                    *last = last_read;
                }
            }
        }
    }

    /// Bounds of an expression that is defined for all values of these parameters and reads nothing else; `None` for
    /// others.
    fn defined_bounds(&self, e: &Expr, names: &[VariableId]) -> Option<(Number, Number)> {
        if let Some(value) = self.constant_value(e) {
            return Some((value, value));
        }
        match e {
            Expr::Line(_, e) => self.defined_bounds(e, names),
            Expr::Read(place) | Expr::Peek(place)
                if place.path.is_empty() && names.contains(&place.variable) =>
            {
                let domain = self.domain(place.variable);
                Some((*domain.start(), *domain.end()))
            }
            Expr::Not(a) => self.defined_bounds(a, names),
            Expr::Binary(op, a, b) => {
                let (a, b) = (
                    self.defined_bounds(a, names)?,
                    self.defined_bounds(b, names)?,
                );
                let bounds = match op {
                    Operator::Add => (a.0.checked_add(b.0)?, a.1.checked_add(b.1)?),
                    Operator::Subtract => (a.0.checked_sub(b.1)?, a.1.checked_sub(b.0)?),
                    Operator::Remainder if b.0 == b.1 && b.0 > 0 => (1 - b.0, b.0 - 1),
                    op if op.is_arithmetic() => return None,
                    _ => (0, 1),
                };
                let (min_number, max_number) = self.model.numbers;
                (min_number <= bounds.0 && bounds.1 <= max_number).then_some(bounds)
            }
            _ => None,
        }
    }

    /// Calls `f` for each combination of values of the parameters, the last varying fastest.
    pub(super) fn for_each_instance(
        &mut self,
        parameters: &[VariableId],
        mut f: impl FnMut(&mut Self, Vec<Number>),
    ) {
        let first = parameters.iter().map(|&p| *self.domain(p).start());
        let mut arguments: Vec<Number> = first.collect();
        loop {
            for (p, &value) in parameters.iter().zip(&arguments) {
                self.bound_values[p.index()] = Some(value);
            }
            f(self, arguments.clone());
            // The next combination: the last parameter below its maximum advances, and those after it restart.
            let next = parameters
                .iter()
                .zip(&arguments)
                .rposition(|(&p, value)| value < self.domain(p).end());
            let Some(next) = next else { break };
            arguments[next] += 1;
            for (&p, value) in parameters.iter().zip(&mut arguments).skip(next + 1) {
                *value = *self.domain(p).start();
            }
        }
        for p in parameters {
            self.bound_values[p.index()] = None;
        }
    }
}

/// Index of the last of these names that occurs in an expression.
fn last_used_name(e: &Expr, names: &[VariableId]) -> Option<usize> {
    let mut last = None;
    let mut note_use = |place: &Place| {
        last = last.max(names.iter().position(|&name| name == place.variable));
    };
    visit::expr(e, &mut |node| match node {
        Node::Expr(
            Expr::Read(place)
            | Expr::Peek(place)
            | Expr::IsUndefined(place)
            | Expr::Present(place, _)
            | Expr::Count(_, place, _),
        )
        | Node::Target(place) => note_use(place),
        Node::Expr(_) | Node::Stmt(_) => {}
    });
    last
}
