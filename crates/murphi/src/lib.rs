//! Murphi: texts read as models, and models written out for an independent checker.
//!
//! Four steps: [`lexer`] cuts the text into tokens, [`parser`] builds a tree with places ([`ast`]), [`lower`] checks
//! names and types and makes the [`Model`]; each goes on after an error, so that one run reports all of them.
//! [`print`] is the way back.
//!
//! What either of the two checkers of this language accepts is accepted, and where they disagree a [`Dialect`]
//! can be asked for. Reals, probabilities and functions in C++ are refused by name; functions that change
//! the state are refused in guards and properties.

use cohkit_engine::model::Model;

mod ast;
mod diagnostic;
mod export;
mod lexer;
mod lint;
mod lower;
mod messages;
mod parser;

pub use diagnostic::Diagnostic;
pub use export::{expression, print, rumur_options, Style};
pub use lint::undefined_read;

/// Whose Murphi a text is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Dialect {
    /// What CMurphi or Rumur accepts. Where they disagree: numbers that begin with 0 are decimal, an undefined
    /// variable may be copied, undefined values of scalarsets and unions compare as a value of their own,
    /// and a loop from 3 to 1 runs zero times.
    #[default]
    Any,
    /// What CMurphi 5 accepts, as it means it.
    CMurphi,
    /// What Rumur accepts, as it means it.
    Rumur,
}

/// A text that was read.
#[derive(Clone, Debug)]
pub struct Read {
    /// What it means.
    pub model: Model,
    /// What is probably not meant.
    pub warnings: Vec<Diagnostic>,
}

/// The longest text that is read, in bytes.
pub const LONGEST_TEXT: usize = 4 << 20;

/// Reads a Murphi text; `name` becomes the model's name.
///
/// # Errors
/// Every error of the text, in the order of their places; at most [`Diagnostic::MOST`],
/// of which the last then says how many more there are.
pub fn read(name: &str, text: &str, dialect: Dialect) -> Result<Read, Vec<Diagnostic>> {
    read_as(name, text, dialect, dialect == Dialect::Rumur)
}

/// The same; `strict` says whether it is an error of the model to read an undefined value of a scalarset or union.
fn read_as(
    name: &str,
    text: &str,
    dialect: Dialect,
    strict: bool,
) -> Result<Read, Vec<Diagnostic>> {
    let mut sink = diagnostic::Sink::default();
    let mut model = None;
    if lexer::readable(text, &mut sink) {
        let tokens = lexer::lex(text, dialect, &mut sink);
        let items = parser::Parser::new(text, &tokens, dialect, &mut sink).file();
        model = Some(lower::lower(
            name,
            text,
            &items,
            (dialect, strict),
            &mut sink,
        ));
    }
    let failed = sink.failed();
    let (errors, warnings) = sink.finish();
    match model {
        Some(model) if !failed => Ok(Read { model, warnings }),
        _ => Err(errors),
    }
}

/// What a number says; nothing if it is far too large.
fn number(words: &str, dialect: Dialect) -> Option<i64> {
    let hex = words.strip_prefix("0x").or(words.strip_prefix("0X"));
    match hex {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None if dialect == Dialect::Rumur && words.starts_with('0') => {
            i64::from_str_radix(words, 8).ok()
        }
        None => words.parse().ok(),
    }
}
