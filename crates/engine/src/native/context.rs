//! Context of a translation: a program, the layout of its states, and the data that machine code reads.

use super::range::Range;
use crate::model::Number;
use crate::program::{Cell, Op, Packing, Program, UNDEFINED};
use rustc_hash::{FxHashMap, FxHashSet};

/// Position of a slot in a packed state, in the memory layout that machine code reads.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct SlotLayout {
    /// First bit of the field, counted over all words.
    pub bit: u64,
    /// Mask of the unshifted value.
    pub mask: u64,
    /// Number added to the field to get the value.
    pub add: i64,
    /// 1 if 0 encodes the undefined value, else 0.
    pub undefined: u64,
}

/// Context of the translation of pieces of code.
pub(super) struct TranslationContext<'a> {
    /// Program that is translated.
    pub program: &'a Program,
    /// Layout of packed states.
    pub packing: &'a Packing,
    /// Values of the slots that are not packed.
    pub frame: &'a [Number],
    /// Cells outside the state that some instruction writes; all others keep their values of the program's frame.
    written: FxHashSet<Cell>,
    /// Ranges of the cells that hold values of parameters.
    parameters: FxHashMap<Cell, Range>,
    /// Data that the code refers to by address. It must not move as long as the code is used.
    pub data: &'a Data,
}

/// Memory that machine code reads.
pub(super) struct Data {
    /// Layout of each slot, for accesses at computed offsets.
    pub slot_layouts: Box<[SlotLayout]>,
    /// Values of each table of the program.
    pub tables: Box<[Box<[i32]>]>,
}

impl Data {
    /// Collects the data of a program. `frame` holds the values of slots that are not packed.
    pub fn new(program: &Program, packing: &Packing, frame: &[Number]) -> Data {
        let slot_layout = |slot: usize| {
            let field = packing.field(slot as Cell);
            match field.mask {
                0 => SlotLayout {
                    bit: 0,
                    mask: 0,
                    add: frame[slot],
                    undefined: 0,
                },
                mask => SlotLayout {
                    bit: field.word as u64 * 64 + field.shift as u64,
                    mask,
                    add: field.lo.wrapping_sub(field.undefined.into()),
                    undefined: field.undefined as u64,
                },
            }
        };
        Data {
            slot_layouts: (0..program.slots.len()).map(slot_layout).collect(),
            tables: (program.tables.iter())
                .map(|table| table.values.clone().into_boxed_slice())
                .collect(),
        }
    }
}

impl<'a> TranslationContext<'a> {
    /// Prepares the translation: finds the cells that instructions write, and the ranges of parameters. `frame`
    /// holds the values of slots that are not packed.
    pub fn new(
        program: &'a Program,
        packing: &'a Packing,
        frame: &'a [Number],
        data: &'a Data,
    ) -> TranslationContext<'a> {
        let mut written = FxHashSet::default();
        for op in &program.code {
            match *op {
                Op::Arithmetic { dst, .. }
                | Op::Compare { dst, .. }
                | Op::Copy { dst, .. }
                | Op::Index { dst, .. }
                | Op::Load { dst, .. }
                | Op::Table { dst, .. } => {
                    written.insert(dst);
                }
                Op::Store { base, len, .. } if base as usize >= program.slots.len() => {
                    written.extend(base..base + len as u32);
                }
                _ => {}
            }
        }
        let instances = program.rules.iter().chain(&program.starts);
        let loops = instances.filter_map(|instance| instance.parameter_loop.as_ref());
        let parameters: FxHashMap<Cell, Range> = (loops
            .flat_map(|parameter_loop| &parameter_loop.parameters))
        .map(|p| (p.cell, Range::between(p.lo, p.hi)))
        .collect();
        written.extend(parameters.keys());
        TranslationContext {
            program,
            packing,
            frame,
            written,
            parameters,
            data,
        }
    }

    /// Range of a cell that holds the value of a parameter.
    pub fn parameter_range(&self, cell: Cell) -> Option<Range> {
        self.parameters.get(&cell).copied()
    }

    /// Range of a cell that is a slot or never written; `None` for other cells.
    pub fn fixed_range(&self, cell: Cell) -> Option<Range> {
        let Some(slot) = self.program.slots.get(cell as usize) else {
            let constant = !self.written.contains(&cell);
            return constant.then(|| Range::single(self.program.frame[cell as usize]));
        };
        Some(match self.packing.field(cell).mask {
            0 => Range::single(self.frame[cell as usize]),
            _ if slot.undefined => Range::between(UNDEFINED, slot.hi),
            _ => Range::between(slot.lo, slot.hi),
        })
    }

    /// True if machine code can be generated for a piece.
    pub fn is_compilable(&self, piece: &[Op]) -> bool {
        piece.iter().all(|op| match *op {
            Op::Arithmetic { .. }
            | Op::Compare { .. }
            | Op::Copy { .. }
            | Op::Set { .. }
            | Op::Check { .. }
            | Op::Defined { .. }
            | Op::Cover { .. }
            | Op::Index { .. }
            | Op::Table { .. }
            | Op::Jump { .. }
            | Op::JumpIf { .. }
            | Op::Fail { .. }
            | Op::Disagree { .. }
            | Op::Return { .. } => true,
            // Outside the state, the true reach of a saturated length is unknown.
            Op::Load { base, len, .. } | Op::Store { base, len, .. } => {
                (base as usize) < self.program.slots.len() || len < u16::MAX
            }
            Op::Note { .. } | Op::Call { .. } | Op::EndCall => false,
        })
    }
}
