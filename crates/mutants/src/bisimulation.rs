//! Bisimulation of two protocols: a search for an access, permission or message that tells them apart.
//!
//! Pairs of states are visited that the same steps lead to. Compared is what is outside of the agents: the permission of each cache
//! and whether its bytes are current, accesses that end, messages in flight and their ends, local operations and the lock, and
//! whether anything is outstanding. States and variables of agents, and what messages contain, only count by what follows from them.
//! A step that only one of the two can take must change nothing that is compared.

use cohkit_protocol::protocol::{MessageId, Right};
use cohkit_system::data::{Current, Data};
use cohkit_system::world::{End, Ended, Flight, Step, System, World};
use std::collections::HashSet;

/// Result of a search over pairs of states.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bisimulation {
    /// Every pair was visited, and nothing tells the two apart.
    Whole,
    /// Nothing tells the two apart in the pairs that were visited.
    Partial,
    /// They differ, or one of them is violated or takes more room than there is.
    None,
}

type Pair = [World<Current>; 2];

/// Visits at most this many pairs of states of two systems, depth first: where not all are visited, those after many steps count
/// as well as those after few.
pub fn bisimulation(systems: [&System; 2], most: usize) -> Bisimulation {
    let begin = systems.map(World::new);
    if !alike(systems, &begin) {
        return Bisimulation::None;
    }
    let mut met = HashSet::from([begin.clone()]);
    let mut stack = vec![begin];
    while let Some(pair) = stack.pop() {
        let Some(successors) = successors(systems, &pair) else {
            return Bisimulation::None;
        };
        for next in successors {
            if met.contains(&next) {
                continue;
            }
            if !alike(systems, &next) {
                return Bisimulation::None;
            }
            if met.len() == most {
                return Bisimulation::Partial;
            }
            met.insert(next.clone());
            stack.push(next);
        }
    }
    Bisimulation::Whole
}

/// The pairs that a pair leads to; none if accesses end in one of the two only, or something is wrong.
fn successors(systems: [&System; 2], pair: &Pair) -> Option<Vec<Pair>> {
    let mut left = transitions(systems[0], &pair[0])?;
    let mut right = transitions(systems[1], &pair[1])?;
    let mut pairs = Vec::new();
    while let Some(label) = left.first().or(right.first()).map(|first| first.label) {
        let its = |other: &mut Transition| other.label == label;
        let one: Vec<Transition> = left.extract_if(.., its).collect();
        let other: Vec<Transition> = right.extract_if(.., its).collect();
        // Messages of one label differ in their contents, by which they are sorted.
        for place in 0..one.len().max(other.len()) {
            let of =
                |all: &[Transition], before: &World<Current>| match all.get(place).or(all.last()) {
                    Some(its) => (its.after.clone(), its.ended.clone()),
                    None => (before.clone(), Vec::new()),
                };
            let (a, b) = (of(&one, &pair[0]), of(&other, &pair[1]));
            if a.1 != b.1 {
                return None;
            }
            pairs.push([a.0, b.0]);
        }
    }
    Some(pairs)
}

/// The part of a message that is compared.
type Header = (u8, MessageId, End, End, u8);

fn header(flight: &Flight<Current>) -> Header {
    let Flight {
        line,
        message,
        from,
        to,
        home,
        ..
    } = *flight;
    (line, message, from, to, home)
}

/// A step as both systems name it.
#[derive(Clone, Copy, PartialEq)]
enum Label {
    /// A message arrives; its row chooses this member of a set.
    Arrival(Header, u8),
    Other(Step),
}

/// A step that was taken.
struct Transition {
    label: Label,
    after: World<Current>,
    ended: Vec<Ended<Current>>,
}

/// The steps that change something; none if one of them goes wrong.
fn transitions(system: &System, world: &World<Current>) -> Option<Vec<Transition>> {
    let mut all = Vec::new();
    for step in world.steps(system) {
        let mut after = world.clone();
        let mut ended = Vec::new();
        if !after.take_and_tell(system, step, &mut ended).ok()? {
            continue;
        }
        let arrival = match step {
            Step::Arrives(arrival) => Some((arrival, 0)),
            Step::Chooses(arrival, choice) => Some((arrival, choice)),
            _ => None,
        };
        let label = match arrival {
            Some((arrival, choice)) => Label::Arrival(header(world.network.at(arrival)?), choice),
            None => Label::Other(step),
        };
        all.push(Transition {
            label,
            after,
            ended,
        });
    }
    Some(all)
}

/// Returns true if a pair differs in nothing that is compared, and no claim is violated.
fn alike(systems: [&System; 2], pair: &Pair) -> bool {
    let holds = |side: usize| pair[side].claims(systems[side]).is_ok();
    let quiescent = |side: usize| pair[side].quiescent(systems[side]);
    let headers = |side: usize| pair[side].network.flights().map(header);
    let outside = |side: usize| {
        let lines = pair[side].lines.iter().enumerate();
        lines.flat_map(move |(number, line)| {
            let own = (line.lock, line.asked, line.accepted);
            let states = &systems[side].protocol.remote.states;
            let remotes = line.remotes.iter().map(move |remote| {
                let state = &states[usize::from(remote.configuration.state)];
                let current =
                    state.right > Right::None && Current.current(number as u8, &remote.copy);
                (state.right, current, state.stable(), own)
            });
            remotes.collect::<Vec<_>>()
        })
    };
    holds(0)
        && holds(1)
        && quiescent(0) == quiescent(1)
        && headers(0).eq(headers(1))
        && outside(0).eq(outside(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cohkit_protocol::protocol::{Home, Protocol};
    use cohkit_protocol::text::parse;

    const MOST: usize = 10_000;

    fn system(protocol: &Protocol, remotes: u16) -> System<'_> {
        let Home::Controller(home) = &protocol.home else {
            panic!("{} has rows", protocol.name);
        };
        System::new(protocol, home, remotes, 1, 7)
    }

    const MSI: &str = include_str!("../../../protocols/msi.coh");
    const WRITE_THROUGH: &str = include_str!("../../../protocols/write-through.coh");
    const SELF_INVALIDATE: &str = include_str!("../../../protocols/self-invalidate.coh");

    /// The bisimulation of a mutant with its text, in systems of this many caches.
    fn of_mutant(text: &str, what: &str, remotes: u16) -> Bisimulation {
        let all = crate::mutants(text);
        let mutant = all.iter().find(|mutant| mutant.what == what).expect(what);
        let protocols = [text, &mutant.text].map(|text| parse(text).expect("it is accepted"));
        let [text, mutant] = protocols
            .each_ref()
            .map(|protocol| system(protocol, remotes));
        bisimulation([&text, &mutant], MOST)
    }

    #[test]
    fn values_that_nothing_reads_make_no_difference() {
        let dead = "W | InvAck | write aside, send Ack to writer, writer := none, owed := 0 | R: `owed := 1` instead of `owed := 0`";
        assert_eq!(of_mutant(WRITE_THROUGH, dead, 2), Bisimulation::Whole);
        assert_eq!(of_mutant(WRITE_THROUGH, dead, 4), Bisimulation::Partial);
    }

    #[test]
    fn one_more_message_makes_a_difference() {
        let all = "R | Write | aside, send Inv to readers - { sender }, writer := sender, owed := count(readers - { sender }), readers := {} | W: ";
        let more = "`send Inv to readers` instead of `send Inv to readers - { sender }`";
        assert_eq!(
            of_mutant(WRITE_THROUGH, &format!("{all}{more}"), 2),
            Bisimulation::None
        );
    }

    #[test]
    fn one_permission_less_makes_a_difference() {
        let unread = "remote state SM_AD reads waits Data InvAck: without `reads`";
        assert_eq!(of_mutant(MSI, unread, 2), Bisimulation::None);
    }

    #[test]
    fn accesses_that_do_not_end_make_a_difference() {
        let endless = "IN | Data | done | I: without `done`";
        assert_eq!(of_mutant(SELF_INVALIDATE, endless, 2), Bisimulation::None);
    }

    /// Three acknowledgements are counted by four caches only.
    #[test]
    fn counting_from_three_on_makes_a_difference_for_four_caches() {
        let twice = "W | InvAck if owed > 1 | owed := owed - 1 | stay: its actions twice";
        assert_eq!(of_mutant(WRITE_THROUGH, twice, 2), Bisimulation::Whole);
        assert_eq!(of_mutant(WRITE_THROUGH, twice, 4), Bisimulation::None);
    }
}
