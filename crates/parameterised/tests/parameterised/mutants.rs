//! Random changes of verified protocols: what is verified for every number of remotes has no violation at small ones.

use crate::support::{explored, parsed, SmallVerdict, VERIFIED};
use cohkit_base::random::SplitMix64;
use cohkit_parameterised::{verify, Limits, Verdict};
use cohkit_protocol::controller::{Controller, Effect};
use cohkit_protocol::protocol::{Home, Protocol, StateId};

/// Command that repeats the comparison; a failure names the protocol and the seed of the mutant.
const COMMAND: &str = "cargo test -p cohkit-parameterised --test parameterised mutants";

/// Number of mutants of each small protocol, with the seeds from 0 on.
const MUTANTS: u64 = 60;

/// Number of mutants of each CXL protocol. Only the violated ones are judged for every number of remotes: the others
/// have a hundred thousand pairs.
const CXL_MUTANTS: u64 = 30;

/// Changes one row of an agent: its guard, a statement, its next state, its effect, or its place.
pub fn mutate(controller: &mut Controller, random: &mut SplitMix64) {
    let mut below = |count: usize| random.below(count as u64) as usize;
    let states = controller.states.len();
    let index = below(controller.rules.len());
    let kind = below(5);
    let rule = &mut controller.rules[index];
    match (kind, &mut rule.effect) {
        (0, _) if rule.guard.is_some() => rule.guard = None,
        (1, Effect::Take { body, .. }) if !body.is_empty() => {
            body.remove(below(body.len()));
        }
        (2, Effect::Take { next, .. }) => *next = Some(StateId(below(states) as u16)),
        (3, effect) => *effect = Effect::Stall,
        _ => {
            let key = |index: usize| {
                let rule = &controller.rules[index];
                (rule.state, rule.event)
            };
            let other = (index + 1..controller.rules.len()).find(|&other| key(other) == key(index));
            if let Some(other) = other {
                controller.rules.swap(index, other);
            }
        }
    }
}

/// A mutant of a protocol with one or two changed rows.
fn mutant(protocol: &Protocol, random: &mut SplitMix64) -> Protocol {
    let mut mutant = protocol.clone();
    for _ in 0..1 + random.below(2) {
        match &mut mutant.home {
            Home::Controller(home) if random.below(3) > 0 => mutate(home, random),
            _ => mutate(&mut mutant.remote, random),
        }
    }
    mutant
}

/// A violation or a deadlock with 1 to `remotes` remotes, in systems of up to 2,000 states.
fn violation(protocol: &Protocol, remotes: u16) -> Option<String> {
    (1..=remotes).find_map(|remotes| match explored(protocol, remotes, 2_000) {
        SmallVerdict::Violated(description) => Some(format!("{remotes} remotes: {description}")),
        SmallVerdict::Holds | SmallVerdict::Unknown => None,
    })
}

#[test]
fn violated_mutants_are_not_verified() {
    let (mut violated, mut verified) = (0, 0);
    for (name, text) in &VERIFIED[..4] {
        let protocol = parsed(text);
        for seed in 0..MUTANTS {
            let mutant = mutant(&protocol, &mut SplitMix64::new(seed));
            let found = violation(&mutant, 4);
            let is_verified = matches!(
                verify(&mutant, &mut Limits::default()),
                Verdict::Verified(_)
            );
            violated += usize::from(found.is_some());
            verified += usize::from(is_verified);
            if let (Some(violation), true) = (found, is_verified) {
                panic!("{name}, seed {seed}: verified, but violated with {violation}\n{COMMAND}");
            }
        }
    }
    println!("{violated} mutants are violated, {verified} are verified");
    assert!(violated > 100 && verified > 60, "{violated}, {verified}");
}

#[test]
fn violated_mutants_of_cxl_are_not_verified() {
    let mut violated = 0;
    for (name, text) in &VERIFIED[4..] {
        let protocol = parsed(text);
        for seed in 0..CXL_MUTANTS {
            let mutant = mutant(&protocol, &mut SplitMix64::new(seed));
            let Some(violation) = violation(&mutant, 3) else {
                continue;
            };
            violated += 1;
            if let Verdict::Verified(_) = verify(&mutant, &mut Limits::default()) {
                panic!("{name}, seed {seed}: verified, but violated with {violation}\n{COMMAND}");
            }
        }
    }
    println!("{violated} mutants of CXL are violated");
    assert!(2 * violated > CXL_MUTANTS, "{violated}");
}
