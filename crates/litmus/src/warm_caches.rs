//! Programs with warm caches.
//!
//! If copies may be stale (`guarantee none`), the value of a read depends on the thread's earlier reads. A shape that
//! reads each location once never hits a cached copy, so it cannot observe stale data.

use crate::cycles::classic;
use crate::program::{Acquire, Instruction, Location, Program};
use cohkit_protocol::protocol::Protocol;
use std::collections::BTreeSet;

/// Suffix of the names of programs with warm caches.
const WARM: &str = "+warm";

/// Returns the classic programs that check a protocol's memory model; each also with warm caches if copies may be
/// stale.
pub fn conformance_programs(protocol: &Protocol) -> Vec<Program> {
    let mut programs = classic();
    if !protocol.guarantee.coherent {
        let warm: Vec<Program> = programs.iter().filter_map(with_warm_caches).collect();
        programs.extend(warm);
    }
    programs
}

/// Returns the program with warm caches: each thread first loads every location that it loads later, by plain loads
/// into unobserved registers. Returns `None` if no thread loads.
fn with_warm_caches(program: &Program) -> Option<Program> {
    let mut warm_program = program.clone();
    warm_program.name.push_str(WARM);
    let mut has_load = false;
    for thread in &mut warm_program.threads {
        let loads = thread
            .code
            .iter()
            .filter_map(|instruction| match *instruction {
                Instruction::Load { from, .. } => from.direct(),
                _ => None,
            });
        let loads: BTreeSet<Location> = loads.collect();
        let mut warm_code = Vec::new();
        for from in loads {
            let to = thread.registers.len();
            thread.registers.push(0);
            thread.names.push(format!(".{to}"));
            let acquire = Acquire::None;
            let from = from.into();
            warm_code.push(Instruction::Load { to, from, acquire });
        }
        let warming_loads = warm_code.len();
        has_load |= warming_loads > 0;
        warm_code.extend(thread.code.iter().map(|instruction| match *instruction {
            Instruction::Branch { on, zero, to } => Instruction::Branch {
                on,
                zero,
                to: to + warming_loads,
            },
            other => other,
        }));
        thread.code = warm_code;
    }
    has_load.then_some(warm_program)
}

/// Returns the classic program with this name (with warm caches for the suffix `+warm`), or the burst of stores whose
/// code is this name.
pub fn named(name: &str) -> Option<Program> {
    match name.strip_suffix(WARM) {
        Some(cold_name) => with_warm_caches(&crate::cycles::named(cold_name)?),
        None => crate::cycles::named(name).or_else(|| crate::bursts::named(name)),
    }
}
