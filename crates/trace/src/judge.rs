//! Step-by-step check of a trace: [`judge`] replays each step on the tables of the protocol and on abstract data.

mod home;
mod registers;
mod remote;
mod words;

use crate::bytes::{Bytes, Operation, PendingAccess, Version, Write};
use crate::table::{Agent, Response, RowEffect, SentMessage, Table, Trigger, Value};
use cohkit_base::sequence::{lifeline, Action, Sequence, Step};
use cohkit_base::words::counted;
use cohkit_protocol::controller::{Access, Controller, Event};
use cohkit_protocol::protocol::{Carries, MessageId, Permission, Protocol, StateId};
use cohkit_protocol::remotes::KindId;
use cohkit_protocol::unroll::Homes;
use cohkit_protocol::value_text::AgentNames;
use std::collections::{BTreeMap, BTreeSet};
use words::{is_effect, kind_of, parse_access_report, MAX_CHOICES, PERFORMS, WRITES};

/// Reason why a trace is rejected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rejection {
    /// Number of the failing step, counted from 1; one more than the last step for a failure at the end.
    pub step: usize,
    /// Description of the failure, one sentence.
    pub reason: String,
}

/// Statistics of an accepted trace.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Summary {
    /// Number of steps.
    pub steps: usize,
    /// Number of rows executed.
    pub rows: usize,
    /// Number of messages sent.
    pub messages: usize,
    /// Number of values of words that were compared with the last write.
    pub values: usize,
}

/// Number of remotes in a trace: the agents before the home, or before the first of several homes. `None` if no agent
/// is the home.
pub fn remotes(sequence: &Sequence, home: &str) -> Option<usize> {
    let is_home = |agent: &String| {
        let plain = lifeline(home, "home");
        let agent = agent.strip_suffix(" 0").unwrap_or(agent);
        agent == plain || agent == format!("{plain} (home)") || agent == "home"
    };
    sequence.agents.iter().position(is_home)
}

/// Number of homes in a trace, after its remotes.
fn home_count(sequence: &Sequence, remotes: usize) -> usize {
    let Some(name) = sequence.agents[remotes].strip_suffix(" 0") else {
        return 1;
    };
    let is_numbered_home =
        |(number, agent): &(usize, &String)| **agent == format!("{name} {number}");
    let homes = sequence.agents[remotes..].iter().enumerate();
    homes.take_while(is_numbered_home).count()
}

/// Checks a trace, and returns its statistics. `home` is the controller of the home, constructed for as many remotes
/// as the trace has (see [`remotes`]). With `ends_quiescent`, nothing may be outstanding after the last step.
///
/// # Errors
/// The first failure, or a trace whose agents do not match the protocol: none is the home, or their number of homes
/// differs.
pub fn judge(
    protocol: &Protocol,
    home: &Controller,
    sequence: &Sequence,
    ends_quiescent: bool,
) -> Result<Summary, Rejection> {
    let rejection_at = |step: usize| {
        move |reason| Rejection {
            step: step + 1,
            reason,
        }
    };
    let name = &protocol.name;
    let Some(remotes) = remotes(sequence, &home.name) else {
        let reason = format!("none of its agents is the home, {}", home.name);
        return Err(rejection_at(0)(reason));
    };
    let (homes, trace_homes) = (usize::from(protocol.homes), home_count(sequence, remotes));
    if homes != trace_homes {
        let homes = counted(homes as u64, "home");
        return Err(rejection_at(0)(format!(
            "{name} has {homes}, but the trace has {trace_homes}"
        )));
    }
    // Index of the first agent that is neither a remote nor a home.
    let first_environment_agent = remotes + homes;
    let kinds: Vec<KindId> = sequence.agents[..remotes]
        .iter()
        .map(|agent| kind_of(protocol, agent))
        .collect();
    let mut states = protocol.remote.states.iter();
    let has_in_place_writes = states.any(|state| state.permission == Permission::Write);
    let mut checker = TraceChecker {
        protocol,
        sequence,
        remote: Table {
            controller: &protocol.remote,
            kinds: &kinds,
            homes: Homes(protocol.homes),
        },
        home: Table {
            controller: home,
            kinds: &kinds,
            homes: Homes(protocol.homes),
        },
        lines: BTreeMap::new(),
        registers: None,
        flights: Vec::new(),
        position: 0,
        line: None,
        line_number: 0,
        has_register_reports: false,
        names: AgentNames {
            remotes: sequence.agents[..remotes].to_vec(),
            homes: sequence.agents[remotes..first_environment_agent].to_vec(),
        },
        orders_writes: protocol.guarantee.model.is_some() && !has_in_place_writes,
        has_answer_reports: sequence.steps.iter().any(|step| {
            step.agent >= first_environment_agent
                && matches!(&step.action, Action::Does { what } if what.starts_with("is told of "))
        }),
        home_action_words: sequence
            .steps
            .iter()
            .filter_map(|step| match &step.action {
                Action::Does { what }
                    if (remotes..first_environment_agent).contains(&step.agent) =>
                {
                    what.split(' ').next()
                }
                _ => None,
            })
            .collect(),
        // The index excludes the home itself, which may have any name.
        is_complete: sequence.agents[first_environment_agent..]
            .iter()
            .any(|agent| agent.starts_with("memory")),
        summary: Summary::default(),
    };
    checker.begin_registers();
    while checker.position < sequence.steps.len() {
        checker
            .check_step_group()
            .map_err(rejection_at(checker.position.min(sequence.steps.len() - 1)))?;
    }
    if ends_quiescent {
        checker
            .check_quiescent()
            .map_err(rejection_at(sequence.steps.len()))?;
    }
    checker.summary.steps = sequence.steps.len();
    Ok(checker.summary)
}

/// A message in flight.
#[derive(Clone, Debug)]
struct InFlightMessage {
    /// Number of the message in the trace, unique among the messages in flight.
    number: u32,
    /// Line of the message, or the number of its home for a message about no line.
    line: u32,
    /// Message type, receiver and fields.
    sent: SentMessage,
    /// Sending remote; `None` if a home sent it.
    from: Option<usize>,
    /// Lifelines of sender and receiver.
    endpoints: [usize; 2],
    /// Data, as versions.
    data: MessageData,
    /// Numbers of the messages that this one must not overtake. Numbers of messages received since remain in the list.
    earlier_flights: Vec<u32>,
}

/// Data of a message.
#[derive(Clone, Copy, Debug)]
enum MessageData {
    /// No data.
    Nothing,
    /// A copy of the line.
    Line(Version),
    /// The bytes of a write that the home performs.
    Write(Write),
}

/// A caching agent.
#[derive(Clone, Debug)]
struct Remote {
    /// State and variables of the remote for this line.
    agent: Agent,
    /// Version that the remote holds; `None` without a copy.
    copy: Option<Version>,
    /// Access that has begun and has not completed.
    pending_access: Option<PendingAccess>,
    /// If copies may be stale: the last write of the line that the agent has observed or made.
    last_observed: Version,
}

/// State of one line.
#[derive(Clone, Debug)]
struct Line {
    /// Remotes, in the order of the agents of the trace.
    remotes: Vec<Remote>,
    /// State and variables of the home for this line.
    home: Agent,
    /// Contents of memory, and the writes performed so far.
    bytes: Bytes,
    /// Memory operation that the home has started.
    operation: Operation,
    /// Write that the home has received and not yet performed.
    deferred_write: Option<Write>,
    /// Local operation requested by the device and not yet accepted, as an index into the controller's `locals`.
    /// `None` if the trace does not report requests.
    requested_operation: Option<usize>,
    /// Local operation that the home has accepted and not yet acknowledged, as an index into the controller's
    /// `locals`.
    accepted: Option<usize>,
    /// True if the accepted operation is an eviction by the directory, to free an entry.
    is_directory_eviction: bool,
    /// Maximum permission of remotes under the device's lock; `None` if unlocked.
    lock: Option<Permission>,
    /// Answers of the home to the device whose arrival the trace has not reported yet.
    answers: Vec<String>,
}

/// State of the check of one trace.
struct TraceChecker<'j> {
    /// Protocol that the trace must conform to.
    protocol: &'j Protocol,
    /// Trace.
    sequence: &'j Sequence,
    /// Table of all remotes.
    remote: Table<'j>,
    /// Table of each home.
    home: Table<'j>,
    /// States of the lines that a step was about, by line number. Other lines are in their initial state.
    lines: BTreeMap<u32, Line>,
    /// Values of all variables of each agent, by lifeline: remotes, then homes. Only those of registers, which all
    /// lines share, are used. `None` if the protocol has no registers.
    registers: Option<Vec<Vec<Value>>>,
    /// Messages in flight, in the order in which they were sent.
    flights: Vec<InFlightMessage>,
    /// Index of the current step.
    position: usize,
    /// Line that the trace reports for the current row; `None` if the row is about no line.
    line: Option<u32>,
    /// Number of that line, or of the home if a row is about no line.
    line_number: u32,
    /// Names of the agents, as used in states and messages.
    names: AgentNames,
    /// True if the trace reports registers along with states.
    has_register_reports: bool,
    /// True if the protocol promises a memory model and no copy is written in place. No agent may then observe writes
    /// of a line out of order.
    orders_writes: bool,
    /// True if the trace reports the arrival of answers at the device.
    has_answer_reports: bool,
    /// First words of the local actions of the home in this trace.
    home_action_words: BTreeSet<&'j str>,
    /// True if the trace is complete, with all actions of memory and device. Traces of models are: memory is one of
    /// their agents.
    is_complete: bool,
    /// Counts so far. `steps` is set at the end.
    summary: Summary,
}

/// Result of a part of the check; the error is the reason of the rejection.
type CheckResult<T = ()> = Result<T, String>;

/// Trigger of a row.
struct Cause {
    /// Event that triggers the row.
    event: Event,
    /// Remote whose row it is; `None` for the home.
    actor: Option<usize>,
    /// Received message, if any.
    received: Option<InFlightMessage>,
}

impl TraceChecker<'_> {
    /// Processes one step, with all steps of the same row, and moves `position` behind them.
    fn check_step_group(&mut self) -> CheckResult {
        let step = &self.sequence.steps[self.position];
        self.line = step.line;
        self.line_number = match step.action {
            Action::Receive { flight, .. } => self.flights.iter().find(|f| f.number == flight),
            _ => None,
        }
        .map_or(step.line.unwrap_or(0), |flight| flight.line);
        let number = self.line_number;
        let mut line = match self.lines.remove(&number) {
            Some(line) => line,
            None => self.initial_line(),
        };
        self.refresh_registers(&mut line);
        let agent = step.agent;
        let home = self.lifeline(None);
        let remotes = self.remote.kinds.len();
        let first_environment_agent = remotes + usize::from(self.protocol.homes);
        if (remotes..first_environment_agent).contains(&agent) && agent != home {
            return Err(format!("it belongs to {}", self.name(None)));
        }
        match &step.action {
            action if agent == home && is_effect(action) => {
                // Traces that report the action of memory omit the event at the home that it causes.
                let events = match line.operation {
                    Operation::Read(Some(_)) => (0..MAX_CHOICES).map(Event::MemoryData).collect(),
                    Operation::Written => vec![Event::MemoryDone],
                    _ => return Err("no earlier step causes this action of the home".into()),
                };
                self.apply_best_row(&mut line, events)?;
            }
            Action::Send { .. } | Action::Becomes { .. } => {
                return Err("no earlier step causes this action".into());
            }
            Action::Receive {
                message,
                from,
                flight,
            } => {
                let received = self.take_message(message, *from, *flight)?;
                self.position += 1;
                let cause = Cause {
                    event: Event::Message(received.sent.message),
                    actor: received.sent.to,
                    received: Some(received),
                };
                self.apply_row(&mut line, cause)?;
            }
            Action::Does { what } if agent < remotes => {
                self.apply_remote_access(&mut line, agent, what)?
            }
            Action::Does { what } if agent == home => self.apply_home_action(&mut line, what)?,
            Action::Does { what } => self.apply_environment_action(&mut line, what)?,
        }
        self.check_coherence(&line)?;
        self.lines.insert(number, line);
        Ok(())
    }

    /// State of a line that no step was about so far.
    fn initial_line(&self) -> Line {
        let kinds = self.remote.kinds.iter();
        let remotes = kinds.map(|kind| Remote {
            agent: self
                .remote
                .initial_agent(self.protocol.kinds[kind.index()].initial),
            copy: None,
            pending_access: None,
            last_observed: 0,
        });
        Line {
            remotes: remotes.collect(),
            home: self.home.initial_agent(StateId(0)),
            bytes: Bytes::new(!self.protocol.guarantee.coherent),
            operation: Operation::Idle,
            deferred_write: None,
            requested_operation: None,
            accepted: None,
            is_directory_eviction: false,
            lock: None,
            answers: Vec::new(),
        }
    }

    /// Number of the current home.
    fn home_number(&self) -> usize {
        self.line_number as usize % usize::from(self.protocol.homes)
    }

    /// Lifeline of a remote, or of the current home.
    fn lifeline(&self, agent: Option<usize>) -> usize {
        agent.unwrap_or(self.remote.kinds.len() + self.home_number())
    }

    /// True if a step can belong to the current row. A message about no line may be reported with the line whose number
    /// it uses.
    fn belongs_to_row(&self, step: &Step) -> bool {
        step.line == self.line || self.line.is_none() && step.line == Some(self.line_number)
    }

    /// Name of a remote or of the current home in the trace.
    fn name(&self, agent: Option<usize>) -> &str {
        &self.sequence.agents[self.lifeline(agent)]
    }

    /// Removes a message from those in flight, and checks its agents, its line and its order. `number` is that of the
    /// trace.
    fn take_message(
        &mut self,
        message_text: &str,
        from: usize,
        number: u32,
    ) -> CheckResult<InFlightMessage> {
        let receiver_lifeline = self.sequence.steps[self.position].agent;
        let mut flights = self.flights.iter();
        let index = flights.position(|flight| flight.number == number);
        let index =
            index.ok_or_else(|| format!("{message_text} is received, but is not in flight"))?;
        let flight = self.flights.remove(index);
        if flight.endpoints != [from, receiver_lifeline] {
            let [sender, receiver] = flight.endpoints.map(|agent| &self.sequence.agents[agent]);
            return Err(format!(
                "{message_text} is in flight from {sender} to {receiver}"
            ));
        }
        self.check_message_name(&flight.sent, message_text)?;
        let about_line = self.protocol.message(flight.sent.message).about_line;
        match self.line {
            Some(_) if !about_line => return Err(format!("{message_text} is about no line")),
            line if about_line && line.unwrap_or(0) != flight.line => {
                return Err(format!("{message_text} is about line {}", flight.line));
            }
            _ => {}
        }
        let mut flights = self.flights.iter();
        if let Some(earlier) = flights.find(|f| flight.earlier_flights.contains(&f.number)) {
            let earlier = &self.protocol.message(earlier.sent.message).name;
            return Err(format!("{message_text} overtakes {earlier}"));
        }
        // A later message may have the same number.
        for later in &mut self.flights {
            later.earlier_flights.retain(|earlier| *earlier != number);
        }
        Ok(flight)
    }

    /// Name of the state of a remote, or of the home.
    fn state_name(&self, actor: Option<usize>, line: &Line) -> String {
        let (table, agent) = self.table_and_agent(actor, line);
        table.controller.states[agent.state].name.clone()
    }

    /// Table and state of a remote, or of the home.
    fn table_and_agent<'l>(
        &'l self,
        actor: Option<usize>,
        line: &'l Line,
    ) -> (&'l Table<'l>, &'l Agent) {
        match actor {
            Some(actor) => (&self.remote, &line.remotes[actor].agent),
            None => (&self.home, &line.home),
        }
    }

    /// Next step, if it is a local action of this agent on the same line.
    fn next_local_action(&self, agent: usize) -> Option<&str> {
        let step = self.sequence.steps.get(self.position)?;
        match &step.action {
            Action::Does { what } if step.agent == agent && self.belongs_to_row(step) => Some(what),
            _ => None,
        }
    }

    /// Applies an event to an agent. The following steps must report the effects that its table requires. `position`
    /// is that of the step after the event.
    fn apply_row(&mut self, line: &mut Line, cause: Cause) -> CheckResult {
        let Cause {
            event,
            actor,
            received,
        } = cause;
        if let Event::Local(local) = event {
            let requested_operation = line.requested_operation.take();
            if self.is_complete && requested_operation != Some(local.into()) {
                return Err("the device has not requested this operation".into());
            }
        }
        let (table, agent) = self.table_and_agent(actor, line);
        let no_fields = Vec::new();
        let trigger = Trigger {
            event,
            sender: received.as_ref().and_then(|flight| flight.from),
            actor,
            home: self.home_number(),
            fields: received
                .as_ref()
                .map_or(&no_fields, |flight| &flight.sent.fields),
        };
        let state = &table.controller.states[agent.state];
        let response = match table.controller.rules.iter().any(|row| row.chooses()) {
            true => self.respond_with_choice(actor, table, agent, &trigger)?,
            false => table.respond(agent, &trigger)?,
        };
        let (next_agent, effects) = match response {
            Response::Row {
                next_agent,
                effects,
            } => (next_agent, effects),
            Response::Refuse if actor.is_none() => {
                let Event::Local(local) = event else {
                    line.answers.push("is refused its unlock".into());
                    return Ok(());
                };
                let name = &self.home.controller.locals[usize::from(local)].name;
                line.answers.push(format!("is refused {name}"));
                return self.check_report(None, &format!("refuses {name}"));
            }
            Response::NoRow => {
                return Err(format!("there is no row for this in {}", state.name));
            }
            Response::Stall | Response::Refuse => {
                return Err(format!("in {} this has to wait", state.name));
            }
        };
        self.summary.rows += 1;
        match actor {
            Some(actor) => self.apply_remote_row(line, actor, event, received, next_agent, effects),
            None => self.apply_home_row(line, event, received, next_agent, effects),
        }
    }

    /// Response of a table whose rows may choose a member of a set. Selects the choice with the messages that follow in
    /// the trace, and the lowest one of several.
    fn respond_with_choice(
        &self,
        actor: Option<usize>,
        table: &Table,
        agent: &Agent,
        trigger: &Trigger,
    ) -> CheckResult<Response> {
        let acting_lifeline = self.lifeline(actor);
        let steps = &self.sequence.steps[self.position.min(self.sequence.steps.len())..];
        let steps = steps.iter().take_while(|step| {
            step.agent == acting_lifeline && !matches!(step.action, Action::Receive { .. })
        });
        let reported_receivers: Vec<usize> = steps
            .filter_map(|step| match &step.action {
                Action::Send { to, .. } => Some(*to),
                _ => None,
            })
            .collect();
        let matches_sends = |response: &Response| {
            let Response::Row { effects, .. } = response else {
                return false;
            };
            let mut receivers = reported_receivers.iter();
            effects.iter().all(|effect| match effect {
                RowEffect::Send(sent) => match (sent.to, receivers.next()) {
                    (Some(to), Some(&receiver)) => to == receiver,
                    (None, next) => next.is_some(),
                    (Some(_), None) => false,
                },
                _ => true,
            })
        };
        let first = table.respond(agent, trigger)?;
        if matches_sends(&first) {
            return Ok(first);
        }
        for choice in 1..table.kinds.len() {
            match table.respond_choosing(agent, trigger, choice) {
                Ok(Some(response)) if matches_sends(&response) => return Ok(response),
                _ => {}
            }
        }
        Ok(first)
    }

    /// Checks a report about an agent. A complete trace, or one that reports this kind of action at all, must contain
    /// it here; in other traces it is optional.
    fn check_report(&mut self, agent: Option<usize>, report: &str) -> CheckResult {
        let is_reported = self.next_local_action(self.lifeline(agent)) == Some(report);
        self.position += usize::from(is_reported);
        let verb = report.split(' ').next();
        let is_required =
            self.is_complete || self.home_action_words.contains(&verb.unwrap_or_default());
        match is_reported || !is_required {
            true => Ok(()),
            false => Err(format!(
                "the trace does not report that {} {report}",
                self.name(agent)
            )),
        }
    }

    /// Highest permission of any remote for the line.
    fn max_permission(&self, line: &Line) -> Permission {
        let permissions = line.remotes.iter().map(|remote| self.permission(remote));
        permissions.max().unwrap_or(Permission::None)
    }

    /// Permission of a remote in its present state.
    fn permission(&self, remote: &Remote) -> Permission {
        self.protocol.remote.states[remote.agent.state].permission
    }

    /// Checks that the next step reports a message that the current row sends, and adds it to the messages in flight.
    /// `copy` is the version that a message with a line carries.
    fn check_send(
        &mut self,
        line: &mut Line,
        from: Option<usize>,
        sent: SentMessage,
        copy: Option<Version>,
    ) -> CheckResult {
        let message_type = self.protocol.message(sent.message);
        let message_line = self.line_number_of(&sent, message_type.about_line, from.is_some())?;
        let to = sent.to.unwrap_or(
            self.remote.kinds.len() + message_line as usize % usize::from(self.protocol.homes),
        );
        let endpoints = [self.lifeline(from), to];
        let next_step = self.sequence.steps.get(self.position);
        let next_step = next_step.filter(|step| {
            let belongs_to_line = if message_type.about_line {
                self.belongs_to_row(step)
            } else {
                step.line.is_none()
            };
            step.agent == endpoints[0] && belongs_to_line
        });
        let receiver = &self.sequence.agents[to];
        let Some(Action::Send {
            message,
            to: reported_receiver,
            flight,
        }) = next_step.map(|step| &step.action)
        else {
            let name = &message_type.name;
            return Err(format!(
                "{} has to send {name} to {receiver} now",
                self.name(from)
            ));
        };
        self.check_message_name(&sent, message)?;
        if *reported_receiver != to {
            let reported_receiver = self.sequence.agents.get(*reported_receiver);
            return Err(format!(
                "{message} goes to {reported_receiver:?}; its row sends it to {receiver}"
            ));
        }
        if self.flights.iter().any(|other| other.number == *flight) {
            return Err(format!("{message} has the number of another one in flight"));
        }
        if let Some(network) = self.full_network(sent.message, to) {
            return Err(format!(
                "{message} finds no room in network {network} at {receiver}"
            ));
        }
        let data = match message_type.carries {
            Carries::Nothing => MessageData::Nothing,
            Carries::Line | Carries::DirtyLine => MessageData::Line(copy.ok_or_else(|| {
                format!("{message} carries a line that the sender does not have")
            })?),
            Carries::Store | Carries::PartialStore => {
                let whole_line = message_type.carries == Carries::Store;
                let serial = line.bytes.record_sent_write();
                if let Some(pending_access) =
                    from.and_then(|from| line.remotes[from].pending_access.as_mut())
                {
                    pending_access.sent_serial = Some(serial);
                }
                MessageData::Write(Write { serial, whole_line })
            }
        };
        let must_precede = |earlier: &&InFlightMessage| {
            let same_line = earlier.line == message_line;
            earlier.endpoints == endpoints
                && self.must_not_overtake(sent.message, earlier.sent.message, same_line)
        };
        let earlier_flights = self.flights.iter().filter(must_precede);
        let earlier_flights = earlier_flights.map(|earlier| earlier.number).collect();
        self.flights.push(InFlightMessage {
            number: *flight,
            line: message_line,
            sent,
            from,
            endpoints,
            data,
            earlier_flights,
        });
        self.position += 1;
        self.summary.messages += 1;
        Ok(())
    }

    /// Line of a message. For a message about no line: the number of the home that receives it or sends it to a remote,
    /// or 0 between remotes.
    fn line_number_of(
        &self,
        sent: &SentMessage,
        about_line: bool,
        from_remote: bool,
    ) -> CheckResult<u32> {
        let homes = self.protocol.homes;
        match sent.home {
            _ if about_line => Ok(self.line_number),
            Some(home) if home < homes.into() => Ok(home as u32),
            Some(home) => Err(format!("there is no home {home}")),
            None if from_remote && sent.to.is_some() => Ok(0),
            None => Ok(self.home_number() as u32),
        }
    }

    /// The network of a message, if the input queue of its receiver has no room for one more.
    fn full_network(&self, message: MessageId, to: usize) -> Option<&str> {
        let protocol = self.protocol;
        let order = |message| protocol.order_of(protocol.message(message).channel);
        let network = protocol.network_of(order(message)?)?;
        let shares_queue = |flight: &&InFlightMessage| {
            flight.endpoints[1] == to && order(flight.sent.message) == Some(network.order)
        };
        let in_flight = self.flights.iter().filter(shares_queue).count();
        (!network.has_room(in_flight)).then_some(&network.name)
    }

    /// True if a message must not overtake an earlier one between the same agents. An order over all lines can only be
    /// checked if the trace covers all of them.
    fn must_not_overtake(&self, message: MessageId, earlier: MessageId, same_line: bool) -> bool {
        let protocol = self.protocol;
        let order = |message| protocol.order_of(protocol.message(message).channel);
        let orders_all_lines =
            |order: usize| !protocol.per_line[order] && protocol.joins_lines().is_some();
        let mut point_orders = protocol.point_orders.iter();
        order(message).is_some_and(|order_id| {
            order(earlier) == Some(order_id) && (same_line || orders_all_lines(order_id))
        }) || same_line
            && point_orders.any(|rule| rule.message == message && rule.earlier.contains(&earlier))
    }

    /// Checks the state after a row. The trace must report a changed state, and may report an unchanged one.
    fn check_next_state(
        &mut self,
        line: &mut Line,
        actor: Option<usize>,
        next_agent: Agent,
    ) -> CheckResult {
        let (table, current) = self.table_and_agent(actor, line);
        let next_step = self.sequence.steps.get(self.position);
        let next_step = next_step
            .filter(|step| step.agent == self.lifeline(actor) && self.belongs_to_row(step));
        let state_text = self.state_text(table, &next_agent);
        let state_changes = state_text != self.state_text(table, current);
        match next_step.map(|step| &step.action) {
            Some(Action::Becomes { state }) => {
                if state_text != *state {
                    let agent = self.name(actor);
                    return Err(format!(
                        "{agent} becomes {state}; its row leads to {state_text}"
                    ));
                }
                self.position += 1;
            }
            _ if state_changes => {
                return Err(format!(
                    "{} must enter {state_text} in this step",
                    self.name(actor)
                ))
            }
            _ => {}
        }
        let lifeline = self.lifeline(actor);
        if let Some(registers) = &mut self.registers {
            registers[lifeline].clone_from(&next_agent.values);
        }
        match actor {
            Some(actor) => line.remotes[actor].agent = next_agent,
            None => line.home = next_agent,
        }
        Ok(())
    }

    /// Checks the invariants between two rows: single writer, data value, and the limit of the device's lock.
    fn check_coherence(&self, line: &Line) -> CheckResult {
        if !self.protocol.guarantee.coherent {
            return Ok(());
        }
        let mut permissions = line.remotes.iter().map(|remote| self.permission(remote));
        let holders = permissions
            .clone()
            .filter(|permission| *permission > Permission::None)
            .count();
        if holders > 1 && permissions.any(|permission| permission == Permission::Write) {
            return Err("single writer: another agent still has read or write permission".into());
        }
        for (number, remote) in line.remotes.iter().enumerate() {
            if self.permission(remote) > Permission::None && remote.copy != Some(line.bytes.last) {
                return Err(format!(
                    "data value: {} has read permission for a stale copy, which write {} changed last",
                    self.name(Some(number)),
                    remote
                        .copy
                        .map_or("none".to_string(), |copy| copy.to_string()),
                ));
            }
        }
        if line
            .lock
            .is_some_and(|limit| self.max_permission(line) > limit)
        {
            return Err("single writer: a remote has a permission that the lock excludes".into());
        }
        Ok(())
    }

    /// Checks that no message is in flight and that no line has an outstanding operation.
    fn check_quiescent(&self) -> CheckResult {
        if let Some(flight) = self.flights.first() {
            let name = &self.protocol.message(flight.sent.message).name;
            return Err(format!("at the end {name} is in flight"));
        }
        self.lines
            .values()
            .try_for_each(|line| self.check_line_quiescent(line))
    }

    /// Checks that nothing is outstanding for a line, apart from messages.
    fn check_line_quiescent(&self, line: &Line) -> CheckResult {
        for actor in (0..line.remotes.len()).map(Some).chain([None]) {
            let (table, agent) = self.table_and_agent(actor, line);
            let state = &table.controller.states[agent.state];
            if !state.is_stable() {
                return Err(format!(
                    "at the end {} is in {}",
                    self.name(actor),
                    state.name
                ));
            }
        }
        if let (true, Some(answer)) = (self.has_answer_reports, line.answers.first()) {
            return Err(format!(
                "at the end the device has no report that it {answer}"
            ));
        }
        let is_busy = line.operation != Operation::Idle
            || line.accepted.is_some()
            || line.requested_operation.is_some();
        if is_busy
            || line.lock.is_some()
            || line.deferred_write.is_some()
            || !line.bytes.is_quiescent()
        {
            return Err("at the end an operation is outstanding".into());
        }
        Ok(())
    }
}
