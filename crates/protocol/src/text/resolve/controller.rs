//! Remotes and hand-written homes.

mod actions;

use super::scope::{AgentTable, Kind, Side};
use super::{completions, pending, report_too_many, report_unknown, set_once, Names, Resolver};
use crate::controller::{
    Access, Controller, Effect, Event, Initial, Local, Rule, State, Statement, Variable,
    MEMORY_WRITES,
};
use crate::policy::LocalPolicy;
use crate::protocol::{MessageId, Permission, StateId, Type};
use crate::remotes::KindId;
use crate::text::ast::{
    Agent, AgentItem, Block, LocalItem, Name, Row, StateItem, StatePermission, VariableItem,
};
use crate::text::diagnostic::{Code, Diagnostic};
use cohkit_diagnostics::Span;
use rustc_hash::{FxHashMap, FxHashSet};

/// Maximum number of rows for one state and event. A traversal of a row recurses into all rows before it, and this
/// depth takes a small part of a thread's stack.
const MAX_ROWS_PER_EVENT: usize = 1000;

/// Declarations of an agent; `None` for a block that the agent lacks.
struct Declarations<'f, 'a> {
    /// Block `states`.
    states: Option<&'f Block<StateItem<'a>>>,
    /// Block `variables`.
    variables: Option<&'f Block<VariableItem<'a>>>,
    /// Block `registers`.
    registers: Option<&'f Block<VariableItem<'a>>>,
}

/// Degree to which the rows of an agent were resolved.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Completeness {
    /// All rows were resolved.
    Complete,
    /// Some rows have errors.
    Partial,
    /// The block could not be parsed, or has too many rows.
    Broken,
}

impl<'a> Resolver<'a, '_> {
    /// Resolves all remotes, or a hand-written home. Returns the controller, the names of the states in order, and the
    /// first state of each table. The remotes' states name the permissions that a home's local operations ensure.
    pub(super) fn resolve_controller(
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
        let (mut initial, mut completeness) = (Vec::new(), Completeness::Complete);
        for agent in agents {
            initial.push(StateId(controller.states.len() as u16));
            let one_of_several = agents.len() > 1;
            let (states, table_completeness) =
                self.resolve_table(agent, remote, side, one_of_several, &mut controller);
            names.partial |= states.partial;
            for name in states.list {
                let index = names.list.len() as u16;
                names.index.entry(name.text).or_insert(index);
                names.list.push(name);
            }
            completeness = completeness.max(table_completeness);
        }
        if completeness < Completeness::Broken && side == Side::Remote {
            pending::report_lost_accesses(&controller, self.sink);
        }
        // Checks that need all rows run only if all rows were resolved.
        if completeness == Completeness::Complete {
            self.check_deferred_writes(&controller);
            self.report_unhandled_waits(&controller);
            if side == Side::Remote {
                pending::check(&controller, &self.messages, &self.channels, self.sink);
                completions::check(&controller, &self.messages, self.sink);
            }
        }
        (controller, names, initial)
    }

    /// Resolves one block into a controller. Returns the names of its states, and how completely the block was
    /// resolved. If remotes have several tables, the states of each are prefixed with its name.
    fn resolve_table(
        &mut self,
        agent: &Agent<'a>,
        remote: Option<(&Controller, &Names<'a>)>,
        side: Side,
        one_of_several: bool,
        controller: &mut Controller,
    ) -> (Names<'a>, Completeness) {
        let name = name_of(agent);
        let Declarations {
            states,
            variables,
            registers,
        } = self.declarations(agent, side);
        let mut table = AgentTable {
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
            permission_conditions: Vec::new(),
            controller: std::mem::replace(controller, empty_controller(name.span)),
        };
        let prefix = match one_of_several {
            true => format!("{}.", name.text),
            false => String::new(),
        };
        for item in states.iter().flat_map(|block| &block.items) {
            if !self.declare_state(item, &prefix, &mut table) {
                break;
            }
        }
        for (block, register) in [(variables, false), (registers, true)] {
            for item in block.iter().flat_map(|block| &block.items) {
                let full_name = format!("{prefix}{}", item.name.text);
                self.declare_variable(item, full_name, register, &mut table);
            }
        }
        if side == Side::Home {
            if agent.memory_writes {
                self.declare_memory_writes(name.span, &mut table);
            }
            self.declare_locals(agent, remote, &mut table);
        }
        for item in states.iter().flat_map(|block| &block.items) {
            let state = table.states.index.get(item.name.text);
            let state = state.map(|&state| StateId(table.base.0 + state));
            let condition = state.and_then(|state| self.permission_condition(state, item, &table));
            table.permission_conditions.extend(condition);
        }
        let first_rule = table.controller.rules.len();
        let completeness = self.resolve_rows(agent, &mut table);
        self.split(first_rule, &mut table);
        *controller = table.controller;
        (table.states, completeness)
    }

    /// Collects the declaring blocks of an agent; reports misplaced and missing ones.
    fn declarations<'f>(&mut self, agent: &'f Agent<'a>, side: Side) -> Declarations<'f, 'a> {
        let name = name_of(agent);
        let (mut states, mut variables, mut registers) = (None, None, None);
        for item in &agent.body.items {
            match item {
                AgentItem::States(block) => set_once(
                    &mut states,
                    block,
                    |block| block.keyword,
                    "`states` block",
                    self.sink,
                ),
                AgentItem::Variables(block) => set_once(
                    &mut variables,
                    block,
                    |block| block.keyword,
                    "`variables` block",
                    self.sink,
                ),
                AgentItem::Registers(block) => set_once(
                    &mut registers,
                    block,
                    |block| block.keyword,
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
                            .label("the device is behind the home"),
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
        Declarations {
            states,
            variables,
            registers,
        }
    }

    /// Resolves all rows of an agent; rows with errors are left out.
    fn resolve_rows(&mut self, agent: &Agent<'a>, table: &mut AgentTable<'a>) -> Completeness {
        let mut rules = 0;
        let mut completeness = match agent.body.broken {
            true => Completeness::Broken,
            false => Completeness::Complete,
        };
        let mut rows_per_event: FxHashMap<(StateId, Event), usize> = FxHashMap::default();
        for item in &agent.body.items {
            let AgentItem::Row(row) = item else { continue };
            // Counted whether correct or not, because a short row can stand for very many rules.
            let states = match row.states.len() {
                0 => table.states.list.len(),
                count => count,
            };
            rules += states * row.events.len();
            if rules > usize::from(u16::MAX) {
                report_too_many("rule", row.span, usize::from(u16::MAX), self.sink);
                return Completeness::Broken;
            }
            let first_new = table.controller.rules.len();
            if !self.resolve_row(row, table) {
                completeness = completeness.max(Completeness::Partial);
            }
            for rule in &table.controller.rules[first_new..] {
                let count = rows_per_event.entry((rule.state, rule.event)).or_default();
                *count += 1;
                if *count > MAX_ROWS_PER_EVENT {
                    let message =
                        format!("more than {MAX_ROWS_PER_EVENT} rows for one state and event");
                    self.sink.push(
                        Diagnostic::new(Code::TooMany, row.span, message)
                            .label("this one is too many"),
                    );
                    return Completeness::Broken;
                }
            }
        }
        completeness
    }

    /// Declares the variable behind `memory writes` of a home.
    fn declare_memory_writes(&mut self, span: Span, table: &mut AgentTable<'a>) {
        let name = Name {
            text: MEMORY_WRITES,
            span,
        };
        if table.variables.declare(name, self.sink).is_some() {
            table.types.push(Type::Bool);
            table.registers.push(false);
            table.controller.variables.push(Variable {
                name: MEMORY_WRITES.to_string(),
                ty: Type::Bool,
                register: false,
                initial: Initial::Number(1),
                labels: Vec::new(),
                internal: true,
                span,
            });
        }
    }

    /// Declares a state, with a prefix of its name. Returns false if the agent has too many states.
    fn declare_state(
        &mut self,
        item: &StateItem<'a>,
        prefix: &str,
        table: &mut AgentTable<'a>,
    ) -> bool {
        if table.states.declare(item.name, self.sink).is_none() {
            return true;
        }
        let mut state = self.resolve_state(item, table.side, table.kind);
        state.name.insert_str(0, prefix);
        if table.controller.states.len() == usize::from(u16::MAX) {
            report_too_many("state", item.name.span, usize::from(u16::MAX), self.sink);
            return false;
        }
        table.controller.states.push(state);
        true
    }

    /// Declares the local operations of a home.
    fn declare_locals(
        &mut self,
        agent: &Agent<'a>,
        remote: Option<(&Controller, &Names<'a>)>,
        table: &mut AgentTable<'a>,
    ) {
        table.locals = self.resolve_locals(agent, remote);
        let mut items = agent.body.items.iter();
        table.unlock = items.any(|item| matches!(item, AgentItem::Unlock(_)));
        let to_local = |local: &LocalPolicy| Local {
            name: local.name.clone(),
            ensures: local.ensure,
            locks: local.lock,
        };
        table.controller.locals = table.locals.iter().map(to_local).collect();
    }

    /// Declares a variable or register.
    fn declare_variable(
        &mut self,
        item: &VariableItem<'a>,
        full_name: String,
        register: bool,
        table: &mut AgentTable<'a>,
    ) {
        if table.variables.declare(item.name, self.sink).is_none() {
            return;
        }
        table.types.push(item.ty);
        table.registers.push(register);
        let initial = item.initial.as_ref();
        let initial = initial.and_then(|initial| self.resolve_initial(initial, item.ty));
        table.controller.variables.push(Variable {
            name: full_name,
            ty: item.ty,
            register,
            initial: initial.unwrap_or(Initial::Number(0)),
            labels: Vec::new(),
            internal: false,
            span: item.name.span,
        });
    }

    /// Resolves a state; its permission is the highest if the permission is conditional.
    fn resolve_state(&mut self, item: &StateItem<'a>, side: Side, kind: Option<KindId>) -> State {
        // Highest permission, if it is conditional.
        let permission = match (&item.reads, &item.writes) {
            (StatePermission::Never, StatePermission::Never) => Permission::None,
            (_, StatePermission::Never) => Permission::Read,
            _ => Permission::Write,
        };
        let is_implied = matches!(item.reads, StatePermission::Always)
            || matches!(item.writes, StatePermission::Always);
        if let (Some(span), true) = (item.holds, is_implied) {
            let message = format!("`{}` holds the line anyway", item.name.text);
            self.sink.push(
                Diagnostic::new(Code::RedundantHolds, span, message)
                    .label("leave this out: a state that reads or writes holds the line"),
            );
        }
        if side == Side::Home
            && (permission > Permission::None || item.dirty || item.holds.is_some())
        {
            let message = format!("a permission or a copy of the home in `{}`", item.name.text);
            let diagnostic = Diagnostic::new(Code::Misplaced, item.name.span, message);
            let label =
                "a home's states wait for messages; only states of a remote give permissions and hold lines";
            self.sink.push(diagnostic.label(label));
        }
        let holds_line = permission > Permission::None || item.holds.is_some();
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
            if self.check_arrival(message, name, side, kind) {
                waits.push(message);
            }
        }
        State {
            name: item.name.text.to_string(),
            permission,
            dirty: item.dirty,
            holds_line,
            waits,
            span: item.name.span,
        }
    }

    /// Returns true if the message can arrive at this side; otherwise reports it.
    fn check_arrival(
        &mut self,
        message: MessageId,
        name: Name<'a>,
        side: Side,
        kind: Option<KindId>,
    ) -> bool {
        let channel = self.channel_of(message);
        let is_direction_valid = side.is_end(channel.to);
        if let (true, Some(only), Some(this_kind)) = (is_direction_valid, channel.kinds[1], kind) {
            if only != this_kind {
                let text = format!("`{}` never comes to this kind of remotes", name.text);
                let to = self.kind_names.list[only.index()].text;
                let diagnostic = Diagnostic::new(Code::Direction, name.span, text)
                    .label(format!("travels on `{}`, to `{to}`", channel.name))
                    .note_at(channel.span, "this channel's direction");
                self.sink.push(diagnostic);
                return false;
            }
        }
        if !is_direction_valid {
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
            .note_at(channel.span, "this channel's direction");
            self.sink.push(diagnostic);
        }
        is_direction_valid
    }

    /// Reports states that declare `waits M` without a row that takes M.
    fn report_unhandled_waits(&mut self, controller: &Controller) {
        // States split from one state of the file have the same span.
        let taken_events: FxHashSet<(Span, Event)> = controller
            .rules
            .iter()
            .filter(|rule| matches!(rule.effect, Effect::Take { .. }))
            .map(|rule| (controller.states[rule.state.index()].span, rule.event))
            .collect();
        for state in &controller.states {
            for &message in &state.waits {
                if !taken_events.contains(&(state.span, Event::Message(message))) {
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

    /// Checks that deferred bytes are written somewhere, and that a deferred write has a source.
    fn check_deferred_writes(&mut self, home: &Controller) {
        let row_with = |statement: &Statement| {
            let mut rows = home.rules.iter();
            rows.find(
                |row| matches!(&row.effect, Effect::Take { body, .. } if body.contains(statement)),
            )
        };
        let (message, label, span) = match (
            row_with(&Statement::DeferStore),
            row_with(&Statement::CommitDeferred),
        ) {
            (None, Some(row)) => (
                "no write is ever deferred",
                "write `defer` where the bytes arrive",
                row.span,
            ),
            (Some(row), None) => (
                "a deferred write is never written",
                "write `write deferred` where it is performed",
                row.span,
            ),
            _ => return,
        };
        self.sink
            .push(Diagnostic::new(Code::Misplaced, span, message).label(label));
    }

    /// Adds the rules of a row: one for each of its states and events. Returns true if the whole row was resolved.
    fn resolve_row(&mut self, row: &Row<'a>, table: &mut AgentTable<'a>) -> bool {
        // A row about no line is taken in every state of a line.
        let lineless = row.states.is_empty();
        let names = match lineless {
            true => &table.states.list.clone(),
            false => &row.states,
        };
        let states: Vec<StateId> = names
            .iter()
            .filter_map(|&name| table.states.find(name, self.sink))
            .map(|state| StateId(table.base.0 + state))
            .collect();
        let mut complete = states.len() == names.len();
        for &name in &row.events {
            let Some(event) = self.resolve_event(name, table) else {
                complete = false;
                continue;
            };
            self.check_lineless(event, name, lineless);
            let guard = row.guard.as_ref().map(|guard| {
                let scope = table.scope(event, lineless);
                self.resolve_typed(guard, Kind::Bool, &scope)
            });
            let effect = self.resolve_effect(row, name, event, table);
            if let (Event::Message(message), Some(Effect::Take { .. })) = (event, &effect) {
                self.is_taken[message.index()] = true;
            }
            for (&state, name) in states.iter().zip(names) {
                if let Some(&first) = table.rows.get(&(state, event)) {
                    let message = format!("this row is never reached for `{}`", name.text);
                    self.sink.push(
                        Diagnostic::new(Code::UnreachableRow, row.span, message)
                            .label("an earlier row comes before it")
                            .note_at(first, "always takes the event"),
                    );
                }
                if row.guard.is_none() {
                    table.rows.entry((state, event)).or_insert(row.span);
                }
                let (Some(effect), Some(guard)) = (
                    &effect,
                    guard.clone().map_or(Some(None), |guard| guard.map(Some)),
                ) else {
                    complete = false;
                    continue;
                };
                let state_of = |id: StateId| &table.controller.states[id.index()];
                if let (Side::Remote, Effect::Take { body, next }) = (table.side, effect) {
                    // For states that are split, this check runs after the split.
                    let mut states = std::iter::once(state).chain(*next);
                    if !states.any(|state| table.is_split(state)) {
                        let (state, next) = (state_of(state), next.map(state_of));
                        self.check_data_flow(row.span, state, event, body, next);
                    }
                }
                table.controller.rules.push(Rule {
                    state,
                    event,
                    guard,
                    effect: effect.clone(),
                    span: row.span,
                });
            }
        }
        complete
    }

    /// Checks that a message is taken either by rows about its line or by rows about no line, and that other events fit
    /// their rows.
    fn check_lineless(&mut self, event: Event, name: Name<'a>, lineless: bool) {
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
        let (known_lineless, first) =
            *self.taking_rows[message.index()].get_or_insert((lineless, name.span));
        if known_lineless != lineless {
            let text = format!("`{}` is taken by rows of both sorts", name.text);
            let diagnostic = Diagnostic::new(Code::Misplaced, name.span, text)
                .label("about a line here, or about none")
                .note_at(first, "the other sort here");
            self.sink.push(diagnostic);
        }
    }

    /// Resolves the event of a row: an access, a local operation or a message.
    fn resolve_event(&mut self, name: Name<'a>, table: &AgentTable<'a>) -> Option<Event> {
        let access = Access::ALL.iter().find(|(_, access)| *access == name.text);
        if table.side == Side::Remote {
            if let Some(&(access, _)) = access {
                return Some(Event::Access(access));
            }
        } else {
            if let Some(local) = table
                .locals
                .iter()
                .position(|local| local.name == name.text)
            {
                return Some(Event::Local(local as u8));
            }
            if name.text == "unlock" && table.unlock {
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
            let side_events: Vec<&str> = match table.side {
                Side::Remote => Access::ALL.iter().map(|(_, name)| *name).collect(),
                Side::Home => table
                    .locals
                    .iter()
                    .map(|local| local.name.as_str())
                    .chain(table.unlock.then_some("unlock"))
                    .collect(),
            };
            let arriving = self
                .messages
                .iter()
                .filter(|message| table.side.is_end(self.channels[message.channel.index()].to));
            report_unknown(
                "event",
                name,
                arriving
                    .map(|message| message.name.as_str())
                    .chain(side_events),
                self.sink,
            );
            return None;
        }
        let message = self.message_named(name)?;
        self.check_arrival(message, name, table.side, table.kind)
            .then_some(Event::Message(message))
    }

    /// Checks that a remote has the data that it sends or keeps.
    pub(super) fn check_data_flow(
        &mut self,
        row: Span,
        state: &State,
        event: Event,
        body: &[Statement],
        next: Option<&State>,
    ) {
        let brings_line = match event {
            Event::Message(message) => self.messages[message.index()].carries.line(),
            _ => false,
        };
        if state.holds_line || brings_line {
            return;
        }
        let sent_line = body.iter().find_map(|statement| match statement {
            Statement::Send { message, .. } if self.messages[message.index()].carries.line() => {
                Some(*message)
            }
            _ => None,
        });
        if let Some(message) = sent_line {
            let message = format!(
                "`{}` does not hold the line that `{}` carries",
                state.name,
                self.messages[message.index()].name
            );
            self.sink.push(
                Diagnostic::new(Code::Carries, row, message)
                    .label("no bytes to send")
                    .note_at(state.span, "add `holds` if it keeps the line"),
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
                    .note_at(state.span, "add `holds` if it keeps the line")
                    .note("a message brings the line if it is declared with `(line)`"),
            );
        }
    }
}

/// Returns the first name of a block, or `home` at its keyword.
fn name_of<'a>(agent: &Agent<'a>) -> Name<'a> {
    agent.names.first().copied().unwrap_or(Name {
        text: "home",
        span: agent.body.keyword,
    })
}

/// An empty controller.
fn empty_controller(span: Span) -> Controller {
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
