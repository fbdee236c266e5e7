//! Caches and their threads: accesses, deliveries of messages, and the checks of permissions and data.

use super::{
    access_of, reaction, InFlightMessage, Reaction, RunningThread, StepError, Transition,
    MAX_STEPS, PEER_MESSAGES, SENT_STORES, UNSUPPORTED_BUS,
};
use cohkit_application::interface::{Line, Scenario, Step, Thread, Words};
use cohkit_protocol::controller::{Access, Event as Cause};
use cohkit_protocol::execute::{Act, Outcome, Receiver, Trigger};
use cohkit_protocol::protocol::{Class, MessageId, Permission};
use cohkit_protocol::terms::StateId;
use cohkit_system::agent::{self, Bytes, OutgoingMessage, RemoteContext, RowContext, RowProblem};
use std::hash::Hash;

impl<S: Scenario> Transition<'_, '_, S>
where
    S::Application: Clone + Eq + Hash,
    S::Thread: Clone + Eq + Hash,
{
    /// Returns the reaction of a cache to an access or another event without a message; `None` if the cache does not
    /// take it. The state does not change.
    pub(super) fn remote_reaction(
        &self,
        line: Line,
        remote: u8,
        event: Cause,
    ) -> Result<Option<Reaction>, StepError> {
        let trigger = Trigger {
            home: 0,
            event,
            sender: None,
            executing_remote: Some(remote.into()),
            fields: &[],
        };
        Ok(self.remote_outcome(line, remote, trigger)?.1)
    }

    /// Returns the outcome of an event at a cache, and the cache's reaction if it takes the event. The state does not
    /// change.
    pub(super) fn remote_outcome(
        &self,
        line: Line,
        remote: u8,
        trigger: Trigger,
    ) -> Result<(Outcome, Option<Reaction>), StepError> {
        let remote_state = &self.state.lines[line as usize].remotes[usize::from(remote)];
        let protocol = self.static_model.model.protocol;
        let (machine, controller) = (&self.static_model.remote, &protocol.remote);
        reaction(
            protocol,
            machine,
            controller,
            &remote_state.configuration,
            trigger,
        )
    }

    /// Returns true if the protocol's bounds permit the messages that a spontaneous step of a cache sends.
    pub(super) fn within_bounds(&self, line: Line, remote: u8, reaction: &Reaction) -> bool {
        let sent = reaction.acts.iter().filter_map(Act::sent_message);
        let in_flight = |kind| {
            let flights = self.state.lines[line as usize].flights.iter();
            let is_counted =
                |flight: &&InFlightMessage| flight.message == kind && flight.remote == remote;
            flights.filter(is_counted).count()
        };
        let bounds = &self.static_model.model.protocol.bounds;
        bounds.can_start_access(sent, in_flight)
    }

    /// Attempts the access of the thread with this number: performs it, or starts the transaction that it needs.
    /// Returns false if neither is possible.
    pub(super) fn attempt_access(&mut self, thread: usize) -> Result<bool, StepError> {
        let Some(step) = self.state.threads[thread].pending_step else {
            return Ok(false);
        };
        let Some((line, kind)) = access_of(step) else {
            return Ok(false);
        };
        let remote = (thread % usize::from(self.static_model.model.remotes)) as u8;
        let required = match kind {
            Access::Load => Permission::Read,
            _ => Permission::Write,
        };
        let cache = &self.state.lines[line as usize].remotes[usize::from(remote)];
        let permission_before = self.static_model.permission_of(&cache.configuration);
        let reaction = self.remote_reaction(line, remote, Cause::Access(kind))?;
        match reaction {
            Some(reaction) => {
                let permission_after = self.static_model.permission_of(&reaction.next);
                if !self.within_bounds(line, remote, &reaction) {
                    return Ok(false);
                }
                // A row that only retries and changes nothing is not a step.
                if permission_before < required
                    && reaction.acts.is_empty()
                    && reaction.next == cache.configuration
                {
                    return Ok(false);
                }
                self.apply_reaction(line, remote, reaction, None)?;
                // The row itself performs a store.
                if kind == Access::Load
                    && permission_before >= required
                    && permission_after >= required
                {
                    self.perform(thread, line, remote)?;
                }
                Ok(true)
            }
            None if permission_before >= required => {
                self.perform(thread, line, remote)?;
                Ok(true)
            }
            None => Ok(false),
        }
    }

    /// Performs a thread's access in its cache's copy.
    fn perform(&mut self, thread: usize, line: Line, remote: u8) -> Result<(), StepError> {
        let cache = &self.state.lines[line as usize].remotes[usize::from(remote)];
        let (result, words) = self.perform_in(thread, line, cache.words.clone())?;
        self.state.lines[line as usize].remotes[usize::from(remote)].words = Some(words);
        self.advance(thread, result)
    }

    /// Performs a thread's access in a copy, which must hold the last write. Returns the thread's result and the new
    /// copy.
    fn perform_in(
        &mut self,
        thread: usize,
        line: Line,
        copy: Option<Words>,
    ) -> Result<(u64, Words), StepError> {
        let Some(words) = copy else {
            return Err(StepError::Violation(format!(
                "thread {thread} has no data of line {line}"
            )));
        };
        let latest_words = &self.state.lines[line as usize].latest;
        if words != *latest_words {
            return Err(StepError::Violation(format!(
                "thread {thread} finds {words:?} in line {line}, but {latest_words:?} was written last"
            )));
        }
        let (result, words) = self.compute_access(thread, words);
        self.state.lines[line as usize].latest = words.clone();
        Ok((result, words))
    }

    /// Returns the result of a thread's access and the new contents of the line. The result is the old value of the
    /// word, or 0 for a store.
    fn compute_access(&self, thread: usize, mut words: Words) -> (u64, Words) {
        match self.state.threads[thread].pending_step {
            Some(Step::Store { word, value, .. } | Step::Release { word, value, .. }) => {
                words[usize::from(word)] = value;
                (0, words)
            }
            Some(Step::StoreWords {
                word,
                words: count,
                value,
                ..
            }) => {
                words[usize::from(word)..usize::from(word + count)].fill(value);
                (0, words)
            }
            Some(Step::Update { word, update, .. }) => {
                let target = &mut words[usize::from(word)];
                let old_value = *target;
                *target = update.apply(old_value);
                (old_value, words)
            }
            Some(
                Step::Load { word, .. }
                | Step::Acquire { word, .. }
                | Step::LoadExclusive { word, .. },
            ) => (words[usize::from(word)], words),
            _ => (0, words),
        }
    }

    /// Advances a thread to its next access. `result` is that of the access before, or 0.
    ///
    /// # Errors
    /// A step is outside the model, or the thread makes too many steps without an access.
    pub(super) fn advance(&mut self, thread: usize, mut result: u64) -> Result<(), StepError> {
        for _ in 0..MAX_STEPS {
            let running = &mut self.state.threads[thread];
            let step = running.thread.step(std::mem::take(&mut result));
            if let Some(access) = self.specified_access(step) {
                let name = access.name();
                return Err(StepError::Unsupported(format!(
                    "thread {thread}: the specification has a custom access `{name}`, which only simulations support"
                )));
            }
            let running = &mut self.state.threads[thread];
            match step {
                Step::Stop => {
                    running.pending_step = None;
                    return Ok(());
                }
                Step::Prefetch { line } | Step::PrefetchExclusive { line } => {
                    let remote = (thread % usize::from(self.static_model.model.remotes)) as u8;
                    let access = match step {
                        Step::PrefetchExclusive { .. } => Access::Store,
                        _ => Access::Load,
                    };
                    self.check_bounds(thread, line, 0)?;
                    self.prefetch_line(line, remote, access)?;
                }
                Step::Load { line, word }
                | Step::LoadExclusive { line, word }
                | Step::Store { line, word, .. }
                | Step::Acquire { line, word }
                | Step::Release { line, word, .. }
                | Step::Update { line, word, .. } => {
                    running.pending_step = Some(step);
                    return self.check_bounds(thread, line, word);
                }
                Step::StoreWords {
                    line, word, words, ..
                } => {
                    running.pending_step = Some(step);
                    let last = word.saturating_add(words.max(1) - 1);
                    return self.check_bounds(thread, line, last);
                }
                Step::ReadRegister { .. }
                | Step::WriteRegister { .. }
                | Step::LoadHost { .. }
                | Step::AwaitInterrupt
                | Step::StoreHost { .. } => {
                    return Err(StepError::Unsupported(format!(
                        "thread {thread}: {UNSUPPORTED_BUS}"
                    )));
                }
                // Stores are performed in program order here.
                Step::Fence
                | Step::Work(_)
                | Step::Count { .. }
                | Step::Begin
                | Step::End { .. } => {}
            }
        }
        Err(StepError::Violation(format!(
            "thread {thread} makes {MAX_STEPS} steps without an access"
        )))
    }

    /// Returns the protocol's own access for a synchronising step, if any. Such accesses are not explored, because all
    /// accesses are performed in order here.
    fn specified_access(&self, step: Step) -> Option<Access> {
        let access = match step {
            Step::Acquire { .. } => Access::Acquire,
            Step::Release { .. } => Access::Release,
            Step::Fence => Access::Fence,
            _ => return None,
        };
        let mut rules = self.static_model.model.protocol.remote.rules.iter();
        let is_specified = rules.any(|row| row.event == Cause::Access(access));
        is_specified.then_some(access)
    }

    /// Prefetches a line for an access: starts what the access would start, unless the cache has permission or is
    /// blocked.
    fn prefetch_line(&mut self, line: Line, remote: u8, access: Access) -> Result<(), StepError> {
        let cache = &self.state.lines[line as usize].remotes[usize::from(remote)];
        if self.static_model.permission_of(&cache.configuration) >= access.needs() {
            return Ok(());
        }
        let result = self.remote_reaction(line, remote, Cause::Access(access))?;
        match result {
            Some(reaction) if self.within_bounds(line, remote, &reaction) => {
                self.apply_reaction(line, remote, reaction, None)
            }
            _ => Ok(()),
        }
    }

    /// Checks that a thread's access is within the lines and words of the model. `word` is the last word of the
    /// access.
    pub(super) fn check_bounds(
        &self,
        thread: usize,
        line: Line,
        word: u16,
    ) -> Result<(), StepError> {
        match line < self.static_model.model.lines && word < self.static_model.model.words {
            true => Ok(()),
            false => Err(StepError::Violation(format!(
                "thread {thread} accesses word {word} of line {line}; there are {} lines of {} words",
                self.static_model.model.lines, self.static_model.model.words
            ))),
        }
    }

    /// Delivers a message, by its index in the line's flights, to its receiver. Returns false if the receiver stalls
    /// it.
    pub(super) fn deliver_message(&mut self, line: Line, index: usize) -> Result<bool, StepError> {
        let flight = self.state.lines[line as usize].flights[index].clone();
        if !flight.to_home {
            let trigger = Trigger {
                home: 0,
                event: Cause::Message(flight.message),
                sender: None,
                executing_remote: Some(flight.remote.into()),
                fields: &flight.fields,
            };
            let (outcome, reaction) = self.remote_outcome(line, flight.remote, trigger)?;
            let Some(reaction) = reaction else {
                let (name, message) =
                    (self.static_model.remote_name(flight.remote), flight.message);
                return match outcome {
                    Outcome::Stall => Ok(false),
                    _ => Err(StepError::Violation(format!(
                        "{name} has no rule for {} of line {line}",
                        self.static_model.message_name(message)
                    ))),
                };
            };
            self.state.lines[line as usize].flights.remove(index);
            self.apply_reaction(line, flight.remote, reaction, Some(&flight))?;
            return Ok(true);
        }
        let class = self.static_model.model.protocol.class(flight.message);
        let unit_index = self.static_model.unit(line);
        if class == Some(Class::Request) && self.state.units[unit_index].stalled.is_some() {
            return Ok(false);
        }
        // Remove the message before the home sends, because sending moves messages. If the home stalls the message,
        // this is no step.
        self.state.lines[line as usize].flights.remove(index);
        if class != Some(Class::Request) {
            return self.offer_message(line, &flight);
        }
        if !self.offer_message(line, &flight)? {
            // A stalled request leaves its channel: the unit defers it, or it stalls the channel.
            let unit = &mut self.state.units[unit_index];
            match unit.deferred.len() < self.static_model.model.max_deferred {
                true => {
                    unit.deferred.push((line, flight));
                    unit.deferred.sort();
                }
                false => unit.stalled = Some((line, flight)),
            }
        }
        Ok(true)
    }

    /// Applies the reaction of a cache: its copy, its permission and its messages. `message` is the consumed message,
    /// if the event is one.
    pub(super) fn apply_reaction(
        &mut self,
        line: Line,
        remote: u8,
        reaction: Reaction,
        message: Option<&InFlightMessage>,
    ) -> Result<(), StepError> {
        let static_model = self.static_model;
        let own_words = self.state.lines[line as usize].remotes[usize::from(remote)]
            .words
            .clone();
        let carried_words = message.map(|message| message.words.clone());
        let carried_words = carried_words.filter(Option::is_some);
        let plan = &static_model.plans[reaction.rule];
        let mut context = PlayCacheContext {
            transition: self,
            line,
            remote,
            acts: reaction.acts.into_iter(),
            completed: None,
        };
        let words = agent::remote(
            &static_model.facts,
            &plan.effects,
            own_words,
            carried_words,
            &mut context,
        )?;
        let completed = context.completed;
        let cache = &mut self.state.lines[line as usize].remotes[usize::from(remote)];
        (cache.configuration, cache.words) = (reaction.next, words);
        // The thread's next step must find the cache's state after the row.
        if let Some((thread, result)) = completed {
            self.advance(thread, result)?;
        }
        if plan.after.permission > plan.before.permission {
            self.check_permission(line, remote, plan.after.permission)?;
        }
        Ok(())
    }

    /// Returns the number of the thread that waits for an access to a line in a cache; an error if there is none.
    fn waiting_thread(&self, line: Line, remote: u8) -> Result<usize, StepError> {
        let matches_access = |(number, thread): (usize, &RunningThread<S::Thread>)| {
            let access = thread.pending_step.and_then(access_of)?;
            let uses_cache =
                number % usize::from(self.static_model.model.remotes) == usize::from(remote);
            (uses_cache && access.0 == line).then_some(number)
        };
        let thread = self
            .state
            .threads
            .iter()
            .enumerate()
            .find_map(matches_access);
        thread.ok_or_else(|| StepError::Violation(format!("no thread waits for line {line}")))
    }

    /// Checks single writer for a permission that a cache has obtained: against the other caches, and against the
    /// application's lock.
    pub(super) fn check_permission(
        &self,
        line: Line,
        remote: u8,
        permission: Permission,
    ) -> Result<(), StepError> {
        let is_compatible = |other: Permission| {
            other == Permission::None || (permission, other) == (Permission::Read, Permission::Read)
        };
        let line_state = &self.state.lines[line as usize];
        for (number, other) in line_state.remotes.iter().enumerate() {
            let other_permission = self.static_model.permission_of(&other.configuration);
            if number != usize::from(remote) && !is_compatible(other_permission) {
                let (name, other) = (
                    self.static_model.remote_name(remote),
                    self.static_model.remote_name(number as u8),
                );
                return Err(StepError::Violation(format!(
                    "{name} may {permission} line {line} while {other} may {other_permission}"
                )));
            }
        }
        let lock = match self.state.locks.get(&line) {
            Some(Permission::None) => Permission::Write,
            Some(_) => Permission::Read,
            None => Permission::None,
        };
        match is_compatible(lock) {
            true => Ok(()),
            false => Err(StepError::Violation(format!(
                "{} may {permission} line {line} under the lock of {}",
                self.static_model.remote_name(remote),
                self.static_model.name
            ))),
        }
    }

    /// Puts a message between the home and the cache `remote` into its channel, and checks the protocol's bound on
    /// messages in flight.
    pub(super) fn send(
        &mut self,
        line: Line,
        message: MessageId,
        remote: u8,
        to_home: bool,
        fields: Vec<u16>,
        words: Option<Words>,
    ) -> Result<(), StepError> {
        let protocol = self.static_model.model.protocol;
        let flight = InFlightMessage {
            message,
            remote,
            to_home,
            fields,
            words,
        };
        let order = self.static_model.channel_order(message);
        let flights = &mut self.state.lines[line as usize].flights;
        // Messages of unordered channels precede the others, in sorted order.
        let unordered = flights
            .partition_point(|flight| self.static_model.channel_order(flight.message).is_none());
        match order {
            Some(_) => flights.push(flight),
            None => {
                let index = flights[..unordered].partition_point(|other| *other < flight);
                flights.insert(index, flight);
            }
        }
        // Deferred requests still count, because the home has not consumed them.
        let unit = &self.state.units[self.static_model.unit(line)];
        let requests = unit.deferred.iter().chain(&unit.stalled);
        let requests = requests
            .filter(|(request_line, flight)| (*request_line, flight.remote) == (line, remote));
        let in_flight = flights.iter().filter(|flight| flight.remote == remote);
        match protocol
            .bounds
            .exceeded(in_flight.count() + requests.count())
        {
            Some(limit) => {
                let name = self.static_model.remote_name(remote);
                Err(StepError::Violation(format!(
                    "{limit} for line {line}, from or to {name}"
                )))
            }
            None => Ok(()),
        }
    }
}

/// Environment of a cache's row, for [`agent::remote`].
struct PlayCacheContext<'r, 'm, 'a, S: Scenario> {
    /// State that the row changes.
    transition: &'r mut Transition<'m, 'a, S>,
    /// Line of the row.
    line: Line,
    /// Number of the cache.
    remote: u8,
    /// Acts of the row.
    acts: std::vec::IntoIter<Act>,
    /// The thread whose access the row has completed, with its result.
    completed: Option<(usize, u64)>,
}

impl<S: Scenario> RowContext for PlayCacheContext<'_, '_, '_, S>
where
    S::Application: Clone + Eq + Hash,
    S::Thread: Clone + Eq + Hash,
{
    type Copy = Option<Words>;
    type Fields = Vec<u16>;
    type Error = StepError;

    fn next_act(&mut self) -> Option<Act> {
        self.acts.next()
    }

    fn report(&mut self, problem: RowProblem<Option<Words>>) -> Result<(), StepError> {
        let protocol = self.transition.static_model.model.protocol;
        Err(StepError::Violation(problem.violation(protocol).into()))
    }

    fn is_current(&self, copy: &Option<Words>) -> bool {
        copy.as_ref() == Some(&self.transition.state.lines[self.line as usize].latest)
    }

    fn send(&mut self, outgoing: OutgoingMessage<Option<Words>>) -> Result<(), StepError> {
        let static_model = self.transition.static_model;
        let (line, remote) = (self.line, self.remote);
        if outgoing.to != Receiver::Home {
            return Err(StepError::unsupported(PEER_MESSAGES));
        }
        let words = match outgoing.bytes {
            Bytes::None => None,
            Bytes::Line(Some(words)) => Some(words),
            Bytes::Line(None) => {
                let name = static_model.remote_name(remote);
                return Err(StepError::Violation(format!(
                    "{name} sends line {line}, which it does not have"
                )));
            }
            Bytes::Write => return Err(StepError::unsupported(SENT_STORES)),
        };
        let OutgoingMessage {
            message, fields, ..
        } = outgoing;
        self.transition
            .send(line, message, remote, true, fields, words)
    }
}

impl<S: Scenario> RemoteContext for PlayCacheContext<'_, '_, '_, S>
where
    S::Application: Clone + Eq + Hash,
    S::Thread: Clone + Eq + Hash,
{
    fn write(&mut self, copy: Option<Words>) -> Result<Option<Words>, StepError> {
        let thread = self.transition.waiting_thread(self.line, self.remote)?;
        let (result, words) = self.transition.perform_in(thread, self.line, copy)?;
        self.completed = Some((thread, result));
        Ok(Some(words))
    }

    fn read(&mut self, copy: &Option<Words>) -> Result<(), StepError> {
        let thread = self.transition.waiting_thread(self.line, self.remote)?;
        let Some(words) = copy.clone() else {
            return Err(StepError::Violation(format!(
                "thread {thread} reads line {} without bytes",
                self.line
            )));
        };
        let (result, _) = self.transition.compute_access(thread, words);
        self.completed = Some((thread, result));
        Ok(())
    }

    fn complete_sent_write(&mut self, _found: Option<&Self::Copy>) -> Result<(), StepError> {
        Err(StepError::unsupported(SENT_STORES))
    }

    fn abandon_write(&mut self) {}

    // Goals concern a single line, so no protocol with a constructed home has such a row.
    fn bulk_transition(&mut self, from: StateId, to: StateId) -> Result<(), StepError> {
        let states = &self.transition.static_model.model.protocol.remote.states;
        let [from, to] = [from, to].map(|state| &states[state.index()].name);
        Err(StepError::Unsupported(format!(
            "`every {from} becomes {to}` changes all lines, and cannot be explored"
        )))
    }
}
