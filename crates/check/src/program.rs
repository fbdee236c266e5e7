//! The executable form: straight code over a flat frame of small integers, and packed states.
//!
//! A *frame* holds the state's simple parts (*slots*), then locals and bound variables, then
//! temporaries, then constants. Every operand of an [`Op`] is the position of a cell in it,
//! so code needs no addressing modes, and a renaming of slots is a renaming of operands.

use crate::model::{Model, Note, Violation};
use rustc_hash::FxHashMap;

/// Position in a frame.
pub(crate) type Cell = u32;

/// One instruction.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Op {
    /// `dst = a ∘ b`, checked for overflow and division by zero.
    Arithmetic {
        op: Arithmetic,
        dst: Cell,
        a: Cell,
        b: Cell,
    },
    /// `dst = 1` if the comparison holds, else 0.
    Compare {
        op: Comparison,
        dst: Cell,
        a: Cell,
        b: Cell,
    },
    /// `dst = a`, where `dst` is not part of the state.
    Copy { dst: Cell, a: Cell },
    /// `dst = a`, where `dst` is part of the state.
    Set { dst: Cell, a: Cell },
    /// Faults unless `lo <= a <= hi`.
    Check { a: Cell, lo: i32, hi: i32 },
    /// `dst = (a - lo) * stride` of a shape; faults if `a` is outside it.
    Index { dst: Cell, a: Cell, shape: u32 },
    /// `dst = frame[base + offset]`; the offset is below `len`.
    Load {
        dst: Cell,
        offset: Cell,
        base: Cell,
        len: u16,
    },
    /// `frame[base + offset] = a`.
    Store {
        offset: Cell,
        a: Cell,
        base: Cell,
        len: u16,
    },
    /// `dst = table[a]`; faults if `a` is outside its index.
    Table { dst: Cell, a: Cell, table: u32 },
    /// Goes on at `to`.
    Jump { to: u32 },
    /// Goes on at `to` if the comparison holds.
    JumpIf {
        op: Comparison,
        a: Cell,
        b: Cell,
        to: u32,
    },
    /// Tells a note; its values stand in the cells from `values` on.
    Note { note: u32, values: Cell },
    /// Violates the property with this name.
    Fail { name: u32 },
    /// Ends with a verdict (for bodies, always true).
    Return { verdict: bool },
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
}

impl Comparison {
    #[inline(always)]
    pub fn holds(self, a: i32, b: i32) -> bool {
        match self {
            Comparison::Equal => a == b,
            Comparison::NotEqual => a != b,
            Comparison::Less => a < b,
            Comparison::LessOrEqual => a <= b,
        }
    }
}

/// How an index becomes an offset.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Shape {
    pub lo: i32,
    pub count: u32,
    pub stride: u32,
}

/// A constant table, found by index minus `lo`.
#[derive(Clone, Debug)]
pub(crate) struct Lookup {
    pub lo: i32,
    pub values: Vec<i32>,
}

/// One simple part of the state.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Slot {
    /// `cells[2].state`, for traces.
    pub name: String,
    pub ty: crate::model::TypeId,
    pub lo: i32,
    pub hi: i32,
}

/// A rule or start state with values for its parameters.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Instance {
    /// Index into [`Model::rules`] or [`Model::starts`].
    pub source: u32,
    /// Values of its parameters.
    pub arguments: Vec<i32>,
    /// Where its guard begins; `None` if it can never hold. (For starts, where nothing is asked.)
    pub guard: Option<u32>,
    /// Where its body begins.
    pub body: u32,
    /// See [`crate::model::Rule::spontaneous`].
    pub spontaneous: bool,
}

/// One conjunct of an invariant.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Claim {
    /// Index into [`Model::invariants`].
    pub invariant: u32,
    /// Where its code begins.
    pub entry: u32,
}

/// A model, resolved.
pub(crate) struct Program {
    pub slots: Vec<Slot>,
    /// Every cell's value before a start state runs: first values, and constants in their place.
    pub frame: Vec<i32>,
    pub code: Vec<Op>,
    /// Where each piece of code begins, ascending. Jumps stay within a piece.
    pub pieces: Vec<u32>,
    pub shapes: Vec<Shape>,
    pub tables: Vec<Lookup>,
    pub starts: Vec<Instance>,
    pub rules: Vec<Instance>,
    pub invariants: Vec<Claim>,
    /// Conjuncts of the quiescent condition, or nothing.
    pub quiescent: Option<Vec<u32>>,
    /// Names of errors and assertions.
    pub names: Vec<Violation>,
    /// What an instruction that may fault works on.
    pub sites: FxHashMap<u32, String>,
    pub notes: Vec<Note>,
}

impl Op {
    /// Calls `f` with each operand cell.
    pub fn operands(&mut self, mut f: impl FnMut(&mut Cell)) {
        match self {
            Op::Arithmetic { dst, a, b, .. } | Op::Compare { dst, a, b, .. } => {
                f(dst);
                f(a);
                f(b);
            }
            Op::Copy { dst, a } | Op::Set { dst, a } => {
                f(dst);
                f(a);
            }
            Op::Index { dst, a, .. } | Op::Table { dst, a, .. } => {
                f(dst);
                f(a);
            }
            Op::Check { a, .. } => f(a),
            Op::Load {
                dst, offset, base, ..
            } => {
                f(dst);
                f(offset);
                f(base);
            }
            Op::Store {
                offset, a, base, ..
            } => {
                f(offset);
                f(a);
                f(base);
            }
            Op::JumpIf { a, b, .. } => {
                f(a);
                f(b);
            }
            Op::Note { values, .. } => f(values),
            Op::Jump { .. } | Op::Fail { .. } | Op::Return { .. } => {}
        }
    }
}

/// Which slots a state is made of, and how they are packed into bits.
#[derive(Clone, Debug)]
pub(crate) struct Packing {
    fields: Vec<Field>,
    /// Field of each slot, for changing one slot in a packed state.
    of_slot: Vec<Field>,
    /// Length of a packed state in 64-bit words.
    pub words: usize,
    /// Length of a packed state in bytes, as it is stored.
    pub bytes: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Field {
    slot: Cell,
    word: u32,
    shift: u32,
    /// Of the value, unshifted; 0 for slots that are not packed.
    mask: u64,
    lo: i32,
}

impl Packing {
    /// Packs the given slots, in their order. No field lies across two words.
    pub fn new(program: &Program, slots: impl Iterator<Item = Cell>) -> Packing {
        let mut fields = Vec::new();
        let mut of_slot = vec![Field::default(); program.slots.len()];
        let mut bit = 0u32;
        for slot in slots {
            let Slot { lo, hi, .. } = program.slots[slot as usize];
            let bits = u32::BITS - (hi.wrapping_sub(lo) as u32).leading_zeros();
            if bits == 0 {
                continue;
            }
            if bit % 64 + bits > 64 {
                bit = bit.next_multiple_of(64);
            }
            let field = Field {
                slot,
                word: bit / 64,
                shift: bit % 64,
                mask: (1 << bits) - 1,
                lo,
            };
            fields.push(field);
            of_slot[slot as usize] = field;
            bit += bits;
        }
        let bytes = (bit as usize).div_ceil(8);
        Packing {
            fields,
            of_slot,
            words: bytes.div_ceil(8),
            bytes,
        }
    }

    /// Packs a whole frame.
    pub fn pack(&self, frame: &[i32], words: &mut [u64]) {
        words.fill(0);
        for f in &self.fields {
            let value = frame[f.slot as usize].wrapping_sub(f.lo) as u32 as u64;
            words[f.word as usize] |= (value & f.mask) << f.shift;
        }
    }

    /// Changes one slot in a packed state.
    #[inline]
    pub fn patch(&self, slot: Cell, value: i32, words: &mut [u64]) {
        let f = &self.of_slot[slot as usize];
        if f.mask != 0 {
            let word = &mut words[f.word as usize];
            let value = value.wrapping_sub(f.lo) as u32 as u64;
            *word = *word & !(f.mask << f.shift) | (value & f.mask) << f.shift;
        }
    }

    /// Unpacks into a frame. Slots that are not packed are left alone.
    pub fn unpack(&self, words: &[u64], frame: &mut [i32]) {
        for f in &self.fields {
            let value = (words[f.word as usize] >> f.shift) & f.mask;
            frame[f.slot as usize] = (value as u32 as i32).wrapping_add(f.lo);
        }
    }
}

impl Program {
    /// The piece of code that begins at `entry`.
    pub fn piece(&self, entry: u32) -> &[Op] {
        let next = self.pieces.partition_point(|&start| start <= entry);
        let end = self
            .pieces
            .get(next)
            .map_or(self.code.len(), |&end| end as usize);
        &self.code[entry as usize..end]
    }

    /// How an instance is shown: its name with the values of its parameters.
    pub fn name(
        &self,
        model: &Model,
        name: &str,
        parameters: &[crate::model::VariableId],
        i: &Instance,
    ) -> String {
        let mut text = name.to_string();
        let mut rest = Vec::new();
        for (&p, &value) in parameters.iter().zip(&i.arguments) {
            let variable = model.variable(p);
            let value = model.show(variable.ty, value);
            let place = format!("{{{}}}", variable.name);
            if text.contains(&place) {
                text = text.replace(&place, &value);
            } else {
                rest.push(format!("{}={value}", variable.name));
            }
        }
        if !rest.is_empty() {
            text = format!("{text} ({})", rest.join(", "));
        }
        text
    }

    /// How a rule's instance is shown.
    pub fn rule_name(&self, model: &Model, rule: u32) -> String {
        let instance = &self.rules[rule as usize];
        let rule = &model.rules[instance.source as usize];
        self.name(model, &rule.name, &rule.parameters, instance)
    }

    /// How a start state's instance is shown.
    pub fn start_name(&self, model: &Model, start: u32) -> String {
        let instance = &self.starts[start as usize];
        let start = &model.starts[instance.source as usize];
        self.name(model, &start.name, &start.parameters, instance)
    }
}
