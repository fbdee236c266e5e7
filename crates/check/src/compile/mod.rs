//! From a [`Model`] to a [`Program`]: parameters become constants, short loops are unrolled,
//! places become cells.

mod calls;
mod cost;
mod definedness;
mod multisets;
mod statements;

use crate::model::Violation;
use crate::model::*;
use crate::order::Settled;
use crate::program::*;
use rustc_hash::FxHashMap;

use cost::{cost, stmt_cost};
pub(crate) use statements::values;

/// Loops whose unrolled bodies would have more nodes than this stay loops.
const UNROLL: usize = 4096;

/// Code beyond this many instructions is cut off, and not run.
pub(crate) const MOST_CODE: usize = 1 << 24;

/// Marks a cell as a constant until the frame's size is known.
const CONSTANT: Cell = 1 << 31;

/// Resolves a valid model. `notes` says whether [`Stmt::Note`] is told or left out.
pub(crate) fn compile(model: &Model, notes: bool) -> Program {
    compile_watching(model, notes, Settled::new())
}

/// The same, and where rounds of a loop store different values in what is to be settled, a limit is run over.
pub(crate) fn compile_watching(model: &Model, notes: bool, settled: Settled) -> Program {
    let mut c = Compiler::new(model, notes);
    c.settled = settled;
    c.call_costs();
    for (source, start) in model.starts.iter().enumerate() {
        c.instances(&start.parameters, |c, arguments| {
            let body = c.body(&start.body);
            let guard = Some(body);
            c.program.starts.push(Instance {
                source: source as u32,
                arguments,
                guard,
                body,
                spontaneous: false,
                priority: 0,
            });
        });
    }
    for (source, rule) in model.rules.iter().enumerate() {
        c.instances(&rule.parameters, |c, arguments| {
            let possible = c.known(&rule.guard) != Some(0);
            let (guard, body) = match possible {
                true => (Some(c.claim(&rule.guard, false)), c.body(&rule.body)),
                false => (None, 0),
            };
            let spontaneous = rule.spontaneous;
            c.program.rules.push(Instance {
                source: source as u32,
                arguments,
                guard,
                body,
                spontaneous,
                priority: rule.priority,
            });
        });
    }
    for (i, invariant) in model.invariants.iter().enumerate() {
        c.claims(invariant, |c, entries| {
            c.program
                .invariants
                .extend(entries.iter().map(|&entry| Claim {
                    invariant: i as u32,
                    entry,
                }));
        });
    }
    if let Some(quiescent) = &model.quiescent {
        let mut entries = Vec::new();
        c.conjuncts(quiescent, &mut |c, e| entries.push(c.claim(e, true)));
        c.program.quiescent = Some(entries);
    }
    for cover in &model.covers {
        let entry = cover.holds.as_ref().map(|e| c.claim(e, false));
        c.program.covers.push(entry);
    }
    for (i, property) in model.liveness.iter().enumerate() {
        c.claims(property, |c, entries| {
            c.program.liveness.push((i as u32, entries))
        });
    }
    for assumption in &model.assumptions {
        c.claims(assumption, |c, entries| {
            c.program.assumptions.extend(entries)
        });
    }
    c.recursive_functions();
    c.finish()
}

struct Compiler<'a> {
    model: &'a Model,
    program: Program,
    notes: bool,
    /// Number of parts of each type.
    sizes: Vec<u32>,
    /// First cell of each variable.
    cells: Vec<Cell>,
    /// Values of bound variables that are constants here.
    known: Vec<Option<i32>>,
    constants: FxHashMap<i32, Cell>,
    constant_values: Vec<i32>,
    shapes: FxHashMap<Shape, u32>,
    names: FxHashMap<Violation, u32>,
    /// The next free temporary, and the most that were ever in use.
    temporary: Cell,
    most_temporaries: Cell,
    /// Where each label of the piece of code at hand ended up.
    labels: Vec<u32>,
    /// Where the places of aliases lie.
    aliases: Vec<Option<Location>>,
    /// What is known of each function.
    functions: Vec<calls::Known>,
    /// Where [`Stmt::Return`] goes.
    returns: Option<calls::Returns>,
    /// What code returns whose assumption does not hold.
    without_assumption: bool,
    /// What loops are to agree on, and what those at hand are: how it is named, and the cell that says whether it has
    /// been stored.
    settled: Settled,
    watched: Vec<(Vec<Place>, Cell)>,
    /// The line of the text that code is made for, and the one that a piece begins on.
    line: u32,
    first_line: u32,
}

/// A cell and what is known of its value.
#[derive(Clone, Copy)]
struct Value {
    cell: Cell,
    lo: i64,
    hi: i64,
}

/// Where a place lies.
#[derive(Clone, Copy)]
struct Location {
    base: Cell,
    /// Computed part of the address.
    offset: Option<Cell>,
    /// Cells from `base` on that the address can fall into.
    len: u32,
}

#[derive(Clone, Copy)]
struct Label(u32);

/// What any 32-bit value can be.
const ANY: (i64, i64) = (i32::MIN as i64, i32::MAX as i64);

/// Number of simple parts of each type.
pub(crate) fn sizes(model: &Model) -> Vec<u32> {
    let mut sizes: Vec<u32> = Vec::new();
    for named in &model.types {
        sizes.push(match &named.ty {
            Type::Array { index, element } => {
                let (lo, hi) = model.bounds(*index).unwrap_or((0, 0));
                (hi - lo + 1) as u32 * sizes[element.index()]
            }
            Type::Record(fields) => fields.iter().map(|f| sizes[f.1.index()]).sum(),
            Type::Multiset { capacity, element } => capacity * (1 + sizes[element.index()]),
            _ => 1,
        });
    }
    sizes
}

impl<'a> Compiler<'a> {
    fn new(model: &'a Model, notes: bool) -> Self {
        let sizes = sizes(model);
        let mut parts = Vec::new();
        let mut bags = Vec::new();
        let mut cells = vec![0; model.variables.len()];
        for (variable, cell) in model.variables.iter().zip(&mut cells) {
            if variable.role == Role::State {
                *cell = parts.len() as Cell;
                multisets::bags(model, &sizes, variable.ty, *cell, &mut bags);
                leaves(model, variable.ty, variable.name.clone(), false, &mut parts);
            }
        }
        let mut next = parts.len() as Cell;
        let mut frame: Vec<i32> = parts.iter().map(|p| p.beginning(model)).collect();
        let slots = parts.into_iter().map(|part| Slot {
            undefined: part.beginning(model) == UNDEFINED,
            name: part.name,
            ty: part.ty,
            lo: part.lo,
            hi: part.hi,
        });
        let slots = slots.collect();
        let functions = calls::Known::all(model, &sizes, &mut next);
        let saved = next;
        for (variable, cell) in model.variables.iter().zip(&mut cells) {
            if matches!(variable.role, Role::Local | Role::Bound)
                || (variable.role == Role::Alias && functions.iter().any(|f| f.recursive))
            {
                *cell = next;
                next += sizes[variable.ty.index()];
            }
        }
        frame.resize(next as usize, 0);
        let tables = model.tables.iter().map(|t| {
            let lo = model.bounds(t.index).map_or(0, |b| b.0);
            Lookup {
                lo,
                values: t.values.clone(),
            }
        });
        let program = Program {
            slots,
            frame,
            code: Vec::new(),
            pieces: Vec::new(),
            shapes: Vec::new(),
            tables: tables.collect(),
            starts: Vec::new(),
            rules: Vec::new(),
            invariants: Vec::new(),
            quiescent: None,
            covers: Vec::new(),
            liveness: Vec::new(),
            assumptions: Vec::new(),
            bags,
            saved: saved..saved,
            names: Vec::new(),
            sites: FxHashMap::default(),
            notes: Vec::new(),
        };
        Compiler {
            model,
            program,
            notes,
            sizes,
            cells,
            known: vec![None; model.variables.len()],
            constants: FxHashMap::default(),
            constant_values: Vec::new(),
            shapes: FxHashMap::default(),
            names: FxHashMap::default(),
            temporary: next,
            most_temporaries: next,
            labels: Vec::new(),
            aliases: vec![None; model.variables.len()],
            functions,
            returns: None,
            without_assumption: false,
            settled: Settled::new(),
            watched: Vec::new(),
            line: 0,
            first_line: 0,
        }
    }

    /// Puts constants behind the temporaries.
    fn finish(mut self) -> Program {
        let first = self.most_temporaries;
        match self.functions.iter().any(|f| f.recursive) {
            true => self.program.saved.end = first,
            false => self.program.saved = 0..0,
        }
        for op in &mut self.program.code {
            op.operands(|cell| {
                if *cell & CONSTANT != 0 {
                    *cell = first + (*cell & !CONSTANT);
                }
            });
        }
        self.program.frame.resize(first as usize, 0);
        self.program.frame.extend(&self.constant_values);
        if self.program.code.len() <= MOST_CODE {
            definedness::prove(&mut self.program);
        }
        self.program
    }

    /// Calls `f` for each combination of values of the parameters, the last varying fastest.
    fn instances(&mut self, parameters: &[VariableId], mut f: impl FnMut(&mut Self, Vec<i32>)) {
        let first = parameters.iter().map(|&p| *self.domain(p).start());
        let mut arguments: Vec<i32> = first.collect();
        loop {
            for (p, &value) in parameters.iter().zip(&arguments) {
                self.known[p.index()] = Some(value);
            }
            f(self, arguments.clone());
            // The next combination: the last that is not at its end goes on, those behind it begin again.
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

    /// Calls `f` with the code of each instance of a claim, in conjuncts.
    fn claims(&mut self, claim: &Invariant, mut f: impl FnMut(&mut Self, Vec<u32>)) {
        self.instances(&claim.parameters, |c, _| {
            let mut entries = Vec::new();
            c.conjuncts(&claim.holds, &mut |c, e| entries.push(c.claim(e, true)));
            f(c, entries);
        });
    }

    fn domain(&self, bound: VariableId) -> std::ops::RangeInclusive<i32> {
        let (lo, hi) = self
            .model
            .bounds(self.model.variable(bound).ty)
            .unwrap_or((0, -1));
        lo..=hi
    }

    /// Calls `f` for each conjunct of a claim, quantifiers unrolled.
    fn conjuncts(&mut self, e: &Expr, f: &mut dyn FnMut(&mut Self, &Expr)) {
        match e {
            Expr::Bool(true) => {}
            Expr::Line(line, inner) => {
                self.first_line = *line;
                self.conjuncts(inner, f);
                self.first_line = 0;
            }
            Expr::Binary(Operator::And, a, b) => {
                self.conjuncts(a, f);
                self.conjuncts(b, f);
            }
            Expr::Forall(id, body) if self.unrolls(*id, cost(self, body)) => {
                for value in self.domain(*id) {
                    self.known[id.index()] = Some(value);
                    self.conjuncts(body, f);
                }
                self.known[id.index()] = None;
            }
            _ => f(self, e),
        }
    }

    fn unrolls(&self, bound: VariableId, cost: usize) -> bool {
        let domain = self.domain(bound);
        let count = (*domain.end() as i64 - *domain.start() as i64 + 1) as usize;
        count.saturating_mul(cost) <= UNROLL
    }

    /// Code that returns whether a claim holds, or what is given where an assumption does not; gives where it begins.
    fn claim(&mut self, e: &Expr, without_assumption: bool) -> u32 {
        self.without_assumption = without_assumption;
        self.piece(|c| {
            let no = c.label();
            c.jump(e, false, no);
            c.emit(Op::Return { verdict: true });
            c.place(no);
            c.emit(Op::Return { verdict: false });
        })
    }

    /// Code that runs statements; gives where it begins.
    fn body(&mut self, body: &[Stmt]) -> u32 {
        self.without_assumption = false;
        self.piece(|c| {
            c.block(body);
            c.emit(Op::Return { verdict: true });
        })
    }

    fn piece(&mut self, f: impl FnOnce(&mut Self)) -> u32 {
        let start = self.program.code.len();
        self.labels.clear();
        self.line = self.first_line;
        f(self);
        for op in &mut self.program.code[start..] {
            if let Op::Jump { to } | Op::JumpIf { to, .. } = op {
                *to = self.labels[*to as usize];
            }
        }
        self.program.pieces.push(start as u32);
        start as u32
    }

    fn emit(&mut self, op: Op) {
        if self.program.code.len() <= MOST_CODE {
            self.program.code.push(op);
        }
    }

    /// Emits an instruction that may fault while working on what `site` says.
    fn emit_at(&mut self, op: Op, site: impl FnOnce(&Model) -> String) {
        self.emit_showing(op, None, site);
    }

    /// The same, where the value it meets is of a type.
    fn emit_showing(&mut self, op: Op, ty: Option<TypeId>, site: impl FnOnce(&Model) -> String) {
        let site = Site {
            what: site(self.model),
            ty,
            line: self.line,
        };
        self.program
            .sites
            .insert(self.program.code.len() as u32, site);
        self.emit(op);
    }

    /// Emits a violation.
    fn fail(&mut self, violation: &Violation) {
        let name = self.name(violation);
        self.emit_at(Op::Fail { name }, |_| String::new());
    }

    /// Emits a violation of what models may do at all, unless a cell is what it should be.
    fn fail_unless(&mut self, a: Cell, wanted: i32, why: impl FnOnce(&Model) -> String) {
        let fine = self.label();
        let b = self.constant(wanted).cell;
        let op = Comparison::Equal;
        self.emit(Op::JumpIf {
            op,
            a,
            b,
            to: fine.0,
        });
        let why = why(self.model);
        self.fail(&Violation::ill_defined(why));
        self.place(fine);
    }

    fn label(&mut self) -> Label {
        self.labels.push(u32::MAX);
        Label(self.labels.len() as u32 - 1)
    }

    fn place(&mut self, label: Label) {
        self.labels[label.0 as usize] = self.program.code.len() as u32;
    }

    fn temporary(&mut self) -> Cell {
        self.temporary += 1;
        self.most_temporaries = self.most_temporaries.max(self.temporary);
        self.temporary - 1
    }

    fn constant(&mut self, value: i32) -> Value {
        let next = self.constant_values.len() as Cell | CONSTANT;
        let cell = *self.constants.entry(value).or_insert_with(|| {
            self.constant_values.push(value);
            next
        });
        Value {
            cell,
            lo: value as i64,
            hi: value as i64,
        }
    }

    fn name(&mut self, name: &Violation) -> u32 {
        if let Some(&known) = self.names.get(name) {
            return known;
        }
        self.program.names.push(name.clone());
        let index = self.program.names.len() as u32 - 1;
        self.names.insert(name.clone(), index);
        index
    }

    fn shape(&mut self, shape: Shape) -> u32 {
        let next = self.program.shapes.len() as u32;
        let index = *self.shapes.entry(shape).or_insert(next);
        if index == next {
            self.program.shapes.push(shape);
        }
        index
    }

    /// The value of an expression that needs no state, if computing it cannot fail.
    fn known(&self, e: &Expr) -> Option<i32> {
        use Operator::*;
        match e {
            Expr::Int(n) => Some(*n),
            Expr::Bool(b) => Some(*b as i32),
            Expr::Label(_, n) => Some(*n as i32),
            Expr::Read(Place { variable, path }) if path.is_empty() => self.known[variable.index()],
            Expr::Peek(Place { variable, path }) if path.is_empty() => self.known[variable.index()],
            Expr::Line(_, e) => self.known(e),
            Expr::Convert(to, e) => {
                let value = self.known(e)?;
                let (shift, lo, hi) = self.conversion(*to, e)?;
                (lo..=hi).contains(&value).then(|| value + shift)
            }
            Expr::IsMember(e, ty) => {
                let value = self.known(e)?;
                let (_, lo, hi) = self.conversion(*ty, e)?;
                Some((lo..=hi).contains(&value) as i32)
            }
            Expr::Read(_)
            | Expr::Peek(_)
            | Expr::Undefined(_)
            | Expr::IsUndefined(_)
            | Expr::Forall(..)
            | Expr::Exists(..)
            | Expr::ForallSteps(..)
            | Expr::ExistsSteps(..)
            | Expr::Call(..)
            | Expr::Alias(..)
            | Expr::Let(..)
            | Expr::Present(..)
            | Expr::Count(..) => None,
            Expr::Table(id, index) => {
                let table = &self.program.tables[id.index()];
                table
                    .values
                    .get(self.known(index)?.checked_sub(table.lo)? as usize)
                    .copied()
            }
            Expr::Not(a) => Some(1 - self.known(a)?),
            Expr::Negate(a) => self.known(a)?.checked_neg(),
            Expr::If(c, a, b) => self.known(if self.known(c)? != 0 { a } else { b }),
            Expr::Binary(op, a, b) => {
                let a = self.known(a)?;
                match op {
                    And if a == 0 => return Some(0),
                    Or if a != 0 => return Some(1),
                    Implies if a == 0 => return Some(1),
                    _ => {}
                }
                let b = self.known(b)?;
                Some(match op {
                    Add => a.checked_add(b)?,
                    Subtract => a.checked_sub(b)?,
                    Multiply => a.checked_mul(b)?,
                    Divide => a.checked_div(b)?,
                    Remainder => a.checked_rem(b)?,
                    Equal => (a == b) as i32,
                    NotEqual => (a != b) as i32,
                    Less => (a < b) as i32,
                    LessOrEqual => (a <= b) as i32,
                    Greater => (a > b) as i32,
                    GreaterOrEqual => (a >= b) as i32,
                    BitAnd => a & b,
                    BitOr => a | b,
                    BitXor => a ^ b,
                    ShiftLeft => crate::interpret::shift(a, b as i64)?,
                    ShiftRight => crate::interpret::shift(a, -(b as i64))?,
                    And | Or | Implies => b,
                })
            }
        }
    }

    /// Code that goes to `to` if a condition is `when`, and falls through otherwise.
    fn jump(&mut self, e: &Expr, when: bool, to: Label) {
        if let Some(value) = self.known(e) {
            if (value != 0) == when {
                self.emit(Op::Jump { to: to.0 });
            }
            return;
        }
        match e {
            Expr::Not(a) => self.jump(a, !when, to),
            Expr::Binary(Operator::And, a, b) => self.both(a, true, b, true, when, to),
            Expr::Binary(Operator::Or, a, b) => self.both(a, false, b, false, !when, to),
            Expr::Binary(Operator::Implies, a, b) => self.both(a, true, b, false, !when, to),
            Expr::Line(line, e) => {
                self.line = *line;
                self.jump(e, when, to);
            }
            Expr::Alias(id, place, e) => self.aliased(*id, place, |c| c.jump(e, when, to)),
            Expr::Let(id, value, e) => {
                let mark = self.temporary;
                self.assign(&(*id).into(), value);
                self.temporary = mark;
                self.jump(e, when, to);
            }
            Expr::Binary(op @ (Operator::Equal | Operator::NotEqual), a, b)
                if self.is_aggregate(a) =>
            {
                let mark = self.temporary;
                self.aggregates(a, b, when == (*op == Operator::Equal), to);
                self.temporary = mark;
            }
            Expr::Binary(op, a, b) => {
                let mark = self.temporary;
                let (a, b) = self.two_values(a, b);
                let (op, a, b) = comparison(*op, a.cell, b.cell);
                // The negation of `a < b` is `b <= a`.
                let (op, a, b) = match (when, op) {
                    (true, op) => (op, a, b),
                    (false, Comparison::Equal) => (Comparison::NotEqual, a, b),
                    (false, Comparison::NotEqual) => (Comparison::Equal, a, b),
                    (false, Comparison::Less) => (Comparison::LessOrEqual, b, a),
                    (false, Comparison::LessOrEqual) => (Comparison::Less, b, a),
                };
                self.temporary = mark;
                self.emit(Op::JumpIf { op, a, b, to: to.0 });
            }
            Expr::Forall(id, body) => self.quantified(*id, body, true, when, to),
            Expr::Exists(id, body) => self.quantified(*id, body, false, !when, to),
            Expr::ForallSteps(id, steps, body) => {
                self.quantified_steps(*id, steps, body, true, when, to)
            }
            Expr::ExistsSteps(id, steps, body) => {
                self.quantified_steps(*id, steps, body, false, !when, to)
            }
            Expr::IsUndefined(place) => {
                let mark = self.temporary;
                let (location, _) = self.locate(place);
                let a = self.load(location);
                let b = self.constant(UNDEFINED).cell;
                self.temporary = mark;
                let op = match when {
                    true => Comparison::Equal,
                    false => Comparison::NotEqual,
                };
                self.emit(Op::JumpIf { op, a, b, to: to.0 });
            }
            Expr::IsMember(e, ty) => {
                let mark = self.temporary;
                let conversion = self.conversion(*ty, e);
                let value = self.value(e);
                let (_, lo, hi) = conversion.unwrap_or((0, 0, -1));
                let end = self.label();
                let outside = if when { end } else { to };
                let (lo, hi) = (self.constant(lo).cell, self.constant(hi).cell);
                let op = Comparison::Less;
                self.emit(Op::JumpIf {
                    op,
                    a: value.cell,
                    b: lo,
                    to: outside.0,
                });
                self.emit(Op::JumpIf {
                    op,
                    a: hi,
                    b: value.cell,
                    to: outside.0,
                });
                if when {
                    self.emit(Op::Jump { to: to.0 });
                }
                self.place(end);
                self.temporary = mark;
            }
            _ => {
                let mark = self.temporary;
                let value = self.value(e);
                self.temporary = mark;
                let zero = self.constant(0);
                let op = if when {
                    Comparison::NotEqual
                } else {
                    Comparison::Equal
                };
                self.emit(Op::JumpIf {
                    op,
                    a: value.cell,
                    b: zero.cell,
                    to: to.0,
                });
            }
        }
    }

    /// Goes to `to` if "`a` is `x` and `b` is `y`" is `when`.
    fn both(&mut self, a: &Expr, x: bool, b: &Expr, y: bool, when: bool, to: Label) {
        if when {
            let end = self.label();
            self.jump(a, !x, end);
            self.jump(b, y, to);
            self.place(end);
        } else {
            self.jump(a, !x, to);
            self.jump(b, !y, to);
        }
    }

    /// Goes to `to` if "the body is `x` for all values" is `when`.
    fn quantified(&mut self, id: VariableId, body: &Expr, x: bool, when: bool, to: Label) {
        let end = self.label();
        let broken = if when { end } else { to };
        self.repeat(id, cost(self, body), |c| c.jump(body, !x, broken));
        if when {
            self.emit(Op::Jump { to: to.0 });
        }
        self.place(end);
    }

    /// The same for numbers in steps.
    fn quantified_steps(
        &mut self,
        id: VariableId,
        steps: &Steps,
        body: &Expr,
        x: bool,
        when: bool,
        to: Label,
    ) {
        let mark = self.temporary;
        let end = self.label();
        let broken = if when { end } else { to };
        self.repeat_steps(id, steps, cost(self, body), |c| c.jump(body, !x, broken));
        if when {
            self.emit(Op::Jump { to: to.0 });
        }
        self.place(end);
        self.temporary = mark;
    }

    /// Emits `f` for numbers in steps, unrolled or as a loop.
    fn repeat_steps(
        &mut self,
        id: VariableId,
        steps: &Steps,
        cost: usize,
        mut f: impl FnMut(&mut Self),
    ) {
        let by = self.known(&steps.by);
        if let (Some(from), Some(to), Some(by)) =
            (self.known(&steps.from), self.known(&steps.to), by)
        {
            let (from, to, by) = (from as i64, to as i64, by as i64);
            let count = if by == 0 {
                i64::MAX
            } else {
                ((to - from) / by + 1).max(0)
            };
            if by != 0 && (to - from) * by.signum() < 0 {
                return;
            }
            if count.saturating_mul(cost.max(1) as i64) <= UNROLL as i64 {
                for i in 0..count {
                    self.known[id.index()] = Some((from + i * by) as i32);
                    f(self);
                }
                self.known[id.index()] = None;
                return;
            }
        }
        let cell = self.cells[id.index()];
        let kept = |c: &mut Self, e: &Expr| {
            let value = c.value(e);
            let dst = c.temporary();
            c.emit(Op::Copy { dst, a: value.cell });
            dst
        };
        let from = kept(self, &steps.from);
        let last = kept(self, &steps.to);
        let step = kept(self, &steps.by);
        let zero = self.constant(0).cell;
        self.emit(Op::Copy { dst: cell, a: from });
        if by.is_none_or(|by| by == 0) {
            let fine = self.label();
            let op = Comparison::NotEqual;
            self.emit(Op::JumpIf {
                op,
                a: step,
                b: zero,
                to: fine.0,
            });
            self.fail(&Violation::ill_defined("a loop has steps of 0"));
            self.place(fine);
        }
        let (top, down, body, end) = (self.label(), self.label(), self.label(), self.label());
        let op = Comparison::Less;
        self.place(top);
        self.emit(Op::JumpIf {
            op,
            a: step,
            b: zero,
            to: down.0,
        });
        self.emit(Op::JumpIf {
            op,
            a: last,
            b: cell,
            to: end.0,
        });
        self.emit(Op::Jump { to: body.0 });
        self.place(down);
        self.emit(Op::JumpIf {
            op,
            a: cell,
            b: last,
            to: end.0,
        });
        self.place(body);
        f(self);
        let next = self.temporary();
        self.emit_at(
            Op::Arithmetic {
                op: Arithmetic::Add,
                dst: next,
                a: cell,
                b: step,
            },
            |_| String::new(),
        );
        self.emit(Op::Copy { dst: cell, a: next });
        self.emit(Op::Jump { to: top.0 });
        self.place(end);
    }

    /// Emits `f` for each value of a bound variable, unrolled or as a loop.
    fn repeat(&mut self, id: VariableId, cost: usize, mut f: impl FnMut(&mut Self)) {
        let domain = self.domain(id);
        if self.unrolls(id, cost) {
            for value in domain {
                self.known[id.index()] = Some(value);
                f(self);
            }
            self.known[id.index()] = None;
            return;
        }
        let cell = self.cells[id.index()];
        let (first, last) = (
            self.constant(*domain.start()).cell,
            self.constant(*domain.end()).cell,
        );
        let one = self.constant(1).cell;
        self.emit(Op::Copy {
            dst: cell,
            a: first,
        });
        let (top, end) = (self.label(), self.label());
        self.place(top);
        f(self);
        self.emit(Op::JumpIf {
            op: Comparison::Equal,
            a: cell,
            b: last,
            to: end.0,
        });
        self.emit(Op::Arithmetic {
            op: Arithmetic::Add,
            dst: cell,
            a: cell,
            b: one,
        });
        self.emit(Op::Jump { to: top.0 });
        self.place(end);
    }

    /// Code that computes a simple value. It may be the cell of a variable itself.
    fn value(&mut self, e: &Expr) -> Value {
        if let Some(value) = self.known(e) {
            return self.constant(value);
        }
        match e {
            Expr::Read(place) | Expr::Peek(place) => {
                let (location, ty) = self.locate(place);
                let cell = self.load(location);
                let can_lack =
                    self.model.undefined && self.model.variable(place.variable).role != Role::Bound;
                if can_lack && matches!(e, Expr::Peek(_)) {
                    let hi = self.model.bounds(ty).map_or(ANY.1, |b| b.1 as i64);
                    return Value {
                        cell,
                        lo: UNDEFINED as i64,
                        hi,
                    };
                }
                if can_lack {
                    self.emit_at(Op::Defined { a: cell }, |m| m.spell(place));
                }
                let (lo, hi) = self
                    .model
                    .bounds(ty)
                    .map_or(ANY, |(lo, hi)| (lo as i64, hi as i64));
                Value { cell, lo, hi }
            }
            Expr::Table(id, index) => {
                let index = self.value(index);
                let dst = self.temporary();
                let op = Op::Table {
                    dst,
                    a: index.cell,
                    table: id.0,
                };
                self.emit_at(op, |m| m.tables[id.index()].name.clone());
                let result = self.model.tables[id.index()].result;
                let (lo, hi) = self
                    .model
                    .bounds(result)
                    .map_or(ANY, |(lo, hi)| (lo as i64, hi as i64));
                Value { cell: dst, lo, hi }
            }
            Expr::Negate(a) => {
                let zero = self.constant(0);
                let a = self.value(a);
                self.arithmetic(Arithmetic::Subtract, zero, a)
            }
            Expr::Line(line, e) => {
                self.line = *line;
                self.value(e)
            }
            Expr::Undefined(_) => self.constant(UNDEFINED),
            Expr::Call(id, arguments) => {
                let at = self.call(*id, arguments);
                let ty = self.model.functions[id.index()].result;
                let (lo, hi) = ty.and_then(|ty| self.model.bounds(ty)).unwrap_or((0, 0));
                Value {
                    cell: at.base,
                    lo: if self.model.undefined {
                        UNDEFINED as i64
                    } else {
                        lo as i64
                    },
                    hi: hi as i64,
                }
            }
            Expr::Alias(id, place, e) => self.aliased(*id, place, |c| c.value(e)),
            Expr::Let(id, value, e) => {
                self.assign(&(*id).into(), value);
                self.value(e)
            }
            Expr::Convert(to, e) => self.convert(*to, e),
            Expr::Present(place, index) => {
                let at = self.slot(place, index);
                let cell = self.load(at);
                Value { cell, lo: 0, hi: 1 }
            }
            Expr::Count(id, place, claim) => self.count(*id, place, claim),
            Expr::Binary(op, a, b) if op.arithmetic() => {
                let (a, b) = self.two_values(a, b);
                let op = match op {
                    Operator::Add => Arithmetic::Add,
                    Operator::Subtract => Arithmetic::Subtract,
                    Operator::Multiply => Arithmetic::Multiply,
                    Operator::Divide => Arithmetic::Divide,
                    Operator::BitAnd => Arithmetic::BitAnd,
                    Operator::BitOr => Arithmetic::BitOr,
                    Operator::BitXor => Arithmetic::BitXor,
                    Operator::ShiftLeft => Arithmetic::ShiftLeft,
                    Operator::ShiftRight => Arithmetic::ShiftRight,
                    _ => Arithmetic::Remainder,
                };
                self.arithmetic(op, a, b)
            }
            Expr::If(c, a, b) => {
                if let Some(c) = self.known(c) {
                    return self.value(if c != 0 { a } else { b });
                }
                let dst = self.temporary();
                let (no, end) = (self.label(), self.label());
                self.jump(c, false, no);
                let a = self.value(a);
                self.emit(Op::Copy { dst, a: a.cell });
                self.emit(Op::Jump { to: end.0 });
                self.place(no);
                let b = self.value(b);
                self.emit(Op::Copy { dst, a: b.cell });
                self.place(end);
                Value {
                    cell: dst,
                    lo: a.lo.min(b.lo),
                    hi: a.hi.max(b.hi),
                }
            }
            // What remains are truth values.
            Expr::Binary(op, a, b)
                if !matches!(op, Operator::And | Operator::Or | Operator::Implies)
                    && !self.is_aggregate(a) =>
            {
                let (a, b) = self.two_values(a, b);
                let dst = self.temporary();
                let (op, a, b) = comparison(*op, a.cell, b.cell);
                self.emit(Op::Compare { op, dst, a, b });
                Value {
                    cell: dst,
                    lo: 0,
                    hi: 1,
                }
            }
            _ => {
                let dst = self.temporary();
                let (zero, one) = (self.constant(0).cell, self.constant(1).cell);
                let end = self.label();
                self.emit(Op::Copy { dst, a: zero });
                self.jump(e, false, end);
                self.emit(Op::Copy { dst, a: one });
                self.place(end);
                Value {
                    cell: dst,
                    lo: 0,
                    hi: 1,
                }
            }
        }
    }

    fn arithmetic(&mut self, op: Arithmetic, a: Value, b: Value) -> Value {
        let dst = self.temporary();
        self.emit_at(
            Op::Arithmetic {
                op,
                dst,
                a: a.cell,
                b: b.cell,
            },
            |_| String::new(),
        );
        let (lo, hi) = match op {
            Arithmetic::Add => (a.lo + b.lo, a.hi + b.hi),
            Arithmetic::Subtract => (a.lo - b.hi, a.hi - b.lo),
            _ => ANY,
        };
        Value { cell: dst, lo, hi }
    }

    /// Where a place lies and its type; computes what is not constant of its address.
    fn locate(&mut self, place: &Place) -> (Location, TypeId) {
        let model = self.model;
        let mut ty = model.variable(place.variable).ty;
        let mut at = self.aliases[place.variable.index()].unwrap_or(Location {
            base: self.cells[place.variable.index()],
            offset: None,
            len: self.sizes[ty.index()],
        });
        for (depth, step) in place.path.iter().enumerate() {
            let part = match (model.ty(ty), step) {
                (Type::Multiset { element, .. }, Step::Index(e)) => {
                    let bag = Place {
                        variable: place.variable,
                        path: place.path[..depth].to_vec(),
                    };
                    let slot = self.slot_at(at, ty, e, &bag);
                    let mark = self.temporary;
                    let present = self.load(slot);
                    self.temporary = mark;
                    self.fail_unless(present, 1, |m| {
                        format!(
                            "there is no element in a slot of `{}` that is used",
                            m.spell(&bag)
                        )
                    });
                    at = slot.part(1);
                    at.len = if at.offset.is_some() {
                        at.len
                    } else {
                        self.sizes[element.index()]
                    };
                    ty = *element;
                    continue;
                }
                (Type::Array { index, element }, Step::Index(e)) => {
                    let (lo, hi) = model.bounds(*index).unwrap_or((0, 0));
                    let stride = self.sizes[element.index()];
                    let value = self.value(e);
                    ty = *element;
                    if value.lo == value.hi && value.lo >= lo as i64 && value.hi <= hi as i64 {
                        (value.lo - lo as i64) as u32 * stride
                    } else {
                        let shape = self.shape(Shape {
                            lo,
                            count: (hi - lo + 1) as u32,
                            stride,
                        });
                        let dst = self.temporary();
                        let before = &place.path[..depth];
                        let name = |m: &Model| {
                            m.spell(&Place {
                                variable: place.variable,
                                path: before.to_vec(),
                            })
                        };
                        self.emit_at(
                            Op::Index {
                                dst,
                                a: value.cell,
                                shape,
                            },
                            name,
                        );
                        at.offset = Some(match at.offset {
                            None => dst,
                            Some(sum) => {
                                self.emit(Op::Arithmetic {
                                    op: Arithmetic::Add,
                                    dst,
                                    a: sum,
                                    b: dst,
                                });
                                dst
                            }
                        });
                        continue;
                    }
                }
                (Type::Record(fields), Step::Field(name)) => {
                    let mut before = 0;
                    for (field, part) in fields {
                        if field == name {
                            ty = *part;
                            break;
                        }
                        before += self.sizes[part.index()];
                    }
                    before
                }
                // Excluded by validation.
                _ => 0,
            };
            at.base += part;
            // Behind a computed index, what is left of the array stays within reach.
            at.len = if at.offset.is_some() {
                at.len - part
            } else {
                self.sizes[ty.index()]
            };
        }
        (at, ty)
    }

    fn load(&mut self, at: Location) -> Cell {
        match at.offset {
            None => at.base,
            Some(offset) => {
                let dst = self.temporary();
                self.emit(Op::Load {
                    dst,
                    offset,
                    base: at.base,
                    len: reach(at.len),
                });
                dst
            }
        }
    }

    fn store(&mut self, at: Location, a: Cell) {
        match at.offset {
            Some(offset) => self.emit(Op::Store {
                offset,
                a,
                base: at.base,
                len: reach(at.len),
            }),
            None if (at.base as usize) < self.program.slots.len() => {
                self.emit(Op::Set { dst: at.base, a })
            }
            None => self.emit(Op::Copy { dst: at.base, a }),
        }
    }
}

/// The comparison of two cells in the form that instructions have.
fn comparison(op: Operator, a: Cell, b: Cell) -> (Comparison, Cell, Cell) {
    match op {
        Operator::Equal => (Comparison::Equal, a, b),
        Operator::NotEqual => (Comparison::NotEqual, a, b),
        Operator::Less => (Comparison::Less, a, b),
        Operator::LessOrEqual => (Comparison::LessOrEqual, a, b),
        Operator::Greater => (Comparison::Less, b, a),
        _ => (Comparison::LessOrEqual, b, a),
    }
}

/// A reach too long to be written down counts as the whole state.
fn reach(len: u32) -> u16 {
    len.min(u16::MAX as u32) as u16
}

/// A simple part of a value.
struct Part {
    /// `cells[2].state`.
    name: String,
    ty: TypeId,
    lo: i32,
    hi: i32,
    /// Whether it is part of a multiset's slot.
    in_bag: bool,
}

impl Part {
    /// Its value before anything has been assigned.
    fn beginning(&self, model: &Model) -> i32 {
        match model.undefined && !self.in_bag {
            true => UNDEFINED,
            false => self.lo,
        }
    }
}

/// Appends the simple parts of a type, in the order in which they lie in a frame.
fn leaves(model: &Model, ty: TypeId, name: String, in_bag: bool, parts: &mut Vec<Part>) {
    match model.ty(ty) {
        Type::Array { index, element } => {
            let (lo, hi) = model.bounds(*index).unwrap_or((0, -1));
            for i in lo..=hi {
                let name = format!("{name}[{}]", model.show(*index, i));
                leaves(model, *element, name, in_bag, parts);
            }
        }
        Type::Record(fields) => {
            for (field, part) in fields {
                leaves(model, *part, format!("{name}.{field}"), in_bag, parts);
            }
        }
        Type::Multiset { capacity, element } => {
            for i in 0..*capacity {
                parts.push(Part {
                    name: format!("{name}[{i}] present"),
                    ty: TypeId::BOOL,
                    lo: 0,
                    hi: 1,
                    in_bag: true,
                });
                leaves(model, *element, format!("{name}[{i}]"), true, parts);
            }
        }
        _ => {
            let (lo, hi) = model.bounds(ty).unwrap_or((0, 0));
            parts.push(Part {
                name,
                ty,
                lo,
                hi,
                in_bag,
            });
        }
    }
}

impl Location {
    /// What lies some cells behind.
    fn part(self, cells: u32) -> Location {
        Location {
            base: self.base + cells,
            len: self.len.saturating_sub(cells),
            ..self
        }
    }
}
