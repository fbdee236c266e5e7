//! Analysis of undefined values: slots that can be undefined in a stored state, and checks that can never fail.
//!
//! Start states are run to see what they leave undefined. For rules, a data-flow analysis finds which cells may be
//! undefined at each instruction. Checks of cells that are always defined are then removed, and slots that are always
//! defined need no encoding of the undefined value.

use crate::interpret::Machine;
use crate::program::*;
use rustc_hash::{FxHashMap, FxHashSet};

/// Finds slots and cells that are never undefined, and simplifies the code.
pub(super) fn prove(program: &mut Program) {
    let may_lack = program.slots.iter().any(|slot| slot.undefined);
    // The effects of a call are not visible in a single piece of code.
    if !may_lack || !program.saved.is_empty() {
        return;
    }
    let mut slots = undefined_start_slots(program);
    let elements = elements(program);
    // A piece is analysed again only if more may be undefined at its entry.
    let mut flows: FxHashMap<u32, Flow> = FxHashMap::default();
    loop {
        mix_bags(program, &mut slots);
        mix_elements(&elements, &mut slots);
        let mut more = false;
        for rule in program.rules.iter().filter(|rule| rule.guard.is_some()) {
            let begun = flows.entry(rule.body);
            let flow = begun.or_insert_with(|| Flow::new(program, rule.body));
            flow.follow(&slots);
            for slot in flow.undefined_at_exit() {
                more |= !std::mem::replace(&mut slots[slot], true);
            }
        }
        if !more {
            break;
        }
    }
    let beginning: Vec<bool> = program.slots.iter().map(|slot| slot.undefined).collect();
    let starts: FxHashSet<u32> = program.starts.iter().map(|start| start.body).collect();
    let mut changes = Vec::new();
    for &entry in &program.pieces {
        let slots = match starts.contains(&entry) {
            true => &beginning,
            false => &slots,
        };
        let begun = flows.entry(entry);
        let flow = begun.or_insert_with(|| Flow::new(program, entry));
        flow.follow(slots);
        flow.collect_simplifications(&mut changes);
    }
    drop(flows);
    for (slot, &undefined) in program.slots.iter_mut().zip(&slots) {
        slot.undefined = undefined;
    }
    let mut out = vec![false; program.code.len()];
    for (at, op) in changes {
        match op {
            Some(op) => program.code[at as usize] = op,
            None => out[at as usize] = true,
        }
    }
    remove_instructions(program, &out);
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

/// An element of a multiset may move to any of its slots.
fn mix_bags(program: &Program, undefined: &mut [bool]) {
    for bag in &program.bags {
        for part in 0..bag.stride {
            let slots = (0..bag.capacity).map(|i| (bag.first + i * bag.stride + part) as usize);
            if slots.clone().any(|slot| undefined[slot]) {
                slots.for_each(|slot| undefined[slot] = true);
            }
        }
    }
}

/// Groups of slots whose names differ only in indices.
fn elements(program: &Program) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut known: FxHashMap<String, usize> = FxHashMap::default();
    for (slot, Slot { name, .. }) in program.slots.iter().enumerate() {
        // Slots such as `a[client_1].b[2]` belong to the group `a[].b[]`.
        let path: Vec<&str> = name
            .split('[')
            .map(|part| part.split_once(']').map_or(part, |(_, rest)| rest))
            .collect();
        let group = *known.entry(path.join("[]")).or_insert(groups.len());
        if group == groups.len() {
            groups.push(Vec::new());
        }
        groups[group].push(slot);
    }
    groups
}

/// Permutations of scalarset values exchange packed elements of an array, so all elements must have the same encoding.
fn mix_elements(groups: &[Vec<usize>], undefined: &mut [bool]) {
    for group in groups {
        if group.iter().any(|&slot| undefined[slot]) {
            group.iter().for_each(|&slot| undefined[slot] = true);
        }
    }
}

/// Cells that may be undefined at the jump targets of a piece of code.
struct Flow<'a> {
    program: &'a Program,
    entry: u32,
    code: &'a [Op],
    /// Index of each cell that the piece accesses.
    cells: FxHashMap<Cell, usize>,
    /// State at each jump target; one bit per cell.
    states: FxHashMap<u32, Vec<u64>>,
    /// State at the entry; `None` before the first analysis.
    first: Option<Vec<u64>>,
    /// State at the end.
    last: Vec<u64>,
}

fn get(bits: &[u64], i: usize) -> bool {
    bits[i / 64] >> (i % 64) & 1 != 0
}

fn set(bits: &mut [u64], i: usize, value: bool) {
    bits[i / 64] = bits[i / 64] & !(1 << (i % 64)) | (value as u64) << (i % 64);
}

/// Joins two states; returns true if the first one has grown.
fn join(into: &mut [u64], from: &[u64]) -> bool {
    let mut more = false;
    for (into, from) in into.iter_mut().zip(from) {
        more |= from & !*into != 0;
        *into |= from;
    }
    more
}

impl<'a> Flow<'a> {
    fn new(program: &'a Program, entry: u32) -> Flow<'a> {
        let code = program.piece(entry);
        let mut cells = FxHashMap::default();
        let mut touch = |cell: Cell| {
            let next = cells.len();
            cells.entry(cell).or_insert(next);
        };
        for &op in code {
            if let Op::Load { base, len, .. } | Op::Store { base, len, .. } = op {
                region(program, base, len).for_each(&mut touch);
            }
            let mut op = op;
            op.operands(|cell| touch(*cell));
        }
        Flow {
            program,
            entry,
            code,
            states: FxHashMap::default(),
            first: None,
            last: vec![0; cells.len().div_ceil(64)],
            cells,
        }
    }

    /// Analyses the piece, if these slots may be undefined at its entry.
    fn follow(&mut self, slots: &[bool]) {
        let mut first = vec![0; self.last.len()];
        for (&cell, &number) in &self.cells {
            let undefined = match slots.get(cell as usize) {
                Some(&slot) => slot,
                None => self.program.frame[cell as usize] == UNDEFINED,
            };
            set(&mut first, number, undefined);
        }
        if self.first.as_ref() == Some(&first) {
            return;
        }
        self.first = Some(first);
        self.states.clear();
        self.last.fill(0);
        // Only backward jumps require another round.
        while self.round(|_, _, _, _| {}) {}
    }

    /// Analyses the code once. Returns true if a backward jump has changed the state at its target.
    /// `see` receives each reachable instruction, with the state before it.
    fn round(&mut self, mut see: impl FnMut(&Self, u32, Op, &[u64])) -> bool {
        let mut again = false;
        let mut now = self.first.clone();
        for (i, &op) in self.code.iter().enumerate() {
            let at = self.entry + i as u32;
            if let Some(joined) = self.states.get_mut(&at) {
                if let Some(now) = &now {
                    join(joined, now);
                }
                now = Some(joined.clone());
            }
            let Some(mut state) = now.take() else {
                continue;
            };
            see(self, at, op, &state);
            let mut jump = |flow: &mut Self, to: u32, state: &[u64]| {
                let known = flow.states.get_mut(&to);
                let more = match known {
                    Some(known) => join(known, state),
                    None => {
                        flow.states.insert(to, state.to_vec());
                        true
                    }
                };
                again |= more && to <= at;
            };
            match op {
                Op::Jump { to } => {
                    jump(self, to, &state);
                    continue;
                }
                Op::JumpIf { op, a, to, .. } => {
                    let mut there = state.clone();
                    if self.tests_undefined(self.code[i]) {
                        let equal = op == Comparison::Equal;
                        set(&mut there, self.cells[&a], equal);
                        set(&mut state, self.cells[&a], !equal);
                    }
                    jump(self, to, &there);
                }
                Op::Return { verdict } => {
                    if verdict {
                        join(&mut self.last, &state);
                    }
                    continue;
                }
                Op::Fail { .. } | Op::Back => continue,
                Op::Copy { dst, a } | Op::Set { dst, a } => {
                    let value = get(&state, self.cells[&a]);
                    set(&mut state, self.cells[&dst], value);
                }
                Op::Defined { a } | Op::Check { a, .. } => set(&mut state, self.cells[&a], false),
                Op::Arithmetic { dst, .. }
                | Op::Compare { dst, .. }
                | Op::Index { dst, .. }
                | Op::Table { dst, .. } => set(&mut state, self.cells[&dst], false),
                Op::Load { dst, base, len, .. } => {
                    let mut cells = region(self.program, base, len);
                    let any = cells.any(|cell| get(&state, self.cells[&cell]));
                    set(&mut state, self.cells[&dst], any);
                }
                Op::Store { a, base, len, .. } => {
                    if get(&state, self.cells[&a]) {
                        for cell in region(self.program, base, len) {
                            set(&mut state, self.cells[&cell], true);
                        }
                    }
                }
                Op::Cover { .. } | Op::Disagree { .. } | Op::Call { .. } | Op::Note { .. } => {}
            }
            now = Some(state);
        }
        again
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
            .filter(|&(&cell, &number)| (cell as usize) < count && get(&self.last, number))
            .map(|(&cell, _)| cell as usize)
            .collect();
        slots.sort_unstable();
        slots.into_iter()
    }

    /// Adds possible simplifications: replacements of instructions, or `None` to remove one.
    fn collect_simplifications(&mut self, changes: &mut Vec<(u32, Option<Op>)>) {
        self.round(|flow, at, op, state| {
            let defined = |cell: Cell| !get(state, flow.cells[&cell]);
            match op {
                Op::Defined { a } if defined(a) => changes.push((at, None)),
                Op::JumpIf {
                    op: comparison,
                    a,
                    to,
                    ..
                } if flow.tests_undefined(op) && defined(a) => {
                    let jumps = comparison == Comparison::NotEqual;
                    changes.push((at, jumps.then_some(Op::Jump { to })));
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
fn remove_instructions(program: &mut Program, out: &[bool]) {
    let mut moved = Vec::with_capacity(out.len() + 1);
    let mut next = 0;
    for &out in out {
        moved.push(next);
        next += !out as u32;
    }
    moved.push(next);
    let there = |at: &mut u32| *at = moved[*at as usize];
    let mut keep = out.iter();
    program.code.retain(|_| keep.next() == Some(&false));
    for op in &mut program.code {
        if let Op::Jump { to } | Op::JumpIf { to, .. } | Op::Call { to } = op {
            there(to);
        }
    }
    program.pieces.iter_mut().for_each(there);
    for instance in program.starts.iter_mut().chain(&mut program.rules) {
        there(&mut instance.body);
        instance.guard.iter_mut().for_each(there);
        if let Some(every) = &mut instance.every {
            there(&mut every.next);
        }
    }
    program
        .invariants
        .iter_mut()
        .for_each(|c| there(&mut c.entry));
    program.quiescent.iter_mut().flatten().for_each(there);
    program.covers.iter_mut().flatten().for_each(there);
    program
        .liveness
        .iter_mut()
        .flat_map(|l| &mut l.1)
        .for_each(there);
    program.assumptions.iter_mut().for_each(there);
    let sites = std::mem::take(&mut program.sites);
    program.sites = (sites.into_iter())
        .filter(|(at, _)| !out[*at as usize])
        .map(|(at, site)| (moved[at as usize], site))
        .collect();
}
