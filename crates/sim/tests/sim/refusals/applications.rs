//! Device applications that access the host's memory with virtual addresses.

use super::*;
use cohkit_application::gather::Gather;
use cohkit_sim::kernel::SECOND;
use cohkit_sim::platform::Agents;
use cohkit_sim::simulation::HostSpace;

/// Returns a machine of two spaces, on which the device's addresses in the host's memory may be virtual.
fn machine(scenario: Arc<dyn Playable>, seed: u64, translation: Option<Translation>) -> Setup {
    let mut host = Platform::torture(1);
    host.agents.push(Agents {
        kind: "device".into(),
        remotes: 1,
        cores: host.cores.clone(),
        cache: host.cache.clone(),
        link: host.link.clone(),
    });
    host.agents[0].cache.translation = translation;
    let device = Platform::torture(1);
    let platform = device.with_host(host).expect("the platforms combine");
    let host = HostSpace::new(protocol("eci-near"), &platform).expect("protocol with a home");
    let mut setup = Setup::with_scenario(protocol("eci"), platform, scenario).unwrap();
    setup.host = Some(Box::new(host));
    (setup.seed, setup.oracle) = (seed, Level::Bytes);
    setup
}

#[test]
fn virtual_addresses_only_slow_applications() {
    let mut ends = [0; 2];
    let mut sums = [0.0; 2];
    for seed in seeds(30) {
        let gather = Gather {
            threads: 1 + (seed % 4) as u32,
            nodes: 1 + (seed % 11) as u32 * 9,
            queries: Some(12),
            cached: (seed / 4).is_multiple_of(2),
        };
        for (end, addresses) in ends.iter_mut().zip([None, Some(translation(seed))]) {
            let is_virtual = addresses.is_some();
            let played = play_or_panic(&machine(Arc::new(gather.clone()), seed, addresses));
            let queries = 12 * u64::from(gather.threads);
            assert_eq!(played.tally.counts["queries"], queries);
            let nodes = queries * u64::from(gather.nodes);
            assert_eq!(played.tally.counts["nodes followed"], nodes);
            *end += played.end;
            for (sum, counter) in sums.iter_mut().zip(["misses", "invalidations"]) {
                if is_virtual {
                    *sum += get(&played, &format!("translation_{counter}"));
                }
            }
        }
    }
    assert!(ends[1] > ends[0] * 11 / 10, "{ends:?}");
    assert!(sums.iter().all(|&sum| sum > 300.0), "{sums:?}");
}

/// Accesses that the application makes one after the other.
#[derive(Clone, PartialEq, Debug)]
enum Request {
    /// A load of words: first word and number.
    Load(u32, u32),
    /// A store of words with the value [`NEW`]: first word and number.
    Store(u32, u32),
    /// An atomic addition of 1 to a word.
    Add(u32),
}

/// Value of all stores of the prober.
const NEW: u64 = 77;

/// First word of the read-only page, and of the absent page: of the pages of 512 words, the fourth is read-only, and
/// the sixth is absent. Lines have 16 words.
const READ_ONLY: u32 = 3 * 512;
const ABSENT: u32 = 5 * 512;

/// Result of an access: the words read; or on refusal the word, true for a write, and the page's permission.
type AccessResult = Result<Option<Vec<u64>>, (u32, bool, Permission)>;

/// Returns the prober's accesses with the results that their pages require.
fn expected_results() -> Vec<(Request, AccessResult)> {
    let mixed = |new| [vec![new; 6], vec![0; 14]].concat();
    vec![
        (Request::Load(READ_ONLY - 6, 20), Ok(Some(mixed(0)))),
        // The words before the page are written.
        (
            Request::Store(READ_ONLY - 6, 20),
            Err((READ_ONLY, true, Permission::Read)),
        ),
        (Request::Load(READ_ONLY - 6, 20), Ok(Some(mixed(NEW)))),
        (
            Request::Add(READ_ONLY + 64),
            Err((READ_ONLY + 64, true, Permission::Read)),
        ),
        (
            Request::Load(ABSENT - 40, 100),
            Err((ABSENT, false, Permission::None)),
        ),
        (
            Request::Load(ABSENT + 511, 2),
            Err((ABSENT + 511, false, Permission::None)),
        ),
        (
            Request::Store(ABSENT + 7, 1),
            Err((ABSENT + 7, true, Permission::None)),
        ),
        (Request::Add(ABSENT), Err((ABSENT, true, Permission::None))),
        (Request::Store(ABSENT + 512, 3), Ok(None)),
        (Request::Add(ABSENT + 512), Ok(Some(vec![NEW]))),
        (Request::Add(ABSENT + 512), Ok(Some(vec![NEW + 1]))),
    ]
}

/// Behaviour of the prober after a refusal. It sends `abandon_count` abandon actions, whose tag is the refused one
/// plus `tag_offset`.
#[derive(Clone, Copy)]
struct Probe {
    /// True if the accesses use the device's cache.
    cached: bool,
    /// Number of `Abandon` actions after a refusal. Exactly one is correct.
    abandon_count: u32,
    /// Difference between the tag of these actions and the refused tag. Only 0 is correct.
    tag_offset: u32,
}

/// Application that performs the accesses of [`expected_results`], one after the other, and records their results.
#[derive(Clone)]
struct Prober {
    /// Reaction to a refusal.
    parameters: Probe,
    /// Index of the access in progress.
    next: usize,
    /// Results of the completed accesses.
    results: Vec<AccessResult>,
}

impl Prober {
    /// Issues the next access, with a tag of its own.
    fn issue_request(&mut self, actions: &mut Actions) {
        let tag = 40 + self.next as u32;
        let cached = self.parameters.cached;
        match expected_results()
            .get(self.next)
            .map(|(request, _)| request.clone())
        {
            Some(Request::Load(first, words)) => actions.coherent_load(tag, first, words, cached),
            Some(Request::Store(first, words)) => {
                let words = vec![NEW; words as usize].into();
                actions.coherent_store(tag, first, words, cached);
            }
            Some(Request::Add(word)) => actions.coherent_update(tag, word, Update::Add(1)),
            None => {}
        }
    }
}

impl Application for Prober {
    fn name(&self) -> &str {
        "prober"
    }
    fn placement(&self) -> Placement {
        Placement::Observer
    }
    fn handle(&mut self, event: Event, actions: &mut Actions) {
        let expected_tag = 40 + self.next as u32;
        self.results.push(match event {
            Event::Start { .. } => return self.issue_request(actions),
            Event::CoherentLoadCompletion { tag, words } if tag == expected_tag => {
                Ok(Some(words.to_vec()))
            }
            Event::CoherentStoreCompletion { tag } if tag == expected_tag => Ok(None),
            Event::PageFault { tag, word, fault } if tag == expected_tag => {
                (0..self.parameters.abandon_count)
                    .for_each(|_| actions.abandon(tag + self.parameters.tag_offset));
                Err((word, fault.write, fault.permits))
            }
            Event::Stop => return,
            event => panic!("{event:?}"),
        });
        self.next += 1;
        self.issue_request(actions);
    }
}

/// A thread that stores where the device may not: its own addresses are physical.
#[derive(Clone)]
struct Stores(u32);

impl Thread for Stores {
    fn step(&mut self, _: u64) -> Step {
        self.0 += 1;
        match self.0 {
            1 => Step::Work(100_000_000),
            2 => Step::StoreHost {
                word: READ_ONLY + 1,
                value: 5,
            },
            _ => Step::Stop,
        }
    }
}

impl Scenario for Probe {
    type Application = Prober;
    type Thread = Stores;
    fn lines(&self) -> Line {
        1
    }
    fn terminates(&self) -> bool {
        true
    }
    /// As many pages as one period of the permissions.
    fn host_words(&self) -> u64 {
        12 * 512
    }
    fn application(&self) -> Prober {
        Prober {
            parameters: *self,
            next: 0,
            results: Vec::new(),
        }
    }
    fn threads(&self) -> Vec<Stores> {
        vec![Stores(0)]
    }
    fn verify(&self, prober: &Prober, _: &[Stores], contents: &dyn Contents) -> Result<(), String> {
        let expected: Vec<_> = expected_results()
            .into_iter()
            .map(|(_, result)| result)
            .collect();
        if prober.results != expected {
            return Err(format!("it hears {:?}", prober.results));
        }
        let words = [
            (READ_ONLY - 1, NEW),
            (READ_ONLY, 0),
            (READ_ONLY + 1, 5),
            (READ_ONLY + 64, 0),
            (ABSENT, 0),
            (ABSENT + 7, 0),
            (ABSENT + 512, NEW + 2),
        ];
        match words
            .iter()
            .find(|(word, holds)| contents.host(*word) != Some(*holds))
        {
            Some((word, _)) => Err(format!("word {word} is {:?}", contents.host(*word))),
            None => Ok(()),
        }
    }
}

/// Returns a run of the prober on virtual addresses, with pages as for [`READ_ONLY`] and [`ABSENT`].
fn probes(seed: u64, abandon_count: u32, tag_offset: u32) -> Setup {
    let mut quantities = translation(seed);
    (quantities.read_only_one_in, quantities.absent_one_in) = (quantity(4), quantity(6));
    let probe = Probe {
        cached: seed.is_multiple_of(2),
        abandon_count,
        tag_offset,
    };
    machine(Arc::new(probe), seed, Some(quantities))
}

#[test]
fn applications_are_notified_of_refusals_and_continue() {
    for seed in seeds(20) {
        let played = play_or_panic(&probes(seed, 1, 0));
        // One fault per refused line; four for the load that extends into the absent page.
        assert_eq!(get(&played, "translation_faults"), 9.0);
    }
}

/// Two concurrent applications are each notified of their own words, with their own tags.
#[test]
fn combined_applications_see_only_their_own_words() {
    for seed in seeds(6) {
        let mut setup = probes(seed, 1, 0);
        let play = setup.play.as_mut().unwrap();
        let scenarios = vec![play.scenario.clone(), play.scenario.clone()];
        play.scenario = Arc::new(CombinedScenario::new(scenarios).unwrap());
        setup.workload.cores = 2;
        let played = play_or_panic(&setup);
        assert_eq!(get(&played, "translation_faults"), 18.0);
    }
}

/// Later unmapping of pages does not extend the run.
#[test]
fn run_ends_with_its_programs() {
    let end = |walk: bool, unmap: u64| {
        let mut quantities = translation(1);
        quantities.invalidation_interval = quantity(unmap);
        let setup = match walk {
            true => {
                let mut setup = walks(1, AfterRefusal::GoesOn);
                quantities.read_only_one_in = quantity(4);
                quantities.absent_one_in = quantity(6);
                setup.platform.cache.translation = Some(quantities);
                setup
            }
            false => {
                let gather = Gather {
                    threads: 2,
                    nodes: 40,
                    queries: Some(12),
                    cached: true,
                };
                machine(Arc::new(gather), 1, Some(quantities))
            }
        };
        play_or_panic(&setup).end
    };
    for walk in [true, false] {
        let end_without_unmapping = end(walk, 0);
        assert_eq!(end(walk, 1_000_000 * NANOSECOND), end_without_unmapping);
        assert_ne!(end(walk, 700 * NANOSECOND), end_without_unmapping);
    }
}

/// A thread no longer waits for a refused word, however long it continues.
#[test]
fn refused_word_is_no_longer_awaited() {
    #[derive(Clone)]
    struct Waits(u32, u32);
    impl Thread for Waits {
        fn step(&mut self, _: u64) -> Step {
            self.0 += 1;
            match self.0 {
                1 => Step::LoadHost { word: 3 },
                2 => Step::Work(3 * SECOND),
                3 => Step::StoreHost { word: 4, value: 1 },
                _ => Step::Stop,
            }
        }
        fn handle_page_fault(&mut self, _: PageFault) -> Option<Step> {
            self.1 += 1;
            Some(self.step(0))
        }
    }
    impl Scenario for Waits {
        type Application = Nothing;
        type Thread = Waits;
        fn lines(&self) -> Line {
            1
        }
        fn terminates(&self) -> bool {
            true
        }
        fn host_words(&self) -> u64 {
            8
        }
        fn application(&self) -> Nothing {
            Nothing
        }
        fn threads(&self) -> Vec<Waits> {
            vec![self.clone()]
        }
        fn verify(&self, _: &Nothing, threads: &[Waits], _: &dyn Contents) -> Result<(), String> {
            match threads[0].1 {
                2 => Ok(()),
                refusals => Err(format!("it is told {refusals} times")),
            }
        }
    }
    let mut quantities = translation(0);
    quantities.absent_one_in = quantity(1);
    let mut setup = machine(Arc::new(Waits(0, 0)), 0, None);
    setup.host.as_mut().unwrap().platform.cache.translation = Some(quantities);
    assert!(play_or_panic(&setup).end > 3 * SECOND);
}

/// Bus transfers use physical addresses: they reach words that threads have written even if the page is absent for
/// others.
#[test]
fn transfers_are_not_translated() {
    #[derive(Clone)]
    struct Copies(Vec<u64>);
    impl Application for Copies {
        fn name(&self) -> &str {
            "copies"
        }
        fn placement(&self) -> Placement {
            Placement::Observer
        }
        fn handle(&mut self, event: Event, actions: &mut Actions) {
            match event {
                Event::Start { .. } => {
                    actions.host_store(100, [1, 2, 3].into());
                    actions.host_fetch(9, 99, 5);
                }
                Event::HostFetchCompletion { tag: 9, words } => self.0 = words.to_vec(),
                Event::Stop => {}
                event => panic!("{event:?}"),
            }
        }
    }
    impl Thread for Copies {
        fn step(&mut self, _: u64) -> Step {
            Step::Stop
        }
    }
    impl Scenario for Copies {
        type Application = Copies;
        type Thread = Copies;
        fn lines(&self) -> Line {
            1
        }
        fn terminates(&self) -> bool {
            true
        }
        fn application(&self) -> Copies {
            self.clone()
        }
        fn threads(&self) -> Vec<Copies> {
            vec![self.clone()]
        }
        fn verify(&self, copies: &Copies, _: &[Copies], _: &dyn Contents) -> Result<(), String> {
            match copies.0 == [0, 1, 2, 3, 0] {
                true => Ok(()),
                false => Err(format!("{:?} are there", copies.0)),
            }
        }
    }
    let mut quantities = translation(0);
    quantities.absent_one_in = quantity(1);
    let mut setup = machine(Arc::new(Copies(Vec::new())), 0, None);
    setup.host.as_mut().unwrap().platform.cache.translation = Some(quantities);
    let played = play_or_panic(&setup);
    assert_eq!(get(&played, "translation_misses"), 0.0);
}

#[test]
fn failed_application_reports_its_refusal() {
    let (kind, report) = failure(&probes(0, 0, 0));
    assert_eq!(kind, FailureKind::Refused);
    assert_eq!(
        report,
        "prober cannot write: the page is read-only (word 1536 of the host's memory, address 0x3000, its access 41), and does not handle the page fault"
    );
    for (abandon_count, tag_offset, accesses) in [(2, 0, 41), (1, 1, 42)] {
        let (kind, report) = failure(&probes(0, abandon_count, tag_offset));
        assert_eq!(kind, FailureKind::Contract);
        let expected = format!(
            "prober cancels its access {accesses}, which has not caused the latest page fault"
        );
        assert_eq!(report, expected);
    }
}

#[test]
fn equal_seeds_give_equal_refusals() {
    let statistics_text = |seed| format!("{:?}", play_or_panic(&probes(seed, 1, 0)).statistics);
    let concurrent: Vec<_> = (0..3)
        .map(|_| std::thread::spawn(move || statistics_text(5)))
        .collect();
    assert!(concurrent
        .into_iter()
        .all(|thread| thread.join().unwrap() == statistics_text(5)));
    assert_ne!(statistics_text(5), statistics_text(7));
}

/// A shipped application reports a refused access, and so does a thread with virtual addresses.
#[test]
fn shipped_applications_report_refused_accesses() {
    let gather = Gather {
        threads: 1,
        nodes: 4,
        queries: Some(1),
        cached: true,
    };
    let mut quantities = translation(0);
    quantities.absent_one_in = quantity(1);
    let (kind, report) = failure(&machine(
        Arc::new(gather.clone()),
        0,
        Some(quantities.clone()),
    ));
    assert_eq!(kind, FailureKind::Refused);
    assert!(
        report.starts_with("gather cannot read: the page is not mapped (word 16 of"),
        "{report}"
    );
    let mut setup = machine(Arc::new(gather), 0, None);
    setup.host.as_mut().unwrap().platform.cache.translation = Some(quantities);
    let (kind, report) = failure(&setup);
    assert_eq!(kind, FailureKind::Refused);
    let expected = "thread 0 cannot write: the page is not mapped (word ";
    assert!(report.starts_with(expected), "{report}");
    assert!(
        report.contains("of the host's memory, address 0x"),
        "{report}"
    );
}
