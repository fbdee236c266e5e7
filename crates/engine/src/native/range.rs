//! What values a cell can have: enough to leave out most checks, and to know where an index leads.

use super::code::Setting;
use crate::program::{Arithmetic, Cell, Op, UNDEFINED};
use rustc_hash::{FxHashMap, FxHashSet};

/// The values `lo`, `lo + step`, … up to `hi`; one value if `step` is 0.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Range {
    pub lo: i64,
    pub hi: i64,
    pub step: i64,
}

fn gcd(a: i64, b: i64) -> i64 {
    match b {
        0 => a,
        _ => gcd(b, a % b),
    }
}

impl Range {
    /// Any 32-bit number.
    pub const ANY: Range = Range {
        lo: i32::MIN as i64,
        hi: i32::MAX as i64,
        step: 1,
    };
    pub const TRUTH: Range = Range {
        lo: 0,
        hi: 1,
        step: 1,
    };

    pub fn one(value: i64) -> Range {
        Range {
            lo: value,
            hi: value,
            step: 0,
        }
    }

    pub fn between(lo: i64, hi: i64) -> Range {
        Range {
            lo,
            hi,
            step: (lo != hi) as i64,
        }
    }

    pub fn within(self, lo: i64, hi: i64) -> bool {
        lo <= self.lo && self.hi <= hi
    }

    /// What is left where the value is known to lie between bounds.
    pub fn clipped(self, lo: i64, hi: i64) -> Range {
        if self.within(lo, hi) {
            return self;
        }
        // Never empty: code behind a check that always fails is not run, so it may be told anything.
        let lo = lo.max(self.lo);
        Range::between(lo, hi.min(self.hi).max(lo))
    }

    pub fn union(self, other: Range) -> Range {
        let (lo, hi) = (self.lo.min(other.lo), self.hi.max(other.hi));
        let apart = (self.lo - other.lo).abs();
        let step = gcd(gcd(self.step, other.step), apart);
        Range { lo, hi, step }
    }

    /// All values, if there are at most so many.
    pub fn values(self, most: usize) -> Option<impl Iterator<Item = i64>> {
        let step = self.step.max(1);
        let count = (self.hi - self.lo) / step + 1;
        (count <= most as i64).then(|| (0..count).map(move |i| self.lo + i * step))
    }
}

/// What an arithmetic operation can give, before it is known to be a 32-bit number.
pub(super) fn arithmetic(op: Arithmetic, a: Range, b: Range) -> Range {
    match op {
        Arithmetic::Add => Range {
            lo: a.lo + b.lo,
            hi: a.hi + b.hi,
            step: gcd(a.step, b.step),
        },
        Arithmetic::Subtract => Range {
            lo: a.lo - b.hi,
            hi: a.hi - b.lo,
            step: gcd(a.step, b.step),
        },
        Arithmetic::Multiply => {
            let ends = [a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi];
            let (mut lo, mut hi) = (ends[0], ends[0]);
            for end in ends {
                lo = lo.min(end);
                hi = hi.max(end);
            }
            Range::between(lo, hi)
        }
        // A quotient is no larger than the dividend, but for the smallest number's negation.
        Arithmetic::Divide => {
            let most = a.lo.abs().max(a.hi.abs());
            Range::between(-most, most)
        }
        Arithmetic::Remainder => {
            let most = (b.lo.abs().max(b.hi.abs()) - 1).max(0);
            let most = most.min(a.lo.abs().max(a.hi.abs()));
            let lo = if a.lo < 0 { -most } else { 0 };
            Range::between(lo, if a.hi > 0 { most } else { 0 })
        }
        // Numbers that are not negative have no bits beyond the highest of either.
        Arithmetic::BitAnd | Arithmetic::BitOr | Arithmetic::BitXor if a.lo >= 0 && b.lo >= 0 => {
            let most = (a.hi.max(b.hi) + 1).max(1) as u64;
            Range::between(0, most.next_power_of_two() as i64 - 1)
        }
        Arithmetic::BitAnd | Arithmetic::BitOr | Arithmetic::BitXor => Range::ANY,
        Arithmetic::ShiftLeft | Arithmetic::ShiftRight => {
            let by = b.clipped(0, 31);
            let shifted = |value: i64, by: i64| match op {
                Arithmetic::ShiftLeft => value << by,
                _ => value >> by,
            };
            let ends = [(a.lo, by.lo), (a.lo, by.hi), (a.hi, by.lo), (a.hi, by.hi)];
            let ends = ends.map(|(value, by)| Range::one(shifted(value, by)));
            ends.into_iter().reduce(hull).unwrap_or(Range::ANY)
        }
    }
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
        for round in 0..6 {
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
                        after = Range::ANY;
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
            Op::Check { a, lo, hi } => {
                let range = self.get(a).clipped(lo as i64, hi as i64);
                self.now.insert(a, range);
            }
            Op::Defined { a } => {
                let mut range = self.get(a);
                if let Some(slot) = self.setting.program.slots.get(a as usize) {
                    range = range.clipped(slot.lo as i64, slot.hi as i64);
                }
                let range = range.clipped(UNDEFINED as i64 + 1, Range::ANY.hi);
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
                (dst, range.clipped(Range::ANY.lo, Range::ANY.hi))
            }
            Op::Compare { dst, .. } => (dst, Range::TRUTH),
            Op::Copy { dst, a } => (dst, self.get(a)),
            Op::Index { dst, a, shape } => {
                let shape = program.shapes[shape as usize];
                let (lo, count) = (shape.lo as i64, shape.count as i64);
                let a = self.get(a).clipped(lo, lo + (count - 1).max(0));
                let stride = shape.stride as i64;
                let range = Range {
                    lo: (a.lo - lo) * stride,
                    hi: (a.hi - lo) * stride,
                    step: a.step * stride,
                };
                (dst, range)
            }
            Op::Table { dst, table, .. } => {
                let values = program.tables[table as usize].values.iter();
                let ones = values.map(|&value| Range::one(value as i64));
                (dst, ones.reduce(hull).unwrap_or(Range::ANY))
            }
            Op::Load {
                dst, offset, base, ..
            } => {
                let cells = self.get(offset).values(1 << 12);
                let range = cells.and_then(|offsets| {
                    let cells = offsets.map(|offset| (base as i64 + offset) as Cell);
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
                    Arithmetic::ShiftLeft | Arithmetic::ShiftRight => !b.within(0, 31),
                    _ => false,
                };
                odd || !arithmetic(op, a, b).within(Range::ANY.lo, Range::ANY.hi)
            }
            Op::Check { a, lo, hi } => !self.get(a).within(lo as i64, hi as i64),
            Op::Defined { a } => self.get(a).lo <= UNDEFINED as i64,
            Op::Index { a, shape, .. } => {
                let shape = program.shapes[shape as usize];
                let (lo, count) = (shape.lo as i64, shape.count as i64);
                !self.get(a).within(lo, lo + count - 1)
            }
            Op::Table { a, table, .. } => {
                let table = &program.tables[table as usize];
                let lo = table.lo as i64;
                !self.get(a).within(lo, lo + table.values.len() as i64 - 1)
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
        let operands = [all(-3, 4), all(0, 5), all(2, 2), all(-7, -2), all(0, 0)];
        let compute = |op, a: i64, b: i64| match op {
            Arithmetic::Add => Some(a + b),
            Arithmetic::Subtract => Some(a - b),
            Arithmetic::Multiply => Some(a * b),
            Arithmetic::Divide => a.checked_div(b),
            Arithmetic::Remainder => a.checked_rem(b),
            Arithmetic::BitAnd => Some(a & b),
            Arithmetic::BitOr => Some(a | b),
            Arithmetic::BitXor => Some(a ^ b),
            // Elsewhere the interpreter takes over.
            Arithmetic::ShiftLeft => (b >= 0).then(|| a << b),
            Arithmetic::ShiftRight => (b >= 0).then(|| a >> b),
        };
        use Arithmetic::*;
        for op in [
            Add, Subtract, Multiply, Divide, Remainder, BitAnd, BitOr, BitXor, ShiftLeft,
            ShiftRight,
        ] {
            for a in operands {
                for b in operands {
                    let range = arithmetic(op, a, b);
                    for x in a.lo..=a.hi {
                        for y in b.lo..=b.hi {
                            let Some(z) = compute(op, x, y) else { continue };
                            assert!(range.lo <= z && z <= range.hi, "{op:?} {x} {y}");
                            assert!((z - range.lo) % range.step.max(1) == 0, "{op:?} {x} {y}");
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
