//! `cohkit check`: verdicts on the systems of protocol texts.

use crate::console::Console;
use crate::options::Check;
use crate::outcome::{Failure, Outcome};
use crate::progress::Line;
use crate::protocols::Source;
use crate::verdict::{Finding, Verdict};
use crate::{deliver, files, size};
use cohkit_chart::Text;
use cohkit_check::search::{self, Progress};
use cohkit_check::system::{self, assumptions};
use cohkit_check::{check, murphi, Report};
use cohkit_protocol::construct::{construct, Construction, ConstructionError};
use cohkit_protocol::controller::Controller;
use cohkit_protocol::protocol::{Home, System};
use cohkit_protocol::text::Span;
use serde_json::{json, Value};
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Checks all systems of all files; the worst outcome wins.
pub(crate) fn run(options: &Check, console: &mut Console) -> Result<Outcome, Failure> {
    for folder in options.export_murphi.iter().chain(&options.chart_svg) {
        files::make_folder(folder)?;
    }
    let mut batch = Batch {
        options,
        charts: Text {
            width: console.terminal.width,
            ascii: options.output.ascii,
        },
        outcome: Outcome::Yes,
        values: Vec::new(),
        text: String::new(),
    };
    for file in &options.files {
        if let Err(failure) = batch.file(file, console) {
            console.say(&failure.message);
            batch.outcome = batch.outcome.max(failure.outcome);
        }
        if console.is_interrupted() {
            return Err(Failure::new(Outcome::Interrupted, "interrupted"));
        }
    }
    if options.output.json {
        let value = Value::Array(batch.values);
        deliver(&format!("{value:#}\n"), &options.output, console)?;
    } else if options.output.out.is_some() {
        deliver(&batch.text, &options.output, console)?;
    }
    Ok(batch.outcome)
}

/// A home's controller, whichever way the text gives it.
enum Homes<'a> {
    Written(&'a Controller),
    Constructed(Box<Construction<'a>>),
}

impl Homes<'_> {
    /// The controller for systems of so many remotes.
    fn controller(&self, remotes: u8) -> Cow<'_, Controller> {
        match self {
            Homes::Written(home) => Cow::Borrowed(home),
            // With one remote no index is needed for what is known of each.
            Homes::Constructed(construction) if remotes == 1 => Cow::Owned(construction.flat(true)),
            Homes::Constructed(construction) => Cow::Owned(construction.factored(true)),
        }
    }
}

/// What is checked in one run of the command, and what came of it so far.
struct Batch<'a> {
    options: &'a Check,
    charts: Text,
    outcome: Outcome,
    /// For JSON: one entry for each system.
    values: Vec<Value>,
    /// For a file: what is otherwise printed at once.
    text: String,
}

impl Batch<'_> {
    fn file(&mut self, file: &Path, console: &mut Console) -> Result<(), Failure> {
        let mut source = Source::read(file, console)?;
        source.protocol.systems = self.systems(&source)?;
        let source = &source;
        let protocol = &source.protocol;
        let homes = match &protocol.home {
            Home::Controller(home) => Homes::Written(home),
            Home::Policy(_) => match construct(protocol) {
                Ok(construction) => Homes::Constructed(Box::new(construction)),
                Err(ConstructionError::Refused(refusal)) => {
                    return Err(source.refusal(&refusal, console));
                }
                Err(ConstructionError::Fault(fault)) => {
                    return self.fault(source, &fault, console);
                }
            },
        };
        let mut notes: Vec<String> = Vec::new();
        if let Homes::Constructed(construction) = &homes {
            if let Some(fault) = construction.fault() {
                return self.fault(source, fault, console);
            }
            for note in construction.notes() {
                if !notes.contains(&note.text) {
                    notes.push(note.text.clone());
                }
            }
        }
        for system in &protocol.systems {
            let start = Instant::now();
            let report = self.search(source, system, &homes.controller(system.remotes), console)?;
            let seconds = start.elapsed().as_secs_f64();
            let run = json!({
                "file": source.path.display().to_string(),
                "version": env!("CARGO_PKG_VERSION"),
                "threads": self.threads(),
                "memory_bytes": report.memory,
                "seconds": seconds,
                "states_per_second": (report.states as f64 / seconds.max(1e-9)).round(),
            });
            let verdict = Verdict {
                protocol,
                system,
                finding: Finding::Searched(report),
                assumptions: &assumptions(protocol),
                notes: &notes,
            };
            self.report(&verdict, run, console)?;
            if console.is_interrupted() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The systems to check.
    fn systems(&self, source: &Source) -> Result<Vec<System>, Failure> {
        let Check {
            systems: names,
            remotes,
            lines,
            ..
        } = self.options;
        let declared = &source.protocol.systems;
        if remotes.is_some() || lines.is_some() {
            let (remotes, lines) = (remotes.unwrap_or(1), lines.unwrap_or(1));
            return Ok(vec![System {
                name: format!("remotes_{remotes}_lines_{lines}"),
                remotes,
                lines,
                span: Span::default(),
            }]);
        }
        let shown = source.path.display();
        if declared.is_empty() {
            return Err(Failure::new(
                Outcome::BadInput,
                format!("error: {shown}: the text has no system to check\n  help: add `system small {{ remotes 2; lines 1 }}` to it, or use `--remotes` and `--lines`"),
            ));
        }
        if names.is_empty() {
            return Ok(declared.clone());
        }
        let find = |name: &String| {
            let system = declared.iter().find(|system| system.name == *name);
            system.cloned().ok_or_else(|| {
                let known: Vec<String> = declared
                    .iter()
                    .map(|system| format!("`{}`", system.name))
                    .collect();
                Failure::new(
                    Outcome::BadInput,
                    format!(
                        "error: {shown}: no system is named `{name}`\n  help: the systems are {}",
                        known.join(", ")
                    ),
                )
            })
        };
        names.iter().map(find).collect()
    }

    fn threads(&self) -> usize {
        match self.options.threads {
            Some(threads) => usize::from(threads),
            None => std::thread::available_parallelism().map_or(1, usize::from),
        }
    }

    fn search(
        &self,
        source: &Source,
        system: &System,
        home: &Controller,
        console: &Console,
    ) -> Result<Report, Failure> {
        let shown = source.path.display();
        let protocol = &source.protocol;
        let model = system::model(
            protocol,
            home,
            system.remotes,
            system.lines,
            &system::Options::default(),
        )
        .map_err(|error| {
            Failure::new(
                Outcome::BadInput,
                format!(
                    "error: {shown}: system `{}` cannot be modelled: {error}",
                    system.name
                ),
            )
        })?;
        if let Some(folder) = &self.options.export_murphi {
            let file = folder.join(format!("{}-{}.m", protocol.name, system.name));
            files::write(&file, &murphi::print(&model, murphi::Style::Plain))?;
        }
        let line = Line::new(
            format!("{} {}", protocol.name, system.name),
            &console.terminal,
        );
        let progress = |progress: &Progress| line.show(progress);
        let options = search::Options {
            threads: self.threads(),
            max_states: self.options.max_states,
            max_depth: self.options.max_depth,
            max_memory: self
                .options
                .max_memory
                .or_else(|| Some(size::free_memory()? / 4 * 3)),
            cancel: Some(console.interrupted),
            progress: Some(&progress),
            ..search::Options::default()
        };
        check(&model, &options).map_err(|errors| {
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            Failure::new(
                Outcome::BadInput,
                format!(
                    "error: {shown}: system `{}` cannot be checked: {}",
                    system.name,
                    errors.join("; ")
                ),
            )
        })
    }

    /// A fault that the construction found: a verdict on every system, and one report of it.
    fn fault(
        &mut self,
        source: &Source,
        fault: &cohkit_protocol::construct::fault::Fault,
        console: &mut Console,
    ) -> Result<(), Failure> {
        for system in &source.protocol.systems {
            let verdict = Verdict {
                protocol: &source.protocol,
                system,
                finding: Finding::Construction(fault),
                assumptions: &assumptions(&source.protocol),
                notes: &[],
            };
            let run = json!({
                "file": source.path.display().to_string(),
                "version": env!("CARGO_PKG_VERSION"),
            });
            self.report(&verdict, run, console)?;
        }
        console.say(&source.fault(fault, &self.charts, console));
        Ok(())
    }

    /// Takes a verdict into account and tells it to whom it concerns.
    fn report(
        &mut self,
        verdict: &Verdict,
        run: Value,
        console: &mut Console,
    ) -> Result<(), Failure> {
        self.outcome = self.outcome.max(verdict.outcome());
        if let Some(folder) = &self.options.chart_svg {
            let sequences = verdict.sequences();
            for (index, sequence) in sequences.iter().enumerate() {
                let number = if sequences.len() > 1 {
                    format!("-{}", index + 1)
                } else {
                    String::new()
                };
                let name = verdict.name().replace(' ', "-");
                let file: PathBuf = folder.join(format!("{name}{number}.svg"));
                files::write(&file, &cohkit_chart::svg(sequence, &verdict.name()))?;
            }
        }
        if self.options.output.json {
            self.values.push(verdict.json(run));
            return Ok(());
        }
        let text = verdict.text(&self.charts);
        if self.options.output.out.is_some() {
            self.text += &text;
            Ok(())
        } else {
            console.print(&text)
        }
    }
}
