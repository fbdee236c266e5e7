//! Applications and threads written in Python, for simulations.
//!
//! An exception stops them; the caller of the run raises it.

use cohkit_application::interface::{
    Action, Actions, Application, Contents, Event, Line, Operation, Placement, Refused, Step,
    Table, Update, Words,
};
use cohkit_protocol::protocol::Right;
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

    fn keep<T>(&self, result: PyResult<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(raised) => {
                let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                first.get_or_insert(raised);
                None
            }
        }
    }

    fn is_set(&self) -> bool {
        let first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        first.is_some()
    }
}

/// A scenario written in Python. `begin` returns the state of a new run.
pub(crate) struct PyScenario {
    pub begin: Py<PyAny>,
    pub lines: Line,
    pub host_words: u32,
    pub ends: bool,
    pub raised: PendingException,
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
    fn uses(&self) -> Line {
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
        let begun: PyResult<InitialScenario> =
            Python::attach(|py| self.begin.bind(py).call0()?.extract());
        let begun = self.raised.keep(begun);
        let (name, served, handler, threads, judge) = match begun {
            Some((name, served, handler, threads, judge)) => {
                (name, served, Some(handler), threads, Some(judge))
            }
            None => (String::new(), None, None, Vec::new(), None),
        };
        let lines = served.map_or(self.lines, |(_, end)| end.max(self.lines));
        Box::new(PyScenarioRun {
            application: PyApplication {
                name,
                placement: match served {
                    Some((first, end)) => Placement::Between(first..end),
                    None => Placement::Beside,
                },
                handler,
                words: 0,
                raised: self.raised.clone(),
            },
            threads,
            judge,
            lines,
            host_words: self.host_words,
            raised: self.raised.clone(),
        })
    }
}

struct PyScenarioRun {
    application: PyApplication,
    threads: Vec<Py<PyAny>>,
    judge: Option<Py<PyAny>>,
    lines: Line,
    host_words: u32,
    raised: PendingException,
}

impl ScenarioRun for PyScenarioRun {
    fn application(&mut self) -> &mut dyn Application {
        &mut self.application
    }

    fn threads(&self) -> usize {
        self.threads.len()
    }

    fn step(&mut self, thread: usize, result: u64) -> Step {
        if self.raised.is_set() {
            return Step::Stop;
        }
        let step = Python::attach(|py| {
            let made = self.threads[thread].bind(py).call1((result, py.None()))?;
            match made.is_none() {
                true => Ok(Step::Stop),
                false => step(&made),
            }
        });
        self.raised.keep(step).unwrap_or(Step::Stop)
    }

    fn refused(&mut self, thread: usize, why: Refused) -> Option<Step> {
        if self.raised.is_set() {
            return Some(Step::Stop);
        }
        let step = Python::attach(|py| {
            let why = (why.write, right(why.permits));
            let made = self.threads[thread].bind(py).call1((0, why))?;
            if made.is_none() {
                return Ok(Some(Step::Stop));
            }
            match made.extract::<bool>() {
                Ok(_) => Ok(None),
                Err(_) => step(&made).map(Some),
            }
        });
        self.raised.keep(step).unwrap_or(Some(Step::Stop))
    }

    fn verify(&self, contents: &dyn Contents) -> Result<(), String> {
        let (Some(judge), false) = (&self.judge, self.raised.is_set()) else {
            return Ok(());
        };
        let words = self.application.words;
        let table = |word: &dyn Fn(Line, u16) -> u64| -> Vec<Vec<u64>> {
            let line = |line| (0..words).map(|at| word(line, at)).collect();
            (0..self.lines).map(line).collect()
        };
        let now = table(&|line, word| contents.word(line, word));
        let initial = table(&|line, word| contents.initial(line, word));
        let host = (0..self.host_words).map(|word| contents.host(word));
        let host: Option<Vec<u64>> = host.collect();
        let all = (now, initial, host.unwrap_or_default());
        let wrong: PyResult<Option<String>> =
            Python::attach(|py| judge.bind(py).call1(all)?.extract());
        match self.raised.keep(wrong).flatten() {
            Some(wrong) => Err(wrong),
            None => Ok(()),
        }
    }

    fn tables(&self) -> Vec<Table> {
        Vec::new()
    }
}

struct PyApplication {
    name: String,
    placement: Placement,
    handler: Option<Py<PyAny>>,
    /// Number of words in a line.
    words: u16,
    raised: PendingException,
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
        let (Some(handler), false) = (&self.handler, self.raised.is_set()) else {
            return;
        };
        let taken = Python::attach(|py| -> PyResult<Vec<Action>> {
            let (kind, values) = heard(py, event)?;
            let done = handler.bind(py).call1((kind, values))?;
            done.try_iter()?.map(|one| action(&one?)).collect()
        });
        for action in self.raised.keep(taken).into_iter().flatten() {
            actions.push(action);
        }
    }
}

fn right(right: Right) -> &'static str {
    match right {
        Right::None => "none",
        Right::Read => "read",
        Right::Write => "write",
    }
}

/// Converts an event to its kind and values.
fn heard(py: Python<'_>, event: Event) -> PyResult<(&'static str, Bound<'_, PyTuple>)> {
    let words = |words: Words| words.into_vec();
    Ok(match event {
        Event::Start { words } => ("start", (words,).into_pyobject(py)?),
        Event::Read { line, wants, has } => {
            ("read", (line, right(wants), right(has)).into_pyobject(py)?)
        }
        Event::Write {
            line,
            words: written,
            keeps,
        } => (
            "write",
            (line, words(written), right(keeps)).into_pyobject(py)?,
        ),
        Event::Changed { line, from, to } => {
            ("changed", (line, right(from), right(to)).into_pyobject(py)?)
        }
        Event::Done {
            line,
            operation,
            dirty,
        } => ("done", (line, operation.name(), dirty).into_pyobject(py)?),
        Event::Fetched {
            tag,
            line,
            words: fetched,
        } => ("fetched", (tag, line, words(fetched)).into_pyobject(py)?),
        Event::WordsRead { tag, words: read } => {
            ("words_read", (tag, words(read)).into_pyobject(py)?)
        }
        Event::Stored { tag } => ("stored", (tag,).into_pyobject(py)?),
        Event::Timer { tag } => ("timer", (tag,).into_pyobject(py)?),
        Event::RegisterRead { register, thread } => {
            ("register_read", (register, thread).into_pyobject(py)?)
        }
        Event::RegisterWritten { register, value } => {
            ("register_written", (register, value).into_pyobject(py)?)
        }
        Event::HostFetched {
            tag,
            words: fetched,
        } => ("host_fetched", (tag, words(fetched)).into_pyobject(py)?),
        Event::CoherentLoaded { tag, words: loaded } => {
            ("coherent_loaded", (tag, words(loaded)).into_pyobject(py)?)
        }
        Event::CoherentStored { tag } => ("coherent_stored", (tag,).into_pyobject(py)?),
        Event::Refused { tag, word, why } => (
            "refused",
            (tag, word, why.write, right(why.permits)).into_pyobject(py)?,
        ),
        Event::Stop => ("stop", PyTuple::empty(py)),
    })
}

fn words(words: Vec<u64>) -> Words {
    words.into()
}

fn operation(name: &str) -> PyResult<Operation> {
    let mut all = [Operation::Clean, Operation::CleanInvalidate].into_iter();
    let found = all.find(|operation| operation.name() == name);
    found.ok_or_else(|| {
        PyValueError::new_err(format!(
            "there is no local operation `{name}`; expected clean or clean-invalidate"
        ))
    })
}

/// Returns the name with a static lifetime, which the keys of statistics need. Each name is leaked once.
fn name(name: String) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    match names.get(name.as_str()) {
        Some(known) => known,
        None => {
            let kept: &'static str = Box::leak(name.into_boxed_str());
            names.insert(kept);
            kept
        }
    }
}

fn unknown(what: &str, kind: &str) -> PyErr {
    PyValueError::new_err(format!("there is no {what} `{kind}`"))
}

/// Converts an action, given as the name of its class and its values.
fn action(given: &Bound<'_, PyAny>) -> PyResult<Action> {
    let (kind, of): (String, Bound<'_, PyTuple>) = given.extract()?;
    Ok(match kind.as_str() {
        "Answer" => {
            let (line, all) = of.extract()?;
            let words = words(all);
            Action::Answer { line, words }
        }
        "Accept" => {
            let (line,) = of.extract()?;
            Action::Accept { line }
        }
        "Local" => {
            let (line, asked, lock): (_, String, _) = of.extract()?;
            let operation = operation(&asked)?;
            Action::Local {
                line,
                operation,
                lock,
            }
        }
        "Unlock" => {
            let (line,) = of.extract()?;
            Action::Unlock { line }
        }
        "Fetch" => {
            let (tag, first, lines) = of.extract()?;
            Action::Fetch { tag, first, lines }
        }
        "Store" => {
            let (tag, line, all) = of.extract()?;
            let words = words(all);
            Action::Store { tag, line, words }
        }
        "ReadWords" => {
            let (tag, line, word, words) = of.extract()?;
            Action::ReadWords {
                tag,
                line,
                word,
                words,
            }
        }
        "WriteWords" => {
            let (tag, line, word, all) = of.extract()?;
            let words = words(all);
            Action::WriteWords {
                tag,
                line,
                word,
                words,
            }
        }
        "AddWord" => {
            let (tag, line, word, by) = of.extract()?;
            let update = Update::Add(by);
            Action::UpdateWord {
                tag,
                line,
                word,
                update,
            }
        }
        "CompareSwapWord" => {
            let (tag, line, word, old, new) = of.extract()?;
            let update = Update::CompareSwap { old, new };
            Action::UpdateWord {
                tag,
                line,
                word,
                update,
            }
        }
        "Wake" => {
            let (tag, after) = of.extract()?;
            Action::Wake { tag, after }
        }
        "Reply" => {
            let (thread, value) = of.extract()?;
            Action::Reply { thread, value }
        }
        "HostFetch" => {
            let (tag, first, words) = of.extract()?;
            Action::HostFetch { tag, first, words }
        }
        "HostStore" => {
            let (first, all) = of.extract()?;
            let words = words(all);
            Action::HostStore { first, words }
        }
        "CoherentLoad" => {
            let (tag, first, words, cached) = of.extract()?;
            Action::CoherentLoad {
                tag,
                first,
                words,
                cached,
            }
        }
        "CoherentStore" => {
            let (tag, first, all, cached) = of.extract()?;
            let words = words(all);
            Action::CoherentStore {
                tag,
                first,
                words,
                cached,
            }
        }
        "CoherentAdd" => {
            let (tag, word, by) = of.extract()?;
            let update = Update::Add(by);
            Action::CoherentUpdate { tag, word, update }
        }
        "CoherentCompareSwap" => {
            let (tag, word, old, new) = of.extract()?;
            let update = Update::CompareSwap { old, new };
            Action::CoherentUpdate { tag, word, update }
        }
        "Forgo" => {
            let (tag,) = of.extract()?;
            Action::Forgo { tag }
        }
        "Begin" => {
            let (tag,) = of.extract()?;
            Action::Begin { tag }
        }
        "End" => {
            let (tag, what) = of.extract()?;
            let what = name(what);
            Action::End { tag, what }
        }
        "Count" => {
            let (what, by) = of.extract()?;
            let what = name(what);
            Action::Count { what, by }
        }
        other => return Err(unknown("action", other)),
    })
}

/// Converts a step, given as the name of its class and its values.
fn step(given: &Bound<'_, PyAny>) -> PyResult<Step> {
    let (kind, of): (String, Bound<'_, PyTuple>) = given.extract()?;
    Ok(match kind.as_str() {
        "Load" => {
            let (line, word) = of.extract()?;
            Step::Load { line, word }
        }
        "LoadExclusive" => {
            let (line, word) = of.extract()?;
            Step::LoadExclusive { line, word }
        }
        "Store" => {
            let (line, word, value) = of.extract()?;
            Step::Store { line, word, value }
        }
        "StoreWords" => {
            let (line, word, words, value) = of.extract()?;
            Step::StoreWords {
                line,
                word,
                words,
                value,
            }
        }
        "Acquire" => {
            let (line, word) = of.extract()?;
            Step::Acquire { line, word }
        }
        "Release" => {
            let (line, word, value) = of.extract()?;
            Step::Release { line, word, value }
        }
        "Add" => {
            let (line, word, by) = of.extract()?;
            let update = Update::Add(by);
            Step::Update { line, word, update }
        }
        "CompareSwap" => {
            let (line, word, old, new) = of.extract()?;
            let update = Update::CompareSwap { old, new };
            Step::Update { line, word, update }
        }
        "Hint" => {
            let (line,) = of.extract()?;
            Step::Hint { line }
        }
        "ReadRegister" => {
            let (register,) = of.extract()?;
            Step::ReadRegister { register }
        }
        "WriteRegister" => {
            let (register, value) = of.extract()?;
            Step::WriteRegister { register, value }
        }
        "LoadHost" => {
            let (word,) = of.extract()?;
            Step::LoadHost { word }
        }
        "StoreHost" => {
            let (word, value) = of.extract()?;
            Step::StoreHost { word, value }
        }
        "Work" => {
            let (time,) = of.extract()?;
            Step::Work(time)
        }
        "Fence" => Step::Fence,
        "Count" => {
            let (what, by) = of.extract()?;
            let what = name(what);
            Step::Count { what, by }
        }
        "Begin" => Step::Begin,
        "End" => {
            let (what,) = of.extract()?;
            let what = name(what);
            Step::End { what }
        }
        other => return Err(unknown("step", other)),
    })
}
