//! An application behind the home that answers the CPU late. It has two control lines in one unit, and answers the
//! CPU's requests for them only after a third line of that unit was used. Meanwhile the unit's deferred requests are at
//! their maximum.

use super::*;

/// Method by which an application withholds its answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DelayedResponse {
    /// The application locks both control lines. The requests for them fill the unit's waiting set.
    Locks,
    /// The application serves as memory and withholds both read answers. Requests for two other, locked lines fill the
    /// waiting set.
    Reads,
}

/// Indices of the control lines, and of the third line.
const CONTROL: [usize; 2] = [0, 1];
const THIRD: usize = 2;
/// Number of lines of the scenario; the last two are locked if the control lines are not.
pub const LINES: usize = 5;
/// Number of cycles after which a request has arrived at the place where it waits.
const ARRIVAL_CYCLES: u64 = 300;

impl Bench<'_> {
    /// Plays the scenario to its end.
    pub(in crate::lockstep) fn control_lines(&mut self, withheld: DelayedResponse) -> Checked {
        let find_recall = |locks| {
            let fits = |local: &Local| local.ensures == Right::None && local.locks == locks;
            let position = self.home.locals.iter().position(fits);
            position.map(|position| position as u8)
        };
        let (Some(lock), Some(recall)) = (find_recall(true), find_recall(false)) else {
            let message = "the home has no lock that takes lines back";
            return check_failed(Check::Comparison, None, message.into());
        };
        let locked = match withheld {
            DelayedResponse::Locks => CONTROL,
            DelayedResponse::Reads => [3, 4],
        };
        for line_index in locked {
            self.request_local(line_index, lock);
        }
        self.run_until(|bench| {
            locked
                .iter()
                .all(|&line_index| bench.lines[line_index].lock_reported)
        })?;
        for line_index in CONTROL {
            self.lines[line_index].is_memory_withheld = withheld == DelayedResponse::Reads;
        }
        for line_index in locked {
            self.start_access(line_index, Access::Load)?;
        }
        self.run_cycles(ARRIVAL_CYCLES)?;
        if withheld == DelayedResponse::Reads {
            self.start_access(CONTROL[0], Access::Load)?;
            self.start_access(CONTROL[1], Access::Store)?;
            self.run_cycles(ARRIVAL_CYCLES)?;
        }
        // The CPU writes the third line, and the application takes it with the new contents.
        self.start_access(THIRD, Access::Store)?;
        self.run_until(|bench| bench.permission(THIRD) == Right::Write)?;
        self.start_access(THIRD, Access::Store)?;
        self.request_local(THIRD, recall);
        self.run_until(|bench| {
            bench.lines[THIRD].pending_local.is_none()
                && bench.lines[THIRD].queued_locals.is_empty()
        })?;
        for line_index in locked.into_iter().chain(CONTROL) {
            if self.permission(line_index) != Right::None {
                return line_failure(
                    line_index,
                    "the application is stalled although it has not answered".into(),
                );
            }
        }
        // Now the application answers.
        for line_index in CONTROL {
            self.lines[line_index].is_memory_withheld = false;
            let cycle = self.cycle;
            for burst in self.bursts(line_index) {
                burst.completion_cycle = cycle;
            }
        }
        for line_index in locked {
            self.unlock(line_index);
        }
        self.run_until(|bench| {
            locked
                .iter()
                .chain(&CONTROL)
                .all(|&line_index| bench.permission(line_index) >= Right::Read)
        })?;
        self.settle()?;
        self.check_final_state()
    }

    pub(super) fn run_until(&mut self, is_done: impl Fn(&Self) -> bool) -> Checked {
        self.last_activity = self.cycle;
        while !is_done(self) {
            self.run_cycle()?;
        }
        Ok(())
    }

    fn run_cycles(&mut self, cycles: u64) -> Checked {
        self.last_activity = self.cycle;
        (0..cycles).try_for_each(|_| self.run_cycle())
    }
}
