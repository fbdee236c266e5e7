//! Compares random programs under QEMU and this crate: `agree --seed 1 --count 1000000`.

#[path = "../tests/oracle/mod.rs"]
mod oracle;

use cohkit_riscv::{Decoder, Extensions};

fn main() -> std::process::ExitCode {
    let (mut seed, mut count, mut length, mut show) = (0, 1000, 300, false);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || words.next().and_then(|word| word.parse::<u64>().ok());
        let set = match word.as_str() {
            "--seed" => number().map(|n| seed = n),
            "--count" => number().map(|n| count = n),
            "--length" => number().map(|n| length = n),
            "--show" => {
                show = true;
                Some(())
            }
            _ => None,
        };
        if set.is_none() {
            eprintln!(
                "error: `{word}`\n  help: agree [--seed N] [--count N] [--length N] [--show]"
            );
            return 2.into();
        }
    }
    if show {
        let decoder = Decoder::new(Extensions::HOST);
        let program = oracle::random::programs(seed, 1, length as usize);
        let mut at = 0;
        while at + 2 <= program.code.len() {
            let half = |at: usize| {
                program
                    .code
                    .get(at..at + 2)
                    .map_or(0, |b| u32::from(u16::from_le_bytes([b[0], b[1]])))
            };
            let word = half(at) | half(at + 2) << 16;
            println!(
                "{:#x}: {}",
                oracle::START as usize + 120 + at,
                decoder.text(word)
            );
            at += if word & 3 == 3 { 4 } else { 2 };
        }
    }
    // One file holds a hundred programs, to amortise the start-up time of QEMU.
    let (mut done, mut bad) = (0, 0);
    while done < count {
        let some = (count - done).min(100);
        if let Err(what) = oracle::random::compare(seed + done, some as usize, length as usize) {
            println!("{what}");
            bad += 1;
        }
        done += some;
    }
    println!(
        "{{\"programs\": {count}, \"instructions\": {}, \"files_that_differ\": {bad}}}",
        count * length
    );
    u8::from(bad > 0).into()
}
