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
use crate::program::{Cell, Field, Op, Packing, Program};
use crate::view::View;
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;

/// Maximum number of bits that index a table. A table then has at most 256 words, or 2 KiB.
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
    pub fn for_view(program: &Program, view: &View, frame: &[Number]) -> Option<Guards> {
        let entries = guard_entries(program, view)?;
        let data = Data::new(program, &view.packing, frame);
        let frame = &frame[..program.slots.len()];
        let context = TranslationContext::new(program, &view.packing, frame, &data);
        Some(Guards::with_context(&context, &entries).0)
    }

    /// Creates tables for the guards with these entries. Also returns, for each guard, true if code
    /// must decide a part of it. A guard without an entry needs code as a whole.
    pub(super) fn with_context(
        context: &TranslationContext,
        entries: &[Option<u32>],
    ) -> (Guards, Vec<bool>) {
        let windows = windows(context.packing);
        // Program of the conjuncts alone, with the data that they use.
        let mut conjunct_program = Program {
            frame: context.program.frame.clone(),
            bounds: context.program.bounds.clone(),
            shapes: context.program.shapes.clone(),
            tables: context.program.tables.clone(),
            ..Program::default()
        };
        let splits: Vec<GuardSplit> = (entries.iter())
            .map(|&entry| split_guard(context, &windows, &mut conjunct_program, entry))
            .collect();
        let mut needs_code: Vec<bool> = splits.iter().map(|split| split.needs_code).collect();
        let mut machine = Machine::new(&conjunct_program);
        machine.frame[..context.frame.len()].copy_from_slice(context.frame);
        let mut guards = Guards {
            groups: Vec::new(),
            tables: Vec::new(),
        };
        for (splits, needs_code) in splits.chunks(64).zip(needs_code.chunks_mut(64)) {
            guards.add_group(context, &windows, &mut machine, splits, needs_code);
        }
        (guards, needs_code)
    }

    /// Adds the tables of at most 64 rules. Sets the rule's element of `needs_code` if a conjunct faults.
    fn add_group(
        &mut self,
        context: &TranslationContext,
        windows: &[Window],
        machine: &mut Machine,
        splits: &[GuardSplit],
        needs_code: &mut [bool],
    ) {
        let all_rules = u64::MAX >> (64 - splits.len());
        // Start of the table of each window, by the window's index.
        let mut table_starts: BTreeMap<usize, u32> = BTreeMap::new();
        for (rule, split) in splits.iter().enumerate() {
            for conjunct in &split.tabulated {
                let window = windows[conjunct.window];
                let size = 1 << window.bits;
                let start = *table_starts.entry(conjunct.window).or_insert_with(|| {
                    let start = self.tables.len();
                    self.tables.resize(start + size, all_rules);
                    start as u32
                });
                let table = &mut self.tables[start as usize..][..size];
                if fill_table(context, machine, conjunct, window, table, 1 << rule) {
                    needs_code[rule] = true;
                    break;
                }
            }
        }
        let lookups = table_starts.iter().map(|(&window, &table)| Lookup {
            word: windows[window].word,
            shift: windows[window].shift,
            mask: (1 << windows[window].bits) - 1,
            table,
        });
        let needs_code = needs_code.iter().enumerate();
        self.groups.push(Group {
            lookups: lookups.collect(),
            rules: all_rules,
            needs_code: needs_code.fold(0, |mask, (rule, &needs)| mask | (needs as u64) << rule),
        });
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
    // The last two instructions return the verdicts.
    let end = piece.len().checked_sub(2)?;
    let failing_return = end + 1;
    let returns = [end, failing_return].map(|i| match piece[i] {
        Op::Return { verdict } => Some(verdict),
        _ => None,
    });
    if returns != [Some(true), Some(false)] || !context.is_compilable(piece) {
        return None;
    }
    let target = |op: &Op| target(op).map(|to| (to - entry) as usize);
    // A cut is valid if only jumps to the failing return cross it.
    let mut is_cut = vec![true; end + 1];
    for (i, op) in piece[..end].iter().enumerate() {
        if let Some(to) = target(op).filter(|&to| to != failing_return) {
            let crossed = if to > i { i + 1..to } else { to + 1..i + 1 };
            is_cut[crossed].fill(false);
        }
    }
    let mut ranges = Ranges::of(context, entry);
    // Jumps lead into conjuncts, so only ranges that hold everywhere can be used.
    ranges.forget();
    let mut result = Vec::new();
    let mut from = 0;
    for to in 1..=end {
        if to < end && (!is_cut[to] || target(&piece[to - 1]).is_none()) {
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

/// A conjunct that a table decides.
struct TabulatedConjunct {
    /// Entry of its code in the program of the conjuncts.
    entry: u32,
    /// Index of the window that contains all fields that it reads.
    window: usize,
    /// Fields that it reads.
    fields: Vec<Field>,
}

/// Division of a guard between tables and code.
struct GuardSplit {
    /// Conjuncts that tables decide.
    tabulated: Vec<TabulatedConjunct>,
    /// True if code must decide the guard, or a part of it.
    needs_code: bool,
}

/// Splits a guard, and copies the conjuncts that tables decide to `conjunct_program`.
fn split_guard(
    context: &TranslationContext,
    windows: &[Window],
    conjunct_program: &mut Program,
    entry: Option<u32>,
) -> GuardSplit {
    let mut split = GuardSplit {
        tabulated: Vec::new(),
        needs_code: true,
    };
    let Some(entry) = entry else {
        return split;
    };
    let Some(conjuncts) = conjuncts(context, entry) else {
        return split;
    };
    split.needs_code = false;
    let piece = context.program.piece(entry);
    for conjunct in conjuncts {
        match common_window(context, windows, &conjunct) {
            Some(window) => split.tabulated.push(TabulatedConjunct {
                entry: copy_conjunct(conjunct_program, piece, entry, &conjunct),
                window,
                fields: (conjunct.slots.iter())
                    .map(|&slot| context.packing.field(slot))
                    .collect(),
            }),
            None => {
                split.needs_code = true;
                // A conjunct after a possible fault must not exclude the rule first.
                if conjunct.may_fault {
                    break;
                }
            }
        }
    }
    split
}

/// Index of the window that contains all fields that a conjunct reads; `None` without such a window, or if it reads
/// none.
fn common_window(
    context: &TranslationContext,
    windows: &[Window],
    conjunct: &Conjunct,
) -> Option<usize> {
    let window_of = |slot: Cell| {
        let field = context.packing.field(slot);
        windows.iter().position(|w| {
            w.word == field.word && w.shift <= field.shift && field.shift < w.shift + w.bits
        })
    };
    let mut conjunct_windows = conjunct.slots.iter().map(|&slot| window_of(slot));
    let first = conjunct_windows.next().flatten();
    first.filter(|_| conjunct_windows.all(|other| other == first))
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
    conjunct: &TabulatedConjunct,
    window: Window,
    table: &mut [u64],
    rule_bit: u64,
) -> bool {
    let fields = &conjunct.fields;
    let read_mask = fields.iter().fold(0, |read_mask, field| {
        read_mask | field.mask << (field.shift - window.shift)
    });
    // Per value of the bits that are read: true if it excludes the rule; `None` if not computed yet.
    let mut excluded = [None; 1 << MAX_WINDOW_BITS];
    let mut has_faulted = false;
    for (bits, rules) in (0..).zip(table) {
        if *rules & rule_bit == 0 {
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
            match possible.then(|| machine.run(conjunct.entry)) {
                None | Some(Ok(false)) => true,
                Some(Ok(true)) => false,
                Some(Err(_)) => {
                    has_faulted = true;
                    false
                }
            }
        });
        if excludes {
            *rules &= !rule_bit;
        }
    }
    has_faulted
}
