//! Interactive exploration of systems.

use crate::interruptible::interruptible;
use crate::{input_error, no_home_error, text_error, Protocol};
use cohkit_api::explorer::{Explorer, ExplorerError};
use cohkit_api::protocol_check::Systems;
use cohkit_api::InputError;
use pyo3::prelude::*;
use serde_json::json;
use std::sync::Arc;

/// A system of a protocol to explore.
#[pyclass(frozen, module = "cohkit._cohkit")]
pub(crate) struct Exploration {
    /// Explorer of the first selected system.
    explorer: Arc<Explorer>,
}

#[pymethods]
impl Exploration {
    /// Explores the system of this name or of this size (numbers of remotes and lines); by
    /// default the first declared one. The size takes precedence over the name.
    ///
    /// # Errors
    /// The system does not exist, or no home can be constructed.
    #[new]
    #[pyo3(signature = (protocol, *, system, size))]
    fn new(
        py: Python<'_>,
        protocol: &Protocol,
        system: Option<String>,
        size: Option<(u16, u8)>,
    ) -> PyResult<Exploration> {
        let source = Arc::clone(&protocol.source);
        let systems = match (system, size) {
            (_, Some((remotes, lines))) => Systems::Sized { remotes, lines },
            (Some(name), None) => Systems::Named(vec![name]),
            (None, None) => Systems::Declared,
        };
        match py.detach(|| Explorer::new(&source, &systems)) {
            Ok(explorer) => Ok(Exploration {
                explorer: Arc::new(explorer),
            }),
            Err(ExplorerError::NoHome(error)) => Err(no_home_error(&source, error)),
            Err(ExplorerError::Input(InputError::Refused(refusal))) => {
                Err(text_error(&json!([source.refusal_json(&refusal)])))
            }
            Err(ExplorerError::Input(InputError::Input { message, help })) => {
                let help = help.map_or(String::new(), |help| format!("; {help}"));
                Err(input_error(&format!(
                    "{}: {message}{help}",
                    protocol.file()
                )))
            }
            Err(ExplorerError::Input(InputError::Failure(failure))) => {
                Err(input_error(&failure.message))
            }
        }
    }

    /// State at the end of a path, as JSON text. A path lists the positions of the chosen
    /// steps among the possible ones.
    ///
    /// # Errors
    /// The path contains a step that is not possible.
    fn view(&self, py: Python<'_>, path: Vec<usize>) -> PyResult<String> {
        let view = py.detach(|| self.explorer.view(&path));
        view.map(|view| view.to_string())
            .map_err(|reason| input_error(&reason))
    }

    /// Shortest path to a violation, searching at most `max_states` states, as JSON text.
    fn nearest_violation(&self, py: Python<'_>, max_states: usize) -> PyResult<String> {
        let explorer = Arc::clone(&self.explorer);
        interruptible(py, move |_| {
            explorer.nearest_violation(max_states).to_string()
        })
    }
}
