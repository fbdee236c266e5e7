//! Statements of files that compose others.

use super::{Parse, Parser};
use crate::text::ast::{AgentCount, Item, Name, Number, Part, Use};
use crate::text::lexer::Token;
use cohkit_diagnostics::Span;

impl<'a> Parser<'a, '_> {
    /// `use "FILE" as NAME`.
    pub(super) fn use_item(&mut self) -> Parse<Item<'a>> {
        self.production("use");
        self.composes = true;
        let span = self.expect(Token::Title, "the path of a protocol file, in quotes")?;
        let file = Name {
            text: self.slice(span).trim_matches('"'),
            span,
        };
        self.expect_word("as")?;
        let name = self.new_name("the name of a used protocol")?;
        Ok(Item::Use(Use { file, name }))
    }

    /// `node NAME { SPACE.PART; SPACE.PART over SPACE.KIND ... }`.
    pub(super) fn node(&mut self, keyword: Span) -> Parse<Item<'a>> {
        self.production("node");
        let name = self.new_name("the name of the node")?;
        let parts = self.block(keyword, "`node`", |p| {
            p.production("part");
            let part = p.part_of("a part of a used protocol, as `NAME.PART`")?;
            let backing = match p.eat_word("over") {
                true => Some(p.part_of("a kind of remotes of another used protocol")?),
                false => None,
            };
            Ok((part, backing))
        })?;
        Ok(Item::Node(name, parts))
    }

    /// `system NAME { NODE N; NODE N { SPACE.KIND N }; SPACE.lines N ... }`.
    pub(super) fn joint_system(&mut self, keyword: Span) -> Parse<Item<'a>> {
        self.production("joint");
        let name = self.name("the name of the system")?;
        let counts = self.block(keyword, "`system`", |p| {
            let begin = p.span();
            let (part, number) =
                p.count_of("an element of a system (a node, `NAME.PART` or `NAME.lines`)")?;
            let each = match p.peek() == Token::OpenBrace {
                true => Some(p.block(begin, "the block of a node", |p| {
                    p.count_of("remotes of each node, as `NAME.KIND`")
                })?),
                false => None,
            };
            Ok(AgentCount { part, number, each })
        })?;
        Ok(Item::JointSystem(name, counts))
    }

    /// `PART N`; `description` names the part in errors.
    fn count_of(&mut self, description: &str) -> Parse<(Part<'a>, Number)> {
        Ok((self.part_of(description)?, self.number("a number")?))
    }

    /// `NAME` or `SPACE.NAME`.
    fn part_of(&mut self, description: &str) -> Parse<Part<'a>> {
        let name = self.name(description)?;
        if !self.eat(Token::Dot) {
            return Ok(Part { space: None, name });
        }
        Ok(Part {
            space: Some(name),
            name: self.name("a kind of remotes, the home, or `lines`")?,
        })
    }
}
