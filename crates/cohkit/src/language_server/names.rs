//! References and renaming of names.

use super::document::Document;
use cohkit_protocol::text::{self, Analysis, Mention, Span};
use lsp_types::{Location, Position, TextEdit};
use std::collections::BTreeSet;

impl Document {
    /// Locations of the name at a position, in order; declarations are included only on request.
    pub(super) fn references(&self, position: Position, declaration: bool) -> Vec<Location> {
        let Some(found) = self.mention(position) else {
            return Vec::new();
        };
        let (spans, declarations) = same_name(&self.analysis, found);
        let wanted = spans
            .into_iter()
            .filter(|span| declaration || !declarations.contains(span));
        wanted.map(|span| self.location(span)).collect()
    }

    /// Name at a position, with its span; every declared name can be renamed.
    pub(super) fn renamed_name(&self, position: Position) -> Option<(Span, &str)> {
        let found = self.mention(position)?;
        Some((found.span, self.words(found.span)))
    }

    /// Edits that rename the name at a position.
    ///
    /// # Errors
    ///
    /// The new name is invalid, or the file would become invalid or change its meaning.
    pub(super) fn rename(&self, position: Position, new: &str) -> Result<Vec<TextEdit>, String> {
        let found = self.mention(position);
        let found = found.ok_or("no name that the file declares is at this position")?;
        let (spans, _) = same_name(&self.analysis, found);
        let renamed = replaced(self.text(), &spans, new);
        let after = text::analyse(&renamed);
        if after.diagnostics.len() > self.analysis.diagnostics.len() {
            let first = after.diagnostics.iter().find(|new| {
                let mut known = self.analysis.diagnostics.iter();
                known.all(|old| old.message != new.message)
            });
            let why = first.or(after.diagnostics.first());
            let why = why.map_or_else(String::new, |error| error.message.clone());
            return Err(format!("with the name `{new}` the file is invalid: {why}"));
        }
        if shape(&after) != shape(&self.analysis) {
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
fn same_name(analysis: &Analysis, mention: &Mention) -> (BTreeSet<Span>, BTreeSet<Span>) {
    let mut declarations = BTreeSet::from([mention.declaration]);
    let mut spans = BTreeSet::from([mention.span]);
    loop {
        let known = (declarations.len(), spans.len());
        for one in &analysis.mentions {
            if declarations.contains(&one.declaration) || spans.contains(&one.span) {
                declarations.insert(one.declaration);
                spans.insert(one.span);
            }
        }
        if known == (declarations.len(), spans.len()) {
            return (spans, declarations);
        }
    }
}

/// Returns the text with these spans replaced by another name.
fn replaced(text: &str, spans: &BTreeSet<Span>, new: &str) -> String {
    let mut other = String::with_capacity(text.len());
    let mut copied = 0;
    for span in spans {
        other.push_str(&text[copied..span.start as usize]);
        other.push_str(new);
        copied = span.end as usize;
    }
    other.push_str(&text[copied..]);
    other
}

/// Declaration that each name refers to, by the order of all spans: equal before and after a renaming that keeps the
/// meaning.
fn shape(analysis: &Analysis) -> Vec<(usize, usize, &'static str)> {
    let spans: BTreeSet<Span> = analysis
        .mentions
        .iter()
        .flat_map(|one| [one.span, one.declaration])
        .collect();
    let spans: Vec<Span> = spans.into_iter().collect();
    let order = |span: Span| spans.partition_point(|one| *one < span);
    let mentions = analysis.mentions.iter();
    mentions
        .map(|one| (order(one.span), order(one.declaration), one.what))
        .collect()
}
