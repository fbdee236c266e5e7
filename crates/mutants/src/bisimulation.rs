//! Bisimulation of two protocols: a search for an access, permission or message that distinguishes them.
//!
//! The search visits pairs of states that the same steps reach. It compares the observable part of the states: the
//! permission of each cache, and whether its copy is current; completed accesses; messages in flight with sender and
//! receiver; local operations and the lock; and quiescence. States and variables of agents, and contents of messages,
//! count only by their observable effects. A step that only one protocol can take must change nothing observable.

use cohkit_protocol::protocol::{MessageId, Permission};
use cohkit_system::data::{Current, Data};
use cohkit_system::state::{CompletedAccess, Endpoint, InFlightMessage, Step, System, SystemState};
use std::collections::HashSet;

/// Result of a search over pairs of states.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bisimulation {
    /// Every pair was visited, and none distinguishes the two.
    Complete,
    /// No visited pair distinguishes the two; the search stopped at its limit.
    Partial,
    /// A pair differs, or one system has a violation or exceeds a limit.
    Different,
}

/// States of the two systems that the same steps reach, original first.
type Pair = [SystemState<Current>; 2];

/// Compares at most `max_pairs` pairs of states of two systems, which have the same size. The search is depth-first,
/// so that an incomplete search also reaches deep states.
pub fn bisimulation(systems: [&System; 2], max_pairs: usize) -> Bisimulation {
    let initial_pair = systems.map(SystemState::new);
    if !have_equal_observables(systems, &initial_pair) {
        return Bisimulation::Different;
    }
    let mut visited = HashSet::from([initial_pair.clone()]);
    let mut stack = vec![initial_pair];
    while let Some(pair) = stack.pop() {
        let Some(successors) = successors(systems, &pair) else {
            return Bisimulation::Different;
        };
        for next in successors {
            if visited.contains(&next) {
                continue;
            }
            if !have_equal_observables(systems, &next) {
                return Bisimulation::Different;
            }
            if visited.len() == max_pairs {
                return Bisimulation::Partial;
            }
            visited.insert(next.clone());
            stack.push(next);
        }
    }
    Bisimulation::Complete
}

/// Returns the successors of a pair. `None` if an access completes in only one of the two systems, or on a violation.
fn successors(systems: [&System; 2], pair: &Pair) -> Option<Vec<Pair>> {
    let mut left = transitions(systems[0], &pair[0])?;
    let mut right = transitions(systems[1], &pair[1])?;
    let mut pairs = Vec::new();
    while let Some(label) = left.first().or(right.first()).map(|first| first.label) {
        let has_label = |transition: &mut Transition| transition.label == label;
        let left_steps: Vec<Transition> = left.extract_if(.., has_label).collect();
        let right_steps: Vec<Transition> = right.extract_if(.., has_label).collect();
        // Messages with the same label differ in their contents, by which they are sorted. If one system has fewer
        // steps with this label, its last one is compared with the rest of the other system's.
        for index in 0..left_steps.len().max(right_steps.len()) {
            // A system without a step of its own stays in its state.
            let [left_step, right_step] =
                [&left_steps, &right_steps].map(|steps| steps.get(index).or(steps.last()));
            let completed = |step: Option<&Transition>| {
                step.map_or(Vec::new(), |transition| transition.completed.clone())
            };
            if completed(left_step) != completed(right_step) {
                return None;
            }
            let successor = |step: Option<&Transition>, unchanged: &SystemState<Current>| {
                step.map_or(unchanged, |transition| &transition.next_state)
                    .clone()
            };
            pairs.push([
                successor(left_step, &pair[0]),
                successor(right_step, &pair[1]),
            ]);
        }
    }
    Some(pairs)
}

/// Observable part of a message.
#[derive(Clone, Copy, PartialEq)]
struct Header {
    /// Number of the line.
    line: u8,
    /// Message type.
    message: MessageId,
    /// Sender.
    from: Endpoint,
    /// Receiver.
    to: Endpoint,
    /// Number of the home that sends or receives the message.
    home: u8,
}

/// Returns the observable part of a message in flight.
fn header(flight: &InFlightMessage<Current>) -> Header {
    let InFlightMessage {
        line,
        message,
        from,
        to,
        home,
        ..
    } = *flight;
    Header {
        line,
        message,
        from,
        to,
        home,
    }
}

/// Name of a step, common to both systems.
#[derive(Clone, Copy, PartialEq)]
enum Label {
    /// Delivery of a message. Its row chooses this member of a set.
    Arrival(Header, u8),
    /// Any other step.
    Other(Step),
}

/// A step with its effects, in one of the systems.
struct Transition {
    /// Name of the step.
    label: Label,
    /// State after the step.
    next_state: SystemState<Current>,
    /// Accesses that the step completes.
    completed: Vec<CompletedAccess<Current>>,
}

/// Returns the steps that change the state. `None` if a step has a violation.
fn transitions(system: &System, state: &SystemState<Current>) -> Option<Vec<Transition>> {
    let mut transitions = Vec::new();
    for step in state.steps(system) {
        let mut next_state = state.clone();
        let mut completed = Vec::new();
        if !next_state
            .take_recording(system, step, &mut completed)
            .ok()?
        {
            continue;
        }
        let delivery = match step {
            Step::Deliver(delivery) => Some((delivery, 0)),
            Step::DeliverChoosing(delivery, choice) => Some((delivery, choice)),
            _ => None,
        };
        let label = match delivery {
            Some((delivery, choice)) => Label::Arrival(header(state.network.at(delivery)?), choice),
            None => Label::Other(step),
        };
        transitions.push(Transition {
            label,
            next_state,
            completed,
        });
    }
    Some(transitions)
}

/// Returns true if a pair has the same observable part, and both states satisfy their properties.
fn have_equal_observables(systems: [&System; 2], pair: &Pair) -> bool {
    let holds = |side: usize| pair[side].claims(systems[side]).is_ok();
    let quiescent = |side: usize| pair[side].quiescent(systems[side]);
    let headers = |side: usize| pair[side].network.flights().map(header);
    let observables = |side: usize| {
        let lines = pair[side].lines.iter().enumerate();
        lines.flat_map(move |(number, line)| {
            let operation = (line.lock, line.requested, line.accepted);
            let states = &systems[side].protocol.remote.states;
            let remotes = line.remotes.iter().map(move |remote| {
                let state = &states[usize::from(remote.configuration.state)];
                let current = state.permission > Permission::None
                    && Current.is_current(number as u8, &remote.copy);
                (state.permission, current, state.is_stable(), operation)
            });
            remotes.collect::<Vec<_>>()
        })
    };
    holds(0)
        && holds(1)
        && quiescent(0) == quiescent(1)
        && headers(0).eq(headers(1))
        && observables(0).eq(observables(1))
}

#[cfg(test)]
mod tests {
    use super::{bisimulation, Bisimulation};
    use cohkit_protocol::protocol::{Home, Protocol};
    use cohkit_protocol::text::parse;
    use cohkit_system::state::System;

    const MAX_STATE_PAIRS: usize = 10_000;

    fn system(protocol: &Protocol, remotes: u16) -> System<'_> {
        let Home::Controller(home) = &protocol.home else {
            panic!("{} has rows", protocol.name);
        };
        System::new(protocol, home, remotes, 1, 7)
    }

    const MSI: &str = include_str!("../../../protocols/msi.coh");
    const WRITE_THROUGH: &str = include_str!("../../../protocols/write-through.coh");
    const SELF_INVALIDATE: &str = include_str!("../../../protocols/self-invalidate.coh");

    /// Compares a mutant with its original, in systems with this number of caches.
    fn compare_mutant(text: &str, description: &str, remotes: u16) -> Bisimulation {
        let mutants = crate::mutants(text);
        let mutant = mutants
            .iter()
            .find(|mutant| mutant.description == description)
            .expect(description);
        let protocols =
            [text, &mutant.text].map(|text| parse(text).expect("the specification is valid"));
        let [text, mutant] = protocols
            .each_ref()
            .map(|protocol| system(protocol, remotes));
        bisimulation([&text, &mutant], MAX_STATE_PAIRS)
    }

    #[test]
    fn dead_assignments_are_bisimilar() {
        let dead_assignment = "W | InvAck | write deferred, send Ack to writer, writer := none, owed := 0 | R: `owed := 1` instead of `owed := 0`";
        assert_eq!(
            compare_mutant(WRITE_THROUGH, dead_assignment, 2),
            Bisimulation::Complete
        );
        assert_eq!(
            compare_mutant(WRITE_THROUGH, dead_assignment, 4),
            Bisimulation::Partial
        );
    }

    #[test]
    fn extra_message_is_detected() {
        let row = "R | Write | defer, send Inv to readers - { sender }, writer := sender, owed := count(readers - { sender }), readers := {} | W: ";
        let change = "`send Inv to readers` instead of `send Inv to readers - { sender }`";
        assert_eq!(
            compare_mutant(WRITE_THROUGH, &format!("{row}{change}"), 2),
            Bisimulation::Different
        );
    }

    #[test]
    fn missing_permission_is_detected() {
        let without_read = "remote state SM_AD reads waits Data InvAck: without `reads`";
        assert_eq!(
            compare_mutant(MSI, without_read, 2),
            Bisimulation::Different
        );
    }

    #[test]
    fn access_without_completion_is_detected() {
        let endless = "IN | Data | done | I: without `done`";
        assert_eq!(
            compare_mutant(SELF_INVALIDATE, endless, 2),
            Bisimulation::Different
        );
    }

    /// Only a system of four caches counts three acknowledgements.
    #[test]
    fn miscounted_third_acknowledgement_needs_four_caches() {
        let doubled_actions = "W | InvAck if owed > 1 | owed := owed - 1 | stay: its actions twice";
        assert_eq!(
            compare_mutant(WRITE_THROUGH, doubled_actions, 2),
            Bisimulation::Complete
        );
        assert_eq!(
            compare_mutant(WRITE_THROUGH, doubled_actions, 4),
            Bisimulation::Different
        );
    }
}
