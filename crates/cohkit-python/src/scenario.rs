//! Applications and threads written in Python, for simulations.
//!
//! An exception stops them; the caller of the run raises it.

use crate::conversions::{action, event_values, permission_name, step};
use cohkit_application::interface::{
    Action, Actions, Application, Contents, Event, Line, PageFault, Placement, Step, Table,
};
use cohkit_sim::scenario::{Playable, ScenarioRun};
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};

/// First exception raised by the code of a scenario.
#[derive(Clone, Default)]
pub(crate) struct PendingException(Arc<Mutex<Option<PyErr>>>);

impl PendingException {
    /// Takes the exception, if there is one.
    pub fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Returns the value of a call into Python. Keeps its exception instead, unless an earlier one is pending.
    fn record<T>(&self, result: PyResult<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                let mut first_error = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                first_error.get_or_insert(error);
                None
            }
        }
    }

    /// Returns true if an exception is pending; Python code is then no longer called.
    fn is_set(&self) -> bool {
        let first_error = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        first_error.is_some()
    }
}

/// A scenario written in Python. `begin` returns the state of a new run.
pub(crate) struct PyScenario {
    /// Function without arguments that returns an [`InitialScenario`].
    pub begin: Py<PyAny>,
    /// Number of lines that the threads access.
    pub lines: Line,
    /// Number of 64-bit words of host memory.
    pub host_words: u32,
    /// True if the application ends by itself.
    pub ends: bool,
    /// First exception of this scenario, which is shared with all of its runs.
    pub pending_exception: PendingException,
}

/// Result of `begin`: name, range of lines served, event handler, threads, and function that checks the final state.
type InitialScenario = (
    String,
    Option<(Line, Line)>,
    Py<PyAny>,
    Vec<Py<PyAny>>,
    Py<PyAny>,
);

impl Playable for PyScenario {
    fn line_count(&self) -> Line {
        self.lines
    }

    /// Not known in advance; each access is checked instead.
    fn words_used(&self) -> u64 {
        1
    }

    fn has_end(&self) -> bool {
        self.ends
    }

    fn host_words(&self) -> u64 {
        self.host_words.into()
    }

    fn begin(&self) -> Box<dyn ScenarioRun> {
        let result: PyResult<InitialScenario> =
            Python::attach(|py| self.begin.bind(py).call0()?.extract());
        let result = self.pending_exception.record(result);
        let (name, lines_served, handler, threads, judge) = match result {
            Some((name, lines_served, handler, threads, judge)) => {
                (name, lines_served, Some(handler), threads, Some(judge))
            }
            None => (String::new(), None, None, Vec::new(), None),
        };
        let lines = lines_served.map_or(self.lines, |(_, end)| end.max(self.lines));
        Box::new(PyScenarioRun {
            application: PyApplication {
                name,
                placement: match lines_served {
                    Some((first, end)) => Placement::MemoryPath(first..end),
                    None => Placement::Observer,
                },
                handler,
                words: 0,
                pending_exception: self.pending_exception.clone(),
            },
            threads,
            judge,
            lines,
            host_words: self.host_words,
            pending_exception: self.pending_exception.clone(),
        })
    }
}

/// Run of a scenario: its application and the code of its threads.
struct PyScenarioRun {
    /// Application behind the home.
    application: PyApplication,
    /// Functions of the threads, which return the next step for the result of the last one, or `None` at the end.
    /// The second argument describes a page fault, or is `None`.
    threads: Vec<Py<PyAny>>,
    /// Function that returns the reason why the final state is wrong, or `None`. Its arguments are the words of all
    /// lines at the end and at the start, and the words of host memory. `None` if `begin` failed.
    judge: Option<Py<PyAny>>,
    /// Number of lines of the machine: those that threads access, and those that the application serves.
    lines: Line,
    /// Number of 64-bit words of host memory.
    host_words: u32,
    /// First exception of the scenario.
    pending_exception: PendingException,
}

impl ScenarioRun for PyScenarioRun {
    fn application(&mut self) -> &mut dyn Application {
        &mut self.application
    }

    fn threads(&self) -> usize {
        self.threads.len()
    }

    fn step(&mut self, thread: usize, result: u64) -> Step {
        if self.pending_exception.is_set() {
            return Step::Stop;
        }
        let step = Python::attach(|py| {
            let result = self.threads[thread].bind(py).call1((result, py.None()))?;
            match result.is_none() {
                true => Ok(Step::Stop),
                false => step(&result),
            }
        });
        self.pending_exception.record(step).unwrap_or(Step::Stop)
    }

    fn handle_page_fault(&mut self, thread: usize, refusal: PageFault) -> Option<Step> {
        if self.pending_exception.is_set() {
            return Some(Step::Stop);
        }
        let step = Python::attach(|py| {
            let refusal = (refusal.write, permission_name(refusal.permits));
            let result = self.threads[thread].bind(py).call1((0, refusal))?;
            if result.is_none() {
                return Ok(Some(Step::Stop));
            }
            match result.extract::<bool>() {
                Ok(_) => Ok(None),
                Err(_) => step(&result).map(Some),
            }
        });
        self.pending_exception
            .record(step)
            .unwrap_or(Some(Step::Stop))
    }

    fn verify(&self, contents: &dyn Contents) -> Result<(), String> {
        let (Some(judge), false) = (&self.judge, self.pending_exception.is_set()) else {
            return Ok(());
        };
        let words = self.application.words;
        let table = |word: &dyn Fn(Line, u16) -> u64| -> Vec<Vec<u64>> {
            let line = |line| {
                (0..words)
                    .map(|word_index| word(line, word_index))
                    .collect()
            };
            (0..self.lines).map(line).collect()
        };
        let current = table(&|line, word| contents.word(line, word));
        let initial = table(&|line, word| contents.initial(line, word));
        let host = (0..self.host_words).map(|word| contents.host(word));
        let host: Option<Vec<u64>> = host.collect();
        let arguments = (current, initial, host.unwrap_or_default());
        let reason: PyResult<Option<String>> =
            Python::attach(|py| judge.bind(py).call1(arguments)?.extract());
        match self.pending_exception.record(reason).flatten() {
            Some(reason) => Err(reason),
            None => Ok(()),
        }
    }

    fn tables(&self) -> Vec<Table> {
        Vec::new()
    }
}

/// Application whose events a Python function handles.
struct PyApplication {
    /// Name of the application, for messages.
    name: String,
    /// Lines that the application serves itself; [`Placement::Observer`] if it serves none.
    placement: Placement,
    /// Function that returns the actions for the kind and the values of an event; `None` if `begin` failed.
    handler: Option<Py<PyAny>>,
    /// Number of words in a line.
    words: u16,
    /// First exception of the scenario.
    pending_exception: PendingException,
}

impl Application for PyApplication {
    fn name(&self) -> &str {
        &self.name
    }

    fn placement(&self) -> Placement {
        self.placement.clone()
    }

    fn handle(&mut self, event: Event, actions: &mut Actions) {
        if let Event::Start { words } = event {
            self.words = words;
        }
        let (Some(handler), false) = (&self.handler, self.pending_exception.is_set()) else {
            return;
        };
        let result = Python::attach(|py| -> PyResult<Vec<Action>> {
            let (kind, values) = event_values(py, event)?;
            let returned = handler.bind(py).call1((kind, values))?;
            returned.try_iter()?.map(|item| action(&item?)).collect()
        });
        for action in self.pending_exception.record(result).into_iter().flatten() {
            actions.push(action);
        }
    }
}
