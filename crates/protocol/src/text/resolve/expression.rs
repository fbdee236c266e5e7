//! Types of expressions, and the expressions themselves.

use super::scope::{Kind, Scope, Side};
use super::{number_in_range, report_unknown, Resolver};
use crate::controller::{
    Expression, HomeSet, HomeSetQuery, Initial, Operator, Set, Value, MEMORY_WRITES,
};
use crate::protocol::{End, System, Type, VariableId};
use crate::remotes::KindId;
use crate::text::ast::{Expr, ExprKind, Name, Number};
use crate::text::diagnostic::{Code, Diagnostic};
use crate::text::Mention;

/// Resolved expression: a single value with its kind, or a set.
#[derive(Debug)]
pub(super) enum Operand {
    /// A value that is not a set, with its kind.
    Single(Expression, Kind),
    /// A set of remotes.
    Set(Set),
    /// A set of homes.
    Homes(HomeSet),
}

impl Operand {
    /// Returns the kind of the value.
    fn kind(&self) -> Kind {
        match self {
            Operand::Single(_, kind) => *kind,
            Operand::Set(_) => Kind::Set,
            Operand::Homes(_) => Kind::HomeSet,
        }
    }

    /// Operand for a variable or field of this type.
    fn of(ty: Type, single: Expression, set: Set) -> Operand {
        match Kind::of(ty) {
            Kind::Set => Operand::Set(set),
            Kind::HomeSet => Operand::Homes(HomeSet::Empty),
            kind => Operand::Single(single, kind),
        }
    }
}

/// Kinds of operands and result that a binary operator accepts, on numbers, truth values, remotes and sets.
enum OperatorTyping {
    /// Takes operands of this kind only.
    SingleKind(Kind),
    /// Compares values of any kind; the constructor compares sets.
    Comparison(fn(Box<Set>, Box<Set>) -> Expression),
    /// Combines two numbers into a number, and two sets into a set; the constructor combines sets.
    Combination(fn(Box<Set>, Box<Set>) -> Set),
}

/// Returns the kinds that an operator accepts.
fn operator_typing(operator: Operator) -> OperatorTyping {
    match operator {
        Operator::Add => OperatorTyping::Combination(Set::Union),
        Operator::Subtract => OperatorTyping::Combination(Set::Difference),
        Operator::Equal => OperatorTyping::Comparison(Expression::SetsEqual),
        Operator::NotEqual => OperatorTyping::Comparison(Expression::SetsDiffer),
        Operator::Less | Operator::LessOrEqual | Operator::Greater | Operator::GreaterOrEqual => {
            OperatorTyping::SingleKind(Kind::Number)
        }
        Operator::And | Operator::Or => OperatorTyping::SingleKind(Kind::Bool),
    }
}

/// Help that lists the operations on numbers of a `cycle` type.
const CYCLE_NOTE: &str =
    "a `cycle` number can be copied, compared by `==` and `!=` with another of its size, and incremented by `+= 1`";

/// Largest value of a numeric type, as far as it is known without the system. A count is that of remotes, of which a
/// system has at most [`System::MAX_REMOTES`].
fn max_value(ty: Type) -> u16 {
    match ty.single() {
        Type::Range { max } => max,
        Type::Cycle { size } => size - 1,
        Type::Count => System::MAX_REMOTES.into(),
        _ => u16::MAX,
    }
}

impl<'a> Resolver<'a, '_> {
    /// Resolves an expression of the wanted kind, which is not a set.
    pub(super) fn resolve_typed(
        &mut self,
        expr: &Expr<'a>,
        expected: Kind,
        scope: &Scope<'a, '_>,
    ) -> Option<Expression> {
        match self.resolve_expression(expr, scope)? {
            Operand::Single(expression, kind) if kind == expected => Some(expression),
            other => self.kind_mismatch(expr, expected, other.kind()),
        }
    }

    /// Resolves an expression that must be a set.
    pub(super) fn resolve_set(&mut self, expr: &Expr<'a>, scope: &Scope<'a, '_>) -> Option<Set> {
        match self.resolve_expression(expr, scope)? {
            Operand::Set(set) => Some(set),
            other => self.kind_mismatch(expr, Kind::Set, other.kind()),
        }
    }

    /// Reports a value of another kind than required. Always returns `None`.
    pub(super) fn kind_mismatch<T>(
        &mut self,
        expr: &Expr<'a>,
        expected: Kind,
        actual: Kind,
    ) -> Option<T> {
        let message = format!("expected {}, found {}", expected.words(), actual.words());
        let mut diagnostic = Diagnostic::new(Code::Type, expr.span, message)
            .label(format!("this is {}", actual.words()));
        if (expected, actual) == (Kind::Set, Kind::Remote) {
            diagnostic = diagnostic.note("the set that holds one remote is written `{ remote }`");
        }
        if let Kind::Cycle(_) = if matches!(expected, Kind::Cycle(_)) {
            expected
        } else {
            actual
        } {
            diagnostic = diagnostic.note(CYCLE_NOTE);
        }
        self.sink.push(diagnostic);
        None
    }

    /// Resolves an expression to be stored in a variable or field of this type.
    pub(super) fn resolve_stored(
        &mut self,
        expr: &Expr<'a>,
        ty: Type,
        scope: &Scope<'a, '_>,
    ) -> Option<Value> {
        let kind = Kind::of(ty);
        if kind == Kind::HomeSet {
            self.resolve_home_set(expr, scope)?;
            return None;
        }
        if kind == Kind::Set {
            return Some(Value::Set(self.resolve_set(expr, scope)?));
        }
        let value = self.resolve_typed(expr, kind, scope)?;
        if let (Expression::Constant(number), Kind::Number) = (&value, kind) {
            if *number > max_value(ty) {
                self.sink.push(
                    Diagnostic::new(
                        Code::OutOfRange,
                        expr.span,
                        format!("{number} is out of range"),
                    )
                    .label(format!("must be 0 to {}", max_value(ty))),
                );
            }
        }
        Some(Value::Single(value, ty))
    }

    /// Value stored by `x += e` or `x -= e`: that of `x := x + e` or `x := x - e`.
    pub(super) fn compound_value(
        &mut self,
        name: Name<'a>,
        operator: Operator,
        (variable, ty): (VariableId, Type),
        operand: &Expr<'a>,
        scope: &Scope<'a, '_>,
    ) -> Option<Value> {
        if let Type::Cycle { size } = ty {
            let old_value = Expression::Variable(variable);
            let next = self.cycle_sum(name, operator, (old_value, size), operand)?;
            return Some(Value::Single(next, ty));
        }
        let (Kind::Number | Kind::Set) = Kind::of(ty) else {
            let message = format!("`{}` is neither a number nor a set", name.text);
            self.sink
                .push(Diagnostic::new(Code::Type, name.span, message).label("use `:=`"));
            return None;
        };
        let old_value = Operand::of(ty, Expression::Variable(variable), Set::Variable(variable));
        Some(
            match self.apply_operator(operator, old_value, operand, scope)? {
                Operand::Single(value, _) => Value::Single(value, ty),
                Operand::Set(set) => Value::Set(set),
                Operand::Homes(_) => return None,
            },
        )
    }

    /// Value stored by `x += N` in a variable of a `cycle` type.
    pub(super) fn cycle_sum(
        &mut self,
        name: Name<'a>,
        operator: Operator,
        (old_value, size): (Expression, u16),
        operand: &Expr<'a>,
    ) -> Option<Expression> {
        let (Operator::Add, ExprKind::Number(value)) = (operator, &operand.kind) else {
            let message = format!("`{}` is a `cycle` number", name.text);
            let label = "only a number may follow `+=`";
            let diagnostic = Diagnostic::new(Code::Type, operand.span, message);
            self.sink.push(diagnostic.label(label).note(CYCLE_NOTE));
            return None;
        };
        let number = Number {
            value: *value,
            span: operand.span,
        };
        let max_step = u32::from(size) - 1;
        let steps = number_in_range(number, 1, max_step, "the number of steps is", self.sink)?;
        let sum = Expression::Binary(
            Operator::Add,
            Box::new(old_value),
            Box::new(Expression::Constant(steps as u16)),
        );
        Some(Expression::Modulo(Box::new(sum), size))
    }

    /// Resolves an expression of any kind.
    pub(super) fn resolve_expression(
        &mut self,
        expr: &Expr<'a>,
        scope: &Scope<'a, '_>,
    ) -> Option<Operand> {
        let (single, kind) = match &expr.kind {
            ExprKind::Number(value) => {
                let number = Number {
                    value: *value,
                    span: expr.span,
                };
                let value =
                    number_in_range(number, 0, u32::from(u16::MAX), "the number is", self.sink)?;
                (Expression::Constant(value as u16), Kind::Number)
            }
            ExprKind::Word(word) => {
                return self.resolve_word(
                    Name {
                        text: word,
                        span: expr.span,
                    },
                    scope,
                )
            }
            ExprKind::Element(name, indices) => {
                let (element, ty) = self.element_of(*name, indices, scope)?;
                (element, Kind::of(ty))
            }
            ExprKind::Set(None) => return Some(Operand::Set(Set::Empty)),
            ExprKind::Set(Some(element)) => {
                return match self.resolve_expression(element, scope)? {
                    Operand::Single(home, Kind::Home) => {
                        Some(Operand::Homes(HomeSet::Singleton(Box::new(home))))
                    }
                    Operand::Single(remote, Kind::Remote) => {
                        Some(Operand::Set(Set::Singleton(Box::new(remote))))
                    }
                    other => self.kind_mismatch(element, Kind::Remote, other.kind()),
                };
            }
            ExprKind::Count(set) => {
                let counted = match self.resolve_expression(set, scope)? {
                    Operand::Set(set) => Expression::Count(Box::new(set)),
                    Operand::Homes(set) => homes_query(HomeSetQuery::Count(set)),
                    other => return self.kind_mismatch(set, Kind::Set, other.kind()),
                };
                (counted, Kind::Number)
            }
            ExprKind::Not(inner) => (
                Expression::Not(Box::new(self.resolve_typed(inner, Kind::Bool, scope)?)),
                Kind::Bool,
            ),
            ExprKind::In(element, set) => return self.resolve_membership(element, set, scope),
            ExprKind::Binary(operator, left, right) => {
                return self.resolve_binary(*operator, left, right, scope)
            }
        };
        Some(Operand::Single(single, kind))
    }

    /// Resolves `ELEMENT in SET`, for a remote or a home.
    fn resolve_membership(
        &mut self,
        element: &Expr<'a>,
        set: &Expr<'a>,
        scope: &Scope<'a, '_>,
    ) -> Option<Operand> {
        let member = self.resolve_expression(element, scope);
        if let Some(Operand::Single(home, Kind::Home)) = member {
            let membership =
                homes_query(HomeSetQuery::In(home, self.resolve_home_set(set, scope)?));
            return Some(Operand::Single(membership, Kind::Bool));
        }
        let element = match member {
            Some(Operand::Single(remote, Kind::Remote)) => Some(remote),
            Some(other) => self.kind_mismatch(element, Kind::Remote, other.kind()),
            None => None,
        };
        // Errors in the set are reported even if the element has some.
        let set = self.resolve_set(set, scope);
        let membership = Expression::In(Box::new(element?), Box::new(set?));
        Some(Operand::Single(membership, Kind::Bool))
    }

    /// Resolves `LEFT OPERATOR RIGHT`. Errors in both operands are reported.
    fn resolve_binary(
        &mut self,
        operator: Operator,
        left: &Expr<'a>,
        right: &Expr<'a>,
        scope: &Scope<'a, '_>,
    ) -> Option<Operand> {
        if let OperatorTyping::SingleKind(kind) = operator_typing(operator) {
            let left = self.resolve_typed(left, kind, scope);
            let right = self.resolve_typed(right, kind, scope);
            let result = Expression::Binary(operator, Box::new(left?), Box::new(right?));
            return Some(Operand::Single(result, Kind::Bool));
        }
        let Some(left_operand) = self.resolve_expression(left, scope) else {
            self.resolve_expression(right, scope);
            return None;
        };
        if let (
            OperatorTyping::Combination(_),
            Kind::Bool | Kind::Remote | Kind::Home | Kind::Cycle(_),
        ) = (operator_typing(operator), left_operand.kind())
        {
            let kind = left_operand.kind().words();
            let message = format!("expected a number or a set of remotes, found {kind}");
            self.sink.push(
                Diagnostic::new(Code::Type, left.span, message).label(format!("this is {kind}")),
            );
            return None;
        }
        self.apply_operator(operator, left_operand, right, scope)
    }

    /// Resolves an expression that must be a set of homes.
    pub(super) fn resolve_home_set(
        &mut self,
        expr: &Expr<'a>,
        scope: &Scope<'a, '_>,
    ) -> Option<HomeSet> {
        match self.resolve_expression(expr, scope)? {
            Operand::Homes(set) => Some(set),
            Operand::Set(Set::Empty) => Some(HomeSet::Empty),
            other => self.kind_mismatch(expr, Kind::HomeSet, other.kind()),
        }
    }

    /// Applies a binary operator to a resolved value and an unresolved operand of the same kind.
    pub(super) fn apply_operator(
        &mut self,
        operator: Operator,
        left: Operand,
        right: &Expr<'a>,
        scope: &Scope<'a, '_>,
    ) -> Option<Operand> {
        match left {
            Operand::Single(left, kind) => {
                let right = Box::new(self.resolve_typed(right, kind, scope)?);
                let result = match operator_typing(operator) {
                    OperatorTyping::Combination(_) => kind,
                    OperatorTyping::SingleKind(_) | OperatorTyping::Comparison(_) => Kind::Bool,
                };
                let expression = Expression::Binary(operator, Box::new(left), right);
                Some(Operand::Single(expression, result))
            }
            Operand::Set(left) => {
                let (left, right_set) = (Box::new(left), Box::new(self.resolve_set(right, scope)?));
                match operator_typing(operator) {
                    OperatorTyping::Combination(combine) => {
                        Some(Operand::Set(combine(left, right_set)))
                    }
                    OperatorTyping::Comparison(compare) => {
                        Some(Operand::Single(compare(left, right_set), Kind::Bool))
                    }
                    OperatorTyping::SingleKind(kind) => self.kind_mismatch(right, kind, Kind::Set),
                }
            }
            Operand::Homes(left) => {
                let right = self.resolve_home_set(right, scope)?;
                let combine = |join: fn(_, _) -> HomeSet| {
                    Some(Operand::Homes(join(
                        Box::new(left.clone()),
                        Box::new(right.clone()),
                    )))
                };
                match operator {
                    Operator::Add => combine(HomeSet::Union),
                    Operator::Subtract => combine(HomeSet::Difference),
                    _ => {
                        let equality = homes_query(HomeSetQuery::Equal(left, right));
                        let claim = match operator {
                            Operator::NotEqual => Expression::Not(Box::new(equality)),
                            _ => equality,
                        };
                        Some(Operand::Single(claim, Kind::Bool))
                    }
                }
            }
        }
    }

    /// Kind of remotes with this name; rows must be able to distinguish it from the others.
    fn kind_with_own_rows(&mut self, name: Name<'a>) -> Option<KindId> {
        let kind = self.kind_names.get(name, self.sink)?;
        let table = self.tables[usize::from(kind)];
        let mut sharing_kinds = (0..)
            .zip(&self.tables)
            .filter(|(_, other)| **other == table);
        if let Some((other, _)) = sharing_kinds.find(|(other, _)| *other != kind) {
            let text = format!("`{}` has the same rows as another kind", name.text);
            let other = self.kind_names.list[usize::from(other)];
            self.sink.push(
                Diagnostic::new(Code::Misplaced, name.span, text)
                    .label("the two kinds cannot be distinguished")
                    .note_at(other.span, "the other one"),
            );
            return None;
        }
        Some(KindId(kind as u8))
    }

    /// Resolves the initial value of a variable of this type.
    pub(super) fn resolve_initial(&mut self, expr: &Expr<'a>, ty: Type) -> Option<Initial> {
        let kind = Kind::of(ty);
        let as_kind_name = |word: &Expr<'a>| match word.kind {
            ExprKind::Word(text) if self.kind_names.index.contains_key(text) => Some(Name {
                text,
                span: word.span,
            }),
            _ => None,
        };
        let initial_number = |value: u16| Some(Initial::Number(value));
        let (accepts_kind, kind_name) = match &expr.kind {
            ExprKind::Number(value) if matches!(kind, Kind::Number | Kind::Cycle(_)) => {
                let number = Number {
                    value: *value,
                    span: expr.span,
                };
                // The number of remotes is not known here.
                let max = match ty.single() {
                    Type::Count => 0,
                    other => max_value(other),
                };
                let value =
                    number_in_range(number, 0, max.into(), "the initial value is", self.sink)?;
                return Some(Initial::Number(value as u16));
            }
            ExprKind::Word("true") if kind == Kind::Bool => return initial_number(1),
            ExprKind::Word("false") if kind == Kind::Bool => return initial_number(0),
            ExprKind::Word("none") if kind == Kind::Remote => return initial_number(0),
            ExprKind::Set(None) if matches!(kind, Kind::Set | Kind::HomeSet) => {
                return initial_number(0)
            }
            ExprKind::Count(set) => (ty == Type::Count, as_kind_name(set)),
            _ => (kind == Kind::Set, as_kind_name(expr)),
        };
        if let (true, Some(name)) = (accepts_kind, kind_name) {
            return self.kind_with_own_rows(name).map(Initial::All);
        }
        let allowed = match ty {
            Type::Count => "0, or `count(KIND)` for the number of remotes of a kind",
            Type::RemoteSet => "`{}`, or the name of a kind for all its remotes",
            Type::Remote => "`none`",
            Type::Bool => "`true` or `false`",
            Type::Home { .. } => "0: a home variable starts as the first home",
            Type::Array { .. } if ty.is_home_set() => "`{}`",
            Type::Range { .. } | Type::Cycle { .. } | Type::Array { .. } => "a number of its range",
        };
        self.sink.push(
            Diagnostic::new(
                Code::Type,
                expr.span,
                "a variable cannot have this initial value",
            )
            .label(format!("must be {allowed}")),
        );
        None
    }

    /// Resolves a variable, a field of the current message, or a word of the language.
    fn resolve_word(&mut self, name: Name<'a>, scope: &Scope<'a, '_>) -> Option<Operand> {
        if let Some((each, kind)) = scope.each.filter(|(each, _)| each.text == name.text) {
            self.sink.mentions.push(Mention {
                span: name.span,
                declaration: each.span,
                kind: "agent of a loop",
            });
            return Some(Operand::Single(Expression::Each, kind));
        }
        match self.reserved_word(name, scope) {
            Some(Ok(operand)) => return Some(operand),
            Some(Err(diagnostic)) => {
                self.sink.push(diagnostic);
                return None;
            }
            None => {}
        }
        let variable = scope.variables.get(name, self.sink);
        let message = scope.message.map(|message| &self.messages[message.index()]);
        let field = message.and_then(|message| {
            let position = message
                .fields
                .iter()
                .position(|field| field.name == name.text)?;
            Some((position, message.fields[position].ty, &message.name))
        });
        if let (Some((position, ..)), Some(message)) = (field, message) {
            self.sink.mentions.push(Mention {
                span: name.span,
                declaration: message.fields[position].span,
                kind: "field",
            });
        }
        match (variable, field) {
            (Some(variable), None) => {
                let ty = scope.types[usize::from(variable)];
                self.require_line(name, variable, scope)?;
                let variable = scope.variable(variable);
                if ty.is_home_set() {
                    return Some(Operand::Homes(HomeSet::Variable(variable)));
                }
                if ty.is_array() {
                    let text = format!("`{}` is an array", name.text);
                    self.sink.push(
                        Diagnostic::new(Code::Type, name.span, text)
                            .label(format!("one number of it is `{}[...]`", name.text)),
                    );
                    return None;
                }
                let single = Expression::Variable(variable);
                Some(Operand::of(ty, single, Set::Variable(variable)))
            }
            (None, Some((position, ty, _))) => {
                let position = position as u8;
                Some(Operand::of(
                    ty,
                    Expression::Field(position),
                    Set::Field(position),
                ))
            }
            (Some(variable), Some((_, _, message))) => {
                let diagnostic = Diagnostic::new(
                    Code::AmbiguousName,
                    name.span,
                    format!("`{}` could mean two things", name.text),
                )
                .label(format!("the variable, or the field of `{message}`?"))
                .note_at(
                    scope.variables.list[usize::from(variable)].span,
                    "the variable",
                )
                .note("give the variable or the field another name");
                self.sink.push(diagnostic);
                None
            }
            (None, None) if self.kind_names.index.contains_key(name.text) => self
                .kind_with_own_rows(name)
                .map(|kind| Operand::Set(Set::All(kind))),
            (None, None) if scope.variables.partial => None,
            (None, None) => {
                self.report_unknown_operand(name, scope);
                None
            }
        }
    }

    /// Returns the value of a reserved word, or the error if it has none in this scope. `None` for any other word.
    fn reserved_word(
        &self,
        name: Name<'a>,
        scope: &Scope<'a, '_>,
    ) -> Option<Result<Operand, Diagnostic>> {
        let single = |expression, kind| Some(Ok(Operand::Single(expression, kind)));
        let misplaced = |message: &str, label: &str| {
            let diagnostic = Diagnostic::new(Code::Misplaced, name.span, message);
            Some(Err(diagnostic.label(label)))
        };
        let sender_end = scope.message.map(|message| self.channel_of(message).from);
        let from_home =
            self.homes_declared && sender_end == Some(End::Home) && scope.side == Side::Remote;
        match (name.text, scope.side) {
            ("none", _) => single(Expression::None, Kind::Remote),
            ("true", _) => single(Expression::Constant(1), Kind::Bool),
            ("false", _) => single(Expression::Constant(0), Kind::Bool),
            ("self", Side::Remote) => single(Expression::Own, Kind::Remote),
            ("sender", _) if from_home => single(self.home(), Kind::Home),
            ("home", _) if self.homes_declared && (!scope.lineless || from_home) => {
                single(self.home(), Kind::Home)
            }
            ("home", Side::Home) if self.homes_declared => single(self.home(), Kind::Home),
            ("home", _) if self.homes_declared => misplaced(
                "no line, so no `home`",
                "a row about no line, and no message from a home",
            ),
            ("sender", Side::Home) if sender_end == Some(End::Home) => misplaced(
                "`sender` of a message between homes",
                "no remote sent it; put the home in a field of the message: `from: home`",
            ),
            ("sender", _) if scope.message.is_some() => single(Expression::Sender, Kind::Remote),
            ("self", Side::Home) => {
                misplaced("`self` in the home", "only a remote is one of the remotes")
            }
            ("sender", _) => misplaced(
                "no message, so no `sender`",
                "this row's event is not a message",
            ),
            (MEMORY_WRITES, Side::Remote) => misplaced(
                "`memory writes` in a remote",
                "the memory is behind the home",
            ),
            ("home", _) => misplaced("`home` is not a value", "only a message can be sent to it"),
            _ => None,
        }
    }

    /// Reports a word that is neither a variable nor a field nor a kind of remotes.
    fn report_unknown_operand(&mut self, name: Name<'a>, scope: &Scope<'a, '_>) {
        let message = scope.message.map(|message| &self.messages[message.index()]);
        let fields = message.map_or(&[][..], |message| &message.fields);
        let known_names = scope
            .variables
            .list
            .iter()
            .map(|known| known.text)
            .chain(fields.iter().map(|field| field.name.as_str()));
        // A single kind of remotes is seldom the intended name.
        match &self.kind_names.list[..] {
            kinds @ [_, _, ..] => {
                let known_names = known_names.chain(kinds.iter().map(|kind| kind.text));
                report_unknown(
                    "variable, field or kind of remotes",
                    name,
                    known_names,
                    self.sink,
                );
            }
            _ => report_unknown("variable or field", name, known_names, self.sink),
        }
    }

    /// Returns the home of the current line.
    fn home(&self) -> Expression {
        match self.homes {
            1 => Expression::Constant(0),
            _ => Expression::Home,
        }
    }

    /// Reports a per-line variable in a row about no line.
    pub(super) fn require_line(
        &mut self,
        name: Name<'a>,
        variable: u16,
        scope: &Scope<'a, '_>,
    ) -> Option<()> {
        let variable = usize::from(variable);
        if !scope.lineless || scope.registers[variable] {
            return Some(());
        }
        let text = format!("`{}` in a row about no line", name.text);
        self.sink.push(
            Diagnostic::new(Code::Misplaced, name.span, text)
                .label("an agent has one for each line")
                .note_at(
                    scope.variables.list[variable].span,
                    "declare a variable that an agent has once in `registers`",
                ),
        );
        None
    }
}

/// Wraps a query on sets of homes in an expression.
fn homes_query(query: HomeSetQuery) -> Expression {
    Expression::Homes(Box::new(query))
}
