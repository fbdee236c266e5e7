//! Parser: from tokens to the syntax tree, by recursive descent.
//!
//! There is one function per production of the grammar in `docs/language.md`. Each function names its production, so
//! that a test can compare the two. After an error the parser continues with the next statement. A row ends with its
//! line; other statements may contain a block.

use super::aliases::{current_spelling, former_spelling, KeywordContext};
use super::ast::{AccessOrder, Block, File, Item, Name, Number, SystemItem};
use super::diagnostic::{Code, Diagnostic, Sink};
use super::lexer::Token;
use crate::controller::{Access, Operator};
use crate::orders::Model;
use crate::policy::{Acceptance, LockConflict, Stall};
use crate::protocol::{Class, Comparison, Guarantee};
use cohkit_base::words::nearest;
use cohkit_diagnostics::{suggestion, Span};

mod agent;
mod composition;
mod expression;
mod messages;
mod types;

/// Keywords of the statements of a file.
pub(super) const BLOCKS: [&str; 14] = [
    "protocol",
    "line",
    "size",
    "channels",
    "messages",
    "bounds",
    "remote",
    "home",
    "system",
    "accesses",
    "guarantee",
    "invariant",
    "use",
    "node",
];

/// Maximum number of elements of an array that is not indexed by remotes.
const MAX_ELEMENTS: u32 = 64;

/// Name of the size that sets the number of homes.
pub(super) const HOMES: &str = "homes";

/// Maximum number of homes of a checked system.
pub(super) const MAX_HOMES: u32 = 4;

/// Words of rows and expressions, which no state, message, variable or field may have as its name.
pub(super) const RESERVED: [&str; 32] = [
    "acknowledge",
    "and",
    "becomes",
    "count",
    "defer",
    "dirty",
    "done",
    "every",
    "false",
    "for",
    "holds",
    "home",
    "if",
    "in",
    "none",
    "not",
    "or",
    "reads",
    "refuse",
    "retry",
    "self",
    "send",
    "sender",
    "stall",
    "stay",
    "true",
    "unlock",
    "unlocked",
    "unreachable",
    "waits",
    "write",
    "writes",
];

/// Returns true for a word that no state, message, variable or field may have as its name. Former spellings of reserved
/// words are reserved too.
fn is_reserved(word: &str) -> bool {
    RESERVED.contains(&current_spelling(KeywordContext::Action, word))
}

/// Returns one diagnostic for input in which no line begins a block. A file of another language would otherwise give an
/// error in every line.
pub(super) fn unrecognised_input(text: &str, tokens: &[(Token, Span)]) -> Option<Diagnostic> {
    let token = |index: usize| tokens.get(index).map(|token| token.0);
    let begins_block = |index: usize| {
        let is_line_start =
            index == 0 || matches!(token(index - 1), Some(Token::Newline | Token::Semicolon));
        let slice = |index: usize| {
            let span = tokens.get(index).map(|token| token.1);
            span.map_or("", |span| &text[span.start as usize..span.end as usize])
        };
        let word = slice(index);
        let opens_block = match word {
            // A platform file may name the protocol of its simulations.
            "protocol" => slice(index + 1) != "=",
            "line" => token(index + 1) == Some(Token::Number),
            "size" => token(index + 2) == Some(Token::Number),
            "invariant" => token(index + 2) == Some(Token::Colon),
            "use" => token(index + 1) == Some(Token::Title),
            _ => matches!(
                (token(index + 1), token(index + 2)),
                (Some(Token::OpenBrace), _) | (Some(Token::Word), Some(Token::OpenBrace))
            ),
        };
        is_line_start && BLOCKS.contains(&word) && opens_block
    };
    let mut positions =
        (0..tokens.len()).filter(|&index| !matches!(tokens[index].0, Token::Newline | Token::End));
    let first = tokens[positions.clone().next()?].1;
    if positions.any(begins_block) {
        return None;
    }
    let excerpt = &text[first.start as usize..first.end as usize];
    let excerpt: String = excerpt.chars().take(40).collect();
    let message = format!("expected `protocol NAME`, found `{excerpt}`");
    let diagnostic = Diagnostic::new(Code::Syntax, first, message)
        .label("no protocol file begins like this")
        .note("is this the right file? no line of it begins a block of a protocol file");
    Some(diagnostic)
}

/// Words for channel classes.
pub(super) const CLASSES: [(&str, Class); 6] = [
    ("request", Class::Request),
    ("victim", Class::Victim),
    ("answer", Class::Answer),
    ("forward", Class::Forward),
    ("grant", Class::Grant),
    ("acknowledgement", Class::Acknowledgement),
];

/// Class that a channel's name implies, if any.
pub(super) fn class_named(name: &str) -> Option<Class> {
    CLASSES
        .iter()
        .find(|(word, _)| *word == name)
        .map(|&(_, class)| class)
}

/// An error was reported; the caller recovers.
struct ParseError;
/// Result of a production; the error has been reported to the sink.
type Parse<T> = Result<T, ParseError>;

/// Parser of one file: a cursor over its tokens, and the context that productions depend on.
pub(super) struct Parser<'a, 's> {
    /// The file, in which token spans count bytes.
    text: &'a str,
    /// Tokens of the file; the last one is [`Token::End`].
    tokens: &'a [(Token, Span)],
    /// Index of the current token.
    position: usize,
    /// Number of open parentheses; inside them newlines are ignored.
    parentheses: u32,
    /// Number of parts of the current expression; see [`Parser::count_part`].
    part_count: u32,
    /// True after a `use`: systems then count parts of several files.
    composes: bool,
    /// True if the last lines were outside any block.
    outside_blocks: bool,
    /// True if the current agent reads `memory writes`.
    memory_writes: bool,
    /// Sizes declared so far, with their values after overrides.
    sizes: Vec<(Name<'a>, u32)>,
    /// Sizes of the file with the values that replace the declared ones.
    overrides: &'s [(String, u16)],
    /// Maximum number of homes in an override.
    pub(super) max_homes: u32,
    /// Maximum number of elements of an array that is not indexed by remotes.
    pub(super) max_elements: u32,
    /// Receiver of errors and mentions.
    sink: &'s mut Sink,
    /// Productions entered, for the test that compares them with the grammar.
    #[cfg(test)]
    pub(super) productions: std::collections::BTreeSet<&'static str>,
}

impl<'a, 's> Parser<'a, 's> {
    /// Creates a parser of a file with its declared sizes.
    pub(super) fn new(text: &'a str, tokens: &'a [(Token, Span)], sink: &'s mut Sink) -> Self {
        Parser::with_sizes(text, tokens, &[], sink)
    }

    /// Creates a parser with some sizes overridden.
    pub(super) fn with_sizes(
        text: &'a str,
        tokens: &'a [(Token, Span)],
        overrides: &'s [(String, u16)],
        sink: &'s mut Sink,
    ) -> Self {
        Parser {
            text,
            tokens,
            position: 0,
            parentheses: 0,
            part_count: 0,
            composes: false,
            outside_blocks: false,
            memory_writes: false,
            sizes: Vec::new(),
            overrides,
            max_homes: MAX_HOMES,
            max_elements: MAX_ELEMENTS,
            sink,
            #[cfg(test)]
            productions: Default::default(),
        }
    }

    /// Records that a production is entered, in tests.
    fn production(&mut self, _name: &'static str) {
        #[cfg(test)]
        self.productions.insert(_name);
    }

    // ---- Tokens ----

    /// Token `ahead` places after the current one, including newlines.
    fn token_at(&self, ahead: usize) -> (Token, Span) {
        self.tokens[(self.position + ahead).min(self.tokens.len() - 1)]
    }

    /// Current token; inside parentheses, newlines before it are skipped.
    fn peek(&mut self) -> Token {
        while self.parentheses > 0 && self.token_at(0).0 == Token::Newline {
            self.position += 1;
        }
        self.token_at(0).0
    }

    /// Span of the current token.
    fn span(&mut self) -> Span {
        self.peek();
        self.token_at(0).1
    }

    /// Span of the last token consumed.
    fn last_span(&self) -> Span {
        self.tokens[self.position.saturating_sub(1)].1
    }

    /// Moves to the next token; stays at [`Token::End`].
    fn advance(&mut self) {
        self.position = (self.position + 1).min(self.tokens.len() - 1);
    }

    /// Consumes the current token if it is of this kind, and returns true then.
    fn eat(&mut self, token: Token) -> bool {
        let is_match = self.peek() == token;
        if is_match {
            self.advance();
        }
        is_match
    }

    /// Text of a span.
    fn slice(&self, span: Span) -> &'a str {
        &self.text[span.start as usize..span.end as usize]
    }

    /// The current word, or the empty string.
    fn word(&mut self) -> &'a str {
        if self.peek() == Token::Word {
            self.slice(self.token_at(0).1)
        } else {
            ""
        }
    }

    /// The current word; the keyword if the word is its former spelling in this context.
    fn keyword(&mut self, context: KeywordContext) -> &'a str {
        current_spelling(context, self.word())
    }

    /// Consumes all words of a keyword, or of its former spelling. Returns false if neither follows.
    fn eat_keyword(&mut self, context: KeywordContext, keyword: &str) -> bool {
        for spelling in [Some(keyword), former_spelling(context, keyword)]
            .into_iter()
            .flatten()
        {
            self.peek();
            let mut words = spelling.split(' ').enumerate();
            let follows = words.all(|(ahead, word)| self.slice(self.token_at(ahead).1) == word);
            if follows {
                spelling.split(' ').for_each(|_| self.advance());
                return true;
            }
        }
        false
    }

    /// Consumes the current token if it is this word, and returns true then.
    fn eat_word(&mut self, word: &str) -> bool {
        let is_match = self.word() == word;
        if is_match {
            self.advance();
        }
        is_match
    }

    /// Moves past newlines, also outside parentheses.
    fn skip_newlines(&mut self) {
        while matches!(self.token_at(0).0, Token::Newline) {
            self.advance();
        }
    }

    // ---- Errors ----

    /// Reports an unexpected token. Always returns an error, for use as `return self.expected(..)`.
    fn expected<T>(&mut self, description: &str) -> Parse<T> {
        let token = self.peek();
        let span = self.span();
        let (actual, span) = match token {
            Token::End | Token::Newline => {
                let end = self.last_span().end.min(span.start);
                let actual = if token == Token::End {
                    "the end of the file"
                } else {
                    "the end of the line"
                };
                (actual.to_string(), Span { start: end, end })
            }
            _ => (
                format!(
                    "`{}`",
                    self.slice(span).chars().take(40).collect::<String>()
                ),
                span,
            ),
        };
        self.sink.push(
            Diagnostic::new(
                Code::Syntax,
                span,
                format!("expected {description}, found {actual}"),
            )
            .label(format!("expected {description}")),
        );
        Err(ParseError)
    }

    /// Takes a token of this kind; otherwise reports that `description` was expected.
    fn expect(&mut self, token: Token, description: &str) -> Parse<Span> {
        let span = self.span();
        if self.eat(token) {
            Ok(span)
        } else {
            self.expected(description)
        }
    }

    /// Takes this word; otherwise reports that it was expected.
    fn expect_word(&mut self, word: &str) -> Parse<()> {
        if self.eat_word(word) {
            Ok(())
        } else {
            self.expected(&format!("`{word}`"))
        }
    }

    /// Parses one of several words.
    fn choice<T: Copy>(&mut self, words: &[(&str, T)], description: &str) -> Parse<T> {
        let word = self.word();
        match words.iter().find(|(name, _)| *name == word) {
            Some(&(_, value)) => {
                self.advance();
                Ok(value)
            }
            None => {
                let listed: Vec<String> =
                    words.iter().map(|(name, _)| format!("`{name}`")).collect();
                self.expected(&format!("{description} ({})", listed.join(", ")))
            }
        }
    }

    /// Skips to the end of a statement that could not be parsed. Blocks on the way are skipped whole; a row ends with
    /// its line.
    fn recover(&mut self, row: bool) {
        self.parentheses = 0;
        let mut braces = 0;
        loop {
            match self.peek() {
                Token::End => return,
                Token::OpenBrace => braces += 1,
                Token::CloseBrace if braces == 0 => return,
                Token::CloseBrace => braces -= 1,
                Token::Newline | Token::Semicolon if braces == 0 || row => return,
                Token::Word if braces > 0 && self.at_block() => return,
                _ => {}
            }
            self.advance();
        }
    }

    /// Returns true if a block of the file begins here. Lines inside a block never look like this.
    fn at_block(&mut self) -> bool {
        let line_start = self.position == 0
            || matches!(self.token_at(0).0, Token::Word)
                && self.tokens[self.position - 1].0 == Token::Newline;
        line_start
            && BLOCKS.contains(&self.word())
            && (self.token_at(1).0 == Token::OpenBrace
                || self.token_at(1).0 == Token::Word && self.token_at(2).0 == Token::OpenBrace)
    }

    // ---- Words, names, numbers ----

    /// Parses a name that may be declared anywhere; `description` is used in the error.
    fn name(&mut self, description: &str) -> Parse<Name<'a>> {
        let span = self.span();
        if self.eat(Token::Word) {
            Ok(Name {
                text: self.slice(span),
                span,
            })
        } else {
            self.expected(description)
        }
    }

    /// Parses a name that is declared here.
    fn new_name(&mut self, description: &str) -> Parse<Name<'a>> {
        let name = self.name(description)?;
        if is_reserved(name.text) || Access::ALL.iter().any(|(_, access)| *access == name.text) {
            self.sink.push(
                Diagnostic::new(
                    Code::ReservedName,
                    name.span,
                    format!("`{}` is a keyword", name.text),
                )
                .label(format!("cannot be {description}")),
            );
        }
        if let Some((size, _)) = self.sizes.iter().find(|(size, _)| size.text == name.text) {
            let message = format!("`{}` is a size", name.text);
            let diagnostic = Diagnostic::new(Code::DuplicateName, name.span, message)
                .label("declared again")
                .note_at(size.span, "declared here");
            self.sink.push(diagnostic);
        }
        Ok(name)
    }

    /// One or more names, with or without commas between them.
    fn names(&mut self, description: &str) -> Parse<Vec<Name<'a>>> {
        self.production("names");
        let mut names = vec![self.name(description)?];
        while self.eat(Token::Comma) || self.peek() == Token::Word {
            names.push(self.name(description)?);
        }
        Ok(names)
    }

    /// Parses a number written in digits.
    fn number(&mut self, description: &str) -> Parse<Number> {
        let span = self.expect(Token::Number, description)?;
        Ok(Number {
            value: self.slice(span).parse().unwrap_or(u32::MAX),
            span,
        })
    }

    // ---- Statements ----

    /// `{ item item ... }` with newlines or `;` between the items, after its keyword.
    fn block<T>(
        &mut self,
        keyword: Span,
        description: &str,
        item: impl FnMut(&mut Self) -> Parse<T>,
    ) -> Parse<Block<T>> {
        let errors = self.sink.count();
        let items = self.items(description, item)?;
        Ok(Block {
            keyword,
            items,
            broken: self.sink.count() > errors,
        })
    }

    /// Parses the items of a block, up to its closing brace.
    fn items<T>(
        &mut self,
        description: &str,
        mut item: impl FnMut(&mut Self) -> Parse<T>,
    ) -> Parse<Vec<T>> {
        let open = match self.expect(Token::OpenBrace, "`{`") {
            // The brace is missing, but the block is present.
            Err(ParseError) if self.peek() == Token::Newline => self.last_span(),
            open => open?,
        };
        let mut items = Vec::new();
        loop {
            while self.eat(Token::Newline) || self.eat(Token::Semicolon) {}
            if self.eat(Token::CloseBrace) {
                return Ok(items);
            }
            if self.peek() == Token::End || self.at_block() {
                self.sink.push(
                    Diagnostic::new(
                        Code::UnclosedBlock,
                        open,
                        format!("{description} is not closed"),
                    )
                    .label("this `{` has no `}`"),
                );
                return Ok(items);
            }
            let (start, row) = (self.position, self.at_row());
            match item(self) {
                Ok(item) => {
                    items.push(item);
                    if !matches!(
                        self.peek(),
                        Token::Newline | Token::Semicolon | Token::CloseBrace | Token::End
                    ) && !self.at_block()
                    {
                        let _: Parse<()> = self.expected("`;` or the end of the line");
                        self.recover(row);
                    }
                }
                Err(ParseError) => {
                    self.recover(row);
                    // Always make progress, even if the statement failed at its first token.
                    if self.position == start {
                        self.advance();
                    }
                }
            }
        }
    }

    /// Parses a whole file.
    pub(super) fn file(&mut self) -> File<'a> {
        self.production("file");
        let mut file = File::default();
        loop {
            while self.eat(Token::Newline) || self.eat(Token::Semicolon) {}
            if self.peek() == Token::End {
                break;
            }
            let (begin, is_block) = (self.span(), BLOCKS.contains(&self.word()));
            let result = if self.word() == "protocol" {
                self.header(&mut file)
            } else if self.eat_word("size") {
                self.size_declaration()
            } else {
                self.item().map(|item| file.items.push(item))
            };
            let is_complete = matches!(self.peek(), Token::Newline | Token::Semicolon | Token::End)
                || self.at_block();
            if result.is_ok() && !is_complete {
                let _: Parse<()> = self.expected("the end of the line");
            }
            if result.is_err() || !is_complete {
                let start = self.position;
                self.recover(false);
                if self.position == start || self.peek() == Token::CloseBrace {
                    self.advance();
                }
            }
            if is_block {
                self.outside_blocks = false;
                file.blocks.push(begin.to(self.last_span()));
            }
        }
        file.end = self.span();
        file.sizes = self.sizes.iter().map(|(name, _)| *name).collect();
        let declared = file.sizes.iter().any(|name| name.text == HOMES);
        file.homes = declared.then(|| self.home_count());
        file
    }

    /// Parses `protocol NAME "TITLE"`.
    fn header(&mut self, file: &mut File<'a>) -> Parse<()> {
        self.production("header");
        let keyword = self.span();
        self.advance();
        let name = self.new_name("the name of the protocol")?;
        let title = self.span();
        let title = if self.eat(Token::Title) {
            self.slice(title).trim_matches('"')
        } else {
            ""
        };
        match (&file.header, file.items.is_empty()) {
            (Some((first, _)), _) => {
                let first = first.span;
                self.sink.push(
                    Diagnostic::new(Code::Duplicate, keyword, "a second `protocol`")
                        .note_at(first, "the first one"),
                );
            }
            (None, false) => self.sink.push(
                Diagnostic::new(Code::Misplaced, keyword, "`protocol` must come first")
                    .label("move this line to the top"),
            ),
            (None, true) => {}
        }
        file.header.get_or_insert((name, title));
        Ok(())
    }

    /// Parses one statement of a file.
    fn item(&mut self) -> Parse<Item<'a>> {
        let keyword = self.span();
        let word = self.word();
        if !BLOCKS.contains(&word) {
            // Only the first line outside any block is reported, as when the head of a block is missing. Further lines
            // are reported if their first word resembles the name of a block.
            if std::mem::replace(&mut self.outside_blocks, true) && nearest(word, BLOCKS).is_none()
            {
                return Err(ParseError);
            }
            let help = if self.sink.would_show(Code::Syntax, keyword) {
                suggestion(word, "block", BLOCKS.into_iter())
            } else {
                String::new()
            };
            let excerpt: String = self.slice(keyword).chars().take(40).collect();
            let diagnostic = Diagnostic::new(
                Code::Syntax,
                keyword,
                format!("expected a block, found `{excerpt}`"),
            )
            .label("no block begins like this")
            .note(help);
            self.sink.push(diagnostic);
            return Err(ParseError);
        }
        self.advance();
        Ok(match word {
            "line" => {
                self.production("line");
                let size = self.number("the number of bytes in a line")?;
                self.expect_word("bytes")?;
                Item::Line(size)
            }
            "channels" => {
                self.production("channels");
                Item::Channels(self.block(keyword, "`channels`", Self::channel)?)
            }
            "messages" => {
                self.production("messages");
                Item::Messages(self.block(keyword, "`messages`", Self::group)?)
            }
            "bounds" => {
                self.production("bounds");
                let bound = |p: &mut Self| {
                    Ok((
                        p.name("a message or `in_flight`")?,
                        p.number_or_size("the largest number in flight")?,
                    ))
                };
                Item::Bounds(self.block(keyword, "`bounds`", bound)?)
            }
            "remote" => Item::Remote(self.agent(keyword, true)?),
            "home" => Item::Home(self.agent(keyword, false)?),
            "use" => self.use_item()?,
            "node" => self.node(keyword)?,
            "system" if self.composes => self.joint_system(keyword)?,
            "system" => {
                self.production("system");
                let name = self.name("the name of the system")?;
                let part = |p: &mut Self| {
                    let begin = p.span();
                    if p.eat_keyword(KeywordContext::System, "parent any") {
                        return Ok(SystemItem::ParentAny(begin.to(p.last_span())));
                    }
                    let description = "an element of a system (`remotes`, `lines`, `parent any`, or a kind of remotes)";
                    Ok(SystemItem::Has(p.name(description)?, p.number("a number")?))
                };
                Item::System(name, self.block(keyword, "`system`", part)?)
            }
            "accesses" => {
                self.production("accesses");
                Item::Accesses(self.block(keyword, "`accesses`", Self::access_order)?)
            }
            "guarantee" => {
                self.production("guarantee");
                let guarantee = self.guarantee()?;
                Item::Guarantee(guarantee, keyword.to(self.last_span()))
            }
            _ => {
                self.production("invariant");
                let name = self.name("the name of the invariant")?;
                self.expect(Token::Colon, "`:`")?;
                self.part_count = 0;
                let claim = self.claim()?;
                Item::Invariant {
                    name,
                    claim,
                    span: keyword.to(self.last_span()),
                }
            }
        })
    }

    /// `MODEL`, `none` or `none, MODEL`.
    fn guarantee(&mut self) -> Parse<Guarantee> {
        let models = Model::ALL.map(|(model, name)| (name, Some(model)));
        if self.eat_word("none") {
            let model = match self.eat(Token::Comma) {
                true => self.choice(&models, "a memory model")?,
                false => None,
            };
            return Ok(Guarantee {
                coherent: false,
                model,
            });
        }
        let words: Vec<_> = models.into_iter().chain([("none", None)]).collect();
        let model = self.choice(&words, "a memory model")?;
        Ok(Guarantee {
            coherent: true,
            model,
        })
    }

    /// Parses the program order of one access.
    fn access_order(&mut self) -> Parse<AccessOrder<'a>> {
        self.production("kept");
        let access = self.name("an access")?;
        let mut clauses = Vec::new();
        loop {
            let is_before = self.word() == "before";
            if !is_before && !clauses.is_empty() && self.word() != "after" {
                return Ok(AccessOrder { access, clauses });
            }
            if !self.eat_word("before") && !self.eat_word("after") {
                return self.expected("`after` or `before`");
            }
            let mut accesses = Vec::new();
            if !self.eat_word("all") {
                accesses.push(self.name("an access or `all`")?);
                while self.peek() == Token::Word && !["after", "before"].contains(&self.word()) {
                    accesses.push(self.name("an access")?);
                }
            }
            self.eat(Token::Comma);
            clauses.push((is_before, accesses));
        }
    }
}

/// Comparison operators of claims and expressions.
const COMPARISONS: [(Token, Comparison, Operator); 6] = [
    (Token::Equal, Comparison::Equal, Operator::Equal),
    (Token::NotEqual, Comparison::NotEqual, Operator::NotEqual),
    (Token::Less, Comparison::Less, Operator::Less),
    (
        Token::LessOrEqual,
        Comparison::LessOrEqual,
        Operator::LessOrEqual,
    ),
    (Token::Greater, Comparison::Greater, Operator::Greater),
    (
        Token::GreaterOrEqual,
        Comparison::GreaterOrEqual,
        Operator::GreaterOrEqual,
    ),
];

/// Words after `stall`.
const STALLS: [(&str, Stall); 2] = [("proven", Stall::Proven), ("possible", Stall::Possible)];
/// Words after `under lock`.
const LOCK_CONFLICTS: [(&str, LockConflict); 2] = [
    ("refuse", LockConflict::Refuse),
    ("wait", LockConflict::Wait),
];
/// First words after `accept local`.
const ACCEPTANCES: [(&str, Acceptance); 3] = [
    ("always", Acceptance::Always),
    ("between", Acceptance::BetweenRequests),
    ("when", Acceptance::WhenIdle),
];
