//! `cohkit table`: an agent's controller, for people and programs.

use crate::console::Console;
use crate::deliver;
use crate::options::{Agent, Table};
use crate::outcome::{Failure, Outcome};
use crate::protocols::Source;
use cohkit_chart::Text;
use cohkit_protocol::construct::{construct, ConstructionError};
use cohkit_protocol::protocol::Home;
use cohkit_protocol::rows::{rows, Row, Rows};
use serde_json::json;
use std::fmt::Write;

/// A table, and what is to be said about it.
struct Tabulated {
    /// What it is a table of, in words.
    what: &'static str,
    rows: Rows,
    /// What is wrong with the protocol although there is a table.
    fault: Option<String>,
}

pub(crate) fn run(options: &Table, console: &mut Console) -> Result<Outcome, Failure> {
    let source = Source::read(&options.file, console)?;
    let table = tabulate(&source, options, console)?;
    let result = if options.output.json {
        json(&source, options, &table)
    } else if options.markdown {
        markdown(&source, &table)
    } else {
        text(&source, &table, console.terminal.width)
    };
    deliver(&result, &options.output, console)?;
    match table.fault {
        Some(fault) => Err(Failure::new(Outcome::No, fault)),
        None => Ok(Outcome::Yes),
    }
}

fn tabulate(source: &Source, options: &Table, console: &Console) -> Result<Tabulated, Failure> {
    let protocol = &source.protocol;
    let charts = Text {
        width: console.terminal.width,
        ascii: options.output.ascii,
    };
    let (what, controller) = match (options.agent, &protocol.home) {
        (Agent::Remote, _) => ("remote", &protocol.remote),
        (Agent::Home, Home::Controller(home)) => ("home", home),
        (Agent::Home, Home::Policy(_)) => {
            let construction = construct(protocol).map_err(|error| match error {
                ConstructionError::Refused(refusal) => source.refusal(&refusal, console),
                ConstructionError::Fault(fault) => {
                    Failure::new(Outcome::No, source.fault(&fault, &charts, console))
                }
            })?;
            return Ok(Tabulated {
                what: if options.merged {
                    "home for one remote, constructed and merged"
                } else {
                    "home for one remote, constructed"
                },
                rows: rows(protocol, &construction.flat(options.merged)),
                fault: construction
                    .fault()
                    .map(|fault| source.fault(fault, &charts, console)),
            });
        }
    };
    Ok(Tabulated {
        what,
        rows: rows(protocol, controller),
        fault: None,
    })
}

/// The JSON that `docs/output.md` describes.
fn json(source: &Source, options: &Table, table: &Tabulated) -> String {
    let agent = match options.agent {
        Agent::Home => "home",
        Agent::Remote => "remote",
    };
    let constructed = agent == "home" && matches!(source.protocol.home, Home::Policy(_));
    let value = json!({
        "protocol": source.protocol.name,
        "agent": agent,
        "constructed": constructed,
        "merged": constructed && options.merged,
        "states": table.rows.states,
        "transitions": table.rows.transitions,
        "events": table.rows.events,
        "rows": table.rows.rows,
        "run": { "file": source.path.display().to_string(), "version": env!("CARGO_PKG_VERSION") },
    });
    format!("{value:#}\n")
}

/// One line about the table.
fn summary(source: &Source, table: &Tabulated) -> String {
    let Rows {
        states,
        transitions,
        events,
        ..
    } = table.rows;
    let name = &source.protocol.name;
    format!(
        "{name}: {}: {states} states, {transitions} transitions, {events} events",
        table.what
    )
}

/// The cells of a row.
fn cells(row: &Row) -> [String; 4] {
    let guard = row.guard.as_ref().map(|guard| format!(" if {guard}"));
    [
        row.state.clone(),
        format!("{}{}", row.event, guard.unwrap_or_default()),
        row.actions.join(", "),
        row.next.clone().unwrap_or_default(),
    ]
}

const HEADINGS: [&str; 4] = ["state", "event", "actions", "next"];
const ACTIONS: usize = 2;

/// The table in aligned columns; the actions are wrapped if the terminal is too narrow.
fn text(source: &Source, table: &Tabulated, limit: Option<usize>) -> String {
    let rows: Vec<[String; 4]> = table.rows.rows.iter().map(cells).collect();
    let mut widths = HEADINGS.map(|heading| heading.chars().count());
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    if let Some(limit) = limit {
        let others = widths[0] + widths[1] + widths[3] + 9;
        widths[ACTIONS] = widths[ACTIONS].min(limit.saturating_sub(others).max(24));
    }
    let mut text = format!("{}\n\n", summary(source, table));
    let mut line = |cells: [&str; 4]| {
        let mut line = String::new();
        for (cell, width) in cells.iter().zip(widths) {
            let _ = write!(line, "{cell:width$} | ");
        }
        text += line.trim_end_matches([' ', '|']);
        text.push('\n');
    };
    line(HEADINGS);
    let mut above = "";
    for [state, event, actions, next] in &rows {
        // A state is named once, so that its rows stand together.
        let shown = if state == above { "" } else { state };
        above = state;
        let lines = wrap(actions, widths[ACTIONS]);
        line([shown, event, &lines[0], next]);
        for rest in &lines[1..] {
            line(["", "", rest, ""]);
        }
    }
    text
}

/// Words in lines of at most `room` characters, where no word is longer; at least one line.
fn wrap(words: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in words.split(' ') {
        let last = lines.len() - 1;
        let line = &mut lines[last];
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= room {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_string());
        }
    }
    lines
}

fn markdown(source: &Source, table: &Tabulated) -> String {
    let mut text = format!("{}\n\n", summary(source, table));
    let mut line = |cells: &[&str]| {
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    };
    line(&HEADINGS);
    line(&["---"; 4]);
    for row in &table.rows.rows {
        let cells = cells(row).map(|cell| cell.replace('|', "\\|"));
        line(&cells.each_ref().map(String::as_str));
    }
    text
}
