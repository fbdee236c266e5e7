//! Coverage of a search: how often each rule fired, and which marks were reached.

use crate::compile::{compile, Notes};
use crate::explore::Explorer;
use crate::model::{Model, Note, Number};
use crate::program::RuleSelection;
use crate::report::{independent_parts, without_symmetry, Report};
use crate::search::Options;
use crate::view::View;
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

/// Coverage up to the end of a search.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Coverage {
    /// Rules by name, in the order of the model.
    pub rules: Vec<RuleCoverage>,
    /// Number of times each [`Note::Mark`] was reached, by group and member.
    #[serde(skip)]
    pub marks: BTreeMap<(u32, Number), u128>,
}

/// Coverage of the rules with one name.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RuleCoverage {
    /// Name; parameters that it mentions are in braces.
    pub rule: String,
    /// Number of rule instances with this name.
    pub instances: u64,
    /// Number of times that one of them fired. The sum over all names is the number of transitions in the report.
    pub fired: u128,
    /// Number of times that one of them led to a new state; with independent parts, to a new state of its part.
    pub new: u64,
}

/// Repeats a search up to its end, and counts.
///
/// Keeps the states in memory, as the search does. Returns `None` if cancelled by [`Options::cancel`].
/// The report must be that of [`crate::check`] on this model with these options.
pub fn coverage(model: &Model, report: &Report, options: &Options) -> Option<Coverage> {
    let model = &*without_symmetry(model, &report.lost_symmetry);
    let program = compile(model, Notes::Compiled);
    // Notes read variables that no rule needs, so parts are those of a program without notes.
    let parts = independent_parts(model, &compile(model, Notes::Omitted), options);
    let mut rules: Vec<RuleCoverage> = Vec::new();
    // Rules with the same name share an entry.
    let mut entries: FxHashMap<&str, usize> = FxHashMap::default();
    let entry_of_rule: Vec<usize> = (model.rules.iter())
        .map(|rule| {
            *entries.entry(&rule.name).or_insert_with(|| {
                rules.push(RuleCoverage {
                    rule: rule.name.clone(),
                    instances: 0,
                    fired: 0,
                    new: 0,
                });
                rules.len() - 1
            })
        })
        .collect();
    for instance in &program.rules {
        rules[entry_of_rule[instance.source as usize]].instances += u64::from(instance.count());
    }
    let mut marks: BTreeMap<(u32, Number), u128> = BTreeMap::new();
    let mut part_coverages: Vec<Option<PartCoverage>> = Vec::new();
    for (part, view) in parts.views.iter().enumerate() {
        let representative = parts.representative[part];
        if representative == part {
            let fired = report.part_transitions.get(part).copied().unwrap_or(0);
            part_coverages.push(Some(count_part(model, &program, view, fired, options)?));
        } else {
            part_coverages.push(None);
            // In an incomplete search, equal parts were not explored separately.
            if !report.complete {
                continue;
            }
        }
        // In a product, every move of a part occurs in every state of the others.
        let other_states = match report.complete {
            true => (report.components.iter().enumerate())
                .filter(|(other, _)| *other != part)
                .fold(1u128, |product, (_, &states)| {
                    product.saturating_mul(states.into())
                }),
            false => 1,
        };
        let Some(part_coverage) = &part_coverages[representative] else {
            continue;
        };
        for (&rule, &(fired, new)) in view.rules.iter().zip(&part_coverage.rules) {
            let entry = &mut rules[entry_of_rule[program.rules[rule as usize].source as usize]];
            entry.fired = entry
                .fired
                .saturating_add(u128::from(fired).saturating_mul(other_states));
            entry.new += new;
        }
        for (&mark, &count) in &part_coverage.marks {
            let count = u128::from(count).saturating_mul(other_states);
            let sum = marks.entry(mark).or_default();
            *sum = sum.saturating_add(count);
        }
    }
    Some(Coverage { rules, marks })
}

/// Coverage of one part.
struct PartCoverage {
    /// For each instance of the view: number of times it fired, and number of new states.
    rules: Vec<(u64, u64)>,
    /// For each mark and member, the number of times it was reached.
    marks: BTreeMap<(u32, Number), u64>,
}

/// Expands states until `transitions` rules have fired. Each state is expanded completely, as in the search, which
/// counts no rule of the state in which it ends.
fn count_part(
    model: &Model,
    program: &crate::program::Program,
    view: &View,
    transitions: u64,
    options: &Options,
) -> Option<PartCoverage> {
    let mut coverage = PartCoverage {
        rules: vec![(0, 0); view.rules.len()],
        marks: BTreeMap::new(),
    };
    let mut explorer = Explorer::new(program, view);
    let _ = explorer.start();
    let (mut remaining, mut state) = (transitions, 0);
    let mut moves: Vec<(usize, bool)> = Vec::new();
    let mut marks_reached: Vec<(u32, Number)> = Vec::new();
    while remaining > 0 && (state as usize) < explorer.len() {
        if state % 256 == 0 && options.cancel.is_some_and(|c| c.load(Ordering::Relaxed)) {
            return None;
        }
        moves.clear();
        marks_reached.clear();
        let expanded = explorer.expand(state, RuleSelection::All, |step, machine| {
            moves.push((step.view_index, step.is_new));
            for (note, values) in machine.notes.drain(..) {
                if let Note::Mark { group, .. } = program.notes[note as usize] {
                    marks_reached.extend(values.last().map(|&member| (group, member)));
                }
            }
            true
        });
        if expanded.is_err() || moves.len() as u64 > remaining {
            break;
        }
        remaining -= moves.len() as u64;
        for &(view_index, is_new) in &moves {
            let (fired, new_states) = &mut coverage.rules[view_index];
            *fired += 1;
            *new_states += u64::from(is_new);
        }
        for mark in marks_reached.drain(..) {
            *coverage.marks.entry(mark).or_default() += 1;
        }
        state += 1;
    }
    debug_assert!(
        remaining == 0 || model.rules.is_empty(),
        "{remaining} firings are missing"
    );
    Some(coverage)
}
