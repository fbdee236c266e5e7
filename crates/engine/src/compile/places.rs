//! Lowering of places to state cells, and enumeration of the leaf values of a type.

use super::{Compiler, Element, Location};
use crate::model::{Expr, Model, Number, Place, Step, Type, TypeId, VariableId, UNDEFINED};
use crate::program::{Cell, Op, Shape};

impl Compiler<'_> {
    /// Location and type of a place. Emits code for the variable part of the address.
    pub(super) fn locate(&mut self, place: &Place) -> (Location, TypeId) {
        let (location, ty, _) = self.locate_in_elements(place);
        (location, ty)
    }

    /// Like [`Compiler::locate`]; also returns the multiset elements that contain the place. The emitted code reports a
    /// violation if an alias refers to an element that was removed after the alias was bound.
    pub(super) fn locate_in_elements(&mut self, place: &Place) -> (Location, TypeId, Vec<Element>) {
        let model = self.model;
        let mut elements = self.alias_elements[place.variable.index()].clone();
        for element in &elements {
            self.emit_alias_check(place.variable, element);
        }
        let mut ty = model.variable(place.variable).ty;
        let mut location = self.aliases[place.variable.index()].unwrap_or(Location {
            base: self.cells[place.variable.index()],
            offset: None,
            len: self.sizes[ty.index()],
        });
        for (depth, step) in place.path.iter().enumerate() {
            let container = Place {
                variable: place.variable,
                path: place.path[..depth].to_vec(),
            };
            let cell_offset = match (model.ty(ty), step) {
                (Type::Multiset { element, .. }, Step::Index(e)) => {
                    let slot = self.enter_multiset_slot(location, ty, e, &container);
                    location = slot.skip(1);
                    location.len = if location.offset.is_some() {
                        location.len
                    } else {
                        self.sizes[element.index()]
                    };
                    elements.push(Element {
                        present: slot,
                        multiset: model.spell(&container),
                    });
                    ty = *element;
                    continue;
                }
                (Type::Array { index, element }, Step::Index(e)) => {
                    ty = *element;
                    match self.index_array(&mut location, (*index, *element), e, &container) {
                        Some(cell_offset) => cell_offset,
                        None => continue,
                    }
                }
                (Type::Record(fields), Step::Field(name)) => {
                    let (field_offset, field_type) = self.field_offset(fields, name);
                    ty = field_type.unwrap_or(ty);
                    field_offset
                }
                // Excluded by validation.
                _ => 0,
            };
            location.base += cell_offset;
            // After a computed index, an access may touch any cell up to the end of the array.
            location.len = if location.offset.is_some() {
                location.len - cell_offset
            } else {
                self.sizes[ty.index()]
            };
        }
        (location, ty, elements)
    }

    /// Emits a violation if the element to which an alias refers has been removed.
    fn emit_alias_check(&mut self, alias: VariableId, element: &Element) {
        let mark = self.code.temporary;
        let present = self.emit_load(element.present);
        self.code.temporary = mark;
        let (alias, multiset) = (&self.model.variable(alias).name, &element.multiset);
        let reason = format!("`{alias}` is used after its element was removed from `{multiset}`");
        self.code.emit_violation_unless(present, 1, reason);
    }

    /// Offset of a field of a record in cells, and its type. Without such a field, the offset is the record's size.
    fn field_offset(&self, fields: &[(String, TypeId)], name: &str) -> (u32, Option<TypeId>) {
        let mut field_offset = 0;
        for (field, field_type) in fields {
            if field == name {
                return (field_offset, Some(*field_type));
            }
            field_offset += self.sizes[field_type.index()];
        }
        (field_offset, None)
    }

    /// Location of a slot of a multiset. The emitted code reports a violation if the slot is empty.
    fn enter_multiset_slot(
        &mut self,
        location: Location,
        ty: TypeId,
        slot_number: &Expr,
        multiset: &Place,
    ) -> Location {
        let slot = self.locate_slot_at(location, ty, slot_number, multiset);
        let mark = self.code.temporary;
        let present = self.emit_load(slot);
        self.code.temporary = mark;
        let multiset = self.model.spell(multiset);
        let reason = format!("an empty slot of `{multiset}` is used");
        self.code.emit_violation_unless(present, 1, reason);
        slot
    }

    /// Offset of an array element with a constant index, in cells. For other indices returns `None`, and adds the
    /// computed offset to `location`.
    fn index_array(
        &mut self,
        location: &mut Location,
        (index_type, element_type): (TypeId, TypeId),
        index: &Expr,
        array: &Place,
    ) -> Option<u32> {
        let (lo, hi) = self.model.bounds(index_type).unwrap_or((0, 0));
        let stride = self.sizes[element_type.index()];
        let value = self.emit_value(index);
        if value.lo == value.hi && value.lo >= lo && value.hi <= hi {
            return Some((value.lo - lo) as u32 * stride);
        }
        let shape = self.code.shape_index(Shape {
            lo,
            count: (hi - lo + 1) as u32,
            stride,
        });
        let dst = self.code.new_temporary();
        self.code.emit_at(
            Op::Index {
                dst,
                a: value.cell,
                shape,
            },
            self.model.spell(array),
        );
        if let Some(sum) = location.offset {
            self.code.emit_add(dst, sum, dst);
        }
        location.offset = Some(dst);
        None
    }

    /// Cell with the value at a location; emits a load if the address is computed.
    pub(super) fn emit_load(&mut self, location: Location) -> Cell {
        match location.offset {
            None => location.base,
            Some(offset) => {
                let dst = self.code.new_temporary();
                self.code.emit(Op::Load {
                    dst,
                    offset,
                    base: location.base,
                    len: encode_reach(location.len),
                });
                dst
            }
        }
    }

    /// Emits a store of a cell at a location.
    pub(super) fn emit_store(&mut self, location: Location, a: Cell) {
        match location.offset {
            Some(offset) => self.code.emit(Op::Store {
                offset,
                a,
                base: location.base,
                len: encode_reach(location.len),
            }),
            None if (location.base as usize) < self.code.program.slots.len() => {
                self.code.emit(Op::Set {
                    dst: location.base,
                    a,
                })
            }
            None => self.code.emit_copy(location.base, a),
        }
    }
}

/// Encodes the number of cells that an access may touch. A number too large for the field means the whole state.
pub(super) fn encode_reach(len: u32) -> u16 {
    len.min(u16::MAX as u32) as u16
}

/// A leaf of a composite value: a cell with a scalar type.
pub(super) struct Leaf {
    /// Name, such as `cells[2].state`.
    pub name: String,
    /// Type of the leaf; always a simple one.
    pub ty: TypeId,
    /// Least defined value.
    pub lo: Number,
    /// Greatest value.
    pub hi: Number,
    /// True for a leaf of a multiset slot.
    pub in_multiset: bool,
}

impl Leaf {
    /// Value before the first assignment.
    pub(super) fn initial_value(&self, model: &Model) -> Number {
        match model.undefined && !self.in_multiset {
            true => UNDEFINED,
            false => self.lo,
        }
    }
}

/// Appends the leaves of a type, in frame order.
pub(super) fn append_leaves(
    model: &Model,
    ty: TypeId,
    name: String,
    in_multiset: bool,
    leaves: &mut Vec<Leaf>,
) {
    match model.ty(ty) {
        Type::Array { index, element } => {
            let (lo, hi) = model.bounds(*index).unwrap_or((0, -1));
            for i in lo..=hi {
                let name = format!("{name}[{}]", model.show(*index, i));
                append_leaves(model, *element, name, in_multiset, leaves);
            }
        }
        Type::Record(fields) => {
            for (field, field_type) in fields {
                append_leaves(
                    model,
                    *field_type,
                    format!("{name}.{field}"),
                    in_multiset,
                    leaves,
                );
            }
        }
        Type::Multiset { capacity, element } => {
            for i in 0..*capacity {
                leaves.push(Leaf {
                    name: format!("{name}[{i}] present"),
                    ty: TypeId::BOOL,
                    lo: 0,
                    hi: 1,
                    in_multiset: true,
                });
                append_leaves(model, *element, format!("{name}[{i}]"), true, leaves);
            }
        }
        _ => {
            let (lo, hi) = model.bounds(ty).unwrap_or((0, 0));
            leaves.push(Leaf {
                name,
                ty,
                lo,
                hi,
                in_multiset,
            });
        }
    }
}

impl Location {
    /// The location that begins `cells` cells later.
    pub(super) fn skip(self, cells: u32) -> Location {
        Location {
            base: self.base + cells,
            len: self.len.saturating_sub(cells),
            ..self
        }
    }
}
