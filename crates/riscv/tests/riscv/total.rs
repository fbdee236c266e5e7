//! Robustness: no instruction bits, register values, addresses or memory replies cause a panic.

use cohkit_riscv::{
    Amo, Cbo, Decoder, Extensions, Fence, FlatMemory, Hart, Memory, Mode, Prefetch, Reply, Size,
    Stop,
};

/// Next number of a pseudorandom sequence.
fn next(seed: &mut u64) -> u64 {
    *seed = seed
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    *seed ^ *seed >> 33
}

/// Memory with random replies.
struct RandomReplies(u64);

impl RandomReplies {
    /// Returns the value, or a random other reply.
    fn reply<T>(&mut self, value: T) -> Reply<T> {
        match next(&mut self.0) >> 20 & 7 {
            0 => Reply::Wait,
            1 => Reply::Fault,
            2 => Reply::Misaligned,
            3 => Reply::PageFault,
            4 => Reply::Later,
            _ => Reply::Done(value),
        }
    }
}

impl Memory for RandomReplies {
    const SPLIT: bool = true;

    fn fetch(&mut self, address: u64) -> Reply<u16> {
        let value = next(&mut self.0) as u16 ^ address as u16;
        self.reply(value)
    }
    fn load(&mut self, _address: u64, _size: Size, _destination: u8) -> Reply<u64> {
        let value = next(&mut self.0);
        self.reply(value)
    }
    fn store(&mut self, _address: u64, _size: Size, _value: u64) -> Reply<()> {
        self.reply(())
    }
    fn amo(&mut self, _address: u64, _amo: Amo, _destination: u8) -> Reply<u64> {
        let value = next(&mut self.0);
        self.reply(value)
    }
    fn fence(&mut self, _fence: Fence) -> Reply<()> {
        self.reply(())
    }
    fn fence_i(&mut self) -> Reply<()> {
        self.reply(())
    }
    fn cbo(&mut self, _address: u64, _op: Cbo) -> Reply<()> {
        self.reply(())
    }
    fn prefetch(&mut self, _address: u64, _op: Prefetch) {}
}

/// Steps with arbitrary register values. Returns the number of completed instructions.
fn step_randomly<M: Memory>(hart: &mut Hart, memory: &mut M, steps: u32, seed: &mut u64) -> u32 {
    let mut completed = 0;
    for _ in 0..steps {
        match hart.step(memory) {
            Ok(()) => completed += 1,
            Err(Stop::Wait) => {
                let pending_loads = hart.pending_loads();
                if pending_loads != 0 {
                    hart.deliver(pending_loads.trailing_zeros() as u8, next(seed));
                }
            }
            Err(Stop::Exception(exception)) => {
                hart.trap(exception);
                hart.csrs.mode = if next(seed) & 1 << 40 == 0 {
                    Mode::User
                } else {
                    Mode::Machine
                };
                hart.pc = next(seed) & !1;
                hart.set_x((next(seed) >> 50) as u8, next(seed));
            }
        }
        assert_eq!(hart.x(0), 0);
    }
    completed
}

/// Executes random instructions with a memory that faults, stalls or delays at random.
#[test]
fn core_survives_arbitrary_code_and_replies() {
    for (seed, extensions) in [(1, Extensions::HOST), (2, Extensions::NEAR_MEMORY)] {
        let mut seed = seed;
        let (mut hart, mut memory) = (Hart::new(0, extensions), RandomReplies(seed));
        let completed = step_randomly(&mut hart, &mut memory, 1_000_000, &mut seed);
        assert!(completed > 10_000, "{completed}");
    }
}

/// Decodes and disassembles all 16-bit words and random 32-bit ones, and executes random bytes.
#[test]
fn any_word_decodes_to_an_executable_or_no_instruction() {
    let decoder = Decoder::new(Extensions::HOST);
    let mut seed = 5;
    let random = (0..300_000)
        .map(|_| next(&mut seed) as u32)
        .collect::<Vec<_>>();
    let mut decoded = 0;
    for word in (0..=0xffff).chain(random) {
        let text = decoder.disassemble(word);
        decoded += u32::from(decoder.decode(word).is_some());
        assert!(!text.is_empty() && !text.ends_with(','));
        // At the end of memory, so that some instructions are truncated.
        let mut memory = FlatMemory::new(u64::MAX - 7, 7);
        memory
            .bytes_mut(u64::MAX - 7, 4)
            .expect("the range is in memory")
            .copy_from_slice(&word.to_le_bytes());
        let _ = memory.bytes(u64::MAX - 1, 5);
    }
    assert!(decoded > 60_000, "{decoded}");
    let mut hart = Hart::new(0, Extensions::HOST);
    let mut memory = FlatMemory::new(0, 1 << 16);
    for word in memory
        .bytes_mut(0, 1 << 16)
        .expect("the whole memory")
        .iter_mut()
    {
        *word = next(&mut seed) as u8;
    }
    for number in 1..32 {
        hart.set_x(number, next(&mut seed));
    }
    for _ in 0..300_000 {
        hart.pc &= 0xfffe;
        if let Err(Stop::Exception(_)) = hart.step(&mut memory) {
            hart.pc += 2;
            hart.set_x((next(&mut seed) >> 40) as u8, next(&mut seed) & 0xffff);
        }
    }
}

/// Reserved encodings are illegal. All other 16-bit encodings are instructions that binutils 2.40 disassembles, too.
#[test]
fn reserved_encodings_are_no_instructions() {
    let decoder = Decoder::new(Extensions::HOST);
    let reserved = [
        (0x0000, "c.addi4spn of zero, which all zeroes are"),
        (0x2001, "c.addiw to x0"),
        (0x6101, "c.addi16sp of zero"),
        (0x6281, "c.lui of zero"),
        (0x8000, "the fifth row of the first quadrant"),
        (
            0x9c41,
            "the seventh of the operations on two near registers",
        ),
        (0x4002, "c.lwsp to x0"),
        (0x6002, "c.ldsp to x0"),
        (0x8002, "c.jr to x0"),
        (0x0400_1013, "slli by 64"),
        (0x0200_101b, "slliw by 32"),
        (0x0000_5053, "a rounding mode of 5"),
        (0x0400_0053, "half precision"),
        (0x1010_202f, "lr.w with a second operand"),
        (0x0000_102f, "an atomic access to a half"),
        (0x0030_200f, "a block operation that there is not"),
        (0xffff_ffff, "all ones"),
    ];
    for (word, description) in reserved {
        assert_eq!(decoder.decode(word), None, "{description}");
    }
    let compressed = (0..=0xffff).filter(|word| word & 3 != 3 && decoder.decode(*word).is_some());
    assert_eq!(compressed.count(), 46_743);
}
