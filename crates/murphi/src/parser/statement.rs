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
    pub(super) fn block(&mut self) -> ParseResult<Block<'t>> {
        self.nested(Self::block_unnested)
    }

    /// As [`Parser::block`], without counting a nesting level.
    fn block_unnested(&mut self) -> ParseResult<Block<'t>> {
        let mut block = Vec::new();
        loop {
            self.skip_semicolons();
            if self.block_ends() {
                return Ok(block);
            }
            let (start, depth) = (self.position, self.depth);
            match self.stmt() {
                Ok(stmt) => block.push(stmt),
                Err(ReportedError) => {
                    self.depth = depth;
                    if !self.recover_stmt(start) {
                        return Err(ReportedError);
                    }
                    continue;
                }
            }
            if !self.is_token(Token::Semicolon) && !self.block_ends() {
                return Err(self.report_expected("`;`"));
            }
        }
    }

    /// True if the current token ends a block.
    fn block_ends(&self) -> bool {
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
            self.next();
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
                _ => self.next(),
            };
        }
    }

    fn stmt(&mut self) -> ParseResult<Stmt<'t>> {
        let start = self.span();
        let kind = self.stmt_kind()?;
        Ok(Stmt {
            span: start.to(self.previous_span()),
            kind,
        })
    }

    /// Parses a statement without its position.
    fn stmt_kind(&mut self) -> ParseResult<StmtKind<'t>> {
        let Token::Keyword(keyword) = self.token() else {
            return self.assignment_or_call();
        };
        // A keyword that only one dialect reserves is a name where it is used as one.
        let is_used_as_name = matches!(
            self.peek_token(1),
            Token::Assign | Token::Dot | Token::OpenBracket
        );
        if !keyword.is_reserved() && is_used_as_name {
            return self.assignment_or_call();
        }
        let start = self.span();
        match keyword {
            Keyword::If => self.if_stmt(),
            Keyword::Switch => self.switch_stmt(),
            Keyword::For => self.for_stmt(),
            Keyword::While => self.while_stmt(),
            Keyword::Alias => self.alias_stmt(),
            Keyword::Assert | Keyword::Invariant | Keyword::Assume | Keyword::Cover => {
                if keyword == Keyword::Invariant {
                    self.require_dialect(Dialect::Rumur, start, "`invariant` among statements");
                }
                self.property().map(StmtKind::Property)
            }
            Keyword::Liveness => {
                self.sink
                    .error(
                        start,
                        "`liveness` is a property of all states, not a statement",
                    )
                    .note("put it beside the rules");
                self.next();
                Err(ReportedError)
            }
            Keyword::Error => {
                self.next();
                let title = self.title();
                let message = title.ok_or_else(|| self.report_expected("a message in quotes"))?;
                Ok(StmtKind::Error(message))
            }
            Keyword::Put => {
                self.next();
                match self.title() {
                    Some(_) => Ok(StmtKind::Put(None)),
                    None => Ok(StmtKind::Put(Some(self.expr()?))),
                }
            }
            Keyword::Return => {
                self.next();
                let has_no_value = self.is_token(Token::Semicolon) || self.block_ends();
                let value = if has_no_value {
                    None
                } else {
                    Some(self.expr()?)
                };
                Ok(StmtKind::Return(value))
            }
            Keyword::Undefine => {
                self.next();
                Ok(StmtKind::Undefine(self.postfix()?))
            }
            Keyword::Clear => {
                self.next();
                Ok(StmtKind::Clear(self.postfix()?))
            }
            Keyword::MultisetAdd | Keyword::MultisetRemove => self.multiset_stmt(keyword),
            Keyword::MultisetRemovePred => self.multiset_remove_pred_stmt(),
            keyword if !keyword.is_reserved() => self.assignment_or_call(),
            _ => Err(self.report_expected("a statement")),
        }
    }

    fn for_stmt(&mut self) -> ParseResult<StmtKind<'t>> {
        let start = self.span();
        self.next();
        let quantifiers = self.quantifiers()?;
        if quantifiers.len() > 1 {
            self.require_dialect(Dialect::CMurphi, start, "several names in one `for`");
        }
        self.do_or_colon()?;
        let body = self.block()?;
        self.end(&[Keyword::EndFor])?;
        Ok(StmtKind::For(quantifiers, body))
    }

    fn while_stmt(&mut self) -> ParseResult<StmtKind<'t>> {
        self.next();
        let condition = self.expr()?;
        self.expect_do()?;
        let body = self.block()?;
        self.end(&[Keyword::EndWhile])?;
        Ok(StmtKind::While(condition, body))
    }

    fn alias_stmt(&mut self) -> ParseResult<StmtKind<'t>> {
        self.next();
        let aliases = self.aliases()?;
        self.expect_do()?;
        let body = self.block()?;
        self.end(&[Keyword::EndAlias])?;
        Ok(StmtKind::Alias(aliases, body))
    }

    /// Parses `multisetadd(element, multiset)` or `multisetremove(slot, multiset)`.
    fn multiset_stmt(&mut self, keyword: Keyword) -> ParseResult<StmtKind<'t>> {
        let start = self.span();
        self.next();
        self.require_dialect(Dialect::CMurphi, start, &format!("`{}`", keyword.text()));
        self.expect(Token::OpenParenthesis, "`(`")?;
        let element_or_slot = self.expr()?;
        self.expect(Token::Comma, "`,`")?;
        let multiset = self.expr()?;
        self.expect(Token::CloseParenthesis, "`)`")?;
        Ok(match keyword {
            Keyword::MultisetAdd => StmtKind::MultisetAdd(element_or_slot, multiset),
            _ => StmtKind::MultisetRemove(element_or_slot, multiset),
        })
    }

    /// Parses `multisetremovepred(slot : multiset, condition)`, which removes all slots that satisfy the condition.
    fn multiset_remove_pred_stmt(&mut self) -> ParseResult<StmtKind<'t>> {
        let start = self.span();
        self.next();
        self.require_dialect(Dialect::CMurphi, start, "`multisetremovepred`");
        self.expect(Token::OpenParenthesis, "`(`")?;
        let name = self.name("a name for a slot")?;
        self.expect(Token::Colon, "`:`")?;
        let multiset = self.expr()?;
        self.expect(Token::Comma, "`,`")?;
        let condition = self.expr()?;
        self.expect(Token::CloseParenthesis, "`)`")?;
        Ok(StmtKind::MultisetRemovePred(name, multiset, condition))
    }

    /// Parses a statement that begins with a name.
    fn assignment_or_call(&mut self) -> ParseResult<StmtKind<'t>> {
        if !self.is_name(0) {
            return Err(self.report_expected("a statement"));
        }
        if self.peek_token(1) == Token::OpenParenthesis {
            let name = self.name("a procedure's name")?;
            let (arguments, _) = self.arguments()?;
            return Ok(StmtKind::Call(name, arguments));
        }
        let target = self.postfix()?;
        if self.is_token(Token::Equal) {
            let span = self.span();
            self.sink
                .error(span, "`=` compares; a value is stored by `:=`")
                .label("expected `:=`");
            return Err(ReportedError);
        }
        self.expect(Token::Assign, "`:=`")?;
        let value = self.expr()?;
        Ok(StmtKind::Assign(target, value))
    }

    /// Parses `if` with its `elsif` and `else` parts. The current token is `if`.
    fn if_stmt(&mut self) -> ParseResult<StmtKind<'t>> {
        let mut cases = Vec::new();
        let mut otherwise = Vec::new();
        while self.accept_key(Keyword::If) || self.accept_key(Keyword::Elsif) {
            let condition = self.expr()?;
            self.expect_key(Keyword::Then)?;
            let body = self.block()?;
            if cases.len() as u32 == self.max_depth {
                return Err(self.report_depth(condition.span, "this `if` has too many cases"));
            }
            cases.push((condition, body));
            if !self.is_key(Keyword::Elsif) {
                break;
            }
        }
        if self.accept_key(Keyword::Else) {
            otherwise = self.block()?;
        }
        self.end(&[Keyword::EndIf])?;
        Ok(StmtKind::If(cases, otherwise))
    }

    /// Parses `switch` with its cases. The current token is `switch`.
    fn switch_stmt(&mut self) -> ParseResult<StmtKind<'t>> {
        self.next();
        let subject = self.expr()?;
        let mut cases = Vec::new();
        while self.accept_key(Keyword::Case) {
            let mut values = vec![self.expr()?];
            while self.accept(Token::Comma) {
                values.push(self.expr()?);
            }
            self.expect(Token::Colon, "`:`")?;
            cases.push((values, self.block()?));
        }
        let mut otherwise = Vec::new();
        if self.accept_key(Keyword::Else) {
            otherwise = self.block()?;
        }
        self.end(&[Keyword::EndSwitch])?;
        Ok(StmtKind::Switch(subject, cases, otherwise))
    }
}
