//! Types, variables and tables.

use super::{Validator, MAX_SLOTS};
use crate::model::{Role, Type, TypeId};
use rustc_hash::FxHashSet;

impl Validator<'_> {
    /// Checks that types refer to earlier types only, have sensible sizes, and together need at
    /// most [`MAX_SLOTS`] slots.
    pub(super) fn check_types(&mut self) {
        let model = self.model;
        self.location = "types".into();
        if model.types.first().map(|t| &t.ty) != Some(&Type::Bool) {
            self.error("the first type must be the booleans");
        }
        // Slots of a value of each type.
        let mut slots: Vec<u64> = Vec::new();
        for named in &model.types {
            self.location = format!("type `{}`", named.name);
            let size = self.check_type(&named.ty, &slots);
            if size > MAX_SLOTS {
                self.error(format!(
                    "a value would have {size} parts; the maximum is {MAX_SLOTS}"
                ));
            }
            slots.push(size.min(MAX_SLOTS));
        }
        let total: u64 = (model.variables.iter())
            .filter_map(|v| slots.get(v.ty.index()))
            .sum();
        if total > MAX_SLOTS {
            self.location = "variables".into();
            self.error(format!(
                "they have {total} parts together; the maximum is {MAX_SLOTS}"
            ));
        }
    }

    /// Checks a type. Returns the number of slots of a value; `slots` has those of the earlier types, which alone the
    /// type may refer to.
    fn check_type(&mut self, ty: &Type, slots: &[u64]) -> u64 {
        let model = self.model;
        match ty {
            Type::Bool => 1,
            Type::Enum(labels) => {
                if labels.is_empty() {
                    self.error("an enumeration needs at least one label");
                }
                let mut known_names = FxHashSet::default();
                for label in labels {
                    if !known_names.insert(label) {
                        self.error(format!("the label `{label}` occurs twice"));
                    }
                }
                1
            }
            Type::Range { lo, hi } => {
                if lo > hi {
                    self.error(format!("the range {lo}..{hi} is empty"));
                } else if *lo < model.numbers.0 || model.numbers.1 < *hi {
                    let bits = model.number_bits();
                    self.error(format!("the range {lo}..{hi} exceeds {bits} bits"));
                }
                1
            }
            Type::Array { index, element } => self.check_array(*index, *element, slots),
            Type::Record(fields) => self.check_record(fields, slots),
            Type::Scalarset(count) => {
                if !(1..=i32::MAX as u32).contains(count) {
                    self.error("a scalarset has 1 to 2^31 - 1 values");
                }
                1
            }
            Type::Union(members) => {
                self.check_union(members, slots.len());
                1
            }
            Type::Multiset { capacity, element } => {
                if *capacity == 0 {
                    self.error("a multiset needs room for an element");
                }
                match slots.get(element.index()) {
                    Some(&element_slots) => (*capacity as u64).saturating_mul(1 + element_slots),
                    None => {
                        self.error("a multiset may refer only to an earlier type");
                        1
                    }
                }
            }
        }
    }

    /// Checks an array; returns the number of its slots, as [`Validator::check_type`] does.
    fn check_array(&mut self, index: TypeId, element: TypeId, slots: &[u64]) -> u64 {
        match slots.get(element.index()) {
            Some(&element_slots) if index.index() < slots.len() => {
                if self.model.bounds(index).is_some() {
                    return self.model.count(index).saturating_mul(element_slots);
                }
                self.error("an array's index must be a simple type");
            }
            _ => self.error("an array may refer only to earlier types"),
        }
        1
    }

    /// Checks a record; returns the number of its slots, as [`Validator::check_type`] does.
    fn check_record(&mut self, fields: &[(String, TypeId)], slots: &[u64]) -> u64 {
        let mut known_names = FxHashSet::default();
        let mut size = 0;
        for (name, ty) in fields {
            if !known_names.insert(name) {
                self.error(format!("the field `{name}` occurs twice"));
            }
            match slots.get(ty.index()) {
                Some(field_slots) => size += field_slots,
                None => self.error("a record may refer only to earlier types"),
            }
        }
        size
    }

    /// Checks the members of a union; `earlier_types` is the number of types that they may be.
    fn check_union(&mut self, members: &[TypeId], earlier_types: usize) {
        let model = self.model;
        let is_valid_member = |&member: &TypeId| {
            member.index() < earlier_types
                && matches!(model.ty(member), Type::Enum(_) | Type::Scalarset(_))
        };
        if !members.iter().all(is_valid_member) {
            self.error("a union is of earlier enumerations and scalarsets");
        } else if members.is_empty() {
            self.error("a union needs a member");
        } else {
            let count = |&m: &TypeId| model.bounds(m).map_or(0, |b| b.1 as u64 + 1);
            if members.iter().map(count).sum::<u64>() > i32::MAX as u64 {
                self.error("a union has more than 2^31 - 1 values");
            }
            if (1..members.len()).any(|i| members[..i].contains(&members[i])) {
                self.error("a union has a member twice");
            }
        }
    }

    /// Checks the types of variables, and that names of state variables are unique.
    pub(super) fn check_variables(&mut self) {
        let mut known_names = FxHashSet::default();
        for variable in &self.model.variables {
            self.location = format!("variable `{}`", variable.name);
            if variable.ty.index() >= self.model.types.len() {
                self.error("its type does not exist");
            } else if variable.role == Role::Bound && self.model.bounds(variable.ty).is_none() {
                self.error("a bound variable needs a simple type");
            }
            if variable.role == Role::State && !known_names.insert(&variable.name) {
                self.error("another state variable has this name");
            }
        }
    }

    /// Checks that tables have simple types and one value in range per index.
    pub(super) fn check_tables(&mut self) {
        let model = self.model;
        for table in &model.tables {
            self.location = format!("table `{}`", table.name);
            let bounds_of = |id: TypeId| {
                (id.index() < model.types.len())
                    .then(|| model.bounds(id))
                    .flatten()
            };
            let (Some(_), Some((min_value, max_value))) =
                (bounds_of(table.index), bounds_of(table.result))
            else {
                self.error("index and result must be simple types");
                continue;
            };
            let expected_count = model.count(table.index);
            if table.values.len() as u64 != expected_count {
                self.error(format!(
                    "it has {} values where its index has {expected_count}",
                    table.values.len()
                ));
            }
            if let Some(invalid_value) =
                (table.values.iter()).find(|&&v| !(min_value..=max_value).contains(&v.into()))
            {
                self.error(format!(
                    "the value {invalid_value} is outside {min_value}..{max_value}"
                ));
            }
        }
    }
}
