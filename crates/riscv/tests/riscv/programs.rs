//! Compiled programs run with Linux system calls as under QEMU, and with a C library by semihosting. Invalid files are
//! rejected.

use cohkit_testing::require;
use cohkit_testing::riscv_oracle;

use cohkit_riscv::elf::{self, Image};
use cohkit_riscv::system::{Errno, FilePosition, OpenMode, ServiceOutcome, System, World};
use cohkit_riscv::{
    Exception, Extensions, FastInterpreter, FlatMemory, Hart, Latencies, Op, Port, SharedMemory,
    Stop, TimedInterpreter,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// In-memory files.
#[derive(Default)]
struct MemoryFiles {
    /// Contents by name.
    files: BTreeMap<String, Vec<u8>>,
    /// Name and position of each open file, by descriptor.
    open: BTreeMap<u32, (String, usize)>,
    /// Bytes written to the standard output.
    output: Vec<u8>,
    /// Time of the last query, in nanoseconds since the start; each query adds a millisecond.
    now: u64,
}

impl World for MemoryFiles {
    fn open(&mut self, name: &str, mode: OpenMode) -> Result<u32, Errno> {
        if !mode.create && !self.files.contains_key(name) {
            return Err(Errno::NotFound);
        }
        let file = self.files.entry(name.to_string()).or_default();
        if mode.truncate {
            file.clear();
        }
        let number = (3..)
            .find(|number| !self.open.contains_key(number))
            .expect("a free file number");
        self.open.insert(number, (name.to_string(), 0));
        Ok(number)
    }

    fn close(&mut self, file: u32) -> Result<(), Errno> {
        self.open.remove(&file).map(|_| ()).ok_or(Errno::BadFile)
    }

    fn read(&mut self, file: u32, bytes: &mut [u8]) -> Result<usize, Errno> {
        let (name, position) = self.open.get_mut(&file).ok_or(Errno::BadFile)?;
        let rest = self.files[name].get(*position..).unwrap_or(&[]);
        let length = rest.len().min(bytes.len());
        bytes[..length].copy_from_slice(&rest[..length]);
        *position += length;
        Ok(length)
    }

    fn write(&mut self, file: u32, bytes: &[u8]) -> Result<usize, Errno> {
        if matches!(file, 1 | 2) {
            self.output.extend(bytes);
        } else {
            let (name, position) = self.open.get_mut(&file).ok_or(Errno::BadFile)?;
            let contents = self.files.get_mut(name).expect("an open file");
            contents.resize(contents.len().max(*position + bytes.len()), 0);
            contents[*position..*position + bytes.len()].copy_from_slice(bytes);
            *position += bytes.len();
        }
        Ok(bytes.len())
    }

    fn seek(&mut self, file: u32, place: FilePosition) -> Result<u64, Errno> {
        let (name, position) = self.open.get_mut(&file).ok_or(Errno::BadFile)?;
        let new_position = match place {
            FilePosition::Start(at) => at as i64,
            FilePosition::Current(offset) => *position as i64 + offset,
            FilePosition::End(offset) => self.files[name].len() as i64 + offset,
        };
        *position = usize::try_from(new_position).map_err(|_| Errno::Invalid)?;
        Ok(*position as u64)
    }

    fn now(&mut self) -> u64 {
        self.now += 1_000_000;
        1_700_000_000_000_000_000 + self.now
    }
}

/// Compiles a program of the directory of this file into `folder`.
fn compile(name: &str, folder: &Path, options: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/programs")
        .join(name);
    let program = folder.join("program");
    let machine_options = [
        "-O2",
        "-march=rv64imafdc",
        "-mabi=lp64d",
        "-mcmodel=medany",
        "-static",
    ];
    let mut gcc = Command::new("riscv64-unknown-elf-gcc");
    gcc.args(options)
        .args(machine_options)
        .arg("-o")
        .arg(&program)
        .arg(source);
    let output = gcc.output().expect("the command starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{stderr}\n{}",
        require::missing("riscv-gcc")
    );
    program
}

/// Runs a program to its end with one engine. Returns its exit code and its output.
fn run(
    image: &Image,
    bare: bool,
    memory: &mut FlatMemory,
    system: &mut System,
    mut engine: impl FnMut(&mut Hart, &mut FlatMemory) -> Result<(), Stop>,
) -> (i32, MemoryFiles) {
    for segment in &image.segments {
        let start = if bare {
            segment.load_address
        } else {
            segment.address
        };
        let destination = memory
            .bytes_mut(start, segment.bytes.len())
            .expect("the program fits in memory");
        destination.copy_from_slice(segment.bytes);
    }
    let mut hart = Hart::new(0, Extensions::HOST);
    let mut world = MemoryFiles::default();
    hart.pc = image.entry;
    hart.set_x(2, memory.end() - 64);
    while hart.csrs.instret < 100_000_000 {
        let Err(stop) = engine(&mut hart, memory) else {
            continue;
        };
        let Stop::Exception(exception) = stop else {
            panic!("{stop:?}");
        };
        match system.serve(exception, &mut hart, memory, &mut world) {
            ServiceOutcome::Done => {}
            ServiceOutcome::Exit(code) => return (code, world),
            ServiceOutcome::Exception(exception) => {
                panic!(
                    "{exception}, at {:#x} in {:?}",
                    hart.pc,
                    image.symbol_at(hart.pc)
                );
            }
        }
    }
    panic!("the program does not end");
}

/// Output and exit code on each engine are those under QEMU's user mode.
#[test]
fn linux_program_matches_qemu() {
    if !require::require("riscv-gcc") || !require::require("qemu") {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let options = ["-nostdlib", "-ffreestanding"];
    let program = compile("linux.c", folder.path(), &options);
    let mut qemu = Command::new("qemu-riscv64");
    let qemu_result = qemu
        .arg(&program)
        .current_dir(folder.path())
        .output()
        .expect("the command starts");
    let bytes = std::fs::read(&program).expect("the file can be read");
    let image = Image::read(&bytes).expect("a valid ELF program");
    assert_eq!(image.symbol_address("_start"), Some(image.entry));
    assert_eq!(image.symbol_at(image.entry + 4), Some(("_start", 4)));
    let run_with = |engine: &mut dyn FnMut(&mut Hart, &mut FlatMemory) -> Result<(), Stop>| {
        let mut memory = FlatMemory::new(0x1_0000, 0x40_0000);
        let mut system = System::new(0x20_0000..0x30_0000, 0x30_0000..0x41_0000, "program");
        let (code, world) = run(&image, false, &mut memory, &mut system, engine);
        assert_eq!(world.files["numbers.txt"], b"some text\n");
        (
            Some(code),
            String::from_utf8(world.output).expect("UTF-8 output"),
        )
    };
    let qemu_result = (
        qemu_result.status.code(),
        String::from_utf8(qemu_result.stdout).expect("UTF-8 output"),
    );
    assert_eq!(qemu_result.0, Some(7));
    let mut fast = FastInterpreter::default();
    assert_eq!(
        run_with(&mut |hart, memory| fast.run(hart, memory, 1 << 20).1),
        qemu_result
    );
    let mut timed = TimedInterpreter::new(Latencies::default());
    let timed_result =
        run_with(&mut |hart, memory| timed.run(hart, memory, timed.now + (1 << 20)).1);
    assert_eq!(timed_result, qemu_result);
}

/// A program with picolibc gets its arguments, writes and reads a file, and leaves none open.
#[test]
fn c_library_program_uses_files_by_semihosting() {
    if !require::require("riscv-gcc") {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let linker_symbols = "-Wl,--defsym=__flash=0x80000000,--defsym=__flash_size=0x100000,--defsym=__ram=0x80100000,--defsym=__ram_size=0x300000";
    let options = [
        "--specs=picolibc.specs",
        "--crt0=semihost",
        "--oslib=semihost",
        linker_symbols,
    ];
    let program = compile("hosted.c", folder.path(), &options);
    let bytes = std::fs::read(&program).expect("the file can be read");
    let image = Image::read(&bytes).expect("a valid ELF program");
    let mut memory = FlatMemory::new(0x8000_0000, 0x40_0000);
    let mut system = System::new(
        0x8020_0000..0x8030_0000,
        0x8030_0000..0x8040_0000,
        "one two",
    );
    let mut fast = FastInterpreter::default();
    let (code, world) = run(&image, true, &mut memory, &mut system, |hart, memory| {
        fast.run(hart, memory, 1 << 20).1
    });
    let expected = "\
3 arguments: program-name one two
left  | 0.667|0000beef|-1234567890123456789
sqrt 1.4142135623730951, sin 0.841470984808, third 0.333333343
100 words, the first word0
the last word99
missing: 1
";
    assert_eq!(
        (
            String::from_utf8(world.output)
                .expect("UTF-8 output")
                .as_str(),
            code
        ),
        (expected, 5)
    );
    assert_eq!(world.files["words.txt"].len(), 690);
    assert!(world.open.is_empty());
}

/// Each case has a file and a part of the message.
#[test]
fn files_that_are_no_programs_are_rejected_with_the_reason() {
    let mut program = riscv_oracle::Program {
        data_at: riscv_oracle::START + 0x1000,
        ..riscv_oracle::Program::default()
    };
    program.finish(program.data_at, 0);
    let valid = program.elf();
    assert_eq!(
        Image::read(&valid)
            .expect("a valid ELF program")
            .segments
            .len(),
        1
    );
    let with_byte = |offset: usize, byte: u8| {
        let mut elf = valid.clone();
        elf[offset] = byte;
        elf
    };
    for (file, reason) in [
        (Vec::new(), "cannot read this as a 64-bit ELF file"),
        (
            b"#!/bin/sh".to_vec(),
            "cannot read this as a 64-bit ELF file",
        ),
        (with_byte(4, 1), "is 32-bit, but the core is 64-bit"),
        (with_byte(18, 62), "another machine"),
        (with_byte(16, 3), "-static"),
        (with_byte(64, 3), "dynamic linker"),
        (with_byte(64, 4), "this program has no loadable segments"),
        (with_byte(64 + 41, 8), "does not fit"),
        (with_byte(64 + 32 + 6, 1), "cut off"),
    ] {
        let error = Image::read(&file).map(|_| ()).expect_err(reason);
        assert!(error.contains(reason), "{error}");
    }
}

/// Corrupted line tables must not cause a crash.
#[test]
fn line_tables_are_read_and_corrupt_ones_do_not_crash() {
    if !require::require("riscv-gcc") {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let options = ["-g", "-nostdlib", "-ffreestanding"];
    let program = compile("linux.c", folder.path(), &options);
    let valid = std::fs::read(&program).expect("the file can be read");
    let source = include_str!("../programs/linux.c");
    let address = Image::read(&valid).expect("a valid ELF program");
    let address = address.symbol_address("_start").expect("the symbol exists");
    let (file, line) = elf::line(&valid, address).expect("the address has line information");
    assert_eq!(file, "linux.c");
    let line = source
        .lines()
        .nth(line as usize - 1)
        .expect("the source has this line");
    assert!(line.contains("_start"), "{line}");
    assert_eq!(elf::line(&valid, address - 0x1000), None);
    let mut seed = 1_u64;
    let mut below = |limit: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005);
        seed = seed.wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % limit
    };
    let mut missing_lines = 0;
    for _ in 0..5000 {
        let mut mutated = valid.clone();
        for _ in 0..1 + below(8) {
            let offset = below(mutated.len());
            mutated[offset] = [0, 1, 127, 128, 255, below(256) as u8][below(6)];
        }
        mutated.truncate(mutated.len() - below(8) / 7 * below(1000));
        let line_found = elf::line(&mutated, address + below(64) as u64);
        missing_lines += usize::from(line_found.is_none());
    }
    assert!(
        (1..5000).contains(&missing_lines),
        "{missing_lines} tell no line"
    );
}

/// Round-robin execution, for every number of cores and several turn lengths.
#[test]
fn several_cores_count_together_in_shared_memory() {
    if !require::require("riscv-gcc") {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = compile("cores.c", folder.path(), &["-nostdlib", "-ffreestanding"]);
    let bytes = std::fs::read(&program).expect("the file can be read");
    let image = Image::read(&bytes).expect("a valid ELF program");
    for (cores, turn) in [(1, 1000), (2, 1), (3, 7), (4, 3), (4, 64), (8, 1000)] {
        let functional_code = count_together(&image, cores, |_| {
            let mut fast = FastInterpreter::default();
            move |hart: &mut Hart, port: &mut Port| fast.run(hart, port, turn).1
        });
        let timed_code = count_together(&image, cores, |core| {
            let loads = [Op::Ld, Op::Lw, Op::Lr];
            let mut timed =
                TimedInterpreter::new(Latencies::default().with(&loads, 2 + core as u16, 1));
            move |hart: &mut Hart, port: &mut Port| timed.run(hart, port, timed.now + turn).1
        });
        assert_eq!(
            (functional_code, timed_code),
            (0, 0),
            "{cores} cores, {turn} at a time"
        );
    }
}

/// Runs a program on several cores until each has exited. Returns the OR of their exit codes.
fn count_together<E: FnMut(&mut Hart, &mut Port) -> Result<(), Stop>>(
    image: &Image,
    cores: usize,
    engine: impl Fn(usize) -> E,
) -> u64 {
    let mut memory = FlatMemory::new(0x1_0000, 0x4_0000);
    for segment in &image.segments {
        let destination = memory.bytes_mut(segment.address, segment.bytes.len());
        destination
            .expect("the segment is within memory")
            .copy_from_slice(segment.bytes);
    }
    let mut shared = SharedMemory::new(memory, cores);
    let mut running: Vec<_> = (0..cores)
        .map(|core| {
            let mut hart = Hart::new(core as u64, Extensions::HOST);
            hart.pc = image.entry;
            hart.set_x(10, core as u64);
            hart.set_x(11, cores as u64);
            (core, hart, engine(core))
        })
        .collect();
    let mut codes = 0;
    for _ in 0..10_000_000 {
        running.retain_mut(|(core, hart, engine)| {
            let mut port = shared.port(*core).expect("the core exists");
            match engine(hart, &mut port) {
                Ok(()) => true,
                Err(Stop::Exception(Exception::MachineCall)) if hart.x(17) == 93 => {
                    codes |= hart.x(10);
                    false
                }
                Err(stop) => panic!("core {core} at {:#x}: {stop:?}", hart.pc),
            }
        });
        if running.is_empty() {
            return codes;
        }
    }
    panic!("the cores do not end");
}
