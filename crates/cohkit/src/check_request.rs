//! Inputs and request of a check, from the options of `cohkit check`.

use crate::console::Console;
use crate::options::{Check, DeadlockOption, DialectOption, FairnessOption, SymmetryOption};
use cohkit_api::checkpoints::Checkpoints;
use cohkit_api::composition::CompositionSource;
use cohkit_api::files;
use cohkit_api::model_check::ModelReadOptions;
use cohkit_api::outcome::{ExitStatus, Failure};
use cohkit_api::protocol_check::{simulation, Request, Systems};
use cohkit_api::shell_word::quoted;
use cohkit_engine::model::{Deadlock, Model};
use cohkit_murphi::Dialect;
use cohkit_protocol::composition::JointSystem;
use std::path::Path;
use std::time::Duration;

/// Returns the request that the options describe. Setting the console's interrupt flag cancels the check.
pub(crate) fn request<'a>(options: &Check, console: &Console<'a>) -> Request<'a> {
    Request {
        systems: systems(options),
        capacity: options.capacity,
        symmetry: options.symmetry != Some(SymmetryOption::Off),
        hash_compaction: options.hash_compaction,
        disk: options.disk,
        threads: options.threads.map(usize::from),
        max_states: options.max_states,
        max_depth: options.max_depth,
        max_memory: options.max_memory,
        simulation: options
            .random_walks
            .map(|steps| simulation(steps, options.seed.unwrap_or(0), options.max_depth)),
        coverage: options.coverage,
        any_number: options.any_number,
        fairness: options.fairness.map(FairnessOption::fairness),
        cancel: console.interrupted,
    }
}

/// Output line with the command that repeats the same random walks, seed included; empty without `--random-walks`.
pub(crate) fn reproduce_command(options: &Check) -> String {
    if options.random_walks.is_none() {
        return String::new();
    }
    let mut command = String::from("cohkit");
    for word in std::env::args_os().skip(1) {
        command += " ";
        command += &quoted(&word.to_string_lossy());
    }
    if options.seed.is_none() {
        command += " --seed 0";
    }
    format!("  again: {command}\n")
}

/// Systems that the options select: one of a given size (1 remote and 1 line by default), named ones, or all declared
/// ones.
pub(crate) fn systems(options: &Check) -> Systems {
    if options.remotes.is_some() || options.lines.is_some() {
        Systems::Sized {
            remotes: options.remotes.unwrap_or(1).into(),
            lines: options.lines.unwrap_or(1),
        }
    } else if options.systems.is_empty() {
        Systems::Declared
    } else {
        Systems::Named(options.systems.clone())
    }
}

/// Systems of a composition that the options select.
///
/// # Errors
/// An option does not apply to compositions, or a system is unknown.
pub(crate) fn composition_systems<'c>(
    options: &Check,
    composition: &'c CompositionSource,
) -> Result<Vec<&'c JointSystem>, Failure> {
    reject_unsuitable_options(options, composition.path())?;
    if options.systems.is_empty() {
        return Ok(composition.composition().systems.iter().collect());
    }
    composition
        .named_systems(&options.systems)
        .map_err(|error| error.failure(composition.path()))
}

/// Rejects options that apply to one system of one protocol.
fn reject_unsuitable_options(options: &Check, path: &Path) -> Result<(), Failure> {
    let unsupported = [
        ("--remotes", options.remotes.is_some()),
        ("--lines", options.lines.is_some()),
        ("--graph", options.graph.is_some()),
        ("--any-number", options.any_number),
        ("--fairness", options.fairness.is_some()),
    ];
    match unsupported.iter().find(|(_, is_set)| *is_set) {
        None => Ok(()),
        Some((option, _)) => Err(Failure::new(
            ExitStatus::BadInput,
            format!(
                "error: {}: `{option}` applies to one protocol, but this specification composes several\n  \
                 help: check the specifications that it uses",
                path.display()
            ),
        )),
    }
}

/// Opens the folder for checkpoints that the options name, if they name one.
///
/// # Errors
/// The folder cannot be written, contains checkpoints where a new search needs none, or has none to resume from.
pub(crate) fn checkpoints(options: &Check) -> Result<Option<Checkpoints>, Failure> {
    let (folder, resumes) = match (&options.checkpoint, &options.resume) {
        (Some(folder), _) => (folder, false),
        (None, Some(folder)) => (folder, true),
        (None, None) => return Ok(None),
    };
    let interval = Duration::from_secs(options.checkpoint_every);
    Checkpoints::in_folder(folder, resumes, interval).map(Some)
}

/// Reads a Murphi model, and prints warnings about probable mistakes to standard error.
///
/// # Errors
/// The file cannot be read, or the model has errors.
pub(crate) fn read_model(
    path: &Path,
    options: &Check,
    console: &mut Console,
) -> Result<Model, Failure> {
    let reading = reading(options);
    let text = files::read(path)?;
    let (file, colour) = (path.display().to_string(), console.terminal.colour);
    let render_all = |diagnostics: &[cohkit_murphi::Diagnostic]| {
        let texts = diagnostics.iter().map(|d| d.render(&file, &text, colour));
        texts.collect::<Vec<_>>().join("\n\n")
    };
    let (model, mut warnings) = reading
        .read(path, &text)
        .map_err(|errors| Failure::new(ExitStatus::BadInput, render_all(&errors)))?;
    warnings.extend(cohkit_murphi::undefined_read(&text, reading.dialect));
    if !warnings.is_empty() {
        console.say(&render_all(&warnings));
    }
    Ok(model)
}

/// Dialect and deadlock rule for reading Murphi models; by default any dialect, and stuttering.
fn reading(options: &Check) -> ModelReadOptions {
    ModelReadOptions {
        dialect: match options.dialect {
            None => Dialect::Any,
            Some(DialectOption::Cmurphi) => Dialect::CMurphi,
            Some(DialectOption::Rumur) => Dialect::Rumur,
        },
        deadlock: match options.deadlock {
            None | Some(DeadlockOption::Stuttering) => Deadlock::Stuttering,
            Some(DeadlockOption::Stuck) => Deadlock::Stuck,
            Some(DeadlockOption::Off) => Deadlock::Off,
        },
    }
}
