//! The executable form: straight code over a flat frame of integers, and packed states.
//!
//! A *frame* holds the state's scalars (*slots*), then locals and bound variables, then temporaries, then
//! constants. Every operand of an [`Op`] is the index of a cell in the frame. Code therefore needs no addressing modes,
//! and renaming slots only renames operands.

use crate::model::{Model, Note, Number, TypeId, Violation};
pub(crate) use crate::number::{Arithmetic, UNDEFINED};
use rustc_hash::FxHashMap;

/// Index of a cell in a frame.
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
    /// Faults unless `a` lies within the entry `bounds` of [`Program::bounds`].
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
    /// Jumps to `to`.
    Jump { to: u32 },
    /// Jumps to `to` if the comparison holds.
    JumpIf {
        op: Comparison,
        a: Cell,
        b: Cell,
        to: u32,
    },
    /// Emits a note; its values are in the cells from `values` on.
    Note { note: u32, values: Cell },
    /// Reports the violation with this index in [`Program::violations`].
    Fail { violation: u32 },
    /// Records that iterations of a loop over a scalarset stored different values in one place.
    Disagree { order: u32, violation: u32 },
    /// Marks the cover with this index as reached.
    Cover { cover: u32 },
    /// Saves the cells of [`Program::saved_cells`] and jumps to `to`; faults if too many are saved.
    /// Only programs with recursive functions contain calls; they are interpreted.
    Call { to: u32 },
    /// Restores the cells saved last and continues after their `Call`.
    EndCall,
    /// Ends with a verdict. A body with verdict false has no effect (see [`crate::model::Stmt::Assume`]).
    Return { verdict: bool },
}

/// Comparison of two cells.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Comparison {
    /// `a == b`.
    Equal,
    /// `a != b`.
    NotEqual,
    /// `a < b`.
    Less,
    /// `a <= b`.
    LessOrEqual,
}

impl Comparison {
    /// Returns true if the comparison holds between `a` and `b`, in this order.
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

/// Conversion of an index to an offset: `(index - lo) * stride`, for `count` index values from `lo` on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Shape {
    /// Least index.
    pub lo: Number,
    /// Number of index values.
    pub count: u32,
    /// Cells per element.
    pub stride: u32,
}

/// A constant table.
#[derive(Clone, Debug)]
pub(crate) struct Lookup {
    /// Index of the first value.
    pub lo: Number,
    /// Values for consecutive indices.
    pub values: Vec<i32>,
}

/// One scalar of the state.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Slot {
    /// Name for traces, such as `cells[2].state`.
    pub name: String,
    /// Type of the value.
    pub ty: crate::model::TypeId,
    /// Least defined value.
    pub lo: Number,
    /// Greatest value.
    pub hi: Number,
    /// True if it may be [`UNDEFINED`] in a stored state.
    pub undefined: bool,
}

/// A multiset in the state: the position of its consecutive slots.
/// Each slot begins with a cell that is 1 if an element is present, followed by the element's parts. In an empty slot,
/// the parts have their first values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MultisetLayout {
    /// Cell of the first slot.
    pub first: Cell,
    /// Number of slots, the maximum number of elements.
    pub capacity: u32,
    /// Number of cells per slot.
    pub stride: u32,
}

/// Order in which loops over a type take its values. In the order of the model, the values ascend.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct LoopOrder {
    /// Type of the loop variable.
    pub ty: crate::model::TypeId,
    /// First of the cells that hold the values in loop order.
    pub first: Cell,
    /// Number of values.
    pub count: u32,
    /// Permuted scalarsets among the values: first value, scalarset and size of each.
    pub members: Vec<(Number, crate::model::TypeId, u32)>,
}

/// Orbits of states, used to compare the results of a step.
pub(crate) trait Orbits: Send + Sync {
    /// Packed representative of the orbit of a frame whose multisets are sorted.
    fn representative(&self, frame: &[Number]) -> Vec<u64>;
}

/// Operand of an instruction that may fault, and its position in the source.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Site {
    /// Name of a variable or table; may be empty.
    pub operand: String,
    /// Type of the value, if a message must show it other than as a number.
    pub ty: Option<crate::model::TypeId>,
    /// Source line; 0 if the model was not read from a file.
    pub line: u32,
    /// Variables of the enclosing quantifiers over scalarsets.
    pub enclosing_quantifiers: Vec<crate::model::VariableId>,
}

/// A rule or start state with values of its parameters. If the combinations are too many for separate code, one
/// instance represents all of them.
///
/// Each combination of values has a number. Numbers of one rule follow the order of the values; the last parameter
/// varies fastest. The numbers therefore do not depend on which rules have separate code.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Instance {
    /// Index into [`Model::rules`] or [`Model::starts`].
    pub source: u32,
    /// Number of its combination; the first number if it represents all.
    pub number: u32,
    /// Values of its parameters; empty if it represents all combinations.
    pub arguments: Vec<Number>,
    /// Parameters and code to enumerate all combinations, if it represents all.
    pub parameter_loop: Option<ParameterLoop>,
    /// Entry of its guard; `None` if the guard can never hold. Unused for start states.
    pub guard: Option<u32>,
    /// Entry of its body.
    pub body: u32,
    /// See [`crate::model::Rule::spontaneous`].
    pub spontaneous: bool,
    /// See [`crate::model::Rule::priority`].
    pub priority: i32,
}

/// Rules that an expansion of a state fires.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RuleSelection {
    /// All rules.
    All,
    /// All rules that are not spontaneous.
    NonSpontaneous,
}

impl RuleSelection {
    /// True if rules of this instance fire.
    #[inline(always)]
    pub fn includes(self, rule: &Instance) -> bool {
        match self {
            RuleSelection::All => true,
            RuleSelection::NonSpontaneous => !rule.spontaneous,
        }
    }
}

/// Parameters of an [`Instance`] that represents all their values. Its code reads them from cells.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct ParameterLoop {
    /// Parameters, the slowest varying first.
    pub parameters: Vec<Parameter>,
    /// Entry of code that advances the cells to the next values for which the guard holds. Its verdict is false if none
    /// exist.
    pub next: u32,
    /// Number of combinations.
    pub count: u32,
}

/// Cell of a parameter, and its range.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Parameter {
    /// Cell from which the code reads the value.
    pub cell: Cell,
    /// Least value.
    pub lo: Number,
    /// Greatest value.
    pub hi: Number,
}

impl ParameterLoop {
    /// Values of a combination, given by its position among all.
    pub fn values(&self, mut position: u32) -> impl Iterator<Item = (Parameter, Number)> + '_ {
        let backward = self.parameters.iter().rev().map(move |&parameter| {
            // A parameter has at most as many values as combinations exist, fewer than 2^32.
            let values = parameter.hi.wrapping_sub(parameter.lo) as u32 + 1;
            let value = parameter.lo.wrapping_add((position % values).into());
            position /= values;
            (parameter, value)
        });
        backward.collect::<Vec<_>>().into_iter().rev()
    }

    /// Position, among all combinations, of the one in the cells.
    pub fn position(&self, value: impl Fn(usize, Cell) -> Number) -> u32 {
        let parameters = self.parameters.iter().enumerate();
        parameters.fold(0, |position, (i, parameter)| {
            let values = parameter.hi.wrapping_sub(parameter.lo) as u32 + 1;
            let offset = value(i, parameter.cell).wrapping_sub(parameter.lo) as u32;
            position * values + offset
        })
    }
}

impl Instance {
    /// Number of combinations that it represents.
    pub fn count(&self) -> u32 {
        self.parameter_loop
            .as_ref()
            .map_or(1, |parameter_loop| parameter_loop.count)
    }

    /// Numbers of these combinations.
    pub fn numbers(&self) -> std::ops::Range<u32> {
        self.number..self.number + self.count()
    }

    /// Parameter values of the combination with this number.
    fn values(&self, number: u32) -> Vec<Number> {
        match &self.parameter_loop {
            None => self.arguments.clone(),
            Some(parameter_loop) => parameter_loop
                .values(number - self.number)
                .map(|v| v.1)
                .collect(),
        }
    }
}

/// Total number of combinations of the instances.
fn combinations(instances: &[Instance]) -> u32 {
    instances.last().map_or(0, |last| last.numbers().end)
}

/// Instance that represents the combination with this number.
fn instance_of_number(instances: &[Instance], number: u32) -> Option<&Instance> {
    // If each combination has its own instance, the number is its index.
    let candidate = instances.get(number as usize);
    candidate
        .filter(|candidate| candidate.number == number)
        .or_else(|| {
            let end = instances.partition_point(|instance| instance.number <= number);
            let last = instances.get(end.checked_sub(1)?)?;
            last.numbers().contains(&number).then_some(last)
        })
}

/// One conjunct of an invariant.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Claim {
    /// Index into [`Model::invariants`].
    pub invariant: u32,
    /// Entry of its code.
    pub entry: u32,
}

/// Properties that a search checks, and the assumptions that restrict its states.
#[derive(Clone, Default)]
pub(crate) struct Properties {
    /// Conjuncts of the invariants, in the order of the model.
    pub invariants: Vec<Claim>,
    /// Entries of the conjuncts of the quiescent condition; `None` if drain is not checked.
    pub quiescent: Option<Vec<u32>>,
    /// Entry of each cover's code; `None` for covers that [`Op::Cover`] marks.
    pub covers: Vec<Option<u32>>,
    /// Instances of liveness properties: index into [`Model::liveness`], and entries of the conjuncts.
    pub liveness: Vec<(u32, Vec<u32>)>,
    /// Entries of the assumptions. A state that violates one is not stored.
    pub assumptions: Vec<u32>,
}

/// Check of loop orders that the search gives up, with the symmetry of the loop's scalarsets, if results differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ProvisionalCheck {
    /// Index into [`Program::violations`] of the check's [`Op::Disagree`] instructions.
    pub violation: u32,
    /// True if the check belongs to early exits of a loop.
    pub is_early_exit: bool,
}

/// Orders of the loops whose order may matter.
#[derive(Clone, Default)]
pub(crate) struct LoopOrders {
    /// Order of each type of loop variables.
    pub orders: Vec<LoopOrder>,
    /// Cell that is 1 while these loops take their order from the cells of `orders`, else 0.
    pub reorder_flag: Cell,
    /// Cell that is 1 while a return of the only value that a loop can return waits for the end of the loop, else 0.
    /// All iterations then run, and one that fails is found whatever the order.
    pub postpones_returns: Cell,
    /// Orbits of the whole state; given if `orders` is not empty.
    pub orbits: Option<std::sync::Arc<dyn Orbits>>,
    /// Checks that the search can give up.
    pub provisional: Vec<ProvisionalCheck>,
}

/// A compiled model.
#[derive(Clone, Default)]
pub(crate) struct Program {
    /// Scalars of the state, in the order of their cells.
    pub slots: Vec<Slot>,
    /// Initial value of every cell before a start state runs, including the constants.
    pub frame: Vec<Number>,
    /// Instructions of all pieces.
    pub code: Vec<Op>,
    /// Entry of each piece of code, ascending. Jumps stay within a piece.
    pub pieces: Vec<u32>,
    /// Ranges for [`Op::Check`], least and greatest value, without duplicates.
    pub bounds: Vec<(Number, Number)>,
    /// Shapes for [`Op::Index`], without duplicates.
    pub shapes: Vec<Shape>,
    /// Tables for [`Op::Table`], in the order of the model's tables.
    pub tables: Vec<Lookup>,
    /// Start states, in the order of their numbers.
    pub starts: Vec<Instance>,
    /// Rules, in the order of their numbers.
    pub rules: Vec<Instance>,
    /// Properties that a search checks, and assumptions.
    pub properties: Properties,
    /// All multisets of the state, inner ones first. Each is sorted in every stored state.
    pub multisets: Vec<MultisetLayout>,
    /// Cells that [`Op::Call`] saves.
    pub saved_cells: std::ops::Range<Cell>,
    /// Orders of the loops whose iterations may store different values in one place.
    pub loop_orders: LoopOrders,
    /// Violations that errors and assertions report.
    pub violations: Vec<Violation>,
    /// Operand of each instruction that may fault, by its index in the code.
    pub sites: FxHashMap<u32, Site>,
    /// Notes for [`Op::Note`].
    pub notes: Vec<Note>,
    /// Width of numbers in bits, for messages.
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
            | Op::EndCall
            | Op::Return { .. } => {}
        }
    }
}

/// Layout of a packed state: its slots and their bit positions.
#[derive(Clone, Debug)]
pub(crate) struct Packing {
    /// Packed slots in the order of their bits; slots of one value need no bits and have no field.
    fields: Vec<Field>,
    /// Field of each slot, for changing one slot in a packed state.
    of_slot: Vec<Field>,
    /// Length of a packed state in 64-bit words.
    pub words: usize,
    /// Length of a packed state in bytes, as it is stored.
    pub bytes: usize,
}

/// Position of a slot in a packed state.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Field {
    /// Index of the slot.
    pub slot: Cell,
    /// Word of the packed state.
    pub word: u32,
    /// Position of the lowest bit in the word; no field crosses words.
    pub shift: u32,
    /// Mask of the unshifted value; 0 for slots that are not packed.
    pub mask: u64,
    /// Value packed as 0, or as 1 if 0 encodes [`UNDEFINED`].
    pub lo: Number,
    /// True if 0 encodes [`UNDEFINED`].
    pub undefined: bool,
}

impl Field {
    /// Packed value of a number in the slot's range, unshifted.
    #[inline]
    pub fn encode(&self, value: Number) -> u64 {
        let raw = match self.undefined && value == UNDEFINED {
            true => 0,
            false => value
                .wrapping_sub(self.lo)
                .wrapping_add(self.undefined.into()),
        };
        raw as u64 & self.mask
    }

    /// Value of a packed, unshifted field.
    #[inline]
    pub fn decode(&self, raw: u64) -> Number {
        match self.undefined && raw == 0 {
            true => UNDEFINED,
            false => (raw as Number)
                .wrapping_add(self.lo)
                .wrapping_sub(self.undefined.into()),
        }
    }
}

#[cfg(test)]
impl Packing {
    /// Packing of states of this length, without fields.
    pub fn of_bytes(bytes: usize) -> Packing {
        Packing {
            fields: Vec::new(),
            of_slot: Vec::new(),
            words: bytes.div_ceil(8),
            bytes,
        }
    }
}

impl Packing {
    /// Packs the given slots, in their order. No field crosses a word boundary.
    pub fn new(program: &Program, slots: impl Iterator<Item = Cell>) -> Packing {
        let mut fields = Vec::new();
        let mut of_slot = vec![Field::default(); program.slots.len()];
        let mut bit = 0u32;
        for slot in slots {
            let Slot {
                lo, hi, undefined, ..
            } = program.slots[slot as usize];
            // No value is the least number, so the sum with the undefined value does not overflow.
            let max_raw = (hi.wrapping_sub(lo) as u64).wrapping_add(undefined.into());
            let bits = u64::BITS - max_raw.leading_zeros();
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

    /// Position of a slot; its mask is 0 if the slot is not packed.
    #[inline]
    pub fn field(&self, slot: Cell) -> Field {
        self.of_slot[slot as usize]
    }

    /// Packed slots, in the order of their positions.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Packs a whole frame.
    pub fn pack(&self, frame: &[Number], words: &mut [u64]) {
        words.fill(0);
        for field in &self.fields {
            words[field.word as usize] |= field.encode(frame[field.slot as usize]) << field.shift;
        }
    }

    /// Changes one slot in a packed state.
    #[inline]
    pub fn patch(&self, slot: Cell, value: Number, words: &mut [u64]) {
        let field = &self.of_slot[slot as usize];
        if field.mask != 0 {
            let word = &mut words[field.word as usize];
            *word = *word & !(field.mask << field.shift) | field.encode(value) << field.shift;
        }
    }

    /// Unpacks into a frame. Slots that are not packed keep their values.
    pub fn unpack(&self, words: &[u64], frame: &mut [Number]) {
        for field in &self.fields {
            let raw = (words[field.word as usize] >> field.shift) & field.mask;
            frame[field.slot as usize] = field.decode(raw);
        }
    }
}

impl Program {
    /// Early exits of the loops that the code from `entry` runs: for each order, its index into [`LoopOrders::orders`]
    /// and an instruction that checks the exit. A fault may be an early exit of each of these loops.
    pub fn early_exits(&self, entry: u32) -> Vec<(u32, u32)> {
        let checks = &self.loop_orders.provisional;
        if checks.is_empty() {
            return Vec::new();
        }
        let piece = self.piece(entry);
        let mut code = (entry as usize..).zip(piece);
        // A call may run any loop of a function.
        let mut all_code = (0..).zip(&self.code);
        let code: &mut dyn Iterator<Item = (usize, &Op)> =
            match piece.iter().any(|op| matches!(op, Op::Call { .. })) {
                true => &mut all_code,
                false => &mut code,
            };
        let mut exits: Vec<(u32, u32)> = Vec::new();
        for (instruction, op) in code {
            let Op::Disagree { order, violation } = *op else {
                continue;
            };
            let is_exit = |c: &ProvisionalCheck| c.violation == violation && c.is_early_exit;
            if checks.iter().any(is_exit) && exits.iter().all(|known| known.0 != order) {
                exits.push((order, instruction as u32));
            }
        }
        exits
    }

    /// Scalarsets whose symmetry the search gives up if this instruction finds results that differ; empty if the
    /// instruction is no such check.
    pub fn provisional_sets(&self, instruction: u32) -> Vec<TypeId> {
        let Op::Disagree { order, violation } = self.code[instruction as usize] else {
            return Vec::new();
        };
        let is_provisional = |c: &ProvisionalCheck| c.violation == violation;
        match self.loop_orders.provisional.iter().any(is_provisional) {
            true => {
                let members = &self.loop_orders.orders[order as usize].members;
                members.iter().map(|member| member.1).collect()
            }
            false => Vec::new(),
        }
    }

    /// Sorts the multisets of a frame: elements before empty slots, the smallest first. Calls `changed` with each
    /// changed cell and its old value. Every state is sorted before it is packed.
    pub fn sort_multisets(&self, frame: &mut [Number], mut changed: impl FnMut(Cell, Number)) {
        let mut sorted = Vec::new();
        for multiset in &self.multisets {
            let stride = multiset.stride as usize;
            let cells = multiset.first as usize
                ..multiset.first as usize + multiset.capacity as usize * stride;
            let order = |a: &[Number], b: &[Number]| b[0].cmp(&a[0]).then_with(|| a.cmp(b));
            let slots = || frame[cells.clone()].chunks_exact(stride);
            if slots().is_sorted_by(|a, b| order(a, b).is_le()) {
                continue;
            }
            let mut sorted_slots: Vec<&[Number]> = slots().collect();
            sorted_slots.sort_by(|a, b| order(a, b));
            sorted.clear();
            sorted.extend(sorted_slots.into_iter().flatten().copied());
            for (cell, &value) in cells.zip(&sorted) {
                let old = std::mem::replace(&mut frame[cell], value);
                if old != value {
                    changed(cell as Cell, old);
                }
            }
        }
    }

    /// True if parts may be explored separately: only invariants and the quiescent condition read the whole state.
    pub fn is_separable(&self) -> bool {
        let priority = self.rules.first().map_or(0, |rule| rule.priority);
        self.properties.covers.is_empty()
            && self.properties.liveness.is_empty()
            && self.properties.assumptions.is_empty()
            && self.multisets.is_empty()
            && self.saved_cells.is_empty()
            && self.rules.iter().all(|rule| rule.priority == priority)
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

    /// Number of rule instances, one for each combination of parameter values.
    pub fn rule_count(&self) -> u32 {
        combinations(&self.rules)
    }

    /// Number of start states, one for each combination of parameter values.
    pub fn start_count(&self) -> u32 {
        combinations(&self.starts)
    }

    /// Instance of the rule with this number; it may represent others too.
    pub fn rule(&self, number: u32) -> Option<&Instance> {
        instance_of_number(&self.rules, number)
    }

    /// Instance of the start state with this number; it may represent others too.
    pub fn start(&self, number: u32) -> Option<&Instance> {
        instance_of_number(&self.starts, number)
    }

    /// Replaces the parameters in a name by their values; appends those that the name does not mention.
    fn insert_values(
        &self,
        model: &Model,
        name: &str,
        parameters: &[crate::model::VariableId],
        values: &[Number],
    ) -> String {
        let mut text = name.to_string();
        let mut unnamed = Vec::new();
        for (&p, &value) in parameters.iter().zip(values) {
            let variable = model.variable(p);
            let value = model.show(variable.ty, value);
            let placeholder = format!("{{{}}}", variable.name);
            if text.contains(&placeholder) {
                text = text.replace(&placeholder, &value);
            } else {
                unnamed.push(format!("{}={value}", variable.name));
            }
        }
        if !unnamed.is_empty() {
            text = format!("{text} ({})", unnamed.join(", "));
        }
        text
    }

    /// Display name of the rule with this number; empty if there is none.
    pub fn rule_name(&self, model: &Model, number: u32) -> String {
        self.rule(number).map_or(String::new(), |instance| {
            let rule = &model.rules[instance.source as usize];
            self.insert_values(
                model,
                &rule.name,
                &rule.parameters,
                &instance.values(number),
            )
        })
    }

    /// Display name of the start state with this number; empty if there is none.
    pub fn start_name(&self, model: &Model, number: u32) -> String {
        self.start(number).map_or(String::new(), |instance| {
            let start = &model.starts[instance.source as usize];
            self.insert_values(
                model,
                &start.name,
                &start.parameters,
                &instance.values(number),
            )
        })
    }
}
