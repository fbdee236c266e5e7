//! Rules, start states and properties, with their enclosing rulesets and aliases.

use super::{types, Access, Lowering, Meaning};
use crate::ast::{Decl, Expr, Name, Property, PropertyKind, Quantifier, Rule, RuleKind, Stmt};
use cohkit_engine::model;
use cohkit_engine::model::Stmt as S;
use cohkit_engine::model::{Cover, Expr as M, Invariant, Place, Role, Start, VariableId};

/// Binding of a declared alias, which the enclosed rules or statements need.
pub(super) enum AliasBinding {
    /// A variable that denotes this place.
    Place(VariableId, Place),
    /// A variable that holds this value.
    Value(VariableId, M),
    /// The name of a loop or a constant, which needs no variable.
    Constant,
}

/// An enclosing construct of a rule; listed from the outermost to the innermost.
#[derive(Clone)]
pub(super) enum RuleScope {
    /// A parameter, and a condition on its values.
    Parameter(VariableId, Option<M>),
    /// A variable that denotes a place.
    Alias(VariableId, Place),
    /// A variable that holds a value.
    Value(VariableId, M),
    /// A slot of a multiset, which must hold an element.
    Slot(VariableId, Place),
}

impl<'t> Lowering<'t, '_> {
    /// Declares an alias of an expression. `None` after a reported error.
    pub(super) fn alias(&mut self, name: Name<'t>, e: &Expr<'t>) -> Option<AliasBinding> {
        let Some(typed) = self.expr(e) else {
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
            let id = self.variable(name.text, ty, Role::Alias);
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
        let ty = self.type_for(typed.kind);
        let id = self.variable(name.text, ty, Role::Local);
        self.declare(name, Meaning::Variable(id, Access::Value));
        Some(AliasBinding::Value(id, typed.expr))
    }

    /// Lowers a rule with all rules inside. `enclosing` is the same before and after the call.
    pub(super) fn rule(&mut self, rule: &Rule<'t>, enclosing: &mut Vec<RuleScope>) {
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
                let priority = match priority {
                    None => 0,
                    Some((n, span)) => i32::try_from(*n).unwrap_or_else(|_| {
                        self.error(*span, "a priority is a number of 32 bits");
                        0
                    }),
                };
                let guard = match guard {
                    Some(guard) => self.claim(guard, "a guard"),
                    None => Some(M::Bool(true)),
                };
                let body = self.body(locals, body);
                let Some(guard) = guard else { return };
                self.model.rules.push(model::Rule {
                    name,
                    parameters: parameters(enclosing),
                    guard: enclose_claim(enclosing, guard, M::and),
                    body: enclose_body(enclosing, body, false),
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
                let body = self.body(locals, body);
                self.model.starts.push(Start {
                    name,
                    parameters: parameters(enclosing),
                    body: enclose_body(enclosing, body, true),
                });
            }
            RuleKind::Property(property) => self.property(property, enclosing),
            RuleKind::Ruleset(quantifiers, rules) => self.ruleset(quantifiers, rules, enclosing),
            RuleKind::Alias(aliases, rules) => self.scoped(|l| {
                l.pure_construct = Some("an alias");
                for (name, e) in aliases {
                    match l.alias(*name, e) {
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
                l.rules(rules, enclosing);
            }),
            RuleKind::Choose(name, multiset, rules) => self.scoped(|l| {
                let Some((place, capacity)) = l.multiset(multiset) else {
                    l.declare(*name, Meaning::Invalid);
                    return l.rules(rules, enclosing);
                };
                let ty = l.slot_index_type(capacity);
                let id = l.variable(name.text, ty, Role::Bound);
                l.binding_spans.insert(id, name.span);
                l.declare(*name, Meaning::Variable(id, Access::Slot));
                enclosing.push(RuleScope::Slot(id, place));
                l.rules(rules, enclosing);
            }),
        }
        enclosing.truncate(depth);
    }

    fn rules(&mut self, rules: &[Rule<'t>], enclosing: &mut Vec<RuleScope>) {
        for rule in rules {
            self.rule(rule, enclosing);
        }
    }

    /// Lowers the rules of a ruleset for each of its parameters. Leaves the parameters in `enclosing`.
    fn ruleset(
        &mut self,
        quantifiers: &[Quantifier<'t>],
        rules: &[Rule<'t>],
        enclosing: &mut Vec<RuleScope>,
    ) {
        let Some((first, inner_quantifiers)) = quantifiers.split_first() else {
            return self.rules(rules, enclosing);
        };
        let span = first.name.span;
        self.with_quantifier(first, |l, id, steps| {
            match steps.map(|steps| [steps.from, steps.to, steps.by].map(|e| l.fold(&e))) {
                None => enclosing.push(RuleScope::Parameter(id, None)),
                Some([Some(from), Some(to), Some(by)]) => {
                    // Steps of 1 visit all values of the range.
                    let is_empty_range = if by > 0 { to < from } else { from < to };
                    let condition = match by {
                        _ if is_empty_range => Some(M::Bool(false)),
                        1 | -1 => None,
                        _ => {
                            let offset = M::Read(id.into()) - M::Int(from);
                            Some((offset % M::Int(by)).is(0))
                        }
                    };
                    enclosing.push(RuleScope::Parameter(id, condition));
                }
                Some(_) => {
                    l.error(span, "the bounds of a ruleset must be constant");
                }
            }
            l.ruleset(inner_quantifiers, rules, enclosing);
            Some(())
        });
    }

    /// Lowers a condition on a state, which must not change the state. `construct` names the condition in messages.
    fn claim(&mut self, e: &Expr<'t>, construct: &'static str) -> Option<M> {
        let line = self.line(e.span);
        self.pure_construct = Some(construct);
        let claim = self.boolean(e, construct);
        self.pure_construct = None;
        Some(M::Line(line, Box::new(claim?)))
    }

    /// Lowers the local declarations and statements of a body in a scope of their own.
    fn body(&mut self, locals: &[Decl<'t>], body: &[Stmt<'t>]) -> Vec<S> {
        self.scoped(|l| {
            let mut statements = Vec::new();
            for decl in locals {
                l.decl(decl, Role::Local, &mut statements);
            }
            statements.extend(l.block(body));
            statements
        })
    }

    /// Lowers a property of all states. Each kind joins the conditions of the enclosing constructs in its own way.
    fn property(&mut self, property: &Property<'t>, enclosing: &[RuleScope]) {
        self.counts[2] += 1;
        let (number, line) = (self.counts[2], self.line(property.span));
        let (default_title, construct) = match property.kind {
            PropertyKind::Invariant => ("Invariant", "an invariant"),
            PropertyKind::Assume => ("Assumption", "an assumption"),
            PropertyKind::Cover => ("Cover", "a cover"),
            PropertyKind::Liveness => ("Liveness", "a liveness property"),
        };
        let title = property.title.clone();
        let name = title.unwrap_or(format!("{default_title} {number}"));
        let Some(claim) = self.claim(&property.claim, construct) else {
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
                let mut holds = enclose_claim(enclosing, claim, M::and);
                for p in parameters(enclosing).into_iter().rev() {
                    holds = M::Exists(p, Box::new(holds));
                }
                let holds = Some(holds);
                self.model.covers.push(Cover { name, holds });
            }
            // Each instance is a separate property.
            PropertyKind::Liveness => {
                let liveness = Invariant {
                    parameters: parameters(enclosing),
                    ..invariant_of(enclose_claim(enclosing, claim, M::implies))
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
fn enclose_claim(enclosing: &[RuleScope], claim: M, join: fn(M, M) -> M) -> M {
    enclosing
        .iter()
        .rev()
        .fold(claim, |claim, scope| match scope {
            RuleScope::Parameter(_, None) => claim,
            RuleScope::Parameter(_, Some(condition)) => join(condition.clone(), claim),
            RuleScope::Slot(id, place) => join(present(place, *id), claim),
            RuleScope::Alias(id, place) => M::Alias(*id, place.clone(), Box::new(claim)),
            RuleScope::Value(id, value) => M::Let(*id, Box::new(value.clone()), Box::new(claim)),
        })
}

/// A claim for all values of the enclosing parameters.
fn forall_claim(enclosing: &[RuleScope], claim: M) -> M {
    enclosing.iter().rev().fold(claim, |claim, scope| {
        let inner = enclose_claim(std::slice::from_ref(scope), claim, M::implies);
        match scope {
            RuleScope::Parameter(id, _) | RuleScope::Slot(id, _) => M::Forall(*id, Box::new(inner)),
            _ => inner,
        }
    })
}

/// Statements within the enclosing constructs. A start state has no guard that restricts its parameters, so it assumes
/// their conditions.
fn enclose_body(enclosing: &[RuleScope], body: Vec<S>, is_start: bool) -> Vec<S> {
    enclosing.iter().rev().fold(body, |mut body, scope| {
        match scope {
            RuleScope::Alias(id, place) => return vec![S::Alias(*id, place.clone(), body)],
            RuleScope::Value(id, value) => body.insert(0, S::Let(*id, Some(value.clone()))),
            RuleScope::Parameter(_, Some(condition)) if is_start => {
                body.insert(0, S::Assume(condition.clone()))
            }
            RuleScope::Slot(id, place) if is_start => {
                body.insert(0, S::Assume(present(place, *id)))
            }
            RuleScope::Parameter(..) | RuleScope::Slot(..) => {}
        }
        body
    })
}

fn present(place: &Place, slot: VariableId) -> M {
    M::Present(place.clone(), Box::new(M::Read(slot.into())))
}
