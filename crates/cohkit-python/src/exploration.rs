//! Interactive exploration of systems.

use crate::interruptible::interruptible;
use crate::{bad_input, bad_text, no_home, Protocol};
use cohkit::explorer::{Explorer, Nothing};
use cohkit::judge::Systems;
use cohkit::Wrong;
use pyo3::prelude::*;
use serde_json::json;
use std::sync::Arc;

/// A system of a protocol to explore.
#[pyclass(frozen, module = "cohkit._cohkit")]
pub(crate) struct Exploration {
    explorer: Arc<Explorer>,
}

#[pymethods]
impl Exploration {
    /// Explores the system of this name or of this size; by default the first declared one.
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
            Err(Nothing::NoHome(error)) => Err(no_home(&source, error)),
            Err(Nothing::Wrong(Wrong::Refused(refusal))) => {
                Err(bad_text(&json!([source.refusal_json(&refusal)])))
            }
            Err(Nothing::Wrong(Wrong::Input { what, help })) => {
                let help = help.map_or(String::new(), |help| format!("; {help}"));
                Err(bad_input(&format!("{}: {what}{help}", protocol.file())))
            }
            Err(Nothing::Wrong(Wrong::Failure(failure))) => Err(bad_input(&failure.message)),
        }
    }

    /// State at the end of a path, as JSON text.
    fn view(&self, py: Python<'_>, way: Vec<usize>) -> PyResult<String> {
        let view = py.detach(|| self.explorer.view(&way));
        view.map(|view| view.to_string())
            .map_err(|what| bad_input(&what))
    }

    /// Shortest path to a violation, searching at most `most` states, as JSON text.
    fn nearest_wrong(&self, py: Python<'_>, most: usize) -> PyResult<String> {
        let explorer = Arc::clone(&self.explorer);
        interruptible(py, move |_| explorer.nearest_wrong(most).to_string())
    }
}
