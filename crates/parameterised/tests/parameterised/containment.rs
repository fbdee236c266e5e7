//! Views of all reachable configurations of small systems, which must be among those of the abstraction.

use crate::support::{
    abstract_view_key, concrete_view_keys, home, parsed, proof, system, text_of, VERIFIED,
};
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
    (controller, variables): (&Controller, &Controller),
    blocks: &[u16],
    remotes: u16,
    max_states: usize,
) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    for remotes in 2..=remotes {
        let system = system(protocol, controller, remotes);
        for state in &reachable(&system, max_states) {
            keys.extend(concrete_view_keys(&system, variables, blocks, state));
        }
    }
    keys
}

/// Views of the abstraction, as keys with these variables.
fn abstract_views(protocol: &Protocol, proof: &Proof, variables: &Controller) -> BTreeSet<String> {
    let system = system(protocol, &proof.home, 2);
    let views = proof.views.iter();
    views
        .map(|view| abstract_view_key(&system, variables, proof, view))
        .collect()
}

/// A view of a system of 2 to `remotes` remotes with the home of the file that is not among those of a proof, if any.
pub fn missing_view(
    protocol: &Protocol,
    proof: &Proof,
    remotes: u16,
    max_states: usize,
) -> Option<String> {
    let home = home(protocol, 2).expect("a home");
    let found = abstract_views(protocol, proof, &home);
    let homes = (&home, &home);
    let concrete = concrete_views(protocol, homes, &proof.blocks, remotes, max_states);
    let mut concrete = concrete.into_iter();
    concrete.find(|view| !found.contains(view))
}

/// Checks that views of small systems are among those of a proof.
fn check_containment(name: &str, text: &str, remotes: u16, max_states: usize) {
    let protocol = parsed(text);
    let proof = proof(name, &protocol);
    assert!(proof.is_closed(&protocol), "{name}");
    let home = home(&protocol, 2).expect("a home");
    // With the ghosts, from the translated home; without them and the counts, from the home of the file.
    let mut homes = vec![(&proof.home, &proof.home)];
    if proof.home != home {
        homes.push((&home, &home));
    }
    for (controller, variables) in homes {
        let found = abstract_views(&protocol, &proof, variables);
        let homes = (controller, variables);
        let concrete = concrete_views(&protocol, homes, &proof.blocks, remotes, max_states);
        let mut missing = concrete.difference(&found);
        assert_eq!(missing.next(), None, "{name}");
        let (found, concrete) = (found.len(), concrete.len());
        println!("{name}: {found} abstract views, {concrete} of up to {remotes} remotes");
        // The comparison means something: small systems have a large part of the views.
        assert!(2 * concrete >= found, "{name}: {found}, {concrete}");
    }
}

#[test]
fn views_of_small_systems_are_abstract_views() {
    for protocol in &VERIFIED {
        check_containment(protocol.name, protocol.text, protocol.remotes, MAX_STATES);
    }
}

#[test]
#[ignore = "a minute; `make soak` runs it"]
fn views_of_a_large_protocol_are_abstract_views() {
    let text = include_str!("../../../../protocols/back-invalidate.coh");
    let protocol = parsed(text);
    let proof = proof("back-invalidate", &protocol);
    assert_eq!(missing_view(&protocol, &proof, 4, 100_000), None);
}

/// Control: without the rest bits of one set, some view of a small system is missing.
#[test]
fn containment_fails_without_rest_bits() {
    let protocol = parsed(text_of("german"));
    let mut proof = proof("german", &protocol);
    assert_eq!(missing_view(&protocol, &proof, 3, MAX_STATES), None);
    let slot = system(&protocol, &proof.home, 2).slots_of_home(0).start;
    for view in &mut proof.views {
        view.lines[0].home.slots[slot] &= 1;
    }
    assert!(missing_view(&protocol, &proof, 3, MAX_STATES).is_some());
}

/// Control: without one block of knowledge outside, some view of a small system is missing.
#[test]
fn containment_fails_without_blocks() {
    let protocol = parsed(text_of("msi-policy"));
    let proof = proof("msi-policy", &protocol);
    assert_eq!(missing_view(&protocol, &proof, 3, 5_000), None);
    let slots = proof.home.variables.len();
    let blocks: BTreeSet<u16> = proof.blocks.iter().copied().collect();
    let mut controls = 0;
    for &block in &blocks {
        let views = proof.views.iter().filter(|view| {
            let word = view.lines[0].home.slots[slots + usize::from(block) / 16];
            word >> (block % 16) & 1 == 0
        });
        let mut without = proof.clone();
        without.views = views.cloned().collect();
        if without.views.len() == proof.views.len() {
            continue;
        }
        controls += 1;
        let missing = missing_view(&protocol, &without, 3, 5_000);
        assert!(missing.is_some(), "block {block}");
    }
    assert!(controls > 3, "{controls}");
}

/// Control: no view of a proof can be left out.
#[test]
fn proof_without_one_view_is_not_closed() {
    for (name, step) in [("german", 1), ("msi-policy", 97)] {
        let protocol = parsed(text_of(name));
        let proof = proof(name, &protocol);
        for left_out in (0..proof.views.len()).step_by(step) {
            let mut without = proof.clone();
            without.views.remove(left_out);
            assert!(!without.is_closed(&protocol), "{name}, view {left_out}");
        }
    }
}
