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
use cohkit_protocol::protocol::Permission;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, VecDeque};

use crate::data::{mix, Random};
use crate::explain::FailureKind;
use crate::kernel::Time;
use crate::message::{Agent, Agents, CoreId, Line, Pool};
use crate::platform::{Platform, Translation};
use crate::simulation::{Context, Event, MainMemory, Pending, Purpose};

/// Page number: the line number divided by the lines of a page.
pub(crate) type Page = u32;

/// Page of an access with a physical address.
const PHYSICAL_PAGE: Page = Page::MAX;

/// Number of times that a page has been unmapped: it identifies one mapping of the page.
pub(crate) type Generation = u32;

/// Translation cache of sets with LRU replacement. A page belongs to set (page mod sets).
struct TranslationCache {
    /// At least one set.
    sets: Vec<TranslationSet>,
}

impl TranslationCache {
    /// Creates an empty cache with at most `entries` entries, in sets of `ways`, or in one set if `ways` is 0.
    fn new(entries: u64, ways: u64) -> TranslationCache {
        let sets = entries.checked_div(ways).unwrap_or(1).max(1);
        let set = || TranslationSet::new(entries / sets);
        TranslationCache {
            sets: (0..sets).map(|_| set()).collect(),
        }
    }

    /// Returns the set of a page.
    fn set(&mut self, page: Page) -> &mut TranslationSet {
        let index = page as usize % self.sets.len();
        &mut self.sets[index]
    }
}

/// Set of a translation cache with LRU replacement and at most `capacity` entries.
struct TranslationSet {
    /// Maximum number of entries.
    capacity: usize,
    /// Number of uses so far: the time of the last one, for LRU.
    use_count: u64,
    /// Last use and generation of each cached page.
    entries: FxHashMap<Page, (u64, Generation)>,
    /// Cached pages by last use.
    pages_by_use: BTreeMap<u64, Page>,
}

impl TranslationSet {
    /// Creates an empty set.
    fn new(capacity: u64) -> TranslationSet {
        TranslationSet {
            capacity: capacity as usize,
            use_count: 0,
            entries: FxHashMap::default(),
            pages_by_use: BTreeMap::new(),
        }
    }

    /// Returns the generation of a cached page, and counts a use of it.
    fn find(&mut self, page: Page) -> Option<Generation> {
        let (last_use, generation) = self.entries.get_mut(&page)?;
        self.use_count += 1;
        self.pages_by_use.remove(last_use);
        self.pages_by_use.insert(self.use_count, page);
        *last_use = self.use_count;
        Some(*generation)
    }

    /// Inserts or replaces a translation, and evicts the least recently used one if the cache is full.
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

    /// Removes the translation of a page, if it is cached.
    fn remove(&mut self, page: Page) {
        if let Some((last_use, _)) = self.entries.remove(&page) {
            self.pages_by_use.remove(&last_use);
        }
    }
}

/// Scheduled step of a translation.
#[derive(Clone, Copy)]
pub(crate) enum TranslationStep {
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
    /// Indices of the accesses that wait for the translation.
    waiting: Vec<u32>,
    /// True if the page has been unmapped since the request was made.
    stale: bool,
}

/// Translation state of a device.
struct Device {
    /// Translations that the device has.
    cache: TranslationCache,
    /// Outstanding requests, by page.
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
    /// Quantities of the platform.
    quantities: Translation,
    /// Number of tables that a walk reads.
    tables_per_walk: u64,
    /// Number of the first caching agent whose accesses are translated.
    first_cache: u16,
    /// State of each device: device D has the caching agent `first_cache` + D.
    devices: Vec<Device>,
    /// Translations that the host's unit keeps.
    host: TranslationCache,
    /// Scheduled steps, to which [`Event::Translation`] refers.
    steps: Pool<TranslationStep>,
    /// Number of pages that the cores use, from page 0 on; only these are unmapped.
    page_count: Page,
    /// Logarithm of the number of lines per page.
    page_shift: u32,
    /// Number of times that each page has been unmapped; pages never unmapped are absent.
    generations: FxHashMap<Page, Generation>,
    /// For each unmapped page, the number of devices that have not acknowledged, and the requests that wait until it is
    /// mapped.
    unmapping_pages: FxHashMap<Page, (u16, Vec<Agent>)>,
    /// Page of each access and its generation, by the access's index.
    access_translations: Vec<(Page, Generation)>,
    /// True if the next unmapping is scheduled.
    unmapping_scheduled: bool,
    /// Cores and lines with refused accesses. Retrying such an access does not count as progress.
    refused_accesses: FxHashSet<(CoreId, Line)>,
    /// Source of pages to unmap and of random latencies.
    random: Random,
    /// Counters for the statistics.
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
        let is_used = |quantities: &&Translation| quantities.enabled.value == 1;
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
        let lines_per_page = quantities.page_size.value / u64::from(line_bytes);
        if !lines_per_page.is_power_of_two() {
            return Err(format!(
                "a page must be a power of two of lines; a line has {line_bytes} bytes"
            ));
        }
        let device = |_| Device {
            cache: TranslationCache::new(quantities.atc_entries.value, quantities.atc_ways.value),
            pending: FxHashMap::default(),
            delayed_accesses: VecDeque::new(),
            uses: FxHashMap::default(),
        };
        Ok(Some(Translations {
            tables_per_walk: quantities.walk()?,
            first_cache: caches.first().0,
            devices: caches.iter().map(device).collect(),
            host: TranslationCache::new(
                quantities.iommu_tlb_entries.value,
                quantities.iommu_tlb_ways.value,
            ),
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

    /// Returns the device of a caching agent with virtual addresses.
    fn device(&mut self, cache: Agent) -> &mut Device {
        &mut self.devices[usize::from(cache.0 - self.first_cache)]
    }

    /// Returns the current generation of a page.
    fn generation(&self, page: Page) -> Generation {
        self.generations.get(&page).copied().unwrap_or(0)
    }

    /// Returns the permission that the page table grants for a page.
    fn page_permission(&self, page: Page) -> Permission {
        let is_one_in = |pages: u64| pages > 0 && (u64::from(page) + 1).is_multiple_of(pages);
        match (
            is_one_in(self.quantities.absent_one_in.value),
            is_one_in(self.quantities.read_only_one_in.value),
        ) {
            (true, _) => Permission::None,
            (_, true) => Permission::Read,
            _ => Permission::Write,
        }
    }

    /// Returns the page fault of an access to a page, or `None` if the access is permitted.
    pub fn page_fault(&self, page: Page, access: Access) -> Option<PageFault> {
        let (permits, write) = (self.page_permission(page), access.writes());
        let is_refused = permits == Permission::None || write && permits == Permission::Read;
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

    /// Latency of a message between a device and the host, with its random part, in picoseconds.
    fn path_latency(&mut self) -> Time {
        let jitter = self.quantities.jitter.value;
        self.quantities.ats_latency.value + self.random.below(jitter + u64::from(jitter > 0))
    }
}

impl Translations {
    /// Translates an access that leaves its core at `departure`, which is not in the past.
    pub fn translate(&mut self, context: &mut Context, access: u32, departure: Time) {
        self.schedule_step(context, departure, TranslationStep::LookUp { access });
        let unmap_interval = self.quantities.invalidation_interval.value;
        if unmap_interval > 0 && !std::mem::replace(&mut self.unmapping_scheduled, true) {
            // Pages are unmapped at multiples of the interval, as long as there are accesses.
            let next = (context.now() / unmap_interval + 1).saturating_mul(unmap_interval);
            self.schedule_step(context, next, TranslationStep::Unmap);
        }
    }

    /// True if this step unmaps a page.
    pub fn must_unmap(&self, step: u32) -> bool {
        matches!(self.steps[step], TranslationStep::Unmap)
    }

    /// Records that an access to a cache with virtual addresses has a physical address.
    pub fn mark_physical(&mut self, access: u32) {
        self.record_use(access, PHYSICAL_PAGE, 0);
    }

    /// Schedules a step at `time`, in picoseconds.
    fn schedule_step(&mut self, context: &mut Context, time: Time, step: TranslationStep) {
        let number = self.steps.insert(step);
        context.schedule(time, Event::Translation(number));
    }

    /// Sends a message one way between a device and the host.
    fn send_message(&mut self, context: &mut Context, delay: Time, step: TranslationStep) {
        let arrival = context.now() + delay + self.path_latency();
        self.schedule_step(context, arrival, step);
    }

    /// Removes a scheduled step, which is executed now.
    pub fn take_step(&mut self, number: u32) -> TranslationStep {
        self.steps.remove(number)
    }

    /// Executes a step at the host, or a page invalidation.
    pub fn run_host_step(
        &mut self,
        context: &mut Context,
        memory: &mut MainMemory,
        step: TranslationStep,
    ) {
        match step {
            // The frontend continues the accesses of these steps.
            TranslationStep::LookUp { .. } | TranslationStep::Answer { .. } => {}
            TranslationStep::Request { device, page } => {
                self.request_translation(context, device, page)
            }
            TranslationStep::Walk {
                device,
                page,
                tables_left,
            } => self.continue_walk(context, memory, (device, page), tables_left),
            TranslationStep::Unmap => self.unmap_random_page(context),
            TranslationStep::InvalidatePage { device, page } => {
                self.invalidate_translation(context, device, page)
            }
            TranslationStep::AcknowledgeInvalidation { page } => {
                self.confirm_invalidation(context, page)
            }
        }
    }

    /// Looks up the translation of an access. Returns its page and generation if the device has it. An access
    /// without one waits for it, and a prefetch is dropped.
    pub fn look_up(&mut self, context: &mut Context, index: u32) -> Option<(Page, Generation)> {
        let access = context.local.accesses[index];
        let page = access.line >> self.page_shift;
        let cached = self.device(access.cache).cache.set(page).find(page);
        if let Some(generation) = cached {
            self.counters.hits += 1;
            return Some((page, generation));
        }
        if access.purpose == Purpose::Hint {
            // A prefetch is not worth a walk.
            context.local.accesses.remove(index);
            return None;
        }
        self.counters.misses += 1;
        self.await_translation(context, index, page);
        None
    }

    /// Makes an access wait for the translation of its page, which is requested unless a request is outstanding.
    pub fn await_translation(&mut self, context: &mut Context, index: u32, page: Page) {
        let cache = context.local.accesses[index].cache;
        let max_outstanding = self.quantities.max_outstanding.value as usize;
        let hit_latency = self.quantities.atc_hit_latency.value;
        let device = self.device(cache);
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
        let request_step = TranslationStep::Request {
            device: cache,
            page,
        };
        self.send_message(context, hit_latency, request_step);
    }

    /// Latency of a hit in a device's translation cache, in picoseconds.
    pub fn hit_latency(&self) -> Time {
        self.quantities.atc_hit_latency.value
    }

    /// Records that an access uses a translation until it has been performed.
    pub fn begin_use(&mut self, index: u32, cache: Agent, page: Page, generation: Generation) {
        self.record_use(index, page, generation);
        self.device(cache).uses.entry(page).or_default().0 += 1;
    }

    /// Counts a refused access. Returns false if the core's access to the line has been refused before.
    pub fn record_refusal(&mut self, access: &Pending) -> bool {
        self.counters.faults += 1;
        self.refused_accesses.insert((access.core, access.line))
    }

    /// Ends the use of a translation by a completed access, and checks that the translation was valid until now.
    pub fn end_use(&mut self, context: &mut Context, index: u32, cache: Agent, line: Line) {
        let (page, generation) = self.access_translations[index as usize];
        if page == PHYSICAL_PAGE {
            return;
        }
        let current_generation = self.generation(page);
        let uses = &mut self.device(cache).uses;
        let Some((use_count, host_waits)) = uses.get_mut(&page) else {
            return;
        };
        *use_count -= 1;
        let must_acknowledge = *use_count == 0 && *host_waits;
        if *use_count == 0 {
            uses.remove(&page);
        }
        if must_acknowledge {
            let step = TranslationStep::AcknowledgeInvalidation { page };
            self.send_message(context, 0, step);
        }
        if generation != current_generation {
            let name = context.agent_name(cache);
            let text =
                format!("{name} has made an access to page {page} under a revoked translation");
            context.fail(FailureKind::Translation, line, text);
        }
    }

    /// Handles a device's request at the host: responds to it, starts a walk, or lets it wait until the page is mapped
    /// again.
    fn request_translation(&mut self, context: &mut Context, device: Agent, page: Page) {
        if let Some((_, waiting)) = self.unmapping_pages.get_mut(&page) {
            return waiting.push(device);
        }
        let lookup = self.quantities.iommu_tlb_latency.value;
        match self.host.set(page).find(page) {
            Some(generation) => self.send_message(
                context,
                lookup,
                TranslationStep::Answer {
                    device,
                    page,
                    generation,
                },
            ),
            None => {
                let tables_left = self.tables_per_walk;
                let walk = TranslationStep::Walk {
                    device,
                    page,
                    tables_left,
                };
                self.schedule_step(context, context.local.now + lookup, walk);
            }
        }
    }

    /// Starts the read of a walk's next table, or ends the walk after the last.
    fn continue_walk(
        &mut self,
        context: &mut Context,
        memory: &mut MainMemory,
        (device, page): (Agent, Page),
        tables_left: u64,
    ) {
        if tables_left > 0 {
            self.counters.tables_read += 1;
            // Tables have entries of 8 bytes. The tables of one level are adjacent, from the end of memory down.
            let table = u64::from(page) >> (9 * (tables_left - 1)).min(31);
            let lines = u64::from(context.tables.platform.lines);
            let line = lines
                - 1
                - (table * 8 / u64::from(context.tables.line_bytes) + tables_left) % lines;
            let tables_left = tables_left - 1;
            let step = TranslationStep::Walk {
                device,
                page,
                tables_left,
            };
            let event = Event::Translation(self.steps.insert(step));
            return memory.start(context, (line as Line, None), false, Some(event));
        }
        if let Some((_, waiting)) = self.unmapping_pages.get_mut(&page) {
            return waiting.push(device);
        }
        let generation = self.generation(page);
        if self.page_permission(page) > Permission::None {
            self.host.set(page).insert(page, generation);
        }
        let answer = TranslationStep::Answer {
            device,
            page,
            generation,
        };
        self.send_message(context, 0, answer);
    }

    /// Receives the host's answer at a device. Returns the accesses that waited for it, unless the page has been
    /// unmapped since the request, which is then repeated.
    pub fn receive_answer(
        &mut self,
        context: &mut Context,
        cache: Agent,
        page: Page,
        generation: Generation,
    ) -> Option<Vec<u32>> {
        let device = self.device(cache);
        let pending = device.pending.get_mut(&page)?;
        if std::mem::take(&mut pending.stale) {
            let request_step = TranslationStep::Request {
                device: cache,
                page,
            };
            self.send_message(context, 0, request_step);
            return None;
        }
        let waiting = std::mem::take(&mut pending.waiting);
        device.pending.remove(&page);
        // The absence of a page is not cached: it is requested again.
        if self.page_permission(page) > Permission::None {
            self.device(cache).cache.set(page).insert(page, generation);
        }
        Some(waiting)
    }

    /// Returns the next access of a device that waits because of the maximum number of requests, if there is one and
    /// another request may be outstanding. The access comes with its page, and the translation if the device has it.
    pub fn next_delayed(
        &mut self,
        context: &Context,
        cache: Agent,
    ) -> Option<(u32, Page, Option<Generation>)> {
        let max_outstanding = self.quantities.max_outstanding.value as usize;
        let page_shift = self.page_shift;
        let device = self.device(cache);
        if device.pending.len() == max_outstanding {
            return None;
        }
        let index = device.delayed_accesses.pop_front()?;
        let page = context.local.accesses[index].line >> page_shift;
        Some((index, page, device.cache.set(page).find(page)))
    }

    /// Unmaps a random page, unless that page is being unmapped already.
    fn unmap_random_page(&mut self, context: &mut Context) {
        self.unmapping_scheduled = false;
        if self.is_idle() {
            return;
        }
        let page = self.random.below(self.page_count.into()) as Page;
        if !self.unmapping_pages.contains_key(&page) {
            self.counters.invalidations += 1;
            self.host.set(page).remove(page);
            let devices = self.devices.len() as u16;
            self.unmapping_pages.insert(page, (devices, Vec::new()));
            let first = self.first_cache;
            for device in Agents::new(first..first + devices).iter() {
                let step = TranslationStep::InvalidatePage { device, page };
                self.send_message(context, 0, step);
            }
        }
        self.unmapping_scheduled = true;
        let next = context.now() + self.quantities.invalidation_interval.value;
        self.schedule_step(context, next, TranslationStep::Unmap);
    }

    /// Handles the notification of an unmapped page at a device: invalidates the translation, and acknowledges at
    /// once if no access uses it.
    fn invalidate_translation(&mut self, context: &mut Context, cache: Agent, page: Page) {
        let device = self.device(cache);
        device.cache.set(page).remove(page);
        if let Some(pending) = device.pending.get_mut(&page) {
            pending.stale = true;
        }
        match device.uses.get_mut(&page) {
            Some((_, host_waits)) => *host_waits = true,
            None => self.send_message(
                context,
                0,
                TranslationStep::AcknowledgeInvalidation { page },
            ),
        }
    }

    /// Handles a device's acknowledgement at the host. After the last one, the page is mapped again, as a new
    /// generation.
    fn confirm_invalidation(&mut self, context: &mut Context, page: Page) {
        let Some((devices, _)) = self.unmapping_pages.get_mut(&page) else {
            return;
        };
        *devices -= 1;
        if *devices > 0 {
            return;
        }
        let waiting = self.unmapping_pages.remove(&page);
        *self.generations.entry(page).or_default() += 1;
        for device in waiting.into_iter().flat_map(|(_, waiting)| waiting) {
            self.request_translation(context, device, page);
        }
    }
}
