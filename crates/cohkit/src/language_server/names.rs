//! References of a name, and its renaming.

use super::document::Document;
use cohkit_protocol::text::{self, Analysis, Mention, Span};
use lsp_types::{Location, Position, TextEdit};
use std::collections::BTreeSet;

impl Document {
    /// All places of the name at a position, in their order; its declaration too, if asked for.
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

    /// The name at a position that can be renamed.
    pub(super) fn renamed_name(&self, position: Position) -> Option<(Span, &str)> {
        let found = self.mention(position)?;
        Some((found.span, self.words(found.span)))
    }

    /// The edits that rename the name at a position.
    ///
    /// # Errors
    ///
    /// A new name that is none, or with which the file would be wrong or mean something else.
    pub(super) fn rename(&self, position: Position, new: &str) -> Result<Vec<TextEdit>, String> {
        let found = self.mention(position);
        let found = found.ok_or("there is no name that the file declares")?;
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
            return Err(format!("with the name `{new}` the file is wrong: {why}"));
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

/// The places of everything that has to have one name with a mention, and those of them that are declarations.
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

/// The file with another name at these places.
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

/// What each name refers to, by the order of all places: the same before and after a renaming that changes no meaning.
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
