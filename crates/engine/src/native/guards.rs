//! Guards by table: most guards depend on a few small fields of the state.
//!
//! A guard is split into conjuncts. If the slots of a conjunct lie together in a few bits of the packed state, it is
//! evaluated in advance for all values of these bits. The table has one bit per rule, so it serves 64 rules at once.
//! The enabled rules of a state are then the conjunction of a few words. The rest of a guard, if any, is code that runs
//! only if the tables do not exclude the rule.

use super::context::{Data, TranslationContext};
use super::ranges::{target, Ranges};
use crate::interpret::Machine;
use crate::model::Number;
use crate::program::*;
use crate::view::View;
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;

/// Maximum number of bits that index a table.
const MAX_WINDOW_BITS: u32 = 8;

/// Adjacent bits of a packed state.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Window {
    /// Index of the word.
    word: u32,
    /// Position of the lowest bit in the word.
    shift: u32,
    /// Number of bits; 0 for a window that no table serves.
    bits: u32,
}

/// Lookup in a table.
#[derive(Clone, Copy)]
struct Lookup {
    /// Index of the word.
    word: u32,
    /// Position of the lowest bit in the word.
    shift: u32,
    /// Mask of the shifted index.
    mask: u32,
    /// Start of the table in [`Guards::tables`].
    table: u32,
}

/// Guards of the rules `64 * i` to `64 * i + 63` of a view.
struct Group {
    /// Tables whose results are combined by conjunction.
    lookups: Vec<Lookup>,
    /// All rules of the group; fewer than 64 in the last group.
    rules: u64,
    /// Rules whose guards need code in addition to the tables.
    needs_code: u64,
}

/// Guards of all rules of a view, numbered in its order.
pub(crate) struct Guards {
    /// Groups in the order of their rules.
    groups: Vec<Group>,
    /// Concatenated tables: per value of a window, the rules of a group that it does not exclude.
    tables: Vec<u64>,
}

impl Guards {
    /// Creates tables for the guards of a view's rules. `frame` holds the values of slots that are not packed.
    pub fn of(program: &Program, view: &View, frame: &[Number]) -> Option<Guards> {
        let entries = guard_entries(program, view)?;
        let data = Data::new(program, &view.packing, frame);
        let frame = &frame[..program.slots.len()];
        let context = TranslationContext::new(program, &view.packing, frame, &data);
        Some(Guards::new(&context, &entries).0)
    }

    /// Creates tables for the guards with these entries. Also returns, for each guard, true if code
    /// must decide a part of it. A guard without an entry needs code as a whole.
    pub(super) fn new(
        context: &TranslationContext,
        entries: &[Option<u32>],
    ) -> (Guards, Vec<bool>) {
        let windows = windows(context.packing);
        let window_of = |slot: Cell| {
            let field = context.packing.field(slot);
            windows.iter().position(|w| {
                w.word == field.word && w.shift <= field.shift && field.shift < w.shift + w.bits
            })
        };
        // Program of the conjuncts alone, with the data that they use.
        let mut conjunct_program = Program {
            frame: context.program.frame.clone(),
            bounds: context.program.bounds.clone(),
            shapes: context.program.shapes.clone(),
            tables: context.program.tables.clone(),
            ..Program::default()
        };
        let mut remaining_guards = vec![false; entries.len()];
        // Per rule: entry of each conjunct, its window, and the fields that it reads.
        let mut tabulated: Vec<Vec<(u32, usize, Vec<Field>)>> = Vec::new();
        for (needs_code, &entry) in remaining_guards.iter_mut().zip(entries) {
            let Some(entry) = entry else {
                *needs_code = true;
                tabulated.push(Vec::new());
                continue;
            };
            let piece = context.program.piece(entry);
            let mut tabulated_conjuncts = Vec::new();
            let conjuncts = conjuncts(context, entry);
            *needs_code = conjuncts.is_none();
            for conjunct in conjuncts.into_iter().flatten() {
                let mut conjunct_windows = conjunct.slots.iter().map(|&slot| window_of(slot));
                let first = conjunct_windows.next().flatten();
                match first.filter(|_| conjunct_windows.all(|other| other == first)) {
                    Some(window) => {
                        let fields = (conjunct.slots.iter())
                            .map(|&slot| context.packing.field(slot))
                            .collect();
                        tabulated_conjuncts.push((
                            copy_conjunct(&mut conjunct_program, piece, entry, &conjunct),
                            window,
                            fields,
                        ));
                    }
                    None => {
                        *needs_code = true;
                        // A conjunct after a possible fault must not exclude the rule first.
                        if conjunct.may_fault {
                            break;
                        }
                    }
                }
            }
            tabulated.push(tabulated_conjuncts);
        }
        let mut machine = Machine::new(&conjunct_program);
        machine.frame[..context.frame.len()].copy_from_slice(context.frame);
        let mut guards = Guards {
            groups: Vec::new(),
            tables: Vec::new(),
        };
        for (group, tabulated) in tabulated.chunks(64).enumerate() {
            let all_rules = u64::MAX >> (64 - tabulated.len());
            let mut lookups: BTreeMap<usize, u32> = BTreeMap::new();
            for (rule, conjuncts) in tabulated.iter().enumerate() {
                for &(entry, window, ref fields) in conjuncts {
                    let bits = windows[window].bits;
                    let table = *lookups.entry(window).or_insert_with(|| {
                        let table = guards.tables.len() as u32;
                        guards
                            .tables
                            .resize(guards.tables.len() + (1 << bits), all_rules);
                        table
                    });
                    let table_words = &mut guards.tables[table as usize..][..1 << bits];
                    let faulted = fill_table(
                        context,
                        &mut machine,
                        entry,
                        (windows[window], fields),
                        table_words,
                        1 << rule,
                    );
                    if faulted {
                        remaining_guards[group * 64 + rule] = true;
                        break;
                    }
                }
            }
            let lookups = lookups.iter().map(|(&window, &table)| Lookup {
                word: windows[window].word,
                shift: windows[window].shift,
                mask: (1 << windows[window].bits) - 1,
                table,
            });
            guards.groups.push(Group {
                lookups: lookups.collect(),
                rules: all_rules,
                needs_code: 0,
            });
        }
        for (rule, &needs_code) in remaining_guards.iter().enumerate() {
            guards.groups[rule / 64].needs_code |= (needs_code as u64) << (rule % 64);
        }
        (guards, remaining_guards)
    }

    /// Number of groups of 64 rules.
    #[inline(always)]
    pub fn groups(&self) -> usize {
        self.groups.len()
    }

    /// Rules of a group that the tables do not exclude, and those among them whose guards need code.
    #[inline(always)]
    pub fn enabled_rules(&self, group: usize, state: &[u64]) -> (u64, u64) {
        let group = &self.groups[group];
        let mut enabled = group.rules;
        for lookup in &group.lookups {
            let bits = (state[lookup.word as usize] >> lookup.shift) as u32 & lookup.mask;
            enabled &= self.tables[(lookup.table + bits) as usize];
        }
        (enabled, enabled & group.needs_code)
    }
}

/// Entries of the guards of a view's rules; the inner `None` marks a rule for many values of its parameters.
/// The whole is `None` if a rule has no guard.
pub(super) fn guard_entries(program: &Program, view: &View) -> Option<Vec<Option<u32>>> {
    let rules = view.rules.iter().map(|&rule| &program.rules[rule as usize]);
    rules
        .map(|rule| match (&rule.parameter_loop, rule.guard) {
            (_, None) => None,
            (Some(_), _) => Some(None),
            (None, guard) => Some(guard),
        })
        .collect()
}

/// Splits a packed state into windows; no window splits a field.
fn windows(packing: &Packing) -> Vec<Window> {
    let mut windows: Vec<Window> = Vec::new();
    for field in packing.fields() {
        let end = field.shift + u64::BITS - field.mask.leading_zeros();
        match windows.last_mut() {
            Some(w) if w.word == field.word && end - w.shift <= MAX_WINDOW_BITS => {
                w.bits = end - w.shift
            }
            _ => windows.push(Window {
                word: field.word,
                shift: field.shift,
                bits: end - field.shift,
            }),
        }
    }
    // A larger field has a window of its own, which no table serves.
    windows.iter_mut().for_each(|w| {
        if w.bits > MAX_WINDOW_BITS {
            w.bits = 0;
        }
    });
    windows
}

/// A part of a guard that excludes the rule if it is false.
struct Conjunct {
    /// First instruction, as a position in the piece.
    from: usize,
    /// End of its instructions.
    to: usize,
    /// Packed slots that it reads.
    slots: FxHashSet<Cell>,
    /// True if its evaluation may fault.
    may_fault: bool,
}

/// Splits a guard into conjuncts; `None` if it lacks the form that the compiler gives to claims.
fn conjuncts(context: &TranslationContext, entry: u32) -> Option<Vec<Conjunct>> {
    let piece = context.program.piece(entry);
    let n = piece.len().checked_sub(2)?;
    let returns = [n, n + 1].map(|i| match piece[i] {
        Op::Return { verdict } => Some(verdict),
        _ => None,
    });
    if returns != [Some(true), Some(false)] || !context.is_compilable(piece) {
        return None;
    }
    let target = |op: &Op| target(op).map(|to| (to - entry) as usize);
    // A cut is valid if only jumps to the failing return cross it.
    let mut is_cut = vec![true; n + 1];
    for (i, op) in piece[..n].iter().enumerate() {
        if let Some(to) = target(op).filter(|&to| to != n + 1) {
            let crossed = if to > i { i + 1..to } else { to + 1..i + 1 };
            is_cut[crossed].fill(false);
        }
    }
    let mut ranges = Ranges::of(context, entry);
    // Jumps lead into conjuncts, so only ranges that hold everywhere can be used.
    ranges.forget();
    let mut result = Vec::new();
    let mut from = 0;
    for to in 1..=n {
        if to < n && (!is_cut[to] || target(&piece[to - 1]).is_none()) {
            continue;
        }
        result.push(conjunct(context, &ranges, piece, from, to)?);
        from = to;
    }
    Some(result)
}

/// The conjunct between two cuts; `None` if it uses a cell that an earlier one computed, or changes the state.
fn conjunct(
    context: &TranslationContext,
    ranges: &Ranges,
    piece: &[Op],
    from: usize,
    to: usize,
) -> Option<Conjunct> {
    let slots = context.program.slots.len();
    let mut conjunct = Conjunct {
        from,
        to,
        slots: FxHashSet::default(),
        may_fault: false,
    };
    let packed = |cell: Cell| context.packing.field(cell).mask != 0;
    let mut written = FxHashSet::default();
    for op in &piece[from..to] {
        let (reads, dst) = match *op {
            Op::Arithmetic { dst, a, b, .. } => ([Some(a), Some(b)], Some(dst)),
            Op::Compare { dst, a, b, .. } => ([Some(a), Some(b)], Some(dst)),
            Op::JumpIf { a, b, .. } => ([Some(a), Some(b)], None),
            Op::Copy { dst, a } | Op::Index { dst, a, .. } | Op::Table { dst, a, .. } => {
                ([Some(a), None], Some(dst))
            }
            Op::Check { a, .. } | Op::Defined { a } => ([Some(a), None], None),
            Op::Load {
                dst,
                offset,
                base,
                len,
            } => {
                let end = (base as usize).saturating_add(len as usize).min(slots);
                if base as usize >= slots || len == u16::MAX {
                    return None;
                }
                let region = (base..end as Cell).filter(|&slot| packed(slot));
                conjunct.slots.extend(region);
                ([Some(offset), None], Some(dst))
            }
            Op::Jump { .. } | Op::Return { .. } => ([None, None], None),
            _ => return None,
        };
        conjunct.may_fault |= ranges.may_fault(op);
        for cell in reads.into_iter().flatten() {
            if (cell as usize) < slots {
                conjunct.slots.extend(packed(cell).then_some(cell));
            } else if context.fixed_range(cell).is_none() && !written.contains(&cell) {
                return None;
            }
        }
        written.extend(dst);
    }
    Some(conjunct)
}

/// Copies a conjunct to the end of the code, with separate returns. Returns its entry.
fn copy_conjunct(
    conjunct_program: &mut Program,
    piece: &[Op],
    entry: u32,
    conjunct: &Conjunct,
) -> u32 {
    let start = conjunct_program.code.len() as u32;
    let len = (conjunct.to - conjunct.from) as u32;
    for op in &piece[conjunct.from..conjunct.to] {
        let mut op = *op;
        if let Op::Jump { to } | Op::JumpIf { to, .. } = &mut op {
            // Jumps stay within the conjunct, or lead to its end or to the failing return of the guard.
            *to = match (*to - entry) as usize {
                to if to == piece.len() - 1 => start + len + 1,
                to => start + (to - conjunct.from) as u32,
            };
        }
        conjunct_program.code.push(op);
    }
    conjunct_program.code.push(Op::Return { verdict: true });
    conjunct_program.code.push(Op::Return { verdict: false });
    start
}

/// Runs a conjunct for all values of a window that earlier conjuncts do not exclude, and clears the rule's bit for
/// those that it excludes. Returns true if a run faults.
fn fill_table(
    context: &TranslationContext,
    machine: &mut Machine,
    entry: u32,
    (window, fields): (Window, &[Field]),
    table: &mut [u64],
    rule: u64,
) -> bool {
    let read_mask = fields.iter().fold(0, |read_mask, field| {
        read_mask | field.mask << (field.shift - window.shift)
    });
    // Per value of the bits that are read: true if it excludes the rule; `None` if not computed yet.
    let mut excluded = [None; 1 << MAX_WINDOW_BITS];
    let mut has_faulted = false;
    for (bits, rules) in (0..).zip(table) {
        if *rules & rule == 0 {
            continue;
        }
        let bits: u64 = bits & read_mask;
        let excludes = *excluded[bits as usize].get_or_insert_with(|| {
            let mut possible = true;
            for field in fields {
                let raw = (bits >> (field.shift - window.shift)) & field.mask;
                let value = field.decode(raw);
                possible &= value <= context.program.slots[field.slot as usize].hi;
                machine.frame[field.slot as usize] = value;
            }
            match possible.then(|| machine.run(entry)) {
                None | Some(Ok(false)) => true,
                Some(Ok(true)) => false,
                Some(Err(_)) => {
                    has_faulted = true;
                    false
                }
            }
        });
        if excludes {
            *rules &= !rule;
        }
    }
    has_faulted
}
