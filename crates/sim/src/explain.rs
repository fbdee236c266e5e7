//! Failures of a run, and the record of the steps that led to them.
//!
//! A run keeps no history. A failed run is repeated with the same seed, which gives the same events, and the steps that
//! concern the failing line are recorded.

use cohkit_base::sequence::{homes, lifeline, Action, Sequence, Step};
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::fmt;

use crate::agents::application::ApplicationRun;
use crate::agents::program::ConfigurationId;
use crate::data::Copy;
use crate::kernel::Time;
use crate::message::{Agent, Line, HOME};
use crate::simulation::{Event, Pending, Purpose, Simulation};
use cohkit_protocol::controller::Access;

/// Property that is violated, or other reason for a failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FailureKind {
    /// A load, write-back or acknowledgement has data that is not the last write.
    DataValue,
    /// A store is lost or performed more than once, where copies may be stale.
    StorePerformedOnce,
    /// An access does not observe an earlier store of its own cache, or is performed before that store.
    ProgramOrder,
    /// Two agents have permissions that exclude each other.
    SingleWriter,
    /// A cache has a permission that the cache above it lacks.
    Inclusion,
    /// An access used an address translation that the host had invalidated.
    Translation,
    /// The page table did not permit an access without which its program cannot continue.
    Refused,
    /// A message arrived in a state that has no row for it, or a row could not be executed.
    UnexpectedMessage,
    /// More messages are in flight than the protocol file declares.
    InFlight,
    /// An action cannot be executed in its context.
    Meaningless,
    /// An application broke its contract, or requested something that this setup does not support.
    Contract,
    /// An application requests an operation that the protocol's home lacks.
    Incompatible,
    /// At the end, application, threads and data do not fulfil the scenario's conditions.
    Result,
    /// An access exceeded the timeout of its core.
    Timeout,
    /// A home in RTL deviated from its controller.
    Hardware,
    /// No access was performed within the platform's progress timeout, `patience`.
    NoProgress,
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FailureKind::DataValue => "data value",
            FailureKind::StorePerformedOnce => "every store is performed once",
            FailureKind::ProgramOrder => "program order of one line",
            FailureKind::SingleWriter => "single writer",
            FailureKind::Inclusion => "inclusion",
            FailureKind::Translation => "translation of an address",
            FailureKind::Refused => "permission of a page",
            FailureKind::UnexpectedMessage => "no unexpected message",
            FailureKind::InFlight => "bound on messages in flight",
            FailureKind::Meaningless => "meaningless act",
            FailureKind::Contract => "contract of an application",
            FailureKind::Incompatible => "application and protocol",
            FailureKind::Result => "result of a scenario",
            FailureKind::Timeout => "timeout of a core",
            FailureKind::Hardware => "home in hardware",
            FailureKind::NoProgress => "no progress",
        })
    }
}

/// A failed run.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Reason for the failure.
    pub kind: FailureKind,
    /// Description, one sentence.
    pub text: String,
    /// The line concerned.
    pub line: Line,
    /// Time of the failure, in picoseconds.
    pub time: Time,
    /// Wait-for report, one sentence per agent or message; only for [`FailureKind::NoProgress`].
    pub waits: Vec<String>,
    /// The last steps that concern the line.
    pub sequence: Sequence,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanoseconds = self.time as f64 / 1000.0;
        writeln!(
            f,
            "{}: {} (line {}, at {nanoseconds:.3} ns)",
            self.kind, self.text, self.line
        )?;
        for wait in &self.waits {
            writeln!(f, "  {wait}")?;
        }
        f.write_str(&cohkit_chart::text(
            &self.sequence,
            &cohkit_chart::Text::default(),
        ))
    }
}

impl std::error::Error for Failure {}

/// Maximum number of steps in a chart.
const MAX_CHART_STEPS: usize = 60;

/// Maximum number of agents of which all are shown. With more, a chart shows only those that take part.
const MAX_LIFELINES: usize = 12;

/// Removes the lifelines of agents that take no part in any step.
fn remove_idle_lifelines(sequence: &mut Sequence) {
    fn agents(step: &mut Step) -> impl Iterator<Item = &mut usize> {
        let peer = match &mut step.action {
            Action::Send { to: peer, .. } | Action::Receive { from: peer, .. } => Some(peer),
            Action::Does { .. } | Action::Becomes { .. } => None,
        };
        std::iter::once(&mut step.agent).chain(peer)
    }
    let mut participants = BTreeMap::new();
    for agent in sequence.steps.iter_mut().flat_map(agents) {
        participants.insert(*agent, 0);
    }
    participants
        .values_mut()
        .zip(0..)
        .for_each(|(new_number, position)| *new_number = position);
    for agent in sequence.steps.iter_mut().flat_map(agents) {
        *agent = participants[agent];
    }
    let names = participants
        .keys()
        .map(|&agent| sequence.agents[agent].clone());
    sequence.agents = names.collect();
}

/// Recorder of the steps that concern one line.
#[derive(Default)]
pub(crate) struct Trace {
    steps: VecDeque<Step>,
    /// True for a complete trace: all steps, with the values of words. Otherwise only the last [`MAX_CHART_STEPS`] are
    /// kept.
    is_complete: bool,
}

impl Trace {
    pub fn new_complete() -> Trace {
        Trace {
            steps: VecDeque::new(),
            is_complete: true,
        }
    }

    pub fn record_step(&mut self, step: Step) {
        if self.steps.len() == MAX_CHART_STEPS && !self.is_complete {
            self.steps.pop_front();
        }
        self.steps.push_back(step);
    }

    /// Returns the recorded steps. The receipt of a message whose sending is no longer recorded becomes a description.
    pub fn sequence(&self, agents: Vec<String>) -> Sequence {
        let mut sent = HashSet::new();
        let mut steps: Vec<Step> = self.steps.iter().cloned().collect();
        for step in &mut steps {
            match &step.action {
                Action::Send { flight, .. } => {
                    sent.insert(*flight);
                }
                Action::Receive {
                    message, flight, ..
                } if !sent.contains(flight) => {
                    let what = format!("takes {message}");
                    step.action = Action::Does { what };
                }
                _ => {}
            }
        }
        let mut sequence = Sequence { agents, steps };
        if sequence.agents.len() > MAX_LIFELINES {
            remove_idle_lifelines(&mut sequence);
        }
        sequence
    }
}

impl Simulation {
    /// True if accesses, local operations, the application or queued messages are not finished.
    pub(crate) fn has_unfinished_work(&self) -> bool {
        let application = self.application.as_ref();
        let is_unfinished = |application: &ApplicationRun| {
            !application.is_done()
                || application.polling_thread().is_some()
                || application.thread_awaiting_interrupt().is_some()
        };
        self.tally.in_flight > 0
            || !self.device.is_done()
            || application.is_some_and(|application| is_unfinished(application))
            || self.input_queues.has_messages()
    }

    /// Names of the messages that an agent waits for in a configuration, joined by "or"; `None` if it waits for none.
    pub(crate) fn awaited_messages(
        &self,
        agent: Agent,
        configuration: ConfigurationId,
    ) -> Option<String> {
        let program = match agent {
            HOME => &self.home.program,
            _ => &self.remote,
        };
        let state = &program.controller().states[program.state(configuration)];
        let names = state.waits.iter();
        let names =
            names.map(|message| self.tables.protocol_messages[message.index()].name.as_str());
        let names: Vec<&str> = names.collect();
        (!names.is_empty()).then(|| names.join(" or "))
    }

    /// Fails the run if an access has exceeded the timeout of its core. Otherwise schedules the next check while
    /// anything is unfinished.
    ///
    /// Checks are periodic while an application runs, since it may wait for the access. Any late access is also
    /// detected at its end.
    pub(crate) fn check_timeouts(&mut self) {
        let (now, timeout) = (self.local.now, self.tables.times.timeout);
        let overdue = self.local.accesses.iter().find(|(_, access)| {
            access.purpose != Purpose::Hint && now.saturating_sub(access.issued) >= timeout
        });
        let overdue = overdue.map(|(_, access)| (access.line, access.core, access.issued));
        let overdue = overdue.or_else(|| self.overdue_register_read(now.saturating_sub(timeout)));
        if let Some((line, core, issued)) = overdue {
            self.report_timeout(line, core, issued);
        } else if self.has_unfinished_work()
            || self
                .application
                .as_ref()
                .is_some_and(|application| application.has_running_thread())
        {
            self.start_timeout_checks();
        }
    }

    /// Fails the run: a core has waited too long for an access.
    #[cold]
    pub(crate) fn report_timeout(&mut self, line: Line, core: u16, issued: Time) {
        let obligations = self
            .application
            .as_ref()
            .map(|application| application.open_obligations());
        let obligation = obligations
            .into_iter()
            .flatten()
            .find(|(obligation_line, _)| *obligation_line == line);
        let obligation =
            obligation.map_or(String::new(), |(_, obligation)| format!(": {obligation}"));
        let text = format!(
            "core {core} has waited for an access since {} ns, and reports a timeout{obligation}",
            issued / 1000
        );
        self.fail(FailureKind::Timeout, line, text);
    }

    /// Describes the thread that polls, or waits for an interrupt, in vain, if there is one.
    fn describe_polling_thread(&self) -> Option<String> {
        let application = self.application.as_ref()?;
        let name = application.name();
        if let Some(thread) = application.thread_awaiting_interrupt() {
            return Some(format!(
                "thread {thread} waits for an interrupt, and {name} has no pending event"
            ));
        }
        let thread = application.polling_thread()?;
        let idle = self.local.now.saturating_sub(self.tally.last_performed) / 1000;
        Some(format!(
            "thread {thread} polls the CPU's own memory, into which {name} has written nothing for {idle} ns"
        ))
    }

    /// Returns a core that has waited for a register since `latest` or earlier, as an access to line 0.
    fn overdue_register_read(&self, latest: Time) -> Option<(Line, u16, Time)> {
        let threads = &self.application.as_ref()?.threads;
        let overdue = |(core, since): (usize, Option<Time>)| {
            let since = since.filter(|&since| since <= latest)?;
            Some((0, core as u16, since))
        };
        let mut threads = threads
            .iter()
            .map(|thread| thread.reading_since)
            .enumerate();
        threads.find_map(overdue)
    }

    pub(crate) fn start_timeout_checks(&mut self) {
        let interval = self
            .tables
            .times
            .progress_timeout
            .min(self.tables.times.timeout / 4);
        self.local
            .queue
            .push(self.local.now + interval.max(1), Event::Overdue);
    }

    /// Returns the recorded steps, if a trace is recorded.
    pub(crate) fn sequence(&self) -> Option<Sequence> {
        let trace = self.observer.trace.as_ref();
        trace.map(|trace| trace.sequence(self.lifelines()))
    }

    /// Names of all agents, including those of other levels.
    fn lifelines(&self) -> Vec<String> {
        if let Some(upper_level) = &self.neighbours.upper_level {
            return upper_level.lifeline_names.to_vec();
        }
        let lower_level = self.neighbours.lower_level.as_ref();
        lower_level.map_or_else(
            || self.local_lifelines(),
            |lower_level| lower_level.lifeline_names.to_vec(),
        )
    }

    /// Names of this simulation's agents: its caches, then its homes.
    pub(crate) fn local_lifelines(&self) -> Vec<String> {
        let name = |remote| self.remote.remote_name(remote);
        let mut agents: Vec<String> = match self.groups.caches() {
            1 => vec![lifeline(&name(Agent(0)), "remote")],
            _ => self.caches.agents().map(name).collect(),
        };
        let homes = homes(&self.home.program.controller().name, self.tables.homes).into_iter();
        let homes = homes.map(|home| match agents.contains(&home) {
            true => format!("{home} (home)"),
            false => home,
        });
        let homes: Vec<String> = homes.collect();
        agents.extend(homes);
        agents
    }

    /// Records an access that the page table does not permit. A complete trace omits it: it contains performed accesses
    /// only.
    #[cold]
    pub(crate) fn note_refused(&mut self, access: &Pending) {
        let is_shown = self
            .observer
            .trace
            .as_ref()
            .is_some_and(|trace| !trace.is_complete);
        if is_shown && self.is_traced(access.line) {
            let what = format!("{} is refused", access.kind.name());
            self.note(access.cache, access.line, Action::Does { what });
        }
    }

    /// Records an access performed in a cache's own copy, with the value of its word, in a complete trace.
    #[cold]
    pub(crate) fn note_performed(&mut self, access: &Pending, copy: Copy) {
        if !self
            .observer
            .trace
            .as_ref()
            .is_some_and(|trace| trace.is_complete)
        {
            return;
        }
        let Pending {
            line, word, kind, ..
        } = *access;
        let value_text = match access.purpose {
            Purpose::Core if kind != Access::WriteLine => {
                format!(
                    " of word {word}: {}",
                    self.contents.data.word(line, copy, word)
                )
            }
            _ => String::new(),
        };
        let what = format!("performs a {}{value_text}", kind.name());
        self.note(access.cache, line, Action::Does { what });
    }

    /// Fails the run, unless it has failed before: the first failure counts.
    #[cold]
    pub(crate) fn fail(&mut self, kind: FailureKind, line: Line, text: String) {
        if self.failure.is_some() {
            return;
        }
        let sequence = self.sequence();
        self.failure = Some(Box::new(Failure {
            kind,
            text,
            line,
            time: self.local.now,
            waits: Vec::new(),
            sequence: sequence.unwrap_or_default(),
        }));
    }

    /// Fails the run because nothing has been performed for too long, with a wait-for report.
    #[cold]
    pub(crate) fn report_no_progress(&mut self) {
        if self.failure.is_some() {
            return;
        }
        let obligations = self
            .application
            .as_ref()
            .map(|application| application.open_obligations());
        let obligations = obligations.unwrap_or_default();
        let mut waits = Vec::new();
        let mut oldest_access: Option<(Time, Line)> = None;
        for (_, access) in self
            .local
            .accesses
            .iter()
            .filter(|(_, access)| access.purpose != Purpose::Hint)
        {
            if oldest_access.is_none_or(|oldest| (access.issued, access.line) < oldest) {
                oldest_access = Some((access.issued, access.line));
            }
        }
        let line = oldest_access
            .map(|(_, line)| line)
            .or(self.device.waiting_line())
            .or(obligations.first().map(|(line, _)| *line))
            .unwrap_or(0);
        waits.extend(
            obligations
                .iter()
                .take(8)
                .map(|(line, obligation)| format!("{obligation} of line {line}")),
        );
        let home = self.home.program.controller().name.clone();
        for remote in self.caches.agents() {
            let configuration = self.caches.configuration(remote, line);
            let state = self.state_text(remote, line, configuration);
            let agent = self.agent_name(remote);
            let accesses = self.local.accesses.iter().filter(|(_, access)| {
                access.purpose != Purpose::Hint && access.line == line && access.cache == remote
            });
            let count = accesses.count();
            let initial_configuration = self.groups.of_cache(remote).initial_configuration;
            let idle = configuration == initial_configuration && count == 0;
            if idle && usize::from(self.groups.caches()) > MAX_LIFELINES {
                continue;
            }
            let mut sentence = format!("{agent} is in {state}");
            if let Some(awaited) = self.awaited_messages(remote, configuration) {
                sentence.push_str(&format!(" and waits for {awaited}"));
            }
            if count > 0 {
                sentence.push_str(&format!(
                    "; {count} of its accesses to the line are outstanding"
                ));
            }
            let translations = self.translations.as_ref();
            let untranslated = translations.map_or(0, |translations| translations.waiting(remote));
            if untranslated > 0 {
                sentence.push_str(&format!(
                    "; {untranslated} of its accesses wait for translations"
                ));
            }
            waits.push(sentence);
        }
        let configuration = self.home.directory.get(line);
        let state = self.state_text(HOME, line, configuration);
        waits.push(format!("{home} is in {state}"));
        for (_, message) in self.local.messages.iter().filter(|(_, m)| m.line == line) {
            let (from, to) = (self.agent_name(message.from), self.agent_name(message.to));
            let message_text = self.message_text(message);
            waits.push(format!("{message_text} from {from} is in flight to {to}"));
        }
        let blocked = self.blocked_input_queues();
        waits.extend(blocked.into_iter().take(MAX_LIFELINES));
        let text = match oldest_access {
            Some((issued, _)) => {
                let obligation = obligations
                    .iter()
                    .find(|(obligation_line, _)| *obligation_line == line);
                let obligation =
                    obligation.map_or(String::new(), |(_, obligation)| format!(": {obligation}"));
                let idle = self.local.now.saturating_sub(self.tally.last_performed) / 1000;
                let issued = issued / 1000;
                format!("no access was performed for {idle} ns; the oldest was issued at {issued} ns{obligation}")
            }
            None if self.application.is_some() => match obligations.first() {
                Some((_, obligation)) => format!("{obligation}, and no other event is pending"),
                None => self
                    .describe_polling_thread()
                    .unwrap_or("the application does not end".to_string()),
            },
            None if self.device.is_done() => "messages wait in input queues forever".to_string(),
            None => "the device's local operations do not end".to_string(),
        };
        self.fail(FailureKind::NoProgress, line, text);
        if let Some(failure) = &mut self.failure {
            failure.waits = waits;
        }
    }
}
