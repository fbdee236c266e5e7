//! Multisets as slots: each is a cell that is 1 if an element is present, followed by the element's parts.

use super::{Compiler, FillValue, Label, Location, Value};
use crate::model::{Expr, Model, Number, Place, Type, TypeId, VariableId, Violation};
use crate::program::{Cell, Comparison, MultisetLayout, Op, Shape};

/// Appends the multisets in a value of a type at a cell, inner ones first.
pub(super) fn append_multisets(
    model: &Model,
    sizes: &[u32],
    ty: TypeId,
    first_cell: Cell,
    result: &mut Vec<MultisetLayout>,
) {
    match model.ty(ty) {
        Type::Array { index, element } => {
            for i in 0..model.count(*index) as u32 {
                append_multisets(
                    model,
                    sizes,
                    *element,
                    first_cell + i * sizes[element.index()],
                    result,
                );
            }
        }
        Type::Record(fields) => {
            let mut first_cell = first_cell;
            for &(_, part) in fields {
                append_multisets(model, sizes, part, first_cell, result);
                first_cell += sizes[part.index()];
            }
        }
        Type::Multiset { capacity, element } => {
            let stride = 1 + sizes[element.index()];
            for i in 0..*capacity {
                append_multisets(model, sizes, *element, first_cell + i * stride + 1, result);
            }
            result.push(MultisetLayout {
                first: first_cell,
                capacity: *capacity,
                stride,
            });
        }
        _ => {}
    }
}

impl Compiler<'_> {
    /// Capacity and element type of a multiset.
    fn capacity_and_element(&self, ty: TypeId) -> (u32, TypeId) {
        match self.model.ty(ty) {
            Type::Multiset { capacity, element } => (*capacity, *element),
            _ => (0, ty),
        }
    }

    /// Location of a slot of a multiset.
    pub(super) fn locate_slot(&mut self, place: &Place, index: &Expr) -> Location {
        let (location, ty) = self.locate(place);
        self.locate_slot_at(location, ty, index, place)
    }

    /// As [`Compiler::locate_slot`], for a multiset that has been located.
    pub(super) fn locate_slot_at(
        &mut self,
        location: Location,
        ty: TypeId,
        index: &Expr,
        multiset: &Place,
    ) -> Location {
        let (capacity, element) = self.capacity_and_element(ty);
        let stride = 1 + self.sizes[element.index()];
        let index = self.emit_value(index);
        if index.lo == index.hi && (0..Number::from(capacity)).contains(&index.lo) {
            let mut slot = location.skip(index.lo as u32 * stride);
            if location.offset.is_none() {
                slot.len = stride;
            }
            return slot;
        }
        let shape = self.code.shape_index(Shape {
            lo: 0,
            count: capacity,
            stride,
        });
        let dst = self.code.new_temporary();
        let op = Op::Index {
            dst,
            a: index.cell,
            shape,
        };
        self.code.emit_at(op, self.model.spell(multiset));
        if let Some(sum) = location.offset {
            self.code.emit_add(dst, sum, dst);
        }
        Location {
            offset: Some(dst),
            ..location
        }
    }

    /// Jumps to `to` if a slot holds an element, or, if `present` is false, if it is empty.
    fn jump_if_present(&mut self, slot: Location, present: bool, to: Label) {
        let mark = self.code.temporary;
        let a = self.emit_load(slot);
        self.code.temporary = mark;
        let b = self.code.constant(present.into()).cell;
        self.code.emit_jump_if(Comparison::Equal, a, b, to);
    }

    /// Emits `f` for each slot; the bound variable is the slot number.
    fn for_each_slot(
        &mut self,
        id: VariableId,
        place: &Place,
        mut f: impl FnMut(&mut Self, Location, TypeId, Label),
    ) {
        let (location, ty) = self.locate(place);
        let (capacity, element) = self.capacity_and_element(ty);
        let stride = 1 + self.sizes[element.index()];
        for i in 0..capacity {
            let mut slot = location.skip(i * stride);
            if location.offset.is_none() {
                slot.len = stride;
            }
            let next = self.code.new_label();
            self.bound_values[id.index()] = Some(i.into());
            f(self, slot, element, next);
            self.bound_values[id.index()] = None;
            self.code.bind_label(next);
        }
    }

    /// Emits the count of the elements that satisfy a claim.
    pub(super) fn emit_count(&mut self, id: VariableId, place: &Place, claim: &Expr) -> Value {
        let dst = self.code.new_temporary();
        let (zero, one) = (self.code.constant(0).cell, self.code.constant(1).cell);
        self.code.emit_copy(dst, zero);
        let mut max_count = 0;
        self.for_each_slot(id, place, |c, slot, _, next| {
            max_count += 1;
            c.jump_if_present(slot, false, next);
            c.jump_if(claim, false, next);
            c.code.emit_add(dst, dst, one);
        });
        Value {
            cell: dst,
            lo: 0,
            hi: max_count,
        }
    }

    /// Emits the insertion of an element into the first free slot.
    pub(super) fn emit_insert(&mut self, place: &Place, element: &Expr) {
        let (location, ty) = self.locate(place);
        let (capacity, element_type) = self.capacity_and_element(ty);
        let size = self.sizes[element_type.index()];
        let from = match self.model.bounds(element_type) {
            None => self.locate_aggregate(element, element_type),
            Some(_) => {
                let value = self.emit_value(element);
                self.emit_check(value, element_type, |m| m.spell(place));
                Location {
                    base: value.cell,
                    offset: None,
                    len: 1,
                }
            }
        };
        let end = self.code.new_label();
        let one = self.code.constant(1).cell;
        for i in 0..capacity {
            let slot = location.skip(i * (1 + size));
            let next = self.code.new_label();
            self.jump_if_present(slot, true, next);
            self.emit_store(slot, one);
            self.emit_copies(from, slot.skip(1), size);
            self.code.emit_jump(end);
            self.code.bind_label(next);
        }
        let name = self.model.spell(place);
        let reason = format!("an element is added to `{name}`, which has room for {capacity}");
        self.code.emit_violation(&Violation::ill_defined(reason));
        self.code.bind_label(end);
    }

    /// Emits the removal of the element in a slot.
    pub(super) fn emit_remove(&mut self, place: &Place, index: &Expr) {
        let (location, ty) = self.locate(place);
        let slot = self.locate_slot_at(location, ty, index, place);
        let mark = self.code.temporary;
        let present = self.emit_load(slot);
        self.code.temporary = mark;
        let name = self.model.spell(place);
        let reason = format!("an element is removed from a slot of `{name}` that is empty");
        self.code.emit_violation_unless(present, 1, reason);
        let (_, element) = self.capacity_and_element(ty);
        self.clear_slot(slot, element);
    }

    /// Removes the element from a slot.
    fn clear_slot(&mut self, slot: Location, element: TypeId) {
        let zero = self.code.constant(0).cell;
        self.emit_store(slot, zero);
        self.emit_fill_at(slot.skip(1), element, FillValue::First);
    }

    /// Emits the removal of all elements that satisfy a claim.
    pub(super) fn emit_remove_where(&mut self, id: VariableId, place: &Place, claim: &Expr) {
        self.for_each_slot(id, place, |c, slot, element, next| {
            c.jump_if_present(slot, false, next);
            c.jump_if(claim, false, next);
            c.clear_slot(slot, element);
        });
    }
}
