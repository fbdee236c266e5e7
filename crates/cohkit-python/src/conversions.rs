//! Conversions between the interface of applications and its values in Python: events, actions and steps.

use cohkit_application::interface::{Action, Event, Operation, Step, Update, Words};
use cohkit_protocol::protocol::Permission;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Name of a permission in Python.
pub(crate) fn permission_name(permission: Permission) -> &'static str {
    match permission {
        Permission::None => "none",
        Permission::Read => "read",
        Permission::Write => "write",
    }
}

/// Converts an event to its kind and values.
pub(crate) fn event_values(
    py: Python<'_>,
    event: Event,
) -> PyResult<(&'static str, Bound<'_, PyTuple>)> {
    Ok(match event {
        Event::Start { words } => ("start", (words,).into_pyobject(py)?),
        Event::Read { line, wants, has } => (
            "read",
            (line, permission_name(wants), permission_name(has)).into_pyobject(py)?,
        ),
        Event::Write { line, words, keeps } => (
            "write",
            (line, words.into_vec(), permission_name(keeps)).into_pyobject(py)?,
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
        Event::FetchCompletion { tag, line, words } => (
            "fetch_completion",
            (tag, line, words.into_vec()).into_pyobject(py)?,
        ),
        Event::ReadCompletion { tag, words } => (
            "read_completion",
            (tag, words.into_vec()).into_pyobject(py)?,
        ),
        Event::StoreCompletion { tag } => ("store_completion", (tag,).into_pyobject(py)?),
        Event::Timer { tag } => ("timer", (tag,).into_pyobject(py)?),
        Event::RegisterRead { register, thread } => {
            ("register_read", (register, thread).into_pyobject(py)?)
        }
        Event::RegisterWrite { register, value } => {
            ("register_write", (register, value).into_pyobject(py)?)
        }
        Event::HostFetchCompletion { tag, words } => (
            "host_fetch_completion",
            (tag, words.into_vec()).into_pyobject(py)?,
        ),
        Event::CoherentLoadCompletion { tag, words } => (
            "coherent_load_completion",
            (tag, words.into_vec()).into_pyobject(py)?,
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

/// Builds a variant from a tuple of its fields, in the order of the fields. `field: function` converts the value.
macro_rules! variant {
    ($values:ident => $variant:path { $($field:ident $(: $convert:path)?),* }) => {{
        let ($($field,)*) = $values.extract()?;
        $variant { $($field $(: $convert($field))?),* }
    }};
}

/// Converts an action, given as the name of its class and its values in the order of its fields.
pub(crate) fn action(object: &Bound<'_, PyAny>) -> PyResult<Action> {
    let (class, values): (String, Bound<'_, PyTuple>) = object.extract()?;
    Ok(match class.as_str() {
        "Answer" => variant!(values => Action::Answer { line, words: to_words }),
        "Accept" => variant!(values => Action::Accept { line }),
        "Local" => {
            let (line, operation_name, lock): (_, String, _) = values.extract()?;
            let operation = operation(&operation_name)?;
            Action::Local {
                line,
                operation,
                lock,
            }
        }
        "Unlock" => variant!(values => Action::Unlock { line }),
        "Fetch" => variant!(values => Action::Fetch { tag, first, lines }),
        "Store" => variant!(values => Action::Store { tag, line, words: to_words }),
        "ReadWords" => variant!(values => Action::ReadWords { tag, line, word, words }),
        "WriteWords" => variant!(values => Action::WriteWords { tag, line, word, words: to_words }),
        "AddWord" => {
            variant!(values => Action::UpdateWord { tag, line, word, update: Update::Add })
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
        "Wake" => variant!(values => Action::Wake { tag, delay }),
        "Reply" => variant!(values => Action::Reply { thread, value }),
        "HostFetch" => variant!(values => Action::HostFetch { tag, first, words }),
        "HostStore" => variant!(values => Action::HostStore { first, words: to_words }),
        "CoherentLoad" => variant!(values => Action::CoherentLoad { tag, first, words, cached }),
        "CoherentStore" => {
            variant!(values => Action::CoherentStore { tag, first, words: to_words, cached })
        }
        "CoherentAdd" => {
            variant!(values => Action::CoherentUpdate { tag, word, update: Update::Add })
        }
        "CoherentCompareSwap" => {
            let (tag, word, old, new) = values.extract()?;
            let update = Update::CompareSwap { old, new };
            Action::CoherentUpdate { tag, word, update }
        }
        "Abandon" => variant!(values => Action::Abandon { tag }),
        "Begin" => variant!(values => Action::Begin { tag }),
        "End" => variant!(values => Action::End { tag, name: leak_name }),
        "Count" => variant!(values => Action::Count { name: leak_name, by }),
        unknown_class => return Err(unknown_error("action", unknown_class)),
    })
}

/// Converts a step, given as the name of its class and its values in the order of its fields.
pub(crate) fn step(object: &Bound<'_, PyAny>) -> PyResult<Step> {
    let (class, values): (String, Bound<'_, PyTuple>) = object.extract()?;
    Ok(match class.as_str() {
        "Load" => variant!(values => Step::Load { line, word }),
        "LoadExclusive" => variant!(values => Step::LoadExclusive { line, word }),
        "Store" => variant!(values => Step::Store { line, word, value }),
        "StoreWords" => variant!(values => Step::StoreWords { line, word, words, value }),
        "Acquire" => variant!(values => Step::Acquire { line, word }),
        "Release" => variant!(values => Step::Release { line, word, value }),
        "Add" => variant!(values => Step::Update { line, word, update: Update::Add }),
        "CompareSwap" => {
            let (line, word, old, new) = values.extract()?;
            let update = Update::CompareSwap { old, new };
            Step::Update { line, word, update }
        }
        "Prefetch" => variant!(values => Step::Prefetch { line }),
        "PrefetchExclusive" => variant!(values => Step::PrefetchExclusive { line }),
        "ReadRegister" => variant!(values => Step::ReadRegister { register }),
        "WriteRegister" => variant!(values => Step::WriteRegister { register, value }),
        "LoadHost" => variant!(values => Step::LoadHost { word }),
        "StoreHost" => variant!(values => Step::StoreHost { word, value }),
        "Work" => {
            let (time,) = values.extract()?;
            Step::Work(time)
        }
        "Fence" => Step::Fence,
        "Count" => variant!(values => Step::Count { name: leak_name, by }),
        "Begin" => Step::Begin,
        "End" => variant!(values => Step::End { name: leak_name }),
        unknown_class => return Err(unknown_error("step", unknown_class)),
    })
}

/// Converts words from Python.
fn to_words(words: Vec<u64>) -> Words {
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
