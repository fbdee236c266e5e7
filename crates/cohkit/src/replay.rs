//! `cohkit check --replay`: replays counterexamples on their models.

use crate::check_request::{read_model, systems};
use crate::console::Console;
use crate::deliver;
use crate::options::Check;
use cohkit_api::outcome::{ExitStatus, Failure};
use cohkit_api::protocol_check::{self, ModelError, Systems};
use cohkit_api::source::{InputError, Source};
use cohkit_api::verdict::{counterexample, kind, CHECK_LIMIT_TEXT};
use cohkit_api::{explanation, files, model_check};
use cohkit_base::sequence::Sequence;
use cohkit_chart::Text;
use cohkit_check::progress;
use cohkit_check::system::progress::{kinds, lines_of, watch_model, Kind, PROGRESS};
use cohkit_check::system::SystemModel;
use cohkit_engine::explain::{explain, Remark};
use cohkit_engine::model::Model;
use cohkit_engine::replay::{replay_trace, FinalVerdict};
use cohkit_engine::trace::Trace;
use cohkit_engine::Property;
use cohkit_protocol::controller::Controller;
use cohkit_protocol::protocol::{Protocol, System};
use cohkit_protocol::remotes::Remotes;
use serde_json::{json, Map, Value};
use std::path::Path;

/// Replays the counterexamples of a file on the only specification of the options. The outcome is the worst one of
/// all replays.
///
/// # Errors
/// The file has no usable counterexample, or one does not fit the specification.
pub(crate) fn run(
    options: &Check,
    file: &Path,
    console: &mut Console,
) -> Result<ExitStatus, Failure> {
    let [text] = &options.files[..] else {
        return Err(input_error(
            file,
            "is replayed on one specification, but several are given",
            "name the specification of the trace",
        ));
    };
    let recordings = read_recordings(file)?;
    let mut replay = Replay {
        file,
        text,
        charts: options.output.charts(console.terminal),
        outcome: ExitStatus::Success,
        values: Vec::new(),
        text_output: String::new(),
    };
    match model_check::is_model(text) {
        true => replay.replay_on_model(&recordings, options, console)?,
        false => replay.replay_on_protocol(&recordings, options, console)?,
    }
    let result = match options.output.form.json {
        true => options
            .output
            .form
            .format_output(Value::Array(replay.values), console),
        false => replay.text_output,
    };
    deliver(&result, &options.output, console)?;
    Ok(replay.outcome)
}

/// Results of the replays so far.
struct Replay<'a> {
    /// File of the counterexamples.
    file: &'a Path,
    /// Protocol file or model for the replay.
    text: &'a Path,
    /// Form of charts in the text.
    charts: Text,
    /// Worst outcome of the replays so far.
    outcome: ExitStatus,
    /// JSON entry of each replay.
    values: Vec<Value>,
    /// Text of all replays.
    text_output: String,
}

impl Replay<'_> {
    /// Replays the counterexamples of a protocol, each on the system that the file or the options name.
    fn replay_on_protocol(
        &mut self,
        recordings: &[Recording],
        options: &Check,
        console: &mut Console,
    ) -> Result<(), Failure> {
        let source = Source::read(self.text, console.terminal.colour)?;
        let protocol = &source.protocol.name;
        let is_requested =
            |system: &String| options.systems.is_empty() || options.systems.contains(system);
        let selected = self.select_recordings(recordings, protocol, |subject| match subject {
            Subject::System(name, system) => name == protocol && is_requested(system),
            Subject::Model(_) => false,
        })?;
        for recording in selected {
            let systems = recording
                .systems(&source)
                .unwrap_or_else(|| systems(options));
            let cancel = console.interrupted;
            let models = protocol_check::for_each_system(
                source.clone(),
                &systems,
                cancel,
                |protocol, system, home| {
                    Candidate::all(recording, protocol, system, home, options.capacity)
                },
            );
            let models = models.map_err(|error| match error {
                ModelError::Input(error) => source.failure(error, console.terminal.colour),
                ModelError::Fault(fault) => {
                    let colour = console.terminal.colour;
                    let fault = source.fault(&fault, &self.charts, colour);
                    Failure::new(ExitStatus::BadInput, fault)
                }
            })?;
            if console.is_interrupted() {
                return Err(Failure::new(ExitStatus::Interrupted, "interrupted"));
            }
            let [(system, candidates)] = &models[..] else {
                let names: Vec<String> = (models.iter())
                    .map(|(s, _)| format!("`{}`", s.name))
                    .collect();
                return Err(input_error(
                    self.file,
                    format!("does not name its system: {}", names.join(", ")),
                    "name it with `--system`",
                ));
            };
            let entry = json!({
                "protocol": protocol,
                "system": system.name,
                "remotes": system.remotes.total(),
                "lines": system.lines,
            });
            let title = format!("{protocol} {}", system.name);
            self.replay_one(recording, &title, entry, &source.protocol, candidates)?;
        }
        Ok(())
    }

    /// Replays the counterexamples of a Murphi model.
    fn replay_on_model(
        &mut self,
        recordings: &[Recording],
        options: &Check,
        console: &mut Console,
    ) -> Result<(), Failure> {
        let model = read_model(self.text, options, console)?;
        let selected = self.select_recordings(recordings, &model.name, |entry| match entry {
            Subject::Model(name) => *name == model.name,
            Subject::System(..) => false,
        })?;
        for recording in selected {
            let title = &model.name;
            let entry = json!({ "model": title });
            let (trace, ending) =
                replay_trace(&model, &recording.trace, recording.violated.as_ref())
                    .map_err(|reason| self.mismatch_failure(title, &reason))?;
            self.report_ending(&model, &[], title, entry, trace, ending);
        }
        Ok(())
    }

    /// Counterexamples of the requested protocol, system or model; at least one.
    fn select_recordings<'r>(
        &self,
        recordings: &'r [Recording],
        name: &str,
        is_selected: impl Fn(&Subject) -> bool,
    ) -> Result<Vec<&'r Recording>, Failure> {
        let selected = recordings.iter();
        let selected: Vec<&Recording> = selected
            .filter(|recording| recording.subject.as_ref().is_none_or(&is_selected))
            .collect();
        if !selected.is_empty() {
            return Ok(selected);
        }
        let subject_name = |recording: &Recording| {
            Some(match recording.subject.as_ref()? {
                Subject::System(protocol, system) => format!("`{protocol} {system}`"),
                Subject::Model(model) => format!("`{model}`"),
            })
        };
        let other_names: Vec<String> = recordings.iter().filter_map(subject_name).collect();
        let other_names = other_names.join(", ");
        Err(input_error(
            self.file,
            format!("holds no counterexample for `{name}`, but of {other_names}"),
            "name the specification of the trace",
        ))
    }

    /// Failure for a counterexample whose steps the model does not allow. `title` names the model.
    fn mismatch_failure(&self, title: &str, reason: &str) -> Failure {
        input_error(
            self.file,
            format!("does not fit {title}: {reason}"),
            "replay a trace with the specification and options of the run that wrote it",
        )
    }

    /// Replays one counterexample on the first model that it fits. `title` and `entry` name its system.
    fn replay_one(
        &mut self,
        recording: &Recording,
        title: &str,
        entry: Value,
        protocol: &Protocol,
        candidates: &[Candidate],
    ) -> Result<(), Failure> {
        let mut mismatch_failure = String::from("the protocol has no accesses");
        for candidate in candidates {
            let violated = match candidate.progress_check {
                Some(_) => Some(Property::Liveness(PROGRESS.into())),
                None => recording.violated.clone(),
            };
            let SystemModel { model, remarks, .. } = &candidate.system_model;
            match replay_trace(model, &recording.trace, violated.as_ref()) {
                Ok((trace, ending)) => {
                    let ending = match (ending, &candidate.progress_check) {
                        (FinalVerdict::Violated { .. }, Some((kind, home, size))) => {
                            FinalVerdict::Violated {
                                property: progress::PROGRESS,
                                message: progress::describe_violation(
                                    protocol,
                                    home,
                                    *size,
                                    *kind,
                                    &candidate.system_model,
                                    &trace,
                                ),
                            }
                        }
                        (ending, _) => ending,
                    };
                    self.report_ending(model, remarks, title, entry, trace, ending);
                    return Ok(());
                }
                Err(reason) => mismatch_failure = reason,
            }
        }
        Err(self.mismatch_failure(title, &mismatch_failure))
    }

    /// Records how a counterexample ends: raises the outcome, and adds a text and a JSON entry. `title` and `entry` name
    /// the model.
    fn report_ending(
        &mut self,
        model: &Model,
        remarks: &[Remark],
        title: &str,
        entry: Value,
        trace: Trace,
        verdict: FinalVerdict,
    ) {
        let has_chart = !model.agents.is_empty();
        let ending = Ending::new(&verdict, has_chart);
        self.outcome = self.outcome.max(ending.outcome);
        let explanation = match &verdict {
            FinalVerdict::Violated { property, .. } => {
                explain(model, remarks, property, &trace, &cohkit_murphi::expression)
            }
            _ => None,
        };
        let (steps, sequences) = self.steps_text(&trace, has_chart);
        let sentence = ending.sentence(has_chart);
        self.text_output += &format!("{title}: {sentence}\n\n{steps}\n");
        self.text_output += &explanation
            .iter()
            .map(explanation::text)
            .collect::<String>();
        let violation = ending.violation.map(|violation| {
            let Violation {
                kind,
                name,
                message,
            } = violation;
            counterexample(kind, &name, &message, sequences, Some(&trace))
        });
        let mut entry = entry;
        entry["outcome"] = json!(ending.word);
        entry["counterexample"] = violation.unwrap_or(Value::Null);
        if let Some(explanation) = &explanation {
            entry["counterexample"]["explanation"] = json!(explanation);
        }
        entry["run"] = json!({
            "file": self.text.display().to_string(),
            "trace": self.file.display().to_string(),
            "version": env!("CARGO_PKG_VERSION"),
        });
        self.values.push(entry);
    }

    /// Steps of a trace as text, and the sequences that are drawn as charts in it. A model without agents has a list of
    /// states, and a chart of the messages that were recognised.
    fn steps_text<'t>(&self, trace: &'t Trace, has_chart: bool) -> (String, Vec<&'t Sequence>) {
        let (mut text, mut sequences) = match has_chart {
            true => (String::new(), vec![&trace.sequence]),
            false => (trace.to_string(), Vec::new()),
        };
        if !has_chart && !trace.sequence.steps.is_empty() {
            text.push('\n');
            sequences.push(&trace.sequence);
        }
        for sequence in &sequences {
            text += &cohkit_chart::text(sequence, &self.charts);
        }
        (text, sequences)
    }
}

/// Violation, or exceeded limit, at the end of a counterexample.
struct Violation {
    /// Kind of the violated property, as in JSON results.
    kind: &'static str,
    /// Name of the property or limit.
    name: String,
    /// Description for users.
    message: String,
}

/// Result of a replay.
struct Ending {
    outcome: ExitStatus,
    /// Outcome as in JSON results.
    word: &'static str,
    violation: Option<Violation>,
}

impl Ending {
    /// Result for a verdict on the last state. `has_chart` is true for models of protocols.
    fn new(verdict: &FinalVerdict, has_chart: bool) -> Ending {
        let undecided = |violation| Ending {
            outcome: ExitStatus::Undecided,
            word: "undecided",
            violation,
        };
        match verdict {
            FinalVerdict::Violated { property, message } => Ending {
                outcome: ExitStatus::Violated,
                word: "violated",
                violation: Some(Violation {
                    kind: kind(property),
                    name: property.to_string(),
                    message: message.clone(),
                }),
            },
            FinalVerdict::LimitExceeded(limit) if has_chart => undecided(Some(Violation {
                kind: "capacity",
                name: limit.clone(),
                message: format!("{limit}: {CHECK_LIMIT_TEXT}"),
            })),
            FinalVerdict::LimitExceeded(limit) => undecided(Some(Violation {
                kind: "limit",
                name: limit.clone(),
                message: limit.clone(),
            })),
            FinalVerdict::NoViolation => Ending {
                outcome: ExitStatus::Success,
                word: "sound",
                violation: None,
            },
            FinalVerdict::Undecided => undecided(None),
        }
    }

    /// Result as a sentence.
    fn sentence(&self, has_chart: bool) -> String {
        let word = self.word;
        match &self.violation {
            Some(Violation { name, message, .. })
                if has_chart && *message == format!("`{name}` does not hold") =>
            {
                format!("{word}: {name}")
            }
            Some(Violation { name, message, .. }) if self.outcome == ExitStatus::Undecided => {
                format!("{word}: {}", if has_chart { message } else { name })
            }
            Some(Violation { name, message, .. }) => format!("{word}: {name}: {message}"),
            None if self.outcome == ExitStatus::Undecided => {
                "undecided: too many states are reachable from the last state".into()
            }
            None => "no violation in the last state".into(),
        }
    }
}

/// A model that a counterexample may belong to.
struct Candidate {
    /// Model of the system, without a trial capacity.
    system_model: SystemModel,
    /// Kind of accesses whose progress is checked on this model, with the home and the size of the system; `None`
    /// otherwise.
    progress_check: Option<(Kind, Controller, (Remotes, u8))>,
}

impl Candidate {
    /// Models of a system that a counterexample may belong to.
    fn all(
        recording: &Recording,
        protocol: &Protocol,
        system: &System,
        home: &Controller,
        capacity: Option<u8>,
    ) -> Result<Vec<Candidate>, InputError> {
        if recording.violated != Some(progress::PROGRESS) {
            let system_model = protocol_check::model(protocol, system, home, capacity, None)?;
            return Ok(vec![Candidate {
                system_model,
                progress_check: None,
            }]);
        }
        let lowering = protocol_check::lowering_options(system, capacity, None);
        let size = (system.remotes, lines_of(protocol, system.lines));
        let candidate_for = |kind| {
            let system_model = watch_model(protocol, home, size, kind, &lowering);
            let system_model = system_model.map_err(|error| {
                let name = &system.name;
                InputError::plain(format!("system `{name}` cannot be modelled: {error}"))
            })?;
            Ok(Candidate {
                system_model,
                progress_check: Some((kind, home.clone(), size)),
            })
        };
        kinds(protocol, home)
            .into_iter()
            .map(candidate_for)
            .collect()
    }
}

/// Subject of a counterexample.
enum Subject {
    /// Names of a protocol and of its system.
    System(String, String),
    /// Name of a Murphi model.
    Model(String),
}

/// A counterexample that was read from a file.
struct Recording {
    /// Subject, if the file states it.
    subject: Option<Subject>,
    /// Numbers of remotes and lines, if the file states them.
    size: Option<(u8, u8)>,
    /// Property that the counterexample violates, according to the file.
    violated: Option<Property>,
    /// States and steps of the counterexample.
    trace: Trace,
}

impl Recording {
    /// System of the counterexample: the declared one with its name, or else one of the same size.
    fn systems(&self, source: &Source) -> Option<Systems> {
        let Some(Subject::System(_, name)) = &self.subject else {
            return None;
        };
        let declared = &source.protocol.systems;
        if declared.iter().any(|system| system.name == *name) {
            return Some(Systems::Named(vec![name.clone()]));
        }
        self.size.map(|(remotes, lines)| Systems::Sized {
            remotes: u16::from(remotes),
            lines,
        })
    }
}

/// Failure that names the file of the counterexamples, with a remedy.
fn input_error(file: &Path, reason: impl AsRef<str>, help: &str) -> Failure {
    let (file, reason) = (file.display(), reason.as_ref());
    Failure::new(
        ExitStatus::BadInput,
        format!("error: {file}: {reason}\n  help: {help}"),
    )
}

/// Help line: required contents of a trace file.
const TRACE_HELP: &str =
    "a trace is the output of `cohkit check FILE --json`, or its `trace` alone";

/// Reads the counterexamples of a file, at least one.
fn read_recordings(file: &Path) -> Result<Vec<Recording>, Failure> {
    if !file.exists() {
        return Err(input_error(file, "no such file", TRACE_HELP));
    }
    if file.is_dir() {
        return Err(input_error(file, "is a folder", TRACE_HELP));
    }
    let text = files::read(file)?;
    if text.trim().is_empty() {
        return Err(input_error(file, "is empty", TRACE_HELP));
    }
    let value: Value = serde_json::from_str(&text)
        .map_err(|error| input_error(file, format!("is not JSON: {error}"), TRACE_HELP))?;
    let entries = match value {
        Value::Array(entries) => entries,
        value => vec![value],
    };
    let mut recordings = Vec::new();
    for (index, entry) in entries.into_iter().enumerate() {
        let Value::Object(entry) = entry else {
            return Err(input_error(
                file,
                format!("entry {} is no object", index + 1),
                TRACE_HELP,
            ));
        };
        let entry_error = |reason: String| {
            let name = entry.get("system").and_then(Value::as_str);
            let name = name.map_or(String::new(), |name| format!("`{name}`: "));
            input_error(file, format!("{name}{reason}"), TRACE_HELP)
        };
        recordings.extend(parse_recording(&entry).map_err(entry_error)?);
    }
    if recordings.is_empty() {
        return Err(input_error(
            file,
            "holds no counterexample",
            "nothing to replay: no property is violated",
        ));
    }
    Ok(recordings)
}

/// Reads the counterexample of a result, of a counterexample itself, or of a trace; `None` if the result has none.
fn parse_recording(entry: &Map<String, Value>) -> Result<Option<Recording>, String> {
    let result = Value::Object(entry.clone());
    let counterexample = match entry.get("counterexample") {
        Some(Value::Null) => return Ok(None),
        Some(counterexample) => counterexample,
        None => &result,
    };
    let trace = match (counterexample.get("trace"), counterexample.get("steps")) {
        (Some(Value::Null), _) => return Err(
            "has no trace, as no search found the counterexample; check the specification again"
                .into(),
        ),
        (Some(trace), _) => trace,
        (None, Some(_)) => counterexample,
        (None, None) => return Err("has neither `counterexample`, `trace` nor `steps`".into()),
    };
    let trace: Trace = serde_json::from_value(trace.clone())
        .map_err(|error| format!("the trace cannot be read: {error}"))?;
    let text =
        |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_string);
    let number = |key: &str| {
        let number = entry.get(key).and_then(Value::as_u64);
        number.and_then(|number| u8::try_from(number).ok())
    };
    let name = text(counterexample, "name").unwrap_or_default();
    let violated = match text(counterexample, "kind").as_deref() {
        Some("invariant") => Some(Property::Invariant(name)),
        Some("assertion") => Some(Property::Assertion(name)),
        Some("well_defined") => Some(Property::WellDefined),
        Some("no_deadlock") => Some(Property::NoDeadlock),
        // Traces that earlier versions recorded have the kind `drain`.
        Some("quiescence" | "drain") => Some(Property::Drain),
        Some("liveness") => Some(Property::Liveness(name)),
        Some("progress") => Some(progress::PROGRESS),
        Some("cover") => {
            return Err(format!(
                "that `{name}` is never reached cannot be shown by a trace"
            ))
        }
        _ => None,
    };
    let system = text(&result, "protocol").zip(text(&result, "system"));
    let value = system.map(|(protocol, system)| Subject::System(protocol, system));
    Ok(Some(Recording {
        subject: value.or_else(|| text(&result, "model").map(Subject::Model)),
        size: number("remotes").zip(number("lines")),
        violated,
        trace,
    }))
}
