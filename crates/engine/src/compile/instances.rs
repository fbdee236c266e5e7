//! Rules and start states with the values of their parameters. A few combinations of values have separate code; many
//! combinations share one piece of code that reads the values from cells.

use super::cost::{cost, stmt_cost};
use super::{Compiler, Label, MAX_SEPARATE_COMBINATIONS, MIN_NODES};
use crate::model::{Expr, Number, Operator, Place, VariableId};
use crate::program::{Comparison, Instance, Op, Parameter, ParameterLoop};
use crate::visit::{self, Node};

impl Compiler<'_> {
    /// Compiles all start states.
    pub(super) fn compile_starts(&mut self) {
        let model = self.model;
        for (source, start) in model.starts.iter().enumerate() {
            let cost = start.body.iter().map(|s| stmt_cost(self, s)).sum();
            let instance = |c: &mut Self| {
                let body = c.emit_body(&start.body);
                Instance {
                    source: source as u32,
                    number: c.code.program.start_count(),
                    arguments: Vec::new(),
                    parameter_loop: None,
                    guard: Some(body),
                    body,
                    spontaneous: false,
                    priority: 0,
                }
            };
            if let Some(mut parameter_loop) = self.parameter_loop(&start.parameters, cost) {
                parameter_loop.next = self.emit_next_combination(
                    &Expr::Bool(true),
                    &parameter_loop.parameters,
                    &start.parameters,
                );
                let parameter_loop = Some(parameter_loop);
                let shared = instance(self);
                self.code.program.starts.push(Instance {
                    parameter_loop,
                    ..shared
                });
                continue;
            }
            self.for_each_instance(&start.parameters, |c, arguments| {
                let separate = instance(c);
                c.code.program.starts.push(Instance {
                    arguments,
                    ..separate
                });
            });
        }
    }

    /// Compiles the guards and bodies of all rules.
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
                    number: c.code.program.rule_count(),
                    arguments: Vec::new(),
                    parameter_loop: None,
                    guard,
                    body,
                    spontaneous: rule.spontaneous,
                    priority: rule.priority,
                }
            };
            if let Some(mut parameter_loop) = self.parameter_loop(&rule.parameters, cost) {
                parameter_loop.next = self.emit_next_combination(
                    &rule.guard,
                    &parameter_loop.parameters,
                    &rule.parameters,
                );
                let parameter_loop = Some(parameter_loop);
                let shared = instance(self);
                self.code.program.rules.push(Instance {
                    parameter_loop,
                    ..shared
                });
                continue;
            }
            self.for_each_instance(&rule.parameters, |c, arguments| {
                let separate = instance(c);
                c.code.program.rules.push(Instance {
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
    fn emit_next_combination(
        &mut self,
        guard: &Expr,
        cells: &[Parameter],
        parameters: &[VariableId],
    ) -> u32 {
        self.without_assumption = false;
        self.emit_piece(|c| {
            let (top, exhausted) = (c.code.new_label(), c.code.new_label());
            // Per parameter: code that advances it, entered while the parameters after it have their first values.
            let advance: Vec<Label> = parameters.iter().map(|_| c.code.new_label()).collect();
            // Per parameter: code that resets the parameters after it and advances it.
            let reset_and_advance: Vec<Label> =
                parameters.iter().map(|_| c.code.new_label()).collect();
            c.code.bind_label(top);
            // A failing conjunct also fails for all values of the parameters that it does not read.
            c.emit_guard_conjuncts(guard, parameters, &mut None, &mut |last| match last {
                None => exhausted,
                Some(last) => reset_and_advance[last],
            });
            c.code.emit(Op::Return { verdict: true });
            for last in (0..cells.len()).rev() {
                let Parameter { cell, lo, hi } = cells[last];
                let (lo, hi) = (c.code.constant(lo).cell, c.code.constant(hi).cell);
                let one = c.code.constant(1).cell;
                c.code.bind_label(reset_and_advance[last]);
                for later_parameter in &cells[last + 1..] {
                    let (dst, a) = (
                        later_parameter.cell,
                        c.code.constant(later_parameter.lo).cell,
                    );
                    c.code.emit_copy(dst, a);
                }
                c.code.bind_label(advance[last]);
                let at_max = c.code.new_label();
                c.code.emit_jump_if(Comparison::Equal, cell, hi, at_max);
                c.code.emit_add(cell, cell, one);
                c.code.emit_jump(top);
                c.code.bind_label(at_max);
                c.code.emit_copy(cell, lo);
                let previous = last
                    .checked_sub(1)
                    .map_or(exhausted, |previous| advance[previous]);
                c.code.emit_jump(previous);
            }
            c.code.bind_label(exhausted);
            c.code.emit(Op::Return { verdict: false });
        })
    }

    /// Emits code that jumps, from the first conjunct that does not hold, to the label that `failure_label` returns.
    /// Its argument is the last parameter that the conjunct reads, or that an earlier conjunct reads which may be an
    /// error of the model for other values. `last` is the parameter of these earlier conjuncts.
    fn emit_guard_conjuncts(
        &mut self,
        e: &Expr,
        parameters: &[VariableId],
        last: &mut Option<usize>,
        failure_label: &mut dyn FnMut(Option<usize>) -> Label,
    ) {
        match e {
            Expr::Line(line, inner) => {
                self.code.line = *line;
                self.emit_guard_conjuncts(inner, parameters, last, failure_label);
            }
            Expr::Binary(Operator::And, a, b) => {
                self.emit_guard_conjuncts(a, parameters, last, failure_label);
                self.emit_guard_conjuncts(b, parameters, last, failure_label);
            }
            _ => {
                let last_read = (*last).max(last_used_parameter(e, parameters));
                let to = failure_label(last_read);
                self.jump_if(e, false, to);
                if self.defined_bounds(e, parameters).is_none() {
                    *last = last_read;
                }
            }
        }
    }

    /// Bounds of an expression that is defined for all values of these parameters and reads nothing else; `None` for
    /// others.
    fn defined_bounds(&self, e: &Expr, parameters: &[VariableId]) -> Option<(Number, Number)> {
        if let Some(value) = self.constant_value(e) {
            return Some((value, value));
        }
        match e {
            Expr::Line(_, e) => self.defined_bounds(e, parameters),
            Expr::Read(place) | Expr::Peek(place)
                if place.path.is_empty() && parameters.contains(&place.variable) =>
            {
                let domain = self.domain(place.variable);
                Some((*domain.start(), *domain.end()))
            }
            Expr::Not(a) => self.defined_bounds(a, parameters),
            Expr::Binary(op, a, b) => {
                let (a, b) = (
                    self.defined_bounds(a, parameters)?,
                    self.defined_bounds(b, parameters)?,
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

/// Index of the last of these parameters that an expression reads.
fn last_used_parameter(e: &Expr, parameters: &[VariableId]) -> Option<usize> {
    let mut last = None;
    let mut note_use = |place: &Place| {
        last = last.max(
            parameters
                .iter()
                .position(|&parameter| parameter == place.variable),
        );
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
