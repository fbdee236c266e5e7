//! Compiles a home's controller to rows, and rejects homes that the hardware does not support.

use super::pending_operations::check_pending_operations;
use super::{
    refuse, Circuit, Effect, Memory, Refusal, Rom, RomEvent, Row, SentMessage, MAX_CIRCUITS,
    MAX_EVENTS, MAX_LOCALS, MAX_SENDS, MAX_STATES,
};
use crate::keywords::PACKAGE_NAMES;
use crate::sources::SOURCES;
use cohkit_protocol::controller::{
    Controller, Effect as RuleEffect, Event, Expression, Local, Rule, Statement, Target,
};
use cohkit_protocol::protocol::{
    ChannelId, Class, Home, Message, MessageId, Permission, Protocol, StateId,
};

/// Compiles a home for one remote, and checks all restrictions of the hardware.
///
/// # Errors
/// The first feature that the hardware does not support.
pub(super) fn compile(protocol: &Protocol, home: &Controller) -> Result<Rom, Refusal> {
    check_features(protocol, home)?;
    let evict = evicting_operation(home)?;
    let rx = DirectionCircuits::new(protocol, true)?;
    let tx = DirectionCircuits::new(protocol, false)?;
    let (mut events, sends) = messages(protocol, &rx, &tx)?;
    let messages = events.len();
    events.extend(internal_events(home));
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
        rx: rx.circuits,
        tx: tx.circuits,
        evict,
    };
    check_limits(home, &rom)?;
    check_names(protocol, home, &rom)?;
    compile_rules(protocol, home, &mut rom)?;
    check_pending_operations(home, &rom)?;
    Ok(rom)
}

/// Refuses protocols with features that the hardware lacks.
fn check_features(protocol: &Protocol, home: &Controller) -> Result<(), Refusal> {
    if let [_, second, ..] = &protocol.kinds[..] {
        let feature = format!("`{}` is a second kind of remotes", second.name);
        return refuse(second.span, feature);
    }
    if let Some(feature) = protocol.joins_lines() {
        let feature = format!("`{}` has {feature}", protocol.name);
        return refuse(protocol.remote.span, feature);
    }
    if !protocol.guarantee.coherent {
        let feature = format!(
            "`{}` has `guarantee none`, but hardware is checked against the last write",
            protocol.name
        );
        return refuse(protocol.remote.span, feature);
    }
    if let Some(order_rule) = protocol.point_orders.first() {
        let message = protocol.message(order_rule.message);
        let feature = format!("`{}` stays behind other messages", message.name);
        return refuse(message.span, feature);
    }
    if let Some(variable) = home.variables.first() {
        let feature = format!(
            "the hardware does not support the home's variable `{}`",
            variable.name
        );
        return refuse(variable.span, feature);
    }
    check_requests_start_accesses(protocol)
}

/// Checks that only accesses start requests. The number of outstanding requests is then bounded by that of accesses,
/// for which the hardware's queues have entries.
fn check_requests_start_accesses(protocol: &Protocol) -> Result<(), Refusal> {
    for rule in &protocol.remote.rules {
        let (Event::Message(_), RuleEffect::Take { body, .. }) = (rule.event, &rule.effect) else {
            continue;
        };
        let request = body.iter().find_map(|statement| match statement {
            Statement::Send { message, .. } => {
                (protocol.class(*message) == Some(Class::Request)).then_some(*message)
            }
            _ => None,
        });
        if let Some(request) = request {
            let feature = format!(
                "the remote sends the request `{}` when a message comes; \
                 the hardware supports requests only if they begin an access",
                protocol.message(request).name
            );
            return refuse(rule.span, feature);
        }
    }
    Ok(())
}

/// Returns the local operation by which the directory evicts a line.
///
/// # Errors
/// The home has no operation that takes a line from every remote without a lock.
pub(crate) fn evicting_operation(home: &Controller) -> Result<u8, Refusal> {
    let can_evict = |local: &Local| local.ensures == Permission::None && !local.locks;
    match home.locals.iter().position(can_evict) {
        Some(index) => Ok(index as u8),
        None => Err(Refusal {
            feature: "the directory cannot evict: no local operation takes a line from every remote without a lock"
                .into(),
            span: home.span,
            help: Some("give the home `local clean_invalidate { ensure all == I }`".into()),
        }),
    }
}

/// Circuits of one direction.
struct DirectionCircuits {
    /// The circuits, in the order of the first channel of each.
    circuits: Vec<Circuit>,
    /// Circuit of each channel, as an index into `circuits`; 0 for channels of the other direction.
    circuit_of_channel: Vec<usize>,
}

impl DirectionCircuits {
    /// Joins the channels of one direction that share an order to circuits.
    fn new(protocol: &Protocol, toward_home: bool) -> Result<DirectionCircuits, Refusal> {
        let mut circuits: Vec<Circuit> = Vec::new();
        // Ordered group of each circuit; `None` for an unordered channel.
        let mut groups: Vec<Option<usize>> = Vec::new();
        let mut circuit_of_channel = vec![0; protocol.channels.len()];
        for (index, channel) in protocol.channels.iter().enumerate() {
            let Some(class) = channel.class else {
                let feature = format!(
                    "the channel `{}` has no class, so the hardware cannot tell whether its messages may stall",
                    channel.name
                );
                return refuse(channel.span, feature);
            };
            if is_to_home(class) != toward_home {
                continue;
            }
            let id = ChannelId(index as u16);
            let group = protocol.order_of(id);
            let payload = protocol
                .messages
                .iter()
                .filter(|message| message.channel == id)
                .any(has_payload);
            let can_stall = class == Class::Request;
            let same_order = groups
                .iter()
                .position(|&other| group.is_some() && other == group);
            let Some(circuit) = same_order else {
                circuit_of_channel[index] = circuits.len();
                groups.push(group);
                circuits.push(Circuit {
                    name: channel.name.clone(),
                    payload,
                    can_stall,
                });
                continue;
            };
            if circuits[circuit].can_stall != can_stall {
                let feature = format!(
                    "`{}` is ordered with requests, which may stall; the hardware stalls only requests",
                    channel.name
                );
                return refuse(channel.span, feature);
            }
            circuits[circuit].name += &format!("_{}", channel.name);
            circuits[circuit].payload |= payload;
            circuit_of_channel[index] = circuit;
        }
        Ok(DirectionCircuits {
            circuits,
            circuit_of_channel,
        })
    }
}

/// True if messages of this class go to the home.
fn is_to_home(class: Class) -> bool {
    match class {
        Class::Request | Class::Victim | Class::Answer | Class::Acknowledgement => true,
        Class::Forward | Class::Grant => false,
    }
}

/// True if a message carries data: the line, or the bytes of a store.
fn has_payload(message: &Message) -> bool {
    message.carries.line() || message.carries.store()
}

/// Returns the messages to the home and those to the remote, each with its circuit.
fn messages(
    protocol: &Protocol,
    rx: &DirectionCircuits,
    tx: &DirectionCircuits,
) -> Result<(Vec<RomEvent>, Vec<SentMessage>), Refusal> {
    let (mut events, mut sends) = (Vec::new(), Vec::new());
    for message in protocol.message_ids() {
        let message_type = protocol.message(message);
        let channel = message_type.channel.index();
        if let Some(field) = message_type.fields.first() {
            let feature = format!("the header has no room for the field `{}`", field.name);
            return refuse(field.span, feature);
        }
        if protocol.class(message).is_some_and(is_to_home) {
            events.push(RomEvent {
                name: message_type.name.clone(),
                event: Event::Message(message),
                circuit: rx.circuit_of_channel[channel],
                payload: has_payload(message_type),
                request: protocol.class(message) == Some(Class::Request),
                permission: max_granted(protocol, message),
            });
        } else {
            sends.push(SentMessage {
                name: message_type.name.clone(),
                message,
                circuit: tx.circuit_of_channel[channel],
                payload: has_payload(message_type),
            });
        }
    }
    Ok((events, sends))
}

/// Returns the highest permission that a request may be granted.
fn max_granted(protocol: &Protocol, request: MessageId) -> Permission {
    let Home::Policy(policy) = &protocol.home else {
        return Permission::None;
    };
    let request_policies = policy
        .requests
        .iter()
        .filter(|policy| policy.message == request);
    request_policies
        .flat_map(|policy| &policy.grants)
        .map(|grant| grant.permission)
        .max()
        .unwrap_or(Permission::None)
}

/// Returns the events that are no messages: local operations, `unlock`, `memory_data` and `memory_done`.
fn internal_events(home: &Controller) -> Vec<RomEvent> {
    let locals = home.locals.iter().zip(0..);
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
fn check_limits(home: &Controller, rom: &Rom) -> Result<(), Refusal> {
    for (resource, count, limit) in [
        ("states", rom.states.len(), MAX_STATES),
        ("events", rom.events.len(), MAX_EVENTS),
        ("messages to the remote", rom.sends.len(), MAX_SENDS),
        ("circuits to the home", rom.rx.len(), MAX_CIRCUITS),
        ("circuits to the remote", rom.tx.len(), MAX_CIRCUITS),
        ("local operations", rom.locking.len(), MAX_LOCALS),
    ] {
        if count > limit {
            let feature = format!("the home has {count} {resource}; the hardware supports {limit}");
            return refuse(home.span, feature);
        }
    }
    if rom.tx.iter().filter(|circuit| circuit.payload).count() > 1 {
        let feature =
            "two circuits to the remote carry lines; the hardware reads them from one place";
        return refuse(home.span, feature);
    }
    Ok(())
}

/// Checks that the names of states, events and messages are distinct in their package, and that the package's own name
/// is free.
fn check_names(protocol: &Protocol, home: &Controller, rom: &Rom) -> Result<(), Refusal> {
    let package = format!("{}_pkg", protocol.name);
    let is_package_file = |file: &str| file.strip_suffix(".sv") == Some(&package);
    if SOURCES.iter().any(|(file, _)| is_package_file(file)) {
        return Err(Refusal {
            feature: format!(
                "the package of the protocol `{}` would be named `{package}`, the name of a package of the hardware",
                protocol.name
            ),
            span: home.span,
            help: Some("give the protocol another name".into()),
        });
    }
    let states = home.states.iter();
    let messages = protocol.messages.iter();
    let spans = states
        .map(|state| (&state.name, state.span))
        .chain(messages.map(|message| (&message.name, message.span)))
        .chain(rom.events.iter().map(|event| (&event.name, home.span)));
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
            let feature = format!(
                "two of the home's states, messages and operations are called `{name}`; \
                 the generated package needs distinct names"
            );
            return refuse(home.span, feature);
        }
    }
    Ok(())
}

/// Compiles each rule to a row. If the home may choose among several grants, the hardware uses the first rule.
fn compile_rules(protocol: &Protocol, home: &Controller, rom: &mut Rom) -> Result<(), Refusal> {
    for (index, rule) in home.rules.iter().enumerate() {
        if rule.guard.is_some() {
            return refuse(
                rule.span,
                "the hardware decides by the state only; this row has a guard",
            );
        }
        let event = rom
            .events
            .iter()
            .position(|rom_event| rom_event.event == rule.event);
        let Some(event) = event else {
            continue;
        };
        let Some(row) = compile_rule(protocol, rom, &rom.events[event], rule)? else {
            continue;
        };
        let state = rule.state.index();
        if rom.rules[state][event].is_none() {
            rom.rows[state][event] = row;
            rom.rules[state][event] = Some(index);
        }
    }
    Ok(())
}

/// Returns the row of a rule for an event; `None` if the rule states that the event cannot occur.
fn compile_rule(
    protocol: &Protocol,
    rom: &Rom,
    event: &RomEvent,
    rule: &Rule,
) -> Result<Option<Row>, Refusal> {
    let state = rule.state.index();
    let can_stall = event.request || matches!(event.event, Event::Local(_));
    let unchanged = Row {
        next: state as u16,
        ..Row::default()
    };
    let row = match &rule.effect {
        RuleEffect::Never => return Ok(None),
        RuleEffect::Stall if can_stall => Row {
            effect: Effect::Stall,
            ..unchanged
        },
        RuleEffect::Stall => {
            let feature = format!(
                "`{}` may stall; the hardware stalls only requests and local operations",
                event.name
            );
            return refuse(rule.span, feature);
        }
        RuleEffect::Refuse => Row {
            effect: Effect::Refuse,
            ..unchanged
        },
        RuleEffect::Take { body, next } => {
            let mut row = Row {
                effect: Effect::Take,
                next: next.unwrap_or(StateId(state as u16)).0,
                ..unchanged
            };
            for statement in body {
                let added = add_statement(protocol, rom, event, &mut row, statement);
                added.or_else(|feature| {
                    let location = format!("on `{}` in `{}`", event.name, rom.states[state]);
                    refuse(rule.span, format!("{location}, {feature}"))
                })?;
            }
            row
        }
    };
    Ok(Some(row))
}

/// Adds one statement of a rule to the row. The error names the unsupported feature.
fn add_statement(
    protocol: &Protocol,
    rom: &Rom,
    event: &RomEvent,
    row: &mut Row,
    statement: &Statement,
) -> Result<(), String> {
    match statement {
        Statement::Send {
            message,
            to: Target::Remote(Expression::Constant(1)),
            ..
        } => add_send(protocol, rom, event, row, *message),
        Statement::StartRead => add_memory_operation(row, Memory::Read),
        Statement::StartWrite | Statement::StartStore { .. } if event.payload => {
            add_memory_operation(row, Memory::Write)
        }
        Statement::StartWrite | Statement::StartStore { .. } => {
            Err("the row writes data that the current message does not carry".into())
        }
        Statement::Acknowledge(_) | Statement::AcknowledgeUnlock => {
            row.acknowledge = true;
            Ok(())
        }
        Statement::WriteMemory | Statement::DeferStore | Statement::CommitDeferred => Err(
            "the row assumes zero-latency memory writes; the hardware's memory has latency".into(),
        ),
        _ => Err("the row has an action that the hardware does not implement".into()),
    }
}

/// Adds a memory operation to the row, which may have only one.
fn add_memory_operation(row: &mut Row, operation: Memory) -> Result<(), String> {
    if row.memory != Memory::None {
        return Err("two memory operations start at once".into());
    }
    row.memory = operation;
    Ok(())
}

/// Adds a message to the remote to the row, which may have one forward and one other message.
fn add_send(
    protocol: &Protocol,
    rom: &Rom,
    event: &RomEvent,
    row: &mut Row,
    message: MessageId,
) -> Result<(), String> {
    let number = rom.sends.iter().position(|sent| sent.message == message);
    let number = number.ok_or("the home sends itself a message")?;
    let (field, kind) = match protocol.class(message) {
        Some(Class::Forward) => (&mut row.forward, "forwards"),
        _ => (&mut row.grant, "grants"),
    };
    if field.is_some() {
        return Err(format!(
            "two {kind} are sent at once; the hardware supports one"
        ));
    }
    if rom.sends[number].payload && event.event != Event::MemoryData(0) {
        return Err(format!(
            "`{}` carries the line, but memory has not been read for it",
            rom.sends[number].name
        ));
    }
    *field = Some(number as u16);
    Ok(())
}
