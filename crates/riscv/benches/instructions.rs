//! Instructions per second of one core: the functional engine, the timed one, and single steps.
//!
//! Prints one line per case. Rates are per second of processor time, if the system reports it. An argument selects
//! cases by name.

use cohkit_testing::{processor_time, riscv_oracle};

use cohkit_riscv::elf::Image;
use cohkit_riscv::{
    Exception, Extensions, FastInterpreter, FlatMemory, Hart, Latencies, Stop, TimedInterpreter,
};
use processor_time::processor_seconds;
use riscv_oracle::{b_type, encode, i_type, r_type, s_type, Program};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Engine that executes a program.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Engine {
    /// [`FastInterpreter`].
    Fast,
    /// [`TimedInterpreter`], with the latencies of a small core.
    Timed,
    /// [`Hart::step`].
    Step,
}

impl Engine {
    /// Name of a case on this engine, by which an argument selects it.
    fn case_name(self, case: &str) -> String {
        let engine = match self {
            Engine::Fast => "fast",
            Engine::Timed => "timed",
            Engine::Step => "step",
        };
        format!("{engine} {case}")
    }
}

/// Address of the data array.
const ARRAY: u64 = 0x2_0000;

/// An arithmetic loop: a random number generator, and a population count of its numbers.
fn arithmetic() -> Vec<u32> {
    vec![
        r_type("mul", 5, 5, 6),
        i_type("addi", 5, 5, 1442),
        encode("srli", 7 << 7 | 5 << 15 | 33 << 20),
        r_type("xor", 7, 7, 5),
        encode("andi", 8 << 7 | 7 << 15 | 63 << 20),
        r_type("add", 9, 9, 8),
        encode("cpop", 10 << 7 | 7 << 15),
        r_type("add", 11, 11, 10),
        i_type("addi", 12, 12, -1),
        b_type("bne", 12, 0, -36),
    ]
}

/// Insertion sort of 512 generated numbers, which fit in any first-level cache.
fn sort() -> Vec<u32> {
    vec![
        // Fill: x5 random number, x13 address, x14 end.
        i_type("addi", 13, 15, 0),
        r_type("mul", 5, 5, 6),
        i_type("addi", 5, 5, 1442),
        s_type("sd", 5, 13, 0),
        i_type("addi", 13, 13, 8),
        b_type("bltu", 13, 14, -16),
        // Insert each number: x13 its address, x16 the insertion point.
        i_type("addi", 13, 15, 8),
        i_type("ld", 17, 13, 0),
        i_type("addi", 16, 13, 0),
        i_type("ld", 18, 16, -8),
        b_type("bge", 17, 18, 16),
        s_type("sd", 18, 16, 0),
        i_type("addi", 16, 16, -8),
        b_type("bltu", 15, 16, -16),
        s_type("sd", 17, 16, 0),
        i_type("addi", 13, 13, 8),
        b_type("bltu", 13, 14, -36),
        i_type("addi", 12, 12, -1),
        b_type("bne", 12, 0, -72),
    ]
}

/// A loop of multiplications, additions and fused multiply-adds of doubles.
fn floats() -> Vec<u32> {
    vec![
        encode("fmul.d", 7 << 12 | 2 << 7 | 2 << 15 | 3 << 20),
        encode("fadd.d", 7 << 12 | 2 << 7 | 2 << 15 | 4 << 20),
        encode("fmadd.d", 7 << 12 | 5 << 7 | 2 << 15 | 3 << 20 | 4 << 27),
        i_type("addi", 12, 12, -1),
        b_type("bne", 12, 0, -16),
    ]
}

/// Completes the body of a loop to a program of `times` iterations: registers and data that the bodies above use.
fn program(words: &[u32], times: u64) -> Program {
    let mut program = Program {
        data_at: ARRAY,
        ..Program::default()
    };
    program.data.resize(512 * 8 + 32, 0);
    let numbers = [
        6_364_136_223_846_793_005,
        1.0_f64.to_bits(),
        0.999_f64.to_bits(),
        0.125_f64.to_bits(),
    ];
    for (bytes, number) in program.data[512 * 8..].chunks_mut(8).zip(numbers) {
        bytes.copy_from_slice(&number.to_le_bytes());
    }
    for (register, number) in [(5, 1), (12, times), (14, ARRAY + 512 * 8), (15, ARRAY)] {
        program.li(register, number);
    }
    program.push(i_type("ld", 6, 14, 0));
    for number in 2..5 {
        program.push(i_type("fld", number, 14, number as i32 * 8 - 8));
    }
    for &word in words {
        program.push(word);
    }
    program.finish(ARRAY, 0);
    program
}

/// Measures each program on each engine. An argument selects those whose name, such as `fast sort`, contains it.
fn main() {
    let filter = std::env::args()
        .skip(1)
        .find(|word| !word.starts_with('-'))
        .unwrap_or_default();
    let programs = [
        ("arithmetic", arithmetic(), 20_000_000),
        ("sort", sort(), 600),
        ("floats", floats(), 20_000_000),
    ];
    for (case, words, times) in programs {
        for engine in [Engine::Fast, Engine::Timed, Engine::Step] {
            let name = engine.case_name(case);
            if !name.contains(&filter) {
                continue;
            }
            // Single steps are slow, so they run a tenth of the iterations.
            let times = if engine == Engine::Step {
                times / 10
            } else {
                times
            };
            let program = program(&words, times);
            let (mut fast, mut timed) = (
                FastInterpreter::default(),
                TimedInterpreter::new(Latencies::small()),
            );
            let begin = Instant::now();
            let start_seconds = processor_seconds(begin);
            let mut executed = 0;
            let mut run = |hart: &mut Hart, memory: &mut FlatMemory| {
                let result = match engine {
                    Engine::Fast => fast.run(hart, memory, u64::MAX).1,
                    Engine::Timed => timed.run(hart, memory, u64::MAX).1,
                    Engine::Step => hart.step(memory),
                };
                executed = hart.csrs.instret;
                result
            };
            program.output_by(&mut run);
            let seconds = processor_seconds(begin) - start_seconds;
            let rate = executed as f64 / seconds / 1e6;
            println!("{name:24} {rate:8.1} million instructions per second");
        }
    }
    for (case, options) in [
        ("like Dhrystone", &["-DROUNDS=1000000"][..]),
        ("compiled sort", &["-DSORT", "-DROUNDS=500"]),
    ] {
        measure_compiled(case, options, &filter);
    }
}

/// Measures a compiled program, also under QEMU, if compiler and emulator are installed.
fn measure_compiled(case: &str, options: &[&str], filter: &str) {
    let engines = [Engine::Fast, Engine::Timed].into_iter();
    let selected: Vec<Engine> = engines
        .filter(|engine| engine.case_name(case).contains(filter))
        .collect();
    if selected.is_empty() {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("program");
    if !compile(options, &file) {
        return println!("{case}: not measured, riscv64-unknown-elf-gcc is missing");
    }
    let bytes = std::fs::read(&file).expect("the file can be read");
    let image = Image::read(&bytes).expect("a valid ELF program");
    let mut crate_result = None;
    for engine in selected {
        let name = engine.case_name(case);
        let (executed, seconds) = measure(&image, engine);
        let rate = executed as f64 / seconds / 1e6;
        println!("{name:24} {rate:8.1} million instructions per second");
        if engine == Engine::Fast {
            crate_result = Some((executed, rate));
        }
    }
    let Some((executed, rate)) = crate_result else {
        return;
    };
    // Includes the emulator's start-up time of some milliseconds.
    let begin = Instant::now();
    match Command::new("qemu-riscv64").arg(&file).status() {
        Ok(status) => assert!(status.success(), "{case} ends with {status} under QEMU"),
        Err(_) => return println!("{case}: not compared, qemu-riscv64 is missing"),
    }
    let qemu_rate = executed as f64 / begin.elapsed().as_secs_f64() / 1e6;
    let (name, ratio) = (format!("QEMU {case}"), rate / qemu_rate);
    println!(
        "{name:24} {qemu_rate:8.1} million instructions per second, ours are {ratio:.2} of it"
    );
}

/// Compiles `compiled_programs.c` with these options. Returns false if the compiler is missing.
fn compile(options: &[&str], file: &Path) -> bool {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = crate_folder.join("benches/compiled_programs.c");
    let machine_options = [
        "-O2",
        "-march=rv64gc",
        "-mabi=lp64d",
        "-mcmodel=medany",
        "-static",
    ];
    let mut gcc = Command::new("riscv64-unknown-elf-gcc");
    gcc.args(machine_options).args([
        "-nostdlib",
        "-ffreestanding",
        "-fno-tree-loop-distribute-patterns",
    ]);
    gcc.arg("-I").arg(crate_folder.join("../.."));
    gcc.args(options).arg("-o").arg(file).arg(source);
    match gcc.status() {
        Ok(status) if status.success() => true,
        Ok(status) => panic!("the compiler ends with {status}"),
        Err(_) => false,
    }
}

/// Runs a program to its end. Returns its instruction count and its run time in seconds.
fn measure(image: &Image, engine: Engine) -> (u64, f64) {
    let mut memory = FlatMemory::new(0x1_0000, 0x10_0000);
    for segment in &image.segments {
        let destination = memory.bytes_mut(segment.address, segment.bytes.len());
        destination
            .expect("the segment is within memory")
            .copy_from_slice(segment.bytes);
    }
    let mut hart = Hart::new(0, Extensions::HOST);
    hart.pc = image.entry;
    hart.set_x(2, memory.end() - 64);
    let (mut fast, mut timed) = (
        FastInterpreter::default(),
        TimedInterpreter::new(Latencies::small()),
    );
    let begin = Instant::now();
    let start_seconds = processor_seconds(begin);
    let result = match engine {
        Engine::Fast => fast.run(&mut hart, &mut memory, u64::MAX).1,
        Engine::Timed => timed.run(&mut hart, &mut memory, u64::MAX).1,
        Engine::Step => unreachable!("compiled programs run on the other engines"),
    };
    let seconds = processor_seconds(begin) - start_seconds;
    let has_exited = result == Err(Stop::Exception(Exception::MachineCall));
    assert!(
        has_exited && hart.x(17) == 93 && hart.x(10) == 0,
        "{result:?} at {:#x}",
        hart.pc
    );
    (hart.csrs.instret, seconds)
}
