//! Sets of values and single values: types, first values, literals.

use crate::names::field_names;
use crate::translator::Translator;
use cohkit_engine::model::{Number, Type, TypeId};

impl Translator<'_> {
    /// Returns the set of a type's values. In models with undefined values, sets inside arrays and records, and those
    /// of variables, contain `undefined` if `or_undefined` is true.
    pub(crate) fn set(&mut self, ty: TypeId, or_undefined: bool) -> String {
        match self.model.ty(ty) {
            Type::Array { index, element } => {
                let (index, element) = (self.simple_set(*index), self.set(*element, or_undefined));
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
                let set = self.simple_set(ty);
                match or_undefined && self.model.undefined {
                    true => format!("({set} \\cup {{undefined}})"),
                    false => set,
                }
            }
        }
    }

    /// Returns the name of the set of a simple type's values, and notes that the module has to define it.
    pub(crate) fn simple_set(&mut self, ty: TypeId) -> String {
        self.used_sets.insert(ty.index());
        self.names.set(ty).to_string()
    }

    /// Returns the definition of a simple type's set: its members.
    pub(crate) fn members(&self, ty: TypeId) -> String {
        match self.model.ty(ty) {
            Type::Range { lo, hi } => format!("{lo} .. {hi}"),
            _ => format!("{{{}}}", self.values(ty).join(", ")),
        }
    }

    /// Returns all values of a simple type, in order.
    pub(crate) fn values(&self, ty: TypeId) -> Vec<String> {
        let (lo, hi) = self.model.bounds(ty).unwrap_or((0, -1));
        (lo..=hi).map(|value| self.value(ty, value)).collect()
    }

    /// Returns a value of a simple type.
    pub(crate) fn value(&self, ty: TypeId, value: Number) -> String {
        match self.model.ty(ty) {
            Type::Bool if value == 0 => "FALSE".into(),
            Type::Bool => "TRUE".into(),
            Type::Range { .. } => number(value),
            _ => quote(&self.model.show(ty, value)),
        }
    }

    /// Returns the value with which a variable of this type begins.
    pub(crate) fn initial_value(&mut self, ty: TypeId) -> String {
        match self.model.undefined {
            true => self.uniform_value(ty, &|_, _| "undefined".into()),
            false => self.first_value(ty),
        }
    }

    /// Returns the first value of a type.
    pub(crate) fn first_value(&mut self, ty: TypeId) -> String {
        self.uniform_value(ty, &|translator, ty| {
            let lo = translator.model.bounds(ty).map_or(0, |bounds| bounds.0);
            translator.value(ty, lo)
        })
    }

    /// Returns the value of a type in which every scalar has the value that `scalar` returns for its type.
    pub(crate) fn uniform_value(
        &mut self,
        ty: TypeId,
        scalar: &dyn Fn(&Translator, TypeId) -> String,
    ) -> String {
        match self.model.ty(ty) {
            Type::Array { index, element } => {
                let (index, name) = (self.simple_set(*index), self.fresh("i"));
                let element = self.uniform_value(*element, scalar);
                format!("[{name} \\in {index} |-> {element}]")
            }
            Type::Record(fields) => {
                let names = field_names(fields);
                let values = names.iter().zip(fields).map(|(name, (_, ty))| {
                    let value = self.uniform_value(*ty, scalar);
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
