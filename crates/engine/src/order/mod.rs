//! What in a model tells the values of a scalarset apart, so that permuting them does not take runs to runs.
//!
//! A loop over a scalarset runs in some order, but its values have none. Such a loop is harmless if its rounds can be
//! exchanged: if no round writes what another reads or writes, but for elements that each round has for itself, for
//! the same value stored by all, and for sums and the like. Whatever is not seen to be so is found here, and
//! [`crate::symmetry`] leaves those scalarsets alone. `clear` chooses a first value, and is found as well.
//! A claim about all values, or about all elements of a multiset, must change nothing at all; and the slots of
//! a multiset are numbered in an order of their elements, so these numbers must not show.
//!
//! Functions are looked at where they are called, with what they are given.

mod judge;
mod keys;
mod slots;

use crate::model::*;
use judge::Judgement;
use keys::{constant, At, Key, Spot, UNDEFINE};
use slots::Slots;
use std::collections::BTreeMap;

/// Nodes that are looked at before we give up and call nothing symmetric: calls of calls grow fast.
const MOST_NODES: usize = 1 << 20;

/// Something that tells values of scalarsets apart.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// Whose values.
    pub sets: Vec<TypeId>,
    /// Why, as a sentence without its end.
    pub why: String,
    /// Where.
    pub place: Told,
}

/// Where values are told apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Told {
    /// By the loop, or what goes through a multiset, that binds this variable.
    Loop(VariableId),
    /// By the claim about all values, or elements of a multiset, that binds this variable.
    Claim(VariableId),
    /// By the number of a slot, as this variable.
    Slot(VariableId),
    /// By a `clear` on this line of the text; 0 if there is no text.
    Clear(u32),
    /// By the model as a whole.
    Model,
}

/// The scalarsets whose values are told apart, sorted.
pub(crate) fn told_apart(model: &Model) -> Vec<TypeId> {
    let mut sets: Vec<TypeId> = findings(model).0.into_iter().flat_map(|f| f.sets).collect();
    sets.sort_unstable();
    sets.dedup();
    sets
}

/// Of loops, by the variables they bind: places that must get the same value in all rounds, each with all the ways in
/// which the loop names it. If one does not, the order of the rounds matters.
pub type Settled = BTreeMap<VariableId, Vec<Vec<Place>>>;

/// Everything in a valid model that tells values of scalarsets apart, and what has to be watched as loops run.
pub fn findings(model: &Model) -> (Vec<Finding>, Settled) {
    let all: Vec<TypeId> = (0..model.types.len() as u32).map(TypeId).collect();
    let all: Vec<TypeId> = all.into_iter().filter(|&t| is_set(model, t)).collect();
    if all.is_empty() {
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
        found: BTreeMap::new(),
        settled: Settled::new(),
    };
    // Start states need not be symmetric: each is a state like any other, and permutations take what follows from it
    // to what follows from its images.
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
        walk.slot_shows(id, "it is asked for each slot apart");
    }
    let mut found: Vec<Finding> = walk.found.into_values().collect();
    let mut whole = |sets: Vec<TypeId>, why: &str| {
        if !sets.is_empty() {
            let (why, place) = (why.into(), Told::Model);
            found.push(Finding { sets, why, place });
        }
    };
    if !model.undefined {
        let mut sets = Vec::new();
        let begin = |v: &&Variable| matches!(v.role, Role::State | Role::Local);
        (model.variables.iter().filter(begin)).for_each(|v| sets_in_first(model, v.ty, &mut sets));
        whole(sets, "variables begin with a first value");
    }
    if walk.nodes >= MOST_NODES {
        let why = "the model is too large to see whether its loops depend on an order";
        whole(all, why);
    }
    walk.settled.retain(|_, groups| !groups.is_empty());
    (found, walk.settled)
}

fn is_set(model: &Model, ty: TypeId) -> bool {
    matches!(model.ty(ty), Type::Scalarset(2..))
}

/// The scalarsets whose values are among those of a type, or of parts of it.
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

/// The scalarsets that the first value of a type has values of. That of a multiset is empty.
pub fn sets_in_first(model: &Model, ty: TypeId, sets: &mut Vec<TypeId>) {
    match model.ty(ty) {
        Type::Union(members) => sets_in_first(model, members[0], sets),
        Type::Array { element, .. } => sets_in_first(model, *element, sets),
        Type::Record(fields) => (fields.iter()).for_each(|f| sets_in_first(model, f.1, sets)),
        Type::Multiset { .. } => {}
        _ => sets_in(model, ty, sets),
    }
}

/// What is done to a place.
#[derive(Clone, PartialEq, Debug)]
enum Deed {
    Read,
    /// Stores what the rounds may agree on.
    Same(Key),
    /// Stores something else.
    Write,
    /// Adds what has a sign; in whichever order, it leaves its range or does not.
    Count {
        up: bool,
    },
    /// Joins a truth value to it.
    Join(Operator),
    /// Puts an element into a multiset.
    Insert,
}

#[derive(Clone, Debug)]
struct Access {
    spot: Spot,
    /// How the text names it.
    place: Place,
    deed: Deed,
    /// How many calls it is made in.
    calls: usize,
    /// Values that differ where this is done.
    apart: Vec<(Key, Key)>,
}

/// A loop over a scalarset that is being looked at.
struct Loop {
    variable: VariableId,
    /// How many calls it stands in.
    calls: usize,
    accesses: Vec<Access>,
    /// What begins to live within a round.
    inside: Vec<VariableId>,
    /// What is returned from it.
    returns: Vec<Option<Key>>,
    /// What else makes it depend on an order.
    why: Option<String>,
    assumes: bool,
    can_fail: bool,
    /// Whether it meets what is to be covered.
    covers: bool,
    /// Whether it calls a function that it stands in.
    again: bool,
}

struct Walk<'a> {
    model: &'a Model,
    /// What aliases stand for.
    places: Vec<Option<Spot>>,
    /// What parameters that are not assigned are.
    values: Vec<Option<Key>>,
    loops: Vec<Loop>,
    slots: Slots,
    facts: Vec<(Key, Key)>,
    /// The line of the text of the current statement.
    line: u32,
    calls: Vec<FunctionId>,
    nodes: usize,
    found: BTreeMap<(Told, String), Finding>,
    settled: Settled,
}

impl Walk<'_> {
    /// Whether to go on.
    fn count(&mut self) -> bool {
        self.nodes += 1;
        self.nodes < MOST_NODES
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
                    let why = format!("`clear {}` chooses a first value", self.model.spell(to));
                    self.find(sets, why, Told::Clear(self.line));
                }
                self.store(to, Some(constant("clear")));
            }
            Stmt::Undefine(to) => self.store(to, Some(constant(UNDEFINE))),
            Stmt::Let(id, e) => {
                self.begin(*id);
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
                self.given(condition, true, |w| w.block(then));
                self.given(condition, false, |w| w.block(otherwise));
            }
            Stmt::For(id, body) => {
                self.before_rounds(body);
                self.each(*id, |w| w.block(body));
            }
            Stmt::ForSteps(id, steps, body) => {
                self.steps(steps);
                self.begin(*id);
                self.before_rounds(body);
                self.block(body);
            }
            Stmt::While(condition, body, _) => {
                self.can_fail();
                self.before_rounds(body);
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
                let here = self.loops.iter_mut().filter(|l| l.calls == depth);
                here.for_each(|l| l.returns.push(key.clone()));
            }
            Stmt::Call(id, arguments) => self.call(*id, arguments),
            Stmt::Assume(e) => {
                self.expr(e);
                self.loops.iter_mut().for_each(|l| l.assumes = true);
            }
            Stmt::Insert(to, e) => {
                self.can_fail();
                self.expr(e);
                self.access(to, Deed::Insert);
                self.filled(to);
            }
            Stmt::Remove(to, e) => {
                self.can_fail();
                if !self.is_slot_of(e, to) {
                    self.expr(e);
                }
                self.access(to, Deed::Write);
                self.freed(to);
            }
            Stmt::RemoveWhere(id, to, claim) => {
                // Whether an element goes may depend on those that went before; and its slots are sorted by value.
                let spot = self.spot(to);
                self.open(*id);
                self.number(*id, to);
                self.expr(claim);
                let Some(round) = self.loops.pop() else {
                    return;
                };
                let own = |a: &Access| match a.spot.path.get(spot.path.len()) {
                    Some(At::Index(Some(key))) => *key == Key::of(*id),
                    _ => false,
                };
                let again = |a: &Access| self.overlap(&a.spot, &spot) && !own(a);
                let again = round.accesses.iter().any(again);
                let mut sets = Vec::new();
                sets_in(self.model, self.model.type_of_place(to), &mut sets);
                if again && !sets.is_empty() {
                    let name = self.model.spell(to);
                    let why = format!("what goes from `{name}` depends on what is left in it");
                    self.find(sets.clone(), why, Told::Loop(*id));
                }
                self.harmless(&round, sets);
                self.hand_on(round);
                self.access(to, Deed::Write);
                self.freed(to);
            }
            Stmt::Error(_) => self.can_fail(),
            Stmt::Assert(_, e) => {
                self.can_fail();
                self.expr(e);
            }
        }
    }

    fn find(&mut self, sets: Vec<TypeId>, why: String, place: Told) {
        let found = Finding {
            sets,
            why: why.clone(),
            place,
        };
        self.found.entry((place, why)).or_insert(found);
    }

    fn can_fail(&mut self) {
        self.loops.iter_mut().for_each(|l| l.can_fail = true);
    }

    /// A variable begins to live.
    fn begin(&mut self, id: VariableId) {
        self.loops.iter_mut().for_each(|l| l.inside.push(id));
    }

    fn open(&mut self, variable: VariableId) {
        self.begin(variable);
        self.loops.push(Loop {
            variable,
            calls: self.calls.len(),
            accesses: Vec::new(),
            inside: vec![variable],
            returns: Vec::new(),
            why: None,
            assumes: false,
            can_fail: false,
            covers: false,
            again: false,
        });
    }

    /// Loops around a loop do what it does.
    fn hand_on(&mut self, inner: Loop) {
        for outer in &mut self.loops {
            outer.assumes |= inner.assumes;
            outer.can_fail |= inner.can_fail;
            outer.covers |= inner.covers;
        }
    }

    /// A claim about every value of a type, or every element of a multiset, with these scalarsets in it.
    fn claim(&mut self, id: VariableId, sets: Vec<TypeId>, claim: &Expr) {
        if sets.is_empty() {
            self.begin(id);
            return self.expr(claim);
        }
        self.open(id);
        self.expr(claim);
        if let Some(round) = self.loops.pop() {
            self.harmless(&round, sets);
            self.hand_on(round);
        }
    }

    /// Finds a claim that does more than to look: which values it is looked at for depends on those before.
    fn harmless(&mut self, round: &Loop, sets: Vec<TypeId>) {
        if sets.is_empty() {
            return;
        }
        let changes = |a: &&Access| a.deed != Deed::Read && !round.inside.contains(&a.spot.root);
        let why = match round.accesses.iter().find(changes) {
            Some(access) => format!("it changes `{}`", self.name(&access.spot)),
            None if round.again => "it calls the function that it stands in".into(),
            None if round.assumes => "it has an `assume`".into(),
            None if round.covers => "it has a `cover`".into(),
            None => return,
        };
        self.find(sets, why, Told::Claim(round.variable));
    }

    /// A loop over a type.
    fn each(&mut self, id: VariableId, body: impl FnOnce(&mut Self)) {
        let mut sets = Vec::new();
        sets_in(self.model, self.model.variable(id).ty, &mut sets);
        if sets.is_empty() {
            self.begin(id);
            return body(self);
        }
        self.open(id);
        body(self);
        let Some(round) = self.loops.pop() else {
            return;
        };
        match self.judge(&round) {
            Judgement::Bad(why) => self.find(sets, why, Told::Loop(id)),
            Judgement::Good(groups) => {
                let known = self.settled.entry(id).or_default();
                known.extend(groups);
            }
        }
        self.hand_on(round);
    }

    fn name(&self, spot: &Spot) -> String {
        let mut name = self.model.variable(spot.root).name.clone();
        for at in &spot.path {
            match at {
                At::Field(field) => name = format!("{name}.{field}"),
                At::Index(_) => name += "[..]",
            }
        }
        name
    }

    fn access(&mut self, place: &Place, deed: Deed) {
        self.indices(place);
        let spot = self.spot(place);
        self.stale_slot_shows(&spot);
        for outer in &mut self.loops {
            outer.accesses.push(Access {
                spot: spot.clone(),
                place: place.clone(),
                deed: deed.clone(),
                calls: self.calls.len(),
                apart: self.facts.clone(),
            });
        }
    }

    /// What indices of a place read.
    fn indices(&mut self, place: &Place) {
        for (at, step) in place.path.iter().enumerate() {
            if let Step::Index(e) = step {
                let name = |key: &Key| matches!(key.names[..], [one] if *key == Key::of(one));
                if !self
                    .key(e)
                    .is_some_and(|key| name(&key) && self.lasts(&key))
                {
                    self.can_fail();
                }
                if !self.is_slot_in(e, place, at) {
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
        self.access(to, value.map_or(Deed::Write, Deed::Same));
        self.replaced(to);
    }

    fn assign(&mut self, to: &Place, e: &Expr) {
        if self.loops.is_empty() {
            self.indices(to);
            self.expr(e);
            return self.replaced(to);
        }
        self.can_fail();
        let own = |w: &Self, e: &Expr| match e.without_line() {
            Expr::Read(place) | Expr::Peek(place) => w.spot(place) == w.spot(to),
            _ => false,
        };
        if let Expr::Binary(op, a, b) = e.without_line() {
            use Operator::*;
            let (first, second) = (own(self, a), own(self, b));
            let rest = if first { b } else { a };
            let sign = sign(self.model, rest);
            let deed = match (op, first, second) {
                (Add, true, false) | (Add, false, true) => sign.map(|up| Deed::Count { up }),
                (Subtract, true, false) => sign.map(|up| Deed::Count { up: !up }),
                // What is not always evaluated must not be able to fail.
                (And | Or, true, false) if !self.fails(rest) => Some(Deed::Join(*op)),
                _ => None,
            };
            if let Some(deed) = deed {
                self.expr(rest);
                self.can_fail();
                return self.access(to, deed);
            }
        }
        self.expr(e);
        let key = self.key(e);
        self.store(to, key);
    }

    /// Whether evaluating something may be an error of the model.
    fn fails(&mut self, e: &Expr) -> bool {
        self.open(VariableId(u32::MAX));
        self.expr(e);
        self.loops.pop().is_none_or(|own| own.can_fail)
    }

    /// Does something where a condition is met, or is not.
    fn given(&mut self, condition: &Expr, met: bool, f: impl FnOnce(&mut Self)) {
        let before = self.facts.len();
        self.learn(condition, met);
        f(self);
        self.facts.truncate(before);
    }

    fn learn(&mut self, condition: &Expr, met: bool) {
        use Operator::*;
        match (condition.without_line(), met) {
            (Expr::Not(a), _) => self.learn(a, !met),
            (Expr::Binary(And, a, b), true) | (Expr::Binary(Or, a, b), false) => {
                self.learn(a, met);
                self.learn(b, met);
            }
            (Expr::Binary(Implies, a, b), false) => {
                self.learn(a, true);
                self.learn(b, false);
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

    /// What an expression reads.
    fn expr(&mut self, e: &Expr) {
        use Operator::*;
        if !self.count() {
            return;
        }
        match e {
            Expr::Int(_) | Expr::Bool(_) | Expr::Label(..) | Expr::Undefined(_) => {}
            Expr::Read(place) => {
                self.slot_shows(place.variable, "it is used as a number");
                if self.model.undefined && self.model.variable(place.variable).role != Role::Bound {
                    self.can_fail();
                }
                self.access(place, Deed::Read);
            }
            Expr::Peek(place) | Expr::IsUndefined(place) => self.access(place, Deed::Read),
            Expr::Line(_, a) | Expr::Not(a) | Expr::IsMember(a, _) => self.expr(a),
            Expr::Table(_, a) | Expr::Negate(a) | Expr::Convert(_, a) => {
                self.can_fail();
                self.expr(a);
            }
            Expr::Binary(Equal | NotEqual, a, b) if self.are_slots_of_one(a, b) => {}
            Expr::Binary(op, a, b) => {
                if op.arithmetic() {
                    self.can_fail();
                }
                self.expr(a);
                match op {
                    And | Implies => self.given(a, true, |w| w.expr(b)),
                    Or => self.given(a, false, |w| w.expr(b)),
                    _ => self.expr(b),
                }
            }
            Expr::If(c, a, b) => {
                self.expr(c);
                self.given(c, true, |w| w.expr(a));
                self.given(c, false, |w| w.expr(b));
            }
            Expr::Forall(id, a) | Expr::Exists(id, a) => {
                let mut sets = Vec::new();
                sets_in(self.model, self.model.variable(*id).ty, &mut sets);
                self.claim(*id, sets, a);
            }
            Expr::ForallSteps(id, steps, a) | Expr::ExistsSteps(id, steps, a) => {
                self.steps(steps);
                self.begin(*id);
                self.expr(a);
            }
            Expr::Call(id, arguments) => self.call(*id, arguments),
            Expr::Alias(id, place, a) => {
                self.alias(*id, place);
                self.expr(a);
            }
            Expr::Let(id, value, a) => {
                self.begin(*id);
                self.expr(value);
                self.expr(a);
            }
            Expr::Present(place, a) => {
                // This is how the slots of a `choose` come to be.
                match a.without_line() {
                    Expr::Read(slot) if slot.path.is_empty() => self.number(slot.variable, place),
                    a => self.expr(a),
                }
                self.access(place, Deed::Read);
            }
            Expr::Count(id, place, a) => {
                self.access(place, Deed::Read);
                self.number(*id, place);
                let mut sets = Vec::new();
                sets_in(self.model, self.model.type_of_place(place), &mut sets);
                self.claim(*id, sets, a);
            }
        }
    }

    fn call(&mut self, id: FunctionId, arguments: &[Argument]) {
        let model = self.model;
        let function = &model.functions[id.index()];
        let again = self.calls.iter().position(|&call| call == id);
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
        if let Some(first) = again {
            // What it does is found where it is called first.
            for outer in &mut self.loops {
                outer.again |= first < outer.calls;
                let why = || format!("`{}` calls itself", function.name);
                outer.why.get_or_insert_with(why);
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
                self.begin(parameter);
            }
            let same = !recursive && !assigned.contains(&parameter);
            self.places[parameter.index()] = place.filter(|_| !recursive);
            self.values[parameter.index()] = value.filter(|key| same && self.lasts(key));
        }
        // What holds of the caller's names holds here too, but its loops are not left from here.
        self.calls.push(id);
        self.block(&function.body);
        self.calls.pop();
        for &parameter in &function.parameters {
            self.places[parameter.index()] = None;
            self.values[parameter.index()] = None;
        }
    }
}

/// Whether a number is never below 0; or, if so said, never above.
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
