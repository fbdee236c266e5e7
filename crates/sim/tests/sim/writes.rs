//! Writes performed by the home, and retried accesses, with time and bytes.

use cohkit_testing::setups;

use cohkit_protocol::controller::Access;
use cohkit_sim::explain::FailureKind;
use cohkit_sim::simulation::{run, RunError};
use setups::{parse, source, torture};

/// A device that may write memory under its lock, and caches without copies.
const LOCKED: &str = include_str!("../../../../tests/accesses/locked.coh");

/// Returns the first failure in a few short runs.
fn failure(text: &str) -> Option<FailureKind> {
    // With the other seeds, `torture` adds components between the cores and their caches, which these tests exclude.
    let mut seeds = (0..12).filter(|seed| seed / 3 % 2 == 0);
    seeds.find_map(|seed| {
        let setup = torture(parse(text), 1 + (seed % 3) as u16, seed).unwrap();
        match run(&setup) {
            Ok(_) => None,
            Err(RunError::Failure(failure)) => Some(failure.kind),
            Err(error) => panic!("{error}"),
        }
    })
}

/// Each seeded fault lets the home serve an access that does not cache while the device holds the lock.
#[test]
fn lock_at_a_row_home_excludes_non_caching_accesses() {
    assert_eq!(failure(LOCKED), None);
    let failure_after_change = |from: &str, to: &str| {
        assert_eq!(LOCKED.matches(from).count(), 1, "{from}");
        failure(&LOCKED.replace(from, to))
    };
    let excluded = Some(FailureKind::SingleWriter);
    let write = "L   | Write Part | stall";
    assert_eq!(
        failure_after_change(write, "L | Write Part | write, send Ok | stay"),
        excluded
    );
    assert_eq!(
        failure_after_change("L   | Read       | stall", "L | Read | send Got | stay"),
        excluded
    );
}

/// In this protocol, the home sends the second requester its copy before the first writer has returned the line, and
/// the second stores into it later.
#[test]
fn store_in_a_stale_copy_is_detected() {
    let early = include_str!("../../../../tests/accesses/early.coh");
    assert_eq!(failure(early), Some(FailureKind::DataValue));
}

/// In this protocol, the home also sends a response for the next read, which may become stale before that read.
#[test]
fn response_older_than_its_read_is_detected() {
    let answered = include_str!("../../../../tests/accesses/answered.coh");
    assert_eq!(failure(answered), Some(FailureKind::DataValue));
}

/// MSI with accesses that are retried in the same state, or after the copy has been evicted.
#[test]
fn retried_accesses_complete() {
    let row = "  S              | evict                   | send PutS                                      | SI_A\n";
    let retry_rows = "  I | write_line write_partial | retry | stay\n  S | read_once | send PutS, retry | SI_A\n  M | write_line | | stay\n";
    let text = source("msi").replace(row, &format!("{row}{retry_rows}"));
    assert_ne!(text, source("msi"));
    assert_eq!(failure(&text), None);
}

/// The seeded faults: a store is performed while a copy of another cache exists, it is acknowledged before it is
/// performed, and it is lost.
#[test]
fn faults_of_sent_stores_are_detected() {
    let name = "write-through";
    for (name, from, to) in [
        (
            name,
            "if count(readers - { sender }) == 0",
            "if count(readers) <= 1",
        ),
        (name, "defer, send Inv to", "defer, send Ack, send Inv to"),
        (
            "write-through-two-step",
            "| write, send Ack ",
            "| send Ack ",
        ),
    ] {
        let text = source(name);
        assert_eq!(text.matches(from).count(), 1, "{from}");
        let detected = failure(&text.replace(from, to));
        assert!(detected.is_some(), "{to}");
    }
}

/// A read overtakes a posted store of its own cache, or stores overtake each other.
#[test]
fn posted_stores_keep_the_program_order_of_their_line() {
    let one_store = include_str!("../../../../tests/stores/own-store.coh");
    let order = Some(FailureKind::ProgramOrder);
    assert_eq!(failure(one_store), order);
    let several_stores = one_store
        .replace("0..1", "0..3")
        .replace("open < 1", "open < 3");
    let ordered = several_stores.replace("reply home", "ordered put, read; reply home");
    assert_eq!(failure(&ordered), None);
    let guarded_load = several_stores.replace("| load  ", "| load if open == 0 ");
    assert_eq!(failure(&guarded_load), order);
    let without_guarantee = one_store.replace("line 64 bytes", "line 64 bytes\nguarantee none");
    assert_eq!(failure(&without_guarantee), None);
}

/// A store waits until the guard of its row holds. Regression: such a store was skipped, and its core continued.
#[test]
fn store_waits_for_the_guard_of_its_row() {
    let text = "
protocol credit
line 64 bytes
channels { put remote -> home; read remote -> home; reply home -> remote; ordered put, read }
messages { put: W (partial store); read: Get; reply: Data (line), Free }
remote cache {
  states { I; R waits Data }
  variables { free: 0..1 = 1 }
  I   | store if free > 0 | send W, free -= 1 | stay
  I   | load              | send Get          | R
  R   | Data              | done              | I
  I R | Free              | free += 1         | stay
}
home mem {
  states { L }
  L | W   | write, send Free | stay
  L | Get | send Data        | stay
}
system small { remotes 2; lines 1 }
";
    // Regression: if the home has registers, the store waited until one of them changed, not until its guard held.
    let with_registers = text.replace("{ L }", "{ L }; registers { asked: bool }");
    let with_registers = with_registers.replace("send Data        ", "send Data, asked := true");
    for (text, seed) in [text, &with_registers]
        .into_iter()
        .flat_map(|text| (0..3).map(move |seed| (text, seed)))
    {
        let mut setup = torture(parse(text), 2, seed).unwrap();
        setup.workload.mix = vec![(Access::Load, 1), (Access::Store, 2)];
        setup.platform.cores.write_buffer.value = 0;
        let statistics = run(&setup).unwrap_or_else(|failure| panic!("{failure}"));
        assert_eq!(statistics.get("accesses_skipped"), Some(0.0));
        // Such protocols reject a write buffer. Regression: the entry was discarded before the home performed the
        // store, which then wrote zeros.
        setup.platform.cores.write_buffer.value = 4096;
        let error = run(&setup).unwrap_err().to_string();
        assert!(error.contains("`cores.write_buffer`"), "{error}");
    }
}

/// In this protocol, the home performs an awaited store when it arrives, and again as a deferred store.
#[test]
fn store_performed_twice_is_detected() {
    let twice = include_str!("../../../../tests/stores/twice-awaited.coh");
    assert_eq!(failure(twice), Some(FailureKind::DataValue));
}
