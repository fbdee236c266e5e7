//! Types of expressions, and the expressions themselves.

use super::controller::{Scope, Side};
use super::*;
use crate::controller::{Expression, Operator};
use crate::protocol::{Type, VariableId};

/// The type of a value. Ranges and counts are all numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Number,
    Bool,
    Remote,
    Set,
}

impl Kind {
    pub(super) fn of(ty: Type) -> Kind {
        match ty {
            Type::Range { .. } | Type::Count | Type::PerRemote { .. } => Kind::Number,
            Type::Bool => Kind::Bool,
            Type::Remote => Kind::Remote,
            Type::RemoteSet => Kind::Set,
        }
    }
    fn words(self) -> &'static str {
        match self {
            Kind::Number => "a number",
            Kind::Bool => "a truth value",
            Kind::Remote => "a remote",
            Kind::Set => "a set of remotes",
        }
    }
}

/// The largest value of a type of numbers, as far as it is known without the system.
fn largest(ty: Type) -> u16 {
    match ty {
        Type::Range { max } | Type::PerRemote { max } => max,
        Type::Count => 8,
        _ => u16::MAX,
    }
}

impl<'a> Resolver<'a, '_> {
    /// An expression of the kind its place needs.
    pub(super) fn typed(
        &mut self,
        expr: &Expr<'a>,
        wanted: Kind,
        scope: &Scope<'a, '_>,
    ) -> Option<Expression> {
        let (expression, kind) = self.expression(expr, scope)?;
        if kind == wanted {
            return Some(expression);
        }
        let message = format!("expected {}, found {}", wanted.words(), kind.words());
        let mut diagnostic = Diagnostic::new(Code::Type, expr.span, message)
            .label(format!("this is {}", kind.words()));
        if (wanted, kind) == (Kind::Set, Kind::Remote) {
            diagnostic = diagnostic.note("the set that holds one remote is written `{ remote }`");
        }
        self.sink.push(diagnostic);
        None
    }

    /// An expression to be stored in a variable or field of this type.
    pub(super) fn stored(
        &mut self,
        expr: &Expr<'a>,
        ty: Type,
        scope: &Scope<'a, '_>,
    ) -> Option<Expression> {
        let value = self.typed(expr, Kind::of(ty), scope)?;
        if let (Expression::Constant(number), Kind::Number) = (&value, Kind::of(ty)) {
            if *number > largest(ty) {
                self.sink.push(
                    Diagnostic::new(
                        Code::OutOfRange,
                        expr.span,
                        format!("{number} is out of range"),
                    )
                    .label(format!("must be 0 to {}", largest(ty))),
                );
            }
        }
        Some(value)
    }

    pub(super) fn expression(
        &mut self,
        expr: &Expr<'a>,
        scope: &Scope<'a, '_>,
    ) -> Option<(Expression, Kind)> {
        Some(match &expr.kind {
            ExprKind::Number(value) => {
                let number = Number {
                    value: *value,
                    span: expr.span,
                };
                let value = ranged(number, 0, u32::from(u16::MAX), "the number is", self.sink)?;
                (Expression::Constant(value as u16), Kind::Number)
            }
            ExprKind::Word(word) => {
                return self.word(
                    Name {
                        text: word,
                        span: expr.span,
                    },
                    scope,
                )
            }
            ExprKind::Set(None) => (Expression::Empty, Kind::Set),
            ExprKind::Set(Some(element)) => (
                Expression::Singleton(Box::new(self.typed(element, Kind::Remote, scope)?)),
                Kind::Set,
            ),
            ExprKind::Count(set) => (
                Expression::Count(Box::new(self.typed(set, Kind::Set, scope)?)),
                Kind::Number,
            ),
            ExprKind::Not(inner) => (
                Expression::Not(Box::new(self.typed(inner, Kind::Bool, scope)?)),
                Kind::Bool,
            ),
            ExprKind::In(element, set) => {
                let (element, set) = (
                    self.typed(element, Kind::Remote, scope),
                    self.typed(set, Kind::Set, scope),
                );
                (
                    Expression::In(Box::new(element?), Box::new(set?)),
                    Kind::Bool,
                )
            }
            ExprKind::Binary(operator, left, right) => {
                let result = self.operands(*operator, left, right, scope)?;
                let (operator, kind) = match (operator, result.2) {
                    (Operator::Add, Kind::Set) => (Operator::Union, Kind::Set),
                    (Operator::Subtract, Kind::Set) => (Operator::Difference, Kind::Set),
                    (Operator::Add | Operator::Subtract, kind) => (*operator, kind),
                    _ => (*operator, Kind::Bool),
                };
                (
                    Expression::Binary(operator, Box::new(result.0), Box::new(result.1)),
                    kind,
                )
            }
        })
    }

    /// Both sides of a binary operator, which must be of the same kind.
    fn operands(
        &mut self,
        operator: Operator,
        left: &Expr<'a>,
        right: &Expr<'a>,
        scope: &Scope<'a, '_>,
    ) -> Option<(Expression, Expression, Kind)> {
        use Operator::*;
        let allowed: &[Kind] = match operator {
            Add | Subtract | Union | Difference => &[Kind::Number, Kind::Set],
            Equal | NotEqual => &[Kind::Number, Kind::Bool, Kind::Remote, Kind::Set],
            Less | LessOrEqual | Greater | GreaterOrEqual => &[Kind::Number],
            And | Or => &[Kind::Bool],
        };
        if let [only] = *allowed {
            let (left, right) = (
                self.typed(left, only, scope),
                self.typed(right, only, scope),
            );
            return Some((left?, right?, only));
        }
        let Some((one, kind)) = self.expression(left, scope) else {
            self.expression(right, scope);
            return None;
        };
        if !allowed.contains(&kind) {
            let message = format!(
                "expected a number or a set of remotes, found {}",
                kind.words()
            );
            self.sink.push(
                Diagnostic::new(Code::Type, left.span, message)
                    .label(format!("this is {}", kind.words())),
            );
            return None;
        }
        Some((one, self.typed(right, kind, scope)?, kind))
    }

    /// A variable, a field of the message at hand, or a word of the language.
    fn word(&mut self, name: Name<'a>, scope: &Scope<'a, '_>) -> Option<(Expression, Kind)> {
        let misplaced = |message: &str, label: &str| {
            Some(Diagnostic::new(Code::Misplaced, name.span, message).label(label))
        };
        let problem = match (name.text, scope.side) {
            ("none", _) => return Some((Expression::None, Kind::Remote)),
            ("true", _) => return Some((Expression::Constant(1), Kind::Bool)),
            ("false", _) => return Some((Expression::Constant(0), Kind::Bool)),
            ("self", Side::Remote) => return Some((Expression::Own, Kind::Remote)),
            ("sender", _) if scope.message.is_some() => {
                return Some((Expression::Sender, Kind::Remote))
            }
            ("self", Side::Home) => {
                misplaced("`self` in the home", "only a remote is one of the remotes")
            }
            ("sender", _) => misplaced(
                "no message, so no `sender`",
                "this row's event is not a message",
            ),
            ("home", _) => misplaced("`home` is not a value", "only a message can be sent to it"),
            _ => None,
        };
        if let Some(problem) = problem {
            self.sink.push(problem);
            return None;
        }
        let variable = scope.variables.index.get(name.text).copied();
        let message = scope.message.map(|message| &self.messages[message.index()]);
        let field = message.and_then(|message| {
            let place = message
                .fields
                .iter()
                .position(|field| field.name == name.text)?;
            Some((place, message.fields[place].ty, &message.name))
        });
        match (variable, field) {
            (Some(variable), None) => {
                let ty = scope.types[usize::from(variable)];
                Some((Expression::Variable(VariableId(variable)), Kind::of(ty)))
            }
            (None, Some((place, ty, _))) => Some((Expression::Field(place as u8), Kind::of(ty))),
            (Some(variable), Some((_, _, message))) => {
                let diagnostic = Diagnostic::new(
                    Code::AmbiguousName,
                    name.span,
                    format!("`{}` could mean two things", name.text),
                )
                .label(format!("the variable, or the field of `{message}`?"))
                .see(
                    scope.variables.list[usize::from(variable)].span,
                    "the variable",
                )
                .note("give the variable or the field another name");
                self.sink.push(diagnostic);
                None
            }
            (None, None) if scope.variables.partial => None,
            (None, None) => {
                let fields = message.map_or(&[][..], |message| &message.fields);
                let known = scope
                    .variables
                    .list
                    .iter()
                    .map(|known| known.text)
                    .chain(fields.iter().map(|field| field.name.as_str()));
                unknown("variable or field", name, known, self.sink);
                None
            }
        }
    }
}
