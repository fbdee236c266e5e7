//! Types of expressions, and the expressions themselves.

use super::scope::{Kind, Scope, Side};
use super::*;
use crate::controller::{
    Expression, HomeSet, HomeSetQuery, Initial, Operator, Set, Value, MEMORY_WRITES,
};
use crate::protocol::{Type, VariableId};
use crate::remotes::KindId;

/// Resolved expression: a single value with its kind, or a set.
#[derive(Debug)]
pub(super) enum Operand {
    Single(Expression, Kind),
    Set(Set),
    Homes(HomeSet),
}

impl Operand {
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

/// Meaning of a binary operator on numbers, truth values, remotes and sets.
enum Meaning {
    /// Takes operands of this kind only.
    Only(Kind),
    /// Compares values of any kind; the constructor compares sets.
    Compares(fn(Box<Set>, Box<Set>) -> Expression),
    /// Combines two numbers into a number, and two sets into a set; the constructor combines sets.
    Makes(fn(Box<Set>, Box<Set>) -> Set),
}

fn meaning(operator: Operator) -> Meaning {
    match operator {
        Operator::Add => Meaning::Makes(Set::Union),
        Operator::Subtract => Meaning::Makes(Set::Difference),
        Operator::Equal => Meaning::Compares(Expression::SetsEqual),
        Operator::NotEqual => Meaning::Compares(Expression::SetsDiffer),
        Operator::Less | Operator::LessOrEqual | Operator::Greater | Operator::GreaterOrEqual => {
            Meaning::Only(Kind::Number)
        }
        Operator::And | Operator::Or => Meaning::Only(Kind::Bool),
    }
}

/// Note on operations that are possible on numbers of a `cycle` type.
const CYCLES: &str =
    "a `cycle` number can be copied, compared by `==` and `!=` with another of its size, and incremented by `+= 1`";

/// Largest value of a numeric type, as far as it is known without the system.
fn largest(ty: Type) -> u16 {
    match ty.single() {
        Type::Range { max } => max,
        Type::Cycle { size } => size - 1,
        Type::Count => 8,
        _ => u16::MAX,
    }
}

impl<'a> Resolver<'a, '_> {
    /// Resolves an expression of the wanted kind, which is not a set.
    pub(super) fn typed(
        &mut self,
        expr: &Expr<'a>,
        wanted: Kind,
        scope: &Scope<'a, '_>,
    ) -> Option<Expression> {
        match self.expression(expr, scope)? {
            Operand::Single(expression, kind) if kind == wanted => Some(expression),
            other => self.unwanted(expr, wanted, other.kind()),
        }
    }

    /// Resolves an expression that must be a set.
    pub(super) fn set(&mut self, expr: &Expr<'a>, scope: &Scope<'a, '_>) -> Option<Set> {
        match self.expression(expr, scope)? {
            Operand::Set(set) => Some(set),
            other => self.unwanted(expr, Kind::Set, other.kind()),
        }
    }

    pub(super) fn unwanted<T>(&mut self, expr: &Expr<'a>, wanted: Kind, found: Kind) -> Option<T> {
        let message = format!("expected {}, found {}", wanted.words(), found.words());
        let mut diagnostic = Diagnostic::new(Code::Type, expr.span, message)
            .label(format!("this is {}", found.words()));
        if (wanted, found) == (Kind::Set, Kind::Remote) {
            diagnostic = diagnostic.note("the set that holds one remote is written `{ remote }`");
        }
        if let Kind::Cycle(_) = if matches!(wanted, Kind::Cycle(_)) {
            wanted
        } else {
            found
        } {
            diagnostic = diagnostic.note(CYCLES);
        }
        self.sink.push(diagnostic);
        None
    }

    /// Resolves an expression to be stored in a variable or field of this type.
    pub(super) fn stored(
        &mut self,
        expr: &Expr<'a>,
        ty: Type,
        scope: &Scope<'a, '_>,
    ) -> Option<Value> {
        let kind = Kind::of(ty);
        if kind == Kind::HomeSet {
            self.homes(expr, scope)?;
            return None;
        }
        if kind == Kind::Set {
            return Some(Value::Set(self.set(expr, scope)?));
        }
        let value = self.typed(expr, kind, scope)?;
        if let (Expression::Constant(number), Kind::Number) = (&value, kind) {
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
        Some(Value::Single(value, ty))
    }

    /// Value stored by `x += e` or `x -= e`: that of `x := x + e` or `x := x - e`.
    pub(super) fn changed(
        &mut self,
        name: Name<'a>,
        operator: Operator,
        (variable, ty): (VariableId, Type),
        by: &Expr<'a>,
        scope: &Scope<'a, '_>,
    ) -> Option<Value> {
        if let Type::Cycle { size } = ty {
            let before = Expression::Variable(variable);
            let next = self.counted_on(name, operator, (before, size), by)?;
            return Some(Value::Single(next, ty));
        }
        let (Kind::Number | Kind::Set) = Kind::of(ty) else {
            let message = format!("`{}` is neither a number nor a set", name.text);
            self.sink
                .push(Diagnostic::new(Code::Type, name.span, message).label("use `:=`"));
            return None;
        };
        let before = Operand::of(ty, Expression::Variable(variable), Set::Variable(variable));
        Some(match self.applied(operator, before, by, scope)? {
            Operand::Single(value, _) => Value::Single(value, ty),
            Operand::Set(set) => Value::Set(set),
            Operand::Homes(_) => return None,
        })
    }

    /// Value stored by `x += N` in a variable of a `cycle` type.
    pub(super) fn counted_on(
        &mut self,
        name: Name<'a>,
        operator: Operator,
        (before, size): (Expression, u16),
        by: &Expr<'a>,
    ) -> Option<Expression> {
        let (Operator::Add, ExprKind::Number(value)) = (operator, &by.kind) else {
            let message = format!("`{}` is a `cycle` number", name.text);
            let label = "only a number may follow `+=`";
            let diagnostic = Diagnostic::new(Code::Type, by.span, message);
            self.sink.push(diagnostic.label(label).note(CYCLES));
            return None;
        };
        let number = Number {
            value: *value,
            span: by.span,
        };
        let most = u32::from(size) - 1;
        let by = ranged(number, 1, most, "the number of steps is", self.sink)?;
        let sum = Expression::Binary(
            Operator::Add,
            Box::new(before),
            Box::new(Expression::Constant(by as u16)),
        );
        Some(Expression::Round(Box::new(sum), size))
    }

    pub(super) fn expression(&mut self, expr: &Expr<'a>, scope: &Scope<'a, '_>) -> Option<Operand> {
        let (single, kind) = match &expr.kind {
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
            ExprKind::Element(name, indices) => {
                let (element, ty) = self.element_of(*name, indices, scope)?;
                (element, Kind::of(ty))
            }
            ExprKind::Set(None) => return Some(Operand::Set(Set::Empty)),
            ExprKind::Set(Some(element)) => {
                return match self.expression(element, scope)? {
                    Operand::Single(home, Kind::Home) => {
                        Some(Operand::Homes(HomeSet::Singleton(Box::new(home))))
                    }
                    Operand::Single(remote, Kind::Remote) => {
                        Some(Operand::Set(Set::Singleton(Box::new(remote))))
                    }
                    other => self.unwanted(element, Kind::Remote, other.kind()),
                };
            }
            ExprKind::Count(set) => {
                let counted = match self.expression(set, scope)? {
                    Operand::Set(set) => Expression::Count(Box::new(set)),
                    Operand::Homes(set) => of_homes(HomeSetQuery::Count(set)),
                    other => return self.unwanted(set, Kind::Set, other.kind()),
                };
                (counted, Kind::Number)
            }
            ExprKind::Not(inner) => (
                Expression::Not(Box::new(self.typed(inner, Kind::Bool, scope)?)),
                Kind::Bool,
            ),
            ExprKind::In(element, set) => {
                let found = self.expression(element, scope);
                if let Some(Operand::Single(home, Kind::Home)) = found {
                    let within = of_homes(HomeSetQuery::In(home, self.homes(set, scope)?));
                    return Some(Operand::Single(within, Kind::Bool));
                }
                let element = match found {
                    Some(Operand::Single(remote, Kind::Remote)) => Some(remote),
                    Some(other) => self.unwanted(element, Kind::Remote, other.kind()),
                    None => None,
                };
                let set = self.set(set, scope);
                (
                    Expression::In(Box::new(element?), Box::new(set?)),
                    Kind::Bool,
                )
            }
            ExprKind::Binary(operator, left, right) => {
                let Meaning::Only(kind) = meaning(*operator) else {
                    let Some(one) = self.expression(left, scope) else {
                        self.expression(right, scope);
                        return None;
                    };
                    if let (
                        Meaning::Makes(_),
                        Kind::Bool | Kind::Remote | Kind::Home | Kind::Cycle(_),
                    ) = (meaning(*operator), one.kind())
                    {
                        let kind = one.kind().words();
                        let message =
                            format!("expected a number or a set of remotes, found {kind}");
                        self.sink.push(
                            Diagnostic::new(Code::Type, left.span, message)
                                .label(format!("this is {kind}")),
                        );
                        return None;
                    }
                    return self.applied(*operator, one, right, scope);
                };
                let left = self.typed(left, kind, scope);
                let right = self.typed(right, kind, scope);
                (
                    Expression::Binary(*operator, Box::new(left?), Box::new(right?)),
                    Kind::Bool,
                )
            }
        };
        Some(Operand::Single(single, kind))
    }

    /// Resolves an expression that must be a set of homes.
    pub(super) fn homes(&mut self, expr: &Expr<'a>, scope: &Scope<'a, '_>) -> Option<HomeSet> {
        match self.expression(expr, scope)? {
            Operand::Homes(set) => Some(set),
            Operand::Set(Set::Empty) => Some(HomeSet::Empty),
            other => self.unwanted(expr, Kind::HomeSet, other.kind()),
        }
    }

    /// Applies a binary operator to a resolved value and an unresolved operand of the same kind.
    pub(super) fn applied(
        &mut self,
        operator: Operator,
        left: Operand,
        right: &Expr<'a>,
        scope: &Scope<'a, '_>,
    ) -> Option<Operand> {
        match left {
            Operand::Single(left, kind) => {
                let right = Box::new(self.typed(right, kind, scope)?);
                let result = match meaning(operator) {
                    Meaning::Makes(_) => kind,
                    Meaning::Only(_) | Meaning::Compares(_) => Kind::Bool,
                };
                let applied = Expression::Binary(operator, Box::new(left), right);
                Some(Operand::Single(applied, result))
            }
            Operand::Set(left) => {
                let (left, right_set) = (Box::new(left), Box::new(self.set(right, scope)?));
                match meaning(operator) {
                    Meaning::Makes(make) => Some(Operand::Set(make(left, right_set))),
                    Meaning::Compares(compare) => {
                        Some(Operand::Single(compare(left, right_set), Kind::Bool))
                    }
                    Meaning::Only(kind) => self.unwanted(right, kind, Kind::Set),
                }
            }
            Operand::Homes(left) => {
                let right = self.homes(right, scope)?;
                let joined = |join: fn(_, _) -> HomeSet| {
                    Some(Operand::Homes(join(
                        Box::new(left.clone()),
                        Box::new(right.clone()),
                    )))
                };
                match operator {
                    Operator::Add => joined(HomeSet::Union),
                    Operator::Subtract => joined(HomeSet::Difference),
                    _ => {
                        let same = of_homes(HomeSetQuery::Equal(left, right));
                        let claim = match operator {
                            Operator::NotEqual => Expression::Not(Box::new(same)),
                            _ => same,
                        };
                        Some(Operand::Single(claim, Kind::Bool))
                    }
                }
            }
        }
    }

    /// Kind of remotes with this name; rows must be able to distinguish it from the others.
    fn all_of(&mut self, name: Name<'a>) -> Option<KindId> {
        let kind = self.kind_names.get(name, self.sink)?;
        let table = self.tables[usize::from(kind)];
        let mut same = (0..)
            .zip(&self.tables)
            .filter(|(_, other)| **other == table);
        if let Some((other, _)) = same.find(|(other, _)| *other != kind) {
            let text = format!("`{}` has the same rows as another kind", name.text);
            let other = self.kind_names.list[usize::from(other)];
            self.sink.push(
                Diagnostic::new(Code::Misplaced, name.span, text)
                    .label("the two kinds cannot be distinguished")
                    .see(other.span, "the other one"),
            );
            return None;
        }
        Some(KindId(kind as u8))
    }

    /// Resolves the initial value of a variable of this type.
    pub(super) fn initial(&mut self, expr: &Expr<'a>, ty: Type) -> Option<Initial> {
        let kind = Kind::of(ty);
        let of = |word: &Expr<'a>| match word.kind {
            ExprKind::Word(text) if self.kind_names.index.contains_key(text) => Some(Name {
                text,
                span: word.span,
            }),
            _ => None,
        };
        let number = |value: u16| Some(Initial::Number(value));
        let (found, all) = match &expr.kind {
            ExprKind::Number(value) if matches!(kind, Kind::Number | Kind::Cycle(_)) => {
                let number = Number {
                    value: *value,
                    span: expr.span,
                };
                // The number of remotes is not known here.
                let most = match ty.single() {
                    Type::Count => 0,
                    other => largest(other),
                };
                let value = ranged(number, 0, most.into(), "the initial value is", self.sink)?;
                return Some(Initial::Number(value as u16));
            }
            ExprKind::Word("true") if kind == Kind::Bool => return number(1),
            ExprKind::Word("false") if kind == Kind::Bool => return number(0),
            ExprKind::Word("none") if kind == Kind::Remote => return number(0),
            ExprKind::Set(None) if matches!(kind, Kind::Set | Kind::HomeSet) => return number(0),
            ExprKind::Count(set) => (ty == Type::Count, of(set)),
            _ => (kind == Kind::Set, of(expr)),
        };
        if let (true, Some(name)) = (found, all) {
            return self.all_of(name).map(Initial::All);
        }
        let allowed = match ty {
            Type::Count => "0, or `count(KIND)` for the number of remotes of a kind",
            Type::RemoteSet => "`{}`, or the name of a kind for all its remotes",
            Type::Remote => "`none`",
            Type::Bool => "`true` or `false`",
            Type::Home { .. } => "0: a home variable starts as the first home",
            Type::Array { .. } if ty.set_of_homes() => "`{}`",
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
    fn word(&mut self, name: Name<'a>, scope: &Scope<'a, '_>) -> Option<Operand> {
        let single = |expression, kind| Some(Operand::Single(expression, kind));
        let misplaced = |message: &str, label: &str| {
            Some(Diagnostic::new(Code::Misplaced, name.span, message).label(label))
        };
        if let Some((each, kind)) = scope.each.filter(|(each, _)| each.text == name.text) {
            self.sink.mentions.push(Mention {
                span: name.span,
                declaration: each.span,
                what: "agent of a loop",
            });
            return single(Expression::Each, kind);
        }
        let from = scope.message.map(|message| self.channel_of(message).from);
        let of_home = self.declared && from == Some(End::Home) && scope.side == Side::Remote;
        let problem = match (name.text, scope.side) {
            ("none", _) => return single(Expression::None, Kind::Remote),
            ("true", _) => return single(Expression::Constant(1), Kind::Bool),
            ("false", _) => return single(Expression::Constant(0), Kind::Bool),
            ("self", Side::Remote) => return single(Expression::Own, Kind::Remote),
            ("sender", _) if of_home => return single(self.home(), Kind::Home),
            ("home", _) if self.declared && (!scope.lineless || of_home) => {
                return single(self.home(), Kind::Home)
            }
            ("home", Side::Home) if self.declared => return single(self.home(), Kind::Home),
            ("home", _) if self.declared => misplaced(
                "no line, so no `home`",
                "a row about no line, and no message from a home",
            ),
            ("sender", Side::Home) if from == Some(End::Home) => misplaced(
                "`sender` of a message between homes",
                "no remote sent it; put the home in a field of the message: `from: home`",
            ),
            ("sender", _) if scope.message.is_some() => {
                return single(Expression::Sender, Kind::Remote)
            }
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
        };
        if let Some(problem) = problem {
            self.sink.push(problem);
            return None;
        }
        let variable = scope.variables.get(name, self.sink);
        let message = scope.message.map(|message| &self.messages[message.index()]);
        let field = message.and_then(|message| {
            let place = message
                .fields
                .iter()
                .position(|field| field.name == name.text)?;
            Some((place, message.fields[place].ty, &message.name))
        });
        if let (Some((place, ..)), Some(message)) = (field, message) {
            self.sink.mentions.push(Mention {
                span: name.span,
                declaration: message.fields[place].span,
                what: "field",
            });
        }
        match (variable, field) {
            (Some(variable), None) => {
                let ty = scope.types[usize::from(variable)];
                self.has_line(name, variable, scope)?;
                let variable = scope.variable(variable);
                if ty.set_of_homes() {
                    return Some(Operand::Homes(HomeSet::Variable(variable)));
                }
                if ty.array() {
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
            (None, Some((place, ty, _))) => {
                let place = place as u8;
                Some(Operand::of(ty, Expression::Field(place), Set::Field(place)))
            }
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
            (None, None) if self.kind_names.index.contains_key(name.text) => {
                self.all_of(name).map(|kind| Operand::Set(Set::All(kind)))
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
                // A single kind of remotes is seldom the intended name.
                match &self.kind_names.list[..] {
                    kinds @ [_, _, ..] => {
                        let known = known.chain(kinds.iter().map(|kind| kind.text));
                        unknown("variable, field or kind of remotes", name, known, self.sink);
                    }
                    _ => unknown("variable or field", name, known, self.sink),
                }
                None
            }
        }
    }

    /// Home of the current line.
    fn home(&self) -> Expression {
        match self.homes {
            1 => Expression::Constant(0),
            _ => Expression::Home,
        }
    }

    /// Reports a per-line variable in a row about no line.
    pub(super) fn has_line(
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
                .see(
                    scope.variables.list[variable].span,
                    "declare a variable that an agent has once in `registers`",
                ),
        );
        None
    }
}

fn of_homes(of: HomeSetQuery) -> Expression {
    Expression::Homes(Box::new(of))
}
