//! Expressions and places.

use super::*;

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
            Expr::Label(ty, label) => match model.types.get(ty.index()) {
                Some(NamedType {
                    ty: Type::Enum(labels),
                    ..
                }) if (*label as usize) < labels.len() => Some(Kind::Enum(*ty)),
                Some(named) => {
                    let label = self.describe_invalid_label(*label);
                    self.error(format!("type `{}` has no label {label}", named.name));
                    None
                }
                None => {
                    self.error(format!("there is no type {}", ty.0));
                    None
                }
            },
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
            Expr::Alias(id, place, e) => {
                let mut kind = None;
                self.scoped(|v| {
                    v.bind_alias(*id, place);
                    kind = v.kind_of_expr(e);
                });
                kind
            }
            Expr::Let(id, value, e) => {
                let mut kind = None;
                let expected_kind = self.kind_of_expr(value);
                self.scoped(|v| {
                    v.bring_into_scope(*id, Role::Local);
                    if let (Some(expected_kind), Some(local)) =
                        (expected_kind, model.variables.get(id.index()))
                    {
                        if model.kind_of_type(local.ty) != expected_kind {
                            v.error(format!("`{}` is given a value of another kind", local.name));
                        }
                    }
                    kind = v.kind_of_expr(e);
                });
                kind
            }
            Expr::Convert(to, inner) | Expr::IsMember(inner, to) => {
                self.kind_of_expr(inner)?;
                let from = model.type_of(inner)?;
                let related = from == *to
                    || model.offset_in_union(from, *to).is_some()
                    || model.offset_in_union(*to, from).is_some();
                if !related {
                    self.error("a value is used as a type that shares no value with its own type");
                }
                Some(match e {
                    Expr::Convert(..) => model.kind_of_type(*to),
                    _ => Kind::Bool,
                })
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
            Expr::If(c, a, b) => {
                self.expect(c, Kind::Bool, "a condition");
                let (a, b) = (self.kind_of_expr(a)?, self.kind_of_expr(b)?);
                if a != b {
                    let text = format!(
                        "the branches are {} and {}",
                        self.describe_kind(a),
                        self.describe_kind(b)
                    );
                    self.error(text);
                }
                if let Kind::Aggregate(_) = a {
                    self.error("a conditional chooses between simple values only");
                }
                Some(a)
            }
            Expr::Forall(id, body) | Expr::Exists(id, body) => {
                self.scoped(|v| {
                    v.bring_into_scope(*id, Role::Bound);
                    v.expect(body, Kind::Bool, "a quantified claim");
                });
                Some(Kind::Bool)
            }
        }
    }

    /// Kind of a binary expression, after a check of its operands; `None` if an error was reported
    /// for an operand.
    pub(super) fn kind_of_binary(&mut self, op: Operator, a: &Expr, b: &Expr) -> Option<Kind> {
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

    /// Reports an expression of another kind.
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
