//! Rows of the protocol ROM: the reaction of the hardware to each event in each state of a line.
//!
//! A row holds the effect on the event, the next state and the operations of a unit: at most one memory operation, one
//! grant, one forward and one acknowledgement to the device.
//! A controller fits if each of its rules is such a row. In addition, a unit must never need more resources for
//! operations in progress than it has. Both are verified here, by following the pending memory operation and local
//! operation of a line from the initial state. The hardware therefore relies on both without checks.

use crate::keywords::PACKAGE_NAMES;
use crate::sources::SOURCES;
use cohkit_diagnostics::Span;
use cohkit_protocol::construct::permissions::KnownPermissions;
use cohkit_protocol::controller::{
    Controller, Effect as Rule, Event, Expression, Statement, Target,
};
use cohkit_protocol::execute::Machine;
use cohkit_protocol::protocol::{Class, MessageId, Permission, Protocol, StateId};
use std::collections::VecDeque;

/// Maximum number of states of a ROM.
pub const MAX_STATES: usize = 256;
/// Maximum number of events of a ROM.
pub const MAX_EVENTS: usize = 64;
/// Maximum number of message types that the home sends.
pub const MAX_SENDS: usize = 16;
/// Maximum number of circuits in each direction.
pub const MAX_CIRCUITS: usize = 4;
/// Maximum number of local operations.
pub const MAX_LOCALS: usize = 8;

/// Reason for which a home cannot be implemented by the hardware.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The unsupported feature.
    pub feature: String,
    /// Its position in the protocol file.
    pub span: Span,
    /// Suggested remedy, if any.
    pub help: Option<String>,
}

/// Effect of a row on its event.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Effect {
    /// The event cannot occur.
    #[default]
    Never,
    /// The event stalls until the line's state has changed.
    Stall,
    /// The event is consumed and reported as refused.
    Refuse,
    /// The event is consumed.
    Take,
}

/// Memory operation that a row starts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Memory {
    /// None.
    #[default]
    None,
    /// Read the line.
    Read,
    /// Write the bytes that arrived with the event.
    Write,
}

/// A row of the ROM.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Row {
    /// Effect on the event.
    pub effect: Effect,
    /// Memory operation that the row starts.
    pub memory: Memory,
    /// True if the row acknowledges the pending local operation or the unlock being handled.
    pub acknowledge: bool,
    /// Grant or response that the row sends, as an index into [`Rom::sends`].
    pub grant: Option<u16>,
    /// Forward that the row sends, as an index into [`Rom::sends`].
    pub forward: Option<u16>,
    /// Upper bound of the remote's permission before and after the row.
    pub permission_bounds: PermissionBounds,
    /// Next state; the present one unless the event is consumed.
    pub next: u16,
}

/// Upper bound of the remote's permission for a line, as known to the home, including grants in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PermissionBounds {
    /// Bound before the row.
    pub old_permission: Permission,
    /// Bound after the row.
    pub new_permission: Permission,
}

impl Default for PermissionBounds {
    fn default() -> PermissionBounds {
        PermissionBounds {
            old_permission: Permission::None,
            new_permission: Permission::None,
        }
    }
}

/// A circuit between remote and home: a channel, or the channels that share one order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Circuit {
    /// Names of its channels, joined by `_`.
    pub name: String,
    /// True if some of its messages carry bytes.
    pub payload: bool,
    /// True if its messages may stall.
    pub waits: bool,
}

/// A message or operation with the hardware's numbering.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RomEvent {
    /// Name of the event.
    pub name: String,
    /// The controller's event.
    pub event: Event,
    /// Circuit on which it arrives; 0 if it is no message.
    pub circuit: usize,
    /// True if it carries bytes.
    pub payload: bool,
    /// True if it is a request.
    pub request: bool,
    /// Highest permission that the request may be granted; `Permission::None` for all other events.
    pub permission: Permission,
}

/// A message type that the home sends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SentMessage {
    /// Name of the message.
    pub name: String,
    /// Identifier of the message type.
    pub message: MessageId,
    /// Circuit on which it departs.
    pub circuit: usize,
    /// True if it carries the line.
    pub payload: bool,
}

/// A home in the form that the hardware executes.
#[derive(Clone, Debug)]
pub struct Rom {
    /// Names of the states. The first is the initial one, which all lines have that the directory does not hold.
    pub states: Vec<String>,
    /// Events: messages to the home in the order of the protocol file, then local operations, then `unlock`,
    /// `memory_data` and `memory_done`.
    pub events: Vec<RomEvent>,
    /// Number of events that are messages.
    pub messages: usize,
    /// Messages that the home sends, in the order of the protocol file.
    pub sends: Vec<SentMessage>,
    /// Circuits to the home.
    pub rx: Vec<Circuit>,
    /// Circuits to the remote.
    pub tx: Vec<Circuit>,
    /// For each local operation, true if it locks the line.
    pub locking: Vec<bool>,
    /// Local operation by which the directory evicts a line.
    pub evict: u8,
    /// Upper bound of the remote's permission in each state.
    pub permissions: Vec<Permission>,
    /// Rows by state, then by event.
    rows: Vec<Vec<Row>>,
    /// Rule of the controller that each row implements, as an index, by state and event.
    rules: Vec<Vec<Option<usize>>>,
}

impl Rom {
    /// Compiles a home for one remote from a controller of plain rows.
    ///
    /// # Errors
    /// The first feature that the hardware does not support.
    pub fn new(protocol: &Protocol, home: &Controller) -> Result<Rom, Refusal> {
        Compiler { protocol, home }.rom()
    }

    /// Adds the home's knowledge of permissions, so that the home can report changes to the device. `permissions` comes from
    /// the construction of the controller `home`.
    #[must_use]
    pub fn with_permissions(mut self, home: &Controller, permissions: &KnownPermissions) -> Rom {
        let mut configuration = Machine::new(home, 1).initial();
        for state in 0..self.states.len() {
            configuration.state = state as u16;
            self.permissions[state] = permissions.highest(home, 1, &configuration);
        }
        for (state, rows) in self.rows.iter_mut().enumerate() {
            for row in rows.iter_mut().filter(|row| row.effect == Effect::Take) {
                row.permission_bounds = PermissionBounds {
                    old_permission: self.permissions[state],
                    new_permission: self.permissions[usize::from(row.next)],
                };
            }
        }
        self
    }

    /// Returns the row for an event in a state; the default row if the controller has no rule for them.
    ///
    /// # Panics
    /// State or event is not a number of this ROM.
    pub fn row(&self, state: usize, event: usize) -> Row {
        self.rows[state][event]
    }

    /// Returns the controller's rule that a row implements, as an index into its `rules`; `None` if the event cannot
    /// occur.
    pub fn rule(&self, state: usize, event: usize) -> Option<usize> {
        self.rules[state][event]
    }

    /// Returns state and event of every row with a rule, in order.
    pub fn used(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let rows = self.rules.iter().enumerate();
        rows.flat_map(|(state, rules)| {
            let used = rules.iter().enumerate().filter(|(_, rule)| rule.is_some());
            used.map(move |(event, _)| (state, event))
        })
    }

    /// Returns the number of the event with this name.
    pub fn event(&self, name: &str) -> Option<usize> {
        self.events.iter().position(|event| event.name == name)
    }

    /// Returns the number of the event that requests local operation `local`, an index into [`Rom::locking`].
    pub fn local(&self, local: u8) -> usize {
        self.messages + usize::from(local)
    }

    /// Returns the number of the event `unlock`, by which the device releases a lock.
    pub fn unlock(&self) -> usize {
        self.messages + self.locking.len()
    }

    /// Returns the number of the event `memory_data`; `memory_done` follows it.
    pub fn memory_data(&self) -> usize {
        self.unlock() + 1
    }

    /// Returns the width of a state, in bits.
    pub fn state_bits(&self) -> u32 {
        bits(self.states.len())
    }

    /// Returns the width of an event, in bits.
    pub fn event_bits(&self) -> u32 {
        bits(self.events.len())
    }

    /// Returns the width of a message number to the remote, in bits.
    pub fn send_bits(&self) -> u32 {
        bits(self.sends.len())
    }

    /// Returns the width of a row, in bits.
    pub fn row_bits(&self) -> u32 {
        11 + 2 * self.send_bits() + self.state_bits()
    }

    /// Returns the address of a row in the image.
    pub fn address(&self, state: usize, event: usize) -> usize {
        state << self.event_bits() | event
    }

    /// Encodes a row as in the image, with the fields in the order of `row_t` in the printed package.
    pub fn word(&self, row: Row) -> u64 {
        let effect = match row.effect {
            Effect::Never => 0,
            Effect::Stall => 1,
            Effect::Refuse => 2,
            Effect::Take => 3,
        };
        let memory = match row.memory {
            Memory::None => 0,
            Memory::Read => 1,
            Memory::Write => 2,
        };
        let mut word = effect << 2 | memory;
        word = word << 1 | u64::from(row.acknowledge);
        for send in [row.grant, row.forward] {
            word = word << 1 | u64::from(send.is_some());
            word = word << self.send_bits() | u64::from(send.unwrap_or(0));
        }
        for permission in [
            row.permission_bounds.old_permission,
            row.permission_bounds.new_permission,
        ] {
            word = word << 2 | permission as u64;
        }
        word << self.state_bits() | u64::from(row.next)
    }
}

/// Returns the number of bits that encode `values` different values, at least one.
fn bits(values: usize) -> u32 {
    values.saturating_sub(1).max(1).ilog2() + 1
}

/// Operations of a line that are pending in a state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct PendingOperations {
    /// Local operation that has been accepted and not acknowledged.
    local: Option<u8>,
    /// Memory operation that has started and not completed.
    memory: Memory,
}

/// Compiler of one home: protocol and controller.
struct Compiler<'a> {
    /// Protocol of the home, for messages, channels and the remote.
    protocol: &'a Protocol,
    /// Controller of the home, with one rule per state and event.
    home: &'a Controller,
}

impl Compiler<'_> {
    /// Refuses the home because of a feature at this position in the protocol file.
    fn refuse<T>(&self, span: Span, feature: String) -> Result<T, Refusal> {
        let help = None;
        Err(Refusal {
            feature,
            span,
            help,
        })
    }

    /// Refuses protocols with features that the hardware lacks.
    fn check_features(&self) -> Result<(), Refusal> {
        if let [_, second, ..] = &self.protocol.kinds[..] {
            let feature = format!("`{}` is a second kind of remotes", second.name);
            return self.refuse(second.span, feature);
        }
        if let Some(feature) = self.protocol.joins_lines() {
            let feature = format!("`{}` has {feature}", self.protocol.name);
            return self.refuse(self.protocol.remote.span, feature);
        }
        if !self.protocol.guarantee.coherent {
            let feature = format!(
                "`{}` has `guarantee none`, but hardware is checked against the last write",
                self.protocol.name
            );
            return self.refuse(self.protocol.remote.span, feature);
        }
        if let Some(order_rule) = self.protocol.point_orders.first() {
            let message = self.protocol.message(order_rule.message);
            let feature = format!("`{}` stays behind other messages", message.name);
            return self.refuse(message.span, feature);
        }
        if let Some(variable) = self.home.variables.first() {
            let feature = format!(
                "the hardware does not support the home's variable `{}`",
                variable.name
            );
            return self.refuse(variable.span, feature);
        }
        self.check_requests_start_accesses()
    }

    /// Returns the messages to the home and those to the remote. `rx_of` and `tx_of` are the circuits of channels.
    fn messages(
        &self,
        rx_of: &[usize],
        tx_of: &[usize],
    ) -> Result<(Vec<RomEvent>, Vec<SentMessage>), Refusal> {
        let is_to_home = |message| self.protocol.class(message).is_some_and(is_to_home);
        let (mut events, mut sends) = (Vec::new(), Vec::new());
        for message in self.protocol.message_ids() {
            let message_type = self.protocol.message(message);
            let channel = message_type.channel.index();
            let payload = message_type.carries.line() || message_type.carries.store();
            if let Some(field) = message_type.fields.first() {
                let feature = format!("the header has no room for the field `{}`", field.name);
                return self.refuse(field.span, feature);
            }
            if is_to_home(message) {
                events.push(RomEvent {
                    name: message_type.name.clone(),
                    event: Event::Message(message),
                    circuit: rx_of[channel],
                    payload,
                    request: self.protocol.class(message) == Some(Class::Request),
                    permission: self.max_granted(message),
                });
            } else {
                sends.push(SentMessage {
                    name: message_type.name.clone(),
                    message,
                    circuit: tx_of[channel],
                    payload,
                });
            }
        }
        Ok((events, sends))
    }

    /// Returns the events that are no messages.
    fn internal_events(&self) -> Vec<RomEvent> {
        let locals = self.home.locals.iter().zip(0..);
        let locals = locals.map(|(local, index)| (local.name.as_str(), Event::Local(index)));
        let others = [
            ("unlock", Event::Unlock),
            ("memory_data", Event::MemoryData(0)),
            ("memory_done", Event::MemoryDone),
        ];
        let events = locals.chain(others).map(|(name, event)| RomEvent {
            name: name.into(),
            event,
            circuit: 0,
            payload: false,
            request: false,
            permission: Permission::None,
        });
        events.collect()
    }

    /// Refuses a home that exceeds the limits of the hardware.
    fn check_limits(&self, rom: &Rom) -> Result<(), Refusal> {
        for (resource, count, limit) in [
            ("states", rom.states.len(), MAX_STATES),
            ("events", rom.events.len(), MAX_EVENTS),
            ("messages to the remote", rom.sends.len(), MAX_SENDS),
            ("circuits to the home", rom.rx.len(), MAX_CIRCUITS),
            ("circuits to the remote", rom.tx.len(), MAX_CIRCUITS),
            ("local operations", rom.locking.len(), MAX_LOCALS),
        ] {
            if count > limit {
                let feature =
                    format!("the home has {count} {resource}; the hardware supports {limit}");
                return self.refuse(self.home.span, feature);
            }
        }
        if rom.tx.iter().filter(|circuit| circuit.payload).count() > 1 {
            let feature =
                "two circuits to the remote carry lines; the hardware reads them from one place"
                    .into();
            return self.refuse(self.home.span, feature);
        }
        Ok(())
    }

    /// Compiles the home and verifies all restrictions.
    fn rom(&self) -> Result<Rom, Refusal> {
        self.check_features()?;
        let home = self.home;
        let evict = self.evict()?;
        let (rx, rx_of) = self.circuits(true)?;
        let (tx, tx_of) = self.circuits(false)?;
        let (mut events, sends) = self.messages(&rx_of, &tx_of)?;
        let messages = events.len();
        events.extend(self.internal_events());
        let states: Vec<String> = home.states.iter().map(|state| state.name.clone()).collect();
        let mut rom = Rom {
            rows: vec![vec![Row::default(); events.len()]; states.len()],
            rules: vec![vec![None; events.len()]; states.len()],
            permissions: vec![Permission::None; states.len()],
            locking: home.locals.iter().map(|local| local.locks).collect(),
            states,
            events,
            messages,
            sends,
            rx,
            tx,
            evict,
        };
        self.check_limits(&rom)?;
        self.check_names(&rom)?;
        self.compile_rows(&mut rom)?;
        self.check_pending_operations(&rom)?;
        Ok(rom)
    }

    /// Returns the local operation by which the directory evicts a line.
    fn evict(&self) -> Result<u8, Refusal> {
        let fits = |local: &cohkit_protocol::controller::Local| {
            local.ensures == Permission::None && !local.locks
        };
        match self.home.locals.iter().position(fits) {
            Some(index) => Ok(index as u8),
            None => Err(Refusal {
                feature: "the directory cannot evict: no local operation takes a line from every remote without a lock"
                    .into(),
                span: self.home.span,
                help: Some("give the home `local clean_invalidate { ensure all == I }`".into()),
            }),
        }
    }

    /// Checks that only accesses start requests. The number of outstanding requests is then bounded by that of
    /// accesses, for which the hardware's queues have room.
    fn check_requests_start_accesses(&self) -> Result<(), Refusal> {
        for rule in &self.protocol.remote.rules {
            let (Event::Message(_), Rule::Take { body, .. }) = (rule.event, &rule.effect) else {
                continue;
            };
            let request = body.iter().find_map(|statement| match statement {
                Statement::Send { message, .. } => {
                    (self.protocol.class(*message) == Some(Class::Request)).then_some(*message)
                }
                _ => None,
            });
            if let Some(request) = request {
                let feature = format!(
                    "the remote sends the request `{}` when a message comes; the hardware supports requests only if they begin an access",
                    self.protocol.message(request).name
                );
                return self.refuse(rule.span, feature);
            }
        }
        Ok(())
    }

    /// Returns the circuits of one direction, and for each channel the index of its circuit.
    fn circuits(&self, toward_home: bool) -> Result<(Vec<Circuit>, Vec<usize>), Refusal> {
        let mut circuits: Vec<Circuit> = Vec::new();
        let mut groups: Vec<Option<usize>> = Vec::new();
        let mut circuit_of = vec![0; self.protocol.channels.len()];
        for (index, channel) in self.protocol.channels.iter().enumerate() {
            let Some(class) = channel.class else {
                let feature = format!(
                    "the channel `{}` has no class, so the hardware cannot tell whether its messages may stall",
                    channel.name
                );
                return self.refuse(channel.span, feature);
            };
            if is_to_home(class) != toward_home {
                continue;
            }
            let id = cohkit_protocol::protocol::ChannelId(index as u16);
            let group = self.protocol.order_of(id);
            let channel_messages = self
                .protocol
                .messages
                .iter()
                .filter(|message| message.channel == id);
            let payload = channel_messages
                .clone()
                .any(|message| message.carries.line() || message.carries.store());
            let waits = class == Class::Request;
            match groups
                .iter()
                .position(|&other| group.is_some() && other == group)
            {
                Some(position) => {
                    if circuits[position].waits != waits {
                        let feature = format!(
                            "`{}` is ordered with requests, which may stall; the hardware stalls only requests",
                            channel.name
                        );
                        return self.refuse(channel.span, feature);
                    }
                    circuits[position].name += &format!("_{}", channel.name);
                    circuits[position].payload |= payload;
                    circuit_of[index] = position;
                }
                None => {
                    circuit_of[index] = circuits.len();
                    groups.push(group);
                    circuits.push(Circuit {
                        name: channel.name.clone(),
                        payload,
                        waits,
                    });
                }
            }
        }
        Ok((circuits, circuit_of))
    }

    /// Returns the highest permission that a request may be granted.
    fn max_granted(&self, request: MessageId) -> Permission {
        let cohkit_protocol::protocol::Home::Policy(policy) = &self.protocol.home else {
            return Permission::None;
        };
        let grants = policy
            .requests
            .iter()
            .filter(|policy| policy.message == request);
        grants
            .flat_map(|request| &request.grants)
            .map(|grant| grant.permission)
            .max()
            .unwrap_or(Permission::None)
    }

    /// Checks that the names of states, events and messages are distinct in their package, and that the package's own
    /// name is free.
    fn check_names(&self, rom: &Rom) -> Result<(), Refusal> {
        let package = format!("{}_pkg", self.protocol.name);
        let is_package_file = |file: &str| file.strip_suffix(".sv") == Some(&package);
        if SOURCES.iter().any(|(file, _)| is_package_file(file)) {
            return Err(Refusal {
                feature: format!(
                    "the package of the protocol `{}` would be named `{package}`, the name of a package of the hardware",
                    self.protocol.name
                ),
                span: self.home.span,
                help: Some("give the protocol another name".into()),
            });
        }
        let states = self.home.states.iter();
        let messages = self.protocol.messages.iter();
        let spans = states
            .map(|state| (&state.name, state.span))
            .chain(messages.map(|message| (&message.name, message.span)))
            .chain(rom.events.iter().map(|event| (&event.name, self.home.span)));
        for (name, span) in spans {
            if PACKAGE_NAMES.contains(&name.as_str()) || *name == package {
                return Err(Refusal {
                    feature: format!("the generated package uses the name `{name}` itself"),
                    span,
                    help: Some("rename it in the specification".into()),
                });
            }
        }
        let names: Vec<&String> = rom
            .states
            .iter()
            .chain(rom.events.iter().map(|event| &event.name))
            .chain(rom.sends.iter().map(|sent| &sent.name))
            .collect();
        for (index, name) in names.iter().enumerate() {
            if names[..index].contains(name) {
                let feature = format!("two of the home's states, messages and operations are called `{name}`; the generated package needs distinct names");
                return self.refuse(self.home.span, feature);
            }
        }
        Ok(())
    }

    /// Compiles each rule to a row.
    fn compile_rows(&self, rom: &mut Rom) -> Result<(), Refusal> {
        for (index, rule) in self.home.rules.iter().enumerate() {
            let state = rule.state.index();
            if rule.guard.is_some() {
                return self.refuse(
                    rule.span,
                    "the hardware decides by the state only; this row has a guard".into(),
                );
            }
            // If the home may choose among several grants, the hardware uses the first rule.
            let Some(event) = rom
                .events
                .iter()
                .position(|occurrence| occurrence.event == rule.event)
            else {
                continue;
            };
            let occurrence = &rom.events[event];
            let can_stall = occurrence.request || matches!(occurrence.event, Event::Local(_));
            let unchanged = Row {
                next: state as u16,
                ..Row::default()
            };
            let row = match &rule.effect {
                Rule::Never => continue,
                Rule::Stall if can_stall => Row {
                    effect: Effect::Stall,
                    ..unchanged
                },
                Rule::Stall => {
                    let feature = format!(
                        "`{}` may stall; the hardware stalls only requests and local operations",
                        occurrence.name
                    );
                    return self.refuse(rule.span, feature);
                }
                Rule::Refuse => Row {
                    effect: Effect::Refuse,
                    ..unchanged
                },
                Rule::Take { body, next } => {
                    let mut row = Row {
                        effect: Effect::Take,
                        ..unchanged
                    };
                    row.next = next.unwrap_or(StateId(state as u16)).0;
                    for statement in body {
                        self.add_statement(rom, occurrence, &mut row, statement)
                            .or_else(|feature| {
                                self.refuse(
                                    rule.span,
                                    format!(
                                        "on `{}` in `{}`, {feature}",
                                        occurrence.name, rom.states[state]
                                    ),
                                )
                            })?;
                    }
                    row
                }
            };
            if rom.rules[state][event].is_none() {
                rom.rows[state][event] = row;
                rom.rules[state][event] = Some(index);
            }
        }
        Ok(())
    }

    /// Adds one statement of a rule to the row. The error names the unsupported feature.
    fn add_statement(
        &self,
        rom: &Rom,
        occurrence: &RomEvent,
        row: &mut Row,
        statement: &Statement,
    ) -> Result<(), String> {
        let mut memory = |operation| match row.memory {
            Memory::None => {
                row.memory = operation;
                Ok(())
            }
            _ => Err("two memory operations start at once".to_string()),
        };
        match statement {
            Statement::Send {
                message,
                to: Target::Remote(Expression::Constant(1)),
                ..
            } => {
                let number = rom.sends.iter().position(|sent| sent.message == *message);
                let number = number.ok_or("the home sends itself a message")?;
                let forward = self.protocol.class(*message) == Some(Class::Forward);
                let slot = if forward {
                    &mut row.forward
                } else {
                    &mut row.grant
                };
                if slot.is_some() {
                    let kind = if forward { "forwards" } else { "grants" };
                    return Err(format!(
                        "two {kind} are sent at once; the hardware supports one"
                    ));
                }
                if rom.sends[number].payload && occurrence.event != Event::MemoryData(0) {
                    return Err(format!(
                        "`{}` carries the line, but memory has not been read for it",
                        rom.sends[number].name
                    ));
                }
                *slot = Some(number as u16);
                Ok(())
            }
            Statement::StartRead => memory(Memory::Read),
            Statement::StartWrite | Statement::StartStore { .. } if occurrence.payload => {
                memory(Memory::Write)
            }
            Statement::StartWrite | Statement::StartStore { .. } => {
                Err("the row writes data that the current message does not carry".into())
            }
            Statement::Acknowledge(_) | Statement::AcknowledgeUnlock => {
                row.acknowledge = true;
                Ok(())
            }
            Statement::WriteMemory | Statement::DeferStore | Statement::CommitDeferred => Err(
                "the row assumes zero-latency memory writes; the hardware's memory has latency"
                    .into(),
            ),
            _ => Err("the row has an action that the hardware does not implement".into()),
        }
    }

    /// Follows the pending operations of a line from the initial state, and verifies what the hardware relies on.
    fn check_pending_operations(&self, rom: &Rom) -> Result<(), Refusal> {
        let mut pending: Vec<Option<PendingOperations>> = vec![None; rom.states.len()];
        pending[0] = Some(PendingOperations::default());
        let mut queue = VecDeque::from([0]);
        while let Some(state) = queue.pop_front() {
            let pending_before = pending[state].expect("it was reached");
            for (event, occurrence) in rom.events.iter().enumerate() {
                let Some(rule) = rom.rules[state][event] else {
                    continue;
                };
                let row = rom.rows[state][event];
                let span = self.home.rules[rule].span;
                let location = || format!("on `{}` in `{}`", occurrence.name, rom.states[state]);
                if row.effect != Effect::Take {
                    continue;
                }
                let pending_after = self
                    .operations_after(pending_before, occurrence, rule, row)
                    .or_else(|limit| self.refuse(span, format!("{}, {limit}", location())))?;
                let next = usize::from(row.next);
                if next == 0 && pending_after != PendingOperations::default() {
                    return self.refuse(
                        span,
                        format!(
                            "{}, the directory drops a line with an outstanding transaction",
                            location()
                        ),
                    );
                }
                if state == 0
                    && next != 0
                    && !(occurrence.request || matches!(occurrence.event, Event::Local(_)))
                {
                    return self.refuse(
                        span,
                        format!(
                            "{}, the directory needs an entry at once, for an input that cannot stall",
                            location()
                        ),
                    );
                }
                match pending[next] {
                    None => {
                        pending[next] = Some(pending_after);
                        queue.push_back(next);
                    }
                    Some(expected) if expected == pending_after => {}
                    Some(_) => {
                        return self.refuse(
                            span,
                            format!(
                                "{}, the next state does not determine the outstanding operation",
                                location()
                            ),
                        );
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the pending operations after a row. The error names the property that the hardware relies on and the
    /// row violates.
    fn operations_after(
        &self,
        pending_before: PendingOperations,
        occurrence: &RomEvent,
        rule: usize,
        row: Row,
    ) -> Result<PendingOperations, String> {
        let mut pending_after = pending_before;
        match occurrence.event {
            Event::Local(local) => {
                if pending_before.local.is_some() {
                    return Err("a second local operation is accepted".into());
                }
                pending_after.local = Some(local);
            }
            Event::MemoryData(_) if pending_before.memory != Memory::Read => {
                return Err("memory was not read".into())
            }
            Event::MemoryDone if pending_before.memory != Memory::Write => {
                return Err("memory was not written".into())
            }
            Event::MemoryData(_) | Event::MemoryDone => pending_after.memory = Memory::None,
            _ => {}
        }
        let memory_event = matches!(occurrence.event, Event::MemoryData(_) | Event::MemoryDone);
        if row.memory != Memory::None {
            if pending_after.memory != Memory::None || memory_event {
                return Err(
                    "a second memory operation starts; the hardware supports one per line".into(),
                );
            }
            pending_after.memory = row.memory;
        }
        if row.memory == Memory::Read
            && matches!(occurrence.event, Event::Message(_))
            && !occurrence.request
        {
            return Err(
                "memory is read for a response; requests could occupy all read slots".into(),
            );
        }
        if row.grant.is_some() && !memory_event && !occurrence.request {
            return Err("a grant is sent without a current request".into());
        }
        if row.forward.is_some() && pending_after.local.is_none() {
            return Err(
                "a forward is sent without a local operation; the hardware supports one remote"
                    .into(),
            );
        }
        if row.acknowledge && occurrence.event != Event::Unlock {
            let Rule::Take { body, .. } = &self.home.rules[rule].effect else {
                return Ok(pending_after);
            };
            let acknowledged = body.iter().find_map(|statement| match statement {
                Statement::Acknowledge(local) => Some(*local),
                _ => None,
            });
            if acknowledged.is_none() || acknowledged != pending_after.local {
                return Err("the acknowledged operation is not the outstanding one".into());
            }
            pending_after.local = None;
        }
        Ok(pending_after)
    }
}

/// True if messages of this class go to the home.
fn is_to_home(class: Class) -> bool {
    match class {
        Class::Request | Class::Victim | Class::Answer | Class::Acknowledgement => true,
        Class::Forward | Class::Grant => false,
    }
}
