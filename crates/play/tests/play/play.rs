//! Exploration of applications with their protocol: two lines, in separate units and in one unit.

use cohkit_diagnostics::Span;
use cohkit_testing::mutations::kept_without_permission;
use cohkit_testing::mutations::retried_store::retried_store;

use cohkit_application::interface::{
    Action, Actions, Application, Contents, Event, Line, Operation, Placement, Scenario, Step,
    Thread, Update,
};
use cohkit_application::invalidation::Invalidation;
use cohkit_application::locks::LockTable;
use cohkit_application::prefetcher::Prefetch;
use cohkit_application::rpc::Calls;
use cohkit_application::shared_table::SharedTable;
use cohkit_application::view::{Order, View};
use cohkit_play::{explore, ExplorationModel, ExplorationResult};
use cohkit_protocol::construct::construct;
use cohkit_protocol::protocol::{Bound, Bounds, Home, Protocol};
use cohkit_protocol::text::parse;
use kept_without_permission::{kept_without_permission, kept_without_permission_and_stale};
use std::fmt::Debug;
use std::hash::Hash;

/// Explores a scenario on ECI, with lines of one word and units with one outstanding read. `max_deferred` is the
/// maximum number of requests that a unit defers.
fn explore_eci<S: Scenario>(
    scenario: &S,
    remotes: u16,
    lines: Line,
    units: u32,
    max_deferred: usize,
) -> ExplorationResult
where
    S::Application: Clone + Eq + Hash + Debug,
    S::Thread: Clone + Eq + Hash + Debug,
{
    explore_eci_with(scenario, remotes, (lines, 1), (units, max_deferred, 1))
}

/// Explores a scenario on ECI, with lines of the given number of words, and units with the given number of outstanding
/// reads.
fn explore_eci_with<S: Scenario>(
    scenario: &S,
    remotes: u16,
    (lines, words): (Line, u16),
    (units, max_deferred, max_reads): (u32, usize, usize),
) -> ExplorationResult
where
    S::Application: Clone + Eq + Hash + Debug,
    S::Thread: Clone + Eq + Hash + Debug,
{
    let protocol = parse(&eci()).expect("protocol without errors");
    let system = ((lines, words), (units, max_deferred, max_reads));
    explore_protocol(&protocol, &Bounds::default(), scenario, remotes, system)
}

/// Reads the file of ECI.
fn eci() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../protocols/eci.coh");
    std::fs::read_to_string(path).expect("ECI")
}

/// Explores a scenario on a given protocol. The home is constructed without `bounds`, which only the exploration
/// obeys.
fn explore_protocol<S: Scenario>(
    protocol: &Protocol,
    bounds: &Bounds,
    scenario: &S,
    remotes: u16,
    ((lines, words), (units, max_deferred, max_reads)): ((Line, u16), (u32, usize, usize)),
) -> ExplorationResult
where
    S::Application: Clone + Eq + Hash + Debug,
    S::Thread: Clone + Eq + Hash + Debug,
{
    let construction = construct(protocol).expect("protocol with a home");
    let bounded_protocol = Protocol {
        bounds: bounds.clone(),
        ..protocol.clone()
    };
    explore(&ExplorationModel {
        protocol: &bounded_protocol,
        home: &construction.controller(remotes),
        permissions: &construction.permissions(remotes),
        scenario,
        remotes,
        lines,
        words,
        units,
        max_deferred,
        max_reads,
        max_states: 1_000_000,
    })
}

/// Asserts that all properties hold, and returns the number of states.
#[track_caller]
fn assert_verified(result: &ExplorationResult) -> usize {
    match result {
        ExplorationResult::Verified {
            states,
            final_states,
        } => {
            assert!(*final_states > 0);
            *states
        }
        ExplorationResult::Violated { violation, steps } => {
            panic!("{violation}\n{}", steps.join("\n"))
        }
        ExplorationResult::NotExplored(violation) => panic!("{violation}"),
        ExplorationResult::Undecided { states } => panic!("undecided after {states}"),
    }
}

/// Returns a scenario in which a device and a thread increment each row once.
fn table(rows: Line) -> SharedTable {
    SharedTable {
        cached: false,
        rows,
        contended: 1000,
        engines: 1,
        outstanding: 2,
        device: Some(u64::from(rows)),
        threads: 1,
        thread: Some(u64::from(rows)),
    }
}

/// Two lines in separate units, and in one unit that defers one request or none: (units, deferred requests).
const UNITS: [(u32, usize); 3] = [(2, 1), (1, 1), (1, 0)];

/// The final sum of the rows is checked for every arrangement of units.
#[test]
fn no_increment_of_a_shared_table_is_lost() {
    let state_counts = UNITS.map(|(units, max_deferred)| {
        assert_verified(&explore_eci(&table(2), 1, 2, units, max_deferred))
    });
    // Two lines that share a unit delay each other.
    assert!(state_counts[0] > state_counts[1], "{state_counts:?}");
}

/// Two threads on separate caches, and the device, use one row.
#[test]
fn shared_table_of_two_caches_is_verified() {
    let table = SharedTable {
        cached: false,
        threads: 2,
        ..table(1)
    };
    for max_deferred in [0, 1] {
        assert_verified(&explore_eci(&table, 2, 1, 1, max_deferred));
    }
}

/// The device invalidates lines that the CPU holds dirty, clean, or not.
#[test]
fn invalidation_is_verified() {
    for (dirty, held) in [(true, true), (false, true), (false, false)] {
        let engine = Invalidation {
            lines: 1,
            outstanding: 1,
            dirty,
            held,
            start_delay: 0,
            cached: false,
        };
        assert_verified(&explore_eci(&engine, 1, 2, 1, 0));
    }
}

/// The device answers reads from prefetched blocks, which must follow the CPU's writes.
#[test]
fn prefetcher_is_verified() {
    for (blocks, burst) in [(0, 1), (1, 1), (1, 2), (2, 2)] {
        let prefetch = Prefetch {
            hints: 0,
            lines: 2,
            blocks,
            block: 2,
            burst,
            threads: 1,
            reads: Some(3),
            written: 0,
        };
        let writing = Prefetch {
            written: 500,
            ..prefetch.clone()
        };
        for (units, max_deferred) in UNITS {
            assert_verified(&explore_eci(&prefetch, 1, 2, units, max_deferred));
            assert_verified(&explore_eci(&writing, 1, 2, units, max_deferred));
        }
    }
}

/// Both control lines in one unit that defers no request: the device withholds one line while it takes the other.
#[test]
fn calls_return() {
    let calls = Calls::new(1, 1, Some(3));
    for (units, max_deferred) in UNITS {
        assert_verified(&explore_eci(&calls, 1, 2, units, max_deferred));
    }
}

/// The device answers reads of several lines of one call, whichever it receives first. Caches evict no clean line, which
/// keeps the number of states small.
#[test]
fn calls_with_prefetched_results_return() {
    let protocol = parse(&eci()).expect("protocol without errors");
    let victims = protocol.message_ids().filter(|&id| {
        let name = &protocol.message(id).name;
        ["VictimShared", "VictimClean"].contains(&name.as_str())
    });
    let bounds = Bounds {
        per_message: victims.map(|victim| (victim, bound(0))).collect(),
        ..Bounds::default()
    };
    assert_eq!(bounds.per_message.len(), 2);
    let states = |hints| {
        let calls = Calls {
            hints,
            ..Calls::new(1, 2, Some(1))
        };
        UNITS.map(|(units, max_deferred)| {
            let system = ((4, 1), (units, max_deferred, 1));
            assert_verified(&explore_protocol(&protocol, &bounds, &calls, 1, system))
        })
    };
    let (without, with) = (states(0), states(1));
    assert!(
        without
            .iter()
            .zip(&with)
            .all(|(without, with)| with > without),
        "{without:?} {with:?}"
    );
}

/// The CPU and the device use one table of locks. The device updates a lock's word in one memory operation, or reads
/// and writes the line.
#[test]
fn locks_exclude_each_other() {
    let sizes = [(1, 1), (2, 1), (1, 2)].into_iter();
    let sizes = sizes.flat_map(|size| [(size, false), (size, true)]);
    for ((records, device), words) in sizes {
        let table = LockTable {
            words,
            cached: false,
            records,
            threads: 1,
            device,
            hold: 1,
            pause: 1,
            transactions: Some(1),
            messages: false,
        };
        for (units, max_deferred) in UNITS {
            assert_verified(&explore_eci(&table, 1, 2, units, max_deferred));
        }
    }
}

/// Thread steps outside coherence are rejected, not ignored.
#[test]
fn messages_over_a_bus_are_not_explored() {
    let table = LockTable {
        words: false,
        cached: false,
        records: 1,
        threads: 1,
        device: 0,
        hold: 1,
        pause: 1,
        transactions: Some(1),
        messages: true,
    };
    let ExplorationResult::NotExplored(reason) = explore_eci(&table, 1, 1, 1, 1) else {
        panic!("it is refused");
    };
    assert!(
        reason.contains("registers and the CPU's own memory cannot be explored"),
        "{reason}"
    );
}

/// Accesses to a separate space of host memory are outside the model, and no violation.
#[test]
fn host_memory_of_a_view_is_not_explored() {
    let order = Order {
        customer: 1,
        price: 5,
    };
    let view = View {
        orders: vec![order].into(),
        updates: 1,
        transactions: 1,
        incremental: true,
        words: 2,
        outstanding: 1,
        in_host: true,
    };
    let lines = (view.lines(), 2);
    let ExplorationResult::NotExplored(reason) = explore_eci_with(&view, 1, lines, (4, 1, 1))
    else {
        panic!("it is refused");
    };
    assert!(
        reason.contains("the CPU's own memory cannot be explored"),
        "{reason}"
    );
}

/// A view of one line, two synchronisation addresses and the base table: one row in two lines of one word, or rows in
/// lines of two words. One or two transactions append the rows.
#[test]
fn view_update_is_verified() {
    let order = Order {
        customer: 1,
        price: 5,
    };
    for (words, transactions, units, max_deferred) in [(2, 1, 4, 1), (1, 1, 1, 0), (2, 2, 1, 0)] {
        for incremental in [true, false] {
            let view = View {
                orders: vec![order; transactions as usize].into(),
                updates: 1,
                transactions,
                incremental,
                words: words.into(),
                outstanding: 1,
                in_host: false,
            };
            let lines = (view.lines(), words);
            assert_verified(&explore_eci_with(&view, 1, lines, (units, max_deferred, 1)));
        }
    }
}

/// Withholds the answer to each read until it has taken the other line from the CPU, with or without a lock. If the
/// other line is read meanwhile, it withholds both answers; the second line can be taken only after its read is
/// complete.
#[derive(Clone)]
struct Withholding {
    /// True if the application locks the line that it takes.
    locks: bool,
    /// First line of each thread, and the number of increments that it makes to both lines in turn.
    threads: [(Line, u8); 2],
}

/// Application of [`Withholding`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Withholder {
    /// As in [`Withholding`].
    locks: bool,
    /// The line being taken.
    taking: Option<Line>,
    /// Contents of the two lines.
    rows: [u64; 2],
}

impl Withholder {
    fn answer(&self, line: Line, actions: &mut Actions) {
        actions.answer(line, vec![self.rows[line as usize]].into());
    }
}

impl Application for Withholder {
    fn name(&self) -> &str {
        "withholder"
    }
    fn placement(&self) -> Placement {
        Placement::MemoryPath(0..2)
    }
    fn handle(&mut self, event: Event, actions: &mut Actions) {
        match event {
            Event::Read { line, .. } if self.taking == Some(line) => actions.wake(line, 1),
            Event::Timer { tag } => self.answer(tag, actions),
            Event::Read { line, .. } => {
                self.taking = Some(1 - line);
                actions.local(1 - line, Operation::CleanInvalidate, self.locks);
            }
            Event::LocalCompletion { line, .. } => {
                self.taking = None;
                if self.locks {
                    actions.unlock(line);
                }
                self.answer(1 - line, actions);
            }
            Event::Write { line, words, .. } => {
                self.rows[line as usize] = words[0];
                actions.accept(line);
            }
            _ => {}
        }
    }
}

/// Increments both lines in turn.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Both {
    /// Line to be incremented next.
    next: Line,
    /// Number of increments left.
    remaining: u8,
}

impl Thread for Both {
    fn step(&mut self, _result: u64) -> Step {
        if self.remaining == 0 {
            return Step::Stop;
        }
        let line = self.next;
        self.next = 1 - line;
        self.remaining -= 1;
        Step::Update {
            line,
            word: 0,
            update: Update::Add(1),
        }
    }
}

impl Scenario for Withholding {
    type Application = Withholder;
    type Thread = Both;
    fn lines(&self) -> Line {
        2
    }
    fn terminates(&self) -> bool {
        true
    }
    fn application(&self) -> Withholder {
        Withholder {
            locks: self.locks,
            taking: None,
            rows: [0; 2],
        }
    }
    fn threads(&self) -> Vec<Both> {
        let threads = self.threads.map(|(next, left)| Both {
            next,
            remaining: left,
        });
        threads.to_vec()
    }
    fn verify(&self, _: &Withholder, _: &[Both], contents: &dyn Contents) -> Result<(), String> {
        let rows = [0, 1].map(|line| contents.word(line, 0));
        let mut increments = [0; 2];
        for (first_line, times) in self.threads {
            for time in 0..Line::from(times) {
                increments[((first_line + time) % 2) as usize] += 1;
            }
        }
        match rows == increments {
            true => Ok(()),
            false => Err(format!(
                "the rows are {rows:?} after {increments:?} increments"
            )),
        }
    }
}

/// Withheld answers do not deadlock, whether units are shared or not.
#[test]
fn applications_may_withhold_one_or_two_lines() {
    for locks in [false, true] {
        for (units, max_deferred) in [(2, 1), (1, 0)] {
            let threads = [(0, 2), (1, 2)];
            let withholding = Withholding { locks, threads };
            assert_verified(&explore_eci(&withholding, 1, 2, units, max_deferred));
        }
    }
}

/// Two caches pass a line to each other through memory, which takes a memory read. If the application takes that line
/// while it withholds another, and the unit has only one outstanding read, the system deadlocks.
#[test]
fn withheld_read_keeps_its_position() {
    let withholding = Withholding {
        locks: false,
        threads: [(1, 1), (1, 2)],
    };
    let explore_with_reads =
        |max_reads| explore_eci_with(&withholding, 2, (2, 1), (1, 0, max_reads));
    let ExplorationResult::Violated { violation, .. } = explore_with_reads(1) else {
        panic!("there is one place");
    };
    expect_test::expect!["the end is unreachable from here; thread 0 waits for Update { line: 1, word: 0, update: Add(1) }; thread 1 waits for Update { line: 0, word: 0, update: Add(1) }; withholder has not answered a read of line 0; withholder waits for its clean-invalidate of line 1; line 0: home in home; line 1: home in home"].assert_eq(&violation);
    assert_verified(&explore_with_reads(2));
}

/// A fault of an application: it omits or repeats an action, or acts too early.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Slip {
    /// Drops each unlock.
    NeverUnlocks,
    /// Takes lines without a lock.
    NeverLocks,
    /// Releases the lock before memory has completed the write.
    UnlocksEarly,
    /// Answers no read.
    NeverAnswers,
    /// Answers each read twice.
    AnswersTwice,
    /// Accepts no write.
    NeverAccepts,
}

impl Slip {
    /// Returns the actions that replace an action.
    fn replacement_actions(self, action: Action) -> Vec<Action> {
        match (self, action) {
            (Slip::NeverUnlocks | Slip::UnlocksEarly, Action::Unlock { .. })
            | (Slip::NeverAnswers, Action::Answer { .. })
            | (Slip::NeverAccepts, Action::Accept { .. }) => vec![],
            (Slip::UnlocksEarly, Action::Store { tag, line, words }) => {
                vec![Action::Store { tag, line, words }, Action::Unlock { line }]
            }
            (Slip::AnswersTwice, action @ Action::Answer { .. }) => vec![action.clone(), action],
            (
                Slip::NeverLocks,
                Action::Local {
                    line, operation, ..
                },
            ) => vec![Action::Local {
                line,
                operation,
                lock: false,
            }],
            (_, action) => vec![action],
        }
    }
}

/// A scenario whose application has a fault.
#[derive(Clone)]
struct Faulty<S>(S, Slip);

/// An application with a fault.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Fault<A>(A, Slip);

impl<A: Application> Application for Fault<A> {
    fn name(&self) -> &str {
        self.0.name()
    }
    fn placement(&self) -> Placement {
        self.0.placement()
    }
    fn handle(&mut self, event: Event, actions: &mut Actions) {
        let mut intended_actions = Actions::new();
        self.0.handle(event, &mut intended_actions);
        for action in intended_actions
            .take()
            .flat_map(|action| self.1.replacement_actions(action))
        {
            actions.push(action);
        }
    }
}

impl<S: Scenario> Scenario for Faulty<S> {
    type Application = Fault<S::Application>;
    type Thread = S::Thread;
    fn lines(&self) -> Line {
        self.0.lines()
    }
    fn terminates(&self) -> bool {
        self.0.terminates()
    }
    fn application(&self) -> Self::Application {
        Fault(self.0.application(), self.1)
    }
    fn threads(&self) -> Vec<S::Thread> {
        self.0.threads()
    }
    fn verify(
        &self,
        application: &Self::Application,
        threads: &[S::Thread],
        contents: &dyn Contents,
    ) -> Result<(), String> {
        self.0.verify(&application.0, threads, contents)
    }
}

/// Returns the description of the violation that a faulty application causes.
fn violation<S>(scenario: &S, slip: Slip) -> String
where
    S: Scenario + Clone,
    S::Application: Clone + Eq + Hash + Debug,
    S::Thread: Clone + Eq + Hash + Debug,
{
    match explore_eci(&Faulty(scenario.clone(), slip), 1, 2, 1, 1) {
        ExplorationResult::Violated {
            violation: message,
            steps,
        } => {
            format!("{slip:?}: {message}\n  {}\n", steps.join("\n  "))
        }
        result => panic!("{slip:?}: {result:?}"),
    }
}

/// Each fault breaks the contract, the scenario's own verification, or the reachability of the end.
#[test]
fn application_mistakes_are_detected() {
    let calls = Calls::new(1, 1, Some(2));
    let violations = [
        violation(&table(1), Slip::NeverUnlocks),
        violation(&table(1), Slip::NeverLocks),
        violation(&table(1), Slip::UnlocksEarly),
        violation(&calls, Slip::NeverAnswers),
        violation(&calls, Slip::AnswersTwice),
        violation(&calls, Slip::NeverAccepts),
    ];
    expect_test::expect![[r#"
        NeverUnlocks: the end is unreachable from here; thread 0 waits for Update { line: 0, word: 0, update: Add(1) }; shared table has not released its lock of line 0; line 0: home in I.lock; line 1: home in I
          thread 0: Update { line: 0, word: 0, update: Add(1) }
          line 0: the home takes clean_invalidate_lock
          line 0: the home takes ReadExclusive from cpu
          shared table hears LocalCompletion { line: 0, operation: CleanInvalidate, dirty: false }
          shared table fetches line 0
          shared table stores line 0
        NeverLocks: line 0: shared table writes memory of a line that it has not locked and invalidated
          line 0: the home takes clean_invalidate
          shared table hears LocalCompletion { line: 0, operation: CleanInvalidate, dirty: false }
          shared table fetches line 0
        UnlocksEarly: shared table changes line 0, of which cpu has a copy
          thread 0: Update { line: 0, word: 0, update: Add(1) }
          line 0: the home takes clean_invalidate_lock
          shared table hears LocalCompletion { line: 0, operation: CleanInvalidate, dirty: false }
          shared table fetches line 0
          line 0: the home takes the unlock
          line 0: the home takes ReadExclusive from cpu
          line 0: the home's read ends
          line 0: cpu takes DataExclusive
          shared table stores line 0
        NeverAnswers: the end is unreachable from here; thread 0 waits for Store { line: 0, word: 0, value: 65537 }; two-line RPC has not answered a read of line 0; line 0: home in I:ReadExclusive.rd; line 1: home in I
          thread 0: Store { line: 0, word: 0, value: 65537 }
          line 0: the home takes ReadExclusive from cpu
          two-line RPC hears Read { line: 0, wants: Write, has: None }
        AnswersTwice: line 0: two-line RPC answers a read that is not outstanding
          thread 0: Store { line: 0, word: 0, value: 65537 }
          line 0: the home takes ReadExclusive from cpu
          two-line RPC hears Read { line: 0, wants: Write, has: None }
        NeverAccepts: the end is unreachable from here; thread 0 waits for LoadExclusive { line: 1, word: 0 }; two-line RPC has not accepted a write of line 0; two-line RPC has not answered a read of line 1; two-line RPC waits for its clean-invalidate of line 0; line 0: home in I.wr.clean_invalidate; line 1: home in I:ReadExclusive.rd
          thread 0: Store { line: 0, word: 0, value: 65537 }
          line 0: the home takes ReadExclusive from cpu
          two-line RPC hears Read { line: 0, wants: Write, has: None }
          line 0: the home's read ends
          line 0: cpu takes DataExclusive
          thread 0: Store { line: 0, word: 0, value: 65537 }
          thread 0: LoadExclusive { line: 1, word: 0 }
          line 0: cpu does evict
          line 1: the home takes ReadExclusive from cpu
          two-line RPC hears Read { line: 1, wants: Write, has: None }
          two-line RPC hears PermissionChange { line: 0, from: None, to: Write }
          line 0: the home takes VictimDirty from cpu
          line 0: the home takes clean_invalidate
          two-line RPC hears Write { line: 0, words: [65537], keeps: None }
          two-line RPC hears PermissionChange { line: 0, from: Write, to: None }
    "#]].assert_eq(&violations.concat());
}

/// Threads that execute the given steps, and a device without behaviour.
#[derive(Clone)]
struct Steps(Vec<Vec<Step>>);

/// Device application without behaviour.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Idle;

impl Application for Idle {
    fn name(&self) -> &str {
        "idle"
    }
    fn placement(&self) -> Placement {
        Placement::Observer
    }
    fn handle(&mut self, _: Event, _: &mut Actions) {}
}

/// Thread that executes given steps.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Follows {
    /// Steps in order; the thread stops after the last one.
    steps: Vec<Step>,
    /// Index of the next step.
    next: usize,
}

impl Thread for Follows {
    fn step(&mut self, _result: u64) -> Step {
        let step = self.steps.get(self.next).copied();
        self.next += 1;
        step.unwrap_or(Step::Stop)
    }
}

impl Scenario for Steps {
    type Application = Idle;
    type Thread = Follows;
    fn lines(&self) -> Line {
        1
    }
    fn terminates(&self) -> bool {
        true
    }
    fn application(&self) -> Idle {
        Idle
    }
    fn threads(&self) -> Vec<Follows> {
        let steps = self.0.iter().cloned();
        steps.map(|steps| Follows { steps, next: 0 }).collect()
    }
    fn verify(&self, _: &Idle, _: &[Follows], _: &dyn Contents) -> Result<(), String> {
        Ok(())
    }
}

/// Load of the only word.
const LOAD: Step = Step::Load { line: 0, word: 0 };
/// Store of an arbitrary value to the only word.
const STORE: Step = Step::Store {
    line: 0,
    word: 0,
    value: 7,
};
/// One line of one word, and one unit that defers one request and has one outstanding read.
const ONE_LINE: ((Line, u16), (u32, usize, usize)) = ((1, 1), (1, 1, 1));

/// Creates a bound that the exploration obeys.
fn bound(limit: u16) -> Bound {
    let span = Span { start: 0, end: 0 };
    Bound { limit, span }
}

/// Regression: formerly only simulator and checker verified these bytes.
#[test]
fn access_bytes_equal_the_last_write() {
    let threads = Steps(vec![vec![STORE], vec![LOAD]]);
    let explore_text = |text: &str| {
        let protocol = parse(text).expect("protocol without errors");
        explore_protocol(&protocol, &Bounds::default(), &threads, 2, ONE_LINE)
    };
    let ExplorationResult::Violated { violation, .. } =
        explore_text(&kept_without_permission_and_stale(&eci()))
    else {
        panic!("old bytes are used");
    };
    expect_test::expect!["DataOnce carries a stale copy for an access that does not cache it"]
        .assert_eq(&violation);
    assert_verified(&explore_text(&kept_without_permission(&eci())));
}

/// A store that first gives up a permission and is retried is performed once, for any interleaving.
#[test]
fn retried_accesses_are_performed_once() {
    let retrying_text = retried_store(&eci());
    let threads = Steps(vec![vec![LOAD, STORE, LOAD], vec![LOAD, STORE]]);
    let protocol = parse(&retrying_text).expect("protocol without errors");
    let bounds = Bounds::default();
    assert_verified(&explore_protocol(&protocol, &bounds, &threads, 2, ONE_LINE));
    assert_verified(&explore_protocol(
        &protocol,
        &bounds,
        &table(1),
        1,
        ONE_LINE,
    ));
}

/// Regression: prefetches formerly ignored the bounds. Here the bounds permit no ReadShared, so nothing happens.
#[test]
fn prefetches_obey_bounds() {
    let protocol = parse(&eci()).expect("protocol without errors");
    let read = protocol
        .message_ids()
        .find(|&id| protocol.message(id).name == "ReadShared");
    let no_reads = Bounds {
        per_message: vec![(read.expect("ECI"), bound(0))],
        ..Bounds::default()
    };
    let prefetch_line = Steps(vec![vec![Step::Prefetch { line: 0 }]]);
    let states = |bounds: &Bounds| {
        assert_verified(&explore_protocol(
            &protocol,
            bounds,
            &prefetch_line,
            1,
            ONE_LINE,
        ))
    };
    assert_eq!(states(&no_reads), 1);
    assert!(states(&Bounds::default()) > 1);
}

/// The error has the same wording as those of the checker and the simulator.
#[test]
fn explorations_count_messages_in_flight() {
    let protocol = parse(&eci()).expect("protocol without errors");
    let at_most = |limit| Bounds {
        in_flight: Some(bound(limit)),
        ..Bounds::default()
    };
    let threads = Steps(vec![vec![STORE], vec![STORE]]);
    let explore_with_limit =
        |limit| explore_protocol(&protocol, &at_most(limit), &threads, 2, ONE_LINE);
    let ExplorationResult::Violated { violation, .. } = explore_with_limit(1) else {
        panic!("a request and a forward are in flight at once");
    };
    expect_test::expect!["more than 1 message in flight for line 0, from or to cpu 0"]
        .assert_eq(&violation);
    assert_verified(&explore_with_limit(8));
}

/// Regression: the consumed message was removed only after the home had sent. By then its position belonged to another
/// message if the protocol file names the sent message first.
#[test]
fn declaration_order_of_messages_has_no_effect() {
    let text = eci();
    let (head, rest) = text.split_once("  request:  ").expect("`request:` line");
    let (requests, rest) = rest.split_once("  grant:    ").expect("`grant:` line");
    let (grants, tail) = rest.split_once("\n}").expect("end of the messages block");
    let swapped = format!(
        "{head}  grant:    {grants}\n  request:  {}\n}}{tail}",
        requests.trim_end()
    );
    let threads = Steps(vec![vec![STORE, LOAD], vec![LOAD, STORE]]);
    let [original_states, swapped_states] = [&text, &swapped].map(|text| {
        let protocol = parse(text).expect("protocol without errors");
        assert_verified(&explore_protocol(
            &protocol,
            &Bounds::default(),
            &threads,
            2,
            ONE_LINE,
        ))
    });
    assert_eq!(original_states, swapped_states);
}

/// Explores threads on a shipped protocol whose home consists of rows, from this file with a change. Returns the reason
/// why they are outside the model. Only applications use the home's knowledge of permissions, which a home of rows lacks;
/// it is that of ECI.
#[track_caller]
fn unexplored_reason(file: &str, change: fn(&str) -> String, threads: Steps) -> String {
    let path = format!("{}/../../protocols/{file}.coh", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("shipped protocol");
    let protocol = parse(&change(&text)).unwrap_or_else(|errors| panic!("{errors:?}"));
    let Home::Controller(home) = &protocol.home else {
        panic!("{file} has no rows of its home")
    };
    let remotes = threads.0.len() as u16;
    let eci = parse(&eci()).expect("protocol without errors");
    let construction = construct(&eci).expect("protocol with a home");
    let result = explore(&ExplorationModel {
        protocol: &protocol,
        home,
        permissions: &construction.flat_permissions(false),
        scenario: &threads,
        remotes,
        lines: 1,
        words: 1,
        units: 1,
        max_deferred: 1,
        max_reads: 1,
        max_states: 10_000,
    });
    let ExplorationResult::NotExplored(reason) = result else {
        panic!("{file} is explored: {result:?}")
    };
    reason
}

#[test]
fn accesses_of_a_specification_are_not_explored() {
    let acquire = Step::Acquire { line: 0, word: 0 };
    assert_eq!(
        unexplored_reason(
            "self-invalidate",
            str::to_string,
            Steps(vec![vec![acquire]])
        ),
        "thread 0: the specification has a custom access `acquire`, which only simulations support"
    );
}

#[test]
fn writes_sent_to_the_home_are_not_explored() {
    assert_eq!(
        unexplored_reason("write-through", str::to_string, Steps(vec![vec![STORE]])),
        "writes that caches send to the home cannot be explored"
    );
}

/// A dirty line is evicted, and the home writes it to memory at once.
#[test]
fn homes_with_zero_latency_memory_are_not_explored() {
    assert_eq!(
        unexplored_reason("msi", str::to_string, Steps(vec![vec![STORE]])),
        "homes with zero-latency memory cannot be explored"
    );
}

/// A sharer acknowledges its invalidation to the cache that stores. The home takes no evicted dirty line before.
#[test]
fn messages_between_caches_are_not_explored() {
    let without_write_backs = |text: &str| {
        let lines = text.lines().map(|line| match line {
            line if line.contains("PutM if sender == owner") => {
                "  M | PutM if sender == owner | stall |"
            }
            line => line,
        });
        lines.collect::<Vec<_>>().join("\n")
    };
    let threads = Steps(vec![vec![LOAD], vec![STORE]]);
    assert_eq!(
        unexplored_reason("msi", without_write_backs, threads),
        "caches that send messages to each other cannot be explored"
    );
}

/// With each line, the home sends a message that concerns all lines of the cache.
#[test]
fn bulk_transitions_are_not_explored() {
    let with_flushes = |text: &str| {
        let text = text
            .replace("grant:   Data (line)", "grant:   Flush, Data (line)")
            .replace("-       | acquired ", "-       | Flush    ")
            .replace("send Data        |", "send Flush, send Data |");
        assert_eq!(text.matches("Flush").count(), 3);
        text
    };
    assert_eq!(
        unexplored_reason("self-invalidate", with_flushes, Steps(vec![vec![LOAD]])),
        "`every V becomes I` changes all lines, and cannot be explored"
    );
}

/// An action of an application, and the reason that the result states.
type ForeignAction = (fn(&mut Actions), &'static str);

/// Actions of applications outside the model.
const FOREIGN_ACTIONS: [ForeignAction; 6] = [
    (|actions| actions.host_fetch(0, 0, 1), BUS),
    (|actions| actions.host_store(0, vec![1].into()), BUS),
    (|actions| actions.interrupt(0), BUS),
    (|actions| actions.coherent_load(0, 0, 1, true), HOST),
    (
        |actions| actions.coherent_store(0, 0, vec![1].into(), true),
        HOST,
    ),
    (
        |actions| actions.coherent_update(0, 0, Update::Add(1)),
        HOST,
    ),
];
/// Reason of actions on registers, on the CPU's own memory, and of interrupts.
const BUS: &str = "foreign: registers and the CPU's own memory cannot be explored here";
/// Reason of actions on the host's memory as a space of its own.
const HOST: &str = "foreign: accesses to the host's memory cannot be explored";

/// A device that answers each read of the line with the action of this index in [`FOREIGN_ACTIONS`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Foreign(usize);

impl Application for Foreign {
    fn name(&self) -> &str {
        "foreign"
    }
    fn placement(&self) -> Placement {
        Placement::MemoryPath(0..1)
    }
    fn handle(&mut self, event: Event, actions: &mut Actions) {
        if let Event::Read { .. } = event {
            FOREIGN_ACTIONS[self.0].0(actions);
        }
    }
}

impl Scenario for Foreign {
    type Application = Foreign;
    type Thread = Follows;
    fn lines(&self) -> Line {
        1
    }
    fn terminates(&self) -> bool {
        true
    }
    fn application(&self) -> Foreign {
        self.clone()
    }
    fn threads(&self) -> Vec<Follows> {
        let steps = vec![LOAD];
        vec![Follows { steps, next: 0 }]
    }
    fn verify(&self, _: &Foreign, _: &[Follows], _: &dyn Contents) -> Result<(), String> {
        Ok(())
    }
}

/// Shipped applications test the steps of threads outside the model.
#[test]
fn actions_outside_the_model_are_not_explored() {
    for (number, (_, reason)) in FOREIGN_ACTIONS.iter().enumerate() {
        let result = explore_eci(&Foreign(number), 1, 1, 1, 1);
        assert_eq!(result, ExplorationResult::NotExplored(reason.to_string()));
    }
}
