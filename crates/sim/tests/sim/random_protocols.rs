//! The simulator agrees with the reachable behaviour of random protocols' controllers. (In `cohkit-check`,
//! `random_protocols` compares every form of the model.)

use cohkit_testing::random_protocols::generate;
use cohkit_testing::random_protocols::simulation;
use cohkit_testing::setups;

use cohkit_protocol::protocol::{Home, Protocol};
use cohkit_protocol::text::parse;
use cohkit_sim::simulation::run;
use cohkit_system::data::Current;
use cohkit_system::state::{explore, Found, System, SystemState, DEFAULT_CHANNEL_CAPACITY};
use setups::seeds;
use simulation::setup;

/// Number of random protocols without COHKIT_SEEDS, and range of seeds in which those with networks are
/// searched.
const TEXTS: u64 = 200;

/// Maximum number of explored states.
const MAX_STATES: usize = 20_000;

/// Number of protocols of each kind.
#[derive(Default, Debug)]
struct ProtocolCounts {
    /// Safe ones whose runs were completed.
    safe: usize,
    /// Safe ones whose home received many requests.
    lively: usize,
    /// Safe ones whose agents may deadlock.
    deadlocking: usize,
    /// Unsafe ones: a reachable state violates a property.
    violating: usize,
    /// Unsafe ones of which a run detected a violation, not only a lack of progress.
    detected: usize,
}

impl ProtocolCounts {
    /// Compares two runs of a protocol, one of them with components between the cores and their caches, with all
    /// behaviours that its controllers can reach.
    fn compare(&mut self, protocol: &Protocol, seed: u64) -> Result<(), String> {
        let (remotes, lines) = (protocol.systems[0].remotes, protocol.systems[0].lines);
        let Home::Controller(home) = &protocol.home else {
            panic!("a home with rows");
        };
        let system = System::new(protocol, home, remotes, lines, DEFAULT_CHANNEL_CAPACITY);
        let exploration = explore(&system, SystemState::<Current>::new(&system), MAX_STATES);
        let may_stop = protocol.joins_lines().is_some();
        let Some(runs) = simulation::compare(protocol, &exploration, may_stop, seed)? else {
            return Ok(());
        };
        match exploration {
            Found::Safe {
                stuck_path: Some(_),
                ..
            } => self.deadlocking += 1,
            Found::Safe {
                stuck_path: None, ..
            } => {
                self.safe += 1;
                self.lively += usize::from(runs.bytes_to_home > 800.0);
            }
            Found::Violated { .. } => {
                self.violating += 1;
                self.detected += usize::from(runs.found_violation);
            }
            Found::LimitReached { .. } => {}
        }
        Ok(())
    }
}

#[test]
fn verified_random_protocols_survive_torture() {
    let all_seeds = seeds(TEXTS);
    let mut counts = ProtocolCounts::default();
    let arrays = match all_seeds == (0..TEXTS) {
        true => generate::ARRAYS..generate::ARRAYS + 15,
        false => 0..0,
    };
    let networks = match all_seeds == (0..TEXTS) {
        true => generate::COMBINED..generate::COMBINED + TEXTS,
        false => 0..0,
    };
    let networks = networks.filter(|&seed| generate::protocol(seed).contains("network "));
    for seed in all_seeds.clone().chain(arrays).chain(networks) {
        let text = generate::protocol(seed);
        // Some protocols have one invalid row, which the front end reports.
        let Ok(protocol) = parse(&text) else {
            continue;
        };
        counts.compare(&protocol, seed).unwrap_or_else(|error| {
            panic!("COHKIT_SEED={seed} cargo test -p cohkit-sim --test sim random_protocols::\n{text}\n{error}")
        });
    }
    println!("{counts:?}");
    // The sample is only useful with enough protocols of each kind.
    if all_seeds == (0..TEXTS) {
        assert!(counts.safe > 90, "{counts:?}");
        assert!(counts.lively > 60, "{counts:?}");
        assert!(counts.deadlocking > 25, "{counts:?}");
        assert!(counts.detected > 20, "{counts:?}");
    }
}

/// Regression, found by this test: an access to a line in its initial state was treated as one to an absent line, and
/// its row was not executed.
#[test]
fn rows_of_an_access_to_an_absent_line_are_executed() {
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
        let setup = setup(setups::parse(&text), 2, 3);
        let statistics = run(&setup).unwrap_or_else(|failure| panic!("{failure}"));
        let get = |name| statistics.get(name).unwrap();
        let performed = get("accesses");
        assert!(performed > 100.0, "{access}: {performed}");
        let header = setup.platform.link.header_bytes.value as f64;
        let sent = get("link_bytes_to_home") / header;
        assert_eq!(sent, get("accesses"), "{access}");
    }
}
