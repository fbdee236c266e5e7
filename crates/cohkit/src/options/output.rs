//! What becomes of results.

use crate::console::{Console, Terminal};
use clap::Args;
use cohkit_chart::Text;
use cohkit_sim::statistics::{Definition, Statistics};
use serde_json::Value;
use std::path::PathBuf;

/// The form of a result.
#[derive(Args, Debug)]
pub(crate) struct Form {
    /// Print JSON; what depends on the machine stands under the key `run`.
    #[arg(long, default_value_ifs([("csv", "true", "true"), ("stats", "true", "true")]))]
    pub json: bool,

    /// Print a table as CSV: what JSON tells, with a row for each result, without what depends on the machine.
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,

    /// Print what gem5 calls statistics: every number that JSON tells in a line of its own, behind its name, without what
    /// depends on the machine.
    #[arg(long, conflicts_with_all = ["json", "csv"])]
    pub stats: bool,
}

/// Options of every subcommand that prints a result.
#[derive(Args, Debug)]
pub(crate) struct Output {
    #[command(flatten)]
    pub form: Form,

    /// Draw charts with ASCII characters only, as on a terminal of a locale that is not UTF-8.
    #[arg(long)]
    pub ascii: bool,

    /// Write the result to this file instead of standard output: all of it, or nothing.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

impl Output {
    /// How charts are written.
    pub fn charts(&self, terminal: Terminal) -> Text {
        Text {
            width: terminal.width,
            ascii: self.ascii || terminal.ascii,
        }
    }
}

impl Form {
    /// This value as JSON, or as CSV or statistics where these are asked for.
    pub fn told(&self, value: Value, console: &Console) -> String {
        self.defined(value, None, console)
    }

    /// The same, where statistics are behind their definitions.
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
