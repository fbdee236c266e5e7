//! Detection of asymmetric uses of scalarsets: uses for which a permutation of values does not map runs to runs.
//!
//! A loop over a scalarset runs in some order, but the values have no order. The loop is harmless if its rounds can be
//! exchanged. They can if no round writes a place that another reads or writes. Exceptions: elements that each round
//! has for itself, equal values stored by all rounds, and commutative updates such as sums.
//! Each use that is not proved harmless becomes a finding, and [`crate::symmetry`] does not permute its scalarsets.
//! `clear` chooses a first value, and is a finding too.
//! A claim about all values, or about all elements of a multiset, must have no effects. The slots of a multiset are
//! numbered in an order of their elements, so the numbers must not be observable.
//!
//! Functions are analysed at each call, with the arguments of the call.

mod judge;
mod keys;
mod slots;

use crate::model::*;
use judge::Judgement;
use keys::{constant, Key, PathStep, Spot, UNDEFINE};
use slots::Slots;
use std::collections::BTreeMap;

/// Maximum number of nodes analysed, since nested calls grow exponentially. Beyond it, no scalarset counts as
/// symmetric.
const MAX_NODES: usize = 1 << 20;

/// An asymmetric use of scalarsets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AsymmetryReport {
    /// The scalarsets concerned.
    pub sets: Vec<TypeId>,
    /// Reason, as a sentence without its full stop.
    pub why: String,
    /// Location of the use.
    pub place: AsymmetricUse,
}

/// Location of an asymmetric use.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum AsymmetricUse {
    /// The loop, or the traversal of a multiset, that binds this variable.
    Loop(VariableId),
    /// The claim about all values, or all elements of a multiset, that binds this variable.
    Claim(VariableId),
    /// The use of a slot number, held by this variable.
    Slot(VariableId),
    /// A `clear` on this line of the text; 0 if there is no text.
    Clear(u32),
    /// The model as a whole.
    Model,
}

/// Scalarsets with asymmetric uses, sorted.
pub(crate) fn asymmetric_sets(model: &Model) -> Vec<TypeId> {
    let mut sets: Vec<TypeId> = asymmetric_uses(model)
        .0
        .into_iter()
        .flat_map(|f| f.sets)
        .collect();
    sets.sort_unstable();
    sets.dedup();
    sets
}

/// Places that must receive the same value in all rounds of a loop, by the variable that the loop binds. Each inner
/// list holds all spellings of one place in the loop.
/// If the rounds store different values there, the result may depend on their order.
pub type Settled = BTreeMap<VariableId, Vec<Vec<Place>>>;

/// Finds all asymmetric uses of scalarsets in a valid model. Also returns the stores of loops that must be checked at
/// run time.
pub fn asymmetric_uses(model: &Model) -> (Vec<AsymmetryReport>, Settled) {
    let all_sets: Vec<TypeId> = (0..model.types.len() as u32).map(TypeId).collect();
    let all_sets: Vec<TypeId> = all_sets.into_iter().filter(|&t| is_set(model, t)).collect();
    if all_sets.is_empty() {
        return (Vec::new(), Settled::new());
    }
    let mut walk = Walk {
        model,
        places: vec![None; model.variables.len()],
        values: vec![None; model.variables.len()],
        loops: Vec::new(),
        slots: Slots::new(model),
        facts: Vec::new(),
        line: 0,
        calls: Vec::new(),
        nodes: 0,
        reports: BTreeMap::new(),
        settled: Settled::new(),
    };
    // Start states need not be symmetric: each is a state like any other, and a permutation maps the successors of a
    // state to those of its image.
    for rule in &model.rules {
        walk.slots.begin_step();
        walk.expr(&rule.guard);
        walk.block(&rule.body);
    }
    for claim in model
        .invariants
        .iter()
        .chain(&model.liveness)
        .chain(&model.assumptions)
    {
        walk.expr(&claim.holds);
    }
    let covers = model.covers.iter().filter_map(|cover| cover.holds.as_ref());
    covers.chain(&model.quiescent).for_each(|e| walk.expr(e));
    for &id in model.liveness.iter().flat_map(|claim| &claim.parameters) {
        walk.report_slot_use(id, "it is checked for each slot separately");
    }
    let mut reports: Vec<AsymmetryReport> = walk.reports.into_values().collect();
    let mut report_model = |sets: Vec<TypeId>, reason: &str| {
        if !sets.is_empty() {
            let (reason, place) = (reason.into(), AsymmetricUse::Model);
            reports.push(AsymmetryReport {
                sets,
                why: reason,
                place,
            });
        }
    };
    if !model.undefined {
        let mut sets = Vec::new();
        let begin = |v: &&Variable| matches!(v.role, Role::State | Role::Local);
        (model.variables.iter().filter(begin)).for_each(|v| sets_in_first(model, v.ty, &mut sets));
        report_model(sets, "variables start with the first value of their type");
    }
    if walk.nodes >= MAX_NODES {
        let reason = "the model is too large to see whether its loops depend on an order";
        report_model(all_sets, reason);
    }
    walk.settled.retain(|_, groups| !groups.is_empty());
    (reports, walk.settled)
}

fn is_set(model: &Model, ty: TypeId) -> bool {
    matches!(model.ty(ty), Type::Scalarset(2..))
}

/// Appends the scalarsets whose values occur in a type or its parts.
pub(crate) fn sets_in(model: &Model, ty: TypeId, sets: &mut Vec<TypeId>) {
    match model.ty(ty) {
        Type::Scalarset(_) if is_set(model, ty) && !sets.contains(&ty) => sets.push(ty),
        Type::Union(members) => members.iter().for_each(|&m| sets_in(model, m, sets)),
        Type::Array { element, .. } | Type::Multiset { element, .. } => {
            sets_in(model, *element, sets)
        }
        Type::Record(fields) => fields.iter().for_each(|f| sets_in(model, f.1, sets)),
        _ => {}
    }
}

/// Appends the scalarsets whose values occur in the first value of a type. The first value of a multiset is empty.
fn sets_in_first(model: &Model, ty: TypeId, sets: &mut Vec<TypeId>) {
    match model.ty(ty) {
        Type::Union(members) => sets_in_first(model, members[0], sets),
        Type::Array { element, .. } => sets_in_first(model, *element, sets),
        Type::Record(fields) => (fields.iter()).for_each(|f| sets_in_first(model, f.1, sets)),
        Type::Multiset { .. } => {}
        _ => sets_in(model, ty, sets),
    }
}

/// Effect of an access on a place.
#[derive(Clone, PartialEq, Debug)]
enum Effect {
    Read,
    /// Stores a value that may be equal in all rounds.
    Same(Key),
    /// Stores any other value.
    Write,
    /// Adds a value of known sign. Partial sums are then monotonic, so an overflow does not depend on the order of
    /// rounds.
    Count {
        is_increment: bool,
    },
    /// Combines a truth value with it, by `and` or `or`.
    Join(Operator),
    /// Inserts an element into a multiset.
    Insert,
}

#[derive(Clone, Debug)]
struct Access {
    spot: Spot,
    /// The place as the text names it.
    place: Place,
    effect: Effect,
    /// Call depth of the access.
    calls: usize,
    /// Pairs of values that are known to differ at the access.
    distinct_values: Vec<(Key, Key)>,
}

/// A loop over a scalarset under analysis.
struct Loop {
    variable: VariableId,
    /// Call depth of the loop.
    calls: usize,
    accesses: Vec<Access>,
    /// Variables whose lifetime lies within a round.
    local_variables: Vec<VariableId>,
    /// Values returned from within the loop.
    returns: Vec<Option<Key>>,
    /// Another reason why the result may depend on the order.
    why: Option<String>,
    assumes: bool,
    can_fail: bool,
    /// True if a round may reach a cover statement.
    covers: bool,
    /// True if the loop calls a function that contains it.
    recursive: bool,
}

struct Walk<'a> {
    model: &'a Model,
    /// Places of the aliases in scope.
    places: Vec<Option<Spot>>,
    /// Values of parameters that are never assigned.
    values: Vec<Option<Key>>,
    loops: Vec<Loop>,
    slots: Slots,
    facts: Vec<(Key, Key)>,
    /// The line of the text of the current statement.
    line: u32,
    calls: Vec<FunctionId>,
    nodes: usize,
    reports: BTreeMap<(AsymmetricUse, String), AsymmetryReport>,
    settled: Settled,
}

impl Walk<'_> {
    /// Counts a node. Returns false once the limit is exceeded.
    fn count(&mut self) -> bool {
        self.nodes += 1;
        self.nodes < MAX_NODES
    }

    fn block(&mut self, block: &[Stmt]) {
        block.iter().for_each(|s| self.stmt(s));
    }

    fn stmt(&mut self, stmt: &Stmt) {
        if !self.count() {
            return;
        }
        match stmt {
            Stmt::Line(line) => self.line = *line,
            Stmt::Note(_) => {}
            Stmt::Cover(_) => self.loops.iter_mut().for_each(|l| l.covers = true),
            Stmt::Assign(to, e) => self.assign(to, e),
            Stmt::Clear(to) => {
                let mut sets = Vec::new();
                sets_in_first(self.model, self.model.type_of_place(to), &mut sets);
                if !sets.is_empty() {
                    let reason = format!("`clear {}` chooses a first value", self.model.spell(to));
                    self.report(sets, reason, AsymmetricUse::Clear(self.line));
                }
                self.store(to, Some(constant("clear")));
            }
            Stmt::Undefine(to) => self.store(to, Some(constant(UNDEFINE))),
            Stmt::Let(id, e) => {
                self.begin_lifetime(*id);
                match e {
                    Some(e) => self.assign(&(*id).into(), e),
                    None => self.store(&(*id).into(), None),
                }
            }
            Stmt::Alias(id, place, body) => {
                self.alias(*id, place);
                self.block(body);
            }
            Stmt::If(condition, then, otherwise) => {
                self.expr(condition);
                self.assuming(condition, true, |w| w.block(then));
                self.assuming(condition, false, |w| w.block(otherwise));
            }
            Stmt::For(id, body) => {
                self.prepare_loop(body);
                self.analyse_loop(*id, |w| w.block(body));
            }
            Stmt::ForSteps(id, steps, body) => {
                self.steps(steps);
                self.begin_lifetime(*id);
                self.prepare_loop(body);
                self.block(body);
            }
            Stmt::While(condition, body, _) => {
                self.can_fail();
                self.prepare_loop(body);
                self.expr(condition);
                self.block(body);
            }
            Stmt::Switch(subject, cases, otherwise) => {
                self.expr(subject);
                for (values, body) in cases {
                    values.iter().for_each(|v| self.expr(v));
                    self.block(body);
                }
                self.block(otherwise);
            }
            Stmt::Return(e) => {
                let key = match e {
                    Some(e) => {
                        self.expr(e);
                        self.key(e)
                    }
                    None => Some(constant("")),
                };
                let depth = self.calls.len();
                let current_loops = self.loops.iter_mut().filter(|l| l.calls == depth);
                current_loops.for_each(|l| l.returns.push(key.clone()));
            }
            Stmt::Call(id, arguments) => self.call(*id, arguments),
            Stmt::Assume(e) => {
                self.expr(e);
                self.loops.iter_mut().for_each(|l| l.assumes = true);
            }
            Stmt::Insert(to, e) => {
                self.can_fail();
                self.expr(e);
                self.access(to, Effect::Insert);
                self.record_insertion(to);
            }
            Stmt::Remove(to, e) => {
                self.can_fail();
                if !self.is_slot_of(e, to) {
                    self.expr(e);
                }
                self.access(to, Effect::Write);
                self.record_removal(to);
            }
            Stmt::RemoveWhere(id, to, claim) => {
                // The removal of an element may depend on earlier removals, and slots are sorted by value.
                let spot = self.spot(to);
                self.open_loop(*id);
                self.bind_slot_number(*id, to);
                self.expr(claim);
                let Some(round) = self.loops.pop() else {
                    return;
                };
                let is_own_element = |a: &Access| match a.spot.path.get(spot.path.len()) {
                    Some(PathStep::Index(Some(key))) => *key == Key::of(*id),
                    _ => false,
                };
                let depends_on_others =
                    |a: &Access| self.may_overlap(&a.spot, &spot) && !is_own_element(a);
                let depends_on_others = round.accesses.iter().any(depends_on_others);
                let mut sets = Vec::new();
                sets_in(self.model, self.model.type_of_place(to), &mut sets);
                if depends_on_others && !sets.is_empty() {
                    let name = self.model.spell(to);
                    let reason = format!(
                        "the element removed from `{name}` depends on the remaining elements"
                    );
                    self.report(sets.clone(), reason, AsymmetricUse::Loop(*id));
                }
                self.report_claim_effects(&round, sets);
                self.merge_inner_loop(round);
                self.access(to, Effect::Write);
                self.record_removal(to);
            }
            Stmt::Error(_) => self.can_fail(),
            Stmt::Assert(_, e) => {
                self.can_fail();
                self.expr(e);
            }
        }
    }

    fn report(&mut self, sets: Vec<TypeId>, reason: String, place: AsymmetricUse) {
        let report = AsymmetryReport {
            sets,
            why: reason.clone(),
            place,
        };
        self.reports.entry((place, reason)).or_insert(report);
    }

    fn can_fail(&mut self) {
        self.loops.iter_mut().for_each(|l| l.can_fail = true);
    }

    /// Records that a variable's lifetime begins.
    fn begin_lifetime(&mut self, id: VariableId) {
        self.loops
            .iter_mut()
            .for_each(|l| l.local_variables.push(id));
    }

    fn open_loop(&mut self, variable: VariableId) {
        self.begin_lifetime(variable);
        self.loops.push(Loop {
            variable,
            calls: self.calls.len(),
            accesses: Vec::new(),
            local_variables: vec![variable],
            returns: Vec::new(),
            why: None,
            assumes: false,
            can_fail: false,
            covers: false,
            recursive: false,
        });
    }

    /// Adds the effects of an inner loop to the loops around it.
    fn merge_inner_loop(&mut self, inner: Loop) {
        for outer in &mut self.loops {
            outer.assumes |= inner.assumes;
            outer.can_fail |= inner.can_fail;
            outer.covers |= inner.covers;
        }
    }

    /// Analyses a claim about every value of a type, or every element of a multiset; `sets` are its scalarsets.
    fn analyse_claim(&mut self, id: VariableId, sets: Vec<TypeId>, condition: &Expr) {
        if sets.is_empty() {
            self.begin_lifetime(id);
            return self.expr(condition);
        }
        self.open_loop(id);
        self.expr(condition);
        if let Some(round) = self.loops.pop() {
            self.report_claim_effects(&round, sets);
            self.merge_inner_loop(round);
        }
    }

    /// Reports a claim with effects: the values for which it is evaluated depend on the order.
    fn report_claim_effects(&mut self, round: &Loop, sets: Vec<TypeId>) {
        if sets.is_empty() {
            return;
        }
        let changes =
            |a: &&Access| a.effect != Effect::Read && !round.local_variables.contains(&a.spot.root);
        let reason = match round.accesses.iter().find(changes) {
            Some(access) => format!("it changes `{}`", self.name(&access.spot)),
            None if round.recursive => "it calls its own function".into(),
            None if round.assumes => "it has an `assume`".into(),
            None if round.covers => "it has a `cover`".into(),
            None => return,
        };
        self.report(sets, reason, AsymmetricUse::Claim(round.variable));
    }

    /// Analyses a loop over the values of a type.
    fn analyse_loop(&mut self, id: VariableId, body: impl FnOnce(&mut Self)) {
        let mut sets = Vec::new();
        sets_in(self.model, self.model.variable(id).ty, &mut sets);
        if sets.is_empty() {
            self.begin_lifetime(id);
            return body(self);
        }
        self.open_loop(id);
        body(self);
        let Some(round) = self.loops.pop() else {
            return;
        };
        match self.judge(&round) {
            Judgement::OrderDependent(reason) => self.report(sets, reason, AsymmetricUse::Loop(id)),
            Judgement::Exchangeable(groups) => {
                let known = self.settled.entry(id).or_default();
                known.extend(groups);
            }
        }
        self.merge_inner_loop(round);
    }

    fn name(&self, spot: &Spot) -> String {
        let mut name = self.model.variable(spot.root).name.clone();
        for step in &spot.path {
            match step {
                PathStep::Field(field) => name = format!("{name}.{field}"),
                PathStep::Index(_) => name += "[..]",
            }
        }
        name
    }

    fn access(&mut self, place: &Place, effect: Effect) {
        self.indices(place);
        let spot = self.spot(place);
        self.report_stale_slots(&spot);
        for outer in &mut self.loops {
            outer.accesses.push(Access {
                spot: spot.clone(),
                place: place.clone(),
                effect: effect.clone(),
                calls: self.calls.len(),
                distinct_values: self.facts.clone(),
            });
        }
    }

    /// Analyses the indices of a place.
    fn indices(&mut self, place: &Place) {
        for (depth, step) in place.path.iter().enumerate() {
            if let Step::Index(e) = step {
                let name = |key: &Key| matches!(key.names[..], [one] if *key == Key::of(one));
                if !self
                    .key(e)
                    .is_some_and(|key| name(&key) && self.is_unmodifiable(&key))
                {
                    self.can_fail();
                }
                if !self.is_slot_in(e, place, depth) {
                    self.expr(e);
                }
            }
        }
    }

    fn alias(&mut self, id: VariableId, place: &Place) {
        self.indices(place);
        self.places[id.index()] = Some(self.fixed(place));
    }

    fn store(&mut self, to: &Place, value: Option<Key>) {
        self.access(to, value.map_or(Effect::Write, Effect::Same));
        self.record_store(to);
    }

    fn assign(&mut self, to: &Place, e: &Expr) {
        if self.loops.is_empty() {
            self.indices(to);
            self.expr(e);
            return self.record_store(to);
        }
        self.can_fail();
        let is_same_place = |w: &Self, e: &Expr| match e.without_line() {
            Expr::Read(place) | Expr::Peek(place) => w.spot(place) == w.spot(to),
            _ => false,
        };
        if let Expr::Binary(op, a, b) = e.without_line() {
            use Operator::*;
            let (first, second) = (is_same_place(self, a), is_same_place(self, b));
            let rest = if first { b } else { a };
            let sign = sign(self.model, rest);
            let effect = match (op, first, second) {
                (Add, true, false) | (Add, false, true) => {
                    sign.map(|is_increment| Effect::Count { is_increment })
                }
                (Subtract, true, false) => sign.map(|is_increment| Effect::Count {
                    is_increment: !is_increment,
                }),
                // An operand that is not always evaluated must not be able to fail.
                (And | Or, true, false) if !self.may_fail(rest) => Some(Effect::Join(*op)),
                _ => None,
            };
            if let Some(effect) = effect {
                self.expr(rest);
                self.can_fail();
                return self.access(to, effect);
            }
        }
        self.expr(e);
        let key = self.key(e);
        self.store(to, key);
    }

    /// True if the evaluation of an expression may be an error of the model.
    fn may_fail(&mut self, e: &Expr) -> bool {
        self.open_loop(VariableId(u32::MAX));
        self.expr(e);
        self.loops.pop().is_none_or(|round| round.can_fail)
    }

    /// Analyses code under the assumption that a condition is met, or is not met.
    fn assuming(&mut self, condition: &Expr, met: bool, f: impl FnOnce(&mut Self)) {
        let fact_count = self.facts.len();
        self.record_condition(condition, met);
        f(self);
        self.facts.truncate(fact_count);
    }

    fn record_condition(&mut self, condition: &Expr, met: bool) {
        use Operator::*;
        match (condition.without_line(), met) {
            (Expr::Not(a), _) => self.record_condition(a, !met),
            (Expr::Binary(And, a, b), true) | (Expr::Binary(Or, a, b), false) => {
                self.record_condition(a, met);
                self.record_condition(b, met);
            }
            (Expr::Binary(Implies, a, b), false) => {
                self.record_condition(a, true);
                self.record_condition(b, false);
            }
            (Expr::Binary(NotEqual, a, b), true) | (Expr::Binary(Equal, a, b), false) => {
                if let (Some(a), Some(b)) = (self.key(a), self.key(b)) {
                    self.facts.push((a, b));
                }
            }
            _ => {}
        }
    }

    fn steps(&mut self, steps: &Steps) {
        self.can_fail();
        let parts = [&steps.from, &steps.to, &steps.by];
        parts.into_iter().for_each(|e| self.expr(e));
    }

    /// Analyses an expression.
    fn expr(&mut self, e: &Expr) {
        use Operator::*;
        if !self.count() {
            return;
        }
        match e {
            Expr::Int(_) | Expr::Bool(_) | Expr::Label(..) | Expr::Undefined(_) => {}
            Expr::Read(place) => {
                self.report_slot_use(place.variable, "it is used as a number");
                if self.model.undefined && self.model.variable(place.variable).role != Role::Bound {
                    self.can_fail();
                }
                self.access(place, Effect::Read);
            }
            Expr::Peek(place) | Expr::IsUndefined(place) => self.access(place, Effect::Read),
            Expr::Line(_, a) | Expr::Not(a) | Expr::IsMember(a, _) => self.expr(a),
            Expr::Table(_, a) | Expr::Negate(a) | Expr::Convert(_, a) => {
                self.can_fail();
                self.expr(a);
            }
            Expr::Binary(Equal | NotEqual, a, b) if self.are_slots_of_one(a, b) => {}
            Expr::Binary(op, a, b) => {
                if op.is_arithmetic() {
                    self.can_fail();
                }
                self.expr(a);
                match op {
                    And | Implies => self.assuming(a, true, |w| w.expr(b)),
                    Or => self.assuming(a, false, |w| w.expr(b)),
                    _ => self.expr(b),
                }
            }
            Expr::If(c, a, b) => {
                self.expr(c);
                self.assuming(c, true, |w| w.expr(a));
                self.assuming(c, false, |w| w.expr(b));
            }
            Expr::Forall(id, a) | Expr::Exists(id, a) => {
                let mut sets = Vec::new();
                sets_in(self.model, self.model.variable(*id).ty, &mut sets);
                self.analyse_claim(*id, sets, a);
            }
            Expr::ForallSteps(id, steps, a) | Expr::ExistsSteps(id, steps, a) => {
                self.steps(steps);
                self.begin_lifetime(*id);
                self.expr(a);
            }
            Expr::Call(id, arguments) => self.call(*id, arguments),
            Expr::Alias(id, place, a) => {
                self.alias(*id, place);
                self.expr(a);
            }
            Expr::Let(id, value, a) => {
                self.begin_lifetime(*id);
                self.expr(value);
                self.expr(a);
            }
            Expr::Present(place, a) => {
                // The lowering of `choose` creates slot numbers in this form.
                match a.without_line() {
                    Expr::Read(slot) if slot.path.is_empty() => {
                        self.bind_slot_number(slot.variable, place)
                    }
                    a => self.expr(a),
                }
                self.access(place, Effect::Read);
            }
            Expr::Count(id, place, a) => {
                self.access(place, Effect::Read);
                self.bind_slot_number(*id, place);
                let mut sets = Vec::new();
                sets_in(self.model, self.model.type_of_place(place), &mut sets);
                self.analyse_claim(*id, sets, a);
            }
        }
    }

    fn call(&mut self, id: FunctionId, arguments: &[Argument]) {
        let model = self.model;
        let function = &model.functions[id.index()];
        let active_call = self.calls.iter().position(|&call| call == id);
        let mut bound = Vec::new();
        for (&parameter, argument) in function.parameters.iter().zip(arguments) {
            bound.push(match argument {
                Argument::Value(e) => {
                    self.can_fail();
                    self.expr(e);
                    (parameter, None, self.key(e))
                }
                Argument::Place(place) => {
                    self.indices(place);
                    (parameter, Some(self.fixed(place)), None)
                }
            });
        }
        if let Some(first) = active_call {
            // Its effects are recorded at the outermost call.
            for outer in &mut self.loops {
                outer.recursive |= first < outer.calls;
                let reason = || format!("`{}` calls itself", function.name);
                outer.why.get_or_insert_with(reason);
            }
            return;
        }
        let mut assigned = Vec::new();
        let mut recursive = false;
        crate::visit::block(&function.body, &mut |node| match node {
            crate::visit::Node::Target(place) => assigned.push(place.variable),
            crate::visit::Node::Expr(Expr::Call(inner, _))
            | crate::visit::Node::Stmt(Stmt::Call(inner, _)) => recursive |= *inner == id,
            _ => {}
        });
        for (parameter, place, value) in bound {
            if place.is_none() {
                self.begin_lifetime(parameter);
            }
            let is_constant = !recursive && !assigned.contains(&parameter);
            self.places[parameter.index()] = place.filter(|_| !recursive);
            self.values[parameter.index()] =
                value.filter(|key| is_constant && self.is_unmodifiable(key));
        }
        // Facts about the caller's names hold here too, but a return does not leave the caller's loops.
        self.calls.push(id);
        self.block(&function.body);
        self.calls.pop();
        for &parameter in &function.parameters {
            self.places[parameter.index()] = None;
            self.values[parameter.index()] = None;
        }
    }
}

/// Sign of a number: `Some(true)` if it is never negative, `Some(false)` if it is never positive.
fn sign(model: &Model, e: &Expr) -> Option<bool> {
    let (lo, hi) = match e.without_line() {
        Expr::Int(n) => (*n, *n),
        Expr::Read(place) | Expr::Peek(place) => model.bounds(model.type_of_place(place))?,
        Expr::If(_, a, b) => {
            let (a, b) = (sign(model, a)?, sign(model, b)?);
            return (a == b).then_some(a);
        }
        _ => return None,
    };
    match (lo >= 0, hi <= 0) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    }
}
