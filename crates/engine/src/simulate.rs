//! Random walks through a model that has too many states to visit all of them.
//!
//! Walks check everything that a search checks while it visits states: invariants, assertions, values out of range,
//! deadlock, and loops over scalarsets whose order matters. Symmetry does not merge states here.
//! A violation has a counterexample that is shortened if that is cheap, but need not be a shortest one. A run without a
//! violation is undecided. Properties that need all states (covers, drain, liveness) are not judged.

use crate::model::Model;
use crate::report::{
    loops_to_check, outcome_of_verdict, possibly_lost_symmetry, property_results,
    validate_and_compile, without_symmetry, CheckError, Report, SearchSize, Walks,
};
use crate::search::{walk, Options, WalkParameters, WalkResults};
use crate::view::View;
use rustc_hash::FxHashSet;

/// Parameters of a simulation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Simulation {
    /// Seed of the random numbers.
    pub seed: u64,
    /// Steps of all walks together; the walk that reaches this total is the last.
    pub steps: u64,
    /// Maximum steps of one walk; the next walk then begins in a start state.
    pub length: u64,
}

/// Walks through a model at random. The report depends only on the model and the simulation, and is never
/// [`crate::Outcome::Verified`].
///
/// Only these options have an effect: threads, engine, symmetry (checks of loop orders), cancel and progress.
///
/// # Errors
/// Everything that [`Model::validate`] finds.
pub fn simulate(
    model: &Model,
    simulation: &Simulation,
    options: &Options,
) -> Result<Report, CheckError> {
    // A walk needs no symmetry: loops whose order may matter run in the order of the model.
    let model = &*without_symmetry(model, &possibly_lost_symmetry(model, options));
    let loop_checks = loops_to_check(model, options);
    let program =
        validate_and_compile(model, loop_checks.clone(), options).map_err(CheckError::Model)?;
    let view = View::whole(&program, model.deadlock);
    let Simulation {
        seed,
        steps,
        length,
    } = *simulation;
    let parameters = WalkParameters {
        seed,
        steps,
        length,
    };
    let WalkResults {
        verdict,
        walks,
        steps,
        transitions,
        longest,
        states,
        all_states_counted,
        fired_rules,
        memory,
    } = walk(&program, &view, &parameters, options);
    let search_size = SearchSize {
        states: states.into(),
        depth: longest,
        symmetric: false,
    };
    let outcome = outcome_of_verdict(model, &program, &verdict, search_size, loop_checks);
    let source = |&number: &u32| program.rule(number).map(|rule| rule.source as usize);
    let sources = fired_rules.iter().filter_map(source);
    let fired_names: FxHashSet<&String> = sources.map(|source| &model.rules[source].name).collect();
    let instances = view.rules.iter().map(|&rule| &program.rules[rule as usize]);
    let mut never_fired: Vec<String> = Vec::new();
    for rule in &model.rules {
        if !fired_names.contains(&rule.name) && !never_fired.contains(&rule.name) {
            never_fired.push(rule.name.clone());
        }
    }
    let walks = Walks {
        seed,
        walks,
        steps,
        states_counted: all_states_counted,
        rules_fired: fired_rules.len() as u64,
        rules: instances.map(|rule| u64::from(rule.count())).sum(),
        never_fired,
    };
    Ok(Report {
        properties: property_results(model, &program, &outcome, &verdict),
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
        lost_symmetry: Vec::new(),
    })
}
