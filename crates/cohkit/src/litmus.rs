//! `cohkit litmus`: runs litmus tests, and prints their outcomes.

use crate::console::Console;
use crate::deliver;
use crate::interrupt::CleanupGuard;
use crate::options::Litmus as Options;
use crate::rtl::ports::Systems;
use cohkit_api::composition::{CompositionSource, LowerLevel};
use cohkit_api::files;
use cohkit_api::litmus::{
    run_test, run_test_on_ports, LitmusRequest, MemorySystem, PortSystems, Report, Test, TestError,
};
use cohkit_api::outcome::{ExitStatus, Failure};
use cohkit_api::source::Source;
use cohkit_protocol::text::composes;
use serde_json::Value;
use std::path::Path;

/// Runs all tests. The error of a test is printed, and the next test runs; the worst outcome is returned.
///
/// # Errors
/// The options contradict each other, the protocol is invalid, an output cannot be written, or the run was
/// interrupted.
pub(crate) fn run(options: &Options, console: &mut Console) -> Result<ExitStatus, Failure> {
    if let Some(file) = &options.output.out {
        files::try_file(file)?;
    }
    let (source, lower) = read_protocols(options, console)?;
    // Read all tests before the first run: an error in the last one must not appear after hours.
    let mut outcome = ExitStatus::Success;
    let mut tests = read_tests(options, &mut outcome, console);
    if options.print {
        let texts: Result<Vec<String>, String> = tests.iter().map(Test::print).collect();
        let texts = texts
            .map_err(|reason| Failure::new(ExitStatus::BadInput, format!("error: {reason}")))?;
        deliver(&texts.join("\n"), &options.output, console)?;
        return Ok(outcome);
    }
    if let (Some(kinds), [lower]) = (&options.kinds, &lower[..]) {
        let protocol = &lower.source.protocol;
        let (kind, text) = (&protocol.kinds[0].name, &protocol.name);
        let message = format!(
            "error: --kinds {kinds}: threads on a two-level protocol run on `{kind}` of {text}"
        );
        return Err(Failure::new(ExitStatus::BadInput, message));
    }
    if lower.len() > 1 {
        if let Some(stores) = &options.store_variants {
            let message = format!(
                "error: --store-variants {stores}: threads run on clusters with different protocols"
            );
            return Err(Failure::new(ExitStatus::BadInput, message));
        }
        let with_clusters = |test: Test| test.with_clusters(options.kinds.as_deref(), &lower);
        tests = expand_tests(tests, &with_clusters, &mut outcome, console);
    }
    // On a two-level protocol, the threads run on the lower level.
    let lower_source = lower.first().map(|level| &level.source);
    if let Some(threads_source) = lower_source.or(source.as_ref()) {
        let protocol = &threads_source.protocol;
        if lower.is_empty() {
            let with_kinds = |test: Test| test.with_kinds(options.kinds.as_deref(), protocol);
            tests = expand_tests(tests, &with_kinds, &mut outcome, console);
        }
        if let Some(stores) = &options.store_variants {
            let with_variants = |test: Test| test.with_store_variants(stores, protocol);
            tests = expand_tests(tests, &with_variants, &mut outcome, console);
        }
    }
    let memory_system = MemorySystem {
        source: source.as_ref(),
        lower: &lower,
        file: options.protocol.as_deref(),
    };
    let reports = run_tests(&tests, memory_system, options, &mut outcome, console)?;
    let outcome = reports.iter().map(|r| r.outcome).fold(outcome, Ord::max);
    let text = if options.output.form.json {
        let values: Vec<Value> = reports.into_iter().map(|r| r.json).collect();
        options
            .output
            .form
            .format_output(Value::from(values), console)
    } else {
        reports.into_iter().map(|r| r.text).collect()
    };
    deliver(&text, &options.output, console)?;
    Ok(outcome)
}

/// Protocol of the options, with its lower levels if it has two levels; `None` without a protocol.
fn read_protocols(
    options: &Options,
    console: &Console,
) -> Result<(Option<Source>, Vec<LowerLevel>), Failure> {
    let Some(path) = &options.protocol else {
        return Ok((None, Vec::new()));
    };
    let (source, lower) = read_levels(path, console.terminal.colour)?;
    match (&options.system, &lower[..]) {
        (None, _) => Ok((Some(source), lower)),
        (Some(name), []) => Ok((Some(source.with_sizes_of(name)?), lower)),
        (Some(name), [..]) => {
            let message =
                format!("error: --system {name}: two-level systems have no sizes of their own");
            Err(Failure::new(ExitStatus::BadInput, message))
        }
    }
}

/// Reads the protocol of a machine, or the protocol of its upper level and those of its lower level.
///
/// # Errors
/// A file cannot be read or is invalid, or the composition is not two levels.
fn read_levels(path: &Path, colour: bool) -> Result<(Source, Vec<LowerLevel>), Failure> {
    let text = files::read(path)?;
    if !composes(&text) {
        return Ok((Source::of(path, text, colour)?, Vec::new()));
    }
    CompositionSource::read(path, &text, colour)?.upper_and_lower()
}

/// Reads the tests of all files, and adds the shapes if the options ask for them. Prints the errors of files, and raises
/// `outcome` to the worst of them.
fn read_tests(options: &Options, outcome: &mut ExitStatus, console: &mut Console) -> Vec<Test> {
    let mut tests = Vec::new();
    for file in &options.files {
        match read_test(file, console) {
            Ok(test) => tests.push(test),
            Err(failure) => report_failure(&failure, outcome, console),
        }
    }
    let file_count = options.files.len();
    let failed_count = file_count - tests.len();
    if failed_count > 0 && !tests.is_empty() {
        console.say(&format!(
            "{failed_count} of {file_count} tests are undecided: they could not be read"
        ));
    }
    if options.shapes {
        tests.extend(Test::shapes());
    }
    tests
}

/// Expands each test into several. Prints the errors of single tests, and raises `outcome` to the worst of them.
fn expand_tests(
    tests: Vec<Test>,
    expand: &dyn Fn(Test) -> Result<Vec<Test>, Failure>,
    outcome: &mut ExitStatus,
    console: &mut Console,
) -> Vec<Test> {
    let mut expanded = Vec::new();
    for test in tests {
        match expand(test) {
            Ok(tests) => expanded.extend(tests),
            Err(failure) => report_failure(&failure, outcome, console),
        }
    }
    expanded
}

/// Runs the tests in their order. Prints the errors of single tests, and raises `outcome` to the worst of them.
///
/// # Errors
/// The run was interrupted.
fn run_tests(
    tests: &[Test],
    memory_system: MemorySystem,
    options: &Options,
    outcome: &mut ExitStatus,
    console: &mut Console,
) -> Result<Vec<Report>, Failure> {
    let request = LitmusRequest {
        cores: options.cores,
        model: options.model,
        max_spontaneous_evictions: options.max_spontaneous_evictions,
        max_states: options.max_states,
        chart: options.chart,
        simulate: options.simulation_runs.map(|runs| (options.seed, runs)),
        basis: options.expect,
    };
    let mut reports = Vec::new();
    let mut systems = match (memory_system.source, options.rtl_runs) {
        (Some(source), Some(_)) => Some(Systems::new(
            source,
            (options.system.as_deref(), options.build_cache.as_deref()),
            console.terminal,
            console.interrupted,
        )?),
        _ => None,
    };
    let _cleanup = systems.as_ref().map(|_| CleanupGuard::new());
    for test in tests {
        let systems = systems
            .as_mut()
            .map(|systems| systems as &mut dyn PortSystems);
        match report_on_test(test, memory_system, &request, (options, systems), console) {
            Ok(report) => reports.push(report),
            Err(failure) if failure.outcome == ExitStatus::Interrupted => return Err(failure),
            Err(failure) => report_failure(&failure, outcome, console),
        }
    }
    Ok(reports)
}

/// Runs one test, on these systems if the options ask for hardware.
fn report_on_test(
    test: &Test,
    memory_system: MemorySystem,
    request: &LitmusRequest,
    (options, systems): (&Options, Option<&mut dyn PortSystems>),
    console: &Console,
) -> Result<Report, Failure> {
    let charts = options.output.charts(console.terminal);
    let should_continue = &mut || !console.is_interrupted();
    let report = match (systems, options.rtl_runs) {
        (Some(systems), Some(runs)) => {
            let hardware = (systems, options.seed, runs);
            run_test_on_ports(
                test,
                memory_system,
                request,
                hardware,
                &charts,
                should_continue,
            )
        }
        _ => run_test(test, memory_system, request, &charts, should_continue),
    };
    report.map_err(|error| match error {
        TestError::NoHome(source, error) => {
            source.no_home(&error, &charts, console.terminal.colour)
        }
        TestError::Failure(failure) => failure,
    })
}

/// Prints the failure of one test, and raises `outcome` to that of the failure; the other tests still run.
fn report_failure(failure: &Failure, outcome: &mut ExitStatus, console: &mut Console) {
    console.say(&failure.message);
    *outcome = (*outcome).max(failure.outcome);
}

/// Reads a test. A plain name without the extension `.litmus` is the name of a shape, unless such a file exists.
fn read_test(file: &Path, console: &Console) -> Result<Test, Failure> {
    let name = file.display().to_string();
    let file = files::input_path(file);
    if !file.exists() && file.extension() != Some("litmus".as_ref()) && !name.contains('/') {
        return Test::shape(&name).map_err(|help| {
            let message = format!(
                "error: {name}: no such file or classic shape\n  help: {help}; `cohkit litmus --shapes --print` prints all"
            );
            Failure::new(ExitStatus::BadInput, message)
        });
    }
    let text = files::read(file)?;
    Test::read(&name, &text).map_err(|error| {
        let message = error.render(&name, &text, console.terminal.colour);
        Failure::new(ExitStatus::BadInput, message)
    })
}
