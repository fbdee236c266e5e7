//! Parser of statements.
//!
//! Each function parses one production, from the current token on:
//!
//! ```text
//! block = { statement `;` }
//! if = `if` expr `then` block { `elsif` expr `then` block } [ `else` block ] `endif`
//! switch = `switch` expr { `case` expr { `,` expr } `:` block } [ `else` block ] `endswitch`
//! for = `for` quantifiers (`do` | `:`) block `endfor`
//! while = `while` expr `do` block `endwhile`
//! alias = `alias` aliases `do` block `endalias`
//! ```
//!
//! The last `;` of a block is optional, and plain `end` closes any block. An error ends the current statement only, so
//! that all errors of a file are reported.

use super::{ParseResult, Parser, ReportedError};
use crate::ast::{Block, Stmt, StmtKind};
use crate::lexer::{Keyword, Token};
use crate::Dialect;

impl<'t> Parser<'t, '_> {
    /// Parses statements up to the end of their block.
    pub(super) fn parse_block(&mut self) -> ParseResult<Block<'t>> {
        self.nested(Self::parse_block_unnested)
    }

    /// As [`Parser::parse_block`], without counting a nesting level.
    fn parse_block_unnested(&mut self) -> ParseResult<Block<'t>> {
        let mut block = Vec::new();
        loop {
            self.skip_semicolons();
            if self.is_at_block_end() {
                return Ok(block);
            }
            let (start, depth) = (self.position, self.depth);
            match self.parse_stmt() {
                Ok(stmt) => block.push(stmt),
                Err(ReportedError) => {
                    self.depth = depth;
                    if !self.recover_stmt(start) {
                        return Err(ReportedError);
                    }
                    continue;
                }
            }
            if !self.is_token(Token::Semicolon) && !self.is_at_block_end() {
                return Err(self.report_expected("`;`"));
            }
        }
    }

    /// True if the current token ends a block.
    fn is_at_block_end(&self) -> bool {
        match self.token() {
            Token::End => true,
            Token::Keyword(keyword) => {
                keyword.is_reserved() && keyword.text().starts_with("end")
                    || matches!(keyword, Keyword::Else | Keyword::Elsif | Keyword::Case)
            }
            _ => false,
        }
    }

    /// Skips to the next `;` after an error in the statement that begins at token `start`. At least one token is
    /// skipped, so that parsing terminates. Returns false if the body ends first.
    fn recover_stmt(&mut self, start: usize) -> bool {
        if self.position == start {
            self.advance();
        }
        loop {
            match self.token() {
                Token::Semicolon => return true,
                Token::End
                | Token::Keyword(
                    Keyword::Rule
                    | Keyword::Ruleset
                    | Keyword::Startstate
                    | Keyword::Invariant
                    | Keyword::Function
                    | Keyword::Procedure
                    | Keyword::EndRule
                    | Keyword::EndStartstate
                    | Keyword::EndFunction
                    | Keyword::EndProcedure
                    | Keyword::EndRuleset,
                ) => return false,
                _ => self.advance(),
            };
        }
    }

    /// Parses a statement with its position.
    fn parse_stmt(&mut self) -> ParseResult<Stmt<'t>> {
        let start = self.span();
        let kind = self.parse_stmt_kind()?;
        Ok(Stmt {
            span: start.to(self.previous_span()),
            kind,
        })
    }

    /// Parses a statement without its position.
    fn parse_stmt_kind(&mut self) -> ParseResult<StmtKind<'t>> {
        let Token::Keyword(keyword) = self.token() else {
            return self.parse_assignment_or_call();
        };
        // A keyword that only one dialect reserves is a name where it is used as one.
        let is_used_as_name = matches!(
            self.peek_token(1),
            Token::Assign | Token::Dot | Token::OpenBracket
        );
        if !keyword.is_reserved() && is_used_as_name {
            return self.parse_assignment_or_call();
        }
        let start = self.span();
        match keyword {
            Keyword::If => self.parse_if(),
            Keyword::Switch => self.parse_switch(),
            Keyword::For => self.parse_for(),
            Keyword::While => self.parse_while(),
            Keyword::Alias => self.parse_alias_block(),
            Keyword::Assert | Keyword::Invariant | Keyword::Assume | Keyword::Cover => {
                if keyword == Keyword::Invariant {
                    self.require_dialect(Dialect::Rumur, start, "`invariant` among statements");
                }
                self.parse_property().map(StmtKind::Property)
            }
            Keyword::Liveness => {
                self.sink
                    .error(
                        start,
                        "`liveness` is a property of all states, not a statement",
                    )
                    .note("put it beside the rules");
                self.advance();
                Err(ReportedError)
            }
            Keyword::Error => {
                self.advance();
                let title = self.parse_title();
                let message = title.ok_or_else(|| self.report_expected("a message in quotes"))?;
                Ok(StmtKind::Error(message))
            }
            Keyword::Put => {
                self.advance();
                match self.parse_title() {
                    Some(_) => Ok(StmtKind::Put(None)),
                    None => Ok(StmtKind::Put(Some(self.parse_expr()?))),
                }
            }
            Keyword::Return => {
                self.advance();
                let has_no_value = self.is_token(Token::Semicolon) || self.is_at_block_end();
                let value = if has_no_value {
                    None
                } else {
                    Some(self.parse_expr()?)
                };
                Ok(StmtKind::Return(value))
            }
            Keyword::Undefine => {
                self.advance();
                Ok(StmtKind::Undefine(self.parse_postfix()?))
            }
            Keyword::Clear => {
                self.advance();
                Ok(StmtKind::Clear(self.parse_postfix()?))
            }
            Keyword::MultisetAdd | Keyword::MultisetRemove => self.parse_multiset_stmt(keyword),
            Keyword::MultisetRemovePred => self.parse_multiset_remove_pred(),
            keyword if !keyword.is_reserved() => self.parse_assignment_or_call(),
            _ => Err(self.report_expected("a statement")),
        }
    }

    /// Parses `for` with its body. The current token is `for`.
    fn parse_for(&mut self) -> ParseResult<StmtKind<'t>> {
        let start = self.span();
        self.advance();
        let quantifiers = self.parse_quantifiers()?;
        if quantifiers.len() > 1 {
            self.require_dialect(Dialect::CMurphi, start, "several names in one `for`");
        }
        self.expect_do_or_colon()?;
        let body = self.parse_block()?;
        self.parse_end(&[Keyword::EndFor])?;
        Ok(StmtKind::For(quantifiers, body))
    }

    /// Parses `while` with its body. The current token is `while`.
    fn parse_while(&mut self) -> ParseResult<StmtKind<'t>> {
        self.advance();
        let condition = self.parse_expr()?;
        self.expect_do()?;
        let body = self.parse_block()?;
        self.parse_end(&[Keyword::EndWhile])?;
        Ok(StmtKind::While(condition, body))
    }

    /// Parses `alias` with its body. The current token is `alias`.
    fn parse_alias_block(&mut self) -> ParseResult<StmtKind<'t>> {
        self.advance();
        let aliases = self.parse_aliases()?;
        self.expect_do()?;
        let body = self.parse_block()?;
        self.parse_end(&[Keyword::EndAlias])?;
        Ok(StmtKind::Alias(aliases, body))
    }

    /// Parses `multisetadd(element, multiset)` or `multisetremove(slot, multiset)`.
    fn parse_multiset_stmt(&mut self, keyword: Keyword) -> ParseResult<StmtKind<'t>> {
        let start = self.span();
        self.advance();
        self.require_dialect(Dialect::CMurphi, start, &format!("`{}`", keyword.text()));
        self.expect(Token::OpenParenthesis, "`(`")?;
        let element_or_slot = self.parse_expr()?;
        self.expect(Token::Comma, "`,`")?;
        let multiset = self.parse_expr()?;
        self.expect(Token::CloseParenthesis, "`)`")?;
        Ok(match keyword {
            Keyword::MultisetAdd => StmtKind::MultisetAdd(element_or_slot, multiset),
            _ => StmtKind::MultisetRemove(element_or_slot, multiset),
        })
    }

    /// Parses `multisetremovepred(slot : multiset, condition)`, which removes all slots that satisfy the condition.
    fn parse_multiset_remove_pred(&mut self) -> ParseResult<StmtKind<'t>> {
        let start = self.span();
        self.advance();
        self.require_dialect(Dialect::CMurphi, start, "`multisetremovepred`");
        self.expect(Token::OpenParenthesis, "`(`")?;
        let name = self.parse_name("a name for a slot")?;
        self.expect(Token::Colon, "`:`")?;
        let multiset = self.parse_expr()?;
        self.expect(Token::Comma, "`,`")?;
        let condition = self.parse_expr()?;
        self.expect(Token::CloseParenthesis, "`)`")?;
        Ok(StmtKind::MultisetRemovePred(name, multiset, condition))
    }

    /// Parses a statement that begins with a name.
    fn parse_assignment_or_call(&mut self) -> ParseResult<StmtKind<'t>> {
        if !self.is_name(0) {
            return Err(self.report_expected("a statement"));
        }
        if self.peek_token(1) == Token::OpenParenthesis {
            let name = self.parse_name("a procedure's name")?;
            let (arguments, _) = self.parse_arguments()?;
            return Ok(StmtKind::Call(name, arguments));
        }
        let target = self.parse_postfix()?;
        if self.is_token(Token::Equal) {
            let span = self.span();
            self.sink
                .error(span, "`=` compares; a value is stored by `:=`")
                .label("expected `:=`");
            return Err(ReportedError);
        }
        self.expect(Token::Assign, "`:=`")?;
        let value = self.parse_expr()?;
        Ok(StmtKind::Assign(target, value))
    }

    /// Parses `if` with its `elsif` and `else` parts. The current token is `if`.
    fn parse_if(&mut self) -> ParseResult<StmtKind<'t>> {
        let mut cases = Vec::new();
        let mut otherwise = Vec::new();
        while self.accept_key(Keyword::If) || self.accept_key(Keyword::Elsif) {
            let condition = self.parse_expr()?;
            self.expect_key(Keyword::Then)?;
            let body = self.parse_block()?;
            if cases.len() as u32 == self.max_depth {
                return Err(self.report_depth(condition.span, "this `if` has too many cases"));
            }
            cases.push((condition, body));
            if !self.is_key(Keyword::Elsif) {
                break;
            }
        }
        if self.accept_key(Keyword::Else) {
            otherwise = self.parse_block()?;
        }
        self.parse_end(&[Keyword::EndIf])?;
        Ok(StmtKind::If(cases, otherwise))
    }

    /// Parses `switch` with its cases. The current token is `switch`.
    fn parse_switch(&mut self) -> ParseResult<StmtKind<'t>> {
        self.advance();
        let subject = self.parse_expr()?;
        let mut cases = Vec::new();
        while self.accept_key(Keyword::Case) {
            let mut values = vec![self.parse_expr()?];
            while self.accept(Token::Comma) {
                values.push(self.parse_expr()?);
            }
            self.expect(Token::Colon, "`:`")?;
            cases.push((values, self.parse_block()?));
        }
        let mut otherwise = Vec::new();
        if self.accept_key(Keyword::Else) {
            otherwise = self.parse_block()?;
        }
        self.parse_end(&[Keyword::EndSwitch])?;
        Ok(StmtKind::Switch(subject, cases, otherwise))
    }
}
