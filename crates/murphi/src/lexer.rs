//! Lexer: tokens and their spellings. The attributes of [`Token`] list all spellings of a token. Spellings that
//! are not ASCII are errors in CMurphi's dialect.

use super::diagnostic::Sink;
use super::Dialect;
use cohkit_diagnostics::Span;
use logos::Logos;

/// Kind of a token; its text is at its span.
#[derive(Logos, Clone, Copy, PartialEq, Eq, Debug)]
#[logos(skip r"[ \t\r\n\f\u{b}\u{feff}]+")]
#[logos(skip(r"--[^\n]*", allow_greedy = true))]
#[logos(skip r"/\*([^*]|\*+[^*/])*\*+/")]
pub(super) enum Token {
    /// A name that is no keyword. It begins with a letter.
    #[regex("[A-Za-z][A-Za-z0-9_]*")]
    Identifier,
    /// A keyword, at least in some positions.
    Keyword(Keyword),
    /// A number in decimal or hexadecimal notation.
    #[regex("[0-9]+")]
    #[regex("0[xX][0-9a-fA-F]+")]
    Number,
    /// A real number, which is reported as an error and replaced by [`Token::Number`].
    #[regex(r"[0-9]+\.[0-9]+([eE][+-]?[0-9]+)?")]
    Real,
    /// A string with its quotes; see [`string_contents`].
    #[regex(r#""([^"\\\n]|\\[^\n])*""#)]
    #[regex(r#"“([^”\\\n]|\\[^\n])*”"#)]
    String,
    #[token(";")]
    Semicolon,
    #[token(",")]
    Comma,
    #[token(":")]
    Colon,
    #[token(".")]
    Dot,
    #[token("..")]
    DotDot,
    #[token("(")]
    OpenParenthesis,
    #[token(")")]
    CloseParenthesis,
    #[token("[")]
    OpenBracket,
    #[token("]")]
    CloseBracket,
    #[token("{")]
    OpenBrace,
    #[token("}")]
    CloseBrace,
    #[token(":=")]
    #[token("≔")]
    Assign,
    /// Separator of a rule's guard and body.
    #[token("==>")]
    RuleArrow,
    #[token("->")]
    #[token("→")]
    #[token("⇒")]
    Implies,
    #[token("?")]
    QuestionMark,
    #[token("||")]
    #[token("∨")]
    OrOr,
    #[token("&&")]
    #[token("∧")]
    AndAnd,
    #[token("|")]
    Or,
    #[token("&")]
    And,
    #[token("^")]
    Xor,
    #[token("!")]
    #[token("¬")]
    Not,
    #[token("=")]
    Equal,
    #[token("==")]
    DoubleEqual,
    #[token("!=")]
    #[token("≠")]
    NotEqual,
    #[token("<")]
    Less,
    #[token("<=")]
    #[token("≤")]
    LessOrEqual,
    #[token(">")]
    Greater,
    #[token(">=")]
    #[token("≥")]
    GreaterOrEqual,
    #[token("<<")]
    ShiftLeft,
    #[token(">>")]
    ShiftRight,
    #[token("+")]
    Plus,
    #[token("-")]
    #[token("−")]
    Minus,
    #[token("*")]
    #[token("×")]
    Asterisk,
    #[token("/")]
    #[token("÷")]
    #[token("∕")]
    Slash,
    #[token("%")]
    Percent,
    #[token("~")]
    Tilde,
    #[token("∀")]
    ForallSign,
    #[token("∃")]
    ExistsSign,
    /// End of the text, so that the parser can always look at a token.
    End,
}

macro_rules! keywords {
    ($($keyword:ident $word:literal $reserved:literal,)*) => {
        /// The keywords of the language, in any case.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(super) enum Keyword { $($keyword,)* }

        impl Keyword {
            fn from_word(word: &str) -> Option<Keyword> {
                match word { $($word => Some(Keyword::$keyword),)* _ => None }
            }
            /// The keyword in lower case.
            pub fn text(self) -> &'static str {
                match self { $(Keyword::$keyword => $word,)* }
            }
            /// True if the keyword cannot be a name in any dialect. The others are reserved in one dialect only.
            pub fn is_reserved(self) -> bool {
                match self { $(Keyword::$keyword => $reserved,)* }
            }
        }
    };
}
keywords! {
    Alias "alias" true, Array "array" true, Assert "assert" true, Assume "assume" false, Begin "begin" true,
    Boolean "boolean" true, By "by" true, Case "case" true, Choose "choose" false, Clear "clear" true,
    Const "const" true, Cover "cover" false, Do "do" true, Else "else" true, Elsif "elsif" true, End "end" true,
    EndAlias "endalias" true, EndChoose "endchoose" false, EndExists "endexists" true, EndFor "endfor" true,
    EndForall "endforall" true, EndFunction "endfunction" true, EndIf "endif" true,
    EndProcedure "endprocedure" true, EndRecord "endrecord" true, EndRule "endrule" true,
    EndRuleset "endruleset" true, EndStartstate "endstartstate" true, EndSwitch "endswitch" true,
    EndWhile "endwhile" true, Enum "enum" true, Error "error" true, Exists "exists" true,
    ExternFun "externfun" false, ExternProc "externproc" false, False "false" true, For "for" true,
    Forall "forall" true, Function "function" true, If "if" true, Invariant "invariant" true,
    IsMember "ismember" true, IsUndefined "isundefined" true, Liveness "liveness" false,
    Multiset "multiset" false, MultisetAdd "multisetadd" false, MultisetCount "multisetcount" false,
    MultisetRemove "multisetremove" false, MultisetRemovePred "multisetremovepred" false, Of "of" true,
    Pctl "pctl" false, Procedure "procedure" true, Put "put" true, Real "real" true, Record "record" true,
    Return "return" true, Rule "rule" true, Ruleset "ruleset" true, Scalarset "scalarset" true,
    Startstate "startstate" true, Switch "switch" true, Then "then" true, ToWord "to" true, True "true" true,
    Type "type" true, Undefine "undefine" true, Union "union" true, Var "var" true, While "while" true,
}

/// Words that CMurphi reserves beside the keywords.
pub(super) const CMURPHI_RESERVED: &str =
    "undefined in interleaved program traceuntil until pctl_next log log10 exp \
    sin cos tan fabs floor ceil sqrt fmod pow asin acos atan sinh cosh tanh";

/// Splits a text into tokens with their positions, of which the last is [`Token::End`]. Errors go to the sink,
/// and the characters in error are skipped.
pub(super) fn lex(text: &str, dialect: Dialect, sink: &mut Sink) -> Vec<(Token, Span)> {
    let mut tokens: Vec<(Token, Span)> = Vec::with_capacity(text.len() / 4 + 1);
    let mut invalid_span: Option<Span> = None;
    let mut lexer = Token::lexer(text);
    while let Some(token) = lexer.next() {
        let range = lexer.span();
        let span = Span {
            start: range.start as u32,
            end: range.end as u32,
        };
        let Ok(mut token) = token else {
            // Adjacent invalid characters are reported in one diagnostic.
            match &mut invalid_span {
                Some(previous) if previous.end == span.start => previous.end = span.end,
                _ => report_invalid_characters(text, invalid_span.replace(span), sink),
            }
            continue;
        };
        let word = lexer.slice();
        match token {
            Token::Slash if text[range.start..].starts_with("/*") => {
                sink.error(span, "a comment without its closing `*/`")
                    .label("opens here");
                break;
            }
            Token::Identifier => {
                let keyword = match word.len() <= 18 {
                    true => Keyword::from_word(&word.to_ascii_lowercase()),
                    false => None,
                };
                token = keyword.map_or(token, Token::Keyword);
                if word.len() > MAX_NAME_LENGTH {
                    sink.error(span, format!("a name of {} characters", word.len()))
                        .label(format!("names have at most {MAX_NAME_LENGTH} characters"));
                }
            }
            Token::Real => {
                sink.error(span, "real numbers are not supported");
                token = Token::Number;
            }
            Token::String if dialect == Dialect::CMurphi && word.contains("\\\"") => {
                sink.error(span, "CMurphi has no `\\\"` in a string");
            }
            _ if !word.is_ascii() && dialect == Dialect::CMurphi => {
                sink.error(span, format!("CMurphi has no `{word}`"));
            }
            _ => {}
        }
        tokens.push((token, span));
    }
    report_invalid_characters(text, invalid_span, sink);
    let end = text.len() as u32;
    tokens.push((Token::End, Span { start: end, end }));
    tokens
}

/// Maximum length of a name, in bytes; that of CMurphi.
const MAX_NAME_LENGTH: usize = 256;

/// Reports characters that begin no token, if `span` is one: an open string, a name that begins with `_`, or
/// others.
fn report_invalid_characters(text: &str, span: Option<Span>, sink: &mut Sink) {
    let Some(span) = span else { return };
    let characters = &text[span.start as usize..span.end as usize];
    if characters.starts_with(['"', '“']) {
        sink.error(span, "a string without its closing `\"`")
            .label("opens here")
            .note("a string ends on the line it begins on");
    } else if characters.starts_with('_') {
        sink.error(span, "a name begins with a letter")
            .label("not with `_`");
    } else {
        let excerpt: String = characters.chars().take(8).collect();
        sink.error(span, format!("`{excerpt}` has no meaning here"))
            .label("not part of the language");
    }
}

/// True if the input is a text of valid size; reports an error otherwise.
pub(super) fn check_readable(text: &str, sink: &mut Sink) -> bool {
    let is_invalid = |character: char| {
        (character.is_control() && !"\n\t\r\u{b}\u{c}".contains(character))
            || character == '\u{fffd}'
    };
    if text.len() > super::MAX_TEXT_BYTES {
        let span = Span::default();
        sink.error(span, format!("the file has {} bytes", text.len()))
            .note(format!(
                "a model has at most {} bytes; is this the right file?",
                super::MAX_TEXT_BYTES
            ));
        return false;
    }
    match text.char_indices().find(|&(_, c)| is_invalid(c)) {
        None => true,
        Some((offset, character)) => {
            let span = Span {
                start: offset as u32,
                end: (offset + character.len_utf8()) as u32,
            };
            sink.error(span, "this is not a text file")
                .label(format!("the character U+{:04X}", character as u32));
            false
        }
    }
}

/// Returns the contents of a string token, without quotes and escapes. Escaped line feeds and tabs become
/// spaces.
pub(super) fn string_contents(text: &str) -> String {
    let quoted = text
        .trim_start_matches(['"', '“'])
        .strip_suffix(['"', '”'])
        .unwrap_or(text);
    let mut contents = String::new();
    let mut characters = quoted.chars();
    while let Some(c) = characters.next() {
        match (c, characters.clone().next()) {
            ('\\', Some('n' | 't')) => {
                characters.next();
                contents.push(' ');
            }
            ('\\', Some(next)) => {
                characters.next();
                contents.push(next);
            }
            _ => contents.push(c),
        }
    }
    contents
}
