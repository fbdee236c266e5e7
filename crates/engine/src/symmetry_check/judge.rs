//! Decides whether the rounds of a loop can be exchanged.

use super::*;

impl Walk<'_> {
    /// Judges a loop: whether its result may depend on the order of its rounds, and why.
    pub(super) fn judge(&self, round: &Loop) -> Judgement {
        if let Some(reason) = &round.why {
            return Judgement::OrderDependent(reason.clone());
        }
        let shared: Vec<&Access> = (round.accesses.iter())
            .filter(|a| !round.local_variables.contains(&a.spot.root))
            .collect();
        let changes = shared.iter().any(|a| a.effect != Effect::Read);
        let set = |id: VariableId| &self.model.types[self.model.variable(id).ty.index()].name;
        if let Some(first) = round.returns.first() {
            let is_same = match first {
                Some(key) => {
                    self.is_loop_invariant(key, round)
                        && round.returns.iter().all(|r| r.as_ref() == Some(key))
                }
                None => false,
            };
            if !is_same || changes || round.can_fail || round.covers {
                let reason = "it returns at the first value that satisfies a condition";
                return Judgement::OrderDependent(reason.into());
            }
        }
        if round.assumes && (round.can_fail || round.covers) {
            let earlier_event = match round.can_fail {
                true => "it fails",
                false => "a cover is reached",
            };
            let reason = format!("an `assume` may end it before {earlier_event}, or after");
            return Judgement::OrderDependent(reason);
        }
        let mut settled: Vec<(&Spot, Vec<&Place>)> = Vec::new();
        for (i, a) in shared.iter().enumerate() {
            for b in &shared[i..] {
                if a.effect == Effect::Read && b.effect == Effect::Read
                    || self.accesses_commute(a, b, round)
                    || !self.may_overlap(&a.spot, &b.spot)
                    || self.are_distinct(a, b, round)
                {
                    continue;
                }
                if self.is_checkable_at_run_time(a, round)
                    && self.is_checkable_at_run_time(b, round)
                    && a.spot == b.spot
                {
                    let known = settled.iter().position(|s| *s.0 == a.spot);
                    let position = known.unwrap_or(settled.len());
                    if known.is_none() {
                        settled.push((&a.spot, Vec::new()));
                    }
                    settled[position].1.extend([&a.place, &b.place]);
                    continue;
                }
                let (name, set) = (self.name(&a.spot), set(round.variable));
                return Judgement::OrderDependent(match (&a.effect, &b.effect) {
                    (Effect::Read, _) | (_, Effect::Read) => {
                        format!("its effect for one `{set}` is read for another in `{name}`")
                    }
                    _ => format!("`{name}` keeps the last stored value"),
                });
            }
        }
        let group = |(_, places): (_, Vec<&Place>)| {
            let mut distinct_places: Vec<Place> = Vec::new();
            for place in places {
                if !distinct_places.contains(place) {
                    distinct_places.push(place.clone());
                }
            }
            distinct_places
        };
        Judgement::Exchangeable(settled.into_iter().map(group).collect())
    }

    /// True if a run can check the stored values of an access for equality in all rounds.
    pub(super) fn is_checkable_at_run_time(&self, a: &Access, round: &Loop) -> bool {
        let is_loop_invariant = |step: &PathStep| match step {
            PathStep::Field(_) => true,
            PathStep::Index(key) => key
                .as_ref()
                .is_some_and(|key| self.is_loop_invariant(key, round)),
        };
        matches!(a.effect, Effect::Same(_) | Effect::Write)
            && a.calls == round.calls
            && a.spot.path.iter().all(is_loop_invariant)
            && self
                .model
                .bounds(self.model.type_of_place(&a.place))
                .is_some()
    }

    /// True if a value is the same in all rounds, provided that no round writes the variables it reads.
    pub(super) fn is_loop_invariant(&self, key: &Key, round: &Loop) -> bool {
        !key.names
            .iter()
            .any(|name| round.local_variables.contains(name))
    }

    /// True if two accesses to one place can be exchanged.
    pub(super) fn accesses_commute(&self, a: &Access, b: &Access, round: &Loop) -> bool {
        match (&a.effect, &b.effect) {
            (Effect::Same(x), Effect::Same(y)) => x == y && self.is_loop_invariant(x, round),
            (Effect::Count { is_increment: x }, Effect::Count { is_increment: y }) => x == y,
            (Effect::Join(x), Effect::Join(y)) => x == y,
            (Effect::Insert, Effect::Insert) => true,
            _ => false,
        }
    }

    /// True if two places may overlap, in any rounds.
    pub(super) fn may_overlap(&self, a: &Spot, b: &Spot) -> bool {
        if a.root != b.root {
            // An alias parameter of a recursive function may refer to any place.
            let [x, y] = [a.root, b.root].map(|root| self.model.variable(root).role);
            return matches!((x, y), (Role::Alias, Role::Alias | Role::State))
                || matches!((x, y), (Role::State, Role::Alias));
        }
        let is_number = |key: &Key| key.names.is_empty() && key.text.starts_with('#');
        a.path.iter().zip(&b.path).all(|pair| match pair {
            (PathStep::Field(x), PathStep::Field(y)) => x == y,
            (PathStep::Index(Some(x)), PathStep::Index(Some(y))) => {
                x == y || !is_number(x) || !is_number(y)
            }
            _ => true,
        })
    }

    /// True if two places are different whenever they are accessed in different rounds.
    pub(super) fn are_distinct(&self, a: &Access, b: &Access, round: &Loop) -> bool {
        let round_value = Key::of(round.variable);
        let differ = |access: &Access, other: &Key| {
            let pair = |p: &(Key, Key)| {
                p.0 == round_value && p.1 == *other || p.1 == round_value && p.0 == *other
            };
            self.is_loop_invariant(other, round) && access.distinct_values.iter().any(pair)
        };
        if a.spot.root != b.spot.root {
            return false;
        }
        // Values that each access must have as its round's value if the places are to coincide.
        let (mut first, mut second) = (Vec::new(), Vec::new());
        for pair in a.spot.path.iter().zip(&b.spot.path) {
            let (PathStep::Index(Some(x)), PathStep::Index(Some(y))) = pair else {
                continue;
            };
            match (*x == round_value, *y == round_value) {
                (true, true) => return true,
                (true, false) if differ(a, y) => return true,
                (false, true) if differ(b, x) => return true,
                (true, false) if self.is_loop_invariant(y, round) => first.push(y),
                (false, true) if self.is_loop_invariant(x, round) => second.push(x),
                _ => {}
            }
        }
        // Both accesses would then belong to the same round.
        first.iter().any(|key| second.contains(key))
    }
}

/// Judgement of a loop.
pub(super) enum Judgement {
    /// The order does not matter, provided that each group of places receives the same value in all rounds.
    Exchangeable(Vec<Vec<Place>>),
    /// The order may matter; with the reason.
    OrderDependent(String),
}
