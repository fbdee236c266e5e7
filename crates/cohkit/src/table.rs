//! `cohkit table`: prints an agent's controller, or the bridges of a composition.

use crate::console::Console;
use crate::{deliver, options};
use cohkit_api::bridge_table::{self, tabulate_bridges, BridgeTable};
use cohkit_api::composition::CompositionSource;
use cohkit_api::controller_table::{tabulate, Agent, Table};
use cohkit_api::files;
use cohkit_api::outcome::{ExitStatus, Failure};
use cohkit_api::source::Source;
use cohkit_base::words::counted;
use cohkit_protocol::construct::fault::Fault;
use cohkit_protocol::rows::{Row, Rows};
use cohkit_protocol::text::composes;
use serde_json::Value;
use std::fmt::Write;

/// Prints a controller. A home with a fault is printed too, and its fault is returned as the error.
pub(crate) fn run(options: &options::Table, console: &mut Console) -> Result<ExitStatus, Failure> {
    let contents = files::read(&options.file)?;
    if composes(&contents) {
        return run_composition(options, &contents, console);
    }
    let source = Source::read(&options.file, console.terminal.colour)?;
    let charts = options.output.charts(console.terminal);
    let colour = console.terminal.colour;
    let fault_failure =
        |fault: &Fault| Failure::new(ExitStatus::Violated, source.fault(fault, &charts, colour));
    let table = tabulate(&source, options.agent, options.merged, console.interrupted);
    let table = table.map_err(|error| source.no_home(&error, &charts, colour))?;
    let Some(table) = table else {
        return Err(Failure::new(ExitStatus::Interrupted, "interrupted"));
    };
    let result = if options.output.form.json {
        options
            .output
            .form
            .format_output(table.json(&source), console)
    } else if options.markdown {
        markdown(&source, &table)
    } else {
        text(&source, &table, console.terminal.width)
    };
    deliver(&result, &options.output, console)?;
    match &table.fault {
        Some(table_fault) => Err(fault_failure(table_fault)),
        None => Ok(ExitStatus::Success),
    }
}

/// Prints the bridges of a composition.
fn run_composition(
    options: &options::Table,
    contents: &str,
    console: &mut Console,
) -> Result<ExitStatus, Failure> {
    let rejected_option = match (options.merged, options.agent) {
        (true, _) => Some("--merged"),
        (false, Agent::Remote) => Some("--agent remote"),
        (false, Agent::Home) => None,
    };
    if let Some(option) = rejected_option {
        let message = format!(
            "error: {option}: a composition has bridges, each an outer cache with the home over it"
        );
        return Err(Failure::new(ExitStatus::BadInput, message));
    }
    let source = CompositionSource::read(&options.file, contents, console.terminal.colour)?;
    let tables = tabulate_bridges(&source, console.interrupted)?;
    let result = if options.output.form.json {
        let file = options.file.display().to_string();
        let tables: Vec<Value> = tables.iter().map(|table| table.json(&file)).collect();
        let value = Value::from(tables);
        options.output.form.format_output(value, console)
    } else {
        let tables = tables.iter().map(|table| match options.markdown {
            true => bridge_markdown(table),
            false => bridge_text(table),
        });
        tables.collect::<Vec<_>>().join("\n")
    };
    deliver(&result, &options.output, console)?;
    Ok(ExitStatus::Success)
}

/// Table of a bridge in aligned columns. A state is printed once, in the first of its rows.
fn bridge_text(table: &BridgeTable) -> String {
    let rows = table.cells();
    let mut widths = bridge_table::HEADINGS.map(|heading| heading.chars().count());
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = format!("{}\n\n", table.summary());
    let mut line = |cells: [&str; 8]| {
        let cells = cells.iter().zip(widths);
        let line: String = cells
            .map(|(cell, width)| format!("{cell:width$} | "))
            .collect();
        text += line.trim_end_matches([' ', '|']);
        text.push('\n');
    };
    line(bridge_table::HEADINGS);
    let mut previous_state: &[String] = &[];
    for row in &rows {
        let mut cells = row.each_ref().map(String::as_str);
        if row[..STATE_COLUMNS] == *previous_state {
            cells[..STATE_COLUMNS].fill("");
        }
        previous_state = &row[..STATE_COLUMNS];
        line(cells);
    }
    text
}

/// Number of the first columns of a bridge's table, which give its state.
const STATE_COLUMNS: usize = 3;

/// Table of a bridge in Markdown.
fn bridge_markdown(table: &BridgeTable) -> String {
    let mut text = format!("{}\n\n", table.summary());
    let mut line = |cells: &[&str]| {
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    };
    line(&bridge_table::HEADINGS);
    line(&["---"; 8]);
    for row in &table.cells() {
        line(&row.each_ref().map(String::as_str));
    }
    text
}

/// Heading of a table: numbers of its states, transitions and events.
fn summary(source: &Source, table: &Table) -> String {
    let Rows {
        states,
        transitions,
        events,
        ..
    } = table.rows;
    let name = &source.protocol.name;
    format!(
        "{name}: {}: {}, {}, {}",
        table.title(),
        counted(states as u64, "state"),
        counted(transitions as u64, "transition"),
        counted(events as u64, "event"),
    )
}

/// Cells of a row, as text.
fn cells(row: &Row) -> [String; 4] {
    let guard = row.guard.as_ref().map(|guard| format!(" if {guard}"));
    [
        row.state.clone(),
        format!("{}{}", row.event, guard.unwrap_or_default()),
        row.actions.join(", "),
        row.next.clone().unwrap_or_default(),
    ]
}

/// Headings of the columns; guards are part of the event.
const HEADINGS: [&str; 4] = ["state", "event", "actions", "next"];
/// Index of the column that is wrapped.
const ACTIONS_COLUMN: usize = 2;

/// Table in aligned columns. `limit` is the width of the terminal in columns; actions are wrapped to fit it,
/// to at least 24 columns.
fn text(source: &Source, table: &Table, limit: Option<usize>) -> String {
    let rows: Vec<[String; 4]> = table.rows.rows.iter().map(cells).collect();
    let mut widths = HEADINGS.map(|heading| heading.chars().count());
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    if let Some(limit) = limit {
        let other_widths = widths[0] + widths[1] + widths[3] + 9;
        widths[ACTIONS_COLUMN] =
            widths[ACTIONS_COLUMN].min(limit.saturating_sub(other_widths).max(24));
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
    let mut previous_state = "";
    for [state, event, actions, next] in &rows {
        // A state is printed once, in the first of its rows.
        let state_cell = if state == previous_state { "" } else { state };
        previous_state = state;
        let lines = wrap(actions, widths[ACTIONS_COLUMN]);
        line([state_cell, event, &lines[0], next]);
        for continuation in &lines[1..] {
            line(["", "", continuation, ""]);
        }
    }
    let used_words = ACTION_MEANINGS.iter().filter(|(word, _)| {
        let is_sole_action = |row: &Row| row.actions.len() == 1 && row.actions[0] == *word;
        table.rows.rows.iter().any(is_sole_action)
    });
    for (index, (word, meaning)) in used_words.enumerate() {
        let _ = writeln!(
            text,
            "{}{word}: {meaning}",
            if index == 0 { "\n" } else { "" }
        );
    }
    text
}

/// Actions that stand for a whole row; explained below the tables in which they occur.
const ACTION_MEANINGS: [(&str, &str); 2] = [
    ("stall", "the message or local operation is stalled"),
    ("refuse", "the local operation or unlock is refused"),
];

/// Wraps words to lines of at most `max_width` characters, longer words excepted; returns at least one line.
pub(crate) fn wrap(words: &str, max_width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in words.split(' ') {
        let last = lines.len() - 1;
        let line = &mut lines[last];
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= max_width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_string());
        }
    }
    lines
}

/// Table in Markdown, without wrapped lines.
fn markdown(source: &Source, table: &Table) -> String {
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
