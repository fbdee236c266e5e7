//! The side of a machine before its caches: sources of accesses, cores, and address translation.
//!
//! Accesses come from traffic, from the threads of a scenario, or from another space by a port. The frontend issues them
//! through the cores' write buffers and L1s, translates their addresses, and sends them to the caches as
//! [`Event::Access`]. A cache ends an access with [`Frontend::complete_access`], and the core issues its next one.
//! Caches and homes perform reads and writes of accesses with the functions of `performance`.

mod performance;

use cohkit_application::interface::PageFault;
use cohkit_protocol::controller::Access;

use super::core::{CoreResult, Cores};
use super::port::{Port, PortRequest};
use super::thread::{ThreadAction, Threads, MAX_UNTIMED_STEPS};
use super::translation::{Generation, Page, TranslationStep, Translations};
use crate::components::traffic::Traffic;
use crate::data::mix;
use crate::explain::FailureKind;
use crate::kernel::Time;
use crate::message::{Agent, CoreId, Line};
use crate::simulation::observer::Fact;
use crate::simulation::{Context, Event, MainMemory, NewAccess, Pending, Purpose};

/// Sources of accesses, and the components between them and the caches.
pub(crate) struct Frontend {
    /// Generators of the workload's accesses; idle with a scenario.
    pub traffic: Traffic,
    /// Write buffers and L1s of the cores.
    pub cores: Cores,
    /// Threads of a scenario, in place of traffic.
    pub threads: Option<Box<Threads>>,
    /// Port for accesses from another space, if there is one.
    pub port: Option<Box<Port>>,
    /// Address translations; `None` if all addresses are physical.
    pub translations: Option<Box<Translations>>,
}

impl Frontend {
    /// Starts the traffic, up to the number of accesses that each core may have in flight.
    pub fn start_traffic(&mut self, context: &mut Context) {
        let groups = &context.tables.groups;
        let outstanding = groups.groups.iter().map(|group| group.outstanding);
        for round in 0..outstanding.max().unwrap_or(0) {
            for core in (0..groups.cores()).map(CoreId) {
                let group = groups.of_core(core);
                if round >= group.outstanding || !context.tables.has_core(core) {
                    continue;
                }
                if round == 0 && (core.0 == group.cores.start || group.streams) {
                    // Prefetches before the first access that no access accompanies.
                    for distance in 1..group.prefetch {
                        self.prefetch_ahead(context, core, distance, 0);
                    }
                }
                self.issue(context, core, 0);
            }
        }
    }

    /// Starts the threads of a scenario.
    pub fn start_threads(&mut self, context: &mut Context) {
        let count = self
            .threads
            .as_ref()
            .map_or(0, |threads| threads.states.len());
        for thread in (0..count as u16).map(CoreId) {
            if context.tables.has_core(thread) {
                self.continue_thread(context, thread, 0);
            }
        }
    }

    /// Issues a core's next access at a time that is not in the past, or continues its thread.
    #[inline(always)]
    pub fn issue(&mut self, context: &mut Context, core: CoreId, time: Time) {
        if self.threads.is_some() {
            return self.continue_thread(context, core, time);
        }
        let Some(next) = self.traffic.next_access(core, time) else {
            return;
        };
        if next.time > time {
            context.tally.postpone_watchdog(next.time);
        }
        let time = next.time;
        context.tally.in_flight += 1;
        let access = NewAccess {
            line: next.line,
            kind: next.access,
            word: next.word,
            core,
            purpose: Purpose::Core,
        };
        self.start_access(context, access, time);
        let distance = context.tables.groups.of_core(core).prefetch;
        if distance > 0 {
            self.prefetch_ahead(context, core, distance - 1, time);
        }
        // A prefetch requests a permission. Where stores are sent to the home, there is no write permission to request.
        let prefetched_line = self.traffic.write_prefetch(core);
        if let Some(line) = prefetched_line.filter(|_| !context.tables.caches_send_stores) {
            self.start_access(
                context,
                NewAccess::prefetch(line, Access::Store, core),
                time,
            );
        }
    }

    /// Prefetches, for reading, the line of the access `distance` accesses after the core's next one.
    fn prefetch_ahead(&mut self, context: &mut Context, core: CoreId, distance: u32, time: Time) {
        if let Some(line) = self.traffic.line_ahead(core, distance) {
            self.start_access(context, NewAccess::prefetch(line, Access::Load, core), time);
        }
    }

    /// Starts an access at a time that is not in the past.
    #[inline]
    pub fn start_access(&mut self, context: &mut Context, access: NewAccess, time: Time) {
        let NewAccess {
            line,
            kind,
            word,
            core,
            purpose,
        } = access;
        let threads = self.threads.as_ref();
        let cache = context.tables.groups.cache_of(core);
        let index = context.local.accesses.insert(Pending {
            value: match threads.and_then(|threads| threads.stored_value(core)) {
                Some(value) => value,
                None => mix(self.traffic.issued << 1 | 1),
            },
            words: threads.map_or(1, |threads| threads.written_words(core)),
            word: word % context.contents.data.words(),
            ..Pending::new(line, kind, core, cache, purpose, time)
        });
        let time = (self.cores).departure_time(&context.tables.groups, core, time);
        if let Some(translations) = &mut self.translations {
            if translations.has(cache) {
                if kind.about_line() {
                    return translations.translate(context, index, time);
                }
                translations.mark_physical(index);
            }
        }
        if matches!(purpose, Purpose::Core | Purpose::Posted | Purpose::Atomic)
            && !self.cores.is_empty()
        {
            return context.schedule(time, Event::Core(index));
        }
        let arrival = time + context.tables.groups.of_core(core).request;
        context.schedule(arrival, Event::Access(index));
    }

    /// Issues an access at its core.
    pub fn issue_at_core(&mut self, context: &mut Context, index: u32) {
        match self.cores.issue(context, index, self.threads.as_deref()) {
            CoreResult::Pending => {}
            CoreResult::Completed {
                access,
                done,
                value,
            } => {
                if let Some(value) = value {
                    self.set_thread_result(access.core, value);
                }
                context.tally.postpone_watchdog(context.now());
                context.observe(Fact::CompletedAtCore {
                    index,
                    access: &access,
                    done,
                });
                self.record_latency(context, &access, done);
                let work = context.tables.groups.of_core(access.core).work;
                self.issue(context, access.core, done + work);
            }
        }
    }

    /// Handles the notification of a core that buffered stores have been performed.
    pub fn handle_drain(&mut self, context: &mut Context, core: CoreId, entry: u16) {
        let mut waiting = self.cores.release_entry(context, core, entry);
        for index in waiting.drain(..) {
            self.issue_at_core(context, index);
        }
        self.cores.reuse_waiting_list(core, waiting);
        // A thread that waits for its buffered stores continues once all of these have been performed.
        if !self.cores.has_buffered_stores(core)
            && (self.threads.as_mut()).is_some_and(|threads| threads.end_wait_for_stores(core))
        {
            let now = context.now();
            if !self.issue_fence(context, core, now) {
                self.continue_thread(context, core, now);
            }
        }
    }

    /// Completes an access at its cache; its core continues. `hit` is true if the access completed on arrival,
    /// `performed` is false if the protocol has no row for it.
    #[inline(always)]
    pub fn complete_access(
        &mut self,
        context: &mut Context,
        index: u32,
        hit: bool,
        performed: bool,
    ) {
        let access = context.local.accesses.remove(index);
        context.observe(Fact::Completed {
            index,
            access: &access,
            hit,
            performed,
        });
        if let Some(translations) = &mut self.translations {
            if translations.has(access.cache) {
                translations.end_use(context, index, access.cache, access.line);
            }
        }
        if access.purpose == Purpose::Hint {
            context.tally.counters.prefetched += u64::from(!hit);
            return self.end_prefetch(access.core);
        }
        let now = context.now();
        if performed && !hit && access.kind.about_line() {
            // Caches of the lower level are numbered across all caches of the upper one.
            let caches = context.tables.groups.caches();
            let cache_above = context.tables.cache_above;
            let first_cache = cache_above.map_or(0, |(above, _)| above.0 * caches);
            let cache = Agent(first_cache + access.cache.0);
            let bouncing = &mut context.tally.counters.bouncing;
            bouncing.record_miss(&access, cache, now - access.issued);
        }
        let group = context.tables.groups.of_cache(access.cache);
        let done = now + group.return_latency(access.kind, hit);
        let next = done + group.work;
        match access.purpose {
            Purpose::Drain => {
                return (self.cores).complete_drain(context, &access, hit, performed, done)
            }
            Purpose::Port => {
                return self.complete_port_access(context, &access, hit, performed, done)
            }
            Purpose::Core | Purpose::Posted | Purpose::Atomic | Purpose::Hint => {}
        }
        context.tally.in_flight -= 1;
        context.tally.postpone_watchdog(now);
        if performed {
            context.count_performed(1, done);
            context.tally.counters.hits += u64::from(hit);
            if access.is_store() {
                self.cores
                    .complete_store(context, &access, &[access.issued]);
            }
            self.record_latency(context, &access, done);
        } else {
            context.tally.counters.skipped += 1;
        }
        match access.purpose {
            Purpose::Posted => self.complete_posted(context, access.core, access.line),
            _ => self.issue(context, access.core, next),
        }
    }

    /// Records the latency of an access that completed at `done`. Fails the run if it exceeds the core's timeout.
    #[inline(always)]
    fn record_latency(&self, context: &mut Context, access: &Pending, done: Time) {
        let time = done - access.issued;
        let counters = &mut context.tally.counters;
        counters.latency.record(time);
        if access.kind.about_line() {
            let latency = match access.is_store() {
                true => &mut counters.stores,
                false => &mut counters.loads,
            };
            latency.record(time);
            let line_bytes = context.tables.line_bytes;
            let word = line_bytes / u32::from(context.contents.data.words());
            counters.bytes_requested += u64::from(match access.kind {
                Access::WriteLine => line_bytes,
                _ => word * u32::from(access.words),
            });
        }
        if time >= context.tables.times.timeout {
            self.report_timeout(context, access.line, access.core, access.issued);
        }
    }

    /// Fails the run: a core has waited too long for an access.
    #[cold]
    pub fn report_timeout(&self, context: &mut Context, line: Line, core: CoreId, issued: Time) {
        let obligations = self
            .threads
            .as_ref()
            .map(|threads| threads.scenario.open_obligations());
        let mut obligations = obligations.into_iter().flatten();
        let obligation = obligations.find(|(obligation_line, _)| *obligation_line == line);
        let obligation =
            obligation.map_or(String::new(), |(_, obligation)| format!(": {obligation}"));
        let text = format!(
            "core {core} has waited for an access since {} ns, and reports a timeout{obligation}",
            issued / 1000
        );
        context.fail(FailureKind::Timeout, line, text);
    }
}

/// Threads of a scenario.
impl Frontend {
    /// Continues a core's thread at a time that is not in the past.
    pub fn continue_thread(&mut self, context: &mut Context, core: CoreId, mut time: Time) {
        for _ in 0..MAX_UNTIMED_STEPS {
            let Some(threads) = &mut self.threads else {
                return;
            };
            match threads.advance(context, core, time) {
                ThreadAction::Wait => return,
                ThreadAction::Continue(next) => time = next,
                ThreadAction::Host(start) => {
                    return context.schedule(start, Event::HostStep(core));
                }
                ThreadAction::Fence => {
                    if self.cores.has_buffered_stores(core) {
                        return threads.wait_for_stores(core);
                    }
                    if self.issue_fence(context, core, time) {
                        return;
                    }
                }
                ThreadAction::Access(access) => {
                    self.issue_thread_access(context, access, time);
                    match access.purpose {
                        Purpose::Hint => {}
                        // With virtual addresses, the thread continues as soon as its store has been translated.
                        Purpose::Posted
                            if context.failure.is_none() && !self.translates(context, core) =>
                        {
                            time += context.tables.groups.of_core(core).work;
                        }
                        _ => return,
                    }
                }
            }
        }
        let text = format!("thread {core} makes {MAX_UNTIMED_STEPS} steps without an access");
        context.fail(FailureKind::Contract, 0, text);
    }

    /// True if accesses of a core have virtual addresses.
    fn translates(&self, context: &Context, core: CoreId) -> bool {
        let cache = context.tables.groups.cache_of(core);
        (self.translations.as_ref()).is_some_and(|translations| translations.has(cache))
    }

    /// Issues an access of a core's thread at a time that is not in the past.
    fn issue_thread_access(&mut self, context: &mut Context, access: NewAccess, time: Time) {
        let NewAccess {
            line, word, core, ..
        } = access;
        let threads = self.threads.as_ref();
        let words = threads.map_or(1, |threads| threads.written_words(core));
        let last = word.saturating_add(words) - 1;
        let (lines, words) = (context.tables.platform.lines, context.contents.data.words());
        if line >= lines || last >= words {
            let text = format!(
                "thread {core} accesses word {last} of line {line}; there are {lines} lines of {words} words"
            );
            return context.fail(FailureKind::Contract, line, text);
        }
        context.tally.in_flight += u64::from(access.purpose != Purpose::Hint);
        self.start_access(context, access, time);
    }

    /// Issues a fence to the cache if the protocol's caches take part in fences. Returns false if they do not.
    fn issue_fence(&mut self, context: &mut Context, core: CoreId, time: Time) -> bool {
        let kind = context.tables.groups.kind_of(core);
        let threads = self.threads.as_ref();
        let fence = threads.and_then(|threads| threads.accesses[kind].fence);
        if let Some(kind) = fence {
            self.issue_thread_access(context, Threads::access_without_line(core, kind), time);
        }
        fence.is_some()
    }

    /// Ends a prefetch of a core, which a thread counts.
    fn end_prefetch(&mut self, core: CoreId) {
        if let Some(threads) = &mut self.threads {
            threads.end_prefetch(core);
        }
    }

    /// Ends a posted store of a core's thread.
    fn complete_posted(&mut self, context: &mut Context, core: CoreId, line: Line) {
        let threads = self.threads.as_mut();
        if let Some(time) = threads.and_then(|threads| threads.complete_posted(context, core, line))
        {
            self.continue_thread(context, core, time);
        }
    }

    /// Reports a refused access to a thread's program. The thread continues at a time that is not in the past, if it
    /// can.
    pub fn refuse_thread(
        &mut self,
        context: &mut Context,
        core: CoreId,
        refusal: PageFault,
        (line, target): (Line, &str),
        time: Time,
    ) {
        let Some(threads) = &mut self.threads else {
            return;
        };
        if !threads.set_step_after_refusal(core, refusal) {
            let text =
                format!("thread {core} {refusal} ({target}), and does not handle the page fault");
            return context.fail(FailureKind::Refused, line, text);
        }
        self.continue_thread(context, core, time);
    }

    /// Sets the result of a thread's access.
    #[inline]
    pub fn set_thread_result(&mut self, core: CoreId, value: u64) {
        if let Some(threads) = &mut self.threads {
            threads.set_result(core, value);
        }
    }
}

/// Accesses from another space.
impl Frontend {
    /// Starts a request from another space.
    pub fn begin_port_request(&mut self, context: &mut Context, request: PortRequest) {
        let Some(port) = &mut self.port else {
            return;
        };
        for number in port.begin_request(context, request) {
            self.begin_part(context, number);
        }
    }

    /// Issues the access for a part of a request.
    fn begin_part(&mut self, context: &mut Context, number: u64) {
        let port = self.port.as_ref();
        let Some((access, has_virtual_address)) =
            port.and_then(|port| port.access_of(context, number))
        else {
            return;
        };
        let Pending { core, cache, .. } = access;
        let index = context.local.accesses.insert(access);
        context.tally.in_flight += 1;
        let now = context.now();
        let departure = (self.cores).departure_time(&context.tables.groups, core, now);
        if let Some(translations) = &mut self.translations {
            if translations.has(cache) {
                if has_virtual_address {
                    return translations.translate(context, index, departure);
                }
                translations.mark_physical(index);
            }
        }
        let arrival = departure + context.tables.groups.of_core(core).request;
        context.schedule(arrival, Event::Access(index));
    }

    /// Completes an access of the port. The requester is notified at a time that is not in the past.
    #[cold]
    fn complete_port_access(
        &mut self,
        context: &mut Context,
        access: &Pending,
        hit: bool,
        performed: bool,
        completion: Time,
    ) {
        context.tally.in_flight -= 1;
        if !performed {
            let (name, access_name) = (context.agent_name(access.cache), access.kind.name());
            let text = format!(
                "{name} has no row for `{access_name}`, which an access from another space needs"
            );
            return context.fail(FailureKind::Incompatible, access.line, text);
        }
        context.count_performed(1, completion);
        context.tally.counters.hits += u64::from(hit);
        if access.is_store() {
            self.cores.complete_store(context, access, &[access.issued]);
        }
        self.record_latency(context, access, completion);
        self.complete_part(context, access, completion);
    }

    /// Ends the part of a request that an access was for, and starts the next one that waits.
    fn complete_part(&mut self, context: &mut Context, access: &Pending, completion: Time) {
        let port = self.port.as_mut();
        if let Some(next) = port.and_then(|port| port.complete_part(context, access, completion)) {
            self.begin_part(context, next);
        }
    }
}

/// Address translation.
impl Frontend {
    /// Executes a scheduled step of a translation.
    pub fn run_translation_step(
        &mut self,
        context: &mut Context,
        memory: &mut MainMemory,
        number: u32,
    ) {
        let Some(translations) = &mut self.translations else {
            return;
        };
        match translations.take_step(number) {
            TranslationStep::LookUp { access } => {
                let Pending { purpose, core, .. } = context.local.accesses[access];
                match translations.look_up(context, access) {
                    Some((page, generation)) => {
                        self.send_translated(context, access, page, generation);
                    }
                    None if purpose == Purpose::Hint => self.end_prefetch(core),
                    None => {}
                }
            }
            TranslationStep::Answer {
                device,
                page,
                generation,
            } => {
                let answered = translations.receive_answer(context, device, page, generation);
                let Some(waiting) = answered else {
                    return;
                };
                for index in waiting {
                    self.send_translated(context, index, page, generation);
                }
                self.send_delayed(context, device);
            }
            step => translations.run_host_step(context, memory, step),
        }
    }

    /// Continues accesses of a device that waited because the maximum number of requests was outstanding.
    fn send_delayed(&mut self, context: &mut Context, device: Agent) {
        while let Some(translations) = &mut self.translations {
            let Some((index, page, found)) = translations.next_delayed(context, device) else {
                return;
            };
            match found {
                Some(generation) => self.send_translated(context, index, page, generation),
                None => translations.await_translation(context, index, page),
            }
        }
    }

    /// Sends an access to its cache under a translation that its device has.
    fn send_translated(
        &mut self,
        context: &mut Context,
        index: u32,
        page: Page,
        generation: Generation,
    ) {
        let access = context.local.accesses[index];
        let Some(translations) = &mut self.translations else {
            return;
        };
        if let Some(refusal) = translations.page_fault(page, access.kind) {
            return self.refuse_access(context, index, page, refusal);
        }
        translations.begin_use(index, access.cache, page, generation);
        let departure = context.now() + translations.hit_latency();
        let group = context.tables.groups.of_cache(access.cache);
        context.schedule(departure + group.request, Event::Access(index));
        if access.purpose == Purpose::Posted {
            // The thread has waited until here: it is notified of a refusal before its next step.
            self.continue_thread(context, access.core, departure + group.work);
        }
    }

    /// Ends an access that the page table does not permit, and notifies its requester.
    #[cold]
    fn refuse_access(&mut self, context: &mut Context, index: u32, page: Page, refusal: PageFault) {
        let access = context.local.accesses.remove(index);
        context.observe(Fact::Completed {
            index,
            access: &access,
            hit: true,
            performed: false,
        });
        context.observe(Fact::Refused { access: &access });
        if access.purpose == Purpose::Hint {
            return self.end_prefetch(access.core);
        }
        let Some(translations) = &mut self.translations else {
            return;
        };
        let is_progress = translations.record_refusal(&access);
        let group = context.tables.groups.of_cache(access.cache);
        let completion =
            context.now() + translations.hit_latency() + group.return_latency(access.kind, true);
        let next = completion + group.work;
        let has_programs = self.threads.is_some() || self.port.is_some();
        if is_progress || !has_programs {
            context.tally.postpone_watchdog(context.now());
        }
        match access.purpose {
            Purpose::Port => {
                context.tally.in_flight -= 1;
                if let Some(port) = &mut self.port {
                    port.record_refusal(context, &access, refusal);
                }
                self.complete_part(context, &access, completion);
            }
            Purpose::Drain => {
                (self.cores).complete_drain(context, &access, true, false, completion)
            }
            _ if self.threads.is_some() => {
                context.tally.in_flight -= 1;
                if let (Purpose::Posted, Some(threads)) = (access.purpose, &mut self.threads) {
                    threads.remove_posted(access.core, access.line);
                }
                let (word, line) = (u64::from(access.word), access.line);
                let address = u64::from(line) * u64::from(context.tables.line_bytes) + 8 * word;
                let cache = context.agent_name(access.cache);
                let target = format!(
                    "word {word} of line {line}, address {address:#x}, page {page}, by {cache}"
                );
                self.refuse_thread(context, access.core, refusal, (line, &target), next);
            }
            _ => {
                context.tally.in_flight -= 1;
                context.tally.counters.skipped += 1;
                self.issue(context, access.core, next);
            }
        }
    }
}
