//! Instructions per second of one core: the functional engine, the timed one, and single steps.
//!
//! Prints one line per case. Rates are per second of processor time, where the system tells it. An argument selects cases by name.

#[path = "../tests/oracle/mod.rs"]
mod oracle;

use cohkit_riscv::{Extensions, Fast, Flat, Hart, Latencies, Op, Timed};
use oracle::{b_type, bits, i_type, r_type, s_type};
use std::time::Instant;

/// Processor time of this thread in seconds; wall-clock time where the system does not tell.
fn processor_seconds(begin: Instant) -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text
        .split_whitespace()
        .next()
        .and_then(|n| n.parse::<f64>().ok());
    nanoseconds.map_or(begin.elapsed().as_secs_f64(), |n| n / 1e9)
}

const CODE: u64 = 0x1000;
const ARRAY: u64 = 0x4000;

/// A loop of arithmetic: a generator of random numbers, whose bits are counted.
fn arithmetic() -> Vec<u32> {
    vec![
        r_type("mul", 5, 5, 6),
        i_type("addi", 5, 5, 1442),
        bits("srli", 7 << 7 | 5 << 15 | 33 << 20),
        r_type("xor", 7, 7, 5),
        bits("andi", 8 << 7 | 7 << 15 | 63 << 20),
        r_type("add", 9, 9, 8),
        bits("cpop", 10 << 7 | 7 << 15),
        r_type("add", 11, 11, 10),
        i_type("addi", 12, 12, -1),
        b_type("bne", 12, 0, -36),
    ]
}

/// Sorts 512 numbers, which are made before, by insertion; again and again.
fn sort() -> Vec<u32> {
    vec![
        // Fill: x5 random, x13 the place, x14 the end.
        i_type("addi", 13, 15, 0),
        r_type("mul", 5, 5, 6),
        i_type("addi", 5, 5, 1442),
        s_type("sd", 5, 13, 0),
        i_type("addi", 13, 13, 8),
        b_type("bltu", 13, 14, -16),
        // Insert each: x13 the place of the one, x16 where it may go.
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
        b_type("beq", 0, 0, -68),
    ]
}

/// A loop of floating-point arithmetic.
fn floats() -> Vec<u32> {
    vec![
        bits("fmul.d", 7 << 12 | 2 << 7 | 2 << 15 | 3 << 20),
        bits("fadd.d", 7 << 12 | 2 << 7 | 2 << 15 | 4 << 20),
        bits("fmadd.d", 7 << 12 | 5 << 7 | 2 << 15 | 3 << 20 | 4 << 27),
        i_type("addi", 12, 12, -1),
        b_type("bne", 12, 0, -16),
    ]
}

fn core(words: &[u32]) -> (Hart, Flat) {
    let mut memory = Flat::new(CODE, 0x8000);
    for (n, word) in words.iter().enumerate() {
        let place = memory
            .bytes_mut(CODE + 4 * n as u64, 4)
            .expect("it is there");
        place.copy_from_slice(&word.to_le_bytes());
    }
    let mut hart = Hart::new(0, Extensions::HOST);
    hart.pc = CODE;
    hart.set_x(5, 1);
    hart.set_x(6, 6_364_136_223_846_793_005);
    hart.set_x(12, u64::MAX);
    hart.set_x(14, ARRAY + 512 * 8);
    hart.set_x(15, ARRAY);
    hart.set_f(2, 1.0_f64.to_bits());
    hart.set_f(3, 0.999_f64.to_bits());
    hart.set_f(4, 0.125_f64.to_bits());
    (hart, memory)
}

/// Costs like those of small cores, so that the timed engine has something to wait for.
fn latencies() -> Latencies {
    let loads = [Op::Lb, Op::Lh, Op::Lw, Op::Ld, Op::Lbu, Op::Lhu, Op::Lwu];
    let mut latencies = Latencies::default()
        .with(&loads, 3, 1)
        .with(&[Op::Mul, Op::Mulw], 4, 1);
    latencies.taken = 2;
    latencies
}

fn main() {
    let chosen = std::env::args()
        .skip(1)
        .find(|word| !word.starts_with('-'))
        .unwrap_or_default();
    for (program, words) in [
        ("arithmetic", arithmetic()),
        ("sort", sort()),
        ("floats", floats()),
    ] {
        for engine in ["fast", "timed", "step"] {
            let name = format!("{engine} {program}");
            if !name.contains(&chosen) {
                continue;
            }
            let (mut hart, mut memory) = core(&words);
            let begin = Instant::now();
            let before = processor_seconds(begin);
            match engine {
                "fast" => Fast::default()
                    .run(&mut hart, &mut memory, 400_000_000)
                    .1
                    .expect("it goes on"),
                "timed" => Timed::new(latencies())
                    .run(&mut hart, &mut memory, 200_000_000)
                    .1
                    .expect("it goes on"),
                _ => (0..10_000_000).for_each(|_| hart.step(&mut memory).expect("it goes on")),
            }
            let rate = hart.csrs.instret as f64 / (processor_seconds(begin) - before) / 1e6;
            println!("{name:18} {rate:8.1} million instructions per second");
        }
    }
}
