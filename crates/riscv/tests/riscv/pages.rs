//! Virtual addresses: mapped and unmapped accesses, TLB latency, and prefetches, which take no cycles.

use cohkit_testing::riscv_oracle;

use cohkit_riscv::{
    Amo, Cbo, Exception, Extensions, Fence, FlatMemory, Hart, Latencies, Memory, Page, PageSize,
    PagedMemory, Pages, Prefetch, Reply, Size, Stop, TimedInterpreter, TimedMemory,
};
use riscv_oracle::{encode, i_type, r_type, s_type, Random};

/// Sizes of pages, in bytes.
const SMALL: u64 = 0x1000;
const LARGE: u64 = 0x20_0000;

/// Flat memory that records prefetches and managed blocks.
struct RecordingMemory {
    flat: FlatMemory,
    /// Physical addresses of prefetches and block operations.
    recorded: Vec<u64>,
}

impl Memory for RecordingMemory {
    fn fetch(&mut self, address: u64) -> Reply<u16> {
        self.flat.fetch(address)
    }
    fn load(&mut self, address: u64, size: Size, destination: u8) -> Reply<u64> {
        self.flat.load(address, size, destination)
    }
    fn store(&mut self, address: u64, size: Size, value: u64) -> Reply<()> {
        self.flat.store(address, size, value)
    }
    fn amo(&mut self, address: u64, amo: Amo, destination: u8) -> Reply<u64> {
        self.flat.amo(address, amo, destination)
    }
    fn fence(&mut self, fence: Fence) -> Reply<()> {
        self.flat.fence(fence)
    }
    fn fence_i(&mut self) -> Reply<()> {
        self.flat.fence_i()
    }
    fn cbo(&mut self, address: u64, op: Cbo) -> Reply<()> {
        self.recorded.push(address);
        self.flat.cbo(address, op)
    }
    fn prefetch(&mut self, address: u64, _op: Prefetch) {
        self.recorded.push(address);
    }
}

impl TimedMemory for RecordingMemory {}

/// A page with permissions from the letters `r`, `w` and `x`.
fn page(virtual_start: u64, physical_start: u64, size: PageSize, permissions: &str) -> Page {
    let permits = |letter| permissions.contains(letter);
    Page {
        virtual_start,
        physical_start,
        size,
        readable: permits('r'),
        writable: permits('w'),
        executable: permits('x'),
    }
}

/// Code and data at separate addresses: from virtual address 0x5000_0000 on, a large page, then small ones in permuted
/// order.
fn machine(
    words: &[u32],
    entries: usize,
    walk_cycles: u64,
) -> (Hart, PagedMemory<RecordingMemory>) {
    let mut flat = FlatMemory::new(0, 2 * LARGE as usize + 16 * SMALL as usize);
    for (n, word) in words.iter().enumerate() {
        flat.bytes_mut(SMALL + 4 * n as u64, 4)
            .expect("the range is in memory")
            .copy_from_slice(&word.to_le_bytes());
    }
    let recording_memory = RecordingMemory {
        flat,
        recorded: Vec::new(),
    };
    let mut memory = PagedMemory::new(recording_memory, Pages::new(entries, walk_cycles));
    let pages = &mut memory.pages;
    pages
        .map(page(0x4000, SMALL, PageSize::SMALL, "x"))
        .expect("the page can be mapped");
    pages
        .map(page(0x5000_0000, LARGE, PageSize::LARGE, "rw"))
        .expect("the page can be mapped");
    for n in 0..8 {
        let address = 0x5020_0000 + n * SMALL;
        pages
            .map(page(
                address,
                2 * LARGE + (7 - n) * SMALL,
                PageSize::SMALL,
                "rw",
            ))
            .expect("the page can be mapped");
    }
    pages
        .map(page(0x6000_0000, 2 * LARGE, PageSize::SMALL, "r"))
        .expect("the page can be mapped");
    let mut hart = Hart::new(0, Extensions::HOST);
    hart.pc = 0x4000;
    (hart, memory)
}

/// Words stored at random virtual addresses are found at the physical addresses calculated by the test.
#[test]
fn accesses_reach_only_their_page() {
    let (_, mut memory) = machine(&[], 4, 0);
    let mut random = Random::new(1);
    let mut written = std::collections::BTreeMap::new();
    for value in 0..10_000 {
        let address = 0x5000_0000 + random.below(LARGE / 8 + 8 * SMALL / 8) * 8;
        assert_eq!(memory.store(address, Size::Double, value), Reply::Done(()));
        let physical_address = match address - 0x5000_0000 {
            offset if offset < LARGE => LARGE + offset,
            offset => 2 * LARGE + (7 - (offset - LARGE) / SMALL) * SMALL + offset % SMALL,
        };
        written.insert(physical_address, value);
    }
    for (physical_address, value) in &written {
        assert_eq!(
            memory.memory.flat.load(*physical_address, Size::Double, 0),
            Reply::Done(*value)
        );
    }
    assert!(written.len() > 9000);
}

/// Loads, stores, atomic accesses, block operations and fetches without a page, or without the permission of the page.
#[test]
fn unmapped_and_forbidden_accesses_raise_exceptions() {
    let words = [
        i_type("ld", 5, 10, 0),
        s_type("sd", 5, 10, 0),
        r_type("lr.d", 5, 10, 0),
        r_type("amoadd.d", 5, 10, 6),
        encode("cbo.flush", 10 << 15),
    ];
    let (mut hart, mut memory) = machine(&words, 4, 0);
    let mut step_errors = |address: u64| {
        hart.set_x(10, address);
        (0..5)
            .map(|n| {
                hart.pc = 0x4000 + 4 * n;
                hart.step(&mut memory).err()
            })
            .collect::<Vec<_>>()
    };
    let (load_error, store_error) = (
        |address| Some(Stop::Exception(Exception::LoadPageFault(address))),
        |address| Some(Stop::Exception(Exception::StorePageFault(address))),
    );
    assert_eq!(step_errors(0x5000_0000), [None; 5]);
    // A read-only page; an execute-only page; addresses before, after and between pages.
    assert_eq!(
        step_errors(0x6000_0008),
        [
            None,
            store_error(0x6000_0008),
            None,
            store_error(0x6000_0008),
            None
        ]
    );
    for address in [
        0x4008,
        0x4fff_fff8,
        0x5020_8000,
        0x6000_1000,
        u64::MAX - 7,
        0,
    ] {
        assert_eq!(
            step_errors(address),
            [
                load_error(address),
                store_error(address),
                load_error(address),
                store_error(address),
                store_error(address)
            ],
            "{address:#x}"
        );
    }
    // Adjacent virtual pages need not be adjacent in memory.
    let misaligned = step_errors(0x5020_0ffc);
    assert_eq!(
        misaligned[..2],
        [
            Exception::MisalignedLoad(0x5020_0ffc),
            Exception::MisalignedStore(0x5020_0ffc)
        ]
        .map(|exception| Some(exception.into()))
    );
    hart.pc = 0x5000_0000;
    assert_eq!(
        hart.step(&mut memory),
        Err(Exception::FetchPageFault(0x5000_0000).into()),
        "it is not to be executed"
    );
    hart.pc = 0x4000;
    memory.pages.unmap(0x4000).expect("the page was mapped");
    assert_eq!(
        hart.step(&mut memory),
        Err(Exception::FetchPageFault(0x4000).into())
    );
}

/// Invalid pages are refused with a message. The last page of the address space can be mapped.
#[test]
fn pages_are_aligned_and_do_not_overlap() {
    let (_, mut memory) = machine(&[], 4, 0);
    for (virtual_start, physical_start, size, message) in [
        (0x800, 0, PageSize::SMALL, "aligned"),
        (0x10_0000, 0, PageSize::LARGE, "aligned"),
        (0x7000, 0x800, PageSize::SMALL, "aligned"),
        (
            0x5000_1000,
            0,
            PageSize::SMALL,
            "overlap the one at 0x50000000",
        ),
        (
            0x5020_0000,
            0,
            PageSize::LARGE,
            "overlap the one at 0x50200000",
        ),
        (0x4000, 0, PageSize::SMALL, "overlap"),
    ] {
        let error = memory
            .pages
            .map(page(virtual_start, physical_start, size, "r"))
            .expect_err(message);
        assert!(error.contains(message), "{error}");
    }
    memory
        .pages
        .map(page(0u64.wrapping_sub(LARGE), 0, PageSize::LARGE, "r"))
        .expect("the last page can be mapped");
    assert_eq!(memory.load(u64::MAX - 7, Size::Double, 5), Reply::Done(0));
}

/// Numbers of misses of a TLB with two entries, computed by hand. A flush empties it.
#[test]
fn tlb_is_lru_and_a_large_page_takes_one_entry() {
    let (_, mut memory) = machine(&[], 2, 0);
    let mut misses = |address: u64| {
        let misses_before = memory.pages.misses();
        assert_eq!(memory.load(address, Size::Byte, 5), Reply::Done(0));
        memory.pages.misses() - misses_before
    };
    let small_page = |n: u64| 0x5020_0000 + n * SMALL;
    assert_eq!(
        [0x5000_0000, 0x5010_0000, 0x501f_ffff].map(&mut misses),
        [1, 0, 0]
    );
    assert_eq!(
        [
            small_page(0),
            0x5000_0000,
            small_page(1),
            0x5000_0000,
            small_page(0),
            small_page(1)
        ]
        .map(&mut misses),
        [1, 0, 1, 0, 1, 1]
    );
    memory.pages.flush();
    let misses_before = memory.pages.misses();
    memory.load(small_page(1), Size::Byte, 5);
    assert_eq!(memory.pages.misses() - misses_before, 1);
}

/// Only prefetches of pages in the TLB reach memory, and none of them is a miss or an exception.
#[test]
fn prefetches_that_miss_the_buffer_do_nothing() {
    let prefetch = encode("prefetch.r", 10 << 15);
    let words = [
        prefetch,
        i_type("lb", 5, 10, 0),
        prefetch,
        encode("prefetch.w", 11 << 15),
        encode("prefetch.r", 12 << 15),
    ];
    let (mut hart, mut memory) = machine(&words, 2, 0);
    hart.set_x(10, 0x5020_0040);
    hart.set_x(11, 0x6000_0000);
    hart.set_x(12, 0xdead_0000);
    for _ in 0..5 {
        assert_eq!(hart.step(&mut memory), Ok(()));
    }
    assert_eq!(
        memory.memory.recorded,
        [2 * LARGE + 7 * SMALL + 0x40],
        "only the one behind the load"
    );
    assert_eq!(memory.pages.misses(), 1);
}

/// Cycles of two loads and their sum, with and without the latency of a page walk.
#[test]
fn misses_take_the_cycles_of_a_walk() {
    let words = [
        i_type("ld", 5, 10, 0),
        i_type("ld", 6, 10, 8),
        r_type("add", 7, 5, 6),
        encode("csrrs", 31 << 7 | 0xc00 << 20),
        encode("ebreak", 0),
    ];
    for (walk_cycles, cycles) in [(0, 5), (30, 35)] {
        let (mut hart, mut memory) = machine(&words, 2, walk_cycles);
        hart.set_x(10, 0x5000_0000);
        let loads = [cohkit_riscv::Op::Ld];
        let mut timed = TimedInterpreter::new(Latencies::default().with(&loads, 3, 1));
        let (done, _) = timed.run(&mut hart, &mut memory, 1000);
        // The first load starts after the page walk, the second after the first; its value arrives at 4 + walk, when
        // the sum starts.
        assert_eq!((done, hart.x(31)), (4, cycles));
    }
}

/// Reference model of a TLB: page addresses, most recently used first, and the number of entries.
struct TlbOracle(Vec<u64>, usize);

impl TlbOracle {
    /// Returns true if the TLB contains the page.
    fn has(&self, page: u64) -> bool {
        self.0.contains(&page)
    }

    /// Records an access. Returns true on a hit.
    fn access(&mut self, page: u64) -> bool {
        let index = self.0.iter().position(|entry| *entry == page);
        if let Some(index) = index {
            self.0.remove(index);
        }
        self.0.insert(0, page);
        self.0.truncate(self.1);
        index.is_some()
    }
}

/// Random loads, stores and prefetches with pages of both sizes: hits, delays and values agree with the model.
#[test]
fn random_page_accesses_match_the_oracle() {
    for (size, entries, seed) in [
        (PageSize::SMALL, 1, 1),
        (PageSize::SMALL, 7, 2),
        (PageSize::LARGE, 3, 3),
    ] {
        let (bytes, count, walk_cycles) = (size.bytes(), 12, 20);
        let recording_memory = RecordingMemory {
            flat: FlatMemory::new(0, (count * bytes) as usize),
            recorded: Vec::new(),
        };
        let mut memory = PagedMemory::new(recording_memory, Pages::new(entries, walk_cycles));
        let first_page = page(0x4000_0000, 0, size, "rw");
        memory
            .pages
            .map_run(first_page, count)
            .expect("the page can be mapped");
        let mut tlb = TlbOracle(Vec::new(), entries);
        let mut random = Random::new(seed);
        let (mut contents, mut prefetched) = (std::collections::BTreeMap::new(), Vec::new());
        let (mut hits, mut misses) = (0, 0);
        for step in 0..20_000_u64 {
            // Bias accesses towards a few pages.
            let number = random.below(count).min(random.below(count));
            let offset = number * bytes + random.below(bytes / 8) * 8;
            let address = 0x4000_0000 + offset;
            memory.set_cycle(step);
            let kind = random.below(5);
            if kind == 0 {
                memory.prefetch(address, Prefetch::Read);
                prefetched.extend(tlb.has(number).then_some(offset));
                assert_eq!(memory.access_delay(), 0);
                continue;
            }
            match kind {
                1 => {
                    assert_eq!(memory.store(address, Size::Double, step), Reply::Done(()));
                    contents.insert(offset, step);
                }
                2 => {
                    assert_eq!(memory.cbo(address, Cbo::Flush), Reply::Done(()));
                    prefetched.push(offset);
                }
                _ => {
                    let expected = contents.get(&offset).copied().unwrap_or(0);
                    assert_eq!(memory.load(address, Size::Double, 5), Reply::Done(expected));
                }
            }
            let hit = tlb.access(number);
            assert_eq!(memory.access_delay(), if hit { 0 } else { walk_cycles });
            *if hit { &mut hits } else { &mut misses } += 1;
        }
        assert_eq!(memory.memory.recorded, prefetched);
        assert_eq!((memory.pages.hits(), memory.pages.misses()), (hits, misses));
        assert!(hits > 1000 && misses > 1000, "{hits} {misses}");
    }
}

/// The page used least recently is replaced also after the entry of another page was removed.
#[test]
fn unmapping_a_page_keeps_the_replacement_order_of_the_others() {
    let recording_memory = RecordingMemory {
        flat: FlatMemory::new(0, 5 * SMALL as usize),
        recorded: Vec::new(),
    };
    let mut memory = PagedMemory::new(recording_memory, Pages::new(3, 20));
    for number in 0..5 {
        let address = number * SMALL;
        memory
            .pages
            .map(page(address, address, PageSize::SMALL, "rw"))
            .expect("the page can be mapped");
    }
    let load_hits = |memory: &mut PagedMemory<RecordingMemory>, page: u64| {
        memory.set_cycle(0);
        assert_eq!(memory.load(page * SMALL, Size::Double, 0), Reply::Done(0));
        memory.access_delay() == 0
    };
    for number in [0, 1, 2, 1] {
        load_hits(&mut memory, number);
    }
    memory.pages.unmap(0);
    // The TLB has pages 1 and 2. Page 2 is used, page 3 takes the free entry, and page 4 the entry of page 1.
    for number in [2, 3, 4] {
        load_hits(&mut memory, number);
    }
    assert!(
        load_hits(&mut memory, 2),
        "page 2 was replaced in place of page 1"
    );
    assert!(!load_hits(&mut memory, 1), "page 1 was not replaced");
}

/// A run of pages that maps all addresses, and runs that exceed the address space or have no pages.
#[test]
fn page_run_may_cover_the_address_space() {
    let mut pages = Pages::new(4, 0);
    let whole_run = page(0, 0, PageSize::LARGE, "rw");
    pages.map_run(whole_run, 1 << 43).expect("all addresses");
    let last_address = 0u64.wrapping_sub(LARGE);
    assert_eq!(
        pages.page(u64::MAX),
        Some(Page {
            virtual_start: last_address,
            physical_start: last_address,
            ..whole_run
        })
    );
    let error = pages
        .map(page(0x7000, 0, PageSize::SMALL, "r"))
        .expect_err("the page overlaps a mapped one");
    assert!(error.contains("overlap the one at 0x0"), "{error}");
    assert_eq!(pages.unmap(0), Some(whole_run));
    for (virtual_start, physical_start, count) in [
        (last_address, 0, 2),
        (0, last_address, 2),
        (0, 0, (1 << 43) + 1),
        (0, 0, 0),
    ] {
        let error = pages
            .map_run(
                page(virtual_start, physical_start, PageSize::LARGE, "r"),
                count,
            )
            .expect_err("too many");
        assert!(error.contains("cannot be mapped"), "{error}");
    }
}

/// Runs the core with single steps, or with one of the two engines that keep decoded instructions.
fn run_engine(
    engine: u32,
    hart: &mut Hart,
    memory: &mut PagedMemory<RecordingMemory>,
) -> (u64, Option<Stop>) {
    match engine {
        0 => {
            let instret_before = hart.csrs.instret;
            let stop = loop {
                if let Err(stop) = hart.step(memory) {
                    break stop;
                }
            };
            (hart.csrs.instret - instret_before, Some(stop))
        }
        1 => {
            let (completed, stop) =
                cohkit_riscv::FastInterpreter::default().run(hart, memory, 1000);
            (completed, stop.err())
        }
        _ => {
            let (completed, stop) =
                TimedInterpreter::new(Latencies::default()).run(hart, memory, 1000);
            (completed, stop.err())
        }
    }
}

/// Two code pages in reversed physical order. A 16-bit instruction makes a 32-bit one cross their boundary.
fn machine_at_page_boundary(words: &[u32]) -> (Hart, PagedMemory<RecordingMemory>) {
    let (mut hart, mut memory) = machine(&[], 4, 0);
    let (first_frame, second_frame) = (2 * LARGE + 9 * SMALL, 2 * LARGE + 8 * SMALL);
    let mut code = 0x0285_u16.to_le_bytes().to_vec(); // c.addi t0, 1
    code.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    let (first_bytes, second_bytes) = code.split_at(4);
    for (address, bytes) in [
        (first_frame + SMALL - 4, first_bytes),
        (second_frame, second_bytes),
    ] {
        memory
            .memory
            .flat
            .bytes_mut(address, bytes.len())
            .expect("the range is in memory")
            .copy_from_slice(bytes);
    }
    memory
        .pages
        .map(page(0x8000, first_frame, PageSize::SMALL, "x"))
        .expect("the page can be mapped");
    hart.pc = 0x8ffc;
    (hart, memory)
}

/// An instruction that crosses two code pages is read from both, on all engines.
#[test]
fn fetch_across_two_pages_translates_each_half() {
    let words = [i_type("addi", 6, 5, 0x123), encode("ebreak", 0)];
    for engine in 0..3 {
        let (mut hart, mut memory) = machine_at_page_boundary(&words);
        memory
            .pages
            .map(page(0x9000, 2 * LARGE + 8 * SMALL, PageSize::SMALL, "x"))
            .expect("the page can be mapped");
        let (completed, stop) = run_engine(engine, &mut hart, &mut memory);
        assert_eq!(
            (completed, stop, hart.x(5), hart.x(6)),
            (2, Some(Exception::Breakpoint(0x9002).into()), 1, 0x124),
            "{engine}"
        );
    }
}

/// If only the second page cannot be executed, the exception has its address, on all engines. After the page was
/// mapped, both halves are read again.
#[test]
fn fetch_fault_reports_the_second_page() {
    let words = [i_type("addi", 6, 5, 0x123), encode("ebreak", 0)];
    for engine in 0..3 {
        for permissions in ["", "rw"] {
            let (mut hart, mut memory) = machine_at_page_boundary(&words);
            if !permissions.is_empty() {
                let data_page = page(0x9000, 2 * LARGE + 8 * SMALL, PageSize::SMALL, permissions);
                memory.pages.map(data_page).expect("the page can be mapped");
            }
            let (completed, stop) = run_engine(engine, &mut hart, &mut memory);
            // Earlier instructions complete, and `pc` points to the start of the faulting instruction.
            assert_eq!(
                (completed, stop, hart.pc, hart.x(5), hart.x(6)),
                (
                    1,
                    Some(Exception::FetchPageFault(0x9000).into()),
                    0x8ffe,
                    1,
                    0
                ),
                "{engine} {permissions:?}"
            );
        }
        // Mapping the page may also have changed the first half.
        let (mut hart, mut memory) = machine_at_page_boundary(&words);
        run_engine(engine, &mut hart, &mut memory);
        memory
            .pages
            .map(page(0x9000, 2 * LARGE + 8 * SMALL, PageSize::SMALL, "x"))
            .expect("the page can be mapped");
        let changed_instruction = i_type("addi", 7, 5, 0x123).to_le_bytes();
        memory
            .memory
            .flat
            .bytes_mut(2 * LARGE + 10 * SMALL - 2, 2)
            .expect("the range is in memory")
            .copy_from_slice(&changed_instruction[..2]);
        let (completed, _) = run_engine(engine, &mut hart, &mut memory);
        assert_eq!((completed, hart.x(6), hart.x(7)), (1, 0, 0x124), "{engine}");
    }
}

#[test]
fn page_sizes_are_powers_of_two() {
    let (low, high) = PageSize::LIMITS;
    for bits in 0..64 {
        let bytes = 1 << bits;
        let size = PageSize::of(bytes);
        assert_eq!(size.is_some(), (low..=high).contains(&bytes), "{bytes}");
        assert!(size.is_none_or(|size| size.bytes() == bytes));
        assert_eq!(PageSize::of(bytes.wrapping_mul(3)), None);
    }
    // An address space of such pages: each has its own translation.
    let mut pages = Pages::new(2, 5);
    let size = PageSize::of(256).expect("a valid size");
    pages
        .map_run(page(0, 0x1000, size, "r"), 4)
        .expect("valid pages");
    let mapped = pages.page(0x2ff).expect("a mapped page");
    assert_eq!(
        (mapped.virtual_start, mapped.physical_start),
        (0x200, 0x1200)
    );
    assert_eq!(pages.page(0x400), None);
}
