//! The device behind the home: its requests, completions and lock.

use super::*;

impl Simulation {
    /// Presents a local operation or an unlock to its unit.
    pub(crate) fn present_local(&mut self, work: Work, line: Line) {
        if self.home.clocked.is_some() {
            return self.submit_local(line, work);
        }
        let request = matches!(work, Work::Local(..));
        self.present(self.unit_of(line), work, line, None, request);
    }

    /// Issues the device's next local operation.
    pub(crate) fn issue_device_operation(&mut self) {
        let locals = self.home.program.controller().locals.len() as u64;
        if locals == 0 || self.device.operations_left == 0 {
            self.device.operations_left = 0;
            return;
        }
        self.device.operations_left -= 1;
        let line = self
            .device
            .random
            .below(self.device.workload.lines.max(1).into()) as Line;
        let local = self.device.random.below(locals) as u8;
        self.device.current = Some(Operation {
            line,
            local,
            locked: false,
        });
        self.present_local(Work::Local(line, local), line);
    }

    pub(super) fn schedule_next_operation(&mut self) {
        self.postpone_watchdog(self.local.now);
        let pause = self.device.random.below(self.device.workload.pause + 1);
        self.local
            .queue
            .push(self.local.now + pause, KernelEvent::Ask);
    }

    pub(crate) fn refuse_local_operation(&mut self) {
        self.tally.counters.locals[1] += 1;
        self.device.current = None;
        self.schedule_next_operation();
    }

    /// Completes a local operation at the home, and checks the permissions it guarantees.
    pub(super) fn complete_local_operation(&mut self, line: Line, local: u8) {
        let Some(Local { ensures, name, .. }) = self
            .home
            .program
            .controller()
            .locals
            .get(local as usize)
            .cloned()
        else {
            return self.fail(
                FailureKind::Meaningless,
                line,
                "an unknown operation is acknowledged".into(),
            );
        };
        self.tally.counters.locals[0] += 1;
        if self.is_traced(line) {
            let what = format!("acknowledges {name}");
            self.note(HOME, line, Action::Does { what });
        }
        self.check_memory(line, "is given to the device");
        // The oracle does not track the permissions of a single caching agent.
        let oracle_agrees =
            self.caches.count() > 1 && self.contents.oracle.highest_permission(line) <= ensures;
        for cache in self.caches.agents().filter(|_| !oracle_agrees) {
            let configuration = self.caches.configuration(cache, line);
            let right = self.remote.properties(configuration).right;
            if right > ensures {
                let text = format!("{} may {right} after {name}", self.agent_name(cache));
                self.fail(FailureKind::SingleWriter, line, text);
            }
        }
        if !self.defer_acknowledgement(line, local) {
            self.notify_device(line, local);
        }
    }

    /// Notifies the device, or the application, of a completed local operation.
    pub(crate) fn notify_device(&mut self, line: Line, local: u8) {
        let operation = self.home.program.controller().locals.get(local as usize);
        let Some((ensures, locks)) = operation.map(|local| (local.ensures, local.locks)) else {
            return;
        };
        if let Some(above) = &mut self.neighbours.upper_level {
            above.notify_locked(line);
        } else if self.application.is_some() {
            self.acknowledge_application(line, ensures, locks);
        } else if locks {
            self.device.current = Some(Operation {
                line,
                local,
                locked: true,
            });
            let lock_duration = self.device.random.below(self.device.workload.pause + 1);
            self.local
                .queue
                .push(self.local.now + lock_duration, KernelEvent::Unlock(line));
        } else {
            self.device.current = None;
            self.schedule_next_operation();
        }
    }

    /// Ends the device's use of a line: it reads the line, writes it if it has permission, and unlocks.
    pub(crate) fn end_device_use(&mut self, line: Line) {
        self.check_memory(line, "is read under the device's lock");
        if self.lock_right(line) == Right::Write {
            let word = self.device.random.below(self.contents.data.words().into()) as u16;
            let value = self.device.random.below(u64::MAX);
            let version = self.contents.oracle.write(line, word..word + 1, value);
            let old_copy = self.contents.data.share(self.contents.data.memory(line));
            let new_copy = self
                .contents
                .data
                .write_word(line, old_copy, word, value, version);
            self.contents.data.set_memory(line, new_copy);
        }
        self.present_local(Work::Unlock(line), line);
    }

    /// Returns the permission that the device has for a line under its lock.
    pub(crate) fn lock_right(&self, line: Line) -> Right {
        if let Some(above) = &self.neighbours.upper_level {
            return above.lock_permission(line);
        }
        match self.device.current {
            Some(operation) if operation.locked && operation.line == line => {
                let local = &self.home.program.controller().locals[operation.local as usize];
                match local.ensures {
                    Right::None => Right::Write,
                    _ => Right::Read,
                }
            }
            _ => match &self.application {
                Some(behind) => behind.lock_right(line),
                None => Right::None,
            },
        }
    }
}
