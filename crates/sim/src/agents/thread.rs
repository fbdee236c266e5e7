//! Threads of a scenario on cores: each makes one step after the other.

use cohkit_application::interface::{Step, Update};
use cohkit_protocol::controller::Access;
use cohkit_protocol::orders::Issue;

use crate::agents::behind::{Running, LAST};
use crate::explain::FailureKind;
use crate::kernel::Time;
use crate::message::Line;
use crate::simulation::{Event as KernelEvent, Pending, Purpose, Simulation};

/// The line of an access of a thread, and what the thread asks for as far as its order goes; a fence is about none.
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

/// Steps in a row that may take no time.
const MOST_STEPS: u32 = 1 << 20;

impl Simulation {
    /// A core's thread goes on at a time not before now.
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
            // What it has done is still counted, but nothing more is begun.
            let begins = !matches!(step, Step::Count { .. } | Step::Begin | Step::End { .. });
            if begins && at >= behind.until {
                running.stopped = true;
                return;
            }
            running.step = step;
            if self.waits_for_posted(core, &step, at) {
                return;
            }
            let Some(behind) = &mut self.behind else {
                return;
            };
            let running = &mut behind.threads[number];
            match step {
                Step::Stop => running.stopped = true,
                Step::Work(time) => {
                    let Some(after) = at.checked_add(time).filter(|after| *after < LAST) else {
                        let text = format!("thread {core} works for {time} ps, which never ends");
                        return self.fail(FailureKind::Contract, 0, text);
                    };
                    at = after;
                    // What is shorter needs no excuse, and whoever polls may do it again and again.
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
                    if self.buffers_stores(core) {
                        if let Some(behind) = &mut self.behind {
                            behind.threads[number].fenced = true;
                        }
                        return;
                    }
                    if self.asks_for_fence(core, at) {
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
                    let own = behind.played.writes_by(number);
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
                    let own = behind.played.writes_by(number);
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
                    let access = match (behind.played.writes_by(number), accesses.update) {
                        (Some(own), _) => own,
                        (None, Some(Access::Atomic)) if update => Access::Atomic,
                        // In a copy of the cache's own, whatever the text does on a store.
                        _ => accesses.back.unwrap_or(Access::Store),
                    };
                    return self.access_of_thread(core, at_line, access, purpose, at);
                }
            }
        }
        let text = format!("thread {core} makes {MOST_STEPS} steps that access nothing");
        self.fail(FailureKind::Contract, 0, text);
    }

    /// An access of a thread to a word, if the text has such a one.
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

    /// A write of a thread. Gives when the thread goes on, if it does so meanwhile.
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
            // It goes on as soon as its store has been translated.
            return None;
        }
        (self.failure.is_none()).then(|| at + self.groups.of_core(core).work)
    }

    fn running_of(&mut self, core: u16) -> Option<&mut Running> {
        let threads = &mut self.behind.as_mut()?.threads;
        threads.get_mut(usize::from(core))
    }

    /// Whether a core's thread goes on while its stores are under way: where the text says which accesses wait for which.
    fn posts(&self, core: u16) -> bool {
        let orders = self.behind.as_ref().and_then(|behind| behind.orders);
        orders.is_some() && self.groups.of_core(core).posted > 0
    }

    /// Whether a step has to wait until a store of its thread that is under way has ended: one that the text says it waits
    /// for, one of the same line, or any if no more may be under way. It is made when one has.
    fn waits_for_posted(&mut self, core: u16, step: &Step, at: Time) -> bool {
        let most = self.groups.of_core(core).posted as usize;
        let orders = self.behind.as_ref().and_then(|behind| behind.orders);
        let (Some(orders), Some(running)) = (orders, self.running_of(core)) else {
            return false;
        };
        let (Some((line, later)), false) = (issue(step), running.posted.is_empty()) else {
            return false;
        };
        let full = running.posted.len() >= most && matches!(later, Issue::Store | Issue::Release);
        // An atomic access reads, too.
        let reads = matches!(step, Step::Update { .. } | Step::LoadExclusive { .. });
        let mut under_way = running.posted.iter();
        let waits = full
            || under_way.any(|&(other, earlier)| {
                // As in litmus tests: acquires are those that do not pass earlier releases (RCsc).
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

    /// A store that a core's thread has not waited for has ended.
    pub(crate) fn posted_is_done(&mut self, core: u16, line: Line) {
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

    /// The last store that a core's thread has begun is not made.
    pub(crate) fn forget_posted(&mut self, core: u16, line: Line) {
        if let Some(running) = self.running_of(core) {
            let place = running.posted.iter().rposition(|&(its, _)| its == line);
            place.map(|place| running.posted.remove(place));
        }
    }

    /// How many words a core's thread writes in one access.
    pub(crate) fn words_of_thread(&self, core: u16) -> u16 {
        let behind = self.behind.as_ref();
        let running = behind.and_then(|behind| behind.threads.get(usize::from(core)));
        match running.map(|running| running.step) {
            Some(Step::StoreWords { words, .. }) => words.max(1),
            _ => 1,
        }
    }

    /// Whether caches take part in fences: then a thread's fence, which is about no line, is an access like others.
    fn asks_for_fence(&mut self, core: u16, at: Time) -> bool {
        let kind = self.groups.kind_of(core);
        let fence = self.behind.as_ref().and_then(|of| of.accesses[kind].fence);
        if let Some(fence) = fence {
            self.access_of_thread(core, (0, 0), fence, Purpose::Core, at);
        }
        fence.is_some()
    }

    /// Stores of a core have been performed; its thread may have waited for them.
    pub(crate) fn unfence(&mut self, core: u16) {
        if self.buffers_stores(core) {
            return;
        }
        let Some(behind) = &mut self.behind else {
            return;
        };
        let running = behind.threads.get_mut(usize::from(core));
        if running.is_some_and(|running| std::mem::take(&mut running.fenced)) {
            if self.asks_for_fence(core, self.now) {
                return;
            }
            self.thread(core, self.now);
        }
    }

    /// Whether a write under way is a release of its thread.
    pub(crate) fn releases(&self, access: &Pending) -> bool {
        let step = self.step_of(access);
        step.is_some_and(|step| matches!(step, Step::Release { .. }))
    }

    /// Whether a read under way is one with which its thread acquires.
    pub(crate) fn acquires(&self, access: &Pending) -> bool {
        let step = self.step_of(access);
        step.is_some_and(|step| matches!(step, Step::Acquire { .. }))
    }

    /// The step that an access is of, if it is a thread's.
    fn step_of(&self, access: &Pending) -> Option<Step> {
        let threads = &self.behind.as_ref()?.threads;
        Some(threads.get(usize::from(access.core))?.step)
    }

    /// A thread's access has been given this word.
    #[inline]
    pub(crate) fn give(&mut self, core: u16, value: u64) {
        if let Some(behind) = &mut self.behind {
            if let Some(running) = behind.threads.get_mut(usize::from(core)) {
                running.result = value;
            }
        }
    }

    /// What an atomic access of a core's thread makes of a word; nothing if it only loads.
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

    /// The value that a thread's store writes.
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
