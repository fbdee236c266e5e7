//! Values of the inputs of a step function, and their bits.

use super::build::{self, Words};
use cohkit_protocol::controller::Event;
use cohkit_protocol::execute::{Configuration, Machine};
use cohkit_protocol::terms::Type;
use cohkit_rtl::agents::layout::{Agent, Agents};

/// Maximum number of inputs of an agent that are compared exhaustively.
const MAX_EXHAUSTIVE: u64 = 400_000;
/// Number of random inputs of an agent that has more.
const SAMPLES: u64 = 40_000;

/// Inputs of a step function.
#[derive(Clone, Debug)]
pub struct Input {
    /// State and variables, as the executor has them.
    pub configuration: Configuration,
    /// Event.
    pub event: Event,
    /// Sender of the message, encoded as a remote; 0 for the home.
    pub sender: u16,
    /// The executing remote, encoded as a remote; 0 for the home.
    pub executing: u16,
    /// Fields of the message.
    pub fields: Vec<u16>,
}

/// Ranges of the values of an input, for one state and one event.
struct Ranges<'a> {
    /// Machine of the agent.
    machine: &'a Machine<'a>,
    /// Number of the state in the table.
    state: u16,
    /// Event.
    event: Event,
    /// Slots of the variables of the agent, each with its number of values.
    slots: Vec<(usize, u64)>,
    /// Lowest and highest sender, and lowest and highest executing remote.
    remotes: [(u16, u16); 2],
    /// Number of values of each field.
    fields: Vec<u64>,
}

impl Ranges<'_> {
    /// Number of values of each part of an input.
    fn radices(&self) -> Vec<u64> {
        let slots = self.slots.iter().map(|(_, count)| *count);
        let remotes = self
            .remotes
            .iter()
            .map(|(low, high)| u64::from(high - low) + 1);
        slots
            .chain(remotes)
            .chain(self.fields.iter().copied())
            .collect()
    }

    /// Number of inputs.
    fn count(&self) -> u64 {
        let radices = self.radices().into_iter();
        radices.fold(1, |product: u64, radix| product.saturating_mul(radix))
    }

    /// Returns the input of which `digit` gives each part, for the number of its values.
    fn input(&self, mut digit: impl FnMut(u64) -> u64) -> Input {
        let mut configuration = self.machine.initial();
        configuration.state = self.state;
        for &(slot, count) in &self.slots {
            configuration.slots[slot] = digit(count) as u16;
        }
        let mut remote = |(low, high): (u16, u16)| low + digit(u64::from(high - low) + 1) as u16;
        let (sender, executing) = (remote(self.remotes[0]), remote(self.remotes[1]));
        Input {
            configuration,
            event: self.event,
            sender,
            executing,
            fields: self
                .fields
                .iter()
                .map(|&count| digit(count) as u16)
                .collect(),
        }
    }
}

/// Number of values of a single value of a type.
fn value_count(agents: &Agents, ty: Type) -> u64 {
    match ty {
        Type::RemoteSet => 1 << agents.total(),
        ty => u64::from(agents.max(ty)) + 1,
    }
}

/// Calls a function for inputs of an agent: all of them, or random ones if there are too many. Returns true for all.
///
/// # Errors
/// The first error of the function.
pub fn visit<E>(
    agents: &Agents,
    agent: &Agent,
    machine: &Machine,
    seed: u64,
    mut visit: impl FnMut(&Input) -> Result<(), E>,
) -> Result<bool, E> {
    let ranges = ranges(agents, agent, machine);
    let total = ranges
        .iter()
        .fold(0u64, |sum, r| sum.saturating_add(r.count()));
    let is_exhaustive = total <= MAX_EXHAUSTIVE;
    let samples = SAMPLES / ranges.len() as u64;
    let mut random = cohkit_base::random::SplitMix64::new(seed);
    for range in &ranges {
        let count = range.count();
        match is_exhaustive || count <= samples {
            true => {
                for number in 0..count {
                    let mut rest = number;
                    visit(&range.input(|radix| {
                        let digit = rest % radix;
                        rest /= radix;
                        digit
                    }))?;
                }
            }
            false => {
                for _ in 0..samples {
                    visit(&range.input(|radix| random.below(radix)))?;
                }
            }
        }
    }
    Ok(is_exhaustive)
}

/// Returns the ranges of an agent's inputs, for each of its states and events.
fn ranges<'a>(agents: &Agents, agent: &Agent, machine: &'a Machine) -> Vec<Ranges<'a>> {
    let variables = &agents.controller(agent).variables;
    let mut slots = Vec::new();
    for variable in &agent.variables {
        let count = value_count(agents, variables[variable.index()].ty);
        slots.extend(machine.slots(variable.0).map(|slot| (slot, count)));
    }
    let executing = if agent.is_home {
        (0, 0)
    } else {
        (1, agents.total())
    };
    let mut ranges = Vec::new();
    for state in agent.states.clone() {
        for &event in &agent.events {
            let fields = match event {
                Event::Message(message) => &agents.protocol.message(message).fields[..],
                _ => &[],
            };
            ranges.push(Ranges {
                machine,
                state: state as u16,
                event,
                slots: slots.clone(),
                remotes: [agents.senders(agent, event), executing],
                fields: fields.iter().map(|f| value_count(agents, f.ty)).collect(),
            });
        }
    }
    ranges
}

/// Writes values to the bits of a port, from the lowest.
#[derive(Default)]
pub struct Writer {
    /// The bits.
    pub words: Words,
    /// Number of bits so far.
    offset: u32,
}

impl Writer {
    /// Appends a value of this width.
    pub fn push(&mut self, value: u16, width: u32) {
        for bit in 0..width {
            let offset = (self.offset + bit) as usize;
            self.words[offset / 32] |=
                u32::from(value.checked_shr(bit).unwrap_or(0) & 1) << (offset % 32);
        }
        self.offset += width;
    }
}

/// Reads values from the bits of a port, from the lowest.
#[derive(Clone)]
pub struct Reader {
    /// The bits.
    words: Words,
    /// Number of bits that were read.
    offset: u32,
}

impl Reader {
    /// Starts at the lowest bit.
    pub fn new(words: Words) -> Reader {
        Reader { words, offset: 0 }
    }

    /// Returns the next value of this width.
    pub fn read(&mut self, width: u32) -> u16 {
        let mut value = 0;
        for bit in 0..width {
            let offset = (self.offset + bit) as usize;
            let is_set = self.words[offset / 32] >> (offset % 32) & 1 == 1;
            assert!(bit < 16 || !is_set, "a value has more than 16 bits");
            value |= u16::from(is_set).checked_shl(bit).unwrap_or(0);
        }
        self.offset += width;
        value
    }
}

/// Number of an event in the printed package.
pub fn event_number(agents: &Agents, event: Event) -> u16 {
    let position = agents.events.iter().position(|&other| other == event);
    position.expect("event of the package") as u16
}

/// Returns the bits of an input.
pub fn bits_of(agents: &Agents, agent: &Agent, machine: &Machine, input: &Input) -> Words {
    let mut writer = Writer::default();
    let state = input.configuration.state - agent.states.start as u16;
    writer.push(state, build::state_width(agent));
    let widths = build::variable_widths(agents, agent);
    for (variable, (width, _)) in agent.variables.iter().rev().zip(&widths) {
        for slot in machine.slots(variable.0) {
            writer.push(input.configuration.slots[slot], *width);
        }
    }
    if agent.variables.is_empty() {
        writer.push(0, 1);
    }
    writer.push(event_number(agents, input.event), agents.event_bits());
    writer.push(input.sender, agents.remote_bits());
    push_fields(&mut writer, agents, input.event, &input.fields);
    if !agent.is_home {
        writer.push(input.executing, agents.remote_bits());
    }
    writer.words
}

/// Appends the structure of all fields, with the values of a message's fields.
fn push_fields(writer: &mut Writer, agents: &Agents, event: Event, values: &[u16]) {
    for (name, width) in agents.fields.iter().rev() {
        let position = field_position(agents, event, name);
        let value = position.and_then(|position| values.get(position));
        writer.push(value.copied().unwrap_or(0), *width);
    }
    if agents.fields.is_empty() {
        writer.push(0, 1);
    }
}

/// Position of a field among those of a message.
fn field_position(agents: &Agents, event: Event, name: &str) -> Option<usize> {
    match event {
        Event::Message(message) => {
            let mut fields = agents.protocol.message(message).fields.iter();
            fields.position(|field| field.name == name)
        }
        _ => None,
    }
}

/// Reads the structure of all fields. Returns the values of a message's fields.
pub fn read_fields(reader: &mut Reader, agents: &Agents, event: Event) -> Vec<u16> {
    let mut values = match event {
        Event::Message(message) => vec![0; agents.protocol.message(message).fields.len()],
        _ => Vec::new(),
    };
    for (name, width) in agents.fields.iter().rev() {
        let value = reader.read(*width);
        if let Some(position) = field_position(agents, event, name) {
            values[position] = value;
        }
    }
    if agents.fields.is_empty() {
        reader.read(1);
    }
    values
}
