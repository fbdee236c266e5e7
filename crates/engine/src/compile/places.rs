//! Places as cells, and the simple parts that types are made of.

use super::*;

impl Compiler<'_> {
    /// Location and type of a place. Emits code for the variable part of the address.
    pub(super) fn locate(&mut self, place: &Place) -> (Location, TypeId) {
        let (location, ty, _) = self.locate_in_elements(place);
        (location, ty)
    }

    /// As [`Compiler::locate`], with the multiset elements that contain the place. The code fails at run time if an
    /// alias lies in an element that has been removed since the alias was bound.
    pub(super) fn locate_in_elements(&mut self, place: &Place) -> (Location, TypeId, Vec<Element>) {
        let model = self.model;
        let mut elements = self.alias_elements[place.variable.index()].clone();
        for element in &elements {
            let mark = self.temporary;
            let present = self.load(element.present);
            self.temporary = mark;
            self.emit_violation_unless(present, 1, |m| {
                let alias = &m.variable(place.variable).name;
                format!(
                    "`{alias}` is used after its element was removed from `{}`",
                    element.multiset
                )
            });
        }
        let mut ty = model.variable(place.variable).ty;
        let mut location = self.aliases[place.variable.index()].unwrap_or(Location {
            base: self.cells[place.variable.index()],
            offset: None,
            len: self.sizes[ty.index()],
        });
        for (depth, step) in place.path.iter().enumerate() {
            let part = match (model.ty(ty), step) {
                (Type::Multiset { element, .. }, Step::Index(e)) => {
                    let bag = Place {
                        variable: place.variable,
                        path: place.path[..depth].to_vec(),
                    };
                    let slot = self.slot_at(location, ty, e, &bag);
                    let mark = self.temporary;
                    let present = self.load(slot);
                    self.temporary = mark;
                    self.emit_violation_unless(present, 1, |m| {
                        format!("an empty slot of `{}` is used", m.spell(&bag))
                    });
                    elements.push(Element {
                        present: slot,
                        multiset: model.spell(&bag),
                    });
                    location = slot.part(1);
                    location.len = if location.offset.is_some() {
                        location.len
                    } else {
                        self.sizes[element.index()]
                    };
                    ty = *element;
                    continue;
                }
                (Type::Array { index, element }, Step::Index(e)) => {
                    let (lo, hi) = model.bounds(*index).unwrap_or((0, 0));
                    let stride = self.sizes[element.index()];
                    let value = self.value(e);
                    ty = *element;
                    if value.lo == value.hi && value.lo >= lo && value.hi <= hi {
                        (value.lo - lo) as u32 * stride
                    } else {
                        let shape = self.shape(Shape {
                            lo,
                            count: (hi - lo + 1) as u32,
                            stride,
                        });
                        let dst = self.new_temporary();
                        let before = &place.path[..depth];
                        let name = |m: &Model| {
                            m.spell(&Place {
                                variable: place.variable,
                                path: before.to_vec(),
                            })
                        };
                        self.emit_at(
                            Op::Index {
                                dst,
                                a: value.cell,
                                shape,
                            },
                            name,
                        );
                        location.offset = Some(match location.offset {
                            None => dst,
                            Some(sum) => {
                                self.emit(Op::Arithmetic {
                                    op: Arithmetic::Add,
                                    dst,
                                    a: sum,
                                    b: dst,
                                });
                                dst
                            }
                        });
                        continue;
                    }
                }
                (Type::Record(fields), Step::Field(name)) => {
                    let mut before = 0;
                    for (field, part) in fields {
                        if field == name {
                            ty = *part;
                            break;
                        }
                        before += self.sizes[part.index()];
                    }
                    before
                }
                // Excluded by validation.
                _ => 0,
            };
            location.base += part;
            // After a computed index, the remainder of the array stays within reach.
            location.len = if location.offset.is_some() {
                location.len - part
            } else {
                self.sizes[ty.index()]
            };
        }
        (location, ty, elements)
    }

    pub(super) fn load(&mut self, location: Location) -> Cell {
        match location.offset {
            None => location.base,
            Some(offset) => {
                let dst = self.new_temporary();
                self.emit(Op::Load {
                    dst,
                    offset,
                    base: location.base,
                    len: reach(location.len),
                });
                dst
            }
        }
    }

    pub(super) fn store(&mut self, location: Location, a: Cell) {
        match location.offset {
            Some(offset) => self.emit(Op::Store {
                offset,
                a,
                base: location.base,
                len: reach(location.len),
            }),
            None if (location.base as usize) < self.program.slots.len() => self.emit(Op::Set {
                dst: location.base,
                a,
            }),
            None => self.emit(Op::Copy {
                dst: location.base,
                a,
            }),
        }
    }
}

/// Encoded reach of an access. A reach too long for the field counts as the whole state.
pub(super) fn reach(len: u32) -> u16 {
    len.min(u16::MAX as u32) as u16
}

/// A simple part of a value.
pub(super) struct Part {
    /// Name, such as `cells[2].state`.
    pub name: String,
    pub ty: TypeId,
    pub lo: Number,
    pub hi: Number,
    /// True if it is part of a multiset's slot.
    pub in_bag: bool,
}

impl Part {
    /// Value before the first assignment.
    pub(super) fn initial_value(&self, model: &Model) -> Number {
        match model.undefined && !self.in_bag {
            true => UNDEFINED,
            false => self.lo,
        }
    }
}

/// Appends the simple parts of a type, in frame order.
pub(super) fn leaves(model: &Model, ty: TypeId, name: String, in_bag: bool, parts: &mut Vec<Part>) {
    match model.ty(ty) {
        Type::Array { index, element } => {
            let (lo, hi) = model.bounds(*index).unwrap_or((0, -1));
            for i in lo..=hi {
                let name = format!("{name}[{}]", model.show(*index, i));
                leaves(model, *element, name, in_bag, parts);
            }
        }
        Type::Record(fields) => {
            for (field, part) in fields {
                leaves(model, *part, format!("{name}.{field}"), in_bag, parts);
            }
        }
        Type::Multiset { capacity, element } => {
            for i in 0..*capacity {
                parts.push(Part {
                    name: format!("{name}[{i}] present"),
                    ty: TypeId::BOOL,
                    lo: 0,
                    hi: 1,
                    in_bag: true,
                });
                leaves(model, *element, format!("{name}[{i}]"), true, parts);
            }
        }
        _ => {
            let (lo, hi) = model.bounds(ty).unwrap_or((0, 0));
            parts.push(Part {
                name,
                ty,
                lo,
                hi,
                in_bag,
            });
        }
    }
}

impl Location {
    /// The location that begins `cells` cells later.
    pub(super) fn part(self, cells: u32) -> Location {
        Location {
            base: self.base + cells,
            len: self.len.saturating_sub(cells),
            ..self
        }
    }
}
