//! Tokens of a protocol file. Blanks and comments, which begin with `#`, are skipped; newlines are tokens.

use super::diagnostic::{Code, Diagnostic, Sink};
use cohkit_diagnostics::Span;
use logos::Logos;

/// Kind of a token. Its characters are in the source at its span.
#[derive(Logos, Clone, Copy, PartialEq, Eq, Debug)]
#[logos(skip r"[ \t\r\f\u{feff}]+")]
#[logos(skip(r"#[^\n]*", allow_greedy = true))]
#[allow(missing_docs)]
pub(super) enum Token {
    /// Ends a statement or row.
    #[token("\n")]
    Newline,
    /// Ends a statement, as a newline does.
    #[token(";")]
    Semicolon,
    /// A name or keyword.
    #[regex("[A-Za-z_][A-Za-z0-9_]*")]
    Word,
    /// Decimal digits; the value may be too large for any type.
    #[regex("[0-9]+")]
    Number,
    /// A quoted string within one line, with its quotes.
    #[regex("\"[^\"\n]*\"")]
    Title,
    #[token("{")]
    OpenBrace,
    #[token("}")]
    CloseBrace,
    #[token("(")]
    Open,
    #[token(")")]
    Close,
    #[token("[")]
    OpenBracket,
    #[token("]")]
    CloseBracket,
    #[token(",")]
    Comma,
    #[token("|")]
    Bar,
    #[token(":")]
    Colon,
    /// `=`: the initial value of a variable, or the value of a field in `send`.
    #[token("=")]
    Is,
    #[token(":=")]
    Becomes,
    #[token("+=")]
    Increase,
    #[token("-=")]
    Decrease,
    #[token("+")]
    Plus,
    #[token("-")]
    Minus,
    #[token("==")]
    Equal,
    #[token("!=")]
    NotEqual,
    #[token("<")]
    Less,
    #[token("<=")]
    LessOrEqual,
    #[token(">")]
    Greater,
    #[token(">=")]
    GreaterOrEqual,
    #[token("->")]
    Arrow,
    #[token("..")]
    To,
    #[token(".")]
    Dot,
    /// Follows the last token, so that the parser can always look ahead.
    End,
}

/// Maximum length of a name, in bytes.
pub(super) const MAX_NAME_BYTES: usize = 64;

/// Splits a file into tokens; the last one is [`Token::End`].
///
/// A newline after a comma or before a `|` is dropped: the list or row continues.
pub(super) fn lex(text: &str, sink: &mut Sink) -> Vec<(Token, Span)> {
    let mut tokens: Vec<(Token, Span)> = Vec::with_capacity(text.len() / 4 + 1);
    let long_names = tokenize(text, sink, |token, span| match (token, tokens.last()) {
        (Token::Newline, Some((Token::Comma | Token::Newline, _)) | None) => {}
        (Token::Bar, Some((Token::Newline, _))) => {
            tokens.pop();
            tokens.push((token, span));
        }
        _ => tokens.push((token, span)),
    });
    for span in long_names {
        sink.push(name_too_long(span));
    }
    let end = text.len() as u32;
    tokens.push((Token::End, Span { start: end, end }));
    tokens
}

/// Splits a file into tokens without newlines, for the formatter, which works line by line.
pub(super) fn lex_lines(text: &str, sink: &mut Sink) -> Vec<(Token, Span)> {
    let mut tokens = Vec::with_capacity(text.len() / 4 + 1);
    tokenize(text, sink, |token, span| {
        if token != Token::Newline {
            tokens.push((token, span));
        }
    });
    tokens
}

/// Calls `visit` with every token, and reports characters that belong to none. Returns the names that are too long.
fn tokenize(text: &str, sink: &mut Sink, mut visit: impl FnMut(Token, Span)) -> Vec<Span> {
    let mut long_names = Vec::new();
    let mut bad_span: Option<Span> = None;
    let mut lexer = Token::lexer(text);
    while let Some(token) = lexer.next() {
        let range = lexer.span();
        let span = Span {
            start: range.start as u32,
            end: range.end as u32,
        };
        let Ok(token) = token else {
            // Adjacent bad characters give one diagnostic.
            match &mut bad_span {
                Some(adjacent) if adjacent.end == span.start => adjacent.end = span.end,
                _ => {
                    report_bad_characters(text, bad_span.replace(span), sink);
                }
            }
            continue;
        };
        if token == Token::Word && range.len() > MAX_NAME_BYTES {
            long_names.push(span);
        }
        visit(token, span);
    }
    report_bad_characters(text, bad_span, sink);
    long_names
}

/// Returns the error of a name that is too long.
fn name_too_long(name: Span) -> Diagnostic {
    let shown_span = Span {
        start: name.start,
        end: name.start + MAX_NAME_BYTES as u32,
    };
    let length = name.end - name.start;
    Diagnostic::new(
        Code::NameTooLong,
        shown_span,
        format!("a name of {length} characters"),
    )
    .label(format!("names have at most {MAX_NAME_BYTES} characters"))
}

/// Reports adjacent characters that belong to no token.
fn report_bad_characters(text: &str, span: Option<Span>, sink: &mut Sink) {
    let Some(span) = span else { return };
    let characters = &text[span.start as usize..span.end as usize];
    let diagnostic = if characters.starts_with('"') {
        Diagnostic::new(
            Code::UnclosedTitle,
            span,
            "a quoted title without its closing `\"`",
        )
        .label("opens here")
        .note("a title ends on the line it begins on")
    } else {
        let excerpt: String = characters.chars().take(8).collect();
        let diagnostic = Diagnostic::new(
            Code::Character,
            span,
            format!("`{excerpt}` has no meaning here"),
        )
        .label("not part of the language");
        match characters {
            "//" | "/*" => diagnostic.note("a comment begins with `#`"),
            "&&" => diagnostic.note("this is written `and`"),
            "!" => diagnostic.note("this is written `not`"),
            _ => diagnostic,
        }
    };
    sink.push(diagnostic);
}
