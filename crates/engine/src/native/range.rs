//! What values a cell can have: enough to leave out most checks, and to know where an index leads.

use super::code::Setting;
use crate::model::{Model, Number};
use crate::program::{Arithmetic, Cell, Op, UNDEFINED};
use rustc_hash::{FxHashMap, FxHashSet};

/// The values `lo`, `lo + step`, … up to `hi`; one value if `step` is 0.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Range {
    pub lo: Number,
    pub hi: Number,
    pub step: u64,
}

fn gcd(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        _ => gcd(b, a % b),
    }
}

impl Range {
    /// Any number, or none.
    pub const ANY: Range = Range {
        lo: UNDEFINED,
        hi: Number::MAX,
        step: 1,
    };
    pub const TRUTH: Range = Range {
        lo: 0,
        hi: 1,
        step: 1,
    };

    pub fn one(value: Number) -> Range {
        Range {
            lo: value,
            hi: value,
            step: 0,
        }
    }

    pub fn between(lo: Number, hi: Number) -> Range {
        Range {
            lo,
            hi,
            step: (lo != hi).into(),
        }
    }

    pub fn within(self, lo: Number, hi: Number) -> bool {
        lo <= self.lo && self.hi <= hi
    }

    /// What is left where the value is known to lie between bounds.
    pub fn clipped(self, lo: Number, hi: Number) -> Range {
        if self.within(lo, hi) {
            return self;
        }
        // Never empty: code behind a check that always fails is not run, so it may be told anything.
        let lo = lo.max(self.lo);
        Range::between(lo, hi.min(self.hi).max(lo))
    }

    pub fn union(self, other: Range) -> Range {
        let (lo, hi) = (self.lo.min(other.lo), self.hi.max(other.hi));
        let apart = self.lo.abs_diff(other.lo);
        let step = gcd(gcd(self.step, other.step), apart);
        Range { lo, hi, step }
    }

    /// All values, if there are at most so many.
    pub fn values(self, most: usize) -> Option<impl Iterator<Item = Number>> {
        let step = self.step.max(1);
        let last = self.hi.abs_diff(self.lo) / step;
        (last < most as u64).then(|| (0..=last).map(move |i| self.lo + (i * step) as Number))
    }
}

/// What an arithmetic operation can give, whether that is a number or not.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Wide {
    lo: i128,
    hi: i128,
    step: u64,
}

impl Wide {
    fn between(lo: i128, hi: i128) -> Wide {
        Wide {
            lo,
            hi,
            step: (lo != hi).into(),
        }
    }

    /// Whether every result has 64 bits.
    pub fn fits(self) -> bool {
        i128::from(Number::MIN) <= self.lo && self.hi <= i128::from(Number::MAX)
    }

    /// Whether a result can be what stands for no value.
    pub fn meets_undefined(self) -> bool {
        self.lo <= UNDEFINED.into() && i128::from(UNDEFINED) <= self.hi
    }

    /// Where every result is a number, for all others are faults.
    fn numbers(self) -> Range {
        let (least, most) = Model::NUMBERS;
        match i128::from(least) <= self.lo && self.hi <= i128::from(most) {
            true => Range {
                lo: self.lo as Number,
                hi: self.hi as Number,
                step: self.step,
            },
            false => {
                let lo = self.lo.clamp(least.into(), most.into()) as Number;
                Range::between(lo, self.hi.clamp(lo.into(), most.into()) as Number)
            }
        }
    }
}

/// What an arithmetic operation can give, before it is known to be a number.
pub(super) fn arithmetic(op: Arithmetic, a: Range, b: Range) -> Wide {
    let wide = |range: Range| (i128::from(range.lo), i128::from(range.hi));
    let ((a_lo, a_hi), (b_lo, b_hi)) = (wide(a), wide(b));
    match op {
        Arithmetic::Add => Wide {
            lo: a_lo + b_lo,
            hi: a_hi + b_hi,
            step: gcd(a.step, b.step),
        },
        Arithmetic::Subtract => Wide {
            lo: a_lo - b_hi,
            hi: a_hi - b_lo,
            step: gcd(a.step, b.step),
        },
        Arithmetic::Multiply => around([a_lo * b_lo, a_lo * b_hi, a_hi * b_lo, a_hi * b_hi]),
        // A quotient is no larger than the dividend, but for the smallest number's negation.
        Arithmetic::Divide => {
            let most = a_lo.abs().max(a_hi.abs());
            Wide::between(-most, most)
        }
        Arithmetic::Remainder => {
            let most = (b_lo.abs().max(b_hi.abs()) - 1).max(0);
            let most = most.min(a_lo.abs().max(a_hi.abs()));
            let lo = if a.lo < 0 { -most } else { 0 };
            Wide::between(lo, if a.hi > 0 { most } else { 0 })
        }
        // Numbers that are not negative have no bits beyond the highest of either.
        Arithmetic::BitAnd | Arithmetic::BitOr | Arithmetic::BitXor if a.lo >= 0 && b.lo >= 0 => {
            let most = (a.hi.max(b.hi).max(0) as u64 + 1).next_power_of_two();
            Wide::between(0, i128::from(most) - 1)
        }
        Arithmetic::BitAnd | Arithmetic::BitOr | Arithmetic::BitXor => {
            Wide::between(Number::MIN.into(), Number::MAX.into())
        }
        Arithmetic::ShiftLeft | Arithmetic::ShiftRight => {
            // What is shifted otherwise is left to the interpreter.
            let (least, most) = (b.lo.clamp(0, 63), b.hi.clamp(0, 63));
            let shifted = |value: i128, by: Number| match op {
                Arithmetic::ShiftLeft => value << by,
                _ => value >> by,
            };
            around([
                shifted(a_lo, least),
                shifted(a_lo, most),
                shifted(a_hi, least),
                shifted(a_hi, most),
            ])
        }
    }
}

/// From the least of some results to the greatest.
fn around(ends: [i128; 4]) -> Wide {
    let (mut lo, mut hi) = (ends[0], ends[0]);
    for end in ends {
        lo = lo.min(end);
        hi = hi.max(end);
    }
    Wide::between(lo, hi)
}

/// Ranges of cells in a piece of code: wherever in the piece it is asked for, and at the instruction at hand.
pub(super) struct Ranges<'a> {
    setting: &'a Setting<'a>,
    /// Of the cells that the piece writes, anywhere in it.
    cells: FxHashMap<Cell, Range>,
    /// What is known besides, since the last place that is jumped to.
    now: FxHashMap<Cell, Range>,
}

impl<'a> Ranges<'a> {
    pub fn of(setting: &'a Setting, entry: u32) -> Ranges<'a> {
        let piece = setting.program.piece(entry);
        let targets: FxHashSet<u32> = piece.iter().filter_map(target).collect();
        let mut ranges = Ranges {
            setting,
            cells: FxHashMap::default(),
            now: FxHashMap::default(),
        };
        // What is stored at a computed place is not followed.
        for op in piece {
            if let Op::Store { base, len, .. } = *op {
                if base as usize >= setting.program.slots.len() {
                    let cells = base..base.saturating_add(len as u32);
                    ranges.cells.extend(cells.map(|cell| (cell, Range::ANY)));
                }
            }
        }
        // Loops make ranges grow; what still grows after some rounds can be anything.
        for round in 0.. {
            let mut grown = false;
            ranges.forget();
            for (at, op) in (entry..).zip(piece) {
                if targets.contains(&at) {
                    ranges.forget();
                }
                let written = ranges.result(op);
                ranges.pass(op);
                let Some((dst, range)) = written else {
                    continue;
                };
                let before = ranges.cells.get(&dst).copied();
                let mut after = before.map_or(range, |before| before.union(range));
                if Some(after) != before {
                    if round >= 3 {
                        // Arithmetic gives numbers alone, so that a value is there is kept.
                        let lo = after.lo.min(Model::NUMBERS.0);
                        after = Range::between(lo, Number::MAX);
                    }
                    grown |= Some(after) != before;
                    ranges.cells.insert(dst, after);
                }
            }
            if !grown {
                break;
            }
        }
        ranges.forget();
        ranges
    }

    /// The range of a cell at the instruction at hand.
    pub fn get(&self, cell: Cell) -> Range {
        let written = || self.cells.get(&cell).copied();
        let parameter = || self.setting.of_parameter(cell);
        let anywhere = || self.setting.fixed(cell).or_else(parameter).or_else(written);
        let now = self.now.get(&cell).copied();
        now.or_else(anywhere).unwrap_or(Range::ANY)
    }

    /// The next instruction may be jumped to.
    pub fn forget(&mut self) {
        self.now.clear();
    }

    /// Goes on behind an instruction.
    pub fn pass(&mut self, op: &Op) {
        let slots = self.setting.program.slots.len();
        match *op {
            Op::Set { dst, a } => {
                let range = self.get(a);
                self.now.insert(dst, range);
            }
            Op::Store { base, .. } if (base as usize) < slots => {
                self.now.retain(|&cell, _| cell as usize >= slots);
            }
            Op::Store { base, len, .. } => {
                let cells = base..base.saturating_add(len as u32);
                self.now.retain(|cell, _| !cells.contains(cell));
            }
            Op::Check { a, bounds } => {
                let (lo, hi) = self.setting.program.bounds[bounds as usize];
                let range = self.get(a).clipped(lo, hi);
                self.now.insert(a, range);
            }
            Op::Defined { a } => {
                let mut range = self.get(a);
                if let Some(slot) = self.setting.program.slots.get(a as usize) {
                    range = range.clipped(slot.lo, slot.hi);
                }
                let range = range.clipped(UNDEFINED + 1, Range::ANY.hi);
                self.now.insert(a, range);
            }
            _ => {
                if let Some((dst, range)) = self.result(op) {
                    self.now.insert(dst, range);
                }
            }
        }
    }

    /// The cell that an instruction writes other than a slot, and the values it can write.
    pub fn result(&self, op: &Op) -> Option<(Cell, Range)> {
        let program = self.setting.program;
        Some(match *op {
            Op::Arithmetic { op, dst, a, b } => {
                let range = arithmetic(op, self.get(a), self.get(b));
                (dst, range.numbers())
            }
            Op::Compare { dst, .. } => (dst, Range::TRUTH),
            Op::Copy { dst, a } => (dst, self.get(a)),
            Op::Index { dst, a, shape } => {
                let shape = program.shapes[shape as usize];
                let (lo, count) = (shape.lo, Number::from(shape.count));
                let a = self.get(a).clipped(lo, lo + (count - 1).max(0));
                let stride = Number::from(shape.stride);
                let range = Range {
                    lo: (a.lo - lo) * stride,
                    hi: (a.hi - lo) * stride,
                    step: a.step * u64::from(shape.stride),
                };
                (dst, range)
            }
            Op::Table { dst, table, .. } => {
                let values = program.tables[table as usize].values.iter();
                let ones = values.map(|&value| Range::one(value.into()));
                (dst, ones.reduce(hull).unwrap_or(Range::ANY))
            }
            Op::Load {
                dst, offset, base, ..
            } => {
                let cells = self.get(offset).values(1 << 12);
                let range = cells.and_then(|offsets| {
                    let cells = offsets.map(|offset| (Number::from(base) + offset) as Cell);
                    let ranges = cells.map(|cell| match (cell as usize) < program.slots.len() {
                        true => self.get(cell),
                        false => Range::ANY,
                    });
                    ranges.reduce(hull)
                });
                (dst, range.unwrap_or(Range::ANY))
            }
            _ => return None,
        })
    }

    /// Whether an instruction can fault.
    pub fn may_fault(&self, op: &Op) -> bool {
        let program = self.setting.program;
        match *op {
            Op::Arithmetic { op, a, b, .. } => {
                let (a, b) = (self.get(a), self.get(b));
                let odd = match op {
                    // Overflow by division takes a negative divisor.
                    Arithmetic::Divide | Arithmetic::Remainder => b.lo <= 0,
                    Arithmetic::ShiftLeft | Arithmetic::ShiftRight => !b.within(0, 63),
                    _ => false,
                };
                let result = arithmetic(op, a, b);
                odd || !result.fits() || result.meets_undefined()
            }
            Op::Check { a, bounds } => {
                let (lo, hi) = program.bounds[bounds as usize];
                !self.get(a).within(lo, hi)
            }
            Op::Defined { a } => self.get(a).lo == UNDEFINED,
            Op::Index { a, shape, .. } => {
                let shape = program.shapes[shape as usize];
                let (lo, count) = (shape.lo, Number::from(shape.count));
                !self.get(a).within(lo, lo + (count - 1))
            }
            Op::Table { a, table, .. } => {
                let table = &program.tables[table as usize];
                let last = table.values.len() as Number - 1;
                !self.get(a).within(table.lo, table.lo + last)
            }
            Op::Compare { .. }
            | Op::Copy { .. }
            | Op::Set { .. }
            | Op::Load { .. }
            | Op::Store { .. }
            | Op::Jump { .. }
            | Op::JumpIf { .. }
            | Op::Note { .. }
            | Op::Cover { .. }
            | Op::Return { .. } => false,
            Op::Fail { .. } | Op::Call { .. } | Op::Back => true,
        }
    }
}

/// Where an instruction may jump to.
pub(super) fn target(op: &Op) -> Option<u32> {
    match *op {
        Op::Jump { to } | Op::JumpIf { to, .. } => Some(to),
        _ => None,
    }
}

/// All numbers from the smallest to the largest of two ranges.
fn hull(a: Range, b: Range) -> Range {
    Range::between(a.lo.min(b.lo), a.hi.max(b.hi))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_every_result() {
        let all = |lo, hi| Range::between(lo, hi);
        let (least, most) = Model::NUMBERS;
        let operands = [
            all(-3, 4),
            all(0, 5),
            all(2, 2),
            all(-7, -2),
            all(0, 0),
            all(least, least + 3),
            all(most - 3, most),
            all(58, 65),
            all(-1, 1),
        ];
        let compute = |op: Arithmetic, a: Number, b: Number| {
            // Shifts the other way and beyond are left to the interpreter.
            let shift = matches!(op, Arithmetic::ShiftLeft | Arithmetic::ShiftRight);
            match shift && !(0..64).contains(&b) {
                true => None,
                false => op.of(a, b),
            }
        };
        use Arithmetic::*;
        for op in [
            Add, Subtract, Multiply, Divide, Remainder, BitAnd, BitOr, BitXor, ShiftLeft,
            ShiftRight,
        ] {
            for a in operands {
                for b in operands {
                    let wide = arithmetic(op, a, b);
                    let range = wide.numbers();
                    for x in a.lo..=a.hi {
                        for y in b.lo..=b.hi {
                            let Some(z) = compute(op, x, y) else {
                                let sure = wide.fits() && !wide.meets_undefined();
                                let odd = y <= 0 || y > 63;
                                assert!(odd || !sure, "{op:?} {x} {y}");
                                continue;
                            };
                            assert!(range.lo <= z && z <= range.hi, "{op:?} {x} {y}");
                            let above = z.abs_diff(range.lo);
                            assert!(above % range.step.max(1) == 0, "{op:?} {x} {y}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn unions_keep_what_all_values_share() {
        let evens = Range {
            lo: 0,
            hi: 8,
            step: 4,
        };
        let union = evens.union(Range::one(2));
        assert_eq!(
            union.values(10).unwrap().collect::<Vec<_>>(),
            [0, 2, 4, 6, 8]
        );
        assert!(union.values(4).is_none());
        assert_eq!(Range::one(3).union(Range::one(3)), Range::one(3));
        assert_eq!(Range::ANY.clipped(2, 5), Range::between(2, 5));
    }
}
