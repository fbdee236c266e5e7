//! Storage of the messages in flight: declaration of its state variables.

use cohkit_base::words::counted;
use cohkit_engine::model::{Number, TypeId, VariableId};
use cohkit_protocol::controller::{Controller, Expression, Statement, Target, Value};
use cohkit_protocol::protocol::{Message, MessageId, Protocol, Type as ValueType};
use std::rc::Rc;

use super::agents::largest;
use super::flows::{Direction, Flow, Queue, Storage};
use super::frame::Frame;
use super::input_queues::InputQueues;
use super::options::SystemError;
use super::tickets::Tickets;

/// The messages in flight.
pub(super) struct Channels<'p> {
    /// Fixed parts of the system.
    pub(super) frame: Rc<Frame<'p>>,
    /// All message types that some row sends, by direction and then by message type. Other components refer to a flow
    /// by its index.
    pub flows: Vec<Flow>,
    /// Queues of ordered channels, referred to by [`Storage::Queued`].
    pub queues: Vec<Queue>,
    /// The input queues of networks.
    pub inputs: InputQueues<'p>,
}

/// A send statement of a row.
struct PossibleSend<'r> {
    /// Message type.
    message: MessageId,
    /// Direction that follows from the row's agent and the receiver.
    direction: Direction,
    /// Values of the fields, in the order of their declaration.
    fields: &'r [Value],
}

/// The flows of one ordered group of channels in one direction, which share a queue.
struct OrderedGroup {
    /// Index of the group in `Protocol::orders`.
    order: usize,
    /// Indices of the flows.
    flows: Vec<usize>,
}

/// Limit of a message in flight.
struct Capacity {
    /// Maximum number of messages.
    messages: u16,
    /// Property that a further message violates; `None` if the protocol file declares no bound.
    violated_property: Option<String>,
}

/// A part of the entries of a queue that holds a field. Fields of different messages share a column.
struct Column {
    /// True for remotes, which symmetry permutes; false for numbers.
    holds_remotes: bool,
    /// Largest value of the fields.
    largest: i32,
}

impl<'p> Channels<'p> {
    /// Declares the storage of all messages that some row sends. Posted stores have tickets of `ranks` ranks.
    ///
    /// # Errors
    /// A row sends a message from the home to itself.
    pub fn new(
        frame: &Rc<Frame<'p>>,
        home: &Controller,
        ranks: u8,
    ) -> Result<Channels<'p>, SystemError> {
        let mut channels = Channels {
            frame: frame.clone(),
            flows: Vec::new(),
            queues: Vec::new(),
            inputs: InputQueues::new(frame),
        };
        let possible_sends = possible_sends(frame.protocol, home)?;
        for direction in Direction::ALL {
            let mut groups = Vec::new();
            for message in frame.protocol.message_ids() {
                let sends: Vec<&[Value]> = possible_sends
                    .iter()
                    .filter(|send| send.message == message && send.direction == direction)
                    .map(|send| send.fields)
                    .collect();
                if !sends.is_empty() {
                    channels.add_flow((message, direction), &sends, ranks, &mut groups);
                }
            }
            for group in groups {
                channels.add_queue(direction, &group);
            }
        }
        Ok(channels)
    }

    /// Declares the storage of a message type in one direction. `sends` holds the fields of each send. A message of an
    /// ordered channel is added to its group in `groups`, for which [`Channels::add_queue`] declares the queue later.
    fn add_flow(
        &mut self,
        (message, direction): (MessageId, Direction),
        sends: &[&[Value]],
        ranks: u8,
        groups: &mut Vec<OrderedGroup>,
    ) {
        let frame = &*self.frame;
        let kind = frame.protocol.message(message);
        let constants = constants(kind, sends, frame.remotes);
        let capacity = capacity(frame, message);
        let mut stored = stored_types(frame, kind, &constants);
        let tickets = tickets(frame, message, ranks);
        stored.extend(tickets.and_then(|tickets| tickets.ty));
        let has_ordered_followers = frame.protocol.has_ordered_followers(message);
        stored.extend(has_ordered_followers.then_some(TypeId::BOOL));
        let storage = match frame.protocol.order_of(kind.channel) {
            Some(order) => {
                let position = groups.iter().position(|group| group.order == order);
                let position = position.unwrap_or_else(|| {
                    let flows = Vec::new();
                    groups.push(OrderedGroup { order, flows });
                    groups.len() - 1
                });
                let flows = &mut groups[position].flows;
                flows.push(self.flows.len());
                // The queues of this direction are added later, in the order of their groups. Label 0 is that of an
                // empty slot.
                Storage::Queued(self.queues.len() + position, flows.len() as u32)
            }
            None => Storage::Counted(counter(
                frame,
                (message, direction),
                &stored,
                capacity.messages,
            )),
        };
        self.flows.push(Flow {
            message,
            direction,
            constants,
            stored,
            tickets,
            has_ordered_followers,
            columns: Vec::new(),
            storage,
            capacity: capacity.messages.into(),
            bound: capacity.violated_property,
        });
    }

    /// Declares the queues of one ordered group in one direction.
    fn add_queue(&mut self, direction: Direction, group: &OrderedGroup) {
        let order = group.order;
        let frame = self.frame.clone();
        let (scope, protocol) = (&frame.scope, frame.protocol);
        let names: Vec<&str> = protocol.orders[order]
            .iter()
            .map(|channel| protocol.channels[channel.index()].name.as_str())
            .collect();
        let variable = format!("{}_{}", names.join("_"), direction.suffix());
        let per_line = protocol.per_line[order];
        let entry = self.add_entry(&variable, per_line, &group.flows);
        let lines = if per_line { 1 } else { frame.lines };
        let capacity = i32::from(frame.options.effective_capacity()) * lines;
        let positions = scope.range("position", 0, capacity - 1);
        let length = scope.range("length", 0, capacity);
        let slots = scope.array("slots", positions, entry.ty);
        let mut ty = scope
            .with_builder(|build| build.record("queue", [("length", length), ("slot", slots)]));
        for _ in 0..direction.remote_ends() {
            ty = scope.array("queues", frame.remote_type, ty);
        }
        let homes = i32::from(protocol.homes);
        let senders =
            (direction == Direction::BetweenHomes).then(|| scope.range("home", 0, homes - 1));
        if let Some(senders) = senders {
            ty = scope.array("queues", senders, ty);
        }
        ty = match per_line {
            true => scope.array("queues", frame.line_type, ty),
            false => frame.per_home("queues", ty),
        };
        self.queues.push(Queue {
            direction,
            order,
            per_line,
            variable: scope.state(variable, ty),
            kinds: entry.kinds,
            positions,
            capacity,
            carries_line: entry.carries_line,
            tickets: entry.tickets,
            senders,
            name: names.join(", "),
        });
        self.inputs.declare(order, direction);
    }

    /// Declares the type of the entries of a queue, and gives its flows their columns. Flows share columns, as an
    /// entry holds one message.
    fn add_entry(&mut self, variable: &str, per_line: bool, flows: &[usize]) -> Entry {
        let frame = &*self.frame;
        let mut labels = vec!["none".to_string()];
        let mut columns: Vec<Column> = Vec::new();
        let mut carries_line = false;
        let mut highest_ticket = None;
        for &flow in flows {
            let flow = &mut self.flows[flow];
            let tickets = flow.tickets.filter(|tickets| tickets.ty.is_some());
            highest_ticket = highest_ticket.max(tickets.map(|tickets| tickets.high));
            let kind = frame.protocol.message(flow.message);
            labels.push(kind.name.clone());
            carries_line |= kind.carries.line();
            let stored = kind.fields.iter().zip(&flow.constants);
            for (field, _) in stored.filter(|(_, constant)| constant.is_none()) {
                let holds_remotes = field.ty == ValueType::Remote;
                let largest = largest(field.ty, frame.remotes);
                let is_free = |index: &usize| {
                    columns[*index].holds_remotes == holds_remotes && !flow.columns.contains(index)
                };
                let index = (0..columns.len()).find(is_free).unwrap_or(columns.len());
                match columns.get_mut(index) {
                    Some(column) => column.largest = largest.max(column.largest),
                    None => columns.push(Column {
                        holds_remotes,
                        largest,
                    }),
                }
                flow.columns.push(index);
            }
        }
        let scope = &frame.scope;
        let kinds = scope.enumeration(variable, labels);
        let mut parts = vec![("kind".to_string(), kinds)];
        if !per_line {
            parts.push(("line".to_string(), frame.line_type));
        }
        for (index, column) in columns.into_iter().enumerate() {
            let values = scope.range("field", 0, column.largest);
            if column.holds_remotes {
                scope.add_optional(values);
            }
            parts.push((format!("field{index}"), values));
        }
        if carries_line {
            parts.push(("current".to_string(), TypeId::BOOL));
        }
        if let Some(high) = highest_ticket {
            parts.push(("ticket".to_string(), scope.range("ticket", 0, high)));
        }
        Entry {
            ty: scope.with_builder(|build| build.record("entry", parts)),
            kinds,
            carries_line,
            tickets: highest_ticket.is_some(),
        }
    }
}

/// Type of the entries of a queue, with their parts as in [`Queue`].
struct Entry {
    /// Record type of an entry.
    ty: TypeId,
    /// Enumeration of the message types; label 0 is that of an empty slot.
    kinds: TypeId,
    /// True if some message type carries a copy of the line.
    carries_line: bool,
    /// True if some message type stores the ticket of a store.
    tickets: bool,
}

/// Returns all sends of the protocol's rows.
///
/// # Errors
/// A row sends a message from the home to itself.
fn possible_sends<'r>(
    protocol: &'r Protocol,
    home: &'r Controller,
) -> Result<Vec<PossibleSend<'r>>, SystemError> {
    let mut possible_sends = Vec::new();
    for (controller, is_home) in [(&protocol.remote, false), (home, true)] {
        for row in &controller.rules {
            let mut to_itself = None;
            row.visit(&mut |statement| {
                let Statement::Send {
                    message,
                    to,
                    fields,
                } = statement
                else {
                    return;
                };
                let direction = match (is_home, to) {
                    (false, Target::Home | Target::HomeAt(_)) => Direction::ToHome,
                    (true, Target::HomeAt(_)) => Direction::BetweenHomes,
                    (false, _) => Direction::Between,
                    (true, Target::Home) => {
                        to_itself = Some(*message);
                        return;
                    }
                    (true, _) => Direction::ToRemote,
                };
                possible_sends.push(PossibleSend {
                    message: *message,
                    direction,
                    fields,
                });
            });
            if let Some(message) = to_itself {
                let name = &protocol.message(message).name;
                let error = format!("the home sends {name} to itself");
                return Err(SystemError::Invalid(error));
            }
        }
    }
    Ok(possible_sends)
}

/// Returns, for each field of a message, its value if every send gives the same constant. `sends` is not empty.
fn constants(kind: &Message, sends: &[&[Value]], remotes: i32) -> Vec<Option<u16>> {
    let fields = (0..kind.fields.len()).map(|index| match sends[0].get(index) {
        // A constant that the field cannot hold is stored, for the search to find.
        Some(same @ Value::Single(Expression::Constant(constant), ty))
            if sends.iter().all(|fields| fields[index] == *same)
                && i32::from(*constant) <= largest(*ty, remotes) =>
        {
            Some(*constant)
        }
        _ => None,
    });
    fields.collect()
}

/// Returns the limit of a message in flight per sender, receiver and line: the lowest bound that the protocol file
/// declares, otherwise the channel capacity.
fn capacity(frame: &Frame, message: MessageId) -> Capacity {
    let (protocol, options) = (frame.protocol, frame.options);
    let kind = protocol.message(message);
    let bounds = &protocol.bounds;
    let message_bound = (bounds.per_message.iter()).find(|(bounded, _)| *bounded == message);
    let is_ordered = protocol.order_of(kind.channel).is_some();
    let total = bounds.in_flight.filter(|_| !is_ordered);
    let limits = [
        message_bound.map(|(_, bound)| (bound.limit, format!("{} {}", bound.limit, kind.name))),
        total.map(|bound| (bound.limit, counted(bound.limit, "message"))),
    ];
    let declared_limit = (limits.into_iter().flatten())
        .min_by_key(|(limit, _)| *limit)
        .filter(|(limit, _)| *limit <= options.capacity);
    match declared_limit {
        Some((limit, description)) => {
            let property = format!("more than {description} in flight");
            Capacity {
                // A counter needs at least one value besides 0.
                messages: limit.max(1),
                violated_property: Some(property),
            }
        }
        None => Capacity {
            messages: options.effective_capacity(),
            violated_property: None,
        },
    }
}

/// Returns the types of the fields that are stored: those without a constant.
fn stored_types(frame: &Frame, kind: &Message, constants: &[Option<u16>]) -> Vec<TypeId> {
    let fields = kind.fields.iter().zip(constants);
    let stored = fields.filter(|(_, constant)| constant.is_none());
    let types = stored.map(|(field, _)| {
        let values = largest(field.ty, frame.remotes);
        let ty = frame.scope.range(&field.name, 0, values);
        match field.ty {
            ValueType::Remote => frame.scope.add_optional(ty),
            // A number that encodes several remotes changes its value under their permutation.
            ValueType::RemoteSet => frame.scope.forbid_symmetry(),
            _ => {}
        }
        ty
    });
    types.collect()
}

/// Returns the tickets of the stores that a message carries; `None` if its stores are not tracked.
fn tickets(frame: &Frame, message: MessageId, ranks: u8) -> Option<Tickets> {
    let senders = frame.facts.senders[message.index()];
    (senders.post || senders.wait).then(|| {
        let range = senders.tickets(ranks);
        let (low, high) = (i32::from(*range.start()), i32::from(*range.end()));
        let ty = (low < high).then(|| frame.scope.range("ticket", low, high));
        Tickets { low, high, ty }
    })
}

/// Declares the counter of an unordered flow, indexed as [`Storage::Counted`] says.
fn counter(
    frame: &Frame,
    (message, direction): (MessageId, Direction),
    stored: &[TypeId],
    capacity: u16,
) -> VariableId {
    let (scope, kind) = (&frame.scope, frame.protocol.message(message));
    let name = match direction {
        Direction::ToRemote => format!("{}_to_{}", kind.name, frame.protocol.remote.name),
        _ => format!("{}_{}", kind.name, direction.suffix()),
    };
    let mut ty = scope.range("in_flight", 0, Number::from(capacity));
    if kind.carries.line() {
        ty = scope.array(&name, TypeId::BOOL, ty);
    }
    for &values in stored.iter().rev() {
        ty = scope.array(&name, values, ty);
    }
    for _ in 0..direction.remote_ends() {
        ty = scope.array(&name, frame.remote_type, ty);
    }
    ty = scope.array(&name, frame.line_type, ty);
    scope.state(name, ty)
}
