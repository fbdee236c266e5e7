//! Virtual addresses: mapped and unmapped accesses, TLB latency, and prefetches, which take no cycles.

mod oracle;

use cohkit_riscv::{
    Amo, Cbo, Exception, Extensions, Fence, Flat, Hart, Latencies, Memory, Page, PageSize, Paged,
    Pages, Prefetch, Reply, Size, Stop, Timed, TimedMemory,
};
use oracle::{bits, i_type, r_type, s_type, Random};

const SMALL: u64 = 0x1000;
const LARGE: u64 = 0x20_0000;

/// Flat memory that records prefetches and managed blocks.
struct RecordingMemory {
    flat: Flat,
    seen: Vec<u64>,
}

impl Memory for RecordingMemory {
    fn fetch(&mut self, at: u64) -> Reply<u16> {
        self.flat.fetch(at)
    }
    fn load(&mut self, at: u64, size: Size, to: u8) -> Reply<u64> {
        self.flat.load(at, size, to)
    }
    fn store(&mut self, at: u64, size: Size, value: u64) -> Reply<()> {
        self.flat.store(at, size, value)
    }
    fn amo(&mut self, at: u64, amo: Amo, to: u8) -> Reply<u64> {
        self.flat.amo(at, amo, to)
    }
    fn fence(&mut self, fence: Fence) -> Reply<()> {
        self.flat.fence(fence)
    }
    fn fence_i(&mut self) -> Reply<()> {
        self.flat.fence_i()
    }
    fn cbo(&mut self, at: u64, what: Cbo) -> Reply<()> {
        self.seen.push(at);
        self.flat.cbo(at, what)
    }
    fn prefetch(&mut self, at: u64, _what: Prefetch) {
        self.seen.push(at);
    }
}

impl TimedMemory for RecordingMemory {}

fn page(at: u64, to: u64, size: PageSize, rights: &str) -> Page {
    let may = |letter| rights.contains(letter);
    Page {
        at,
        to,
        size,
        readable: may('r'),
        writable: may('w'),
        executable: may('x'),
    }
}

/// Code and data at separate addresses: from virtual address 0x5000_0000 on, a large page, then small ones in permuted
/// order.
fn machine(words: &[u32], places: usize, walk: u64) -> (Hart, Paged<RecordingMemory>) {
    let mut flat = Flat::new(0, 2 * LARGE as usize + 16 * SMALL as usize);
    for (n, word) in words.iter().enumerate() {
        flat.bytes_mut(SMALL + 4 * n as u64, 4)
            .expect("there")
            .copy_from_slice(&word.to_le_bytes());
    }
    let watched = RecordingMemory {
        flat,
        seen: Vec::new(),
    };
    let mut memory = Paged::new(watched, Pages::new(places, walk));
    let pages = &mut memory.pages;
    pages
        .map(page(0x4000, SMALL, PageSize::Small, "x"))
        .expect("it can be");
    pages
        .map(page(0x5000_0000, LARGE, PageSize::Large, "rw"))
        .expect("it can be");
    for n in 0..8 {
        let at = 0x5020_0000 + n * SMALL;
        pages
            .map(page(at, 2 * LARGE + (7 - n) * SMALL, PageSize::Small, "rw"))
            .expect("it can be");
    }
    pages
        .map(page(0x6000_0000, 2 * LARGE, PageSize::Small, "r"))
        .expect("it can be");
    let mut hart = Hart::new(0, Extensions::HOST);
    hart.pc = 0x4000;
    (hart, memory)
}

#[test]
fn accesses_reach_only_their_page() {
    let (_, mut memory) = machine(&[], 4, 0);
    let mut random = Random(1);
    let mut written = std::collections::BTreeMap::new();
    for value in 0..10_000 {
        let at = 0x5000_0000 + random.below(LARGE / 8 + 8 * SMALL / 8) * 8;
        assert_eq!(memory.store(at, Size::Double, value), Reply::Done(()));
        let place = match at - 0x5000_0000 {
            offset if offset < LARGE => LARGE + offset,
            offset => 2 * LARGE + (7 - (offset - LARGE) / SMALL) * SMALL + offset % SMALL,
        };
        written.insert(place, value);
    }
    for (place, value) in &written {
        assert_eq!(
            memory.memory.flat.load(*place, Size::Double, 0),
            Reply::Done(*value)
        );
    }
    assert!(written.len() > 9000);
}

#[test]
fn unmapped_and_forbidden_accesses_raise_exceptions() {
    let words = [
        i_type("ld", 5, 10, 0),
        s_type("sd", 5, 10, 0),
        r_type("lr.d", 5, 10, 0),
        r_type("amoadd.d", 5, 10, 6),
        bits("cbo.flush", 10 << 15),
    ];
    let (mut hart, mut memory) = machine(&words, 4, 0);
    let mut answers = |at: u64| {
        hart.set_x(10, at);
        (0..5)
            .map(|n| {
                hart.pc = 0x4000 + 4 * n;
                hart.step(&mut memory).err()
            })
            .collect::<Vec<_>>()
    };
    let (load, store) = (
        |at| Some(Stop::Exception(Exception::LoadUnmapped(at))),
        |at| Some(Stop::Exception(Exception::StoreUnmapped(at))),
    );
    assert_eq!(answers(0x5000_0000), [None; 5]);
    // A read-only page; an execute-only page; addresses before, after and between pages.
    assert_eq!(
        answers(0x6000_0008),
        [None, store(0x6000_0008), None, store(0x6000_0008), None]
    );
    for at in [
        0x4008,
        0x4fff_fff8,
        0x5020_8000,
        0x6000_1000,
        u64::MAX - 7,
        0,
    ] {
        assert_eq!(
            answers(at),
            [load(at), store(at), load(at), store(at), store(at)],
            "{at:#x}"
        );
    }
    // Adjacent virtual pages need not be adjacent in memory.
    let misaligned = answers(0x5020_0ffc);
    assert_eq!(
        misaligned[..2],
        [
            Exception::MisalignedLoad(0x5020_0ffc),
            Exception::MisalignedStore(0x5020_0ffc)
        ]
        .map(|e| Some(e.into()))
    );
    hart.pc = 0x5000_0000;
    assert_eq!(
        hart.step(&mut memory),
        Err(Exception::FetchUnmapped(0x5000_0000).into()),
        "it is not to be executed"
    );
    hart.pc = 0x4000;
    memory.pages.unmap(0x4000).expect("it was there");
    assert_eq!(
        hart.step(&mut memory),
        Err(Exception::FetchUnmapped(0x4000).into())
    );
}

#[test]
fn pages_are_aligned_and_do_not_overlap() {
    let (_, mut memory) = machine(&[], 4, 0);
    for (at, to, size, what) in [
        (0x800, 0, PageSize::Small, "aligned"),
        (0x10_0000, 0, PageSize::Large, "aligned"),
        (0x7000, 0x800, PageSize::Small, "aligned"),
        (
            0x5000_1000,
            0,
            PageSize::Small,
            "overlap the one at 0x50000000",
        ),
        (
            0x5020_0000,
            0,
            PageSize::Large,
            "overlap the one at 0x50200000",
        ),
        (0x4000, 0, PageSize::Small, "overlap"),
    ] {
        let error = memory.pages.map(page(at, to, size, "r")).expect_err(what);
        assert!(error.contains(what), "{error}");
    }
    memory
        .pages
        .map(page(0u64.wrapping_sub(LARGE), 0, PageSize::Large, "r"))
        .expect("the last one");
    assert_eq!(memory.load(u64::MAX - 7, Size::Double, 5), Reply::Done(0));
}

#[test]
fn tlb_is_lru_and_a_large_page_takes_one_entry() {
    let (_, mut memory) = machine(&[], 2, 0);
    let mut misses = |at: u64| {
        let before = memory.pages.misses();
        assert_eq!(memory.load(at, Size::Byte, 5), Reply::Done(0));
        memory.pages.misses() - before
    };
    let small = |n: u64| 0x5020_0000 + n * SMALL;
    assert_eq!(
        [0x5000_0000, 0x5010_0000, 0x501f_ffff].map(&mut misses),
        [1, 0, 0]
    );
    assert_eq!(
        [
            small(0),
            0x5000_0000,
            small(1),
            0x5000_0000,
            small(0),
            small(1)
        ]
        .map(&mut misses),
        [1, 0, 1, 0, 1, 1]
    );
    memory.pages.flush();
    let before = memory.pages.misses();
    memory.load(small(1), Size::Byte, 5);
    assert_eq!(memory.pages.misses() - before, 1);
}

#[test]
fn a_prefetch_that_misses_the_buffer_does_nothing() {
    let hint = bits("prefetch.r", 10 << 15);
    let words = [
        hint,
        i_type("lb", 5, 10, 0),
        hint,
        bits("prefetch.w", 11 << 15),
        bits("prefetch.r", 12 << 15),
    ];
    let (mut hart, mut memory) = machine(&words, 2, 0);
    hart.set_x(10, 0x5020_0040);
    hart.set_x(11, 0x6000_0000);
    hart.set_x(12, 0xdead_0000);
    for _ in 0..5 {
        assert_eq!(hart.step(&mut memory), Ok(()));
    }
    assert_eq!(
        memory.memory.seen,
        [2 * LARGE + 7 * SMALL + 0x40],
        "only the one behind the load"
    );
    assert_eq!(memory.pages.misses(), 1);
}

#[test]
fn a_miss_takes_the_cycles_of_a_walk() {
    let words = [
        i_type("ld", 5, 10, 0),
        i_type("ld", 6, 10, 8),
        r_type("add", 7, 5, 6),
        bits("csrrs", 31 << 7 | 0xc00 << 20),
        bits("ebreak", 0),
    ];
    for (walk, cycles) in [(0, 5), (30, 35)] {
        let (mut hart, mut memory) = machine(&words, 2, walk);
        hart.set_x(10, 0x5000_0000);
        let loads = [cohkit_riscv::Op::Ld];
        let mut timed = Timed::new(Latencies::default().with(&loads, 3, 1));
        let (done, _) = timed.run(&mut hart, &mut memory, 1000);
        // The first load starts after the page walk, the second after the first; its value arrives at 4 + walk, when
        // the sum starts.
        assert_eq!((done, hart.x(31)), (4, cycles));
    }
}

/// Reference model of a TLB: page addresses, most recently used first, and the number of entries.
struct Buffer(Vec<u64>, usize);

impl Buffer {
    fn has(&self, page: u64) -> bool {
        self.0.contains(&page)
    }

    /// Records an access. Returns true on a hit.
    fn access(&mut self, page: u64) -> bool {
        let place = self.0.iter().position(|own| *own == page);
        if let Some(place) = place {
            self.0.remove(place);
        }
        self.0.insert(0, page);
        self.0.truncate(self.1);
        place.is_some()
    }
}

#[test]
fn random_page_accesses_match_the_oracle() {
    for (size, places, seed) in [
        (PageSize::Small, 1, 1),
        (PageSize::Small, 7, 2),
        (PageSize::Large, 3, 3),
    ] {
        let (bytes, count, walk) = (size.bytes(), 12, 20);
        let watched = RecordingMemory {
            flat: Flat::new(0, (count * bytes) as usize),
            seen: Vec::new(),
        };
        let mut memory = Paged::new(watched, Pages::new(places, walk));
        let first = page(0x4000_0000, 0, size, "rw");
        memory.pages.map_run(first, count).expect("it can be");
        let mut tlb = Buffer(Vec::new(), places);
        let mut random = Random(seed);
        let (mut contents, mut hinted) = (std::collections::BTreeMap::new(), Vec::new());
        let (mut hits, mut misses) = (0, 0);
        for step in 0..20_000_u64 {
            // Bias accesses towards a few pages.
            let number = random.below(count).min(random.below(count));
            let offset = number * bytes + random.below(bytes / 8) * 8;
            let at = 0x4000_0000 + offset;
            memory.at(step);
            let kind = random.below(5);
            if kind == 0 {
                memory.prefetch(at, Prefetch::Read);
                hinted.extend(tlb.has(number).then_some(offset));
                assert_eq!(memory.access_delay(), 0);
                continue;
            }
            match kind {
                1 => {
                    assert_eq!(memory.store(at, Size::Double, step), Reply::Done(()));
                    contents.insert(offset, step);
                }
                2 => {
                    assert_eq!(memory.cbo(at, Cbo::Flush), Reply::Done(()));
                    hinted.push(offset);
                }
                _ => {
                    let expected = contents.get(&offset).copied().unwrap_or(0);
                    assert_eq!(memory.load(at, Size::Double, 5), Reply::Done(expected));
                }
            }
            let hit = tlb.access(number);
            assert_eq!(memory.access_delay(), if hit { 0 } else { walk });
            *if hit { &mut hits } else { &mut misses } += 1;
        }
        assert_eq!(memory.memory.seen, hinted);
        assert_eq!((memory.pages.hits(), memory.pages.misses()), (hits, misses));
        assert!(hits > 1000 && misses > 1000, "{hits} {misses}");
    }
}

#[test]
fn unmapping_a_page_keeps_the_replacement_order_of_the_others() {
    let watched = RecordingMemory {
        flat: Flat::new(0, 5 * SMALL as usize),
        seen: Vec::new(),
    };
    let mut memory = Paged::new(watched, Pages::new(3, 20));
    for number in 0..5 {
        let at = number * SMALL;
        memory
            .pages
            .map(page(at, at, PageSize::Small, "rw"))
            .expect("it can be");
    }
    let load = |memory: &mut Paged<RecordingMemory>, page: u64| {
        memory.at(0);
        assert_eq!(memory.load(page * SMALL, Size::Double, 0), Reply::Done(0));
        memory.access_delay() == 0
    };
    for number in [0, 1, 2, 1] {
        load(&mut memory, number);
    }
    memory.pages.unmap(0);
    // The TLB has pages 1 and 2. Page 2 is used, page 3 takes the free entry, and page 4 the entry of page 1.
    for number in [2, 3, 4] {
        load(&mut memory, number);
    }
    assert!(
        load(&mut memory, 2),
        "page 2 was replaced in place of page 1"
    );
    assert!(!load(&mut memory, 1), "page 1 was not replaced");
}

#[test]
fn page_run_may_cover_the_address_space() {
    let mut pages = Pages::new(4, 0);
    let all = page(0, 0, PageSize::Large, "rw");
    pages.map_run(all, 1 << 43).expect("all addresses");
    let last = 0u64.wrapping_sub(LARGE);
    assert_eq!(
        pages.page(u64::MAX),
        Some(Page {
            at: last,
            to: last,
            ..all
        })
    );
    let error = pages
        .map(page(0x7000, 0, PageSize::Small, "r"))
        .expect_err("it is there");
    assert!(error.contains("overlap the one at 0x0"), "{error}");
    assert_eq!(pages.unmap(0), Some(all));
    for (at, to, count) in [(last, 0, 2), (0, last, 2), (0, 0, (1 << 43) + 1), (0, 0, 0)] {
        let error = pages
            .map_run(page(at, to, PageSize::Large, "r"), count)
            .expect_err("too many");
        assert!(error.contains("cannot lead"), "{error}");
    }
}

/// Runs the core with single steps, or with one of the two engines that keep decoded instructions.
fn by_engine(
    engine: u32,
    hart: &mut Hart,
    memory: &mut Paged<RecordingMemory>,
) -> (u64, Option<Stop>) {
    match engine {
        0 => {
            let before = hart.csrs.instret;
            let end = loop {
                if let Err(end) = hart.step(memory) {
                    break end;
                }
            };
            (hart.csrs.instret - before, Some(end))
        }
        1 => {
            let (done, end) = cohkit_riscv::Fast::default().run(hart, memory, 1000);
            (done, end.err())
        }
        _ => {
            let (done, end) = Timed::new(Latencies::default()).run(hart, memory, 1000);
            (done, end.err())
        }
    }
}

/// Two code pages in reversed physical order. A 16-bit instruction makes a 32-bit one cross their boundary.
fn over_the_border(last: &[u32]) -> (Hart, Paged<RecordingMemory>) {
    let (mut hart, mut memory) = machine(&[], 4, 0);
    let (first, second) = (2 * LARGE + 9 * SMALL, 2 * LARGE + 8 * SMALL);
    let mut code = 0x0285_u16.to_le_bytes().to_vec(); // c.addi t0, 1
    code.extend(last.iter().flat_map(|word| word.to_le_bytes()));
    let (head, tail) = code.split_at(4);
    for (at, bytes) in [(first + SMALL - 4, head), (second, tail)] {
        memory
            .memory
            .flat
            .bytes_mut(at, bytes.len())
            .expect("there")
            .copy_from_slice(bytes);
    }
    memory
        .pages
        .map(page(0x8000, first, PageSize::Small, "x"))
        .expect("it can be");
    hart.pc = 0x8ffc;
    (hart, memory)
}

#[test]
fn fetch_across_two_pages_translates_each_half() {
    let words = [i_type("addi", 6, 5, 0x123), bits("ebreak", 0)];
    for engine in 0..3 {
        let (mut hart, mut memory) = over_the_border(&words);
        memory
            .pages
            .map(page(0x9000, 2 * LARGE + 8 * SMALL, PageSize::Small, "x"))
            .expect("it can be");
        let (done, end) = by_engine(engine, &mut hart, &mut memory);
        assert_eq!(
            (done, end, hart.x(5), hart.x(6)),
            (2, Some(Exception::Breakpoint(0x9002).into()), 1, 0x124),
            "{engine}"
        );
    }
}

#[test]
fn fetch_fault_reports_the_second_page() {
    let words = [i_type("addi", 6, 5, 0x123), bits("ebreak", 0)];
    for engine in 0..3 {
        for rights in ["", "rw"] {
            let (mut hart, mut memory) = over_the_border(&words);
            if !rights.is_empty() {
                let no_code = page(0x9000, 2 * LARGE + 8 * SMALL, PageSize::Small, rights);
                memory.pages.map(no_code).expect("it can be");
            }
            let (done, end) = by_engine(engine, &mut hart, &mut memory);
            // Earlier instructions complete, and `pc` points to the start of the faulting instruction.
            assert_eq!(
                (done, end, hart.pc, hart.x(5), hart.x(6)),
                (
                    1,
                    Some(Exception::FetchUnmapped(0x9000).into()),
                    0x8ffe,
                    1,
                    0
                ),
                "{engine} {rights:?}"
            );
        }
        // Mapping the page may also have changed the first half.
        let (mut hart, mut memory) = over_the_border(&words);
        by_engine(engine, &mut hart, &mut memory);
        memory
            .pages
            .map(page(0x9000, 2 * LARGE + 8 * SMALL, PageSize::Small, "x"))
            .expect("it can be");
        let other = i_type("addi", 7, 5, 0x123).to_le_bytes();
        memory
            .memory
            .flat
            .bytes_mut(2 * LARGE + 10 * SMALL - 2, 2)
            .expect("there")
            .copy_from_slice(&other[..2]);
        let (done, _) = by_engine(engine, &mut hart, &mut memory);
        assert_eq!((done, hart.x(6), hart.x(7)), (1, 0, 0x124), "{engine}");
    }
}
