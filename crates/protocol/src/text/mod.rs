//! Front end: from protocol files to [`Protocol`], with diagnostics for every error of a file.
//!
//! Three steps: [`lexer`] splits the file into tokens, [`parser`] builds a tree with spans ([`ast`]), and [`resolve`]
//! checks names and types and returns the [`Protocol`]. Each step continues after an error, so that one run reports all
//! independent errors. `docs/language.md` defines the language; a test keeps it up to date.

use crate::composition::Composition;
use crate::protocol::{Protocol, System};
use cohkit_base::words::did_you_mean;
use cohkit_diagnostics::Span;
use std::sync::Arc;

mod aliases;
mod ast;
mod diagnostic;
mod editor_completion;
mod format;
mod lexer;
mod parser;
mod resolve;
#[cfg(test)]
mod tests;

use diagnostic::Sink;
pub use diagnostic::{Code, Diagnostic};
pub use editor_completion::{complete_at, EditorCompletion};
pub use format::format;

/// Maximum length of a file, in bytes.
pub const MAX_FILE_BYTES: usize = 4 << 20;

/// Parses a protocol file.
///
/// # Errors
///
/// All errors of the file, in the order of their spans; at most [`Diagnostic::MAX_COUNT`], of which the last one states
/// how many more there are.
pub fn parse(text: &str) -> Result<Protocol, Vec<Diagnostic>> {
    let analysis = analyse(text);
    analysis.protocol.ok_or(analysis.diagnostics)
}

/// Parses a protocol file with some sizes overridden; the size `line` is that of a line in bytes. Systems are left out,
/// because they state for which sizes they hold.
///
/// # Errors
///
/// As [`parse`]; or a sentence if the file has no size of a given name, or a value is out of range.
pub fn parse_sized(text: &str, sizes: &[(String, u16)]) -> Result<Protocol, ParameterError> {
    let mut sink = Sink::default();
    if !diagnostic::check_is_text(text, &mut sink) {
        return Err(ParameterError::Text(sink.finish()));
    }
    let tokens = lexer::lex(text, &mut sink);
    if let Some(unrecognised_input) = parser::unrecognised_input(text, &tokens) {
        return Err(ParameterError::Text(vec![unrecognised_input]));
    }
    let mut parser = parser::Parser::with_sizes(text, &tokens, sizes, &mut sink);
    parser.max_homes = MAX_SIMULATED_HOMES.into();
    parser.max_elements = MAX_SIMULATED_HOMES.into();
    let mut file = parser.file();
    let size_names = file.sizes.iter().map(|name| name.text);
    let size_names: Vec<&str> = size_names.chain([LINE]).collect();
    if let Some((name, _)) = sizes
        .iter()
        .find(|(name, _)| !size_names.contains(&name.as_str()))
    {
        let near = did_you_mean(name, size_names.iter().copied());
        let size_names = size_names.join(", ");
        let reason = format!("the file has no size `{name}`; {near}it has {size_names}");
        return Err(ParameterError::Size(reason));
    }
    let homes = sizes.iter().find(|(name, _)| name == parser::HOMES);
    if let Some((_, homes)) = homes.filter(|(_, homes)| !(1..=MAX_SIMULATED_HOMES).contains(homes))
    {
        let reason = format!("homes must be 1 to {MAX_SIMULATED_HOMES}, not {homes}");
        return Err(ParameterError::Size(reason));
    }
    if let Some((_, bytes)) = sizes.iter().find(|(name, _)| name == LINE) {
        let lines = file.items.iter_mut().filter_map(|item| match item {
            ast::Item::Line(number) => Some(number),
            _ => None,
        });
        lines.for_each(|number| number.value = (*bytes).into());
    }
    (file.items).retain(|item| !matches!(item, ast::Item::System(..)));
    let protocol = resolve::resolve(&file, &mut sink);
    let diagnostics = sink.finish();
    match protocol.filter(|_| diagnostics.is_empty()) {
        Some(protocol) => Ok(protocol),
        None => Err(ParameterError::Text(diagnostics)),
    }
}

/// Name of the line size, in bytes, in the overrides of [`parse_sized`].
pub const LINE: &str = "line";

/// Maximum number of homes of a protocol that is not checked.
const MAX_SIMULATED_HOMES: u16 = 512;

/// Reason why a file cannot be parsed with overridden sizes.
#[derive(Clone, Debug)]
pub enum ParameterError {
    /// Errors of the file itself, or with the overridden sizes.
    Text(Vec<Diagnostic>),
    /// Error of the overrides, in one sentence.
    Size(String),
}

/// Returns true if a file composes others and must be parsed by [`compose`].
pub fn composes(text: &str) -> bool {
    let is_use = |line: &str| line.trim_start().starts_with("use ");
    text.split(['\n', ';']).any(is_use)
}

/// Title of a protocol or a composition; empty if it has none.
pub fn title(text: &str) -> String {
    let mut sink = Sink::default();
    let tokens = lexer::lex(text, &mut sink);
    let file = parser::Parser::new(text, &tokens, &mut sink).file();
    file.header
        .map_or_else(String::new, |(_, title)| title.to_string())
}

/// Parses a file that composes others. `load` returns the protocol of a file, given its name, or the reason why it
/// cannot.
///
/// # Errors
///
/// As [`parse`].
pub fn compose(
    text: &str,
    load: &mut dyn FnMut(&str) -> Result<Protocol, String>,
) -> Result<Composition, Vec<Diagnostic>> {
    let (composition, analysis) = analyse_composing(text, load);
    composition.ok_or(analysis.diagnostics)
}

/// Parses a file that composes others, as [`compose`] does, and analyses one with errors as far as possible. The
/// analysis has no protocol of its own.
pub fn analyse_composing(
    text: &str,
    load: &mut dyn FnMut(&str) -> Result<Protocol, String>,
) -> (Option<Composition>, Analysis) {
    let mut sink = Sink::default();
    let mut analysis = Analysis::default();
    let mut composition = None;
    if diagnostic::check_is_text(text, &mut sink) {
        let tokens = lexer::lex(text, &mut sink);
        let file = parser::Parser::new(text, &tokens, &mut sink).file();
        composition = resolve::composition::compose(&file, load, &mut sink);
        analysis.uses = uses(&file);
        analysis.blocks = file.blocks;
    }
    analysis.absorb(sink);
    let valid = composition.filter(|_| analysis.diagnostics.is_empty());
    (valid, analysis)
}

/// Files that a composition uses, with the spans of their names.
fn uses(file: &ast::File) -> Vec<(Span, String)> {
    let uses = file.items.iter().filter_map(|item| match item {
        ast::Item::Use(used) => Some((used.file.span, used.file.text.to_string())),
        _ => None,
    });
    uses.collect()
}

/// An occurrence of a name in a file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Mention {
    /// Span of the occurrence.
    pub span: Span,
    /// Span of the declaration; equal to `span` at the declaration itself.
    pub declaration: Span,
    /// Kind of the named item: `state`, `message`, `variable or field`, ...
    pub kind: &'static str,
}

/// Result of an analysis, with or without errors.
#[derive(Default, Debug)]
pub struct Analysis {
    /// The protocol, if there are no errors.
    pub protocol: Option<Protocol>,
    /// Diagnostics, as [`parse`] returns them.
    pub diagnostics: Vec<Diagnostic>,
    /// Blocks in the order of the file, each from its keyword to its end. A block that is not closed ends before the
    /// next one.
    pub blocks: Vec<Span>,
    /// Occurrences of declared names, in the order of their spans, without duplicates.
    pub mentions: Vec<Mention>,
    /// Files that a composition uses, with the spans of their names; empty for a protocol.
    pub uses: Vec<(Span, String)>,
}

impl Analysis {
    /// Takes over the mentions and diagnostics of a sink.
    fn absorb(&mut self, mut sink: Sink) {
        self.mentions = std::mem::take(&mut sink.mentions);
        self.mentions.sort_unstable();
        self.mentions.dedup();
        self.diagnostics = sink.finish();
    }
}

/// Resolves a file with the sizes that a system states; reports its errors at the system.
fn resolve_with_sizes(
    text: &str,
    tokens: &[(lexer::Token, Span)],
    system: &System,
    sink: &mut Sink,
) -> Option<Protocol> {
    let mut inner_sink = Sink::default();
    let file = parser::Parser::with_sizes(text, tokens, &system.sizes, &mut inner_sink).file();
    let protocol = resolve::resolve(&file, &mut inner_sink);
    for diagnostic in inner_sink.finish() {
        sink.push(diagnostic.note_at(system.span, "with the sizes of this system"));
    }
    protocol
}

/// Parses a protocol file and analyses one with errors as far as possible.
pub fn analyse(text: &str) -> Analysis {
    let mut sink = Sink::default();
    let mut analysis = Analysis::default();
    if diagnostic::check_is_text(text, &mut sink) {
        let tokens = lexer::lex(text, &mut sink);
        if let Some(unrecognised_input) = parser::unrecognised_input(text, &tokens) {
            analysis.diagnostics = vec![unrecognised_input];
            return analysis;
        }
        let file = parser::Parser::new(text, &tokens, &mut sink).file();
        analysis.protocol = resolve::resolve(&file, &mut sink);
        analysis.blocks = file.blocks;
        if let (Some(protocol), 0) = (&mut analysis.protocol, sink.count()) {
            for system in &mut protocol.systems {
                if !system.sizes.is_empty() {
                    system.resized_protocol =
                        resolve_with_sizes(text, &tokens, system, &mut sink).map(Arc::new);
                }
            }
        }
    }
    analysis.absorb(sink);
    analysis.protocol = analysis
        .protocol
        .filter(|_| analysis.diagnostics.is_empty());
    analysis
}
