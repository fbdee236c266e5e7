//! Threads of a scenario on their cores. Each executes one step after the other.

use cohkit_application::interface::{Step, Update};
use cohkit_protocol::controller::Access;
use cohkit_protocol::orders::Issue;

use crate::agents::application::{ThreadState, MAX_REQUESTED_TIME};
use crate::explain::FailureKind;
use crate::kernel::Time;
use crate::message::Line;
use crate::simulation::{Event as KernelEvent, Pending, Purpose, Simulation};

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

/// Maximum number of consecutive steps that take no time.
const MAX_UNTIMED_STEPS: u32 = 1 << 20;

impl Simulation {
    /// Continues a core's thread at a time that is not in the past.
    pub(crate) fn continue_thread(&mut self, core: u16, mut time: Time) {
        let thread_index = usize::from(core);
        let kind = self.groups.kind_of(core);
        for _ in 0..MAX_UNTIMED_STEPS {
            let Some(application) = &mut self.application else {
                return;
            };
            let accesses = application.accesses[kind];
            let Some(thread) = application.threads.get_mut(thread_index) else {
                return;
            };
            if thread.stopped {
                return;
            }
            if std::mem::take(&mut thread.is_acquiring) {
                if let Some(access) = accesses.acquire_fence {
                    return self.issue_thread_access(core, (0, 0), access, Purpose::Core, time);
                }
            }
            let result = std::mem::take(&mut thread.result);
            let step = match std::mem::take(&mut thread.repeats_step) {
                true => thread.step,
                false => application.scenario_run.step(thread_index, result),
            };
            let thread = &mut application.threads[thread_index];
            // Counts and durations of completed steps are still recorded, but no new step starts.
            let starts_work = !matches!(step, Step::Count { .. } | Step::Begin | Step::End { .. });
            if starts_work && time >= application.until {
                thread.stopped = true;
                return;
            }
            thread.step = step;
            if self.must_wait_for_posted(core, &step, time) {
                return;
            }
            let Some(application) = &mut self.application else {
                return;
            };
            let thread = &mut application.threads[thread_index];
            match step {
                Step::Stop => thread.stopped = true,
                Step::Work(duration) => {
                    let Some(end) = time
                        .checked_add(duration)
                        .filter(|end| *end < MAX_REQUESTED_TIME)
                    else {
                        let text = format!("thread {core} works for {duration} ps, which is beyond the end of simulated time");
                        return self.fail(FailureKind::Contract, 0, text);
                    };
                    time = end;
                    // Shorter work needs no watchdog extension, and a polling thread may repeat it without end.
                    if time.saturating_sub(self.local.now) > self.tables.times.progress_timeout {
                        self.postpone_watchdog(time);
                    }
                }
                Step::Begin => thread.measurement_start = time,
                Step::End { what } => {
                    let since = thread.measurement_start;
                    application.record_duration(what, since, time);
                }
                Step::Count { what, by } => application.add_count(what, by, time),
                Step::Fence => {
                    if self.has_buffered_stores(core) {
                        if let Some(application) = &mut self.application {
                            application.threads[thread_index].awaits_stores = true;
                        }
                        return;
                    }
                    if self.issue_fence(core, time) {
                        return;
                    }
                }
                Step::LoadHost { .. } | Step::StoreHost { .. }
                    if application.host_path.is_some() =>
                {
                    return self.local.queue.push(time, KernelEvent::HostStep(core));
                }
                Step::ReadRegister { .. }
                | Step::WriteRegister { .. }
                | Step::LoadHost { .. }
                | Step::StoreHost { .. } => {
                    let time = time + self.groups.of_core(core).request;
                    return self.local.queue.push(time, KernelEvent::HostStep(core));
                }
                Step::AwaitInterrupt => match std::mem::take(&mut thread.pending_interrupt) {
                    Some(since) => time = time.max(since),
                    None => {
                        thread.awaits_interrupt = true;
                        return;
                    }
                },
                Step::Hint { line } => {
                    self.issue_thread_access(core, (line, 0), Access::Load, Purpose::Hint, time);
                }
                Step::Load { line, word } => {
                    let location = (line, word);
                    let access = accesses.read;
                    return self.issue_word_access(core, location, (access, "reads"), time);
                }
                Step::Store { line, word, .. } | Step::StoreWords { line, word, .. } => {
                    let scenario_access = application.scenario_run.write_access(thread_index);
                    let access = (scenario_access.or(accesses.write), "writes");
                    match self.issue_thread_write(core, (line, word), access, time) {
                        Some(continue_time) => time = continue_time,
                        None => return,
                    }
                }
                Step::Acquire { line, word } => {
                    thread.is_acquiring = true;
                    let location = (line, word);
                    let access = accesses.acquire;
                    return self.issue_word_access(core, location, (access, "reads"), time);
                }
                Step::Release { line, word, .. } => {
                    let scenario_access = application.scenario_run.write_access(thread_index);
                    let access = (scenario_access.or(accesses.release), "writes");
                    match self.issue_thread_write(core, (line, word), access, time) {
                        Some(continue_time) => time = continue_time,
                        None => return,
                    }
                }
                Step::LoadExclusive { line, word } | Step::Update { line, word, .. } => {
                    let location = (line, word);
                    let purpose = Purpose::Atomic;
                    let update = matches!(step, Step::Update { .. });
                    let access = match (
                        application.scenario_run.write_access(thread_index),
                        accesses.atomic,
                    ) {
                        (Some(scenario_access), _) => scenario_access,
                        (None, Some(Access::Atomic)) if update => Access::Atomic,
                        // In a copy of the cache's own, independent of how the protocol treats stores.
                        _ => accesses.write_back.unwrap_or(Access::Store),
                    };
                    return self.issue_thread_access(core, location, access, purpose, time);
                }
            }
        }
        let text = format!("thread {core} makes {MAX_UNTIMED_STEPS} steps without an access");
        self.fail(FailureKind::Contract, 0, text);
    }

    /// Issues an access of a thread to a word, if the protocol has such an access.
    fn issue_word_access(
        &mut self,
        core: u16,
        location: (Line, u16),
        access: (Option<Access>, &str),
        time: Time,
    ) {
        self.issue_access_with_purpose(core, location, access, Purpose::Core, time);
    }

    fn issue_access_with_purpose(
        &mut self,
        core: u16,
        (line, word): (Line, u16),
        (access, verb): (Option<Access>, &str),
        purpose: Purpose,
        time: Time,
    ) {
        let Some(access) = access else {
            let text = format!("thread {core}: the protocol has no access that {verb}");
            return self.fail(FailureKind::Contract, line, text);
        };
        self.issue_thread_access(core, (line, word), access, purpose, time);
    }

    /// Issues a write of a thread. Returns when the thread continues, if it does not wait for the write.
    fn issue_thread_write(
        &mut self,
        core: u16,
        location: (Line, u16),
        access: (Option<Access>, &str),
        time: Time,
    ) -> Option<Time> {
        if !self.can_post_stores(core) {
            self.issue_word_access(core, location, access, time);
            return None;
        }
        let thread = self.thread_state_of(core)?;
        thread.posted.extend(program_order_entry(&thread.step));
        self.issue_access_with_purpose(core, location, access, Purpose::Posted, time);
        let cache = self.cache_of(core);
        if (self.translations.as_ref()).is_some_and(|translations| translations.has(cache)) {
            // The thread continues as soon as its store has been translated.
            return None;
        }
        (self.failure.is_none()).then(|| time + self.groups.of_core(core).work)
    }

    fn thread_state_of(&mut self, core: u16) -> Option<&mut ThreadState> {
        let threads = &mut self.application.as_mut()?.threads;
        threads.get_mut(usize::from(core))
    }

    /// True if a core's thread continues past outstanding stores. This requires a protocol that declares the program
    /// order.
    fn can_post_stores(&self, core: u16) -> bool {
        let orders = self
            .application
            .as_ref()
            .and_then(|application| application.orders);
        orders.is_some() && self.groups.of_core(core).posted > 0
    }

    /// True if a step must wait for an outstanding store of its thread. It waits for a store before it in the declared
    /// order, for one to the same line, or for any if the maximum is outstanding. The step is retried when a store has
    /// ended.
    fn must_wait_for_posted(&mut self, core: u16, step: &Step, time: Time) -> bool {
        let max_posted = self.groups.of_core(core).posted as usize;
        let orders = self
            .application
            .as_ref()
            .and_then(|application| application.orders);
        let (Some(orders), Some(thread)) = (orders, self.thread_state_of(core)) else {
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

    /// Ends a posted store of a core's thread.
    pub(crate) fn complete_posted(&mut self, core: u16, line: Line) {
        let now = self.local.now;
        let Some(thread) = self.thread_state_of(core) else {
            return;
        };
        let mut posted = thread.posted.iter();
        if let Some(position) = posted.position(|&(posted_line, _)| posted_line == line) {
            thread.posted.remove(position);
        }
        if thread.repeats_step {
            let time = now.max(thread.blocked_since);
            self.tally.counters.posted_waited += time - thread.blocked_since;
            self.continue_thread(core, time);
        }
    }

    /// Removes a thread's last posted store to a line, which was refused.
    pub(crate) fn remove_posted(&mut self, core: u16, line: Line) {
        if let Some(thread) = self.thread_state_of(core) {
            let position = thread
                .posted
                .iter()
                .rposition(|&(posted_line, _)| posted_line == line);
            position.map(|position| thread.posted.remove(position));
        }
    }

    /// Returns the number of words that a thread writes in one access.
    pub(crate) fn words_of_thread(&self, core: u16) -> u16 {
        let application = self.application.as_ref();
        let thread = application.and_then(|application| application.threads.get(usize::from(core)));
        match thread.map(|thread| thread.step) {
            Some(Step::StoreWords { words, .. }) => words.max(1),
            _ => 1,
        }
    }

    /// Issues a fence to the cache if the protocol's caches take part in fences. Returns false if they do not.
    fn issue_fence(&mut self, core: u16, time: Time) -> bool {
        let kind = self.groups.kind_of(core);
        let fence = self
            .application
            .as_ref()
            .and_then(|application| application.accesses[kind].fence);
        if let Some(fence) = fence {
            self.issue_thread_access(core, (0, 0), fence, Purpose::Core, time);
        }
        fence.is_some()
    }

    /// Continues a thread that waits for its buffered stores, once all of these have been performed.
    pub(crate) fn continue_after_fence(&mut self, core: u16) {
        if self.has_buffered_stores(core) {
            return;
        }
        let Some(application) = &mut self.application else {
            return;
        };
        let thread = application.threads.get_mut(usize::from(core));
        if thread.is_some_and(|thread| std::mem::take(&mut thread.awaits_stores)) {
            if self.issue_fence(core, self.local.now) {
                return;
            }
            self.continue_thread(core, self.local.now);
        }
    }

    /// True if a write in progress is a release of its thread.
    pub(crate) fn is_release(&self, access: &Pending) -> bool {
        let step = self.step_of(access);
        step.is_some_and(|step| matches!(step, Step::Release { .. }))
    }

    /// True if a read in progress is an acquire of its thread.
    pub(crate) fn is_acquire(&self, access: &Pending) -> bool {
        let step = self.step_of(access);
        step.is_some_and(|step| matches!(step, Step::Acquire { .. }))
    }

    /// Returns the step that an access belongs to, if it is a thread's.
    fn step_of(&self, access: &Pending) -> Option<Step> {
        let threads = &self.application.as_ref()?.threads;
        Some(threads.get(usize::from(access.core))?.step)
    }

    /// Sets the result of a thread's access.
    #[inline]
    pub(crate) fn set_thread_result(&mut self, core: u16, value: u64) {
        if let Some(application) = &mut self.application {
            if let Some(thread) = application.threads.get_mut(usize::from(core)) {
                thread.result = value;
            }
        }
    }

    /// Returns the new value that an atomic access of a core's thread writes; `None` if the access only reads.
    pub(crate) fn updated_value(&self, core: u16, word: u64) -> Option<u64> {
        let thread = self.application.as_ref()?.threads.get(usize::from(core))?;
        match thread.step {
            Step::Update { update, .. } => match update {
                Update::CompareSwap { old, .. } if old != word => None,
                update => Some(update.of(word)),
            },
            _ => None,
        }
    }

    /// Returns the value that a thread's store writes.
    pub(crate) fn stored_by_thread(&self, core: u16) -> Option<u64> {
        let thread = self.application.as_ref()?.threads.get(usize::from(core))?;
        match thread.step {
            Step::Store { value, .. }
            | Step::StoreWords { value, .. }
            | Step::Release { value, .. } => Some(value),
            _ => None,
        }
    }
}
