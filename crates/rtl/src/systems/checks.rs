//! Constructs that the units of a system cannot serve.

use super::queues::Queues;
use crate::agents::layout::{Agent, Agents};
use crate::rom::{refuse, Refusal};
use cohkit_protocol::controller::{Access, Effect, Event, Rule, Statement};
use cohkit_protocol::execute::{Machine, Outcome, Trigger};
use cohkit_protocol::protocol::{Class, Home, MessageId};
use cohkit_protocol::terms::{StateId, Type};
use std::collections::BTreeSet;

/// Combinations of sender and field values of one message that are tested at most.
const MAX_COMBINATIONS: u64 = 1 << 16;

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
    check_orders(agents)?;
    check_home(agents)?;
    for agent in &agents.agents[1..] {
        check_rows(agents, agent)?;
        check_accesses(agents, agent)?;
        check_uninvited(agents, agent)?;
    }
    match protocol.guarantee.coherent {
        true => Ok(()),
        false => refuse(agents.home.span, "`guarantee none`"),
    }
}

/// Checks that no message stalls in a queue that keeps more order than the file declares. Such a queue could hold a
/// message of another line, on which the stalled message waits.
fn check_orders(agents: &Agents) -> Result<(), Refusal> {
    let protocol = agents.protocol;
    let queues = Queues::new(protocol);
    let rows = agents.agents.iter().flat_map(|agent| {
        let rows = agents.controller(agent).rules.iter();
        rows.filter(|row| agent.states.contains(&row.state.index()))
    });
    for row in rows {
        let Event::Message(message) = row.event else {
            continue;
        };
        // A constructed home of one cache stalls fewer requests than one of several.
        let class = protocol.channel_of(message).class;
        let is_request = matches!(protocol.home, Home::Policy(_)) && class == Some(Class::Request);
        if !is_request && row.effect != Effect::Stall {
            continue;
        }
        if queues.queues[queues.of(protocol, message)].exceeds_order {
            let name = &protocol.message(message).name;
            let feature = format!("`{name}` stalls in an order `per line` or `behind` messages");
            return refuse(row.span, feature);
        }
    }
    Ok(())
}

/// Checks that no row writes deferred bytes while its own message carries others that it does not use, and that a home
/// that starts memory operations does not also read memory within a row.
fn check_home(agents: &Agents) -> Result<(), Refusal> {
    let loses_store = |row: &&Rule| {
        let has = |statement: Statement| row.has_statement(&|s| *s == statement);
        matches!(row.event, Event::Message(m) if agents.protocol.message(m).carries.store())
            && has(Statement::CommitDeferred)
            && !has(Statement::WriteMemory)
            && !has(Statement::DeferStore)
    };
    if let Some(row) = agents.home.rules.iter().find(loses_store) {
        let feature = "`write deferred` without `write` in a row whose message carries a store";
        return refuse(row.span, feature);
    }
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
    let reads =
        |row: &&Rule| !matches!(row.event, Event::MemoryData(_)) && row.has_statement(&carries);
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
        if rule.has_statement(&|s| *s == Statement::Retry) {
            return refuse(rule.span, "a row with `retry`");
        }
        if agent.plans[number].posts {
            return refuse(rule.span, "a store that no message completes");
        }
    }
    Ok(())
}

/// Checks that the accesses of the processor port can start, and that lines can be evicted.
fn check_accesses(agents: &Agents, agent: &Agent) -> Result<(), Refusal> {
    let controller = agents.controller(agent);
    let machine = Machine::new(controller, agents.remotes);
    // A line without an entry is in the initial configuration.
    let initial = agent.states.start;
    let starts = |access: Access| {
        let trigger = Trigger {
            event: Event::Access(access),
            sender: None,
            executing_remote: Some(0),
            home: 0,
            fields: &[],
        };
        let mut configuration = machine.initial_in(StateId(initial as u16));
        let outcome = machine.step(&mut configuration, trigger, &mut &*controller);
        matches!(outcome, Ok(Outcome::Taken { .. }))
    };
    let optional = [Access::ReadOnce, Access::WritePartial, Access::WriteLine];
    let optional = optional.into_iter();
    let used = optional.filter(|access| agent.events.contains(&Event::Access(*access)));
    let mut accesses = [Access::Load, Access::Store].into_iter().chain(used);
    if let Some(access) = accesses.find(|access| !starts(*access)) {
        let state = &controller.states[initial];
        let feature = format!("`{}` has no row for `{}`", state.name, access.name());
        return refuse(state.span, feature);
    }
    // If a guard leaves an eviction without a row, the cache signals `unexpected_o`.
    let is_evicted = |state: usize| {
        controller.rules.iter().any(|rule| {
            rule.state.index() == state
                && rule.event == Event::Access(Access::Evict)
                && matches!(rule.effect, Effect::Take { .. })
        })
    };
    let mut stable = agent
        .states
        .clone()
        .filter(|&state| state != initial && controller.states[state].is_stable());
    match stable.find(|&state| !is_evicted(state)) {
        Some(state) => {
            let state = &controller.states[state];
            let feature = format!("`{}` has no row for `evict`", state.name);
            refuse(state.span, feature)
        }
        None => Ok(()),
    }
}

/// Checks that no message gives an agent a line for which it has no entry: for all senders and field values, a message
/// leaves the initial state and variables as they are.
fn check_uninvited(agents: &Agents, agent: &Agent) -> Result<(), Refusal> {
    let controller = agents.controller(agent);
    let machine = Machine::new(controller, agents.remotes);
    let initial = machine.initial_in(StateId(agent.states.start as u16));
    let taken = controller.rules.iter().filter_map(|rule| match rule {
        Rule {
            event: Event::Message(message),
            effect: Effect::Take { .. },
            state,
            ..
        } if state.index() == agent.states.start => Some(*message),
        _ => None,
    });
    let messages: BTreeSet<MessageId> = taken.collect();
    for message in messages {
        let event = Event::Message(message);
        let declared = agents.protocol.message(message);
        let counts: Vec<u64> = declared
            .fields
            .iter()
            .map(|field| values(agents, field.ty))
            .collect();
        let (low, high) = agents.senders(agent, event);
        let combinations = counts
            .iter()
            .try_fold(1u64, |product, count| product.checked_mul(*count))
            .filter(|&product| product <= MAX_COMBINATIONS / (u64::from(high - low) + 1));
        let Some(combinations) = combinations else {
            let feature = format!(
                "`{}` has more than {MAX_COMBINATIONS} combinations of sender and fields",
                declared.name
            );
            return refuse(declared.span, feature);
        };
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
                        let name = &declared.name;
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
