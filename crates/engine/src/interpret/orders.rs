//! Steps whose result may depend on the order in which loops over scalarsets run.
//!
//! Values of a scalarset have no order, but loops over them run in some order. Let `f` be a step in the order of the
//! model, and `g` a permutation of scalarset values. In the state `g(s)`, the step gives `g(r)`. Here `r` is its result
//! in `s` when all loops run in the order that `g` maps to that of the model.
//! States of one orbit therefore lead to the same orbits under one condition: in one state of each orbit, the step has
//! the same result up to symmetry in every order. The condition is necessary and sufficient.
//! The machine checks this by running the step in every order, but only if the order of a loop may have mattered
//! ([`Op::Disagree`]): its iterations stored different values, one of them left the loop, or the analysis of the model
//! ([`crate::symmetry_check`]) could not show that they commute.

use super::{CodePart, Fault, Machine};
use crate::model::{Model, Number, TypeId};
use crate::program::{Instance, Orbits, Program, Slot};

/// Maximum number of orders tried per step: 8!, the orders of eight values.
const MAX_ORDERS: u64 = 40_320;

/// Maximum number of differing values shown.
const MAX_SHOWN_VALUES: usize = 4;

/// An order of the values of scalarsets.
type Order = Vec<(TypeId, Vec<u32>)>;

/// Reason why a step has no result that is valid in every order.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Conflict {
    /// The result in the order of the model differs from that in another order.
    Results([(Order, RunResult); 2]),
    /// More orders exist than can be tried.
    TooMany,
}

/// Result of a run, for messages.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum RunResult {
    /// This state.
    State(Vec<Number>),
    /// This verdict of a condition.
    Verdict(bool),
    /// A fault.
    Fault(Fault),
}

/// Result that must be equal in all orders. Two faults are equal if both or neither exceed a limit of the engine.
#[derive(PartialEq)]
enum Outcome {
    /// State after the body of a rule or start state.
    State {
        /// The packed representative of the state's orbit.
        state: Vec<u64>,
        covered: Vec<bool>,
    },
    /// Verdict of a condition, or the false verdict of a body whose assumption does not hold.
    Verdict {
        holds: bool,
        /// Number of the rule that was found enabled.
        number: Option<u32>,
        covered: Vec<bool>,
    },
    Fault {
        limit: bool,
    },
}

impl Machine<'_> {
    /// Repeats a part, already run in the order of the model, in every order of the scalarsets on which its result may
    /// depend.
    /// Restores the machine's state after the first run, and returns that run's verdict; a fault if results differ.
    #[cold]
    pub(super) fn compare_orders(
        &mut self,
        part: CodePart,
        entry: u32,
        verdict: Result<bool, Fault>,
    ) -> Result<bool, Fault> {
        let program = self.program;
        let disagreements = std::mem::take(&mut self.disagreements);
        // A search without symmetry of the loop's scalarsets reaches a verdict, so such a loop is named first.
        let is_provisional =
            |&&(_, instruction): &&(u32, u32)| !program.provisional_sets(instruction).is_empty();
        let named = disagreements.iter().find(is_provisional);
        let fault = Fault {
            instruction: named.unwrap_or(&disagreements[0]).1,
            value: 0,
        };
        let Some(orbits) = program.loop_orders.orbits.as_deref() else {
            return Err(fault);
        };
        let (state_after, covered) = (self.frame.clone(), self.covered.clone());
        let (log, notes) = (std::mem::take(&mut self.log), self.notes.len());
        let mut state_before = state_after.clone();
        if let CodePart::Body(..) = part {
            let overwritten = log.iter().rev();
            overwritten.for_each(|&(slot, old)| state_before[slot as usize] = old);
        }
        let conflict =
            self.conflict_of_orders(part, entry, &state_before, &disagreements, orbits, fault);
        self.disagreements.clear();
        self.frame = state_after;
        self.covered = covered;
        self.log = log;
        self.notes.truncate(notes);
        self.conflict = conflict.map(Box::new);
        match self.conflict {
            None => verdict,
            Some(_) => Err(fault),
        }
    }

    /// Two orders in which a part has different results, or too many orders to try; `None` if all results agree.
    fn conflict_of_orders(
        &mut self,
        part: CodePart,
        entry: u32,
        state_before: &[Number],
        disagreements: &[(u32, u32)],
        orbits: &dyn Orbits,
        fault: Fault,
    ) -> Option<Conflict> {
        let mut sets = Vec::new();
        let mut first_run_changes_state = None;
        self.add_sets(disagreements, &mut sets);
        'sets: loop {
            let mut permutations: Vec<Vec<u32>> =
                sets.iter().map(|&(_, size)| (0..size).collect()).collect();
            let orders = sets.iter().try_fold(1u64, |orders, &(_, size)| {
                (1..=u64::from(size)).try_fold(orders, u64::checked_mul)
            });
            if orders.is_none_or(|orders| orders > MAX_ORDERS) {
                return Some(Conflict::TooMany);
            }
            let mut first_run: Option<(Outcome, Order, RunResult)> = None;
            loop {
                self.frame.copy_from_slice(state_before);
                self.log.clear();
                self.covered.fill(false);
                self.set_order(&sets, &permutations);
                self.prepare(part);
                let verdict = self.execute(entry);
                let disagreements = std::mem::take(&mut self.disagreements);
                if self.add_sets(&disagreements, &mut sets) {
                    // The order of another scalarset matters too: start again with it.
                    continue 'sets;
                }
                let outcome = self.comparable_outcome(part, verdict, orbits);
                let slots = self.program.slots.len();
                let changes_state = self.frame[..slots] != state_before[..slots];
                if *first_run_changes_state.get_or_insert(changes_state) != changes_state {
                    self.move_by_order = Some(fault);
                }
                let differs = first_run.as_ref().is_some_and(|run| run.0 != outcome);
                if first_run.is_none() || differs {
                    let order = sets.iter().map(|set| set.0);
                    let order = order.zip(permutations.iter().cloned()).collect();
                    let result = self.run_result(part, verdict);
                    match first_run {
                        None => first_run = Some((outcome, order, result)),
                        Some((_, model_order, model_result)) => {
                            return Some(Conflict::Results([
                                (model_order, model_result),
                                (order, result),
                            ]));
                        }
                    }
                }
                if !next_permutations(&mut permutations) {
                    return None;
                }
            }
        }
    }

    /// Adds the permuted scalarsets of these loops. Returns true if some are new.
    fn add_sets(&self, loops: &[(u32, u32)], sets: &mut Vec<(TypeId, u32)>) -> bool {
        let set_count = sets.len();
        for &(order, _) in loops {
            for &(_, set, size) in &self.program.loop_orders.orders[order as usize].members {
                if sets.iter().all(|known| known.0 != set) {
                    sets.push((set, size));
                }
            }
        }
        sets.len() > set_count
    }

    /// Makes loops take the values of the scalarsets in the given order.
    fn set_order(&mut self, sets: &[(TypeId, u32)], permutations: &[Vec<u32>]) {
        self.frame[self.program.loop_orders.reorder_flag as usize] = 1;
        for order in &self.program.loop_orders.orders {
            for &(value, set, _) in &order.members {
                let number = sets.iter().position(|known| known.0 == set);
                let Some(permutation) = number.map(|number| &permutations[number]) else {
                    continue;
                };
                let cells = order.first as usize + value as usize..;
                let cells = self.frame[cells].iter_mut();
                for (cell, &element) in cells.zip(permutation) {
                    *cell = value + Number::from(element);
                }
            }
        }
    }

    /// Returns the result of a run in a form that is equal for equal results up to symmetry.
    fn comparable_outcome(
        &mut self,
        part: CodePart,
        verdict: Result<bool, Fault>,
        orbits: &dyn Orbits,
    ) -> Outcome {
        let holds = match verdict {
            Ok(holds) => holds,
            Err(fault) => {
                let limit = self.program.is_limit(fault);
                return Outcome::Fault { limit };
            }
        };
        let covered = self.covered.clone();
        if let (CodePart::Body(..), true) = (part, holds) {
            self.sort_multisets();
            let state = orbits.representative(&self.frame);
            return Outcome::State { state, covered };
        }
        let number = match part {
            CodePart::Guard(
                Instance {
                    parameter_loop: Some(parameter_loop),
                    ..
                },
                _,
            ) if holds => Some(parameter_loop.position(|_, cell| self.frame[cell as usize])),
            _ => None,
        };
        Outcome::Verdict {
            holds,
            number,
            covered,
        }
    }

    /// Result of a run, for messages.
    fn run_result(&self, part: CodePart, verdict: Result<bool, Fault>) -> RunResult {
        match (part, verdict) {
            (_, Err(fault)) => RunResult::Fault(fault),
            (CodePart::Body(..), Ok(true)) => {
                RunResult::State(self.frame[..self.program.slots.len()].to_vec())
            }
            (_, Ok(holds)) => RunResult::Verdict(holds),
        }
    }
}

/// Advances to the next combination of permutations; false after the last. The first ones are ascending.
fn next_permutations(permutations: &mut [Vec<u32>]) -> bool {
    permutations
        .iter_mut()
        .rev()
        .any(|permutation| next_permutation(permutation))
}

/// Advances to the next permutation in lexicographic order. After the last, returns false and restarts at the first.
fn next_permutation(values: &mut [u32]) -> bool {
    let Some(pivot) = values.windows(2).rposition(|pair| pair[0] < pair[1]) else {
        values.reverse();
        return false;
    };
    let larger = values.iter().rposition(|&value| value > values[pivot]);
    values.swap(pivot, larger.unwrap_or(pivot));
    values[pivot + 1..].reverse();
    true
}

impl Conflict {
    /// Text of the conflict, to complete a sentence about it.
    pub fn describe(&self, model: &Model, program: &Program) -> String {
        let [(model_order, model_result), (order, result)] = match self {
            Conflict::TooMany => {
                return format!(
                    "its scalarsets have more than {MAX_ORDERS} orders, too many to try all"
                )
            }
            Conflict::Results(results) => results,
        };
        let order_of = |order: &Order| {
            let sets = order.iter().map(|(set, values)| {
                let values = values.iter().map(|&v| model.show(*set, Number::from(v)));
                values.collect::<Vec<_>>().join(", ")
            });
            sets.collect::<Vec<_>>().join("; ")
        };
        let describe_result = |own: &RunResult, other: &RunResult| match own {
            RunResult::Fault(fault) => match program.explain(model, *fault) {
                Ok(violation) => violation.to_string(),
                Err(message) => message,
            },
            RunResult::Verdict(true) => "the condition holds".into(),
            RunResult::Verdict(false) => "the condition does not hold".into(),
            RunResult::State(values) => {
                let differs = |&slot: &usize| match other {
                    RunResult::State(other_values) => values[slot] != other_values[slot],
                    _ => false,
                };
                let slots: Vec<usize> = (0..values.len()).filter(differs).collect();
                let shown_values = slots.iter().take(MAX_SHOWN_VALUES).map(|&slot| {
                    let Slot { name, ty, .. } = &program.slots[slot];
                    format!("`{name}` = {}", model.show(*ty, values[slot]))
                });
                let mut shown_values = shown_values.collect::<Vec<_>>().join(", ");
                match slots.len() {
                    0 => shown_values = "the step succeeds".into(),
                    n if n > MAX_SHOWN_VALUES => {
                        shown_values += &format!(" and {} more", n - MAX_SHOWN_VALUES)
                    }
                    _ => {}
                }
                shown_values
            }
        };
        format!(
            "in the order {} of the model file the result is: {}; in the order {}: {}; no permutation maps one to the other",
            order_of(model_order),
            describe_result(model_result, result),
            order_of(order),
            describe_result(result, model_result)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_permutation_is_generated_once() {
        let mut permutations = vec![vec![0, 1, 2], vec![0, 1]];
        let mut generated = vec![permutations.clone()];
        while next_permutations(&mut permutations) {
            assert!(!generated.contains(&permutations));
            generated.push(permutations.clone());
        }
        assert_eq!(generated.len(), 12);
        assert_eq!(permutations, generated[0]);
    }
}
