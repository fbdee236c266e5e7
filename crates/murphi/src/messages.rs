//! Messages in models of Murphi texts, recognised by the shape of their types.
//!
//! A *network* is a variable that holds records in multisets, or in an array. Each record names its sender or receiver:
//! by a field such as `source` or `dest`, or, in multisets, by the index of the array that holds the multiset. A slot
//! of an array is empty if no field names a sender or receiver; at the start all slots are empty. A record that a step
//! adds to a network is sent, and one that a step removes is received. The other end is an agent named by a further
//! field, or the receiver of the message that the same step removed, or else [`UNNAMED_AGENTS`].

use cohkit_base::sequence::{Action, Sequence, Step as ChartStep};
use cohkit_engine::model::{Model, Number, Role, TraceRenderer, Type, TypeId, UNDEFINED};
use cohkit_engine::trace_events::TraceEvents;

/// The lifeline of agents that messages do not name.
const UNNAMED_AGENTS: &str = "others";

/// Maximum number of lifelines of a chart; larger charts are not drawn.
const MAX_AGENTS: usize = 16;

/// Names of fields that hold the sender of a message, in lower case without a prefix `m_` and trailing `_`.
const SOURCE_FIELDS: [&str; 5] = ["source", "src", "from", "sender", "origin"];
/// Names of fields that hold the receiver of a message, like [`SOURCE_FIELDS`].
const TARGET_FIELDS: [&str; 7] = [
    "destination",
    "dest",
    "dst",
    "to",
    "receiver",
    "recipient",
    "target",
];

/// A location in the state that can hold a single message.
struct Slot {
    /// Index of its first cell in a state; for a slot of a multiset that of the element.
    record_cell: usize,
    /// Index of the cell that says whether there is an element; `None` in an array of slots.
    presence_cell: Option<usize>,
    /// Name of the agent that owns the slot, by the array's index; `None` if no index names an agent.
    owner: Option<String>,
    /// Record type of the messages.
    record: TypeId,
}

/// Roles of the fields of a record type, as indices into `fields`.
struct Shape {
    /// Field with the sender.
    source: Option<usize>,
    /// Field with the receiver.
    target: Option<usize>,
    /// The only other field that names an agent; `None` if there are several.
    further_agent: Option<usize>,
    /// First enumeration among the fields, which holds the kind of the message.
    kind: Option<usize>,
    /// Fields in order.
    fields: Vec<RecordField>,
}

/// A field of a record type.
struct RecordField {
    /// Index of the field's first cell in the record.
    cell_offset: usize,
    /// Name of the field.
    name: String,
    /// Type of the field.
    ty: TypeId,
}

/// A message: description and ends, each by the name of an agent. Equal messages cannot be distinguished.
#[derive(Clone, PartialEq, Debug)]
struct Message {
    /// Kind and fields in words: `GetS(line=0)`.
    text: String,
    /// Agent that the source field names.
    source: Option<String>,
    /// Agent that the target field names, or the owner of the slot if there is no such field.
    target: Option<String>,
    /// Agent that the further field names, which may be the missing end.
    further_agent: Option<String>,
}

/// A message in flight.
struct Flight {
    /// The message.
    message: Message,
    /// Lifelines of sender and receiver.
    ends: MessageEnds,
    /// Number of the flight, which connects sending and receiving in the chart.
    number: u32,
}

/// Lifelines at the ends of a message, as indices into [`Networks::agents`].
#[derive(Clone, Copy)]
struct MessageEnds {
    /// Lifeline of the sender.
    from: usize,
    /// Lifeline of the receiver.
    to: usize,
}

/// Renders the messages of a model with networks.
#[derive(Debug)]
pub(crate) struct Messages;

impl TraceRenderer for Messages {
    fn begin<'a>(&self, model: &'a Model, state: &[Number]) -> Option<Box<dyn TraceEvents + 'a>> {
        Some(Box::new(Networks::from_model(model, state)?))
    }
}

/// The networks of a model, and the messages in flight in them.
struct Networks<'a> {
    /// The model whose states are rendered.
    model: &'a Model,
    /// Number of cells of each type, by type index.
    sizes: Vec<u32>,
    /// All slots of all networks.
    slots: Vec<Slot>,
    /// Roles of the fields of each record type of a slot.
    shapes: Vec<(TypeId, Shape)>,
    /// Names of the lifelines; the last one is [`UNNAMED_AGENTS`].
    agents: Vec<String>,
    /// Steps of the chart so far.
    steps: Vec<ChartStep>,
    /// Messages in flight.
    in_flight: Vec<Flight>,
    /// Number of flights so far, which is the number of the next flight.
    flight_count: u32,
}

impl<'a> Networks<'a> {
    /// Returns the networks of a model. `frame` holds the cells of its start state. `None` if it has no network, or
    /// more than [`MAX_AGENTS`] agents.
    fn from_model(model: &'a Model, frame: &[Number]) -> Option<Networks<'a>> {
        let mut networks = Networks {
            model,
            sizes: model.sizes(),
            slots: Vec::new(),
            shapes: Vec::new(),
            agents: Vec::new(),
            steps: Vec::new(),
            in_flight: Vec::new(),
            flight_count: 0,
        };
        let mut first_cell = 0;
        for variable in model.variables.iter().filter(|v| v.role == Role::State) {
            networks.find_slots(variable.ty, first_cell, None, false);
            first_cell += networks.sizes[variable.ty.index()] as usize;
        }
        networks.retain_mailboxes(frame);
        if networks.slots.is_empty() {
            return None;
        }
        // Possible agents, in the order of the types.
        let records: Vec<TypeId> = networks.slots.iter().map(|slot| slot.record).collect();
        let mut types: Vec<TypeId> = Vec::new();
        for (record, shape) in &networks.shapes {
            let ends = [shape.source, shape.target, shape.further_agent];
            if records.contains(record) {
                types.extend(
                    ends.into_iter()
                        .flatten()
                        .map(|field| shape.fields[field].ty),
                );
            }
        }
        types.sort_unstable();
        types.dedup();
        let owners: Vec<String> = networks
            .slots
            .iter()
            .filter_map(|s| s.owner.clone())
            .collect();
        for ty in types {
            let (lo, hi) = model.bounds(ty)?;
            if model.count(ty) > MAX_AGENTS as u64 {
                return None;
            }
            for name in (lo..=hi).map(|value| agent_name(model, ty, value)) {
                if !networks.agents.contains(&name) {
                    networks.agents.push(name);
                }
            }
        }
        for name in owners {
            if !networks.agents.contains(&name) {
                networks.agents.push(name);
            }
        }
        if networks.agents.len() > MAX_AGENTS {
            return None;
        }
        networks.agents.push(UNNAMED_AGENTS.into());
        Some(networks)
    }

    /// Finds the slots for messages in a variable or one of its elements, in multisets and in arrays. `first_cell` is
    /// the index of the variable's first cell, and `owner` the innermost array index, as a type and a value, that may
    /// name an agent.
    fn find_slots(
        &mut self,
        ty: TypeId,
        first_cell: usize,
        owner: Option<(TypeId, Number)>,
        is_in_array: bool,
    ) {
        match self.model.ty(ty).clone() {
            Type::Multiset { capacity, element } => {
                let stride = 1 + self.sizes[element.index()] as usize;
                for i in 0..capacity as usize {
                    let record_cell = first_cell + i * stride + 1;
                    self.add_slot(element, record_cell, Some(record_cell - 1), owner);
                }
            }
            Type::Array { index, element } => {
                let Some((lo, hi)) = self.model.bounds(index) else {
                    return;
                };
                for value in lo..=hi {
                    let element_cell =
                        first_cell + (value - lo) as usize * self.sizes[element.index()] as usize;
                    let owner = match self.model.ty(index) {
                        Type::Enum(_) | Type::Bool => owner,
                        _ => Some((index, value)),
                    };
                    self.find_slots(element, element_cell, owner, true);
                }
            }
            Type::Record(_) if is_in_array => self.add_slot(ty, first_cell, None, owner),
            _ => {}
        }
    }

    /// Adds a slot, if its type is a record of which sender, receiver or owner are known.
    fn add_slot(
        &mut self,
        record: TypeId,
        record_cell: usize,
        presence_cell: Option<usize>,
        owner: Option<(TypeId, Number)>,
    ) {
        if !matches!(self.model.ty(record), Type::Record(_)) {
            return;
        }
        if !self.shapes.iter().any(|shape| shape.0 == record) {
            let shape = self.recognise_shape(record);
            self.shapes.push((record, shape));
        }
        let shape = self.shape_of(record);
        let ends: Vec<TypeId> = [shape.source, shape.target]
            .into_iter()
            .flatten()
            .map(|field| shape.fields[field].ty)
            .collect();
        // Numbers are agents only if a source or target field has their type.
        let owner = owner.filter(|(ty, _)| {
            ends.contains(ty) || matches!(self.model.ty(*ty), Type::Scalarset(_) | Type::Union(_))
        });
        // An array of records for each agent may also be the agent's own state, so a field must name an end.
        if !ends.is_empty() || presence_cell.is_some() && owner.is_some() {
            self.slots.push(Slot {
                record_cell,
                presence_cell,
                owner: owner.map(|(ty, value)| agent_name(self.model, ty, value)),
                record,
            });
        }
    }

    /// Roles of the fields of a record type that some slot has.
    fn shape_of(&self, record: TypeId) -> &Shape {
        let entry = self.shapes.iter().find(|shape| shape.0 == record);
        &entry.expect("shapes of slots are known").1
    }

    /// Returns the roles of the fields of a record type, recognised by their names and types.
    fn recognise_shape(&self, record: TypeId) -> Shape {
        let mut shape = Shape {
            source: None,
            target: None,
            further_agent: None,
            kind: None,
            fields: Vec::new(),
        };
        let Type::Record(fields) = self.model.ty(record) else {
            return shape;
        };
        let mut cell_offset = 0;
        let mut further_agents = Vec::new();
        for (number, (name, ty)) in fields.iter().enumerate() {
            let base_name = name.to_ascii_lowercase();
            let base_name = base_name.trim_start_matches("m_").trim_end_matches('_');
            if self.model.bounds(*ty).is_some() && *ty != TypeId::BOOL {
                if SOURCE_FIELDS.contains(&base_name) {
                    shape.source = Some(number);
                } else if TARGET_FIELDS.contains(&base_name) {
                    shape.target = Some(number);
                } else if matches!(self.model.ty(*ty), Type::Scalarset(_) | Type::Union(_)) {
                    further_agents.push(number);
                }
            }
            let is_end = [shape.source, shape.target].contains(&Some(number));
            if matches!(self.model.ty(*ty), Type::Enum(_)) && !is_end && shape.kind.is_none() {
                shape.kind = Some(number);
            }
            shape.fields.push(RecordField {
                cell_offset,
                name: name.clone(),
                ty: *ty,
            });
            cell_offset += self.sizes[ty.index()] as usize;
        }
        if let [further_agent] = further_agents[..] {
            shape.further_agent = Some(further_agent);
        }
        shape
    }

    /// Removes arrays of records that are not empty in the start state `frame`, because they are not networks.
    fn retain_mailboxes(&mut self, frame: &[Number]) {
        let is_mailbox = |slot: &Slot| {
            let shape = self.shape_of(slot.record);
            let ends = [shape.source, shape.target].into_iter().flatten();
            let mut ends = ends.map(|end| frame[slot.record_cell + shape.fields[end].cell_offset]);
            slot.presence_cell.is_some() || ends.all(|value| value == UNDEFINED)
        };
        let keep_flags: Vec<bool> = self.slots.iter().map(is_mailbox).collect();
        let mut keep_flags = keep_flags.into_iter();
        self.slots.retain(|_| keep_flags.next().unwrap_or(false));
    }

    /// Returns the messages in a state, whose cells are `frame`.
    fn messages(&self, frame: &[Number]) -> Vec<Message> {
        let message = |slot: &Slot| {
            let shape = self.shape_of(slot.record);
            let value = |field: usize| {
                let RecordField {
                    cell_offset, ty, ..
                } = &shape.fields[field];
                let value = frame[slot.record_cell + cell_offset];
                (value != UNDEFINED).then(|| match shape.kind == Some(field) {
                    true => self.model.show(*ty, value),
                    false => agent_name(self.model, *ty, value),
                })
            };
            let ends = [shape.source, shape.target].map(|end| end.and_then(value));
            let is_occupied = match slot.presence_cell {
                Some(presence_cell) => frame[presence_cell] != 0,
                None => ends.iter().any(Option::is_some),
            };
            if !is_occupied {
                return None;
            }
            let [source, target] = ends;
            let target = match shape.target {
                None => slot.owner.clone(),
                Some(_) => target,
            };
            let ends = [shape.source, shape.target, shape.further_agent, shape.kind];
            let mut arguments = Vec::new();
            for (field, record_field) in shape.fields.iter().enumerate() {
                let RecordField {
                    cell_offset,
                    name,
                    ty,
                } = record_field;
                let is_simple = self.model.bounds(*ty).is_some();
                let value = frame[slot.record_cell + cell_offset];
                let names_agent = shape.further_agent == Some(field) && shape.source.is_some();
                if is_simple && value != UNDEFINED && (!ends.contains(&Some(field)) || names_agent)
                {
                    arguments.push(format!("{name}={}", self.model.show(*ty, value)));
                }
            }
            let name = shape.kind.and_then(value);
            let name = name.unwrap_or_else(|| self.model.types[slot.record.index()].name.clone());
            let text = match arguments.is_empty() {
                true => name,
                false => format!("{name}({})", arguments.join(", ")),
            };
            Some(Message {
                text,
                source,
                target,
                further_agent: shape.further_agent.and_then(value),
            })
        };
        self.slots.iter().filter_map(message).collect()
    }

    /// Adds a step of an agent, given by its lifeline, to the chart.
    fn add_step(&mut self, agent: usize, action: Action) {
        self.steps.push(ChartStep {
            agent,
            action,
            line: None,
            visible: true,
        });
    }

    /// Returns the lifelines of a message's sender and receiver. `actor` is the lifeline of the agent that acts in the
    /// step, if it is known.
    fn ends(&self, message: &Message, actor: Option<usize>) -> MessageEnds {
        let others_index = self.agents.len() - 1;
        let index_of = |name: &Option<String>| {
            let name = name.as_ref()?;
            self.agents.iter().position(|agent| agent == name)
        };
        let (source, target) = (index_of(&message.source), index_of(&message.target));
        let further_agent = index_of(&message.further_agent);
        // The further agent is the missing end, unless it equals the known one.
        let from = source
            .or(actor)
            .or(further_agent.filter(|&o| Some(o) != target));
        let to = target.or(further_agent.filter(|&o| source.is_some() && Some(o) != source));
        MessageEnds {
            from: from.unwrap_or(others_index),
            to: to.unwrap_or(others_index),
        }
    }

    /// Removes a message from those in flight. A message that was in flight at the start gets a flight of its own.
    fn land(&mut self, message: Message) -> Flight {
        let sent = (self.in_flight.iter()).position(|flight| flight.message == message);
        match sent {
            Some(sent) => self.in_flight.remove(sent),
            None => Flight {
                ends: self.ends(&message, None),
                message,
                number: self.next_flight(),
            },
        }
    }

    /// Number of a new flight.
    fn next_flight(&mut self) -> u32 {
        self.flight_count += 1;
        self.flight_count - 1
    }
}

impl TraceEvents for Networks<'_> {
    fn step(&mut self, rule: &str, before: &[Number], after: &[Number]) {
        let (mut removed, mut added) = (self.messages(before), self.messages(after));
        // A message in both states is neither sent nor received.
        removed.retain(
            |message| match added.iter().position(|other| other == message) {
                Some(index) => {
                    added.remove(index);
                    false
                }
                None => true,
            },
        );
        let mut actor = None;
        for message in removed {
            let Flight {
                message,
                ends,
                number,
            } = self.land(message);
            actor.get_or_insert(ends.to);
            let receive = Action::Receive {
                message: message.text,
                from: ends.from,
                flight: number,
            };
            self.add_step(ends.to, receive);
        }
        let sent: Vec<(Message, MessageEnds)> = added
            .into_iter()
            .map(|message| {
                let ends = self.ends(&message, actor);
                (message, ends)
            })
            .collect();
        if let Some(agent) = actor.or(sent.first().map(|(_, ends)| ends.from)) {
            let description = rule.split(" (").next().unwrap_or(rule).to_string();
            self.add_step(agent, Action::Does { what: description });
        }
        for (message, ends) in sent {
            let number = self.next_flight();
            let send = Action::Send {
                message: message.text.clone(),
                to: ends.to,
                flight: number,
            };
            self.add_step(ends.from, send);
            self.in_flight.push(Flight {
                message,
                ends,
                number,
            });
        }
    }

    /// The chart of all steps, with the lifelines of the agents that took part; empty if there was no message.
    fn end(self: Box<Self>) -> Sequence {
        let mut has_steps = vec![false; self.agents.len()];
        for step in &self.steps {
            has_steps[step.agent] = true;
            match step.action {
                Action::Send { to, .. } => has_steps[to] = true,
                Action::Receive { from, .. } => has_steps[from] = true,
                _ => {}
            }
        }
        let new_index = |agent: usize| {
            has_steps[..agent]
                .iter()
                .filter(|&&has_steps| has_steps)
                .count()
        };
        let mut steps = self.steps;
        for step in &mut steps {
            step.agent = new_index(step.agent);
            match &mut step.action {
                Action::Send { to, .. } => *to = new_index(*to),
                Action::Receive { from, .. } => *from = new_index(*from),
                _ => {}
            }
        }
        let agents = self.agents.into_iter().enumerate();
        let agents = agents.filter(|(i, _)| has_steps[*i]).map(|(_, name)| name);
        Sequence {
            agents: agents.collect(),
            steps,
        }
    }
}

/// The name of an agent. A number alone would not show its type.
fn agent_name(model: &Model, ty: TypeId, value: Number) -> String {
    match model.ty(ty) {
        Type::Range { .. } => format!("{} {value}", model.types[ty.index()].name),
        _ => model.show(ty, value),
    }
}
