//! Detection of runs that make no progress, with a wait-for report.

use super::*;
use crate::agents::program::Answer;
use crate::agents::thread::Threads;
use crate::explain::MAX_LIFELINES;

/// Maximum number of obligations of an application in a report, to keep it short.
const MAX_OBLIGATIONS: usize = 8;

impl Simulation {
    /// True if accesses, local operations, the application or queued messages are not finished.
    pub(crate) fn has_unfinished_work(&self) -> bool {
        let has_waiting_thread = |threads: &Threads| {
            threads.polling_thread().is_some() || threads.thread_awaiting_interrupt().is_some()
        };
        let threads = self.frontend.threads.as_deref();
        let application = self.application.as_deref().zip(threads);
        self.tally.in_flight > 0
            || !self.device.is_done()
            || application.is_some_and(|(application, threads)| {
                !application.is_done(&threads.scenario) || has_waiting_thread(threads)
            })
            || self.interconnect.input_queues.has_messages()
    }

    /// Fails the run if an access has exceeded the timeout of its core. Otherwise schedules the next check while
    /// anything is unfinished.
    ///
    /// Checks are periodic while an application runs, since it may wait for the access. Any late access is also
    /// detected at its end.
    pub(super) fn check_timeouts(&mut self) {
        let (now, timeout) = (self.local.now, self.tables.times.timeout);
        let overdue = self.local.accesses.iter().find(|(_, access)| {
            access.purpose != Purpose::Hint && now.saturating_sub(access.issued) >= timeout
        });
        let overdue = overdue.map(|(_, access)| (access.line, access.core, access.issued));
        let threads = self.frontend.threads.as_deref();
        let overdue = overdue.or_else(|| {
            threads.and_then(|threads| threads.overdue_register_read(now.saturating_sub(timeout)))
        });
        if let Some((line, core, issued)) = overdue {
            (self.frontend).report_timeout(&mut context!(self), line, core, issued);
        } else if self.has_unfinished_work() || threads.is_some_and(Threads::is_running) {
            self.start_timeout_checks();
        }
    }

    /// Schedules the next check for timed-out accesses.
    pub(crate) fn start_timeout_checks(&mut self) {
        let times = &self.tables.times;
        let interval = times.progress_timeout.min(times.timeout / 4);
        let next = self.local.now + interval.max(1);
        self.local.queue.push(next, Event::Overdue);
    }

    /// Returns the time of issue and the line of the oldest outstanding access, prefetches excluded.
    fn oldest_access(&self) -> Option<(Time, Line)> {
        let accesses = self.local.accesses.iter();
        let accesses = accesses.filter(|(_, access)| access.purpose != Purpose::Hint);
        accesses
            .map(|(_, access)| (access.issued, access.line))
            .min()
    }

    /// Fails the run because nothing has been performed for too long, with a wait-for report.
    #[cold]
    pub(crate) fn report_no_progress(&mut self) {
        if self.failure.is_some() {
            return;
        }
        let threads = self.frontend.threads.as_ref();
        let obligations = threads.map(|threads| threads.scenario.open_obligations());
        let obligations = obligations.unwrap_or_default();
        let oldest_access = self.oldest_access();
        let line = oldest_access
            .map(|(_, line)| line)
            .or(self.device.waiting_line())
            .or(obligations.first().map(|(line, _)| *line))
            .unwrap_or(0);
        let first_obligations = obligations.iter().take(MAX_OBLIGATIONS);
        let mut waits: Vec<String> = first_obligations
            .map(|(line, obligation)| format!("{obligation} of line {line}"))
            .collect();
        let caches = self.caches.agents();
        waits.extend(caches.filter_map(|cache| self.describe_cache(cache, line)));
        let home = &self.home.executor.program.controller().name;
        let state = self
            .home
            .state_text(&self.tables, line, self.home.directory.get(line));
        waits.push(format!("{home} is in {state}"));
        let messages = self.local.messages.iter();
        for (_, message) in messages.filter(|(_, message)| message.line == line) {
            let tables = &self.tables;
            let (from, to) = (
                tables.agent_name(message.from),
                tables.agent_name(message.to),
            );
            let message_text = tables.message_text(message);
            waits.push(format!("{message_text} from {from} is in flight to {to}"));
        }
        let blocked = self.describe_blocked_input_queues();
        waits.extend(blocked.into_iter().take(MAX_LIFELINES));
        let text = self.describe_no_progress(oldest_access, &obligations, line);
        context!(self).fail(FailureKind::NoProgress, line, text);
        if let Some(failure) = &mut self.failure {
            failure.wait_for = waits;
        }
    }

    /// Describes a cache's state, and the messages, accesses and translations that it waits for. `None` if it waits for
    /// nothing and the machine has more than [`MAX_LIFELINES`] caches.
    fn describe_cache(&self, cache: Agent, line: Line) -> Option<String> {
        let (tables, executor) = (&self.tables, &self.caches.executor);
        let configuration = self.caches.configuration(cache, line);
        let accesses = self.local.accesses.iter();
        let accesses = accesses.filter(|(_, access)| {
            access.purpose != Purpose::Hint && (access.line, access.cache) == (line, cache)
        });
        let count = accesses.count();
        let initial_configuration = tables.groups.of_cache(cache).initial_configuration;
        let is_idle = configuration == initial_configuration && count == 0;
        if is_idle && usize::from(tables.groups.caches()) > MAX_LIFELINES {
            return None;
        }
        let state = self.caches.state_text(tables, cache, configuration);
        let mut sentence = format!("{} is in {state}", tables.agent_name(cache));
        if let Some(awaited) = executor.awaited_messages(tables, configuration) {
            sentence.push_str(&format!(" and waits for {awaited}"));
        }
        if count > 0 {
            sentence.push_str(&format!(
                "; {count} of its accesses to the line are outstanding"
            ));
        }
        let translations = self.frontend.translations.as_ref();
        let untranslated = translations.map_or(0, |translations| translations.waiting(cache));
        if untranslated > 0 {
            sentence.push_str(&format!(
                "; {untranslated} of its accesses wait for translations"
            ));
        }
        Some(sentence)
    }

    /// Describes why the run makes no progress, in a clause for the failure. `line` is the one that the report is
    /// about.
    fn describe_no_progress(
        &self,
        oldest_access: Option<(Time, Line)>,
        obligations: &[(Line, String)],
        line: Line,
    ) -> String {
        let idle = self.local.now.saturating_sub(self.tally.last_performed) / 1000;
        if let Some((issued, _)) = oldest_access {
            let mut obligations = obligations.iter();
            let obligation = obligations.find(|(obligation_line, _)| *obligation_line == line);
            let obligation =
                obligation.map_or(String::new(), |(_, obligation)| format!(": {obligation}"));
            let issued = issued / 1000;
            return format!("no access was performed for {idle} ns; the oldest was issued at {issued} ns{obligation}");
        }
        let Some(threads) = &self.frontend.threads else {
            return match self.device.is_done() {
                true => "messages wait in input queues forever".to_string(),
                false => "the device's local operations do not end".to_string(),
            };
        };
        if let Some((_, obligation)) = obligations.first() {
            return format!("{obligation}, and no other event is pending");
        }
        let name = &threads.scenario.name;
        if let Some(thread) = threads.thread_awaiting_interrupt() {
            return format!(
                "thread {thread} waits for an interrupt, and {name} has no pending event"
            );
        }
        match threads.polling_thread() {
            Some(thread) => format!(
                "thread {thread} polls the CPU's own memory, into which {name} has written nothing for {idle} ns"
            ),
            None => "the application does not end".to_string(),
        }
    }

    /// Describes the blocked input queues: the first message of each, the reason why it is not taken, and the agents
    /// that wait for room.
    fn describe_blocked_input_queues(&mut self) -> Vec<String> {
        let (caches, home) = (&mut self.caches, &mut self.home);
        let (queues, tables) = (&self.interconnect.input_queues, &self.tables);
        let names = &tables.names.local_lifelines;
        queues.describe_blocked(tables, &self.local.messages, |message| {
            let (agent, line) = (message.to, message.line);
            let input = Input::from_message(message);
            let home_number = tables.home_of(line);
            let (executor, number, configuration) = match agent {
                HOME => (&mut home.executor, home_number, home.directory.get(line)),
                cache => {
                    let configuration = caches.configuration(cache, line);
                    (&mut caches.executor, cache.index(), configuration)
                }
            };
            let transition = executor.step(number, home_number, configuration, &input);
            let program = &executor.program;
            let full_queue = match transition.answer {
                Answer::Take => {
                    queues.full_queue(tables, program, line, &transition, Some(message))
                }
                _ => None,
            };
            if let Some(full_queue) = full_queue {
                let (network, receiver) = queues.owner(full_queue);
                let (name, receiver) = (&network.name, &names[receiver]);
                return format!("its row waits for room in network {name} at {receiver}");
            }
            let receiver = &names[tables.agent_number(agent, line)];
            let state = executor.state_text(tables, number, configuration);
            match executor.awaited_messages(tables, configuration) {
                Some(awaited) => format!("{receiver} is in {state} and waits for {awaited}"),
                None => format!("{receiver} is in {state}"),
            }
        })
    }
}
