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
        let takes = |locks| {
            let fits = |local: &Local| local.ensures == Right::None && local.locks == locks;
            let place = self.home.locals.iter().position(fits);
            place.map(|place| place as u8)
        };
        let (Some(lock), Some(recall)) = (takes(true), takes(false)) else {
            let what = "the home has no lock that takes lines back";
            return noticed(Check::Comparison, None, what.into());
        };
        let locked = match withheld {
            DelayedResponse::Locks => CONTROL,
            DelayedResponse::Reads => [3, 4],
        };
        for at in locked {
            self.ask(at, lock);
        }
        self.until(|bench| locked.iter().all(|&at| bench.lines[at].told))?;
        for at in CONTROL {
            self.lines[at].withheld = withheld == DelayedResponse::Reads;
        }
        for at in locked {
            self.access(at, Access::Load)?;
        }
        self.pass(ARRIVAL_CYCLES)?;
        if withheld == DelayedResponse::Reads {
            self.access(CONTROL[0], Access::Load)?;
            self.access(CONTROL[1], Access::Store)?;
            self.pass(ARRIVAL_CYCLES)?;
        }
        // The CPU writes the third line, and the application takes it with the new contents.
        self.access(THIRD, Access::Store)?;
        self.until(|bench| bench.right(THIRD) == Right::Write)?;
        self.access(THIRD, Access::Store)?;
        self.ask(THIRD, recall);
        self.until(|bench| {
            bench.lines[THIRD].pending.is_none() && bench.lines[THIRD].asked.is_empty()
        })?;
        for at in locked.into_iter().chain(CONTROL) {
            if self.right(at) != Right::None {
                return wrong(
                    at,
                    "the application is stalled although it has not answered".into(),
                );
            }
        }
        // Now the application answers.
        for at in CONTROL {
            self.lines[at].withheld = false;
            let cycle = self.cycle;
            for burst in self.bursts(at) {
                burst.at = cycle;
            }
        }
        for at in locked {
            self.unlock(at);
        }
        self.until(|bench| {
            locked
                .iter()
                .chain(&CONTROL)
                .all(|&at| bench.right(at) >= Right::Read)
        })?;
        self.settle()?;
        self.check_final_state()
    }

    pub(super) fn until(&mut self, done: impl Fn(&Self) -> bool) -> Checked {
        self.progress = self.cycle;
        while !done(self) {
            self.one_cycle()?;
        }
        Ok(())
    }

    fn pass(&mut self, cycles: u64) -> Checked {
        self.progress = self.cycle;
        (0..cycles).try_for_each(|_| self.one_cycle())
    }
}
