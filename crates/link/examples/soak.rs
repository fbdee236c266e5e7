//! Messages by the million over lanes with random bit errors: nothing lost, repeated, changed or out of order on a circuit,
//! and what the errors cost beside the formula.
//!
//! `soak --count N --seed S`

#[path = "../tests/common/mod.rs"]
mod common;

use cohkit_link::{Lanes, Layer, Parameters};
use common::Link;

/// Slots of one way: about 70 ns.
const DELAY: usize = 20;
/// Bit errors: a block in about 780 is damaged, and each damage replays some 40 blocks.
const RATE: f64 = 2.5e-6;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (mut count, mut seed) = (10_000_000, 1);
    while let Some(option) = arguments.next() {
        let value = arguments.next().and_then(|value| value.parse().ok());
        match (option.as_str(), value) {
            ("--count", Some(value)) => count = value,
            ("--seed", Some(value)) => seed = value,
            _ => {
                eprintln!("soak --count N --seed S: both are numbers, not `{option}`");
                std::process::exit(2);
            }
        }
    }
    let mut link = Link::new(DELAY, RATE, seed);
    // Lines in both directions, so that credits and acknowledgements are damaged as well, and single words beside them.
    while link
        .traffic
        .iter()
        .map(common::Traffic::messages)
        .sum::<u64>()
        < count
    {
        for from in 0..2 {
            for circuit in [4, 5] {
                link.fill(from, circuit);
            }
            link.send(from, 6, 0);
        }
        link.slot();
        link.drain_all(64);
    }
    let blocks: u64 = link.wires.iter().map(|wire| wire.blocks).sum();
    let damaged: u64 = link.wires.iter().map(|wire| wire.damaged).sum();
    let replayed: u64 = link.ends.iter().map(|end| end.retry.sender.replayed).sum();
    let words: u64 = link.traffic.iter().map(|traffic| traffic.words).sum();
    let share = words as f64 / (7 * blocks) as f64;
    let formula = common::share_left(RATE, DELAY);
    assert!(link.settle(), "everything arrives");
    for end in 0..2 {
        assert_eq!(link.ends[end].shortages(&link.ends[1 - end]), []);
        assert_eq!(link.ends[end].retry.sender.impossible, 0);
        assert_eq!(link.ends[end].overrun, 0);
    }
    let messages: u64 = link.traffic.iter().map(common::Traffic::messages).sum();
    let replays = replayed as f64 / blocks as f64;
    assert!(replays >= 0.01, "too few blocks were replayed: {replays}");
    let whole = Lanes::ECI.messages().value() / f64::from(1 << 30);
    println!(
        "{messages} messages, {blocks} blocks, {damaged} damaged, {replayed} replayed ({:.2} %)",
        100.0 * replays
    );
    println!("none lost, repeated, changed or out of order on its circuit; no credit lost");
    println!(
        "bandwidth of a direction: {:.2} GiB/s of {whole:.2}; by the formula for damage on the way there {:.2}; patience {} slots",
        share * whole,
        formula * whole,
        Parameters::ECI.patience
    );
    // The record keeps the last line.
    println!(
        r#"{{"messages": {messages}, "blocks": {blocks}, "damaged": {damaged}, "replayed": {replayed}, "share_left": {share:.4}, "share_by_formula": {formula:.4}}}"#
    );
}
