//! Device applications that access the host's memory with virtual addresses.

use super::*;
use cohkit_application::gather::Gather;
use cohkit_sim::kernel::SECOND;
use cohkit_sim::platform::Agents;
use cohkit_sim::simulation::HostSpace;

/// Returns a machine of two spaces, on which the device's addresses in the host's memory may be virtual.
fn machine(scenario: Arc<dyn Playable>, seed: u64, of: Option<Translation>) -> Setup {
    let mut host = Platform::torture(1);
    host.agents.push(Agents {
        kind: "device".into(),
        remotes: 1,
        cores: host.cores.clone(),
        cache: host.cache.clone(),
        link: host.link.clone(),
    });
    host.agents[0].cache.translation = of;
    let device = Platform::torture(1);
    let platform = device.beside(host).expect("they make one");
    let host = HostSpace::new(protocol("eci-near"), &platform).expect("there is a home");
    let mut setup = Setup::with_scenario(protocol("eci"), platform, scenario).unwrap();
    setup.host = Some(Box::new(host));
    (setup.seed, setup.oracle) = (seed, Level::Bytes);
    setup
}

#[test]
fn virtual_addresses_only_slow_applications() {
    let mut ends = [0; 2];
    let mut told = [0.0; 2];
    for seed in seeds(30) {
        let gather = Gather {
            threads: 1 + (seed % 4) as u32,
            nodes: 1 + (seed % 11) as u32 * 9,
            queries: Some(12),
            cached: (seed / 4).is_multiple_of(2),
        };
        for (end, of) in ends.iter_mut().zip([None, Some(translation(seed))]) {
            let is_virtual = of.is_some();
            let played = plays("applications", &machine(Arc::new(gather.clone()), seed, of));
            let queries = 12 * u64::from(gather.threads);
            assert_eq!(played.tally.counts["queries"], queries);
            let nodes = queries * u64::from(gather.nodes);
            assert_eq!(played.tally.counts["nodes followed"], nodes);
            *end += played.end;
            for (sum, what) in told.iter_mut().zip(["misses", "taken_back"]) {
                if is_virtual {
                    *sum += get(&played, &format!("translation_{what}"));
                }
            }
        }
    }
    assert!(ends[1] > ends[0] * 11 / 10, "{ends:?}");
    assert!(told.iter().all(|&sum| sum > 300.0), "{told:?}");
}

/// Accesses that the application makes one after the other.
#[derive(Clone, PartialEq, Debug)]
enum Ask {
    Load(u32, u32),
    Store(u32, u32),
    Add(u32),
}

const NEW: u64 = 77;

/// First word of the read-only page, and of the absent page: of the pages of 512 words, the fourth is read-only, and
/// the sixth is absent. Lines have 16 words.
const READ_ONLY: u32 = 3 * 512;
const ABSENT: u32 = 5 * 512;

/// Result of an access: the words read; or on refusal the word, true for a write, and the page's permission.
type Heard = Result<Option<Vec<u64>>, (u32, bool, Right)>;

fn asked() -> Vec<(Ask, Heard)> {
    let mixed = |new| [vec![new; 6], vec![0; 14]].concat();
    vec![
        (Ask::Load(READ_ONLY - 6, 20), Ok(Some(mixed(0)))),
        // The words before the page are written.
        (
            Ask::Store(READ_ONLY - 6, 20),
            Err((READ_ONLY, true, Right::Read)),
        ),
        (Ask::Load(READ_ONLY - 6, 20), Ok(Some(mixed(NEW)))),
        (
            Ask::Add(READ_ONLY + 64),
            Err((READ_ONLY + 64, true, Right::Read)),
        ),
        (
            Ask::Load(ABSENT - 40, 100),
            Err((ABSENT, false, Right::None)),
        ),
        (
            Ask::Load(ABSENT + 511, 2),
            Err((ABSENT + 511, false, Right::None)),
        ),
        (
            Ask::Store(ABSENT + 7, 1),
            Err((ABSENT + 7, true, Right::None)),
        ),
        (Ask::Add(ABSENT), Err((ABSENT, true, Right::None))),
        (Ask::Store(ABSENT + 512, 3), Ok(None)),
        (Ask::Add(ABSENT + 512), Ok(Some(vec![NEW]))),
        (Ask::Add(ABSENT + 512), Ok(Some(vec![NEW + 1]))),
    ]
}

/// Behaviour of the prober after a refusal. It sends `forgoes` abandon actions, whose tag is the refused one plus
/// `other`.
#[derive(Clone, Copy)]
struct Probe {
    cached: bool,
    forgoes: u32,
    other: u32,
}

#[derive(Clone)]
struct Prober {
    of: Probe,
    next: usize,
    heard: Vec<Heard>,
}

impl Prober {
    fn ask(&mut self, actions: &mut Actions) {
        let tag = 40 + self.next as u32;
        let cached = self.of.cached;
        match asked().get(self.next).map(|(ask, _)| ask.clone()) {
            Some(Ask::Load(first, words)) => actions.coherent_load(tag, first, words, cached),
            Some(Ask::Store(first, words)) => {
                let words = vec![NEW; words as usize].into();
                actions.coherent_store(tag, first, words, cached);
            }
            Some(Ask::Add(word)) => actions.coherent_update(tag, word, Update::Add(1)),
            None => {}
        }
    }
}

impl Application for Prober {
    fn name(&self) -> &str {
        "prober"
    }
    fn placement(&self) -> Placement {
        Placement::Beside
    }
    fn handle(&mut self, event: Event, actions: &mut Actions) {
        let own = 40 + self.next as u32;
        self.heard.push(match event {
            Event::Start { .. } => return self.ask(actions),
            Event::CoherentLoaded { tag, words } if tag == own => Ok(Some(words.to_vec())),
            Event::CoherentStored { tag } if tag == own => Ok(None),
            Event::Refused { tag, word, why } if tag == own => {
                (0..self.of.forgoes).for_each(|_| actions.forgo(tag + self.of.other));
                Err((word, why.write, why.permits))
            }
            Event::Stop => return,
            event => panic!("{event:?}"),
        });
        self.next += 1;
        self.ask(actions);
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
    fn ends(&self) -> bool {
        true
    }
    /// As many pages as one period of the permissions.
    fn host_words(&self) -> u64 {
        12 * 512
    }
    fn application(&self) -> Prober {
        Prober {
            of: *self,
            next: 0,
            heard: Vec::new(),
        }
    }
    fn threads(&self) -> Vec<Stores> {
        vec![Stores(0)]
    }
    fn verify(&self, prober: &Prober, _: &[Stores], contents: &dyn Contents) -> Result<(), String> {
        let expected: Vec<_> = asked().into_iter().map(|(_, heard)| heard).collect();
        if prober.heard != expected {
            return Err(format!("it hears {:?}", prober.heard));
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

fn probes(seed: u64, forgoes: u32, other: u32) -> Setup {
    let mut of = translation(seed);
    (of.read_only, of.absent) = (given(4), given(6));
    let probe = Probe {
        cached: seed.is_multiple_of(2),
        forgoes,
        other,
    };
    machine(Arc::new(probe), seed, Some(of))
}

#[test]
fn applications_are_notified_of_refusals_and_continue() {
    for seed in seeds(20) {
        let played = plays(
            "applications_are_notified_of_refusals_and_continue",
            &probes(seed, 1, 0),
        );
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
        let both = vec![play.scenario.clone(), play.scenario.clone()];
        play.scenario = Arc::new(CombinedScenario::new(both).unwrap());
        setup.workload.cores = 2;
        let played = plays("combined_applications_see_only", &setup);
        assert_eq!(get(&played, "translation_faults"), 18.0);
    }
}

/// Later unmapping of pages does not extend the run.
#[test]
fn a_run_ends_with_its_programs() {
    let end = |walk: bool, unmap: u64| {
        let mut of = translation(1);
        of.unmap = given(unmap);
        let setup = match walk {
            true => {
                let mut setup = walks(1, AfterRefusal::GoesOn);
                of.read_only = given(4);
                of.absent = given(6);
                setup.platform.cache.translation = Some(of);
                setup
            }
            false => {
                let gather = Gather {
                    threads: 2,
                    nodes: 40,
                    queries: Some(12),
                    cached: true,
                };
                machine(Arc::new(gather), 1, Some(of))
            }
        };
        plays("a_run_ends", &setup).end
    };
    for walk in [true, false] {
        let never = end(walk, 0);
        assert_eq!(end(walk, 1_000_000 * NANOSECOND), never);
        assert_ne!(end(walk, 700 * NANOSECOND), never);
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
        fn refused(&mut self, _: Refused) -> Option<Step> {
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
        fn ends(&self) -> bool {
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
                told => Err(format!("it is told {told} times")),
            }
        }
    }
    let mut of = translation(0);
    of.absent = given(1);
    let mut setup = machine(Arc::new(Waits(0, 0)), 0, None);
    setup.host.as_mut().unwrap().platform.cache.translation = Some(of);
    assert!(plays("refused_word_is_no_longer_awaited", &setup).end > 3 * SECOND);
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
            Placement::Beside
        }
        fn handle(&mut self, event: Event, actions: &mut Actions) {
            match event {
                Event::Start { .. } => {
                    actions.host_store(100, [1, 2, 3].into());
                    actions.host_fetch(9, 99, 5);
                }
                Event::HostFetched { tag: 9, words } => self.0 = words.to_vec(),
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
        fn ends(&self) -> bool {
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
    let mut of = translation(0);
    of.absent = given(1);
    let mut setup = machine(Arc::new(Copies(Vec::new())), 0, None);
    setup.host.as_mut().unwrap().platform.cache.translation = Some(of);
    let played = plays("transfers", &setup);
    assert_eq!(get(&played, "translation_misses"), 0.0);
}

#[test]
fn failed_application_reports_its_refusal() {
    let (kind, said) = failure(&probes(0, 0, 0));
    assert_eq!(kind, FailureKind::Refused);
    assert_eq!(
        said,
        "prober cannot write: the page is read-only (word 1536 of the host's memory, address 0x3000, its access 41), and does not handle the page fault"
    );
    for (forgoes, other, accesses) in [(2, 0, 41), (1, 1, 42)] {
        let (kind, said) = failure(&probes(0, forgoes, other));
        assert_eq!(kind, FailureKind::Contract);
        let expected = format!(
            "prober cancels its access {accesses}, which has not caused the latest page fault"
        );
        assert_eq!(said, expected);
    }
}

#[test]
fn equal_seeds_give_equal_refusals() {
    let one = |seed| format!("{:?}", plays("equal_seeds", &probes(seed, 1, 0)).statistics);
    let apart: Vec<_> = (0..3).map(|_| std::thread::spawn(move || one(5))).collect();
    assert!(apart.into_iter().all(|of| of.join().unwrap() == one(5)));
    assert_ne!(one(5), one(7));
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
    let mut of = translation(0);
    of.absent = given(1);
    let (kind, said) = failure(&machine(Arc::new(gather.clone()), 0, Some(of.clone())));
    assert_eq!(kind, FailureKind::Refused);
    assert!(
        said.starts_with("gather cannot read: the page is not mapped (word 16 of"),
        "{said}"
    );
    let mut setup = machine(Arc::new(gather), 0, None);
    setup.host.as_mut().unwrap().platform.cache.translation = Some(of);
    let (kind, said) = failure(&setup);
    assert_eq!(kind, FailureKind::Refused);
    let expected = "thread 0 cannot write: the page is not mapped (word ";
    assert!(said.starts_with(expected), "{said}");
    assert!(said.contains("of the host's memory, address 0x"), "{said}");
}
