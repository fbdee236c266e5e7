//! Diagnostics: an error or warning, its position, and advice.

use cohkit_diagnostics::{Excerpt, Report, Severity, Span};
use rustc_hash::FxHashSet;

/// One error or warning about a Murphi text.
#[derive(Clone, PartialEq, Debug)]
pub struct Diagnostic {
    /// The problem, in one sentence.
    pub message: String,
    /// Position of the problem in the text, in bytes.
    pub span: Span,
    /// Text beside the caret that marks the position; may be empty.
    pub label: String,
    /// Advice: a note on another position in the text, or a general one without a position.
    pub notes: Vec<(Option<Span>, String)>,
    /// True for a warning, which does not reject the text.
    pub is_warning: bool,
}

impl Diagnostic {
    /// Maximum number of errors reported for one text.
    pub const MAX_DIAGNOSTICS: usize = 50;

    /// Returns the diagnostic for a terminal: message, `file:line:column`, the source line with a caret,
    /// and help. `file` is the name to show and `text` the text that was read. `colour` adds terminal
    /// escape sequences.
    pub fn render(&self, file: &str, text: &str, colour: bool) -> String {
        let report = Report {
            severity: match self.is_warning {
                true => Severity::Warning,
                false => Severity::Error,
            },
            code: "",
            message: &self.message,
            span: self.span,
            label: &self.label,
            notes: &self.notes,
        };
        report.render(Excerpt::whole(file, text), colour)
    }

    /// Sets the text beside the caret.
    pub(super) fn label(&mut self, label: impl Into<String>) -> &mut Self {
        self.label = label.into();
        self
    }
    /// Adds advice.
    pub(super) fn note(&mut self, note: impl Into<String>) -> &mut Self {
        self.notes.push((None, note.into()));
        self
    }
    /// Adds a note on another position.
    pub(super) fn note_at(&mut self, span: Span, note: impl Into<String>) -> &mut Self {
        self.notes.push((Some(span), note.into()));
        self
    }
}

/// Collects diagnostics: at most one per position, and at most [`Diagnostic::MAX_DIAGNOSTICS`].
#[derive(Default)]
pub(super) struct Sink {
    /// Errors in the order of their discovery.
    errors: Vec<Diagnostic>,
    /// Warnings in the order of their discovery.
    warnings: Vec<Diagnostic>,
    /// Positions of all errors, also of omitted ones.
    error_positions: FxHashSet<Span>,
    /// Number of errors beyond [`Diagnostic::MAX_DIAGNOSTICS`].
    omitted: usize,
    /// The last dropped diagnostic, so that callers can still add notes to it.
    last_dropped: Option<Diagnostic>,
}

impl Sink {
    /// Adds an error; only the first one at a position is kept.
    pub fn error(&mut self, span: Span, message: impl Into<String>) -> &mut Diagnostic {
        let error = diagnostic(span, message, false);
        let is_new = self.error_positions.insert(span);
        if !is_new || self.errors.len() >= Diagnostic::MAX_DIAGNOSTICS {
            self.omitted += is_new as usize;
            return self.last_dropped.insert(error);
        }
        self.errors.push(error);
        let last = self.errors.len() - 1;
        &mut self.errors[last]
    }

    /// Adds a warning about a probable mistake.
    pub fn warning(&mut self, span: Span, message: impl Into<String>) -> &mut Diagnostic {
        let warning = diagnostic(span, message, true);
        if self.warnings.len() >= Diagnostic::MAX_DIAGNOSTICS
            || self.warnings.iter().any(|w| w.span == span)
        {
            return self.last_dropped.insert(warning);
        }
        self.warnings.push(warning);
        let last = self.warnings.len() - 1;
        &mut self.warnings[last]
    }

    /// Returns true if an error was reported, so that the text has no valid model.
    pub fn has_errors(&self) -> bool {
        !self.errors.is_empty()
    }

    /// Returns errors and warnings in the order of their positions. The last error has a note with the
    /// number of omitted ones.
    pub fn finish(mut self) -> (Vec<Diagnostic>, Vec<Diagnostic>) {
        self.errors.sort_by_key(|d| d.span);
        self.warnings.sort_by_key(|d| d.span);
        if let (Some(last), true) = (self.errors.last_mut(), self.omitted > 0) {
            last.note(format!("{} more errors are not shown", self.omitted));
        }
        (self.errors, self.warnings)
    }
}

fn diagnostic(span: Span, message: impl Into<String>, is_warning: bool) -> Diagnostic {
    Diagnostic {
        message: message.into(),
        span,
        label: String::new(),
        notes: Vec::new(),
        is_warning,
    }
}
