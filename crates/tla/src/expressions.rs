//! Translation of expressions and places.

use crate::names::field_names;
use crate::sets::number;
use crate::translator::{both, let_in, Binding, BoundPlace, Cell, Term, Translator};
use cohkit_engine::bounds::{bounds, Bounds};
use cohkit_engine::model::{
    Argument, Expr, FunctionId, Operator, Place, Role, Step, Steps, Type, TypeId, VariableId,
};

impl Translator<'_> {
    /// Translates an expression.
    ///
    /// # Errors
    /// A construct that has no counterpart, in words.
    pub(crate) fn term(&mut self, e: &Expr) -> Result<Term, String> {
        use Binding::Atom;
        match e {
            Expr::Int(n) => Ok(Term::new(number(*n), Atom)),
            Expr::Bool(value) => {
                let value = (*value).into();
                Ok(Term::new(self.sets.value(TypeId::BOOL, value), Atom))
            }
            Expr::Label(ty, n) => Ok(Term::new(self.sets.value(*ty, (*n).into()), Atom)),
            Expr::Read(place) => self.read(place, true),
            Expr::Peek(place) => self.read(place, false),
            Expr::Undefined(_) => Ok(Term::new("undefined", Atom)),
            Expr::IsUndefined(place) => {
                let term = self.read(place, false)?;
                let text = format!("{} = undefined", term.text);
                Ok(term.with(text, Binding::Compare))
            }
            Expr::Table(id, index) => {
                let index = self.index(index, self.model.tables[id.index()].index)?;
                let text = format!("{}({})", self.names.tables[id.index()], index.text);
                Ok(index.with(text, Atom))
            }
            Expr::Not(e) => {
                let term = self.term(e)?;
                let text = format!("~{}", term.within(Atom));
                Ok(term.with(text, Binding::Logic))
            }
            Expr::Negate(operand) => {
                let term = self.term(operand)?;
                let text = format!("(-{})", term.within(Atom));
                Ok(self.checked(term.with(text, Atom), bounds(self.model, e)))
            }
            Expr::Binary(op, a, b) => self.binary(*op, a, b),
            Expr::If(c, a, b) => self.choice(c, a, b),
            Expr::Forall(id, claim) => self.quantified("\\A", *id, None, claim),
            Expr::Exists(id, claim) => self.quantified("\\E", *id, None, claim),
            Expr::ForallSteps(id, steps, claim) => self.quantified("\\A", *id, Some(steps), claim),
            Expr::ExistsSteps(id, steps, claim) => self.quantified("\\E", *id, Some(steps), claim),
            Expr::Call(id, arguments) => self.call_in_expression(*id, arguments),
            Expr::Alias(id, place, e) => self.with_alias(*id, place, e),
            Expr::Let(id, value, e) => self.with_local(*id, value, e),
            Expr::Convert(ty, e) => self.convert(*ty, e),
            Expr::IsMember(e, ty) => {
                let (term, set) = (self.term(e)?, self.sets.simple(*ty));
                let text = format!("{} \\in {set}", term.within(Binding::Arithmetic));
                Ok(term.with(text, Binding::Compare))
            }
            Expr::Present(place, _) | Expr::Count(_, place, _) => Err(self.multiset_refusal(place)),
            Expr::Line(_, e) => self.term(e),
        }
    }

    /// Translates an expression in which a name is an alias of a place.
    fn with_alias(&mut self, id: VariableId, place: &Place, e: &Expr) -> Result<Term, String> {
        let (place, defined) = self.bind(place)?;
        self.scope.aliases.insert(id, place);
        let term = self.term(e)?;
        self.scope.aliases.remove(&id);
        Ok(Term {
            defined: both(defined, term.defined),
            ..term
        })
    }

    /// Translates an expression in which a local variable has a value.
    fn with_local(&mut self, id: VariableId, value: &Expr, e: &Expr) -> Result<Term, String> {
        let cell = Cell::Variable(id);
        let (value, name) = (self.term(value)?, self.fresh(&self.base(cell)));
        self.scope.cells.insert(cell, name.clone());
        let term = self.term(e)?;
        self.scope.cells.remove(&cell);
        let with_value = |text: String| format!("LET {name} == {} IN {text}", value.text);
        let defined = (term.defined).map(|defined| format!("({})", with_value(defined)));
        Ok(Term {
            text: with_value(term.text),
            binding: Binding::Open,
            defined: both(value.defined.clone(), defined),
        })
    }

    /// Error message for a multiset.
    pub(crate) fn multiset_refusal(&self, place: &Place) -> String {
        format!(
            "`{}` is a multiset, which is not exported to TLA+",
            self.model.spell(place)
        )
    }

    /// Reads a place. If `must_be_defined` is true, an undefined scalar has no value.
    fn read(&mut self, place: &Place, must_be_defined: bool) -> Result<Term, String> {
        let (bound, defined) = self.bind(place)?;
        let text = format!("{}{}", self.current_of(bound.variable), bound.path);
        let is_scalar = self.model.bounds(bound.ty).is_some();
        let may_be_undefined = self.model.undefined
            && is_scalar
            && self.model.variable(bound.variable).role != Role::Bound;
        let check = (must_be_defined && may_be_undefined).then(|| format!("{text} # undefined"));
        Ok(Term {
            text,
            binding: Binding::Atom,
            defined: both(defined, check),
        })
    }

    /// Text of the current value of a variable; a bound variable denotes itself.
    pub(crate) fn current_of(&self, id: VariableId) -> String {
        match self.scope.cells.get(&Cell::Variable(id)) {
            Some(text) => text.clone(),
            None => self.names.variables[id.index()].clone(),
        }
    }

    /// Evaluates the indices of a place. Returns also the condition under which all of them are valid.
    pub(crate) fn bind(&mut self, place: &Place) -> Result<(BoundPlace, Option<String>), String> {
        let mut bound = self.root(place);
        let mut defined = None;
        for step in &place.path {
            match (self.model.ty(bound.ty), step) {
                (Type::Array { index, element }, Step::Index(e)) => {
                    let (ty, element) = (*index, *element);
                    let term = self.index(e, ty)?;
                    bound.path = format!("{}[{}]", bound.path, term.text);
                    bound.ty = element;
                    defined = both(defined, term.defined);
                }
                (Type::Record(fields), Step::Field(name)) => {
                    let place = fields.iter().position(|field| field.0 == *name);
                    let place = place.ok_or_else(|| format!("there is no field `{name}`"))?;
                    bound.path = format!("{}.{}", bound.path, field_names(fields)[place]);
                    bound.ty = fields[place].1;
                }
                _ => return Err(self.multiset_refusal(place)),
            }
        }
        Ok((bound, defined))
    }

    /// Translates an index of an array or table. It has no value outside the index type.
    fn index(&mut self, e: &Expr, ty: TypeId) -> Result<Term, String> {
        let mut term = self.term(e)?;
        if self.may_be_undefined(e) {
            let check = format!("{} # undefined", term.within(Binding::Arithmetic));
            term.defined = both(term.defined, Some(check));
        }
        Ok(self.within_type(term, e, ty))
    }

    /// Requires that a value belongs to a simple type, unless it always does.
    pub(crate) fn within_type(&mut self, term: Term, e: &Expr, ty: TypeId) -> Term {
        let Type::Range { lo, hi } = *self.model.ty(ty) else {
            return term;
        };
        let bounds = bounds(self.model, e);
        if i128::from(lo) <= bounds.lo && bounds.hi <= i128::from(hi) {
            return term;
        }
        let set = self.sets.simple(ty);
        let check = match self.may_be_undefined(e) {
            true => format!(
                "{} \\in {set} \\cup {{undefined}}",
                term.within(Binding::Atom)
            ),
            false => format!("{} \\in {set}", term.within(Binding::Arithmetic)),
        };
        Term {
            defined: both(term.defined.clone(), Some(check)),
            ..term
        }
    }

    /// True if the value of an expression may be undefined.
    pub(crate) fn may_be_undefined(&self, e: &Expr) -> bool {
        match e.without_line() {
            Expr::Undefined(_) => true,
            Expr::Peek(_) | Expr::Call(..) => self.model.undefined,
            Expr::If(_, a, b) => self.may_be_undefined(a) || self.may_be_undefined(b),
            Expr::Convert(_, e) | Expr::Alias(_, _, e) | Expr::Let(_, _, e) => {
                self.may_be_undefined(e)
            }
            _ => false,
        }
    }

    /// Requires that an amount with these bounds is among the model's numbers, unless it always is.
    fn checked(&self, term: Term, Bounds { lo, hi }: Bounds) -> Term {
        let (least, greatest) = self.model.numbers;
        let mut checks = Vec::new();
        if lo < least.into() {
            checks.push(format!(
                "{} >= {}",
                term.within(Binding::Arithmetic),
                number(least)
            ));
        }
        if hi > greatest.into() {
            checks.push(format!(
                "{} <= {greatest}",
                term.within(Binding::Arithmetic)
            ));
        }
        let check = (!checks.is_empty()).then(|| checks.join(" /\\ "));
        Term {
            defined: both(term.defined.clone(), check),
            ..term
        }
    }

    /// Translates an operation on two values.
    fn binary(&mut self, op: Operator, a: &Expr, b: &Expr) -> Result<Term, String> {
        use Binding::{Arithmetic, Atom, Compare};
        use Operator::*;
        let (left, right) = (self.term(a)?, self.term(b)?);
        let infix = |sign: &str, binding: Binding, operands: Binding| Term {
            text: format!(
                "{} {sign} {}",
                left.within(operands),
                right.within(operands)
            ),
            binding,
            defined: both(left.defined.clone(), right.defined.clone()),
        };
        let mut call = |operator: &'static str, text: String| {
            self.used_operators.insert(operator);
            Term {
                text,
                binding: Atom,
                defined: both(left.defined.clone(), right.defined.clone()),
            }
        };
        let pair = format!("{}, {}", left.text, right.text);
        let are_natural = bounds(self.model, a).lo >= 0 && bounds(self.model, b).lo > 0;
        let term = match op {
            And | Or | Implies => return Ok(self.logic(op, (a, &left), (b, &right))),
            Equal => infix("=", Compare, Arithmetic),
            NotEqual => infix("#", Compare, Arithmetic),
            Less => infix("<", Compare, Arithmetic),
            LessOrEqual => infix("<=", Compare, Arithmetic),
            Greater => infix(">", Compare, Arithmetic),
            GreaterOrEqual => infix(">=", Compare, Arithmetic),
            Add => infix("+", Arithmetic, Atom),
            Subtract => infix("-", Arithmetic, Atom),
            Multiply => infix("*", Arithmetic, Atom),
            // These operators of TLA+ round down, which is the same for such operands.
            Divide if are_natural => infix("\\div", Arithmetic, Atom),
            Remainder if are_natural => infix("%", Arithmetic, Atom),
            Divide => call("Quotient", format!("Quotient({pair})")),
            Remainder => call("Remainder", format!("Remainder({pair})")),
            BitAnd => call("BitAnd", format!("BitAnd({pair})")),
            BitOr => call("BitOr", format!("BitOr({pair})")),
            BitXor => call("BitXor", format!("BitXor({pair})")),
            ShiftLeft => call("Shift", format!("Shift({pair})")),
            ShiftRight => call(
                "Shift",
                format!("Shift({}, -{})", left.text, right.within(Atom)),
            ),
        };
        if !op.is_arithmetic() {
            return Ok(term);
        }
        let mut term = term;
        if matches!(op, Divide | Remainder) && !are_natural {
            let check = format!("{} # 0", right.within(Arithmetic));
            term.defined = both(term.defined, Some(check));
        }
        let result = Expr::Binary(op, a.clone().into(), b.clone().into());
        Ok(self.checked(term, bounds(self.model, &result)))
    }

    /// Translates a logical operation. The second operand is evaluated only if the first does not decide.
    fn logic(&self, op: Operator, (a, left): (&Expr, &Term), (b, right): (&Expr, &Term)) -> Term {
        use Binding::{Compare, Logic, Open};
        // Operands with the same operator need no parentheses.
        let operand = |e: &Expr, term: &Term| match e.without_line() {
            Expr::Binary(inner, ..) if *inner == op && op != Operator::Implies => {
                term.within(Logic)
            }
            Expr::Not(_) => term.within(Logic),
            _ => term.within(Compare),
        };
        let (sign, binding) = match op {
            Operator::And => ("/\\", Logic),
            Operator::Or => ("\\/", Logic),
            _ => ("=>", Open),
        };
        let is_needed = |defined: &String| match op {
            Operator::Or => format!("({} \\/ ({defined}))", left.within(Compare)),
            _ => format!("({} => ({defined}))", left.within(Compare)),
        };
        Term {
            text: format!("{} {sign} {}", operand(a, left), operand(b, right)),
            binding,
            defined: both(left.defined.clone(), right.defined.as_ref().map(is_needed)),
        }
    }

    /// Translates a choice between two values.
    fn choice(&mut self, c: &Expr, a: &Expr, b: &Expr) -> Result<Term, String> {
        let (condition, a, b) = (self.term(c)?, self.term(a)?, self.term(b)?);
        let choose = |a: &str, b: &str| format!("IF {} THEN {a} ELSE {b}", condition.text);
        let text = choose(&a.text, &b.text);
        let defined = match (a.defined, b.defined) {
            (None, None) => None,
            (a, b) => {
                let always = || "TRUE".to_string();
                let [a, b] = [a, b].map(|defined| defined.unwrap_or_else(always));
                Some(format!("({})", choose(&a, &b)))
            }
        };
        Ok(Term {
            text,
            binding: Binding::Open,
            defined: both(condition.defined, defined),
        })
    }

    /// Translates a claim about all values of a variable's type, or about numbers in steps.
    fn quantified(
        &mut self,
        sign: &str,
        id: VariableId,
        steps: Option<&Steps>,
        claim: &Expr,
    ) -> Result<Term, String> {
        let (set, outer) = match steps {
            Some(steps) => self.steps_set(steps)?,
            None => (self.sets.simple(self.model.variable(id).ty), None),
        };
        // A name of its own for each use: the text may be inside another claim about the same variable.
        let name = self.fresh(&self.base(Cell::Variable(id)));
        self.scope.cells.insert(Cell::Variable(id), name.clone());
        let term = self.term(claim)?;
        self.scope.cells.remove(&Cell::Variable(id));
        let every = |sign: &str, claim: &str| format!("{sign} {name} \\in {set} : {claim}");
        let inner = term
            .defined
            .map(|defined| format!("({})", every("\\A", &defined)));
        Ok(Term {
            text: every(sign, &term.text),
            binding: Binding::Open,
            defined: both(outer, inner),
        })
    }

    /// Returns the set of the numbers of an arithmetic sequence, and the condition under which it has a value.
    fn steps_set(&mut self, steps: &Steps) -> Result<(String, Option<String>), String> {
        let (from, to, by) = (
            self.term(&steps.from)?,
            self.term(&steps.to)?,
            self.term(&steps.by)?,
        );
        let defined = both(
            both(from.defined.clone(), to.defined.clone()),
            by.defined.clone(),
        );
        if by.text == "1" {
            let bound = |term: &Term| term.within(Binding::Atom);
            return Ok((format!("{} .. {}", bound(&from), bound(&to)), defined));
        }
        self.used_operators.insert("Steps");
        let is_constant = matches!(steps.by.without_line(), Expr::Int(n) if *n != 0);
        let check = (!is_constant).then(|| format!("{} # 0", by.within(Binding::Arithmetic)));
        let set = format!("Steps({}, {}, {})", from.text, to.text, by.text);
        Ok((set, both(defined, check)))
    }

    /// Translates a call that may not change anything outside the function.
    fn call_in_expression(
        &mut self,
        id: FunctionId,
        arguments: &[Argument],
    ) -> Result<Term, String> {
        let before = self.scope.clone();
        self.scope.cells.insert(Cell::Violation, "\"\"".into());
        let mut definitions = Vec::new();
        let result = self.call(id, arguments, &mut definitions)?;
        let after = std::mem::replace(&mut self.scope, before);
        let changed = self.scope.cells.iter().find(|(cell, text)| {
            matches!(cell, Cell::Variable(_) | Cell::Enabled)
                && after.cells.get(*cell) != Some(*text)
        });
        if changed.is_some() {
            return Err(format!(
                "`{}` changes the state and is called inside an expression, which is not exported to TLA+",
                self.model.functions[id.index()].name
            ));
        }
        let violation = &after.cells[&Cell::Violation];
        let on_one_line = |result: &str| {
            let text = let_in(&definitions, result);
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let defined = (violation != "\"\"")
            .then(|| format!("({})", on_one_line(&format!("{violation} = \"\""))));
        Ok(Term {
            text: on_one_line(&result),
            binding: Binding::Open,
            defined,
        })
    }

    /// Translates a conversion between a union and a member, which have the same values.
    fn convert(&mut self, to: TypeId, e: &Expr) -> Result<Term, String> {
        let (term, from) = (self.term(e)?, self.model.type_of(e).unwrap_or(to));
        let always_fits = from == to || self.model.offset_in_union(to, from).is_some();
        if always_fits {
            return Ok(term);
        }
        let set = self.sets.simple(to);
        let check = match self.may_be_undefined(e) {
            true => format!(
                "{} \\in {set} \\cup {{undefined}}",
                term.within(Binding::Atom)
            ),
            false => format!("{} \\in {set}", term.within(Binding::Arithmetic)),
        };
        Ok(Term {
            defined: both(term.defined.clone(), Some(check)),
            ..term
        })
    }
}
