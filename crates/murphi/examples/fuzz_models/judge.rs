//! Comparison of all engines on one model, and reduction of failing models.

use cohkit_engine::model::{Deadlock, Model};
use cohkit_engine::search::Engine;
use cohkit_engine::{check, Options, Outcome, Property, Report};
use cohkit_murphi::{print, read, rumur_options, Dialect, Style};
use std::os::unix::process::ExitStatusExt;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::Path;
use std::process::Command;

/// The verdict that all engines agree on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Agreed {
    Verified { states: u128, orbits: u128 },
    Violated,
}

/// Reason why a model cannot be judged, or a disagreement.
#[derive(Debug)]
pub enum Trouble {
    /// The generated text is not Murphi, or the other checker fails without a verdict.
    Refused(String),
    /// Two checkers disagree: the kind of disagreement, and their results.
    Differ(String, String),
}

use Trouble::{Differ, Refused};

fn key<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let head = text.lines().take_while(|line| line.starts_with("-- "));
    let mut pairs = head.filter_map(|line| line.strip_prefix("-- ")?.split_once(": "));
    pairs.find(|pair| pair.0 == key).map(|pair| pair.1)
}

/// The model of a text, read as its card says.
pub fn model(text: &str) -> Result<Model, Trouble> {
    let dialect = match key(text, "dialect") {
        Some("rumur") => Dialect::Rumur,
        _ => Dialect::Any,
    };
    let read = read("model", text, dialect).map_err(|errors| {
        let errors: Vec<_> = errors
            .iter()
            .map(|e| e.render("model.m", text, false))
            .collect();
        Refused(errors.join("\n"))
    })?;
    let mut model = read.model;
    model.deadlock = match key(text, "deadlock") {
        Some("off") => Deadlock::Off,
        Some("stuck") => Deadlock::Stuck,
        _ => Deadlock::Stuttering,
    };
    Ok(model)
}

fn flat() -> Options<'static> {
    Options {
        decompose: false,
        symmetry: false,
        engine: Engine::Interpreter,
        ..Options::default()
    }
}

fn run(model: &Model, options: &Options) -> Result<Report, Trouble> {
    let found = catch_unwind(AssertUnwindSafe(|| check(model, options)));
    match found {
        Ok(Ok(report)) => Ok(report),
        Ok(Err(errors)) => Err(Refused(format!("{errors:?}"))),
        Err(_) => Err(Differ("a panic".into(), "a panic".into())),
    }
}

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

fn differ(name: &str, a: &Report, b: &Report) -> Trouble {
    let what = format!("{name}: {}, {}", kind(a), kind(b));
    let why = format!("{name}: {}\n{}", brief(a), brief(b));
    Differ(what, why)
}

/// Compares our engines: interpreted and compiled, with one thread and with two, in components, with symmetry and
/// without, and printed and read again.
pub fn ours(text: &str) -> Result<Agreed, Trouble> {
    let model = model(text)?;
    let one = run(&model, &flat())?;
    if let Outcome::Undecided { .. } | Outcome::Exceeded { .. } = one.outcome {
        let why = format!("nothing limits the search: {:?}", one.outcome);
        return Err(Differ("undecided".into(), why));
    }
    // Compiling takes most of the time, so most models are compiled for only one of the three searches.
    let (all, compiled) = (text.len().is_multiple_of(8), text.len() % 3);
    let engine = |turn: usize| match all || turn == compiled {
        true => Engine::Native,
        false => Engine::Interpreter,
    };
    for (turn, threads) in [(0, 1), (1, 2)] {
        let options = Options {
            engine: engine(turn),
            threads,
            ..flat()
        };
        let other = run(&model, &options)?;
        if other != one {
            let name = format!("{:?}, {threads} threads", options.engine);
            return Err(differ(&name, &one, &other));
        }
    }
    let parts = run(
        &model,
        &Options {
            decompose: true,
            ..flat()
        },
    )?;
    same(&one, &parts, "in parts")?;
    let symmetric = Options {
        symmetry: true,
        ..flat()
    };
    let orbits = run(&model, &symmetric)?;
    let options = Options {
        engine: engine(2),
        threads: 2,
        ..symmetric
    };
    let other = run(&model, &options)?;
    let counted = orbits.outcome != Outcome::Verified || other == orbits;
    if other.outcome != orbits.outcome || !counted {
        return Err(differ("orbits", &orbits, &other));
    }
    // A loop over a scalarset whose order matters leaves a search of orbits undecided.
    let decided = !matches!(orbits.outcome, Outcome::Exceeded { .. });
    let fewer = one.outcome != Outcome::Verified || orbits.states <= one.states;
    let equal = verdict(&one) == verdict(&orbits) && length(&one) == length(&orbits) && fewer;
    if decided && !equal {
        return Err(differ("symmetry", &one, &orbits));
    }
    if let Ok(printed) = print(&model, Style::Plain) {
        let again = read("model", &printed, Dialect::Rumur).map_err(|errors| {
            let shown = errors
                .iter()
                .map(|e| e.render("printed.m", &printed, false));
            let shown = shown.collect::<Vec<_>>().join("\n");
            let what = errors.first().map_or(String::new(), |e| e.message.clone());
            Differ(
                what,
                format!("what is printed is not read: {shown}\n{printed}"),
            )
        })?;
        let mut again = again.model;
        again.deadlock = model.deadlock;
        same(&one, &run(&again, &flat())?, "printed")?;
    }
    Ok(match one.outcome {
        Outcome::Verified => Agreed::Verified {
            states: one.states,
            orbits: match decided {
                true => orbits.states,
                false => one.states,
            },
        },
        _ => Agreed::Violated,
    })
}

fn same(a: &Report, b: &Report, name: &str) -> Result<(), Trouble> {
    let equal =
        a.outcome != Outcome::Verified || (a.states, a.transitions) == (b.states, b.transitions);
    if verdict(a) == verdict(b) && equal {
        return Ok(());
    }
    Err(differ(name, a, b))
}

fn brief(report: &Report) -> String {
    let what = match &report.outcome {
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
        "{} states, {} transitions, {what}",
        report.states, report.transitions
    )
}

/// Compares our result with that of Rumur, on a text in Rumur's dialect, without symmetry.
pub fn rumur(text: &str, folder: &Path) -> Result<Agreed, Trouble> {
    let model = model(text)?;
    let ours = run(&model, &flat())?;
    let (source, c, program) = (folder.join("m.m"), folder.join("m.c"), folder.join("m"));
    std::fs::write(&source, text).unwrap();
    let call = |command: &mut Command| {
        let output = command.output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status, String::from_utf8_lossy(&said).into_owned())
    };
    let made = call(
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
    if !made.0.success() {
        let why = format!("Rumur does not take it: {}", made.1);
        return Err(Differ("Rumur does not take it".into(), why));
    }
    let made = call(
        Command::new("cc")
            .args(["-O0", "-w", "-o"])
            .arg(&program)
            .arg(&c)
            .arg("-lpthread"),
    );
    if !made.0.success() {
        return Err(Refused(format!("Rumur's program is not C: {}", made.1)));
    }
    let (status, said) = call(&mut Command::new(&program));
    // A signal ended the program: that is a failure of Rumur, not a verdict.
    if let Some(signal) = status.signal() {
        return Err(Refused(format!("Rumur's program ended by signal {signal}")));
    }
    let fine = status.success();
    let words: Vec<&str> = said.split_whitespace().collect();
    let states = words.windows(2).filter(|w| w[1] == "states,");
    let Some(states) = states.filter_map(|w| w[0].parse::<u128>().ok()).next() else {
        let why = format!("Rumur's program stopped: {said}");
        return Err(Differ("Rumur's program stopped".into(), why));
    };
    let verified = ours.outcome == Outcome::Verified;
    if fine != verified || fine && states != ours.states {
        let what = format!("Rumur: {}, {fine}", kind(&ours));
        let why = format!("we find {}; Rumur: {said}", brief(&ours));
        return Err(Differ(what, why));
    }
    Ok(match verified {
        true => Agreed::Verified {
            states,
            orbits: states,
        },
        false => Agreed::Violated,
    })
}

/// Reduces a text that fails: removes lines, blocks and brackets of blocks, and replaces parenthesised expressions by
/// constants, until no change is possible.
pub fn shrink(text: &str, fails: impl Fn(&str) -> bool) -> String {
    let mut lines: Vec<String> = text.lines().map(Into::into).collect();
    loop {
        let before = lines.len();
        let mut at = 0;
        while at < lines.len() {
            match smaller(&lines, at)
                .into_iter()
                .find(|l| fails(&(l.join("\n") + "\n")))
            {
                Some(found) => lines = found,
                None => at += 1,
            }
        }
        if lines.len() == before {
            break;
        }
    }
    for at in 0..lines.len() {
        let mut from = 0;
        while let Some(open) = lines[at][from..].find('(').map(|i| from + i) {
            let simpler = ["0", "1", "true", "false"].iter().filter_map(|constant| {
                let close = open + closing(&lines[at][open..])?;
                let mut fewer = lines.clone();
                fewer[at].replace_range(open..=close, constant);
                Some(fewer)
            });
            let found = simpler.into_iter().find(|l| fails(&(l.join("\n") + "\n")));
            match found {
                Some(found) => lines = found,
                None => from = open + 1,
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
fn smaller(lines: &[String], at: usize) -> Vec<Vec<String>> {
    let indent = |line: &String| line.len() - line.trim_start().len();
    let mut found = Vec::new();
    let inner = lines[at + 1..]
        .iter()
        .take_while(|l| indent(l) > indent(&lines[at]))
        .count();
    let without = |gone: &dyn Fn(usize) -> bool| {
        let kept = lines.iter().enumerate().filter(|(i, _)| !gone(*i));
        kept.map(|(_, l)| l.clone()).collect::<Vec<_>>()
    };
    // A block may have several parts, such as those of `if` and `rule`.
    let mut end = at + inner + 1;
    while end < lines.len()
        && indent(&lines[end]) == indent(&lines[at])
        && !lines[end].trim().starts_with("end")
    {
        end += 1;
        while end < lines.len() && indent(&lines[end]) > indent(&lines[at]) {
            end += 1;
        }
    }
    if end < lines.len() && lines[end].trim().starts_with("end") {
        found.push(without(&|i| (at..=end).contains(&i)));
        found.push(without(&|i| i == at || i == end));
    }
    if inner > 0 {
        found.push(without(&|i| (at..=at + inner).contains(&i)));
    }
    found.push(without(&|i| i == at));
    found
}
