//! Several host cores that share the host's memory.

use super::{compile, run};
use cohkit_nearmemory::{Platform, RunOutcome};
use cohkit_testing::require;

/// One to four cores count atomically and under a lock, and pass a word in turns. No core leaves the barrier early.
#[test]
fn cores_of_the_host_share_memory_and_start_each_other() {
    if !require::require("riscv-gcc") {
        return;
    }
    let host = compile("host", "crates/nearmemory/tests/programs/cores-host.c", &[]);
    for cores in 1..=4 {
        let mut platform = Platform::enzian();
        let accepted = platform.set("host.cores", &cores.to_string());
        accepted.expect("a valid value");
        let result = run(&platform, &host, "", &[], None);
        // All cores, and one of them a second time.
        let times = (cores + u64::from(cores > 1)) * 1000;
        let expected = format!(
            "{cores} cores: {} counted, locked, {times} turns, early 0\n",
            2 * times
        );
        assert_eq!(result.text, expected, "{:?}", result.outcomes);
        assert_eq!(result.outcomes, [RunOutcome::Exit(0)]);
    }
}
