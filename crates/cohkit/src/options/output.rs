//! Options for the form and destination of results.

use crate::console::{Console, Terminal};
use clap::Args;
use cohkit_chart::Text;
use cohkit_sim::statistics::{Definition, Statistics};
use serde_json::Value;
use std::path::PathBuf;

/// Form of a result.
#[derive(Args, Debug)]
pub(crate) struct Form {
    /// Print JSON; machine-dependent values are under the key `run`.
    #[arg(long, default_value_ifs([("csv", "true", "true"), ("stats", "true", "true")]))]
    pub json: bool,

    /// Print the values of the JSON output as CSV, one row per result, without machine-dependent values.
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,

    /// Print statistics in gem5's format: each number of the JSON output on a line after its name, without
    /// machine-dependent values.
    #[arg(long, conflicts_with_all = ["json", "csv"])]
    pub stats: bool,
}

/// Options of every subcommand that prints a result.
#[derive(Args, Debug)]
pub(crate) struct Output {
    #[command(flatten)]
    pub form: Form,

    /// Draw charts in ASCII, the default on a terminal without a UTF-8 locale.
    #[arg(long)]
    pub ascii: bool,

    /// Write the result to this file instead of standard output; the file is written completely or not at all.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

impl Output {
    /// Returns the form of charts.
    pub fn charts(&self, terminal: Terminal) -> Text {
        Text {
            width: terminal.width,
            ascii: self.ascii || terminal.ascii,
        }
    }
}

impl Form {
    /// Returns a value as JSON, CSV or statistics, as requested; JSON if nothing is. The command line is added
    /// to the JSON.
    pub fn format_output(&self, value: Value, console: &Console) -> String {
        self.defined(value, None, console)
    }

    /// Returns a value in the requested form. Statistics in gem5's format are followed by the definitions of
    /// `statistics`.
    pub fn defined(
        &self,
        mut value: Value,
        statistics: Option<&Statistics>,
        console: &Console,
    ) -> String {
        let values = statistics.map_or(&[][..], |statistics| &statistics.values);
        let definitions: Vec<Definition> =
            values.iter().map(|&(definition, _)| definition).collect();
        match (self.csv, self.stats) {
            (true, _) => crate::csv::table(&value),
            (_, true) => crate::csv::statistics(&value, &definitions),
            _ => {
                add_command(&mut value, &console.command);
                format!("{value:#}\n")
            }
        }
    }
}

/// Records the command line with the machine-dependent part of each result.
fn add_command(value: &mut Value, command: &str) {
    let results = match value {
        Value::Array(results) => results.as_mut_slice(),
        result => std::slice::from_mut(result),
    };
    for result in results {
        if let Some(run) = result.get_mut("run").and_then(Value::as_object_mut) {
            run.insert("command".to_string(), command.into());
        }
    }
}
