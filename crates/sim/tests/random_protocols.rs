//! Does the simulator agree with what executing the controllers of random protocol texts can reach? (In `cohkit-check`,
//! `random_protocols` asks the same of every form of the model.)

mod common;
#[path = "../../check/examples/fuzz_protocols/generate.rs"]
mod generate;
#[path = "../../check/examples/fuzz_protocols/templates.rs"]
mod templates;

use cohkit_protocol::controller::{Access, Event};
use cohkit_protocol::protocol::{Home, Protocol};
use cohkit_protocol::text::parse;
use cohkit_sim::explain::FailureKind;
use cohkit_sim::kernel::NANOSECOND;
use cohkit_sim::simulation::{run, RunError, Setup};
use cohkit_sim::statistics::Statistics;
use cohkit_system::data::Current;
use cohkit_system::world::{explore, Found, System, World};
use common::{seeds, torture, ACCESSES};

const TEXTS: u64 = 200;

/// Equal messages that there is room for.
const ROOM: u16 = 7;

/// States of a system that is visited, at most.
const MOST: usize = 20_000;

/// The torture of one line with the accesses that the text has rows for.
fn setup(protocol: Protocol, remotes: u16, seed: u64) -> Setup {
    let mut setup = torture(protocol, remotes, seed).expect("a home with rows");
    let rules = &setup.protocol.remote.rules;
    let has = |access| rules.iter().any(|rule| rule.event == Event::Access(access));
    setup.workload.mix.retain(|&(access, _)| has(access));
    if !has(Access::Store) {
        setup.workload.write_hints = 0;
    }
    setup.workload.lines = 1;
    setup.device.lines = 1;
    // What a cache can do or refuse at once it would otherwise have done before another has the line.
    setup.platform.cores.work.value = [20, 100, 400, 1000][(seed % 4) as usize] * NANOSECOND;
    setup
}

/// What a run came to: its statistics, or how it failed.
fn tortured(setup: &Setup) -> Result<Statistics, (FailureKind, String)> {
    run(setup).map_err(|error| match error {
        RunError::Failure(failure) => (failure.kind, failure.to_string()),
        other => panic!("{other}"),
    })
}

/// How many texts are of each kind.
#[derive(Default, Debug)]
struct Texts {
    /// Safe ones that have been run to their ends.
    safe: usize,
    /// Those of them in which the home has been asked often.
    lively: usize,
    /// Safe ones whose agents may wait for each other for ever.
    lost: usize,
    wrong: usize,
    /// Those of them in which a run has met something that must not be, and not only nothing more.
    noticed: usize,
}

impl Texts {
    /// Compares two runs of a text, one of them with something between the cores and their caches, with all that
    /// executing its controllers can reach.
    fn compare(&mut self, protocol: &Protocol, seed: u64) -> Result<(), String> {
        let remotes = protocol.systems[0].remotes;
        let Home::Controller(home) = &protocol.home else {
            panic!("a home with rows");
        };
        let system = System::new(protocol, home, remotes, 1, ROOM);
        let found = explore(&system, World::<Current>::new(&system), MOST);
        let (mut asked, mut met) = (0.0, false);
        for seed in [seed, seed + 3] {
            match (
                &found,
                tortured(&setup(protocol.clone(), remotes.total(), seed)),
            ) {
                (Found::Safe { .. }, Ok(statistics)) => {
                    let get = |name| statistics.get(name).unwrap();
                    let made = get("accesses") + get("accesses_skipped");
                    if made != ACCESSES as f64 {
                        return Err(format!("{made} of {ACCESSES} accesses were made"));
                    }
                    asked += get("link_bytes_to_home");
                }
                // One may wait for what another need not do.
                (Found::Safe { lost: Some(_), .. }, Err((FailureKind::NoProgress, _))) => {}
                (Found::Safe { lost, .. }, Err((_, failure))) => {
                    return Err(format!(
                        "Executed, it is safe, and rest is lost: {}. Simulated: {failure}",
                        lost.is_some()
                    ));
                }
                (Found::Wrong { .. }, Err((kind, _))) => met |= kind != FailureKind::NoProgress,
                // A run need not come by what is wrong.
                (Found::Wrong { .. }, Ok(_)) | (Found::TooMany { .. }, _) => {}
            }
        }
        match found {
            Found::Safe { lost: Some(_), .. } => self.lost += 1,
            Found::Safe { lost: None, .. } => {
                self.safe += 1;
                self.lively += usize::from(asked > 800.0);
            }
            Found::Wrong { .. } => {
                self.wrong += 1;
                self.noticed += usize::from(met);
            }
            Found::TooMany { .. } => {}
        }
        Ok(())
    }
}

#[test]
fn what_execution_finds_safe_survives_the_torture() {
    let all = seeds(TEXTS);
    let mut texts = Texts::default();
    let arrays = match all == (0..TEXTS) {
        true => generate::ARRAYS..generate::ARRAYS + 15,
        false => 0..0,
    };
    for seed in all.clone().chain(arrays) {
        let text = generate::protocol(seed);
        // One row of some texts is not as it should be, and the front end says so.
        let Ok(protocol) = parse(&text) else {
            continue;
        };
        texts.compare(&protocol, seed).unwrap_or_else(|why| {
            panic!("COHKIT_SEED={seed} cargo test -p cohkit-sim --test random_protocols\n{text}\n{why}")
        });
    }
    println!("{texts:?}");
    // They are worth it.
    if all == (0..TEXTS) {
        assert!(texts.safe > 90, "{texts:?}");
        assert!(texts.lively > 60, "{texts:?}");
        assert!(texts.lost > 25, "{texts:?}");
        assert!(texts.noticed > 20, "{texts:?}");
    }
}

/// Found here: a line in the state that lines begin in was not there for such an access, which did nothing.
#[test]
fn rows_of_an_access_to_a_line_that_is_not_there_are_executed() {
    for access in ["evict", "demote", "clean"] {
        let text = format!(
            "protocol asks
             line 64 bytes
             channels {{
               up   remote -> home
               down home -> remote
             }}
             messages {{
               up:   Ask
               down: Reply
             }}
             remote cache {{
               states {{ A; W waits Reply }}
               A | {access} | send Ask | W
               W | Reply    |          | A
             }}
             home directory {{
               states {{ H }}
               H | Ask | send Reply | stay
             }}
             system whole {{ remotes 2; lines 1 }}"
        );
        let setup = setup(common::parse(&text), 2, 3);
        let statistics = run(&setup).unwrap_or_else(|failure| panic!("{failure}"));
        let get = |name| statistics.get(name).unwrap();
        let made = get("accesses");
        assert!(made > 100.0, "{access}: {made}");
        let header = setup.platform.link.header_bytes.value as f64;
        let sent = get("link_bytes_to_home") / header;
        assert_eq!(sent, get("accesses"), "{access}");
    }
}
