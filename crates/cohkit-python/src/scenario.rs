//! Applications and threads written in Python, for simulations.
//!
//! An exception stops them; the caller of the run raises it.

use cohkit_application::interface::{
    Action, Actions, Application, Contents, Event, Line, Operation, PageFault, Placement, Step,
    Table, Update, Words,
};
use cohkit_protocol::protocol::Permission;
use cohkit_sim::scenario::{Playable, ScenarioRun};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::collections::BTreeSet;
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
    /// Lines that the application serves itself; beside the home if it serves none.
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

/// Name of a permission in Python.
fn permission_name(permission: Permission) -> &'static str {
    match permission {
        Permission::None => "none",
        Permission::Read => "read",
        Permission::Write => "write",
    }
}

/// Converts an event to its kind and values.
fn event_values(py: Python<'_>, event: Event) -> PyResult<(&'static str, Bound<'_, PyTuple>)> {
    let words = |words: Words| words.into_vec();
    Ok(match event {
        Event::Start { words } => ("start", (words,).into_pyobject(py)?),
        Event::Read { line, wants, has } => (
            "read",
            (line, permission_name(wants), permission_name(has)).into_pyobject(py)?,
        ),
        Event::Write {
            line,
            words: written,
            keeps,
        } => (
            "write",
            (line, words(written), permission_name(keeps)).into_pyobject(py)?,
        ),
        Event::PermissionChange { line, from, to } => (
            "permission_change",
            (line, permission_name(from), permission_name(to)).into_pyobject(py)?,
        ),
        Event::LocalCompletion {
            line,
            operation,
            dirty,
        } => (
            "local_completion",
            (line, operation.name(), dirty).into_pyobject(py)?,
        ),
        Event::FetchCompletion {
            tag,
            line,
            words: fetched,
        } => (
            "fetch_completion",
            (tag, line, words(fetched)).into_pyobject(py)?,
        ),
        Event::ReadCompletion { tag, words: read } => {
            ("read_completion", (tag, words(read)).into_pyobject(py)?)
        }
        Event::StoreCompletion { tag } => ("store_completion", (tag,).into_pyobject(py)?),
        Event::Timer { tag } => ("timer", (tag,).into_pyobject(py)?),
        Event::RegisterRead { register, thread } => {
            ("register_read", (register, thread).into_pyobject(py)?)
        }
        Event::RegisterWrite { register, value } => {
            ("register_write", (register, value).into_pyobject(py)?)
        }
        Event::HostFetchCompletion {
            tag,
            words: fetched,
        } => (
            "host_fetch_completion",
            (tag, words(fetched)).into_pyobject(py)?,
        ),
        Event::CoherentLoadCompletion { tag, words: loaded } => (
            "coherent_load_completion",
            (tag, words(loaded)).into_pyobject(py)?,
        ),
        Event::CoherentStoreCompletion { tag } => {
            ("coherent_store_completion", (tag,).into_pyobject(py)?)
        }
        Event::PageFault { tag, word, fault } => (
            "page_fault",
            (tag, word, fault.write, permission_name(fault.permits)).into_pyobject(py)?,
        ),
        Event::Stop => ("stop", PyTuple::empty(py)),
    })
}

/// Converts words from Python.
fn words(words: Vec<u64>) -> Words {
    words.into()
}

/// Returns the local operation of this name, for actions.
fn operation(name: &str) -> PyResult<Operation> {
    let mut operations = [Operation::Clean, Operation::CleanInvalidate].into_iter();
    let operation = operations.find(|operation| operation.name() == name);
    operation.ok_or_else(|| {
        PyValueError::new_err(format!(
            "there is no local operation `{name}`; expected clean or clean-invalidate"
        ))
    })
}

/// Returns the name with a static lifetime, which the keys of statistics need. Each name is leaked once.
fn leak_name(name: String) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    match names.get(name.as_str()) {
        Some(known_name) => known_name,
        None => {
            let leaked: &'static str = Box::leak(name.into_boxed_str());
            names.insert(leaked);
            leaked
        }
    }
}

/// Exception for a class that is no action or step.
fn unknown_error(category: &str, kind: &str) -> PyErr {
    PyValueError::new_err(format!("there is no {category} `{kind}`"))
}

/// Converts an action, given as the name of its class and its values in the order of its fields.
fn action(object: &Bound<'_, PyAny>) -> PyResult<Action> {
    let (kind, values): (String, Bound<'_, PyTuple>) = object.extract()?;
    Ok(match kind.as_str() {
        "Answer" => {
            let (line, word_values) = values.extract()?;
            let words = words(word_values);
            Action::Answer { line, words }
        }
        "Accept" => {
            let (line,) = values.extract()?;
            Action::Accept { line }
        }
        "Local" => {
            let (line, operation_name, lock): (_, String, _) = values.extract()?;
            let operation = operation(&operation_name)?;
            Action::Local {
                line,
                operation,
                lock,
            }
        }
        "Unlock" => {
            let (line,) = values.extract()?;
            Action::Unlock { line }
        }
        "Fetch" => {
            let (tag, first, lines) = values.extract()?;
            Action::Fetch { tag, first, lines }
        }
        "Store" => {
            let (tag, line, word_values) = values.extract()?;
            let words = words(word_values);
            Action::Store { tag, line, words }
        }
        "ReadWords" => {
            let (tag, line, word, words) = values.extract()?;
            Action::ReadWords {
                tag,
                line,
                word,
                words,
            }
        }
        "WriteWords" => {
            let (tag, line, word, word_values) = values.extract()?;
            let words = words(word_values);
            Action::WriteWords {
                tag,
                line,
                word,
                words,
            }
        }
        "AddWord" => {
            let (tag, line, word, amount) = values.extract()?;
            let update = Update::Add(amount);
            Action::UpdateWord {
                tag,
                line,
                word,
                update,
            }
        }
        "CompareSwapWord" => {
            let (tag, line, word, old, new) = values.extract()?;
            let update = Update::CompareSwap { old, new };
            Action::UpdateWord {
                tag,
                line,
                word,
                update,
            }
        }
        "Wake" => {
            let (tag, delay) = values.extract()?;
            Action::Wake { tag, delay }
        }
        "Reply" => {
            let (thread, value) = values.extract()?;
            Action::Reply { thread, value }
        }
        "HostFetch" => {
            let (tag, first, words) = values.extract()?;
            Action::HostFetch { tag, first, words }
        }
        "HostStore" => {
            let (first, word_values) = values.extract()?;
            let words = words(word_values);
            Action::HostStore { first, words }
        }
        "CoherentLoad" => {
            let (tag, first, words, cached) = values.extract()?;
            Action::CoherentLoad {
                tag,
                first,
                words,
                cached,
            }
        }
        "CoherentStore" => {
            let (tag, first, word_values, cached) = values.extract()?;
            let words = words(word_values);
            Action::CoherentStore {
                tag,
                first,
                words,
                cached,
            }
        }
        "CoherentAdd" => {
            let (tag, word, amount) = values.extract()?;
            let update = Update::Add(amount);
            Action::CoherentUpdate { tag, word, update }
        }
        "CoherentCompareSwap" => {
            let (tag, word, old, new) = values.extract()?;
            let update = Update::CompareSwap { old, new };
            Action::CoherentUpdate { tag, word, update }
        }
        "Abandon" => {
            let (tag,) = values.extract()?;
            Action::Abandon { tag }
        }
        "Begin" => {
            let (tag,) = values.extract()?;
            Action::Begin { tag }
        }
        "End" => {
            let (tag, name) = values.extract()?;
            let name = leak_name(name);
            Action::End { tag, name }
        }
        "Count" => {
            let (name, amount) = values.extract()?;
            let name = leak_name(name);
            Action::Count { name, by: amount }
        }
        unknown_kind => return Err(unknown_error("action", unknown_kind)),
    })
}

/// Converts a step, given as the name of its class and its values in the order of its fields.
fn step(object: &Bound<'_, PyAny>) -> PyResult<Step> {
    let (kind, values): (String, Bound<'_, PyTuple>) = object.extract()?;
    Ok(match kind.as_str() {
        "Load" => {
            let (line, word) = values.extract()?;
            Step::Load { line, word }
        }
        "LoadExclusive" => {
            let (line, word) = values.extract()?;
            Step::LoadExclusive { line, word }
        }
        "Store" => {
            let (line, word, value) = values.extract()?;
            Step::Store { line, word, value }
        }
        "StoreWords" => {
            let (line, word, words, value) = values.extract()?;
            Step::StoreWords {
                line,
                word,
                words,
                value,
            }
        }
        "Acquire" => {
            let (line, word) = values.extract()?;
            Step::Acquire { line, word }
        }
        "Release" => {
            let (line, word, value) = values.extract()?;
            Step::Release { line, word, value }
        }
        "Add" => {
            let (line, word, amount) = values.extract()?;
            let update = Update::Add(amount);
            Step::Update { line, word, update }
        }
        "CompareSwap" => {
            let (line, word, old, new) = values.extract()?;
            let update = Update::CompareSwap { old, new };
            Step::Update { line, word, update }
        }
        "Prefetch" => {
            let (line,) = values.extract()?;
            Step::Prefetch { line }
        }
        "ReadRegister" => {
            let (register,) = values.extract()?;
            Step::ReadRegister { register }
        }
        "WriteRegister" => {
            let (register, value) = values.extract()?;
            Step::WriteRegister { register, value }
        }
        "LoadHost" => {
            let (word,) = values.extract()?;
            Step::LoadHost { word }
        }
        "StoreHost" => {
            let (word, value) = values.extract()?;
            Step::StoreHost { word, value }
        }
        "Work" => {
            let (time,) = values.extract()?;
            Step::Work(time)
        }
        "Fence" => Step::Fence,
        "Count" => {
            let (name, amount) = values.extract()?;
            let name = leak_name(name);
            Step::Count { name, by: amount }
        }
        "Begin" => Step::Begin,
        "End" => {
            let (name,) = values.extract()?;
            let name = leak_name(name);
            Step::End { name }
        }
        unknown_kind => return Err(unknown_error("step", unknown_kind)),
    })
}
