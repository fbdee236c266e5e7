//! Programs with virtual addresses behave as with physical ones, and take longer. Accesses that the page table does not
//! permit are reported to them.

mod applications;
use cohkit_testing::orderings;
use cohkit_testing::setups;

use cohkit_application::interface::{
    Actions, Application, Contents, Event, Line, PageFault, Placement, Scenario, Step, Thread,
    Update,
};
use cohkit_application::locks::LockTable;
use cohkit_application::shipped::{visit, Visitor};
use cohkit_protocol::protocol::Permission;
use cohkit_sim::combined_scenario::CombinedScenario;
use cohkit_sim::explain::FailureKind;
use cohkit_sim::kernel::NANOSECOND;
use cohkit_sim::oracle::Level;
use cohkit_sim::platform::{Platform, Translation};
use cohkit_sim::scenario::{Performance, Playable};
use cohkit_sim::simulation::{play_while, RunError, Setup};
use cohkit_units::Quantity;
use setups::{protocol, seeds};
use std::collections::BTreeMap;
use std::sync::Arc;

fn quantity(value: u64) -> Quantity {
    Quantity::given(value, "a test")
}

/// Returns a translation with few entries and occasional unmapping of a page.
fn translation(seed: u64) -> Translation {
    let mut quantities = Translation::new();
    quantities.enabled = quantity(1);
    quantities.ats_latency = quantity(20 * NANOSECOND);
    quantities.jitter = quantity(seed % 7 * 40 * NANOSECOND);
    quantities.iommu_tlb_latency = quantity(5 * NANOSECOND);
    quantities.atc_hit_latency = quantity(2 * NANOSECOND);
    quantities.atc_entries = quantity(1 + seed % 5);
    quantities.iommu_tlb_entries = quantity(1 + seed % 3);
    quantities.max_outstanding = quantity(1 + seed % 4);
    quantities.invalidation_interval = quantity(seed % 3 * (500 + seed % 11 * 60) * NANOSECOND);
    quantities
}

/// Runs a setup. A failure names the command that repeats the test with its seed.
fn play_or_panic(setup: &Setup) -> Performance {
    play_while(setup, &mut |_| true).unwrap_or_else(|error| {
        let seed = setup.seed;
        let thread = std::thread::current();
        let test = thread.name().unwrap_or("refusals::");
        panic!("COHKIT_SEED={seed} cargo test -p cohkit-sim --test sim {test}\n{error}")
    })
}

/// Returns the kind and the text of the failure of a run.
fn failure(setup: &Setup) -> (FailureKind, String) {
    match play_while(setup, &mut |_| true) {
        Err(RunError::Failure(failure)) => (failure.kind, failure.text),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("the run ends without a failure"),
    }
}

/// Returns a statistic of the host's space, or of the only space.
fn get(performance: &Performance, name: &str) -> f64 {
    let host = performance.statistics.host.as_deref();
    host.unwrap_or(&performance.statistics).get(name).unwrap()
}

/// Returns a scenario with engines of a device, whose addresses are virtual if there is a translation.
fn with_engines(
    name: &str,
    scenario: Arc<dyn Playable>,
    seed: u64,
    translation: Option<Translation>,
) -> Setup {
    let mut platform = Platform::torture(1 + (seed % 2) as u16);
    let devices = 1 + seed / 2 % 2;
    platform
        .set("agents.device.remotes", &devices.to_string())
        .unwrap();
    platform.agents[0].cache.translation = translation;
    let mut setup = Setup::with_scenario(protocol(name), platform, scenario).unwrap();
    (setup.seed, setup.oracle) = (seed, Level::Bytes);
    setup
}

#[test]
fn engines_with_virtual_addresses_do_the_same_and_take_longer() {
    let mut ends = [0; 2];
    for seed in seeds(40) {
        let locks = LockTable {
            // More than one page of 4 KiB.
            records: 1 + (seed % 90) as u32,
            threads: 1 + (seed % 4) as u32,
            device: 1 + (seed % 5) as u32,
            hold: 1000 * (seed % 50),
            pause: 0,
            transactions: Some(30),
            messages: false,
            cached: true,
            words: false,
        };
        let name = ["ccix", "cxl-cache", "eci-near"][(seed % 3) as usize];
        for (end, addresses) in ends.iter_mut().zip([None, Some(translation(seed))]) {
            let setup = with_engines(name, Arc::new(locks.clone()), seed, addresses);
            let played = play_or_panic(&setup);
            let count = |count_name| played.tally.counts[count_name];
            assert_eq!(count("host locks"), 30 * u64::from(locks.threads));
            assert_eq!(count("device locks"), 30 * u64::from(locks.device));
            *end += played.end;
        }
    }
    assert!(ends[1] > ends[0] * 9 / 8, "{ends:?}");
}

/// Visitor that returns a scenario as a pointer.
struct Plays;

impl Visitor for Plays {
    type Output = Arc<dyn Playable>;

    fn visit<S: Scenario + Clone + Send + Sync + 'static>(self, scenario: S) -> Arc<dyn Playable> {
        Arc::new(scenario)
    }
}

/// Posted stores are translated before their threads continue, and in order.
#[test]
fn hosts_with_virtual_addresses_do_the_same_and_take_longer() {
    let by_name = |parameters: &[(&str, u64)]| -> BTreeMap<String, u64> {
        parameters
            .iter()
            .map(|&(name, n)| (name.into(), n))
            .collect()
    };
    let exchange = [("fanout", 3), ("stores", 8), ("releases", 3)];
    let histogram = [
        ("bins", 10),
        ("values", 30),
        ("rounds", 3),
        ("release", 128),
    ];
    let kernels = [("exchange", &exchange[..]), ("histogram", &histogram[..])];
    for (ordering, protocol) in &orderings::correct_orderings(8) {
        let mut ends = [0; 2];
        for seed in seeds(3) {
            for (name, parameters) in kernels {
                for (end, addresses) in ends.iter_mut().zip([None, Some(translation(seed))]) {
                    let mut platform = orderings::machine();
                    platform.cores.l1_size.value = 0;
                    platform.link.jitter.value = 300_000;
                    platform.cache.translation = addresses;
                    let scenario = visit(name, &by_name(parameters), Plays).unwrap();
                    let mut setup = orderings::setup(protocol, &platform, scenario);
                    setup.seed = seed;
                    *end += play_while(&setup, &mut |_| true)
                        .unwrap_or_else(|e| panic!("{ordering}, {name}, {seed}: {e}"))
                        .end;
                }
            }
        }
        assert!(ends[1] > ends[0], "{ordering}: {ends:?}");
    }
}

/// Reaction of a thread to a page fault.
#[derive(Clone, Copy, PartialEq, Debug)]
enum AfterRefusal {
    /// The thread continues with its next access.
    GoesOn,
    /// The thread ends.
    Ends,
    /// The thread repeats the refused access, for ever.
    TriesAgain,
    /// The thread does not handle the page fault, which ends the run.
    Fails,
}

/// Threads that each store to all lines of a range of their own, alternately by a store and an exchange, and then load
/// all of these lines.
#[derive(Clone)]
struct Walks {
    /// Number of threads, each with a range of lines of its own.
    threads: u32,
    /// Number of lines of each thread.
    lines: Line,
    /// Reaction of all threads.
    reaction: AfterRefusal,
    /// True if no device is simulated.
    without_device: bool,
}

/// Number of lines of 64 bytes in a page of 4 KiB.
const PAGE: Line = 64;

/// A thread of [`Walks`].
#[derive(Clone)]
struct Walk {
    /// Parameters of the scenario.
    parameters: Walks,
    /// Number of the thread, counted from 0.
    number: Line,
    /// Number of the next access: stores to all lines in order, then loads.
    next: Line,
    /// Line and reason of each page fault, in order.
    refused: Vec<(Line, PageFault)>,
    /// Line and word of each load that was performed, in order.
    loaded: Vec<(Line, u64)>,
}

impl Walk {
    /// Returns the line of an access, and true if it loads.
    fn line_of_access(&self, next: Line) -> (Line, bool) {
        let first = self.number * self.parameters.lines;
        (
            first + next % self.parameters.lines,
            next >= self.parameters.lines,
        )
    }

    /// Returns the access with the number `next`.
    fn current_step(&self) -> Step {
        let (line, loads) = self.line_of_access(self.next);
        let (word, value) = (1, u64::from(line) + 1);
        match (loads, line % 3) {
            (true, 0) => Step::Acquire { line, word },
            (true, _) => Step::Load { line, word },
            (_, 0) => {
                let update = Update::Swap(value);
                Step::Update { line, word, update }
            }
            (_, 1) => Step::Release { line, word, value },
            _ => Step::Store { line, word, value },
        }
    }
}

impl Thread for Walk {
    fn step(&mut self, result: u64) -> Step {
        if let Some((line, true)) = self
            .next
            .checked_sub(1)
            .map(|previous| self.line_of_access(previous))
        {
            let refused = |(last, reason): &(Line, PageFault)| *last == line && !reason.write;
            if !self.refused.last().is_some_and(refused) {
                self.loaded.push((line, result));
            }
        }
        if self.next == 2 * self.parameters.lines {
            return Step::Stop;
        }
        let step = self.current_step();
        self.next += 1;
        step
    }

    fn handle_page_fault(&mut self, reason: PageFault) -> Option<Step> {
        let (line, _) = self.line_of_access(self.next - 1);
        self.refused.push((line, reason));
        match self.parameters.reaction {
            AfterRefusal::GoesOn => Some(self.step(0)),
            AfterRefusal::Ends => Some(Step::Stop),
            AfterRefusal::TriesAgain => {
                assert!(self.refused.len() < 1 << 20, "it goes on for ever");
                self.next -= 1;
                let step = self.current_step();
                self.next += 1;
                Some(step)
            }
            AfterRefusal::Fails => None,
        }
    }
}

/// Application without behaviour.
#[derive(Clone)]
struct Nothing;

impl Application for Nothing {
    fn name(&self) -> &str {
        "walks"
    }
    fn placement(&self) -> Placement {
        Placement::Observer
    }
    fn handle(&mut self, _: Event, _: &mut Actions) {}
}

/// Permission of a line's page: one page in four is read-only, and one in six is absent.
fn page_permission(line: Line) -> Permission {
    match line / PAGE + 1 {
        page if page % 6 == 0 => Permission::None,
        page if page % 4 == 0 => Permission::Read,
        _ => Permission::Write,
    }
}

impl Scenario for Walks {
    type Application = Nothing;
    type Thread = Walk;
    fn lines(&self) -> Line {
        self.threads * self.lines
    }
    fn words(&self) -> u64 {
        2
    }
    fn terminates(&self) -> bool {
        true
    }
    fn is_threads_only(&self) -> bool {
        self.without_device
    }
    fn application(&self) -> Nothing {
        Nothing
    }
    fn threads(&self) -> Vec<Walk> {
        let walk = |number| Walk {
            parameters: self.clone(),
            number,
            next: 0,
            refused: Vec::new(),
            loaded: Vec::new(),
        };
        (0..self.threads).map(walk).collect()
    }
    /// Each access has either been made or been refused, as its page requires.
    fn verify(&self, _: &Nothing, threads: &[Walk], contents: &dyn Contents) -> Result<(), String> {
        for walk in threads
            .iter()
            .filter(|_| self.reaction == AfterRefusal::GoesOn)
        {
            let (mut refused, mut loaded) = (Vec::new(), Vec::new());
            for next in 0..2 * self.lines {
                let (line, loads) = walk.line_of_access(next);
                let (permits, write) = (page_permission(line), !loads);
                let initial_word = contents.initial(line, 1);
                let expected_word = if permits == Permission::Write {
                    u64::from(line) + 1
                } else {
                    initial_word
                };
                if contents.word(line, 1) != expected_word {
                    return Err(format!("line {line} is {}", contents.word(line, 1)));
                }
                if permits == Permission::None || write && permits == Permission::Read {
                    refused.push((line, PageFault { write, permits }));
                } else if loads {
                    loaded.push((line, expected_word));
                }
            }
            if (&refused, &loaded) != (&walk.refused, &walk.loaded) {
                return Err(format!("{:?} are refused, not {refused:?}", walk.refused));
            }
        }
        Ok(())
    }
}

/// Returns a run of walks on a protocol without a device, with pages as in [`page_permission`].
fn walks(seed: u64, reaction: AfterRefusal) -> Setup {
    let threads = 1 + (seed / 4 % 4) as u32;
    let name = ["msi", "mesi", "moesi", "self-invalidate"][(seed % 4) as usize];
    let mut platform = Platform::torture(1 + (seed % 2) as u16);
    let mut quantities = translation(seed);
    (quantities.read_only_one_in, quantities.absent_one_in) = (quantity(4), quantity(6));
    platform.cache.translation = Some(quantities);
    let lines = 250 + (seed % 50) as u32;
    let walks = Walks {
        threads,
        lines,
        reaction,
        without_device: true,
    };
    let mut setup = Setup::with_scenario(protocol(name), platform, Arc::new(walks)).unwrap();
    (setup.seed, setup.oracle) = (seed, Level::Bytes);
    setup
}

#[test]
fn threads_are_notified_of_refusals_and_continue() {
    for seed in seeds(60) {
        let setup = walks(seed, AfterRefusal::GoesOn);
        let played = play_or_panic(&setup);
        let play = setup.play.unwrap();
        let lines = 0..play.scenario.line_count();
        let refused: u32 = lines
            .map(|line| match page_permission(line) {
                Permission::None => 2,
                Permission::Read => 1,
                Permission::Write => 0,
            })
            .sum();
        assert_eq!(get(&played, "translation_faults"), f64::from(refused));
        let performed = f64::from(2 * play.scenario.line_count() - refused);
        // In that protocol an acquire is followed by another access, which is about no line.
        let acquires =
            |line: &Line| line.is_multiple_of(3) && page_permission(*line) > Permission::None;
        let acquires = match setup.protocol.name.as_str() {
            "self_invalidate" => (0..play.scenario.line_count()).filter(acquires).count(),
            _ => 0,
        };
        assert_eq!(get(&played, "accesses"), performed + acquires as f64);
        assert_eq!(get(&played, "accesses_skipped"), 0.0);
    }
}

/// A thread is notified of a refused posted store before its next step.
#[test]
fn refused_posted_stores_are_reported_in_order() {
    for (ordering, protocol) in &orderings::correct_orderings(8) {
        for seed in seeds(4) {
            let mut platform = orderings::machine();
            platform.cores.l1_size.value = 0;
            platform.link.jitter.value = 300_000;
            let mut quantities = translation(seed);
            (quantities.read_only_one_in, quantities.absent_one_in) = (quantity(4), quantity(6));
            platform.cache.translation = Some(quantities);
            let walks = Walks {
                threads: 3,
                lines: 400,
                reaction: AfterRefusal::GoesOn,
                without_device: true,
            };
            let mut setup = orderings::setup(protocol, &platform, Arc::new(walks));
            (setup.seed, setup.oracle) = (seed, Level::Bytes);
            if let Err(error) = play_while(&setup, &mut |_| true) {
                panic!("{ordering}, COHKIT_SEED={seed}: {error}");
            }
        }
    }
}

/// Two concurrent applications are each notified of their own accesses, with their own line numbers.
#[test]
fn combined_threads_see_only_their_own_refusals() {
    for seed in seeds(6) {
        let walks = Walks {
            threads: 1 + (seed % 2) as u32,
            // As many pages as one period of the permissions.
            lines: 12 * PAGE,
            reaction: AfterRefusal::GoesOn,
            without_device: false,
        };
        let scenarios: Vec<Arc<dyn Playable>> = vec![Arc::new(walks.clone()), Arc::new(walks)];
        let mut platform = Platform::torture(2);
        let mut quantities = translation(seed);
        (quantities.read_only_one_in, quantities.absent_one_in) = (quantity(4), quantity(6));
        platform.cache.translation = Some(quantities);
        let combined = Arc::new(CombinedScenario::new(scenarios).unwrap());
        let protocol = protocol("msi-policy");
        let mut setup = Setup::with_scenario(protocol, platform, combined).unwrap();
        (setup.seed, setup.oracle) = (seed, Level::Bytes);
        let threads = 2 + 2 * (seed % 2);
        // Two pages in twelve are absent, and two others are read-only.
        let refused = threads * u64::from(PAGE) * (2 * 2 + 2);
        let played = play_or_panic(&setup);
        assert_eq!(get(&played, "translation_faults"), refused as f64);
    }
}

/// Fences have no address: they work even if no page is mapped.
#[test]
fn fences_are_not_translated() {
    #[derive(Clone)]
    struct Fences(u32);
    impl Thread for Fences {
        fn step(&mut self, _: u64) -> Step {
            self.0 += 1;
            match self.0 {
                1..=20 => Step::Fence,
                _ => Step::Stop,
            }
        }
    }
    impl Scenario for Fences {
        type Application = Nothing;
        type Thread = Fences;
        fn lines(&self) -> Line {
            1
        }
        fn terminates(&self) -> bool {
            true
        }
        fn is_threads_only(&self) -> bool {
            true
        }
        fn application(&self) -> Nothing {
            Nothing
        }
        fn threads(&self) -> Vec<Fences> {
            vec![self.clone(); 2]
        }
        fn verify(&self, _: &Nothing, _: &[Fences], _: &dyn Contents) -> Result<(), String> {
            Ok(())
        }
    }
    for (ordering, protocol) in &orderings::correct_orderings(8) {
        let mut platform = orderings::machine();
        platform.cores.l1_size.value = 0;
        let mut quantities = translation(1);
        quantities.absent_one_in = quantity(1);
        platform.cache.translation = Some(quantities);
        let setup = orderings::setup(protocol, &platform, Arc::new(Fences(0)));
        let played =
            play_while(&setup, &mut |_| true).unwrap_or_else(|e| panic!("{ordering}: {e}"));
        assert_eq!(get(&played, "translation_misses"), 0.0);
        // In the other protocols no cache takes part in fences.
        let caches_take_part = *ordering == "so" || ordering.ends_with("cord");
        let expected = if caches_take_part { 40.0 } else { 0.0 };
        assert_eq!(get(&played, "accesses"), expected, "{ordering}");
    }
}

#[test]
fn thread_may_end_at_a_refusal() {
    let played = play_or_panic(&walks(3, AfterRefusal::Ends));
    assert!(get(&played, "translation_faults") <= 4.0);
}

#[test]
fn failed_thread_reports_its_refusal() {
    let mut setup = walks(0, AfterRefusal::Fails);
    setup.workload.cores = 1;
    let (kind, report) = failure(&setup);
    assert_eq!(kind, FailureKind::Refused);
    assert_eq!(
        report,
        "thread 0 cannot write: the page is read-only (word 1 of line 192, address 0x3008, page 3, by cache), and does not handle the page fault"
    );
    setup
        .platform
        .cache
        .translation
        .as_mut()
        .unwrap()
        .absent_one_in = quantity(1);
    let (_, report) = failure(&setup);
    assert!(
        report.starts_with("thread 0 cannot write: the page is not mapped (word 1 of line 0,"),
        "{report}"
    );
}

#[test]
fn endless_retries_are_no_progress() {
    let (kind, report) = failure(&walks(0, AfterRefusal::TriesAgain));
    assert_eq!(kind, FailureKind::NoProgress, "{report}");
}
