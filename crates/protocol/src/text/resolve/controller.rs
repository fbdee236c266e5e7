//! Remotes and hand-written homes.

use super::expression::{Kind, Operand};
use super::rights::Depends;
use super::*;
use crate::controller::{
    Access, Controller, Effect, Event, Expression, Initial, Local, Rule, State, Statement, Target,
    Value, Variable, MEMORY_WRITES,
};
use crate::policy::LocalPolicy;
use crate::protocol::{Carries, Right, Type, VariableId};
use crate::remotes::KindId;
use rustc_hash::FxHashSet;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Remote,
    Home,
}

impl Side {
    fn name(self) -> &'static str {
        match self {
            Side::Remote => "the remote",
            Side::Home => "the home",
        }
    }
    fn is(self, end: End) -> bool {
        end == End::Any
            || end
                == if self == Side::Remote {
                    End::Remote
                } else {
                    End::Home
                }
    }
}

/// The most rows for one state and event. Whoever follows a row asks all those before it first, one inside the other,
/// and so many take a small part of a thread's stack.
const MOST_ROWS: usize = 1000;

/// What the expressions of one row may speak of.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a, 'n> {
    pub side: Side,
    /// The kind of remotes whose row it is.
    pub kind: Option<KindId>,
    pub variables: &'n Names<'a>,
    /// Of the first of these variables, its index.
    pub base: u16,
    pub types: &'n [Type],
    /// The message at hand.
    pub message: Option<MessageId>,
    /// In a loop, what it calls the agent that it is at, and whether that is a remote or a home.
    pub each: Option<(Name<'a>, Kind)>,
    /// Which of the variables are registers.
    pub registers: &'n [bool],
    /// Whether the row is about no line.
    pub lineless: bool,
}

/// An agent whose rows are being read.
pub(super) struct Reading<'a> {
    pub(super) side: Side,
    /// The kind of remotes, if it is one.
    kind: Option<KindId>,
    states: Names<'a>,
    /// The index of the first of these states, and of the first variable.
    base: (u16, u16),
    variables: Names<'a>,
    types: Vec<Type>,
    registers: Vec<bool>,
    locals: Vec<LocalPolicy>,
    unlock: bool,
    /// The first row without a guard for each state and event.
    rows: FxHashMap<(StateId, Event), Span>,
    /// Of the states whose right depends on variables, on what.
    pub(super) depends: Vec<Depends>,
    pub(super) controller: Controller,
}

impl Scope<'_, '_> {
    /// The variable with this number among those of the table at hand.
    pub fn variable(&self, number: u16) -> VariableId {
        VariableId(self.base + number)
    }
}

impl<'a> Resolver<'a, '_> {
    /// All remotes, or a hand-written home; the names of the states, in order; and the first state of each table.
    /// The rights that a home's local operations ensure are named by states of the remotes.
    pub(super) fn controller(
        &mut self,
        agents: &[&Agent<'a>],
        remote: Option<(&Controller, &Names<'a>)>,
        side: Side,
    ) -> (Controller, Names<'a>, Vec<StateId>) {
        let mut controller = Controller {
            name: match (side, agents) {
                (Side::Remote, [_, _, ..]) => "remote".to_string(),
                _ => agents
                    .iter()
                    .flat_map(|agent| agent.names.first())
                    .map(|name| name.text.to_string())
                    .next()
                    .unwrap_or_else(|| "home".to_string()),
            },
            states: Vec::new(),
            variables: Vec::new(),
            tables: Vec::new(),
            rules: Vec::new(),
            locals: Vec::new(),
            span: agents
                .first()
                .map_or(Span::default(), |agent| name_of(agent).span),
        };
        let mut names = Names::new("state", false);
        let (mut initial, mut whole) = (Vec::new(), true);
        for agent in agents {
            initial.push(StateId(controller.states.len() as u16));
            let own = agents.len() > 1;
            let (states, good) = self.table(agent, remote, side, own, &mut controller);
            names.partial |= states.partial;
            for name in states.list {
                let index = names.list.len() as u16;
                names.index.entry(name.text).or_insert(index);
                names.list.push(name);
            }
            whole &= good;
        }
        if whole {
            self.never_set_aside(&controller);
            self.waits_in_vain(&controller);
            if side == Side::Remote {
                pending::check(&controller, &self.messages, &self.channels, self.sink);
                endings::check(&controller, &self.messages, self.sink);
            }
        }
        (controller, names, initial)
    }

    /// Reads one block into a controller. Gives the names of its states, and whether all of it was understood.
    /// Where remotes have several tables, the states of each are shown with its name.
    fn table(
        &mut self,
        agent: &Agent<'a>,
        remote: Option<(&Controller, &Names<'a>)>,
        side: Side,
        one_of_several: bool,
        controller: &mut Controller,
    ) -> (Names<'a>, bool) {
        let name = name_of(agent);
        let (mut states, mut variables, mut registers) = (None, None, None);
        for item in &agent.body.items {
            match item {
                AgentItem::States(block) => once(
                    &mut states,
                    block,
                    |it| it.keyword,
                    "`states` block",
                    self.sink,
                ),
                AgentItem::Variables(block) => once(
                    &mut variables,
                    block,
                    |it| it.keyword,
                    "`variables` block",
                    self.sink,
                ),
                AgentItem::Registers(block) => once(
                    &mut registers,
                    block,
                    |it| it.keyword,
                    "`registers` block",
                    self.sink,
                ),
                AgentItem::Policy(_, span) => {
                    let (message, label) = match side {
                        Side::Remote => (
                            "a statement of a policy in the remote",
                            "a remote is written as rows",
                        ),
                        Side::Home => (
                            "a statement of a policy in a home with rows",
                            "a home is a policy or rows, not both",
                        ),
                    };
                    self.sink
                        .push(Diagnostic::new(Code::Misplaced, *span, message).label(label));
                }
                AgentItem::Local(LocalItem { span, .. }) | AgentItem::Unlock(span)
                    if side == Side::Remote =>
                {
                    let message = "a local operation in the remote";
                    self.sink.push(
                        Diagnostic::new(Code::Misplaced, *span, message)
                            .label("the device stands behind the home"),
                    );
                }
                _ => {}
            }
        }
        if states.is_none_or(|block| block.items.is_empty() && !block.broken) && !agent.body.broken
        {
            let message = format!("{} has no states", side.name());
            self.sink.push(
                Diagnostic::new(Code::MissingBlock, name.span, message)
                    .label("needs `states { ... }`")
                    .note("the first state is the initial one"),
            );
        }
        let mut reading = Reading {
            side,
            kind: match side {
                Side::Remote => self
                    .kind_names
                    .index
                    .get(name.text)
                    .map(|&k| KindId(k as u8)),
                Side::Home => None,
            },
            base: (
                controller.states.len() as u16,
                controller.variables.len() as u16,
            ),
            states: Names::new("state", states.is_none_or(|block| block.broken)),
            variables: Names::new(
                "variable",
                [variables, registers]
                    .iter()
                    .flatten()
                    .fold(agent.body.broken, |broken, block| broken || block.broken),
            ),
            types: Vec::new(),
            registers: Vec::new(),
            locals: Vec::new(),
            unlock: false,
            rows: FxHashMap::default(),
            depends: Vec::new(),
            controller: std::mem::replace(controller, nothing(name.span)),
        };
        for item in states.iter().flat_map(|block| &block.items) {
            if reading.states.declare(item.name, self.sink).is_some() {
                let mut state = self.state(item, side, reading.kind);
                if one_of_several {
                    state.name = format!("{}.{}", name.text, state.name);
                }
                if reading.controller.states.len() == usize::from(u16::MAX) {
                    too_many("state", item.name.span, usize::from(u16::MAX), self.sink);
                    break;
                }
                reading.controller.states.push(state);
            }
        }
        for (block, register) in [(variables, false), (registers, true)] {
            for item in block.iter().flat_map(|block| &block.items) {
                let shown = match one_of_several {
                    true => format!("{}.{}", name.text, item.name.text),
                    false => item.name.text.to_string(),
                };
                self.variable(item, shown, register, &mut reading);
            }
        }
        let asked = Name {
            text: MEMORY_WRITES,
            span: name.span,
        };
        if side == Side::Home
            && agent.memory_writes
            && reading.variables.declare(asked, self.sink).is_some()
        {
            reading.types.push(Type::Bool);
            reading.registers.push(false);
            reading.controller.variables.push(Variable {
                name: MEMORY_WRITES.to_string(),
                ty: Type::Bool,
                register: false,
                initial: Initial::Number(1),
                labels: Vec::new(),
                span: name.span,
            });
        }
        if side == Side::Home {
            reading.locals = self.locals(agent, remote);
            reading.unlock = agent
                .body
                .items
                .iter()
                .any(|item| matches!(item, AgentItem::Unlock(_)));
            let local = |local: &LocalPolicy| Local {
                name: local.name.clone(),
                ensures: local.ensure,
                locks: local.lock,
            };
            reading.controller.locals = reading.locals.iter().map(local).collect();
        }
        for item in states.iter().flat_map(|block| &block.items) {
            let state = reading.states.index.get(item.name.text);
            let state = state.map(|&state| StateId(reading.base.0 + state));
            let depends = state.and_then(|state| self.depends(state, item, &reading));
            reading.depends.extend(depends);
        }
        let first_rule = reading.controller.rules.len();
        let mut rules = 0;
        // What follows from all rows together is asked where all have been read.
        let mut broken = agent.body.broken;
        let mut guarded: FxHashMap<(StateId, Event), usize> = FxHashMap::default();
        'items: for item in &agent.body.items {
            let AgentItem::Row(row) = item else { continue };
            // Counted here, good or not: a short row can stand for very many.
            let states = match row.states.len() {
                0 => reading.states.list.len(),
                some => some,
            };
            rules += states * row.events.len();
            if rules > usize::from(u16::MAX) {
                too_many("rule", row.span, usize::from(u16::MAX), self.sink);
                broken = true;
                break;
            }
            let before = reading.controller.rules.len();
            self.row(row, &mut reading);
            for rule in &reading.controller.rules[before..] {
                let count = guarded.entry((rule.state, rule.event)).or_default();
                *count += 1;
                if *count > MOST_ROWS {
                    let message = format!("more than {MOST_ROWS} rows for one state and event");
                    self.sink.push(
                        Diagnostic::new(Code::TooMany, row.span, message)
                            .label("this one is too many"),
                    );
                    broken = true;
                    break 'items;
                }
            }
        }
        self.split(first_rule, &mut reading);
        *controller = reading.controller;
        (reading.states, !broken)
    }

    fn variable(
        &mut self,
        item: &VariableItem<'a>,
        shown: String,
        register: bool,
        reading: &mut Reading<'a>,
    ) {
        if reading.variables.declare(item.name, self.sink).is_none() {
            return;
        }
        reading.types.push(item.ty);
        reading.registers.push(register);
        let initial = item.initial.as_ref();
        let initial = initial.and_then(|initial| self.initial(initial, item.ty));
        reading.controller.variables.push(Variable {
            name: shown,
            ty: item.ty,
            register,
            initial: initial.unwrap_or(Initial::Number(0)),
            labels: Vec::new(),
            span: item.name.span,
        });
    }

    fn state(&mut self, item: &StateItem<'a>, side: Side, kind: Option<KindId>) -> State {
        // At most, where it depends on variables.
        let right = match (&item.reads, &item.writes) {
            (Gives::Never, Gives::Never) => Right::None,
            (_, Gives::Never) => Right::Read,
            _ => Right::Write,
        };
        let anyway = matches!(item.reads, Gives::Always) || matches!(item.writes, Gives::Always);
        if let (Some(span), true) = (item.holds, anyway) {
            let message = format!("`{}` holds the line anyway", item.name.text);
            self.sink.push(
                Diagnostic::new(Code::RedundantHolds, span, message)
                    .label("leave this out: a state that reads or writes holds the line"),
            );
        }
        if side == Side::Home && (right > Right::None || item.dirty || item.holds.is_some()) {
            let message = format!("a right or a copy of the home's in `{}`", item.name.text);
            let diagnostic = Diagnostic::new(Code::Misplaced, item.name.span, message);
            let said =
                "a home's states wait for messages; only a remote's give rights and hold lines";
            self.sink.push(diagnostic.label(said));
        }
        let holds_line = right > Right::None || item.holds.is_some();
        if item.dirty && !holds_line {
            let message = format!("`{}` is dirty but does not hold the line", item.name.text);
            self.sink.push(
                Diagnostic::new(Code::Carries, item.name.span, message)
                    .label("add `reads`, `writes` or `holds`"),
            );
        }
        let mut waits = Vec::new();
        for &name in &item.waits {
            let Some(message) = self.message_named(name) else {
                continue;
            };
            if self.arrives(message, name, side, kind) {
                waits.push(message);
            }
        }
        State {
            name: item.name.text.to_string(),
            right,
            dirty: item.dirty,
            holds_line,
            waits,
            span: item.name.span,
        }
    }

    /// Whether the message can come to this side; if not, that is reported.
    fn arrives(
        &mut self,
        message: MessageId,
        name: Name<'a>,
        side: Side,
        kind: Option<KindId>,
    ) -> bool {
        let channel = self.channel_of(message);
        let good = side.is(channel.to);
        if let (true, Some(only), Some(own)) = (good, channel.kinds[1], kind) {
            if only != own {
                let text = format!("`{}` never comes to this kind of remotes", name.text);
                let to = self.kind_names.list[only.index()].text;
                let diagnostic = Diagnostic::new(Code::Direction, name.span, text)
                    .label(format!("travels on `{}`, to `{to}`", channel.name))
                    .see(channel.span, "this channel's direction");
                self.sink.push(diagnostic);
                return false;
            }
        }
        if !good {
            let diagnostic = Diagnostic::new(
                Code::Direction,
                name.span,
                format!("`{}` never comes to {}", name.text, side.name()),
            )
            .label(format!(
                "travels on `{}`, away from {}",
                channel.name,
                side.name()
            ))
            .see(channel.span, "this channel's direction");
            self.sink.push(diagnostic);
        }
        good
    }

    fn waits_in_vain(&mut self, controller: &Controller) {
        // States that one of the text has become are declared at one place.
        let takes: FxHashSet<(Span, Event)> = controller
            .rules
            .iter()
            .filter(|rule| matches!(rule.effect, Effect::Take { .. }))
            .map(|rule| (controller.states[rule.state.index()].span, rule.event))
            .collect();
        for state in &controller.states {
            for &message in &state.waits {
                if !takes.contains(&(state.span, Event::Message(message))) {
                    let name = &self.messages[message.index()].name;
                    let text = format!(
                        "`{}` waits for `{name}` but has no row that takes it",
                        state.name
                    );
                    self.sink.push(
                        Diagnostic::new(Code::WaitsInVain, state.span, text)
                            .label(format!("write a row `{} | {name} | ...`", state.name)),
                    );
                }
            }
        }
    }

    /// Bytes that are set aside are written somewhere, and the reverse.
    fn never_set_aside(&mut self, home: &Controller) {
        let row = |statement: &Statement| {
            let mut rows = home.rules.iter();
            rows.find(
                |row| matches!(&row.effect, Effect::Take { body, .. } if body.contains(statement)),
            )
        };
        let (message, label, span) = match (row(&Statement::SetAside), row(&Statement::WriteAside))
        {
            (None, Some(row)) => (
                "nothing is ever set aside",
                "say `aside` where the bytes come",
                row.span,
            ),
            (Some(row), None) => (
                "what is set aside is never written",
                "say `write aside` where it is to be written",
                row.span,
            ),
            _ => return,
        };
        self.sink
            .push(Diagnostic::new(Code::Misplaced, span, message).label(label));
    }

    /// Adds the rules of a row: one for each of its states with each of its events.
    fn row(&mut self, row: &Row<'a>, reading: &mut Reading<'a>) {
        // A row about no line is taken in whatever state a line is.
        let lineless = row.states.is_empty();
        let names = match lineless {
            true => &reading.states.list.clone(),
            false => &row.states,
        };
        let states: Vec<StateId> = names
            .iter()
            .filter_map(|&name| reading.states.find(name, self.sink))
            .map(|state| StateId(reading.base.0 + state))
            .collect();
        for &name in &row.events {
            let Some(event) = self.event(name, reading) else {
                continue;
            };
            self.sort_of_rows(event, name, lineless);
            let guard = row.guard.as_ref().map(|guard| {
                let scope = reading.scope(event, lineless);
                self.typed(guard, Kind::Bool, &scope)
            });
            let effect = self.effect(row, name, event, reading);
            if let (Event::Message(message), Some(Effect::Take { .. })) = (event, &effect) {
                self.taken[message.index()] = true;
            }
            for (&state, name) in states.iter().zip(names) {
                if let Some(&first) = reading.rows.get(&(state, event)) {
                    let message = format!("this row is never reached for `{}`", name.text);
                    self.sink.push(
                        Diagnostic::new(Code::UnreachableRow, row.span, message)
                            .label("an earlier row comes before it")
                            .see(first, "always takes the event"),
                    );
                }
                if row.guard.is_none() {
                    reading.rows.entry((state, event)).or_insert(row.span);
                }
                let (Some(effect), Some(guard)) = (
                    &effect,
                    guard.clone().map_or(Some(None), |guard| guard.map(Some)),
                ) else {
                    continue;
                };
                let state_of = |id: StateId| &reading.controller.states[id.index()];
                if let (Side::Remote, Effect::Take { body, next }) = (reading.side, effect) {
                    // Of states that become several it is asked then.
                    if ![Some(state), *next]
                        .iter()
                        .flatten()
                        .any(|&s| reading.is_split(s))
                    {
                        let (state, next) = (state_of(state), next.map(state_of));
                        self.data_flow(row.span, state, event, body, next);
                    }
                }
                reading.controller.rules.push(Rule {
                    state,
                    event,
                    guard,
                    effect: effect.clone(),
                    span: row.span,
                });
            }
        }
    }

    /// A message is taken by rows about its line, or by rows about no line; whatever else happens is about a line.
    fn sort_of_rows(&mut self, event: Event, name: Name<'a>, lineless: bool) {
        let Event::Message(message) = event else {
            let about_line = !matches!(event, Event::Access(access) if !access.about_line());
            if lineless == about_line {
                let (text, label) = match about_line {
                    true => (
                        "is about a line",
                        "name the states of the line instead of `-`",
                    ),
                    false => ("is about no line", "write `-` instead of states"),
                };
                let text = format!("`{}` {text}", name.text);
                let diagnostic = Diagnostic::new(Code::Misplaced, name.span, text);
                self.sink.push(diagnostic.label(label));
            }
            return;
        };
        let (found, first) = *self.rows[message.index()].get_or_insert((lineless, name.span));
        if found != lineless {
            let text = format!("`{}` is taken by rows of both sorts", name.text);
            let diagnostic = Diagnostic::new(Code::Misplaced, name.span, text)
                .label("about a line here, or about none")
                .see(first, "the other sort here");
            self.sink.push(diagnostic);
        }
    }

    fn event(&mut self, name: Name<'a>, reading: &Reading<'a>) -> Option<Event> {
        let access = Access::ALL.iter().find(|(_, access)| *access == name.text);
        if reading.side == Side::Remote {
            if let Some(&(access, _)) = access {
                return Some(Event::Access(access));
            }
        } else {
            if let Some(local) = reading
                .locals
                .iter()
                .position(|local| local.name == name.text)
            {
                return Some(Event::Local(local as u8));
            }
            if name.text == "unlock" && reading.unlock {
                return Some(Event::Unlock);
            }
            if access.is_some() || name.text == "unlock" {
                let diagnostic = Diagnostic::new(
                    Code::Misplaced,
                    name.span,
                    format!("`{}` does not happen at this home", name.text),
                );
                self.sink
                    .push(if name.text == "unlock" || name.text == "clean" {
                        diagnostic.label(format!("declare it with `local {}`", name.text))
                    } else {
                        diagnostic.label("only a remote has accesses")
                    });
                return None;
            }
        }
        if !self.message_names.index.contains_key(name.text) && !self.message_names.partial {
            let own: Vec<&str> = match reading.side {
                Side::Remote => Access::ALL.iter().map(|(_, name)| *name).collect(),
                Side::Home => reading
                    .locals
                    .iter()
                    .map(|local| local.name.as_str())
                    .chain(reading.unlock.then_some("unlock"))
                    .collect(),
            };
            let arriving = self
                .messages
                .iter()
                .filter(|message| reading.side.is(self.channels[message.channel.index()].to));
            unknown(
                "event",
                name,
                arriving.map(|message| message.name.as_str()).chain(own),
                self.sink,
            );
            return None;
        }
        let message = self.message_named(name)?;
        self.arrives(message, name, reading.side, reading.kind)
            .then_some(Event::Message(message))
    }

    /// What a row does on one of its events.
    fn effect(
        &mut self,
        row: &Row<'a>,
        event_name: Name<'a>,
        event: Event,
        reading: &Reading<'a>,
    ) -> Option<Effect> {
        let alone = row.actions.iter().find(|action| {
            matches!(
                action.kind,
                ActionKind::Leave | ActionKind::Never | ActionKind::Refuse
            )
        });
        if let Some(action) = alone {
            let local = matches!(event, Event::Local(_) | Event::Unlock);
            let message = matches!(event, Event::Message(_));
            let (effect, word, fits, of) = match action.kind {
                ActionKind::Leave => (
                    Effect::Leave,
                    "leave",
                    local || message,
                    "a message or a local operation",
                ),
                ActionKind::Never => (Effect::Never, "never", message, "a message"),
                _ => (Effect::Refuse, "refuse", local, "a local operation"),
            };
            if !fits {
                let message = format!("`{word}` does not fit `{}`", event_name.text);
                self.sink.push(
                    Diagnostic::new(Code::Misplaced, action.span, message)
                        .label(format!("only {of}"))
                        .see(event_name.span, "the event"),
                );
                return None;
            }
            if row.actions.len() > 1 {
                self.sink.push(
                    Diagnostic::new(
                        Code::Misplaced,
                        action.span,
                        format!("`{word}` stands alone"),
                    )
                    .label("no other action beside it"),
                );
                return None;
            }
            if let Some(next) = row.next {
                self.sink.push(
                    Diagnostic::new(
                        Code::Next,
                        next.span,
                        format!("`{word}` leaves the state as it is"),
                    )
                    .label("leave this cell empty"),
                );
            }
            return Some(effect);
        }
        let mut ends = row
            .actions
            .iter()
            .filter(|action| matches!(action.kind, ActionKind::Done));
        if let (Some(_), Some(again)) = (ends.next(), ends.next()) {
            let message = "`done` twice in one row";
            let diagnostic = Diagnostic::new(Code::Misplaced, again.span, message);
            self.sink.push(diagnostic.label("the access has ended"));
        }
        let lineless = row.states.is_empty();
        let scope = reading.scope(event, lineless);
        let body: Vec<_> = row
            .actions
            .iter()
            .map(|action| self.action(action, event, &scope, reading))
            .collect();
        let next = match row.next {
            Some(name) if name.text == "stay" => Some(None),
            Some(name) if lineless => {
                let text = "a row about no line leads nowhere";
                self.sink.push(
                    Diagnostic::new(Code::Next, name.span, text)
                        .label("no line is at hand: leave this cell empty"),
                );
                None
            }
            None if lineless => Some(None),
            Some(name) => reading
                .states
                .find(name, self.sink)
                .map(|state| Some(StateId(reading.base.0 + state))),
            None => {
                let end = Span {
                    start: row.span.end,
                    end: row.span.end,
                };
                self.sink.push(
                    Diagnostic::new(Code::Next, end, "the row does not say what comes next")
                        .label("expected a state or `stay`"),
                );
                None
            }
        };
        Some(Effect::Take {
            body: body.into_iter().collect::<Option<_>>()?,
            next: next?,
        })
    }

    pub(super) fn action(
        &mut self,
        action: &Action<'a>,
        event: Event,
        scope: &Scope<'a, '_>,
        reading: &Reading<'a>,
    ) -> Option<Statement> {
        let carries = scope
            .message
            .map(|message| self.messages[message.index()].carries);
        let mut wrong = |code, message: &str, label: &str| {
            self.sink
                .push(Diagnostic::new(code, action.span, message).label(label));
            None
        };
        let of_line = !matches!(
            action.kind,
            ActionKind::Send { .. }
                | ActionKind::Assign(..)
                | ActionKind::AssignElement(..)
                | ActionKind::Retry
                | ActionKind::Every(..)
                | ActionKind::For(..)
        );
        if scope.lineless && of_line {
            return wrong(
                Code::Misplaced,
                "a row about no line",
                "no line is at hand: it sends, changes registers, or has every line of a state go to another",
            );
        }
        match &action.kind {
            ActionKind::Send {
                message,
                fields,
                to,
            } => self.send(*message, fields, to.as_ref(), action.span, scope),
            ActionKind::Assign(name, operator, value) => {
                let variable = scope.variables.find(*name, self.sink)?;
                let ty = scope.types[usize::from(variable)];
                let id = scope.variable(variable);
                self.has_line(*name, variable, scope)?;
                if ty.set_of_homes() {
                    return self.assign_homes(id, *operator, value, scope);
                }
                if ty.array() {
                    return self.all_elements(action, (*name, id, ty), scope);
                }
                let value = match *operator {
                    None => self.stored(value, ty, scope)?,
                    Some(operator) => self.changed(*name, operator, (id, ty), value, scope)?,
                };
                Some(match value {
                    Value::Single(value, _) => Statement::Assign(id, value),
                    Value::Set(set) => Statement::AssignSet(id, set),
                })
            }
            ActionKind::AssignElement(name, index, operator, value) => {
                self.element(*name, index, *operator, value, scope)
            }
            ActionKind::For(name, set, actions) => {
                self.for_each((*name, set, actions), event, scope, reading)
            }
            ActionKind::Every(from, to) => {
                self.every((*from, *to), action.span, scope, reading)
            }
            ActionKind::Aside => match (scope.side, carries) {
                (Side::Home, Some(Carries::Store | Carries::PartialStore)) => {
                    Some(Statement::SetAside)
                }
                _ => wrong(
                    Code::Misplaced,
                    "nothing to set aside",
                    "only a home sets aside, and only the bytes of a `(store)` or `(partial store)`",
                ),
            },
            ActionKind::Write { aside: true } => match scope.side {
                Side::Home => Some(Statement::WriteAside),
                Side::Remote => wrong(
                    Code::Misplaced,
                    "`write aside` in the remote",
                    "only the home writes to memory",
                ),
            },
            ActionKind::Write { aside: false } => match (scope.side, carries) {
                (Side::Remote, _) => wrong(
                    Code::Misplaced,
                    "`write` in the remote",
                    "only the home writes to memory",
                ),
                (Side::Home, None | Some(Carries::Nothing)) => wrong(
                    Code::Carries,
                    "nothing to write",
                    "this row's event carries no line",
                ),
                (Side::Home, Some(_)) => Some(Statement::WriteMemory),
            },
            ActionKind::Done => match (scope.side, event) {
                (Side::Home, _) => wrong(
                    Code::Misplaced,
                    "`done` in the home",
                    "only a remote has accesses to perform",
                ),
                (Side::Remote, Event::Message(_)) => Some(Statement::Done),
                (Side::Remote, _) => wrong(
                    Code::Misplaced,
                    "`done` without a message",
                    "it performs the pending access with the bytes of a message",
                ),
            },
            ActionKind::Retry => match event {
                Event::Access(access) if access.needs() > Right::None => Some(Statement::Retry),
                Event::Access(access) if !access.about_line() => Some(Statement::Retry),
                _ => wrong(
                    Code::Misplaced,
                    "nothing to try again",
                    "only for what reads or writes, and for what is about no line",
                ),
            },
            ActionKind::Unlocked if event == Event::Unlock || reading.unlock => {
                Some(Statement::Unlocked)
            }
            ActionKind::Unlocked => wrong(
                Code::Misplaced,
                "nothing can be unlocked here",
                "declare `local unlock` in the home",
            ),
            ActionKind::Acknowledge(name) => match reading
                .locals
                .iter()
                .position(|local| local.name == name.text)
            {
                Some(local) => Some(Statement::Acknowledge(local as u8)),
                None => {
                    unknown(
                        "local operation",
                        *name,
                        reading.locals.iter().map(|local| local.name.as_str()),
                        self.sink,
                    );
                    None
                }
            },
            // Reported and returned before.
            ActionKind::Leave | ActionKind::Never | ActionKind::Refuse => None,
        }
    }

    fn send(
        &mut self,
        name: Name<'a>,
        given: &[(Name<'a>, Expr<'a>)],
        to: Option<&Expr<'a>>,
        span: Span,
        scope: &Scope<'a, '_>,
    ) -> Option<Statement> {
        let found = self.message_named(name);
        let Some(message) = found else {
            // Its errors are reported all the same.
            self.target(found, to, span, scope);
            return None;
        };
        self.sent[message.index()] = true;
        if scope.lineless {
            self.without_line.push((message, name.span));
        }
        self.sent_by_home[message.index()] |= scope.side == Side::Home;
        let channel = self.channel_of(message).clone();
        if !scope.side.is(channel.from) {
            let diagnostic = Diagnostic::new(
                Code::Direction,
                name.span,
                format!("{} cannot send `{}`", scope.side.name(), name.text),
            )
            .label(format!(
                "travels on `{}`, toward {}",
                channel.name,
                scope.side.name()
            ))
            .see(channel.span, "this channel's direction");
            self.sink.push(diagnostic);
            return None;
        }
        if let (Side::Remote, Some(only), Some(own)) = (scope.side, channel.kinds[0], scope.kind) {
            if only != own {
                let from = self.kind_names.list[only.index()].text;
                let text = format!("this kind of remotes cannot send `{}`", name.text);
                let diagnostic = Diagnostic::new(Code::Direction, name.span, text)
                    .label(format!("travels on `{}`, from `{from}`", channel.name))
                    .see(channel.span, "this channel's direction");
                self.sink.push(diagnostic);
                return None;
            }
        }
        let fields = self.fields(message, name, given, scope);
        let target = self.target(found, to, span, scope)?;
        let receiver = match &target {
            Target::Home | Target::HomeAt(_) => Side::Home,
            Target::Remote(_) | Target::Each(_) => Side::Remote,
        };
        if let Target::HomeAt(_) = target {
            let place = to.map_or(span, |to| to.span);
            self.without_line.push((message, place));
        }
        if !receiver.is(channel.to) {
            let message = format!(
                "`{}` cannot be sent to {}",
                name.text,
                if receiver == Side::Home {
                    "the home"
                } else {
                    "a remote"
                }
            );
            let diagnostic =
                Diagnostic::new(Code::Direction, to.map_or(span, |to| to.span), message)
                    .label(format!("`{}` does not lead there", channel.name))
                    .see(channel.span, "this channel's direction");
            self.sink.push(diagnostic);
            return None;
        }
        Some(Statement::Send {
            message,
            to: target,
            fields: fields?,
        })
    }

    fn target(
        &mut self,
        message: Option<MessageId>,
        to: Option<&Expr<'a>>,
        span: Span,
        scope: &Scope<'a, '_>,
    ) -> Option<Target> {
        let word = to.and_then(|to| {
            if let ExprKind::Word(word) = to.kind {
                Some(word)
            } else {
                None
            }
        });
        // A message that only the home sends has the home as its sender.
        let from_home = scope
            .message
            .is_some_and(|at_hand| self.channel_of(at_hand).from == End::Home);
        match (scope.side, word, to) {
            (Side::Remote, Some("home"), _) => Some(Target::Home),
            (Side::Remote, Some("sender"), _) if from_home => Some(Target::Home),
            (Side::Home, Some("home"), Some(to)) if !self.declared => {
                self.sink.push(
                    Diagnostic::new(Code::Direction, to.span, "the home cannot send to itself")
                        .label("name a remote"),
                );
                None
            }
            (Side::Remote, _, None) if self.declared && scope.lineless && !from_home => {
                let text = "to which home?";
                self.sink.push(
                    Diagnostic::new(Code::Direction, span, text)
                        .label("add `to` a home: this row is about no line"),
                );
                None
            }
            (Side::Remote, _, None)
                if message.is_none_or(|message| self.channel_of(message).to != End::Remote) =>
            {
                Some(Target::Home)
            }
            (Side::Home, _, None) if scope.message.is_some() && !from_home => {
                Some(Target::Remote(Expression::Sender))
            }
            (_, _, None) => {
                let why = if scope.side == Side::Home {
                    "this row's event has no sender"
                } else {
                    "its channel leads to remotes"
                };
                self.sink.push(
                    Diagnostic::new(Code::Direction, span, "to whom?")
                        .label("add `to TARGET`")
                        .note(why),
                );
                None
            }
            (_, Some("none"), Some(to)) => {
                self.sink.push(
                    Diagnostic::new(Code::Type, to.span, "nothing can be sent to `none`")
                        .label("name a remote"),
                );
                None
            }
            (_, _, Some(to)) => match self.expression(to, scope)? {
                Operand::Set(set) => Some(Target::Each(set)),
                Operand::Single(home, Kind::Home) => Some(Target::HomeAt(home)),
                Operand::Single(remote, Kind::Remote) => {
                    if (scope.side, &remote) == (Side::Remote, &Expression::Sender) {
                        self.to_sender.push(to.span);
                    }
                    Some(Target::Remote(remote))
                }
                Operand::Single(..) | Operand::Homes(_) => {
                    self.typed(to, Kind::Remote, scope);
                    None
                }
            },
        }
    }

    /// The fields of a message in the order of its declaration.
    fn fields(
        &mut self,
        message: MessageId,
        name: Name<'a>,
        given: &[(Name<'a>, Expr<'a>)],
        scope: &Scope<'a, '_>,
    ) -> Option<Vec<Value>> {
        let declared = self.messages[message.index()].fields.clone();
        let mut values: Vec<Option<Value>> = vec![None; declared.len()];
        let mut seen: Vec<Option<Span>> = vec![None; declared.len()];
        for (field, value) in given {
            let Some(place) = declared.iter().position(|known| known.name == field.text) else {
                let help = suggestion(
                    field.text,
                    "field",
                    declared.iter().map(|known| known.name.as_str()),
                );
                let diagnostic = Diagnostic::new(
                    Code::Fields,
                    field.span,
                    format!("`{}` has no field `{}`", name.text, field.text),
                )
                .label("not a field")
                .note(help);
                self.sink.push(diagnostic);
                continue;
            };
            if let Some(first) = seen[place].replace(field.span) {
                let message = format!("`{}` is given twice", field.text);
                self.sink.push(
                    Diagnostic::new(Code::Fields, field.span, message)
                        .label("again")
                        .see(first, "given here"),
                );
                continue;
            }
            values[place] = self.stored(value, declared[place].ty, scope);
        }
        let missing: Vec<String> = declared
            .iter()
            .zip(&seen)
            .filter(|(_, seen)| seen.is_none())
            .map(|(field, _)| format!("`{}`", field.name))
            .collect();
        if !missing.is_empty() {
            let message = format!("`{}` lacks its field {}", name.text, missing.join(", "));
            self.sink.push(
                Diagnostic::new(Code::Fields, name.span, message)
                    .label(format!("write `{} (FIELD = VALUE, ...)`", name.text)),
            );
        }
        values.into_iter().collect()
    }

    /// Checks that a remote has the bytes that it sends or keeps.
    pub(super) fn data_flow(
        &mut self,
        row: Span,
        state: &State,
        event: Event,
        body: &[Statement],
        next: Option<&State>,
    ) {
        let taken = match event {
            Event::Message(message) => self.messages[message.index()].carries.line(),
            _ => false,
        };
        if state.holds_line || taken {
            return;
        }
        let sent = body.iter().find_map(|statement| match statement {
            Statement::Send { message, .. } if self.messages[message.index()].carries.line() => {
                Some(*message)
            }
            _ => None,
        });
        if let Some(message) = sent {
            let message = format!(
                "`{}` does not hold the line that `{}` carries",
                state.name,
                self.messages[message.index()].name
            );
            self.sink.push(
                Diagnostic::new(Code::Carries, row, message)
                    .label("no bytes to send")
                    .see(state.span, "add `holds` if it keeps the line"),
            );
        } else if let Some(next) = next.filter(|next| next.holds_line) {
            let message = format!(
                "`{}` holds the line, but nothing brings it there from `{}`",
                next.name, state.name
            );
            let label = match event {
                Event::Message(m) => {
                    format!("`{}` carries no line", self.messages[m.index()].name)
                }
                _ => "no bytes to keep".to_string(),
            };
            self.sink.push(
                Diagnostic::new(Code::Carries, row, message)
                    .label(label)
                    .see(state.span, "add `holds` if it keeps the line")
                    .note("a message brings the line if it is declared with `(line)`"),
            );
        }
    }
}

impl<'a> Reading<'a> {
    /// The state with this name.
    pub(super) fn state(&self, name: Name<'a>, sink: &mut Sink) -> Option<StateId> {
        let state = self.states.find(name, sink)?;
        Some(StateId(self.base.0 + state))
    }

    /// What is said of a state.
    pub(super) fn about(&self, state: StateId) -> &State {
        &self.controller.states[state.index()]
    }

    /// Whether a state becomes several, as its right depends on variables.
    pub(super) fn is_split(&self, state: StateId) -> bool {
        self.depends.iter().any(|depends| depends.state == state)
    }

    /// What is said of a variable.
    pub(super) fn about_variable(&self, variable: VariableId) -> &Variable {
        &self.controller.variables[variable.index()]
    }

    /// Adds a state that one of these becomes beside others; `None` if there are too many.
    pub(super) fn add_state(&mut self, of: StateId, state: State) -> Option<StateId> {
        let place = self.controller.states.len();
        let name = self.states.list[usize::from(of.0 - self.base.0)];
        let added = (place < usize::from(u16::MAX)).then_some(StateId(place as u16))?;
        self.states.list.push(name);
        self.controller.states.push(state);
        Some(added)
    }

    pub(super) fn scope(&self, event: Event, lineless: bool) -> Scope<'a, '_> {
        let message = if let Event::Message(message) = event {
            Some(message)
        } else {
            None
        };
        Scope {
            side: self.side,
            kind: self.kind,
            base: self.base.1,
            variables: &self.variables,
            types: &self.types,
            message,
            each: None,
            registers: &self.registers,
            lineless,
        }
    }
}

/// The first name of a block, or what stands for it.
fn name_of<'a>(agent: &Agent<'a>) -> Name<'a> {
    agent.names.first().copied().unwrap_or(Name {
        text: "home",
        span: agent.body.keyword,
    })
}

/// A controller without anything.
fn nothing(span: Span) -> Controller {
    Controller {
        name: String::new(),
        states: Vec::new(),
        variables: Vec::new(),
        tables: Vec::new(),
        rules: Vec::new(),
        locals: Vec::new(),
        span,
    }
}

/// The messages that a state takes.
pub(super) fn takes(
    controller: &Controller,
    state: StateId,
) -> impl Iterator<Item = MessageId> + '_ {
    let rows = controller
        .rules
        .iter()
        .filter(move |row| row.state == state && matches!(row.effect, Effect::Take { .. }));
    rows.filter_map(|row| match row.event {
        Event::Message(message) => Some(message),
        _ => None,
    })
}
