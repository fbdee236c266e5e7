//! Litmus tests.

use crate::composition::Executed;
use crate::interruptible::interruptible;
use crate::{bad_input, bad_text, no_home};
use cohkit::composed::Texts;
use cohkit::litmus::{answer, LitmusRequest, NotJudged, On, Test};
use cohkit::Failure;
use pyo3::prelude::*;
use std::path::PathBuf;

/// A litmus test that was read.
#[pyclass(frozen, module = "cohkit._cohkit")]
pub(crate) struct Litmus {
    test: Test,
}

#[pymethods]
impl Litmus {
    /// Parses a test from a file of this name; without text, `name` is the name of a classic shape.
    #[new]
    fn new(name: &str, text: Option<&str>) -> PyResult<Litmus> {
        let test = match text {
            Some(text) => Test::parse(name, text).map_err(|diagnostics| bad_text(&diagnostics))?,
            None => Test::shape(name)
                .map_err(|help| bad_input(&format!("`{name}` is not a classic shape; {help}")))?,
        };
        Ok(Litmus { test })
    }
}

/// Run options of a test.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct LitmusOptions {
    cores: Option<String>,
    model: Option<String>,
    gives_up: u8,
    max_states: usize,
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

/// JSON text of `cohkit litmus --json` for one test.
#[pyfunction]
#[pyo3(signature = (test, *, protocol, how))]
pub(crate) fn litmus(
    py: Python<'_>,
    test: &Litmus,
    protocol: Option<Executed<'_>>,
    how: LitmusOptions,
) -> PyResult<String> {
    let mut test = test.test.clone();
    let file = protocol.as_ref().map(|on| PathBuf::from(on.file()));
    let (source, lower) = match protocol.map(|on| on.texts()).transpose()? {
        None => (None, None),
        Some(Texts::One(source)) => (Some(source), None),
        Some(Texts::Levels(upper, lower)) => (Some(upper), Some(lower)),
        Some(Texts::Directions(device, host)) => return Err(bad_input(&format!(
            "a test runs on one address space, but the specification composes two; give {} or {}",
            device.path.display(),
            host.path.display()
        ))),
    };
    let source = match (source, &how.system) {
        (Some(_), Some(name)) if lower.is_some() => {
            return Err(bad_input(&format!(
                "`system` is {name}: two-level systems have no sizes of their own"
            )));
        }
        (Some(source), Some(name)) => Some(source.with_sizes_of(name).map_err(refused)?),
        (source, _) => source,
    };
    if let (Some(kinds), Some(lower)) = (&how.kinds, &lower) {
        let (kind, text) = (&lower.protocol.kinds[0].name, &lower.protocol.name);
        return Err(bad_input(&format!(
            "`kinds` is {kinds}: threads on a two-level protocol run on `{kind}` of {text}"
        )));
    }
    if let (Some(source), None) = (&source, &lower) {
        let placed = test
            .placed(how.kinds.as_deref(), &source.protocol)
            .map_err(refused)?;
        let count = placed.len();
        let [one] = <[_; 1]>::try_from(placed).map_err(|_| {
            let name = &source.protocol.name;
            bad_input(&format!(
                "the kinds of remotes of {name} have different rows: `kinds` assigns one to each thread, in one of {count} ways"
            ))
        })?;
        test = one;
    }
    if let (Some(stores), Some(source)) = (&how.stores, lower.as_ref().or(source.as_ref())) {
        let mixed = test.mixes(stores, &source.protocol).map_err(refused)?;
        // Letters describe one mix, whereas `every` gives several.
        let [one] = <[_; 1]>::try_from(mixed)
            .map_err(|_| bad_input("`stores` needs one letter per write of a single test"))?;
        test = one;
    }
    let asked = LitmusRequest {
        cores: how.cores,
        model: how.model,
        gives_up: how.gives_up,
        max_states: how.max_states,
        chart: how.chart,
        simulate: how.simulate,
        expect: how.expect,
    };
    let answered = interruptible(py, move |cancel| {
        let on = On {
            source: source.as_ref(),
            lower: lower.as_ref(),
            file: file.as_deref(),
        };
        answer(&test, on, &asked, cancel)
    })?;
    match answered {
        Ok(value) => Ok(value.to_string()),
        Err(NotJudged::NoHome(source, error)) => Err(no_home(&source, error)),
        Err(NotJudged::Failure(failure)) => Err(refused(failure)),
    }
}

fn refused(failure: Failure) -> PyErr {
    let said = failure.message;
    bad_input(said.strip_prefix("error: ").unwrap_or(&said))
}
