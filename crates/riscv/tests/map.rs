//! Address map of a core: permitted accesses, aliases and latency of each kind of region.

mod oracle;

use cohkit_riscv::map::{Kind, Mapped, Region, Regional};
use cohkit_riscv::{
    Amo, AmoOp, Cbo, Exception, Extensions, Fence, Flat, Hart, Latencies, Memory, Page, PageSize,
    Paged, Pages, Prefetch, Reply, Size, Stop, Timed, TimedMemory,
};
use oracle::{bits, i_type, s_type};

/// Flat memory that records each access with its region, and can stall all of them.
struct RecordingMemory {
    flat: Flat,
    now: Option<Kind>,
    seen: Vec<(Option<Kind>, &'static str, u64)>,
    holds: bool,
}

impl RecordingMemory {
    fn see(&mut self, what: &'static str, at: u64) {
        let region = self.now.take();
        self.seen.push((region, what, at));
    }
}

impl Memory for RecordingMemory {
    fn fetch(&mut self, at: u64) -> Reply<u16> {
        self.flat.fetch(at)
    }
    fn load(&mut self, at: u64, size: Size, to: u8) -> Reply<u64> {
        self.see("load", at);
        if self.holds {
            return Reply::Wait;
        }
        self.flat.load(at, size, to)
    }
    fn store(&mut self, at: u64, size: Size, value: u64) -> Reply<()> {
        self.see("store", at);
        self.flat.store(at, size, value)
    }
    fn amo(&mut self, at: u64, amo: Amo, to: u8) -> Reply<u64> {
        self.see("amo", at);
        self.flat.amo(at, amo, to)
    }
    fn fence(&mut self, fence: Fence) -> Reply<()> {
        self.flat.fence(fence)
    }
    fn fence_i(&mut self) -> Reply<()> {
        self.flat.fence_i()
    }
    fn cbo(&mut self, at: u64, what: Cbo) -> Reply<()> {
        self.see("cbo", at);
        self.flat.cbo(at, what)
    }
    fn prefetch(&mut self, at: u64, _what: Prefetch) {
        self.see("prefetch", at);
    }
}

impl TimedMemory for RecordingMemory {}

impl Regional for RecordingMemory {
    fn region(&mut self, region: &Region) {
        self.now = Some(region.kind);
    }
}

const KINDS: [Kind; 5] = [
    Kind::Memory,
    Kind::Far,
    Kind::Uncached,
    Kind::Scratchpad,
    Kind::Registers,
];
const LENGTH: u64 = 0x1000;

/// One region of each kind, from 0x1000 on. Far memory and the uncached region are aliases.
fn machine() -> Mapped<RecordingMemory> {
    let mut regions = Vec::new();
    for (number, kind) in (0..).zip(KINDS) {
        let place = if kind == Kind::Uncached { 1 } else { number };
        regions.push(Region {
            name: format!("{kind:?}"),
            at: 0x1000 + number * LENGTH,
            length: LENGTH,
            to: 0x8000 + place * LENGTH,
            kind,
            extra_latency: number * 10,
        });
    }
    let watched = RecordingMemory {
        flat: Flat::new(0x8000, 0x5000),
        now: None,
        seen: Vec::new(),
        holds: false,
    };
    // The order of the list is irrelevant.
    regions.rotate_left(2);
    Mapped::new(watched, regions).expect("they are apart")
}

#[test]
fn region_kinds_restrict_accesses() {
    let mut mapped = machine();
    let amo = Amo {
        op: AmoOp::Add,
        size: Size::Word,
        operand: 1,
        acquire: false,
        release: false,
    };
    for (number, kind) in (0..).zip(KINDS) {
        let at = 0x1000 + number * LENGTH + 0x100;
        let registers = kind == Kind::Registers;
        let outcome = |reply: Reply<u64>| matches!(reply, Reply::Done(_));
        let word = outcome(mapped.load(at, Size::Word, 1));
        let byte = outcome(mapped.load(at, Size::Byte, 1));
        let across = outcome(mapped.load(at + 4, Size::Double, 1));
        assert_eq!(
            (word, byte, across),
            (true, !registers, !registers),
            "{kind:?}"
        );
        let stored = mapped.store(at, Size::Half, 1) == Reply::Done(());
        assert_eq!(stored, !registers, "{kind:?}");
        assert_eq!(
            outcome(mapped.amo(at, amo, 1)),
            kind == Kind::Memory,
            "{kind:?}"
        );
        let fetched = matches!(mapped.fetch(at), Reply::Done(_));
        assert_eq!(fetched, kind == Kind::Memory, "{kind:?}");

        mapped.memory.seen.clear();
        mapped.prefetch(at, Prefetch::Read);
        assert_eq!(mapped.cbo(at, Cbo::Flush), Reply::Done(()));
        let cached = matches!(kind, Kind::Memory | Kind::Far | Kind::Scratchpad);
        let expected = [
            (Some(kind), "prefetch", at + 0x7000),
            (Some(kind), "cbo", at + 0x7000),
        ];
        let expected = if cached { &expected[..] } else { &[] };
        assert_eq!(mapped.memory.seen, expected);
    }
    for outside in [0, 0xfff, 0x6000, u64::MAX] {
        assert_eq!(mapped.load(outside, Size::Byte, 1), Reply::Fault);
        assert_eq!(mapped.cbo(outside, Cbo::Clean), Reply::Fault);
    }
    // An access must not cross the end of a region.
    assert_eq!(mapped.load(0x1fff, Size::Half, 1), Reply::Fault);
}

#[test]
fn far_memory_has_an_uncached_alias() {
    let mut mapped = machine();
    assert_eq!(mapped.store(0x2010, Size::Double, 77), Reply::Done(()));
    assert_eq!(mapped.load(0x3010, Size::Double, 1), Reply::Done(77));
    let seen = [
        (Some(Kind::Far), "store", 0x9010),
        (Some(Kind::Uncached), "load", 0x9010),
    ];
    assert_eq!(mapped.memory.seen, seen);
}

#[test]
fn register_accesses_do_not_stall() {
    let mut mapped = machine();
    mapped.memory.holds = true;
    assert_eq!(mapped.load(0x5000, Size::Double, 1), Reply::Fault);
    assert_eq!(mapped.load(0x4000, Size::Double, 1), Reply::Wait);
}

/// Loads from each region, each with a dependent sum: more distant regions take longer, also behind pages.
#[test]
fn load_latency_follows_the_region() {
    for (number, kind) in (0..).zip(KINDS) {
        let mut mapped = machine();
        let program = [
            i_type("ld", 6, 5, 0),
            i_type("addi", 6, 6, 1),
            s_type("sd", 6, 5, 8),
            bits("prefetch.r", 5 << 15 | 32 << 20),
            bits("ecall", 0),
        ];
        let code: Vec<u8> = program.iter().flat_map(|word| word.to_le_bytes()).collect();
        let place = mapped.memory.flat.bytes_mut(0x8000, code.len());
        place.expect("it is there").copy_from_slice(&code);
        let mut paged = Paged::new(mapped, Pages::new(4, 0));
        for at in (0x1000..0x6000).step_by(0x1000) {
            let page = Page {
                at: at << 8,
                to: at,
                size: PageSize::Small,
                readable: true,
                writable: true,
                executable: at == 0x1000,
            };
            paged.pages.map(page).expect("it is aligned");
        }
        let mut hart = Hart::new(0, Extensions::HOST);
        hart.pc = 0x1000 << 8;
        hart.set_x(5, ((0x1000 + number * LENGTH) << 8) + 0x800);
        let mut timed = Timed::new(Latencies::default());
        let (_, end) = timed.run(&mut hart, &mut paged, 1000);
        assert_eq!(
            end,
            Err(Stop::Exception(Exception::MachineCall)),
            "{kind:?}"
        );
        assert_eq!(hart.x(6), 1);
        // Load, dependent sum, store and prefetch; the final call waits only for registers.
        assert_eq!(timed.now, 4 + number * 10, "{kind:?}");
        let hints = paged
            .memory
            .memory
            .seen
            .iter()
            .filter(|seen| seen.1 == "prefetch");
        let hints: Vec<u8> = hints.map(|seen| Prefetch::level(seen.2)).collect();
        let cached = matches!(kind, Kind::Memory | Kind::Far | Kind::Scratchpad);
        assert_eq!(hints, if cached { &[2][..] } else { &[] }, "{kind:?}");
    }
}

#[test]
fn invalid_maps_are_rejected_with_region_names() {
    let region = |name: &str, at, length, to| Region {
        name: name.to_string(),
        at,
        length,
        to,
        kind: Kind::Memory,
        extra_latency: 0,
    };
    let refused = |regions: Vec<Region>| {
        Mapped::new((), regions)
            .map(|_| ())
            .expect_err("it is wrong")
    };
    let overlap = refused(vec![
        region("near", 0x2000, 0x1000, 0),
        region("far", 0x1000, 0x1001, 0),
    ]);
    assert_eq!(overlap, "the regions `far` and `near` overlap at 0x2000");
    for (at, length, to) in [(0, 0, 0), (u64::MAX, 2, 0), (0, 2, u64::MAX)] {
        let error = refused(vec![region("odd", at, length, to)]);
        assert!(error.starts_with("the region `odd` has "), "{error}");
    }
    // The last address is usable.
    let all = Mapped::new((), vec![region("last", u64::MAX, 1, u64::MAX)]).expect("it is one");
    assert_eq!(
        all.find(u64::MAX).map(|last| last.name.as_str()),
        Some("last")
    );
    assert_eq!(all.find(u64::MAX - 1), None);
}
