//! Translation of bytecode to Cranelift's intermediate representation.
//!
//! A piece of code works on a packed state in memory: a slot is read with a shift and a mask, and written by patching
//! its word. Other cells become values, except where they are indexed.
//! Numbers have 64 bits. If the ranges of operands do not exclude an overflow, the code checks for it.

use super::context::{SlotLayout, TranslationContext};
use super::range::{arithmetic, Range};
use super::ranges::{target, Ranges};
use crate::program::{Arithmetic, Cell, Comparison, Op, UNDEFINED};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    types, Block, InstBuilder, MemFlags, StackSlot, StackSlotData, StackSlotKind, Value,
};
use cranelift_frontend::{FunctionBuilder, Variable};
use rustc_hash::FxHashMap;

/// Continuations of a piece of code.
#[derive(Clone, Copy)]
pub(super) struct Continuations {
    /// Block for verdict true.
    pub on_true: Block,
    /// Block for verdict false.
    pub on_false: Block,
    /// Block for a step that the interpreter must repeat.
    pub on_fault: Block,
}

/// Memory that holds the value of a parameter.
#[derive(Clone, Copy)]
pub(super) struct ParameterValue {
    /// Cell of the parameter.
    pub cell: Cell,
    /// Address of the values of all parameters.
    pub base: Value,
    /// Offset of this value from `base`, in bytes.
    pub offset: i32,
}

/// Flags of accesses that never trap: all addresses are aligned and valid.
const TRUSTED: MemFlags = MemFlags::trusted();

/// Translation of one piece of code, into the current block and new ones.
pub(super) struct Translation<'t, 'f> {
    /// Program, layout of states, and data of the machine code.
    context: &'t TranslationContext<'t>,
    /// Builder of the function.
    builder: &'t mut FunctionBuilder<'f>,
    /// Address of the packed state.
    state: Value,
    /// Parameters with values in memory.
    values: &'t [ParameterValue],
    /// Blocks at which the piece ends.
    exits: Continuations,
    /// Known ranges of cells at the current instruction.
    ranges: Ranges<'t>,
    /// Variables of the cells that are neither slots, constants nor indexed.
    variables: FxHashMap<Cell, Variable>,
    /// Indexed cells outside the state, with their offsets in the stack slot, in bytes.
    stack_offsets: FxHashMap<Cell, u32>,
    /// Stack slot of indexed cells outside the state, if there are any.
    stack: Option<StackSlot>,
    /// Blocks of jump targets, by instruction.
    blocks: FxHashMap<u32, Block>,
}

impl<'t, 'f> Translation<'t, 'f> {
    /// Translates the piece of code that begins at `entry`. `values` are the parameters in memory.
    pub fn translate_piece(
        context: &'t TranslationContext<'t>,
        builder: &'t mut FunctionBuilder<'f>,
        state: Value,
        values: &'t [ParameterValue],
        entry: u32,
        exits: Continuations,
    ) {
        let piece = context.program.piece(entry);
        let ranges = Ranges::of(context, entry);
        let mut translation = Translation {
            context,
            builder,
            state,
            values,
            exits,
            ranges,
            variables: FxHashMap::default(),
            stack_offsets: FxHashMap::default(),
            stack: None,
            blocks: FxHashMap::default(),
        };
        translation.assign_cells(piece);
        for op in piece {
            if let Some(to) = target(op) {
                let block = translation.builder.create_block();
                translation.blocks.entry(to).or_insert(block);
            }
        }
        let mut is_reachable = true;
        for (address, op) in (entry..).zip(piece) {
            if let Some(&block) = translation.blocks.get(&address) {
                if is_reachable {
                    translation.builder.ins().jump(block, &[]);
                }
                translation.builder.switch_to_block(block);
                translation.ranges.forget();
                is_reachable = true;
            }
            if is_reachable {
                is_reachable = translation.emit_op(op);
                translation.ranges.advance(op);
            }
        }
        debug_assert!(!is_reachable, "a piece of code ends with a return");
    }

    /// Assigns a variable or stack position to every cell of the piece that is neither slot nor constant.
    fn assign_cells(&mut self, piece: &[Op]) {
        let slots = self.context.program.slots.len();
        for op in piece {
            if let Op::Load { base, len, .. } | Op::Store { base, len, .. } = *op {
                if base as usize >= slots {
                    for cell in base..base + len as u32 {
                        let stack_offset = self.stack_offsets.len() as u32 * 8;
                        self.stack_offsets.entry(cell).or_insert(stack_offset);
                    }
                }
            }
        }
        // A region must be contiguous, in the order of its cells.
        let mut cells: Vec<Cell> = self.stack_offsets.keys().copied().collect();
        cells.sort_unstable();
        for (position, &cell) in cells.iter().enumerate() {
            self.stack_offsets.insert(cell, position as u32 * 8);
        }
        if !cells.is_empty() {
            let size = cells.len() as u32 * 8;
            let data = StackSlotData::new(StackSlotKind::ExplicitSlot, size, 3);
            let stack = self.builder.create_sized_stack_slot(data);
            self.stack = Some(stack);
            for (position, &cell) in cells.iter().enumerate() {
                let initial = self.context.program.frame[cell as usize];
                let initial = self.builder.ins().iconst(types::I64, initial);
                self.builder
                    .ins()
                    .stack_store(initial, stack, position as i32 * 8);
            }
        }
        for op in piece {
            let mut op = *op;
            op.operands(|cell| {
                let is_placed = self.context.fixed_range(*cell).is_some()
                    || self.stack_offsets.contains_key(cell);
                if !is_placed && !self.variables.contains_key(cell) {
                    let variable = self.builder.declare_var(types::I64);
                    let parameter = self.values.iter().find(|value| value.cell == *cell);
                    let initial = match parameter {
                        Some(&ParameterValue { base, offset, .. }) => {
                            self.builder.ins().load(types::I64, TRUSTED, base, offset)
                        }
                        None => {
                            let initial = self.context.program.frame[*cell as usize];
                            self.builder.ins().iconst(types::I64, initial)
                        }
                    };
                    self.builder.def_var(variable, initial);
                    self.variables.insert(*cell, variable);
                }
            });
        }
    }

    /// Range of a cell's value at the current instruction.
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

    /// Emits code that reads a cell.
    fn read_cell(&mut self, cell: Cell) -> Value {
        if (cell as usize) < self.context.program.slots.len() {
            return self.read_slot(cell);
        }
        if let Some(&variable) = self.variables.get(&cell) {
            return self.builder.use_var(variable);
        }
        match (self.stack_offsets.get(&cell), self.stack) {
            (Some(&stack_offset), Some(stack)) => {
                self.builder
                    .ins()
                    .stack_load(types::I64, stack, stack_offset as i32)
            }
            _ => self.constant(self.context.program.frame[cell as usize]),
        }
    }

    /// Writes a cell outside the state.
    fn write_cell(&mut self, cell: Cell, value: Value) {
        if let Some(&variable) = self.variables.get(&cell) {
            self.builder.def_var(variable, value);
        } else if let (Some(&stack_offset), Some(stack)) =
            (self.stack_offsets.get(&cell), self.stack)
        {
            self.builder
                .ins()
                .stack_store(value, stack, stack_offset as i32);
        }
    }

    /// Reads a slot from the packed state. A slot that is not packed is a constant of the view.
    fn read_slot(&mut self, slot: Cell) -> Value {
        let field = self.context.packing.field(slot);
        if field.mask == 0 {
            return self.constant(self.context.frame[slot as usize]);
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

    /// Writes a slot of the packed state. `range` is the range of `value`; a value that the field cannot encode ends
    /// the function with a fault.
    fn write_slot(&mut self, slot: Cell, value: Value, range: Range) {
        let field = self.context.packing.field(slot);
        if !field.undefined && range.lo == UNDEFINED {
            // Between the statements of a step, a slot that is always defined in stored states may be undefined. Its
            // field has no encoding for that, so the interpreter repeats such a step.
            let is_defined = self.emit_is_defined(value);
            self.emit_check(is_defined);
        }
        if field.mask == 0 {
            return;
        }
        let offset = field.word as i32 * 8;
        let word = self
            .builder
            .ins()
            .load(types::I64, TRUSTED, self.state, offset);
        let other_fields = self
            .builder
            .ins()
            .band_imm(word, !(field.mask << field.shift) as i64);
        let add = field.lo.wrapping_sub(field.undefined.into());
        let mut raw = self.emit_sum(value, add.wrapping_neg());
        if field.undefined && range.lo == UNDEFINED {
            let is_defined = self.emit_is_defined(value);
            let zero = self.constant(0);
            raw = self.builder.ins().select(is_defined, raw, zero);
        }
        let max_raw = field.mask.min(i64::MAX as u64) as i64;
        if !range.is_within(add, add.saturating_add(max_raw)) {
            raw = self.builder.ins().band_imm(raw, field.mask as i64);
        }
        if field.shift != 0 {
            raw = self.builder.ins().ishl_imm(raw, field.shift as i64);
        }
        let word = self.builder.ins().bor(other_fields, raw);
        self.builder.ins().store(TRUSTED, word, self.state, offset);
    }

    /// Emits a fault unless a condition holds.
    fn emit_check(&mut self, condition: Value) {
        let continue_block = self.builder.create_block();
        self.builder
            .ins()
            .brif(condition, continue_block, &[], self.exits.on_fault, &[]);
        self.builder.switch_to_block(continue_block);
    }

    /// Emits a test of a value for being defined.
    fn emit_is_defined(&mut self, value: Value) -> Value {
        self.builder
            .ins()
            .icmp_imm(IntCC::NotEqual, value, UNDEFINED)
    }

    fn emit_comparison(&mut self, op: Comparison, a: Cell, b: Cell) -> Value {
        let condition = match op {
            Comparison::Equal => IntCC::Equal,
            Comparison::NotEqual => IntCC::NotEqual,
            Comparison::Less => IntCC::SignedLessThan,
            Comparison::LessOrEqual => IntCC::SignedLessThanOrEqual,
        };
        let (a, b) = (self.read_cell(a), self.read_cell(b));
        self.builder.ins().icmp(condition, a, b)
    }

    /// Emits the difference of a value and `lo`; faults unless it lies in `0..count`.
    fn emit_index(&mut self, a: Cell, lo: i64, count: i64) -> Value {
        let (value, range) = (self.read_cell(a), self.range(a));
        let index = self.emit_sum(value, lo.wrapping_neg());
        if !range.is_within(lo, lo + (count - 1)) {
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
        let program = self.context.program;
        match *op {
            Op::Arithmetic { op, dst, a, b } => {
                let value = self.emit_arithmetic(op, a, b);
                self.write_cell(dst, value);
            }
            Op::Compare { op, dst, a, b } => {
                let holds = self.emit_comparison(op, a, b);
                let value = self.builder.ins().uextend(types::I64, holds);
                self.write_cell(dst, value);
            }
            Op::Copy { dst, a } => {
                let value = self.read_cell(a);
                self.write_cell(dst, value);
            }
            Op::Set { dst, a } => {
                let (value, range) = (self.read_cell(a), self.range(a));
                self.write_slot(dst, value, range);
            }
            Op::Check { a, bounds } => {
                let (lo, hi) = program.bounds[bounds as usize];
                self.emit_bounds_check(a, lo, hi);
            }
            Op::Defined { a } => {
                if self.range(a).lo == UNDEFINED {
                    let value = self.read_cell(a);
                    let is_defined = self.emit_is_defined(value);
                    self.emit_check(is_defined);
                }
            }
            // Covers are evaluated after the exploration.
            Op::Cover { .. } => {}
            Op::Index { dst, a, shape } => {
                let shape = program.shapes[shape as usize];
                let index = self.emit_index(a, shape.lo, shape.count as i64);
                let value = self.emit_product(index, shape.stride as i64);
                self.write_cell(dst, value);
            }
            Op::Table { dst, a, table } => {
                let value = self.emit_table_lookup(a, table as usize);
                self.write_cell(dst, value);
            }
            Op::Load {
                dst,
                offset,
                base,
                len,
            } => {
                let value = self.emit_load(offset, base, len);
                self.write_cell(dst, value);
            }
            Op::Store {
                offset,
                a,
                base,
                len,
            } => self.emit_store(offset, a, base, len),
            Op::Jump { to } => {
                self.builder.ins().jump(self.blocks[&to], &[]);
                return false;
            }
            Op::JumpIf { op, a, b, to } => {
                let holds = self.emit_comparison(op, a, b);
                let next_block = self.builder.create_block();
                self.builder
                    .ins()
                    .brif(holds, self.blocks[&to], &[], next_block, &[]);
                self.builder.switch_to_block(next_block);
            }
            Op::Return { verdict } => {
                self.emit_return(verdict);
                return false;
            }
            // Instructions without machine code return to the interpreter; see `TranslationContext::is_compilable`.
            Op::Fail { .. }
            | Op::Disagree { .. }
            | Op::Note { .. }
            | Op::Call { .. }
            | Op::EndCall => {
                self.builder.ins().jump(self.exits.on_fault, &[]);
                return false;
            }
        }
        true
    }

    /// Emits the end of the piece: leaves the values of parameters in memory, and jumps to the exit of the verdict.
    fn emit_return(&mut self, verdict: bool) {
        for &ParameterValue { cell, base, offset } in self.values {
            if let Some(&variable) = self.variables.get(&cell) {
                let value = self.builder.use_var(variable);
                self.builder.ins().store(TRUSTED, value, base, offset);
            }
        }
        let exit = match verdict {
            true => self.exits.on_true,
            false => self.exits.on_false,
        };
        self.builder.ins().jump(exit, &[]);
    }

    /// Emits a fault unless a cell's value lies between bounds.
    fn emit_bounds_check(&mut self, a: Cell, lo: i64, hi: i64) {
        if self.range(a).is_within(lo, hi) {
            return;
        }
        let value = self.read_cell(a);
        let offset_from_lo = self.emit_sum(value, lo.wrapping_neg());
        let max_offset = hi.wrapping_sub(lo);
        let is_valid = (self.builder.ins()).icmp_imm(
            IntCC::UnsignedLessThanOrEqual,
            offset_from_lo,
            max_offset,
        );
        self.emit_check(is_valid);
    }

    /// Emits the value of a table, a 32-bit integer in memory, at the index in a cell.
    fn emit_table_lookup(&mut self, a: Cell, table: usize) -> Value {
        let values = &self.context.data.tables[table];
        let lo = self.context.program.tables[table].lo;
        let address = values.as_ptr() as i64;
        let index = self.emit_index(a, lo, values.len() as i64);
        let offset = self.emit_product(index, size_of::<i32>() as i64);
        let address = self.emit_sum(offset, address);
        let flags = TRUSTED.with_readonly();
        self.builder.ins().sload32(flags, address, 0)
    }

    /// Emits a read of the cell `base` plus a computed offset below `len`.
    fn emit_load(&mut self, offset: Cell, base: Cell, len: u16) -> Value {
        match (base as usize) < self.context.program.slots.len() {
            true => {
                let location = self.locate_slot(base, offset, len);
                self.load_slot(location)
            }
            false => {
                let address = self.stack_address(base, offset);
                self.builder.ins().load(types::I64, TRUSTED, address, 0)
            }
        }
    }

    /// Emits a write of the value of `a` to the cell `base` plus a computed offset below `len`.
    fn emit_store(&mut self, offset: Cell, a: Cell, base: Cell, len: u16) {
        let value = self.read_cell(a);
        match (base as usize) < self.context.program.slots.len() {
            true => {
                let location = self.locate_slot(base, offset, len);
                self.store_slot(location, value, self.range(a));
            }
            false => {
                let address = self.stack_address(base, offset);
                self.builder.ins().store(TRUSTED, value, address, 0);
            }
        }
    }

    /// Emits an operation. Results that the operands' ranges do not exclude, but that have no value, end the function
    /// with a fault.
    fn emit_arithmetic(&mut self, op: Arithmetic, a: Cell, b: Cell) -> Value {
        let (a_range, b_range) = (self.range(a), self.range(b));
        let (a, b) = (self.read_cell(a), self.read_cell(b));
        let result = arithmetic(op, a_range, b_range);
        let value = match op {
            Arithmetic::Add => self.builder.ins().iadd(a, b),
            Arithmetic::Subtract => self.builder.ins().isub(a, b),
            Arithmetic::Multiply => self.builder.ins().imul(a, b),
            Arithmetic::BitAnd => self.builder.ins().band(a, b),
            Arithmetic::BitOr => self.builder.ins().bor(a, b),
            Arithmetic::BitXor => self.builder.ins().bxor(a, b),
            Arithmetic::ShiftLeft | Arithmetic::ShiftRight => {
                // Shifts by negative distances or by more than 63 are rare; the interpreter handles them.
                if !b_range.is_within(0, 63) {
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
                if a_range.lo == UNDEFINED && b_range.lo <= -1 && -1 <= b_range.hi {
                    // The encoding of the undefined value is no valid dividend, but the processor would trap on its
                    // division by -1.
                    let is_dividend_defined = self.emit_is_defined(a);
                    let is_no_negation = self.builder.ins().icmp_imm(IntCC::NotEqual, b, -1);
                    let is_valid = self.builder.ins().bor(is_dividend_defined, is_no_negation);
                    self.emit_check(is_valid);
                }
                if b_range.lo <= 0 && 0 <= b_range.hi {
                    let is_valid = self.builder.ins().icmp_imm(IntCC::NotEqual, b, 0);
                    self.emit_check(is_valid);
                }
                self.emit_quotient(op, (a, a_range), (b, b_range))
            }
        };
        if !result.fits() {
            self.emit_overflow_check(op, (a, b), value);
        }
        if result.meets_undefined() {
            let is_number = self.emit_is_defined(value);
            self.emit_check(is_number);
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
                let shifted_back = self.builder.ins().sshr(value, b);
                self.builder.ins().icmp(IntCC::Equal, shifted_back, a)
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
        (a, a_range): (Value, Range),
        (b, b_range): (Value, Range),
    ) -> Value {
        if a_range.lo >= 0 && b_range.lo >= 0 {
            if op == Arithmetic::Remainder
                && b_range.lo == b_range.hi
                && a_range.hi / 2 < b_range.lo
            {
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

    /// Emits the address of a cell outside the state, at a computed offset.
    fn stack_address(&mut self, base: Cell, offset: Cell) -> Value {
        let offset = self.read_cell(offset);
        let offset = self.builder.ins().ishl_imm(offset, 3);
        let stack_offset = self.stack_offsets.get(&base).copied().unwrap_or(0);
        match self.stack {
            Some(stack) => {
                let first = self
                    .builder
                    .ins()
                    .stack_addr(types::I64, stack, stack_offset as i32);
                self.builder.ins().iadd(first, offset)
            }
            None => offset,
        }
    }

    /// Locates the slot at a computed offset below `len`.
    fn locate_slot(&mut self, base: Cell, offset: Cell, len: u16) -> SlotLocation {
        let context = self.context;
        let slot_layouts = &context.data.slot_layouts;
        // Elsewhere the cell may hold other values, which are no offsets of these slots.
        let range = self.range(offset).clipped(0, i64::from(len).max(1) - 1);
        let offset = self.read_cell(offset);
        let step = range.step.max(1) as i64;
        let reachable_layouts: Option<Vec<SlotLayout>> = range.values(256).map(|offsets| {
            let slots = offsets.map(|offset| base as i64 + offset);
            slots
                .filter_map(|slot| slot_layouts.get(slot as usize).copied())
                .collect()
        });
        // If all slots have one shape, lie at equal distances and share a word, the code computes their bit positions.
        // Otherwise it reads the layout of the slot from memory.
        if let Some([first, rest @ ..]) = reachable_layouts.as_deref() {
            let has_first_shape = |s: &SlotLayout| {
                (s.mask, s.add, s.undefined) == (first.mask, first.add, first.undefined)
            };
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
                    byte_offset: (first.bit / 64) as i32 * 8,
                    shift,
                    shape: Shape::Uniform(*first),
                };
            }
            if rest.iter().all(has_first_shape) && first.mask != 0 {
                let layout = self.layout_address(base, offset);
                return self.slot_location(layout, Shape::Uniform(*first));
            }
        }
        let layout = self.layout_address(base, offset);
        self.slot_location(layout, Shape::Varying(layout))
    }

    /// Address of the [`SlotLayout`] of the slot `base + offset`.
    fn layout_address(&mut self, base: Cell, offset: Value) -> Value {
        let size = size_of::<SlotLayout>() as i64;
        let offset = self.emit_product(offset, size);
        let first = self.context.data.slot_layouts.as_ptr() as i64 + base as i64 * size;
        self.emit_sum(offset, first)
    }

    /// Computes the position of a slot from the [`SlotLayout`] at the address `layout`.
    fn slot_location(&mut self, layout: Value, shape: Shape) -> SlotLocation {
        let flags = TRUSTED.with_readonly();
        let bit = self.builder.ins().load(types::I64, flags, layout, 0);
        let word = self.builder.ins().ushr_imm(bit, 6);
        let word = self.builder.ins().ishl_imm(word, 3);
        let word = self.builder.ins().iadd(self.state, word);
        let shift = self.builder.ins().band_imm(bit, 63);
        SlotLocation {
            word,
            byte_offset: 0,
            shift,
            shape,
        }
    }

    /// Emits the mask and the added number of slots. The third value is 1 if 0 encodes the undefined value; `None` if 0
    /// never does.
    fn emit_shape(&mut self, shape: Shape) -> (Value, Value, Option<Value>) {
        let flags = TRUSTED.with_readonly();
        match shape {
            Shape::Uniform(layout) => {
                let undefined = (layout.undefined != 0).then(|| self.constant(1));
                let mask = self.constant(layout.mask as i64);
                (mask, self.constant(layout.add), undefined)
            }
            Shape::Varying(layout) => {
                let mask = self.builder.ins().load(types::I64, flags, layout, 8);
                let add = self.builder.ins().load(types::I64, flags, layout, 16);
                let undefined = self.builder.ins().load(types::I64, flags, layout, 24);
                (mask, add, Some(undefined))
            }
        }
    }

    /// Reads a slot at a computed offset, as [`Self::read_slot`] does at a fixed one.
    fn load_slot(&mut self, location: SlotLocation) -> Value {
        let (mask, add, undefined) = self.emit_shape(location.shape);
        let word =
            (self.builder.ins()).load(types::I64, TRUSTED, location.word, location.byte_offset);
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

    /// Writes a slot at a computed offset, as [`Self::write_slot`] does at a fixed one.
    fn store_slot(&mut self, location: SlotLocation, value: Value, range: Range) {
        let (mask, add, undefined) = self.emit_shape(location.shape);
        if range.lo == UNDEFINED {
            // As in `write_slot`: without an encoding for the undefined value, the interpreter repeats the step.
            let is_defined = self.emit_is_defined(value);
            let is_valid = match undefined {
                Some(undefined) => {
                    let has_encoding = self.builder.ins().icmp_imm(IntCC::NotEqual, undefined, 0);
                    self.builder.ins().bor(is_defined, has_encoding)
                }
                None => is_defined,
            };
            self.emit_check(is_valid);
        }
        let word =
            (self.builder.ins()).load(types::I64, TRUSTED, location.word, location.byte_offset);
        let mut raw = self.builder.ins().isub(value, add);
        if undefined.is_some() {
            let is_defined = self.emit_is_defined(value);
            let zero = self.constant(0);
            raw = self.builder.ins().select(is_defined, raw, zero);
        }
        let raw = self.builder.ins().band(raw, mask);
        let raw = self.builder.ins().ishl(raw, location.shift);
        let field_mask = self.builder.ins().ishl(mask, location.shift);
        let other_fields = self.builder.ins().band_not(word, field_mask);
        let word = self.builder.ins().bor(other_fields, raw);
        (self.builder.ins()).store(TRUSTED, word, location.word, location.byte_offset);
    }
}

/// Position of a slot at a computed offset.
#[derive(Clone, Copy)]
struct SlotLocation {
    /// Address of its word, less `byte_offset` bytes.
    word: Value,
    /// Constant part of the address, in bytes.
    byte_offset: i32,
    /// Position of the slot's lowest bit in the word.
    shift: Value,
    /// Mask and encoding of the slot.
    shape: Shape,
}

/// Common properties of the slots at computed offsets.
#[derive(Clone, Copy)]
enum Shape {
    /// All slots equal this one, except for their positions.
    Uniform(SlotLayout),
    /// Slots differ; this is the address of the [`SlotLayout`].
    Varying(Value),
}
