//! Numbers of slots. In stored states, the elements of a multiset are sorted, also by values of scalarsets. The
//! position of an element must therefore not be observable.
//! A slot number may name its element, remove it, and be compared with another slot number of the same multiset.
//!
//! An insertion takes the first free slot. Stored multisets have their free slots at the end, so after a single removal
//! the first free slot is that of the removed element: the slot number then names the inserted element, and all other
//! slot numbers keep their elements. After several removals, the inserted element takes the slot with the smallest
//! number. A slot number must not be used from then on. The same holds after an insertion by a loop over a scalarset,
//! whose order selects the element that takes the free slot, and for elements that contain multisets, whose slot
//! numbers name nothing in another element.
//!
//! The order of elements depends on a scalarset if they hold its values, or arrays that it indexes, or if a loop over
//! it inserts elements ([`inserting_sets`]).

use super::symbolic::{PathStep, ResolvedPlace, SymbolicValue};
use super::{is_scalarset, scalarsets_in, AsymmetryAnalysis, AsymmetryLocation};
use crate::model::{Expr, Model, Place, Role, Stmt, Type, TypeId, VariableId};
use crate::visit::{self, Node};
use std::collections::BTreeMap;

/// Slot numbers in scope.
pub(super) struct Slots {
    /// Per variable: the slot it names, if it is a slot number of a multiset with scalarsets.
    by_variable: Vec<Option<Slot>>,
    /// Removals of the current step so far.
    removals: Removals,
    /// Scalarsets of loops that insert elements; see [`inserting_sets`].
    inserting_sets: Vec<TypeId>,
}

/// Removals from multisets that a step may have carried out, by the variable that contains the multiset.
#[derive(Clone, Default, PartialEq)]
pub(super) struct Removals(BTreeMap<VariableId, RemovalCount>);

/// Number of removals from the multisets of a variable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum RemovalCount {
    /// At most one.
    One,
    /// Any number.
    Any,
}

impl Removals {
    /// Adds the removals of an alternative to this one: a step carries out one of them.
    fn merge(&mut self, alternative: Removals) {
        for (root, count) in alternative.0 {
            let known = self.0.entry(root).or_insert(count);
            *known = count.max(*known);
        }
    }

    /// Adds removals.
    fn add(&mut self, root: VariableId, count: RemovalCount) {
        let next = |known: &mut RemovalCount| *known = RemovalCount::Any;
        self.0.entry(root).and_modify(next).or_insert(count);
    }
}

/// A slot number held by a variable.
struct Slot {
    /// Multiset whose slots the number counts.
    multiset: ResolvedPlace,
    /// The scalarsets on whose values the order of the elements depends.
    sets: Vec<TypeId>,
    /// True if another element may occupy the slot now.
    stale: bool,
}

impl Slots {
    /// No variable holds a slot number yet.
    pub fn new(model: &Model) -> Slots {
        Slots {
            by_variable: model.variables.iter().map(|_| None).collect(),
            removals: Removals::default(),
            inserting_sets: inserting_sets(model),
        }
    }

    /// Knowledge that repeated code can change: the removals so far, and the slot numbers that must not be used.
    pub fn snapshot(&self) -> SlotSnapshot {
        let is_stale = |slot: &Option<Slot>| slot.as_ref().is_some_and(|slot| slot.stale);
        SlotSnapshot {
            removals: self.removals.clone(),
            stale: self.by_variable.iter().map(is_stale).collect(),
        }
    }

    /// Starts the analysis of a rule or start state.
    pub fn begin_step(&mut self) {
        self.removals.0.clear();
    }

    /// Removals so far.
    pub fn removals(&self) -> Removals {
        self.removals.clone()
    }

    /// Adds the removals of an alternative to those so far.
    pub fn merge_removals(&mut self, alternative: Removals) {
        self.removals.merge(alternative);
    }

    /// Replaces the removals so far; returns the former ones.
    pub fn replace_removals(&mut self, removals: Removals) -> Removals {
        std::mem::replace(&mut self.removals, removals)
    }
}

impl AsymmetryAnalysis<'_> {
    /// Scalarsets on whose values the order of a multiset's elements depends.
    pub(super) fn sets_of_element_order(&self, multiset: &Place) -> Vec<TypeId> {
        let mut sets = self.slots.inserting_sets.clone();
        sets_of_order(self.model, self.model.type_of_place(multiset), &mut sets);
        sets
    }

    /// Records that a variable takes the slot numbers of a multiset.
    pub(super) fn bind_slot_number(&mut self, id: VariableId, multiset: &Place) {
        let slot = Slot {
            multiset: self.resolve_alias(multiset, None, 0),
            sets: self.sets_of_element_order(multiset),
            stale: false,
        };
        self.slots.by_variable[id.index()] = Some(slot).filter(|slot| !slot.sets.is_empty());
    }

    /// Reports a forbidden use of a slot number. No effect for other variables.
    pub(super) fn report_slot_use(&mut self, id: VariableId, reason: &str) {
        if let Some(slot) = &self.slots.by_variable[id.index()] {
            let (sets, name) = (slot.sets.clone(), self.spell_resolved(&slot.multiset));
            let reason = match slot.stale {
                true => "another element may occupy the slot by then",
                false => reason,
            };
            let reason = format!("{reason}, and the order in `{name}` depends on a scalarset");
            self.report(sets, reason, AsymmetryLocation::Slot(id));
        }
    }

    /// Reports a place that is a slot number, for uses of its value.
    pub(super) fn report_number_use(&mut self, place: &Place) {
        let ResolvedPlace { root, path } = self.resolve(place);
        if path.is_empty() {
            self.report_slot_use(root, "it is used as a number");
        }
    }

    /// The variable of an expression, if it is a slot number.
    fn slot(&self, e: &Expr) -> Option<VariableId> {
        match e.without_line() {
            Expr::Read(place) if place.path.is_empty() => Some(place.variable),
            _ => None,
        }
        .filter(|id| self.slots.by_variable[id.index()].is_some())
    }

    /// True if an index is a slot number and indexes a multiset; reports use on another multiset.
    pub(super) fn is_slot_in(&mut self, index: &Expr, place: &Place, depth: usize) -> bool {
        if self.slot(index).is_none() {
            return false;
        }
        let multiset = Place {
            variable: place.variable,
            path: place.path[..depth].to_vec(),
        };
        let is_multiset = matches!(
            self.model.ty(self.model.type_of_place(&multiset)),
            Type::Multiset { .. }
        );
        is_multiset && self.is_slot_of(index, &multiset)
    }

    /// True if an expression is a slot number. Reports one of another multiset, and one whose element may have changed.
    pub(super) fn is_slot_of(&mut self, e: &Expr, multiset: &Place) -> bool {
        let Some(id) = self.slot(e) else {
            return false;
        };
        let current = self.resolve(multiset);
        let is_resolved = (current.path.iter()).all(|step| *step != PathStep::Index(None));
        let reason = match &self.slots.by_variable[id.index()] {
            Some(slot) if !is_resolved || slot.multiset != current => {
                "it may be used for another multiset than its own"
            }
            Some(slot) if slot.stale => "it is used too late",
            _ => return true,
        };
        self.report_slot_use(id, reason);
        true
    }

    /// True if two expressions are valid slot numbers of the same multiset.
    pub(super) fn are_slots_of_one(&self, a: &Expr, b: &Expr) -> bool {
        let slot_multiset = |e: &Expr| {
            let slot = self.slots.by_variable[self.slot(e)?.index()].as_ref()?;
            let is_known = slot
                .multiset
                .path
                .iter()
                .all(|step| *step != PathStep::Index(None));
            (is_known && !slot.stale).then_some(&slot.multiset)
        };
        slot_multiset(a).is_some() && slot_multiset(a) == slot_multiset(b)
    }

    /// Reports a place in a slot whose element may have been replaced. Aliases can lead to such places.
    pub(super) fn report_stale_slots(&mut self, resolved: &ResolvedPlace) {
        for step in &resolved.path {
            let PathStep::Index(Some(symbolic)) = step else {
                continue;
            };
            let [id] = symbolic.variables[..] else {
                continue;
            };
            let stale = |slot: &Slot| slot.stale;
            if *symbolic == SymbolicValue::of(id)
                && self.slots.by_variable[id.index()]
                    .as_ref()
                    .is_some_and(stale)
            {
                self.report_slot_use(id, "");
            }
        }
    }

    /// Records the removal of one element from a multiset, or of `any_number`.
    pub(super) fn record_removal(&mut self, multiset: &Place, any_number: bool) {
        let root = self.resolve(multiset).root;
        // Slot numbers of a multiset in the removed element name nothing in its successor.
        let is_nested = contains_nested_multisets(self.model, self.model.variable(root).ty, false);
        let count = match any_number || is_nested {
            true => RemovalCount::Any,
            false => RemovalCount::One,
        };
        self.slots.removals.add(root, count);
    }

    /// Records the insertion of an element into a multiset.
    pub(super) fn record_insertion(&mut self, multiset: &Place) {
        let root = self.resolve(multiset).root;
        // The place of a recursive function's alias parameter is unknown.
        let unknown = |&id: &VariableId| self.model.variable(id).role == Role::Alias;
        let removals = &self.slots.removals.0;
        // The order of a loop selects the element that takes a free slot.
        let is_in_order = self.loops.is_empty();
        let fills_known_slot = match removals.get(&root) {
            Some(RemovalCount::Any) => false,
            Some(RemovalCount::One) => is_in_order,
            None => true,
        };
        if !fills_known_slot
            || removals.keys().any(unknown)
            || unknown(&root) && !removals.is_empty()
        {
            self.mark_stale(root);
        }
    }

    /// Records a store. If the place contains a multiset, its elements are replaced.
    pub(super) fn record_store(&mut self, place: &Place) {
        if (self.model).holds_multiset(self.model.type_of_place(place)) {
            let root = self.resolve(place).root;
            self.mark_stale(root);
            if !self.slots.removals.0.is_empty() {
                // The new value may have free slots between elements.
                self.slots.removals.add(root, RemovalCount::Any);
            }
        }
    }

    /// Marks the slot numbers of multisets that may lie in this variable: other elements may occupy their slots now.
    fn mark_stale(&mut self, root: VariableId) {
        let unknown = |id: VariableId| self.model.variable(id).role == Role::Alias;
        for slot in self.slots.by_variable.iter_mut().flatten() {
            slot.stale |=
                slot.multiset.root == root || unknown(root) || unknown(slot.multiset.root);
        }
    }
}

/// Knowledge about slots at a statement.
#[derive(PartialEq)]
pub(super) struct SlotSnapshot {
    /// Removals so far.
    removals: Removals,
    /// Per variable: true if it holds a slot number that must not be used.
    stale: Vec<bool>,
}

/// Appends the scalarsets on which the order of a type's values depends: those whose values it holds, and those that
/// index its arrays.
fn sets_of_order(model: &Model, ty: TypeId, sets: &mut Vec<TypeId>) {
    match model.ty(ty) {
        Type::Array { index, element } => {
            scalarsets_in(model, *index, sets);
            sets_of_order(model, *element, sets);
        }
        Type::Multiset { element, .. } => sets_of_order(model, *element, sets),
        Type::Record(fields) => fields.iter().for_each(|f| sets_of_order(model, f.1, sets)),
        _ => scalarsets_in(model, ty, sets),
    }
}

/// True if elements of a multiset contain multisets. `within` is true if the type itself occurs in elements.
fn contains_nested_multisets(model: &Model, ty: TypeId, within: bool) -> bool {
    match model.ty(ty) {
        Type::Multiset { element, .. } => {
            within || contains_nested_multisets(model, *element, true)
        }
        Type::Array { element, .. } => contains_nested_multisets(model, *element, within),
        Type::Record(fields) => {
            (fields.iter()).any(|f| contains_nested_multisets(model, f.1, within))
        }
        _ => false,
    }
}

/// Scalarsets of loops that may insert elements into multisets, in rules and functions. Until the end of the step, the
/// order of such elements is that of the loop. Assignments may copy them to any multiset.
fn inserting_sets(model: &Model) -> Vec<TypeId> {
    let mut sets = Vec::new();
    let bodies = model.rules.iter().map(|rule| &rule.body);
    let bodies = bodies.chain(model.functions.iter().map(|function| &function.body));
    for body in bodies {
        visit::block(body, &mut |node| {
            if let Node::Stmt(Stmt::For(id, body)) = node {
                if may_insert(model, body) {
                    scalarsets_in(model, model.variable(*id).ty, &mut sets);
                }
            }
        });
    }
    debug_assert!(sets.iter().all(|&set| is_scalarset(model, set)));
    sets
}

/// True if statements, or functions that they call, may insert elements into a multiset.
fn may_insert(model: &Model, body: &[Stmt]) -> bool {
    let called = visit::called_functions(model, body);
    let bodies = called
        .iter()
        .map(|id| &model.functions[id.index()].body[..]);
    bodies.chain([body]).any(|block| {
        let mut inserts = false;
        visit::block(block, &mut |node| {
            inserts |= matches!(node, Node::Stmt(Stmt::Insert(..)));
        });
        inserts
    })
}
