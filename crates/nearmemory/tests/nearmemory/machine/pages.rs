//! Address translation of host cores: a TLB miss costs a page walk, and a prefetch that misses the TLB does nothing.

use super::{compile, run, RunResult};
use cohkit_nearmemory::{Platform, RunOutcome};
use cohkit_testing::require;

/// Number of rounds through all pages in a long run.
const ROUNDS: u64 = 1000;
/// Number of pages of 4 KiB, as in pages-host.c.
const PAGES: u64 = 8;

/// Runs the program for this number of rounds on a platform with these settings.
fn run_program(program: &[u8], rounds: u64, settings: &[(&str, &str)]) -> RunResult {
    let mut platform = Platform::enzian();
    for (name, value) in settings {
        platform.set(name, value).expect("a valid value");
    }
    let llc_bytes = platform.llc.value;
    let result = run(&platform, program, &rounds.to_string(), &[], None);
    assert_eq!(result.outcomes, [RunOutcome::Exit(0)], "{}", result.text);
    assert!(result
        .text
        .ends_with(&format!("\nlast cache: {llc_bytes} bytes\n")));
    result
}

/// Cycles that the program has printed.
fn cycles(result: &RunResult) -> u64 {
    let words: Vec<&str> = result.text.split_whitespace().collect();
    words[1].parse().expect("a number")
}

/// A TLB with fewer entries than pages misses at each access, and each miss takes the time of a walk. With enough
/// entries, or a large page, there are no misses. Prefetches take effect only in pages that are in the TLB.
#[test]
fn tlb_misses_cost_a_walk_and_drop_prefetches() {
    if !require::require("riscv-gcc") {
        return;
    }
    let program = compile("host", "crates/nearmemory/tests/programs/pages-host.c", &[]);
    let small_pages = ("host.page", "4KiB");
    // A cycle is 0.5 ns.
    let (walk, no_walk) = (("host.tlb_walk", "50ns"), ("host.tlb_walk", "0ns"));
    let misses_and_cycles = |settings: &[(&str, &str)]| {
        let [one_round, many_rounds] =
            [1, ROUNDS].map(|rounds| run_program(&program, rounds, settings));
        let misses = [&many_rounds, &one_round].map(|result| result.counter("host: pages missed"));
        let hits = [&many_rounds, &one_round].map(|result| result.counter("host: pages found"));
        let accesses = hits[0] + misses[0] - hits[1] - misses[1];
        assert!(accesses >= (ROUNDS - 1) * PAGES, "{accesses}");
        (misses[0] - misses[1], cycles(&many_rounds))
    };
    // With LRU replacement, the next page needed is always the one evicted last.
    let (misses, slow) = misses_and_cycles(&[small_pages, ("host.tlb", "4"), walk]);
    assert_eq!(misses, (ROUNDS - 1) * PAGES);
    let (misses, fast) = misses_and_cycles(&[small_pages, ("host.tlb", "4"), no_walk]);
    assert_eq!(misses, (ROUNDS - 1) * PAGES);
    assert_eq!(slow - fast, ROUNDS * PAGES * 100);
    // All pages fit the TLB, or are one large page.
    let (misses, large_tlb) = misses_and_cycles(&[small_pages, ("host.tlb", "16"), walk]);
    assert_eq!(misses, 0);
    let (misses, large_page) = misses_and_cycles(&[("host.tlb", "4"), walk]);
    assert_eq!(misses, 0);
    assert_eq!(large_page, fast);
    assert!(
        (fast..=fast + PAGES * 100).contains(&large_tlb),
        "{large_tlb} {fast}"
    );
    let prefetches = |settings: &[(&str, &str)]| {
        run_program(&program, 1, settings).counter("host: lines prefetched")
    };
    assert_eq!(prefetches(&[small_pages]), 1);
    assert_eq!(prefetches(&[("host.llc", "1MiB")]), PAGES);
}
