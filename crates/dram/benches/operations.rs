//! Processor time of an operation of a DRAM with each scheduler: three reads to one write, of random and of sequential
//! lines, 64 of them in flight. One line per case; the sum of all ends shows whether two versions schedule alike. An argument selects
//! cases by the name of the scheduler.

use cohkit_dram::{Controller, Finished, JedecDram, Scheduler, Standard};
use cohkit_testing::processor_time::processor_seconds;
use std::time::Instant;

const LINE_BYTES: u32 = 128;
const OPERATIONS: u64 = 2_000_000;

/// Returns the line of an operation.
fn line(number: u64, is_random: bool) -> u32 {
    match is_random {
        // A multiplication by an odd number and a shift visit lines in no order.
        true => (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u32,
        false => number as u32,
    }
}

/// Performs all operations, each submitted when an earlier one ends. Returns the sum of their ends in picoseconds.
fn run(controller: &mut Controller, is_random: bool) -> u64 {
    let mut finished: Vec<Finished> = Vec::new();
    let (mut sum, mut submitted) = (0u64, 0);
    let mut submit = |controller: &mut Controller, time| {
        if submitted < OPERATIONS {
            let line = line(submitted, is_random);
            let is_write = submitted % 4 == 3;
            controller.submit(time, (line, 0..LINE_BYTES), is_write, submitted as u32);
            submitted += 1;
        }
    };
    for _ in 0..64 {
        submit(controller, 0);
    }
    while let Some(now) = controller.next() {
        controller.advance(now, &mut finished);
        for ended in finished.drain(..) {
            sum = sum.wrapping_add(ended.end);
            submit(controller, ended.end);
        }
    }
    sum
}

fn main() {
    // Cargo passes `--bench`.
    let selected = std::env::args().skip(1).find(|name| !name.starts_with('-'));
    for (scheduler, name) in [
        (Scheduler::FirstReady, "fr-fcfs"),
        (Scheduler::GroupMachines, "group machines"),
    ] {
        if selected
            .as_ref()
            .is_some_and(|selected| !name.contains(selected.as_str()))
        {
            continue;
        }
        for (is_random, pattern) in [(true, "random"), (false, "sequential")] {
            let mut dram = JedecDram::new(Standard::Ddr4_2133);
            dram.scheduler = scheduler;
            let mut controller = Controller::new(&dram, LINE_BYTES);
            let origin = Instant::now();
            let begin = processor_seconds(origin);
            let sum = run(&mut controller, is_random);
            let seconds = processor_seconds(origin) - begin;
            println!(
                "{name:<15} {pattern:<11} {:6.0} ns of host time for an operation of {LINE_BYTES} bytes (sum of ends {sum} ps)",
                seconds * 1e9 / OPERATIONS as f64
            );
        }
    }
}
