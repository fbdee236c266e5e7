//! Independent parts of a model, explored separately.
//!
//! Two slots of the state belong together if one rule instance, one conjunct of an invariant or one conjunct of the
//! quiescent condition touches both. Slots that no rule writes are constants and join nothing.
//! If this leaves several classes, the model is a *product*. From the only start state, each rule instance moves one
//! class and reads no other. The search then explores each class separately. This is exact:
//!
//! - **Reachable states** are exactly the combinations of the classes' reachable states, since any
//!   interleaving of their paths is a path. Hence the number of states is the product, the depth the sum, and
//!   each class's transitions occur once for each combination of the others' states.
//! - **Invariants** hold in all combinations if and only if every conjunct holds in all states of its class.
//!   **Errors** likewise: a rule instance reads its class only. A shortest counterexample leaves the other classes at
//!   their start.
//! - **Deadlock**: a combination has no step to a different state if and only if no class has one.
//!   So the whole deadlocks if and only if every class has a reachable deadlock (and, where quiescent
//!   deadlocks are excepted, one class has a reachable deadlock that is not quiescent).
//! - **Drain**: the quiescent condition is the conjunction of the classes' conditions, and the classes move
//!   independently, so the whole can drain from a combination if and only if every class can.
//!
//! Classes that differ only in the position of their slots have equal graphs and are explored once.
//!
//! Reports and checkpoints call the part of a class a *component*.

use crate::interpret::Machine;
use crate::model::{Deadlock, Number};
use crate::program::{Cell, Op, Packing, Program};
use crate::search::{
    search, CheckpointError, FailedCheck, Options, Path, Reason, SearchResult, Verdict,
};
use crate::view::View;

/// Independent parts of a program; a single one if it does not split.
pub(crate) struct Parts {
    /// One for each class, in the order of their first slots.
    pub views: Vec<View>,
    /// For each class the first class that is equal to it.
    pub representative: Vec<usize>,
}

impl Parts {
    /// Creates the parts of a program that does not split.
    fn single(whole_view: View) -> Parts {
        Parts {
            views: vec![whole_view],
            representative: vec![0],
        }
    }
}

/// Union-find forest of slots; slots that belong together have one root.
struct Forest {
    /// Parent of each slot; a root is its own parent.
    parents: Vec<usize>,
}

impl Forest {
    /// Returns the first slot of the class that contains a slot.
    fn root(&mut self, mut slot: usize) -> usize {
        let parents = &mut self.parents;
        while parents[slot] != slot {
            parents[slot] = parents[parents[slot]];
            slot = parents[slot];
        }
        slot
    }

    /// Joins two classes. The smaller root becomes the root of both, so that a class is named by its first slot.
    fn join(&mut self, first: usize, second: usize) {
        let (a, b) = (self.root(first), self.root(second));
        self.parents[a.max(b)] = a.min(b);
    }
}

/// Elements of one class.
fn elements_of_class<T: Copy>(all: &[T], classes: &[usize], class: usize) -> Vec<T> {
    all.iter()
        .zip(classes)
        .filter(|(_, &c)| c == class)
        .map(|(&t, _)| t)
        .collect()
}

/// Splits a program into independent parts.
pub(crate) fn split(program: &Program, deadlock: Deadlock) -> Parts {
    let whole_view = View::whole(program, deadlock);
    let mut machine = Machine::new(program);
    if program.starts.len() != 1 || !program.is_separable() || machine.start(0) != Ok(true) {
        return Parts::single(whole_view);
    }
    let count = program.slots.len();
    let written = written_slots(program, &whole_view);
    let mut forest = Forest {
        parents: (0..count).collect(),
    };
    // Joins all slots that pieces of code access; returns one of them.
    let join = |forest: &mut Forest, entries: &[u32]| {
        let mut first = None;
        for &entry in entries {
            for_each_access(program, entry, |slot, _| {
                if written[slot] {
                    forest.join(slot, *first.get_or_insert(slot));
                }
            });
        }
        first
    };
    let rule_classes: Vec<_> = (whole_view.rules.iter())
        .map(|&r| &program.rules[r as usize])
        // The code that finds the next parameter values reads the same slots as the guard.
        .map(|rule| join(&mut forest, &[rule.body, rule.guard.unwrap_or(rule.body)]))
        .collect();
    let claim_classes: Vec<_> = whole_view
        .invariants
        .iter()
        .map(|c| join(&mut forest, &[c.entry]))
        .collect();
    let conjuncts = whole_view.quiescent.clone().unwrap_or_default();
    let conjunct_classes: Vec<_> = conjuncts.iter().map(|&c| join(&mut forest, &[c])).collect();

    let roots: Vec<usize> = (0..count)
        .filter(|&slot| written[slot] && forest.root(slot) == slot)
        .collect();
    if roots.len() < 2 {
        return Parts::single(whole_view);
    }
    // Code that touches no variable belongs to the first class.
    let mut class_of = |slot: Option<usize>| slot.map_or(roots[0], |slot| forest.root(slot));
    let rule_classes: Vec<_> = rule_classes.into_iter().map(&mut class_of).collect();
    let claim_classes: Vec<_> = claim_classes.into_iter().map(&mut class_of).collect();
    let conjunct_classes: Vec<_> = conjunct_classes.into_iter().map(&mut class_of).collect();
    let slot_classes: Vec<_> = (0..count)
        .map(|s| written[s].then(|| class_of(Some(s))))
        .collect();

    let view = |class: usize| {
        let slots = (0..count).filter(|&slot| slot_classes[slot] == Some(class));
        let is_quiescence_checked = whole_view.quiescent.is_some();
        View {
            packing: Packing::new(program, slots.map(|slot| slot as Cell)),
            rules: elements_of_class(&whole_view.rules, &rule_classes, class),
            invariants: elements_of_class(&whole_view.invariants, &claim_classes, class),
            quiescent: is_quiescence_checked
                .then(|| elements_of_class(&conjuncts, &conjunct_classes, class)),
            stop_at_deadlock: false,
            deadlock,
            symmetry: None,
        }
    };
    let views: Vec<View> = roots.iter().map(|&r| view(r)).collect();
    let signatures: Vec<Signature> = roots
        .iter()
        .zip(&views)
        .map(|(&r, view)| signature(program, &machine.frame, &slot_classes, r, view))
        .collect();
    let first_equal = |s: &Signature| signatures.iter().position(|other| other == s).unwrap_or(0);
    let representative = signatures.iter().map(first_equal).collect();
    Parts {
        views,
        representative,
    }
}

/// For each slot, true if a rule of the view may write it.
fn written_slots(program: &Program, view: &View) -> Vec<bool> {
    let mut written = vec![false; program.slots.len()];
    for &rule in &view.rules {
        for_each_access(program, program.rules[rule as usize].body, |slot, write| {
            written[slot] |= write
        });
    }
    written
}

/// Slots that an indexed access can reach.
fn region(program: &Program, base: Cell, len: u16) -> std::ops::Range<usize> {
    let count = program.slots.len();
    if base as usize >= count {
        return 0..0;
    }
    match len {
        u16::MAX => 0..count,
        len => base as usize..count.min(base as usize + len as usize),
    }
}

/// Calls `f` with each slot that a piece of code may access, and true if it may write the slot.
fn for_each_access(program: &Program, entry: u32, mut f: impl FnMut(usize, bool)) {
    let count = program.slots.len();
    for &op in program.piece(entry) {
        if let Op::Load { base, len, .. } | Op::Store { base, len, .. } = op {
            let write = matches!(op, Op::Store { .. });
            region(program, base, len).for_each(|slot| f(slot, write));
        }
        let target = match op {
            Op::Set { dst, .. } => Some(dst),
            _ => None,
        };
        let mut op = op;
        op.operands(|cell| {
            if (*cell as usize) < count {
                f(*cell as usize, Some(*cell) == target);
            }
        });
    }
}

/// A class up to the position of its slots: equal signatures mean equal graphs.
#[derive(PartialEq)]
struct Signature {
    /// Slots of the class.
    slots: Vec<SlotSignature>,
    /// Rules of the class.
    rules: Vec<RuleSignature>,
    /// For each conjunct of an invariant: the invariant's index, and the conjunct's code.
    claims: Vec<(u32, Code)>,
    /// Conjuncts of the quiescent condition.
    conjuncts: Vec<Code>,
}

/// A slot in a signature.
#[derive(PartialEq)]
struct SlotSignature {
    /// Least defined value.
    lo: Number,
    /// Greatest value.
    hi: Number,
    /// Value in the start state.
    start: Number,
}

/// A rule instance in a signature.
#[derive(PartialEq)]
struct RuleSignature {
    /// See [`crate::model::Rule::spontaneous`].
    spontaneous: bool,
    /// Code of the guard, or of the body for a rule without one.
    guard: Code,
    /// Code of the body.
    body: Code,
}

/// Instructions without their operands, each with its operands relative to the class.
type Code = Vec<(Op, Vec<Term>)>;

/// An operand in a signature.
#[derive(PartialEq)]
enum Term {
    /// A slot of the class, by its position in the class.
    ClassSlot(usize),
    /// Value of a slot that never changes.
    Constant(Number),
    /// Cell outside the state. Equal constants share a cell, and equal code numbers its temporaries equally.
    OtherCell(Cell),
}

/// Computes the signature of a class, named by its first slot.
fn signature(
    program: &Program,
    start: &[Number],
    slot_classes: &[Option<usize>],
    class: usize,
    view: &View,
) -> Signature {
    let class_slots: Vec<usize> = (0..slot_classes.len())
        .filter(|&s| slot_classes[s] == Some(class))
        .collect();
    let term = |cell: Cell| match slot_classes.get(cell as usize) {
        Some(&Some(_)) => Term::ClassSlot(class_slots.partition_point(|&s| s < cell as usize)),
        Some(None) => Term::Constant(start[cell as usize]),
        None => Term::OtherCell(cell),
    };
    let code = |entry: u32| -> Code {
        let piece = program.piece(entry).iter();
        let shape = piece.map(|&op| {
            let mut op = op;
            // A region within the class moves with it; any other is compared by position.
            let fixed = match op {
                Op::Load { base, len, .. } | Op::Store { base, len, .. } => {
                    let mut region = region(program, base, len);
                    (!region.all(|slot| slot_classes[slot] == Some(class))).then_some(base)
                }
                _ => None,
            };
            let mut operands = Vec::new();
            op.operands(|cell| {
                operands.push(if fixed == Some(*cell) {
                    Term::OtherCell(*cell)
                } else {
                    term(*cell)
                });
                *cell = 0;
            });
            if let Op::Jump { to } | Op::JumpIf { to, .. } = &mut op {
                *to -= entry;
            }
            (op, operands)
        });
        shape.collect()
    };
    let rule = |&r: &u32| {
        let rule = &program.rules[r as usize];
        RuleSignature {
            spontaneous: rule.spontaneous,
            guard: code(rule.guard.unwrap_or(rule.body)),
            body: code(rule.body),
        }
    };
    Signature {
        slots: (class_slots.iter())
            .map(|&slot| SlotSignature {
                lo: program.slots[slot].lo,
                hi: program.slots[slot].hi,
                start: start[slot],
            })
            .collect(),
        rules: view.rules.iter().map(rule).collect(),
        claims: view
            .invariants
            .iter()
            .map(|c| (c.invariant, code(c.entry)))
            .collect(),
        conjuncts: view.quiescent.iter().flatten().map(|&c| code(c)).collect(),
    }
}

/// Result for the whole model, combined from its parts.
pub(crate) struct Product {
    /// Verdict on the whole model; a path leaves the other parts at their start.
    pub verdict: Verdict,
    /// Number of states: the product of the parts' numbers, or their sum if not all parts are complete.
    pub states: u128,
    /// Rules fired in all states of the product, or in the parts if not all are complete.
    pub transitions: u128,
    /// Steps to the deepest state: the sum over the parts, or their maximum if not all parts are complete.
    pub depth: u64,
    /// States of each part.
    pub components: Vec<u64>,
    /// Rules fired in each part.
    pub part_transitions: Vec<u64>,
    /// True if all parts are complete, so that the numbers are those of the product.
    pub complete: bool,
    /// Largest memory of a part's search, in bytes; parts are searched one after the other.
    pub memory: u64,
}

/// Explores all parts and combines the results. Unless all are complete, the numbers are sums over the states visited.
///
/// # Errors
/// As for [`search`].
pub(crate) fn search_parts(
    program: &Program,
    parts: &Parts,
    options: &Options,
) -> Result<Product, CheckpointError> {
    let mut results: Vec<Option<SearchResult>> = Vec::new();
    let mut remaining_options = *options;
    for (i, view) in parts.views.iter().enumerate() {
        if parts.representative[i] < i {
            results.push(None);
            continue;
        }
        let result = search(program, view, i, &remaining_options)?;
        remaining_options.max_states = remaining_options
            .max_states
            .map(|max| max - result.states.min(max));
        results.push(Some(result));
    }
    let result_of = |i: usize| results[parts.representative[i]].as_ref();
    let all_results = || (0..parts.views.len()).filter_map(result_of);
    let explored = || results.iter().flatten();
    let memory = explored().map(|result| result.memory).max().unwrap_or(0);
    let components = all_results().map(|result| result.states).collect();
    let part_transitions = all_results().map(|result| result.transitions).collect();
    let complete = explored().all(|result| visited_all_states(&result.verdict));

    let verdict = verdict_of(program, parts, &results);
    if !complete {
        let states = explored().map(|result| result.states as u128).sum();
        let transitions = explored().map(|result| result.transitions as u128).sum();
        let depth = explored().map(|result| result.depth).max().unwrap_or(0);
        return Ok(Product {
            verdict,
            states,
            transitions,
            depth,
            components,
            part_transitions,
            complete,
            memory,
        });
    }
    // States and transitions of a product: each part's transitions occur in every state of the other.
    let (states, transitions) =
        all_results().fold((1u128, 0u128), |(states, transitions), part| {
            let (part_states, part_transitions) = (part.states as u128, part.transitions as u128);
            let sum = transitions
                .saturating_mul(part_states)
                .saturating_add(states.saturating_mul(part_transitions));
            (states.saturating_mul(part_states), sum)
        });
    Ok(Product {
        verdict,
        states,
        transitions,
        depth: all_results().map(|result| result.depth).sum(),
        components,
        part_transitions,
        complete,
        memory,
    })
}

/// True if a search with this verdict has visited all states.
fn visited_all_states(verdict: &Verdict) -> bool {
    matches!(
        verdict,
        Verdict::Holds
            | Verdict::Undecided(Reason::HashCompaction)
            | Verdict::FailedCheck(
                FailedCheck::DeadEnd(_)
                    | FailedCheck::Livelock(_)
                    | FailedCheck::Uncovered(_)
                    | FailedCheck::OutOfReach(..),
                _
            )
    )
}

/// Verdict of the whole model. `results` holds a result for each part that was explored.
fn verdict_of(program: &Program, parts: &Parts, results: &[Option<SearchResult>]) -> Verdict {
    let is_limit = |verdict: &Verdict| match verdict {
        Verdict::FailedCheck(FailedCheck::Fault(fault), _) => program.is_limit(*fault),
        _ => false,
    };
    let mut verdict = first_verdict(
        results.iter().flatten().map(|result| &result.verdict),
        is_limit,
    );
    let is_undecided = match verdict {
        Verdict::Undecided(reason) => reason != Reason::HashCompaction,
        _ => false,
    };
    if parts.views.len() > 1 && !is_undecided {
        let result_of = |&representative: &usize| results[representative].as_ref();
        let all_results: Vec<&SearchResult> =
            parts.representative.iter().filter_map(result_of).collect();
        let rules_of = |i: usize| parts.views[i].rules.iter();
        let deadlock = global_deadlock(&all_results, |part, path| {
            // A part that was not explored uses its own rules in place of those of its equal.
            let explored_rules = &parts.views[parts.representative[part]].rules;
            let translate = |&rule: &u32| {
                let number = |instance: u32| program.rules[instance as usize].numbers();
                let mut pairs = explored_rules.iter().zip(rules_of(part));
                let (&explored, &own) =
                    pairs.find(|(&explored, _)| number(explored).contains(&rule))?;
                Some(number(own).start + (rule - number(explored).start))
            };
            path.iter().filter_map(translate).collect()
        });
        if let Some(path) = deadlock {
            let replaces_verdict = match &verdict {
                Verdict::FailedCheck(FailedCheck::DeadEnd(_) | FailedCheck::Livelock(_), _)
                | Verdict::Holds => true,
                Verdict::FailedCheck(_, other_path) => {
                    is_limit(&verdict) || path.rules.len() < other_path.rules.len()
                }
                Verdict::Undecided(reason) => *reason == Reason::HashCompaction,
            };
            if replaces_verdict {
                verdict = Verdict::FailedCheck(FailedCheck::Deadlock, path);
            }
        }
    }
    verdict
}

/// Verdict of the whole model except for deadlock. Priority: the shortest violation of a property of all states; then
/// undecided, including limits of the model; then a state that cannot drain, dead ends first.
fn first_verdict<'a>(
    verdicts: impl Iterator<Item = &'a Verdict>,
    is_limit: impl Fn(&Verdict) -> bool,
) -> Verdict {
    // Smaller ranks come first; among equal ranks, shorter paths.
    let rank = |verdict: &&Verdict| match verdict {
        Verdict::FailedCheck(_, path) if is_limit(verdict) => (1, path.rules.len()),
        Verdict::FailedCheck(FailedCheck::DeadEnd(_), path) => (2, path.rules.len()),
        Verdict::FailedCheck(FailedCheck::Livelock(_), path) => (3, path.rules.len()),
        Verdict::FailedCheck(_, path) => (0, path.rules.len()),
        // Another part may have a worse verdict.
        Verdict::Undecided(Reason::HashCompaction) => (4, 0),
        Verdict::Undecided(_) => (1, 0),
        Verdict::Holds => (5, 0),
    };
    verdicts.min_by_key(rank).cloned().unwrap_or(Verdict::Holds)
}

/// A shortest path into a deadlock of the whole model, if one exists: every part is in a deadlock, at least one of them
/// not quiescent.
fn global_deadlock(
    parts: &[&SearchResult],
    own_rules: impl Fn(usize, &[u32]) -> Vec<u32>,
) -> Option<Path> {
    let mut paths: Vec<&Path> = parts
        .iter()
        .map(|result| result.deadlocks[0].as_ref())
        .collect::<Option<_>>()?;
    let detour = |i: usize| {
        parts[i].deadlocks[1]
            .as_ref()
            .map(|p| (p.rules.len() - paths[i].rules.len(), i, p))
    };
    let (_, chosen, path) = (0..parts.len())
        .filter_map(detour)
        .min_by_key(|d| (d.0, d.1))?;
    paths[chosen] = path;
    let rules = paths
        .iter()
        .enumerate()
        .flat_map(|(i, path)| own_rules(i, &path.rules));
    Some(Path {
        start: 0,
        rules: rules.collect(),
    })
}
