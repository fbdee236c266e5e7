//! Transactions that never end, in shipped protocols and in small ones with a known answer.

use cohkit_base::exploration::Limits;
use cohkit_protocol::construct::home;
use cohkit_protocol::text::parse;
use cohkit_system::starvation::{search, Answer, Fairness, NoData, Search, Waiting};
use cohkit_system::state::{Step, System, SystemState};
use std::path::Path;

/// A protocol of the tutorial, in which the home stalls requests while it waits for the owner.
const STALLS: &str = include_str!("../../../../docs/first-protocol/5-valid.coh");

/// The same protocol with a home that refuses such requests, and caches that send them again.
fn retries() -> String {
    let changes = [
        ("grant:    Data (line)", "grant:    Data (line), Nack"),
        ("W  waits Data", "W  waits Data Nack"),
        (
            "  V       | Fetch ",
            "  W       | Nack       | send Get           | stay\n  V       | Fetch ",
        ),
        (
            "B       | Get   | stall                                |",
            "B       | Get   | send Nack | stay",
        ),
    ];
    changes.iter().fold(STALLS.to_string(), |text, (old, new)| {
        assert!(text.contains(old), "{old}");
        text.replacen(old, new, 1)
    })
}

/// Searches the system of a protocol text with this number of remotes and one line. The lasso of an answer is replayed.
fn search_text(text: &str, remotes: u16, fairness: Fairness) -> Search {
    let protocol = parse(text).expect("the text has no errors");
    let home = home(&protocol, remotes).expect("there is a home");
    let system = System::new(&protocol, &home, remotes, 1, 7);
    let limits = Limits {
        max_states: 100_000,
        should_continue: &mut || true,
    };
    let result = search(&system, fairness, limits);
    if let Answer::Starves(starvation) = &result.0 {
        let mut state = SystemState::<NoData>::new(&system);
        let mut take = |steps: &[Step]| {
            for &step in steps {
                assert_eq!(state.take(&system, step), Ok(true), "{step:?}");
            }
            state.clone()
        };
        let begin = take(&starvation.lasso.prefix);
        assert_eq!(take(&starvation.lasso.cycle), begin, "the cycle is closed");
    }
    result
}

#[test]
fn shipped_protocols_do_not_starve_under_strong_fairness() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../protocols");
    let mut verified = 0;
    for entry in std::fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(&path).expect("the file can be read");
        // Compositions have no system of their own, and the states of `eci` take minutes.
        if text.contains("\nuse ") || path.ends_with("eci.coh") || path.ends_with("eci-both.coh") {
            continue;
        }
        let (answer, states, _) = search_text(&text, 2, Fairness::Strong);
        assert_eq!(
            answer,
            Answer::NoStarvation,
            "{}: {states} states",
            path.display()
        );
        verified += 1;
    }
    assert!(verified >= 15, "{verified} protocols");
}

#[test]
fn order_of_requests_decides_starvation_under_weak_fairness() {
    let shipped = |name: &str| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../protocols");
        std::fs::read_to_string(folder.join(name)).expect("the file can be read")
    };
    // The home of `msi` never stalls a request for ever; that of `ccix` may stall it whenever it arrives.
    let (answer, ..) = search_text(&shipped("msi.coh"), 2, Fairness::Weak);
    assert_eq!(answer, Answer::NoStarvation);
    let (answer, ..) = search_text(&shipped("ccix.coh"), 2, Fairness::Weak);
    let Answer::Starves(starvation) = answer else {
        panic!("{answer:?}")
    };
    assert_eq!(starvation.agent, Waiting::Remote(0));
    assert!(!starvation.is_livelock(), "others are served");
}

#[test]
fn refused_requests_starve_and_stalled_ones_do_not() {
    for (text, starves) in [(STALLS.to_string(), false), (retries(), true)] {
        let (answer, ..) = search_text(&text, 3, Fairness::Strong);
        assert_eq!(matches!(answer, Answer::Starves(_)), starves, "{answer:?}");
    }
}

#[test]
fn messages_that_circulate_are_a_livelock() {
    // The home refuses every request while a cache has the line, and the cache that asks never gives up.
    let text = retries().replace(
        "V       | Get   | send Fetch to owner, owner := sender | B",
        "V       | Get if owner == sender | send Fetch to owner | B\n  V       | Get if owner != sender | send Nack | stay",
    );
    let (answer, ..) = search_text(&text, 2, Fairness::Strong);
    let Answer::Starves(starvation) = answer else {
        panic!("{answer:?}")
    };
    assert!(starvation.is_livelock(), "{starvation:?}");
    assert_eq!(starvation.lasso.cycle.len(), 2, "a request and its refusal");
}

#[test]
fn request_that_stalls_for_ever_never_ends() {
    // The home stalls requests while a cache has the line, and no cache gives it back.
    let text = STALLS
        .replace("V       | Get   | send Fetch to owner, owner := sender | B", "V       | Get if owner == sender | send Fetch to owner | B\n  V       | Get if owner != sender | stall |")
        .replace("  V       | evict      | send Put           | I\n", "");
    for fairness in [Fairness::Weak, Fairness::Strong] {
        let (answer, ..) = search_text(&text, 2, fairness);
        let Answer::Starves(starvation) = answer else {
            panic!("{answer:?}")
        };
        assert!(
            starvation.is_deadlock() && !starvation.is_livelock(),
            "{starvation:?}"
        );
    }
}

#[test]
fn limits_and_violations_are_no_verdict() {
    let protocol = parse(STALLS).expect("the text has no errors");
    let home = home(&protocol, 2).expect("there is a home");
    let system = System::new(&protocol, &home, 2, 1, 7);
    let limits = Limits {
        max_states: 10,
        should_continue: &mut || true,
    };
    assert!(matches!(
        search(&system, Fairness::Strong, limits).0,
        Answer::Stopped(_)
    ));
    let text = STALLS.replace("  I W     | Fetch      | send Ack           | stay\n", "");
    let (answer, ..) = search_text(&text, 2, Fairness::Strong);
    assert!(matches!(answer, Answer::StepFailed(_)), "{answer:?}");
}
