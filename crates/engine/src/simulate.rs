//! Random walks through a model that has too many states to visit all of them.
//!
//! Everything that a search looks for while it visits states is looked for: invariants, assertions, values out of range, deadlock,
//! and loops over scalarsets whose order matters. No states are taken for each other, whatever symmetry a model has.
//! Finding it is a violation like any other, with a counterexample that is not a shortest one, but shortened where that is
//! cheap. Finding nothing decides nothing. What takes all states to judge (covers, drain, liveness) is not looked at.

use crate::model::Model;
use crate::report::{compiled, judged, outcome, watching, CheckError, Effort, Report, Walks};
use crate::search::{walk, Options, Plan, Walked};
use crate::view::View;
use rustc_hash::FxHashSet;

/// How to walk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Simulation {
    /// What everything random follows from.
    pub seed: u64,
    /// Steps of all walks together; the walk in which they come together is ended.
    pub steps: u64,
    /// Most steps of one walk; then the next begins in a start state.
    pub length: u64,
}

/// Walks through a model at random. The report depends on the model and the simulation alone, and is never
/// [`crate::Outcome::Verified`].
///
/// Of the options, threads, engine, symmetry (whether loops are watched), cancel and progress count.
///
/// # Errors
/// Everything that [`Model::validate`] finds.
pub fn simulate(
    model: &Model,
    simulation: &Simulation,
    options: &Options,
) -> Result<Report, CheckError> {
    let settled = watching(model, options);
    let program = compiled(model, settled.clone(), options).map_err(CheckError::Model)?;
    let view = View::whole(&program, model.deadlock);
    let Simulation {
        seed,
        steps,
        length,
    } = *simulation;
    let plan = Plan {
        seed,
        steps,
        length,
    };
    let Walked {
        verdict,
        walks,
        steps,
        transitions,
        longest,
        states,
        counted,
        fired,
        memory,
    } = walk(&program, &view, &plan, options);
    let effort = Effort {
        states: states.into(),
        depth: longest,
        symmetric: false,
    };
    let outcome = outcome(model, &program, &verdict, effort, settled);
    let source = |&number: &u32| program.rule(number).map(|rule| rule.source as usize);
    let sources = fired.iter().filter_map(source);
    let met: FxHashSet<&String> = sources.map(|source| &model.rules[source].name).collect();
    let instances = view.rules.iter().map(|&rule| &program.rules[rule as usize]);
    let mut never_fired: Vec<String> = Vec::new();
    for rule in &model.rules {
        if !met.contains(&rule.name) && !never_fired.contains(&rule.name) {
            never_fired.push(rule.name.clone());
        }
    }
    let walks = Walks {
        seed,
        walks,
        steps,
        states_counted: counted,
        rules_fired: fired.len() as u64,
        rules: instances.map(|rule| u64::from(rule.count())).sum(),
        never_fired,
    };
    Ok(Report {
        properties: judged(model, &program, &outcome, &verdict),
        outcome,
        states: states.into(),
        symmetric: false,
        transitions: transitions.into(),
        depth: longest,
        components: vec![states],
        part_transitions: vec![transitions],
        complete: false,
        different: 1,
        memory,
        omission_probability: None,
        walks: Some(Box::new(walks)),
    })
}
