//! Lowering of expressions, with checks of their types. Methods return `None` after they have reported an error.

use super::{Access, Effects, Lowering, Meaning, Typed};
use crate::ast::{
    BinaryOperator, Domain, Expr, ExprKind, Name, Quantifier, TypeExpr, UnaryOperator,
};
use crate::Dialect;
use cohkit_diagnostics::{suggestion, Span};
use cohkit_engine::model::{
    Argument, Expr as ModelExpr, FunctionId, Number, Operator, Place, Role, Steps, Type, TypeId,
    Variable, VariableId,
};
use cohkit_engine::validate::Kind;

/// Number of combinations of values of enclosing names above which a warning is given: evaluating as many takes seconds
/// or minutes for a single state.
const MAX_COMBINATIONS: u64 = 10_000_000;

impl<'t> Lowering<'t, '_> {
    /// Returns a value that is no variable. The result is never `None`.
    fn simple_value(expr: ModelExpr, kind: Kind, span: Span) -> Option<Typed> {
        Some(Typed {
            expr,
            kind,
            ty: None,
            access: None,
            is_undefined: false,
            span,
        })
    }

    /// Returns a variable, a field or an element, read where its value is needed.
    pub(super) fn read_place(&self, place: Place, access: Access, ty: TypeId, span: Span) -> Typed {
        // CMurphi compares undefined values of these types.
        let allows_undefined = matches!(self.model.ty(ty), Type::Scalarset(_) | Type::Union(_));
        let expr = match allows_undefined && !self.is_strict {
            true => ModelExpr::Peek(place),
            false => ModelExpr::Read(place),
        };
        Typed {
            expr,
            kind: self.model.kind_of_type(ty),
            ty: Some(ty),
            access: Some(access),
            is_undefined: false,
            span,
        }
    }

    /// Lowers an expression of any type.
    pub(super) fn lower_expr(&mut self, e: &Expr<'t>) -> Option<Typed> {
        match &e.kind {
            ExprKind::Number(digits) => self.lower_number(*digits),
            ExprKind::Bool(b) => Self::simple_value(ModelExpr::Bool(*b), Kind::Bool, e.span),
            ExprKind::Name(name) => self.lower_name(*name),
            ExprKind::Field(base, name) => self.lower_field(base, *name, e.span),
            ExprKind::Index(base, index) => self.lower_index(base, index, e.span),
            ExprKind::Call(name, arguments) => {
                let (id, arguments) = self.lower_call(*name, arguments)?;
                let Some(ty) = self.model.functions[id.index()].result else {
                    self.error(e.span, format!("`{}` gives no value", name.text))
                        .label("a value is needed here");
                    return None;
                };
                Some(Typed {
                    expr: ModelExpr::Call(id, arguments),
                    kind: self.model.kind_of_type(ty),
                    ty: Some(ty),
                    access: None,
                    is_undefined: false,
                    span: e.span,
                })
            }
            ExprKind::Unary(op, a) => self.lower_unary(*op, a, e.span),
            ExprKind::Binary(op, sign, a, b) => self.lower_binary(*op, *sign, a, b, e.span),
            ExprKind::If(c, a, b) => {
                let c = self.lower_boolean(c, "the condition");
                let (a, b) = (self.lower_expr(a), self.lower_expr(b));
                let (c, (a, b)) = (c?, self.unify(a?, b?, e.span)?);
                if let Kind::Aggregate(_) = a.kind {
                    self.error(e.span, "`?:` chooses between simple values alone");
                    return None;
                }
                let expr = ModelExpr::If(Box::new(c), Box::new(a.expr), Box::new(b.expr));
                Self::simple_value(expr, a.kind, e.span)
            }
            ExprKind::Quantified(is_universal, quantifiers, body) => {
                let claim = self.lower_quantified(*is_universal, quantifiers, body)?;
                Self::simple_value(claim, Kind::Bool, e.span)
            }
            ExprKind::IsUndefined(a) => {
                let typed = self.lower_expr(a)?;
                let is_simple = !matches!(typed.kind, Kind::Aggregate(_));
                match typed.into_place() {
                    Some((place, _)) if is_simple => {
                        Self::simple_value(ModelExpr::IsUndefined(place), Kind::Bool, e.span)
                    }
                    _ => {
                        self.error(a.span, "`isundefined` needs a variable of a simple type")
                            .label("this is none");
                        None
                    }
                }
            }
            ExprKind::IsMember(a, ty) => self.lower_is_member(a, ty, e.span),
            ExprKind::Count(name, multiset, claim) => {
                let (place, id, claim) = self.lower_slot_claim(*name, multiset, claim)?;
                let expr = ModelExpr::Count(id, place, Box::new(claim));
                Self::simple_value(expr, Kind::Int, e.span)
            }
        }
    }

    /// Lowers a test that a value of a union belongs to a member type.
    fn lower_is_member(&mut self, a: &Expr<'t>, ty: &TypeExpr<'t>, span: Span) -> Option<Typed> {
        let (typed, to) = (self.lower_expr(a), self.lower_type_expr(ty));
        let (typed, to) = (typed?, to?);
        if typed.access.is_none() {
            self.require_dialect(
                Dialect::Rumur,
                a.span,
                "`ismember` of other things than variables",
            );
        }
        let is_related = match typed.kind {
            Kind::Enum(from) => from == to || self.model.offset_in_union(from, to).is_some(),
            _ => false,
        };
        if !is_related {
            let (kind, target_type) = (self.kind_name(typed.kind), self.type_name(to));
            self.error(span, format!("{kind} is never {target_type}"))
                .note("`ismember` asks which member of a union a value belongs to");
            return None;
        }
        let expr = ModelExpr::IsMember(Box::new(typed.expr), to);
        Self::simple_value(expr, Kind::Bool, span)
    }

    /// Lowers a claim about each slot of a multiset, with a name for the slot. Returns the multiset, the variable of
    /// the name, and the claim.
    pub(super) fn lower_slot_claim(
        &mut self,
        name: Name<'t>,
        multiset: &Expr<'t>,
        claim: &Expr<'t>,
    ) -> Option<(Place, VariableId, ModelExpr)> {
        let (place, capacity) = self.lower_multiset(multiset)?;
        let ty = self.slot_index_type(capacity);
        let id = self.add_variable(name.text, ty, Role::Bound);
        self.binding_spans.insert(id, name.span);
        let claim = self.scoped(|l| {
            l.declare(name, Meaning::Variable(id, Access::Slot));
            l.lower_boolean(claim, "the claim")
        });
        Some((place, id, claim?))
    }

    /// The index type of a multiset's slots.
    pub(super) fn slot_index_type(&mut self, capacity: u32) -> TypeId {
        let hi = Number::from(capacity) - 1;
        self.intern_type(format!("0..{hi}"), Type::Range { lo: 0, hi })
    }

    /// Lowers a multiset, and returns its place and capacity.
    pub(super) fn lower_multiset(&mut self, e: &Expr<'t>) -> Option<(Place, u32)> {
        let typed = self.lower_expr(e)?;
        let kind = self.kind_name(typed.kind);
        if let Some(Type::Multiset { capacity, .. }) = typed.ty.map(|ty| self.model.ty(ty)) {
            let capacity = *capacity;
            if let Some((place, _)) = typed.into_place() {
                return Some((place, capacity));
            }
        }
        self.error(e.span, format!("a multiset is needed here, not {kind}"));
        None
    }

    /// Lowers a number. `span` is the position of its digits.
    fn lower_number(&mut self, span: Span) -> Option<Typed> {
        let digits = self.text_of(span);
        let has_several_digits = digits.len() > 1 && digits.bytes().all(|b| b.is_ascii_digit());
        if has_several_digits && digits.starts_with('0') && self.dialect == Dialect::Any {
            self.sink
                .warning(span, format!("`{digits}` is taken as a decimal number"))
                .note("for Rumur it is an octal one; `--dialect rumur` takes it so");
        }
        if digits.to_ascii_lowercase().starts_with("0x") {
            self.require_dialect(Dialect::Rumur, span, "hexadecimal numbers");
        }
        let max = self.model.numbers.1;
        match crate::parse_number(digits, self.dialect).filter(|&n| n <= max) {
            Some(n) => Self::simple_value(ModelExpr::Int(n), Kind::Int, span),
            None => {
                let bits = self.model.number_bits();
                self.error(span, format!("`{digits}` is no number of {bits} bits"))
                    .label(format!("at most {max}"));
                None
            }
        }
    }

    /// Lowers a name that is used as a value.
    fn lower_name(&mut self, name: Name<'t>) -> Option<Typed> {
        match self.find(name.text).map(|s| s.meaning.clone()) {
            Some(Meaning::Constant(value, kind) | Meaning::ConstantAlias(value, kind)) => {
                Self::simple_value(value, kind, name.span)
            }
            Some(Meaning::Variable(id, access)) => {
                let ty = self.model.variable(id).ty;
                Some(self.read_place(id.into(), access, ty, name.span))
            }
            Some(Meaning::Invalid) => None,
            Some(Meaning::Type(_)) => {
                self.error(name.span, format!("`{}` is a type, not a value", name.text))
                    .label("a value is needed here");
                None
            }
            Some(Meaning::Function(_)) => {
                self.error(name.span, format!("`{}` is a function", name.text))
                    .label("its arguments are missing");
                None
            }
            None if name.text.eq_ignore_ascii_case("undefined") => {
                self.require_dialect(Dialect::CMurphi, name.span, "`undefined`");
                Some(Typed {
                    expr: ModelExpr::Undefined(TypeId::BOOL),
                    kind: Kind::Bool,
                    ty: None,
                    access: None,
                    is_undefined: true,
                    span: name.span,
                })
            }
            None => {
                let value = |m: &Meaning| {
                    matches!(
                        m,
                        Meaning::Variable(..) | Meaning::Constant(..) | Meaning::ConstantAlias(..)
                    )
                };
                self.report_unknown(name, "value", value);
                None
            }
        }
    }

    /// Lowers a field of a record.
    fn lower_field(&mut self, base: &Expr<'t>, name: Name<'t>, span: Span) -> Option<Typed> {
        let typed = self.lower_expr(base)?;
        let fields = match typed.ty.map(|ty| self.model.ty(ty)) {
            Some(Type::Record(fields)) => fields,
            _ => {
                let kind = self.kind_name(typed.kind);
                self.error(name.span, format!("{kind} has no field `{}`", name.text))
                    .label("not a field")
                    .note_at(base.span, "this is no record");
                return None;
            }
        };
        let Some(&(_, ty)) = fields.iter().find(|f| f.0 == name.text) else {
            let help = suggestion(name.text, "field", fields.iter().map(|f| f.0.as_str()));
            self.error(
                name.span,
                format!("the record has no field `{}`", name.text),
            )
            .label("not a field")
            .note(help);
            return None;
        };
        let (place, access) = self.require_place(typed)?;
        Some(self.read_place(place.field(name.text), access, ty, span))
    }

    /// The place of an expression of which a field or an element is accessed; reports an error for a value.
    fn require_place(&mut self, typed: Typed) -> Option<(Place, Access)> {
        if typed.access.is_none() {
            self.error(typed.span, "only variables have parts")
                .label("this is a value");
        }
        typed.into_place()
    }

    /// Lowers an element of an array, or of a multiset by the name of a slot.
    fn lower_index(&mut self, base: &Expr<'t>, index: &Expr<'t>, span: Span) -> Option<Typed> {
        let (typed, position) = (self.lower_expr(base), self.lower_expr(index));
        let (typed, position) = (typed?, position?);
        match typed.ty.map(|ty| self.model.ty(ty).clone()) {
            Some(Type::Array { index, element }) => {
                let e = self.coerce(position, index, "the index")?;
                let (place, access) = self.require_place(typed)?;
                Some(self.read_place(place.at(e), access, element, span))
            }
            Some(Type::Multiset { element, .. }) => {
                if !matches!(position.access, Some(Access::Slot)) {
                    self.error(
                        index.span,
                        "a multiset's elements have no order, so no index",
                    )
                    .label("only the name of a slot is allowed here")
                    .note("`choose`, `multisetcount` and `multisetremovepred` give names to slots");
                    return None;
                }
                let (place, access) = self.require_place(typed)?;
                Some(self.read_place(place.at(position.expr), access, element, span))
            }
            _ => {
                let kind = self.kind_name(typed.kind);
                self.error(base.span, format!("{kind} has no elements"))
                    .label("this is no array");
                None
            }
        }
    }

    /// Lowers an operator with one operand.
    fn lower_unary(&mut self, op: UnaryOperator, a: &Expr<'t>, span: Span) -> Option<Typed> {
        if op == UnaryOperator::Not {
            let a = self.lower_boolean(a, "the operand of `!`")?;
            return Self::simple_value(ModelExpr::Not(Box::new(a)), Kind::Bool, span);
        }
        let a = self.lower_integer(a, "an operand")?;
        let expr = match (op, self.fold(&a)) {
            (UnaryOperator::Plus, _) => a,
            (UnaryOperator::Minus, Some(n)) if n != self.model.numbers.0 => ModelExpr::Int(-n),
            (UnaryOperator::Minus, _) => ModelExpr::Negate(Box::new(a)),
            _ => ModelExpr::Binary(Operator::BitXor, Box::new(a), Box::new(ModelExpr::Int(-1))),
        };
        Self::simple_value(expr, Kind::Int, span)
    }

    /// Lowers an expression that must be a boolean. `description` names the expression in messages.
    pub(super) fn lower_boolean(&mut self, e: &Expr<'t>, description: &str) -> Option<ModelExpr> {
        let typed = self.lower_expr(e)?;
        self.require_kind(typed, Kind::Bool, description)
    }

    /// Lowers an expression that must be a number. `description` names the expression in messages.
    pub(super) fn lower_integer(&mut self, e: &Expr<'t>, description: &str) -> Option<ModelExpr> {
        let typed = self.lower_expr(e)?;
        self.require_kind(typed, Kind::Int, description)
    }

    /// Returns the expression if its value is of the expected kind, or reports an error.
    fn require_kind(
        &mut self,
        typed: Typed,
        expected: Kind,
        description: &str,
    ) -> Option<ModelExpr> {
        if !self.has_value(&typed) {
            return None;
        }
        if typed.kind == expected {
            return Some(typed.expr);
        }
        let (actual, expected) = (self.kind_name(typed.kind), self.kind_name(expected));
        self.error(
            typed.span,
            format!("{description} must be {expected}, not {actual}"),
        )
        .label(format!("this is {actual}"));
        None
    }

    /// Returns true unless the expression is the word `undefined`, which is reported as an error.
    fn has_value(&mut self, typed: &Typed) -> bool {
        if typed.is_undefined {
            self.error(typed.span, "`undefined` is no value to compute with")
                .label("it can be stored and passed")
                .note("`isundefined(x)` asks whether `x` is undefined");
        }
        !typed.is_undefined
    }

    /// Converts a value to a type: that of a union to a member type, and the reverse.
    pub(super) fn coerce(
        &mut self,
        typed: Typed,
        target_type: TypeId,
        description: &str,
    ) -> Option<ModelExpr> {
        if typed.is_undefined {
            return Some(ModelExpr::Undefined(target_type));
        }
        let kind = self.model.kind_of_type(target_type);
        if typed.kind == kind {
            return Some(typed.expr);
        }
        if let (Kind::Enum(from), Kind::Enum(to)) = (typed.kind, kind) {
            let is_member_to_union = self.model.offset_in_union(to, from).is_some();
            let is_union_to_member = self.model.offset_in_union(from, to).is_some();
            if is_member_to_union || is_union_to_member {
                return Some(convert(typed.expr, to));
            }
            if self.model.ty(from) == self.model.ty(to) {
                if let Type::Scalarset(_) = self.model.ty(from) {
                    let (from, to) = (self.kind_name(typed.kind), self.kind_name(kind));
                    self.error(typed.span, format!("{description} must be {to}, not {from}"))
                        .label(format!("this is {from}"))
                        .note("scalarsets of equal size are different types: their values have nothing in common");
                    return None;
                }
            }
        }
        self.require_kind(typed, kind, description)
    }

    /// Lowers a value to be stored in a place of this type. An undefined variable may be copied, except in Rumur's
    /// dialect.
    pub(super) fn lower_copied_value(
        &mut self,
        e: &Expr<'t>,
        target_type: TypeId,
        description: &str,
    ) -> Option<ModelExpr> {
        match self.dialect {
            Dialect::Rumur => {
                let typed = self.lower_expr(e)?;
                self.coerce(typed, target_type, description)
            }
            _ => self.lower_passed_value(e, target_type, description),
        }
    }

    /// Lowers a value to be passed to a parameter of this type. An undefined variable is passed without an error.
    fn lower_passed_value(
        &mut self,
        e: &Expr<'t>,
        target_type: TypeId,
        description: &str,
    ) -> Option<ModelExpr> {
        let mut typed = self.lower_expr(e)?;
        if let (ModelExpr::Read(place), Some(_)) = (&mut typed.expr, typed.access) {
            let variable = place.variable;
            let path = std::mem::take(&mut place.path);
            typed.expr = ModelExpr::Peek(Place { variable, path });
        }
        self.coerce(typed, target_type, description)
    }

    /// Converts two values to one kind: a value of a member type to the union. `span` is the position of both.
    pub(super) fn unify(
        &mut self,
        mut a: Typed,
        mut b: Typed,
        span: Span,
    ) -> Option<(Typed, Typed)> {
        if !self.has_value(&a) | !self.has_value(&b) {
            return None;
        }
        if a.kind == b.kind {
            return Some((a, b));
        }
        if let (Kind::Enum(x), Kind::Enum(y)) = (a.kind, b.kind) {
            if self.model.offset_in_union(x, y).is_some() {
                b.expr = convert(b.expr, x);
                b.kind = a.kind;
                return Some((a, b));
            }
            if self.model.offset_in_union(y, x).is_some() {
                a.expr = convert(a.expr, y);
                a.kind = b.kind;
                return Some((a, b));
            }
        }
        let (x, y) = (self.kind_name(a.kind), self.kind_name(b.kind));
        self.error(span, format!("{x} and {y} do not go together"))
            .note_at(a.span, format!("this is {x}"))
            .note_at(b.span, format!("this is {y}"));
        None
    }

    /// Lowers an operator with two operands. `sign` is the position of the operator.
    fn lower_binary(
        &mut self,
        op: BinaryOperator,
        sign: Span,
        a: &Expr<'t>,
        b: &Expr<'t>,
        span: Span,
    ) -> Option<Typed> {
        let operator = model_operator(op);
        let (operator, kind, a, b) = match op {
            BinaryOperator::Equal | BinaryOperator::NotEqual => {
                let (a, b) = (self.lower_expr(a), self.lower_expr(b));
                let (a, b) = self.unify(a?, b?, span)?;
                if let Kind::Aggregate(ty) = a.kind {
                    self.require_dialect(Dialect::Rumur, sign, "comparison of arrays and records");
                    if self.contains_multiset(ty) {
                        self.error(span, "multisets cannot be compared");
                        return None;
                    }
                }
                (operator, Kind::Bool, a.expr, b.expr)
            }
            BinaryOperator::Or | BinaryOperator::And => {
                let (a, b) = (self.lower_expr(a), self.lower_expr(b));
                let (a, b) = (a?, b?);
                match (a.kind, b.kind) {
                    (Kind::Int, Kind::Int) if !a.is_undefined && !b.is_undefined => {
                        self.require_dialect(Dialect::Rumur, sign, "operators on bits");
                        let operator = match op {
                            BinaryOperator::Or => Operator::BitOr,
                            _ => Operator::BitAnd,
                        };
                        (operator, Kind::Int, a.expr, b.expr)
                    }
                    _ => {
                        let (a, b) = (
                            self.require_kind(a, Kind::Bool, "an operand"),
                            self.require_kind(b, Kind::Bool, "an operand"),
                        );
                        (operator, Kind::Bool, a?, b?)
                    }
                }
            }
            BinaryOperator::Implies | BinaryOperator::OrElse | BinaryOperator::AndAlso => {
                let (a, b) = (
                    self.lower_boolean(a, "an operand"),
                    self.lower_boolean(b, "an operand"),
                );
                (operator, Kind::Bool, a?, b?)
            }
            _ => {
                let (a, b) = (
                    self.lower_integer(a, "an operand"),
                    self.lower_integer(b, "an operand"),
                );
                let kind = match operator.is_arithmetic() {
                    true => Kind::Int,
                    false => Kind::Bool,
                };
                (operator, kind, a?, b?)
            }
        };
        let mut expr = ModelExpr::Binary(operator, Box::new(a), Box::new(b));
        if let (Kind::Int, Some(n)) = (kind, self.fold(&expr)) {
            expr = ModelExpr::Int(n);
        }
        Self::simple_value(expr, kind, span)
    }

    /// True if values of a type contain a multiset.
    fn contains_multiset(&self, ty: TypeId) -> bool {
        match self.model.ty(ty) {
            Type::Multiset { .. } => true,
            Type::Array { element, .. } => self.contains_multiset(*element),
            Type::Record(fields) => fields.iter().any(|f| self.contains_multiset(f.1)),
            _ => false,
        }
    }

    /// Lowers a claim about all values (`is_universal`) or some value of each of several names, outermost first.
    fn lower_quantified(
        &mut self,
        is_universal: bool,
        quantifiers: &[Quantifier<'t>],
        body: &Expr<'t>,
    ) -> Option<ModelExpr> {
        let Some((first, inner_quantifiers)) = quantifiers.split_first() else {
            return self.lower_boolean(body, "the claim");
        };
        self.with_quantifier(first, |l, id, steps| {
            let claim = l.lower_quantified(is_universal, inner_quantifiers, body)?;
            let claim = Box::new(claim);
            Some(match (is_universal, steps) {
                (true, None) => ModelExpr::Forall(id, claim),
                (false, None) => ModelExpr::Exists(id, claim),
                (true, Some(steps)) => ModelExpr::ForallSteps(id, Box::new(steps), claim),
                (false, Some(steps)) => ModelExpr::ExistsSteps(id, Box::new(steps), claim),
            })
        })
    }

    /// Lowers a construct in which a name takes each value of a type, or numbers in steps. `f` lowers the inner part,
    /// with the variable and the steps, if any. Errors inside are reported even if the domain is invalid.
    pub(super) fn with_quantifier<T>(
        &mut self,
        quantifier: &Quantifier<'t>,
        f: impl FnOnce(&mut Self, VariableId, Option<Steps>) -> Option<T>,
    ) -> Option<T> {
        let name = quantifier.name;
        if self.dialect == Dialect::CMurphi {
            if let Some(
                Meaning::Variable(_, Access::Loop | Access::Value) | Meaning::ConstantAlias(..),
            ) = self.find(name.text).map(|s| &s.meaning)
            {
                self.error(
                    name.span,
                    format!("in CMurphi `{}` cannot be bound inside itself", name.text),
                );
            }
        }
        let domain = self.lower_domain(&quantifier.domain);
        let (meaning, domain) = match domain {
            Some((ty, steps)) => {
                let id = self.add_variable(name.text, ty, Role::Bound);
                self.binding_spans.insert(id, name.span);
                (Meaning::Variable(id, Access::Loop), Some((id, steps)))
            }
            None => (Meaning::Invalid, None),
        };
        let outer_combinations = self.combinations;
        if let Some((id, steps)) = &domain {
            self.count_combinations(*id, steps.is_some(), name.span);
        }
        let result = self.scoped(|l| {
            l.declare(name, meaning);
            match domain {
                Some((id, steps)) => f(l, id, steps),
                None => {
                    // Errors inside are reported nevertheless.
                    let id = l.add_variable(name.text, TypeId::BOOL, Role::Bound);
                    f(l, id, None);
                    None
                }
            }
        });
        self.combinations = outer_combinations;
        result
    }

    /// Counts the combinations of values of the enclosing names. Warns above [`MAX_COMBINATIONS`].
    fn count_combinations(&mut self, id: VariableId, has_steps: bool, span: Span) {
        let ty = self.model.variable(id).ty;
        // The count is unknown for steps whose bounds are not constant.
        if has_steps && self.model.bounds(ty) == Some(self.model.numbers) {
            return;
        }
        let outer_combinations = self.combinations;
        self.combinations = outer_combinations.saturating_mul(self.model.count(ty));
        if outer_combinations <= MAX_COMBINATIONS && self.combinations > MAX_COMBINATIONS {
            let total = self.combinations;
            let message = match outer_combinations {
                1 => format!("this goes through {total} values"),
                _ => format!(
                    "with the names around it this goes through {total} combinations of values"
                ),
            };
            self.sink.warning(span, message).note(
                "each state may need as many evaluations; a smaller type usually shows the same faults",
            );
        }
    }

    /// Lowers the values of a quantified name: their type, and the steps if they are given as such.
    fn lower_domain(&mut self, domain: &Domain<'t>) -> Option<(TypeId, Option<Steps>)> {
        match domain {
            Domain::Type(expr) => {
                let ty = self.lower_type_expr(expr)?;
                if self.model.bounds(ty).is_none() {
                    self.error(expr.span, "only simple types have values to go through")
                        .label("this type has parts");
                    return None;
                }
                Some((ty, None))
            }
            Domain::Steps(from, to, by) => {
                let span = from.span.to(to.span);
                let (a, b) = (
                    self.lower_integer(from, "a bound"),
                    self.lower_integer(to, "a bound"),
                );
                let by = match by {
                    Some(by) => Some(self.lower_step(by)?),
                    None => None,
                };
                let (from, to) = (a?, b?);
                let constant_bounds = (self.fold(&from), self.fold(&to));
                let step = by.as_ref().map_or(Some(1), |by| self.fold(by));
                if let ((Some(a), Some(b)), Some(step), Dialect::Rumur) =
                    (constant_bounds, step, self.dialect)
                {
                    if a > b && step > 0 || a < b && step < 0 {
                        self.error(span, format!("the steps from {a} to {b} go the other way"));
                        return None;
                    }
                }
                let by = match (by, self.dialect) {
                    (Some(by), _) => by,
                    // Rumur counts down if the bounds, unknown here, are in descending order.
                    (None, Dialect::Rumur)
                        if constant_bounds.0.is_none() || constant_bounds.1.is_none() =>
                    {
                        let ascends = ModelExpr::Binary(
                            Operator::LessOrEqual,
                            Box::new(from.clone()),
                            Box::new(to.clone()),
                        );
                        ModelExpr::If(
                            Box::new(ascends),
                            Box::new(ModelExpr::Int(1)),
                            Box::new(ModelExpr::Int(-1)),
                        )
                    }
                    (None, _) => ModelExpr::Int(1),
                };
                let ty = match constant_bounds {
                    (Some(a), Some(b)) => {
                        let (lo, hi) = (a.min(b), a.max(b));
                        self.intern_type(format!("{lo}..{hi}"), Type::Range { lo, hi })
                    }
                    _ => self.number_type(),
                };
                Some((ty, Some(Steps { from, to, by })))
            }
        }
    }

    /// Lowers the size of steps, which must not be 0. Only Rumur allows a size that is not constant.
    fn lower_step(&mut self, by: &Expr<'t>) -> Option<ModelExpr> {
        let e = self.lower_integer(by, "a step")?;
        match self.fold(&e) {
            Some(0) => {
                self.error(by.span, "steps of 0 lead nowhere");
                None
            }
            None => {
                self.require_dialect(Dialect::Rumur, by.span, "steps that are not constant");
                Some(e)
            }
            _ => Some(e),
        }
    }

    /// Lowers a call with its arguments.
    pub(super) fn lower_call(
        &mut self,
        name: Name<'t>,
        arguments: &[Expr<'t>],
    ) -> Option<(FunctionId, Vec<Argument>)> {
        let meaning = self.find(name.text).map(|s| s.meaning.clone());
        let Some(Meaning::Function(id)) = meaning else {
            for argument in arguments {
                self.lower_expr(argument);
            }
            self.report_no_function(name, meaning);
            return None;
        };
        let parameters = self.model.functions[id.index()].parameters.clone();
        if parameters.len() != arguments.len() {
            self.error(
                name.span,
                format!(
                    "`{}` takes {} but is given {}",
                    name.text,
                    arguments_of(parameters.len()),
                    arguments.len()
                ),
            );
            return None;
        }
        let effects = self.effects[id.index()].clone();
        let mut lowered = Some(Vec::new());
        let mut first_change = effects.state;
        // Arguments that are values of variables, and the variables that the function changes.
        let (mut values, mut variables) = (Vec::new(), effects.variables.clone());
        for (number, (&parameter, e)) in parameters.iter().zip(arguments).enumerate() {
            let argument = self.lower_argument(parameter, e);
            match &argument {
                Some(Argument::Value(ModelExpr::Peek(place))) => {
                    values.push((number, place.clone(), e.span))
                }
                Some(Argument::Place(place)) if effects.parameters.contains(&parameter) => {
                    variables.push(self.root(place));
                    self.record_write(place, e.span);
                    if !self.is_local(place) {
                        first_change.get_or_insert(e.span);
                    }
                }
                _ => {}
            }
            match (&mut lowered, argument) {
                (Some(lowered), Some(argument)) => lowered.push(argument),
                _ => lowered = None,
            }
        }
        if let (Dialect::CMurphi, Some(lowered)) = (self.dialect, &mut lowered) {
            self.pass_by_reference(name, &parameters, values, &variables, lowered);
        }
        self.add_effects(effects);
        if let (Some(construct), Some(span)) = (self.pure_construct, first_change) {
            self.error(
                name.span,
                format!(
                    "{construct} cannot change the state, as `{}` does",
                    name.text
                ),
            )
            .label("called here")
            .note_at(span, "the state is changed here");
        }
        Some((id, lowered?))
    }

    /// Adds the effects of a called function on the state to those of the current function.
    fn add_effects(&mut self, effects: Effects) {
        if let Some(span_of_change) = effects.state {
            self.current_effects.state.get_or_insert(span_of_change);
        }
        for variable in effects.variables {
            if !self.current_effects.variables.contains(&variable) {
                self.current_effects.variables.push(variable);
            }
        }
    }

    /// Reports a called name that is not a function.
    fn report_no_function(&mut self, name: Name<'t>, meaning: Option<Meaning>) {
        match meaning {
            Some(Meaning::Invalid) => {}
            Some(_) => {
                self.error(name.span, format!("`{}` is no function", name.text))
                    .label("called here");
            }
            None => self.report_unknown(name, "function", |m| matches!(m, Meaning::Function(_))),
        }
    }

    /// Passes values by reference, as CMurphi does: a value changes with its variable while the function runs. `values`
    /// are arguments with their numbers, and `changed_variables` the variables that the function changes.
    fn pass_by_reference(
        &mut self,
        name: Name<'t>,
        parameters: &[VariableId],
        values: Vec<(usize, Place, Span)>,
        changed_variables: &[VariableId],
        lowered: &mut [Argument],
    ) {
        for (number, place, span) in values {
            let root = self.root(&place);
            if !changed_variables
                .iter()
                .any(|&changed| self.may_overlap(root, changed))
            {
                continue;
            }
            if self.model.type_of_place(&place) == self.model.variable(parameters[number]).ty {
                lowered[number] = Argument::Place(place);
            } else if changed_variables.contains(&root) {
                self.report_changing_value(name, &place, span);
            }
        }
    }

    /// True if a place lies in a local variable.
    fn is_local(&self, place: &Place) -> bool {
        self.model.variable(self.root(place)).role == Role::Local
    }

    /// True if two variables may overlap. A parameter of the current function may refer to any state variable.
    fn may_overlap(&self, a: VariableId, b: VariableId) -> bool {
        let is_parameter = |id: VariableId| {
            self.model.variable(id).role == Role::Alias || self.value_parameters.contains(&id)
        };
        let is_shared =
            |id: VariableId| is_parameter(id) || self.model.variable(id).role == Role::State;
        a == b || (is_parameter(a) || is_parameter(b)) && is_shared(a) && is_shared(b)
    }

    /// Reports a value that the function may change, for which no C++ compiler accepts CMurphi's program.
    fn report_changing_value(&mut self, name: Name<'t>, place: &Place, span: Span) {
        let variable = self.model.variable(self.root(place)).name.clone();
        self.error(
            span,
            format!(
                "`{}` may change `{variable}`, part of which it is given as a value of another type",
                name.text
            ),
        )
        .label("in CMurphi this value would change as well")
        .note("a copy in a variable of its own is the same everywhere");
    }

    /// Lowers an argument for a parameter of a function: a place for a `var` parameter, otherwise a value.
    fn lower_argument(&mut self, parameter: VariableId, e: &Expr<'t>) -> Option<Argument> {
        let Variable { name, ty, role, .. } = self.model.variable(parameter).clone();
        let description = format!("the argument for `{name}`");
        if role == Role::Local {
            return self
                .lower_passed_value(e, ty, &description)
                .map(Argument::Value);
        }
        let typed = self.lower_expr(e)?;
        let actual_type = typed.ty;
        let Some((place, access)) = typed.into_place() else {
            self.error(
                e.span,
                format!("{description} must be a variable, for it is declared `var`"),
            )
            .label("this is a value");
            return None;
        };
        if access != Access::Writable {
            self.error(
                e.span,
                format!(
                    "{description} may be changed, but this is {}",
                    access.reason()
                ),
            );
            return None;
        }
        if actual_type != Some(ty) {
            let expected_type = self.model.types[ty.index()].name.clone();
            let actual_type = actual_type.map(|ty| self.model.types[ty.index()].name.clone());
            self.error(
                e.span,
                format!("{description} must be of its very type, `{expected_type}`"),
            )
            .label(format!(
                "this is of the type `{}`",
                actual_type.unwrap_or_default()
            ));
            return None;
        }
        Some(Argument::Place(place))
    }
}

/// Operator of the model for an operator of the text, if `|` and `&` are those of truth values.
fn model_operator(op: BinaryOperator) -> Operator {
    match op {
        BinaryOperator::Implies => Operator::Implies,
        BinaryOperator::OrElse | BinaryOperator::Or => Operator::Or,
        BinaryOperator::AndAlso | BinaryOperator::And => Operator::And,
        BinaryOperator::Xor => Operator::BitXor,
        BinaryOperator::Equal => Operator::Equal,
        BinaryOperator::NotEqual => Operator::NotEqual,
        BinaryOperator::Less => Operator::Less,
        BinaryOperator::LessOrEqual => Operator::LessOrEqual,
        BinaryOperator::Greater => Operator::Greater,
        BinaryOperator::GreaterOrEqual => Operator::GreaterOrEqual,
        BinaryOperator::ShiftLeft => Operator::ShiftLeft,
        BinaryOperator::ShiftRight => Operator::ShiftRight,
        BinaryOperator::Add => Operator::Add,
        BinaryOperator::Subtract => Operator::Subtract,
        BinaryOperator::Multiply => Operator::Multiply,
        BinaryOperator::Divide => Operator::Divide,
        BinaryOperator::Remainder => Operator::Remainder,
    }
}

/// Converts a value of a union to a member type, or the reverse.
fn convert(e: ModelExpr, to: TypeId) -> ModelExpr {
    ModelExpr::Convert(to, Box::new(e))
}

/// Number of arguments, in words.
fn arguments_of(count: usize) -> String {
    match count {
        0 => "no arguments".into(),
        1 => "one argument".into(),
        _ => format!("{count} arguments"),
    }
}
