//! The statements of texts that compose others.

use super::*;

impl<'a> Parser<'a, '_> {
    /// `use "FILE" as NAME`.
    pub(super) fn use_(&mut self) -> Parse<Item<'a>> {
        self.production("use");
        self.composes = true;
        let span = self.expect(Token::Title, "the file of a protocol text, in quotes")?;
        let file = Name {
            text: self.slice(span).trim_matches('"'),
            span,
        };
        self.expect_word("as")?;
        let name = self.new_name("the name of a used text")?;
        Ok(Item::Use(Use { file, name }))
    }

    /// `node NAME { SPACE.PART ... }`.
    pub(super) fn node(&mut self, keyword: Span) -> Parse<Item<'a>> {
        self.production("node");
        let name = self.new_name("the name of the node")?;
        let parts = self.block(keyword, "`node`", |p| {
            p.production("part");
            p.part_of("a part of a used text, as `NAME.PART`")
        })?;
        Ok(Item::Node(name, parts))
    }

    /// `system NAME { NODE N; SPACE.lines N ... }`.
    pub(super) fn joint(&mut self, keyword: Span) -> Parse<Item<'a>> {
        self.production("joint");
        let name = self.name("the name of the system")?;
        let counts = self.block(keyword, "`system`", |p| {
            let part = p.part_of("what a system has (a node, `NAME.PART` or `NAME.lines`)")?;
            Ok((part, p.number("a number")?))
        })?;
        Ok(Item::Joint(name, counts))
    }

    fn part_of(&mut self, what: &str) -> Parse<Part<'a>> {
        let name = self.name(what)?;
        if !self.eat(Token::Dot) {
            return Ok(Part { space: None, name });
        }
        Ok(Part {
            space: Some(name),
            name: self.name("a kind of remotes, the home, or `lines`")?,
        })
    }
}
