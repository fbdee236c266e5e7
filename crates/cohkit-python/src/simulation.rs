//! Platforms and simulations.

use crate::composition::ExecutableProtocol;
use crate::interruptible::{interruptible, interruptible_with_callback};
use crate::scenario::{PendingException, PyScenario};
use crate::{input_error, no_home_error, one_line_message, text_error, Protocol, RefusedError};
use cohkit_api::application_run::{self, play_all};
use cohkit_api::composition::MachineProtocols;
use cohkit_api::simulation::{
    platform_json, read_platform, run_all, shipped_platform, Request, StartError,
};
use cohkit_api::workload::Work;
use cohkit_api::{ExitStatus, Source};
use cohkit_protocol::controller::Controller;
use cohkit_sim::platform::{self, Platform};
use cohkit_sim::simulation::home;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use serde_json::{json, Value};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};

/// Converts the reason to an exception.
fn to_exception(error: StartError) -> PyErr {
    match error {
        StartError::Input { message, help } => {
            let help = help.map_or(String::new(), |help| format!("; {help}"));
            input_error(&format!("{message}{help}"))
        }
        StartError::Platform { file, text, errors } => {
            text_error(&cohkit_api::platform_errors_json(&errors, &file, &text))
        }
        StartError::Trace { file, error } => input_error(&format!("{file}: {error}")),
        StartError::NoHome(source, error) => no_home_error(&source, error),
        StartError::Failure(failure) => {
            let message = one_line_message(&failure);
            match failure.outcome {
                ExitStatus::BadInput => input_error(&message),
                _ => RefusedError::new_err(("unavailable", json!(message).to_string())),
            }
        }
    }
}

/// Names of the shipped platforms.
#[pyfunction]
pub(crate) fn platforms() -> Vec<&'static str> {
    Platform::shipped_names().collect()
}

/// Returns the name of a quantity that is given by its name or its former name.
#[pyfunction]
pub(crate) fn current_name(name: &str) -> String {
    platform::current_name(name).into_owned()
}

/// A platform, as a machine for simulations.
#[pyclass(frozen)]
pub(crate) struct Machine {
    /// Platform with all quantities that were set.
    platform: Platform,
}

#[pymethods]
impl Machine {
    /// Returns the shipped platform of this name, or parses the text of a platform file with this name.
    #[new]
    fn new(name: &str, text: Option<&str>) -> PyResult<Machine> {
        let platform = match text {
            Some(text) => read_platform(name, text),
            None => shipped_platform(name),
        };
        let platform = platform.map_err(to_exception)?;
        Ok(Machine { platform })
    }

    /// Combines a device and a host to one machine with two spaces.
    fn with_host(&self, host: &Machine) -> PyResult<Machine> {
        let device = self.platform.clone();
        let result = device.with_host(host.platform.clone());
        let platform = result.map_err(|reason| input_error(&reason))?;
        Ok(Machine { platform })
    }

    /// Quantities of the platform, as JSON text.
    fn json(&self) -> String {
        platform_json(&self.platform).to_string()
    }

    /// Returns a copy with quantities set, `name=value` each.
    #[expect(clippy::needless_pass_by_value, reason = "as Python gives it")]
    fn set(&self, settings: Vec<String>) -> PyResult<Machine> {
        let mut platform = self.platform.clone();
        cohkit_api::simulation::set(&mut platform, &settings).map_err(to_exception)?;
        Ok(Machine { platform })
    }
}

/// Constructs the home of a protocol for this number of remotes, outside of the interpreter.
fn construct_home(py: Python<'_>, source: Source, remotes: u16) -> PyResult<Controller> {
    let source = Arc::new(source);
    let shared_source = Arc::clone(&source);
    let home = interruptible(py, move |_| home(&shared_source.protocol, remotes))?;
    home.map_err(|error| no_home_error(&source, error))
}

impl ExecutableProtocol<'_> {
    /// Returns the controller of the first protocol's home for this number of remotes; caches that of a single
    /// protocol.
    fn home(&self, py: Python<'_>, first: &Source, remotes: u16) -> PyResult<Controller> {
        match self {
            ExecutableProtocol::Single(protocol) => protocol.home(py, remotes),
            ExecutableProtocol::Composed(_) => construct_home(py, first.clone(), remotes),
        }
    }
}

impl Protocol {
    /// Returns the controller of the home for this number of remotes, from the cache if it is there.
    fn home(&self, py: Python<'_>, remotes: u16) -> PyResult<Controller> {
        let cached_homes = || self.homes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(home) = cached_homes().get(&remotes) {
            return Ok(home.clone());
        }
        let home = construct_home(py, Source::clone(&self.source), remotes)?;
        cached_homes().insert(remotes, home.clone());
        Ok(home)
    }
}

/// A valid simulation, ready to run.
#[pyclass(frozen)]
pub(crate) struct Simulation {
    /// Simulation that several runs may share.
    simulation: Arc<cohkit_api::simulation::Simulation>,
}

#[pymethods]
impl Simulation {
    /// Creates a simulation of a workload on a machine. `trace` is the kind and the contents of a trace, which
    /// replaces the workload; `workload` is then only its name. The other parameters are the fields of [`Request`].
    ///
    /// # Errors
    /// A parameter or the combination of machine and protocol is invalid, or no home can be constructed.
    #[new]
    #[pyo3(signature = (machine, workload, *, protocol, region, trace, accesses, cores, outstanding, prefetch, by, settings, seed, oracle, explain))]
    #[expect(
        clippy::too_many_arguments,
        reason = "each is a keyword of the public function"
    )]
    fn new(
        py: Python<'_>,
        machine: &Machine,
        workload: &str,
        protocol: ExecutableProtocol<'_>,
        region: Option<String>,
        trace: Option<(String, PyBackedBytes)>,
        accesses: Option<u64>,
        cores: Option<u32>,
        outstanding: Option<u32>,
        prefetch: Option<u32>,
        by: Vec<String>,
        settings: Vec<String>,
        seed: u64,
        oracle: bool,
        explain: bool,
    ) -> PyResult<Simulation> {
        let work = match trace {
            None => Work::named(workload).map_err(to_exception)?,
            Some((kind, bytes)) => Work::bytes(workload, &kind, &bytes).map_err(to_exception)?,
        };
        let request = Request {
            work,
            region,
            accesses,
            cores,
            outstanding,
            prefetch,
            kind_workloads: by,
            settings,
            seed,
            oracle,
            explain,
        };
        let mut platform = machine.platform.clone();
        cohkit_api::simulation::set(&mut platform, &request.settings).map_err(to_exception)?;
        let (source, second) = protocol
            .machine_protocols()?
            .on_platform(&platform)
            .map_err(to_exception)?;
        let home = protocol.home(py, &source, platform.all_remotes() as u16)?;
        let simulation =
            cohkit_api::simulation::Simulation::new(source, home, second, platform, request);
        let simulation = Arc::new(simulation.map_err(to_exception)?);
        Ok(Simulation { simulation })
    }
}

/// Results of simulations in their order, as JSON text like that of `cohkit sim --json`. At most `threads` of them run
/// concurrently. `progress` is called with the number of accesses performed so far, and the total.
///
/// # Errors
/// The simulations do not fit into memory, `progress` raises an exception, or the user interrupts the runs.
#[pyfunction]
#[pyo3(signature = (simulations, *, threads, progress))]
pub(crate) fn simulate(
    py: Python<'_>,
    simulations: Vec<PyRef<'_, Simulation>>,
    threads: Option<usize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let handles = simulations.iter();
    let handles: Vec<_> = handles
        .map(|handle| Arc::clone(&handle.simulation))
        .collect();
    let accesses = handles.iter().map(|handle| handle.accesses());
    let total = accesses.fold(0, u64::saturating_add);
    let performed = Arc::new(AtomicU64::new(0));
    let performed_count = Arc::clone(&performed);
    let report_progress = |py: Python<'_>| match &progress {
        Some(progress) => {
            let count = performed_count.load(Ordering::Relaxed).min(total);
            progress.call1(py, (count, total)).map(drop)
        }
        None => Ok(()),
    };
    let results = interruptible_with_callback(py, report_progress, move |cancel| {
        let handles: Vec<_> = handles.iter().map(|handle| &**handle).collect();
        run_all(&handles, threads, cancel, &performed)
    })?;
    let results = results.map_err(to_exception)?;
    report_progress(py)?;
    Ok(Value::Array(results).to_string())
}

/// An application behind a home, ready to run.
#[pyclass(frozen)]
pub(crate) struct Play {
    /// Application on its machine.
    play: Arc<application_run::Play>,
    /// First exception of the scenario's Python code, if the application is a custom one.
    pending_exception: PendingException,
}

#[pymethods]
impl Play {
    /// Sets up an application on a machine: the shipped one of this name, or the custom one `scenario`. Its parts are a
    /// function that starts a new run, the number of lines, the number of words of host memory, and true if the
    /// application ends by itself.
    #[new]
    #[pyo3(signature = (machine, application, *, scenario, protocol, parameters, time, warm_up, settings, sizes, seed, oracle, tables))]
    #[expect(
        clippy::too_many_arguments,
        reason = "each is a keyword of the public function"
    )]
    fn new(
        machine: &Machine,
        application: String,
        scenario: Option<(Py<PyAny>, u32, u32, bool)>,
        protocol: ExecutableProtocol<'_>,
        parameters: Vec<String>,
        time: Option<String>,
        warm_up: String,
        settings: Vec<String>,
        sizes: Vec<String>,
        seed: u64,
        oracle: bool,
        tables: bool,
    ) -> PyResult<Play> {
        let request = application_run::Request {
            application,
            parameters,
            time,
            warm_up,
            settings,
            sizes,
            seed,
            oracle,
            tables,
        };
        let mut platform = machine.platform.clone();
        cohkit_api::simulation::set(&mut platform, &request.settings).map_err(to_exception)?;
        let (source, host) = match protocol.machine_protocols()? {
            MachineProtocols::Single(source) => (source, None),
            MachineProtocols::Directions(device, host) => (device, Some(host)),
            MachineProtocols::Levels(..) => {
                return Err(input_error(&format!(
                    "{}: {}",
                    protocol.file(),
                    application_run::TWO_LEVELS
                )))
            }
        };
        let pending_exception = PendingException::default();
        let play = match scenario {
            None => application_run::Play::new(source, host, platform, request),
            Some((begin, lines, host_words, ends)) => {
                let pending_exception = pending_exception.clone();
                let py_scenario = PyScenario {
                    begin,
                    lines,
                    host_words,
                    ends,
                    pending_exception,
                };
                application_run::Play::with_scenario(
                    source,
                    host,
                    platform,
                    request,
                    Arc::new(py_scenario),
                )
            }
        };
        if let Some(exception) = pending_exception.take() {
            return Err(exception);
        }
        let play = Arc::new(play.map_err(to_exception)?);
        Ok(Play {
            play,
            pending_exception,
        })
    }
}

/// Results of applications in their order, as JSON text like that of `cohkit play --json`. At most `threads` of them
/// run concurrently. `progress` is called with the number of completed runs, and the total.
///
/// # Errors
/// The Python code of a scenario or `progress` raises an exception, or the user interrupts the runs.
#[pyfunction]
#[pyo3(signature = (plays, *, threads, progress))]
pub(crate) fn play(
    py: Python<'_>,
    plays: Vec<PyRef<'_, Play>>,
    threads: Option<usize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let handles: Vec<_> = plays
        .iter()
        .map(|handle| Arc::clone(&handle.play))
        .collect();
    let exceptions: Vec<_> = plays
        .iter()
        .map(|handle| handle.pending_exception.clone())
        .collect();
    let total = handles.len();
    let completed = Arc::new(AtomicU64::new(0));
    let completed_count = Arc::clone(&completed);
    let report_progress = |py: Python<'_>| match &progress {
        Some(progress) => {
            let count = completed_count.load(Ordering::Relaxed);
            progress.call1(py, (count, total)).map(drop)
        }
        None => Ok(()),
    };
    let results = interruptible_with_callback(py, report_progress, move |cancel| {
        let handles: Vec<_> = handles.iter().map(|handle| &**handle).collect();
        play_all(&handles, threads, cancel, &completed)
    })?;
    if let Some(exception) = exceptions.iter().find_map(PendingException::take) {
        return Err(exception);
    }
    let results = results.map_err(to_exception)?;
    report_progress(py)?;
    Ok(Value::Array(results).to_string())
}
