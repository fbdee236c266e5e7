//! Printing of expressions and places.

use super::Printer;
use cohkit_engine::model::{
    Argument, Expr, FunctionId, Operator, Place, Role, Step, Steps, Type, TypeId, VariableId,
};

/// Precedence of expressions; higher binds tighter. An operand of lower precedence than its position requires gets
/// parentheses.
pub(super) mod precedence {
    /// `?:`.
    pub const CONDITIONAL: u8 = 1;
    /// `->`.
    pub const IMPLIES: u8 = 2;
    /// Disjunction of truth values.
    pub const OR: u8 = 3;
    /// Conjunction of truth values.
    pub const AND: u8 = 4;
    /// `!`.
    pub const NOT: u8 = 5;
    /// Comparisons.
    pub const COMPARE: u8 = 6;
    /// Operators on bits, and shifts.
    pub const BITS: u8 = 7;
    /// `+` and `-`.
    pub const SUM: u8 = 8;
    /// `*`, `/`, `%` and negative numbers.
    pub const PRODUCT: u8 = 9;
    /// Names, literals, calls, and expressions with their own delimiters.
    pub const ATOM: u8 = 10;
}

/// The condition and the two values of a choice, each converted if the choice is converted. `None` for other values.
pub(super) fn alternatives(e: &Expr) -> Option<(&Expr, Expr, Expr)> {
    match e.without_line() {
        Expr::If(condition, a, b) => Some((condition, (**a).clone(), (**b).clone())),
        Expr::Convert(to, e) => {
            let (condition, a, b) = alternatives(e)?;
            let convert = |e| Expr::Convert(*to, Box::new(e));
            Some((condition, convert(a), convert(b)))
        }
        _ => None,
    }
}

impl Printer<'_> {
    /// Returns the text of a call.
    pub(super) fn call(&self, id: FunctionId, arguments: &[Argument]) -> String {
        let argument = |a: &Argument| match a {
            Argument::Value(e) => self.expr(e, 0),
            Argument::Place(place) => self.place(place),
        };
        let arguments: Vec<_> = arguments.iter().map(argument).collect();
        let name = &self.names.functions[id.index()];
        format!("{name}({})", arguments.join(", "))
    }

    /// Returns the text of a place: a variable with its fields and indices.
    pub(super) fn place(&self, place: &Place) -> String {
        let mut text = match &self.meanings[place.variable.index()] {
            Some(meaning) => meaning.clone(),
            None => self.names.variables[place.variable.index()].clone(),
        };
        let mut ty = self.model.variable(place.variable).ty;
        for step in &place.path {
            match (self.model.ty(ty), step) {
                (Type::Array { element, .. }, Step::Index(e)) => {
                    text = format!("{text}[{}]", self.expr(e, 0));
                    ty = *element;
                }
                (Type::Record(fields), Step::Field(name)) => {
                    text = format!("{text}.{}", self.field(fields, name));
                    ty = fields.iter().find(|f| f.0 == *name).map_or(ty, |f| f.1);
                }
                // Rumur has no multisets.
                (Type::Multiset { element, .. }, Step::Index(e)) => {
                    text = format!("{text}[{}]", self.expr(e, 0));
                    ty = *element;
                }
                // Excluded by validation.
                _ => {}
            }
        }
        text
    }

    /// An expression as text, in parentheses if its precedence is below `min_precedence`.
    pub(super) fn expr(&self, e: &Expr, min_precedence: u8) -> String {
        let (text, precedence) = self.expr_with_precedence(e);
        if precedence < min_precedence {
            format!("({text})")
        } else {
            text
        }
    }

    /// Returns an expression as text, without parentheses around it, and its precedence.
    pub(super) fn expr_with_precedence(&self, e: &Expr) -> (String, u8) {
        use precedence::{ATOM, CONDITIONAL, NOT, PRODUCT};
        match e {
            Expr::Int(n) => (n.to_string(), if *n < 0 { PRODUCT } else { ATOM }),
            Expr::Bool(b) => (b.to_string(), ATOM),
            Expr::Label(ty, n) => (self.constant(*ty, (*n).into()), ATOM),
            Expr::Read(place) | Expr::Peek(place) => (self.place(place), ATOM),
            Expr::IsUndefined(place) => (format!("isundefined({})", self.place(place)), ATOM),
            Expr::Line(_, e) => self.expr_with_precedence(e),
            Expr::Call(id, arguments) => (self.call(*id, arguments), ATOM),
            Expr::Alias(id, place, e) => self
                .with_meaning(*id, self.place(place))
                .expr_with_precedence(e),
            Expr::Let(id, value, e) => self
                .with_meaning(*id, self.expr(value, ATOM))
                .expr_with_precedence(e),
            Expr::Convert(to, e) => self.convert(*to, e),
            Expr::IsMember(e, ty) => self.is_member(e, *ty),
            // `undefined` can only be stored and passed.
            Expr::Undefined(_) => ("undefined".into(), ATOM),
            // Multisets are rejected for Rumur.
            Expr::Present(place, slot) => {
                let (place, slot) = (self.place(place), self.expr(slot, 0));
                (format!("choose {slot}: {place}"), ATOM)
            }
            Expr::Count(id, place, claim) => {
                let name = &self.names.variables[id.index()];
                let (place, claim) = (self.place(place), self.expr(claim, 0));
                (format!("multisetcount({name}: {place}, {claim})"), ATOM)
            }
            Expr::ForallSteps(id, steps, body) => {
                (self.quantified_steps("forall", *id, steps, body), ATOM)
            }
            Expr::ExistsSteps(id, steps, body) => {
                (self.quantified_steps("exists", *id, steps, body), ATOM)
            }
            Expr::Binary(op @ (Operator::Equal | Operator::NotEqual), a, b)
                if !self.for_readers && (self.can_be_undefined(a) || self.can_be_undefined(b)) =>
            {
                let equal = self.equal(a, b);
                match op {
                    Operator::Equal => (format!("({equal})"), ATOM),
                    _ => (format!("!({equal})"), NOT),
                }
            }
            Expr::Table(id, index) => (
                format!("{}({})", self.names.tables[id.index()], self.expr(index, 0)),
                ATOM,
            ),
            Expr::Not(a) => (format!("!{}", self.expr(a, ATOM)), NOT),
            Expr::Negate(a) => (format!("-{}", self.expr(a, ATOM)), PRODUCT),
            Expr::If(c, a, b) => {
                let next = CONDITIONAL + 1;
                let (c, a, b) = (self.expr(c, next), self.expr(a, next), self.expr(b, next));
                (format!("{c} ? {a} : {b}"), CONDITIONAL)
            }
            Expr::Forall(id, body) => (self.quantified("forall", *id, body), ATOM),
            Expr::Exists(id, body) => (self.quantified("exists", *id, body), ATOM),
            Expr::Binary(op, a, b) => self.binary(*op, a, b),
        }
    }

    /// Returns the text of a binary operation, and its precedence. Operations on bits always get parentheses.
    fn binary(&self, op: Operator, a: &Expr, b: &Expr) -> (String, u8) {
        use precedence::{AND, ATOM, BITS, COMPARE, IMPLIES, NOT, OR, PRODUCT, SUM};
        // Sign, precedence of the operation, and precedence that each operand needs.
        let (sign, precedence, left, right) = match op {
            Operator::Implies => ("->", IMPLIES, OR, OR),
            Operator::Or => ("|", OR, OR, AND),
            Operator::And => ("&", AND, AND, NOT),
            Operator::Equal => ("=", COMPARE, SUM, SUM),
            Operator::NotEqual => ("!=", COMPARE, SUM, SUM),
            Operator::Less => ("<", COMPARE, SUM, SUM),
            Operator::LessOrEqual => ("<=", COMPARE, SUM, SUM),
            Operator::Greater => (">", COMPARE, SUM, SUM),
            Operator::GreaterOrEqual => (">=", COMPARE, SUM, SUM),
            Operator::Add => ("+", SUM, SUM, PRODUCT),
            Operator::Subtract => ("-", SUM, SUM, PRODUCT),
            Operator::Multiply => ("*", PRODUCT, PRODUCT, ATOM),
            Operator::Divide => ("/", PRODUCT, PRODUCT, ATOM),
            Operator::Remainder => ("%", PRODUCT, PRODUCT, ATOM),
            Operator::BitAnd => ("&", BITS, ATOM, ATOM),
            Operator::BitOr => ("|", BITS, ATOM, ATOM),
            Operator::BitXor => ("^", BITS, ATOM, ATOM),
            Operator::ShiftLeft => ("<<", BITS, ATOM, ATOM),
            Operator::ShiftRight => (">>", BITS, ATOM, ATOM),
        };
        let text = format!("{} {sign} {}", self.expr(a, left), self.expr(b, right));
        match precedence == BITS {
            true => (format!("({text})"), ATOM),
            false => (text, precedence),
        }
    }

    /// Returns the text of a claim about all values of a variable's type. `quantifier` is `forall` or `exists`.
    pub(super) fn quantified(&self, quantifier: &str, id: VariableId, body: &Expr) -> String {
        let ty = self.model.variable(id).ty.index();
        let (name, ty) = (&self.names.variables[id.index()], &self.names.types[ty]);
        format!("{quantifier} {name}: {ty} do {} end", self.expr(body, 0))
    }

    /// Returns the text of a claim about numbers in steps. `quantifier` is `forall` or `exists`.
    pub(super) fn quantified_steps(
        &self,
        quantifier: &str,
        id: VariableId,
        steps: &Steps,
        body: &Expr,
    ) -> String {
        let [from, to, by] = [&steps.from, &steps.to, &steps.by].map(|e| self.expr(e, 0));
        let name = &self.names.variables[id.index()];
        let body = self.expr(body, 0);
        if self.for_readers && by == "1" {
            return format!("{quantifier} {name} := {from} to {to} do {body} end");
        }
        format!("{quantifier} {name} := {from} to {to} by {by} do {body} end")
    }

    /// A printer in which a name denotes an expression.
    pub(super) fn with_meaning(&self, id: VariableId, meaning: String) -> Printer<'_> {
        let mut meanings = self.meanings.clone();
        meanings[id.index()] = Some(meaning);
        Printer {
            model: self.model,
            text: String::new(),
            indent: 0,
            for_readers: self.for_readers,
            names: self.names.clone(),
            numeric: self.numeric.clone(),
            meanings,
        }
    }

    /// Compares two operands, of which at least one may be undefined. A comparison reads both operands, so an invalid
    /// read in one is preserved whatever the other is.
    pub(super) fn equal(&self, a: &Expr, b: &Expr) -> String {
        for (choice, other_value) in [(a, b), (b, a)] {
            if let Some((condition, then, otherwise)) = alternatives(choice) {
                let condition = self.expr(condition, precedence::OR);
                let [then, otherwise] = [then, otherwise].map(|e| self.equal(&e, other_value));
                return format!("{condition} ? ({then}) : ({otherwise})");
            }
        }
        let (x, y) = (self.expr(a, precedence::SUM), self.expr(b, precedence::SUM));
        let (value, operand, place) = match (self.undefined_place(a), self.undefined_place(b)) {
            (Some(a), Some(b)) => {
                return format!(
                    "isundefined({a}) ? isundefined({b}) : (!isundefined({b}) & {x} = {y})"
                )
            }
            (Some(place), None) => (b, &y, place),
            (None, Some(place)) => (a, &x, place),
            (None, None) => return format!("{x} = {y}"),
        };
        match self.is_state_independent(value) {
            true => format!("!isundefined({place}) & {x} = {y}"),
            false => format!("isundefined({place}) ? {operand} != {operand} : {x} = {y}"),
        }
    }

    /// True if the value does not read the state.
    pub(super) fn is_state_independent(&self, e: &Expr) -> bool {
        match e.without_line() {
            Expr::Label(..) | Expr::Int(_) | Expr::Bool(_) => true,
            Expr::Read(place) | Expr::Peek(place) => {
                place.path.is_empty() && self.model.variable(place.variable).role == Role::Bound
            }
            Expr::Convert(_, e) => self.is_state_independent(e),
            _ => false,
        }
    }

    /// True if the value may be undefined.
    pub(super) fn can_be_undefined(&self, e: &Expr) -> bool {
        match alternatives(e) {
            Some((_, a, b)) => self.can_be_undefined(&a) || self.can_be_undefined(&b),
            None => self.undefined_place(e).is_some(),
        }
    }

    /// The place of a comparison's operand, if it may be undefined.
    pub(super) fn undefined_place(&self, e: &Expr) -> Option<String> {
        match e.without_line() {
            Expr::Peek(place) if self.may_be_undefined(place) => Some(self.place(place)),
            Expr::Convert(_, e) => self.undefined_place(e),
            _ => None,
        }
    }

    /// Returns the text of a value converted between a union and a member type, and its precedence. Values of unions
    /// are printed as numbers, so a conversion adds or subtracts the member's offset.
    pub(super) fn convert(&self, to: TypeId, e: &Expr) -> (String, u8) {
        if self.for_readers {
            return self.expr_with_precedence(e);
        }
        let from = self.model.type_of(e).unwrap_or(to);
        let to_union = self.model.offset_in_union(to, from);
        let from_union = self.model.offset_in_union(from, to);
        let shift = to_union.or(from_union.map(|offset| -offset)).unwrap_or(0);
        match shift {
            0 => self.expr_with_precedence(e),
            1.. => (
                format!("{} + {shift}", self.expr(e, precedence::SUM)),
                precedence::SUM,
            ),
            _ => (
                format!("{} - {}", self.expr(e, precedence::SUM), -shift),
                precedence::SUM,
            ),
        }
    }

    /// Returns the text of a test that a value of a union belongs to a member type, and its precedence.
    pub(super) fn is_member(&self, e: &Expr, ty: TypeId) -> (String, u8) {
        if self.for_readers {
            let ty = &self.names.types[ty.index()];
            return (
                format!("ismember({}, {ty})", self.expr(e, 0)),
                precedence::ATOM,
            );
        }
        let from = self.model.type_of(e).unwrap_or(ty);
        let lo = self.model.offset_in_union(from, ty).unwrap_or(0);
        let hi = lo + self.model.bounds(ty).map_or(0, |b| b.1);
        let defined = match self.undefined_place(e) {
            Some(place) => format!("!isundefined({place})"),
            None => "true".into(),
        };
        if from == ty || !self.numeric[from.index()] {
            return (defined, precedence::NOT);
        }
        let value = self.expr(e, precedence::SUM);
        let is_in_range = format!("{value} >= {lo} & {value} <= {hi}");
        (format!("({defined} & {is_in_range})"), precedence::ATOM)
    }
}
