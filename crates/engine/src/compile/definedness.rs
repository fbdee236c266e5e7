//! Analysis of undefined values: slots that can be undefined in a stored state, and checks that can never fail.
//!
//! Start states are run to see what they leave undefined. For rules, a data-flow analysis finds which cells may be
//! undefined at each instruction. Checks of cells that are always defined are then removed, and slots that are always
//! defined need no encoding of the undefined value.

use crate::interpret::Machine;
use crate::program::{Cell, Comparison, Op, Program, Slot, UNDEFINED};
use rustc_hash::{FxHashMap, FxHashSet};

/// Finds slots and cells that are never undefined, and simplifies the code.
pub(super) fn remove_needless_checks(program: &mut Program) {
    let may_be_undefined =
        program.slots.iter().any(|slot| slot.undefined) || !program.multisets.is_empty();
    if !may_be_undefined {
        return;
    }
    let presence_slots = presence_slots(program);
    // The effects of a call are not visible in a single piece of code.
    if !program.saved_cells.is_empty() {
        mark_inserted_slots(program, &presence_slots);
        return;
    }
    let mut slots = undefined_start_slots(program);
    let element_groups = element_groups(program);
    // A piece is analysed again only if more may be undefined at its entry.
    let mut flows: FxHashMap<u32, Flow> = FxHashMap::default();
    loop {
        merge_multiset_slots(program, &mut slots);
        merge_array_elements(&element_groups, &mut slots);
        let mut has_grown = false;
        for rule in program.rules.iter().filter(|rule| rule.guard.is_some()) {
            let flow_entry = flows.entry(rule.body);
            let flow = flow_entry.or_insert_with(|| Flow::new(program, rule.body));
            flow.analyse(&slots);
            for slot in flow.undefined_at_exit() {
                // A store by a computed index may reach all slots of a variable, as far as this analysis can see.
                has_grown |= !presence_slots[slot] && !std::mem::replace(&mut slots[slot], true);
            }
        }
        if !has_grown {
            break;
        }
    }
    let initially_undefined: Vec<bool> = program.slots.iter().map(|slot| slot.undefined).collect();
    let starts: FxHashSet<u32> = program.starts.iter().map(|start| start.body).collect();
    let mut changes = Vec::new();
    for &entry in &program.pieces {
        let slots = match starts.contains(&entry) {
            true => &initially_undefined,
            false => &slots,
        };
        let flow_entry = flows.entry(entry);
        let flow = flow_entry.or_insert_with(|| Flow::new(program, entry));
        flow.analyse(slots);
        flow.collect_simplifications(&mut changes);
    }
    drop(flows);
    for (slot, &undefined) in program.slots.iter_mut().zip(&slots) {
        slot.undefined = undefined;
    }
    let mut removed = vec![false; program.code.len()];
    for (address, op) in changes {
        match op {
            Some(op) => program.code[address as usize] = op,
            None => removed[address as usize] = true,
        }
    }
    remove_instructions(program, &removed);
}

/// For each slot, true if it says whether a position of a multiset holds an element. Such a slot is never undefined.
fn presence_slots(program: &Program) -> Vec<bool> {
    let mut presence_slots = vec![false; program.slots.len()];
    for multiset in &program.multisets {
        for position in 0..multiset.capacity {
            presence_slots[(multiset.first + position * multiset.stride) as usize] = true;
        }
    }
    presence_slots
}

/// Marks the slots of elements of multisets: an inserted element may have undefined parts.
fn mark_inserted_slots(program: &mut Program, presence_slots: &[bool]) {
    for multiset in &program.multisets {
        let end = multiset.first + multiset.capacity * multiset.stride;
        for slot in (multiset.first..end).map(|slot| slot as usize) {
            program.slots[slot].undefined |= !presence_slots[slot];
        }
    }
}

/// Maximum number of start states that are run for this analysis.
const MAX_STARTS: u32 = 1 << 16;

/// For each slot, true if a start state may leave it undefined.
fn undefined_start_slots(program: &Program) -> Vec<bool> {
    if program.start_count() > MAX_STARTS {
        return program.slots.iter().map(|slot| slot.undefined).collect();
    }
    let mut undefined = vec![false; program.slots.len()];
    let mut machine = Machine::new(program);
    for start in 0..program.start_count() {
        if machine.start(start) != Ok(false) {
            for (slot, undefined) in undefined.iter_mut().enumerate() {
                *undefined |= machine.frame[slot] == UNDEFINED;
            }
        }
    }
    undefined
}

/// Marks all slots of a multiset if one may be undefined, since an element may move to any slot.
fn merge_multiset_slots(program: &Program, undefined: &mut [bool]) {
    for multiset in &program.multisets {
        for part in 0..multiset.stride {
            let slots = (0..multiset.capacity)
                .map(|i| (multiset.first + i * multiset.stride + part) as usize);
            if slots.clone().any(|slot| undefined[slot]) {
                slots.for_each(|slot| undefined[slot] = true);
            }
        }
    }
}

/// Groups of slots whose names differ only in indices.
fn element_groups(program: &Program) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut group_of_path: FxHashMap<String, usize> = FxHashMap::default();
    for (slot, Slot { name, .. }) in program.slots.iter().enumerate() {
        // Slots such as `a[client_1].b[2]` belong to the group `a[].b[]`.
        let path: Vec<&str> = name
            .split('[')
            .map(|part| part.split_once(']').map_or(part, |(_, rest)| rest))
            .collect();
        let group = *group_of_path.entry(path.join("[]")).or_insert(groups.len());
        if group == groups.len() {
            groups.push(Vec::new());
        }
        groups[group].push(slot);
    }
    groups
}

/// Marks all elements of an array if one may be undefined. Permutations of scalarset values exchange packed elements,
/// so all elements need the same encoding.
fn merge_array_elements(groups: &[Vec<usize>], undefined: &mut [bool]) {
    for group in groups {
        if group.iter().any(|&slot| undefined[slot]) {
            group.iter().for_each(|&slot| undefined[slot] = true);
        }
    }
}

/// Cells that may be undefined at the jump targets of a piece of code.
struct Flow<'a> {
    /// Program of the piece.
    program: &'a Program,
    /// First instruction of the piece.
    entry: u32,
    /// Instructions of the piece.
    code: &'a [Op],
    /// Index of each cell that the piece accesses.
    cells: FxHashMap<Cell, usize>,
    /// State at each jump target; one bit per cell.
    states: FxHashMap<u32, Vec<u64>>,
    /// State at the entry; `None` before the first analysis.
    entry_state: Option<Vec<u64>>,
    /// State at the end.
    exit_state: Vec<u64>,
}

/// Bit `i` of a bit set.
fn get_bit(bits: &[u64], i: usize) -> bool {
    bits[i / 64] >> (i % 64) & 1 != 0
}

/// Sets bit `i` of a bit set to `value`.
fn set_bit(bits: &mut [u64], i: usize, value: bool) {
    bits[i / 64] = bits[i / 64] & !(1 << (i % 64)) | (value as u64) << (i % 64);
}

/// Joins two states; returns true if the first one has grown.
fn join(into: &mut [u64], from: &[u64]) -> bool {
    let mut has_grown = false;
    for (into, from) in into.iter_mut().zip(from) {
        has_grown |= from & !*into != 0;
        *into |= from;
    }
    has_grown
}

impl<'a> Flow<'a> {
    /// Prepares the analysis of a piece; no cell counts as undefined yet.
    fn new(program: &'a Program, entry: u32) -> Flow<'a> {
        let code = program.piece(entry);
        let mut cells = FxHashMap::default();
        let mut add_cell = |cell: Cell| {
            let next = cells.len();
            cells.entry(cell).or_insert(next);
        };
        for &op in code {
            if let Op::Load { base, len, .. } | Op::Store { base, len, .. } = op {
                region(program, base, len).for_each(&mut add_cell);
            }
            let mut op = op;
            op.operands(|cell| add_cell(*cell));
        }
        Flow {
            program,
            entry,
            code,
            states: FxHashMap::default(),
            entry_state: None,
            exit_state: vec![0; cells.len().div_ceil(64)],
            cells,
        }
    }

    /// Analyses the piece, if these slots may be undefined at its entry.
    fn analyse(&mut self, slots: &[bool]) {
        let mut first = vec![0; self.exit_state.len()];
        for (&cell, &number) in &self.cells {
            let undefined = match slots.get(cell as usize) {
                Some(&slot) => slot,
                None => self.program.frame[cell as usize] == UNDEFINED,
            };
            set_bit(&mut first, number, undefined);
        }
        if self.entry_state.as_ref() == Some(&first) {
            return;
        }
        self.entry_state = Some(first);
        self.states.clear();
        self.exit_state.fill(0);
        // Only backward jumps require another pass.
        while self.analyse_once(|_, _, _, _| {}) {}
    }

    /// Analyses the code once. Returns true if a backward jump has changed the state at its target.
    /// `visit` receives each reachable instruction, with the state before it.
    fn analyse_once(&mut self, mut visit: impl FnMut(&Self, u32, Op, &[u64])) -> bool {
        let mut needs_another_pass = false;
        let mut current = self.entry_state.clone();
        for (i, &op) in self.code.iter().enumerate() {
            let address = self.entry + i as u32;
            if let Some(joined) = self.states.get_mut(&address) {
                if let Some(current) = &current {
                    join(joined, current);
                }
                current = Some(joined.clone());
            }
            let Some(mut state) = current.take() else {
                continue;
            };
            visit(self, address, op, &state);
            let mut jump = |flow: &mut Self, to: u32, state: &[u64]| {
                let old_state = flow.states.get_mut(&to);
                let has_grown = match old_state {
                    Some(old_state) => join(old_state, state),
                    None => {
                        flow.states.insert(to, state.to_vec());
                        true
                    }
                };
                needs_another_pass |= has_grown && to <= address;
            };
            match op {
                Op::Jump { to } => {
                    jump(self, to, &state);
                    continue;
                }
                Op::JumpIf { op, a, to, .. } => {
                    let mut jump_state = state.clone();
                    if self.tests_undefined(self.code[i]) {
                        let equal = op == Comparison::Equal;
                        set_bit(&mut jump_state, self.cells[&a], equal);
                        set_bit(&mut state, self.cells[&a], !equal);
                    }
                    jump(self, to, &jump_state);
                }
                Op::Return { verdict } => {
                    if verdict {
                        join(&mut self.exit_state, &state);
                    }
                    continue;
                }
                Op::Fail { .. } | Op::EndCall => continue,
                _ => self.transfer(op, &mut state),
            }
            current = Some(state);
        }
        needs_another_pass
    }

    /// Changes the state as an instruction that neither jumps nor ends the code changes it.
    fn transfer(&self, op: Op, state: &mut [u64]) {
        match op {
            Op::Copy { dst, a } | Op::Set { dst, a } => {
                let value = get_bit(state, self.cells[&a]);
                set_bit(state, self.cells[&dst], value);
            }
            Op::Defined { a } | Op::Check { a, .. } => set_bit(state, self.cells[&a], false),
            Op::Arithmetic { dst, .. }
            | Op::Compare { dst, .. }
            | Op::Index { dst, .. }
            | Op::Table { dst, .. } => set_bit(state, self.cells[&dst], false),
            Op::Load { dst, base, len, .. } => {
                let mut cells = region(self.program, base, len);
                let may_be_undefined = cells.any(|cell| get_bit(state, self.cells[&cell]));
                set_bit(state, self.cells[&dst], may_be_undefined);
            }
            Op::Store { a, base, len, .. } => {
                // The store reaches one cell of the region; the others keep their values.
                if get_bit(state, self.cells[&a]) {
                    for cell in region(self.program, base, len) {
                        set_bit(state, self.cells[&cell], true);
                    }
                }
            }
            Op::Cover { .. }
            | Op::Disagree { .. }
            | Op::Call { .. }
            | Op::Note { .. }
            | Op::Jump { .. }
            | Op::JumpIf { .. }
            | Op::Return { .. }
            | Op::Fail { .. }
            | Op::EndCall => {}
        }
    }

    /// True if an instruction tests whether a cell is undefined.
    fn tests_undefined(&self, op: Op) -> bool {
        match op {
            Op::JumpIf {
                op: Comparison::Equal | Comparison::NotEqual,
                b,
                ..
            } => {
                b as usize >= self.program.slots.len()
                    && self.program.frame[b as usize] == UNDEFINED
            }
            _ => false,
        }
    }

    /// Slots that may be undefined at the end of the piece.
    fn undefined_at_exit(&self) -> impl Iterator<Item = usize> + '_ {
        let count = self.program.slots.len();
        let mut slots: Vec<usize> = (self.cells.iter())
            .filter(|&(&cell, &number)| {
                (cell as usize) < count && get_bit(&self.exit_state, number)
            })
            .map(|(&cell, _)| cell as usize)
            .collect();
        slots.sort_unstable();
        slots.into_iter()
    }

    /// Adds possible simplifications: replacements of instructions, or `None` to remove one.
    fn collect_simplifications(&mut self, changes: &mut Vec<(u32, Option<Op>)>) {
        self.analyse_once(|flow, address, op, state| {
            let defined = |cell: Cell| !get_bit(state, flow.cells[&cell]);
            match op {
                Op::Defined { a } if defined(a) => changes.push((address, None)),
                Op::JumpIf {
                    op: comparison,
                    a,
                    to,
                    ..
                } if flow.tests_undefined(op) && defined(a) => {
                    let jumps = comparison == Comparison::NotEqual;
                    changes.push((address, jumps.then_some(Op::Jump { to })));
                }
                _ => {}
            }
        });
    }
}

/// Cells that an indexed access can reach.
fn region(program: &Program, base: Cell, len: u16) -> std::ops::Range<Cell> {
    let count = program.slots.len() as Cell;
    match len {
        // A length that exceeds the field lies in the state, or in locals behind it.
        u16::MAX if base < count => 0..count,
        u16::MAX => base..program.frame.len() as Cell,
        len => base..base + len as Cell,
    }
}

/// Removes instructions, and adjusts all positions in the code.
fn remove_instructions(program: &mut Program, removed: &[bool]) {
    let mut new_positions = Vec::with_capacity(removed.len() + 1);
    let mut next = 0;
    for &removed in removed {
        new_positions.push(next);
        next += !removed as u32;
    }
    new_positions.push(next);
    let relocate = |address: &mut u32| *address = new_positions[*address as usize];
    let mut removed_flags = removed.iter();
    program
        .code
        .retain(|_| removed_flags.next() == Some(&false));
    for op in &mut program.code {
        if let Op::Jump { to } | Op::JumpIf { to, .. } | Op::Call { to } = op {
            relocate(to);
        }
    }
    program.pieces.iter_mut().for_each(relocate);
    for instance in program.starts.iter_mut().chain(&mut program.rules) {
        relocate(&mut instance.body);
        instance.guard.iter_mut().for_each(relocate);
        if let Some(parameter_loop) = &mut instance.parameter_loop {
            relocate(&mut parameter_loop.next);
        }
    }
    program
        .properties
        .invariants
        .iter_mut()
        .for_each(|c| relocate(&mut c.entry));
    program
        .properties
        .quiescent
        .iter_mut()
        .flatten()
        .for_each(relocate);
    program
        .properties
        .covers
        .iter_mut()
        .flatten()
        .for_each(relocate);
    program
        .properties
        .liveness
        .iter_mut()
        .flat_map(|l| &mut l.1)
        .for_each(relocate);
    program.properties.assumptions.iter_mut().for_each(relocate);
    let sites = std::mem::take(&mut program.sites);
    program.sites = (sites.into_iter())
        .filter(|(address, _)| !removed[*address as usize])
        .map(|(address, site)| (new_positions[address as usize], site))
        .collect();
}
