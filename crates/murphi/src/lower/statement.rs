//! Lowering of statements.

use super::{rules, Access, Lowering, Meaning, Symbol, Typed};
use crate::ast::{Expr, ExprKind, Name, Property, PropertyKind, Quantifier, Stmt, StmtKind};
use crate::Dialect;
use cohkit_diagnostics::Span;
use cohkit_engine::model::Stmt as ModelStmt;
use cohkit_engine::model::{
    Cover, CoverId, Expr as ModelExpr, Number, Place, Role, Type, TypeId, Violation,
};
use cohkit_engine::validate::Kind;

/// Maximum number of iterations of a `while` loop, except in CMurphi's dialect.
const MAX_ITERATIONS: u32 = 1_000_000;
/// Maximum number of iterations of a `while` loop in CMurphi's dialect.
const MAX_CMURPHI_ITERATIONS: u32 = 1000;

impl<'t> Lowering<'t, '_> {
    /// Lowers statements, each with its line. Statements with errors are missing.
    pub(super) fn lower_block(&mut self, block: &[Stmt<'t>]) -> Vec<ModelStmt> {
        let mut statements = Vec::new();
        for stmt in block {
            let line = ModelStmt::Line(self.line_of(stmt.span));
            if let Some(lowered) = self.lower_stmt(stmt) {
                statements.push(line);
                statements.extend(lowered);
            }
        }
        statements
    }

    /// Lowers statements in a scope of their own.
    fn lower_scoped_block(&mut self, block: &[Stmt<'t>]) -> Vec<ModelStmt> {
        self.scoped(|l| l.lower_block(block))
    }

    /// Lowers one statement, which may become several or none. `None` after a reported error.
    fn lower_stmt(&mut self, stmt: &Stmt<'t>) -> Option<Vec<ModelStmt>> {
        match &stmt.kind {
            StmtKind::Assign(to, value) => {
                let target = self.lower_target(to, "stored in");
                let Some((place, ty)) = target else {
                    self.lower_expr(value);
                    return None;
                };
                let value = self.lower_copied_value(value, ty, "the value")?;
                Some(vec![ModelStmt::Assign(place, value)])
            }
            StmtKind::If(cases, otherwise) => self.lower_if(cases, otherwise),
            StmtKind::Switch(subject, cases, otherwise) => self
                .lower_switch(subject, cases, otherwise)
                .map(|s| vec![s]),
            StmtKind::For(quantifiers, body) => self.lower_for(quantifiers, body).map(|s| vec![s]),
            StmtKind::While(condition, body) => self.lower_while(condition, body),
            StmtKind::Alias(aliases, body) => self.scoped(|l| l.lower_alias_block(aliases, body)),
            StmtKind::Property(property) => self.lower_statement_property(property),
            StmtKind::Error(message) => Some(vec![ModelStmt::Error(Violation::new(
                message.clone(),
                format!("the error \"{message}\" is reached"),
            ))]),
            StmtKind::Put(e) => {
                if let Some(e) = e {
                    self.lower_expr(e)?;
                }
                // A search prints no output.
                Some(Vec::new())
            }
            StmtKind::Return(e) => self.lower_return(e.as_ref(), stmt.span),
            StmtKind::Undefine(e) => {
                let (place, _) = self.lower_target(e, "undefined")?;
                Some(vec![ModelStmt::Undefine(place)])
            }
            StmtKind::Clear(e) => self.lower_clear(e, stmt.span).map(|s| vec![s]),
            StmtKind::Call(name, arguments) => {
                let (id, arguments) = self.lower_call(*name, arguments)?;
                if self.model.functions[id.index()].result.is_some() {
                    self.require_dialect(
                        Dialect::Rumur,
                        name.span,
                        "statements that call functions",
                    );
                }
                Some(vec![ModelStmt::Call(id, arguments)])
            }
            StmtKind::MultisetAdd(element, multiset) => self.lower_multiset_add(element, multiset),
            StmtKind::MultisetRemove(index, multiset) => {
                self.lower_multiset_remove(index, multiset)
            }
            StmtKind::MultisetRemovePred(name, multiset, claim) => {
                let place = self.lower_changed_multiset(multiset);
                let slot_claim = self.lower_slot_claim(*name, multiset, claim);
                let ((place, _), (_, id, claim)) = (place?, slot_claim?);
                Some(vec![ModelStmt::RemoveWhere(id, place, claim)])
            }
        }
    }

    /// Lowers an `if` with its `elsif` parts to nested conditionals.
    fn lower_if(
        &mut self,
        cases: &[(Expr<'t>, Vec<Stmt<'t>>)],
        otherwise: &[Stmt<'t>],
    ) -> Option<Vec<ModelStmt>> {
        let mut lowered = Vec::new();
        for (condition, body) in cases {
            let condition = self.lower_boolean(condition, "the condition");
            lowered.push((condition, self.lower_scoped_block(body)));
        }
        let mut lowered_if = self.lower_scoped_block(otherwise);
        for (condition, body) in lowered.into_iter().rev() {
            lowered_if = vec![ModelStmt::If(condition?, body, lowered_if)];
        }
        Some(lowered_if)
    }

    /// Lowers a `while` loop, with the limit of its iterations.
    fn lower_while(&mut self, condition: &Expr<'t>, body: &[Stmt<'t>]) -> Option<Vec<ModelStmt>> {
        let condition = self.lower_boolean(condition, "the condition");
        let body = self.lower_scoped_block(body);
        let max_iterations = match self.dialect {
            Dialect::CMurphi => MAX_CMURPHI_ITERATIONS,
            _ => MAX_ITERATIONS,
        };
        Some(vec![ModelStmt::While(condition?, body, max_iterations)])
    }

    /// Lowers `multisetadd`.
    fn lower_multiset_add(
        &mut self,
        element: &Expr<'t>,
        multiset: &Expr<'t>,
    ) -> Option<Vec<ModelStmt>> {
        let place = self.lower_changed_multiset(multiset);
        let Some((place, element_type)) = place else {
            self.lower_expr(element);
            return None;
        };
        if self.dialect == Dialect::CMurphi {
            self.require_exact_element(element, element_type);
        }
        let element = self.lower_copied_value(element, element_type, "the element")?;
        Some(vec![ModelStmt::Insert(place, element)])
    }

    /// Lowers `multisetremove`, whose first argument names a slot.
    fn lower_multiset_remove(
        &mut self,
        index: &Expr<'t>,
        multiset: &Expr<'t>,
    ) -> Option<Vec<ModelStmt>> {
        let (slot, place) = (
            self.lower_expr(index),
            self.lower_changed_multiset(multiset),
        );
        let (slot, (place, _)) = (slot?, place?);
        if !matches!(slot.access, Some(Access::Slot)) {
            self.error(index.span, "`multisetremove` takes the name of a slot")
                .label("this is none")
                .note("`choose` gives names to slots");
            return None;
        }
        Some(vec![ModelStmt::Remove(place, slot.expr)])
    }

    /// Lowers a `switch`, whose cases must agree with the type of the subject.
    fn lower_switch(
        &mut self,
        subject: &Expr<'t>,
        cases: &[(Vec<Expr<'t>>, Vec<Stmt<'t>>)],
        otherwise: &[Stmt<'t>],
    ) -> Option<ModelStmt> {
        let subject = self.lower_expr(subject);
        let mut lowered = Some(Vec::new());
        let mut earlier_cases: Vec<(Number, Span)> = Vec::new();
        for (values, body) in cases {
            let mut case_values = Some(Vec::new());
            for value in values {
                let constant = self.lower_case(value, subject.clone());
                if let Some(n) = constant.as_ref().and_then(|e| self.fold(e)) {
                    self.record_case(n, value.span, &mut earlier_cases);
                }
                match (&mut case_values, constant) {
                    (Some(case_values), Some(value)) => case_values.push(value),
                    _ => case_values = None,
                }
            }
            let body = self.lower_scoped_block(body);
            match (&mut lowered, case_values) {
                (Some(lowered), Some(values)) => lowered.push((values, body)),
                _ => lowered = None,
            }
        }
        let otherwise = self.lower_scoped_block(otherwise);
        let subject = subject?;
        if let Kind::Aggregate(_) = subject.kind {
            self.error(subject.span, "`switch` needs a simple value");
            return None;
        }
        Some(ModelStmt::Switch(subject.expr, lowered?, otherwise))
    }

    /// Lowers a block with aliases of places and values. The innermost scope holds the names.
    fn lower_alias_block(
        &mut self,
        aliases: &[(Name<'t>, Expr<'t>)],
        body: &[Stmt<'t>],
    ) -> Option<Vec<ModelStmt>> {
        let mut bindings = Vec::new();
        for (name, e) in aliases {
            bindings.push(self.lower_alias(*name, e));
        }
        let mut statements = self.lower_block(body);
        for binding in bindings.into_iter().rev() {
            statements = match binding? {
                rules::AliasBinding::Constant => statements,
                rules::AliasBinding::Place(id, place) => {
                    vec![ModelStmt::Alias(id, place, statements)]
                }
                rules::AliasBinding::Value(id, value) => {
                    statements.insert(0, ModelStmt::Let(id, Some(value)));
                    // A separate block ends the lifetime of the name.
                    vec![ModelStmt::If(ModelExpr::Bool(true), statements, Vec::new())]
                }
            };
        }
        Some(statements)
    }

    /// Lowers a `clear` of a place. `stmt` is the position of the statement.
    fn lower_clear(&mut self, e: &Expr<'t>, stmt: Span) -> Option<ModelStmt> {
        let (place, ty) = self.lower_target(e, "cleared")?;
        if self.contains_scalarset(ty) {
            self.require_dialect(
                Dialect::Rumur,
                e.span,
                "`clear` of scalarsets, whose values have no first",
            );
        }
        let line = self.line_of(stmt);
        self.clears.entry(line).or_insert(e.span);
        Some(ModelStmt::Clear(place))
    }

    /// Records a constant case. The first of equal cases is taken; in CMurphi's dialect a repeated case is an error,
    /// as no C++ compiler accepts the generated program.
    fn record_case(&mut self, n: Number, span: Span, earlier_cases: &mut Vec<(Number, Span)>) {
        let first = earlier_cases.iter().find(|s| s.0 == n).map(|s| s.1);
        if let (Some(first), Dialect::CMurphi) = (first, self.dialect) {
            self.error(span, "CMurphi takes no case twice")
                .label("the same again")
                .note_at(first, "first here");
        }
        earlier_cases.push((n, span));
    }

    /// Lowers a value of a `switch` case, converted to the kind of the subject.
    fn lower_case(&mut self, value: &Expr<'t>, subject: Option<Typed>) -> Option<ModelExpr> {
        let typed = self.lower_expr(value)?;
        if self.fold(&typed.expr).is_none() {
            self.require_dialect(Dialect::Rumur, value.span, "cases that are not constant");
        }
        let subject = subject?;
        let kind = subject.kind;
        let (_, value) = self.unify(subject, typed, value.span)?;
        if value.kind != kind {
            self.error(value.span, "the union must be the subject of `switch`");
            return None;
        }
        Some(value.expr)
    }

    /// CMurphi adds only variables of exactly the element's type.
    fn require_exact_element(&mut self, e: &Expr<'t>, expected_type: TypeId) {
        let Some(typed) = self.lower_expr(e) else {
            return;
        };
        if typed.access.is_none() || typed.ty != Some(expected_type) {
            let expected_type = self.model.types[expected_type.index()].name.clone();
            self.error(
                e.span,
                format!(
                    "CMurphi puts only variables of the type `{expected_type}` into this multiset"
                ),
            )
            .label("this is none");
        }
    }

    /// The multiset that a statement changes, and the type of its elements.
    fn lower_changed_multiset(&mut self, e: &Expr<'t>) -> Option<(Place, TypeId)> {
        let (place, ty) = self.lower_target(e, "changed")?;
        match self.model.ty(ty) {
            Type::Multiset { element, .. } => Some((place, *element)),
            _ => {
                let kind = self.type_name(ty);
                self.error(e.span, format!("a multiset is needed here, not {kind}"));
                None
            }
        }
    }

    /// Lowers the place that a statement changes, and records the change. Reports an error if the place must not be
    /// changed; `action` is a participle for the message.
    fn lower_target(&mut self, e: &Expr<'t>, action: &str) -> Option<(Place, TypeId)> {
        let typed = self.lower_expr(e)?;
        let span = typed.span;
        let ty = typed.ty;
        let (Some((place, access)), Some(ty)) = (typed.into_place(), ty) else {
            self.error(span, format!("only variables can be {action}"))
                .label("this is a value");
            return None;
        };
        if access != Access::Writable {
            let name = self.model.spell(&place);
            self.error(
                span,
                format!("`{name}` cannot be {action}: it is {}", access.reason()),
            );
            return None;
        }
        self.record_write(&place, span);
        Some((place, ty))
    }

    /// True if values of a type contain a value of a scalarset.
    fn contains_scalarset(&self, ty: TypeId) -> bool {
        match self.model.ty(ty) {
            Type::Scalarset(_) => true,
            Type::Array { element, .. } => self.contains_scalarset(*element),
            Type::Record(fields) => fields.iter().any(|f| self.contains_scalarset(f.1)),
            _ => false,
        }
    }

    /// Lowers a loop with one or several variables.
    fn lower_for(
        &mut self,
        quantifiers: &[Quantifier<'t>],
        body: &[Stmt<'t>],
    ) -> Option<ModelStmt> {
        let (first, inner_quantifiers) = quantifiers.split_first()?;
        let is_assigned = self.dialect != Dialect::CMurphi && assigns(body, first.name.text);
        self.with_quantifier(first, |l, id, steps| {
            let mut loop_body = Vec::new();
            if is_assigned {
                // A body that assigns the loop's variable assigns a local copy, which starts with the loop's value.
                let ty = l.model.variable(id).ty;
                let loop_copy = l.add_variable(first.name.text, ty, Role::Local);
                let meaning = Meaning::Variable(loop_copy, Access::Writable);
                let span = first.name.span;
                if let Some(scope) = l.scopes.last_mut() {
                    scope.insert(first.name.text, Symbol { meaning, span });
                }
                loop_body.push(ModelStmt::Let(loop_copy, Some(ModelExpr::Read(id.into()))));
            }
            if inner_quantifiers.is_empty() {
                loop_body.extend(l.lower_scoped_block(body));
            } else {
                loop_body.push(l.lower_for(inner_quantifiers, body)?);
            }
            Some(match steps {
                None => ModelStmt::For(id, loop_body),
                Some(steps) => ModelStmt::ForSteps(id, Box::new(steps), loop_body),
            })
        })
    }

    /// Lowers a property among statements, which refers to the state at this point.
    fn lower_statement_property(&mut self, property: &Property<'t>) -> Option<Vec<ModelStmt>> {
        let claim = self.lower_boolean(&property.claim, "the claim")?;
        let claim_text = self.text_of(property.claim.span);
        let claim_text = claim_text.split_whitespace().collect::<Vec<_>>().join(" ");
        let name = property.title.clone().unwrap_or(claim_text);
        Some(match property.kind {
            PropertyKind::Assume => vec![ModelStmt::Assume(claim)],
            PropertyKind::Cover => {
                let id = CoverId(self.model.covers.len() as u32);
                self.model.covers.push(Cover { name, holds: None });
                vec![ModelStmt::If(claim, vec![ModelStmt::Cover(id)], Vec::new())]
            }
            PropertyKind::Invariant | PropertyKind::Liveness => {
                let reason = format!("the assertion `{name}` does not hold");
                vec![ModelStmt::Assert(Violation::new(name, reason), claim)]
            }
        })
    }

    /// Lowers a `return`, whose value must agree with the current function. `span` is the position of the statement.
    fn lower_return(&mut self, e: Option<&Expr<'t>>, span: Span) -> Option<Vec<ModelStmt>> {
        match (e, self.result) {
            (None, None | Some(None)) => Some(vec![ModelStmt::Return(None)]),
            (None, Some(Some(ty))) => {
                let ty = self.type_name(ty);
                self.error(span, format!("a value is returned here: {ty}"))
                    .label("expected an expression");
                None
            }
            (Some(e), Some(Some(ty))) => {
                let typed = self.lower_expr(e)?;
                let value = self.coerce(typed, ty, "the returned value")?;
                Some(vec![ModelStmt::Return(Some(value))])
            }
            (Some(e), context) => {
                self.lower_expr(e);
                let message = match context {
                    None => "a rule returns no value",
                    Some(_) => "a procedure returns no value",
                };
                self.error(e.span, message)
                    .label("no caller takes this value");
                None
            }
        }
    }
}

/// True if statements may assign a variable of this name.
fn assigns(block: &[Stmt], name: &str) -> bool {
    fn root<'t>(e: &Expr<'t>) -> Option<&'t str> {
        match &e.kind {
            ExprKind::Name(name) => Some(name.text),
            ExprKind::Field(base, _) | ExprKind::Index(base, _) => root(base),
            _ => None,
        }
    }
    let is_named = |e: &Expr| root(e) == Some(name);
    block.iter().any(|stmt| match &stmt.kind {
        StmtKind::Assign(to, _) | StmtKind::Undefine(to) | StmtKind::Clear(to) => is_named(to),
        StmtKind::If(cases, otherwise) => {
            cases.iter().any(|c| assigns(&c.1, name)) || assigns(otherwise, name)
        }
        StmtKind::Switch(_, cases, otherwise) => {
            cases.iter().any(|c| assigns(&c.1, name)) || assigns(otherwise, name)
        }
        StmtKind::For(_, body) | StmtKind::While(_, body) | StmtKind::Alias(_, body) => {
            assigns(body, name)
        }
        _ => false,
    })
}
