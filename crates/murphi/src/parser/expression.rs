//! Expressions and quantifiers.
//!
//! Precedence, from the loosest level: `?:`, `->`, `||`, `&&`, `|`, `^`, `&`, `!`, comparisons, shifts, sums, products,
//! signs, `~`. The levels suit both dialects: each has a subset of them, in this order.

use super::*;

/// Maximum number of operands of one operator, such as `a | b | c`, in an unbalanced tree.
const LONG_CHAIN: usize = 64;

/// True if a token is a binary operator, so that an operand precedes it.
pub(super) fn is_operator(token: Token) -> bool {
    use Token::*;
    matches!(
        token,
        Question
            | Implies
            | OrOr
            | AndAnd
            | Or
            | Xor
            | And
            | Is
            | IsIs
            | IsNot
            | Less
            | LessOrEqual
            | Greater
            | GreaterOrEqual
            | ShiftLeft
            | ShiftRight
            | Plus
            | Minus
            | Times
            | Over
            | Rest
    )
}

impl<'t> Parser<'t, '_> {
    pub(super) fn expr(&mut self) -> Parsed<Expr<'t>> {
        self.nested(Self::conditional)
    }

    fn make_expr(&mut self, span: Span, kind: ExprKind<'t>, parts: &[u32]) -> Parsed<Expr<'t>> {
        let depth = 1 + parts.iter().copied().max().unwrap_or(0);
        if depth > MAX_DEPTH {
            self.sink
                .error(span, "this expression has too many parts")
                .label(format!("nested more than {MAX_DEPTH} deep"));
            return Err(Reported);
        }
        Ok(Expr { span, kind, depth })
    }

    fn binary(&mut self, op: Binary, sign: Span, a: Expr<'t>, b: Expr<'t>) -> Parsed<Expr<'t>> {
        let (span, parts) = (a.span.to(b.span), [a.depth, b.depth]);
        let kind = ExprKind::Binary(op, sign, Box::new(a), Box::new(b));
        self.make_expr(span, kind, &parts)
    }

    fn conditional(&mut self) -> Parsed<Expr<'t>> {
        let condition = self.implication()?;
        if !self.accept(Token::Question) {
            return Ok(condition);
        }
        let yes = self.expr()?;
        self.expect(Token::Colon, "`:`")?;
        let no = self.expr()?;
        let span = condition.span.to(no.span);
        let parts = [condition.depth, yes.depth, no.depth];
        let kind = ExprKind::If(Box::new(condition), Box::new(yes), Box::new(no));
        self.make_expr(span, kind, &parts)
    }

    fn implication(&mut self) -> Parsed<Expr<'t>> {
        let a = self.left_associative(0)?;
        if !self.is(Token::Implies) {
            return Ok(a);
        }
        let sign = self.next().1;
        let b = self.nested(Self::implication)?;
        self.binary(Binary::Implies, sign, a, b)
    }

    /// Left-associative operators, from a level on.
    fn left_associative(&mut self, level: usize) -> Parsed<Expr<'t>> {
        const LEVELS: [(Token, Binary); 5] = [
            (Token::OrOr, Binary::OrElse),
            (Token::AndAnd, Binary::AndAlso),
            (Token::Or, Binary::Or),
            (Token::Xor, Binary::Xor),
            (Token::And, Binary::And),
        ];
        let Some(&operator) = LEVELS.get(level) else {
            return self.negation();
        };
        let mut operands = vec![self.left_associative(level + 1)?];
        let mut signs = Vec::new();
        while self.is(operator.0) {
            let sign = self.next().1;
            if matches!(operator.1, Binary::OrElse | Binary::AndAlso | Binary::Xor) {
                let word = self.text_of(sign);
                self.require_dialect(Dialect::Rumur, sign, &format!("`{word}`"));
            }
            operands.push(self.left_associative(level + 1)?);
            signs.push(sign);
        }
        self.chain(operator.1, operands, signs)
    }

    /// Operands that an associative operator joins. Many operands become a balanced tree of small depth. The tree
    /// evaluates them in the same order and stops at the same operand.
    fn chain(
        &mut self,
        op: Binary,
        mut operands: Vec<Expr<'t>>,
        mut signs: Vec<Span>,
    ) -> Parsed<Expr<'t>> {
        while operands.len() > LONG_CHAIN {
            let (mut joined, mut outer_signs) = (Vec::new(), Vec::new());
            let mut rest = operands.into_iter();
            let mut remaining_signs = signs.into_iter();
            while let Some(a) = rest.next() {
                joined.push(match (rest.next(), remaining_signs.next()) {
                    (Some(b), Some(sign)) => self.binary(op, sign, a, b)?,
                    _ => a,
                });
                outer_signs.extend(remaining_signs.next());
            }
            (operands, signs) = (joined, outer_signs);
        }
        let mut rest = operands.into_iter();
        let Some(mut a) = rest.next() else {
            return Err(self.report_expected("a value"));
        };
        for (b, sign) in rest.zip(signs) {
            a = self.binary(op, sign, a, b)?;
        }
        Ok(a)
    }

    fn negation(&mut self) -> Parsed<Expr<'t>> {
        if !self.is(Token::Not) {
            return self.comparison();
        }
        let start = self.next().1;
        let e = self.nested(Self::negation)?;
        let (span, parts) = (start.to(e.span), [e.depth]);
        self.make_expr(span, ExprKind::Unary(Unary::Not, Box::new(e)), &parts)
    }

    fn comparison_operator(&self) -> Option<Binary> {
        Some(match self.token() {
            Token::Is | Token::IsIs => Binary::Equal,
            Token::IsNot => Binary::NotEqual,
            Token::Less => Binary::Less,
            Token::LessOrEqual => Binary::LessOrEqual,
            Token::Greater => Binary::Greater,
            Token::GreaterOrEqual => Binary::GreaterOrEqual,
            _ => return None,
        })
    }

    fn comparison(&mut self) -> Parsed<Expr<'t>> {
        let a = self.shifts()?;
        let Some(op) = self.comparison_operator() else {
            return Ok(a);
        };
        let (token, sign) = self.next();
        if token == Token::IsIs {
            self.require_dialect(Dialect::Rumur, sign, "`==`");
        }
        let b = self.shifts()?;
        let result = self.binary(op, sign, a, b)?;
        if self.comparison_operator().is_some() {
            let span = self.span();
            self.sink
                .error(span, "comparisons do not follow each other")
                .label("put parentheses around one of them");
            return Err(Reported);
        }
        Ok(result)
    }

    fn shifts(&mut self) -> Parsed<Expr<'t>> {
        let mut a = self.sum()?;
        loop {
            let op = match self.token() {
                Token::ShiftLeft => Binary::ShiftLeft,
                Token::ShiftRight => Binary::ShiftRight,
                _ => return Ok(a),
            };
            let sign = self.next().1;
            self.require_dialect(Dialect::Rumur, sign, "shifts");
            let b = self.sum()?;
            a = self.binary(op, sign, a, b)?;
        }
    }

    pub(super) fn sum(&mut self) -> Parsed<Expr<'t>> {
        let mut a = self.product()?;
        loop {
            let op = match self.token() {
                Token::Plus => Binary::Add,
                Token::Minus => Binary::Subtract,
                _ => return Ok(a),
            };
            let sign = self.next().1;
            let b = self.product()?;
            a = self.binary(op, sign, a, b)?;
        }
    }

    fn product(&mut self) -> Parsed<Expr<'t>> {
        let mut a = self.unary()?;
        loop {
            let op = match self.token() {
                Token::Times => Binary::Multiply,
                Token::Over => Binary::Divide,
                Token::Rest => Binary::Remainder,
                _ => return Ok(a),
            };
            let sign = self.next().1;
            let b = self.unary()?;
            a = self.binary(op, sign, a, b)?;
        }
    }

    fn unary(&mut self) -> Parsed<Expr<'t>> {
        let (op, start) = match self.token() {
            Token::Plus => (Unary::Plus, self.span()),
            Token::Minus => (Unary::Minus, self.span()),
            Token::Tilde => (Unary::Complement, self.span()),
            // `!` binds less, but no other level can follow here: `x = !y`.
            Token::Not => return self.nested(Self::negation),
            _ => return self.postfix(),
        };
        self.next();
        if op == Unary::Complement {
            self.require_dialect(Dialect::Rumur, start, "`~`");
        }
        let e = self.nested(Self::unary)?;
        let (span, parts) = (start.to(e.span), [e.depth]);
        self.make_expr(span, ExprKind::Unary(op, Box::new(e)), &parts)
    }

    /// A designator or another operand.
    pub(super) fn postfix(&mut self) -> Parsed<Expr<'t>> {
        let mut e = self.operand()?;
        loop {
            match self.token() {
                Token::Dot => {
                    self.next();
                    let name = self.name("a field's name")?;
                    let (span, parts) = (e.span.to(name.span), [e.depth]);
                    e = self.make_expr(span, ExprKind::Field(Box::new(e), name), &parts)?;
                }
                Token::OpenBracket => {
                    self.next();
                    let index = self.expr()?;
                    let end = self.expect(Token::CloseBracket, "`]`")?;
                    let (span, parts) = (e.span.to(end), [e.depth, index.depth]);
                    let kind = ExprKind::Index(Box::new(e), Box::new(index));
                    e = self.make_expr(span, kind, &parts)?;
                }
                _ => return Ok(e),
            }
        }
    }

    fn operand(&mut self) -> Parsed<Expr<'t>> {
        let start = self.span();
        match self.token() {
            Token::Number => {
                self.next();
                self.make_expr(start, ExprKind::Number(start), &[])
            }
            Token::Key(key @ (Key::True | Key::False)) => {
                self.next();
                self.make_expr(start, ExprKind::Bool(key == Key::True), &[])
            }
            Token::Open => {
                self.next();
                let mut e = self.expr()?;
                let end = self.expect(Token::Close, "`)`")?;
                e.span = start.to(end);
                Ok(e)
            }
            Token::Key(Key::Forall) | Token::ForAll => self.quantified(true),
            Token::Key(Key::Exists) | Token::ThereIs => self.quantified(false),
            Token::Key(Key::IsUndefined) => {
                self.next();
                self.expect(Token::Open, "`(`")?;
                let e = self.expr()?;
                let end = self.expect(Token::Close, "`)`")?;
                let parts = [e.depth];
                self.make_expr(start.to(end), ExprKind::IsUndefined(Box::new(e)), &parts)
            }
            Token::Key(Key::IsMember) => {
                self.next();
                self.expect(Token::Open, "`(`")?;
                let e = self.expr()?;
                self.expect(Token::Comma, "`,`")?;
                let ty = self.type_expr()?;
                let end = self.expect(Token::Close, "`)`")?;
                let parts = [e.depth];
                self.make_expr(start.to(end), ExprKind::IsMember(Box::new(e), ty), &parts)
            }
            Token::Key(Key::MultisetCount) if self.peek_token(1) == Token::Open => {
                self.require_dialect(Dialect::CMurphi, start, "`multisetcount`");
                self.next();
                self.next();
                let name = self.name("a name for a slot")?;
                self.expect(Token::Colon, "`:`")?;
                let multiset = self.expr()?;
                self.expect(Token::Comma, "`,`")?;
                let claim = self.expr()?;
                let end = self.expect(Token::Close, "`)`")?;
                let parts = [multiset.depth, claim.depth];
                let kind = ExprKind::Count(name, Box::new(multiset), Box::new(claim));
                self.make_expr(start.to(end), kind, &parts)
            }
            _ if self.is_name(0) => {
                let name = self.name("a value")?;
                if !self.is(Token::Open) {
                    return self.make_expr(start, ExprKind::Name(name), &[]);
                }
                let (arguments, end) = self.arguments()?;
                let parts: Vec<u32> = arguments.iter().map(|a| a.depth).collect();
                self.make_expr(start.to(end), ExprKind::Call(name, arguments), &parts)
            }
            _ => Err(self.report_expected("a value")),
        }
    }

    pub(super) fn arguments(&mut self) -> Parsed<(Vec<Expr<'t>>, Span)> {
        self.expect(Token::Open, "`(`")?;
        let mut arguments = Vec::new();
        while !self.is(Token::Close) {
            arguments.push(self.expr()?);
            if !self.accept(Token::Comma) {
                break;
            }
        }
        let end = self.expect(Token::Close, "`)`")?;
        Ok((arguments, end))
    }

    fn quantified(&mut self, universal: bool) -> Parsed<Expr<'t>> {
        let start = self.next().1;
        let quantifiers = self.quantifiers()?;
        if quantifiers.len() > 1 {
            self.require_dialect(Dialect::CMurphi, start, "several names in one quantifier");
        }
        self.do_or_colon()?;
        let e = self.expr()?;
        let key = match universal {
            true => Key::EndForall,
            false => Key::EndExists,
        };
        self.end(&[key])?;
        let parts = [e.depth + quantifiers.len() as u32];
        let kind = ExprKind::Quantified(universal, quantifiers, Box::new(e));
        let span = start.to(self.previous_span());
        self.make_expr(span, kind, &parts)
    }

    /// `do`, or a colon, which CMurphi also accepts.
    pub(super) fn do_or_colon(&mut self) -> Parsed<()> {
        if self.is(Token::Colon) {
            let span = self.next().1;
            self.require_dialect(Dialect::CMurphi, span, "`:` for `do`");
            return Ok(());
        }
        self.expect_do()
    }

    pub(super) fn quantifiers(&mut self) -> Parsed<Vec<Quantifier<'t>>> {
        let mut quantifiers = Vec::new();
        loop {
            let name = self.name("a name")?;
            let domain = match self.accept(Token::Becomes) {
                true => {
                    let from = self.expr()?;
                    self.expect_key(Key::ToWord)?;
                    let to = self.expr()?;
                    let by = match self.accept_key(Key::By) {
                        true => Some(Box::new(self.expr()?)),
                        false => None,
                    };
                    Domain::Steps(Box::new(from), Box::new(to), by)
                }
                false => {
                    self.expect(Token::Colon, "`:` or `:=`")?;
                    Domain::Type(self.type_expr()?)
                }
            };
            quantifiers.push(Quantifier { name, domain });
            if !self.accept(Token::Semicolon) && !self.accept(Token::Comma) {
                return Ok(quantifiers);
            }
        }
    }

    /// The value of a number; `None` if it is too large.
    pub(super) fn number(&mut self, span: Span) -> Option<i64> {
        super::super::number(self.text_of(span), self.dialect)
    }
}
