//! Hosts: cores with private caches and a shared last-level cache, which are not coherent with far memory, scratchpads
//! and other hosts.

mod port;
mod prefetcher;

pub(crate) use port::HostPort;

use crate::cache::{Cache, Copy, Way};
use crate::events::{CoreId, Event, HostMemoryRequest, Request, Response, Wire};
use crate::platform::Platform;
use crate::queue::Queue;
use crate::scratchpad::{Data, LINE};
use cohkit_riscv::system::Bytes;
use cohkit_riscv::{FlatMemory, SharedMemory, Size};
use cohkit_units::Time;
use prefetcher::Prefetcher;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Base address of far memory, for cached accesses and for the copy engines.
pub const FAR: u64 = 0x40_0000_0000;
/// Base address of the uncached alias of far memory.
pub(crate) const UNCACHED: u64 = 0x60_0000_0000;
/// Base address of the scratchpad of core 0 in the host's address space; core N's is N times [`SCRATCHPAD_STRIDE`]
/// above.
pub const SCRATCHPADS: u64 = 0x70_0000_0000;
/// Distance between two scratchpads, in bytes.
pub const SCRATCHPAD_STRIDE: u64 = 1 << 24;
/// Base address of the registers of core 0 in the host's address space; core N's are N times [`REGISTERS_STRIDE`]
/// above.
pub const REGISTERS: u64 = 0x71_0000_0000;
/// Distance between the registers of two cores, in bytes.
pub const REGISTERS_STRIDE: u64 = 1 << 12;

/// Bytes of a line.
const LINE_BYTES: u64 = LINE as u64;

/// Counters of a host.
#[derive(Clone, Debug, Default)]
pub struct HostCounters {
    /// Loads and stores that hit the core's own cache.
    pub l1_hits: u64,
    /// Accesses that hit the last-level cache.
    pub llc_hits: u64,
    /// Accesses that went to the host's own memory.
    pub main_misses: u64,
    /// Lines of far memory and scratchpads requested by loads and stores.
    pub far_misses: u64,
    /// Lines requested by prefetches.
    pub prefetches: u64,
    /// Prefetches dropped because too many misses were outstanding.
    pub dropped: u64,
    /// Lines requested by hardware prefetchers.
    pub hardware_prefetches: u64,
    /// Lines among them that a later access or prefetch instruction has used.
    pub hardware_used: u64,
    /// Hardware prefetches dropped because too many misses were outstanding.
    pub hardware_dropped: u64,
    /// Lines requested by hardware prefetchers that synchronisation or stores have dropped on their way.
    pub hardware_discarded: u64,
    /// Lines of host memory that copy engines have read and written.
    pub copied_reads: u64,
    /// See [`HostCounters::copied_reads`].
    pub copied_writes: u64,
    /// Dirty lines written back by cache-management instructions.
    pub cleaned: u64,
    /// Lines evicted at random.
    pub evicted: u64,
    /// Uncached loads and stores of far memory.
    pub uncached: u64,
    /// Loads and stores of registers.
    pub registers: u64,
}

/// A load that waits for a line.
#[derive(Clone, Debug)]
struct Waiter {
    /// Index of the host core.
    core: usize,
    /// Register that the value is loaded into, as numbered by `cohkit_riscv`.
    destination: u8,
    /// Address of the load, within one line.
    address: u64,
    size: Size,
    /// Word at the load's address, with the bytes that were stored to the missing line before this load. Later stores
    /// do not affect the load.
    stored: u64,
    /// All ones in these bytes, zero in the others.
    mask: u64,
}

impl Waiter {
    /// Returns the loaded value, given the line as it arrived, without merged stores.
    fn loaded_value(&self, line: &Data) -> u64 {
        read_word(line, self.address, self.size) & !self.mask | self.stored & self.mask
    }
}

/// An outstanding miss of the last-level cache.
#[derive(Clone, Debug)]
struct Miss {
    /// Loads that wait for the line, oldest first.
    waiters: Vec<Waiter>,
    /// Line with the bytes stored to it so far.
    stored: Box<Data>,
    /// One bit per stored byte.
    mask: u128,
    /// Bit mask of cores that have stored to the line; their fences wait for it.
    storing_cores: u64,
    /// Bit mask of cores whose own caches allocate the line.
    l1_cores: u64,
    /// True if a hardware prefetcher has requested the line, and no access has used it.
    is_unused: bool,
    /// True if the line is not to be cached when it arrives: see [`Host::drop_unused_prefetches`] and
    /// [`Host::drop_before_store`]. Accesses wait until then.
    is_dropped: bool,
}

/// An outstanding request to the device.
#[derive(Clone, Debug)]
enum OutstandingRequest {
    /// A line fill, with the core that requested it first.
    Line { line: u64, core: usize },
    /// An uncached load, or a load of a register.
    Word { core: usize, destination: u8 },
    /// A write-back, with a bit mask of the cores that wait for its acknowledgement.
    WriteBack { line: u64, cores: u64 },
    /// An uncached store, or a store to a register.
    Write { core: usize },
}

impl OutstandingRequest {
    /// Returns a core that issued or waits for the request; `None` for a write-back that only an eviction caused.
    fn core(&self) -> Option<usize> {
        match self {
            OutstandingRequest::Line { core, .. }
            | OutstandingRequest::Word { core, .. }
            | OutstandingRequest::Write { core } => Some(*core),
            OutstandingRequest::WriteBack { cores, .. } => {
                (*cores != 0).then_some(cores.trailing_zeros() as usize)
            }
        }
    }
}

/// A loaded value for a register of a core.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery {
    /// Index of the host core.
    pub core: usize,
    /// Register, as numbered by `cohkit_riscv`.
    pub destination: u8,
    /// Value, zero-extended.
    pub value: u64,
}

/// Random evictions of lines with copies, at a mean rate of one per `mean_interval` accesses.
#[derive(Clone, Copy, Debug)]
pub struct Evictions {
    /// Mean number of accesses per eviction.
    pub mean_interval: u64,
    /// Seed of the random generator.
    pub seed: u64,
}

/// Caches and outstanding accesses of a host core.
#[derive(Clone, Debug)]
struct Core {
    /// Private cache. It writes through and holds no contents: it affects timing only.
    l1: Cache,
    /// Outstanding loads of far memory, scratchpads and registers.
    loads: u64,
    /// Outstanding uncached loads among them.
    uncached_loads: u64,
    /// Outstanding write-backs of cache-management instructions.
    write_backs: u64,
    /// Outstanding uncached stores.
    writes: u64,
    /// Outstanding misses of the core's own cache.
    misses: u64,
    /// Lines of far memory and scratchpads for which loads of the core wait.
    loaded_lines: u64,
    /// Times at which the core may wait for further lines of the host's own memory, one for each line for which its
    /// loads may wait at once. Those in the future and `loaded_lines` together are at most as many.
    main_load_slots: Vec<Time>,
    /// Time at which a load last waited for room, in picoseconds; `Time::MAX` if none has.
    stalled_at: Time,
    prefetcher: Prefetcher,
}

/// A host of a machine, without its pipelines.
pub(crate) struct Host {
    /// Index of the host.
    number: usize,
    /// The host's own memory.
    pub(crate) main: SharedMemory,
    /// Addresses of the host's own memory.
    main_range: Range<u64>,
    cores: Vec<Core>,
    /// Last-level cache, shared by the cores.
    llc: Cache,
    /// Outstanding misses of the last-level cache by line address, except those of the host's own memory.
    misses: BTreeMap<u64, Miss>,
    /// Lines in the last-level cache that hardware has prefetched and no access has used.
    unused_prefetches: BTreeSet<u64>,
    /// Requests to the device without a response, by number.
    outstanding: BTreeMap<u64, OutstandingRequest>,
    /// Number of the next request. Numbers of requests are unique in the machine: see [`host_of_request`].
    next_request: u64,
    /// The direction of the host's link to the device.
    pub(crate) uplink: Wire,
    /// Time from which the device takes the host's next access to a register, if no other host accesses registers. It
    /// takes one at a time.
    registers_free_at: Time,
    /// True once a near-memory program was given a range of the host's memory, which is then shared with its copy
    /// engine.
    is_main_granted: bool,
    /// Time until which the host's own memory is busy with transfers, in picoseconds.
    main_busy_until: Time,
    /// Transfer time of a line of the host's own memory, in picoseconds.
    main_line_time: Time,
    platform: Platform,
    /// Random evictions, if enabled.
    evictions: Option<Evictions>,
    pub(crate) counters: HostCounters,
}

/// Returns the host that has sent a request: the numbers of requests of host N are those with the remainder N after a
/// division by the number of hosts.
pub(crate) fn host_of_request(platform: &Platform, number: u64) -> usize {
    (number % platform.hosts.value) as usize
}

/// True if a request accesses a register.
pub(crate) fn is_register_access(request: &Request) -> bool {
    match request {
        Request::ReadWord(address, _) | Request::WriteWord(address, ..) => *address >= REGISTERS,
        Request::ReadLine(_) | Request::WriteLine(..) => false,
    }
}

/// Target of an address.
enum Region {
    /// The host's own memory.
    Main,
    /// A cached line of far memory or of a scratchpad.
    Cached,
    /// An uncached word of far memory, with its address there.
    Uncached(u64),
    /// A register of a near-memory core.
    Register,
    /// No memory and no register, or an access across the end of a region.
    Unmapped,
}

impl Host {
    /// Creates the host of index `number` with the memory `main`, whose first address is `start`.
    pub(crate) fn new(
        platform: &Platform,
        number: usize,
        main: FlatMemory,
        start: u64,
        evictions: Option<Evictions>,
    ) -> Host {
        let cores = platform.cores.value as usize;
        let tracks_copies = evictions.is_some();
        let evictions = evictions.map(|evictions| Evictions {
            seed: evictions.seed.wrapping_add(number as u64),
            ..evictions
        });
        let l1 = Cache::new(platform.l1.value, platform.l1_ways.value, false);
        Host {
            number,
            main_range: start..main.end(),
            main: SharedMemory::new(main, cores),
            cores: vec![
                Core {
                    l1,
                    loads: 0,
                    uncached_loads: 0,
                    write_backs: 0,
                    writes: 0,
                    misses: 0,
                    loaded_lines: 0,
                    main_load_slots: vec![0; platform.load_misses.value as usize],
                    stalled_at: Time::MAX,
                    prefetcher: Prefetcher::new(platform),
                };
                cores
            ],
            llc: Cache::new(platform.llc.value, platform.llc_ways.value, tracks_copies),
            misses: BTreeMap::new(),
            unused_prefetches: BTreeSet::new(),
            outstanding: BTreeMap::new(),
            next_request: number as u64,
            uplink: Wire::new(
                platform.link_latency.value,
                platform.link_bandwidth.value,
                platform.link_header.value,
            ),
            registers_free_at: 0,
            is_main_granted: false,
            main_busy_until: 0,
            main_line_time: platform.main_bandwidth.time_of(LINE as u32),
            platform: platform.clone(),
            evictions,
            counters: HostCounters::default(),
        }
    }

    /// True if a core that ran ahead of the other cores could observe or cause a different result.
    pub(crate) fn is_shared(&self) -> bool {
        self.shares_main() || !self.misses.is_empty() || self.evictions.is_some()
    }

    /// True if the host's own memory has several users.
    #[inline(always)]
    fn shares_main(&self) -> bool {
        self.cores.len() > 1 || self.is_main_granted
    }

    /// True if random evictions change no loaded value: they are disabled, or all copies are clean and equal to memory.
    pub(crate) fn evictions_are_invisible(&self, memory: impl Fn(u64) -> Data) -> bool {
        let mut copies = (self.llc.ways()).filter_map(|way| Some((way.line, way.copy.as_deref()?)));
        let is_current = |(line, copy): (u64, &Copy)| !copy.dirty && copy.data == memory(line);
        self.evictions.is_none() || copies.all(is_current)
    }

    /// Lists at most four outstanding requests as a phrase.
    pub(crate) fn describe_outstanding(&self) -> String {
        let descriptions = self.outstanding.values().map(|request| match request {
            OutstandingRequest::Line { line, .. } => format!("the line at {line:#x}"),
            OutstandingRequest::Word { .. } => "a word".to_string(),
            OutstandingRequest::WriteBack { line, .. } => {
                format!("the acknowledgement of its write-back of the line at {line:#x}")
            }
            OutstandingRequest::Write { .. } => "the acknowledgement of a store".to_string(),
        });
        let descriptions: Vec<String> = descriptions.take(4).collect();
        descriptions.join(", ")
    }

    /// Returns the region that contains an access of `length` bytes.
    fn region(&self, address: u64, length: u64) -> Region {
        let is_within = |start: u64, bytes: u64| {
            let offset = address.wrapping_sub(start);
            offset < bytes && length <= bytes - offset
        };
        let mccs = self.platform.mccs.value;
        if is_within(
            self.main_range.start,
            self.main_range.end - self.main_range.start,
        ) {
            return Region::Main;
        }
        let scratchpad = (address.wrapping_sub(SCRATCHPADS)) % SCRATCHPAD_STRIDE;
        let lines = self.platform.scratchpad.value * LINE_BYTES;
        if is_within(FAR, self.platform.far_bytes.value)
            || is_within(SCRATCHPADS, mccs * SCRATCHPAD_STRIDE) && scratchpad + length <= lines
        {
            return Region::Cached;
        }
        if is_within(UNCACHED, self.platform.far_bytes.value) {
            return Region::Uncached(address - UNCACHED + FAR);
        }
        match is_within(REGISTERS, mccs * REGISTERS_STRIDE) {
            true => Region::Register,
            false => Region::Unmapped,
        }
    }

    /// Sends a request and returns its number, which the response repeats.
    fn send_request(
        &mut self,
        queue: &mut Queue,
        now: Time,
        outstanding: OutstandingRequest,
        request: Request,
    ) -> u64 {
        let is_register = is_register_access(&request);
        let path = match is_register {
            true => self.platform.register_path.value,
            false => self.platform.device_path.value,
        };
        let number = self.next_request;
        self.next_request += self.platform.hosts.value;
        let core_id = outstanding.core().map(|core| self.core_id(core));
        self.outstanding.insert(number, outstanding);
        let arrival = self
            .uplink
            .carry(now + self.platform.request.value, request.bytes());
        if let Some(timeline) = &mut queue.timeline {
            timeline.record_request(number, (self.number, core_id), &request, now);
            timeline.record_transmission(self.number, true, &self.uplink.last);
        }
        let mut arrival = arrival + path / 2;
        if is_register {
            arrival = arrival.max(self.registers_free_at);
            self.registers_free_at = arrival + self.platform.register_interval.value;
        }
        queue.add(arrival, Event::RequestArrival(number, request));
        number
    }

    /// Returns the identifier of a core of the host.
    fn core_id(&self, core: usize) -> CoreId {
        CoreId::Host {
            host: self.number,
            core,
        }
    }

    /// True if a load of the core waits for this line.
    fn is_loading(&self, core: usize, line: u64) -> bool {
        let miss = self.misses.get(&line);
        miss.is_some_and(|miss| miss.waiters.iter().any(|waiter| waiter.core == core))
    }

    /// True if no further request may be outstanding.
    fn is_full(&self) -> bool {
        self.outstanding.len() as u64 >= self.platform.llc_misses.value
    }

    /// Handles a line that has left the last-level cache: invalidates the cores' own copies and writes a dirty copy
    /// back. `cores` is the bit mask of the cores that wait for the acknowledgement.
    fn handle_eviction(&mut self, queue: &mut Queue, now: Time, way: Option<Way>, cores: u64) {
        let Some(way) = way else { return };
        for core in &mut self.cores {
            core.l1.remove(way.line);
        }
        self.unused_prefetches.remove(&way.line);
        match way.copy {
            Some(copy) if copy.dirty => {
                self.start_write_back(queue, now, way.line, copy.data, cores, false);
            }
            Some(_) => {
                if let Some(races) = &mut queue.races {
                    races.drop_line(self.number, way.line);
                }
            }
            None => {}
        }
    }

    /// Writes a line back. `keeps` is true if the cache retains the line.
    fn start_write_back(
        &mut self,
        queue: &mut Queue,
        now: Time,
        line: u64,
        data: Data,
        cores: u64,
        keeps: bool,
    ) {
        let outstanding = OutstandingRequest::WriteBack { line, cores };
        let request = Request::WriteLine(line, Box::new(data));
        let number = self.send_request(queue, now, outstanding, request);
        if let Some(races) = &mut queue.races {
            races.start_write_back((self.number, line), number, keeps, line < UNCACHED);
        }
    }

    /// True if a core may wait for a further line now: of far memory, of a scratchpad or of its own memory.
    fn has_load_room(&self, core: usize, now: Time) -> bool {
        let core = &self.cores[core];
        let main_slots = core.main_load_slots.iter();
        let main_lines = main_slots.filter(|free_at| **free_at > now).count() as u64;
        main_lines + core.loaded_lines < self.platform.load_misses.value
    }

    /// Returns the time at which the first line of the host's own memory arrives for which a core waits, in
    /// picoseconds; `None` if it waits for none.
    fn next_main_load_end(&self, core: usize, now: Time) -> Option<Time> {
        let slots = self.cores[core].main_load_slots.iter().copied();
        slots.filter(|free_at| *free_at > now).min()
    }

    /// Performs the cache lookups of a load of host memory and returns its additional latency, in picoseconds. A miss
    /// of the core's own cache waits until fewer loads than the core may have miss.
    /// Loads of other memory leave room for it.
    fn load_main(&mut self, core: usize, address: u64, now: Time, queue: &mut Queue) -> Time {
        let line = address & !(LINE_BYTES - 1);
        if let Some(way) = self.cores[core].l1.find(line) {
            self.counters.l1_hits += 1;
            return way.ready.saturating_sub(now);
        }
        let slots = self.cores[core].main_load_slots.iter().enumerate();
        let (slot, free_at) = slots
            .map(|(slot, free_at)| (slot, *free_at))
            .min_by_key(|(_, free_at)| *free_at)
            .expect("a core may wait for at least one line");
        let start = now.max(free_at);
        let ready = start + self.access_main(core, address, start, queue);
        self.cores[core].main_load_slots[slot] = ready;
        ready - now
    }

    /// Performs the cache lookups of an access to host memory and returns its additional latency, in picoseconds.
    fn access_main(&mut self, core: usize, address: u64, now: Time, queue: &mut Queue) -> Time {
        let line = address & !(LINE_BYTES - 1);
        if let Some(way) = self.cores[core].l1.find(line) {
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
        self.cores[core].l1.put(Way {
            line,
            ready,
            copy: None,
        });
        ready - now
    }

    /// Fetches a line from host memory and returns its arrival time.
    fn fetch_main(&mut self, line: u64, now: Time, queue: &mut Queue) -> Time {
        let start = self.main_busy_until.max(now + self.platform.request.value);
        self.main_busy_until = start + self.main_line_time;
        let ready =
            self.main_busy_until + self.platform.main_latency.value + self.platform.fill.value;
        let victim = self.llc.put(Way {
            line,
            ready,
            copy: None,
        });
        self.handle_eviction(queue, now, victim, 0);
        ready
    }

    /// Performs a copy engine's read or write of a line of host memory. The access is coherent: a write invalidates all
    /// cached copies.
    pub(crate) fn access_for_copy_engine(
        &mut self,
        queue: &mut Queue,
        now: Time,
        mut request: HostMemoryRequest,
    ) {
        let line = request.address;
        let is_cached = self.llc.has(line);
        let is_mapped = if request.stores {
            self.counters.copied_writes += 1;
            self.llc.remove(line);
            for core in &mut self.cores {
                core.l1.remove(line);
            }
            self.main.put(line, &*request.data)
        } else {
            self.counters.copied_reads += 1;
            self.main.memory.get(line, &mut *request.data)
        };
        assert!(is_mapped, "the host granted this range");
        let ready = if is_cached && !request.stores {
            now + self.platform.llc_hit.value
        } else {
            self.main_busy_until = self.main_busy_until.max(now) + self.main_line_time;
            self.main_busy_until + self.platform.main_latency.value
        };
        queue.add(ready, Event::HostAccessResponse(request));
    }

    /// Returns the additional latency of a load that hits the last-level cache, and allocates the line in the core's
    /// own cache.
    fn hit_llc(&mut self, core: usize, line: u64, now: Time) -> Time {
        if let Some(way) = self.cores[core].l1.find(line) {
            self.counters.l1_hits += 1;
            return way.ready.saturating_sub(now);
        }
        self.counters.llc_hits += 1;
        self.fill_core_cache(core, line, now);
        self.platform.llc_hit.value
    }

    /// Allocates a line of the last-level cache in a core's own cache.
    fn fill_core_cache(&mut self, core: usize, line: u64, now: Time) {
        self.cores[core].l1.put(Way {
            line,
            ready: now + self.platform.llc_hit.value,
            copy: None,
        });
    }

    /// Handles a response and returns the loaded values that it delivers to cores.
    pub(crate) fn handle_response(
        &mut self,
        queue: &mut Queue,
        now: Time,
        number: u64,
        response: Response,
    ) -> Vec<Delivery> {
        match (self.outstanding.remove(&number), response) {
            (Some(OutstandingRequest::Line { line, .. }), Response::Line(data)) => {
                if let Some(races) = &mut queue.races {
                    let waiters = self.misses.get(&line).into_iter();
                    let waiters = waiters.flat_map(|miss| &miss.waiters);
                    let cores = waiters.fold(0, |cores, waiter| cores | 1_u64 << waiter.core);
                    match line < UNCACHED {
                        true => races.complete_loads(self.number, cores, line),
                        false => races.fill_line(self.number, cores, line, number),
                    }
                }
                self.complete_fill(queue, now, line, *data)
            }
            (Some(OutstandingRequest::Word { core, destination }), Response::Word(value)) => {
                self.cores[core].loads -= 1;
                self.cores[core].uncached_loads -= 1;
                if let Some(races) = &mut queue.races {
                    let core_id = self.core_id(core);
                    races.synchronisation.receive_response(core_id, number);
                }
                vec![Delivery {
                    core,
                    destination,
                    value,
                }]
            }
            (Some(OutstandingRequest::WriteBack { cores, .. }), _) => {
                if let Some(races) = &mut queue.races {
                    (races.synchronisation).acknowledge_write_back(self.number, cores, number);
                }
                for (number, core) in self.cores.iter_mut().enumerate() {
                    core.write_backs -= cores >> number & 1;
                }
                Vec::new()
            }
            (Some(OutstandingRequest::Write { core }), _) => {
                self.cores[core].writes -= 1;
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// Completes a miss with the line from the device, and returns the loaded values.
    fn complete_fill(
        &mut self,
        queue: &mut Queue,
        now: Time,
        line: u64,
        mut data: Data,
    ) -> Vec<Delivery> {
        let Some(miss) = self.misses.remove(&line) else {
            return Vec::new();
        };
        if miss.is_dropped {
            self.counters.hardware_discarded += 1;
            if let Some(races) = &mut queue.races {
                races.drop_line(self.number, line);
            }
            return Vec::new();
        }
        let mut deliveries = Vec::new();
        for (i, waiter) in miss.waiters.iter().enumerate() {
            let is_first = miss.waiters[..i]
                .iter()
                .all(|earlier| earlier.core != waiter.core);
            self.cores[waiter.core].loaded_lines -= u64::from(is_first);
            self.cores[waiter.core].loads -= 1;
            deliveries.push(Delivery {
                core: waiter.core,
                destination: waiter.destination,
                value: waiter.loaded_value(&data),
            });
        }
        merge_bytes(&mut data, &miss.stored, miss.mask);
        if miss.is_unused {
            self.unused_prefetches.insert(line);
        }
        let victim = self.llc.put(Way {
            line,
            ready: now,
            copy: Some(Box::new(Copy {
                data,
                dirty: miss.mask != 0,
            })),
        });
        self.handle_eviction(queue, now, victim, 0);
        for (number, core) in self.cores.iter_mut().enumerate() {
            if miss.l1_cores >> number & 1 != 0 {
                core.misses -= 1;
                core.l1.put(Way {
                    line,
                    ready: now,
                    copy: None,
                });
            }
        }
        deliveries
    }

    /// Evicts a random line, with probability 1 / `mean_interval`.
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
        if copies.is_empty() || random(evictions.mean_interval.max(1)) > 0 {
            return;
        }
        let line = copies[random(copies.len() as u64) as usize];
        let way = self.llc.remove(line);
        self.counters.evicted += 1;
        self.handle_eviction(queue, now, way, 0);
    }
}

/// Merges stored bytes into a line; each mask bit selects one byte.
fn merge_bytes(data: &mut Data, stored: &Data, mask: u128) {
    for (i, byte) in stored.iter().enumerate() {
        if mask >> i & 1 != 0 {
            data[i] = *byte;
        }
    }
}

/// Reads a value from a line; the low bits of the address are the offset.
fn read_word(data: &Data, address: u64, size: Size) -> u64 {
    let offset = (address % LINE_BYTES) as usize;
    let mut word = [0; 8];
    word[..size as usize].copy_from_slice(&data[offset..offset + size as usize]);
    u64::from_le_bytes(word)
}

/// Writes a value to a line; the low bits of the address are the offset.
fn write_word(data: &mut Data, address: u64, size: Size, value: u64) {
    let (offset, length) = ((address % LINE_BYTES) as usize, size as usize);
    data[offset..offset + length].copy_from_slice(&value.to_le_bytes()[..length]);
}

/// Returns true if an access lies within one line.
fn is_within_line(address: u64, size: Size) -> bool {
    address % LINE_BYTES + size as u64 <= LINE_BYTES
}

/// Memory that system calls access: the host's own.
impl Bytes for Host {
    fn get(&mut self, address: u64, bytes: &mut [u8]) -> bool {
        self.main.memory.get(address, bytes)
    }

    fn put(&mut self, address: u64, bytes: &[u8]) -> bool {
        self.main.memory.put(address, bytes)
    }
}
