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

use cohkit_application::interface::Refused;
use cohkit_protocol::controller::Access;
use cohkit_protocol::protocol::Right;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, VecDeque};

use crate::data::{mix, Random};
use crate::explain::FailureKind;
use crate::kernel::Time;
use crate::message::{Agent, Agents, Line, Pool};
use crate::platform::{Platform, Translation};
use crate::simulation::{Event, Purpose, Simulation};

/// Page number.
type Page = u32;

/// Page of an access with a physical address.
const PHYSICAL_PAGE: Page = Page::MAX;

/// Number of times that a page has been unmapped.
type Generation = u32;

/// Translation cache with LRU replacement and at most `most` entries.
struct TranslationCache {
    most: usize,
    used: u64,
    pages: FxHashMap<Page, (u64, Generation)>,
    oldest: BTreeMap<u64, Page>,
}

impl TranslationCache {
    fn new(most: u64) -> TranslationCache {
        TranslationCache {
            most: most as usize,
            used: 0,
            pages: FxHashMap::default(),
            oldest: BTreeMap::new(),
        }
    }

    fn find(&mut self, page: Page) -> Option<Generation> {
        let (used, generation) = self.pages.get_mut(&page)?;
        self.used += 1;
        self.oldest.remove(used);
        self.oldest.insert(self.used, page);
        *used = self.used;
        Some(*generation)
    }

    fn keep(&mut self, page: Page, generation: Generation) {
        self.forget(page);
        if self.pages.len() == self.most {
            if let Some((_, oldest)) = self.oldest.pop_first() {
                self.pages.remove(&oldest);
            }
        }
        self.used += 1;
        self.pages.insert(page, (self.used, generation));
        self.oldest.insert(self.used, page);
    }

    fn forget(&mut self, page: Page) {
        if let Some((used, _)) = self.pages.remove(&page) {
            self.oldest.remove(&used);
        }
    }
}

/// Scheduled step of a translation.
#[derive(Clone, Copy)]
enum Step {
    /// An access looks up its translation.
    Look { access: u32 },
    /// A device's request reaches the host.
    Ask { device: Agent, page: Page },
    /// A walk for a device has `left` tables to read.
    Walk {
        device: Agent,
        page: Page,
        left: u64,
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
    TakenBack { device: Agent, page: Page },
    /// A device's acknowledgement reaches the host.
    Forgotten { page: Page },
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
    kept: TranslationCache,
    asked: FxHashMap<Page, PendingTranslation>,
    /// Accesses that wait because the maximum number of requests is outstanding.
    waiting: VecDeque<u32>,
    /// For each page, the number of accesses that use its translation, and true if the host waits for their end.
    under: FxHashMap<Page, (u32, bool)>,
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
    pub taken_back: u64,
    /// Accesses that the page table did not permit.
    pub faults: u64,
}

/// All translations of a machine. Only the devices of one kind use them.
pub(crate) struct Translations {
    of: Translation,
    /// Number of tables that a walk reads.
    walk: u64,
    first: u16,
    devices: Vec<Device>,
    host: TranslationCache,
    steps: Pool<Step>,
    /// Number of pages that the cores use, and the logarithm of the lines per page.
    pages: Page,
    shift: u32,
    generations: FxHashMap<Page, Generation>,
    /// For each unmapped page, the number of devices that have not acknowledged, and the requests that wait until it is
    /// mapped.
    leaving: FxHashMap<Page, (u16, Vec<Agent>)>,
    /// Page of each access and its generation, by the access's index.
    under: Vec<(Page, Generation)>,
    /// True if the next unmapping is scheduled.
    unmapping_scheduled: bool,
    /// Cores and lines with refused accesses. Retrying such an access does not count as progress.
    refused: FxHashSet<(u16, Line)>,
    random: Random,
    pub told: Translated,
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
        let others = platform.agents.iter().map(|agents| &agents.cache);
        let all = std::iter::once(&platform.cache).chain(others).zip(caches);
        let used = |of: &&Translation| of.used.value == 1;
        let mut used = all.filter_map(|(cache, of)| {
            let translation = cache.translation.as_ref().filter(used)?;
            Some((translation, of))
        });
        let Some((of, caches)) = used.next() else {
            return Ok(None);
        };
        if used.next().is_some() {
            return Err("only one kind of agents can use virtual addresses".into());
        }
        let in_page = of.page.value / u64::from(line_bytes);
        if !in_page.is_power_of_two() {
            return Err(format!(
                "a page must be a power of two of lines; a line has {line_bytes} bytes"
            ));
        }
        let device = |_| Device {
            kept: TranslationCache::new(of.entries.value),
            asked: FxHashMap::default(),
            waiting: VecDeque::new(),
            under: FxHashMap::default(),
        };
        Ok(Some(Translations {
            walk: of.walk()?,
            first: caches.first().0,
            devices: caches.iter().map(device).collect(),
            host: TranslationCache::new(of.host_entries.value),
            steps: Pool::default(),
            pages: u64::from(lines).div_ceil(in_page) as Page,
            shift: in_page.trailing_zeros(),
            generations: FxHashMap::default(),
            leaving: FxHashMap::default(),
            under: Vec::new(),
            unmapping_scheduled: false,
            refused: FxHashSet::default(),
            random: Random::new(mix(seed ^ 0x7a65)),
            told: Translated::default(),
            of: of.clone(),
        }))
    }

    /// True if accesses to a cache are translated.
    #[inline(always)]
    pub fn has(&self, cache: Agent) -> bool {
        usize::from(cache.0.wrapping_sub(self.first)) < self.devices.len()
    }

    /// Returns the number of accesses to a cache that wait for a translation.
    pub fn waiting(&self, cache: Agent) -> usize {
        let place = usize::from(cache.0.wrapping_sub(self.first));
        self.devices.get(place).map_or(0, |device| {
            let asked = device.asked.values().map(|asked| asked.waiting.len());
            device.waiting.len() + asked.sum::<usize>()
        })
    }

    fn device(&mut self, cache: Agent) -> &mut Device {
        &mut self.devices[usize::from(cache.0 - self.first)]
    }

    fn generation(&self, page: Page) -> Generation {
        self.generations.get(&page).copied().unwrap_or(0)
    }

    /// Returns the permission that the page table grants for a page.
    fn permits(&self, page: Page) -> Right {
        let one_of = |pages: u64| pages > 0 && (u64::from(page) + 1).is_multiple_of(pages);
        match (
            one_of(self.of.absent.value),
            one_of(self.of.read_only.value),
        ) {
            (true, _) => Right::None,
            (_, true) => Right::Read,
            _ => Right::Write,
        }
    }

    /// Returns the page fault of an access to a page, or `None` if the access is permitted.
    fn page_fault(&self, page: Page, access: Access) -> Option<Refused> {
        let (permits, write) = (self.permits(page), access.writes());
        let refused = permits == Right::None || write && permits == Right::Read;
        refused.then_some(Refused { write, permits })
    }

    /// Records the translation that an access uses, by the access's index.
    fn note(&mut self, access: u32, page: Page, generation: Generation) {
        let number = access as usize;
        if self.under.len() <= number {
            self.under.resize(number + 1, (PHYSICAL_PAGE, 0));
        }
        self.under[number] = (page, generation);
    }

    /// True if an access that has reached its cache has a virtual address.
    pub fn has_virtual_address(&self, access: u32, cache: Agent) -> bool {
        let under = self.under.get(access as usize);
        self.has(cache) && under.is_some_and(|(page, _)| *page != PHYSICAL_PAGE)
    }

    /// Sets the number of lines, from the first on, that cores access.
    pub fn set_line_count(&mut self, lines: u64) {
        self.pages = lines.div_ceil(1 << self.shift).max(1) as Page;
    }

    /// True if an unmapping is scheduled. If no access uses translations then, none takes place.
    pub fn unmapping_scheduled(&self) -> bool {
        self.unmapping_scheduled
    }

    /// True if no access waits for a translation or uses one.
    fn idle(&self) -> bool {
        let mut devices = self.devices.iter();
        devices.all(|of| of.under.is_empty() && of.asked.is_empty() && of.waiting.is_empty())
    }

    fn way(&mut self) -> Time {
        let jitter = self.of.jitter.value;
        self.of.way.value + self.random.below(jitter + u64::from(jitter > 0))
    }
}

impl Simulation {
    /// Translates an access that leaves its core at `at`, which is not in the past.
    pub(crate) fn translate(&mut self, access: u32, at: Time) {
        self.schedule_translation_step(at, Step::Look { access });
        let Some(translations) = &mut self.translations else {
            return;
        };
        let unmap = translations.of.unmap.value;
        if unmap > 0 && !std::mem::replace(&mut translations.unmapping_scheduled, true) {
            // Pages are unmapped at multiples of the interval, as long as there are accesses.
            let next = (self.now / unmap + 1).saturating_mul(unmap);
            self.schedule_translation_step(next, Step::Unmap);
        }
    }

    /// True if this step unmaps a page.
    pub(crate) fn must_unmap(&self, step: u32) -> bool {
        let translations = self.translations.as_ref();
        translations.is_some_and(|of| matches!(of.steps[step], Step::Unmap))
    }

    /// Records that an access to a cache with virtual addresses has a physical address.
    pub(crate) fn is_physical(&mut self, access: u32) {
        if let Some(translations) = &mut self.translations {
            translations.note(access, PHYSICAL_PAGE, 0);
        }
    }

    fn schedule_translation_step(&mut self, at: Time, step: Step) {
        if let Some(translations) = &mut self.translations {
            let number = translations.steps.insert(step);
            self.queue.push(at, Event::Translation(number));
        }
    }

    /// Sends a message one way between a device and the host.
    fn send_translation_message(&mut self, after: Time, step: Step) {
        if let Some(translations) = &mut self.translations {
            let at = self.now + after + translations.way();
            self.schedule_translation_step(at, step);
        }
    }

    /// Executes a scheduled step.
    pub(crate) fn translation(&mut self, number: u32) {
        let Some(translations) = &mut self.translations else {
            return;
        };
        match translations.steps.remove(number) {
            Step::Look { access } => self.look_up(access),
            Step::Ask { device, page } => self.request_translation(device, page),
            Step::Walk { device, page, left } => self.walk(device, page, left),
            Step::Answer {
                device,
                page,
                generation,
            } => self.translated(device, page, generation),
            Step::Unmap => self.unmap(),
            Step::TakenBack { device, page } => self.taken_back(device, page),
            Step::Forgotten { page } => self.confirm_invalidation(page),
        }
    }

    fn look_up(&mut self, index: u32) {
        let access = self.accesses[index];
        let Some(translations) = &mut self.translations else {
            return;
        };
        let page = access.line >> translations.shift;
        let kept = translations.device(access.cache).kept.find(page);
        if let Some(generation) = kept {
            translations.told.hits += 1;
            return self.send_translated(index, page, generation);
        }
        if access.purpose == Purpose::Hint {
            // A prefetch is not worth a walk.
            self.accesses.remove(index);
            return;
        }
        translations.told.misses += 1;
        self.await_translation(index, page);
    }

    /// Makes an access wait for the translation of its page, which is requested unless a request is outstanding.
    fn await_translation(&mut self, index: u32, page: Page) {
        let cache = self.accesses[index].cache;
        let Some(translations) = &mut self.translations else {
            return;
        };
        let most = translations.of.outstanding.value as usize;
        let hit = translations.of.hit.value;
        let device = translations.device(cache);
        if let Some(asked) = device.asked.get_mut(&page) {
            return asked.waiting.push(index);
        }
        if device.asked.len() == most {
            return device.waiting.push_back(index);
        }
        let asked = PendingTranslation {
            waiting: vec![index],
            stale: false,
        };
        device.asked.insert(page, asked);
        let ask = Step::Ask {
            device: cache,
            page,
        };
        self.send_translation_message(hit, ask);
    }

    /// Sends an access to its cache under a translation that its device has.
    fn send_translated(&mut self, index: u32, page: Page, generation: Generation) {
        let access = self.accesses[index];
        let request = self.groups.of_cache(access.cache).request;
        let Some(translations) = &mut self.translations else {
            return;
        };
        if let Some(why) = translations.page_fault(page, access.kind) {
            return self.refuse(index, page, why);
        }
        translations.note(index, page, generation);
        translations
            .device(access.cache)
            .under
            .entry(page)
            .or_default()
            .0 += 1;
        let leaves = self.now + translations.of.hit.value;
        self.queue.push(leaves + request, Event::Access(index));
        if access.purpose == Purpose::Posted {
            // The thread has waited until here: it is notified of a refusal before its next step.
            let work = self.groups.of_cache(access.cache).work;
            self.thread(access.core, leaves + work);
        }
    }

    /// Ends an access that the page table does not permit, and notifies its requester.
    #[cold]
    fn refuse(&mut self, index: u32, page: Page, why: Refused) {
        let access = self.accesses.remove(index);
        if self.watched {
            self.note_finished(index, &access, true, false);
            self.note_refused(&access);
        }
        let Some(translations) = &mut self.translations else {
            return;
        };
        if access.purpose == Purpose::Hint {
            return;
        }
        translations.told.faults += 1;
        let on = translations.refused.insert((access.core, access.line));
        let group = self.groups.of_cache(access.cache);
        let done = self.now + translations.of.hit.value + group.hit;
        let next = done + group.work;
        let programs = self.behind.is_some() || self.port.is_some();
        if on || !programs {
            self.expect(self.now);
        }
        match access.purpose {
            Purpose::Port => self.refuse_port_access(&access, why, done),
            Purpose::Drain => self.complete_drain(&access, true, false, done),
            _ if self.behind.is_some() => {
                self.in_flight -= 1;
                if access.purpose == Purpose::Posted {
                    self.remove_posted(access.core, access.line);
                }
                let (word, line) = (u64::from(access.word), access.line);
                let address = u64::from(line) * u64::from(self.line_bytes) + 8 * word;
                let cache = self.agent_name(access.cache);
                let what = format!(
                    "word {word} of line {line}, address {address:#x}, page {page}, by {cache}"
                );
                self.refuse_thread(access.core, why, &what, line, next);
            }
            _ => {
                self.in_flight -= 1;
                self.counters.skipped += 1;
                self.issue(access.core, next);
            }
        }
    }

    /// Reports a refused access to a thread's program. The thread continues at a time that is not in the past, if it
    /// can.
    pub(crate) fn refuse_thread(
        &mut self,
        core: u16,
        why: Refused,
        what: &str,
        line: Line,
        at: Time,
    ) {
        let Some(behind) = &mut self.behind else {
            return;
        };
        let number = usize::from(core);
        let step = behind.played.refused(number, why);
        let (Some(running), Some(step)) = (behind.threads.get_mut(number), step) else {
            let text = format!("thread {core} {why} ({what}), and does not handle the page fault");
            return self.fail(FailureKind::Refused, line, text);
        };
        running.set_step_after_refusal(step);
        self.thread(core, at);
    }

    /// Ends the use of a translation by a completed access, and checks that the translation was valid until now.
    pub(crate) fn end_translation_use(&mut self, index: u32, cache: Agent, line: Line) {
        let Some(translations) = &mut self.translations else {
            return;
        };
        let (page, generation) = translations.under[index as usize];
        if page == PHYSICAL_PAGE {
            return;
        }
        let there = translations.generation(page);
        let under = &mut translations.device(cache).under;
        let Some((accesses, told)) = under.get_mut(&page) else {
            return;
        };
        *accesses -= 1;
        let awaited = *accesses == 0 && *told;
        if *accesses == 0 {
            under.remove(&page);
        }
        if awaited {
            self.send_translation_message(0, Step::Forgotten { page });
        }
        if generation != there {
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
        if let Some((_, waiting)) = translations.leaving.get_mut(&page) {
            return waiting.push(device);
        }
        let lookup = translations.of.lookup.value;
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
                let left = translations.walk;
                let walk = Step::Walk { device, page, left };
                self.schedule_translation_step(self.now + lookup, walk);
            }
        }
    }

    /// Starts the read of a walk's next table, or ends the walk after the last.
    fn walk(&mut self, device: Agent, page: Page, left: u64) {
        let Some(translations) = &mut self.translations else {
            return;
        };
        if left > 0 {
            translations.told.tables_read += 1;
            // Tables have entries of 8 bytes. The tables of one level are adjacent, from the end of memory down.
            let table = u64::from(page) >> (9 * (left - 1)).min(31);
            let lines = u64::from(self.platform.lines);
            let line = lines - 1 - (table * 8 / u64::from(self.line_bytes) + left) % lines;
            let at = self.memory(self.now, line as Line);
            let left = left - 1;
            return self.schedule_translation_step(at, Step::Walk { device, page, left });
        }
        if let Some((_, waiting)) = translations.leaving.get_mut(&page) {
            return waiting.push(device);
        }
        let generation = translations.generation(page);
        if translations.permits(page) > Right::None {
            translations.host.keep(page, generation);
        }
        let answer = Step::Answer {
            device,
            page,
            generation,
        };
        self.send_translation_message(0, answer);
    }

    fn translated(&mut self, cache: Agent, page: Page, generation: Generation) {
        let Some(translations) = &mut self.translations else {
            return;
        };
        let device = translations.device(cache);
        let Some(asked) = device.asked.get_mut(&page) else {
            return;
        };
        if std::mem::take(&mut asked.stale) {
            let ask = Step::Ask {
                device: cache,
                page,
            };
            return self.send_translation_message(0, ask);
        }
        let waiting = std::mem::take(&mut asked.waiting);
        device.asked.remove(&page);
        // The absence of a page is not cached: it is requested again.
        if translations.permits(page) > Right::None {
            translations.device(cache).kept.keep(page, generation);
        }
        let shift = translations.shift;
        for index in waiting {
            self.send_translated(index, page, generation);
        }
        // One more request may be outstanding.
        while let Some(translations) = &mut self.translations {
            let most = translations.of.outstanding.value as usize;
            let device = translations.device(cache);
            if device.asked.len() == most {
                return;
            }
            let Some(index) = device.waiting.pop_front() else {
                return;
            };
            let page = self.accesses[index].line >> shift;
            match device.kept.find(page) {
                Some(generation) => self.send_translated(index, page, generation),
                None => self.await_translation(index, page),
            }
        }
    }

    /// Unmaps a random page, unless that page is being unmapped already.
    fn unmap(&mut self) {
        let Some(translations) = &mut self.translations else {
            return;
        };
        translations.unmapping_scheduled = false;
        if translations.idle() {
            return;
        }
        let page = translations.random.below(translations.pages.into()) as Page;
        let unmap = translations.of.unmap.value;
        if !translations.leaving.contains_key(&page) {
            translations.told.taken_back += 1;
            translations.host.forget(page);
            let devices = translations.devices.len() as u16;
            let first = translations.first;
            translations.leaving.insert(page, (devices, Vec::new()));
            for device in Agents::new(first..first + devices).iter() {
                self.send_translation_message(0, Step::TakenBack { device, page });
            }
        }
        if let Some(translations) = &mut self.translations {
            translations.unmapping_scheduled = true;
        }
        self.schedule_translation_step(self.now + unmap, Step::Unmap);
    }

    fn taken_back(&mut self, cache: Agent, page: Page) {
        let Some(translations) = &mut self.translations else {
            return;
        };
        let device = translations.device(cache);
        device.kept.forget(page);
        if let Some(asked) = device.asked.get_mut(&page) {
            asked.stale = true;
        }
        match device.under.get_mut(&page) {
            Some((_, told)) => *told = true,
            None => self.send_translation_message(0, Step::Forgotten { page }),
        }
    }

    fn confirm_invalidation(&mut self, page: Page) {
        let Some(translations) = &mut self.translations else {
            return;
        };
        let Some((devices, _)) = translations.leaving.get_mut(&page) else {
            return;
        };
        *devices -= 1;
        if *devices > 0 {
            return;
        }
        let waiting = translations.leaving.remove(&page);
        *translations.generations.entry(page).or_default() += 1;
        for device in waiting.into_iter().flat_map(|(_, waiting)| waiting) {
            self.request_translation(device, page);
        }
    }
}
