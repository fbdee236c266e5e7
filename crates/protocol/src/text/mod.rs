//! From protocol text to [`Protocol`], with diagnostics for every error of a file.
//!
//! Three steps: [`lexer`] cuts the text into tokens, [`parser`] builds a tree with spans
//! ([`ast`]), and [`resolve`] checks names and types and yields the [`Protocol`].
//! Each step goes on after an error, so that one run reports all independent errors.
//! What the language says is written in `docs/language.md`, which a test keeps in step.

use crate::protocol::Protocol;

mod ast;
mod diagnostic;
mod lexer;
mod parser;
mod resolve;
#[cfg(test)]
mod tests;

pub use annotate_snippets::Level;
use diagnostic::Sink;
pub use diagnostic::{line_column, report, suggestion, Code, Diagnostic};

/// A range of bytes in the text, `start .. end`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// From the start of this span to the end of another.
    pub fn to(self, last: Span) -> Span {
        Span {
            start: self.start,
            end: last.end.max(self.start),
        }
    }
}

/// The longest text that is read, in bytes.
pub const LONGEST_TEXT: usize = 4 << 20;

/// Reads a protocol text.
///
/// # Errors
///
/// Every error of the text, in the order of their places; at most [`Diagnostic::MOST`],
/// of which the last then says how many more there are.
pub fn parse(text: &str) -> Result<Protocol, Vec<Diagnostic>> {
    let mut sink = Sink::default();
    let protocol = if diagnostic::readable(text, &mut sink) {
        let tokens = lexer::lex(text, &mut sink);
        if let Some(stranger) = parser::stranger(text, &tokens) {
            return Err(vec![stranger]);
        }
        let file = parser::Parser::new(text, &tokens, &mut sink).file();
        resolve::resolve(&file, &mut sink)
    } else {
        None
    };
    match (protocol, sink.finish()) {
        (Some(protocol), diagnostics) if diagnostics.is_empty() => Ok(protocol),
        (_, diagnostics) => Err(diagnostics),
    }
}
