//! Parser of statements.

use super::*;

impl<'t> Parser<'t, '_> {
    /// Statements up to the end of their block.
    pub(super) fn block(&mut self) -> Parsed<Block<'t>> {
        self.nested(Self::block_unnested)
    }

    fn block_unnested(&mut self) -> Parsed<Block<'t>> {
        let mut block = Vec::new();
        loop {
            self.skip_semicolons();
            if self.block_ends() {
                return Ok(block);
            }
            let (start, depth) = (self.position, self.depth);
            match self.stmt() {
                Ok(stmt) => block.push(stmt),
                Err(Reported) => {
                    self.depth = depth;
                    if !self.recover_stmt(start) {
                        return Err(Reported);
                    }
                    continue;
                }
            }
            if !self.is(Token::Semicolon) && !self.block_ends() {
                return Err(self.report_expected("`;`"));
            }
        }
    }

    /// True if the current token ends a block.
    fn block_ends(&self) -> bool {
        match self.token() {
            Token::End => true,
            Token::Key(key) => {
                key.reserved() && key.word().starts_with("end")
                    || matches!(key, Key::Else | Key::Elsif | Key::Case)
            }
            _ => false,
        }
    }

    /// Skips behind the next `;` of a body. Returns false if the body ends before.
    fn recover_stmt(&mut self, start: usize) -> bool {
        if self.position == start {
            self.next();
        }
        loop {
            match self.token() {
                Token::Semicolon => return true,
                Token::End
                | Token::Key(
                    Key::Rule
                    | Key::Ruleset
                    | Key::Startstate
                    | Key::Invariant
                    | Key::Function
                    | Key::Procedure
                    | Key::EndRule
                    | Key::EndStartstate
                    | Key::EndFunction
                    | Key::EndProcedure
                    | Key::EndRuleset,
                ) => return false,
                _ => self.next(),
            };
        }
    }

    fn stmt(&mut self) -> Parsed<Stmt<'t>> {
        let start = self.span();
        let kind = self.stmt_kind()?;
        Ok(Stmt {
            span: start.to(self.previous_span()),
            kind,
        })
    }

    fn stmt_kind(&mut self) -> Parsed<StmtKind<'t>> {
        let Token::Key(key) = self.token() else {
            return self.assignment_or_call();
        };
        // A keyword of one dialect only is a name if it is used as one.
        let as_name = matches!(
            self.peek_token(1),
            Token::Becomes | Token::Dot | Token::OpenBracket
        );
        if !key.reserved() && as_name {
            return self.assignment_or_call();
        }
        let start = self.span();
        match key {
            Key::If => self.if_stmt(),
            Key::Switch => self.switch_stmt(),
            Key::For => {
                self.next();
                let quantifiers = self.quantifiers()?;
                if quantifiers.len() > 1 {
                    self.require_dialect(Dialect::CMurphi, start, "several names in one `for`");
                }
                self.do_or_colon()?;
                let body = self.block()?;
                self.end(&[Key::EndFor])?;
                Ok(StmtKind::For(quantifiers, body))
            }
            Key::While => {
                self.next();
                let condition = self.expr()?;
                self.expect_do()?;
                let body = self.block()?;
                self.end(&[Key::EndWhile])?;
                Ok(StmtKind::While(condition, body))
            }
            Key::Alias => {
                self.next();
                let aliases = self.aliases()?;
                self.expect_do()?;
                let body = self.block()?;
                self.end(&[Key::EndAlias])?;
                Ok(StmtKind::Alias(aliases, body))
            }
            Key::Assert | Key::Invariant | Key::Assume | Key::Cover => {
                if key == Key::Invariant {
                    self.require_dialect(Dialect::Rumur, start, "`invariant` among statements");
                }
                self.property().map(StmtKind::Property)
            }
            Key::Liveness => {
                self.sink
                    .error(
                        start,
                        "`liveness` is a property of all states, not a statement",
                    )
                    .note("put it beside the rules");
                self.next();
                Err(Reported)
            }
            Key::Error => {
                self.next();
                let title = self.title();
                let message = title.ok_or_else(|| self.report_expected("a message in quotes"))?;
                Ok(StmtKind::Error(message))
            }
            Key::Put => {
                self.next();
                match self.title() {
                    Some(_) => Ok(StmtKind::Put(None)),
                    None => Ok(StmtKind::Put(Some(self.expr()?))),
                }
            }
            Key::Return => {
                self.next();
                let has_no_value = self.is(Token::Semicolon) || self.block_ends();
                let value = if has_no_value {
                    None
                } else {
                    Some(self.expr()?)
                };
                Ok(StmtKind::Return(value))
            }
            Key::Undefine => {
                self.next();
                Ok(StmtKind::Undefine(self.postfix()?))
            }
            Key::Clear => {
                self.next();
                Ok(StmtKind::Clear(self.postfix()?))
            }
            Key::MultisetAdd | Key::MultisetRemove => {
                self.next();
                self.require_dialect(Dialect::CMurphi, start, &format!("`{}`", key.word()));
                self.expect(Token::Open, "`(`")?;
                let first = self.expr()?;
                self.expect(Token::Comma, "`,`")?;
                let multiset = self.expr()?;
                self.expect(Token::Close, "`)`")?;
                Ok(match key {
                    Key::MultisetAdd => StmtKind::MultisetAdd(first, multiset),
                    _ => StmtKind::MultisetRemove(first, multiset),
                })
            }
            Key::MultisetRemovePred => {
                self.next();
                self.require_dialect(Dialect::CMurphi, start, "`multisetremovepred`");
                self.expect(Token::Open, "`(`")?;
                let name = self.name("a name for a slot")?;
                self.expect(Token::Colon, "`:`")?;
                let multiset = self.expr()?;
                self.expect(Token::Comma, "`,`")?;
                let claim = self.expr()?;
                self.expect(Token::Close, "`)`")?;
                Ok(StmtKind::MultisetRemovePred(name, multiset, claim))
            }
            key if !key.reserved() => self.assignment_or_call(),
            _ => Err(self.report_expected("a statement")),
        }
    }

    fn assignment_or_call(&mut self) -> Parsed<StmtKind<'t>> {
        if !self.is_name(0) {
            return Err(self.report_expected("a statement"));
        }
        if self.peek_token(1) == Token::Open {
            let name = self.name("a procedure's name")?;
            let (arguments, _) = self.arguments()?;
            return Ok(StmtKind::Call(name, arguments));
        }
        let to = self.postfix()?;
        if self.is(Token::Is) {
            let span = self.span();
            self.sink
                .error(span, "`=` compares; a value is stored by `:=`")
                .label("expected `:=`");
            return Err(Reported);
        }
        self.expect(Token::Becomes, "`:=`")?;
        let value = self.expr()?;
        Ok(StmtKind::Assign(to, value))
    }

    fn if_stmt(&mut self) -> Parsed<StmtKind<'t>> {
        let mut cases = Vec::new();
        let mut otherwise = Vec::new();
        while self.accept_key(Key::If) || self.accept_key(Key::Elsif) {
            let condition = self.expr()?;
            self.expect_key(Key::Then)?;
            let body = self.block()?;
            if cases.len() as u32 == MAX_DEPTH {
                self.sink.error(
                    condition.span,
                    format!("more than {MAX_DEPTH} cases in one `if`"),
                );
                return Err(Reported);
            }
            cases.push((condition, body));
            if !self.is_key(Key::Elsif) {
                break;
            }
        }
        if self.accept_key(Key::Else) {
            otherwise = self.block()?;
        }
        self.end(&[Key::EndIf])?;
        Ok(StmtKind::If(cases, otherwise))
    }

    fn switch_stmt(&mut self) -> Parsed<StmtKind<'t>> {
        self.next();
        let subject = self.expr()?;
        let mut cases = Vec::new();
        while self.accept_key(Key::Case) {
            let mut values = vec![self.expr()?];
            while self.accept(Token::Comma) {
                values.push(self.expr()?);
            }
            self.expect(Token::Colon, "`:`")?;
            cases.push((values, self.block()?));
        }
        let mut otherwise = Vec::new();
        if self.accept_key(Key::Else) {
            otherwise = self.block()?;
        }
        self.end(&[Key::EndSwitch])?;
        Ok(StmtKind::Switch(subject, cases, otherwise))
    }
}
