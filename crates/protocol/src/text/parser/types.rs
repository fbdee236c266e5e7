//! Sizes and the types of variables and fields.

use super::{Parse, ParseError, Parser, HOMES, MAX_HOMES};
use crate::protocol::Type;
use crate::terms::{Element, IndexDomain};
use crate::text::ast::Number;
use crate::text::diagnostic::{Code, Diagnostic};
use crate::text::lexer::Token;
use crate::text::Mention;
use cohkit_diagnostics::suggestion;

impl<'a> Parser<'a, '_> {
    /// Value of the current word, if it is the name of a size.
    pub(super) fn size_value(&mut self) -> Option<Number> {
        let (span, word) = (self.span(), self.word());
        let &(name, value) = self.sizes.iter().find(|(name, _)| name.text == word)?;
        self.sink.mentions.push(Mention {
            span,
            declaration: name.span,
            kind: "size",
        });
        Some(Number { value, span })
    }

    /// A number, or the name of a size.
    pub(super) fn number_or_size(&mut self, description: &str) -> Parse<Number> {
        self.production("number");
        if let Some(number) = self.size_value() {
            self.advance();
            return Ok(number);
        }
        let (span, word) = (self.span(), self.word());
        if word.is_empty() {
            return self.number(description);
        }
        let size_names: Vec<&str> = self.sizes.iter().map(|(name, _)| name.text).collect();
        let text = format!("unknown size `{word}`");
        let diagnostic = Diagnostic::new(Code::UnknownName, span, text)
            .label(format!(
                "expected {description}, or a size declared before it"
            ))
            .note(suggestion(word, "size", size_names.into_iter()));
        self.sink.push(diagnostic);
        Err(ParseError)
    }

    /// After `size`: its name, and its value in systems that do not override it.
    pub(super) fn size_declaration(&mut self) -> Parse<()> {
        self.production("size");
        let name = self.new_name("the name of a size")?;
        let number = self.number("a number")?;
        if number.value > u32::from(u16::MAX) {
            let text = "a size is 65535 at most";
            let diagnostic = Diagnostic::new(Code::OutOfRange, number.span, text);
            self.sink.push(diagnostic.label("too large"));
        }
        if name.text == HOMES && !(1..=MAX_HOMES).contains(&number.value) {
            let text = "the number of homes is out of range";
            let diagnostic = Diagnostic::new(Code::OutOfRange, number.span, text);
            self.sink
                .push(diagnostic.label(format!("must be 1 to {MAX_HOMES}")));
        }
        let overridden = self.overrides.iter().find(|(size, _)| size == name.text);
        let value = overridden.map_or(number.value, |&(_, value)| value.into());
        self.sizes.push((name, value));
        self.sink.mentions.push(Mention {
            span: name.span,
            declaration: name.span,
            kind: "size",
        });
        Ok(())
    }

    /// Number of homes.
    pub(super) fn home_count(&self) -> u16 {
        let size = self.sizes.iter().find(|(name, _)| name.text == HOMES);
        size.map_or(1, |&(_, homes)| homes.clamp(1, self.max_homes) as u16)
    }

    /// Parses a type; that of a variable may be an array.
    pub(super) fn variable_type(&mut self) -> Parse<Type> {
        let start = self.span();
        let ty = self.value_type()?;
        if !self.eat_word("per") {
            return Ok(ty);
        }
        let first_domain = self.index_domain()?;
        let second_domain = match self.eat_word("per") {
            true => Some(self.index_domain()?),
            false => None,
        };
        let of = match ty {
            Type::Range { max } => Element::Range { max },
            Type::Cycle { size } => Element::Cycle { size },
            Type::Count => Element::Count,
            _ => {
                let text = "an array whose elements are not numbers";
                let span = start.to(self.last_span());
                self.sink.push(
                    Diagnostic::new(Code::Type, span, text)
                        .label("must be an array of `0..N`, `cycle N` or `count`")
                        .note("a truth value for each remote is a `set of remote`"),
                );
                return Ok(ty);
            }
        };
        Ok(Type::Array {
            of,
            first_domain,
            second_domain,
        })
    }

    /// After `per`: the index type of an array.
    pub(super) fn index_domain(&mut self) -> Parse<IndexDomain> {
        self.production("per");
        if self.eat_word("remote") {
            return Ok(IndexDomain::Remotes);
        }
        if self.eat_word("home") {
            return Ok(IndexDomain::Homes(self.home_count()));
        }
        let size = self.number_or_size("`remote`, `home`, or the number of elements")?;
        let max = self.max_elements;
        if !(1..=max).contains(&size.value) {
            let text = "the size of an array is out of range";
            let diagnostic = Diagnostic::new(Code::OutOfRange, size.span, text);
            self.sink
                .push(diagnostic.label(format!("must be 1 to {max}")));
        }
        Ok(IndexDomain::Numbers(size.value.clamp(1, max) as u16))
    }

    /// Parses a type that is not an array of numbers. A value out of range is reported and
    /// replaced by the nearest valid one.
    pub(super) fn value_type(&mut self) -> Parse<Type> {
        self.production("type");
        if self.peek() == Token::Number {
            let first = self.number("a number")?;
            self.expect(Token::To, "`..`")?;
            let last = self.number_or_size("the largest value")?;
            if first.value != 0 {
                self.sink.push(
                    Diagnostic::new(Code::OutOfRange, first.span, "a range starts at 0")
                        .label("write 0"),
                );
            }
            if last.value > u32::from(u16::MAX) {
                self.sink.push(
                    Diagnostic::new(Code::OutOfRange, last.span, "a range ends at 65535 at most")
                        .label("too large"),
                );
            }
            return Ok(Type::Range {
                max: last.value.min(u32::from(u16::MAX)) as u16,
            });
        }
        if self.eat_word("cycle") {
            let size = self.number_or_size("the number of values")?;
            if !(2..=u32::from(u16::MAX)).contains(&size.value) {
                self.sink.push(
                    Diagnostic::new(
                        Code::OutOfRange,
                        size.span,
                        "the size of a cycle is out of range",
                    )
                    .label("must be 2 to 65535"),
                );
            }
            let size = size.value.clamp(2, u32::from(u16::MAX)) as u16;
            return Ok(Type::Cycle { size });
        }
        if self.eat_word("set") {
            self.expect_word("of")?;
            if self.eat_word("home") {
                return Ok(Type::Array {
                    of: Element::Member,
                    first_domain: IndexDomain::Homes(self.home_count()),
                    second_domain: None,
                });
            }
            if !self.eat_word("remote") {
                return self.expected("`remote` or `home`");
            }
            return Ok(Type::RemoteSet);
        }
        match self.word() {
            "count" | "bool" | "remote" | "home" => {
                let ty = match self.word() {
                    "count" => Type::Count,
                    "bool" => Type::Bool,
                    "home" => Type::Home {
                        homes: self.home_count(),
                    },
                    _ => Type::Remote,
                };
                self.advance();
                Ok(ty)
            }
            _ => self
                .expected("a type (`0..7`, `cycle 8`, `count`, `bool`, `remote`, `home`, `set of remote`, `set of home`)"),
        }
    }
}
