//! Class `Composition` and the check of compositions. A composition keeps the text that it was parsed from, so that
//! it can be compared and pickled.

use crate::interruptible::interruptible;
use crate::{
    check_error, input_error, one_line_message, text_error, Protocol, SearchOptions, Verdicts,
};
use cohkit_api::bridge_table::tabulate_bridges;
use cohkit_api::composition::{CompositionSource, LowerLevel, MachineProtocols, UsedFile};
use cohkit_api::protocol_check::{judge, Systems};
use cohkit_api::{diagnostics_json, InputError, JointOptions, Source};
use cohkit_protocol::text;
use pyo3::prelude::*;
use pyo3::types::PyType;
use serde_json::Value;
use std::hash::{Hash, Hasher};
use std::path::Path;
use std::sync::Arc;

/// File that a composition uses: its name in the composition, its path, and its text.
type UsedFileTuple = (String, String, String);

/// A composition of protocols, with the files that it uses.
#[pyclass(frozen, module = "cohkit._cohkit")]
pub(crate) struct Composition {
    /// Text of the composition.
    text: String,
    /// Parsed composition, with the files that it uses.
    source_files: Arc<CompositionSource>,
}

#[pymethods]
impl Composition {
    /// Parses a composition. `file` is its path, for messages. A used file is taken from `uses`, from the folder of
    /// `file`, or from the shipped files, in this order.
    ///
    /// # Errors
    /// The composition or a used file has errors; the exception contains all diagnostics.
    #[new]
    fn new(
        py: Python<'_>,
        text: String,
        file: String,
        uses: Option<Vec<UsedFileTuple>>,
    ) -> PyResult<Composition> {
        let uses = uses.unwrap_or_default().into_iter();
        let provided_files = uses.map(|(file, path, text)| UsedFile {
            file,
            path: path.into(),
            text,
        });
        let provided_files: Vec<UsedFile> = provided_files.collect();
        match py.detach(|| CompositionSource::parse(Path::new(&file), &text, &provided_files)) {
            Ok(source_files) => Ok(Composition {
                text,
                source_files: Arc::new(source_files),
            }),
            Err(diagnostics) => Err(text_error(&diagnostics_json(&diagnostics, &file, &text))),
        }
    }

    /// Compares texts and paths, also those of the files used.
    fn __eq__(&self, other: &Composition) -> bool {
        self.file() == other.file() && self.text == other.text && self.uses() == other.uses()
    }

    /// Hash that agrees with `__eq__`.
    fn __hash__(&self) -> u64 {
        let mut hasher = std::hash::DefaultHasher::new();
        (self.file(), &self.text, self.uses()).hash(&mut hasher);
        hasher.finish()
    }

    /// Pickles the text, the path, and the files used.
    fn __reduce__(
        slf: &Bound<'_, Composition>,
    ) -> (Py<PyType>, (String, String, Vec<UsedFileTuple>)) {
        let composition = slf.get();
        let values = (
            composition.text.clone(),
            composition.file(),
            composition.uses(),
        );
        (slf.get_type().unbind(), values)
    }

    /// Name of the composition.
    #[getter]
    fn name(&self) -> &str {
        &self.source_files.composition().name
    }

    /// Path of the composition.
    #[getter]
    fn file(&self) -> String {
        self.source_files.path().display().to_string()
    }

    /// Text of the composition.
    #[getter]
    fn text(&self) -> &str {
        &self.text
    }

    /// Files used: name in the composition, path, and text.
    #[getter]
    fn uses(&self) -> Vec<UsedFileTuple> {
        let uses = self.source_files.used_files().into_iter();
        uses.map(|used| (used.file, used.path.display().to_string(), used.text))
            .collect()
    }

    /// Names of the spaces, one for each file used.
    #[getter]
    fn spaces(&self) -> Vec<String> {
        let spaces = self.source_files.composition().spaces.iter();
        spaces.map(|space| space.name.clone()).collect()
    }

    /// Names of the systems to check.
    #[getter]
    fn systems(&self) -> Vec<String> {
        let systems = self.source_files.composition().systems.iter();
        systems.map(|system| system.name.clone()).collect()
    }

    fn __repr__(&self) -> String {
        format!("<cohkit.Composition {} of {}>", self.name(), self.file())
    }
}

/// Checks all parts of a composition's systems, or of the named ones, each part by itself and pairs of levels
/// together. Returns the verdicts as JSON text like that of `cohkit check --json`. `capacity` is the channel
/// capacity in messages.
///
/// # Errors
/// A system of this name does not exist, a part cannot be checked, or the user interrupts the check.
#[pyfunction]
#[pyo3(signature = (composition, *, systems, capacity, search_options))]
pub(crate) fn check_composition(
    py: Python<'_>,
    composition: &Composition,
    systems: Option<Vec<String>>,
    capacity: Option<u8>,
    search_options: SearchOptions,
) -> PyResult<String> {
    let source_files = Arc::clone(&composition.source_files);
    let result = interruptible(
        py,
        move |cancel| -> Result<String, Box<(Option<Source>, InputError)>> {
            let composition_error = |error: InputError| Box::new((None, error));
            let selected = match &systems {
                None => source_files.composition().systems.iter().collect(),
                Some(names) => source_files
                    .named_systems(names)
                    .map_err(composition_error)?,
            };
            let mut verdicts = Verdicts {
                values: Vec::new(),
                checkpoints: (search_options.checkpoints())
                    .map_err(|failure| composition_error(failure.into()))?,
            };
            for system in selected {
                for source in source_files.parts(system) {
                    let request = search_options.request(Systems::Declared, capacity, cancel);
                    judge(source.clone(), &request, &mut verdicts)
                        .map_err(|error| Box::new((Some(source), error)))?;
                }
                let options = JointOptions {
                    max_states: search_options.max_states,
                    symmetry: search_options.symmetry,
                };
                let levels = source_files.levels_json(system, options, cancel);
                verdicts.values.extend(levels);
            }
            Ok(Value::Array(verdicts.values).to_string())
        },
    )?;
    result.map_err(|sourced_error| match *sourced_error {
        (Some(source), error) => check_error(&source, error),
        (None, error) => input_error(&one_line_message(
            &error.failure(composition.source_files.path()),
        )),
    })
}

/// Returns the tables of a composition's bridges as JSON text like that of `cohkit table --json`.
///
/// # Errors
/// The composition has no levels, a property is violated, the search is incomplete, or the user interrupts it.
#[pyfunction]
pub(crate) fn bridges(py: Python<'_>, composition: &Composition) -> PyResult<String> {
    let source_files = Arc::clone(&composition.source_files);
    let file = source_files.path().display().to_string();
    let tables = interruptible(py, move |cancel| tabulate_bridges(&source_files, cancel))?;
    let tables = tables.map_err(|failure| input_error(&one_line_message(&failure)))?;
    let tables = tables.iter().map(|table| table.json(&file)).collect();
    Ok(Value::Array(tables).to_string())
}

/// Returns true if the text is a composition, false if it is a protocol.
#[pyfunction]
pub(crate) fn composes(text: &str) -> bool {
    text::composes(text)
}

/// Protocols that a machine executes: one, or a composition.
#[derive(FromPyObject)]
pub(crate) enum ExecutableProtocol<'py> {
    /// A protocol.
    #[pyo3(transparent)]
    Single(PyRef<'py, Protocol>),
    /// A composition of two levels, or of both directions between a host and a device.
    #[pyo3(transparent)]
    Composed(PyRef<'py, Composition>),
}

impl ExecutableProtocol<'_> {
    /// Returns the protocols.
    ///
    /// # Errors
    /// No machine executes this kind of composition.
    pub(crate) fn machine_protocols(&self) -> PyResult<MachineProtocols> {
        match self {
            ExecutableProtocol::Single(protocol) => {
                Ok(MachineProtocols::Single(Source::clone(&protocol.source)))
            }
            ExecutableProtocol::Composed(composition) => composition
                .source_files
                .machine_protocols()
                .map_err(|failure| input_error(&one_line_message(&failure))),
        }
    }

    /// Returns the protocol that threads run on, or that of the upper level and those of the lower level.
    ///
    /// # Errors
    /// The composition is not two levels.
    pub(crate) fn upper_and_lower(&self) -> PyResult<(Source, Vec<LowerLevel>)> {
        match self {
            ExecutableProtocol::Single(protocol) => {
                Ok((Source::clone(&protocol.source), Vec::new()))
            }
            ExecutableProtocol::Composed(composition) => composition
                .source_files
                .upper_and_lower()
                .map_err(|failure| input_error(&one_line_message(&failure))),
        }
    }

    /// Path of the protocol or composition.
    pub(crate) fn file(&self) -> String {
        match self {
            ExecutableProtocol::Single(protocol) => protocol.file(),
            ExecutableProtocol::Composed(composition) => composition.file(),
        }
    }
}
