//! Address map of a core: permitted accesses, aliases and latency of each kind of region.

use cohkit_testing::riscv_oracle;

use cohkit_riscv::map::{Kind, MappedMemory, Region, RegionMemory};
use cohkit_riscv::{
    Amo, AmoOp, Cbo, Exception, Extensions, Fence, FlatMemory, Hart, Latencies, Memory, Page,
    PageSize, PagedMemory, Pages, Prefetch, Reply, Size, Stop, TimedInterpreter, TimedMemory,
};
use riscv_oracle::{encode, i_type, s_type};

/// Flat memory that records each access with its region, and can stall all of them.
struct RecordingMemory {
    flat: FlatMemory,
    /// Region of the next access, if the map has announced it.
    region_kind: Option<Kind>,
    /// Accesses so far: region, operation, and address in the target memory.
    accesses: Vec<(Option<Kind>, &'static str, u64)>,
    /// True if loads stall.
    stalls: bool,
}

impl RecordingMemory {
    /// Records an access.
    fn record(&mut self, operation: &'static str, address: u64) {
        let region = self.region_kind.take();
        self.accesses.push((region, operation, address));
    }
}

impl Memory for RecordingMemory {
    fn fetch(&mut self, address: u64) -> Reply<u16> {
        self.flat.fetch(address)
    }
    fn load(&mut self, address: u64, size: Size, destination: u8) -> Reply<u64> {
        self.record("load", address);
        if self.stalls {
            return Reply::Wait;
        }
        self.flat.load(address, size, destination)
    }
    fn store(&mut self, address: u64, size: Size, value: u64) -> Reply<()> {
        self.record("store", address);
        self.flat.store(address, size, value)
    }
    fn amo(&mut self, address: u64, amo: Amo, destination: u8) -> Reply<u64> {
        self.record("amo", address);
        self.flat.amo(address, amo, destination)
    }
    fn fence(&mut self, fence: Fence) -> Reply<()> {
        self.flat.fence(fence)
    }
    fn fence_i(&mut self) -> Reply<()> {
        self.flat.fence_i()
    }
    fn cbo(&mut self, address: u64, op: Cbo) -> Reply<()> {
        self.record("cbo", address);
        self.flat.cbo(address, op)
    }
    fn prefetch(&mut self, address: u64, _op: Prefetch) {
        self.record("prefetch", address);
    }
}

impl TimedMemory for RecordingMemory {}

impl RegionMemory for RecordingMemory {
    fn region(&mut self, region: &Region) {
        self.region_kind = Some(region.kind);
    }
}

/// Kinds of regions, in the order of their addresses.
const KINDS: [Kind; 5] = [
    Kind::Memory,
    Kind::Far,
    Kind::Uncached,
    Kind::Scratchpad,
    Kind::Registers,
];
/// Length of each region, in bytes.
const LENGTH: u64 = 0x1000;

/// One region of each kind, from 0x1000 on. Far memory and the uncached region are aliases.
fn machine() -> MappedMemory<RecordingMemory> {
    let mut regions = Vec::new();
    for (number, kind) in (0..).zip(KINDS) {
        let target_number = if kind == Kind::Uncached { 1 } else { number };
        regions.push(Region {
            name: format!("{kind:?}"),
            start: 0x1000 + number * LENGTH,
            length: LENGTH,
            target_start: 0x8000 + target_number * LENGTH,
            kind,
            extra_latency: number * 10,
        });
    }
    let recording_memory = RecordingMemory {
        flat: FlatMemory::new(0x8000, 0x5000),
        region_kind: None,
        accesses: Vec::new(),
        stalls: false,
    };
    // The order of the list is irrelevant.
    regions.rotate_left(2);
    MappedMemory::new(recording_memory, regions).expect("disjoint regions")
}

/// Each kind of region permits its own accesses only. Block operations and prefetches of uncached regions do nothing.
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
        let address = 0x1000 + number * LENGTH + 0x100;
        let is_registers = kind == Kind::Registers;
        let is_done = |reply: Reply<u64>| matches!(reply, Reply::Done(_));
        let word = is_done(mapped.load(address, Size::Word, 1));
        let byte = is_done(mapped.load(address, Size::Byte, 1));
        let across = is_done(mapped.load(address + 4, Size::Double, 1));
        assert_eq!(
            (word, byte, across),
            (true, !is_registers, !is_registers),
            "{kind:?}"
        );
        let is_stored = mapped.store(address, Size::Half, 1) == Reply::Done(());
        assert_eq!(is_stored, !is_registers, "{kind:?}");
        assert_eq!(
            is_done(mapped.amo(address, amo, 1)),
            kind == Kind::Memory,
            "{kind:?}"
        );
        let is_fetched = matches!(mapped.fetch(address), Reply::Done(_));
        assert_eq!(is_fetched, kind == Kind::Memory, "{kind:?}");

        mapped.memory.accesses.clear();
        mapped.prefetch(address, Prefetch::Read);
        assert_eq!(mapped.cbo(address, Cbo::Flush), Reply::Done(()));
        let is_cached = matches!(kind, Kind::Memory | Kind::Far | Kind::Scratchpad);
        let expected = [
            (Some(kind), "prefetch", address + 0x7000),
            (Some(kind), "cbo", address + 0x7000),
        ];
        let expected = if is_cached { &expected[..] } else { &[] };
        assert_eq!(mapped.memory.accesses, expected);
    }
    for outside in [0, 0xfff, 0x6000, u64::MAX] {
        assert_eq!(mapped.load(outside, Size::Byte, 1), Reply::Fault);
        assert_eq!(mapped.cbo(outside, Cbo::Clean), Reply::Fault);
    }
    // An access must not cross the end of a region.
    assert_eq!(mapped.load(0x1fff, Size::Half, 1), Reply::Fault);
}

/// A word stored in far memory is read at its alias; both accesses have the same target address.
#[test]
fn far_memory_has_an_uncached_alias() {
    let mut mapped = machine();
    assert_eq!(mapped.store(0x2010, Size::Double, 77), Reply::Done(()));
    assert_eq!(mapped.load(0x3010, Size::Double, 1), Reply::Done(77));
    let expected = [
        (Some(Kind::Far), "store", 0x9010),
        (Some(Kind::Uncached), "load", 0x9010),
    ];
    assert_eq!(mapped.memory.accesses, expected);
}

/// A register that is not ready causes a fault, whereas other memory may stall the core.
#[test]
fn register_accesses_do_not_stall() {
    let mut mapped = machine();
    mapped.memory.stalls = true;
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
            encode("prefetch.r", 5 << 15 | 32 << 20),
            encode("ecall", 0),
        ];
        let code: Vec<u8> = program.iter().flat_map(|word| word.to_le_bytes()).collect();
        let code_bytes = mapped.memory.flat.bytes_mut(0x8000, code.len());
        code_bytes
            .expect("the range is in memory")
            .copy_from_slice(&code);
        let mut paged = PagedMemory::new(mapped, Pages::new(4, 0));
        for address in (0x1000..0x6000).step_by(0x1000) {
            let page = Page {
                virtual_start: address << 8,
                physical_start: address,
                size: PageSize::SMALL,
                readable: true,
                writable: true,
                executable: address == 0x1000,
            };
            paged.pages.map(page).expect("an aligned page");
        }
        let mut hart = Hart::new(0, Extensions::HOST);
        hart.pc = 0x1000 << 8;
        hart.set_x(5, ((0x1000 + number * LENGTH) << 8) + 0x800);
        let mut timed = TimedInterpreter::new(Latencies::default());
        let (_, result) = timed.run(&mut hart, &mut paged, 1000);
        assert_eq!(
            result,
            Err(Stop::Exception(Exception::MachineCall)),
            "{kind:?}"
        );
        assert_eq!(hart.x(6), 1);
        // Load, dependent sum, store and prefetch; the final call waits only for registers.
        assert_eq!(timed.now, 4 + number * 10, "{kind:?}");
        let prefetch_levels = paged
            .memory
            .memory
            .accesses
            .iter()
            .filter(|seen| seen.1 == "prefetch");
        let prefetch_levels: Vec<u8> = prefetch_levels
            .map(|seen| Prefetch::level(seen.2))
            .collect();
        let is_cached = matches!(kind, Kind::Memory | Kind::Far | Kind::Scratchpad);
        assert_eq!(
            prefetch_levels,
            if is_cached { &[2][..] } else { &[] },
            "{kind:?}"
        );
    }
}

/// Overlapping regions, and regions without bytes or beyond the last address.
#[test]
fn invalid_maps_are_rejected_with_region_names() {
    let region = |name: &str, start, length, target_start| Region {
        name: name.to_string(),
        start,
        length,
        target_start,
        kind: Kind::Memory,
        extra_latency: 0,
    };
    let map_error = |regions: Vec<Region>| {
        MappedMemory::new((), regions)
            .map(|_| ())
            .expect_err("an invalid map")
    };
    let overlap = map_error(vec![
        region("near", 0x2000, 0x1000, 0),
        region("far", 0x1000, 0x1001, 0),
    ]);
    assert_eq!(overlap, "the regions `far` and `near` overlap at 0x2000");
    for (start, length, target_start) in [(0, 0, 0), (u64::MAX, 2, 0), (0, 2, u64::MAX)] {
        let error = map_error(vec![region("odd", start, length, target_start)]);
        assert!(error.starts_with("the region `odd` has "), "{error}");
    }
    // The last address is usable.
    let full_map =
        MappedMemory::new((), vec![region("last", u64::MAX, 1, u64::MAX)]).expect("a valid map");
    assert_eq!(
        full_map
            .find(u64::MAX)
            .map(|region_found| region_found.name.as_str()),
        Some("last")
    );
    assert_eq!(full_map.find(u64::MAX - 1), None);
}
