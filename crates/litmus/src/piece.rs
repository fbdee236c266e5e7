//! Slices of a test's source, and diagnostics for them.

use cohkit_diagnostics::{Excerpt, Report, Severity, Span};

/// Error in a test, with its location.
#[derive(Clone, PartialEq, Debug)]
pub struct Diagnostic {
    /// Description of the error, in one sentence.
    pub message: String,
    /// Location in the source, in bytes.
    pub span: Span,
    /// Text beside the caret that marks the location; may be empty.
    pub label: String,
    /// Suggestions.
    pub help: Vec<String>,
}

impl Diagnostic {
    /// Formats the diagnostic for a terminal: message, `file:line:column`, the line with a caret, and help. `file` is
    /// the name to show and `text` the source of the test. `colour` adds terminal escape sequences.
    pub fn render(&self, file: &str, text: &str, colour: bool) -> String {
        let notes: Vec<(Option<Span>, String)> =
            self.help.iter().map(|help| (None, help.clone())).collect();
        let report = Report {
            severity: Severity::Error,
            code: "",
            message: &self.message,
            span: self.span,
            label: &self.label,
            notes: &notes,
        };
        report.render(Excerpt::whole(file, text), colour)
    }
}

/// Result of reading a part of a test.
pub(crate) type Result<T> = std::result::Result<T, Diagnostic>;

/// Returns an error at a slice of the source.
pub(crate) fn error_at<T>(piece: Piece, message: impl Into<String>) -> Result<T> {
    Err(Diagnostic {
        message: message.into(),
        span: piece.span(),
        label: String::new(),
        help: Vec::new(),
    })
}

/// Returns an error at a slice of the source, with a suggestion.
pub(crate) fn error_with_help<T>(
    piece: Piece,
    message: impl Into<String>,
    help: impl Into<String>,
) -> Result<T> {
    error_at(piece, message).map_err(|mut error: Diagnostic| {
        error.help.push(help.into());
        error
    })
}

/// Slice of the source, with its byte offset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece<'t> {
    /// The slice.
    pub text: &'t str,
    /// Byte offset of the slice in the source.
    pub start: usize,
}

impl<'t> Piece<'t> {
    /// Returns the position in the source.
    pub fn span(&self) -> Span {
        Span {
            start: self.start as u32,
            end: (self.start + self.text.len()) as u32,
        }
    }

    /// Returns the slice without blanks at both ends.
    pub fn trim(self) -> Piece<'t> {
        let text = self.text.trim_start();
        let start = self.start + (self.text.len() - text.len());
        Piece {
            text: text.trim_end(),
            start,
        }
    }

    /// Returns the part from a byte offset on. The offset is relative to this slice.
    pub fn from(self, offset: usize) -> Piece<'t> {
        Piece {
            text: &self.text[offset..],
            start: self.start + offset,
        }
    }

    /// Returns the part before a byte offset. The offset is relative to this slice.
    pub fn until(self, offset: usize) -> Piece<'t> {
        Piece {
            text: &self.text[..offset],
            start: self.start,
        }
    }

    /// Returns the trimmed parts between separators.
    pub fn split(self, separator: char) -> Vec<Piece<'t>> {
        let mut parts = Vec::new();
        let mut rest = self;
        while let Some(offset) = rest.text.find(separator) {
            parts.push(rest.until(offset).trim());
            rest = rest.from(offset + separator.len_utf8());
        }
        parts.push(rest.trim());
        parts
    }

    /// Returns the trimmed parts before and after the first separator, if there is one.
    pub fn split_once(self, separator: &str) -> Option<(Piece<'t>, Piece<'t>)> {
        let offset = self.text.find(separator)?;
        let after = self.from(offset + separator.len());
        Some((self.until(offset).trim(), after.trim()))
    }
}

/// Replaces comments by blanks, which keeps byte offsets. In C, `(*` within a thread's body and `(*` without an end are
/// not comments: `(*x` may be an argument.
pub(crate) fn without_comments(text: &str) -> Result<String> {
    let in_c = text.starts_with("C ");
    let mut blanked = String::with_capacity(text.len());
    let mut rest = text;
    let mut depth = Depth::FirstValues;
    while let Some(offset) = rest.find("(*") {
        let before = &rest[..offset];
        depth = depth.after(before);
        if in_c && matches!(depth, Depth::Code(1..)) {
            blanked.push_str(&rest[..offset + 2]);
            rest = &rest[offset + 2..];
            continue;
        }
        let Some(length) = rest[offset..].find("*)") else {
            if in_c {
                break;
            }
            let start = text.len() - rest.len() + offset;
            let text = &text[start..start + 2];
            return error_at(Piece { text, start }, "this comment has no end");
        };
        blanked.push_str(before);
        let comment = &rest[offset..offset + length + 2];
        blanked.extend(comment.bytes().map(|b| if b == b'\n' { '\n' } else { ' ' }));
        rest = &rest[offset + length + 2..];
    }
    blanked.push_str(rest);
    Ok(blanked)
}

/// Position in a C test, relative to its blocks.
#[derive(Clone, Copy)]
enum Depth {
    /// Before the end of the block of initial values.
    FirstValues,
    /// After that block, within this number of nested blocks.
    Code(i32),
}

impl Depth {
    /// Returns the position after a text that starts here.
    fn after(self, text: &str) -> Depth {
        let (mut depth, code) = match (self, text.split_once('}')) {
            (Depth::Code(depth), _) => (depth, text),
            (Depth::FirstValues, Some((_, code))) => (0, code),
            (Depth::FirstValues, None) => return Depth::FirstValues,
        };
        for c in code.chars() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
        }
        Depth::Code(depth)
    }
}

/// Parses a decimal or, with `0x`, hexadecimal number.
pub(crate) fn number(piece: Piece) -> Result<i64> {
    let text = piece.text;
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.or_else(|_| error_at(piece, format!("`{text}` is no number")))
}
