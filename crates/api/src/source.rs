//! Protocol files and their errors, with positions in the text.

use crate::files;
use crate::outcome::{ExitStatus, Failure};
use cohkit_chart::Text;
use cohkit_diagnostics::{line_column, suggestion, Excerpt, Report, Severity, Span};
use cohkit_protocol::construct::fault::{Fault, Refusal};
use cohkit_protocol::construct::ConstructionError;
use cohkit_protocol::protocol::Protocol;
use cohkit_protocol::text::{self, Diagnostic};
use cohkit_sim::platform::text::PlatformError;
use serde_json::{json, Value};
use std::path::{Path, PathBuf};

/// Reason why work on a protocol ended.
#[derive(Clone, PartialEq, Debug)]
pub enum InputError {
    /// No home can be constructed from this form of protocol.
    Refused(Refusal),
    /// The request is invalid.
    Input {
        /// Description of the error.
        message: String,
        /// Suggested remedy.
        help: Option<String>,
    },
    /// A file or stream could not be used, or a listener failed.
    Failure(Failure),
}

impl InputError {
    /// Creates an error with a remedy.
    pub(crate) fn input(message: impl Into<String>, help: impl Into<String>) -> InputError {
        InputError::Input {
            message: message.into(),
            help: Some(help.into()),
        }
    }

    /// Creates an error without a remedy.
    pub fn plain(message: String) -> InputError {
        InputError::Input {
            message,
            help: None,
        }
    }

    /// Converts the error to a failure that names the file, without a position in its text.
    pub fn failure(self, path: &Path) -> Failure {
        match self {
            InputError::Refused(refusal) => {
                let message = format!("error: {}: {}", path.display(), refusal_text(&refusal));
                Failure::new(ExitStatus::BadInput, message)
            }
            InputError::Input { message, help } => {
                let help = help.map_or(String::new(), |help| format!("\n  help: {help}"));
                let message = format!("error: {}: {message}{help}", path.display());
                Failure::new(ExitStatus::BadInput, message)
            }
            InputError::Failure(failure) => failure,
        }
    }
}

impl From<Failure> for InputError {
    fn from(failure: Failure) -> InputError {
        InputError::Failure(failure)
    }
}

/// A protocol file that was read.
#[derive(Clone, Debug)]
pub struct Source {
    /// Path of the file.
    pub path: PathBuf,
    /// Contents of the file.
    pub text: String,
    /// Resolved protocol.
    pub protocol: Protocol,
}

impl Source {
    /// Parses the contents of the file at `path`.
    ///
    /// # Errors
    /// All errors of the text.
    pub fn parse(path: PathBuf, text: String) -> Result<Source, Vec<Diagnostic>> {
        text::parse(&text).map(|protocol| Source {
            path,
            text,
            protocol,
        })
    }

    /// Reads the text again with other parameters, `name=value` each; `line` is the size of a line in bytes.
    ///
    /// # Errors
    /// A parameter is invalid, or the text is invalid with these parameters.
    pub fn sized(self, sizes: &[String]) -> Result<Source, String> {
        if sizes.is_empty() {
            return Ok(self);
        }
        let mut parsed: Vec<(String, u16)> = Vec::new();
        for size in sizes {
            let Some((name, value)) = size.split_once('=') else {
                return Err(format!("`{size}` has no `=`: write it like `homes=8`"));
            };
            let (name, value) = (name.trim(), value.trim());
            let max_value = u16::MAX;
            let value = value
                .parse()
                .map_err(|_| format!("`{size}`: `{value}` is no number from 0 to {max_value}"))?;
            if parsed.iter().any(|(given_name, _)| given_name == name) {
                return Err(format!("`{size}`: `{name}` is given already"));
            }
            parsed.push((name.to_string(), value));
        }
        let path = self.path.display().to_string();
        match text::parse_sized(&self.text, &parsed) {
            Ok(protocol) => Ok(Source { protocol, ..self }),
            Err(text::ParameterError::Size(reason)) => Err(reason),
            Err(text::ParameterError::Text(errors)) => {
                let errors = errors
                    .iter()
                    .map(|error| error.render(&path, &self.text, false));
                let errors: Vec<String> = errors.collect();
                Err(format!(
                    "with these sizes the specification is invalid\n{}",
                    errors.join("\n\n")
                ))
            }
        }
    }

    /// Reads and parses a file. `colour` is true for error messages with terminal colours.
    ///
    /// # Errors
    /// The file cannot be read, or its text is invalid.
    pub fn read(path: &Path, colour: bool) -> Result<Source, Failure> {
        Source::of(path, files::read(path)?, colour)
    }

    /// Parses the contents of a file. `colour` is true for error messages with terminal colours.
    ///
    /// # Errors
    /// The text is invalid; the message lists all errors.
    pub fn of(path: &Path, text: String, colour: bool) -> Result<Source, Failure> {
        Source::parse(path.to_path_buf(), text.clone())
            .map_err(|errors| diagnostics_failure(path, &text, &errors, colour))
    }

    /// Converts an error to a failure, with a position in the text if the error has one.
    pub fn failure(&self, error: InputError, colour: bool) -> Failure {
        match error {
            InputError::Refused(refusal) => self.refusal(&refusal, colour),
            error => error.failure(&self.path),
        }
    }

    /// Returns the protocol with the parameters of its systems: once for consecutive systems with equal parameters.
    pub(crate) fn by_sizes(&self) -> Vec<Source> {
        let systems = self.protocol.systems.chunk_by(|a, b| a.sizes == b.sizes);
        let resized = systems.map(|systems| {
            let protocol = systems[0]
                .resized_protocol
                .as_deref()
                .unwrap_or(&self.protocol);
            let mut source = Source {
                protocol: protocol.clone(),
                ..self.clone()
            };
            source.protocol.systems = systems.to_vec();
            source
        });
        resized.collect()
    }

    /// Returns the protocol with the parameters of one of its systems.
    ///
    /// # Errors
    /// No system has this name.
    pub fn with_sizes_of(self, name: &str) -> Result<Source, Failure> {
        let mut systems = self.protocol.systems.iter();
        let Some(system) = systems.find(|system| system.name == name) else {
            let names = self.protocol.systems.iter();
            let help = suggestion(name, "system", names.map(|system| system.name.as_str()));
            let message = format!("error: no system is named `{name}`\n  help: {help}");
            return Err(Failure::new(ExitStatus::BadInput, message));
        };
        let resized = system.resized_protocol.as_deref().cloned();
        Ok(Source {
            protocol: resized.unwrap_or_else(|| self.protocol.clone()),
            ..self
        })
    }

    /// Formats an error at a position of the text, for a terminal; with `colour`, in terminal colours. `help` is
    /// the remedy.
    pub fn error(&self, title: &str, span: Span, help: Option<&str>, colour: bool) -> String {
        let path = self.path.display().to_string();
        error_at(Excerpt::whole(&path, &self.text), title, span, help, colour)
    }

    /// Failure: no home can be constructed from this form of protocol.
    pub(crate) fn refusal(&self, refusal: &Refusal, colour: bool) -> Failure {
        let error = self.error(&refusal_text(refusal), refusal.span, None, colour);
        Failure::new(ExitStatus::BadInput, error)
    }

    /// Failure without a home to run: none can be constructed from this form of protocol, or the construction finds
    /// a fault, which charts of the form `charts` show.
    pub fn no_home(&self, error: &ConstructionError, charts: &Text, colour: bool) -> Failure {
        match error {
            ConstructionError::Refused(refusal) => self.refusal(refusal, colour),
            ConstructionError::Fault(fault) => {
                Failure::new(ExitStatus::Violated, self.fault(fault, charts, colour))
            }
        }
    }

    /// JSON diagnostic of a refused construction.
    pub fn refusal_json(&self, refusal: &Refusal) -> Value {
        let title = refusal_text(refusal);
        let rendered = self.error(&title, refusal.span, None, false);
        diagnostic_json(
            "no-home",
            &title,
            &self.text,
            refusal.span,
            "",
            &[],
            &rendered,
        )
    }

    /// JSON of a fault of the construction.
    pub fn fault_json(&self, fault: &Fault) -> Value {
        let (line, column) = line_column(&self.text, fault.span.start);
        json!({
            "kind": fault.kind.name(),
            "message": fault.text,
            "remedy": fault.remedy,
            "line": line,
            "column": column,
            "sequences": fault.explanations.iter().map(cohkit_chart::json).collect::<Vec<_>>(),
        })
    }

    /// Report of a fault of the protocol: its position in the text, and charts of the sequences that show it.
    /// `charts` is the form of the charts, and `colour` selects terminal colours.
    pub fn fault(&self, fault: &Fault, charts: &Text, colour: bool) -> String {
        let title = format!("{}: {}", fault.kind.name(), fault.text);
        let mut report = self.error(&title, fault.span, fault.remedy.as_deref(), colour);
        let has_several = fault.explanations.len() > 1;
        for (index, explanation) in fault.explanations.iter().enumerate() {
            report += &if has_several {
                format!("\n\nexplanation {}:\n\n", index + 1)
            } else {
                "\n\n".to_string()
            };
            report += cohkit_chart::text(explanation, charts).trim_end();
        }
        report
    }
}

/// Errors of a text, formatted for a terminal.
pub fn diagnostics_failure(
    path: &Path,
    text: &str,
    errors: &[Diagnostic],
    colour: bool,
) -> Failure {
    let file = path.display().to_string();
    let errors = errors.iter().map(|error| error.render(&file, text, colour));
    Failure::new(
        ExitStatus::BadInput,
        errors.collect::<Vec<_>>().join("\n\n"),
    )
}

/// Formats an error at a position of an excerpt, for a terminal. `span` is in bytes of the excerpt's text, and
/// `help` the remedy.
pub fn error_at(
    excerpt: Excerpt,
    title: &str,
    span: Span,
    help: Option<&str>,
    colour: bool,
) -> String {
    let help = help.map(|help| (None, help.to_string()));
    let report = Report {
        severity: Severity::Error,
        code: "",
        message: title,
        span,
        label: "",
        notes: help.as_slice(),
    };
    report.render(excerpt, colour)
}

/// Message for a form of protocol from which no home can be constructed.
fn refusal_text(refusal: &Refusal) -> String {
    format!("no home can be constructed: {}", refusal.obstacle)
}

/// Errors of a text as a JSON list; `file` is the name to show.
pub fn diagnostics_json(diagnostics: &[Diagnostic], file: &str, text: &str) -> Value {
    let entry = |diagnostic: &Diagnostic| {
        diagnostic_json(
            diagnostic.code.name(),
            &diagnostic.message,
            text,
            diagnostic.span,
            &diagnostic.label,
            &diagnostic.notes,
            &diagnostic.render(file, text, false),
        )
    };
    diagnostics.iter().map(entry).collect()
}

/// Errors of a platform file as a JSON list of the same form as [`diagnostics_json`].
pub fn platform_errors_json(errors: &[PlatformError], file: &str, text: &str) -> Value {
    let entry = |error: &PlatformError| {
        let message = &error.message;
        let span = Span::from(error.span.clone());
        let rendered = error_at(Excerpt::whole(file, text), message, span, None, false);
        diagnostic_json("platform", message, text, span, "", &[], &rendered)
    };
    errors.iter().map(entry).collect()
}

/// JSON object of one error. `text` is the file that `span` refers to, `label` the message at the span, and `notes`
/// are further messages, with positions if they have any. `rendered` is the error as the command prints it.
pub(crate) fn diagnostic_json(
    code: &str,
    message: &str,
    text: &str,
    span: Span,
    label: &str,
    notes: &[(Option<Span>, String)],
    rendered: &str,
) -> Value {
    let (line, column) = line_column(text, span.start);
    let (end_line, end_column) = line_column(text, span.end);
    let notes: Vec<Value> = notes
        .iter()
        .map(|(position, message)| {
            let position = position.map(|position| line_column(text, position.start));
            let (line, column) = position.unzip();
            json!({ "message": message, "line": line, "column": column })
        })
        .collect();
    json!({
        "code": code,
        "message": message,
        "line": line,
        "column": column,
        "end_line": end_line,
        "end_column": end_column,
        "label": label,
        "notes": notes,
        "rendered": rendered,
    })
}
