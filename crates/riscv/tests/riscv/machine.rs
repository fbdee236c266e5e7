//! Features that QEMU's user mode lacks: machine mode, traps, block management, and memory that stalls a core.

use cohkit_testing::riscv_oracle;

use cohkit_riscv::{
    Amo, AmoOp, Cbo, Exception, Extension, Extensions, Fence, FlatMemory, Hart, Memory, Mode,
    Prefetch, Reply, SharedMemory, Size, Stop,
};
use riscv_oracle::{encode, i_type, r_type, s_type};
use std::collections::BTreeMap;

/// Start address of programs.
const CODE: u64 = 0x1000;
/// Size of a cache block, in bytes.
const LINE: u64 = 64;

/// Reference model: memory behind a non-coherent cache, of loads and stores only.
struct Oracle {
    /// Memory behind the cache.
    memory_behind: FlatMemory,
    /// Cached blocks by address.
    cache: BTreeMap<u64, [u8; LINE as usize]>,
    /// Prefetches so far, with their addresses.
    prefetches: Vec<(u64, Prefetch)>,
    /// Fences so far.
    fences: Vec<Fence>,
    /// Number of retries before each access completes.
    delay: u32,
    /// Number of further retries before the current access completes.
    remaining_delay: u32,
}

impl Oracle {
    fn new() -> Oracle {
        let (cache, prefetches, fences) = (BTreeMap::new(), Vec::new(), Vec::new());
        Oracle {
            memory_behind: FlatMemory::new(0, 0x4000),
            cache,
            prefetches,
            fences,
            delay: 0,
            remaining_delay: 0,
        }
    }

    /// True if this access stalls.
    fn stalls(&mut self) -> bool {
        self.remaining_delay = self.remaining_delay.checked_sub(1).unwrap_or(self.delay);
        self.remaining_delay != 0
    }

    /// Cached block of an address, which is loaded if necessary; `None` beyond the end of memory.
    fn line(&mut self, address: u64) -> Option<&mut [u8; LINE as usize]> {
        let start = address & !(LINE - 1);
        let bytes = self.memory_behind.bytes(start, LINE as usize)?;
        let bytes = bytes.try_into().expect("a line");
        Some(self.cache.entry(start).or_insert(bytes))
    }

    /// Word of the memory behind the cache.
    fn word_behind(&self, address: u64) -> u64 {
        u64::from_le_bytes(
            self.memory_behind
                .bytes(address, 8)
                .expect("the range is in memory")
                .try_into()
                .expect("eight bytes"),
        )
    }

    /// Memory with a program loaded.
    fn program(words: &[u32]) -> Oracle {
        let mut memory = Oracle::new();
        for (n, word) in words.iter().enumerate() {
            let place = memory
                .memory_behind
                .bytes_mut(CODE + 4 * n as u64, 4)
                .expect("the range is in memory");
            place.copy_from_slice(&word.to_le_bytes());
        }
        memory
    }
}

impl Memory for Oracle {
    fn fetch(&mut self, address: u64) -> Reply<u16> {
        if self.stalls() {
            Reply::Wait
        } else {
            self.memory_behind.fetch(address)
        }
    }
    fn load(&mut self, address: u64, size: Size, _destination: u8) -> Reply<u64> {
        if self.stalls() {
            return Reply::Wait;
        }
        let offset = (address % LINE) as usize;
        if offset + size as usize > LINE as usize {
            return Reply::Misaligned;
        }
        let value = self.line(address).map(|line| {
            let mut bytes = [0; 8];
            bytes[..size as usize].copy_from_slice(&line[offset..offset + size as usize]);
            u64::from_le_bytes(bytes)
        });
        value.into()
    }
    fn store(&mut self, address: u64, size: Size, value: u64) -> Reply<()> {
        if self.stalls() {
            return Reply::Wait;
        }
        let offset = (address % LINE) as usize;
        let line = self.line(address);
        line.map(|line| {
            line[offset..offset + size as usize]
                .copy_from_slice(&value.to_le_bytes()[..size as usize])
        })
        .into()
    }
    fn amo(&mut self, address: u64, amo: Amo, destination: u8) -> Reply<u64> {
        if self.stalls() {
            Reply::Wait
        } else {
            self.memory_behind.amo(address, amo, destination)
        }
    }
    fn fence(&mut self, fence: Fence) -> Reply<()> {
        self.fences.push(fence);
        Reply::Done(())
    }
    fn fence_i(&mut self) -> Reply<()> {
        Reply::Done(())
    }
    fn cbo(&mut self, address: u64, op: Cbo) -> Reply<()> {
        if self.stalls() {
            return Reply::Wait;
        }
        let start = address & !(LINE - 1);
        if self.memory_behind.bytes(start, LINE as usize).is_none() {
            return Reply::Fault;
        }
        if let (Cbo::Clean | Cbo::Flush, Some(line)) = (op, self.cache.get(&start)) {
            self.memory_behind
                .bytes_mut(start, LINE as usize)
                .expect("the line was checked above")
                .copy_from_slice(line);
        }
        if op != Cbo::Clean {
            self.cache.remove(&start);
        }
        Reply::Done(())
    }
    fn prefetch(&mut self, address: u64, op: Prefetch) {
        self.prefetches.push((address, op));
    }
}

/// Encodes an access to a CSR; `operand` is a register or an immediate, depending on the instruction.
fn csr(name: &str, rd: u32, number: u32, operand: u32) -> u32 {
    encode(name, rd << 7 | operand << 15 | number << 20)
}

/// Encodes a cache block operation on the address in a register.
fn cbo(name: &str, register: u32) -> u32 {
    encode(name, register << 15)
}

/// A core with a program loaded.
fn core(words: &[u32]) -> (Hart, Oracle) {
    let mut hart = Hart::new(3, Extensions::HOST);
    hart.pc = CODE;
    (hart, Oracle::program(words))
}

/// Steps until `count` instructions have completed.
fn steps(hart: &mut Hart, memory: &mut Oracle, count: u32) {
    for _ in 0..count {
        let mut tries = 0;
        while hart.step(memory) == Err(Stop::Wait) {
            tries += 1;
            assert!(tries < 100);
        }
    }
}

/// A clean writes the block back and keeps it, a flush also removes it, and an invalidation loses the last store. The
/// results are the same if memory stalls.
#[test]
fn blocks_are_cleaned_flushed_and_invalidated() {
    for delay in [0, 3] {
        let store = s_type("sd", 11, 10, 8);
        let words = [
            store,
            cbo("cbo.clean", 10),
            store,
            cbo("cbo.inval", 10),
            i_type("ld", 12, 10, 8),
            store,
            cbo("cbo.flush", 10),
        ];
        let (mut hart, mut memory) = core(&words);
        memory.delay = delay;
        // Any address in a block selects the whole block.
        hart.set_x(10, 0x2010);
        hart.set_x(11, 7);
        steps(&mut hart, &mut memory, 1);
        assert_eq!((memory.word_behind(0x2018), memory.cache.len()), (0, 1));
        steps(&mut hart, &mut memory, 1);
        assert_eq!((memory.word_behind(0x2018), memory.cache.len()), (7, 1));
        hart.set_x(11, 8);
        steps(&mut hart, &mut memory, 2);
        assert_eq!((memory.word_behind(0x2018), memory.cache.len()), (7, 0));
        steps(&mut hart, &mut memory, 1);
        assert_eq!(hart.x(12), 7, "what was stored last has been dropped");
        steps(&mut hart, &mut memory, 2);
        assert_eq!((memory.word_behind(0x2018), memory.cache.len()), (8, 0));
        assert_eq!(hart.csrs.instret, 7, "steps that wait do not count");
        hart.pc = CODE + 4;
        hart.set_x(10, 0x9_0000);
        memory.delay = 0;
        assert_eq!(
            hart.step(&mut memory),
            Err(Exception::StoreFault(0x9_0000).into())
        );
    }
}

/// Each case has a value of `menvcfg`, whether an invalidation really discards data, and whether cleans and flushes
/// are permitted in user mode.
#[test]
fn cache_block_operations_follow_menvcfg() {
    let words = [
        cbo("cbo.inval", 10),
        cbo("cbo.clean", 10),
        cbo("cbo.flush", 10),
    ];
    for (menvcfg, invalidates, cleans) in [
        (0x70_u64, true, true),
        (0x50, false, true),
        (0x10, false, false),
        (0x40, false, true),
        (0, false, false),
    ] {
        let (mut hart, mut memory) = core(&words);
        hart.csrs
            .write(0x30a, menvcfg)
            .expect("the core has menvcfg");
        hart.csrs.mode = Mode::User;
        hart.set_x(10, 0x2000);
        memory.line(0x2000).expect("the line is in memory")[0] = 1;
        let illegal = |word| Err(Stop::Exception(Exception::IllegalInstruction(word)));
        let is_permitted = menvcfg & 0x30 != 0;
        assert_eq!(
            hart.step(&mut memory),
            if is_permitted {
                Ok(())
            } else {
                illegal(words[0])
            }
        );
        // `CBIE` = 1 turns an invalidation into a flush, so that nothing is lost.
        assert_eq!(memory.cache.is_empty(), is_permitted);
        assert_eq!(
            memory.word_behind(0x2000),
            u64::from(is_permitted && !invalidates)
        );
        for (n, word) in words.iter().enumerate().skip(1) {
            hart.pc = CODE + 4 * n as u64;
            assert_eq!(
                hart.step(&mut memory),
                if cleans { Ok(()) } else { illegal(*word) }
            );
        }
    }
}

/// Kinds and addresses of prefetches, and predecessor and successor sets of fences, as memory receives them.
#[test]
fn hints_and_fences_report_their_operands() {
    let prefetch = |name, imm: u32| encode(name, 10 << 15 | imm << 20);
    let words = [
        prefetch("prefetch.i", 0xfe0),
        prefetch("prefetch.r", 0x20),
        prefetch("prefetch.w", 0),
        0x0120_000f,
        0x8330_000f,
    ];
    let (mut hart, mut memory) = core(&words);
    // Prefetches of unmapped addresses, too.
    hart.set_x(10, 0x8_0000);
    steps(&mut hart, &mut memory, 5);
    let expected = [
        (0x7_ffe0, Prefetch::Execute),
        (0x8_0020, Prefetch::Read),
        (0x8_0000, Prefetch::Write),
    ];
    assert_eq!(memory.prefetches, expected);
    let fence = |predecessors, successors, total_store_order| Fence {
        predecessors,
        successors,
        total_store_order,
    };
    assert_eq!(memory.fences, [fence(1, 2, false), fence(3, 3, true)]);
}

/// Exceptions in user mode set the trap registers and enter machine mode; `mret` returns, and is illegal in user mode.
#[test]
fn trap_enters_its_handler_and_returns() {
    let words = [
        csr("csrrw", 0, 0x305, 10),
        encode("mret", 0),
        csr("csrrs", 5, 0x300, 0),
        encode("ecall", 0),
        encode("ebreak", 0),
    ];
    let (mut hart, mut memory) = core(&words);
    hart.set_x(10, 0x2003);
    steps(&mut hart, &mut memory, 1);
    assert_eq!(
        hart.csrs.read(0x305),
        Some(0x2001),
        "the reserved bit is not taken"
    );
    hart.csrs.write(0x341, CODE + 8).expect("mepc");
    hart.csrs.write(0x300, 1 << 7).expect("mstatus");
    steps(&mut hart, &mut memory, 1);
    assert_eq!((hart.pc, hart.csrs.mode), (CODE + 8, Mode::User));
    for (address, exception, cause, value) in [
        (
            8,
            Exception::IllegalInstruction(words[2]),
            2,
            u64::from(words[2]),
        ),
        (12, Exception::UserCall, 8, 0),
        (16, Exception::Breakpoint(CODE + 16), 3, CODE + 16),
    ] {
        (hart.pc, hart.csrs.mode) = (CODE + address, Mode::User);
        assert_eq!(hart.step(&mut memory), Err(exception.into()));
        assert_eq!(hart.pc, CODE + address, "it stands before the instruction");
        hart.trap(exception);
        assert_eq!((hart.pc, hart.csrs.mode), (0x2000, Mode::Machine));
        let trap_registers =
            [0x341, 0x342, 0x343].map(|number| hart.csrs.read(number).expect("the CSR exists"));
        assert_eq!(trap_registers, [CODE + address, cause, value]);
        let mstatus = hart.csrs.read(0x300).expect("the CSR exists");
        assert_eq!(mstatus >> 11 & 3, 0, "it came from user mode");
    }
    (hart.pc, hart.csrs.mode) = (CODE + 12, Mode::Machine);
    assert_eq!(hart.step(&mut memory), Err(Exception::MachineCall.into()));
    (hart.pc, hart.csrs.mode) = (CODE + 4, Mode::User);
    assert_eq!(
        hart.step(&mut memory),
        Err(Exception::IllegalInstruction(words[1]).into()),
        "programs cannot return from traps"
    );
}

/// External (11), software (3) and timer (7) interrupts, in this order, at their entries of a vectored handler.
#[test]
fn enabled_interrupts_are_taken_in_priority_order() {
    let (mut hart, _) = core(&[]);
    hart.csrs.write(0x305, 0x2001).expect("mtvec");
    hart.csrs.interrupts = 1 << 3 | 1 << 7 | 1 << 11;
    assert!(!hart.interrupt(), "none is enabled");
    hart.csrs.write(0x304, u64::MAX).expect("mie");
    assert!(!hart.interrupt(), "machine mode lets none in");
    hart.csrs.mode = Mode::User;
    for number in [11, 3, 7] {
        hart.pc = CODE;
        hart.csrs.mode = Mode::User;
        assert!(hart.interrupt());
        assert_eq!(
            (hart.pc, hart.csrs.mode),
            (0x2000 + 4 * number, Mode::Machine)
        );
        assert_eq!(hart.csrs.read(0x342), Some(number | 1 << 63));
        assert!(!hart.interrupt(), "the handler is not interrupted");
        hart.csrs.interrupts &= !(1 << number);
    }
    assert!(!hart.interrupt());
    hart.csrs.write(0x300, 1 << 3 | 3 << 11).expect("mstatus");
    hart.csrs.interrupts = 1 << 7;
    assert!(hart.interrupt());
    assert_eq!(
        hart.csrs.read(0x300).map(|mstatus| mstatus >> 3 & 17),
        Some(16),
        "enabled before, not now"
    );
}

/// Each case has a CSR, a written value, and the value that is read. Read-only, unknown and forbidden CSRs are
/// refused.
#[test]
fn csr_writes_keep_only_implemented_bits() {
    let (mut hart, mut memory) = core(&[
        csr("csrrw", 5, 0xf14, 0),
        csr("csrrs", 5, 0xf14, 0),
        csr("csrrw", 5, 0xb02, 10),
    ]);
    assert_eq!(
        hart.step(&mut memory),
        Err(Exception::IllegalInstruction(csr("csrrw", 5, 0xf14, 0)).into()),
        "it is read-only"
    );
    hart.pc += 4;
    steps(&mut hart, &mut memory, 1);
    assert_eq!(hart.x(5), 3);
    hart.set_x(10, 1000);
    steps(&mut hart, &mut memory, 1);
    assert_eq!(
        hart.csrs.read(0xc02),
        Some(1000),
        "what writes a counter does not count"
    );
    let writes = [
        (0x300, u64::MAX, 0x8000_0002_0000_7888),
        (0x300, 1 << 11, 0x8000_0002_0000_7800),
        (0x301, 0, 0x8000_0000_0010_112d),
        (0x304, u64::MAX, 0x888),
        (0x306, u64::MAX, 7),
        (0x30a, 0x20, 0x70),
        (0x341, 0x1235, 0x1234),
        (0x344, u64::MAX, 0),
        (0x003, u64::MAX, 0xff),
        (0x002, 9, 1),
    ];
    for (number, value, expected) in writes {
        hart.csrs.write(number, value).expect("the CSR exists");
        assert_eq!(hart.csrs.read(number), Some(expected), "{number:#x}");
    }
    assert_eq!(hart.csrs.read(0x7c0), None);
    hart.csrs.mode = Mode::User;
    assert_eq!(
        (hart.csrs.read(0x300), hart.csrs.read(0xc00).is_some()),
        (None, true)
    );
    hart.csrs.mode = Mode::Machine;
    hart.csrs.write(0x306, 0).expect("mcounteren");
    hart.csrs.mode = Mode::User;
    assert_eq!(hart.csrs.read(0xc00), None);
}

/// With an invalid dynamic rounding mode, only instructions that use it are illegal.
#[test]
fn invalid_rounding_mode_makes_rounding_illegal() {
    let words = [
        encode("fadd.d", 7 << 12),
        encode("fadd.d", 0),
        encode("fsgnj.d", 0),
    ];
    let (mut hart, mut memory) = core(&words);
    hart.csrs.frm = 5;
    assert_eq!(
        hart.step(&mut memory),
        Err(Exception::IllegalInstruction(words[0]).into())
    );
    hart.pc += 4;
    steps(&mut hart, &mut memory, 2);
    assert_eq!(hart.pc, CODE + 12);
}

/// Misaligned atomic accesses, a load across a block, and a jump to a 16-bit boundary without compressed instructions.
#[test]
fn forbidden_misalignment_raises_an_exception() {
    let words = [
        encode("jal", 6 << 20),
        r_type("lr.d", 5, 10, 0),
        r_type("amoadd.w", 5, 10, 11),
        i_type("ld", 5, 10, 0),
    ];
    let (mut hart, mut memory) = core(&words);
    hart.set_x(10, 0x203e);
    for (address, exception) in [
        (4, Exception::MisalignedLoad(0x203e)),
        (8, Exception::MisalignedStore(0x203e)),
        (12, Exception::MisalignedLoad(0x203e)),
    ] {
        hart.pc = CODE + address;
        assert_eq!(hart.step(&mut memory), Err(exception.into()));
    }
    let mut uncompressed_hart = Hart::new(0, Extensions::HOST.without(Extension::C));
    uncompressed_hart.pc = CODE;
    assert_eq!(
        uncompressed_hart.step(&mut memory),
        Err(Exception::MisalignedFetch(CODE + 6).into())
    );
    assert_eq!(uncompressed_hart.pc, CODE);
    hart.pc = CODE;
    steps(&mut hart, &mut memory, 1);
    assert_eq!(hart.pc, CODE + 6);
}

/// A program ends with the same registers and memory if each access needs several tries.
#[test]
fn stalling_memory_changes_only_the_step_count() {
    let words = [
        s_type("sd", 11, 10, 0),
        i_type("lw", 12, 10, 0),
        r_type("amoadd.d", 13, 10, 11),
        r_type("lr.d", 14, 10, 0),
        r_type("sc.d", 15, 10, 11),
        i_type("lbu", 16, 10, 1),
        r_type("add", 17, 16, 12),
    ];
    let final_state = |delay| {
        let (mut hart, mut memory) = core(&words);
        memory.delay = delay;
        hart.set_x(10, 0x2000);
        hart.set_x(11, 0xffff_ffff_8765_4321);
        steps(&mut hart, &mut memory, words.len() as u32);
        (0..32)
            .map(|number| hart.x(number))
            .chain([hart.pc, memory.word_behind(0x2000)])
            .collect::<Vec<_>>()
    };
    assert_eq!(final_state(0), final_state(1));
    assert_eq!(final_state(0), final_state(5));
    assert_eq!(final_state(0)[12], 0xffff_ffff_8765_4321);
}

/// Memory that accepts loads at once; the test delivers their values.
struct Split(Vec<(u8, u64)>);

impl Memory for Split {
    const SPLIT: bool = true;

    fn fetch(&mut self, address: u64) -> Reply<u16> {
        let words = [
            i_type("lb", 5, 10, 0),
            i_type("lhu", 6, 10, 0),
            i_type("flw", 5, 10, 0),
            i_type("addi", 7, 0, 1),
            r_type("add", 8, 5, 7),
            i_type("addi", 6, 0, 0),
            r_type("amoswap.w", 9, 10, 7),
            encode("fadd.s", 6 << 7 | 5 << 15 | 5 << 20),
            i_type("ld", 0, 10, 0),
            i_type("addi", 7, 9, 0),
        ];
        let word = (address - CODE) / 4;
        let half = words
            .get(word as usize)
            .map(|word| (word >> (8 * (address & 2))) as u16);
        half.into()
    }
    fn load(&mut self, address: u64, _size: Size, destination: u8) -> Reply<u64> {
        self.0.push((destination, address));
        Reply::Later
    }
    fn store(&mut self, _address: u64, _size: Size, _value: u64) -> Reply<()> {
        Reply::Done(())
    }
    fn amo(&mut self, address: u64, _amo: Amo, destination: u8) -> Reply<u64> {
        self.0.push((destination, address));
        Reply::Later
    }
    fn fence(&mut self, _fence: Fence) -> Reply<()> {
        Reply::Done(())
    }
    fn fence_i(&mut self) -> Reply<()> {
        Reply::Done(())
    }
    fn cbo(&mut self, _address: u64, _op: Cbo) -> Reply<()> {
        Reply::Done(())
    }
    fn prefetch(&mut self, _address: u64, _op: Prefetch) {}
}

/// Instructions continue behind outstanding loads until one reads or overwrites a destination; values are delivered in
/// any order and extended as their loads need.
#[test]
fn core_stalls_only_at_the_use_of_a_load() {
    let mut hart = Hart::new(0, Extensions::HOST);
    hart.pc = CODE;
    let mut memory = Split(Vec::new());
    for _ in 0..4 {
        assert_eq!(hart.step(&mut memory), Ok(()));
    }
    assert_eq!(memory.0, [(5, 0), (6, 0), (37, 0)]);
    assert_eq!(hart.pending_loads(), 1 << 5 | 1 << 6 | 1 << 37);
    assert_eq!(
        hart.step(&mut memory),
        Err(Stop::Wait),
        "it reads what is not there yet"
    );
    hart.deliver(37, 0x3f80_0000);
    assert_eq!(hart.step(&mut memory), Err(Stop::Wait));
    hart.deliver(5, 0x80);
    assert_eq!(hart.step(&mut memory), Ok(()));
    assert_eq!(hart.x(8), 1_u64.wrapping_sub(0x80), "a byte with its sign");
    assert_eq!(
        hart.step(&mut memory),
        Err(Stop::Wait),
        "it writes what is to be written before"
    );
    hart.deliver(6, 0xffff);
    assert_eq!(hart.x(6), 0xffff);
    for _ in 0..4 {
        assert_eq!(hart.step(&mut memory), Ok(()));
    }
    assert_eq!(hart.f(6), 0xffff_ffff_4000_0000, "a boxed single");
    assert_eq!(hart.step(&mut memory), Err(Stop::Wait));
    hart.deliver(0, 7);
    hart.deliver(9, 0x8000_0000);
    assert_eq!(hart.step(&mut memory), Ok(()));
    assert_eq!(
        (hart.x(0), hart.x(7)),
        (0, 0xffff_ffff_8000_0000),
        "a word with its sign"
    );
}

/// A store from outside to the 64 bytes of a reservation, or across their start, makes the store-conditional fail.
#[test]
fn external_stores_break_reservations() {
    let mut shared = SharedMemory::new(FlatMemory::new(0, 4096), 2);
    let amo = |op, operand| Amo {
        op,
        size: Size::Double,
        operand,
        acquire: false,
        release: false,
    };
    // Address of the intervening store, and whether the word at 256 is still reserved.
    for (address, is_reserved) in [
        (128, true),
        (248, true),
        (249, false),
        (312, false),
        (320, true),
    ] {
        let mut port = shared.port(1).expect("core 1 exists");
        port.amo(256, amo(AmoOp::LoadReserved, 0), 5);
        assert!(shared.put(address, &[address as u8; 8]));
        assert_eq!(
            shared.memory.bytes(address, 8),
            Some(&[address as u8; 8][..])
        );
        let mut port = shared.port(1).expect("core 1 exists");
        let reply = port.amo(256, amo(AmoOp::StoreConditional, 7), 5);
        assert_eq!(reply, Reply::Done(u64::from(!is_reserved)), "{address}");
    }
    assert!(!shared.put(4090, &[0; 8]), "beyond the end");
}
