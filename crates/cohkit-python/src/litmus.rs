//! Litmus tests.

use crate::composition::ExecutableProtocol;
use crate::interruptible::interruptible;
use crate::{input_error, no_home_error, text_error};
use cohkit_api::composition::{LowerLevel, MachineProtocols};
use cohkit_api::litmus::{
    run_test_json, LitmusRequest, MemorySystem, OutcomeBasis, Test, TestError,
};
use cohkit_api::named_value::NamedValue;
use cohkit_api::source::Source;
use cohkit_api::Failure;
use pyo3::prelude::*;
use std::path::PathBuf;

/// A litmus test that was read.
#[pyclass(frozen, module = "cohkit._cohkit")]
pub(crate) struct Litmus {
    /// Test without a placement on kinds of remotes and without store variants.
    test: Test,
}

#[pymethods]
impl Litmus {
    /// Parses a test from a file of this name; without text, `name` is the name of a classic shape.
    ///
    /// # Errors
    /// The text has errors, or no shape has this name.
    #[new]
    fn new(name: &str, text: Option<&str>) -> PyResult<Litmus> {
        let test = match text {
            Some(text) => {
                Test::parse(name, text).map_err(|diagnostics| text_error(&diagnostics))?
            }
            None => Test::shape(name)
                .map_err(|help| input_error(&format!("`{name}` is not a classic shape; {help}")))?,
        };
        Ok(Litmus { test })
    }
}

/// Run options of a test.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct LitmusOptions {
    /// Name of the core model; by default that of the protocol.
    cores: Option<String>,
    /// Name of the memory model; by default that of the protocol or of the cores.
    model: Option<String>,
    /// Maximum number of spontaneous evictions and downgrades in one run, of all caches together.
    max_spontaneous_evictions: u8,
    /// Maximum number of states.
    max_states: usize,
    /// True to include a shortest path to the deciding outcome.
    chart: bool,
    /// Seed of the first run, and number of runs.
    simulate: Option<(u64, u64)>,
    /// One letter for the variant of each write.
    stores: Option<String>,
    /// Kind of each thread's cache, separated by commas.
    kinds: Option<String>,
    /// System whose parameters the protocol has in the run.
    system: Option<String>,
    /// Basis of the outcome besides violations.
    expect: Option<String>,
}

/// JSON text of `cohkit litmus --json` for one test. Without a protocol, the memory model alone determines the
/// outcomes.
///
/// # Errors
/// The options describe several tests, the test cannot run on the protocol, or the user interrupts the run.
#[pyfunction]
#[pyo3(signature = (test, *, protocol, options))]
pub(crate) fn litmus(
    py: Python<'_>,
    test: &Litmus,
    protocol: Option<ExecutableProtocol<'_>>,
    options: LitmusOptions,
) -> PyResult<String> {
    let file = protocol
        .as_ref()
        .map(|protocol| PathBuf::from(protocol.file()));
    let (source, lower) = levels(protocol, options.system.as_deref())?;
    let test = single_test(&test.test, source.as_ref(), &lower, &options)?;
    let request = LitmusRequest {
        cores: named_value(options.cores.as_deref())?,
        model: named_value(options.model.as_deref())?,
        max_spontaneous_evictions: options.max_spontaneous_evictions,
        max_states: options.max_states,
        chart: options.chart,
        simulate: options.simulate,
        basis: named_value(options.expect.as_deref())?.unwrap_or(OutcomeBasis::Condition),
    };
    let result = interruptible(py, move |cancel| {
        let memory_system = MemorySystem {
            source: source.as_ref(),
            lower: &lower,
            file: file.as_deref(),
        };
        run_test_json(&test, memory_system, &request, cancel)
    })?;
    match result {
        Ok(value) => Ok(value.to_string()),
        Err(TestError::NoHome(source, error)) => Err(no_home_error(&source, error)),
        Err(TestError::Failure(failure)) => Err(to_exception(failure)),
    }
}

/// Protocol of the run with the parameters of a system, and its lower levels if it has two levels.
///
/// # Errors
/// The protocol composes two address spaces, or the system is unknown or belongs to two levels.
fn levels(
    protocol: Option<ExecutableProtocol<'_>>,
    system: Option<&str>,
) -> PyResult<(Option<Source>, Vec<LowerLevel>)> {
    let Some(protocol) = protocol else {
        return Ok((None, Vec::new()));
    };
    if let ExecutableProtocol::Composed(_) = &protocol {
        if let Ok(MachineProtocols::Directions(device, host)) = protocol.machine_protocols() {
            return Err(input_error(&format!(
                "a test runs on one address space, but the specification composes two; give {} or {}",
                device.path.display(),
                host.path.display()
            )));
        }
    }
    let (source, lower) = protocol.upper_and_lower()?;
    match (system, &lower[..]) {
        (None, _) => Ok((Some(source), lower)),
        (Some(name), []) => {
            let source = source.with_sizes_of(name).map_err(to_exception)?;
            Ok((Some(source), lower))
        }
        (Some(name), [..]) => Err(input_error(&format!(
            "`system` is {name}: two-level systems have no sizes of their own"
        ))),
    }
}

/// Places the threads of a test on kinds of remotes or on lower levels, and chooses the variants of its writes.
///
/// # Errors
/// The options do not fit the protocol, or describe several tests.
fn single_test(
    test: &Test,
    source: Option<&Source>,
    lower: &[LowerLevel],
    options: &LitmusOptions,
) -> PyResult<Test> {
    let test = test.clone();
    let kinds = options.kinds.as_deref();
    let (placements, placed_on) = match (source, lower) {
        (None, _) => (Ok(vec![test]), String::new()),
        (Some(source), []) => {
            let name = &source.protocol.name;
            let placed_on = format!("the kinds of remotes of {name} have different rows");
            (test.with_kinds(kinds, &source.protocol), placed_on)
        }
        (Some(_), [lower]) => {
            if let Some(kinds) = kinds {
                let (kind, text) = (
                    &lower.source.protocol.kinds[0].name,
                    &lower.source.protocol.name,
                );
                return Err(input_error(&format!(
                    "`kinds` is {kinds}: threads on a two-level protocol run on `{kind}` of {text}"
                )));
            }
            (Ok(vec![test]), String::new())
        }
        (Some(_), _) => {
            let placed_on = "the composition has several lower levels".to_string();
            (test.with_clusters(kinds, lower), placed_on)
        }
    };
    let placements = placements.map_err(to_exception)?;
    let count = placements.len();
    let [test] = <[_; 1]>::try_from(placements).map_err(|_| {
        input_error(&format!(
            "{placed_on}: `kinds` assigns one to each thread, in one of {count} ways"
        ))
    })?;
    let Some(stores) = &options.stores else {
        return Ok(test);
    };
    let threads_source = match lower {
        [] => source,
        [lower] => Some(&lower.source),
        [..] => {
            return Err(input_error(&format!(
                "`stores` is {stores}: threads run on clusters with different protocols"
            )))
        }
    };
    let Some(threads_source) = threads_source else {
        return Ok(test);
    };
    let variants = test
        .with_store_variants(stores, &threads_source.protocol)
        .map_err(to_exception)?;
    // Letters describe one combination of variants, whereas `all` gives one test per combination.
    let [variant] = <[_; 1]>::try_from(variants)
        .map_err(|_| input_error("`stores` needs one letter per write of a single test"))?;
    Ok(variant)
}

/// Exception for a failed test, without the prefix of messages on a terminal.
fn to_exception(failure: Failure) -> PyErr {
    let message = failure.message;
    input_error(message.strip_prefix("error: ").unwrap_or(&message))
}

/// Returns the value of this name, in which Python has `_` for `-`.
fn named_value<T: NamedValue>(name: Option<&str>) -> PyResult<Option<T>> {
    let Some(name) = name else {
        return Ok(None);
    };
    let value = T::from_name(&name.replace('_', "-"));
    value.map(Some).ok_or_else(|| {
        let names = T::ALL.iter().map(|value| value.name().replace('-', "_"));
        let names = names.collect::<Vec<_>>().join(", ");
        input_error(&format!("`{name}` is not one of {names}"))
    })
}
