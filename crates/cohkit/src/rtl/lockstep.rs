//! `cohkit rtl test`: the RTL in lockstep with the controllers.

use super::{built, compile, file_name, interrupted, origin};
use crate::console::{Console, Terminal};
use crate::interrupt::Tidy;
use crate::options::RtlTest;
use crate::outcome::{Failure, Outcome};
use crate::progress::Bar;
use crate::protocols::Source;
use crate::{deliver, files};
use cohkit_chart::Text;
use cohkit_protocol::words::counted;
use cohkit_rtl::lockstep::bench::{Mismatch, Report, Run};
use cohkit_rtl::lockstep::build::{Printed, Shape};
use cohkit_rtl::lockstep::campaign::{Failed, Setup, Waveform};
use cohkit_rtl::lockstep::ways::Ways;
use cohkit_rtl::print::package;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Cycles before a mismatch that a waveform shows.
const SHOWN: u64 = 2000;

/// What all runs came to.
#[derive(Default)]
struct Total {
    messages: u64,
    answers: u64,
    evictions: u64,
    cycles: u64,
    /// For each state and event whether a run used the row.
    covered: Vec<Vec<bool>>,
    /// What was found, and the seed.
    mismatch: Option<(u64, Box<Mismatch>)>,
    /// Why there is no waveform of it although one is asked for.
    no_waveform: Option<String>,
    /// Rows whose being spoilt was noticed, and those of which it was not.
    noticed: u64,
    missed: Vec<(usize, usize)>,
}

pub(super) fn test(options: &RtlTest, console: &mut Console) -> Result<Outcome, Failure> {
    let Some(last) = options.seed.checked_add(options.seeds - 1) else {
        let message = format!(
            "error: `--seed {}` is followed by fewer seeds than `--seeds {}`\n  help: the last one is {}",
            options.seed,
            options.seeds,
            u64::MAX
        );
        return Err(Failure::new(Outcome::BadInput, message));
    };
    // A bad place for results is not found out after a long test.
    for file in options.output.out.iter().chain(&options.waveform) {
        files::try_file(file)?;
    }
    // Verilator's writer of waveforms removes what stands there, be it a device of the system's.
    if let Some(file) = &options.waveform {
        if std::fs::metadata(file).is_ok_and(|there| !there.is_file()) {
            let message = format!(
                "error: {}: is no file\n  help: what stands in the place of a waveform is removed",
                file.display()
            );
            return Err(Failure::new(Outcome::BadInput, message));
        }
    }
    let source = Source::read(&options.file, console)?;
    let (home, rom) = compile(&source, console)?;
    let protocol = &source.protocol;
    let file = file_name(&options.file);
    let package = package(protocol, &rom, &origin(&source, &file));
    let cache = options.build.clone().unwrap_or_else(cache);
    files::make_folder(&cache)?;
    let shape = Shape::default();
    let printed = Printed {
        protocol: &protocol.name,
        rom: &rom,
        package: &package,
    };
    let stop = console.interrupted;
    let _tidy = Tidy::new();
    let library = built(&cache, printed, shape, false, console)?;
    let folder =
        tempfile::tempdir().map_err(|error| files::cannot_write(&std::env::temp_dir(), &error))?;
    let ways = Ways::new(protocol, &home, &rom);
    let setup = Setup {
        protocol,
        home: &home,
        rom: &rom,
        library: &library,
        shape,
        ways: ways.as_ref(),
        argument: "",
        folder: folder.path(),
        stop,
    };
    let mut total = Total {
        covered: vec![vec![false; rom.events.len()]; rom.states.len()],
        ..Total::default()
    };
    for seed in options.seed..=last {
        match setup.run(Run::new(seed, options.messages), None) {
            Ok(report) => {
                total.messages += report.messages;
                total.answers += report.answers;
                total.evictions += report.evictions;
                total.cycles += report.cycles;
                for (state, event) in rom
                    .used()
                    .filter(|&(state, event)| report.covered[state][event])
                {
                    total.covered[state][event] = true;
                }
            }
            Err(failed) => {
                total.mismatch = Some((seed, mismatch(failed)?));
                break;
            }
        }
    }
    if let (Some((seed, found)), Some(file)) = (&total.mismatch, &options.waveform) {
        let waveform = Waveform {
            file,
            from: found.cycle.saturating_sub(SHOWN).max(5),
        };
        let run = || {
            let library = &built(&cache, printed, shape, true, console)?;
            let run = Run::new(*seed, options.messages);
            drawn(Setup { library, ..setup }.run(run, Some(waveform)), file)
        };
        match run() {
            Ok(()) => {}
            Err(failure) if failure.outcome == Outcome::Interrupted => return Err(failure),
            // The mismatch is worth more than its waveform.
            Err(failure) => total.no_waveform = Some(failure.message),
        }
    }
    if total.mismatch.is_none() && options.spoil > 0 {
        spoil(&setup, options, &mut total, &console.terminal)?;
    }
    let result = match options.output.json {
        true => format!("{:#}\n", json(options, &source, &setup, &total)),
        false => text(options, &source, &setup, &total, console),
    };
    deliver(&result, &options.output, console)?;
    if let Some(why) = &total.no_waveform {
        let why = why.strip_prefix("error: ").unwrap_or(why);
        console.say(&format!("warning: the mismatch has no waveform: {why}"));
    }
    Ok(match total.mismatch.is_some() || !total.missed.is_empty() {
        true => Outcome::No,
        false => Outcome::Yes,
    })
}

/// Spoils rows that are spread over all that can be used.
fn spoil(
    setup: &Setup,
    options: &RtlTest,
    total: &mut Total,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let rows = reachable(setup);
    let count = options.spoil.min(rows.len() as u64);
    let bar = Bar::new(setup.protocol.name.clone(), count, "rows spoilt", terminal);
    for index in 0..count {
        bar.show(index);
        let (state, event) = rows[(index * rows.len() as u64 / count) as usize];
        match setup.notices(state, event, options.seed) {
            Ok(true) => total.noticed += 1,
            Ok(false) => total.missed.push((state, event)),
            // It gives no mismatch.
            Err(failed) => drop(mismatch(failed)?),
        }
    }
    Ok(())
}

/// The rows that can be used, in the order of the ROM.
fn reachable(setup: &Setup) -> Vec<(usize, usize)> {
    let used = setup.rom.used();
    used.filter(|&row| setup.ways.is_none_or(|ways| ways.aim(row).is_some()))
        .collect()
}

/// Whether a run that ended in a mismatch has ended so again, and its waveform stands in the file.
fn drawn(again: Result<Report, Failed>, file: &Path) -> Result<(), Failure> {
    let wrong = |what: &str| Err(Failure::new(Outcome::CouldNotRun, format!("error: {what}")));
    match again {
        Ok(_) => return wrong("the run that is to be drawn ends without a mismatch"),
        Err(failed) => drop(mismatch(failed)?),
    }
    match std::fs::metadata(file) {
        Ok(there) if there.is_file() && there.len() == 0 => wrong(&format!(
            "{}: nothing could be written; is the disk full?",
            file.display()
        )),
        Ok(_) => Ok(()),
        Err(error) => Err(files::cannot_write(file, &error)),
    }
}

fn mismatch(failed: Failed) -> Result<Box<Mismatch>, Failure> {
    match failed {
        Failed::Mismatch(found) => Ok(found),
        Failed::Stopped => Err(interrupted()),
        Failed::Tool(what) => Err(Failure::new(Outcome::CouldNotRun, format!("error: {what}"))),
    }
}

/// The folder for what is built.
pub(super) fn cache() -> PathBuf {
    let named = |name| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    named("XDG_CACHE_HOME")
        .or_else(|| named("HOME").map(|home| home.join(".cache")))
        .unwrap_or_else(std::env::temp_dir)
        .join("cohkit/rtl")
}

fn unused(setup: &Setup, total: &Total) -> Vec<(usize, usize)> {
    reachable(setup)
        .into_iter()
        .filter(|&(state, event)| !total.covered[state][event])
        .collect()
}

/// The command that repeats a seed's run.
fn again(options: &RtlTest, seed: u64) -> String {
    format!(
        "cohkit rtl test {} --seed {seed} --seeds 1 --messages {}",
        options.file.display(),
        options.messages
    )
}

fn row_name(setup: &Setup, (state, event): (usize, usize)) -> String {
    format!(
        "{} on {}",
        setup.rom.states[state], setup.rom.events[event].name
    )
}

fn text(
    options: &RtlTest,
    source: &Source,
    setup: &Setup,
    total: &Total,
    console: &Console,
) -> String {
    let name = &source.protocol.name;
    let left = unused(setup, total);
    let rows = reachable(setup).len();
    if let Some((seed, found)) = &total.mismatch {
        let mut text = format!(
            "{name}: mismatch in cycle {} of seed {seed}: {}\n",
            found.cycle, found.what
        );
        if let Some(sequence) = &found.sequence {
            let charts = Text {
                width: console.terminal.width,
                ascii: options.output.ascii,
            };
            text += &format!(
                "\nthe line's last steps:\n\n{}\n",
                cohkit_chart::text(sequence, &charts).trim_end()
            );
        }
        if let (Some(file), None) = (&options.waveform, &total.no_waveform) {
            text += &format!("\nwaveform: {}\n", file.display());
        }
        return text + &format!("\nagain: {}\n", again(options, *seed));
    }
    let mut text = format!(
        "{name}: no mismatch: {} over {}, {} of {rows} rows of the ROM used\n  {}, {}, {}\n",
        counted(total.messages, "message"),
        counted(options.seeds, "seed"),
        rows - left.len(),
        counted(total.cycles, "cycle"),
        counted(total.answers, "local answer"),
        counted(total.evictions, "eviction"),
    );
    if options.spoil > 0 {
        text += &format!(
            "  {} rows spoilt, {} noticed\n",
            total.noticed + total.missed.len() as u64,
            total.noticed
        );
    }
    for &row in &total.missed {
        text += &format!("  not noticed: {}\n", row_name(setup, row));
    }
    if options.unused {
        for row in left {
            text += &format!("  not used: {}\n", row_name(setup, row));
        }
    }
    text
}

fn json(options: &RtlTest, source: &Source, setup: &Setup, total: &Total) -> serde_json::Value {
    let left = unused(setup, total);
    let rows = reachable(setup).len();
    let name = |&row: &(usize, usize)| json!({ "state": setup.rom.states[row.0], "event": setup.rom.events[row.1].name });
    json!({
        "protocol": source.protocol.name,
        "messages": total.messages,
        "mismatches": u8::from(total.mismatch.is_some()),
        "rows_covered": rows - left.len(),
        "rows_reachable": rows,
        "seeds": options.seeds,
        "first_seed": options.seed,
        "cycles": total.cycles,
        "answers": total.answers,
        "evictions": total.evictions,
        "unused": left.iter().map(name).collect::<Vec<_>>(),
        "spoilt": total.noticed + total.missed.len() as u64,
        "missed": total.missed.iter().map(name).collect::<Vec<_>>(),
        "mismatch": total.mismatch.as_ref().map(|(seed, found)| json!({
            "seed": seed,
            "cycle": found.cycle,
            "what": found.what,
            "sequence": found.sequence.as_ref().map(cohkit_chart::json),
        })),
        "run": {
            "file": options.file.display().to_string(),
            "version": env!("CARGO_PKG_VERSION"),
            "library": Path::new(setup.library).display().to_string(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cohkit_rtl::lockstep::bench::Check;

    #[test]
    fn what_hinders_a_waveform_is_said() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("whole.fst"), "something").expect("it can be written");
        std::fs::write(at("empty.fst"), "").expect("it can be written");
        let again = || {
            Err(Failed::Mismatch(Box::new(Mismatch {
                check: Check::Comparison,
                what: "something else".into(),
                cycle: 7,
                sequence: None,
            })))
        };
        drawn(again(), &at("whole.fst")).expect("it ends as it did before");
        let tool = Failed::Tool("no such tool".into());
        for (again, file, says) in [
            (again(), "empty.fst", "is the disk full?"),
            (again(), "none.fst", "its folder does not exist"),
            (Err(tool), "whole.fst", "no such tool"),
            (
                Ok(Report::default()),
                "whole.fst",
                "ends without a mismatch",
            ),
        ] {
            let failure = drawn(again, &at(file)).expect_err(says);
            assert_eq!(failure.outcome, Outcome::CouldNotRun);
            assert!(failure.message.contains(says), "{}", failure.message);
        }
        let stopped = drawn(Err(Failed::Stopped), &at("whole.fst")).expect_err("it was stopped");
        assert_eq!(stopped.outcome, Outcome::Interrupted);
    }
}
