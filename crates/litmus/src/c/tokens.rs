//! Lexer of the C code of a test: removal of comments, tokens, and the words that begin a declaration.

use crate::piece::{error_at, Piece, Result};

/// Type names and qualifiers: the words that begin a declaration.
pub(super) const TYPES: [&str; 40] = [
    "void",
    "__int128",
    "__int128_t",
    "__uint128_t",
    "int8_t",
    "uint8_t",
    "int16_t",
    "uint16_t",
    "atomic_uint",
    "atomic_bool",
    "atomic_long_t",
    "atomic64_t",
    "s8",
    "u8",
    "s16",
    "u16",
    "s32",
    "u32",
    "s64",
    "u64",
    "volatile",
    "const",
    "signed",
    "size_t",
    "intptr_t",
    "uintptr_t",
    "bool",
    "_Bool",
    "atomic_t",
    "atomic_long",
    "int",
    "unsigned",
    "long",
    "short",
    "char",
    "int32_t",
    "uint32_t",
    "int64_t",
    "uint64_t",
    "atomic_int",
];

/// Replaces comments by blanks and keeps line breaks, so that byte offsets and lines stay valid for diagnostics. An
/// unterminated comment extends to the end.
pub(super) fn without_comments(code: Piece) -> String {
    let mut blanked = String::with_capacity(code.text.len());
    let mut rest = code.text;
    while let Some(comment_start) = rest.find("//").into_iter().chain(rest.find("/*")).min() {
        let end = match rest[comment_start..].starts_with("//") {
            true => rest[comment_start..].find('\n'),
            false => rest[comment_start + 2..].find("*/").map(|end| end + 4),
        };
        let end = end.map_or(rest.len(), |end| comment_start + end);
        blanked.push_str(&rest[..comment_start]);
        let comment = rest[comment_start..end].bytes();
        blanked.extend(comment.map(|b| if b == b'\n' { '\n' } else { ' ' }));
        rest = &rest[end..];
    }
    blanked.push_str(rest);
    blanked
}

/// Splits code without comments into tokens: names, numbers, operators of two characters, and single characters.
///
/// # Errors
/// A character that begins no supported token, with its position.
pub(super) fn tokens(code: Piece) -> Result<Vec<Piece>> {
    let mut tokens = Vec::new();
    let mut rest = code.trim();
    while let Some(first) = rest.text.chars().next() {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = match first {
            _ if is_word(first) => rest.text.find(|c| !is_word(c)).unwrap_or(rest.text.len()),
            '=' | '!' | '<' | '>' if rest.text[1..].starts_with('=') => 2,
            '&' | '|' | '<' if rest.text[1..].starts_with(first) => 2,
            '(' | ')' | '{' | '}' | ';' | ',' | '*' | '&' | '|' | '^' | '+' | '-' | '=' | '!'
            | '<' | '>' | '~' => 1,
            _ => {
                let character = rest.until(first.len_utf8());
                return error_at(character, format!("`{first}` is not supported"));
            }
        };
        tokens.push(rest.until(length));
        rest = rest.from(length).trim();
    }
    Ok(tokens)
}
