//! Bridges of a composition as tables: an outer cache together with the inner home over it.

use crate::composition::CompositionSource;
use crate::joint_exploration::{with_levels, DEFAULT_MAX_STATES};
use crate::outcome::{ExitStatus, Failure};
use cohkit_base::words::counted;
use cohkit_system::state::{bridge_tables, BridgeRow, BridgeState, Level, NoTable, Search};
use serde_json::{json, Value};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

/// Table of the bridges between an inner and an outer protocol.
pub struct BridgeTable {
    /// Name of the composition.
    protocol: String,
    /// Name of the explored system.
    system: String,
    /// Name of the inner protocol in the composition, and of the outer one.
    names: [String; 2],
    /// Rows in the order of their states.
    rows: Vec<BridgeRow>,
}

/// Headings of the columns of [`BridgeTable::cells`].
pub const HEADINGS: [&str; 8] = [
    "cache",
    "home",
    "recall",
    "event",
    "sends",
    "next cache",
    "next home",
    "next recall",
];

impl BridgeTable {
    /// Heading of the table: its agents, the explored system, and the numbers of states and rows.
    pub fn summary(&self) -> String {
        let [inner, outer] = &self.names;
        let states: BTreeSet<&BridgeState> = self.rows.iter().map(|row| &row.state).collect();
        format!(
            "{} {}: bridge of {inner} over {outer}: {}, {}",
            self.protocol,
            self.system,
            counted(states.len() as u64, "state"),
            counted(self.rows.len() as u64, "row")
        )
    }

    /// Name of a message or event, with that of its protocol.
    fn qualified(&self, level: Level, name: &str) -> String {
        let [inner, outer] = &self.names;
        match level {
            Level::Inner => format!("{inner}: {name}"),
            Level::Outer => format!("{outer}: {name}"),
        }
    }

    /// Messages that a row sends, each with its protocol.
    fn sends(&self, row: &BridgeRow) -> Vec<String> {
        let sends = row.sends.iter();
        sends
            .map(|(level, name)| self.qualified(*level, name))
            .collect()
    }

    /// Cells of each row, under [`HEADINGS`]. A part of the state that does not change has no next value.
    pub fn cells(&self) -> Vec<[String; 8]> {
        let changed = |before: &String, after: &String| match before == after {
            true => String::new(),
            false if after.is_empty() => "none".to_string(),
            false => after.clone(),
        };
        let cells = |row: &BridgeRow| {
            let (state, next) = (&row.state, &row.next);
            [
                state.cache.clone(),
                state.home.clone(),
                state.recall.clone(),
                self.qualified(row.level, &row.event),
                self.sends(row).join(", "),
                changed(&state.cache, &next.cache),
                changed(&state.home, &next.home),
                changed(&state.recall, &next.recall),
            ]
        };
        self.rows.iter().map(cells).collect()
    }

    /// JSON value, described in `docs/output.md`.
    pub fn json(&self, file: &str) -> Value {
        let state = |state: &BridgeState| json!({ "cache": state.cache, "home": state.home, "recall": state.recall });
        let row = |row: &BridgeRow| {
            json!({
                "state": state(&row.state),
                "event": self.qualified(row.level, &row.event),
                "sends": self.sends(row),
                "next": state(&row.next),
            })
        };
        let [inner, outer] = &self.names;
        json!({
            "protocol": self.protocol,
            "system": self.system,
            "inner": inner,
            "outer": outer,
            "rows": self.rows.iter().map(row).collect::<Vec<_>>(),
            "run": { "file": file, "version": env!("CARGO_PKG_VERSION") },
        })
    }
}

/// Returns the table of each bridge of the first system of a composition. Explores both levels together; another thread
/// ends the search by setting `cancel`.
///
/// # Errors
/// The composition has no levels, a home cannot be constructed, a property is violated, or the search is incomplete.
pub fn tabulate_bridges(
    source: &CompositionSource,
    cancel: &AtomicBool,
) -> Result<Vec<BridgeTable>, Failure> {
    let composition = source.composition();
    let groups = composition.joined_levels();
    let (Some(system), false) = (composition.systems.first(), groups.is_empty()) else {
        let path = source.path().display();
        let message = format!(
            "error: {path}: this composition has no bridge, because no home is over a cache\n  help: `cohkit table` prints the controllers of the specifications that it uses"
        );
        return Err(Failure::new(ExitStatus::BadInput, message));
    };
    let name = |space: usize| composition.spaces[space].name.clone();
    let search = Search {
        max_rows: usize::try_from(DEFAULT_MAX_STATES).unwrap_or(usize::MAX),
        symmetry: true,
    };
    let mut tables = Vec::new();
    for group in groups {
        let found = with_levels(composition, system, &group, |levels| {
            bridge_tables(levels, search, &mut || !cancel.load(Ordering::Relaxed))
        });
        let found = found.ok_or_else(|| {
            Failure::new(
                ExitStatus::Undecided,
                "undecided: a home cannot be constructed",
            )
        })?;
        let rows = found.map_err(|reason| match reason {
            _ if cancel.load(Ordering::Relaxed) => {
                Failure::new(ExitStatus::Interrupted, "interrupted")
            }
            NoTable::Violated(violation) => Failure::new(
                ExitStatus::Violated,
                format!(
                    "violated: {}: {}\n  help: `cohkit check` lists the steps",
                    violation.property, violation.description
                ),
            ),
            NoTable::Incomplete(reason) => {
                Failure::new(ExitStatus::Undecided, format!("undecided: {reason}"))
            }
        })?;
        tables.extend(
            group
                .inner
                .iter()
                .zip(rows)
                .map(|(&inner, rows)| BridgeTable {
                    protocol: composition.name.clone(),
                    system: system.name.clone(),
                    names: [name(inner), name(group.outer)],
                    rows,
                }),
        );
    }
    Ok(tables)
}
