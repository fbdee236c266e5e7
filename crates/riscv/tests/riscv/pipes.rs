//! Pipes of `nearmemory/pipe.h` between two cores without cache coherence. Compiled programs lose, repeat and corrupt
//! no message, whatever lines their caches evict. Each seeded fault of the library is detected.

use cohkit_testing::require;

use cohkit_riscv::elf::Image;
use cohkit_riscv::{
    Amo, Cbo, Exception, Extensions, FastInterpreter, Fence, FlatMemory, Hart, Memory, Prefetch,
    Reply, Size, Stop,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Size of a cache line, in bytes.
const LINE: u64 = 128;
/// Cached far memory. Registers start at 0x20_0000 and are not cached.
const FAR: std::ops::Range<u64> = 0x10_0000..0x20_0000;

/// Linear congruential generator, with its state.
struct Random(u64);

impl Random {
    /// Returns a number from 0 to `limit - 1`.
    fn below(&mut self, limit: u64) -> u64 {
        let step = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = step.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Memory behind one private cache per core. A cache keeps its copies until it evicts them, regardless of other stores.
struct NonCoherentMemory {
    memory: FlatMemory,
    /// Per core: cached lines by address, each with its dirty flag.
    caches: [BTreeMap<u64, ([u8; LINE as usize], bool)>; 2],
    /// True if lines are evicted at random.
    evicts: bool,
    /// Generator for the choice of evicted lines and of the cores' turns.
    random: Random,
}

impl NonCoherentMemory {
    /// Writes a line of a core's cache back if it is dirty. Keeps a clean copy, or removes it.
    fn drop_line(&mut self, core: usize, line: u64, keeps_copy: bool) {
        let Some((bytes, dirty)) = self.caches[core].remove(&line) else {
            return;
        };
        if dirty {
            let line_bytes = self.memory.bytes_mut(line, LINE as usize);
            line_bytes
                .expect("the line was fetched from memory")
                .copy_from_slice(&bytes);
        }
        if keeps_copy {
            self.caches[core].insert(line, (bytes, false));
        }
    }

    /// Bytes of an access in a core's cache; `None` if the access is not within one line of far memory.
    fn cached(
        &mut self,
        core: usize,
        address: u64,
        size: Size,
        makes_dirty: bool,
    ) -> Option<&mut [u8]> {
        let cache = &mut self.caches[core];
        if self.evicts && !cache.is_empty() && self.random.below(4) == 0 {
            let victim = self.random.below(cache.len() as u64) as usize;
            let victim = *cache.keys().nth(victim).expect("a cached line");
            self.drop_line(core, victim, false);
        }
        let (line, offset) = (address & !(LINE - 1), (address & (LINE - 1)) as usize);
        let memory = &self.memory;
        let (bytes, dirty) = self.caches[core].entry(line).or_insert_with(|| {
            let bytes = memory.bytes(line, LINE as usize);
            let bytes = bytes.expect("the line is in far memory");
            (bytes.try_into().expect("a whole line"), false)
        });
        *dirty |= makes_dirty;
        bytes.get_mut(offset..offset + size as usize)
    }
}

/// Far memory as seen by the core with this index.
struct CorePort<'a>(&'a mut NonCoherentMemory, usize);

impl Memory for CorePort<'_> {
    fn fetch(&mut self, address: u64) -> Reply<u16> {
        self.0.memory.fetch(address)
    }

    fn load(&mut self, address: u64, size: Size, destination: u8) -> Reply<u64> {
        if !FAR.contains(&address) {
            return self.0.memory.load(address, size, destination);
        }
        let Some(bytes) = self.0.cached(self.1, address, size, false) else {
            return Reply::Misaligned;
        };
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        Reply::Done(u64::from_le_bytes(word))
    }

    fn store(&mut self, address: u64, size: Size, value: u64) -> Reply<()> {
        if !FAR.contains(&address) {
            return self.0.memory.store(address, size, value);
        }
        let Some(bytes) = self.0.cached(self.1, address, size, true) else {
            return Reply::Misaligned;
        };
        let length = bytes.len();
        bytes.copy_from_slice(&value.to_le_bytes()[..length]);
        Reply::Done(())
    }

    fn amo(&mut self, _address: u64, _amo: Amo, _destination: u8) -> Reply<u64> {
        Reply::Fault
    }

    fn fence(&mut self, _fence: Fence) -> Reply<()> {
        Reply::Done(())
    }

    fn fence_i(&mut self) -> Reply<()> {
        Reply::Done(())
    }

    fn cbo(&mut self, address: u64, op: Cbo) -> Reply<()> {
        let line = address & !(LINE - 1);
        match op {
            Cbo::Invalidate => {
                self.0.caches[self.1].remove(&line);
            }
            Cbo::Clean | Cbo::Flush => self.0.drop_line(self.1, line, op == Cbo::Clean),
        }
        Reply::Done(())
    }

    fn prefetch(&mut self, _address: u64, _op: Prefetch) {}
}

/// Compiles the program with the library, in which `original` is replaced by `mutated`; an empty `original` changes
/// nothing.
fn compile(folder: &Path, original: &str, mutated: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let library =
        std::fs::read_to_string(root.join("nearmemory/pipe.h")).expect("the file can be read");
    assert!(
        original.is_empty() || library.matches(original).count() == 1,
        "{original}"
    );
    let library = if original.is_empty() {
        library
    } else {
        library.replace(original, mutated)
    };
    std::fs::create_dir_all(folder.join("nearmemory")).expect("the folder can be created");
    std::fs::write(folder.join("nearmemory/pipe.h"), library).expect("the file can be written");
    let program = folder.join("program");
    let machine_options = [
        "-march=rv64imfc",
        "-mabi=lp64f",
        "-mcmodel=medany",
        "-static",
    ];
    let output = Command::new("riscv64-unknown-elf-gcc")
        .args([
            "-O2",
            "-Wall",
            "-Werror",
            "-nostdlib",
            "-ffreestanding",
            "-I",
        ])
        .arg(folder)
        .args(machine_options)
        .arg("-o")
        .arg(&program)
        .arg(root.join("crates/riscv/tests/programs/pipes.c"))
        .output()
        .expect("the command starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{stderr}\n{}",
        require::missing("riscv-gcc")
    );
    program
}

/// Arguments of the program.
#[derive(Clone, Copy, Debug)]
struct PipeArguments {
    /// Kind of pipe: `BATCHES`, `POLLED` or `REGISTERS`.
    kind: u64,
    /// Number of words to send.
    words: u64,
    /// Number of lines of the pipe.
    lines: u64,
    evicts: bool,
    /// Seed of evictions and turns; also selects the maximum length of a turn.
    seed: u64,
}

/// Kinds of pipes, by their numbers in pipes.c.
const BATCHES: u64 = 0;
const POLLED: u64 = 1;
const REGISTERS: u64 = 2;

/// Alternates between the cores, each for a random number of instructions. Returns the receiver's exit code, or `None`
/// if the programs do not end.
fn run(image: &Image, arguments: PipeArguments) -> Option<u64> {
    let mut memory = FlatMemory::new(0x1_0000, 0x20_0000);
    for segment in &image.segments {
        let destination = memory.bytes_mut(segment.address, segment.bytes.len());
        destination
            .expect("the segment is within memory")
            .copy_from_slice(segment.bytes);
    }
    let mut far = NonCoherentMemory {
        memory,
        caches: Default::default(),
        evicts: arguments.evicts,
        random: Random(arguments.seed),
    };
    let mut cores = [0, 1].map(|core| {
        let mut hart = Hart::new(core, Extensions::NEAR_MEMORY);
        hart.pc = image.entry;
        for (register, value) in [
            (10, core),
            (11, arguments.kind),
            (12, arguments.words),
            (13, arguments.lines),
        ] {
            hart.set_x(register, value);
        }
        (hart, FastInterpreter::default(), None)
    });
    let max_turn = [3, 40, 400][arguments.seed as usize % 3];
    let max_instructions = 100_000 + 2000 * arguments.words;
    while cores
        .iter()
        .map(|(hart, ..)| hart.csrs.instret)
        .sum::<u64>()
        < max_instructions
    {
        for (core, (hart, fast, exit_code)) in cores.iter_mut().enumerate() {
            let turn = 1 + far.random.below(max_turn);
            if exit_code.is_some() {
                continue;
            }
            match fast.run(hart, &mut CorePort(&mut far, core), turn).1 {
                Ok(()) => {}
                Err(Stop::Exception(Exception::MachineCall)) => *exit_code = Some(hart.x(10)),
                Err(stop) => panic!("{arguments:?}: core {core} at {:#x}: {stop:?}", hart.pc),
            }
        }
        if let [(_, _, Some(_)), (_, _, Some(code))] = cores {
            return Some(code);
        }
    }
    None
}

/// Every kind of pipe delivers all words once and in order, with and without evictions. `COHKIT_WORDS` sets the number
/// of words per pipe.
#[test]
fn pipes_deliver_once_under_evictions() {
    if !require::require("riscv-gcc") {
        return;
    }
    let words = std::env::var("COHKIT_WORDS").map(|text| text.parse().expect("a number"));
    let words = words.unwrap_or(1000);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let bytes = std::fs::read(compile(folder.path(), "", "")).expect("the file can be read");
    let image = Image::read(&bytes).expect("a valid ELF program");
    for kind in [BATCHES, POLLED, REGISTERS] {
        for lines in [1, 2, 8] {
            for (seed, evicts) in [(0, false), (1, true), (2, true), (3, true)] {
                let arguments = PipeArguments {
                    kind,
                    words,
                    lines,
                    evicts,
                    seed: seed + 3 * lines,
                };
                assert_eq!(run(&image, arguments), Some(0), "{arguments:?}");
            }
        }
    }
    let empty_stream = PipeArguments {
        kind: BATCHES,
        words: 0,
        lines: 2,
        evicts: true,
        seed: 1,
    };
    assert_eq!(
        run(&image, empty_stream),
        Some(0),
        "a stream that ends at once"
    );
}

/// A seeded fault of the library, with a kind of pipe and an eviction mode that detect it.
struct PipeFault {
    description: &'static str,
    /// Text of the library that is replaced.
    original: String,
    /// Replacement with the fault.
    mutated: String,
    /// Kind of pipe: `BATCHES`, `POLLED` or `REGISTERS`.
    kind: u64,
    evicts: bool,
}

impl PipeFault {
    /// Creates a fault that batches detect without evictions.
    fn new(description: &'static str, original: &str, mutated: &str) -> PipeFault {
        PipeFault {
            description,
            original: original.to_string(),
            mutated: mutated.to_string(),
            kind: BATCHES,
            evicts: false,
        }
    }
}

/// Each fault makes a run fail for one of eight seeds: the test above is sensitive to the library's flushes and order.
#[test]
fn cache_management_faults_are_detected() {
    if !require::require("riscv-gcc") {
        return;
    }
    let tag = "  nm_order();\n  line->tag = sender->sent << 8 | count;\n";
    let words = "  for (uint64_t i = 0; i < count; i++) line->words[i] = words[i];\n";
    let faults = [
        PipeFault {
            evicts: true,
            ..PipeFault::new(
                "the sender writes the tag before the words",
                &[words, tag].concat(),
                &[tag, words].concat(),
            )
        },
        PipeFault::new(
            "the sender does not flush a sent line",
            "count;\n  nm_flush(line);",
            "count;",
        ),
        PipeFault::new(
            "the receiver polls a stale copy of the line",
            "{\n    nm_flush(line);",
            "{",
        ),
        PipeFault::new(
            "the receiver does not flush the count of received lines",
            "++receiver->received;\n  nm_flush(taken);",
            "++receiver->received;",
        ),
        PipeFault::new(
            "the sender polls a stale copy of that count",
            "nm_flush(taken);\n  sender",
            "sender",
        ),
        PipeFault::new(
            "the sender overwrites a line that was not received",
            "if (sender->sent - sender->taken < sender->lines) return 1;",
            "return 1;",
        ),
        PipeFault {
            kind: REGISTERS,
            ..PipeFault::new(
                "the sender overwrites a register that was not received",
                "if (registers->flag != NM_TAKEN) return 0;",
                "",
            )
        },
    ];
    for fault in faults {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let program = compile(folder.path(), &fault.original, &fault.mutated);
        let bytes = std::fs::read(program).expect("the file can be read");
        let image = Image::read(&bytes).expect("a valid ELF program");
        let is_detected = (0..8).any(|seed| {
            let arguments = PipeArguments {
                kind: fault.kind,
                words: 1000,
                lines: 2,
                evicts: fault.evicts,
                seed,
            };
            run(&image, arguments) != Some(0)
        });
        assert!(is_detected, "not detected: {}", fault.description);
    }
}
