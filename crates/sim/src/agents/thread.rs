//! Threads of a scenario on their cores. Each executes one step after the other.

use cohkit_application::interface::{Step, Update};
use cohkit_protocol::controller::Access;
use cohkit_protocol::orders::Issue;

use crate::agents::application::{Running, MAX_REQUESTED_TIME};
use crate::explain::FailureKind;
use crate::kernel::Time;
use crate::message::Line;
use crate::simulation::{Event as KernelEvent, Pending, Purpose, Simulation};

/// Returns the line of a thread's access and its kind in the program order; 0 is the line of a fence, which has none.
fn issue(step: &Step) -> Option<(Line, Issue)> {
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
const MOST_STEPS: u32 = 1 << 20;

impl Simulation {
    /// Continues a core's thread at a time that is not in the past.
    pub(crate) fn thread(&mut self, core: u16, mut at: Time) {
        let number = usize::from(core);
        let kind = self.groups.kind_of(core);
        for _ in 0..MOST_STEPS {
            let Some(behind) = &mut self.behind else {
                return;
            };
            let accesses = behind.accesses[kind];
            let Some(running) = behind.threads.get_mut(number) else {
                return;
            };
            if running.stopped {
                return;
            }
            if std::mem::take(&mut running.acquires) {
                if let Some(access) = accesses.acquired {
                    return self.access_of_thread(core, (0, 0), access, Purpose::Core, at);
                }
            }
            let result = std::mem::take(&mut running.result);
            let step = match std::mem::take(&mut running.again) {
                true => running.step,
                false => behind.played.step(number, result),
            };
            let running = &mut behind.threads[number];
            // Counts and durations of completed steps are still recorded, but no new step starts.
            let begins = !matches!(step, Step::Count { .. } | Step::Begin | Step::End { .. });
            if begins && at >= behind.until {
                running.stopped = true;
                return;
            }
            running.step = step;
            if self.must_wait_for_posted(core, &step, at) {
                return;
            }
            let Some(behind) = &mut self.behind else {
                return;
            };
            let running = &mut behind.threads[number];
            match step {
                Step::Stop => running.stopped = true,
                Step::Work(time) => {
                    let Some(after) = at
                        .checked_add(time)
                        .filter(|after| *after < MAX_REQUESTED_TIME)
                    else {
                        let text = format!("thread {core} works for {time} ps, which is beyond the end of simulated time");
                        return self.fail(FailureKind::Contract, 0, text);
                    };
                    at = after;
                    // Shorter work needs no watchdog extension, and a polling thread may repeat it without end.
                    if at.saturating_sub(self.now) > self.times.patience {
                        self.expect(at);
                    }
                }
                Step::Begin => running.since = at,
                Step::End { what } => {
                    let since = running.since;
                    behind.time(what, since, at);
                }
                Step::Count { what, by } => behind.count(what, by, at),
                Step::Fence => {
                    if self.has_buffered_stores(core) {
                        if let Some(behind) = &mut self.behind {
                            behind.threads[number].fenced = true;
                        }
                        return;
                    }
                    if self.issue_fence(core, at) {
                        return;
                    }
                }
                Step::LoadHost { .. } | Step::StoreHost { .. } if behind.beyond.is_some() => {
                    return self.queue.push(at, KernelEvent::HostStep(core));
                }
                Step::ReadRegister { .. }
                | Step::WriteRegister { .. }
                | Step::LoadHost { .. }
                | Step::StoreHost { .. } => {
                    let at = at + self.groups.of_core(core).request;
                    return self.queue.push(at, KernelEvent::HostStep(core));
                }
                Step::AwaitInterrupt => match std::mem::take(&mut running.interrupted) {
                    Some(since) => at = at.max(since),
                    None => {
                        running.waits = true;
                        return;
                    }
                },
                Step::Hint { line } => {
                    self.access_of_thread(core, (line, 0), Access::Load, Purpose::Hint, at);
                }
                Step::Load { line, word } => {
                    let at_line = (line, word);
                    let access = accesses.read;
                    return self.word_of_thread(core, at_line, (access, "reads"), at);
                }
                Step::Store { line, word, .. } | Step::StoreWords { line, word, .. } => {
                    let own = behind.played.write_access(number);
                    let access = (own.or(accesses.write), "writes");
                    match self.write_of_thread(core, (line, word), access, at) {
                        Some(goes_on) => at = goes_on,
                        None => return,
                    }
                }
                Step::Acquire { line, word } => {
                    running.acquires = true;
                    let at_line = (line, word);
                    let access = accesses.acquire;
                    return self.word_of_thread(core, at_line, (access, "reads"), at);
                }
                Step::Release { line, word, .. } => {
                    let own = behind.played.write_access(number);
                    let access = (own.or(accesses.release), "writes");
                    match self.write_of_thread(core, (line, word), access, at) {
                        Some(goes_on) => at = goes_on,
                        None => return,
                    }
                }
                Step::LoadExclusive { line, word } | Step::Update { line, word, .. } => {
                    let at_line = (line, word);
                    let purpose = Purpose::Atomic;
                    let update = matches!(step, Step::Update { .. });
                    let access = match (behind.played.write_access(number), accesses.update) {
                        (Some(own), _) => own,
                        (None, Some(Access::Atomic)) if update => Access::Atomic,
                        // In a copy of the cache's own, independent of how the protocol treats stores.
                        _ => accesses.back.unwrap_or(Access::Store),
                    };
                    return self.access_of_thread(core, at_line, access, purpose, at);
                }
            }
        }
        let text = format!("thread {core} makes {MOST_STEPS} steps without an access");
        self.fail(FailureKind::Contract, 0, text);
    }

    /// Issues an access of a thread to a word, if the protocol has such an access.
    fn word_of_thread(
        &mut self,
        core: u16,
        at_line: (Line, u16),
        access: (Option<Access>, &str),
        at: Time,
    ) {
        self.purpose_of_thread(core, at_line, access, Purpose::Core, at);
    }

    fn purpose_of_thread(
        &mut self,
        core: u16,
        (line, word): (Line, u16),
        (access, what): (Option<Access>, &str),
        purpose: Purpose,
        at: Time,
    ) {
        let Some(access) = access else {
            let text = format!("thread {core}: the protocol has no access that {what}");
            return self.fail(FailureKind::Contract, line, text);
        };
        self.access_of_thread(core, (line, word), access, purpose, at);
    }

    /// Issues a write of a thread. Returns when the thread continues, if it does not wait for the write.
    fn write_of_thread(
        &mut self,
        core: u16,
        at_line: (Line, u16),
        access: (Option<Access>, &str),
        at: Time,
    ) -> Option<Time> {
        if !self.posts(core) {
            self.word_of_thread(core, at_line, access, at);
            return None;
        }
        let running = self.running_of(core)?;
        running.posted.extend(issue(&running.step));
        self.purpose_of_thread(core, at_line, access, Purpose::Posted, at);
        let cache = self.cache_of(core);
        if (self.translations.as_ref()).is_some_and(|translations| translations.has(cache)) {
            // The thread continues as soon as its store has been translated.
            return None;
        }
        (self.failure.is_none()).then(|| at + self.groups.of_core(core).work)
    }

    fn running_of(&mut self, core: u16) -> Option<&mut Running> {
        let threads = &mut self.behind.as_mut()?.threads;
        threads.get_mut(usize::from(core))
    }

    /// True if a core's thread continues past outstanding stores. This requires a protocol that declares the program
    /// order.
    fn posts(&self, core: u16) -> bool {
        let orders = self.behind.as_ref().and_then(|behind| behind.orders);
        orders.is_some() && self.groups.of_core(core).posted > 0
    }

    /// True if a step must wait for an outstanding store of its thread. It waits for a store before it in the declared
    /// order, for one to the same line, or for any if the maximum is outstanding. The step is retried when a store has
    /// ended.
    fn must_wait_for_posted(&mut self, core: u16, step: &Step, at: Time) -> bool {
        let most = self.groups.of_core(core).posted as usize;
        let orders = self.behind.as_ref().and_then(|behind| behind.orders);
        let (Some(orders), Some(running)) = (orders, self.running_of(core)) else {
            return false;
        };
        let (Some((line, later)), false) = (issue(step), running.posted.is_empty()) else {
            return false;
        };
        let full = running.posted.len() >= most && matches!(later, Issue::Store | Issue::Release);
        // An atomic access also reads.
        let reads = matches!(step, Step::Update { .. } | Step::LoadExclusive { .. });
        let mut under_way = running.posted.iter();
        let waits = full
            || under_way.any(|&(other, earlier)| {
                // As in litmus tests, an acquire does not pass an earlier release (RCsc).
                (earlier, later) == (Issue::Release, Issue::Acquire)
                    || orders.waits(earlier, later)
                    || reads && orders.waits(earlier, Issue::Load)
                    || other == line && later != Issue::Fence
            });
        if waits {
            running.again = true;
            running.blocked = at;
        }
        waits
    }

    /// Ends a posted store of a core's thread.
    pub(crate) fn complete_posted(&mut self, core: u16, line: Line) {
        let now = self.now;
        let Some(running) = self.running_of(core) else {
            return;
        };
        let mut posted = running.posted.iter();
        if let Some(place) = posted.position(|&(its, _)| its == line) {
            running.posted.remove(place);
        }
        if running.again {
            let at = now.max(running.blocked);
            self.counters.posted_waited += at - running.blocked;
            self.thread(core, at);
        }
    }

    /// Removes a thread's last posted store to a line, which was refused.
    pub(crate) fn remove_posted(&mut self, core: u16, line: Line) {
        if let Some(running) = self.running_of(core) {
            let place = running.posted.iter().rposition(|&(its, _)| its == line);
            place.map(|place| running.posted.remove(place));
        }
    }

    /// Returns the number of words that a thread writes in one access.
    pub(crate) fn words_of_thread(&self, core: u16) -> u16 {
        let behind = self.behind.as_ref();
        let running = behind.and_then(|behind| behind.threads.get(usize::from(core)));
        match running.map(|running| running.step) {
            Some(Step::StoreWords { words, .. }) => words.max(1),
            _ => 1,
        }
    }

    /// Issues a fence to the cache if the protocol's caches take part in fences. Returns false if they do not.
    fn issue_fence(&mut self, core: u16, at: Time) -> bool {
        let kind = self.groups.kind_of(core);
        let fence = self.behind.as_ref().and_then(|of| of.accesses[kind].fence);
        if let Some(fence) = fence {
            self.access_of_thread(core, (0, 0), fence, Purpose::Core, at);
        }
        fence.is_some()
    }

    /// Continues a thread that waits for its buffered stores, once all of these have been performed.
    pub(crate) fn continue_after_fence(&mut self, core: u16) {
        if self.has_buffered_stores(core) {
            return;
        }
        let Some(behind) = &mut self.behind else {
            return;
        };
        let running = behind.threads.get_mut(usize::from(core));
        if running.is_some_and(|running| std::mem::take(&mut running.fenced)) {
            if self.issue_fence(core, self.now) {
                return;
            }
            self.thread(core, self.now);
        }
    }

    /// True if a write in progress is a release of its thread.
    pub(crate) fn releases(&self, access: &Pending) -> bool {
        let step = self.step_of(access);
        step.is_some_and(|step| matches!(step, Step::Release { .. }))
    }

    /// True if a read in progress is an acquire of its thread.
    pub(crate) fn acquires(&self, access: &Pending) -> bool {
        let step = self.step_of(access);
        step.is_some_and(|step| matches!(step, Step::Acquire { .. }))
    }

    /// Returns the step that an access belongs to, if it is a thread's.
    fn step_of(&self, access: &Pending) -> Option<Step> {
        let threads = &self.behind.as_ref()?.threads;
        Some(threads.get(usize::from(access.core))?.step)
    }

    /// Sets the result of a thread's access.
    #[inline]
    pub(crate) fn give(&mut self, core: u16, value: u64) {
        if let Some(behind) = &mut self.behind {
            if let Some(running) = behind.threads.get_mut(usize::from(core)) {
                running.result = value;
            }
        }
    }

    /// Returns the new value that an atomic access of a core's thread writes; `None` if the access only reads.
    pub(crate) fn updated(&self, core: u16, word: u64) -> Option<u64> {
        let running = self.behind.as_ref()?.threads.get(usize::from(core))?;
        match running.step {
            Step::Update { update, .. } => match update {
                Update::CompareSwap { old, .. } if old != word => None,
                update => Some(update.of(word)),
            },
            _ => None,
        }
    }

    /// Returns the value that a thread's store writes.
    pub(crate) fn stored_by_thread(&self, core: u16) -> Option<u64> {
        let running = self.behind.as_ref()?.threads.get(usize::from(core))?;
        match running.step {
            Step::Store { value, .. }
            | Step::StoreWords { value, .. }
            | Step::Release { value, .. } => Some(value),
            _ => None,
        }
    }
}
