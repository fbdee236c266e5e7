//! Errors and warnings about places in a text: source spans, excerpts with carets, and the names that exist.
//!
//! A front end marks each token with its [`Span`]. A [`Report`] renders a message for a terminal: level, message,
//! `file:line:column`, the lines of the spans with carets and labels, and advice. [`suggestion`] is the advice for an
//! unknown name. [`line_column`] gives the position of a byte for formats other than text.
//!
//! The crate does not know any language: `protocol`, `murphi` and `litmus` define their own errors and make reports of
//! them. It reads no files either.
//!
//! ```
//! use cohkit_diagnostics::{line_column, suggestion, Excerpt, Report, Severity, Span};
//!
//! let text = "states { I; V }\nsend GteS";
//! let span = Span { start: 21, end: 25 };
//! assert_eq!((span.text(text), line_column(text, span.start)), ("GteS", (2, 6)));
//! let report = Report {
//!     severity: Severity::Error,
//!     code: "unknown-name",
//!     message: "unknown message `GteS`",
//!     span,
//!     label: "",
//!     notes: &[(None, suggestion("GteS", "message", ["GetS", "PutM"].into_iter()))],
//! };
//! let excerpt = Excerpt { file: "vi.coh", text, first_line: 1 };
//! assert_eq!(report.render(excerpt, false), "\
//! error[unknown-name]: unknown message `GteS`
//!  --> vi.coh:2:6
//!   |
//! 2 | send GteS
//!   |      ^^^^
//!   |
//!   = help: did you mean `GetS`? the messages are `GetS`, `PutM`");
//! ```

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use cohkit_base::words::did_you_mean;
use std::borrow::Cow;
use std::ops::Range;

/// A range of bytes in a text, `start .. end`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// Text of the span. Panics if the span is outside `text`, or cuts a character in two.
    pub fn text(self, text: &str) -> &str {
        &text[self.start as usize..self.end as usize]
    }

    /// Returns the span from the start of this one to the end of `last`; empty if `last` ends before this one starts.
    pub fn to(self, last: Span) -> Span {
        Span {
            start: self.start,
            end: last.end.max(self.start),
        }
    }
}

impl From<Range<usize>> for Span {
    fn from(range: Range<usize>) -> Span {
        Span {
            start: range.start as u32,
            end: range.end as u32,
        }
    }
}

/// Severity of a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Severity {
    /// The text cannot be used.
    Error,
    /// The text can be used in spite of it.
    Warning,
}

/// A message about a span of a text.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    /// Severity.
    pub severity: Severity,
    /// Kind of the error, shown in brackets after the level; empty to show none.
    pub code: &'a str,
    /// Description, in one sentence.
    pub message: &'a str,
    /// Span of the error.
    pub span: Span,
    /// Text beside the caret; may be empty.
    pub label: &'a str,
    /// Notes: with a span, an explanation shown there; without one, advice below the excerpt.
    pub notes: &'a [(Option<Span>, String)],
}

/// Text that a report quotes.
#[derive(Clone, Copy, Debug)]
pub struct Excerpt<'a> {
    /// Name of the file, as shown in front of `line:column`.
    pub file: &'a str,
    /// Contents of the file, or some of its lines. Spans count from the first of these.
    pub text: &'a str,
    /// Number of the first line of `text`; 1 for a whole file.
    pub first_line: usize,
}

impl<'a> Excerpt<'a> {
    /// Excerpt of a whole file.
    pub fn whole(file: &'a str, text: &'a str) -> Excerpt<'a> {
        Excerpt {
            file,
            text,
            first_line: 1,
        }
    }
}

impl Report<'_> {
    /// Renders the report for a terminal, with ANSI colours if `colour`. Spans outside the excerpt are cut off at its
    /// end.
    pub fn render(&self, excerpt: Excerpt, colour: bool) -> String {
        let text = excerpt.text;
        // A span that does not fit (a different file was passed) is cut off rather than trusted.
        let mark = |kind: AnnotationKind, span: Span, label: &str| {
            let start = boundary(text, span.start);
            let annotation = kind.span(start..boundary(text, span.end).max(start));
            match label {
                "" => annotation,
                label => annotation.label(label.to_string()),
            }
        };
        let snippet = Snippet::source(text)
            .path(excerpt.file)
            .line_start(excerpt.first_line)
            .annotation(mark(AnnotationKind::Primary, self.span, self.label))
            .annotations(self.notes.iter().filter_map(|(span, note)| {
                span.map(|span| mark(AnnotationKind::Context, span, note))
            }));
        let advice = self.notes.iter().filter(|(span, _)| span.is_none());
        let advice = advice.map(|(_, note)| Level::HELP.message(note.as_str()));
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let title = match self.code {
            "" => level.primary_title(self.message),
            code => level.primary_title(self.message).id(code),
        };
        let renderer = match colour {
            true => Renderer::styled(),
            false => Renderer::plain(),
        };
        renderer
            .render(&[title.element(snippet).elements(advice)])
            .to_string()
    }
}

/// Line and column, both from 1, of a byte in a text. Columns count characters. An offset past the end is that of the
/// end.
pub fn line_column(text: &str, offset: u32) -> (u32, u32) {
    let preceding = &text[..boundary(text, offset)];
    let line_start = preceding.rfind('\n').map_or(0, |newline| newline + 1);
    let line = preceding.bytes().filter(|&byte| byte == b'\n').count() + 1;
    (
        line as u32,
        preceding[line_start..].chars().count() as u32 + 1,
    )
}

/// Returns the last character boundary at or before a byte offset.
fn boundary(text: &str, offset: u32) -> usize {
    let mut position = text.len().min(offset as usize);
    while !text.is_char_boundary(position) {
        position -= 1;
    }
    position
}

/// ``did you mean `X`? `` if some name is similar, and the names that exist, for a name that does not. `kind` is the
/// singular of these names, such as `message`.
pub fn suggestion<'a>(
    unknown_name: &str,
    kind: &str,
    names: impl Iterator<Item = &'a str> + Clone,
) -> String {
    /// Number of names listed; further names are only counted.
    const MAX_SHOWN: usize = 16;
    let mut help = did_you_mean(unknown_name, names.clone());
    let plural = plural(kind);
    let number = names.clone().count();
    match number {
        0 => help.extend(["there are no ", &plural]),
        1 => help.extend(["the only ", kind, " is "]),
        _ => help.extend(["the ", &plural, " are "]),
    }
    for (index, name) in names.take(MAX_SHOWN).enumerate() {
        help.extend([if index > 0 { ", `" } else { "`" }, name, "`"]);
    }
    if number > MAX_SHOWN {
        help.push_str(&format!(", and {} more", number - MAX_SHOWN));
    }
    help
}

/// Plural of a kind of names.
fn plural(kind: &str) -> Cow<'_, str> {
    match kind {
        "variable or field" => "variables and fields".into(),
        "variable, field or kind of remotes" => "variables, fields and kinds of remotes".into(),
        "kind of remotes" => "kinds of remotes".into(),
        "part of a system" => "parts of a system".into(),
        "access with an order" => "accesses with an order".into(),
        noun => format!("{noun}s").into(),
    }
}
