//! Constructs that the units of a system cannot serve.

use crate::agents::layout::{Agent, Agents};
use crate::rom::{refuse, Refusal};
use cohkit_protocol::controller::{Access, Effect, Event, Statement};
use cohkit_protocol::execute::{Machine, Outcome, Trigger};
use cohkit_protocol::terms::{StateId, Type};

/// Checks that the units can serve all rows of a protocol's agents.
///
/// # Errors
/// The first construct that they cannot serve.
pub fn check(agents: &Agents) -> Result<(), Refusal> {
    let protocol = agents.protocol;
    if let Some(network) = protocol.networks.first() {
        let feature = format!("`{}` is a queue that senders share", network.name);
        return refuse(network.span, feature);
    }
    if let Some((message, bound)) = protocol.bounds.per_message.first() {
        let name = &protocol.message(*message).name;
        return refuse(
            bound.span,
            format!("`{name}` has a bound of messages in flight"),
        );
    }
    check_home(agents)?;
    for agent in &agents.agents[1..] {
        check_rows(agents, agent)?;
        check_accesses(agents, agent)?;
        check_uninvited(agents, agent)?;
    }
    Ok(())
}

/// Checks that a home that starts memory operations does not also read memory within a row.
fn check_home(agents: &Agents) -> Result<(), Refusal> {
    let starts = |s: &Statement| {
        matches!(
            s,
            Statement::StartRead | Statement::StartWrite | Statement::StartStore { .. }
        )
    };
    let is_split = agents
        .home
        .rules
        .iter()
        .any(|row| row.has_statement(&starts));
    let carries = |s: &Statement| match s {
        Statement::Send { message, .. } => agents.protocol.message(*message).carries.line(),
        _ => false,
    };
    let reads = |row: &&cohkit_protocol::controller::Rule| {
        !matches!(row.event, Event::MemoryData(_)) && row.has_statement(&carries)
    };
    match agents.home.rules.iter().find(reads).filter(|_| is_split) {
        Some(row) => refuse(
            row.span,
            "a row that reads memory in a home that starts memory operations",
        ),
        None => Ok(()),
    }
}

/// Checks the rows of a caching agent.
fn check_rows(agents: &Agents, agent: &Agent) -> Result<(), Refusal> {
    let rules = agents.controller(agent).rules.iter().enumerate();
    for (number, rule) in rules.filter(|(_, rule)| agent.states.contains(&rule.state.index())) {
        if rule.has_statement(&|s| matches!(s, Statement::BulkTransition { .. })) {
            return refuse(rule.span, "a row that changes every line of a cache");
        }
        if agent.plans[number].posts {
            return refuse(rule.span, "a store that no message completes");
        }
    }
    Ok(())
}

/// Checks that accesses can start, and that lines can be evicted.
fn check_accesses(agents: &Agents, agent: &Agent) -> Result<(), Refusal> {
    let controller = agents.controller(agent);
    let has_row = |state: usize, access: Access| {
        controller.rules.iter().any(|rule| {
            rule.state.index() == state
                && rule.event == Event::Access(access)
                && matches!(rule.effect, Effect::Take { .. })
        })
    };
    let initial = agent.states.start;
    for (access, word) in [(Access::Load, "load"), (Access::Store, "store")] {
        if !has_row(initial, access) {
            let state = &controller.states[initial];
            return refuse(
                state.span,
                format!("`{}` has no row for `{word}`", state.name),
            );
        }
    }
    let stable = agent
        .states
        .clone()
        .filter(|&state| controller.states[state].is_stable());
    for state in stable.filter(|&state| state != initial) {
        if !has_row(state, Access::Evict) {
            let state = &controller.states[state];
            return refuse(
                state.span,
                format!("`{}` has no row for `evict`", state.name),
            );
        }
    }
    Ok(())
}

/// Checks that no message gives an agent a line for which it has no entry: for all senders and field values, a message
/// leaves the initial state and variables as they are.
fn check_uninvited(agents: &Agents, agent: &Agent) -> Result<(), Refusal> {
    let controller = agents.controller(agent);
    let machine = Machine::new(controller, agents.remotes);
    let initial = machine.initial_in(StateId(agent.states.start as u16));
    let messages = agent.events.iter().filter_map(|event| match event {
        Event::Message(message) => Some(*message),
        _ => None,
    });
    for message in messages {
        let event = Event::Message(message);
        let fields = &agents.protocol.message(message).fields;
        let counts: Vec<u64> = fields
            .iter()
            .map(|field| values(agents, field.ty))
            .collect();
        let (low, high) = agents.senders(agent, event);
        let combinations: u64 = counts.iter().product();
        for sender in low..=high {
            for number in 0..combinations {
                let mut rest = number;
                let digit = |count: &u64| {
                    let digit = rest % count;
                    rest /= count;
                    digit as u16
                };
                let values: Vec<u16> = counts.iter().map(digit).collect();
                let trigger = Trigger {
                    event,
                    sender: sender.checked_sub(1),
                    executing_remote: Some(0),
                    home: 0,
                    fields: &values,
                };
                let mut configuration = initial.clone();
                let outcome = machine.step(&mut configuration, trigger, &mut &*controller);
                if let Ok(Outcome::Taken { rule, .. }) = outcome {
                    if configuration != initial {
                        let name = &agents.protocol.message(message).name;
                        let feature =
                            format!("`{name}` may bring a line that the cache has not requested");
                        return refuse(controller.rules[rule].span, feature);
                    }
                }
            }
        }
    }
    Ok(())
}

/// Number of values of a field.
fn values(agents: &Agents, ty: Type) -> u64 {
    match ty {
        Type::RemoteSet => 1 << agents.total(),
        ty => u64::from(agents.max(ty)) + 1,
    }
}
