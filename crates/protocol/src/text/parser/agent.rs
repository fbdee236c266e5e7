//! The `remote` and `home` blocks: states, variables, rows, and the statements of a policy.

use super::{is_reserved, Parse, ParseError, Parser, ACCEPTANCES, LOCK_CONFLICTS, STALLS};
use crate::controller::Operator;
use crate::policy::Acceptance;
use crate::text::aliases::KeywordContext;
use crate::text::ast::{
    Action, ActionKind, Agent, AgentItem, Block, Condition, Goal, LocalItem, Name, PolicyItem, Row,
    StateItem, StatePermission, VariableItem,
};
use crate::text::diagnostic::{Code, Diagnostic};
use crate::text::lexer::Token;
use cohkit_diagnostics::{suggestion, Span};

impl<'a> Parser<'a, '_> {
    /// Parses the names and the body of an agent, after its keyword. `remote` is false for a home,
    /// whose name is optional.
    pub(super) fn agent(&mut self, keyword: Span, remote: bool) -> Parse<Agent<'a>> {
        self.production(if remote { "remote" } else { "home" });
        let names = match remote {
            true => self.names("the name of the remote")?,
            false if self.peek() == Token::Word => vec![self.name("the name of the home")?],
            false => Vec::new(),
        };
        let description = if remote { "`remote`" } else { "`home`" };
        self.memory_writes = false;
        Ok(Agent {
            names,
            body: self.block(keyword, description, Self::agent_item)?,
            memory_writes: self.memory_writes,
        })
    }

    /// Returns true if a row begins here: names up to a `|`, or `-`.
    pub(super) fn at_row(&self) -> bool {
        self.token_at(0).0 == Token::Minus && self.token_at(1).0 == Token::Bar
            || self.tokens[self.position..]
                .iter()
                .find(|(token, _)| !matches!(token, Token::Word | Token::Comma))
                .is_some_and(|&(token, _)| token == Token::Bar)
    }

    /// Parses one entry of an agent's body: a block of declarations, a row, a local operation, or a
    /// statement of a policy.
    fn agent_item(&mut self) -> Parse<AgentItem<'a>> {
        if self.at_row() {
            return self.row().map(AgentItem::Row);
        }
        let keyword = self.span();
        Ok(match self.word() {
            "states" => {
                self.production("states");
                self.advance();
                AgentItem::States(self.block(keyword, "`states`", Self::state)?)
            }
            "variables" => {
                self.production("variables");
                self.advance();
                AgentItem::Variables(self.variables(keyword, "`variables`")?)
            }
            "registers" => {
                self.production("registers");
                self.advance();
                AgentItem::Registers(self.variables(keyword, "`registers`")?)
            }
            "local" => self.local(keyword)?,
            _ => {
                let item = self.policy_item()?;
                AgentItem::Policy(item, keyword.to(self.last_span()))
            }
        })
    }

    /// Parses the declaration of a state: its name and properties in any order.
    fn state(&mut self) -> Parse<StateItem<'a>> {
        self.production("state");
        let name = self.new_name("the name of a state")?;
        let mut state = StateItem {
            name,
            reads: StatePermission::Never,
            writes: StatePermission::Never,
            dirty: false,
            holds: None,
            waits: Vec::new(),
        };
        loop {
            let span = self.span();
            match self.word() {
                "reads" => {
                    state.reads = self.state_permission()?;
                    continue;
                }
                "writes" => {
                    state.writes = self.state_permission()?;
                    continue;
                }
                "dirty" => state.dirty = true,
                "holds" => state.holds = Some(span),
                "waits" => {
                    self.advance();
                    state.waits.push(self.name("a message")?);
                    while self.peek() == Token::Word && !is_reserved(self.word()) {
                        state.waits.push(self.name("a message")?);
                    }
                    self.eat(Token::Comma);
                    continue;
                }
                _ if matches!(
                    self.peek(),
                    Token::Newline | Token::Semicolon | Token::CloseBrace | Token::End
                ) =>
                {
                    return Ok(state)
                }
                _ => return self.expected(
                    "`reads`, `writes`, `dirty`, `holds` or `waits`, or `;` before another state",
                ),
            }
            self.advance();
            self.eat(Token::Comma);
        }
    }

    /// Parses `reads` or `writes`, with its condition if any.
    fn state_permission(&mut self) -> Parse<StatePermission<'a>> {
        self.advance();
        let permission = match self.eat_word("if") {
            true => StatePermission::If(self.expression()?),
            false => StatePermission::Always,
        };
        self.eat(Token::Comma);
        Ok(permission)
    }

    /// Parses a block of variables or registers; `description` names it in errors.
    fn variables(&mut self, keyword: Span, description: &str) -> Parse<Block<VariableItem<'a>>> {
        self.block(keyword, description, |p| {
            p.production("variable");
            let name = p.new_name("the name of a variable")?;
            p.expect(Token::Colon, "`:`")?;
            let ty = p.variable_type()?;
            let initial = match p.eat(Token::Is) {
                true => Some(p.expression()?),
                false => None,
            };
            p.eat(Token::Comma);
            Ok(VariableItem { name, ty, initial })
        })
    }

    /// Parses a row up to the end of its last cell.
    fn row(&mut self) -> Parse<Row<'a>> {
        self.production("row");
        let start = self.span();
        let states = match self.eat(Token::Minus) {
            true => Vec::new(),
            false => self.names("a state")?,
        };
        self.expect(Token::Bar, "`|`")?;
        self.skip_newlines();
        let mut events = vec![self.name("an event")?];
        while self.eat(Token::Comma) || self.peek() == Token::Word && self.word() != "if" {
            events.push(self.name("an event")?);
        }
        let guard = if self.eat_word("if") {
            Some(self.expression()?)
        } else {
            None
        };
        if guard.is_some() && self.peek() == Token::Is {
            return self.expected("`==`");
        }
        self.expect(Token::Bar, "`|` before the actions")?;
        // The actions may begin on the next line, unless that line is itself a row.
        if self.token_at(0).0 == Token::Newline && !self.row_follows() {
            self.skip_newlines();
        }
        let mut actions = Vec::new();
        if !self.at_cell_end() {
            actions.push(self.action()?);
            while self.eat(Token::Comma) {
                actions.push(self.action()?);
            }
        }
        if !self.at_cell_end() {
            return self.expected("`,` or `|`");
        }
        let next = if self.eat(Token::Bar) && !self.at_cell_end() {
            Some(self.name("the next state or `stay`")?)
        } else {
            None
        };
        Ok(Row {
            states,
            events,
            guard,
            actions,
            next,
            span: start.to(self.last_span()),
        })
    }

    /// Returns true at the end of a row's cell: a `|`, or the end of the row.
    fn at_cell_end(&mut self) -> bool {
        matches!(
            self.peek(),
            Token::Bar | Token::Newline | Token::Semicolon | Token::CloseBrace | Token::End
        )
    }

    /// Returns true if the next line has names and at least two bars: a row, not the rest of one.
    fn row_follows(&self) -> bool {
        let line = self.tokens[self.position + 1..]
            .iter()
            .take_while(|(token, _)| !matches!(token, Token::Newline | Token::End));
        let bars = line
            .clone()
            .filter(|(token, _)| *token == Token::Bar)
            .count();
        let first = self.tokens[self.position + 1].0;
        bars >= 2 && matches!(first, Token::Word | Token::Minus)
    }

    /// Parses one action of a row.
    fn action(&mut self) -> Parse<Action<'a>> {
        self.production("action");
        let start = self.span();
        let word = self.keyword(KeywordContext::Action);
        let kind = match word {
            "send" => {
                self.advance();
                self.send()?
            }
            "for" => {
                self.advance();
                self.for_action()?
            }
            "acknowledge" => {
                self.advance();
                ActionKind::Acknowledge(self.name("a local operation")?)
            }
            "every" => {
                self.advance();
                let from = self.name("a state")?;
                self.expect_word("becomes")?;
                ActionKind::BulkTransition(from, self.name("a state")?)
            }
            "write" => {
                let deferred = self.eat_keyword(KeywordContext::Action, "write deferred");
                if !deferred {
                    self.advance();
                }
                ActionKind::Write { deferred }
            }
            "defer" | "done" | "retry" | "unlocked" | "stall" | "unreachable" | "refuse" => {
                self.advance();
                match word {
                    "defer" => ActionKind::Defer,
                    "done" => ActionKind::Done,
                    "retry" => ActionKind::Retry,
                    "unlocked" => ActionKind::AcknowledgeUnlock,
                    "stall" => ActionKind::Stall,
                    "unreachable" => ActionKind::Unreachable,
                    _ => ActionKind::Refuse,
                }
            }
            _ if self.token_at(1).0 == Token::OpenBracket && !word.is_empty() => {
                let name = self.name("an action")?;
                let index = self.indices()?;
                let Some(operator) = self.assignment(0) else {
                    return self.expected("`:=`, `+=` or `-=`");
                };
                self.advance();
                ActionKind::AssignElement(name, index, operator, self.expression()?)
            }
            _ => {
                let Some(operator) = self.assignment(1) else {
                    return self.report_no_action();
                };
                let name = self.name("an action")?;
                self.advance();
                // A variable may have the name `any`.
                let starts_expression = matches!(
                    self.token_at(1).0,
                    Token::Word | Token::Open | Token::OpenBrace
                );
                if operator.is_none() && starts_expression && self.word() == "any" {
                    self.advance();
                    let kind = ActionKind::Choose(name, self.expression()?);
                    let span = start.to(self.last_span());
                    return Ok(Action { kind, span });
                }
                ActionKind::Assign(name, operator, self.expression()?)
            }
        };
        Ok(Action {
            kind,
            span: start.to(self.last_span()),
        })
    }

    /// Operator of the assignment sign `ahead` tokens further; `None` if it is not an assignment sign.
    fn assignment(&self, ahead: usize) -> Option<Option<Operator>> {
        match self.token_at(ahead).0 {
            Token::Becomes => Some(None),
            Token::Increase => Some(Some(Operator::Add)),
            Token::Decrease => Some(Some(Operator::Subtract)),
            _ => None,
        }
    }

    /// After `for`: `NAME in SET { ACTIONS }`.
    fn for_action(&mut self) -> Parse<ActionKind<'a>> {
        self.production("for");
        let name = self.new_name("the name of a remote")?;
        self.expect_word("in")?;
        let set = self.expression()?;
        self.expect(Token::OpenBrace, "`{`")?;
        self.skip_newlines();
        let mut actions = vec![self.action()?];
        while self.eat(Token::Comma) {
            actions.push(self.action()?);
        }
        self.skip_newlines();
        self.expect(Token::CloseBrace, "`,` or `}`")?;
        Ok(ActionKind::For(name, set, actions))
    }

    /// Reports a word that begins no action, with the most similar keyword.
    fn report_no_action(&mut self) -> Parse<Action<'a>> {
        const ACTIONS: [&str; 12] = [
            "send",
            "for",
            "write",
            "defer",
            "done",
            "retry",
            "every",
            "acknowledge",
            "unlocked",
            "stall",
            "unreachable",
            "refuse",
        ];
        let span = self.span();
        let word = self.word();
        if word.is_empty() || !self.sink.would_show(Code::Syntax, span) {
            return self.expected("an action");
        }
        self.sink.push(
            Diagnostic::new(
                Code::Syntax,
                span,
                format!("expected an action, found `{word}`"),
            )
            .label("neither an action nor followed by `:=`, `+=` or `-=`")
            .note(suggestion(word, "action", ACTIONS.into_iter())),
        );
        Err(ParseError)
    }

    /// After `send`: `M` or `M (field = e, ...)`, optionally followed by `to TARGET`.
    fn send(&mut self) -> Parse<ActionKind<'a>> {
        self.production("send");
        let message = self.name("a message")?;
        let mut fields = Vec::new();
        if self.eat(Token::Open) {
            self.parentheses += 1;
            loop {
                let name = self.name("a field")?;
                self.expect(Token::Is, "`=`")?;
                fields.push((name, self.expression()?));
                if !self.eat(Token::Comma) {
                    break;
                }
            }
            self.expect(Token::Close, "`,` or `)`")?;
            self.parentheses -= 1;
        }
        let to = if self.eat_word("to") {
            Some(self.expression()?)
        } else {
            None
        };
        Ok(ActionKind::Send {
            message,
            fields,
            to,
        })
    }

    /// `local unlock`, or `local NAME [lock] { ensure all <= RIGHT }`.
    fn local(&mut self, keyword: Span) -> Parse<AgentItem<'a>> {
        self.production("local");
        self.advance();
        if self.eat_word("unlock") {
            return Ok(AgentItem::Unlock(keyword.to(self.last_span())));
        }
        let name = self.name("the name of a local operation")?;
        let forms: &[bool] = if self.eat_word("lock") {
            &[true]
        } else if self.eat(Token::OpenBracket) {
            self.expect_word("lock")?;
            self.expect(Token::CloseBracket, "`]`")?;
            &[false, true]
        } else {
            &[false]
        };
        self.expect(Token::OpenBrace, "`{`")?;
        self.skip_newlines();
        self.expect_word("ensure")?;
        self.expect_word("all")?;
        let ensure = self.at_most()?;
        self.skip_newlines();
        self.expect(Token::CloseBrace, "`}`")?;
        Ok(AgentItem::Local(LocalItem {
            name,
            forms,
            ensure,
            span: keyword.to(self.last_span()),
        }))
    }

    /// `<= RIGHT` or `== RIGHT`.
    fn at_most(&mut self) -> Parse<Name<'a>> {
        self.production("at_most");
        if !self.eat(Token::LessOrEqual) && !self.eat(Token::Equal) {
            return self.expected("`<=` or `==`");
        }
        self.name("a state that names the permission")
    }

    /// Parses one statement of a policy, except `local`.
    fn policy_item(&mut self) -> Parse<PolicyItem<'a>> {
        let word = self.keyword(KeywordContext::Policy);
        if !matches!(
            word,
            "on" | "reach" | "stall" | "accept" | "under" | "serve" | "await" | "assert"
        ) {
            return self.expected("`states`, `variables`, `registers`, a row (`STATES | EVENTS | ACTIONS | NEXT`) or a statement of a policy");
        }
        self.advance();
        self.production(match word {
            "on" => "on",
            "reach" => "reach",
            "stall" => "stall",
            "accept" => "accept",
            "under" => "under",
            "serve" => "serve",
            "await" => "await",
            _ => "assert",
        });
        Ok(match word {
            "on" => self.request_goals()?,
            "reach" => {
                let permission = self.name("a state that names the permission")?;
                self.expect_word("with")?;
                PolicyItem::Reach {
                    permission,
                    forward: self.name("a forward")?,
                }
            }
            "stall" => PolicyItem::Stall(self.choice(&STALLS, "a stall mode")?),
            "accept" => {
                self.expect_word("local")?;
                let when = self.choice(&ACCEPTANCES, "an acceptance mode")?;
                match when {
                    Acceptance::Always => {}
                    Acceptance::BetweenRequests => self.expect_word("requests")?,
                    Acceptance::WhenIdle => self.expect_word("idle")?,
                }
                PolicyItem::Accept(when)
            }
            "under" => {
                self.expect_word("lock")?;
                PolicyItem::UnderLock(self.choice(&LOCK_CONFLICTS, "a mode of local operations")?)
            }
            "serve" if self.eat_word("under") => {
                self.expect_word("forwards")?;
                PolicyItem::ServeUnderForwards
            }
            "serve" => {
                self.expect_word("past")?;
                PolicyItem::ServePast(self.names("a victim")?)
            }
            "await" => {
                let acknowledgement = self.name("an acknowledgement")?;
                self.expect_word("after")?;
                PolicyItem::Await {
                    acknowledgement,
                    grants: self.names("a grant")?,
                }
            }
            _ => {
                let answer = self.name("an answer")?;
                if !self.eat_keyword(KeywordContext::Policy, "implies") {
                    return self.expected("`implies`");
                }
                PolicyItem::Expect {
                    answer,
                    permission: self.name("a state that names the permission")?,
                }
            }
        })
    }

    /// After `on`: `REQUEST(r) { goals }`.
    fn request_goals(&mut self) -> Parse<PolicyItem<'a>> {
        let keyword = self.last_span();
        let message = self.name("a request")?;
        self.expect(Token::Open, "`(`")?;
        let requester = self.name("a name for the requester")?;
        self.expect(Token::Close, "`)`")?;
        let goals = self.block(keyword, "`on`", |p| {
            p.production("goal");
            let start = p.span();
            let word = p.word();
            if !matches!(word, "ensure" | "write" | "grant" | "answer") {
                return p.expected("`ensure`, `write`, `grant` or `answer`");
            }
            p.advance();
            let goal = match word {
                "ensure" => {
                    p.expect_others(requester)?;
                    Goal::Ensure(p.at_most()?)
                }
                "write" => Goal::Write,
                _ => {
                    p.requester(requester)?;
                    let permission = if word == "grant" {
                        Some(p.name("a state that names the permission")?)
                    } else {
                        None
                    };
                    p.expect_word("with")?;
                    let message = p.name("a grant")?;
                    let when = if p.eat_word("if") {
                        p.condition(requester)?
                    } else {
                        Condition::Always
                    };
                    Goal::Grant {
                        permission,
                        message,
                        when,
                    }
                }
            };
            Ok((goal, start.to(p.last_span())))
        })?;
        Ok(PolicyItem::On { message, goals })
    }

    /// Parses the requester, by the name that `on` gave it.
    fn requester(&mut self, requester: Name<'a>) -> Parse<()> {
        let name = self.name("the requester")?;
        if name.text != requester.text {
            self.sink.push(
                Diagnostic::new(
                    Code::UnknownName,
                    name.span,
                    format!("`{}` is not the requester", name.text),
                )
                .label(format!("write `{}`", requester.text))
                .note_at(requester.span, "the requester is named here"),
            );
        }
        Ok(())
    }

    /// `others(r)`.
    fn expect_others(&mut self, requester: Name<'a>) -> Parse<()> {
        self.expect_word("others")?;
        self.expect(Token::Open, "`(`")?;
        self.requester(requester)?;
        self.expect(Token::Close, "`)`").map(|_| ())
    }

    /// `chosen`, `held(r)` or `others(r) == I`.
    fn condition(&mut self, requester: Name<'a>) -> Parse<Condition<'a>> {
        self.production("condition");
        if self.eat_word("chosen") {
            return Ok(Condition::Chosen);
        }
        if self.eat_word("held") {
            self.expect(Token::Open, "`(`")?;
            self.requester(requester)?;
            self.expect(Token::Close, "`)`")?;
            return Ok(Condition::Held);
        }
        if self.word() != "others" {
            return self.expected("`chosen`, `held(r)` or `others(r) == I`");
        }
        self.expect_others(requester)?;
        self.at_most().map(Condition::Others)
    }
}
