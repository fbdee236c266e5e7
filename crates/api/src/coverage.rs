//! Coverage of a search: fired rules and taken rows, as text and as JSON.

use cohkit_check::system::SystemModel;
use cohkit_engine::coverage::Coverage;
use cohkit_protocol::controller::{Controller, Effect};
use cohkit_protocol::protocol::Protocol;
use cohkit_protocol::rows::{rows, Row};
use serde_json::{json, Value};
use std::fmt::Write;

/// Coverage of the search of one system.
pub struct SystemCoverage {
    /// Number of times that each rule of the model fired.
    coverage: Coverage,
    /// Rows of both controllers; empty for a Murphi model.
    rows: Vec<RowCount>,
}

/// A row of a controller, with the number of times that it was taken.
struct RowCount {
    /// Name of the controller that the row belongs to.
    agent: String,
    /// Row as it is printed in a table.
    row: Row,
    /// Number of times that the row was taken in the search.
    count: u128,
}

impl SystemCoverage {
    /// Coverage of a Murphi model, which has no controllers.
    pub(crate) fn of_model(coverage: Coverage) -> SystemCoverage {
        let rows = Vec::new();
        SystemCoverage { coverage, rows }
    }

    /// Coverage of a protocol's system. `model` is the searched model, and `home` the controller from which it
    /// was lowered. Rows with the effect `Never`, and rows that the model does not count, are omitted.
    pub(crate) fn of_system(
        coverage: Coverage,
        model: &SystemModel,
        protocol: &Protocol,
        home: &Controller,
    ) -> SystemCoverage {
        let mut row_counts = Vec::new();
        for (is_home, controller) in [(false, &protocol.remote), (true, home)] {
            let counts = model.row_counts(is_home, controller, &coverage);
            // Sorted by state, as the printed rows are.
            let mut order: Vec<usize> = (0..controller.rules.len())
                .filter(|&rule| controller.rules[rule].effect != Effect::Never)
                .collect();
            order.sort_by_key(|&rule| controller.rules[rule].state);
            let printed_rows = rows(protocol, controller).rows;
            row_counts.extend(
                order
                    .into_iter()
                    .zip(printed_rows)
                    .filter_map(|(rule, row)| {
                        Some(RowCount {
                            agent: controller.name.clone(),
                            row,
                            count: counts[rule]?,
                        })
                    }),
            );
        }
        let rows = row_counts;
        SystemCoverage { coverage, rows }
    }

    /// Table of rules with the number of times that each fired; rules that never fired come first.
    pub fn text(&self) -> String {
        let rules = &self.coverage.rules;
        let (never_fired, fired): (Vec<_>, Vec<_>) = rules.iter().partition(|rule| rule.fired == 0);
        let cells = |rule: &cohkit_engine::coverage::RuleCoverage| {
            let fired = match rule.fired {
                0 => "never".to_string(),
                fired => fired.to_string(),
            };
            [
                rule.rule.clone(),
                rule.instances.to_string(),
                fired,
                rule.new.to_string(),
            ]
        };
        let heading = ["rule", "instances", "fired", "to new states"].map(str::to_string);
        let lines = never_fired.into_iter().chain(fired).map(cells);
        let lines: Vec<[String; 4]> = std::iter::once(heading).chain(lines).collect();
        let width = |column: usize| {
            let widths = lines.iter().map(|cells| cells[column].chars().count());
            widths.max().unwrap_or(0)
        };
        let widths = [0, 1, 2, 3].map(width);
        let mut text = String::new();
        for [rule, instances, fired, new] in &lines {
            let [rule_width, instances_width, fired_width, new_width] = widths;
            let _ = writeln!(text, "  {rule:rule_width$}  {instances:>instances_width$}  {fired:>fired_width$}  {new:>new_width$}");
        }
        text
    }

    /// JSON value, described in `docs/output.md`.
    pub(crate) fn json(&self) -> Value {
        let count = crate::size::json;
        let rules = self.coverage.rules.iter().map(|rule| {
            json!({
                "rule": rule.rule,
                "instances": rule.instances,
                "fired": count(rule.fired),
                "new": rule.new,
            })
        });
        let rows = self.rows.iter().map(|row_count| {
            json!({
                "agent": row_count.agent,
                "state": row_count.row.state,
                "event": row_count.row.event,
                "guard": row_count.row.guard,
                "taken": count(row_count.count),
            })
        });
        json!({ "rules": rules.collect::<Vec<_>>(), "rows": rows.collect::<Vec<_>>() })
    }
}

/// Rows of a protocol that no system takes, over several systems.
#[derive(Default)]
pub struct UncoveredRows {
    /// Agent, state, and event with guard; true if a system takes the row.
    rows: Vec<([String; 3], bool)>,
}

impl UncoveredRows {
    /// Adds the rows that one system takes. Rows with equal text are merged.
    pub fn add(&mut self, coverage: &SystemCoverage) {
        for row_count in &coverage.rows {
            let row = &row_count.row;
            let guard = row.guard.as_ref().map(|guard| format!(" if {guard}"));
            let event = format!("{}{}", row.event, guard.unwrap_or_default());
            let key = [row_count.agent.clone(), row.state.clone(), event];
            match self.rows.iter_mut().find(|(listed, _)| *listed == key) {
                Some((_, is_taken)) => *is_taken |= row_count.count > 0,
                None => self.rows.push((key, row_count.count > 0)),
            }
        }
    }

    /// Text that lists the rows never taken; empty if no coverage was added.
    pub fn text(&self, protocol: &str) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let never_taken: Vec<_> = self.rows.iter().filter(|(_, taken)| !taken).collect();
        if never_taken.is_empty() {
            return format!("{protocol}: every row of both tables was taken\n");
        }
        let mut text = format!(
            "{protocol}: rows that were never taken, {} of {}\n",
            never_taken.len(),
            self.rows.len()
        );
        let width = |column: usize| {
            let widths = never_taken
                .iter()
                .map(|(key, _)| key[column].chars().count());
            widths.max().unwrap_or(0)
        };
        let (agent_width, state_width) = (width(0), width(1));
        for ([agent, state, event], _) in never_taken {
            let _ = writeln!(
                text,
                "  {agent:agent_width$}  {state:state_width$}  {event}"
            );
        }
        text
    }
}
