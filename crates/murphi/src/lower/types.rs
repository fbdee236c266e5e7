//! Types. Arrays, records, ranges and multisets of the same shape are one type, except in CMurphi's dialect; each
//! enumeration and scalarset is a new type.

use super::{Lowering, Meaning};
use crate::ast::{Expr, Name, TypeExpr, TypeKind};
use crate::Dialect;
use cohkit_diagnostics::Span;
use cohkit_engine::model::{Expr as ModelExpr, NamedType, Number, Operator, Type, TypeId};
use cohkit_engine::validate::Kind;

/// Maximum size of a scalarset: symmetry reduction keeps a table of its values.
const MAX_SCALARSET_SIZE: Number = 1 << 20;

impl<'t> Lowering<'t, '_> {
    /// Lowers a type without a declared name. `None` after a reported error.
    pub(super) fn lower_type_expr(&mut self, ty: &TypeExpr<'t>) -> Option<TypeId> {
        self.lower_type(ty, None)
    }

    /// Lowers a type. A new type gets `name`, or its own text if `name` is `None`.
    pub(super) fn lower_type(&mut self, ty: &TypeExpr<'t>, name: Option<&str>) -> Option<TypeId> {
        let shape = match &ty.kind {
            TypeKind::Invalid => return None,
            TypeKind::Boolean => return Some(TypeId::BOOL),
            TypeKind::Named(referenced) => return self.known_type(*referenced),
            TypeKind::Enum(names) => {
                let labels = names.iter().map(|n| n.text.to_string()).collect();
                let id = self.add_type(self.type_label(ty, name), Type::Enum(labels));
                for (i, name) in names.iter().enumerate() {
                    let label = ModelExpr::Label(id, i as u32);
                    self.declare(*name, Meaning::Constant(label, Kind::Enum(id)));
                }
                return Some(id);
            }
            TypeKind::Scalarset(size) => {
                let size = self.lower_scalarset(size)?;
                return Some(self.add_type(self.type_label(ty, name), size));
            }
            TypeKind::Range(lo, hi) => self.lower_range(ty.span, lo, hi)?,
            TypeKind::Union(members) => self.lower_union(ty.span, members)?,
            TypeKind::Multiset(capacity, element) => self.lower_multiset_type(capacity, element)?,
            TypeKind::Array(index, element) => self.lower_array(index, element)?,
            TypeKind::Record(field_groups) => self.lower_record(field_groups)?,
        };
        Some(self.intern_type(self.type_label(ty, name), shape))
    }

    /// The name of a new type: that of its declaration, or its text.
    fn type_label(&self, ty: &TypeExpr<'t>, name: Option<&str>) -> String {
        if let Some(name) = name {
            return name.to_string();
        }
        let type_text = self.text_of(ty.span).split_whitespace();
        let type_text = type_text.collect::<Vec<_>>().join(" ");
        match type_text.char_indices().nth(60) {
            Some((end, _)) => format!("{}...", &type_text[..end]),
            None => type_text,
        }
    }

    /// Returns the declared type of this name, or reports that there is none.
    fn known_type(&mut self, name: Name<'t>) -> Option<TypeId> {
        match self.find(name.text).map(|s| s.meaning.clone()) {
            Some(Meaning::Type(ty)) => return Some(ty),
            Some(Meaning::Invalid) => {}
            Some(_) => {
                self.error(name.span, format!("`{}` is no type", name.text))
                    .label("expected a type");
            }
            None => self.report_unknown(name, "type", |m| matches!(m, Meaning::Type(_))),
        }
        None
    }

    /// Lowers a range, whose bounds must be constants.
    fn lower_range(&mut self, span: Span, lo: &Expr<'t>, hi: &Expr<'t>) -> Option<Type> {
        let (lo, hi) = (
            self.lower_constant_number(lo),
            self.lower_constant_number(hi),
        );
        let (lo, hi) = (lo?, hi?);
        if lo > hi {
            self.error(span, format!("the range {lo}..{hi} is empty"))
                .label("the lower bound is above the upper one");
            return None;
        }
        let values = hi.abs_diff(lo).saturating_add(1);
        if self.dialect == Dialect::CMurphi && values > i32::MAX as u64 {
            self.error(span, "in CMurphi a range has at most 2^31 - 1 values");
            return None;
        }
        Some(Type::Range { lo, hi })
    }

    /// Lowers a scalarset of 1 to [`MAX_SCALARSET_SIZE`] values.
    fn lower_scalarset(&mut self, size: &Expr<'t>) -> Option<Type> {
        let value = self.lower_constant_number(size)?;
        let bound = match value {
            ..1 => "at least 1".to_string(),
            1..=MAX_SCALARSET_SIZE => return Some(Type::Scalarset(value as u32)),
            _ => format!("at most {MAX_SCALARSET_SIZE}"),
        };
        self.error(size.span, format!("a scalarset of {value} values"))
            .label(bound);
        None
    }

    /// Lowers a union of different enumerations and scalarsets.
    fn lower_union(&mut self, span: Span, members: &[TypeExpr<'t>]) -> Option<Type> {
        let ids: Vec<Option<TypeId>> = members.iter().map(|m| self.lower_type_expr(m)).collect();
        let mut member_types = Vec::new();
        for (id, member) in ids.into_iter().zip(members) {
            let id = id?;
            match self.model.ty(id) {
                Type::Enum(_) | Type::Scalarset(_) if member_types.contains(&id) => {
                    self.error(member.span, "a member of this union occurs twice");
                    return None;
                }
                Type::Enum(_) | Type::Scalarset(_) => member_types.push(id),
                _ => {
                    let message = "a union is of enumerations and scalarsets alone";
                    self.error(member.span, message).label("neither of them");
                    return None;
                }
            }
        }
        if member_types.len() < 2 {
            self.require_dialect(Dialect::Rumur, span, "unions of a single type");
        }
        Some(Type::Union(member_types))
    }

    /// Lowers a multiset, whose capacity is a constant of at least 1.
    fn lower_multiset_type(&mut self, capacity: &Expr<'t>, element: &TypeExpr<'t>) -> Option<Type> {
        let (value, span) = (self.lower_constant_number(capacity), capacity.span);
        let element = self.lower_type_expr(element)?;
        let value = value?;
        let bound = match u32::try_from(value) {
            Ok(capacity) if capacity > 0 => return Some(Type::Multiset { capacity, element }),
            _ if value < 1 => "at least 1",
            _ => "at most 2^32 - 1",
        };
        self.error(span, format!("a multiset of at most {value} elements"))
            .label(bound);
        None
    }

    /// Lowers an array, whose index must be of a simple type.
    fn lower_array(&mut self, index: &TypeExpr<'t>, element: &TypeExpr<'t>) -> Option<Type> {
        let (i, element) = (self.lower_type_expr(index), self.lower_type_expr(element));
        let (i, element) = (i?, element?);
        if self.model.bounds(i).is_none() {
            self.error(index.span, "an array's index is of a simple type")
                .label("this type has parts");
            return None;
        }
        Some(Type::Array { index: i, element })
    }

    /// Lowers a record, whose fields have different names.
    fn lower_record(&mut self, field_groups: &[(Vec<Name<'t>>, TypeExpr<'t>)]) -> Option<Type> {
        let mut fields: Vec<(String, TypeId)> = Vec::new();
        let mut is_valid = true;
        for (names, ty) in field_groups {
            let ty = self.lower_type_expr(ty);
            for name in names {
                if fields.iter().any(|f| f.0 == name.text) {
                    let message = format!("the field `{}` occurs twice", name.text);
                    self.error(name.span, message);
                    is_valid = false;
                }
                match ty {
                    Some(ty) => fields.push((name.text.to_string(), ty)),
                    None => is_valid = false,
                }
            }
        }
        is_valid.then_some(Type::Record(fields))
    }

    /// Adds a type to the model.
    fn add_type(&mut self, name: String, ty: Type) -> TypeId {
        self.model.types.push(NamedType { name, ty });
        TypeId(self.model.types.len() as u32 - 1)
    }

    /// The type of this shape. A new type gets the name.
    pub(super) fn intern_type(&mut self, name: String, ty: Type) -> TypeId {
        let shares_types = self.dialect != Dialect::CMurphi;
        let existing = self.model.types.iter().position(|named| named.ty == ty);
        match existing {
            Some(existing) if shares_types => TypeId(existing as u32),
            _ => self.add_type(name, ty),
        }
    }

    /// The type of any computed number.
    pub(super) fn number_type(&mut self) -> TypeId {
        let (lo, hi) = self.model.numbers;
        self.intern_type("number".into(), Type::Range { lo, hi })
    }

    /// The type of a local variable for a value of this kind.
    pub(super) fn type_of_kind(&mut self, kind: Kind) -> TypeId {
        match kind {
            Kind::Bool => TypeId::BOOL,
            Kind::Int => self.number_type(),
            Kind::Enum(ty) | Kind::Aggregate(ty) => ty,
        }
    }

    /// A kind of value, for messages.
    pub(super) fn kind_name(&self, kind: Kind) -> String {
        match kind {
            Kind::Bool => "a boolean".into(),
            Kind::Int => "a number".into(),
            Kind::Enum(ty) | Kind::Aggregate(ty) => {
                format!("a `{}`", self.model.types[ty.index()].name)
            }
        }
    }

    /// The kind of value that a variable of a type holds, for messages.
    pub(super) fn type_name(&self, ty: TypeId) -> String {
        self.kind_name(self.model.kind_of_type(ty))
    }

    /// The value of an expression without variables; `None` if it has variables.
    pub(super) fn fold(&self, e: &ModelExpr) -> Option<Number> {
        fold(e, self.model.numbers)
    }

    /// The value of an expression that must be constant.
    pub(super) fn lower_constant(&mut self, e: &Expr<'t>) -> Option<(ModelExpr, Kind)> {
        let typed = self.lower_expr(e)?;
        match self.fold(&typed.expr) {
            Some(value) => Some((literal(value, typed.kind)?, typed.kind)),
            None => {
                self.error(e.span, "this must be constant")
                    .label("its value is not known before the model runs");
                None
            }
        }
    }

    /// The value of a number that must be constant.
    pub(super) fn lower_constant_number(&mut self, e: &Expr<'t>) -> Option<Number> {
        match self.lower_constant(e)? {
            (ModelExpr::Int(n), Kind::Int) => Some(n),
            (_, kind) => {
                let kind = self.kind_name(kind);
                self.error(e.span, format!("a number is needed here, not {kind}"));
                None
            }
        }
    }
}

/// The constant of a kind with this code.
pub(super) fn literal(value: Number, kind: Kind) -> Option<ModelExpr> {
    Some(match kind {
        Kind::Bool => ModelExpr::Bool(value != 0),
        Kind::Int => ModelExpr::Int(value),
        Kind::Enum(ty) => ModelExpr::Label(ty, value as u32),
        Kind::Aggregate(_) => return None,
    })
}

/// The value of an expression without variables; `None` if it has variables.
fn fold(e: &ModelExpr, numbers: (Number, Number)) -> Option<Number> {
    use Operator::*;
    let fold = |e: &ModelExpr| fold(e, numbers);
    match e {
        ModelExpr::Int(n) => Some(*n),
        ModelExpr::Bool(b) => Some((*b).into()),
        ModelExpr::Label(_, n) => Some((*n).into()),
        ModelExpr::Line(_, e) => fold(e),
        ModelExpr::Not(e) => Some(1 - fold(e)?),
        ModelExpr::Negate(e) => Subtract.of(0, fold(e)?, numbers),
        ModelExpr::If(c, a, b) => fold(if fold(c)? != 0 { a } else { b }),
        ModelExpr::Binary(op, a, b) => {
            let a = fold(a)?;
            match (op, a != 0) {
                (And, false) => return Some(0),
                (Or, true) | (Implies, false) => return Some(1),
                _ => {}
            }
            let b = fold(b)?;
            op.of(a, b, numbers)
        }
        _ => None,
    }
}
