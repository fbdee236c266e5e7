//! Step-by-step check of a trace: [`judge`] replays each step on the tables of the protocol and on abstract data.

mod home;
mod invariants;
mod messages;
mod registers;
mod remote;
mod rows;
mod wording;

use crate::line_data::{LineData, Operation, PendingAccess, Version, Write};
use crate::table::{Agent, Table, Value};
use cohkit_base::sequence::{lifeline, Action, Sequence, Step};
use cohkit_base::words::counted;
use cohkit_protocol::controller::{Controller, Event};
use cohkit_protocol::protocol::{Permission, Protocol, StateId};
use cohkit_protocol::remotes::KindId;
use cohkit_protocol::unroll::Homes;
use cohkit_protocol::value_text::AgentNames;
use home::memory_data_events;
use messages::InFlightMessage;
use rows::Cause;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use wording::{is_effect, kind_of};

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
    let kinds: Vec<KindId> = sequence.agents[..remotes]
        .iter()
        .map(|agent| kind_of(protocol, agent))
        .collect();
    let mut checker = TraceChecker::new(protocol, home, sequence, &kinds);
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

/// Local actions of the agents with these indices.
fn local_actions(sequence: &Sequence, agents: Range<usize>) -> impl Iterator<Item = &str> {
    let steps = sequence.steps.iter();
    steps.filter_map(move |step| match &step.action {
        Action::Does { what } if agents.contains(&step.agent) => Some(what.as_str()),
        _ => None,
    })
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
    data: LineData,
    /// Memory operation that the home has started.
    operation: Operation,
    /// Write that the home has received and not yet performed.
    deferred_write: Option<Write>,
    /// Local operation requested by the device and not yet accepted, as an index into the controller's `locals`.
    /// `None` if the trace does not report requests.
    requested_operation: Option<usize>,
    /// Local operation that the home has accepted and not yet acknowledged, as an index into the controller's
    /// `locals`.
    accepted_operation: Option<usize>,
    /// True if the accepted operation is an eviction by the directory, to free an entry.
    is_directory_eviction: bool,
    /// Maximum permission of remotes under the device's lock; `None` if unlocked.
    lock: Option<Permission>,
    /// Answers of the home to the device whose arrival the trace has not reported yet.
    unreported_answers: Vec<String>,
}

/// State of the check of one trace.
struct TraceChecker<'j> {
    /// Protocol that the trace must conform to.
    protocol: &'j Protocol,
    /// Trace.
    sequence: &'j Sequence,
    /// Table of all remotes.
    remote_table: Table<'j>,
    /// Table of each home.
    home_table: Table<'j>,
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
    reported_line: Option<u32>,
    /// Number of the line whose state the current row changes: the reported one or, for a row about no line, the number
    /// of the home.
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

impl<'j> TraceChecker<'j> {
    /// Checker at the first step of a trace whose remotes have these kinds.
    fn new(
        protocol: &'j Protocol,
        home: &'j Controller,
        sequence: &'j Sequence,
        kinds: &'j [KindId],
    ) -> Self {
        let remotes = kinds.len();
        // Agents after the homes are memory and the device.
        let first_environment_agent = remotes + usize::from(protocol.homes);
        let mut states = protocol.remote.states.iter();
        let has_in_place_writes = states.any(|state| state.permission == Permission::Write);
        TraceChecker {
            protocol,
            sequence,
            remote_table: Table {
                controller: &protocol.remote,
                kinds,
                homes: Homes(protocol.homes),
            },
            home_table: Table {
                controller: home,
                kinds,
                homes: Homes(protocol.homes),
            },
            lines: BTreeMap::new(),
            registers: None,
            flights: Vec::new(),
            position: 0,
            reported_line: None,
            line_number: 0,
            has_register_reports: false,
            names: AgentNames {
                remotes: sequence.agents[..remotes].to_vec(),
                homes: sequence.agents[remotes..first_environment_agent].to_vec(),
            },
            orders_writes: protocol.guarantee.model.is_some() && !has_in_place_writes,
            has_answer_reports: local_actions(sequence, first_environment_agent..usize::MAX)
                .any(|action| action.starts_with("is told of ")),
            home_action_words: local_actions(sequence, remotes..first_environment_agent)
                .filter_map(|action| action.split(' ').next())
                .collect(),
            // The index excludes the home itself, which may have any name.
            is_complete: sequence.agents[first_environment_agent..]
                .iter()
                .any(|agent| agent.starts_with("memory")),
            summary: Summary::default(),
        }
    }

    /// Processes one step together with the steps that report effects of the same row, and moves `position` behind
    /// them.
    fn check_step_group(&mut self) -> CheckResult {
        let step = &self.sequence.steps[self.position];
        self.reported_line = step.line;
        self.line_number = match step.action {
            Action::Receive { flight, .. } => {
                self.flights.iter().find(|other| other.number == flight)
            }
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
        let remotes = self.remote_table.kinds.len();
        let first_environment_agent = remotes + usize::from(self.protocol.homes);
        if (remotes..first_environment_agent).contains(&agent) && agent != home {
            return Err(format!("it belongs to {}", self.name(None)));
        }
        match &step.action {
            action if agent == home && is_effect(action) => {
                // Traces that report the action of memory omit the event at the home that it causes.
                let events = match line.operation {
                    Operation::Read(Some(_)) => memory_data_events(),
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
                let received = self.receive_message(message, *from, *flight)?;
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
        let kinds = self.remote_table.kinds.iter();
        let remotes = kinds.map(|kind| Remote {
            agent: self
                .remote_table
                .initial_agent(self.protocol.kinds[kind.index()].initial),
            copy: None,
            pending_access: None,
            last_observed: 0,
        });
        Line {
            remotes: remotes.collect(),
            home: self.home_table.initial_agent(StateId(0)),
            data: LineData::new(!self.protocol.guarantee.coherent),
            operation: Operation::Idle,
            deferred_write: None,
            requested_operation: None,
            accepted_operation: None,
            is_directory_eviction: false,
            lock: None,
            unreported_answers: Vec::new(),
        }
    }

    /// Number of the current home.
    fn home_number(&self) -> usize {
        self.line_number as usize % usize::from(self.protocol.homes)
    }

    /// Lifeline of a remote, or of the current home.
    fn lifeline(&self, agent: Option<usize>) -> usize {
        agent.unwrap_or(self.remote_table.kinds.len() + self.home_number())
    }

    /// True if a step can belong to the current row. A message about no line may be reported with the line whose number
    /// it uses.
    fn belongs_to_row(&self, step: &Step) -> bool {
        step.line == self.reported_line
            || self.reported_line.is_none() && step.line == Some(self.line_number)
    }

    /// Name of a remote or of the current home in the trace.
    fn name(&self, agent: Option<usize>) -> &str {
        &self.sequence.agents[self.lifeline(agent)]
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
            Some(actor) => (&self.remote_table, &line.remotes[actor].agent),
            None => (&self.home_table, &line.home),
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
}
