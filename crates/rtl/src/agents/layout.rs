//! Agents of a protocol as hardware: their states, events, variables and sent messages, with names and widths.

use crate::print::identifier;
use cohkit_protocol::controller::{Controller, Effect, Event, Rule, Statement};
use cohkit_protocol::protocol::{ChannelId, End, Protocol};
use cohkit_protocol::remotes::{KindId, Remotes};
use cohkit_protocol::rows::event_words;
use cohkit_protocol::terms::{StateId, Type, VariableId};
use cohkit_system::plan::{Plan, ProtocolFacts};
use std::collections::BTreeSet;
use std::ops::Range;

/// Maximum number of remotes of a printed system: the width of a set in a message's field.
pub const MAX_REMOTES: u16 = 16;

/// Agents of a protocol in a system of a number of remotes. [`super::supported_agents`] creates them.
pub struct Agents<'a> {
    /// Protocol of the agents.
    pub protocol: &'a Protocol,
    /// Table of the home.
    pub home: &'a Controller,
    /// Number of remotes of each kind.
    pub remotes: Remotes,
    /// The home, then one agent for each table of remotes.
    pub agents: Vec<Agent>,
    /// Events of all agents, in the order of their numbers.
    pub events: Vec<Event>,
    /// Fields of all messages: the name and the width in bits.
    pub fields: Vec<(String, u32)>,
}

/// One agent: the home, or all kinds of remotes with the same rows.
pub struct Agent {
    /// `home`, or the name of the first kind.
    pub name: String,
    /// True for the home.
    pub is_home: bool,
    /// Its states in the table.
    pub states: Range<usize>,
    /// Its variables in the table.
    pub variables: Vec<VariableId>,
    /// Events of its rows, and messages that may arrive at it.
    pub events: Vec<Event>,
    /// Maximum number of send statements that one row executes; at least 1.
    pub sends: usize,
    /// Maximum number of bulk transitions of one row.
    pub bulk_transitions: usize,
    /// Analysis of each row of the table.
    pub plans: Vec<Plan>,
}

/// Returns the number of bits of an unsigned number up to `max`, at least 1.
pub fn bits(max: u64) -> u32 {
    (u64::BITS - max.leading_zeros()).max(1)
}

impl<'a> Agents<'a> {
    /// Numbers the agents and their values. `home` is the table of the protocol's home for this number of remotes.
    pub(super) fn new(
        protocol: &'a Protocol,
        home: &'a Controller,
        remotes: Remotes,
    ) -> Agents<'a> {
        let facts = ProtocolFacts::new(protocol, home);
        let mut agents = vec![home_agent(protocol, home, remotes.total())];
        let mut starts: Vec<usize> = protocol.kinds.iter().map(|k| k.initial.index()).collect();
        starts.dedup();
        let plans = Plan::of(&protocol.remote, Some(&facts.accesses));
        for (position, &start) in starts.iter().enumerate() {
            let next = starts.get(position + 1).copied();
            let states = start..next.unwrap_or(protocol.remote.states.len());
            agents.push(remote_agent(protocol, states, remotes.total(), &plans));
        }
        let events: BTreeSet<Event> = (protocol.message_ids().map(Event::Message))
            .chain(agents.iter().flat_map(|agent| agent.events.iter().copied()))
            .collect();
        let mut agents = Agents {
            protocol,
            home,
            remotes,
            agents,
            events: events.into_iter().collect(),
            fields: Vec::new(),
        };
        agents.fields = agents.message_fields();
        agents
    }

    /// Returns the agent with this name. Every kind of remotes has one; kinds with the same rows share theirs.
    pub fn find(&self, name: &str) -> Option<&Agent> {
        if name == "home" {
            return self.agents.first();
        }
        let kind = self.protocol.kinds.iter().find(|kind| kind.name == name)?;
        self.agents[1..]
            .iter()
            .find(|agent| agent.states.start == kind.initial.index())
    }

    /// Returns the table that has the rows of an agent.
    pub fn controller(&self, agent: &Agent) -> &'a Controller {
        match agent.is_home {
            true => self.home,
            false => &self.protocol.remote,
        }
    }

    /// Number of remotes of all kinds.
    pub fn total(&self) -> u16 {
        self.remotes.total()
    }

    /// Number of remotes of each kind, as the option `--remotes` states it.
    pub fn remotes_option(&self) -> String {
        let kinds = (0..self.remotes.kinds() as u8).map(KindId);
        let counts = kinds.map(|kind| self.remotes.count(kind).to_string());
        counts.collect::<Vec<_>>().join(",")
    }

    /// Width of a remote, in bits.
    pub fn remote_bits(&self) -> u32 {
        bits(self.total().into())
    }

    /// Width of an event, in bits.
    pub fn event_bits(&self) -> u32 {
        bits(self.events.len() as u64 - 1)
    }

    /// Largest value of a type that is neither an array nor a set.
    pub fn max(&self, ty: Type) -> u16 {
        match ty.single() {
            Type::Range { max } => max,
            Type::Cycle { size } => size - 1,
            Type::Count | Type::Remote => self.total(),
            Type::Home { homes } => homes - 1,
            Type::Bool | Type::RemoteSet | Type::Array { .. } => 1,
        }
    }

    /// Width of a single value of a type, in bits.
    pub fn width(&self, ty: Type) -> u32 {
        match ty.single() {
            Type::RemoteSet => self.total().into(),
            ty => bits(self.max(ty).into()),
        }
    }

    /// Number of elements of an array; 1 for other types.
    pub fn elements(&self, ty: Type) -> u32 {
        let [first, second] = ty.extent(self.total());
        u32::from(first) * u32::from(second)
    }

    /// Returns a name of the package: the protocol's name and these parts.
    pub fn name(&self, parts: &[&str]) -> String {
        identifier(&format!("{}_{}", self.protocol.name, parts.join("_")))
    }

    /// Name of a state of an agent.
    pub fn state_name(&self, agent: &Agent, state: StateId) -> String {
        let state = &self.controller(agent).states[state.index()].name;
        self.name(&[&agent.name, state])
    }

    /// Name of an event.
    pub fn event_name(&self, event: Event) -> String {
        let words = event_words(self.protocol, self.home, event);
        match event {
            Event::Message(_) => self.name(&["msg", &words]),
            Event::Access(_) => self.name(&["access", &words]),
            Event::Local(_) => self.name(&["local", &words]),
            Event::MemoryData(choice) => self.name(&["memory_data", &choice.to_string()]),
            Event::Unlock => self.name(&["unlock"]),
            Event::MemoryDone => self.name(&["memory_done"]),
        }
    }

    /// Name of a variable of an agent, as a member of a structure.
    pub fn variable_name(&self, agent: &Agent, variable: VariableId) -> String {
        let name = &self.controller(agent).variables[variable.index()].name;
        identifier(&name.replace(' ', "_"))
    }

    /// Returns the fields of all messages, each name once and as wide as its widest type.
    fn message_fields(&self) -> Vec<(String, u32)> {
        let mut fields: Vec<(String, u32)> = Vec::new();
        for field in self.protocol.messages.iter().flat_map(|m| &m.fields) {
            let (name, width) = (identifier(&field.name), self.width(field.ty));
            match fields.iter_mut().find(|(other, _)| *other == name) {
                Some((_, widest)) => *widest = width.max(*widest),
                None => fields.push((name, width)),
            }
        }
        fields
    }

    /// Senders of the message of an event, encoded as remotes: the lowest and the highest; 0 is the home.
    pub fn senders(&self, agent: &Agent, event: Event) -> (u16, u16) {
        let Event::Message(message) = event else {
            return (0, 0);
        };
        match (agent.is_home, self.protocol.channel_of(message).from) {
            (true, _) | (false, End::Remote) => (1, self.total()),
            (false, End::Home) => (0, 0),
            (false, End::Any) => (0, self.total()),
        }
    }

    /// Virtual channels of the protocol, each with the set of ordered channels to which it belongs, if any.
    pub fn channels(&self) -> impl Iterator<Item = (ChannelId, Option<usize>)> + '_ {
        let channels = (0..self.protocol.channels.len() as u16).map(ChannelId);
        channels.map(|channel| (channel, self.protocol.order_of(channel)))
    }
}

/// Creates the home.
fn home_agent(protocol: &Protocol, home: &Controller, remotes: u16) -> Agent {
    let rules: Vec<&Rule> = home.rules.iter().collect();
    let arriving = |end| matches!(end, End::Home | End::Any);
    Agent {
        name: "home".to_string(),
        is_home: true,
        states: 0..home.states.len(),
        variables: (0..home.variables.len() as u16).map(VariableId).collect(),
        events: events(protocol, &rules, arriving),
        sends: sends(&rules, remotes),
        bulk_transitions: 0,
        plans: Plan::of(home, None),
    }
}

/// Creates the agent of the remotes with these states. Its variables are those that its rows use.
fn remote_agent(protocol: &Protocol, states: Range<usize>, remotes: u16, plans: &[Plan]) -> Agent {
    let table = &protocol.remote;
    let in_states = |rule: &&Rule| states.contains(&rule.state.index());
    let rules: Vec<&Rule> = table.rules.iter().filter(in_states).collect();
    let arriving = |end| matches!(end, End::Remote | End::Any);
    let kind = protocol.kind_of(StateId(states.start as u16));
    // Kinds and their variables have the order of the file.
    let is_own = |variable: &VariableId| {
        let declared = table.variables[variable.index()].span.start;
        let mut kinds = protocol.kinds.iter().rev();
        let owner = kinds.find(|kind| kind.span.start <= declared);
        owner.is_none_or(|owner| owner.initial.index() == states.start)
    };
    let variables = (0..table.variables.len() as u16).map(VariableId);
    let bulk = |rule: &&Rule| {
        let mut count = 0;
        rule.visit(&mut |s| count += usize::from(matches!(s, Statement::BulkTransition { .. })));
        count
    };
    Agent {
        name: protocol.kinds[kind.index()].name.clone(),
        is_home: false,
        variables: variables.filter(is_own).collect(),
        events: events(protocol, &rules, arriving),
        sends: sends(&rules, remotes),
        bulk_transitions: rules.iter().map(bulk).max().unwrap_or(0),
        plans: plans.to_vec(),
        states,
    }
}

/// Returns the events of rows, and the messages on channels to this end.
fn events(protocol: &Protocol, rules: &[&Rule], arriving: impl Fn(End) -> bool) -> Vec<Event> {
    let messages = protocol
        .message_ids()
        .filter(|&message| arriving(protocol.channel_of(message).to));
    let events: BTreeSet<Event> = (rules.iter().map(|rule| rule.event))
        .chain(messages.map(Event::Message))
        .collect();
    events.into_iter().collect()
}

/// Returns the maximum number of send statements that one of these rows executes, at least 1.
fn sends(rules: &[&Rule], remotes: u16) -> usize {
    let row_sends = |rule: &&Rule| match &rule.effect {
        Effect::Take { body, .. } => send_count(body, remotes),
        _ => 0,
    };
    rules.iter().map(row_sends).max().unwrap_or(0).max(1)
}

/// Returns the number of send statements in these statements, with loops unrolled.
fn send_count(body: &[Statement], remotes: u16) -> usize {
    let count = |statement: &Statement| match statement {
        Statement::Send { .. } => 1,
        Statement::ForEach { body, .. } => usize::from(remotes) * send_count(body, remotes),
        Statement::If {
            then, otherwise, ..
        } => send_count(then, remotes) + send_count(otherwise, remotes),
        _ => 0,
    };
    body.iter().map(count).sum()
}
