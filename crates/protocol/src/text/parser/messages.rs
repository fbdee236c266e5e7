//! Channels, and the messages that travel on them.

use super::{Parse, ParseError, Parser, CLASSES};
use crate::protocol::{Carries, End};
use crate::text::ast::{ChannelItem, EndItem, Group, MessageItem};
use crate::text::diagnostic::{Code, Diagnostic};
use crate::text::lexer::Token;
use cohkit_base::words::nearest;

impl<'a> Parser<'a, '_> {
    /// Parses one entry of a `channels` block: a channel, `ordered ...` or `network ...`.
    pub(super) fn channel(&mut self) -> Parse<ChannelItem<'a>> {
        if self.eat_word("ordered") {
            self.production("order");
            let mut names = vec![self.name("a channel")?];
            while self.eat(Token::Comma) || self.peek() == Token::Word {
                if names.len() == 1 && self.eat_word("behind") {
                    let (message, earlier) = (names[0], self.names("a message")?);
                    return Ok(ChannelItem::OrderedBehind { message, earlier });
                }
                let next = self.token_at(1);
                if self.word() == "per" && self.slice(next.1) == "line" {
                    let per_line = self.eat_word("per") && self.eat_word("line");
                    return Ok(ChannelItem::Ordered(names, per_line));
                }
                names.push(self.name("a channel")?);
            }
            return Ok(ChannelItem::Ordered(names, false));
        }
        // A channel may have the name `network`.
        let (token, span) = self.token_at(2);
        let opens_network = token == Token::OpenBrace || self.slice(span) == "capacity";
        if self.word() == "network" && opens_network {
            self.production("network");
            self.advance();
            let name = self.new_name("the name of a network")?;
            let capacity = match self.eat_word("capacity") {
                true => Some(self.number_or_size("a capacity")?),
                false => None,
            };
            self.expect(Token::OpenBrace, "`{`")?;
            self.skip_newlines();
            let mut names = vec![self.name("a channel")?];
            self.skip_newlines();
            while self.eat(Token::Comma) || self.peek() == Token::Word {
                self.skip_newlines();
                names.push(self.name("a channel")?);
                self.skip_newlines();
            }
            self.expect(Token::CloseBrace, "`,` or `}`")?;
            return Ok(ChannelItem::Network(name, capacity, names));
        }
        self.production("channel");
        let name = self.name("the name of a channel")?;
        let class = if self.eat_word("as") {
            Some(self.choice(&CLASSES, "a class")?)
        } else {
            None
        };
        let from = self.end("the sender")?;
        if self.peek() != Token::Arrow {
            // A misspelt statement, such as `order reply`, begins like a channel.
            let statement = nearest(name.text, ["ordered", "network"]);
            let statement = statement.filter(|_| class.is_none());
            if let Some(statement) = statement {
                let text = format!("`{}` begins neither a channel nor a statement", name.text);
                self.sink.push(
                    Diagnostic::new(Code::Syntax, name.span, text)
                        .label(format!("did you mean `{statement}`?"))
                        .note("a channel is `NAME SENDER -> RECEIVER`; `ordered NAME` keeps its messages in order"),
                );
                return Err(ParseError);
            }
        }
        self.expect(Token::Arrow, "`->`")?;
        let to = self.end("the receiver")?;
        Ok(ChannelItem::Channel {
            name,
            class,
            from,
            to,
            span: name.span.to(self.last_span()),
        })
    }

    /// Parses one end of a channel; `description` names it in errors.
    pub(super) fn end(&mut self, description: &str) -> Parse<EndItem<'a>> {
        let name = self.name(description)?;
        Ok(match name.text {
            "remote" => EndItem::Role(End::Remote),
            "home" => EndItem::Role(End::Home),
            "any" => EndItem::Role(End::Any),
            _ => EndItem::Kind(name),
        })
    }

    /// `CHANNEL: MESSAGE, MESSAGE, ...`.
    pub(super) fn group(&mut self) -> Parse<Group<'a>> {
        self.production("group");
        let channel = self.name("a channel")?;
        self.expect(Token::Colon, "`:`")?;
        let mut messages = vec![self.message()?];
        while self.eat(Token::Comma) {
            messages.push(self.message()?);
        }
        if self.peek() == Token::Word && !self.at_block() {
            return self.expected("`,` before another message");
        }
        Ok(Group { channel, messages })
    }

    /// Parses a message with its payload and fields.
    pub(super) fn message(&mut self) -> Parse<MessageItem<'a>> {
        self.production("message");
        let name = self.new_name("the name of a message")?;
        let mut message = MessageItem {
            name,
            carries: Carries::Nothing,
            fields: Vec::new(),
        };
        if self.eat(Token::Open) {
            self.parentheses += 1;
            self.content(&mut message)?;
            while self.eat(Token::Comma) {
                self.content(&mut message)?;
            }
            self.expect(Token::Close, "`,` or `)`")?;
            self.parentheses -= 1;
        }
        Ok(message)
    }

    /// `line`, `line, dirty`, `store`, `partial store`, or a field.
    pub(super) fn content(&mut self, message: &mut MessageItem<'a>) -> Parse<()> {
        self.production("content");
        let start = self.span();
        let is_field = self.token_at(1).0 == Token::Colon;
        let carries = match self.word() {
            _ if is_field => None,
            "line" => Some(Carries::Line),
            "dirty" => Some(Carries::DirtyLine),
            "store" => Some(Carries::Store),
            "partial" => Some(Carries::PartialStore),
            _ => return self.expected("the payload of the message (`line`, `line, dirty`, `store`, `partial store`) or a field with its type"),
        };
        let Some(carries) = carries else {
            let name = self.new_name("a field")?;
            self.advance();
            let start = self.span();
            let ty = self.variable_type()?;
            if ty.is_array() {
                let text = format!("`{}` would be an array", name.text);
                self.sink.push(
                    Diagnostic::new(Code::Type, start.to(self.last_span()), text)
                        .label("a field is one value or a set; only variables are arrays"),
                );
            }
            message.fields.push((name, ty));
            return Ok(());
        };
        self.advance();
        if carries == Carries::PartialStore {
            self.expect_word("store")?;
        }
        // `dirty` follows `line`; every other content is alone.
        let required = if carries == Carries::DirtyLine {
            Carries::Line
        } else {
            Carries::Nothing
        };
        if message.carries == required {
            message.carries = carries;
        } else {
            let diagnostic = Diagnostic::new(
                Code::Carries,
                start.to(self.last_span()),
                format!("`{}` cannot carry this", message.name.text),
            )
            .label(if carries == Carries::DirtyLine {
                "write `line, dirty`"
            } else {
                "it carries something else already"
            });
            self.sink.push(diagnostic);
        }
        Ok(())
    }
}
