//! The interpreter: runs a [`Program`]'s code on one frame.
//!
//! It is written to be plain: it is the oracle that faster engines are compared with.
//! Firing a rule changes the frame in place and keeps a log of what was overwritten,
//! so that a successor can be packed from its parent by patching the changed slots alone,
//! and undone as cheaply.

use crate::model::{Model, Violation};
use crate::program::*;

/// Why code could not go on: the place of the instruction and the value it met.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Fault {
    pub at: u32,
    pub value: i32,
}

/// A frame and the means to run code on it.
pub(crate) struct Machine<'a> {
    program: &'a Program,
    /// Cell values; the slots of the state come first.
    pub frame: Vec<i32>,
    /// Slots that were overwritten since the log was last cleared, with their old values.
    pub log: Vec<(Cell, i32)>,
    /// Notes told, with their values.
    pub notes: Vec<(u32, Vec<i32>)>,
    /// Which covers have been met by [`Op::Cover`] so far.
    pub covered: Vec<bool>,
    /// Where calls return to, with the cells they keep.
    calls: Vec<(u32, Vec<i32>)>,
}

/// Calls deeper than this are a fault.
const DEEPEST: usize = 10_000;

impl<'a> Machine<'a> {
    pub fn new(program: &'a Program) -> Self {
        Machine {
            program,
            frame: program.frame.clone(),
            log: Vec::new(),
            notes: Vec::new(),
            covered: vec![false; program.covers.len()],
            calls: Vec::new(),
        }
    }

    /// Puts the frame into a start state; false if an assumption of its own keeps it from being one.
    pub fn start(&mut self, start: u32) -> Result<bool, Fault> {
        self.frame.clone_from(&self.program.frame);
        self.log.clear();
        let begun = self.run(self.program.starts[start as usize].body);
        self.settle();
        begun
    }

    /// Sorts what has no order.
    fn settle(&mut self) {
        let log = &mut self.log;
        self.program
            .settle(&mut self.frame, |cell, old| log.push((cell, old)));
    }

    /// Whether the frame's state is one that no assumption leaves out.
    #[inline]
    pub fn assumed(&mut self) -> Result<bool, Fault> {
        for i in 0..self.program.assumptions.len() {
            if !self.run(self.program.assumptions[i])? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a rule may fire in the frame's state.
    #[inline]
    pub fn enabled(&mut self, rule: &Instance) -> Result<bool, Fault> {
        match rule.guard {
            Some(guard) => self.run(guard),
            None => Ok(false),
        }
    }

    /// Fires a rule; [`Machine::undo`] takes it back. False if an assumption of its own keeps it from firing.
    #[inline]
    pub fn fire(&mut self, rule: &Instance) -> Result<bool, Fault> {
        self.log.clear();
        let fired = self.run(rule.body);
        self.settle();
        fired
    }

    /// Takes back what the log holds.
    #[inline]
    pub fn undo(&mut self) {
        while let Some((slot, old)) = self.log.pop() {
            self.frame[slot as usize] = old;
        }
    }

    /// Runs code from `at` to its return and gives the verdict.
    pub fn run(&mut self, at: u32) -> Result<bool, Fault> {
        let program = self.program;
        self.calls.clear();
        let frame = &mut self.frame[..];
        let mut at = at as usize;
        macro_rules! fault {
            ($value:expr) => {
                return Err(Fault {
                    at: at as u32,
                    value: $value,
                })
            };
        }
        loop {
            match program.code[at] {
                Op::JumpIf { op, a, b, to } => {
                    if op.holds(frame[a as usize], frame[b as usize]) {
                        at = to as usize;
                        continue;
                    }
                }
                Op::Jump { to } => {
                    at = to as usize;
                    continue;
                }
                Op::Return { verdict } => return Ok(verdict),
                Op::Set { dst, a } => {
                    let value = frame[a as usize];
                    let old = std::mem::replace(&mut frame[dst as usize], value);
                    self.log.push((dst, old));
                }
                Op::Copy { dst, a } => frame[dst as usize] = frame[a as usize],
                Op::Check { a, lo, hi } => {
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
                Op::Cover { cover } => self.covered[cover as usize] = true,
                Op::Call { to } => {
                    if self.calls.len() == DEEPEST {
                        fault!(0);
                    }
                    let saved = program.saved.start as usize..program.saved.end as usize;
                    self.calls.push((at as u32 + 1, frame[saved].to_vec()));
                    at = to as usize;
                    continue;
                }
                Op::Back => {
                    let Some((back, saved)) = self.calls.pop() else {
                        unreachable!("a function's code is entered by calls alone")
                    };
                    let first = program.saved.start as usize;
                    frame[first..first + saved.len()].copy_from_slice(&saved);
                    at = back as usize;
                    continue;
                }
                Op::Index { dst, a, shape } => {
                    let Shape { lo, count, stride } = program.shapes[shape as usize];
                    let value = frame[a as usize];
                    let index = value as i64 - lo as i64;
                    if index < 0 || index >= count as i64 {
                        fault!(value);
                    }
                    frame[dst as usize] = (index as u32 * stride) as i32;
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
                    }
                }
                Op::Table { dst, a, table } => {
                    let Lookup { lo, ref values } = program.tables[table as usize];
                    let value = frame[a as usize];
                    match values.get((value as i64 - lo as i64) as usize) {
                        Some(&answer) => frame[dst as usize] = answer,
                        None => fault!(value),
                    }
                }
                Op::Compare { op, dst, a, b } => {
                    frame[dst as usize] = op.holds(frame[a as usize], frame[b as usize]) as i32;
                }
                Op::Arithmetic { op, dst, a, b } => {
                    let (a, b) = (frame[a as usize], frame[b as usize]);
                    let result = match op {
                        Arithmetic::Add => a.checked_add(b),
                        Arithmetic::Subtract => a.checked_sub(b),
                        Arithmetic::Multiply => a.checked_mul(b),
                        Arithmetic::Divide => a.checked_div(b),
                        Arithmetic::Remainder => a.checked_rem(b),
                        Arithmetic::BitAnd => Some(a & b),
                        Arithmetic::BitOr => Some(a | b),
                        Arithmetic::BitXor => Some(a ^ b),
                        Arithmetic::ShiftLeft => shift(a, b as i64),
                        Arithmetic::ShiftRight => shift(a, -(b as i64)),
                    };
                    match result {
                        Some(result) => frame[dst as usize] = result,
                        None => fault!(b),
                    }
                }
                Op::Note { note, values } => {
                    let count = program.notes[note as usize].values() as usize;
                    let values = &frame[values as usize..values as usize + count];
                    self.notes.push((note, values.to_vec()));
                }
                Op::Fail { .. } => fault!(0),
            }
            at += 1;
        }
    }
}

/// `a` times two to the power of `by`, rounded down; nothing if that leaves 32 bits.
pub(crate) fn shift(a: i32, by: i64) -> Option<i32> {
    match by {
        ..0 => Some(a >> (-by).min(31)),
        0..=31 => i32::try_from((a as i64) << by).ok(),
        _ => (a == 0).then_some(0),
    }
}

impl Program {
    /// What a fault violates: what an error or assertion reports, or what the model did wrong;
    /// with the line that it comes from, if there is a text.
    pub fn explain(&self, model: &Model, fault: Fault) -> Result<Violation, String> {
        let site = self.sites.get(&fault.at);
        let line = site.map_or(0, |site| site.line);
        let placed = |text: String| match line {
            0 => text,
            line => format!("{text} (line {line})"),
        };
        if let Op::Fail { name } = self.code[fault.at as usize] {
            let mut violation = self.names[name as usize].clone();
            if line != 0 {
                violation.why = placed(violation.to_string());
            }
            return match violation.property == Violation::ILL_DEFINED {
                true => Err(violation.why),
                false => Ok(violation),
            };
        }
        Err(placed(self.ill_defined(model, fault, site)))
    }

    /// Whether a fault is a limit of the model that is run over.
    pub fn is_limit(&self, fault: Fault) -> bool {
        match self.code[fault.at as usize] {
            Op::Fail { name } => self.names[name as usize].limit,
            _ => false,
        }
    }

    /// What the model did wrong, as a clause.
    fn ill_defined(&self, model: &Model, fault: Fault, site: Option<&Site>) -> String {
        let what = site.map_or("", |site| site.what.as_str());
        let shown = |value: i32| match site.and_then(|site| site.ty) {
            Some(ty) => model.show(ty, value),
            None => value.to_string(),
        };
        let value = fault.value;
        match self.code[fault.at as usize] {
            Op::Check { lo, hi, .. } => {
                format!(
                    "the value {} is stored in `{what}`, which holds {}..{}",
                    shown(value),
                    shown(lo),
                    shown(hi)
                )
            }
            Op::Defined { .. } => format!("`{what}` is read but undefined"),
            Op::Index { .. } if value == UNDEFINED => {
                format!("an undefined index is used on `{what}`")
            }
            Op::Index { shape, .. } => {
                let Shape { lo, count, .. } = self.shapes[shape as usize];
                let hi = lo as i64 + count as i64 - 1;
                format!("the index {value} is used on `{what}`, which has {lo}..{hi}")
            }
            Op::Table { table, .. } => {
                let Lookup { lo, values } = &self.tables[table as usize];
                let hi = *lo as i64 + values.len() as i64 - 1;
                format!("the table `{what}` is asked for {value}, but has {lo}..{hi}")
            }
            Op::Arithmetic {
                op: Arithmetic::Divide | Arithmetic::Remainder,
                ..
            } if fault.value == 0 => "division by zero".into(),
            Op::Call { .. } => format!("`{what}` calls itself more than {DEEPEST} times"),
            _ => "a number leaves 32 bits".into(),
        }
    }
}
