//! Translation of bytecode to Cranelift's intermediate representation.
//!
//! A piece of code works on a packed state in memory: a slot is read with a shift and a mask, and written by patching
//! its word. Other cells become values, except where they are indexed.
//! Numbers have 64 bits. If the ranges of operands do not exclude an overflow, the code checks for it.

use super::range::{arithmetic, Range};
use super::ranges::{target, Ranges};
use super::setting::{Setting, Spot};
use crate::program::*;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{types, Block, InstBuilder, MemFlags, StackSlotData, StackSlotKind};
use cranelift_codegen::ir::{StackSlot, Value};
use cranelift_frontend::{FunctionBuilder, Variable};
use rustc_hash::FxHashMap;

/// Continuations of a piece of code.
#[derive(Clone, Copy)]
pub(super) struct Continuations {
    pub yes: Block,
    pub no: Block,
    pub fault: Block,
}

/// Translation of one piece of code, into the current block and new ones.
pub(super) struct Translation<'t, 'f> {
    setting: &'t Setting<'t>,
    builder: &'t mut FunctionBuilder<'f>,
    /// Address of the packed state.
    state: Value,
    /// Cells of parameters, with the position of their values: a base address, and an offset in bytes.
    values: &'t [(Cell, Value, i32)],
    exits: Continuations,
    ranges: Ranges<'t>,
    variables: FxHashMap<Cell, Variable>,
    /// Indexed cells outside the state, with their offsets in the stack slot, in bytes.
    stack_offsets: FxHashMap<Cell, u32>,
    stack: Option<StackSlot>,
    blocks: FxHashMap<u32, Block>,
}

const TRUSTED: MemFlags = MemFlags::trusted();

impl<'t, 'f> Translation<'t, 'f> {
    pub fn piece(
        setting: &'t Setting<'t>,
        b: &'t mut FunctionBuilder<'f>,
        (state, values): (Value, &'t [(Cell, Value, i32)]),
        entry: u32,
        exits: Continuations,
    ) {
        let piece = setting.program.piece(entry);
        let ranges = Ranges::of(setting, entry);
        let mut translation = Translation {
            setting,
            builder: b,
            state,
            values,
            exits,
            ranges,
            variables: FxHashMap::default(),
            stack_offsets: FxHashMap::default(),
            stack: None,
            blocks: FxHashMap::default(),
        };
        translation.place_cells(piece);
        for op in piece {
            if let Some(to) = target(op) {
                let block = translation.builder.create_block();
                translation.blocks.entry(to).or_insert(block);
            }
        }
        let mut open = true;
        for (address, op) in (entry..).zip(piece) {
            if let Some(&block) = translation.blocks.get(&address) {
                if open {
                    translation.builder.ins().jump(block, &[]);
                }
                translation.builder.switch_to_block(block);
                translation.ranges.forget();
                open = true;
            }
            if open {
                open = translation.emit_op(op);
                translation.ranges.advance(op);
            }
        }
        debug_assert!(!open, "a piece of code ends with a return");
    }

    /// Assigns a variable or stack position to every cell of the piece that is neither slot nor constant.
    fn place_cells(&mut self, piece: &[Op]) {
        let slots = self.setting.program.slots.len();
        for op in piece {
            if let Op::Load { base, len, .. } | Op::Store { base, len, .. } = *op {
                if base as usize >= slots {
                    for cell in base..base + len as u32 {
                        let place = self.stack_offsets.len() as u32 * 8;
                        self.stack_offsets.entry(cell).or_insert(place);
                    }
                }
            }
        }
        // A region must be contiguous, in the order of its cells.
        let mut cells: Vec<Cell> = self.stack_offsets.keys().copied().collect();
        cells.sort_unstable();
        for (place, &cell) in cells.iter().enumerate() {
            self.stack_offsets.insert(cell, place as u32 * 8);
        }
        if !cells.is_empty() {
            let size = cells.len() as u32 * 8;
            let data = StackSlotData::new(StackSlotKind::ExplicitSlot, size, 3);
            let stack = self.builder.create_sized_stack_slot(data);
            self.stack = Some(stack);
            for (place, &cell) in cells.iter().enumerate() {
                let initial = self.setting.program.frame[cell as usize];
                let initial = self.builder.ins().iconst(types::I64, initial);
                self.builder
                    .ins()
                    .stack_store(initial, stack, place as i32 * 8);
            }
        }
        for op in piece {
            let mut op = *op;
            op.operands(|cell| {
                let is_placed = self.setting.fixed_range(*cell).is_some()
                    || self.stack_offsets.contains_key(cell);
                if !is_placed && !self.variables.contains_key(cell) {
                    let variable = self.builder.declare_var(types::I64);
                    let parameter = self.values.iter().find(|parameter| parameter.0 == *cell);
                    let initial = match parameter {
                        Some(&(_, values, offset)) => {
                            self.builder.ins().load(types::I64, TRUSTED, values, offset)
                        }
                        None => {
                            let initial = self.setting.program.frame[*cell as usize];
                            self.builder.ins().iconst(types::I64, initial)
                        }
                    };
                    self.builder.def_var(variable, initial);
                    self.variables.insert(*cell, variable);
                }
            });
        }
    }

    fn range(&self, cell: Cell) -> Range {
        self.ranges.get(cell)
    }

    fn constant(&mut self, value: i64) -> Value {
        self.builder.ins().iconst(types::I64, value)
    }

    /// Emits a sum; no instruction if `by` is 0.
    fn emit_sum(&mut self, value: Value, by: i64) -> Value {
        match by {
            0 => value,
            by => self.builder.ins().iadd_imm(value, by),
        }
    }

    /// Emits a product, by the cheapest instruction.
    fn emit_product(&mut self, value: Value, by: i64) -> Value {
        match by {
            1 => value,
            2.. if by.count_ones() == 1 => self
                .builder
                .ins()
                .ishl_imm(value, i64::from(by.trailing_zeros())),
            by => self.builder.ins().imul_imm(value, by),
        }
    }

    /// Reads a cell.
    fn get(&mut self, cell: Cell) -> Value {
        if (cell as usize) < self.setting.program.slots.len() {
            return self.read_slot(cell);
        }
        if let Some(&variable) = self.variables.get(&cell) {
            return self.builder.use_var(variable);
        }
        match (self.stack_offsets.get(&cell), self.stack) {
            (Some(&place), Some(stack)) => {
                self.builder
                    .ins()
                    .stack_load(types::I64, stack, place as i32)
            }
            _ => self.constant(self.setting.program.frame[cell as usize]),
        }
    }

    /// Writes a cell outside the state.
    fn write_cell(&mut self, cell: Cell, value: Value) {
        if let Some(&variable) = self.variables.get(&cell) {
            self.builder.def_var(variable, value);
        } else if let (Some(&place), Some(stack)) = (self.stack_offsets.get(&cell), self.stack) {
            self.builder.ins().stack_store(value, stack, place as i32);
        }
    }

    fn read_slot(&mut self, slot: Cell) -> Value {
        let field = self.setting.packing.field(slot);
        if field.mask == 0 {
            return self.constant(self.setting.frame[slot as usize]);
        }
        let word = field.word as i32 * 8;
        let word = self
            .builder
            .ins()
            .load(types::I64, TRUSTED, self.state, word);
        let mut raw = word;
        if field.shift != 0 {
            raw = self.builder.ins().ushr_imm(raw, field.shift as i64);
        }
        if field.mask << field.shift | (u64::MAX >> 1 >> (63 - field.shift)) != u64::MAX {
            raw = self.builder.ins().band_imm(raw, field.mask as i64);
        }
        let value = self.emit_sum(raw, field.lo.wrapping_sub(field.undefined.into()));
        // A value known to be defined needs no test.
        if !field.undefined || self.range(slot).lo > UNDEFINED {
            return value;
        }
        let undefined = self.constant(UNDEFINED);
        self.builder.ins().select(raw, value, undefined)
    }

    fn write_slot(&mut self, slot: Cell, value: Value, range: Range) {
        let field = self.setting.packing.field(slot);
        if !field.undefined && range.lo == UNDEFINED {
            // Between the statements of a step, a slot that is always defined in stored states may be undefined. Its
            // field has no encoding for that, so the interpreter takes such a step.
            let undefined = UNDEFINED;
            let defined = self
                .builder
                .ins()
                .icmp_imm(IntCC::NotEqual, value, undefined);
            self.emit_check(defined);
        }
        if field.mask == 0 {
            return;
        }
        let offset = field.word as i32 * 8;
        let word = self
            .builder
            .ins()
            .load(types::I64, TRUSTED, self.state, offset);
        let rest = self
            .builder
            .ins()
            .band_imm(word, !(field.mask << field.shift) as i64);
        let add = field.lo.wrapping_sub(field.undefined.into());
        let mut raw = self.emit_sum(value, add.wrapping_neg());
        if field.undefined && range.lo == UNDEFINED {
            let undefined = UNDEFINED;
            let defined = self
                .builder
                .ins()
                .icmp_imm(IntCC::NotEqual, value, undefined);
            let zero = self.constant(0);
            raw = self.builder.ins().select(defined, raw, zero);
        }
        let max_raw = field.mask.min(i64::MAX as u64) as i64;
        if !range.within(add, add.saturating_add(max_raw)) {
            raw = self.builder.ins().band_imm(raw, field.mask as i64);
        }
        if field.shift != 0 {
            raw = self.builder.ins().ishl_imm(raw, field.shift as i64);
        }
        let word = self.builder.ins().bor(rest, raw);
        self.builder.ins().store(TRUSTED, word, self.state, offset);
    }

    /// Emits a fault unless a condition holds.
    fn emit_check(&mut self, condition: Value) {
        let continue_block = self.builder.create_block();
        self.builder
            .ins()
            .brif(condition, continue_block, &[], self.exits.fault, &[]);
        self.builder.switch_to_block(continue_block);
    }

    fn compare(&mut self, op: Comparison, a: Cell, b: Cell) -> Value {
        let condition = match op {
            Comparison::Equal => IntCC::Equal,
            Comparison::NotEqual => IntCC::NotEqual,
            Comparison::Less => IntCC::SignedLessThan,
            Comparison::LessOrEqual => IntCC::SignedLessThanOrEqual,
        };
        let (a, b) = (self.get(a), self.get(b));
        self.builder.ins().icmp(condition, a, b)
    }

    /// Emits the difference of a value and `lo`; faults unless it lies in `0..count`.
    fn index(&mut self, a: Cell, lo: i64, count: i64) -> Value {
        let (value, range) = (self.get(a), self.range(a));
        let index = self.emit_sum(value, lo.wrapping_neg());
        if !range.within(lo, lo + (count - 1)) {
            let is_valid = self
                .builder
                .ins()
                .icmp_imm(IntCC::UnsignedLessThan, index, count);
            self.emit_check(is_valid);
        }
        index
    }

    /// Translates one instruction. Returns false if the next one is unreachable from it.
    fn emit_op(&mut self, op: &Op) -> bool {
        let program = self.setting.program;
        match *op {
            Op::Arithmetic { op, dst, a, b } => {
                let value = self.arithmetic(op, a, b);
                self.write_cell(dst, value);
            }
            Op::Compare { op, dst, a, b } => {
                let holds = self.compare(op, a, b);
                let value = self.builder.ins().uextend(types::I64, holds);
                self.write_cell(dst, value);
            }
            Op::Copy { dst, a } => {
                let value = self.get(a);
                self.write_cell(dst, value);
            }
            Op::Set { dst, a } => {
                let (value, range) = (self.get(a), self.range(a));
                self.write_slot(dst, value, range);
            }
            Op::Check { a, bounds } => {
                let (lo, hi) = program.bounds[bounds as usize];
                if !self.range(a).within(lo, hi) {
                    let value = self.get(a);
                    let above = self.emit_sum(value, lo.wrapping_neg());
                    let max_offset = hi.wrapping_sub(lo);
                    let is_valid = (self.builder.ins()).icmp_imm(
                        IntCC::UnsignedLessThanOrEqual,
                        above,
                        max_offset,
                    );
                    self.emit_check(is_valid);
                }
            }
            Op::Defined { a } => {
                if self.range(a).lo == UNDEFINED {
                    let value = self.get(a);
                    let undefined = UNDEFINED;
                    let is_valid = self
                        .builder
                        .ins()
                        .icmp_imm(IntCC::NotEqual, value, undefined);
                    self.emit_check(is_valid);
                }
            }
            // Covers are evaluated after the exploration.
            Op::Cover { .. } => {}
            Op::Index { dst, a, shape } => {
                let shape = program.shapes[shape as usize];
                let index = self.index(a, shape.lo, shape.count as i64);
                let value = self.emit_product(index, shape.stride as i64);
                self.write_cell(dst, value);
            }
            Op::Table { dst, a, table } => {
                let values = &self.setting.data.tables[table as usize];
                let lo = program.tables[table as usize].lo;
                let address = values.as_ptr() as i64;
                let index = self.index(a, lo, values.len() as i64);
                let offset = self.emit_product(index, 4);
                let address = self.emit_sum(offset, address);
                let flags = TRUSTED.with_readonly();
                let value = self.builder.ins().sload32(flags, address, 0);
                self.write_cell(dst, value);
            }
            Op::Load {
                dst,
                offset,
                base,
                len,
            } => {
                let value = match (base as usize) < program.slots.len() {
                    true => {
                        let spot = self.locate_spot(base, offset, len);
                        self.load_spot(spot)
                    }
                    false => {
                        let address = self.stack_address(base, offset);
                        self.builder.ins().load(types::I64, TRUSTED, address, 0)
                    }
                };
                self.write_cell(dst, value);
            }
            Op::Store {
                offset,
                a,
                base,
                len,
            } => {
                let value = self.get(a);
                match (base as usize) < program.slots.len() {
                    true => {
                        let spot = self.locate_spot(base, offset, len);
                        self.store_spot(spot, value, self.range(a));
                    }
                    false => {
                        let address = self.stack_address(base, offset);
                        self.builder.ins().store(TRUSTED, value, address, 0);
                    }
                }
            }
            Op::Jump { to } => {
                self.builder.ins().jump(self.blocks[&to], &[]);
                return false;
            }
            Op::JumpIf { op, a, b, to } => {
                let holds = self.compare(op, a, b);
                let next_block = self.builder.create_block();
                self.builder
                    .ins()
                    .brif(holds, self.blocks[&to], &[], next_block, &[]);
                self.builder.switch_to_block(next_block);
            }
            Op::Return { verdict } => {
                for &(cell, values, offset) in self.values {
                    if let Some(&variable) = self.variables.get(&cell) {
                        let value = self.builder.use_var(variable);
                        self.builder.ins().store(TRUSTED, value, values, offset);
                    }
                }
                let to = if verdict {
                    self.exits.yes
                } else {
                    self.exits.no
                };
                self.builder.ins().jump(to, &[]);
                return false;
            }
            // Instructions without machine code return to the interpreter; see `Setting::is_compilable`.
            Op::Fail { .. }
            | Op::Disagree { .. }
            | Op::Note { .. }
            | Op::Call { .. }
            | Op::Back => {
                self.builder.ins().jump(self.exits.fault, &[]);
                return false;
            }
        }
        true
    }

    fn arithmetic(&mut self, op: Arithmetic, a: Cell, b: Cell) -> Value {
        let (x, y) = (self.range(a), self.range(b));
        let (a, b) = (self.get(a), self.get(b));
        let result = arithmetic(op, x, y);
        let value = match op {
            Arithmetic::Add => self.builder.ins().iadd(a, b),
            Arithmetic::Subtract => self.builder.ins().isub(a, b),
            Arithmetic::Multiply => self.builder.ins().imul(a, b),
            Arithmetic::BitAnd => self.builder.ins().band(a, b),
            Arithmetic::BitOr => self.builder.ins().bor(a, b),
            Arithmetic::BitXor => self.builder.ins().bxor(a, b),
            Arithmetic::ShiftLeft | Arithmetic::ShiftRight => {
                // Shifts by negative distances or by more than 63 are rare; the interpreter handles them.
                if !y.within(0, 63) {
                    let is_valid =
                        (self.builder.ins()).icmp_imm(IntCC::UnsignedLessThanOrEqual, b, 63);
                    self.emit_check(is_valid);
                }
                match op {
                    Arithmetic::ShiftLeft => self.builder.ins().ishl(a, b),
                    _ => self.builder.ins().sshr(a, b),
                }
            }
            Arithmetic::Divide | Arithmetic::Remainder => {
                if x.lo == UNDEFINED && y.lo <= -1 && -1 <= y.hi {
                    // The encoding of the undefined value is no valid dividend, but the processor would trap on its
                    // division by -1.
                    let smallest = self.builder.ins().icmp_imm(IntCC::NotEqual, a, UNDEFINED);
                    let negation = self.builder.ins().icmp_imm(IntCC::NotEqual, b, -1);
                    let is_valid = self.builder.ins().bor(smallest, negation);
                    self.emit_check(is_valid);
                }
                if y.lo <= 0 && 0 <= y.hi {
                    let is_valid = self.builder.ins().icmp_imm(IntCC::NotEqual, b, 0);
                    self.emit_check(is_valid);
                }
                self.emit_quotient(op, (a, x), (b, y))
            }
        };
        if !result.fits() {
            self.emit_overflow_check(op, (a, b), value);
        }
        if result.meets_undefined() {
            let number = self
                .builder
                .ins()
                .icmp_imm(IntCC::NotEqual, value, UNDEFINED);
            self.emit_check(number);
        }
        value
    }

    /// Emits a fault unless the 64-bit value is the exact result.
    fn emit_overflow_check(&mut self, op: Arithmetic, (a, b): (Value, Value), value: Value) {
        let is_valid = match op {
            // A sum has overflowed exactly if its sign differs from those of both operands.
            Arithmetic::Add => {
                let (x, y) = (
                    self.builder.ins().bxor(value, a),
                    self.builder.ins().bxor(value, b),
                );
                let signs = self.builder.ins().band(x, y);
                (self.builder.ins()).icmp_imm(IntCC::SignedGreaterThanOrEqual, signs, 0)
            }
            Arithmetic::Subtract => {
                let (x, y) = (
                    self.builder.ins().bxor(a, b),
                    self.builder.ins().bxor(value, a),
                );
                let signs = self.builder.ins().band(x, y);
                (self.builder.ins()).icmp_imm(IntCC::SignedGreaterThanOrEqual, signs, 0)
            }
            Arithmetic::Multiply => {
                let (high, sign) = (
                    self.builder.ins().smulhi(a, b),
                    self.builder.ins().sshr_imm(value, 63),
                );
                self.builder.ins().icmp(IntCC::Equal, high, sign)
            }
            Arithmetic::ShiftLeft => {
                let back = self.builder.ins().sshr(value, b);
                self.builder.ins().icmp(IntCC::Equal, back, a)
            }
            // The other operations cannot overflow; the quotient by -1 was excluded above.
            _ => return,
        };
        self.emit_check(is_valid);
    }

    /// Emits a quotient or remainder; the divisor is not 0.
    fn emit_quotient(
        &mut self,
        op: Arithmetic,
        (a, x): (Value, Range),
        (b, y): (Value, Range),
    ) -> Value {
        if x.lo >= 0 && y.lo >= 0 {
            if op == Arithmetic::Remainder && y.lo == y.hi && x.hi / 2 < y.lo {
                // The quotient is at most 1, as in counters that wrap, so one subtraction suffices.
                let difference = self.builder.ins().isub(a, b);
                let is_less = self.builder.ins().icmp(IntCC::UnsignedLessThan, a, b);
                return self.builder.ins().select(is_less, a, difference);
            }
            return match op {
                Arithmetic::Divide => self.builder.ins().udiv(a, b),
                _ => self.builder.ins().urem(a, b),
            };
        }
        match op {
            Arithmetic::Divide => self.builder.ins().sdiv(a, b),
            _ => self.builder.ins().srem(a, b),
        }
    }

    fn stack_address(&mut self, base: Cell, offset: Cell) -> Value {
        let offset = self.get(offset);
        let offset = self.builder.ins().ishl_imm(offset, 3);
        let place = self.stack_offsets.get(&base).copied().unwrap_or(0);
        match self.stack {
            Some(stack) => {
                let first = self
                    .builder
                    .ins()
                    .stack_addr(types::I64, stack, place as i32);
                self.builder.ins().iadd(first, offset)
            }
            None => offset,
        }
    }

    /// Locates the slot at a computed offset below `len`.
    fn locate_spot(&mut self, base: Cell, offset: Cell, len: u16) -> SlotLocation {
        let setting = self.setting;
        let spots = &setting.data.spots;
        // Elsewhere the cell may hold other values, which are no offsets of these slots.
        let range = self.range(offset).clipped(0, i64::from(len).max(1) - 1);
        let offset = self.get(offset);
        let step = range.step.max(1) as i64;
        let reachable_spots: Option<Vec<Spot>> = range.values(256).map(|offsets| {
            let slots = offsets.map(|offset| base as i64 + offset);
            slots
                .filter_map(|slot| spots.get(slot as usize).copied())
                .collect()
        });
        // If all slots have one shape, lie at equal distances and share a word, their bit positions are computed.
        if let Some([first, rest @ ..]) = reachable_spots.as_deref() {
            let has_first_shape =
                |s: &Spot| (s.mask, s.add, s.undefined) == (first.mask, first.add, first.undefined);
            let pitch = rest.first().map_or(0, |s| s.bit as i64 - first.bit as i64);
            let is_evenly_spaced = rest
                .iter()
                .enumerate()
                .all(|(i, s)| s.bit as i64 == first.bit as i64 + pitch * (i as i64 + 1));
            let one_word = (first.bit / 64) == rest.last().unwrap_or(first).bit / 64;
            if rest.iter().all(has_first_shape)
                && first.mask != 0
                && is_evenly_spaced
                && pitch % step == 0
                && one_word
            {
                let from_first = self.emit_sum(offset, -range.lo);
                let bit_offset = self.emit_product(from_first, pitch / step);
                let shift = self.emit_sum(bit_offset, (first.bit % 64) as i64);
                return SlotLocation {
                    word: self.state,
                    at: (first.bit / 64) as i32 * 8,
                    shift,
                    shape: Shape::One(*first),
                };
            }
            if rest.iter().all(has_first_shape) && first.mask != 0 {
                let spot = self.spot_address(base, offset);
                return self.slot_location(spot, Shape::One(*first));
            }
        }
        let spot = self.spot_address(base, offset);
        self.slot_location(spot, Shape::Any(spot))
    }

    fn spot_address(&mut self, base: Cell, offset: Value) -> Value {
        let size = size_of::<Spot>() as i64;
        let offset = self.emit_product(offset, size);
        let first = self.setting.data.spots.as_ptr() as i64 + base as i64 * size;
        self.emit_sum(offset, first)
    }

    fn slot_location(&mut self, spot: Value, shape: Shape) -> SlotLocation {
        let flags = TRUSTED.with_readonly();
        let bit = self.builder.ins().load(types::I64, flags, spot, 0);
        let word = self.builder.ins().ushr_imm(bit, 6);
        let word = self.builder.ins().ishl_imm(word, 3);
        let word = self.builder.ins().iadd(self.state, word);
        let shift = self.builder.ins().band_imm(bit, 63);
        SlotLocation {
            word,
            at: 0,
            shift,
            shape,
        }
    }

    /// Mask, added number, and 1 if 0 encodes the undefined value; `None` if 0 never does.
    fn shape(&mut self, shape: Shape) -> (Value, Value, Option<Value>) {
        let flags = TRUSTED.with_readonly();
        match shape {
            Shape::One(spot) => {
                let undefined = (spot.undefined != 0).then(|| self.constant(1));
                let mask = self.constant(spot.mask as i64);
                (mask, self.constant(spot.add), undefined)
            }
            Shape::Any(spot) => {
                let mask = self.builder.ins().load(types::I64, flags, spot, 8);
                let add = self.builder.ins().load(types::I64, flags, spot, 16);
                let undefined = self.builder.ins().load(types::I64, flags, spot, 24);
                (mask, add, Some(undefined))
            }
        }
    }

    fn load_spot(&mut self, location: SlotLocation) -> Value {
        let (mask, add, undefined) = self.shape(location.shape);
        let word = (self.builder.ins()).load(types::I64, TRUSTED, location.word, location.at);
        let raw = self.builder.ins().ushr(word, location.shift);
        let raw = self.builder.ins().band(raw, mask);
        let value = self.builder.ins().iadd(raw, add);
        let Some(undefined) = undefined else {
            return value;
        };
        let zero = self.builder.ins().icmp_imm(IntCC::Equal, raw, 0);
        let zero = self.builder.ins().uextend(types::I64, zero);
        let is_undefined = self.builder.ins().band(zero, undefined);
        let no_value = self.constant(UNDEFINED);
        self.builder.ins().select(is_undefined, no_value, value)
    }

    fn store_spot(&mut self, location: SlotLocation, value: Value, range: Range) {
        let (mask, add, undefined) = self.shape(location.shape);
        if range.lo == UNDEFINED {
            // As in `write_slot`: without an encoding for the undefined value, the interpreter takes the step.
            let no_value = UNDEFINED;
            let defined = self
                .builder
                .ins()
                .icmp_imm(IntCC::NotEqual, value, no_value);
            let is_valid = match undefined {
                Some(undefined) => {
                    let has_encoding = self.builder.ins().icmp_imm(IntCC::NotEqual, undefined, 0);
                    self.builder.ins().bor(defined, has_encoding)
                }
                None => defined,
            };
            self.emit_check(is_valid);
        }
        let word = (self.builder.ins()).load(types::I64, TRUSTED, location.word, location.at);
        let mut raw = self.builder.ins().isub(value, add);
        if undefined.is_some() {
            let no_value = UNDEFINED;
            let defined = self
                .builder
                .ins()
                .icmp_imm(IntCC::NotEqual, value, no_value);
            let zero = self.constant(0);
            raw = self.builder.ins().select(defined, raw, zero);
        }
        let raw = self.builder.ins().band(raw, mask);
        let raw = self.builder.ins().ishl(raw, location.shift);
        let field_mask = self.builder.ins().ishl(mask, location.shift);
        let rest = self.builder.ins().band_not(word, field_mask);
        let word = self.builder.ins().bor(rest, raw);
        (self.builder.ins()).store(TRUSTED, word, location.word, location.at);
    }
}

/// Position of a slot at a computed offset.
#[derive(Clone, Copy)]
struct SlotLocation {
    /// Address of its word, less `at` bytes.
    word: Value,
    at: i32,
    shift: Value,
    shape: Shape,
}

/// Common properties of the slots at computed offsets.
#[derive(Clone, Copy)]
enum Shape {
    /// All slots equal this one, except for their positions.
    One(Spot),
    /// Slots differ; this is the address of the [`Spot`].
    Any(Value),
}
