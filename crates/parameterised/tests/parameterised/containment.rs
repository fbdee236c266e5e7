//! Views of all reachable configurations of small systems, which must be among those of the abstraction.

use crate::support::{home, parsed, proof, system, view_key, VERIFIED};
use cohkit_base::exploration::{Exploration, Limits};
use cohkit_parameterised::Proof;
use cohkit_protocol::controller::Controller;
use cohkit_protocol::protocol::Protocol;
use cohkit_system::data::Current;
use cohkit_system::state::{System, SystemState};
use std::collections::BTreeSet;

/// Maximum number of states of a system that are visited, in breadth-first order.
const MAX_STATES: usize = 20_000;

/// The first reachable states of a system without violations.
fn reachable(system: &System, max_states: usize) -> Vec<SystemState<Current>> {
    let mut exploration = Exploration::new(SystemState::new(system));
    let mut limits = Limits {
        max_states,
        should_continue: &mut || true,
    };
    while let Ok(Some(_)) = exploration.next(&mut limits) {
        exploration.expand(&mut { system }, |step, successor| {
            assert!(successor.is_ok(), "{step:?}: {successor:?}");
        });
    }
    exploration.into_states().into_values()
}

/// Views of configurations of 2 to `remotes` remotes with this home. `variables` are those that the keys have.
fn concrete_views(
    protocol: &Protocol,
    controller: &Controller,
    variables: &Controller,
    remotes: u16,
    max_states: usize,
) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    for remotes in 2..=remotes {
        let system = system(protocol, controller, remotes);
        for state in &reachable(&system, max_states) {
            let cells = 0..remotes as u8;
            keys.extend(cells.map(|cell| view_key(&system, variables, state, cell)));
        }
    }
    keys
}

/// Views of the abstraction, as keys with these variables.
fn abstract_views(protocol: &Protocol, proof: &Proof, variables: &Controller) -> BTreeSet<String> {
    let system = system(protocol, &proof.home, 2);
    let keys = proof.views.iter();
    keys.map(|view| view_key(&system, variables, view, 0))
        .collect()
}

/// A view of a system of 2 to `remotes` remotes with the home of the file that is not among those of a proof, if any.
pub fn missing_view(
    protocol: &Protocol,
    proof: &Proof,
    remotes: u16,
    max_states: usize,
) -> Option<String> {
    let home = home(protocol);
    let found = abstract_views(protocol, proof, home);
    let mut concrete = concrete_views(protocol, home, home, remotes, max_states).into_iter();
    concrete.find(|view| !found.contains(view))
}

/// Numbers of remotes up to which each protocol is explored.
const SIZES: [(&str, u16); 6] = [
    ("german", 5),
    ("msi_through_home", 4),
    ("write-through", 4),
    ("write-through-two-step", 4),
    ("cxl-bias", 3),
    ("cxl-mem", 3),
];

#[test]
fn views_of_small_systems_are_abstract_views() {
    for ((name, text), (sized, remotes)) in VERIFIED.into_iter().zip(SIZES) {
        assert_eq!(name, sized);
        let protocol = parsed(text);
        let (home, proof) = (home(&protocol), proof(name, &protocol));
        // With the ghosts, from the translated home; without them and the counts, from the home of the file.
        for (controller, variables) in [(&proof.home, &proof.home), (home, home)] {
            let found = abstract_views(&protocol, &proof, variables);
            let concrete = concrete_views(&protocol, controller, variables, remotes, MAX_STATES);
            let mut missing = concrete.difference(&found);
            assert_eq!(missing.next(), None, "{name}");
            let (found, concrete) = (found.len(), concrete.len());
            println!("{name}: {found} abstract views, {concrete} of up to {remotes} remotes");
            // The comparison means something: small systems have a large part of the views.
            assert!(2 * concrete >= found, "{name}: {found}, {concrete}");
        }
    }
}

/// Control: without the rest bits of one set, some view of a small system is missing.
#[test]
fn containment_fails_without_rest_bits() {
    let (name, text) = VERIFIED[0];
    let protocol = parsed(text);
    let home = home(&protocol);
    let mut proof = proof(name, &protocol);
    let concrete = concrete_views(&protocol, home, home, 3, MAX_STATES);
    let slot = system(&protocol, &proof.home, 2).slots_of_home(0).start;
    for view in &mut proof.views {
        view.lines[0].home.slots[slot] &= 1;
    }
    let found = abstract_views(&protocol, &proof, home);
    assert!(!concrete.is_subset(&found));
}
