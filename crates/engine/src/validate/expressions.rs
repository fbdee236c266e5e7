//! Expressions and places.

use super::{Kind, Validator};
use crate::model::{Expr, NamedType, Operator, Place, Role, Step, Type, TypeId, VariableId};

impl Validator<'_> {
    /// Returns a label's name if it is known, and otherwise its position.
    fn describe_invalid_label(&self, position: u32) -> String {
        match self.unknown_labels.get((u32::MAX - position) as usize) {
            Some(name) => format!("`{name}`"),
            None => format!("at position {position}"),
        }
    }

    /// Kind of an expression; `None` after a reported error.
    pub(super) fn kind_of_expr(&mut self, e: &Expr) -> Option<Kind> {
        let model = self.model;
        match e {
            Expr::Int(_) => Some(Kind::Int),
            Expr::Bool(_) => Some(Kind::Bool),
            Expr::Label(ty, label) => self.kind_of_label(*ty, *label),
            Expr::Read(place) | Expr::Peek(place) => self.kind_of_place(place),
            Expr::Undefined(ty) => {
                self.require_undefined_values();
                Some(model.kind_of_type(*ty))
            }
            Expr::IsUndefined(place) => {
                if let Some(Kind::Aggregate(_)) = self.kind_of_place(place) {
                    self.error("only values of simple types can be undefined");
                }
                Some(Kind::Bool)
            }
            Expr::ForallSteps(id, steps, body) | Expr::ExistsSteps(id, steps, body) => {
                self.scoped(|v| {
                    v.check_steps(*id, steps);
                    v.expect(body, Kind::Bool, "a quantified claim");
                });
                Some(Kind::Bool)
            }
            Expr::Call(id, arguments) => {
                self.check_call(*id, arguments);
                let result = model.functions.get(id.index())?.result;
                if result.is_none() {
                    self.error("a procedure is called where a value is needed");
                }
                result.map(|ty| model.kind_of_type(ty))
            }
            Expr::Alias(id, place, e) => self.scoped(|v| {
                v.bind_alias(*id, place);
                v.kind_of_expr(e)
            }),
            Expr::Let(id, value, e) => self.kind_of_let(*id, value, e),
            Expr::Convert(to, inner) => {
                self.check_union_conversion(inner, *to)?;
                Some(model.kind_of_type(*to))
            }
            Expr::IsMember(inner, member) => {
                self.check_union_conversion(inner, *member)?;
                Some(Kind::Bool)
            }
            Expr::Present(place, index) => {
                self.element_type(place);
                self.expect(index, Kind::Int, "a slot");
                Some(Kind::Bool)
            }
            Expr::Count(id, place, claim) => {
                self.element_type(place);
                self.scoped(|v| {
                    v.bring_into_scope(*id, Role::Bound);
                    v.expect(claim, Kind::Bool, "a claim");
                });
                Some(Kind::Int)
            }
            Expr::Line(_, e) => self.kind_of_expr(e),
            Expr::Table(id, index) => {
                let Some(table) = model.tables.get(id.index()) else {
                    self.error(format!("there is no table {}", id.0));
                    return None;
                };
                self.expect(index, model.kind_of_type(table.index), "a table's index");
                Some(model.kind_of_type(table.result))
            }
            Expr::Not(a) => {
                self.expect(a, Kind::Bool, "the operand of `not`");
                Some(Kind::Bool)
            }
            Expr::Negate(a) => {
                self.expect(a, Kind::Int, "the operand of the minus sign");
                Some(Kind::Int)
            }
            Expr::Binary(op, a, b) => self.kind_of_binary(*op, a, b),
            Expr::If(c, a, b) => self.kind_of_conditional(c, a, b),
            Expr::Forall(id, body) | Expr::Exists(id, body) => {
                self.scoped(|v| {
                    v.bring_into_scope(*id, Role::Bound);
                    v.expect(body, Kind::Bool, "a quantified claim");
                });
                Some(Kind::Bool)
            }
        }
    }

    /// Kind of a label of an enumeration; `None` if there is no such type or label.
    fn kind_of_label(&mut self, ty: TypeId, label: u32) -> Option<Kind> {
        match self.model.types.get(ty.index()) {
            Some(NamedType {
                ty: Type::Enum(labels),
                ..
            }) if (label as usize) < labels.len() => Some(Kind::Enum(ty)),
            Some(named) => {
                let label = self.describe_invalid_label(label);
                self.error(format!("type `{}` has no label {label}", named.name));
                None
            }
            None => {
                self.error(format!("there is no type {}", ty.0));
                None
            }
        }
    }

    /// Kind of an expression in which a local variable has a value, after a check of the value's kind.
    fn kind_of_let(&mut self, id: VariableId, value: &Expr, e: &Expr) -> Option<Kind> {
        let model = self.model;
        let value_kind = self.kind_of_expr(value);
        self.scoped(|v| {
            v.bring_into_scope(id, Role::Local);
            if let (Some(value_kind), Some(local)) = (value_kind, model.variables.get(id.index())) {
                if model.kind_of_type(local.ty) != value_kind {
                    v.error(format!("`{}` is given a value of another kind", local.name));
                }
            }
            v.kind_of_expr(e)
        })
    }

    /// Checks that the type of a value and `to` are equal, or one is a member of the other; `None` if the value has no
    /// kind or type.
    fn check_union_conversion(&mut self, value: &Expr, to: TypeId) -> Option<()> {
        self.kind_of_expr(value)?;
        let from = self.model.type_of(value)?;
        let related = from == to
            || self.model.offset_in_union(from, to).is_some()
            || self.model.offset_in_union(to, from).is_some();
        if !related {
            self.error("a value is used as a type that shares no value with its own type");
        }
        Some(())
    }

    /// Kind of the branches of a conditional, after a check that they have the same one.
    fn kind_of_conditional(&mut self, condition: &Expr, then: &Expr, or: &Expr) -> Option<Kind> {
        self.expect(condition, Kind::Bool, "a condition");
        let (then, or) = (self.kind_of_expr(then)?, self.kind_of_expr(or)?);
        if then != or {
            let text = format!(
                "the branches are {} and {}",
                self.describe_kind(then),
                self.describe_kind(or)
            );
            self.error(text);
        }
        if let Kind::Aggregate(_) = then {
            self.error("a conditional chooses between simple values only");
        }
        Some(then)
    }

    /// Kind of a binary expression, after a check of its operands; `None` if an error was reported
    /// for an operand.
    fn kind_of_binary(&mut self, op: Operator, a: &Expr, b: &Expr) -> Option<Kind> {
        use Operator::*;
        match op {
            _ if op.is_arithmetic() => {
                self.expect(a, Kind::Int, "an operand");
                self.expect(b, Kind::Int, "an operand");
                Some(Kind::Int)
            }
            Less | LessOrEqual | Greater | GreaterOrEqual => {
                self.expect(a, Kind::Int, "an operand");
                self.expect(b, Kind::Int, "an operand");
                Some(Kind::Bool)
            }
            And | Or | Implies => {
                self.expect(a, Kind::Bool, "an operand");
                self.expect(b, Kind::Bool, "an operand");
                Some(Kind::Bool)
            }
            _ => {
                let (a, b) = (self.kind_of_expr(a), self.kind_of_expr(b));
                if let (Some(a), Some(b)) = (a, b) {
                    if a != b {
                        let text = format!(
                            "{} is compared with {}",
                            self.describe_kind(a),
                            self.describe_kind(b)
                        );
                        self.error(text);
                    }
                }
                Some(Kind::Bool)
            }
        }
    }

    /// Kind of a place; `None` after a reported error.
    pub(super) fn kind_of_place(&mut self, place: &Place) -> Option<Kind> {
        let model = self.model;
        let Some(variable) = model.variables.get(place.variable.index()) else {
            self.error(format!("there is no variable {}", place.variable.0));
            return None;
        };
        if variable.role != Role::State && !self.scope.contains(&place.variable) {
            self.error(format!("`{}` is used outside its scope", variable.name));
        }
        let mut ty = variable.ty;
        for step in &place.path {
            ty = match (model.ty(ty), step) {
                (Type::Array { index, element }, Step::Index(e)) => {
                    let expected_kind = model.kind_of_type(*index);
                    self.expect(e, expected_kind, "an index");
                    *element
                }
                (Type::Record(fields), Step::Field(name)) => match fields
                    .iter()
                    .find(|f| f.0 == *name)
                {
                    Some(field) => field.1,
                    None => {
                        let known: Vec<_> = fields.iter().map(|f| f.0.as_str()).collect();
                        self.error(format!("no field `{name}`; there are {}", known.join(", ")));
                        return None;
                    }
                },
                (Type::Multiset { element, .. }, Step::Index(e)) => {
                    self.expect(e, Kind::Int, "a slot");
                    *element
                }
                (_, Step::Index(_)) => {
                    self.error(format!(
                        "a part of `{}` is indexed but is no array",
                        variable.name
                    ));
                    return None;
                }
                (_, Step::Field(name)) => {
                    self.error(format!(
                        "a part of `{}` has no fields, so no `{name}`",
                        variable.name
                    ));
                    return None;
                }
            };
        }
        Some(model.kind_of_type(ty))
    }

    /// Reports an expression of another kind than the expected one. `description` is the subject of the message.
    pub(super) fn expect(&mut self, e: &Expr, expected_kind: Kind, description: &str) {
        if let Some(kind) = self.kind_of_expr(e) {
            if kind != expected_kind {
                let text = format!(
                    "{description} must be {} but is {}",
                    self.describe_kind(expected_kind),
                    self.describe_kind(kind)
                );
                self.error(text);
            }
        }
    }

    /// Describes a kind with its article, for messages.
    pub(super) fn describe_kind(&self, kind: Kind) -> String {
        match kind {
            Kind::Bool => "a truth value".into(),
            Kind::Int => "a number".into(),
            Kind::Enum(id) | Kind::Aggregate(id) => {
                format!("a `{}`", self.model.types[id.index()].name)
            }
        }
    }
}
