//! Runs with an RTL endpoint behind the home.

use super::endpoint::results;
use super::error::{line_failure, Checked};
use super::registers::check_registers;
use super::testbench::Bench;
use crate::lockstep::model::SLICES;
use cohkit_protocol::controller::Access;
use cohkit_protocol::protocol::Permission;

/// Lets the remote obtain every line, half of them dirty; then the invalidation engine recalls all of them. Unless
/// `remote_is_idle`, the remote starts accesses meanwhile. Returns the duration of the recall in cycles.
pub(in crate::lockstep) fn invalidate_range(
    bench: &mut Bench,
    remote_is_idle: bool,
) -> Checked<u64> {
    let lines = bench.context().lines.len();
    for line_index in 0..lines {
        let access = [Access::Load, Access::Store][line_index / SLICES % 2];
        bench.start_access(line_index, access)?;
        bench.run_until(|bench| bench.permission(line_index) >= Permission::Read)?;
        bench.start_access(line_index, access)?;
    }
    bench.settle()?;
    let begin = bench.context().cycle;
    bench.endpoint.command_engines();
    bench.context().record_activity();
    while bench.endpoint.is_range_complete != [true; SLICES] {
        if !remote_is_idle {
            bench.environment.remote().attempt_accesses()?;
        }
        bench.run_cycle()?;
    }
    let cycles = bench.context().cycle - begin;
    for line_index in 0..lines {
        if remote_is_idle && bench.permission(line_index) != Permission::None {
            return line_failure(line_index, "the remote has kept a line of the range".into());
        }
        if bench.endpoint.recalls_by_line[line_index] != 1 {
            let recalls = bench.endpoint.recalls_by_line[line_index];
            return line_failure(line_index, format!("the line was recalled {recalls} times"));
        }
    }
    bench.settle()?;
    bench.check_final_state()?;
    check_registers(bench)?;
    Ok(cycles)
}

/// Performs `calls` remote procedure calls in each slice. Returns the sum over all calls of the cycles from the access
/// to the result line until the remote has write permission.
pub(in crate::lockstep) fn call_procedure(bench: &mut Bench, calls: u64) -> Checked<u64> {
    let mut cycles = 0;
    for call in 0..calls * SLICES as u64 {
        let slice = call as usize % SLICES;
        let argument_line = slice + SLICES * bench.endpoint.remote_lines[slice];
        let result_line = slice + SLICES * (1 - bench.endpoint.remote_lines[slice]);
        // The first call must obtain a line; later ones use the line with the results.
        bench.start_access(argument_line, Access::Store)?;
        bench.run_until(|bench| bench.permission(argument_line) == Permission::Write)?;
        for _ in 0..1 + bench.context().random.below(4) {
            bench.start_access(argument_line, Access::Store)?;
        }
        let arguments = bench.context().lines[argument_line].copy;
        let begin = bench.context().cycle;
        bench.start_access(result_line, Access::Store)?;
        bench.run_until(|bench| bench.permission(result_line) == Permission::Write)?;
        cycles += bench.context().cycle - begin;
        let words = bench.context().reference.words;
        let returned = &bench.context().lines[result_line].copy;
        if returned[..words] != results(&arguments)[..words] {
            return line_failure(result_line, "a call has another result".into());
        }
        if bench.permission(argument_line) != Permission::None {
            return line_failure(argument_line, "the remote has kept the arguments".into());
        }
    }
    bench.settle()?;
    bench.check_final_state()?;
    check_registers(bench)?;
    Ok(cycles)
}
