//! Expressions of rows, and the claims of invariants.

use super::{Parse, ParseError, Parser, COMPARISONS};
use crate::controller::{Operator, MEMORY_WRITES};
use crate::text::ast::{Amount, Claim, Expr, ExprKind};
use crate::text::diagnostic::{Code, Diagnostic};
use crate::text::lexer::Token;

/// Maximum number of parts (names, numbers, operators, parentheses) of one expression. It bounds the depth of recursion
/// here and in every later traversal.
const MAX_PARTS: u32 = 200;

impl<'a> Parser<'a, '_> {
    /// Counts one part of an expression.
    fn count_part(&mut self) -> Parse<()> {
        self.part_count += 1;
        if self.part_count <= MAX_PARTS {
            return Ok(());
        }
        let span = self.span();
        self.sink.push(
            Diagnostic::new(Code::Nesting, span, "this expression is too long").label(format!(
                "an expression has at most {MAX_PARTS} names, numbers, operators and parentheses"
            )),
        );
        Err(ParseError)
    }

    /// Parses a whole expression; nested ones go to [`Parser::disjunction`].
    pub(super) fn expression(&mut self) -> Parse<Expr<'a>> {
        self.production("expression");
        self.part_count = 0;
        self.disjunction()
    }

    /// An operation, with the span of both operands.
    fn binary(&mut self, operator: Operator, left: Expr<'a>, right: Expr<'a>) -> Expr<'a> {
        let span = left.span.to(right.span);
        Expr {
            kind: ExprKind::Binary(operator, Box::new(left), Box::new(right)),
            span,
        }
    }

    /// Conjunctions joined by `or`, from the left.
    fn disjunction(&mut self) -> Parse<Expr<'a>> {
        let mut left = self.conjunction()?;
        while self.eat_word("or") {
            self.count_part()?;
            let right = self.conjunction()?;
            left = self.binary(Operator::Or, left, right);
        }
        Ok(left)
    }

    /// Negations joined by `and`, from the left.
    fn conjunction(&mut self) -> Parse<Expr<'a>> {
        self.production("conjunction");
        let mut left = self.negation()?;
        while self.eat_word("and") {
            self.count_part()?;
            let right = self.negation()?;
            left = self.binary(Operator::And, left, right);
        }
        Ok(left)
    }

    /// `not E`, or a comparison.
    fn negation(&mut self) -> Parse<Expr<'a>> {
        self.production("negation");
        let start = self.span();
        if self.eat_word("not") {
            self.count_part()?;
            let inner = self.negation()?;
            let span = start.to(inner.span);
            return Ok(Expr {
                kind: ExprKind::Not(Box::new(inner)),
                span,
            });
        }
        self.comparison()
    }

    /// `SUM COMPARISON SUM`, `SUM in SUM`, or a sum alone. Comparisons do not chain.
    fn comparison(&mut self) -> Parse<Expr<'a>> {
        self.production("comparison");
        let left = self.sum()?;
        if self.eat_word("in") {
            self.count_part()?;
            let right = self.sum()?;
            let span = left.span.to(right.span);
            return Ok(Expr {
                kind: ExprKind::In(Box::new(left), Box::new(right)),
                span,
            });
        }
        let token = self.peek();
        let Some(&(_, _, operator)) = COMPARISONS.iter().find(|(sign, ..)| *sign == token) else {
            return Ok(left);
        };
        self.advance();
        self.count_part()?;
        let right = self.sum()?;
        Ok(self.binary(operator, left, right))
    }

    /// Terms joined by `+` or `-`, from the left.
    fn sum(&mut self) -> Parse<Expr<'a>> {
        self.production("sum");
        let mut left = self.term()?;
        loop {
            let operator = match self.peek() {
                Token::Plus => Operator::Add,
                Token::Minus => Operator::Subtract,
                _ => return Ok(left),
            };
            self.advance();
            self.count_part()?;
            let right = self.term()?;
            left = self.binary(operator, left, right);
        }
    }

    /// A number, name, array element, set, `count(SET)`, `memory writes`, or an expression in parentheses.
    fn term(&mut self) -> Parse<Expr<'a>> {
        self.production("term");
        self.count_part()?;
        let start = self.span();
        let kind = match self.peek() {
            Token::Number => ExprKind::Number(self.number("a number")?.value),
            Token::Word if self.size_value().is_some() => {
                ExprKind::Number(self.number_or_size("a number")?.value)
            }
            Token::Open => return self.parenthesised(Self::disjunction),
            Token::OpenBrace => {
                self.advance();
                if self.eat(Token::CloseBrace) {
                    ExprKind::Set(None)
                } else {
                    let element = self.disjunction()?;
                    self.expect(Token::CloseBrace, "`}`")?;
                    ExprKind::Set(Some(Box::new(element)))
                }
            }
            Token::Word if self.eat_word("count") => {
                let set = self.parenthesised(Self::disjunction)?;
                ExprKind::Count(Box::new(set))
            }
            Token::Word
                if self.word() == "memory" && self.slice(self.token_at(1).1) == "writes" =>
            {
                self.advance();
                self.expect_word("writes")?;
                self.memory_writes = true;
                ExprKind::Word(MEMORY_WRITES)
            }
            Token::Word if self.token_at(1).0 == Token::OpenBracket => {
                let name = self.name("a value")?;
                ExprKind::Element(name, self.indices()?)
            }
            Token::Word => ExprKind::Word(self.name("a value")?.text),
            _ => return self.expected("a value"),
        };
        Ok(Expr {
            kind,
            span: start.to(self.last_span()),
        })
    }

    /// `[ INDEX ]`, once or twice, after the name of an array.
    pub(super) fn indices(&mut self) -> Parse<Vec<Expr<'a>>> {
        self.production("indices");
        let mut indices = Vec::new();
        while indices.len() < 2 && (indices.is_empty() || self.peek() == Token::OpenBracket) {
            self.expect(Token::OpenBracket, "`[`")?;
            indices.push(self.disjunction()?);
            self.expect(Token::CloseBracket, "`]`")?;
        }
        Ok(indices)
    }

    /// `( inner )`, possibly over several lines.
    fn parenthesised<T>(&mut self, inner: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        self.expect(Token::Open, "`(`")?;
        self.parentheses += 1;
        let value = inner(self)?;
        self.expect(Token::Close, "`)`")?;
        self.parentheses -= 1;
        Ok(value)
    }

    /// Claim of an invariant: conjunctions joined by `or`, and optionally `implies` with a further claim, which binds
    /// to the right.
    pub(super) fn claim(&mut self) -> Parse<Claim<'a>> {
        self.production("claim");
        let mut left = self.claim_conjunction()?;
        while self.eat_word("or") {
            self.count_part()?;
            left = Claim::Or(Box::new(left), Box::new(self.claim_conjunction()?));
        }
        if self.eat_word("implies") {
            self.count_part()?;
            left = Claim::Implies(Box::new(left), Box::new(self.claim()?));
        }
        Ok(left)
    }

    /// Facts joined by `and`.
    fn claim_conjunction(&mut self) -> Parse<Claim<'a>> {
        self.production("claims");
        let mut left = self.fact()?;
        while self.eat_word("and") {
            self.count_part()?;
            left = Claim::And(Box::new(left), Box::new(self.fact()?));
        }
        Ok(left)
    }

    /// `not FACT`, `locked`, a claim in parentheses, or a comparison of two amounts.
    fn fact(&mut self) -> Parse<Claim<'a>> {
        self.production("fact");
        self.count_part()?;
        if self.eat_word("not") {
            return Ok(Claim::Not(Box::new(self.fact()?)));
        }
        if self.eat_word("locked") {
            return Ok(Claim::Locked);
        }
        if self.peek() == Token::Open {
            return self.parenthesised(Self::claim);
        }
        let left = self.amount()?;
        let token = self.peek();
        let Some(&(_, comparison, _)) = COMPARISONS.iter().find(|(sign, ..)| *sign == token) else {
            return self.expected("a comparison");
        };
        self.advance();
        Ok(Claim::Compare(left, comparison, self.amount()?))
    }

    /// A number, a size, `count(STATES)` or `in_flight(MESSAGES)`.
    fn amount(&mut self) -> Parse<Amount<'a>> {
        self.production("amount");
        if self.peek() == Token::Number || self.size_value().is_some() {
            return Ok(Amount::Constant(self.number_or_size("a number")?));
        }
        if self.eat_word("count") {
            return Ok(Amount::RemotesIn(
                self.parenthesised(|p| p.names("a state of the remote"))?,
            ));
        }
        if self.eat_word("in_flight") {
            return Ok(Amount::InFlight(
                self.parenthesised(|p| p.names("a message"))?,
            ));
        }
        self.expected("a number, `count(STATES)`, `in_flight(MESSAGES)` or `locked`")
    }
}
