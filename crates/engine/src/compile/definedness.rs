//! Which slots can be undefined in a stored state, and which checks can never fail.
//!
//! What start states leave undefined is found by running them; what rules make undefined by following, in each
//! body, which cells may be undefined at each instruction. From this follows what the rest may rely on:
//! checks of cells that always have a value are taken out, and slots that always have one need no room for none.

use crate::interpret::Machine;
use crate::program::*;
use rustc_hash::{FxHashMap, FxHashSet};

/// Finds out what is never undefined, and simplifies the code.
pub(super) fn prove(program: &mut Program) {
    let may_lack = program.slots.iter().any(|slot| slot.undefined);
    // Calls change what one piece of code does not show.
    if !may_lack || !program.saved.is_empty() {
        return;
    }
    let mut slots = started(program);
    let elements = elements(program);
    // Each piece is followed again only when something else may be undefined where it begins.
    let mut flows: FxHashMap<u32, Flow> = FxHashMap::default();
    loop {
        mix_bags(program, &mut slots);
        mix_elements(&elements, &mut slots);
        let mut more = false;
        for rule in program.rules.iter().filter(|rule| rule.guard.is_some()) {
            let begun = flows.entry(rule.body);
            let flow = begun.or_insert_with(|| Flow::new(program, rule.body));
            flow.follow(&slots);
            for slot in flow.undefined_at_the_end() {
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
        flow.simpler(&mut changes);
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
    take_out(program, &out);
}

/// More start states than this are not run for this alone.
const MOST_STARTS: u32 = 1 << 16;

/// For each slot, whether a start state leaves it undefined, as far as that is found out.
fn started(program: &Program) -> Vec<bool> {
    if program.start_count() > MOST_STARTS {
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

/// Elements of a multiset may come to lie in any of its slots.
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

/// The slots that differ from each other in indices alone, together.
fn elements(program: &Program) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut known: FxHashMap<String, usize> = FxHashMap::default();
    for (slot, Slot { name, .. }) in program.slots.iter().enumerate() {
        // `a[client_1].b[2]` lies in all of `a[].b[]`.
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

/// Permutations of scalarset values take elements of an array to each other, packed as they are.
/// What is found out of one element alone, because of the order in which they lie, would give it a form of its own.
fn mix_elements(groups: &[Vec<usize>], undefined: &mut [bool]) {
    for group in groups {
        if group.iter().any(|&slot| undefined[slot]) {
            group.iter().for_each(|&slot| undefined[slot] = true);
        }
    }
}

/// What may be undefined at the jump targets of a piece of code.
struct Flow<'a> {
    program: &'a Program,
    entry: u32,
    code: &'a [Op],
    /// Numbers of the cells that the piece touches.
    cells: FxHashMap<Cell, usize>,
    /// By instruction, where jumps lead to; bits by cell.
    states: FxHashMap<u32, Vec<u64>>,
    /// Where the piece begins; nothing as long as it has not been followed.
    first: Option<Vec<u64>>,
    /// Where it ends.
    last: Vec<u64>,
}

fn get(bits: &[u64], i: usize) -> bool {
    bits[i / 64] >> (i % 64) & 1 != 0
}

fn set(bits: &mut [u64], i: usize, value: bool) {
    bits[i / 64] = bits[i / 64] & !(1 << (i % 64)) | (value as u64) << (i % 64);
}

/// Joins what may be undefined; whether that is more than before.
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

    /// Follows what may be undefined if these slots may be where the piece begins.
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
        // Only jumps backward make a second round necessary.
        while self.round(|_, _, _, _| {}) {}
    }

    /// Goes through the code once; whether a jump brings something new to a place that lies behind.
    /// `see` is shown each instruction that is reached, with what may be undefined before it.
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
                    if self.asks(self.code[i]) {
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

    /// Whether an instruction asks if a cell is undefined.
    fn asks(&self, op: Op) -> bool {
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

    /// Slots that may be undefined when the piece has run.
    fn undefined_at_the_end(&self) -> impl Iterator<Item = usize> + '_ {
        let count = self.program.slots.len();
        let mut slots: Vec<usize> = (self.cells.iter())
            .filter(|&(&cell, &number)| (cell as usize) < count && get(&self.last, number))
            .map(|(&cell, _)| cell as usize)
            .collect();
        slots.sort_unstable();
        slots.into_iter()
    }

    /// Adds what can be simpler: instructions that take the place of others, or nothing in their place.
    fn simpler(&mut self, changes: &mut Vec<(u32, Option<Op>)>) {
        self.round(|flow, at, op, state| {
            let defined = |cell: Cell| !get(state, flow.cells[&cell]);
            match op {
                Op::Defined { a } if defined(a) => changes.push((at, None)),
                Op::JumpIf {
                    op: comparison,
                    a,
                    to,
                    ..
                } if flow.asks(op) && defined(a) => {
                    let jumps = comparison == Comparison::NotEqual;
                    changes.push((at, jumps.then_some(Op::Jump { to })));
                }
                _ => {}
            }
        });
    }
}

/// The cells that an indexed access can fall into.
fn region(program: &Program, base: Cell, len: u16) -> std::ops::Range<Cell> {
    let count = program.slots.len() as Cell;
    match len {
        // What is too long to be written down lies in the state, or in locals behind it.
        u16::MAX if base < count => 0..count,
        u16::MAX => base..program.frame.len() as Cell,
        len => base..base + len as Cell,
    }
}

/// Takes instructions out, and moves all that speaks of positions.
fn take_out(program: &mut Program, out: &[bool]) {
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
