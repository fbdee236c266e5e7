//! Writes that the home performs: in one message or requested first, deferred or not, and under a device's lock. Each
//! test verifies a correct protocol, and seeds faults into it that the checker must find.

use crate::changed_protocols::Size;
use crate::support::{home_of, parse_valid, property_name, replace_once, shipped};
use cohkit_base::sequence::Action;
use cohkit_check::system::{model, Options};
use cohkit_engine::search::Engine;
use cohkit_engine::{check, Options as Search, Outcome};

/// Returns states and transitions of a system without violation, or the violated property, from a search of every
/// state. A search up to symmetry must agree.
fn search(text: &str, remotes: u16, lines: u8) -> Result<Size, String> {
    let protocol = parse_valid(text);
    let home = home_of(&protocol, remotes);
    let model = model(&protocol, &home, remotes, lines, &Options::default()).unwrap();
    let search = |symmetry, engine| {
        let search = Search {
            threads: 1,
            symmetry,
            engine,
            ..Search::default()
        };
        check(&model, &search).unwrap()
    };
    let (every_state, up_to_symmetry) = (
        search(false, Engine::Interpreter),
        search(true, Engine::Native),
    );
    assert_eq!(every_state.properties, up_to_symmetry.properties);
    match every_state.outcome {
        Outcome::Verified => Ok((every_state.states, every_state.transitions)),
        Outcome::Violated {
            property, trace, ..
        } => {
            assert!(!trace.sequence.steps.is_empty());
            Err(property_name(property))
        }
        other => panic!("neither verified nor violated: {other:?}"),
    }
}

/// Returns the property that a shipped protocol violates after one change, with three caches.
fn violated_property(name: &str, from: &str, to: &str) -> String {
    search(&replace_once(&shipped(name), from, to), 3, 1).expect_err(to)
}

/// The store's bytes are in the first message.
#[test]
fn one_step_write_through_is_verified() {
    let size = |remotes, lines| search(&shipped("write-through"), remotes, lines).unwrap();
    assert_eq!(size(3, 1), (6_357, 28_785));
    assert_eq!(size(1, 2), (241, 780));
}

/// In a former version, `done` on the last response performed the store a second time, and no such protocol could be
/// verified.
#[test]
fn two_step_write_through_is_verified() {
    let size = |remotes, lines| search(&shipped("write-through-two-step"), remotes, lines).unwrap();
    assert_eq!(size(3, 1), (7_125, 31_089));
    assert_eq!(size(1, 2), (397, 1_140));
}

/// Each fault changes one row of the verified protocol.
#[test]
fn faults_of_one_step_stores_are_detected() {
    let violated_property = |from, to| violated_property("write-through", from, to);
    // A reader keeps its copy while the store is performed.
    let guarded = "R       | Write WriteLine if count(readers - { sender }) == 0 | write";
    let unguarded = "R       | Write WriteLine if count(readers) <= 1 | write";
    assert_eq!(violated_property(guarded, unguarded), "data value");
    // The writer gets its acknowledgement before memory has its bytes.
    let deferral = "defer, send Inv to readers - { sender }";
    let early_acknowledgement = "defer, send Ack, send Inv to readers - { sender }";
    assert_eq!(
        violated_property(deferral, early_acknowledgement),
        "data value"
    );
    // A second store is deferred over the first.
    let stalled = "W       | Read ReadOnce Write WriteLine                       | stall                                              |";
    let overwriting =
        "W | Read ReadOnce | stall | \n  W | Write WriteLine | defer, writer := sender | stay";
    assert_eq!(
        violated_property(stalled, overwriting),
        "one deferred store at a time"
    );
    // The deferred store is written after every response, though only the first time there is one.
    let count_down = "owed := owed - 1                                   | stay";
    let repeated_write = "owed := owed - 1, write deferred | stay";
    assert_eq!(violated_property(count_down, repeated_write), "data value");
}

/// Each fault changes one row of the verified protocol, in which the home requests the bytes of a store.
#[test]
fn faults_of_two_step_stores_are_detected() {
    let violated_property = |from, to| violated_property("write-through-two-step", from, to);
    // The bytes are not written, or are written twice.
    let write = "| write, send Ack ";
    assert_eq!(violated_property(write, "| send Ack "), "data value");
    assert_eq!(
        violated_property(write, "| write, write, send Ack "),
        "data value"
    );
    // The store ends when its bytes are sent, not when they are written.
    let go = "IG               | Go                  | send Bytes     | IW";
    let early_done = "IG | Go | send Bytes, done | IA\n  IA | Ack | | I\n  I V IV IR IG IL IW IA | Inv | send InvAck | I\n";
    let text = shipped("write-through-two-step")
        .replace(go, early_done)
        .replace(
            "    IW  waits Ack ",
            "    IA  waits Ack\n    IW  waits Ack ",
        );
    let text = text
        .lines()
        .filter(|line| !line.contains("| Inv                 |"));
    let text = text.collect::<Vec<_>>().join("\n");
    assert_eq!(search(&text, 2, 1), Err("data value".into()));
    // The home sends Go to a writer while a reader still has its copy.
    let owed = "W       | InvAck if owed > 1                                  | owed := owed - 1                                   | stay\n";
    assert_eq!(violated_property(owed, ""), "no unexpected message");
}

/// A returning line does not contain the deferred store, so it must be written before the store. Regression: bytes that
/// were current before the store counted as current after it, and the opposite order was verified.
#[test]
fn late_line_write_loses_a_deferred_store() {
    let text = "
protocol crossed
line 64 bytes
channels { req remote -> home; put remote -> home; rep home -> remote; snp home -> remote; ordered rep, snp }
messages { req: Get, Wr (partial store); put: Put (line, dirty); rep: Data (line), Done; snp: Recall }
remote cache {
  states { I; M reads writes dirty; W waits Data; X waits Done }
  I     | load store    | send Get | W
  W     | Data          |          | M
  M     | evict Recall  | send Put | I
  I     | write_partial | send Wr  | X
  I X W | Recall        |          | stay
  X     | Done          | done     | I
}
home dir {
  states { I; M; Y waits Put; R waits Put }
  variables { owner: remote; wants: remote }
  I   | Get    | send Data, owner := sender | M
  I   | Wr     | write, send Done | stay
  M   | Put    | write, owner := none | I
  M   | Get    | send Recall to owner, wants := sender | R
  R   | Put    | write, send Data to wants, owner := wants, wants := none | M
  M   | Wr     | defer, send Recall to owner, wants := sender | Y
  Y   | Put    | write, write deferred, send Done to wants, owner := none, wants := none | I
  Y R | Get Wr | stall
}
system two { remotes 2; lines 1 }
";
    assert_eq!(search(text, 2, 1), Ok((471, 1_556)));
    let reversed = text.replace("write, write deferred", "write deferred, write");
    assert_eq!(search(&reversed, 2, 1), Err("data value".into()));
    let in_order = "write, write deferred, send Done to wants, owner := none, wants := none";
    let write_last = "write deferred, send Done to wants, owner := none, wants := none, write";
    assert_eq!(
        search(&text.replace(in_order, write_last), 2, 1),
        Err("data value".into())
    );
}

/// A home written as a policy behaves alike: the bytes after `Go` are a request of their own.
#[test]
fn policy_may_request_the_bytes_of_a_store() {
    let text = "
protocol asks
line 64 bytes
channels { request remote -> home; answer remote -> home; victim remote -> home
           forward home -> remote; grant home -> remote; ordered forward, grant; ordered request, victim }
messages { request: Read, Write, Bytes (partial store); answer: Gone; victim: Drop
           forward: Inv; grant: Data (line), Go, Ack }
remote cache {
  states { I; V reads; IV waits Data; IG waits Go; IW waits Ack }
  I          | load    | send Read  | IV
  I          | store   | send Write | IG
  V          | evict   | send Drop  | I
  IV         | Data    |            | V
  IG         | Go      | send Bytes | IW
  IW         | Ack | done       | I
  V          | Inv     | send Gone  | I
  I IV IG IW | Inv     | send Gone  | stay
}
home {
  on Read(r)  { ensure others(r) <= V;  grant r V with Data }
  on Write(r) { ensure others(r) == I;  answer r with Go }
  on Bytes(r) { ensure others(r) == I;  write;  answer r with Ack }
  reach I with Inv
}
system pair { remotes 2; lines 1 }
";
    search(text, 2, 1).unwrap();
}

/// A device that may write memory under its lock, and caches that have no copies.
const LOCKED: &str = include_str!("../../../../tests/accesses/locked.coh");

/// Regression: a lock excluded only accesses with a permission, and a non-caching access has none.
#[test]
fn lock_at_a_row_home_excludes_non_caching_accesses() {
    search(LOCKED, 2, 1).unwrap();
    let changed = |from: &str, to: &str| search(&replace_once(LOCKED, from, to), 1, 1);
    let excluded = Err("single writer".to_string());
    let write = "L   | Write Part | stall";
    assert_eq!(
        changed(write, "L | Write Part | write, send Ok | stay"),
        excluded
    );
    assert_eq!(
        changed(write, "L | Write | stall; L | Part | write, send Ok | stay"),
        excluded
    );
    assert_eq!(
        changed("L   | Read       | stall", "L | Read | send Got | stay"),
        excluded
    );
}

/// A read may complete with a copy that the cache has always held, if that copy is still current.
#[test]
fn read_completed_with_a_stale_copy_is_detected() {
    let text = "
protocol probe
line 64 bytes
channels { request remote -> home; grant home -> remote }
messages { request: Get, Probe, Write (store); grant: Data (line), Yes, Ok }
remote cache {
  states { I; H holds; G waits Data; P holds, waits Yes; W waits Ok }
  I | read_once  | send Get   | G
  G | Data       | done       | H
  H | read_once  | send Probe | P
  P | Yes        | done       | H
  I | write_line | send Write | W
  W | Ok         | done       | I
  H | evict      |            | I
}
home directory {
  states { I }
  I | Get   | send Data      | stay
  I | Probe | send Yes       | stay
  I | Write | write, send Ok | stay
}
";
    search(text, 1, 1).unwrap();
    assert_eq!(search(text, 2, 1), Err("data value".into()));
}

/// The second remote's copy is sent while the first may still store, and the second remote's store would undo that. A
/// store must therefore not make a stale copy current.
#[test]
fn store_in_a_stale_copy_is_detected() {
    let text = include_str!("../../../../tests/accesses/early.coh");
    assert_eq!(search(text, 2, 1), Err("data value".into()));
    // With one remote there is no second copy, and a write of the whole line keeps no earlier bytes.
    assert!(search(text, 1, 1).is_ok());
    let whole_line = text.replace("| store |", "| write_line |");
    assert_ne!(whole_line, text);
    assert!(search(&whole_line, 2, 1).is_ok());
}

/// A response that is kept for the next read may be stale before that read begins. Bytes that are used without being
/// kept must therefore be checked for the read that uses them, not when they are sent.
#[test]
fn response_older_than_its_read_is_detected() {
    let text = include_str!("../../../../tests/accesses/answered.coh");
    assert_eq!(search(text, 2, 1), Err("data value".into()));
    // While no agent writes, a response for the next read has the same data as one for this read.
    assert!(search(text, 1, 1).is_ok());
    // An order puts the message that carries the answer into a queue.
    let ordered = text.replace(
        "  grant home -> remote\n",
        "  grant home -> remote\n  ordered grant\n",
    );
    assert_ne!(ordered, text);
    assert_eq!(search(&ordered, 2, 1), Err("data value".into()));
}

/// Returns the notes of the chart of a shortest path to a state that violates `invariant`.
fn chart_notes(text: &str, remotes: u16, invariant: &str) -> Vec<String> {
    let text = format!("{text}\ninvariant never_here: {invariant}\n");
    let protocol = parse_valid(&text);
    let home = home_of(&protocol, remotes);
    let model = model(&protocol, &home, remotes, 1, &Options::default()).unwrap();
    let search = Search {
        threads: 1,
        ..Search::default()
    };
    let Outcome::Violated { trace, .. } = check(&model, &search).unwrap().outcome else {
        panic!("the invariant holds");
    };
    let sequence = &trace.sequence;
    let notes = sequence.steps.iter().filter_map(|step| {
        let agent = &sequence.agents[step.agent];
        match &step.action {
            Action::Does { what } => Some(format!("{agent}: {what}")),
            Action::Becomes { state } => Some(format!("{agent} is {state}")),
            _ => None,
        }
    });
    notes.collect()
}

/// Regression: a chart showed where a store began, but not where it was performed.
#[test]
fn charts_mark_where_a_write_is_performed() {
    // In place.
    let eci = chart_notes(&shipped("eci"), 1, "count(M) == 0");
    let [.., performed, next_note] = &eci[..] else {
        panic!("{eci:?}")
    };
    assert_eq!(performed, "cpu: performs a store", "{eci:?}");
    assert_eq!(next_note, "cpu is M");
    let has_note = |notes: &[String], note: &str| notes.iter().any(|found| found == note);
    // By the home: at once, or when it writes the deferred store.
    let text = shipped("write-through");
    let at_once = chart_notes(&text, 2, "in_flight(Ack) == 0");
    let home_performs = "directory: performs the write";
    assert!(has_note(&at_once, home_performs), "{at_once:?}");
    let delayed = text
        .replace(
            "write deferred, send Ack to writer",
            "write deferred, send Late to writer",
        )
        .replace("IW          | Ack  ", "IW          | Ack Late ")
        .replace("DataOnce (line), Ack", "DataOnce (line), Ack, Late");
    let delayed = chart_notes(&delayed, 2, "in_flight(Late) == 0");
    let performed_at = delayed.iter().position(|note| note == home_performs);
    let deferred_at = (delayed.iter()).position(|note| note.starts_with("directory is W"));
    assert!(
        deferred_at.is_some() && deferred_at < performed_at,
        "{delayed:?}"
    );
    // In the copy, if `done` completes a write.
    let in_copy = text
        .replace(
            "I V         | store write_partial | send Write     | IW",
            "I V | store | send Read | IX\n  I V | write_partial | send Write | IW",
        )
        .replace("    IV  waits Data", "    X   reads\n    IX  waits Data\n    IV  waits Data")
        .replace(
            "  IR          | DataOnce",
            "  IX | Data | done | X\n  IX | Inv | send InvAck | stay\n  X | Inv | send InvAck | I\n  IR          | DataOnce",
        );
    let in_copy = chart_notes(&in_copy, 1, "count(X) == 0");
    let [.., performed, next_note] = &in_copy[..] else {
        panic!("{in_copy:?}")
    };
    assert_eq!(performed, "cache: performs the write", "{in_copy:?}");
    assert_eq!(next_note, "cache is X");
}

/// Returns the results for systems of one and of two remotes on one line.
fn both_sizes(text: &str) -> [Result<Size, String>; 2] {
    [1, 2].map(|remotes| search(text, remotes, 1))
}

/// Result of a search that finds a violation of this property.
fn violation_of<T>(property: &str) -> Result<T, String> {
    Err(property.to_string())
}

/// Faulty: a posted store is acknowledged and dropped while another is deferred.
const DROPPED_STORE: &str = include_str!("../../../../tests/stores/dropped.coh");
/// Correct: a second posted store waits while the first is deferred.
const STORE_THAT_WAITS: &str = include_str!("../../../../tests/stores/waits.coh");
/// Faulty: the home performs and defers a store, so that it is performed again over a newer one of another core.
const STORE_PERFORMED_TWICE: &str = include_str!("../../../../tests/stores/twice.coh");
/// The same fault without posted stores.
const AWAITED_STORE_PERFORMED_TWICE: &str =
    include_str!("../../../../tests/stores/twice-awaited.coh");
/// Faulty: an atomic access gets its old value before other stores, and its store is performed after them.
const SPLIT_ATOMIC: &str = include_str!("../../../../tests/stores/split-atomic.coh");
/// Faulty: a read may overtake the posted store of its own core.
const OWN_STORE: &str = include_str!("../../../../tests/stores/own-store.coh");

/// Regression: any posted store disabled the check for the whole protocol, so a store that is acknowledged and dropped
/// was verified.
#[test]
fn acknowledged_but_dropped_posted_store_is_detected() {
    let unordered = DROPPED_STORE.replace("line 64 bytes", "line 64 bytes\nguarantee none");
    let property = "every store is performed once";
    assert_eq!(
        both_sizes(&unordered),
        [violation_of(property), violation_of(property)]
    );
    // With program order of the line, a shorter counterexample violates that.
    for found in both_sizes(DROPPED_STORE) {
        assert!(found.is_err());
    }
    for found in both_sizes(STORE_THAT_WAITS) {
        found.unwrap();
    }
    // Without deferral, the store is consumed and lost.
    let without_deferral = STORE_THAT_WAITS.replace("defer, writer := sender", "writer := sender");
    let without_deferral = without_deferral.replace("write deferred, writer", "writer");
    assert_eq!(
        both_sizes(&without_deferral),
        [violation_of(property), violation_of(property)]
    );
}

/// Regression: one bit per remote recorded that some store was performed, so a store of unknown identity counted as
/// performed.
#[test]
fn store_performed_twice_over_a_newer_one_is_detected() {
    assert_eq!(
        search(AWAITED_STORE_PERFORMED_TWICE, 2, 1),
        violation_of("data value")
    );
    let unordered = STORE_PERFORMED_TWICE.replace("line 64 bytes", "line 64 bytes\nguarantee none");
    assert_eq!(
        search(&unordered, 2, 1),
        violation_of("every store is performed once")
    );
    assert!(search(STORE_PERFORMED_TWICE, 2, 1).is_err());
    // A posted store is written and deferred, while its core has another posted store that could be mistaken for it.
    let twice = STORE_THAT_WAITS.replace("L | W     | defer", "L | W | write, defer");
    assert_eq!(
        both_sizes(&twice),
        [(); 2].map(|()| violation_of("every store is performed once"))
    );
}

/// Regression: if a row posts a store by two messages, the second message got the ticket of a completed access, and
/// performing both was no violation.
#[test]
fn store_posted_by_two_messages_is_performed_once() {
    let text = "
protocol doubled
line 64 bytes
guarantee none
channels { put remote -> home; more remote -> home; reply home -> remote }
messages { put: W (partial store); more: X (partial store); reply: Free }
remote cache {
  states { I }
  variables { open: 0..2 }
  I | store if open == 0 | send W, send X, open := 2 | stay
  I | Free               | open -= 1                 | stay
}
home mem {
  states { L }
  L | W | write, send Free | stay
  L | X | send Free        | stay
}
";
    for found in both_sizes(text) {
        found.unwrap();
    }
    let doubled = text.replace("L | X | send", "L | X | write, send");
    let twice = "every store is performed once";
    assert_eq!(
        both_sizes(&doubled),
        [violation_of(twice), violation_of(twice)]
    );
    // Only the first message carries the store.
    let second = doubled.replace("L | W | write,", "L | W |");
    assert_eq!(
        both_sizes(&second),
        [violation_of(twice), violation_of(twice)]
    );
}

/// A store that is sent again after the home has performed it is the same store.
#[test]
fn resend_of_a_performed_store_is_detected() {
    let text = "
protocol again
line 64 bytes
channels { put remote -> home; reply home -> remote }
messages { put: W (partial store, second: bool); reply: Again, Done }
remote cache {
  states { I; T waits Again; D waits Done }
  I | store | send W (second = false) | T
  T | Again | send W (second = true)  | D
  D | Done  | done | I
}
home mem {
  states { L }
  L | W if second | write, send Done | stay
  L | W           | send Again       | stay
}
";
    search(text, 2, 1).unwrap();
    let twice = text.replace("| send Again       |", "| write, send Again |");
    assert_eq!(search(&twice, 2, 1), violation_of("data value"));
    // The store is abandoned after the home has performed it.
    let abandoned = text
        .replace("Again, Done }", "Again, Done, Nack }")
        .replace("D waits Done", "D waits Done Nack")
        .replace("T | Again ", "D | Nack | | I\n  T | Again ")
        .replace("states { L }", "states { L }\n  variables { turn: bool }")
        .replace(
            "L | W if second | write, send Done | stay",
            "L | W if second and turn | write, send Nack, turn := false | stay
             L | W if second          | write, send Done, turn := true  | stay",
        );
    assert_eq!(search(&abandoned, 2, 1), violation_of("data value"));
}

/// An order of messages or a guard of the read corrects [`OWN_STORE`]; a weaker guarantee permits the behaviour.
#[test]
fn reads_find_the_posted_stores_of_their_own_remote() {
    let property = "program order of one line";
    assert_eq!(
        both_sizes(OWN_STORE),
        [violation_of(property), violation_of(property)]
    );
    // If loads and stores share one order, a load finds all earlier stores, whatever their number.
    let ordered = OWN_STORE
        .replace("reply home", "ordered put, read; reply home")
        .replace("0..1", "0..3")
        .replace("open < 1", "open < 3");
    for found in both_sizes(&ordered) {
        found.unwrap();
    }
    // Loads also find them if the protocol reads only while no posted store is outstanding.
    let waits = OWN_STORE.replace("| load  ", "| load if open == 0 ");
    for found in both_sizes(&waits) {
        found.unwrap();
    }
    // A protocol without program order of a line declares so.
    let without_guarantee = OWN_STORE.replace("line 64 bytes", "line 64 bytes\nguarantee none");
    for found in both_sizes(&without_guarantee) {
        found.unwrap();
    }
}

/// Two posted stores of one remote must not overtake each other, in a channel or at the home.
#[test]
fn posted_stores_of_a_remote_are_performed_in_order() {
    let property = "program order of one line";
    let two = OWN_STORE
        .replace("| load  ", "| load if open == 0 ")
        .replace("0..1", "0..2")
        .replace("open < 1", "open < 2");
    assert_eq!(
        both_sizes(&two),
        [violation_of(property), violation_of(property)]
    );
    let ordered = two.replace("reply home", "ordered put; reply home");
    for found in both_sizes(&ordered) {
        found.unwrap();
    }
    // The first store is deferred, and the second is not.
    let passed = STORE_THAT_WAITS
        .replace("guarantee none\n", "")
        .replace("reply home", "ordered put, read; reply home")
        .replace("Get, Flush", "Get; ask: Flush")
        .replace(
            "reply home -> remote }",
            "reply home -> remote; ask remote -> home }",
        )
        .replace(
            "L A | Get | send Data | stay",
            "L | Get | send Data | stay; A | Get | stall",
        );
    for found in both_sizes(&passed) {
        found.unwrap();
    }
    let passes = passed.replace("A | W     | stall", "A | W | write, send Free | stay");
    assert_eq!(
        both_sizes(&passes),
        [violation_of(property), violation_of(property)]
    );
}

/// The fault: the old value of an atomic access is sent before other stores, and its own store is performed after them.
#[test]
fn atomic_access_excludes_intervening_stores() {
    let split = "atomicity";
    assert_eq!(search(SPLIT_ATOMIC, 2, 1), violation_of(split));
    search(SPLIT_ATOMIC, 1, 1).unwrap();
    let without_guarantee = SPLIT_ATOMIC.replace("line 64 bytes", "line 64 bytes\nguarantee none");
    assert_eq!(search(&without_guarantee, 2, 1), violation_of(split));
    // Stores of other remotes stall.
    let waits = SPLIT_ATOMIC.replace(
        "L A | Write | write, send Done | stay",
        "L | Write | write, send Done | stay; A | Write | stall",
    );
    search(&waits, 2, 1).unwrap();
    // The response already contains the store.
    let stores_first = waits.replace("defer, send Old", "write, send Old");
    let stores_first = stores_first.replace("write deferred, send Done", "send Done");
    assert_eq!(search(&stores_first, 2, 1), violation_of(split));
    // The home reads and writes in one step.
    let one_step = include_str!("../../../../ordering/so-strict.coh");
    search(one_step, 2, 1).unwrap();
    let write_first = one_step.replace("send OldValue, write,", "write, send OldValue,");
    assert_eq!(search(&write_first, 2, 1), violation_of(split));
}
