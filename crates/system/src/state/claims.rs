//! Properties that must hold in every state.

use cohkit_protocol::protocol::{Amount, Claim, Comparison, Permission};

use super::{InFlightMessage, Line, Lock, System, SystemState, EXCEEDS_BACKING_PERMISSION};
use crate::agent::Violation;
use crate::data::Data;

impl<D: Data> SystemState<D> {
    /// Checks the properties of the state.
    ///
    /// # Errors
    /// The first violated property.
    pub fn claims(&self, system: &System) -> Result<(), Violation> {
        for (number, line) in (0..).zip(&self.lines) {
            self.check_line(system, number, line)?;
        }
        Ok(())
    }

    /// Checks coherence, inclusion, the invariants of the file and the bound of messages in flight for the line
    /// `number`.
    fn check_line(&self, system: &System, number: u8, line: &Line<D>) -> Result<(), Violation> {
        if system.facts.coherent {
            self.check_coherence(system, number, line)?;
        }
        let mut permissions = line
            .remotes
            .iter()
            .map(|remote| system.permission(&remote.configuration));
        if permissions.any(|permission| permission > line.backing_permission) {
            return Err(Violation::new("inclusion", EXCEEDS_BACKING_PERMISSION));
        }
        for invariant in &system.protocol.invariants {
            if !self.holds(&invariant.claim, number) {
                return Err(Violation::new(invariant.name.clone(), "it does not hold"));
            }
        }
        for remote in 0..system.remotes {
            let involves_remote = |flight: &&InFlightMessage<D>| {
                flight.line == number && [flight.from, flight.to].contains(&Some(remote))
            };
            let in_flight = self.network.flights().filter(involves_remote).count();
            if let Some(bound) = system.protocol.bounds.exceeded(in_flight) {
                return Err(Violation::new(bound.clone(), bound));
            }
        }
        Ok(())
    }

    /// Checks *single writer* and *data value*.
    fn check_coherence(
        &self,
        system: &System,
        number: u8,
        line: &Line<D>,
    ) -> Result<(), Violation> {
        let permissions = || {
            line.remotes
                .iter()
                .map(|r| system.permission(&r.configuration))
        };
        let holders = permissions()
            .filter(|&permission| permission > Permission::None)
            .count();
        let highest = permissions().max().unwrap_or(Permission::None);
        if highest == Permission::Write && holders > 1 {
            let message = "another agent still has read or write permission";
            return Err(Violation::new("single writer", message));
        }
        let mut copies = permissions().zip(&line.remotes);
        let current = |copy| self.data.is_current(number, copy);
        if !copies
            .all(|(permission, remote)| permission == Permission::None || current(&remote.copy))
        {
            return Err(Violation::data_value("a readable copy is stale"));
        }
        if let Lock::Held(permission) = line.lock {
            let excludes = match permission {
                Permission::Write => highest == Permission::None,
                _ => highest < Permission::Write,
            };
            if !excludes {
                let message = "a remote has a permission that the lock excludes";
                return Err(Violation::new("single writer", message));
            }
            if line.backing_permission > Permission::None && !current(&line.memory) {
                let message = "memory is stale while the device holds the lock";
                return Err(Violation::data_value(message));
            }
        }
        Ok(())
    }

    /// Evaluates a claim of an invariant for a line.
    fn holds(&self, claim: &Claim, line: u8) -> bool {
        match claim {
            Claim::Compare(a, comparison, b) => {
                let (a, b) = (self.amount(a, line), self.amount(b, line));
                match comparison {
                    Comparison::Equal => a == b,
                    Comparison::NotEqual => a != b,
                    Comparison::Less => a < b,
                    Comparison::LessOrEqual => a <= b,
                    Comparison::Greater => a > b,
                    Comparison::GreaterOrEqual => a >= b,
                }
            }
            Claim::And(a, b) => self.holds(a, line) && self.holds(b, line),
            Claim::Or(a, b) => self.holds(a, line) || self.holds(b, line),
            Claim::Not(a) => !self.holds(a, line),
            Claim::Implies(a, b) => !self.holds(a, line) || self.holds(b, line),
            Claim::Locked => self.lines[usize::from(line)].lock != Lock::Unlocked,
        }
    }

    /// Value of an amount for a line.
    fn amount(&self, amount: &Amount, line: u8) -> usize {
        match amount {
            Amount::Constant(value) => usize::from(*value),
            Amount::RemotesIn(states) => {
                let remotes = self.lines[usize::from(line)].remotes.iter();
                let inside = |state: u16| states.iter().any(|s| s.0 == state);
                remotes.filter(|r| inside(r.configuration.state)).count()
            }
            Amount::InFlight(messages) => {
                let flights = self.network.flights();
                let counts = flights.filter(|f| f.line == line && messages.contains(&f.message));
                counts.count()
            }
        }
    }
}
