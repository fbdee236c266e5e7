//! From protocol text to [`Protocol`], with diagnostics for every error of a file.
//!
//! Three steps: [`lexer`] cuts the text into tokens, [`parser`] builds a tree with spans
//! ([`ast`]), and [`resolve`] checks names and types and yields the [`Protocol`].
//! Each step goes on after an error, so that one run reports all independent errors.
//! What the language says is written in `docs/language.md`, which a test keeps in step.

use crate::composition::Composition;
use crate::protocol::{Protocol, System};
use cohkit_base::words::did_you_mean;
use std::sync::Arc;

mod ast;
mod diagnostic;
mod expected;
mod format;
mod lexer;
mod parser;
mod resolve;
#[cfg(test)]
mod tests;

pub use crate::terms::Span;
pub use annotate_snippets::Level;
use diagnostic::Sink;
pub use diagnostic::{line_column, report, suggestion, Code, Diagnostic};
pub use expected::{expected_at, Expected};
pub use format::format;

/// The longest text that is read, in bytes.
pub const LONGEST_TEXT: usize = 4 << 20;

/// Reads a protocol text.
///
/// # Errors
///
/// Every error of the text, in the order of their places; at most [`Diagnostic::MOST`],
/// of which the last then says how many more there are.
pub fn parse(text: &str) -> Result<Protocol, Vec<Diagnostic>> {
    let analysis = analyse(text);
    analysis.protocol.ok_or(analysis.diagnostics)
}

/// Reads a protocol text as if its sizes were these, and those that are not named as it says; `line` is the size of a line
/// in bytes. Its systems are left out, as they say for which sizes they are.
///
/// # Errors
///
/// As of [`parse`]; or a sentence, if the text has no size of a name or none can be so large.
pub fn parse_sized(text: &str, sizes: &[(String, u16)]) -> Result<Protocol, Unsized> {
    let mut sink = Sink::default();
    if !diagnostic::readable(text, &mut sink) {
        return Err(Unsized::Text(sink.finish()));
    }
    let tokens = lexer::lex(text, &mut sink);
    if let Some(stranger) = parser::stranger(text, &tokens) {
        return Err(Unsized::Text(vec![stranger]));
    }
    let mut parser = parser::Parser::with_sizes(text, &tokens, sizes, &mut sink);
    parser.most_homes = MOST_SIMULATED.into();
    parser.most_elements = MOST_SIMULATED.into();
    let mut file = parser.file();
    let known = file.sizes.iter().map(|name| name.text);
    let known: Vec<&str> = known.chain([LINE]).collect();
    if let Some((name, _)) = sizes
        .iter()
        .find(|(name, _)| !known.contains(&name.as_str()))
    {
        let near = did_you_mean(name, known.iter().copied());
        let known = known.join(", ");
        let what = format!("the text has no size `{name}`; {near}it has {known}");
        return Err(Unsized::Size(what));
    }
    let homes = sizes.iter().find(|(name, _)| name == parser::HOMES);
    if let Some((_, homes)) = homes.filter(|(_, homes)| !(1..=MOST_SIMULATED).contains(homes)) {
        let what = format!("homes must be 1 to {MOST_SIMULATED}, not {homes}");
        return Err(Unsized::Size(what));
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
        None => Err(Unsized::Text(diagnostics)),
    }
}

/// The name under which [`parse_sized`] is told the size of a line.
pub const LINE: &str = "line";

/// Most homes of a text that is not checked.
const MOST_SIMULATED: u16 = 512;

/// Why a text cannot be read with other sizes.
#[derive(Clone, Debug)]
pub enum Unsized {
    /// What is wrong with the text, or with what it says then.
    Text(Vec<Diagnostic>),
    /// What is wrong with the sizes.
    Size(String),
}

/// Whether a text composes others, and so is read by [`compose`].
pub fn composes(text: &str) -> bool {
    let uses = |line: &str| line.trim_start().starts_with("use ");
    text.split(['\n', ';']).any(uses)
}

/// The title of a text, of either sort; empty if it has none.
pub fn title(text: &str) -> String {
    let mut sink = Sink::default();
    let tokens = lexer::lex(text, &mut sink);
    let file = parser::Parser::new(text, &tokens, &mut sink).file();
    file.header
        .map_or_else(String::new, |(_, title)| title.to_string())
}

/// Reads a text that composes others. From the name of a file `load` gives what the text in it says, or why it cannot.
///
/// # Errors
///
/// As of [`parse`].
pub fn compose(
    text: &str,
    load: &mut dyn FnMut(&str) -> Result<Protocol, String>,
) -> Result<Composition, Vec<Diagnostic>> {
    let (composition, analysis) = analyse_composing(text, load);
    composition.ok_or(analysis.diagnostics)
}

/// Reads a text that composes others, as [`compose`] does, and keeps what is understood of one with errors. It has no
/// protocol of its own.
pub fn analyse_composing(
    text: &str,
    load: &mut dyn FnMut(&str) -> Result<Protocol, String>,
) -> (Option<Composition>, Analysis) {
    let mut sink = Sink::default();
    let mut analysis = Analysis::default();
    let mut composition = None;
    if diagnostic::readable(text, &mut sink) {
        let tokens = lexer::lex(text, &mut sink);
        let file = parser::Parser::new(text, &tokens, &mut sink).file();
        composition = resolve::composition::compose(&file, load, &mut sink);
        analysis.uses = uses(&file);
        analysis.blocks = file.blocks;
    }
    analysis.keep(sink);
    let good = composition.filter(|_| analysis.diagnostics.is_empty());
    (good, analysis)
}

/// The files that a text uses.
fn uses(file: &ast::File) -> Vec<(Span, String)> {
    let uses = file.items.iter().filter_map(|item| match item {
        ast::Item::Use(used) => Some((used.file.span, used.file.text.to_string())),
        _ => None,
    });
    uses.collect()
}

/// A name of a text where it stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Mention {
    /// Where it stands.
    pub span: Span,
    /// Where what it names is declared; the same place if it stands in the declaration.
    pub declaration: Span,
    /// What it names: `state`, `message`, `variable or field`, ...
    pub what: &'static str,
}

/// What a text says as far as it is understood, errors or not.
#[derive(Default, Debug)]
pub struct Analysis {
    /// The protocol, if there is no error.
    pub protocol: Option<Protocol>,
    /// What [`parse`] gives for a text with errors.
    pub diagnostics: Vec<Diagnostic>,
    /// The blocks in the order of the text, each from its keyword to its end; one that is not closed ends where the
    /// next one begins.
    pub blocks: Vec<Span>,
    /// The names that are declared, in the order of their places, and each once.
    pub mentions: Vec<Mention>,
    /// The files that the text uses, and where it names them; none of a text that does not compose others.
    pub uses: Vec<(Span, String)>,
}

impl Analysis {
    /// Takes over what was found on the way.
    fn keep(&mut self, mut sink: Sink) {
        self.mentions = std::mem::take(&mut sink.mentions);
        self.mentions.sort_unstable();
        self.mentions.dedup();
        self.diagnostics = sink.finish();
    }
}

/// What a text means with the sizes of a system.
fn sized(
    text: &str,
    tokens: &[(lexer::Token, Span)],
    system: &System,
    sink: &mut Sink,
) -> Option<Protocol> {
    let mut own = Sink::default();
    let file = parser::Parser::with_sizes(text, tokens, &system.sizes, &mut own).file();
    let protocol = resolve::resolve(&file, &mut own);
    for wrong in own.finish() {
        sink.push(wrong.see(system.span, "with the sizes of this system"));
    }
    protocol
}

/// Reads a protocol text and keeps what is understood of one with errors.
pub fn analyse(text: &str) -> Analysis {
    let mut sink = Sink::default();
    let mut analysis = Analysis::default();
    if diagnostic::readable(text, &mut sink) {
        let tokens = lexer::lex(text, &mut sink);
        if let Some(stranger) = parser::stranger(text, &tokens) {
            analysis.diagnostics = vec![stranger];
            return analysis;
        }
        let file = parser::Parser::new(text, &tokens, &mut sink).file();
        analysis.protocol = resolve::resolve(&file, &mut sink);
        analysis.blocks = file.blocks;
        if let (Some(protocol), 0) = (&mut analysis.protocol, sink.count()) {
            for system in &mut protocol.systems {
                if !system.sizes.is_empty() {
                    system.sized = sized(text, &tokens, system, &mut sink).map(Arc::new);
                }
            }
        }
    }
    analysis.keep(sink);
    analysis.protocol = analysis
        .protocol
        .filter(|_| analysis.diagnostics.is_empty());
    analysis
}
