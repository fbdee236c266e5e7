//! Recursive-descent parser: the file, declarations, types and rules.
//!
//! After an error the parser continues behind the next `;` or with the next rule, so that all errors of a file are
//! found.

mod expression;
mod statement;

use super::diagnostic::Sink;
use super::lexer::{string_contents, Keyword, Token};
use super::Dialect;
use crate::ast::{
    Decl, Expr, Function, Item, Name, Parameter, Property, PropertyKind, Rule, RuleKind, TypeExpr,
    TypeKind,
};
use cohkit_diagnostics::Span;
use std::rc::Rc;

/// Marker of an error that has been reported.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReportedError;

/// Result of a production: the syntax node, or the marker of a reported error.
type ParseResult<T> = Result<T, ReportedError>;

/// Maximum nesting depth of a text that can be read on a stack of any usual size, in levels.
pub(super) const MAX_SHALLOW_DEPTH: u32 = 300;

/// Maximum nesting depth of a text that is read on a large stack, in levels.
pub(super) const MAX_DEPTH: u32 = 10_000;

/// Recursive-descent parser of one text. Each production consumes its tokens, or reports an error and returns
/// [`ReportedError`].
pub(super) struct Parser<'t, 's> {
    /// The whole text, to which the spans of tokens refer.
    text: &'t str,
    /// All tokens; the last one is [`Token::End`].
    tokens: &'s [(Token, Span)],
    /// Index of the current token.
    position: usize,
    /// Dialect whose rules apply.
    dialect: Dialect,
    /// Receiver of diagnostics.
    sink: &'s mut Sink,
    /// Current nesting depth of types, rules, statements and expressions.
    depth: u32,
    /// Maximum nesting depth, in levels.
    max_depth: u32,
    /// True if the text exceeds `max_depth`.
    pub is_too_deep: bool,
}

impl<'t, 's> Parser<'t, 's> {
    /// Creates a parser at the first token. `tokens` ends with [`Token::End`].
    pub fn new(
        text: &'t str,
        tokens: &'s [(Token, Span)],
        dialect: Dialect,
        sink: &'s mut Sink,
        max_depth: u32,
    ) -> Self {
        Parser {
            text,
            tokens,
            position: 0,
            dialect,
            sink,
            depth: 0,
            max_depth,
            is_too_deep: false,
        }
    }

    /// Current token.
    fn token(&self) -> Token {
        self.tokens[self.position].0
    }

    /// Returns the token that is `offset` tokens after the current one, or the last token.
    fn peek_token(&self, offset: usize) -> Token {
        let last = self.tokens.len() - 1;
        self.tokens[(self.position + offset).min(last)].0
    }

    /// Position of the current token.
    fn span(&self) -> Span {
        self.tokens[self.position].1
    }

    /// Position of the previous token.
    fn previous_span(&self) -> Span {
        self.tokens[self.position.saturating_sub(1)].1
    }

    /// Returns the current token and advances to the next one. The parser never moves beyond the last token.
    fn advance(&mut self) -> (Token, Span) {
        let token = self.tokens[self.position];
        self.position = (self.position + 1).min(self.tokens.len() - 1);
        token
    }

    /// Text at a position.
    fn text_of(&self, span: Span) -> &'t str {
        &self.text[span.start as usize..span.end as usize]
    }

    /// True if the current token is this one.
    fn is_token(&self, token: Token) -> bool {
        self.token() == token
    }

    /// True if the current token is this keyword.
    fn is_key(&self, keyword: Keyword) -> bool {
        self.token() == Token::Keyword(keyword)
    }

    /// Consumes the current token if it is this one. Returns true if it was.
    fn accept(&mut self, token: Token) -> bool {
        let matches = self.is_token(token);
        if matches {
            self.advance();
        }
        matches
    }

    /// Consumes the current token if it is this keyword. Returns true if it was.
    fn accept_key(&mut self, keyword: Keyword) -> bool {
        self.accept(Token::Keyword(keyword))
    }

    /// Reports that the current token is not `description`, a noun phrase.
    fn report_expected(&mut self, description: &str) -> ReportedError {
        let span = self.span();
        match self.token() {
            Token::End => self.sink.error(
                span,
                format!("the file ends where {description} is expected"),
            ),
            _ => {
                let token_text = self.text_of(span);
                let token_text: String = token_text.chars().take(40).collect();
                self.sink.error(
                    span,
                    format!("`{token_text}` found where {description} is expected"),
                )
            }
        }
        .label(format!("expected {description}"));
        ReportedError
    }

    /// Consumes this token and returns its position, or reports that `description` is expected.
    fn expect(&mut self, token: Token, description: &str) -> ParseResult<Span> {
        match self.is_token(token) {
            true => Ok(self.advance().1),
            false => Err(self.report_expected(description)),
        }
    }

    /// Consumes this keyword and returns its position, or reports that it is expected.
    fn expect_key(&mut self, keyword: Keyword) -> ParseResult<Span> {
        self.expect(Token::Keyword(keyword), &format!("`{}`", keyword.text()))
    }

    /// Reports an error if a construct exists only in one dialect and the text is in the other.
    fn require_dialect(&mut self, dialect: Dialect, span: Span, construct: &str) {
        let (other_dialect, name) = match dialect {
            Dialect::CMurphi => (Dialect::Rumur, "Rumur"),
            _ => (Dialect::CMurphi, "CMurphi"),
        };
        if self.dialect == other_dialect {
            self.sink.error(span, format!("{name} has no {construct}"));
        }
    }

    /// Reports that something exceeds the maximum depth.
    fn report_depth(&mut self, span: Span, message: &str) -> ReportedError {
        self.is_too_deep = true;
        self.sink
            .error(span, message)
            .label(format!("at most {} levels", self.max_depth));
        ReportedError
    }

    /// Parses one level deeper, or reports that the text is nested too deeply.
    fn nested<T>(&mut self, f: impl FnOnce(&mut Self) -> ParseResult<T>) -> ParseResult<T> {
        if self.depth == self.max_depth {
            let span = self.span();
            return Err(self.report_depth(span, "this is nested too deeply"));
        }
        self.depth += 1;
        let result = f(self);
        self.depth -= 1;
        result
    }

    /// Returns true if a name is `offset` tokens ahead. A keyword that only one dialect reserves may be a name.
    fn is_name(&self, offset: usize) -> bool {
        match self.peek_token(offset) {
            Token::Identifier => true,
            Token::Keyword(keyword) => !keyword.is_reserved(),
            _ => false,
        }
    }

    /// Parses a name. Reports an error if the dialect reserves the word, and accepts the name nevertheless.
    fn parse_name(&mut self, description: &str) -> ParseResult<Name<'t>> {
        if !self.is_name(0) {
            if let Token::Keyword(keyword) = self.token() {
                let span = self.span();
                self.sink
                    .error(
                        span,
                        format!(
                            "`{}` found where {description} is expected",
                            self.text_of(span)
                        ),
                    )
                    .label(format!("`{}` is a keyword", keyword.text()));
                return Err(ReportedError);
            }
            return Err(self.report_expected(description));
        }
        let (token, span) = self.advance();
        let text = self.text_of(span);
        if let Token::Keyword(keyword) = token {
            let reserving_dialect = match keyword {
                Keyword::Assume | Keyword::Cover | Keyword::Liveness => Dialect::Rumur,
                _ => Dialect::CMurphi,
            };
            if self.dialect == reserving_dialect {
                self.sink.error(
                    span,
                    format!(
                        "`{text}` found where {description} is expected; it is a keyword of this dialect"
                    ),
                );
            }
        } else if self.dialect == Dialect::CMurphi {
            let reserved_words = super::lexer::CMURPHI_RESERVED.split_whitespace();
            if reserved_words
                .into_iter()
                .any(|w| w.eq_ignore_ascii_case(text))
                && !text.eq_ignore_ascii_case("undefined")
            {
                self.sink
                    .error(span, format!("`{text}` is a reserved word of CMurphi"));
            }
        }
        Ok(Name { text, span })
    }

    /// Names separated by commas.
    fn parse_names(&mut self, description: &str) -> ParseResult<Vec<Name<'t>>> {
        let mut names = vec![self.parse_name(description)?];
        while self.accept(Token::Comma) {
            if !self.is_name(0) {
                let span = self.previous_span();
                self.require_dialect(Dialect::Rumur, span, "comma behind the last name");
                break;
            }
            names.push(self.parse_name(description)?);
        }
        Ok(names)
    }

    /// Consumes semicolons between declarations, functions or rules. Reports a missing one if the dialect is CMurphi's
    /// and `is_required` is true. Rumur needs none of them.
    fn parse_semicolons(&mut self, is_required: bool) {
        let span = self.span();
        let mut count = 0;
        while self.accept(Token::Semicolon) {
            count += 1;
        }
        if self.dialect == Dialect::CMurphi && count == 0 && is_required {
            self.sink.error(span, "CMurphi needs a `;` here");
        }
        if count > 1 {
            let span = self.previous_span();
            self.require_dialect(Dialect::Rumur, span, "second `;` here");
        }
    }

    /// Consumes the end of a block: `end` or one of `keywords`, of which the first names the block in messages.
    fn parse_end(&mut self, keywords: &[Keyword]) -> ParseResult<()> {
        if let Token::Keyword(keyword) = self.token() {
            if keyword == Keyword::End || keywords.contains(&keyword) {
                self.advance();
                return Ok(());
            }
        }
        let end_keyword = keywords.first().map_or("end", |keyword| keyword.text());
        Err(self.report_expected(&format!("`end` or `{end_keyword}`")))
    }

    /// Parses all items of the text. Items with an error are missing; the sink holds the errors.
    pub fn parse_file(&mut self) -> Vec<Item<'t>> {
        let mut items = Vec::new();
        // The latest section so far, in CMurphi's order.
        let mut section = 0;
        self.skip_semicolons();
        while !self.is_token(Token::End) {
            let (start, position) = (self.span(), self.position);
            let result = self.parse_item(&mut items);
            let item_section = match items.last() {
                Some(Item::Decl(_)) | None => 0,
                Some(Item::Function(_)) => 1,
                Some(Item::Rule(_)) => 2,
            };
            if result.is_err() {
                self.recover(position);
            } else if item_section < section && self.dialect == Dialect::CMurphi {
                let section_names = ["declarations", "functions", "rules"];
                self.sink
                    .error(start, format!("{} behind {}", section_names[item_section], section_names[section]))
                    .note("in CMurphi all declarations come before all functions, and all functions before all rules");
            }
            section = section.max(item_section);
        }
        items
    }

    /// Consumes any number of semicolons.
    fn skip_semicolons(&mut self) {
        while self.accept(Token::Semicolon) {}
    }

    /// Skips to the start of a declaration, a function or a rule after an error. `start` is the index of the token at
    /// which the failed item began; at least one token is skipped.
    fn recover(&mut self, start: usize) {
        self.depth = 0;
        if self.position == start {
            self.advance();
        }
        loop {
            match self.token() {
                Token::End => return,
                Token::Keyword(
                    Keyword::Rule
                    | Keyword::Ruleset
                    | Keyword::Startstate
                    | Keyword::Invariant
                    | Keyword::Function
                    | Keyword::Procedure
                    | Keyword::Const
                    | Keyword::Type
                    | Keyword::Var,
                ) => return,
                _ => self.advance(),
            };
        }
    }

    /// Parses a section of declarations, a function or a rule, and adds it to `items`. Declarations before an error
    /// are added too.
    fn parse_item(&mut self, items: &mut Vec<Item<'t>>) -> ParseResult<()> {
        match self.token() {
            Token::Keyword(Keyword::Const | Keyword::Type | Keyword::Var) => {
                let mut decls = Vec::new();
                let result = self.parse_section(&mut decls);
                items.extend(decls.into_iter().map(Item::Decl));
                result
            }
            Token::Keyword(Keyword::Function | Keyword::Procedure) => {
                let function = self.parse_function()?;
                items.push(Item::Function(function));
                self.parse_semicolons(true);
                Ok(())
            }
            Token::Keyword(Keyword::ExternFun | Keyword::ExternProc) => {
                let span = self.span();
                self.sink
                    .error(span, "functions in C++ are not supported")
                    .label("declared here");
                Err(ReportedError)
            }
            Token::Keyword(Keyword::Pctl) => {
                let span = self.span();
                self.sink
                    .error(span, "probabilistic properties are not supported");
                Err(ReportedError)
            }
            _ => {
                let rule = self.parse_rule()?;
                items.push(Item::Rule(rule));
                let is_last = self.is_token(Token::End);
                self.parse_semicolons(!is_last);
                Ok(())
            }
        }
    }

    /// Parses the declarations in front of a body.
    fn parse_locals(&mut self) -> ParseResult<Vec<Decl<'t>>> {
        let mut decls = Vec::new();
        while let Token::Keyword(Keyword::Const | Keyword::Type | Keyword::Var) = self.token() {
            self.parse_section(&mut decls)?;
        }
        Ok(decls)
    }

    /// Parses a section: `const`, `type` or `var` with its declarations, which are added to `decls`.
    fn parse_section(&mut self, decls: &mut Vec<Decl<'t>>) -> ParseResult<()> {
        let (section_token, _) = self.advance();
        while self.is_name(0) && matches!(self.peek_token(1), Token::Colon | Token::Comma) {
            decls.push(match section_token {
                Token::Keyword(Keyword::Const) => {
                    let names = self.parse_declared_names("a constant's name")?;
                    Decl::Const(names, self.parse_expr()?)
                }
                Token::Keyword(Keyword::Type) => {
                    let names = self.parse_declared_names("a type's name")?;
                    Decl::Type(names, self.parse_type_expr()?)
                }
                _ => {
                    let names = self.parse_names("a variable's name")?;
                    self.expect(Token::Colon, "`:`")?;
                    Decl::Var(names, self.parse_type_expr()?)
                }
            });
            self.parse_semicolons(true);
        }
        Ok(())
    }

    /// Parses the names of constants or types in front of a colon, and the colon. Only Rumur allows several.
    fn parse_declared_names(&mut self, description: &str) -> ParseResult<Vec<Name<'t>>> {
        let names = self.parse_names(description)?;
        if let [_, second, ..] = names[..] {
            self.require_dialect(
                Dialect::Rumur,
                second.span,
                "several names before one `:` here",
            );
        }
        self.expect(Token::Colon, "`:`")?;
        Ok(names)
    }

    /// Parses a type, one nesting level deeper.
    fn parse_type_expr(&mut self) -> ParseResult<TypeExpr<'t>> {
        self.nested(Self::parse_type_expr_unnested)
    }

    /// Parses a type at the current nesting depth.
    fn parse_type_expr_unnested(&mut self) -> ParseResult<TypeExpr<'t>> {
        let start = self.span();
        let kind = match self.token() {
            Token::Keyword(Keyword::Boolean) => {
                self.advance();
                TypeKind::Boolean
            }
            Token::Keyword(Keyword::Real) => {
                self.sink.error(start, "real numbers are not supported");
                self.advance();
                if self.accept(Token::OpenParenthesis) {
                    while !matches!(
                        self.token(),
                        Token::CloseParenthesis | Token::Semicolon | Token::End
                    ) {
                        self.advance();
                    }
                    self.accept(Token::CloseParenthesis);
                }
                TypeKind::Invalid
            }
            Token::Keyword(Keyword::Enum) => {
                self.advance();
                self.expect(Token::OpenBrace, "`{`")?;
                let names = self.parse_names("a value's name")?;
                self.expect(Token::CloseBrace, "`}`")?;
                TypeKind::Enum(names)
            }
            Token::Keyword(Keyword::Scalarset) => {
                self.advance();
                self.expect(Token::OpenParenthesis, "`(`")?;
                let size = self.parse_expr()?;
                self.expect(Token::CloseParenthesis, "`)`")?;
                TypeKind::Scalarset(Box::new(size))
            }
            Token::Keyword(Keyword::Union) => self.parse_union()?,
            Token::Keyword(Keyword::Array) => {
                self.advance();
                self.expect(Token::OpenBracket, "`[`")?;
                let index = self.parse_type_expr()?;
                self.expect(Token::CloseBracket, "`]`")?;
                self.expect_key(Keyword::Of)?;
                TypeKind::Array(Box::new(index), Box::new(self.parse_type_expr()?))
            }
            Token::Keyword(Keyword::Multiset) if self.peek_token(1) == Token::OpenBracket => {
                self.advance();
                self.advance();
                let capacity = self.parse_expr()?;
                self.expect(Token::CloseBracket, "`]`")?;
                self.expect_key(Keyword::Of)?;
                self.require_dialect(Dialect::CMurphi, start, "multisets");
                TypeKind::Multiset(Box::new(capacity), Box::new(self.parse_type_expr()?))
            }
            Token::Keyword(Keyword::Record) => self.parse_record()?,
            Token::Identifier | Token::Keyword(_)
                if self.is_name(0) && !self.name_begins_range() =>
            {
                TypeKind::Named(self.parse_name("a type")?)
            }
            Token::Keyword(_) => return Err(self.report_expected("a type")),
            _ => {
                let lo = self.parse_expr()?;
                self.expect(Token::DotDot, "`..`")?;
                let hi = self.parse_expr()?;
                TypeKind::Range(Box::new(lo), Box::new(hi))
            }
        };
        Ok(TypeExpr {
            span: start.to(self.previous_span()),
            kind,
        })
    }

    /// Parses `union { types }`. Rumur reads unions, but cannot check them.
    fn parse_union(&mut self) -> ParseResult<TypeKind<'t>> {
        let start = self.span();
        self.advance();
        self.expect(Token::OpenBrace, "`{`")?;
        let mut members = vec![self.parse_type_expr()?];
        while self.accept(Token::Comma) && !self.is_token(Token::CloseBrace) {
            members.push(self.parse_type_expr()?);
        }
        let end = self.expect(Token::CloseBrace, "`}`")?;
        self.require_dialect(
            Dialect::CMurphi,
            start.to(end),
            "unions that can be checked",
        );
        Ok(TypeKind::Union(members))
    }

    /// Parses `record` with its fields.
    fn parse_record(&mut self) -> ParseResult<TypeKind<'t>> {
        self.advance();
        let mut fields = Vec::new();
        while self.is_name(0) {
            let names = self.parse_names("a field's name")?;
            self.expect(Token::Colon, "`:`")?;
            fields.push((names, self.parse_type_expr()?));
            let is_last = matches!(
                self.token(),
                Token::Keyword(Keyword::End | Keyword::EndRecord)
            );
            self.parse_semicolons(!is_last);
        }
        self.parse_end(&[Keyword::EndRecord])?;
        Ok(TypeKind::Record(fields))
    }

    /// True if the current name begins a range's lower bound.
    fn name_begins_range(&self) -> bool {
        let next = self.peek_token(1);
        next == Token::DotDot || expression::is_operator(next)
    }

    /// Parses a function or procedure.
    fn parse_function(&mut self) -> ParseResult<Function<'t>> {
        let is_procedure = self.advance().0 == Token::Keyword(Keyword::Procedure);
        let name = self.parse_name("a function's name")?;
        self.expect(Token::OpenParenthesis, "`(`")?;
        let mut parameters = Vec::new();
        while !self.is_token(Token::CloseParenthesis) {
            let is_variable = self.accept_key(Keyword::Var);
            let names = self.parse_names("a parameter's name")?;
            self.expect(Token::Colon, "`:`")?;
            let ty = Rc::new(self.parse_type_expr()?);
            parameters.extend(names.into_iter().map(|name| Parameter {
                name,
                is_variable,
                ty: ty.clone(),
            }));
            if self.accept(Token::Comma) {
                let span = self.previous_span();
                self.require_dialect(
                    Dialect::Rumur,
                    span,
                    "comma between parameters of two types",
                );
            } else if !self.accept(Token::Semicolon) {
                if !self.is_key(Keyword::Var) && !self.is_name(0) {
                    break;
                }
                let span = self.span();
                self.require_dialect(
                    Dialect::Rumur,
                    span,
                    "parameters without a `;` between them",
                );
            }
        }
        self.expect(Token::CloseParenthesis, "`)`")?;
        let mut result = None;
        if self.accept(Token::Colon) {
            result = Some(self.parse_type_expr()?);
            if is_procedure {
                let span = name.span;
                self.sink.error(span, "a procedure has no result");
            }
        } else if !is_procedure {
            self.require_dialect(Dialect::Rumur, name.span, "functions without a result");
        }
        self.parse_semicolons(true);
        let locals = self.parse_locals()?;
        self.accept_key(Keyword::Begin);
        let body = self.parse_block()?;
        let end_key = match is_procedure {
            true => Keyword::EndProcedure,
            false => Keyword::EndFunction,
        };
        if let Token::Keyword(keyword @ (Keyword::EndFunction | Keyword::EndProcedure)) =
            self.token()
        {
            if keyword != end_key {
                let span = self.span();
                let mismatch = format!("`{}` for `{}`", keyword.text(), end_key.text());
                self.require_dialect(Dialect::Rumur, span, &mismatch);
            }
        }
        self.parse_end(&[end_key, Keyword::EndFunction, Keyword::EndProcedure])?;
        Ok(Function {
            name,
            parameters,
            result,
            locals,
            body,
        })
    }

    /// Parses rules up to `end` or one of `keywords`.
    fn parse_rules(&mut self, keywords: &[Keyword]) -> ParseResult<Vec<Rule<'t>>> {
        let mut rules = Vec::new();
        self.skip_semicolons();
        loop {
            if let Token::Keyword(keyword) = self.token() {
                if keyword == Keyword::End || keywords.contains(&keyword) {
                    self.advance();
                    return Ok(rules);
                }
            }
            if self.is_token(Token::End) {
                return Err(self.report_expected("`end`"));
            }
            rules.push(self.nested(Self::parse_rule)?);
            let is_last = matches!(self.token(), Token::Keyword(keyword) if keyword == Keyword::End || keywords.contains(&keyword));
            self.parse_semicolons(!is_last);
        }
    }

    /// Consumes a string, the name of a rule or property. Returns its contents; `None` if no string follows.
    fn parse_title(&mut self) -> Option<String> {
        (self.is_token(Token::String)).then(|| {
            let span = self.advance().1;
            string_contents(self.text_of(span))
        })
    }

    /// Parses a rule, a start state, a property, or a ruleset, alias or `choose` with its rules.
    fn parse_rule(&mut self) -> ParseResult<Rule<'t>> {
        let start = self.span();
        let kind = match self.token() {
            Token::Keyword(Keyword::Rule) => self.parse_simple_rule()?,
            Token::Keyword(Keyword::Startstate) => {
                self.advance();
                let title = self.parse_title();
                let locals = self.parse_locals()?;
                self.accept_key(Keyword::Begin);
                let body = self.parse_block()?;
                self.parse_end(&[Keyword::EndStartstate])?;
                RuleKind::Start {
                    title,
                    locals,
                    body,
                }
            }
            Token::Keyword(Keyword::Ruleset) => {
                self.advance();
                let quantifiers = self.parse_quantifiers()?;
                self.expect_do()?;
                RuleKind::Ruleset(quantifiers, self.parse_rules(&[Keyword::EndRuleset])?)
            }
            Token::Keyword(Keyword::Alias) => {
                self.advance();
                let aliases = self.parse_aliases()?;
                self.expect_do()?;
                RuleKind::Alias(aliases, self.parse_rules(&[Keyword::EndAlias])?)
            }
            Token::Keyword(Keyword::Choose) => {
                self.advance();
                self.require_dialect(Dialect::CMurphi, start, "`choose`");
                let name = self.parse_name("a name for a slot")?;
                self.expect(Token::Colon, "`:`")?;
                let multiset = self.parse_expr()?;
                self.expect_do()?;
                RuleKind::Choose(name, multiset, self.parse_rules(&[Keyword::EndChoose])?)
            }
            Token::Keyword(
                keyword @ (Keyword::Invariant
                | Keyword::Assert
                | Keyword::Assume
                | Keyword::Cover
                | Keyword::Liveness),
            ) => {
                if keyword == Keyword::Assert {
                    self.require_dialect(Dialect::Rumur, start, "`assert` beside rules");
                }
                RuleKind::Property(self.parse_property()?)
            }
            _ => {
                let description = "a declaration, a function, a rule, a start state or a property";
                return Err(self.report_expected(description));
            }
        };
        Ok(Rule { kind })
    }

    /// Consumes `do`, or reports that it is expected.
    fn expect_do(&mut self) -> ParseResult<()> {
        self.expect_key(Keyword::Do).map(drop)
    }

    /// Parses the aliases in front of `do`.
    fn parse_aliases(&mut self) -> ParseResult<Vec<(Name<'t>, Expr<'t>)>> {
        let mut aliases = Vec::new();
        loop {
            let name = self.parse_name("an alias")?;
            self.expect(Token::Colon, "`:`")?;
            aliases.push((name, self.parse_expr()?));
            if !self.accept(Token::Semicolon) && !self.accept(Token::Comma)
                || self.is_key(Keyword::Do)
            {
                return Ok(aliases);
            }
        }
    }

    /// Parses `rule` with its priority, title, guard and body.
    fn parse_simple_rule(&mut self) -> ParseResult<RuleKind<'t>> {
        self.advance();
        let priority = self.parse_priority();
        let title = self.parse_title();
        let has_guard = self.has_guard();
        let guard = match has_guard {
            true => {
                let guard = self.parse_expr()?;
                self.expect(Token::RuleArrow, "`==>`")?;
                Some(guard)
            }
            false => None,
        };
        let locals = self.parse_locals()?;
        let begin = self.span();
        let has_begin = self.accept_key(Keyword::Begin);
        if !has_guard && !has_begin && self.dialect != Dialect::Any {
            self.sink
                .error(begin, "a rule without a guard needs `begin`")
                .note("neither CMurphi nor Rumur can distinguish its first statement from a guard");
        }
        let body = self.parse_block()?;
        self.parse_end(&[Keyword::EndRule])?;
        Ok(RuleKind::Rule {
            title,
            priority,
            guard,
            locals,
            body,
        })
    }

    /// Parses a number directly behind `rule`, with its position. If an operator follows, the number belongs to the
    /// guard instead, and the result is `None`.
    fn parse_priority(&mut self) -> Option<(i64, Span)> {
        let start = self.span();
        let sign_count = self.is_token(Token::Minus) as usize;
        let is_before_rule = matches!(
            self.peek_token(sign_count + 1),
            Token::String
                | Token::Identifier
                | Token::OpenParenthesis
                | Token::Not
                | Token::Keyword(_)
        );
        if self.peek_token(sign_count) != Token::Number || !is_before_rule {
            return None;
        }
        if sign_count > 0 {
            self.advance();
        }
        let (_, span) = self.advance();
        let value = self.number_value(span).unwrap_or(0);
        self.require_dialect(Dialect::CMurphi, start.to(span), "priorities");
        Some((if sign_count > 0 { -value } else { value }, start.to(span)))
    }

    /// True if `==>` comes before any token that no guard contains.
    fn has_guard(&self) -> bool {
        for &(token, _) in &self.tokens[self.position..] {
            match token {
                Token::RuleArrow => return true,
                Token::End
                | Token::Keyword(
                    Keyword::Begin
                    | Keyword::Rule
                    | Keyword::Ruleset
                    | Keyword::Startstate
                    | Keyword::Invariant
                    | Keyword::Function
                    | Keyword::Procedure
                    | Keyword::Const
                    | Keyword::Type
                    | Keyword::Var
                    | Keyword::EndRule
                    | Keyword::EndRuleset
                    | Keyword::EndStartstate,
                ) => return false,
                _ => {}
            }
        }
        false
    }

    /// A property such as `invariant "name" claim`; the name may also follow the claim.
    fn parse_property(&mut self) -> ParseResult<Property<'t>> {
        let (token, start) = self.advance();
        let kind = match token {
            Token::Keyword(Keyword::Assume) => PropertyKind::Assume,
            Token::Keyword(Keyword::Cover) => PropertyKind::Cover,
            Token::Keyword(Keyword::Liveness) => PropertyKind::Liveness,
            _ => PropertyKind::Invariant,
        };
        if let (Token::Keyword(keyword), true) = (token, kind != PropertyKind::Invariant) {
            self.require_dialect(Dialect::Rumur, start, &format!("`{}`", keyword.text()));
        }
        let title_span = self.span();
        let mut title = self.parse_title();
        if title.is_some() && token == Token::Keyword(Keyword::Assert) {
            self.require_dialect(
                Dialect::Rumur,
                title_span,
                "message before the asserted condition",
            );
        }
        let claim = self.parse_expr()?;
        if title.is_none() {
            title = self.parse_title();
        }
        Ok(Property {
            kind,
            title,
            claim,
            span: start.to(self.previous_span()),
        })
    }
}
