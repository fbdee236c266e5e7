//! State variables of a system, and access to them.

use cohkit_base::sequence::{homes, lifeline};
use cohkit_base::words::counted;
use cohkit_protocol::controller::{
    Controller, Expression, Initial, Statement, Target, Value, Variable,
};
use cohkit_protocol::protocol::{MessageId, Protocol, Right, StateId, Type as ValueType};
use cohkit_protocol::remotes::Remotes;
use cohkit_protocol::terms::{IndexDomain, VariableId as ValueId};
use cohkit_protocol::value_text::AgentNames;
use cohkit_system::plan::ProtocolFacts;
use cohkit_system::stores::{ranks, Ticket};
use rustc_hash::FxHashMap;

use super::backing_permission::BackingPermission;
use super::input_queues::Input;
use super::story::Charts;
use super::tickets::{Stores, Tickets};
use super::watch::Watch;
use super::{Mark, Options, SystemError};
use cohkit_engine::build::Builder;
use cohkit_engine::explain::Remark;
use cohkit_engine::model::{
    Deadlock, Expr, Model, ModelError, Number, Place, Stmt, TableId, TypeId, VariableId,
};

/// Labels of the states of a memory operation.
pub(super) mod slot {
    pub const IDLE: u32 = 0;
    pub const READ: u32 = 1;
    pub const SAMPLED: u32 = 2;
    pub const WRITE: u32 = 3;
    pub const STORE: u32 = 4;
    pub const PARTIAL: u32 = 5;
    pub const DONE: u32 = 6;
    pub const LABELS: [&str; 7] = [
        "idle",
        "read",
        "sampled",
        "write",
        "store",
        "partial_store",
        "done",
    ];
}

/// Labels of the states of the device's lock.
pub(super) mod lock {
    pub const NONE: u32 = 0;
    /// The device may read.
    pub const READ: u32 = 1;
    /// The device may read and write.
    pub const WRITE: u32 = 2;
    /// The home has consumed the unlock and not yet acknowledged it.
    pub const UNLOCKING: u32 = 3;
    pub const LABELS: [&str; 4] = ["unlocked", "reading", "writing", "given_back"];
}

/// One kind of agent in the model: the remotes or the home.
pub(super) struct Side<'p> {
    pub controller: &'p Controller,
    /// True for the home.
    pub home: bool,
    /// The enumeration of its states.
    pub states: TypeId,
    /// Its current state, per line (and remote).
    pub state: VariableId,
    /// Its variables, per line (and remote); registers without the line.
    pub variables: Vec<VariableId>,
    pub tables: Vec<TableId>,
    /// Permission of each state: 0, 1 or 2.
    pub right: TableId,
    /// Per state, true if it is stable.
    pub stable: TableId,
}

/// Sort of sender and receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Direction {
    ToHome,
    ToRemote,
    Between,
    BetweenHomes,
}

impl Direction {
    pub fn is_from_remote(self) -> bool {
        matches!(self, Direction::ToHome | Direction::Between)
    }
    pub fn is_to_remote(self) -> bool {
        matches!(self, Direction::ToRemote | Direction::Between)
    }
}

/// One message type in one direction.
pub(super) struct Flow {
    pub message: MessageId,
    pub direction: Direction,
    /// Per field of the message, its value if every send gives the same constant. Such a field is not stored.
    pub constants: Vec<Option<u16>>,
    /// Types of the stored fields, in order, followed by that of the ticket if it is stored. The last one is the bit of
    /// [`Flow::has_ordered_followers`].
    pub stored: Vec<TypeId>,
    /// Tickets of the stores that it carries, if stores are tracked.
    pub tickets: Option<Tickets>,
    /// True if other messages stay behind these. Each message then has a bit: true if such a message has been sent
    /// later.
    pub has_ordered_followers: bool,
    pub storage: Storage,
    /// In a queue: the column of the entry that holds each stored field.
    pub columns: Vec<usize>,
    /// Maximum number in flight per sender and receiver (and line, if unordered).
    pub capacity: i32,
    /// The property that a further message violates, if the capacity is a bound declared in the protocol file.
    pub bound: Option<String>,
}

/// Storage of a flow's messages.
#[derive(Clone, Copy)]
pub(super) enum Storage {
    /// A counter, indexed by line, sender, receiver, stored values and current bit.
    Counted(VariableId),
    /// A queue by its index, and the label of the message type in it.
    Queued(usize, u32),
}

/// The queues of one ordered group in one direction.
pub(super) struct Queue {
    pub direction: Direction,
    /// Index of the order of its channels in the protocol.
    pub order: usize,
    pub variable: VariableId,
    /// The enumeration of message types; its first label is that of an empty slot.
    pub kinds: TypeId,
    pub positions: TypeId,
    pub capacity: i32,
    /// True if each line has its own queue; otherwise each home has one, and an entry holds the number of its line.
    pub per_line: bool,
    /// True if entries have the current bit of a copy of the line.
    pub carries_line: bool,
    /// True if entries hold the ticket of a store.
    pub tickets: bool,
    /// Between homes: the type of the sending home's number.
    pub senders: Option<TypeId>,
    /// Names of its channels.
    pub name: String,
}

impl Queue {
    /// True if an entry is about the line.
    pub fn about(&self, entry: &Place, line: &Expr) -> Expr {
        match self.per_line {
            true => Expr::Bool(true),
            false => entry.clone().field("line").is(line),
        }
    }
}

/// The device behind the home, if the home has local operations. With backing permission, the outer level.
#[derive(Clone, Copy)]
pub(super) struct Device {
    /// The requested operation: 0, or its index plus 1.
    pub requested: VariableId,
    /// The operation accepted and not yet acknowledged: 0, or its index plus 1.
    pub accepted: VariableId,
    pub locks: TypeId,
    pub lock: VariableId,
    pub agent: i32,
}

/// The memory operation, if the home has split memory.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    pub states: TypeId,
    pub state: VariableId,
    pub current: VariableId,
}

/// The deferred store, if the home ever defers one.
#[derive(Clone, Copy)]
pub(super) struct DeferredStore {
    /// Sender of the bytes: 0 for none, or a remote's index plus 1.
    pub from: VariableId,
    /// True if the bytes cover the whole line.
    pub whole: VariableId,
    /// Ticket of the store.
    pub ticket: VariableId,
}

/// A system under construction.
pub(super) struct System<'p> {
    pub protocol: &'p Protocol,
    pub options: &'p Options,
    pub remotes: i32,
    pub of_each: Remotes,
    pub lines: i32,
    pub build: Builder,
    pub remote_type: TypeId,
    pub line_type: TypeId,
    pub remote: Side<'p>,
    pub home: Side<'p>,
    /// Current bit of each remote's copy.
    pub current: VariableId,
    /// Current bit of memory.
    pub memory: VariableId,
    pub slot: Option<Slot>,
    pub deferred_store: Option<DeferredStore>,
    pub device: Option<Device>,
    pub backing_permission: Option<BackingPermission>,
    pub flows: Vec<Flow>,
    pub queues: Vec<Queue>,
    /// The input queues of networks.
    pub inputs: Vec<Input>,
    /// Lifeline of the home, or of the first of several; remotes come before it.
    pub first_home: i32,
    /// Names of the agents, in the order of their lifelines.
    pub names: AgentNames,
    pub memory_agent: i32,
    /// Static analysis of the rows.
    pub facts: ProtocolFacts,
    /// Pending stores of the remotes.
    pub stores: Stores,
    /// Rows of each group of marks.
    pub marks: Vec<Mark>,
    /// Descriptions of waiting agents and messages.
    pub remarks: Vec<Remark>,
    /// Error of the first expression that cannot be lowered.
    pub unsupported: Option<SystemError>,
    /// The access or operation whose progress is watched, if any.
    pub watch: Option<Watch>,
    /// The remote that must always be able to begin accesses again, if that is checked.
    pub restarts: Option<VariableId>,
    /// Types whose values are a remote or none.
    pub(super) optional: Vec<TypeId>,
    /// True if remotes are symmetric: no stored number stands for several of them.
    interchangeable: bool,
    parameters: FxHashMap<(String, TypeId), VariableId>,
    bound: FxHashMap<(TypeId, usize), VariableId>,
    depth: usize,
    positions: [Option<TableId>; 2],
    powers: Option<TableId>,
    kinds: Option<TableId>,
}

/// Types and numbers from which the types of a system are made.
pub(super) struct Sizes {
    line_type: TypeId,
    remote_type: TypeId,
    remotes: i32,
    homes: u16,
}

impl Sizes {
    pub(super) fn per_remote(&self, build: &mut Builder, name: &str, element: TypeId) -> TypeId {
        let inner = build.array(name, self.remote_type, element);
        build.array(name, self.line_type, inner)
    }

    /// Declares the states and variables of all agents of a controller. Adds the types that name a remote or none to
    /// `optional`.
    fn side<'p>(
        &self,
        build: &mut Builder,
        controller: &'p Controller,
        (name, home): (&str, bool),
        optional: &mut Vec<TypeId>,
    ) -> Side<'p> {
        let states = build.enumeration(
            format!("{name}_state"),
            controller.states.iter().map(|s| s.name.as_str()),
        );
        let place = |build: &mut Builder, name: String, element: TypeId, register: bool| {
            let ty = if register {
                match (home, self.homes) {
                    (false, _) => build.array(&name, self.remote_type, element),
                    (true, 1) => element,
                    (true, homes) => {
                        let home = build.range("home", 0, Number::from(homes) - 1);
                        build.array(&name, home, element)
                    }
                }
            } else if home {
                build.array(&name, self.line_type, element)
            } else {
                self.per_remote(build, &name, element)
            };
            build.state(name, ty)
        };
        let state = place(build, format!("{name}_state"), states, false);
        let variables = controller
            .variables
            .iter()
            .map(|v| {
                let element = variable_type(build, v, self.remotes, self.remote_type);
                optional.extend((v.ty == ValueType::Remote).then_some(element));
                let variable = place(build, format!("{name}_{}", v.name), element, v.register);
                // With several kinds of remotes, the name already contains the kind.
                build.set_spoken_name(
                    variable,
                    match v.name.contains('.') {
                        true => v.name.clone(),
                        false => format!("{name}.{}", v.name),
                    },
                );
                variable
            })
            .collect();
        let tables = controller
            .tables
            .iter()
            .map(|t| {
                let largest = t.values.iter().copied().max().unwrap_or(0);
                let index = build.range("index", 0, t.values.len() as i32 - 1);
                let result = build.range("result", 0, i32::from(largest));
                build.table(&t.name, index, result, t.values.iter().map(|&v| v.into()))
            })
            .collect();
        let rights = build.range("right", 0, 2);
        let right = build.table(
            format!("{name}_right"),
            states,
            rights,
            controller.states.iter().map(|s| right_code(s.right)),
        );
        let stable = build.table(
            format!("{name}_stable"),
            states,
            TypeId::BOOL,
            controller.states.iter().map(|s| i32::from(s.is_stable())),
        );
        Side {
            controller,
            home,
            states,
            state,
            variables,
            tables,
            right,
            stable,
        }
    }

    /// Declares the device, or the outer level.
    fn device(&self, build: &mut Builder, locals: i32, parent_any: bool) -> Device {
        let operations = build.range("operation", 0, locals);
        let per_line = build.array("operation", self.line_type, operations);
        let requested = build.state("device_asks", per_line);
        let accepted = build.state("device_waits", per_line);
        let locks = build.enumeration("lock", lock::LABELS);
        let per_line = build.array("lock", self.line_type, locks);
        Device {
            requested,
            accepted,
            locks,
            lock: build.state("device_lock", per_line),
            agent: build.agent(if parent_any { "lender" } else { "device" }),
        }
    }
}

/// A send in a row.
struct Sending<'r> {
    message: MessageId,
    direction: Direction,
    fields: &'r [Value],
}

impl<'p> System<'p> {
    pub fn new(
        protocol: &'p Protocol,
        home: &'p Controller,
        of_each: Remotes,
        lines: u8,
        options: &'p Options,
    ) -> Result<System<'p>, SystemError> {
        let remotes = of_each.total();
        let mut build = Builder::new(format!("{} {remotes}x{lines}", protocol.name));
        let (remotes, lines) = (i32::from(remotes), i32::from(lines));
        let line_type = build.range("line", 0, lines - 1);
        let remote_type = build.range("remote", 0, remotes - 1);
        let sizes = Sizes {
            line_type,
            remote_type,
            remotes,
            homes: protocol.homes,
        };

        let remote_name = protocol.remote.name.clone();
        let home_name = if home.name == remote_name {
            format!("{}_home", home.name)
        } else {
            home.name.clone()
        };
        let mut optional = Vec::new();
        let mut side = |build: &mut _, controller, name: &str, home| {
            sizes.side(build, controller, (name, home), &mut optional)
        };
        let remote = side(&mut build, &protocol.remote, &remote_name, false);
        let home = side(&mut build, home, &home_name, true);

        let bits = sizes.per_remote(&mut build, "current", TypeId::BOOL);
        let current = build.state(format!("{remote_name}_current"), bits);
        let bits = build.array("current", line_type, TypeId::BOOL);
        let memory = build.state("memory_current", bits);

        let names = AgentNames {
            remotes: (0..of_each.total())
                .map(|remote| lifeline(&protocol.remote_name(&of_each, remote), "remote"))
                .collect(),
            homes: homes(&home_name, protocol.homes),
        };
        for name in &names.remotes {
            build.agent(name);
        }
        let homes = names.homes.iter().map(|name| build.agent(name));
        let first_home = homes.min().unwrap_or_default();
        let memory_agent = build.agent("memory");
        build.trace_renderer(&Charts);

        let facts = ProtocolFacts::new(protocol, home.controller);
        let slot = facts.slot.then(|| {
            let states = build.enumeration("memory_operation", slot::LABELS);
            let per_line = build.array("memory_operation", line_type, states);
            Slot {
                states,
                state: build.state("memory_operation", per_line),
                current: build.state("memory_operation_current", bits),
            }
        });
        let ranks = ranks(options.room(), facts.line_order);
        let deferred_store = facts.defers_stores.then(|| {
            let sender_type = build.range("aside", 0, remotes);
            optional.push(sender_type);
            let per_line = build.array("aside", line_type, sender_type);
            let tickets = build.range("ticket", 0, i32::from(Ticket::posted(ranks - 1).0));
            let tickets = build.array("ticket", line_type, tickets);
            DeferredStore {
                from: build.state("aside_from", per_line),
                whole: build.state("aside_whole", bits),
                ticket: build.state("aside_ticket", tickets),
            }
        });
        let locals = home.controller.locals.len() as i32;
        let device = (locals > 0).then(|| sizes.device(&mut build, locals, options.parent_any));
        let backing_permission = options
            .parent_any
            .then(|| BackingPermission::new(&mut build, protocol, line_type));
        let stores = sizes.stores(&mut build, (&remote_name, remote.states), &facts, ranks);

        let mut system = System {
            protocol,
            options,
            remotes,
            of_each,
            lines,
            build,
            remote_type,
            line_type,
            remote,
            home,
            current,
            memory,
            slot,
            deferred_store,
            device,
            backing_permission,
            flows: Vec::new(),
            queues: Vec::new(),
            names,
            inputs: Vec::new(),
            first_home,
            memory_agent,
            facts,
            stores,
            marks: Vec::new(),
            remarks: Vec::new(),
            unsupported: None,
            watch: None,
            restarts: None,
            optional,
            interchangeable: true,
            parameters: FxHashMap::default(),
            bound: FxHashMap::default(),
            depth: 0,
            positions: [None; 2],
            powers: None,
            kinds: None,
        };
        system.channels()?;
        Ok(system)
    }

    /// Returns the finished model.
    pub fn finish(mut self) -> Result<Model, Vec<ModelError>> {
        let line = self.parameter("l", self.line_type);
        let current = self.memory.at(line).set(true);
        // A home without backing permission has no copy.
        let mut begin = match self.backing_permission {
            Some(_) => Vec::new(),
            None => vec![current],
        };
        begin.extend(self.initialize_line(line.into()));
        begin.extend(self.set_memory_writes(&line.into(), false));
        let mut body = vec![line.each(begin)];
        let watched = self.watch.and_then(|watch| watch.which());
        let watched = watched.or(self.restarts);
        let mut parameters = Vec::new();
        if let Some(watched) = watched {
            let remote_parameter = self.parameter("watched remote", self.remote_type);
            body.push(watched.set(remote_parameter));
            parameters.push(remote_parameter);
        }
        self.build.starts("reset", parameters, body);
        self.build.deadlock(match self.build.model().quiescent {
            Some(_) => Deadlock::ExceptQuiescent,
            None => Deadlock::Off,
        });
        // Protocol files compare remotes, store them and send to them. They cannot order remotes, and a loop over
        // several does the same for each.
        if self.interchangeable {
            let optional = std::mem::take(&mut self.optional);
            self.build.interchangeable(self.remote_type, optional);
        }
        self.build.build()
    }

    /// Initializes the states and variables of a line whose initial value is not the first of their type.
    fn initialize_line(&mut self, line: Expr) -> Vec<Stmt> {
        let mut out = Vec::new();
        for number in 0..self.of_each.total() {
            let (kind, _) = self.of_each.kind(number);
            let initial = self.protocol.kinds[kind.index()].initial;
            if initial.index() > 0 {
                let place = self.remote.state.at(&line).at(i32::from(number));
                out.push(place.set(self.remote.states.nth(initial.index() as u32)));
            }
        }
        for home in [false, true] {
            let side = self.side(home);
            let variables = (0..).map(ValueId).zip(&side.controller.variables);
            let variables: Vec<_> = variables.map(|(name, v)| (v.initial, v.ty, name)).collect();
            for (initial, ty, name) in variables {
                if initial == Initial::Number(0) {
                    continue;
                }
                let mut context = Self::context(home, &line, None);
                if home {
                    let place = self.variable(&context, name);
                    out.extend(self.initialize_variable(place, initial, ty));
                } else {
                    let initialization = self.with_bound(self.remote_type, |system, remote| {
                        context.remote = Some(remote.into());
                        let place = system.variable(&context, name);
                        remote.each(system.initialize_variable(place, initial, ty))
                    });
                    out.push(initialization);
                }
            }
        }
        out
    }

    /// Initializes one agent's variable.
    fn initialize_variable(&mut self, place: Place, initial: Initial, ty: ValueType) -> Vec<Stmt> {
        match (initial, ty) {
            (
                Initial::Number(number),
                ValueType::Array {
                    first_domain,
                    second_domain,
                    ..
                },
            ) => {
                let number = i32::from(number);
                let domains: Vec<IndexDomain> =
                    std::iter::once(first_domain).chain(second_domain).collect();
                self.set_every_element(place, &domains, &|place| place.set(number))
            }
            (Initial::Number(number), _) => vec![place.set(i32::from(number))],
            (Initial::All(kind), ValueType::RemoteSet) => {
                let members = self.of_each.numbers(kind).map(i32::from);
                members
                    .map(|number| place.clone().at(number).set(true))
                    .collect()
            }
            (Initial::All(kind), _) => vec![place.set(i32::from(self.of_each.count(kind)))],
        }
    }

    /// One statement for every element of an array.
    fn set_every_element(
        &mut self,
        place: Place,
        domains: &[IndexDomain],
        set: &dyn Fn(Place) -> Stmt,
    ) -> Vec<Stmt> {
        match domains {
            [] => vec![set(place)],
            [IndexDomain::Remotes, rest @ ..] => vec![self
                .with_bound(self.remote_type, |system, remote| {
                    remote.each(system.set_every_element(place.at(remote), rest, set))
                })],
            [IndexDomain::Numbers(count) | IndexDomain::Homes(count), rest @ ..] => {
                (0..i32::from(*count))
                    .flat_map(|index| self.set_every_element(place.clone().at(index), rest, set))
                    .collect()
            }
        }
    }

    /// Declares the storage of all messages that some row sends.
    fn channels(&mut self) -> Result<(), SystemError> {
        let mut sendings = Vec::new();
        for side in [&self.remote, &self.home] {
            for row in &side.controller.rules {
                let mut error = None;
                row.visit(&mut |statement| {
                    if let Statement::Send {
                        message,
                        to,
                        fields,
                    } = statement
                    {
                        let direction = match (side.home, to) {
                            (false, Target::Home | Target::HomeAt(_)) => Direction::ToHome,
                            (true, Target::HomeAt(_)) => Direction::BetweenHomes,
                            (false, _) => Direction::Between,
                            (true, Target::Home) => {
                                error = Some(format!(
                                    "the home sends {} to itself",
                                    self.protocol.message(*message).name
                                ));
                                return;
                            }
                            (true, _) => Direction::ToRemote,
                        };
                        sendings.push(Sending {
                            message: *message,
                            direction,
                            fields,
                        });
                    }
                });
                if let Some(error) = error {
                    return Err(SystemError::Meaningless(error));
                }
            }
        }
        for direction in [
            Direction::ToHome,
            Direction::ToRemote,
            Direction::Between,
            Direction::BetweenHomes,
        ] {
            let mut queued: Vec<(usize, Vec<usize>)> = Vec::new();
            for message in self.protocol.message_ids() {
                let sends: Vec<&Sending> = sendings
                    .iter()
                    .filter(|s| s.message == message && s.direction == direction)
                    .collect();
                if sends.is_empty() {
                    continue;
                }
                let kind = self.protocol.message(message);
                let constants: Vec<Option<u16>> = (0..kind.fields.len())
                    .map(|i| match sends[0].fields.get(i) {
                        // A constant that the field cannot hold is stored, for the search to find.
                        Some(same @ Value::Single(Expression::Constant(c), ty))
                            if sends.iter().all(|s| s.fields[i] == *same)
                                && i32::from(*c) <= largest(*ty, self.remotes) =>
                        {
                            Some(*c)
                        }
                        _ => None,
                    })
                    .collect();
                let bounds = &self.protocol.bounds;
                let message_bound = bounds.per_message.iter().find(|(m, _)| *m == message);
                let order = self.protocol.order_of(kind.channel);
                let total = bounds.in_flight.filter(|_| order.is_none());
                let limits = [
                    message_bound
                        .map(|(_, bound)| (bound.limit, format!("{} {}", bound.limit, kind.name))),
                    total.map(|bound| (bound.limit, counted(bound.limit, "message"))),
                ];
                let declared_limit = (limits.into_iter().flatten())
                    .min_by_key(|(limit, _)| *limit)
                    .filter(|(limit, _)| *limit <= self.options.capacity);
                let capacity = declared_limit
                    .as_ref()
                    .map_or(self.options.room(), |(limit, _)| *limit.max(&1));
                let bound = declared_limit
                    .map(|(_, description)| format!("more than {description} in flight"));
                let index = self.flows.len();
                let mut stored = Vec::new();
                for (field, constant) in kind.fields.iter().zip(&constants) {
                    if constant.is_none() {
                        let values = largest(field.ty, self.remotes);
                        let ty = self.build.range(&field.name, 0, values);
                        match field.ty {
                            ValueType::Remote => self.optional.push(ty),
                            // A number that encodes several remotes changes its value under their permutation.
                            ValueType::RemoteSet => self.interchangeable = false,
                            _ => {}
                        }
                        stored.push(ty);
                    }
                }
                let senders = self.facts.senders[message.index()];
                let followed = senders.post || senders.wait;
                let tickets = followed.then(|| {
                    let range = senders.tickets(self.stores.ranks);
                    let (low, high) = (i32::from(*range.start()), i32::from(*range.end()));
                    let ty = (low < high).then(|| self.build.range("ticket", low, high));
                    Tickets { low, high, ty }
                });
                stored.extend(tickets.and_then(|tickets| tickets.ty));
                let has_ordered_followers = self.protocol.has_ordered_followers(message);
                stored.extend(has_ordered_followers.then_some(TypeId::BOOL));
                let storage = match order {
                    Some(group) => {
                        let position = match queued.iter().position(|(g, _)| *g == group) {
                            Some(position) => position,
                            None => {
                                queued.push((group, Vec::new()));
                                queued.len() - 1
                            }
                        };
                        queued[position].1.push(index);
                        let label = queued[position].1.len() as u32;
                        Storage::Queued(self.queues.len() + position, label)
                    }
                    None => Storage::Counted(self.counter(message, direction, &stored, capacity)),
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
                    capacity: capacity.into(),
                    bound,
                });
            }
            for (group, flows) in queued {
                self.queue(direction, group, &flows);
            }
        }
        Ok(())
    }

    /// Declares the counter of an unordered flow.
    fn counter(
        &mut self,
        message: MessageId,
        direction: Direction,
        stored: &[TypeId],
        capacity: u16,
    ) -> VariableId {
        let kind = self.protocol.message(message);
        let name = match direction {
            Direction::ToHome => format!("{}_to_home", kind.name),
            Direction::ToRemote => format!("{}_to_{}", kind.name, self.remote.controller.name),
            Direction::Between => format!("{}_between", kind.name),
            Direction::BetweenHomes => format!("{}_between_homes", kind.name),
        };
        let mut ty = self.build.range("in_flight", 0, Number::from(capacity));
        if kind.carries.line() {
            ty = self.build.array(&name, TypeId::BOOL, ty);
        }
        for &values in stored.iter().rev() {
            ty = self.build.array(&name, values, ty);
        }
        let ends = usize::from(direction.is_from_remote()) + usize::from(direction.is_to_remote());
        for _ in 0..ends {
            ty = self.build.array(&name, self.remote_type, ty);
        }
        ty = self.build.array(&name, self.line_type, ty);
        self.build.state(name, ty)
    }

    /// Declares the queues of one ordered group in one direction.
    fn queue(&mut self, direction: Direction, group: usize, flows: &[usize]) {
        let names: Vec<&str> = self.protocol.orders[group]
            .iter()
            .map(|c| self.protocol.channels[c.index()].name.as_str())
            .collect();
        let name = names.join("_");
        let suffix = match direction {
            Direction::ToHome => "to_home",
            Direction::ToRemote => "to_remote",
            Direction::Between => "between",
            Direction::BetweenHomes => "between_homes",
        };
        let variable = format!("{name}_{suffix}");
        let mut labels = vec!["none".to_string()];
        // Per column of an entry: true if it holds remotes, which are stored apart from numbers, and its largest value.
        let mut columns: Vec<(bool, i32)> = Vec::new();
        let mut carries_line = false;
        let mut tickets = None;
        for &flow in flows {
            let flow = &mut self.flows[flow];
            if let Some(Tickets {
                high, ty: Some(_), ..
            }) = flow.tickets
            {
                tickets = tickets.max(Some(high));
            }
            let kind = self.protocol.message(flow.message);
            labels.push(kind.name.clone());
            carries_line |= kind.carries.line();
            let stored = kind.fields.iter().zip(&flow.constants);
            for (field, _) in stored.filter(|(_, c)| c.is_none()) {
                let remote = field.ty == ValueType::Remote;
                let values = largest(field.ty, self.remotes);
                let is_free = |i: &usize| columns[*i].0 == remote && !flow.columns.contains(i);
                let column = (0..columns.len()).find(is_free).unwrap_or(columns.len());
                match columns.get_mut(column) {
                    Some((_, largest)) => *largest = values.max(*largest),
                    None => columns.push((remote, values)),
                }
                flow.columns.push(column);
            }
        }
        let kinds = self.build.enumeration(&variable, labels);
        let per_line = self.protocol.per_line[group];
        let mut parts = vec![("kind".to_string(), kinds)];
        if !per_line {
            parts.push(("line".to_string(), self.line_type));
        }
        for (i, (remote, largest)) in columns.into_iter().enumerate() {
            let values = self.build.range("field", 0, largest);
            self.optional.extend(remote.then_some(values));
            parts.push((format!("field{i}"), values));
        }
        if carries_line {
            parts.push(("current".to_string(), TypeId::BOOL));
        }
        if let Some(high) = tickets {
            let ty = self.build.range("ticket", 0, high);
            parts.push(("ticket".to_string(), ty));
        }
        let entry = self.build.record("entry", parts);
        let lines = if per_line { 1 } else { self.lines };
        let capacity = i32::from(self.options.room()) * lines;
        let positions = self.build.range("position", 0, capacity - 1);
        let length = self.build.range("length", 0, capacity);
        let slots = self.build.array("slots", positions, entry);
        let mut ty = self
            .build
            .record("queue", [("length", length), ("slot", slots)]);
        let ends = usize::from(direction.is_from_remote()) + usize::from(direction.is_to_remote());
        for _ in 0..ends {
            ty = self.build.array("queues", self.remote_type, ty);
        }
        let homes = i32::from(self.protocol.homes);
        let senders =
            (direction == Direction::BetweenHomes).then(|| self.build.range("home", 0, homes - 1));
        if let Some(senders) = senders {
            ty = self.build.array("queues", senders, ty);
        }
        match (per_line, self.protocol.homes) {
            (true, _) => ty = self.build.array("queues", self.line_type, ty),
            (false, 1) => {}
            (false, homes) => {
                let home = self.build.range("home", 0, i32::from(homes) - 1);
                ty = self.build.array("queues", home, ty);
            }
        }
        let queue = Queue {
            direction,
            order: group,
            per_line,
            variable: self.build.state(variable, ty),
            kinds,
            positions,
            capacity,
            carries_line,
            tickets: tickets.is_some(),
            senders,
            name: names.join(", "),
        };
        self.queues.push(queue);
        self.declare_input_queue(group, direction);
    }

    /// The home, or the remotes.
    pub fn side(&self, home: bool) -> &Side<'p> {
        if home {
            &self.home
        } else {
            &self.remote
        }
    }

    /// A rule parameter. Parameters are never loop variables.
    pub fn parameter(&mut self, name: &str, ty: TypeId) -> VariableId {
        let key = (name.to_string(), ty);
        if let Some(&variable) = self.parameters.get(&key) {
            return variable;
        }
        let variable = self.build.bound(name, ty);
        self.parameters.insert(key, variable);
        variable
    }

    /// A temporary of rule bodies.
    pub fn local(&mut self, name: &str, ty: TypeId) -> VariableId {
        let key = (format!("local {name}"), ty);
        if let Some(&variable) = self.parameters.get(&key) {
            return variable;
        }
        let variable = self.build.local(name, ty);
        self.parameters.insert(key, variable);
        variable
    }

    /// Runs `body` with a loop or quantifier variable that is used nowhere around it.
    pub fn with_bound<T>(
        &mut self,
        ty: TypeId,
        body: impl FnOnce(&mut Self, VariableId) -> T,
    ) -> T {
        self.depth += 1;
        let key = (ty, self.depth);
        let variable = match self.bound.get(&key) {
            Some(&variable) => variable,
            None => {
                let name = format!("i{}_{}", self.depth, ty.index());
                let variable = self.build.bound(name, ty);
                self.bound.insert(key, variable);
                variable
            }
        };
        let result = body(self, variable);
        self.depth -= 1;
        result
    }

    /// The table that numbers the states of one kind of agent.
    pub fn positions(&mut self, home: bool) -> TableId {
        if let Some(table) = self.positions[usize::from(home)] {
            return table;
        }
        let side = self.side(home);
        let (states, count) = (side.states, side.controller.states.len() as i32);
        let result = self.build.range("position", 0, count - 1);
        let table = self.build.table("position", states, result, 0..count);
        self.positions[usize::from(home)] = Some(table);
        table
    }

    /// The table with the kind of remotes that each state belongs to.
    pub fn kinds(&mut self) -> TableId {
        if let Some(table) = self.kinds {
            return table;
        }
        let last = self.protocol.kinds.len() as i32 - 1;
        let result = self.build.range("kind", 0, last);
        let states = (0..self.remote.controller.states.len() as u16).map(StateId);
        let values = states.map(|state| i32::from(self.protocol.kind_of(state).0));
        let table = self.build.table("kind", self.remote.states, result, values);
        self.kinds = Some(table);
        table
    }

    /// The table of powers of two, one for each remote.
    pub fn powers(&mut self) -> TableId {
        if let Some(table) = self.powers {
            return table;
        }
        let result = self.build.range("power", 1, 1 << (self.remotes - 1));
        let values = (0..self.remotes).map(|i| 1 << i);
        let table = self.build.table("power", self.remote_type, result, values);
        self.powers = Some(table);
        table
    }

    /// All queues of a group for messages about a line.
    pub fn queues_of(&self, queue: usize, line: &Expr) -> Place {
        let queue = &self.queues[queue];
        match (queue.per_line, self.protocol.homes) {
            (true, _) => queue.variable.at(line),
            (false, 1) => queue.variable.into(),
            (false, _) => queue.variable.at(self.home_of(line)),
        }
    }

    /// The queue between two homes. `line` is the number of the receiving home, or one of its lines.
    pub fn queue_between(&self, queue: usize, line: &Expr, sender: &Expr) -> Place {
        self.queues_of(queue, line).at(sender)
    }

    /// The queue of a sender and a receiver for messages about a line.
    pub fn queue_at(
        &self,
        queue: usize,
        line: &Expr,
        from: Option<&Expr>,
        to: Option<&Expr>,
    ) -> Place {
        ends(self.queues_of(queue, line), from, to)
    }
}

/// Indexes a place by sender and receiver; the home needs no index.
pub(super) fn ends(place: Place, from: Option<&Expr>, to: Option<&Expr>) -> Place {
    [from, to]
        .into_iter()
        .flatten()
        .fold(place, |place, end| place.at(end))
}

fn variable_type(
    build: &mut Builder,
    variable: &Variable,
    remotes: i32,
    remote_type: TypeId,
) -> TypeId {
    match variable.ty {
        ValueType::RemoteSet => build.array(&variable.name, remote_type, TypeId::BOOL),
        ValueType::Array {
            first_domain,
            second_domain,
            ..
        } => {
            let largest = largest(variable.ty, remotes);
            let mut ty = build.range(&variable.name, 0, largest);
            for (dimension, domain) in [Some(first_domain), second_domain]
                .into_iter()
                .enumerate()
                .rev()
            {
                let index = match domain {
                    None => continue,
                    Some(IndexDomain::Remotes) => remote_type,
                    Some(IndexDomain::Homes(homes)) => {
                        build.range("home", 0, Number::from(homes) - 1)
                    }
                    Some(IndexDomain::Numbers(size)) => {
                        let second = ["", "2"][dimension];
                        let index = format!("{}_index{second}", variable.name);
                        build.range(&index, 0, Number::from(size) - 1)
                    }
                };
                ty = build.array(&variable.name, index, ty);
            }
            ty
        }
        simple => build.range(&variable.name, 0, largest(simple, remotes)),
    }
}

/// The largest code of a value. Values are numbers in the model: a remote is its index plus 1, `none` is 0, and true
/// is 1. In a message a set of remotes is the sum of the members' powers of two.
pub(super) fn largest(ty: ValueType, remotes: i32) -> i32 {
    match ty.single() {
        ValueType::Range { max } => max.into(),
        ValueType::Home { homes } => i32::from(homes) - 1,
        ValueType::Cycle { size } => i32::from(size) - 1,
        ValueType::Count | ValueType::Remote => remotes,
        ValueType::Bool => 1,
        ValueType::RemoteSet => (1 << remotes) - 1,
        // A single element of an array is no array.
        ValueType::Array { .. } => 0,
    }
}

/// A permission as a number.
pub(super) fn right_code(right: Right) -> i32 {
    match right {
        Right::None => 0,
        Right::Read => 1,
        Right::Write => 2,
    }
}
