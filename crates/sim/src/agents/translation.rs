//! Devices whose cores use virtual addresses: a translation cache in each, and the host's unit that walks its page
//! tables.
//!
//! Each access is translated before it goes to its cache, and uses its translation until it has been performed. When
//! the host unmaps a page, it notifies all devices. Each device invalidates the translation, waits until no access uses
//! it, and acknowledges. Only then is the page mapped again, as a different one. An access under an invalidated
//! translation ends the run. A request for a translation that is outstanding while its page is unmapped may return a
//! stale one, and is repeated.
//!
//! An access that the page table does not permit is not made. Its requester is notified: a thread in place of its next
//! step, an application by an event.

use cohkit_application::interface::PageFault;
use cohkit_protocol::controller::Access;
use cohkit_protocol::protocol::Right;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, VecDeque};

use crate::data::{mix, Random};
use crate::explain::FailureKind;
use crate::kernel::Time;
use crate::message::{Agent, Agents, Line, Pool};
use crate::platform::{Platform, Translation};
use crate::simulation::observer::Fact;
use crate::simulation::{Event, Purpose, Simulation};

/// Page number.
type Page = u32;

/// Page of an access with a physical address.
const PHYSICAL_PAGE: Page = Page::MAX;

/// Number of times that a page has been unmapped.
type Generation = u32;

/// Translation cache with LRU replacement and at most `capacity` entries.
struct TranslationCache {
    capacity: usize,
    use_count: u64,
    entries: FxHashMap<Page, (u64, Generation)>,
    pages_by_use: BTreeMap<u64, Page>,
}

impl TranslationCache {
    fn new(capacity: u64) -> TranslationCache {
        TranslationCache {
            capacity: capacity as usize,
            use_count: 0,
            entries: FxHashMap::default(),
            pages_by_use: BTreeMap::new(),
        }
    }

    fn find(&mut self, page: Page) -> Option<Generation> {
        let (last_use, generation) = self.entries.get_mut(&page)?;
        self.use_count += 1;
        self.pages_by_use.remove(last_use);
        self.pages_by_use.insert(self.use_count, page);
        *last_use = self.use_count;
        Some(*generation)
    }

    fn insert(&mut self, page: Page, generation: Generation) {
        self.remove(page);
        if self.entries.len() == self.capacity {
            if let Some((_, oldest_page)) = self.pages_by_use.pop_first() {
                self.entries.remove(&oldest_page);
            }
        }
        self.use_count += 1;
        self.entries.insert(page, (self.use_count, generation));
        self.pages_by_use.insert(self.use_count, page);
    }

    fn remove(&mut self, page: Page) {
        if let Some((last_use, _)) = self.entries.remove(&page) {
            self.pages_by_use.remove(&last_use);
        }
    }
}

/// Scheduled step of a translation.
#[derive(Clone, Copy)]
enum Step {
    /// An access looks up its translation.
    LookUp { access: u32 },
    /// A device's request reaches the host.
    Request { device: Agent, page: Page },
    /// A walk for a device has `tables_left` tables to read.
    Walk {
        device: Agent,
        page: Page,
        tables_left: u64,
    },
    /// The host's answer reaches the device.
    Answer {
        device: Agent,
        page: Page,
        generation: Generation,
    },
    /// The host unmaps a page.
    Unmap,
    /// The notification of an unmapped page reaches a device.
    InvalidatePage { device: Agent, page: Page },
    /// A device's acknowledgement reaches the host.
    AcknowledgeInvalidation { page: Page },
}

/// An outstanding request for a translation.
#[derive(Default)]
struct PendingTranslation {
    /// The accesses that wait for it.
    waiting: Vec<u32>,
    /// True if the page has been unmapped since the request was made.
    stale: bool,
}

/// Translation state of a device.
struct Device {
    cache: TranslationCache,
    pending: FxHashMap<Page, PendingTranslation>,
    /// Accesses that wait because the maximum number of requests is outstanding.
    delayed_accesses: VecDeque<u32>,
    /// For each page, the number of accesses that use its translation, and true if the host waits for their end.
    uses: FxHashMap<Page, (u32, bool)>,
}

/// Counters of translations, for the statistics.
#[derive(Clone, Copy, Default)]
pub struct Translated {
    /// Accesses whose translation the device had.
    pub hits: u64,
    /// Accesses that waited for a translation.
    pub misses: u64,
    /// Tables that walks have read.
    pub tables_read: u64,
    /// Pages unmapped.
    pub invalidations: u64,
    /// Accesses that the page table did not permit.
    pub faults: u64,
}

/// All translations of a machine. Only the devices of one kind use them.
pub(crate) struct Translations {
    quantities: Translation,
    /// Number of tables that a walk reads.
    tables_per_walk: u64,
    first_cache: u16,
    devices: Vec<Device>,
    host: TranslationCache,
    steps: Pool<Step>,
    /// Number of pages that the cores use, and the logarithm of the lines per page.
    page_count: Page,
    page_shift: u32,
    generations: FxHashMap<Page, Generation>,
    /// For each unmapped page, the number of devices that have not acknowledged, and the requests that wait until it is
    /// mapped.
    unmapping_pages: FxHashMap<Page, (u16, Vec<Agent>)>,
    /// Page of each access and its generation, by the access's index.
    access_translations: Vec<(Page, Generation)>,
    /// True if the next unmapping is scheduled.
    unmapping_scheduled: bool,
    /// Cores and lines with refused accesses. Retrying such an access does not count as progress.
    refused_accesses: FxHashSet<(u16, Line)>,
    random: Random,
    pub counters: Translated,
}

impl Translations {
    /// Creates the translations of a machine. Returns `None` if no kind of its cores uses virtual addresses.
    ///
    /// # Errors
    /// A sentence, if more than one kind uses them, or a quantity is invalid.
    pub fn new(
        platform: &Platform,
        caches: &[Agents],
        (lines, line_bytes): (Line, u32),
        seed: u64,
    ) -> Result<Option<Translations>, String> {
        let other_caches = platform.agents.iter().map(|agents| &agents.cache);
        let caches_by_kind = std::iter::once(&platform.cache)
            .chain(other_caches)
            .zip(caches);
        let is_used = |quantities: &&Translation| quantities.used.value == 1;
        let mut translated_kinds = caches_by_kind.filter_map(|(cache, quantities)| {
            let translation = cache.translation.as_ref().filter(is_used)?;
            Some((translation, quantities))
        });
        let Some((quantities, caches)) = translated_kinds.next() else {
            return Ok(None);
        };
        if translated_kinds.next().is_some() {
            return Err("only one kind of agents can use virtual addresses".into());
        }
        let lines_per_page = quantities.page.value / u64::from(line_bytes);
        if !lines_per_page.is_power_of_two() {
            return Err(format!(
                "a page must be a power of two of lines; a line has {line_bytes} bytes"
            ));
        }
        let device = |_| Device {
            cache: TranslationCache::new(quantities.entries.value),
            pending: FxHashMap::default(),
            delayed_accesses: VecDeque::new(),
            uses: FxHashMap::default(),
        };
        Ok(Some(Translations {
            tables_per_walk: quantities.walk()?,
            first_cache: caches.first().0,
            devices: caches.iter().map(device).collect(),
            host: TranslationCache::new(quantities.host_entries.value),
            steps: Pool::default(),
            page_count: u64::from(lines).div_ceil(lines_per_page) as Page,
            page_shift: lines_per_page.trailing_zeros(),
            generations: FxHashMap::default(),
            unmapping_pages: FxHashMap::default(),
            access_translations: Vec::new(),
            unmapping_scheduled: false,
            refused_accesses: FxHashSet::default(),
            random: Random::new(mix(seed ^ 0x7a65)),
            counters: Translated::default(),
            quantities: quantities.clone(),
        }))
    }

    /// True if accesses to a cache are translated.
    #[inline(always)]
    pub fn has(&self, cache: Agent) -> bool {
        usize::from(cache.0.wrapping_sub(self.first_cache)) < self.devices.len()
    }

    /// Returns the number of accesses to a cache that wait for a translation.
    pub fn waiting(&self, cache: Agent) -> usize {
        let index = usize::from(cache.0.wrapping_sub(self.first_cache));
        self.devices.get(index).map_or(0, |device| {
            let pending = device.pending.values().map(|pending| pending.waiting.len());
            device.delayed_accesses.len() + pending.sum::<usize>()
        })
    }

    fn device(&mut self, cache: Agent) -> &mut Device {
        &mut self.devices[usize::from(cache.0 - self.first_cache)]
    }

    fn generation(&self, page: Page) -> Generation {
        self.generations.get(&page).copied().unwrap_or(0)
    }

    /// Returns the permission that the page table grants for a page.
    fn page_permission(&self, page: Page) -> Right {
        let is_one_in = |pages: u64| pages > 0 && (u64::from(page) + 1).is_multiple_of(pages);
        match (
            is_one_in(self.quantities.absent.value),
            is_one_in(self.quantities.read_only.value),
        ) {
            (true, _) => Right::None,
            (_, true) => Right::Read,
            _ => Right::Write,
        }
    }

    /// Returns the page fault of an access to a page, or `None` if the access is permitted.
    fn page_fault(&self, page: Page, access: Access) -> Option<PageFault> {
        let (permits, write) = (self.page_permission(page), access.writes());
        let is_refused = permits == Right::None || write && permits == Right::Read;
        is_refused.then_some(PageFault { write, permits })
    }

    /// Records the translation that an access uses, by the access's index.
    fn record_use(&mut self, access: u32, page: Page, generation: Generation) {
        let number = access as usize;
        if self.access_translations.len() <= number {
            self.access_translations
                .resize(number + 1, (PHYSICAL_PAGE, 0));
        }
        self.access_translations[number] = (page, generation);
    }

    /// True if an access that has reached its cache has a virtual address.
    pub fn has_virtual_address(&self, access: u32, cache: Agent) -> bool {
        let access_translation = self.access_translations.get(access as usize);
        self.has(cache) && access_translation.is_some_and(|(page, _)| *page != PHYSICAL_PAGE)
    }

    /// Sets the number of lines, from the first on, that cores access.
    pub fn set_line_count(&mut self, lines: u64) {
        self.page_count = lines.div_ceil(1 << self.page_shift).max(1) as Page;
    }

    /// True if an unmapping is scheduled. If no access uses translations then, none takes place.
    pub fn unmapping_scheduled(&self) -> bool {
        self.unmapping_scheduled
    }

    /// True if no access waits for a translation or uses one.
    fn is_idle(&self) -> bool {
        let mut devices = self.devices.iter();
        devices.all(|device| {
            device.uses.is_empty()
                && device.pending.is_empty()
                && device.delayed_accesses.is_empty()
        })
    }

    fn path_latency(&mut self) -> Time {
        let jitter = self.quantities.jitter.value;
        self.quantities.way.value + self.random.below(jitter + u64::from(jitter > 0))
    }
}

impl Simulation {
    /// Translates an access that leaves its core at `departure`, which is not in the past.
    pub(crate) fn translate(&mut self, access: u32, departure: Time) {
        self.schedule_translation_step(departure, Step::LookUp { access });
        let Some(translations) = &mut self.translations else {
            return;
        };
        let unmap_interval = translations.quantities.unmap.value;
        if unmap_interval > 0 && !std::mem::replace(&mut translations.unmapping_scheduled, true) {
            // Pages are unmapped at multiples of the interval, as long as there are accesses.
            let next = (self.local.now / unmap_interval + 1).saturating_mul(unmap_interval);
            self.schedule_translation_step(next, Step::Unmap);
        }
    }

    /// True if this step unmaps a page.
    pub(crate) fn must_unmap(&self, step: u32) -> bool {
        let translations = self.translations.as_ref();
        translations.is_some_and(|translations| matches!(translations.steps[step], Step::Unmap))
    }

    /// Records that an access to a cache with virtual addresses has a physical address.
    pub(crate) fn mark_physical(&mut self, access: u32) {
        if let Some(translations) = &mut self.translations {
            translations.record_use(access, PHYSICAL_PAGE, 0);
        }
    }

    fn schedule_translation_step(&mut self, time: Time, step: Step) {
        if let Some(translations) = &mut self.translations {
            let number = translations.steps.insert(step);
            self.local.queue.push(time, Event::Translation(number));
        }
    }

    /// Sends a message one way between a device and the host.
    fn send_translation_message(&mut self, delay: Time, step: Step) {
        if let Some(translations) = &mut self.translations {
            let arrival = self.local.now + delay + translations.path_latency();
            self.schedule_translation_step(arrival, step);
        }
    }

    /// Executes a scheduled step.
    pub(crate) fn run_translation_step(&mut self, number: u32) {
        let Some(translations) = &mut self.translations else {
            return;
        };
        match translations.steps.remove(number) {
            Step::LookUp { access } => self.look_up_translation(access),
            Step::Request { device, page } => self.request_translation(device, page),
            Step::Walk {
                device,
                page,
                tables_left,
            } => self.continue_walk(device, page, tables_left),
            Step::Answer {
                device,
                page,
                generation,
            } => self.receive_translation(device, page, generation),
            Step::Unmap => self.unmap_random_page(),
            Step::InvalidatePage { device, page } => self.invalidate_translation(device, page),
            Step::AcknowledgeInvalidation { page } => self.confirm_invalidation(page),
        }
    }

    fn look_up_translation(&mut self, index: u32) {
        let access = self.local.accesses[index];
        let Some(translations) = &mut self.translations else {
            return;
        };
        let page = access.line >> translations.page_shift;
        let cached = translations.device(access.cache).cache.find(page);
        if let Some(generation) = cached {
            translations.counters.hits += 1;
            return self.send_translated(index, page, generation);
        }
        if access.purpose == Purpose::Hint {
            // A prefetch is not worth a walk.
            self.local.accesses.remove(index);
            return;
        }
        translations.counters.misses += 1;
        self.await_translation(index, page);
    }

    /// Makes an access wait for the translation of its page, which is requested unless a request is outstanding.
    fn await_translation(&mut self, index: u32, page: Page) {
        let cache = self.local.accesses[index].cache;
        let Some(translations) = &mut self.translations else {
            return;
        };
        let max_outstanding = translations.quantities.outstanding.value as usize;
        let hit_latency = translations.quantities.hit.value;
        let device = translations.device(cache);
        if let Some(pending) = device.pending.get_mut(&page) {
            return pending.waiting.push(index);
        }
        if device.pending.len() == max_outstanding {
            return device.delayed_accesses.push_back(index);
        }
        let pending = PendingTranslation {
            waiting: vec![index],
            stale: false,
        };
        device.pending.insert(page, pending);
        let request_step = Step::Request {
            device: cache,
            page,
        };
        self.send_translation_message(hit_latency, request_step);
    }

    /// Sends an access to its cache under a translation that its device has.
    fn send_translated(&mut self, index: u32, page: Page, generation: Generation) {
        let access = self.local.accesses[index];
        let request = self.groups.of_cache(access.cache).request;
        let Some(translations) = &mut self.translations else {
            return;
        };
        if let Some(refusal) = translations.page_fault(page, access.kind) {
            return self.refuse_access(index, page, refusal);
        }
        translations.record_use(index, page, generation);
        translations
            .device(access.cache)
            .uses
            .entry(page)
            .or_default()
            .0 += 1;
        let departure = self.local.now + translations.quantities.hit.value;
        self.local
            .queue
            .push(departure + request, Event::Access(index));
        if access.purpose == Purpose::Posted {
            // The thread has waited until here: it is notified of a refusal before its next step.
            let work = self.groups.of_cache(access.cache).work;
            self.continue_thread(access.core, departure + work);
        }
    }

    /// Ends an access that the page table does not permit, and notifies its requester.
    #[cold]
    fn refuse_access(&mut self, index: u32, page: Page, refusal: PageFault) {
        let access = self.local.accesses.remove(index);
        self.observe(Fact::Completed {
            index,
            access: &access,
            hit: true,
            performed: false,
        });
        self.observe(Fact::Refused { access: &access });
        let Some(translations) = &mut self.translations else {
            return;
        };
        if access.purpose == Purpose::Hint {
            return;
        }
        translations.counters.faults += 1;
        let is_progress = translations
            .refused_accesses
            .insert((access.core, access.line));
        let group = self.groups.of_cache(access.cache);
        let completion = self.local.now + translations.quantities.hit.value + group.hit;
        let next = completion + group.work;
        let has_programs = self.application.is_some() || self.neighbours.port.is_some();
        if is_progress || !has_programs {
            self.postpone_watchdog(self.local.now);
        }
        match access.purpose {
            Purpose::Port => self.refuse_port_access(&access, refusal, completion),
            Purpose::Drain => self.complete_drain(&access, true, false, completion),
            _ if self.application.is_some() => {
                self.tally.in_flight -= 1;
                if access.purpose == Purpose::Posted {
                    self.remove_posted(access.core, access.line);
                }
                let (word, line) = (u64::from(access.word), access.line);
                let address = u64::from(line) * u64::from(self.tables.line_bytes) + 8 * word;
                let cache = self.agent_name(access.cache);
                let target = format!(
                    "word {word} of line {line}, address {address:#x}, page {page}, by {cache}"
                );
                self.refuse_thread(access.core, refusal, &target, line, next);
            }
            _ => {
                self.tally.in_flight -= 1;
                self.tally.counters.skipped += 1;
                self.issue(access.core, next);
            }
        }
    }

    /// Reports a refused access to a thread's program. The thread continues at a time that is not in the past, if it
    /// can.
    pub(crate) fn refuse_thread(
        &mut self,
        core: u16,
        refusal: PageFault,
        target: &str,
        line: Line,
        time: Time,
    ) {
        let Some(application) = &mut self.application else {
            return;
        };
        let thread_index = usize::from(core);
        let step = application
            .scenario_run
            .handle_page_fault(thread_index, refusal);
        let (Some(thread), Some(step)) = (application.threads.get_mut(thread_index), step) else {
            let text =
                format!("thread {core} {refusal} ({target}), and does not handle the page fault");
            return self.fail(FailureKind::Refused, line, text);
        };
        thread.set_step_after_refusal(step);
        self.continue_thread(core, time);
    }

    /// Ends the use of a translation by a completed access, and checks that the translation was valid until now.
    pub(crate) fn end_translation_use(&mut self, index: u32, cache: Agent, line: Line) {
        let Some(translations) = &mut self.translations else {
            return;
        };
        let (page, generation) = translations.access_translations[index as usize];
        if page == PHYSICAL_PAGE {
            return;
        }
        let current_generation = translations.generation(page);
        let uses = &mut translations.device(cache).uses;
        let Some((use_count, host_waits)) = uses.get_mut(&page) else {
            return;
        };
        *use_count -= 1;
        let must_acknowledge = *use_count == 0 && *host_waits;
        if *use_count == 0 {
            uses.remove(&page);
        }
        if must_acknowledge {
            self.send_translation_message(0, Step::AcknowledgeInvalidation { page });
        }
        if generation != current_generation {
            let name = self.agent_name(cache);
            let text =
                format!("{name} has made an access to page {page} under a revoked translation");
            self.fail(FailureKind::Translation, line, text);
        }
    }

    fn request_translation(&mut self, device: Agent, page: Page) {
        let Some(translations) = &mut self.translations else {
            return;
        };
        if let Some((_, waiting)) = translations.unmapping_pages.get_mut(&page) {
            return waiting.push(device);
        }
        let lookup = translations.quantities.lookup.value;
        match translations.host.find(page) {
            Some(generation) => self.send_translation_message(
                lookup,
                Step::Answer {
                    device,
                    page,
                    generation,
                },
            ),
            None => {
                let tables_left = translations.tables_per_walk;
                let walk = Step::Walk {
                    device,
                    page,
                    tables_left,
                };
                self.schedule_translation_step(self.local.now + lookup, walk);
            }
        }
    }

    /// Starts the read of a walk's next table, or ends the walk after the last.
    fn continue_walk(&mut self, device: Agent, page: Page, tables_left: u64) {
        let Some(translations) = &mut self.translations else {
            return;
        };
        if tables_left > 0 {
            translations.counters.tables_read += 1;
            // Tables have entries of 8 bytes. The tables of one level are adjacent, from the end of memory down.
            let table = u64::from(page) >> (9 * (tables_left - 1)).min(31);
            let lines = u64::from(self.tables.platform.lines);
            let line =
                lines - 1 - (table * 8 / u64::from(self.tables.line_bytes) + tables_left) % lines;
            let read_end = self.memory(self.local.now, line as Line);
            let tables_left = tables_left - 1;
            return self.schedule_translation_step(
                read_end,
                Step::Walk {
                    device,
                    page,
                    tables_left,
                },
            );
        }
        if let Some((_, waiting)) = translations.unmapping_pages.get_mut(&page) {
            return waiting.push(device);
        }
        let generation = translations.generation(page);
        if translations.page_permission(page) > Right::None {
            translations.host.insert(page, generation);
        }
        let answer = Step::Answer {
            device,
            page,
            generation,
        };
        self.send_translation_message(0, answer);
    }

    fn receive_translation(&mut self, cache: Agent, page: Page, generation: Generation) {
        let Some(translations) = &mut self.translations else {
            return;
        };
        let device = translations.device(cache);
        let Some(pending) = device.pending.get_mut(&page) else {
            return;
        };
        if std::mem::take(&mut pending.stale) {
            let request_step = Step::Request {
                device: cache,
                page,
            };
            return self.send_translation_message(0, request_step);
        }
        let waiting = std::mem::take(&mut pending.waiting);
        device.pending.remove(&page);
        // The absence of a page is not cached: it is requested again.
        if translations.page_permission(page) > Right::None {
            translations.device(cache).cache.insert(page, generation);
        }
        let page_shift = translations.page_shift;
        for index in waiting {
            self.send_translated(index, page, generation);
        }
        // One more request may be outstanding.
        while let Some(translations) = &mut self.translations {
            let max_outstanding = translations.quantities.outstanding.value as usize;
            let device = translations.device(cache);
            if device.pending.len() == max_outstanding {
                return;
            }
            let Some(index) = device.delayed_accesses.pop_front() else {
                return;
            };
            let page = self.local.accesses[index].line >> page_shift;
            match device.cache.find(page) {
                Some(generation) => self.send_translated(index, page, generation),
                None => self.await_translation(index, page),
            }
        }
    }

    /// Unmaps a random page, unless that page is being unmapped already.
    fn unmap_random_page(&mut self) {
        let Some(translations) = &mut self.translations else {
            return;
        };
        translations.unmapping_scheduled = false;
        if translations.is_idle() {
            return;
        }
        let page = translations.random.below(translations.page_count.into()) as Page;
        let unmap_interval = translations.quantities.unmap.value;
        if !translations.unmapping_pages.contains_key(&page) {
            translations.counters.invalidations += 1;
            translations.host.remove(page);
            let devices = translations.devices.len() as u16;
            let first = translations.first_cache;
            translations
                .unmapping_pages
                .insert(page, (devices, Vec::new()));
            for device in Agents::new(first..first + devices).iter() {
                self.send_translation_message(0, Step::InvalidatePage { device, page });
            }
        }
        if let Some(translations) = &mut self.translations {
            translations.unmapping_scheduled = true;
        }
        self.schedule_translation_step(self.local.now + unmap_interval, Step::Unmap);
    }

    fn invalidate_translation(&mut self, cache: Agent, page: Page) {
        let Some(translations) = &mut self.translations else {
            return;
        };
        let device = translations.device(cache);
        device.cache.remove(page);
        if let Some(pending) = device.pending.get_mut(&page) {
            pending.stale = true;
        }
        match device.uses.get_mut(&page) {
            Some((_, host_waits)) => *host_waits = true,
            None => self.send_translation_message(0, Step::AcknowledgeInvalidation { page }),
        }
    }

    fn confirm_invalidation(&mut self, page: Page) {
        let Some(translations) = &mut self.translations else {
            return;
        };
        let Some((devices, _)) = translations.unmapping_pages.get_mut(&page) else {
            return;
        };
        *devices -= 1;
        if *devices > 0 {
            return;
        }
        let waiting = translations.unmapping_pages.remove(&page);
        *translations.generations.entry(page).or_default() += 1;
        for device in waiting.into_iter().flat_map(|(_, waiting)| waiting) {
            self.request_translation(device, page);
        }
    }
}
