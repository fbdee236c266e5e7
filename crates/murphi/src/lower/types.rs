//! Types. Arrays, records, ranges and multisets of the same shape are one type, but in CMurphi's dialect;
//! enumerations and scalarsets are new ones wherever they are written.

use super::*;

/// Symmetry keeps a table of a scalarset's values.
const LARGEST_SCALARSET: Number = 1 << 20;

impl<'t> Lower<'t, '_> {
    pub(super) fn type_expr(&mut self, ty: &TypeExpr<'t>) -> Option<TypeId> {
        self.type_named(ty, None)
    }

    /// A type, which gets a name if it is a new one.
    pub(super) fn type_named(&mut self, ty: &TypeExpr<'t>, name: Option<&str>) -> Option<TypeId> {
        let label = |l: &Self| match name {
            Some(name) => name.to_string(),
            None => {
                let words = l.words(ty.span).split_whitespace();
                let words = words.collect::<Vec<_>>().join(" ");
                match words.char_indices().nth(60) {
                    Some((at, _)) => format!("{}...", &words[..at]),
                    None => words,
                }
            }
        };
        match &ty.kind {
            TypeKind::Wrong => None,
            TypeKind::Boolean => Some(TypeId::BOOL),
            TypeKind::Named(name) => match self.find(name.text).map(|s| s.meaning.clone()) {
                Some(Meaning::Type(ty)) => Some(ty),
                Some(Meaning::Wrong) => None,
                Some(_) => {
                    self.error(name.span, format!("`{}` is no type", name.text))
                        .label("expected a type");
                    None
                }
                None => {
                    self.unknown(*name, "type", |m| matches!(m, Meaning::Type(_)));
                    None
                }
            },
            TypeKind::Enum(names) => {
                let labels: Vec<String> = names.iter().map(|n| n.text.to_string()).collect();
                let label = label(self);
                let id = self.new_type(label, Type::Enum(labels));
                let mut seen: Vec<&str> = Vec::new();
                for (i, name) in names.iter().enumerate() {
                    self.declare(
                        *name,
                        Meaning::Constant(M::Label(id, i as u32), Kind::Enum(id)),
                    );
                    seen.push(name.text);
                }
                Some(id)
            }
            TypeKind::Range(lo, hi) => {
                let (a, b) = (self.constant_number(lo), self.constant_number(hi));
                let (lo, hi) = (a?, b?);
                if lo > hi {
                    self.error(ty.span, format!("the range {lo}..{hi} is empty"))
                        .label("the lower bound is above the upper one");
                    return None;
                }
                let values = hi.abs_diff(lo).saturating_add(1);
                if self.dialect == Dialect::CMurphi && values > i32::MAX as u64 {
                    self.error(ty.span, "in CMurphi a range has at most 2^31 - 1 values");
                    return None;
                }
                let label = label(self);
                Some(self.intern(label, Type::Range { lo, hi }))
            }
            TypeKind::Scalarset(size) => {
                let (value, span) = (self.constant_number(size)?, size.span);
                if value < 1 {
                    self.error(span, format!("a scalarset of {value} values"))
                        .label("at least 1");
                    return None;
                }
                if value > LARGEST_SCALARSET {
                    self.error(span, format!("a scalarset of {value} values"))
                        .label(format!("at most {LARGEST_SCALARSET}"));
                    return None;
                }
                let label = label(self);
                Some(self.new_type(label, Type::Scalarset(value as u32)))
            }
            TypeKind::Union(members) => {
                let ids: Vec<Option<TypeId>> = members.iter().map(|m| self.type_expr(m)).collect();
                let mut flat = Vec::new();
                for (id, member) in ids.into_iter().zip(members) {
                    let id = id?;
                    match self.model.ty(id) {
                        Type::Enum(_) | Type::Scalarset(_) if flat.contains(&id) => {
                            self.error(member.span, "a member of this union stands twice");
                            return None;
                        }
                        Type::Enum(_) | Type::Scalarset(_) => flat.push(id),
                        _ => {
                            self.error(
                                member.span,
                                "a union is of enumerations and scalarsets alone",
                            )
                            .label("neither of them");
                            return None;
                        }
                    }
                }
                if flat.len() < 2 {
                    self.only(Dialect::Rumur, ty.span, "unions of a single type");
                }
                let label = label(self);
                Some(self.intern(label, Type::Union(flat)))
            }
            TypeKind::Multiset(capacity, element) => {
                let (value, span) = (self.constant_number(capacity), capacity.span);
                let element = self.type_expr(element)?;
                let capacity = value?;
                if capacity < 1 {
                    self.error(span, format!("a multiset of at most {capacity} elements"))
                        .label("at least 1");
                    return None;
                }
                let Ok(capacity) = u32::try_from(capacity) else {
                    self.error(span, format!("a multiset of at most {capacity} elements"))
                        .label("at most 2^32 - 1");
                    return None;
                };
                let label = label(self);
                Some(self.intern(label, Type::Multiset { capacity, element }))
            }
            TypeKind::Array(index, element) => {
                let (i, e) = (self.type_expr(index), self.type_expr(element));
                let (i, element) = (i?, e?);
                if self.model.bounds(i).is_none() {
                    self.error(index.span, "an array's index is of a simple type")
                        .label("this type has parts");
                    return None;
                }
                let label = label(self);
                let index = i;
                Some(self.intern(label, Type::Array { index, element }))
            }
            TypeKind::Record(parts) => {
                let mut fields: Vec<(String, TypeId)> = Vec::new();
                let mut whole = true;
                for (names, ty) in parts {
                    let ty = self.type_expr(ty);
                    for name in names {
                        if fields.iter().any(|f| f.0 == name.text) {
                            self.error(
                                name.span,
                                format!("the field `{}` stands twice", name.text),
                            );
                            whole = false;
                        }
                        match ty {
                            Some(ty) => fields.push((name.text.to_string(), ty)),
                            None => whole = false,
                        }
                    }
                }
                let label = label(self);
                whole.then(|| self.intern(label, Type::Record(fields)))
            }
        }
    }

    fn new_type(&mut self, name: String, ty: Type) -> TypeId {
        self.model.types.push(NamedType { name, ty });
        TypeId(self.model.types.len() as u32 - 1)
    }

    /// The type of this shape.
    pub(super) fn intern(&mut self, name: String, ty: Type) -> TypeId {
        let shared = self.dialect != Dialect::CMurphi;
        let known = self.model.types.iter().position(|named| named.ty == ty);
        match known {
            Some(known) if shared => TypeId(known as u32),
            _ => self.new_type(name, ty),
        }
    }

    /// The type of any number that an expression computes.
    pub(super) fn any_number(&mut self) -> TypeId {
        let (lo, hi) = self.model.numbers;
        self.intern("number".into(), Type::Range { lo, hi })
    }

    /// The type that a local variable needs for a value.
    pub(super) fn type_for(&mut self, kind: Kind) -> TypeId {
        match kind {
            Kind::Bool => TypeId::BOOL,
            Kind::Int => self.any_number(),
            Kind::Enum(ty) | Kind::Aggregate(ty) => ty,
        }
    }

    /// A kind of value, for people.
    pub(super) fn kind_name(&self, kind: Kind) -> String {
        match kind {
            Kind::Bool => "a boolean".into(),
            Kind::Int => "a number".into(),
            Kind::Enum(ty) | Kind::Aggregate(ty) => {
                format!("a `{}`", self.model.types[ty.index()].name)
            }
        }
    }

    /// What a variable of a type holds, for people.
    pub(super) fn type_name(&self, ty: TypeId) -> String {
        self.kind_name(self.model.kind_of_type(ty))
    }

    /// The value of an expression without variables, if it has one.
    pub(super) fn fold(&self, e: &M) -> Option<Number> {
        fold(e, self.model.numbers)
    }

    /// The value of an expression that must be constant.
    pub(super) fn constant(&mut self, e: &Expr<'t>) -> Option<(M, Kind)> {
        let typed = self.expr(e)?;
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
    pub(super) fn constant_number(&mut self, e: &Expr<'t>) -> Option<Number> {
        match self.constant(e)? {
            (M::Int(n), Kind::Int) => Some(n),
            (_, kind) => {
                let kind = self.kind_name(kind);
                self.error(e.span, format!("a number is needed here, not {kind}"));
                None
            }
        }
    }
}

/// A constant of a kind.
pub(super) fn literal(value: Number, kind: Kind) -> Option<M> {
    Some(match kind {
        Kind::Bool => M::Bool(value != 0),
        Kind::Int => M::Int(value),
        Kind::Enum(ty) => M::Label(ty, value as u32),
        Kind::Aggregate(_) => return None,
    })
}

/// The value of an expression without variables, if it has one.
fn fold(e: &M, numbers: (Number, Number)) -> Option<Number> {
    use Operator::*;
    let fold = |e: &M| fold(e, numbers);
    match e {
        M::Int(n) => Some(*n),
        M::Bool(b) => Some((*b).into()),
        M::Label(_, n) => Some((*n).into()),
        M::Line(_, e) => fold(e),
        M::Not(e) => Some(1 - fold(e)?),
        M::Negate(e) => Subtract.of(0, fold(e)?, numbers),
        M::If(c, a, b) => fold(if fold(c)? != 0 { a } else { b }),
        M::Binary(op, a, b) => {
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
