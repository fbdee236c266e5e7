//! Compositions of protocols.

use crate::interruptible::interruptible;
use crate::{
    check_error, input_error, one_line_message, text_error, Protocol, SearchOptions, Verdicts,
};
use cohkit_api::composition::{CompositionSource, MachineProtocols, UsedFile};
use cohkit_api::protocol_check::{judge, Systems};
use cohkit_api::{diagnostics_json, InputError, Source};
use cohkit_protocol::text;
use pyo3::prelude::*;
use pyo3::types::PyType;
use serde_json::Value;
use std::hash::{Hash, Hasher};
use std::path::Path;
use std::sync::Arc;

/// File that a composition uses: its name in the composition, its path, and its text.
type Use = (String, String, String);

/// A composition of protocols, with the files that it uses.
#[pyclass(frozen, module = "cohkit._cohkit")]
pub(crate) struct Composition {
    text: String,
    composed: Arc<CompositionSource>,
}

#[pymethods]
impl Composition {
    /// Parses a composition. `file` is the name shown in messages; used files that are not given are searched beside
    /// it.
    #[new]
    fn new(
        py: Python<'_>,
        text: String,
        file: String,
        uses: Option<Vec<Use>>,
    ) -> PyResult<Composition> {
        let uses = uses.unwrap_or_default().into_iter();
        let given_files = uses.map(|(file, path, text)| UsedFile {
            file,
            path: path.into(),
            text,
        });
        let given_files: Vec<UsedFile> = given_files.collect();
        match py.detach(|| CompositionSource::parse(Path::new(&file), &text, &given_files)) {
            Ok(composed) => Ok(Composition {
                text,
                composed: Arc::new(composed),
            }),
            Err(diagnostics) => Err(text_error(&diagnostics_json(&diagnostics, &file, &text))),
        }
    }

    /// Compositions are equal if their texts and paths are equal, and those of the files that they use.
    fn __eq__(&self, other: &Composition) -> bool {
        self.file() == other.file()
            && self.text == other.text
            && self.used_files() == other.used_files()
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = std::hash::DefaultHasher::new();
        (self.file(), &self.text, self.used_files()).hash(&mut hasher);
        hasher.finish()
    }

    /// Pickles the text, the path, and the files used.
    fn __reduce__(slf: &Bound<'_, Composition>) -> (Py<PyType>, (String, String, Vec<Use>)) {
        let composition = slf.get();
        let values = (
            composition.text.clone(),
            composition.file(),
            composition.used_files(),
        );
        (slf.get_type().unbind(), values)
    }

    /// Name of the composition.
    #[getter]
    fn name(&self) -> &str {
        &self.composed.composition().name
    }

    /// Path of the text.
    #[getter]
    fn file(&self) -> String {
        self.composed.path().display().to_string()
    }

    /// Text of the composition.
    #[getter]
    fn text(&self) -> &str {
        &self.text
    }

    /// Files used: name in the composition, path, and text.
    #[getter]
    fn uses(&self) -> Vec<Use> {
        let uses = self.composed.used_files().into_iter();
        uses.map(|used| (used.file, used.path.display().to_string(), used.text))
            .collect()
    }

    /// Names of the spaces, one for each file used.
    #[getter]
    fn spaces(&self) -> Vec<String> {
        let spaces = self.composed.composition().spaces.iter();
        spaces.map(|space| space.name.clone()).collect()
    }

    /// Names of the systems to check.
    #[getter]
    fn systems(&self) -> Vec<String> {
        let systems = self.composed.composition().systems.iter();
        systems.map(|system| system.name.clone()).collect()
    }

    fn __repr__(&self) -> String {
        format!("<cohkit.Composition {} of {}>", self.name(), self.file())
    }
}

/// Verdicts on all parts of a composition's systems, as JSON text like that of `cohkit check --json`.
#[pyfunction]
#[pyo3(signature = (composition, *, systems, capacity, looking))]
pub(crate) fn check_composition(
    py: Python<'_>,
    composition: &Composition,
    systems: Option<Vec<String>>,
    capacity: Option<u8>,
    looking: SearchOptions,
) -> PyResult<String> {
    let composed = Arc::clone(&composition.composed);
    let result = interruptible(
        py,
        move |cancel| -> Result<String, Box<(Option<Source>, InputError)>> {
            let composition_error = |error: InputError| Box::new((None, error));
            let selected = match &systems {
                None => composed.composition().systems.iter().collect(),
                Some(names) => composed.named_systems(names).map_err(composition_error)?,
            };
            let mut verdicts = Verdicts {
                values: Vec::new(),
                checkpoints: (looking.checkpoints())
                    .map_err(|failure| composition_error(failure.into()))?,
            };
            for system in selected {
                for source in composed.parts(system) {
                    let request = looking.request(Systems::Declared, capacity, cancel);
                    judge(source.clone(), &request, &mut verdicts)
                        .map_err(|error| Box::new((Some(source), error)))?;
                }
                let levels = composed.levels_json(system, looking.max_states, cancel);
                verdicts.values.extend(levels);
            }
            Ok(Value::Array(verdicts.values).to_string())
        },
    )?;
    result.map_err(|sourced_error| match *sourced_error {
        (Some(source), error) => check_error(&source, error),
        (None, error) => input_error(&one_line_message(
            &error.failure(composition.composed.path()),
        )),
    })
}

/// True if the text is a composition.
#[pyfunction]
pub(crate) fn composes(text: &str) -> bool {
    text::composes(text)
}

/// Protocols that a machine executes: one, or a composition.
#[derive(FromPyObject)]
pub(crate) enum Executed<'py> {
    #[pyo3(transparent)]
    One(PyRef<'py, Protocol>),
    #[pyo3(transparent)]
    Several(PyRef<'py, Composition>),
}

impl Executed<'_> {
    /// Returns the protocols.
    ///
    /// # Errors
    /// No machine executes this kind of composition.
    pub(crate) fn machine_protocols(&self) -> PyResult<MachineProtocols> {
        match self {
            Executed::One(protocol) => {
                Ok(MachineProtocols::Single(Source::clone(&protocol.source)))
            }
            Executed::Several(composition) => composition
                .composed
                .machine_protocols()
                .map_err(|failure| input_error(&one_line_message(&failure))),
        }
    }

    /// Path of the protocol or composition.
    pub(crate) fn file(&self) -> String {
        match self {
            Executed::One(protocol) => protocol.file(),
            Executed::Several(composition) => composition.file(),
        }
    }
}
