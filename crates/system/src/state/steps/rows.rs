//! Rows of remotes and their effects on the state, and registers that all lines share.

use cohkit_protocol::execute::{Act, Configuration};
use cohkit_protocol::protocol::StateId;

use super::contexts::SystemRemoteContext;
use super::CompletedAccess;
use crate::agent::{self, Violation};
use crate::data::{Data, Extent};
use crate::state::{StepError, System, SystemState};
use crate::stores::{self, AtomicRead, StoreSend};

impl<D: Data> SystemState<D> {
    /// Applies a row of a remote: its index, its acts, and the configuration after it. `carried_copy` is the copy in
    /// the current message, and `extent` the part of the line that a write changes. Completed accesses are appended to
    /// `completed`.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn apply_row(
        &mut self,
        system: &System,
        line: u8,
        remote: u8,
        (rule, acts, next): (usize, Vec<Act>, Configuration),
        carried_copy: Option<&D::Copy>,
        extent: Extent,
        completed: &mut Vec<CompletedAccess<D>>,
    ) -> Result<(), StepError> {
        let plan = &system.plans[0][rule];
        let old_copy = self.lines[usize::from(line)].remotes[usize::from(remote)]
            .copy
            .clone();
        let mut context = SystemRemoteContext {
            system_state: self,
            system,
            line,
            remote,
            acts: acts.into_iter(),
            extent,
            send: StoreSend::first(plan.posts),
            carries_copy: carried_copy.is_some(),
            completed,
            bulk_transitions: Vec::new(),
        };
        let (facts, carried) = (&system.facts, carried_copy.cloned());
        let copy = agent::remote(facts, &plan.effects, old_copy, carried, &mut context)?;
        let bulk_transitions = context.bulk_transitions;
        if plan.effects.abandons_write {
            let remote_state = &self.lines[usize::from(line)].remotes[usize::from(remote)];
            if remote_state.stores.performed {
                let description = stores::ABANDONED_AFTER_PERFORMED;
                return Err(Violation::new(agent::stores(facts), description).into());
            }
            self.void_outstanding(line, remote);
        }
        let remote_state = &mut self.line(line).remotes[usize::from(remote)];
        if facts.atomics() {
            match (facts.atomic_in[usize::from(next.state)], carried_copy) {
                (false, _) => {
                    (remote_state.received_copy, remote_state.stores.read) =
                        (None, AtomicRead::None)
                }
                (true, Some(copy)) if D::KEEPS_VALUES => {
                    remote_state.received_copy = Some(copy.clone())
                }
                (true, _) => {}
            }
        }
        (remote_state.configuration, remote_state.copy) = (next, copy);
        self.copy_registers(system, line, remote);
        for (from, to) in bulk_transitions {
            self.bulk_transition(system, remote, from, to);
        }
        Ok(())
    }

    /// Moves all lines of a remote in state `from` to state `to`, and drops their copies if `to` holds none.
    fn bulk_transition(&mut self, system: &System, remote: u8, from: StateId, to: StateId) {
        let holds_line = system.protocol.remote.states[to.index()].holds_line;
        for line in &mut self.lines {
            if line.remotes[usize::from(remote)].configuration.state == from.0 {
                let remote_state = &mut line.remotes[usize::from(remote)];
                remote_state.configuration.state = to.0;
                if !holds_line {
                    remote_state.copy = D::Copy::default();
                }
            }
        }
    }

    /// Copies the registers of a remote from one line to all others: the remote has one value for all lines.
    fn copy_registers(&mut self, system: &System, line: u8, remote: u8) {
        let registers = system.remote_machine().registers();
        if registers.is_empty() {
            return;
        }
        let remote = usize::from(remote);
        let values = &self.line(line).remotes[remote].configuration.slots[registers.clone()];
        let values = values.to_vec();
        for line in &mut self.lines {
            if line.remotes[remote].configuration.slots[registers.clone()] != values {
                line.remotes[remote].configuration.slots[registers.clone()]
                    .copy_from_slice(&values);
            }
        }
    }

    /// Copies the registers of a home from one line to all others of the same home.
    pub(super) fn copy_home_registers(&mut self, system: &System, line: u8) {
        let registers = system.home_machine().registers();
        if registers.is_empty() {
            return;
        }
        let values = self.line(line).home.slots[registers.clone()].to_vec();
        let home = system.home_of(line);
        let lines = (0..).zip(&mut self.lines);
        for (_, line) in lines.filter(|(number, _)| system.home_of(*number) == home) {
            if line.home.slots[registers.clone()] != values {
                line.home.slots[registers.clone()].copy_from_slice(&values);
            }
        }
    }
}
