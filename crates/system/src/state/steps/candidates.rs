//! Candidate steps of a state.

use cohkit_protocol::controller::Access;
use cohkit_protocol::protocol::Permission;

use super::Step;
use crate::data::Data;
use crate::state::network::InFlightMessage;
use crate::state::{Lock, Operation, System, SystemState};

impl<D: Data> SystemState<D> {
    /// Candidate steps. Some of them may turn out to be blocked.
    pub fn steps(&self, system: &System) -> Vec<Step> {
        let mut steps = Vec::new();
        for line in 0..system.lines {
            for remote in 0..system.remotes {
                // Accesses about no line begin once.
                let accesses = Access::ALL.into_iter().map(|(access, _)| access);
                let accesses = accesses.filter(|&access| access.about_line() || line == 0);
                steps.extend(accesses.map(|access| Step::Access(line, remote, access)));
                steps.push(Step::Hit(line, remote));
            }
            self.push_home_steps(system, line, &mut steps);
        }
        self.push_arrivals(system, &mut steps);
        steps
    }

    /// Adds the arrivals of messages, and the stalls at the head of input queues.
    fn push_arrivals(&self, system: &System, steps: &mut Vec<Step>) {
        for arrival in self.network.arrivals(system.protocol) {
            steps.push(Step::Deliver(arrival));
            let may_choose =
                |flight: &InFlightMessage<D>| system.chooses[usize::from(flight.to.is_none())];
            if self.network.at(arrival).is_some_and(may_choose) {
                let choices = 1..system.remotes;
                steps.extend(choices.map(|choice| Step::DeliverChoosing(arrival, choice)));
            }
        }
        steps.extend(
            self.network
                .may_block(system.protocol)
                .map(Step::StallAtHead),
        );
    }

    /// Like [`SystemState::steps`], without the accesses of remotes.
    pub fn steps_without_remotes(&self, system: &System) -> Vec<Step> {
        let mut steps = Vec::new();
        (0..system.lines).for_each(|line| self.push_home_steps(system, line, &mut steps));
        self.push_arrivals(system, &mut steps);
        steps
    }

    /// Adds the steps of memory, of the device, and of the outer level for the line `number`.
    fn push_home_steps(&self, system: &System, number: u8, steps: &mut Vec<Step>) {
        let line = &self.lines[usize::from(number)];
        match line.operation {
            Operation::Idle => {}
            Operation::Sampled(_) => {
                let choices = 0..system.facts.choices;
                steps.extend(choices.map(|choice| Step::MemoryData(number, choice)));
            }
            Operation::Done => steps.push(Step::MemoryDone(number)),
            _ => steps.push(Step::MemoryOperation(number)),
        }
        let accepts_request =
            line.requested.is_none() && (system.overlaps_requests || line.accepted.is_none());
        match line.requested {
            None if accepts_request => {
                let locals = 0..system.home.locals.len() as u8;
                let locals = locals.filter(|&local| self.may_request(system, number, local));
                steps.extend(locals.map(|local| Step::RequestLocal(number, local)));
            }
            None => {}
            Some(_) => steps.push(Step::Local(number)),
        }
        if system.facts.locks {
            if line.lock != Lock::Unlocking {
                steps.push(Step::Unlock(number));
            }
            if line.lock == Lock::Held(Permission::Write) && system.backing_needs.is_none() {
                steps.push(Step::DeviceWrite(number));
            }
        }
        if system.backing_needs.is_some() {
            let (higher, lower) = self.next_backing_permissions(system, number);
            steps.extend(
                higher
                    .into_iter()
                    .map(|permission| Step::RaiseBacking(number, permission)),
            );
            steps.extend(
                lower
                    .into_iter()
                    .map(|permission| Step::LowerBacking(number, permission)),
            );
            if line.backing_permission == Permission::None {
                steps.push(Step::ExternalWrite(number));
            }
        }
    }
}
