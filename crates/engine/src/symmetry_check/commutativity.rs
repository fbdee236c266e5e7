//! Decides whether the iterations of a loop commute.

use super::loops::{Access, Effect, Loop};
use super::symbolic::{PathStep, ResolvedPlace, SymbolicValue};
use super::{AsymmetryAnalysis, OrderDependence, OrderTrigger};
use crate::model::{Place, Role, VariableId};

impl AsymmetryAnalysis<'_> {
    /// Decides whether the result of a loop may depend on the order of its iterations.
    pub(super) fn order_verdict(&self, scalarset_loop: &Loop) -> OrderVerdict {
        if let Some(reason) = &scalarset_loop.other_reason {
            return OrderVerdict::OrderDependent(reason.clone());
        }
        let shared_accesses: Vec<&Access> = (scalarset_loop.accesses.iter())
            .filter(|a| !scalarset_loop.local_variables.contains(&a.resolved.root))
            .collect();
        let has_effect = shared_accesses.iter().any(|a| a.effect != Effect::Read);
        let set = |id: VariableId| &self.model.types[self.model.variable(id).ty.index()].name;
        // Places of the stores that a run must check, each with its spellings.
        let mut uniform_stores: Vec<(&ResolvedPlace, Vec<&Place>)> = Vec::new();
        for (i, a) in shared_accesses.iter().enumerate() {
            for b in &shared_accesses[i..] {
                if a.effect == Effect::Read && b.effect == Effect::Read
                    || self.accesses_commute(a, b, scalarset_loop)
                    || !self.may_overlap(&a.resolved, &b.resolved)
                    || self.are_distinct(a, b, scalarset_loop)
                {
                    continue;
                }
                if self.is_checkable_at_run_time(a, scalarset_loop)
                    && self.is_checkable_at_run_time(b, scalarset_loop)
                    && a.resolved == b.resolved
                {
                    let known = uniform_stores.iter().position(|s| *s.0 == a.resolved);
                    let position = known.unwrap_or(uniform_stores.len());
                    if known.is_none() {
                        uniform_stores.push((&a.resolved, Vec::new()));
                    }
                    uniform_stores[position].1.extend([&a.place, &b.place]);
                    continue;
                }
                let (name, set) = (
                    self.spell_resolved(&a.resolved),
                    set(scalarset_loop.variable),
                );
                let reason = match (&a.effect, &b.effect) {
                    (Effect::Read, _) | (_, Effect::Read) => {
                        format!("its effect for one `{set}` is read for another in `{name}`")
                    }
                    _ => format!("`{name}` keeps the last stored value"),
                };
                return OrderVerdict::Undecided(OrderDependence {
                    reason,
                    trigger: OrderTrigger::EveryRun,
                });
            }
        }
        if let Some(dependence) = self.early_exit_dependence(scalarset_loop, has_effect) {
            // The stores to be checked are lost with an early exit: all orders are compared instead.
            let trigger = match uniform_stores.is_empty() {
                true => dependence.trigger,
                false => OrderTrigger::EveryRun,
            };
            return OrderVerdict::Undecided(OrderDependence {
                trigger,
                ..dependence
            });
        }
        let distinct = |(_, places): (_, Vec<&Place>)| {
            let mut distinct_places: Vec<Place> = Vec::new();
            for place in places {
                if !distinct_places.contains(place) {
                    distinct_places.push(place.clone());
                }
            }
            distinct_places
        };
        OrderVerdict::Commutes(uniform_stores.into_iter().map(distinct).collect())
    }

    /// Dependence on the order because iterations may end the loop early; `None` if there is none.
    /// `has_effect` is true if an iteration changes a place that outlives it.
    fn early_exit_dependence(
        &self,
        scalarset_loop: &Loop,
        has_effect: bool,
    ) -> Option<OrderDependence> {
        if let Some(first) = scalarset_loop.returns.first() {
            let is_same = match first {
                Some(symbolic) => {
                    self.is_loop_invariant(symbolic, scalarset_loop)
                        && scalarset_loop
                            .returns
                            .iter()
                            .all(|r| r.as_ref() == Some(symbolic))
                }
                None => false,
            };
            // An `assume` of one value comes before the return of another one, or after it.
            let has_other_event =
                scalarset_loop.can_fail || scalarset_loop.has_cover || scalarset_loop.has_assume;
            if !is_same || has_effect || has_other_event {
                return Some(OrderDependence {
                    reason: "it returns at the first value that satisfies a condition".into(),
                    trigger: match scalarset_loop.has_assume {
                        true => OrderTrigger::EveryRun,
                        false if is_same && !has_effect && !scalarset_loop.has_cover => {
                            OrderTrigger::ReturnOrFailure
                        }
                        false => OrderTrigger::EarlyExit,
                    },
                });
            }
        }
        if scalarset_loop.has_assume && (scalarset_loop.can_fail || scalarset_loop.has_cover) {
            let earlier_event = match scalarset_loop.can_fail {
                true => "it fails",
                false => "a cover is reached",
            };
            return Some(OrderDependence {
                reason: format!("an `assume` may end it before {earlier_event}, or after"),
                trigger: OrderTrigger::EveryRun,
            });
        }
        None
    }

    /// True if a run can check the stored values of an access for equality in all iterations.
    pub(super) fn is_checkable_at_run_time(&self, a: &Access, scalarset_loop: &Loop) -> bool {
        let is_loop_invariant = |step: &PathStep| match step {
            PathStep::Field(_) => true,
            PathStep::Index(symbolic) => symbolic
                .as_ref()
                .is_some_and(|symbolic| self.is_loop_invariant(symbolic, scalarset_loop)),
        };
        matches!(a.effect, Effect::StoreUniform(_) | Effect::Write)
            && a.call_depth == scalarset_loop.call_depth
            && a.resolved.path.iter().all(is_loop_invariant)
            && self
                .model
                .bounds(self.model.type_of_place(&a.place))
                .is_some()
    }

    /// True if a value is the same in all iterations, provided that the loop writes none of the variables that it
    /// reads.
    pub(super) fn is_loop_invariant(
        &self,
        symbolic: &SymbolicValue,
        scalarset_loop: &Loop,
    ) -> bool {
        !symbolic
            .variables
            .iter()
            .any(|name| scalarset_loop.local_variables.contains(name))
    }

    /// True if two accesses to one place commute.
    pub(super) fn accesses_commute(&self, a: &Access, b: &Access, scalarset_loop: &Loop) -> bool {
        match (&a.effect, &b.effect) {
            (Effect::StoreUniform(x), Effect::StoreUniform(y)) => {
                x == y && self.is_loop_invariant(x, scalarset_loop)
            }
            (Effect::Add { is_increment: x }, Effect::Add { is_increment: y }) => x == y,
            (Effect::Accumulate(x), Effect::Accumulate(y)) => x == y,
            (Effect::Insert, Effect::Insert) => true,
            _ => false,
        }
    }

    /// True if two places may overlap, in the same or in different iterations.
    pub(super) fn may_overlap(&self, a: &ResolvedPlace, b: &ResolvedPlace) -> bool {
        if a.root != b.root {
            // An alias parameter of a recursive function may refer to any place.
            let [x, y] = [a.root, b.root].map(|root| self.model.variable(root).role);
            return matches!((x, y), (Role::Alias, Role::Alias | Role::State))
                || matches!((x, y), (Role::State, Role::Alias));
        }
        let is_number = |symbolic: &SymbolicValue| {
            symbolic.variables.is_empty() && symbolic.text.starts_with('#')
        };
        a.path.iter().zip(&b.path).all(|pair| match pair {
            (PathStep::Field(x), PathStep::Field(y)) => x == y,
            (PathStep::Index(Some(x)), PathStep::Index(Some(y))) => {
                x == y || !is_number(x) || !is_number(y)
            }
            _ => true,
        })
    }

    /// True if two places are different whenever they are accessed in different iterations.
    pub(super) fn are_distinct(&self, a: &Access, b: &Access, scalarset_loop: &Loop) -> bool {
        let iteration_value = SymbolicValue::of(scalarset_loop.variable);
        let differ = |access: &Access, other: &SymbolicValue| {
            let pair = |p: &(SymbolicValue, SymbolicValue)| {
                p.0 == iteration_value && p.1 == *other || p.1 == iteration_value && p.0 == *other
            };
            self.is_loop_invariant(other, scalarset_loop) && access.distinct_values.iter().any(pair)
        };
        if a.resolved.root != b.resolved.root {
            return false;
        }
        // Values that the loop variable must have at each access for the places to coincide.
        let (mut first, mut second) = (Vec::new(), Vec::new());
        for pair in a.resolved.path.iter().zip(&b.resolved.path) {
            let (PathStep::Index(Some(x)), PathStep::Index(Some(y))) = pair else {
                continue;
            };
            match (*x == iteration_value, *y == iteration_value) {
                (true, true) => return true,
                (true, false) if differ(a, y) => return true,
                (false, true) if differ(b, x) => return true,
                (true, false) if self.is_loop_invariant(y, scalarset_loop) => first.push(y),
                (false, true) if self.is_loop_invariant(x, scalarset_loop) => second.push(x),
                _ => {}
            }
        }
        // Both accesses then belong to the same iteration.
        first.iter().any(|symbolic| second.contains(symbolic))
    }
}

/// Verdict on a loop.
pub(super) enum OrderVerdict {
    /// The iterations commute, provided that each group of places receives the same value in all iterations.
    Commutes(Vec<Vec<Place>>),
    /// The order may matter, and no run can check it; with the reason.
    OrderDependent(String),
    /// The order may matter; a run has to compare all orders.
    Undecided(OrderDependence),
}
