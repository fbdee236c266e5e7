//! Assembler: appends instructions to a program, with labels, temporaries, constants, and the positions of operands in
//! the source.

use super::{definedness, Location, Value, MAX_INSTRUCTIONS};
use crate::model::{Number, TypeId, VariableId, Violation};
use crate::program::{Arithmetic, Cell, Comparison, Op, Program, Shape, Site};
use rustc_hash::FxHashMap;

/// Marks a cell as a constant until the frame's size is known.
const CONSTANT: Cell = 1 << 31;

/// Jump target in the current piece: index into [`Assembler::labels`].
#[derive(Clone, Copy)]
pub(super) struct Label(u32);

/// Assembler of a program.
pub(super) struct Assembler {
    /// Program built so far.
    pub program: Program,
    /// Cell of each constant in use, marked by [`CONSTANT`].
    constants: FxHashMap<Number, Cell>,
    /// Constants in the order of their cells.
    constant_values: Vec<Number>,
    /// Index of each range in [`Program::bounds`].
    bounds_indices: FxHashMap<(Number, Number), u32>,
    /// Index of each shape in [`Program::shapes`].
    shape_indices: FxHashMap<Shape, u32>,
    /// Index of each violation in [`Program::violations`].
    violation_indices: FxHashMap<Violation, u32>,
    /// Next free temporary.
    pub temporary: Cell,
    /// End of the cells that have been used as temporaries so far.
    temporaries_end: Cell,
    /// Position of each label of the current piece of code.
    labels: Vec<u32>,
    /// Variables of the enclosing quantifiers over scalarsets.
    pub enclosing_quantifiers: Vec<VariableId>,
    /// Source line of the current code; 0 if unknown.
    pub line: u32,
    /// Source line of the start of the next piece.
    pub first_line: u32,
}

impl Assembler {
    /// Prepares a program with a frame and without code. Temporaries follow the cells of the frame.
    pub fn new(program: Program) -> Assembler {
        let end = program.frame.len() as Cell;
        Assembler {
            program,
            constants: FxHashMap::default(),
            constant_values: Vec::new(),
            bounds_indices: FxHashMap::default(),
            shape_indices: FxHashMap::default(),
            violation_indices: FxHashMap::default(),
            temporary: end,
            temporaries_end: end,
            labels: Vec::new(),
            enclosing_quantifiers: Vec::new(),
            line: 0,
            first_line: 0,
        }
    }

    /// Places constants after the temporaries, and returns the program. `has_calls` is true if calls save cells.
    pub fn finish(mut self, has_calls: bool) -> Program {
        let first = self.temporaries_end;
        match has_calls {
            true => self.program.saved_cells.end = first,
            false => self.program.saved_cells = 0..0,
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
        if self.program.code.len() <= MAX_INSTRUCTIONS {
            definedness::remove_needless_checks(&mut self.program);
        }
        self.program
    }

    /// Begins a piece of code with labels of its own. Returns its entry.
    pub fn begin_piece(&mut self) -> u32 {
        self.labels.clear();
        self.line = self.first_line;
        self.program.code.len() as u32
    }

    /// Ends the piece of code with this entry.
    pub fn end_piece(&mut self, entry: u32) {
        for op in &mut self.program.code[entry as usize..] {
            if let Op::Jump { to } | Op::JumpIf { to, .. } = op {
                *to = self.labels[*to as usize];
            }
        }
        self.program.pieces.push(entry);
    }

    /// Emits an instruction. Beyond [`MAX_INSTRUCTIONS`], it is discarded.
    pub fn emit(&mut self, op: Op) {
        if self.program.code.len() <= MAX_INSTRUCTIONS {
            self.program.code.push(op);
        }
    }

    /// Emits a copy to a cell outside the state.
    pub fn emit_copy(&mut self, dst: Cell, a: Cell) {
        self.emit(Op::Copy { dst, a });
    }

    /// Emits a sum that cannot overflow.
    pub fn emit_add(&mut self, dst: Cell, a: Cell, b: Cell) {
        let op = Arithmetic::Add;
        self.emit(Op::Arithmetic { op, dst, a, b });
    }

    /// Emits an unconditional jump.
    pub fn emit_jump(&mut self, to: Label) {
        self.emit(Op::Jump { to: to.0 });
    }

    /// Emits a jump that is taken if the comparison of `a` and `b` holds.
    pub fn emit_jump_if(&mut self, op: Comparison, a: Cell, b: Cell, to: Label) {
        self.emit(Op::JumpIf { op, a, b, to: to.0 });
    }

    /// Emits an instruction that may fault. `operand` names the variable or table that it uses; it may be empty.
    pub fn emit_at(&mut self, op: Op, operand: String) {
        self.emit_at_with_type(op, None, operand);
    }

    /// As [`Assembler::emit_at`], with the type of the value that a message shows.
    pub fn emit_at_with_type(&mut self, op: Op, ty: Option<TypeId>, operand: String) {
        let site = Site {
            operand,
            ty,
            line: self.line,
            enclosing_quantifiers: self.enclosing_quantifiers.clone(),
        };
        self.program
            .sites
            .insert(self.program.code.len() as u32, site);
        self.emit(op);
    }

    /// Emits an instruction that reports a violation.
    pub fn emit_violation(&mut self, violation: &Violation) {
        let violation = self.violation_index(violation);
        self.emit_at(Op::Fail { violation }, String::new());
    }

    /// Emits a violation by an ill-defined operation, unless cell `a` holds `expected`.
    pub fn emit_violation_unless(&mut self, a: Cell, expected: Number, reason: String) {
        let continue_label = self.new_label();
        let b = self.constant(expected).cell;
        self.emit_jump_if(Comparison::Equal, a, b, continue_label);
        self.emit_violation(&Violation::ill_defined(reason));
        self.bind_label(continue_label);
    }

    /// Creates a label, to be bound once.
    pub fn new_label(&mut self) -> Label {
        self.labels.push(u32::MAX);
        Label(self.labels.len() as u32 - 1)
    }

    /// Binds a label to the position of the next instruction.
    pub fn bind_label(&mut self, label: Label) {
        self.labels[label.0 as usize] = self.program.code.len() as u32;
    }

    /// Allocates a temporary cell.
    pub fn new_temporary(&mut self) -> Cell {
        self.temporary += 1;
        self.temporaries_end = self.temporaries_end.max(self.temporary);
        self.temporary - 1
    }

    /// Allocates consecutive temporary cells.
    pub fn allocate_temporaries(&mut self, len: u32) -> Location {
        let base = self.temporary;
        self.temporary += len;
        self.temporaries_end = self.temporaries_end.max(self.temporary);
        Location {
            base,
            offset: None,
            len,
        }
    }

    /// Cell of a constant.
    pub fn constant(&mut self, value: Number) -> Value {
        let next = self.constant_values.len() as Cell | CONSTANT;
        let cell = *self.constants.entry(value).or_insert_with(|| {
            self.constant_values.push(value);
            next
        });
        Value {
            cell,
            lo: value,
            hi: value,
        }
    }

    /// Index of this violation in [`Program::violations`].
    pub fn violation_index(&mut self, violation: &Violation) -> u32 {
        if let Some(&known) = self.violation_indices.get(violation) {
            return known;
        }
        self.program.violations.push(violation.clone());
        let index = self.program.violations.len() as u32 - 1;
        self.violation_indices.insert(violation.clone(), index);
        index
    }

    /// Index of these bounds in [`Program::bounds`].
    pub fn bounds_index(&mut self, lo: Number, hi: Number) -> u32 {
        let next = self.program.bounds.len() as u32;
        let index = *self.bounds_indices.entry((lo, hi)).or_insert(next);
        if index == next {
            self.program.bounds.push((lo, hi));
        }
        index
    }

    /// Index of this shape in [`Program::shapes`].
    pub fn shape_index(&mut self, shape: Shape) -> u32 {
        let next = self.program.shapes.len() as u32;
        let index = *self.shape_indices.entry(shape).or_insert(next);
        if index == next {
            self.program.shapes.push(shape);
        }
        index
    }
}
