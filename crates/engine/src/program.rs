//! The executable form: straight code over a flat frame of integers, and packed states.
//!
//! A *frame* holds the state's simple parts (*slots*), then locals and bound variables, then
//! temporaries, then constants. Every operand of an [`Op`] is the position of a cell in it,
//! so code needs no addressing modes, and a renaming of slots is a renaming of operands.

use crate::model::{Model, Note, Number, Violation};
pub(crate) use crate::number::{Arithmetic, UNDEFINED};
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
    /// Faults unless `a` lies within these of [`Program::bounds`].
    Check { a: Cell, bounds: u32 },
    /// Faults if `a` is undefined.
    Defined { a: Cell },
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
    /// Rounds of a loop over a scalarset have stored different values in one place.
    Disagree { order: u32, name: u32 },
    /// The cover with this index is met.
    Cover { cover: u32 },
    /// Keeps the cells of [`Program::saved`] and goes on at `to`; faults if too many are kept.
    /// Only programs with recursive functions have this; they are interpreted.
    Call { to: u32 },
    /// Puts the cells that were kept last back and goes on behind their `Call`.
    Back,
    /// Ends with a verdict. A body whose verdict is false has not happened (see [`crate::model::Stmt::Assume`]).
    Return { verdict: bool },
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
    pub fn holds(self, a: Number, b: Number) -> bool {
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
    pub lo: Number,
    pub count: u32,
    pub stride: u32,
}

/// A constant table, found by index minus `lo`.
#[derive(Clone, Debug)]
pub(crate) struct Lookup {
    pub lo: Number,
    pub values: Vec<i32>,
}

/// One simple part of the state.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Slot {
    /// `cells[2].state`, for traces.
    pub name: String,
    pub ty: crate::model::TypeId,
    pub lo: Number,
    pub hi: Number,
    /// Whether it may be [`UNDEFINED`] in a stored state.
    pub undefined: bool,
}

/// A multiset in the state: where its slots lie, one behind the other.
/// Each begins with a cell that says whether there is an element, followed by the element's parts;
/// where there is none, these have their first values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Bag {
    pub first: Cell,
    pub capacity: u32,
    /// Cells of one slot.
    pub stride: u32,
}

/// The order in which loops over a type run through its values. In the order of the text it is that of the values.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct LoopOrder {
    /// The type that loops run over.
    pub ty: crate::model::TypeId,
    /// The first of the cells that hold the values in their order.
    pub first: Cell,
    /// Number of values.
    pub count: u32,
    /// Permuted scalarsets among its values: the first value of each, the scalarset and its size.
    pub members: Vec<(Number, crate::model::TypeId, u32)>,
}

/// Orbits of states, by which results of a step are compared.
pub(crate) trait Orbits: Send + Sync {
    /// The packed state that stands for the orbit of a frame whose multisets are sorted.
    fn representative(&self, frame: &[Number]) -> Vec<u64>;
}

/// What an instruction that may fault works on, and where the text asks for it.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Site {
    /// A variable or table; may be empty.
    pub what: String,
    /// Type of the value it meets, if that is to be shown in other ways than as a number.
    pub ty: Option<crate::model::TypeId>,
    /// 0 if there is no text.
    pub line: u32,
    /// The names of the scalarset values for each of which it is run to find out whether something holds for all or for any.
    pub among: Vec<crate::model::VariableId>,
}

/// A rule or start state with values for its parameters; or with all values, where these are too many for code of their own.
///
/// Each combination of values has a number, those of one rule in the order of the values, the last parameter's
/// varying fastest. So numbers do not depend on which rules have code for each combination.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Instance {
    /// Index into [`Model::rules`] or [`Model::starts`].
    pub source: u32,
    /// Number of its combination, or of the first of all.
    pub number: u32,
    /// Values of its parameters; empty if it stands for all.
    pub arguments: Vec<Number>,
    /// What it takes to run it for all values, if it stands for all.
    pub every: Option<Every>,
    /// Where its guard begins; `None` if it can never hold. (For starts, where nothing is asked.)
    pub guard: Option<u32>,
    /// Where its body begins.
    pub body: u32,
    /// See [`crate::model::Rule::spontaneous`].
    pub spontaneous: bool,
    /// See [`crate::model::Rule::priority`].
    pub priority: i32,
}

/// The parameters of an [`Instance`] that stands for all their values. Its code finds them in cells.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Every {
    /// First the one that varies slowest.
    pub parameters: Vec<Parameter>,
    /// Code that goes on from the values in the cells to the next for which the guard holds; says no if there are none.
    pub next: u32,
    /// How many combinations there are.
    pub count: u32,
}

/// A cell that holds the value of a parameter, and what values it can have.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Parameter {
    pub cell: Cell,
    pub lo: Number,
    pub hi: Number,
}

impl Every {
    /// The values of a combination, by its place among all.
    pub fn values(&self, mut place: u32) -> impl Iterator<Item = (Parameter, Number)> + '_ {
        let backward = self.parameters.iter().rev().map(move |&parameter| {
            // No more values than combinations, of which there are not 2^32.
            let values = parameter.hi.wrapping_sub(parameter.lo) as u32 + 1;
            let value = parameter.lo.wrapping_add((place % values).into());
            place /= values;
            (parameter, value)
        });
        backward.collect::<Vec<_>>().into_iter().rev()
    }

    /// The place among all of the combination whose values the cells hold.
    pub fn place(&self, value: impl Fn(usize, Cell) -> Number) -> u32 {
        let parameters = self.parameters.iter().enumerate();
        parameters.fold(0, |place, (i, parameter)| {
            let values = parameter.hi.wrapping_sub(parameter.lo) as u32 + 1;
            let above = value(i, parameter.cell).wrapping_sub(parameter.lo) as u32;
            place * values + above
        })
    }
}

impl Instance {
    /// For how many combinations of values it stands.
    pub fn count(&self) -> u32 {
        self.every.as_ref().map_or(1, |every| every.count)
    }

    /// The numbers of these.
    pub fn numbers(&self) -> std::ops::Range<u32> {
        self.number..self.number + self.count()
    }

    /// The values of its parameters in the combination of this number.
    fn values(&self, number: u32) -> Vec<Number> {
        match &self.every {
            None => self.arguments.clone(),
            Some(every) => every.values(number - self.number).map(|v| v.1).collect(),
        }
    }
}

/// How many combinations of values instances stand for, all together.
fn combinations(instances: &[Instance]) -> u32 {
    instances.last().map_or(0, |last| last.numbers().end)
}

/// The instance that stands for the combination of this number.
fn of_number(instances: &[Instance], number: u32) -> Option<&Instance> {
    // Where each combination has an instance of its own, it has the number's place.
    let own = instances.get(number as usize);
    own.filter(|own| own.number == number).or_else(|| {
        let behind = instances.partition_point(|instance| instance.number <= number);
        let last = instances.get(behind.checked_sub(1)?)?;
        last.numbers().contains(&number).then_some(last)
    })
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
#[derive(Clone, Default)]
pub(crate) struct Program {
    pub slots: Vec<Slot>,
    /// Every cell's value before a start state runs: first values, and constants in their place.
    pub frame: Vec<Number>,
    pub code: Vec<Op>,
    /// Where each piece of code begins, ascending. Jumps stay within a piece.
    pub pieces: Vec<u32>,
    /// What values are checked against, the least and the greatest; each pair stands here once.
    pub bounds: Vec<(Number, Number)>,
    pub shapes: Vec<Shape>,
    pub tables: Vec<Lookup>,
    pub starts: Vec<Instance>,
    pub rules: Vec<Instance>,
    pub invariants: Vec<Claim>,
    /// Conjuncts of the quiescent condition, or nothing.
    pub quiescent: Option<Vec<u32>>,
    /// Where the code of each cover begins; `None` for those that [`Op::Cover`] meets.
    pub covers: Vec<Option<u32>>,
    /// Instances of liveness properties: index into [`Model::liveness`], and conjuncts.
    pub liveness: Vec<(u32, Vec<u32>)>,
    /// What must hold in a state for it to be kept.
    pub assumptions: Vec<u32>,
    /// All multisets of the state, those inside others first. Each is sorted in every stored state.
    pub bags: Vec<Bag>,
    /// What [`Op::Call`] keeps.
    pub saved: std::ops::Range<Cell>,
    /// Orders of the loops whose rounds may store different values in one place.
    pub orders: Vec<LoopOrder>,
    /// The cell that is 1 while these loops take the order from the cells of [`Program::orders`], else 0.
    pub reordered: Cell,
    /// Given if there are any such loops.
    pub orbits: Option<std::sync::Arc<dyn Orbits>>,
    /// Names of errors and assertions.
    pub names: Vec<Violation>,
    /// What an instruction that may fault works on.
    pub sites: FxHashMap<u32, Site>,
    pub notes: Vec<Note>,
    /// Of how many bits numbers are, for messages.
    pub number_bits: u32,
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
            Op::Check { a, .. } | Op::Defined { a } => f(a),
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
            Op::Jump { .. }
            | Op::Fail { .. }
            | Op::Disagree { .. }
            | Op::Cover { .. }
            | Op::Call { .. }
            | Op::Back
            | Op::Return { .. } => {}
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

/// Where a slot lies in a packed state.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Field {
    pub slot: Cell,
    pub word: u32,
    pub shift: u32,
    /// Of the value, unshifted; 0 for slots that are not packed.
    pub mask: u64,
    /// What is packed as 0, or as 1 if 0 stands for [`UNDEFINED`].
    pub lo: Number,
    /// Whether 0 stands for [`UNDEFINED`].
    pub undefined: bool,
}

impl Field {
    #[inline]
    pub fn raw(&self, value: Number) -> u64 {
        let raw = match self.undefined && value == UNDEFINED {
            true => 0,
            false => value
                .wrapping_sub(self.lo)
                .wrapping_add(self.undefined.into()),
        };
        raw as u64 & self.mask
    }

    #[inline]
    pub fn value(&self, raw: u64) -> Number {
        match self.undefined && raw == 0 {
            true => UNDEFINED,
            false => (raw as Number)
                .wrapping_add(self.lo)
                .wrapping_sub(self.undefined.into()),
        }
    }
}

impl Packing {
    /// Packs the given slots, in their order. No field lies across two words.
    pub fn new(program: &Program, slots: impl Iterator<Item = Cell>) -> Packing {
        let mut fields = Vec::new();
        let mut of_slot = vec![Field::default(); program.slots.len()];
        let mut bit = 0u32;
        for slot in slots {
            let Slot {
                lo, hi, undefined, ..
            } = program.slots[slot as usize];
            // No value is the least number, so there is room for one that is undefined.
            let most = (hi.wrapping_sub(lo) as u64).wrapping_add(undefined.into());
            let bits = u64::BITS - most.leading_zeros();
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
                mask: u64::MAX >> (u64::BITS - bits),
                lo,
                undefined,
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

    /// Where a slot lies; its mask is 0 if it is not packed.
    #[inline]
    pub fn field(&self, slot: Cell) -> Field {
        self.of_slot[slot as usize]
    }

    /// The slots that are packed, in the order of their places.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Packs a whole frame.
    pub fn pack(&self, frame: &[Number], words: &mut [u64]) {
        words.fill(0);
        for f in &self.fields {
            words[f.word as usize] |= f.raw(frame[f.slot as usize]) << f.shift;
        }
    }

    /// Changes one slot in a packed state.
    #[inline]
    pub fn patch(&self, slot: Cell, value: Number, words: &mut [u64]) {
        let f = &self.of_slot[slot as usize];
        if f.mask != 0 {
            let word = &mut words[f.word as usize];
            *word = *word & !(f.mask << f.shift) | f.raw(value) << f.shift;
        }
    }

    /// Unpacks into a frame. Slots that are not packed are left alone.
    pub fn unpack(&self, words: &[u64], frame: &mut [Number]) {
        for f in &self.fields {
            frame[f.slot as usize] = f.value((words[f.word as usize] >> f.shift) & f.mask);
        }
    }
}

impl Program {
    /// Sorts the multisets of a frame: elements first, the smallest in front. Calls `changed` with each cell
    /// that gets another value and its old one. Every state is sorted before it is packed.
    pub fn settle(&self, frame: &mut [Number], mut changed: impl FnMut(Cell, Number)) {
        let mut sorted = Vec::new();
        for bag in &self.bags {
            let stride = bag.stride as usize;
            let cells = bag.first as usize..bag.first as usize + bag.capacity as usize * stride;
            let order = |a: &[Number], b: &[Number]| b[0].cmp(&a[0]).then_with(|| a.cmp(b));
            let slots = || frame[cells.clone()].chunks_exact(stride);
            if slots().is_sorted_by(|a, b| order(a, b).is_le()) {
                continue;
            }
            let mut all: Vec<&[Number]> = slots().collect();
            all.sort_by(|a, b| order(a, b));
            sorted.clear();
            sorted.extend(all.into_iter().flatten().copied());
            for (cell, &value) in cells.zip(&sorted) {
                let old = std::mem::replace(&mut frame[cell], value);
                if old != value {
                    changed(cell as Cell, old);
                }
            }
        }
    }

    /// Whether its parts may be explored apart: nothing but invariants and the quiescent condition looks at all of it.
    pub fn separable(&self) -> bool {
        let first = self.rules.first().map_or(0, |rule| rule.priority);
        self.covers.is_empty()
            && self.liveness.is_empty()
            && self.assumptions.is_empty()
            && self.bags.is_empty()
            && self.saved.is_empty()
            && self.rules.iter().all(|rule| rule.priority == first)
    }

    /// The piece of code that begins at `entry`.
    pub fn piece(&self, entry: u32) -> &[Op] {
        let next = self.pieces.partition_point(|&start| start <= entry);
        let end = self
            .pieces
            .get(next)
            .map_or(self.code.len(), |&end| end as usize);
        &self.code[entry as usize..end]
    }

    /// How many rules there are, counted over the values of their parameters.
    pub fn rule_count(&self) -> u32 {
        combinations(&self.rules)
    }

    /// How many start states there are, likewise.
    pub fn start_count(&self) -> u32 {
        combinations(&self.starts)
    }

    /// The rule of this number, which may stand for others too.
    pub fn rule(&self, number: u32) -> Option<&Instance> {
        of_number(&self.rules, number)
    }

    /// The start state of this number, likewise.
    pub fn start(&self, number: u32) -> Option<&Instance> {
        of_number(&self.starts, number)
    }

    /// How an instance is shown: its name with the values of its parameters.
    fn name(
        &self,
        model: &Model,
        name: &str,
        parameters: &[crate::model::VariableId],
        values: &[Number],
    ) -> String {
        let mut text = name.to_string();
        let mut rest = Vec::new();
        for (&p, &value) in parameters.iter().zip(values) {
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

    /// How the rule of this number is shown; empty if there is none.
    pub fn rule_name(&self, model: &Model, number: u32) -> String {
        self.rule(number).map_or(String::new(), |instance| {
            let rule = &model.rules[instance.source as usize];
            self.name(
                model,
                &rule.name,
                &rule.parameters,
                &instance.values(number),
            )
        })
    }

    /// How the start state of this number is shown; empty if there is none.
    pub fn start_name(&self, model: &Model, number: u32) -> String {
        self.start(number).map_or(String::new(), |instance| {
            let start = &model.starts[instance.source as usize];
            self.name(
                model,
                &start.name,
                &start.parameters,
                &instance.values(number),
            )
        })
    }
}
