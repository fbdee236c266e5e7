//! Constructs of tables that have no step function.

use super::layout::{Agent, Agents, MAX_REMOTES};
use crate::rom::{refuse, Refusal};
use cohkit_diagnostics::Span;
use cohkit_protocol::controller::{Effect, Event, Rule, Statement};
use cohkit_protocol::protocol::Protocol;
use cohkit_protocol::terms::{IndexDomain, StateId, Type};
use cohkit_system::plan::CompletionEffect;
use std::collections::BTreeMap;

/// Checks the number of caching agents of a system.
///
/// # Errors
/// There are none, or more than [`MAX_REMOTES`].
pub fn check_count(protocol: &Protocol, total: u16) -> Result<(), Refusal> {
    if total == 0 || total > MAX_REMOTES {
        let feature = format!("a system has 1 to {MAX_REMOTES} caching agents");
        return refuse(protocol.remote.span, feature);
    }
    Ok(())
}

/// Checks that every construct of the tables has hardware, and that printed names differ.
pub(super) fn check(agents: &Agents) -> Result<(), Refusal> {
    let protocol = agents.protocol;
    check_count(protocol, agents.total())?;
    if protocol.homes > 1 {
        return refuse(agents.home.span, "`homes` is more than 1");
    }
    if let Some(message) = protocol.messages.iter().find(|m| !m.about_line) {
        let feature = format!("`{}` is a message about no line", message.name);
        return refuse(message.span, feature);
    }
    for agent in &agents.agents {
        check_variables(agents, agent)?;
        let rules = agents.controller(agent).rules.iter().enumerate();
        for (number, rule) in rules.filter(|(_, r)| agent.states.contains(&r.state.index())) {
            check_rule(agents, agent, number, rule)?;
        }
    }
    check_names(agents)
}

/// Checks the types of an agent's variables.
fn check_variables(agents: &Agents, agent: &Agent) -> Result<(), Refusal> {
    let variables = &agents.controller(agent).variables;
    for variable in agent.variables.iter().map(|v| &variables[v.index()]) {
        let has_homes = match variable.ty {
            Type::Home { .. } => true,
            Type::Array {
                first_domain,
                second_domain,
                ..
            } => [Some(first_domain), second_domain]
                .iter()
                .any(|domain| matches!(domain, Some(IndexDomain::Homes(_)))),
            _ => false,
        };
        let name = &variable.name;
        if variable.register {
            return refuse(variable.span, format!("`{name}` is a register"));
        }
        if has_homes {
            return refuse(variable.span, format!("`{name}` is about several homes"));
        }
    }
    Ok(())
}

/// Checks the statements of a row.
fn check_rule(agents: &Agents, agent: &Agent, number: usize, rule: &Rule) -> Result<(), Refusal> {
    let Effect::Take { body, .. } = &rule.effect else {
        return Ok(());
    };
    if !agent.is_home && agent.plans[number].effects.done == CompletionEffect::Ambiguous {
        let feature = "`done` may complete accesses of more than one kind";
        return refuse(rule.span, feature);
    }
    let span = rule.span;
    let mut memory_accesses = 0;
    for statement in body {
        memory_accesses += usize::from(is_memory_access(statement));
        check_data(agents, rule, statement)?;
    }
    let writes_after_commit = body
        .iter()
        .skip_while(|statement| **statement != Statement::CommitDeferred)
        .skip(1)
        .any(is_memory_access);
    if writes_after_commit || memory_accesses > 2 {
        return refuse(span, "a row that writes memory several times");
    }
    let is_start = |statement: &Statement| {
        matches!(
            statement,
            Statement::StartRead | Statement::StartWrite | Statement::StartStore { .. }
        )
    };
    if maximum(body, &is_start) > 1 {
        return refuse(span, "a row that starts several memory operations");
    }
    let is_acknowledgement = |statement: &Statement| {
        matches!(
            statement,
            Statement::Acknowledge(_) | Statement::AcknowledgeUnlock
        )
    };
    match maximum(body, &is_acknowledgement) > 1 {
        true => refuse(span, "a row that acknowledges several operations"),
        false => Ok(()),
    }
}

/// Returns the maximum number of these statements that a row executes; more than 1 if a loop contains one.
fn maximum(body: &[Statement], counts: &dyn Fn(&Statement) -> bool) -> usize {
    let count = |statement: &Statement| match statement {
        Statement::ForEach { body, .. } => 2 * maximum(body, counts),
        Statement::If {
            then, otherwise, ..
        } => maximum(then, counts).max(maximum(otherwise, counts)),
        statement => usize::from(counts(statement)),
    };
    body.iter().map(count).sum()
}

/// True if a statement writes the home's memory, or keeps a store for it.
fn is_memory_access(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::WriteMemory | Statement::DeferStore | Statement::CommitDeferred
    )
}

/// Checks that the message of a row has the data that its statement writes.
fn check_data(agents: &Agents, rule: &Rule, statement: &Statement) -> Result<(), Refusal> {
    let carries = match rule.event {
        Event::Message(message) => Some(agents.protocol.message(message).carries),
        _ => None,
    };
    let has_line = carries.is_some_and(|carries| carries.line());
    let has_store = carries.is_some_and(|carries| carries.store());
    let is_possible = match statement {
        Statement::WriteMemory => has_line || has_store,
        Statement::StartWrite => has_line,
        Statement::DeferStore => has_store,
        _ => true,
    };
    match is_possible {
        true => Ok(()),
        false => refuse(rule.span, "a row that writes data which its event lacks"),
    }
}

/// Checks that no two names of the package are equal.
fn check_names(agents: &Agents) -> Result<(), Refusal> {
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    let mut add = |name: String, word: &str, span: Span| match names.insert(name, word.to_string())
    {
        Some(other) => {
            let feature = format!("`{other}` and `{word}` have the same name in SystemVerilog");
            refuse(span, feature)
        }
        None => Ok(()),
    };
    for &event in &agents.events {
        let name = agents.event_name(event);
        add(name.clone(), &name, agents.home.span)?;
    }
    for word in super::package::RESERVED_NAMES {
        add(agents.name(&[word]), word, agents.home.span)?;
    }
    for agent in &agents.agents {
        let controller = agents.controller(agent);
        for word in super::package::RESERVED_AGENT_NAMES {
            add(agents.name(&[&agent.name, word]), word, controller.span)?;
        }
        for state in agent.states.clone() {
            let id = StateId(state as u16);
            let state = &controller.states[state];
            add(agents.state_name(agent, id), &state.name, state.span)?;
        }
    }
    Ok(())
}
