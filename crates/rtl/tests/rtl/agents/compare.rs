//! Comparison of a printed step function with the executor of rows.

use super::build::{state_width, variable_widths, StepLibrary, Words};
use super::reference::{Completion, Origin, Reaction, Reference, Symbol};
use super::values::{bits_of, read_fields, visit, Input, Reader};
use cohkit_protocol::controller::{Effect, Event};
use cohkit_protocol::execute::Machine;
use cohkit_protocol::protocol::StateId;
use cohkit_rtl::agents::layout::{Agent, Agents};
use std::collections::BTreeSet;

/// Seed of the random inputs of agents with too many inputs for an exhaustive comparison.
const SEED: u64 = 51;

/// Extent of a comparison without mismatch.
pub struct Comparison {
    /// Number of compared inputs.
    pub inputs: u64,
    /// True if these are all inputs.
    pub exhaustive: bool,
    /// Number of rows that took an event.
    pub rows: usize,
    /// Number of inputs for which the row cannot be executed.
    pub faults: u64,
}

/// Compares the outputs of a module with the executor, for all inputs of an agent or random ones.
///
/// # Errors
/// The first mismatch, as text. A row without a guard that no input takes is one.
pub fn compare(
    library: &StepLibrary,
    module: usize,
    agents: &Agents,
    agent: &Agent,
) -> Result<Comparison, String> {
    let reference = Reference::new(agents, agent);
    let machine = &reference.machine;
    let (mut inputs, mut faults, mut taken) = (0, 0, BTreeSet::new());
    let exhaustive = visit(agents, agent, machine, SEED, |input| {
        inputs += 1;
        let output = library.eval(module, &bits_of(agents, agent, machine, input));
        let printed = reaction(agents, agent, machine, input, output);
        let expected = reference.react(input).map(|(reaction, rule)| {
            taken.extend(rule);
            reaction
        });
        faults += u64::from(expected.is_none());
        match printed == expected {
            true => Ok(()),
            false => Err(format!(
                "{input:?}\nexecutor: {expected:?}\nprinted: {printed:?}\n(seed {SEED})"
            )),
        }
    })?;
    let rules = agents.controller(agent).rules.iter().enumerate();
    let rows = rules.filter(|(_, rule)| agent.states.contains(&rule.state.index()));
    let mut unused = rows.filter(|(number, rule)| {
        rule.guard.is_none()
            && matches!(rule.effect, Effect::Take { .. })
            && !taken.contains(number)
    });
    if let Some((number, rule)) = unused.next().filter(|_| exhaustive) {
        return Err(format!("no input takes row {number}: {rule:?}"));
    }
    Ok(Comparison {
        inputs,
        exhaustive,
        rows: taken.len(),
        faults,
    })
}

/// Reads the reaction from the outputs of a module; `None` if it reports that the row cannot be executed.
fn reaction(
    agents: &Agents,
    agent: &Agent,
    machine: &Machine,
    input: &Input,
    output: Words,
) -> Option<Reaction> {
    let mut reader = Reader::new(output);
    let effect = reader.read(2);
    if reader.read(1) == 1 {
        return None;
    }
    let mut reaction = Reaction {
        effect,
        state: reader.read(state_width(agent)) + agent.states.start as u16,
        slots: input.configuration.slots.clone(),
        ..Reaction::default()
    };
    let widths = variable_widths(agents, agent);
    for (variable, (width, _)) in agent.variables.iter().rev().zip(&widths) {
        for slot in machine.slots(variable.0) {
            reaction.slots[slot] = reader.read(*width);
        }
    }
    if agent.variables.is_empty() {
        reader.read(1);
    }
    for _ in 0..agent.sends {
        read_send(&mut reader, agents, &mut reaction);
    }
    match agent.is_home {
        true => {
            for operation in reaction.memory.iter_mut().rev() {
                *operation = reader.read(1) == 1;
            }
            let is_acknowledged = reader.read(1) == 1;
            let event = agents.events[usize::from(reader.read(agents.event_bits()))];
            reaction.acknowledged = is_acknowledged.then_some(event);
        }
        false => {
            reaction.copy = origin(reader.read(2));
            reaction.done = [
                Completion::Not,
                Completion::Read,
                Completion::Write,
                Completion::Sent,
            ][usize::from(reader.read(2))];
            reaction.performs = reader.read(1) == 1;
            reaction.abandons = reader.read(1) == 1;
            for _ in 0..agent.bulk_transitions {
                let state = |reader: &mut Reader| {
                    StateId(reader.read(state_width(agent)) + agent.states.start as u16)
                };
                let (to, from) = (state(&mut reader), state(&mut reader));
                if reader.read(1) == 1 {
                    reaction.bulk.push((from, to));
                }
            }
        }
    }
    Some(reaction)
}

/// Origin of data with this number in the printed package.
fn origin(number: u16) -> Origin {
    [Origin::None, Origin::Own, Origin::Received, Origin::Store][usize::from(number)]
}

/// Reads one slot of sent messages. Appends a message for each receiver, in ascending order.
fn read_send(reader: &mut Reader, agents: &Agents, reaction: &mut Reaction) {
    let written = reader.read(1) == 1;
    let data = Symbol {
        origin: origin(reader.read(2)),
        written,
    };
    let mut fields_reader = reader.clone();
    read_fields(reader, agents, Event::Unlock);
    let to_remotes = reader.read(agents.total().into());
    let to_home = reader.read(1) == 1;
    let event = agents.events[usize::from(reader.read(agents.event_bits()))];
    if to_remotes == 0 && !to_home {
        return;
    }
    let Event::Message(message) = event else {
        panic!("{event:?} is sent");
    };
    let fields = read_fields(&mut fields_reader, agents, event);
    let remotes = (0..agents.total()).filter(|remote| to_remotes >> remote & 1 == 1);
    let home = to_home.then_some(None);
    for receiver in home.into_iter().chain(remotes.map(Some)) {
        let sent = (message, receiver, fields.clone(), data);
        reaction.sends.push(sent);
    }
}
