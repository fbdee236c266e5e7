//! Conversion of the options of `cohkit check` into a check request.

use crate::console::Console;
use crate::judge::{simulation, Request, Systems};
use crate::models::Reading;
use crate::options::{Check, DeadlockOption, DialectOption, SymmetryOption};
use cohkit_engine::model::Deadlock;
use cohkit_murphi::Dialect;

/// Returns the request that the options describe.
pub(crate) fn request<'a>(options: &Check, console: &Console<'a>) -> Request<'a> {
    Request {
        systems: systems(options),
        capacity: options.capacity,
        symmetry: options.symmetry != Some(SymmetryOption::Off),
        hash_compaction: options.hash_compaction,
        threads: options.threads.map(usize::from),
        max_states: options.max_states,
        max_depth: options.max_depth,
        max_memory: options.max_memory,
        simulation: options
            .simulate
            .map(|steps| simulation(steps, options.seed.unwrap_or(0), options.max_depth)),
        coverage: options.coverage,
        cancel: console.interrupted,
    }
}

/// Quotes a word for a POSIX shell, if it needs quotes.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./=:,+-@".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_string(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// Output line with the command that repeats the same random walks, seed included; empty without `--simulate`.
pub(crate) fn reproduce_command(options: &Check) -> String {
    if options.simulate.is_none() {
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

/// Dialect and deadlock rule for reading Murphi models; by default any dialect, and stuttering.
pub(crate) fn reading(options: &Check) -> Reading {
    Reading {
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
