//! Comparison of all engines on one model, and reduction of failing models. A disagreement is a bug of an engine or a
//! construct that the generator must not use.

use crate::orbits::count_orbits;
use cohkit_engine::model::{Deadlock, Model, Type, TypeId};
use cohkit_engine::search::Engine;
use cohkit_engine::symmetry_check::asymmetric_uses;
use cohkit_engine::{check, Options, Outcome, Property, Report};
use cohkit_murphi::{print, read, rumur_options, Dialect, Style};
use std::os::unix::process::ExitStatusExt;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::Path;
use std::process::Command;

/// The verdict that all engines agree on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AgreedVerdict {
    /// No violation. `orbits` is the number of states up to symmetry.
    Verified { states: u128, orbits: u128 },
    /// A property is violated.
    Violated,
}

/// Reason why a model cannot be judged, or a disagreement.
#[derive(Debug)]
pub enum JudgeError {
    /// The generated text is not Murphi, or the other checker fails without a verdict.
    Rejected(String),
    /// Two checkers disagree: the kind of disagreement, and their results.
    Disagreement(String, String),
}

use JudgeError::{Disagreement, Rejected};

/// Value of a key in the comments at the start of a generated text, `-- KEY: VALUE` each.
fn key<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let head = text.lines().take_while(|line| line.starts_with("-- "));
    let mut pairs = head.filter_map(|line| line.strip_prefix("-- ")?.split_once(": "));
    pairs.find(|pair| pair.0 == key).map(|pair| pair.1)
}

/// Parses a generated text with the dialect and the definition of a deadlock that its first comments state.
pub fn model(text: &str) -> Result<Model, JudgeError> {
    let dialect = match key(text, "dialect") {
        Some("rumur") => Dialect::Rumur,
        _ => Dialect::Any,
    };
    let read = read("model", text, dialect).map_err(|errors| {
        let errors: Vec<_> = errors
            .iter()
            .map(|e| e.render("model.m", text, false))
            .collect();
        Rejected(errors.join("\n"))
    })?;
    let mut model = read.model;
    model.deadlock = match key(text, "deadlock") {
        Some("off") => Deadlock::Off,
        Some("stuck") => Deadlock::Stuck,
        _ => Deadlock::Stuttering,
    };
    Ok(model)
}

/// Options of the reference search: interpreted, without symmetry, of the model as a whole.
fn exhaustive_options() -> Options<'static> {
    Options {
        decompose: false,
        symmetry: false,
        engine: Engine::Interpreter,
        ..Options::default()
    }
}

/// Checks a model. A panic is a disagreement.
fn run(model: &Model, options: &Options) -> Result<Report, JudgeError> {
    let result = catch_unwind(AssertUnwindSafe(|| check(model, options)));
    match result {
        Ok(Ok(report)) => Ok(report),
        Ok(Err(errors)) => Err(Rejected(format!("{errors:?}"))),
        Err(_) => Err(Disagreement("a panic".into(), "a panic".into())),
    }
}

/// Word for the outcome of a report.
fn verdict(report: &Report) -> &'static str {
    match &report.outcome {
        Outcome::Verified => "verified",
        Outcome::Violated { .. } => "violated",
        _ => "undecided",
    }
}

/// Length of the counterexample; `None` if symmetry may change it.
fn length(report: &Report) -> Option<usize> {
    match &report.outcome {
        Outcome::Violated {
            property: Property::Cover(_) | Property::Liveness(_),
            ..
        } => None,
        Outcome::Violated { trace, .. } => Some(trace.steps.len()),
        _ => None,
    }
}

/// Kind of a report's outcome, without numbers.
fn kind(report: &Report) -> String {
    match &report.outcome {
        Outcome::Violated { property, .. } => format!("violated ({property})"),
        Outcome::Exceeded { .. } => "a limit".into(),
        _ => verdict(report).into(),
    }
}

/// Disagreement of two reports on the comparison of this name.
fn disagreement(name: &str, a: &Report, b: &Report) -> JudgeError {
    let summary = format!("{name}: {}, {}", kind(a), kind(b));
    let details = format!("{name}: {}\n{}", brief_report(a), brief_report(b));
    Disagreement(summary, details)
}

/// Compares our engines: interpreted and compiled, with one thread and with two, in components, with symmetry and
/// without, and printed and read again.
///
/// # Errors
/// The text is rejected, or two engines disagree.
pub fn compare_engines(text: &str) -> Result<AgreedVerdict, JudgeError> {
    let model = model(text)?;
    let expected = run(&model, &exhaustive_options())?;
    if let Outcome::Undecided { .. } | Outcome::Exceeded { .. } = expected.outcome {
        let details = format!("nothing limits the search: {:?}", expected.outcome);
        return Err(Disagreement("undecided".into(), details));
    }
    // Compiling takes most of the time, so most models are compiled for only one of the three searches.
    let (compile_all, compiled_turn) = (text.len().is_multiple_of(8), text.len() % 3);
    let engine = |turn: usize| match compile_all || turn == compiled_turn {
        true => Engine::Native,
        false => Engine::Interpreter,
    };
    for (turn, threads) in [(0, 1), (1, 2)] {
        let options = Options {
            engine: engine(turn),
            threads,
            ..exhaustive_options()
        };
        let report = run(&model, &options)?;
        if report != expected {
            let name = format!("{:?}, {threads} threads", options.engine);
            return Err(disagreement(&name, &expected, &report));
        }
    }
    let parts = run(
        &model,
        &Options {
            decompose: true,
            ..exhaustive_options()
        },
    )?;
    compare_counts(&expected, &parts, "in parts")?;
    let symmetric = Options {
        symmetry: true,
        ..exhaustive_options()
    };
    let orbits = run(&model, &symmetric)?;
    let options = Options {
        engine: engine(2),
        threads: 2,
        ..symmetric
    };
    let report = run(&model, &options)?;
    let same_counts = orbits.outcome != Outcome::Verified || report == orbits;
    if report.outcome != orbits.outcome || !same_counts {
        return Err(disagreement("orbits", &orbits, &report));
    }
    // A loop over a scalarset whose order matters leaves a search of orbits undecided.
    let decided = !matches!(orbits.outcome, Outcome::Exceeded { .. });
    let has_no_more_states =
        expected.outcome != Outcome::Verified || orbits.states <= expected.states;
    let equal = verdict(&expected) == verdict(&orbits)
        && length(&expected) == length(&orbits)
        && has_no_more_states;
    if decided && !equal {
        return Err(disagreement("symmetry", &expected, &orbits));
    }
    compare_orbits(&model, &expected, &orbits)?;
    compare_printed(&model, &expected)?;
    Ok(match expected.outcome {
        Outcome::Verified => AgreedVerdict::Verified {
            states: expected.states,
            orbits: match decided {
                true => orbits.states,
                false => expected.states,
            },
        },
        _ => AgreedVerdict::Violated,
    })
}

/// Compares the verdict on a model with that on its text, if it can be printed.
fn compare_printed(model: &Model, expected: &Report) -> Result<(), JudgeError> {
    if let Ok(printed) = print(model, Style::Plain) {
        let reread = read("model", &printed, Dialect::Rumur).map_err(|errors| {
            let rendered = errors
                .iter()
                .map(|e| e.render("printed.m", &printed, false));
            let rendered = rendered.collect::<Vec<_>>().join("\n");
            let first_message = errors.first().map_or(String::new(), |e| e.message.clone());
            Disagreement(
                first_message,
                format!("what is printed is not read: {rendered}\n{printed}"),
            )
        })?;
        let mut reread = reread.model;
        reread.deadlock = model.deadlock;
        compare_counts(expected, &run(&reread, &exhaustive_options())?, "printed")?;
    }
    Ok(())
}

/// Maximum number of states whose orbits are counted by brute force.
const MAX_PERMUTED_STATES: u128 = 300;

/// Compares the number of states up to symmetry with the number of orbits, counted by brute force, for a verified model
/// with few states.
fn compare_orbits(model: &Model, expected: &Report, orbits: &Report) -> Result<(), JudgeError> {
    let is_verified = [expected, orbits]
        .iter()
        .all(|report| report.outcome == Outcome::Verified);
    if !is_verified || !orbits.symmetric || expected.states > MAX_PERMUTED_STATES {
        return Ok(());
    }
    let asymmetric = asymmetric_uses(model).0;
    let lost = orbits.lost_symmetry.iter().flat_map(|lost| &lost.sets);
    let excluded: Vec<TypeId> = (asymmetric.iter())
        .flat_map(|asymmetric_use| &asymmetric_use.sets)
        .chain(lost)
        .copied()
        .collect();
    let permuted = model
        .types
        .iter()
        .enumerate()
        .filter_map(|(number, named)| {
            let id = TypeId(number as u32);
            match named.ty {
                Type::Scalarset(size) if !excluded.contains(&id) => Some((id, size as usize)),
                _ => None,
            }
        });
    let permuted: Vec<(TypeId, usize)> = permuted.collect();
    match count_orbits(model, &permuted, MAX_PERMUTED_STATES as usize) {
        Some(count) if count as u128 != orbits.states => {
            let details = format!("{count} orbits by brute force; {}", brief_report(orbits));
            Err(Disagreement("number of orbits".into(), details))
        }
        _ => Ok(()),
    }
}

/// Compares verdicts, and for verified models the numbers of states and transitions.
fn compare_counts(a: &Report, b: &Report, name: &str) -> Result<(), JudgeError> {
    let equal =
        a.outcome != Outcome::Verified || (a.states, a.transitions) == (b.states, b.transitions);
    if verdict(a) == verdict(b) && equal {
        return Ok(());
    }
    Err(disagreement(name, a, b))
}

/// Counts and outcome of a report, in one line.
fn brief_report(report: &Report) -> String {
    let outcome = match &report.outcome {
        Outcome::Violated {
            property,
            message,
            trace,
        } => {
            format!("{property}: {message}, after {} steps", trace.steps.len())
        }
        other => format!("{other:?}"),
    };
    format!(
        "{} states, {} transitions, {outcome}",
        report.states, report.transitions
    )
}

/// Compares our result with that of Rumur, on a text in Rumur's dialect, without symmetry. `folder` receives the
/// source, the generated program and its binary.
///
/// # Errors
/// The text is rejected, or the two disagree.
pub fn rumur(text: &str, folder: &Path) -> Result<AgreedVerdict, JudgeError> {
    let model = model(text)?;
    let report = run(&model, &exhaustive_options())?;
    let (source, c, program) = (folder.join("m.m"), folder.join("m.c"), folder.join("m"));
    std::fs::write(&source, text).unwrap();
    let run_command = |command: &mut Command| {
        let output = command.output().unwrap();
        let output_text = [output.stdout, output.stderr].concat();
        (
            output.status,
            String::from_utf8_lossy(&output_text).into_owned(),
        )
    };
    let completed = run_command(
        Command::new("rumur")
            .args(rumur_options(&model, Style::Plain))
            // The type that Rumur chooses has no room for values between those of variables, unless it has 64 bits.
            .args(match key(text, "numbers") {
                Some("large") => &[][..],
                _ => &["--value-type", "int32_t"],
            })
            .args(["--threads", "1", "--set-capacity", "65536"])
            .args(["--counterexample-trace", "off", "--output"])
            .arg(&c)
            .arg(&source),
    );
    if !completed.0.success() {
        let details = format!("Rumur does not take it: {}", completed.1);
        return Err(Disagreement("Rumur does not take it".into(), details));
    }
    let completed = run_command(
        Command::new("cc")
            .args(["-O0", "-w", "-o"])
            .arg(&program)
            .arg(&c)
            .arg("-lpthread"),
    );
    if !completed.0.success() {
        return Err(Rejected(format!(
            "Rumur's program is not C: {}",
            completed.1
        )));
    }
    let (status, output_text) = run_command(&mut Command::new(&program));
    // A signal ended the program: that is a failure of Rumur, not a verdict.
    if let Some(signal) = status.signal() {
        return Err(Rejected(format!(
            "Rumur's program ended by signal {signal}"
        )));
    }
    let no_violation = status.success();
    let words: Vec<&str> = output_text.split_whitespace().collect();
    let states = words.windows(2).filter(|w| w[1] == "states,");
    let Some(states) = states.filter_map(|w| w[0].parse::<u128>().ok()).next() else {
        let details = format!("Rumur's program stopped: {output_text}");
        return Err(Disagreement("Rumur's program stopped".into(), details));
    };
    let verified = report.outcome == Outcome::Verified;
    if no_violation != verified || no_violation && states != report.states {
        let summary = format!("Rumur: {}, {no_violation}", kind(&report));
        let details = format!("we find {}; Rumur: {output_text}", brief_report(&report));
        return Err(Disagreement(summary, details));
    }
    Ok(match verified {
        true => AgreedVerdict::Verified {
            states,
            orbits: states,
        },
        false => AgreedVerdict::Violated,
    })
}

/// Reduces a text for which `fails` returns true: removes lines, blocks and brackets of blocks, and replaces
/// parenthesised expressions by constants, as long as `fails` returns true for the reduced text.
pub fn shrink(text: &str, fails: impl Fn(&str) -> bool) -> String {
    let mut lines: Vec<String> = text.lines().map(Into::into).collect();
    loop {
        let line_count = lines.len();
        let mut line = 0;
        while line < lines.len() {
            match smaller_variants(&lines, line)
                .into_iter()
                .find(|l| fails(&(l.join("\n") + "\n")))
            {
                Some(reduced) => lines = reduced,
                None => line += 1,
            }
        }
        if lines.len() == line_count {
            break;
        }
    }
    for line in 0..lines.len() {
        let mut search_start = 0;
        while let Some(open) = lines[line][search_start..]
            .find('(')
            .map(|i| search_start + i)
        {
            let simpler = ["0", "1", "true", "false"].iter().filter_map(|constant| {
                let close = open + closing(&lines[line][open..])?;
                let mut reduced_lines = lines.clone();
                reduced_lines[line].replace_range(open..=close, constant);
                Some(reduced_lines)
            });
            let reduced = simpler.into_iter().find(|l| fails(&(l.join("\n") + "\n")));
            match reduced {
                Some(reduced) => lines = reduced,
                None => search_start = open + 1,
            }
        }
    }
    lines.join("\n") + "\n"
}

/// Position of the bracket that closes the first one.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0;
    text.char_indices().find_map(|(i, c)| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        (depth == 0).then_some(i)
    })
}

/// Variants without a line, without its block, and without the lines that begin and end its block.
fn smaller_variants(lines: &[String], start_line: usize) -> Vec<Vec<String>> {
    let indent = |line: &String| line.len() - line.trim_start().len();
    let mut variants = Vec::new();
    let inner = lines[start_line + 1..]
        .iter()
        .take_while(|l| indent(l) > indent(&lines[start_line]))
        .count();
    let without = |is_removed: &dyn Fn(usize) -> bool| {
        let remaining = lines.iter().enumerate().filter(|(i, _)| !is_removed(*i));
        remaining.map(|(_, l)| l.clone()).collect::<Vec<_>>()
    };
    // A block may have several parts, such as those of `if` and `rule`.
    let mut end = start_line + inner + 1;
    while end < lines.len()
        && indent(&lines[end]) == indent(&lines[start_line])
        && !lines[end].trim().starts_with("end")
    {
        end += 1;
        while end < lines.len() && indent(&lines[end]) > indent(&lines[start_line]) {
            end += 1;
        }
    }
    if end < lines.len() && lines[end].trim().starts_with("end") {
        variants.push(without(&|i| (start_line..=end).contains(&i)));
        variants.push(without(&|i| i == start_line || i == end));
    }
    if inner > 0 {
        variants.push(without(&|i| (start_line..=start_line + inner).contains(&i)));
    }
    variants.push(without(&|i| i == start_line));
    variants
}
