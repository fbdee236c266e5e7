//! An application behind the home that answers the CPU late. It has two control lines in one unit, and answers the
//! CPU's requests for them only after a third line of that unit was used. Meanwhile the unit's deferred requests are at
//! their maximum.

use super::error::{check_failed, line_failure, Checked};
use super::testbench::Bench;
use crate::lockstep::setup::Check;
use cohkit_protocol::controller::{Access, Local};
use cohkit_protocol::protocol::Permission;

/// Method by which an application withholds its answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DelayedResponse {
    /// The application locks both control lines. The requests for them fill the unit's waiting set.
    Locks,
    /// The application serves as memory and withholds both read answers. Requests for two other, locked lines fill the
    /// waiting set.
    Reads,
}

/// Lines that the application uses as control registers.
const CONTROL: [usize; 2] = [0, 1];
/// Line of the same unit that is used meanwhile.
const THIRD_LINE: usize = 2;
/// Number of lines of the scenario; the last two are locked if the control lines are not.
pub const LINES: usize = 5;
/// Number of cycles after which a request has arrived at the place where it waits.
const ARRIVAL_CYCLES: u64 = 300;

/// Plays the scenario to its end. Fails if the third line or a withheld answer is blocked, or if the protocol lacks
/// the operations.
pub(in crate::lockstep) fn play_control_lines(
    bench: &mut Bench,
    withheld: DelayedResponse,
) -> Checked {
    let locals = &bench.context().reference.clone().home.locals;
    let find_recall = |locks| {
        let fits = |local: &Local| local.ensures == Permission::None && local.locks == locks;
        let position = locals.iter().position(fits);
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
        bench.request_local(line_index, lock);
    }
    bench.run_until(|bench| {
        let lines = &bench.environment.context.lines;
        locked
            .iter()
            .all(|&line_index| lines[line_index].lock_reported)
    })?;
    for line_index in CONTROL {
        let line = &mut bench.context().lines[line_index];
        line.steering.is_memory_withheld = withheld == DelayedResponse::Reads;
    }
    for line_index in locked {
        bench.start_access(line_index, Access::Load)?;
    }
    bench.run_cycles(ARRIVAL_CYCLES)?;
    if withheld == DelayedResponse::Reads {
        bench.start_access(CONTROL[0], Access::Load)?;
        bench.start_access(CONTROL[1], Access::Store)?;
        bench.run_cycles(ARRIVAL_CYCLES)?;
    }
    use_third_line(bench, recall)?;
    for line_index in locked.into_iter().chain(CONTROL) {
        if bench.permission(line_index) != Permission::None {
            let message = "the application is stalled although it has not answered";
            return line_failure(line_index, message.into());
        }
    }
    bench.answer_reads(&CONTROL);
    for line_index in locked {
        bench.unlock(line_index);
    }
    bench.run_until(|bench| {
        locked
            .iter()
            .chain(&CONTROL)
            .all(|&line_index| bench.permission(line_index) >= Permission::Read)
    })?;
    bench.settle()?;
    bench.check_final_state()
}

/// The CPU writes the third line, and the application takes it with the new contents.
fn use_third_line(bench: &mut Bench, recall: u8) -> Checked {
    bench.start_access(THIRD_LINE, Access::Store)?;
    bench.run_until(|bench| bench.permission(THIRD_LINE) == Permission::Write)?;
    bench.start_access(THIRD_LINE, Access::Store)?;
    bench.request_local(THIRD_LINE, recall);
    bench.run_until(|bench| {
        let line = &bench.environment.context.lines[THIRD_LINE];
        line.pending_local.is_none() && line.queued_locals.is_empty()
    })
}
