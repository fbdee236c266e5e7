//! Compressed storage of system states, each as a row of the numbers of its components.
//!
//! A step changes a line and one or two messages, so thousands of system states share each component. The values of all
//! lines, the lines, and the messages in flight are therefore stored once each, and numbered.

use cohkit_base::interner::Interner;
use cohkit_system::state::{CopyOnWrite, InFlightMessage, Line, Network, System, SystemState};
use smallvec::SmallVec;

use crate::values::Values;

/// Numbered system states. With two levels of caches, a number stands for the system state of the upper level and those
/// below it.
#[derive(Default)]
pub struct StateTable {
    /// Values of all lines of a system state.
    data: Interner<Values>,
    /// States of single lines.
    lines: Interner<CopyOnWrite<Line<Values>>>,
    /// Messages in flight.
    flights: Interner<CopyOnWrite<InFlightMessage<Values>>>,
    /// Row of each number.
    rows: Interner<Row>,
}

/// Per system state: its values, its lines, the number of its messages in flight, and these messages.
type Row = SmallVec<[u32; 8]>;

impl StateTable {
    /// Returns how many numbers are in use.
    pub fn count(&self) -> usize {
        self.rows.len()
    }

    /// Returns the number of these system states together, and true if it is new.
    pub fn number<'w>(
        &mut self,
        system_states: impl Iterator<Item = &'w SystemState<Values>>,
    ) -> (u32, bool) {
        let mut row = Row::new();
        for system_state in system_states {
            row.push(self.data.add_clone(&system_state.data).0);
            row.extend(
                system_state
                    .lines
                    .iter()
                    .map(|line| self.lines.add_clone(line).0),
            );
            let count_index = row.len();
            row.push(0);
            let flights = system_state.network.shared();
            row.extend(flights.map(|flight| self.flights.add_clone(flight).0));
            row[count_index] = (row.len() - count_index - 1) as u32;
        }
        self.rows.add(row)
    }

    /// Reconstructs the system states of a number, one per system.
    pub fn system_states<'s, 'p: 's>(
        &self,
        number: u32,
        systems: impl Iterator<Item = &'s System<'p>>,
    ) -> Vec<SystemState<Values>> {
        let mut row = self.rows[number].iter().copied();
        let mut next = || {
            row.next()
                .expect("a row has all parts of its system states")
        };
        let system_state = |system: &System| {
            let data = self.data[next()].clone();
            let lines = (0..system.lines).map(|_| self.lines[next()].clone());
            let lines = lines.collect();
            let mut network = Network::new();
            for _ in 0..next() {
                let flight = self.flights[next()].clone();
                network.insert_keeping_marks(system.protocol, flight);
            }
            SystemState {
                data,
                lines,
                network,
            }
        };
        systems.map(system_state).collect()
    }

    /// Returns the values of the first system state of a number.
    pub fn data(&self, number: u32) -> &Values {
        &self.data[self.rows[number][0]]
    }
}

#[cfg(test)]
mod tests {
    use super::StateTable;
    use crate::machine::{Machine, MachineState};
    use crate::values::Values;
    use cohkit_protocol::protocol::{Home, Protocol};
    use cohkit_protocol::text::parse;
    use cohkit_system::state::{LevelStep, Levels, System};
    use std::collections::HashSet;

    fn system(protocol: &Protocol, remotes: u16, lines: u8) -> System<'_> {
        let Home::Controller(home) = &protocol.home else {
            panic!("{} has a home of rows", protocol.name)
        };
        System::new(protocol, home, remotes, lines, 7)
    }

    /// Checks the first `limit` reachable states: each is reconstructed from its number, and two have the same number
    /// if and only if they are equal.
    fn round_trips(machine: &Machine, limit: usize) {
        let mut table = StateTable::default();
        let mut states: Vec<MachineState<Values>> = vec![machine.initial_state()];
        let mut visited = HashSet::from([machine.initial_state()]);
        let mut next = 0;
        while let Some(state) = states.get(next).cloned() {
            let (number, new) = table.number(state.system_states());
            assert_eq!((number as usize, new), (next, true));
            assert_eq!(table.number(state.system_states()), (number, false));
            next += 1;
            let rebuilt = table.system_states(number, machine.systems());
            assert_eq!(machine.state(rebuilt.into_iter()), state);
            let steps = match (machine, &state) {
                (Machine::OneLevel(system, _), MachineState::OneLevel(system_state)) => {
                    let steps = system_state.steps(system).into_iter();
                    steps.map(LevelStep::Outer).collect()
                }
                (Machine::TwoLevels(levels, _), MachineState::TwoLevels(clusters)) => {
                    clusters.steps(levels)
                }
                _ => unreachable!("states are those of their machine"),
            };
            for step in steps {
                let mut next_state = state.clone();
                let result = machine.take(&mut next_state, step, &mut Vec::new());
                if states.len() < limit && result == Ok(true) && visited.insert(next_state.clone())
                {
                    states.push(next_state);
                }
            }
        }
        assert_eq!((states.len(), table.count()), (limit, limit));
    }

    /// A state that is stored and rebuilt is the same, and equal states have equal numbers.
    #[test]
    fn system_states_round_trip_through_their_numbers() {
        for text in [
            include_str!("../../../ordering/cord.coh"),
            include_str!("../../../ordering/mp.coh"),
            include_str!("../../../ordering/tso/so.coh"),
        ] {
            let protocol = parse(text).expect("a protocol file");
            let lines = 1 + protocol.homes as u8;
            let system = system(&protocol, 2, lines);
            round_trips(&Machine::OneLevel(Box::new(system), vec![0, 1]), 1500);
        }
    }

    /// One number stands for the states of all systems of a machine.
    #[test]
    fn system_states_of_two_levels_have_one_number() {
        let [outer, inner] = [
            include_str!("../../../protocols/mesi.coh"),
            include_str!("../../../protocols/mesi-l1.coh"),
        ]
        .map(|text| parse(text).expect("a protocol file"));
        let levels = Levels::new(system(&outer, 2, 1), system(&inner, 2, 1));
        let placements = vec![(0, 0), (0, 1), (1, 0)];
        round_trips(&Machine::TwoLevels(Box::new(levels), placements), 1500);
    }
}
