//! Rules and start states with the values of their parameters. A few combinations of values have separate code; many
//! combinations share one piece of code that reads the values from cells.

use super::*;
use crate::visit::{self, Node};

impl Compiler<'_> {
    pub(super) fn starts(&mut self) {
        let model = self.model;
        for (source, start) in model.starts.iter().enumerate() {
            let cost = start.body.iter().map(|s| stmt_cost(self, s)).sum();
            let instance = |c: &mut Self| {
                let body = c.body(&start.body);
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
            if let Some(mut every) = self.every(&start.parameters, cost) {
                every.next = self.next(&Expr::Bool(true), &every.parameters, &start.parameters);
                let every = Some(every);
                let all = instance(self);
                self.program.starts.push(Instance { every, ..all });
                continue;
            }
            self.instances(&start.parameters, |c, arguments| {
                let one = instance(c);
                c.program.starts.push(Instance { arguments, ..one });
            });
        }
    }

    pub(super) fn rules(&mut self) {
        let model = self.model;
        for (source, rule) in model.rules.iter().enumerate() {
            let body: usize = rule.body.iter().map(|s| stmt_cost(self, s)).sum();
            let cost = cost(self, &rule.guard) + body;
            let instance = |c: &mut Self| {
                let possible = c.known(&rule.guard) != Some(0);
                let (guard, body) = match possible {
                    true => (Some(c.claim(&rule.guard, false)), c.body(&rule.body)),
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
            if let Some(mut every) = self.every(&rule.parameters, cost) {
                every.next = self.next(&rule.guard, &every.parameters, &rule.parameters);
                let every = Some(every);
                let all = instance(self);
                self.program.rules.push(Instance { every, ..all });
                continue;
            }
            self.instances(&rule.parameters, |c, arguments| {
                let one = instance(c);
                c.program.rules.push(Instance { arguments, ..one });
            });
        }
    }

    /// Cells of the parameters, if the combinations are too many for separate code; else `None`.
    fn every(&self, parameters: &[VariableId], cost: usize) -> Option<ParameterLoop> {
        let values = |&p: &VariableId| self.model.count(self.model.variable(p).ty);
        let count: u64 = parameters.iter().map(values).product();
        let parameter = |&p: &VariableId| Parameter {
            cell: self.cells[p.index()],
            lo: *self.domain(p).start(),
            hi: *self.domain(p).end(),
        };
        let nodes = count as usize * (cost + 4).max(MIN_NODES);
        // Models built for systems always have separate code, since only this shows which lines are independent.
        let built = !self.model.undefined;
        let too_many =
            count as usize > MAX_SEPARATE_COMBINATIONS || !built && nodes > self.max_nodes;
        (too_many && !parameters.is_empty()).then(|| ParameterLoop {
            parameters: parameters.iter().map(parameter).collect(),
            next: 0,
            count: count as u32,
        })
    }

    /// Emits code that advances the parameters to the next values for which a guard holds.
    fn next(&mut self, guard: &Expr, cells: &[Parameter], names: &[VariableId]) -> u32 {
        self.without_assumption = false;
        self.piece(|c| {
            let (top, none) = (c.label(), c.label());
            // Advances a parameter; the parameters after it have their first values there.
            let next: Vec<Label> = names.iter().map(|_| c.label()).collect();
            // Advances a parameter; the parameters after it may have any values.
            let skip: Vec<Label> = names.iter().map(|_| c.label()).collect();
            c.place(top);
            // A failing conjunct also fails for all values of the parameters that it does not read.
            c.conjuncts_of_guard(guard, names, &mut None, &mut |last| match last {
                None => none,
                Some(last) => skip[last],
            });
            c.emit(Op::Return { verdict: true });
            for last in (0..cells.len()).rev() {
                let Parameter { cell, lo, hi } = cells[last];
                let (lo, hi) = (c.constant(lo).cell, c.constant(hi).cell);
                let one = c.constant(1).cell;
                c.place(skip[last]);
                for behind in &cells[last + 1..] {
                    let (dst, a) = (behind.cell, c.constant(behind.lo).cell);
                    c.emit(Op::Copy { dst, a });
                }
                c.place(next[last]);
                let full = c.label();
                let op = Comparison::Equal;
                let to = full.0;
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
                c.place(full);
                c.emit(Op::Copy { dst: cell, a: lo });
                let before = last.checked_sub(1).map_or(none, |before| next[before]);
                c.emit(Op::Jump { to: before.0 });
            }
            c.place(none);
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
                let asked = (*last).max(last_used_name(e, names));
                let to = fails(asked);
                self.jump(e, false, to);
                if self.sure(e, names).is_none() {
                    *last = asked;
                }
            }
        }
    }

    /// Bounds of an expression that is defined for all values of these parameters and reads nothing else; `None` for
    /// others.
    fn sure(&self, e: &Expr, names: &[VariableId]) -> Option<(Number, Number)> {
        if let Some(value) = self.known(e) {
            return Some((value, value));
        }
        match e {
            Expr::Line(_, e) => self.sure(e, names),
            Expr::Read(place) | Expr::Peek(place)
                if place.path.is_empty() && names.contains(&place.variable) =>
            {
                let domain = self.domain(place.variable);
                Some((*domain.start(), *domain.end()))
            }
            Expr::Not(a) => self.sure(a, names),
            Expr::Binary(op, a, b) => {
                let (a, b) = (self.sure(a, names)?, self.sure(b, names)?);
                let bounds = match op {
                    Operator::Add => (a.0.checked_add(b.0)?, a.1.checked_add(b.1)?),
                    Operator::Subtract => (a.0.checked_sub(b.1)?, a.1.checked_sub(b.0)?),
                    Operator::Remainder if b.0 == b.1 && b.0 > 0 => (1 - b.0, b.0 - 1),
                    op if op.arithmetic() => return None,
                    _ => (0, 1),
                };
                let (least, most) = self.model.numbers;
                (least <= bounds.0 && bounds.1 <= most).then_some(bounds)
            }
            _ => None,
        }
    }

    /// Calls `f` for each combination of values of the parameters, the last varying fastest.
    pub(super) fn instances(
        &mut self,
        parameters: &[VariableId],
        mut f: impl FnMut(&mut Self, Vec<Number>),
    ) {
        let first = parameters.iter().map(|&p| *self.domain(p).start());
        let mut arguments: Vec<Number> = first.collect();
        loop {
            for (p, &value) in parameters.iter().zip(&arguments) {
                self.known[p.index()] = Some(value);
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
            self.known[p.index()] = None;
        }
    }
}

/// Index of the last of these names that occurs in an expression.
fn last_used_name(e: &Expr, names: &[VariableId]) -> Option<usize> {
    let mut last = None;
    let mut see = |place: &Place| {
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
        | Node::Target(place) => see(place),
        Node::Expr(_) | Node::Stmt(_) => {}
    });
    last
}
