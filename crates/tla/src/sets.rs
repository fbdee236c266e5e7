//! Sets of values and single values: types, first values, literals.

use crate::names::{field_names, Names};
use cohkit_engine::model::{Model, Number, Type, TypeId};
use std::collections::BTreeSet;

/// Sets and values of a module, and those of them that the module has to define.
pub(crate) struct Sets<'a> {
    model: &'a Model,
    names: &'a Names,
    /// Types whose sets have been named, by index.
    pub used: BTreeSet<usize>,
    /// Types whose values have been used in their order, by index.
    pub used_orders: BTreeSet<usize>,
}

impl<'a> Sets<'a> {
    /// Creates the sets of a model, none of which has been used.
    pub fn new(model: &'a Model, names: &'a Names) -> Sets<'a> {
        Sets {
            model,
            names,
            used: BTreeSet::new(),
            used_orders: BTreeSet::new(),
        }
    }

    /// Name of the sequence of a simple type's values.
    pub fn order(&mut self, ty: TypeId) -> String {
        self.used_orders.insert(ty.index());
        self.names.orders[ty.index()].clone()
    }

    /// Returns the set of a type's values. In models with undefined values, sets inside arrays and records, and those
    /// of variables, contain `undefined` if `or_undefined` is true.
    pub fn set(&mut self, ty: TypeId, or_undefined: bool) -> String {
        match self.model.ty(ty) {
            Type::Array { index, element } => {
                let (index, element) = (self.simple(*index), self.set(*element, or_undefined));
                format!("[{index} -> {element}]")
            }
            Type::Record(fields) => {
                let names = field_names(fields);
                let members = names.iter().zip(fields).map(|(name, (_, ty))| {
                    let set = self.set(*ty, or_undefined);
                    format!("{name}: {set}")
                });
                let members: Vec<String> = members.collect();
                format!("[{}]", members.join(", "))
            }
            _ => {
                let set = self.simple(ty);
                match or_undefined && self.model.undefined {
                    true => format!("({set} \\cup {{undefined}})"),
                    false => set,
                }
            }
        }
    }

    /// Returns the name of the set of a simple type's values, and notes that the module has to define it.
    pub fn simple(&mut self, ty: TypeId) -> String {
        self.used.insert(ty.index());
        self.names.set(ty).to_string()
    }

    /// Returns the definition of a simple type's set: its members.
    pub fn members(&self, ty: TypeId) -> String {
        match self.model.ty(ty) {
            Type::Range { lo, hi } => format!("{lo} .. {hi}"),
            _ => format!("{{{}}}", self.values(ty).join(", ")),
        }
    }

    /// Returns all values of a simple type, in order.
    pub fn values(&self, ty: TypeId) -> Vec<String> {
        let (lo, hi) = self.model.bounds(ty).unwrap_or((0, -1));
        (lo..=hi).map(|value| self.value(ty, value)).collect()
    }

    /// Returns a value of a simple type.
    pub fn value(&self, ty: TypeId, value: Number) -> String {
        match self.model.ty(ty) {
            Type::Bool if value == 0 => "FALSE".into(),
            Type::Bool => "TRUE".into(),
            Type::Range { .. } => number(value),
            _ => quote(&self.model.show(ty, value)),
        }
    }

    /// Returns the value with which a variable of this type begins.
    pub fn initial_value(&mut self, ty: TypeId) -> String {
        match self.model.undefined {
            true => self.undefined_value(ty),
            false => self.first_value(ty),
        }
    }

    /// Returns the value of a type in which every scalar is undefined.
    pub fn undefined_value(&mut self, ty: TypeId) -> String {
        self.uniform_value(ty, 0, &|_, _| "undefined".into())
    }

    /// Returns the first value of a type.
    pub fn first_value(&mut self, ty: TypeId) -> String {
        self.uniform_value(ty, 0, &|sets, ty| {
            let lo = sets.model.bounds(ty).map_or(0, |bounds| bounds.0);
            sets.value(ty, lo)
        })
    }

    /// Returns the value of a type in which every scalar has the value that `scalar` returns for its type. `depth` is
    /// the number of functions around it, which names the bound variable.
    fn uniform_value(
        &mut self,
        ty: TypeId,
        depth: u32,
        scalar: &dyn Fn(&Sets, TypeId) -> String,
    ) -> String {
        match self.model.ty(ty) {
            Type::Array { index, element } => {
                let index = self.simple(*index);
                let element = self.uniform_value(*element, depth + 1, scalar);
                format!("[i{depth}_ \\in {index} |-> {element}]")
            }
            Type::Record(fields) => {
                let names = field_names(fields);
                let values = names.iter().zip(fields).map(|(name, (_, ty))| {
                    let value = self.uniform_value(*ty, depth, scalar);
                    format!("{name} |-> {value}")
                });
                let values: Vec<String> = values.collect();
                format!("[{}]", values.join(", "))
            }
            _ => scalar(self, ty),
        }
    }
}

/// Returns a number; a negative one in parentheses.
pub(crate) fn number(value: Number) -> String {
    match value < 0 {
        true => format!("({value})"),
        false => value.to_string(),
    }
}

/// Returns a quoted string, with `'` in place of characters that need an escape.
pub(crate) fn quote(text: &str) -> String {
    let is_unsafe = |c: char| c == '"' || c == '\\' || c.is_control() || !c.is_ascii();
    let safe = text.chars().map(|c| if is_unsafe(c) { '\'' } else { c });
    format!("\"{}\"", safe.collect::<String>())
}
