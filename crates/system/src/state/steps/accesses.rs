//! Accesses of remotes: their begin, hits, and writes in copies.

use cohkit_protocol::controller::{Access, Effect, Event, Statement};
use cohkit_protocol::execute::{Act, Outcome, Receiver};
use cohkit_protocol::protocol::Permission;

use super::network_capacity::blocked_without_capacity;
use super::row_owner::{trigger, RowOwner};
use super::CompletedAccess;
use crate::data::{Data, Extent};
use crate::plan::{hits, write_hits};
use crate::state::network::InFlightMessage;
use crate::state::{StepError, System, SystemState};

impl<D: Data> SystemState<D> {
    /// Begins an access of a remote, or performs it at once. Returns false if the access must be tried again; `self` is
    /// then unspecified. The caller begins no other access of the remote to the line before this one has completed.
    ///
    /// # Errors
    /// The access violates a property or exceeds a capacity.
    pub fn begin(
        &mut self,
        system: &System,
        (line, remote): (u8, u8),
        access: Access,
        value: D::Write,
        completed: &mut Vec<CompletedAccess<D>>,
    ) -> Result<bool, StepError> {
        let remote_state = &self.lines[usize::from(line)].remotes[usize::from(remote)];
        let permission = system.permission(&remote_state.configuration);
        let state = remote_state.configuration.state;
        let row = system.protocol.remote.rules.iter().any(|rule| {
            rule.event == Event::Access(access)
                && matches!(rule.effect, Effect::Take { .. })
                && rule.state.0 == state
        });
        if row || !access.is_performed_in_place() || permission < access.needs() {
            return blocked_without_capacity(
                self.access(system, line, remote, access, value, completed),
            );
        }
        let old_copy = remote_state.copy.clone();
        if access.writes() {
            let copy = self.write(system, line, &old_copy, Extent::Part, &value);
            let remote_state = &mut self.line(line).remotes[usize::from(remote)];
            (remote_state.copy, remote_state.write_value) = (copy, None);
        }
        let old_copy = Some(old_copy);
        completed.push(CompletedAccess {
            line,
            remote,
            old_copy,
        });
        Ok(true)
    }

    /// Performs a write in a copy; all other copies become stale.
    pub(in crate::state) fn write(
        &mut self,
        system: &System,
        line: u8,
        copy: &D::Copy,
        extent: Extent,
        value: &D::Write,
    ) -> D::Copy {
        let new_copy = self.data.write(line, copy, extent, value);
        self.mark_copies_stale(system, line, true);
        new_copy
    }

    /// Begins an access by the row of the remote for it. `value` is the value of a write. Returns false if no row
    /// takes the access, or if the step would change nothing.
    pub(super) fn access(
        &mut self,
        system: &System,
        line: u8,
        remote: u8,
        access: Access,
        value: D::Write,
        completed: &mut Vec<CompletedAccess<D>>,
    ) -> Result<bool, StepError> {
        let remote_state = &self.lines[usize::from(line)].remotes[usize::from(remote)];
        let mut next = remote_state.configuration.clone();
        let trigger = trigger(Event::Access(access), Some(remote), system.home_of(line));
        let mut tables = &system.protocol.remote;
        let owner = RowOwner::Remote(remote);
        let outcome = system
            .remote_machine()
            .step(&mut next, trigger, &mut tables);
        let outcome = outcome.map_err(|error| self.interrupted(system, line, owner, &error))?;
        let Outcome::Taken { rule, acts } = outcome else {
            if access == Access::Load
                && hits(&system.protocol.remote, self.state(line, remote), access)
            {
                self.check_program_order(line, remote, access.writes())?;
            }
            return Ok(false);
        };
        self.check_capacity(system, line, owner, &acts)?;
        let plan = &system.plans[0][rule];
        if !self.may_start_access(system, (line, remote), &acts) {
            return Ok(false);
        }
        if plan.reads || plan.effects.performs {
            self.check_program_order(line, remote, access.writes())?;
        }
        // A hit changes the state only if it makes another copy stale.
        let keeps_values = D::KEEPS_VALUES;
        if plan.idle && !plan.changes_state && !keeps_values {
            let changes =
                plan.effects.performs && self.has_other_current_copy(system, line, Some(remote));
            if !changes {
                return Ok(false);
            }
        }
        if let Some(begun) = plan.begun_access {
            self.record_begin(system, line, remote, begun)?;
        }
        let extent = match access {
            Access::WriteLine => Extent::Whole,
            _ => Extent::Part,
        };
        let remote_state = &self.lines[usize::from(line)].remotes[usize::from(remote)];
        let old_copy = remote_state.copy.clone();
        let changed = remote_state.configuration != next || !acts.is_empty();
        if D::KEEPS_VALUES && access.writes() {
            self.line(line).remotes[usize::from(remote)].write_value = Some(value);
        }
        self.apply_row(
            system,
            line,
            remote,
            (rule, acts, next),
            None,
            extent,
            completed,
        )?;
        self.record_completion(system, (line, remote), access, rule, old_copy, completed);
        // A row with `retry` alone changes nothing.
        Ok(changed || !completed.is_empty() || !keeps_values)
    }

    /// Returns true if the declared bounds allow the messages that an access sends to the home.
    fn may_start_access(&self, system: &System, (line, remote): (u8, u8), acts: &[Act]) -> bool {
        let is_to_home = |act: &&Act| {
            matches!(
                act,
                Act::Send {
                    to: Receiver::Home,
                    ..
                }
            )
        };
        let sent = acts.iter().filter(is_to_home).filter_map(Act::sent_message);
        let in_flight = |message| {
            let is_match = |flight: &&InFlightMessage<D>| {
                (flight.line, flight.message) == (line, message)
                    && (flight.from, flight.to) == (Some(remote), None)
            };
            self.network.flights().filter(is_match).count()
        };
        system.protocol.bounds.can_start_access(sent, in_flight)
    }

    /// Records the access that a row of a remote completes at once, if any.
    fn record_completion(
        &mut self,
        system: &System,
        (line, remote): (u8, u8),
        access: Access,
        rule: usize,
        old_copy: D::Copy,
        completed: &mut Vec<CompletedAccess<D>>,
    ) {
        let plan = &system.plans[0][rule];
        let reads = !access.writes() && access.needs() == Permission::Read;
        if reads && plan.before.permission.min(plan.after.permission) >= Permission::Read {
            let old_copy = Some(old_copy);
            completed.push(CompletedAccess {
                line,
                remote,
                old_copy,
            });
        }
        // No response will complete a posted write.
        if plan.posts && completed.is_empty() {
            self.line(line).remotes[usize::from(remote)].write_value = None;
            let old_copy = None;
            completed.push(CompletedAccess {
                line,
                remote,
                old_copy,
            });
        }
        let has_retry =
            || system.protocol.remote.rules[rule].has_statement(&|s| *s == Statement::Retry);
        if !access.about_line() && !has_retry() {
            let old_copy = None;
            completed.push(CompletedAccess {
                line,
                remote,
                old_copy,
            });
        }
    }

    /// State of a remote's line.
    fn state(&self, line: u8, remote: u8) -> usize {
        let remote_state = &self.lines[usize::from(line)].remotes[usize::from(remote)];
        usize::from(remote_state.configuration.state)
    }

    /// Performs a store or atomic that needs no row, if it makes another copy stale.
    pub(super) fn hit(&mut self, system: &System, line: u8, remote: u8) -> Result<bool, StepError> {
        if !write_hits(&system.protocol.remote, self.state(line, remote)) {
            return Ok(false);
        }
        self.check_program_order(line, remote, true)?;
        if !self.has_other_current_copy(system, line, Some(remote)) {
            return Ok(false);
        }
        let remote_state = &self.lines[usize::from(line)].remotes[usize::from(remote)];
        let copy = remote_state.copy.clone();
        let copy = self.write(system, line, &copy, Extent::Part, &D::Write::default());
        self.line(line).remotes[usize::from(remote)].copy = copy;
        Ok(true)
    }
}
