//! The interpreter: runs a [`Program`]'s code on one frame.
//!
//! The code is kept simple, since this interpreter is the oracle for faster engines.
//! Firing a rule changes the frame in place and logs the overwritten values. A successor is then packed by patching
//! only the changed slots of its parent, and undone as cheaply.

use crate::model::{Model, Number, Violation};
use crate::program::{Arithmetic, Cell, Instance, Lookup, Op, Program, Shape, Site, UNDEFINED};

pub(crate) mod orders;

/// Fault of a run: the index of the instruction, and the value that caused the fault.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Fault {
    /// Index into [`Program::code`].
    pub instruction: u32,
    /// Value of the operand that caused the fault; 0 if none did.
    pub value: Number,
}

/// A frame, with the means to run code on it.
pub(crate) struct Machine<'a> {
    /// Program to run.
    program: &'a Program,
    /// Cell values; the slots of the state come first.
    pub frame: Vec<Number>,
    /// Overwritten slots since the log was last cleared, with their old values. A slot that is overwritten repeatedly
    /// may occur several times; [`shorten`] bounds the length.
    pub log: Vec<(Cell, Number)>,
    /// Notes emitted, with their values.
    pub notes: Vec<(u32, Vec<Number>)>,
    /// Covers marked by [`Op::Cover`] so far.
    pub covered: Vec<bool>,
    /// Loops whose order may have mattered in the last run: index into [`LoopOrders::orders`], and the instruction that
    /// found it first.
    disagreements: Vec<(u32, u32)>,
    /// Orders of loops with different results, if the last run failed for that reason.
    pub conflict: Option<Box<orders::Conflict>>,
    /// Fault to report if only some orders of a loop make the last rule change the state.
    pub move_by_order: Option<Fault>,
    /// Return addresses of the calls, with the cells they saved.
    calls: Vec<(u32, Vec<Number>)>,
}

/// Maximum depth of calls; a deeper call is a fault.
const MAX_CALL_DEPTH: usize = 10_000;

/// Maximum number of cells saved by all calls together; an excess is a fault.
const MAX_SAVED_CELLS: usize = 1 << 26;

/// Maximum depth of calls that save `saved_cells` cells each.
fn max_call_depth(saved_cells: usize) -> usize {
    MAX_CALL_DEPTH.min(MAX_SAVED_CELLS / saved_cells.max(1))
}

impl<'a> Machine<'a> {
    /// Creates a machine whose frame has the initial values of the program; call [`Machine::start`] before any rule.
    pub fn new(program: &'a Program) -> Self {
        Machine {
            program,
            frame: program.frame.clone(),
            log: Vec::new(),
            notes: Vec::new(),
            covered: vec![false; program.properties.covers.len()],
            disagreements: Vec::new(),
            conflict: None,
            move_by_order: None,
            calls: Vec::new(),
        }
    }

    /// Sets the frame to a start state. Returns false if an assumption in its body excludes it.
    pub fn start(&mut self, start: u32) -> Result<bool, Fault> {
        let program = self.program;
        self.frame.clone_from(&program.frame);
        self.log.clear();
        let Some(instance) = program.start(start) else {
            return Ok(false);
        };
        let exists = self.run_code(CodePart::Body(instance, start), instance.body);
        self.sort_multisets();
        exists
    }

    /// Sets the parameters of an instance that represents many combinations to the values of one.
    #[inline]
    fn set_parameters(&mut self, instance: &Instance, number: u32) {
        if let Some(parameter_loop) = &instance.parameter_loop {
            for (parameter, value) in parameter_loop.values(number - instance.number) {
                self.frame[parameter.cell as usize] = value;
            }
        }
    }

    /// Sorts the multisets of the frame, inner ones first, and logs the changes.
    fn sort_multisets(&mut self) {
        let log = &mut self.log;
        self.program
            .sort_multisets(&mut self.frame, |cell, old| log.push((cell, old)));
    }

    /// True if no assumption excludes the frame's state.
    #[inline]
    pub fn satisfies_assumptions(&mut self) -> Result<bool, Fault> {
        for i in 0..self.program.properties.assumptions.len() {
            if !self.run(self.program.properties.assumptions[i])? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// True if the rule of this number may fire in the frame's state; `rule` is its instance.
    #[inline]
    pub fn is_enabled(&mut self, rule: &Instance, number: u32) -> Result<bool, Fault> {
        match rule.guard {
            Some(guard) => self.run_code(CodePart::Guard(rule, number), guard),
            None => Ok(false),
        }
    }

    /// Returns the first enabled rule of an instance in the frame's state, as a number from `from` on.
    /// A fault comes with the number of the rule whose guard cannot be evaluated.
    #[inline]
    pub fn next_enabled(
        &mut self,
        rule: &Instance,
        from: u32,
    ) -> Result<Option<u32>, (u32, Fault)> {
        let (Some(parameter_loop), Some(_)) = (&rule.parameter_loop, rule.guard) else {
            let enabled = self.is_enabled(rule, from).map_err(|fault| (from, fault))?;
            return Ok(enabled.then_some(from));
        };
        let outcome = self.run_code(CodePart::Guard(rule, from), parameter_loop.next);
        let number = || rule.number + parameter_loop.position(|_, cell| self.frame[cell as usize]);
        match outcome {
            Ok(outcome) => Ok(outcome.then(number)),
            Err(fault) => Err((number(), fault)),
        }
    }

    /// Fires the rule of this number; `rule` is its instance. [`Machine::undo`] reverts it.
    /// Returns false if an assumption in its body keeps it from firing.
    #[inline]
    pub fn fire(&mut self, rule: &Instance, number: u32) -> Result<bool, Fault> {
        self.log.clear();
        self.move_by_order = None;
        let fired = self.run_code(CodePart::Body(rule, number), rule.body);
        self.sort_multisets();
        fired
    }

    /// Reverts the writes since the log was last cleared.
    #[inline]
    pub fn undo(&mut self) {
        while let Some((slot, old)) = self.log.pop() {
            self.frame[slot as usize] = old;
        }
    }

    /// Runs the code of a claim from `entry` to its return, and returns its verdict.
    pub fn run(&mut self, entry: u32) -> Result<bool, Fault> {
        self.run_code(CodePart::Claim, entry)
    }

    /// Runs code from `entry` to its return. If the order of a loop over a scalarset may have mattered, the results of
    /// all orders are compared.
    #[inline]
    fn run_code(&mut self, part: CodePart, entry: u32) -> Result<bool, Fault> {
        self.prepare(part);
        let notes = self.notes.len();
        let verdict = self.execute(entry);
        // A fault may be an early exit of a loop. Notes must not come from iterations after a return.
        let may_exit_early = (verdict.is_err() || !self.program.notes.is_empty())
            && !self.program.loop_orders.provisional.is_empty();
        match self.disagreements.is_empty() && !may_exit_early {
            true => verdict,
            false => {
                self.notes.truncate(notes);
                self.settle_orders(part, entry, verdict)
            }
        }
    }

    /// Sets the parameters of a part.
    #[inline]
    fn prepare(&mut self, part: CodePart) {
        if let CodePart::Body(instance, number) | CodePart::Guard(instance, number) = part {
            self.set_parameters(instance, number);
        }
    }

    /// Interprets code from `pc` to its return, and returns its verdict.
    fn execute(&mut self, pc: u32) -> Result<bool, Fault> {
        let program = self.program;
        self.calls.clear();
        let frame = &mut self.frame[..];
        let mut pc = pc as usize;
        macro_rules! fault {
            ($value:expr) => {
                return Err(Fault {
                    instruction: pc as u32,
                    value: $value,
                })
            };
        }
        loop {
            match program.code[pc] {
                Op::JumpIf { op, a, b, to } => {
                    if op.holds(frame[a as usize], frame[b as usize]) {
                        pc = to as usize;
                        continue;
                    }
                }
                Op::Jump { to } => {
                    pc = to as usize;
                    continue;
                }
                Op::Return { verdict } => return Ok(verdict),
                Op::Set { dst, a } => {
                    let value = frame[a as usize];
                    let old = std::mem::replace(&mut frame[dst as usize], value);
                    self.log.push((dst, old));
                    shorten(&mut self.log, program.slots.len());
                }
                Op::Copy { dst, a } => frame[dst as usize] = frame[a as usize],
                Op::Check { a, bounds } => {
                    let (lo, hi) = program.bounds[bounds as usize];
                    let value = frame[a as usize];
                    if value < lo || value > hi {
                        fault!(value);
                    }
                }
                Op::Defined { a } => {
                    if frame[a as usize] == UNDEFINED {
                        fault!(UNDEFINED);
                    }
                }
                Op::Disagree { order, .. } => {
                    if self.disagreements.iter().all(|known| known.0 != order) {
                        self.disagreements.push((order, pc as u32));
                    }
                }
                Op::Cover { cover } => self.covered[cover as usize] = true,
                Op::Call { to } => {
                    if self.calls.len() >= max_call_depth(program.saved_cells.len()) {
                        fault!(0);
                    }
                    let saved =
                        program.saved_cells.start as usize..program.saved_cells.end as usize;
                    self.calls.push((pc as u32 + 1, frame[saved].to_vec()));
                    pc = to as usize;
                    continue;
                }
                Op::EndCall => {
                    let Some((back, saved)) = self.calls.pop() else {
                        unreachable!("a function's code is entered by calls alone")
                    };
                    let first = program.saved_cells.start as usize;
                    frame[first..first + saved.len()].copy_from_slice(&saved);
                    pc = back as usize;
                    continue;
                }
                Op::Index { dst, a, shape } => {
                    let Shape { lo, count, stride } = program.shapes[shape as usize];
                    let value = frame[a as usize];
                    // An index below `lo` wraps to a large number.
                    let index = value.wrapping_sub(lo) as u64;
                    if index >= count.into() {
                        fault!(value);
                    }
                    frame[dst as usize] = Number::from(index as u32 * stride);
                }
                Op::Load {
                    dst, offset, base, ..
                } => {
                    frame[dst as usize] = frame[base as usize + frame[offset as usize] as usize];
                }
                Op::Store {
                    offset, a, base, ..
                } => {
                    let dst = base as usize + frame[offset as usize] as usize;
                    let value = frame[a as usize];
                    let old = std::mem::replace(&mut frame[dst], value);
                    if dst < program.slots.len() {
                        self.log.push((dst as Cell, old));
                        shorten(&mut self.log, program.slots.len());
                    }
                }
                Op::Table { dst, a, table } => {
                    let Lookup { lo, ref values } = program.tables[table as usize];
                    let value = frame[a as usize];
                    match values.get(value.wrapping_sub(lo) as usize) {
                        Some(&entry) => frame[dst as usize] = entry.into(),
                        None => fault!(value),
                    }
                }
                Op::Compare { op, dst, a, b } => {
                    frame[dst as usize] = op.holds(frame[a as usize], frame[b as usize]).into();
                }
                Op::Arithmetic { op, dst, a, b } => {
                    let (a, b) = (frame[a as usize], frame[b as usize]);
                    match op.of(a, b) {
                        Some(result) => frame[dst as usize] = result,
                        None => fault!(b),
                    }
                }
                Op::Note { note, values } => {
                    let count = program.notes[note as usize].value_count() as usize;
                    let values = &frame[values as usize..values as usize + count];
                    self.notes.push((note, values.to_vec()));
                }
                Op::Fail { .. } => fault!(0),
            }
            pc += 1;
        }
    }
}

/// Code of a model that can be run.
#[derive(Clone, Copy)]
enum CodePart<'p> {
    /// Body of the rule or start state with this number, and its instance.
    Body(&'p Instance, u32),
    /// Guard of the rule with this number, or of the first enabled one from it on.
    Guard(&'p Instance, u32),
    /// An invariant, assumption or other condition, of which only the verdict counts.
    Claim,
}

/// Bounds the log: once it is much longer than the number of slots, keeps only the oldest value of each slot.
#[inline(always)]
fn shorten(log: &mut Vec<(Cell, Number)>, slots: usize) {
    if log.len() > 2 * slots + 1024 {
        keep_oldest_values(log, slots);
    }
}

/// Removes all entries of the log but the first of each slot, which [`Machine::undo`] applies last.
#[cold]
fn keep_oldest_values(log: &mut Vec<(Cell, Number)>, slots: usize) {
    let mut is_logged = vec![false; slots];
    log.retain(|&(slot, _)| !std::mem::replace(&mut is_logged[slot as usize], true));
}

impl Program {
    /// Violation reported by a fault. `Ok` for an error or assertion of the model, `Err` with a description for an
    /// ill-defined operation. Includes the line, if there is a text.
    pub fn explain(&self, model: &Model, fault: Fault) -> Result<Violation, String> {
        let site = self.sites.get(&fault.instruction);
        let line = site.map_or(0, |site| site.line);
        let with_line = |text: String| match line {
            0 => text,
            line => format!("{text} (line {line})"),
        };
        if let Op::Fail { violation } | Op::Disagree { violation, .. } =
            self.code[fault.instruction as usize]
        {
            let mut violation = self.violations[violation as usize].clone();
            if line != 0 {
                violation.reason = with_line(violation.to_string());
            }
            return match violation.property == Violation::ILL_DEFINED {
                true => Err(violation.reason),
                false => Ok(violation),
            };
        }
        Err(with_line(self.ill_defined(model, fault, site)))
    }

    /// True if a fault reports an exceeded limit of the model.
    pub fn is_limit(&self, fault: Fault) -> bool {
        match self.code[fault.instruction as usize] {
            Op::Fail { violation } | Op::Disagree { violation, .. } => {
                self.violations[violation as usize].limit
            }
            _ => false,
        }
    }

    /// Description of an ill-defined operation, as a clause.
    fn ill_defined(&self, model: &Model, fault: Fault, site: Option<&Site>) -> String {
        let operand = site.map_or("", |site| site.operand.as_str());
        let show = |value: Number| match site.and_then(|site| site.ty) {
            Some(ty) => model.show(ty, value),
            None => value.to_string(),
        };
        let value = fault.value;
        match self.code[fault.instruction as usize] {
            // A check without a name belongs to arithmetic of fewer than 64 bits.
            Op::Check { .. } if operand.is_empty() => self.number_overflow_message(),
            Op::Check { bounds, .. } => {
                let (lo, hi) = self.bounds[bounds as usize];
                format!(
                    "the value {} is stored in `{operand}`, which holds {}..{}",
                    show(value),
                    show(lo),
                    show(hi)
                )
            }
            Op::Defined { .. } => format!("`{operand}` is read but undefined"),
            Op::Index { .. } if value == UNDEFINED => {
                format!("an undefined index is used on `{operand}`")
            }
            Op::Index { shape, .. } => {
                let Shape { lo, count, .. } = self.shapes[shape as usize];
                let hi = lo + Number::from(count) - 1;
                format!("the index {value} is used on `{operand}`, which has {lo}..{hi}")
            }
            Op::Table { table, .. } => {
                let Lookup { lo, values } = &self.tables[table as usize];
                let hi = *lo + values.len() as Number - 1;
                format!("the table `{operand}` is indexed with {value}, but has {lo}..{hi}")
            }
            Op::Arithmetic {
                op: Arithmetic::Divide | Arithmetic::Remainder,
                ..
            } if fault.value == 0 => "division by zero".into(),
            Op::Call { .. } => {
                let max_call_depth = max_call_depth(self.saved_cells.len());
                format!("`{operand}` calls itself more than {max_call_depth} times")
            }
            _ => self.number_overflow_message(),
        }
    }

    /// Message for arithmetic that leaves the model's numbers.
    fn number_overflow_message(&self) -> String {
        format!("a number exceeds {} bits", self.number_bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::Builder;
    use crate::compile::{compile, Notes};
    use crate::model::*;

    #[test]
    fn long_loop_keeps_a_bounded_undo_log() {
        let mut m = Builder::new("long");
        let (six, seven) = (m.range("six", 0, 6), m.range("seven", 0, 7));
        let (index, rounds) = (m.range("index", 0, 3), m.range("rounds", 1, 50_000));
        let array = m.array("array", index, seven);
        let (x, a) = (m.state("x", six), m.state("a", array));
        let (i, round) = (m.bound("i", index), m.bound("round", rounds));
        m.start("start", vec![x.set(5), i.each(vec![a.at(i).set(i)])]);
        let body = vec![x.set(round % 7), a.at(round % 4).set(round % 8)];
        m.rule(Rule::new("rule").does([round.each(body)]));
        let program = compile(&m.build().expect("a model"), Notes::Omitted);
        let mut machine = Machine::new(&program);
        assert_eq!(machine.start(0), Ok(true));
        let frame_before = machine.frame[..5].to_vec();
        assert_eq!(machine.fire(&program.rules[0], 0), Ok(true));
        // Each element holds the last round whose remainder modulo 4 is its index, modulo 8.
        assert_eq!(machine.frame[..5], [50_000 % 7, 0, 5, 6, 7]);
        assert!(machine.log.len() < 1100, "{}", machine.log.len());
        machine.undo();
        assert_eq!(machine.frame[..5], frame_before);
    }

    #[test]
    fn large_frames_reduce_the_call_depth() {
        let deep = |size: i32| {
            let mut m = Builder::new("deep");
            let bit = m.range("bit", 0, 1);
            let depth = m.range("depth", 0, 100_000);
            let index = m.range("index", 0, size);
            let array = m.array("array", index, bit);
            let x = m.state("x", bit);
            let (n, array_local) = (m.local("n", depth), m.local("own", array));
            let f = FunctionId(0);
            let deeper = Expr::Call(f, vec![Argument::Value(n + 1)]);
            let body = vec![
                Stmt::Let(array_local, None),
                Stmt::Line(3),
                array_local.at(0).set(1),
                crate::build::when(n.is(100_000), vec![Stmt::Return(Some(1.into()))]),
                Stmt::Return(Some(deeper)),
            ];
            m.start("start", vec![x.set(0)]);
            let call = Expr::Call(f, vec![Argument::Value(0.into())]);
            m.rule(Rule::new("rule").does([x.set(call)]));
            let mut model = m.into_model();
            model.functions.push(Function {
                name: "f".into(),
                parameters: vec![n],
                result: Some(bit),
                body,
            });
            assert_eq!(model.validate(), []);
            let program = compile(&model, Notes::Omitted);
            let mut machine = Machine::new(&program);
            assert_eq!(machine.start(0), Ok(true));
            let fault = machine.fire(&program.rules[0], 0).expect_err("too deep");
            program.explain(&model, fault).expect_err("no property")
        };
        assert_eq!(deep(1), "`f` calls itself more than 10000 times (line 3)");
        let large = deep(100_000);
        assert!(
            large.starts_with("`f` calls itself more than 67"),
            "{large}"
        );
    }
}
