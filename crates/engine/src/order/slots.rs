//! Numbers of slots. Stored states have the elements of a multiset sorted, by values of scalarsets among others, so which
//! element stands in which slot must not show: a number may name its own element, be removed, and be compared with
//! another of the same multiset. Nor may it be used when the element may have been replaced by one that was put in later,
//! as the first free slot is taken.

use super::*;
use crate::visit::{self, Node};
use std::collections::BTreeSet;

/// What is known of the slots that are named where we are.
pub(super) struct Slots {
    /// Of each variable, if it is the number of a slot of something with scalarsets in it.
    known: Vec<Option<Slot>>,
    /// Variables from whose multisets something may have been removed in this step.
    freed: BTreeSet<VariableId>,
}

struct Slot {
    /// The multiset.
    of: Spot,
    /// The scalarsets by which it is sorted.
    sets: Vec<TypeId>,
    /// Whether another element may stand there by now.
    stale: bool,
}

impl Slots {
    pub fn new(model: &Model) -> Slots {
        Slots {
            known: model.variables.iter().map(|_| None).collect(),
            freed: BTreeSet::new(),
        }
    }

    /// A rule or start state begins.
    pub fn begin_step(&mut self) {
        self.freed.clear();
    }
}

impl Walk<'_> {
    /// A variable gets the numbers of a multiset's slots.
    pub(super) fn number(&mut self, id: VariableId, multiset: &Place) {
        let mut sets = Vec::new();
        sets_in(self.model, self.model.type_of_place(multiset), &mut sets);
        let slot = Slot {
            of: self.fixed(multiset),
            sets,
            stale: false,
        };
        self.slots.known[id.index()] = Some(slot).filter(|slot| !slot.sets.is_empty());
    }

    /// Finds that more is done with the number of a slot than to name an element, if it is one.
    pub(super) fn slot_shows(&mut self, id: VariableId, why: &str) {
        if let Some(slot) = &self.slots.known[id.index()] {
            let (sets, name) = (slot.sets.clone(), self.name(&slot.of));
            let why = match slot.stale {
                true => "another element may stand there by then",
                false => why,
            };
            let why = format!("{why}, and `{name}` is sorted by values of a scalarset");
            self.find(sets, why, Told::Slot(id));
        }
    }

    /// Which variable with the number of a slot something is.
    fn slot(&self, e: &Expr) -> Option<VariableId> {
        match e.without_line() {
            Expr::Read(place) if place.path.is_empty() => Some(place.variable),
            _ => None,
        }
        .filter(|id| self.slots.known[id.index()].is_some())
    }

    /// Whether an index is the number of a slot, and stands where that is its use.
    pub(super) fn is_slot_in(&mut self, index: &Expr, place: &Place, at: usize) -> bool {
        if self.slot(index).is_none() {
            return false;
        }
        let multiset = Place {
            variable: place.variable,
            path: place.path[..at].to_vec(),
        };
        let is = matches!(
            self.model.ty(self.model.type_of_place(&multiset)),
            Type::Multiset { .. }
        );
        is && self.is_slot_of(index, &multiset)
    }

    /// Whether something is the number of a slot; finds it if it is not one of this multiset, as it is now.
    pub(super) fn is_slot_of(&mut self, e: &Expr, multiset: &Place) -> bool {
        let Some(id) = self.slot(e) else {
            return false;
        };
        let now = self.spot(multiset);
        let stays = (now.path.iter()).all(|at| *at != At::Index(None));
        let why = match &self.slots.known[id.index()] {
            Some(slot) if !stays || slot.of != now => {
                "it may be used for another multiset than its own"
            }
            Some(slot) if slot.stale => "it is used too late",
            _ => return true,
        };
        self.slot_shows(id, why);
        true
    }

    /// Whether two expressions are numbers of slots of the same multiset.
    pub(super) fn are_slots_of_one(&self, a: &Expr, b: &Expr) -> bool {
        let of = |e: &Expr| {
            let slot = self.slots.known[self.slot(e)?.index()].as_ref()?;
            let known = slot.of.path.iter().all(|at| *at != At::Index(None));
            (known && !slot.stale).then_some(&slot.of)
        };
        of(a).is_some() && of(a) == of(b)
    }

    /// Finds that a place lies in a slot in which another element may be by now. Aliases lead there.
    pub(super) fn stale_slot_shows(&mut self, spot: &Spot) {
        for at in &spot.path {
            let At::Index(Some(key)) = at else { continue };
            let [id] = key.names[..] else { continue };
            let stale = |slot: &Slot| slot.stale;
            if *key == Key::of(id) && self.slots.known[id.index()].as_ref().is_some_and(stale) {
                self.slot_shows(id, "");
            }
        }
    }

    /// Something was removed from a multiset.
    pub(super) fn freed(&mut self, multiset: &Place) {
        let root = self.spot(multiset).root;
        self.slots.freed.insert(root);
    }

    /// Something was put into a multiset.
    pub(super) fn filled(&mut self, multiset: &Place) {
        let root = self.spot(multiset).root;
        // What is behind a parameter of a function that calls itself is not known.
        let unknown = |&id: &VariableId| self.model.variable(id).role == Role::Alias;
        let freed = &self.slots.freed;
        if freed.contains(&root) || freed.iter().any(unknown) || unknown(&root) && !freed.is_empty()
        {
            self.stale(root);
        }
    }

    /// Something was stored; if it is a multiset, its elements are others.
    pub(super) fn replaced(&mut self, place: &Place) {
        if (self.model).holds_multiset(self.model.type_of_place(place)) {
            self.stale(self.spot(place).root);
        }
    }

    fn stale(&mut self, root: VariableId) {
        let unknown = |id: VariableId| self.model.variable(id).role == Role::Alias;
        for slot in self.slots.known.iter_mut().flatten() {
            slot.stale |= slot.of.root == root || unknown(root) || unknown(slot.of.root);
        }
    }

    /// Rounds begin, so that what stands first in a body may be done after what stands last.
    pub(super) fn before_rounds(&mut self, body: &[Stmt]) {
        if self.slots.known.iter().all(Option::is_none) {
            return;
        }
        let (mut frees, mut fills, mut stores) = (!self.slots.freed.is_empty(), false, false);
        let mut called: Vec<FunctionId> = Vec::new();
        let mut look = |block: &[Stmt], called: &mut Vec<FunctionId>| {
            visit::block(block, &mut |node| match node {
                Node::Stmt(Stmt::Remove(..) | Stmt::RemoveWhere(..)) => frees = true,
                Node::Stmt(Stmt::Insert(..)) => fills = true,
                Node::Stmt(Stmt::Assign(to, _) | Stmt::Clear(to) | Stmt::Undefine(to)) => {
                    stores |= (self.model).holds_multiset(self.model.type_of_place(to));
                }
                Node::Stmt(Stmt::Call(id, _)) | Node::Expr(Expr::Call(id, _))
                    if !called.contains(id) =>
                {
                    called.push(*id);
                }
                _ => {}
            });
        };
        look(body, &mut called);
        let mut at = 0;
        while at < called.len() {
            look(&self.model.functions[called[at].index()].body, &mut called);
            at += 1;
        }
        if frees && fills || stores {
            let slots = self.slots.known.iter_mut().flatten();
            slots.for_each(|slot| slot.stale = true);
        }
    }
}
