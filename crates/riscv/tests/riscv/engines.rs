//! All engines compute the same results, and the timed engine takes the cycles calculated by hand.

use cohkit_testing::riscv_oracle;

use cohkit_riscv::{
    Amo, Cbo, Extensions, FastInterpreter, Fence, FlatMemory, Hart, Latencies, Memory, Op,
    Prefetch, Reply, Size, Stop, TimedInterpreter, TimedMemory,
};
use riscv_oracle::{b_type, encode, i_type, r_type, random, s_type, Random};

/// Start address of programs.
const CODE: u64 = 0x1000;

/// A core with a program loaded; register 10 points to data behind it.
fn core(words: &[u32]) -> (Hart, FlatMemory) {
    let mut memory = FlatMemory::new(CODE, 0x1000);
    for (n, word) in words.iter().enumerate() {
        let place = memory
            .bytes_mut(CODE + 4 * n as u64, 4)
            .expect("the range is in memory");
        place.copy_from_slice(&word.to_le_bytes());
    }
    let mut hart = Hart::new(0, Extensions::HOST);
    hart.pc = CODE;
    hart.set_x(10, CODE + 0x800);
    (hart, memory)
}

/// Blocks of random length and timed runs of random duration end with the same registers and memory as single steps.
#[test]
fn random_programs_end_alike_on_every_engine() {
    let program = random::programs(77, 60, 300);
    let step_output = program.output_in_single_steps();
    assert!(step_output.len() > 60 * 4000);
    let mut random = Random::new(1);
    let mut fast = FastInterpreter::default();
    let fast_output = program.output_by(|hart, memory| {
        let max_instructions = random.below(50);
        let (executed, result) = fast.run(hart, memory, max_instructions);
        assert!(executed == max_instructions || result.is_err());
        result
    });
    assert!(fast_output == step_output, "by blocks it ends differently");
    let costs = [Op::Mul, Op::Div, Op::Ld, Op::Fadd, Op::Fdiv];
    let latencies = Latencies::default()
        .with(&costs, 7, 3)
        .with_wide(&costs, 9, 4);
    let mut timed = TimedInterpreter::new(latencies);
    let timed_output = program.output_by(|hart, memory| {
        let until = timed.now + random.below(50);
        timed.run(hart, memory, until).1
    });
    assert!(timed_output == step_output, "in time it ends differently");
}

/// A program replaces one of its instructions; all engines execute the new one after `fence.i`.
#[test]
fn changed_code_is_visible_after_fence_i() {
    // Execute twice: the second pass runs a different first instruction.
    let words = [
        i_type("addi", 5, 0, 1),
        r_type("add", 6, 6, 5),
        s_type("sw", 7, 8, 0),
        encode("fence.i", 0),
        i_type("addi", 9, 9, -1),
        b_type("bne", 9, 0, -20),
        encode("ebreak", 0),
    ];
    let mut sums = Vec::new();
    for engine in 0..3 {
        let (mut hart, mut memory) = core(&words);
        hart.set_x(7, i_type("addi", 5, 0, 10).into());
        hart.set_x(8, CODE);
        hart.set_x(9, 2);
        let result = match engine {
            0 => loop {
                let result = hart.step(&mut memory);
                if result.is_err() {
                    break result;
                }
            },
            1 => {
                FastInterpreter::default()
                    .run(&mut hart, &mut memory, 1000)
                    .1
            }
            _ => {
                TimedInterpreter::new(Latencies::default())
                    .run(&mut hart, &mut memory, 1000)
                    .1
            }
        };
        assert!(matches!(result, Err(Stop::Exception(_))));
        sums.push((hart.x(6), hart.csrs.instret));
    }
    assert_eq!(sums, [(11, 12); 3]);
}

/// A program that reads `instret` sees the number of instructions before the read.
#[test]
fn instret_counts_earlier_instructions() {
    let instret = |rd: u32| encode("csrrs", rd << 7 | 0xc02 << 20);
    let words = [
        i_type("addi", 0, 0, 0),
        instret(5),
        i_type("addi", 0, 0, 0),
        i_type("addi", 0, 0, 0),
        instret(6),
        instret(7),
    ];
    for engine in 0..2 {
        let (mut hart, mut memory) = core(&words);
        match engine {
            0 => assert_eq!(
                FastInterpreter::default().run(&mut hart, &mut memory, 6),
                (6, Ok(()))
            ),
            _ => assert_eq!(
                TimedInterpreter::new(Latencies::default()).run(&mut hart, &mut memory, 6),
                (6, Ok(()))
            ),
        }
        assert_eq!([5, 6, 7].map(|number| hart.x(number)), [1, 4, 5]);
    }
}

/// Cycles taken by a program, which ends with `csrr x31, cycle`.
fn cycles(latencies: Latencies, words: &[u32]) -> u64 {
    let mut words = words.to_vec();
    words.push(encode("csrrs", 31 << 7 | 0xc00 << 20));
    words.push(encode("ebreak", 0));
    let (mut hart, mut memory) = core(&words);
    let mut timed = TimedInterpreter::new(latencies);
    let (_, result) = timed.run(&mut hart, &mut memory, 10_000);
    assert!(matches!(result, Err(Stop::Exception(_))));
    hart.x(31)
}

/// Cycles by hand for loads, divisions, multiplications and branches with given latencies.
#[test]
fn instructions_wait_only_for_their_operands() {
    let latencies = || {
        Latencies::default()
            .with(&[Op::Ld], 5, 1)
            .with(&[Op::Div], 20, 18)
            .with(&[Op::Fmul], 4, 1)
            .with_wide(&[Op::Fmul], 6, 1)
    };
    let load = |rd, address| i_type("ld", rd, 10, address);
    let add = |rd, a, b| r_type("add", rd, a, b);
    let nop = add(0, 0, 0);
    // A counter read waits for all outstanding instructions.
    assert_eq!(cycles(latencies(), &[]), 0);
    assert_eq!(cycles(latencies(), &[nop, nop, nop]), 3);
    assert_eq!(cycles(latencies(), &[load(5, 0)]), 5);
    // Loads overlap, and independent instructions proceed: they start in cycles 0, 1, 2 and 3, and the sum in cycle 6.
    assert_eq!(
        cycles(
            latencies(),
            &[load(5, 0), load(6, 8), nop, nop, add(7, 5, 6)]
        ),
        7
    );
    // An instruction that needs only the first load starts in cycle 5, as does one that overwrites the load's
    // destination.
    assert_eq!(cycles(latencies(), &[load(5, 0), add(7, 5, 5)]), 6);
    assert_eq!(
        cycles(latencies(), &[load(5, 0), add(5, 0, 0), nop, nop]),
        8
    );
    // A busy divider stalls all later instructions.
    assert_eq!(
        cycles(latencies(), &[r_type("div", 5, 6, 7), nop, nop, nop]),
        21
    );
    assert_eq!(
        cycles(
            latencies(),
            &[r_type("div", 5, 6, 7), r_type("div", 6, 6, 7)]
        ),
        38
    );
    // Single and double precision have separate costs.
    assert_eq!(cycles(latencies(), &[r_type("fmul.s", 1, 2, 3)]), 4);
    assert_eq!(
        cycles(
            latencies(),
            &[r_type("fmul.d", 1, 2, 3), r_type("fmul.d", 4, 1, 3)]
        ),
        12
    );
    // Only taken branches pay the penalty.
    let mut with_penalty = latencies();
    with_penalty.taken_penalty = 3;
    assert_eq!(
        cycles(with_penalty.clone(), &[b_type("beq", 0, 0, 8), nop, nop]),
        5
    );
    assert_eq!(cycles(with_penalty, &[b_type("bne", 0, 0, 8), nop, nop]), 3);
}

/// Memory with a latency per address, which stalls each store once.
struct SlowMemory {
    flat: FlatMemory,
    /// Address and cycle of each access that was performed.
    access_starts: Vec<(u64, u64)>,
    /// Current cycle of the core.
    cycle: u64,
    /// Additional latency of the last access, in cycles: for loads, the offset of the address in its block of 64
    /// bytes.
    last_latency: u64,
    /// True if the last try of a store stalled; the next one then completes.
    has_stalled: bool,
}

impl Memory for SlowMemory {
    fn fetch(&mut self, address: u64) -> Reply<u16> {
        self.flat.fetch(address)
    }
    fn load(&mut self, address: u64, size: Size, destination: u8) -> Reply<u64> {
        self.access_starts.push((address, self.cycle));
        self.last_latency = address % 64;
        self.flat.load(address, size, destination)
    }
    fn store(&mut self, address: u64, size: Size, value: u64) -> Reply<()> {
        self.has_stalled = !self.has_stalled;
        if self.has_stalled {
            return Reply::Wait;
        }
        self.access_starts.push((address, self.cycle));
        self.last_latency = 0;
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
        self.flat.cbo(address, op)
    }
    fn prefetch(&mut self, _address: u64, _op: Prefetch) {}
}

impl TimedMemory for SlowMemory {
    fn set_cycle(&mut self, cycle: u64) {
        self.cycle = cycle;
    }
    fn extra_latency(&mut self) -> u64 {
        self.last_latency
    }
}

/// Accesses start while earlier loads are outstanding, and the core stops where it needs a value or memory stalls.
#[test]
fn memory_latency_stalls_the_core() {
    let words = [
        i_type("ld", 5, 10, 40),
        i_type("ld", 6, 10, 0),
        r_type("add", 7, 6, 6),
        s_type("sd", 5, 10, 8),
        encode("ebreak", 0),
    ];
    let (mut hart, flat) = core(&words);
    let mut memory = SlowMemory {
        flat,
        access_starts: Vec::new(),
        cycle: 0,
        last_latency: 0,
        has_stalled: false,
    };
    let mut timed = TimedInterpreter::new(Latencies::default());
    // The store needs a value that is ready after 41 cycles, and then stalls once.
    let (completed, result) = timed.run(&mut hart, &mut memory, 1000);
    assert_eq!((completed, result, timed.now), (3, Err(Stop::Wait), 41));
    timed.now = 100;
    let (completed, result) = timed.run(&mut hart, &mut memory, 1000);
    assert!(matches!((completed, result), (1, Err(Stop::Exception(_)))));
    let address = CODE + 0x800;
    assert_eq!(
        memory.access_starts,
        [(address + 40, 0), (address, 1), (address + 8, 100)]
    );
    assert_eq!(hart.csrs.instret, 4);
}

/// A run until a cycle executes only instructions that start before it.
#[test]
fn timed_run_ends_before_the_given_cycle() {
    let words = [i_type("addi", 5, 5, 1), b_type("beq", 0, 0, -4)];
    let (mut hart, mut memory) = core(&words);
    let mut timed = TimedInterpreter::new(Latencies::default());
    for until in [0, 1, 2, 7, 7, 100] {
        assert_eq!(timed.run(&mut hart, &mut memory, until).1, Ok(()));
        assert_eq!(
            (timed.now, hart.csrs.instret, hart.csrs.cycle),
            (until, until, until)
        );
    }
}

/// Memory that accepts loads and answers them later.
struct DelayedMemory(FlatMemory);

impl Memory for DelayedMemory {
    const SPLIT: bool = true;

    fn fetch(&mut self, address: u64) -> Reply<u16> {
        self.0.fetch(address)
    }
    fn load(&mut self, _address: u64, _size: Size, _destination: u8) -> Reply<u64> {
        Reply::Later
    }
    fn store(&mut self, address: u64, size: Size, value: u64) -> Reply<()> {
        self.0.store(address, size, value)
    }
    fn amo(&mut self, _address: u64, _amo: Amo, _destination: u8) -> Reply<u64> {
        Reply::Later
    }
    fn fence(&mut self, fence: Fence) -> Reply<()> {
        self.0.fence(fence)
    }
    fn fence_i(&mut self) -> Reply<()> {
        self.0.fence_i()
    }
    fn cbo(&mut self, address: u64, op: Cbo) -> Reply<()> {
        self.0.cbo(address, op)
    }
    fn prefetch(&mut self, _address: u64, _op: Prefetch) {}
}

impl TimedMemory for DelayedMemory {}

/// Values that arrive out of order, each with the cycle from which it can be used: later sums start no earlier.
#[test]
fn delivered_value_is_usable_from_its_cycle() {
    let words = [
        i_type("lw", 5, 10, 0),
        i_type("lw", 6, 10, 0),
        r_type("add", 7, 6, 6),
        r_type("add", 8, 5, 7),
        encode("csrrs", 31 << 7 | 0xc00 << 20),
    ];
    let (mut hart, memory) = core(&words);
    let mut memory = DelayedMemory(memory);
    let mut timed = TimedInterpreter::new(Latencies::default());
    assert_eq!(timed.run(&mut hart, &mut memory, 100), (2, Err(Stop::Wait)));
    assert_eq!((timed.now, hart.pending_loads()), (2, 1 << 5 | 1 << 6));
    // The value that is needed first arrives first, but after the core has stalled for it.
    timed.deliver(&mut hart, 6, 20, 30);
    assert_eq!(timed.run(&mut hart, &mut memory, 100), (1, Err(Stop::Wait)));
    timed.deliver(&mut hart, 5, 2, 25);
    let (completed, result) = timed.run(&mut hart, &mut memory, 100);
    assert!(
        completed == 2 && result.is_err(),
        "behind the program nothing can be decoded"
    );
    // The first sum starts in cycle 30, the second in cycle 31.
    assert_eq!((hart.x(8), hart.x(31)), (42, 32));
}
