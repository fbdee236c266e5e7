//! Compares random programs under QEMU's user mode (`qemu-riscv64`) and this crate: `cargo run --release -p
//! cohkit-riscv --example agree_with_qemu -- --seed 1 --count 1000000`.

use cohkit_riscv::{Decoder, Extensions};
use cohkit_testing::riscv_oracle;

/// Compares `--count` programs of `--length` instructions each. With `--show`, first prints the program of the first
/// seed.
fn main() -> std::process::ExitCode {
    let (mut seed, mut count, mut length, mut show) = (0, 1000, 300, false);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || words.next().and_then(|word| word.parse::<u64>().ok());
        let parsed = match word.as_str() {
            "--seed" => number().map(|n| seed = n),
            "--count" => number().map(|n| count = n),
            "--length" => number().map(|n| length = n),
            "--show" => {
                show = true;
                Some(())
            }
            _ => None,
        };
        if parsed.is_none() {
            eprintln!(
                "error: `{word}` is no option, or lacks a number\n  \
                 help: agree_with_qemu [--seed N] [--count N] [--length N] [--show]"
            );
            return 2.into();
        }
    }
    if show {
        print_program(seed, length as usize);
    }
    // One file holds a hundred programs, to amortise the start-up time of QEMU.
    let (mut compared, mut differing_files) = (0, 0);
    while compared < count {
        let batch = (count - compared).min(100);
        if let Err(difference) =
            riscv_oracle::random::compare(seed + compared, batch as usize, length as usize)
        {
            println!("{difference}");
            differing_files += 1;
        }
        compared += batch;
    }
    println!(
        "{{\"programs\": {count}, \"instructions\": {}, \"files_that_differ\": {differing_files}}}",
        count * length
    );
    u8::from(differing_files > 0).into()
}

/// Disassembles the random program of a seed, with its addresses.
fn print_program(seed: u64, length: usize) {
    /// Bytes of the ELF headers, which precede the code in memory.
    const HEADER_BYTES: usize = 120;
    let decoder = Decoder::new(Extensions::HOST);
    let program = riscv_oracle::random::programs(seed, 1, length);
    let mut offset = 0;
    while offset + 2 <= program.code.len() {
        let half = |offset: usize| {
            let bytes = program.code.get(offset..offset + 2);
            bytes.map_or(0, |bytes| {
                u32::from(u16::from_le_bytes([bytes[0], bytes[1]]))
            })
        };
        let word = half(offset) | half(offset + 2) << 16;
        println!(
            "{:#x}: {}",
            riscv_oracle::START as usize + HEADER_BYTES + offset,
            decoder.disassemble(word)
        );
        // The lowest two bits of a 32-bit instruction are ones.
        offset += if word & 3 == 3 { 4 } else { 2 };
    }
}
