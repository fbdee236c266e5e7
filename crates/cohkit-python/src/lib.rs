//! The compiled half of the Python package: the private module `cohkit._cohkit`.
//!
//! Its functions and classes, such as `check`, `table` and `Protocol`, return the JSON of the command's `--json` as
//! text, made by the same functions. Long work runs outside of the interpreter, which continues and can be interrupted.
//!
//! The crate does not know `cohkit`, the command, or the exceptions, frames and experiments of the public package:
//! these are plain Python, in `python/cohkit`.
//!
//! The module runs only in an interpreter, so no Rust doctest can link it. The tests of the Python package run this
//! example:
//!
//! ```python
//! >>> import json
//! >>> import cohkit
//! >>> from cohkit import _cohkit
//! >>> msi = _cohkit.Protocol(cohkit.shipped("msi").text, "msi.coh")
//! >>> table = json.loads(_cohkit.table(msi, home=False, merged=True))
//! >>> table["states"], table["rows"][0]["actions"]
//! (11, ['send GetS'])
//!
//! ```

mod composition;
mod conversions;
mod exploration;
mod interruptible;
mod links;
mod litmus;
mod scenario;
mod shipped;
mod simulation;

use cohkit_api::any_number::AnyNumberVerdict;
use cohkit_api::controller_table::{construction_json, tabulate, Agent, Table};
use cohkit_api::model_check::{judge_model, model_diagnostics_json, ModelReadOptions};
use cohkit_api::protocol_check::{judge, simulation, Listener, Request, Systems};
use cohkit_api::starvation::{Fairness, StarvationVerdict};
use cohkit_api::{
    diagnostics_json, Checkpoints, Failure, GuaranteeVerdict, InputError, Source, Verdict,
};
use cohkit_base::sequence::Sequence;
use cohkit_chart::Text;
use cohkit_engine::model::Deadlock;
use cohkit_murphi::Dialect;
use cohkit_protocol::construct::ConstructionError;
use cohkit_protocol::controller::Controller;
use cohkit_protocol::protocol::Home;
use interruptible::interruptible;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyType;
use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pyo3::create_exception!(
    _cohkit,
    RefusedError,
    pyo3::exceptions::PyException,
    "Reason of a failed operation: its kind, and the details as JSON text."
);

/// Exception for a list of diagnostics; the public package converts it to a `TextError`.
fn text_error(diagnostics: &Value) -> PyErr {
    RefusedError::new_err(("text", diagnostics.to_string()))
}

/// Message of a failure in one line, without the prefix and line breaks of a terminal.
fn one_line_message(failure: &Failure) -> String {
    let message = failure.message.replace("\n  help: ", "; ");
    message
        .strip_prefix("error: ")
        .unwrap_or(&message)
        .to_string()
}

/// Exception for an invalid request; the public package converts it to an `InputError`.
fn input_error(message: &str) -> PyErr {
    RefusedError::new_err(("input", json!(message).to_string()))
}

/// A parsed protocol.
#[pyclass(frozen, module = "cohkit._cohkit")]
struct Protocol {
    /// Parsed text with its path.
    source: Arc<Source>,
    /// Controllers of the home by number of remotes, cached because a construction takes a while.
    homes: Mutex<BTreeMap<u16, Controller>>,
}

#[pymethods]
impl Protocol {
    /// Parses a protocol; `file` is the name shown in messages.
    ///
    /// # Errors
    /// The text has errors; the exception contains all diagnostics.
    #[new]
    fn new(py: Python<'_>, text: String, file: String) -> PyResult<Protocol> {
        let (file_name, source_text) = (file.clone(), text.clone());
        match py.detach(|| Source::parse(file.into(), text)) {
            Ok(source) => Ok(Protocol {
                source: Arc::new(source),
                homes: Mutex::default(),
            }),
            Err(diagnostics) => Err(text_error(&diagnostics_json(
                &diagnostics,
                &file_name,
                &source_text,
            ))),
        }
    }

    /// Protocols are equal if their texts and paths are equal.
    fn __eq__(&self, other: &Protocol) -> bool {
        self.file() == other.file() && self.text() == other.text()
    }

    /// Hash that agrees with `__eq__`.
    fn __hash__(&self) -> u64 {
        let mut hasher = std::hash::DefaultHasher::new();
        (self.file(), self.text()).hash(&mut hasher);
        hasher.finish()
    }

    /// Pickles the text and the path.
    fn __reduce__(slf: &Bound<'_, Protocol>) -> (Py<PyType>, (String, String)) {
        let protocol = slf.get();
        let values = (protocol.text().to_string(), protocol.file());
        (slf.get_type().unbind(), values)
    }

    /// Name of the protocol.
    #[getter]
    fn name(&self) -> &str {
        &self.source.protocol.name
    }

    /// Path of the text.
    #[getter]
    fn file(&self) -> String {
        self.source.path.display().to_string()
    }

    /// Text of the protocol.
    #[getter]
    fn text(&self) -> &str {
        &self.source.text
    }

    /// True if the home is a policy, from which a controller is constructed.
    #[getter]
    fn has_policy(&self) -> bool {
        matches!(self.source.protocol.home, Home::Policy(_))
    }

    /// Names and sizes of the systems to check: `(name, remotes, lines)`.
    #[getter]
    fn systems(&self) -> Vec<(String, u16, u8)> {
        let systems = self.source.protocol.systems.iter();
        systems
            .map(|system| (system.name.clone(), system.remotes.total(), system.lines))
            .collect()
    }

    fn __repr__(&self) -> String {
        format!("<cohkit.Protocol {} of {}>", self.name(), self.file())
    }
}

/// Collects verdicts as JSON.
struct Verdicts {
    /// JSON entries of all verdicts so far.
    values: Vec<Value>,
    /// Folder of checkpoints, if one was requested.
    checkpoints: Option<Checkpoints>,
}

impl Listener for Verdicts {
    fn verdict(&mut self, verdict: &Verdict, run: Value) -> Result<(), Failure> {
        self.values.push(verdict.json(run));
        Ok(())
    }

    fn guaranteed(&mut self, verdict: &GuaranteeVerdict, source: &Source) -> Result<(), Failure> {
        self.values.push(verdict.json(source));
        Ok(())
    }

    fn any_number(&mut self, verdict: &AnyNumberVerdict, source: &Source) -> Result<(), Failure> {
        self.values.push(verdict.json(source));
        Ok(())
    }

    fn starvation(&mut self, verdict: &StarvationVerdict, source: &Source) -> Result<(), Failure> {
        self.values.push(verdict.json(source));
        Ok(())
    }

    fn checkpoints(&self) -> Option<&Checkpoints> {
        self.checkpoints.as_ref()
    }
}

/// Search options of a system or a model.
#[derive(Clone, FromPyObject)]
#[pyo3(from_item_all)]
struct SearchOptions {
    /// True to explore states that differ only by a permutation of caching agents or scalarset values once.
    symmetry: bool,
    /// True to store a 64-bit signature of each expanded state instead of the state.
    hash_compaction: bool,
    /// Maximum number of search threads; by default, and at most, the number of processors.
    threads: Option<usize>,
    /// Maximum number of states.
    max_states: Option<u64>,
    /// Maximum number of steps from an initial state; with `simulate`, of one walk.
    max_depth: Option<u64>,
    /// Maximum memory for states, in bytes; by default three quarters of free memory.
    max_memory: Option<u64>,
    /// True to record coverage.
    coverage: bool,
    /// Total steps of random walks, and their seed.
    simulate: Option<(u64, u64)>,
    /// Folder, true to resume from its checkpoints, and seconds between checkpoints.
    checkpoint: Option<(PathBuf, bool, u64)>,
    /// True to keep most states in that folder.
    disk: bool,
}

impl SearchOptions {
    /// Returns the request for these systems. `capacity` is the channel capacity in messages.
    fn request<'a>(
        &self,
        systems: Systems,
        capacity: Option<u8>,
        cancel: &'a AtomicBool,
    ) -> Request<'a> {
        Request {
            systems,
            capacity,
            symmetry: self.symmetry,
            hash_compaction: self.hash_compaction,
            disk: self.disk,
            threads: self.threads,
            max_states: self.max_states,
            max_depth: self.max_depth,
            max_memory: self.max_memory,
            simulation: (self.simulate)
                .map(|(steps, seed)| simulation(steps, seed, self.max_depth)),
            coverage: self.coverage,
            any_number: false,
            fairness: None,
            cancel,
        }
    }

    /// Opens the folder for checkpoints, if one was requested.
    fn checkpoints(&self) -> Result<Option<Checkpoints>, Failure> {
        let folder = self.checkpoint.as_ref();
        let checkpoints = folder.map(|(folder, resumes, seconds)| {
            Checkpoints::in_folder(folder, *resumes, Duration::from_secs(*seconds))
        });
        checkpoints.transpose()
    }
}

/// Verdicts on the systems of a protocol, as JSON text like that of `cohkit check --json`. `size` (numbers of remotes
/// and lines) selects one system instead of the declared ones, and `capacity` is the channel capacity in messages.
/// `any_number` is true to add a verdict for every number of remotes; `fairness` is `weak` or `strong` to add verdicts on
/// transactions that never end.
///
/// # Errors
/// A system does not exist or cannot be checked, or the user interrupts the check. A fault of the constructed home is
/// a verdict, not an error.
#[pyfunction]
#[pyo3(signature = (protocol, *, systems, size, capacity, any_number, fairness, search_options))]
#[expect(
    clippy::too_many_arguments,
    reason = "they are keyword arguments of a Python function"
)]
fn check(
    py: Python<'_>,
    protocol: &Protocol,
    systems: Option<Vec<String>>,
    size: Option<(u16, u8)>,
    capacity: Option<u8>,
    any_number: bool,
    fairness: Option<&str>,
    search_options: SearchOptions,
) -> PyResult<String> {
    // The caller has rejected other words.
    let fairness = fairness.map(|kind| match kind {
        "weak" => Fairness::Weak,
        _ => Fairness::Strong,
    });
    let source = Arc::clone(&protocol.source);
    let systems = match (systems, size) {
        (_, Some((remotes, lines))) => Systems::Sized { remotes, lines },
        (Some(names), None) => Systems::Named(names),
        (None, None) => Systems::Declared,
    };
    let result = interruptible(py, move |cancel| -> Result<String, InputError> {
        let request = Request {
            any_number,
            fairness,
            ..search_options.request(systems, capacity, cancel)
        };
        let mut verdicts = Verdicts {
            values: Vec::new(),
            checkpoints: search_options.checkpoints()?,
        };
        judge(Source::clone(&source), &request, &mut verdicts)?;
        Ok(Value::Array(verdicts.values).to_string())
    })?;
    result.map_err(|error| check_error(&protocol.source, error))
}

/// Exception for a check that ended without a verdict.
fn check_error(source: &Source, error: InputError) -> PyErr {
    match error {
        InputError::Refused(refusal) => text_error(&json!([source.refusal_json(&refusal)])),
        InputError::Input { message, help } => {
            let help = help.map_or(String::new(), |help| format!("; {help}"));
            input_error(&format!("{}: {message}{help}", source.path.display()))
        }
        InputError::Failure(failure) => input_error(&failure.message),
    }
}

/// Verdict on a Murphi model given as text, as JSON text like that of `cohkit check --json`. `file` names the model,
/// `dialect` is `cmurphi`, `rumur` or `None` for either, and `deadlock` is `stuttering`, `stuck` or `off`.
///
/// # Errors
/// The model has errors or cannot be checked, a name is unknown, or the user interrupts the check.
#[pyfunction]
#[pyo3(signature = (text, *, file, dialect, deadlock, search_options))]
fn check_model(
    py: Python<'_>,
    text: String,
    file: String,
    dialect: Option<String>,
    deadlock: String,
    search_options: SearchOptions,
) -> PyResult<String> {
    let unknown_value =
        |category: &str, name: &str| input_error(&format!("there is no {category} `{name}`"));
    let read_options = ModelReadOptions {
        dialect: match dialect.as_deref() {
            None => Dialect::Any,
            Some("cmurphi") => Dialect::CMurphi,
            Some("rumur") => Dialect::Rumur,
            Some(unknown) => return Err(unknown_value("dialect", unknown)),
        },
        deadlock: match deadlock.as_str() {
            "stuttering" => Deadlock::Stuttering,
            "stuck" => Deadlock::Stuck,
            "off" => Deadlock::Off,
            unknown => return Err(unknown_value("kind of deadlock", unknown)),
        },
    };
    let result = interruptible(
        py,
        move |cancel| -> Result<String, Result<Failure, Value>> {
            let path = Path::new(&file);
            let (model, _) = (read_options.read(path, &text))
                .map_err(|errors| Err(model_diagnostics_json(&errors, &file, &text)))?;
            let request = search_options.request(Systems::Declared, None, cancel);
            let checkpoints = search_options.checkpoints().map_err(Ok)?;
            let result = judge_model(&model, path, &request, &|_| (), checkpoints.as_ref());
            Ok(result.map_err(Ok)?.json(&model).to_string())
        },
    )?;
    result.map_err(|error: Result<Failure, Value>| match error {
        Ok(failure) => input_error(&failure.message),
        Err(diagnostics) => text_error(&diagnostics),
    })
}

/// Exception for a protocol without a home: diagnostics of the unsupported form, or the fault of the construction.
fn no_home_error(source: &Source, error: ConstructionError) -> PyErr {
    match error {
        ConstructionError::Refused(refusal) => text_error(&json!([source.refusal_json(&refusal)])),
        ConstructionError::Fault(fault) => {
            RefusedError::new_err(("fault", source.fault_json(&fault).to_string()))
        }
    }
}

/// Table of an agent, as JSON text like that of `cohkit table --json`. `home` selects the home, otherwise the remote;
/// with `merged`, equivalent states of a constructed home are merged.
///
/// # Errors
/// No home can be constructed, its construction finds a fault, or the user interrupts it.
#[pyfunction]
#[pyo3(signature = (protocol, *, home, merged))]
fn table(py: Python<'_>, protocol: &Protocol, home: bool, merged: bool) -> PyResult<String> {
    let source = Arc::clone(&protocol.source);
    let agent = if home { Agent::Home } else { Agent::Remote };
    let table = interruptible(py, move |cancel| {
        match tabulate(&source, agent, merged, cancel)? {
            Some(Table {
                fault: Some(fault), ..
            }) => Err(ConstructionError::Fault(Box::new(fault))),
            Some(table) => Ok(table.json(&source).to_string()),
            // Cancelled: the caller no longer waits for a result.
            None => Ok(String::new()),
        }
    })?;
    table.map_err(|error| no_home_error(&protocol.source, error))
}

/// Sizes, notes and fault of the home that a policy constructs, as JSON text; `None` without a policy.
#[pyfunction]
fn construct(py: Python<'_>, protocol: &Protocol) -> PyResult<Option<String>> {
    let source = Arc::clone(&protocol.source);
    let result = interruptible(py, move |cancel| construction_json(&source, cancel))?;
    match result {
        Ok(value) => Ok(value.map(|value| value.to_string())),
        Err(error) => Err(no_home_error(&protocol.source, error)),
    }
}

/// Parses a message sequence, given as JSON text.
fn parse_sequence(json: &str) -> PyResult<Sequence> {
    serde_json::from_str(json)
        .map_err(|error| PyValueError::new_err(format!("this is not a message sequence: {error}")))
}

/// Draws a message sequence, given as JSON text, for a terminal of `width` columns.
#[pyfunction]
#[pyo3(signature = (json, *, width, ascii_only))]
fn chart_text(json: &str, width: Option<usize>, ascii_only: bool) -> PyResult<String> {
    Ok(cohkit_chart::text(
        &parse_sequence(json)?,
        &Text {
            width,
            ascii: ascii_only,
        },
    ))
}

/// Draws a message sequence, given as JSON text, as SVG.
#[pyfunction]
#[pyo3(signature = (json, *, title))]
fn chart_svg(json: &str, title: &str) -> PyResult<String> {
    Ok(cohkit_chart::svg(&parse_sequence(json)?, title))
}

/// Start of a help text for an unknown name: the similar name that may be meant, if any.
#[pyfunction]
fn did_you_mean(unknown_name: &str, names: Vec<String>) -> String {
    cohkit_base::words::did_you_mean(unknown_name, names.iter().map(String::as_str))
}

/// The compiled half of the package `cohkit`.
#[pymodule]
mod _cohkit {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::{
        chart_svg, chart_text, check, check_model, construct, did_you_mean, table, Protocol,
        RefusedError,
    };
    #[pymodule_export]
    use crate::composition::{bridges, check_composition, composes, Composition};
    #[pymodule_export]
    use crate::exploration::Exploration;
    #[pymodule_export]
    use crate::links::link;
    #[pymodule_export]
    use crate::litmus::{litmus, Litmus};
    #[pymodule_export]
    use crate::shipped::{experiments, shipped};
    #[pymodule_export]
    use crate::simulation::{current_name, platforms, play, simulate, Machine, Play, Simulation};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
