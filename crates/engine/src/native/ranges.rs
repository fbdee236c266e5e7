//! Analysis of the values that the cells of a piece of code can have.

use super::context::TranslationContext;
use super::range::{arithmetic, Range};
use crate::model::{Model, Number};
use crate::program::{Arithmetic, Cell, Op, UNDEFINED};
use rustc_hash::{FxHashMap, FxHashSet};

/// Ranges of cells in a piece of code: valid everywhere in it, and at the current instruction.
pub(super) struct Ranges<'a> {
    /// Ranges of slots, constants and parameters.
    context: &'a TranslationContext<'a>,
    /// Ranges of the cells that the piece writes, valid everywhere in it.
    cells: FxHashMap<Cell, Range>,
    /// Tighter ranges at the current instruction, known since the last jump target.
    current: FxHashMap<Cell, Range>,
}

impl<'a> Ranges<'a> {
    /// Computes the ranges that hold everywhere in the piece that begins at `entry`, as a fixed
    /// point over its instructions.
    pub fn of(context: &'a TranslationContext, entry: u32) -> Ranges<'a> {
        let piece = context.program.piece(entry);
        let targets: FxHashSet<u32> = piece.iter().filter_map(target).collect();
        let mut ranges = Ranges {
            context,
            cells: FxHashMap::default(),
            current: FxHashMap::default(),
        };
        // Stores to a computed place are not tracked.
        for op in piece {
            if let Op::Store { base, len, .. } = *op {
                if base as usize >= context.program.slots.len() {
                    let cells = base..base.saturating_add(len as u32);
                    ranges.cells.extend(cells.map(|cell| (cell, Range::ANY)));
                }
            }
        }
        // Loops widen ranges; a range that still grows after three passes becomes unbounded.
        for pass in 0.. {
            let mut has_grown = false;
            ranges.forget();
            for (address, op) in (entry..).zip(piece) {
                if targets.contains(&address) {
                    ranges.forget();
                }
                let written = ranges.written_range(op);
                ranges.advance(op);
                let Some((dst, range)) = written else {
                    continue;
                };
                let old_range = ranges.cells.get(&dst).copied();
                let mut new_range = old_range.map_or(range, |old_range| old_range.union(range));
                if Some(new_range) != old_range {
                    if pass >= 3 {
                        // Arithmetic yields numbers only, so definedness is kept.
                        let lo = new_range.lo.min(Model::NUMBERS.0);
                        new_range = Range::between(lo, Number::MAX);
                    }
                    has_grown |= Some(new_range) != old_range;
                    ranges.cells.insert(dst, new_range);
                }
            }
            if !has_grown {
                break;
            }
        }
        ranges.forget();
        ranges
    }

    /// Range of a cell at the current instruction.
    pub fn get(&self, cell: Cell) -> Range {
        let written = || self.cells.get(&cell).copied();
        let parameter = || self.context.parameter_range(cell);
        let range_anywhere = || {
            self.context
                .fixed_range(cell)
                .or_else(parameter)
                .or_else(written)
        };
        let current = self.current.get(&cell).copied();
        current.or_else(range_anywhere).unwrap_or(Range::ANY)
    }

    /// Drops the tighter ranges, since the next instruction is a jump target.
    pub fn forget(&mut self) {
        self.current.clear();
    }

    /// Advances past an instruction.
    pub fn advance(&mut self, op: &Op) {
        let slots = self.context.program.slots.len();
        match *op {
            Op::Set { dst, a } => {
                let range = self.get(a);
                self.current.insert(dst, range);
            }
            Op::Store { base, .. } if (base as usize) < slots => {
                self.current.retain(|&cell, _| cell as usize >= slots);
            }
            Op::Store { base, len, .. } => {
                let cells = base..base.saturating_add(len as u32);
                self.current.retain(|cell, _| !cells.contains(cell));
            }
            Op::Check { a, bounds } => {
                let (lo, hi) = self.context.program.bounds[bounds as usize];
                let range = self.get(a).clipped(lo, hi);
                self.current.insert(a, range);
            }
            Op::Defined { a } => {
                let mut range = self.get(a);
                if let Some(slot) = self.context.program.slots.get(a as usize) {
                    range = range.clipped(slot.lo, slot.hi);
                }
                let range = range.clipped(UNDEFINED + 1, Range::ANY.hi);
                self.current.insert(a, range);
            }
            _ => {
                if let Some((dst, range)) = self.written_range(op) {
                    self.current.insert(dst, range);
                }
            }
        }
    }

    /// Cell that an instruction writes, unless it is a slot, and the range of values written.
    pub fn written_range(&self, op: &Op) -> Option<(Cell, Range)> {
        let program = self.context.program;
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
                let (low, high) = ((a.lo - lo) * stride, (a.hi - lo) * stride);
                let step = a.step.checked_mul(u64::from(shape.stride));
                let range = match step.filter(|_| low != high) {
                    Some(step) => Range {
                        lo: low,
                        hi: high,
                        step,
                    },
                    None => Range::between(low, high),
                };
                (dst, range)
            }
            Op::Table { dst, table, .. } => {
                let values = program.tables[table as usize].values.iter();
                let singles = values.map(|&value| Range::single(value.into()));
                (dst, singles.reduce(hull).unwrap_or(Range::ANY))
            }
            Op::Load {
                dst, offset, base, ..
            } => {
                let cells = self.get(offset).values(1 << 12);
                let range = cells.and_then(|offsets| {
                    let ranges = offsets.map(|offset| {
                        let cell = Number::from(base).checked_add(offset);
                        let slot = cell.and_then(|cell| usize::try_from(cell).ok());
                        match slot.filter(|&slot| slot < program.slots.len()) {
                            Some(slot) => self.get(slot as Cell),
                            None => Range::ANY,
                        }
                    });
                    ranges.reduce(hull)
                });
                (dst, range.unwrap_or(Range::ANY))
            }
            _ => return None,
        })
    }

    /// True if an instruction can fault.
    pub fn may_fault(&self, op: &Op) -> bool {
        let program = self.context.program;
        match *op {
            Op::Arithmetic { op, a, b, .. } => {
                let (a, b) = (self.get(a), self.get(b));
                let has_invalid_operand = match op {
                    // An overflow of a division requires a negative divisor.
                    Arithmetic::Divide | Arithmetic::Remainder => b.lo <= 0,
                    Arithmetic::ShiftLeft | Arithmetic::ShiftRight => !b.is_within(0, 63),
                    _ => false,
                };
                let result = arithmetic(op, a, b);
                has_invalid_operand || !result.fits() || result.meets_undefined()
            }
            Op::Check { a, bounds } => {
                let (lo, hi) = program.bounds[bounds as usize];
                !self.get(a).is_within(lo, hi)
            }
            Op::Defined { a } => self.get(a).lo == UNDEFINED,
            Op::Index { a, shape, .. } => {
                let shape = program.shapes[shape as usize];
                let (lo, count) = (shape.lo, Number::from(shape.count));
                !self.get(a).is_within(lo, lo + (count - 1))
            }
            Op::Table { a, table, .. } => {
                let table = &program.tables[table as usize];
                let last = table.values.len() as Number - 1;
                !self.get(a).is_within(table.lo, table.lo + last)
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
            Op::Fail { .. } | Op::Disagree { .. } | Op::Call { .. } | Op::EndCall => true,
        }
    }
}

/// Jump target of an instruction, if any.
pub(super) fn target(op: &Op) -> Option<u32> {
    match *op {
        Op::Jump { to } | Op::JumpIf { to, .. } => Some(to),
        _ => None,
    }
}

/// Smallest range without gaps that contains two ranges.
fn hull(a: Range, b: Range) -> Range {
    Range::between(a.lo.min(b.lo), a.hi.max(b.hi))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_contain_every_result() {
        let between = |lo, hi| Range::between(lo, hi);
        let (min_number, max_number) = Model::NUMBERS;
        let operands = [
            between(-3, 4),
            between(0, 5),
            between(2, 2),
            between(-7, -2),
            between(0, 0),
            between(min_number, min_number + 3),
            between(max_number - 3, max_number),
            between(58, 65),
            between(-1, 1),
        ];
        let compute = |op: Arithmetic, a: Number, b: Number| {
            // Other shift distances are left to the interpreter.
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
                                let never_faults = wide.fits() && !wide.meets_undefined();
                                let may_be_invalid = y <= 0 || y > 63;
                                assert!(may_be_invalid || !never_faults, "{op:?} {x} {y}");
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
    fn range_union_keeps_the_common_step() {
        let evens = Range {
            lo: 0,
            hi: 8,
            step: 4,
        };
        let union = evens.union(Range::single(2));
        assert_eq!(
            union.values(10).unwrap().collect::<Vec<_>>(),
            [0, 2, 4, 6, 8]
        );
        assert!(union.values(4).is_none());
        assert_eq!(Range::single(3).union(Range::single(3)), Range::single(3));
        assert_eq!(Range::ANY.clipped(2, 5), Range::between(2, 5));
        // A cell that is undefined or has one value: the two may differ by almost 2^64.
        let ends = Range::single(UNDEFINED).union(Range::single(Number::MAX));
        assert_eq!(
            ends.values(8).unwrap().collect::<Vec<_>>(),
            [UNDEFINED, Number::MAX]
        );
        let half = Range::single(UNDEFINED).union(Range::single(1 << 62));
        assert_eq!(
            half.values(8).unwrap().collect::<Vec<_>>(),
            [UNDEFINED, 1 << 62]
        );
    }
}
