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

/// Maximum number of orders tried per step if the search can give up the symmetry instead: a search of all permutations
/// of a state then takes about as long.
const MAX_PROVISIONAL_ORDERS: u64 = 720;

/// Maximum number of differing values shown.
const MAX_SHOWN_VALUES: usize = 4;

/// An order of the values of scalarsets.
type Order = Vec<(TypeId, Vec<u32>)>;

/// Reason why a step has no result that is valid in every order.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Conflict {
    /// The result in the order of the model differs from that in another order.
    Results([(Order, RunResult); 2]),
    /// More orders exist than this number, up to which all are tried.
    TooMany(u64),
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

/// The first run of a comparison, in the order of the model.
struct FirstRun {
    /// State after the run.
    state: Vec<Number>,
    /// Result up to symmetry.
    outcome: Outcome,
    /// True if the run changes the state.
    changes_state: bool,
    /// Order of the values.
    order: Order,
    /// Result, for messages.
    result: RunResult,
}

/// Comparison of the results of a part in all orders.
enum Comparison {
    /// All results agree.
    Equal,
    /// Results differ.
    Different(Conflict),
    /// The order of these other scalarsets matters too.
    Incomplete(Vec<(TypeId, u32)>),
}

/// A part of a model to be run in several orders.
#[derive(Clone, Copy)]
struct Trial<'t> {
    /// Part of the model.
    part: CodePart<'t>,
    /// First instruction of its code.
    entry: u32,
    /// Frame before the run.
    frame_before: &'t [Number],
    /// Orbits of the state.
    orbits: &'t dyn Orbits,
    /// Maximum number of orders.
    max_orders: u64,
    /// Fault to report if only some orders change the state.
    fault: Fault,
    /// True if loops over scalarsets that are not permuted do not matter.
    ignores_other_sets: bool,
}

impl Machine<'_> {
    /// Completes a run in which the order of a loop may have mattered: repeats the part as the model states it, with
    /// returns that end their loops, and then in every order of the scalarsets on which its result may depend. The
    /// caller has removed the notes of the first run.
    /// Returns the verdict of the run in the order of the model; a fault if results differ.
    #[cold]
    pub(super) fn settle_orders(
        &mut self,
        part: CodePart,
        entry: u32,
        verdict: Result<bool, Fault>,
    ) -> Result<bool, Fault> {
        let flag = self.program.loop_orders.postpones_returns as usize;
        let mut disagreements = std::mem::take(&mut self.disagreements);
        if let CodePart::Body(..) = part {
            self.undo();
        }
        let frame_before = self.frame.clone();
        self.frame[flag] = 0;
        self.prepare(part);
        let repeated_verdict = self.execute(entry);
        self.frame[flag] = frame_before[flag];
        let returns = std::mem::take(&mut self.disagreements);
        // Without a fault, all iterations of loops with postponed returns agree.
        if verdict.is_err() {
            let exits = self.program.early_exits(entry);
            for disagreement in returns.into_iter().chain(exits) {
                if disagreements.iter().all(|known| known.0 != disagreement.0) {
                    disagreements.push(disagreement);
                }
            }
        }
        match disagreements.is_empty() {
            true => repeated_verdict,
            false => {
                self.compare_orders(part, entry, &frame_before, disagreements, repeated_verdict)
            }
        }
    }

    /// Repeats a part, already run in the order of the model, in every order of the scalarsets on which its result may
    /// depend.
    /// Restores the machine's state after the first run, and returns that run's verdict; a fault if results differ.
    fn compare_orders(
        &mut self,
        part: CodePart,
        entry: u32,
        frame_before: &[Number],
        mut disagreements: Vec<(u32, u32)>,
        verdict: Result<bool, Fault>,
    ) -> Result<bool, Fault> {
        let program = self.program;
        // A search without symmetry of the loop's scalarsets reaches a verdict, so such a loop is named first.
        let is_provisional = |instruction| !program.provisional_sets(instruction).is_empty();
        disagreements.sort_by_key(|&(_, instruction)| !is_provisional(instruction));
        let fault = |instruction| Fault {
            instruction,
            value: 0,
        };
        let Some(orbits) = program.loop_orders.orbits.as_deref() else {
            return Err(fault(disagreements[0].1));
        };
        let (state_after, covered) = (self.frame.clone(), self.covered.clone());
        let (log, notes) = (std::mem::take(&mut self.log), self.notes.len());
        let trial = Trial {
            part,
            entry,
            frame_before,
            orbits,
            max_orders: match is_provisional(disagreements[0].1) {
                true => MAX_PROVISIONAL_ORDERS,
                false => MAX_ORDERS,
            },
            fault: fault(disagreements[0].1),
            ignores_other_sets: false,
        };
        let conflict = self.conflict_of_orders(&trial, &disagreements);
        let named = conflict.map(|(conflict, set)| {
            let permutes = |&&(order, _): &&(u32, u32)| self.permutes(order, set);
            let named = disagreements.iter().find(permutes);
            (conflict, named.unwrap_or(&disagreements[0]).1)
        });
        self.disagreements.clear();
        self.frame = state_after;
        self.covered = covered;
        self.log = log;
        self.notes.truncate(notes);
        match named {
            None => {
                self.conflict = None;
                verdict
            }
            Some((conflict, instruction)) => {
                self.conflict = Some(Box::new(conflict));
                Err(fault(instruction))
            }
        }
    }

    /// True if loops of an order permute a scalarset.
    fn permutes(&self, order: u32, set: TypeId) -> bool {
        let members = &self.program.loop_orders.orders[order as usize].members;
        members.iter().any(|member| member.1 == set)
    }

    /// Two orders in which a part has different results, or too many orders to try, and the scalarset to which this is
    /// due; `None` if all results agree.
    fn conflict_of_orders(
        &mut self,
        trial: &Trial,
        disagreements: &[(u32, u32)],
    ) -> Option<(Conflict, TypeId)> {
        let mut sets = Vec::new();
        self.add_sets(disagreements, &mut sets);
        let conflict = loop {
            match self.compare_orders_of(&sets, trial) {
                Comparison::Equal => return None,
                Comparison::Different(conflict) => break conflict,
                Comparison::Incomplete(all_sets) => sets = all_sets,
            }
        };
        if let Conflict::TooMany(_) = conflict {
            // A search without symmetry of a provisional loop's scalarset has fewer orders to try.
            let is_provisional = |set: &&(TypeId, u32)| {
                disagreements.iter().any(|&(order, instruction)| {
                    !self.program.provisional_sets(instruction).is_empty()
                        && self.permutes(order, set.0)
                })
            };
            let provisional = sets.iter().filter(is_provisional);
            let largest = provisional.max_by_key(|set| set.1);
            let largest = largest.or_else(|| sets.iter().max_by_key(|set| set.1))?;
            return Some((conflict, largest.0));
        }
        // A single scalarset is named if its order alone makes a difference.
        let trial = &Trial {
            ignores_other_sets: true,
            ..*trial
        };
        for set in &sets {
            let alone = std::slice::from_ref(set);
            let comparison = self.compare_orders_of(alone, trial);
            if let Comparison::Different(alone @ Conflict::Results(_)) = comparison {
                return Some((alone, set.0));
            }
        }
        let first = sets.first()?;
        Some((conflict, first.0))
    }

    /// Runs a part in every order of these scalarsets.
    fn compare_orders_of(&mut self, sets: &[(TypeId, u32)], trial: &Trial) -> Comparison {
        let mut permutations: Vec<Vec<u32>> =
            sets.iter().map(|&(_, size)| (0..size).collect()).collect();
        let orders = sets.iter().try_fold(1u64, |orders, &(_, size)| {
            (1..=u64::from(size)).try_fold(orders, u64::checked_mul)
        });
        if orders.is_none_or(|orders| orders > trial.max_orders) {
            return Comparison::Different(Conflict::TooMany(trial.max_orders));
        }
        let slots = self.program.slots.len();
        let mut first_run: Option<FirstRun> = None;
        loop {
            let verdict = self.run_in_order(trial, sets, &permutations);
            let disagreements = std::mem::take(&mut self.disagreements);
            let mut all_sets = sets.to_vec();
            if self.add_sets(&disagreements, &mut all_sets) && !trial.ignores_other_sets {
                return Comparison::Incomplete(all_sets);
            }
            let changes_state = self.frame[..slots] != trial.frame_before[..slots];
            let order = || {
                let sets = sets.iter().map(|set| set.0);
                sets.zip(permutations.iter().cloned()).collect()
            };
            match &first_run {
                None => {
                    first_run = Some(FirstRun {
                        state: self.frame[..slots].to_vec(),
                        outcome: self.comparable_outcome(trial, verdict),
                        changes_state,
                        order: order(),
                        result: self.run_result(trial.part, verdict),
                    });
                }
                Some(first) => {
                    if first.changes_state != changes_state {
                        self.move_by_order = Some(trial.fault);
                    }
                    if !self.repeats(first, trial, verdict)
                        && first.outcome != self.comparable_outcome(trial, verdict)
                    {
                        return Comparison::Different(Conflict::Results([
                            (first.order.clone(), first.result.clone()),
                            (order(), self.run_result(trial.part, verdict)),
                        ]));
                    }
                }
            }
            if !next_permutations(&mut permutations) {
                return Comparison::Equal;
            }
        }
    }

    /// Runs a part in one order, and sorts the multisets of its result.
    fn run_in_order(
        &mut self,
        trial: &Trial,
        sets: &[(TypeId, u32)],
        permutations: &[Vec<u32>],
    ) -> Result<bool, Fault> {
        self.frame.copy_from_slice(trial.frame_before);
        self.log.clear();
        self.covered.fill(false);
        self.set_order(sets, permutations);
        self.prepare(trial.part);
        let verdict = self.execute(trial.entry);
        if let CodePart::Body(..) = trial.part {
            self.sort_multisets();
        }
        verdict
    }

    /// True if the last run has the same state as the first one, so that no representatives need to be compared.
    fn repeats(&self, first: &FirstRun, trial: &Trial, verdict: Result<bool, Fault>) -> bool {
        let Outcome::State { covered, .. } = &first.outcome else {
            return false;
        };
        let is_body = matches!(trial.part, CodePart::Body(..));
        is_body
            && verdict == Ok(true)
            && *covered == self.covered
            && self.frame[..first.state.len()] == first.state[..]
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
        self.frame[self.program.loop_orders.postpones_returns as usize] = 0;
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
    fn comparable_outcome(&self, trial: &Trial, verdict: Result<bool, Fault>) -> Outcome {
        let holds = match verdict {
            Ok(holds) => holds,
            Err(fault) => {
                let limit = self.program.is_limit(fault);
                return Outcome::Fault { limit };
            }
        };
        let covered = self.covered.clone();
        if let (CodePart::Body(..), true) = (trial.part, holds) {
            let state = trial.orbits.representative(&self.frame);
            return Outcome::State { state, covered };
        }
        let number = match trial.part {
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
            Conflict::TooMany(max_orders) => {
                return format!(
                    "its scalarsets have more than {max_orders} orders, too many to try all"
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
