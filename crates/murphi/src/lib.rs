//! Murphi front end: reads Murphi texts as models, and prints models for an independent checker.
//!
//! [`read`] makes a [`Model`] of a text in three steps: the lexer cuts the text into tokens, the parser builds a syntax
//! tree with source positions, and the lowering checks names and types. Each step continues after an error, so that one
//! run reports all errors. [`print()`] is the reverse.
//!
//! The front end accepts every text that either of the language's two checkers accepts. Where these disagree, a
//! [`Dialect`] selects one. Reals, probabilities and functions in C++ are rejected by name; functions that change the
//! state are rejected in guards and properties.
//!
//! The crate does not know how a model is searched, and it knows neither `check`, `protocol` nor files: `cohkit_engine`
//! searches the models, and the caller reads the text.
//!
//! ```
//! use cohkit_engine::{check, Options, Outcome, Property};
//! use cohkit_murphi::{read, Dialect};
//!
//! let text = r#"
//! var count: 0..3;
//! startstate begin count := 0; end;
//! rule "increment" count < 3 ==> begin count := count + 1; end;
//! rule "reset" count = 3 ==> begin count := 0; end;
//! invariant "at most two" count <= 2;
//! "#;
//! let read = read("counter", text, Dialect::Any).expect("the text has no errors");
//! let report = check(&read.model, &Options::default()).expect("the model is sound");
//! let Outcome::Violated { property, trace, .. } = report.outcome else { panic!("no violation") };
//! assert_eq!(property, Property::Invariant("at most two".into()));
//! let rules: Vec<&str> = trace.steps.iter().map(|step| step.rule.as_str()).collect();
//! assert_eq!(rules, ["increment"; 3]); // 0, 1, 2, 3
//! ```

use cohkit_base::deep_stack::run_on_deep_stack;
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

/// Dialect of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Dialect {
    /// Texts that CMurphi or Rumur accepts. Where they disagree, this dialect has its own rules. Numbers that begin
    /// with 0 are decimal, and an undefined variable may be copied. An undefined value of a scalarset or union equals
    /// only itself. A loop from 3 to 1 runs zero times.
    #[default]
    Any,
    /// Texts that CMurphi 5 accepts, with its semantics.
    CMurphi,
    /// Texts that Rumur accepts, with its semantics.
    Rumur,
}

/// Result of reading a text.
#[derive(Clone, Debug)]
pub struct ReadOutput {
    /// The model.
    pub model: Model,
    /// Probable mistakes that do not prevent a model.
    pub warnings: Vec<Diagnostic>,
}

/// Maximum length of a text, in bytes.
pub(crate) const MAX_TEXT_BYTES: usize = 4 << 20;

/// Reads a Murphi text; `name` becomes the model's name.
///
/// # Errors
/// All errors of the text, in the order of their positions; at most [`Diagnostic::MAX_DIAGNOSTICS`]. If there are
/// more, the last one has a note with the number of the others.
pub fn read(name: &str, text: &str, dialect: Dialect) -> Result<ReadOutput, Vec<Diagnostic>> {
    let options = ReadOptions {
        dialect,
        is_strict: dialect == Dialect::Rumur,
    };
    read_with(name, text, options)
}

/// Rules by which a text is read.
#[derive(Clone, Copy)]
struct ReadOptions {
    /// Dialect of the text.
    dialect: Dialect,
    /// True if a read of an undefined value of a scalarset or union is an error of the model.
    is_strict: bool,
}

/// Reads a text like [`read`], by these rules.
fn read_with(name: &str, text: &str, options: ReadOptions) -> Result<ReadOutput, Vec<Diagnostic>> {
    // Most texts are nested so little that any stack suffices.
    let shallow_errors = match read_to_depth(name, text, options, parser::MAX_SHALLOW_DEPTH) {
        Ok(result) => return result,
        Err(TooDeep(errors)) => errors,
    };
    let deep = run_on_deep_stack(|| read_to_depth(name, text, options, parser::MAX_DEPTH));
    match deep {
        Ok(Ok(mut result)) => {
            if let Ok(output) = &mut result {
                output.model.deeply_nested = true;
            }
            result
        }
        Ok(Err(TooDeep(errors))) => Err(errors),
        // Without the memory for a large stack, the smaller limit applies.
        Err(_) => Err(shallow_errors),
    }
}

/// The errors of a text that is nested too deeply.
struct TooDeep(Vec<Diagnostic>);

/// Reads a text that is nested up to `max_depth`.
fn read_to_depth(
    name: &str,
    text: &str,
    options: ReadOptions,
    max_depth: u32,
) -> Result<Result<ReadOutput, Vec<Diagnostic>>, TooDeep> {
    let mut sink = diagnostic::Sink::default();
    let mut model = None;
    if lexer::check_readable(text, &mut sink) {
        let tokens = lexer::lex(text, options.dialect, &mut sink);
        let mut parser = parser::Parser::new(text, &tokens, options.dialect, &mut sink, max_depth);
        let items = parser.parse_file();
        if parser.is_too_deep {
            return Err(TooDeep(sink.finish().0));
        }
        model = Some(lower::lower(name, text, &items, options, &mut sink));
    }
    let has_errors = sink.has_errors();
    let (errors, warnings) = sink.finish();
    Ok(match model {
        Some(model) if !has_errors => Ok(ReadOutput { model, warnings }),
        _ => Err(errors),
    })
}

/// Parses a number; `None` if it does not fit 64 bits.
fn parse_number(digits: &str, dialect: Dialect) -> Option<i64> {
    let hex = digits.strip_prefix("0x").or(digits.strip_prefix("0X"));
    match hex {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None if dialect == Dialect::Rumur && digits.starts_with('0') => {
            i64::from_str_radix(digits, 8).ok()
        }
        None => digits.parse().ok(),
    }
}
