//! Threads of a scenario on their cores. Each executes one step after the other.

use cohkit_application::interface::{PageFault, Step, Update};
use cohkit_protocol::controller::Access;
use cohkit_protocol::orders::{Issue, Orders};
use cohkit_protocol::protocol::Protocol;
use cohkit_protocol::remotes::KindId;
use cohkit_protocol::threads::Accesses;

use super::scenario_state::ScenarioState;
use crate::explain::FailureKind;
use crate::kernel::Time;
use crate::message::{CoreId, Line};
use crate::simulation::{Context, NewAccess, Purpose};

/// Upper bound for requested times, in picoseconds: about 107 days. A later time is reported as a mistake.
pub(crate) const MAX_REQUESTED_TIME: Time = 1 << 63;

/// Maximum number of consecutive steps that take no time. More are reported as a thread that never makes an access.
pub(crate) const MAX_UNTIMED_STEPS: u32 = 1 << 20;

/// Threads of a scenario in a run, and the scenario, which its application shares.
pub(crate) struct Threads {
    /// Programs of the threads and of the application, and their measurements.
    pub scenario: ScenarioState,
    /// States by thread number, which is also the number of its core.
    pub states: Vec<ThreadState>,
    /// Access kinds with which threads read, write and fence, by kind of caching agent.
    pub accesses: Vec<Accesses>,
    /// Program order that threads keep, if the protocol declares one. Without one, a thread waits for each of its
    /// stores.
    orders: Option<Orders>,
    /// True if the host's memory is a separate space, which threads access without a bus.
    pub has_host_space: bool,
}

/// State of a thread in a run.
#[derive(Clone)]
pub(crate) struct ThreadState {
    /// The step in progress.
    pub step: Step,
    /// Result of its last access, which the program receives with its next step; 0 if there is none.
    pub result: u64,
    /// Start of the duration that the thread measures, in picoseconds.
    pub measurement_start: Time,
    /// Outstanding stores that the thread does not wait for, releases included, in program order.
    pub posted: Vec<(Line, Issue)>,
    /// True if the step is to be executed as it is when the thread continues. Either it waits for a posted store,
    /// or it replaces a refused step.
    pub repeats_step: bool,
    /// Time since when the step has waited for a posted store, in picoseconds; meaningless if it does not wait.
    pub blocked_since: Time,
    /// Number of outstanding prefetches.
    pub prefetches: u32,
    /// True if the thread waits for all its stores.
    pub awaits_stores: bool,
    /// True if the step is an acquiring load: caches receive an acquire when it has ended.
    pub is_acquiring: bool,
    /// Time since when the thread waits for a register read or for the host's memory, in picoseconds; `None` if it
    /// does not wait.
    pub reading_since: Option<Time>,
    /// Time from which the thread may handle an interrupt that it has not consumed yet, in picoseconds; `None` if
    /// there is no interrupt.
    pub pending_interrupt: Option<Time>,
    /// True if the thread waits for an interrupt.
    pub awaits_interrupt: bool,
    /// True if the thread makes no more steps.
    pub stopped: bool,
}

impl ThreadState {
    /// Creates a thread that has not started.
    fn new() -> ThreadState {
        ThreadState {
            step: Step::Stop,
            result: 0,
            measurement_start: 0,
            posted: Vec::new(),
            repeats_step: false,
            blocked_since: 0,
            prefetches: 0,
            awaits_stores: false,
            is_acquiring: false,
            reading_since: None,
            pending_interrupt: None,
            awaits_interrupt: false,
            stopped: false,
        }
    }
}

/// Next action of a thread.
pub(crate) enum ThreadAction {
    /// The thread continues at this time.
    Continue(Time),
    /// The thread waits, or has stopped.
    Wait,
    /// The thread executes its step on a register or the CPU's own memory at this time.
    Host(Time),
    /// The thread waits for its buffered stores, and for a fence of its cache.
    Fence,
    /// The thread issues an access. It continues past posted stores and prefetches, and waits for all others.
    Access(NewAccess),
}

/// Returns the line of a thread's access and its kind in the program order; 0 is the line of a fence, which has none.
fn program_order_entry(step: &Step) -> Option<(Line, Issue)> {
    Some(match *step {
        Step::Load { line, .. } => (line, Issue::Load),
        Step::Store { line, .. }
        | Step::StoreWords { line, .. }
        | Step::LoadExclusive { line, .. }
        | Step::Update { line, .. } => (line, Issue::Store),
        Step::Acquire { line, .. } => (line, Issue::Acquire),
        Step::Release { line, .. } => (line, Issue::Release),
        Step::Fence => (0, Issue::Fence),
        _ => return None,
    })
}

impl Threads {
    /// Creates threads that have not started.
    pub fn new(scenario: ScenarioState, protocol: &Protocol) -> Threads {
        let kinds = (0..protocol.kinds.len() as u8).map(KindId);
        Threads {
            states: vec![ThreadState::new(); scenario.run.threads()],
            scenario,
            accesses: kinds
                .map(|kind| Accesses::of_kind(protocol, kind))
                .collect(),
            orders: protocol.program_order,
            has_host_space: false,
        }
    }

    /// True if a thread has not stopped.
    pub fn is_running(&self) -> bool {
        self.states.iter().any(|thread| !thread.stopped)
    }

    /// Returns a thread that polls a word of the CPU's own memory, if there is one.
    pub fn polling_thread(&self) -> Option<usize> {
        let polling_thread =
            |thread: &ThreadState| !thread.stopped && matches!(thread.step, Step::LoadHost { .. });
        self.states.iter().position(polling_thread)
    }

    /// Returns a thread that waits for an interrupt, if there is one.
    pub fn thread_awaiting_interrupt(&self) -> Option<usize> {
        let awaits_interrupt = |thread: &ThreadState| !thread.stopped && thread.awaits_interrupt;
        self.states.iter().position(awaits_interrupt)
    }

    /// Returns a core that has waited for a register since `latest` or earlier, as an access to line 0.
    pub fn overdue_register_read(&self, latest: Time) -> Option<(Line, CoreId, Time)> {
        let mut threads = self.states.iter().zip(0..);
        threads.find_map(|(thread, core)| {
            let since = thread.reading_since.filter(|&since| since <= latest)?;
            Some((0, CoreId(core), since))
        })
    }

    /// Stops the threads that wait for interrupts, even if no interrupt arrives any more.
    pub fn stop_awaiting_threads(&mut self) {
        let threads = self.states.iter_mut();
        for thread in threads.filter(|thread| thread.awaits_interrupt) {
            thread.stopped = true;
        }
    }

    /// Returns an access of a core that concerns no line.
    pub fn access_without_line(core: CoreId, kind: Access) -> NewAccess {
        NewAccess {
            line: 0,
            kind,
            word: 0,
            core,
            purpose: Purpose::Core,
        }
    }

    /// Starts a thread's next step at `time`, and executes it if it concerns the thread alone.
    pub fn advance(&mut self, context: &mut Context, core: CoreId, time: Time) -> ThreadAction {
        let thread_index = core.index();
        let group = context.tables.groups.of_core(core);
        let Some(thread) = self.states.get_mut(thread_index) else {
            return ThreadAction::Wait;
        };
        if thread.stopped {
            return ThreadAction::Wait;
        }
        if std::mem::take(&mut thread.is_acquiring) {
            let kind = context.tables.groups.kind_of(core);
            if let Some(access) = self.accesses[kind].acquire_fence {
                return ThreadAction::Access(Threads::access_without_line(core, access));
            }
        }
        let result = std::mem::take(&mut thread.result);
        let step = match std::mem::take(&mut thread.repeats_step) {
            true => thread.step,
            false => self.scenario.run.step(thread_index, result),
        };
        // Counts and durations of completed steps are still recorded, but no new step starts.
        let starts_work = !matches!(step, Step::Count { .. } | Step::Begin | Step::End { .. });
        if starts_work && time >= self.scenario.until {
            thread.stopped = true;
            return ThreadAction::Wait;
        }
        thread.step = step;
        if self.must_wait_for_posted(group.posted as usize, core, &step, time) {
            return ThreadAction::Wait;
        }
        let thread = &mut self.states[thread_index];
        match step {
            Step::Stop => thread.stopped = true,
            Step::Work(duration) => return work(context, core, time, duration),
            Step::Begin => thread.measurement_start = time,
            Step::End { name } => {
                let since = thread.measurement_start;
                self.scenario.record_duration(name, since, time);
            }
            Step::Count { name, by } => self.scenario.add_count(name, by, time),
            Step::Fence => return ThreadAction::Fence,
            Step::LoadHost { .. } | Step::StoreHost { .. } if self.has_host_space => {
                return ThreadAction::Host(time);
            }
            Step::ReadRegister { .. }
            | Step::WriteRegister { .. }
            | Step::LoadHost { .. }
            | Step::StoreHost { .. } => return ThreadAction::Host(time + group.request),
            Step::AwaitInterrupt => {
                return match std::mem::take(&mut thread.pending_interrupt) {
                    Some(since) => ThreadAction::Continue(time.max(since)),
                    None => {
                        thread.awaits_interrupt = true;
                        ThreadAction::Wait
                    }
                }
            }
            Step::Prefetch { .. } | Step::PrefetchExclusive { .. }
                if !self.begin_prefetch(context, core) => {}
            _ => return self.access(context, core, &step),
        }
        ThreadAction::Continue(time)
    }

    /// Returns the access of a step that has one.
    fn access(&mut self, context: &mut Context, core: CoreId, step: &Step) -> ThreadAction {
        let thread_index = core.index();
        let groups = &context.tables.groups;
        let accesses = self.accesses[groups.kind_of(core)];
        let can_post = self.orders.is_some() && groups.of_core(core).posted > 0;
        let write_purpose = if can_post {
            Purpose::Posted
        } else {
            Purpose::Core
        };
        let scenario_access = || self.scenario.run.write_access(thread_index);
        let (kind, purpose, verb) = match *step {
            // Where stores are sent to the home, there is no write permission to request.
            Step::PrefetchExclusive { .. } if !context.tables.caches_send_stores => {
                (Some(Access::Store), Purpose::Hint, "writes")
            }
            Step::Prefetch { .. } | Step::PrefetchExclusive { .. } => {
                (Some(Access::Load), Purpose::Hint, "reads")
            }
            Step::Load { .. } => (accesses.read, Purpose::Core, "reads"),
            Step::Acquire { .. } => (accesses.acquire, Purpose::Core, "reads"),
            Step::Store { .. } | Step::StoreWords { .. } => (
                scenario_access().or(accesses.write),
                write_purpose,
                "writes",
            ),
            Step::Release { .. } => (
                scenario_access().or(accesses.release),
                write_purpose,
                "writes",
            ),
            _ => {
                let is_update = matches!(step, Step::Update { .. });
                let access = match (scenario_access(), accesses.atomic) {
                    (Some(scenario_access), _) => scenario_access,
                    (None, Some(Access::Atomic)) if is_update => Access::Atomic,
                    // In a copy of the cache's own, independent of how the protocol treats stores.
                    _ => accesses.write_back.unwrap_or(Access::Store),
                };
                (Some(access), Purpose::Atomic, "writes")
            }
        };
        let (line, word) = location(step);
        let thread = &mut self.states[thread_index];
        thread.is_acquiring = matches!(step, Step::Acquire { .. });
        if purpose == Purpose::Posted {
            thread.posted.extend(program_order_entry(step));
        }
        let Some(kind) = kind else {
            let text = format!("thread {core}: the protocol has no access that {verb}");
            context.fail(FailureKind::Contract, line, text);
            return ThreadAction::Wait;
        };
        ThreadAction::Access(NewAccess {
            line,
            kind,
            word,
            core,
            purpose,
        })
    }

    /// True if a step must wait for an outstanding store of its thread. It waits for a store before it in the declared
    /// order, for one to the same line, or for any if the maximum is outstanding. The step is retried when a store has
    /// ended.
    fn must_wait_for_posted(
        &mut self,
        max_posted: usize,
        core: CoreId,
        step: &Step,
        time: Time,
    ) -> bool {
        let Some(orders) = self.orders else {
            return false;
        };
        let Some(thread) = self.states.get_mut(core.index()) else {
            return false;
        };
        let (Some((line, later)), false) = (program_order_entry(step), thread.posted.is_empty())
        else {
            return false;
        };
        let is_full =
            thread.posted.len() >= max_posted && matches!(later, Issue::Store | Issue::Release);
        // An atomic access also reads.
        let also_reads = matches!(step, Step::Update { .. } | Step::LoadExclusive { .. });
        let mut posted_stores = thread.posted.iter();
        let must_wait = is_full
            || posted_stores.any(|&(earlier_line, earlier)| {
                // As in litmus tests, an acquire does not pass an earlier release (RCsc).
                (earlier, later) == (Issue::Release, Issue::Acquire)
                    || orders.waits(earlier, later)
                    || also_reads && orders.waits(earlier, Issue::Load)
                    || earlier_line == line && later != Issue::Fence
            });
        if must_wait {
            thread.repeats_step = true;
            thread.blocked_since = time;
        }
        must_wait
    }

    /// Ends a posted store of a core's thread. Returns the time at which the thread continues, in picoseconds, if
    /// it waited for a posted store.
    pub fn complete_posted(
        &mut self,
        context: &mut Context,
        core: CoreId,
        line: Line,
    ) -> Option<Time> {
        let thread = self.states.get_mut(core.index())?;
        let mut posted = thread.posted.iter();
        if let Some(position) = posted.position(|&(posted_line, _)| posted_line == line) {
            thread.posted.remove(position);
        }
        thread.repeats_step.then(|| {
            let time = context.now().max(thread.blocked_since);
            context.tally.counters.posted_waited += time - thread.blocked_since;
            time
        })
    }

    /// Counts a prefetch of a core's thread. Returns false if it is dropped, since the thread has as many outstanding
    /// prefetches as leave room for one other access.
    fn begin_prefetch(&mut self, context: &mut Context, core: CoreId) -> bool {
        let limit = context.tables.groups.of_core(core).thread_accesses - 1;
        let Some(thread) = self.states.get_mut(core.index()) else {
            return false;
        };
        let is_admitted = thread.prefetches < limit;
        thread.prefetches += u32::from(is_admitted);
        context.tally.counters.prefetches_dropped += u64::from(!is_admitted);
        is_admitted
    }

    /// Ends a prefetch of a core's thread.
    pub fn end_prefetch(&mut self, core: CoreId) {
        if let Some(thread) = self.states.get_mut(core.index()) {
            thread.prefetches -= 1;
        }
    }

    /// Removes a thread's last posted store to a line, which was refused.
    pub fn remove_posted(&mut self, core: CoreId, line: Line) {
        if let Some(thread) = self.states.get_mut(core.index()) {
            let mut posted = thread.posted.iter();
            let position = posted.rposition(|&(posted_line, _)| posted_line == line);
            position.map(|position| thread.posted.remove(position));
        }
    }

    /// Lets a thread wait for all its buffered stores.
    pub fn wait_for_stores(&mut self, core: CoreId) {
        self.states[core.index()].awaits_stores = true;
    }

    /// Ends a thread's wait for its buffered stores. Returns true if it waited.
    pub fn end_wait_for_stores(&mut self, core: CoreId) -> bool {
        let thread = self.states.get_mut(core.index());
        thread.is_some_and(|thread| std::mem::take(&mut thread.awaits_stores))
    }

    /// Sets the step that follows a refused access. Returns false if the thread does not handle page faults.
    pub fn set_step_after_refusal(&mut self, core: CoreId, refusal: PageFault) -> bool {
        let step = self.scenario.run.handle_page_fault(core.index(), refusal);
        let (Some(thread), Some(step)) = (self.states.get_mut(core.index()), step) else {
            return false;
        };
        (thread.step, thread.repeats_step) = (step, true);
        (thread.result, thread.is_acquiring) = (0, false);
        true
    }

    /// Sets the result of a thread's access.
    #[inline]
    pub fn set_result(&mut self, core: CoreId, value: u64) {
        if let Some(thread) = self.states.get_mut(core.index()) {
            thread.result = value;
        }
    }

    /// Returns the step in progress of a core's thread, if there is one.
    fn step(&self, core: CoreId) -> Option<Step> {
        Some(self.states.get(core.index())?.step)
    }

    /// True if a core's write in progress is a release of its thread.
    pub fn is_release(&self, core: CoreId) -> bool {
        matches!(self.step(core), Some(Step::Release { .. }))
    }

    /// True if a core's read in progress is an acquire of its thread.
    pub fn is_acquire(&self, core: CoreId) -> bool {
        matches!(self.step(core), Some(Step::Acquire { .. }))
    }

    /// Returns the number of words that a thread writes in one access.
    pub fn written_words(&self, core: CoreId) -> u16 {
        match self.step(core) {
            Some(Step::StoreWords { words, .. }) => words.max(1),
            _ => 1,
        }
    }

    /// Returns the new value that an atomic access of a core's thread writes; `None` if the access only reads.
    pub fn updated_value(&self, core: CoreId, word: u64) -> Option<u64> {
        match self.step(core)? {
            Step::Update { update, .. } => match update {
                Update::CompareSwap { old, .. } if old != word => None,
                update => Some(update.apply(word)),
            },
            _ => None,
        }
    }

    /// Returns the value that a thread's store writes.
    pub fn stored_value(&self, core: CoreId) -> Option<u64> {
        match self.step(core)? {
            Step::Store { value, .. }
            | Step::StoreWords { value, .. }
            | Step::Release { value, .. } => Some(value),
            _ => None,
        }
    }
}

/// Returns the line and the word of a step's access.
fn location(step: &Step) -> (Line, u16) {
    match *step {
        Step::Prefetch { line } | Step::PrefetchExclusive { line } => (line, 0),
        Step::Load { line, word }
        | Step::Acquire { line, word }
        | Step::Store { line, word, .. }
        | Step::StoreWords { line, word, .. }
        | Step::Release { line, word, .. }
        | Step::LoadExclusive { line, word }
        | Step::Update { line, word, .. } => (line, word),
        _ => (0, 0),
    }
}

/// Executes a thread's work of this duration, in picoseconds, from `time` on. Fails the run if the work ends beyond
/// simulated time.
fn work(context: &mut Context, core: CoreId, time: Time, duration: Time) -> ThreadAction {
    let end = time.checked_add(duration);
    let Some(end) = end.filter(|end| *end < MAX_REQUESTED_TIME) else {
        let text = format!(
            "thread {core} works for {duration} ps, which is beyond the end of simulated time"
        );
        context.fail(FailureKind::Contract, 0, text);
        return ThreadAction::Wait;
    };
    // Shorter work needs no watchdog extension, and a polling thread may repeat it without end.
    if end.saturating_sub(context.now()) > context.tables.times.progress_timeout {
        context.tally.postpone_watchdog(end);
    }
    ThreadAction::Continue(end)
}
