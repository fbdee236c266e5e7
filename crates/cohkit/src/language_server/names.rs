//! References and renaming of names.

use super::document::Document;
use cohkit_diagnostics::Span;
use cohkit_protocol::text::{self, Analysis, Mention};
use lsp_types::{Location, Position, TextEdit};
use std::collections::BTreeSet;

impl Document {
    /// Locations of the name at a position, in order; declarations are included only on request.
    pub(super) fn references(&self, position: Position, declaration: bool) -> Vec<Location> {
        let Some(mention) = self.mention(position) else {
            return Vec::new();
        };
        let (spans, declarations) = coupled_mentions(&self.analysis, mention);
        let selected = spans
            .into_iter()
            .filter(|span| declaration || !declarations.contains(span));
        selected.map(|span| self.location(span)).collect()
    }

    /// Name at a position, with its span; every declared name can be renamed.
    pub(super) fn name_at(&self, position: Position) -> Option<(Span, &str)> {
        let mention = self.mention(position)?;
        Some((mention.span, self.text_at(mention.span)))
    }

    /// Edits that rename the name at a position.
    ///
    /// # Errors
    ///
    /// The new name is invalid, or the file would become invalid or change its meaning.
    pub(super) fn rename(&self, position: Position, new: &str) -> Result<Vec<TextEdit>, String> {
        let mention = self.mention(position);
        let mention = mention.ok_or("no name that the file declares is at this position")?;
        let (spans, _) = coupled_mentions(&self.analysis, mention);
        let renamed = replace_spans(self.text(), &spans, new);
        let analysis = text::analyse(&renamed);
        if analysis.diagnostics.len() > self.analysis.diagnostics.len() {
            let new_error = analysis.diagnostics.iter().find(|new| {
                let mut old_diagnostics = self.analysis.diagnostics.iter();
                old_diagnostics.all(|old| old.message != new.message)
            });
            let reason = new_error.or(analysis.diagnostics.first());
            let reason = reason.map_or_else(String::new, |error| error.message.clone());
            return Err(format!(
                "with the name `{new}` the file is invalid: {reason}"
            ));
        }
        if reference_structure(&analysis) != reference_structure(&self.analysis) {
            return Err(format!(
                "the name `{new}` means something else at one of these places"
            ));
        }
        let edits = spans
            .into_iter()
            .map(|span| TextEdit::new(self.range(span), new.to_string()));
        Ok(edits.collect())
    }
}

/// Spans of all mentions that must have the same name as this one, and those of them that are declarations.
///
/// A field in the guard of a row for several messages is declared in each of them.
fn coupled_mentions(analysis: &Analysis, mention: &Mention) -> (BTreeSet<Span>, BTreeSet<Span>) {
    let mut declarations = BTreeSet::from([mention.declaration]);
    let mut spans = BTreeSet::from([mention.span]);
    loop {
        let counts = (declarations.len(), spans.len());
        for candidate in &analysis.mentions {
            if declarations.contains(&candidate.declaration) || spans.contains(&candidate.span) {
                declarations.insert(candidate.declaration);
                spans.insert(candidate.span);
            }
        }
        if counts == (declarations.len(), spans.len()) {
            return (spans, declarations);
        }
    }
}

/// Returns the text with these spans replaced by another name.
fn replace_spans(text: &str, spans: &BTreeSet<Span>, new: &str) -> String {
    let mut replaced_text = String::with_capacity(text.len());
    let mut copied_until = 0;
    for span in spans {
        replaced_text.push_str(&text[copied_until..span.start as usize]);
        replaced_text.push_str(new);
        copied_until = span.end as usize;
    }
    replaced_text.push_str(&text[copied_until..]);
    replaced_text
}

/// Declaration that each name refers to, by the order of all spans: equal before and after a renaming that keeps the
/// meaning.
fn reference_structure(analysis: &Analysis) -> Vec<(usize, usize, &'static str)> {
    let spans: BTreeSet<Span> = analysis
        .mentions
        .iter()
        .flat_map(|mention| [mention.span, mention.declaration])
        .collect();
    let spans: Vec<Span> = spans.into_iter().collect();
    let position_of = |span: Span| spans.partition_point(|other| *other < span);
    let mentions = analysis.mentions.iter();
    mentions
        .map(|mention| {
            (
                position_of(mention.span),
                position_of(mention.declaration),
                mention.kind,
            )
        })
        .collect()
}
