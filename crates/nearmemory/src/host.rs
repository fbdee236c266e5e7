//! The host: cores behind their own caches and one that they share, which nothing keeps coherent with far memory and the
//! scratchpads.

use crate::cache::{Cache, Copy, Way};
use crate::events::{Event, Request, Response, Time, Who, Why, Wire};
use crate::platform::Platform;
use crate::races::{Queue, Site};
use crate::scratchpad::{Data, LINE};
use cohkit_riscv::system::Bytes;
use cohkit_riscv::{Amo, Cbo, Fence, Flat, Memory, Prefetch, Reply, Shared, Size, TimedMemory};
use std::collections::BTreeMap;
use std::ops::Range;

/// Where far memory begins, for the host's caches and for the copy engines.
pub const FAR: u64 = 0x40_0000_0000;
/// Where it begins for accesses by which no cache is asked.
pub const UNCACHED: u64 = 0x60_0000_0000;
/// Where the scratchpad of core 0 begins for the host; that of core N is N times [`SCRATCHPAD_STRIDE`] behind.
pub const SCRATCHPADS: u64 = 0x70_0000_0000;
/// Between two scratchpads.
pub const SCRATCHPAD_STRIDE: u64 = 1 << 24;
/// Where the registers of core 0 begin for the host; those of core N are N times [`REGISTERS_STRIDE`] behind.
pub const REGISTERS: u64 = 0x71_0000_0000;
/// Between the registers of two cores.
pub const REGISTERS_STRIDE: u64 = 1 << 12;

const LINE_BYTES: u64 = LINE as u64;

/// What the host has counted.
#[derive(Clone, Debug, Default)]
pub struct HostCounters {
    /// Loads and stores that the core's own cache answered.
    pub l1_hits: u64,
    /// Those that the last cache answered.
    pub llc_hits: u64,
    /// Those that went to the host's memory.
    pub main_misses: u64,
    /// Lines of far memory and scratchpads that were asked for by loads and stores.
    pub far_misses: u64,
    /// Lines that hints have asked for.
    pub prefetches: u64,
    /// Hints that were dropped since too many lines were waited for.
    pub dropped: u64,
    /// Lines that were written back because they were to be.
    pub cleaned: u64,
    /// Lines that were written back because their place was needed.
    pub evicted: u64,
    /// Loads and stores of far memory by which no cache was asked.
    pub uncached: u64,
    /// Loads and stores of registers.
    pub registers: u64,
}

/// A load that waits for a line.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    core: usize,
    to: u8,
    at: u64,
    size: Size,
}

/// A line that has been asked for.
#[derive(Clone, Debug)]
struct Miss {
    waiters: Vec<Waiter>,
    /// What has been stored in it so far, a bit of the mask for each byte.
    stored: Box<Data>,
    mask: u128,
    /// The cores that have stored, and those whose own caches it is for, a bit for each.
    storing: u64,
    first_for: u64,
}

/// What has been sent and not answered.
#[derive(Clone, Debug)]
enum Sent {
    Line(u64),
    Word {
        core: usize,
        to: u8,
    },
    /// The cores that wait for it, a bit for each.
    WriteBack {
        line: u64,
        cores: u64,
    },
    Write {
        core: usize,
    },
}

/// What is handed to a core.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery {
    pub core: usize,
    pub to: u8,
    pub value: u64,
}

/// Lines are evicted at random, one in so many accesses.
#[derive(Clone, Copy, Debug)]
pub struct Evictions {
    /// How many accesses there are to each.
    pub every: u64,
    /// What chance begins with.
    pub seed: u64,
}

#[derive(Clone, Debug)]
struct Core {
    own: Cache,
    /// Loads that are waited for, and writes whose acknowledgements a fence waits for.
    loads: u64,
    writes: u64,
    /// Lines of its own cache that are waited for.
    misses: u64,
}

pub(crate) struct Host {
    pub(crate) main: Shared,
    main_range: Range<u64>,
    cores: Vec<Core>,
    llc: Cache,
    misses: BTreeMap<u64, Miss>,
    sent: BTreeMap<u64, Sent>,
    requests: u64,
    pub(crate) up: Wire,
    main_free: Time,
    main_line: Time,
    platform: Platform,
    evictions: Option<Evictions>,
    pub(crate) counters: HostCounters,
}

/// Where an address leads.
enum Region {
    Main,
    /// A line of far memory or of a scratchpad, as caches know it.
    Cached,
    /// The address in far memory.
    Uncached(u64),
    Register,
    Nothing,
}

impl Host {
    pub(crate) fn new(
        platform: &Platform,
        main: Flat,
        start: u64,
        evictions: Option<Evictions>,
    ) -> Host {
        let cores = platform.cores.value as usize;
        let tracks = evictions.is_some();
        let own = Cache::new(platform.l1.value, platform.l1_ways.value, false);
        Host {
            main_range: start..main.end(),
            main: Shared::new(main, cores),
            cores: vec![
                Core {
                    own,
                    loads: 0,
                    writes: 0,
                    misses: 0
                };
                cores
            ],
            llc: Cache::new(platform.llc.value, platform.llc_ways.value, tracks),
            misses: BTreeMap::new(),
            sent: BTreeMap::new(),
            requests: 0,
            up: Wire::new(
                platform.link_latency.value,
                platform.link_bandwidth.value,
                platform.link_header.value,
            ),
            main_free: 0,
            main_line: platform.main_bandwidth.time_of(LINE as u32),
            platform: platform.clone(),
            evictions,
            counters: HostCounters::default(),
        }
    }

    /// Whether a core that runs ahead of others would see or do something else than it should.
    pub(crate) fn is_shared(&self) -> bool {
        self.cores.len() > 1 || !self.misses.is_empty() || self.evictions.is_some()
    }

    /// What is waited for, in words.
    pub(crate) fn waits(&self) -> String {
        let what = self.sent.values().map(|sent| match sent {
            Sent::Line(line) => format!("the line at {line:#x}"),
            Sent::Word { .. } => "a word".to_string(),
            Sent::WriteBack { line, .. } => {
                format!("the acknowledgement of its write-back of the line at {line:#x}")
            }
            Sent::Write { .. } => "the acknowledgement of a store".to_string(),
        });
        let what: Vec<String> = what.take(4).collect();
        what.join(", ")
    }

    fn region(&self, at: u64, length: u64) -> Region {
        let within = |start: u64, bytes: u64| {
            let offset = at.wrapping_sub(start);
            offset < bytes && length <= bytes - offset
        };
        let mccs = self.platform.mccs.value;
        if within(
            self.main_range.start,
            self.main_range.end - self.main_range.start,
        ) {
            return Region::Main;
        }
        let scratchpad = (at.wrapping_sub(SCRATCHPADS)) % SCRATCHPAD_STRIDE;
        let lines = self.platform.scratchpad.value * LINE_BYTES;
        if within(FAR, self.platform.far_bytes.value)
            || within(SCRATCHPADS, mccs * SCRATCHPAD_STRIDE) && scratchpad + length <= lines
        {
            return Region::Cached;
        }
        if within(UNCACHED, self.platform.far_bytes.value) {
            return Region::Uncached(at - UNCACHED + FAR);
        }
        match within(REGISTERS, mccs * REGISTERS_STRIDE) {
            true => Region::Register,
            false => Region::Nothing,
        }
    }

    /// Sends a request, and says by which number it will be answered.
    fn send(&mut self, queue: &mut Queue, now: Time, sent: Sent, request: Request) -> u64 {
        let path = match &request {
            Request::ReadWord(at, _) | Request::WriteWord(at, ..) if *at >= REGISTERS => {
                self.platform.register_path.value
            }
            _ => self.platform.device_path.value,
        };
        let number = self.requests;
        self.requests += 1;
        self.sent.insert(number, sent);
        let arrives = self
            .up
            .carry(now + self.platform.request.value, request.bytes());
        queue.add(arrives + path / 2, Event::Asked(number, request));
        number
    }

    /// Whether no more can be sent now.
    fn is_full(&self) -> bool {
        self.sent.len() as u64 >= self.platform.llc_misses.value
    }

    /// What becomes of a line that is no longer in the last cache.
    fn evicted(&mut self, queue: &mut Queue, now: Time, way: Option<Way>, cores: u64) {
        let Some(way) = way else { return };
        for core in &mut self.cores {
            core.own.remove(way.line);
        }
        match way.copy {
            Some(copy) if copy.dirty => {
                self.write_back(queue, now, way.line, copy.data, cores, false);
            }
            Some(_) => {
                if let Some(watch) = &mut queue.watch {
                    watch.drops(way.line);
                }
            }
            None => {}
        }
    }

    /// Writes a line back, which the cache keeps or not.
    fn write_back(
        &mut self,
        queue: &mut Queue,
        now: Time,
        line: u64,
        data: Data,
        cores: u64,
        keeps: bool,
    ) {
        let sent = Sent::WriteBack { line, cores };
        let request = Request::WriteLine(line, Box::new(data));
        let number = self.send(queue, now, sent, request);
        if let Some(watch) = &mut queue.watch {
            watch.writes_back(line, number, keeps, line < UNCACHED);
        }
    }

    /// What an access of the host's own memory takes longer.
    fn main(&mut self, core: usize, at: u64, now: Time, queue: &mut Queue) -> Time {
        let line = at & !(LINE_BYTES - 1);
        if let Some(way) = self.cores[core].own.find(line) {
            self.counters.l1_hits += 1;
            return way.ready.saturating_sub(now);
        }
        let hit = self.platform.llc_hit.value;
        let ready = match self.llc.find(line) {
            Some(way) => {
                self.counters.llc_hits += 1;
                way.ready.max(now + hit)
            }
            None => {
                self.counters.main_misses += 1;
                self.fetch_main(line, now, queue)
            }
        };
        self.cores[core].own.put(Way {
            line,
            ready,
            copy: None,
        });
        ready - now
    }

    /// Asks the host's memory for a line, and says when it is there.
    fn fetch_main(&mut self, line: u64, now: Time, queue: &mut Queue) -> Time {
        let begins = self.main_free.max(now + self.platform.request.value);
        self.main_free = begins + self.main_line;
        let ready = self.main_free + self.platform.main_latency.value + self.platform.fill.value;
        let victim = self.llc.put(Way {
            line,
            ready,
            copy: None,
        });
        self.evicted(queue, now, victim, 0);
        ready
    }

    /// What a load of a line that is in the last cache takes longer; it is then in the core's own one.
    fn near(&mut self, core: usize, line: u64, now: Time) -> Time {
        if let Some(way) = self.cores[core].own.find(line) {
            self.counters.l1_hits += 1;
            return way.ready.saturating_sub(now);
        }
        self.counters.llc_hits += 1;
        self.nearer(core, line, now);
        self.platform.llc_hit.value
    }

    /// Brings a line from the last cache to a core's own one.
    fn nearer(&mut self, core: usize, line: u64, now: Time) {
        self.cores[core].own.put(Way {
            line,
            ready: now + self.platform.llc_hit.value,
            copy: None,
        });
    }

    /// An answer is there. What it brings to cores.
    pub(crate) fn arrived(
        &mut self,
        queue: &mut Queue,
        now: Time,
        number: u64,
        response: Response,
    ) -> Vec<Delivery> {
        match (self.sent.remove(&number), response) {
            (Some(Sent::Line(line)), Response::Line(data)) => {
                if let Some(watch) = queue.watch.as_mut().filter(|_| line > UNCACHED) {
                    watch.filled(line, number);
                }
                self.filled(queue, now, line, *data)
            }
            (Some(Sent::Word { core, to }), Response::Word(value)) => {
                self.cores[core].loads -= 1;
                if let Some(watch) = &mut queue.watch {
                    watch.answered(Who::Host(core), number);
                }
                vec![Delivery { core, to, value }]
            }
            (Some(Sent::WriteBack { cores, .. }), _) => {
                for (number, core) in self.cores.iter_mut().enumerate() {
                    core.writes -= cores >> number & 1;
                }
                Vec::new()
            }
            (Some(Sent::Write { core }), _) => {
                self.cores[core].writes -= 1;
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn filled(&mut self, queue: &mut Queue, now: Time, line: u64, mut data: Data) -> Vec<Delivery> {
        let Some(miss) = self.misses.remove(&line) else {
            return Vec::new();
        };
        for (i, byte) in miss.stored.iter().enumerate() {
            if miss.mask >> i & 1 != 0 {
                data[i] = *byte;
            }
        }
        let victim = self.llc.put(Way {
            line,
            ready: now,
            copy: Some(Box::new(Copy {
                data,
                dirty: miss.mask != 0,
            })),
        });
        self.evicted(queue, now, victim, 0);
        for (number, core) in self.cores.iter_mut().enumerate() {
            if miss.first_for >> number & 1 != 0 {
                core.misses -= 1;
                core.own.put(Way {
                    line,
                    ready: now,
                    copy: None,
                });
            }
        }
        let mut deliveries = Vec::new();
        for waiter in miss.waiters {
            self.cores[waiter.core].loads -= 1;
            deliveries.push(Delivery {
                core: waiter.core,
                to: waiter.to,
                value: read(&data, waiter.at, waiter.size),
            });
        }
        deliveries
    }

    /// Evicts a line at random, if it is time to.
    fn evict(&mut self, queue: &mut Queue, now: Time) {
        let Some(evictions) = &mut self.evictions else {
            return;
        };
        let mut random = |limit: u64| {
            let step = evictions.seed.wrapping_mul(6_364_136_223_846_793_005);
            evictions.seed = step.wrapping_add(1_442_695_040_888_963_407);
            (evictions.seed >> 33) % limit
        };
        let copies = self.llc.copies();
        if copies.is_empty() || random(evictions.every.max(1)) > 0 {
            return;
        }
        let line = copies[random(copies.len() as u64) as usize];
        let way = self.llc.remove(line);
        self.counters.evicted += 1;
        self.evicted(queue, now, way, 0);
    }
}

/// A part of a line, at an address in it.
fn read(data: &Data, at: u64, size: Size) -> u64 {
    let offset = (at % LINE_BYTES) as usize;
    let mut word = [0; 8];
    word[..size as usize].copy_from_slice(&data[offset..offset + size as usize]);
    u64::from_le_bytes(word)
}

fn write(data: &mut Data, at: u64, size: Size, value: u64) {
    let (offset, length) = ((at % LINE_BYTES) as usize, size as usize);
    data[offset..offset + length].copy_from_slice(&value.to_le_bytes()[..length]);
}

fn within_line(at: u64, size: Size) -> bool {
    at % LINE_BYTES + size as u64 <= LINE_BYTES
}

/// The memory of the host as a core sees it.
pub(crate) struct HostPort<'a> {
    pub host: &'a mut Host,
    pub queue: &'a mut Queue,
    pub core: usize,
    pub now: Time,
    /// The instruction that asks.
    pc: u64,
    /// What the last access takes longer.
    longer: Time,
    /// Why the last access waits.
    pub why: Why,
    /// Whether something has begun that others are to know of first.
    begun: bool,
}

impl<'a> HostPort<'a> {
    pub(crate) fn new(host: &'a mut Host, queue: &'a mut Queue, core: usize) -> HostPort<'a> {
        HostPort {
            host,
            queue,
            core,
            now: 0,
            pc: 0,
            longer: 0,
            why: Why::Nothing,
            begun: false,
        }
    }

    /// Whether nothing else happens before what is done now.
    #[inline(always)]
    fn early(&mut self) -> bool {
        let early = self.queue.soonest() < self.now;
        if early {
            self.why = Why::Early;
        }
        early
    }

    fn site(&self) -> Site {
        Site {
            who: Who::Host(self.core),
            pc: self.pc,
        }
    }

    #[inline(always)]
    fn fenced(&mut self) {
        if let Some(watch) = &mut self.queue.watch {
            watch.fenced(self.core);
        }
    }

    #[inline(always)]
    fn watch_load(&mut self, line: u64) {
        let site = self.site();
        if let Some(watch) = &mut self.queue.watch {
            watch.loads(site, line, line < UNCACHED);
        }
    }

    #[inline(always)]
    fn watch_store(&mut self, at: u64, size: Size) {
        let site = self.site();
        if let Some(watch) = &mut self.queue.watch {
            watch.stores(site, at, size as u32, at < UNCACHED);
        }
    }

    fn blocked<T>(&mut self) -> Reply<T> {
        self.why = Why::Blocked;
        Reply::Wait
    }

    /// The copy of a line, if the last cache has it, and what it takes longer.
    #[inline(always)]
    fn copy(&mut self, line: u64) -> Option<&mut Copy> {
        if !self.host.llc.has(line) {
            return None;
        }
        self.longer = self.host.near(self.core, line, self.now);
        self.host.llc.find(line)?.copy.as_deref_mut()
    }

    /// What is waited for of a line, which is asked for unless it has been. Nothing if too much is waited for.
    fn miss(&mut self, line: u64) -> Option<&mut Miss> {
        let (core, host) = (self.core, &mut *self.host);
        let bit = 1 << core;
        let first = host.misses.get(&line).map_or(0, |miss| miss.first_for);
        if first & bit == 0 {
            if host.cores[core].misses >= host.platform.l1_misses.value {
                return None;
            }
            if !host.misses.contains_key(&line) {
                if host.is_full() {
                    return None;
                }
                host.counters.far_misses += 1;
                self.ask(line);
            }
            self.host.cores[core].misses += 1;
        }
        let miss = self.host.misses.get_mut(&line)?;
        miss.first_for |= bit;
        Some(miss)
    }

    /// Asks for a line.
    fn ask(&mut self, line: u64) {
        let miss = Miss {
            waiters: Vec::new(),
            stored: Box::new([0; LINE]),
            mask: 0,
            storing: 0,
            first_for: 0,
        };
        self.host.misses.insert(line, miss);
        let request = Request::ReadLine(line);
        self.host
            .send(self.queue, self.now, Sent::Line(line), request);
        self.begun = true;
    }

    /// Whether a load or store of a line goes on alone: it waits for others, or the line is evicted before.
    fn late<T>(&mut self, line: u64) -> Option<Reply<T>> {
        let shared = self.host.is_shared() || !self.host.llc.has(line);
        if shared && self.early() {
            return Some(Reply::Wait);
        }
        if self.host.evictions.is_some() {
            if self.host.is_full() {
                return Some(self.blocked());
            }
            self.host.evict(self.queue, self.now);
        }
        None
    }

    fn load_line(&mut self, at: u64, size: Size, to: u8) -> Reply<u64> {
        if !within_line(at, size) {
            return Reply::Misaligned;
        }
        let line = at & !(LINE_BYTES - 1);
        if let Some(reply) = self.late(line) {
            return reply;
        }
        if let Some(copy) = self.copy(line) {
            let value = read(&copy.data, at, size);
            self.watch_load(line);
            return Reply::Done(value);
        }
        let core = self.core;
        match self.miss(line) {
            Some(miss) => {
                miss.waiters.push(Waiter { core, to, at, size });
                self.host.cores[core].loads += 1;
                self.watch_load(line);
                Reply::Later
            }
            None => self.blocked(),
        }
    }

    fn store_line(&mut self, at: u64, size: Size, value: u64) -> Reply<()> {
        if !within_line(at, size) {
            return Reply::Misaligned;
        }
        let line = at & !(LINE_BYTES - 1);
        if let Some(reply) = self.late(line) {
            return reply;
        }
        if let Some(copy) = self.copy(line) {
            write(&mut copy.data, at, size, value);
            copy.dirty = true;
            self.watch_store(at, size);
            return Reply::Done(());
        }
        let core = self.core;
        match self.miss(line) {
            Some(miss) => {
                write(&mut miss.stored, at, size, value);
                miss.mask |= ((1 << size as u32) - 1) << (at % LINE_BYTES);
                miss.storing |= 1 << core;
                self.watch_store(at, size);
                Reply::Done(())
            }
            None => self.blocked(),
        }
    }

    fn load_word(&mut self, at: u64, size: Size, to: u8) -> Reply<u64> {
        if self.early() {
            return Reply::Wait;
        }
        if self.host.is_full() {
            return self.blocked();
        }
        let core = self.core;
        self.host.cores[core].loads += 1;
        let request = Request::ReadWord(at, size);
        let sent = Sent::Word { core, to };
        self.host.send(self.queue, self.now, sent, request);
        self.begun = true;
        Reply::Later
    }

    fn store_word(&mut self, at: u64, size: Size, value: u64) -> Reply<()> {
        if self.early() {
            return Reply::Wait;
        }
        if self.host.is_full() {
            return self.blocked();
        }
        let core = self.core;
        self.host.cores[core].writes += 1;
        let request = Request::WriteWord(at, size, value);
        let sent = Sent::Write { core };
        let number = self.host.send(self.queue, self.now, sent, request);
        if let Some(watch) = self.queue.watch.as_mut().filter(|_| at >= REGISTERS) {
            watch.sends(Who::Host(core), number);
        }
        self.begun = true;
        Reply::Done(())
    }

    /// Writes a line back or drops it, as told.
    fn manage(&mut self, line: u64, what: Cbo) -> Reply<()> {
        if self.early() {
            return Reply::Wait;
        }
        if self.host.is_full() || self.host.misses.contains_key(&line) {
            return self.blocked();
        }
        let bit = 1 << self.core;
        if what != Cbo::Invalidate {
            // What an eviction has begun is waited for, too.
            let mut waits = 0;
            for sent in self.host.sent.values_mut() {
                match sent {
                    Sent::WriteBack { line: other, cores } if *other == line => {
                        waits += u64::from(*cores & bit == 0);
                        *cores |= bit;
                    }
                    _ => {}
                }
            }
            self.host.cores[self.core].writes += waits;
        }
        if let Some(watch) = &mut self.queue.watch {
            watch.cleans(self.core, line);
        }
        let Some(way) = self.host.llc.find(line) else {
            return Reply::Done(());
        };
        let dirty = way.copy.as_ref().is_some_and(|copy| copy.dirty);
        if dirty && what != Cbo::Invalidate {
            self.host.counters.cleaned += 1;
            self.host.cores[self.core].writes += 1;
        }
        if what == Cbo::Clean {
            if let Some(copy) = way.copy.as_deref_mut().filter(|copy| copy.dirty) {
                copy.dirty = false;
                let data = copy.data;
                let (queue, now) = (&mut *self.queue, self.now);
                self.host.write_back(queue, now, line, data, bit, true);
            }
        } else {
            let mut way = self.host.llc.remove(line);
            if let Some(copy) = way.as_mut().and_then(|way| way.copy.as_mut()) {
                copy.dirty &= what == Cbo::Flush;
            }
            self.host.evicted(self.queue, self.now, way, bit);
        }
        Reply::Done(())
    }

    /// Hints at a line of far memory or of a scratchpad.
    fn hint(&mut self, line: u64, first: bool) {
        let (core, bit) = (self.core, 1 << self.core);
        let own_full = self.host.cores[core].misses >= self.host.platform.l1_misses.value;
        if self.host.llc.has(line) {
            if first && self.host.cores[core].own.find(line).is_none() {
                self.host.nearer(core, line, self.now);
            }
            return;
        }
        let known = self.host.misses.get(&line).map(|miss| miss.first_for);
        let for_own = first && known.is_none_or(|for_own| for_own & bit == 0);
        if for_own && own_full || known.is_none() && self.host.is_full() {
            self.host.counters.dropped += 1;
            return;
        }
        if known.is_none() {
            self.host.counters.prefetches += 1;
            self.ask(line);
        }
        if for_own {
            self.host.cores[core].misses += 1;
            if let Some(miss) = self.host.misses.get_mut(&line) {
                miss.first_for |= bit;
            }
        }
    }
}

impl Memory for HostPort<'_> {
    const SPLIT: bool = true;

    fn fetch(&mut self, at: u64) -> Reply<u16> {
        self.host.main.memory.fetch(at)
    }

    #[inline(always)]
    fn load(&mut self, at: u64, size: Size, to: u8) -> Reply<u64> {
        match self.host.region(at, size as u64) {
            Region::Main if self.host.cores.len() > 1 && self.early() => Reply::Wait,
            Region::Main => {
                self.longer = self.host.main(self.core, at, self.now, self.queue);
                self.host.main.memory.load(at, size, to)
            }
            Region::Cached => self.load_line(at, size, to),
            Region::Uncached(at) if at.is_multiple_of(size as u64) => {
                let reply = self.load_word(at, size, to);
                self.host.counters.uncached += u64::from(reply == Reply::Later);
                reply
            }
            Region::Register if size == Size::Double && at.is_multiple_of(8) => {
                let reply = self.load_word(at, size, to);
                self.host.counters.registers += u64::from(reply == Reply::Later);
                reply
            }
            Region::Uncached(_) | Region::Register => Reply::Misaligned,
            Region::Nothing => Reply::Fault,
        }
    }

    #[inline(always)]
    fn store(&mut self, at: u64, size: Size, value: u64) -> Reply<()> {
        match self.host.region(at, size as u64) {
            Region::Main if self.host.cores.len() > 1 && self.early() => Reply::Wait,
            Region::Main => {
                self.host.main(self.core, at, self.now, self.queue);
                match self.host.main.port(self.core) {
                    Some(mut port) => port.store(at, size, value),
                    None => Reply::Fault,
                }
            }
            Region::Cached => self.store_line(at, size, value),
            Region::Uncached(at) if at.is_multiple_of(size as u64) => {
                let reply = self.store_word(at, size, value);
                self.host.counters.uncached += u64::from(reply == Reply::Done(()));
                reply
            }
            Region::Register if size == Size::Double && at.is_multiple_of(8) => {
                let reply = self.store_word(at, size, value);
                self.host.counters.registers += u64::from(reply == Reply::Done(()));
                reply
            }
            Region::Uncached(_) | Region::Register => Reply::Misaligned,
            Region::Nothing => Reply::Fault,
        }
    }

    fn amo(&mut self, at: u64, amo: Amo, to: u8) -> Reply<u64> {
        // Nobody else would see an atomic access to what nothing keeps coherent.
        if !matches!(self.host.region(at, amo.size as u64), Region::Main) {
            return Reply::Fault;
        }
        if self.host.cores.len() > 1 && self.early() {
            return Reply::Wait;
        }
        self.longer = self.host.main(self.core, at, self.now, self.queue);
        match self.host.main.port(self.core) {
            Some(mut port) => port.amo(at, amo, to),
            None => Reply::Fault,
        }
    }

    fn fence(&mut self, _fence: Fence) -> Reply<()> {
        let core = &self.host.cores[self.core];
        let waits = core.loads > 0 || core.writes > 0;
        if !waits && self.host.misses.is_empty() {
            self.fenced();
            return Reply::Done(());
        }
        if self.early() {
            return Reply::Wait;
        }
        let stores = |miss: &Miss| miss.storing >> self.core & 1 != 0;
        if waits || self.host.misses.values().any(stores) {
            return self.blocked();
        }
        self.fenced();
        Reply::Done(())
    }

    fn fence_i(&mut self) -> Reply<()> {
        Reply::Done(())
    }

    fn cbo(&mut self, at: u64, what: Cbo) -> Reply<()> {
        match self.host.region(at, 1) {
            Region::Cached => self.manage(at & !(LINE_BYTES - 1), what),
            Region::Nothing => Reply::Fault,
            // The host's own memory is coherent, and the rest is in no cache.
            _ => Reply::Done(()),
        }
    }

    fn prefetch(&mut self, at: u64, what: Prefetch) {
        let first = Prefetch::level(at) == 1;
        let line = at & !(LINE_BYTES - 1);
        match self.host.region(at, 1) {
            Region::Cached if what != Prefetch::Execute => self.hint(line, first),
            Region::Main if first => {
                self.host.main(self.core, at, self.now, self.queue);
            }
            Region::Main if !self.host.llc.has(line) => {
                self.host.fetch_main(line, self.now, self.queue);
            }
            _ => {}
        }
    }
}

impl TimedMemory for HostPort<'_> {
    fn at(&mut self, cycle: u64) {
        self.now = cycle.saturating_mul(self.host.platform.host_cycle.value);
        self.longer = 0;
        self.begun = false;
    }

    fn longer(&mut self) -> u64 {
        let cycle = self.host.platform.host_cycle.value;
        std::mem::take(&mut self.longer).div_ceil(cycle)
    }

    fn by(&mut self, pc: u64) {
        self.pc = pc;
    }

    fn stops(&self) -> bool {
        self.begun
    }
}

/// What calls of programs reach: the host's own memory.
impl Bytes for Host {
    fn get(&mut self, at: u64, bytes: &mut [u8]) -> bool {
        self.main.memory.get(at, bytes)
    }

    fn put(&mut self, at: u64, bytes: &[u8]) -> bool {
        self.main.memory.put(at, bytes)
    }
}
