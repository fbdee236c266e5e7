//! Programs on texts whose lines are joined by registers and several homes.

use cohkit_litmus::axioms::{allowed, Model};
use cohkit_litmus::cores::Cores;
use cohkit_litmus::cycles::classic;
use cohkit_litmus::lines::Lines;
use cohkit_litmus::run::{run_on, Found, Options};
use cohkit_protocol::protocol::{Home, Protocol};
use cohkit_protocol::text::parse;

const ORDERED: &str = include_str!("../../../tests/homes/ordered-at-homes.coh");

fn read(text: &str) -> Protocol {
    parse(text).unwrap_or_else(|errors| {
        let all = errors.iter().map(|e| e.render("text", text, false));
        panic!("{}", all.collect::<String>())
    })
}

/// The first classic program of so many threads at most that shows what release consistency does not allow, or goes wrong.
fn refuted(protocol: &Protocol, most: usize) -> Option<String> {
    let Home::Controller(home) = &protocol.home else {
        panic!("a home written as rows")
    };
    let options = Options {
        cores: Cores::Relaxed(protocol.kept.expect("orders of its own")),
        gives_up: 0,
        ..Options::default()
    };
    let mut programs = 0;
    let all = classic().into_iter().filter(|p| p.threads.len() <= most);
    for group in Lines::groups(protocol, all.collect()) {
        let (threads, locations) = (group[0].threads.len(), group[0].locations.len());
        let (threads, locations) = (threads as u8, locations as u8);
        let mut lines = Lines::new(protocol, home, threads, locations, options.room).unwrap();
        for program in &group {
            let wrong = match run_on(&mut lines, program, &options, &mut || true) {
                Found::Ends { ends, .. } => {
                    let allowed = allowed(program, Model::Rc).unwrap();
                    let wrong = ends.iter().find(|end| !allowed.contains(end));
                    wrong.map(|end| format!("ends with {}", program.words(end)))
                }
                // What is read and written at once needs a copy.
                Found::Cannot(_) => continue,
                other => Some(format!("{other:?}")),
            };
            programs += 1;
            if let Some(what) = wrong {
                return Some(format!("{}: {what}", program.name));
            }
        }
    }
    assert!(programs > 50, "{programs}");
    None
}

#[test]
fn stores_that_are_ordered_at_homes_are_release_consistent_wherever_locations_lie() {
    assert_eq!(refuted(&read(ORDERED), 3), None);
}

/// Each fault is one that systems of free accesses need not show, as they know no order of values.
#[test]
fn faults_of_the_order_at_homes_are_refuted_by_programs() {
    let faults = [
        ("no home is asked", "needs = count(touched + waiting - { home })", "needs = 0"),
        (
            "a release does not wait for stores at its own home",
            "Release if arrived[sender][epoch] == stores and served",
            "Release if served",
        ),
        (
            "a release does not wait for its turn",
            " and served[sender] == turn and told",
            " and told",
        ),
        (
            "a release does not wait for notifications",
            " and told[sender][epoch] == needs",
            "",
        ),
        (
            "a home notifies before the stores are there",
            "Ask if arrived[sender][epoch] == stores and served[sender] == turn",
            "Ask if served[sender] == turn",
        ),
        (
            "a home notifies before its turn",
            "Ask if arrived[sender][epoch] == stores and served[sender] == turn",
            "Ask if arrived[sender][epoch] == stores",
        ),
        (
            "a fence is acknowledged before the stores are there",
            "Empty if arrived[sender][epoch] == stores and served[sender] == turn",
            "Empty if served[sender] == turn",
        ),
        (
            "homes with earlier releases are not asked",
            "count(touched + waiting - { home })),\n      for h in touched + waiting - { home }",
            "count(touched - { home })),\n      for h in touched - { home }",
        ),
        (
            "a fence does not wait for acknowledgements",
            "fence if count(touched + waiting) == 0",
            "fence if count(touched) == 0",
        ),
        (
            "an acquire does not wait for earlier releases",
            "acquire if count(waiting) == 0",
            "acquire",
        ),
        (
            "a release begins before earlier stores",
            "release after all;",
            "release after load acquire;",
        ),
        (
            "what one core does to one line is in no order",
            "  ordered store, read per line     # what one core does to one line; nothing else is in order\n",
            "",
        ),
        (
            "a home notifies itself",
            "send Notify (whose = sender, epoch = epoch) to at",
            "send Notify (whose = sender, epoch = epoch) to home",
        ),
    ];
    for (what, right, wrong) in faults {
        assert!(ORDERED.contains(right), "{what}");
        let refuted = refuted(&read(&ORDERED.replace(right, wrong)), 3);
        assert!(refuted.is_some(), "{what}");
    }
}
