//! `cohkit check`: verdicts on the systems of protocol files, and on Murphi models.

use crate::check_request::{
    checkpoints, composition_systems, read_model, reproduce_command, request, systems,
};
use crate::console::Console;
use crate::export::Exports;
use crate::options::{Check, SymmetryOption};
use crate::progress::SearchStatusLine;
use crate::{deliver, graph, replay};
use cohkit_api::any_number::AnyNumberVerdict;
use cohkit_api::checkpoints::Checkpoints;
use cohkit_api::composition::CompositionSource;
use cohkit_api::coverage::{SystemCoverage, UncoveredRows};
use cohkit_api::guarantee::GuaranteeVerdict;
use cohkit_api::model_check::{judge_model, text, trace};
use cohkit_api::outcome::{ExitStatus, Failure};
use cohkit_api::protocol_check::{judge, Listener, Request, Systems};
use cohkit_api::source::Source;
use cohkit_api::starvation::StarvationVerdict;
use cohkit_api::verdict::{outcome, Verdict};
use cohkit_api::{explanation, files, model_check, JointOptions};
use cohkit_chart::Text;
use cohkit_check::system::unshared_buffers;
use cohkit_engine::model::Model;
use cohkit_engine::search::Progress;
use cohkit_protocol::construct::fault::Fault;
use cohkit_protocol::protocol::System;
use cohkit_protocol::text::composes;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Checks all systems of all files in their order, and returns the worst outcome. Errors of a file are printed, and
/// the next file is checked.
///
/// # Errors
/// An option does not fit the files, an output cannot be written, or the command was interrupted.
pub(crate) fn once(options: &Check, console: &mut Console) -> Result<ExitStatus, Failure> {
    // Reject unusable output paths before a long search.
    if let Some(file) = &options.output.out {
        files::try_file(file)?;
    }
    if let Some(file) = &options.graph {
        graph::reject_unsuitable_options(options, file)?;
    }
    let folders = options.export_murphi.iter().chain(&options.export_tla);
    for folder in folders.chain(&options.chart_svg) {
        files::try_folder(folder)?;
    }
    reject_unsuitable_options(options)?;
    if let Some(trace) = &options.replay {
        return replay::run(options, trace, console);
    }
    let inputs: Vec<Input> = (options.files.iter())
        .map(|file| Input::read(file, console.terminal.colour))
        .collect();
    let writes_files = [
        &options.export_murphi,
        &options.export_tla,
        &options.chart_svg,
    ];
    if writes_files.iter().any(|folder| folder.is_some()) {
        let protocols = inputs.iter().filter_map(|input| match input {
            Input::Protocol(source) => source.as_ref().as_ref().ok(),
            Input::Model(_) | Input::Composition(_) => None,
        });
        reject_duplicate_names(protocols)?;
        reject_export_collisions(options)?;
    }
    let checkpoints = checkpoints(options)?;
    let mut batch = Batch {
        options,
        checkpoints: checkpoints.as_ref(),
        exports: Exports::new(
            options.export_murphi.as_deref(),
            options.export_tla.as_deref(),
        ),
        charts: options.output.charts(console.terminal),
        outcome: ExitStatus::default(),
        values: Vec::new(),
        text: String::new(),
        uncovered_rows: UncoveredRows::default(),
        limits: Vec::new(),
        part_results: Vec::new(),
    };
    let mut worst_outcome = ExitStatus::default();
    for input in inputs {
        batch.check_input(input, console);
        worst_outcome = worst_outcome.max(std::mem::take(&mut batch.outcome));
        if console.is_interrupted() {
            let advice = batch.checkpoints.and_then(Checkpoints::advice);
            let advice = advice.map_or(String::new(), |advice| format!("; {advice}"));
            return Err(Failure::new(
                ExitStatus::Interrupted,
                format!("interrupted{advice}"),
            ));
        }
    }
    if options.output.form.json {
        let value = Value::Array(batch.values);
        deliver(
            &options.output.form.format_output(value, console),
            &options.output,
            console,
        )?;
    } else if options.output.out.is_some() {
        deliver(&batch.text, &options.output, console)?;
    }
    Ok(worst_outcome)
}

/// A file to check.
enum Input<'a> {
    /// A protocol file, or the error from reading it.
    Protocol(Box<Result<Source, Failure>>),
    /// A composition with the files that it uses, or the error from reading them.
    Composition(Box<Result<CompositionSource, Failure>>),
    /// Path of a Murphi model. Models are read one at a time, just before they are checked.
    Model(&'a Path),
}

impl Input<'_> {
    /// Reads a file, unless it is a Murphi model.
    fn read(file: &Path, colour: bool) -> Input<'_> {
        if model_check::is_model(file) {
            return Input::Model(file);
        }
        match files::read(file) {
            Ok(text) if composes(&text) => {
                Input::Composition(Box::new(CompositionSource::read(file, &text, colour)))
            }
            text => Input::Protocol(Box::new(
                text.and_then(|text| Source::of(file, text, colour)),
            )),
        }
    }
}

/// Rejects options that do not apply to one of the files, or that contradict `--hash-compaction`. Nothing is read.
fn reject_unsuitable_options(options: &Check) -> Result<(), Failure> {
    let given_option = |name: &'static str, is_given: bool| is_given.then_some(name);
    let protocol_options = [
        given_option("--system", !options.systems.is_empty()),
        given_option("--remotes", options.remotes.is_some()),
        given_option("--lines", options.lines.is_some()),
        given_option("--capacity", options.capacity.is_some()),
        given_option("--any-number", options.any_number),
        given_option("--fairness", options.fairness.is_some()),
    ];
    let model_options = [
        given_option("--dialect", options.dialect.is_some()),
        given_option("--deadlock", options.deadlock.is_some()),
    ];
    if options.hash_compaction {
        let state_options = [
            given_option("--checkpoint", options.checkpoint.is_some()),
            given_option("--resume", options.resume.is_some()),
            given_option("--coverage", options.coverage),
        ];
        if let Some(option) = state_options.iter().flatten().next() {
            return Err(Failure::new(
                ExitStatus::BadInput,
                format!(
                    "error: `{option}` needs the expanded states, but `--hash-compaction` keeps only their signatures\n  \
                     help: remove one of the two options"
                ),
            ));
        }
    }
    for file in &options.files {
        let (unsupported, kind, supported_kind) = match model_check::is_model(file) {
            true => (&protocol_options[..], "a Murphi model", "protocol files"),
            false => (&model_options[..], "a protocol file", "Murphi models"),
        };
        if let Some(option) = unsupported.iter().flatten().next() {
            return Err(Failure::new(
                ExitStatus::BadInput,
                format!(
                    "error: {}: is {kind}, and `{option}` is for {supported_kind}\n  help: check the files one by one",
                    file.display()
                ),
            ));
        }
    }
    Ok(())
}

/// Rejects models whose exported files would overwrite each other, or overwrite a model that is checked.
fn reject_export_collisions(options: &Check) -> Result<(), Failure> {
    let models = || {
        options
            .files
            .iter()
            .filter(|file| model_check::is_model(file))
    };
    let reject = |message: String| Err(Failure::new(ExitStatus::BadInput, message));
    for (number, file) in models().enumerate() {
        let stem = file.file_stem();
        if let Some(first_file) = models()
            .take(number)
            .find(|earlier| earlier.file_stem() == stem)
        {
            return reject(format!(
                "error: {} and {}: both would write files of the same name\n  \
                 help: check them one by one into folders of their own",
                first_file.display(),
                file.display()
            ));
        }
        let (Some(folder), Some(stem)) = (&options.export_murphi, stem) else {
            continue;
        };
        let exported = folder.join(format!("{}.m", stem.to_string_lossy()));
        let is_same = |input: &&PathBuf| match (input.canonicalize(), exported.canonicalize()) {
            (Ok(input), Ok(exported)) => input == exported,
            _ => false,
        };
        if let Some(input) = models().find(is_same) {
            return reject(format!(
                "error: {}: `--export-murphi {}` would overwrite this model\n  \
                 help: name another folder",
                input.display(),
                folder.display()
            ));
        }
    }
    Ok(())
}

/// Rejects protocol files whose exported files would overwrite each other, as these are named after the protocol.
fn reject_duplicate_names<'a>(sources: impl Iterator<Item = &'a Source>) -> Result<(), Failure> {
    let mut accepted: Vec<&Source> = Vec::new();
    for source in sources {
        let name = &source.protocol.name;
        if let Some(first_source) = accepted
            .iter()
            .find(|candidate| candidate.protocol.name == *name)
        {
            let (first_source, second) = (first_source.path.display(), source.path.display());
            return Err(Failure::new(
                ExitStatus::BadInput,
                format!(
                    "error: {first_source} and {second}: both specify a protocol `{name}`, and would write the same files\n  \
                     help: check them one by one into folders of their own, or rename one of the protocols"
                ),
            ));
        }
        accepted.push(source);
    }
    Ok(())
}

/// Inputs of one run of the command, and its results so far.
struct Batch<'a> {
    /// Options of the command.
    options: &'a Check,
    /// Folder of checkpoints, if the options name one.
    checkpoints: Option<&'a Checkpoints>,
    /// Files for other checkers.
    exports: Exports<'a>,
    /// Form of charts in the text.
    charts: Text,
    /// Worst outcome on the current file.
    outcome: ExitStatus,
    /// For JSON: one entry for each system.
    values: Vec<Value>,
    /// Text collected for a file, which is printed immediately otherwise.
    text: String,
    /// Rows of the current protocol file, with those that no system takes.
    uncovered_rows: UncoveredRows,
    /// Limitations of the verified verdicts on the current file, without repetition.
    limits: Vec<String>,
    /// Outcome and number of states of each system or part so far.
    part_results: Vec<(ExitStatus, u128)>,
}

impl Batch<'_> {
    /// Checks one file, and prints its errors. The outcome of the batch is then that of the file.
    fn check_input(&mut self, input: Input, console: &mut Console) {
        let result = match input {
            Input::Protocol(source) => {
                source.and_then(|source| self.check(source, systems(self.options), console))
            }
            Input::Composition(composition) => {
                composition.and_then(|composition| self.check_composed(&composition, console))
            }
            Input::Model(file) => self.check_model(file, console),
        };
        let result = result.and_then(|()| self.print_limits(console));
        if let Err(failure) = result {
            console.say(&failure.message);
            self.outcome = self.outcome.max(failure.outcome);
        }
    }

    /// Checks the selected systems of one protocol. The request takes all other options from the command line.
    fn check(
        &mut self,
        source: Source,
        systems: Systems,
        console: &mut Console,
    ) -> Result<(), Failure> {
        let options = self.options;
        if options.graph.is_some() {
            graph::reject_several_systems(options, &source)?;
        }
        let request = Request {
            systems,
            ..request(options, console)
        };
        let colour = console.terminal.colour;
        let mut reporter = VerdictReporter {
            batch: self,
            console,
        };
        judge(source.clone(), &request, &mut reporter)
            .map_err(|error| source.failure(error, colour))?;
        let uncovered_rows = std::mem::take(&mut self.uncovered_rows);
        match options.output.form.json {
            true => Ok(()),
            false => self.print(&uncovered_rows.text(&source.protocol.name), console),
        }
    }

    /// Checks each part of each system of a composition.
    fn check_composed(
        &mut self,
        composition: &CompositionSource,
        console: &mut Console,
    ) -> Result<(), Failure> {
        for system in composition_systems(self.options, composition)? {
            self.part_results.clear();
            for source in composition.parts(system) {
                self.check(source, Systems::Declared, console)?;
            }
            let options = JointOptions {
                max_states: self.options.max_states,
                symmetry: self.options.symmetry != Some(SymmetryOption::Off),
            };
            for levels in composition.levels(system, options, console.interrupted) {
                self.part_results
                    .push((levels.outcome(), levels.states as u128));
                let (json, text) = (|| levels.json(composition.path()), || levels.text());
                self.report_outcome(levels.outcome(), json, text, console)?;
            }
            if !self.options.output.form.json && !console.is_interrupted() {
                self.print(
                    &composition.product_summary(system, &self.part_results),
                    console,
                )?;
            }
        }
        Ok(())
    }

    /// Prints the text, or collects it for the output file.
    fn print(&mut self, text: &str, console: &mut Console) -> Result<(), Failure> {
        if self.options.output.out.is_some() {
            self.text += text;
            Ok(())
        } else {
            console.print(text)
        }
    }

    /// Prints the limits of the verdicts on a file after all of them, unless the file is violated.
    fn print_limits(&mut self, console: &mut Console) -> Result<(), Failure> {
        let limits = std::mem::take(&mut self.limits).concat();
        match self.outcome {
            ExitStatus::Success | ExitStatus::Undecided => self.print(&limits, console),
            _ => Ok(()),
        }
    }

    /// Records a verdict, and reports it: charts as SVG, limitations, coverage, and its text or JSON.
    fn report(
        &mut self,
        verdict: &Verdict,
        run: Value,
        console: &mut Console,
    ) -> Result<(), Failure> {
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
                files::make_folder(folder)?;
                files::write(&file, &cohkit_chart::svg(sequence, &verdict.name()))?;
            }
        }
        match self.part_results.last_mut() {
            // In a composition, a part has the worst outcome of its system and of the one with added lines.
            Some((outcome, _)) if verdict.added => *outcome = (*outcome).max(verdict.outcome()),
            _ => self
                .part_results
                .push((verdict.outcome(), verdict.states())),
        }
        if verdict.outcome() == ExitStatus::Success && !self.options.output.form.json {
            let limit = unshared_buffers(verdict.protocol);
            let limit = limit.map(|limit| format!("{}: {limit}\n", verdict.protocol.name));
            self.limits
                .extend(limit.filter(|limit| !self.limits.contains(limit)));
        }
        if let Some(coverage) = &verdict.coverage {
            self.uncovered_rows.add(coverage);
        }
        let charts = self.charts;
        let command = reproduce_command(self.options);
        self.report_outcome(
            verdict.outcome(),
            || verdict.json(run),
            || verdict.text(&charts) + &command,
            console,
        )
    }

    /// Records an outcome, and reports it as JSON or as text.
    fn report_outcome(
        &mut self,
        outcome: ExitStatus,
        json: impl FnOnce() -> Value,
        text: impl FnOnce() -> String,
        console: &mut Console,
    ) -> Result<(), Failure> {
        self.outcome = self.outcome.max(outcome);
        if self.options.output.form.json {
            self.values.push(json());
            return Ok(());
        }
        self.print(&text(), console)
    }
}

/// Listener that reports each verdict as it arrives.
struct VerdictReporter<'b, 'o, 'c, 'w> {
    /// Batch that collects the results.
    batch: &'b mut Batch<'o>,
    /// Console that results and faults are printed on.
    console: &'c mut Console<'w>,
}

impl Listener for VerdictReporter<'_, '_, '_, '_> {
    fn verdict(&mut self, verdict: &Verdict, run: Value) -> Result<(), Failure> {
        self.batch.report(verdict, run, self.console)
    }

    fn guaranteed(&mut self, verdict: &GuaranteeVerdict, source: &Source) -> Result<(), Failure> {
        // In a composition, a part has the worst outcome of its systems and of its programs.
        if let Some((outcome, _)) = self.batch.part_results.last_mut() {
            *outcome = (*outcome).max(verdict.outcome());
        }
        let charts = self.batch.charts;
        let (json, text) = (|| verdict.json(source), || verdict.text(source, &charts));
        self.batch
            .report_outcome(verdict.outcome(), json, text, self.console)
    }

    fn any_number(&mut self, verdict: &AnyNumberVerdict, source: &Source) -> Result<(), Failure> {
        let (json, text) = (|| verdict.json(source), || verdict.text(source));
        self.batch
            .report_outcome(verdict.outcome(), json, text, self.console)
    }

    fn starvation(&mut self, verdict: &StarvationVerdict, source: &Source) -> Result<(), Failure> {
        let charts = self.batch.charts;
        let (json, text) = (|| verdict.json(source), || verdict.text(source, &charts));
        self.batch
            .report_outcome(verdict.outcome(), json, text, self.console)
    }

    fn model(&mut self, source: &Source, system: &System, model: &Model) -> Result<(), Failure> {
        let name = format!("{}-{}", source.protocol.name, system.name);
        self.batch.exports.write(&source.path, &name, model)
    }

    fn searched(&mut self, model: &Model, verdict: &Verdict) -> Result<(), Failure> {
        match &self.batch.options.graph {
            Some(file) => graph::write(file, model, verdict.trace()),
            None => Ok(()),
        }
    }

    fn progress(&self, source: &Source, system: &System) -> Box<dyn Fn(&Progress) + Sync> {
        let name = format!("{} {}", source.protocol.name, system.name);
        let line = SearchStatusLine::new(name, &self.console.terminal);
        Box::new(move |progress| line.show(progress))
    }

    fn checkpoints(&self) -> Option<&Checkpoints> {
        self.batch.checkpoints
    }

    fn fault(&mut self, source: &Source, fault: &Fault) {
        let colour = self.console.terminal.colour;
        let report = source.fault(fault, &self.batch.charts, colour);
        self.console.say(&report);
    }
}

impl Batch<'_> {
    /// Checks a Murphi model, and reports the verdict.
    fn check_model(&mut self, path: &Path, console: &mut Console) -> Result<(), Failure> {
        let options = self.options;
        let model = read_model(path, options, console)?;
        self.exports.write(path, &model.name, &model)?;
        let line = SearchStatusLine::new(model.name.clone(), &console.terminal);
        let progress = |progress: &Progress| line.show(progress);
        let request = request(options, console);
        let model_result = judge_model(&model, path, &request, &progress, self.checkpoints)?;
        drop(line);
        let is_failed = matches!(
            model_result.report.outcome,
            cohkit_engine::Outcome::Violated { .. } | cohkit_engine::Outcome::Exceeded { .. }
        );
        if model_result.report.states == 0 && !is_failed {
            console.say(&format!(
                "warning: {}: no start state is left; nothing to check",
                path.display()
            ));
        }
        if let (Some(folder), Some(trace)) = (&options.chart_svg, trace(&model_result.report)) {
            match trace.sequence.steps.is_empty() {
                true => console.say(&format!(
                    "{}: no chart: the counterexample contains no recognised messages",
                    model.name
                )),
                false => {
                    files::make_folder(folder)?;
                    let svg = cohkit_chart::svg(&trace.sequence, &model.name);
                    files::write(&folder.join(format!("{}.svg", model.name)), &svg)?;
                }
            }
        }
        let charts = self.charts;
        self.report_outcome(
            outcome(&model_result.report),
            || model_result.json(&model),
            || {
                let mut text = text(&model, &model_result.report, &charts);
                text += &(model_result.explanation.iter())
                    .map(explanation::text)
                    .collect::<String>();
                text += &model_result
                    .coverage
                    .iter()
                    .map(SystemCoverage::text)
                    .collect::<String>();
                text + &reproduce_command(options)
            },
            console,
        )?;
        match &options.graph {
            Some(file) => graph::write(file, &model, trace(&model_result.report)),
            None => Ok(()),
        }
    }
}
