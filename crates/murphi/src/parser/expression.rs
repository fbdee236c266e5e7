//! Expressions and quantifiers.
//!
//! Precedence, from the loosest level: `?:`, `->`, `||`, `&&`, `|`, `^`, `&`, `!`, comparisons, shifts, sums, products,
//! signs, `~`. The levels suit both dialects: each has a subset of them, in this order.

use super::{ParseResult, Parser, ReportedError};
use crate::ast::{BinaryOperator, Domain, Expr, ExprKind, Quantifier, UnaryOperator};
use crate::lexer::{Keyword, Token};
use crate::Dialect;
use cohkit_diagnostics::Span;

/// Maximum number of operands of one operator, such as `a | b | c`, in an unbalanced tree.
const MAX_UNBALANCED_OPERANDS: usize = 64;

/// True if a token is a binary operator, so that an operand precedes it.
pub(super) fn is_operator(token: Token) -> bool {
    use Token::*;
    matches!(
        token,
        QuestionMark
            | Implies
            | OrOr
            | AndAnd
            | Or
            | Xor
            | And
            | Equal
            | DoubleEqual
            | NotEqual
            | Less
            | LessOrEqual
            | Greater
            | GreaterOrEqual
            | ShiftLeft
            | ShiftRight
            | Plus
            | Minus
            | Asterisk
            | Slash
            | Percent
    )
}

impl<'t> Parser<'t, '_> {
    /// Parses an expression of any precedence, one nesting level deeper.
    pub(super) fn parse_expr(&mut self) -> ParseResult<Expr<'t>> {
        self.nested(Self::parse_conditional)
    }

    /// Returns the expression with its depth: one more than the greatest of `depths`, those of its operands.
    ///
    /// # Errors
    /// The depth exceeds the maximum.
    fn make_expr(
        &mut self,
        span: Span,
        kind: ExprKind<'t>,
        depths: &[u32],
    ) -> ParseResult<Expr<'t>> {
        let depth = 1 + depths.iter().copied().max().unwrap_or(0);
        if depth > self.max_depth {
            return Err(self.report_depth(span, "this expression has too many parts"));
        }
        Ok(Expr { span, kind, depth })
    }

    /// Makes a binary expression; `sign` is the position of the operator.
    fn make_binary(
        &mut self,
        op: BinaryOperator,
        sign: Span,
        a: Expr<'t>,
        b: Expr<'t>,
    ) -> ParseResult<Expr<'t>> {
        let (span, depths) = (a.span.to(b.span), [a.depth, b.depth]);
        let kind = ExprKind::Binary(op, sign, Box::new(a), Box::new(b));
        self.make_expr(span, kind, &depths)
    }

    /// Parses `a ? b : c`, or an expression that binds tighter.
    fn parse_conditional(&mut self) -> ParseResult<Expr<'t>> {
        let condition = self.parse_implication()?;
        if !self.accept(Token::QuestionMark) {
            return Ok(condition);
        }
        let then_value = self.parse_expr()?;
        self.expect(Token::Colon, "`:`")?;
        let else_value = self.parse_expr()?;
        let span = condition.span.to(else_value.span);
        let depths = [condition.depth, then_value.depth, else_value.depth];
        let kind = ExprKind::If(
            Box::new(condition),
            Box::new(then_value),
            Box::new(else_value),
        );
        self.make_expr(span, kind, &depths)
    }

    /// Parses `a -> b`, which associates to the right, or an expression that binds tighter.
    fn parse_implication(&mut self) -> ParseResult<Expr<'t>> {
        let a = self.parse_left_associative(0)?;
        if !self.is_token(Token::Implies) {
            return Ok(a);
        }
        let sign = self.advance().1;
        let b = self.nested(Self::parse_implication)?;
        self.make_binary(BinaryOperator::Implies, sign, a, b)
    }

    /// Parses an operator of `LEVELS` from `level` on, or an expression that binds tighter. The operators associate to
    /// the left.
    fn parse_left_associative(&mut self, level: usize) -> ParseResult<Expr<'t>> {
        const LEVELS: [(Token, BinaryOperator); 5] = [
            (Token::OrOr, BinaryOperator::OrElse),
            (Token::AndAnd, BinaryOperator::AndAlso),
            (Token::Or, BinaryOperator::Or),
            (Token::Xor, BinaryOperator::Xor),
            (Token::And, BinaryOperator::And),
        ];
        let Some(&operator) = LEVELS.get(level) else {
            return self.parse_negation();
        };
        let mut operands = vec![self.parse_left_associative(level + 1)?];
        let mut signs = Vec::new();
        while self.is_token(operator.0) {
            let sign = self.advance().1;
            if matches!(
                operator.1,
                BinaryOperator::OrElse | BinaryOperator::AndAlso | BinaryOperator::Xor
            ) {
                let operator_text = self.text_of(sign);
                self.require_dialect(Dialect::Rumur, sign, &format!("`{operator_text}`"));
            }
            operands.push(self.parse_left_associative(level + 1)?);
            signs.push(sign);
        }
        self.join_chain(operator.1, operands, signs)
    }

    /// Joins the operands of an associative operator, of which `signs` are the positions. Many operands become a
    /// balanced tree of small depth. The tree evaluates them in the same order and stops at the same operand.
    fn join_chain(
        &mut self,
        op: BinaryOperator,
        mut operands: Vec<Expr<'t>>,
        mut signs: Vec<Span>,
    ) -> ParseResult<Expr<'t>> {
        while operands.len() > MAX_UNBALANCED_OPERANDS {
            let (mut joined, mut outer_signs) = (Vec::new(), Vec::new());
            let mut remaining_operands = operands.into_iter();
            let mut remaining_signs = signs.into_iter();
            while let Some(a) = remaining_operands.next() {
                joined.push(match (remaining_operands.next(), remaining_signs.next()) {
                    (Some(b), Some(sign)) => self.make_binary(op, sign, a, b)?,
                    _ => a,
                });
                outer_signs.extend(remaining_signs.next());
            }
            (operands, signs) = (joined, outer_signs);
        }
        let mut remaining_operands = operands.into_iter();
        let Some(mut a) = remaining_operands.next() else {
            return Err(self.report_expected("a value"));
        };
        for (b, sign) in remaining_operands.zip(signs) {
            a = self.make_binary(op, sign, a, b)?;
        }
        Ok(a)
    }

    /// Parses `!` with its operand, or an expression that binds tighter.
    fn parse_negation(&mut self) -> ParseResult<Expr<'t>> {
        if !self.is_token(Token::Not) {
            return self.parse_comparison();
        }
        let start = self.advance().1;
        let e = self.nested(Self::parse_negation)?;
        let (span, depths) = (start.to(e.span), [e.depth]);
        self.make_expr(
            span,
            ExprKind::Unary(UnaryOperator::Not, Box::new(e)),
            &depths,
        )
    }

    /// Comparison operator at the current token, if it is one.
    fn comparison_operator(&self) -> Option<BinaryOperator> {
        Some(match self.token() {
            Token::Equal | Token::DoubleEqual => BinaryOperator::Equal,
            Token::NotEqual => BinaryOperator::NotEqual,
            Token::Less => BinaryOperator::Less,
            Token::LessOrEqual => BinaryOperator::LessOrEqual,
            Token::Greater => BinaryOperator::Greater,
            Token::GreaterOrEqual => BinaryOperator::GreaterOrEqual,
            _ => return None,
        })
    }

    /// Parses one comparison, or an expression that binds tighter. Comparisons do not associate.
    fn parse_comparison(&mut self) -> ParseResult<Expr<'t>> {
        let a = self.parse_shifts()?;
        let Some(op) = self.comparison_operator() else {
            return Ok(a);
        };
        let (token, sign) = self.advance();
        if token == Token::DoubleEqual {
            self.require_dialect(Dialect::Rumur, sign, "`==`");
        }
        let b = self.parse_shifts()?;
        let result = self.make_binary(op, sign, a, b)?;
        if self.comparison_operator().is_some() {
            let span = self.span();
            self.sink
                .error(span, "comparisons do not follow each other")
                .label("put parentheses around one of them");
            return Err(ReportedError);
        }
        Ok(result)
    }

    /// Parses shifts, which associate to the left, or an expression that binds tighter.
    fn parse_shifts(&mut self) -> ParseResult<Expr<'t>> {
        let mut a = self.parse_sum()?;
        loop {
            let op = match self.token() {
                Token::ShiftLeft => BinaryOperator::ShiftLeft,
                Token::ShiftRight => BinaryOperator::ShiftRight,
                _ => return Ok(a),
            };
            let sign = self.advance().1;
            self.require_dialect(Dialect::Rumur, sign, "shifts");
            let b = self.parse_sum()?;
            a = self.make_binary(op, sign, a, b)?;
        }
    }

    /// Parses a sum, or an expression that binds tighter.
    pub(super) fn parse_sum(&mut self) -> ParseResult<Expr<'t>> {
        let mut a = self.parse_product()?;
        loop {
            let op = match self.token() {
                Token::Plus => BinaryOperator::Add,
                Token::Minus => BinaryOperator::Subtract,
                _ => return Ok(a),
            };
            let sign = self.advance().1;
            let b = self.parse_product()?;
            a = self.make_binary(op, sign, a, b)?;
        }
    }

    /// Parses a product, quotient or remainder, or an expression that binds tighter.
    fn parse_product(&mut self) -> ParseResult<Expr<'t>> {
        let mut a = self.parse_unary()?;
        loop {
            let op = match self.token() {
                Token::Asterisk => BinaryOperator::Multiply,
                Token::Slash => BinaryOperator::Divide,
                Token::Percent => BinaryOperator::Remainder,
                _ => return Ok(a),
            };
            let sign = self.advance().1;
            let b = self.parse_unary()?;
            a = self.make_binary(op, sign, a, b)?;
        }
    }

    /// Parses a sign, `~` or `!` with its operand, or an expression that binds tighter.
    fn parse_unary(&mut self) -> ParseResult<Expr<'t>> {
        let (op, start) = match self.token() {
            Token::Plus => (UnaryOperator::Plus, self.span()),
            Token::Minus => (UnaryOperator::Minus, self.span()),
            Token::Tilde => (UnaryOperator::Complement, self.span()),
            // `!` has a lower precedence, but no other operator can follow here: `x = !y`.
            Token::Not => return self.nested(Self::parse_negation),
            _ => return self.parse_postfix(),
        };
        self.advance();
        if op == UnaryOperator::Complement {
            self.require_dialect(Dialect::Rumur, start, "`~`");
        }
        let e = self.nested(Self::parse_unary)?;
        let (span, depths) = (start.to(e.span), [e.depth]);
        self.make_expr(span, ExprKind::Unary(op, Box::new(e)), &depths)
    }

    /// Parses an operand with its fields and indices.
    pub(super) fn parse_postfix(&mut self) -> ParseResult<Expr<'t>> {
        let mut e = self.parse_operand()?;
        loop {
            match self.token() {
                Token::Dot => {
                    self.advance();
                    let name = self.parse_name("a field's name")?;
                    let (span, depths) = (e.span.to(name.span), [e.depth]);
                    e = self.make_expr(span, ExprKind::Field(Box::new(e), name), &depths)?;
                }
                Token::OpenBracket => {
                    self.advance();
                    let index = self.parse_expr()?;
                    let end = self.expect(Token::CloseBracket, "`]`")?;
                    let (span, depths) = (e.span.to(end), [e.depth, index.depth]);
                    let kind = ExprKind::Index(Box::new(e), Box::new(index));
                    e = self.make_expr(span, kind, &depths)?;
                }
                _ => return Ok(e),
            }
        }
    }

    /// Parses a literal, a name, a call, a quantified expression, or an expression in parentheses.
    fn parse_operand(&mut self) -> ParseResult<Expr<'t>> {
        let start = self.span();
        match self.token() {
            Token::Number => {
                self.advance();
                self.make_expr(start, ExprKind::Number(start), &[])
            }
            Token::Keyword(keyword @ (Keyword::True | Keyword::False)) => {
                self.advance();
                self.make_expr(start, ExprKind::Bool(keyword == Keyword::True), &[])
            }
            Token::OpenParenthesis => {
                self.advance();
                let mut e = self.parse_expr()?;
                let end = self.expect(Token::CloseParenthesis, "`)`")?;
                e.span = start.to(end);
                Ok(e)
            }
            Token::Keyword(Keyword::Forall) | Token::ForallSign => self.parse_quantified(true),
            Token::Keyword(Keyword::Exists) | Token::ExistsSign => self.parse_quantified(false),
            Token::Keyword(Keyword::IsUndefined) => {
                self.advance();
                self.expect(Token::OpenParenthesis, "`(`")?;
                let e = self.parse_expr()?;
                let end = self.expect(Token::CloseParenthesis, "`)`")?;
                let depths = [e.depth];
                self.make_expr(start.to(end), ExprKind::IsUndefined(Box::new(e)), &depths)
            }
            Token::Keyword(Keyword::IsMember) => {
                self.advance();
                self.expect(Token::OpenParenthesis, "`(`")?;
                let e = self.parse_expr()?;
                self.expect(Token::Comma, "`,`")?;
                let ty = self.parse_type_expr()?;
                let end = self.expect(Token::CloseParenthesis, "`)`")?;
                let depths = [e.depth];
                self.make_expr(start.to(end), ExprKind::IsMember(Box::new(e), ty), &depths)
            }
            Token::Keyword(Keyword::MultisetCount)
                if self.peek_token(1) == Token::OpenParenthesis =>
            {
                self.require_dialect(Dialect::CMurphi, start, "`multisetcount`");
                self.advance();
                self.advance();
                let name = self.parse_name("a name for a slot")?;
                self.expect(Token::Colon, "`:`")?;
                let multiset = self.parse_expr()?;
                self.expect(Token::Comma, "`,`")?;
                let claim = self.parse_expr()?;
                let end = self.expect(Token::CloseParenthesis, "`)`")?;
                let depths = [multiset.depth, claim.depth];
                let kind = ExprKind::Count(name, Box::new(multiset), Box::new(claim));
                self.make_expr(start.to(end), kind, &depths)
            }
            _ if self.is_name(0) => {
                let name = self.parse_name("a value")?;
                if !self.is_token(Token::OpenParenthesis) {
                    return self.make_expr(start, ExprKind::Name(name), &[]);
                }
                let (arguments, end) = self.parse_arguments()?;
                let depths: Vec<u32> = arguments.iter().map(|a| a.depth).collect();
                self.make_expr(start.to(end), ExprKind::Call(name, arguments), &depths)
            }
            _ => Err(self.report_expected("a value")),
        }
    }

    /// Parses arguments in parentheses. Returns them with the position of the closing parenthesis.
    pub(super) fn parse_arguments(&mut self) -> ParseResult<(Vec<Expr<'t>>, Span)> {
        self.expect(Token::OpenParenthesis, "`(`")?;
        let mut arguments = Vec::new();
        while !self.is_token(Token::CloseParenthesis) {
            arguments.push(self.parse_expr()?);
            if !self.accept(Token::Comma) {
                break;
            }
        }
        let end = self.expect(Token::CloseParenthesis, "`)`")?;
        Ok((arguments, end))
    }

    /// Parses `forall` (`is_universal`) or `exists`. The current token is the quantifier.
    fn parse_quantified(&mut self, is_universal: bool) -> ParseResult<Expr<'t>> {
        let start = self.advance().1;
        let quantifiers = self.parse_quantifiers()?;
        if quantifiers.len() > 1 {
            self.require_dialect(Dialect::CMurphi, start, "several names in one quantifier");
        }
        self.expect_do_or_colon()?;
        let e = self.parse_expr()?;
        let keyword = match is_universal {
            true => Keyword::EndForall,
            false => Keyword::EndExists,
        };
        self.parse_end(&[keyword])?;
        let depths = [e.depth + quantifiers.len() as u32];
        let kind = ExprKind::Quantified(is_universal, quantifiers, Box::new(e));
        let span = start.to(self.previous_span());
        self.make_expr(span, kind, &depths)
    }

    /// Consumes `do`, or a colon, which CMurphi also accepts.
    pub(super) fn expect_do_or_colon(&mut self) -> ParseResult<()> {
        if self.is_token(Token::Colon) {
            let span = self.advance().1;
            self.require_dialect(Dialect::CMurphi, span, "`:` for `do`");
            return Ok(());
        }
        self.expect_do()
    }

    /// Parses names with their domains, separated by semicolons or commas.
    pub(super) fn parse_quantifiers(&mut self) -> ParseResult<Vec<Quantifier<'t>>> {
        let mut quantifiers = Vec::new();
        loop {
            let name = self.parse_name("a name")?;
            let domain = match self.accept(Token::Assign) {
                true => {
                    let from = self.parse_expr()?;
                    self.expect_key(Keyword::ToWord)?;
                    let to = self.parse_expr()?;
                    let by = match self.accept_key(Keyword::By) {
                        true => Some(Box::new(self.parse_expr()?)),
                        false => None,
                    };
                    Domain::Steps(Box::new(from), Box::new(to), by)
                }
                false => {
                    self.expect(Token::Colon, "`:` or `:=`")?;
                    Domain::Type(self.parse_type_expr()?)
                }
            };
            quantifiers.push(Quantifier { name, domain });
            if !self.accept(Token::Semicolon) && !self.accept(Token::Comma) {
                return Ok(quantifiers);
            }
        }
    }

    /// Returns the value of a number at a position; `None` if it does not fit 64 bits.
    pub(super) fn number_value(&mut self, span: Span) -> Option<i64> {
        crate::parse_number(self.text_of(span), self.dialect)
    }
}
