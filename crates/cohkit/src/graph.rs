//! `cohkit check --graph`: the state graph of one small model in a file.

use crate::check_request::systems;
use crate::options::Check;
use cohkit_api::files;
use cohkit_api::outcome::{ExitStatus, Failure};
use cohkit_api::protocol_check::Systems;
use cohkit_api::source::Source;
use cohkit_engine::graph::{graph, Graph};
use cohkit_engine::model::Model;
use cohkit_engine::trace::Trace;
use std::path::Path;

/// Maximum number of states; a larger graph is unreadable.
const MAX_STATES: usize = 10_000;

/// File format of a graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum GraphFormat {
    /// Graphviz.
    Dot,
    /// JSON, for scripts.
    Json,
}

/// Checks that there is one input file, and that a graph can be written to `file`.
pub(crate) fn reject_unsuitable_options(options: &Check, file: &Path) -> Result<(), Failure> {
    if options.files.len() > 1 {
        let reason = "is for one state graph, but several files are given";
        return Err(input_error(file, reason, "check them one by one"));
    }
    graph_format(file)?;
    files::try_file(file)
}

/// Format that the extension of the file selects.
fn graph_format(file: &Path) -> Result<GraphFormat, Failure> {
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("dot") => Ok(GraphFormat::Dot),
        Some("json") => Ok(GraphFormat::Json),
        _ => Err(input_error(
            file,
            "ends in neither `.dot` nor `.json`",
            "the extension selects the format: `.dot` for Graphviz, `.json` for JSON",
        )),
    }
}

/// Rejects several systems, as a file has one graph.
pub(crate) fn reject_several_systems(options: &Check, source: &Source) -> Result<(), Failure> {
    let names: Vec<String> = match systems(options) {
        Systems::Sized { .. } => return Ok(()),
        Systems::Named(names) => names,
        Systems::Declared => (source.protocol.systems.iter())
            .map(|system| system.name.clone())
            .collect(),
    };
    if names.len() > 1 {
        let quoted_names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        return Err(Failure::new(
            ExitStatus::BadInput,
            format!(
                "error: {}: a state graph shows one system, not {}\n  help: name it with `--system`",
                source.path.display(),
                quoted_names.join(" and ")
            ),
        ));
    }
    Ok(())
}

/// Failure that names the graph's file, with a remedy.
fn input_error(file: &Path, reason: &str, help: &str) -> Failure {
    let file = file.display();
    Failure::new(
        ExitStatus::BadInput,
        format!("error: {file}: {reason}\n  help: {help}"),
    )
}

/// Writes the state graph of a model, with the steps of `trace` marked.
///
/// # Errors
/// The model has more than [`MAX_STATES`] states, or the file cannot be written.
pub(crate) fn write(file: &Path, model: &Model, trace: Option<&Trace>) -> Result<(), Failure> {
    let form = graph_format(file)?;
    let graph: Graph = graph(model, MAX_STATES, trace).map_err(|reason| {
        let reason = format!("{reason}; nothing was written");
        input_error(file, &reason, "a smaller system has fewer states")
    })?;
    let text = match form {
        GraphFormat::Dot => graph.dot(),
        GraphFormat::Json => {
            let value = serde_json::to_value(&graph).expect("a graph has only string keys");
            format!("{value:#}\n")
        }
    };
    files::write(file, &text)
}
