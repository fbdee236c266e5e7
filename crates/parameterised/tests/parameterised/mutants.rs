//! Random changes of verified protocols: what is verified for every number of remotes has no violation at small ones.

use crate::support::{explored, parsed, SmallVerdict, Verified, VERIFIED};
use cohkit_base::random::SplitMix64;
use cohkit_parameterised::{verify, Limits, Verdict};
use cohkit_protocol::controller::{Controller, Effect};
use cohkit_protocol::protocol::{Home, Protocol, StateId};

/// Command that repeats the comparison; a failure names the protocol and the seed of the mutant.
const COMMAND: &str = "cargo test -p cohkit-parameterised --test parameterised mutants";

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

/// Numbers of mutants by outcome.
#[derive(Default)]
struct Tally {
    /// Mutants with a violation at a small number of remotes.
    violated: u64,
    /// Mutants that are verified for every number of remotes.
    verified: u64,
}

/// Judges the mutants of a protocol: the violated ones, and if `all` also the others.
fn judge(original: &Verified, remotes: u16, all: bool) -> Tally {
    let mut tally = Tally::default();
    let protocol = parsed(original.text);
    for seed in 0..original.mutants {
        let mutant = mutant(&protocol, &mut SplitMix64::new(seed));
        let violation = violation(&mutant, remotes);
        tally.violated += u64::from(violation.is_some());
        if violation.is_none() && !all {
            continue;
        }
        let verdict = verify(&mutant, &mut Limits::default());
        let is_verified = matches!(verdict, Verdict::Verified(_));
        tally.verified += u64::from(is_verified);
        if let (Some(violation), true) = (violation, is_verified) {
            let name = original.name;
            panic!("{name}, seed {seed}: verified, but violated with {violation}\n{COMMAND}");
        }
    }
    let Tally { violated, verified } = tally;
    println!(
        "{}: {violated} mutants are violated, {verified} are verified",
        original.name
    );
    tally
}

#[test]
fn violated_mutants_are_not_verified() {
    let tallies = VERIFIED[..9]
        .iter()
        .map(|original| judge(original, 4, true));
    let tallies: Vec<Tally> = tallies.collect();
    let violated: u64 = tallies.iter().map(|tally| tally.violated).sum();
    let verified: u64 = tallies.iter().map(|tally| tally.verified).sum();
    assert!(violated > 200 && verified > 100, "{violated}, {verified}");
}

/// The unviolated mutants have a hundred thousand pairs, and are not judged.
#[test]
fn violated_mutants_of_cxl_are_not_verified() {
    let tallies = VERIFIED[9..]
        .iter()
        .map(|original| judge(original, 3, false));
    let violated: u64 = tallies.map(|tally| tally.violated).sum();
    assert!(violated > 15, "{violated}");
}
