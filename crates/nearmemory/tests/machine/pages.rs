//! Address translation of host cores: a TLB miss costs a page walk, and a prefetch that misses the TLB does nothing.

use crate::{compile, require, run, Ran};
use cohkit_nearmemory::{Platform, RunOutcome};

const ROUNDS: u64 = 1000;
const PAGES: u64 = 8;

fn ran(program: &[u8], rounds: u64, settings: &[(&str, &str)]) -> Ran {
    let mut platform = Platform::enzian();
    for (name, value) in settings {
        platform.set(name, value).expect("it can be set");
    }
    let room = platform.llc.value;
    let ran = run(&platform, program, &rounds.to_string(), &[], None);
    assert_eq!(ran.happened, [RunOutcome::Exit(0)], "{}", ran.text);
    assert!(ran.text.ends_with(&format!("\nlast cache: {room} bytes\n")));
    ran
}

fn cycles(ran: &Ran) -> u64 {
    let words: Vec<&str> = ran.text.split_whitespace().collect();
    words[1].parse().expect("a number")
}

#[test]
fn tlb_misses_cost_a_walk_and_drop_prefetches() {
    if !require::require("riscv-gcc") {
        return;
    }
    let program = compile("host", "crates/nearmemory/tests/programs/pages-host.c", &[]);
    let small = ("host.page", "4KiB");
    // A cycle is 0.5 ns.
    let (walk, none) = (("host.tlb_walk", "50ns"), ("host.tlb_walk", "0ns"));
    let missed = |settings: &[(&str, &str)]| {
        let [once, often] = [1, ROUNDS].map(|rounds| ran(&program, rounds, settings));
        let misses = [&often, &once].map(|ran| ran.counter("host: pages missed"));
        let found = [&often, &once].map(|ran| ran.counter("host: pages found"));
        let accesses = found[0] + misses[0] - found[1] - misses[1];
        assert!(accesses >= (ROUNDS - 1) * PAGES, "{accesses}");
        (misses[0] - misses[1], cycles(&often))
    };
    // With LRU replacement, the next page needed is always the one evicted last.
    let (misses, slow) = missed(&[small, ("host.tlb", "4"), walk]);
    assert_eq!(misses, (ROUNDS - 1) * PAGES);
    let (misses, fast) = missed(&[small, ("host.tlb", "4"), none]);
    assert_eq!(misses, (ROUNDS - 1) * PAGES);
    assert_eq!(slow - fast, ROUNDS * PAGES * 100);
    // All pages fit the TLB, or are one large page.
    let (misses, roomy) = missed(&[small, ("host.tlb", "16"), walk]);
    assert_eq!(misses, 0);
    let (misses, large) = missed(&[("host.tlb", "4"), walk]);
    assert_eq!(misses, 0);
    assert_eq!(large, fast);
    assert!(
        (fast..=fast + PAGES * 100).contains(&roomy),
        "{roomy} {fast}"
    );
    let hinted =
        |settings: &[(&str, &str)]| ran(&program, 1, settings).counter("host: lines prefetched");
    assert_eq!(hinted(&[small]), 1);
    assert_eq!(hinted(&[("host.llc", "1MiB")]), PAGES);
}
