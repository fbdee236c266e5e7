//! Editor features of one document.

use super::positions::LineIndex;
use cohkit_api::composition;
use cohkit_api::controller_table::{tabulate, Agent};
use cohkit_api::source::Source;
use cohkit_diagnostics::Span;
use cohkit_protocol::rows::Row;
use cohkit_protocol::text::{self, Analysis, Mention};
use lsp_types::{
    CompletionItem, CompletionItemKind, Diagnostic, DiagnosticRelatedInformation,
    DiagnosticSeverity, DocumentSymbol, Hover, HoverContents, Location, MarkupContent, MarkupKind,
    NumberOrString, Position, Range, SymbolKind, TextEdit, Uri,
};
use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// Maximum number of rows shown: one line of a policy may become many rows of the home.
const MAX_ROWS: usize = 12;

/// A document with the contents that the editor has.
pub(super) struct Document {
    /// URI by which the editor names the document.
    uri: Uri,
    /// Path of the URI; empty if the URI has no valid one.
    path: PathBuf,
    /// Contents of the document in the editor.
    text: String,
    /// Positions of the lines of `text`.
    line_index: LineIndex,
    /// Diagnostics, mentions of names, blocks, used files, and the protocol if there are no errors.
    pub(super) analysis: Analysis,
    /// Rows of both agents, each with its agent's name; computed when first requested.
    rows: OnceCell<Vec<(&'static str, Row)>>,
}

impl Document {
    /// Analyses a document. `open` returns the contents of files that are open in the editor, perhaps with unsaved
    /// changes.
    pub(super) fn new(uri: Uri, text: String, open: &dyn Fn(&Path) -> Option<String>) -> Document {
        let path = path(&uri);
        let analysis = match text::composes(&text) {
            true => {
                let mut load = |file: &str| composition::load_protocol(&path, file, open);
                text::analyse_composing(&text, &mut load).1
            }
            false => text::analyse(&text),
        };
        Document {
            line_index: LineIndex::of(&text),
            rows: OnceCell::new(),
            uri,
            path,
            text,
            analysis,
        }
    }

    /// Returns the URI by which the editor names the document.
    pub(super) fn uri(&self) -> &Uri {
        &self.uri
    }

    /// Returns the contents of the document in the editor.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Path of the document's file, which need not exist.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns true if the document uses the file at a path.
    pub(super) fn uses(&self, path: &Path) -> bool {
        let mut uses = self.analysis.uses.iter();
        uses.any(|(_, file)| is_same_file(&composition::resolve_used_file(&self.path, file), path))
    }

    /// Range of a span, in the positions of the protocol.
    pub(super) fn range(&self, span: Span) -> Range {
        self.line_index.range(&self.text, span)
    }

    /// Location of a span: the document's URI and the range.
    pub(super) fn location(&self, span: Span) -> Location {
        Location::new(self.uri.clone(), self.range(span))
    }

    /// Text of a span; empty if the span is not within the document.
    pub(super) fn text_at(&self, span: Span) -> &str {
        let words = self.text.get(span.start as usize..span.end as usize);
        words.unwrap_or_default()
    }

    /// Diagnostics of the document, with the wording of the command.
    pub(super) fn diagnostics(&self) -> Vec<Diagnostic> {
        let diagnostics = self.analysis.diagnostics.iter().map(|error| {
            let mut message = error.message.clone();
            // The message often starts with the label.
            if !message.starts_with(&error.label) {
                message += &format!(": {}", error.label);
            }
            let mut related = Vec::new();
            for (note_span, note) in &error.notes {
                match note_span {
                    None => message += &format!("\nhelp: {note}"),
                    Some(span) => related.push(DiagnosticRelatedInformation {
                        location: self.location(*span),
                        message: note.clone(),
                    }),
                }
            }
            Diagnostic {
                range: self.line_index.range(&self.text, error.span),
                severity: Some(DiagnosticSeverity::ERROR),
                code: Some(NumberOrString::String(error.code.name().to_string())),
                source: Some("cohkit".to_string()),
                message,
                related_information: Some(related),
                ..Diagnostic::default()
            }
        });
        diagnostics.collect()
    }

    /// Name at a position, or ending there.
    pub(super) fn mention(&self, position: Position) -> Option<&Mention> {
        let byte = self.line_index.byte(&self.text, position);
        let mentions = &self.analysis.mentions;
        let containing = mentions
            .iter()
            .find(|mention| mention.span.start <= byte && byte < mention.span.end);
        containing.or_else(|| mentions.iter().find(|mention| mention.span.end == byte))
    }

    /// Declaration of the name at a position; for the name of a used file, the start of that file.
    pub(super) fn definition(&self, position: Position) -> Option<Location> {
        if let Some(mention) = self.mention(position) {
            return Some(self.location(mention.declaration));
        }
        let byte = self.line_index.byte(&self.text, position);
        let mut uses = self.analysis.uses.iter();
        let (_, file) = uses.find(|(span, _)| span.start <= byte && byte <= span.end)?;
        // A protocol that is only shipped in the command has no file to open.
        let exists = composition::resolve_used_file(&self.path, file).is_file();
        let file = exists.then(|| sibling_uri(&self.uri, file))??;
        Some(Location::new(file, Range::default()))
    }

    /// Kind and declaration of the name at a position, and the rows of the tables at this position.
    pub(super) fn hover(&self, position: Position, cancel: &AtomicBool) -> Option<Hover> {
        let mut sections = Vec::new();
        let mention = self.mention(position);
        if let Some(mention) = mention {
            let declaration = self
                .line_index
                .position(&self.text, mention.declaration.start);
            let line = self.line_index.line(&self.text, declaration.line).trim();
            sections.push(format!(
                "{} `{}`, line {}\n```cohkit\n{line}\n```",
                mention.kind,
                self.text_at(mention.span),
                declaration.line + 1
            ));
        }
        let byte = self.line_index.byte(&self.text, position);
        let rows = self.rows(cancel).iter();
        let rows: Vec<_> = rows
            .filter(|(_, row)| row.span.start <= byte && byte < row.span.end)
            .collect();
        if !rows.is_empty() {
            sections.push(rows_table(&rows));
        }
        let contents = MarkupContent {
            kind: MarkupKind::Markdown,
            value: sections.join("\n\n"),
        };
        (!sections.is_empty()).then_some(Hover {
            contents: HoverContents::Markup(contents),
            range: mention.map(|mention| self.line_index.range(&self.text, mention.span)),
        })
    }

    /// Rows of the remote and of the home, which is constructed if it is a policy. A document with errors has none, and
    /// a home that cannot be constructed has none.
    fn rows(&self, cancel: &AtomicBool) -> &[(&'static str, Row)] {
        self.rows.get_or_init(|| {
            let Some(protocol) = self.analysis.protocol.clone() else {
                return Vec::new();
            };
            let source = Source {
                path: self.path.clone(),
                text: self.text.clone(),
                protocol,
            };
            let tables = [Agent::Remote, Agent::Home].into_iter();
            let tables = tables.filter_map(|agent| tabulate(&source, agent, false, cancel).ok()?);
            let rows = tables.flat_map(|table| {
                let title = table.title();
                table.rows.rows.into_iter().map(move |row| (title, row))
            });
            rows.collect()
        })
    }

    /// Names and keywords that fit at a position.
    pub(super) fn completions(&self, position: Position) -> Vec<CompletionItem> {
        let byte = self.line_index.byte(&self.text, position);
        let Some(completion) = text::complete_at(&self.text, byte) else {
            return Vec::new();
        };
        let mut blocks = self.analysis.blocks.iter();
        let agent = completion.agent;
        let agent = agent.and_then(|start| blocks.find(|block| block.start == start));
        // States and variables are local to an agent.
        let fits = |mention: &&Mention| {
            let is_local = ["state", "variable"].contains(&mention.kind);
            let is_in_agent =
                agent.is_none_or(|block| (block.start..block.end).contains(&mention.span.start));
            let kinds = completion.names.as_ref();
            kinds.is_none_or(|names| names.contains(&mention.kind)) && (is_in_agent || !is_local)
        };
        let names: BTreeSet<(&str, &str)> = self
            .declarations()
            .filter(fits)
            .map(|mention| (self.text_at(mention.span), mention.kind))
            .collect();
        let names = names.into_iter().filter(|(name, _)| !name.is_empty());
        let names = names.map(|(name, kind)| CompletionItem {
            label: name.to_string(),
            kind: Some(completion_kind(kind)),
            detail: Some(kind.to_string()),
            ..CompletionItem::default()
        });
        let words = completion.words.iter().map(|word| CompletionItem {
            label: word.to_string(),
            kind: Some(CompletionItemKind::KEYWORD),
            ..CompletionItem::default()
        });
        names.chain(words).collect()
    }

    /// Edit that formats the file; none if it is formatted already, or contains characters outside the language.
    pub(super) fn formatting(&self) -> Option<TextEdit> {
        let formatted = text::format(&self.text).ok()?;
        let full_span = Span {
            start: 0,
            end: self.text.len() as u32,
        };
        (formatted != self.text).then(|| TextEdit::new(self.range(full_span), formatted))
    }

    /// Mentions that are declarations, in their order in the file.
    fn declarations(&self) -> impl Iterator<Item = &Mention> {
        let mentions = self.analysis.mentions.iter();
        mentions.filter(|mention| mention.span == mention.declaration)
    }

    /// Blocks of the document, each with the names that it declares.
    pub(super) fn symbols(&self) -> Vec<DocumentSymbol> {
        let blocks = self.analysis.blocks.iter().map(|&block| {
            let is_in_block =
                |name: &&Mention| block.start <= name.span.start && name.span.end <= block.end;
            let names = self.declarations().filter(is_in_block);
            let names = names.map(|mention| {
                self.symbol(
                    self.text_at(mention.span),
                    mention.kind,
                    mention.span,
                    mention.span,
                    None,
                )
            });
            let first_line = self.text_at(block).lines().next().unwrap_or_default();
            let name = first_line
                .split(['{', '#'])
                .next()
                .unwrap_or_default()
                .trim();
            let name_span = Span {
                start: block.start,
                end: block.start + name.len() as u32,
            };
            self.symbol(name, "block", block, name_span, Some(names.collect()))
        });
        blocks.collect()
    }

    #[allow(
        deprecated,
        reason = "the type has the field, and no other constructor"
    )]
    /// Entry of the document's outline. `span` is the whole construct, and `name_span` its name.
    fn symbol(
        &self,
        name: &str,
        description: &str,
        span: Span,
        name_span: Span,
        children: Option<Vec<DocumentSymbol>>,
    ) -> DocumentSymbol {
        let kind = match description {
            "block" => SymbolKind::NAMESPACE,
            "state" => SymbolKind::ENUM_MEMBER,
            "message" => SymbolKind::EVENT,
            "field" => SymbolKind::FIELD,
            _ => SymbolKind::VARIABLE,
        };
        DocumentSymbol {
            // Editors reject a symbol without a name.
            name: if name.is_empty() { description } else { name }.to_string(),
            detail: Some(description.to_string()),
            kind,
            tags: None,
            deprecated: None,
            range: self.line_index.range(&self.text, span),
            selection_range: self.line_index.range(&self.text, name_span),
            children,
        }
    }
}

/// Kind of a completion item for a kind of names.
fn completion_kind(kind: &str) -> CompletionItemKind {
    match kind {
        "state" => CompletionItemKind::ENUM_MEMBER,
        "message" => CompletionItemKind::EVENT,
        "field" => CompletionItemKind::FIELD,
        _ => CompletionItemKind::VARIABLE,
    }
}

/// Rows as a Markdown table.
fn rows_table(rows: &[&(&'static str, Row)]) -> String {
    let mut text =
        String::from("| of | state | event | if | actions | next |\n|---|---|---|---|---|---|\n");
    for (title, row) in rows.iter().take(MAX_ROWS) {
        let cells = [
            title,
            row.state.as_str(),
            &row.event,
            row.guard.as_deref().unwrap_or_default(),
            &row.actions.join(", "),
            row.next.as_deref().unwrap_or_default(),
        ];
        let cells = cells.map(|cell| cell.replace('|', "\\|"));
        text += &format!("| {} |\n", cells.join(" | "));
    }
    if rows.len() > MAX_ROWS {
        text += &format!("\nand {} more\n", rows.len() - MAX_ROWS);
    }
    text
}

/// URI of a file named relative to this one.
fn sibling_uri(uri: &Uri, file: &str) -> Option<Uri> {
    let (folder, _) = uri.as_str().rsplit_once('/')?;
    let is_unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    let name = file.bytes().map(|byte| match is_unreserved(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    });
    format!("{folder}/{}", name.collect::<String>())
        .parse()
        .ok()
}

/// Returns true if both paths name the same file.
pub(super) fn is_same_file(left: &Path, right: &Path) -> bool {
    let canonical_path = |path: &Path| path.canonicalize();
    left == right
        || matches!((canonical_path(left), canonical_path(right)), (Ok(left), Ok(right)) if left == right)
}

/// Path of a URI, the base for the files that a document uses; empty if it is not valid text.
fn path(uri: &Uri) -> PathBuf {
    let decoded_path = uri.path().as_estr().decode().into_string();
    decoded_path.map_or_else(|_| PathBuf::new(), |path| PathBuf::from(path.as_ref()))
}
