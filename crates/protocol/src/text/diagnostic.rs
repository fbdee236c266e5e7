//! Diagnostics: an error of a protocol file, its place, and a remedy.

use super::{Mention, MAX_FILE_BYTES};
use cohkit_diagnostics::{Excerpt, Report, Severity, Span};
use rustc_hash::FxHashSet;

macro_rules! codes {
    ($($(#[$doc:meta])* $code:ident $name:literal,)*) => {
        /// Kind of error that a diagnostic reports.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Code { $($(#[$doc])* $code,)* }

        impl Code {
            /// All codes, in declaration order.
            pub const ALL: &'static [Code] = &[$(Code::$code,)*];
            /// Name shown with the error, such as `unknown-name`.
            pub fn name(self) -> &'static str {
                match self { $(Code::$code => $name,)* }
            }
        }
    };
}

codes! {
    /// The file is empty, or has comments only.
    Empty "empty",
    /// The file is longer than [`MAX_FILE_BYTES`].
    TooLong "too-long",
    /// The file contains characters that are not text.
    NotText "not-text",
    /// A character that the language does not use.
    Character "character",
    /// A quoted title does not end on its line.
    UnclosedTitle "unclosed-title",
    /// A name of more than 64 characters.
    NameTooLong "name-too-long",
    /// The input does not match the grammar.
    Syntax "syntax",
    /// A block whose closing brace is missing.
    UnclosedBlock "unclosed-block",
    /// An expression with more than the maximum number of operators and operands.
    Nesting "nesting",
    /// A word of the language where a new name is needed.
    ReservedName "reserved-name",
    /// More states, messages, rules, ... than the tables can number.
    TooMany "too-many",
    /// A number outside its range.
    OutOfRange "out-of-range",
    /// A required block is missing.
    MissingBlock "missing-block",
    /// A block or statement that may occur once occurs twice.
    Duplicate "duplicate",
    /// A name is declared twice.
    DuplicateName "duplicate-name",
    /// A name that is not declared.
    UnknownName "unknown-name",
    /// A name with two possible meanings.
    AmbiguousName "ambiguous-name",
    /// A value of a different type than required.
    Type "type",
    /// A field of a message is missing, given twice, or unknown.
    Fields "fields",
    /// A message goes against the direction of its channel.
    Direction "direction",
    /// A message that no agent sends.
    NeverSent "never-sent",
    /// A message for which its receiver has no row.
    NeverReceived "never-received",
    /// A state declares `waits M` but has no row for M.
    WaitsInVain "waits-in-vain",
    /// An access is pending in a state that declares no `waits`.
    UnsaidWait "unsaid-wait",
    /// An access that starts and is never performed.
    NeverPerformed "never-performed",
    /// `holds` in a state that holds the line in any case.
    RedundantHolds "redundant-holds",
    /// A row that is never reached, because an earlier row always takes the event.
    UnreachableRow "unreachable-row",
    /// A statement, action or event in the wrong place.
    Misplaced "misplaced",
    /// The next state of a row contradicts the row's actions.
    Next "next",
    /// A message does not carry the data that its use needs.
    Carries "carries",
    /// A channel that a policy cannot use.
    PolicyChannel "policy-channel",
    /// A message of a different class than its use in the policy needs.
    WrongClass "wrong-class",
    /// A request that the policy does not serve.
    Unserved "unserved",
    /// A request policy that is incomplete or in the wrong order.
    Grants "grants",
    /// A name that does not stand for a permission: a transient state, or a state whose permission depends on
    /// variables.
    NotAPermission "not-a-right",
    /// A goal that no forward can achieve.
    Unreached "unreached",
    /// A file named by `use` that cannot be loaded.
    Use "use",
    /// `local unlock` without a lock, or the reverse.
    Unlock "unlock",
}

/// One error of a protocol file.
#[derive(Clone, PartialEq, Debug)]
pub struct Diagnostic {
    /// Kind of the error.
    pub code: Code,
    /// Description of the error, in one sentence.
    pub message: String,
    /// Span of the error.
    pub span: Span,
    /// Text beside the caret; may be empty.
    pub label: String,
    /// Notes: an explanation of another span, or help without a span.
    pub notes: Vec<(Option<Span>, String)>,
}

impl Diagnostic {
    /// Maximum number of diagnostics for one file.
    pub const MAX_COUNT: usize = 50;

    /// Creates a diagnostic without label and notes. `message` says in one sentence what is wrong.
    pub(super) fn new(code: Code, span: Span, message: impl Into<String>) -> Self {
        Diagnostic {
            code,
            message: message.into(),
            span,
            label: String::new(),
            notes: Vec::new(),
        }
    }
    /// Sets the text beside the caret.
    pub(super) fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }
    /// Adds advice that refers to no other span.
    pub(super) fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push((None, note.into()));
        self
    }
    /// Adds a reference to another span.
    pub(super) fn note_at(mut self, span: Span, note: impl Into<String>) -> Self {
        self.notes.push((Some(span), note.into()));
        self
    }

    /// Renders the diagnostic for a terminal: message, `file:line:column`, the source line with a caret, and help.
    ///
    /// `file` is the name to show and `text` the file's contents.
    pub fn render(&self, file: &str, text: &str, colour: bool) -> String {
        let report = Report {
            severity: Severity::Error,
            code: self.code.name(),
            message: &self.message,
            span: self.span,
            label: &self.label,
            notes: &self.notes,
        };
        report.render(Excerpt::whole(file, text), colour)
    }
}

/// Collector of diagnostics and mentions. It keeps one diagnostic per kind and span, up to a maximum.
#[derive(Default)]
pub(super) struct Sink {
    /// Names that refer to a declaration, and the declarations themselves, in the order in which they were
    /// resolved.
    pub(super) mentions: Vec<Mention>,
    /// Diagnostics to show, in the order of their reports.
    list: Vec<Diagnostic>,
    /// Kind and span of every reported diagnostic, shown or not.
    reported: FxHashSet<(Code, Span)>,
    /// Number of diagnostics beyond the maximum, which are counted only.
    suppressed: usize,
}

impl Sink {
    /// Adds a diagnostic. One of the same kind and span as an earlier one is dropped.
    pub(super) fn push(&mut self, diagnostic: Diagnostic) {
        if !self.reported.insert((diagnostic.code, diagnostic.span)) {
            return;
        }
        if self.list.len() < Diagnostic::MAX_COUNT {
            self.list.push(diagnostic);
        } else {
            self.suppressed += 1;
        }
    }
    /// Returns true if a diagnostic would be shown, not only counted. Otherwise its text need not be composed.
    pub(super) fn would_show(&self, code: Code, span: Span) -> bool {
        self.list.len() < Diagnostic::MAX_COUNT && !self.reported.contains(&(code, span))
    }
    /// Number of different diagnostics, including those that are not shown.
    pub(super) fn count(&self) -> usize {
        self.list.len() + self.suppressed
    }
    /// Returns all diagnostics in the order of their spans.
    pub(super) fn finish(mut self) -> Vec<Diagnostic> {
        self.list
            .sort_by_key(|diagnostic| (diagnostic.span, diagnostic.code));
        if let (Some(last), true) = (self.list.last_mut(), self.suppressed > 0) {
            last.notes.push((
                None,
                format!("{} more errors are not shown", self.suppressed),
            ));
        }
        self.list
    }
}

/// Reports input that is too long or not text, with one diagnostic. Returns true if the input can be parsed.
pub(super) fn check_is_text(text: &str, sink: &mut Sink) -> bool {
    let span_between = |start: usize, end: usize| Span {
        start: start as u32,
        end: end as u32,
    };
    let is_not_text = |character: char| {
        (character.is_control() && !"\n\t\r\u{c}".contains(character)) || character == '\u{fffd}'
    };
    // Most files are plain ASCII, and bytes are faster to test than characters.
    let is_plain = |byte: &u8| (b' '..0x7f).contains(byte) || *byte == b'\n';
    if text.len() > MAX_FILE_BYTES {
        sink.push(
            Diagnostic::new(
                Code::TooLong,
                span_between(0, 0),
                format!("the file has {} bytes", text.len()),
            )
            .note(format!(
                "a protocol file has at most {MAX_FILE_BYTES} bytes; is this the right file?"
            )),
        );
    } else if text.as_bytes().iter().all(is_plain) {
        return true;
    } else if let Some((position, character)) = text
        .char_indices()
        .find(|&(_, character)| is_not_text(character))
    {
        sink.push(
            Diagnostic::new(
                Code::NotText,
                span_between(position, position + character.len_utf8()),
                "this is not a text file",
            )
            .label(format!("the character U+{:04X}", character as u32))
            .note("a protocol file is UTF-8 without control characters; is this the right file?"),
        );
    }
    sink.count() == 0
}
