//! Several host cores that share the host's memory.

use crate::{compile, require, run};
use cohkit_nearmemory::{Platform, RunOutcome};

#[test]
fn cores_of_the_host_share_memory_and_start_each_other() {
    if !require::require("riscv-gcc") {
        return;
    }
    let host = compile("host", "crates/nearmemory/tests/programs/cores-host.c", &[]);
    for cores in 1..=4 {
        let mut platform = Platform::enzian();
        let set = platform.set("host.cores", &cores.to_string());
        set.expect("it can be set");
        let ran = run(&platform, &host, "", &[], None);
        // All cores, and one of them a second time.
        let times = (cores + u64::from(cores > 1)) * 1000;
        let said = format!(
            "{cores} cores: {} counted, locked, {times} turns, early 0\n",
            2 * times
        );
        assert_eq!(ran.text, said, "{:?}", ran.happened);
        assert_eq!(ran.happened, [RunOutcome::Exit(0)]);
    }
}
