//! Semantic tokens: the kind of each name, which a grammar cannot determine.

use super::document::Document;
use lsp_types::{
    SemanticToken, SemanticTokenModifier, SemanticTokenType, SemanticTokens, SemanticTokensLegend,
};

/// Kinds of names with their token types; the index in this list is the number of the type.
const TYPES: [(&[&str], SemanticTokenType); 8] = [
    (&["state"], SemanticTokenType::ENUM_MEMBER),
    (&["message"], SemanticTokenType::EVENT),
    (&["field"], SemanticTokenType::PROPERTY),
    (&["variable"], SemanticTokenType::VARIABLE),
    (&["agent of a loop"], SemanticTokenType::PARAMETER),
    (&["kind of remotes", "node"], SemanticTokenType::CLASS),
    (&["channel"], SemanticTokenType::NAMESPACE),
    (&["size"], SemanticTokenType::TYPE_PARAMETER),
];

/// Modifier bit of a name at its declaration.
const DECLARATION: u32 = 1;

/// Token types and modifiers to which [`Document::tokens`] refers by number.
pub(super) fn legend() -> SemanticTokensLegend {
    SemanticTokensLegend {
        token_types: TYPES
            .iter()
            .map(|(_, token_type)| token_type.clone())
            .collect(),
        token_modifiers: vec![SemanticTokenModifier::DECLARATION],
    }
}

impl Document {
    /// Tokens of all names; positions are relative to the previous token, as the protocol requires.
    pub(super) fn tokens(&self) -> SemanticTokens {
        let mut data = Vec::new();
        let (mut line, mut start, mut end) = (0, 0, 0);
        for mention in &self.analysis.mentions {
            let type_number = TYPES
                .iter()
                .position(|(names, _)| names.contains(&mention.kind));
            let (Some(type_number), true) =
                (type_number, data.is_empty() || mention.span.start >= end)
            else {
                continue;
            };
            end = mention.span.end;
            let range = self.range(mention.span);
            let position = range.start;
            let same_line = position.line == line && !data.is_empty();
            data.push(SemanticToken {
                delta_line: position.line - line,
                delta_start: if same_line {
                    position.character - start
                } else {
                    position.character
                },
                length: range.end.character - position.character,
                token_type: type_number as u32,
                token_modifiers_bitset: match mention.span == mention.declaration {
                    true => DECLARATION,
                    false => 0,
                },
            });
            (line, start) = (position.line, position.character);
        }
        SemanticTokens {
            result_id: None,
            data,
        }
    }
}
