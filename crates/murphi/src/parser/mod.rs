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

    fn token(&self) -> Token {
        self.tokens[self.position].0
    }

    /// Returns the token that is `offset` tokens after the current one, or the last token.
    fn peek_token(&self, offset: usize) -> Token {
        let last = self.tokens.len() - 1;
        self.tokens[(self.position + offset).min(last)].0
    }

    fn span(&self) -> Span {
        self.tokens[self.position].1
    }

    /// Position of the previous token.
    fn previous_span(&self) -> Span {
        self.tokens[self.position.saturating_sub(1)].1
    }

    /// Returns the current token and advances to the next one. The parser never moves beyond the last token.
    fn next(&mut self) -> (Token, Span) {
        let token = self.tokens[self.position];
        self.position = (self.position + 1).min(self.tokens.len() - 1);
        token
    }

    fn text_of(&self, span: Span) -> &'t str {
        &self.text[span.start as usize..span.end as usize]
    }

    fn is_token(&self, token: Token) -> bool {
        self.token() == token
    }

    fn is_key(&self, keyword: Keyword) -> bool {
        self.token() == Token::Keyword(keyword)
    }

    /// Consumes the current token if it is this one. Returns true if it was.
    fn accept(&mut self, token: Token) -> bool {
        let matches = self.is_token(token);
        if matches {
            self.next();
        }
        matches
    }

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
            true => Ok(self.next().1),
            false => Err(self.report_expected(description)),
        }
    }

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
    fn name(&mut self, description: &str) -> ParseResult<Name<'t>> {
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
        let (token, span) = self.next();
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
    fn names(&mut self, description: &str) -> ParseResult<Vec<Name<'t>>> {
        let mut names = vec![self.name(description)?];
        while self.accept(Token::Comma) {
            if !self.is_name(0) {
                let span = self.previous_span();
                self.require_dialect(Dialect::Rumur, span, "comma behind the last name");
                break;
            }
            names.push(self.name(description)?);
        }
        Ok(names)
    }

    /// Consumes semicolons between declarations, functions or rules. Reports a missing one if the dialect is CMurphi's
    /// and `is_required` is true. Rumur needs none of them.
    fn semicolons(&mut self, is_required: bool) {
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
    fn end(&mut self, keywords: &[Keyword]) -> ParseResult<()> {
        if let Token::Keyword(keyword) = self.token() {
            if keyword == Keyword::End || keywords.contains(&keyword) {
                self.next();
                return Ok(());
            }
        }
        let end_keyword = keywords.first().map_or("end", |keyword| keyword.text());
        Err(self.report_expected(&format!("`end` or `{end_keyword}`")))
    }

    /// Parses all items of the text. Items with an error are missing; the sink holds the errors.
    pub fn file(&mut self) -> Vec<Item<'t>> {
        let mut items = Vec::new();
        // The latest section so far, in CMurphi's order.
        let mut section = 0;
        self.skip_semicolons();
        while !self.is_token(Token::End) {
            let (start, position) = (self.span(), self.position);
            let result = self.item(&mut items);
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

    fn skip_semicolons(&mut self) {
        while self.accept(Token::Semicolon) {}
    }

    /// Skips to the start of a declaration, a function or a rule after an error. `start` is the index of the token at
    /// which the failed item began; at least one token is skipped.
    fn recover(&mut self, start: usize) {
        self.depth = 0;
        if self.position == start {
            self.next();
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
                _ => self.next(),
            };
        }
    }

    /// Parses a section of declarations, a function or a rule, and adds it to `items`. Declarations before an error
    /// are added too.
    fn item(&mut self, items: &mut Vec<Item<'t>>) -> ParseResult<()> {
        match self.token() {
            Token::Keyword(Keyword::Const | Keyword::Type | Keyword::Var) => {
                let mut decls = Vec::new();
                let result = self.section(&mut decls);
                items.extend(decls.into_iter().map(Item::Decl));
                result
            }
            Token::Keyword(Keyword::Function | Keyword::Procedure) => {
                let function = self.function()?;
                items.push(Item::Function(function));
                self.semicolons(true);
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
                let rule = self.rule()?;
                items.push(Item::Rule(rule));
                let is_last = self.is_token(Token::End);
                self.semicolons(!is_last);
                Ok(())
            }
        }
    }

    /// Parses the declarations in front of a body.
    fn locals(&mut self) -> ParseResult<Vec<Decl<'t>>> {
        let mut decls = Vec::new();
        while let Token::Keyword(Keyword::Const | Keyword::Type | Keyword::Var) = self.token() {
            self.section(&mut decls)?;
        }
        Ok(decls)
    }

    /// Parses a section: `const`, `type` or `var` with its declarations, which are added to `decls`.
    fn section(&mut self, decls: &mut Vec<Decl<'t>>) -> ParseResult<()> {
        let (section_token, _) = self.next();
        while self.is_name(0) && matches!(self.peek_token(1), Token::Colon | Token::Comma) {
            decls.push(match section_token {
                Token::Keyword(Keyword::Const) => {
                    let names = self.declared_names("a constant's name")?;
                    Decl::Const(names, self.expr()?)
                }
                Token::Keyword(Keyword::Type) => {
                    let names = self.declared_names("a type's name")?;
                    Decl::Type(names, self.type_expr()?)
                }
                _ => {
                    let names = self.names("a variable's name")?;
                    self.expect(Token::Colon, "`:`")?;
                    Decl::Var(names, self.type_expr()?)
                }
            });
            self.semicolons(true);
        }
        Ok(())
    }

    /// Parses the names of constants or types in front of a colon, and the colon. Only Rumur allows several.
    fn declared_names(&mut self, description: &str) -> ParseResult<Vec<Name<'t>>> {
        let names = self.names(description)?;
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

    fn type_expr(&mut self) -> ParseResult<TypeExpr<'t>> {
        self.nested(Self::type_expr_unnested)
    }

    /// Parses a type at the current nesting depth.
    fn type_expr_unnested(&mut self) -> ParseResult<TypeExpr<'t>> {
        let start = self.span();
        let kind = match self.token() {
            Token::Keyword(Keyword::Boolean) => {
                self.next();
                TypeKind::Boolean
            }
            Token::Keyword(Keyword::Real) => {
                self.sink.error(start, "real numbers are not supported");
                self.next();
                if self.accept(Token::OpenParenthesis) {
                    while !matches!(
                        self.token(),
                        Token::CloseParenthesis | Token::Semicolon | Token::End
                    ) {
                        self.next();
                    }
                    self.accept(Token::CloseParenthesis);
                }
                TypeKind::Invalid
            }
            Token::Keyword(Keyword::Enum) => {
                self.next();
                self.expect(Token::OpenBrace, "`{`")?;
                let names = self.names("a value's name")?;
                self.expect(Token::CloseBrace, "`}`")?;
                TypeKind::Enum(names)
            }
            Token::Keyword(Keyword::Scalarset) => {
                self.next();
                self.expect(Token::OpenParenthesis, "`(`")?;
                let size = self.expr()?;
                self.expect(Token::CloseParenthesis, "`)`")?;
                TypeKind::Scalarset(Box::new(size))
            }
            Token::Keyword(Keyword::Union) => self.union_type()?,
            Token::Keyword(Keyword::Array) => {
                self.next();
                self.expect(Token::OpenBracket, "`[`")?;
                let index = self.type_expr()?;
                self.expect(Token::CloseBracket, "`]`")?;
                self.expect_key(Keyword::Of)?;
                TypeKind::Array(Box::new(index), Box::new(self.type_expr()?))
            }
            Token::Keyword(Keyword::Multiset) if self.peek_token(1) == Token::OpenBracket => {
                self.next();
                self.next();
                let capacity = self.expr()?;
                self.expect(Token::CloseBracket, "`]`")?;
                self.expect_key(Keyword::Of)?;
                self.require_dialect(Dialect::CMurphi, start, "multisets");
                TypeKind::Multiset(Box::new(capacity), Box::new(self.type_expr()?))
            }
            Token::Keyword(Keyword::Record) => self.record_type()?,
            Token::Identifier | Token::Keyword(_)
                if self.is_name(0) && !self.name_begins_range() =>
            {
                TypeKind::Named(self.name("a type")?)
            }
            Token::Keyword(_) => return Err(self.report_expected("a type")),
            _ => {
                let lo = self.expr()?;
                self.expect(Token::DotDot, "`..`")?;
                let hi = self.expr()?;
                TypeKind::Range(Box::new(lo), Box::new(hi))
            }
        };
        Ok(TypeExpr {
            span: start.to(self.previous_span()),
            kind,
        })
    }

    /// Parses `union { types }`. Rumur reads unions, but cannot check them.
    fn union_type(&mut self) -> ParseResult<TypeKind<'t>> {
        let start = self.span();
        self.next();
        self.expect(Token::OpenBrace, "`{`")?;
        let mut members = vec![self.type_expr()?];
        while self.accept(Token::Comma) && !self.is_token(Token::CloseBrace) {
            members.push(self.type_expr()?);
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
    fn record_type(&mut self) -> ParseResult<TypeKind<'t>> {
        self.next();
        let mut fields = Vec::new();
        while self.is_name(0) {
            let names = self.names("a field's name")?;
            self.expect(Token::Colon, "`:`")?;
            fields.push((names, self.type_expr()?));
            let is_last = matches!(
                self.token(),
                Token::Keyword(Keyword::End | Keyword::EndRecord)
            );
            self.semicolons(!is_last);
        }
        self.end(&[Keyword::EndRecord])?;
        Ok(TypeKind::Record(fields))
    }

    /// True if the current name begins a range's lower bound.
    fn name_begins_range(&self) -> bool {
        let next = self.peek_token(1);
        next == Token::DotDot || expression::is_operator(next)
    }

    /// Parses a function or procedure.
    fn function(&mut self) -> ParseResult<Function<'t>> {
        let is_procedure = self.next().0 == Token::Keyword(Keyword::Procedure);
        let name = self.name("a function's name")?;
        self.expect(Token::OpenParenthesis, "`(`")?;
        let mut parameters = Vec::new();
        while !self.is_token(Token::CloseParenthesis) {
            let is_variable = self.accept_key(Keyword::Var);
            let names = self.names("a parameter's name")?;
            self.expect(Token::Colon, "`:`")?;
            let ty = Rc::new(self.type_expr()?);
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
            result = Some(self.type_expr()?);
            if is_procedure {
                let span = name.span;
                self.sink.error(span, "a procedure has no result");
            }
        } else if !is_procedure {
            self.require_dialect(Dialect::Rumur, name.span, "functions without a result");
        }
        self.semicolons(true);
        let locals = self.locals()?;
        self.accept_key(Keyword::Begin);
        let body = self.block()?;
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
        self.end(&[end_key, Keyword::EndFunction, Keyword::EndProcedure])?;
        Ok(Function {
            name,
            parameters,
            result,
            locals,
            body,
        })
    }

    /// Parses rules up to `end` or one of `keywords`.
    fn rules(&mut self, keywords: &[Keyword]) -> ParseResult<Vec<Rule<'t>>> {
        let mut rules = Vec::new();
        self.skip_semicolons();
        loop {
            if let Token::Keyword(keyword) = self.token() {
                if keyword == Keyword::End || keywords.contains(&keyword) {
                    self.next();
                    return Ok(rules);
                }
            }
            if self.is_token(Token::End) {
                return Err(self.report_expected("`end`"));
            }
            rules.push(self.nested(Self::rule)?);
            let is_last = matches!(self.token(), Token::Keyword(keyword) if keyword == Keyword::End || keywords.contains(&keyword));
            self.semicolons(!is_last);
        }
    }

    /// Consumes a string, the name of a rule or property. Returns its contents; `None` if no string follows.
    fn title(&mut self) -> Option<String> {
        (self.is_token(Token::String)).then(|| {
            let span = self.next().1;
            string_contents(self.text_of(span))
        })
    }

    /// Parses a rule, a start state, a property, or a ruleset, alias or `choose` with its rules.
    fn rule(&mut self) -> ParseResult<Rule<'t>> {
        let start = self.span();
        let kind = match self.token() {
            Token::Keyword(Keyword::Rule) => self.simple_rule()?,
            Token::Keyword(Keyword::Startstate) => {
                self.next();
                let title = self.title();
                let locals = self.locals()?;
                self.accept_key(Keyword::Begin);
                let body = self.block()?;
                self.end(&[Keyword::EndStartstate])?;
                RuleKind::Start {
                    title,
                    locals,
                    body,
                }
            }
            Token::Keyword(Keyword::Ruleset) => {
                self.next();
                let quantifiers = self.quantifiers()?;
                self.expect_do()?;
                RuleKind::Ruleset(quantifiers, self.rules(&[Keyword::EndRuleset])?)
            }
            Token::Keyword(Keyword::Alias) => {
                self.next();
                let aliases = self.aliases()?;
                self.expect_do()?;
                RuleKind::Alias(aliases, self.rules(&[Keyword::EndAlias])?)
            }
            Token::Keyword(Keyword::Choose) => {
                self.next();
                self.require_dialect(Dialect::CMurphi, start, "`choose`");
                let name = self.name("a name for a slot")?;
                self.expect(Token::Colon, "`:`")?;
                let multiset = self.expr()?;
                self.expect_do()?;
                RuleKind::Choose(name, multiset, self.rules(&[Keyword::EndChoose])?)
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
                RuleKind::Property(self.property()?)
            }
            _ => {
                let description = "a declaration, a function, a rule, a start state or a property";
                return Err(self.report_expected(description));
            }
        };
        Ok(Rule { kind })
    }

    fn expect_do(&mut self) -> ParseResult<()> {
        self.expect_key(Keyword::Do).map(drop)
    }

    /// Parses the aliases in front of `do`.
    fn aliases(&mut self) -> ParseResult<Vec<(Name<'t>, Expr<'t>)>> {
        let mut aliases = Vec::new();
        loop {
            let name = self.name("an alias")?;
            self.expect(Token::Colon, "`:`")?;
            aliases.push((name, self.expr()?));
            if !self.accept(Token::Semicolon) && !self.accept(Token::Comma)
                || self.is_key(Keyword::Do)
            {
                return Ok(aliases);
            }
        }
    }

    /// Parses `rule` with its priority, title, guard and body.
    fn simple_rule(&mut self) -> ParseResult<RuleKind<'t>> {
        self.next();
        let priority = self.priority();
        let title = self.title();
        let has_guard = self.guard_follows();
        let guard = match has_guard {
            true => {
                let guard = self.expr()?;
                self.expect(Token::RuleArrow, "`==>`")?;
                Some(guard)
            }
            false => None,
        };
        let locals = self.locals()?;
        let begin = self.span();
        let has_begin = self.accept_key(Keyword::Begin);
        if !has_guard && !has_begin && self.dialect != Dialect::Any {
            self.sink
                .error(begin, "a rule without a guard needs `begin`")
                .note("neither CMurphi nor Rumur can distinguish its first statement from a guard");
        }
        let body = self.block()?;
        self.end(&[Keyword::EndRule])?;
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
    fn priority(&mut self) -> Option<(i64, Span)> {
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
            self.next();
        }
        let (_, span) = self.next();
        let value = self.number(span).unwrap_or(0);
        self.require_dialect(Dialect::CMurphi, start.to(span), "priorities");
        Some((if sign_count > 0 { -value } else { value }, start.to(span)))
    }

    /// True if `==>` comes before any token that no guard contains.
    fn guard_follows(&self) -> bool {
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
    fn property(&mut self) -> ParseResult<Property<'t>> {
        let (token, start) = self.next();
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
        let mut title = self.title();
        if title.is_some() && token == Token::Keyword(Keyword::Assert) {
            self.require_dialect(
                Dialect::Rumur,
                title_span,
                "message before the asserted condition",
            );
        }
        let claim = self.expr()?;
        if title.is_none() {
            title = self.title();
        }
        Ok(Property {
            kind,
            title,
            claim,
            span: start.to(self.previous_span()),
        })
    }
}
