//! Rules, start states and properties, with their enclosing rulesets and aliases.

use super::{types, Access, Lowering, Meaning};
use crate::ast::{Decl, Expr, Name, Property, PropertyKind, Quantifier, Rule, RuleKind, Stmt};
use cohkit_diagnostics::Span;
use cohkit_engine::model;
use cohkit_engine::model::Stmt as ModelStmt;
use cohkit_engine::model::{Cover, Expr as ModelExpr, Invariant, Place, Role, Start, VariableId};

/// Binding of a declared alias, which the enclosed rules or statements need.
pub(super) enum AliasBinding {
    /// A variable that denotes this place.
    Place(VariableId, Place),
    /// A variable that holds this value.
    Value(VariableId, ModelExpr),
    /// The name of a loop or a constant, which needs no variable.
    Constant,
}

/// An enclosing construct of a rule; listed from the outermost to the innermost.
#[derive(Clone)]
pub(super) enum RuleScope {
    /// A parameter, and a condition on its values.
    Parameter(VariableId, Option<ModelExpr>),
    /// A variable that denotes a place.
    Alias(VariableId, Place),
    /// A variable that holds a value.
    Value(VariableId, ModelExpr),
    /// A slot of a multiset, which must hold an element.
    Slot(VariableId, Place),
}

impl<'t> Lowering<'t, '_> {
    /// Declares an alias of an expression. `None` after a reported error.
    pub(super) fn lower_alias(&mut self, name: Name<'t>, e: &Expr<'t>) -> Option<AliasBinding> {
        let Some(typed) = self.lower_expr(e) else {
            self.declare(name, Meaning::Invalid);
            return None;
        };
        if typed.is_undefined {
            self.error(typed.span, "`undefined` gets no other name");
            return None;
        }
        if let (Some(access), Some(ty)) = (typed.access, typed.ty) {
            let (place, _) = typed.into_place()?;
            // Names of loops are constants, and so are their aliases.
            if matches!(access, Access::Loop | Access::Slot) && place.path.is_empty() {
                self.declare(name, Meaning::Variable(place.variable, access));
                return Some(AliasBinding::Constant);
            }
            let id = self.add_variable(name.text, ty, Role::Alias);
            self.roots.insert(id, place.variable);
            self.declare(name, Meaning::Variable(id, access));
            return Some(AliasBinding::Place(id, place));
        }
        // An alias of a constant may be used as a bound.
        let constant = self
            .fold(&typed.expr)
            .and_then(|n| types::literal(n, typed.kind));
        if let Some(value) = constant {
            self.declare(name, Meaning::ConstantAlias(value, typed.kind));
            return Some(AliasBinding::Constant);
        }
        let ty = self.type_of_kind(typed.kind);
        let id = self.add_variable(name.text, ty, Role::Local);
        self.declare(name, Meaning::Variable(id, Access::Value));
        Some(AliasBinding::Value(id, typed.expr))
    }

    /// Lowers a rule with all rules inside. `enclosing` is the same before and after the call.
    pub(super) fn lower_rule(&mut self, rule: &Rule<'t>, enclosing: &mut Vec<RuleScope>) {
        let depth = enclosing.len();
        match &rule.kind {
            RuleKind::Rule {
                title,
                priority,
                guard,
                locals,
                body,
            } => {
                self.counts[0] += 1;
                let name = title.clone();
                let name = name.unwrap_or(format!("Rule {}", self.counts[0]));
                let priority = self.lower_priority(*priority);
                let guard = match guard {
                    Some(guard) => self.lower_claim(guard, "a guard"),
                    None => Some(ModelExpr::Bool(true)),
                };
                let body = self.lower_body(locals, body);
                let Some(guard) = guard else { return };
                self.model.rules.push(model::Rule {
                    name,
                    parameters: parameters(enclosing),
                    guard: enclose_claim(enclosing, guard, ModelExpr::and),
                    body: enclose_rule_body(enclosing, body),
                    spontaneous: false,
                    priority,
                });
            }
            RuleKind::Start {
                title,
                locals,
                body,
            } => {
                self.counts[1] += 1;
                let name = title.clone();
                let name = name.unwrap_or(format!("Startstate {}", self.counts[1]));
                let body = self.lower_body(locals, body);
                self.model.starts.push(Start {
                    name,
                    parameters: parameters(enclosing),
                    body: enclose_start_body(enclosing, body),
                });
            }
            RuleKind::Property(property) => self.lower_property(property, enclosing),
            RuleKind::Ruleset(quantifiers, rules) => {
                self.lower_ruleset(quantifiers, rules, enclosing)
            }
            RuleKind::Alias(aliases, rules) => self.lower_aliased_rules(aliases, rules, enclosing),
            RuleKind::Choose(name, multiset, rules) => {
                self.lower_choose(*name, multiset, rules, enclosing)
            }
        }
        enclosing.truncate(depth);
    }

    /// Priority of a rule; 0 without one, and after a reported error.
    fn lower_priority(&mut self, priority: Option<(i64, Span)>) -> i32 {
        let Some((value, span)) = priority else {
            return 0;
        };
        i32::try_from(value).unwrap_or_else(|_| {
            self.error(span, "a priority is a number of 32 bits");
            0
        })
    }

    /// Lowers the rules in the scope of aliases. Leaves the aliases in `enclosing`.
    fn lower_aliased_rules(
        &mut self,
        aliases: &[(Name<'t>, Expr<'t>)],
        rules: &[Rule<'t>],
        enclosing: &mut Vec<RuleScope>,
    ) {
        self.scoped(|l| {
            l.pure_construct = Some("an alias");
            for (name, e) in aliases {
                match l.lower_alias(*name, e) {
                    Some(AliasBinding::Place(id, place)) => {
                        enclosing.push(RuleScope::Alias(id, place))
                    }
                    Some(AliasBinding::Value(id, value)) => {
                        enclosing.push(RuleScope::Value(id, value))
                    }
                    Some(AliasBinding::Constant) | None => {}
                }
            }
            l.pure_construct = None;
            l.lower_rules(rules, enclosing);
        })
    }

    /// Lowers the rules for each element of a multiset. Leaves the slot in `enclosing`.
    fn lower_choose(
        &mut self,
        name: Name<'t>,
        multiset: &Expr<'t>,
        rules: &[Rule<'t>],
        enclosing: &mut Vec<RuleScope>,
    ) {
        self.scoped(|l| {
            let Some((place, capacity)) = l.lower_multiset(multiset) else {
                l.declare(name, Meaning::Invalid);
                return l.lower_rules(rules, enclosing);
            };
            let ty = l.slot_index_type(capacity);
            let id = l.add_variable(name.text, ty, Role::Bound);
            l.binding_spans.insert(id, name.span);
            l.declare(name, Meaning::Variable(id, Access::Slot));
            enclosing.push(RuleScope::Slot(id, place));
            l.lower_rules(rules, enclosing);
        })
    }

    /// Lowers rules in order.
    fn lower_rules(&mut self, rules: &[Rule<'t>], enclosing: &mut Vec<RuleScope>) {
        for rule in rules {
            self.lower_rule(rule, enclosing);
        }
    }

    /// Lowers the rules of a ruleset for each of its parameters. Leaves the parameters in `enclosing`.
    fn lower_ruleset(
        &mut self,
        quantifiers: &[Quantifier<'t>],
        rules: &[Rule<'t>],
        enclosing: &mut Vec<RuleScope>,
    ) {
        let Some((first, inner_quantifiers)) = quantifiers.split_first() else {
            return self.lower_rules(rules, enclosing);
        };
        let span = first.name.span;
        self.with_quantifier(first, |l, id, steps| {
            match steps.map(|steps| [steps.from, steps.to, steps.by].map(|e| l.fold(&e))) {
                None => enclosing.push(RuleScope::Parameter(id, None)),
                Some([Some(from), Some(to), Some(by)]) => {
                    // Steps of 1 visit all values of the range.
                    let is_empty_range = if by > 0 { to < from } else { from < to };
                    let condition = match by {
                        _ if is_empty_range => Some(ModelExpr::Bool(false)),
                        1 | -1 => None,
                        _ => {
                            let offset = ModelExpr::Read(id.into()) - ModelExpr::Int(from);
                            Some((offset % ModelExpr::Int(by)).is(0))
                        }
                    };
                    enclosing.push(RuleScope::Parameter(id, condition));
                }
                Some(_) => {
                    l.error(span, "the bounds of a ruleset must be constant");
                }
            }
            l.lower_ruleset(inner_quantifiers, rules, enclosing);
            Some(())
        });
    }

    /// Lowers a condition on a state, which must not change the state. `construct` names the condition in messages.
    fn lower_claim(&mut self, e: &Expr<'t>, construct: &'static str) -> Option<ModelExpr> {
        let line = self.line_of(e.span);
        self.pure_construct = Some(construct);
        let claim = self.lower_boolean(e, construct);
        self.pure_construct = None;
        Some(ModelExpr::Line(line, Box::new(claim?)))
    }

    /// Lowers the local declarations and statements of a body in a scope of their own.
    fn lower_body(&mut self, locals: &[Decl<'t>], body: &[Stmt<'t>]) -> Vec<ModelStmt> {
        self.scoped(|l| {
            let mut statements = Vec::new();
            for decl in locals {
                l.lower_decl(decl, Role::Local, &mut statements);
            }
            statements.extend(l.lower_block(body));
            statements
        })
    }

    /// Lowers a property of all states. Each kind joins the conditions of the enclosing constructs in its own way.
    fn lower_property(&mut self, property: &Property<'t>, enclosing: &[RuleScope]) {
        self.counts[2] += 1;
        let (number, line) = (self.counts[2], self.line_of(property.span));
        let (default_title, construct) = match property.kind {
            PropertyKind::Invariant => ("Invariant", "an invariant"),
            PropertyKind::Assume => ("Assumption", "an assumption"),
            PropertyKind::Cover => ("Cover", "a cover"),
            PropertyKind::Liveness => ("Liveness", "a liveness property"),
        };
        let title = property.title.clone();
        let name = title.unwrap_or(format!("{default_title} {number}"));
        let Some(claim) = self.lower_claim(&property.claim, construct) else {
            return;
        };
        let reason = format!("the invariant of line {line} does not hold");
        let invariant_of = |holds| Invariant {
            name: name.clone(),
            reason,
            parameters: Vec::new(),
            holds,
        };
        match property.kind {
            PropertyKind::Invariant => {
                let invariant = invariant_of(forall_claim(enclosing, claim));
                self.model.invariants.push(invariant);
            }
            PropertyKind::Assume => {
                let assumption = invariant_of(forall_claim(enclosing, claim));
                self.model.assumptions.push(assumption);
            }
            PropertyKind::Cover => {
                let mut holds = enclose_claim(enclosing, claim, ModelExpr::and);
                for p in parameters(enclosing).into_iter().rev() {
                    holds = ModelExpr::Exists(p, Box::new(holds));
                }
                let holds = Some(holds);
                self.model.covers.push(Cover { name, holds });
            }
            // Each instance is a separate property.
            PropertyKind::Liveness => {
                let liveness = Invariant {
                    parameters: parameters(enclosing),
                    ..invariant_of(enclose_claim(enclosing, claim, ModelExpr::implies))
                };
                self.model.liveness.push(liveness);
            }
        }
    }
}

/// Returns the parameters of the enclosing rulesets and slots, outermost first.
fn parameters(enclosing: &[RuleScope]) -> Vec<VariableId> {
    let parameter = |scope: &RuleScope| match scope {
        RuleScope::Parameter(id, _) | RuleScope::Slot(id, _) => Some(*id),
        _ => None,
    };
    enclosing.iter().filter_map(parameter).collect()
}

/// Returns a claim within the enclosing constructs, whose conditions `join` joins to the claim.
fn enclose_claim(
    enclosing: &[RuleScope],
    claim: ModelExpr,
    join: fn(ModelExpr, ModelExpr) -> ModelExpr,
) -> ModelExpr {
    enclosing
        .iter()
        .rev()
        .fold(claim, |claim, scope| match scope {
            RuleScope::Parameter(_, None) => claim,
            RuleScope::Parameter(_, Some(condition)) => join(condition.clone(), claim),
            RuleScope::Slot(id, place) => join(present(place, *id), claim),
            RuleScope::Alias(id, place) => ModelExpr::Alias(*id, place.clone(), Box::new(claim)),
            RuleScope::Value(id, value) => {
                ModelExpr::Let(*id, Box::new(value.clone()), Box::new(claim))
            }
        })
}

/// A claim for all values of the enclosing parameters.
fn forall_claim(enclosing: &[RuleScope], claim: ModelExpr) -> ModelExpr {
    enclosing.iter().rev().fold(claim, |claim, scope| {
        let inner = enclose_claim(std::slice::from_ref(scope), claim, ModelExpr::implies);
        match scope {
            RuleScope::Parameter(id, _) | RuleScope::Slot(id, _) => {
                ModelExpr::Forall(*id, Box::new(inner))
            }
            _ => inner,
        }
    })
}

/// Body of a rule within the enclosing constructs.
fn enclose_rule_body(enclosing: &[RuleScope], body: Vec<ModelStmt>) -> Vec<ModelStmt> {
    enclosing
        .iter()
        .rev()
        .fold(body, |body, scope| enclose_in_binding(scope, body))
}

/// Body of a start state within the enclosing constructs. A start state has no guard that restricts its parameters, so
/// it assumes their conditions.
fn enclose_start_body(enclosing: &[RuleScope], body: Vec<ModelStmt>) -> Vec<ModelStmt> {
    enclosing.iter().rev().fold(body, |body, scope| {
        let mut body = enclose_in_binding(scope, body);
        match scope {
            RuleScope::Parameter(_, Some(condition)) => {
                body.insert(0, ModelStmt::Assume(condition.clone()))
            }
            RuleScope::Slot(id, place) => body.insert(0, ModelStmt::Assume(present(place, *id))),
            RuleScope::Parameter(_, None) | RuleScope::Alias(..) | RuleScope::Value(..) => {}
        }
        body
    })
}

/// Statements in which an alias or a value of the construct is bound.
fn enclose_in_binding(scope: &RuleScope, mut body: Vec<ModelStmt>) -> Vec<ModelStmt> {
    match scope {
        RuleScope::Alias(id, place) => return vec![ModelStmt::Alias(*id, place.clone(), body)],
        RuleScope::Value(id, value) => {
            body.insert(0, ModelStmt::Let(*id, Some(value.clone())));
        }
        RuleScope::Parameter(..) | RuleScope::Slot(..) => {}
    }
    body
}

/// Condition that a slot of a multiset holds an element.
fn present(place: &Place, slot: VariableId) -> ModelExpr {
    ModelExpr::Present(place.clone(), Box::new(ModelExpr::Read(slot.into())))
}
