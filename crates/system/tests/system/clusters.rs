//! Clusters with different protocols below the caches of one outer protocol: `mesi-l1.coh`, and `self-invalidate.coh`,
//! whose copies may be stale.

use crate::levels::{read, size};
use cohkit_protocol::construct;
use cohkit_protocol::protocol::Permission;
use cohkit_protocol::protocol::Protocol;
use cohkit_system::state::{
    bridge_tables, explore, explore_levels, BridgeRow, Clusters, Found, Level, LevelStep, Levels,
    NoTable, Search, StepError, System,
};

const MESI: &str = include_str!("../../../../protocols/mesi.coh");
const L1: &str = include_str!("../../../../protocols/mesi-l1.coh");
const SELF_INVALIDATE: &str = include_str!("../../../../protocols/self-invalidate.coh");

/// Clusters of one kind in a test: the text of their protocol, the number of caches of each, and their number.
type Cluster<'t> = (&'t str, u16, u8);

/// Runs a function on an outer protocol with these clusters, with one line.
fn with_clusters<T>(outer: &str, clusters: &[Cluster], run: impl FnOnce(&Levels) -> T) -> T {
    let outer_caches: u16 = clusters.iter().map(|(.., count)| u16::from(*count)).sum();
    let texts = std::iter::once(outer).chain(clusters.iter().map(|(text, ..)| *text));
    let protocols: Vec<Protocol> = texts.map(read).collect();
    let home = |protocol| construct::home(protocol, 2).expect("the home can be constructed");
    let homes: Vec<_> = protocols.iter().map(home).collect();
    let system =
        |number: usize, caches| System::new(&protocols[number], &homes[number], caches, 1, 7);
    let inner = clusters.iter().zip(1..);
    let inner = inner.map(|(&(_, caches, count), number)| (system(number, caches), count));
    run(&Levels::of_clusters(
        system(0, outer_caches),
        inner.collect(),
    ))
}

/// Explores clusters as rows of interned states.
fn rows(outer: &str, clusters: &[Cluster], symmetry: bool) -> Found<(), LevelStep> {
    let search = Search {
        max_rows: 10_000_000,
        symmetry,
    };
    with_clusters(outer, clusters, |levels| {
        explore_levels(levels, search, &mut || true)
    })
}

/// Explores clusters state by state.
fn states(outer: &str, clusters: &[Cluster]) -> Found<Clusters, LevelStep> {
    with_clusters(outer, clusters, |levels| {
        explore(levels, Clusters::new(levels), 1_000_000)
    })
}

/// Both searches agree. The sizes are those of an independent trial implementation of the same rules.
#[test]
fn clusters_of_different_kinds_are_coherent_together() {
    let of_one_kind = [(SELF_INVALIDATE, 1, 2)];
    let unmerged = (58_282, 389_076, 38);
    assert_eq!(size(states(MESI, &of_one_kind)), unmerged);
    assert_eq!(size(rows(MESI, &of_one_kind, false)), unmerged);
    assert_eq!(size(rows(MESI, &of_one_kind, true)).0, 29_177);
    // Clusters of different kinds never change places.
    let of_two_kinds = [(L1, 1, 1), (SELF_INVALIDATE, 1, 1)];
    let expected = (73_717, 403_604, 49);
    assert_eq!(size(states(MESI, &of_two_kinds)), expected);
    assert_eq!(size(rows(MESI, &of_two_kinds, false)), expected);
    assert_eq!(size(rows(MESI, &of_two_kinds, true)), expected);
}

/// Larger systems, also over CXL.mem. The sizes are those of an independent trial implementation of the same rules.
#[test]
#[ignore = "millions of states, for `make soak`"]
fn large_clusters_are_coherent_together() {
    let cxl = include_str!("../../../../protocols/cxl-mem.coh");
    for (name, outer, clusters, states) in [
        (
            "MESI1 x CXL x RC1",
            cxl,
            [(L1, 1, 1), (SELF_INVALIDATE, 1, 1)],
            1_216_892,
        ),
        (
            "MESI2 x MESI x RC2",
            MESI,
            [(L1, 2, 1), (SELF_INVALIDATE, 2, 1)],
            4_983_252,
        ),
    ] {
        let (found, transitions, depth) = size(rows(outer, &clusters, true));
        println!("{name}: {found} states, {transitions} transitions, depth {depth}");
        assert_eq!(found, states, "{name}");
    }
}

/// The order of the clusters changes only the numbers of the outer caches.
#[test]
fn kinds_of_clusters_may_be_listed_in_any_order() {
    let cpu_first = rows(MESI, &[(L1, 1, 1), (SELF_INVALIDATE, 1, 1)], true);
    let gpu_first = rows(MESI, &[(SELF_INVALIDATE, 1, 1), (L1, 1, 1)], true);
    assert_eq!(size(cpu_first), size(gpu_first));
}

/// Tables of the bridges of a coherent and of an untracked cluster.
fn bridges(outer: &str) -> Result<Vec<Vec<BridgeRow>>, NoTable> {
    let search = Search {
        max_rows: 1_000_000,
        symmetry: true,
    };
    with_clusters(outer, &[(L1, 1, 1), (SELF_INVALIDATE, 1, 1)], |levels| {
        bridge_tables(levels, search, &mut || true)
    })
}

/// The rows of a bridge follow the rules between levels: permission falls only under a lock of a coherent home, and a
/// request of an untracked cluster is taken only with the permission that it needs.
#[test]
fn bridges_follow_the_rules_between_levels() {
    let outer = read(MESI);
    let permission = |name: &str| {
        let states = &outer.remote.states;
        let state = states.iter().find(|state| state.name == name);
        state.expect("a state of the cache").permission
    };
    let tables = bridges(MESI).expect("all properties hold");
    let [cpu, gpu] = &tables[..] else {
        panic!("expected a table for each kind of cluster");
    };
    let falls = |row: &&BridgeRow| permission(&row.next.cache) < permission(&row.state.cache);
    let (mut recalled, mut given_up) = (0, 0);
    for row in cpu.iter().filter(falls) {
        assert_eq!(row.level, Level::Outer, "{row:?}");
        assert!(row.state.recall.starts_with("locked"), "{row:?}");
        recalled += 1;
    }
    for row in gpu.iter().filter(falls) {
        assert_eq!((row.level, row.state.recall.as_str()), (Level::Outer, ""));
        given_up += 1;
    }
    assert!(recalled > 5 && given_up > 5, "{recalled} and {given_up}");
    for (event, needed) in [
        ("Read", Permission::Read),
        ("ReadOnce", Permission::Read),
        ("Write", Permission::Write),
        ("WriteLine", Permission::Write),
        ("Atomic", Permission::Write),
    ] {
        let rows = gpu
            .iter()
            .filter(|row| (row.level, row.event.as_str()) == (Level::Inner, event));
        let held: Vec<Permission> = rows.map(|row| permission(&row.state.cache)).collect();
        // The cache has each permission in some reachable state, and the home takes the request in all of them.
        assert_eq!(held.iter().min(), Some(&needed), "{event}");
        assert_eq!(held.iter().max(), Some(&Permission::Write), "{event}");
    }
    // Each state that a row leads to has rows of its own.
    for table in &tables {
        let is_listed = |row: &BridgeRow| table.iter().any(|other| other.state == row.next);
        assert!(table.iter().all(is_listed));
    }
}

/// Caches whose home defers a store until a cache has answered, in a transient state.
const DEFERRED: &str = "
protocol deferred \"stores that the home defers\"
line 64 bytes
guarantee none
channels { request remote -> home; answer remote -> home; grant home -> remote }
messages {
  request: Read, Write (partial store), Atomic (partial store), WriteLine (store)
  answer: Ok
  grant: Data (line), Ack, Old (line), Ask
}
remote cache {
  states { I; V reads; IV waits Data; IW waits Ack; IA waits Old }
  I     | load       | send Read      | IV
  I V   | store      | send Write     | IW
  I V   | write_line | send WriteLine | IW
  I V   | atomic     | send Atomic    | IA
  V     | evict      |                | I
  IV    | Data       |                | V
  IW    | Ack        | done           | I
  IA    | Old        | done           | I
  IW IA | Ask        | send Ok        | stay
}
home memory {
  states { L; D waits Ok; A waits Ok }
  variables { w: remote }
  L   | Read                        | send Data                             | stay
  L   | Write WriteLine             | defer, w := sender, send Ask          | D
  L   | Atomic                      | defer, w := sender, send Ask          | A
  D   | Ok                          | write deferred, w := none, send Ack   | L
  A   | Ok                          | send Old, write deferred, w := none   | L
  D A | Read Write WriteLine Atomic | stall
}
system two { remotes 2; lines 1 }
";

/// A home keeps the outer permission while it has deferred a store, in a transient state or in a stable one.
#[test]
fn homes_keep_the_outer_permission_while_a_store_is_deferred() {
    let stable = changed(DEFERRED, "L; D waits Ok; A waits Ok", "L; D; A");
    for gpu in [DEFERRED, &stable] {
        let clusters = [(L1, 1, 1), (gpu, 1, 1)];
        let (found, transitions, _) = size(rows(MESI, &clusters, true));
        assert_eq!((found, transitions), (51_607, 217_459), "{gpu}");
    }
}

/// Caches whose home reads memory only when a cache has answered.
const DELAYED_READS: &str = "
protocol delayed_reads \"reads of memory in the middle of a transaction\"
line 64 bytes
guarantee none
channels { request remote -> home; answer remote -> home; grant home -> remote }
messages { request: Read; answer: Ok; grant: Data (line), Ask }
remote cache {
  states { I; V reads; IV waits Data }
  I  | load  | send Read | IV
  V  | evict |           | I
  IV | Ask   | send Ok   | stay
  IV | Data  |           | V
}
home memory {
  states { L; R waits Ok }
  L | Read | send Ask  | R
  R | Ok   | send Data | L
  R | Read | stall
}
system two { remotes 2; lines 1 }
";

/// A home keeps the outer permission in a transient state: it may still read memory.
#[test]
fn homes_keep_the_outer_permission_in_a_transient_state() {
    size(rows(MESI, &[(L1, 1, 1), (DELAYED_READS, 1, 1)], true));
}

/// Caches whose home serves others between the read and the write of an atomic access.
const SPLIT_ATOMICS: &str = "
protocol split_atomics \"atomic accesses in two steps\"
line 64 bytes
guarantee none
channels { request remote -> home; grant home -> remote }
messages {
  request: Read, Write (partial store), Atomic, Bytes (partial store)
  grant: Data (line), Ack, Old (line)
}
remote cache {
  states { I; V reads; IV waits Data; IW waits Ack; IA waits Old; IB waits Ack }
  I   | load   | send Read   | IV
  I V | store  | send Write  | IW
  I V | atomic | send Atomic | IA
  V   | evict  |             | I
  IV  | Data   |             | V
  IW  | Ack    | done        | I
  IA  | Old    | send Bytes  | IB
  IB  | Ack    | done        | I
}
home memory {
  states { L }
  L | Read        | send Data       | stay
  L | Write Bytes | write, send Ack | stay
  L | Atomic      | send Old        | stay
}
system one { remotes 1; lines 1 }
";

/// A store of another cluster between the two steps of an atomic access is found. With one cache, there is no such
/// store.
#[test]
fn atomic_accesses_are_atomic_across_clusters() {
    size(rows(MESI, &[(SPLIT_ATOMICS, 1, 1)], true));
    for clusters in [
        vec![(SPLIT_ATOMICS, 1, 2)],
        vec![(SPLIT_ATOMICS, 1, 1), (L1, 1, 1)],
    ] {
        let Found::Violated { errors, .. } = rows(MESI, &clusters, true) else {
            panic!("expected a violation");
        };
        let StepError::Violated(violation) = &errors[0] else {
            panic!("{errors:?}");
        };
        assert_eq!(violation.property, "atomicity");
    }
}

/// Rows of a bridge that violates a property are not printed.
#[test]
fn faulty_bridges_have_no_table() {
    let store = "  E              | store                   |                                                | M        # silent\n";
    let outer = changed(MESI, store, &store.replace("M        # silent", "stay"));
    let Err(NoTable::Violated(violation)) = bridges(&outer) else {
        panic!("expected a violation");
    };
    assert_eq!(violation.property, "data value");
}

/// Replaces a part of a text that occurs once.
fn changed(text: &str, from: &str, to: &str) -> String {
    assert_eq!(text.matches(from).count(), 1, "{from}");
    text.replace(from, to)
}

/// Property that a coherent and an untracked cluster violate at the shortest distance, found alike by both searches.
fn violated_property(outer: &str, cpu: &str, gpu: &str) -> String {
    let clusters = [(cpu, 1, 1), (gpu, 1, 1)];
    let (by_states, by_rows) = (states(outer, &clusters), rows(outer, &clusters, true));
    let (
        Found::Violated { errors, path },
        Found::Violated {
            errors: other_errors,
            path: other_path,
        },
    ) = (by_states, by_rows)
    else {
        panic!("expected a violation");
    };
    assert!(errors.contains(&other_errors[0]), "{other_errors:?}");
    assert_eq!(path.len(), other_path.len());
    match &errors[0] {
        StepError::Violated(violation) => {
            format!("{}: {}", violation.property, violation.description)
        }
        StepError::Exceeded(limit) => panic!("{limit}"),
    }
}

/// A store of an untracked cluster is one of the outer cache: its copy becomes dirty.
#[test]
fn store_that_leaves_the_outer_copy_clean_is_found() {
    let store = "  E              | store                   |                                                | M        # silent\n";
    let outer = changed(MESI, store, &store.replace("M        # silent", "stay"));
    let property = violated_property(&outer, L1, SELF_INVALIDATE);
    assert!(property.starts_with("data value: "), "{property}");
}

/// A message that no access sends needs no outer permission, so a home must not read memory for it.
#[test]
fn memory_read_without_outer_permission_is_found() {
    let request = "Read, ReadOnce,";
    let evict = "  V       | evict               |                | I        # silent\n";
    let read = "  L       | Read                | send Data        | stay\n";
    let gpu = changed(SELF_INVALIDATE, request, "Read, Refetch, ReadOnce,");
    let gpu = changed(
        &gpu,
        evict,
        "  V       | evict               | send Refetch   | IV\n",
    );
    let gpu = changed(
        &gpu,
        read,
        "  L       | Read Refetch        | send Data        | stay\n",
    );
    let expected = "data value: the home of caches without coherence has read a stale line";
    assert_eq!(violated_property(MESI, L1, &gpu), expected);
}

/// A home that writes memory for such a message lacks write permission.
#[test]
fn memory_write_without_outer_permission_is_found() {
    let request = "Read, ReadOnce,";
    let evict = "  V       | evict               |                | I        # silent\n";
    let read = "  L       | Read                | send Data        | stay\n";
    let gpu = changed(SELF_INVALIDATE, request, "Read, PutV (line), ReadOnce,");
    let gpu = changed(
        &gpu,
        evict,
        "  V       | evict               | send PutV      | I\n",
    );
    let gpu = changed(
        &gpu,
        read,
        &format!("{read}  L       | PutV                | write            | stay\n"),
    );
    let property = violated_property(MESI, L1, &gpu);
    assert!(property.starts_with("inclusion: "), "{property}");
}
