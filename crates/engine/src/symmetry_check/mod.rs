//! Detection of asymmetric uses of scalarsets: uses for which a permutation of the values is not an automorphism of the
//! state graph.
//!
//! A loop over a scalarset executes its iterations in some order, although the values are unordered. The loop is
//! symmetric if its iterations commute: no iteration writes a place that another iteration reads or writes. Exceptions
//! are elements private to an iteration, equal values stored by all iterations, and commutative updates such as sums.
//! Each use that is not proved symmetric is reported, and [`crate::symmetry`] does not permute its scalarsets.
//! `clear` chooses a first value, so it is reported too.
//! A quantified expression over all values, or over all elements of a multiset, must have no side effects. The slots of
//! a multiset are numbered in the order of their elements, so the slot numbers must not be observable.
//!
//! Functions are analysed at each call, with the arguments of the call.

mod commutativity;
mod loops;
mod slots;
mod symbolic;

use crate::model::{
    Argument, Expr, FunctionId, Model, Operator, Place, Role, Step, Steps, Stmt, Type, TypeId,
    Variable, VariableId,
};
use commutativity::OrderVerdict;
use loops::{Access, Effect, Loop};
use slots::Slots;
use std::collections::BTreeMap;
use symbolic::{constant, PathStep, ResolvedPlace, SymbolicValue, UNDEFINE};

/// Maximum number of syntax nodes analysed: functions are analysed at each call, so nested calls grow exponentially.
/// Beyond the limit, no scalarset counts as symmetric.
const MAX_NODES: usize = 1 << 20;

/// Maximum number of orders of a loop that is executed in every order: the orders of five values. A search without the
/// symmetry of more values visits more states, but takes less time for each.
const MAX_TESTED_ORDERS: u64 = 120;

/// An asymmetric use of scalarsets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AsymmetricUse {
    /// Scalarsets whose values are used asymmetrically.
    pub sets: Vec<TypeId>,
    /// Reason, as a sentence without its full stop.
    pub reason: String,
    /// Location of the use.
    pub location: AsymmetryLocation,
}

/// Location of an asymmetric use.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum AsymmetryLocation {
    /// The loop, or the traversal of a multiset, that binds this variable.
    Loop(VariableId),
    /// The quantified expression over all values, or all elements of a multiset, that binds this variable.
    Claim(VariableId),
    /// The use of a slot number, held by this variable.
    Slot(VariableId),
    /// A `clear` on this source line; 0 if the model was not read from a file.
    Clear(u32),
    /// The model as a whole.
    Model,
}

/// Scalarsets with asymmetric uses, sorted.
pub(crate) fn asymmetric_sets(model: &Model) -> Vec<TypeId> {
    let mut sets: Vec<TypeId> = asymmetric_uses(model)
        .0
        .into_iter()
        .flat_map(|asymmetric_use| asymmetric_use.sets)
        .chain(model.ordered.iter().copied())
        .collect();
    sets.sort_unstable();
    sets.dedup();
    sets
}

/// Loops that a search checks at run time, by the variable that the loop binds.
pub type LoopChecks = BTreeMap<VariableId, LoopCheck>;

/// Check of a loop over a scalarset at run time. A step whose result may depend on the order of the iterations is run
/// in every order.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct LoopCheck {
    /// Places that must receive the same value in all iterations. Each inner list holds all spellings of one place in
    /// the loop. The order may matter if iterations store different values there.
    pub places: Vec<Vec<Place>>,
    /// Dependence on the order that the analysis cannot refute, if any. If results differ at run time, the search
    /// starts again without symmetry of the loop's scalarsets.
    pub dependence: Option<OrderDependence>,
}

/// Possible dependence of a loop's result on the order of its iterations.
#[derive(Clone, PartialEq, Debug)]
pub struct OrderDependence {
    /// Reason, as a clause.
    pub reason: String,
    /// Runs of the loop in which the order may matter.
    pub trigger: OrderTrigger,
}

/// Runs of a loop in which the order of the iterations may matter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum OrderTrigger {
    /// Runs in which an iteration returns and another one fails. Iterations have no effect but a return of one value.
    ReturnOrFailure,
    /// Runs in which an iteration returns or fails: it keeps later iterations from running.
    EarlyExit,
    /// All runs.
    EveryRun,
}

impl LoopCheck {
    /// Adds what another analysis of the same loop requires.
    fn merge(&mut self, places: Vec<Vec<Place>>, dependence: Option<OrderDependence>) {
        self.places.extend(places);
        let trigger = |known: &Option<OrderDependence>| known.as_ref().map(|d| d.trigger);
        if trigger(&dependence) > trigger(&self.dependence) {
            self.dependence = dependence;
        }
    }

    /// True if there is nothing to check.
    fn is_empty(&self) -> bool {
        self.places.is_empty() && self.dependence.is_none()
    }
}

/// Finds all asymmetric uses of scalarsets in a valid model. Also returns the loops that must be checked at run time.
pub fn asymmetric_uses(model: &Model) -> (Vec<AsymmetricUse>, LoopChecks) {
    model.with_enough_stack(|| find_asymmetric_uses(model))
}

/// As [`asymmetric_uses`], on a stack that is large enough.
fn find_asymmetric_uses(model: &Model) -> (Vec<AsymmetricUse>, LoopChecks) {
    let all_sets: Vec<TypeId> = (0..model.types.len() as u32)
        .map(TypeId)
        .filter(|&ty| is_scalarset(model, ty))
        .collect();
    if all_sets.is_empty() {
        return (Vec::new(), LoopChecks::new());
    }
    let mut analysis = AsymmetryAnalysis {
        model,
        places: vec![None; model.variables.len()],
        values: vec![None; model.variables.len()],
        loops: Vec::new(),
        slots: Slots::new(model),
        inequalities: Vec::new(),
        line: 0,
        calls: Vec::new(),
        bindings: 0,
        repeated: false,
        nodes: 0,
        reports: BTreeMap::new(),
        loop_checks: LoopChecks::new(),
        in_condition: false,
    };
    // Start states need not be symmetric: each is a state like any other, and a permutation maps the successors of a
    // state to those of its image.
    for rule in &model.rules {
        analysis.slots.begin_step();
        analysis.analyse_condition(&rule.guard);
        analysis.analyse_block(&rule.body);
    }
    for claim in model
        .invariants
        .iter()
        .chain(&model.liveness)
        .chain(&model.assumptions)
    {
        analysis.analyse_condition(&claim.holds);
    }
    let covers = model.covers.iter().filter_map(|cover| cover.holds.as_ref());
    covers
        .chain(&model.quiescent)
        .for_each(|e| analysis.analyse_condition(e));
    for &id in model.liveness.iter().flat_map(|claim| &claim.parameters) {
        analysis.report_slot_use(id, "it is checked for each slot separately");
    }
    let mut reports: Vec<AsymmetricUse> = analysis.reports.into_values().collect();
    let mut report_model = |sets: Vec<TypeId>, reason: &str| {
        if !sets.is_empty() {
            reports.push(AsymmetricUse {
                sets,
                reason: reason.into(),
                location: AsymmetryLocation::Model,
            });
        }
    };
    if !model.undefined {
        let mut sets = Vec::new();
        let begins_defined = |v: &&Variable| matches!(v.role, Role::State | Role::Local);
        (model.variables.iter().filter(begins_defined))
            .for_each(|v| scalarsets_in_first_value(model, v.ty, &mut sets));
        report_model(sets, "variables start with the first value of their type");
    }
    if analysis.nodes >= MAX_NODES {
        let reason = "the model is too large to see whether its loops depend on an order";
        report_model(all_sets, reason);
    }
    analysis.loop_checks.retain(|_, check| !check.is_empty());
    (reports, analysis.loop_checks)
}

/// Returns true if a type is a scalarset of at least two values, without a declared order.
fn is_scalarset(model: &Model, ty: TypeId) -> bool {
    matches!(model.ty(ty), Type::Scalarset(2..)) && !model.ordered.contains(&ty)
}

/// Appends the scalarsets whose values occur in a type or its parts.
pub(crate) fn scalarsets_in(model: &Model, ty: TypeId, sets: &mut Vec<TypeId>) {
    match model.ty(ty) {
        Type::Scalarset(_) if is_scalarset(model, ty) && !sets.contains(&ty) => sets.push(ty),
        Type::Union(members) => members.iter().for_each(|&m| scalarsets_in(model, m, sets)),
        Type::Array { element, .. } | Type::Multiset { element, .. } => {
            scalarsets_in(model, *element, sets)
        }
        Type::Record(fields) => fields.iter().for_each(|f| scalarsets_in(model, f.1, sets)),
        _ => {}
    }
}

/// Appends the scalarsets whose values occur in the first value of a type. The first value of a multiset is empty.
fn scalarsets_in_first_value(model: &Model, ty: TypeId, sets: &mut Vec<TypeId>) {
    match model.ty(ty) {
        Type::Union(members) => scalarsets_in_first_value(model, members[0], sets),
        Type::Array { element, .. } => scalarsets_in_first_value(model, *element, sets),
        Type::Record(fields) => {
            (fields.iter()).for_each(|f| scalarsets_in_first_value(model, f.1, sets))
        }
        Type::Multiset { .. } => {}
        _ => scalarsets_in(model, ty, sets),
    }
}

/// Analysis of a model, with what is known at the current statement.
struct AsymmetryAnalysis<'a> {
    /// Valid model.
    model: &'a Model,
    /// Places of the aliases in scope.
    places: Vec<Option<ResolvedPlace>>,
    /// Symbolic values of parameters that are never assigned.
    values: Vec<Option<SymbolicValue>>,
    /// The loops around the current statement, outermost first.
    loops: Vec<Loop>,
    /// Slot numbers in scope.
    slots: Slots,
    /// Pairs of values that are known to differ at the current statement.
    inequalities: Vec<(SymbolicValue, SymbolicValue)>,
    /// Source line of the current statement.
    line: u32,
    /// The functions being called, outermost first.
    calls: Vec<FunctionId>,
    /// Number of parameters bound to places so far.
    bindings: usize,
    /// True in the body of a loop.
    repeated: bool,
    /// Number of syntax nodes analysed so far.
    nodes: usize,
    /// Uses found so far, without duplicates.
    reports: BTreeMap<(AsymmetryLocation, String), AsymmetricUse>,
    /// Loops that must be checked at run time.
    loop_checks: LoopChecks,
    /// True in guards and claims, which are evaluated in every state.
    in_condition: bool,
}

impl AsymmetryAnalysis<'_> {
    /// Counts a node. Returns false if the limit is exceeded.
    fn count_node(&mut self) -> bool {
        self.nodes += 1;
        self.nodes < MAX_NODES
    }

    /// Analyses a guard or claim.
    fn analyse_condition(&mut self, e: &Expr) {
        self.in_condition = true;
        self.analyse_expr(e);
        self.in_condition = false;
    }

    /// Analyses statements in order.
    fn analyse_block(&mut self, block: &[Stmt]) {
        block.iter().for_each(|s| self.analyse_stmt(s));
    }

    /// Analyses code that runs repeatedly. The first statements of an iteration follow the last ones of the previous
    /// iteration, so the analysis is repeated until it changes nothing. Each pass only adds knowledge.
    fn analyse_loop_body(&mut self, f: impl Fn(&mut Self)) {
        loop {
            let before = self.slots.snapshot();
            self.analyse_repeated(&f);
            if self.slots.snapshot() == before || self.nodes >= MAX_NODES {
                return;
            }
        }
    }

    /// Analyses code that may run several times in a step.
    fn analyse_repeated(&mut self, f: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.repeated, true);
        f(self);
        self.repeated = outer;
    }

    /// Analyses one statement in its context of loops and calls.
    fn analyse_stmt(&mut self, stmt: &Stmt) {
        if !self.count_node() {
            return;
        }
        match stmt {
            Stmt::Line(line) => self.line = *line,
            Stmt::Note(_) => {}
            Stmt::Cover(_) => self.loops.iter_mut().for_each(|l| l.has_cover = true),
            Stmt::Assign(to, e) => self.analyse_assignment(to, e),
            Stmt::Clear(to) => self.analyse_clear(to),
            Stmt::Undefine(to) => self.record_store_of(to, Some(constant(UNDEFINE))),
            Stmt::Let(id, e) => {
                self.begin_lifetime(*id);
                match e {
                    Some(e) => self.analyse_assignment(&(*id).into(), e),
                    None => self.record_store_of(&(*id).into(), None),
                }
            }
            Stmt::Alias(id, place, body) => {
                self.bind_alias(*id, place);
                self.analyse_block(body);
            }
            Stmt::If(condition, then, otherwise) => self.analyse_if(condition, then, otherwise),
            Stmt::For(id, body) => {
                self.analyse_loop(*id, |w| w.analyse_loop_body(|w| w.analyse_block(body)));
            }
            Stmt::ForSteps(id, steps, body) => {
                self.analyse_steps(steps);
                self.begin_lifetime(*id);
                self.analyse_loop_body(|w| w.analyse_block(body));
            }
            Stmt::While(condition, body, _) => {
                self.record_possible_failure();
                self.analyse_loop_body(|w| {
                    w.analyse_expr(condition);
                    w.analyse_block(body);
                });
            }
            Stmt::Switch(subject, cases, otherwise) => {
                self.analyse_expr(subject);
                self.analyse_cases(cases, otherwise);
            }
            Stmt::Return(e) => self.analyse_return(e.as_ref()),
            Stmt::Call(id, arguments) => self.analyse_call(*id, arguments),
            Stmt::Assume(e) => {
                self.analyse_expr(e);
                self.loops.iter_mut().for_each(|l| l.has_assume = true);
            }
            Stmt::Insert(to, e) => {
                self.record_possible_failure();
                self.analyse_expr(e);
                self.record_access(to, Effect::Insert);
                self.record_insertion(to);
            }
            Stmt::Remove(to, e) => {
                self.record_possible_failure();
                if !self.is_slot_of(e, to) {
                    self.analyse_expr(e);
                }
                self.record_access(to, Effect::Write);
                self.record_removal(to, self.repeated);
            }
            Stmt::RemoveWhere(id, to, claim) => self.analyse_remove_where(*id, to, claim),
            Stmt::Error(_) => self.record_possible_failure(),
            Stmt::Assert(_, e) => {
                self.record_possible_failure();
                self.analyse_expr(e);
            }
        }
    }

    /// Analyses a choice between two blocks.
    fn analyse_if(&mut self, condition: &Expr, then: &[Stmt], otherwise: &[Stmt]) {
        self.analyse_expr(condition);
        let removals = self.slots.removals();
        self.with_condition(condition, true, |w| w.analyse_block(then));
        let removals = self.slots.replace_removals(removals);
        self.with_condition(condition, false, |w| w.analyse_block(otherwise));
        self.slots.merge_removals(removals);
    }

    /// Analyses the cases of a selection, of which one runs.
    fn analyse_cases(&mut self, cases: &[(Vec<Expr>, Vec<Stmt>)], otherwise: &[Stmt]) {
        let values = cases.iter().flat_map(|(values, _)| values);
        values.for_each(|v| self.analyse_expr(v));
        let removals = self.slots.removals();
        self.analyse_block(otherwise);
        for (_, body) in cases {
            let other_cases = self.slots.replace_removals(removals.clone());
            self.analyse_block(body);
            self.slots.merge_removals(other_cases);
        }
    }

    /// Analyses an assignment of a type's first value.
    fn analyse_clear(&mut self, to: &Place) {
        let mut sets = Vec::new();
        scalarsets_in_first_value(self.model, self.model.type_of_place(to), &mut sets);
        if !sets.is_empty() {
            let reason = format!("`clear {}` chooses a first value", self.model.spell(to));
            self.report(sets, reason, AsymmetryLocation::Clear(self.line));
        }
        self.record_store_of(to, Some(constant("clear")));
    }

    /// Analyses a return, which ends the loops of the current function.
    fn analyse_return(&mut self, e: Option<&Expr>) {
        let symbolic = match e {
            Some(e) => {
                self.analyse_expr(e);
                self.symbolic_value(e)
            }
            None => Some(constant("")),
        };
        let depth = self.calls.len();
        let current_loops = self.loops.iter_mut().filter(|l| l.call_depth == depth);
        current_loops.for_each(|l| l.returns.push(symbolic.clone()));
    }

    /// Analyses the removal of all elements that satisfy a claim.
    fn analyse_remove_where(&mut self, id: VariableId, to: &Place, claim: &Expr) {
        // The removal of an element may depend on earlier removals, and slots are sorted by value.
        let resolved = self.resolve(to);
        self.open_loop(id);
        self.bind_slot_number(id, to);
        self.analyse_expr(claim);
        let Some(inner_loop) = self.loops.pop() else {
            return;
        };
        let is_own_element = |a: &Access| match a.resolved.path.get(resolved.path.len()) {
            Some(PathStep::Index(Some(symbolic))) => *symbolic == SymbolicValue::of(id),
            _ => false,
        };
        let depends_on_others =
            |a: &Access| self.may_overlap(&a.resolved, &resolved) && !is_own_element(a);
        let depends_on_others = inner_loop.accesses.iter().any(depends_on_others);
        let sets = self.sets_of_element_order(to);
        if depends_on_others && !sets.is_empty() {
            let name = self.model.spell(to);
            let reason =
                format!("the element removed from `{name}` depends on the remaining elements");
            self.report(sets.clone(), reason, AsymmetryLocation::Loop(id));
        }
        self.report_claim_effects(&inner_loop, sets);
        self.merge_inner_loop(inner_loop);
        self.record_access(to, Effect::Write);
        self.record_removal(to, true);
    }

    /// Records an asymmetric use of scalarsets. One with this location and reason may be known for others.
    fn report(&mut self, sets: Vec<TypeId>, reason: String, location: AsymmetryLocation) {
        let known = self.reports.entry((location, reason.clone()));
        let known = known.or_insert(AsymmetricUse {
            sets: Vec::new(),
            reason,
            location,
        });
        // Two rules of one line may clear variables of one name and of different scalarsets.
        for set in sets {
            if !known.sets.contains(&set) {
                known.sets.push(set);
            }
        }
    }

    /// Records that the current statement can violate a check.
    fn record_possible_failure(&mut self) {
        self.loops.iter_mut().for_each(|l| l.can_fail = true);
    }

    /// Records that a variable's lifetime begins.
    fn begin_lifetime(&mut self, id: VariableId) {
        self.loops
            .iter_mut()
            .for_each(|l| l.local_variables.push(id));
    }

    /// Begins the analysis of a loop that binds `variable`.
    fn open_loop(&mut self, variable: VariableId) {
        self.begin_lifetime(variable);
        self.loops.push(Loop {
            variable,
            call_depth: self.calls.len(),
            accesses: Vec::new(),
            local_variables: vec![variable],
            returns: Vec::new(),
            other_reason: None,
            has_assume: false,
            can_fail: false,
            has_cover: false,
            is_recursive: false,
        });
    }

    /// Adds the effects of an inner loop to the loops around it.
    fn merge_inner_loop(&mut self, inner: Loop) {
        for outer in &mut self.loops {
            outer.has_assume |= inner.has_assume;
            outer.can_fail |= inner.can_fail;
            outer.has_cover |= inner.has_cover;
        }
    }

    /// Analyses a quantified expression over every value of a type, or every element of a multiset; `sets` are its
    /// scalarsets.
    fn analyse_claim(&mut self, id: VariableId, sets: Vec<TypeId>, condition: &Expr) {
        if sets.is_empty() {
            self.begin_lifetime(id);
            return self.analyse_repeated(|w| w.analyse_expr(condition));
        }
        self.open_loop(id);
        self.analyse_repeated(|w| w.analyse_expr(condition));
        if let Some(inner_loop) = self.loops.pop() {
            self.report_claim_effects(&inner_loop, sets);
            self.merge_inner_loop(inner_loop);
        }
    }

    /// Reports a quantified expression with side effects: the values for which it is evaluated depend on the order.
    fn report_claim_effects(&mut self, inner_loop: &Loop, sets: Vec<TypeId>) {
        if sets.is_empty() {
            return;
        }
        let changes = |a: &&Access| {
            a.effect != Effect::Read && !inner_loop.local_variables.contains(&a.resolved.root)
        };
        let reason = match inner_loop.accesses.iter().find(changes) {
            Some(access) => format!("it changes `{}`", self.spell_resolved(&access.resolved)),
            None if inner_loop.is_recursive => "it calls its own function".into(),
            None if inner_loop.has_assume => "it has an `assume`".into(),
            None if inner_loop.has_cover => "it has a `cover`".into(),
            None => return,
        };
        self.report(sets, reason, AsymmetryLocation::Claim(inner_loop.variable));
    }

    /// Analyses a loop over the values of a type.
    fn analyse_loop(&mut self, id: VariableId, body: impl FnOnce(&mut Self)) {
        let mut sets = Vec::new();
        scalarsets_in(self.model, self.model.variable(id).ty, &mut sets);
        if sets.is_empty() {
            self.begin_lifetime(id);
            return body(self);
        }
        self.open_loop(id);
        body(self);
        let Some(inner_loop) = self.loops.pop() else {
            return;
        };
        let (places, dependence) = match self.order_verdict(&inner_loop) {
            OrderVerdict::OrderDependent(reason) => {
                self.report(sets, reason, AsymmetryLocation::Loop(id));
                (Vec::new(), None)
            }
            OrderVerdict::Undecided(dependence) if !self.is_testable(&sets, dependence.trigger) => {
                self.report(sets, dependence.reason, AsymmetryLocation::Loop(id));
                (Vec::new(), None)
            }
            OrderVerdict::Undecided(dependence) => (Vec::new(), Some(dependence)),
            OrderVerdict::Commutes(groups) => (groups, None),
        };
        let check = self.loop_checks.entry(id).or_default();
        check.merge(places, dependence);
        self.merge_inner_loop(inner_loop);
    }

    /// True if a search can test all orders of a loop over these scalarsets, in each step in which the order may matter.
    fn is_testable(&self, sets: &[TypeId], trigger: OrderTrigger) -> bool {
        let size = |set: &TypeId| match self.model.ty(*set) {
            Type::Scalarset(size) => u64::from(*size),
            _ => 1,
        };
        let mut sizes = sets.iter().flat_map(|set| 1..=size(set));
        let orders = sizes.try_fold(1u64, u64::checked_mul);
        // A failure occurs once. A condition is evaluated in every state, which takes too long in every order.
        trigger == OrderTrigger::ReturnOrFailure
            || !self.in_condition && orders.is_some_and(|orders| orders <= MAX_TESTED_ORDERS)
    }

    /// Spells a place for messages, with `[..]` for each index.
    fn spell_resolved(&self, resolved: &ResolvedPlace) -> String {
        let mut name = self.model.variable(resolved.root).name.clone();
        for step in &resolved.path {
            match step {
                PathStep::Field(field) => name = format!("{name}.{field}"),
                PathStep::Index(_) => name += "[..]",
            }
        }
        name
    }

    /// Records an access for all loops around it.
    fn record_access(&mut self, place: &Place, effect: Effect) {
        self.analyse_indices(place);
        let resolved = self.resolve(place);
        self.report_stale_slots(&resolved);
        for outer in &mut self.loops {
            outer.accesses.push(Access {
                resolved: resolved.clone(),
                place: place.clone(),
                effect: effect.clone(),
                call_depth: self.calls.len(),
                distinct_values: self.inequalities.clone(),
            });
        }
    }

    /// Analyses the indices of a place.
    fn analyse_indices(&mut self, place: &Place) {
        for (depth, step) in place.path.iter().enumerate() {
            if let Step::Index(e) = step {
                let is_variable = |symbolic: &SymbolicValue| match symbolic.variables[..] {
                    [id] => *symbolic == SymbolicValue::of(id),
                    _ => false,
                };
                if !self.symbolic_value(e).is_some_and(|symbolic| {
                    is_variable(&symbolic) && self.is_unmodifiable(&symbolic)
                }) {
                    self.record_possible_failure();
                }
                if !self.is_slot_in(e, place, depth) {
                    self.analyse_expr(e);
                }
            }
        }
    }

    /// Brings an alias into scope.
    fn bind_alias(&mut self, id: VariableId, place: &Place) {
        self.report_number_use(place);
        self.analyse_indices(place);
        // Guard and body of a rule bind its aliases to the same places.
        self.places[id.index()] = Some(self.resolve_alias(place, Some(id), 0));
        self.begin_lifetime(id);
    }

    /// Records a store of a value; `None` if the value is unknown.
    fn record_store_of(&mut self, to: &Place, value: Option<SymbolicValue>) {
        self.record_access(to, value.map_or(Effect::Write, Effect::StoreUniform));
        self.record_store(to);
    }

    /// Analyses an assignment. In a loop, sums and Boolean accumulations of the assigned place are distinguished from
    /// other stores.
    fn analyse_assignment(&mut self, to: &Place, e: &Expr) {
        if self.loops.is_empty() {
            self.analyse_indices(to);
            self.analyse_expr(e);
            let resolved = self.resolve(to);
            self.report_stale_slots(&resolved);
            return self.record_store(to);
        }
        self.record_possible_failure();
        let is_same_place = |w: &Self, e: &Expr| match e.without_line() {
            Expr::Read(place) | Expr::Peek(place) => w.resolve(place) == w.resolve(to),
            _ => false,
        };
        if let Expr::Binary(op, a, b) = e.without_line() {
            use Operator::*;
            let (first, second) = (is_same_place(self, a), is_same_place(self, b));
            let other_operand = if first { b } else { a };
            let sign = sign(self.model, other_operand);
            let effect = match (op, first, second) {
                (Add, true, false) | (Add, false, true) => {
                    sign.map(|is_increment| Effect::Add { is_increment })
                }
                (Subtract, true, false) => sign.map(|is_increment| Effect::Add {
                    is_increment: !is_increment,
                }),
                // An operand that is not always evaluated must not be able to fail.
                (And | Or, true, false) if !self.may_fail(other_operand) => {
                    Some(Effect::Accumulate(*op))
                }
                _ => None,
            };
            if let Some(effect) = effect {
                self.analyse_expr(other_operand);
                self.record_possible_failure();
                return self.record_access(to, effect);
            }
        }
        self.analyse_expr(e);
        let symbolic = self.symbolic_value(e);
        self.record_store_of(to, symbolic);
    }

    /// True if the evaluation of an expression may violate a check.
    fn may_fail(&mut self, e: &Expr) -> bool {
        self.open_loop(VariableId(u32::MAX));
        self.analyse_expr(e);
        self.loops
            .pop()
            .is_none_or(|inner_loop| inner_loop.can_fail)
    }

    /// Analyses code under the assumption that a condition has the truth value `holds`.
    fn with_condition(&mut self, condition: &Expr, holds: bool, f: impl FnOnce(&mut Self)) {
        let inequality_count = self.inequalities.len();
        self.record_condition(condition, holds);
        f(self);
        self.inequalities.truncate(inequality_count);
    }

    /// Records the inequalities that follow if a condition has the truth value `holds`.
    fn record_condition(&mut self, condition: &Expr, holds: bool) {
        use Operator::*;
        match (condition.without_line(), holds) {
            (Expr::Not(a), _) => self.record_condition(a, !holds),
            (Expr::Binary(And, a, b), true) | (Expr::Binary(Or, a, b), false) => {
                self.record_condition(a, holds);
                self.record_condition(b, holds);
            }
            (Expr::Binary(Implies, a, b), false) => {
                self.record_condition(a, true);
                self.record_condition(b, false);
            }
            (Expr::Binary(NotEqual, a, b), true) | (Expr::Binary(Equal, a, b), false) => {
                if let (Some(a), Some(b)) = (self.symbolic_value(a), self.symbolic_value(b)) {
                    self.inequalities.push((a, b));
                }
            }
            _ => {}
        }
    }

    /// Analyses the bounds of an arithmetic sequence.
    fn analyse_steps(&mut self, steps: &Steps) {
        self.record_possible_failure();
        let parts = [&steps.from, &steps.to, &steps.by];
        parts.into_iter().for_each(|e| self.analyse_expr(e));
    }

    /// Analyses an expression and everything in it.
    fn analyse_expr(&mut self, e: &Expr) {
        use Operator::*;
        if !self.count_node() {
            return;
        }
        match e {
            Expr::Int(_) | Expr::Bool(_) | Expr::Label(..) | Expr::Undefined(_) => {}
            Expr::Read(place) => {
                self.report_number_use(place);
                if self.model.undefined && self.model.variable(place.variable).role != Role::Bound {
                    self.record_possible_failure();
                }
                self.record_access(place, Effect::Read);
            }
            Expr::Peek(place) | Expr::IsUndefined(place) => {
                self.report_number_use(place);
                self.record_access(place, Effect::Read);
            }
            Expr::Line(_, a) | Expr::Not(a) | Expr::IsMember(a, _) => self.analyse_expr(a),
            Expr::Table(_, a) | Expr::Negate(a) | Expr::Convert(_, a) => {
                self.record_possible_failure();
                self.analyse_expr(a);
            }
            Expr::Binary(Equal | NotEqual, a, b) if self.are_slots_of_one(a, b) => {}
            Expr::Binary(op, a, b) => {
                if op.is_arithmetic() {
                    self.record_possible_failure();
                }
                self.analyse_expr(a);
                match op {
                    And | Implies => self.with_condition(a, true, |w| w.analyse_expr(b)),
                    Or => self.with_condition(a, false, |w| w.analyse_expr(b)),
                    _ => self.analyse_expr(b),
                }
            }
            Expr::If(c, a, b) => {
                self.analyse_expr(c);
                self.with_condition(c, true, |w| w.analyse_expr(a));
                self.with_condition(c, false, |w| w.analyse_expr(b));
            }
            Expr::Forall(id, a) | Expr::Exists(id, a) => {
                let mut sets = Vec::new();
                scalarsets_in(self.model, self.model.variable(*id).ty, &mut sets);
                self.analyse_claim(*id, sets, a);
            }
            Expr::ForallSteps(id, steps, a) | Expr::ExistsSteps(id, steps, a) => {
                self.analyse_steps(steps);
                self.begin_lifetime(*id);
                self.analyse_repeated(|w| w.analyse_expr(a));
            }
            Expr::Call(id, arguments) => self.analyse_call(*id, arguments),
            Expr::Alias(id, place, a) => {
                self.bind_alias(*id, place);
                self.analyse_expr(a);
            }
            Expr::Let(id, value, a) => {
                self.begin_lifetime(*id);
                self.analyse_expr(value);
                self.analyse_expr(a);
            }
            Expr::Present(place, a) => {
                // The lowering of `choose` creates slot numbers in this form.
                match a.without_line() {
                    Expr::Read(slot) if slot.path.is_empty() => {
                        self.bind_slot_number(slot.variable, place)
                    }
                    a => self.analyse_expr(a),
                }
                self.record_access(place, Effect::Read);
            }
            Expr::Count(id, place, a) => {
                self.record_access(place, Effect::Read);
                self.bind_slot_number(*id, place);
                let sets = self.sets_of_element_order(place);
                self.analyse_claim(*id, sets, a);
            }
        }
    }

    /// Analyses a call with its arguments. A recursive call is not entered; it marks the loops that contain it.
    fn analyse_call(&mut self, id: FunctionId, arguments: &[Argument]) {
        let model = self.model;
        let function = &model.functions[id.index()];
        let active_call = self.calls.iter().position(|&call| call == id);
        // Each parameter with the place or the symbolic value of its argument.
        let mut bound = Vec::new();
        for (&parameter, argument) in function.parameters.iter().zip(arguments) {
            bound.push(match argument {
                Argument::Value(e) => {
                    self.record_possible_failure();
                    self.analyse_expr(e);
                    (parameter, None, self.symbolic_value(e))
                }
                Argument::Place(place) => {
                    self.report_number_use(place);
                    self.analyse_indices(place);
                    self.bindings += 1;
                    let resolved = self.resolve_alias(place, Some(parameter), self.bindings);
                    (parameter, Some(resolved), None)
                }
            });
        }
        if let Some(first) = active_call {
            // The effects of a recursive call are recorded at the outermost call.
            for outer in &mut self.loops {
                outer.is_recursive |= first < outer.call_depth;
                let reason = || format!("`{}` calls itself", function.name);
                outer.other_reason.get_or_insert_with(reason);
            }
            return;
        }
        let mut assigned = Vec::new();
        crate::visit::block(&function.body, &mut |node| {
            if let crate::visit::Node::Target(place) = node {
                assigned.push(place.variable);
            }
        });
        let recursive = crate::visit::called_functions(model, &function.body).contains(&id);
        for (parameter, place, value) in bound {
            if place.is_none() || !recursive {
                self.begin_lifetime(parameter);
            }
            let is_never_assigned = !recursive && !assigned.contains(&parameter);
            self.places[parameter.index()] = place.filter(|_| !recursive);
            self.values[parameter.index()] =
                value.filter(|symbolic| is_never_assigned && self.is_unmodifiable(symbolic));
        }
        // Inequalities of the caller's variables hold here too, but a return does not leave the caller's loops.
        self.calls.push(id);
        match recursive {
            // A nested call runs the body again.
            true => self.analyse_loop_body(|w| w.analyse_block(&function.body)),
            false => self.analyse_block(&function.body),
        }
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
