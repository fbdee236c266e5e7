//! The interpreter: runs a [`Program`]'s code on one frame.
//!
//! It is written to be plain: it is the oracle that faster engines are compared with.
//! Firing a rule changes the frame in place and keeps a log of what was overwritten,
//! so that a successor can be packed from its parent by patching the changed slots alone,
//! and undone as cheaply.

use crate::model::Violation;
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
}

impl<'a> Machine<'a> {
    pub fn new(program: &'a Program) -> Self {
        Machine {
            program,
            frame: program.frame.clone(),
            log: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Puts the frame into a start state.
    pub fn start(&mut self, start: u32) -> Result<(), Fault> {
        self.frame.clone_from(&self.program.frame);
        self.log.clear();
        self.run(self.program.starts[start as usize].body).map(drop)
    }

    /// Whether a rule may fire in the frame's state.
    #[inline]
    pub fn enabled(&mut self, rule: &Instance) -> Result<bool, Fault> {
        match rule.guard {
            Some(guard) => self.run(guard),
            None => Ok(false),
        }
    }

    /// Fires a rule; [`Machine::undo`] takes it back.
    #[inline]
    pub fn fire(&mut self, rule: &Instance) -> Result<(), Fault> {
        self.log.clear();
        self.run(rule.body).map(drop)
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

impl Program {
    /// What a fault violates: what an error or assertion reports, or what the model did wrong.
    pub fn explain(&self, fault: Fault) -> Result<Violation, String> {
        let site = || self.sites.get(&fault.at).map_or("", String::as_str);
        let value = fault.value;
        Err(match self.code[fault.at as usize] {
            Op::Fail { name } => return Ok(self.names[name as usize].clone()),
            Op::Check { lo, hi, .. } => {
                format!(
                    "the value {} is stored in `{}`, which holds {lo}..{hi}",
                    value,
                    site()
                )
            }
            Op::Index { shape, .. } => {
                let Shape { lo, count, .. } = self.shapes[shape as usize];
                let hi = lo as i64 + count as i64 - 1;
                format!(
                    "the index {} is used on `{}`, which has {lo}..{hi}",
                    value,
                    site()
                )
            }
            Op::Table { table, .. } => {
                let Lookup { lo, values } = &self.tables[table as usize];
                let hi = *lo as i64 + values.len() as i64 - 1;
                format!(
                    "the table `{}` is asked for {}, but has {lo}..{hi}",
                    site(),
                    value
                )
            }
            Op::Arithmetic {
                op: Arithmetic::Divide | Arithmetic::Remainder,
                ..
            } if fault.value == 0 => "division by zero".into(),
            _ => "a number leaves 32 bits".into(),
        })
    }
}
